"""Judges the cases tagged `decomposition` without asking for TensorFlow's signs, phases or order of vectors.

usage: compare_decompositions.py CORPUS --adapter "build/bin/lathe conform" [--timeout S] [--least 0.95]

A case that the corpus' own comparison refuses still counts where its vectors are as good as TensorFlow's:
  Qr                A = QR, Q has orthonormal columns, R is upper triangular
  Svd               the values agree, A = U diag(s) V^H, U and V have orthonormal columns
  SelfAdjointEigV2  the values agree, A V = V diag(e), V has orthonormal columns
  Eig               every value has its like in the expected ones, A V = V diag(e)
Where the matrix is no feed of the case, a vector may differ from the expected one by a factor of modulus 1.
Needs numpy, and the protobuf classes of TensorFlow for reading graphs.
"""
import argparse
import glob
import os
import subprocess
import sys
import tempfile

import numpy as np

OUTPUTS = {'Qr': ('q', 'r'), 'Svd': ('s', 'u', 'v'), 'SelfAdjointEigV2': ('e', 'v'), 'Eig': ('e', 'v')}


def close(a, b, rtol, atol):
    a, b = np.asarray(a), np.asarray(b)
    scale = np.max(np.abs(b), initial=1.0)
    return a.shape == b.shape and bool(np.all(np.abs(a - b) <= atol + rtol * scale))


def adjoint(a):
    return np.conj(np.swapaxes(a, -1, -2))


def orthonormal(a, rtol, atol):
    return close(adjoint(a) @ a, np.broadcast_to(np.eye(a.shape[-1]), a.shape[:-2] + (a.shape[-1],) * 2), rtol, atol)


def same_up_to_phase(a, e, rtol, atol):
    """Columns of a and e, each up to a factor of modulus 1."""
    if a.shape != e.shape or a.ndim < 2:
        return False
    inner = np.sum(np.conj(e) * a, axis=-2, keepdims=True)
    size = np.abs(inner)
    phase = np.where(size > 0, inner / np.where(size > 0, size, 1), 1)
    return close(a / phase, e, rtol, atol)


def is_decomposition(op, matrix, parts, rtol, atol):
    """Whether the parts {name: array}, some of which may be missing, are a decomposition of the matrix."""
    if op == 'Qr' and {'q', 'r'} <= set(parts):
        q, r = parts['q'], parts['r']
        return close(q @ r, matrix, rtol, atol) and orthonormal(q, rtol, atol) and close(np.triu(r), r, rtol, atol)
    if op == 'Svd' and {'s', 'u', 'v'} <= set(parts):
        k = parts['s'].shape[-1]
        u, v = parts['u'], parts['v']
        whole = (u[..., :k] * parts['s'][..., None, :]) @ adjoint(v[..., :k])
        return close(whole, matrix, rtol, atol) and orthonormal(u, rtol, atol) and orthonormal(v, rtol, atol)
    if op in ('SelfAdjointEigV2', 'Eig') and {'e', 'v'} <= set(parts):
        e, v = parts['e'], parts['v']
        if op == 'SelfAdjointEigV2':
            lower = np.tril(matrix)
            matrix = lower + adjoint(np.tril(matrix, -1))
            if not orthonormal(v, rtol, atol):
                return False
        return close(matrix @ v, v * e[..., None, :], rtol, atol)
    return False


def same_values(a, e, ordered, rtol, atol):
    if ordered:
        return close(a, e, rtol, atol)
    pairs = zip(a.reshape(-1, a.shape[-1]), e.reshape(-1, e.shape[-1]))
    order = lambda x: x[np.lexsort((np.round(x.imag, 3), np.round(x.real, 3)))]
    return a.shape == e.shape and all(close(order(x), order(y), rtol, atol) for x, y in pairs)


def constant(node):
    if node is None or node.op != 'Const':
        return None
    from tensorflow import make_ndarray
    return make_ndarray(node.attr['value'].tensor)


def accepts(case, step, actual, corpus, graph):
    """Whether the step's outputs are right in spite of other signs, phases or order."""
    nodes = {n.name: n for n in graph.node}
    feeds = step.feeds()
    groups, parts = {}, {}
    for fetch, got, want in zip(step.fetches, actual, step.expected()):
        rtol, atol = case.tolerance(want.dtype)
        if got is None or isinstance(got, str):
            return False
        name, _, port = fetch.partition(':')
        node = nodes.get(name)
        if corpus.compare(got, want, rtol, atol) is None and (node is None or node.op not in OUTPUTS):
            continue
        if node is None or node.op not in OUTPUTS:
            return False
        part = OUTPUTS[node.op][int(port or 0)]
        groups.setdefault(name, []).append((part, got.values(), want.values(), rtol, atol))
        parts.setdefault(name, {})[part] = got.values()
    for name, outputs in groups.items():
        node = nodes[name]
        source = node.input[0] if ':' in node.input[0] else node.input[0] + ':0'
        matrix = feeds[source].values() if source in feeds else constant(nodes.get(source[:-2]))
        rtol = max(o[3] for o in outputs) * 10
        atol = max(o[4] for o in outputs) * 10
        for part, got, want, _, _ in outputs:
            if part in 'se' and not same_values(got, want, node.op != 'Eig', rtol, atol):
                return False
        if matrix is not None and is_decomposition(node.op, matrix, parts[name], rtol, atol):
            continue
        for part, got, want, _, _ in outputs:
            rows = part == 'r'
            if part not in 'se' and not same_up_to_phase(adjoint(got) if rows else got, adjoint(want) if rows else want,
                                                         rtol, atol):
                return False
    return True


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument('corpus')
    ap.add_argument('--adapter', default='build/bin/lathe conform')
    ap.add_argument('--timeout', default='20')
    ap.add_argument('--least', type=float, default=0.95)
    a = ap.parse_args()
    sys.path.insert(0, a.corpus)
    os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
    import corpus
    from tensorflow.core.framework import graph_pb2
    with tempfile.TemporaryDirectory() as keep:
        out = subprocess.run([sys.executable, os.path.join(a.corpus, 'run_cases.py'), '--adapter', a.adapter, '--tag',
                              'decomposition', '--timeout', a.timeout, '--keep', keep, os.path.join(a.corpus, 'cases')],
                             capture_output=True, text=True).stdout
        failed = {tuple(l.split(' ', 2)[1:2]) + (l.split(' ', 2)[2].split(':', 1)[0],) for l in out.splitlines()
                  if l.startswith('FAIL ')}
        folders = {os.path.basename(p).split('_', 2)[2]: p for p in glob.glob(os.path.join(keep, '**', 'done_*'), recursive=True)}
        total = passed = other = 0
        for case in corpus.load(os.path.join(a.corpus, 'cases')):
            if 'decomposition' not in case.tags:
                continue
            total += 1
            key = (os.path.basename(case.origin)[:-4], case.name)
            if key not in failed:
                passed += 1
                continue
            folder = folders.get('~'.join(key))
            graph = graph_pb2.GraphDef.FromString(case.graph)

            def read(step, i, dtype):
                base = os.path.join(folder, 'actual_%d_%d.npy' % (step, i))
                if not os.path.isfile(base):
                    return None
                t = corpus.decode(base, open(base, 'rb').read(), None)
                t.dtype = dtype
                return t
            good = folder and all(
                accepts(case, s, [read(s.index, i, e.dtype) for i, e in enumerate(s.expected())], corpus, graph)
                for s in case.steps)
            if good:
                other += 1
            else:
                print('FAIL', *key)
    print('%d cases: %d as TensorFlow, %d with other signs or order, %d failed' % (total, passed, other, total - passed - other))
    sys.exit(passed + other < a.least * total)


main()
