"""lathe.Session: runs any part of a graph by feeds and fetches, as tf.compat.v1.Session does."""
from __future__ import annotations

import contextlib
import os
import threading
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from . import _fetches, _graphs, _lathe, _show, _tensorflow, _values, errors
from .compiler import cluster_compiler


class DeviceAttributes(NamedTuple):
    """A device of a session."""

    name: str
    device_type: str
    memory_limit_bytes: int
    incarnation: int


class NodeStats(NamedTuple):
    """When a node ran; microseconds since the step's start."""

    node: str
    op: str
    device: str
    start_micros: int
    elapsed_nanos: int
    thread: int


class RunOptions:
    """How one run goes: a timeout in milliseconds (0: none), and a trace level (0: no trace)."""

    NO_TRACE, SOFTWARE_TRACE, HARDWARE_TRACE, FULL_TRACE = range(4)

    def __init__(self, trace_level: int = 0, timeout_in_ms: int = 0) -> None:
        self.trace_level = trace_level
        self.timeout_in_ms = timeout_in_ms


class RunMetadata:
    """What a traced run tells: `step_stats`, in the order in which nodes ended."""

    def __init__(self) -> None:
        self.step_stats: List[NodeStats] = []


class Graph:
    """The graph of a session: its operations, and its bytes."""

    def __init__(self, native: _lathe.Session) -> None:
        self._native = native

    @property
    def operations(self) -> List[Tuple[str, str]]:
        """Name and op of every node."""
        return self._native.nodes()

    def SerializeToString(self) -> bytes:
        """The bytes of a GraphDef; another session takes the object itself."""
        return self._native.graph_bytes()

    def __repr__(self) -> str:
        return f"<lathe.Graph with {len(self.operations)} operations>"

    def _repr_html_(self) -> str:
        return _show.graph_html("Graph", self._native)


def _options(config: Any, threads: Optional[int], given: Dict[str, Any]) -> Tuple[Dict[str, Any], int]:
    """The native session's options and the timeout of its runs, from TensorFlow's ConfigProto and keyword arguments."""
    options: Dict[str, Any] = {}
    timeout = 0
    if config is not None:
        if not hasattr(config, "intra_op_parallelism_threads"):
            raise TypeError(f"config must be a ConfigProto, not {type(config).__name__}")
        options["inter_op_threads"] = int(getattr(config, "inter_op_parallelism_threads", 0) or 0)
        threads = threads or int(getattr(config, "intra_op_parallelism_threads", 0) or 0)
        count = getattr(config, "device_count", None) or {}
        options["cpu_devices"] = max(1, int(count.get("CPU", 1)))
        visible = str(getattr(getattr(config, "gpu_options", None), "visible_device_list", "") or "")
        wanted = max(0, int(count.get("GPU", 0)))
        options["gpus"] = ([int(n) for n in visible.split(",") if n.strip()] or list(range(wanted)))[:wanted]
        options["soft_placement"] = bool(getattr(config, "allow_soft_placement", True))
        timeout = int(getattr(config, "operation_timeout_in_ms", 0) or 0)
    options.update({k: v for k, v in given.items() if v is not None})
    options["threads"] = threads or len(os.sched_getaffinity(0))
    if "cache_dir" in options:
        options["cache_dir"] = os.fspath(options["cache_dir"])
    options["compiler"] = cluster_compiler()
    return options, timeout


def _arguments(args: Tuple[Any, ...], graph: Any, target: str, config: Any) -> Tuple[Any, str, Any]:
    """TensorFlow's order of arguments (target, graph, config), and ours, in which a graph alone comes first."""
    rest = list(args)
    if rest and isinstance(rest[0], str) and (rest[0] == "" or "://" in rest[0] or rest[0] == "local"):
        target = rest.pop(0)
        target = "" if target == "local" else target
    if rest and graph is None:
        graph = rest.pop(0)
    if rest and config is None:
        config = rest.pop(0)
    if rest:
        raise TypeError(f"too many arguments: {rest!r}")
    return graph, target, config


class Session:
    """Runs a graph, and keeps its variables, queues and tables between runs.

    `graph` is a path (GraphDef as .pb or .pbtxt, MetaGraph, or SavedModel folder, whose variables are then restored), bytes, a
    GraphDef, or, where TensorFlow is loaded, a `tf.Graph` (which may still grow) or a keras model; None is TensorFlow's default
    graph. Arguments may also come in TensorFlow's order: target, graph, config.

    `threads` are those inside of a compiled cluster (0: all processors), `inter_op_threads` those that run nodes. `cluster_mode`
    is 0 to compile what has no host kernel, 1 what is worth it, 2 node by node; `cache_dir` keeps compiled clusters on disk;
    `dynamic` makes a new leading size no recompile; `background` lets host kernels run until a cluster is compiled; `flags` are
    those of LATHE_FLAGS. `gpus` are the NVIDIA devices, by the driver's numbers, that are /device:GPU:0 and so on: what no device
    was given goes to the first where it can. `config` may be TensorFlow's ConfigProto.
    """

    def __new__(cls, *args: Any, graph: Any = None, **kwargs: Any) -> "Session":
        return object.__new__(_tensorflow.session_class(cls))

    def __init__(self, *args: Any, graph: Any = None, target: str = "", config: Any = None, tag: str = "", threads: Optional[int] = None,
                 inter_op_threads: Optional[int] = None, cluster_mode: Optional[int] = None, min_cluster_size: Optional[int] = None,
                 cache_dir: Any = None, dynamic: Optional[bool] = None, background: Optional[bool] = None,
                 flags: Optional[str] = None, gpus: Optional[Sequence[int]] = None) -> None:
        self._native: Any = None
        graph, target, config = _arguments(args, graph, target, config)
        given = dict(target=target, inter_op_threads=inter_op_threads, cluster_mode=cluster_mode, min_cluster_size=min_cluster_size,
                     cache_dir=cache_dir, dynamic=dynamic, background=background, flags=flags,
                     gpus=None if gpus is None else list(gpus))
        options, self._timeout = _options(config, threads, given)
        self._contexts: List[contextlib.ExitStack] = []
        self._tf_graph: Any = None
        self._version = self._synced = 0
        self._growing = threading.Lock()
        self._forget()
        with contextlib.ExitStack() as stack:
            if _tensorflow.is_model(graph):
                graph = stack.enter_context(_tensorflow.saved(graph))
            found = _graphs.source(graph, tag)
            self._name = found.name
            self._facts = found.facts
            if found.folder is not None:
                self._native, _ = _lathe.load_saved_model(found.folder, [tag or "serve"], options)
                return
        self._native = _lathe.Session(options)
        if found.tf_graph is not None:
            self._tf_graph = found.tf_graph
        elif found.graph:
            self._native.extend(found.graph)

    @classmethod
    def _over(cls, native: _lathe.Session, name: str) -> "Session":
        """A session on a native one that has its graph."""
        session = object.__new__(_tensorflow.session_class(cls) if _tensorflow.loaded() else cls)
        session._native, session._name, session._timeout = native, name, 0
        session._contexts, session._tf_graph, session._version, session._facts = [], None, 0, None
        session._growing = threading.Lock()
        session._forget()
        return session

    def _forget(self) -> None:
        self._nodes: Dict[str, Any] = {}
        self._dead_handles: List[str] = getattr(self, "_dead_handles", [])
        self._plans: Dict[Any, _fetches.Plan] = {}

    # graph

    @property
    def graph(self) -> Any:
        """TensorFlow's graph where the session has one, else what the session knows of its own."""
        return self._tf_graph if self._tf_graph is not None else Graph(self._open())

    @property
    def graph_def(self) -> Any:
        """TensorFlow's GraphDef where the session has a `tf.Graph`, else the bytes of one."""
        return self._tf_graph.as_graph_def() if self._tf_graph is not None else self._open().graph_bytes()

    @property
    def sess_str(self) -> str:
        """The target, as TensorFlow has it: "" for this process."""
        return ""

    def extend(self, graph: Any) -> None:
        """Adds the nodes and functions of a GraphDef (a message, bytes, or a path)."""
        found = _graphs.source(graph)
        if found.folder is not None or found.tf_graph is not None:
            raise TypeError("expected a GraphDef, its bytes or a file of it")
        self._open().extend(found.graph)
        self._forget()

    def restore(self, prefix: Any = None) -> None:
        """Restores variables from a checkpoint by the MetaGraph's own restore op; without a prefix from the one beside the file."""
        facts = self._facts or {}
        prefix = prefix or facts.get("checkpoint")
        if not facts.get("restore_op"):
            raise errors._make(errors.FAILED_PRECONDITION, "the graph names no operation that restores a checkpoint")
        if not prefix:
            raise errors._make(errors.NOT_FOUND, "no checkpoint lies beside the graph's file")
        self.run(facts["restore_op"], {facts["filename_tensor"]: os.fspath(prefix)})

    def _open(self) -> Any:
        if self._native is None:
            raise RuntimeError("Attempted to use a closed Session.")
        return self._native

    def _sync(self) -> Any:
        """The native session, with what TensorFlow's graph has gained since."""
        native = self._open()
        if self._tf_graph is None or self._tf_graph.version == self._version:
            if self._tf_graph is not None and not self._version:
                raise RuntimeError("The Session graph is empty. Add operations to the graph before calling run().")
            return native
        with self._growing:  # queue runners start many threads at once
            version = self._tf_graph.version
            if version != self._version:
                added = self._tf_graph.as_graph_def()
                count = len(added.node)
                del added.node[:self._synced]  # in the order in which they were made
                native.extend(added.SerializeToString())
                self._version, self._synced = version, count
                self._forget()
        return native

    # names

    def _node(self, name: str) -> Any:
        node = self._nodes.get(name)
        if node is None:
            node = self._open().node(name)
            if node is not None:
                self._nodes[name] = node
        return node

    def _name_of(self, x: Any, what: str) -> str:
        if isinstance(x, bytes):
            x = x.decode()
        if isinstance(x, str):
            return x
        x = _tensorflow.element(x)
        name = getattr(x, "name", None)
        if not isinstance(name, str):
            raise TypeError(f"{what} {x!r} is of type {type(x).__name__}: expected a name, or an object with a name")
        theirs = getattr(x, "graph", None)
        if self._tf_graph is not None and theirs is not None and theirs is not self._tf_graph:
            raise ValueError(f"{what} {x!r} is not an element of this session's graph")
        return name

    def _tensor(self, x: Any, what: str) -> str:
        """The tensor that a name means: "x" is "x:0"."""
        name = self._name_of(x, what)
        node, _, port = name.partition(":")
        known = self._node(node)
        if known is None:
            raise ValueError(f"{what} '{name}': the graph has no operation '{node}'")
        index = int(port) if port.isdigit() else 0 if not port else -1
        if not 0 <= index < len(known[2]):
            raise ValueError(f"{what} '{name}': operation '{node}' ({known[0]}) has {len(known[2])} outputs")
        name = f"{node}:{index}"
        if self._tf_graph is not None and not _tensorflow.allows(self._tf_graph, name, what):
            raise ValueError(f"{what} '{name}': TensorFlow's graph prevents that")
        return name

    def _leaf(self, x: Any) -> Tuple[str, Any, Any]:
        if _tensorflow.is_composite(x):
            tensors, join = _tensorflow.parts(x)
            return "tensor", [self._tensor(t, "fetch") for t in tensors], join
        name = self._name_of(x, "fetch")
        if ":" in name:
            handle = _tensorflow.session_handle(x)
            join = None if handle is None else lambda values: handle(values[0], self)
            return "tensor", [self._tensor(name, "fetch")], join
        if self._node(name) is None:
            raise ValueError(f"fetch '{name}': the graph has no operation '{name}'")
        if self._tf_graph is not None and not _tensorflow.allows(self._tf_graph, name, "fetch"):
            raise ValueError(f"fetch '{name}': TensorFlow's graph prevents that")
        return "operation", name, None

    def _plan(self, fetches: Any) -> _fetches.Plan:
        simple = type(fetches) is str or (type(fetches) is tuple and all(type(f) is str for f in fetches))
        plan = self._plans.get(fetches) if simple else None
        if plan is None:
            plan = _fetches.Planner(self._leaf).plan(fetches)
            if simple:
                self._plans[fetches] = plan
        return plan

    # feeds

    def _value(self, tensor: str, value: Any) -> Any:
        node, _, port = tensor.partition(":")
        op, _, types, shape = self._node(node)
        if _tensorflow.loaded() is not None:
            handle = _tensorflow.fed_handle(value)
            if handle is not value:
                value = handle if types[int(port)] == _values.STRING else value.eval()
        if hasattr(value, "_as_graph_element") or hasattr(value, "op") and hasattr(value, "graph") and not hasattr(value, "numpy"):
            raise TypeError(f"the value fed for '{tensor}' is itself a tensor of a graph: {value!r}")
        try:
            native = _values.to_native(value, types[int(port)])
        except (TypeError, ValueError, OverflowError) as e:
            kind = TypeError if isinstance(e, OverflowError) and isinstance(value, int) else type(e)  # as TensorFlow
            raise kind(f"cannot feed '{tensor}' ({_values.dtype_name(types[int(port)])}): {e}") from None
        if port == "0" and not _values.compatible(shape, native.shape):
            shown = "(" + ", ".join("?" if d < 0 else str(d) for d in shape) + ")"
            raise ValueError(f"cannot feed a value of shape {native.shape} for tensor '{tensor}', which has shape {shown}")
        return native

    def _feed_names(self, feeds: Optional[Sequence[Any]]) -> List[str]:
        """The tensors of feeds; composite ones are several."""
        names: List[str] = []
        for x in feeds or []:
            names += [self._tensor(t, "feed") for t in (_tensorflow.parts(x)[0] if _tensorflow.is_composite(x) else [x])]
        return names

    def _feeds(self, feed_dict: Optional[Mapping[Any, Any]]) -> Tuple[List[str], List[Any]]:
        if feed_dict is None:
            return [], []
        if not hasattr(feed_dict, "items"):
            raise TypeError(f"expected a dict of feeds, got {type(feed_dict).__name__}")
        return self._fed(feed_dict.items())

    def _fed(self, feeds: Any) -> Tuple[List[str], List[Any]]:
        """The tensors and native values of pairs of feeds and values."""
        names: List[str] = []
        values: List[Any] = []

        def add(key: Any, value: Any) -> None:
            if isinstance(key, (tuple, list)) and not hasattr(key, "name"):
                if len(key) != len(value):
                    raise ValueError(f"a feed of {len(key)} tensors has {len(value)} values")
                for k, v in zip(key, value):
                    add(k, v)
            elif _tensorflow.is_composite(key):
                for k, v in zip(_tensorflow.parts(key)[0], _tensorflow.part_values(key, value)):
                    add(k, v)
            else:
                name = self._tensor(key, "feed")
                if name in names:
                    raise ValueError(f"tensor '{name}' is fed twice")
                names.append(name)
                values.append(self._value(name, value))

        for key, value in feeds:
            add(key, value)
        return names, values

    # runs

    @contextlib.contextmanager
    def _noting_op(self) -> Any:
        try:
            yield
        except errors.OpError as e:
            if self._tf_graph is not None and e.node:
                with contextlib.suppress(KeyError, ValueError):
                    e._op = self._tf_graph.get_operation_by_name(e.node)
                    e._node_def = e._op.node_def
            raise

    def run(self, fetches: Any, feed_dict: Optional[Mapping[Any, Any]] = None, options: Any = None, run_metadata: Any = None, *,
            as_tensors: bool = False) -> Any:
        """The values of `fetches` in the same structure: lists, tuples, dicts and their like of tensors and operations, given by
        name ("x:0" a tensor, "x" an operation, whose value is None) or as objects with a name.

        `feed_dict` replaces tensors by values. Values are arrays, elements of their own for tensors without dimensions; with
        `as_tensors` they are lathe.Tensor, which share memory that arrays would have to copy.
        """
        self._sync()
        names, values = self._feeds(feed_dict)
        return self._run(fetches, names, values, options, run_metadata, as_tensors)

    def _run(self, fetches: Any, names: List[str], values: List[Any], options: Any, run_metadata: Any, as_tensors: bool) -> Any:
        self._sync()
        return self._run_plan(self._plan(fetches), names, values, options, run_metadata, as_tensors)

    def _run_plan(self, plan: _fetches.Plan, names: List[str], values: List[Any], options: Any, run_metadata: Any, as_tensors: bool) -> Any:
        native = self._open()
        if not plan.fetches and not plan.targets:
            return plan.build(())
        if options is not None and not hasattr(options, "timeout_in_ms"):
            raise TypeError(f"options must be RunOptions, not {type(options).__name__}")
        self._delete_dead_handles()
        timeout = int(getattr(options, "timeout_in_ms", 0) or 0) or self._timeout
        trace = int(getattr(options, "trace_level", 0) or 0)
        with self._noting_op():
            outputs, stats = native.run(names, values, plan.fetches, plan.targets, timeout, trace, as_tensors)
        if run_metadata is not None:
            _note_stats(run_metadata, stats)
        results = [(_values.Tensor if as_tensors else _values.to_result)(t) for t in outputs]
        if names and not as_tensors:  # what was fed comes back as an array, whatever its rank
            results = [np.asarray(r) if f in names and isinstance(r, np.generic) else r for f, r in zip(plan.fetches, results)]
        return plan.build(results)

    def _register_dead_handle(self, handle: str) -> None:
        """TensorFlow's objects of tensors that stay in a session call this at their end, which may be in the midst of anything."""
        self._dead_handles.append(handle)

    def _delete_dead_handles(self) -> None:
        if len(self._dead_handles) < 10 or self._tf_graph is None or self._tf_graph.finalized:
            return
        dead, self._dead_handles = self._dead_handles, []
        deleters = _tensorflow.handle_deleters(self._tf_graph, dead)
        self.run([deleter for _, deleter in deleters], {holder: handle for (holder, _), handle in zip(deleters, dead)})

    def make_callable(self, fetches: Any, feed_list: Optional[Sequence[Any]] = None, accept_options: bool = False, *,
                      as_tensors: bool = False) -> Callable[..., Any]:
        """A function of the values of `feed_list` that gives those of `fetches`; prepared once."""
        self._sync()
        plan = self._plan(fetches)
        keys = [f if _tensorflow.is_composite(f) else self._tensor(f, "feed") for f in feed_list or []]
        names = [k for k in keys if isinstance(k, str)]
        if accept_options or len(names) < len(keys):
            def with_options(*values: Any, options: Any = None, run_metadata: Any = None) -> Any:
                names, tensors = self._fed(zip(keys, values))
                return self._run(fetches, names, tensors, options, run_metadata, as_tensors)
            return with_options
        return _Callable(self, plan, names, as_tensors)

    def partial_run_setup(self, fetches: Any, feeds: Optional[Sequence[Any]] = None) -> str:
        """Starts a run in parts, over these fetches and feeds; the handle for partial_run."""
        native = self._sync()
        plan = self._plan(fetches)
        return native.partial_setup(self._feed_names(feeds), plan.fetches, plan.targets)

    def partial_run(self, handle: str, fetches: Any, feed_dict: Optional[Mapping[Any, Any]] = None) -> Any:
        """Goes on with a run in parts: gives some of its feeds, takes some of its fetches."""
        native = self._open()
        plan = self._plan(fetches)
        names, values = self._feeds(feed_dict)
        with self._noting_op():
            outputs = native.partial_run(handle, names, values, plan.fetches)
        return plan.build([_values.to_result(t) for t in outputs])

    def list_devices(self) -> List[DeviceAttributes]:
        """The devices of the session."""
        return [DeviceAttributes(name, kind, 0, incarnation) for name, kind, incarnation in self._open().devices()]

    # life

    def close(self) -> None:
        """Cancels what runs, waits for it, and gives back the session's state. Closing twice is fine."""
        native, self._native = self._native, None
        if native is not None:
            native.close()

    def as_default(self) -> Any:
        """A context in which this is TensorFlow's default session, where TensorFlow is loaded."""
        stack = contextlib.ExitStack()
        if self._tf_graph is not None:
            stack.enter_context(self._tf_graph.as_default())
            stack.enter_context(_tensorflow.default_session(self))
        return stack

    def __enter__(self) -> "Session":
        stack = contextlib.ExitStack()
        stack.enter_context(self.as_default())
        self._contexts.append(stack)
        return self

    def __exit__(self, *exc: Any) -> None:
        self._contexts.pop().close()
        self.close()

    def __del__(self) -> None:
        native = getattr(self, "_native", None)
        if native is not None:
            with contextlib.suppress(Exception):
                native.close()

    def __repr__(self) -> str:
        if self._native is None:
            return "<lathe.Session, closed>"
        where = f" on '{self._name}'" if self._name else " on a tf.Graph" if self._tf_graph is not None else ""
        return f"<lathe.Session{where}>"

    def _repr_html_(self) -> str:
        return _show.graph_html(repr(self), self._sync() if self._native is not None else None)


class InteractiveSession(Session):
    """A session that is TensorFlow's default one from its construction until it is closed."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._default = contextlib.ExitStack()
        # sessions of this kind may be closed in any order
        for context in (self._tf_graph.as_default(), _tensorflow.default_session(self)) if self._tf_graph is not None else ():
            context.enforce_nesting = False
            self._default.enter_context(context)

    def close(self) -> None:
        """As Session.close; another session, or none, is the default one again."""
        super().close()
        self._default.close()


class _Callable:
    """What make_callable gives."""

    def __init__(self, session: Session, plan: _fetches.Plan, names: List[str], as_tensors: bool) -> None:
        self._session = session
        self._plan = plan
        self._build = plan.build
        self._names = names
        self._as_tensors = as_tensors
        self._native = session._open()
        self._handle = self._native.make_callable(names, plan.fetches, plan.targets, session._timeout) if plan.fetches or plan.targets else 0

    def __call__(self, *values: Any) -> Any:
        native = self._session._open()
        if not self._handle:
            return self._build(())
        if len(values) != len(self._names):  # as TensorFlow's: what has no value is not fed
            pairs = list(zip(self._names, values))
            return self._session._run_plan(self._plan, [n for n, _ in pairs], [self._session._value(n, v) for n, v in pairs], None, None,
                                           self._as_tensors)
        feeds = [self._session._value(n, v) for n, v in zip(self._names, values)]
        with self._session._noting_op():
            outputs = native.run_callable(self._handle, feeds, self._as_tensors)
        return self._build([(_values.Tensor if self._as_tensors else _values.to_result)(t) for t in outputs])

    def __del__(self) -> None:
        if getattr(self, "_handle", 0):
            with contextlib.suppress(Exception):
                self._native.release_callable(self._handle)


def _note_stats(metadata: Any, stats: Sequence[Tuple[Any, ...]]) -> None:
    """Into ours, or TensorFlow's RunMetadata."""
    if isinstance(metadata, RunMetadata):
        metadata.step_stats = [NodeStats(*s) for s in stats]
        return
    devices: Dict[str, Any] = {}
    for node, op, device, start, elapsed, thread in stats:
        if device not in devices:
            devices[device] = metadata.step_stats.dev_stats.add(device=device)
        devices[device].node_stats.add(node_name=node, all_start_micros=start, op_end_rel_micros=elapsed // 1000,
                                       all_end_rel_micros=elapsed // 1000, timeline_label=f"{node} = {op}()", thread_id=thread % (1 << 32))
