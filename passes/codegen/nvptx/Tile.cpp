// See Tile.h. The loop over k is fully unrolled within a tile; the next tile travels from memory to registers
// while this one is used, and from there to the other stage. Where the depth is known, tiles go two by two as long as
// there are whole ones.
#include "passes/codegen/nvptx/Tile.h"

#include "passes/codegen/element/ElementEmitter.h"
#include "passes/codegen/element/Expr.h"
#include "passes/codegen/library/Sums.h"
#include "passes/codegen/nvptx/Forms.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <cmath>

using namespace mlir;

namespace lathe::nvptx {

using codegen::KernelBuilder;

constexpr int64_t processors = 132; // multiprocessors that tiles are chosen for

int64_t tileEdge(int64_t rows, int64_t columns, int64_t batch, bool large) {
  constexpr int64_t unknown = 1024,
                    enough = 96; // blocks that keep a device of a hundred multiprocessors busy
  rows = rows < 0 ? unknown : rows;
  columns = columns < 0 ? unknown : columns;
  batch = batch < 0 ? 1 : batch;
  for (int64_t edge : {128, 64}) {
    const int64_t blocks = llvm::divideCeil(rows, edge) * llvm::divideCeil(columns, edge) * batch;
    // what the edges waste
    const bool fits = llvm::alignTo(rows, edge) * llvm::alignTo(columns, edge) <=
                      2 * llvm::alignTo(rows, 32) * llvm::alignTo(columns, 32);
    if (blocks >= enough && fits && (large || edge < 128))
      return edge;
  }
  return 32;
}

namespace {

/// A tile that may be chosen, and what share of a multiprocessor's multiply-adds its loop makes of them: what threads read from shared
/// memory for a multiply-add grows as their rectangles get smaller, and so does what blocks read from memory.
struct TileChoice {
  TileShape shape;
  double share;
};

} // namespace

// of sums of 32 bits, of others, and of operands that are loaded one by one
constexpr TileChoice words[] = {
    {{128, 128, 8, 8, 8}, 0.80},   {{128, 64, 8, 8, 8}, 0.78},    {{64, 128, 8, 8, 8}, 0.78},  {{128, 64, 8, 8, 8, 2}, 0.75},
    {{64, 128, 8, 8, 8, 2}, 0.75}, {{64, 64, 16, 8, 4}, 0.66},    {{64, 64, 8, 8, 8, 2}, 0.74}, {{64, 64, 8, 8, 8, 4}, 0.73},
    {{32, 64, 8, 8, 8, 4}, 0.68},  {{64, 32, 8, 8, 8, 4}, 0.68},  {{32, 32, 16, 4, 4}, 0.42},  {{32, 32, 16, 4, 4, 4}, 0.40},
    {{32, 32, 8, 8, 4, 8}, 0.48},
};
constexpr TileChoice doubles[] = {{{64, 64, 16, 4, 4}, 0.60}, {{32, 32, 16, 4, 4}, 0.42}, {{32, 32, 16, 4, 4, 2}, 0.40}};
constexpr TileChoice singles[] = {{{64, 64, 16, 4, 4}, 0.60}, {{32, 32, 16, 4, 4}, 0.42}, {{32, 32, 16, 4, 4, 4}, 0.40}};

// The time that the busiest multiprocessor takes: of the tiles it has its share, rounded up, and with few warps it waits. So small
// products have small tiles, and no tile is chosen whose last round leaves most multiprocessors without work. A device of another size
// has other shares, but the same bits.
TileShape chooseTile(int64_t rows, int64_t columns, int64_t depth, int64_t batch, Type sum, bool large) {
  constexpr int64_t unknown = 1024, mostThreads = 512; // the last: of a multiprocessor, by their registers
  rows = rows < 0 ? unknown : rows;
  columns = columns < 0 ? unknown : columns;
  batch = batch < 0 ? 1 : batch;
  const bool wide = codegen::elemBytes(sum) == 8;
  const TileShape *best = nullptr;
  double least = 0;
  for (const TileChoice &choice : wide ? ArrayRef(doubles) : large ? ArrayRef(words) : ArrayRef(singles)) {
    const TileShape &shape = choice.shape;
    if (shape.parts > 1 && depth < std::max<int64_t>(256, 64 * shape.parts))
      continue;
    const double tiles = double(llvm::divideCeil(rows, shape.rows)) * double(llvm::divideCeil(columns, shape.columns)) * double(batch);
    const double rounds = std::max(1.0, std::ceil(tiles / processors));
    const double warps = std::min(rounds * double(shape.threads()), double(mostThreads)) / (4 * warpThreads); // a scheduler's
    const double time = rounds * double(shape.rows * shape.columns) / (choice.share * warps / (warps + 0.7));
    if (!best || time < least * 0.98) {
      best = &shape;
      least = time;
    }
  }
  return *best;
}

int64_t widestVector(int64_t inner, Type element, int64_t widest) {
  int64_t v = inner > 0 ? widest / codegen::elemBytes(element) : 1;
  while (inner % v != 0)
    v /= 2;
  return v;
}

TileSide::TileSide(KernelBuilder &b, const TileOperand &operand, int64_t lines, int64_t depth, Value thread,
                   int64_t threads, Value tile, Value count)
    : operand(&operand), lines(lines), depth(depth) {
  constexpr int64_t sector = 32; // bytes that memory gives at least
  const int64_t v = operand.vector, inner = (operand.alongDepth ? depth : lines) / v, all = lines * depth / v;
  const int64_t accesses = std::max<int64_t>(1, all / threads), beside = inner / accesses; // threads of a line, if each has but one
  if (operand.oneLine && operand.alongDepth && accesses > 1 && beside * v * codegen::elemBytes(operand.element) >= sector)
    apart = beside * v;
  for (int64_t i = 0; i < accesses; ++i) {
    Value in, out;
    if (apart) {
      in = b.add(b.remU(thread, b.i64(beside)), b.i64(i * beside));
      out = b.divU(thread, b.i64(beside));
    } else if (inner <= threads) {
      in = b.remU(thread, b.i64(inner));
      out = b.add(b.divU(thread, b.i64(inner)), b.i64(i * (threads / inner)));
    } else {
      const int64_t times = inner / threads;
      in = b.add(thread, b.i64(i % times * threads));
      out = b.i64(i / times);
    }
    in = b.mul(in, b.i64(v));
    line.push_back(operand.alongDepth ? out : in);
    k.push_back(operand.alongDepth ? in : out);
    // lines beyond the operand repeat its last one, and their sums are dropped
    const int64_t across = operand.alongDepth ? 1 : v;
    const std::optional<int64_t> known = codegen::constantOf(count);
    Value at = b.add(b.mul(tile, b.i64(lines)), line.back());
    operand.begin(i, known && *known % lines == 0 ? at : b.min(at, b.sub(count, b.i64(across))));
  }
}

TilePlace TileSide::within(KernelBuilder &b, size_t slot, Value step) const {
  return operand->at(slot, b.mul(step, b.i64(depth)), k[slot]);
}

TilePlace TileSide::at(KernelBuilder &b, size_t slot, Value step, Value count, int64_t together) const {
  const std::optional<int64_t> known = codegen::constantOf(count);
  auto clamp = [&](Value x, int64_t width) -> Value {
    if (!known || *known >= (int64_t(1) << 30))
      return b.min(x, b.sub(count, b.i64(width)));
    auto narrow = [&](Value v) {
      return arith::TruncIOp::create(b, b.getI32Type(), v).getResult();
    }; // fewer registers
    return arith::ExtUIOp::create(
        b, b.getI64Type(), arith::MinSIOp::create(b, narrow(x), b.cstI(b.getI32Type(), *known - width)));
  };
  Value first = b.mul(step, b.i64(depth)), end = b.add(first, k[slot]);
  TilePlace place;
  if (known && *known % depth == 0) {
    place = operand->at(slot, clamp(first, depth), k[slot]);
    if (*known % (depth * together) == 0)
      return place;
  } else {
    place = operand->at(slot, b.i64(0), clamp(end, operand->alongDepth ? operand->vector : 1));
  }
  Value within = b.lt(end, count);
  place.inside = place.inside ? b.both(place.inside, within) : within;
  return place;
}

namespace {

class Tile {
public:
  Tile(BlockFrame &frame, const TileShape &shape, const TileProduct &p)
      : frame(frame), b(frame.b), shape(shape), p(p), bytes(codegen::elemBytes(p.sum)), wide(16 / bytes),
        adder(b, p.sum, p.sum, p.sum) {}

  LogicalResult emit();

private:
  struct Side : TileSide {
    int64_t pitch = 0; ///< elements from one k to the next in shared memory
    int64_t start = 0; ///< bytes to the first stage
  };

  Side makeSide(const TileOperand &operand, int64_t lines, int64_t start, Value tile, Value count);
  /// `within`: the step is known to lie within the depth.
  SmallVector<Value> load(const Side &side, Value step, bool within = false);
  SmallVector<Value> loadByTable(const Side &side, Value step);
  void store(const Side &side, Value stage, ValueRange values);
  SmallVector<Value> fragment(const Side &side, Value stage, int64_t k, Value place, int64_t count);
  using Fragments = std::pair<SmallVector<Value>, SmallVector<Value>>; ///< of the left and the right operand
  Fragments fragments(Value stage, int64_t k);
  void multiply(MutableArrayRef<Value> sums, const Fragments &f);
  Fragments put(Value stage, ValueRange x, ValueRange y);
  SmallVector<Value> oneStep(Value stage, Value other, Value next, bool within, ValueRange state);
  int64_t wholeSteps() const;
  int64_t stepsAlone() const;
  int64_t pairsWithin() const;
  SmallVector<Value> sumUp();
  LogicalResult finish(ValueRange sums);
  Value at(Value byteOffset) { return b.ptrBytes(memory, byteOffset); }
  int64_t groups(int64_t count) const { return count / std::min(count, wide); }

  BlockFrame &frame;
  KernelBuilder &b;
  const TileShape shape;
  const TileProduct &p;
  const int64_t bytes, wide; ///< of an element; elements of an access to shared memory
  codegen::Accumulator adder;
  Value memory, group, place; ///< of this thread: its group, and its number there
  Value threadRow, threadColumn;
  Side lhs, rhs;
  int64_t stageBytes = 0;
};

} // namespace

Tile::Side Tile::makeSide(const TileOperand &operand, int64_t lines, int64_t start, Value tile, Value count) {
  Side side;
  static_cast<TileSide &>(side) =
      TileSide(b, operand, lines, shape.depth, place, shape.groupThreads(), tile, count);
  // lines of 16 bytes more than a multiple of the banks: threads that store along k then use different ones
  side.pitch = lines + (operand.alongDepth ? wide : 0);
  side.start = start;
  return side;
}

// Steps beyond the depth are zeros on both sides.
SmallVector<Value> Tile::load(const Side &side, Value step, bool within) {
  SmallVector<Value> values;
  const TileOperand &o = *side.operand;
  if (o.table.bytes)
    return loadByTable(side, step);
  for (size_t i = 0; i < side.slots(); ++i) {
    const TilePlace place = within ? side.within(b, i, step) : side.at(b, i, step, p.depth, shape.parts);
    Value x =
        loadAligned(b, o.element, o.pointer, place.index, o.vector, o.vector * codegen::elemBytes(o.element));
    x = codegen::emitConvert(b, x, o.element, p.sum);
    values.push_back(place.inside ? b.select(place.inside, x, b.cstI(x.getType(), 0)) : x);
  }
  return values;
}

// What is not read is zeros, so that ptxas makes a load under a condition, and no selections behind it.
SmallVector<Value> Tile::loadByTable(const Side &side, Value step) {
  const TileOperand &o = *side.operand;
  const size_t together = side.apart ? side.slots() : 1;
  SmallVector<TileAddress> places;
  for (size_t i = 0; i < side.slots(); i += together)
    places.push_back(o.table.look(i, step, side.k[i]));
  SmallVector<Value> values;
  for (const TileAddress &place : places) {
    auto read = [&] {
      SmallVector<Value> xs;
      for (size_t i = 0; i < together; ++i) {
        Value x = loadAligned(b, o.element, place.pointer, b.i64(i * side.apart), o.vector, o.vector * codegen::elemBytes(o.element));
        xs.push_back(codegen::emitConvert(b, x, o.element, p.sum));
      }
      return xs;
    };
    const SmallVector<Type> types(together, codegen::regType(p.sum, o.vector));
    auto zeros = [&] { return SmallVector<Value>(together, b.cstI(types[0], 0)); };
    llvm::append_range(values, place.inside ? b.ifElse(place.inside, types, read, zeros) : read());
  }
  return values;
}

void Tile::store(const Side &side, Value stage, ValueRange values) {
  auto put = [&](Value x, Value line, Value k) {
    Value offset = b.mul(b.add(b.mul(k, b.i64(side.pitch)), line), b.i64(bytes));
    const int64_t size = bytes * codegen::lanesOf(x.getType());
    LLVM::StoreOp::create(b, x, at(b.add(b.add(stage, b.i64(side.start)), offset)), size);
  };
  for (size_t i = 0; i < side.slots(); ++i) {
    if (!side.operand->alongDepth || side.operand->vector == 1) {
      put(values[i], side.line[i], side.k[i]);
      continue;
    }
    for (int64_t j = 0; j < side.operand->vector; ++j)
      put(vector::ExtractOp::create(b, values[i], j), side.line[i], b.add(side.k[i], b.i64(j)));
  }
}

/// The lines of this thread at step k: groups of up to 16 bytes, spread evenly over the tile.
SmallVector<Value> Tile::fragment(const Side &side, Value stage, int64_t k, Value place, int64_t count) {
  SmallVector<Value> values;
  const int64_t width = std::min(count, wide), spread = side.lines / groups(count);
  for (int64_t g = 0; g < groups(count); ++g) {
    Value offset =
        b.add(b.mul(place, b.i64(width * bytes)), b.i64(side.start + (k * side.pitch + g * spread) * bytes));
    Type type = codegen::regType(p.sum, width);
    Value v = LLVM::LoadOp::create(b, type, at(b.add(stage, offset)), width * bytes);
    for (int64_t i = 0; i < width; ++i)
      values.push_back(width == 1 ? v : vector::ExtractOp::create(b, v, i).getResult());
  }
  return values;
}

Tile::Fragments Tile::fragments(Value stage, int64_t k) {
  return {fragment(lhs, stage, k, threadRow, shape.threadRows), fragment(rhs, stage, k, threadColumn, shape.threadColumns)};
}

void Tile::multiply(MutableArrayRef<Value> sums, const Fragments &f) {
  for (auto [i, l] : llvm::enumerate(f.first))
    for (auto [j, r] : llvm::enumerate(f.second)) {
      Value &sum = sums[i * shape.threadColumns + j];
      sum = adder.step(sum, l, r);
    }
}

/// Fills a stage, and reads what its first step multiplies.
Tile::Fragments Tile::put(Value stage, ValueRange x, ValueRange y) {
  store(lhs, stage, x);
  store(rhs, stage, y);
  frame.barrier();
  return fragments(stage, 0);
}

// Multiplies what is in one stage, and fills the other with step `next`. What a step of k multiplies is read a step ahead. For the first
// of a stage that is ahead of the last one of the stage before, so that there is work behind the barrier until it has come. `state`: the
// sums, and what the first step multiplies. `next` is null where there is none; then only the sums are left.
SmallVector<Value> Tile::oneStep(Value stage, Value other, Value next, bool within, ValueRange state) {
  SmallVector<Value> after(state.drop_back(shape.threadRows + shape.threadColumns));
  Fragments f{SmallVector<Value>(state.slice(after.size(), shape.threadRows)), SmallVector<Value>(state.take_back(shape.threadColumns))};
  SmallVector<Value> x, y;
  if (next) {
    x = load(lhs, next, within);
    y = load(rhs, next, within);
  }
  for (int64_t k = 0; k < shape.depth; ++k) {
    Fragments ahead = k + 1 < shape.depth ? fragments(stage, k + 1) : next ? put(other, x, y) : Fragments();
    multiply(after, f);
    f = std::move(ahead);
  }
  llvm::append_range(after, f.first);
  llvm::append_range(after, f.second);
  return after;
}

/// Steps of all groups that lie within a depth that is known; 0 of another.
int64_t Tile::wholeSteps() const {
  const std::optional<int64_t> depth = codegen::constantOf(p.depth);
  return depth ? *depth / (shape.depth * shape.parts) : 0;
}

/// The steps of a product that has so few that it needs no loop; 0 where it has one. Those of larger rectangles are too much code for what
/// the loop takes.
int64_t Tile::stepsAlone() const {
  constexpr int64_t most = 5, largest = 16; // steps; sums of a thread
  const std::optional<int64_t> depth = codegen::constantOf(p.depth);
  const int64_t steps = depth ? shape.turns(*depth) : 0;
  return shape.threadRows * shape.threadColumns <= largest && steps <= most ? steps : 0;
}

/// Steps that are done two by two before the others: their stages are known, and all that they load lies within the depth. 0 where those
/// are too few to be worth code of their own, or a step has so many multiply-adds that the rest of the loop matters little.
int64_t Tile::pairsWithin() const {
  if (shape.threadRows * shape.threadColumns > 16) // these reach 80 % as they are, and some would lack registers
    return 0;
  const int64_t whole = wholeSteps(), pairs = (whole - 1) / 2;
  return whole >= 5 ? pairs : 0;
}

SmallVector<Value> Tile::sumUp() {
  const int64_t together = shape.depth * shape.parts, pairs = pairsWithin();
  Value steps = b.divU(b.add(p.depth, b.i64(together - 1)), b.i64(together)),
        mine = b.mul(group, b.i64(2 * stageBytes));
  SmallVector<Value> zeros(shape.threadRows * shape.threadColumns, adder.zero());
  auto number = [&](Value step) { return b.add(b.mul(step, b.i64(shape.parts)), group); };
  auto all = [&] {
    Fragments first = put(mine, load(lhs, number(b.i64(0))), load(rhs, number(b.i64(0))));
    SmallVector<Value> state(zeros);
    llvm::append_range(state, first.first);
    llvm::append_range(state, first.second);
    if (const int64_t alone = stepsAlone()) {
      for (int64_t step = 0; step < alone; ++step) {
        Value stages[] = {mine, b.add(mine, b.i64(stageBytes))};
        Value next = step + 1 < alone ? number(b.i64(step + 1)) : Value();
        state = oneStep(stages[step % 2], stages[1 - step % 2], next, step + 1 < wholeSteps(), state);
      }
      frame.barrier();
      return state;
    }
    // counters of known steps have 32 bits, which takes half the instructions
    const std::optional<int64_t> known = codegen::constantOf(steps);
    const bool isNarrow = known && *known < (int64_t(1) << 30);
    auto count = [&](int64_t n) { return isNarrow ? b.cstI(b.getI32Type(), n) : b.i64(n); };
    auto index = [&](Value step) { return isNarrow ? arith::ExtUIOp::create(b, b.getI64Type(), step).getResult() : step; };
    if (pairs)
      state = b.loop(count(0), count(2 * pairs), count(2), state, [&](Value counter, ValueRange in) {
        Value step = index(counter), second = b.add(mine, b.i64(stageBytes));
        SmallVector<Value> between = oneStep(mine, second, number(b.add(step, b.i64(1))), true, in);
        return oneStep(second, mine, number(b.add(step, b.i64(2))), true, between);
      });
    state = b.loop(count(2 * pairs), isNarrow ? count(*known) : steps, count(1), state, [&](Value counter, ValueRange in) {
      Value step = index(counter), odd = b.mul(arith::AndIOp::create(b, step, b.i64(1)), b.i64(stageBytes));
      return oneStep(b.add(mine, odd), b.add(mine, b.sub(b.i64(stageBytes), odd)), number(b.add(step, b.i64(1))), false, in);
    });
    state.truncate(zeros.size());
    frame.barrier(); // the sums go where the fragments were read
    return state;
  };
  if (codegen::constantOf(p.depth))
    return all();
  return b.ifElse(b.lt(b.i64(0), p.depth), TypeRange(ValueRange(zeros)), all, [&] { return zeros; });
}

// The sums go through shared memory, a group of rows at a time, so that an epilogue is emitted once a group,
// not once a sum, and neighbouring threads store neighbouring results.
LogicalResult Tile::finish(ValueRange sums) {
  const int64_t rowGroups = groups(shape.threadRows), rows = shape.rows / rowGroups,
                width = shape.threadRows / rowGroups;
  const int64_t columnGroups = groups(shape.threadColumns), across = shape.threadColumns / columnGroups;
  const int64_t pitch = shape.columns + (p.rowsInner ? 1 : wide);
  Value top = b.mul(p.tileRow, b.i64(shape.rows)), left = b.mul(p.tileColumn, b.i64(shape.columns));
  const int64_t areaElements = rows * pitch; // of a group of threads
  for (int64_t g = 0; g < rowGroups; ++g) {
    if (g)
      frame.barrier();
    for (int64_t i = 0; i < width; ++i)
      for (int64_t j = 0; j < shape.threadColumns; ++j) {
        Value row = b.add(b.mul(threadRow, b.i64(width)), b.i64(i));
        Value column = b.add(b.mul(threadColumn, b.i64(across)),
                             b.i64(j / across * (shape.columns / columnGroups) + j % across));
        Value at = b.add(b.add(b.mul(group, b.i64(areaElements)), b.mul(row, b.i64(pitch))), column);
        b.storeElem(p.sum, sums[(g * width + i) * shape.threadColumns + j], memory, at);
      }
    frame.barrier();
    TileSums area{memory, rows, shape.columns, pitch, shape.parts, areaElements, top, left, {}};
    area.rowOf = [&](Value r) { return b.add(r, b.i64(g * rows)); };
    if (failed(storeSums(frame, p, area)))
      return failure();
  }
  return success();
}

LogicalResult storeSums(BlockFrame &frame, const TileProduct &p, const TileSums &sums) {
  KernelBuilder &b = frame.b;
  LogicalResult ok = success();
  assert((p.lanes == 1 || (!p.rowsInner && sums.columns % p.lanes == 0 && sums.pitch % p.lanes == 0)) && "whole vectors of columns");
  const int64_t inner = (p.rowsInner ? sums.rows : sums.columns) / p.lanes;
  auto load = [&](Value at) {
    if (p.lanes == 1)
      return b.loadElem(p.sum, sums.memory, at);
    return LLVM::LoadOp::create(b, codegen::regType(p.sum, p.lanes), b.ptrAt(sums.memory, p.sum, at), p.lanes * codegen::elemBytes(p.sum))
        .getResult();
  };
  b.loop(frame.thread, b.i64(sums.rows * sums.columns / p.lanes), b.i64(frame.threads), [&](Value e) {
    Value in = b.mul(b.remU(e, b.i64(inner)), b.i64(p.lanes)), out = b.divU(e, b.i64(inner));
    Value r = p.rowsInner ? in : out, c = p.rowsInner ? out : in;
    Value row = b.add(sums.top, sums.rowOf(r)), column = b.add(sums.left, c);
    b.ifThen(b.both(b.lt(row, p.rows), b.lt(column, p.columns)), [&] {
      Value at = b.add(b.mul(r, b.i64(sums.pitch)), c), sum = load(at);
      for (int64_t part = 1; part < sums.parts; ++part)
        sum = codegen::E(b, sum) + codegen::E(b, load(b.add(at, b.i64(part * sums.partElements))));
      if (failed(p.store(row, column, sum)))
        ok = failure();
    });
  });
  return ok;
}

LogicalResult Tile::emit() {
  const int64_t across = shape.columns / shape.threadColumns, down = shape.rows / shape.threadRows;
  const int64_t threads = shape.groupThreads();
  group = shape.parts == 1 ? b.i64(0) : b.divU(frame.thread, b.i64(threads));
  place = shape.parts == 1 ? frame.thread : b.remU(frame.thread, b.i64(threads));
  if (across >= 8 && down >= 4) { // a warp is 4 by 8 threads: fewer accesses to shared memory than in a line
    Value warp = b.divU(place, b.i64(warpThreads)), lane = b.remU(place, b.i64(warpThreads));
    // pairs of lanes read the same of one operand, and pairs of pairs of the other: half a warp reads its 16 bytes each at once
    Value row = b.add(b.mul(b.divU(lane, b.i64(16)), b.i64(2)), b.remU(lane, b.i64(2)));
    Value column = b.remU(b.divU(lane, b.i64(2)), b.i64(8));
    threadRow = b.add(b.mul(b.divU(warp, b.i64(across / 8)), b.i64(4)), row);
    threadColumn = b.add(b.mul(b.remU(warp, b.i64(across / 8)), b.i64(8)), column);
  } else {
    threadRow = b.divU(place, b.i64(across));
    threadColumn = b.remU(place, b.i64(across));
  }
  lhs = makeSide(p.lhs, shape.rows, 0, p.tileRow, p.rows);
  const int64_t lhsBytes = lhs.pitch * shape.depth * bytes;
  rhs = makeSide(p.rhs, shape.columns, lhsBytes, p.tileColumn, p.columns);
  const int64_t blocks = b.attribute("kernel.extent") / frame.threads;
  if (frame.threads < 256) // registers for three blocks in place of two of these
    frame.setResidents(3 * 128 / frame.threads);
  else if (shape.parts > 1 && blocks > 0 && blocks <= processors) // no two share a multiprocessor, and two would lack registers
    frame.setResidents(1);
  stageBytes = lhsBytes + rhs.pitch * shape.depth * bytes;
  const int64_t results = shape.rows / groups(shape.threadRows) * (shape.columns + wide) * bytes;
  const int64_t stages = shape.parts * std::max(2 * stageBytes, results);
  memory = frame.shared(stages + p.lhs.table.bytes);
  assert(!p.rhs.table.bytes && "one table");
  if (p.lhs.table.bytes) {
    p.lhs.table.fill(at(b.i64(stages)), frame.thread, frame.threads);
    frame.barrier();
  }
  return finish(sumUp());
}

LogicalResult emitTile(BlockFrame &frame, const TileShape &shape, const TileProduct &product) {
  return Tile(frame, shape, product).emit();
}

} // namespace lathe::nvptx
