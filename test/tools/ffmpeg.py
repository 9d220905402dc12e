"""ffmpeg.py --lathe BUILD-FOLDER --work FOLDER: Debian's ffmpeg, unchanged, on our libtensorflow and on TensorFlow's.

Fetches the source with apt-get, builds it once, against TensorFlow's headers and library, with what its filter dnn_processing needs, runs
this program with either library, and sends frames through graphs of grey and of coloured frames. Fails where a pixel differs by more than 1, or
more than one in 10,000 at all. A model of ffmpeg's own format has to be refused alike. Runs in a python that has TensorFlow; status 77 and a
line where the source cannot be had."""
import argparse
import glob
import os
import shutil
import struct
import subprocess
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np

WIDTH, HEIGHT, FRAMES = 176, 144, 12
MIRROR = "http://deb.debian.org/debian bookworm main"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


def run(args, log, skip=False, **options):
    """Runs a program that has to succeed; where `skip`, its failure is a reason not to run the rest."""
    with open(log, "w") as out:
        if subprocess.run(args, stdout=out, stderr=subprocess.STDOUT, **options).returncode:
            if skip:
                print("ffmpeg's filter: not run, its source cannot be fetched: " + open(log).read().strip().split("\n")[-1])
                sys.exit(77)
            sys.exit("%s failed:\n%s" % (args[0], "".join(open(log).readlines()[-20:])))


def source(work):
    """The folder of the unpacked source; fetched where it is not there yet."""
    folder = os.path.join(work, "source")
    if not shutil.which("apt-get") or not shutil.which("dpkg-source"):
        print("ffmpeg's filter: not run, there is no apt-get or dpkg-source to fetch its source with")
        sys.exit(77)
    if os.path.exists(os.path.join(folder, "configure")):
        return folder
    lists = os.path.join(work, "lists")
    os.makedirs(os.path.join(lists, "partial"), exist_ok=True)
    sources = os.path.join(work, "sources.list")
    open(sources, "w").write("deb-src [signed-by=%s] %s\n" % (KEYRING, MIRROR))
    # lists of its own, so that the machine's stay as they are
    apt = ["apt-get", "-q", "-o", "Dir::Etc::SourceList=" + sources, "-o", "Dir::Etc::SourceParts=/dev/null", "-o", "Dir::State::Lists=" + lists]
    run(apt + ["update"], os.path.join(work, "update.log"), skip=True)
    run(apt + ["source", "--download-only", "ffmpeg"], os.path.join(work, "source.log"), skip=True, cwd=work)
    run(["dpkg-source", "--no-check", "-x", glob.glob(os.path.join(work, "ffmpeg_*.dsc"))[0], folder], os.path.join(work, "unpack.log"))
    return folder


def links(folder, files):
    """A folder in which the files {name: file} lie under these names."""
    os.makedirs(folder, exist_ok=True)
    for name, file in files.items():
        path = os.path.join(folder, name)
        if os.path.lexists(path):
            os.unlink(path)
        os.symlink(os.path.realpath(file), path)
    return folder


def build(src, work, jobs):
    """ffmpeg, compiled and linked with TensorFlow's headers and libraries, whose functions lie in two files of the wheel."""
    import tensorflow
    wheel, folder = os.path.dirname(tensorflow.__file__), os.path.join(work, "build")
    program = os.path.join(folder, "ffmpeg")
    if os.path.exists(program):
        return program
    os.makedirs(folder, exist_ok=True)
    library = links(os.path.join(work, "link"), {"libtensorflow.so": os.path.join(wheel, "libtensorflow_cc.so.2"),
                                                 "libtensorflow_framework.so": os.path.join(wheel, "libtensorflow_framework.so.2")})
    compiler = ["--cc=ccache gcc"] if shutil.which("ccache") else []
    run([os.path.join(src, "configure"), "--disable-everything", "--disable-autodetect", "--disable-doc", "--disable-x86asm", "--disable-debug",
         "--disable-network", "--disable-ffprobe", "--disable-ffplay", "--enable-libtensorflow", "--enable-filter=dnn_processing,format,scale",
         "--enable-protocol=file", "--enable-demuxer=rawvideo", "--enable-muxer=rawvideo", "--enable-decoder=rawvideo",
         "--enable-encoder=rawvideo", "--extra-cflags=-I" + os.path.join(wheel, "include"), "--extra-libs=-ltensorflow_framework",
         "--extra-ldflags=-L%s -Wl,-rpath-link,%s" % (library, wheel)] + compiler, os.path.join(work, "configure.log"), cwd=folder)
    run(["make", "-j%d" % jobs, "ffmpeg"], os.path.join(work, "make.log"), cwd=folder)
    return program


def libraries(lathe, work):
    """The folders from which the program loads its libraries, by whose they are."""
    import tensorflow
    front = os.path.join(lathe, "lib/libtensorflow.so.2")
    return {"lathe": links(os.path.join(work, "lathe-lib"), {
                "libtensorflow_cc.so.2": front, "libtensorflow_framework.so.2": front,
                "liblathe_proto.so": os.path.join(lathe, "lib/liblathe_proto.so"),
                "liblathe_compiler.so": os.path.join(lathe, "lib/liblathe_compiler.so")}),
            "tensorflow": os.path.dirname(tensorflow.__file__)}


def weights(random, size, inputs, outputs):
    return random.normal(0, 1 / np.sqrt(size * size * inputs), (size, size, inputs, outputs)).astype(np.float32)


def frozen(channels, path):
    """A small network of the kind that sharpens frames, as a GraphDef."""
    import tensorflow as tf
    random = np.random.RandomState(channels)
    with tf.Graph().as_default() as graph:
        image = tf.compat.v1.placeholder(tf.float32, [None, None, None, channels], name="x")
        y = tf.nn.relu(tf.nn.conv2d(image, weights(random, 9, channels, 32), 1, "SAME") + random.normal(0, 0.1, 32).astype(np.float32))
        y = tf.nn.leaky_relu(tf.nn.conv2d(y, weights(random, 1, 32, 16), 1, "SAME"))
        y = tf.nn.conv2d(y, weights(random, 5, 16, channels), 1, "SAME") * 0.3
        tf.clip_by_value(image + y, 0.0, 1.0, name="y")
        open(path, "wb").write(graph.as_graph_def().SerializeToString())


def native(path):
    """Mirrored edges, three convolutions and depth to space, in ffmpeg's own format."""
    random = np.random.RandomState(5)
    layers, operands = [], [("x", 1)]

    def layer(kind, *numbers, data=(), channels):
        operands.append(("y" if kind == 2 else "t%d" % len(operands), channels))
        values = b"".join(np.asarray(d, "<f4").tobytes() for d in data)
        layers.append(struct.pack("<%di" % (len(numbers) + 1), kind, *numbers) + values + struct.pack("<2i", len(operands) - 2, len(operands) - 1))
    layer(3, 2, 0, 0, 4, 4, 4, 4, 0, 0, channels=1)
    inputs = 1
    for size, outputs, activation in ((5, 16, 1), (3, 8, 0), (3, 4, 2)):
        kernel = weights(random, size, inputs, outputs).transpose(3, 0, 1, 2) * 2
        layer(1, 1, 0, activation, inputs, outputs, size, 1, data=(kernel, random.normal(0, 0.2, outputs)), channels=outputs)
        inputs = outputs
    layer(2, 2, channels=1)
    with open(path, "wb") as out:
        out.write(b"FFMPEGDNNNATIVE" + struct.pack("<2i", 1, 23) + b"".join(layers))
        for k, (name, channels) in enumerate(operands):
            kind = 1 if k == 0 else 2 if k == len(operands) - 1 else 3  # input, output, between
            out.write(struct.pack("<2i", k, len(name) + 1) + name.encode() + b"\0" + struct.pack("<6i", kind, 1, 1, -1, -1, channels))
        out.write(struct.pack("<2i", len(layers), len(operands)))


def frames(path):
    """Moving waves under noise, three bytes a pixel."""
    random = np.random.RandomState(1)
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    with open(path, "wb") as out:
        for k in range(FRAMES):
            waves = [127 + 90 * np.sin(x / (5.0 + c) + k / 3) * np.cos(y / (9.0 - c) - k / 5) for c in range(3)]
            out.write(np.clip(np.stack(waves, -1) + random.normal(0, 12, (HEIGHT, WIDTH, 3)), 0, 255).astype(np.uint8).tobytes())


class Filter:
    """The program on one frame sequence, with libraries of either side."""

    def __init__(self, program, work):
        self.program, self.work = program, work

    def __call__(self, whose, folder, model, pixels, written):
        """The status, the bytes written, the lines of the log, and the seconds."""
        raw, start = os.path.join(self.work, whose + ".raw"), time.time()
        done = subprocess.run(
            [self.program, "-nostdin", "-y", "-loglevel", "error", "-f", "rawvideo", "-pix_fmt", "rgb24", "-s", "%dx%d" % (WIDTH, HEIGHT),
             "-i", os.path.join(self.work, "frames.raw"),
             "-vf", "format=%s,dnn_processing=dnn_backend=tensorflow:model=%s:input=x:output=y" % (pixels, os.path.join(self.work, model)),
             "-pix_fmt", written, "-f", "rawvideo", raw],
            env={**os.environ, "LD_LIBRARY_PATH": folder}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=600)
        # lines of ffmpeg's own: "[filter @ address] text"
        log = [line.split("] ", 1)[-1] for line in done.stderr.splitlines() if line.startswith("[")]
        return done.returncode, np.fromfile(raw, np.uint8).astype(int) if os.path.exists(raw) else None, log, time.time() - start


def same_pixels(run, folders, model, pixels, written, plane):
    """Whether the first `plane` bytes of each frame of `written` agree. The rest, the colours of yuv420p, ffmpeg's own scaler writes, and
    not twice the same."""
    sides = {whose: run(whose, folder, model, pixels, written) for whose, folder in folders.items()}
    values = {}
    for whose, (code, out, log, _) in sides.items():
        if code or out is None or not out.size or out.size % FRAMES or out.size // FRAMES < plane:
            sys.exit("%s, %s with %s: status %d, %s" % (model, pixels, whose, code, log))
        values[whose] = out.reshape(FRAMES, -1)[:, :plane]
    ours, theirs = values["lathe"], values["tensorflow"]
    if ours.shape != theirs.shape or theirs.std() < 5:
        sys.exit("%s, %s: sizes %s and %s, deviation %.1f" % (model, pixels, ours.shape, theirs.shape, theirs.std()))
    away = np.abs(ours - theirs)
    print("%s, %s: %d of %d pixels differ, by %d at most; %.1f s with Lathe, %.1f s with TensorFlow"
          % (model, pixels, np.count_nonzero(away), away.size, away.max(), sides["lathe"][3], sides["tensorflow"][3]))
    return away.max() <= 1 and np.count_nonzero(away) * 10000 <= away.size


def same_refusal(run, folders, model, pixels):
    """ffmpeg 5.1 makes a graph of its own format by TF_NewOperation, whose placeholder has four open sizes, and its filter then takes no
    pixels for it. That has to be what happens with either library."""
    sides = {whose: run(whose, folder, model, pixels, "gray") for whose, folder in folders.items()}
    for whose, (code, _, log, _) in sides.items():
        print("%s, %s with %s: status %d, %s" % (model, pixels, whose, code, log))
    return sides["lathe"][0] == sides["tensorflow"][0] and sides["lathe"][2] == sides["tensorflow"][2]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--lathe", required=True, help="the build folder")
    p.add_argument("--work", required=True)
    p.add_argument("--jobs", type=int, default=1)
    a = p.parse_args()
    work, lathe = os.path.abspath(a.work), os.path.abspath(a.lathe)
    os.makedirs(work, exist_ok=True)
    src = source(work)
    program, folders = build(src, work, a.jobs), libraries(lathe, work)
    frozen(1, os.path.join(work, "grey.pb"))
    frozen(3, os.path.join(work, "colour.pb"))
    native(os.path.join(work, "double.model"))
    frames(os.path.join(work, "frames.raw"))
    run, pixels = Filter(program, work), WIDTH * HEIGHT
    ok = [same_pixels(run, folders, "grey.pb", "grayf32", "gray", pixels), same_pixels(run, folders, "grey.pb", "yuv420p", "yuv420p", pixels),
          same_pixels(run, folders, "colour.pb", "rgb24", "rgb24", 3 * pixels), same_refusal(run, folders, "double.model", "grayf32")]
    return 0 if all(ok) else 1


if __name__ == "__main__":
    sys.exit(main())
