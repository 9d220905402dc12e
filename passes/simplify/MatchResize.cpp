#include "passes/simplify/MatchResize.h"

#include "dialects/hlo/Constants.h"
#include "passes/simplify/Match.h"

#include <cmath>

using namespace mlir;

namespace lathe {
namespace {

/// One direction: place i is first * (1 - weight) + second * weight of the places of `from`.
struct Interpolation {
  Value from;
  int64_t dim = 0;
  SmallVector<int64_t> first, second;
  SmallVector<double> weights;
};

/// The places that a gather of whole slices reads along one dimension; none for other gathers.
std::optional<SmallVector<int64_t>> placesOf(hlo::GatherOp gather, int64_t &dim) {
  auto type = dyn_cast<RankedTensorType>(gather.getOperand().getType());
  auto indices = dyn_cast<RankedTensorType>(gather.getStartIndices().getType());
  auto numbers = gather.getDimensionNumbers();
  if (!type || !indices || indices.getRank() != 1 || numbers.getStartIndexMap().size() != 1 ||
      numbers.getCollapsedSliceDims() != numbers.getStartIndexMap() || !numbers.getOperandBatchingDims().empty() || numbers.getIndexVectorDim() != 1)
    return std::nullopt;
  dim = numbers.getStartIndexMap()[0];
  SmallVector<int64_t> others;
  for (int64_t d = 0; d < type.getRank(); ++d)
    if (d != dim)
      others.push_back(d);
  if (numbers.getOffsetDims() != ArrayRef<int64_t>(others))
    return std::nullopt;
  for (auto [d, n] : llvm::enumerate(gather.getSliceSizes()))
    if (n != (int64_t(d) == dim ? 1 : type.getDimSize(d)))
      return std::nullopt;
  auto tensor = constantValue(gather.getStartIndices()) ? hlo::readConstant(gather.getStartIndices()) : FailureOr<Tensor>(failure());
  if (failed(tensor) || (tensor->dtype() != DType::Int32 && tensor->dtype() != DType::Int64))
    return std::nullopt;
  SmallVector<int64_t> places;
  for (int64_t i = 0; i < tensor->numElements(); ++i)
    places.push_back(tensor->dtype() == DType::Int32 ? tensor->data<int32_t>()[i] : tensor->data<int64_t>()[i]);
  return places;
}

/// A factor for each of `count` places along a dimension.
std::optional<SmallVector<double>> factorsOf(Value v, int64_t dim, int64_t count) {
  if (auto number = splatNumber(v))
    return SmallVector<double>(count, *number);
  auto channel = matchChannelConstant(v);
  if (channel ? channel->dim != dim : !constantValue(v))
    return std::nullopt;
  auto tensor = hlo::readConstant(channel ? channel->value : v);
  if (failed(tensor) || tensor->dtype() != DType::Float32)
    return std::nullopt;
  const float *x = tensor->data<float>();
  // a small one was folded with its broadcast
  int64_t inner = 1;
  for (int64_t d = channel ? 1 : dim + 1; d < tensor->rank(); ++d)
    inner *= tensor->dim(d);
  if (tensor->numElements() == 0 || tensor->numElements() % (inner * count))
    return std::nullopt;
  SmallVector<double> factors;
  for (int64_t i = 0; i < count; ++i)
    factors.push_back(x[i * inner]);
  for (int64_t i = 0; i < tensor->numElements(); ++i)
    if (x[i] != float(factors[i / inner % count]))
      return std::nullopt;
  return factors;
}

/// gather(x, places) * factors.
struct Part {
  hlo::GatherOp gather;
  int64_t dim = 0;
  SmallVector<int64_t> places;
  SmallVector<double> factors;
};

std::optional<Part> partOf(Value v, SmallVectorImpl<Operation *> &ops) {
  auto product = v.getDefiningOp<hlo::MulOp>();
  for (int i = 0; product && i < 2; ++i) {
    auto gather = product->getOperand(i).getDefiningOp<hlo::GatherOp>();
    Part part;
    auto places = gather ? placesOf(gather, part.dim) : std::nullopt;
    auto factors = places ? factorsOf(product->getOperand(1 - i), part.dim, places->size()) : std::nullopt;
    if (!factors)
      continue;
    part.gather = gather;
    part.places = *places;
    part.factors = *factors;
    ops.append({gather, product});
    return part;
  }
  return std::nullopt;
}

std::optional<Interpolation> interpolationOf(Value v, SmallVectorImpl<Operation *> &ops) {
  auto sum = v.getDefiningOp<hlo::AddOp>();
  if (!sum)
    return std::nullopt;
  ops.push_back(sum);
  auto a = partOf(sum.getLhs(), ops), b = partOf(sum.getRhs(), ops);
  if (!a || !b || a->dim != b->dim || a->gather.getOperand() != b->gather.getOperand() || a->places.size() != b->places.size())
    return std::nullopt;
  // a sum may have been turned round
  if (std::lexicographical_compare(b->places.begin(), b->places.end(), a->places.begin(), a->places.end()))
    std::swap(a, b);
  Interpolation all{a->gather.getOperand(), a->dim, a->places, b->places, b->factors};
  for (auto [x, y] : llvm::zip_equal(a->factors, b->factors))
    if (std::abs(x + y - 1) > 1e-5)
      return std::nullopt;
  return all;
}

/// Whether `steps` are TensorFlow's from `in` places to `out`.
bool agrees(const Interpolation &steps, int64_t in, bool alignCorners, bool halfPixelCenters) {
  const int64_t out = steps.first.size();
  const float scale = alignCorners && in > 1 && out > 1 ? float(in - 1) / float(out - 1) : float(in) / float(out);
  for (int64_t i = 0; i < out; ++i) {
    const float at = halfPixelCenters ? (float(i) + 0.5f) * scale - 0.5f : float(i) * scale, floor = std::floor(at);
    const int64_t first = std::clamp<int64_t>(int64_t(floor), 0, in - 1), second = std::clamp<int64_t>(int64_t(std::ceil(at)), 0, in - 1);
    if (steps.first[i] != first || steps.second[i] != second || (first != second && std::abs(steps.weights[i] - (at - floor)) > 1e-5))
      return false;
  }
  return true;
}

} // namespace

std::optional<BilinearResize> matchBilinearResize(Operation *last) {
  if (last->getNumResults() != 1)
    return std::nullopt;
  auto type = dyn_cast<RankedTensorType>(last->getResult(0).getType());
  if (!type || type.getRank() < 3 || type.getRank() > 4 || !type.getElementType().isF32())
    return std::nullopt;
  BilinearResize resize;
  Value v = last->getResult(0);
  auto flat = dyn_cast<hlo::ReshapeOp>(last);
  if (flat && type.getRank() != 4)
    return std::nullopt;
  const bool joined = flat || type.getRank() == 3; // rows are combined with width and channels as one dimension
  if (flat) {
    resize.ops.push_back(last);
    v = flat->getOperand(0);
  }
  auto rows = interpolationOf(v, resize.ops);
  std::optional<Interpolation> columns;
  if (!rows)
    return std::nullopt;
  if (!flat && rows->dim == 2) { // no rows to combine
    columns = std::exchange(rows, std::nullopt);
    resize.image = columns->from;
  } else {
    if (rows->dim != 1)
      return std::nullopt;
    Value wide = rows->from;
    if (auto back = wide.getDefiningOp<hlo::ReshapeOp>(); back && joined) {
      resize.ops.push_back(back);
      wide = back->getOperand(0);
    } else if (joined) {
      return std::nullopt;
    }
    const size_t before = resize.ops.size();
    columns = interpolationOf(wide, resize.ops);
    if (columns && columns->dim != 2)
      columns = std::nullopt;
    if (!columns)
      resize.ops.truncate(before);
    resize.image = columns ? columns->from : wide;
  }
  auto image = dyn_cast<RankedTensorType>(resize.image.getType());
  if (!image || image.getRank() != 4 || llvm::any_of(image.getShape().drop_front(), ShapedType::isDynamic) || image.getDimSize(1) < 1 ||
      image.getDimSize(2) < 1)
    return std::nullopt;
  resize.height = rows ? rows->first.size() : image.getDimSize(1);
  resize.width = columns ? columns->first.size() : image.getDimSize(2);
  if (resize.height < 1 || resize.width < 1)
    return std::nullopt;
  const int64_t channels = image.getDimSize(3), parted[] = {resize.height, resize.width, channels}, together[] = {resize.height, resize.width * channels};
  if (type.getShape().drop_front() != (type.getRank() == 4 ? ArrayRef<int64_t>(parted) : ArrayRef<int64_t>(together)) ||
      (joined && cast<RankedTensorType>(v.getType()).getShape().drop_front() != ArrayRef<int64_t>(together)))
    return std::nullopt;
  // reshapes join width and channels and part them again; what is between has no other readers
  llvm::SmallPtrSet<Operation *, 16> members(resize.ops.begin(), resize.ops.end());
  for (Operation *op : members)
    if (op->getBlock() != last->getBlock() || (op != last && llvm::any_of(op->getUsers(), [&](Operation *user) { return !members.contains(user); })))
      return std::nullopt;
  for (auto [align, half] : {std::pair(false, true), {false, false}, {true, false}})
    if ((!rows || agrees(*rows, image.getDimSize(1), align, half)) && (!columns || agrees(*columns, image.getDimSize(2), align, half))) {
      resize.alignCorners = align;
      resize.halfPixelCenters = half;
      resize.ops.assign(members.begin(), members.end());
      llvm::sort(resize.ops, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
      return resize;
    }
  return std::nullopt;
}

} // namespace lathe
