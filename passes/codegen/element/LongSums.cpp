// See LongSums.h.
#include "passes/codegen/element/LongSums.h"

#include "dialects/hlo/Hlo.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace lathe::codegen {

SmallVector<Value> addAll(KernelBuilder &b, ValueRange x, ValueRange y) {
  SmallVector<Value> sums;
  for (auto [p, q] : llvm::zip_equal(x, y))
    sums.push_back(arith::AddFOp::create(b, p, q));
  return sums;
}

int64_t additionsIn(ValueRange trips) {
  constexpr int64_t many = 1 << 20;
  int64_t all = 1;
  for (Value t : trips)
    all = std::min(many, all * std::clamp<int64_t>(constantOf(t).value_or(many), 1, many));
  return all;
}

namespace {

/// Accumulators in memory: rows of them, each with one place for every accumulator.
class Kept {
public:
  Kept(KernelBuilder &b, ValueRange like, int64_t rows) : b(b), types(like.getTypes()) {
    for (Type t : types) {
      offsets.push_back(rowBytes);
      auto vector = dyn_cast<VectorType>(t);
      const int64_t bytes = getElementTypeOrSelf(t).getIntOrFloatBitWidth() / 8 * (vector ? vector.getNumElements() : 1);
      rowBytes += llvm::alignTo(bytes, 8);
    }
    rowBytes = llvm::alignTo(rowBytes, 64);
    memory = b.alloca(rows * rowBytes);
  }
  SmallVector<Value> load(Value row) {
    SmallVector<Value> values;
    for (auto [type, offset] : llvm::zip(types, offsets))
      values.push_back(LLVM::LoadOp::create(b, type, at(row, offset), 8));
    return values;
  }
  void store(ValueRange values, Value row) {
    for (auto [v, offset] : llvm::zip(values, offsets))
      LLVM::StoreOp::create(b, v, at(row, offset), 8);
  }

private:
  Value at(Value row, int64_t offset) { return b.ptrBytes(memory, b.add(b.mul(row, b.i64(rowBytes)), b.i64(offset))); }

  KernelBuilder &b;
  SmallVector<Type> types;
  SmallVector<int64_t> offsets;
  int64_t rowBytes = 0;
  Value memory;
};

} // namespace

// Blocks that are added to one sum before it goes to the counter.
static constexpr int64_t blocksInGroup = 8;

static Value trailingZeros(KernelBuilder &b, Value x) {
  return LLVM::CountTrailingZerosOp::create(b, b.getI64Type(), x, /*is_zero_poison=*/true);
}

/// Adds the sum of group number `group`: row k of the counter holds 2^k groups.
static void carry(KernelBuilder &b, Kept &counter, Value group, ValueRange sum) {
  Value full = trailingZeros(b, b.add(group, b.i64(1))); // rows 0 to that are taken
  SmallVector<Value> all = b.loop(b.i64(0), full, b.i64(1), sum,
                                  [&](Value k, ValueRange now) { return addAll(b, counter.load(k), now); });
  counter.store(all, full);
}

/// What the counter holds after so many groups, with `sum`.
static SmallVector<Value> addCounter(KernelBuilder &b, Kept &counter, Value groups, ValueRange sum) {
  SmallVector<Value> state{groups};
  llvm::append_range(state, sum);
  SmallVector<Value> all = b.whileLoop(
      state, [&](ValueRange s) { return b.lt(b.i64(0), s[0]); },
      [&](ValueRange s) {
        SmallVector<Value> next{arith::AndIOp::create(b, s[0], b.sub(s[0], b.i64(1))).getResult()};
        llvm::append_range(next, addAll(b, counter.load(trailingZeros(b, s[0])), s.drop_front()));
        return next;
      });
  return SmallVector<Value>(llvm::drop_begin(all));
}

SmallVector<Value> sumLoop(KernelBuilder &b, Value lo, Value hi, int64_t step, ValueRange inits, const SumBlocks &how,
                           llvm::function_ref<SmallVector<Value>(Value, ValueRange)> body) {
  auto plain = [&](Value from, Value to, ValueRange start) {
    SmallVector<Value> sums = b.loop(from, to, b.i64(step), start, body);
    if (how.onLoop)
      how.onLoop(sums);
    return sums;
  };
  const int64_t span = std::max<int64_t>(1, how.inRow / how.perStep) * step;
  const std::optional<int64_t> length = constantOf(b.sub(hi, lo));
  if (length && *length <= span)
    return plain(lo, hi, inits);
  const std::optional<int64_t> blocks = length ? std::optional<int64_t>(llvm::divideCeil(*length, span)) : std::nullopt;
  SmallVector<Value> zeros;
  for (Value v : inits)
    zeros.push_back(b.cst(v.getType(), -0.0)); // what changes no sum
  Value count = b.divU(b.add(b.max(b.sub(hi, lo), b.i64(0)), b.i64(span - 1)), b.i64(span));
  const bool counts = !blocks || *blocks > blocksInGroup;
  std::optional<Kept> sums, counter;
  if (how.inMemory)
    sums.emplace(b, inits, 1);
  if (counts) // as many groups as there are, or no more than 2^32
    counter.emplace(b, inits, blocks ? llvm::Log2_64(*blocks / blocksInGroup) + 1 : 32);
  Value first = b.i64(0), last = b.i64(blocksInGroup - 1), shift = b.i64(llvm::Log2_64(blocksInGroup));
  if (sums)
    sums->store(zeros, first);
  SmallVector<Value> total = b.loop(
      first, count, b.i64(1), sums ? SmallVector<Value>() : zeros, [&](Value block, ValueRange before) {
        Value from = b.add(lo, b.mul(block, b.i64(span)));
        const bool whole = length && *length % span == 0;
        Value to = whole ? b.add(from, b.i64(span)) : b.min(b.add(from, b.i64(span)), hi);
        SmallVector<Value> here = plain(from, to, zeros);
        SmallVector<Value> now = addAll(b, sums ? sums->load(first) : SmallVector<Value>(before), here);
        auto isLast = [&] { return b.eq(arith::AndIOp::create(b, block, last), last); };
        auto hand = [&] { carry(b, *counter, arith::ShRUIOp::create(b, block, shift), now); };
        if (sums) {
          sums->store(now, first);
          if (counts)
            b.ifThen(isLast(), [&] {
              hand();
              sums->store(zeros, first);
            });
          return SmallVector<Value>();
        }
        if (!counts)
          return now;
        return b.ifElse(
            isLast(), TypeRange(ValueRange(now)),
            [&] {
              hand();
              return zeros;
            },
            [&] { return now; });
      });
  if (sums)
    total = sums->load(first);
  if (counts)
    total = addCounter(b, *counter, arith::ShRUIOp::create(b, count, shift), total);
  return addAll(b, inits, total);
}

SmallVector<Value>
runningBlocks(KernelBuilder &b, Value lo, Value hi, int64_t span, ValueRange start,
              llvm::function_ref<SmallVector<Value>(Value from, Value to, ValueRange before)> block) {
  const std::optional<int64_t> length = constantOf(b.sub(hi, lo));
  if (length && *length <= span)
    return addAll(b, start, block(lo, hi, start));
  SmallVector<Value> zeros;
  for (Value v : start)
    zeros.push_back(b.cst(v.getType(), -0.0));
  const int64_t groupSpan = span * blocksInGroup;
  Value groups = b.divU(b.add(b.max(b.sub(hi, lo), b.i64(0)), b.i64(groupSpan - 1)), b.i64(groupSpan));
  Kept counter(b, start, length ? llvm::Log2_64(llvm::divideCeil(*length, groupSpan)) + 1 : 32);
  b.loop(b.i64(0), groups, [&](Value group) {
    Value first = b.add(lo, b.mul(group, b.i64(groupSpan))), last = b.min(b.add(first, b.i64(groupSpan)), hi);
    SmallVector<Value> before = addCounter(b, counter, group, start);
    carry(b, counter, group, b.loop(first, last, b.i64(span), zeros, [&](Value from, ValueRange sum) {
      Value to = b.min(b.add(from, b.i64(span)), last);
      return addAll(b, sum, block(from, to, addAll(b, before, sum)));
    }));
  });
  return addCounter(b, counter, groups, start);
}

bool isFloatSum(Block &body) {
  auto ops = body.without_terminator();
  if (body.getNumArguments() != 2 || !llvm::hasSingleElement(ops) || !isa<hlo::AddOp>(*ops.begin()))
    return false;
  Operation &add = *ops.begin();
  return isa<FloatType, ComplexType>(hlo::elementType(add.getResult(0))) && add.getOperand(0) != add.getOperand(1) &&
         llvm::all_of(add.getOperands(), [](Value v) { return isa<BlockArgument>(v); }) &&
         body.getTerminator()->getOperand(0) == add.getResult(0);
}

} // namespace lathe::codegen
