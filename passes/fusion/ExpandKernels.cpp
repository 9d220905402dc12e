// kernel.dot {..} -> hlo.transpose, hlo.dot_general and the epilogue's ops; kernel.loop -> its region's ops; and so on.
#include "passes/fusion/ExpandKernels.h"
#include "passes/fusion/Passes.h"

#include "dialects/hlo/Constants.h"
#include "dialects/hlo/Hlo.h"
#include "dialects/hlo/MaxNumber.h"
#include "dialects/hlo/Shape.h"
#include "dialects/kernel/Kernel.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace lathe::fusion {
#define GEN_PASS_DEF_KERNELEXPAND
#include "passes/fusion/Passes.h.inc"
} // namespace lathe::fusion

namespace lathe {
namespace {

struct KernelExpand : fusion::impl::KernelExpandBase<KernelExpand> {
  void runOnOperation() override {
    if (failed(expandKernels(getOperation())))
      signalPassFailure();
  }
};

RankedTensorType typeOf(Value v) { return cast<RankedTensorType>(v.getType()); }

Value permute(OpBuilder &b, Location loc, Value v, ArrayRef<int64_t> order) {
  if (llvm::equal(order, llvm::seq<int64_t>(0, order.size())))
    return v;
  return hlo::TransposeOp::create(b, loc, v, order);
}

Value convert(OpBuilder &b, Location loc, Value v, Type element) {
  return typeOf(v).getElementType() == element ? v : Value(hlo::ConvertOp::create(b, loc, v, element));
}

/// A shared operand (no batch dimensions) repeated for the batch.
Value withBatch(OpBuilder &b, Location loc, Value v, ArrayRef<AffineExpr> batch) {
  RankedTensorType t = typeOf(v);
  if (t.getRank() != 2 || batch.empty())
    return v;
  SmallVector<AffineExpr> dims(batch);
  SmallVector<AffineExpr> own = hlo::getDims(t);
  dims.append(own.begin(), own.end());
  int64_t n = batch.size();
  return hlo::BroadcastInDimOp::create(b, loc, hlo::makeType(dims, t.getElementType()), v,
                                       ArrayRef<int64_t>{n, n + 1});
}

FailureOr<Value> expandDot(OpBuilder &b, kernel::DotOp op) {
  if (op.getLayout())
    return op.emitOpError("holds a packed operand");
  Location loc = op.getLoc();
  Type acc = op.getAccType().getElementType();
  Value lhs = convert(b, loc, permute(b, loc, op.getLhs(), op.getLhsDims()), acc);
  Value rhs = convert(b, loc, permute(b, loc, op.getRhs(), op.getRhsDims()), acc);
  int64_t batch = op.getBatchRank();
  SmallVector<AffineExpr> resultDims = hlo::getDims(op.getAccType()), batchDims;
  for (int64_t i = 0; i < batch; ++i)
    batchDims.push_back(resultDims[op.getResultDims()[i]]);
  lhs = withBatch(b, loc, lhs, batchDims);
  rhs = withBatch(b, loc, rhs, batchDims);
  SmallVector<int64_t> batching = llvm::to_vector(llvm::seq<int64_t>(0, batch));
  auto dims = hlo::DotDimensionNumbersAttr::get(op.getContext(), batching, batching, {batch + 1}, {batch});
  Value product = hlo::DotGeneralOp::create(b, loc, lhs, rhs, dims, acc);
  SmallVector<int64_t> order(batch + 2);
  for (auto [i, d] : llvm::enumerate(op.getResultDims()))
    order[d] = i;
  return permute(b, loc, product, order);
}

template <typename Op>
FailureOr<Value> expandConv(OpBuilder &b, Op op) {
  Location loc = op.getLoc();
  RankedTensorType accType = op.getAccType();
  Type acc = accType.getElementType();
  int64_t rank = accType.getRank();
  SmallVector<int64_t> spatial = llvm::to_vector(llvm::seq<int64_t>(1, rank - 1)), kernelSpatial;
  for (int64_t s : spatial)
    kernelSpatial.push_back(s - 1);
  auto dims = hlo::ConvDimensionNumbersAttr::get(op.getContext(), 0, rank - 1, spatial, rank - 2, rank - 1, kernelSpatial,
                                                 0, rank - 1, spatial);
  hlo::ConvWindow window;
  window.strides.assign(op.getStrides().begin(), op.getStrides().end());
  window.lhsDilation.assign(op.getLhsDilation().begin(), op.getLhsDilation().end());
  window.rhsDilation.assign(op.getRhsDilation().begin(), op.getRhsDilation().end());
  for (size_t i = 0; i + 1 < op.getPadding().size(); i += 2)
    window.padding.push_back({op.getPadding()[i], op.getPadding()[i + 1]});
  return Value(hlo::ConvolutionOp::create(b, loc, convert(b, loc, op.getInput(), acc), convert(b, loc, op.getFilter(), acc),
                                          window, dims, op.getGroups(), op.getBatchGroups(), acc));
}

Value reduceWindow(OpBuilder &b, kernel::PoolOp op, Value input, StringRef kind) {
  Location loc = op.getLoc();
  Type element = typeOf(input).getElementType();
  Value init = kind == "max"   ? hlo::makeLowest(b, loc, element)
               : kind == "max_number" ? hlo::makeLowest(b, loc, element, /*infinite=*/false)
               : kind == "min" ? hlo::makeHighest(b, loc, element)
                               : hlo::makeScalar(b, loc, 0, element);
  hlo::ReduceWindow window;
  SmallVector<int64_t> size = {1};
  auto around = [](ArrayRef<int64_t> list) {
    SmallVector<int64_t> all = {1};
    all.append(list.begin(), list.end());
    all.push_back(1);
    return all;
  };
  size = around(op.getWindow());
  window.strides = around(op.getStrides());
  window.windowDilations = around(op.getWindowDilation());
  window.baseDilations.assign(size.size(), 1);
  window.padding.push_back({0, 0});
  for (size_t i = 0; i + 1 < op.getPadding().size(); i += 2)
    window.padding.push_back({op.getPadding()[i], op.getPadding()[i + 1]});
  window.padding.push_back({0, 0});
  auto reduce = hlo::ReduceWindowOp::create(
      b, loc, ValueRange{input}, ValueRange{init}, size, window,
      [&](OpBuilder &b, Location loc, ValueRange args) -> SmallVector<Value> {
        if (kind == "max")
          return {hlo::MaxOp::create(b, loc, args[0], args[1])};
        if (kind == "max_number")
          return {hlo::makeMaxNumber(b, loc, args[0], args[1])};
        if (kind == "min")
          return {hlo::MinOp::create(b, loc, args[0], args[1])};
        return {hlo::AddOp::create(b, loc, args[0], args[1])};
      });
  return reduce->getResult(0);
}

FailureOr<Value> expandPool(OpBuilder &b, kernel::PoolOp op) {
  Location loc = op.getLoc();
  Type acc = op.getAccType().getElementType();
  Value input = convert(b, loc, op.getInput(), acc);
  if (op.getKind() != "avg")
    return reduceWindow(b, op, input, op.getKind());
  Value sum = reduceWindow(b, op, input, "sum");
  Value one = hlo::makeSplat(b, loc, 1, typeOf(input));
  return Value(hlo::DivOp::create(b, loc, sum, reduceWindow(b, op, one, "sum")));
}

} // namespace

FailureOr<SmallVector<Value>> expandKernel(Operation *op) {
  OpBuilder b(op);
  IRMapping map;
  Block &body = op->getRegion(0).front();
  if (kernel::hasCore(op)) {
    FailureOr<Value> core;
    size_t extras = 2;
    if (auto dot = dyn_cast<kernel::DotOp>(op)) {
      core = expandDot(b, dot);
    } else if (auto conv = dyn_cast<kernel::ConvOp>(op)) {
      if (conv.getLayout())
        return conv.emitOpError("holds a packed operand");
      core = expandConv(b, conv);
    } else if (auto conv = dyn_cast<kernel::DepthwiseConvOp>(op)) {
      core = expandConv(b, conv);
    } else {
      core = expandPool(b, cast<kernel::PoolOp>(op));
      extras = 1;
    }
    if (failed(core))
      return failure();
    if (core->getType() != body.getArgument(0).getType())
      return op->emitOpError("core gives ") << core->getType() << ", the region expects " << body.getArgument(0).getType();
    map.map(body.getArgument(0), *core);
    for (auto [arg, value] : llvm::zip_equal(body.getArguments().drop_front(), op->getOperands().drop_front(extras)))
      map.map(arg, value);
  } else {
    map.map(body.getArguments(), op->getOperands());
  }
  for (Operation &inner : body.without_terminator())
    b.clone(inner, map);
  SmallVector<Value> values;
  for (Value v : body.getTerminator()->getOperands())
    values.push_back(map.lookupOrDefault(v));
  op->replaceAllUsesWith(values);
  op->erase();
  return values;
}

LogicalResult expandKernels(ModuleOp module) {
  SmallVector<Operation *> kernels;
  module.walk([&](Operation *op) {
    if (kernel::isKernelOp(op))
      kernels.push_back(op);
  });
  for (Operation *op : kernels)
    if (failed(expandKernel(op)))
      return failure();
  return success();
}

} // namespace lathe
