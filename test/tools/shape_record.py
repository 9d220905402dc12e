"""Records what TensorFlow infers of shapes, for test/graph/ShapeRecordTest.cpp.

usage: shape_record.py --out FILE.zip [--ops REGEX] [--jobs N]      (needs TensorFlow 2.21; ten minutes on three cores)

For every op of ops/*.def, nodes are drawn whose inputs have partial shapes. A draw starts from attributes that TensorFlow accepts
with inputs of which nothing is known; then ranks, sizes, constants, handles are put in one by one and kept where TensorFlow
accepts them, so that whatever an op asks of its inputs is found without being told here. Some of what it refuses is kept as well.

The zip has one GraphDef a table of ops (MathOps.pb ...). A node named "OP/k" is a case, all others are inputs, which cases share.
A case has `_shapes` (of each output; unknown rank stays unknown), and `_handles` (of what an output that is a resource or variant
holds), or `_refused` when TensorFlow refuses it.
"""
import argparse
import glob
import hashlib
import multiprocessing
import os
import pickle
import re
import signal
import sys
import zipfile

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
import numpy as np
import tensorflow as tf
from tensorflow.core.framework import attr_value_pb2, graph_pb2, node_def_pb2, types_pb2
from tensorflow.python.framework import op_def_registry, tensor_shape, tensor_util
from tensorflow.python.ops import handle_data_util

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RANKS = [0, 1, 2, 3, 4, 5]
SIZES = [1, 2, 3, 4, 5, 6, 8, 12]
HANDLES = (tf.resource, tf.variant)
# what TensorFlow reads of these is a format of its own
STRINGS = {'equation': ['ab,bc->ac', 'abc,cd->abd', 'ab->ba', 'a,b->ab', 'abc,abd->cd',
                        '...ab,...bc->...ac', 'aab->ab', 'ab,ab->', '...a->a...'],
           'lower_bound': ['x'], 'loss_type': ['hinge_loss'], 'summary_type': ['equal_to'], 'error_spec': ['x'],
           'unicode_encoding': ['UTF-8'], 'table_type': ['x'], 'encoding': ['UTF-8'], 'mode': ['x'], 'rnn_mode': ['lstm', 'gru']}
INTS = {'num_bits': [4, 8], 'block_size': [2, 3], 'SrcT': [1], 'channels': [0, 1, 3, 4], 'axis': [0, 1, -1, 2, -2],
        'batch_dims': [0, 1, -1, 2],
        'top_paths': [1, 2, 3], 'begin_mask': [0, 1, 2, 3, 5], 'end_mask': [0, 1, 2, 3, 5], 'ellipsis_mask': [0, 0, 1, 2],
        'new_axis_mask': [0, 0, 1, 2, 3], 'shrink_axis_mask': [0, 0, 1, 2, 3], 'num_split': [1, 2, 3], 'num': [1, 2, 3],
        'reduction_dimension': [0, 1, -1]}
COMMON = [types_pb2.DT_FLOAT, types_pb2.DT_INT32, types_pb2.DT_INT64, types_pb2.DT_STRING, types_pb2.DT_BOOL, types_pb2.DT_COMPLEX64,
          types_pb2.DT_UINT8, types_pb2.DT_QUINT8, types_pb2.DT_QINT32, types_pb2.DT_HALF, types_pb2.DT_DOUBLE, types_pb2.DT_INT8]


class Refused(Exception):
    pass


def ops_by_family():
    out = {}
    for path in sorted(glob.glob(os.path.join(ROOT, 'ops', '*Ops.def'))):
        with open(path) as f:
            out[os.path.basename(path)[:-4]] = re.findall(r'^([A-Z_]\w*)\(', f.read(), re.M)
    return out


class Attributes:
    """Draws the attributes of a node."""

    def __init__(self, rng, op_def):
        self.rng, self.op_def = rng, op_def
        args = list(op_def.input_arg) + list(op_def.output_arg)
        self.counts = {a.number_attr for a in args if a.number_attr}
        self.length = 1 + int(rng.integers(3))  # of all lists, so that those that belong together agree

    def pick(self, items):
        return items[int(self.rng.integers(len(items)))]

    def chance(self, p):
        return self.rng.random() < p

    def draw(self, defaults):
        out = {}
        for attr in self.op_def.attr:
            value = attr_value_pb2.AttrValue()
            if attr.HasField('default_value') and (defaults or self.chance(.4)):
                value.CopyFrom(attr.default_value)
            elif attr.type.startswith('list('):
                self.draw_list(attr, value, out)
            else:
                self.draw_one(attr, value, out)
            out[attr.name] = value
        return out

    def draw_type(self, attr):
        allowed = list(attr.allowed_values.list.type) or COMMON
        common = [t for t in COMMON if t in allowed] or allowed
        return common[0] if self.chance(.6) else self.pick(common)

    def draw_shape(self, proto):
        if self.chance(.15):
            proto.unknown_rank = True
            return
        for _ in range(int(self.rng.integers(4))):
            proto.dim.add().size = -1 if self.chance(.3) else self.pick(SIZES)

    def draw_int(self, attr):
        if attr.name in self.counts:
            return max(self.length, attr.minimum if attr.has_minimum else 1)
        pool = INTS.get(attr.name, [0, 1, 2, 3, 4, -1])
        return self.pick([v for v in pool if not attr.has_minimum or v >= attr.minimum] or [attr.minimum])

    def draw_one(self, attr, value, drawn):
        kind = attr.type
        if kind == 'type':
            value.type = self.draw_type(attr)
        elif kind == 'int':
            value.i = self.draw_int(attr)
        elif kind == 'float':
            value.f = self.pick([.5, 1.5])
        elif kind == 'bool':
            value.b = self.chance(.5)
        elif kind == 'string':
            allowed = list(attr.allowed_values.list.s) or [s.encode() for s in STRINGS.get(attr.name, ['x'])]
            value.s = self.pick(allowed)
        elif kind == 'shape':
            self.draw_shape(value.shape)
        elif kind == 'tensor':
            dtype = tf.as_dtype(drawn['dtype'].type if 'dtype' in drawn else types_pb2.DT_FLOAT)
            shape = [self.pick(SIZES) for _ in range(int(self.rng.integers(4)))]
            value.tensor.dtype = dtype.as_datatype_enum
            value.tensor.tensor_shape.CopyFrom(tensor_shape.as_shape(shape).as_proto())
        elif kind == 'func':
            value.func.name = 'recorded_function'
        else:
            raise Refused(kind)

    def draw_list(self, attr, value, drawn):
        kind = attr.type[5:-1]
        n = max(self.length, attr.minimum if attr.has_minimum else 0)
        if kind == 'int':
            value.list.i.extend(self.draw_ints(attr, n, drawn))
            if not value.list.i:
                value.list.SetInParent()
            return
        for _ in range(n):
            if kind == 'type':
                value.list.type.append(self.draw_type(attr))
            elif kind == 'shape':
                self.draw_shape(value.list.shape.add())
            elif kind == 'float':
                value.list.f.append(1 + .25 * len(value.list.f))
            elif kind == 'bool':
                value.list.b.append(self.chance(.5))
            elif kind == 'string':
                value.list.s.append(b'x%d' % len(value.list.s))
            elif kind == 'func':
                value.list.func.add().name = 'recorded_function'
            else:
                raise Refused(kind)

    def draw_ints(self, attr, n, drawn):
        name = self.op_def.name
        rank = 5 if '3D' in name or '3d' in name or 'Volume' in name else 4
        if attr.name in ('ksize', 'strides', 'dilations', 'rates', 'ksizes', 'window_strides', 'explicit_paddings'):
            if name in ('XlaConv', 'Conv'):
                return [self.pick([1, 2]) for _ in range(2)]
            layout = drawn['data_format'].s if 'data_format' in drawn else b''
            first = layout[:2] == b'NC'
            spatial = [self.pick([1, 2, 3] if attr.name != 'dilations' else [1, 1, 2]) for _ in range(rank - 2)]
            if attr.name == 'explicit_paddings':
                if 'padding' in drawn and drawn['padding'].s != b'EXPLICIT':
                    return []
                pads = [int(self.rng.integers(3)) for _ in range(2 * rank - 4)]
                return [0] * 4 + pads if first else [0, 0] + pads + [0, 0]
            if spatial and self.chance(.4):
                spatial = [spatial[0]] * len(spatial)
            return [1, 1] + spatial if first else [1] + spatial + [1]
        if attr.name in ('squeeze_dims', 'axis', 'dims'):
            return sorted({self.pick([0, 1, 2, -1]) for _ in range(int(self.rng.integers(3)))})
        return [self.pick([1, 2, 3]) for _ in range(n)]


class Input:
    """What an input is: `kind` is 'open' (a placeholder), 'const', 'pack' (some elements known), 'var', 'list' (a list's handle)."""

    def __init__(self, dtype, is_ref):
        self.dtype, self.is_ref = dtype, is_ref
        self.kind, self.shape, self.values = 'ref' if is_ref else 'open', None, None
        self.held = None  # element type behind a handle

    def copy(self):
        out = Input(self.dtype, self.is_ref)
        out.__dict__.update(self.__dict__)
        return out

    def key(self):
        shape = None if self.shape is None else tuple(self.shape)
        values = None if self.values is None else tuple(np.asarray(self.values, object).ravel().tolist())
        return (self.kind, self.dtype.as_datatype_enum, shape, values, self.held)


class Scratch:
    """A graph for trying, and the inputs in it."""

    def __init__(self):
        self.graph, self.made = tf.Graph(), {}

    def input(self, i):
        key = i.key()
        if key not in self.made:
            with self.graph.as_default():
                self.made[key] = self.make(i)
        return self.made[key]

    def make(self, i):
        shape = None if i.shape is None else [None if s < 0 else s for s in i.shape]
        if i.kind == 'open':
            return tf.compat.v1.placeholder(i.dtype, shape)
        if i.kind == 'ref':
            return tf.raw_ops.VariableV2(dtype=i.dtype.base_dtype, shape=tf.TensorShape(shape))
        if i.kind == 'var':
            return tf.raw_ops.VarHandleOp(dtype=tf.as_dtype(i.held), shape=tf.TensorShape(shape), shared_name='v')
        if i.kind == 'list':
            element = self.input_constant(np.array(-1 if i.shape is None else i.shape, np.int32))
            return tf.raw_ops.EmptyTensorList(element_shape=element, max_num_elements=self.input_constant(np.array(-1, np.int32)),
                                              element_dtype=tf.as_dtype(i.held))
        if i.kind == 'pack':
            parts = [self.input_constant(np.array(v, i.dtype.as_numpy_dtype)) if v is not None else self.open_scalar(i.dtype)
                     for v in i.values]
            return tf.raw_ops.Pack(values=parts)
        return self.input_constant(np.array(i.values, i.dtype.as_numpy_dtype).reshape(i.shape))

    def input_constant(self, value):
        key = ('const', value.dtype.str, value.shape, tuple(value.ravel().tolist()))
        if key not in self.made:
            self.made[key] = tf.constant(value)
        return self.made[key]

    def open_scalar(self, dtype):
        i = Input(dtype, False)
        i.shape = ()
        return self.input(i)

    def outputs(self, op_def, attrs, inputs):
        """The node; Refused with TensorFlow's words."""
        tensors = [self.input(i) for i in inputs]
        types = output_types(op_def, attrs)
        try:
            return self.graph._create_op_internal(op_def.name, tensors, types, attrs=dict(attrs), op_def=op_def)
        except (ValueError, TypeError, IndexError, tf.errors.OpError, NotImplementedError) as e:
            raise Refused(str(e))


def flat_types(args, attrs):
    out = []
    for arg in args:
        if arg.type_list_attr:
            types = list(attrs[arg.type_list_attr].list.type)
        else:
            dtype = arg.type or attrs[arg.type_attr].type
            types = [dtype] * (attrs[arg.number_attr].i if arg.number_attr else 1)
        out += [(tf.as_dtype(t), arg) for t in types]
    return out


def output_types(op_def, attrs):
    return [t._as_ref if a.is_ref else t for t, a in flat_types(op_def.output_arg, attrs)]


class Climber:
    def __init__(self, rng, op_def):
        self.rng, self.op_def, self.scratch = rng, op_def, Scratch()
        self.refused = []

    def pick(self, items):
        return items[int(self.rng.integers(len(items)))]

    def chance(self, p):
        return self.rng.random() < p

    def start(self, first):
        """Attributes and inputs that TensorFlow takes."""
        for attempt in range(80):
            drawer = Attributes(self.rng, self.op_def)
            try:
                attrs = drawer.draw(defaults=first and attempt < 5)
                inputs = [Input(t, a.is_ref) for t, a in flat_types(self.op_def.input_arg, attrs)]
                held = next((attrs[n].type for n in ('dtype', 'T', 'element_dtype') if n in attrs and attrs[n].type), None)
                for i in inputs:
                    i.held = held
                    if attempt % 20 > 9 and not i.is_ref:  # there are ops that want to know something
                        size = -1 if attempt % 20 < 15 else 4
                        i.shape = (size,) * int(self.pick([0, 1, 1, 2, 4, 4, 5]))
                self.scratch.outputs(self.op_def, attrs, inputs)
                return attrs, inputs
            except Refused as e:
                self.why = str(e)
        return None

    def accepts(self, attrs, inputs):
        try:
            self.scratch.outputs(self.op_def, attrs, inputs)
            return True
        except Refused as e:
            if len(self.refused) < 40:
                self.refused.append((attrs, [i.copy() for i in inputs], str(e)))
            return False

    def climb(self, first):
        at = self.start(first)
        if not at:
            return None
        attrs, inputs = at
        if first:
            return attrs, inputs
        seen = []
        for k in self.rng.permutation(len(inputs)):
            inputs = self.improve(attrs, inputs, int(k), seen)
        for k in self.rng.permutation(len(inputs)):  # what was refused before may go now
            if inputs[k].shape is None and self.chance(.5):
                inputs = self.improve(attrs, inputs, int(k), seen)
        return attrs, inputs

    def improve(self, attrs, inputs, k, seen):
        def attempt(**changes):
            nonlocal inputs
            new = list(inputs)
            new[k] = inputs[k].copy()
            new[k].__dict__.update(changes)
            if self.accepts(attrs, new):
                inputs = new
                return True
            return False

        i = inputs[k]
        if i.dtype.base_dtype == tf.resource and i.held and self.chance(.8):
            attempt(kind='var')
        elif i.dtype.base_dtype == tf.variant and i.held and self.op_def.name.startswith('TensorList'):
            attempt(kind='list')
        elif self.chance(.1):
            return inputs
        for rank in self.rng.permutation(RANKS)[:6]:
            if attempt(shape=(-1,) * int(rank)):
                break
        shape = inputs[k].shape
        for d in range(len(shape or ())):
            if self.chance(.25):
                continue
            for size in ([self.pick(seen)] if seen and self.chance(.6) else []) + [self.pick(SIZES) for _ in range(3)]:
                changed = inputs[k].shape[:d] + (size,) + inputs[k].shape[d + 1:]
                if attempt(shape=changed):
                    seen.append(size)
                    break
        if inputs[k].kind == 'open' and inputs[k].shape is not None and self.chance(.75):
            self.make_constant(inputs[k], attempt)
        return inputs

    def make_constant(self, i, attempt):
        dtype = i.dtype
        if dtype not in (tf.int32, tf.int64, tf.float32, tf.float64, tf.bool) or len(i.shape) > 2 or (dtype.is_floating and len(i.shape)):
            return
        shape = tuple(s if s >= 0 else int(self.rng.integers(4)) for s in i.shape)
        count = int(np.prod(shape))
        if count > 12:
            return
        for pool in ([0, 1, 2, 3, 4], [-1, 0, 1, 2], [0, 1], [1, 2, 3, 4, 6], [2, 2, 4], [0, 1, 2, 3, 4, 5, -2]):
            if dtype == tf.bool:
                values = [bool(self.rng.integers(2)) for _ in range(count)]
            elif pool == [0, 1] and len(shape) == 1:
                values = self.rng.permutation(count).tolist()
            else:
                values = [self.pick(pool) for _ in range(count)]
            if attempt(kind='const', shape=shape, values=values):
                if len(shape) == 1 and count and dtype.is_integer and self.chance(.2):
                    values = list(values)
                    values[int(self.rng.integers(count))] = None
                    attempt(kind='pack', values=values)
                return


class Record:
    """A GraphDef that grows: what cases read is there once."""

    def __init__(self):
        self.graph, self.names = graph_pb2.GraphDef(), {}

    def add_input(self, node, inputs):
        """A node that is no case, with these inputs; its name."""
        new = strip(node)
        new.name = ''
        del new.input[:]
        new.input.extend(inputs)
        key = new.SerializeToString(deterministic=True)
        if key not in self.names:
            self.names[key] = new.name = 'i%d' % len(self.names)
            self.graph.node.append(new)
        return self.names[key]

    def add_tensor(self, tensor):
        return self.add_input(tensor.op.node_def, [self.add_tensor(t) for t in tensor.op.inputs])

    def add_case(self, name, op_def, attrs, tensors, outputs):
        """`outputs` is none when TensorFlow refuses it."""
        node = node_def_pb2.NodeDef(name=name, op=op_def.name, input=[self.add_tensor(t) for t in tensors])
        for key, value in attrs.items():
            node.attr[key].CopyFrom(value)
        node = strip(node)
        if outputs is None:
            node.attr['_refused'].b = True
        else:
            describe(node, outputs)
        self.graph.node.append(node)

    def merge(self, other, first):
        """Cases get numbers from `first` on; returns the next one."""
        names = {}
        for node in other.node:
            inputs = [names[i] for i in node.input]
            if '/' not in node.name:
                names[node.name] = self.add_input(node, inputs)
                continue
            del node.input[:]
            node.input.extend(inputs)
            node.name = '%s/%d' % (node.op, first)
            first += 1
            self.graph.node.append(node)
        return first


def strip(node):
    """Without what is an op's default (tensors aside, which our tables of ops lack), and without what Python adds."""
    new = type(node)()
    new.CopyFrom(node)
    op_def = op_def_registry.get(node.op)
    for attr in op_def.attr:
        if attr.HasField('default_value') and attr.type != 'tensor' and attr.name in new.attr and new.attr[attr.name] == attr.default_value:
            del new.attr[attr.name]
    for name in [n for n in new.attr if n.startswith('_')]:
        del new.attr[name]
    new.ClearField('experimental_debug_info')
    return new


def describe(node, outputs):
    shapes = node.attr['_shapes'].list
    shapes.SetInParent()
    handles, any_handle = [], False
    for t in outputs:
        shapes.shape.add().CopyFrom(t.shape.as_proto())
        handle = handle_data_util.get_resource_handle_data(t) if t.dtype.base_dtype in HANDLES else None
        known = handle is not None and handle.is_set and len(handle.shape_and_type) == 1
        handles.append(handle.shape_and_type[0].shape if known else tensor_shape.unknown_shape().as_proto())
        any_handle = any_handle or known
    if any_handle:
        node.attr['_handles'].list.shape.extend(handles)


def rounds_of(op_def):
    return 14 if len(op_def.input_arg) + len(op_def.attr) > 4 and not op_def.name.endswith('Dataset') else 9


def record_round(op_def, round_, kinds):
    """A GraphDef of one draw, and of what was refused on the way to it where that is of a new kind."""
    seed = int.from_bytes(hashlib.sha256(f'{op_def.name} {round_}'.encode()).digest()[:8], 'little')
    climber, record = Climber(np.random.default_rng(seed), op_def), Record()
    found = climber.climb(first=round_ == 0)
    if found is None:
        raise Refused(climber.why)
    attrs, inputs = found
    op = climber.scratch.outputs(op_def, attrs, inputs)
    record.add_case(f'{op_def.name}/0', op_def, attrs, list(op.inputs), op.outputs)
    for attrs, inputs, why in climber.refused:
        kind = re.sub(r"[0-9\[\]?,'-]+", '', why)[:60]
        if kind not in kinds and len(kinds) < 4:
            kinds.add(kind)
            record.add_case(f'{op_def.name}/1', op_def, attrs, [climber.scratch.input(i) for i in inputs], None)
    return record.graph


def child(op_def, first_round, kinds, pipe):
    for round_ in range(first_round, rounds_of(op_def)):
        try:
            pickle.dump((round_, record_round(op_def, round_, kinds).SerializeToString(), kinds), pipe)
        except Refused as e:
            pickle.dump((round_, str(e), kinds), pipe)
        pipe.flush()


def record_op(record, op_def):
    """In a process of its own: some of TensorFlow's functions end it. Returns what went wrong, or none."""
    round_, kinds, count, why, crashes = -1, set(), 0, None, 0
    while round_ + 1 < rounds_of(op_def):
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(read)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            signal.alarm(120)
            with os.fdopen(write, 'wb') as pipe:
                child(op_def, round_ + 1, kinds, pipe)
            os._exit(0)
        os.close(write)
        with os.fdopen(read, 'rb') as pipe:
            while True:
                try:
                    round_, got, kinds = pickle.load(pipe)
                except (EOFError, pickle.UnpicklingError):
                    break
                if isinstance(got, str):
                    why = got
                else:
                    count = record.merge(graph_pb2.GraphDef.FromString(got), count)
        if os.waitpid(pid, 0)[1]:
            crashes += 1
            round_ += 1
    return f'{crashes} crashes, {why}' if not count else None


def record_family(names):
    """(serialized graph, nodes, [(op, why it is not there)])"""
    record, missing = Record(), []
    for name in names:
        op_def = op_def_registry.get(name)
        why = record_op(record, op_def) if op_def else 'not in TensorFlow'
        missing += [(name, why)] if why else []
    return record.graph.SerializeToString(deterministic=True), len(record.graph.node), missing


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--out', required=True)
    parser.add_argument('--ops', default='.*', help='only those that the expression matches')
    parser.add_argument('--jobs', type=int, default=1, help='tables that are recorded side by side')
    args = parser.parse_args()
    families = {f: [n for n in names if re.fullmatch(args.ops, n)] for f, names in ops_by_family().items()}
    missing = []
    with zipfile.ZipFile(args.out, 'w', zipfile.ZIP_DEFLATED) as z, multiprocessing.Pool(args.jobs) as pool:
        for family, (graph, nodes, without) in zip(families, pool.imap(record_family, families.values())):
            info = zipfile.ZipInfo(family + '.pb')  # no time in it
            z.writestr(info, graph, zipfile.ZIP_DEFLATED, 9)
            print(family, nodes, file=sys.stderr, flush=True)
            missing += without
    for name, why in missing:
        print('not recorded:', name, why)


if __name__ == '__main__':
    main()
