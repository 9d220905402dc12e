"""What is known of TensorFlow's Python objects. Nothing here imports TensorFlow: it is used where the program has loaded it."""
from __future__ import annotations

import contextlib
import sys
import tempfile
from typing import Any, Iterator, List, Optional, Tuple


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
        return tensors, lambda v: tf.compat.v1.IndexedSlicesValue(v[0], v[1], v[2] if len(v) > 2 else None)
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


_both: Optional[type] = None


def session_class(base: type) -> type:
    """`base` as one of TensorFlow's session interfaces: its queue runners and savers ask for that."""
    global _both
    tf = loaded()
    if tf is None:
        return base
    if _both is None:
        for c in tf.compat.v1.Session.__mro__:
            if c.__name__ == "SessionInterface":
                _both = type("Session", (base, c), {"__doc__": base.__doc__, "__module__": base.__module__})
                break
        else:
            return base
    return _both


def default_session(session: Any) -> Any:
    """A context in which `session` is TensorFlow's default one, for `tensor.eval()` and `operation.run()`."""
    return loaded().compat.v1.Session.as_default(session)
