// Greyscale dilation and its gradients; windows reduced by XLA's function; boxes drawn on images; glimpses.
#include "passes/legalize/array/ArrayFamilies.h"
#include "passes/legalize/array/ArrayHelpers.h"

using namespace mlir;

namespace lathe::legalize {
namespace {

/// The taps of a 2-D dilation: for each filter element the slice of the padded input that it sees.
struct Dilation {
  Value padded, filter;
  Value inside; ///< for integers: 1 where `padded` holds the image, whose padding would wrap round with the filter added
  int64_t size[2], out[2], stride[2], rate[2], low[2], high[2], in[2];

  int64_t taps() const { return size[0] * size[1]; }

  FailureOr<Value> prepare(NodeContext &c) {
    Value x = c.input(0);
    filter = c.input(1);
    if (failed(c.expectRank(0, 4)) || failed(c.expectRank(1, 3)))
      return failure();
    SmallVector<int64_t> strides = c.attrInts("strides"), rates = c.attrInts("rates");
    if (strides.size() != 4 || rates.size() != 4)
      return c.error("strides and rates must have 4 entries");
    for (int d = 0; d < 2; ++d) {
      auto n = constantOf(c.dim(x, d + 1)), k = constantOf(c.dim(filter, d));
      stride[d] = strides[d + 1];
      rate[d] = rates[d + 1];
      if (!n || !k || stride[d] < 1 || rate[d] < 1)
        return c.error("the sizes of image and filter must be known");
      in[d] = *n;
      size[d] = *k;
      int64_t extent = (*k - 1) * rate[d] + 1;
      StringRef padding = c.attrString("padding");
      if (padding == "SAME") {
        out[d] = (*n + stride[d] - 1) / stride[d];
        int64_t total = std::max<int64_t>((out[d] - 1) * stride[d] + extent - *n, 0);
        low[d] = total / 2;
        high[d] = total - low[d];
      } else if (padding == "VALID") {
        out[d] = *n < extent ? 0 : (*n - extent) / stride[d] + 1;
        low[d] = high[d] = 0;
      } else {
        return c.error("padding must be SAME or VALID");
      }
    }
    if (taps() > 4096)
      return c.error("the filter is too large");
    SmallVector<int64_t> before{0, low[0], low[1], 0}, after{0, high[0], high[1], 0};
    padded = c.pad(x, c.lowest(c.elementType(x)), before, after);
    if (!Emitter::isFloat(x)) {
      Type i32 = c.b.getI32Type();
      Value ones = c.splatInt(1, Dims{c.size(1), c.size(in[0]), c.size(in[1]), c.size(1)}, i32);
      inside = c.pad(ones, c.scalarInt(0, i32), before, after);
    }
    return padded;
  }

  /// What tap k sees of `image`.
  Value tapInput(NodeContext &c, int64_t k, Value image) {
    Dims starts(4, c.size(0)), limits = c.dims(image);
    SmallVector<int64_t> steps(4, 1);
    int64_t at[2] = {k / size[1], k % size[1]};
    for (int d = 0; d < 2; ++d) {
      int64_t from = at[d] * rate[d];
      starts[d + 1] = c.size(from);
      limits[d + 1] = c.size(out[d] ? from + (out[d] - 1) * stride[d] + 1 : from);
      steps[d + 1] = stride[d];
    }
    return c.slice(image, starts, limits, steps);
  }
  Value tapFilter(NodeContext &c, int64_t k) {
    int64_t y = k / size[1], x = k % size[1];
    Value f = c.slice(filter, Dims{c.size(y), c.size(x), c.size(0)}, Dims{c.size(y + 1), c.size(x + 1), c.dim(filter, 2)});
    return c.reshape(f, Dims{c.dim(filter, 2)});
  }
  /// Largest sum at each place, and the number of the tap that gave it first.
  std::pair<Value, Value> best(NodeContext &c) {
    Value most, tap;
    Type i32 = c.b.getI32Type();
    for (int64_t k = 0; k < taps(); ++k) {
      Value sum = c.add(tapInput(c, k, padded), tapFilter(c, k));
      Value there = inside ? c.compare(Compare::GT, tapInput(c, k, inside), c.scalarInt(0, i32)) : Value();
      if (!most) {
        most = there ? c.select(c.broadcastTo(there, c.dims(sum)), sum, c.lowest(c.elementType(sum))) : sum;
        tap = c.splatInt(k, c.dims(sum), i32);
        continue;
      }
      Value more = c.compare(Compare::GT, sum, most);
      if (there)
        more = c.logicalAnd(more, there);
      tap = c.select(more, c.scalarInt(k, i32), tap);
      most = c.select(more, sum, most);
    }
    return {most, tap};
  }
};

LogicalResult lowerDilation(NodeContext &c) {
  Dilation d;
  if (failed(d.prepare(c)) || !d.taps())
    return failure();
  return c.setResult(0, d.best(c).first);
}

LogicalResult lowerDilationGrad(NodeContext &c, bool forFilter) {
  Dilation d;
  if (failed(d.prepare(c)) || !d.taps())
    return failure();
  if (d.out[0] == 0 || d.out[1] == 0) { // no window fits
    Value like = c.input(forFilter ? 1 : 0);
    return c.setResult(0, c.splat(0, c.dims(like), c.elementType(like)));
  }
  Value grad = c.input(2), tap = d.best(c).second, zero = c.scalar(0, c.elementType(grad));
  if (!sameDims(c, {tap, grad}))
    return failure();
  Value sum;
  SmallVector<Value> parts;
  for (int64_t k = 0; k < d.taps(); ++k) {
    Value mine = c.select(c.compare(Compare::EQ, tap, c.likeInt(tap, k)), grad, zero);
    if (forFilter) {
      parts.push_back(c.reshape(c.reduceSum(mine, {0, 1, 2}), Dims{c.size(1), c.dim(d.filter, 2)}));
      continue;
    }
    // back to where the tap read, what fell into the padding cut off
    SmallVector<int64_t> low(4, 0), high(4, 0), interior(4, 0);
    int64_t at[2] = {k / d.size[1], k % d.size[1]};
    for (int i = 0; i < 2; ++i) {
      int64_t from = at[i] * d.rate[i];
      low[i + 1] = from - d.low[i];
      high[i + 1] = d.in[i] - low[i + 1] - (d.out[i] ? (d.out[i] - 1) * d.stride[i] + 1 : 0);
      interior[i + 1] = d.stride[i] - 1;
    }
    Value placed = c.pad(mine, zero, low, high, interior);
    sum = sum ? c.add(sum, placed) : placed;
  }
  return c.setResult(0, forFilter ? c.reshape(c.concat(parts, 0), c.dims(d.filter)) : sum);
}

LogicalResult lowerXlaReduceWindow(NodeContext &c) {
  Value x = c.input(0), init = c.input(1);
  SmallVector<int64_t> lists[4];
  for (unsigned i = 0; i < 4; ++i) {
    auto v = c.constantInts(2 + i);
    if (failed(v))
      return failure();
    lists[i] = *v;
    if (int64_t(v->size()) != c.rank(x))
      return c.error("the window must have " + Twine(c.rank(x)) + " dimensions");
  }
  auto padding = c.constantInts(6);
  graph::FuncOp computation = c.ctx.lookupFunction(c.attr("computation"));
  if (failed(padding) || !computation)
    return failed(padding) ? failure() : c.error("the computation is missing");
  if (int64_t(padding->size()) != 2 * c.rank(x))
    return c.error("expected two paddings for each dimension");
  hlo::ReduceWindow window;
  window.strides = lists[1];
  window.baseDilations = lists[2];
  window.windowDilations = lists[3];
  for (int64_t d = 0; d < c.rank(x); ++d)
    window.padding.push_back({(*padding)[2 * d], (*padding)[2 * d + 1]});
  bool ok = true;
  auto op = hlo::ReduceWindowOp::create(
      c.b, c.loc, ValueRange(x), ValueRange(init), lists[0], window,
      [&](OpBuilder &b, Location loc, ValueRange args) -> SmallVector<Value> {
        OpBuilder::InsertionGuard guard(c.ctx.builder);
        c.ctx.builder.setInsertionPoint(b.getInsertionBlock(), b.getInsertionPoint());
        SmallVector<GraphValue, 2> in, out;
        for (Value a : args)
          in.push_back(GraphValue::ofTensor(a));
        ok = succeeded(c.ctx.lowerBody(computation, in, out)) && out.size() == 1;
        Value v = ok ? c.ctx.materialize(out[0], loc) : Value();
        ok &= bool(v);
        return {v ? v : Value(args[0])};
      });
  return ok ? c.setResult(0, op->getResult(0)) : failure();
}

LogicalResult lowerDrawBoxes(NodeContext &c) {
  Value image = c.input(0), boxes = c.input(1);
  if (failed(c.expectRank(0, 4)) || failed(c.expectRank(1, 3)))
    return failure();
  auto count = constantOf(c.dim(boxes, 1)), depth = constantOf(c.dim(image, 3)), h = constantOf(c.dim(image, 1)),
       w = constantOf(c.dim(image, 2));
  if (!count || !depth || !h || !w || *count > 1024)
    return c.error("the sizes of images and boxes must be known");
  Type element = c.elementType(image), f32 = c.b.getF32Type(), i64 = c.b.getI64Type();
  // TensorFlow's ten colours, RGBA
  SmallVector<SmallVector<double>> colours{{1, 1, 0, 1},   {0, 0, 1, 1},     {1, 0, 0, 1},     {0, 1, 0, 1},
                                           {0.5, 0, 0.5, 1}, {0.5, 0.5, 0, 1}, {0.5, 0, 0, 1}, {0, 0, 0.5, 1},
                                           {0, 1, 1, 1},   {1, 0, 1, 1}};
  Value table;
  int64_t number = colours.size();
  Tensor t = Tensor::allocate(DType::Float32, {number, *depth});
  for (int64_t i = 0; i < number; ++i)
    for (int64_t k = 0; k < *depth; ++k)
      t.data<float>()[i * *depth + k] = *depth == 1 ? 1 : k < 4 ? float(colours[i][k]) : 0;
  table = c.convert(c.constant(t), element);
  if (c.numInputs() > 2 && !(c.isStatic(c.input(2)) && c.type(c.input(2)).getNumElements() == 0)) {
    Value given = c.convert(c.input(2), element);
    auto n = c.rank(given) == 2 ? constantOf(c.dim(given, 0)) : std::nullopt;
    auto channels = c.rank(given) == 2 ? constantOf(c.dim(given, 1)) : std::nullopt;
    if (!n || !channels || *channels < *depth)
      return c.error("expected colours of at least " + Twine(*depth) + " channels");
    table = c.sliceDim(given, 1, c.size(0), c.size(*depth));
    number = *n;
  }
  boxes = c.convert(boxes, f32);
  Dims dims = c.dims(image), plane{dims[0], dims[1], dims[2]};
  Value row = c.iota(plane, 1, i64), col = c.iota(plane, 2, i64);
  auto edge = [&](int64_t box, int64_t k, int64_t size) {
    Value v = c.slice(boxes, Dims{c.size(0), c.size(box), c.size(k)}, Dims{dims[0], c.size(box + 1), c.size(k + 1)});
    v = c.mul(c.reshape(v, Dims{dims[0]}), c.scalar(double(size - 1), f32));
    return c.broadcastInDim(c.convert(v, i64), plane, {0});
  };
  for (int64_t box = 0; box < *count; ++box) {
    Value top = edge(box, 0, *h), left = edge(box, 1, *w), bottom = edge(box, 2, *h), right = edge(box, 3, *w);
    auto clamp = [&](Value v, int64_t size) { return c.min(c.max(v, c.likeInt(v, 0)), c.likeInt(v, size - 1)); };
    auto le = [&](Value a, Value b) { return c.compare(Compare::LE, a, b); };
    auto eq = [&](Value a, Value b) { return c.compare(Compare::EQ, a, b); };
    auto both = [&](Value a, Value b) { return c.logicalAnd(a, b); };
    // boxes turned inside out or wholly outside are left out
    Value zero = c.likeInt(top, 0), hh = c.likeInt(top, *h), ww = c.likeInt(top, *w);
    Value valid = both(both(le(top, bottom), le(left, right)),
                       both(both(c.compare(Compare::LT, top, hh), c.compare(Compare::GE, bottom, zero)),
                            both(c.compare(Compare::LT, left, ww), c.compare(Compare::GE, right, zero))));
    Value inCols = both(le(clamp(left, *w), col), le(col, clamp(right, *w)));
    Value inRows = both(le(clamp(top, *h), row), le(row, clamp(bottom, *h)));
    Value drawn = c.logicalOr(both(c.logicalOr(eq(row, top), eq(row, bottom)), inCols),
                              both(c.logicalOr(eq(col, left), eq(col, right)), inRows));
    Value colour = c.reshape(c.sliceDim(table, 0, c.size(box % number), c.size(box % number + 1)), Dims{c.size(*depth)});
    image = c.select(c.broadcastInDim(both(drawn, valid), dims, {0, 1, 2}), c.broadcastInDim(colour, dims, {3}), image);
  }
  return c.setResult(0, image);
}

} // namespace

void registerMorphology(HandlerTable &t) {
  t.add("Dilation2D", 2, lowerDilation);
  t.add("Dilation2DBackpropInput", 3, [](NodeContext &c) { return lowerDilationGrad(c, false); });
  t.add("Dilation2DBackpropFilter", 3, [](NodeContext &c) { return lowerDilationGrad(c, true); });
  t.add("XlaReduceWindow", 7, lowerXlaReduceWindow);
  t.add("DrawBoundingBoxes", 2, lowerDrawBoxes);
  t.add("DrawBoundingBoxesV2", 3, lowerDrawBoxes);
}

} // namespace lathe::legalize
