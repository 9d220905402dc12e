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
// The sums of rows are made once for a block of rows, those of panels once for each block of rows that meets
// them. (Winograd, "On multiplication of 2x2 matrices", 1971.)
#include "passes/codegen/cpu/Strassen.h"
#include "dialects/hlo/Shape.h"
#include "passes/codegen/cpu/Blocking.h"

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
enum Left { leftA11, leftA12, leftS4, leftS1, leftS2, leftS3, leftA22, leftA21 };
constexpr int64_t numProducts = 7, numSums = 4;

/// Most pairs of rows in a block: three quarters of L2 hold the left operands, the panels, their
/// sums and those that come next, and the products.
int64_t rowPairsPerBlock(const CpuTarget &target, int64_t m, int64_t half, int64_t width) {
  const int64_t room = target.l2 * 3 / 4 - 4 * (8 + 2) * half * width,
                each = 4 * numProducts * (half + 16 + width);
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
  void combine(Value pair);
  void emitSingle(Value k0);
  LogicalResult finish(Value row, Value pair);

  /// A sum of the blocks of the depth before this one.
  Value soFar(Value sum) { return b.select(isFirst, b.cst(sum.getType(), 0.0), sum); }
  /// A pair of panels, from the first step of a block of the depth on.
  Value panelAt(Value pair, Value k0) {
    Value steps = b.add(b.mul(groupFirst, b.i64(2 * k)),
                        b.add(b.mul(k0, groupPanels), b.mul(b.sub(pair, groupFirst), b.i64(2 * depth))));
    return b.ptrAt(bBase, f32, b.mul(steps, b.i64(width)));
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
  Value lefts, rights, products, sums, rowBuffer;

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
  work.enterCycles = work.rowBytes / 32;
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
  products = take(numProducts * sumsEach);
  rowBuffer = take(numSums * width);
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
  // the left and the right operand, what is taken from the right one, and where the difference is kept
  const Value operandsOf[numProducts][3] = {{b11},
                                            {b21},
                                            {b22},
                                            {b12, b11, right(0)},
                                            {b22, right(0), right(1)},
                                            {b22, b12, right(0)},
                                            {b21, right(1), right(1)}};
  auto choose = [&](Value i, unsigned which) {
    Value v;
    for (int64_t p = numProducts; p-- > 0;)
      if (Value x = operandsOf[p][which])
        v = v ? arith::SelectOp::create(b, b.eq(i, b.i64(p)), x, v).getResult() : x;
    return v;
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
    Value a = left(i), to = b.ptrAt(products, f32, b.mul(i, b.i64(sumsEach)));
    Value raw = choose(i, 0), less = choose(i, 1), kept = choose(i, 2);
    auto tiles = [&](Value first, Value end) {
      rows.forEach(b, first, end, [&](unsigned height, Value row) {
        TileShape s = tile;
        s.rows = height;
        Value at = b.sub(row, blockRow);
        Value before =
            b.add(b.mul(i, b.i64(tilesPerBlock)), b.divU(at, b.i64(std::max<int64_t>(1, rows.low))));
        operands.prefetch = b.ptrBytes(next, b.mul(before, b.i64(share)));
        operands.a = b.ptrAt(a, f32, b.mul(at, b.i64(rowStride)));
        SmallVector<Value> accs = emitTile(b, s, f32, operands, {{b.i64(half), b.i64(1), b.i64(width)}});
        storeTile(b, s, f32, accs, b.ptrAt(to, f32, b.mul(at, b.i64(width))));
      });
    };
    Value isSum = b.ge(i, b.i64(3)), second = b.add(firstTile, b.select(isSum, b.i64(1), b.i64(0)));
    b.ifThen(isSum, [&] {
      operands.b = raw;
      operands.bLess = less;
      operands.bKept = kept;
      tiles(firstTile, second);
      operands.bLess = operands.bKept = Value();
    });
    operands.b = arith::SelectOp::create(b, isSum, kept, raw);
    tiles(second, lastTile);
  });
  combine(pair);
}

/// The four parts of the result of a pair of panels, row by row.
void StrassenEmitter::combine(Value pair) {
  b.loop(b.i64(0), rowCount, [&](Value r) {
    Value row = b.mul(r, b.i64(width));
    auto parts = [&](Value c) {
      Value p[numProducts];
      for (int64_t i = 0; i < numProducts; ++i)
        p[i] = b.loadElem(f32, products, b.add(b.add(row, c), b.i64(i * sumsEach)), lanes);
      auto plus = [&](Value x, Value y) -> Value { return arith::AddFOp::create(b, x, y); };
      Value u2 = plus(p[leftA11], p[leftS2]), u3 = plus(u2, p[leftS3]);
      return SmallVector<Value>{plus(p[leftA11], p[leftA12]), plus(plus(u2, p[leftS1]), p[leftS4]),
                                plus(u3, p[leftA22]), plus(u3, p[leftS1])};
    };
    auto add = [&](bool toBuffer) {
      b.loop(b.i64(0), b.i64(width), b.i64(lanes), [&](Value c) {
        SmallVector<Value> values = parts(c);
        for (int64_t q = 0; q < numSums; ++q) {
          Value before =
              sums ? b.ptrAt(sumsOf(pair), f32, b.add(b.add(row, c), b.i64(q * sumsEach))) : Value();
          if (before)
            values[q] = arith::AddFOp::create(b, values[q], soFar(b.loadElem(f32, before, b.i64(0), lanes)));
          b.storeElem(f32, values[q], toBuffer ? b.ptrAt(rowBuffer, f32, b.add(c, b.i64(q * width))) : before,
                      b.i64(0));
        }
      });
      if (toBuffer && failed(finish(r, pair)))
        ok = failure();
      return SmallVector<Value>();
    };
    if (!isLast)
      add(true);
    else
      b.ifElse(
          isLast, TypeRange{}, [&] { return add(true); }, [&] { return add(false); });
  });
}

/// The epilogue of two rows of a pair of panels: those of the first one, then those of the second.
LogicalResult StrassenEmitter::finish(Value r, Value pair) {
  Value first = b.mul(b.add(blockRow, r), b.i64(2)), column = b.mul(pair, b.i64(2 * width));
  auto count = [&](int64_t each) {
    Value all = b.i64(2 * each);
    return m % 2 == 0 ? all : b.min(all, b.mul(b.sub(b.i64(m), first), b.i64(each)));
  };
  auto rest = [&]() -> SmallVector<Value> {
    Value two = b.i64(2);
    if (failed(epilogue.emitBuffered(tile, rowBuffer, count(2), spec.columnDim, Value(), [&](Value q) {
          return spec.index(batchIndex, b.add(first, b.divU(q, two)),
                            b.add(column, b.mul(b.remU(q, two), b.i64(width))));
        })))
      ok = failure();
    return {};
  };
  const int64_t tail = n % width;
  if (!tail || panels % 2) {
    rest();
    return ok;
  }
  b.ifElse(
      b.eq(pair, b.i64(pairs - 1)), TypeRange{},
      [&] {
        b.loop(b.i64(0), count(1), [&](Value q) {
          for (int64_t p : {0, 1})
            if (failed(epilogue.emitBuffered(
                    tile, b.ptrAt(rowBuffer, f32, b.mul(b.add(b.mul(q, b.i64(2)), b.i64(p)), b.i64(width))),
                    b.i64(1), spec.columnDim, p ? b.i64(tail) : Value(), [&](Value) {
                      return spec.index(batchIndex, b.add(first, q), b.add(column, b.i64(p * width)));
                    })))
              ok = failure();
        });
        return SmallVector<Value>();
      },
      rest);
  return ok;
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
    // of the odd rows the second half lies before the first
    Value isOdd = b.eq(odd, b.i64(1));
    Value start = left(b.mul(odd, b.i64(leftA21)));
    Value step = b.select(isOdd, b.i64(-matrix), b.i64(matrix));
    Value to = sums ? b.ptrAt(sumsOf(pair), f32, b.mul(odd, b.i64(sumsEach)))
                    : b.ptrAt(products, f32, b.mul(odd, b.i64(sumsEach)));
    rows.forEach(b, firstTile, lastTile, [&](unsigned height, Value row) {
      TileShape s = tile;
      s.rows = height;
      Value at = b.sub(row, blockRow), target = b.ptrAt(to, f32, b.mul(at, b.i64(width)));
      operands.a = b.ptrAt(start, f32, b.mul(at, b.i64(rowStride)));
      SmallVector<Value> init;
      if (sums)
        for (Value sum : loadTile(b, s, f32, target))
          init.push_back(soFar(sum));
      storeTile(b, s, f32,
                emitTile(b, s, f32, operands,
                         {{b.i64(2), step, b.i64(size)}, {b.i64(half), b.i64(1), b.i64(width)}}, init),
                target);
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

/// Estimated cycles with blocks of the sum this deep, an even divisor of k.
static double strassenCycles(const CpuTarget &target, int64_t m, int64_t n, int64_t k, int64_t width,
                             int64_t depth) {
  const double lanes = std::max(1, target.vectorBits / 32), vecs = width / lanes, half = depth / 2,
               rows = llvm::divideCeil(m, 2), pairs = llvm::divideCeil(llvm::divideCeil(n, width), 2),
               blocks = std::ceil(rows / rowPairsPerBlock(target, m, half, width));
  // for each block of the depth: products; panels read, and again by every block of rows; sums of rows;
  // products stored and put together, and added to those of the blocks before (measured)
  const double cycles = numProducts * rows * half * pairs * vecs / 2 +
                        (2 * blocks - 1.5) * pairs * 4 * half * vecs +
                        1.3 * rows * numProducts * half / lanes + rows * pairs * vecs * (depth < k ? 30 : 20);
  return cycles * (k / depth) * (2 / target.fmas);
}

int64_t strassenDepth(const CpuTarget &target, const KernelPlan &plan, int64_t m, int64_t n, int64_t k,
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

int64_t strassenGroup(const CpuTarget &target, int64_t m, int64_t n, int64_t k, int64_t width,
                      int64_t depth) {
  const int64_t pairs = llvm::divideCeil(llvm::divideCeil(n, width), 2);
  if (depth == k)
    return pairs;
  const int64_t each = 4 * numSums * rowPairsPerBlock(target, m, depth / 2, width) * width;
  const int64_t groups = llvm::divideCeil(pairs, std::max<int64_t>(1, target.l2 * 2 / 5 / each));
  return llvm::divideCeil(pairs, groups);
}

bool paysStrassen(const CpuTarget &target, int64_t m, int64_t n, int64_t k, int64_t width) {
  // A few rows wait for the panels, which are read more often here; few columns do not pay for the sums of
  // rows.
  if (m < 96 || n < 4 * width)
    return false;
  const int64_t sum = strassenSum(k);
  const double direct =
      double(m) * k * llvm::divideCeil(n, width) * width / (target.vectorBits / 32. * target.fmas);
  return strassenCycles(target, m, n, sum, width, strassenDepth(target, {}, m, n, sum, width)) <
         0.965 * direct;
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
          const float factors[numProducts][2] = {{a11, b11},     {a12, b21}, {a12 - s2, b22},
                                                 {s1, t1},       {s2, t2},   {a11 - a21, b22 - b12},
                                                 {a22, b21 - t2}};
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
