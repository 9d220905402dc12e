// The accumulators of products, convolutions and poolings, one at a time: whatever element of one an epilogue asks for, it
// gets the loops that compute it.
#include "dialects/hlo/Hlo.h"
#include "dialects/kernel/Kernel.h"
#include "passes/codegen/element/Expr.h"
#include "passes/codegen/plain/Core.h"

#include <cmath>

using namespace mlir;

namespace lathe::plain {

using codegen::KernelBuilder;

/// The longest loop taken for granted where sizes are known at run time only.
static constexpr int64_t unknownSteps = 256;

codegen::Contraction contractionOf(kernel::DotOp op) {
  codegen::Contraction c;
  c.lhs = hlo::tensorType(op.getLhs());
  c.rhs = hlo::tensorType(op.getRhs());
  RankedTensorType acc = op.getAccType();
  c.result = acc.getElementType();
  ArrayRef<int64_t> l = op.getLhsDims(), r = op.getRhsDims(), out = op.getResultDims();
  const int64_t batch = op.getBatchRank();
  c.lhsDims.assign(acc.getRank(), -1);
  c.rhsDims.assign(acc.getRank(), -1);
  for (int64_t i = 0; i < batch; ++i) { // an operand without batch dimensions is shared by the whole batch
    if (c.lhs.getRank() == batch + 2)
      c.lhsDims[out[i]] = l[i];
    if (c.rhs.getRank() == batch + 2)
      c.rhsDims[out[i]] = r[i];
  }
  c.lhsDims[out[batch]] = l[l.size() - 2];
  c.rhsDims[out[batch + 1]] = r.back();
  c.summed.push_back({l.back(), r[r.size() - 2]});
  return c;
}

template <typename Op>
static codegen::Convolution convolutionOfImages(Op op) {
  codegen::Convolution c;
  c.lhs = hlo::tensorType(op.getInput());
  c.rhs = hlo::tensorType(op.getFilter());
  c.result = op.getAccType();
  const int64_t spatial = c.lhs.getRank() - 2;
  c.lhsBatch = c.resultBatch = 0;
  c.lhsFeature = c.resultFeature = c.rhsOutput = spatial + 1;
  c.rhsInput = spatial;
  c.groups = isa<kernel::DepthwiseConvOp>(op) ? c.lhs.getShape().back() : static_cast<int64_t>(op.getGroups());
  c.batchGroups = op.getBatchGroups();
  for (int64_t i = 0; i < spatial; ++i)
    c.spatial.push_back({i + 1, i, i + 1, op.getStrides()[i], op.getPadding()[2 * i], op.getLhsDilation()[i],
                         op.getRhsDilation()[i], false});
  return c;
}

codegen::Convolution convolutionOf(kernel::ConvOp op) { return convolutionOfImages(op); }
codegen::Convolution convolutionOf(kernel::DepthwiseConvOp op) { return convolutionOfImages(op); }

Pooling::Pooling(kernel::PoolOp op, KernelBuilder &b)
    : b(b), kind(op.getKind()), input(hlo::elementType(op.getInput())), acc(op.getAccType().getElementType()) {}

Value Pooling::begin(unsigned lanes) {
  Type t = codegen::regType(acc, lanes);
  const bool isMax = kind != "min";
  if (kind == "max_number") {
    auto lowest = APFloat::getLargest(cast<FloatType>(input).getFloatSemantics(), /*Negative=*/true);
    return b.cst(t, lowest.convertToDouble());
  }
  if (kind == "sum" || kind == "avg")
    return b.cstI(t, 0);
  if (isa<FloatType>(getElementTypeOrSelf(t)))
    return b.cst(t, isMax ? -INFINITY : INFINITY);
  const unsigned width = getElementTypeOrSelf(t).getIntOrFloatBitWidth();
  const APInt limit = codegen::isUnsignedElem(acc) ? (isMax ? APInt::getMinValue(width) : APInt::getMaxValue(width))
                                               : (isMax ? APInt::getSignedMinValue(width) : APInt::getSignedMaxValue(width));
  return b.cstI(t, limit.getSExtValue());
}

Value Pooling::element(Value x) { return codegen::emitConvert(b, x, input, acc); }

Value Pooling::add(Value sum, Value x) {
  const bool isFloat = isa<FloatType>(getElementTypeOrSelf(sum)), isUnsigned = codegen::isUnsignedElem(acc), isMax = kind == "max";
  if (kind == "max_number") // never a NaN
    return b.select(arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, x, sum), x, sum);
  if (kind != "max" && kind != "min") {
    if (isFloat)
      return arith::AddFOp::create(b, sum, x);
    return arith::AddIOp::create(b, sum, x);
  }
  if (isFloat)
    return isMax ? arith::MaximumFOp::create(b, sum, x).getResult() : arith::MinimumFOp::create(b, sum, x).getResult();
  if (isUnsigned)
    return isMax ? arith::MaxUIOp::create(b, sum, x).getResult() : arith::MinUIOp::create(b, sum, x).getResult();
  return isMax ? arith::MaxSIOp::create(b, sum, x).getResult() : arith::MinSIOp::create(b, sum, x).getResult();
}

Value Pooling::finish(Value sum, llvm::function_ref<Value()> elements) {
  if (kind != "avg")
    return sum;
  Value count = codegen::emitConvert(b, b.max(elements(), b.i64(1)), b.getI64Type(), acc);
  count = b.splatElem(acc, count, codegen::lanesOf(sum.getType()));
  if (isa<FloatType>(getElementTypeOrSelf(sum)))
    return arith::DivFOp::create(b, sum, count);
  return arith::DivSIOp::create(b, sum, count);
}

namespace {
/// Results of a kernel.pool, one or several neighbours.
class Pool {
public:
  Pool(kernel::PoolOp op, KernelBuilder &b)
      : op(op), b(b), pooling(op, b), input(hlo::tensorType(op.getInput())), sizes(b.dims(input)) {}

  Value at(ArrayRef<Value> index, unsigned lanes);
  int64_t steps() const {
    int64_t count = 1;
    for (int64_t taps : op.getWindow())
      count *= taps;
    return count;
  }

private:
  mutable kernel::PoolOp op;
  KernelBuilder &b;
  Pooling pooling;
  RankedTensorType input;
  SmallVector<Value> sizes;
};
} // namespace

Value Pool::at(ArrayRef<Value> index, unsigned lanes) {
  const size_t spatial = op.getWindow().size();
  SmallVector<Value> from(index);
  // carried: the sum, and how many elements of the input are in it
  std::function<SmallVector<Value>(size_t, ValueRange)> nest = [&](size_t i, ValueRange carried) -> SmallVector<Value> {
    if (i == spatial) {
      Value x = b.loadElem(input.getElementType(), b.operands[0], b.linearize(from, sizes), lanes);
      return {pooling.add(carried[0], pooling.element(x)), b.add(carried[1], b.i64(1))};
    }
    return b.loop(b.i64(0), b.i64(op.getWindow()[i]), b.i64(1), carried, [&](Value tap, ValueRange now) {
      Value first = b.sub(b.mul(index[i + 1], b.i64(op.getStrides()[i])), b.i64(op.getPadding()[2 * i]));
      Value place = b.add(first, b.mul(tap, b.i64(op.getWindowDilation()[i])));
      return b.ifElse(b.inRange(place, b.i64(0), sizes[i + 1]), now.getTypes(), [&] {
        from[i + 1] = place;
        return nest(i + 1, now);
      }, [&] { return SmallVector<Value>(now); });
    });
  };
  SmallVector<Value> done = nest(0, ValueRange{pooling.begin(lanes), b.i64(0)});
  return pooling.finish(done[0], [&] { return done[1]; });
}

/// `core`: anything with at(index), or at(index, lanes).
template <typename Core>
static void bind(codegen::ElementEmitter &e, Value accumulator, std::shared_ptr<Core> core) {
  e.bindElement(accumulator, [core](ArrayRef<Value> index, unsigned lanes) -> FailureOr<Value> {
    if constexpr (std::is_same_v<Core, codegen::ContractionSum>)
      return lanes == 1 ? core->at(index) : Value();
    else
      return core->at(index, lanes);
  });
}

FailureOr<int64_t> bindCore(Operation *op, KernelBuilder &b, codegen::ElementEmitter &e) {
  Value accumulator = kernel::hasCore(op) ? Value(op->getRegion(0).getArgument(0)) : Value(op->getResult(0));
  auto contraction = [&](codegen::Contraction c) {
    auto sum = std::make_shared<codegen::ContractionSum>(b, std::move(c));
    bind(e, accumulator, sum);
    return sum->steps().value_or(unknownSteps);
  };
  auto convolution = [&](codegen::Convolution c) {
    auto sum = std::make_shared<codegen::ConvolutionSum>(b, std::move(c));
    bind(e, accumulator, sum);
    return sum->steps().value_or(unknownSteps);
  };
  if (auto dot = dyn_cast<kernel::DotOp>(op))
    return contraction(contractionOf(dot));
  if (isa<hlo::DotOp, hlo::DotGeneralOp>(op))
    return contraction(codegen::contractionOf(op));
  if (auto conv = dyn_cast<kernel::ConvOp>(op))
    return convolution(convolutionOf(conv));
  if (auto conv = dyn_cast<kernel::DepthwiseConvOp>(op))
    return convolution(convolutionOf(conv));
  if (auto conv = dyn_cast<hlo::ConvolutionOp>(op))
    return convolution(codegen::Convolution::of(conv));
  if (auto pool = dyn_cast<kernel::PoolOp>(op)) {
    auto one = std::make_shared<Pool>(pool, b);
    bind(e, accumulator, one);
    return one->steps();
  }
  return op->emitError() << "no plain loops for " << op->getName();
}

} // namespace lathe::plain
