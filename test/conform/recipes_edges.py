"""What TensorFlow makes of operands at the edge of what an operation takes: no elements, indices that nothing reads, NaN.

Recipes as in recipes.py; several of one operation have a label each.
"""
import numpy as np
import tensorflow.compat.v1 as tf

from recipes import Feeds, raw, recipe


def edge(op, label, types=("float32",)):
    """A recipe whose case is called OP.LABEL.TYPE."""
    def add(build):
        build.label = label
        return recipe(op, types)(build)
    return add


def gather_of_nothing(label, shape, indices, axis, batch=0, types=("float32",)):
    """Indices out of range where none would copy anything; fed with and without known sizes."""
    @edge("GatherV2", label, types)
    def build(dtype):
        feeds, fetches = Feeds(), []
        for known in (True, False):
            params = feeds.add(np.zeros(shape, tf.as_dtype(dtype).as_numpy_dtype), known=known)
            at = feeds.add(np.array(indices, np.int32), known=known)
            fetches.append(raw.GatherV2(params=params, indices=at, axis=axis, batch_dims=batch))
        return [{"feeds": feeds, "fetches": fetches}]


gather_of_nothing("slices_of_nothing", (7, 0, 0), [100], 0, types=("float32", "string"))
gather_of_nothing("no_slices", (0, 7), [100], 1)
gather_of_nothing("no_slices_of_a_batch", (2, 0, 7), [[100], [-1]], 2, 1)
gather_of_nothing("batches_of_nothing", (2, 7, 0), [[100], [1]], 1, 1)
gather_of_nothing("no_rows_of_nothing", (0, 0), [1], 0)


@edge("Gather", "slices_of_nothing")
def gather_v1(dtype):
    feeds = Feeds()
    fetches = [raw.Gather(params=feeds.add(np.zeros((7, 0, 0), dtype), known=known), indices=feeds.add(np.array([100], np.int32)))
               for known in (True, False)]
    return [{"feeds": feeds, "fetches": fetches}]


@edge("GatherNd", "no_tuples")
def gather_no_tuples(dtype):
    feeds = Feeds()
    return [{"feeds": feeds, "fetches": [raw.GatherNd(params=feeds.add(np.zeros((3, 0), dtype)),
                                                      indices=feeds.add(np.zeros((0, 1), np.int32)))]}]
