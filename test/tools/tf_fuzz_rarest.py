"""Which graph tf_fuzz.py makes next: one for the operation and type that have the fewest so far."""
import collections
import os

import numpy as np

import tf_fuzz_coverage
import tf_fuzz_graphs as graphs
import tf_fuzz_mutants as mutants
import tf_fuzz_ops

REFUSED = 3  # graphs that one counts for which TensorFlow does not run: what it never runs is not tried for ever

SHARES = {'node': .75, 'op': .15, 'case': .1}  # of the graphs that each kind of entry makes


class Rarest:
    """Entries are (kind, what, type): of kind 'node' an operation of the registry, of kind 'op' one of tf_fuzz_ops.py, of kind 'case'
    the source of a mutant."""

    def __init__(self, table, cases, ops):
        self.counts, self.refused, self.drawn, self.refusals = (collections.Counter() for _ in range(4))
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

    def score(self, entry):
        cells = self.entries[entry]
        seen = min(self.counts[c] for c in cells) if cells else self.counts['@drawn', '%s %s' % entry[1:]]
        return seen + REFUSED * self.refused[entry] + .1 * self.drawn[entry]

    def pick(self, seed):
        rng = np.random.default_rng(seed)
        kind = rng.choice(list(SHARES), p=list(SHARES.values()))
        keys = [e for e in self.entries if e[0] == kind] or list(self.entries)
        scores = np.array([self.score(e) for e in keys])
        return keys[rng.choice(np.flatnonzero(scores == scores.min()))]

    def take_refusals(self):
        """What TensorFlow refused since the last call, as rows of the table."""
        taken, self.refusals = self.refusals, collections.Counter()
        return taken

    def make(self, seed, entry):
        kind, what, dtype = entry
        if kind == 'case':
            case = mutants.make_mutant(seed, self.sources[what], dtype)
        else:
            case = graphs.make_case(seed, what, dtype, short=True) if kind == 'op' else graphs.make_node_case(seed, what, dtype)
        self.drawn[entry] += 1
        if case is None:
            self.refused[entry] += 1
            if kind == 'node':
                self.refusals['@refused', '%s %s' % (what, dtype)] += 1
            return None
        case.again = '--%s "%s" --dtype %s' % (kind, what, dtype) + (' --short' if kind == 'op' else '')
        if kind == 'op':
            case.cells.append(('@drawn', '%s %s' % (what, dtype)))
        self.counts.update(case.cells)
        return case
