"""fuzz_integer_products.py --lathe LATHE [--seed N] [--rounds N] [--options "OPTIONS" ...] [--foreign "CC RUNNER"] [--litert] [--floats]: products and convolutions of narrow
integers (with --floats, of integers as f32, which --precision bf16 holds as well; sums are exact, now and then infinite) of random types, sizes, strides, dilations, groups and padding. What each set of OPTIONS (say "--cpu v3 --threads 2") makes of
them is compared bit for bit with the plain backend, or with LiteRT's reference kernels; exit status 1 when one differs. With --foreign "CC RUNNER" it is
code for another processor (--options "--triple aarch64-linux-gnu --cpu neoverse-n1"), linked by CC and run by RUNNER.

Needs ai-edge-litert for its schema; outside the test suite (docs/tflite.md)."""
import argparse
import os
import subprocess
import sys
import tempfile

import numpy as np

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import run_foreign
import tflite_ops
from tflite_ops import A, P, File, options

ACTS = [A.NONE, A.RELU, A.RELU6]


class Fuzz:
    def __init__(self, seed, floats):
        self.floats = floats
        self.r = np.random.default_rng(seed)
        self.told = []

    def pick(self, *values):
        return values[self.r.integers(len(values))]

    def quant(self, shape, kind):
        if kind == "f32":
            values = self.r.integers(-4, 5, shape).astype(np.float32)
            if self.r.random() < 0.3:
                values.flat[self.r.integers(values.size)] = np.inf
            return values
        low, high = tflite_ops.Q[kind]
        if self.r.random() < 0.2:  # the ends of the range alone
            return self.r.choice([low, high], shape)
        return self.r.integers(low, high + 1, shape)

    def scales(self, kind):
        if kind == "f32":
            return {}
        scale = float(np.float32(self.r.uniform(0.005, 0.06)))
        return dict(scale=scale / 200, zero=0) if kind == "i16" else dict(scale=scale, zero=int(self.r.integers(-100, 100)) + (128 if kind == "u8" else 0))

    def weights(self, f, x, kind, shape, channels, axis, depth, biased=False):
        """Filter and bias, and the result's scale, near which values neither vanish nor all saturate."""
        if kind == "f32":
            return [x, f.tensor(shape, "f32", self.r.integers(-4, 5, shape).astype(np.float32)),
                    f.tensor((channels,), "f32", self.r.integers(-9, 10, channels).astype(np.float32))], {}
        per = kind != "u8" and self.r.random() < 0.7
        ws = self.r.uniform(0.001, 0.02, channels) if per else float(self.r.uniform(0.001, 0.02))
        if per and self.r.random() < 0.2:  # factors above 1 beside small ones
            ws[0] *= 100
        wk = "u8" if kind == "u8" else "i8"
        w = f.tensor(shape, wk, self.quant(shape, wk) if kind == "u8" else np.clip(self.quant(shape, wk), -127, 127), scale=ws,
                     zero=int(self.pick(128, self.r.integers(100, 150))) if kind == "u8" else 0, axis=axis)
        q = float(f.graph.tensors[x].quantization.scale[0])
        ins = [x, w]
        if biased or self.r.random() < 0.8:
            ins.append(f.tensor((channels,), "i64" if kind == "i16" else "i32", self.r.integers(-20000, 20000, channels), scale=np.asarray(ws) * q))
        size = 100 if kind == "i16" else 1
        scale = q * float(np.mean(ws)) * 70 * 70 * size * np.sqrt(depth) / (100 * size) * self.r.uniform(0.5, 3)
        return ins, dict(scale=scale, zero=self.scales(kind)["zero"])

    def conv(self, f):
        kind, depthwise = self.pick("i8", "i8", "i8", "u8", "u8", "i16", "hybrid", "hybrid"), self.r.random() < 0.3
        if self.floats:
            kind = "f32"
        n, h, w = int(self.r.integers(1, 3)), int(self.r.integers(1, 20)), int(self.r.integers(1, 20))
        kh, kw = (1, 1) if self.r.random() < 0.4 and not depthwise else (int(self.r.integers(1, 6)), int(self.r.integers(1, 6)))
        stride, dilation = self.pick(1, 1, 2, 3), self.pick(1, 1, 1, 2)
        if stride > 1:
            dilation = 1
        pad = P.SAME if (kh - 1) * dilation >= h or (kw - 1) * dilation >= w else self.pick(P.SAME, P.VALID)
        groups = 1 if depthwise or kind in ("u8", "hybrid") or self.r.random() < 0.8 else int(self.r.integers(2, 5))
        ci = groups * int(self.pick(self.r.integers(1, 9), self.r.integers(1, 70), 64, 200 if kh * kw < 10 else 16))
        m = self.pick(1, 1, 2) if depthwise else 1
        co = ci * m if depthwise else groups * int(self.pick(self.r.integers(1, 9), self.r.integers(1, 70), 64, 33))
        def size(x, k):
            return -(-x // stride) if pad == P.SAME else (x - (k - 1) * dilation - 1) // stride + 1
        out = (n, size(h, kh), size(w, kw), co)
        shape = (1, kh, kw, co) if depthwise else (co, kh, kw, ci // groups)
        if kind == "hybrid":
            x = f.input(self.r.normal(self.pick(0, 0, 3), 2, (n, h, w, ci)), "f32")
            each = depthwise or self.r.random() < 0.5  # a scale for each channel, and a zero point for each image
            ins = [x, f.tensor(shape, "i8", self.r.integers(-127, 128, shape), scale=self.r.uniform(0.001, 0.02, co) if each else 0.01, axis=3 if depthwise else 0),
                   f.tensor((co,), "f32", self.r.normal(0, 1, co))]
            kind, scale, version = "f32", {}, (6 if depthwise else 5) if each else 2
        else:
            x = f.input(self.quant((n, h, w, ci), kind), kind, **self.scales(kind))
            ins, scale = self.weights(f, x, kind, shape, co, 3 if depthwise else 0, kh * kw * (1 if depthwise else ci // groups), biased=True)
            version = {"f32": 1, "u8": 1, "i8": 3, "i16": 5 if depthwise else 4}[kind]
        o = dict(padding=pad, strideH=stride, strideW=stride, dilationHFactor=dilation, dilationWFactor=dilation,
                 fusedActivationFunction=self.pick(*ACTS))
        o = options("DepthwiseConv2D", depthMultiplier=m, **o) if depthwise else options("Conv2D", **o)
        f.op("DEPTHWISE_CONV_2D" if depthwise else "CONV_2D", ins, [f.output(out, kind, **({**scale, "zero": 0} if kind == "i16" else scale))], o,
             version)
        self.told.append(f"{'depthwise' if depthwise else 'conv'} {kind} by {'f32' if self.floats else 'u8' if kind == 'u8' else 'i8'} {n}x{h}x{w}x{ci} by {kh}x{kw}x{co}, groups {groups}, stride {stride}, dilation {dilation}")

    def product(self, f):
        kind = "f32" if self.floats else self.pick("i8", "i8", "u8", "i16", "hybrid", "asym")
        m, k, n = (int(self.pick(self.r.integers(1, 9), self.r.integers(1, 80), self.r.integers(1, 400))) for _ in range(3))
        k = int(self.pick(k, k, 2000))
        if kind in ("hybrid", "asym"):
            ins = [f.input(self.r.normal(0, 2, (m, k)), "f32"), f.tensor((n, k), "i8", self.r.integers(-127, 128, (n, k)), scale=0.01)]
            f.op("FULLY_CONNECTED", ins, [f.output((m, n), "f32")], options("FullyConnected", asymmetricQuantizeInputs=kind == "asym"), 9 if kind == "asym" else 3)
        else:
            x = f.input(self.quant((m, k), kind), kind, **self.scales(kind))
            ins, scale = self.weights(f, x, kind, (n, k), n, 0, k)
            f.op("FULLY_CONNECTED", ins, [f.output((m, n), kind, **({**scale, "zero": 0} if kind == "i16" else scale))],
                 options("FullyConnected", fusedActivationFunction=self.pick(*ACTS)), {"f32": 1, "u8": 4, "i8": 12, "i16": 7}[kind])
        self.told.append(f"product {kind} {m}x{k}x{n}")

    def batched(self, f):
        m, k, n = (int(self.pick(self.r.integers(1, 60), self.r.integers(1, 9), self.r.integers(60, 200))) for _ in range(3))
        kind = "f32" if self.floats else self.pick("i8", "i8", "i8", "i16")
        turned = [bool(self.r.integers(2)), bool(self.r.integers(2))]
        shapes = [(2, k, m) if turned[0] else (2, m, k), (2, n, k) if turned[1] else (2, k, n)]
        scales = [{} if self.floats else self.scales(kind) for _ in range(2)]
        scale = {} if self.floats else dict(scale=scales[0]["scale"] * scales[1]["scale"] * (1e8 if kind == "i16" else 3e3) * np.sqrt(k) / (3e4 if kind == "i16" else 100),
                                            zero=0 if kind == "i16" else 3)
        ins = [f.input(self.quant(s, kind), kind, **q) for s, q in zip(shapes, scales)]
        f.op("BATCH_MATMUL", ins, [f.output((2, m, n), kind, **scale)], options("BatchMatMul", adjX=turned[0], adjY=turned[1]),
             {"f32": 1, "i8": 2, "i16": 3}[kind])
        self.told.append(f"batched product {kind} {m}x{k}x{n}, turned {turned}")

    def file(self, count):
        f = File()
        self.told = []
        for _ in range(count):
            self.pick(self.conv, self.conv, self.product, self.batched)(f)
        return f


def run(lathe, model, feeds, out, more):
    done = subprocess.run([lathe, "run", model, "--feeds", feeds, "--out", out, *more], capture_output=True, text=True, timeout=900)
    if done.returncode:
        sys.exit(f"{' '.join(more)}: {done.stderr.strip() or done.returncode}")
    return dict(np.load(out))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--lathe", required=True)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--rounds", type=int, default=10)
    p.add_argument("--count", type=int, default=12, help="operators a round")
    p.add_argument("--options", action="append", default=[])
    p.add_argument("--litert", action="store_true")
    p.add_argument("--floats", action="store_true")
    p.add_argument("--foreign", default="")
    a = p.parse_args()
    bad = saturated = total = 0
    with tempfile.TemporaryDirectory() as folder:
        model, feeds, out = (os.path.join(folder, n) for n in ("m.tflite", "feeds.npz", "out.npz"))
        for seed in range(a.seed, a.seed + a.rounds):
            fuzz = Fuzz(seed, a.floats)
            f = fuzz.file(a.count)
            content = f.bytes()
            open(model, "wb").write(content)
            np.savez(feeds, **f.feeds)
            want = tflite_ops.reference(content, f.feeds) if a.litert else run(a.lathe, model, feeds, out, ["--backend", "plain"])
            for more in a.options or [""]:
                got = (run_foreign.run(a.lathe, model, f.feeds, want.__getitem__, os.path.join(folder, "foreign"), *a.foreign.split(" ", 1), more.split()) if a.foreign
                       else run(a.lathe, model, feeds, out, more.split()))
                for i, told in enumerate(fuzz.told):
                    x, y = want[f"out{i}"], got[f"out{i}"]
                    same = x.dtype == y.dtype and x.shape == y.shape
                    if same and a.floats:
                        same = np.array_equal(x, y, equal_nan=True)
                    elif same and x.dtype == np.float32:
                        same = np.allclose(x, y, rtol=1e-6, atol=1e-6 * max(1, np.abs(x).max(initial=0)))
                    elif same:
                        same = np.array_equal(x, y)
                        ends = np.iinfo(x.dtype)
                        saturated += np.count_nonzero((x == ends.min) | (x == ends.max))
                        total += x.size
                    if not same:
                        bad += 1
                        print(f"seed {seed}, {more or 'no options'}: {told}: {np.count_nonzero(x != y) if x.shape == y.shape else y.shape} of {x.size} differ")
    print(f"{a.rounds} rounds of {a.count}: {bad} differ; {saturated / max(total, 1):.0%} of the integers at the ends of their range")
    sys.exit(bad > 0)


main()
