// Builders and verifiers of the kernel dialect.
#include "dialects/kernel/Kernel.h"

#include "dialects/hlo/Hlo.h"

#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace lathe::kernel;
namespace hlo = lathe::hlo;

#include "dialects/kernel/KernelInterfaces.cpp.inc"
#include "dialects/kernel/KernelDialect.cpp.inc"

void KernelDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "dialects/kernel/KernelOps.cpp.inc"
      >();
}

bool lathe::kernel::hasCore(Operation *op) { return isa<DotOp, ConvOp, DepthwiseConvOp, PoolOp>(op); }

bool lathe::kernel::isKernelOp(Operation *op) {
  return hasCore(op) || isa<LoopOp, ReduceOp, RowsOp, ChainOp, AttentionOp>(op);
}

int64_t lathe::kernel::resultRow(OpResult result) {
  auto rows = result.getOwner()->getAttrOfType<DenseI64ArrayAttr>(resultRowsAttr);
  return rows ? rows[result.getResultNumber()] : 0;
}

int64_t lathe::kernel::operandRow(Operation *op, unsigned operand) {
  auto rows = op->getAttrOfType<DenseI64ArrayAttr>(operandRowsAttr);
  return rows ? rows[operand] : 0;
}

bool lathe::kernel::isJoined(OpOperand &part) {
  auto concat = dyn_cast<hlo::ConcatenateOp>(part.getOwner());
  auto joined = concat ? concat->getAttrOfType<DenseBoolArrayAttr>(joinedAttr) : DenseBoolArrayAttr();
  return joined && joined[part.getOperandNumber()];
}

/// One entry a tensor: 0, or no fewer elements than a row of known size has.
static LogicalResult verifyRows(Operation *op, NamedAttribute attribute, TypeRange types) {
  auto rows = dyn_cast<DenseI64ArrayAttr>(attribute.getValue());
  if (!rows || rows.size() != static_cast<int64_t>(types.size()))
    return op->emitOpError() << "expected " << types.size() << " distances of rows in '"
                             << attribute.getName().getValue() << "'";
  for (auto [row, t] : llvm::zip(rows.asArrayRef(), types)) {
    auto type = cast<RankedTensorType>(t);
    if (row != 0 &&
        (type.getRank() == 0 || type.isDynamicDim(type.getRank() - 1) || type.getShape().back() > row))
      return op->emitOpError() << "rows of " << type << " cannot lie " << row << " elements apart";
  }
  return success();
}

LogicalResult KernelDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  StringRef name = attribute.getName().getValue();
  if (name == resultRowsAttr || name == operandRowsAttr) {
    if (!isKernelOp(op) && !isa<hlo::ConcatenateOp>(op))
      return op->emitOpError() << "'" << name << "' is for kernel ops and concatenations";
    return verifyRows(op, attribute,
                      name == resultRowsAttr ? TypeRange(op->getResultTypes())
                                             : TypeRange(op->getOperandTypes()));
  }
  if (name == joinedAttr) {
    auto joined = dyn_cast<DenseBoolArrayAttr>(attribute.getValue());
    if (!isa<hlo::ConcatenateOp>(op) || !joined || joined.size() != op->getNumOperands())
      return op->emitOpError() << "'" << name << "' is for concatenations, one bool a part";
  }
  return success();
}

Type lathe::kernel::accumulatorType(Type lhs, Type rhs, Type result) {
  auto narrow = [](Type t) {
    auto f = dyn_cast<FloatType>(t);
    return f && f.getWidth() <= 32;
  };
  if (narrow(lhs) && narrow(rhs) && (narrow(result)))
    return Float32Type::get(lhs.getContext());
  return result;
}

/// Makes the block of a kernel op with the given argument types and, when there is a callback, its contents.
static void buildBody(OpBuilder &b, OperationState &state, TypeRange argTypes, ArrayRef<Location> argLocs, BodyBuilder body) {
  Region *region = state.addRegion();
  OpBuilder::InsertionGuard guard(b);
  Block *block = b.createBlock(region, {}, argTypes, argLocs);
  if (body)
    YieldOp::create(b, state.location, body(b, state.location, block->getArguments()));
}

static void buildRegionOp(OpBuilder &b, OperationState &state, TypeRange results, ValueRange inputs, BodyBuilder body) {
  state.addOperands(inputs);
  state.addTypes(results);
  SmallVector<Location> locs;
  for (Value v : inputs)
    locs.push_back(v.getLoc());
  buildBody(b, state, inputs.getTypes(), locs, body);
}

/// Operands, results and region of an op with a core; the accumulator has the first result's shape.
static void buildCoreOp(OpBuilder &b, OperationState &state, TypeRange results, ValueRange core, ValueRange extras,
                        Type accElementType, BodyBuilder body) {
  state.addOperands(core);
  state.addOperands(extras);
  state.addTypes(results);
  auto type = cast<RankedTensorType>(results.front());
  SmallVector<Type> types = {type.clone(accElementType)};
  SmallVector<Location> locs = {state.location};
  for (Value v : extras) {
    types.push_back(v.getType());
    locs.push_back(v.getLoc());
  }
  buildBody(b, state, types, locs, body);
}

static SmallVector<int64_t> orDefault(ArrayRef<int64_t> given, int64_t size, int64_t value) {
  return given.empty() ? SmallVector<int64_t>(size, value) : SmallVector<int64_t>(given);
}

static SmallVector<int64_t> orIota(ArrayRef<int64_t> given, int64_t size) {
  SmallVector<int64_t> dims(given);
  if (dims.empty())
    for (int64_t i = 0; i < size; ++i)
      dims.push_back(i);
  return dims;
}

void LoopOp::build(OpBuilder &b, OperationState &state, TypeRange results, ValueRange inputs, BodyBuilder body) {
  buildRegionOp(b, state, results, inputs, body);
}
void ReduceOp::build(OpBuilder &b, OperationState &state, TypeRange results, ValueRange inputs, BodyBuilder body) {
  buildRegionOp(b, state, results, inputs, body);
}
void RowsOp::build(OpBuilder &b, OperationState &state, TypeRange results, ValueRange inputs, BodyBuilder body) {
  buildRegionOp(b, state, results, inputs, body);
}

void DotOp::build(OpBuilder &b, OperationState &state, TypeRange results, Value lhs, Value rhs, ValueRange extras,
                  ArrayRef<int64_t> lhsDims, ArrayRef<int64_t> rhsDims, ArrayRef<int64_t> resultDims, Type accElementType,
                  BodyBuilder body) {
  auto rank = [](Type t) { return cast<RankedTensorType>(t).getRank(); };
  state.addAttribute("lhs_dims", b.getDenseI64ArrayAttr(orIota(lhsDims, rank(lhs.getType()))));
  state.addAttribute("rhs_dims", b.getDenseI64ArrayAttr(orIota(rhsDims, rank(rhs.getType()))));
  state.addAttribute("result_dims", b.getDenseI64ArrayAttr(orIota(resultDims, rank(results.front()))));
  buildCoreOp(b, state, results, {lhs, rhs}, extras, accElementType, body);
}

static void buildConvLike(OpBuilder &b, OperationState &state, TypeRange results, Value input, Value filter,
                          ValueRange extras, ArrayRef<int64_t> strides, ArrayRef<int64_t> padding,
                          ArrayRef<int64_t> lhsDilation, ArrayRef<int64_t> rhsDilation, int64_t groups,
                          int64_t batchGroups, Type accElementType, BodyBuilder body) {
  int64_t spatial = cast<RankedTensorType>(input.getType()).getRank() - 2;
  state.addAttribute("strides", b.getDenseI64ArrayAttr(orDefault(strides, spatial, 1)));
  state.addAttribute("padding", b.getDenseI64ArrayAttr(orDefault(padding, 2 * spatial, 0)));
  state.addAttribute("lhs_dilation", b.getDenseI64ArrayAttr(orDefault(lhsDilation, spatial, 1)));
  state.addAttribute("rhs_dilation", b.getDenseI64ArrayAttr(orDefault(rhsDilation, spatial, 1)));
  state.addAttribute("groups", b.getI64IntegerAttr(groups));
  state.addAttribute("batch_groups", b.getI64IntegerAttr(batchGroups));
  buildCoreOp(b, state, results, {input, filter}, extras, accElementType, body);
}

void ConvOp::build(OpBuilder &b, OperationState &state, TypeRange results, Value input, Value filter, ValueRange extras,
                   ArrayRef<int64_t> strides, ArrayRef<int64_t> padding, ArrayRef<int64_t> lhsDilation,
                   ArrayRef<int64_t> rhsDilation, int64_t groups, int64_t batchGroups, Type accElementType,
                   BodyBuilder body) {
  buildConvLike(b, state, results, input, filter, extras, strides, padding, lhsDilation, rhsDilation, groups,
                batchGroups, accElementType, body);
}

void DepthwiseConvOp::build(OpBuilder &b, OperationState &state, TypeRange results, Value input, Value filter,
                            ValueRange extras, ArrayRef<int64_t> strides, ArrayRef<int64_t> padding,
                            ArrayRef<int64_t> lhsDilation, ArrayRef<int64_t> rhsDilation, int64_t groups,
                            int64_t batchGroups, Type accElementType, BodyBuilder body) {
  buildConvLike(b, state, results, input, filter, extras, strides, padding, lhsDilation, rhsDilation, groups,
                batchGroups, accElementType, body);
}

void PoolOp::build(OpBuilder &b, OperationState &state, TypeRange results, Value input, ValueRange extras, StringRef kind,
                   ArrayRef<int64_t> window, ArrayRef<int64_t> strides, ArrayRef<int64_t> padding,
                   ArrayRef<int64_t> windowDilation, Type accElementType, BodyBuilder body) {
  int64_t spatial = cast<RankedTensorType>(input.getType()).getRank() - 2;
  state.addAttribute("kind", b.getStringAttr(kind));
  state.addAttribute("window", b.getDenseI64ArrayAttr(orDefault(window, spatial, 1)));
  state.addAttribute("strides", b.getDenseI64ArrayAttr(orDefault(strides, spatial, 1)));
  state.addAttribute("padding", b.getDenseI64ArrayAttr(orDefault(padding, 2 * spatial, 0)));
  state.addAttribute("window_dilation", b.getDenseI64ArrayAttr(orDefault(windowDilation, spatial, 1)));
  buildCoreOp(b, state, results, input, extras, accElementType, body);
}

//===----------------------------------------------------------------------===//
// Verifiers
//===----------------------------------------------------------------------===//

/// The region's arguments after the first `core` ones match `operands`, and the yield matches the results.
static LogicalResult verifyBody(Operation *op, unsigned core, ValueRange operands) {
  Block &block = op->getRegion(0).front();
  if (block.getNumArguments() != core + operands.size())
    return op->emitOpError() << "expected " << core + operands.size() << " region arguments, found "
                             << block.getNumArguments();
  for (auto [i, operand] : llvm::enumerate(operands))
    if (block.getArgument(core + i).getType() != operand.getType())
      return op->emitOpError() << "region argument " << core + i << " has type " << block.getArgument(core + i).getType()
                               << ", its operand " << operand.getType();
  auto yield = block.empty() ? YieldOp() : dyn_cast<YieldOp>(block.back());
  if (!yield)
    return op->emitOpError() << "expected a region that ends in kernel.yield";
  if (TypeRange(yield.getValues()) != op->getResultTypes())
    return yield.emitOpError() << "types differ from the results of the kernel";
  if (op->getNumResults() == 0)
    return op->emitOpError() << "expected at least one result";
  return success();
}

static bool sameShape(Type a, Type b) {
  auto x = cast<RankedTensorType>(a), y = cast<RankedTensorType>(b);
  return x.getShape() == y.getShape() && x.getEncoding() == y.getEncoding();
}

static LogicalResult verifyEqualShapes(Operation *op) {
  for (Type t : op->getResultTypes())
    if (!sameShape(t, op->getResultTypes().front()))
      return op->emitOpError() << "expected results of equal shape";
  return success();
}

LogicalResult LoopOp::verify() {
  return failed(verifyBody(*this, 0, getInputs())) ? failure() : verifyEqualShapes(*this);
}
LogicalResult ReduceOp::verify() {
  return failed(verifyBody(*this, 0, getInputs())) ? failure() : verifyEqualShapes(*this);
}
LogicalResult RowsOp::verify() { return verifyBody(*this, 0, getInputs()); }

static LogicalResult verifyCore(Operation *op, ValueRange extras) {
  if (failed(verifyBody(op, 1, extras)) || failed(verifyEqualShapes(op)))
    return failure();
  auto acc = dyn_cast<RankedTensorType>(op->getRegion(0).getArgument(0).getType());
  if (!acc || !sameShape(acc, op->getResultTypes().front()))
    return op->emitOpError() << "expected an accumulator of the results' shape";
  return success();
}

static bool isPermutation(ArrayRef<int64_t> dims, int64_t rank) {
  if (static_cast<int64_t>(dims.size()) != rank)
    return false;
  SmallVector<bool> seen(rank, false);
  for (int64_t d : dims) {
    if (d < 0 || d >= rank || seen[d])
      return false;
    seen[d] = true;
  }
  return true;
}

/// Marked `bf16`: operands that round to it, sums in f32.
static LogicalResult verifyBf16(Operation *op, RankedTensorType acc) {
  auto fits = [](Value v) {
    Type e = getElementTypeOrSelf(v.getType());
    return e.isF32() || e.isBF16();
  };
  if (!fits(op->getOperand(0)) || !fits(op->getOperand(1)) || !acc.getElementType().isF32())
    return op->emitOpError("marked bf16: expected operands of f32 or bf16 and sums of f32");
  return success();
}

LogicalResult DotOp::verify() {
  if (failed(verifyCore(*this, getExtras())) || (getBf16() && failed(verifyBf16(*this, getAccType()))))
    return failure();
  auto lhs = cast<RankedTensorType>(getLhs().getType()), rhs = cast<RankedTensorType>(getRhs().getType());
  RankedTensorType acc = getAccType();
  if (!isPermutation(getLhsDims(), lhs.getRank()))
    return emitOpError("lhs_dims is no permutation of lhs's dimensions");
  LayoutAttr layout = getLayoutAttr();
  if (!layout && !isPermutation(getRhsDims(), rhs.getRank()))
    return emitOpError("rhs_dims is no permutation of rhs's dimensions");
  if (!isPermutation(getResultDims(), acc.getRank()) || acc.getRank() < 2)
    return emitOpError("result_dims is no permutation of the result's dimensions");
  int64_t batch = getBatchRank();
  if (lhs.getRank() != batch + 2 && lhs.getRank() != 2)
    return emitOpError() << "expected lhs of rank 2 or " << batch + 2 << ", found " << lhs.getRank();
  int64_t rhsRank = rhs.getRank() - (layout ? 1 : 0);
  if (rhsRank != batch + 2 && rhsRank != 2)
    return emitOpError() << "expected rhs of rank 2 or " << batch + 2 << ", found " << rhsRank;
  auto clash = [](int64_t a, int64_t b) { return !ShapedType::isDynamic(a) && !ShapedType::isDynamic(b) && a != b; };
  int64_t m = lhs.getDimSize(getLhsDims()[lhs.getRank() - 2]), k = lhs.getDimSize(getLhsDims().back());
  if (clash(m, acc.getDimSize(getResultDims()[batch])))
    return emitOpError() << "lhs has " << m << " rows, the result " << acc.getDimSize(getResultDims()[batch]);
  int64_t n = acc.getDimSize(getResultDims().back());
  if (layout) {
    if (failed(layout.verifyLayout(*this)))
      return failure();
  } else if (clash(rhs.getDimSize(getRhsDims()[rhs.getRank() - 2]), k) ||
             clash(rhs.getDimSize(getRhsDims().back()), n)) {
    return emitOpError() << "shapes of lhs, rhs and result do not fit";
  }
  for (int64_t i = 0; i < batch; ++i) {
    int64_t want = acc.getDimSize(getResultDims()[i]);
    if (lhs.getRank() == batch + 2 && clash(lhs.getDimSize(getLhsDims()[i]), want))
      return emitOpError() << "batch dimension " << i << " of lhs differs from the result's";
    int64_t rhsDim = layout ? i : getRhsDims()[i];
    if (rhsRank == batch + 2 && clash(rhs.getDimSize(rhsDim), want))
      return emitOpError() << "batch dimension " << i << " of rhs differs from the result's";
  }
  return success();
}

/// Lengths and ranges of the window attributes shared by convolutions and pooling.
static LogicalResult verifyWindow(Operation *op, int64_t spatial, ArrayRef<ArrayRef<int64_t>> positive,
                                  ArrayRef<int64_t> padding) {
  for (ArrayRef<int64_t> a : positive) {
    if (static_cast<int64_t>(a.size()) != spatial)
      return op->emitOpError() << "expected attributes with " << spatial << " entries, found " << a.size();
    for (int64_t v : a)
      if (v < 1)
        return op->emitOpError() << "expected strides, dilations and windows of at least 1, found " << v;
  }
  if (static_cast<int64_t>(padding.size()) != 2 * spatial)
    return op->emitOpError() << "expected " << 2 * spatial << " padding amounts, found " << padding.size();
  return success();
}

LogicalResult ConvOp::verify() {
  if (failed(verifyCore(*this, getExtras())) || (getBf16() && failed(verifyBf16(*this, getAccType()))))
    return failure();
  auto in = cast<RankedTensorType>(getInput().getType()), filter = cast<RankedTensorType>(getFilter().getType());
  if (in.getRank() < 2 || in.getRank() != getAccType().getRank())
    return emitOpError("expected input and result of equal rank, at least 2");
  int64_t spatial = in.getRank() - 2;
  if (failed(verifyWindow(*this, spatial, {getStrides(), getLhsDilation(), getRhsDilation()}, getPadding())))
    return failure();
  if (getGroups() < 1 || getBatchGroups() < 1)
    return emitOpError("expected at least one group");
  if (LayoutAttr layout = getLayoutAttr()) {
    if (!getKernelShape() || static_cast<int64_t>(getKernelShape()->size()) != spatial)
      return emitOpError() << "a packed filter needs a kernel_shape of " << spatial << " sizes";
    return layout.verifyLayout(*this);
  }
  if (filter.getRank() != in.getRank())
    return emitOpError() << "expected a filter of rank " << in.getRank() << ", found " << filter.getRank();
  int64_t ic = in.getShape().back(), fic = filter.getDimSize(spatial);
  if (!ShapedType::isDynamic(ic) && !ShapedType::isDynamic(fic) && ic != fic * static_cast<int64_t>(getGroups()))
    return emitOpError() << "input has " << ic << " channels, the filter " << fic << " in " << getGroups() << " groups";
  return success();
}

LogicalResult DepthwiseConvOp::verify() {
  if (failed(verifyCore(*this, getExtras())))
    return failure();
  auto in = cast<RankedTensorType>(getInput().getType()), filter = cast<RankedTensorType>(getFilter().getType());
  if (in.getRank() < 2 || in.getRank() != getAccType().getRank() || filter.getRank() != in.getRank())
    return emitOpError("expected input, filter and result of equal rank, at least 2");
  int64_t c = in.getShape().back(), oc = filter.getShape().back();
  if (ShapedType::isDynamic(c) || ShapedType::isDynamic(oc) || c < 1 || oc % c || filter.getDimSize(in.getRank() - 2) != 1 ||
      oc != getAccType().getShape().back())
    return emitOpError("expected static channels: filter [..., 1, c * multiplier]");
  return verifyWindow(*this, in.getRank() - 2, {getStrides(), getLhsDilation(), getRhsDilation()}, getPadding());
}

LogicalResult PoolOp::verify() {
  if (failed(verifyCore(*this, getExtras())))
    return failure();
  if (!llvm::is_contained({"max", "max_number", "min", "sum", "avg"}, getKind()))
    return emitOpError() << "unknown kind '" << getKind() << "'";
  auto in = cast<RankedTensorType>(getInput().getType());
  if (in.getRank() < 2 || in.getRank() != getAccType().getRank())
    return emitOpError("expected input and result of equal rank, at least 2");
  return verifyWindow(*this, in.getRank() - 2, {getWindow(), getStrides(), getWindowDilation()}, getPadding());
}

void ChainOp::build(OpBuilder &b, OperationState &state, TypeRange results, ValueRange inputs,
                    int64_t strips) {
  state.addAttribute("strips", b.getI64IntegerAttr(strips));
  buildRegionOp(b, state, results, inputs, nullptr);
}

DotOp ChainOp::getDot() { return *getBody().getOps<DotOp>().begin(); }
DepthwiseConvOp ChainOp::getConv() { return *getBody().getOps<DepthwiseConvOp>().begin(); }

LogicalResult ChainOp::verify() {
  if (failed(verifyBody(*this, 0, getInputs())))
    return failure();
  SmallVector<Operation *> ops;
  for (Operation &op : getBody().front())
    ops.push_back(&op);
  auto dot = dyn_cast<DotOp>(ops[0]);
  auto reshape = ops.size() == 4 ? dyn_cast<hlo::ReshapeOp>(ops[1]) : hlo::ReshapeOp();
  auto conv = ops.size() == 4 ? dyn_cast<DepthwiseConvOp>(ops[2]) : DepthwiseConvOp();
  if (!dot || !reshape || !conv || dot->getNumResults() != 1 || conv->getNumResults() != 1 ||
      reshape->getOperand(0) != dot->getResult(0) || conv.getInput() != reshape->getResult(0) ||
      ops[3]->getOperands() != conv->getResults())
    return emitOpError("expected a product, a reshape of its result and the depthwise convolution that reads it");
  auto isArgument = [](Value v) { return isa<BlockArgument>(v); };
  if (!llvm::all_of(dot->getOperands(), isArgument) || !llvm::all_of(conv->getOperands().drop_front(), isArgument))
    return emitOpError("expected operands of the op as all other operands inside");
  auto in = cast<RankedTensorType>(conv.getInput().getType()), lhs = cast<RankedTensorType>(dot.getLhs().getType());
  if (in.getRank() != 4 || !in.hasStaticShape() || !conv.getAccType().hasStaticShape() || !lhs.hasStaticShape() ||
      lhs.getRank() != 2 || dot.getLhsDims() != ArrayRef<int64_t>{0, 1} || dot.getResultDims() != ArrayRef<int64_t>{0, 1} ||
      dot.getAccType().getShape().back() != in.getShape().back())
    return emitOpError("expected static images [n, h, w, c] and a plain product of their pixels");
  if (llvm::any_of(conv.getPadding(), [](int64_t p) { return p < 0; }))
    return emitOpError("expected a convolution that reads the image to its end");
  if (getStrips() < 1 ||
      getStrips() > static_cast<uint64_t>(std::max<int64_t>(1, in.getDimSize(1) * in.getDimSize(2))))
    return emitOpError() << "expected strips of pixels, found " << getStrips();
  return success();
}

void AttentionOp::build(OpBuilder &b, OperationState &state, TypeRange results, ValueRange inputs,
                        int64_t blocks) {
  state.addAttribute("blocks", b.getI64IntegerAttr(blocks));
  buildRegionOp(b, state, results, inputs, nullptr);
}

DotOp AttentionOp::getScores() { return *getBody().getOps<DotOp>().begin(); }
RowsOp AttentionOp::getRows() { return *getBody().getOps<RowsOp>().begin(); }
DotOp AttentionOp::getProduct() { return *std::next(getBody().getOps<DotOp>().begin()); }

/// The value behind reshapes.
static Value behindReshapes(Value v) {
  while (auto reshape = v.getDefiningOp<hlo::ReshapeOp>())
    v = reshape->getOperand(0);
  return v;
}

/// The argument for the only operand of `rows` that is `value` or a reshape of it; null if there are others.
static BlockArgument argumentFor(RowsOp rows, Value value) {
  BlockArgument found;
  for (auto [operand, arg] : llvm::zip(rows.getInputs(), rows.getBody().getArguments()))
    if (behindReshapes(operand) == value) {
      if (found)
        return {};
      found = arg;
    }
  return found;
}

BlockArgument AttentionOp::getScoresArg() { return argumentFor(getRows(), getScores()->getResult(0)); }

/// Whether all that the body makes of `arg` [..., n] is, in the place of a row, of this row alone: of the
/// shape of `arg`, or with its last dimension gone or of size one.
static bool isRowByRow(Block &body, BlockArgument arg) {
  ArrayRef<int64_t> full = cast<RankedTensorType>(arg.getType()).getShape(), lead = full.drop_back();
  auto isRow = [&](ArrayRef<int64_t> shape) {
    return shape == lead || (shape.size() == full.size() && shape.drop_back() == lead && shape.back() == 1);
  };
  llvm::DenseSet<Value> made{arg};
  bool reduces = false;
  for (Operation &op : body.without_terminator()) {
    auto isMade = [&](Value v) { return made.contains(v); };
    const bool reads = llvm::any_of(op.getOperands(), isMade);
    if (auto reduce = dyn_cast<hlo::ReduceOp>(op)) { // these say what a row is
      auto in = cast<RankedTensorType>(reduce.getInputs()[0].getType());
      if (in.getShape() != full || reduce.getDimensions().size() != 1 ||
          reduce.getDimensions()[0] + 1 != in.getRank() || llvm::any_of(reduce.getInitValues(), isMade))
        return false;
      reduces = true;
      made.insert(op.result_begin(), op.result_end());
      continue;
    }
    if (!reads)
      continue;
    if (op.getNumResults() != 1)
      return false;
    ArrayRef<int64_t> shape = cast<RankedTensorType>(op.getResult(0).getType()).getShape();
    if (shape != full && !isRow(shape))
      return false;
    ArrayRef<int64_t> from = cast<RankedTensorType>(op.getOperand(0).getType()).getShape();
    if (auto broadcast = dyn_cast<hlo::BroadcastInDimOp>(op)) {
      if (!llvm::equal(broadcast.getBroadcastDimensions(), llvm::seq<int64_t>(0, from.size())))
        return false;
    } else if (isa<hlo::ReshapeOp>(op)) {
      if (!isRow(from) || !isRow(shape))
        return false;
    } else if (!op.hasTrait<hlo::HloElementwise>()) {
      return false;
    }
    made.insert(op.getResult(0));
  }
  Value root = body.getTerminator()->getOperand(0);
  return reduces && made.contains(root) && cast<RankedTensorType>(root.getType()).getShape() == full;
}

StringRef AttentionOp::whyNot(DotOp scores, RowsOp rows, DotOp product) {
  if (scores->getNumResults() != 1 || rows->getNumResults() != 1 || product->getNumResults() != 1)
    return "expected one result of each part";
  for (DotOp dot : {scores, product})
    if (dot.getLayout() || dot.getBf16())
      return "expected products of f32 operands that are not packed";
  BlockArgument arg = argumentFor(rows, scores->getResult(0));
  if (!arg || behindReshapes(product.getLhs()) != rows->getResult(0) ||
      behindReshapes(product.getRhs()) == rows->getResult(0))
    return "expected rows that read the scores once, and a product that reads their result as left operand";
  for (Operation *op : {scores.getOperation(), rows.getOperation(), product.getOperation()}) {
    SmallVector<Type> types(op->getOperandTypes());
    llvm::append_range(types, op->getResultTypes());
    for (Type t : types)
      if (!cast<RankedTensorType>(t).hasStaticShape() || cast<RankedTensorType>(t).getNumElements() == 0)
        return "expected static shapes";
  }
  auto isFloat = [](Type t) { return getElementTypeOrSelf(t).isF32(); };
  if (!llvm::all_of(TypeRange{scores.getLhs().getType(), scores.getRhs().getType(), scores.getAccType(),
                              arg.getType(), rows->getResult(0).getType(), product.getRhs().getType(),
                              product.getAccType()},
                    isFloat))
    return "expected operands and scores of f32";
  auto inOrder = [](ArrayRef<int64_t> dims) { return llvm::equal(dims, llvm::seq<int64_t>(0, dims.size())); };
  auto lastTwo = [](Type t) { return cast<RankedTensorType>(t).getShape().take_back(2); };
  auto full = cast<RankedTensorType>(arg.getType());
  if (full.getRank() < 2 ||
      full.getShape() != cast<RankedTensorType>(rows->getResult(0).getType()).getShape() ||
      !inOrder(scores.getResultDims()) || !inOrder(product.getLhsDims()) ||
      product.getLhsDims().size() != product.getResultDims().size() ||
      lastTwo(scores.getAccType()) != lastTwo(full) || lastTwo(product.getLhs().getType()) != lastTwo(full))
    return "expected scores [batch..., m, n] that keep this order of dimensions";
  if (!isRowByRow(rows.getBody().front(), arg))
    return "expected rows along the last dimension that depend on no other row of the scores";
  return "";
}

LogicalResult AttentionOp::verify() {
  if (failed(verifyBody(*this, 0, getInputs())))
    return failure();
  // what is expected, in order; reshapes in between
  Block &block = getBody().front();
  SmallVector<Operation *> parts;
  for (Operation &op : block.without_terminator())
    if (!isa<hlo::ReshapeOp>(op))
      parts.push_back(&op);
  auto scores = parts.size() == 3 ? dyn_cast<DotOp>(parts[0]) : DotOp();
  auto rows = parts.size() == 3 ? dyn_cast<RowsOp>(parts[1]) : RowsOp();
  auto product = parts.size() == 3 ? dyn_cast<DotOp>(parts[2]) : DotOp();
  if (!scores || !rows || !product || block.getTerminator()->getOperands() != product->getResults())
    return emitOpError("expected a product, the rows that read it and a product of these");
  if (StringRef reason = whyNot(scores, rows, product); !reason.empty())
    return emitOpError(reason);
  BlockArgument arg = argumentFor(rows, scores->getResult(0));
  auto isArgument = [](Value v) { return isa<BlockArgument>(v); };
  for (auto [i, v] : llvm::enumerate(rows.getInputs()))
    if (i != arg.getArgNumber() && !isArgument(v))
      return emitOpError("expected operands of the op as all other operands inside");
  if (!llvm::all_of(scores->getOperands(), isArgument) ||
      !llvm::all_of(product->getOperands().drop_front(), isArgument))
    return emitOpError("expected operands of the op as all other operands inside");
  const int64_t m = cast<RankedTensorType>(arg.getType()).getShape().drop_back().back();
  if (getBlocks() < 1 || getBlocks() > static_cast<uint64_t>(m))
    return emitOpError() << "expected blocks of rows, found " << getBlocks();
  return success();
}

#define GET_OP_CLASSES
#include "dialects/kernel/KernelOps.cpp.inc"
