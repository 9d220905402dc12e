// Loop nests over whole results: units of rows, vectors along the last dimension, tiles where a transpose is read.
#include "passes/codegen/cpu/rows/Elemental.h"

#include "dialects/hlo/Hlo.h"
#include "passes/codegen/cpu/product/Narrowing.h"
#include "passes/codegen/cpu/rows/Interleave.h"
#include "passes/codegen/element/Expr.h"
#include "passes/codegen/element/Shortcut.h"
#include "passes/codegen/element/Special.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace lathe::cpu {

using hlo::elementType;
using hlo::tensorType;

// Elements of a flat loop that make one parallel unit.
static constexpr int64_t kFlatUnit = 8192;

namespace {
/// The transposes that a set of roots reads, all alike: result dimension `dim` is the operand's last.
struct Transposed {
  int64_t dim = -1;
  SmallVector<hlo::TransposeOp> ops;
  bool tiles = true; ///< nothing but elementwise ops after them, consecutive reads before them
};
} // namespace

static Transposed findTransposes(ArrayRef<Value> roots) {
  Transposed r;
  walkOps(roots, [&](Operation *op) {
    auto t = dyn_cast<hlo::TransposeOp>(op);
    if (!t || keepsLanes(op)) {
      r.tiles &= keepsLanes(op);
      return;
    }
    auto perm = t.getPermutation();
    int64_t last = perm.size() - 1;
    if (int64_t(perm.size()) != tensorType(roots[0]).getRank()) {
      r.tiles = false;
      return;
    }
    for (int64_t i = 0; i < last; ++i)
      if (perm[i] == last) {
        r.tiles &= r.dim < 0 || r.dim == i;
        r.dim = i;
      }
    r.ops.push_back(t);
  });
  // between a transpose and the roots indices must stay what they are
  llvm::DenseSet<Value> below;
  SmallVector<Value> work(roots);
  while (!work.empty()) {
    Value v = work.pop_back_val();
    Operation *op = v.getDefiningOp();
    if (!op || !below.insert(v).second)
      continue;
    if (isElementwise(op)) {
      work.append(op->operand_begin(), op->operand_end());
    } else { // other ops change indices, and so does another transpose
      walkOps(SmallVector<Value>(op->getOperands()), [&](Operation *o) { r.tiles &= !llvm::is_contained(r.ops, o); });
    }
  }
  return r;
}

/// What keeps squares of vectors from these roots.
static WhyNot whyNotSquares(ArrayRef<Value> roots, const Transposed &transposed) {
  if (!transposed.tiles)
    return WhyNot::notMeant("other operations than those of elements follow, or transposes differ");
  bool vectors = llvm::all_of(roots, ElementEmitter::canVectorize);
  for (hlo::TransposeOp op : transposed.ops)
    vectors &= !isa<ComplexType>(elementType(op.getResult()));
  return vectors ? WhyNot::none() : WhyNot::lacks("complex numbers are not turned in registers");
}

// Square of vectors, v[i][j] -> v[j][i], by exchanging halves at every distance.
static void transposeSquare(KernelBuilder &b, SmallVectorImpl<Value> &v) {
  int64_t n = v.size();
  for (int64_t s = 1; s < n; s *= 2) {
    SmallVector<int64_t> first, second;
    for (int64_t l = 0; l < n; ++l) {
      first.push_back(l & s ? n + l - s : l);
      second.push_back(l & s ? n + l : l + s);
    }
    for (int64_t i = 0; i < n; ++i) {
      if (i & s)
        continue;
      Value x = v[i], y = v[i | s];
      v[i] = vector::ShuffleOp::create(b, x, y, first);
      v[i | s] = vector::ShuffleOp::create(b, x, y, second);
    }
  }
}

namespace {
/// A loop nest over whole results.
class ElementalEmitter {
public:
  ElementalEmitter(KernelBuilder &b, ArrayRef<Value> givenRoots, ArrayRef<Value> outputs, ArrayRef<Value> leaves, ArrayRef<Value> buffers,
                   ArrayRef<int64_t> outputRows, ArrayRef<int64_t> leafRows, bool dense, bool allDense);
  LogicalResult emit();

private:
  static SmallVector<int64_t> labelsOf(Value root, bool allDense);
  LogicalResult store(ArrayRef<Value> index, unsigned lanes, Value mask);
  LogicalResult storeTogether(ArrayRef<Value> index, unsigned count);
  Value fours(ArrayRef<Value> lead, Value lo, Value hi);
  /// How the only root becomes bytes, where four vectors make them together.
  Narrowing narrowing() const { return roots.size() == 1 && Narrowing::packs(b.target, lanes) ? Narrowing::of(roots[0]) : Narrowing(); }
  void emitFlat();
  void emitTransposed();
  void turnSquare(ArrayRef<Value> at, Value i, Value j);
  void emitTile(ArrayRef<Value> at, Value iLo, Value iHi, Value jLo, Value jHi);
  void emitRows();

  KernelBuilder &b;
  ArrayRef<Value> outputs;
  const bool dense;
  Collapsed collapsed;
  ArrayRef<Value> roots;
  ElementEmitter e;
  const int64_t rank;
  const SmallVector<AffineExpr> exprs;
  SmallVector<Value> dims;
  SmallVector<SmallVector<Value>> outputDims; ///< of outputs whose rows lie apart
  const int64_t cost;
  unsigned lanes = 1;
  bool masked = false;
  Transposed transposed;
  LogicalResult ok = success();

  static constexpr int64_t tile = 16, square = 8;
};
} // namespace

SmallVector<int64_t> ElementalEmitter::labelsOf(Value root, bool allDense) {
  SmallVector<int64_t> labels; // rows of their own stay apart
  if (!allDense) {
    labels.assign(tensorType(root).getRank(), 0);
    labels.back() = 1;
  }
  return labels;
}

ElementalEmitter::ElementalEmitter(KernelBuilder &b, ArrayRef<Value> givenRoots, ArrayRef<Value> outputs, ArrayRef<Value> leaves,
                                   ArrayRef<Value> buffers, ArrayRef<int64_t> outputRows, ArrayRef<int64_t> leafRows, bool dense,
                                   bool allDense)
    : b(b), outputs(outputs), dense(dense), collapsed(givenRoots, leaves, labelsOf(givenRoots[0], allDense)), roots(collapsed.roots),
      e(b), rank(tensorType(roots[0]).getRank()), exprs(hlo::getDims(tensorType(roots[0]))), cost(elementCost(roots)) {
  for (auto [leaf, view] : collapsed.views)
    for (size_t i = 0; i < leaves.size(); ++i)
      if (leaves[i] == leaf)
        e.bindBuffer(view, buffers[i], leafRows.empty() ? 0 : leafRows[i]);
  auto type = tensorType(roots[0]);
  dims = b.dims(type);
  for (size_t i = 0; i < roots.size() && !dense; ++i)
    outputDims.push_back(b.rowDims(type, outputRows[i]));
}

LogicalResult ElementalEmitter::store(ArrayRef<Value> index, unsigned lanes, Value mask) {
  ElementEmitter::Scope scope(e);
  e.mask = mask;
  Value linear = dense ? b.linearize(index, dims) : Value();
  SmallVector<Value> values;
  for (Value r : roots) {
    FailureOr<Value> v = e.emit(r, index, lanes);
    if (failed(v))
      return failure();
    values.push_back(*v);
  }
  e.mask = Value();
  for (auto [i, r] : llvm::enumerate(roots))
    b.storeElem(elementType(r), values[i], outputs[i], dense ? linear : b.linearize(index, outputDims[i]), mask);
  return success();
}

/// Up to four vectors that follow each other from an index on.
LogicalResult ElementalEmitter::storeTogether(ArrayRef<Value> index, unsigned count) {
  ElementEmitter::Scope scope(e);
  const Narrowing narrowing = this->narrowing();
  SmallVector<SmallVector<Value>> indices(count, SmallVector<Value>(index));
  for (int64_t i = 1; i < count; ++i)
    indices[i].back() = b.add(index.back(), b.i64(i * lanes));
  auto values = codegen::emitTogether(e, narrowing.wide ? ArrayRef<Value>(narrowing.wide) : roots, count, lanes,
                                      [&](unsigned i) -> ArrayRef<Value> { return indices[i]; });
  if (failed(values))
    return failure();
  auto storeAt = [&](ArrayRef<Value> at, unsigned root, Value v) {
    b.storeElem(elementType(roots[root]), v, outputs[root], b.linearize(at, dense ? dims : outputDims[root]));
  };
  if (narrowing.wide) {
    SmallVector<Value> wide;
    for (unsigned i = 0; i < 4; ++i)
      wide.push_back((*values)[std::min(i, count - 1)].front());
    Value bytes = Narrowing::inOrder(b, narrowing.pack(b, wide));
    for (unsigned i = 0, n = 4; i < count; n /= 2) {
      if (i + n > count)
        continue;
      SmallVector<int64_t> pick = llvm::to_vector(llvm::seq<int64_t>(i * lanes, (i + n) * lanes));
      storeAt(indices[i], 0, n == 4 ? bytes : Value(vector::ShuffleOp::create(b, bytes, bytes, pick)));
      i += n;
    }
    return success();
  }
  for (unsigned i = 0; i < count; ++i)
    for (unsigned root = 0; root < roots.size(); ++root)
      storeAt(indices[i], root, (*values)[i][root]);
  return success();
}

/// Fours of vectors from `lo` on where these share something, and of a row of a known number of vectors what is left; returns where
/// they end.
Value ElementalEmitter::fours(ArrayRef<Value> lead, Value lo, Value hi) {
  if (lanes == 1 || !(narrowing().wide || codegen::hasShortcuts(roots)))
    return lo;
  auto store = [&](Value i, unsigned count) {
    SmallVector<Value> index(lead);
    index.push_back(i);
    if (failed(storeTogether(index, count)))
      ok = failure();
  };
  Value step = b.i64(4 * lanes), mid = b.add(lo, b.mul(b.divU(b.max(b.sub(hi, lo), b.i64(0)), step), step));
  b.loop(lo, mid, step, [&](Value i) { store(i, 4); });
  const std::optional<int64_t> first = constantOf(mid), last = constantOf(hi);
  const int64_t left = first && last ? (*last - *first) / lanes : 0;
  if (left < 2)
    return mid;
  store(mid, left);
  return b.add(mid, b.i64(left * lanes));
}

LogicalResult ElementalEmitter::emit() {
  if (rank == 0) {
    b.setWork(cost);
    b.units([&](Value) { ok = store({}, 1, Value()); });
    return ok;
  }
  lanes = chooseLanes(roots, b.target);
  masked = lanes > 1 && masksPay(roots, b.target);
  if (auto n = hlo::constantValue(exprs.back()); n && *n < lanes) {
    // a short row: a vector that it fills, else single elements
    unsigned fit = 1;
    while (fit * 2 <= *n)
      fit *= 2;
    lanes = masked && *n * 2 > lanes ? lanes : (fit >= 4 ? fit : 1);
  }
  transposed = findTransposes(roots);
  if (rank > 1 && transposed.dim >= 0)
    transposed.tiles = chooseSpecial(b, "turned-squares", whyNotSquares(roots, transposed));
  const bool turned = rank > 1 && transposed.dim >= 0 && (lanes == 1 || transposed.tiles);
  chooseSpecial(b, rank == 1 ? "loop-flat" : turned ? "loop-turned" : "loop-rows", WhyNot::none());
  if (rank == 1)
    emitFlat();
  else if (turned)
    emitTransposed();
  else
    emitRows();
  return ok;
}

void ElementalEmitter::emitFlat() {
  b.setExtent(hlo::ceilDiv(exprs[0], kFlatUnit));
  b.setWork(cost * kFlatUnit);
  b.units([&](Value u) {
    Value lo = b.mul(u, b.i64(kFlatUnit));
    Value hi = b.min(b.add(lo, b.i64(kFlatUnit)), dims[0]);
    lo = fours({}, lo, hi);
    if (failed(vectorLoop(b, lo, hi, lanes, masked, [&](Value i, unsigned n, Value mask) { return store({i}, n, mask); })))
      ok = failure();
  });
}

/// 8 x 8 elements: vectors along the operand's last dimension, turned, vectors along the result's.
void ElementalEmitter::turnSquare(ArrayRef<Value> at, Value i, Value j) {
  ElementEmitter::Scope scope(e);
  const int64_t t = transposed.dim;
  unsigned row = 0;
  for (hlo::TransposeOp op : transposed.ops) {
    auto perm = op.getPermutation();
    SmallVector<Value> v;
    for (int64_t k = 0; k < square; ++k) {
      SmallVector<Value> index(at), from(perm.size());
      index[t] = i;
      index.push_back(b.add(j, b.i64(k)));
      for (auto [d, p] : llvm::enumerate(perm))
        from[p] = index[d];
      FailureOr<Value> x = e.emit(op.getOperand(), from, square);
      if (failed(x)) {
        ok = failure();
        return;
      }
      v.push_back(*x);
    }
    transposeSquare(b, v);
    e.bindElement(op.getResult(), [v, &row](ArrayRef<Value>, unsigned) -> FailureOr<Value> { return v[row]; });
  }
  for (row = 0; row < square; ++row) {
    SmallVector<Value> index(at);
    index[t] = b.add(i, b.i64(row));
    index.push_back(j);
    if (failed(store(index, square, Value())))
      ok = failure();
  }
  for (hlo::TransposeOp op : transposed.ops)
    e.unbindElement(op.getResult());
}

/// Single elements, in pieces that the first cache holds.
void ElementalEmitter::emitTile(ArrayRef<Value> at, Value iLo, Value iHi, Value jLo, Value jHi) {
  b.loop(jLo, jHi, b.i64(tile), [&](Value j0) {
    Value j1 = b.min(b.add(j0, b.i64(tile)), jHi);
    b.loop(iLo, iHi, [&](Value i) {
      b.loop(j0, j1, [&](Value j) {
        SmallVector<Value> index(at);
        index[transposed.dim] = i;
        index.push_back(j);
        if (failed(store(index, 1, Value())))
          ok = failure();
      });
    });
  });
}

/// Units: blocks of the dimension that the operand holds consecutively, times the dimensions outside it.
void ElementalEmitter::emitTransposed() {
  const int64_t t = transposed.dim;
  SmallVector<Value> unitDims;
  AffineExpr extent = b.getAffineConstantExpr(1);
  for (int64_t i = 0; i + 1 < rank; ++i) {
    AffineExpr d = i == t ? hlo::ceilDiv(exprs[i], tile) : exprs[i];
    unitDims.push_back(b.dim(d));
    extent = hlo::simplify(extent * d);
  }
  b.setExtent(extent);
  b.setWork(cost * tile * hlo::constantValue(exprs.back()).value_or(256));
  b.units([&](Value u) {
    ElementEmitter::Scope scope(e);
    SmallVector<Value> at = b.delinearize(u, unitDims);
    Value lo = b.mul(at[t], b.i64(tile)), hi = b.min(b.add(lo, b.i64(tile)), dims[t]);
    if (!transposed.tiles)
      return emitTile(at, lo, hi, b.i64(0), dims.back());
    Value mid = b.sub(hi, b.remU(b.sub(hi, lo), b.i64(square)));
    Value jMid = b.sub(dims.back(), b.remU(dims.back(), b.i64(square)));
    b.loop(b.i64(0), jMid, b.i64(square), [&](Value j) {
      b.loop(lo, mid, b.i64(square), [&](Value i) { turnSquare(at, i, j); });
    });
    // what does not fill a square
    emitTile(at, mid, hi, b.i64(0), jMid);
    emitTile(at, lo, hi, jMid, dims.back());
  });
}

void ElementalEmitter::emitRows() {
  AffineExpr rows = b.getAffineConstantExpr(1);
  for (int64_t i = 0; i + 1 < rank; ++i)
    rows = hlo::simplify(rows * exprs[i]);
  b.setExtent(rows);
  b.setWork(cost * hlo::constantValue(exprs.back()).value_or(256));
  b.units([&](Value row) {
    ElementEmitter::Scope scope(e);
    SmallVector<Value> lead = b.delinearize(row, ValueRange(dims).drop_back());
    auto rest = [&](Value j, unsigned n, Value mask) {
      SmallVector<Value> index(lead);
      index.push_back(j);
      return store(index, n, mask);
    };
    if (failed(vectorLoop(b, fours(lead, b.i64(0), dims.back()), dims.back(), lanes, masked, rest)))
      ok = failure();
  });
}

LogicalResult emitElemental(KernelBuilder &b, ArrayRef<Value> roots, ArrayRef<Value> outputs, ArrayRef<Value> leaves,
                            ArrayRef<Value> buffers, ArrayRef<int64_t> outputRows, ArrayRef<int64_t> leafRows) {
  auto isDense = [](int64_t row) { return row == 0; };
  const bool dense = llvm::all_of(outputRows, isDense), allDense = dense && llvm::all_of(leafRows, isDense);
  Interleave how;
  if (allDense && chooseSpecial(b, "interleave", whyNotInterleave(roots, leaves, b.target, how)))
    return emitInterleave(b, how, roots[0], outputs[0], buffers[llvm::find(leaves, how.leaf) - leaves.begin()]);
  return ElementalEmitter(b, roots, outputs, leaves, buffers, outputRows, leafRows, dense, allDense).emit();
}

} // namespace lathe::cpu
