"""Latency and error of int8 models: Lathe beside ONNX Runtime, OpenVINO and LiteRT, each quantized by its own tool.

usage: int8_peers.py --lathe BUILD --zoo FOLDER [--threads N] [--cpu CPU] [--clock wall|cpu] [--rounds 6] [--seconds 1] [--out FILE] [MODEL ...]

For each model of a zoo (graph.pb, saved_model where there is one, inputs.npz, model.json): the same 32 feeds calibrate `lathe compile
--quantize int8 --max-error 0.05` (fast and tflite arithmetic), ONNX Runtime's quantize_static (per channel, U8S8), NNCF for OpenVINO and TensorFlow's
converter for LiteRT. All keep float inputs and outputs. On other inputs each one's largest difference from the float model is taken, as a
part of the output's range. Then all are timed in turn, round by round, each in a process of its own on the same cores, through its Python
interface; a figure is the median over the rounds of a round's shortest run, with --clock cpu (one thread) in time of the processor, for machines that
are busy with other work. A peer is ranked where its error is at most twice Lathe's.

Needs a python with tensorflow, tf2onnx, onnxruntime, openvino, nncf and ai-edge-litert. Folders of --zoo are written to: use a copy. What
is there of an earlier run (objects, quantized models) is used again.
"""
import argparse
import json
import os
import subprocess
import sys
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.environ.get("SHARED", os.path.join(HERE, "../../shared")) + "/bench"]
from quantized_models import draw  # noqa: E402
import peers  # noqa: E402

OURS = {"lathe_f32": [], "lathe_int8": ["--quantize", "int8", "--quantized-math", "fast", "--max-error", "0.05"],
        "lathe_int8_tflite": ["--quantize", "int8", "--quantized-math", "tflite", "--max-error", "0.05"]}
PEERS = ["ort", "openvino", "litert"]


def calibration(folder):
    with np.load(os.path.join(folder, "int8_calibrate.npz")) as f:
        feeds = {k: f[k] for k in f.files}
    return [{k: v[i] for k, v in feeds.items()} for i in range(len(next(iter(feeds.values()))))]


# Each gives a function from a dictionary of inputs (the zoo's names) to the outputs in the order of the zoo's fetches.

def build_lathe(folder, threads, name):
    import lathe
    model, info = lathe.load(os.path.join(folder, f"{name}_{threads}.so"), threads=threads), peers.meta(folder)[0]
    names = {k: v["tensor"].split(":")[0] for k, v in info["feeds"].items()}
    fetches = [v["tensor"].removesuffix(":0") for v in info["fetches"].values()]

    def run(feeds):
        out = model(**{names[k]: v for k, v in feeds.items()})
        return [out[k] for k in fetches]
    return run


def build_ort(folder, threads):
    import onnxruntime as rt
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process
    info = peers.meta(folder)[0]
    names = {k: v["tensor"] for k, v in info["feeds"].items()}
    path = os.path.join(folder, "int8.onnx")
    if not os.path.exists(path):
        class Reader(CalibrationDataReader):
            def __init__(self):
                self.items = iter([{names[k]: v for k, v in x.items()} for x in calibration(folder)])

            def get_next(self):
                return next(self.items, None)
        prepared = os.path.join(folder, "prepared.onnx")
        quant_pre_process(peers.onnx_path(folder), prepared, skip_symbolic_shape=True)
        quantize_static(prepared, path, Reader(), quant_format=QuantFormat.QDQ, per_channel=True, activation_type=QuantType.QUInt8,
                        weight_type=QuantType.QInt8)
    options = rt.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = rt.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    fetches = [v["tensor"] for v in info["fetches"].values()]
    return lambda feeds: session.run(fetches, {names[k]: v for k, v in feeds.items()})


def build_openvino(folder, threads):
    import openvino as ov
    import nncf
    info = peers.meta(folder)[0]
    names = {k: v["tensor"] for k, v in info["feeds"].items()}
    path = os.path.join(folder, "int8.xml")
    core = ov.Core()
    if not os.path.exists(path):
        more = {"model_type": nncf.ModelType.TRANSFORMER} if "bert" in folder else {}
        data = nncf.Dataset([{names[k]: v for k, v in x.items()} for x in calibration(folder)])
        ov.save_model(nncf.quantize(core.read_model(peers.onnx_path(folder)), data, subset_size=32, **more), path, compress_to_fp16=False)
    model = core.compile_model(path, "CPU", {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"})
    request = model.create_infer_request()
    fetches = [v["tensor"] for v in info["fetches"].values()]

    def run(feeds):
        out = request.infer({names[k]: v for k, v in feeds.items()}, share_inputs=True, share_outputs=True)
        return [out[t] for t in fetches]
    return run


def build_litert(folder, threads):
    info = peers.meta(folder)[0]
    names = {k: v["tensor"].split(":")[0] for k, v in info["feeds"].items()}
    fetches = [v["tensor"].split(":")[0] for v in info["fetches"].values()]
    path = os.path.join(folder, "int8.tflite")
    if not os.path.exists(path):
        import tensorflow as tf
        feeds = calibration(folder)
        convert = tf.compat.v1.lite.TFLiteConverter.from_frozen_graph(
            os.path.join(folder, "graph.pb"), list(names.values()), fetches, {names[k]: list(v.shape) for k, v in feeds[0].items()})
        convert.optimizations = [tf.lite.Optimize.DEFAULT]
        convert.representative_dataset = lambda: ([x[k] for k in names] for x in feeds)
        with open(path, "wb") as f:
            f.write(convert.convert())
    from ai_edge_litert.interpreter import Interpreter
    interpreter = Interpreter(path, num_threads=threads)
    interpreter.allocate_tensors()
    inputs = {d["name"].split(":")[0]: d["index"] for d in interpreter.get_input_details()}
    outputs = [d["index"] for d in interpreter.get_output_details()]

    def run(feeds):
        for k, v in feeds.items():
            interpreter.set_tensor(inputs[names[k]], v)
        interpreter.invoke()
        return [interpreter.get_tensor(i) for i in outputs]
    return run


def error_of(run, folder):
    """The largest difference over all inputs and outputs, as a part of the output's largest magnitude."""
    with np.load(os.path.join(folder, "int8_unseen.npz")) as f:
        data = {k: f[k] for k in f.files}
    count, worst = data["count"].item(), 0.0
    wanted = [data[f"out{i}"] for i in range(sum(k.startswith("out") for k in data))]
    for i in range(count):
        got = [np.array(v, np.float64) for v in run({k[3:]: v[i] for k, v in data.items() if k.startswith("in_")})]
        if [g.shape for g in got] != [w[i].shape for w in wanted]:
            got.sort(key=lambda g: [w[i].shape for w in wanted].index(g.shape))
        worst = max([worst] + [float(np.abs(g - w[i]).max() / (np.abs(w).max() + 1e-9)) for g, w in zip(got, wanted)])
    return worst


def worker(args):
    """On standard input and output: a line of seconds in, a line of JSON out."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    name, folder = args.worker
    try:
        start = time.time()
        run = build_lathe(folder, args.threads, name) if name in OURS else globals()["build_" + name](folder, args.threads)
        feeds = peers.meta(folder)[1]
        run(feeds)
        print(json.dumps({"ready_s": time.time() - start, "error": error_of(run, folder)}), file=out, flush=True)
    except Exception as e:  # pylint: disable=broad-except
        print(json.dumps({"why": f"{type(e).__name__}: {e}"[:300]}), file=out, flush=True)
        return
    clock = time.process_time if args.clock == "cpu" else time.perf_counter
    for line in sys.stdin:
        end, shortest = time.perf_counter() + float(line), float("inf")
        while time.perf_counter() < end:
            start = clock()
            run(feeds)
            shortest = min(shortest, clock() - start)
        print(json.dumps(shortest * 1e3), file=out, flush=True)


def prepare(args, folder, count):
    """Feeds that calibrate, other ones with the float model's outputs, and Lathe's objects."""
    rng = np.random.default_rng(1)
    info, examples = peers.meta(folder)
    many = {k: draw(v, 32, rng) for k, v in examples.items()}
    feeds = os.path.join(folder, "int8_calibrate.npz")
    np.savez(feeds, **many)
    for name, flags in OURS.items():
        if os.path.exists(os.path.join(folder, f"{name}_{args.threads}.so")):
            continue
        more = flags + (["--calibrate", feeds] if flags else [])
        subprocess.run([os.path.join(args.lathe, "bin/lathe"), "compile", os.path.join(folder, "graph.pb"), "--emit", "so", "--cpu", args.cpu,
                        "--threads", str(args.threads), "-o", os.path.join(folder, f"{name}_{args.threads}"), *more], check=True,
                       stderr=subprocess.DEVNULL)
    run, unseen = build_lathe(folder, args.threads, "lathe_f32"), {k: draw(v, count, rng) for k, v in examples.items()}
    wanted = [[np.array(v) for v in run({k: v[i] for k, v in unseen.items()})] for i in range(count)]
    np.savez(os.path.join(folder, "int8_unseen.npz"), count=count, **{"in_" + k: v for k, v in unseen.items()},
             **{f"out{i}": np.stack([w[i] for w in wanted]) for i in range(len(wanted[0]))})


def compare(args, name):
    folder = os.path.join(args.zoo, name)
    prepare(args, folder, args.inputs)
    told, running, times = {}, {}, {}
    for runner in [*OURS, *args.peers.split(",")]:
        process = subprocess.Popen([sys.executable, __file__, "--worker", runner, folder, "--threads", str(args.threads), "--clock", args.clock,
                                    "--lathe", args.lathe],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                   env={**os.environ, "OMP_NUM_THREADS": str(args.threads), "TF_CPP_MIN_LOG_LEVEL": "3"})
        line = process.stdout.readline()
        told[runner] = json.loads(line) if line else {"why": "ended without a word"}
        if "why" not in told[runner]:
            running[runner], times[runner] = process, []
    for _ in range(args.rounds):
        for runner, process in running.items():
            print(args.seconds, file=process.stdin, flush=True)
            times[runner].append(json.loads(process.stdout.readline()))
    for process in running.values():
        process.stdin.close()
        process.wait()
    ours = told["lathe_int8"]["error"]
    rows = {r: {"ms": float(np.median(t)), "error": told[r]["error"]} for r, t in times.items()}
    ranked = [r for r in rows if r not in OURS and rows[r]["error"] <= 2 * ours]
    best = min((rows[r]["ms"] for r in ranked), default=None)
    print(f"\n{name}, {args.threads} thread(s)")
    for runner, row in sorted(rows.items(), key=lambda item: item[1]["ms"]):
        share = f"{row['ms'] / best:5.2f} x the best peer" if best else ""
        print(f"  {runner:18s} {row['ms']:9.3f} ms  error {row['error']:.4f}  {share}{'' if runner in OURS or runner in ranked else '  not ranked'}")
    for runner, what in told.items():
        if "why" in what:
            print(f"  {runner:18s} failed: {what['why']}")
    sys.stdout.flush()
    return {"threads": args.threads, "rows": rows, "ranked": ranked, "failed": {r: w["why"] for r, w in told.items() if "why" in w}}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=["resnet50", "mobilenet_v2", "efficientnet_b0", "bert_base"])
    parser.add_argument("--lathe", default="build")
    parser.add_argument("--zoo", default="zoo")
    parser.add_argument("--peers", default=",".join(PEERS))
    parser.add_argument("--cpu", default="host")
    parser.add_argument("--clock", default="wall", choices=["wall", "cpu"])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--inputs", type=int, default=50)
    parser.add_argument("--out")
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    sys.path.insert(0, os.path.join(args.lathe, "python"))
    if args.worker:
        return worker(args)
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-args.threads:])
    result = {name: compare(args, name) for name in args.models}
    if args.out:
        with open(args.out, "w") as f:
            json.dump(result, f, indent=1)


if __name__ == "__main__":
    main()
