// Products with few rows, or few columns: each element of the wide operand is used so few times that memory sets the pace. It is
// read once, neighbours together, by many threads at once. Where lines lie side by side a thread has one of 32 neighbours and the warps
// of a block share the depth; where the depth does, the threads of a team share a line.
#include "dialects/hlo/Hlo.h"
#include "dialects/hlo/Shape.h"
#include "passes/codegen/element/Expr.h"
#include "passes/codegen/nvptx/Product.h"
#include "passes/codegen/nvptx/Team.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace lathe::nvptx {

using codegen::KernelBuilder;

constexpr int64_t mostNarrow = 7;

/// Whether the results are too few to keep a device busy with a thread each.
static bool isSmall(Operation *op, const Roles &roles) {
  constexpr int64_t few = 2048;
  auto dot = dyn_cast<kernel::DotOp>(op);
  RankedTensorType out = dot ? dot.getAccType() : hlo::tensorType(op->getResult(0));
  return out.hasStaticShape() && out.getNumElements() <= few;
}

std::string whyNoSkinny(Operation *op) {
  std::optional<Roles> roles = rolesOf(op);
  if (!roles)
    return "no product of matrices";
  const bool fewRows = isBelow(roles->rows(), mostNarrow + 1);
  if (!fewRows && !isBelow(roles->columns(), mostNarrow + 1))
    return "no few rows or columns";
  if (fewRows ? roles->rows() < 1 : roles->columns() < 1)
    return "no results";
  // few results with as few threads would take the steps of a deep sum one after the other
  if (isBelow(fewRows ? roles->columns() : roles->rows(), warpThreads) && !isSmall(op, *roles))
    return "fewer than 32 lines of the wide operand, and many results";
  if (isBelow(roles->depth(), 2 * warpThreads))
    return "a depth below 64";
  const codegen::Contraction &c = roles->what;
  const int64_t line = fewRows ? c.rhsDims[roles->column] : c.lhsDims[roles->row];
  const int64_t depth = fewRows ? c.summed[0].second : c.summed[0].first;
  const int64_t last = (fewRows ? c.rhs : c.lhs).getRank() - 1;
  if (line != last && depth != last)
    return "the wide operand lies in lines of neither lines nor depth";
  return whyNoSums(op, *roles);
}

namespace {

/// One operand, as elements [line, k].
struct Side {
  Value pointer, base, lineStride, depthStride;
  Type element;
  Value load(KernelBuilder &b, Value line, Value k, unsigned lanes = 1) const {
    Value index = b.add(b.add(base, b.mul(line, lineStride)), b.mul(k, depthStride));
    return loadAligned(b, element, pointer, index, lanes, lanes * codegen::elemBytes(element));
  }
};

class Skinny {
public:
  Skinny(Operation *op, KernelBuilder &b)
      : op(op), b(b), roles(*rolesOf(op)), fewRows(isBelow(roles.rows(), mostNarrow + 1)), elements(plain::bindOperands(op, b)),
        core(kernel::hasCore(op) ? Value(op->getRegion(0).getArgument(0)) : op->getResult(0)), out(hlo::tensorType(core)),
        sum(sumTypeOf(roles.what.result)), count(fewRows ? roles.rows() : roles.columns()),
        adder(b, roles.what.lhs.getElementType(), roles.what.rhs.getElementType(), sum) {}

  LogicalResult emit();

private:
  LogicalResult strips();
  LogicalResult teams();
  /// Numbers the blocks: `perBlock` lines of the wide operand each. Returns the first line of this one.
  Value place(BlockFrame &frame, int64_t perBlock);
  /// The sums of a line with the elements at k: `wide` is that of the wide operand.
  SmallVector<Value> step(Value wide, Value k, ValueRange sums);
  FailureOr<SmallVector<Value>> addAll(ValueRange x, ValueRange y);
  LogicalResult store(Value line, ValueRange sums);

  Operation *op;
  KernelBuilder &b;
  const Roles roles;
  const bool fewRows;
  plain::Elements elements;
  Value core;
  RankedTensorType out;
  Type sum;
  const int64_t count; ///< of the narrow operand's lines
  codegen::Accumulator adder;
  Side wide, narrow;
  SmallVector<Value> entry; ///< of the batch
  Value lines, depth;
};

} // namespace

Value Skinny::place(BlockFrame &frame, int64_t perBlock) {
  const codegen::Contraction &c = roles.what;
  SmallVector<AffineExpr> sizes = hlo::getDims(out);
  AffineExpr batch = b.getAffineConstantExpr(1);
  SmallVector<Value> counts;
  for (int64_t d : roles.batch) {
    batch = batch * sizes[d];
    counts.push_back(b.dim(sizes[d]));
  }
  const int64_t along = fewRows ? roles.column : roles.row;
  AffineExpr blocks = sizes[along].ceilDiv(perBlock);
  counts.push_back(b.dim(blocks));
  frame.setBlocks(batch * blocks);
  entry = b.delinearize(frame.block(), counts);
  Value first = b.mul(entry.pop_back_val(), b.i64(perBlock));
  lines = b.dim(sizes[along]);
  depth = b.dims(c.lhs)[c.summed[0].first];
  auto side = [&](bool left) {
    RankedTensorType type = left ? c.lhs : c.rhs;
    ArrayRef<int64_t> dims = left ? c.lhsDims : c.rhsDims;
    SmallVector<Value> strides = stridesOf(b, type);
    return Side{b.operands[left ? 0 : 1], batchBase(b, type, dims, roles.batch, entry), strides[dims[left ? roles.row : roles.column]],
                strides[left ? c.summed[0].first : c.summed[0].second], type.getElementType()};
  };
  wide = side(!fewRows);
  narrow = side(fewRows);
  return first;
}

SmallVector<Value> Skinny::step(Value x, Value k, ValueRange sums) {
  SmallVector<Value> next;
  for (auto [i, s] : llvm::enumerate(sums)) {
    Value y = narrow.load(b, b.i64(i), k);
    next.push_back(fewRows ? adder.step(s, y, x) : adder.step(s, x, y));
  }
  return next;
}

FailureOr<SmallVector<Value>> Skinny::addAll(ValueRange x, ValueRange y) {
  SmallVector<Value> sums;
  for (auto [p, q] : llvm::zip_equal(x, y))
    sums.push_back(codegen::E(b, p) + codegen::E(b, q));
  return sums;
}

LogicalResult Skinny::store(Value line, ValueRange sums) {
  for (auto [i, s] : llvm::enumerate(sums)) {
    SmallVector<Value> index(out.getRank());
    for (auto [d, at] : llvm::zip(roles.batch, entry))
      index[d] = at;
    index[roles.row] = fewRows ? b.i64(i) : line;
    index[roles.column] = fewRows ? line : b.i64(i);
    if (failed(storeResults(b, elements, core, index, codegen::emitConvert(b, s, sum, roles.what.result))))
      return failure();
  }
  return success();
}

LogicalResult Skinny::strips() {
  const int64_t warps = isBelow(roles.depth(), 512) ? 8 : 32;
  BlockFrame frame(b, warps * warpThreads);
  Value lane = b.remU(frame.thread, b.i64(warpThreads)), warp = b.divU(frame.thread, b.i64(warpThreads));
  Value line = b.add(place(frame, warpThreads), lane);
  // threads beyond the last line repeat it
  Value clamped = b.min(line, b.sub(lines, b.i64(1)));
  SmallVector<Value> zeros(count, adder.zero());
  FailureOr<SmallVector<Value>> parts =
      stridedLoop(b, warp, warps, depth, zeros, isa<FloatType>(sum),
                  [&](Value k, ValueRange sums) -> FailureOr<SmallVector<Value>> { return step(wide.load(b, clamped, k), k, sums); });
  if (failed(parts))
    return failure();
  return acrossWarps(
      frame, SmallVector<Type>(count, sum), *parts, /*lanes=*/1, b.lt(line, lines), [&](ValueRange x, ValueRange y) { return addAll(x, y); },
      [&](ValueRange sums) { return store(line, sums); });
}

LogicalResult Skinny::teams() {
  const int64_t wideLines = fewRows ? roles.columns() : roles.rows();
  // few long lines keep a device busy only if many threads share one
  const bool shared = isBelow(wideLines, 1024) && !isBelow(roles.depth(), 2048);
  const int64_t size = shared ? 256 : warpThreads, threads = shared ? 256 : 4 * warpThreads, together = threads / size;
  BlockFrame frame(b, threads);
  Team team(frame, size);
  Value line = b.add(place(frame, together), team.number);
  const int64_t most = 16 / codegen::elemBytes(sum), known = roles.depth();
  const int64_t vector = !ShapedType::isDynamic(known) && known % most == 0 ? most : 1;
  LogicalResult ok = success();
  auto one = [&] {
    SmallVector<Value> zeros(count, adder.zero());
    FailureOr<SmallVector<Value>> parts =
        stridedLoop(b, team.member, size, b.divU(depth, b.i64(vector)), zeros, isa<FloatType>(sum),
                    [&](Value at, ValueRange before) -> FailureOr<SmallVector<Value>> {
                      Value k = b.mul(at, b.i64(vector));
                      Value x = wide.load(b, line, k, vector);
                      SmallVector<Value> sums(before);
                      for (int64_t i = 0; i < vector; ++i)
                        sums = step(vector == 1 ? x : vector::ExtractOp::create(b, x, i).getResult(), b.add(k, b.i64(i)), sums);
                      return sums;
                    });
    FailureOr<SmallVector<Value>> all = failed(parts) ? parts
                                                      : team.total(SmallVector<Type>(count, sum), *parts, /*commutes=*/true,
                                                                   [&](ValueRange x, ValueRange y) { return addAll(x, y); });
    if (failed(all)) {
      ok = failure();
      return;
    }
    b.ifThen(b.eq(team.member, b.i64(0)), [&] {
      if (failed(store(line, *all)))
        ok = failure();
    });
  };
  if (together == 1)
    one();
  else
    b.ifThen(b.lt(line, lines), one);
  return ok;
}

LogicalResult Skinny::emit() {
  const codegen::Contraction &c = roles.what;
  RankedTensorType type = fewRows ? c.rhs : c.lhs;
  const int64_t line = fewRows ? c.rhsDims[roles.column] : c.lhsDims[roles.row];
  b.setWork(4096);
  return line == type.getRank() - 1 ? strips() : teams();
}

LogicalResult emitSkinny(Operation *op, KernelBuilder &b) { return Skinny(op, b).emit(); }

} // namespace lathe::nvptx
