"""Graphs of any kind that a user may hold, as a session needs them."""
from __future__ import annotations

import os
from typing import Any, Dict, NamedTuple, Optional

from . import _lathe, _tensorflow


class Source(NamedTuple):
    """A graph: the bytes of a GraphDef, a SavedModel's folder, or TensorFlow's graph that may still grow."""

    graph: bytes = b""
    folder: Optional[str] = None
    tf_graph: Any = None
    name: str = ""
    facts: Optional[Dict[str, Any]] = None


def serialized(message: Any) -> bytes:
    """The GraphDef of a message: a GraphDef, or what holds one."""
    inner = getattr(message, "graph_def", None)
    if inner is not None and hasattr(inner, "SerializeToString"):
        message = inner
    return message.SerializeToString()


def source(graph: Any, tag: str = "") -> Source:
    if graph is None:
        graph = _tensorflow.default_graph()
        if graph is None:
            return Source()
    if isinstance(graph, (str, os.PathLike)):
        path = os.fspath(graph)
        if os.path.isdir(path):
            return Source(folder=path, name=path)
        if path.endswith(".so"):
            raise ValueError(f"'{path}' is a compiled module: use lathe.load")
        facts = _lathe.read_graph(path, tag)
        return Source(graph=facts["graph"], name=path, facts=facts)
    if isinstance(graph, (bytes, bytearray, memoryview)):
        facts = _lathe.read_graph(bytes(graph), tag)
        return Source(graph=facts["graph"], facts=facts)
    if _tensorflow.is_graph(graph):
        return Source(tf_graph=graph)
    if hasattr(graph, "SerializeToString") or hasattr(graph, "graph_def"):
        return Source(graph=serialized(graph))
    raise TypeError("expected a path, bytes, a GraphDef, a tf.Graph or a keras model, got " + type(graph).__name__)
