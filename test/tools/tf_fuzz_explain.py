"""Which wrong answers of tf_fuzz.py are none.

Lathe is asked for every tensor on the way to the wrong one. Where it gives the same wrong answer then, each operation is judged by
itself: TensorFlow runs it on the operands that Lathe had. An operation that gives something else has to be one of KNOWN, and every
element that differs has to be one that the rule speaks of. That alone explains nothing: each wrong element has to become another one
in TensorFlow, too, when the result of such an operation is replaced by Lathe's (caused_by). Where no operation gives something else,
roundings alone have to lead there in the same way, from the result of any operation on the way.
Where Lathe answers otherwise when it is asked for more (what is fused rounds less), TensorFlow's own answer has to change, at
every element that differs, when the result of one operation on the way moves by a few roundings.
"""
import numpy as np
import tensorflow as tf

import tf_fuzz
import tf_fuzz_coverage
import tf_fuzz_graphs as graphs

NARROW = ('int8', 'uint8', 'int16', 'uint16')


def wide(a):
    return a.astype(np.complex128 if a.dtype.kind == 'c' else np.float64)


# --- elements that a rule speaks of, of one operand or result

def not_finite(a):
    return ~np.isfinite(wide(a))


def squares_leave_range(a):
    """Complex numbers whose square is no normal number."""
    if a.dtype.kind != 'c':
        return np.zeros(a.shape, bool)
    info = np.finfo(a.real.dtype)
    with np.errstate(all='ignore'):
        square = np.abs(wide(a)) ** 2
        return ~np.isfinite(square) | (square > info.max / 4) | ((square < info.tiny * 4) & (a != 0))


def denormal(a):
    if a.dtype.kind not in 'fc' and a.dtype.name != 'bfloat16':
        return np.zeros(a.shape, bool)
    least = np.finfo(a.real.dtype).tiny if a.dtype.name != 'bfloat16' else np.finfo(np.float32).tiny
    if a.dtype.kind == 'c':
        return denormal(a.real) | denormal(a.imag)
    size = np.abs(a.astype(np.float64))
    return (size > 0) & (size < least)


# --- rules: operations, the elements of a result that may differ, and why. A rule is given the operation, its operands, what TensorFlow
# made of them, and what Lathe did.

def at_operands(holds, results=False):
    """Elements one of whose operands is such a number; all of them, where operands and result do not broadcast."""
    def mask(o, operands, want, got):
        found = np.zeros(want.shape, bool)
        for a in [*operands, *([want, got] if results else [])]:
            m = holds(a)
            try:
                found = found | np.broadcast_to(m, want.shape)
            except ValueError:
                found |= np.any(m)
        return found
    return mask


def leaves_integer(o, operands, want, got):
    """Floats that the integer cannot hold, where TensorFlow's vectors and the elements after the last whole one differ."""
    x, dtype = operands[0], want.dtype.name
    if dtype not in (*NARROW, 'uint32') or x.dtype.kind in 'iub' or x.dtype.name == 'complex64' and dtype != 'uint32':
        return np.zeros(want.shape, bool)
    info, x = np.iinfo(want.dtype), np.real(wide(x))
    least = -2. ** 31 if dtype == 'uint32' else info.min
    return ~((x > least - 1.) & (x < info.max + 1.))


def nan_of_zero_weight(o, operands, want, got):
    """NaN that comes of a weight of 0, or of padding, times infinity, and that only TensorFlow makes."""
    some = any(np.any(not_finite(a)) for a in operands if a.dtype.kind == 'f' or a.dtype.name == 'bfloat16')
    return np.isnan(wide(want)) & ~np.isnan(wide(got)) & some


def zero_times_infinity(o, operands, want, got):
    """Where one side multiplies by the zeros of padding or dilation and the other does not."""
    some = any(np.any(not_finite(a)) for a in operands if a.dtype.kind == 'f' or a.dtype.name == 'bfloat16')
    return (not_finite(want) | not_finite(got)) & some


def complex_left_range(o, operands, want, got):
    """Products of complex numbers one of whose parts has left the range: which of inf and NaN the other gives rests on their order."""
    return np.full(want.shape, want.dtype.kind == 'c') & (not_finite(want) | not_finite(got))


def matrices_not_finite(o, operands, want, got):
    return np.broadcast_to(np.any(not_finite(operands[0]), axis=(-2, -1), keepdims=True), want.shape)


def integers(o, operands, want, got):
    return np.full(want.shape, want.dtype.kind in 'iu')


def nan_among_maxima(o, operands, want, got):
    return np.full(want.shape, any(np.any(np.isnan(wide(a))) for a in operands if a.dtype.kind == 'f' or a.dtype.name == 'bfloat16'))


def infinite_doubles(o, operands, want, got):
    return np.isinf(operands[0]) & (operands[0].dtype == np.float64)


def unsorted_rows(o, operands, want, got):
    rows = operands[0]
    bad = ~np.all(rows[:, 1:] >= rows[:, :-1], axis=1) if rows.ndim == 2 else np.zeros(1, bool)
    return np.broadcast_to(bad[:, None], want.shape)


KNOWN = [
    ('MaxPool3D MaxPool3DGrad', nan_among_maxima, 'NaN in three-dimensional max pooling'),
    ('LRN LRNGrad Conv2D Conv3D DepthwiseConv2dNative Conv2DBackpropInput Conv2DBackpropFilter ResizeBilinear ResizeBicubic ResizeArea '
     'FusedPadConv2D FusedResizeAndPadConv2D',
     nan_of_zero_weight, '0 times infinity in convolutions, resizes and response normalization'),
    ('Conv Conv2DBackpropInput Conv2DBackpropFilter Conv3DBackpropInput Conv3DBackpropFilter Conv3DBackpropInputV2 Conv3DBackpropFilterV2 '
     'DepthwiseConv2dNativeBackpropInput DepthwiseConv2dNativeBackpropFilter ResizeBilinearGrad ResizeBicubicGrad '
     'ResizeNearestNeighborGrad ScaleAndTranslate ScaleAndTranslateGrad CropAndResizeGradImage LRNGrad ResizeArea '
     'QuantizedResizeBilinear', zero_times_infinity,
     '0 times infinity in gradients, and in resizes'),
    ('SegmentProd UnsortedSegmentProd Cumprod SigmoidGrad TanhGrad', complex_left_range, 'complex products that leave the range'),
    ('XlaReduceWindow', nan_among_maxima, 'NaN in windows, which minima and maxima of XLA on CPUs leave out'),
    ('Cholesky', matrices_not_finite, 'matrices that are not finite'),
    ('SegmentMax SegmentMin SparseReduceMax', nan_among_maxima, 'NaN in whole vectors of the largest of sorted segments'),
    ('Round', integers, 'Round of integers, which TensorFlow makes 0'),
    ('Erf', infinite_doubles, 'Erf of infinite doubles, of which TensorFlow makes NaN'),
    ('Cast', leaves_integer, 'casts out of range'),
    ('LowerBound UpperBound', unsorted_rows, 'bounds in rows that are not sorted'),
    ('Log Log1p Sign Square Reciprocal Sqrt Rsqrt Div RealDiv DivNoNan Xdivy Xlogy Xlog1py Pow Tanh Sigmoid Asin Acos Atan Asinh Acosh '
     'Atanh Mul Prod ComplexAbs', at_operands(squares_leave_range, results=True), 'complex numbers whose squares leave the range'),
    # operations that tell a denormal number from 0: TensorFlow makes every one a 0 on its way in or out
    ('SqrtGrad RsqrtGrad InvGrad ReciprocalGrad '
     'MulNoNan DivNoNan Xdivy Xlogy Xlog1py Equal NotEqual Less LessEqual Greater GreaterEqual Sign Reciprocal Rsqrt Log Div RealDiv Mod '
     'FloorMod FloorDiv ArgMax ArgMin TopKV2 Atan2 LowerBound UpperBound Ceil Floor Mul MatMul SparseMatMul BatchMatMul BatchMatMulV2 BatchMatMulV3 '
     'Einsum XlaEinsum XlaDot XlaDotV2 SymbolicGradient',
     at_operands(denormal, results=True), 'denormal numbers, which TensorFlow takes for 0'),
]


def rule_for(o, operands, want, got, wrong):
    """Why these elements differ, or None."""
    for ops, mask, why in KNOWN:
        if o.type in ops.split():
            wrong = wrong & ~mask(o, operands, want, got)
            if not np.any(wrong):
                return why
    return None


# --- what TensorFlow gives in a wider type

WIDER = {tf.float16: [tf.float64, tf.float32], tf.bfloat16: [tf.float64, tf.float32], tf.float32: [tf.float64],
         tf.complex64: [tf.complex128]}


def in_wider_type(o, operands):
    """The results of an operation that rounds less on its way, rounded to its own type; None where there is no such kernel."""
    name = tf_fuzz_coverage.own_attribute(o.op_def)
    own = o.get_attr(name) if name else None
    for wider in WIDER.get(own, []) if isinstance(own, tf.DType) else []:
        changed = {own: wider, tf.float32: tf.float64} if own.is_complex else {own: wider}
        node = tf.compat.v1.NodeDef()
        node.CopyFrom(o.node_def)
        for attr in node.attr.values():
            if attr.type:
                attr.type = changed.get(tf.as_dtype(attr.type), tf.as_dtype(attr.type)).as_datatype_enum
        with tf.Graph().as_default() as graph:
            feeds = {}
            for i, a in enumerate(operands):
                dtype = changed.get(tf.as_dtype(a.dtype), tf.as_dtype(a.dtype))
                feeds[tf.compat.v1.placeholder(dtype, a.shape, 'operand%d' % i)] = a.astype(dtype.as_numpy_dtype)
            del node.input[:]
            node.input.extend('operand%d' % i for i in range(len(operands)))
            try:
                given = {'operand%d' % i: p for i, p in enumerate(feeds)}
                made, = tf.import_graph_def(tf.compat.v1.GraphDef(node=[node]), given, [node.name], name='wider')
                with graphs.session_of(graph) as s, np.errstate(all='ignore'):
                    return [np.asarray(v).astype(t.dtype.as_numpy_dtype) for v, t in zip(s.run(made.outputs, feeds), o.outputs)]
            except (tf.errors.OpError, ValueError, TypeError):
                continue
    return None


# --- one graph

def on_the_way(case, targets):
    """Operations that the targets need, in order."""
    needed, work = set(), [t.op for t in targets]
    while work:
        o = work.pop()
        if o.name in case.kept and o not in needed:
            needed.add(o)
            work += [t.op for t in o.inputs if t not in case.placed]
            work += o.control_inputs  # what was written to a variable before it is read
    return [o for o in case.tf_graph.get_operations() if o in needed and o.outputs and o.type not in ('Placeholder', 'Const')]


def comparable(graph, t):
    return t.dtype in graphs.KIND_OF and graph.is_fetchable(t)  # not what a variable holds at some time


def wrong_parts(case, got):
    """{fetched tensor: elements that differ}; all of one that has another shape."""
    least, parts = tf_fuzz.least_of(case), {}
    for name, want, actual, slack in zip(case.fetches, case.expected, got, case.slack):
        stored = tf_fuzz.stored(want)
        wrong = (np.ones(want.shape, bool) if actual.shape != want.shape else
                 tf_fuzz.wrong_elements(actual, stored, want.dtype.name, least, slack))
        if np.any(wrong):
            parts[name] = wrong
    return parts


def as_typed(a, like):
    return a.view(like) if a.dtype != like else a


def has_state(o):
    return any(t.dtype._is_ref_dtype or t.dtype in (tf.resource, tf.variant) for t in [*o.inputs, *o.outputs])


def differ(got, want):
    return got.shape != want.shape or np.any(tf_fuzz.wrong_elements(tf_fuzz.stored(got), tf_fuzz.stored(want), want.dtype.name, None, 0))


def run_with(case, fetches, results):
    """What TensorFlow makes of a case when these tensors have the given values."""
    with graphs.session_of(case.tf_graph) as s:
        return [np.asarray(v) for v in s.run(fetches, {**case.placed, **results})]


def judge_operations(case, order, own, whole):
    """(operation, why, {result: where}) of those that differ from TensorFlow on the same operands and may; None where one may not."""
    graph, reasons = case.tf_graph, []
    for o in order:
        results = [t for t in o.outputs if comparable(graph, t) and t not in case.placed]
        feeds = {t: own.get(t.name, case.placed.get(t)) for t in o.inputs if t.op.type != 'Const'}
        if not has_state(o) and (any(v is None for v in feeds.values()) or len(results) != len(o.outputs)):
            return None
        if has_state(o):  # it does not run by itself, but with what Lathe gave before it in the place of what a rule excused
            excused = {graph.get_tensor_by_name(name): own[name] for _, _, where in reasons for name in where}
            if (any(differ(own[t.name], whole[t.name]) for t in results) and
                    any(differ(own[t.name], value) for t, value in zip(results, run_with(case, results, excused)))):
                return None
            continue
        alone = graphs.finish(graph, case.name, feeds, results, case.steps)
        if not alone:
            return None
        with graphs.session_of(graph) as s:
            operands = [np.asarray(v) for v in s.run(list(o.inputs), feeds)]
        closer = None
        for i, (t, want, slack) in enumerate(zip(results, alone.expected, alone.slack)):
            got = own[t.name]
            if got.shape != want.shape:
                return None
            wrong = tf_fuzz.wrong_elements(tf_fuzz.stored(got), tf_fuzz.stored(want), want.dtype.name, tf_fuzz.least_of(alone), slack)
            if np.any(wrong):
                why = rule_for(o, operands, want, got, wrong)
                if not why:
                    closer = closer or in_wider_type(o, operands)
                    if closer is None or closer[i].shape != got.shape or np.any(wrong & tf_fuzz.wrong_elements(
                            tf_fuzz.stored(got), tf_fuzz.stored(closer[i]), want.dtype.name, tf_fuzz.least_of(alone), slack)):
                        return None
                    why = 'TensorFlow rounds on its way, and gives this in a wider type'
                reasons.append((o, why, {t.name: wrong}))
    return reasons


def caused_by(case, operations, own, parts):
    """The elements of `parts` that stay as they are in TensorFlow when the result of one of the operations is Lathe's, after another, or
    those of all of them are."""
    graph, least = case.tf_graph, tf_fuzz.least_of(case)
    left, each = {f: m.copy() for f, m in parts.items()}, []
    for o in operations:
        each.append({t: own[t.name] for t in o.outputs if t.name in own and t.name not in left and t not in case.placed and
                     graph.is_feedable(t)})
    with graphs.session_of(graph) as s:
        for results in [*each, {t: a for r in each for t, a in r.items()}]:
            names = [f for f in left if np.any(left[f])]
            if not names:
                break
            try:
                changed = s.run([graph.get_tensor_by_name(f) for f in names], {**case.placed, **results})
            except (tf.errors.OpError, ValueError):
                continue
            for name, new in zip(names, changed):
                at = case.fetches.index(name)
                new, want = np.asarray(new), case.expected[at]
                if new.shape == want.shape:
                    left[name] &= ~tf_fuzz.wrong_elements(tf_fuzz.stored(new), tf_fuzz.stored(want), want.dtype.name, least,
                                                          case.slack[at])
                else:
                    left[name][:] = False
    return {f: m for f, m in left.items() if np.any(m)}


def why_of(case, order, own, parts, reasons):
    """What leads to the wrong elements; None where neither a rule nor roundings do."""
    left = {f: m.copy() for f, m in parts.items()}
    for _, _, where in reasons:  # one that gives what is wrong itself
        for name, wrong in where.items():
            if name in left and wrong.shape == left[name].shape:
                left[name] &= ~wrong
    ruled = [o for o, _, _ in reasons]
    left = caused_by(case, ruled, own, {f: m for f, m in left.items() if np.any(m)})
    text = '; '.join(sorted({'%s: %s' % (o.type, why) for o, why, _ in reasons}))
    if not left:
        return text
    left = caused_by(case, order, own, left)
    if not left:
        return '; '.join(filter(None, [text, 'every other operation gives what TensorFlow makes of the operands it had']))
    behind = moves_with_roundings(case, order, left)
    return behind and '; '.join(filter(None, [text, 'TensorFlow gives another answer where %s rounds otherwise' % behind]))


def moves_with_roundings(case, order, parts=None):
    """Whether, and behind which operation, TensorFlow's own answer changes with a few roundings: at all elements of `parts`, or at any."""
    graph, least, rng = case.tf_graph, tf_fuzz.least_of(case), np.random.default_rng(0)
    fetches = [graph.get_tensor_by_name(f) for f in case.fetches]
    left, blamed = {f: m.copy() for f, m in (parts or {}).items()}, []
    inner = [o for o in order if o.type not in graphs.EXACT and comparable(graph, o.outputs[0]) and o.outputs[0].name not in case.fetches
             and graphs.KIND_OF[o.outputs[0].dtype.base_dtype] in 'fc' and graph.is_feedable(o.outputs[0])]
    with graphs.session_of(graph) as s:
        try:
            values = s.run([o.outputs[0] for o in inner], case.placed)
            for o, value in zip(inner, values):
                for ulps in (1, 1, 1, 1, 4, 4, 4, 4):
                    others = s.run(fetches, {**case.placed, o.outputs[0]: graphs.moved(np.asarray(value), rng, ulps)})
                    for name, new, want, slack in zip(case.fetches, others, case.expected, case.slack):
                        new = np.asarray(new)
                        changed = (np.ones(want.shape, bool) if new.shape != want.shape else tf_fuzz.wrong_elements(
                            tf_fuzz.stored(new), tf_fuzz.stored(want), want.dtype.name, least, slack))
                        if parts is None and np.any(changed):
                            return o.type
                        if name in left and np.any(left[name] & changed):
                            left[name] &= ~changed
                            blamed.append(o.type)
                    if parts and not any(np.any(m) for m in left.values()):
                        return ' and '.join(sorted(set(blamed)))
        except (tf.errors.OpError, ValueError):
            return None
    return None


def explained(lathe, mode, case, got):
    """Why this wrong answer of `case` is none; None where nothing explains it."""
    graph = case.tf_graph
    if any(a.shape != e.shape for a, e in zip(got, case.expected)):
        inferred = [graph.get_tensor_by_name(f).shape for f in case.fetches]
        contradicts = all(a.shape == e.shape or i.is_compatible_with(a.shape) and not i.is_compatible_with(e.shape)
                          for a, e, i in zip(got, case.expected, inferred))
        return 'TensorFlow gives another shape than it infers' if contradicts else None
    parts = wrong_parts(case, got)
    order = on_the_way(case, [graph.get_tensor_by_name(f) for f in parts])
    tensors = sorted({t.name for o in order for t in o.outputs if comparable(graph, t) and t not in case.placed} | set(case.fetches))
    whole = graphs.finish(graph, case.name, case.placed, [graph.get_tensor_by_name(n) for n in tensors], case.steps)
    answers = whole and tf_fuzz.answers_of(lathe, mode, whole)
    if answers:
        own = {n: as_typed(a, e.dtype) for n, a, e in zip(tensors, answers, whole.expected)}
        again = [tf_fuzz.stored(own[f]) for f in case.fetches]
        if all(a.tobytes() == b.tobytes() for f, a, b in zip(case.fetches, again, got) if f in parts):
            reasons = judge_operations(case, order, own, dict(zip(tensors, whole.expected)))
            return None if reasons is None else why_of(case, order, own, parts, reasons)
    behind = moves_with_roundings(case, order, parts)
    return behind and 'TensorFlow gives another answer where %s rounds otherwise' % behind


def rests_on_roundings(case):
    """Whether the answer of a case to be recorded may differ for one of the reasons above."""
    graph = case.tf_graph
    order = on_the_way(case, [graph.get_tensor_by_name(f) for f in case.fetches])
    with graphs.session_of(graph) as s:
        for o in order:
            if not all(comparable(graph, t) for t in [*o.inputs, *o.outputs]):
                continue
            operands = [np.asarray(v) for v in s.run(list(o.inputs), case.placed)]
            results = [np.asarray(v) for v in s.run(list(o.outputs), case.placed)]
            for want in results:
                if any(o.type in ops.split() and np.any(mask(o, operands, want, np.zeros_like(want))) for ops, mask, _ in KNOWN):
                    return True
    return moves_with_roundings(case, order) is not None
