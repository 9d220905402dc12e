// Matrix products by one level of Strassen's algorithm, in Winograd's form: seven products of half the rows,
// half the columns and half the depth, and fifteen sums.
//
// What is a half may be chosen freely. Rows 2i and 2i+1 belong together, panels 2j and 2j+1 of the right
// operand, and the two halves of a block of the depth: so a unit is a block of rows and a pair of panels, and
// which numbers are added to which does not depend on how units are shared out. With A1, A2 the even and the
// odd rows of a block and the columns' halves behind them,
//
//   S1 = A21 + A22   S2 = S1 - A11   S3 = A11 - A21   S4 = A12 - S2
//   T1 = B12 - B11   T2 = B22 - T1   T3 = B22 - B12   T4 = B21 - T2
//   P1 = A11 B11  P2 = A12 B21  P3 = S4 B22  P4 = A22 T4  P5 = S1 T1  P6 = S2 T2  P7 = S3 T3
//   U2 = P1 + P6   U3 = U2 + P7
//   C11 = P1 + P2   C12 = U2 + P5 + P3   C21 = U3 + P4   C22 = U3 + P5
//
// In the order P1, P5, P6, P7, P4, P3, P2 a tile of a product is added to what is kept of those before while
// it is in registers, and the last four end in parts of the result.
//
// The sums of rows are made once for a block of rows, those of panels once for each block of rows that meets
// them. (Winograd, "On multiplication of 2x2 matrices", 1971.)
#include "dialects/hlo/Shape.h"
#include "passes/codegen/cpu/product/Strassen.h"
#include "passes/codegen/cpu/target/Blocking.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

#include <cmath>
#include <limits>
#include <random>

using namespace mlir;

namespace lathe::cpu {

namespace {

// Left operands in scratch, in the order of the products that take them; the last is for a panel without a
// partner.
enum Left { leftA11, leftS1, leftS2, leftS3, leftA22, leftS4, leftA12, leftA21 };
// What is kept of products: P1, P5, U2 and later U3, and U2 + P5.
enum Kept { keptP1, keptP5, keptU, keptV };
constexpr int64_t numProducts = 7, numSums = 4, numKept = 4;

/// Most pairs of rows in a block: a share of L2 holds the left operands, the panels, their
/// sums and those that come next, and the products.
int64_t rowPairsPerBlock(const KernelTarget &target, int64_t m, int64_t half, int64_t width) {
  const int64_t room = target.ofL2(target.l2Tiles) - 4 * (8 + 2) * half * width,
                each = 4 * (numProducts * (half + 16) + numKept * width);
  return std::clamp<int64_t>(room / each, 1, llvm::divideCeil(m, 2));
}

class StrassenEmitter {
public:
  StrassenEmitter(KernelBuilder &b, const ProductSpec &spec, Epilogue &epilogue)
      : b(b), spec(spec), epilogue(epilogue) {}
  LogicalResult emit();

private:
  void plan();
  void emitBlock(Value number, Value first, Value last);
  void emitGroup();
  void sumRows(Value k0);
  void emitPair(Value pair, Value k0);
  SmallVector<TileOperands::Stream, 2> resultRows(Value at, Value pair, Value part);
  void emitPart(TileShape s, Value at, Value pair, Value part, SmallVector<Value> accs);
  void emitSingle(Value k0);

  /// A sum of the blocks of the depth before this one.
  Value soFar(Value sum) { return b.select(isFirst, b.cst(sum.getType(), 0.0), sum); }
  /// A pair of panels, from the first step of a block of the depth on.
  Value panelAt(Value pair, Value k0) {
    Value steps = b.add(b.mul(groupFirst, b.i64(2 * k)),
                        b.add(b.mul(k0, groupPanels), b.mul(b.sub(pair, groupFirst), b.i64(2 * depth))));
    return b.ptrAt(bBase, f32, b.mul(steps, b.i64(width)));
  }
  /// The first row and column of a part of the result, from a pair of rows of the block on.
  std::pair<Value, Value> startOf(Value at, Value pair, Value part) {
    return {b.add(b.mul(b.add(blockRow, at), b.i64(2)), b.divU(part, b.i64(2))),
            b.mul(b.add(b.mul(pair, b.i64(2)), b.remU(part, b.i64(2))), b.i64(width))};
  }
  Value left(Value index) { return b.ptrAt(lefts, f32, b.mul(index, b.i64(matrix))); }
  Value sumsOf(Value pair) {
    return b.ptrAt(sums, f32, b.mul(b.sub(pair, groupFirst), b.i64(numSums * sumsEach)));
  }

  KernelBuilder &b;
  const ProductSpec &spec;
  Epilogue &epilogue;
  LogicalResult ok = success();

  Type f32;
  int64_t m = 0, n = 0, k = 0;
  bool padded = false; // the last step is none of the operands'
  TileShape tile;
  int64_t lanes = 1, width = 1, panels = 1, pairs = 1;
  int64_t depth = 0, half = 0, blocksOfDepth = 1;
  int64_t group = 1; // pairs of panels that are done for a block of the depth before the next one
  RowTiles rows;     // of pairs of rows
  int64_t tilesPerBlock = 1, blocks = 1;
  int64_t rowStride = 0, sumRowsCount = 0;
  int64_t matrix = 0, rightEach = 0, sumsEach = 0; // distances of matrices in scratch
  Value lefts, rights, products, sums;

  // of the block being emitted
  SmallVector<Value> batchIndex;
  Value firstTile, lastTile, blockRow, rowCount;
  Value groupFirst, groupPanels, firstPair,
      lastPair; // of the group being emitted: its own, and the ones to do
  Value aBase, bBase;
  Value isFirst, isLast; // whether this is that block of the depth; null: there is one
};

void StrassenEmitter::plan() {
  f32 = b.getF32Type();
  m = *hlo::constantValue(spec.m);
  n = *hlo::constantValue(spec.n);
  const int64_t given = *hlo::constantValue(spec.k);
  k = strassenSum(given);
  padded = k > given;
  const int64_t rowPairs = llvm::divideCeil(m, 2);
  tile = panelTile(b.target, f32, *spec.panel, rowPairs, spec.plan);
  lanes = tile.lanes;
  width = tile.columns();
  panels = llvm::divideCeil(n, width);
  pairs = llvm::divideCeil(panels, 2);
  rows = RowTiles(rowPairs, tile.rows);

  depth = strassenDepth(b.target, spec.plan, m, n, k, width);
  half = depth / 2;
  blocksOfDepth = k / depth;
  group = strassenGroup(b.target, m, n, k, width, depth);
  const int64_t fitting = rowPairsPerBlock(b.target, m, half, width);
  const int64_t most = fitting >= rowPairs ? rows.numTiles : std::max<int64_t>(1, fitting / rows.height);
  BlockedWork work;
  for (AffineExpr e : spec.batch)
    work.outer *= std::max<int64_t>(1, hlo::constantValue(e).value_or(1));
  work.rows = rows.numTiles;
  work.panels = pairs;
  work.rowCycles = numProducts * half * blocksOfDepth * rows.height * tile.vecs / b.target.fmas;
  work.rowBytes = 2 * rows.height * k * 4;
  work.panelBytes = 2 * k * width * 4;
  work.enterCycles = work.rowBytes / b.target.sumBytes;
  // one thread wants as few blocks as the cache allows: each makes the sums of panels again
  tilesPerBlock = b.target.threads > 1
                      ? rowsPerBlock(b.target, work, most)
                      : llvm::divideCeil(rows.numTiles, llvm::divideCeil(rows.numTiles, most));
  if (spec.plan.block && b.target.threads <= 1)
    tilesPerBlock = std::clamp<int64_t>(*spec.plan.block, 1, rows.numTiles);
  blocks = llvm::divideCeil(rows.numTiles, tilesPerBlock);

  sumRowsCount = std::min(rowPairs, tilesPerBlock * rows.height);
  rowStride = llvm::alignTo(half, 16) + 16;
  // a few lines more than pages, so that what is read and written together does not meet in the sets of a
  // cache
  auto apart = [](int64_t floats) { return llvm::alignTo(floats, 1024) + 16 * 9; };
  matrix = apart(sumRowsCount * rowStride);
  sumsEach = apart(sumRowsCount * width);
  rightEach = apart(half * width);
  int64_t scratch = 0;
  auto take = [&](int64_t floats) {
    Value at = b.ptrBytes(b.scratch, b.i64(scratch));
    scratch += llvm::alignTo(floats * 4, 64);
    return at;
  };
  lefts = take((numProducts + panels % 2) * matrix);
  rights = take(2 * rightEach);
  products = take(numKept * sumsEach);
  if (blocksOfDepth > 1)
    sums = take(group * numSums * sumsEach);
  b.setScratch(scratch);
  b.setWork(work.rowCycles * lanes * tilesPerBlock);
  AffineExpr units = getAffineConstantExpr(blocks * pairs, b.getContext());
  for (AffineExpr e : spec.batch)
    units = units * e;
  b.setExtent(hlo::simplify(units));
}

LogicalResult StrassenEmitter::emit() {
  plan();
  Value each = b.i64(pairs);
  b.loop(b.divU(b.begin, each), b.divU(b.add(b.end, b.i64(pairs - 1)), each), [&](Value group) {
    Value base = b.mul(group, each);
    emitBlock(group, b.max(b.sub(b.begin, base), b.i64(0)), b.min(b.sub(b.end, base), each));
  });
  return ok;
}

void StrassenEmitter::emitBlock(Value number, Value first, Value last) {
  SmallVector<Value> sizes;
  for (AffineExpr e : spec.batch)
    sizes.push_back(b.dim(e));
  sizes.push_back(b.i64(blocks));
  batchIndex = b.delinearize(number, sizes);
  Value block = batchIndex.pop_back_val();
  std::tie(aBase, bBase) = operandsOf(b, spec, batchIndex);
  firstTile = firstOfBlock(b, block, blocks, rows.numTiles);
  lastTile = firstOfBlock(b, b.add(block, b.i64(1)), blocks, rows.numTiles);
  blockRow = rows.rowAt(b, firstTile);
  rowCount = b.sub(rows.rowAt(b, lastTile), blockRow);

  b.loop(b.divU(first, b.i64(group)), b.divU(b.add(last, b.i64(group - 1)), b.i64(group)), [&](Value g) {
    groupFirst = b.mul(g, b.i64(group));
    groupPanels = b.min(b.i64(2 * group), b.sub(b.i64(panels), b.mul(groupFirst, b.i64(2))));
    firstPair = b.max(first, groupFirst);
    lastPair = b.min(last, b.add(groupFirst, b.i64(group)));
    emitGroup();
  });
}

void StrassenEmitter::emitGroup() {
  b.loop(b.i64(0), b.i64(k), b.i64(depth), [&](Value k0) {
    if (sums) {
      isFirst = b.eq(k0, b.i64(0));
      isLast = b.eq(k0, b.i64(k - depth));
    }
    sumRows(k0);
    Value whole = b.i64(panels / 2);
    if (panels > 1)
      b.loop(firstPair, b.min(lastPair, whole), [&](Value pair) { emitPair(pair, k0); });
    if (panels % 2)
      b.ifThen(b.lt(whole, lastPair), [&] { emitSingle(k0); });
  });
}

/// The left operands of all products, for a block of rows and of the depth.
void StrassenEmitter::sumRows(Value k0) {
  const int64_t lines = panels == 1 || half < lanes
                            ? 0
                            : llvm::divideCeil(2 * depth * width / 16, sumRowsCount * (half / lanes));
  Value panels0 = panelAt(firstPair, k0);
  Value nextRows = spec.aRowStart ? b.i64(64) : b.mul(spec.aRow, b.i64(2));
  b.loop(b.i64(0), rowCount, [&](Value r) {
    Value even = b.mul(b.add(blockRow, r), b.i64(2)), odd = b.min(b.add(even, b.i64(1)), b.i64(m - 1));
    auto start = [&](Value row) {
      return b.ptrAt(aBase, f32, b.add(spec.aRowStart ? spec.aRowStart(row) : b.mul(row, spec.aRow), k0));
    };
    Value first = start(even), second = start(odd), to = b.ptrAt(lefts, f32, b.mul(r, b.i64(rowStride)));
    // `later` is the mask of the second half of the columns, where it is shorter; `none`: nothing is left of
    // it
    auto sumsAt = [&](Value x, unsigned count, Value mask = {}, Value later = {}, bool none = false) {
      if (count == lanes) {
        // the first panels come meanwhile
        Value line =
            b.add(b.mul(r, b.i64(lines * (half / lanes))), b.divU(b.mul(x, b.i64(lines)), b.i64(lanes)));
        for (int64_t i = 0; i < lines; ++i)
          LLVM::Prefetch::create(b, b.ptrBytes(panels0, b.mul(b.add(line, b.i64(i)), b.i64(64))), 0, 2, 1);
      }
      auto load = [&](Value row, int64_t from, Value mask) {
        Value at = b.add(x, b.i64(from));
        if (count == lanes)
          LLVM::Prefetch::create(b, b.ptrAt(row, f32, b.add(at, nextRows)), 0, 3, 1);
        return b.loadElem(f32, row, at, count, mask);
      };
      Value a11 = load(first, 0, mask), a21 = load(second, 0, mask);
      Value a12 = none ? b.cst(a11.getType(), 0.0) : load(first, half, later);
      Value a22 = none ? a12 : load(second, half, later);
      Value s1 = arith::AddFOp::create(b, a21, a22), s2 = arith::SubFOp::create(b, s1, a11);
      std::pair<Left, Value> all[] = {
          {leftA11, a11}, {leftA12, a12}, {leftS4, arith::SubFOp::create(b, a12, s2)},
          {leftS1, s1},   {leftS2, s2},   {leftS3, arith::SubFOp::create(b, a11, a21)},
          {leftA22, a22}, {leftA21, a21}};
      for (auto [which, value] : all)
        if (which != leftA21 || panels % 2)
          b.storeElem(f32, value, to, b.add(x, b.i64(which * matrix)));
    };
    const int64_t whole = (padded ? half - 1 : half) / lanes * lanes;
    if (whole)
      b.loop(b.i64(0), b.i64(whole), b.i64(lanes), [&](Value x) { sumsAt(x, lanes); });
    if (whole == half)
      return;
    // a block of the depth that ends in zeros has a step less of its own
    Value shorter = b.i64(half);
    if (padded)
      shorter = isLast ? b.select(isLast, b.i64(half - 1), shorter) : b.i64(half - 1);
    // rows in scratch have room for a vector more
    if (b.target.hasMaskedMemory(f32)) {
      auto mask = [&](Value end) { return b.tailMask(b.sub(end, b.i64(whole)), lanes); };
      return sumsAt(b.i64(whole), lanes, mask(b.i64(half)), mask(shorter));
    }
    b.loop(b.i64(whole), shorter, [&](Value x) { sumsAt(x, 1); });
    if (padded)
      b.loop(shorter, b.i64(half), [&](Value x) { sumsAt(x, 1, Value(), Value(), /*none=*/true); });
  });
}

/// The products of a pair of panels. Those of sums of panels make them in their first tile, whose arithmetic
/// hides it.
void StrassenEmitter::emitPair(Value pair, Value k0) {
  const int64_t size = half * width;
  Value panel = panelAt(pair, k0), following = b.add(k0, b.i64(depth)), more = b.add(pair, b.i64(1)),
        turns = b.ge(more, lastPair);
  Value next = panelAt(b.select(turns, firstPair, more),
                       b.select(turns, b.select(b.lt(following, b.i64(k)), following, b.i64(0)), k0));
  Value b11 = panel, b21 = b.ptrAt(panel, f32, b.i64(size)), b22 = b.ptrAt(panel, f32, b.i64(2 * size)),
        b12 = b.ptrAt(panel, f32, b.i64(3 * size));
  auto right = [&](int64_t i) { return b.ptrAt(rights, f32, b.i64(i * rightEach)); };
  auto kept = [&](Kept which) { return b.ptrAt(products, f32, b.i64(which * sumsEach)); };
  // what is added to the product and where the sum is kept; its right operand, what is taken from that, and
  // where the difference is kept
  struct Product {
    Value add, keep, raw, less, difference;
  };
  const Product all[numProducts] = {
      {{}, kept(keptP1), b11, {}, {}},                      // P1
      {{}, kept(keptP5), b12, b11, right(0)},               // P5
      {kept(keptP1), kept(keptU), b22, right(0), right(1)}, // U2 = P1 + P6
      {kept(keptU), kept(keptU), b22, b12, right(0)},       // U3 = U2 + P7, and C22 = U3 + P5
      {kept(keptU), {}, b21, right(1), right(1)},           // C21 = U3 + P4
      {kept(keptV), {}, b22, {}, {}},                       // C12 = U2 + P5 + P3
      {kept(keptP1), {}, b21, {}, {}},                      // C11 = P1 + P2
  };
  constexpr int64_t firstSum = 1, lastSum = 4, firstAdded = 2, lastKept = 3, firstPart = 3;
  auto choose = [&](Value i, Value Product::*which) {
    Value v;
    for (int64_t p = numProducts; p-- > 0;)
      if (Value x = all[p].*which)
        v = v ? arith::SelectOp::create(b, b.eq(i, b.i64(p)), x, v).getResult() : x;
    return v;
  };
  auto isIn = [&](Value i, int64_t first, int64_t last) {
    return b.both(b.ge(i, b.i64(first)), b.lt(i, b.i64(last + 1)));
  };
  TileOperands operands;
  operands.aElem = operands.bElem = f32;
  operands.aRowStride = b.i64(rowStride);
  // Each tile fetches its share of the next two panels. A line that is missing costs more than one fetched
  // twice.
  const int64_t shares = numProducts * tilesPerBlock;
  operands.prefetchLines = llvm::divideCeil(4 * size / 16, shares * std::max<int64_t>(1, half / 4));
  const int64_t share = llvm::divideCeil(half, 4) * 64 * operands.prefetchLines;
  b.loop(b.i64(0), b.i64(numProducts), [&](Value i) {
    Value a = left(i), added = choose(i, &Product::add), keep = choose(i, &Product::keep);
    Value raw = choose(i, &Product::raw), less = choose(i, &Product::less),
          difference = choose(i, &Product::difference);
    Value isSum = isIn(i, firstSum, lastSum), isNew = b.lt(i, b.i64(firstAdded)),
          part = b.sub(b.i64(numProducts - 1), i);
    rows.forEach(b, firstTile, lastTile, [&](unsigned height, Value row) {
      TileShape s = tile;
      s.rows = height;
      Value at = b.sub(row, blockRow), offset = b.mul(at, b.i64(width));
      Value before = b.add(b.mul(i, b.i64(tilesPerBlock)), b.divU(at, b.i64(std::max<int64_t>(1, rows.low))));
      operands.prefetch = b.ptrBytes(next, b.mul(before, b.i64(share)));
      operands.a = b.ptrAt(a, f32, b.mul(at, b.i64(rowStride)));
      operands.streams = resultRows(at, pair, b.min(part, b.i64(numSums - 1)));
      const SmallVector<Type> types(height * s.vecs, VectorType::get({lanes}, f32));
      const ReductionLoop steps{b.i64(half), b.i64(1), b.i64(width)};
      SmallVector<Value> accs = b.ifElse(
          b.both(isSum, b.eq(at, b.i64(0))), types,
          [&] {
            operands.b = raw;
            operands.bLess = less;
            operands.bKept = difference;
            return emitTile(b, s, f32, operands, {steps});
          },
          [&] {
            operands.b = arith::SelectOp::create(b, isSum, difference, raw);
            operands.bLess = operands.bKept = Value();
            return emitTile(b, s, f32, operands, {steps});
          });
      auto plus = [&](Value from) {
        SmallVector<Value> all;
        for (auto [acc, v] : llvm::zip(accs, loadTile(b, s, f32, b.ptrAt(from, f32, offset))))
          all.push_back(arith::AddFOp::create(b, acc, v));
        return all;
      };
      accs = b.ifElse(
          isNew, types, [&] { return accs; }, [&] { return plus(added); });
      b.ifThen(b.lt(i, b.i64(lastKept + 1)), [&] { storeTile(b, s, f32, accs, b.ptrAt(keep, f32, offset)); });
      accs = b.ifElse(
          isIn(i, firstAdded, lastKept), types, [&] { return plus(kept(keptP5)); }, [&] { return accs; });
      b.ifElse(
          b.lt(i, b.i64(firstPart)), TypeRange{},
          [&]() -> SmallVector<Value> {
            b.ifThen(b.eq(i, b.i64(firstAdded)),
                     [&] { storeTile(b, s, f32, accs, b.ptrAt(kept(keptV), f32, offset)); });
            return {};
          },
          [&]() -> SmallVector<Value> {
            emitPart(s, at, pair, part, accs);
            return {};
          });
    });
  });
}

/// What the epilogue reads and writes of a tile of a part of the result, see emitPart.
SmallVector<TileOperands::Stream, 2> StrassenEmitter::resultRows(Value at, Value pair, Value part) {
  SmallVector<TileOperands::Stream, 2> all;
  if (!spec.resultRow || spec.columnDim + 1 != epilogue.type().getRank())
    return all;
  auto [row, column] = startOf(at, pair, part);
  const SmallVector<Value> index = spec.index(batchIndex, row, column);
  for (const Epilogue::Stream &stream : epilogue.streams())
    all.push_back({epilogue.streamAt(stream, index),
                   b.mul(epilogue.streamStep(stream, spec.resultRow), b.i64(2)),
                   elemBytes(stream.elem) * width});
  return all;
}

/// A tile of a part of the result: of C11, C12, C21 or C22, as the number says.
void StrassenEmitter::emitPart(TileShape s, Value at, Value pair, Value part, SmallVector<Value> accs) {
  Value offset = b.mul(at, b.i64(width));
  auto store = [&] {
    Value first, column;
    std::tie(first, column) = startOf(at, pair, part);
    auto index = [&](Value r) { return spec.index(batchIndex, b.add(first, b.mul(r, b.i64(2))), column); };
    auto whole = [&] {
      if (failed(epilogue.emitTile(s, accs, spec.columnDim, Value(), index)))
        ok = failure();
    };
    // P5 is not needed any more
    Value buffer = b.ptrAt(products, f32, b.add(b.i64(keptP5 * sumsEach), offset));
    auto some = [&](int64_t columns) {
      Value count = b.i64(s.rows);
      if (m % 2)
        count = b.min(count, b.divU(b.add(b.sub(b.i64(m), first), b.i64(1)), b.i64(2)));
      storeTile(b, s, f32, accs, buffer);
      if (failed(epilogue.emitBuffered(s, buffer, count, spec.columnDim,
                                       columns == width ? Value() : b.i64(columns), index)))
        ok = failure();
    };
    auto either = [&](Value condition, function_ref<void()> then, function_ref<void()> otherwise) {
      b.ifElse(
          condition, TypeRange{},
          [&] {
            then();
            return SmallVector<Value>();
          },
          [&] {
            otherwise();
            return SmallVector<Value>();
          });
    };
    auto rowsLeft = [&] {
      if (m % 2)
        either(b.lt(b.add(first, b.i64(2 * (s.rows - 1))), b.i64(m)), whole, [&] { some(width); });
      else
        whole();
    };
    if (const int64_t tail = n % width; tail && panels % 2 == 0)
      either(
          b.eq(column, b.i64((panels - 1) * width)), [&] { some(tail); }, rowsLeft);
    else
      rowsLeft();
  };
  if (!sums)
    return store();
  Value sum = b.ptrAt(sumsOf(pair), f32, b.add(b.mul(part, b.i64(sumsEach)), offset));
  for (auto [acc, v] : llvm::zip(accs, loadTile(b, s, f32, sum)))
    acc = arith::AddFOp::create(b, acc, soFar(v));
  b.ifElse(
      isLast, TypeRange{},
      [&] {
        store();
        return SmallVector<Value>();
      },
      [&] {
        storeTile(b, s, f32, accs, sum);
        return SmallVector<Value>();
      });
}

/// The last panel of an odd number: as it is.
void StrassenEmitter::emitSingle(Value k0) {
  const int64_t size = half * width;
  Value pair = b.i64(pairs - 1), column = b.i64((panels - 1) * width);
  TileOperands operands;
  operands.aElem = operands.bElem = f32;
  operands.aRowStride = b.i64(rowStride);
  operands.b = panelAt(pair, k0);
  b.loop(b.i64(0), b.i64(2), [&](Value odd) {
    Value isOdd = b.eq(odd, b.i64(1));
    Value start = left(b.mul(odd, b.i64(leftA21)));
    Value step = b.select(isOdd, b.i64((leftA22 - leftA21) * matrix), b.i64((leftA12 - leftA11) * matrix));
    Value to = sums ? b.ptrAt(sumsOf(pair), f32, b.mul(odd, b.i64(sumsEach)))
                    : b.ptrAt(products, f32, b.mul(odd, b.i64(sumsEach)));
    rows.forEach(b, firstTile, lastTile, [&](unsigned height, Value row) {
      TileShape s = tile;
      s.rows = height;
      Value at = b.sub(row, blockRow), target = b.ptrAt(to, f32, b.mul(at, b.i64(width)));
      operands.a = b.ptrAt(start, f32, b.mul(at, b.i64(rowStride)));
      SmallVector<Value> accs =
          emitTile(b, s, f32, operands, {{b.i64(2), step, b.i64(size)}, {b.i64(half), b.i64(1), b.i64(width)}});
      if (sums)
        for (auto [acc, sum] : llvm::zip(accs, loadTile(b, s, f32, target)))
          acc = arith::AddFOp::create(b, acc, soFar(sum));
      storeTile(b, s, f32, accs, target);
    });
    auto store = [&] {
      Value first = b.add(b.mul(blockRow, b.i64(2)), odd), count = rowCount;
      if (m % 2)
        count = b.min(rowCount, b.divU(b.add(b.sub(b.i64(m), first), b.i64(1)), b.i64(2)));
      if (failed(epilogue.emitBuffered(
              tile, to, count, spec.columnDim, n % width ? b.i64(n % width) : Value(),
              [&](Value r) { return spec.index(batchIndex, b.add(first, b.mul(r, b.i64(2))), column); })))
        ok = failure();
    };
    if (isLast)
      b.ifThen(isLast, store);
    else
      store();
  });
}

} // namespace

namespace {

/// Estimated cycles of the parts of a block of the sum with panels of one vector's multiples.
struct StrassenCosts {
  double rowSums;     ///< of a pair of rows
  double panelSums;   ///< of a pair of panels, for each block of rows that meets them
  double product;     ///< of a pair of rows and a pair of panels
  double withoutPair; ///< of a pair of rows and the panel without a partner
  int64_t rows;       ///< pairs of them that fit a block

  StrassenCosts(const KernelTarget &target, int64_t m, int64_t k, int64_t width, int64_t depth) {
    const double lanes = std::max(1, target.vectorBits / 32), vecs = width / lanes, half = depth / 2,
                 each = 2. / target.fmas;
    rowSums = each * target.strassen.rowSum * numProducts * half / lanes;
    panelSums = each * target.strassen.panelSum * numSums * half * vecs;
    product = each * (numProducts * half * vecs / 2 + vecs * (depth < k ? target.strassen.tileAgain : target.strassen.tile));
    withoutPair = each * 4 * half * vecs / 2;
    rows = rowPairsPerBlock(target, m, depth / 2, width);
  }
};

} // namespace

/// Estimated cycles of one thread with blocks of the sum this deep, an even divisor of k.
static double strassenCycles(const KernelTarget &target, int64_t m, int64_t n, int64_t k, int64_t width,
                             int64_t depth) {
  const StrassenCosts costs(target, m, k, width, depth);
  const int64_t rows = llvm::divideCeil(m, 2), panels = llvm::divideCeil(n, width), pairs = panels / 2;
  // the first block of rows finds the panels nearer
  const double blocks = llvm::divideCeil(rows, costs.rows) - 0.75;
  return (rows * (costs.rowSums + pairs * costs.product + panels % 2 * costs.withoutPair) +
          panels / 2. * blocks * costs.panelSums) *
         (k / depth);
}

/// The same for the slowest of the threads that share pairs of panels and blocks of whole tiles.
static double strassenShareCycles(const KernelTarget &target, int64_t m, int64_t n, int64_t k,
                                  const TileShape &tile, int64_t depth) {
  const StrassenCosts costs(target, m, k, tile.columns(), depth);
  const int64_t rows = llvm::divideCeil(m, 2), tiles = llvm::divideCeil(rows, tile.rows),
                pairs = llvm::divideCeil(llvm::divideCeil(n, tile.columns()), 2),
                fewest = llvm::divideCeil(rows, costs.rows);
  double least = std::numeric_limits<double>::infinity();
  for (int64_t blocks = fewest; blocks <= std::max<int64_t>(fewest, tiles); ++blocks) {
    const int64_t inBlock = llvm::divideCeil(rows * llvm::divideCeil(tiles, blocks), tiles),
                  units = llvm::divideCeil(blocks * pairs, target.threads),
                  entered = llvm::divideCeil(units, pairs);
    // many blocks make the first tile of a panel frequent, whose sums arithmetic hides for the most part
    least = std::min(least, entered * inBlock * costs.rowSums +
                                units * (0.25 * costs.panelSums + inBlock * costs.product));
  }
  return least * (k / depth);
}

int64_t strassenDepth(const KernelTarget &target, const KernelPlan &plan, int64_t m, int64_t n, int64_t k,
                      int64_t width) {
  if (plan.depth && *plan.depth > 0 && *plan.depth % 2 == 0 && k % *plan.depth == 0)
    return *plan.depth;
  int64_t best = k;
  double least = 0;
  for (int64_t count = 1; count <= std::max<int64_t>(1, k / 64); ++count) {
    if (k % (2 * count))
      continue;
    const double cycles = strassenCycles(target, m, n, k, width, k / count);
    if (least == 0 || cycles < least * 0.99) {
      best = k / count;
      least = cycles;
    }
  }
  return best;
}

int64_t strassenGroup(const KernelTarget &target, int64_t m, int64_t n, int64_t k, int64_t width,
                      int64_t depth) {
  const int64_t pairs = llvm::divideCeil(llvm::divideCeil(n, width), 2);
  if (depth == k)
    return pairs;
  const int64_t each = 4 * numSums * rowPairsPerBlock(target, m, depth / 2, width) * width;
  const int64_t groups = llvm::divideCeil(pairs, std::max<int64_t>(1, target.ofL2(target.l2Sums) / each));
  return llvm::divideCeil(pairs, groups);
}

bool paysStrassen(const KernelTarget &target, int64_t m, int64_t n, int64_t k, const TileShape &tile) {
  const int64_t width = tile.columns();
  // A few rows wait for the panels, which are read more often here.
  if (m < 24 * target.fmas || n < 2 * width)
    return false;
  // plain products leave out vectors of a panel that hold no columns
  const int64_t sum = strassenSum(k), depth = strassenDepth(target, {}, m, n, sum, width),
                lanes = std::max(1, target.vectorBits / 32);
  const double direct = double(m) * k * llvm::divideCeil(n, lanes) / target.fmas;
  if (strassenCycles(target, m, n, sum, width, depth) >= 0.97 * direct)
    return false;
  return target.threads <= 1 ||
         strassenShareCycles(target, m, n, sum, tile, depth) < 0.97 * direct / target.threads;
}

double sampleStrassenError(int64_t k, int64_t n, int64_t depth, int64_t width,
                           llvm::function_ref<float(int64_t k, int64_t n)> right) {
  std::mt19937 random(1);
  const int64_t half = depth / 2, pairs = n / (2 * width);
  double share = 0;
  // rows around zero, and positive ones as after relu
  for (float low : {-1.f, 0.f}) {
    std::vector<float> rows[2] = {std::vector<float>(k), std::vector<float>(k)};
    for (auto &row : rows)
      for (float &e : row)
        e = low + (1 - low) * static_cast<float>(random() >> 8) * 0x1p-24f;
    double worst = 0, largest = 0;
    for (int64_t pair = 0, step = std::max<int64_t>(1, pairs / 16); pair < pairs; pair += step) {
      const int64_t column = pair * 2 * width + pair % width;
      float c[4] = {};
      double exact[4] = {};
      for (int64_t k0 = 0; k0 < k; k0 += depth) {
        float p[numProducts] = {};
        for (int64_t i = k0; i < k0 + half; ++i) {
          const float a11 = rows[0][i], a12 = rows[0][i + half], a21 = rows[1][i], a22 = rows[1][i + half];
          const float b11 = right(i, column), b12 = right(i, column + width), b21 = right(i + half, column),
                      b22 = right(i + half, column + width);
          const float s1 = a21 + a22, s2 = s1 - a11, t1 = b12 - b11, t2 = b22 - t1;
          const float factors[numProducts][2] = {
              {a11, b11},      {s1, t1},        {s2, t2},  {a11 - a21, b22 - b12},
              {a22, b21 - t2}, {a12 - s2, b22}, {a12, b21}};
          for (int64_t j = 0; j < numProducts; ++j)
            p[j] = std::fma(factors[j][0], factors[j][1], p[j]);
          exact[0] += double(a11) * b11 + double(a12) * b21;
          exact[1] += double(a11) * b12 + double(a12) * b22;
          exact[2] += double(a21) * b11 + double(a22) * b21;
          exact[3] += double(a21) * b12 + double(a22) * b22;
        }
        const float u2 = p[leftA11] + p[leftS2], u3 = u2 + p[leftS3];
        c[0] += p[leftA11] + p[leftA12];
        c[1] += u2 + p[leftS1] + p[leftS4];
        c[2] += u3 + p[leftA22];
        c[3] += u3 + p[leftS1];
      }
      for (int64_t q = 0; q < 4; ++q) {
        if (!std::isfinite(c[q]))
          return std::numeric_limits<double>::infinity(); // shall not reach other rows and columns
        worst = std::max(worst, std::abs(exact[q] - c[q]));
        largest = std::max(largest, std::abs(exact[q]));
      }
    }
    if (largest > 0)
      share = std::max(share, worst / largest);
  }
  return share;
}

LogicalResult emitStrassen(KernelBuilder &b, const ProductSpec &spec, Epilogue &epilogue) {
  return StrassenEmitter(b, spec, epilogue).emit();
}

} // namespace lathe::cpu
