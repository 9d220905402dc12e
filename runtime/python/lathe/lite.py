"""TensorFlow Lite files as tf.lite.Interpreter runs them: the same methods over the compiled model. A model is compiled for the sizes of
its inputs when tensors are allocated (docs/tflite.md); inner tensors are not kept, only inputs and outputs have values."""
from __future__ import annotations

import ctypes
import os
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import numpy as np

try:
    from ml_dtypes import bfloat16 as _bfloat16
except ImportError:
    _bfloat16 = None

_DTYPES = {1: np.float32, 2: np.int32, 3: np.uint8, 4: np.int64, 5: np.bytes_, 6: np.bool_, 7: np.int16, 8: np.complex64, 9: np.int8, 10: np.float16,
           11: np.float64, 12: np.complex128, 13: np.uint64, 16: np.uint32, 17: np.uint16, 19: _bfloat16}
_P, _I, _S = ctypes.c_void_p, ctypes.c_int32, ctypes.c_size_t
_REPORTER = ctypes.CFUNCTYPE(None, _P, ctypes.c_char_p, _P)


class _Params(ctypes.Structure):
    _fields_ = [("scale", ctypes.c_float), ("zero_point", _I)]


# name: result, arguments
_FUNCTIONS = {
    "ModelCreateWithErrorReporter": (_P, ctypes.c_char_p, _S, _REPORTER, _P), "ModelDelete": (None, _P),
    "InterpreterOptionsCreate": (_P,), "InterpreterOptionsDelete": (None, _P), "InterpreterOptionsSetNumThreads": (None, _P, _I),
    "InterpreterOptionsSetErrorReporter": (None, _P, _REPORTER, _P),
    "InterpreterCreate": (_P, _P, _P), "InterpreterDelete": (None, _P), "InterpreterAllocateTensors": (_I, _P), "InterpreterInvoke": (_I, _P),
    "InterpreterGetInputTensorCount": (_I, _P), "InterpreterGetOutputTensorCount": (_I, _P),
    "InterpreterGetInputTensor": (_P, _P, _I), "InterpreterGetOutputTensor": (_P, _P, _I),
    "InterpreterGetInputTensorIndex": (_I, _P, _I), "InterpreterGetOutputTensorIndex": (_I, _P, _I),
    "InterpreterResizeInputTensor": (_I, _P, _I, ctypes.POINTER(ctypes.c_int), _I), "InterpreterResetVariableTensors": (_I, _P),
    "InterpreterGetSignatureCount": (_I, _P), "InterpreterGetSignatureKey": (ctypes.c_char_p, _P, _I),
    "InterpreterGetSignatureRunner": (_P, _P, ctypes.c_char_p),
    "SignatureRunnerGetInputCount": (_S, _P), "SignatureRunnerGetInputName": (ctypes.c_char_p, _P, _I),
    "SignatureRunnerGetOutputCount": (_S, _P), "SignatureRunnerGetOutputName": (ctypes.c_char_p, _P, _I),
    "SignatureRunnerGetInputTensor": (_P, _P, ctypes.c_char_p), "SignatureRunnerGetOutputTensor": (_P, _P, ctypes.c_char_p),
    "SignatureRunnerResizeInputTensor": (_I, _P, ctypes.c_char_p, ctypes.POINTER(ctypes.c_int), _I),
    "SignatureRunnerAllocateTensors": (_I, _P), "SignatureRunnerInvoke": (_I, _P), "SignatureRunnerDelete": (None, _P),
    "TensorType": (ctypes.c_int, _P), "TensorNumDims": (_I, _P), "TensorDim": (_I, _P, _I), "TensorByteSize": (_S, _P), "TensorData": (_P, _P), "TensorRealloc": (_I, _S, _P),
    "TensorName": (ctypes.c_char_p, _P), "TensorQuantizationParams": (_Params, _P), "TypeGetName": (ctypes.c_char_p, ctypes.c_int),
    "OpaqueTensorGetNumDimsSignature": (_I, _P, ctypes.POINTER(_I)), "OpaqueTensorGetDimSignature": (_I, _P, _I, ctypes.POINTER(_I)),
}
_libc = ctypes.CDLL(None)
_library: Any = None


def _lib() -> Any:
    """The C interface's library, from the package's folder."""
    global _library
    if _library is None:
        library = ctypes.CDLL(os.path.join(os.path.dirname(os.path.abspath(__file__)), "liblathe_tflite.so"))
        for name, (result, *arguments) in _FUNCTIONS.items():
            f = getattr(library, "TfLite" + name)
            f.restype, f.argtypes = result, arguments
        _library = library
    return _library


class _Errors:
    """What the library reports, until somebody raises it."""

    def __init__(self) -> None:
        self._texts: List[str] = []

        def report(_user: Any, form: bytes, args: Any) -> None:
            text = ctypes.create_string_buffer(16384)
            _libc.vsnprintf(text, _S(len(text)), ctypes.c_char_p(form), _P(args))
            self._texts.append(text.value.decode(errors="replace"))

        self.function = _REPORTER(report)

    def take(self, otherwise: str) -> str:
        text, self._texts = "\n".join(self._texts) or otherwise, []
        return text


def _shape(t: int) -> np.ndarray:
    return np.array([_lib().TfLiteTensorDim(t, i) for i in range(max(_lib().TfLiteTensorNumDims(t), 0))], np.int32)


def _sizes(t: int) -> Tuple[int, ...]:
    return tuple(_shape(t).tolist())


def _signature(t: int) -> np.ndarray:
    n, d = _I(), _I()
    _lib().TfLiteOpaqueTensorGetNumDimsSignature(t, ctypes.byref(n))
    if n.value < 0:
        return _shape(t)
    dims = []
    for i in range(n.value):
        _lib().TfLiteOpaqueTensorGetDimSignature(t, i, ctypes.byref(d))
        dims.append(d.value)
    return np.array(dims, np.int32)


def _dtype(t: int) -> Any:
    number = _lib().TfLiteTensorType(t)
    dtype = _DTYPES.get(number)
    if dtype is None:
        raise ValueError(f"tensor '{_lib().TfLiteTensorName(t).decode()}' has type {_lib().TfLiteTypeGetName(number).decode()}, which has no "
                         "array")
    return dtype


def _details(t: int, index: int, name: Optional[str] = None) -> Dict[str, Any]:
    q = _lib().TfLiteTensorQuantizationParams(t)
    known = q.scale != 0
    return {"name": name if name is not None else _lib().TfLiteTensorName(t).decode(), "index": index, "shape": _shape(t),
            "shape_signature": _signature(t), "dtype": _dtype(t), "quantization": (q.scale, q.zero_point),
            "quantization_parameters": {"scales": np.array([q.scale] if known else [], np.float32),
                                        "zero_points": np.array([q.zero_point] if known else [], np.int32), "quantized_dimension": 0},
            "sparsity_parameters": {}}


def _view(t: int) -> np.ndarray:
    """The tensor's own memory as an array."""
    dtype, size = np.dtype(_dtype(t)), _lib().TfLiteTensorByteSize(t)
    shape, data = tuple(_shape(t)), _lib().TfLiteTensorData(t)
    if not data:
        raise ValueError("the tensor has no data: allocate tensors first")
    raw = (ctypes.c_uint8 * size).from_address(data)
    if dtype.kind == "S":  # a copy: their number, where each begins and the last ends, their bytes
        count = int(np.prod(shape, dtype=np.int64))
        ends, text = np.frombuffer(raw, np.int32, count + 2)[1:], bytes(raw)
        values = np.empty(count, object)
        values[:] = [text[a:b] for a, b in zip(ends, ends[1:])]
        return values.reshape(shape)
    return np.frombuffer(raw, np.uint8, size).view(dtype).reshape(shape)


def _store_strings(t: int, value: Any, what: str) -> None:
    value = np.asarray(value)
    if value.dtype.kind not in "OSU":
        raise ValueError(f"{what}: expected strings, found {value.dtype.name}")
    if value.shape != _sizes(t):
        raise ValueError(f"{what}: expected shape {_sizes(t)}, found {value.shape}")
    texts = [v if isinstance(v, bytes) else str(v).encode() for v in value.ravel().tolist()]
    starts = np.cumsum([4 * (len(texts) + 2)] + [len(v) for v in texts])
    if starts[-1] > np.iinfo(np.int32).max:
        raise ValueError(f"{what}: the strings are longer than 2 GB")
    content = np.concatenate([[len(texts)], starts]).astype(np.int32).tobytes() + b"".join(texts)
    if _lib().TfLiteTensorRealloc(len(content), t):
        raise MemoryError(f"{what}: out of memory")
    ctypes.memmove(_lib().TfLiteTensorData(t), content, len(content))


def _store(t: int, value: Any, what: str) -> None:
    if _dtype(t) is np.bytes_:
        return _store_strings(t, value, what)
    value, dtype, shape = np.asarray(value), np.dtype(_dtype(t)), _sizes(t)
    if value.dtype != dtype:
        raise ValueError(f"{what}: expected values of {dtype.name}, found {value.dtype.name}")
    if value.shape != shape:
        raise ValueError(f"{what}: expected shape {shape}, found {value.shape}")
    _view(t)[...] = value


class SignatureRunner:
    """A signature as a function: `runner(x=array)` gives a dict of arrays by the names of the outputs."""

    def __init__(self, interpreter: "Interpreter", key: str) -> None:
        self._interpreter = interpreter
        self._handle = _lib().TfLiteInterpreterGetSignatureRunner(interpreter._handle, key.encode())
        if not self._handle:
            raise ValueError(interpreter._errors.take(f"there is no signature '{key}'"))
        lib = _lib()
        self._inputs = [lib.TfLiteSignatureRunnerGetInputName(self._handle, i).decode()
                        for i in range(lib.TfLiteSignatureRunnerGetInputCount(self._handle))]
        self._outputs = [lib.TfLiteSignatureRunnerGetOutputName(self._handle, i).decode()
                         for i in range(lib.TfLiteSignatureRunnerGetOutputCount(self._handle))]

    def __del__(self) -> None:
        if getattr(self, "_handle", None) and self._interpreter._handle:
            _lib().TfLiteSignatureRunnerDelete(self._handle)

    def _input(self, name: str) -> int:
        return _lib().TfLiteSignatureRunnerGetInputTensor(self._handle, name.encode())

    def get_input_details(self) -> Dict[str, Dict[str, Any]]:
        return {n: _details(self._input(n), i) for i, n in enumerate(self._inputs)}

    def get_output_details(self) -> Dict[str, Dict[str, Any]]:
        return {n: _details(_lib().TfLiteSignatureRunnerGetOutputTensor(self._handle, n.encode()), i) for i, n in enumerate(self._outputs)}

    def __call__(self, **inputs: Any) -> Dict[str, np.ndarray]:
        lib = _lib()
        if set(inputs) != set(self._inputs):
            raise ValueError(f"expected inputs {sorted(self._inputs)}, found {sorted(inputs)}")
        for name, value in inputs.items():
            shape = np.shape(value)
            if _sizes(self._input(name)) != shape:
                dims = (ctypes.c_int * len(shape))(*shape)
                self._interpreter._check(lib.TfLiteSignatureRunnerResizeInputTensor(self._handle, name.encode(), dims, len(shape)), "resize")
        self._interpreter._check(lib.TfLiteSignatureRunnerAllocateTensors(self._handle), "allocate tensors")
        for name, value in inputs.items():
            dtype = _dtype(self._input(name))
            plain = isinstance(value, (int, float, bool, list)) and dtype is not np.bytes_
            _store(self._input(name), np.asarray(value, dtype) if plain else value, f"input '{name}'")
        self._interpreter._check(lib.TfLiteSignatureRunnerInvoke(self._handle), "run")
        return {n: _view(lib.TfLiteSignatureRunnerGetOutputTensor(self._handle, n.encode())).copy() for n in self._outputs}


class Interpreter:
    """tf.lite.Interpreter's methods. Give a path or the bytes of a file. Delegates and resolvers of operators are accepted and change
    nothing. ValueError for files that are none and for values that do not fit, RuntimeError for models that do not compile or run."""

    def __init__(self, model_path: Optional[str] = None, model_content: Optional[bytes] = None, experimental_delegates: Any = None,
                 num_threads: Optional[int] = None, experimental_op_resolver_type: Any = None, experimental_preserve_all_tensors: bool = False,
                 experimental_disable_delegate_clustering: bool = False) -> None:
        self._handle = self._model = None
        if (model_path is None) == (model_content is None):
            raise ValueError("give either model_path or model_content")
        if experimental_preserve_all_tensors:
            raise ValueError("inner tensors are not kept")
        if model_path is not None:
            with open(model_path, "rb") as f:
                model_content = f.read()
        lib, self._errors, self._content = _lib(), _Errors(), bytes(model_content or b"")
        self._model = lib.TfLiteModelCreateWithErrorReporter(self._content, len(self._content), self._errors.function, None)
        if not self._model:
            raise ValueError(self._errors.take("the model is no TensorFlow Lite file"))
        options = lib.TfLiteInterpreterOptionsCreate()
        lib.TfLiteInterpreterOptionsSetErrorReporter(options, self._errors.function, None)
        if num_threads is not None:
            if num_threads < -1 or num_threads == 0:
                raise ValueError("num_threads should be a positive number, or -1")
            lib.TfLiteInterpreterOptionsSetNumThreads(options, num_threads if num_threads > 0 else os.cpu_count() or 1)
        self._handle = lib.TfLiteInterpreterCreate(self._model, options)
        lib.TfLiteInterpreterOptionsDelete(options)
        if not self._handle:
            raise ValueError(self._errors.take("the model has no interpreter"))

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            _lib().TfLiteInterpreterDelete(self._handle)
            self._handle = None
        if getattr(self, "_model", None):
            _lib().TfLiteModelDelete(self._model)
            self._model = None

    def _check(self, status: int, what: str) -> None:
        if status:
            raise RuntimeError(self._errors.take(f"could not {what}"))

    def _ports(self) -> List[Any]:
        """(index, tensor, position among the inputs or None)."""
        lib, h = _lib(), self._handle
        inputs = [(lib.TfLiteInterpreterGetInputTensorIndex(h, i), lib.TfLiteInterpreterGetInputTensor(h, i), i)
                  for i in range(lib.TfLiteInterpreterGetInputTensorCount(h))]
        return inputs + [(lib.TfLiteInterpreterGetOutputTensorIndex(h, i), lib.TfLiteInterpreterGetOutputTensor(h, i), None)
                         for i in range(lib.TfLiteInterpreterGetOutputTensorCount(h))]

    def _find(self, index: int, only_inputs: bool = False) -> Any:
        for port in self._ports():
            if port[0] == index and not (only_inputs and port[2] is None):
                return port
        raise ValueError(f"tensor {index} is no {'input' if only_inputs else 'input or output'} of the model")

    def allocate_tensors(self) -> None:
        """Compiles the model for the sizes that its inputs have now."""
        self._check(_lib().TfLiteInterpreterAllocateTensors(self._handle), "allocate tensors")

    def invoke(self) -> None:
        self._check(_lib().TfLiteInterpreterInvoke(self._handle), "run")

    def get_input_details(self) -> List[Dict[str, Any]]:
        return [_details(t, index) for index, t, at in self._ports() if at is not None]

    def get_output_details(self) -> List[Dict[str, Any]]:
        return [_details(t, index) for index, t, at in self._ports() if at is None]

    def get_tensor_details(self) -> List[Dict[str, Any]]:
        """Of inputs and outputs: others are inside of the compiled code."""
        return [_details(t, index) for index, t, _ in self._ports()]

    def set_tensor(self, tensor_index: int, value: Any) -> None:
        _, t, at = self._find(tensor_index, only_inputs=True)
        _store(t, value, f"input {at}")

    def get_tensor(self, tensor_index: int) -> np.ndarray:
        """A copy of the value."""
        return _view(self._find(tensor_index)[1]).copy()

    def tensor(self, tensor_index: int) -> Callable[[], np.ndarray]:
        """A function that gives the tensor's memory as an array, for as long as tensors are not allocated again."""
        self._find(tensor_index)
        return lambda: _view(self._find(tensor_index)[1])

    def resize_tensor_input(self, input_index: int, tensor_size: Sequence[int], strict: bool = False) -> None:
        _, t, at = self._find(input_index, only_inputs=True)
        sizes = [int(n) for n in np.asarray(tensor_size).ravel()]
        known = _signature(t)
        if strict and (len(sizes) != len(known) or any(k not in (-1, n) for k, n in zip(known, sizes))):
            raise ValueError(f"input {at}: only sizes of -1 in {known.tolist()} may change, found {sizes}")
        self._check(_lib().TfLiteInterpreterResizeInputTensor(self._handle, at, (ctypes.c_int * len(sizes))(*sizes), len(sizes)), "resize")

    def reset_all_variables(self) -> None:
        self._check(_lib().TfLiteInterpreterResetVariableTensors(self._handle), "reset variables")

    def _keys(self) -> List[str]:
        return [_lib().TfLiteInterpreterGetSignatureKey(self._handle, i).decode() for i in range(_lib().TfLiteInterpreterGetSignatureCount(self._handle))]

    def get_signature_list(self) -> Dict[str, Dict[str, List[str]]]:
        result = {}
        for key in self._keys():
            runner = SignatureRunner(self, key)
            result[key] = {"inputs": sorted(runner._inputs), "outputs": sorted(runner._outputs)}
        return result

    def get_signature_runner(self, signature_key: Optional[str] = None) -> SignatureRunner:
        keys = self._keys()
        if signature_key is None:
            if len(keys) != 1:
                raise ValueError(f"the model has {len(keys)} signatures: say which of {keys}")
            signature_key = keys[0]
        return SignatureRunner(self, signature_key)


def load_delegate(library: str, options: Any = None) -> None:
    """Delegates change nothing: everything is compiled."""
    return None
