// Products and convolutions of the evaluator: floats accumulate in double, integers wrap in 64 bits and are cut down to
// the result's type, which gives the same bits as wrapping at each step.
#include "dialects/hlo/Constants.h"
#include "dialects/hlo/Eval.h"

using namespace mlir;

namespace lathe::hlo::eval {

#if defined(__x86_64__) && defined(__clang__)
#define LATHE_WIDE __attribute__((target_clones("arch=haswell", "default")))
#else
#define LATHE_WIDE
#endif

// c[m,n] += a[m,k] b[k,n], all row-major. Four rows at a time share what they read of b; blocks of k and n stay in cache.
template <typename T>
static inline void multiply(const T *a, const T *b, T *c, int64_t m, int64_t n, int64_t k) {
  constexpr int64_t blockK = 128, blockN = 512;
  for (int64_t k0 = 0; k0 < k; k0 += blockK) {
    int64_t k1 = std::min(k, k0 + blockK);
    for (int64_t n0 = 0; n0 < n; n0 += blockN) {
      int64_t n1 = std::min(n, n0 + blockN);
      int64_t i = 0;
      for (; i + 4 <= m; i += 4) {
        T *c0 = c + i * n, *c1 = c0 + n, *c2 = c1 + n, *c3 = c2 + n;
        const T *a0 = a + i * k, *a1 = a0 + k, *a2 = a1 + k, *a3 = a2 + k;
        for (int64_t p = k0; p < k1; ++p) {
          T x0 = a0[p], x1 = a1[p], x2 = a2[p], x3 = a3[p];
          const T *row = b + p * n;
          for (int64_t j = n0; j < n1; ++j) {
            T y = row[j];
            c0[j] += x0 * y;
            c1[j] += x1 * y;
            c2[j] += x2 * y;
            c3[j] += x3 * y;
          }
        }
      }
      for (; i < m; ++i)
        for (int64_t p = k0; p < k1; ++p) {
          T x = a[i * k + p];
          const T *row = b + p * n;
          for (int64_t j = n0; j < n1; ++j)
            c[i * n + j] += x * row[j];
        }
    }
  }
}

LATHE_WIDE static void multiplyDoubles(const double *a, const double *b, double *c, int64_t m, int64_t n, int64_t k) {
  multiply(a, b, c, m, n, k);
}
static void product(const double *a, const double *b, double *c, int64_t m, int64_t n, int64_t k) {
  multiplyDoubles(a, b, c, m, n, k);
}
static void product(const int64_t *a, const int64_t *b, int64_t *c, int64_t m, int64_t n, int64_t k) {
  // unsigned arithmetic wraps
  multiply(reinterpret_cast<const uint64_t *>(a), reinterpret_cast<const uint64_t *>(b),
           reinterpret_cast<uint64_t *>(c), m, n, k);
}
static void product(const Complex *a, const Complex *b, Complex *c, int64_t m, int64_t n, int64_t k) {
  multiply(a, b, c, m, n, k);
}

template <typename T>
static T multiplyAdd(T x, T y, T sum) {
  if constexpr (std::is_same_v<T, int64_t>)
    return static_cast<int64_t>(static_cast<uint64_t>(x) * static_cast<uint64_t>(y) + static_cast<uint64_t>(sum));
  else
    return sum + x * y;
}

// The tensor's elements in the kind of the result.
template <typename T>
static std::vector<T> valuesOf(const Tensor &t) {
  if constexpr (std::is_same_v<T, double>) {
    if (kindOf(t.dtype()) == Kind::Int) {
      auto values = loadInts(t);
      return std::vector<double>(values.begin(), values.end());
    }
  }
  if constexpr (std::is_same_v<T, Complex>) {
    if (kindOf(t.dtype()) == Kind::Float) {
      auto values = loadFloats(t);
      return std::vector<Complex>(values.begin(), values.end());
    }
  }
  if constexpr (std::is_same_v<T, int64_t>)
    if (kindOf(t.dtype()) != Kind::Int)
      return {};
  return loadAs<T>(t);
}

template <typename T>
static LogicalResult dot(Evaluation &e, Operation *op, const Tensor &lhs, const Tensor &rhs,
                         DotDimensionNumbersAttr numbers, Tensors &out) {
  SmallVector<int64_t> lhsOrder(numbers.getLhsBatchingDimensions()), rhsOrder(numbers.getRhsBatchingDimensions());
  int64_t batch = 1, m = 1, n = 1, k = 1;
  Dims dims;
  for (auto [i, j] : llvm::zip(lhsOrder, rhsOrder)) {
    if (lhs.dim(i) != rhs.dim(j))
      return e.fail(op, "batching dimensions differ at run time");
    dims.push_back(lhs.dim(i));
    batch *= lhs.dim(i);
  }
  auto isFree = [](int64_t dim, ArrayRef<int64_t> a, ArrayRef<int64_t> b) {
    return !llvm::is_contained(a, dim) && !llvm::is_contained(b, dim);
  };
  for (int64_t i = 0; i < lhs.rank(); ++i)
    if (isFree(i, numbers.getLhsBatchingDimensions(), numbers.getLhsContractingDimensions())) {
      lhsOrder.push_back(i);
      dims.push_back(lhs.dim(i));
      m *= lhs.dim(i);
    }
  for (auto [i, j] : llvm::zip(numbers.getLhsContractingDimensions(), numbers.getRhsContractingDimensions())) {
    if (lhs.dim(i) != rhs.dim(j))
      return e.fail(op, "inner dimensions differ at run time: " + Twine(lhs.dim(i)) + " and " + Twine(rhs.dim(j)));
    lhsOrder.push_back(i);
    rhsOrder.push_back(j);
    k *= lhs.dim(i);
  }
  for (int64_t j = 0; j < rhs.rank(); ++j)
    if (isFree(j, numbers.getRhsBatchingDimensions(), numbers.getRhsContractingDimensions())) {
      rhsOrder.push_back(j);
      dims.push_back(rhs.dim(j));
      n *= rhs.dim(j);
    }
  Tensor result;
  if (failed(e.work(op, static_cast<double>(batch) * m * n * k)) ||
      failed(e.allocate(op, toDType(elementType(op->getResult(0))), dims, result)))
    return failure();
  auto a = valuesOf<T>(transposed(lhs, lhsOrder)), b = valuesOf<T>(transposed(rhs, rhsOrder));
  if (static_cast<int64_t>(a.size()) != lhs.numElements() || static_cast<int64_t>(b.size()) != rhs.numElements())
    return e.fail(op, "operands do not fit the result's type");
  std::vector<T> c(m * n);
  size_t size = dtypeSize(result.dtype());
  for (int64_t i = 0; i < batch; ++i) {
    std::fill(c.begin(), c.end(), T());
    product(a.data() + i * m * k, b.data() + i * k * n, c.data(), m, n, k);
    storeAs<T>(result.dtype(), c.data(), m * n, static_cast<char *>(result.data()) + i * m * n * size);
  }
  out.push_back(result);
  return success();
}

static LogicalResult dotOfAnyKind(Evaluation &e, Operation *op, ArrayRef<Tensor> in, DotDimensionNumbersAttr numbers,
                                  Tensors &out) {
  switch (kindOf(toDType(elementType(op->getResult(0))))) {
  case Kind::Float: return dot<double>(e, op, in[0], in[1], numbers, out);
  case Kind::Int: return dot<int64_t>(e, op, in[0], in[1], numbers, out);
  case Kind::Complex: return dot<Complex>(e, op, in[0], in[1], numbers, out);
  }
  return failure();
}

static LogicalResult evalDotGeneral(Evaluation &e, DotGeneralOp op, ArrayRef<Tensor> in, Tensors &out) {
  return dotOfAnyKind(e, op, in, op.getDotDimensionNumbers(), out);
}
static LogicalResult evalDot(Evaluation &e, DotOp op, ArrayRef<Tensor> in, Tensors &out) {
  auto numbers = DotDimensionNumbersAttr::get(op.getContext(), {}, {}, {in[0].rank() - 1}, {0});
  return dotOfAnyKind(e, op, in, numbers, out);
}

//===----------------------------------------------------------------------===//
// Convolutions
//===----------------------------------------------------------------------===//

namespace {
struct ConvShape {
  Dims strides, lhsDilation, rhsDilation, low, high;
  SmallVector<bool> reversal;
  int64_t groups, batchGroups;
};
} // namespace

// Input to [n, space..., c], kernel to [space..., i, o], each block of output rows as a product of gathered patches.
template <typename T>
static LogicalResult convolve(Evaluation &e, Operation *op, Tensor lhs, Tensor rhs, ConvDimensionNumbersAttr numbers,
                              const ConvShape &shape, Tensors &out) {
  size_t spatial = numbers.getInputSpatialDimensions().size();
  SmallVector<int64_t> lhsOrder{numbers.getInputBatchDimension()}, rhsOrder(numbers.getKernelSpatialDimensions());
  lhsOrder.append(numbers.getInputSpatialDimensions().begin(), numbers.getInputSpatialDimensions().end());
  lhsOrder.push_back(numbers.getInputFeatureDimension());
  rhsOrder.push_back(numbers.getKernelInputFeatureDimension());
  rhsOrder.push_back(numbers.getKernelOutputFeatureDimension());
  lhs = transposed(lhs, lhsOrder);
  rhs = transposed(rhs, rhsOrder);
  int64_t batch = lhs.dim(0), inChannels = lhs.dim(spatial + 1);
  int64_t kernelIn = rhs.dim(spatial), outChannels = rhs.dim(spatial + 1);
  int64_t groups = shape.groups, batchGroups = shape.batchGroups;
  if (inChannels != kernelIn * groups || outChannels % groups || batch % batchGroups || outChannels % batchGroups)
    return e.fail(op, "features or batch do not fit the groups at run time");
  Dims window(rhs.dims().begin(), rhs.dims().begin() + spatial), inDims(lhs.dims().begin() + 1, lhs.dims().begin() + 1 + spatial);
  Dims outDims;
  for (size_t i = 0; i < spatial; ++i) {
    int64_t size = inDims[i] == 0 ? 0 : (inDims[i] - 1) * shape.lhsDilation[i] + 1;
    int64_t reach = window[i] == 0 ? 0 : (window[i] - 1) * shape.rhsDilation[i] + 1;
    int64_t padded = size + shape.low[i] + shape.high[i];
    outDims.push_back(padded < reach || padded <= 0 ? 0 : (padded - reach) / shape.strides[i] + 1);
  }
  int64_t outBatch = batch / batchGroups, places = eval::product(outDims), taps = eval::product(window);
  DType type = toDType(elementType(op->getResult(0)));
  Dims plainDims{outBatch};
  plainDims.insert(plainDims.end(), outDims.begin(), outDims.end());
  plainDims.push_back(outChannels);
  Tensor result;
  if (failed(e.work(op, static_cast<double>(outBatch) * places * outChannels * taps * kernelIn)) ||
      failed(e.allocate(op, type, plainDims, result)))
    return failure();
  auto a = valuesOf<T>(lhs), b = valuesOf<T>(rhs);
  if (static_cast<int64_t>(a.size()) != lhs.numElements() || static_cast<int64_t>(b.size()) != rhs.numElements())
    return e.fail(op, "operands do not fit the result's type");

  // the input's place for each (output place, tap), -1 in the padding
  Dims inStrides = stridesOf(inDims), outStrides = stridesOf(outDims), tapStrides = stridesOf(window);
  auto sourceOf = [&](int64_t place, int64_t tap) -> int64_t {
    int64_t index = 0;
    for (size_t i = 0; i < spatial; ++i) {
      int64_t o = place / outStrides[i] % outDims[i], w = tap / tapStrides[i] % window[i];
      if (shape.reversal[i])
        w = window[i] - 1 - w;
      int64_t p = o * shape.strides[i] + w * shape.rhsDilation[i] - shape.low[i];
      if (p < 0 || p % shape.lhsDilation[i] != 0 || p / shape.lhsDilation[i] >= inDims[i])
        return -1;
      index += p / shape.lhsDilation[i] * inStrides[i];
    }
    return index;
  };
  int64_t inPlaces = eval::product(inDims), groupOut = outChannels / (groups * batchGroups);
  size_t size = dtypeSize(type);
  char *to = static_cast<char *>(result.data());
  int64_t rowsAtOnce = std::max<int64_t>(1, std::min<int64_t>(places, (1 << 18) / std::max<int64_t>(1, taps * kernelIn)));
  std::vector<T> patch, kernel(taps * kernelIn * groupOut), block, rows;
  bool depthwise = kernelIn == 1 && groups > 1;
  for (int64_t n = 0; n < outBatch; ++n)
    for (int64_t first = 0; first < places; first += rowsAtOnce) {
      int64_t count = std::min(rowsAtOnce, places - first);
      rows.assign(count * outChannels, T());
      if (depthwise) {
        // one input channel a group: along channels instead of a product for each
        const T *image = a.data() + n * inPlaces * inChannels;
        for (int64_t r = 0; r < count; ++r)
          for (int64_t tap = 0; tap < taps; ++tap) {
            int64_t source = sourceOf(first + r, tap);
            if (source < 0)
              continue;
            const T *x = image + source * inChannels, *w = b.data() + tap * outChannels;
            T *y = rows.data() + r * outChannels;
            for (int64_t g = 0; g < groups; ++g)
              for (int64_t o = 0; o < groupOut; ++o)
                y[g * groupOut + o] = multiplyAdd(x[g], w[g * groupOut + o], y[g * groupOut + o]);
          }
      } else {
        for (int64_t bg = 0; bg < batchGroups; ++bg)
          for (int64_t g = 0; g < groups; ++g) {
            const T *image = a.data() + (bg * outBatch + n) * inPlaces * inChannels;
            int64_t group = batchGroups > 1 ? bg : g, columns = taps * kernelIn;
            patch.assign(count * columns, T());
            for (int64_t r = 0; r < count; ++r)
              for (int64_t tap = 0; tap < taps; ++tap) {
                int64_t source = sourceOf(first + r, tap);
                if (source >= 0)
                  std::copy_n(image + source * inChannels + g * kernelIn, kernelIn, patch.data() + r * columns + tap * kernelIn);
              }
            for (int64_t row = 0; row < columns; ++row)
              std::copy_n(b.data() + row * outChannels + group * groupOut, groupOut, kernel.data() + row * groupOut);
            block.assign(count * groupOut, T());
            product(patch.data(), kernel.data(), block.data(), count, groupOut, columns);
            for (int64_t r = 0; r < count; ++r)
              std::copy_n(block.data() + r * groupOut, groupOut, rows.data() + r * outChannels + group * groupOut);
          }
      }
      storeAs<T>(type, rows.data(), count * outChannels, to + (n * places + first) * outChannels * size);
    }

  // from [n, space..., o] to the op's order
  SmallVector<int64_t> order(spatial + 2);
  order[numbers.getOutputBatchDimension()] = 0;
  order[numbers.getOutputFeatureDimension()] = spatial + 1;
  for (auto [i, dim] : llvm::enumerate(numbers.getOutputSpatialDimensions()))
    order[dim] = i + 1;
  out.push_back(transposed(result, order));
  return success();
}

template <typename OpT>
static LogicalResult convolution(Evaluation &e, OpT op, ArrayRef<Tensor> in, const PaddingList &padding, Tensors &out) {
  size_t spatial = op.getDimensionNumbers().getInputSpatialDimensions().size();
  ConvShape shape;
  shape.strides = toVector(getListOr(op.getWindowStrides(), spatial, 1));
  shape.lhsDilation = toVector(getListOr(op.getLhsDilation(), spatial, 1));
  shape.rhsDilation = toVector(getListOr(op.getRhsDilation(), spatial, 1));
  for (auto [low, high] : padding) {
    shape.low.push_back(low);
    shape.high.push_back(high);
  }
  if (op.getWindowReversal())
    shape.reversal.assign(op.getWindowReversal()->begin(), op.getWindowReversal()->end());
  else
    shape.reversal.assign(spatial, false);
  shape.groups = op.getFeatureGroupCount();
  shape.batchGroups = op.getBatchGroupCount();
  switch (kindOf(toDType(elementType(op.getResult())))) {
  case Kind::Float: return convolve<double>(e, op, in[0], in[1], op.getDimensionNumbers(), shape, out);
  case Kind::Int: return convolve<int64_t>(e, op, in[0], in[1], op.getDimensionNumbers(), shape, out);
  case Kind::Complex: return convolve<Complex>(e, op, in[0], in[1], op.getDimensionNumbers(), shape, out);
  }
  return failure();
}

static LogicalResult evalConvolution(Evaluation &e, ConvolutionOp op, ArrayRef<Tensor> in, Tensors &out) {
  size_t spatial = op.getDimensionNumbers().getInputSpatialDimensions().size();
  return convolution(e, op, in, getPadding(dyn_cast_or_null<DenseIntElementsAttr>(op.getPaddingAttr()), spatial), out);
}
static LogicalResult evalDynamicConv(Evaluation &e, DynamicConvOp op, ArrayRef<Tensor> in, Tensors &out) {
  auto values = loadInts(in[2]);
  size_t spatial = op.getDimensionNumbers().getInputSpatialDimensions().size();
  if (values.size() != 2 * spatial)
    return e.fail(op, "d_padding does not fit");
  PaddingList padding;
  for (size_t i = 0; i < spatial; ++i)
    padding.push_back({values[2 * i], values[2 * i + 1]});
  return convolution(e, op, in, padding, out);
}

void registerDot(HandlerTable &table) {
  add<DotOp, evalDot>(table);
  add<DotGeneralOp, evalDotGeneral>(table);
  add<ConvolutionOp, evalConvolution>(table);
  add<DynamicConvOp, evalDynamicConv>(table);
}

} // namespace lathe::hlo::eval
