"""Single operators as TensorFlow Lite files, written through the schema, with what LiteRT's reference kernels make of them."""
import copy

import numpy as np
import flatbuffers
from ai_edge_litert import schema_py_generated as S

TYPES = {"f32": (S.TensorType.FLOAT32, np.float32), "f16": (S.TensorType.FLOAT16, np.float16),
         "i8": (S.TensorType.INT8, np.int8), "u8": (S.TensorType.UINT8, np.uint8), "i16": (S.TensorType.INT16, np.int16),
         "i32": (S.TensorType.INT32, np.int32), "i64": (S.TensorType.INT64, np.int64), "bool": (S.TensorType.BOOL, np.bool_),
         "u32": (S.TensorType.UINT32, np.uint32), "u64": (S.TensorType.UINT64, np.uint64), "c64": (S.TensorType.COMPLEX64, np.complex64)}


class File:
    """A model of one subgraph whose operators do not depend on each other."""

    def __init__(self):
        self.model = S.ModelT()
        self.model.version = 3
        self.model.description = "test"
        self.model.buffers = [S.BufferT()]
        self.model.operatorCodes = []
        self.graph = S.SubGraphT()
        self.graph.tensors, self.graph.operators, self.graph.inputs, self.graph.outputs = [], [], [], []
        self.model.subgraphs = [self.graph]
        self.codes = {}
        self.feeds = {}

    def tensor(self, shape, kind, data=None, scale=None, zero=0, axis=0, name=None, variable=False):
        t = S.TensorT()
        t.shape, t.type = list(shape), TYPES[kind][0]
        t.name = name or f"t{len(self.graph.tensors)}"
        t.hasRank = True
        t.isVariable = variable
        if scale is not None:
            q = S.QuantizationParametersT()
            scale = np.atleast_1d(np.asarray(scale, np.float32))
            q.scale, q.zeroPoint, q.quantizedDimension = scale, np.broadcast_to(np.int64(zero), scale.shape).copy(), axis
            t.quantization = q
        t.buffer = 0
        if data is not None:
            b = S.BufferT()
            b.data = np.frombuffer(np.ascontiguousarray(np.asarray(data, TYPES[kind][1])).tobytes(), np.uint8)
            t.buffer = len(self.model.buffers)
            self.model.buffers.append(b)
        self.graph.tensors.append(t)
        return len(self.graph.tensors) - 1

    def input(self, value, kind, **more):
        """A tensor that is fed with the value."""
        i = self.tensor(np.shape(value), kind, name=f"in{len(self.graph.inputs)}", **more)
        self.graph.inputs.append(i)
        self.feeds[f"in{len(self.graph.inputs) - 1}"] = np.asarray(value, TYPES[kind][1])
        return i

    def subgraph(self, kinds, body, shape=()):
        """Another subgraph, whose inputs have these kinds (and one shape, or one each): body(file, inputs) adds operators and returns the outputs. Its number."""
        outer, self.graph = self.graph, S.SubGraphT()
        g = self.graph
        g.tensors, g.operators, g.inputs, g.outputs = [], [], [], []
        self.model.subgraphs.append(g)
        number = len(self.model.subgraphs) - 1
        shapes = shape if shape and isinstance(shape[0], tuple) else [shape] * len(kinds)
        g.inputs = [self.tensor(s, k, name=f"arg{i}") for i, (k, s) in enumerate(zip(kinds, shapes))]
        g.outputs = body(self, list(g.inputs))
        self.graph = outer
        return number

    def copy_of(f, outputs):
        """The same file with only the operators whose first result is one of these outputs, and what makes their inputs; None without any."""
        if not outputs:
            return None
        g, part = f.graph, copy.deepcopy(f)
        name = lambda i: g.tensors[i].name
        kept, read = [], set()
        for o in reversed(part.graph.operators):
            if name(o.outputs[0]) in outputs or read & set(o.outputs):
                kept.insert(0, o)
                read |= set(o.inputs)
        part.graph.operators = kept
        part.graph.outputs = [i for o in kept for i in o.outputs if i in g.outputs]
        used = {i for o in part.graph.operators for i in o.inputs}
        part.graph.inputs = [i for i in g.inputs if i in used]
        part.feeds = {name(i): f.feeds[name(i)] for i in part.graph.inputs}
        # bodies and codes of operators that are gone, which may be unknown to LiteRT
        bodies = {v for o in part.graph.operators for k, v in vars(o.builtinOptions2 or object).items() if "ubgraph" in k}
        for n, s in enumerate(part.model.subgraphs):
            if n and n not in bodies:
                s.operators, s.inputs, s.outputs = [], [], []
        codes = sorted({o.opcodeIndex for s in part.model.subgraphs for o in s.operators})
        for s in part.model.subgraphs:
            for o in s.operators:
                o.opcodeIndex = codes.index(o.opcodeIndex)
        part.model.operatorCodes = [part.model.operatorCodes[c] for c in codes]
        return part

    def int4(self, shape, values, scale, axis=0):
        """A constant of two numbers a byte."""
        i = self.tensor(shape, "i8", scale=scale, axis=axis)
        v = np.append(np.asarray(values, np.int64).ravel() & 15, 0)
        v = v[:len(v) // 2 * 2]
        b = S.BufferT()
        b.data = (v[0::2] | v[1::2] << 4).astype(np.uint8)
        self.graph.tensors[i].type, self.graph.tensors[i].buffer = S.TensorType.INT4, len(self.model.buffers)
        self.model.buffers.append(b)
        return i

    def sparse(self, values, kind, block, **more):
        """A constant matrix of which only those 1 x `block` parts are stored that are not all 0."""
        i = self.tensor(values.shape, kind, **more)
        rows, parts = values.shape[0], values.shape[1] // block
        kept = [[c for c in range(parts) if values[r, c * block:(c + 1) * block].any()] for r in range(rows)]
        levels = [S.DimensionMetadataT() for _ in range(2 if block == 1 else 3)]
        levels[0].format, levels[0].denseSize = S.DimensionType.DENSE, rows
        levels[1].format = S.DimensionType.SPARSE_CSR
        levels[1].arraySegmentsType = levels[1].arrayIndicesType = S.SparseIndexVector.Int32Vector
        levels[1].arraySegments, levels[1].arrayIndices = S.Int32VectorT(), S.Int32VectorT()
        levels[1].arraySegments.values = [0] + [int(n) for n in np.cumsum([len(k) for k in kept])]
        levels[1].arrayIndices.values = [c for k in kept for c in k]
        if block > 1:
            levels[2].format, levels[2].denseSize = S.DimensionType.DENSE, block
        p = S.SparsityParametersT()
        p.traversalOrder, p.blockMap, p.dimMetadata = list(range(len(levels))), [1] if block > 1 else [], levels
        b = S.BufferT()
        stored = [values[r, c * block:(c + 1) * block] for r in range(rows) for c in kept[r]]
        b.data = np.frombuffer(np.concatenate(stored).astype(TYPES[kind][1]).tobytes(), np.uint8)
        self.graph.tensors[i].sparsity, self.graph.tensors[i].buffer = p, len(self.model.buffers)
        self.model.buffers.append(b)
        return i

    def output(self, shape, kind, **more):
        i = self.tensor(shape, kind, name=f"out{len(self.graph.outputs)}", **more)
        self.graph.outputs.append(i)
        return i

    def op(self, name, inputs, outputs, options=None, version=1):
        """Names that the schema has not are custom operators, whose options are bytes."""
        code = getattr(S.BuiltinOperator, name, S.BuiltinOperator.CUSTOM)
        if (name, version) not in self.codes:
            c = S.OperatorCodeT()
            c.builtinCode, c.deprecatedBuiltinCode, c.version = code, min(code, 127), version
            if code == S.BuiltinOperator.CUSTOM:
                c.customCode = name
            self.codes[name, version] = len(self.model.operatorCodes)
            self.model.operatorCodes.append(c)
        o = S.OperatorT()
        o.opcodeIndex = self.codes[name, version]
        o.inputs, o.outputs = inputs, outputs
        if isinstance(options, bytes):
            o.customOptions = np.frombuffer(options, np.uint8)
        elif options is not None:
            kind = type(options).__name__[:-1]
            if hasattr(S.BuiltinOptions, kind):
                o.builtinOptionsType, o.builtinOptions = getattr(S.BuiltinOptions, kind), options
            else:
                o.builtinOptions2Type, o.builtinOptions2 = getattr(S.BuiltinOptions2, kind), options
        self.graph.operators.append(o)

    def bytes(self):
        b = flatbuffers.Builder(1 << 16)
        b.Finish(self.model.Pack(b), b"TFL3")
        return bytes(b.Output())


def options(kind, **fields):
    o = getattr(S, kind + "OptionsT")()
    for k, v in fields.items():
        assert hasattr(o, k), (kind, k)
        setattr(o, k, v)
    return o


def interpreter(model, resolver=None):
    from ai_edge_litert.interpreter import Interpreter, OpResolverType
    return Interpreter(model_content=model, experimental_op_resolver_type=resolver or OpResolverType.BUILTIN_REF)


def signature_names(model):
    """The names that the only signature has for inputs and outputs, by those of the tensors."""
    m = S.ModelT.InitFromObj(S.Model.GetRootAs(model, 0))
    if not m.signatureDefs or len(m.signatureDefs) != 1:
        return {}, {}
    d = m.signatureDefs[0]
    tensors = m.subgraphs[d.subgraphIndex].tensors
    return [{tensors[t.tensorIndex].name.decode(): t.name.decode() for t in side or []} for side in (d.inputs, d.outputs)]


def reference(model, feeds, resolver=None):
    """What the reference kernels give: outputs by name."""
    it = interpreter(model, resolver)
    for d in it.get_input_details():
        it.resize_tensor_input(d["index"], feeds[d["name"]].shape)
    it.allocate_tensors()
    for d in it.get_input_details():
        it.set_tensor(d["index"], feeds[d["name"]])
    it.invoke()
    return {d["name"]: it.get_tensor(d["index"]) for d in it.get_output_details()}


def without_wide_softmax(content):
    """The file without 8-bit softmaxes over 512 elements and more, at which the reference kernel ends the process (a shift of more than 31
    bits, once the sum is 512 times the largest term): what they read takes their place. The same content where there are none."""
    model = S.ModelT.InitFromObj(S.Model.GetRootAs(content, 0))
    found = False
    for number, graph in enumerate(model.subgraphs):
        for op in list(graph.operators):
            tensor = graph.tensors[op.inputs[0]] if len(op.inputs) else None
            if (model.operatorCodes[op.opcodeIndex].builtinCode != S.BuiltinOperator.SOFTMAX or tensor.type not in (S.TensorType.INT8, S.TensorType.UINT8)
                    or tensor.shape[-1] < 512):
                continue
            found = True
            other = lambda i: int(op.inputs[0]) if i == op.outputs[0] else int(i)
            graph.operators.remove(op)
            for reader in graph.operators:
                reader.inputs = [other(i) for i in reader.inputs]
            graph.outputs = [other(i) for i in graph.outputs]
            for signature in model.signatureDefs or []:
                for t in signature.outputs if signature.subgraphIndex == number else []:
                    t.tensorIndex = other(t.tensorIndex)
    if not found:
        return content
    b = flatbuffers.Builder(len(content) + 1024)
    b.Finish(model.Pack(b), b"TFL3")
    return bytes(b.Output())


A, P = S.ActivationFunctionType, S.Padding
FUSED = {"none": A.NONE, "relu": A.RELU, "relu6": A.RELU6, "relu1": A.RELU_N1_TO_1}
Q = {"i8": (-128, 127), "u8": (0, 255), "i16": (-32768, 32767)}


class Cases:
    """Every case is (name, File); `seed` settles all numbers."""

    def __init__(self, seed=7):
        self.r = np.random.default_rng(seed)
        self.cases = []

    def new(self, name):
        f = File()
        self.cases.append((name, f))
        return f

    def real(self, shape, low=-3, high=3):
        return self.r.uniform(low, high, shape).astype(np.float32)

    def quant(self, shape, kind):
        low, high = Q[kind]
        return self.r.integers(low, high + 1, shape)

    def qp(self, kind, low=0.01, high=0.06):
        """A scale and a zero point."""
        scale = float(np.float32(self.r.uniform(low, high)))
        if kind == "i16":
            return dict(scale=scale / 200, zero=0)
        return dict(scale=scale, zero=int(self.r.integers(-40, 40)) + (128 if kind == "u8" else 0))

    def unary(self):
        for op, low, high in [("ABS", -3, 3), ("CEIL", -3, 3), ("COS", -3, 3), ("EXP", -3, 3), ("FLOOR", -3, 3),
                              ("LOG", 0.1, 5), ("NEG", -3, 3), ("ROUND", -3, 3), ("RSQRT", 0.1, 4), ("SIGN", -1, 1),
                              ("SIN", -3, 3), ("SQRT", 0.1, 4), ("SQUARE", -3, 3), ("ELU", -3, 3), ("RELU", -3, 3),
                              ("RELU6", -8, 8), ("RELU_N1_TO_1", -2, 2), ("RELU_0_TO_1", -2, 2), ("LOGISTIC", -4, 4), ("TANH", -3, 3),
                              ("HARD_SWISH", -4, 4), ("ZEROS_LIKE", -1, 1)]:
            for shape in [(2, 3, 5), (7,), ()]:
                f = self.new(f"{op.lower()}_f32_{len(shape)}")
                f.op(op, [f.input(self.real(shape, low, high), "f32")], [f.output(shape, "f32")])
        for approximate in (False, True):
            f = self.new(f"gelu_f32_{approximate}")
            f.op("GELU", [f.input(self.real((4, 9)), "f32")], [f.output((4, 9), "f32")], options("Gelu", approximate=approximate))
        f = self.new("leaky_relu_f32")
        f.op("LEAKY_RELU", [f.input(self.real((4, 9)), "f32")], [f.output((4, 9), "f32")], options("LeakyRelu", alpha=0.2))
        f = self.new("prelu_f32")
        f.op("PRELU", [f.input(self.real((2, 4, 4, 3)), "f32"), f.tensor((1, 1, 3), "f32", self.real((1, 1, 3)))], [f.output((2, 4, 4, 3), "f32")])
        f = self.new("logical_not")
        f.op("LOGICAL_NOT", [f.input(self.r.integers(0, 2, (5,)), "bool")], [f.output((5,), "bool")])
        for kind in ("i8", "u8"):
            for op, version in [("RELU", 2), ("RELU6", 2), ("RELU_N1_TO_1", 1), ("LEAKY_RELU", 2), ("HARD_SWISH", 1), ("LOGISTIC", 2),
                                ("TANH", 2), ("ELU", 1), ("EXP", 2), ("GELU", 2), ("ABS", 2), ("PRELU", 1)]:
                if kind == "u8" and op in ("ELU", "EXP", "ABS"):
                    continue
                for k in range(2):
                    f = self.new(f"{op.lower()}_{kind}_{k}")
                    out = self.qp(kind)
                    if op == "LOGISTIC":
                        out = dict(scale=1 / 256, zero=-128 if kind == "i8" else 0)
                    if op == "TANH":
                        out = dict(scale=1 / 128, zero=0 if kind == "i8" else 128)
                    inputs = [f.input(self.quant((6, 43), kind), kind, **self.qp(kind))]
                    if op == "PRELU":
                        inputs.append(f.tensor((1, 43), kind, self.quant((1, 43), kind), **self.qp(kind)))
                    o = {"LEAKY_RELU": options("LeakyRelu", alpha=0.25), "GELU": options("Gelu", approximate=bool(k))}.get(op)
                    f.op(op, inputs, [f.output((6, 43), kind, **out)], o, version)

    def binary(self):
        shapes = [((2, 3, 4), (2, 3, 4)), ((2, 3, 4), (4,)), ((2, 1, 4), (3, 1)), ((), (3,))]
        for op, kind in [("ADD", "Add"), ("SUB", "Sub"), ("MUL", "Mul"), ("DIV", "Div")]:
            for i, (x, y) in enumerate(shapes):
                for act in FUSED if i == 0 else ["none"]:
                    f = self.new(f"{op.lower()}_f32_{i}_{act}")
                    f.op(op, [f.input(self.real(x), "f32"), f.input(self.real(y, 0.5, 3), "f32")],
                         [f.output(np.broadcast_shapes(x, y), "f32")], options(kind, fusedActivationFunction=FUSED[act]))
        for op in ["MAXIMUM", "MINIMUM", "POW", "SQUARED_DIFFERENCE", "FLOOR_DIV", "FLOOR_MOD", "ATAN2"]:
            for i, (x, y) in enumerate(shapes):
                f = self.new(f"{op.lower()}_f32_{i}")
                f.op(op, [f.input(self.real(x, 0.2, 3), "f32"), f.input(self.real(y, 0.5, 3), "f32")], [f.output(np.broadcast_shapes(x, y), "f32")])
        for op in ["ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM", "FLOOR_DIV", "FLOOR_MOD", "SQUARED_DIFFERENCE", "BITWISE_XOR"]:
            f = self.new(f"{op.lower()}_i32")
            f.op(op, [f.input(self.r.integers(-50, 50, (3, 4)), "i32"), f.input(self.r.integers(1, 9, (3, 4)), "i32")], [f.output((3, 4), "i32")])
        for op in ["EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL"]:
            f = self.new(f"{op.lower()}_f32")
            f.op(op, [f.input(self.r.integers(0, 3, (3, 4)), "f32"), f.input(self.r.integers(0, 3, (4,)), "f32")], [f.output((3, 4), "bool")])
            for kind in ("i8", "u8"):
                f = self.new(f"{op.lower()}_{kind}")
                f.op(op, [f.input(self.quant((3, 40), kind), kind, **self.qp(kind)), f.input(self.quant((40,), kind), kind, **self.qp(kind))],
                     [f.output((3, 40), "bool")], version=2)
        for op in ["LOGICAL_AND", "LOGICAL_OR"]:
            f = self.new(op.lower())
            f.op(op, [f.input(self.r.integers(0, 2, (3, 4)), "bool"), f.input(self.r.integers(0, 2, (4,)), "bool")], [f.output((3, 4), "bool")])
        for op in ["SELECT", "SELECT_V2"]:
            f = self.new(op.lower())
            f.op(op, [f.input(self.r.integers(0, 2, (3, 4)), "bool"), f.input(self.real((3, 4)), "f32"), f.input(self.real((3, 4)), "f32")], [f.output((3, 4), "f32")])
        for kind in ("i8", "u8", "i16"):
            for op, o in [("ADD", "Add"), ("SUB", "Sub"), ("MUL", "Mul"), ("SQUARED_DIFFERENCE", None)]:
                if kind == "i16" and op == "SQUARED_DIFFERENCE" or kind == "u8" and op == "SQUARED_DIFFERENCE":
                    continue
                for i, (x, y) in enumerate([((3, 50), (3, 50)), ((2, 3, 20), (20,))]):
                    for act in ("none", "relu", "relu6", "relu1") if o and i == 0 else ("none",):
                        f = self.new(f"{op.lower()}_{kind}_{i}_{act}")
                        more = {"fusedActivationFunction": FUSED[act]} if o else {}
                        if o in ("Add", "Sub"):
                            more["potScaleInt16"] = False
                        out = dict(scale=0.08 / (300 if kind == "i16" else 1), zero=0 if kind == "i16" else self.qp(kind)["zero"])
                        f.op(op, [f.input(self.quant(x, kind), kind, **self.qp(kind)), f.input(self.quant(y, kind), kind, **self.qp(kind))],
                             [f.output(np.broadcast_shapes(x, y), kind, **out)], options(o, **more) if o else None, {"i16": 5 if op == "SUB" else 4, "i8": 2, "u8": 1}[kind])

    def conv(self):
        for k, (pad, stride, dilation, groups, act) in enumerate([(P.SAME, 1, 1, 1, "none"), (P.VALID, 2, 1, 1, "relu"), (P.SAME, 2, 1, 2, "relu6"),
                                                                  (P.SAME, 1, 2, 1, "relu1")]):
            n, h, w, ci, co, kh, kw = 2, 9, 8, 4, 6, 3, 2
            def size(x, f):
                e = (f - 1) * dilation + 1
                return -(-x // stride) if pad == P.SAME else (x - e) // stride + 1
            out = (n, size(h, kh), size(w, kw), co)
            def make(o, **more):
                return options(o, padding=pad, strideH=stride, strideW=stride, dilationHFactor=dilation, dilationWFactor=dilation,
                               fusedActivationFunction=FUSED[act], **more)
            for kind in ("f32", "i8", "u8", "i16", "hybrid"):
                for op in ("CONV_2D", "DEPTHWISE_CONV_2D"):
                    depthwise = op[0] == "D"
                    if kind in ("u8", "hybrid") and groups > 1 and not depthwise:
                        continue
                    if depthwise and groups > 1:
                        continue
                    m = 2
                    shape = (1, kh, kw, ci * m) if depthwise else (co, kh, kw, ci // groups)
                    channels = shape[3] if depthwise else co
                    dims = out[:3] + (channels,)
                    axis = 3 if depthwise else 0
                    f = self.new(f"{op.lower()}_{kind}_{k}")
                    o = make("DepthwiseConv2D", depthMultiplier=m) if depthwise else make("Conv2D")
                    if kind == "f32":
                        f.op(op, [f.input(self.real((n, h, w, ci)), "f32"), f.tensor(shape, "f32", self.real(shape, -1, 1)),
                                  f.tensor((channels,), "f32", self.real((channels,)))], [f.output(dims, "f32")], o, 6 if groups > 1 else 2)
                    elif kind == "hybrid":
                        scales = self.r.uniform(0.005, 0.02, channels)
                        f.op(op, [f.input(self.real((n, h, w, ci)), "f32"), f.tensor(shape, "i8", self.r.integers(-127, 128, shape), scale=scales, axis=axis),
                                  f.tensor((channels,), "f32", self.real((channels,)))], [f.output(dims, "f32")], o, 5 if not depthwise else 6)
                    else:
                        x = f.input(self.quant((n, h, w, ci), kind), kind, **self.qp(kind))
                        q = self.graph_scale(f, x)
                        if kind == "u8":
                            ws, wz, wk, data = 0.02, 120, "u8", self.quant(shape, "u8")
                        else:
                            ws, wz, wk, data = self.r.uniform(0.005, 0.02, channels), 0, "i8", self.r.integers(-127, 128, shape)
                        bias = self.r.integers(-2000, 2000, channels)
                        bk = "i64" if kind == "i16" else "i32"
                        f.op(op, [x, f.tensor(shape, wk, data, scale=ws, zero=wz, axis=axis),
                                  f.tensor((channels,), bk, bias, scale=np.asarray(ws) * q, axis=0)],
                             [f.output(dims, kind, **({"scale": 0.0005, "zero": 0} if kind == "i16" else {"scale": 0.09, "zero": self.qp(kind)["zero"]}))],
                             o, {"u8": 1, "i8": 3, "i16": 4 if not depthwise else 5}[kind])

    def graph_scale(self, f, x):
        return float(f.graph.tensors[x].quantization.scale[0])

    def product(self):
        for k, (act, keep, bias) in enumerate([("none", False, True), ("relu", True, True), ("relu6", False, False)]):
            for kind in ("f32", "i8", "u8", "i16", "hybrid", "hybrid_asym", "i8_channel"):
                f = self.new(f"fully_connected_{kind}_{k}")
                shape = (2, 3, 12)
                dims = (2, 3, 7) if keep else (6, 7)
                o = options("FullyConnected", fusedActivationFunction=FUSED[act], keepNumDims=keep, asymmetricQuantizeInputs=kind == "hybrid_asym")
                if kind == "f32":
                    ins = [f.input(self.real(shape), "f32"), f.tensor((7, 12), "f32", self.real((7, 12)))]
                    if bias:
                        ins.append(f.tensor((7,), "f32", self.real((7,))))
                    f.op("FULLY_CONNECTED", ins, [f.output(dims, "f32")], o, 5 if keep else 1)
                elif kind.startswith("hybrid"):
                    ins = [f.input(self.real(shape), "f32"), f.tensor((7, 12), "i8", self.r.integers(-127, 128, (7, 12)), scale=0.013)]
                    if bias:
                        ins.append(f.tensor((7,), "f32", self.real((7,))))
                    f.op("FULLY_CONNECTED", ins, [f.output(dims, "f32")], o, 9 if kind == "hybrid_asym" else 5 if keep else 3)
                else:
                    base = kind.split("_")[0]
                    x = f.input(self.quant(shape, base), base, **self.qp(base))
                    wk = "u8" if base == "u8" else "i8"
                    ws = self.r.uniform(0.005, 0.02, 7) if "channel" in kind else 0.02
                    ins = [x, f.tensor((7, 12), wk, self.quant((7, 12), wk), scale=ws, zero=120 if wk == "u8" else 0)]
                    if bias:
                        ins.append(f.tensor((7,), "i64" if base == "i16" else "i32", self.r.integers(-2000, 2000, 7), scale=np.asarray(ws) * self.graph_scale(f, x)))
                    out = {"scale": 0.0005, "zero": 0} if base == "i16" else {"scale": 0.06, "zero": self.qp(base)["zero"]}
                    f.op("FULLY_CONNECTED", ins, [f.output(dims, base, **out)], o, 7 if base == "i16" else 12 if "channel" in kind else 5 if keep else 4)
        for ax in (False, True):
            for ay in (False, True):
                x, y = ((2, 5, 4) if ax else (2, 4, 5)), ((2, 3, 5) if ay else (2, 5, 3))
                for kind in ("f32", "i8", "i16"):
                    f = self.new(f"batch_matmul_{kind}_{ax}_{ay}")
                    o = options("BatchMatMul", adjX=ax, adjY=ay)
                    if kind == "f32":
                        f.op("BATCH_MATMUL", [f.input(self.real(x), "f32"), f.input(self.real(y), "f32")], [f.output((2, 4, 3), "f32")], o)
                    else:
                        out = {"scale": 0.0003, "zero": 0} if kind == "i16" else {"scale": 0.08, "zero": 3}
                        f.op("BATCH_MATMUL", [f.input(self.quant(x, kind), kind, **self.qp(kind)), f.input(self.quant(y, kind), kind, **self.qp(kind))],
                             [f.output((2, 4, 3), kind, **out)], o, 3 if kind == "i16" else 2)
        for kind in ("f32", "i8", "u8", "i16"):
            for k, (pad, stride) in enumerate([(P.SAME, 2), (P.VALID, 2), (P.SAME, 1)]):
                f = self.new(f"transpose_conv_{kind}_{k}")
                n, h, w, ci, co = 1, 4, 5, 3, 4
                out = (n, h * stride, w * stride, co) if pad == P.SAME else (n, (h - 1) * stride + 3, (w - 1) * stride + 3, co)
                o = options("TransposeConv", padding=pad, strideH=stride, strideW=stride)
                dims = f.tensor((4,), "i32", out)
                if kind == "f32":
                    f.op("TRANSPOSE_CONV", [dims, f.tensor((co, 3, 3, ci), "f32", self.real((co, 3, 3, ci))), f.input(self.real((n, h, w, ci)), "f32")], [f.output(out, "f32")], o)
                else:
                    wk = "u8" if kind == "u8" else "i8"
                    x = f.input(self.quant((n, h, w, ci), kind), kind, **self.qp(kind))
                    ws = 0.02 if kind == "u8" else self.r.uniform(0.005, 0.02, co)
                    bk = "i64" if kind == "i16" else "i32"
                    ins = [dims, f.tensor((co, 3, 3, ci), wk, self.quant((co, 3, 3, ci), wk), scale=ws, zero=120 if wk == "u8" else 0), x,
                           f.tensor((co,), bk, self.r.integers(-2000, 2000, co), scale=np.asarray(ws) * self.graph_scale(f, x))]
                    f.op("TRANSPOSE_CONV", ins, [f.output(out, kind, **({"scale": 0.0003, "zero": 0} if kind == "i16" else {"scale": 0.05, "zero": self.qp(kind)["zero"]}))], o, 3)

    def pool(self):
        for k, (pad, stride, act) in enumerate([(P.SAME, 2, "none"), (P.VALID, 1, "relu"), (P.SAME, 1, "relu6")]):
            h = lambda x, f: -(-x // stride) if pad == P.SAME else (x - f) // stride + 1
            out = (2, h(7, 3), h(6, 2), 5)
            o = lambda: options("Pool2D", padding=pad, strideH=stride, strideW=stride, filterHeight=3, filterWidth=2, fusedActivationFunction=FUSED[act])
            for op in ("MAX_POOL_2D", "AVERAGE_POOL_2D", "L2_POOL_2D"):
                for kind in ("f32", "i8", "u8", "i16"):
                    if op[0] == "L" and kind != "f32":
                        continue
                    f = self.new(f"{op.lower()}_{kind}_{k}")
                    if kind == "f32":
                        f.op(op, [f.input(self.real((2, 7, 6, 5)), "f32")], [f.output(out, "f32")], o())
                    else:
                        q = self.qp(kind)
                        f.op(op, [f.input(self.quant((2, 7, 6, 5), kind), kind, **q)], [f.output(out, kind, **q)], o(), 3 if kind == "i16" else 2)

    def reduce(self):
        for k, (axes, keep) in enumerate([((1, 2), True), ((1, 2), False), ((-1,), False), ((0, 3), True), ((0, 1, 2, 3), False)]):
            shape = (2, 4, 3, 5)
            dims = tuple(1 if i in [a % 4 for a in axes] else s for i, s in enumerate(shape))
            if not keep:
                dims = tuple(s for i, s in enumerate(shape) if i not in [a % 4 for a in axes])
            o = lambda: options("Reducer", keepDims=keep)
            for op in ("SUM", "MEAN", "REDUCE_PROD", "REDUCE_MAX", "REDUCE_MIN"):
                for kind in ("f32", "i32", "i8", "u8", "i16"):
                    if op == "REDUCE_PROD" and kind in Q or op == "SUM" and kind == "i16":
                        continue
                    f = self.new(f"{op.lower()}_{kind}_{k}")
                    a = f.tensor((len(axes),), "i32", axes)
                    if kind == "f32":
                        f.op(op, [f.input(self.real(shape, 0.5, 1.5), "f32"), a], [f.output(dims, "f32")], o())
                    elif kind == "i32":
                        f.op(op, [f.input(self.r.integers(1, 4, shape), "i32"), a], [f.output(dims, "i32")], o())
                    else:
                        q = self.qp(kind)
                        out = q if op in ("REDUCE_MAX", "REDUCE_MIN") else dict(q, scale=q["scale"] * (6 if op == "SUM" else 0.7))
                        f.op(op, [f.input(self.quant(shape, kind), kind, **q), a], [f.output(dims, kind, **out)], o(), 3 if kind == "i16" else 2)
        for op in ("REDUCE_ANY", "REDUCE_ALL"):
            f = self.new(op.lower())
            f.op(op, [f.input(self.r.integers(0, 2, (4, 3)), "bool"), f.tensor((1,), "i32", [1])], [f.output((4,), "bool")], options("Reducer", keepDims=False))
        for op, o in (("ARG_MAX", "ArgMax"), ("ARG_MIN", "ArgMin")):
            for kind in ("f32", "i8", "u8", "i32"):
                f = self.new(f"{op.lower()}_{kind}")
                v = self.real((3, 9)) if kind == "f32" else self.r.permutation(27).reshape(3, 9)
                q = self.qp(kind) if kind in Q else {}
                f.op(op, [f.input(v, kind, **q), f.tensor((), "i32", 1)], [f.output((3,), "i64")], options(o, outputType=S.TensorType.INT64), 2)

    def shape(self):
        for kind in ("f32", "i8", "i32"):
            q = dict(scale=0.02, zero=-5) if kind == "i8" else {}
            v = lambda s: self.real(s) if kind == "f32" else self.r.integers(-100, 100, s)
            def case(name, op, shape, out, extra=(), o=None, version=1, outs=None):
                f = self.new(f"{name}_{kind}")
                ins = [f.input(v(shape), kind, **q)] + [f.tensor(np.shape(e), "i32", e) for e in extra]
                f.op(op, ins, [f.output(d, kind, **q) for d in (outs or [out])], o, version)
            case("reshape", "RESHAPE", (2, 6), (3, 4), [np.int32([3, -1])], options("Reshape", newShape=[3, -1]))
            case("squeeze", "SQUEEZE", (2, 1, 3, 1), (2, 3), o=options("Squeeze", squeezeDims=[1, 3]))
            case("expand_dims", "EXPAND_DIMS", (2, 3), (2, 1, 3), [np.int32(1)])
            case("transpose", "TRANSPOSE", (2, 3, 4), (4, 2, 3), [np.int32([2, 0, 1])], version=2)
            case("tile", "TILE", (2, 3), (4, 9), [np.int32([2, 3])])
            case("broadcast_to", "BROADCAST_TO", (2, 1), (3, 2, 4), [np.int32([3, 2, 4])], version=2)
            case("reverse", "REVERSE_V2", (2, 3), (2, 3), [np.int32([1])])
            case("slice", "SLICE", (4, 5), (2, 3), [np.int32([1, 1]), np.int32([2, 3])], version=2)
            case("strided_slice", "STRIDED_SLICE", (6, 5), (3, 5), [np.int32([0, 0]), np.int32([6, 5]), np.int32([2, 1])], options("StridedSlice", beginMask=2, endMask=2), version=2)
            case("strided_slice_shrink", "STRIDED_SLICE", (6, 5), (5,), [np.int32([-2, 0]), np.int32([-1, 0]), np.int32([1, 1])], options("StridedSlice", endMask=2, shrinkAxisMask=1), version=2)
            case("pad", "PAD", (2, 3), (3, 6), [np.int32([[0, 1], [1, 2]])], version=2)
            case("mirror_pad", "MIRROR_PAD", (3, 4), (5, 7), [np.int32([[1, 1], [2, 1]])], options("MirrorPad", mode=S.MirrorPadMode.REFLECT))
            case("space_to_depth", "SPACE_TO_DEPTH", (1, 4, 4, 2), (1, 2, 2, 8), o=options("SpaceToDepth", blockSize=2))
            case("depth_to_space", "DEPTH_TO_SPACE", (1, 2, 2, 8), (1, 4, 4, 2), o=options("DepthToSpace", blockSize=2))
            case("batch_to_space", "BATCH_TO_SPACE_ND", (4, 2, 2, 3), (1, 4, 4, 3), [np.int32([2, 2]), np.int32([[0, 0], [0, 0]])])
            case("space_to_batch", "SPACE_TO_BATCH_ND", (1, 3, 4, 3), (4, 2, 2, 3), [np.int32([2, 2]), np.int32([[1, 0], [0, 0]])])
            case("gather", "GATHER", (5, 3), (4, 3), [np.int32([0, 4, 2, 2])], options("Gather", axis=0))
            case("gather_axis", "GATHER", (5, 3), (5, 2), [np.int32([2, 0])], options("Gather", axis=1))
            case("gather_nd", "GATHER_ND", (4, 3, 2), (3, 2), [np.int32([[0, 1], [3, 2], [1, 0]])])
            case("unpack", "UNPACK", (3, 4), None, o=options("Unpack", num=3, axis=0), outs=[(4,)] * 3)
            f = self.new(f"split_{kind}")
            f.op("SPLIT", [f.tensor((), "i32", 1), f.input(v((4, 6)), kind, **q)], [f.output((4, 2), kind, **q) for _ in range(3)], options("Split", numSplits=3), 2)
            f = self.new(f"split_v_{kind}")
            f.op("SPLIT_V", [f.input(v((4, 6)), kind, **q), f.tensor((3,), "i32", [1, 2, 3]), f.tensor((), "i32", 1)], [f.output((4, n), kind, **q) for n in (1, 2, 3)], options("SplitV", numSplits=3), 2)
            f = self.new(f"concat_{kind}")
            f.op("CONCATENATION", [f.input(v((2, n)), kind, **q) for n in (1, 3, 2)], [f.output((2, 6), kind, **q)], options("Concatenation", axis=1), 2)
            f = self.new(f"pack_{kind}")
            f.op("PACK", [f.input(v((2, 3)), kind, **q) for _ in range(3)], [f.output((2, 3, 3), kind, **q)], options("Pack", valuesCount=3, axis=1))
            f = self.new(f"topk_{kind}")
            f.op("TOPK_V2", [f.input(v((3, 8)), kind, **q), f.tensor((), "i32", 3)], [f.output((3, 3), kind, **q), f.output((3, 3), "i32")])
            f = self.new(f"scatter_nd_{kind}")
            f.op("SCATTER_ND", [f.tensor((3, 1), "i32", [[1], [4], [0]]), f.input(v((3, 2)), kind, **q), f.tensor((2,), "i32", [6, 2])], [f.output((6, 2), kind, **q)])
            if kind != "i8":
                f = self.new(f"one_hot_{kind}")
                f.op("ONE_HOT", [f.input(self.r.integers(0, 4, (3, 2)), "i32"), f.tensor((), "i32", 4), f.tensor((), kind, 5), f.tensor((), kind, -1)],
                     [f.output((3, 2, 4), kind)], options("OneHot", axis=-1))
        f = self.new("concat_u8_scales")
        f.op("CONCATENATION", [f.input(self.quant((2, 30), "u8"), "u8", **self.qp("u8")) for _ in range(3)], [f.output((2, 90), "u8", scale=0.05, zero=120)], options("Concatenation", axis=1))
        f = self.new("shape_rank")
        x = f.input(self.real((2, 3)), "f32")
        f.op("SHAPE", [x], [f.output((2,), "i32")], options("Shape", outType=S.TensorType.INT32))
        f.op("RANK", [x], [f.output((), "i32")])
        f = self.new("range_fill")
        f.op("RANGE", [f.tensor((), "i32", 2), f.tensor((), "i32", 11), f.tensor((), "i32", 3)], [f.output((3,), "i32")])
        f.op("FILL", [f.tensor((2,), "i32", [2, 3]), f.input(self.real(()), "f32")], [f.output((2, 3), "f32")])
        f = self.new("reverse_sequence")
        f.op("REVERSE_SEQUENCE", [f.input(self.real((3, 5)), "f32"), f.tensor((3,), "i32", [2, 5, 1])], [f.output((3, 5), "f32")], options("ReverseSequence", seqDim=1, batchDim=0))
        f = self.new("matrix_diag")
        f.op("MATRIX_DIAG", [f.input(self.real((3, 4)), "f32")], [f.output((3, 4, 4), "f32")])
        f = self.new("embedding")
        f.op("EMBEDDING_LOOKUP", [f.input(self.r.integers(0, 5, (4,)), "i32"), f.tensor((5, 3), "f32", self.real((5, 3)))], [f.output((4, 3), "f32")])
        f = self.new("embedding_i8")
        f.op("EMBEDDING_LOOKUP", [f.input(self.r.integers(0, 5, (4,)), "i32"), f.tensor((5, 3), "i8", self.quant((5, 3), "i8"), scale=0.03)], [f.output((4, 3), "f32")], version=3)
        for kind in ("f32", "i8", "u8"):
            for k, (align, half) in enumerate([(False, False), (True, False), (False, True)]):
                q = {} if kind == "f32" else self.qp(kind)
                v = self.real((1, 4, 5, 3)) if kind == "f32" else self.quant((1, 4, 5, 3), kind)
                f = self.new(f"resize_nearest_{kind}_{k}")
                f.op("RESIZE_NEAREST_NEIGHBOR", [f.input(v, kind, **q), f.tensor((2,), "i32", [7, 9])], [f.output((1, 7, 9, 3), kind, **q)],
                     options("ResizeNearestNeighbor", alignCorners=align, halfPixelCenters=half), 2)
                f = self.new(f"resize_bilinear_{kind}_{k}")
                f.op("RESIZE_BILINEAR", [f.input(v, kind, **q), f.tensor((2,), "i32", [7, 9])], [f.output((1, 7, 9, 3), kind, **q)],
                     options("ResizeBilinear", alignCorners=align, halfPixelCenters=half), 3)

    def norm(self):
        for beta in (1.0, 0.5):
            f = self.new(f"softmax_f32_{beta}")
            f.op("SOFTMAX", [f.input(self.real((3, 11)), "f32")], [f.output((3, 11), "f32")], options("Softmax", beta=beta))
            for kind in ("i8", "u8"):
                f = self.new(f"softmax_{kind}_{beta}")
                f.op("SOFTMAX", [f.input(self.quant((20, 33), kind), kind, **self.qp(kind, 0.02, 0.1))],
                     [f.output((20, 33), kind, scale=1 / 256, zero=-128 if kind == "i8" else 0)], options("Softmax", beta=beta), 2)
        f = self.new("softmax_i16")
        f.op("SOFTMAX", [f.input(self.quant((20, 33), "i16"), "i16", scale=0.0005, zero=0)], [f.output((20, 33), "i16", scale=1 / 32768, zero=0)], options("Softmax", beta=1.0), 3)
        f = self.new("log_softmax_f32")
        f.op("LOG_SOFTMAX", [f.input(self.real((3, 11)), "f32")], [f.output((3, 11), "f32")])
        f = self.new("l2_norm_f32")
        f.op("L2_NORMALIZATION", [f.input(self.real((3, 11)), "f32")], [f.output((3, 11), "f32")], options("L2Norm"))
        f = self.new("lrn_f32")
        f.op("LOCAL_RESPONSE_NORMALIZATION", [f.input(self.real((1, 2, 2, 9)), "f32")], [f.output((1, 2, 2, 9), "f32")], options("LocalResponseNormalization", radius=2, bias=1.0, alpha=0.5, beta=0.75))
        for kind in ("i8", "u8", "i16"):
            f = self.new(f"quantize_{kind}")
            q = self.qp(kind)
            f.op("QUANTIZE", [f.input(self.real((4, 50)), "f32")], [f.output((4, 50), kind, **q)], version=2)
            f = self.new(f"dequantize_{kind}")
            f.op("DEQUANTIZE", [f.input(self.quant((4, 50), kind), kind, **self.qp(kind))], [f.output((4, 50), "f32")], version=3)
            for to in ("i8", "u8", "i16"):
                if (kind == "u8" and to == "i16") or (kind == "i16" and to == "u8"):
                    continue
                f = self.new(f"requantize_{kind}_{to}")
                f.op("QUANTIZE", [f.input(self.quant((4, 50), kind), kind, **self.qp(kind))], [f.output((4, 50), to, **self.qp(to))], version=2)
        f = self.new("dequantize_f16")
        f.op("DEQUANTIZE", [f.input(self.real((4, 5)), "f16")], [f.output((4, 5), "f32")], version=3)

    def recurrent(self):
        n, t, ci, u = 2, 4, 3, 5
        for hybrid in (False, True):
            def weight(f, shape):
                if hybrid:
                    return f.tensor(shape, "i8", self.r.integers(-127, 128, shape), scale=0.007)
                return f.tensor(shape, "f32", self.real(shape, -0.7, 0.7))
            tag = "hybrid" if hybrid else "f32"
            for cifg in (False, True):
                for major in (False, True):
                    f = self.new(f"unidirectional_lstm_{tag}_{cifg}_{major}")
                    x = f.input(self.real((t, n, ci) if major else (n, t, ci)), "f32")
                    w = [-1 if cifg and i == 0 else weight(f, (u, ci)) for i in range(4)]
                    r = [-1 if cifg and i == 0 else weight(f, (u, u)) for i in range(4)]
                    b = [-1 if cifg and i == 0 else f.tensor((u,), "f32", self.real((u,))) for i in range(4)]
                    st = [f.tensor((n, u), "f32", variable=True) for _ in range(2)]
                    f.op("UNIDIRECTIONAL_SEQUENCE_LSTM", [x] + w + r + [-1] * 3 + b + [-1, -1] + st + [-1] * 4,
                         [f.output((t, n, u) if major else (n, t, u), "f32")],
                         options("UnidirectionalSequenceLSTM", fusedActivationFunction=A.TANH, timeMajor=major, cellClip=0.0, projClip=0.0), 3 if hybrid else 1)
            f = self.new(f"unidirectional_rnn_{tag}")
            x = f.input(self.real((n, t, ci)), "f32")
            f.op("UNIDIRECTIONAL_SEQUENCE_RNN", [x, weight(f, (u, ci)), weight(f, (u, u)), f.tensor((u,), "f32", self.real((u,))), f.tensor((n, u), "f32", variable=True)],
                 [f.output((n, t, u), "f32")], options("SequenceRNN", fusedActivationFunction=A.TANH, timeMajor=False), 3 if hybrid else 1)
            f = self.new(f"rnn_{tag}")
            x = f.input(self.real((n, ci)), "f32")
            f.op("RNN", [x, weight(f, (u, ci)), weight(f, (u, u)), f.tensor((u,), "f32", self.real((u,))), f.tensor((n, u), "f32", variable=True)],
                 [f.output((n, u), "f32")], options("RNN", fusedActivationFunction=A.RELU), 3 if hybrid else 1)
            f = self.new(f"svdf_{tag}")
            x = f.input(self.real((n, ci)), "f32")
            f.op("SVDF", [x, weight(f, (8, ci)), weight(f, (8, 6)), f.tensor((4,), "f32", self.real((4,))), f.tensor((n, 48), "f32", variable=True)],
                 [f.output((n, 4), "f32")], options("SVDF", rank=2, fusedActivationFunction=A.NONE), 2 if hybrid else 1)

    def narrow(self):
        """int4 weights, under float and int8 inputs; 16-bit activations."""
        for channel in (False, True):
            for asymmetric in (False, True):
                f = self.new(f"fully_connected_hybrid4_{channel}_{asymmetric}")
                f.op("FULLY_CONNECTED", [f.input(self.real((5, 12)), "f32"), f.int4((7, 12), self.r.integers(-7, 8, (7, 12)), self.r.uniform(.01, .05, 7) if channel else .03)],
                     [f.output((5, 7), "f32")], options("FullyConnected", asymmetricQuantizeInputs=asymmetric), 12 if channel else 10)
        o = lambda: options("Conv2D", padding=P.SAME, strideH=1, strideW=1, dilationHFactor=1, dilationWFactor=1)
        scales = self.r.uniform(.01, .05, 5).astype(np.float32)
        weights = self.r.integers(-7, 8, (5, 3, 3, 3))
        f = self.new("conv_hybrid4")
        f.op("CONV_2D", [f.input(self.real((1, 7, 7, 3)), "f32"), f.int4((5, 3, 3, 3), weights, scales), f.tensor((5,), "f32", self.real((5,)))], [f.output((1, 7, 7, 5), "f32")], o(), 7)
        f = self.new("conv_i8_i4")
        f.op("CONV_2D", [f.input(self.quant((1, 7, 7, 3), "i8"), "i8", scale=.02, zero=3), f.int4((5, 3, 3, 3), weights, scales), f.tensor((5,), "i32", self.r.integers(-500, 500, 5), scale=scales * .02)],
             [f.output((1, 7, 7, 5), "i8", scale=.05, zero=-4)], o(), 7)
        f = self.new("fully_connected_i8_i4")
        f.op("FULLY_CONNECTED", [f.input(self.quant((9, 13), "i8"), "i8", scale=.02, zero=3), f.int4((7, 13), self.r.integers(-7, 8, (7, 13)), .03)], [f.output((9, 7), "i8", scale=.05, zero=-4)], options("FullyConnected"), 10)
        for op in ("LOGISTIC", "TANH"):
            for scale in (1 / 32768, 1 / 4096, 5.85e-5, 3.3e-4):
                f = self.new(f"{op.lower()}_i16_{scale:.6f}")
                f.op(op, [f.input(self.quant((300,), "i16"), "i16", scale=scale, zero=0)], [f.output((300,), "i16", scale=1 / 32768, zero=0)], None, 3)

    def sparse(self):
        for block in (1, 4):
            f = self.new(f"fully_connected_sparse_{block}")
            w = self.real((6, 16)) * np.repeat(self.r.random((6, 16 // block)) < .4, block, axis=1)
            f.op("FULLY_CONNECTED", [f.input(self.real((3, 16)), "f32"), f.sparse(w, "f32", block)], [f.output((3, 6), "f32")], options("FullyConnected"), 8)
        f = self.new("fully_connected_sparse_hybrid")
        w = self.r.integers(-100, 100, (6, 16)) * (self.r.random((6, 1)) < .7)
        f.op("FULLY_CONNECTED", [f.input(self.real((3, 16)), "f32"), f.sparse(w, "i8", 16, scale=.02)], [f.output((3, 6), "f32")], options("FullyConnected"), 8)
        f = self.new("densify")
        w = self.real((6, 16)) * np.repeat(self.r.random((6, 4)) < .4, 4, axis=1)
        d = f.tensor((6, 16), "f32")
        f.op("DENSIFY", [f.sparse(w, "f32", 4)], [d])
        f.op("ADD", [f.input(self.real((6, 16)), "f32"), d], [f.output((6, 16), "f32")], options("Add"))

    def all(self):
        for family in (self.unary, self.binary, self.conv, self.product, self.pool, self.reduce, self.shape, self.norm, self.recurrent, self.narrow, self.sparse):
            family()
        return self.cases
