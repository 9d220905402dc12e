//===- Rowwise.cpp - ops that treat the rows of a batch alone ---------------===//

#include "passes/simplify/Rowwise.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace lathe {
namespace {

RankedTensorType typeOf(Value v) { return cast<RankedTensorType>(v.getType()); }

/// Elements of a position along `dim`.
int64_t innerElements(RankedTensorType t, int64_t dim) {
  int64_t n = 1;
  for (int64_t d = dim + 1; d < t.getRank(); ++d)
    n *= t.getDimSize(d);
  return n;
}

/// Where `dim` of one shape is in another one of the same elements: as long, with as many elements a
/// position.
std::optional<int64_t> reshapedDim(RankedTensorType from, RankedTensorType to, int64_t dim) {
  for (int64_t d = 0; d < to.getRank(); ++d)
    if (to.getDimSize(d) == from.getDimSize(dim) && innerElements(to, d) == innerElements(from, dim))
      return d;
  return std::nullopt;
}

std::optional<int64_t> positionOf(ArrayRef<int64_t> list, int64_t value) {
  auto it = llvm::find(list, value);
  return it == list.end() ? std::nullopt : std::optional<int64_t>(it - list.begin());
}

/// The dimensions of an operand of a product that are neither batch nor summed.
SmallVector<int64_t> freeDims(Value v, ArrayRef<int64_t> batch, ArrayRef<int64_t> summed) {
  SmallVector<int64_t> dims;
  for (int64_t d = 0; d < typeOf(v).getRank(); ++d)
    if (!llvm::is_contained(batch, d) && !llvm::is_contained(summed, d))
      dims.push_back(d);
  return dims;
}

/// The op reads and writes positions of `dim` in place, one for one.
bool keepsRows(Operation *op, int64_t dim) {
  if (auto concat = dyn_cast<hlo::ConcatenateOp>(op))
    return static_cast<int64_t>(concat.getDimension()) != dim;
  if (auto slice = dyn_cast<hlo::SliceOp>(op))
    return !slice.getStartMap() && !slice.getLimitMap() && slice.getStartIndices()[dim] == 0 &&
           slice.getStrides()[dim] == 1 &&
           slice.getLimitIndices()[dim] == typeOf(slice.getOperand()).getDimSize(dim);
  if (auto slice = dyn_cast<hlo::DynamicSliceOp>(op))
    return !slice.getSizeMap() && slice.getSliceSizes()[dim] == typeOf(slice.getOperand()).getDimSize(dim);
  if (auto update = dyn_cast<hlo::DynamicUpdateSliceOp>(op))
    return typeOf(update.getUpdate()).getDimSize(dim) == typeOf(update.getOperand()).getDimSize(dim);
  if (auto pad = dyn_cast<hlo::PadOp>(op))
    return pad.getEdgePaddingLow()[dim] == 0 && pad.getEdgePaddingHigh()[dim] == 0 &&
           pad.getInteriorPadding()[dim] == 0;
  if (auto reverse = dyn_cast<hlo::ReverseOp>(op))
    return !llvm::is_contained(reverse.getDimensions(), dim);
  return op->hasTrait<hlo::HloElementwise>();
}

/// How many operands of an op that keeps rows have them.
unsigned rowOperands(Operation *op) {
  if (isa<hlo::SliceOp, hlo::DynamicSliceOp, hlo::PadOp, hlo::ReverseOp>(op))
    return 1;
  return isa<hlo::DynamicUpdateSliceOp>(op) ? 2 : op->getNumOperands();
}

} // namespace

std::optional<int64_t> dimOfRows(RankedTensorType from, RankedTensorType to, int64_t dim, int64_t batch) {
  for (int64_t d = 0; d < to.getRank(); ++d)
    if (to.getDimSize(d) % batch == 0 && to.getDimSize(d) > 0 &&
        innerElements(to, d) == innerElements(from, dim))
      return d;
  return std::nullopt;
}

std::optional<int64_t> resultRows(Operation *op, unsigned number, int64_t dim) {
  Value operand = op->getOperand(number);
  if (auto transpose = dyn_cast<hlo::TransposeOp>(op))
    return positionOf(transpose.getPermutation(), dim);
  if (auto reshape = dyn_cast<hlo::ReshapeOp>(op))
    return reshapedDim(typeOf(operand), typeOf(reshape), dim);
  if (auto broadcast = dyn_cast<hlo::BroadcastInDimOp>(op)) {
    const int64_t to = broadcast.getBroadcastDimensions()[dim];
    return typeOf(broadcast).getDimSize(to) == typeOf(operand).getDimSize(dim) ? std::optional<int64_t>(to)
                                                                               : std::nullopt;
  }
  if (auto reduce = dyn_cast<hlo::ReduceOp>(op)) {
    if (number >= reduce.getInputs().size() || llvm::is_contained(reduce.getDimensions(), dim))
      return std::nullopt;
    return dim - llvm::count_if(reduce.getDimensions(), [&](int64_t d) { return d < dim; });
  }
  if (auto dot = dyn_cast<hlo::DotGeneralOp>(op)) {
    hlo::DotDimensionNumbersAttr d = dot.getDotDimensionNumbers();
    const bool left = number == 0;
    ArrayRef<int64_t> batch = left ? d.getLhsBatchingDimensions() : d.getRhsBatchingDimensions();
    if (std::optional<int64_t> at = positionOf(batch, dim))
      return at;
    auto lhsFree = freeDims(dot.getLhs(), d.getLhsBatchingDimensions(), d.getLhsContractingDimensions());
    auto rhsFree = freeDims(dot.getRhs(), d.getRhsBatchingDimensions(), d.getRhsContractingDimensions());
    std::optional<int64_t> at = positionOf(left ? lhsFree : rhsFree, dim);
    if (!at)
      return std::nullopt;
    return static_cast<int64_t>(batch.size()) + (left ? 0 : static_cast<int64_t>(lhsFree.size())) + *at;
  }
  // operands of an op that keeps rows have the rank of its result, but for scalars
  if (number < rowOperands(op) && typeOf(operand).getRank() == typeOf(op->getResult(0)).getRank() &&
      keepsRows(op, dim))
    return dim;
  return std::nullopt;
}

std::optional<SmallVector<int64_t>> operandRows(Operation *op, int64_t dim) {
  SmallVector<int64_t> dims(op->getNumOperands(), -1);
  if (auto transpose = dyn_cast<hlo::TransposeOp>(op)) {
    dims[0] = transpose.getPermutation()[dim];
    return dims;
  }
  if (auto reshape = dyn_cast<hlo::ReshapeOp>(op)) {
    std::optional<int64_t> from = reshapedDim(typeOf(reshape), typeOf(reshape.getOperand()), dim);
    dims[0] = from.value_or(-1);
    return from ? std::optional(dims) : std::nullopt;
  }
  if (auto broadcast = dyn_cast<hlo::BroadcastInDimOp>(op)) {
    if (std::optional<int64_t> from = positionOf(broadcast.getBroadcastDimensions(), dim);
        from && typeOf(broadcast.getOperand()).getDimSize(*from) == typeOf(broadcast).getDimSize(dim))
      dims[0] = *from;
    return dims;
  }
  if (auto iota = dyn_cast<hlo::IotaOp>(op))
    return static_cast<int64_t>(iota.getIotaDimension()) == dim ? std::nullopt : std::optional(dims);
  if (auto reduce = dyn_cast<hlo::ReduceOp>(op)) {
    int64_t from = 0;
    for (int64_t kept = -1; from < typeOf(reduce.getInputs()[0]).getRank(); ++from)
      if (!llvm::is_contained(reduce.getDimensions(), from) && ++kept == dim)
        break;
    for (unsigned i = 0; i < reduce.getInputs().size(); ++i)
      dims[i] = from;
    return dims;
  }
  if (auto dot = dyn_cast<hlo::DotGeneralOp>(op)) {
    hlo::DotDimensionNumbersAttr d = dot.getDotDimensionNumbers();
    const int64_t batch = d.getLhsBatchingDimensions().size();
    auto lhsFree = freeDims(dot.getLhs(), d.getLhsBatchingDimensions(), d.getLhsContractingDimensions());
    auto rhsFree = freeDims(dot.getRhs(), d.getRhsBatchingDimensions(), d.getRhsContractingDimensions());
    const int64_t left = lhsFree.size();
    if (dim < batch) {
      dims[0] = d.getLhsBatchingDimensions()[dim];
      dims[1] = d.getRhsBatchingDimensions()[dim];
    } else if (dim < batch + left) {
      dims[0] = lhsFree[dim - batch];
    } else {
      dims[1] = rhsFree[dim - batch - left];
    }
    return dims;
  }
  if (!keepsRows(op, dim))
    return std::nullopt;
  for (unsigned i = 0; i < rowOperands(op); ++i)
    if (typeOf(op->getOperand(i)).getRank() > 0)
      dims[i] = dim;
  return dims;
}

void narrowRows(Operation *op, int64_t dim, int64_t rows) {
  for (Value result : op->getResults()) {
    SmallVector<int64_t> sizes(typeOf(result).getShape());
    sizes[dim] = rows;
    result.setType(RankedTensorType::get(sizes, typeOf(result).getElementType()));
  }
  if (auto slice = dyn_cast<hlo::SliceOp>(op)) {
    SmallVector<int64_t> limits(slice.getLimitIndices());
    limits[dim] = rows;
    slice.setLimitIndices(limits);
  }
  if (auto slice = dyn_cast<hlo::DynamicSliceOp>(op)) {
    SmallVector<int64_t> sizes(slice.getSliceSizes());
    sizes[dim] = rows;
    slice.setSliceSizes(sizes);
  }
}

} // namespace lathe
