"""compare_litert.py [--package build/python] [--feeds 4] [--range LOW:HIGH] [--size NAME=SHAPE] [--tol 1e-5] [--seconds 0] [--timeout 600] FILE|FOLDER...

Runs .tflite files of others, of which nobody has recorded what they give, with lathe.lite.Interpreter and with LiteRT, and prints a line for
each:

    error   of our results from LiteRT's reference kernels: floats as a share of the largest magnitude, integers as steps and how many;
    their   the same of LiteRT's default kernels, which says what the reference is worth to the last bits;
    compile seconds of the processor that AllocateTensors took, and megabytes that the process grew by at most;
    with --seconds the fastest run in microseconds, ours and of LiteRT's default kernels (XNNPACK): one thread, in turns, by the
    processor's clock.

Feeds are random: floats in the range (0 to 1 for the first half of the feeds, normal numbers for the others), integers over their whole type.
Sizes of -1 are 1 unless --size names the input. Where LiteRT has no kernel for a custom operator the file is compared with whatever of both
runs. Each file has a process of its own, so that one that crashes or does not end is a line as well. Exit status 1 when a result is
further off than --tol and than twice what LiteRT's own kernels are from each other, or when a file that LiteRT runs does not run here."""
import argparse
import json
import os
import resource
import subprocess
import sys
import time

import numpy as np


def feed(details, rng, k, a):
    out = []
    for d in details:
        kind = np.dtype(d["dtype"])
        if kind.kind == "f":
            low, high = (float(v) for v in a.range.split(":"))
            v = rng.uniform(low, high, d["shape"]) if k < (a.feeds + 1) // 2 else rng.normal(0, 1, d["shape"])
        elif kind.kind == "b":
            v = rng.integers(0, 2, d["shape"])
        elif kind.kind in "iu":  # wide ones are places and counts
            info = np.iinfo(kind)
            v = rng.integers(info.min, info.max + 1, d["shape"]) if info.bits <= 16 else rng.integers(0, 10, d["shape"])
        else:
            raise ValueError(f"no feeds of type {kind}")
        out.append(np.asarray(v, kind))
    return out


class Runner:
    """An interpreter, ours or theirs, whose inputs have the sizes asked for."""

    def __init__(self, interpreter, sizes):
        self.i = interpreter
        for d in self.i.get_input_details():
            shape = sizes.get(d["name"].split(":")[0], [max(int(s), 1) for s in d["shape"]])
            if list(d["shape"]) != shape:
                self.i.resize_tensor_input(d["index"], shape)
        self.i.allocate_tensors()
        self.inputs, self.outputs = self.i.get_input_details(), self.i.get_output_details()

    def run(self, values):
        self.i.reset_all_variables()
        for d, v in zip(self.inputs, values):
            self.i.set_tensor(d["index"], v)
        self.i.invoke()
        return [np.array(self.i.get_tensor(d["index"])) for d in self.outputs]

    def fastest(self, seconds):
        """The fastest of several runs, with so many in one measurement that the clock is fine enough."""
        count, best = 1, None
        end = time.perf_counter() + seconds
        while time.perf_counter() < end or best is None:
            start = time.process_time()
            for _ in range(count):
                self.i.invoke()
            took = time.process_time() - start
            if took < 0.01:
                count *= 4
                continue
            best = min(took / count, best or 1e9)
        return best


def distance(got, want):
    """A share for floats, (steps, how many) for integers, or text."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{got.dtype}{list(got.shape)} for {want.dtype}{list(want.shape)}"
    if not want.size:
        return 0.0
    if want.dtype.kind in "fc":
        finite = np.isfinite(want)
        if not np.array_equal(finite, np.isfinite(got)) or not np.array_equal(got[~finite], want[~finite], equal_nan=True):
            return "other places are infinite or NaN"
        got, want = got[finite].astype(complex), want[finite].astype(complex)
        return float(np.abs(got - want).max(initial=0) / max(np.abs(want).max(initial=0), 1e-30))
    away = np.abs(got.astype(np.int64) - want.astype(np.int64))
    return int(away.max()), int(np.count_nonzero(away))


def worst(all_got, all_want):
    share, steps, count = 0.0, 0, 0
    for got, want in zip(all_got, all_want):
        for g, w in zip(got, want):
            d = distance(g, w)
            if isinstance(d, str):
                return {"text": d}
            if isinstance(d, tuple):
                steps, count = max(steps, d[0]), count + d[1]
            else:
                share = max(share, d)
    return {"share": share, "steps": steps, "count": count}


def attempt(f):
    try:
        return f(), ""
    except Exception as e:  # whatever a library says of a file
        return None, " ".join(str(e).split())[:160]


def one(path, a):
    sys.path.insert(0, a.package)
    from lathe import lite
    sizes = {name: [int(v) for v in shape.split("x")] for name, shape in (s.rsplit("=", 1) for s in a.size)}
    result = {}
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    ours, result["problem"] = attempt(lambda: Runner(lite.Interpreter(model_path=path, num_threads=1), sizes))
    result["compile"] = time.process_time() - start
    result["grown"] = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    def litert(kind):
        return attempt(lambda: Runner(Interpreter(model_path=path, experimental_op_resolver_type=kind, num_threads=1), sizes))

    reference, why = litert(OpResolverType.BUILTIN_REF)
    default, _ = litert(OpResolverType.AUTO)
    result["theirs"] = bool(reference or default)
    result["why"] = "" if reference else why
    if not ours:
        return result
    rng = np.random.default_rng(1)
    feeds = [feed(ours.inputs, rng, k, a) for k in range(a.feeds)]
    got = [ours.run(f) for f in feeds]
    want, other = ([r.run(f) for f in feeds] if r else None for r in (reference, default))
    if want or other:
        result["error"] = worst(got, want or other)
    if want and other:
        result["their"] = worst(other, want)
    result["constant"] = len(got) > 1 and all(np.array_equal(x, y) for x, y in zip(got[0], got[-1]))
    if a.seconds and default:
        for r in (ours, default):
            r.run(feeds[0])
        turns = [[r.fastest(a.seconds / 10) for r in (ours, default)] for _ in range(5)]
        result["time"] = [1e6 * min(t) for t in zip(*turns)]
    return result


def text(d):
    if not d:
        return "-"
    if "text" in d:
        return d["text"]
    return f"{d['share']:.2g}" + (f" {d['steps']} step(s) at {d['count']}" if d["count"] else "")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--package", default=os.path.join("build", "python"), help="folder of the Python package lathe")
    p.add_argument("--feeds", type=int, default=4)
    p.add_argument("--range", default="0:1")
    p.add_argument("--size", action="append", default=[])
    p.add_argument("--tol", type=float, default=1e-5)
    p.add_argument("--seconds", type=float, default=0)
    p.add_argument("--timeout", type=float, default=600)
    p.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    p.add_argument("files", nargs="+")
    a = p.parse_args()
    if a.one:
        return print("\n" + json.dumps(one(a.files[0], a)))
    files = [f for x in a.files for f in ([os.path.join(x, n) for n in sorted(os.listdir(x)) if n.endswith(".tflite")] if os.path.isdir(x) else [x])]
    bad, ran, closer = [], 0, 0
    for path in files:
        name = os.path.splitext(os.path.basename(path))[0]
        command = [sys.executable, os.path.abspath(__file__), "--one"] + sys.argv[1:len(sys.argv) - len(a.files)] + ["--", path]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=a.timeout)
        except subprocess.TimeoutExpired:
            bad.append(name)
            print(f"{name}: took more than {a.timeout:.0f} s", flush=True)
            continue
        if done.returncode:
            bad.append(name)
            print(f"{name}: status {done.returncode}: {done.stderr.strip()[-300:]}", flush=True)
            continue
        r = json.loads(done.stdout.strip().splitlines()[-1])
        if r["problem"]:
            bad += [name] if r["theirs"] else []
            print(f"{name}: {r['problem']}" + ("" if r["theirs"] else f" (nor does LiteRT: {r['why']})"), flush=True)
            continue
        ran += 1
        error, their = r.get("error", {}), r.get("their", {})
        # where sums in another order are off by as much themselves, the distance of two of them may be twice that; integers are to be equal
        allowed = max(a.tol, 2 * their.get("share", 0))
        if "text" in error or error.get("steps") or error.get("share", 0) > allowed:
            bad.append(name)
        line = f"{name}: error {text(error)}, their {text(their)}, compile {r['compile']:.1f} s {r['grown']:.0f} MB"
        if "time" in r:
            closer += r["time"][0] <= r["time"][1]
            line += f", {r['time'][0]:.4g} us, theirs {r['time'][1]:.4g} us, ratio {r['time'][1] / r['time'][0]:.2f}"
        line += f" ({r['why']})" if r["why"] else ""
        print(line + (" (all results alike)" if r["constant"] else "") + (" <<<" if bad and bad[-1] == name else ""), flush=True)
    print(f"{ran} of {len(files)} ran, {len(bad)} need a look" + (f", {closer} at least as fast" if a.seconds else ""))
    sys.exit(bool(bad))


main()
