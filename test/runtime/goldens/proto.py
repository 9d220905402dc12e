import numpy as np
import tensorflow as tf
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

F = descriptor_pb2.FieldDescriptorProto
KINDS = {'double': 'float64', 'float': 'float32', 'int64': 'int64', 'uint64': 'uint64', 'int32': 'int32', 'fixed64': 'uint64',
         'fixed32': 'uint32', 'bool': 'bool', 'string': 'string', 'bytes': 'string', 'uint32': 'uint32', 'sfixed32': 'int32',
         'sfixed64': 'int64', 'sint32': 'int32', 'sint64': 'int64'}


def description(syntax):
    """A message with a field of each type, alone and repeated, an enumeration and a message in it."""
    file = descriptor_pb2.FileDescriptorProto(name=syntax + '.proto', package='a.b', syntax=syntax)
    message = file.message_type.add(name='M')
    inner = message.nested_type.add(name='Inner')
    inner.field.add(name='x', number=1, type=F.TYPE_INT32, label=F.LABEL_OPTIONAL)
    inner.field.add(name='deep', number=2, type=F.TYPE_STRING, label=F.LABEL_REPEATED)
    kind = message.enum_type.add(name='E')
    for number, name in enumerate(['A', 'B', 'C']):
        kind.value.add(name=name, number=number if syntax == 'proto3' else number + 4)
    n = 1
    for name in KINDS:
        for label in (F.LABEL_OPTIONAL, F.LABEL_REPEATED):
            message.field.add(name=name + ('s' if label == F.LABEL_REPEATED else ''), number=n, label=label, type=getattr(F, 'TYPE_' + name.upper()))
            n += 1 if n != 20 else 500
    for label, more in ((F.LABEL_OPTIONAL, ''), (F.LABEL_REPEATED, 's')):
        message.field.add(name='kind' + more, number=n, label=label, type=F.TYPE_ENUM, type_name='.a.b.M.E')
        message.field.add(name='inner' + more, number=n + 1, label=label, type=F.TYPE_MESSAGE, type_name='.a.b.M.Inner')
        n += 2
    if syntax == 'proto2':
        defaults = {'double': '-2.5', 'float': 'inf', 'int64': '-7', 'uint64': '18446744073709551615', 'bool': 'true', 'string': 'none',
                    'bytes': 'a\\001\\\\', 'kind': 'B', 'sint32': '-9'}
        for field in message.field:
            if field.name in defaults:
                field.default_value = defaults[field.name]
            if field.name in ('int32s', 'doubles', 'kinds'):
                field.options.packed = True
    else:
        next(f for f in message.field if f.name == 'int64s').options.packed = False
    return descriptor_pb2.FileDescriptorSet(file=[file])


def values(rng, name, many):
    base = name[:-1] if many else name
    n = rng.integers(0, 5) if many else 1
    if base in ('string', 'bytes'):
        return ['t%d' % v if base == 'string' else bytes([v, 0, 200]) for v in rng.integers(0, 100, n)]
    if base in ('double', 'float'):
        return [float(v) for v in rng.integers(-40, 40, n) / 8]
    low = 0 if base in ('bool', 'kind') or base.startswith(('uint', 'fixed')) else -100
    high = {'bool': 2, 'kind': 3}.get(base, 2**31 - 1 if rng.random() < .5 else 90)
    return [int(v) for v in rng.integers(low, high, n)]


def cases(case):
    rng = np.random.default_rng(4)
    for syntax in ('proto2', 'proto3'):
        files = description(syntax)
        source = b'bytes://' + files.SerializeToString(deterministic=True)
        pool = descriptor_pool.DescriptorPool()
        pool.Add(files.file[0])
        made = message_factory.GetMessageClass(pool.FindMessageTypeByName('a.b.M'))
        names = [f.name for f in files.file[0].message_type[0].field]
        types = ['int32' if n.startswith('kind') else 'string' if n.startswith('inner') else KINDS[n if n in KINDS else n[:-1]] for n in names]
        messages = []
        for share in (0, .5, 1, .7):
            m = made()
            for name in names:
                many = name not in KINDS and name not in ('kind', 'inner')
                if rng.random() >= share:
                    continue
                if name.startswith('inner'):
                    for part in [m.inners.add() for _ in range(2)] if many else [m.inner]:
                        part.x = int(rng.integers(0, 9))
                        part.deep.append('d')
                elif many:
                    got = values(rng, name, True)
                    getattr(m, name).extend([v + 4 for v in got] if name == 'kinds' and syntax == 'proto2' else got)
                else:
                    got = values(rng, name, False)[0]
                    setattr(m, name, got + 4 if name == 'kind' and syntax == 'proto2' else got)
            messages.append(m.SerializeToString(deterministic=True))
        common = dict(message_type='a.b.M', field_names=names, output_types=types, descriptor_source=source)
        case('DecodeProtoV2', bytes=np.array(messages, object).reshape(2, 2), **common)
        case('DecodeProtoV2', bytes=messages[0], **common)
        case('DecodeProtoV2', bytes=np.zeros([0], object).astype(str), **common)
        case('DecodeProtoV2', bytes=messages, **{**common, 'field_names': ['sint32s', 'float', 'uint32s'], 'output_types': ['int64', 'float64', 'uint64']})
        # the last of several counts; a wrong wire type, what is cut off, unknown fields
        number = {f.name: f.number for f in files.file[0].message_type[0].field}
        one = lambda name, wire, data: bytes([number[name] << 3 & 0x7f | wire]) + data if number[name] < 16 else b''
        for data in [one('int64', 0, b'\x05') + one('int64', 0, b'\x07'), one('int64', 1, b'12345678'), one('int64', 0, b''), one('double', 1, b'1234'),
                     one('doubles', 2, b'\x051234'), b'\xfa\x3f\x01x', b'\x07', one('int64s', 0, b'\x05')]:
            case('DecodeProtoV2', bytes=data, **{**common, 'field_names': ['int64', 'double', 'doubles', 'int64s'],
                                                 'output_types': ['int64', 'float64', 'float64', 'int64']})
        for wrong in [dict(field_names=['none'], output_types=['int64']), dict(field_names=['int32'], output_types=['float32']),
                      dict(message_type='a.M'), dict(message_format='other'), dict(field_names=['int32'], output_types=['int32', 'int32']),
                      dict(descriptor_source='/none'), dict(descriptor_source='bytes://x')]:
            case('DecodeProtoV2', bytes=messages, **{**common, **wrong})
        decoded = tf.raw_ops.DecodeProtoV2(bytes=messages, **common)
        encoding = {k: v for k, v in common.items() if k != 'output_types'}
        case('EncodeProto', sizes=decoded.sizes.numpy(), values=[v.numpy() for v in decoded.values], **encoding)
        chosen = dict(message_type='a.b.M', descriptor_source=source)
        # of packed int32 as int64 TensorFlow loses the sign: that is left out
        numbers = np.int64([[1, -2, 3], [4, 5, 6]])
        case('EncodeProto', sizes=np.int32([[3], [1]]), values=[numbers], field_names=['int64s'], **chosen)
        case('EncodeProto', sizes=np.int32([[1, 2], [0, 3]]), values=[numbers[:, :1], numbers], field_names=['int64', 'sint64s'], **chosen)
        for sizes, name in [([[4], [1]], 'int64s'), ([[2], [1]], 'int64'), ([[1, 1], [1, 1]], 'int64s'), ([1, 1], 'int64s')]:
            case('EncodeProto', sizes=np.int32(sizes), values=[numbers], field_names=[name], **chosen)
