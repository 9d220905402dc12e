// Padding and its gradients; moving blocks between space, batch and depth.
#include "passes/legalize/array/ArrayFamilies.h"
#include "dialects/hlo/ShapeBounds.h"
#include "passes/legalize/SizeReader.h"
#include "passes/legalize/array/ArrayHelpers.h"

using namespace mlir;

namespace lathe::legalize {

using SizePair = std::pair<AffineExpr, AffineExpr>;

/// Numbers by a pad, symbolic amounts by pieces of the padding value at both sides.
Value padBySizes(NodeContext &c, Value x, Value with, int64_t from, ArrayRef<SizePair> amounts) {
  SmallVector<int64_t> low(c.rank(x), 0), high(c.rank(x), 0);
  for (auto [i, p] : llvm::enumerate(amounts)) {
    auto l = constantOf(p.first), h = constantOf(p.second);
    if (l && h) {
      low[from + i] = *l;
      high[from + i] = *h;
      continue;
    }
    SmallVector<Value> parts;
    for (int64_t side = 0; side < 2; ++side) {
      AffineExpr n = side ? p.second : p.first;
      if (side == 1)
        parts.push_back(x);
      if (constantOf(n) == int64_t(0))
        continue;
      if (!hlo::isNonNegative(n)) { // the pieces would not fit into the whole
        Type i64 = c.b.getI64Type();
        c.check(c.compare(Compare::GE, c.sizeValue(n, i64), c.scalarInt(0, i64)), "a padding is negative");
      }
      Dims dims = c.dims(x);
      dims[from + i] = n;
      parts.push_back(c.broadcastInDim(with, dims, {}));
    }
    x = c.concat(parts, from + i);
  }
  return c.pad(x, with, low, high);
}

namespace {

/// [rank, 2] amounts, all known.
FailureOr<hlo::PaddingList> paddings(NodeContext &c, unsigned input, int64_t rank, bool mayBeNegative = false) {
  auto flat = c.constantInts(input);
  if (failed(flat))
    return failure();
  if (int64_t(flat->size()) != 2 * rank)
    return c.error("expected paddings of shape [" + Twine(rank) + ",2], found " + Twine(flat->size()) + " numbers");
  hlo::PaddingList list;
  for (int64_t i = 0; i < rank; ++i) {
    list.push_back({(*flat)[2 * i], (*flat)[2 * i + 1]});
    if (!mayBeNegative && (list[i].first < 0 || list[i].second < 0))
      return c.error("a padding is negative");
  }
  return list;
}

/// [rank, 2] amounts, known up to sizes of inputs; those that are numbers are not negative unless they may be.
FailureOr<SmallVector<SizePair>> paddingSizes(NodeContext &c, unsigned input, int64_t rank, bool mayBeNegative = false) {
  auto known = boundedSizes(c, input);
  if (!known || llvm::all_of(*known, [](AffineExpr e) { return constantOf(e).has_value(); })) {
    auto list = paddings(c, input, rank, mayBeNegative);
    if (failed(list))
      return failure();
    return llvm::map_to_vector(*list, [&](auto p) { return SizePair(c.size(p.first), c.size(p.second)); });
  }
  if (int64_t(known->size()) != 2 * rank)
    return c.error("expected paddings of shape [" + Twine(rank) + ",2], found " + Twine(known->size()) + " numbers");
  SmallVector<SizePair> list;
  for (int64_t i = 0; i < rank; ++i) {
    list.push_back({(*known)[2 * i], (*known)[2 * i + 1]});
    for (AffineExpr e : {list[i].first, list[i].second})
      if (auto n = constantOf(e); n && *n < 0 && !mayBeNegative)
        return c.error("a padding is negative");
  }
  return list;
}

LogicalResult lowerPad(NodeContext &c) {
  Value x = c.input(0), with = c.numInputs() > 2 ? c.input(2) : c.scalar(0, c.elementType(x));
  if (c.rank(with) != 0)
    return c.error("the padding value must be a scalar");
  auto list = paddingSizes(c, 1, c.rank(x));
  return failed(list) ? failure() : c.setResult(0, padBySizes(c, x, with, 0, *list));
}

/// Symmetric paddings repeat the border, reflecting ones do not.
FailureOr<bool> isSymmetric(NodeContext &c) {
  StringRef mode = c.attrString("mode");
  if (mode != "SYMMETRIC" && mode != "REFLECT")
    return c.error("mode '" + mode + "' is neither REFLECT nor SYMMETRIC");
  return mode == "SYMMETRIC";
}

} // namespace

Value mirrorPad(NodeContext &c, Value x, unsigned amounts) {
  auto list = paddings(c, amounts, c.rank(x));
  auto symmetric = isSymmetric(c);
  if (failed(list) || failed(symmetric))
    return {};
  int64_t skip = *symmetric ? 0 : 1;
  for (auto [i, p] : llvm::enumerate(*list)) {
    AffineExpr n = c.dim(x, i);
    if (auto size = constantOf(n); size && std::max(p.first, p.second) > *size - skip) {
      (void)c.error("padding " + Twine(std::max(p.first, p.second)) + " is too large for dimension " + Twine(i) + " of size " +
                    Twine(*size));
      return {};
    }
    SmallVector<Value> parts;
    if (p.first)
      parts.push_back(c.reverse(c.sliceDim(x, i, c.size(skip), c.size(skip + p.first)), {int64_t(i)}));
    parts.push_back(x);
    if (p.second)
      parts.push_back(c.reverse(c.sliceDim(x, i, n - (skip + p.second), n - skip), {int64_t(i)}));
    x = c.concat(parts, i);
  }
  return x;
}

namespace {

LogicalResult lowerMirrorPad(NodeContext &c) {
  Value x = mirrorPad(c, c.input(0), 1);
  return x ? c.setResult(0, x) : failure();
}

LogicalResult lowerMirrorPadGrad(NodeContext &c) {
  Value x = c.input(0);
  auto list = paddings(c, 1, c.rank(x));
  auto symmetric = isSymmetric(c);
  if (failed(list) || failed(symmetric))
    return failure();
  int64_t skip = *symmetric ? 0 : 1;
  Value zero = c.scalar(0, c.elementType(x));
  for (int64_t i = 0; i < c.rank(x); ++i) {
    std::pair<int64_t, int64_t> p = (*list)[i];
    auto size = constantOf(c.dim(x, i));
    if (!size)
      return c.error("dimension " + Twine(i) + " must be known");
    int64_t inner = *size - p.first - p.second;
    if (inner < 0 || std::max(p.first, p.second) > inner - skip)
      return c.error("padding is too large for dimension " + Twine(i));
    Value sum = c.sliceDim(x, i, c.size(p.first), c.size(p.first + inner));
    auto addPart = [&](int64_t from, int64_t count, int64_t to) {
      if (!count)
        return;
      Value part = c.reverse(c.sliceDim(x, i, c.size(from), c.size(from + count)), {i});
      SmallVector<int64_t> low(c.rank(x), 0), high(c.rank(x), 0);
      low[i] = to;
      high[i] = inner - to - count;
      sum = c.add(sum, c.pad(part, zero, low, high));
    };
    addPart(0, p.first, skip);
    addPart(p.first + inner, p.second, inner - skip - p.second);
    x = sum;
  }
  return c.setResult(0, x);
}

//===----------------------------------------------------------------------===//
// Space, batch, depth
//===----------------------------------------------------------------------===//

/// Divides a dimension by a block, which must leave no remainder.
FailureOr<AffineExpr> blocksOf(NodeContext &c, AffineExpr size, int64_t block) {
  if (auto n = constantOf(size)) {
    if (*n % block)
      return c.error("size " + Twine(*n) + " is no multiple of block " + Twine(block));
    return c.size(*n / block);
  }
  AffineExpr q = hlo::simplify(size.floorDiv(block));
  c.ctx.requireEqual(q * block, size, c.name());
  return q;
}

LogicalResult checkBlock(NodeContext &c, Value x, ArrayRef<int64_t> block) {
  if (c.rank(x) < int64_t(block.size()) + 1)
    return c.error("rank " + Twine(c.rank(x)) + " is too small for " + Twine(block.size()) + " block dimensions");
  int64_t product = 1;
  for (int64_t b : block) {
    if (b < 1)
      return c.error("a block size is not positive");
    if (b > INT32_MAX || (product *= b) > INT32_MAX)
      return c.error("the block sizes are too large");
  }
  return success();
}

Value spaceToBatch(NodeContext &c, Value x, ArrayRef<int64_t> block, ArrayRef<SizePair> pads) {
  if (failed(checkBlock(c, x, block)))
    return {};
  int64_t m = block.size(), rank = c.rank(x);
  x = padBySizes(c, x, c.scalar(0, c.elementType(x)), 1, pads);
  Dims dims = c.dims(x), split{dims[0]}, result;
  AffineExpr batch = dims[0];
  for (int64_t i = 0; i < m; ++i) {
    auto blocks = blocksOf(c, dims[i + 1], block[i]);
    if (failed(blocks))
      return {};
    split.push_back(*blocks);
    split.push_back(c.size(block[i]));
    batch = batch * block[i];
    result.push_back(*blocks);
  }
  split.append(dims.begin() + m + 1, dims.end());
  result.insert(result.begin(), hlo::simplify(batch));
  result.append(dims.begin() + m + 1, dims.end());
  SmallVector<int64_t> perm;
  for (int64_t i = 0; i < m; ++i)
    perm.push_back(2 * i + 2);
  perm.push_back(0);
  for (int64_t i = 0; i < m; ++i)
    perm.push_back(2 * i + 1);
  for (int64_t i = m + 1; i < rank; ++i)
    perm.push_back(i + m);
  return c.reshape(c.transpose(c.reshape(x, split), perm), result);
}

Value batchToSpace(NodeContext &c, Value x, ArrayRef<int64_t> block, ArrayRef<SizePair> crops) {
  if (failed(checkBlock(c, x, block)))
    return {};
  int64_t m = block.size(), rank = c.rank(x), product = 1;
  for (int64_t b : block)
    product *= b;
  auto batch = blocksOf(c, c.dim(x, 0), product);
  if (failed(batch))
    return {};
  Dims dims = c.dims(x), split, result{*batch};
  for (int64_t b : block)
    split.push_back(c.size(b));
  split.push_back(*batch);
  split.append(dims.begin() + 1, dims.end());
  SmallVector<int64_t> perm{m};
  for (int64_t i = 0; i < m; ++i) {
    perm.push_back(m + 1 + i);
    perm.push_back(i);
    result.push_back(hlo::simplify(dims[i + 1] * block[i]));
  }
  for (int64_t i = m + 1; i < rank; ++i)
    perm.push_back(i + m);
  result.append(dims.begin() + m + 1, dims.end());
  x = c.reshape(c.transpose(c.reshape(x, split), perm), result);
  Dims starts(rank, c.size(0)), limits = c.dims(x);
  for (auto [i, p] : llvm::enumerate(crops)) {
    starts[i + 1] = p.first;
    limits[i + 1] = hlo::simplify(limits[i + 1] - p.second);
    auto first = constantOf(p.first), limit = constantOf(limits[i + 1]);
    if (first && limit && *limit < *first) {
      (void)c.error("the crops exceed dimension " + Twine(i + 1));
      return {};
    }
  }
  return c.slice(x, starts, limits);
}

LogicalResult lowerSpaceBatch(NodeContext &c, bool toBatch, bool nd) {
  Value x = c.input(0);
  SmallVector<int64_t> block;
  if (nd) {
    auto list = c.constantInts(1);
    if (failed(list))
      return failure();
    block = *list;
  } else {
    block.assign(2, c.attrInt("block_size"));
  }
  auto amounts = paddingSizes(c, nd ? 2 : 1, block.size());
  if (failed(amounts))
    return failure();
  return c.setResult(0, toBatch ? spaceToBatch(c, x, block, *amounts) : batchToSpace(c, x, block, *amounts));
}

/// To NHWC and back; NCHW_VECT_C is four channels innermost.
LogicalResult lowerSpaceDepth(NodeContext &c, bool toDepth) {
  Value x = c.input(0);
  StringRef format = c.attrString("data_format", "NHWC");
  int64_t block = c.attrInt("block_size");
  if (block < 1 || block > 32768) // its square counts channels
    return c.error("block_size must be between 1 and 32768, found " + Twine(block));
  if (format != "NHWC" && format != "NCHW")
    return c.error("data format " + format + " is not supported");
  if (c.rank(x) != 4)
    return c.error("expected rank 4, found " + Twine(c.rank(x)));
  if (format == "NCHW")
    x = c.transpose(x, {0, 2, 3, 1});
  Dims d = c.dims(x);
  Value result;
  AffineExpr b = c.size(block);
  if (toDepth) {
    auto h = blocksOf(c, d[1], block), w = blocksOf(c, d[2], block);
    if (failed(h) || failed(w))
      return failure();
    Value split = c.transpose(c.reshape(x, Dims{d[0], *h, b, *w, b, d[3]}), {0, 1, 3, 2, 4, 5});
    result = c.reshape(split, Dims{d[0], *h, *w, hlo::simplify(d[3] * (block * block))});
  } else {
    auto depth = blocksOf(c, d[3], block * block);
    if (failed(depth))
      return failure();
    Value split = c.transpose(c.reshape(x, Dims{d[0], d[1], d[2], b, b, *depth}), {0, 1, 3, 2, 4, 5});
    result = c.reshape(split, Dims{d[0], hlo::simplify(d[1] * block), hlo::simplify(d[2] * block), *depth});
  }
  if (format == "NCHW")
    result = c.transpose(result, {0, 3, 1, 2});
  return c.setResult(0, result);
}

} // namespace

void registerPad(HandlerTable &t) {
  t.add("Pad", 2, lowerPad);
  t.add("PadV2", 3, lowerPad);
  t.add("MirrorPad", 2, lowerMirrorPad);
  t.add("MirrorPadGrad", 2, lowerMirrorPadGrad);
  t.add("SpaceToBatchND", 3, [](NodeContext &c) { return lowerSpaceBatch(c, true, true); });
  t.add("BatchToSpaceND", 3, [](NodeContext &c) { return lowerSpaceBatch(c, false, true); });
  t.add("SpaceToBatch", 2, [](NodeContext &c) { return lowerSpaceBatch(c, true, false); });
  t.add("BatchToSpace", 2, [](NodeContext &c) { return lowerSpaceBatch(c, false, false); });
  t.add("SpaceToDepth", 1, [](NodeContext &c) { return lowerSpaceDepth(c, true); });
  t.add("DepthToSpace", 1, [](NodeContext &c) { return lowerSpaceDepth(c, false); });
}

} // namespace lathe::legalize
