"""The compiler: models into object files, headers and shared objects."""
from __future__ import annotations

import json
import os
import sys
import tempfile
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from . import _graphs, _lathe, _show, _tensorflow

_SUFFIX = {"obj": ".o", "header": ".h", "so": ".so", "a": ".a", "asm": ".s", "llvm": ".ll", "ptx": ".ptx", "tflite": ".tflite"}


def cluster_compiler() -> int:
    """The address of the compiler that sessions use; 0 where its library is not installed."""
    from . import errors
    try:
        return _lathe.cluster_compiler()
    except errors.UnimplementedError:
        return 0


class Compiled:
    """What a compilation wrote: `files` by kind, and `report`, the facts that `lathe compile --json` prints."""

    def __init__(self, files: Dict[str, str], report: Dict[str, Any]) -> None:
        self.files = files
        self.report = report

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["report"][name]
        except KeyError:
            raise AttributeError(name) from None

    def __repr__(self) -> str:
        r = self.report
        if "kernels" not in r:
            return f"<lathe.Compiled {', '.join(self.files.values())}: {r['bytes'] / 1e6:.2f} MB>"
        facts = f"{r['kernels']} kernels, code {r['code_bytes'] / 1e3:.1f} KB, constants {r['constant_bytes'] / 1e6:.2f} MB"
        return f"<lathe.Compiled {', '.join(self.files.values())}: {facts}>"

    def _repr_html_(self) -> str:
        rows = list(self.files.items()) + [(k, v) for k, v in self.report.items() if not isinstance(v, (dict, list))]
        return _show.table("Compiled", ("", ""), rows)


def _shape(shape: Any) -> str:
    return shape if isinstance(shape, str) else "x".join("?" if d is None or d == -1 else str(d) for d in shape)


def _input_options(inputs: Any) -> List[Tuple[str, str]]:
    """Names; "NAME=SHAPE" texts; or a dict of shapes (texts as on the command line, or sequences in which None is any size)."""
    if inputs is None:
        return []
    if isinstance(inputs, Mapping):
        return [("input", name if shape is None else f"{name}={_shape(shape)}") for name, shape in inputs.items()]
    return [("input", name) for name in ([inputs] if isinstance(inputs, str) else inputs)]


def _entry(name: str, entry: Any) -> str:
    if isinstance(entry, str):
        return f"{name}={entry}"
    fetches, targets = entry
    return f"{name}={','.join(fetches)}" + ("/" + ",".join(targets) if targets else "")


def compile(model: Any, output: Any, *, emit: Union[str, Sequence[str]] = ("obj", "header"), inputs: Any = None,
            outputs: Optional[Iterable[str]] = None, entries: Optional[Mapping[str, Any]] = None, cpu: str = "x86-64-v3", threads: int = 1,
            signature: str = "", tag: str = "", class_name: str = "", symbol_prefix: str = "", weights: Any = None, precision: str = "f32",
            exact: bool = False, fuse: bool = True, keep_variables: bool = False, unknown_leading: bool = False, allow_host: bool = False,
            triple: str = "", backend: str = "", arch: Sequence[str] = (), cubin: Sequence[str] = (), profile: bool = False, quantize: str = "",
            calibrate: Any = None, io: str = "float", quantized_math: str = "tflite", observer: str = "minmax", max_error: Optional[float] = None,
            keep_faster: bool = False, quantize_report: Any = None, tune_cache: Any = None, max_memory: Optional[int] = None,
            max_fold_bytes: Optional[int] = None) -> Compiled:
    """Compiles a model ahead of time, as `lathe compile` does, and writes `output`.o, .h, .so, .a, .s, .ll, .ptx or .tflite.

    `model` is a path (GraphDef, MetaGraph, SavedModel folder), bytes, a GraphDef, a `tf.Graph` or a keras model. `inputs` are the
    tensors to feed: names, or a dict of shapes in which None is a size known at run time only; `outputs` those to fetch. `entries`
    makes several functions over one state: {"Train": (["loss:0"], ["train_step"])}. `calibrate` are inputs to quantize for: npz
    files, folders of them, dicts of arrays by input (one run each, or many along a dimension more), or several of these. The other
    arguments are the command line's options. Everything that is wrong with the model is in the one exception that is raised.
    """
    kinds = [emit] if isinstance(emit, str) else list(emit)
    kinds = [k for kind in kinds for k in kind.split(",")]
    prefix = os.fspath(output)
    if kinds == ["so"] and prefix.endswith(".so"):
        prefix = prefix[:-3]
    options = _input_options(inputs) + [("output", name) for name in ([outputs] if isinstance(outputs, str) else outputs or [])]
    options += [("entry", _entry(name, entry)) for name, entry in (entries or {}).items()]
    texts = {"cpu": cpu, "threads": str(threads), "signature": signature, "tag": tag, "class": class_name, "symbol-prefix": symbol_prefix,
             "weights": os.fspath(weights) if weights else "", "precision": precision, "triple": triple,
             "backend": backend, "arch": _joined(arch), "cubin": _joined(cubin), "quantize": quantize, "io": io, "quantized-math": quantized_math,
             "observer": observer, "max-error": "" if max_error is None else repr(float(max_error)),
             "quantize-report": os.fspath(quantize_report) if quantize_report else "",
             "tune-cache": os.fspath(tune_cache) if tune_cache else "", "max-memory": str(max_memory or ""),
             "max-fold-bytes": "" if max_fold_bytes is None else str(max_fold_bytes)}
    options += [(name, text) for name, text in texts.items() if text]
    flags = {"exact": exact, "no-fuse": not fuse, "keep-variables": keep_variables, "unknown-leading": unknown_leading,
             "allow-host": allow_host, "profile": profile, "keep-faster": keep_faster}
    options += [(name, "1") for name, flag in flags.items() if flag]

    with tempfile.TemporaryDirectory() as folder:
        options += [("calibrate", path) for path in _feeds(calibrate, folder)]
        report, warnings = _compiled(model, prefix, kinds, options)
    if warnings:
        import warnings as w
        w.warn(warnings, stacklevel=2)
    files = {kind: prefix + _SUFFIX[kind] for kind in kinds}
    if weights:
        files["weights"] = os.fspath(weights)
    return Compiled(files, json.loads(report))


def _joined(names: Union[str, Sequence[str]]) -> str:
    return names if isinstance(names, str) else ",".join(names)


def _feeds(calibrate: Any, folder: str) -> Iterator[str]:
    """The files and folders of `calibrate`; dicts of arrays are written to `folder`."""
    if calibrate is None:
        return
    if isinstance(calibrate, (str, os.PathLike, Mapping)):
        calibrate = [calibrate]
    for number, feed in enumerate(calibrate):
        if isinstance(feed, Mapping):
            path = os.path.join(folder, f"{number:06}.npz")
            np.savez(path, **{name: np.asarray(value) for name, value in feed.items()})
            yield path
        else:
            yield os.fspath(feed)


def _compiled(model: Any, prefix: str, kinds: Sequence[str], options: List[Tuple[str, str]]) -> Tuple[str, str]:
    """Report and warnings."""
    if sys.stderr.isatty():
        print(f"compiling {prefix} ...", end="", file=sys.stderr, flush=True)
    try:
        if _tensorflow.is_model(model):
            with _tensorflow.saved(model) as folder:
                return _lathe.compile_files(folder, prefix, ",".join(kinds), options)
        return _lathe.compile_files(_source(model), prefix, ",".join(kinds), options)
    finally:
        if sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def _source(model: Any) -> Any:
    """A path, or the bytes of a graph."""
    if isinstance(model, (str, os.PathLike)):
        return os.fspath(model)
    if isinstance(model, (bytes, bytearray, memoryview)):
        return bytes(model)
    if _tensorflow.is_graph(model):
        return model.as_graph_def().SerializeToString()
    if hasattr(model, "SerializeToString") or hasattr(model, "graph_def"):
        return _graphs.serialized(model)
    raise TypeError("expected a path, bytes, a GraphDef, a tf.Graph or a keras model, got " + type(model).__name__)
