"""tflite_grid.py --out DIR [--per-file 40] [--every 1] [FAMILY ...]: single operators over types, shapes and options as TensorFlow Lite files.

Each case is tried alone on LiteRT's reference kernels, which settle the shapes of its results; scales of results that are left open are
chosen so that they neither saturate (less than a fifth of all) nor are constant, and cases that stay so are left out. Those that remain
are written --per-file to a file with feeds and results beside it (as run_tflite.py reads them). Needs ai-edge-litert, not tensorflow."""
import argparse
import copy
import multiprocessing
import os
import sys
import zlib

import numpy as np

import tflite_ops as T
from tflite_ops import A, P, S, FUSED, Q, options

QUANT = ("i8", "u8", "i16")


class Spec:
    """A case: inputs are ("in" | "const" | "var", value or shape, kind, quantization) or None, outputs (kind, quantization or "auto")."""

    def __init__(self, name, op, inputs, outputs, o=None, version=1, empty=False, intermediates=None, sequence=1):
        self.name, self.op, self.inputs, self.outputs, self.options, self.version = name, op, inputs, outputs, o, version
        self.empty, self.intermediates, self.shapes = empty, intermediates or [], [()] * len(outputs)

    def add(self, f):
        """Adds it to a file; the names of its outputs."""
        inputs, feeds = [], {}
        for i in self.inputs:
            if i is None:
                inputs.append(-1)
                continue
            what, value, kind, q = i
            if what == "var":
                inputs.append(f.tensor(value, kind, variable=True, **q))
            elif what == "const":
                inputs.append(f.tensor(np.shape(value), kind, value, **q))
            else:
                f.graph.inputs.append(f.tensor(np.shape(value), kind, name=f"{self.name}_in{len(inputs)}", **q))
                inputs.append(f.graph.inputs[-1])
                feeds[f"{self.name}_in{len(inputs) - 1}"] = np.asarray(value, T.TYPES[kind][1])
        names = [f"{self.name}_out{k}" for k in range(len(self.outputs))]
        outputs = [f.tensor(s, kind, name=n, **q) for s, n, (kind, q) in zip(self.shapes, names, self.outputs)]
        f.graph.outputs += outputs
        between = [f.tensor((), kind, **q) for kind, q in self.intermediates]
        f.op(self.op, inputs, outputs, copy.deepcopy(self.options), self.version)
        if between:
            f.graph.operators[-1].intermediates = between
        f.feeds.update(feeds)
        return names

    def run(self):
        f = T.File()
        names = self.add(f)
        results = T.reference(f.bytes(), f.feeds)
        return [results[n] for n in names]


def share(value, kind):
    """Of elements at the ends of the type."""
    low, high = Q[kind]
    return np.mean((value <= low) | (value >= high)) if value.size else 0


def settle(spec):
    """The case with shapes and scales of its results, and the results; or why it is left out."""
    open_scales = [k for k, (kind, q) in enumerate(spec.outputs) if q == "auto"]
    for k in open_scales:
        kind = spec.outputs[k][0]
        zero = {"i8": -7, "u8": 117, "i16": 0}[kind]
        spec.outputs[k] = (kind, dict(scale=0.05 if kind != "i16" else 2e-4, zero=zero))
    for attempt in range(16):
        results = spec.run()
        again = False
        for k in open_scales:
            kind, q = spec.outputs[k]
            spread = int(results[k].max()) - int(results[k].min()) if results[k].size else 1000
            factor = 2.1 if share(results[k], kind) >= 0.1 else 0.45 if spread < (40 if kind != "i16" else 4000) else 1
            if factor != 1 and attempt < 12:
                spec.outputs[k] = (kind, dict(q, scale=q["scale"] * factor))
                again = True
        if not again:
            break
    spec.shapes = [r.shape for r in results]
    for (kind, q), r in zip(spec.outputs, results):
        if not r.size and not spec.empty:
            return spec, None, "empty"
        if r.size > 3 and kind != "bool" and np.all(r == r.ravel()[0]):
            return spec, None, "constant"
        if q and kind in Q and share(r, kind) >= 0.2:
            return spec, None, "saturated"
        if r.dtype.kind == "f" and not np.all(np.isfinite(r)):
            return spec, None, "not finite"
    return spec, results, ""


def worker(spec, pipe):
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    try:
        pipe.send(settle(spec))
    except Exception as e:
        pipe.send((spec, None, str(e).splitlines()[0][:120] if str(e) else type(e).__name__))


def tried(spec):
    """settle() in a process of its own: the reference kernels end it where they have no answer."""
    here, there = multiprocessing.Pipe(False)
    p = multiprocessing.Process(target=worker, args=(spec, there))
    p.start()
    there.close()
    try:
        return here.recv()
    except EOFError:
        return spec, None, "the process ended"
    finally:
        p.join()


class Grid:
    def __init__(self):
        self.r = None

    def real(self, shape, low=-3, high=3):
        return self.r.uniform(low, high, shape).astype(np.float32)

    def values(self, shape, kind, low=-3, high=3):
        """Numbers of a kind: quantized ones over their whole range."""
        if kind in ("f32", "f16"):
            return self.real(shape, low, high)
        if kind == "bool":
            return self.r.integers(0, 2, shape)
        if kind in QUANT:
            return self.r.integers(Q[kind][0], Q[kind][1] + 1, shape)
        return self.r.integers(-60, 60, shape)

    def q(self, kind, low=0.01, high=0.05):
        if kind not in QUANT:
            return {}
        scale = float(np.float32(self.r.uniform(low, high)))
        return dict(scale=scale / 200, zero=0) if kind == "i16" else dict(scale=scale, zero=int(self.r.integers(-40, 40)) + 128 * (kind == "u8"))

    def given(self, shape, kind, low=-3, high=3, q=None):
        return ("in", self.values(shape, kind, low, high), kind, self.q(kind) if q is None else q)

    def ints(self, values, kind="i32"):
        return ("const", np.asarray(values), kind, {})

    def cases(self, families):
        for family in families or [n[7:] for n in dir(self) if n.startswith("family_")]:
            self.r = np.random.default_rng(zlib.crc32(family.encode()))
            for spec in getattr(self, "family_" + family)():
                yield family, spec

    # ---- element by element

    PAIRS = [((), ()), ((), (7,)), ((5,), (5,)), ((2, 3), (3,)), ((2, 1, 4), (3, 1)), ((2, 3, 4), (2, 3, 4)), ((2, 1, 3, 4), (1, 5, 1, 4)),
             ((2, 1, 3, 2, 2), (2, 2, 3, 1, 2)), ((1, 2, 1, 2, 3, 2), (2, 1, 2, 1, 3, 1)), ((0, 3), (3,))]

    def family_binary(self):
        fused = {"ADD": "Add", "SUB": "Sub", "MUL": "Mul", "DIV": "Div"}
        versions = {("ADD", "i16"): 4, ("SUB", "i16"): 5, ("MUL", "i16"): 4}
        for op in ("ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM", "POW", "SQUARED_DIFFERENCE", "FLOOR_DIV", "FLOOR_MOD", "ATAN2"):
            for kind in ("f32", "i32", "i64", "i8", "u8", "i16", "f16"):
                for n, (x, y) in enumerate(self.PAIRS):
                    if op == "ATAN2" and x != y:  # the reference kernel does not broadcast
                        continue
                    for act in FUSED if op in fused and n in (3, 5) else ["none"]:
                        o = None
                        if op in fused:
                            o = options(fused[op], fusedActivationFunction=FUSED[act])
                            if op in ("ADD", "SUB"):
                                o.potScaleInt16 = False
                        elif op in ("MAXIMUM", "MINIMUM"):
                            o = options("MaximumMinimum")
                        a, b = self.given(x, kind, 0.2, 3), self.given(y, kind, 0.5, 3)
                        out = (kind, "auto" if kind in QUANT else {})
                        if op in ("DIV", "FLOOR_DIV", "FLOOR_MOD", "POW", "ATAN2") and kind not in ("f32", "f16"):
                            positive = self.r.integers(1, 6, y) if kind not in QUANT else self.r.integers(90, 120, y) + 128 * (kind == "u8")
                            b = ("in", positive, kind, dict(scale=0.03, zero=-20 if kind == "i8" else 90) if kind in ("i8", "u8") else self.q(kind))
                            if op == "POW":
                                a, b = ("in", self.r.integers(-4, 5, x), kind, {}), ("in", self.r.integers(0, 4, y), kind, {})
                            elif kind in QUANT and op != "DIV":
                                a, b, out = (a[0], a[1], kind, {}), (b[0], self.r.integers(1, 9, y), kind, {}), (kind, {})
                        if op == "DIV" and kind in QUANT:  # for quotients near 0 the reference kernel shifts by more than 31 bits
                            near = np.abs(a[1] - a[3]["zero"]) < 12
                            a = (a[0], np.where(near, a[3]["zero"] + 40, a[1]), kind, a[3])
                        elif op in ("MAXIMUM", "MINIMUM") and kind in QUANT:
                            b, out = b[:3] + (a[3],), (kind, a[3])
                        yield Spec(f"{op.lower()}_{kind}_{n}_{act}", op, [a, b], [out], o, versions.get((op, kind), 2 if kind in QUANT else 1), 0 in x)

    def family_compare(self):
        for op in ("EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL"):
            for kind in ("f32", "i32", "i64", "i8", "u8", "i16", "bool"):
                for n, (x, y) in enumerate(self.PAIRS[1:7]):
                    a, b = self.given(x, kind, -1, 1), self.given(y, kind, -1, 1)
                    if kind in ("f32", "i32", "i64"):
                        a, b = (("in", self.r.integers(0, 3, s), kind, {}) for s in (x, y))
                    yield Spec(f"{op.lower()}_{kind}_{n}", op, [a, b], [("bool", {})], None, 2 if kind in QUANT else 3 if kind == "bool" else 1)
        for op in ("LOGICAL_AND", "LOGICAL_OR"):
            for n, (x, y) in enumerate(self.PAIRS[1:7]):
                yield Spec(f"{op.lower()}_{n}", op, [self.given(x, "bool"), self.given(y, "bool")], [("bool", {})])
        for op in ("BITWISE_XOR", "RIGHT_SHIFT"):
            for kind in ("i8", "u8", "i16", "i32", "bool"):
                x = ("in", self.values((3, 4), kind), kind, {})
                y = ("in", self.r.integers(0, 7 if op[0] == "R" else 2, (3, 4)), kind, {})
                yield Spec(f"{op.lower()}_{kind}", op, [x, y], [(kind, {})])

    SHAPES = [(), (7,), (3, 5), (2, 3, 4), (1, 2, 3, 2), (2, 1, 2, 1, 3), (1, 2, 1, 2, 1, 3), (0, 3)]

    def family_unary(self):
        floats = [("ABS", -3, 3), ("CEIL", -3, 3), ("COS", -3, 3), ("EXP", -3, 3), ("FLOOR", -3, 3), ("LOG", 0.1, 5), ("NEG", -3, 3), ("ROUND", -3, 3),
                  ("RSQRT", 0.1, 4), ("SIGN", -1, 1), ("SIN", -3, 3), ("SQRT", 0.1, 4), ("SQUARE", -3, 3), ("ELU", -3, 3), ("RELU", -3, 3), ("RELU6", -8, 8),
                  ("RELU_N1_TO_1", -2, 2), ("RELU_0_TO_1", -2, 2), ("LOGISTIC", -4, 4), ("TANH", -3, 3), ("HARD_SWISH", -4, 4), ("GELU", -3, 3), ("LEAKY_RELU", -3, 3)]
        versions = {"RELU": 2, "RELU6": 2, "LOGISTIC": 2, "TANH": 2, "EXP": 2, "GELU": 2, "ABS": 2, "LEAKY_RELU": 2, "RSQRT": 2, "SQRT": 2, "LOG": 2}
        for op, low, high in floats:
            o = {"GELU": options("Gelu", approximate=True), "LEAKY_RELU": options("LeakyRelu", alpha=0.3)}.get(op)
            for n, shape in enumerate(self.SHAPES):
                yield Spec(f"{op.lower()}_f32_{n}", op, [self.given(shape, "f32", low, high)], [("f32", {})], o, 1, 0 in shape)
            for kind in ("i32", "i64", "f16"):
                yield Spec(f"{op.lower()}_{kind}", op, [self.given((3, 5), kind, max(low, 0.2), high)], [(kind, {})], o, versions.get(op, 1))
            for kind in QUANT:
                for n in range(3):
                    out = "auto"
                    if op in ("LOGISTIC", "TANH"):
                        bits = {"LOGISTIC": 256, "TANH": 128}[op]
                        out = dict(scale=1 / 32768, zero=0) if kind == "i16" else dict(scale=1 / bits, zero=(-128 if op[0] == "L" else 0) + 128 * (kind == "u8"))
                    x = self.given((4, 43), kind)
                    if op in ("RSQRT", "SQRT", "LOG"):  # nothing below 0
                        x = ("in", self.values((4, 43), kind), kind, dict(scale=x[3]["scale"], zero=Q[kind][0] if kind != "i16" else 0))
                        if kind == "i16" or op == "LOG":
                            x = ("in", np.maximum(x[1], Q[kind][0] + 9 if kind != "i16" else 9), kind, x[3])
                    yield Spec(f"{op.lower()}_{kind}_{n}", op, [x], [(kind, out)], o, versions.get(op, 1) + (kind == "i16"))
        for n, shape in enumerate(self.SHAPES[:5]):
            yield Spec(f"logical_not_{n}", "LOGICAL_NOT", [self.given(shape, "bool")], [("bool", {})])
        for kind in ("f32", "i32", "i64"):
            yield Spec(f"zeros_like_{kind}", "ZEROS_LIKE", [self.given((3,), kind)], [(kind, {})])
        for kind in ("f32", "i8", "u8"):
            for n, (x, a) in enumerate([((2, 4, 4, 3), (1, 1, 3)), ((2, 3, 5), (3, 5)), ((4, 6), (1,))]):
                alpha = ("const", self.values(a, kind), kind, self.q(kind))
                yield Spec(f"prelu_{kind}_{n}", "PRELU", [self.given(x, kind), alpha], [(kind, "auto" if kind != "f32" else {})])

    def family_cast(self):
        kinds = ("f32", "f16", "i8", "u8", "i16", "i32", "i64", "bool")
        number = {k: T.TYPES[k][0] for k in kinds}
        for a in kinds:
            for b in kinds:
                if a != b:
                    x = ("in", self.real((3, 5), 0, 60) if a in ("f32", "f16") else np.abs(self.values((3, 5), a)) % 100, a, {})
                    yield Spec(f"cast_{a}_{b}", "CAST", [x], [(b, {})], options("Cast", inDataType=number[a], outDataType=number[b]))

    def family_quantize(self):
        for kind in QUANT:
            for n, shape in enumerate(self.SHAPES[1:7]):
                yield Spec(f"quantize_{kind}_{n}", "QUANTIZE", [self.given(shape, "f32")], [(kind, "auto")], None, 2)
                yield Spec(f"dequantize_{kind}_{n}", "DEQUANTIZE", [self.given(shape, kind)], [("f32", {})], None, 3)
            for to in QUANT + ("i32",):
                for n in range(3):
                    yield Spec(f"requantize_{kind}_{to}_{n}", "QUANTIZE", [self.given((4, 50), kind)], [(to, "auto" if to != "i32" else dict(scale=1e-4, zero=0))], None, 3)
        for n, axis in enumerate((0, 2)):
            shape = (4, 3, 5)
            q = dict(scale=self.r.uniform(0.01, 0.05, shape[axis]), zero=0, axis=axis)
            yield Spec(f"dequantize_channel_{n}", "DEQUANTIZE", [("const", self.values(shape, "i8"), "i8", q)], [("f32", {})], None, 5)
            yield Spec(f"quantize_channel_{n}", "QUANTIZE", [self.given(shape, "f32", -1, 1)], [("i8", dict(q, scale=q["scale"] * 2))], None, 3)
        yield Spec("dequantize_f16", "DEQUANTIZE", [self.given((4, 5), "f16")], [("f32", {})], None, 3)
        for n, bits in enumerate((8, 4, 16)):
            for narrow in (False, True):
                yield Spec(f"fake_quant_{n}_{narrow}", "FAKE_QUANT", [self.given((4, 9), "f32", -2, 2)], [("f32", {})],
                           options("FakeQuant", min=-1.5, max=1.7, numBits=bits, narrowRange=narrow), 2)

    # ---- sums of products

    def bias(self, n, kind, scales):
        k = "i64" if kind == "i16" else "i32"
        return ("const", self.r.integers(-1500, 1500, n), k, dict(scale=scales, axis=0))

    def weights(self, shape, kind, axis, channel):
        """int8 (uint8 for uint8 inputs), with a scale or one for each channel."""
        if kind == "u8":
            return ("const", self.values(shape, "u8"), "u8", dict(scale=0.02, zero=121))
        scale = self.r.uniform(0.005, 0.02, shape[axis]).astype(np.float32) if channel else 0.015
        return ("const", self.r.integers(-127, 128, shape), "i8", dict(scale=scale, zero=0, axis=axis))

    def family_conv(self):
        grid = [(P.SAME, 1, 1, 1, "none"), (P.VALID, 2, 1, 1, "relu"), (P.SAME, 2, 1, 2, "relu6"), (P.SAME, 1, 2, 1, "relu1"), (P.VALID, 1, 1, 4, "none"), (P.SAME, 3, 1, 1, "none")]
        for op in ("CONV_2D", "DEPTHWISE_CONV_2D"):
            for n, (pad, stride, dilation, groups, act) in enumerate(grid):
                for size in ((1, 1, 1), (3, 2, 2), (2, 5, 1)):
                    kh, kw, m = size
                    for kind in ("f32", "i8", "i8t", "u8", "i16", "i16n", "hybrid"):
                        depthwise = op[0] == "D"
                        if depthwise and groups > 1 or (dilation > 1 and stride > 1):
                            continue
                        base = {"hybrid": "f32", "i8t": "i8", "i16n": "i16"}.get(kind, kind)
                        ci, co = 4, 8
                        shape = (1, kh, kw, ci * m) if depthwise else (co, kh, kw, ci // groups)
                        axis = 3 if depthwise else 0
                        channels = shape[axis]
                        x = self.given((2, 8, 7, ci), base)
                        o = options("DepthwiseConv2D" if depthwise else "Conv2D", padding=pad, strideH=stride, strideW=stride, dilationHFactor=dilation,
                                    dilationWFactor=dilation, fusedActivationFunction=FUSED[act])
                        if depthwise:
                            o.depthMultiplier = m
                        if kind == "f32":
                            w = ("const", self.real(shape, -1, 1), "f32", {})
                            b = ("const", self.real((channels,)), "f32", {})
                        else:
                            w = self.weights(shape, base if kind != "hybrid" else "i8", axis, kind != "i8t")
                            b = ("const", self.real((channels,)), "f32", {}) if kind == "hybrid" else self.bias(channels, base, np.asarray(w[3]["scale"]) * x[3]["scale"])
                        ins = [x, w] + ([b] if kind != "i16n" else [None])
                        version = {"f32": 2, "i8": 3, "i8t": 3, "u8": 1, "i16": 5 if depthwise else 4, "i16n": 5 if depthwise else 4, "hybrid": 6 if depthwise else 5}[kind]
                        yield Spec(f"{op.lower()}_{kind}_{n}_{kh}{kw}{m}", op, ins, [(base, "auto" if base in QUANT else {})], o, version)

    def family_transpose_conv(self):
        for n, (pad, stride, k) in enumerate([(P.SAME, 2, 3), (P.VALID, 2, 3), (P.SAME, 1, 2), (P.VALID, 3, 2), (P.SAME, 2, 1)]):
            for kind in ("f32", "i8", "u8", "i16", "hybrid", "hybrid_channel"):
                for act in ("none", "relu"):
                    for with_bias in (True, False):
                        h, w, ci, co, images = 4, 5, 3, 4, 2 if kind[0] == "h" else 1
                        base = "f32" if kind[0] == "h" else kind
                        out = (images, h * stride, w * stride, co) if pad == P.SAME else (images, (h - 1) * stride + k, (w - 1) * stride + k, co)
                        x = self.given((images, h, w, ci), base)
                        o = options("TransposeConv", padding=pad, strideH=stride, strideW=stride, fusedActivationFunction=FUSED[act])
                        if kind == "f32":
                            f, b = ("const", self.real((co, k, k, ci)), "f32", {}), ("const", self.real((co,)), "f32", {})
                        elif base == "f32":
                            f, b = self.weights((co, k, k, ci), "i8", 0, kind == "hybrid_channel"), ("const", self.real((co,)), "f32", {})
                        else:
                            f = self.weights((co, k, k, ci), kind, 0, kind != "u8")
                            b = self.bias(co, kind, np.asarray(f[3]["scale"]) * x[3]["scale"])
                        yield Spec(f"transpose_conv_{kind}_{n}_{act}_{with_bias}", "TRANSPOSE_CONV", [self.ints(out), f, x] + ([b] if with_bias else []),
                                   [(base, "auto" if base in QUANT else {})], o, 4 if act != "none" else 3)

    def family_conv3d(self):
        for n, (pad, stride) in enumerate([(P.SAME, 1), (P.VALID, 1), (P.SAME, 2)]):
            for act in ("none", "relu"):
                x, f, b = self.given((1, 4, 5, 4, 2), "f32"), ("const", self.real((2, 3, 2, 2, 5)), "f32", {}), ("const", self.real((5,)), "f32", {})
                o = options("Conv3D", padding=pad, strideD=stride, strideH=stride, strideW=stride, dilationDFactor=1, dilationHFactor=1, dilationWFactor=1,
                            fusedActivationFunction=FUSED[act])
                yield Spec(f"conv_3d_{n}_{act}", "CONV_3D", [x, f, b], [("f32", {})], o)
                out = [1] + [v * stride if pad == P.SAME else (v - 1) * stride + k for v, k in zip((4, 5, 4), (2, 3, 2))] + [3]
                g = ("const", self.real((2, 3, 2, 3, 2)), "f32", {})
                yield Spec(f"conv_3d_transpose_{n}_{act}", "CONV_3D_TRANSPOSE", [self.ints(out), g, x, ("const", self.real((3,)), "f32", {})], [("f32", {})], copy.deepcopy(o))

    def family_product(self):
        for n, (shape, act, keep, bias) in enumerate([((6, 12), "none", False, True), ((2, 3, 12), "relu", True, True), ((2, 3, 12), "relu6", False, False),
                                                      ((12,), "none", False, True), ((2, 1, 3, 12), "relu1", True, True), ((1, 12), "none", False, False)]):
            for kind in ("f32", "i8", "i8c", "u8", "i16", "i16c", "hybrid", "hybrid_asym", "hybrid_channel"):
                base = kind[:3].rstrip("c_") if kind[0] != "h" else "f32"
                x = self.given(shape, base)
                o = options("FullyConnected", fusedActivationFunction=FUSED[act], keepNumDims=keep, asymmetricQuantizeInputs=kind == "hybrid_asym")
                if kind == "f32":
                    w, b = ("const", self.real((7, 12)), "f32", {}), ("const", self.real((7,)), "f32", {})
                else:
                    w = self.weights((7, 12), base if base != "f32" else "i8", 0, kind[-1] in "cl")
                    b = ("const", self.real((7,)), "f32", {}) if base == "f32" else self.bias(7, base, np.asarray(w[3]["scale"]) * x[3]["scale"])
                version = {"f32": 5, "u8": 5, "i8": 5, "i8c": 12, "i16": 7, "i16c": 12, "hybrid": 5, "hybrid_asym": 9, "hybrid_channel": 12}[kind]
                yield Spec(f"fully_connected_{kind}_{n}", "FULLY_CONNECTED", [x, w] + ([b] if bias else []), [(base, "auto" if base in QUANT else {})], o, version)
        for n, (x, y) in enumerate([((4, 5), (5, 3)), ((2, 4, 5), (2, 5, 3)), ((2, 1, 4, 5), (3, 5, 2)), ((1, 5), (4, 5, 3)), ((2, 3, 2, 4, 5), (2, 3, 2, 5, 3))]):
            for ax in (False, True):
                for ay in (False, True):
                    swap = lambda s, yes: s[:-2] + (s[-1], s[-2]) if yes else s
                    for kind in ("f32", "i8", "i16"):
                        yield Spec(f"batch_matmul_{kind}_{n}_{ax}_{ay}", "BATCH_MATMUL", [self.given(swap(x, ax), kind), self.given(swap(y, ay), kind)],
                                   [(kind, "auto" if kind in QUANT else {})], options("BatchMatMul", adjX=ax, adjY=ay), {"f32": 1, "i8": 2, "i16": 3}[kind])
                    w = self.weights(swap(y, ay), "i8", 0, False)
                    if n == 4:  # the reference kernel takes scales of other rows
                        continue
                    yield Spec(f"batch_matmul_hybrid_{n}_{ax}_{ay}", "BATCH_MATMUL", [self.given(swap(x, ax), "f32"), w], [("f32", {})],
                               options("BatchMatMul", adjX=ax, adjY=ay, asymmetricQuantizeInputs=False), 4)

    def family_pool(self):
        for n, (pad, stride, kh, kw, act) in enumerate([(P.SAME, 2, 3, 2, "none"), (P.VALID, 1, 3, 2, "relu"), (P.SAME, 1, 2, 2, "relu6"), (P.VALID, 3, 2, 3, "relu1"), (P.VALID, 1, 7, 6, "none"),
                                                        (P.SAME, 1, 1, 1, "none")]):
            for op in ("MAX_POOL_2D", "AVERAGE_POOL_2D", "L2_POOL_2D"):
                for kind in ("f32",) + QUANT:
                    x = self.given((2, 7, 6, 5), kind)
                    o = options("Pool2D", padding=pad, strideH=stride, strideW=stride, filterHeight=kh, filterWidth=kw, fusedActivationFunction=FUSED[act])
                    yield Spec(f"{op.lower()}_{kind}_{n}", op, [x], [(kind, x[3])], o, 3 if kind == "i16" else 2 if kind == "i8" else 1)

    # ---- reductions

    def family_reduce(self):
        for n, (shape, axes, keep) in enumerate([((2, 4, 3, 5), (1, 2), True), ((2, 4, 3, 5), (1, 2), False), ((2, 4, 3, 5), (-1,), False), ((2, 4, 3, 5), (0, 3), True),
                                                 ((2, 4, 3, 5), (0, 1, 2, 3), False), ((3, 7), (0,), False), ((2, 3, 2, 2, 3), (1, 3), False), ((9,), (0,), True), ((2, 1, 3, 2, 1, 2), (0, 2), True)]):
            for op in ("SUM", "MEAN", "REDUCE_PROD", "REDUCE_MAX", "REDUCE_MIN"):
                for kind in ("f32", "i32", "i64") + QUANT:
                    x = self.given(shape, kind, 0.5, 1.5)
                    if kind in ("i32", "i64"):
                        x = ("in", self.r.integers(1, 4, shape), kind, {})
                    out = {} if kind not in QUANT else x[3] if op in ("REDUCE_MAX", "REDUCE_MIN") else "auto"
                    yield Spec(f"{op.lower()}_{kind}_{n}", op, [x, self.ints(axes)], [(kind, out)], options("Reducer", keepDims=keep), 3 if kind == "i16" else 2 if kind in QUANT else 1)
            for op in ("REDUCE_ANY", "REDUCE_ALL"):
                yield Spec(f"{op.lower()}_{n}", op, [("in", self.r.random(shape) < 0.7, "bool", {}), self.ints(axes)], [("bool", {})], options("Reducer", keepDims=keep))
        for op, o in (("ARG_MAX", "ArgMax"), ("ARG_MIN", "ArgMin")):
            for kind in ("f32", "i8", "u8", "i32", "i64"):
                for n, (shape, axis) in enumerate([((3, 9), 1), ((3, 4, 5), 0), ((2, 3, 4, 5), -2), ((9,), 0)]):
                    for to in ("i32", "i64"):
                        x = self.given(shape, kind)
                        yield Spec(f"{op.lower()}_{kind}_{n}_{to}", op, [x, self.ints(axis)], [(to, {})], options(o, outputType=T.TYPES[to][0]), 2)
        for kind in ("f32", "i32", "i64"):
            for n, (axis, exclusive, reverse) in enumerate([(0, False, False), (1, True, False), (-1, False, True), (2, True, True)]):
                yield Spec(f"cumsum_{kind}_{n}", "CUMSUM", [self.given((3, 4, 5), kind), self.ints(axis)], [(kind, {})], options("Cumsum", exclusive=exclusive, reverse=reverse))
        for op, o in (("SEGMENT_SUM", "SegmentSum"), ("UNSORTED_SEGMENT_SUM", "UnsortedSegmentSum"), ("UNSORTED_SEGMENT_PROD", "UnsortedSegmentProd"),
                      ("UNSORTED_SEGMENT_MAX", "UnsortedSegmentMax"), ("UNSORTED_SEGMENT_MIN", "UnsortedSegmentMin")):
            for kind in ("f32", "i32"):
                ids = self.ints([0, 0, 1, 2, 2]) if op[0] == "S" else self.ints([2, 0, 1, 2, 0])
                yield Spec(f"{op.lower()}_{kind}", op, [self.given((5, 3), kind), ids] + ([] if op[0] == "S" else [self.ints(3)]), [(kind, {})], options(o))

    # ---- moving data

    def family_shape(self):
        for kind in ("f32", "i8", "u8", "i16", "i32", "i64", "bool"):
            q = self.q(kind)
            out = (kind, q)
            def case(name, op, shape, extra=(), o=None, version=1, outs=1, vkind="i32"):
                return Spec(f"{name}_{kind}", op, [self.given(shape, kind, q=q)] + [self.ints(e, vkind) for e in extra], [out] * outs, o, version)
            yield case("reshape", "RESHAPE", (2, 6), [[3, -1]], options("Reshape", newShape=[3, -1]))
            yield case("reshape_option", "RESHAPE", (2, 6), [], options("Reshape", newShape=[1, 4, 3]))
            yield case("squeeze", "SQUEEZE", (2, 1, 3, 1), o=options("Squeeze", squeezeDims=[1, 3]))
            yield case("squeeze_all", "SQUEEZE", (1, 2, 1, 3, 1), o=options("Squeeze", squeezeDims=[]))
            yield case("squeeze_negative", "SQUEEZE", (1, 2, 1, 3, 1), o=options("Squeeze", squeezeDims=[-1, 0]))
            for a in (0, 1, -1):
                yield case(f"expand_dims_{a}", "EXPAND_DIMS", (2, 3), [a])
            for n, p in enumerate([(1, 0), (2, 0, 1), (0, 3, 1, 2), (4, 1, 3, 0, 2), (5, 0, 4, 1, 3, 2)]):
                yield case(f"transpose_{n}", "TRANSPOSE", (2, 3, 4, 2, 3, 2)[:len(p)], [list(p)], version=2 + (kind == "i16"))
            yield case("tile", "TILE", (2, 3), [[2, 3]])
            yield case("tile_1", "TILE", (4,), [[3]])
            yield case("tile_64", "TILE", (2, 3), [[1, 2]], vkind="i64")
            yield case("broadcast_to", "BROADCAST_TO", (2, 1), [[3, 2, 4]], version=2)
            yield case("broadcast_to_5", "BROADCAST_TO", (2, 1, 3), [[2, 1, 2, 4, 3]], version=2, vkind="i64")
            yield case("reverse", "REVERSE_V2", (2, 3), [[1]], version=2)
            yield case("reverse_0", "REVERSE_V2", (4, 3, 2), [[0]], version=2)
            yield case("slice", "SLICE", (4, 5), [[1, 1], [2, 3]], version=2)
            yield case("slice_rest", "SLICE", (4, 5, 3), [[1, 0, 2], [-1, 2, -1]], version=2, vkind="i64")
            yield case("slice_5", "SLICE", (2, 3, 2, 3, 2), [[0, 1, 0, 1, 1], [2, 2, 1, 2, 1]], version=5)
            def strided(name, shape, begin, end, step, **o):
                return case("strided_slice_" + name, "STRIDED_SLICE", shape, [begin, end, step], options("StridedSlice", **o), 2)
            yield strided("step", (6, 5), [0, 0], [6, 5], [2, 1], beginMask=2, endMask=2)
            yield strided("shrink", (6, 5), [-2, 0], [-1, 0], [1, 1], endMask=2, shrinkAxisMask=1)
            yield strided("back", (6, 5), [5, 3], [0, 0], [-2, -1], endMask=2)
            yield strided("axis", (6, 5), [1, 0, 2], [4, 0, 5], [1, 1, 1], newAxisMask=2)
            yield strided("ellipsis", (3, 4, 5), [0, 1], [0, 4], [1, 2], ellipsisMask=1)
            yield strided("5", (2, 3, 2, 3, 2), [0, 0, 1, 0, 0], [2, 3, 2, 3, 2], [1, 2, 1, 2, 1])
            yield case("pad", "PAD", (2, 3), [[[0, 1], [1, 2]]], version=2)
            yield case("pad_4", "PAD", (1, 2, 3, 2), [[[0, 0], [1, 1], [2, 0], [0, 1]]], version=2)
            yield case("pad_5", "PAD", (1, 2, 3, 2, 2), [[[0, 0], [1, 1], [2, 0], [0, 1], [1, 0]]], version=3, vkind="i64")
            if kind != "bool":
                yield Spec(f"padv2_{kind}", "PADV2", [self.given((2, 3), kind, q=q), self.ints([[0, 1], [1, 2]]), ("const", np.int32(5), kind, q)], [out], None, 2)
            for mode in ("REFLECT", "SYMMETRIC"):
                yield case("mirror_pad_" + mode.lower(), "MIRROR_PAD", (3, 4), [[[1, 1], [2, 1]]], options("MirrorPad", mode=getattr(S.MirrorPadMode, mode)), 2)
            yield case("space_to_depth", "SPACE_TO_DEPTH", (2, 4, 6, 3), o=options("SpaceToDepth", blockSize=2), version=2)
            yield case("depth_to_space", "DEPTH_TO_SPACE", (2, 2, 3, 8), o=options("DepthToSpace", blockSize=2), version=2)
            yield case("batch_to_space", "BATCH_TO_SPACE_ND", (4, 2, 3, 3), [[2, 2], [[0, 1], [1, 0]]], version=2)
            yield case("batch_to_space_3", "BATCH_TO_SPACE_ND", (4, 3, 2), [[2], [[1, 0]]], version=3)
            yield case("space_to_batch", "SPACE_TO_BATCH_ND", (1, 3, 4, 3), [[2, 2], [[1, 0], [0, 0]]], version=2)
            yield case("space_to_batch_3", "SPACE_TO_BATCH_ND", (2, 5, 3), [[3], [[1, 0]]], version=3)
            for a, b in ((0, 0), (1, 0), (-1, 0), (1, 1)):
                yield case(f"gather_{a}_{b}", "GATHER", (3, 4, 5), [[[1, 0], [2, 1], [0, 2]]], options("Gather", axis=a, batchDims=b), 5)
            yield case("gather_64", "GATHER", (5, 3), [[4, 0, 2]], options("Gather", axis=0), 3, vkind="i64")
            yield case("gather_scalar", "GATHER", (5, 3), [2], options("Gather", axis=0), 3)
            yield case("gather_nd", "GATHER_ND", (4, 3, 2), [[[0, 1], [3, 2], [1, 0]]], version=3)
            yield case("gather_nd_rows", "GATHER_ND", (4, 3, 2), [[[3], [1]]], version=3)
            yield case("unpack", "UNPACK", (3, 4), o=options("Unpack", num=3, axis=0), outs=3, version=2)
            yield case("unpack_1", "UNPACK", (3, 2, 4), o=options("Unpack", num=2, axis=-2), outs=2, version=2)
            for a in (0, 1, -1):
                yield Spec(f"split_{a}_{kind}", "SPLIT", [self.ints(a), self.given((4, 6), kind, q=q)], [out] * 2, options("Split", numSplits=2), 2)
            yield Spec(f"split_v_{kind}", "SPLIT_V", [self.given((4, 6), kind, q=q), self.ints([1, 2, -1]), self.ints(1)], [out] * 3, options("SplitV", numSplits=3), 2)
            for n, (shapes, axis) in enumerate([([(2, 1), (2, 3), (2, 2)], 1), ([(2, 3), (1, 3)], 0), ([(2, 3, 1, 2), (2, 3, 4, 2)], -2), ([(2, 3, 1, 2, 2), (2, 2, 1, 2, 2)], 1)]):
                yield Spec(f"concat_{kind}_{n}", "CONCATENATION", [self.given(s, kind, q=q) for s in shapes], [out], options("Concatenation", axis=axis), 2)
            for axis in (0, 1, -1):
                yield Spec(f"pack_{axis}_{kind}", "PACK", [self.given((2, 3), kind, q=q) for _ in range(3)], [out], options("Pack", valuesCount=3, axis=axis), 2)
            yield Spec(f"topk_{kind}", "TOPK_V2", [self.given((3, 8), kind, q=q), self.ints(3)], [out, ("i32", {})], None, 2)
            yield Spec(f"scatter_nd_{kind}", "SCATTER_ND", [self.ints([[1], [4], [0]]), self.given((3, 2), kind, q=q), self.ints([6, 2])], [out])
            yield Spec(f"dynamic_update_slice_{kind}", "DYNAMIC_UPDATE_SLICE", [self.given((5, 4), kind, q=q), self.given((2, 3), kind, q=q), ("in", [2, 1], "i32", {})], [out])
            for op in ("SELECT", "SELECT_V2"):
                for n, (c, x, y) in enumerate([((3, 4), (3, 4), (3, 4)), ((3,), (3, 2), (3, 2)), ((3, 1), (4,), (1, 4)), ((), (3, 2), (3, 2)), ((2, 1, 3, 1), (1, 2, 3, 2), (2, 2, 1, 1))]):
                    yield Spec(f"{op.lower()}_{kind}_{n}", op, [self.given(c, "bool"), self.given(x, kind, q=q), self.given(y, kind, q=q)], [out], None, 2 if op[-1] == "T" else 1)
            plain = lambda v: ("const", np.asarray(v), kind, {})
            for axis in (-1, 0, 1):
                yield Spec(f"one_hot_{kind}_{axis}", "ONE_HOT", [("in", self.r.integers(0, 4, (3, 2)), "i32", {}), self.ints(4), plain(1), plain(0)], [(kind, {})], options("OneHot", axis=axis))
            yield Spec(f"fill_{kind}", "FILL", [self.ints([2]), self.given((), kind, q=q)], [out], None, 2 if kind in QUANT else 1)
            yield Spec(f"where_{kind}", "WHERE", [("in", self.r.integers(0, 2, (3, 4)), kind, {})], [("i64", {})])
            yield Spec(f"reverse_sequence_{kind}", "REVERSE_SEQUENCE", [self.given((3, 5, 2), kind, q=q), self.ints([2, 5, 1])], [out], options("ReverseSequence", seqDim=1, batchDim=0))
            if kind == "bool":  # the reference kernel leaves them as they were
                continue
            yield Spec(f"matrix_diag_{kind}", "MATRIX_DIAG", [self.given((3, 4), kind, q=q)], [out])
            yield Spec(f"matrix_set_diag_{kind}", "MATRIX_SET_DIAG", [self.given((2, 3, 4), kind, q=q), self.given((2, 3), kind, q=q)], [out])
            yield Spec(f"sparse_to_dense_{kind}", "SPARSE_TO_DENSE", [self.ints([[0, 1], [2, 3]]), self.ints([3, 5]), self.given((2,), kind, q=q), ("const", 1, kind, q)], [out], options("SparseToDense"), 3)
            yield Spec(f"unique_{kind}", "UNIQUE", [("in", self.r.integers(0, 2 if kind == "bool" else 5, (12,)), kind, {})], [(kind, {}), ("i32", {})], options("Unique", idxOutType=S.TensorType.INT32))
            yield Spec(f"add_n_{kind}", "ADD_N", [self.given((3, 4), kind, q=q) for _ in range(3)], [out])
            yield Spec(f"embedding_{kind}", "EMBEDDING_LOOKUP", [("in", self.r.integers(0, 5, (4,)), "i32", {}), ("const", self.values((5, 3), kind), kind, q)], [("f32", {}) if kind == "i8" else out], None, 3)

    def family_resize(self):
        for kind in ("f32",) + QUANT:
            for align, half in ((False, False), (True, False), (False, True)):
                for n, size in enumerate([(7, 9), (2, 3), (4, 10), (1, 1)]):
                    x = self.given((2, 4, 5, 3), kind)
                    yield Spec(f"resize_nearest_{kind}_{align}_{half}_{n}", "RESIZE_NEAREST_NEIGHBOR", [x, self.ints(size)], [(kind, x[3])],
                               options("ResizeNearestNeighbor", alignCorners=align, halfPixelCenters=half), 3)
                    yield Spec(f"resize_bilinear_{kind}_{align}_{half}_{n}", "RESIZE_BILINEAR", [x, self.ints(size)], [(kind, x[3])],
                               options("ResizeBilinear", alignCorners=align, halfPixelCenters=half), 4)

    def family_norm(self):
        for n, shape in enumerate([(3, 11), (7,), (2, 3, 5), (1, 2, 3, 9), (2, 1, 2, 2, 5)]):
            for beta in (1.0, 0.5):
                for kind in ("f32",) + QUANT:
                    out = {"f32": {}, "i8": dict(scale=1 / 256, zero=-128), "u8": dict(scale=1 / 256, zero=0), "i16": dict(scale=1 / 32768, zero=0)}[kind]
                    x = self.given(shape, kind) if kind != "i16" else self.given(shape, kind, q=dict(scale=0.0003, zero=0))
                    yield Spec(f"softmax_{kind}_{n}_{beta}", "SOFTMAX", [x], [(kind, out)], options("Softmax", beta=beta), 3 if kind == "i16" else 2)
            for kind in ("f32", "i8", "u8"):
                out = {"f32": {}, "i8": dict(scale=16 / 256, zero=127), "u8": dict(scale=16 / 256, zero=255)}[kind]
                yield Spec(f"log_softmax_{kind}_{n}", "LOG_SOFTMAX", [self.given(shape, kind)], [(kind, out)], None, 2)
                l2 = {"f32": {}, "i8": dict(scale=1 / 128, zero=0), "u8": dict(scale=1 / 128, zero=128)}[kind]
                yield Spec(f"l2_norm_{kind}_{n}", "L2_NORMALIZATION", [self.given(shape, kind)], [(kind, l2)], options("L2Norm"), 2)

    def family_boxes(self):
        """The ends of detection models, and what they are made of."""
        def boxes(n):
            corner = self.r.uniform(0, 0.7, (n, 2))
            return np.concatenate([corner, corner + self.r.uniform(0.1, 0.3, (n, 2))], 1).astype(np.float32)
        for n, (count, most, overlap, least) in enumerate([(12, 5, 0.5, 0.2), (20, 30, 0.3, 0.5), (7, 3, 0.9, -1)]):
            plain = [("in", boxes(count), "f32", {}), ("in", self.r.permutation(count) / count, "f32", {}), self.ints(most),
                     ("const", np.float32(overlap), "f32", {}), ("const", np.float32(least), "f32", {})]
            yield Spec(f"nms_v4_{n}", "NON_MAX_SUPPRESSION_V4", plain, [("i32", {}), ("i32", {})], options("NonMaxSuppressionV4"))
            yield Spec(f"nms_v5_{n}", "NON_MAX_SUPPRESSION_V5", plain + [("const", np.float32(0), "f32", {})], [("i32", {}), ("f32", {}), ("i32", {})],
                       options("NonMaxSuppressionV5"))
        from flatbuffers import flexbuffers
        for n, (count, classes, most, regular, per_box, background) in enumerate(
                [(20, 3, 6, False, 1, 1), (20, 3, 6, True, 1, 1), (30, 4, 10, False, 2, 0), (30, 4, 10, True, 1, 0), (6, 2, 15, True, 1, 1)]):
            o = flexbuffers.Dumps({"max_detections": most, "max_classes_per_detection": per_box, "detections_per_class": 5, "use_regular_nms": regular,
                                   "nms_score_threshold": 0.3, "nms_iou_threshold": 0.4, "num_classes": classes, "y_scale": 10.0, "x_scale": 10.0,
                                   "h_scale": 5.0, "w_scale": 5.0})
            anchors = np.concatenate([self.r.uniform(0.2, 0.8, (count, 2)), self.r.uniform(0.1, 0.3, (count, 2))], 1)
            scores = self.r.permutation(count * (classes + background)).reshape(1, count, -1) / (count * (classes + background))
            yield Spec(f"detection_{n}", "TFLite_Detection_PostProcess", [("in", self.real((1, count, 4), -2, 2), "f32", {}), ("in", scores, "f32", {}),
                                                                          ("const", anchors, "f32", {})], [("f32", {})] * 4, bytes(o))

    def family_sums(self):
        """Products whose sums are results as they are, and images of one channel, which are quantized as those of several."""
        for n, (x, y, ax, ay) in enumerate([((4, 5), (5, 3), False, False), ((2, 5, 4), (3, 5), True, True), ((2, 1, 4, 6), (3, 6, 2), False, False)]):
            yield Spec(f"batch_matmul_i32_{n}", "BATCH_MATMUL", [self.given(x, "i8"), self.given(y, "i8")], [("i32", {})], options("BatchMatMul", adjX=ax, adjY=ay), 4)
        for n, (channels, m, channel) in enumerate([(1, 1, False), (1, 1, True), (1, 3, True), (3, 1, True)]):
            o = options("DepthwiseConv2D", padding=P.SAME, strideH=1, strideW=1, dilationHFactor=1, dilationWFactor=1, depthMultiplier=m, fusedActivationFunction=FUSED["none"])
            ins = [self.given((2, 5, 4, channels), "f32"), self.weights((1, 3, 2, channels * m), "i8", 3, channel), ("const", self.real((channels * m,)), "f32", {})]
            yield Spec(f"depthwise_hybrid_{n}", "DEPTHWISE_CONV_2D", ins, [("f32", {})], o, 6)
        for kind in ("f32", "i32"):
            yield Spec(f"scatter_nd_size_{kind}", "SCATTER_ND", [self.ints([[1], [4], [1]]), self.given((3, 2), kind), ("in", np.asarray([6, 2]), "i32", {})], [(kind, {})])

    def family_prod(self):
        """Products of quantized numbers, which are scaled and rounded one after the other."""
        for kind in ("i8", "i16"):
            for n, (shape, axes, keep) in enumerate([((2, 3), [1], False), ((2, 4, 3), [0, 2], True), ((5,), [0], False), ((3, 1, 4), [1], True), ((2, 2, 2, 2), [0, 1, 2, 3], False),
                                                     ((2, 40, 3), [1], False), ((4, 3), [0], True), ((1, 7), [0], False), ((2, 3), [], False)]):
                for k in range(2):
                    q = dict(scale=(0.03 if k else 0.01) if kind == "i8" else (1e-3 if k else 3e-4), zero=int(self.r.integers(-20, 20)) if kind == "i8" else 0)
                    yield Spec(f"reduce_prod_{kind}_{n}_{k}", "REDUCE_PROD", [self.given(shape, kind, q=q), self.ints(axes)], [(kind, "auto")], options("Reducer", keepDims=keep), 2)

    # ---- sizes, axes and places that are inputs

    def family_fed(self):
        """Operands that say how large a result is, or along which axis: fed, not constants."""
        fed = lambda v, kind="i32": ("in", np.asarray(v), kind, {})
        for kind in ("f32", "i8", "u8", "i16", "i32"):
            q = self.q(kind)
            out = (kind, q)
            given = lambda shape: self.given(shape, kind, q=q)

            def case(name, op, shape, values, o=None, version=1, outs=1, vkind="i32", first=True):
                x, rest = given(shape), [fed(v, vkind) for v in values]
                return Spec(f"{name}_{kind}", op, [x] + rest if first else rest + [x], [out] * outs, o, version)
            for mode in ("REFLECT", "SYMMETRIC"):
                o = options("MirrorPad", mode=getattr(S.MirrorPadMode, mode))
                yield case("mirror_pad_" + mode.lower(), "MIRROR_PAD", (3, 4), [[[1, 2], [0, 3]]], o, 2)
                yield case("mirror_pad_4_" + mode.lower(), "MIRROR_PAD", (2, 3, 4, 2), [[[0, 0], [1, 2], [2, 1], [0, 0]]], o, 2, vkind="i64")
            yield case("pad", "PAD", (2, 3), [[[0, 1], [1, 2]]], version=2)
            yield case("pad_4", "PAD", (1, 2, 3, 2), [[[0, 0], [1, 1], [2, 0], [0, 1]]], version=2, vkind="i64")
            yield Spec(f"padv2_{kind}", "PADV2", [given((2, 3)), fed([[2, 1], [0, 2]]), ("const", np.int32(5), kind, q)], [out], None, 2)
            yield Spec(f"padv2_value_{kind}", "PADV2", [given((2, 3)), fed([[2, 1], [0, 2]]), ("in", np.int32(9), kind, q)], [out], None, 2)
            yield case("space_to_batch", "SPACE_TO_BATCH_ND", (1, 3, 4, 3), [[2, 2], [[1, 0], [0, 0]]], version=2)
            yield case("space_to_batch_3", "SPACE_TO_BATCH_ND", (2, 5, 3), [[3], [[1, 0]]], version=3)
            yield case("batch_to_space", "BATCH_TO_SPACE_ND", (4, 2, 3, 3), [[2, 2], [[0, 1], [1, 0]]], version=2)
            yield case("batch_to_space_3", "BATCH_TO_SPACE_ND", (4, 3, 2), [[2], [[1, 0]]], version=3)
            for n, (align, half, size) in enumerate([(False, False, (7, 9)), (True, False, (2, 3)), (False, True, (4, 10))]):
                yield case(f"resize_nearest_{n}", "RESIZE_NEAREST_NEIGHBOR", (2, 4, 5, 3), [size], options("ResizeNearestNeighbor", alignCorners=align, halfPixelCenters=half), 4)
                yield case(f"resize_bilinear_{n}", "RESIZE_BILINEAR", (2, 4, 5, 3), [size], options("ResizeBilinear", alignCorners=align, halfPixelCenters=half), 4)
            yield case("transpose", "TRANSPOSE", (2, 3, 4), [[2, 0, 1]], version=2)
            yield case("transpose_5", "TRANSPOSE", (2, 3, 2, 4, 2), [[4, 0, 3, 1, 2]], version=5)
            yield case("tile", "TILE", (2, 3), [[2, 3]])
            yield case("tile_64", "TILE", (2, 1, 3), [[2, 3, 1]], vkind="i64")
            yield case("broadcast_to", "BROADCAST_TO", (2, 1), [[3, 2, 4]], version=2)
            yield case("reshape", "RESHAPE", (4, 6), [[3, -1]], options("Reshape", newShape=[3, 8]))
            yield case("expand_dims", "EXPAND_DIMS", (2, 3), [-2])
            yield case("expand_dims_1", "EXPAND_DIMS", (2, 3), [[1]])
            yield case("reverse", "REVERSE_V2", (4, 3, 2), [[1]], version=2)
            yield case("slice", "SLICE", (4, 5), [[1, 1], [2, -1]], version=2)
            yield case("slice_64", "SLICE", (4, 5, 3), [[1, 0, 2], [-1, 2, -1]], version=2, vkind="i64")
            for name, shape, begin, end, step, o in [("step", (6, 5), [0, 0], [6, 5], [2, 1], dict(beginMask=2, endMask=2)), ("shrink", (6, 5), [-2, 0], [-1, 0], [1, 1], dict(endMask=2, shrinkAxisMask=1)),
                                                     ("back", (6, 5), [5, 3], [0, 0], [-2, -1], dict(endMask=2)), ("axis", (6, 5), [1, 0, 2], [4, 0, 5], [1, 1, 1], dict(newAxisMask=2)),
                                                     ("offset", (6, 5), [1, 2], [3, 2], [1, 1], dict(offset=True)), ("ellipsis", (3, 4, 5), [0, 1], [0, 4], [1, 2], dict(ellipsisMask=1))]:
                yield case("strided_slice_" + name, "STRIDED_SLICE", shape, [begin, end, step], options("StridedSlice", **o), 8 if name == "offset" else 2)
                yield Spec(f"strided_slice_{name}_some_{kind}", "STRIDED_SLICE", [given(shape), fed(begin), fed(end), self.ints(step)], [out], options("StridedSlice", **o), 8 if name == "offset" else 2)
            for a in (0, 1, -1):
                yield case(f"split_{a}", "SPLIT", (4, 6), [a], options("Split", numSplits=2), 2, 2, first=False)
            yield case("split_v", "SPLIT_V", (4, 6), [[1, 2, -1], 1], options("SplitV", numSplits=3), 2, 3)
            yield Spec(f"split_v_sizes_{kind}", "SPLIT_V", [given((4, 6)), fed([1, 3]), self.ints(0)], [out] * 2, options("SplitV", numSplits=2), 2)
            yield Spec(f"topk_{kind}", "TOPK_V2", [given((3, 8)), fed(3)], [out, ("i32", {})], None, 2)
            yield Spec(f"scatter_nd_{kind}", "SCATTER_ND", [fed([[1], [4], [0]]), given((3, 2)), fed([5, 2])], [out])
            yield Spec(f"fill_{kind}", "FILL", [fed([1, 3]), given(())], [out], None, 2 if kind in QUANT else 1)
            yield Spec(f"sparse_to_dense_{kind}", "SPARSE_TO_DENSE", [fed([[0, 1], [2, 3]]), fed([3, 5]), given((2,)), ("const", 1, kind, q)], [out], options("SparseToDense"), 3)
            yield Spec(f"sparse_to_dense_const_{kind}", "SPARSE_TO_DENSE", [self.ints([[0, 1], [2, 3]]), fed([3, 5]), given((2,)), ("in", 1, kind, q)], [out], options("SparseToDense"), 3)
            yield Spec(f"one_hot_{kind}", "ONE_HOT", [fed([[1, 0], [2, 3]]), fed(4), fed(7, kind), fed(2, kind)], [(kind, {})], options("OneHot", axis=1))
            yield Spec(f"reverse_sequence_{kind}", "REVERSE_SEQUENCE", [given((3, 5, 2)), fed([2, 5, 1])], [out], options("ReverseSequence", seqDim=1, batchDim=0))
            yield Spec(f"dilate_{kind}", "DILATE", [given((2, 3)), fed([2, 3]), ("const", 4, kind, q)], [out], None, 1)
            # along axes
            for op, axes, keep in [("SUM", [1], True), ("MEAN", [0, 2], False), ("REDUCE_MAX", [-1], True), ("REDUCE_MIN", [0], False), ("REDUCE_PROD", [1], False), ("MEAN", [1, 2], True)]:
                if op == "SUM" and kind in ("i8", "i16"):  # the reference kernel takes them for bytes without sign
                    continue
                more = {"SUM": 2, "MEAN": 2, "REDUCE_MAX": 2, "REDUCE_MIN": 2, "REDUCE_PROD": 1}[op]
                o = options("Reducer", keepDims=keep)
                auto = (kind, "auto" if kind in QUANT and op in ("SUM", "MEAN") else q)
                yield Spec(f"{op.lower()}_{len(axes)}_{kind}", op, [given((2, 3, 4)), fed(axes)], [auto], o, more)
            for op in ("ARG_MAX", "ARG_MIN"):
                for to, number in (("i32", S.TensorType.INT32), ("i64", S.TensorType.INT64)):
                    yield Spec(f"{op.lower()}_{to}_{kind}", op, [given((2, 3, 4)), fed(1)], [(to, {})], options(op[:3].title() + op[4:].title(), outputType=number), 2)
            yield Spec(f"cumsum_{kind}", "CUMSUM", [given((2, 3, 4)), fed(1)], [out], options("Cumsum", exclusive=True, reverse=False))
            yield Spec(f"cumsum_reverse_{kind}", "CUMSUM", [given((2, 3, 4)), fed(-1)], [out], options("Cumsum", exclusive=False, reverse=True))
        for op in ("REDUCE_ANY", "REDUCE_ALL"):
            yield Spec(op.lower(), op, [self.given((2, 3, 4), "bool"), fed([0, 2])], [("bool", {})], options("Reducer", keepDims=True), 1)
        for kind in ("f32", "i32", "i64"):
            yield Spec(f"range_{kind}", "RANGE", [fed(1, kind), fed(12, kind), fed(3, kind)], [(kind, {})])
            yield Spec(f"range_down_{kind}", "RANGE", [fed(7, kind), fed(-2, kind), fed(-2, kind)], [(kind, {})])
        yield Spec("broadcast_args", "BROADCAST_ARGS", [fed([2, 1, 3]), fed([4, 1])], [("i32", {})])
        yield Spec("segment_sum", "SEGMENT_SUM", [self.given((5, 3), "f32"), fed([0, 0, 1, 2, 2])], [("f32", {})])
        for op in ("SUM", "PROD", "MAX", "MIN"):
            yield Spec(f"unsorted_segment_{op.lower()}", f"UNSORTED_SEGMENT_{op}", [self.given((5, 3), "f32"), fed([1, 0, 1, 3, 0]), fed(4)], [("f32", {})])
        yield Spec("random_uniform", "RANDOM_UNIFORM", [fed([3, 4])], [("f32", {})], options("Random", seed=3, seed2=5))
        yield Spec("random_normal", "RANDOM_STANDARD_NORMAL", [fed([3, 4])], [("f32", {})], options("Random", seed=3, seed2=5))
        yield Spec("multinomial", "MULTINOMIAL", [self.given((2, 5), "f32"), fed(6)], [("i64", {})], options("Random", seed=3, seed2=5))
        yield Spec("rfft2d", "RFFT2D", [self.given((2, 4, 8), "f32"), fed([4, 8])], [("c64", {})])
        corner = self.r.uniform(0, 0.7, (12, 2))
        boxes = ("in", np.concatenate([corner, corner + self.r.uniform(0.1, 0.3, (12, 2))], 1), "f32", {})
        scores = ("in", self.r.permutation(12) / 12, "f32", {})
        some = [boxes, scores, fed(5), fed(0.5, "f32"), fed(0.2, "f32")]
        yield Spec("nms_v4", "NON_MAX_SUPPRESSION_V4", some, [("i32", {}), ("i32", {})], options("NonMaxSuppressionV4"))
        yield Spec("nms_v5", "NON_MAX_SUPPRESSION_V5", some + [fed(0, "f32")], [("i32", {}), ("f32", {}), ("i32", {})], options("NonMaxSuppressionV5"))
        yield from self.fed_weights()

    def fed_weights(self):
        """Weights, biases and the like that are no constants, and the size of a transposed convolution."""
        fed = lambda v, kind="i32", q={}: ("in", np.asarray(v), kind, q)
        for kind in ("f32", "i8", "u8", "i16"):
            x = self.given((2, 6, 5, 4), kind)

            def filters(shape, axis, channels, bias_too, channel=False):
                w = ("in", self.real(shape, -1, 1), "f32", {}) if kind == "f32" else ("in",) + self.weights(shape, kind, axis, channel)[1:]
                b = ("const", self.real((channels,)), "f32", {}) if kind == "f32" else self.bias(channels, kind, np.asarray(w[3]["scale"]) * x[3]["scale"])
                return [w, ("in",) + b[1:] if bias_too else b]
            out = [(kind, "auto" if kind in QUANT else {})]
            for both in (False, True):
                for channel in (False, True):
                    if channel and kind in ("f32", "u8"):
                        continue
                    name = f"{kind}_{both}_{channel}"
                    o = lambda which, **more: options(which, padding=P.SAME, strideH=1, strideW=1, dilationHFactor=1, dilationWFactor=1, fusedActivationFunction=FUSED["relu"], **more)
                    yield Spec("conv_" + name, "CONV_2D", [x] + filters((3, 3, 2, 4), 0, 3, both, channel), out[:], o("Conv2D"), {"f32": 2, "i8": 3, "u8": 1, "i16": 4}[kind])
                    yield Spec("depthwise_" + name, "DEPTHWISE_CONV_2D", [x] + filters((1, 3, 2, 4), 3, 4, both, channel), out[:], o("DepthwiseConv2D", depthMultiplier=1), {"f32": 2, "i8": 3, "u8": 1, "i16": 5}[kind])
                    yield Spec("fully_connected_" + name, "FULLY_CONNECTED", [self.given((3, 4), kind, q=x[3])] + filters((5, 4), 0, 5, both, channel), out[:],
                               options("FullyConnected", fusedActivationFunction=FUSED["none"]), {"f32": 2, "i8": 12 if channel else 4, "u8": 2, "i16": 12 if channel else 7}[kind])
                    w, b = filters((3, 3, 3, 4), 0, 3, both, channel)
                    t = options("TransposeConv", padding=P.SAME, strideH=2, strideW=2)
                    one = self.given((1, 4, 5, 4), kind, q=x[3])
                    yield Spec("transpose_conv_" + name, "TRANSPOSE_CONV", [self.ints((1, 8, 10, 3)), w, one, b], out[:], t, 3)
                    yield Spec("transpose_conv_size_" + name, "TRANSPOSE_CONV", [fed((1, 8, 10, 3)), ("const",) + w[1:], one, b], out[:], copy.deepcopy(t), 3)
                    yield Spec("transpose_conv_all_" + name, "TRANSPOSE_CONV", [fed((1, 7, 9, 3)), w, one, b], out[:], copy.deepcopy(t), 3)
        hybrid = fed(self.r.integers(-127, 128, (5, 4)), "i8", dict(scale=0.02, zero=0))
        yield Spec("fully_connected_hybrid", "FULLY_CONNECTED", [self.given((3, 4), "f32"), hybrid, ("const", self.real((5,)), "f32", {})], [("f32", {})], options("FullyConnected"), 5)
        yield Spec("conv_3d", "CONV_3D", [self.given((1, 4, 5, 4, 2), "f32"), fed(self.real((2, 3, 2, 2, 5)), "f32"), fed(self.real((5,)), "f32")], [("f32", {})],
                   options("Conv3D", padding=P.SAME, strideD=1, strideH=1, strideW=1, dilationDFactor=1, dilationHFactor=1, dilationWFactor=1))
        o = options("Conv3D", padding=P.SAME, strideD=2, strideH=2, strideW=2, dilationDFactor=1, dilationHFactor=1, dilationWFactor=1)
        yield Spec("conv_3d_transpose", "CONV_3D_TRANSPOSE", [fed((1, 8, 10, 8, 3)), fed(self.real((2, 3, 2, 3, 2)), "f32"), self.given((1, 4, 5, 4, 2), "f32"), fed(self.real((3,)), "f32")], [("f32", {})], o)
        for kind in ("f32", "i8", "u8"):
            yield Spec(f"prelu_{kind}", "PRELU", [self.given((2, 4, 4, 3), kind), ("in", self.values((1, 1, 3), kind), kind, self.q(kind))], [(kind, "auto" if kind != "f32" else {})])
        for kind in ("f32", "i8"):
            table = fed(self.values((5, 3), kind), kind, self.q(kind))
            yield Spec(f"embedding_{kind}", "EMBEDDING_LOOKUP", [fed([4, 0, 2]), table], [("f32", {})], None, 3)
        svdf = [self.given((2, 6), "f32"), fed(self.real((8, 6)), "f32"), fed(self.real((8, 5)), "f32"), fed(self.real((4,)), "f32"), ("var", (2, 40), "f32", {})]
        yield Spec("svdf", "SVDF", svdf, [("f32", {})], options("SVDF", rank=2))
        rnn = [self.given((2, 3), "f32"), fed(self.real((5, 3)), "f32"), fed(self.real((5, 5)), "f32"), fed(self.real((5,)), "f32"), ("var", (2, 5), "f32", {})]
        yield Spec("rnn", "RNN", rnn, [("f32", {})], options("RNN", fusedActivationFunction=A.TANH))

    # ---- with state

    def lstm(self, name, flags, n=2, t=5, ci=6, u=8, p=5, op="UNIDIRECTIONAL_SEQUENCE_LSTM"):
        cifg, peephole, norm, project, bias, major, clip = flags
        # with peepholes the reference kernel takes the number of outputs for that of cells
        p = u if peephole else p
        out = p if project else u
        w8 = lambda shape: ("const", self.r.integers(-127, 128, shape), "i8", dict(scale=float(self.r.uniform(0.003, 0.008)), zero=0))
        gates = lambda make: [None if cifg and g == 0 else make() for g in range(4)]
        xq, oq = dict(scale=0.02, zero=5), dict(scale=0.006, zero=-9)
        hq = dict(scale=0.005, zero=3) if project else oq
        b = gates(lambda: ("const", self.r.integers(-9000, 9000, (u,)), "i32", dict(scale=1e-4, zero=0)))
        peep = [("const", self.r.integers(-32767, 32768, (u,)), "i16", dict(scale=3e-5, zero=0)) if peephole and not (cifg and g == 0) else None for g in range(3)]
        lnorm = [("const", self.r.integers(6000, 32768, (u,)), "i16", dict(scale=4e-5, zero=0)) if norm and not (cifg and g == 0) else None for g in range(4)]
        projection = [w8((p, u)) if project else None, ("const", self.r.integers(-900, 900, (p,)), "i32", dict(scale=1e-4, zero=0)) if project and bias else None]
        single = op == "LSTM"
        x = ("in", self.values((n, ci) if single else (t, n, ci) if major else (n, t, ci), "i8"), "i8", xq)
        state = [("var", (n, out), "i8", oq), ("var", (n, u), "i16", dict(scale=2.0 ** -11, zero=0))]
        ins = [x] + gates(lambda: w8((u, ci))) + gates(lambda: w8((u, out))) + peep + b + projection + state + lnorm
        between = [("i16", dict(scale=float(self.r.uniform(0.0006, 0.0012)), zero=0)) for _ in range(4)] + [("i8", hq)]
        if single:
            o = options("LSTM", fusedActivationFunction=A.TANH, cellClip=clip, projClip=clip / 4, kernelType=S.LSTMKernelType.FULL)
        else:
            o = options("UnidirectionalSequenceLSTM", fusedActivationFunction=A.TANH, timeMajor=major, cellClip=clip, projClip=clip / 4)
        return Spec(name, op, ins, [("i8", oq)], o, 4 if single else 3, intermediates=between)

    def family_recurrent(self):
        for n in range(32):
            flags = [bool(n >> k & 1) for k in range(5)]
            yield self.lstm(f"lstm_i8_{n}", flags + [bool(n % 3), 3.0 if n % 4 == 1 else 0.0])
            if n % 4 == 0:
                yield self.lstm(f"lstm_step_i8_{n}", flags + [True, 2.0 if n % 8 else 0.0], op="LSTM")
        for n in range(4):
            weights = lambda shape: ("const", self.real(shape, -0.7, 0.7), "f32", {}) if n % 2 else ("const", self.r.integers(-127, 128, shape), "i8", dict(scale=0.007, zero=0))
            one = lambda: [weights((5, 3)), weights((5, 5)), ("const", self.real((5,)), "f32", {}), ("var", (2, 5), "f32", {})]
            yield Spec(f"bidirectional_rnn_{n}", "BIDIRECTIONAL_SEQUENCE_RNN", [self.given((4, 2, 3) if n > 1 else (2, 4, 3), "f32")] + one() + one() + [None] * 3,
                       [("f32", {})] * (1 if n % 2 else 2), options("BidirectionalSequenceRNN", timeMajor=n > 1, mergeOutputs=bool(n % 2), fusedActivationFunction=A.TANH),
                       1 if n % 2 else 2)
        for n in range(4):  # a list for each direction: input and recurrent weights, peepholes, biases, projection
            major, merge, project = n > 1, bool(n % 2), n == 2
            w = lambda shape: ("const", self.r.integers(-127, 128, shape), "i8", dict(scale=0.007, zero=0)) if n < 3 else ("const", self.real(shape, -0.7, 0.7), "f32", {})
            out = 3 if project else 5
            way = lambda: [w((5, 3)) for _ in range(4)] + [w((5, out)) for _ in range(4)] + [None] * 3 + [("const", self.real((5,)), "f32", {}) for _ in range(4)] + \
                ([w((3, 5))] if project else [None]) + [None]
            state = [("var", (2, k), "f32", {}) for k in (out, 5, out, 5)]
            yield Spec(f"bidirectional_lstm_{n}", "BIDIRECTIONAL_SEQUENCE_LSTM", [self.given((4, 2, 3) if major else (2, 4, 3), "f32")] + way() + way() + state + [None] * 9,
                       [("f32", {})] * (1 if merge else 2), options("BidirectionalSequenceLSTM", timeMajor=major, mergeOutputs=merge, fusedActivationFunction=A.TANH), 1 if n == 3 else 3)
        for n, rank in enumerate((1, 2, 4)):
            inputs = [self.given((2, 6), "i8"), ("const", self.r.integers(-127, 128, (8, 6)), "i8", dict(scale=0.01, zero=0)),
                      ("const", self.r.integers(-32767, 32768, (8, 5)), "i16", dict(scale=1e-4, zero=0)),
                      ("const", self.r.integers(-900, 900, (8 // rank,)), "i32", dict(scale=1e-7, zero=0)), ("var", (2, 40), "i16", dict(scale=5e-4, zero=0))]
            yield Spec(f"svdf_i8_{n}", "SVDF", inputs, [("i8", "auto")], options("SVDF", rank=rank, fusedActivationFunction=A.RELU), 3)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--out", required=True)
    p.add_argument("--per-file", type=int, default=40)
    p.add_argument("--every", type=int, default=1, help="of the cases of a family, each so-many-th")
    p.add_argument("--only", help="a case with this name alone")
    p.add_argument("families", nargs="*")
    a = p.parse_args()
    os.makedirs(a.out, exist_ok=True)
    kept, left_out, seen = {}, {}, {}
    for family, spec in Grid().cases(a.families):
        seen[family] = seen.get(family, 0) + 1
        if (a.only and spec.name != a.only) or (seen[family] - 1) % a.every:
            continue
        spec, results, why = tried(spec)
        if why:
            left_out.setdefault(why, []).append(spec.name)
        else:
            kept.setdefault(family, []).append((spec, results))
    for family, list_ in kept.items():
        for k in range(0, len(list_), a.per_file):
            f, want = T.File(), {}
            for spec, results in list_[k:k + a.per_file]:
                want.update(zip(spec.add(f), results))
            path = os.path.join(a.out, f"grid_{family}_{k // a.per_file}")
            with open(path + ".tflite", "wb") as out:
                out.write(f.bytes())
            np.savez_compressed(path + ".npz", **f.feeds, **{"want/" + n: v for n, v in want.items()})
    for why, names in sorted(left_out.items(), key=lambda i: -len(i[1])):
        print(f"left out ({len(names)}): {why}: {' '.join(names[:8])}{' ...' if len(names) > 8 else ''}")
    print({k: len(v) for k, v in kept.items()}, sum(len(v) for v in kept.values()), "cases of", sum(seen.values()))


if __name__ == "__main__":
    main()
