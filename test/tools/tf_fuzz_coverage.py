"""tf_fuzz_coverage.py TABLE... [--ops docs/generated/ops.md] [--least 20]: what tf_fuzz.py's graphs have been through.

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


def registered(ops):
    """{operation: types that its CPU kernels take}, by the attribute that tf_fuzz_graphs.type_of reads."""
    cells = collections.defaultdict(set)
    for kernel in kernels.get_all_registered_kernels().kernel:
        if kernel.device_type != 'CPU' or kernel.op not in ops:
            continue
        definition = op_def_registry.get(kernel.op)
        if definition is None:
            continue
        first = next((a.type_attr for a in [*definition.input_arg, *definition.output_arg] if a.type_attr), None)
        name = 'T' if any(a.name == 'T' for a in definition.attr) else first
        allowed = [tf.as_dtype(t).name for c in kernel.constraint if c.name == name for t in c.allowed_values.list.type]
        if name and not allowed:  # one kernel for all types that the definition allows
            attr = next(a for a in definition.attr if a.name == name)
            allowed = [tf.as_dtype(t).name for t in attr.allowed_values.list.type] or sorted(NUMERIC)
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
    print('%d pairs of an operation and a type: %d with %d graphs or more; %d pairs of %d operations have no graph at all' % (
        total, enough, args.least, sum(len(cells[op]) for op in never), len(never)))
    for op, n in few.items():
        print('few: %s %s' % (op, ', '.join('%s %d' % kv for kv in n.items() if kv[1] < args.least)))
    print('none: %s' % ' '.join(never))
    return 0


if __name__ == '__main__':
    sys.exit(main())
