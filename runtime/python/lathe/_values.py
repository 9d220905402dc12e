"""Arrays and other values as tensors, and back."""
from __future__ import annotations

from typing import Any, Dict, Optional, Tuple

import numpy as np

from . import _lathe

try:
    import ml_dtypes as _ml
except ImportError:
    _ml = None

_NAMES = ("float32", "float64", "int32", "uint8", "int16", "int8", "complex64", "int64", "bool", "uint16", "complex128", "float16",
          "uint32", "uint64")
_ML_NAMES = ("bfloat16", "float8_e5m2", "float8_e4m3fn", "int4", "uint4")

STRING = _lathe.dtype_number("string")
RESOURCE = _lathe.dtype_number("resource")
VARIANT = _lathe.dtype_number("variant")

#: numpy's dtype by the number of ours; what is missing has none
NUMPY: Dict[int, np.dtype] = {_lathe.dtype_number(n): np.dtype(n) for n in _NAMES}
NUMPY[STRING] = np.dtype(object)
#: the other way round
NUMBER: Dict[np.dtype, int] = {d: n for n, d in NUMPY.items() if n != STRING}
# types that the buffer protocol does not know pass as integers of their size
_CARRIER: Dict[int, np.dtype] = {}
for _name, _carrier in (("bfloat16", np.uint16), ("float8_e5m2", np.uint8), ("float8_e4m3fn", np.uint8), ("int4", np.int8),
                        ("uint4", np.uint8)):
    _n = _lathe.dtype_number(_name)
    _CARRIER[_n] = np.dtype(_carrier)
    if _ml is not None:
        NUMPY[_n] = np.dtype(getattr(_ml, _name))
        NUMBER[NUMPY[_n]] = _n
# TensorFlow's numpy form of quantized types: a record of one integer
for _name, _carrier in (("qint8", np.int8), ("quint8", np.uint8), ("qint32", np.int32), ("qint16", np.int16), ("quint16", np.uint16)):
    _n = _lathe.dtype_number(_name)
    _CARRIER[_n] = np.dtype(_carrier)
    NUMPY[_n] = np.dtype([(_name, _carrier)])
    NUMBER[NUMPY[_n]] = _n
_INT4 = _lathe.dtype_number("int4")

DTypeLike = Any


def dtype_name(number: int) -> str:
    return _lathe.dtype_name(number)


def dtype_number(dtype: DTypeLike) -> int:
    """Of a name, a numpy dtype, or TensorFlow's DType."""
    if isinstance(dtype, str):
        number = _lathe.dtype_number(dtype)
        if number:
            return number
    if hasattr(dtype, "as_datatype_enum"):
        return int(dtype.as_datatype_enum) % 100
    d = np.dtype(dtype)
    if d.kind in "OSU":
        return STRING
    if d not in NUMBER:
        raise TypeError(f"there is no dtype for {dtype!r}")
    return NUMBER[d]


class Tensor:
    """A tensor outside of numpy: any dtype, memory that is shared and not copied.

    `numpy.asarray(t)` and `t.numpy()` show the memory (read-only where the session or another tensor sees it too), DLPack
    consumers take it, and a session takes it as a feed as it is.
    """

    __slots__ = ("_t", "__weakref__")
    __array_priority__ = 100

    def __init__(self, value: Any, dtype: DTypeLike = None, *, copy: bool = False) -> None:
        self._t = value if isinstance(value, _lathe.Tensor) else to_native(value, dtype_number(dtype) if dtype is not None else 0, copy)

    @property
    def dtype(self) -> str:
        """The dtype's name, as TensorFlow spells it."""
        return _lathe.dtype_name(self._t.dtype_number)

    @property
    def shape(self) -> Tuple[int, ...]:
        return self._t.shape

    @property
    def ndim(self) -> int:
        return len(self._t.shape)

    @property
    def nbytes(self) -> int:
        return self._t.nbytes

    @property
    def data_ptr(self) -> int:
        """Address of the memory; 0 for strings and handles."""
        return self._t.data_ptr

    @staticmethod
    def from_bits(bits: np.ndarray, dtype: DTypeLike) -> "Tensor":
        """A tensor of a dtype that numpy lacks, such as bfloat16, from unsigned integers of its size."""
        return Tensor(_from_array(np.asarray(bits, dtype=_CARRIER[dtype_number(dtype)]), dtype_number(dtype), False))

    def numpy(self) -> np.ndarray:
        """The elements, without a copy where the dtype has memory; strings become an object array.

        Types that numpy lacks come as those of the package ml_dtypes where it is installed, else as the integers that hold
        their bits.
        """
        if self._t.dtype_number in (RESOURCE, VARIANT):
            raise TypeError(f"a tensor of {self.dtype} has no numpy form")
        return to_array(self._t, share=True)

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> np.ndarray:
        a = self.numpy()
        if dtype is not None and a.dtype != np.dtype(dtype):
            return a.astype(dtype)
        return a.copy() if copy else a

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Optional[bool] = None) -> Any:
        device = None if dl_device is None else (int(dl_device[0]), int(dl_device[1]))
        return self._t.__dlpack__(stream=stream, max_version=max_version, dl_device=device, copy=copy)

    def __dlpack_device__(self) -> Tuple[int, int]:
        return self._t.__dlpack_device__()

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a tensor without dimensions")
        return self.shape[0]

    def __repr__(self) -> str:
        number = self._t.dtype_number
        head = f"<lathe.Tensor {self.dtype} {list(self.shape)}"
        if number in (RESOURCE, VARIANT):
            return f"{head} {self._t._describe()}>"
        return f"{head}\n{self.numpy()!r}>"


def from_dlpack(x: Any) -> Tensor:
    """A tensor on the memory of any object with `__dlpack__` that lies in the host's memory.

    Copied only where it is not row-major or not aligned to its elements. Who changes the memory changes the tensor.
    """
    return Tensor(native_from_dlpack(x))


def native_from_dlpack(x: Any) -> _lathe.Tensor:
    try:
        capsule = x.__dlpack__(max_version=(1, 1))
    except TypeError:  # made before version 1
        capsule = x.__dlpack__()
    return _lathe.import_capsule(capsule)


def _from_array(a: np.ndarray, number: int, copy: bool) -> _lathe.Tensor:
    carrier = _CARRIER.get(number)
    shape = a.shape
    if not a.flags.c_contiguous:
        a = np.ascontiguousarray(a).reshape(shape)
    if carrier is not None:
        if number == _INT4 and a.dtype != carrier:
            a = a.astype(carrier)  # numpy's form leaves the upper four bits open, ours are the sign
        elif a.dtype != carrier:
            a = a.view(carrier) if a.ndim else a.reshape(1).view(carrier)
    elif not a.dtype.isnative:
        a = a.astype(a.dtype.newbyteorder("="))
    return _lathe.wrap_buffer(a, number, shape, copy)


def _from_strings(value: Any) -> _lathe.Tensor:
    a = value if isinstance(value, np.ndarray) else np.asarray(value, dtype=object)
    return _lathe.from_strings(a.ravel().tolist() if a.ndim else [a.item()], a.shape)


def _is_text(value: Any) -> bool:
    """Whether the first element of nested lists is a string: numpy would cut the zeros off its end."""
    while isinstance(value, (list, tuple)) and value:
        value = value[0]
    return isinstance(value, (str, bytes))


def _small_numbers(a: np.ndarray, number: int) -> np.ndarray:
    """Elements of a type that numpy lacks here, as integers of its size: rounded from floats, or checked."""
    name = dtype_name(number)
    if name == "bfloat16" and a.dtype.kind in "fiub":
        bits = a.astype(np.float32).view(np.uint32)
        rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
        return np.where(np.isnan(a.astype(np.float32)), np.uint16(0x7FC0), rounded)
    if name in ("int4", "uint4") and a.dtype.kind in "iub":
        low, high = (-8, 7) if name == "int4" else (0, 15)
        if a.size and (a.min() < low or a.max() > high):
            raise OverflowError(f"a value is outside of {name}'s range")
        return a.astype(_CARRIER[number])
    raise TypeError(f"{name} arrays need the package ml_dtypes")


def to_native(value: Any, number: int = 0, copy: bool = False) -> _lathe.Tensor:
    """The tensor of a value. `number` is the dtype wanted, 0 for the value's own."""
    if isinstance(value, Tensor):
        value = value._t
    if isinstance(value, _lathe.Tensor):
        if number and value.dtype_number != number:
            if value.dtype_number in (RESOURCE, VARIANT, STRING) or number in (RESOURCE, VARIANT, STRING):
                raise TypeError(f"expected {dtype_name(number)}, got a tensor of {dtype_name(value.dtype_number)}")
            return to_native(to_array(value, share=True), number, copy)
        return value._copy() if copy else value
    if number in (RESOURCE, VARIANT):
        raise TypeError(f"expected a lathe.Tensor of {dtype_name(number)}, got {type(value).__name__}")
    if number == STRING:
        return _from_strings(value)
    if not isinstance(value, np.ndarray):
        if hasattr(value, "__dlpack__") and not isinstance(value, np.generic):
            try:
                t = native_from_dlpack(value)
            except (BufferError, RuntimeError, TypeError, ValueError):
                t = None  # a dtype or device that DLPack does not hand out; perhaps it makes an array
            if t is not None:
                return to_native(t, number, copy)
        if number == 0:
            if _is_text(value):
                return _from_strings(value)
            value = np.asarray(value)
        else:
            wanted = NUMPY.get(number)
            if wanted is None or wanted.names:
                value = np.asarray(value)
            else:
                value = np.asarray(value, dtype=wanted)
    if number == 0:
        if value.dtype.kind in "OSU":
            return _from_strings(value)
        if value.dtype not in NUMBER:
            plain = value.dtype.newbyteorder("=")
            if plain not in NUMBER:
                raise TypeError(f"there is no dtype for arrays of {value.dtype}")
            return _from_array(value, NUMBER[plain], copy)
        return _from_array(value, NUMBER[value.dtype], copy)
    wanted = NUMPY.get(number)
    if wanted is None:
        value = _small_numbers(value, number)
    elif value.dtype != wanted:
        value = value.astype(_CARRIER[number] if wanted.names else wanted)
    return _from_array(value, number, copy)


def to_array(t: _lathe.Tensor, share: bool = False) -> Any:
    """The array of a tensor: its memory where nobody else sees that, a copy otherwise; with `share` always its memory."""
    number = t.dtype_number
    if number == STRING:
        a = np.empty(len_of(t.shape), dtype=object)
        a[:] = t._strings()
        return a.reshape(t.shape)
    if number in (RESOURCE, VARIANT):
        return Tensor(t)
    a = np.asarray(t)
    if not share and not t.writable:
        a = a.copy()
    if number in _CARRIER and number in NUMPY:
        return a.view(NUMPY[number]) if a.ndim else a.reshape(1).view(NUMPY[number]).reshape(())
    return a


def len_of(shape: Tuple[int, ...]) -> int:
    n = 1
    for d in shape:
        n *= d
    return n


def to_result(t: _lathe.Tensor) -> Any:
    """As TensorFlow's sessions give results: arrays, and the element itself for a tensor without dimensions."""
    if t.dtype_number not in NUMPY:
        return Tensor(t)  # bits would pass for numbers
    a = to_array(t)
    if isinstance(a, np.ndarray) and a.ndim == 0:
        return a[()]
    return a


def compatible(shape: Optional[Tuple[int, ...]], value: Tuple[int, ...]) -> bool:
    return shape is None or (len(shape) == len(value) and all(a in (-1, b) for a, b in zip(shape, value)))
