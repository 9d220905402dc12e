"""check_rooms.py ROOT: fails when an include between rooms points the wrong way, or a folder has too many files to find one's way in."""
import os
import re
import sys

ALLOWED = {
    "base": set(),
    "ops": {"base"},
    "graph": {"base", "ops", "proto"},
    "dialects": {"base", "ops"},
    "passes": {"base", "ops", "dialects", "runtime/abi"},
    "compiler": {"base", "ops", "graph", "dialects", "passes", "proto", "runtime/abi"},
    "runtime": {"base", "ops", "graph"},
    "tools": {"base", "ops", "graph", "dialects", "passes", "compiler", "runtime", "proto"},
}
# Inside passes/codegen: what lies behind the seam, and what of it each folder may include. Others see the files of
# passes/codegen itself alone (Backend.h, Plan.h); Backends.cpp lists the backends.
# The code that all backends share lies there too.
BEHIND = {
    "element": set(),
    "library": {"element/"},
    "cpu": {"element/", "library/", "plain/Nest.h"},
    "plain": {"element/", "library/"},
    "nvptx": {"element/", "library/", "plain/"},
}
# Rooms of the second level: what of its own first level each may include. Rooms that are not named include none.
SECOND = {
    "dialects": {"graph": {"types"}, "hlo": {"types"}, "kernel": {"hlo"}},
    "passes": {
        "cluster": {"legalize"},
        "lower": {"codegen"},
        "quantize": {"legalize", "simplify"},
        "simplify": {"codegen"},
    },
    "compiler": {
        "driver": {"emit", "frontend", "quantize"},
        "export": {"import"},
        "frontend": {"import"},
        "hosted": {"driver", "frontend", "import", "support"},
        "import": {"frontend"},
        "jit": {"driver", "emit", "export", "import", "support"},
        "library": {"driver", "export", "frontend", "hosted", "import", "jit", "quantize", "support"},
        "quantize": {"driver"},
    },
    "runtime": {
        "c_api": {"core", "session"},
        "cpu": {"abi"},
        "cuda": {"abi"},
        "hosted": {"abi", "cpu", "cuda", "session"},
        "kernels": {"core"},
        "python": {"abi", "core", "cpu", "kernels", "session"},
        "session": {"abi", "core", "cpu", "cuda"},
        "tflite_api": {"abi", "core", "cpu", "session"},
    },
}
MOST_FILES = 60  # of one folder: .cpp, .h and .td
root = sys.argv[1]
bad = 0


def second_level(path):
    """The second-level room of a file, if it is in one: a/b/c.h is in b."""
    parts = path.split("/")
    return parts[1] if len(parts) > 2 else None


def reaches_behind(path, target):
    """Whether the file at `path` (from the root) may not include `target`, which lies behind the seam."""
    m = re.match(r"passes/codegen/((\w+)/.*)", target)
    if not m or m.group(2) not in BEHIND or path == "passes/codegen/Backends.cpp":
        return False
    own = re.match(r"passes/codegen/(\w+)/", path)
    if not own:
        return True
    return m.group(2) != own.group(1) and not any(m.group(1).startswith(a) for a in BEHIND[own.group(1)])


for room, allowed in ALLOWED.items():
    for folder, _, files in os.walk(os.path.join(root, room)):
        if sum(name.endswith((".cpp", ".h", ".td")) for name in files) > MOST_FILES:
            print(f"{folder}: more than {MOST_FILES} files; rooms inside of it would tell more")
            bad = 1
        for name in files:
            if not name.endswith((".h", ".cpp", ".c", ".inc")):
                continue
            path = os.path.join(folder, name)
            for line in open(path, encoding="utf-8"):
                m = re.match(r'\s*#include "([a-z]+/[^"]+)"', line)
                if not m:
                    if room == "runtime" and re.match(r'\s*#include "(mlir|llvm)', line):
                        print(f"{path}: the runtime sees no MLIR or LLVM: {line.strip()}")
                        bad = 1
                    continue
                target = m.group(1)
                if reaches_behind(os.path.relpath(path, root).replace(os.sep, "/"), target):
                    print(f"{path}: {target} lies behind passes/codegen/Backend.h")
                    bad = 1
                top = target.split("/")[0]
                own, other = second_level(os.path.relpath(path, root).replace(os.sep, "/")), second_level(target)
                if top == room and top in SECOND and own and other and own != other and other not in SECOND[top].get(own, ()):
                    print(f"{path}: {top}/{own} must not include {target}")
                    bad = 1
                if top in ("mlir", "llvm", "gtest"):
                    if room in ("base", "ops", "graph", "runtime"):
                        print(f"{path}: {room} sees no MLIR or LLVM: {target}")
                        bad = 1
                elif top != room and top in ALLOWED and not any(target.startswith(a + "/") for a in allowed):
                    print(f"{path}: {room} must not include {target}")
                    bad = 1
sys.exit(bad)
