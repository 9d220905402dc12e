"""make.py --cuda FOLDER --cutlass FOLDER

Compiles products.cu and warpgroups.cu to PTX beside them with NVRTC, which needs no device, in some six minutes and 6 GB. FOLDER is where
wheels of PyPI were unpacked: nvidia-cuda-nvrtc, -runtime, -crt and -cccl, all 13.0 (nvidia/cu13), and nvidia-cutlass 4.2 (CuTe is in
cutlass_library/source/include):

    pip download --no-deps -d W nvidia-cuda-nvrtc==13.0.88 nvidia-cuda-runtime==13.0.96 nvidia-cuda-crt==13.0.88 nvidia-cuda-cccl==13.0.85 \\
        nvidia-cutlass==4.2.0.0
    for w in W/*.whl; do unzip -qo $w -d W; done
    python3 test/cuda/Inputs/cute/make.py --cuda W --cutlass W
"""
import argparse
import ctypes
import os
import re
import sys


def compiled(library, file, options):
    with open(file, "rb") as f:
        source = f.read()
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    library.nvrtcCreateProgram(ctypes.byref(program), source, os.path.basename(file).encode(), 0, None, None)
    arguments = (ctypes.c_char_p * len(options))(*[o.encode() for o in options])
    failed = library.nvrtcCompileProgram(program, len(options), arguments)
    if failed:
        library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        library.nvrtcGetProgramLog(program, log)
        sys.exit(log.value.decode())
    library.nvrtcGetPTXSize(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    library.nvrtcGetPTX(program, text)
    # nearly all of the text are constants of the headers that nobody reads
    lines = [line.rstrip() for line in text.value.decode().splitlines() if line.strip() and not line.lstrip().startswith("//")]
    constants = [bool(re.match(r"\.(global|const)\b", line)) for line in lines]
    used = set(re.findall(r"[\w$]+", "\n".join(line for line, constant in zip(lines, constants) if not constant)))
    name = re.compile(r"([\w$]+)(\[\d*\])*( =.*)?;$")
    return "\n".join(line for line, constant in zip(lines, constants) if not constant or name.search(line).group(1) in used) + "\n"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--cuda", required=True)
    p.add_argument("--cutlass", required=True)
    p.add_argument("--only", default="", help="products or warpgroups")
    a = p.parse_args()
    cuda, here = os.path.join(a.cuda, "nvidia", "cu13"), os.path.dirname(os.path.abspath(__file__))
    ctypes.CDLL(os.path.join(cuda, "lib", "libnvrtc-builtins.so.13.0"), mode=ctypes.RTLD_GLOBAL)
    library = ctypes.CDLL(os.path.join(cuda, "lib", "libnvrtc.so.13"))
    includes = [os.path.join(cuda, "include"), os.path.join(cuda, "include", "cccl"), os.path.join(a.cutlass, "cutlass_library", "source", "include")]
    for name, arch in ("products", "compute_80"), ("warpgroups", "compute_90a"):
        if a.only not in ("", name):
            continue
        options = ["-std=c++17", "-default-device", "-arch=" + arch, "-w", *("-I" + i for i in includes)]
        with open(os.path.join(here, name + ".ptx"), "w") as f:
            f.write(compiled(library, os.path.join(here, name + ".cu"), options))


if __name__ == "__main__":
    main()
