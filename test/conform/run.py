"""run.py CASES... --adapter "build/bin/lathe conform" [--known FILE --mode NAME] [--fallbacks FILE] [--filter REGEX] [--op OP] [--every N] [--json FILE]

Runs conformance cases (see cases.py) through `lathe conform` and compares what comes out with TensorFlow's outputs. Every case
has to pass, but for those that FILE lists as known to fail, and these have to fail: a case that was repaired is taken off
the list. Ends with "N passed, N failed, N skipped"; cases known to fail count as passed, those for a CPU that this machine
lacks, which are only compiled, as skipped.

A line of FILE: MODES SUITE CASE: REASON. MODES is * or a comma-separated list of what --mode may be.

A kernel that would have a special form, but for types or sizes which that does not know, is plainer and slower. --fallbacks is the list of what
forms may lack, a line of FORM: WHAT each; any other one in a case is a failure.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cases as corpus  # noqa: E402


def read_known(file, mode):
    """Reasons by "SUITE CASE"."""
    known = {}
    with open(file) as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip() or line.startswith("#"):
                continue
            match = re.match(r"(\S+) (\S+ \S+): (\S.*)$", line)
            if not match:
                sys.exit(f"{file}:{number}: expected MODES SUITE CASE: REASON")
            if match[1] == "*" or mode in match[1].split(","):
                known[match[2]] = match[3]
    return known


def read_fallbacks(file):
    with open(file) as lines:
        return {line.strip() for line in lines if line.strip() and not line.startswith("#")}


def write_case(case, folder):
    os.makedirs(folder)
    meta = dict(case.meta)
    meta["steps"] = [{k: v for k, v in step.items() if k != "expected"} for step in meta["steps"]]
    with open(os.path.join(folder, "case.json"), "w") as out:
        json.dump(meta, out)
    for file in case.files():
        with open(os.path.join(folder, file), "wb") as out:
            out.write(case.read(file))


def judge(case, folder):
    """None, or why the case fails."""
    for s, i, fetch, dtype, want in case.expected():
        stem = os.path.join(folder, f"actual_{s}_{i}")
        file = next((stem + end for end in (".npy", ".strings.json") if os.path.exists(stem + end)), None)
        if not file:
            return f"missing: step {s}, {fetch}"
        with open(file, "rb") as f:
            have = corpus.decode(file, f.read())
        meta = case.meta
        why = corpus.difference(have, want, dtype, meta["rtol"].get(dtype, 0), meta["atol"].get(dtype, 0))
        if why:
            return f"mismatch: step {s}, {fetch}: {why}"
    return None


class Batch:
    """Some cases for one process after another: one that dies or hangs costs the case in progress, the rest goes to the next."""

    def __init__(self, batch, args):
        self.args = args
        self.left = {f"{i:04d}": case for i, case in enumerate(batch)}
        self.results = []  # (case, reason or None, report line)

    def run(self):
        with tempfile.TemporaryDirectory(prefix="conform") as work:
            todo = os.path.join(work, "cases")
            for folder, case in self.left.items():
                write_case(case, os.path.join(todo, folder))
            round_ = 0
            while self.left:
                round_ += 1
                self.attempt(todo, os.path.join(work, f"report{round_}"))
        return self.results

    def finish(self, folder, reason, line=None):
        self.results.append((self.left.pop(folder), reason, line or {}))

    def attempt(self, todo, report):
        open(report, "w").close()
        command = shlex.split(self.args.adapter) + ["--cases", todo, "--report", report]
        with open(report + ".err", "wb") as err:
            process = subprocess.Popen(command, stdout=err, stderr=err)
        started, read, last, why = None, 0, time.monotonic(), None
        while True:
            ended = process.poll() is not None
            with open(report, "rb") as lines:
                lines.seek(read)
                for line in iter(lines.readline, b""):
                    if not line.endswith(b"\n"):
                        break
                    read, last = read + len(line), time.monotonic()
                    started = self.take(json.loads(line), todo) or started
            if ended:
                break
            if time.monotonic() - last > self.args.timeout:
                why = f"timeout: no answer in {self.args.timeout} s"
                process.kill()
                process.wait()
                break
            time.sleep(0.02)
        if not self.left:
            return
        # the process is gone before all cases had their line
        if started not in self.left:
            started = sorted(self.left)[0]
        if not why:
            with open(report + ".err", "rb") as err:
                tail = err.read()[-300:].decode(errors="replace").strip().replace("\n", " | ")
            why = f"crash: ended with status {process.returncode}: {tail}"
        self.finish(started, why)
        self.drop(todo, started)

    def take(self, line, todo):
        """A line of the report; the case's folder where it says that one begins."""
        folder = line["name"]
        if line["status"] == "start" or folder not in self.left:
            return folder
        case = self.left[folder]
        if line["status"] == "ok":
            self.finish(folder, judge(case, os.path.join(todo, folder)), line)
        elif line["status"] == "skipped":
            self.finish(folder, None, line)
        else:
            self.finish(folder, f"{line['status']}: {line.get('message', '')}", line)
        self.drop(todo, folder)
        return None

    @staticmethod
    def drop(todo, folder):
        path = os.path.join(todo, folder)
        for file in os.listdir(path):
            os.remove(os.path.join(path, file))
        os.rmdir(path)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("paths", nargs="+")
    p.add_argument("--adapter", required=True)
    p.add_argument("--known", help="file of the cases that are known to fail")
    p.add_argument("--mode", default="host", help="which lines of that file count")
    p.add_argument("--fallbacks", help="file of what special forms of kernels may lack")
    p.add_argument("--filter", help='regular expression on "SUITE CASE"')
    p.add_argument("--op", action="append", default=[], help="only cases with this op")
    p.add_argument("--every", type=int, default=1, help="only one case in N")
    p.add_argument("--timeout", type=float, default=60, help="seconds without an answer")
    p.add_argument("--batch", type=int, default=100)
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--json", help="write every case's result here")
    args = p.parse_args()

    known = read_known(args.known, args.mode) if args.known else {}
    allowed = read_fallbacks(args.fallbacks) if args.fallbacks else None
    fallbacks = collections.Counter()  # cases by what a form lacks
    chosen = [c for path in args.paths for c in corpus.load(path)
              if (not args.filter or re.search(args.filter, c.key)) and set(args.op) <= set(c.meta["ops"])][::args.every]
    if not chosen:
        sys.exit("no case was chosen")
    lock = threading.Lock()
    passed, failed, ran, rows, seen = 0, 0, collections.Counter(), [], set()
    launched = collections.Counter()  # of the cases that a device runs and that pass: whether a kernel was launched
    bare = 0  # of those that launched none: whose objects have no kernel, since nothing is left to compute
    skipped = collections.Counter()  # by reason

    def tell(case, reason, line):
        nonlocal passed, failed, bare
        seen.add(case.key)
        if line.get("status") == "skipped":
            skipped[line["message"]] += 1
            return
        ran[line.get("ran", "nothing")] += 1
        lacking = line.get("fallbacks", [])
        fallbacks.update(lacking)
        if reason is None and allowed is not None and not set(lacking) <= allowed:
            reason = "a kernel lacks a special form: " + "; ".join(sorted(set(lacking) - allowed))
        rows.append({"case": case.key, "reason": reason, "ran": line.get("ran")})
        if "launches" in line:
            rows[-1]["launches"] = line["launches"]
            launched[line["launches"] > 0] += reason is None
            bare += reason is None and line["launches"] == 0 and line.get("kernels") == 0
        if (reason is not None) == (case.key in known):
            passed += 1
            return
        failed += 1
        print(f"FAIL {case.key}: {reason}" if reason else f"PASSES, but is listed as failing: {case.key}", flush=True)

    def work(batch):
        for result in Batch(batch, args).run():
            with lock:
                tell(*result)

    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for done in [pool.submit(work, chosen[i:i + args.batch]) for i in range(0, len(chosen), args.batch)]:
            done.result()
    if not args.filter and not args.op and args.every == 1:
        for key in sorted(set(known) - seen):
            suite = key.split()[0]
            if any(s.split()[0] == suite for s in seen):
                failed += 1
                print(f"FAIL {args.known}: there is no case {key}")
    if args.json:
        with open(args.json, "w") as out:
            json.dump({"passed": passed, "failed": failed, "skipped": dict(skipped), "known": len(set(known) & seen),
                       "ran": dict(sorted(ran.items())), "launched": launched[True], "idle": launched[False], "bare": bare,
                       "fallbacks": dict(sorted(fallbacks.items())),
                       "cases": sorted(rows, key=lambda r: r["case"])}, out, indent=0)
    print("ran " + ", ".join(f"{n} {how}" for how, n in sorted(ran.items())) + f"; known to fail: {len(set(known) & seen)}")
    if launched:
        print(f"of those that pass {launched[True]} launched kernels, {launched[False]} none ({bare} have nothing to compute)")
    if allowed is not None:
        print(f"{sum(fallbacks.values())} cases and forms that they lack, of {len(fallbacks)} kinds; {len(allowed)} are listed")
    for reason, n in skipped.items():
        print(f"{n} skipped: {reason}")
    print(f"{passed} passed, {failed} failed, {sum(skipped.values())} skipped")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
