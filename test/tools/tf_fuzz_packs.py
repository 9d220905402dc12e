"""Graphs of several nodes side by side, each with operands and fetches of its own: one graph counts for the pairs of all of them.

What TensorFlow refuses is left out when the graph is made, node by node. Where Lathe refuses or fails the graph, tf_fuzz_loop.py
runs each part by itself, so that it costs the others nothing.
"""
import numpy as np
import tensorflow as tf

import tf_fuzz
import tf_fuzz_graphs as graphs
import tf_fuzz_nodes

tf1 = tf.compat.v1
ATTEMPTS = 6  # some attributes and operands do not go together


class Part:
    """A node of a pack, with what stands before and behind it."""

    def __init__(self, entry, feeds, fetches, steps):
        self.entry, self.feeds, self.fetches, self.steps = entry, feeds, fetches, steps


class Spoilt(Exception):
    """The graph holds a node that no session takes, whatever it runs."""


def make_pack(seed, entries, rare=(), bare=False):
    """The graph of a node of each entry (operation, type) that TensorFlow runs, or None; and the entries that it refused. Bare ones
    have no elementwise operations before and none behind them."""
    refused, entries = [], list(entries)
    while entries:
        graph = tf.Graph()
        with graph.as_default():
            import_version(entries)
            parts, spoilt = add_parts(seed, graph, entries, rare, bare)
        refused += [e for e in entries if e not in [p.entry for p in parts] and (spoilt is None or e == spoilt)]
        if spoilt is None:
            return (pack_of(graph, 'seed%07d' % seed, parts) if parts else None), refused
        entries.remove(spoilt)
    return None, refused


def import_version(entries):
    """What an older TensorFlow made may still hold what has been removed since."""
    removed = [v for v in (tf_fuzz_nodes.removed_in(op) for op, _ in entries) if v]
    if removed:
        tf1.import_graph_def(tf1.GraphDef(versions={'producer': min(removed) - 1}))


def add_parts(seed, graph, entries, rare, bare):
    """The parts that TensorFlow runs, and the entry that makes the graph unfit for any run."""
    parts, good = [], tf.constant(0)
    with graphs.session_of(graph) as session:
        for k, entry in enumerate(entries):
            try:
                part = add_part(session, seed, k, entry, rare, bare, good)
            except Spoilt:
                return parts, entry
            if part:
                parts.append(part)
    return parts, None


def add_part(session, seed, k, entry, rare, bare, good):
    op, dtype = entry
    for attempt in range(ATTEMPTS):
        g = graphs.Gen(np.random.default_rng([seed, k, attempt]), rare, 1000 * (ATTEMPTS * k + attempt), bare)
        found = graphs.node_and_more(g, op, tf.as_dtype(dtype), [0] if bare else [0, 0, 1])
        if not found:
            continue
        try:
            session.run(found[0], g.feeds)
        except (tf.errors.OpError, ValueError, TypeError):
            try:
                session.run(good)
            except tf.errors.OpError:
                raise Spoilt() from None
            continue
        return Part(entry, g.feeds, *found)
    return None


def pack_of(graph, name, parts):
    """The case that TensorFlow runs whole; None where it does not."""
    feeds = {t: a for p in parts for t, a in p.feeds.items()}
    case = graphs.finish(graph, name, feeds, [t for p in parts for t in p.fetches], [s for p in parts for s in p.steps])
    if case:
        describe_parts(case, parts)
    return case


def describe_parts(case, parts):
    """Tells a case of its parts: what each is of, and how precise."""
    case.parts, case.leasts = parts, []
    operations = {o.name: o for o in case.tf_graph.get_operations()}
    for p in parts:
        own = [operations[n] for n in graphs.needed(p.fetches, p.feeds)]
        p.cells = sorted({(o.type, graphs.type_of(o)) for o in own if (o.outputs or o.inputs) and o.type != 'Placeholder'})
        p.sizes = sorted({d for a in p.feeds.values() for d in a.shape})
        dtypes = [a.dtype.name for a in p.feeds.values()] + [t.dtype.name for t in p.fetches]
        dtypes += [o.outputs[0].dtype.name for o in own if o.type == 'Const']
        case.leasts += [tf_fuzz.least_precise(dtypes)] * len(p.fetches)


def some_of(case, parts, name):
    """The case of some of a pack's parts, with what TensorFlow gave when it ran all."""
    known = {f: (e, s) for f, e, s in zip(case.fetches, case.expected, case.slack)}
    fetches = [t for p in parts for t in p.fetches]
    expected, slack = zip(*(known[t.name] for t in fetches))
    feeds = {t: a for p in parts for t, a in p.feeds.items()}
    small = graphs.assemble(case.tf_graph, name, feeds, fetches, list(expected), list(slack), [s for p in parts for s in p.steps])
    small.again = case.again
    if len(parts) > 1:
        describe_parts(small, parts)
    return small


def fewest(case, fails):
    """The fewest parts of a pack that fail together where none fails alone."""
    parts = list(case.parts)
    for p in case.parts:
        left = [q for q in parts if q is not p]
        if len(left) > 1 and fails(some_of(case, left, case.name)):
            parts = left
    return some_of(case, parts, case.name)
