"""c_api.py BUILD [TENSORFLOW-FOLDER]: what a program ships for TensorFlow's C interface, and how long digits_cnn takes to its first result:
without a cache of compiled clusters on disk, with one that is empty, and with one that is full. TENSORFLOW-FOLDER, of an installed wheel,
adds TensorFlow's. Fails above 15 MB for the front library and 300 MB for all."""
import os
import re
import subprocess
import sys
import tempfile

MOST_FRONT, MOST_SHIPPED = 15, 300
REPEATS = 5
HERE = os.path.dirname(os.path.abspath(__file__))
GRAPH = os.path.join(HERE, "../test/data/samples/digits_cnn/graph.pb")


def needed(libraries):
    """The libraries and all they load, except the C and C++ runtime that each machine has."""
    out = {}
    for library in libraries:
        out[os.path.realpath(library)] = None
        for line in subprocess.run(["ldd", library], capture_output=True, text=True, check=True).stdout.splitlines():
            found = re.search(r"=> (\S+) \(", line)
            if found and not re.match(r"lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s)\.so", os.path.basename(found.group(1))):
                out[os.path.realpath(found.group(1))] = None
    return list(out)


def megabytes(files):
    return sum(os.path.getsize(f) for f in files) / 1e6


def first_runs(program, environment):
    """Medians of opening, first run, and the fastest later one."""
    runs = []
    for _ in range(REPEATS):
        out = subprocess.run([program, GRAPH, "image", "Identity", "1", "8", "8", "1"], capture_output=True, text=True, env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", **environment})
        if out.returncode:
            sys.exit(out.stderr)
        runs.append([float(v) for v in out.stdout.split()])
    return [sorted(column)[REPEATS // 2] for column in zip(*runs)]


def build(folder, name, include, arguments):
    program = os.path.join(folder, name)
    subprocess.run(["cc", "-std=gnu11", "-O1", "-I", include, os.path.join(HERE, "c_api_first_run.c"), "-o", program] + arguments, check=True)
    return program


def show(what, values):
    print("%-38s %8.1f ms to open, %8.1f ms the first run, %6.3f ms a later one" % (what, *values))


def main():
    build_folder, wheel = os.path.abspath(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None
    lib = os.path.join(build_folder, "lib")
    front = os.path.realpath(os.path.join(lib, "libtensorflow.so"))
    shipped = needed([front, os.path.join(lib, "liblathe_proto.so"), os.path.join(lib, "liblathe_compiler.so")])
    own, all_ = megabytes([front, os.path.realpath(os.path.join(lib, "liblathe_proto.so"))]), megabytes(shipped)
    print("libtensorflow.so and liblathe_proto.so %.1f MB; with the compiler and all libraries %.1f MB:" % (own, all_))
    for file in sorted(shipped, key=os.path.getsize, reverse=True):
        print("  %7.2f MB %s" % (megabytes([file]), os.path.basename(file)))
    with tempfile.TemporaryDirectory() as folder:
        program = build(folder, "lathe", os.path.join(HERE, "../runtime/c_api/include"), ["-L", lib, "-ltensorflow", "-Wl,-rpath," + lib])
        show("Lathe, no disk cache", first_runs(program, {}))
        cache = {"LATHE_CACHE_DIR": os.path.join(folder, "cache")}
        os.mkdir(cache["LATHE_CACHE_DIR"])
        first_runs(program, cache)
        if not os.listdir(cache["LATHE_CACHE_DIR"]):
            sys.exit("nothing was written to the cache")
        show("Lathe, from the disk cache", first_runs(program, cache))
        if wheel:
            files = needed([os.path.join(wheel, "libtensorflow_cc.so.2"), os.path.join(wheel, "libtensorflow_framework.so.2")])
            print("TensorFlow's libraries %.1f MB" % megabytes(files))
            program = build(folder, "tensorflow", os.path.join(wheel, "include"),
                            ["-L", wheel, "-l:libtensorflow_cc.so.2", "-l:libtensorflow_framework.so.2", "-Wl,-rpath," + wheel])
            show("TensorFlow", first_runs(program, {}))
    return 1 if own > MOST_FRONT or all_ > MOST_SHIPPED else 0


if __name__ == "__main__":
    sys.exit(main())
