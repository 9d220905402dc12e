"""The conformance cases: TensorFlow graphs with feeds and the outputs that TensorFlow computed for them.

A case is a folder in a zip (or on disk): graph.pb, case.json and a file per tensor. case.json has `steps`, each with `feeds`
(tensor name to file), `fetches`, `targets` and `expected` (a file per fetch); `dtypes` (file to type name); `rtol` and
`atol` by type name (a type that is not listed is exact). Tensors are .npy files; types that numpy lacks are kept as their
bits in unsigned integers, strings as JSON with base64.
"""
import base64
import io
import json
import os
import zipfile

import numpy as np

# stored as unsigned integers: bits of the exponent, bits of the mantissa, bias, NaN only as all ones, NaN as minus zero
FLOAT8 = {
    "float8_e5m2": (5, 2, 15, False, False), "float8_e4m3fn": (4, 3, 7, True, False),
    "float8_e4m3fnuz": (4, 3, 8, False, True), "float8_e4m3b11fnuz": (4, 3, 11, False, True),
    "float8_e5m2fnuz": (5, 2, 16, False, True)}
STORED_AS = {"bfloat16": "uint16", "int4": "uint8", "uint4": "uint8", "int2": "uint8", "uint2": "uint8", "qint8": "int8",
             "quint8": "uint8", "qint16": "int16", "quint16": "uint16", "qint32": "int32", "string": "object"}
STORED_AS.update({name: "uint8" for name in FLOAT8})
INEXACT = {"bfloat16", "float16", "float32", "float64", "complex64", "complex128"} | set(FLOAT8)


def storage(dtype):
    return np.dtype(STORED_AS.get(dtype, dtype))


def float8_values(dtype):
    """What each of the 256 codes means."""
    exponent_bits, mantissa_bits, bias, ones_are_nan, minus_zero_is_nan = FLOAT8[dtype]
    values = np.zeros(256, np.float64)
    top = (1 << exponent_bits) - 1
    for code in range(256):
        exponent = (code >> mantissa_bits) & top
        fraction = (code & ((1 << mantissa_bits) - 1)) / float(1 << mantissa_bits)
        value = (1 + fraction) * 2.0 ** (exponent - bias) if exponent else fraction * 2.0 ** (1 - bias)
        if minus_zero_is_nan:
            value = np.nan if code == 0x80 else value
        elif ones_are_nan:
            value = np.nan if code & 0x7f == 0x7f else value
        elif exponent == top:
            value = np.nan if fraction else np.inf
        values[code] = -value if code & 0x80 else value
    return values


def widen(data, dtype):
    """Stored floating-point numbers as float64 or complex128."""
    if dtype == "bfloat16":
        bits = data.astype(np.uint32).reshape(-1) << np.uint32(16)
        return bits.view(np.float32).reshape(data.shape).astype(np.float64)
    if dtype in FLOAT8:
        return float8_values(dtype)[data]
    return data.astype(np.complex128 if dtype.startswith("complex") else np.float64)


def decode(file, raw):
    """An array; of objects for strings."""
    if not file.endswith(".strings.json"):
        return np.load(io.BytesIO(raw), allow_pickle=False)
    text = json.loads(raw)
    data = np.empty(len(text["values"]), object)
    for i, value in enumerate(text["values"]):
        data[i] = base64.b64decode(value)
    return data.reshape(text["shape"])


def encode(data):
    """The suffix of a tensor's file, and its bytes."""
    if data.dtype == object:
        values = [base64.b64encode(v).decode() for v in data.reshape(-1)]
        return ".strings.json", json.dumps({"shape": list(data.shape), "values": values}).encode()
    out = io.BytesIO()
    np.save(out, data, allow_pickle=False)
    return ".npy", out.getvalue()


class Case:
    """`suite` is the zip's name without its ending, `name` the folder in it; together they name a case."""

    def __init__(self, suite, name, read):
        self.suite, self.name, self.read = suite, name, read
        self.meta = json.loads(read("case.json"))

    @property
    def key(self):
        return self.suite + " " + self.name

    def files(self):
        """All but the expected outputs."""
        return ["graph.pb"] + sorted({file for step in self.meta["steps"] for file in step["feeds"].values()})

    def expected(self):
        """(step, fetch's number, its tensor name, type, value) for each fetch of each step."""
        for s, step in enumerate(self.meta["steps"]):
            for i, (fetch, file) in enumerate(zip(step["fetches"], step["expected"])):
                value = decode(file, self.read(file))
                yield s, i, fetch, self.meta["dtypes"].get(file, str(value.dtype)), value


def load(path):
    """The cases of a zip, or of all zips below a folder, in sorted order."""
    zips = [path] if os.path.isfile(path) else sorted(
        os.path.join(folder, file) for folder, _, files in os.walk(path) for file in files if file.endswith(".zip"))
    for file in zips:
        archive = zipfile.ZipFile(file)
        suite = os.path.basename(file)[:-len(".zip")]
        for entry in sorted(archive.namelist()):
            if entry.endswith("/case.json"):
                name = entry[:-len("/case.json")]
                yield Case(suite, name, lambda f, a=archive, n=name: a.read(n + "/" + f))


def difference(actual, expected, dtype, rtol, atol):
    """None, or what differs. NaN equals NaN, infinities equal themselves; complex parts are held against the modulus."""
    if actual.dtype != storage(dtype):
        return f"type {actual.dtype}, expected {dtype}"
    if actual.shape != expected.shape:
        return f"shape {list(actual.shape)}, expected {list(expected.shape)}"
    if dtype in INEXACT:
        have, want = widen(actual, dtype), widen(expected, dtype)
        with np.errstate(all="ignore"):
            bound = atol + rtol * np.abs(want)
            good = np.ones(want.shape, bool)
            for part in ("real", "imag"):
                a, b = getattr(have, part), getattr(want, part)
                good &= (a == b) | (np.isnan(a) & np.isnan(b)) | (np.isfinite(a) & np.isfinite(b) & (np.abs(a - b) <= bound))
    else:
        have, want = actual, expected
        good = np.asarray(have == want, bool)
    if good.all():
        return None
    at = int(np.flatnonzero(~good.reshape(-1))[0])
    return (f"{int((~good).sum())} of {good.size} differ (rtol {rtol:g}, atol {atol:g}), the first at {at}: "
            f"{have.reshape(-1)[at]!r}, expected {want.reshape(-1)[at]!r}")
