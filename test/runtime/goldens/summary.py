import numpy as np
import tensorflow as tf


def cases(case):
    rng = np.random.default_rng(1)
    real = ['int8', 'uint8', 'int32', 'int64', 'uint64', 'float16', 'bfloat16', 'float32', 'float64']
    cast = lambda v, t: np.asarray(v).astype(tf.as_dtype(t).as_numpy_dtype)
    for t in real:
        case('ScalarSummary', tags='loss', values=cast(3, t))
        case('ScalarSummary', tags=['a', 'b'], values=cast([1, 0], t))
        case('HistogramSummary', tag='h', values=cast([[0, 1, 100], [7, 7, 2]], t))
    case('ScalarSummary', tags=np.array([], object), values=np.zeros([0], np.float32))
    case('ScalarSummary', tags=['a', 'b'], values=np.float32(1))
    case('ScalarSummary', tags=['a', 'b'], values=np.ones([2, 1], np.float32))
    case('ScalarSummary', tags='', values=np.float32(np.nan))
    case('HistogramSummary', tag='h', values=(rng.normal(size=100) * 10.0 ** rng.integers(-14, 22, 100)).astype(np.float32))
    case('HistogramSummary', tag='', values=np.array([-1e-13, 1e-13, -0.0, -1e30, 1e30, 1e-12, -1e-12], np.float64))
    case('HistogramSummary', tag='h', values=np.zeros([0], np.float32))
    case('HistogramSummary', tag='h', values=np.array([1, np.nan], np.float32))
    case('HistogramSummary', tag='h', values=np.array([1, -np.inf], np.float32))
    case('HistogramSummary', tag=['a', 'b'], values=np.ones([2], np.float32))
    metadata = tf.compat.v1.SummaryMetadata(display_name='x', plugin_data=dict(plugin_name='text')).SerializeToString()
    for value in [np.float32(1), np.arange(6, dtype=np.int64).reshape(2, 3), np.array(['a', 'bc'], object), np.zeros([0, 2], np.float32),
                  np.array([True, False]), np.array([1j], np.complex64)]:
        case('TensorSummary', tensor=value, name='node')
        for m in [b'', metadata]:
            case('TensorSummaryV2', tag='t', tensor=value, serialized_summary_metadata=m)
    sound = (rng.normal(size=(3, 5, 2)) * 0.7).astype(np.float32)
    for most in [1, 2, 4]:
        case('AudioSummaryV2', tag='s', tensor=sound, sample_rate=np.float32(16000), max_outputs=most)
        case('AudioSummaryV2', tag='s', tensor=sound[:, :, 0], sample_rate=np.float32(44100.5), max_outputs=most)
    case('AudioSummaryV2', tag='s', tensor=sound[0, :, 0], sample_rate=np.float32(16000))
    one = tf.compat.v1.Summary(value=[dict(tag='a', simple_value=1)]).SerializeToString()
    two = tf.compat.v1.Summary(value=[dict(tag='b', simple_value=0), dict(tag='c', simple_value=2)]).SerializeToString()
    bare = tf.compat.v1.Summary(value=[dict(node_name='n', simple_value=2)]).SerializeToString()
    for inputs in [[one], [one, two], [bare, bare], [np.array([one, two], object), b'']]:
        case('MergeSummary', inputs=inputs)
    case('MergeSummary', inputs=[one, one])
    case('MergeSummary', inputs=[b'\xff'])
    # the bytes of pictures are those of the library at hand: only what is refused
    case('ImageSummary', tag='i', tensor=np.zeros([1, 2, 2, 2], np.float32), max_images=3)
    case('ImageSummary', tag='i', tensor=np.zeros([2, 2, 3], np.float32), max_images=3)
