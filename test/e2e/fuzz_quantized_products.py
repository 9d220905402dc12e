"""fuzz_quantized_products.py --lathe LATHE [--seed N] [--rounds N] [--options "OPTIONS" ...] [--keep FOLDER]: QuantizedConv2D, QuantizedMatMul and the
UniformQuantized products and convolutions over random sizes, windows, ranges and zero points, some of them fed, weights constant or fed. What each
set of OPTIONS makes of them is compared bit for bit with TensorFlow; exit status 1 when one differs.

Needs TensorFlow; outside the test suite (docs/quantization.md)."""
import argparse
import os
import subprocess
import sys
import tempfile

import numpy as np

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow.compat.v1 as tf  # noqa: E402

raw = tf.raw_ops
LEVELS = ["--cpu host", "--cpu v2", "--cpu v3", "--cpu host:cascadelake", "--cpu host:alderlake", "--backend plain"]


class Graph:
    """One operation, what is fed to it, and what it gives."""

    def __init__(self, r):
        self.r, self.feeds, self.fetches = r, {}, []

    def pick(self, *values):
        return values[self.r.integers(len(values))]

    def coin(self, share=0.5):
        return self.r.random() < share

    def value(self, data, fed):
        if not fed:
            return tf.constant(data)
        name = f"x{len(self.feeds)}"
        self.feeds[name] = data
        return tf.placeholder(data.dtype, data.shape, name=name)

    def bytes(self, shape, kind, fed):
        carrier = np.uint8 if kind == tf.quint8 else np.int8
        info = np.iinfo(carrier)
        data = self.r.choice([info.min, info.max], shape) if self.coin(0.2) else self.r.integers(info.min, info.max, shape, endpoint=True)
        return tf.bitcast(self.value(data.astype(carrier), fed), kind)

    def range(self):
        low, high = self.pick((-1, 1), (0, 6), (-3.7, 11.3), (-128, 127), (-0.5, 0.25), (-4, 0), (2, 5) if self.coin(0.5) else (-2, 7))
        fed = self.coin(0.3)
        return self.value(np.float32(low), fed), self.value(np.float32(high), fed)

    def window(self):
        size, strides, dilations = [int(n) for n in self.r.integers(1, 4, 2)], [int(n) for n in self.r.integers(1, 3, 2)], [1, 1]
        return size, strides, dilations, self.pick("SAME", "VALID")

    def take(self, results):
        plain = {tf.qint8: tf.int8, tf.quint8: tf.uint8, tf.qint32: tf.int32}
        for t in results if isinstance(results, (list, tuple)) else [results]:
            self.fetches.append(tf.identity(tf.bitcast(t, plain[t.dtype]) if t.dtype in plain else t, name=f"y{len(self.fetches)}"))


def quantized_conv(g):
    (kh, kw), strides, _, padding = g.window()
    channels, filters = int(g.pick(1, 3, 4, 8, 20, 64)), int(g.pick(1, 3, 8, 16, 17, 40))
    image = [int(g.r.integers(1, 3)), int(g.r.integers(kh, 15)), int(g.r.integers(kw, 40)), channels]
    (low, high), (flow, fhigh) = g.range(), g.range()
    g.take(raw.QuantizedConv2D(input=g.bytes(image, tf.quint8, True), filter=g.bytes([kh, kw, channels, filters], tf.quint8, g.coin(0.2)), min_input=low,
                               max_input=high, min_filter=flow, max_filter=fhigh, strides=[1, *strides, 1], padding=padding))


def quantized_matmul(g):
    m, k, n = int(g.r.integers(1, 40)), int(g.pick(1, 3, 8, 31, 64, 300)), int(g.pick(1, 4, 16, 33, 80))
    ta, tb = g.coin(0.3), g.coin(0.3)
    (alow, ahigh), (blow, bhigh) = g.range(), g.range()
    g.take(raw.QuantizedMatMul(a=g.bytes([k, m] if ta else [m, k], tf.quint8, True), b=g.bytes([n, k] if tb else [k, n], tf.quint8, g.coin(0.2)),
                               min_a=alow, max_a=ahigh, min_b=blow, max_b=bhigh, Toutput=tf.qint32, transpose_a=ta, transpose_b=tb))


def scales(g, low, high, channels=None, zero=None):
    shape, fed = () if channels is None else (channels,), g.coin(0.2)
    zeros = np.full(shape, zero, np.int32) if zero is not None else np.asarray(g.r.integers(low, high, shape), np.int32)
    return g.value(np.asarray(g.r.uniform(0.01, 0.2, shape), np.float32), fed), g.value(zeros, fed)


ENDS = dict(lhs_quantization_min_val=-128, lhs_quantization_max_val=127)
RIGHT = dict(rhs_quantization_min_val=-128, rhs_quantization_max_val=127)
WIDE = dict(output_quantization_min_val=-2**31, output_quantization_max_val=2**31 - 1)


def uniform(g, op, hybrid, x, w, channels, axis, out_axis, more):
    each = channels if g.coin() else None
    ws, wz = scales(g, -20, 20, each, 0 if g.coin() or more.get("feature_group_count", 1) > 1 and g.coin() else None)
    right = dict(rhs=g.bytes(w, tf.qint8, g.coin(0.2)), rhs_scales=ws, rhs_zero_points=wz, rhs_quantization_axis=-1 if each is None else axis, **RIGHT)
    if hybrid:
        data = g.r.normal(g.pick(0, 0.5, 3), 2, x).astype(np.float32)
        if g.coin(0.2):
            data[0] = 0
        return g.take(getattr(raw, op + "Hybrid")(lhs=g.value(data, True), Tout=tf.float32, **right, **more))
    xs, xz = scales(g, -60, 60, zero=300 if g.coin(0.05) else None)
    out = channels if each is not None and g.coin() else None
    os_, oz = scales(g, -90, 90, out)
    return g.take(getattr(raw, op)(lhs=g.bytes(x, tf.qint8, True), lhs_scales=xs, lhs_zero_points=xz, output_scales=os_, output_zero_points=oz, Tout=tf.qint32,
                                   output_quantization_axis=-1 if out is None else out_axis, **right, **ENDS, **WIDE, **more))


def uniform_dot(g):
    m, k, n = int(g.r.integers(1, 30)), int(g.pick(1, 3, 8, 31, 64, 300)), int(g.pick(1, 4, 16, 33, 80))
    uniform(g, "UniformQuantizedDot", g.coin(0.4), [m, k], [k, n], n, 1, 1, {})


def uniform_conv(g):
    hybrid = g.coin(0.3)
    (kh, kw), strides, _, padding = g.window()
    groups = int(g.pick(1, 1, 2))
    per, filters = int(g.pick(1, 3, 8, 20)), groups * int(g.pick(1, 4, 9, 16))
    x, w = [int(g.r.integers(1, 3)), groups * per, int(g.r.integers(kh + 2, 12)), int(g.r.integers(kw + 2, 20))], [filters, per, kh, kw]
    more = dict(padding=padding, window_strides=strides, feature_group_count=groups)
    if padding == "VALID" and g.coin():
        more.update(padding="EXPLICIT", explicit_padding=[int(n) for n in g.r.integers(0, 3, 4)], rhs_dilation=[int(n) for n in g.r.integers(1, 3, 2)])
    elif g.coin(0.2):
        more["lhs_dilation"] = [int(n) for n in g.r.integers(1, 3, 2)]
    uniform(g, "UniformQuantizedConvolution", hybrid, x, w, filters, 0, 1, more)


KINDS = [quantized_conv, quantized_conv, quantized_matmul, uniform_dot, uniform_conv, uniform_conv]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lathe", default="build/bin/lathe")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--options", action="append")
    parser.add_argument("--keep", help="where models and arrays are left")
    args = parser.parse_args()
    levels, wrong = args.options or LEVELS, 0
    folder = args.keep or tempfile.mkdtemp()
    os.makedirs(folder, exist_ok=True)
    for i in range(args.seed, args.seed + args.rounds):
        g = Graph(np.random.default_rng(i))
        kind = g.pick(*KINDS)
        with tf.Graph().as_default() as graph, tf.Session() as session:
            try:
                kind(g)
                want = session.run(g.fetches, {n + ":0": v for n, v in g.feeds.items()})
            except (tf.errors.OpError, ValueError) as e:
                print(f"{i}: TensorFlow refuses: {str(e)[:120]}")
                continue
            model = os.path.join(folder, f"{i}.pb")
            with open(model, "wb") as f:
                f.write(graph.as_graph_def().SerializeToString())
        feeds, out = os.path.join(folder, f"{i}.npz"), os.path.join(folder, f"{i}_out.npz")
        np.savez(feeds, **g.feeds)
        for level in levels:
            command = [args.lathe, "run", model, *[f"--output=y{k}" for k in range(len(want))], "--feeds", feeds, "--out", out, *level.split()]
            done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
            why = done.stderr[-300:] if done.returncode else ""
            if not why:
                with np.load(out) as got:
                    bad = [k for k, w in enumerate(want) if got[f"y{k}:0"].tobytes() != w.tobytes()]
                why = f"results {bad} differ" if bad else ""
            if why:
                wrong += 1
                print(f"{i} {kind.__name__} {level}: {why}", flush=True)
    print(f"{args.rounds} graphs, {len(levels)} sets of options, {wrong} wrong")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
