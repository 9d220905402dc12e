import numpy as np
import tensorflow as tf

STR = lambda v: np.asarray(v, dtype=object)
I64 = lambda v: np.asarray(v, np.int64)
I32 = lambda v: np.asarray(v, np.int32)


def cases(case):
    splits, ids = I64([0, 2, 2, 5]), I64([0, 0, 2, 2, 2])
    num, words = np.asarray([1, 2, 3, 4, 5], np.float32), STR(['a', 'b', 'c', 'd', 'e'])
    for v in [num, words, num.astype(np.int16)]:
        rest = STR('z') if v is words else v[:1].reshape([]) * 0 + v[4]
        for shape in [I64(-1), I64([-1, -1]), I64([2, -1]), I64([4, 2]), I64([-1, 5]), I64([3, 3, 3]), I64(3)]:
            case('RaggedTensorToTensor', shape=shape, values=v, default_value=rest, row_partition_tensors=[splits],
                 row_partition_types=['ROW_SPLITS'])
            case('RaggedTensorToTensor', shape=shape, values=v, default_value=rest, row_partition_tensors=[I64(4), ids],
                 row_partition_types=['FIRST_DIM_SIZE', 'VALUE_ROWIDS'])
        case('RaggedTensorToSparse', rt_nested_splits=[splits], rt_dense_values=v)
        case('RaggedTensorToSparse', rt_nested_splits=[I64([0, 2, 3]), splits], rt_dense_values=v)
        case('RaggedTensorToSparse', rt_nested_splits=[I64([0, 1, 1])], rt_dense_values=v)
        for index in [I32([2, 0, 1]), I64([[1, 2], [0, 0]]), I64(2), I64([]), I64([3]), I64([-1])]:
            case('RaggedGather', params_nested_splits=[splits], params_dense_values=v, indices=index,
                 OUTPUT_RAGGED_RANK=index.ndim)
            case('RaggedGather', params_nested_splits=[I64([0, 2, 2, 3]), splits], params_dense_values=v, indices=index,
                 OUTPUT_RAGGED_RANK=index.ndim + 1)
        case('RaggedFillEmptyRows', value_rowids=I64([0, 0, 2, 5, 5]), values=v, nrows=I64(7), default_value=rest)
        case('RaggedFillEmptyRows', value_rowids=I64([0, 0, 2, 5, 5]), values=v, nrows=I64(4), default_value=rest)
        case('RaggedFillEmptyRows', value_rowids=I64([]), values=v[:0], nrows=I64(2), default_value=rest)
    pairs = np.arange(10, dtype=np.float32).reshape([5, 2])
    case('RaggedTensorToTensor', shape=I64([-1, -1, 2]), values=pairs, default_value=np.float32([7, 8]), row_partition_tensors=[splits],
         row_partition_types=['ROW_SPLITS'])
    case('RaggedTensorToTensor', shape=I64(-1), values=pairs, default_value=np.float32([7]), row_partition_tensors=[I64([0, 1, 3]), splits],
         row_partition_types=['ROW_SPLITS', 'ROW_SPLITS'])
    case('RaggedTensorToTensor', shape=I32([3, 2, 1, 2]), values=pairs, default_value=np.float32(7), row_partition_tensors=[I32([0, 1, 3]), splits.astype(np.int32)],
         row_partition_types=['ROW_SPLITS', 'ROW_SPLITS'])
    case('RaggedTensorToTensor', shape=I64(-1), values=num[:0], default_value=np.float32(7), row_partition_tensors=[I64([0, 0])],
         row_partition_types=['ROW_SPLITS'])
    case('RaggedTensorToTensor', shape=I64(-1), values=num, default_value=np.float32(7), row_partition_tensors=[ids],
         row_partition_types=['VALUE_ROWIDS'])
    case('RaggedTensorToSparse', rt_nested_splits=[splits], rt_dense_values=pairs)
    case('RaggedGather', params_nested_splits=[splits], params_dense_values=pairs, indices=[2, 0], OUTPUT_RAGGED_RANK=1)

    for kw in [{}, {'minlength': 7}, {'maxlength': 3}, {'minlength': 2, 'maxlength': 5}]:
        for binary in [True, False]:
            for w in [np.zeros([0], np.float32), num]:
                if len(w) and binary:
                    continue
                values = I32([1, 4, 1, 0, 4])
                case('DenseCountSparseOutput', values=values, weights=w, binary_output=binary, **kw)
                case('RaggedCountSparseOutput', splits=splits, values=values, weights=w, binary_output=binary, **kw)
                case('SparseCountSparseOutput', indices=I64([[0, 1], [0, 2], [2, 0], [2, 1], [2, 2]]), values=values, dense_shape=I64([3, 4]),
                     weights=w, binary_output=binary, **kw)
    case('DenseCountSparseOutput', values=I64([[1, 2, 1], [0, 0, 9]]), weights=I64([]), binary_output=False)
    case('DenseCountSparseOutput', values=I64([[1, -2]]), weights=I64([]), binary_output=False)
    case('SparseCountSparseOutput', indices=I64([[0], [2]]), values=I64([3, 3]), dense_shape=I64([4]), weights=I32([]), binary_output=False)
    case('RaggedCountSparseOutput', splits=I64([0, 9]), values=I64([3, 3]), weights=I32([]), binary_output=False)
