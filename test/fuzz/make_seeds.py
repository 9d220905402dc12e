"""Seeds of a fuzz target from the samples, the importer's models and, where they lie beside the repository, the
conformance cases: make_seeds.py TARGET FOLDER --replay build/bin/fuzz-replay"""
import argparse
import glob
import hashlib
import os
import subprocess
import zipfile

root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))



def graphs(cases):
    for path in sorted(glob.glob(root + "/test/data/**/graph.pb", recursive=True)):
        yield open(path, "rb").read()
    for path in sorted(glob.glob(cases + "/*.zip")):
        with zipfile.ZipFile(path) as archive:
            # one case in three is plenty
            for name in sorted(n for n in archive.namelist() if n.endswith("graph.pb"))[::3]:
                yield archive.read(name)


def folders(limit):
    for path in sorted(glob.glob(root + "/test/data/**/saved_model.pb", recursive=True)):
        base = os.path.dirname(path)
        index = glob.glob(base + "/variables/*.index")
        data = glob.glob(base + "/variables/*.data-*")
        if index and data and os.path.getsize(data[0]) < limit:
            yield path, index[0], data[0]


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return value, at


def encode(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def without(message, path):
    """A serialised message without the field at the path of field numbers."""
    out, at = b"", 0
    while at < len(message):
        start = at
        tag, at = varint(message, at)
        if tag & 7 != 2:
            at = varint(message, at)[1] if tag & 7 == 0 else at + (8 if tag & 7 == 1 else 4)
            out += message[start:at]
            continue
        size, at = varint(message, at)
        content, at = message[at:at + size], at + size
        if tag >> 3 == path[0]:
            if len(path) == 1:
                continue
            content = without(content, path[1:])
        out += encode(tag) + encode(len(content)) + content
    return out


def main():
    p = argparse.ArgumentParser()
    p.add_argument("target")
    p.add_argument("folder")
    p.add_argument("--replay", required=True)
    p.add_argument("--limit", type=int, default=4000, help="largest seed: larger inputs slow everything down")
    p.add_argument("--cases", default=root + "/../shared/conformance/cases")
    a = p.parse_args()
    os.makedirs(a.folder, exist_ok=True)

    def write(content):
        with open(os.path.join(a.folder, hashlib.sha1(content).hexdigest()), "wb") as f:
            f.write(content)

    if a.target in ("saved_model", "table"):
        for model, index, data in folders(15 * a.limit):
            out = os.path.join(a.folder, "seed")
            if a.target == "saved_model":
                # the list of ops and the object graph are most of it, and nothing that the importer reads
                stripped = without(without(open(model, "rb").read(), (2, 1, 2)), (2, 7))
                model = out + ".model"
                with open(model, "wb") as f:
                    f.write(stripped)
            subprocess.check_call([a.replay, "pack", model if a.target == "saved_model" else os.devnull, index, data, out])
            if a.target == "saved_model":
                os.remove(model)
            content = open(out, "rb").read()
            os.remove(out)
            write(content)
        return
    for graph in graphs(a.cases):
        if len(graph) > a.limit:
            continue
        if a.target == "text":
            graph = subprocess.run([a.replay, "totext"], input=graph, stdout=subprocess.PIPE, check=True).stdout
            if not graph or len(graph) > a.limit:
                continue
        write(graph)


main()
