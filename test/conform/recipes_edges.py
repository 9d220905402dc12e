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


@edge("CumulativeLogsumexp", "nan", ["float32", "float64", "float16", "bfloat16"])
def logsumexp_of_nan(dtype):
    n, i = np.nan, np.inf
    rows = [[1, n, 2, 3, 4], [n, 1, 2, n, n], [n, n, 1, n, 2], [1, i, 2, 3, 1], [i, n, 2, 1, 1], [-i, n, 2, n, -i], [n, -i, 1, n, 1],
            [1, -i, n, 2, n], [1, i, i, 2, n], [i, -i, 1, 1, 1], [1, 2, n, n, n]]
    long = np.tile(np.array(rows[0] + rows[1] + rows[6]), 5)[None]
    feeds = Feeds()
    fetches = []
    for x in (np.array(rows), np.array(rows).T, long):
        x = feeds.add(x.astype(tf.as_dtype(dtype).as_numpy_dtype))
        for axis, exclusive, reverse in ((0, False, False), (1, False, False), (1, True, False), (1, False, True)):
            fetches.append(raw.CumulativeLogsumexp(x=x, axis=axis, exclusive=exclusive, reverse=reverse))
    return [{"feeds": feeds, "fetches": fetches}]
