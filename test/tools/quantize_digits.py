"""quantize_digits.py --lathe LATHE --model FOLDER --data FOLDER [--options OPTIONS] [FORM ...]: quantizes a network that reads digits and counts what it loses.

Calibrated with training images, judged by the 400 test images: in each form at most one fewer is read rightly than by the float
model, the whole report is there, and a bound on the error is kept on images that the search has not seen.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import numpy as np

parser = argparse.ArgumentParser()
parser.add_argument("--lathe", required=True)
parser.add_argument("--model", required=True)
parser.add_argument("--data", required=True)
parser.add_argument("--options", default="", help="more options of lathe compile")
parser.add_argument("forms", nargs="*", default=["int8"])
args = parser.parse_args()

labels = np.fromfile(os.path.join(args.data, "test_labels.u8"), np.uint8)
train = np.fromfile(os.path.join(args.data, "train_images.u8"), np.uint8).reshape(-1, 8, 8, 1)
test = np.load(os.path.join(args.model, "inputs.npz"))["image"]
scale = 1 / 16
assert np.array_equal(test, np.fromfile(os.path.join(args.data, "test_images.u8"), np.uint8).reshape(test.shape).astype(np.float32) * np.float32(scale))
bad = 0


def check(holds, text):
    global bad
    if not holds:
        print("FAILED:", text)
        bad = 1


with tempfile.TemporaryDirectory() as folder:
    calibration = os.path.join(folder, "calibration.npz")
    np.savez(calibration, image=(train[:256].astype(np.float32) * np.float32(scale)))

    def run(*options):
        out, report = os.path.join(folder, "out.npz"), os.path.join(folder, "report.json")
        library = os.path.join(folder, "model")
        command = [args.lathe, "compile", os.path.join(args.model, "graph.pb"), "-o", library, "--emit", "so", "--cpu", "host"]
        if options:
            command += ["--quantize-report", report, *options, *args.options.split()]
        done = subprocess.run(command, capture_output=True, text=True)
        if not done.returncode:
            command = [args.lathe, "run", library + ".so", "--feeds", os.path.join(args.model, "inputs.npz"), "--out", out]
            done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            print(" ".join(options), done.stderr)
            sys.exit(1)
        return np.load(out), json.load(open(report)) if options else None

    exact, _ = run()
    right = int((exact["Identity:0"] == labels).sum())
    logits = exact["Identity_1:0"]
    span = logits.max() - logits.min()
    for form in args.forms:
        options = ["--quantize", form]
        if form in ("int8", "int16x8"):
            options += ["--calibrate", calibration]
        got, report = run(*options)
        now = int((got["Identity:0"] == labels).sum())
        error = float(np.abs(got["Identity_1:0"] - logits).max() / span)
        print(f"{form}: {now} of {len(labels)} right, {right} without; largest error of the logits {error:.4f}")
        check(now >= right - 1, f"{form} loses {right - now} images")
        check(0 < error < 0.1, f"{form}: error {error}")
        check(report["integer_share"] > 0.95 or form == "float16", f"{form}: share {report['integer_share']}")
        check(any(node["kind"] == "convolution" and node["quantized"] for node in report["nodes"]), f"{form}: no convolution is quantized")
    if "int8" in args.forms:
        _, report = run("--quantize", "int8", "--calibrate", calibration, "--max-error", "1")
        bound = 0.7 * max(line.get("largest_error", 0) for line in report["outputs"])
        got, report = run("--quantize", "int8", "--calibrate", calibration, "--max-error", str(bound))
        kept = [node for node in report["nodes"] if not node["quantized"]]
        worst = max(line.get("largest_error", 0) for line in report["outputs"])
        print(f"--max-error {bound:.4f}: {len(kept)} of {len(report['nodes'])} nodes float after {len(report['trials'])} trials, {worst:.4f}")
        check(worst <= bound, f"error {worst} beyond the bound {bound}")
        check(0 < len(kept) < len(report["nodes"]) and len(report["trials"]) > 1, "the search kept nothing float, or everything")
sys.exit(bad)
