// sort and top_k of the evaluator.
#include "dialects/hlo/Constants.h"
#include "dialects/hlo/Eval.h"

#include <cmath>
#include <cstring>
#include <numeric>

using namespace mlir;

namespace lathe::hlo::eval {

static LogicalResult evalSort(Evaluation &e, SortOp op, ArrayRef<Tensor> in, Tensors &out) {
  size_t count = in.size();
  int64_t rank = in[0].rank(), axis = op.getDimension();
  if (axis < 0)
    axis += rank;
  for (const Tensor &t : in)
    if (t.dims() != in[0].dims())
      return e.fail(op, "shapes differ at run time");
  RegionProgram program;
  if (failed(program.compile(e, op.getComparator())))
    return failure();
  if (rank == 0) {
    out.assign(in.begin(), in.end());
    return success();
  }
  int64_t length = in[0].dim(axis), stride = stridesOf(in[0].dims())[axis];
  int64_t lines = length ? in[0].numElements() / length : 0;
  if (failed(e.work(op, in[0].numElements() * 20.0)))
    return failure();
  for (const Tensor &t : in)
    out.push_back(t.clone());

  // comparator arguments: (a0, b0, a1, b1, ...)
  SmallVector<Chunk> chunks(2 * count);
  SmallVector<const Chunk *> arguments;
  for (size_t i = 0; i < 2 * count; ++i) {
    chunks[i].reset(in[i / 2].dtype());
    arguments.push_back(&chunks[i]);
  }
  SmallVector<Chunk> verdict(1);
  verdict[0].reset(DType::Bool);

  std::vector<int64_t> order(length), merged(length);
  bool failedCompare = false;
  for (int64_t line = 0; line < lines; ++line) {
    int64_t base = line / stride * stride * length + line % stride;
    std::iota(order.begin(), order.end(), 0);
    // merges by pairs of runs: independent of what the comparator answers, so a bad one does no harm
    for (int64_t width = 1; width < length && !failedCompare; width *= 2) {
      for (int64_t begin = 0; begin < length; begin += 2 * width) {
        int64_t middle = std::min(begin + width, length), end = std::min(begin + 2 * width, length);
        int64_t a = begin, b = middle, to = begin;
        while (a < middle && b < end) {
          for (size_t i = 0; i < count; ++i) {
            size_t size = dtypeSize(in[i].dtype());
            const char *data = static_cast<const char *>(in[i].data());
            // does the right one come strictly before the left one?
            chunks[2 * i].load(data + (base + order[b] * stride) * size, 1);
            chunks[2 * i + 1].load(data + (base + order[a] * stride) * size, 1);
          }
          if (failed(program.run(arguments, verdict, 1))) {
            failedCompare = true;
            break;
          }
          merged[to++] = verdict[0].i[0] ? order[b++] : order[a++];
        }
        if (failedCompare)
          break;
        while (a < middle)
          merged[to++] = order[a++];
        while (b < end)
          merged[to++] = order[b++];
      }
      std::swap(order, merged);
    }
    if (failedCompare)
      return failure();
    for (size_t i = 0; i < count; ++i) {
      size_t size = dtypeSize(in[i].dtype());
      const char *from = static_cast<const char *>(in[i].data());
      char *to = static_cast<char *>(out[i].data());
      for (int64_t k = 0; k < length; ++k)
        std::memcpy(to + (base + k * stride) * size, from + (base + order[k] * stride) * size, size);
    }
  }
  return success();
}

static LogicalResult evalTopK(Evaluation &e, TopKOp op, ArrayRef<Tensor> in, Tensors &out) {
  const Tensor &t = in[0];
  int64_t n = t.dim(t.rank() - 1), k = op.getK(), rows = n ? t.numElements() / n : 0;
  if (k > n)
    return e.fail(op, "k = " + Twine(k) + " exceeds " + Twine(n));
  Dims dims = t.dims();
  dims.back() = k;
  Tensor values, indices;
  if (failed(e.work(op, t.numElements() * 10.0)) || failed(e.allocate(op, t.dtype(), dims, values)) ||
      failed(e.allocate(op, DType::Int32, dims, indices)))
    return failure();
  size_t size = dtypeSize(t.dtype());
  bool isFloat = kindOf(t.dtype()) == Kind::Float, isSigned = intInfo(t.dtype()).isSigned;
  std::vector<double> f(isFloat ? n : 0);
  std::vector<int64_t> v(isFloat ? 0 : n), order(n);
  for (int64_t row = 0; row < rows; ++row) {
    const char *from = static_cast<const char *>(t.data()) + row * n * size;
    if (isFloat)
      loadFloats(t.dtype(), from, n, f.data());
    else
      loadInts(t.dtype(), from, n, v.data());
    std::iota(order.begin(), order.end(), 0);
    auto before = [&](int64_t a, int64_t b) {
      if (isFloat) {
        bool nanA = std::isnan(f[a]), nanB = std::isnan(f[b]);
        if (nanA || nanB)
          return nanA == nanB ? a < b : nanA;
        return f[a] != f[b] ? f[a] > f[b] : a < b;
      }
      if (v[a] == v[b])
        return a < b;
      return isSigned ? v[a] > v[b] : static_cast<uint64_t>(v[a]) > static_cast<uint64_t>(v[b]);
    };
    std::partial_sort(order.begin(), order.begin() + k, order.end(), before);
    for (int64_t i = 0; i < k; ++i) {
      std::memcpy(static_cast<char *>(values.data()) + (row * k + i) * size, from + order[i] * size, size);
      indices.data<int32_t>()[row * k + i] = static_cast<int32_t>(order[i]);
    }
  }
  out.push_back(values);
  out.push_back(indices);
  return success();
}

void registerSort(HandlerTable &table) {
  add<SortOp, evalSort>(table);
  add<TopKOp, evalTopK>(table);
}

} // namespace lathe::hlo::eval
