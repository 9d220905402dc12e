"""tf_fuzz_coverage.py TABLE... [--ops docs/generated/ops.md] [--least 20] [--write FILE]: what tf_fuzz.py's graphs have been through.

Reads what `tf_fuzz.py fuzz --table` wrote and prints how many graphs passed for each size and mode, and for each pair of an
operation that Lathe compiles and a type that TensorFlow has a CPU kernel for. Pairs with less than --least graphs are listed by
operation, those that the generator does not draw at all by name. Needs TensorFlow, for its list of kernels.
"""
import argparse
import collections
import os
import re
import sys

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
os.environ.setdefault('CUDA_VISIBLE_DEVICES', '')
import tensorflow as tf  # noqa: E402
from tensorflow.python.framework import kernels, op_def_registry  # noqa: E402

NUMERIC = {t.name for t in (tf.float32, tf.float64, tf.float16, tf.bfloat16, tf.complex64, tf.complex128, tf.int8, tf.int16,
                            tf.int32, tf.int64, tf.uint8, tf.uint16, tf.uint32, tf.uint64, tf.bool)}


def compiled_operations(path):
    with open(path) as lines:
        return {m[1] for m in (re.match(r'\| (\w+) \| compiled', line) for line in lines) if m}


def own_attribute(definition):
    """The attribute that tells an operation's kernels apart: one of the usual names, else that of its first operand or result."""
    types = {a.name for a in definition.attr if a.type in ('type', 'list(type)')}
    usual = [name for name in ('dtype', 'T', 'Tin', 'element_dtype', 'Tvalues', 'elem_type', 'Tout') if name in types]
    given = [a.type_attr or a.type_list_attr for a in [*definition.input_arg, *definition.output_arg]]
    if usual == ['Tout']:  # the result's, which says less than the operand's
        usual = []
    return next((name for name in [*usual, *given] if name), None)


def registered(ops):
    """{operation: types that its CPU kernels take}, by the attribute that own_attribute names."""
    cells = collections.defaultdict(set)
    for kernel in kernels.get_all_registered_kernels().kernel:
        if kernel.device_type != 'CPU' or kernel.op not in ops:
            continue
        definition = op_def_registry.get(kernel.op)
        if definition is None:
            continue
        name = own_attribute(definition)
        allowed = [tf.as_dtype(t).name for c in kernel.constraint if c.name == name for t in c.allowed_values.list.type]
        attr = next((a for a in definition.attr if a.name == name), None)
        defined = [tf.as_dtype(t).name for t in attr.allowed_values.list.type] if attr else []
        if name and not allowed:  # one kernel for all types that the definition allows
            allowed = defined or sorted(NUMERIC)
        if defined:  # some kernels are for types that no graph may ask for
            allowed = set(allowed).intersection(defined)
        cells[kernel.op] |= NUMERIC.intersection(allowed)
    return {op: types for op, types in cells.items() if types}


def read_tables(paths):
    """How many graphs passed for each operation and type."""
    counts = collections.Counter()
    for table in paths:
        with open(table) as lines:
            for line in lines:
                op, dtype, n = line.rstrip('\n').split('\t')
                counts[op, dtype] += int(n)
    return counts


def main():
    p = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    p.add_argument('tables', nargs='+')
    p.add_argument('--ops', default='docs/generated/ops.md')
    p.add_argument('--least', type=int, default=20)
    p.add_argument('--write', help='a file for the list of pairs with fewer')
    args = p.parse_args()
    counts = read_tables(args.tables)
    for kind in ('@mode', '@size'):
        found = {name: n for (op, name), n in counts.items() if op == kind}
        order = sorted(found, key=lambda x: (int(x) if x.isdigit() else 0, x))
        print('%s: %s' % (kind[1:], ', '.join('%s %d' % (name, found[name]) for name in order)))
    cells = registered(compiled_operations(args.ops))
    enough, few, never = 0, {}, []
    for op in sorted(cells):
        n = {dtype: counts[op, dtype] for dtype in sorted(cells[op])}
        if not any(n.values()):
            never.append(op)
            continue
        enough += sum(v >= args.least for v in n.values())
        if min(n.values()) < args.least:
            few[op] = n
    total = sum(map(len, cells.values()))
    seen = sum(counts[op, dtype] > 0 for op in cells for dtype in cells[op])
    print('%d pairs of an operation and a type: %d with %d graphs or more, %d with one or more; %d of %d operations have no graph' % (
        total, enough, args.least, seen, len(never), len(cells)))
    if args.write:
        write_list(args, cells, counts)
        return 0
    for op, n in few.items():
        print('few: %s %s' % (op, ', '.join('%s %d' % kv for kv in n.items() if kv[1] < args.least)))
    print('none: %s' % ' '.join(never))
    return 0


def write_list(args, cells, counts):
    """The pairs with few graphs, one line for each operation, and those that no graph reaches, with what TensorFlow says to it."""
    import tf_fuzz_unreached
    explained = {pair: counts['@explained', '%s %s' % pair] for op in cells for pair in ((op, d) for d in cells[op])}
    rare = {(op, d): counts[op, d] for op in sorted(cells) for d in sorted(cells[op]) if counts[op, d] < args.least}
    why = tf_fuzz_unreached.reasons([pair for pair, n in rare.items() if not n and not explained[pair]])
    with open(args.write, 'w') as out:
        out.write('# Pairs of an operation and a type that few random graphs have been through\n\n'
                  'Made by `test/tools/tf_fuzz_coverage.py --write` from the table of the runs that [fuzzing.md](fuzzing.md) tells of. '
                  'A pair has too few below %d\ngraphs that passed; behind `+` stands how many gave another answer than TensorFlow that '
                  'a rule explains.\n\n| op | graphs by type |\n| --- | --- |\n' % args.least)
        for op in sorted({op for op, _ in rare}):
            found = [(d, n) for (of, d), n in rare.items() if of == op and (op, d) not in why]
            if found:
                out.write('| %s | %s |\n' % (op, ', '.join(
                    '%s %d' % (d, n) + (' + %d' % explained[op, d] if explained[op, d] else '') for d, n in found)))
        out.write('\nPairs that no graph reaches, with what TensorFlow %s says to every node that is drawn:\n\n| op | types | why |\n'
                  '| --- | --- | --- |\n' % tf.__version__)
        by_reason = collections.defaultdict(list)
        for (op, d), text in why.items():
            by_reason[op, text.replace("'%s'" % d, 'it')].append(d)
        for (op, text), types in sorted(by_reason.items()):
            out.write('| %s | %s | %s |\n' % (op, ', '.join(types), text))
    print('%d pairs with fewer than %d graphs that passed, of which TensorFlow refuses %d; %d have as many with those that are explained' % (
        len(rare), args.least, len(why), sum(n + explained[pair] >= args.least for pair, n in rare.items())))


if __name__ == '__main__':
    sys.exit(main())
