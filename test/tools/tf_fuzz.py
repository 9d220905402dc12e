"""tf_fuzz.py fuzz|make|replay: random TensorFlow graphs, with TensorFlow as the judge.

    tf_fuzz.py fuzz --lathe build/bin/lathe --seed 1 --count 1000 [--modes plain,no-fuse,...] [--op NAME] [--table FILE]
    tf_fuzz.py make --seed 1 --count 100 -o cases.zip
    tf_fuzz.py replay --lathe build/bin/lathe cases.zip [--modes ...]

`fuzz` (tf_fuzz_loop.py) and `make` need TensorFlow, `replay` only numpy. A seed names a graph for good (with one version of
TensorFlow, and the pairs and sizes that stand beside it where --rarest chose them). Cases are in the format of the conformance
corpus, run by `lathe conform`. A failing graph is reduced: each operation is run alone on the operands that TensorFlow computed for it,
then ever more of them together. docs/fuzzing.md says more.
"""
import argparse
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile

import numpy as np

SIZES = [0, 1, 2, 3, 5, 7, 8, 15, 16, 17, 31, 33, 64, 100, 1000]
# what each adds to `lathe conform`; for a level that the machine lacks cases are compiled, but not run
MODES = {
    'plain': [], 'no-fuse': ['--no-fuse'], 'unknown': ['--unknown-shapes'], 'session': ['--session'],
    'threads': ['--threads', '2'], 'const': ['--const-feeds'], 'v2': ['--cpu', 'x86-64-v2'], 'v3': ['--cpu', 'x86-64-v3'],
    'v4': ['--cpu', 'x86-64-v4'], 'bf16': ['--cpu', 'sapphirerapids'],
}
QUICK = '-O0'  # behind a mode: without LLVM's optimisations, which take half of the time
MODES.update({mode + QUICK: [*options, '--opt-level', '0'] for mode, options in MODES.items()})
# the corpus' tolerances: rtol, least atol, atol as a share of the largest magnitude
TOLERANCE = {'bfloat16': (3e-2, 1e-2, 1e-2), 'float16': (1e-2, 1e-3, 2e-3), 'float32': (1e-4, 1e-5, 2e-6),
             'float64': (1e-8, 1e-10, 1e-12)}
REAL_OF = {'complex64': 'float32', 'complex128': 'float64'}
SECONDS = int(os.environ.get("TF_FUZZ_SECONDS", 10))  # of a case
MEMORY, RESIDENT = 8 << 30, 2 << 30  # of address space, of which compiling takes most; of what a batch may ever hold


# --- cases on disk

def stored(a):
    """An array as the corpus stores it."""
    return a.view(np.uint16) if a.dtype.name == 'bfloat16' else a


def widened(a, dtype):
    if dtype == 'bfloat16':
        return (a.astype(np.uint32) << 16).view(np.float32) if a.ndim else np.float32((np.uint32([a]) << 16).view(np.float32)[0])
    return a


class Case:
    """A graph, what is fed, and what TensorFlow gives."""

    def __init__(self, name, graph, feeds, fetches, expected, slack, ops):
        self.name, self.graph, self.feeds, self.fetches = name, graph, feeds, fetches
        self.expected, self.slack, self.ops = expected, slack, ops
        self.again = ''  # options that make it again from its seed
        self.least = None  # the least precise type of its constants
        self.leasts = None  # of each fetch, where they do not rest on one another
        self.parts = []  # tf_fuzz_packs.Part: what stands side by side
        self.entry = ''  # 'OP TYPE' of the node that a part is around

    def files(self):
        dtypes = {}
        step = {'feeds': {}, 'fetches': self.fetches, 'targets': [], 'expected': []}
        out = {'graph.pb': self.graph}

        def put(file, a):
            dtypes[file] = a.dtype.name
            data = io.BytesIO()
            np.save(data, stored(a), allow_pickle=False)
            out[file] = data.getvalue()
        for k, (name, a) in enumerate(self.feeds.items()):
            step['feeds'][name] = 'feed_0_%d.npy' % k
            put(step['feeds'][name], a)
        for i, a in enumerate(self.expected):
            step['expected'].append('expected_0_%d.npy' % i)
            put(step['expected'][i], a)
        meta = {'name': self.name, 'source': {'file': 'tf_fuzz', 'mode': 'v1', 'index': 0, 'cls': '', 'method': ''},
                'ops': sorted(self.ops), 'steps': [step], 'tags': [], 'dtypes': dtypes, 'slack': self.slack, 'least': self.least,
                **({'leasts': self.leasts} if self.leasts else {}), **self.tolerances(dtypes)}
        out['case.json'] = json.dumps(meta).encode()
        return out

    def tolerances(self, dtypes):
        """As the conformance corpus keeps them, by type."""
        rtol, atol, least = {}, {}, least_precise([*dtypes.values(), self.least])
        for a, slack in zip(self.expected, self.slack):
            dtype = a.dtype.name
            if dtype not in TOLERANCE and dtype not in REAL_OF:
                continue
            rtol[dtype], floor, share = TOLERANCE[least]
            wide = np.abs(a.astype(np.complex128 if a.dtype.kind == 'c' else np.float64)).reshape(-1)
            largest = float(np.max(wide[np.isfinite(wide)], initial=0))
            atol[dtype] = max(atol.get(dtype, 0), max(floor, share * largest) + slack)
        return {'rtol': rtol, 'atol': atol}

    def write(self, folder):
        os.makedirs(folder)
        for file, data in self.files().items():
            with open(os.path.join(folder, file), 'wb') as f:
                f.write(data)


def least_of(case):
    """The least precise type that a case feeds or expects."""
    return least_precise([*(a.dtype.name for a in [*case.feeds.values(), *case.expected]), case.least])


def least_precise(dtypes):
    order = ['bfloat16', 'float16', 'float32', 'float64']
    found = [REAL_OF.get(d, d) for d in dtypes]
    return next((d for d in order if d in found), None)


def wrong_elements(got, want, dtype, least, slack):
    """Where two arrays of one shape differ, as stored, by more than the tolerances."""
    got, want = widened(got, dtype), widened(want, dtype)
    if dtype not in TOLERANCE and dtype not in REAL_OF:
        return np.asarray(got != want)
    rtol, atol, share = TOLERANCE[least or REAL_OF.get(dtype, dtype)]
    wide = np.complex128 if dtype in REAL_OF else np.float64
    g, w = np.asarray(got).astype(wide), np.asarray(want).astype(wide)
    with np.errstate(all='ignore'):
        finite = np.abs(w[np.isfinite(w)])
        atol = max(atol, share * (finite.max() if finite.size else 0)) + slack
        # both parts round as the modulus does; one that is infinite says nothing about the other
        size = np.hypot(*(np.where(np.isfinite(p), p, 0) for p in (w.real, w.imag)))
        bad = np.zeros(w.shape, bool)
        for a, b in [(g.real, w.real)] + ([(g.imag, w.imag)] if dtype in REAL_OF else []):
            bad |= ~((a == b) | (np.isnan(a) & np.isnan(b)) | (np.isfinite(b) & (np.abs(a - b) <= atol + rtol * size)))
        return bad


def differs(got, want, dtype, least, slack):
    """One line saying what differs, or None."""
    if got.shape != want.shape:
        return 'shape %s instead of %s' % (list(got.shape), list(want.shape))
    bad = wrong_elements(got, want, dtype, least, slack)
    if not np.any(bad):
        return None
    got, want = widened(got, dtype), widened(want, dtype)
    at = tuple(int(i) for i in np.argwhere(np.atleast_1d(bad))[0])[:want.ndim]
    return '%d of %d differ, at %s: %s instead of %s' % (np.sum(bad), want.size, list(at), got[at], want[at])


# --- running

def limits():
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def resident(pid):
    """The most memory that a process has held; 0 when it has ended."""
    try:
        with open('/proc/%d/status' % pid) as lines:
            return next((int(line.split()[1]) << 10 for line in lines if line.startswith('VmHWM')), 0)
    except OSError:
        return 0


def run_batch(lathe, mode, root, names):
    """Runs the cases in root; {name: (status, message)}. A case that crashes or takes too long is one more result."""
    results, left = {}, list(names)
    while left:
        folder = tempfile.mkdtemp(prefix='tf_fuzz_')
        for n in left:
            os.symlink(os.path.join(root, n), os.path.join(folder, n))
        report = os.path.join(folder, 'report')
        open(report, 'w').close()
        log = open(os.path.join(folder, 'log'), 'w+')
        process = subprocess.Popen([lathe, 'conform', *MODES[mode], '--cases', folder, '--report', report], stdout=log,
                                   stderr=log, preexec_fn=limits)
        current, since, seen, killed = None, time.time(), 0, None
        while True:
            ended = process.poll() is not None
            lines = open(report).read().split('\n')[:-1]
            for line in lines[seen:]:
                j = json.loads(line)
                current = j['name'] if j['status'] == 'start' else None
                since = time.time()
                if j['status'] != 'start':
                    results[j['name']] = (j['status'], j.get('message', ''))
            seen = len(lines)
            if ended:
                break
            if resident(process.pid) > RESIDENT:
                killed = 'memory'
            elif time.time() - since > SECONDS:
                killed = 'timeout'
            if killed:
                process.kill()
                process.wait()
                continue
            time.sleep(.05)
        log.seek(0)
        text = log.read()
        shutil.rmtree(folder, ignore_errors=True)
        before = len(left)
        left = [n for n in left if n not in results]
        if left:
            victim = current if current in left else left[0]
            results[victim] = (killed or 'crash', ' '.join(text.split())[-300:])
            left.remove(victim)
        assert len(left) < before
    return results


def judge(lathe, mode, root, names, answers=None):
    """{name: reason} of the failing cases, and {name: message} of those not supported; `answers` takes the arrays of wrong ones."""
    failed, unsupported = {}, {}
    for name, (status, message) in run_batch(lathe, mode, root, names).items():
        folder = os.path.join(root, name)
        if status == 'skipped':
            continue
        if status == 'unsupported':
            unsupported[name] = message
        elif status != 'ok':
            failed[name] = '%s: %s' % (status, message)
        else:
            meta = json.load(open(os.path.join(folder, 'case.json')))
            got = taken(folder, len(meta['steps'][0]['expected']))
            why = wrong_answer(folder, meta, got)
            if why:
                failed[name] = why
                if answers is not None:
                    answers[name] = got
    return failed, unsupported


def taken(folder, count):
    """The outputs that lathe left in the folder of a case, which are gone afterwards; None for one that is missing."""
    found = []
    for i in range(count):
        file = os.path.join(folder, 'actual_0_%d.npy' % i)
        found.append(np.load(file) if os.path.exists(file) else None)
        if found[-1] is not None:
            os.remove(file)
    return found


def wrong_answer(folder, meta, got):
    """What is wrong with the outputs of a case, or None."""
    leasts = meta.get('leasts') or [least_precise([*meta['dtypes'].values(), meta.get('least')])] * len(got)
    for i, (file, least) in enumerate(zip(meta['steps'][0]['expected'], leasts)):
        if got[i] is None:
            return 'missing: output %d' % i
        want, dtype = np.load(os.path.join(folder, file)), meta['dtypes'][file]
        why = ('type %s instead of %s' % (got[i].dtype, want.dtype) if got[i].dtype != want.dtype else
               differs(got[i], want, dtype, least, meta['slack'][i]))
        if why:
            return 'mismatch: output %d (%s): %s' % (i, dtype, why)
    return None


def answers_of(lathe, mode, case):
    """What lathe gives for each fetch of a case, as stored; None where it does not give all."""
    with tempfile.TemporaryDirectory(prefix='tf_fuzz_') as root:
        case.write(os.path.join(root, case.name))
        if run_batch(lathe, mode, root, [case.name])[case.name][0] != 'ok':
            return None
        got = taken(os.path.join(root, case.name), len(case.fetches))
        return None if any(a is None for a in got) else got


def unpack(path, root):
    """The cases of a zip, in a folder; their names."""
    with zipfile.ZipFile(path) as z:
        z.extractall(root)
    return sorted(n for n in os.listdir(root) if os.path.isdir(os.path.join(root, n)))


def replay(args):
    bad = 0
    with tempfile.TemporaryDirectory() as root:
        names = unpack(args.zip, root)
        for mode in args.modes.split(','):
            failed, unsupported = judge(args.lathe, mode, root, names)
            for name, why in sorted(failed.items()):
                print('FAIL %s %s: %s' % (mode, name, why))
            for name, why in sorted(unsupported.items()):
                print('FAIL %s %s: unsupported: %s' % (mode, name, why))
            bad += len(failed) + len(unsupported)
            print('%s: %d passed, %d failed' % (mode, len(names) - len(failed) - len(unsupported), len(failed) + len(unsupported)))
    return 1 if bad else 0


# --- commands

def fuzz(args):
    import tf_fuzz_loop
    return tf_fuzz_loop.Fuzz(args).run()


def node_draws(args, graphs):
    """What makes a graph around a node of each operation of the registry, of some type."""
    import tf_fuzz_coverage as coverage
    kernels, rng = coverage.registered(coverage.compiled_operations(args.ops)), np.random.default_rng(args.seed)
    for op in sorted(kernels):
        dtype = str(rng.choice(sorted(kernels[op])))
        yield lambda seed, op=op, dtype=dtype: graphs.make_node_case(seed, op, dtype)


def make(args):
    import tf_fuzz_explain as explain
    import tf_fuzz_graphs as graphs
    n, covered = 0, set()
    with zipfile.ZipFile(args.output, 'w', zipfile.ZIP_DEFLATED) as z:
        for s, draw in enumerate(node_draws(args, graphs) if args.nodes else range(args.count), args.seed):
            case = draw(s) if args.nodes else graphs.make_case(s, args.op, args.dtype)
            if case is None:
                continue
            files = case.files()
            if args.most and sum(map(len, files.values())) > args.most:
                continue
            if args.cover and (covered.issuperset(case.cells) or explain.rests_on_roundings(case)):
                continue
            covered.update(case.cells)
            n += 1
            for file, data in sorted(files.items()):
                z.writestr(zipfile.ZipInfo('%s/%s' % (case.name, file)), data, zipfile.ZIP_DEFLATED)
    print('%d cases, %d pairs of an operation and a type' % (n, len(covered)))
    return 0


def main():
    p = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    sub = p.add_subparsers(dest='command', required=True)
    f, m, r = sub.add_parser('fuzz'), sub.add_parser('make'), sub.add_parser('replay')
    for q in (f, m):
        q.add_argument('--seed', type=int, default=1)
        q.add_argument('--count', type=int, default=100)
        q.add_argument('--op', help='only graphs around this operation')
        q.add_argument('--dtype', help='only graphs that begin with this type')
        q.add_argument('--ops', default='docs/generated/ops.md', help='the list of compiled operations')
    for q in (f, r):
        q.add_argument('--lathe', default='build/bin/lathe')
        q.add_argument('--modes', default='plain')
    f.add_argument('--batch', type=int, default=50, help='graphs that one process compiles')
    f.add_argument('--all-modes', action='store_true', help='every mode for each graph, not three of them')
    f.add_argument('--quick', action='store_true', help='LLVM optimises in the first of a graph\'s modes only')
    f.add_argument('--no-reduce', dest='reduce', action='store_false')
    f.add_argument('--keep', help='folder for reduced graphs that fail')
    f.add_argument('--table', help='append the (operation, type) counts of passing graphs to this file')
    f.add_argument('--short', action='store_true', help='few other operations')
    f.add_argument('--rarest', action='store_true', help='operations and types with the fewest graphs in TABLE first, among mutants of '
                   'CASES, too')
    f.add_argument('--cases', default='test/conform/cases', help='conformance cases to make mutants of')
    f.add_argument('--case', help='only mutants of this case ("SUITE NAME"), with --dtype')
    f.add_argument('--node', help='only graphs around a node of this operation of the registry, with --dtype')
    f.add_argument('--pack', help='only graphs of these nodes side by side ("OP TYPE,OP TYPE"), with --sizes')
    f.add_argument('--sizes', default='', help='sizes that come more often ("33,1000")')
    f.add_argument('--side', type=int, default=8, help='how many rare nodes stand side by side in a graph with --rarest')
    f.add_argument('--goal', type=int, help='with --rarest, the graphs that each pair is to have: those that lack the fewest come first, '
                   'in a quarter of the graphs those that lack the most')
    f.add_argument('--bare', action='store_true', help='nodes side by side without elementwise operations before and others behind them')
    m.add_argument('--cover', action='store_true', help='only graphs with a pair of an operation and a type that none before them has, '
                   'and whose answer does not rest on a rounding')
    m.add_argument('--nodes', action='store_true', help='a graph around a node of each operation of the registry instead')
    m.add_argument('--most', type=int, help='only graphs of at most so many bytes')
    m.add_argument('-o', '--output', required=True)
    r.add_argument('zip')
    args = p.parse_args()
    return {'fuzz': fuzz, 'make': make, 'replay': replay}[args.command](args)


if __name__ == '__main__':
    sys.exit(main())
