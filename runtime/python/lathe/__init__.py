"""Lathe: TensorFlow graphs, run in sessions and compiled ahead of time.

    with lathe.Session("model.pb") as session:
        probabilities = session.run("probabilities:0", {"image:0": image})

    model = lathe.load_saved_model("folder").signatures["serving_default"]
    lathe.compile("folder", "digits", emit="so")
    digits = lathe.load("digits.so")
"""
from . import _load  # first: how the extension is loaded matters
from . import errors
from ._lathe import __version__
from ._values import Tensor, from_dlpack
from .compiler import Compiled, compile
from .models import Quantization, SavedModel, Signature, TensorSpec, load_saved_model
from .modules import Entry, Module, load
from .session import DeviceAttributes, Graph, InteractiveSession, NodeStats, RunMetadata, RunOptions, Session

__all__ = [
    "Compiled", "DeviceAttributes", "Entry", "Graph", "InteractiveSession", "Module", "NodeStats", "Quantization", "RunMetadata", "RunOptions",
    "SavedModel", "Session", "Signature", "Tensor", "TensorSpec", "__version__", "compile", "errors", "from_dlpack", "load", "load_saved_model"
]
