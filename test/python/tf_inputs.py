"""tf_inputs.py [PROGRAM...]: inputs of programs for tf.compat.v1: queues and their runners, readers, datasets, Python functions, tables, summaries."""
import os
import threading

import numpy as np
import tensorflow as tf
from tensorflow.python.client import timeline

from tf_programs import main, program, raised, tf1

DATA = np.random.default_rng(0).normal(size=(10, 4)).astype(np.float32)


@program
def records_shuffled(Session, folder):
    paths = [f"{folder}/{k}.tfrecord" for k in range(3)]
    for k, path in enumerate(paths):
        with tf1.python_io.TFRecordWriter(path) as writer:
            for i in range(10):
                example = tf1.train.Example()
                example.features.feature["v"].float_list.value.extend([k * 10 + i, 1.0])
                example.features.feature["n"].int64_list.value.append(i)
                writer.write(example.SerializeToString())
    files = tf1.train.string_input_producer(paths, num_epochs=2, shuffle=False)
    _, record = tf1.TFRecordReader().read(files)
    one = tf1.parse_single_example(record, {"v": tf1.FixedLenFeature([2], tf.float32), "n": tf1.FixedLenFeature([], tf.int64)})
    v, n = tf1.train.shuffle_batch([one["v"], one["n"]], batch_size=7, capacity=40, min_after_dequeue=10, allow_smaller_final_batch=True, seed=3)
    total, count = 0., 0
    with Session() as s:
        s.run([tf1.global_variables_initializer(), tf1.local_variables_initializer()])
        coordinator = tf1.train.Coordinator()
        threads = tf1.train.start_queue_runners(sess=s, coord=coordinator)
        try:
            while not coordinator.should_stop():
                a, b = s.run([v, n])
                total, count = total + float(a.sum()), count + len(b)
        except tf.errors.OutOfRangeError:
            pass
        finally:
            coordinator.request_stop()
        coordinator.join(threads)
    return total, count


@program
def queues(Session, folder):
    x, text = tf1.placeholder(tf.int32, [None]), tf1.placeholder(tf.string, [])
    padding = tf1.PaddingFIFOQueue(10, [tf.int32, tf.string], [[None], []])
    put, take, rest = padding.enqueue([x, text]), padding.dequeue_many(2), padding.dequeue_up_to(5)
    random = tf1.RandomShuffleQueue(20, 0, [tf.float32], [[]], seed=1)
    fill, shuffled = random.enqueue_many([tf.range(8.0)]), random.dequeue_many(8)
    first = tf1.PriorityQueue(10, [tf.string], [[]])
    rank, ranked = first.enqueue_many([tf.constant([3, 1, 2], tf.int64), tf.constant(["c", "a", "b"])]), first.dequeue_many(3)
    with Session() as s:
        for i in range(4):
            s.run(put, {x: list(range(i)), text: f"s{i}"})
        results = [s.run(padding.size()), s.run(take)]
        s.run(padding.close())
        results += [s.run(rest), raised(s.run, rest)]
        s.run([fill, rank])
        return results + [sorted(s.run(shuffled).tolist()), s.run(ranked), s.run(padding.is_closed())]


@program
def errors_of_runners(Session, folder):
    x = tf1.train.range_input_producer(5, shuffle=False, num_epochs=1).dequeue()
    batch = tf1.train.batch([tf1.check_numerics(1.0 / tf.cast(x - 3, tf.float32), "zero")], 1, num_threads=1, capacity=2)
    got = []
    with Session() as s:
        s.run(tf1.local_variables_initializer())
        coordinator = tf1.train.Coordinator()
        threads = tf1.train.start_queue_runners(s, coordinator)
        try:
            while len(got) < 20:
                got.append(s.run(batch))
        except tf.errors.OutOfRangeError:
            pass
        coordinator.request_stop()
        return got, raised(coordinator.join, threads)


@program
def readers(Session, folder):
    with open(folder + "/a.csv", "w") as file:
        file.write("1,2.5,x\n3,4.5,y\n5,6.5,z\n")
    with open(folder + "/b.bin", "wb") as file:
        file.write(bytes(range(12)))
    lines = tf1.train.string_input_producer([folder + "/a.csv"], num_epochs=1, shuffle=False)
    row = tf1.decode_csv(tf1.TextLineReader().read(lines)[1], [[0], [0.], [""]])
    blocks = tf1.train.string_input_producer([folder + "/b.bin"], num_epochs=1)
    block = tf1.decode_raw(tf1.FixedLengthRecordReader(4).read(blocks)[1], tf.uint8)
    found = tf1.train.string_input_producer(tf1.train.match_filenames_once(folder + "/*.bin").read_value(), num_epochs=1)
    whole = tf1.WholeFileReader().read(found)[1]
    with Session() as s:
        s.run([tf1.local_variables_initializer(), tf1.global_variables_initializer()])
        coordinator = tf1.train.Coordinator()
        threads = tf1.train.start_queue_runners(s, coordinator)
        results = [s.run(row) for _ in range(3)] + [s.run(block) for _ in range(3)] + [s.run(whole), raised(s.run, row)]
        coordinator.request_stop()
        coordinator.join(threads)
    return results


@program
def datasets(Session, folder):
    Dataset = tf1.data.Dataset
    once = Dataset.from_tensor_slices((DATA, np.arange(10))).map(lambda a, b: (a * 2, b + 1), num_parallel_calls=2).shuffle(5, seed=1)
    element = tf1.data.make_one_shot_iterator(once.repeat(2).batch(4, drop_remainder=True).prefetch(1)).get_next()
    limit, handle = tf1.placeholder(tf.int64, []), tf1.placeholder(tf.string, [])
    even = Dataset.range(limit).filter(lambda v: tf.equal(v % 2, 0)).batch(3)
    restarted = tf1.data.make_initializable_iterator(even)
    following = restarted.get_next()
    fed = tf1.data.Iterator.from_string_handle(handle, tf1.data.get_output_types(even), tf1.data.get_output_shapes(even)).get_next()
    any_of = tf1.data.Iterator.from_structure(tf.int64, [None])
    starts = [any_of.make_initializer(d) for d in (Dataset.range(5).batch(2), Dataset.range(10, 12).batch(2))]
    chosen = any_of.get_next()
    with Session() as s:
        results = []
        for _ in range(5):
            a, b = s.run(element)
            results.append([a.sum(), b])
        results.append(raised(s.run, element))
        s.run(restarted.initializer, {limit: 9})
        results += [s.run(following), s.run(following), raised(s.run, following)]
        s.run(restarted.initializer, {limit: 5})
        results.append(s.run(fed, {handle: s.run(restarted.string_handle())}))
        for start in starts:
            s.run(start)
            results.append(s.run(chosen))
    return results


@program
def python_functions(Session, folder):
    x = tf1.placeholder(tf.float32, [None])
    calls = []

    def both(a):
        calls.append(threading.current_thread() is threading.main_thread())
        a += 1  # its own copy
        return np.sinh(a).astype(np.float32), np.int64(a.size)

    y, n = tf1.py_func(both, [x], [tf.float32, tf.int64])
    text = tf.numpy_function(lambda a, b: b"%d" % a + b, [tf.constant(1), tf.constant(b"x")], tf.string)
    words = tf1.py_func(lambda a: np.array([w.upper() for w in a], object), [tf.constant(["a", "bc"])], tf.string, stateful=False)
    wrong, number = tf1.py_func(lambda: 1 / 0, [], tf.int64), tf1.py_func(lambda: np.float32(1), [], tf.int64)
    ended = tf1.py_func(lambda: next(iter([])), [], tf.int64)
    eager = tf.py_function(lambda a: tf.reduce_sum(a ** 2), [x], tf.float32)
    slope, = tf1.gradients(eager * 3, x)
    mapped = tf1.data.Dataset.range(4).map(lambda i: tf.numpy_function(lambda k: k * k, [i], tf.int64))
    element = tf1.data.make_one_shot_iterator(mapped).get_next()
    with Session() as s:
        return [s.run([y, n, x + 0], {x: [1, 2]}), len(calls), s.run(text), s.run(words), raised(s.run, wrong), raised(s.run, number), raised(s.run, ended),
                s.run(eager, {x: [3., 1.]}), s.run(slope, {x: [3., 1.]}), [s.run(element) for _ in range(4)], raised(s.run, element)]


@program
def generators(Session, folder):
    def rows():
        for i in range(5):
            yield i, np.full(i, i, np.float32)

    made = tf1.data.Dataset.from_generator(rows, (tf.int64, tf.float32), ([], [None])).padded_batch(2, ([], [None]))
    element = tf1.data.make_one_shot_iterator(made.repeat(2)).get_next()
    unfinished = tf1.data.make_one_shot_iterator(tf1.data.Dataset.from_generator(rows, (tf.int64, tf.float32))).get_next()
    with Session() as s:
        results = [s.run(element) for _ in range(6)] + [raised(s.run, element), s.run(unfinished)]
    return results


@program
def tables(Session, folder):
    with open(folder + "/words.txt", "w") as file:
        file.write("a\nb\nc\n")
    line = tf.lookup.TextFileIndex.LINE_NUMBER
    from_file = tf.lookup.TextFileInitializer(folder + "/words.txt", tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, line)
    vocabulary = tf.lookup.StaticVocabularyTable(from_file, 2)
    words = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer([1, 2], ["x", "y"], key_dtype=tf.int64), "?")
    growing = tf.lookup.experimental.MutableHashTable(tf.string, tf.float32, 0.0)
    insert = growing.insert(["k"], [3.0])
    x = tf1.placeholder(tf.string, [None])
    with Session() as s:
        s.run(tf1.tables_initializer())
        s.run(insert)
        return s.run([vocabulary.lookup(x), words.lookup(tf.constant([1, 9], tf.int64)), growing.lookup(x), growing.size(), vocabulary.size()],
                     {x: ["a", "zz", "c", "k"]})


@program
def summaries(Session, folder):
    x = tf1.placeholder(tf.float32, [None])
    tf1.summary.scalar("mean", tf.reduce_mean(x))
    tf1.summary.histogram("spread", x)
    tf1.summary.text("text", tf.constant("hello"))
    grid = tf.reshape(tf.range(48.), [1, 4, 4, 3])
    tf1.summary.image("image", grid)
    tf1.summary.image("both_signs", tf.concat([grid - 20, grid * np.nan], 0))
    tf1.summary.audio("audio", tf.reshape(tf.range(8.) / 8, [1, 8, 1]), 16000)
    tf1.summary.tensor_summary("tensor", x)
    merged = tf1.summary.merge_all()
    metadata = tf1.RunMetadata()
    with Session() as s:
        writer = tf1.summary.FileWriter(folder, s.graph)
        message = s.run(merged, {x: [1, 2, 3]}, options=tf1.RunOptions(trace_level=tf1.RunOptions.FULL_TRACE), run_metadata=metadata)
        writer.add_summary(message, 1)
        writer.add_run_metadata(metadata, "step")
        writer.close()
    results = ["traceEvents" in timeline.Timeline(metadata.step_stats).generate_chrome_trace_format()]
    for value in tf1.Summary.FromString(message).value:
        kind = value.WhichOneof("value")
        results += [value.tag, kind, value.metadata.SerializeToString()]
        if kind == "image":  # compressed by different libraries
            with tf1.Graph().as_default(), tf1.Session() as s:
                results.append(s.run(tf1.image.decode_png(value.image.encoded_image_string)))
        else:
            results.append(getattr(value, kind) if kind == "simple_value" else getattr(value, kind).SerializeToString())
    return results, len(list(tf1.train.summary_iterator(os.path.join(folder, os.listdir(folder)[0]))))


@program
def event_files(Session, folder):
    step = tf1.placeholder(tf.int64, [])
    writer = tf.summary.create_file_writer(folder, filename_suffix=".test")
    with writer.as_default(step=step):
        to = dict(writer=writer._resource, step=step)
        written = [tf.summary.write("rows", DATA), tf.summary.write("text", "hello", metadata=tf1.SummaryMetadata(display_name="t")),
                   tf.raw_ops.WriteScalarSummary(tag="loss", value=2.5, **to), tf.raw_ops.WriteHistogramSummary(tag="spread", values=DATA, **to),
                   tf.raw_ops.WriteAudioSummary(tag="sound", tensor=DATA, sample_rate=8000., **to),
                   tf.raw_ops.WriteRawProtoSummary(tensor=tf1.summary.scalar("raw", 3), **to)]
    with Session() as s:
        s.run(writer.init())
        for i in range(3):
            s.run(written, {step: i})
        s.run(writer.flush())
        s.run(writer.close())
    name, = os.listdir(folder)
    values = [(e.step, v.tag, v.SerializeToString()) for e in tf1.train.summary_iterator(os.path.join(folder, name)) for v in e.summary.value]
    return name.endswith(".test"), sorted(values)


if __name__ == "__main__":
    main()
