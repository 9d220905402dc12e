import numpy as np
import tensorflow as tf

STR = lambda v: np.asarray(v, dtype=object)
I64 = lambda v: np.asarray(v, np.int64)
EMPTY = STR([]).reshape([0])


def feature(v):
    if v is None:
        return tf.train.Feature()
    if len(v) and isinstance(v[0], (str, bytes)):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=[x if isinstance(x, bytes) else x.encode() for x in v]))
    if len(v) and isinstance(v[0], float):
        return tf.train.Feature(float_list=tf.train.FloatList(value=v))
    return tf.train.Feature(int64_list=tf.train.Int64List(value=v))


def features(kw):
    return tf.train.Features(feature={k: feature(v) for k, v in kw.items()})


def example(**kw):
    return tf.train.Example(features=features(kw)).SerializeToString(deterministic=True)


def sequence(context, **lists):
    return tf.train.SequenceExample(
        context=features(context),
        feature_lists=tf.train.FeatureLists(feature_list={
            k: tf.train.FeatureList(feature=[feature(f) for f in v]) for k, v in lists.items()})).SerializeToString(deterministic=True)


def cases(case):
    for t in ['float16', 'bfloat16', 'float32', 'float64', 'int32', 'int64', 'uint8', 'int16', 'bool', 'complex64', 'complex128', 'uint16']:
        for little in [True, False]:
            case('DecodeRaw', bytes=STR([bytes([0, 1, 0, 0] * 8), bytes([1, 0, 1, 1] * 8)]), out_type=t, little_endian=little)
            if t not in ('bool', 'complex64', 'complex128'):
                case('DecodePaddedRaw', input_bytes=STR(['abc', 'defghijklm', '']), fixed_length=8, out_type=t, little_endian=little)
        x = np.asarray([0, 1, 0, 1]).astype(tf.as_dtype(t).as_numpy_dtype).reshape([2, 2])
        case('SerializeTensor', tensor=x)
        for y in [x, x[:0]]:
            case('ParseTensor', serialized=tf.make_tensor_proto(y).SerializeToString(), out_type=t)
        case('ParseTensor', serialized=tf.make_tensor_proto(np.ones([3], x.dtype) if t != 'string' else x).SerializeToString(), out_type=t)
    case('SerializeTensor', tensor=STR(['a', '', 'b' * 200]))
    case('SerializeTensor', tensor=STR('a'))
    case('SerializeTensor', tensor=np.zeros([2, 0], np.float32))
    case('ParseTensor', serialized=tf.make_tensor_proto(['a', 'b']).SerializeToString(), out_type='string')
    case('ParseTensor', serialized=tf.make_tensor_proto(['a', 'b']).SerializeToString(), out_type='float32')
    case('ParseTensor', serialized='rubbish', out_type='float32')
    case('DecodeRaw', bytes=STR(['abc']), out_type='int32')
    case('DecodeRaw', bytes=STR(['abc', 'a']), out_type='uint8')
    case('DecodeRaw', bytes=EMPTY, out_type='int32')
    case('DecodePaddedRaw', input_bytes=STR(['abc']), fixed_length=3, out_type='int32')

    for record in ['1,2.5,a', '1,,a', ',2,"b,""c"', '"7","8",""', '1,2', '1,2,3,4', '', 'x,1,a', '1,2,a"b', '1,2,"a"b', '1,2,"a', '-,1,NA',
                   '1,2,a\n', '99999999999,1,a', ' 1 , 2 ,a b ', '1,2,']:
        for quote in [True, False]:
            case('DecodeCSV', records=STR([record]), record_defaults=[np.int32([5]), np.float32([]), STR(['z'])], use_quote_delim=quote,
                 na_value='NA')
    case('DecodeCSV', records=STR('1|2'), record_defaults=[I64([]), np.float64(3)], field_delim='|')
    for columns in [[0, 2], [1, 2], [1, 3]]:
        case('DecodeCSV', records=STR(['1,2,3', '4,5,6']), record_defaults=[I64([7]), I64([8])], select_cols=columns)

    batch = STR([example(a=[1.0, 2.0], b=[3], c=['x', 'y']), example(a=[4.0, 5.0], c=[]), example(a=[6.0, 7.0], b=[8, 9], d=None)])
    one = batch[0]

    def parse(serialized, sparse=(), dense=(), ragged=(), names=EMPTY):
        case('ParseExampleV2', serialized=serialized, names=names, sparse_keys=STR([k for k, _ in sparse]).reshape([-1]),
             dense_keys=STR([k for k, _, _, _ in dense]).reshape([-1]), ragged_keys=STR([k for k, _, _ in ragged]).reshape([-1]),
             dense_defaults=[np.asarray(d, tf.as_dtype(t).as_numpy_dtype) for _, t, _, d in dense], num_sparse=len(sparse),
             sparse_types=[t for _, t in sparse], ragged_value_types=[t for _, t, _ in ragged],
             ragged_split_types=[s for _, _, s in ragged], dense_shapes=[s for _, _, s, _ in dense])

    for s in [batch, one, batch[:0]]:
        parse(s, sparse=[('b', 'int64'), ('c', 'string'), ('none', 'float32')])
        parse(s, dense=[('a', 'float32', [2], [])])
        parse(s, dense=[('a', 'float32', [1, 2], [[0, 0]]), ('b', 'int64', [None], [-1])])
        parse(s, dense=[('c', 'string', [None], ['q'])])
        parse(s, dense=[('b', 'int64', [1], [7])])
        parse(s, dense=[('b', 'int64', [], 7)])
        parse(s, dense=[('b', 'float32', [1], [7])])
        parse(s, dense=[('none', 'int64', [2], [])])
        parse(s, dense=[('none', 'int64', [2], [5, 6])])
        parse(s, ragged=[('b', 'int64', 'int32'), ('c', 'string', 'int64'), ('none', 'float32', 'int32')])
        parse(s, sparse=[('c', 'string')], dense=[('a', 'float32', [None, 2], [0])], ragged=[('b', 'int64', 'int64')])
        parse(s, dense=[('a', 'float32', [None, 3], [0])])
    case('ParseExample', serialized=batch, names=EMPTY, sparse_keys=['c'], dense_keys=['a'], dense_defaults=[np.zeros([0], np.float32)],
         sparse_types=['string'], dense_shapes=[[2]])
    case('ParseSingleExample', serialized=one, dense_defaults=[np.zeros([0], np.float32), np.asarray([1], np.int64)], num_sparse=1,
         sparse_keys=['c'], dense_keys=['a', 'zz'], sparse_types=['string'], dense_shapes=[[2], [1]])

    seq = STR([sequence({'n': [5], 's': ['p', 'q'], 'r': ['t']}, f=[[1.0, 2.0], [3.0, 4.0]], i=[[1], [2, 3], []], j=[[7, 8], []]),
               sequence({'n': [6]}, f=[[5.0, 6.0]], i=[])])
    for s in [seq, seq[1:]]:
        for f_missing in [True, False]:
            for key in ['f', 'zz']:
                case('ParseSequenceExampleV2', serialized=s, debug_name=EMPTY, context_sparse_keys=STR(['s']), context_dense_keys=STR(['n']),
                     context_ragged_keys=STR(['r']), feature_list_sparse_keys=STR(['i']), feature_list_dense_keys=STR([key]),
                     feature_list_ragged_keys=STR(['j']), feature_list_dense_missing_assumed_empty=[f_missing],
                     context_dense_defaults=[I64([])], Ncontext_sparse=1, context_sparse_types=['string'],
                     context_ragged_value_types=['string'], context_ragged_split_types=['int32'], context_dense_shapes=[[1]],
                     Nfeature_list_sparse=1, Nfeature_list_dense=1, feature_list_dense_types=['float32'],
                     feature_list_sparse_types=['int64'], feature_list_ragged_value_types=['int64'],
                     feature_list_ragged_split_types=['int64'], feature_list_dense_shapes=[[2]])
    case('ParseSequenceExample', serialized=seq, debug_name=EMPTY, context_dense_defaults=[I64([])],
         feature_list_dense_missing_assumed_empty=['zz'], context_sparse_keys=['s'], context_dense_keys=['n'],
         feature_list_sparse_keys=['i'], feature_list_dense_keys=['f', 'zz'], Ncontext_sparse=1, Ncontext_dense=1,
         Nfeature_list_sparse=1, Nfeature_list_dense=2, context_sparse_types=['string'], feature_list_dense_types=['float32', 'int64'],
         context_dense_shapes=[[1]], feature_list_sparse_types=['int64'], feature_list_dense_shapes=[[2], []])
    case('ParseSingleSequenceExample', serialized=seq[0], feature_list_dense_missing_assumed_empty=STR(['zz']), context_sparse_keys=['s'],
         context_dense_keys=['n'], feature_list_sparse_keys=['i'], feature_list_dense_keys=['f', 'zz'], context_dense_defaults=[I64([])],
         debug_name='', context_sparse_types=['string'], feature_list_dense_types=['float32', 'int64'], context_dense_shapes=[[1]],
         feature_list_sparse_types=['int64'], feature_list_dense_shapes=[[2], []])

    for text in ['{}', '{"features": {"feature": {"a": {"floatList": {"value": [1.5, "2", -3e2]}}}}}',
                 '{"features": {"feature": {"b": {"bytesList": {"value": ["YWI=", ""]}}}}}',
                 '{"features": {"feature": {"c": {"int64List": {"value": ["7", -8]}}}}}', '{"features"', '[]', '{"features": {"feature": {"c": {}}}}',
                 '{"features": {}}', '{"features": {"feature": {"c": {"int64List": {"value": ["x"]}}}}}']:
        case('DecodeJSONExample', json_examples=STR([text]))
