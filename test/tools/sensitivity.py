"""sensitivity.py ZIP [CASE]: how much TensorFlow's own results of a conformance case change when its feeds change in the last place.

Replays each case of the zip as it is and with its float32 feeds moved by up to 1e-7 of themselves, three times, and prints the largest
differences from the recorded outputs. A case whose own answers move by more than its tolerance can't tell a wrong result from
another order of additions. Needs TensorFlow.
"""
import io
import json
import os
import sys
import zipfile

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
os.environ.setdefault('CUDA_VISIBLE_DEVICES', '')
import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1


def replay(graph, steps, array, move, rng):
    """The largest difference of a float32 output of any step from what was recorded."""
    largest = 0.0
    with tf.Graph().as_default() as g, tf1.Session() as session:
        tf.import_graph_def(graph, name='')
        for step in steps:
            feeds = {}
            for name, file in step['feeds'].items():
                value = array(file)
                if value.dtype == np.float32:
                    value = (value * (1 + move * rng.uniform(-1, 1, value.shape))).astype(np.float32)
                feeds[name] = value
            outputs = session.run(step['fetches'] + [g.get_operation_by_name(t) for t in step['targets']], feeds)
            for output, file in zip(outputs, step['expected']):
                expected = array(file) if file.endswith('.npy') else np.zeros(0)
                if expected.dtype == np.float32 and expected.size:
                    largest = max(largest, float(np.abs(output - expected).max()))
    return largest


def main():
    archive = zipfile.ZipFile(sys.argv[1])
    names = sorted({n.split('/')[0] for n in archive.namelist()})
    for name in sys.argv[2:] or names:
        case = json.loads(archive.read(name + '/case.json'))
        graph = tf1.GraphDef.FromString(archive.read(name + '/graph.pb'))

        def array(file):
            return np.load(io.BytesIO(archive.read(name + '/' + file)))
        rng = np.random.default_rng(0)
        same = replay(graph, case['steps'], array, 0, rng)
        moved = max(replay(graph, case['steps'], array, 1e-7, rng) for _ in range(3))
        print(f'{name}: as it is {same:.2g}, feeds moved {moved:.2g}, tolerance {case["atol"].get("float32", 0):.2g} + '
              f'{case["rtol"].get("float32", 0):.2g} |x|')


if __name__ == '__main__':
    main()
