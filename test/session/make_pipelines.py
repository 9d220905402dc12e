"""Input pipelines on TensorFlow (needs tensorflow-cpu from PyPI): tf.data graphs and queue-runner graphs, run to their end.
Writes each graph and all it gave to goldens/pipelines.json; files are read from test/data/samples/tfrecord_pipeline and goldens/."""
import base64
import json
import os
import zlib

os.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'
import numpy as np
import tensorflow as tf
from tensorflow.python.data.ops import dataset_ops
from tensorflow.python.framework import function as function_lib

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


# operations that Python no longer writes, or writes elsewhere; each by its definition
def of(dtype, *dims):
    return tf.TensorSpec(dims, dtype)


def variant(op, spec, **inputs):
    """The dataset of a raw op."""
    flat = tf.nest.flatten(spec)
    inputs = {k: v._variant_tensor if isinstance(v, tf.data.Dataset) else v for k, v in inputs.items()}
    if 'record_defaults' not in inputs:
        inputs['output_types'] = [s.dtype for s in flat]
    made = getattr(tf.raw_ops, op)(output_shapes=[s.shape for s in flat], **inputs)
    return dataset_ops._VariantDataset(made, spec)


LONG = of(tf.int64)
unary = lambda op, **inputs: lambda f: variant(op, LONG, input_dataset=D.range(12), **inputs)
I64 = np.int64
for op in ['ChooseFastestDataset', 'ExperimentalChooseFastestDataset']:
    run(op, dataset(lambda f: variant(op, LONG, input_datasets=[D.range(5)._variant_tensor, D.range(5)._variant_tensor], num_experiments=2)))
run('AutoShardData', dataset(unary('AutoShardDataset', num_workers=I64(3), index=I64(1), auto_shard_policy=2)))
run('ExperimentalAutoShard', dataset(unary('ExperimentalAutoShardDataset', num_workers=I64(1), index=I64(0))))
for op in ['BytesProducedStats', 'LatencyStats']:
    run('Experimental' + op, dataset(unary('Experimental%sDataset' % op, tag='a')))
for op in ['IgnoreErrors', 'NonSerializable', 'Unique']:
    run('Experimental' + op, dataset(unary('Experimental%sDataset' % op)))
run('ExperimentalMaxIntraOp', dataset(unary('ExperimentalMaxIntraOpParallelismDataset', max_intra_op_parallelism=I64(1))))
run('ExperimentalPrivateThreadPool', dataset(unary('ExperimentalPrivateThreadPoolDataset', num_threads=I64(1))))
run('ExperimentalSleep', dataset(unary('ExperimentalSleepDataset', sleep_microseconds=I64(10))))
run('ExperimentalSlidingWindow', dataset(lambda f: variant('ExperimentalSlidingWindowDataset', of(tf.int64, None), input_dataset=D.range(7),
                                                           window_size=I64(3), window_shift=I64(2), window_stride=I64(1))))
run('ExperimentalUnbatch', dataset(lambda f: variant('ExperimentalUnbatchDataset', LONG, input_dataset=D.range(7).batch(3))))
run('ExperimentalRebatch', dataset(lambda f: variant('ExperimentalRebatchDataset', of(tf.int64, None), input_dataset=D.range(12).batch(4),
                                                     num_replicas=I64(2))))
run('ExperimentalDenseToSparse', dataset(lambda f: variant(
    'ExperimentalDenseToSparseBatchDataset', of(tf.variant, 3), input_dataset=D.range(1, 6).map(lambda x: tf.fill([x], x)),
    batch_size=I64(2), row_shape=I64([6])).map(lambda s: tf.raw_ops.DeserializeSparse(serialized_sparse=s, dtype=tf.int64))))
run('ExperimentalDirectedInterleave', dataset(lambda f: variant(
    'ExperimentalDirectedInterleaveDataset', LONG, selector_input_dataset=D.from_tensor_slices(I64([1, 0, 1, 1])),
    data_input_datasets=[D.range(5)._variant_tensor, D.range(10, 15)._variant_tensor])))
for op in ['ThreadPool', 'ExperimentalThreadPool']:
    run(op, dataset(lambda f: variant(op + 'Dataset', LONG, input_dataset=D.range(4), thread_pool=getattr(tf.raw_ops, op + 'Handle')(
        num_threads=2, display_name='pool'))))
for op, handle in [('SetStatsAggregatorDataset', 'StatsAggregatorHandleV2'), ('ExperimentalSetStatsAggregatorDataset', 'ExperimentalStatsAggregatorHandle')]:
    run(op, dataset(lambda f: variant(op, LONG, input_dataset=D.range(4), stats_aggregator=getattr(tf.raw_ops, handle)(), tag='a', counter_prefix='b')))


def function(*signature):
    return lambda f: function_lib.Defun(*signature)(f)


def mapped(files):
    f = function(tf.int64)(lambda x: x * x)
    return variant('ExperimentalMapAndBatchDataset', of(tf.int64, None), input_dataset=D.range(7), f=f, other_arguments=[], batch_size=I64(3),
                   num_parallel_calls=I64(2), drop_remainder=False)


run('ExperimentalMapAndBatch', dataset(mapped))
run('ExperimentalScan', dataset(lambda files: variant(
    'ExperimentalScanDataset', LONG, input_dataset=D.range(6), initial_state=[I64(10)], other_arguments=[],
    f=function(tf.int64, tf.int64)(lambda s, x: (s + x, s)))))
run('ExperimentalTakeWhile', dataset(lambda files: variant(
    'ExperimentalTakeWhileDataset', LONG, input_dataset=D.range(6), other_arguments=[], predicate=function(tf.int64)(lambda x: x < 4))))
run('ExperimentalParallelInterleave', dataset(lambda files: variant(
    'ExperimentalParallelInterleaveDataset', LONG, input_dataset=D.range(1, 4), other_arguments=[], cycle_length=I64(2), block_length=I64(1),
    sloppy=False, buffer_output_elements=I64(1), prefetch_input_elements=I64(1),
    f=function(tf.int64)(lambda x: D.range(x * 10, x * 10 + 3)._variant_tensor))))
run('ExperimentalGroupByReducer', dataset(lambda files: variant(
    'ExperimentalGroupByReducerDataset', LONG, input_dataset=D.range(10), key_func=function(tf.int64)(lambda x: x % 3),
    init_func=function(tf.int64)(lambda k: k * 100), reduce_func=function(tf.int64, tf.int64)(lambda s, x: s + x),
    finalize_func=function(tf.int64)(lambda s: s + 1), key_func_other_arguments=[], init_func_other_arguments=[],
    reduce_func_other_arguments=[], finalize_func_other_arguments=[])))
run('ExperimentalGroupByWindow', dataset(lambda files: variant(
    'ExperimentalGroupByWindowDataset', of(tf.int64, None), input_dataset=D.range(20), key_func=function(tf.int64)(lambda x: x % 3),
    reduce_func=function(tf.int64, tf.variant)(lambda k, d: dataset_ops._VariantDataset(d, of(tf.int64)).batch(10)._variant_tensor),
    window_size_func=function(tf.int64)(lambda k: k + 2), key_func_other_arguments=[], reduce_func_other_arguments=[],
    window_size_func_other_arguments=[])))
run('ExperimentalParseExample', dataset(lambda f: variant(
    'ExperimentalParseExampleDataset', (of(tf.int64, None, 2), of(tf.variant, 3)), input_dataset=D.from_tensor_slices(
        [example(e) for e in EXAMPLES]).batch(2), num_parallel_calls=I64(2), dense_defaults=[np.zeros(0, I64)], sparse_keys=['s'], dense_keys=['d'],
    sparse_types=[tf.string], dense_shapes=[[2]]).map(lambda d, s: (d, tf.raw_ops.DeserializeSparse(serialized_sparse=s, dtype=tf.string)))))
run('fastest_branch', dataset(lambda files: variant(
    'ChooseFastestBranchDataset', LONG, input_dataset=D.range(12), ratio_numerator=I64(1), ratio_denominator=I64(1), num_elements_per_branch=2,
    other_arguments=[], other_arguments_lengths=[0, 0],
    branches=[function(tf.variant)(lambda d: dataset_ops._VariantDataset(d, of(tf.int64)).map(lambda x: x + 5)._variant_tensor)] * 2)))


def map_defun(files):
    x, y = D.range(3).map(lambda v: (tf.range(v, v + 5), tf.fill([5, 2], v))).make_one_shot_iterator().get_next()
    f = function(tf.int64, tf.int64, tf.int64)(lambda a, b, c: (a * c, tf.reduce_sum(b) + tf.range(3, dtype=tf.int64)))
    return tf.raw_ops.MapDefun(arguments=[x, y], captured_inputs=[I64(7)], output_types=[tf.int64] * 2, output_shapes=[[], [3]], f=f), None


run('map_defun', map_defun)


def multi_device(files):
    kind = dict(output_types=[tf.int64], output_shapes=[[]])
    handle = tf.raw_ops.MultiDeviceIterator(devices=['/cpu:0', '/cpu:1', '/cpu:2'], shared_name='multi', container='', **kind)
    incarnation = tf1.get_variable('incarnation', [], tf.int64, collections=[], initializer=tf1.zeros_initializer())
    init = tf1.assign(incarnation, tf.raw_ops.MultiDeviceIteratorInit(dataset=D.range(9)._variant_tensor, multi_device_iterator=handle,
                                                                      max_buffer_size=I64(4)))
    text = tf.raw_ops.MultiDeviceIteratorToStringHandle(multi_device_iterator=handle)
    again = tf.raw_ops.MultiDeviceIteratorFromStringHandle(string_handle=text, **kind)
    return [tf.raw_ops.MultiDeviceIteratorGetNextFromShard(multi_device_iterator=again, shard_num=np.int32(k), incarnation_id=incarnation, **kind)[0]
            for k in (1, 0, 2)], init.op


run('multi_device', multi_device)


def table(files):
    handle = tf.raw_ops.HashTableV2(key_dtype=tf.int64, value_dtype=tf.string)
    init = tf.raw_ops.InitializeTableFromDataset(table_handle=handle, dataset=D.range(5).map(lambda x: (x * x, tf.as_string(x)))._variant_tensor)
    one = D.from_tensor_slices(I64([4, 5, 16])).make_one_shot_iterator().get_next()
    return tf.raw_ops.LookupTableFindV2(table_handle=handle, keys=one, default_value='none'), init


run('table_from_dataset', table)
with open(os.path.join(HERE, 'table.csv'), 'w') as out:
    out.write('id,name,x\n1,"a, ""b""",0.5\r\n2,,-\n3,"two\nlines", 2e3\n4,c,\n')
for columns in [dict(header=True), dict(header=True, na_value='-', select_cols=[1, 2]), dict(header=True, na_value='-', exclude_cols=[1])]:
    kinds = [[np.int64(-1)], [''], [np.float32(7)]]
    kept = [k for i, k in enumerate(kinds) if i in columns.get('select_cols', range(3)) and i not in columns.get('exclude_cols', [])]
    run('csv_%d' % len(columns) + ''.join(sorted(columns)[0][:2]), dataset(lambda f: tf.data.experimental.CsvDataset(f, kept, **columns).apply(
        tf1.data.experimental.ignore_errors())), ['table.csv'])
with open(os.path.join(HERE, 'damaged.csv'), 'w') as out: # what is wrong with quotes, and where the next record begins
    out.write(' -b\r\n"l\nm""x,y" \r"x,y"2.5;\n"l\nm",\r,""\r\n\t,\ra"q"b,\n"q"2.5"l\nm"2.5"l\nm",c\r\nd,e,f\r\n"g ""h""",i\n\nj\n"k,l')
run('csv_damaged', dataset(lambda f: tf.data.experimental.CsvDataset(f, [tf.string, ['']]).apply(tf.data.experimental.ignore_errors())),
    ['damaged.csv'])
csv = dict(compression_type='', buffer_size=I64(100), header=True, field_delim=',', use_quote_delim=True, na_value='-', select_cols=np.zeros(0, I64),
           record_defaults=[I64([-1]), [''], np.float32([7])])
for op in ['CSVDataset', 'ExperimentalCSVDataset']:
    run(op, dataset(lambda f: variant(op, (of(tf.int64), of(tf.string), of(tf.float32)), filenames=f, **csv)), ['table.csv'])
run('ExperimentalMatchingFiles', dataset(lambda f: dataset_ops._VariantDataset(
    tf.raw_ops.ExperimentalMatchingFilesDataset(patterns=f), of(tf.string)).map(lambda s: tf.strings.substr(s, -4, 4))), ['*.txt'])
SAVED = os.path.join(HERE, 'saved')
if not os.path.exists(SAVED):
    pairs = (of(tf.int64), of(tf.string, None))
    with tf.Graph().as_default(), tf1.Session() as session:
        data = D.range(7).map(lambda x: (x, tf.fill([x % 3], tf.as_string(x))))
        session.run(tf.raw_ops.SaveDataset(input_dataset=data._variant_tensor, path=SAVED, compression='GZIP', shard_func_other_args=[],
                                           shard_func=function(tf.int64, tf.string)(lambda x, y: x % 2)))
run('load', dataset(lambda f: variant('LoadDataset', (of(tf.int64), of(tf.string, None)), path=f[0], compression='GZIP', reader_func_other_args=[],
                                      reader_func=function(tf.variant)(lambda d: dataset_ops._VariantDataset(d, tf.data.DatasetSpec(
                                          (of(tf.int64), of(tf.string, None)))).flat_map(lambda x: x)._variant_tensor))), ['saved'])


def producer(files):
    number = tf1.train.range_input_producer(10, num_epochs=1, shuffle=False).dequeue()
    return tf1.train.batch([number, tf.cast(number, tf.float32) / 2], 4, allow_smaller_final_batch=True), tf1.local_variables_initializer()


run('range_producer', producer)
with open(os.path.join(HERE, 'pipelines.json'), 'w') as out:
    out.write('[\n' + ',\n'.join(json.dumps(case) for case in cases) + '\n]\n')
print(len(cases), [(c['name'], len(c['steps'])) for c in cases])
