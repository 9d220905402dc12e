// See NarrowEpilogue.h.
#include "passes/codegen/cpu/conv/NarrowEpilogue.h"

#include "dialects/hlo/Constants.h"
#include "dialects/hlo/Hlo.h"
#include "dialects/kernel/Kernel.h"
#include "passes/codegen/element/Shortcut.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace lathe::cpu {
namespace {

/// Whether a value of one dimension is repeated along the channels, and so are functions of it.
bool isRepeated(Value v, int64_t rank) {
  return llvm::all_of(v.getUsers(), [&](Operation *user) {
    auto broadcast = dyn_cast<hlo::BroadcastInDimOp>(user);
    return broadcast ? broadcast.getBroadcastDimensions() == ArrayRef<int64_t>(rank - 1)
                     : isa<hlo::ConvertOp>(user) && isRepeated(user->getResult(0), rank);
  });
}

bool isPerChannel(BlockArgument arg, RankedTensorType acc) {
  auto type = cast<RankedTensorType>(arg.getType());
  return type.getRank() == 1 && type.getDimSize(0) == acc.getShape().back() && isRepeated(arg, acc.getRank());
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

bool isWord(Type elem) { return elem.isF32() || elem.isSignlessInteger(32); }

/// What is computed in vectors of 32 bits: a result of such, or what bytes are made of; null where these are made otherwise.
Value rootOf(Operation *op) {
  Block &body = op->getRegion(0).front();
  return isWord(hlo::elementType(op->getResult(0))) ? body.getTerminator()->getOperand(0) : Narrowing::of(body).wide;
}

} // namespace

WhyNot NarrowEpilogue::whyNot(Operation *op) {
  Block &body = op->getRegion(0).front();
  auto acc = cast<RankedTensorType>(body.getArgument(0).getType());
  Type elem = hlo::elementType(op->getResult(0));
  if (op->getNumResults() != 1 || (!elem.isInteger(8) && !isWord(elem)))
    return WhyNot::notMeant("its result is not one of bytes or of 32 bits");
  const Value root = rootOf(op);
  if (!root)
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
  if (!ElementEmitter::canVectorize(root))
    return WhyNot::lacks("the epilogue has functions that vectors do not");
  return WhyNot::none();
}

NarrowEpilogue::NarrowEpilogue(KernelBuilder &b, Operation *op)
    : b(b), op(op), body(op->getRegion(0).front()), emitter(b), narrowing(Narrowing::of(body)) {
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
  auto values = codegen::emitTogether(emitter, rootOf(op), how.vectors, how.lanes, [&](unsigned i) {
    vector = i;
    current = accs[i];
    return index;
  });
  if (failed(values))
    return failure();
  SmallVector<Value> four;
  for (ArrayRef<Value> v : *values)
    four.push_back(v.front());
  Type elem = hlo::elementType(op->getResult(0));
  Value at = b.linearize(index, resultDims);
  if (isWord(elem)) { // four channels lie together
    for (auto [v, vector] : llvm::enumerate(four))
      for (unsigned part = 0; part < how.lanes / 4; ++part) {
        SmallVector<int64_t> pick = llvm::to_vector(llvm::seq<int64_t>(4 * part, 4 * part + 4));
        Value few = mlir::vector::ShuffleOp::create(b, vector, vector, pick);
        b.storeElem(elem, few, b.results[0], b.add(at, b.i64(how.firstChannel(v, part))));
      }
    return success();
  }
  Value bytes = narrowing.pack(b, four);
  if (!how.bytes && how.lanes > 4) { // the halves lie in turn
    SmallVector<int64_t> pick;
    for (unsigned half = 0; half < 2; ++half)
      for (unsigned part = 0; part < how.lanes / 4; ++part)
        for (unsigned i = 0; i < 8; ++i)
          pick.push_back(16 * part + 8 * half + i);
    bytes = mlir::vector::ShuffleOp::create(b, bytes, bytes, pick);
  }
  b.storeElem(elem, bytes, b.results[0], at);
  return success();
}

} // namespace lathe::cpu
