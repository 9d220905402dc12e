"""Graphs of tf_fuzz.py made from conformance cases: another element type throughout, other values. They reach operations that
tf_fuzz_ops.py does not draw; what is fed for indices and sizes stays, so that TensorFlow accepts most of them."""
import os
import sys

import numpy as np
import tensorflow as tf

import tf_fuzz
import tf_fuzz_graphs as graphs

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'conform'))
import cases as corpus  # noqa: E402

tf1 = tf.compat.v1
NUMERIC = {t.name: t for t in graphs.KIND_OF}
# what is drawn anew each time, or kept from run to run, says nothing about a second run
UNSTEADY = ('Random', 'Multinomial', 'Variable', 'Assign', 'Dataset', 'Iterator', 'Queue', 'Stack', 'TensorArray', 'Barrier', 'Print', 'Table',
            'Stateful', 'Py', 'File', 'PoolGrad', 'Summary', 'Mutex', 'Stage', 'Accumulator')


class Source:
    """A conformance case of one step that feeds and gives numbers, and may be changed."""

    def __init__(self, case):
        self.key, step, dtypes = case.key, case.meta['steps'][0], case.meta['dtypes']
        self.graph = tf1.GraphDef.FromString(case.read('graph.pb'))
        self.fetches = step['fetches']
        self.feeds = {}
        for name, file in step['feeds'].items():
            dtype = NUMERIC[dtypes[file]]
            self.feeds[name] = (dtype, corpus.decode(file, case.read(file)))
        self.ops = sorted(o for o in case.meta['ops'] if o not in ('Const', 'NoOp', 'Identity') and not o.startswith('Placeholder'))
        self.type = self.own_type()

    def own_type(self):
        """The type that is changed: of what is fed, or else constant, and rather a float than an integer."""
        found = [d for d, _ in self.feeds.values()]
        found += [tf.as_dtype(n.attr['dtype'].type) for n in self.graph.node if n.op == 'Const']
        for kinds in ('f', 'c', 'iu', 'b'):
            for d in found:
                if graphs.KIND_OF.get(d, '-') in kinds:
                    return d
        raise KeyError('no numbers')


def sources(path):
    found = []
    for case in corpus.load(path):
        meta = case.meta
        if len(meta['steps']) != 1 or meta.get('tags') or not meta['steps'][0]['fetches']:
            continue
        if any(part in o and not o.startswith(('Stateless', 'Placeholder')) for o in meta['ops'] for part in UNSTEADY):
            continue
        try:
            found.append(Source(case))
        except KeyError:  # strings, variants, types of four bits
            continue
    return found


def converted(value, old, new):
    value = np.asarray(value)
    if value.dtype == np.uint16 and old == tf.bfloat16:
        value = value.view(old.as_numpy_dtype)
    with np.errstate(all='ignore'):
        if not new.is_complex and np.iscomplexobj(value):
            value = value.real
        if new.is_integer and not old.is_integer and not old.is_bool:
            value = np.round(np.nan_to_num(value.astype(np.float64), nan=0, posinf=100, neginf=-100) * 4)
        if new.is_unsigned:
            value = np.abs(value)
        return value.astype(new.as_numpy_dtype)


def retyped(definition, old, new):
    """The graph with another type for `old`, in attributes, constants and signatures."""
    graph = tf1.GraphDef()
    graph.CopyFrom(definition)
    a, b = old.as_datatype_enum, new.as_datatype_enum

    def node(n):
        for attr in n.attr.values():
            if attr.type == a:
                attr.type = b
            attr.list.type[:] = [b if t == a else t for t in attr.list.type]
            if attr.HasField('tensor') and attr.tensor.dtype == a:
                attr.tensor.CopyFrom(tf.make_tensor_proto(converted(tf.make_ndarray(attr.tensor), old, new), new))
    for n in graph.node:
        node(n)
    for f in graph.library.function:
        for arg in [*f.signature.input_arg, *f.signature.output_arg]:
            if arg.type == a:
                arg.type = b
        for n in f.node_def:
            node(n)
    return graph


def other_values(rng, value, dtype):
    """Values of the same kind as those that the case feeds, in another order."""
    kind = graphs.KIND_OF[dtype]
    flat = rng.permutation(np.asarray(value).reshape(-1))
    if kind in 'fc':
        wide = flat.astype(np.complex128 if kind == 'c' else np.float64)
        with np.errstate(all='ignore'):
            wide = wide * (1 + .25 * rng.random(wide.shape))
            if rng.random() < .1:
                wide[::7] = [np.nan, np.inf, -np.inf, 0., -0., 1e-42][rng.integers(6)]
            flat = wide.astype(dtype.as_numpy_dtype)
    return flat.reshape(np.shape(value))


def make_mutant(seed, source, dtype):
    """The case, with `dtype` for its type and other values for what has that type; None where TensorFlow refuses it."""
    rng, new = np.random.default_rng(seed), tf.as_dtype(dtype)
    definition = retyped(source.graph, source.type, new) if new != source.type else source.graph
    graph = tf.Graph()
    try:
        with graph.as_default():
            tf1.import_graph_def(definition, name='')
            feeds = {}
            for name, (old, value) in source.feeds.items():
                value = converted(value, old, new if old == source.type else old)
                if old == source.type:
                    value = other_values(rng, value, new)
                feeds[graph.get_tensor_by_name(name)] = value
            fetches = [graph.get_tensor_by_name(f) for f in source.fetches]
        if not fetches or any(f.dtype.base_dtype not in graphs.KIND_OF for f in fetches):
            return None
        with graphs.session_of(graph) as s:
            first, again = s.run(fetches, feeds), s.run(fetches, feeds)
        if any(np.asarray(a).tobytes() != np.asarray(b).tobytes() for a, b in zip(first, again)):
            return None
    except (tf.errors.OpError, ValueError, TypeError, KeyError):
        return None
    return graphs.finish(graph, 'seed%07d' % seed, feeds, fetches, [source.key, 'as', new.name])
