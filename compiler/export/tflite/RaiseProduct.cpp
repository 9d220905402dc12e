// Products: FULLY_CONNECTED with constant weights, else BATCH_MATMUL.
#include "compiler/export/tflite/Raiser.h"

#include "passes/simplify/Match.h"

using namespace mlir;

namespace lathe::tflwrite {
namespace {

/// One side of a product: which of its dimensions are batch, its own and summed over.
struct Side {
  Value value;
  SmallVector<int64_t> batch, own, summed;
};

Side sideOf(Value value, ArrayRef<int64_t> batch, ArrayRef<int64_t> summed) {
  Side s{value, llvm::to_vector(batch), {}, llvm::to_vector(summed)};
  for (int64_t d = 0; d < hlo::tensorType(value).getRank(); ++d)
    if (!llvm::is_contained(batch, d) && !llvm::is_contained(summed, d))
      s.own.push_back(d);
  return s;
}

AffineExpr count(Value v, ArrayRef<int64_t> dims, Raiser &r) {
  SmallVector<AffineExpr> sizes;
  for (int64_t d : dims)
    sizes.push_back(hlo::getDim(hlo::tensorType(v), d));
  return hlo::numElements(sizes, r.b.getContext());
}

/// [batch..., a, b] with the dimensions of each group made one; `swapped` says that the value lies as [batch..., b, a] and stays so.
Value asMatrix(const Side &s, ArrayRef<int64_t> first, ArrayRef<int64_t> second, bool &swapped, bool flatBatch, Raiser &r) {
  SmallVector<int64_t> straight(s.batch), crossed(s.batch);
  straight.append(first.begin(), first.end());
  straight.append(second.begin(), second.end());
  crossed.append(second.begin(), second.end());
  crossed.append(first.begin(), first.end());
  swapped = llvm::is_sorted(crossed) && !llvm::is_sorted(straight);
  SmallVector<AffineExpr> dims;
  if (flatBatch)
    dims.push_back(count(s.value, s.batch, r));
  else
    for (int64_t d : s.batch)
      dims.push_back(hlo::getDim(hlo::tensorType(s.value), d));
  dims.push_back(count(s.value, swapped ? second : first, r));
  dims.push_back(count(s.value, swapped ? first : second, r));
  if (llvm::is_contained(dims, AffineExpr())) {
    (void)r.refuse("a size that is not known");
    return {};
  }
  return r.reshape(r.transpose(s.value, swapped ? crossed : straight), dims);
}

LogicalResult dot(Operation *op, Raiser &r) { return r.replace(op, raiseDot(cast<hlo::DotGeneralOp>(op), {}, r)); }

} // namespace

Value raiseDot(hlo::DotGeneralOp op, Value bias, Raiser &r) {
  auto dims = op.getDotDimensionNumbers();
  Side lhs = sideOf(op.getLhs(), dims.getLhsBatchingDimensions(), dims.getLhsContractingDimensions());
  Side rhs = sideOf(op.getRhs(), dims.getRhsBatchingDimensions(), dims.getRhsContractingDimensions());
  RankedTensorType type = hlo::tensorType(op.getResult());
  Type element = type.getElementType();
  auto alike = [&](Value v) { return hlo::elementType(v).isF32() == element.isF32(); };
  if (!isReal(element) || !isReal(hlo::elementType(lhs.value)) || !alike(lhs.value) || !alike(rhs.value)) {
    (void)r.refuse("products are of f32 only");
    return {};
  }
  bool weights = lhs.batch.empty() && isWeights(rhs.value);
  if (bias && (!weights || rhs.own.size() != 1))
    return {};
  bool swapped;
  if (weights) {
    SmallVector<int64_t> order(rhs.own);
    order.append(rhs.summed);
    AffineExpr n = count(rhs.value, rhs.own, r), k = count(rhs.value, rhs.summed, r);
    Value filter = r.reshape(r.transpose(rhs.value, order), {n, k});
    SmallVector<int64_t> rows(lhs.own);
    rows.append(lhs.summed);
    // dimensions of its own stay, up to four in all
    SmallVector<AffineExpr> shape;
    if (lhs.own.size() <= 3 && !lhs.own.empty())
      for (int64_t d : lhs.own)
        shape.push_back(hlo::getDim(hlo::tensorType(lhs.value), d));
    else
      shape.push_back(count(lhs.value, lhs.own, r));
    shape.push_back(k);
    Value x = r.reshape(r.transpose(lhs.value, rows), shape);
    SmallVector<Value> operands = {x, filter};
    if (bias)
      operands.push_back(bias);
    shape.back() = n;
    SmallVector<Raiser::Option> options;
    if (shape.size() > 2)
      options.push_back({"keep_num_dims", r.flag(true)});
    return r.reshape(r.make("FULLY_CONNECTED", operands, hlo::makeType(shape, element), options), type);
  }
  if (bias)
    return {};
  bool flat = lhs.batch.size() > 3, transposeY;
  Value x = asMatrix(lhs, lhs.own, lhs.summed, swapped, flat, r);
  Value y = asMatrix(rhs, rhs.summed, rhs.own, transposeY, flat, r);
  if (!x || !y)
    return {};
  SmallVector<AffineExpr> shape = hlo::getDims(hlo::tensorType(x));
  shape[shape.size() - 2] = count(lhs.value, lhs.own, r);
  shape.back() = count(rhs.value, rhs.own, r);
  SmallVector<Raiser::Option> options;
  if (swapped)
    options.push_back({"adj_x", r.flag(true)});
  if (transposeY)
    options.push_back({"adj_y", r.flag(true)});
  return r.reshape(r.make("BATCH_MATMUL", {x, y}, hlo::makeType(shape, element), options), type);
}

void addProductHandlers(HandlerTable &t) { t["dot_general"].push_back(dot); }

} // namespace lathe::tflwrite
