"""Why no graph of tf_fuzz.py reaches an operation of some type: what TensorFlow says to each node that is drawn.

Nodes are drawn as for graphs, but stand alone, in a process of their own: where TensorFlow ends it, that is the reason.
"""
import collections
import multiprocessing
import re

TRIES = 12


def reasons(pairs):
    """{(operation, type): why TensorFlow takes no node of it}, without those of which it takes one."""
    found, left = {}, list(pairs)
    while left:
        source, sink = multiprocessing.get_context('spawn').Pipe(False)
        process = multiprocessing.get_context('spawn').Process(target=probe, args=(left, sink))
        process.start()
        sink.close()
        try:
            while left:
                why = source.recv()
                pair = left.pop(0)
                if why:
                    found[pair] = why
        except EOFError:
            found[left.pop(0)] = 'TensorFlow ends its process'
        process.join()
    return found


def probe(pairs, sink):
    for op, dtype in pairs:
        sink.send(refusal(op, dtype))
    sink.close()


def refusal(op, dtype):
    """What TensorFlow says most often; None where it takes a node."""
    import numpy as np
    import tensorflow as tf
    import tf_fuzz_graphs as graphs
    import tf_fuzz_packs as packs
    said = collections.Counter()
    for k in range(TRIES):
        graph = tf.Graph()
        with graph.as_default():
            packs.import_version([(op, dtype)])
            g = graphs.Gen(np.random.default_rng(k), bare=True)
            try:
                made = graphs.tf_fuzz_nodes.build_node(g, op, tf.as_dtype(dtype))
                fetches = [t for t in made if t.dtype.base_dtype in graphs.KIND_OF]
                if not fetches:
                    return 'nothing to fetch'
                with graphs.session_of(graph) as session:
                    session.run(fetches, g.feeds)
                return None
            except graphs.REFUSALS as e:
                said[told(str(e))] += 1
    return said.most_common(1)[0][0]


def told(message):
    """The line of a message that says what is wrong."""
    if 'Node: ' in message:  # behind the trace of where the node was made
        message = message.split('Node: ', 1)[1].split('\n', 1)[-1]
    line = next((line for line in message.split('\n') if line.strip()), '')
    line = re.sub(r"not in NodeDef '.*|, KernelDef: .*|: float16, .*| for '\{\{node.*", '', line)
    return line.replace('|', ' ').strip()[:120]
