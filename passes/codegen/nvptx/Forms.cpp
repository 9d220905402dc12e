#include "passes/codegen/nvptx/Forms.h"

#include "dialects/hlo/Hlo.h"
#include "dialects/kernel/Kernel.h"
#include "passes/codegen/element/ElementEmitter.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace lathe::nvptx {

static constexpr Form forms[] = {
    {"mma", whyNoMmaProduct, emitMmaProduct, whyNoWgmmaProduct, emitWgmmaProduct},
    {"mma", whyNoMmaConv, emitMmaConv, whyNoWgmmaConv, emitWgmmaConv},
    {"tile", whyNoProduct, emitProduct},
    {"skinny", whyNoSkinny, emitSkinny},
    {"tile", whyNoConv, emitConv},
    {"team", whyNoTeamConv, emitTeamConv},
    {"kept", whyNoKeptRows, emitKeptRows},
    {"team", whyNoRows, emitRows},
    {"columns", whyNoReduceColumns, emitReduceColumns},
    {"team", whyNoReduceRows, emitReduceRows},
    {"transpose", whyNoTranspose, emitTranspose},
    {"strip", whyNoStrip, emitStrip},
    {"wide", whyNoWide, emitWide},
    {"move", whyNoMove, emitMove},
    {"owned", whyNoScatter, emitScatter},
    {"owned", whyNoSelect, emitSelect},
    {"scan", whyNoScan, emitScan},
    {"merge", whyNoSort, emitSort},
    {"fft", whyNoFft, emitFft},
};

const Form *findForm(Operation *op) {
  if (!plain::foreignForm(op).empty())
    return nullptr;
  for (const Form &form : forms)
    if (form.whyNot(op).empty())
      return &form;
  return nullptr;
}

std::string whyNotElementByElement(Block &body, Value from, StringRef moves, StringRef what) {
  llvm::DenseSet<Value> reached{from};
  for (Operation &inner : body.without_terminator()) {
    if (llvm::none_of(inner.getOperands(), [&](Value v) { return reached.contains(v); }))
      continue;
    if (!codegen::isElementwise(&inner))
      return (moves + ": " + inner.getName().getStringRef()).str();
    reached.insert(inner.result_begin(), inner.result_end());
  }
  const SmallVector<AffineExpr> dims = hlo::getDims(hlo::tensorType(from));
  for (Value root : body.getTerminator()->getOperands())
    if (hlo::getDims(hlo::tensorType(root)) != dims)
      return ("a result has another shape than " + what).str();
  return {};
}

std::string whyNoEpilogue(Operation *op) {
  if (!kernel::hasCore(op))
    return {};
  Block &body = op->getRegion(0).front();
  return whyNotElementByElement(body, body.getArgument(0), "its epilogue moves sums", "the sums");
}

LogicalResult storeResults(codegen::KernelBuilder &b, const plain::Elements &elements, Value core, ArrayRef<Value> index, Value sum,
                           Value place) {
  codegen::ElementEmitter &e = *elements.emitter;
  codegen::ElementEmitter::Scope scope(e);
  e.bindElement(core, [sum](ArrayRef<Value>, unsigned) -> FailureOr<Value> { return sum; });
  return plain::storeRoots(b, elements, index, place);
}

/// What the only result is where that is the core, converted or not; else null.
static Value convertedCore(Operation *op, Value core) {
  if (op->getNumResults() != 1)
    return {};
  if (!kernel::hasCore(op))
    return core;
  Block &body = op->getRegion(0).front();
  Value root = body.getTerminator()->getOperand(0);
  auto convert = root.getDefiningOp<hlo::ConvertOp>();
  const bool converted = convert && convert->getOperand(0) == core && body.getOperations().size() == 2;
  return root == core || converted ? root : Value();
}

int64_t storedLanes(Operation *op, Value core) {
  constexpr int64_t lanes = 4;
  auto isSimple = [](Value v) {
    Type t = hlo::elementType(v);
    return (isa<FloatType>(t) || isa<IntegerType>(t)) && t.getIntOrFloatBitWidth() >= 8 && t.getIntOrFloatBitWidth() <= 32;
  };
  Value root = convertedCore(op, core);
  if (!root || !isSimple(root) || !isSimple(core))
    return 1;
  const RankedTensorType type = hlo::tensorType(core);
  return type.getRank() > 0 && type.getShape().back() > 0 && type.getShape().back() % lanes == 0 ? lanes : 1;
}

void storeConverted(codegen::KernelBuilder &b, Operation *op, Value core, Value place, Value sums) {
  Type from = hlo::elementType(core), to = hlo::elementType(convertedCore(op, core));
  b.storeElem(to, codegen::emitConvert(b, sums, from, to), b.results[0], place);
  auto store = dyn_cast<LLVM::StoreOp>(*std::prev(b.getInsertionPoint()));
  if (store && isa<VectorType>(store.getValue().getType()))
    store.setAlignment(codegen::lanesOf(sums.getType()) * codegen::elemBytes(to));
}

Value loadAligned(codegen::KernelBuilder &b, Type element, Value pointer, Value index, unsigned lanes, unsigned align) {
  Value v = b.loadElem(element, pointer, index, lanes);
  // what a narrow element is converted from lies a few ops behind
  SmallVector<Operation *> work{v.getDefiningOp()};
  while (!work.empty()) {
    Operation *op = work.pop_back_val();
    if (auto load = dyn_cast_or_null<LLVM::LoadOp>(op)) {
      load.setAlignment(align);
      return v;
    }
    if (op)
      for (Value operand : op->getOperands())
        work.push_back(operand.getDefiningOp());
  }
  return v;
}

} // namespace lathe::nvptx
