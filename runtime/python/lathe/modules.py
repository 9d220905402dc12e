"""Models compiled to shared objects, as functions of arrays."""
from __future__ import annotations

import os
from typing import Any, Dict, List, Optional, Sequence

import numpy as np

from . import _lathe, _show, _values
from .models import TensorSpec, _specs, check_names


def _is_real(value: Any) -> bool:
    dtype = getattr(value, "dtype", None)
    return "float" in str(np.asarray(value).dtype if dtype is None else dtype)


class Entry:
    """One function of a module: `entry(x=array)` gives a dict of arrays by the names of the outputs."""

    def __init__(self, native: _lathe.Session, module: str, facts: Any) -> None:
        name, inputs, outputs = facts
        self._native = native
        self._module = module
        self.name: str = name
        self.inputs: Dict[str, TensorSpec] = _specs(inputs)
        self.outputs: Dict[str, TensorSpec] = _specs(outputs)
        self._numbers = {key: dtype for key, _, dtype, *_ in inputs}

    def __call__(self, *args: Any, as_tensors: bool = False, **inputs: Any) -> Dict[str, Any]:
        if args:
            if len(args) != len(self.inputs) or inputs:
                raise TypeError(f"'{self.name}' takes {len(self.inputs)} inputs, by name or all in order: {', '.join(self.inputs)}")
            inputs = dict(zip(self.inputs, args))
        check_names(f"'{self.name}'", self.inputs, inputs)
        names, values = list(inputs), []
        for key, value in inputs.items():
            if self.inputs[key].quantization and _is_real(value):
                raise TypeError(f"cannot feed '{key}': it takes {self.inputs[key].dtype} of a scale, and these are floats; "
                                f".inputs['{key}'].quantize(values) makes elements of them")
            try:
                values.append(_values.to_native(value, self._numbers[key]))
            except (TypeError, ValueError, OverflowError) as e:
                raise type(e)(f"cannot feed '{key}' ({self.inputs[key].dtype}): {e}") from None
        outputs, _ = self._native.run(names, values, list(self.outputs), [self.name], 0, 0, as_tensors)
        make = _values.Tensor if as_tensors else _values.to_result
        return {key: make(t) for key, t in zip(self.outputs, outputs)}

    def __repr__(self) -> str:
        inputs = ", ".join(map(repr, self.inputs.values()))
        outputs = ", ".join(map(repr, self.outputs.values()))
        return f"<lathe.Entry '{self.name}' ({inputs}) -> ({outputs})>"

    def _repr_html_(self) -> str:
        return _show.table(f"{self._module}.{self.name}", ("", "name", "dtype", "shape"), _show.signature_rows(self.inputs, self.outputs))


class Module:
    """A compiled module with its variables. Calls the only entry, or "main"; others are attributes of `entries`."""

    def __init__(self, path: str, native: _lathe.Session, facts: Dict[str, Any]) -> None:
        self._path = path
        self._native = native
        self.name: str = facts["name"]
        self.producer: str = facts["producer"]
        self.target: str = facts["target"]
        self.constants_size: int = facts["constants_size"]
        self.entries: Dict[str, Entry] = {e[0]: Entry(native, self.name, e) for e in facts["entries"]}
        self.variables: Dict[str, TensorSpec] = _specs(facts["variables"])

    def _main(self) -> Entry:
        if len(self.entries) == 1:
            return next(iter(self.entries.values()))
        if "main" in self.entries:
            return self.entries["main"]
        raise TypeError(f"module '{self.name}' has several entries: {', '.join(self.entries)}")

    @property
    def inputs(self) -> Dict[str, TensorSpec]:
        return self._main().inputs

    @property
    def outputs(self) -> Dict[str, TensorSpec]:
        return self._main().outputs

    def __call__(self, *args: Any, **inputs: Any) -> Dict[str, Any]:
        return self._main()(*args, **inputs)

    def __getitem__(self, entry: str) -> Entry:
        return self.entries[entry]

    def __repr__(self) -> str:
        return f"<lathe.Module '{self.name}' from '{self._path}' for {self.target}: {', '.join(map(repr, self.entries.values()))}>"

    def _repr_html_(self) -> str:
        return "".join(e._repr_html_() for e in self.entries.values())


def load(path: Any, *, weights: Any = "", threads: int = 1) -> Module:
    """Loads a shared object made by lathe.compile(..., emit="so") or `lathe compile --emit so`.

    `weights` is the file of a module compiled with its weights apart. `threads` is how many run one call. The object is code:
    load what you trust.
    """
    path = os.fspath(path)
    native, facts = _lathe.open_module(path, os.fspath(weights), threads)
    return Module(path, native, facts)
