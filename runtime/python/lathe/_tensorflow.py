"""What is known of TensorFlow's Python objects. Nothing here imports TensorFlow: it is used where the program has loaded it."""
from __future__ import annotations

import contextlib
import sys
import tempfile
import traceback
from typing import Any, Dict, Iterator, List, Optional, Tuple


def loaded() -> Any:
    """The module, where it is imported to the end; else None."""
    tf = sys.modules.get("tensorflow")
    return tf if hasattr(tf, "compat") and hasattr(tf, "Graph") else None


def is_graph(x: Any) -> bool:
    tf = loaded()
    return tf is not None and isinstance(x, tf.Graph)


def is_model(x: Any) -> bool:
    """A keras model, or another object that TensorFlow saves as a SavedModel."""
    tf = loaded()
    if tf is None:
        return False
    keras = sys.modules.get("keras")
    if keras is not None and isinstance(x, keras.Model):
        return True
    return isinstance(x, tf.Module)


@contextlib.contextmanager
def saved(model: Any) -> Iterator[str]:
    """A folder with the model as a SavedModel, gone afterwards."""
    tf = loaded()
    with tempfile.TemporaryDirectory(prefix="lathe-") as folder:
        keras = sys.modules.get("keras")
        if keras is not None and isinstance(model, keras.Model) and hasattr(model, "export"):
            model.export(folder, verbose=False)
        else:
            tf.saved_model.save(model, folder)
        yield folder


def default_graph() -> Any:
    tf = loaded()
    return None if tf is None else tf.compat.v1.get_default_graph()


def element(x: Any) -> Any:
    """What a variable and the like stand for in a graph: their tensor."""
    as_element = getattr(x, "_as_graph_element", None)
    return as_element() if as_element is not None else x


def is_composite(x: Any) -> bool:
    tf = loaded()
    return tf is not None and isinstance(x, (tf.SparseTensor, tf.IndexedSlices, tf.RaggedTensor))


def parts(x: Any) -> Tuple[List[Any], Any]:
    """Tensors of a composite one, and what makes TensorFlow's value of theirs."""
    tf = loaded()
    if isinstance(x, tf.SparseTensor):
        return [x.indices, x.values, x.dense_shape], lambda v: tf.compat.v1.SparseTensorValue(*v)
    if isinstance(x, tf.IndexedSlices):
        tensors = [x.values, x.indices] + ([x.dense_shape] if x.dense_shape is not None else [])
        make_slices = sys.modules[type(x).__module__].IndexedSlicesValue  # which TensorFlow does not export
        return tensors, lambda v: make_slices(v[0], v[1], v[2] if len(v) > 2 else None)
    values, make = parts(x.values) if isinstance(x.values, tf.RaggedTensor) else ([x.values], lambda v: v[0])
    return values + [x.row_splits], lambda v: tf.compat.v1.ragged.RaggedTensorValue(make(v[:-1]), v[-1])


def part_values(x: Any, value: Any) -> List[Any]:
    """The values for parts(x) that a feed's value holds."""
    tf = loaded()
    if isinstance(x, tf.RaggedTensor):
        inner = part_values(x.values, value.values) if isinstance(x.values, tf.RaggedTensor) else [value.values]
        return inner + [value.row_splits]
    if isinstance(x, tf.SparseTensor):
        return [value.indices, value.values, value.dense_shape] if hasattr(value, "indices") else list(value)
    values = [value.values, value.indices, value.dense_shape] if hasattr(value, "indices") else list(value)
    return values if x.dense_shape is not None else values[:2]


def _base_session() -> Any:
    """TensorFlow's class of sessions, also where a program has put another in the place of tf.compat.v1.Session."""
    module = sys.modules.get("tensorflow.python.client.session")
    return getattr(module, "Session", None)


_both: Dict[type, type] = {}


def session_class(base: type) -> type:
    """`base` as one of TensorFlow's session interfaces: its queue runners and savers ask for that."""
    if loaded() is None or _base_session() is None:
        return base
    for c in _base_session().__mro__:
        if c.__name__ == "SessionInterface":
            if issubclass(base, c):
                return base
            if base not in _both:
                _both[base] = type(base.__name__, (base, c), {"__doc__": base.__doc__, "__module__": base.__module__})
            return _both[base]
    return base


def default_session(session: Any) -> Any:
    """A context in which `session` is TensorFlow's default one, for `tensor.eval()` and `operation.run()`."""
    return _base_session().as_default(session)


def session_handle(x: Any) -> Optional[Any]:
    """Where a fetch is a handle of a tensor that stays in the session: what makes TensorFlow's object of it, given the handle and
    the session. Else None."""
    op = getattr(x, "op", None)
    if getattr(op, "type", "") != "GetSessionHandle":
        return None
    handle_class = sys.modules["tensorflow.python.ops.session_ops"].TensorHandle
    dtype = op.inputs[0].dtype
    return lambda handle, session: handle_class(handle, dtype, session)


def handle_deleters(graph: Any, handles: List[str]) -> List[Tuple[Any, Any]]:
    """For each handle the placeholder that takes one, and the operation that deletes its tensor."""
    ops = sys.modules["tensorflow.python.ops.session_ops"]
    return [ops._get_handle_deleter(graph, key, handle) for key, handle in enumerate(handles)]


def allows(graph: Any, name: str, what: str) -> bool:
    """Whether a tensor may be fed, or a tensor or an operation fetched: programs and control flow prevent that for some."""
    prevented = graph._unfeedable_tensors if what == "feed" else graph._unfetchable_ops
    if not prevented:
        return True
    try:
        element = graph.as_graph_element(name)
    except (KeyError, ValueError):
        return True
    return graph.is_feedable(element) if what == "feed" else graph.is_fetchable(element)


def fed_handle(value: Any) -> Any:
    """The handle of a tensor that stays in the session, where that is what is fed; else the value."""
    module = sys.modules.get("tensorflow.python.ops.session_ops")
    return value.handle if module is not None and isinstance(value, module.TensorHandle) else value


def _code_of(error: BaseException) -> int:
    """The status code that TensorFlow makes of an exception."""
    code = getattr(error, "error_code", None)
    if isinstance(code, int):
        return code
    for kind, number in ((StopIteration, 11), ((TypeError, ValueError), 3), (MemoryError, 8), (NotImplementedError, 12)):
        if isinstance(error, kind):
            return number
    return 2


def call_function(token: str, arguments: List[Any], types: List[int], eager: bool) -> Tuple[int, str, List[Any]]:
    """Calls the function that TensorFlow's py_func and the like registered under a token. Gives a status code, its message, and the
    results as native tensors."""
    from . import _values  # this module is loaded before it
    module = sys.modules.get("tensorflow.python.ops.script_ops")
    registry = getattr(module, "_py_funcs", None)
    if registry is None or registry.get(token) is None:
        return 9, f"no function '{token}' is registered in this process", []
    try:
        values = [_values.to_result(t) for t in arguments]
        if eager:
            tf = loaded()
            # the registered object computes eagerly; its arguments have to be eager tensors, also in a program without eager execution
            with sys.modules["tensorflow.python.eager.context"].eager_mode():
                results = registry(token, None, [tf.constant(v) for v in values])
                if results is None:
                    results = []
                results = [r.numpy() for r in (results if isinstance(results, (list, tuple)) else [results])]
        else:
            results = registry(token, None, values)
            if not isinstance(results, (list, tuple)):
                results = [results]
        if not types:
            results = []  # what the function of a node without outputs gives is nobody's
        # copied: the function may go on changing what it gave
        return 0, "", [_values.to_native(r, _values.STRING if getattr(r, "dtype", None) is not None and r.dtype.kind in "OSU" else 0, True)
                       for r in results]
    except Exception as e:
        return _code_of(e), f"{type(e).__name__}: {e}\n{traceback.format_exc()}", []
