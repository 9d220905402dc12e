"""Structures of fetches: what to ask a session for, and how its answers become the same structure again."""
from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Callable, Dict, List, Sequence, Tuple

Build = Callable[[Sequence[Any]], Any]


class Plan:
    """Tensors to fetch and operations to run, each once, and `build`, which takes the values of the tensors."""

    __slots__ = ("fetches", "targets", "build")

    def __init__(self, fetches: List[str], targets: List[str], build: Build) -> None:
        self.fetches = fetches
        self.targets = targets
        self.build = build


class Planner:
    """Makes plans. `leaf` turns an element into ("tensor", names, join) or ("operation", name, None)."""

    def __init__(self, leaf: Callable[[Any], Tuple[str, Any, Any]]) -> None:
        self._leaf = leaf

    def plan(self, fetches: Any) -> Plan:
        tensors: Dict[str, int] = {}
        targets: Dict[str, None] = {}
        build = self._visit(fetches, tensors, targets)
        return Plan(list(tensors), list(targets), build)

    def _visit(self, fetch: Any, tensors: Dict[str, int], targets: Dict[str, None]) -> Build:
        if fetch is None:
            raise TypeError("a fetch cannot be None")
        if isinstance(fetch, (list, tuple)):
            parts = [self._visit(f, tensors, targets) for f in fetch]
            if isinstance(fetch, list):
                return lambda values: [p(values) for p in parts]
            if hasattr(fetch, "_fields"):
                make = type(fetch)
                return lambda values: make(*[p(values) for p in parts])
            return lambda values: tuple(p(values) for p in parts)
        if isinstance(fetch, Mapping):
            return self._mapping(fetch, tensors, targets)
        cls = type(fetch)
        if hasattr(cls, "__attrs_attrs__") and not hasattr(fetch, "name"):
            names = [a.name for a in cls.__attrs_attrs__]
            return self._fields(fetch, names, cls, tensors, targets)
        if dataclasses.is_dataclass(fetch) and not isinstance(fetch, type) and not hasattr(fetch, "name"):
            return self._fields(fetch, [f.name for f in dataclasses.fields(fetch)], cls, tensors, targets)
        kind, names, join = self._leaf(fetch)
        if kind == "operation":
            targets[names] = None
            return lambda values: None
        places = [tensors.setdefault(n, len(tensors)) for n in names]
        if join is None:
            place = places[0]
            return lambda values: values[place]
        return lambda values: join([values[i] for i in places])

    def _mapping(self, fetch: Any, tensors: Dict[str, int], targets: Dict[str, None]) -> Build:
        keys = list(fetch)
        parts = [self._visit(fetch[k], tensors, targets) for k in keys]

        def build(values: Sequence[Any]) -> Any:
            items = [(k, p(values)) for k, p in zip(keys, parts)]
            factory = getattr(fetch, "default_factory", False)
            if factory is not False:  # a defaultdict
                return type(fetch)(factory, items)
            try:
                return type(fetch)(items)
            except TypeError:
                return dict(items)

        return build

    def _fields(self, fetch: Any, names: List[str], cls: type, tensors: Dict[str, int], targets: Dict[str, None]) -> Build:
        parts = [self._visit(getattr(fetch, n), tensors, targets) for n in names]
        return lambda values: cls(*[p(values) for p in parts])
