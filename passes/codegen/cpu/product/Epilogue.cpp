// What becomes of sums in registers or in memory: the epilogue's ops, and the stores of results.
#include "passes/codegen/cpu/product/Product.h"
#include "passes/codegen/cpu/product/Tile.h"
#include "passes/codegen/element/Shortcut.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace lathe::cpu {

/// Rough instruction counts: what decides between unrolled epilogues and a loop over a spilled tile.
static unsigned opCost(Operation &op) {
  StringRef name = op.getName().stripDialect();
  if (llvm::is_contained({"tanh", "exponential", "logistic", "erf", "erfc", "log", "log_plus_one", "exponential_minus_one",
                          "sine", "cosine", "tan", "power", "cbrt", "atan2", "sinh", "cosh", "erf_inv", "lgamma", "digamma"},
                         name))
    return 30;
  if (llvm::is_contained({"constant", "reshape", "yield", "broadcast_in_dim"}, name))
    return 0;
  return name == "divide" || name == "sqrt" || name == "rsqrt" ? 4 : 1;
}

unsigned epilogueInstructions(Operation *op) {
  Block &body = op->getRegion(0).front();
  // what shortcuts seldom need counts no more than what is never used
  llvm::DenseSet<Value> used;
  unsigned sum = 0;
  for (Operation &o : llvm::reverse(body)) {
    if (&o != body.getTerminator() && llvm::none_of(o.getResults(), [&](Value v) { return used.contains(v); }))
      continue;
    sum += opCost(o);
    auto select = dyn_cast<hlo::SelectOp>(o);
    for (Value v : o.getOperands())
      if (!select || !codegen::isShortcut(&o) || v != select.getOnTrue())
        used.insert(v);
  }
  return sum;
}

Epilogue::Epilogue(KernelBuilder &b, Operation *op) : b(b), op(op), body(op->getRegion(0).front()), emitter(b) {
  auto acc = cast<RankedTensorType>(body.getArgument(0).getType());
  accElem = acc.getElementType();
  resultDims = b.dims(acc);
  for (OpResult result : op->getResults()) {
    const int64_t row = kernel::resultRow(result);
    rowDims.push_back(row ? b.rowDims(acc, row) : SmallVector<Value>());
  }
  emitter.bindElement(body.getArgument(0), [this](ArrayRef<Value>, unsigned) -> FailureOr<Value> { return current; });
  unsigned core = op->getNumOperands() - (body.getNumArguments() - 1);
  for (unsigned i = 1; i < body.getNumArguments(); ++i)
    emitter.bindBuffer(body.getArgument(i), b.operands[core + i - 1], kernel::operandRow(op, core + i - 1));
  for (Value v : body.getTerminator()->getOperands())
    vector &= v == body.getArgument(0) || ElementEmitter::canVectorize(v);
  vector &= !isa<ComplexType>(accElem);
  if (op->getNumResults() == 1 && hlo::elementType(op->getResult(0)).isInteger(8))
    narrowing = Narrowing::of(body);
  instructions = epilogueInstructions(op);
}

SmallVector<Epilogue::Stream> Epilogue::streams() const {
  SmallVector<Stream> all;
  unsigned core = op->getNumOperands() - (body.getNumArguments() - 1);
  for (unsigned i = 1; i < body.getNumArguments(); ++i)
    if (auto t = cast<RankedTensorType>(body.getArgument(i).getType()); t.clone(accElem) == type())
      all.push_back(
          {b.operands[core + i - 1], t.getElementType(), b.rowDims(t, kernel::operandRow(op, core + i - 1))});
  for (auto [result, pointer, dims] : llvm::zip(op->getResults(), b.results, rowDims))
    all.push_back({pointer, cast<RankedTensorType>(result.getType()).getElementType(),
                   dims.empty() ? resultDims : dims});
  return all;
}

Value Epilogue::streamAt(const Stream &stream, ArrayRef<Value> index) const {
  return b.ptrAt(stream.pointer, stream.elem, b.linearize(index, stream.dims));
}

Value Epilogue::streamStep(const Stream &stream, Value elements) const {
  if (stream.dims.back() != resultDims.back())
    elements = b.mul(b.divU(elements, resultDims.back()), stream.dims.back());
  return b.mul(elements, b.i64(elemBytes(stream.elem)));
}

FailureOr<SmallVector<Value>> Epilogue::compute(ArrayRef<Value> index, Value acc, unsigned lanes) {
  current = acc;
  emitter.clearCache();
  SmallVector<Value> values;
  for (Value v : body.getTerminator()->getOperands()) {
    FailureOr<Value> r = emitter.emit(v, index, lanes);
    if (failed(r))
      return failure();
    values.push_back(*r);
  }
  return values;
}

bool Epilogue::hasMasks() const {
  auto fits = [&](Type type) { return b.target.hasMaskedMemory(getElementTypeOrSelf(type)); };
  return isa<FloatType>(accElem) && llvm::all_of(body.getArgumentTypes(), fits) && llvm::all_of(op->getResultTypes(), fits);
}

void Epilogue::store(ArrayRef<Value> index, ValueRange values, Value mask) {
  Value dense;
  for (auto [i, v] : llvm::enumerate(values)) {
    if (rowDims[i].empty() && !dense)
      dense = b.linearize(index, resultDims);
    b.storeElem(cast<RankedTensorType>(op->getResult(i).getType()).getElementType(), v, b.results[i],
                rowDims[i].empty() ? dense : b.linearize(index, rowDims[i]), mask);
  }
}

LogicalResult Epilogue::emit(ArrayRef<Value> index, Value acc, unsigned lanes, Value mask) {
  emitter.mask = mask;
  FailureOr<SmallVector<Value>> values = compute(index, acc, lanes);
  emitter.mask = Value();
  if (failed(values))
    return failure();
  store(index, *values, mask);
  return success();
}

/// An index as one plus a number; the first is null for numbers alone.
static std::pair<Value, int64_t> withoutConstant(Value index) {
  if (std::optional<int64_t> number = constantOf(index))
    return {Value(), *number};
  if (auto add = index.getDefiningOp<arith::AddIOp>())
    for (unsigned i : {1, 0})
      if (std::optional<int64_t> number = constantOf(add->getOperand(i)))
        return {add->getOperand(1 - i), *number};
  return {index, 0};
}

LogicalResult Epilogue::computeTogether(ArrayRef<SmallVector<Value>> indices, ValueRange accs, SmallVector<std::function<void()>> &stores) {
  const unsigned count = accs.size(), lanes = isa<ComplexType>(accElem) ? 1 : lanesOf(accs.front().getType());
  const bool packs = narrowing.wide && count > 1 && Narrowing::packs(b.target, lanes);
  SmallVector<Value> roots(packs ? ValueRange(narrowing.wide) : ValueRange(body.getTerminator()->getOperands()));
  auto values = codegen::emitTogether(emitter, roots, count, lanes, [&](unsigned i) -> ArrayRef<Value> {
    current = accs[i];
    return indices[i];
  });
  if (failed(values))
    return failure();
  if (!packs) {
    for (unsigned i = 0; i < count; ++i)
      stores.push_back([this, index = indices[i], out = (*values)[i]] { store(index, out); });
    return success();
  }
  SmallVector<Value> four;
  for (unsigned i = 0; i < vectorsAtOnce; ++i)
    four.push_back((*values)[std::min(i, count - 1)].front());
  Value bytes = Narrowing::inOrder(b, narrowing.pack(b, four));
  for (unsigned i = 0; i < count;) {
    // vectors that follow each other in a row are stored together
    unsigned n = 1;
    auto follows = [&](unsigned next) {
      ArrayRef<Value> at(indices[i]), then(indices[next]);
      auto [from, less] = withoutConstant(at.back());
      return at.drop_back() == then.drop_back() && withoutConstant(then.back()) == std::pair(from, less + int64_t(lanes * n));
    };
    while (i + n < count && follows(i + n))
      ++n;
    if (n == 3)
      n = 2;
    SmallVector<int64_t> pick;
    for (unsigned k = 0; k < n * lanes; ++k)
      pick.push_back(i * lanes + k);
    Value part = n == 4 ? bytes : Value(vector::ShuffleOp::create(b, bytes, bytes, pick));
    stores.push_back([this, index = indices[i], part] { store(index, part); });
    i += n;
  }
  return success();
}

LogicalResult Epilogue::emitVectors(ArrayRef<SmallVector<Value>> indices, ValueRange accs) {
  SmallVector<std::function<void()>> stores;
  for (unsigned i = 0; i < accs.size(); i += vectorsAtOnce) {
    const unsigned count = std::min<unsigned>(vectorsAtOnce, accs.size() - i);
    if (failed(computeTogether(indices.slice(i, count), accs.slice(i, count), stores)))
      return failure();
    if (narrowing.wide || i + count == accs.size()) {
      for (auto &store : stores)
        store();
      stores.clear();
    }
  }
  return success();
}

/// Columns that are valid, where that is known at compile time.
static std::optional<int64_t> validColumns(TileShape shape, Value columns) {
  return columns ? constantOf(columns) : std::optional<int64_t>(shape.columns());
}

LogicalResult Epilogue::emitTile(TileShape shape, ValueRange accs, unsigned columnDim, Value columns,
                                 function_ref<SmallVector<Value>(Value row)> rowIndex) {
  std::optional<int64_t> valid = validColumns(shape, columns);
  bool whole = valid && *valid % shape.lanes == 0;
  bool direct = shape.lanes == 1 || (vector && columnDim + 1 == resultDims.size());
  unsigned vecs = whole ? *valid / shape.lanes : shape.vecs;

  // Short epilogues on whole vectors: in registers.
  if (whole && direct && (instructions + 1) * shape.rows * vecs <= 600) {
    SmallVector<SmallVector<Value>> indices;
    SmallVector<Value> sums;
    for (unsigned r = 0; r < shape.rows; ++r)
      for (unsigned v = 0; v < vecs; ++v) {
        SmallVector<Value> index = rowIndex(b.i64(r));
        index[columnDim] = b.add(index[columnDim], b.i64(v * shape.lanes));
        indices.push_back(index);
        sums.push_back(accs[r * shape.vecs + v]);
      }
    return emitVectors(indices, sums);
  }

  // Otherwise the tile goes through the stack, and one copy of the epilogue loops over it.
  int64_t bytes = int64_t(shape.rows) * shape.columns() * elemBytes(accElem);
  if (bytes > tileBufferBytes) {
    tileBuffer = b.alloca(bytes);
    tileBufferBytes = bytes;
  }
  storeTile(b, shape, accElem, accs, tileBuffer);
  return emitBuffered(shape, tileBuffer, b.i64(shape.rows), columnDim, columns, rowIndex);
}

LogicalResult Epilogue::emitBuffered(TileShape shape, Value buffer, Value rows, unsigned columnDim, Value columns,
                                     function_ref<SmallVector<Value>(Value row)> rowIndex) {
  bool complex = isa<ComplexType>(accElem);
  bool direct = vector && columnDim + 1 == resultDims.size() && shape.lanes > 1;
  std::optional<int64_t> valid = validColumns(shape, columns);
  LogicalResult ok = success();
  b.loop(b.i64(0), rows, [&](Value r) {
    Value row = b.mul(r, b.i64(shape.columns()));
    SmallVector<Value> first = rowIndex(r);
    auto piece = [&](Value column, unsigned lanes, Value mask = {}) {
      Value acc = b.loadElem(accElem, buffer, b.add(row, column), complex ? 1 : lanes);
      SmallVector<Value> index = first;
      index[columnDim] = b.add(index[columnDim], column);
      if (failed(emit(index, acc, lanes, mask)))
        ok = failure();
    };
    Value n = columns ? columns : b.i64(shape.columns());
    Value done = b.i64(0);
    if (direct) {
      done = b.mul(b.divU(n, b.i64(shape.lanes)), b.i64(shape.lanes));
      if (!valid || *valid >= shape.lanes)
        b.loop(b.i64(0), done, b.i64(shape.lanes), [&](Value c) { piece(c, shape.lanes); });
    }
    // what is left of a static tail: one vector with masks, or vectors of half and a quarter of the width where they fit
    const int64_t left = valid && direct ? *valid - *constantOf(done) : 0;
    const unsigned rounded = std::max<unsigned>(4, llvm::PowerOf2Ceil(left));
    if (left > 1 && left != rounded && rounded <= shape.lanes && hasMasks()) {
      SmallVector<bool> on(rounded);
      std::fill_n(on.begin(), left, true);
      auto type = VectorType::get({rounded}, b.getI1Type());
      piece(done, rounded, arith::ConstantOp::create(b, type, DenseElementsAttr::get(type, ArrayRef<bool>(on))));
      return;
    }
    for (unsigned lanes = shape.lanes / 2; left && lanes >= std::max(4u, shape.lanes / 4); lanes /= 2)
      if (*valid - *constantOf(done) >= lanes) {
        piece(done, lanes);
        done = b.add(done, b.i64(lanes));
      }
    if (!valid || constantOf(done) != valid)
      b.loop(done, n, [&](Value c) { piece(c, 1); });
  });
  return ok;
}

} // namespace lathe::cpu
