//===- CoreOps.cpp - products, convolutions and pooling as kernels ----------===//

#include "passes/fusion/CoreOps.h"

#include "dialects/hlo/Hlo.h"
#include "dialects/hlo/MaxNumber.h"
#include "dialects/hlo/Running.h"
#include "dialects/kernel/Kernel.h"
#include "passes/fusion/OpInfo.h"

#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace lathe;

static bool allEqual(ArrayRef<int64_t> values, int64_t value) {
  return llvm::all_of(values, [&](int64_t v) { return v == value; });
}

static SmallVector<int64_t> orOnes(std::optional<ArrayRef<int64_t>> values, int64_t size) {
  return values ? SmallVector<int64_t>(*values) : SmallVector<int64_t>(size, 1);
}

static SmallVector<int64_t> orZeros(std::optional<DenseIntElementsAttr> padding, int64_t size) {
  if (!padding)
    return SmallVector<int64_t>(size, 0);
  return llvm::to_vector(padding->getValues<int64_t>());
}

bool lathe::isReduceForKernel(Operation *op) {
  auto reduce = dyn_cast<hlo::ReduceOp>(op);
  if (!reduce || !llvm::hasSingleElement(reduce.getBody()) || reduce.getInputs().empty())
    return false;
  for (Operation &inner : reduce.getBody().front().without_terminator())
    if (inner.getNumRegions() || !isMemoryEffectFree(&inner))
      return false;
  SetVector<Value> captured;
  getUsedValuesDefinedAbove(reduce.getBody(), captured);
  return captured.empty();
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// Dimensions of an operand that are neither batch nor contracted.
static SmallVector<int64_t> freeDims(int64_t rank, ArrayRef<int64_t> batch, ArrayRef<int64_t> contracting) {
  SmallVector<int64_t> dims;
  for (int64_t i = 0; i < rank; ++i)
    if (!llvm::is_contained(batch, i) && !llvm::is_contained(contracting, i))
      dims.push_back(i);
  return dims;
}

static bool isPlainDot(hlo::DotGeneralOp op) {
  auto dims = op.getDotDimensionNumbers();
  int64_t batch = dims.getLhsBatchingDimensions().size();
  return dims.getLhsContractingDimensions().size() == 1 &&
         cast<RankedTensorType>(op.getLhs().getType()).getRank() == batch + 2 &&
         cast<RankedTensorType>(op.getRhs().getType()).getRank() == batch + 2;
}

//===----------------------------------------------------------------------===//
// Convolutions
//===----------------------------------------------------------------------===//

static bool isIota(ArrayRef<int64_t> dims, int64_t first) {
  for (auto [i, d] : llvm::enumerate(dims))
    if (d != first + static_cast<int64_t>(i))
      return false;
  return true;
}

static bool isPlainConv(hlo::ConvolutionOp op) {
  auto d = op.getDimensionNumbers();
  int64_t rank = cast<RankedTensorType>(op.getLhs().getType()).getRank();
  if (rank < 3 || (op.getWindowReversal() && llvm::is_contained(*op.getWindowReversal(), true)))
    return false;
  return d.getInputBatchDimension() == 0 && d.getInputFeatureDimension() == rank - 1 &&
         isIota(d.getInputSpatialDimensions(), 1) && d.getOutputBatchDimension() == 0 &&
         d.getOutputFeatureDimension() == rank - 1 && isIota(d.getOutputSpatialDimensions(), 1) &&
         isIota(d.getKernelSpatialDimensions(), 0) && d.getKernelInputFeatureDimension() == rank - 2 &&
         d.getKernelOutputFeatureDimension() == rank - 1;
}

static bool isDepthwise(hlo::ConvolutionOp op) {
  auto in = cast<RankedTensorType>(op.getLhs().getType()), filter = cast<RankedTensorType>(op.getRhs().getType());
  int64_t rank = in.getRank();
  return op.getBatchGroupCount() == 1 && static_cast<int64_t>(op.getFeatureGroupCount()) == in.getDimSize(rank - 1) &&
         op.getFeatureGroupCount() > 1 && filter.getDimSize(rank - 2) == 1 && !filter.isDynamicDim(rank - 1);
}

//===----------------------------------------------------------------------===//
// Pooling
//===----------------------------------------------------------------------===//

/// "max", "min" or "sum" when the body is that and the start value its identity, "max_number" with the lowest finite
/// number; else empty.
static StringRef poolKind(hlo::ReduceWindowOp op) {
  if (op.getInputs().size() != 1 || !llvm::hasSingleElement(op.getBody()))
    return "";
  DenseElementsAttr init;
  if (!matchPattern(op.getInitValues().front(), m_Constant(&init)) || !init.isSplat())
    return "";
  Type element = init.getElementType();
  if (isa<FloatType>(element) && hlo::isMaxNumber(op.getBody())) {
    APFloat start = init.getSplatValue<APFloat>();
    return start.isLargest() && start.isNegative() ? "max_number" : "";
  }
  Block &body = op.getBody().front();
  if (body.getOperations().size() != 2 || body.getNumArguments() != 2)
    return "";
  Operation &inner = body.front();
  bool both = inner.getNumOperands() == 2 && inner.getNumResults() == 1 &&
              ((inner.getOperand(0) == body.getArgument(0) && inner.getOperand(1) == body.getArgument(1)) ||
               (inner.getOperand(0) == body.getArgument(1) && inner.getOperand(1) == body.getArgument(0))) &&
              body.back().getOperands() == inner.getResults();
  if (!both)
    return "";
  if (isa<FloatType>(element)) {
    APFloat start = init.getSplatValue<APFloat>();
    if (isa<hlo::AddOp>(inner))
      return start.isZero() ? "sum" : "";
    if (isa<hlo::MaxOp>(inner))
      return start.isInfinity() && start.isNegative() ? "max" : "";
    if (isa<hlo::MinOp>(inner))
      return start.isInfinity() && !start.isNegative() ? "min" : "";
    return "";
  }
  auto integer = dyn_cast<IntegerType>(element);
  if (!integer || integer.getWidth() == 1)
    return "";
  APInt start = init.getSplatValue<APInt>();
  bool isUnsigned = integer.isUnsigned();
  if (isa<hlo::AddOp>(inner))
    return start.isZero() ? "sum" : "";
  if (isa<hlo::MaxOp>(inner))
    return (isUnsigned ? start.isMinValue() : start.isMinSignedValue()) ? "max" : "";
  if (isa<hlo::MinOp>(inner))
    return (isUnsigned ? start.isMaxValue() : start.isMaxSignedValue()) ? "min" : "";
  return "";
}

static bool isPlainPool(hlo::ReduceWindowOp op) {
  int64_t rank = cast<RankedTensorType>(op.getInputs().front().getType()).getRank();
  if (rank < 3 || hlo::runningWindow(op) || poolKind(op).empty() ||
      (op.getBaseDilations() && !allEqual(*op.getBaseDilations(), 1)))
    return false;
  auto strides = orOnes(op.getWindowStrides(), rank), dilations = orOnes(op.getWindowDilations(), rank);
  auto padding = orZeros(op.getPadding(), 2 * rank);
  for (int64_t d : {int64_t(0), rank - 1})
    if (op.getWindowDimensions()[d] != 1 || strides[d] != 1 || padding[2 * d] != 0 || padding[2 * d + 1] != 0)
      return false;
  return true;
}

//===----------------------------------------------------------------------===//
// All of them
//===----------------------------------------------------------------------===//

bool lathe::isCoreForKernel(Operation *op) {
  if (auto dot = dyn_cast<hlo::DotGeneralOp>(op))
    return isPlainDot(dot);
  if (auto conv = dyn_cast<hlo::ConvolutionOp>(op))
    return isPlainConv(conv);
  if (auto pool = dyn_cast<hlo::ReduceWindowOp>(op))
    return isPlainPool(pool);
  return false;
}

bool lathe::readsThrough(Operation *core, Operation *operand) {
  if (isa<hlo::DotGeneralOp>(core))
    return isa<hlo::TransposeOp>(operand);
  auto pool = dyn_cast<hlo::ReduceWindowOp>(core);
  auto convert = dyn_cast<hlo::ConvertOp>(operand);
  if (!pool || !convert || pool.getInputs().front().getDefiningOp() != operand)
    return false;
  Type from = getElementTypeOrSelf(convert.getOperand().getType()), to = getElementTypeOrSelf(convert.getType());
  return (from.isInteger(8) || from.isInteger(16)) && to.isInteger(32) && poolKind(pool) == "sum";
}

CoreOperands lathe::coreOperands(Operation *op, llvm::function_ref<bool(Operation *)> mayLookThrough) {
  CoreOperands result;
  unsigned count = isa<hlo::ReduceWindowOp>(op) ? 1 : 2;
  for (Value v : op->getOperands().take_front(count)) {
    SmallVector<int64_t> permutation;
    if (auto transpose = v.getDefiningOp<hlo::TransposeOp>(); transpose && mayLookThrough(transpose)) {
      permutation.assign(transpose.getPermutation().begin(), transpose.getPermutation().end());
      v = transpose.getOperand();
    } else if (auto convert = v.getDefiningOp<hlo::ConvertOp>(); convert && mayLookThrough(convert)) {
      v = convert.getOperand();
    }
    result.values.push_back(v);
    result.permutations.push_back(permutation);
  }
  return result;
}

Operation *lathe::buildCoreKernel(OpBuilder &b, Location loc, Operation *op, const CoreOperands &operands,
                                  ArrayRef<int64_t> resultPermutation, TypeRange results, ValueRange extras,
                                  EpilogueBuilder epilogue) {
  Type element = getElementTypeOrSelf(op->getResult(0).getType());
  Type lhs = getElementTypeOrSelf(op->getOperand(0).getType());
  Type rhs = isa<hlo::ReduceWindowOp>(op) ? lhs : getElementTypeOrSelf(op->getOperand(1).getType());
  Type accElement = kernel::accumulatorType(lhs, rhs, element);
  auto body = [&](OpBuilder &inner, Location, ValueRange args) {
    Value core = args.front();
    if (accElement != element)
      core = hlo::ConvertOp::create(inner, op->getLoc(), core, element);
    return epilogue(inner, core, args.drop_front());
  };
  ArrayRef<Value> values = operands.values;

  if (auto dot = dyn_cast<hlo::DotGeneralOp>(op)) {
    auto d = dot.getDotDimensionNumbers();
    auto order = [](Value v, ArrayRef<int64_t> batch, ArrayRef<int64_t> contracting, bool contractingLast,
                    ArrayRef<int64_t> permutation) {
      SmallVector<int64_t> dims(batch);
      SmallVector<int64_t> rest = freeDims(cast<RankedTensorType>(v.getType()).getRank(), batch, contracting);
      if (contractingLast)
        dims.append(rest);
      dims.append(contracting.begin(), contracting.end());
      if (!contractingLast)
        dims.append(rest);
      if (!permutation.empty())
        for (int64_t &x : dims)
          x = permutation[x];
      return dims;
    };
    SmallVector<int64_t> lhsDims = order(values[0], d.getLhsBatchingDimensions(), d.getLhsContractingDimensions(), true,
                                         operands.permutations[0]);
    SmallVector<int64_t> rhsDims = order(values[1], d.getRhsBatchingDimensions(), d.getRhsContractingDimensions(),
                                         false, operands.permutations[1]);
    SmallVector<int64_t> resultDims(cast<RankedTensorType>(dot.getType()).getRank());
    for (int64_t i = 0, e = resultDims.size(); i < e; ++i)
      resultDims[resultPermutation.empty() ? i : resultPermutation[i]] = i;
    return kernel::DotOp::create(b, loc, results, values[0], values[1], extras, lhsDims, rhsDims, resultDims,
                                 accElement, body);
  }

  if (auto conv = dyn_cast<hlo::ConvolutionOp>(op)) {
    int64_t spatial = cast<RankedTensorType>(conv.getLhs().getType()).getRank() - 2;
    auto strides = orOnes(conv.getWindowStrides(), spatial), padding = orZeros(conv.getPadding(), 2 * spatial);
    auto lhsDilation = orOnes(conv.getLhsDilation(), spatial), rhsDilation = orOnes(conv.getRhsDilation(), spatial);
    int64_t groups = conv.getFeatureGroupCount(), batchGroups = conv.getBatchGroupCount();
    if (isDepthwise(conv))
      return kernel::DepthwiseConvOp::create(b, loc, results, values[0], values[1], extras, strides, padding,
                                             lhsDilation, rhsDilation, groups, batchGroups, accElement, body);
    return kernel::ConvOp::create(b, loc, results, values[0], values[1], extras, strides, padding, lhsDilation,
                                  rhsDilation, groups, batchGroups, accElement, body);
  }

  auto pool = cast<hlo::ReduceWindowOp>(op);
  int64_t rank = cast<RankedTensorType>(pool.getInputs().front().getType()).getRank();
  auto inner = [&](ArrayRef<int64_t> all) { return all.drop_front().drop_back(); };
  auto strides = orOnes(pool.getWindowStrides(), rank), dilations = orOnes(pool.getWindowDilations(), rank);
  auto padding = orZeros(pool.getPadding(), 2 * rank);
  return kernel::PoolOp::create(b, loc, results, values[0], extras, poolKind(pool), inner(pool.getWindowDimensions()),
                                inner(strides), ArrayRef(padding).drop_front(2).drop_back(2), inner(dilations),
                                accElement, body);
}
