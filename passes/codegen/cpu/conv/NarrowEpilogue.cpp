// See NarrowEpilogue.h.
#include "passes/codegen/cpu/conv/NarrowEpilogue.h"

#include "dialects/hlo/Constants.h"
#include "dialects/hlo/Hlo.h"
#include "dialects/kernel/Kernel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace lathe::cpu {
namespace {

/// A number that all elements of a constant have.
std::optional<int64_t> splatOf(Value v) {
  auto constant = v.getDefiningOp<hlo::ConstantOp>();
  auto dense = constant ? dyn_cast<DenseElementsAttr>(constant.getValue()) : DenseElementsAttr();
  if (!dense || !dense.isSplat() || !isa<IntegerType>(dense.getElementType()))
    return std::nullopt;
  return dense.getSplatValue<APInt>().getSExtValue();
}

/// The last steps of an epilogue: `wide` clamped and converted.
struct Narrowing {
  Value wide;
  bool isUnsigned = false; ///< the bytes that it becomes
  int64_t low = std::numeric_limits<int64_t>::min(), high = std::numeric_limits<int64_t>::max();
};

Narrowing narrowingOf(Block &body) {
  Narrowing n;
  Value bytes = body.getTerminator()->getOperand(0);
  if (auto cast = bytes.getDefiningOp<hlo::BitcastConvertOp>()) // as the index of a table
    bytes = cast.getOperand();
  auto convert = bytes.getDefiningOp<hlo::ConvertOp>();
  if (!convert || !hlo::elementType(bytes).isInteger(8))
    return n;
  n.isUnsigned = hlo::elementType(bytes).isUnsignedInteger();
  n.wide = convert->getOperand(0);
  for (Operation *op = n.wide.getDefiningOp(); op && isa<hlo::MaxOp, hlo::MinOp>(op);
       op = n.wide.getDefiningOp()) {
    std::optional<int64_t> limit = splatOf(op->getOperand(1));
    Value rest = op->getOperand(limit ? 0 : 1);
    if (!limit)
      limit = splatOf(op->getOperand(0));
    if (!limit)
      break;
    // a limit further inside does not move one further out
    (isa<hlo::MaxOp>(op) ? n.low : n.high) =
        isa<hlo::MaxOp>(op) ? std::max(n.low, *limit) : std::min(n.high, *limit);
    n.wide = rest;
  }
  return n;
}

bool isPerChannel(BlockArgument arg, RankedTensorType acc) {
  auto type = cast<RankedTensorType>(arg.getType());
  return type.getRank() == 1 && type.getDimSize(0) == acc.getShape().back() &&
         llvm::all_of(arg.getUsers(), [&](Operation *user) {
           auto broadcast = dyn_cast<hlo::BroadcastInDimOp>(user);
           return broadcast && broadcast.getBroadcastDimensions() == ArrayRef<int64_t>(acc.getRank() - 1);
         });
}

/// The numbers that the only reader of the accumulators adds to them.
BlockArgument biasOf(Block &body) {
  BlockArgument acc = body.getArgument(0);
  auto add = acc.hasOneUse() ? dyn_cast<hlo::AddOp>(*acc.user_begin()) : hlo::AddOp();
  if (!add)
    return {};
  auto broadcast = add->getOperand(add->getOperand(0) == acc ? 1 : 0).getDefiningOp<hlo::BroadcastInDimOp>();
  auto arg = broadcast ? dyn_cast<BlockArgument>(broadcast->getOperand(0)) : BlockArgument();
  return arg && isPerChannel(arg, cast<RankedTensorType>(acc.getType())) ? arg : BlockArgument();
}

} // namespace

WhyNot NarrowEpilogue::whyNot(Operation *op) {
  Block &body = op->getRegion(0).front();
  auto acc = cast<RankedTensorType>(body.getArgument(0).getType());
  if (op->getNumResults() != 1 || !hlo::elementType(op->getResult(0)).isInteger(8))
    return WhyNot::notMeant("its result is not one of bytes");
  const Narrowing n = narrowingOf(body);
  const bool isUnsigned = n.isUnsigned;
  if (!n.wide || !hlo::elementType(n.wide).isInteger(32) || hlo::elementType(n.wide).isUnsignedInteger() ||
      n.low < (isUnsigned ? 0 : -128) || n.high > (isUnsigned ? 255 : 127) || n.low > n.high)
    return WhyNot::notMeant("its result is not clamped to bytes");
  for (BlockArgument arg : body.getArguments().drop_front())
    if (auto type = cast<RankedTensorType>(arg.getType());
        !isPerChannel(arg, acc) && !(type.hasStaticShape() && type.getNumElements() == 1))
      return WhyNot::lacks("the epilogue reads more than numbers for each channel");
  for (Operation &o : body.without_terminator())
    if (auto c = dyn_cast<hlo::ConstantOp>(o);
        c ? !c.getValue().isSplat()
          : !isa<hlo::BroadcastInDimOp, hlo::ReshapeOp, hlo::BitcastConvertOp>(o) &&
                !codegen::isElementwise(&o))
      return WhyNot::lacks("the epilogue has more than functions of single elements");
  if (!ElementEmitter::canVectorize(n.wide))
    return WhyNot::lacks("the epilogue has functions that vectors do not");
  return WhyNot::none();
}

NarrowEpilogue::NarrowEpilogue(KernelBuilder &b, Operation *op)
    : b(b), op(op), body(op->getRegion(0).front()), emitter(b) {
  const Narrowing n = narrowingOf(body);
  wide = n.wide;
  isUnsigned = n.isUnsigned;
  low = n.low;
  high = n.high;
  auto acc = cast<RankedTensorType>(body.getArgument(0).getType());
  resultDims = b.rowDims(acc, kernel::resultRow(op->getResult(0)));
  bias = biasOf(body);
  Value sums = bias ? (*body.getArgument(0).user_begin())->getResult(0) : Value(body.getArgument(0));
  emitter.bindElement(sums, [this](ArrayRef<Value>, unsigned) -> FailureOr<Value> { return current; });
  const unsigned core = op->getNumOperands() - (body.getNumArguments() - 1);
  for (BlockArgument arg : body.getArguments().drop_front()) {
    Value pointer = b.operands[core + arg.getArgNumber() - 1];
    if (!isPerChannel(arg, acc)) {
      emitter.bindBuffer(arg, pointer);
      continue;
    }
    perChannel.push_back({arg, pointer});
    emitter.bindElement(
        arg, [this, arg](ArrayRef<Value>, unsigned) -> FailureOr<Value> { return load(arg, order, vector); });
  }
}

int64_t NarrowEpilogue::tableBytes(UnpackedOrder order) const {
  int64_t bytes = 0;
  for (auto [arg, pointer] : perChannel)
    bytes += order.channels() * codegen::elemBytes(hlo::elementType(arg));
  return bytes;
}

void NarrowEpilogue::prepare(UnpackedOrder how, Value channel, Value to) {
  table = to;
  for (auto [arg, pointer] : perChannel) {
    Type elem = hlo::elementType(arg);
    for (unsigned v = 0; v < how.vectors; ++v)
      for (unsigned part = 0; part < how.lanes / 4; ++part) {
        Value few = b.loadElem(elem, pointer, b.add(channel, b.i64(how.firstChannel(v, part))), 4);
        b.storeElem(elem, few, to, b.i64(v * how.lanes + part * 4));
      }
    to = b.ptrBytes(to, b.i64(how.channels() * codegen::elemBytes(elem)));
  }
}

Value NarrowEpilogue::load(BlockArgument wanted, UnpackedOrder how, unsigned v) const {
  int64_t at = 0;
  for (auto [arg, pointer] : perChannel) {
    if (arg == wanted)
      break;
    at += how.channels() * codegen::elemBytes(hlo::elementType(arg));
  }
  return b.loadElem(hlo::elementType(wanted), b.ptrBytes(table, b.i64(at)), b.i64(v * how.lanes), how.lanes);
}

Value NarrowEpilogue::start(UnpackedOrder how, unsigned v) const {
  return bias ? load(bias, how, v) : Value();
}

LogicalResult NarrowEpilogue::emit(UnpackedOrder how, ArrayRef<Value> index, ValueRange accs) {
  order = how;
  const unsigned lanes = how.lanes;
  SmallVector<Value> values;
  for (vector = 0; vector < how.vectors; ++vector) {
    current = accs[vector];
    emitter.clearCache();
    FailureOr<Value> value = emitter.emit(wide, index, lanes);
    if (failed(value))
      return failure();
    values.push_back(*value);
  }
  // saturating packs, once to 16 and once to 8 bits, clamp as the type's own limits do
  auto pack = [&](const char *name, Type elem, unsigned count, Value x, Value y) -> Value {
    const std::string full = lanes == 16  ? std::string("llvm.x86.avx512.") + name + ".512"
                             : lanes == 8 ? std::string("llvm.x86.avx2.") + name
                                          : std::string("llvm.x86.sse2.") + name + ".128";
    return LLVM::CallIntrinsicOp::create(b, VectorType::get({count}, elem), b.getStringAttr(full),
                                         ValueRange{x, y})
        .getResult(0);
  };
  Value first = pack("packssdw", b.getI16Type(), 2 * lanes, values[0], values[1]);
  Value second = pack("packssdw", b.getI16Type(), 2 * lanes, values[2], values[3]);
  Value bytes = pack(isUnsigned ? "packuswb" : "packsswb", b.getI8Type(), 4 * lanes, first, second);
  if (!how.bytes && lanes > 4) { // the halves lie in turn
    SmallVector<int64_t> pick;
    for (unsigned half = 0; half < 2; ++half)
      for (unsigned part = 0; part < lanes / 4; ++part)
        for (unsigned i = 0; i < 8; ++i)
          pick.push_back(16 * part + 8 * half + i);
    bytes = mlir::vector::ShuffleOp::create(b, bytes, bytes, pick);
  }
  Type type = bytes.getType();
  if (low > (isUnsigned ? 0 : -128))
    bytes = isUnsigned ? arith::MaxUIOp::create(b, bytes, b.cstI(type, low)).getResult()
                       : arith::MaxSIOp::create(b, bytes, b.cstI(type, low));
  if (high < (isUnsigned ? 255 : 127))
    bytes = isUnsigned ? arith::MinUIOp::create(b, bytes, b.cstI(type, high)).getResult()
                       : arith::MinSIOp::create(b, bytes, b.cstI(type, high));
  b.storeElem(hlo::elementType(op->getResult(0)), bytes, b.results[0], b.linearize(index, resultDims));
  return success();
}

} // namespace lathe::cpu
