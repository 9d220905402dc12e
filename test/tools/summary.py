"""summary.py RESULTS_DIR FLOOR.json

Adds up lit's results and prints the closing line "N passed, N failed". The conformance cases count as one test, which
passes while no case crashes or times out and at least as many pass as FLOOR.json says.
"""
import json
import os
import sys

results, floor_file = sys.argv[1:3]
passed = failed = 0
with open(os.path.join(results, "lit.json")) as f:
    for test in json.load(f)["tests"]:
        if test["code"] in ("PASS", "XFAIL"):
            passed += 1
        elif test["code"] not in ("UNSUPPORTED", "SKIPPED", "EXCLUDED"):
            failed += 1
            print("FAILED", test["name"])
conform = os.path.join(results, "conform.json")
if os.path.exists(conform):
    with open(conform) as f:
        reasons = [reason for _, _, reason in json.load(f)]
    with open(floor_file) as f:
        floor = json.load(f)["share"]
    good = sum(r is None for r in reasons)
    broken = [r for r in reasons if r and r.split(":")[0] in ("crash", "timeout")]
    print(f"conformance: {good} of {len(reasons)} cases pass")
    if broken or good < floor * len(reasons):
        print(f"FAILED conformance: expected a share of {floor}; crashes and timeouts: {broken}")
        failed += 1
    else:
        passed += 1
print(f"{passed} passed, {failed} failed")
sys.exit(failed != 0)
