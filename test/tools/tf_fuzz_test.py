"""tf_fuzz_test.py: what tf_fuzz.py takes for a finding, and what one graph of a batch may cost the others. Needs TensorFlow."""
import argparse
import io
import os
import sys
import tempfile
import unittest
from contextlib import redirect_stdout

import numpy as np
import tensorflow as tf

import tf_fuzz
import tf_fuzz_coverage as coverage
import tf_fuzz_explain as explain
import tf_fuzz_graphs as graphs
import tf_fuzz_loop
import tf_fuzz_packs as packs
import tf_fuzz_rarest
import tf_fuzz_unreached as unreached

tf1 = tf.compat.v1
OPS = os.path.join(os.path.dirname(__file__), '../../docs/generated/ops.md')


def arguments(**given):
    defaults = dict(seed=1, count=4, batch=4, modes='plain', all_modes=True, lathe='none', reduce=False, keep=None, table=None, short=False,
                    rarest=False, cases=None, case=None, node=None, op=None, dtype=None, pack=None, sizes='', side=8, ops='', goal=None, bare=False, quick=False)
    return argparse.Namespace(**{**defaults, **given})


def graph_in(root, name):
    with open(os.path.join(root, name, 'graph.pb'), 'rb') as f:
        return f.read()


def case_of(build):
    """A case of what `build` makes in a graph: feeds, fetches."""
    graph = tf.Graph()
    with graph.as_default():
        feeds, fetches = build()
    return graphs.finish(graph, 'seed0000001', feeds, fetches, [])


class Batches(unittest.TestCase):
    """These fork, and come first: nothing may have run in this process."""

    def run_loop(self, fuzz):
        with redirect_stdout(io.StringIO()) as text:
            fuzz.run()
        return text.getvalue()

    def with_judge(self, judge, run):
        before, tf_fuzz.judge = tf_fuzz.judge, judge
        try:
            return run()
        finally:
            tf_fuzz.judge = before

    def test_the_end_of_tensorflow_costs_one_seed(self):
        class Ends(tf_fuzz_loop.Fuzz):
            def make(self, seed):
                if seed == 2:
                    os.abort()
                return super().make(seed)
        fuzz = Ends(arguments(op='Neg', dtype='float32', short=True))
        text = self.with_judge(lambda *args: ({}, {}), lambda: self.run_loop(fuzz))
        self.assertIn('FAIL seed0000002: TensorFlow ended its process', text)
        self.assertEqual(fuzz.total.counts['ended'], 1)
        self.assertEqual(fuzz.total.counts['graphs'] + fuzz.total.counts['refused'], 3)
        self.assertGreater(fuzz.total.counts['graphs'], 0)

    def test_a_part_that_fails_costs_no_other(self):
        with tempfile.NamedTemporaryFile('r') as table:
            fuzz = tf_fuzz_loop.Fuzz(arguments(count=1, pack='Neg float32,Abs int32,Floor float64', table=table.name))

            def judge(lathe, mode, root, names, answers=None):
                bad = {n for n in names if b'Abs' in graph_in(root, n)}
                return {n: 'error: Abs' for n in bad}, {}
            text = self.with_judge(judge, lambda: self.run_loop(fuzz))
            rows = [line.split('\t') for line in table.read().splitlines()]
        self.assertEqual(text.count('FAIL'), 1)
        self.assertIn('p1', text)
        passed = {(op, dtype) for op, dtype, _ in rows}
        self.assertTrue({('Neg', 'float32'), ('Floor', 'float64')} <= passed)
        self.assertNotIn(('Abs', 'int32'), passed)

    def test_parts_that_fail_only_together_are_a_finding(self):
        fuzz = tf_fuzz_loop.Fuzz(arguments(count=1, pack='Neg float32,Abs int32,Floor float64'))

        def judge(lathe, mode, root, names, answers=None):
            return {n: 'error' for n in names if b'Neg' in graph_in(root, n) and b'Floor' in graph_in(root, n)}, {}
        text = self.with_judge(judge, lambda: self.run_loop(fuzz))
        self.assertIn('together', text)
        self.assertRegex(text, r'\(Neg.* Floor.*\): together')
        self.assertNotRegex(text, r'\(.*Abs.*\): together')


class Explained(unittest.TestCase):
    """Lathe is played by a table of what it gives for each tensor, by name; TensorFlow's answer for others."""

    def why(self, case, answers):
        def answers_of(lathe, mode, whole):
            return [tf_fuzz.stored(answers.get(f, e)) for f, e in zip(whole.fetches, whole.expected)]
        before, tf_fuzz.answers_of = tf_fuzz.answers_of, answers_of
        try:
            return explain.explained('none', 'plain', case, [answers.get(f, e) for f, e in zip(case.fetches, case.expected)])
        finally:
            tf_fuzz.answers_of = before

    def test_a_rule_behind_the_wrong_element_explains(self):
        def build():
            x = tf1.placeholder(tf.float32, [4], 'x')
            y = tf.cast(x, tf.int8, name='narrow')
            return {x: np.array([300.5, 2.5, 3.5, 4.5], np.float32)}, [tf.add(tf.cast(y, tf.float32, name='wide'), 1., name='out')]
        case = case_of(build)
        narrow = np.array([0, 2, 3, 4], np.int8)
        wide = narrow.astype(np.float32)
        self.assertIn('casts out of range', self.why(case, {'narrow:0': narrow, 'wide:0': wide, 'out:0': wide + 1}) or '')

    def test_a_rule_elsewhere_in_the_graph_does_not(self):
        def build():
            x = tf1.placeholder(tf.float32, [4], 'x')
            tf.cast(x, tf.int8, name='narrow')
            return {x: np.array([300.5, 2.5, 3.5, 4.5], np.float32)}, [tf.add(x, 1., name='out')]
        case = case_of(build)
        self.assertIsNone(self.why(case, {'out:0': case.expected[0] + np.array([5, 0, 0, 0], np.float32) * 1e8}))

    def test_a_rule_behind_other_elements_does_not(self):
        # narrow differs at 0 as it may; out at 3 for steps that are each as good as right, and are not together
        def build():
            x = tf1.placeholder(tf.float32, [4], 'x')
            y = tf.cast(tf.cast(x, tf.int8, name='narrow'), tf.float32, name='wide')
            a = tf.multiply(y, 1., name='a')
            return {x: np.array([300.5, 2.5, 3.5, 100.5], np.float32)}, [tf.multiply(a, 1., name='out')]
        case = case_of(build)
        wide = case.expected[0].copy()
        wide[0] += 1
        a, out = wide.copy(), wide.copy()
        a[3] *= 1 + .9e-4
        out[3] *= 1 + 1.8e-4
        self.assertIsNone(self.why(case, {'narrow:0': wide.astype(np.int8), 'wide:0': wide, 'a:0': a, 'out:0': out}))
        # the same, without what no rule speaks of
        self.assertIn('casts', self.why(case, {'narrow:0': wide.astype(np.int8), 'wide:0': wide, 'a:0': wide, 'out:0': wide}) or '')

    def test_a_rule_before_a_variable_explains_what_it_holds(self):
        def build():
            x = tf1.placeholder(tf.float32, [4], 'x')
            y = tf.cast(tf.cast(x, tf.int8, name='narrow'), tf.float32, name='wide')
            v = tf.raw_ops.Assign(ref=tf.raw_ops.VariableV2(shape=[4], dtype=tf.float32, shared_name='v'), value=np.ones(4, np.float32))
            added = tf.raw_ops.AssignAdd(ref=v, value=y, name='sum')
            return {x: np.array([300.5, 2.5, 3.5, 4.5], np.float32)}, [tf.identity(added, name='out')]
        case = case_of(build)
        wide = np.array([45, 2, 3, 4], np.float32)
        answers = {'narrow:0': wide.astype(np.int8), 'wide:0': wide, 'sum:0': wide + 1, 'out:0': wide + 1}
        self.assertIn('casts out of range', self.why(case, answers) or '')
        answers = {**answers, 'sum:0': wide + 2, 'out:0': wide + 2}
        self.assertIsNone(self.why(case, answers))

    def test_steps_that_drift_do_not(self):
        def build():
            x = tf1.placeholder(tf.float32, [2], 'x')
            return {x: np.array([100, 200], np.float32)}, [tf.multiply(tf.multiply(x, 1., name='a'), 1., name='out')]
        case = case_of(build)
        a, out = case.expected[0] * np.float32(1 + .9e-4), case.expected[0] * np.float32(1 + 1.8e-4)
        self.assertIsNone(self.why(case, {'a:0': a, 'out:0': out}))

    def test_a_rounding_that_turns_a_comparison_does(self):
        def build():
            x = tf1.placeholder(tf.float32, [1], 'x')
            return {x: np.array([.3], np.float32)}, [tf.cast(tf.less(tf.multiply(x, 3., name='a'), 1.), tf.float32, name='out')]
        case = case_of(build)
        self.assertIsNone(self.why(case, {'out:0': np.array([0], np.float32)}))  # far from the bound
        def at_bound():
            x = tf1.placeholder(tf.float32, [1], 'x')
            return {x: np.array([1.], np.float32)}, [tf.cast(tf.less(tf.exp(x, name='a'), 2.7182817, name='less'), tf.float32, name='out')]
        case = case_of(at_bound)
        other = 1 - case.expected[0]
        a = np.array([np.nextafter(np.float32(2.7182817), np.float32(9 if other[0] == 0 else 0))], np.float32)
        self.assertIsNotNone(self.why(case, {'a:0': a, 'less:0': other.astype(bool), 'out:0': other}))


class Packs(unittest.TestCase):
    def test_a_refused_node_costs_no_other(self):
        for bad in ('TopK float32', 'MatrixInverse int32'):  # by its kernel, by its type
            entries = [tuple(e.split()) for e in ('Neg float32', bad, 'Abs int32')]
            case, refused = packs.make_pack(7, entries)
            self.assertEqual([p.entry for p in case.parts], [entries[0], entries[2]])
            self.assertEqual(refused, [entries[1]])

    def test_each_part_keeps_its_own_tolerance(self):
        case, _ = packs.make_pack(3, [('Neg', 'bfloat16'), ('Neg', 'float64')])
        of = dict(zip(case.fetches, case.leasts))
        self.assertEqual({of[t.name] for t in case.parts[0].fetches}, {'bfloat16'})
        self.assertEqual({of[t.name] for t in case.parts[1].fetches}, {'float64'})

    def test_bare_nodes_stand_by_themselves(self):
        entries = [('Neg', 'float32'), ('Select', 'int32'), ('Prod', 'float64')] * 4
        case, _ = packs.make_pack(5, entries, bare=True)
        self.assertEqual([p.steps for p in case.parts], [[op] for op, _ in entries])
        self.assertEqual({o.type for o in case.tf_graph.get_operations() if o.name in case.kept} - {'Placeholder', 'Const'},
                         {op for op, _ in entries})

    def test_what_has_enough_takes_no_time(self):
        lacking = {('Neg', 'float32'), ('Abs', 'int32'), ('Select', 'bool')}
        cells = coverage.registered(coverage.compiled_operations(OPS))
        with tempfile.NamedTemporaryFile('w') as table:
            for op, dtype in sorted({(op, d) for op in cells for d in cells[op]} - lacking):
                # of one half all that there is was explained
                table.write('%s\t%s\t20\n' % ((op, dtype) if len(op) % 2 else ('@explained', '%s %s' % (op, dtype))))
            table.flush()
            rarest = tf_fuzz_rarest.Rarest(table.name, None, OPS, goal=20)
        drawn = [case for case in (rarest.draw(seed, 8) for seed in range(1, 9)) if case and case.parts]
        self.assertTrue(drawn)
        for case in drawn:
            self.assertLessEqual({p.entry for p in case.parts}, lacking)

    def test_rare_sizes_come_often(self):
        counts = [sum(1000 in graphs.tf_fuzz_nodes.some(graphs.Gen(np.random.default_rng(s), rare), 1) for s in range(300))
                  for rare in ((), (1000,))]
        self.assertGreater(counts[1], 3 * counts[0])


class Unreached(unittest.TestCase):
    def test_it_is_told_why_nothing_is_taken(self):
        self.assertIn('index_type', unreached.refusal('TopK', 'float32'))
        self.assertIn('list of allowed values', unreached.refusal('MatrixInverse', 'int32'))
        self.assertIsNone(unreached.refusal('Neg', 'float32'))

    def test_a_reason_is_one_line(self):
        told = unreached.told("Graph execution error:\n\nDetected at node 'x'\n  File 1\nNode: 'x'\nNo | of it\n\t [[{{node x}}]]")
        self.assertEqual(told, 'No   of it')


if __name__ == '__main__':
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]])
