"""summary.py RESULTS_DIR

Adds up what lit (lit.json) and the conformance cases (conform-*.json, of test/conform/run.py) say, names what failed and why
tests were skipped, and prints the closing line "N passed, N failed, N skipped".
"""
import collections
import glob
import json
import os
import re
import sys

results = sys.argv[1]
passed = failed = 0
skipped = collections.Counter()  # by reason
with open(os.path.join(results, "lit.json")) as f:
    for test in json.load(f)["tests"]:
        if test["code"] in ("PASS", "XFAIL"):
            passed += 1
        elif test["code"] in ("UNSUPPORTED", "SKIPPED", "EXCLUDED"):
            missing = re.search(r"unavailable features: (.*)", test.get("output", ""))
            reason = f"needs {missing[1]}" if missing else test["code"].lower()
            skipped[reason] += 1
            print(f"SKIPPED {test['name']}: {reason}")
        else:
            failed += 1
            print("FAILED", test["name"])
for file in sorted(glob.glob(os.path.join(results, "conform-*.json"))):
    with open(file) as f:
        report = json.load(f)
    mode = os.path.basename(file)[len("conform-"):-len(".json")]
    for reason, n in report.get("skipped", {}).items():
        skipped[reason] += n
        print(f"SKIPPED {n} conformance cases, {mode}: {reason}")
    passed += report["passed"]
    failed += report["failed"]
    ran = ", ".join(f"{n} {how}" for how, n in report["ran"].items())
    if report.get("launched"):
        ran += f"; {report['launched']} launched kernels, {report['idle']} none ({report['bare']} have nothing to compute)"
    print(f"conformance cases, {mode}: {report['passed']} passed, {report['failed']} failed ({ran}; {report['known']} known to fail)")
print(f"{passed} passed, {failed} failed, {sum(skipped.values())} skipped")
sys.exit(failed != 0)
