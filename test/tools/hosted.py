"""Hosted objects in Python: made by `lathe compile --allow-host`, linked as a shared library, called by their C interface."""
import base64
import ctypes
import json
import os
import subprocess

import numpy as np

STRING = 7  # a lathe_dtype
TYPES = {1: np.float32, 2: np.float64, 3: np.int32, 4: np.uint8, 5: np.int16, 6: np.int8, 9: np.int64, 10: np.bool_}


class Text(ctypes.Structure):
    _fields_ = [("data", ctypes.c_char_p), ("size", ctypes.c_uint64)]


class Value(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("dtype", ctypes.c_int32), ("rank", ctypes.c_int32), ("reserved", ctypes.c_int32),
                ("dims", ctypes.POINTER(ctypes.c_int64)), ("data", ctypes.c_void_p)]


class Info(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("dtype", ctypes.c_int32), ("rank", ctypes.c_int32), ("reserved", ctypes.c_int32),
                ("name", ctypes.c_char_p), ("tensor", ctypes.c_char_p), ("dims", ctypes.POINTER(ctypes.c_int64))]


def build(lathe, model, folder, options=(), cxx="c++"):
    """The path of the library; a RuntimeError with the compiler's text where there is none."""
    prefix = os.path.join(folder, "m")
    done = subprocess.run([lathe, "compile", model, "-o", prefix, "--symbol-prefix", "m", "--allow-host", *options], capture_output=True, text=True,
                          timeout=600)
    if done.returncode:
        raise RuntimeError(done.stderr.strip() or f"status {done.returncode}")
    pkg = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(lathe))), "lib", "pkgconfig", "lathe_host.pc")
    libs = subprocess.run(["pkg-config", "--libs", pkg], capture_output=True, text=True, check=True).stdout.split()
    if "cuda" in options:
        libs = [os.path.join(os.path.dirname(os.path.dirname(pkg)), "liblathe_cuda.a"), *libs, "-ldl"]
    # nothing of the object refers to the functions that run it
    subprocess.run([cxx, "-shared", "-o", prefix + ".so", prefix + ".o", "-Wl,-u,lathe_hosted_new", *libs], check=True, timeout=600)
    return prefix + ".so"


class Model:
    def __init__(self, path, threads=1):
        self.lib = lib = ctypes.CDLL(path)
        for name in ("m_hosted", "lathe_hosted_new"):
            getattr(lib, name).restype = ctypes.c_void_p
        for name in ("lathe_hosted_input", "lathe_hosted_output"):
            getattr(lib, name).restype = ctypes.POINTER(Info)
        lib.lathe_hosted_result.restype = ctypes.POINTER(Value)
        lib.lathe_hosted_entry_name.restype = lib.lathe_hosted_error.restype = ctypes.c_char_p
        self.model = ctypes.c_void_p(lib.lathe_hosted_new(ctypes.c_void_p(lib.m_hosted()), threads))
        self.check(lib.lathe_hosted_code(self.model))

    def check(self, code):
        if code:
            raise RuntimeError(self.lib.lathe_hosted_error(self.model).decode(errors="replace"))

    def entries(self):
        return [self.lib.lathe_hosted_entry_name(self.model, i).decode() for i in range(self.lib.lathe_hosted_num_entries(self.model))]

    def run(self, feeds, entry=0):
        """name -> array to name -> array; strings as npz files keep them: JSON of shape and values in base64."""
        lib, keep, values = self.lib, [], []
        for i in range(lib.lathe_hosted_num_inputs(self.model, entry)):
            info = lib.lathe_hosted_input(self.model, entry, i).contents
            given = np.asarray(feeds[info.name.decode()])
            if info.dtype == STRING:
                text = json.loads(str(given))
                raw, dims = [base64.b64decode(v) for v in text["values"]], text["shape"]
                data = (Text * max(len(raw), 1))(*[Text(v, len(v)) for v in raw])
            else:
                array = np.ascontiguousarray(given, TYPES[info.dtype])
                dims, data = given.shape, array.ctypes.data_as(ctypes.c_void_p)
                keep.append(array)
            sizes = (ctypes.c_int64 * max(len(dims), 1))(*dims)
            keep += [data, sizes]
            values.append(Value(ctypes.sizeof(Value), info.dtype, len(dims), 0, sizes, ctypes.cast(data, ctypes.c_void_p)))
        pointers = (ctypes.POINTER(Value) * max(len(values), 1))(*[ctypes.pointer(v) for v in values])
        self.check(lib.lathe_hosted_run(self.model, entry, pointers, len(values)))
        results = {}
        for i in range(lib.lathe_hosted_num_outputs(self.model, entry)):
            value = lib.lathe_hosted_result(self.model, i).contents
            dims = [value.dims[d] for d in range(value.rank)]
            count = int(np.prod(dims, dtype=np.int64))
            if value.dtype == STRING:
                texts = ctypes.cast(value.data, ctypes.POINTER(Text))
                raw = [ctypes.string_at(ctypes.cast(ctypes.addressof(texts[k]), ctypes.POINTER(ctypes.c_void_p))[0], texts[k].size) if texts[k].size
                       else b"" for k in range(count)]
                array = np.array(json.dumps({"shape": dims, "values": [base64.b64encode(v).decode() for v in raw]}))
            else:
                kind = np.dtype(TYPES[value.dtype])
                array = np.frombuffer(ctypes.string_at(value.data, count * kind.itemsize) if count else b"", kind).reshape(dims).copy()
            results[lib.lathe_hosted_output(self.model, entry, i).contents.name.decode()] = array
        return results
