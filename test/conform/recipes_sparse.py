"""Recipes for sparse matrices in compressed rows, composite tensors and StatelessShuffle; see recipes.py."""
import itertools

import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.core.protobuf import composite_tensor_variant_pb2, struct_pb2

from recipes import COMPLEX, FLOATS, INTEGERS, WIDE, Feeds, outputs_of, raw, recipe, values

TYPES = WIDE + COMPLEX


class Numbers:
    """One vector of a type that is fed, and what is cut out of it; so a case has few files."""

    def __init__(self, dtype):
        self.feeds, self.dtype, self.cuts, self.fetches = Feeds(), dtype, 0, []
        self.fed = self.feeds.add(values((61,), dtype, 1), dtype)

    def dense(self, shape):
        count, self.cuts = int(np.prod(shape)), self.cuts + 7
        return tf.reshape(tf.slice(self.fed, [self.cuts % (62 - count)], [count]), shape)

    def matrix(self, shape, seed):
        """Two fifths of the entries of a dense tensor."""
        where = np.argwhere(np.random.default_rng(seed).uniform(size=shape) < 0.4)
        return raw.DenseToCSRSparseMatrix(dense_input=self.dense(shape), indices=where)

    def read(self, m, batches=0):
        """Notes all that can be read of a matrix."""
        self.fetches += outputs_of(raw.CSRSparseMatrixToSparseTensor(sparse_matrix=m, type=self.dtype))
        for b in range(batches):
            self.fetches += outputs_of(raw.CSRSparseMatrixComponents(csr_sparse_matrix=m, index=b, type=self.dtype))
        if batches:
            self.fetches += [raw.SparseMatrixNNZ(sparse_matrix=m), raw.CSRSparseMatrixToDense(sparse_input=m, type=self.dtype)]

    def steps(self):
        """One fetch a type: all that was noted, end to end."""
        kinds = sorted({t.dtype.name for t in self.fetches})
        return [{"feeds": self.feeds, "fetches": [tf.concat([tf.reshape(t, [-1]) for t in self.fetches if t.dtype.name == kind], 0)
                                                  for kind in kinds]}]


@recipe("DenseToCSRSparseMatrix", TYPES)
def from_dense(dtype):
    n = Numbers(dtype)
    n.read(n.matrix((4, 5), 1), 1)
    n.read(n.matrix((3, 2, 5), 2), 3)
    return n.steps()


@recipe("SparseTensorToCSRSparseMatrix", TYPES)
def from_sparse(dtype):
    n = Numbers(dtype)
    for shape, where in (((3, 4), [[0, 1], [0, 3], [2, 0]]), ((4, 2, 3), [[1, 0, 2], [1, 1, 0], [3, 0, 0]]), ((2, 2), np.zeros((0, 2)))):
        where = np.asarray(where, np.int64)
        m = raw.SparseTensorToCSRSparseMatrix(indices=where, values=n.dense((len(where),)), dense_shape=np.asarray(shape, np.int64))
        n.read(m, shape[0] if len(shape) == 3 else 1)
    return n.steps()


@recipe("SparseMatrixTranspose", TYPES)
def transpose(dtype):
    n = Numbers(dtype)
    for shape, conjugate in itertools.product([(4, 5), (2, 3, 4)], [False, True]):
        n.read(raw.SparseMatrixTranspose(input=n.matrix(shape, 4), type=dtype, conjugate=conjugate))
    return n.steps()


def forms():
    for a, b in itertools.product(["", "transpose", "adjoint"], repeat=2):
        yield {k: True for k in ([a + "_a"] if a else []) + ([b + "_b"] if b else [])}


def operands(attrs, batch):
    turned = {k[-1] for k in attrs}
    return batch + ((5, 4) if "a" in turned else (4, 5)), batch + ((3, 5) if "b" in turned else (5, 3))


@recipe("SparseMatrixMatMul", TYPES)
def matmul(dtype):
    n = Numbers(dtype)
    for i, attrs in enumerate(forms()):
        a, b = operands(attrs, (2,) if i % 2 else ())
        n.fetches.append(raw.SparseMatrixMatMul(a=n.matrix(a, i), b=n.dense(b), transpose_output=i % 3 == 1, conjugate_output=i % 4 > 1,
                                                **attrs))
    return n.steps()


@recipe("SparseMatrixSparseMatMul", TYPES)
def sparse_matmul(dtype):
    n = Numbers(dtype)
    for i, attrs in enumerate(forms()):
        a, b = operands(attrs, (2,) if i % 2 else ())
        n.read(raw.SparseMatrixSparseMatMul(a=n.matrix(a, i), b=n.matrix(b, i + 9), type=dtype, **attrs))
    return n.steps()


@recipe("SparseMatrixSparseCholesky", TYPES)
def cholesky(dtype):
    n = Numbers(dtype)
    for batch, order in ((), [4, 0, 2, 5, 1, 3]), ((1,), [[5, 3, 1, 4, 2, 0]]):
        half = raw.CSRSparseMatrixToDense(sparse_input=n.matrix(batch + (6, 6), 7), type=dtype)
        data = tf.matmul(half, half, adjoint_b=True) + tf.constant(9 * np.eye(6), dtype)
        m = raw.DenseToCSRSparseMatrix(dense_input=data, indices=tf.where(tf.not_equal(data, tf.zeros_like(data))))
        n.read(raw.SparseMatrixSparseCholesky(input=m, permutation=np.asarray(order, np.int32), type=dtype))
    return n.steps()


@recipe("SparseMatrixOrderingAMD")
def ordering(dtype):
    """Of random patterns of several densities, a grid and a star; with and without entries on the diagonal."""
    feeds, fetches = Feeds(), []
    patterns = [np.random.default_rng(n).uniform(size=(n, n)) < share for n, share in
                ((1, 1), (2, 0.5), (3, 1), (9, 0.2), (30, 0.05), (30, 0.2), (120, 0.03), (200, 0.4))]
    grid, star = np.eye(49, dtype=bool), np.eye(60, dtype=bool)
    for i in range(49):
        grid[i, [j for j in (i - 7, i - 1 if i % 7 else -1) if j >= 0]] = True
    star[:, 0] = True
    for i, pattern in enumerate(patterns + [grid, star]):
        if i != 3:
            pattern |= np.eye(len(pattern), dtype=bool)
        where = np.argwhere(np.tril(pattern))
        m = raw.SparseTensorToCSRSparseMatrix(indices=feeds.add(where), values=tf.ones([len(where)], dtype),
                                              dense_shape=np.array(pattern.shape, np.int64))
        fetches.append(raw.SparseMatrixOrderingAMD(input=m))
    batch = np.argwhere(np.stack([patterns[4], patterns[5]]))
    m = raw.SparseTensorToCSRSparseMatrix(indices=batch, values=tf.ones([len(batch)], dtype), dense_shape=np.array([2, 30, 30], np.int64))
    return [{"feeds": feeds, "fetches": [tf.concat(fetches, 0), raw.SparseMatrixOrderingAMD(input=m)]}]


@recipe("Conj", COMPLEX)
def conj(dtype):
    n = Numbers(dtype)
    n.read(raw.Conj(input=n.matrix((3, 4), 5)))
    return n.steps()


def composite(spec):
    return composite_tensor_variant_pb2.CompositeTensorVariantMetadata(
        type_spec_proto=struct_pb2.TypeSpecProto(type_spec_class=spec)).SerializeToString()


@recipe("CompositeTensorVariantToComponents", ["float32", "string", "bool", "int64"])
def to_components(dtype):
    feeds = Feeds()
    data = np.array([b"a", b"", b"cd"], object) if dtype == "string" else values((3,), dtype, 1)
    inner = raw.CompositeTensorVariantFromComponents(components=[feeds.add(data, dtype), feeds.add(np.int32(7))],
                                                     metadata=composite(struct_pb2.TypeSpecProto.SPARSE_TENSOR_SPEC))
    # a composite within a composite, and one without components
    empty = raw.CompositeTensorVariantFromComponents(components=[], metadata=b"")
    outer = raw.CompositeTensorVariantFromComponents(components=[inner, empty],
                                                     metadata=composite(struct_pb2.TypeSpecProto.EXTENSION_TYPE_SPEC))
    first, _ = raw.CompositeTensorVariantToComponents(encoded=outer, Tcomponents=[tf.variant, tf.variant],
                                                      metadata=composite(struct_pb2.TypeSpecProto.EXTENSION_TYPE_SPEC))
    back = raw.CompositeTensorVariantToComponents(encoded=first, Tcomponents=[dtype, tf.int32],
                                                  metadata=composite(struct_pb2.TypeSpecProto.SPARSE_TENSOR_SPEC))
    return [{"feeds": feeds, "fetches": list(back)}]


@recipe("StatelessShuffle", FLOATS + INTEGERS + COMPLEX + ["bool", "string"])
def shuffle(dtype):
    feeds, fetches = Feeds(), []
    for seed, shape in enumerate([(17,), (6, 2, 2), (0, 3), ()]):
        data = values(shape, "int32" if dtype == "string" else dtype, seed)
        if dtype == "string":
            data = np.array([str(v).encode() for v in data.reshape(-1)], object).reshape(shape)
        key, counter = outputs_of(raw.StatelessRandomGetKeyCounter(seed=np.array([seed, 2**33 + 5], np.int64)))
        fetches.append(raw.StatelessShuffle(value=feeds.add(data, dtype), key=key, counter=counter, alg=1))
    return [{"feeds": feeds, "fetches": fetches}]
