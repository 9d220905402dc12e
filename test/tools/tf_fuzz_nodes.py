"""One node of nearly any operation that TensorFlow has a CPU kernel for, with operands that it takes.

Each builder is given the generator, the type that tells the operation's kernels apart (tf_fuzz_coverage.own_attribute), and the name
of the operation, and gives tensors: what the node makes, and for a variable what it holds afterwards. tf_fuzz_graphs.py puts elementwise
operations before free operands, and operations of tf_fuzz_ops.py behind a result. Operations whose operands are all of one type
and shape need no builder: the signature says enough.
"""
import numpy as np
import tensorflow as tf
from tensorflow.python.framework import op_def_library, op_def_registry

raw = tf.raw_ops
NODES = {}
INDEX = [tf.int32, tf.int64]
REAL = {tf.complex64: tf.float32, tf.complex128: tf.float64}
COMPLEX = {v: k for k, v in REAL.items()}
CHEAP = [tf.float32, tf.float64, tf.int32, tf.int64, tf.complex64, tf.uint8, tf.bfloat16, tf.bool]


def node(names):
    def add(build):
        for name in names.split():
            NODES[name] = build
        return build
    return add


def call(name, **args):
    if name.startswith('Xla'):  # raw_ops leaves these out
        return op_def_library.apply_op(name, **args)
    return getattr(raw, name)(**args)


def tensors(result):
    """All tensors of a node's result: one, a list, or a named tuple of these."""
    if isinstance(result, (list, tuple)):
        return [t for part in result for t in tensors(part)]
    return [result] if isinstance(result, tf.Tensor) else []


def build_node(g, name, dtype):
    """What a node of this operation gives; raises where TensorFlow refuses it."""
    return tensors(NODES.get(name, by_signature)(g, dtype, name))


def removed_in(name):
    """The version of graphs from which on the node is refused; 0 where it never is."""
    array = name.startswith('TensorArray') and not name.endswith('V3')  # the node that makes the array counts, too
    return (26 if name.endswith('V2') else 16) if array else op_def_registry.get(name).deprecation.version


def ints(xs, dtype=tf.int32):
    return tf.constant(np.asarray(xs, dtype.as_numpy_dtype).reshape(np.shape(xs)), dtype)


# --- operands

def bounded(g, shape, dtype, low, high):
    """Numbers between low and high, fed or constant."""
    shape, r = [int(d) for d in shape], g.rng
    if dtype.is_integer or dtype.is_quantized:
        a = r.integers(max(int(np.ceil(low)), int(dtype.min)), min(int(np.floor(high)), int(dtype.max)) + 1, shape)
    elif dtype.is_bool:
        a = r.random(shape) < .5
    else:
        a = r.uniform(low, high, shape)
        if dtype.is_complex:
            a = a + 1j * r.uniform(low, high, shape)
    a = np.asarray(a).astype(dtype.as_numpy_dtype)
    return g.feed(a) if g.coin() else tf.constant(a, dtype)


def indices(g, shape, size, dtype=None):
    """Indices of a dimension; there are none in one of no elements."""
    a = g.rng.integers(0, max(1, size), [int(d) for d in shape])
    return g.feed(np.asarray(a).astype((dtype or g.pick(INDEX)).as_numpy_dtype))


def dims(g, rank, most=6000):
    """Sizes of a tensor of this rank."""
    found = [g.size() for _ in range(rank)]
    kept = next((i for i, d in enumerate(found) if d in g.rare and d <= most), None)
    while rank and np.prod([max(1, d) for d in found]) > most:
        others = [0 if i == kept else d for i, d in enumerate(found)]
        found[int(np.argmax(others))] = g.pick([1, 2, 3, 4, 5] if kept is None else [1, 1, 2, 3])
    return found


def some(g, low=0, high=4, most=6000):
    return dims(g, g.int(low, high), most)


def filled(shape):
    if not np.prod(shape):
        raise ValueError('an element at least')
    return shape


def rows_of(g, low=1, high=3):
    """Sizes of a tensor that has a row."""
    shape = some(g, low, high)
    shape[0] = max(1, shape[0])
    return shape


def part_of(g, shape):
    """Sizes that broadcast to these."""
    if g.coin():
        return list(shape)
    return [1 if g.rng.random() < .4 else d for d in shape][g.int(0, len(shape)):]


def variable(g, value):
    """A variable that holds this, as the assignment gives it on."""
    v = raw.VariableV2(shape=value.shape, dtype=value.dtype, shared_name='v%d' % g.next())
    return raw.Assign(ref=v, value=value)


def resource(g, value):
    """A handle, and the assignment that has to come first."""
    h = raw.VarHandleOp(dtype=value.dtype, shape=value.shape, shared_name='h%d' % g.next())
    return h, raw.AssignVariableOp(resource=h, value=value)


def reading(g, value, read):
    h, assigned = resource(g, value)
    with tf.control_dependencies([assigned]):
        return read(h)


def with_resource(g, value, update):
    """What the variable holds after an update."""
    h, assigned = resource(g, value)
    with tf.control_dependencies([assigned]):
        updated = update(h)
    with tf.control_dependencies([updated if isinstance(updated, tf.Operation) else updated.op]):
        return raw.ReadVariableOp(resource=h, dtype=value.dtype)


def by_signature(g, d, name):
    """A node whose operands are all of one type, and of one shape or such as broadcast."""
    definition = op_def_registry.get(name)
    if any(a.number_attr or not a.type_attr or a.is_ref for a in definition.input_arg):
        raise ValueError('no builder for ' + name)
    shape, given, args = some(g), {definition.input_arg[0].type_attr}, {}
    if {a.type_attr for a in definition.input_arg} != given:
        raise ValueError('no builder for ' + name)
    narrow = len(definition.input_arg) > 1 and not name.endswith('Grad')
    for a in definition.input_arg:
        args[a.name] = operand_of(g, name, a.name, part_of(g, shape) if narrow and len(args) else shape, d)
    for a in definition.attr:
        if a.type == 'type' and a.name not in given and a.name in ('Tout', 'out_type') and d in REAL:
            args[a.name] = REAL[d]
        elif a.name == 'out_type':
            args[a.name] = g.pick(INDEX)
        elif a.name == 'alpha':
            args[a.name] = g.pick([.2, .5, 1., 2.])
        elif a.name == 'message':
            args[a.name] = 'checked'
    return call(name, **args)


def operand_of(g, name, arg, shape, d):
    """An operand where the operation is defined."""
    if d.is_integer and arg == 'y' and any(part in name for part in ('Div', 'Mod')):
        return bounded(g, shape, d, 1, 9)
    if d.is_integer and arg == 'y' and name == 'Pow':
        return bounded(g, shape, d, 0, 6)
    if name in ('Igamma', 'Igammac', 'IgammaGradA', 'RandomGammaGrad', 'Betainc', 'BesselK0', 'BesselK0e', 'BesselK1', 'BesselK1e',
                'BesselY0',
                'BesselY1'):
        return bounded(g, shape, d, .1, .95 if arg == 'x' and name == 'Betainc' else 6)
    if name == 'Zeta':
        return bounded(g, shape, d, 1.1, 5)
    if name == 'Polygamma':
        return g.feed(g.rng.integers(0, 4, shape).astype(d.as_numpy_dtype)) if arg == 'a' else bounded(g, shape, d, .2, 5)
    if name in ('Erfinv', 'Ndtri'):
        return bounded(g, shape, d, .02, .98)
    if name.startswith('CheckNumerics'):
        return bounded(g, shape, d, -9, 9)
    return g.free(shape, d)


@node('Betainc')
def beta(g, d, op):
    shape = some(g)
    return call(op, a=bounded(g, shape, d, .2, 5), b=bounded(g, shape, d, .2, 5), x=bounded(g, shape, d, 0, 1))


@node('ClipByValue')
def clip(g, d, op):
    shape = some(g)
    bound = shape if g.coin() else []
    return call(op, t=g.free(shape, d), clip_value_min=bounded(g, bound, d, -3, 1), clip_value_max=bounded(g, bound, d, 1, 4))


@node('Select SelectV2')
def select(g, d, op):
    shape = some(g)
    lead = shape[:1] if op == 'Select' and g.coin() else part_of(g, shape) if op == 'SelectV2' else shape
    x, y = g.free(shape, d), g.free(part_of(g, shape) if op == 'SelectV2' else shape, d)
    return call(op, condition=g.free(lead, tf.bool), **({'t': x, 'e': y} if op == 'SelectV2' else {'x': x, 'y': y}))


@node('Complex')
def complex_of(g, d, op):
    shape = some(g)
    return call(op, real=g.free(shape, d), imag=g.free(part_of(g, shape), d), Tout=COMPLEX[d])


@node('Cast')
def cast(g, d, op):
    return call(op, x=g.free(some(g), d), DstT=g.pick(CHEAP + [tf.float16, tf.int8, tf.int16, tf.uint16, tf.uint32, tf.uint64]))


@node('Bitcast')
def bitcast(g, d, op):
    by_size = {1: [tf.int8, tf.uint8], 2: [tf.int16, tf.uint16], 4: [tf.int32, tf.uint32], 8: [tf.int64, tf.uint64], 16: [tf.complex128]}
    shape, to = some(g, 1), g.pick([s for s in by_size if s <= d.size])
    return call(op, input=g.free(shape, d), type=g.pick(by_size[to]))


@node('Bucketize')
def bucketize(g, d, op):
    return call(op, input=g.free(some(g), d), boundaries=sorted(float(g.int(-9, 9)) for _ in range(g.int(0, 6))))


@node('AddN')
def add_n(g, d, op):
    shape = some(g)
    return call(op, inputs=[g.free(shape, d) for _ in range(g.int(1, 4))])


@node('Copy CopyHost')
def copies(g, d, op):
    return call(op, input=g.free(some(g), d))


@node('Print')
def printed(g, d, op):
    return call(op, input=g.free(some(g), d), data=[g.free([2], tf.float32)], first_n=0)


@node('Const')
def constant(g, d, op):
    return tf.constant(g.values(some(g), d), d)


@node('PlaceholderWithDefault')
def default(g, d, op):
    shape = some(g)
    return call(op, input=g.free(shape, d), shape=shape if g.coin() else [None] * len(shape))


@node('EnsureShape')
def ensure(g, d, op):
    shape = some(g)
    return call(op, input=g.free(shape, d), shape=[n if g.coin() else None for n in shape])


@node('Empty')
def empty(g, d, op):
    return call(op, shape=ints(some(g)), dtype=d, init=True)


@node('FakeParam')
def fake(g, d, op):
    return call(op, dtype=d, shape=[0] + some(g, 0, 2))


@node('Cross')
def cross(g, d, op):
    shape = some(g, 0, 3) + [3]
    return call(op, a=g.free(shape, d), b=g.free(shape, d))


@node('L2Loss')
def l2(g, d, op):
    return call(op, t=g.free(some(g), d))


@node('AccumulateNV2')
def accumulate(g, d, op):
    shape = some(g)
    return call(op, inputs=[g.free(shape, d) for _ in range(g.int(1, 4))], shape=shape)


# --- reductions, scans, rows

@node('Sum Mean Prod Max Min EuclideanNorm')
def reduction(g, d, op):
    shape = some(g, 0, 5)
    x = bounded(g, shape, d, 0, 9) if op == 'EuclideanNorm' and d.is_integer else g.free(shape, d)
    axes = sorted(g.rng.choice(len(shape), g.int(0, len(shape)), replace=False).tolist()) if shape else []
    return call(op, input=x, axis=ints([a - len(shape) if g.coin() else a for a in axes], g.pick(INDEX)), keep_dims=g.coin())


@node('All Any')
def logical_reduction(g, d, op):
    shape = some(g, 0, 5)
    axes = sorted(g.rng.choice(len(shape), g.int(0, len(shape)), replace=False).tolist()) if shape else []
    return call(op, input=g.free(shape, tf.bool), axis=ints(axes, d), keep_dims=g.coin())


@node('ArgMax ArgMin')
def arg_reduction(g, d, op):
    shape = some(g, 1)
    return call(op, input=g.free(shape, d), dimension=ints(g.int(-len(shape), len(shape) - 1), g.pick(INDEX)), output_type=g.pick(INDEX))


@node('Cumsum Cumprod CumulativeLogsumexp')
def scan(g, d, op):
    shape = some(g, 1)
    return call(op, x=g.free(shape, d), axis=ints(g.int(-len(shape), len(shape) - 1), g.pick(INDEX)), exclusive=g.coin(), reverse=g.coin())


@node('Softmax LogSoftmax')
def rows(g, d, op):
    return call(op, logits=g.free(some(g, 1), d))


@node('SoftmaxCrossEntropyWithLogits')
def cross_entropy(g, d, op):
    shape = dims(g, 2)
    return call(op, features=g.free(shape, d), labels=bounded(g, shape, d, 0, 1))


@node('SparseSoftmaxCrossEntropyWithLogits')
def sparse_cross_entropy(g, d, op):
    shape = filled(dims(g, 2))
    return call(op, features=g.free(shape, d), labels=indices(g, shape[:1], shape[1]))


@node('TopK TopKV2 ApproxTopK NthElement')
def top(g, d, op):
    shape = filled(some(g, 1, 3))
    x, n = distinct(g, shape, d), shape[-1]
    if op == 'TopK':
        return call(op, input=x, k=g.int(0, n), sorted=True)
    if op == 'TopKV2':
        return call(op, input=x, k=ints(g.int(0, n)), sorted=True, index_type=g.pick(INDEX))
    if op == 'NthElement':
        return call(op, input=x, n=ints(g.int(0, n - 1)), reverse=g.coin())
    return call(op, input=x, k=g.int(1, n), is_max_k=g.coin())


def distinct(g, shape, d):
    """Numbers without NaN, which has no place in an order."""
    return bounded(g, shape, d, -50, 50)


@node('InTopK InTopKV2')
def in_top(g, d, op):
    shape = filled(dims(g, 2))
    k = g.int(1, shape[1])
    return call(op, predictions=distinct(g, shape, tf.float32), targets=indices(g, shape[:1], shape[1], d),
                k=k if op == 'InTopK' else ints(k, d))


@node('LowerBound UpperBound')
def bounds(g, d, op):
    b, n, m = g.small(), g.size(), g.size()
    a = np.sort(g.rng.integers(0 if d.is_unsigned else -9, 10, [b, n]), axis=1).astype(d.as_numpy_dtype)
    return call(op, sorted_inputs=g.feed(a), values=bounded(g, [b, m], d, -9, 9), out_type=g.pick(INDEX))
