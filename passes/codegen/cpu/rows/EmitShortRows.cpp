// kernel.rows and kernel.loop of rows of a few elements each, the classes or colours of a pixel say: a vector
// holds an element of as many rows as it has lanes. A block of rows is loaded as it lies, its elements are
// brought side by side by permutations, and results go back in the same way. Rows that are no whole block
// pass through the stack.
#include "dialects/hlo/Hlo.h"
#include "dialects/kernel/Kernel.h"
#include "passes/codegen/element/Special.h"
#include "passes/codegen/cpu/rows/Elemental.h"
#include "passes/codegen/cpu/rows/Interleave.h"
#include "passes/codegen/cpu/rows/Rows.h"
#include "passes/codegen/cpu/rows/Softmax.h"
#include "passes/codegen/element/Reducer.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace lathe::cpu {

using hlo::elementType;
using hlo::tensorType;

namespace {

class ShortRowsEmitter {
public:
  ShortRowsEmitter(Operation *op, KernelBuilder &b) : b(b), body(op->getRegion(0).front()), scalars(b) {}
  WhyNot whyNot();
  LogicalResult emit();

private:
  enum class Kind { Full, Row, Other }; // an element of its own, one for its row, the same for all rows

  WhyNot sizesFit();
  WhyNot typesFit();
  Kind kindOf(Value v) const;
  bool fitsBroadcast(hlo::BroadcastInDimOp op) const;
  /// What is the same for all rows: element j of a row's length, or the only one.
  FailureOr<Value> common(Value v, int64_t j);
  /// Element j of each row; of a value of kind Row in any j.
  FailureOr<Value> value(Value v, int64_t j);
  FailureOr<Value> compute(Value v, int64_t j);
  LogicalResult reduce(hlo::ReduceOp r);
  void emitBlock(ValueRange inputs, ValueRange outputs, Value firstRow);
  void load(Value v, Value buffer, Value firstRow);
  LogicalResult store(Value v, Value buffer, Value firstRow);
  int64_t perRow(Value v) const { return kindOf(v) == Kind::Full ? length : 1; }

  KernelBuilder &b;
  Block &body;
  ElementEmitter scalars;
  RankedTensorType full;
  SmallVector<Value> roots;
  AffineExpr rowCount;
  int64_t length = 0, fewestRows = 1;
  unsigned lanes = 16;
  std::map<std::pair<void *, int64_t>, Value> known; // of the block
  LogicalResult ok = success();
};

ShortRowsEmitter::Kind ShortRowsEmitter::kindOf(Value v) const {
  auto t = tensorType(v);
  const int64_t rank = full.getRank();
  if (t.getRank() != rank && t.getRank() != rank - 1)
    return Kind::Other;
  for (int64_t i = 0; i < t.getRank(); ++i)
    if (!hlo::equalDims(hlo::getDim(t, i), hlo::getDim(full, i)))
      return Kind::Other;
  return t.getRank() == rank ? Kind::Full : Kind::Row;
}

bool ShortRowsEmitter::fitsBroadcast(hlo::BroadcastInDimOp op) const {
  if (kindOf(op.getResult()) == Kind::Other)
    return true; // left to `scalars`
  Value x = op.getOperand();
  auto map = op.getBroadcastDimensions();
  if (kindOf(x) == Kind::Row)
    return kindOf(op.getResult()) == Kind::Full && llvm::equal(map, llvm::seq<int64_t>(0, full.getRank() - 1));
  // numbers that differ along the row at most
  auto t = tensorType(x);
  for (int64_t i = 0; i < t.getRank(); ++i)
    if (hlo::constantValue(hlo::getDim(t, i)) != 1 && map[i] != full.getRank() - 1)
      return false;
  return true;
}

/// Permutations that dealElements takes.
static int64_t permutations(int64_t n) { return n == 1 ? 0 : n % 2 ? n * (n - 1) : n + 2 * permutations(n / 2); }

WhyNot ShortRowsEmitter::sizesFit() {
  // beyond that, vectors of a row's own elements are as fast
  const int64_t mostElements = longestShortRow(b.target), mostPermutations = 64;
  roots.assign(body.getTerminator()->operand_begin(), body.getTerminator()->operand_end());
  for (Operation &o : body)
    if (auto r = dyn_cast<hlo::ReduceOp>(o); r && !full)
      full = tensorType(r.getInputs()[0]);
  if (!full)
    full = tensorType(roots[0]);
  if (full.getRank() < 2)
    return WhyNot::notMeant("there are no rows");
  auto dims = hlo::getDims(full);
  length = hlo::constantValue(dims.back()).value_or(0);
  if (length < 2 || length > mostElements || permutations(length) > mostPermutations)
    return WhyNot::notMeant("rows are long");
  rowCount = b.getAffineConstantExpr(1);
  fewestRows = 1; // a batch may be of one
  for (AffineExpr d : ArrayRef<AffineExpr>(dims).drop_back()) {
    rowCount = hlo::simplify(rowCount * d);
    fewestRows *= hlo::constantValue(d).value_or(1);
  }
  return WhyNot::none();
}

WhyNot ShortRowsEmitter::typesFit() {
  const WhyNot complex = WhyNot::lacks("complex numbers have no lanes here");
  SmallVector<Value> values(body.getArguments());
  for (Operation &o : body)
    values.append(o.result_begin(), o.result_end());
  for (Value v : values) {
    Type elem = elementType(v);
    if (!elem.isIntOrFloat())
      return complex;
    if (tensorType(v).getRank() > 0)
      lanes = std::min(lanes, b.target.lanes(elem));
  }
  for (Value v : body.getArguments())
    if (kindOf(v) != Kind::Other && elementType(v).getIntOrFloatBitWidth() < 8)
      return WhyNot::notMeant("operands of less than a byte");
  for (Value v : roots)
    if (kindOf(v) == Kind::Other || elementType(v).getIntOrFloatBitWidth() < 8)
      return WhyNot::notMeant("results of other rows, or of less than a byte");
  return WhyNot::none();
}

WhyNot ShortRowsEmitter::whyNot() {
  if (WhyNot why = sizesFit(); !why.takes())
    return why;
  if (WhyNot why = typesFit(); !why.takes())
    return why;
  for (Operation &o : body.without_terminator()) {
    if (auto r = dyn_cast<hlo::ReduceOp>(o)) {
      bool along = r.getDimensions().size() == 1 && r.getDimensions()[0] == full.getRank() - 1;
      if (!along || !llvm::all_of(r.getInputs(), [&](Value v) { return kindOf(v) == Kind::Full; }))
        return WhyNot::notMeant("a reduction is not along the rows");
      continue;
    }
    if (kindOf(o.getResult(0)) == Kind::Other)
      continue;
    auto c = dyn_cast<hlo::ConstantOp>(o);
    auto spread = dyn_cast<hlo::BroadcastInDimOp>(o);
    if (!(c && c.getValue().isSplat()) && !(spread && fitsBroadcast(spread)) && !isElementwise(&o))
      return WhyNot::notMeant("an operation is none of elements, reductions or broadcasts");
  }
  if (lanes < 4 || fewestRows < 2 * int64_t(lanes))
    return WhyNot::notMeant("vectors are short, or rows few");
  return WhyNot::none();
}

FailureOr<Value> ShortRowsEmitter::common(Value v, int64_t j) {
  auto t = tensorType(v);
  SmallVector<Value> index;
  for (int64_t i = 0; i < t.getRank(); ++i)
    index.push_back(b.i64(hlo::constantValue(hlo::getDim(t, i)) == length ? j : 0));
  FailureOr<Value> x = scalars.emit(v, index, 1);
  if (failed(x))
    return failure();
  return b.splatElem(elementType(v), *x, lanes);
}

FailureOr<Value> ShortRowsEmitter::value(Value v, int64_t j) {
  const Kind kind = kindOf(v);
  auto key = std::make_pair(v.getAsOpaquePointer(), kind == Kind::Row ? 0 : j);
  if (auto it = known.find(key); it != known.end())
    return it->second;
  FailureOr<Value> r = kind == Kind::Other ? common(v, j) : compute(v, j);
  if (succeeded(r))
    known[key] = *r;
  return r;
}

FailureOr<Value> ShortRowsEmitter::compute(Value v, int64_t j) {
  Operation *o = v.getDefiningOp();
  if (auto r = dyn_cast<hlo::ReduceOp>(o)) {
    if (failed(reduce(r)))
      return failure();
    return known[{v.getAsOpaquePointer(), 0}];
  }
  if (isa<hlo::ConstantOp>(o)) {
    SmallVector<Value> zeros(tensorType(v).getRank(), b.i64(0));
    FailureOr<Value> x = scalars.emit(v, zeros, 1);
    if (failed(x))
      return failure();
    return b.splatElem(elementType(v), *x, lanes);
  }
  if (auto spread = dyn_cast<hlo::BroadcastInDimOp>(o))
    return value(spread.getOperand(), j);
  if (auto quotient = dyn_cast<hlo::DivOp>(o))
    if (hlo::ReduceOp sum = softmaxSum(quotient)) {
      FailureOr<Value> total = value(sum.getResult(0), 0), x = value(quotient->getOperand(0), j);
      if (failed(total) || failed(x))
        return failure();
      Value &share = known[{total->getAsOpaquePointer(), 0}]; // of this value, which is none of the body's
      if (!share)
        share = arith::DivFOp::create(b, b.cst(total->getType(), 1.0), *total);
      return arith::MulFOp::create(b, *x, share).getResult();
    }
  SmallVector<Value> args;
  for (Value x : o->getOperands()) {
    FailureOr<Value> a = value(x, j);
    if (failed(a))
      return failure();
    args.push_back(*a);
  }
  return emitElementwise(b, o, args, lanes);
}

LogicalResult ShortRowsEmitter::reduce(hlo::ReduceOp r) {
  SmallVector<Type> elems;
  SmallVector<Value> inits;
  for (Value v : r.getInitValues()) {
    FailureOr<Value> s = scalars.emit(v, {}, 1);
    if (failed(s))
      return failure();
    inits.push_back(*s);
    elems.push_back(elementType(v));
  }
  Reducer reducer(b, r.getBody().front(), elems, inits);
  if (leavesNanToOthers(r, roots))
    reducer.loseNans();
  SmallVector<Value> acc = reducer.start(lanes);
  for (int64_t j = 0; j < length; ++j) {
    SmallVector<Value> x;
    for (Value v : r.getInputs()) {
      FailureOr<Value> e = value(v, j);
      if (failed(e))
        return failure();
      x.push_back(*e);
    }
    auto next = reducer.combine(acc, x, lanes);
    if (failed(next))
      return failure();
    acc = *next;
  }
  auto fin = reducer.finish(acc, lanes);
  if (failed(fin))
    return failure();
  for (auto [res, v] : llvm::zip(r.getResults(), *fin))
    known[{res.getAsOpaquePointer(), 0}] = v;
  return success();
}

void ShortRowsEmitter::load(Value v, Value buffer, Value firstRow) {
  const int64_t n = perRow(v);
  Value base = b.mul(firstRow, b.i64(n));
  SmallVector<Value> vectors;
  for (int64_t k = 0; k < n; ++k)
    vectors.push_back(b.loadElem(elementType(v), buffer, b.add(base, b.i64(k * lanes)), lanes));
  for (auto [j, x] : llvm::enumerate(dealElements(b, vectors)))
    known[{v.getAsOpaquePointer(), j}] = x;
}

LogicalResult ShortRowsEmitter::store(Value v, Value buffer, Value firstRow) {
  const int64_t n = perRow(v);
  SmallVector<Value> columns;
  for (int64_t j = 0; j < n; ++j) {
    FailureOr<Value> x = value(v, j);
    if (failed(x))
      return failure();
    columns.push_back(*x);
  }
  Value base = b.mul(firstRow, b.i64(n));
  for (auto [k, x] : llvm::enumerate(weaveElements(b, columns)))
    b.storeElem(elementType(v), x, buffer, b.add(base, b.i64(k * lanes)));
  return success();
}

void ShortRowsEmitter::emitBlock(ValueRange inputs, ValueRange outputs, Value firstRow) {
  known.clear();
  ElementEmitter::Scope scope(scalars);
  for (auto [arg, buffer] : llvm::zip(body.getArguments(), inputs))
    if (kindOf(arg) != Kind::Other)
      load(arg, buffer, firstRow);
  // in the order of the body, so that no chain of operations makes a deep recursion
  for (Operation &o : body.without_terminator())
    for (Value v : o.getResults())
      for (int64_t j = 0; j < (kindOf(v) == Kind::Other ? 0 : perRow(v)); ++j)
        if (failed(value(v, j)))
          ok = failure();
  for (auto [root, buffer] : llvm::zip(roots, outputs))
    if (failed(store(root, buffer, firstRow)))
      ok = failure();
}

LogicalResult ShortRowsEmitter::emit() {
  for (auto [arg, ptr] : llvm::zip(body.getArguments(), b.operands))
    scalars.bindBuffer(arg, ptr);
  const int64_t together = std::max<int64_t>(1, 2048 / (length * lanes)); // blocks of a unit
  b.setExtent(hlo::ceilDiv(rowCount, together * lanes));
  b.setWork(elementCost(roots) * together * lanes * length);
  Value count = b.dim(rowCount), step = b.i64(lanes);
  // rows [first, first + left) by way of the stack
  auto partly = [&](Value first, Value left) {
    SmallVector<Value> inputs, outputs;
    auto move = [&](Value v, Value from, Value to, Value start, Value at) {
      b.loop(b.i64(0), b.mul(left, b.i64(perRow(v))), [&](Value i) {
        Value x = b.loadElem(elementType(v), from, b.add(b.mul(start, b.i64(perRow(v))), i));
        b.storeElem(elementType(v), x, to, b.add(b.mul(at, b.i64(perRow(v))), i));
      });
    };
    for (auto [arg, ptr] : llvm::zip(body.getArguments(), b.operands)) {
      inputs.push_back(ptr);
      if (kindOf(arg) == Kind::Other)
        continue;
      const int64_t bytes = perRow(arg) * lanes * elemBytes(elementType(arg));
      inputs.back() = b.alloca(bytes);
      // no numbers that the processor takes long over
      for (int64_t i = 0; i < perRow(arg); ++i)
        b.storeElem(elementType(arg), b.cstI(regType(elementType(arg), lanes), 0), inputs.back(), b.i64(i * lanes));
      move(arg, ptr, inputs.back(), first, b.i64(0));
    }
    for (Value root : roots)
      outputs.push_back(b.alloca(perRow(root) * lanes * elemBytes(elementType(root))));
    emitBlock(inputs, outputs, b.i64(0));
    for (auto [root, stack, ptr] : llvm::zip(roots, outputs, b.results))
      move(root, stack, ptr, b.i64(0), first);
  };
  b.units([&](Value unit) {
    Value first = b.mul(unit, b.i64(together * lanes)), last = b.min(b.add(first, b.i64(together * lanes)), count);
    Value rest = b.remU(b.sub(last, first), step), whole = b.sub(last, rest);
    b.loop(first, whole, step, [&](Value row) { emitBlock(b.operands, b.results, row); });
    std::optional<int64_t> rows = hlo::constantValue(rowCount);
    if (!rows || *rows % lanes)
      b.ifThen(b.lt(b.i64(0), rest), [&] { partly(whole, rest); });
  });
  return ok;
}

} // namespace

std::optional<LogicalResult> emitShortRows(Operation *op, KernelBuilder &b) {
  ShortRowsEmitter emitter(op, b);
  if (!chooseSpecial(b, "short-rows", emitter.whyNot()))
    return std::nullopt;
  return emitter.emit();
}

} // namespace lathe::cpu
