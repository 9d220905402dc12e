#!/usr/bin/env python3
"""peers.py [RECORD] [--folder FOLDER] [--seconds S] [--minutes M] [--cases A,B] [--out FILE] [--cpu]

Times what others make of an archive's cases on this machine, with what is found here: products by cuBLASLt, convolutions by cuDNN and
known models as CUDA graphs through PyTorch, everything by XLA through JAX, from StableHLO in the archive. RECORD is what `check --record` wrote: then its times
stand beside. What is not found is said, and is no failure. --cpu runs both on the CPU, to see that all this works.
"""
import argparse
import json
import os
import sys
import time

try:
    import numpy as np
except ImportError:
    sys.exit("absent: numpy, which PyTorch and JAX need too")

here = os.path.dirname(os.path.abspath(__file__))
DTYPES = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": np.uint16, "i1": np.bool_, "i8": np.int8, "i16": np.int16,
          "i32": np.int32, "i64": np.int64, "ui8": np.uint8, "ui16": np.uint16, "ui32": np.uint32, "ui64": np.uint64}


def read(folder, tensor):
    return np.fromfile(os.path.join(folder, tensor["file"]), DTYPES[tensor["type"]]).reshape(tensor["dims"])


def median(run, seconds):
    """Microseconds of run(), which waits for the device; what is compiled or chosen first is not counted."""
    run(), run()
    times, end = [], time.perf_counter() + seconds
    while not times or (time.perf_counter() < end and len(times) < 10000):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return sorted(times)[len(times) // 2] * 1e6


class Torch:
    def __init__(self, cpu):
        import torch
        self.torch = torch
        if not cpu and not torch.cuda.is_available():
            raise RuntimeError("PyTorch finds no device")
        self.device = "cpu" if cpu else "cuda"
        self.name = f"PyTorch {torch.__version__}" + ("" if cpu else f" (CUDA {torch.version.cuda}, cuDNN {torch.backends.cudnn.version()})")
        if not cpu:
            torch.backends.cudnn.benchmark = True

    def tensor(self, array, kind):
        t = self.torch.from_numpy(array.view(np.int16) if kind == "bf16" else array)
        return (t.view(self.torch.bfloat16) if kind == "bf16" else t).to(self.device)

    def has(self, case):
        return case["peer"] or case["model"] in self.MODELS

    # whole models as PyTorch's users have them, with weights of any values: torchvision's and transformers'
    MODELS = {"resnet50", "mobilenet_v2", "efficientnet_b0", "bert_base"}

    def model(self, case):
        """A call that leaves one run in the stream, and graphs of it: sums of f32, batch norms folded, channels last."""
        torch = self.torch
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
        if case["model"] == "bert_base":
            import transformers
            net = transformers.BertForPreTraining(transformers.BertConfig()).eval().to(self.device)
            feeds = [self.torch.ones(t["dims"], dtype=torch.int64, device=self.device) for t in case["inputs"][:1]]
        else:
            import torchvision
            from torch.fx.experimental.optimization import fuse
            net = fuse(getattr(torchvision.models, case["model"])(weights=None).eval())
            net = net.to(self.device).to(memory_format=torch.channels_last)
            n, height, width, channels = case["inputs"][0]["dims"]
            feeds = [torch.randn(n, channels, height, width, device=self.device).to(memory_format=torch.channels_last)]
        return lambda: net(*feeds)

    def time_model(self, case, seconds):
        torch = self.torch
        with torch.no_grad():
            call = self.model(case)
            if self.device == "cuda":
                stream = torch.cuda.Stream()
                with torch.cuda.stream(stream):
                    for _ in range(3):
                        call()
                torch.cuda.synchronize()
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph):
                    kept = call()  # noqa: F841: its memory is the graph's
                call = graph.replay

            def run():
                call()
                if self.device == "cuda":
                    torch.cuda.synchronize()
            return median(run, seconds), None

    def memory_pass(self, what, x, y):
        f = self.torch.nn.functional
        first = lambda t: t.permute(0, 3, 1, 2)  # channels stay where they are in memory
        if what == "depthwise":
            y = y.permute(2, 3, 0, 1).contiguous()
        return {
            "add": lambda: x + y, "tanh": lambda: self.torch.tanh(x), "transpose": lambda: x.t().contiguous(),
            "sum_rows": lambda: x.sum(1), "sum_columns": lambda: x.sum(0), "softmax": lambda: f.softmax(x, 1),
            "layer_norm": lambda: f.layer_norm(x, x.shape[-1:], y), "max_pool": lambda: f.max_pool2d(first(x), 3, 2, 1),
            "depthwise": lambda: f.conv2d(first(x), y, padding=1, groups=x.shape[-1]),
        }[what]

    def time(self, folder, case, seconds):
        if not case["peer"]:
            return self.time_model(case, seconds)
        torch, peer = self.torch, case["peer"]
        x, y, *_ = [self.tensor(read(folder, t), peer["type"]) for t in case["inputs"]] + [None]
        tf32 = peer["precision"] == "tf32"
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
        if peer["kind"] == "pass":
            call = self.memory_pass(peer["pass"], x, y)
        elif peer["kind"] == "product" and peer["type"] == "i8":
            columns = y.t().contiguous().t()  # the layout that it is fastest with
            call = lambda: torch._int_mm(x, columns)
        elif peer["kind"] == "product":
            call = lambda: torch.matmul(x, y)
        else:
            # images stay NHWC, TensorFlow's SAME pads more at the end
            edge, window, stride = x.shape[1], y.shape[0], peer["stride"]
            pad = max((-(-edge // stride) - 1) * stride + window - edge, 0)
            image = x.permute(0, 3, 1, 2)
            kernel = y.permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)
            if pad % 2:
                image = torch.nn.functional.pad(image, (pad // 2, pad - pad // 2) * 2).contiguous(memory_format=torch.channels_last)
                pad = 0
            call = lambda: torch.nn.functional.conv2d(image, kernel, stride=stride, padding=pad // 2, groups=peer["groups"])
        if self.device == "cpu":
            return median(call, seconds), None
        # as ours are: what the device takes, without the call that leaves it there
        many, stream = 10, torch.cuda.Stream()
        with torch.cuda.stream(stream):
            call()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(many):
                call()
        times, end = [], time.perf_counter() + seconds
        while len(times) < 3 or (time.perf_counter() < end and len(times) < 1000):
            before, after = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            before.record()
            graph.replay()
            after.record()
            torch.cuda.synchronize()
            times.append(before.elapsed_time(after) * 1000 / many)
        return sorted(times)[len(times) // 2], None


class Xla:
    def __init__(self, cpu):
        import jax
        from jax._src.interpreters import mlir
        from jax._src.lib import xla_client
        from jax._src.lib.mlir import ir
        self.jax, self.mlir, self.ir, self.client = jax, mlir, ir, xla_client
        jax.config.update("jax_enable_x64", True)
        self.device = jax.devices("cpu" if cpu else "gpu")[0]
        self.name = f"XLA of JAX {jax.__version__}"

    def array(self, array, kind):
        if kind == "bf16":
            import ml_dtypes
            array = array.view(ml_dtypes.bfloat16)
        return self.jax.device_put(array, self.device)

    def time(self, folder, case, seconds):
        with open(os.path.join(folder, "model.mlir")) as f, self.mlir.make_ir_context():
            code = self.mlir.module_to_bytecode(self.ir.Module.parse(f.read()))
        client = self.device.client
        run = client.compile_and_load(code, self.client.DeviceList((self.device,)), self.client.CompileOptions())
        arguments = [self.array(read(folder, t), t["type"]) for t in case["inputs"]]
        flat = np.fromfile(os.path.join(folder, "constants"), np.uint8) if case["constants"] else None
        for t in case["constants"]:
            size = int(np.prod(t["dims"], dtype=np.int64)) * np.dtype(DTYPES[t["type"]]).itemsize
            arguments.append(self.array(flat[t["at"] : t["at"] + size].view(DTYPES[t["type"]]).reshape(t["dims"]), t["type"]))

        def call():
            results = run.execute_sharded(arguments).disassemble_into_single_device_arrays()
            for r in results:
                r[0].block_until_ready()
            return results
        error = None
        for t, r in zip(case["outputs"], call()):
            want, got = read(folder, t), np.asarray(r[0])
            if t["type"] in ("f32", "f64") and want.size:
                error = max(error or 0, float(np.abs(got - want).max() / (np.abs(want).max() + 1e-30)))
        return median(call, seconds), error


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("record", nargs="?")
    p.add_argument("--folder", default=here)
    p.add_argument("--seconds", type=float, default=1)
    p.add_argument("--minutes", type=float, default=60, help="after which nothing more is begun")
    p.add_argument("--cases", help="of these names only, with commas between them")
    p.add_argument("--out")
    p.add_argument("--cpu", action="store_true")
    a = p.parse_args()
    with open(os.path.join(a.folder, "peers.json")) as f:
        cases = json.load(f)
    ours = {}
    if a.record:
        with open(a.record) as f:
            ours = {r["case"]: r for r in map(json.loads, f) if "case" in r}
    end = time.time() + 60 * a.minutes
    # single products and convolutions take a moment each, models have to be built and compiled
    cases = sorted((c for c in cases if not a.cases or c["case"] in a.cases.split(",")), key=lambda c: not c["peer"])
    peers = []
    for kind in (Torch, Xla):
        try:
            peers.append(kind(a.cpu))
            print(peers[-1].name)
        except Exception as e:  # whatever keeps it from working here
            print(f"absent: {'PyTorch' if kind is Torch else 'JAX'}: {str(e).splitlines()[0] if str(e) else type(e).__name__}")
    out = open(a.out, "w") if a.out else None
    for case in cases:
        folder = os.path.join(a.folder, "cases", case["case"])
        for peer in peers:
            if isinstance(peer, Torch) and not peer.has(case):
                continue
            if time.time() > end:
                print(f"{case['case']:32} not timed: the time is over")
                continue
            if isinstance(peer, Xla) and "no_stablehlo" in case:
                print(f"{case['case']:32} {'XLA':8} not exported: {case['no_stablehlo']}")
                continue
            name = "PyTorch" if isinstance(peer, Torch) else "XLA"
            try:
                us, error = peer.time(folder, case, a.seconds)
            except Exception as e:
                print(f"{case['case']:32} {name:8} failed: {str(e).splitlines()[0] if str(e) else type(e).__name__}")
                continue
            # what stands beside a graph of ten calls is a run's share of several
            mine = ours.get(case["case"], {}).get("queued_us" if name == "PyTorch" and case["peer"] else "device_graphs_us")
            beside = f", Lathe {mine:.1f} us: {us / mine:.2f} times as fast" if mine else ""
            far = f", largest difference {error:.2g}" if error is not None else ""
            print(f"{case['case']:32} {name:8} {us:10.1f} us{far}{beside}", flush=True)
            if out:
                out.write(json.dumps({"case": case["case"], "peer": name, "version": peer.name, "us": us, "lathe_us": mine, "difference": error}) + "\n")


if __name__ == "__main__":
    main()
