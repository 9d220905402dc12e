// See Interleave.h.
#include "passes/codegen/cpu/rows/Interleave.h"

#include "passes/codegen/cpu/rows/Elemental.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace lathe::cpu {

using hlo::elementType;
using hlo::tensorType;

/// Whether `v` is made of values that `isEnd` takes and of splats by elementwise ops alone.
static bool elementwiseOf(Value v, llvm::function_ref<bool(Value)> isEnd) {
  SmallVector<Value> work{v};
  llvm::DenseSet<Value> seen;
  while (!work.empty()) {
    Value x = work.pop_back_val();
    if (!seen.insert(x).second || isEnd(x))
      continue;
    Operation *op = x.getDefiningOp();
    auto c = dyn_cast_or_null<hlo::ConstantOp>(op);
    if (c && c.getValue().isSplat())
      continue;
    if (!op || !isElementwise(op))
      return false;
    work.append(op->operand_begin(), op->operand_end());
  }
  return true;
}

static hlo::TransposeOp onlyTranspose(Value root) {
  SmallVector<Value> work{root};
  llvm::SetVector<Operation *> found;
  llvm::DenseSet<Value> seen;
  while (!work.empty()) {
    Value v = work.pop_back_val();
    Operation *op = v.getDefiningOp();
    if (!op || !seen.insert(v).second)
      continue;
    if (isa<hlo::TransposeOp>(op))
      found.insert(op);
    work.append(op->operand_begin(), op->operand_end());
  }
  return found.size() == 1 ? cast<hlo::TransposeOp>(found[0]) : hlo::TransposeOp();
}

/// Sizes of the dimensions that the transpose tells apart, in the input's order, and the permutation of those.
static void mergeDims(hlo::TransposeOp op, SmallVector<AffineExpr> &sizes, SmallVector<int64_t> &perm) {
  auto dims = hlo::getDims(tensorType(op.getOperand()));
  SmallVector<int64_t> order; // of those with more than one element
  for (int64_t p : op.getPermutation())
    if (hlo::constantValue(dims[p]) != 1)
      order.push_back(p);
  auto follows = [&](int64_t next, int64_t p) { // nothing of more than one element between them
    for (int64_t i = p + 1; i < next; ++i)
      if (hlo::constantValue(dims[i]) != 1)
        return false;
    return next > p;
  };
  SmallVector<std::pair<int64_t, AffineExpr>> groups; // first dimension, size; in the result's order
  for (auto [i, p] : llvm::enumerate(order)) {
    if (i > 0 && follows(p, order[i - 1]))
      groups.back().second = hlo::simplify(groups.back().second * dims[p]);
    else
      groups.push_back({p, dims[p]});
  }
  SmallVector<std::pair<int64_t, AffineExpr>> byInput(groups);
  llvm::sort(byInput, [](auto &x, auto &y) { return x.first < y.first; });
  for (auto &g : byInput)
    sizes.push_back(g.second);
  for (auto &g : groups)
    perm.push_back(llvm::find_if(byInput, [&](auto &x) { return x.first == g.first; }) - byInput.begin());
}

/// Sizes and strides of what the transpose moves.
static WhyNot sizesFit(Interleave &r) {
  const WhyNot unknown = WhyNot::notMeant("sizes are known at run time, or 0"), simple = WhyNot::notMeant("it moves no elements past others");
  SmallVector<AffineExpr> sizes;
  SmallVector<int64_t> perm;
  mergeDims(r.op, sizes, perm);
  if (perm.size() < 2)
    return simple;
  const int64_t rank = sizes.size();
  if (perm.back() == rank - 1) {
    std::optional<int64_t> run = hlo::constantValue(sizes.back());
    if (!run || *run == 0)
      return unknown;
    r.run = *run;
    perm.pop_back();
  }
  AffineExpr one = getAffineConstantExpr(1, r.op.getContext());
  SmallVector<AffineExpr> in(rank, one), out(rank, one); // strides, both by dimension of the input
  for (int64_t i = rank - 2; i >= 0; --i)
    in[i] = hlo::simplify(in[i + 1] * sizes[i + 1]);
  AffineExpr step = r.run == 1 ? one : sizes.back();
  for (int64_t d : llvm::reverse(perm)) {
    out[d] = step;
    step = hlo::simplify(step * sizes[d]);
  }
  const int64_t u = perm.back(), v = int64_t(perm.size()) - 1;
  std::optional<int64_t> uSize = hlo::constantValue(sizes[u]), vSize = hlo::constantValue(sizes[v]);
  if (!uSize || !vSize || *uSize == 0 || *vSize == 0)
    return unknown;
  r.u = *uSize;
  r.v = *vSize;
  r.inU = in[u];
  r.outV = out[v];
  for (int64_t d : perm)
    if (d != u && d != v) {
      r.others.push_back(sizes[d]);
      r.inOthers.push_back(in[d]);
      r.outOthers.push_back(out[d]);
    }
  return WhyNot::none();
}

/// Whether vectors hold the elements of all that leads to `root`; the lanes of the widest.
static bool typesFit(Value root, const KernelTarget &target, unsigned &lanes) {
  SmallVector<Value> work{root};
  llvm::DenseSet<Value> seen;
  while (!work.empty()) {
    Value x = work.pop_back_val();
    if (!seen.insert(x).second)
      continue;
    Type elem = elementType(x);
    if (!elem.isIntOrFloat())
      return false;
    lanes = std::min(lanes, target.lanes(elem));
    if (Operation *op = x.getDefiningOp())
      work.append(op->operand_begin(), op->operand_end());
  }
  return ElementEmitter::canVectorize(root);
}

WhyNot whyNotInterleave(ArrayRef<Value> roots, ArrayRef<Value> leaves, const KernelTarget &target, Interleave &r) {
  r = Interleave();
  r.op = roots.size() == 1 ? onlyTranspose(roots[0]) : hlo::TransposeOp();
  if (!r.op || !elementwiseOf(roots[0], [&](Value v) { return v == r.op.getResult(); }))
    return WhyNot::notMeant("there is more than a transpose between elements");
  llvm::SetVector<Value> read;
  bool known = elementwiseOf(r.op.getOperand(), [&](Value v) { return llvm::is_contained(leaves, v) && (read.insert(v), true); });
  if (!known || read.size() != 1)
    return WhyNot::notMeant("it reads more than one operand");
  r.leaf = read[0];
  if (WhyNot why = sizesFit(r); !why.takes())
    return why;
  Type elem = elementType(r.op.getResult());
  r.lanes = 16;
  // what has no vectors is counted as if it had some: whether the sizes would fit
  const bool types = typesFit(roots[0], target, r.lanes) && elem.getIntOrFloatBitWidth() >= 8;
  // All vectors of a block are in registers at once. Longer runs are vectors as they are.
  const int64_t mostVectors = target.numVectorRegs / 2;
  const bool deals = hlo::constantValue(r.inU) == r.v * r.run && r.v * r.run <= mostVectors;
  const bool weaves = hlo::constantValue(r.outV) == r.u * r.run && r.u * r.run <= mostVectors;
  if (r.run >= r.lanes || (!deals && !weaves))
    return WhyNot::notMeant("runs are long, or far apart");
  r.deals = deals && (!weaves || r.u >= r.v);
  while (r.lanes > (r.deals ? r.u : r.v))
    r.lanes /= 2;
  if (r.lanes < 4)
    return WhyNot::notMeant("vectors are short");
  return types ? WhyNot::none() : WhyNot::lacks("elements are complex numbers, or less than a byte");
}

Value pickElements(KernelBuilder &b, ArrayRef<Value> vectors, ArrayRef<int64_t> from) {
  const int64_t lanes = from.size();
  llvm::SetVector<int64_t> used;
  for (int64_t i : from)
    used.insert(i / lanes);
  Value all;
  for (size_t k = 0; k < used.size(); ++k) {
    const bool pair = k == 0 && used.size() > 1; // the first two at once
    SmallVector<int64_t> lane;
    for (auto [at, i] : llvm::enumerate(from)) {
      const int64_t place = llvm::find(used, i / lanes) - used.begin(), within = i % lanes;
      if (k == 0)
        lane.push_back(place == 0 ? within : place == 1 ? lanes + within : 0);
      else
        lane.push_back(place == int64_t(k) ? lanes + within : int64_t(at));
    }
    if (k == 1)
      continue; // done with the first
    Value x = k == 0 ? vectors[used[0]] : all, y = vectors[used[pair ? 1 : k]];
    all = vector::ShuffleOp::create(b, x, y, lane);
  }
  return all;
}

// Two by two as long as the number is even, a logarithm of steps; an odd number all at once.
SmallVector<Value> dealElements(KernelBuilder &b, ArrayRef<Value> vectors) {
  const int64_t n = vectors.size(), lanes = lanesOf(vectors[0].getType());
  SmallVector<Value> all;
  if (n % 2 == 0) {
    SmallVector<Value> half[2];
    for (int64_t i = 0; i < n; i += 2)
      for (int64_t odd = 0; odd < 2; ++odd) {
        SmallVector<int64_t> from;
        for (int64_t l = 0; l < lanes; ++l)
          from.push_back(2 * l + odd);
        half[odd].push_back(pickElements(b, vectors.slice(i, 2), from));
      }
    SmallVector<Value> even = dealElements(b, half[0]), odd = dealElements(b, half[1]);
    for (auto [x, y] : llvm::zip(even, odd))
      all.append({x, y});
    return all;
  }
  if (n == 1)
    return SmallVector<Value>(vectors);
  for (int64_t j = 0; j < n; ++j) {
    SmallVector<int64_t> from;
    for (int64_t l = 0; l < lanes; ++l)
      from.push_back(l * n + j);
    all.push_back(pickElements(b, vectors, from));
  }
  return all;
}

SmallVector<Value> weaveElements(KernelBuilder &b, ArrayRef<Value> vectors) {
  const int64_t n = vectors.size(), lanes = lanesOf(vectors[0].getType());
  SmallVector<Value> all;
  if (n % 2 == 0) {
    SmallVector<Value> half[2];
    for (int64_t i = 0; i < n; ++i)
      half[i % 2].push_back(vectors[i]);
    SmallVector<Value> even = weaveElements(b, half[0]), odd = weaveElements(b, half[1]);
    for (auto [x, y] : llvm::zip(even, odd))
      for (int64_t upper = 0; upper < 2; ++upper) {
        SmallVector<int64_t> from;
        for (int64_t l = upper * lanes; l < (upper + 1) * lanes; ++l)
          from.push_back(l % 2 * lanes + l / 2);
        all.push_back(pickElements(b, {x, y}, from));
      }
    return all;
  }
  if (n == 1)
    return SmallVector<Value>(vectors);
  for (int64_t k = 0; k < n; ++k) {
    SmallVector<int64_t> from;
    for (int64_t i = k * lanes; i < (k + 1) * lanes; ++i)
      from.push_back(i % n * lanes + i / n);
    all.push_back(pickElements(b, vectors, from));
  }
  return all;
}

LogicalResult emitInterleave(KernelBuilder &b, Interleave how, Value root, Value output, Value buffer) {
  const int64_t lanes = how.lanes, run = how.run, small = how.deals ? how.v : how.u, large = how.deals ? how.u : how.v;
  const int64_t vectors = small * run, blocks = llvm::divideCeil(large, lanes);
  // Blocks of a unit: enough work for a thread. The last block of a row begins where it ends with the row.
  const int64_t together = std::max<int64_t>(1, 4096 / (vectors * lanes)), chunks = llvm::divideCeil(blocks, together);
  AffineExpr extent = b.getAffineConstantExpr(chunks);
  SmallVector<Value> unitDims;
  for (AffineExpr d : how.others) {
    extent = hlo::simplify(extent * d);
    unitDims.push_back(b.dim(d));
  }
  unitDims.push_back(b.i64(chunks));
  b.setExtent(extent);
  b.setWork(elementCost(root) * std::min(together, blocks) * vectors * lanes);

  ElementEmitter e(b);
  LogicalResult ok = success();
  SmallVector<Value> zeros(tensorType(root).getRank(), b.i64(0)); // elements are bound, not looked up
  auto compute = [&](Value v, Value bound, Value x) -> Value {
    ElementEmitter::Scope scope(e);
    e.bindElement(bound, [x](ArrayRef<Value>, unsigned) -> FailureOr<Value> { return x; });
    FailureOr<Value> r = e.emit(v, zeros, lanes);
    e.unbindElement(bound);
    if (failed(r)) {
      ok = failure();
      return x;
    }
    return *r;
  };
  // Vector k of the side that is one run, or of the side of `small` runs, which are `stride` apart.
  auto place = [&](Value base, int64_t k, bool one, Value stride) {
    return one ? b.add(base, b.i64(k * lanes)) : b.add(b.add(base, b.mul(stride, b.i64(k / run))), b.i64(k % run * lanes));
  };
  Value inU = b.dim(how.inU), outV = b.dim(how.outV);
  Type inElem = elementType(how.leaf), outElem = elementType(root);
  b.units([&](Value unit) {
    SmallVector<Value> at = b.delinearize(unit, unitDims);
    Value chunk = at.pop_back_val(), in = b.i64(0), out = b.i64(0);
    for (auto [i, x] : llvm::enumerate(at)) {
      in = b.add(in, b.mul(x, b.dim(how.inOthers[i])));
      out = b.add(out, b.mul(x, b.dim(how.outOthers[i])));
    }
    Value first = b.mul(chunk, b.i64(together)), last = b.min(b.add(first, b.i64(together)), b.i64(blocks));
    b.loop(first, last, [&](Value block) {
      Value from = b.min(b.mul(block, b.i64(lanes)), b.i64(large - lanes));
      Value inBase = b.add(in, b.mul(from, how.deals ? inU : b.i64(run)));
      Value outBase = b.add(out, b.mul(from, how.deals ? b.i64(run) : outV));
      SmallVector<Value> loaded;
      for (int64_t k = 0; k < vectors; ++k) {
        Value x = b.loadElem(inElem, buffer, place(inBase, k, how.deals, inU), lanes);
        loaded.push_back(compute(how.op.getOperand(), how.leaf, x));
      }
      SmallVector<Value> turned;
      if (run == 1)
        turned = how.deals ? dealElements(b, loaded) : weaveElements(b, loaded);
      for (int64_t k = 0; run > 1 && k < vectors; ++k) {
        SmallVector<int64_t> sources;
        for (int64_t n = 0; n < lanes; ++n) {
          // element (l, s, r) of the block, l along the large dimension, s along the small one
          if (how.deals) {
            const int64_t within = k % run * lanes + n, s = k / run;
            sources.push_back((within / run * small + s) * run + within % run);
          } else {
            const int64_t within = k * lanes + n, l = within / (small * run), s = within / run % small;
            sources.push_back(s * run * lanes + l * run + within % run);
          }
        }
        turned.push_back(pickElements(b, loaded, sources));
      }
      for (auto [k, x] : llvm::enumerate(turned))
        b.storeElem(outElem, compute(root, how.op.getResult(), x), output, place(outBase, k, !how.deals, outV));
    });
  });
  return ok;
}

} // namespace lathe::cpu
