#include "passes/codegen/library/Sums.h"

#include "dialects/hlo/Hlo.h"
#include "passes/codegen/element/Complex.h"
#include "passes/codegen/element/ElementEmitter.h"
#include "passes/codegen/element/LongSums.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <functional>

using namespace mlir;

namespace lathe::codegen {

static Type sumType(Type result) {
  const bool narrow = isa<FloatType>(result) && result.getIntOrFloatBitWidth() < 32;
  return narrow ? Type(Float32Type::get(result.getContext())) : result;
}

Accumulator::Accumulator(KernelBuilder &b, Type lhs, Type rhs, Type result)
    : b(b), lhs(lhs), rhs(rhs), result(result), acc(sumType(result)) {}

Value Accumulator::zero(unsigned lanes) { return b.cstI(regType(acc, lanes), 0); }

Value Accumulator::step(Value sum, Value x, Value y) {
  x = emitConvert(b, x, lhs, acc);
  y = emitConvert(b, y, rhs, acc);
  if (isa<ComplexType>(acc))
    return pack(unpack(b, sum) + unpack(b, x) * unpack(b, y));
  E s(b, sum), p(b, x), q(b, y);
  if (acc.isInteger(1))
    return s | (p & q);
  return s.isFloat() ? fma(p, q, s) : s + p * q;
}

Value Accumulator::finish(Value sum) { return emitConvert(b, sum, acc, result); }

Value Accumulator::loop(Value lo, Value hi, int64_t additions, Value init, llvm::function_ref<Value(Value, Value)> body) {
  auto one = [&](Value i, ValueRange s) { return SmallVector<Value>{body(i, s[0])}; };
  SumBlocks how;
  how.perStep = additions;
  return isa<IntegerType>(acc) ? b.loop(lo, hi, b.i64(1), init, one)[0] : sumLoop(b, lo, hi, 1, init, how, one)[0];
}

Contraction contractionOf(Operation *op) {
  Contraction c;
  c.lhs = hlo::tensorType(op->getOperand(0));
  c.rhs = hlo::tensorType(op->getOperand(1));
  c.result = hlo::elementType(op->getResult(0));
  SmallVector<int64_t> lhsBatch, rhsBatch, lhsSummed, rhsSummed;
  if (auto d = dyn_cast<hlo::DotGeneralOp>(op)) {
    auto n = d.getDotDimensionNumbers();
    llvm::append_range(lhsBatch, n.getLhsBatchingDimensions());
    llvm::append_range(rhsBatch, n.getRhsBatchingDimensions());
    llvm::append_range(lhsSummed, n.getLhsContractingDimensions());
    llvm::append_range(rhsSummed, n.getRhsContractingDimensions());
  } else {
    lhsSummed = {c.lhs.getRank() - 1};
    rhsSummed = {0};
  }
  for (auto [l, r] : llvm::zip(lhsBatch, rhsBatch)) {
    c.lhsDims.push_back(l);
    c.rhsDims.push_back(r);
  }
  for (int64_t i = 0; i < c.lhs.getRank(); ++i)
    if (!llvm::is_contained(lhsBatch, i) && !llvm::is_contained(lhsSummed, i)) {
      c.lhsDims.push_back(i);
      c.rhsDims.push_back(-1);
    }
  for (int64_t i = 0; i < c.rhs.getRank(); ++i)
    if (!llvm::is_contained(rhsBatch, i) && !llvm::is_contained(rhsSummed, i)) {
      c.lhsDims.push_back(-1);
      c.rhsDims.push_back(i);
    }
  for (auto [l, r] : llvm::zip(lhsSummed, rhsSummed))
    c.summed.push_back({l, r});
  return c;
}

ContractionSum::ContractionSum(KernelBuilder &b, Contraction contraction)
    : b(b), what(std::move(contraction)), lhsSizes(b.dims(what.lhs)), rhsSizes(b.dims(what.rhs)),
      accumulator(b, what.lhs.getElementType(), what.rhs.getElementType(), what.result) {}

std::optional<int64_t> ContractionSum::steps() const {
  int64_t count = 1;
  for (auto [l, r] : what.summed) {
    if (what.lhs.isDynamicDim(l))
      return std::nullopt;
    count *= what.lhs.getDimSize(l);
  }
  return count;
}

Value ContractionSum::at(ValueRange index) {
  SmallVector<Value> l(what.lhs.getRank()), r(what.rhs.getRank());
  for (auto [i, v] : llvm::enumerate(index)) {
    if (what.lhsDims[i] >= 0)
      l[what.lhsDims[i]] = v;
    if (what.rhsDims[i] >= 0)
      r[what.rhsDims[i]] = v;
  }
  std::function<Value(size_t, Value)> nest = [&](size_t k, Value sum) -> Value {
    if (k == what.summed.size())
      return accumulator.step(sum, b.loadElem(what.lhs.getElementType(), b.operands[0], b.linearize(l, lhsSizes)),
                              b.loadElem(what.rhs.getElementType(), b.operands[1], b.linearize(r, rhsSizes)));
    auto [inLhs, inRhs] = what.summed[k];
    SmallVector<Value> inside;
    for (auto [d, unused] : llvm::drop_begin(what.summed, k + 1))
      inside.push_back(lhsSizes[d]);
    return accumulator.loop(b.i64(0), lhsSizes[inLhs], additionsIn(inside), sum, [&, inLhs = inLhs, inRhs = inRhs](Value iv, Value s) {
      l[inLhs] = r[inRhs] = iv;
      return nest(k + 1, s);
    });
  };
  return accumulator.finish(nest(0, accumulator.zero()));
}

Convolution Convolution::of(hlo::ConvolutionOp op) {
  Convolution c;
  auto d = op.getDimensionNumbers();
  c.lhs = hlo::tensorType(op.getLhs());
  c.rhs = hlo::tensorType(op.getRhs());
  c.result = hlo::tensorType(op.getResult());
  c.lhsBatch = d.getInputBatchDimension();
  c.lhsFeature = d.getInputFeatureDimension();
  c.rhsInput = d.getKernelInputFeatureDimension();
  c.rhsOutput = d.getKernelOutputFeatureDimension();
  c.resultBatch = d.getOutputBatchDimension();
  c.resultFeature = d.getOutputFeatureDimension();
  c.groups = op.getFeatureGroupCount();
  c.batchGroups = op.getBatchGroupCount();
  const size_t spatial = d.getInputSpatialDimensions().size();
  SmallVector<int64_t> strides = hlo::getListOr(op.getWindowStrides(), spatial, 1),
                       lhsDilation = hlo::getListOr(op.getLhsDilation(), spatial, 1),
                       rhsDilation = hlo::getListOr(op.getRhsDilation(), spatial, 1);
  auto padding = hlo::getPadding(cast_or_null<DenseIntElementsAttr>(op.getPaddingAttr()), spatial);
  SmallVector<bool> reversed(spatial, false);
  if (auto r = op.getWindowReversal())
    reversed.assign(r->begin(), r->end());
  for (size_t i = 0; i < spatial; ++i)
    c.spatial.push_back({d.getInputSpatialDimensions()[i], d.getKernelSpatialDimensions()[i], d.getOutputSpatialDimensions()[i],
                         strides[i], padding[i].first, lhsDilation[i], rhsDilation[i], reversed[i]});
  return c;
}

Value loadChannels(KernelBuilder &b, Type element, Value base, Value index, Value feature, int64_t each, unsigned lanes) {
  if (each == 1 || lanes == 1)
    return b.loadElem(element, base, index, lanes);
  if (each % lanes == 0)
    return b.splat(b.loadElem(element, base, index), lanes);
  SmallVector<Value> values;
  for (unsigned i = 0; i < lanes; ++i) {
    if (lanes % each == 0) // whole channels
      values.push_back(i % each ? values.back() : b.loadElem(element, base, b.add(index, b.i64(i / each))));
    else
      values.push_back(b.loadElem(element, base, b.add(index, b.divU(b.add(b.remU(feature, b.i64(each)), b.i64(i)), b.i64(each)))));
  }
  return vector::FromElementsOp::create(b, VectorType::get(lanes, values[0].getType()), values);
}

ConvolutionSum::ConvolutionSum(KernelBuilder &b, Convolution convolution)
    : accumulator(b, convolution.lhs.getElementType(), convolution.rhs.getElementType(), convolution.result.getElementType()), b(b),
      what(std::move(convolution)), lhsSizes(b.dims(what.lhs)), rhsSizes(b.dims(what.rhs)), resultSizes(b.dims(what.result)) {}

std::optional<int64_t> ConvolutionSum::steps() const {
  if (!what.rhs.hasStaticShape())
    return std::nullopt;
  return what.rhs.getNumElements() / std::max<int64_t>(1, what.rhs.getDimSize(what.rhsOutput));
}

ConvolutionSum::Start ConvolutionSum::startOf(ValueRange index) {
  Value features = resultSizes[what.resultFeature], channels = rhsSizes[what.rhsInput], f = index[what.resultFeature];
  const bool own = what.result.getDimSize(what.resultFeature) == what.groups;
  Value group = own ? f : b.divU(b.mul(f, b.i64(what.groups)), features);
  // with batch groups a feature reads its own part of the batch
  Value part = b.divU(b.mul(f, b.i64(what.batchGroups)), features);
  Start start{SmallVector<Value>(what.lhs.getRank()), SmallVector<Value>(what.rhs.getRank()), b.mul(group, channels)};
  start.lhs[what.lhsBatch] = b.add(index[what.resultBatch], b.mul(part, resultSizes[what.resultBatch]));
  start.rhs[what.rhsOutput] = f;
  return start;
}

Value ConvolutionSum::setTap(Start &start, const Convolution::Spatial &d, ValueRange index, Value k) {
  Value pos = b.sub(b.add(b.mul(index[d.result], b.i64(d.stride)), b.mul(k, b.i64(d.rhsDilation))), b.i64(d.padLow));
  Value inside = b.ge(pos, b.i64(0));
  if (d.lhsDilation != 1) {
    Value step = b.i64(d.lhsDilation);
    inside = b.both(inside, b.eq(arith::RemUIOp::create(b, pos, step), b.i64(0)));
    pos = arith::DivUIOp::create(b, pos, step);
  }
  start.lhs[d.lhs] = pos;
  start.rhs[d.rhs] = d.reversed ? b.sub(b.sub(rhsSizes[d.rhs], b.i64(1)), k) : k;
  return b.both(inside, b.lt(pos, lhsSizes[d.lhs]));
}

Value ConvolutionSum::addProduct(const Start &start, Value feature, Value sum, unsigned lanes) {
  const int64_t all = what.result.getDimSize(what.resultFeature), each = all > 0 ? all / what.groups : 1; // features of a group
  Value x = loadChannels(b, what.lhs.getElementType(), b.operands[0], b.linearize(start.lhs, lhsSizes), feature, each, lanes);
  return accumulator.step(sum, x, b.loadElem(what.rhs.getElementType(), b.operands[1], b.linearize(start.rhs, rhsSizes), lanes));
}

Value ConvolutionSum::count() {
  Value n = rhsSizes[what.rhsInput];
  for (const Convolution::Spatial &d : what.spatial)
    n = b.mul(n, rhsSizes[d.rhs]);
  return n;
}

Value ConvolutionSum::addStep(ValueRange index, Value number, Value sum) {
  SmallVector<Value> sizes;
  for (const Convolution::Spatial &d : what.spatial)
    sizes.push_back(rhsSizes[d.rhs]);
  sizes.push_back(rhsSizes[what.rhsInput]);
  const SmallVector<Value> at = b.delinearize(number, sizes);
  Start start = startOf(index);
  Value inside = b.cstI(b.getI1Type(), 1);
  for (auto [d, k] : llvm::zip(what.spatial, at))
    inside = b.both(inside, setTap(start, d, index, k));
  start.lhs[what.lhsFeature] = b.add(start.firstChannel, at.back());
  start.rhs[what.rhsInput] = at.back();
  return b.ifElse(inside, sum.getType(), [&] { return SmallVector<Value>{addProduct(start, index[what.resultFeature], sum, 1)}; },
                  [&] { return SmallVector<Value>{sum}; })[0];
}

Value ConvolutionSum::at(ValueRange index, unsigned lanes) {
  Start start = startOf(index);
  Value channels = rhsSizes[what.rhsInput];
  std::function<Value(size_t, Value)> nest = [&](size_t i, Value sum) -> Value {
    if (i == what.spatial.size())
      return accumulator.loop(b.i64(0), channels, 1, sum, [&](Value c, Value s) {
        start.lhs[what.lhsFeature] = b.add(start.firstChannel, c);
        start.rhs[what.rhsInput] = c;
        return addProduct(start, index[what.resultFeature], s, lanes);
      });
    const Convolution::Spatial &d = what.spatial[i];
    SmallVector<Value> within{channels};
    for (const Convolution::Spatial &more : llvm::drop_begin(what.spatial, i + 1))
      within.push_back(rhsSizes[more.rhs]);
    return accumulator.loop(b.i64(0), rhsSizes[d.rhs], additionsIn(within), sum, [&](Value k, Value s) -> Value {
      Value inside = setTap(start, d, index, k);
      return b.ifElse(inside, s.getType(), [&] { return SmallVector<Value>{nest(i + 1, s)}; },
                      [&] { return SmallVector<Value>{s}; })[0];
    });
  };
  return accumulator.finish(nest(0, accumulator.zero(lanes)));
}

} // namespace lathe::codegen
