"""Loads the extension. TensorFlow's wheel puts its own protobuf into the process's global symbols; RTLD_DEEPBIND makes the extension and
its libraries take theirs first, whichever of the two is loaded first."""
import os
import sys

_flags = sys.getdlopenflags()
sys.setdlopenflags(os.RTLD_NOW | os.RTLD_LOCAL | os.RTLD_DEEPBIND)
try:
    from . import _lathe  # noqa: F401
finally:
    sys.setdlopenflags(_flags)
