"""converted_zoo.py --lathe LATHE [--package build/python] [--samples DIR] FILE.tflite...

Files that convert_samples.py made of real models, beside LiteRT's reference kernels. For each file (FILE.npz has its inputs):

    kind     float, hybrid (float inputs, int8 weights), integer (only integers between QUANTIZE and DEQUANTIZE), mixed
    whole    distance of an object's results from the reference kernels', with `tflite` and with `fast` arithmetic; "default" and "XNNPACK" are
             those of LiteRT's other kernels; "shaken" is that of the reference kernels from themselves when every float of the inputs moves to
             a next one (the largest of four draws): what a flipped rounding comes to
    single   the same, operator by operator: every operator reads what the reference kernels gave for its inputs, so that nothing adds up
    flips    of hybrid files: how many numbers of float inputs became another integer than in the reference kernels' run of the whole file, by how
             much at most, and the first operator that they are in, with how far its input was off. Such a number lies between two integers
    again    the file read and written again, by the reference kernels

Floats differ by shares of the largest magnitude, integers by steps. With --samples the models are written by us as well (`--emit tflite`, in each
way to quantize) and these files take the place of the converter's: FILEs are names of models. Needs TensorFlow and LiteRT. Exit status 1 where
integers differ with `tflite`, an operator of `fast` by more than a step, or a float by more than 1e-5 and twice what LiteRT's own kernels differ by."""
import argparse
import copy
import json
import os
import subprocess
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import flatbuffers
from ai_edge_litert import schema_py_generated as S
from ai_edge_litert.interpreter import Interpreter, OpResolverType

REFERENCE, DEFAULT, XNNPACK = OpResolverType.BUILTIN_REF, OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES, OpResolverType.AUTO
OPERATOR = {v: k for k, v in vars(S.BuiltinOperator).items() if not k.startswith("_")}
SIZES = (S.TensorType.INT32, S.TensorType.INT64, S.TensorType.BOOL)  # values like these may be sizes, which must stay known


def parse(content):
    return S.ModelT.InitFromObj(S.Model.GetRootAs(content, 0))


def interpreter(content, kind, feeds=None, keep=False):
    i = Interpreter(model_content=content, experimental_op_resolver_type=kind, experimental_preserve_all_tensors=keep, num_threads=2)
    for d in i.get_input_details() if feeds else []:
        if list(d["shape"]) != list(feeds[d["name"]].shape):
            i.resize_tensor_input(d["index"], feeds[d["name"]].shape)
    i.allocate_tensors()
    return i


def results(content, feeds, kind):
    """What LiteRT gives for inputs by the names of tensors."""
    i = interpreter(content, kind, feeds)
    for d in i.get_input_details():
        i.set_tensor(d["index"], feeds[d["name"]])
    i.invoke()
    return {d["name"]: np.array(i.get_tensor(d["index"])) for d in i.get_output_details()}


def distance(got, want):
    """(largest share of floats, largest number of steps, how many integers differ, how many there are)."""
    share = steps = count = size = 0
    for name, w in want.items():
        g = got[name]
        if g.shape != w.shape or g.dtype != w.dtype:
            raise ValueError(f"{name}: {g.dtype}{list(g.shape)} is not {w.dtype}{list(w.shape)}")
        if w.dtype.kind == "f":
            share = max(share, float(np.abs(g - w).max(initial=0) / max(np.abs(w).max(initial=0), 1e-30)))
        else:
            away = np.abs(g.astype(np.int64) - w.astype(np.int64))
            steps, count, size = max(steps, int(away.max(initial=0))), count + np.count_nonzero(away), size + away.size
    return share, steps, count, size


def text(d):
    share, steps, count, size = d
    parts = ([f"{share:.1e}"] if share else []) + ([f"{steps} step(s) at {count} of {size}"] if steps else [])
    return ", ".join(parts) or "same"


def kind_of(model):
    integers = lambda i: i >= 0 and graph.tensors[i].type in (S.TensorType.INT8, S.TensorType.UINT8, S.TensorType.INT16)
    floats = whole = hybrid = 0
    for graph, op in ((g, op) for g in model.subgraphs for op in g.operators):
        name = OPERATOR[max(model.operatorCodes[op.opcodeIndex].builtinCode, model.operatorCodes[op.opcodeIndex].deprecatedBuiltinCode)]
        if name in ("QUANTIZE", "DEQUANTIZE"):
            continue
        into, out = [integers(i) for i in op.inputs], [integers(i) for i in op.outputs]
        whole += any(out)
        floats += any(graph.tensors[i].type == S.TensorType.FLOAT32 for i in op.outputs)
        hybrid += any(into) and not any(out)
    return "hybrid" if hybrid and not whole else "integer" if whole and not floats else "mixed" if whole else "float"


def apart(content, values):
    """The file with every operator of its first subgraph on its own: (content, feeds, expected), or nothing where there is none to take."""
    model = parse(content)
    graph = model.subgraphs[0]
    known = {i for i, t in enumerate(graph.tensors) if model.buffers[t.buffer].data is not None and len(model.buffers[t.buffer].data)}
    state = (S.TensorType.RESOURCE, S.TensorType.VARIANT)
    feeds, expected, made, operators, odd = {}, {}, {}, [], set()

    def fed(i):
        if i not in made:
            t = copy.copy(graph.tensors[i])
            t.name, t.buffer, t.shape, t.shapeSignature = f"in{i}", 0, list(values[i].shape), None
            feeds[t.name] = values[i]
            made[i] = len(graph.tensors)
            graph.tensors.append(t)
        return made[i]

    given = set(graph.inputs)
    for op in graph.operators:
        inputs, outputs = [i for i in op.inputs if i >= 0], list(op.outputs)
        if all(i in known for i in inputs):  # constants made at run time: weights in float16
            known.update(outputs)
            operators.append(op)
            continue
        unread = lambda i: graph.tensors[i].type not in SIZES or i in given
        if any(graph.tensors[i].isVariable or graph.tensors[i].type in state or i in odd or (i not in known and unread(i) and i not in values)
               for i in inputs) or any(o not in values for o in outputs):
            odd.update(outputs)
            continue
        op.inputs = [fed(i) if i >= 0 and i not in known and unread(i) else i for i in op.inputs]
        operators.append(op)
        for o in outputs:
            if graph.tensors[o].type not in state:
                graph.tensors[o].name, graph.tensors[o].shapeSignature = f"out{o}", None
                expected[f"out{o}"] = values[o]
    graph.operators = operators
    graph.inputs = list(made.values())
    graph.outputs = [int(n[3:]) for n in expected]
    model.signatureDefs = []
    if not expected or not made:
        return None
    b = flatbuffers.Builder(1 << 20)
    b.Finish(model.Pack(b), b"TFL3")
    names = {f"out{o}": OPERATOR[max(model.operatorCodes[op.opcodeIndex].builtinCode, model.operatorCodes[op.opcodeIndex].deprecatedBuiltinCode)]
             for op in operators for o in op.outputs}
    return bytes(b.Output()), feeds, expected, names


def all_values(content, feeds):
    """Every tensor of the first subgraph that has a value after a run of the reference kernels."""
    i = interpreter(content, REFERENCE, feeds, keep=True)
    for d in i.get_input_details():
        i.set_tensor(d["index"], feeds[d["name"]])
    i.invoke()
    values = {}
    for d in i.get_tensor_details():
        try:
            values[d["index"]] = np.array(i.get_tensor(d["index"]))
        except ValueError:  # state, and what was never made
            pass
    return values


def watched(content, values):
    """The file with every tensor of its first subgraph that operators make as a result; their numbers by the results' names."""
    model = parse(content)
    graph, names = model.subgraphs[0], {}
    for op in graph.operators:
        for o in op.outputs:
            if o in values and graph.tensors[o].type == S.TensorType.FLOAT32:
                names[f"watched{o}"] = o
    for name, o in names.items():
        graph.tensors[o].name = name
    graph.outputs, model.signatureDefs = list(names.values()), []
    b = flatbuffers.Builder(1 << 20)
    b.Finish(model.Pack(b), b"TFL3")
    return bytes(b.Output()), names


def as_integers(x, axes, zero_point):
    """What hybrid operators make of a float input, each part over the axes for itself."""
    f = np.float32
    low, high = x.min(axes, keepdims=True), x.max(axes, keepdims=True)
    if not zero_point:
        most = np.maximum(np.abs(low), np.abs(high))
        inverse = np.where(most == 0, 0, f(127) / np.where(most == 0, 1, most))
        away, zero = np.abs(x * inverse), 0
    else:
        low, high = np.minimum(low, 0).astype(f), np.maximum(high, 0).astype(f)
        scale = np.where(low == high, 1, (high - low) / f(255)).astype(f)
        zero = np.round(np.clip(-128 - low / scale, -128, 127))
        inverse = f(1) / scale
        away = np.abs(x * inverse)
    return np.sign(x) * np.floor(away + f(0.5)) + zero


def flips(content, expected, got):
    """How numbers that hybrid operators read round in two runs, both by tensor: text about all, and how many differ."""
    model = parse(content)
    graph, count, total, most, first = model.subgraphs[0], 0, 0, 0, None
    for op in graph.operators:
        code = model.operatorCodes[op.opcodeIndex]
        name = OPERATOR[max(code.builtinCode, code.deprecatedBuiltinCode)]
        where = {"CONV_2D": (0, 1), "DEPTHWISE_CONV_2D": (0, 1), "FULLY_CONNECTED": (0, 1), "TRANSPOSE_CONV": (2, 1)}.get(name)
        if not where or op.inputs[where[0]] not in got or graph.tensors[op.inputs[where[1]]].type != S.TensorType.INT8:
            continue
        i, weights = op.inputs[where[0]], graph.tensors[op.inputs[where[1]]]
        many = len(weights.quantization.scale) > 1
        axes = (-1,) if name == "FULLY_CONNECTED" else tuple(range(1, expected[i].ndim))
        zero_point = name == "TRANSPOSE_CONV" or (op.builtinOptions.asymmetricQuantizeInputs if name == "FULLY_CONNECTED" else many)
        a, b = (as_integers(v[i], axes, zero_point) for v in (expected, got))
        if a.shape != b.shape:
            continue
        away = np.abs(a - b)
        total += a.size
        count += np.count_nonzero(away)
        most = max(most, int(away.max(initial=0)))
        if away.any() and not first:
            first = f"{name} that makes {op.outputs[0]}, {np.count_nonzero(away)} of {a.size}, whose input was off by {distance({0: got[i]}, {0: expected[i]})[0]:.1e}"
    return f"{count} of {total} by {most}" + (f", first in {first}" if first else ""), count


def shaken(feeds, seed):
    r, out = np.random.default_rng(seed), {}
    for k, v in feeds.items():
        if v.dtype.kind == "f":
            v = np.nextafter(v, np.where(r.random(v.shape) < 0.5, np.inf, -np.inf).astype(v.dtype))
        out[k] = v
    return out


class Lathe:
    def __init__(self, a, folder):
        self.a, self.folder, self.count = a, folder, 0

    def command(self, *words):
        done = subprocess.run([self.a.lathe, *words], capture_output=True, text=True, timeout=3000)
        if done.returncode:
            raise RuntimeError(" ".join(done.stderr.split())[-300:])
        return done.stderr

    def run(self, model, feeds, *options):
        """The results of `lathe run` by name."""
        into, out = os.path.join(self.folder, "in.npz"), os.path.join(self.folder, "out.npz")
        np.savez(into, **feeds)
        self.command("run", model, "--feeds", into, "--out", out, *options)
        return dict(np.load(out))

    def object(self, model, feeds, *options):
        """The same of an object: two runs, which must agree."""
        import lathe
        self.count += 1
        stem = os.path.join(self.folder, f"object{self.count}")
        self.command("compile", model, "--emit", "so", "-o", stem, *options)
        loaded = lathe.load(stem + ".so")
        first, second = ({k: np.array(v) for k, v in loaded(**feeds).items()} for _ in range(2))
        os.remove(stem + ".so")
        if any(first[k].tobytes() != second[k].tobytes() for k in first):
            raise RuntimeError("two runs of an object differ")
        return first

    def written(self, model, *options):
        stem = os.path.join(self.folder, "written")
        self.command("compile", model, "--emit", "tflite", "-o", stem, *options)
        return open(stem + ".tflite", "rb").read()


def named(content):
    """Names of the signature -> names of tensors, for inputs and for outputs."""
    model = parse(content)
    if not model.signatureDefs:
        tensors = model.subgraphs[0].tensors
        return [{tensors[i].name.decode(): tensors[i].name.decode() for i in side} for side in (model.subgraphs[0].inputs, model.subgraphs[0].outputs)]
    d = model.signatureDefs[0]
    tensors = model.subgraphs[d.subgraphIndex].tensors
    return [{t.name.decode(): tensors[t.tensorIndex].name.decode() for t in side or []} for side in (d.inputs, d.outputs)]


def bare(names):
    return {k.removesuffix(":0"): v for k, v in names.items()}


def check(lathe, path, content, feeds, float_want=None):
    """One line of the table as a dictionary; "bad" says what does not hold."""
    inputs, outputs = (bare(n) for n in named(content))
    feeds = {k.removesuffix(":0"): v for k, v in feeds.items()}
    theirs = {inputs[k]: v for k, v in feeds.items()}
    by_name = lambda got: {outputs[k.removesuffix(":0")]: v for k, v in got.items()}
    kind, bad, row = kind_of(parse(content)), [], {}
    want = results(content, theirs, REFERENCE)
    other = {"default": DEFAULT, "XNNPACK": XNNPACK}
    for name, resolver in other.items():
        try:
            row[name] = distance(results(content, theirs, resolver), want)
        except RuntimeError as e:
            row[name] = None
    row["shaken"] = max(distance(results(content, shaken(theirs, k), REFERENCE), want) for k in range(4))
    own = max(r[0] for r in (row["default"], row["XNNPACK"]) if r)
    for math in ("tflite", "fast") if kind in ("integer", "mixed") else ("tflite",):
        row[math] = d = distance(by_name(lathe.object(path, feeds, "--quantized-math", math)), want)
        if math == "tflite" and kind == "integer" and d[:2] != (0, 0):
            bad.append("whole: integers differ")
        if math == "tflite" and kind == "float" and d[0] > max(1e-5, 2 * own):
            bad.append("whole: floats differ")
        if math == "tflite" and kind in ("hybrid", "mixed") and d[0] > max(1e-5, 2 * max(row["default"][0], row["shaken"][0])):
            bad.append("whole: further off than LiteRT's own kernels")
        if math == "fast" and row["XNNPACK"] and (d[0] > max(1e-5, row["XNNPACK"][0]) or d[1] > row["XNNPACK"][1]):
            bad.append("fast: further off than XNNPACK")
    if kind == "hybrid" and not lathe.a.whole:
        values = all_values(content, theirs)
        file, (data, names) = os.path.join(lathe.folder, "watched.tflite"), watched(content, values)
        open(file, "wb").write(data)
        got = lathe.run(file, theirs)
        row["flips"], flipped = flips(content, values, {o: got[n] for n, o in names.items()})
        if flipped:  # the errors of single operators are what counts
            bad = [b for b in bad if not b.startswith("whole")]
    if kind != "float" and not lathe.a.whole:
        parts = apart(content, all_values(content, theirs))
        if parts:
            single, into, expected, names = parts
            file = os.path.join(lathe.folder, "single.tflite")
            open(file, "wb").write(single)
            row["operators"] = len(expected)
            for math in ("tflite", "fast") if kind in ("integer", "mixed") else ("tflite",):
                got = lathe.run(file, into, "--quantized-math", math)
                each = {n: distance({n: got[n]}, {n: expected[n]}) for n in expected}
                row["single " + math] = tuple(max(e[k] for e in each.values()) for k in (0, 1)) + tuple(sum(e[k] for e in each.values()) for k in (2, 3))
                worst = max(each, key=lambda n: each[n][:2])
                for n, e in each.items():
                    # means: the reference kernel adds thousands of numbers one after the other, and is itself as far from the exact mean
                    if e[1] > (math == "fast") or e[0] > (1e-4 if names[n] == "MEAN" else 1e-5):
                        bad.append(f"single {math}: {names[n]} {n} {text(e)}")
                row["worst " + math] = f"{names[worst]} {worst}"
            got = results(single, into, DEFAULT)
            row["single default"] = distance(got, expected)
    if path.endswith(".tflite"):
        again = lathe.written(path, *[f"--input={k}={'x'.join(map(str, v.shape))}" for k, v in feeds.items()] if lathe.a.sizes else [])
        names = [bare(n) for n in named(again)]
        got = results(again, {names[0][k]: v for k, v in feeds.items()}, REFERENCE)
        row["again"] = d = distance({outputs[k]: got[v] for k, v in names[1].items()}, want)
        if d[1] or d[0] > max(1e-5, 2 * max(row[k][0] for k in ("tflite", "default", "shaken")) if kind == "hybrid" else 0):
            bad.append("again: differs")
    return kind, row, bad


def line(name, kind, row, bad):
    cells = [f"{k} {v if isinstance(v, (str, int)) else '-' if v is None else text(v)}" for k, v in row.items()]
    print(f"{name} ({kind}): " + "; ".join(cells) + ("".join("\n  <<< " + b for b in bad)), flush=True)


def before_softmax(model, name, classes):
    """The name of what a softmax over so many classes reads, if a graph's output is one: the reference kernel of the 8-bit one aborts."""
    from tensorflow.core.framework import graph_pb2
    if classes < 512:
        return name
    graph = graph_pb2.GraphDef()
    with open(model, "rb") as f:
        graph.ParseFromString(f.read())
    nodes, at = {n.name: n for n in graph.node}, name
    while nodes[at].op == "Identity":
        at = nodes[at].input[0].split(":")[0]
    return nodes[at].input[0] if nodes[at].op == "Softmax" else name


def ours(lathe, samples, name):
    """The same for files that we write of a model: (kind of quantization, problem or nothing)."""
    folder = os.path.join(samples, name)
    info = json.load(open(os.path.join(folder, "model.json")))
    given, expected = (dict(np.load(os.path.join(folder, f))) for f in ("inputs.npz", "expected.npz"))
    model = os.path.join(folder, "graph.pb")
    feeds = {info["feeds"][k]["tensor"].removesuffix(":0"): v for k, v in given.items()}
    names = {k: before_softmax(model, t["tensor"].removesuffix(":0"), t["shape"][-1] if t["shape"] else 0) for k, t in info["fetches"].items()}
    truth = {names[k]: v for k, v in expected.items() if names.get(k) == info["fetches"].get(k, {}).get("tensor", "").removesuffix(":0")}
    calibrate = os.path.join(lathe.folder, "calibrate.npz")
    np.savez(calibrate, **feeds)
    shapes = [f"--input={k}={'x'.join(map(str, v.shape))}" for k, v in feeds.items()] + [f"--output={o}" for o in names.values()]
    ways = {"float": [], "dynamic": ["--quantize", "dynamic"], "float16": ["--quantize", "float16"], "int8": ["--quantize", "int8", "--calibrate", calibrate],
            "int8 io": ["--quantize", "int8", "--io", "int8", "--calibrate", calibrate], "int16x8": ["--quantize", "int16x8", "--calibrate", calibrate]}
    failed = 0
    for way, options in ways.items():
        label = f"{name} ours {way}"
        try:
            content = lathe.written(model, *shapes, *options)
            own = lathe.object(model, own_feeds(content, feeds), *shapes, *options)
            inputs, outputs = (bare(n) for n in named(content))
            theirs = {inputs[k]: v for k, v in own_feeds(content, feeds).items()}
            want = results(content, theirs, REFERENCE)
            row = {"object": distance({outputs[k.removesuffix(":0")]: v for k, v in own.items()}, want)}
            row["default"] = distance(results(content, theirs, DEFAULT), want)
            row["shaken"] = max(distance(results(content, shaken(theirs, k), REFERENCE), want) for k in range(4))
            plain = {k: v for k, v in truth.items() if want[outputs[k]].dtype == v.dtype and v.dtype.kind == "f"}
            if plain:
                row["from TensorFlow's"] = distance({k: want[outputs[k]] for k in plain}, plain)
            kind, bad = kind_of(parse(content)), []
            d, limit = row["object"], max(1e-5, 2 * max(row["default"][0], row["shaken"][0]))
            if d[1] if kind == "integer" else d[0] > limit:
                bad.append("object and file differ")
            failed += bool(bad)
            line(label, kind, row, bad)
        except Exception as e:
            failed += 1
            print(f"{label}: <<< {type(e).__name__}: {' '.join(str(e).split())[:300]}", flush=True)
    return failed


def own_feeds(content, feeds):
    """The feeds in the types of the file's inputs."""
    i, out = interpreter(content, REFERENCE), {}
    inputs = bare(named(content)[0])
    details = {d["name"]: d for d in i.get_input_details()}
    for k, v in feeds.items():
        d = details[inputs[k]]
        scale, zero = d["quantization"]
        out[k] = np.clip(np.round(v / scale) + zero, -128, 127).astype(d["dtype"]) if scale and v.dtype.kind == "f" and d["dtype"] != np.float32 else v
    return out


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--lathe", required=True)
    p.add_argument("--package", default=os.path.join("build", "python"), help="folder of the Python package lathe")
    p.add_argument("--samples", help="write the models of this folder instead")
    p.add_argument("--whole", action="store_true", help="not operator by operator")
    p.add_argument("--sizes", action="store_true", help="write again for the sizes of the feeds")
    p.add_argument("files", nargs="+")
    a = p.parse_args()
    sys.path.insert(0, a.package)
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        lathe = Lathe(a, folder)
        for path in a.files:
            if a.samples:
                failed += ours(lathe, a.samples, path)
                continue
            name = os.path.splitext(os.path.basename(path))[0]
            data = np.load(os.path.splitext(path)[0] + ".npz")
            try:
                kind, row, bad = check(lathe, path, open(path, "rb").read(), {k: data[k] for k in data.files if not k.startswith("want/")})
                line(name, kind, row, bad)
                failed += bool(bad)
            except Exception as e:
                failed += 1
                print(f"{name}: <<< {type(e).__name__}: {' '.join(str(e).split())[:300]}", flush=True)
    sys.exit(failed != 0)


main()
