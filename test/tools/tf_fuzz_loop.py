"""The command `fuzz` of tf_fuzz.py: makes graphs batch by batch, runs them in some modes, and says which answers are wrong.

A batch is made, run and judged in a process of its own: where TensorFlow ends it, the seed that it was at is left out, and the batch is
made again without it. This process keeps what counts for the batches to come, and never runs TensorFlow itself, so that it may fork.
"""
import collections
import contextlib
import io
import mmap
import os
import pickle
import select
import shutil
import signal
import sys
import tempfile
import time

import numpy as np

import tf_fuzz

STUCK = 300  # seconds after which TensorFlow is taken to hang in one graph


def answer(lathe, mode, case):
    """Why a case fails, or None, and why it is refused, or None."""
    root = tempfile.mkdtemp(prefix='tf_fuzz_')
    case.write(os.path.join(root, case.name))
    failed, unsupported = tf_fuzz.judge(lathe, mode, root, [case.name])
    shutil.rmtree(root, ignore_errors=True)
    return failed.get(case.name), unsupported.get(case.name)


def fails(lathe, mode, case):
    return answer(lathe, mode, case)[0]


class Batch:
    """What a batch found: counts and kinds of what happened, rows of the table, and what the choice of the next graphs has to know."""

    def __init__(self):
        self.counts, self.kinds, self.cells = (collections.Counter() for _ in range(3))
        self.text, self.entries = '', []


class Fuzz:
    def __init__(self, args):
        import tf_fuzz_explain as explain
        import tf_fuzz_graphs as graphs
        import tf_fuzz_packs as packs
        self.args, self.explain, self.graphs, self.packs = args, explain, graphs, packs
        self.total, self.found = Batch(), None
        self.at = mmap.mmap(-1, 8)  # the seed that a batch is at, for this process to see
        self.sizes = [int(n) for n in args.sizes.split(',') if n]
        self.rarest = None
        if args.rarest or args.case or args.node:
            import tf_fuzz_rarest
            self.rarest = tf_fuzz_rarest.Rarest(args.table, args.cases, args.ops, args.goal, args.bare)

    # --- batches

    def run(self):
        args = self.args
        modes, rng = args.modes.split(','), np.random.default_rng(args.seed)
        for first in range(args.seed, args.seed + args.count, args.batch):
            seeds = list(range(first, min(first + args.batch, args.seed + args.count)))
            drawn = modes if args.all_modes else [str(m) for m in rng.choice(modes, min(3, len(modes)), replace=False)]
            if args.quick:
                drawn[1:] = [m + tf_fuzz.QUICK for m in drawn[1:]]
            while seeds:
                with tempfile.TemporaryDirectory(prefix='tf_fuzz_') as root:
                    found, at = self.apart(seeds, drawn, root)
                if found:
                    self.take(found)
                    break
                print('FAIL seed%07d: TensorFlow ended its process' % at, flush=True)
                self.total.counts['ended'] += 1
                if at not in seeds:
                    break
                seeds.remove(at)
                if self.rarest:
                    self.rarest.forget(at)
            print('seed %d: %s' % (first + args.batch, self.sums()), flush=True)
        for text, n in self.total.kinds.most_common():
            print('%5d %s' % (n, text))
        print(self.sums())
        return 1 if self.total.counts['failed'] else 0

    def apart(self, seeds, modes, root):
        """What a batch found in a process of its own, or None and the seed where it ended."""
        self.mark(0)
        source, sink = os.pipe()
        sys.stdout.flush()
        pid = os.fork()
        if not pid:
            status = 1
            try:
                os.close(source)
                with open(sink, 'wb') as out:
                    pickle.dump(self.batch(seeds, modes, root), out)
                status = 0
            except BaseException:
                import traceback
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(status)
        os.close(sink)
        data, last, since = [], 0, time.time()
        with open(source, 'rb', buffering=0) as answer:
            while True:
                ready, _, _ = select.select([answer], [], [], 1)
                part = answer.read(1 << 20) if ready else None
                if part == b'':
                    break
                if part:
                    data.append(part)
                if self.marked() != last:
                    last, since = self.marked(), time.time()
                elif last and time.time() - since > STUCK:
                    os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        return (pickle.loads(b''.join(data)), 0) if status == 0 else (None, self.marked())

    def mark(self, seed):
        self.at[:] = seed.to_bytes(8, 'little')

    def marked(self):
        return int.from_bytes(self.at[:], 'little')

    def take(self, found):
        """Counts what a batch found."""
        print(found.text, end='', flush=True)
        self.total.counts.update(found.counts)
        self.total.kinds.update(found.kinds)
        if self.rarest:
            self.rarest.learn(found)
        if self.args.table:
            with open(self.args.table, 'a') as table:
                for (op, dtype), n in sorted(found.cells.items()):
                    table.write('%s\t%s\t%d\n' % (op, dtype, n))

    def sums(self):
        return ' '.join('%s %d' % kv for kv in sorted(self.total.counts.items()))

    # --- in the process of a batch

    def make(self, seed):
        args = self.args
        if args.pack:
            entries = [tuple(e.split()) for e in args.pack.split(',')]
            case, _ = self.packs.make_pack(seed, entries, self.sizes, args.bare)
        elif args.case:
            case = self.rarest.make(seed, ('case', args.case, args.dtype))
        elif args.node:
            case = self.rarest.make(seed, ('node', args.node, args.dtype))
        elif args.rarest:
            case = self.rarest.draw(seed, args.side)
        else:
            case = self.graphs.make_case(seed, args.op, args.dtype, args.short, self.sizes)
        return case

    def batch(self, seeds, modes, root):
        self.found, made = Batch(), {}
        with contextlib.redirect_stdout(io.StringIO()) as text:
            for s in seeds:
                self.mark(s)
                case = self.make(s)
                if case is None:
                    self.found.counts['refused'] += 1
                    continue
                case.write(os.path.join(root, case.name))
                made[case.name] = case
            self.mark(0)
            self.found.counts['graphs'] += len(made)
            self.found.counts['parts'] += sum(max(1, len(c.parts)) for c in made.values())
            for mode in modes:
                self.try_mode(mode, root, made)
                self.found.counts[mode.removesuffix(tf_fuzz.QUICK)] += len(made)
            self.tabulate(made.values(), modes)
            self.found.text = text.getvalue()
        if self.rarest:
            self.found.entries = self.rarest.take_drawn()
        return self.found

    def try_mode(self, mode, root, made):
        """Runs the cases, and leaves in `made`, and in root, what passes."""
        answers, split, refusals = {}, {}, {}
        failed, unsupported = tf_fuzz.judge(self.args.lathe, mode, root, sorted(made), answers)
        for name in sorted([*failed, *unsupported]):
            case = made.pop(name)
            shutil.rmtree(os.path.join(root, name))
            if case.parts:
                split[name] = case, failed.get(name)
                refusals[name] = unsupported.get(name)
            else:
                self.refuse_or_report(mode, case, failed.get(name), unsupported.get(name), answers.get(name))
        if split:
            self.split(mode, root, made, split, refusals)

    def split(self, mode, root, made, split, refusals):
        """Runs each part of these packs by itself; what is left of a pack goes on without those that do not pass."""
        alone, answers = {}, {}
        with tempfile.TemporaryDirectory(prefix='tf_fuzz_') as apart:
            for name, (case, _) in split.items():
                for k, part in enumerate(case.parts):
                    single = self.packs.some_of(case, [part], '%sp%d' % (name, k))
                    single.entry = '%s %s' % part.entry
                    single.write(os.path.join(apart, single.name))
                    alone[single.name] = single, name, part
            failed, unsupported = tf_fuzz.judge(self.args.lathe, mode, apart, sorted(alone), answers)
            for name, (case, why) in split.items():
                bad = []
                for at, (single, of, part) in alone.items():
                    if of == name and (at in failed or at in unsupported):
                        bad.append(part)
                        self.refuse_or_report(mode, single, failed.get(at), unsupported.get(at), answers.get(at))
                left = [p for p in case.parts if p not in bad]
                if not bad and why:  # only together
                    small = self.packs.fewest(case, lambda c: fails(self.args.lathe, mode, c))
                    why = fails(self.args.lathe, mode, small) or why
                    got = tf_fuzz.answers_of(self.args.lathe, mode, small) if why.startswith('mismatch') else None
                    self.report(mode, small, why, got, 'together: ')
                elif left and bad:
                    made[name] = self.packs.some_of(case, left, name)
                    made[name].write(os.path.join(root, name))
                elif not bad:
                    self.refused_together(mode, case, refusals[name])
                    made[name] = case
                    case.write(os.path.join(root, name))

    def refused_together(self, mode, case, message):
        """Reports a pack that is refused though none of its parts is; it goes on, since each part has passed by itself."""
        def refused(c):
            return bool(answer(self.args.lathe, mode, c)[1])
        small = self.packs.fewest(case, refused) if self.args.reduce else case
        self.found.counts['failed'] += 1
        print('FAIL %s %s %s (%s): refused together: %s' % (mode, case.name, case.again, ' '.join(small.steps), message[:300]))
        self.keep(mode, small)

    def refuse_or_report(self, mode, case, why, unsupported, got):
        if unsupported is not None:
            self.found.kinds['unsupported: ' + unsupported[:160]] += 1
            self.note(case, '@unsupported')
        else:
            self.report(mode, case, why, got)

    def report(self, mode, case, why, got, how=''):
        args = self.args
        self.mark(int(case.name[4:11]))  # TensorFlow runs again
        known = why.startswith('mismatch') and got and self.explain.explained(args.lathe, mode, case, got)
        self.found.counts['explained' if known else 'failed'] += 1
        print('%s %s %s %s (%s): %s%s' % ('KNOWN' if known else 'FAIL', mode, case.name, case.again, ' '.join(case.steps), how, why))
        if known:
            print('  %s' % known)
            self.note(case, '@explained')
        else:
            small = self.graphs.reduce_case(case, lambda c: fails(args.lathe, mode, c)) if args.reduce and not case.parts else None
            if small:
                print('  reduced: %s' % small.describe())
            self.keep(mode, small or case, case.name)
        self.mark(0)

    def note(self, case, kind):
        """A row of the table for the node that a part of a pack is around: what became of it, where it did not pass."""
        if case.entry:
            self.found.cells[kind, case.entry] += 1

    def keep(self, mode, case, name=None):
        """Leaves a case that fails in the folder for these."""
        folder = self.args.keep and os.path.join(self.args.keep, '%s_%s' % (name or case.name, mode))
        if folder and not os.path.exists(folder):
            case.write(folder)

    def tabulate(self, cases, modes):
        """What passed, as rows of the table: operations and types, and also the modes, and the sizes of what is fed."""
        cells = self.found.cells
        for case in cases:
            parts = case.parts or [case]
            # not what packs share, such as a constant's type: each graph counts once
            cells.update({cell for p in parts for cell in [*p.cells, *(('@size', str(n)) for n in p.sizes)]})
        cells.update({('@mode', mode.removesuffix(tf_fuzz.QUICK)): len(cases) for mode in modes})
        if self.rarest:
            cells.update(self.rarest.take_refusals())
