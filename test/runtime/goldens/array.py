import numpy as np
import tensorflow as tf

STR = lambda v: np.asarray(v, dtype=object)
NONE = np.zeros([0], np.int32)
I64 = lambda v: np.asarray(v, np.int64)


def cases(case):
    grid = STR([['a', 'b', 'c'], ['d', 'e', 'f']])
    cube = np.arange(24, dtype=np.int16).reshape([2, 3, 4])
    for x in [grid, cube]:
        r = x.ndim
        case('Identity', input=x)
        case('Shape', input=x, out_type=tf.int64)
        case('ShapeN', input=[x, x])
        case('Size', input=x)
        case('Rank', input=x)
        case('ZerosLike', x=x)
        for shape in [[-1], [3, -1], [x.size, 1]]:
            case('Reshape', tensor=x, shape=shape)
        for axis in [0, -1, r, 1]:
            case('ExpandDims', input=x, axis=axis)
        case('Squeeze', input=x[:1], axis=[0])
        case('Squeeze', input=x[:1, :1])
        for axis in [0, 1, -1]:
            case('ConcatV2', values=[x, x[:, :]], axis=axis)
            case('Concat', concat_dim=axis, values=[x, x])
            case('Pack', values=[x, x], axis=axis)
            case('Unpack', value=x, num=x.shape[axis], axis=axis)
            case('GatherV2', params=x, indices=[[1, 0], [0, 1]], axis=axis)
            case('ReverseV2', tensor=x, axis=[axis])
            case('UniqueV2', x=x, axis=[axis])
        case('ConcatV2', values=[x, x[:, :1]], axis=1)
        case('Split', axis=1, value=x, num_split=3)
        case('SplitV', value=x, size_splits=[1, -1], axis=1, num_split=2)
        case('Transpose', x=x, perm=list(range(r))[::-1])
        case('ConjugateTranspose', x=x, perm=list(range(r))[::-1])
        case('Tile', input=x, multiples=[2] * r)
        case('BroadcastTo', input=x[:, :1], shape=[2, 2] + list(x.shape[1:]) if False else [2] + list(x.shape[1:]))
        case('Slice', input=x, begin=[0, 1] + [0] * (r - 2), size=[1, -1] + [2] * (r - 2))
        case('Reverse', tensor=x, dims=[True] + [False] * (r - 1))
        case('PadV2', input=x, paddings=[[1, 0]] + [[0, 2]] * (r - 1), constant_values=STR('z') if x is grid else np.int16(9))
        case('GatherV2', params=x, indices=[[1, 0], [0, 2]], axis=1, batch_dims=1)
        case('GatherV2', params=x, indices=[5], axis=0)
        case('GatherNd', params=x, indices=[[[0, 1]], [[1, 2]]])
        case('GatherNd', params=x, indices=[[0], [1], [1]])
        case('GatherNd', params=x, indices=np.zeros([2, 0], np.int32))
        case('GatherNd', params=x, indices=[[2]])
        for spec in [dict(begin=[0, -1], end=[2, -3], strides=[1, -1]), dict(begin=[1, 0], end=[2, 1], strides=[1, 1], shrink_axis_mask=1),
                     dict(begin=[0, 0], end=[0, 2], strides=[1, 1], ellipsis_mask=1), dict(begin=[0, 1], end=[0, 3], strides=[1, 2], new_axis_mask=1),
                     dict(begin=[5, 5], end=[9, 9], strides=[1, 1]), dict(begin=[0, 0], end=[0, 0], strides=[1, -1], begin_mask=3, end_mask=3)]:
            case('StridedSlice', input=x, **spec)
        case('Select', condition=[True, False], x=x, y=x[::-1])
        case('Select', condition=True, x=x, y=x[::-1])
        case('SelectV2', condition=[[True], [False]] if r == 2 else [[[True]], [[False]]], t=x, e=x[:1])
        case('DynamicPartition', data=x, partitions=[1, 0], num_partitions=3)
        case('DynamicStitch', indices=[[2, 0], [1, 0]], data=[x, x[::-1]])
        case('TensorScatterUpdate', tensor=x, indices=[[1]], updates=x[:1])
        case('EnsureShape', input=x, shape=[2] + [None] * (r - 1))
    case('Fill', dims=[2, 2], value=STR('x'))
    case('Fill', dims=NONE, value=STR('x'))
    case('Fill', dims=[2, -1], value=STR('x'))
    case('ScatterNd', indices=[[1], [3], [1]], updates=STR(['a', 'b', 'c']), shape=[5])
    case('Equal', x=grid, y=STR(['a', 'e', 'f']))
    case('NotEqual', x=grid, y=STR(['a', 'e', 'f']))
    case('Equal', x=grid, y=STR(['a', 'e']), incompatible_shape_error=False)
    case('Add', x=grid, y=STR(['x', 'y', 'z']))
    words = STR(['a', 'b', 'a', 'c', 'b', 'a'])
    for op in ['Unique', 'UniqueWithCounts']:
        case(op, x=words)
        case(op, x=I64([3, 1, 3, -1]), out_idx=tf.int64)
        case(op, x=np.asarray([0.0, -0.0, np.nan, np.nan, 1], np.float32))
    case('UniqueWithCountsV2', x=words, axis=NONE)
    case('UniqueV2', x=I64([[1, 1, 2], [3, 3, 4]]), axis=[1])
    case('ListDiff', x=words, y=STR(['b', 'q']))
    case('ListDiff', x=np.asarray([1., 2, 3, np.nan], np.float64), y=np.asarray([2., np.nan], np.float64), out_idx=tf.int64)
    case('Bitcast', input=np.asarray([1, 2], np.int64), type=tf.int32)
    case('Bitcast', input=np.asarray([[1, 2]], np.int32), type=tf.int64)
    for shape in [[-1, -1], [5], [-2, 3]]:
        case('Reshape', tensor=grid, shape=shape)
    for x in [grid, cube]:
        pads = [[1, 0], [0, 1]] + [[0, 0]] * (x.ndim - 2)
        for mode in ['REFLECT', 'SYMMETRIC']:
            case('MirrorPad', input=x, paddings=pads, mode=mode)
            case('MirrorPad', input=x, paddings=[[2, 2], [2, 2]] + [[0, 0]] * (x.ndim - 2), mode=mode)
        case('ReverseSequence', input=x, seq_lengths=[2, 3], seq_dim=1, batch_dim=0)
        case('ReverseSequence', input=x, seq_lengths=I64([2, 1, 0]), seq_dim=0, batch_dim=1)
        case('Roll', input=x, shift=[1, -2], axis=[0, 1])
    for t in ['int64', 'int8', 'float16', 'bfloat16', 'float64', 'bool', 'complex64']:
        x = np.asarray([[0, 1, 2], [1, 0, 3]]).astype(tf.as_dtype(t).as_numpy_dtype)
        for op in ['Equal', 'NotEqual']:
            case(op, x=x, y=x[1:])
    case('Equal', x=np.float32([np.nan, 0.0]), y=np.float32([np.nan, -0.0]))
    for indices in [np.asarray([0, 3, -1, 2], np.int32), np.asarray([[0, 1, 2], [7, 2, -1]], np.int8), np.asarray(1, np.int64)]:
        for axis in [-1, 0, 1]:
            if axis <= indices.ndim:
                case('OneHot', indices=indices, depth=3, on_value=np.asarray('on', object), off_value=np.asarray('off', object), axis=axis)

    blocks = STR([[[[str(8 * i + 2 * j + k) for k in range(2)] for j in range(4)] for i in range(2)]])
    case('SpaceToDepth', input=blocks, block_size=2)
    case('DepthToSpace', input=blocks.reshape([1, 2, 1, 8]), block_size=2)
    case('InplaceUpdate', x=grid, i=[1, -2], v=STR([['x', 'y', 'z'], ['u', 'v', 'w']]))
    case('InplaceUpdate', x=grid, i=[0, 1], v=STR([['x', 'y', 'z']]))
    for mask in [0, 1]:
        case('StridedSliceGrad', shape=[2, 3], begin=[1, 0], end=[2, 3], strides=[1, 2], dy=STR(['p', 'q'] if mask else [['p', 'q']]),
             shrink_axis_mask=mask)
    case('StridedSliceGrad', shape=[2, 3], begin=[1, 0], end=[2, 3], strides=[1, 2], dy=STR([['p']]))
