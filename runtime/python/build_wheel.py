"""What `pip install .` calls: builds the package in build/ as scripts/build does (only what is missing), and packs build/python/lathe into a
wheel with the libraries beside it. The wheel is for this version of Python and this system: protobuf, abseil, ICU, RE2 and the image
libraries are Debian's packages (scripts/install-deps)."""
import base64
import hashlib
import os
import re
import subprocess
import sys
import sysconfig
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# a test packs the package of its own build, as it is
AS_BUILT = os.environ.get("LATHE_WHEEL_AS_BUILT")
PACKAGE = os.path.join(AS_BUILT or os.path.join(ROOT, "build"), "python", "lathe")


def _project():
    with open(os.path.join(ROOT, "pyproject.toml"), encoding="utf-8") as f:
        text = f.read()
    return {key: re.search(rf'^{key} = "(.*)"', text, re.M).group(1) for key in ("name", "version", "description", "requires-python")}


def _tag():
    python = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    platform = re.sub("[-.]", "_", sysconfig.get_platform())
    return f"{python}-{python}-{platform}"


def _metadata():
    p = _project()
    return (f"Metadata-Version: 2.1\nName: {p['name']}\nVersion: {p['version']}\nSummary: {p['description']}\n"
            f"Requires-Python: {p['requires-python']}\nRequires-Dist: numpy>=1.24\nProvides-Extra: types\n"
            'Requires-Dist: ml_dtypes; extra == "types"\n')


def _build():
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    if not AS_BUILT:
        subprocess.run([os.path.join(ROOT, "scripts", "build"), "lathe_python"], check=True)
    if not os.path.exists(os.path.join(PACKAGE, "_lathe" + suffix)):
        raise SystemExit(f"{PACKAGE} has no _lathe{suffix}: the build says why (nanobind from PyPI is missing, or its python is another "
                         "version than this one)")


def get_requires_for_build_wheel(config_settings=None):
    return []


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    name = f"{_project()['name']}-{_project()['version']}.dist-info"
    folder = os.path.join(metadata_directory, name)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "METADATA"), "w", encoding="utf-8") as f:
        f.write(_metadata())
    with open(os.path.join(folder, "WHEEL"), "w", encoding="utf-8") as f:
        f.write(_wheel())
    return name


def _wheel():
    return f"Wheel-Version: 1.0\nGenerator: lathe\nRoot-Is-Purelib: false\nTag: {_tag()}\n"


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    _build()
    p = _project()
    info = f"{p['name']}-{p['version']}.dist-info"
    name = f"{p['name']}-{p['version']}-{_tag()}.whl"
    record = []
    with zipfile.ZipFile(os.path.join(wheel_directory, name), "w", zipfile.ZIP_DEFLATED) as wheel:

        def add(path, data, mode=0o644):
            entry = zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0))
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{path},sha256={digest},{len(data)}")

        for file in sorted(os.listdir(PACKAGE)):
            path = os.path.join(PACKAGE, file)
            if os.path.isfile(path):
                with open(path, "rb") as f:
                    add(f"lathe/{file}", f.read(), 0o755 if ".so" in file else 0o644)
        with open(os.path.join(ROOT, "LICENSE"), "rb") as f:
            add(f"{info}/LICENSE", f.read())
        add(f"{info}/METADATA", _metadata().encode())
        add(f"{info}/WHEEL", _wheel().encode())
        record.append(f"{info}/RECORD,,")
        wheel.writestr(f"{info}/RECORD", "\n".join(record) + "\n")
    return name
