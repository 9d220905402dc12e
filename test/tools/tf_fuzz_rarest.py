"""Which graph tf_fuzz.py makes next: one for the operation and type that have the fewest so far."""
import collections
import os

import numpy as np

import tf_fuzz
import tf_fuzz_coverage
import tf_fuzz_graphs as graphs
import tf_fuzz_mutants as mutants
import tf_fuzz_ops
import tf_fuzz_packs as packs

REFUSED = 3  # graphs that one counts for which TensorFlow does not run: what it never runs is not tried for ever
SHARES = {'node': .88, 'op': .08, 'case': .04}  # of the graphs that each kind of entry makes
RARE_SIZES = 5  # how many of the classes of sizes, those with the fewest graphs, come more often


class Rarest:
    """Entries are (kind, what, type): of kind 'node' an operation of the registry, of kind 'op' one of tf_fuzz_ops.py, of kind 'case'
    the source of a mutant. Nodes are drawn several at a time, to stand side by side."""

    def __init__(self, table, cases, ops, goal=None, bare=False):
        self.goal = goal  # where there is one, pairs that lack the fewest graphs come first, in three graphs of four
        self.bare = bare  # nodes stand by themselves
        self.counts, self.refused, self.drawn, self.refusals = (collections.Counter() for _ in range(4))
        self.log, self.skipped = [], set()
        if table and os.path.exists(table):
            self.counts.update(tf_fuzz_coverage.read_tables([table]))
        for (kind, cell), n in self.counts.items():
            if kind == '@refused':
                self.refused[('node', *cell.split(' '))] += n
        kernels = tf_fuzz_coverage.registered(tf_fuzz_coverage.compiled_operations(ops))
        self.entries = {('op', name, d.name): [] for name, kinds, _ in tf_fuzz_ops.OPS for k in kinds for d in graphs.DTYPES[k]}
        self.entries.update({('node', o, d): [(o, d)] for o, types in kernels.items() for d in types})
        self.sources = {}
        for source in mutants.sources(cases) if cases else []:
            self.sources[source.key] = source
            for d in graphs.KIND_OF:
                # what takes the case's own type has to take this one
                if any(source.type.name in kernels.get(o, ()) and d.name not in kernels[o] for o in source.ops):
                    continue
                cells = [(o, d.name) for o in source.ops if d.name in kernels.get(o, ())]
                if cells:
                    self.entries['case', source.key, d.name] = cells
        self.keys = {kind: [e for e in self.entries if e[0] == kind] for kind in SHARES}
        self.scores = {kind: np.array([self.score(e) for e in keys]) for kind, keys in self.keys.items()}
        self.place = {e: i for keys in self.keys.values() for i, e in enumerate(keys)}
        self.removed = np.array([bool(graphs.tf_fuzz_nodes.removed_in(op)) for _, op, _ in self.keys['node']])

    def seen(self, entry):
        cells = self.entries[entry]
        if entry[0] == 'node':  # what is always explained never passes
            return self.counts[cells[0]] + self.counts['@explained', '%s %s' % entry[1:]]
        return min(self.counts[c] for c in cells) if cells else self.counts['@drawn', '%s %s' % entry[1:]]

    def score(self, entry):
        seen = self.seen(entry)
        if self.goal:
            seen = self.goal - seen if seen < self.goal else self.goal + seen
        return self.held_back(seen, entry)

    def held_back(self, score, entry):
        return score + REFUSED * self.refused[entry] + .1 * self.drawn[entry]

    def rescore(self, entry):
        if entry in self.place:
            self.scores[entry[0]][self.place[entry]] = self.score(entry)

    # --- which is next

    def draw(self, seed, side):
        """A graph of the rarest; None where TensorFlow refuses it."""
        rng = np.random.default_rng(seed)
        kind = rng.choice(list(SHARES), p=list(SHARES.values()))
        if not self.keys[kind]:
            kind = 'node'
        scores = self.scores[kind]
        if self.goal and seed % 4 == 0:
            scores = np.array([self.held_back(self.seen(e), e) for e in self.keys[kind]])
        first = rng.choice(np.flatnonzero(scores == scores.min()))
        if kind != 'node':
            return self.make(seed, self.keys[kind][first])
        # what TensorFlow has removed goes into graphs of an older version, by itself
        among = np.flatnonzero(self.removed == self.removed[first])
        if self.goal:  # what has enough takes time from what has not
            among = np.array([i for i in among if i == first or self.seen(self.keys['node'][i]) < self.goal])
        order = among[np.argsort(scores[among] + .5 * rng.random(len(among)), kind='stable')]
        chosen = [first, *order[order != first]][:int(rng.integers(max(1, side * 3 // 4), side * 5 // 4 + 1))]
        return self.make_pack(seed, [self.keys['node'][i][1:] for i in chosen], self.rare_sizes())

    def rare_sizes(self):
        return sorted(sorted(tf_fuzz.SIZES, key=lambda n: self.counts['@size', str(n)])[:RARE_SIZES])

    def make_pack(self, seed, entries, sizes):
        if seed in self.skipped:
            return None
        case, refused = packs.make_pack(seed, entries, sizes, self.bare)
        for entry in entries:
            self.note(('node', *entry), entry in refused, [])
        if case:
            case.again = '--pack "%s" --sizes %s' % (','.join('%s %s' % e for e in entries), ','.join(map(str, sizes))) + (' --bare' if self.bare else '')
            for part in case.parts:
                self.counts.update(part.cells)
                for cell in part.cells:
                    self.rescore(('node', *cell))
        return case

    def make(self, seed, entry):
        kind, what, dtype = entry
        if seed in self.skipped:
            return None
        if kind == 'case':
            case = mutants.make_mutant(seed, self.sources[what], dtype)
        else:
            case = graphs.make_case(seed, what, dtype, short=True) if kind == 'op' else graphs.make_node_case(seed, what, dtype)
        self.note(entry, case is None, case.cells if case else [])
        if case:
            case.again = '--%s "%s" --dtype %s' % (kind, what, dtype) + (' --short' if kind == 'op' else '')
            if kind == 'op':
                case.cells.append(('@drawn', '%s %s' % (what, dtype)))
            self.counts.update(case.cells)
        return case

    # --- what the process of a batch tells the one that goes on

    def note(self, entry, refused, cells):
        self.log.append((entry, refused))
        self.drawn[entry] += 1
        if refused:
            self.refused[entry] += 1
            if entry[0] == 'node':
                self.refusals['@refused', '%s %s' % entry[1:]] += 1
        self.rescore(entry)
        for cell in cells:
            self.rescore(('node', *cell))

    def take_refusals(self):
        """What TensorFlow refused since the last call, as rows of the table."""
        taken, self.refusals = self.refusals, collections.Counter()
        return taken

    def take_drawn(self):
        taken, self.log = self.log, []
        return taken

    def learn(self, found):
        """Takes in what another process drew, and what of it passed."""
        for cell, n in found.cells.items():
            if cell[0] != '@refused':
                self.counts[cell] += n
                self.rescore(('node', *(cell[1].split(' ') if cell[0] == '@explained' else cell)))
        for entry, refused in found.entries:
            self.drawn[entry] += 1
            self.refused[entry] += refused
            self.rescore(entry)

    def forget(self, seed):
        """Leaves out a seed for good."""
        self.skipped.add(seed)
