#!/usr/bin/env python3
"""Writes ops/*Ops.def from the op definitions of an installed TensorFlow.

Run by hand when ops are missing:  python scripts/update-op-table.py [OP ...]
Kept are the ops of tf.raw_ops but for device- and framework-internal families, those in the files, and the ones named.
"""
import glob
import os
import re
import sys

os.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'
import tensorflow as tf
from tensorflow.core.framework import op_def_pb2
from tensorflow.python.client import pywrap_tf_session

SKIP = re.compile(r'^(_|Tpu|.*TPU|Xla|Risc|Mkl|.*Mkl|Cudnn|BoostedTrees|IsBoostedTrees|DTensor|Rpc|Nccl|'
                  r'Collective|.*SparseCore|Infeed|Outfeed|.*Embedding[A-Z].*Parameters|Sdca|.*DedupData|'
                  r'Relayout|CopyToMesh|.*Minibatch|ExecuteTPU|ConvertToCooTensor|Debug|Prelinearize|DataService|.*GlobalTPU)')
# The first match gives the file; order matters.
FAMILIES = [
    ('Random', r'(Stateless)?Random|StatelessTruncated|Multinomial|Truncated|ParameterizedTruncatedNormal|Rng|Stateful|.*CandidateSampler|'
               r'StatelessShuffle|StatelessMultinomial|StatelessParameterized|SeedGenerator|NonDeterministicInts'),
    ('Data', r'Experimental|.*Dataset|.*Iterator|Optional|.*Reader|Reader|MemoryCache|.*MemoryCache|ThreadPoolHandle|StatsAgg|TextLine|'
             r'.*Snapshot|UncompressElement|CompressElement|.*SeedGenerator|GetElementAtIndex|ComputeBatchSize'),
    ('Host', r'.*Queue|Queue|.*Table|LookupTable|.*Summary|Summary|(Read|Write|Matching)Files?$|Save|Restore|Merge(V2|Summ)|'
             r'.*Accumulator|Accumulator|Barrier|Stage|Unstage|OrderedMap|Map(Stage|Unstage|Peek|Size|Clear|Incomplete)|'
             r'PyFunc|EagerPyFunc|Parse|Decode|Encode|Serialize|Deserialize|Shard|.*Session|Send|Recv|RemoteCall|ImportEvent|'
             r'Sql|Timestamp|FileSystem|RecordInput|LoadAndRemap|GenerateVocab|ExtractJpeg|Mutex|ConsumeMutex|Skipgram|'
             r'.*ConditionalAccumulator|CreateSummary|CloseSummary|FlushSummary|Abort$|Batch(Function)?$|Unbatch'),
    ('String', r'.*String|String|Regex|StaticRegex|Unicode|AsString|ReduceJoin|UnsortedSegmentJoin|Substr|AsString|'
               r'.*Base64|Fingerprint|StringNGrams|DenseCountSparse|.*Hash|AsStr'),
    ('Sparse', r'Sparse|.*Sparse|Ragged|.*Ragged|CSR|DenseToCSR|.*CSRSparse|TakeManySparse|AddManySparse|SetSize'),
    ('Train', r'(Resource)?(Apply|SparseApply)'),
    ('Quant', r'Quantize|.*Quantize|Dequantize|Requantiz|FakeQuant|.*Quantized'),
    ('State', r'Variable|VarHandle|.*VariableOp|Assign|.*Variable|Resource|Scatter|TensorList|EmptyTensorList|TensorArray|'
              r'TensorMap|EmptyTensorMap|Stack|CountUpTo|IsVariable|.*Resource|DestroyTemporary|VarIsInit|DisableCopyOnRead|'
              r'TemporaryVariable'),
    ('Flow', r'_SwitchN|(Ref)?(Switch|Merge|Enter|Exit|NextIteration|LoopCond|Select$|Identity$)|While|StatelessWhile|If$|StatelessIf|'
             r'Case|StatelessCase|For$|PartitionedCall|StatefulPartitionedCall|Placeholder|NoOp|Const|Identity|ControlTrigger|'
             r'Assert|Print|SymbolicGradient|Empty$|FakeParam|DeviceIndex|ParallelConcat|PreventGradient|StopGradient|'
             r'GuaranteeConst|ToBool'),
    ('Image', r'Resize|.*Resize|Adjust|RGB|HSV|CropAndResize|NonMaxSup|CombinedNonMax|DrawBounding|Extract|.*ImagePatches|Image|Audio|Mfcc|'
              r'GenerateBounding|SampleDistorted|StatelessSampleDist|ScaleAndTranslate'),
    ('Linalg', r'(Batch)?(Matrix|Cholesky|Self|Svd|FFT|IFFT)|Qr$|Svd$|Eig$|Lu$|.*FFT|LogMatrixDet|Tridiagonal|Einsum|Banded|'
               r'Cross$|Diag'),
    ('Nn', r'.*Conv|.*Pool|BiasAdd|.*Softmax|Relu|LeakyRelu|Elu|Selu|Softplus|Softsign|.*BatchNorm|LRN|L2Loss|InTopK|TopK|'
           r'Dilation|CTC|LSTM|GRU|BlockLSTM|DataFormat|Fractional|NthElement|IsotonicRegression|.*TopK|SoftmaxCross'),
    ('Array', r'Reshape|Transpose|Conjugate|Concat|Split|Slice|Strided|TensorStrided|Pack|Unpack|Gather|Pad|MirrorPad|Tile|Fill|Zeros|Ones|'
              r'Shape|Size|Rank|Expand|Squeeze|Reverse|Roll|SpaceTo|BatchTo|DepthTo|Unique|Where|OneHot|Range|LinSpace|'
              r'Broadcast|Bitcast|Invert|ListDiff|Dynamic|Tensor|Quant|Copy|Deep|Inplace|Unravel|Edit|LowerBound|'
              r'UpperBound|Search|CheckNumerics|Immutable|Snapshot|Ensure|EnsureShape'),
    ('Math', r''),
]
HOST = {'Data', 'Host', 'String'}
# In a host family by name, but with numbers only.
NOT_HOST = {'ZerosLike'}
# Sets of types with a name; those before come first. Registry.cpp has the same.
GROUPS = [
    ('number', 'float32,float64,int32,uint8,int16,int8,complex64,int64,qint8,quint8,qint32,bfloat16,qint16,quint16,uint16,'
               'complex128,float16,uint32,uint64'),
    ('real', 'float32,float64,int32,uint8,int16,int8,int64,bfloat16,uint16,float16,uint32,uint64'),
    ('floating', 'bfloat16,float16,float32,float64'),
    ('quantized', 'qint8,quint8,qint32,qint16,quint16'),
    ('complex', 'complex64,complex128'),
    ('index', 'int32,int64'),
]
HEAD = '''// Written by scripts/update-op-table.py; the format is described in Registry.h.
R"ops(
'''


def dtype_name(number):
    ref = number > 100
    name = tf.dtypes.as_dtype(number - 100 if ref else number).name
    return name + ('&' if ref else '')


def quoted(raw):
    out = ''
    for b in raw:
        c = chr(b)
        if c in '"\\':
            out += '\\' + c
        elif 32 <= b < 127:
            out += c
        else:
            out += '\\x%02x' % b
    return '"' + out + '"'


def shape_text(shape):
    if shape.unknown_rank:
        return 'unknown'
    return '[' + ','.join('?' if d.size < 0 else str(d.size) for d in shape.dim) + ']'


def number_text(v):
    text = repr(float('%.9g' % v))
    return text[:-2] if text.endswith('.0') else text


def value_text(kind, v):
    if kind.startswith('list('):
        inner = kind[5:-1]
        field = {'int': 'i', 'float': 'f', 'bool': 'b', 'string': 's', 'type': 'type', 'shape': 'shape', 'func': 'func',
                 'tensor': 'tensor'}[inner]
        return '[' + ','.join(one_text(inner, x) for x in getattr(v.list, field)) + ']'
    field = {'int': 'i', 'float': 'f', 'bool': 'b', 'string': 's', 'type': 'type', 'shape': 'shape'}[kind]
    return one_text(kind, getattr(v, field))


def one_text(kind, x):
    if kind == 'int':
        return str(x)
    if kind == 'float':
        return number_text(x)
    if kind == 'bool':
        return 'true' if x else 'false'
    if kind == 'string':
        return quoted(x)
    if kind == 'type':
        return dtype_name(x)
    if kind == 'shape':
        return shape_text(x)
    raise ValueError(kind)


def allowed_text(attr):
    """What values may be, as in Registry.h; empty for anything."""
    words = ['%d..' % attr.minimum] if attr.has_minimum else []
    types = [dtype_name(t) for t in attr.allowed_values.list.type]
    for name, members in GROUPS:
        if set(members.split(',')) <= set(types):
            words.append(name)
            types = [t for t in types if t not in members.split(',')]
    words += types + [quoted(x) for x in attr.allowed_values.list.s]
    return '[' + ','.join(words) + ']' if words else ''


def arg_text(arg):
    if arg.type_list_attr:
        kind = arg.type_list_attr + '...'
    else:
        kind = arg.type_attr or dtype_name(arg.type)
        if arg.number_attr:
            kind = arg.number_attr + '*' + kind
    return '%s:%s%s' % (arg.name, kind, '&' if arg.is_ref else '')


def op_text(op, host):
    parts = ['%s(' % op.name] + [arg_text(a) + ',' for a in op.input_arg]
    parts = [parts[0] + ' '.join(parts[1:]).rstrip(',') + ')', '->', '(']
    parts[-1] += ' '.join(arg_text(a) + ',' for a in op.output_arg).rstrip(',') + ')'
    attrs = []
    for a in op.attr:
        text = '%s:%s%s' % (a.name, a.type, allowed_text(a))
        if a.HasField('default_value') and a.type not in ('tensor', 'func', 'list(tensor)', 'list(func)'):
            text += '=' + value_text(a.type, a.default_value)
        attrs.append(text)
    if attrs:
        parts.append('{' + ', '.join(attrs) + '}')
    if op.is_stateful:
        parts.append('stateful')
    if host:
        parts.append('host')
    words, lines, line = ' '.join(parts).split(' '), [], ''
    for w in words:
        if line and len(line) + 1 + len(w) > 108:
            lines.append(line)
            line = '    ' + w
        else:
            line = line + ' ' + w if line else w
    return '\n'.join(lines + [line])


def main():
    ops = op_def_pb2.OpList()
    ops.ParseFromString(pywrap_tf_session.TF_GetBuffer(pywrap_tf_session.TF_GetAllOpList()))
    wanted = set(sys.argv[1:]) | {'_Arg', '_Retval'}
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'ops')
    files, known = {}, {op.name for op in ops.op}
    for file in glob.glob(os.path.join(folder, '*Ops.def')):
        for text, name in re.findall(r'^((\w+)\(.*(?:\n .*)*)', open(file).read(), re.M):
            wanted.add(name)
            if name not in known:  # our own
                files.setdefault(os.path.basename(file)[:-len('Ops.def')], []).append(text)
    for op in ops.op:
        if op.name not in wanted and (SKIP.match(op.name) or not hasattr(tf.raw_ops, op.name)):
            continue
        family = next(f for f, pattern in FAMILIES if re.match(pattern, op.name))
        fixed = any(a.type % 100 == 7 for a in list(op.input_arg) + list(op.output_arg))
        host = (family in HOST or fixed) and op.name not in NOT_HOST and op.name not in ('Assert', 'Print', 'PrintV2')
        files.setdefault(family, []).append(op_text(op, host))
    for family, texts in files.items():
        with open(os.path.join(folder, family + 'Ops.def'), 'w') as f:
            f.write(HEAD + '\n'.join(sorted(texts)) + '\n)ops"\n')
        print(family, len(texts))


if __name__ == '__main__':
    main()
