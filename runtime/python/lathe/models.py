"""SavedModels: signatures as functions of arrays."""
from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Dict, Iterator, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from . import _lathe, _show, _tensorflow, _values
from .session import Session, _options


class Quantization(NamedTuple):
    """What integers stand for: real = (element - zero_points[k]) * scales[k]; k is 0 for one scale, else the index in dimension `axis`."""

    scales: Tuple[float, ...]
    zero_points: Tuple[int, ...]
    axis: int

    def _along(self, rank: int) -> Tuple[np.ndarray, np.ndarray]:
        shape = [1] * rank
        if len(self.scales) > 1:
            shape[self.axis] = len(self.scales)
        return np.reshape(np.array(self.scales, np.float32), shape), np.reshape(np.array(self.zero_points, np.int64), shape)


class TensorSpec(NamedTuple):
    """One input or output: its key, the graph's tensor, dtype, shape (None: any; -1: any size), and scales where it is quantized."""

    name: str
    tensor: str
    dtype: str
    shape: Optional[Tuple[int, ...]]
    quantization: Optional[Quantization] = None

    def quantize(self, values: Any) -> np.ndarray:
        """Real numbers as elements of this quantized tensor: the nearest, of two the one away from the zero point, within the
        dtype's range; NaN gives the zero point. The same as `lathe_quantize` and the helpers of generated headers."""
        reals = np.asarray(values, np.float32)
        scales, zeros = self._parameters(reals.ndim)
        with np.errstate(over="ignore"):
            steps = reals / scales
        steps = np.clip(np.where(np.isnan(steps), np.float32(0), steps), -1073741824.0, 1073741824.0)
        whole = np.trunc(steps)
        rest = steps - whole
        whole = whole.astype(np.int64) + (rest >= 0.5) - (rest <= -0.5)
        ends = np.iinfo(self.dtype)
        return np.clip(whole + zeros, ends.min, ends.max).astype(self.dtype)

    def dequantize(self, elements: Any) -> np.ndarray:
        """The real numbers, float32, that elements of this quantized tensor stand for."""
        elements = np.asarray(elements)
        scales, zeros = self._parameters(elements.ndim)
        return (elements.astype(np.int64) - zeros).astype(np.float32) * scales

    def _parameters(self, rank: int) -> Tuple[np.ndarray, np.ndarray]:
        if self.quantization is None:
            raise TypeError(f"'{self.name}' is not quantized")
        return self.quantization._along(rank)

    def __repr__(self) -> str:
        return f"{self.name}: {self.dtype} {_show.shape_text(self.shape)}"


def _quantization(facts: Any) -> Optional[Quantization]:
    return facts and Quantization(tuple(facts[0]), tuple(facts[1]), facts[2])


def _specs(tensors: Any) -> Dict[str, TensorSpec]:
    return {key: TensorSpec(key, tensor, _lathe.dtype_name(dtype), shape, *map(_quantization, rest))
            for key, tensor, dtype, shape, *rest in tensors}


class Signature:
    """A signature of a SavedModel: `signature(x=array)` gives a dict of arrays by the keys of the outputs."""

    def __init__(self, session: Session, key: str, facts: Any) -> None:
        self._session = session
        self.name = key
        self.inputs = _specs(facts[0])
        self.outputs = _specs(facts[1])
        self.method_name: str = facts[2]
        self._call: Any = None

    def __call__(self, *args: Any, as_tensors: bool = False, **inputs: Any) -> Dict[str, Any]:
        if args:
            if len(args) > 1 or len(self.inputs) != 1 or inputs:
                raise TypeError(f"signature '{self.name}' takes its inputs by name: {', '.join(self.inputs)}")
            inputs = {next(iter(self.inputs)): args[0]}
        check_names(f"signature '{self.name}'", self.inputs, inputs)
        fetches = {key: spec.tensor for key, spec in self.outputs.items()}
        if as_tensors:
            return self._session.run(fetches, {self.inputs[k].tensor: v for k, v in inputs.items()}, as_tensors=True)
        if self._call is None:
            self._call = self._session.make_callable(fetches, [spec.tensor for spec in self.inputs.values()])
        return self._call(*[inputs[key] for key in self.inputs])

    def __repr__(self) -> str:
        inputs = ", ".join(map(repr, self.inputs.values()))
        outputs = ", ".join(map(repr, self.outputs.values()))
        return f"<lathe.Signature '{self.name}' ({inputs}) -> ({outputs})>"

    def _repr_html_(self) -> str:
        return _show.table(f"Signature {self.name}", ("", "name", "dtype", "shape"), _show.signature_rows(self.inputs, self.outputs))


def check_names(what: str, wanted: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    unknown = [k for k in given if k not in wanted]
    missing = [k for k in wanted if k not in given]
    if unknown:
        raise TypeError(f"{what} has no input '{unknown[0]}': its inputs are {', '.join(wanted)}")
    if missing:
        raise TypeError(f"{what} lacks input '{missing[0]}'")


class Signatures(Mapping):
    """The signatures of a model by key."""

    def __init__(self, signatures: Dict[str, Signature]) -> None:
        self._signatures = signatures

    def __getitem__(self, key: str) -> Signature:
        return self._signatures[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._signatures)

    def __len__(self) -> int:
        return len(self._signatures)

    def __repr__(self) -> str:
        return "{" + ", ".join(f"{k!r}: {s!r}" for k, s in self._signatures.items()) + "}"


class SavedModel:
    """A SavedModel that is loaded: `signatures`, and the `session` that holds its variables and tables."""

    def __init__(self, session: Session, name: str, signatures: Dict[str, Any]) -> None:
        self.session = session
        self._name = name
        self.signatures = Signatures({key: Signature(session, key, facts) for key, facts in signatures.items()})

    def __call__(self, *args: Any, **inputs: Any) -> Dict[str, Any]:
        """The signature serving_default, else the only one."""
        key = "serving_default" if "serving_default" in self.signatures or len(self.signatures) != 1 else next(iter(self.signatures))
        return self.signatures[key](*args, **inputs)

    def close(self) -> None:
        """Gives back variables and tables."""
        self.session.close()

    def __enter__(self) -> "SavedModel":
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<lathe.SavedModel '{self._name}' with signatures {', '.join(self.signatures)}>"

    def _repr_html_(self) -> str:
        return "".join(s._repr_html_() for s in self.signatures.values())


def load_saved_model(model: Any, tags: Union[str, Sequence[str]] = ("serve",), *, config: Any = None, threads: Optional[int] = None,
                     inter_op_threads: Optional[int] = None, cluster_mode: Optional[int] = None, cache_dir: Any = None,
                     dynamic: Optional[bool] = None, background: Optional[bool] = None, flags: Optional[str] = None) -> SavedModel:
    """Loads a SavedModel folder (or a keras model, where TensorFlow is loaded): variables are restored, tables initialised.

    `tags` are exactly those of the graph; the other arguments are those of lathe.Session.
    """
    given = dict(inter_op_threads=inter_op_threads, cluster_mode=cluster_mode, cache_dir=cache_dir, dynamic=dynamic, background=background,
                 flags=flags)
    options, _ = _options(config, threads, given)
    wanted = [tags] if isinstance(tags, str) else list(tags)
    if _tensorflow.is_model(model):
        with _tensorflow.saved(model) as folder:
            native, signatures = _lathe.load_saved_model(folder, wanted, options)
        name = type(model).__name__
    else:
        name = os.fspath(model)
        native, signatures = _lathe.load_saved_model(name, wanted, options)
    return SavedModel(Session._over(native, name), name, signatures)
