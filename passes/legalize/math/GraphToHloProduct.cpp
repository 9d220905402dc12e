// Matrix products and Einsum.
#include "passes/legalize/NodeContext.h"
#include "llvm/ADT/SmallSet.h"

using namespace mlir;

namespace lathe::legalize {
namespace {

Value conjugate(NodeContext &c, Value x) { return Emitter::isComplex(x) ? c.unary<hlo::ConjOp>(x) : x; }

LogicalResult lowerMatMul(NodeContext &c) {
  if (failed(c.expectRank(0, 2)) || failed(c.expectRank(1, 2)))
    return failure();
  Value x = c.input(0), y = c.input(1);
  // SparseMatMul takes f32 and bf16 mixed.
  Type result = c.resultType(0);
  if (Emitter::elementType(x) != Emitter::elementType(y)) {
    x = c.convert(x, result);
    y = c.convert(y, result);
  }
  // grad_a and grad_b only say that the product belongs to a gradient
  Value product = c.dot(x, y, {}, {}, {c.attrBool("transpose_a") ? 0 : 1}, {c.attrBool("transpose_b") ? 1 : 0});
  return c.setResult(0, c.convert(product, result));
}

LogicalResult lowerBatchMatMul(NodeContext &c) {
  Value x = c.input(0), y = c.input(1);
  Type result = c.resultType(0);
  if (Emitter::rank(x) < 2 || Emitter::rank(y) < 2)
    return c.error("inputs must have rank 2 at least");
  if (Emitter::elementType(x) != Emitter::elementType(y) || Emitter::elementType(x) != result) {
    x = c.convert(x, result);
    y = c.convert(y, result);
  }
  bool adjX = c.attrBool("adj_x"), adjY = c.attrBool("adj_y");
  if (adjX)
    x = conjugate(c, x);
  if (adjY)
    y = conjugate(c, y);
  Dims dx = c.dims(x), dy = c.dims(y), batch;
  Dims bx(dx.begin(), dx.end() - 2), by(dy.begin(), dy.end() - 2);
  // A matrix without batch on the right is one product of all rows.
  if (by.empty() && !bx.empty() && !adjX) {
    int64_t last = dx.size() - 1;
    return c.setResult(0, c.dot(x, y, {}, {}, {last}, {adjY ? 1 : 0}));
  }
  if (!c.broadcastDims({bx, by}, batch))
    return failure();
  auto widen = [&](Value v, const Dims &dims) {
    Dims to = batch;
    to.append(dims.end() - 2, dims.end());
    return c.broadcastTo(v, to);
  };
  x = widen(x, dx);
  y = widen(y, dy);
  int64_t n = batch.size();
  auto axes = llvm::to_vector(llvm::seq<int64_t>(0, n));
  return c.setResult(0, c.dot(x, y, axes, axes, {adjX ? n : n + 1}, {adjY ? n + 1 : n}));
}

//===----------------------------------------------------------------------===//
// Einsum
//===----------------------------------------------------------------------===//

/// Labels are characters; the dimensions under "..." get numbers from 256 on, counted from the right.
using Labels = SmallVector<int, 8>;

bool isLabel(char ch) { return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z'); }

FailureOr<Labels> parseLabels(NodeContext &c, StringRef text, int64_t rank, int64_t &ellipsisRank) {
  Labels labels;
  size_t dots = text.find("...");
  int64_t named = text.size() - (dots == StringRef::npos ? 0 : 3);
  if (rank >= 0) {
    if (dots == StringRef::npos ? named != rank : named > rank)
      return c.error("'" + text + "' does not fit an input of rank " + Twine(rank));
    if (dots != StringRef::npos)
      ellipsisRank = std::max(ellipsisRank, rank - named);
  }
  int64_t hidden = rank >= 0 ? rank - named : ellipsisRank;
  for (size_t i = 0; i < text.size();) {
    if (i == dots) {
      for (int64_t k = hidden; k-- > 0;)
        labels.push_back(256 + int(k));
      i += 3;
      continue;
    }
    if (!isLabel(text[i]))
      return c.error("unexpected '" + Twine(text[i]) + "' in the equation");
    labels.push_back(static_cast<unsigned char>(text[i]));
    ++i;
  }
  return labels;
}

/// Keeps one of several dimensions with the same label: the diagonal.
Value takeDiagonals(NodeContext &c, Value x, Labels &labels) {
  for (size_t i = 0; i < labels.size(); ++i)
    for (size_t j = i + 1; j < labels.size();) {
      if (labels[i] != labels[j]) {
        ++j;
        continue;
      }
      if (!c.ctx.unify(c.dim(x, i), c.dim(x, j), c.name())) {
        (void)c.error("dimensions of one label differ");
        return {};
      }
      Dims dims = c.dims(x);
      Type i64 = c.b.getI64Type();
      Value on = c.compare(Compare::EQ, c.iota(dims, i, i64), c.iota(dims, j, i64));
      x = c.reduceSum(c.select(on, x, c.like(x, 0)), {int64_t(j)});
      labels.erase(labels.begin() + j);
    }
  return x;
}

Value sumLabels(NodeContext &c, Value x, Labels &labels, llvm::function_ref<bool(int)> drop) {
  SmallVector<int64_t> axes;
  Labels kept;
  for (auto [i, label] : llvm::enumerate(labels)) {
    if (drop(label))
      axes.push_back(i);
    else
      kept.push_back(label);
  }
  labels = kept;
  return c.reduceSum(x, axes);
}

LogicalResult lowerEinsum(NodeContext &c) {
  StringRef equation = c.attrString("equation");
  std::string noSpaces;
  for (char ch : equation)
    if (ch != ' ')
      noSpaces += ch;
  equation = noSpaces;
  auto [left, right] = equation.split("->");
  if (!equation.contains("->"))
    return c.error("the equation has no output");
  SmallVector<StringRef> parts;
  left.split(parts, ',');
  if (parts.size() != c.numInputs() || parts.size() > 2)
    return c.error("expected an equation for " + Twine(c.numInputs()) + " inputs (1 or 2), found '" + equation + "'");

  SmallVector<Value> values;
  SmallVector<Labels> labels;
  int64_t hidden = 0;
  for (auto [i, part] : llvm::enumerate(parts)) {
    values.push_back(c.input(i));
    auto l = parseLabels(c, part, Emitter::rank(values[i]), hidden);
    if (failed(l))
      return failure();
    labels.push_back(*l);
  }
  auto output = parseLabels(c, right, -1, hidden);
  if (failed(output))
    return failure();
  auto has = [](ArrayRef<int> list, int label) { return llvm::is_contained(list, label); };
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = takeDiagonals(c, values[i], labels[i]);
    if (!values[i])
      return failure();
    values[i] = sumLabels(c, values[i], labels[i], [&](int label) {
      return !has(*output, label) && (values.size() == 1 || !has(labels[1 - i], label));
    });
  }
  Value result = values[0];
  Labels have = labels[0];
  if (values.size() == 2) {
    // Under "..." one side may have size 1 where the other has more: that side loses the dimension.
    for (size_t i = 0; i < 2; ++i) {
      Value other = values[1 - i];
      values[i] = sumLabels(c, values[i], labels[i], [&](int label) {
        if (label < 256 || !has(labels[1 - i], label))
          return false;
        auto mine = c.dim(values[i], llvm::find(labels[i], label) - labels[i].begin());
        auto theirs = c.dim(other, llvm::find(labels[1 - i], label) - labels[1 - i].begin());
        return constantOf(mine) == int64_t(1) && constantOf(theirs) != int64_t(1);
      });
    }
    SmallVector<int64_t> xb, yb, xc, yc;
    have.clear();
    for (auto [i, label] : llvm::enumerate(labels[0])) {
      auto at = llvm::find(labels[1], label);
      if (at == labels[1].end())
        continue;
      int64_t j = at - labels[1].begin();
      if (has(*output, label)) {
        xb.push_back(i);
        yb.push_back(j);
        have.push_back(label);
      } else {
        xc.push_back(i);
        yc.push_back(j);
      }
    }
    for (auto [i, label] : llvm::enumerate(labels[0]))
      if (!llvm::is_contained(xb, int64_t(i)) && !llvm::is_contained(xc, int64_t(i)))
        have.push_back(label);
    for (auto [j, label] : llvm::enumerate(labels[1]))
      if (!llvm::is_contained(yb, int64_t(j)) && !llvm::is_contained(yc, int64_t(j)))
        have.push_back(label);
    result = c.dot(values[0], values[1], xb, yb, xc, yc);
    if (!result)
      return failure();
  }
  // The labels of the output, each once, then those that occur again (a diagonal).
  Labels once;
  for (int label : *output) {
    if (!has(have, label))
      return c.error("an output label is in no input");
    if (!has(once, label))
      once.push_back(label);
  }
  SmallVector<int64_t> permutation;
  for (int label : once)
    permutation.push_back(llvm::find(have, label) - have.begin());
  result = c.transpose(result, permutation);
  if (once.size() != output->size()) {
    Dims dims;
    SmallVector<int64_t> map;
    for (int label : once)
      map.push_back(llvm::find(*output, label) - output->begin());
    for (int label : *output)
      dims.push_back(c.dim(result, llvm::find(once, label) - once.begin()));
    result = c.broadcastInDim(result, dims, map);
    Type i64 = c.b.getI64Type();
    for (size_t i = 0; i < output->size(); ++i)
      for (size_t j = i + 1; j < output->size(); ++j)
        if ((*output)[i] == (*output)[j])
          result = c.select(c.compare(Compare::EQ, c.iota(dims, i, i64), c.iota(dims, j, i64)), result, c.like(result, 0));
  }
  return c.setResult(0, result);
}

LogicalResult lowerCross(NodeContext &c) {
  Value x = c.input(0), y = c.input(1);
  int64_t last = Emitter::rank(x) - 1;
  if (last < 0 || constantOf(c.dim(x, last)) != int64_t(3) || Emitter::type(x) != Emitter::type(y))
    return c.error("expected two inputs of equal shape whose last dimension is 3");
  auto turned = [&](Value v, int64_t by) {
    Value head = c.sliceDim(v, last, c.size(0), c.size(by)), tail = c.sliceDim(v, last, c.size(by), c.size(3));
    return c.concat({tail, head}, last);
  };
  return c.setResult(0, c.sub(c.mul(turned(x, 1), turned(y, 2)), c.mul(turned(x, 2), turned(y, 1))));
}

} // namespace

void registerProduct(HandlerTable &t) {
  t.add("MatMul", 2, lowerMatMul);
  t.add("SparseMatMul", 2, lowerMatMul);
  t.add("BatchMatMul", 2, lowerBatchMatMul);
  t.add("BatchMatMulV2", 2, lowerBatchMatMul);
  t.add("BatchMatMulV3", 2, lowerBatchMatMul);
  t.add("Einsum", HandlerTable::atLeast(1), lowerEinsum);
  t.add("XlaEinsum", 2, lowerEinsum);
  t.add("Cross", 2, lowerCross);
}

} // namespace lathe::legalize
