"""run_conformance.py CORPUS_FOLDER ARGS...: the corpus' own runner, with one thing mended for Debian's numpy 1.24,
which refuses to view a rank-0 array as another type.
"""
import copy
import os
import runpy
import sys

folder = os.path.abspath(sys.argv[1])
sys.path.insert(0, folder)
import corpus  # noqa: E402

plain = corpus.Tensor.values


def values(self):
    if self.data.ndim:
        return plain(self)
    one = copy.copy(self)
    one.data = self.data.reshape(1)
    return plain(one).reshape(())


corpus.Tensor.values = values
script = os.path.join(folder, "run_cases.py")
sys.argv = [script] + sys.argv[2:]
runpy.run_path(script, run_name="__main__")
