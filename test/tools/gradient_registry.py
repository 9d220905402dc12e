"""gradient_registry.py DOCS: TensorFlow's registry of gradients against docs/generated. Each operation that TensorFlow has a gradient of
and that Lathe runs has a rule, or stands among the at most 15 that have none, or gradients end at it."""
import os
import re
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow as tf  # noqa: F401: registers gradients
from tensorflow.python.framework import ops
from tensorflow.python.ops import cudnn_rnn_grad, data_flow_grad  # noqa: F401: so do these, when they are loaded

MOST_WITHOUT = 15


def main():
    folder = sys.argv[1]
    registry = ops.gradient_registry._registry
    differentiable = {name for name in registry if registry[name]["type"] is not None}
    text = open(os.path.join(folder, "gradients.md")).read()
    ours = set(re.findall(r"\w+", re.search(r"operations with a gradient: (.*?)\.\n\n", text, re.S).group(1)))
    without, ended = (set(re.findall(r"^\| (\w+) \| (?!---|why|where)", part, re.M)) for part in text.split("| op | where gradients end |"))
    runs = {op for op, how in re.findall(r"^\| (\w+) \| (\w+) \|", open(os.path.join(folder, "ops.md")).read(), re.M) if how != "none"}
    unknown = sorted((differentiable & runs) - ours - without - ended)
    print("TensorFlow registers %d operations, %d with a gradient, of which Lathe runs %d: %d have one here, gradients end at %d, %d have none"
          % (len(registry), len(differentiable), len(differentiable & runs), len(differentiable & runs & ours),
             len(differentiable & runs & ended), len(differentiable & runs & without)))
    if unknown:
        print("neither a gradient nor a reason:", ", ".join(unknown))
    return 1 if unknown or len(without) > MOST_WITHOUT else 0


if __name__ == "__main__":
    sys.exit(main())
