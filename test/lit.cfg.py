import glob
import os
import shutil
import subprocess

import lit.formats

config.name = "lathe"
config.test_format = lit.formats.ShTest(True)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs", "data", "tools", "lit.cfg.py", "unit"]
config.test_source_root = os.path.join(config.lathe_src_root, "test")
config.test_exec_root = os.path.join(config.lathe_obj_root, "test")

config.environment["PATH"] = os.pathsep.join(
    [os.path.join(config.lathe_obj_root, "bin"), config.llvm_tools_dir, config.environment["PATH"]])
# one place for what a test may name
config.substitutions += [
    ("%python_lathe", "env PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=" + os.path.join(config.lathe_obj_root, "python") + " " + config.python),
    ("%python", config.python),
    ("%compare", config.python + " " + os.path.join(config.test_source_root, "tools", "compare_npz.py")),
    ("%check_models", config.python + " " + os.path.join(config.test_source_root, "tools", "check_models.py") + " --lathe "
     + os.path.join(config.lathe_obj_root, "bin", "lathe")),
    ("%samples", os.path.join(config.test_source_root, "data", "samples")),
    ("%cuda_driver", os.path.join(config.lathe_obj_root, "lib", "emulated-cuda", "libcuda.so.1")),
    ("%src", config.lathe_src_root),
    ("%build", config.lathe_obj_root),
    ("%cxx", config.host_cxx),
    ("%cc", config.host_cc),
]
if os.environ.get("LATHE_SLOW_TESTS"):
    config.available_features.add("slow")
if os.path.exists(os.path.join(config.lathe_obj_root, "bin", "lathe-asan")):
    config.available_features.add("asan")
# the Python package is left out where nanobind cannot be had
if glob.glob(os.path.join(config.lathe_obj_root, "python", "lathe", "_lathe*.so")):
    config.available_features.add("python")
if subprocess.run([config.python, "-c", "import ensurepip, venv"], stderr=subprocess.DEVNULL).returncode == 0:
    config.available_features.add("venv")
if getattr(config, "own_llvm", False):
    config.available_features.add("own-llvm")
with open("/proc/cpuinfo") as f:
    flags = f.read()
for feature in ("avx2", "avx512f", "avx512_bf16"):
    if feature in flags:
        config.available_features.add(feature)

# NVIDIA's assembler, which only machine code in objects needs
if os.environ.get("LATHE_PTXAS") or shutil.which("ptxas") or (os.environ.get("CUDA_HOME") and os.path.exists(os.environ["CUDA_HOME"] + "/bin/ptxas")):
    config.available_features.add("ptxas")
    for name in ("LATHE_PTXAS", "LATHE_NVDISASM", "CUDA_HOME"):
        if os.environ.get(name):
            config.environment[name] = os.environ[name]

# programs for AArch64 run where an emulator and a cross compiler are installed
if shutil.which("qemu-aarch64") and shutil.which("aarch64-linux-gnu-gcc"):
    config.available_features.add("qemu-aarch64")

# tests that exchange files with TensorFlow run where a python has it
tf_python = os.environ.get("LATHE_TF_PYTHON", config.python)
if subprocess.run([tf_python, "-c", "import importlib.util as u, sys; sys.exit(u.find_spec('tensorflow') is None)"]).returncode == 0:
    config.available_features.add("tensorflow")
    config.substitutions.append(("%tf_python", tf_python))
