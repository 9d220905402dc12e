// Register tiles: the reduction loop. Epilogue.cpp has what becomes of its sums, TileChoice.cpp chooses their shape.
#include "passes/codegen/cpu/product/Tile.h"

#include "passes/codegen/cpu/product/Format.h"
#include "passes/codegen/cpu/product/Product.h"
#include "passes/codegen/element/LongSums.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace lathe::cpu {

RowTiles::RowTiles(std::optional<int64_t> count, unsigned maxRows) : isStatic(count.has_value()), height(maxRows) {
  if (!count || *count == 0)
    return;
  numTiles = llvm::divideCeil(*count, maxRows);
  low = *count / numTiles;
  numHigh = *count - low * numTiles;
  height = numHigh ? low + 1 : low;
}

Value RowTiles::rowAt(KernelBuilder &b, Value position) const {
  return isStatic ? b.add(b.mul(position, b.i64(low)), b.min(position, b.i64(numHigh))) : position;
}

Value RowTiles::tileAt(KernelBuilder &b, Value row) const {
  const int64_t highRows = numHigh * (low + 1);
  Value inHigh = b.divU(row, b.i64(low + 1)),
        inLow = b.add(b.i64(numHigh),
                      b.divU(b.max(b.sub(row, b.i64(highRows)), b.i64(0)), b.i64(std::max<int64_t>(low, 1))));
  return numHigh == 0 ? inLow : b.select(b.lt(row, b.i64(highRows)), inHigh, inLow);
}

void RowTiles::forEach(KernelBuilder &b, Value first, Value last, function_ref<void(unsigned height, Value row)> emit) const {
  if (isStatic) {
    Value high = b.i64(numHigh);
    if (numHigh)
      b.loop(first, b.min(last, high), [&](Value t) { emit(low + 1, b.mul(t, b.i64(low + 1))); });
    if (numTiles > numHigh)
      b.loop(b.max(first, high), last, [&](Value t) { emit(low, b.add(b.mul(t, b.i64(low)), high)); });
    return;
  }
  Value row = first;
  for (unsigned h : {height, 4u, 1u}) {
    if (h > height || (h == height && row != first))
      continue;
    Value count = b.divU(b.sub(last, row), b.i64(h));
    Value stop = b.add(row, b.mul(count, b.i64(h)));
    b.loop(row, stop, b.i64(h), [&](Value r) { emit(h, r); });
    row = stop;
  }
}

void RowTiles::forEachInside(KernelBuilder &b, function_ref<bool(int64_t row, int64_t height)> inside,
                             function_ref<void(Value row, unsigned height, int64_t known)> emit, Value from,
                             Value to) const {
  auto heightOf = [&](int64_t t) { return t < numHigh ? low + 1 : low; };
  auto firstOf = [&](int64_t t) { return t * low + std::min(t, numHigh); };
  for (int64_t t = 0; t < numTiles;) {
    const int64_t height = heightOf(t), first = firstOf(t);
    int64_t last = t;
    while (last < numTiles && heightOf(last) == height && inside(firstOf(last), height))
      ++last;
    const bool alone = last == t;
    last = std::max(last, t + 1);
    if (from)
      b.loop(b.max(from, b.i64(t)), b.min(to, b.i64(last)),
             [&](Value tile) { emit(alone ? b.i64(first) : rowAt(b, tile), height, alone ? first : -1); });
    else if (alone)
      emit(b.i64(first), height, first);
    else
      b.loop(b.i64(first), b.i64(first + (last - t) * height), b.i64(height),
             [&](Value row) { emit(row, height, -1); });
    t = last;
  }
}

WindowSteps::Position WindowSteps::at(KernelBuilder &b, Value result, Value taps, Value size) const {
  Value start = b.sub(b.mul(result, b.i64(stride)), b.i64(padLow));
  Value round = b.i64(dilation - 1), step = b.i64(dilation), zero = b.i64(0);
  Value firstTap = padLow <= 0 ? zero : b.divU(b.add(b.max(b.sub(zero, start), zero), round), step);
  return {start, firstTap, b.min(taps, b.divU(b.add(b.max(b.sub(size, start), zero), round), step))};
}

Value toAccumulator(KernelBuilder &b, Value v, Type elem, Type accElem) {
  Type want = regType(accElem, isa<ComplexType>(accElem) ? 1 : lanesOf(v.getType()));
  if (v.getType() == want)
    return v;
  Type from = getElementTypeOrSelf(v.getType()), to = getElementTypeOrSelf(want);
  if (isa<FloatType>(from) && isa<FloatType>(to)) {
    if (from.getIntOrFloatBitWidth() < to.getIntOrFloatBitWidth())
      return arith::ExtFOp::create(b, want, v);
    return arith::TruncFOp::create(b, want, v);
  }
  if (isa<IntegerType>(from) && isa<IntegerType>(to)) {
    if (from.getIntOrFloatBitWidth() > to.getIntOrFloatBitWidth())
      return arith::TruncIOp::create(b, want, v);
    if (isUnsignedElem(elem))
      return arith::ExtUIOp::create(b, want, v);
    return arith::ExtSIOp::create(b, want, v);
  }
  if (isa<IntegerType>(from))
    return isUnsignedElem(elem) ? arith::UIToFPOp::create(b, want, v).getResult() : arith::SIToFPOp::create(b, want, v);
  return isUnsignedElem(accElem) ? arith::FPToUIOp::create(b, want, v).getResult() : arith::FPToSIOp::create(b, want, v);
}

static Value complexMultiplyAdd(KernelBuilder &b, Value x, Value y, Value acc) {
  auto part = [&](Value v, int64_t i) -> Value { return vector::ExtractOp::create(b, v, i); };
  Value xr = part(x, 0), xi = part(x, 1), yr = part(y, 0), yi = part(y, 1);
  auto mul = [&](Value l, Value r) -> Value { return arith::MulFOp::create(b, l, r); };
  Value re = arith::SubFOp::create(b, mul(xr, yr), mul(xi, yi));
  Value im = arith::AddFOp::create(b, mul(xr, yi), mul(xi, yr));
  Value product = vector::FromElementsOp::create(b, acc.getType(), ValueRange{re, im});
  return arith::AddFOp::create(b, acc, product);
}

Value multiplyAdd(KernelBuilder &b, Value x, Value y, Value acc, Type accElem) {
  if (isa<ComplexType>(accElem))
    return complexMultiplyAdd(b, x, y, acc);
  Type elem = getElementTypeOrSelf(acc.getType());
  // said explicitly, since the back end must not fuse by itself; without the instruction it would be a call
  if (isa<FloatType>(elem) && b.target.fma)
    return LLVM::FMAOp::create(b, acc.getType(), x, y, acc);
  if (isa<FloatType>(elem))
    return arith::AddFOp::create(b, acc, arith::MulFOp::create(b, x, y));
  if (elem.isInteger(1)) // bool: or of ands
    return arith::OrIOp::create(b, acc, arith::AndIOp::create(b, x, y));
  return arith::AddIOp::create(b, acc, arith::MulIOp::create(b, x, y));
}

/// Steps unrolled: a divisor of the trip count where there is one, so that no remainder loop is needed. LLVM loads the
/// pairs of all unrolled steps first, and spills those of four: 12544 x 16 x 96 takes 0.57 of the time with two.
static int64_t chooseUnroll(std::optional<int64_t> trips, bool pairs) {
  if (pairs && trips)
    return *trips % 2 == 0 ? 2 : 1;
  if (!trips)
    return 4;
  for (int64_t u : {4, 3, 5, 2})
    if (*trips % u == 0)
      return u;
  return *trips < 4 ? std::max<int64_t>(*trips, 1) : 4;
}

int64_t rowsAhead(const KernelTarget &target, TileShape shape, int64_t steps) {
  const int64_t cycles = std::max<int64_t>(1, steps * shape.rows * shape.vecs / target.fmas);
  return cycles >= 2 * target.memoryLatency ? 0 : shape.rows * llvm::divideCeil(target.memoryLatency, cycles);
}

/// Keeps LLVM from unrolling the loop behind `results` altogether: it would move what a short sum loads of the right
/// operand out of the loop over tiles, into more registers than there are. Pairs of the left operand, which two vectors of columns
/// share, would all be loaded first: a product 16 deep spilled most of them.
static void keepRolled(KernelBuilder &b, ValueRange results, bool pairs) {
  auto loop = results.front().getDefiningOp<scf::ForOp>();
  if (!loop || !(b.target.neon || pairs))
    return;
  MLIRContext *c = b.getContext();
  auto unroll = LLVM::LoopUnrollAttr::get(c, b.getBoolAttr(true), {}, {}, {}, {}, {}, {});
  loop->setAttr("loop_annotation", LLVM::LoopAnnotationAttr::get(c, {}, {}, {}, unroll, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}));
}

/// Adds up the lanes of interleaved steps: vectors two by two, their lanes two by two.
static SmallVector<Value> foldSteps(KernelBuilder &b, TileShape shape, SmallVector<Value> accs) {
  for (; shape.steps > 1; shape.steps /= 2) {
    SmallVector<Value> next;
    SmallVector<int64_t> even, odd;
    for (unsigned lane = 0; lane < shape.lanes; ++lane) {
      even.push_back(2 * lane);
      odd.push_back(2 * lane + 1);
    }
    for (unsigned r = 0; r < shape.rows; ++r)
      for (unsigned v = 0; v < shape.vecs; v += 2) {
        Value low = accs[r * shape.vecs + v], high = v + 1 < shape.vecs ? accs[r * shape.vecs + v + 1] : low;
        next.push_back(arith::AddFOp::create(b, vector::ShuffleOp::create(b, low, high, even),
                                             vector::ShuffleOp::create(b, low, high, odd)));
      }
    shape.vecs = (shape.vecs + 1) / 2;
    accs = std::move(next);
  }
  return accs;
}

namespace {
/// The loops of one tile: all its accumulators are in registers.
class TileEmitter {
public:
  TileEmitter(KernelBuilder &b, TileShape shape, Type accElem, const TileOperands &operands, ArrayRef<ReductionLoop> loops);
  SmallVector<Value> emit(ValueRange init);

private:
  using Sums = SmallVector<Value>;

  Sums loadRuns(Value aBase, Value k);
  Value repeat(Value aBase, Value at, Value mask);
  void groupStep(Value aBase, Value bBase, Value k, MutableArrayRef<Value> acc);
  void step(Value aBase, Value bBase, Value k, MutableArrayRef<Value> acc, ArrayRef<Value> run = {}, int64_t lane = 0,
            Value mask = {});
  Sums steps(Value aBase, Value bBase, Value k, ValueRange in, int64_t count);
  void fetchStreams(Value iteration);
  void fetchAllStreams();
  void fetchRight(Value bBase, Value k);
  Sums sum(Value lo, Value hi, int64_t step, ValueRange inits, int64_t perStep,
           llvm::function_ref<Sums(Value, ValueRange)> body);
  Sums innerLoop(Value aBase, Value bBase, Value before, Sums acc);
  Sums level(unsigned i, Value aBase, Value bBase, Value before, Sums acc);
  void joinSets(Sums &acc);

  KernelBuilder &b;
  const TileShape shape;
  const Type accElem;
  const TileOperands &operands;
  const ArrayRef<ReductionLoop> loops;
  const ReductionLoop &inner;
  const OperandFormat format;
  const unsigned n; ///< accumulators
  const bool complex;
  const Type vecType;
  const int64_t unroll;
  /// Few accumulators do not cover the latency of a multiply-add: alternate steps are summed apart.
  const unsigned sets;
  /// NEON multiplies by a lane of a register: one load for four steps of a row.
  static constexpr int64_t runLength = 4;
  const bool runs;
  std::optional<int64_t> iterations = 1; ///< of the innermost loop, all in all
  /// A low tile's loop waits for the right operand: nothing else is fetched there.
  const bool streamsFirst;
};
} // namespace

TileEmitter::TileEmitter(KernelBuilder &b, TileShape shape, Type accElem, const TileOperands &operands, ArrayRef<ReductionLoop> loops)
    : b(b), shape(shape), accElem(accElem), operands(operands), loops(loops), inner(loops.back()), format(formatOf(operands)), n(shape.rows * shape.vecs),
      complex(isa<ComplexType>(accElem)), vecType(complex ? regType(accElem) : regType(accElem, shape.lanes)),
      unroll(chooseUnroll(constantOf(inner.trips), (operands.pairs || operands.bLess) && n >= 8)),
      sets(std::clamp<unsigned>(8 / n, 1, unroll)),
      runs(b.target.neon && shape.lanes == runLength && unroll == runLength && constantOf(inner.aStride) == 1 && accElem.isF32() &&
           operands.aElem.isF32()),
      streamsFirst(operands.ahead && shape.rows <= 2) {
  for (const ReductionLoop &loop : loops) {
    std::optional<int64_t> trips = constantOf(loop.trips);
    iterations = trips && iterations ? std::optional<int64_t>(*iterations * *trips) : std::nullopt;
  }
}

SmallVector<Value> TileEmitter::loadRuns(Value aBase, Value k) {
  Sums all;
  for (unsigned r = 0; r < shape.rows; ++r)
    all.push_back(b.loadElem(operands.aElem, aBase, b.add(k, b.mul(b.i64(r), operands.aRowStride)), runLength));
  return all;
}

Value TileEmitter::repeat(Value aBase, Value at, Value mask) {
  Value few = b.loadElem(operands.aElem, aBase, at, shape.steps, mask);
  if (shape.steps == shape.lanes)
    return few;
  SmallVector<int64_t> pick;
  for (unsigned lane = 0; lane < shape.lanes; ++lane)
    pick.push_back(lane % shape.steps);
  return vector::ShuffleOp::create(b, few, few, pick);
}

void TileEmitter::groupStep(Value aBase, Value bBase, Value k, MutableArrayRef<Value> acc) {
  Type i32 = b.getI32Type();
  const int64_t group = format.group();
  auto vectorOf = [&](Type elem) { return VectorType::get({group * shape.lanes}, format.isInteger() ? memType(elem) : elem); };
  auto asGroups = [&](Value v) -> Value { return vector::BitCastOp::create(b, vectorOf(operands.aElem), v); };
  Value aOffset = b.mul(k, inner.aStride), from = b.ptrAt(bBase, operands.bElem, b.mul(k, inner.bStride));
  Sums columns;
  for (unsigned v = 0; v < shape.vecs; ++v) {
    if (format.isInteger())
      columns.push_back(b.loadElem(operands.bElem, from, b.i64(v * shape.lanes * group), shape.lanes * group));
    else
      columns.push_back(asGroups(b.loadElem(i32, from, b.i64(v * shape.lanes), shape.lanes)));
  }
  for (unsigned r = 0; r < shape.rows; ++r) {
    Value at = b.add(aOffset, b.mul(b.i64(r), operands.aRowStride));
    // groups are aligned as elements are
    Value x = LLVM::LoadOp::create(b, i32, b.ptrAt(aBase, operands.aElem, at), elemBytes(operands.aElem));
    x = asGroups(b.splat(x, shape.lanes));
    for (unsigned v = 0; v < shape.vecs; ++v) {
      Value &sum = acc[r * shape.vecs + v];
      sum = multiplyGroups(b, format, x, columns[v], sum);
    }
  }
}

void TileEmitter::step(Value aBase, Value bBase, Value k, MutableArrayRef<Value> acc, ArrayRef<Value> run, int64_t lane, Value mask) {
  if (operands.pairs)
    return groupStep(aBase, bBase, k, acc);
  Value aOffset = b.mul(k, inner.aStride), bOffset = b.mul(k, inner.bStride);
  Sums columns;
  for (unsigned v = 0; v < shape.vecs; ++v) {
    Value mask = v + 1 == shape.vecs ? operands.bTailMask : Value();
    Value at = b.add(bOffset, b.i64(v * shape.lanes));
    Value column = toAccumulator(b, b.loadElem(operands.bElem, bBase, at, shape.lanes, mask), operands.bElem, accElem);
    if (operands.bLess) {
      column = arith::SubFOp::create(b, column, b.loadElem(accElem, operands.bLess, at, shape.lanes));
      b.storeElem(accElem, column, operands.bKept, at);
    }
    columns.push_back(column);
  }
  for (unsigned r = 0; r < shape.rows; ++r) {
    Value x;
    if (shape.steps > 1) {
      x = repeat(aBase, b.add(aOffset, b.mul(b.i64(r), operands.aRowStride)), mask);
    } else if (run.empty()) {
      Value at = b.add(aOffset, b.mul(b.i64(r), operands.aRowStride));
      x = toAccumulator(b, b.loadElem(operands.aElem, aBase, at), operands.aElem, accElem);
      if (!complex)
        x = b.splat(x, shape.lanes);
    } else {
      x = vector::ShuffleOp::create(b, run[r], run[r], SmallVector<int64_t>(shape.lanes, lane));
    }
    for (unsigned v = 0; v < shape.vecs; ++v)
      acc[r * shape.vecs + v] = multiplyAdd(b, x, columns[v], acc[r * shape.vecs + v], accElem);
  }
}

SmallVector<Value> TileEmitter::steps(Value aBase, Value bBase, Value k, ValueRange in, int64_t count) {
  Sums current(in), run;
  if (runs && count == runLength)
    run = loadRuns(aBase, k);
  for (int64_t u = 0; u < count; ++u)
    step(aBase, bBase, b.add(k, b.i64(u)), MutableArrayRef<Value>(current).slice((u % sets) * n, n), run, u);
  return current;
}

void TileEmitter::fetchStreams(Value iteration) {
  for (const TileOperands::Stream &stream : operands.streams) {
    // as many rows an iteration as get all of them done
    const int64_t rows = stream.rows ? stream.rows : shape.rows, count = iterations ? *iterations / unroll : rows;
    const int64_t rowsEach = llvm::divideCeil(rows, std::max<int64_t>(1, count * 3 / 4));
    for (int64_t i = 0; i < rowsEach; ++i) {
      Value row = b.add(b.mul(iteration, b.i64(rowsEach)), b.i64(i));
      Value at = b.ptrBytes(stream.first, b.mul(b.min(row, b.i64(rows - 1)), stream.rowBytes));
      for (int64_t line = 0; line < stream.bytes; line += 64)
        LLVM::Prefetch::create(b, b.ptrBytes(at, b.i64(line)), 0, 3, 1);
    }
  }
}

void TileEmitter::fetchAllStreams() {
  for (const TileOperands::Stream &stream : operands.streams)
    for (int64_t row = 0, rows = stream.rows ? stream.rows : shape.rows; row < rows; ++row)
      for (int64_t line = 0; line < stream.bytes; line += 64)
        LLVM::Prefetch::create(b, b.ptrBytes(stream.first, b.add(b.mul(b.i64(row), stream.rowBytes), b.i64(line))), 0, 3, 1);
}

/// What later iterations, or the tiles that come next, read of the right operand.
void TileEmitter::fetchRight(Value bBase, Value k) {
  const unsigned lines = llvm::divideCeil(operands.prefetchLines * std::min<int64_t>(unroll, 4), 4);
  for (unsigned line = 0; operands.prefetch && line < lines; ++line) {
    Value at = b.add(b.mul(k, b.i64(64 / unroll * lines)), b.i64(line * 64));
    LLVM::Prefetch::create(b, b.ptrBytes(operands.prefetch, at), 0, 2, 1);
  }
  if (operands.ahead) {
    const int64_t stepBytes = shape.columns() * shape.steps * elemBytes(operands.bElem) * format.group();
    Value from = b.ptrBytes(bBase, b.add(b.mul(k, b.i64(stepBytes)), b.i64(operands.ahead)));
    for (int64_t byte = 0; byte < unroll * stepBytes; byte += 64)
      LLVM::Prefetch::create(b, b.ptrBytes(from, b.i64(byte)), 0, 3, 1);
  }
}

/// A loop whose steps add to an accumulator `perStep` times. Blocks are longer than elsewhere: each ends with all accumulators on
/// their way through memory.
SmallVector<Value> TileEmitter::sum(Value lo, Value hi, int64_t step, ValueRange inits, int64_t perStep,
                                    llvm::function_ref<Sums(Value, ValueRange)> body) {
  auto keep = [&](ValueRange results) { keepRolled(b, results, operands.pairs); };
  if (!isa<FloatType, ComplexType>(accElem)) {
    Sums sums = b.loop(lo, hi, b.i64(step), inits, body);
    keep(sums);
    return sums;
  }
  SumBlocks how;
  how.inRow = 256;
  how.inMemory = true;
  how.perStep = perStep;
  how.onLoop = keep;
  return sumLoop(b, lo, hi, step, inits, how, body);
}

SmallVector<Value> TileEmitter::innerLoop(Value aBase, Value bBase, Value before, Sums acc) {
  std::optional<int64_t> trips = constantOf(inner.trips);
  Value main = trips ? b.i64(*trips / unroll * unroll) : b.mul(b.divU(inner.trips, b.i64(unroll)), b.i64(unroll));
  if (trips && *trips == unroll) {
    fetchStreams(before);
    return steps(aBase, bBase, b.i64(0), acc, unroll);
  }
  acc = sum(b.i64(0), main, unroll, acc, llvm::divideCeil(unroll, sets), [&](Value k, ValueRange in) {
    fetchRight(bBase, k);
    if (!streamsFirst)
      fetchStreams(b.add(b.mul(before, b.divU(inner.trips, b.i64(unroll))), b.divU(k, b.i64(unroll))));
    return steps(aBase, bBase, k, in, unroll);
  });
  if (!trips || *trips % unroll)
    acc = b.loop(main, inner.trips, b.i64(1), acc, [&](Value k, ValueRange in) { return steps(aBase, bBase, k, in, 1); });
  return acc;
}

/// `before`: how often the innermost loop has run.
SmallVector<Value> TileEmitter::level(unsigned i, Value aBase, Value bBase, Value before, Sums acc) {
  if (i + 1 == loops.size())
    return innerLoop(aBase, bBase, before, acc);
  if (constantOf(loops[i].trips) == 1)
    return level(i + 1, aBase, bBase, before, acc);
  Sums inside;
  for (const ReductionLoop &l : loops.drop_front(i + 1))
    inside.push_back(l.trips);
  return sum(b.i64(0), loops[i].trips, 1, acc, llvm::divideCeil(additionsIn(inside), sets), [&](Value k, ValueRange in) {
    Value aNext = b.ptrAt(aBase, operands.aElem, b.mul(k, loops[i].aStride));
    Value bNext = b.ptrAt(bBase, operands.bElem, b.mul(k, loops[i].bStride));
    return level(i + 1, aNext, bNext, b.add(b.mul(before, loops[i].trips), k), Sums(in));
  });
}

void TileEmitter::joinSets(Sums &acc) {
  for (unsigned s = 1; s < sets; ++s)
    for (unsigned i = 0; i < n; ++i) {
      Value x = acc[i], y = acc[s * n + i];
      Type elem = getElementTypeOrSelf(x.getType());
      if (isa<FloatType>(elem))
        acc[i] = arith::AddFOp::create(b, x, y);
      else if (elem.isInteger(1))
        acc[i] = arith::OrIOp::create(b, x, y);
      else
        acc[i] = arith::AddIOp::create(b, x, y);
    }
  acc.resize(n);
}

SmallVector<Value> TileEmitter::emit(ValueRange init) {
  Sums start(n * sets, b.cst(vecType, 0.0));
  llvm::copy(init, start.begin());
  if (streamsFirst)
    fetchAllStreams();
  Sums acc = level(0, operands.a, operands.b, b.i64(0), start);
  if (operands.lastSteps)
    step(operands.a, operands.b, inner.trips, MutableArrayRef<Value>(acc).take_front(n), {}, 0,
         b.tailMask(b.i64(operands.lastSteps), shape.steps));
  joinSets(acc);
  return foldSteps(b, shape, acc);
}

SmallVector<Value> emitTile(KernelBuilder &b, TileShape shape, Type accElem, const TileOperands &operands,
                            ArrayRef<ReductionLoop> loops, ValueRange init) {
  return TileEmitter(b, shape, accElem, operands, loops).emit(init);
}

void addToTile(KernelBuilder &b, TileShape shape, Type accElem, ValueRange accs, Value buffer) {
  SmallVector<Value> sums;
  for (auto [x, y] : llvm::zip_equal(loadTile(b, shape, accElem, buffer), accs))
    sums.push_back(isa<FloatType>(getElementTypeOrSelf(y.getType())) ? arith::AddFOp::create(b, x, y).getResult()
                   : getElementTypeOrSelf(y.getType()).isInteger(1)   ? arith::OrIOp::create(b, x, y).getResult()
                                                                      : arith::AddIOp::create(b, x, y).getResult());
  storeTile(b, shape, accElem, sums, buffer);
}

void storeTile(KernelBuilder &b, TileShape shape, Type accElem, ValueRange accs, Value buffer) {
  for (unsigned r = 0; r < shape.rows; ++r)
    for (unsigned v = 0; v < shape.vecs; ++v)
      b.storeElem(accElem, accs[r * shape.vecs + v], buffer, b.i64(r * shape.columns() + v * shape.lanes));
}

SmallVector<Value> loadTile(KernelBuilder &b, TileShape shape, Type accElem, Value buffer) {
  SmallVector<Value> accs;
  for (unsigned r = 0; r < shape.rows; ++r)
    for (unsigned v = 0; v < shape.vecs; ++v)
      accs.push_back(b.loadElem(accElem, buffer, b.i64(r * shape.columns() + v * shape.lanes), shape.lanes));
  return accs;
}

} // namespace lathe::cpu
