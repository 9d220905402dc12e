"""Nodes of tf_fuzz_nodes.py with state, functions or random numbers."""
import numpy as np
import tensorflow as tf
from tensorflow.python.framework import function, kernels, op_def_registry

from tf_fuzz_nodes import (bounded, call, CHEAP, INDEX, indices, ints, node, NODES, raw, reading, resource, rows_of, some, tensors,
                           variable, with_resource)


# --- variables

@node('Variable VariableV2')
def plain_variable(g, d, op):
    value = g.free(some(g), d)
    v = call(op, shape=value.shape, dtype=d, shared_name='v%d' % g.next())
    return tf.identity(raw.Assign(ref=v, value=value))


@node('Assign AssignAdd AssignSub')
def assign(g, d, op):
    shape = some(g)
    return tf.identity(call(op, ref=variable(g, g.free(shape, d)), value=g.free(shape, d)))


@node('AssignVariableOp AssignAddVariableOp AssignSubVariableOp')
def assign_resource(g, d, op):
    shape = some(g)
    value = g.free(shape, d)
    return with_resource(g, g.free(shape, d), lambda h: call(op, resource=h, value=value))


@node('ReadVariableOp VarHandleOp')
def read_variable(g, d, op):
    return reading(g, g.free(some(g), d), lambda h: raw.ReadVariableOp(resource=h, dtype=d))


@node('VariableShape')
def variable_shape(g, d, op):
    return reading(g, g.free(some(g), g.pick(CHEAP)), lambda h: call(op, input=h, out_type=d))


@node('RefIdentity')
def ref_identity(g, d, op):
    return tf.identity(call(op, input=variable(g, g.free(some(g), d))))


@node('IsVariableInitialized')
def initialized(g, d, op):
    return call(op, ref=variable(g, g.free(some(g), d)))


@node('CountUpTo')
def count_up(g, d, op):
    v = variable(g, bounded(g, [], d, 0, 4))
    made = call(op, ref=v, limit=9)
    with tf.control_dependencies([made]):
        return made, tf.identity(v)


@node('ResourceCountUpTo')
def resource_count_up(g, d, op):
    h, assigned = resource(g, bounded(g, [], d, 0, 4))
    with tf.control_dependencies([assigned]):
        made = call(op, resource=h, limit=9, T=d)
    with tf.control_dependencies([made]):
        return made, raw.ReadVariableOp(resource=h, dtype=d)


@node('TemporaryVariable DestroyTemporaryVariable')
def temporary(g, d, op):
    value, name = g.free(some(g), d), 't%d' % g.next()
    v = raw.Assign(ref=raw.TemporaryVariable(shape=value.shape, dtype=d, var_name=name), value=value)
    return raw.DestroyTemporaryVariable(ref=v, var_name=name)


FACTORS = {'lr_power': (-.7, -.4), 'logbase': (.5, 1), 'epsilon': (.01, .1), 'l1': (0, .2), 'l2': (0, .2)}
SWITCHES = ('use_nesterov', 'update_slots', 'multiply_linear_by_lr')


def optimizer(g, d, op):
    """One step of an optimizer: the signature says what it takes."""
    definition = op_def_registry.get(op)
    sparse_rows = 'Sparse' in op
    shape = rows_of(g, 1, 3) if sparse_rows else some(g, 0, 3)
    count = g.int(1, min(5, shape[0])) if sparse_rows else 0
    args, slots, before = {}, {}, []
    for a in definition.input_arg:
        ref = a.is_ref or a.type == tf.resource.as_datatype_enum
        if ref:
            value = bounded(g, shape, d, -2, 2) if a.name in ('var', 'm', 'linear', 'mg', 'gradient_accumulator') else bounded(g, shape,
                                                                                                                               d, 2, 6)
            if a.is_ref:
                slots[a.name] = args[a.name] = variable(g, value)
            else:
                args[a.name], assigned = resource(g, value)
                slots[a.name] = args[a.name]
                before.append(assigned)
        elif a.name in ('grad', 'delta'):
            args[a.name] = bounded(g, [count] + shape[1:] if sparse_rows else shape, d, -1, 1)
        elif a.name == 'indices':
            args[a.name] = g.feed(g.rng.choice(shape[0], count, replace=False).astype(g.pick([np.int32, np.int64])))
        elif a.name == 'global_step':
            args[a.name] = tf.constant(g.int(1, 5), tf.int64)
        else:
            args[a.name] = bounded(g, [], d, *FACTORS.get(a.name, (.1, .9)))
    for a in definition.attr:
        if a.name in SWITCHES:
            args[a.name] = g.coin()
    with tf.control_dependencies(before):
        made = call(op, **args)
    with tf.control_dependencies([made if isinstance(made, tf.Operation) else made.op]):
        return [tf.identity(s) if s.dtype != tf.resource else raw.ReadVariableOp(resource=s, dtype=d) for s in slots.values()]


for kernel in kernels.get_all_registered_kernels().kernel:
    if kernel.op.startswith(('Apply', 'SparseApply', 'ResourceApply', 'ResourceSparseApply')):
        NODES[kernel.op] = optimizer


# --- stacks, arrays and lists of tensors

@node('Stack StackPush StackPop StackV2 StackPushV2 StackPopV2')
def stack(g, d, op):
    value = g.free(some(g), d)
    if op.endswith('V2'):
        h = raw.StackV2(max_size=ints(-1), elem_type=d, stack_name='s%d' % g.next())
        pushed = raw.StackPushV2(handle=h, elem=value)
        with tf.control_dependencies([pushed]):
            return raw.StackPopV2(handle=h, elem_type=d)
    h = raw.Stack(elem_type=d, stack_name='s%d' % g.next())
    pushed = raw.StackPush(handle=h, elem=value)
    with tf.control_dependencies([pushed]):
        return raw.StackPop(handle=h, elem_type=d)


ARRAY_PARTS = ['Concat', 'Gather', 'Read', 'Scatter', 'Split', 'Write']


def tensor_array(what):
    """Builds the operation, or any of those of a tensor array."""
    def build(g, d, name):
        version = name[-2:] if name[-2] == 'V' else ''
        op = what or g.pick(ARRAY_PARTS)
        n, shape = g.int(1, 4), some(g, 0, 2, 200)
        made = call('TensorArray' + version, size=ints(n), dtype=d, tensor_array_name='a%d' % g.next(),
                    **({'clear_after_read': False} if version else {}))
        handle, flow = (made.handle, made.flow) if version == 'V3' else (made, tf.constant(0.))
        c = lambda part, **args: call('TensorArray%s%s' % (part, version), handle=handle, flow_in=flow, **args)
        if op == 'Scatter' or op == 'Gather':
            flow = c('Scatter', indices=ints(g.rng.permutation(n)), value=g.free([n] + shape, d))
        elif op == 'Split' or op == 'Concat':
            length = [g.int(1, 4) for _ in range(n)] if version else [2] * n
            flow = c('Split', value=g.free([sum(length)] + shape, d), lengths=tf.constant(length, tf.int64))
        else:
            for i in range(n):
                flow = c('Write', index=ints(i), value=g.free(shape, d))
        if op in ('Concat', 'Split'):
            return c('Concat', dtype=d)
        if op in ('Read', 'Write'):
            return c('Read', index=ints(g.int(0, n - 1)), dtype=d)
        order = np.array([g.int(0, n - 1) for _ in range(g.int(1, 5))]) if version else g.rng.permutation(n)
        return c('Gather', indices=ints(order), dtype=d)
    return build


for part in [*ARRAY_PARTS, '']:
    for version in ('', 'V2', 'V3'):
        NODES['TensorArray%s%s' % (part, version)] = tensor_array(part)


def pushed(g, d, shape, n, op='EmptyTensorList'):
    known = ints(np.array(shape, np.int64).reshape(-1), g.pick(INDEX))
    if op == 'TensorListReserve':
        handle = raw.TensorListReserve(element_shape=known, num_elements=ints(n), element_dtype=d)
        for i in range(n):
            handle = raw.TensorListSetItem(input_handle=handle, index=ints(i), item=g.free(shape, d))
        return handle
    handle = raw.EmptyTensorList(element_shape=known, max_num_elements=ints(n), element_dtype=d)
    for _ in range(n):
        handle = raw.TensorListPushBack(input_handle=handle, tensor=g.free(shape, d))
    return handle


def stacked(handle, shape, d):
    return raw.TensorListStack(input_handle=handle, element_shape=ints(np.array(shape, np.int64).reshape(-1)), element_dtype=d)


@node('EmptyTensorList TensorListPushBack TensorListReserve TensorListSetItem TensorListStack')
def list_stack(g, d, op):
    shape, n = some(g, 0, 3, 500), g.int(1, 4)
    return stacked(pushed(g, d, shape, n, 'TensorListReserve' if op in ('TensorListReserve', 'TensorListSetItem') else ''), shape, d)


@node('TensorListPopBack TensorListGather TensorListGetItem TensorListElementShape')
def list_read(g, d, op):
    shape, n = some(g, 0, 3, 500), g.int(1, 4)
    handle, known = pushed(g, d, shape, n, g.pick(['', 'TensorListReserve'])), ints(np.array(shape, np.int64).reshape(-1))
    if op == 'TensorListElementShape':
        return call(op, input_handle=handle, shape_type=d if d in INDEX else g.pick(INDEX))
    if op == 'TensorListPopBack':
        made = call(op, input_handle=handle, element_shape=known, element_dtype=d)
        return made.tensor, raw.TensorListLength(input_handle=made.output_handle)
    if op == 'TensorListGetItem':
        return call(op, input_handle=handle, index=ints(g.int(0, n - 1)), element_shape=known, element_dtype=d)
    return call(op, input_handle=handle, indices=ints(np.array([g.int(0, n - 1) for _ in range(g.int(1, 5))])), element_shape=known,
                element_dtype=d)


@node('TensorListConcatLists')
def list_concat_lists(g, d, op):
    shape, n = some(g, 0, 2, 200), g.int(1, 3)
    return stacked(call(op, input_a=pushed(g, d, shape, n), input_b=pushed(g, d, shape, n), element_dtype=d), shape, d)


@node('TensorListConcat TensorListConcatV2')
def list_concat(g, d, op):
    shape, handle = some(g, 0, 2, 200), None
    handle = raw.EmptyTensorList(element_shape=ints(np.array([-1] + shape, np.int64)), max_num_elements=ints(4), element_dtype=d)
    for _ in range(g.int(1, 4)):
        handle = raw.TensorListPushBack(input_handle=handle, tensor=g.free([g.int(1, 4)] + shape, d))
    if op == 'TensorListConcatV2':
        return call(op, input_handle=handle, element_shape=ints(np.array([-1] + shape, np.int64)), leading_dims=tf.constant([], tf.int64),
                    element_dtype=d)
    return raw.TensorListConcat(input_handle=handle, element_dtype=d, element_shape=[None] + shape)


@node('TensorListFromTensor TensorListScatter TensorListScatterV2 TensorListScatterIntoExistingList TensorListSplit')
def list_from(g, d, op):
    shape, n = some(g, 0, 2, 300), g.int(1, 4)
    known, value = ints(np.array(shape, np.int64).reshape(-1), g.pick(INDEX)), g.free([n] + shape, d)
    if op == 'TensorListFromTensor':
        return stacked(call(op, tensor=value, element_shape=known), shape, d)
    if op == 'TensorListSplit':
        length = [g.int(1, 3) for _ in range(n)]
        handle = call(op, tensor=g.free([sum(length)] + shape, d), element_shape=ints(np.array([-1] + shape, np.int64)),
                      lengths=tf.constant(length, tf.int64))
        return raw.TensorListConcat(input_handle=handle, element_dtype=d, element_shape=[None] + shape)
    at = ints(g.rng.permutation(n))
    if op == 'TensorListScatterIntoExistingList':
        return stacked(call(op, input_handle=pushed(g, d, shape, n, 'TensorListReserve'), tensor=value, indices=at), shape, d)
    more = {'num_elements': ints(n)} if op.endswith('V2') else {}
    return stacked(call(op, tensor=value, indices=at, element_shape=known, **more), shape, d)


# --- functions

def doubled(d):
    @function.Defun(d)
    def body(x):
        return x if d.is_bool else x + x
    return body


def kept(d):
    @function.Defun(d)
    def body(x):
        return tf.identity(x) if d.is_bool else x * x
    return body


@node('If StatelessIf')
def if_(g, d, op):
    value = g.free(some(g), d)
    return call(op, cond=g.free([], tf.bool), input=[value], Tout=[d], then_branch=doubled(d), else_branch=kept(d))


@node('Case StatelessCase')
def case(g, d, op):
    value = g.free(some(g), d)
    return call(op, branch_index=indices(g, [], 4, tf.int32), input=[value], Tout=[d], branches=[doubled(d), kept(d), doubled(d)])


@node('PartitionedCall StatefulPartitionedCall')
def function_call(g, d, op):
    return call(op, args=[g.free(some(g), d)], Tout=[d], f=g.pick([doubled, kept])(d))


@node('SymbolicGradient')
def symbolic(g, d, op):
    shape = some(g)
    return call(op, input=[g.free(shape, d), g.free(shape, d)], Tout=[d], f=g.pick([doubled, kept])(d))


@node('While StatelessWhile')
def while_(g, d, op):
    shape = some(g)

    @function.Defun(d, tf.int32, func_name='below%d' % g.next())
    def below(x, i):
        return i < 3

    @function.Defun(d, tf.int32, func_name='step%d' % g.next())
    def step(x, i):
        return (tf.logical_not(x) if d.is_bool else x + tf.ones_like(x)), i + 1
    return call(op, input=[g.free(shape, d), ints(g.int(0, 3))], cond=below, body=step)


@node('For')
def for_(g, d, op):
    @function.Defun(tf.int32, d, func_name='turn%d' % g.next())
    def body(i, x):
        return tf.logical_not(x) if d.is_bool else x + tf.ones_like(x)
    return call(op, start=ints(0), limit=ints(g.int(0, 4)), delta=ints(1), input=[g.free(some(g), d)], body=body)


# --- random numbers

@node('RandomStandardNormal RandomUniform TruncatedNormal')
def random(g, d, op):
    return call(op, shape=ints(np.array(some(g), np.int64), g.pick(INDEX)), dtype=d, seed=g.int(1, 99), seed2=g.int(1, 99))


@node('RandomUniformInt')
def random_int(g, d, op):
    out = g.pick(INDEX)
    return call(op, shape=ints(np.array(some(g), np.int64), d), minval=bounded(g, [], out, -9, 0), maxval=bounded(g, [], out, 1, 90),
                seed=g.int(1, 99), seed2=g.int(1, 99))


@node('RandomShuffle')
def shuffle(g, d, op):
    return call(op, value=g.free(some(g, 1), d), seed=g.int(1, 99), seed2=g.int(1, 99))


@node('Multinomial StatelessMultinomial')
def multinomial(g, d, op):
    args = dict(logits=bounded(g, [g.int(1, 4), g.int(1, 9)], d, -2, 2), num_samples=ints(g.int(0, 9)), output_dtype=g.pick(INDEX))
    if op == 'Multinomial':
        return call(op, seed=g.int(1, 99), seed2=g.int(1, 99), **args)
    return call(op, seed=seeds(g), **args)


def seeds(g, t=None):
    return g.feed(g.rng.integers(0, 1000, [2]).astype((t or g.pick(INDEX)).as_numpy_dtype))


@node('StatelessRandomGetKeyCounter StatelessRandomGetKeyCounterAlg')
def key_counter(g, d, op):
    return tensors(call(op, seed=seeds(g, d)))


@node('StatelessRandomNormal StatelessRandomUniform StatelessTruncatedNormal StatelessRandomUniformFullInt StatelessRandomUniformInt')
def stateless(g, d, op):
    args = dict(shape=ints(np.array(some(g), np.int64), g.pick(INDEX)), seed=seeds(g))
    if op.endswith('UniformInt'):
        return call(op, minval=bounded(g, [], d, -9, 0), maxval=bounded(g, [], d, 1, 90), **args)
    return call(op, dtype=d, **args)


@node('StatelessRandomNormalV2 StatelessRandomUniformV2 StatelessTruncatedNormalV2 StatelessRandomUniformFullIntV2 '
      'StatelessRandomUniformIntV2')
def stateless_v2(g, d, op):
    # not ThreeFry (2), which Lathe refuses
    args = dict(shape=ints(np.array(some(g), np.int64), g.pick(INDEX)), key=g.feed(g.rng.integers(0, 1 << 40, [1]).astype(np.uint64)),
                counter=g.feed(g.rng.integers(0, 1 << 40, [2]).astype(np.uint64)), alg=ints(g.pick([1, 3])))
    if op.endswith('UniformIntV2'):
        return call(op, minval=bounded(g, [], d, -9, 0), maxval=bounded(g, [], d, 1, 90), **args)
    return call(op, dtype=d, **args)


@node('RandomIndexShuffle')
def index_shuffle(g, d, op):
    n = g.int(1, 60)
    return call(op, index=indices(g, [], n + 1, d), seed=g.feed(g.rng.integers(0, 1000, [3]).astype(g.pick([np.int32, np.int64,
                                                                                                            np.uint32]))),
                max_index=ints(n, d), rounds=g.pick([4, 4, 8]))


# --- what XLA's bridge left

@node('XlaDynamicSlice')
def xla_slice(g, d, op):
    shape, t = [max(1, n) for n in some(g, 1, 3)], g.pick(INDEX)
    size = [g.int(1, n) for n in shape]
    return call(op, input=g.free(shape, d), start_indices=bounded(g, [len(shape)], t, 0, 9), size_indices=ints(np.array(size, np.int64), t))


@node('XlaDynamicUpdateSlice')
def xla_update(g, d, op):
    shape, t = [max(1, n) for n in some(g, 1, 3)], g.pick(INDEX)
    return call(op, input=g.free(shape, d), update=g.free([g.int(1, n) for n in shape], d), indices=bounded(g, [len(shape)], t, 0, 9))


@node('XlaSort')
def xla_sort(g, d, op):
    return call(op, input=bounded(g, some(g, 1, 3), d, -50, 50))


@node('XlaKeyValueSort')
def xla_key_value(g, d, op):
    n = min(g.size(), 1000 if d.size > 2 else 100)  # as many as the type tells apart
    keys = g.rng.permutation(n).astype(d.as_numpy_dtype)
    return call(op, keys=g.feed(keys), values=g.free([n], g.pick(CHEAP)))


@node('XlaReduceWindow')
def xla_reduce_window(g, d, op):
    shape, t = [max(1, n) for n in some(g, 1, 3, 500)], g.pick(INDEX)
    # from what changes nothing: how often another value counts in padding is not said
    sums = [(tf.logical_or, False), (tf.logical_and, True)] if d.is_bool else [(tf.add, 0)]
    what, start = g.pick(sums + ([] if d.is_bool or d.is_complex else [(tf.maximum, d.min), (tf.minimum, d.max)]))

    @function.Defun(d, d, func_name='combine%d' % g.next())
    def combine(x, y):
        return what(x, y)
    vector = lambda draw: ints(np.array([draw(n) for n in shape], np.int64), t)
    return call(op, input=g.free(shape, d), init_value=tf.constant(start, d), computation=combine,
                window_dimensions=vector(lambda n: g.int(1, min(3, n))), window_strides=vector(lambda n: g.int(1, 2)),
                base_dilations=vector(lambda n: 1), window_dilations=vector(lambda n: 1),
                padding=ints(np.array([[g.int(0, 1), g.int(0, 1)] for _ in shape], np.int64), t))


@node('XlaVariadicSort')
def xla_variadic_sort(g, d, op):
    shape = [max(1, n) for n in some(g, 1, 2, 500)]
    keys = g.feed(g.rng.permutation(int(np.prod(shape))).reshape(shape).astype(np.int32))

    @function.Defun(d, d, tf.int32, tf.int32, func_name='before%d' % g.next())
    def before(x, y, a, b):
        return a < b
    return call(op, inputs=[g.free(shape, d), keys], dimension=ints(g.int(0, len(shape) - 1)), comparator=before, is_stable=g.coin())
