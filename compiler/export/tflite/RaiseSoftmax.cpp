// SOFTMAX and LOG_SOFTMAX from their parts.
#include "compiler/export/tflite/Raiser.h"

#include "passes/simplify/Match.h"

using namespace mlir;

namespace lathe::tflwrite {
namespace {

/// x reduced by one op over one dimension and broadcast back; -1 if `v` is anything else.
template <typename Combiner>
int64_t matchReducedBack(Value v, Value &x) {
  auto broadcast = definedBy<hlo::BroadcastInDimOp>(v);
  Value reduced = broadcast ? broadcast.getOperand() : v;
  // sizes of one kept by a reshape between
  if (auto reshape = definedBy<hlo::ReshapeOp>(reduced))
    reduced = reshape.getOperand();
  auto reduce = definedBy<hlo::ReduceOp>(reduced);
  if (!broadcast || !reduce || reduce.getInputs().size() != 1 || reduce.getDimensions().size() != 1)
    return -1;
  Operation *combiner = simpleCombiner(reduce.getBody());
  if (!combiner || !isa<Combiner>(combiner))
    return -1;
  x = reduce.getInputs()[0];
  if (hlo::tensorType(x) != hlo::tensorType(v))
    return -1;
  // the broadcast gives each place its own row's number
  int64_t dim = reduce.getDimensions()[0], rank = hlo::tensorType(x).getRank();
  SmallVector<int64_t> places;
  RankedTensorType from = hlo::tensorType(broadcast.getOperand());
  for (auto [d, place] : llvm::enumerate(broadcast.getBroadcastDimensions()))
    if (place != dim)
      places.push_back(place);
    else if (from.getDimSize(d) != 1)
      return -1;
  SmallVector<int64_t> expected;
  for (int64_t d = 0; d < rank; ++d)
    if (d != dim)
      expected.push_back(d);
  // leading ones that nothing stands for
  SmallVector<int64_t> missing;
  for (int64_t d : expected)
    if (!llvm::is_contained(places, d) && hlo::tensorType(x).getDimSize(d) != 1)
      return -1;
  return llvm::is_sorted(places) ? dim : -1;
}

/// x - max(x) along a dimension: x, and the dimension.
Value matchShifted(Value v, int64_t &dim) {
  auto subtract = definedBy<hlo::SubtractOp>(v);
  Value x;
  if (!subtract || (dim = matchReducedBack<hlo::MaxOp>(subtract.getRhs(), x)) < 0 || x != subtract.getLhs())
    return {};
  return x;
}

Value alongLast(StringRef name, Value x, int64_t dim, Raiser &r, ArrayRef<Raiser::Option> options) {
  RankedTensorType type = hlo::tensorType(x);
  SmallVector<int64_t> swap = llvm::to_vector(llvm::seq<int64_t>(0, type.getRank()));
  std::swap(swap[dim], swap.back());
  Value moved = r.transpose(x, swap);
  // the kernels know four dimensions
  RankedTensorType movedType = moved ? hlo::tensorType(moved) : type;
  Value flat = moved;
  if (type.getRank() > 4 && moved) {
    SmallVector<AffineExpr> dims = hlo::getDims(movedType);
    AffineExpr rows = hlo::numElements(ArrayRef<AffineExpr>(dims).drop_back(), type.getContext());
    flat = rows ? r.reshape(moved, {rows, dims.back()}) : Value();
  }
  Value y = flat ? r.make(name, flat, hlo::tensorType(flat), options) : Value();
  return r.transpose(r.reshape(y, movedType), swap);
}

/// exp(x - max) / sum(exp(x - max)); without the shift it is the same function.
LogicalResult softmax(Operation *op, Raiser &r) {
  auto divide = cast<hlo::DivOp>(op);
  auto exponential = definedBy<hlo::ExpOp>(divide.getLhs());
  Value e;
  int64_t dim, shiftDim;
  if (!exponential || !hlo::elementType(exponential).isF32() || (dim = matchReducedBack<hlo::AddOp>(divide.getRhs(), e)) < 0 ||
      e != exponential.getResult())
    return failure();
  Value x = matchShifted(exponential.getOperand(), shiftDim);
  if (!x || shiftDim != dim)
    return failure();
  return r.replace(op, alongLast("SOFTMAX", x, dim, r, {{"beta", r.real(1)}}));
}

/// (x - max) - log(sum(exp(x - max))).
LogicalResult logSoftmax(Operation *op, Raiser &r) {
  auto subtract = cast<hlo::SubtractOp>(op);
  int64_t shiftDim, dim;
  Value x = matchShifted(subtract.getLhs(), shiftDim);
  if (!x || !hlo::elementType(x).isF32())
    return failure();
  // the logarithm stands before or behind the broadcast
  Value rhs = subtract.getRhs(), e;
  Operation *log = rhs.getDefiningOp<hlo::LogOp>();
  if (log) {
    dim = matchReducedBack<hlo::AddOp>(log->getOperand(0), e);
  } else {
    auto broadcast = definedBy<hlo::BroadcastInDimOp>(rhs);
    auto inner = broadcast ? definedBy<hlo::LogOp>(broadcast.getOperand()) : hlo::LogOp();
    if (!inner)
      return failure();
    Value sum = inner.getOperand();
    if (auto reshape = definedBy<hlo::ReshapeOp>(sum))
      sum = reshape.getOperand();
    auto reduce = definedBy<hlo::ReduceOp>(sum);
    Operation *combiner = reduce && reduce.getInputs().size() == 1 ? simpleCombiner(reduce.getBody()) : nullptr;
    if (!combiner || !isa<hlo::AddOp>(combiner) || reduce.getDimensions().size() != 1 || reduce.getDimensions()[0] != shiftDim)
      return failure();
    SmallVector<int64_t> expected;
    for (int64_t d = 0; d < hlo::tensorType(x).getRank(); ++d)
      if (d != shiftDim)
        expected.push_back(d);
    if (hlo::tensorType(inner).getRank() != static_cast<int64_t>(expected.size()) ||
        broadcast.getBroadcastDimensions() != ArrayRef<int64_t>(expected))
      return failure();
    dim = shiftDim;
    e = reduce.getInputs()[0];
  }
  auto exponential = definedBy<hlo::ExpOp>(e);
  if (dim != shiftDim || !exponential || exponential.getOperand() != subtract.getLhs())
    return failure();
  return r.replace(op, alongLast("LOG_SOFTMAX", x, dim, r, {}));
}

} // namespace

void addSoftmaxHandlers(HandlerTable &t) {
  t["divide"].push_back(softmax);
  t["subtract"].push_back(logSoftmax);
}

} // namespace lathe::tflwrite
