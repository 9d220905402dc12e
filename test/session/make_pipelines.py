"""Input pipelines on TensorFlow (needs tensorflow-cpu from PyPI): tf.data graphs and queue-runner graphs, run to their end.
Writes each graph and all it gave to goldens/pipelines.json; files are read from test/data/samples/tfrecord_pipeline and goldens/."""
import base64
import json
import os
import zlib

os.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'
import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_eager_execution()
HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'goldens')
cases = []


def tensor(value):
    # numpy's byte strings lose their trailing zeros
    value = np.asarray(value, dtype=object if isinstance(value, bytes) else None)
    if value.dtype == object or value.dtype.kind == 'S':
        data = [v.decode('latin-1') for v in value.reshape(-1)]
        return {'dtype': 'string', 'dims': list(value.shape), 'data': data}
    data = [v.item() for v in value.reshape(-1)]
    return {'dtype': value.dtype.name, 'dims': list(value.shape), 'data': data}


def run(name, make, files=(), limit=60):
    """`make(files)` gives the tensors of a step; an iterator's initialiser or queue runners are found in the graph."""
    with tf.Graph().as_default() as graph:
        tf1.set_random_seed(5)
        names = tf1.placeholder(tf.string, [None], 'files')
        fetches, init = make(names)
        fetches = tf.nest.flatten(fetches)
        runners = tf1.get_collection(tf1.GraphKeys.QUEUE_RUNNERS)
        text = base64.b64encode(graph.as_graph_def().SerializeToString()).decode()
        case = {'name': name, 'graph': text, 'fetches': [t.name for t in fetches], 'files': list(files),
                'init': init.name if init is not None else '', 'steps': [],
                'runners': [{'enqueue': [op.name for op in r.enqueue_ops], 'close': r.close_op.name} for r in runners]}
        config = tf1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=4)
        with tf1.Session(graph=graph, config=config) as session:
            if init is not None:
                session.run(init, {names: [os.path.join(HERE, f) for f in files]})
            locals_ = tf1.local_variables()
            if locals_:
                op = tf1.local_variables_initializer()
                session.run(op)
            coordinator = tf1.train.Coordinator()
            threads = tf1.train.start_queue_runners(session, coordinator)
            try:
                while len(case['steps']) < limit:
                    case['steps'].append([tensor(v) for v in session.run(fetches)])
            except tf.errors.OutOfRangeError:
                case['ends'] = True
            coordinator.request_stop()
            coordinator.join(threads, stop_grace_period_secs=5, ignore_live_threads=True)
        cases.append(case)


def dataset(make):
    def build(files):
        iterator = tf1.data.make_initializable_iterator(make(files))
        return iterator.get_next(), iterator.initializer
    return build


D = tf1.data.Dataset
run('slices', dataset(lambda f: D.from_tensor_slices((np.arange(12.).reshape(6, 2).astype(np.float32), ['a', 'b', 'c', 'd', 'e', 'f']))))
run('map_batch', dataset(lambda f: D.range(11).map(lambda x: (x * x, tf.as_string(x))).batch(4)))
run('parallel_map_prefetch', dataset(lambda f: D.range(20).map(lambda x: x * 3 + 1, num_parallel_calls=4).batch(3, drop_remainder=True).prefetch(2)))
run('shuffle_repeat', dataset(lambda f: D.range(7).shuffle(4, seed=3).repeat(3)))
run('shuffle_whole', dataset(lambda f: D.range(16).shuffle(100, seed=9, reshuffle_each_iteration=False).repeat(2).batch(5)))
run('interleave', dataset(lambda f: D.range(1, 5).interleave(lambda x: D.from_tensors(x).repeat(x), cycle_length=3, block_length=2)))
run('parallel_interleave', dataset(lambda f: D.range(1, 6).interleave(lambda x: D.range(x * 10, x * 10 + 3), cycle_length=2, block_length=1, num_parallel_calls=2)))
run('flat_map_filter', dataset(lambda f: D.range(5).flat_map(lambda x: D.range(x)).filter(lambda x: x % 2 < 1)))
run('zip_concatenate', dataset(lambda f: D.zip((D.range(3), D.range(10, 20))).concatenate(D.zip((D.range(2), D.range(2))))))
run('padded', dataset(lambda f: D.range(1, 6).map(lambda x: tf.fill([x], x)).padded_batch(2, [None])))
run('take_skip', dataset(lambda f: D.range(20).skip(3).take(5).cache().repeat(2)))
run('scan_window', dataset(lambda f: D.range(9).window(3, 2).flat_map(lambda w: w.batch(3))))
run('group_by_window', dataset(lambda f: D.range(40).group_by_window(lambda v: v % 3, lambda k, d: d.batch(10), window_size_func=lambda k: k + 2)))
run('rebatch', dataset(lambda f: D.range(23).batch(4).rebatch([3, 2])))
run('unique', dataset(lambda f: D.from_tensor_slices(['b', 'a', 'b', 'c', 'a'] * 6).unique()))
run('choose', dataset(lambda f: D.choose_from_datasets(
    [D.range(5), D.range(10, 30)], D.range(30).map(lambda v: v % 2), stop_on_empty_dataset=False)))
run('sample_from', dataset(lambda f: D.sample_from_datasets([D.range(30), D.range(100, 130)], weights=[0.7, 0.3], seed=11)))
run('random', dataset(lambda f: D.random(seed=5).take(9)))
run('sparse_slices', dataset(lambda f: D.from_sparse_tensor_slices(tf.sparse.SparseTensor([[0, 1], [0, 3], [2, 0]], [1., 2., 3.], [4, 5]))))
EXAMPLES = [{'d': [1, 2], 's': [b'a', b'b'], 'r': [1.5]}, {'d': [3, 4], 'r': [2.5, 3.5]}, {'d': [5, 6], 's': [b'c']}]


def example(values):
    kinds = {int: lambda v: tf.train.Feature(int64_list=tf.train.Int64List(value=v)),
             float: lambda v: tf.train.Feature(float_list=tf.train.FloatList(value=v)),
             bytes: lambda v: tf.train.Feature(bytes_list=tf.train.BytesList(value=v))}
    features = {key: kinds[type(v[0])](v) for key, v in values.items()}
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString(deterministic=True)


def parsed(files):
    kinds = {'s': tf.io.VarLenFeature(tf.string), 'd': tf.io.FixedLenFeature([2], tf.int64), 'r': tf.io.RaggedFeature(tf.float32)}
    data = D.from_tensor_slices([example(e) for e in EXAMPLES]).batch(2).apply(tf.data.experimental.parse_example_dataset(kinds, 2))
    return data.map(lambda f: (f['d'], f['s'].indices, f['s'].values, f['r'].flat_values, f['r'].row_splits))


run('parse_examples', dataset(parsed))
run('dense_to_sparse', dataset(lambda f: D.range(1, 6).map(lambda x: tf.fill([x, 2], x)).apply(
    tf.data.experimental.dense_to_sparse_batch(2, [None, 3])).map(lambda s: (s.indices, s.values, s.dense_shape))))
FEATURES = {'label': tf.io.FixedLenFeature([], tf.int64)}
RECORDS = '../../data/samples/tfrecord_pipeline/digits.tfrecord'
parse = lambda r: tf.io.parse_single_example(r, FEATURES)['label']
run('tfrecord', dataset(lambda f: tf1.data.TFRecordDataset(f).map(parse).batch(50)), [RECORDS])
run('tfrecord_gzip', dataset(lambda f: tf1.data.TFRecordDataset(f, 'GZIP').map(parse).batch(50)), [RECORDS + '.gz'])
with open(os.path.join(HERE, 'records.tfrecord.zlib'), 'wb') as out:
    content = open(os.path.join(HERE, RECORDS), 'rb').read()
    packer = zlib.compressobj(9)
    out.write(packer.compress(content) + packer.flush())
run('tfrecord_zlib', dataset(lambda f: tf1.data.TFRecordDataset(f, 'ZLIB').map(parse).batch(50)), ['records.tfrecord.zlib'])
with open(os.path.join(HERE, 'lines.txt'), 'w') as out:
    out.write('one\ntwo\n\nfour\r\nfive')
with open(os.path.join(HERE, 'more.txt'), 'w') as out:
    out.write('six\nseven\n')
LINES = ['lines.txt', 'more.txt']
run('text_lines', dataset(lambda f: tf1.data.TextLineDataset(f)), LINES)
run('fixed_length', dataset(lambda f: tf1.data.FixedLengthRecordDataset(f, 3, header_bytes=1)), LINES)


def reader(make, batch=None):
    """Names through a queue that is filled once, one reader behind it."""
    def build(files):
        names = tf1.FIFOQueue(10, tf.string, shapes=[[]])
        fill = names.enqueue_many(files)
        with tf.control_dependencies([fill]):
            fill = names.close()
        _, value = make().read(names)
        return (value if batch is None else batch(value)), fill
    return build


run('text_line_reader', reader(lambda: tf1.TextLineReader(skip_header_lines=1)), LINES)
run('whole_file_reader', reader(tf1.WholeFileReader), LINES)
run('fixed_length_reader', reader(lambda: tf1.FixedLengthRecordReader(3, header_bytes=1)), LINES)
ZLIB = tf1.python_io.TFRecordOptions(tf1.python_io.TFRecordCompressionType.ZLIB)
run('tfrecord_reader', reader(lambda: tf1.TFRecordReader(options=ZLIB)), ['records.tfrecord.zlib'], limit=8)
run('queue_runner_batch', reader(tf1.TextLineReader, lambda v: tf1.train.batch([v], 2, num_threads=1, allow_smaller_final_batch=True)), LINES)


def producer(files):
    number = tf1.train.range_input_producer(10, num_epochs=1, shuffle=False).dequeue()
    return tf1.train.batch([number, tf.cast(number, tf.float32) / 2], 4, allow_smaller_final_batch=True), tf1.local_variables_initializer()


run('range_producer', producer)
with open(os.path.join(HERE, 'pipelines.json'), 'w') as out:
    out.write('[\n' + ',\n'.join(json.dumps(case) for case in cases) + '\n]\n')
print(len(cases), [(c['name'], len(c['steps'])) for c in cases])
