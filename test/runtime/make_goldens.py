"""Runs single ops on TensorFlow and writes what they gave to goldens/FAMILY.json, one case a line. The cases are in
goldens/FAMILY.py: a function `cases(case)` that calls case(op, **arguments of the raw op). An argument `held` makes the argument
`resource`, a variable that starts with that value; what it holds after the op is kept too. With `outputs` these are what is expected, of
an op that TensorFlow has no kernel of for CPUs. `producer` is the version of the graph, for ops that it runs in old ones alone. Files are in the folder FILES, whose name the tests know.

usage: make_goldens.py FAMILY ...   (needs tensorflow-cpu from PyPI; the tests need only the numbers)
"""
import importlib.util
import json
import os
import sys

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
import numpy as np
import tensorflow as tf

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'goldens')
FILES = os.path.join(HERE, 'files')
CODES = {tf.errors.InvalidArgumentError: 3, tf.errors.OutOfRangeError: 11, tf.errors.FailedPreconditionError: 9,
         tf.errors.NotFoundError: 5, tf.errors.UnimplementedError: 12, tf.errors.DataLossError: 15,
         tf.errors.InternalError: 13}


def number(x):
    if isinstance(x, (bool, np.bool_)):
        return bool(x)
    if isinstance(x, (int, np.integer)):
        return int(x)
    if isinstance(x, (complex, np.complexfloating)):
        return [number(float(x.real)), number(float(x.imag))]
    x = float(x)
    return x if np.isfinite(x) else str(x)


def tensor(value, dtype):
    dtype = tf.as_dtype(dtype)
    # a bytes scalar would lose its trailing zeros
    value = np.asarray(value, dtype=object) if isinstance(value, bytes) else np.asarray(value)
    if dtype == tf.string:
        data = [scalar('s', v if isinstance(v, bytes) else v.encode()) for v in value.reshape(-1)]
    else:
        data = [number(v) for v in value.astype(dtype.as_numpy_dtype if not dtype.is_quantized else None).reshape(-1)]
    return {'dtype': dtype.name, 'dims': list(value.shape), 'data': data}


def attr_value(value):
    kind = value.WhichOneof('value')
    if kind == 'list':
        for name in ('s', 'i', 'f', 'b', 'type', 'shape'):
            if len(getattr(value.list, name)):
                return ['list(%s)' % name, [scalar(name, v) for v in getattr(value.list, name)]]
        return ['empty', []]
    return [kind, scalar(kind, getattr(value, kind))]


def scalar(kind, value):
    if kind == 's':
        return value.decode('latin-1').replace(FILES, '$FILES')
    if kind == 'type':
        return tf.as_dtype(value).name
    if kind == 'shape':
        return None if value.unknown_rank else [d.size for d in value.dim]
    if kind == 'tensor':
        return tensor(tf.make_ndarray(value), value.dtype)
    return number(value)


def run(op, kwargs):
    with tf.Graph().as_default() as graph:
        kwargs = dict(kwargs)
        held, outputs, producer = (kwargs.pop(name, None) for name in ('held', 'outputs', 'producer'))
        if producer:
            definition = tf.compat.v1.GraphDef()
            definition.versions.producer = producer
            definition.node.add(op='NoOp', name='version')
            tf.import_graph_def(definition, name='old')
        if held is not None:
            handle = kwargs['resource'] = tf.raw_ops.VarHandleOp(dtype=held.dtype, shape=tf.TensorShape(None), shared_name='held')
            fed = tf.compat.v1.placeholder(held.dtype, held.shape)
            assign = tf.raw_ops.AssignVariableOp(resource=handle, value=fed + fed - fed)
            read = tf.raw_ops.ReadVariableOp(resource=handle, dtype=held.dtype)
        try:
            getattr(tf.raw_ops, op)(**kwargs)
        except Exception as e:  # a case that TensorFlow's own checks refuse says nothing about kernels
            raise RuntimeError('%s: %s' % (op, e))
        node = [n for n in graph.get_operations() if n.type == op][-1]
        attrs = {k: attr_value(v) for k, v in node.node_def.attr.items() if not k.startswith('_')}
        config = tf.compat.v1.ConfigProto()
        config.graph_options.place_pruned_graph = outputs is not None
        with tf.compat.v1.Session(config=config) as session:
            values = [i for i in node.inputs if i.dtype != tf.resource]
            inputs = session.run(values) if values else []
            record = {'op': op, 'attrs': attrs, 'inputs': [tensor(v, i.dtype) for v, i in zip(inputs, values)]}
            if held is not None:
                # as a sum, in a buffer of the variable's own: StatefulRandomBinomial writes to a shared one, not to the variable
                session.run(assign, {fed: held})
                record['inputs'].insert(0, {'dtype': 'resource', 'held': tensor(held, held.dtype)})
            try:
                if outputs is None:
                    outputs = session.run(list(node.outputs) or node) or []
                record['outputs'] = [tensor(v, o.dtype) for v, o in zip(outputs, node.outputs)]
            except tuple(CODES) as e:
                record['error'] = CODES[type(e)]
            if held is not None:
                record['held'] = tensor(session.run(read), held.dtype)
    return record


def main():
    for family in sys.argv[1:]:
        spec = importlib.util.spec_from_file_location(family, os.path.join(HERE, family + '.py'))
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        records, problems = [], []

        def case(op, **kwargs):
            tolerance = kwargs.pop('tolerance', None)
            try:
                record = run(op, kwargs)
            except Exception as e:
                problems.append('%s: %s' % (op, str(e).splitlines()[0][:150]))
                return
            if tolerance:
                record['tolerance'] = tolerance
            records.append(record)

        module.cases(case)
        with open(os.path.join(HERE, family + '.json'), 'w') as f:
            for r in records:
                f.write(json.dumps(r, sort_keys=True) + '\n')
        print('%s: %d cases, %d with errors' % (family, len(records), sum('error' in r for r in records)))
        for p in problems:
            print('  not taken:', p)


if __name__ == '__main__':
    main()
