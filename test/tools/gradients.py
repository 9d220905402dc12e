"""gradients.py --tool add-gradients [--filter REGEX] [--lathe build/python] [--numeric] [--record FOLDER]: TensorFlow's gradients against ours.

For each case of gradient_cases.py the same forward graph is differentiated by tf.gradients and by the tool, and TensorFlow runs both.
Gradients that exist on one side only are a difference, except zeros against none. With --lathe, the folder of the Python package, ours
also runs in a session of Lathe. With --numeric first gradients are compared with central differences too, in double precision."""
import argparse
import os
import re
import subprocess
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow as tf

from gradient_cases import CASES

tf1 = tf.compat.v1
tf1.disable_eager_execution()


# Where a gradient of TensorFlow's, and so ours, is not the slope of what is computed, in some cases of these operations at least.
NO_SLOPE = {
    "Sign BesselI1 Maximum DivNoNan Xlogy Pow": "at a kink, a pole or where a logarithm has no value",
    "MulNoNan SquaredDifference Xdivy Xlogy Xlog1py": "of complex numbers, not conjugated",
    "Betainc Zeta Polygamma PadV2 SoftmaxCrossEntropyWithLogits StatelessParameterizedTruncatedNormal": "some inputs have none",
    "UnsortedSegmentMax UnsortedSegmentMin": "empty segments hold the least number",
    "StopGradient": "by its nature",
    "Cast": "goes through single precision",
    "Svd": "of complex vectors, whose phase is free",
    "RandomGamma StatelessRandomGammaV2 StatelessRandomGammaV3": "of the distribution, not of one draw",
}
NO_SLOPE = {op for names in NO_SLOPE for op in names.split()}


def differentiable(t):
    return t.dtype.base_dtype.is_floating or t.dtype.base_dtype.is_complex


def flatten(outs):
    if isinstance(outs, (list, tuple)):
        return [t for o in outs for t in flatten(o)]
    return [outs]


def prepare(number, op, fn, args, options, folder):
    """Writes the request; returns what is needed to compare."""
    graph = tf1.Graph()
    with graph.as_default():
        xs = []
        for k, a in enumerate(args):
            a = np.asarray(a)
            xs.append(tf.constant(a) if k in options.get("constant", []) else tf1.placeholder(a.dtype, a.shape, name="x%d" % k))
        feeds = {x: np.asarray(a) for x, a in zip(xs, args) if x.op.type == "Placeholder"}
        outs = fn(*xs)
        wanted = [x for x in xs if differentiable(x) and x.op.type == "Placeholder"]
        if options.get("handles"):
            outs, wanted = outs
        ys = [tf.identity(y) for y in flatten(outs) if differentiable(y)]
        with tf1.Session() as s:
            values = s.run(ys, feeds)
        rng = np.random.RandomState(number)
        dys = []
        for k, v in enumerate(values):
            v = np.asarray(v)
            d = rng.uniform(-1, 1, v.shape)
            if v.dtype.kind == "c":
                d = d + 1j * rng.uniform(-1, 1, v.shape)
            dys.append(tf1.placeholder(v.dtype, v.shape, name="dy%d" % k))
            feeds[dys[-1]] = d.astype(v.dtype)
        forward = graph.as_graph_def()
        base = os.path.join(folder, str(number))
        open(base + ".pb", "wb").write(forward.SerializeToString())
        again = options.get("second", True) is True
        with open(base + ".txt", "w") as out:
            for kind, list_ in (("y", ys), ("dy", dys), ("x", wanted)):
                for t in list_:
                    out.write("%s %s\n" % (kind, t.name))
            if again:
                out.write("again\n")
        return dict(op=op, base=base, forward=forward, feeds={t.name: v for t, v in feeds.items()}, ys=[y.name for y in ys],
                    dys=[d.name for d in dys], xs=[x.name for x in wanted], again=again and not options.get("numeric"), tol=options.get("tol", None),
                    v1=options.get("v1", False), lathe=options.get("lathe", True), numeric=options.get("numeric", False))


def differences(c):
    """First gradients by central differences."""
    graph = tf1.Graph()
    with graph.as_default():
        tf1.import_graph_def(c["forward"], name="")
        t = graph.get_tensor_by_name
        ys = [t(y) for y in c["ys"]]
        feeds = {t(k): v for k, v in c["feeds"].items()}
        with tf1.Session() as s:
            def loss():
                return sum(np.sum(np.real(np.conj(c["feeds"][d].astype(np.complex128)) * v)) for d, v in zip(c["dys"], s.run(ys, feeds)))
            out = []
            for name in c["xs"]:
                x = np.array(c["feeds"][name])
                feeds[t(name)] = x
                grad = np.zeros(x.shape, np.complex128)
                step = 1e-6 if x.dtype in (np.float64, np.complex128) else 1e-2
                for k in np.ndindex(*x.shape):
                    for unit in ([1, 1j] if x.dtype.kind == "c" else [1]):
                        kept = x[k]
                        x[k] = kept + step * unit
                        above = loss()
                        x[k] = kept - step * unit
                        grad[k] += unit * (above - loss()) / (2 * step)
                        x[k] = kept
                out.append(grad.astype(x.dtype) if x.dtype.kind == "c" else grad.real.astype(x.dtype))
    return out


def reference(c):
    """TensorFlow's gradients, first and second; None where there are none."""
    if c["numeric"]:
        return differences(c)
    if c["v1"]:
        tf1.disable_control_flow_v2()
    try:
        return tensorflow_gradients(c)
    finally:
        tf1.enable_control_flow_v2()


def tensorflow_gradients(c):
    graph = tf1.Graph()
    with graph.as_default():
        tf1.import_graph_def(c["forward"], name="")
        t = graph.get_tensor_by_name
        xs = [t(x) for x in c["xs"]]
        grads = tf1.gradients([t(y) for y in c["ys"]], xs, [t(d) for d in c["dys"]])
        second = []
        if c["again"]:
            real = [g for g in grads if g is not None]
            try:
                second = tf1.gradients(real, xs) if real else [None] * len(xs)
            except (LookupError, TypeError, NotImplementedError):
                c["again"] = False
        dense = [tf.convert_to_tensor(g) if g is not None else None for g in list(grads) + list(second)]
        with tf1.Session() as s:
            values = iter(s.run([g for g in dense if g is not None], {t(k): v for k, v in c["feeds"].items()}))
        return [next(values) if g is not None else None for g in dense]


def ours(c):
    lines = open(c["base"] + ".out.txt").read().split("\n")
    lines = [l for l in lines if l]
    n = len(c["xs"])
    if lines and lines[0].startswith("error"):
        raise ValueError(lines[0])
    if any(l.startswith("second error") for l in lines) and c["again"]:
        raise ValueError(lines[-1])
    lines = lines[:2 * n if c["again"] else n]
    graph = tf1.Graph()
    with graph.as_default():
        def_ = tf1.GraphDef()
        def_.ParseFromString(open(c["base"] + ".out.pb", "rb").read())
        tf1.import_graph_def(def_, name="")
        t = lambda name: graph.get_tensor_by_name(name if ":" in name else name + ":0")
        with tf1.Session() as s:
            values = iter(s.run([t(l) for l in lines if l != "none"], {t(k): v for k, v in c["feeds"].items()}))
        c["lines"] = lines
        return [next(values) if l != "none" else None for l in lines]


def differs(want, got, tol):
    if want is None or got is None:
        present = want if got is None else got
        if present is None or not np.any(present):
            return None
        return "only %s has a gradient" % ("TensorFlow" if got is None else "ours")
    want, got = np.asarray(want), np.asarray(got)
    if want.shape != got.shape:
        return "shapes %s and %s" % (want.shape, got.shape)
    tol = tol or (1e-8 if want.dtype in (np.float64, np.complex128) else 2e-5)
    if not np.allclose(want, got, rtol=tol, atol=tol, equal_nan=True):
        return "largest difference %g of %g" % (np.nanmax(np.abs(want - got)), np.nanmax(np.abs(want)))
    return None


def run_lathe(lathe, c, want):
    """Ours by a session of Lathe. Operations that Lathe lacks are named apart."""
    wanted = [(w, l) for w, l in zip(want, c["lines"]) if l != "none"]
    if not wanted:
        return None
    tensor = lambda name: name if ":" in name else name + ":0"
    with lathe.Session(open(c["base"] + ".out.pb", "rb").read()) as session:
        values = session.run([tensor(l) for _, l in wanted], c["feeds"])
    for (w, _), v in zip(wanted, values):
        d = differs(np.zeros_like(v) if w is None else w, v, max(c["tol"] or 0, 1e-5))
        if d:
            return d
    return None


def off_slope(c, got):
    """Whether the case is in double precision, and where ours then is not the slope of what the graph computes."""
    types = {c["feeds"][x].dtype if x in c["feeds"] else None for x in c["xs"]}  # variables are not fed
    if c["numeric"] or not types or not types <= {np.dtype(np.float64), np.dtype(np.complex128)}:
        return False, None
    got = [np.zeros_like(c["feeds"][x]) if g is None else g for x, g in zip(c["xs"], got)]
    return True, next((d for d in (differs(w, g, 2e-5) for w, g in zip(differences(c), got)) if d), None)


def reached(graph_def, fetches):
    """The nodes that fetches depend on."""
    inputs = {n.name: [i.lstrip("^").split(":")[0] for i in n.input] for n in graph_def.node}
    seen, work = set(), [f.split(":")[0] for f in fetches]
    while work:
        name = work.pop()
        if name not in seen:
            seen.add(name)
            work += inputs[name]
    return seen


def record(chosen, folder, tool):
    """All chosen cases beside each other in one graph, so that one run checks them. Feeds that no gradient reads are left out."""
    os.makedirs(folder, exist_ok=True)
    graph = tf1.Graph()
    feeds, request, expected = {}, {"y": [], "dy": [], "x": []}, {}
    with graph.as_default():
        for k, (c, want) in enumerate(chosen):
            tf1.import_graph_def(c["forward"], name="c%d" % k)
            for kind, names in (("y", c["ys"]), ("dy", c["dys"]), ("x", c["xs"])):
                request[kind] += ["c%d/%s" % (k, n) for n in names]
            feeds.update({"c%d/%s" % (k, n): v for n, v in c["feeds"].items()})
            base = len(request["x"]) - len(c["xs"])
            for i, (w, l) in enumerate(zip(want, c["lines"][:len(c["xs"])])):
                if l != "none":
                    expected["grad_%d" % (base + i)] = np.zeros_like(c["feeds"][c["xs"][i]]) if w is None else w
    forward = graph.as_graph_def()
    for node in forward.node:  # cases share no variables
        if node.attr["shared_name"].s if "shared_name" in node.attr else b"":
            node.attr["shared_name"].s = node.name.encode()
        if "frame_name" in node.attr:  # nor loops
            node.attr["frame_name"].s = node.name.split("/")[0].encode() + b"/" + node.attr["frame_name"].s
    open(os.path.join(folder, "forward.pb"), "wb").write(forward.SerializeToString())
    base = os.path.join(folder, "forward")
    with open(base + ".txt", "w") as out:
        for kind, names in request.items():
            for n in names:
                out.write("%s %s\n" % (kind, n))
    subprocess.run([tool, base], check=True)
    ours = tf1.GraphDef()
    ours.ParseFromString(open(base + ".out.pb", "rb").read())
    os.remove(base + ".out.pb")
    os.remove(base + ".out.txt")
    read = reached(ours, expected)
    open(os.path.join(folder, "fetches.txt"), "w").write("\n".join("--fetch " + f for f in expected) + "\n")
    np.savez_compressed(os.path.join(folder, "feeds.npz"), **{k: v for k, v in feeds.items() if k.split(":")[0] in read})
    np.savez_compressed(os.path.join(folder, "expected.npz"), **expected)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--tool", required=True)
    p.add_argument("--filter", default="")
    p.add_argument("--lathe")
    p.add_argument("-v", action="store_true")
    p.add_argument("--numeric", action="store_true")
    p.add_argument("--record", help="write the cases that agree, one an op, as one graph with TensorFlow's gradients into this folder")
    a = p.parse_args()
    bad, skipped, absent, other, good, sloped, ops, chosen = [], [], [], [], 0, 0, set(), []
    lathe = None
    if a.lathe:
        sys.path.insert(0, a.lathe)
        import lathe
    with tempfile.TemporaryDirectory() as folder:
        prepared = []
        for number, (op, fn, args, options) in enumerate(CASES):
            if a.filter and not re.search(a.filter, op):
                continue
            try:
                prepared.append((prepare(number, op, fn, args, options, folder)))
            except Exception as e:
                skipped.append("%s (case %d): the forward graph: %s" % (op, number, str(e).split("\n")[0][:150]))
        bases = [c["base"] for c in prepared]
        subprocess.run([a.tool] + bases, check=True)
        for c in prepared:
            number = os.path.basename(c["base"])
            try:
                want = reference(c)
            except Exception as e:
                skipped.append("%s (case %s): TensorFlow: %s" % (c["op"], number, str(e).split("\n")[0][:150]))
                continue
            try:
                got = ours(c)
                problems = [d for d in (differs(w, g, c["tol"]) for w, g in zip(want, got)) if d]
            except Exception as e:
                problems = [str(e)[:400]]
            if not problems and a.numeric:
                checked, slope = off_slope(c, got)
                sloped += checked and not slope
                if slope and c["op"] in NO_SLOPE:
                    other.append(c["op"])
                elif slope:
                    problems = ["differences: " + slope]
            if not problems and lathe and c["lathe"]:
                try:
                    problems = ["Lathe: " + d for d in [run_lathe(lathe, c, want)] if d]
                except Exception as e:
                    problems = ["Lathe: " + str(e).split("\n")[0][:300]]
                    if "no host kernel" in problems[0] or "no compiled form" in problems[0]:
                        absent.append("%s (case %s): %s" % (c["op"], number, problems[0]))
                        continue
            if problems:
                bad.append("%s (case %s): %s" % (c["op"], number, "; ".join(problems)))
            else:
                good += 1
                if c["op"] not in ops and not c["v1"] and c["lathe"]:
                    chosen.append((c, want))
                ops.add(c["op"])
                if a.v:
                    print("ok", c["op"], number)
    if a.record:
        record(chosen, a.record, a.tool)
    for line in skipped:
        print("SKIP", line)
    for line in absent:
        print("LACKS", line)
    for line in bad:
        print("FAIL", line)
    print("%d cases of %d ops agree, %d differ, %d skipped, %d with operations that Lathe does not run"
          % (good, len(ops), len(bad), len(skipped), len(absent)))
    if a.numeric:
        print("%d of them agree with central differences in double precision, %d are another thing than a slope: %s"
              % (sloped, len(other), ", ".join(other)))
    return 1 if bad or skipped else 0


if __name__ == "__main__":
    sys.exit(main())
