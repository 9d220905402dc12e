"""Compiles each model in one go and again from what --dump-dir wrote after every phase; objects and headers must be equal."""
import pathlib
import subprocess
import sys

lathe, folder, models = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3:]
phases = ["import", "cluster", "legalize", "simplify", "fuse", "prepare", "lower"]
given = [[], ["--cpu", "v4", "--threads", "2"], ["--backend", "cuda"], ["--cpu", "v3:icelake-server"]]


def compile(model, out, *options):
    out.mkdir(parents=True, exist_ok=True)
    subprocess.run([lathe, "compile", str(model), "-o", str(out / "m"), *options], check=True, stderr=subprocess.DEVNULL)
    return [(out / name).read_bytes() for name in ("m.o", "m.h")]


for number, model in enumerate(models):
    options = given[number % len(given)]
    of_model = phases[2:] if model.endswith(".tflite") else phases  # that frontend makes hlo
    base = folder / str(number)
    whole = compile(model, base / "whole", "--dump-dir", str(base / "dump"), *options)
    dumps = sorted((base / "dump").glob("*.mlirbc"))
    assert [d.stem.split("-", 1)[1] for d in dumps] == of_model, dumps
    for dump in dumps:
        assert compile(dump, base / dump.stem) == whole, f"{model}: other bytes from {dump.name}"
    print(model, "equal from", len(dumps), "phases")
