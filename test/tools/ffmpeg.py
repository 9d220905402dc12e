"""ffmpeg.py --lathe BUILD-FOLDER --work FOLDER: Debian's ffmpeg, unchanged, on our libtensorflow and on TensorFlow's.

Fetches the source with apt-get, builds it once for each library with what its filter dnn_processing needs, and sends frames through
three models: graphs of grey and of coloured frames, and one of ffmpeg's own format, which the filter makes a graph of by
TF_NewOperation. Fails where a pixel differs by more than 1, or more than one in 10,000 at all. Runs in a python that has TensorFlow."""
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


def run(args, log, **options):
    with open(log, "w") as out:
        if subprocess.run(args, stdout=out, stderr=subprocess.STDOUT, **options).returncode:
            sys.exit("%s failed:\n%s" % (args[0], "".join(open(log).readlines()[-20:])))


def source(work):
    """The folder of the unpacked source; fetched where it is not there yet."""
    folder = os.path.join(work, "source")
    if os.path.exists(os.path.join(folder, "configure")):
        return folder
    lists = os.path.join(work, "lists")
    os.makedirs(os.path.join(lists, "partial"), exist_ok=True)
    sources = os.path.join(work, "sources.list")
    open(sources, "w").write("deb-src [signed-by=%s] %s\n" % (KEYRING, MIRROR))
    # lists of its own, so that the machine's stay as they are
    apt = ["apt-get", "-q", "-o", "Dir::Etc::SourceList=" + sources, "-o", "Dir::Etc::SourceParts=/dev/null", "-o", "Dir::State::Lists=" + lists]
    run(apt + ["update"], os.path.join(work, "update.log"))
    run(apt + ["source", "--download-only", "ffmpeg"], os.path.join(work, "source.log"), cwd=work)
    run(["dpkg-source", "--no-check", "-x", glob.glob(os.path.join(work, "ffmpeg_*.dsc"))[0], folder], os.path.join(work, "unpack.log"))
    return folder


def libraries(lathe, work):
    """Folders of headers and of libraries, by whose they are."""
    import tensorflow
    wheel, links = os.path.dirname(tensorflow.__file__), os.path.join(work, "tensorflow-lib")
    # the wheel has no libtensorflow.so; its functions are in two libraries of other names
    os.makedirs(links, exist_ok=True)
    for name, file in (("libtensorflow.so", "libtensorflow_cc.so.2"), ("libtensorflow_framework.so", "libtensorflow_framework.so.2")):
        if not os.path.lexists(os.path.join(links, name)):
            os.symlink(os.path.join(wheel, file), os.path.join(links, name))
    here = os.path.dirname(os.path.abspath(__file__))
    return {"lathe": (os.path.join(here, "../../runtime/c_api/include"), os.path.join(lathe, "lib"), [os.path.join(lathe, "lib")], ""),
            "tensorflow": (os.path.join(wheel, "include"), links, [wheel], "-ltensorflow_framework")}


def build(src, whose, include, library, paths, extra, work, jobs):
    folder = os.path.join(work, whose)
    program = os.path.join(folder, "ffmpeg")
    if os.path.exists(program):
        return program
    os.makedirs(folder, exist_ok=True)
    compiler = ["--cc=ccache gcc"] if shutil.which("ccache") else []
    run([os.path.join(src, "configure"), "--disable-everything", "--disable-autodetect", "--disable-doc", "--disable-x86asm", "--disable-debug",
         "--disable-network", "--enable-libtensorflow", "--enable-filter=dnn_processing,format,scale", "--enable-protocol=file", "--enable-demuxer=rawvideo",
         "--enable-muxer=rawvideo", "--enable-decoder=rawvideo", "--enable-encoder=rawvideo", "--disable-ffprobe", "--disable-ffplay",
         "--extra-cflags=-I" + include, "--extra-libs=" + extra,
         "--extra-ldflags=-L%s %s" % (library, " ".join("-Wl,-rpath,%s -Wl,-rpath-link,%s" % (p, p) for p in paths))] + compiler,
        os.path.join(work, whose + "-configure.log"), cwd=folder)
    run(["make", "-j%d" % jobs, "ffmpeg"], os.path.join(work, whose + "-make.log"), cwd=folder)
    return program


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


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--lathe", required=True, help="the build folder")
    p.add_argument("--work", required=True)
    p.add_argument("--jobs", type=int, default=2)
    a = p.parse_args()
    work, lathe = os.path.abspath(a.work), os.path.abspath(a.lathe)
    os.makedirs(work, exist_ok=True)
    src = source(work)
    programs = {whose: build(src, whose, *where, work, a.jobs) for whose, where in libraries(lathe, work).items()}
    frozen(1, os.path.join(work, "grey.pb"))
    frozen(3, os.path.join(work, "colour.pb"))
    native(os.path.join(work, "double.model"))
    frames(os.path.join(work, "frames.raw"))
    bad = 0
    for model, pixels, size in (("grey.pb", "gray", 1), ("grey.pb", "yuv420p", 1.5), ("colour.pb", "rgb24", 3), ("double.model", "gray", 4)):
        out, seconds = {}, {}
        for whose, program in programs.items():
            raw = os.path.join(work, whose + ".raw")
            start = time.time()
            run([program, "-nostdin", "-y", "-f", "rawvideo", "-pix_fmt", "rgb24", "-s", "%dx%d" % (WIDTH, HEIGHT), "-i", os.path.join(work, "frames.raw"),
                 "-vf", "format=%s,dnn_processing=dnn_backend=tensorflow:model=%s:input=x:output=y" % (pixels, os.path.join(work, model)),
                 "-pix_fmt", pixels, "-f", "rawvideo", raw], os.path.join(work, whose + "-run.log"))
            seconds[whose] = time.time() - start
            out[whose] = np.fromfile(raw, np.uint8).astype(int)
        ours, theirs = out["lathe"], out["tensorflow"]
        if ours.size != theirs.size or ours.size != int(WIDTH * HEIGHT * size) * FRAMES or theirs.std() < 5:
            sys.exit("%s, %s: %d and %d bytes, deviation %.1f" % (model, pixels, ours.size, theirs.size, theirs.std()))
        away = np.abs(ours - theirs)
        print("%s, %s: %d of %d pixels differ, by %d at most; %.1f s with Lathe, %.1f s with TensorFlow"
              % (model, pixels, np.count_nonzero(away), away.size, away.max(), seconds["lathe"], seconds["tensorflow"]))
        bad += away.max() > 1 or np.count_nonzero(away) * 10000 > away.size
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
