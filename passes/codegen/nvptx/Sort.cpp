// Sorts of lines by many threads. Both kernels merge two sorted runs by looking, for each place of what they make, how many elements of the
// first run come before it: a search among few numbers, which gives each place one element whatever the comparator says.
//
// A block sorts a line of up to 2048 elements, or several short ones: it merges positions in shared memory, of runs of 1, 2, 4 ...
// elements, and moves the elements at the end. Longer lines are cut by nvptx-split-sorts, which leaves merges of sorted halves to the
// whole device, an element a thread. How often a line of unknown length is to be merged is known when it runs only, so a block sorts each
// of those: it merges the elements themselves, to and fro between two places in the device's memory.
#include "dialects/hlo/Hlo.h"
#include "dialects/hlo/Shape.h"
#include "passes/codegen/element/ElementEmitter.h"
#include "passes/codegen/nvptx/Block.h"
#include "passes/codegen/nvptx/Forms.h"
#include "passes/codegen/nvptx/Sort.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace lathe::nvptx {

using codegen::KernelBuilder;

namespace {

/// The lines that are sorted, and their elements.
class Lines {
public:
  Lines(hlo::SortOp s, KernelBuilder &b);
  /// The place of element `i` of a line.
  Value at(Value line, Value i) const {
    return b.add(b.mul(b.add(b.mul(b.divU(line, inner), size), i), inner), b.remU(line, inner));
  }
  /// Whether the element at one place comes before that at another, both in these buffers.
  Value isBefore(ArrayRef<Value> buffers, Value x, Value y);
  void move(ArrayRef<Value> sources, Value from, ArrayRef<Value> targets, Value to);
  /// What is at place `k` of two sorted runs of so many elements once they are merged: whether it is the second's, and its number there. Of
  /// equal ones the first's comes first. `less(j, i)`: element j of the second comes before element i of the first.
  std::pair<Value, Value> merged(Value k, Value first, Value second, llvm::function_ref<Value(Value, Value)> less);

  int64_t length; ///< or that it is known at run time only
  Value size;     ///< the same
  AffineExpr count; ///< of lines
  Value inner;      ///< elements from one of a line to the next
  LogicalResult ok = success();

private:
  hlo::SortOp s;
  KernelBuilder &b;
};

} // namespace

int64_t sortedDim(hlo::SortOp s) {
  const int64_t rank = hlo::tensorType(s.getInputs()[0]).getRank(), dim = static_cast<int64_t>(s.getDimension());
  return dim < 0 ? dim + rank : dim;
}

Lines::Lines(hlo::SortOp s, KernelBuilder &b) : s(s), b(b) {
  const RankedTensorType type = hlo::tensorType(s.getInputs()[0]);
  const int64_t dim = sortedDim(s);
  length = type.getDimSize(dim);
  SmallVector<AffineExpr> sizes = hlo::getDims(type), behind(sizes.begin() + dim + 1, sizes.end());
  size = b.dim(sizes[dim]);
  inner = b.dim(hlo::numElements(behind, b.getContext()));
  sizes.erase(sizes.begin() + dim);
  count = hlo::numElements(sizes, b.getContext());
}

Value Lines::isBefore(ArrayRef<Value> buffers, Value x, Value y) {
  Block &comparator = s.getComparator().front();
  SmallVector<Value> args;
  for (auto [buffer, v] : llvm::zip_first(buffers, s.getInputs()))
    for (Value place : {x, y})
      args.push_back(b.loadElem(hlo::elementType(v), buffer, place));
  for (size_t i = 0; args.size() < comparator.getNumArguments(); ++i) // what is there once more
    args.push_back(Value(args[i]));
  auto before = codegen::emitScalarBody(b, comparator, args);
  if (succeeded(before))
    return before->front();
  ok = failure();
  return b.cstI(b.getI1Type(), 0);
}

void Lines::move(ArrayRef<Value> sources, Value from, ArrayRef<Value> targets, Value to) {
  for (auto [source, target, v] : llvm::zip_first(sources, targets, s.getInputs()))
    b.storeElem(hlo::elementType(v), b.loadElem(hlo::elementType(v), source, from), target, to);
}

std::pair<Value, Value> Lines::merged(Value k, Value first, Value second, llvm::function_ref<Value(Value, Value)> less) {
  Value one = b.i64(1), no = b.cstI(b.getI1Type(), 0);
  SmallVector<Value> found = b.whileLoop(
      ValueRange{b.max(b.sub(k, second), b.i64(0)), b.min(k, first)}, [&](ValueRange range) { return b.lt(range[0], range[1]); },
      [&](ValueRange range) -> SmallVector<Value> {
        Value middle = b.divU(b.add(range[0], range[1]), b.i64(2));
        Value isLess = less(b.sub(b.sub(k, one), middle), middle);
        return {b.select(isLess, range[0], b.add(middle, one)), b.select(isLess, middle, range[1])};
      });
  Value i = found[0], j = b.sub(k, i);
  Value fromSecond = b.ifElse(b.lt(i, first), b.getI1Type(), [&] {
    return b.ifElse(b.lt(j, second), b.getI1Type(), [&] { return SmallVector<Value>{less(j, i)}; }, [&] { return SmallVector<Value>{no}; });
  }, [&] { return SmallVector<Value>{b.cstI(b.getI1Type(), 1)}; })[0];
  return {fromSecond, b.select(fromSecond, j, i)};
}

std::string whyNoSort(Operation *op) {
  auto s = dyn_cast<hlo::SortOp>(op);
  if (!s)
    return "no sort";
  const RankedTensorType type = hlo::tensorType(s.getInputs()[0]);
  if (type.getRank() == 0)
    return "a scalar";
  if (op->hasAttr(halvesAttribute) || op->hasAttr(spaceAttribute))
    return {};
  const int64_t length = type.getDimSize(sortedDim(s));
  if (ShapedType::isDynamic(length))
    return "lines of a length known at run time only";
  return length < 2 || length > longestBlockSort ? "lines of other lengths" : "";
}

// A thread for each element of a line, or for up to four of them.
static LogicalResult emitBlockSort(hlo::SortOp s, KernelBuilder &b) {
  constexpr int64_t most = 512; // threads
  Lines lines(s, b);
  const int64_t places = llvm::PowerOf2Ceil(lines.length), perLine = std::min(places, most);
  const int64_t together = std::max<int64_t>(1, unitThreads / perLine), each = places / perLine;
  BlockFrame frame(b, std::max(perLine, unitThreads));
  frame.setBlocks(hlo::simplify(lines.count.ceilDiv(together)));
  b.setWork(1024);
  const Type word = b.getI32Type();
  Value length = b.i64(lines.length), team = b.divU(frame.thread, b.i64(perLine)), member = b.remU(frame.thread, b.i64(perLine));
  Value line = frame.block(), isLine;
  if (together > 1) {
    Value count = b.dim(lines.count);
    line = b.add(b.mul(line, b.i64(together)), team);
    isLine = b.lt(line, count);
    line = b.min(line, b.sub(count, b.i64(1))); // all threads reach the barriers
  }
  // the positions of each line, twice
  Value memory = frame.shared(2 * 4 * places * together);
  Value positions = b.ptrAt(memory, word, b.mul(team, b.i64(2 * places)));
  auto position = [&](Value i) -> Value { return arith::ExtUIOp::create(b, b.getI64Type(), b.loadElem(word, positions, i)); };
  auto setPosition = [&](Value p, Value i) { b.storeElem(word, arith::TruncIOp::create(b, word, p), positions, i); };
  auto eachPlace = [&](bool all, llvm::function_ref<void(Value)> body) {
    b.loop(b.i64(0), b.i64(each), [&](Value e) {
      Value k = b.add(b.mul(e, b.i64(perLine)), member);
      if (all || places == lines.length)
        body(k);
      else
        b.ifThen(b.lt(k, length), [&] { body(k); });
    });
  };
  eachPlace(true, [&](Value k) { setPosition(k, k); });
  frame.barrier();
  SmallVector<Value> sorted = b.whileLoop(
      ValueRange{b.i64(1), b.i64(0)}, [&](ValueRange state) { return b.lt(state[0], length); },
      [&](ValueRange state) -> SmallVector<Value> {
        Value run = state[0], from = state[1], to = b.sub(b.i64(places), from), pair = b.add(run, run);
        eachPlace(false, [&](Value k) {
          Value begin = arith::AndIOp::create(b, k, b.sub(b.i64(0), pair));
          Value middle = b.min(b.add(begin, run), length), end = b.min(b.add(begin, pair), length);
          Value left = b.add(from, begin), right = b.add(from, middle);
          auto [second, n] = lines.merged(b.sub(k, begin), b.sub(middle, begin), b.sub(end, middle), [&](Value j, Value i) {
            return lines.isBefore(b.operands, lines.at(line, position(b.add(right, j))), lines.at(line, position(b.add(left, i))));
          });
          setPosition(position(b.add(b.select(second, right, left), n)), b.add(to, k));
        });
        frame.barrier();
        return {pair, to};
      });
  auto moveAll = [&] {
    eachPlace(false, [&](Value k) { lines.move(b.operands, lines.at(line, position(b.add(sorted[1], k))), b.results, lines.at(line, k)); });
  };
  if (isLine)
    b.ifThen(isLine, moveAll);
  else
    moveAll();
  return lines.ok;
}

static LogicalResult emitMerge(hlo::SortOp s, KernelBuilder &b) {
  Lines lines(s, b);
  b.setExtent(hlo::numElements(hlo::tensorType(s.getInputs()[0])));
  b.setWork(256);
  Value half = b.i64(lines.length / 2), length = b.i64(lines.length);
  b.units([&](Value unit) {
    Value behind = b.divU(unit, lines.inner), k = b.remU(behind, length);
    Value line = b.add(b.mul(b.divU(behind, length), lines.inner), b.remU(unit, lines.inner));
    auto [second, n] = lines.merged(k, half, half, [&](Value j, Value i) {
      return lines.isBefore(b.operands, lines.at(line, b.add(half, j)), lines.at(line, i));
    });
    lines.move(b.operands, lines.at(line, b.add(b.select(second, half, b.i64(0)), n)), b.results, unit);
  });
  return lines.ok;
}

// A block for each line. Each merge writes where the one before has not: the last one to the results, those before in turn to what is there
// once more, which holds the sorted line too in the end.
static LogicalResult emitAnySort(hlo::SortOp s, KernelBuilder &b) {
  constexpr int64_t threads = 512;
  const unsigned count = s.getNumOperands() / 2;
  Lines lines(s, b);
  BlockFrame frame(b, threads);
  frame.setBlocks(lines.count);
  b.setWork(1024);
  const ArrayRef<Value> operands = ArrayRef(b.operands).take_front(count), results = ArrayRef(b.results).take_front(count),
                        space = ArrayRef(b.results).drop_front(count);
  Value line = frame.block(), zero = b.i64(0), one = b.i64(1), size = lines.size;
  auto eachPlace = [&](llvm::function_ref<void(Value)> body) { b.loop(frame.thread, size, b.i64(threads), body); };
  auto choose = [&](Value condition, ArrayRef<Value> x, ArrayRef<Value> y) {
    SmallVector<Value> chosen;
    for (auto [v, w] : llvm::zip_equal(x, y))
      chosen.push_back(b.select(condition, v, w));
    return chosen;
  };
  Value isOdd = b.whileLoop( // the number of merges
      ValueRange{one, zero}, [&](ValueRange state) { return b.lt(state[0], size); },
      [&](ValueRange state) -> SmallVector<Value> { return {b.add(state[0], state[0]), b.sub(one, state[1])}; })[1];
  b.whileLoop(
      ValueRange{one, isOdd}, [&](ValueRange state) { return b.lt(state[0], size); },
      [&](ValueRange state) -> SmallVector<Value> {
        Value run = state[0], toResults = b.eq(state[1], one), pair = b.add(run, run);
        const SmallVector<Value> from = choose(b.eq(run, one), operands, choose(toResults, space, results));
        const SmallVector<Value> to = choose(toResults, results, space);
        eachPlace([&](Value k) {
          Value begin = arith::AndIOp::create(b, k, b.sub(zero, pair));
          Value middle = b.min(b.add(begin, run), size), end = b.min(b.add(begin, pair), size);
          auto [second, n] = lines.merged(b.sub(k, begin), b.sub(middle, begin), b.sub(end, middle), [&](Value j, Value i) {
            return lines.isBefore(from, lines.at(line, b.add(middle, j)), lines.at(line, b.add(begin, i)));
          });
          lines.move(from, lines.at(line, b.add(b.select(second, middle, begin), n)), to, lines.at(line, k));
        });
        frame.barrier();
        return {pair, b.sub(one, state[1])};
      });
  Value isSorted = b.lt(size, b.i64(2)); // as it is, without a merge
  const SmallVector<Value> sorted = choose(isSorted, operands, results);
  eachPlace([&](Value k) {
    lines.move(sorted, lines.at(line, k), space, lines.at(line, k));
    b.ifThen(isSorted, [&] { lines.move(sorted, lines.at(line, k), results, lines.at(line, k)); });
  });
  return lines.ok;
}

LogicalResult emitSort(Operation *op, KernelBuilder &b) {
  auto s = cast<hlo::SortOp>(op);
  if (op->hasAttr(spaceAttribute))
    return emitAnySort(s, b);
  return op->hasAttr(halvesAttribute) ? emitMerge(s, b) : emitBlockSort(s, b);
}

} // namespace lathe::nvptx
