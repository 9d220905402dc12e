// The boxes that detection models end with: decoded from anchors, the best of those that overlap, by class or over all classes.
#include "compiler/frontend/tflite/Custom.h"
#include "compiler/frontend/tflite/FlexOptions.h"
#include "compiler/frontend/tflite/Requantize.h"
#include "compiler/frontend/tflite/Translator.h"

#include <cmath>

using namespace mlir;

namespace lathe::tflite {
namespace {

struct Detection {
  int64_t most, classesPerBox, perClass, classes;
  bool byClass;
  float leastScore, mostOverlap, scale[4]; ///< y, x, h, w
};

class DetectionOp {
public:
  DetectionOp(OpContext &c, const Detection &d) : c(c), d(d), f32(c.b.getF32Type()), i32(c.b.getI32Type()) {}
  LogicalResult run();

private:
  Value decode(Value encodings, Value anchors);
  /// Places of the best boxes, filled up with 0, and how many count.
  std::pair<Value, Value> suppress(Value boxes, Value scores, int64_t most);
  Value rows(Value of, Value places) {
    return c.call1("GatherV2", {of, places, c.scalarInt(0, i32)}, {c.attr("batch_dims", int64_t(0))}, Emitter::elementType(of));
  }
  std::pair<Value, Value> top(Value values, int64_t k);
  LogicalResult overAll(Value boxes, Value scores);
  LogicalResult eachClass(Value boxes, Value scores);
  LogicalResult finish(Value boxes, Value classes, Value scores, Value count);

  OpContext &c;
  const Detection &d;
  Type f32, i32;
};

/// Corners (top, left, bottom, right) from centers and logarithms of sizes in units of the anchors.
Value DetectionOp::decode(Value encodings, Value anchors) {
  Type f64 = c.b.getF64Type();
  auto column = [&](Value v, int64_t k) { return c.convert(c.sliceDim(v, 1, c.size(k), c.size(k + 1)), f64); };
  auto scaled = [&](int64_t k) {
    Value v = column(encodings, k);
    return c.div(v, c.like(v, d.scale[k]));
  };
  auto center = [&](int64_t k) { return c.convert(c.add(c.mul(scaled(k), column(anchors, k + 2)), column(anchors, k)), f32); };
  auto half = [&](int64_t k) {
    Value e = c.unary<hlo::ExpOp>(scaled(k));
    return c.convert(c.mul(c.mul(e, c.like(e, 0.5)), column(anchors, k)), f32);
  };
  Value y = center(0), x = center(1), h = half(2), w = half(3);
  return c.concat({c.sub(y, h), c.sub(x, w), c.add(y, h), c.add(x, w)}, 1);
}

std::pair<Value, Value> DetectionOp::suppress(Value boxes, Value scores, int64_t most) {
  // scores that are equal to the limit count here, and do not in TensorFlow's operation
  const float below = std::nextafter(d.leastScore, -HUGE_VALF);
  GraphValues inputs;
  for (Value v : {boxes, scores, c.scalarInt(most, i32), c.scalar(d.mostOverlap, f32), c.scalar(below, f32)})
    inputs.push_back(GraphValue::ofTensor(v));
  auto result = c.call("NonMaxSuppressionV4", inputs, {c.attr("pad_to_max_output_size", true)}, {i32, i32});
  if (failed(result))
    return {};
  return {c.ctx.materialize((*result)[0], c.loc), c.ctx.materialize((*result)[1], c.loc)};
}

std::pair<Value, Value> DetectionOp::top(Value values, int64_t k) {
  GraphValues inputs{GraphValue::ofTensor(values), GraphValue::ofTensor(c.scalarInt(k, i32))};
  auto result = c.call("TopKV2", inputs, {c.attr("sorted", true), c.attr("index_type", i32)}, {f32, i32});
  if (failed(result))
    return {};
  return {c.ctx.materialize((*result)[0], c.loc), c.ctx.materialize((*result)[1], c.loc)};
}

/// Results of `most` rows, 0 from `count` on.
LogicalResult DetectionOp::finish(Value boxes, Value classes, Value scores, Value count) {
  const int64_t n = d.most * d.classesPerBox;
  Value place = c.iota(Dims{c.size(n)}, 0, i32), limit = c.mul(count, c.scalarInt(d.classesPerBox, i32));
  Value valid = c.compare(Compare::LT, place, limit);
  auto only = [&](Value v) { return c.select(valid, v, c.like(v, 0)); };
  Value mask = c.broadcastInDim(valid, Dims{c.size(n), c.size(4)}, {0});
  if (failed(c.setResult(0, c.reshape(c.select(mask, boxes, c.like(boxes, 0)), {1, n, 4}))) ||
      failed(c.setResult(1, c.reshape(only(c.convert(classes, f32)), {1, n}))) ||
      failed(c.setResult(2, c.reshape(only(scores), {1, n}))))
    return failure();
  return c.setResult(3, c.reshape(c.convert(count, f32), ArrayRef<int64_t>{1}));
}

/// Boxes by their best class, each with its best classes.
LogicalResult DetectionOp::overAll(Value boxes, Value scores) {
  auto [best, kinds] = top(scores, d.classesPerBox);
  if (!best)
    return failure();
  Value first = c.reshape(c.sliceDim(best, 1, c.size(0), c.size(1)), Dims{c.dim(best, 0)});
  auto [places, count] = suppress(boxes, first, d.most);
  if (!places)
    return failure();
  const int64_t n = d.most * d.classesPerBox;
  Value chosen = rows(boxes, places), chosenKinds = rows(kinds, places), chosenScores = rows(best, places);
  if (!chosen || !chosenKinds || !chosenScores)
    return failure();
  chosen = c.broadcastInDim(chosen, Dims{c.size(d.most), c.size(d.classesPerBox), c.size(4)}, {0, 2});
  return finish(c.reshape(chosen, {n, 4}), c.reshape(chosenKinds, ArrayRef<int64_t>{n}), c.reshape(chosenScores, ArrayRef<int64_t>{n}), count);
}

/// The best boxes of each class, and of those the best of all.
LogicalResult DetectionOp::eachClass(Value boxes, Value scores) {
  SmallVector<Value> places, values, kinds;
  Value total = c.scalarInt(0, i32), slot = c.iota(Dims{c.size(d.perClass)}, 0, i32);
  for (int64_t k = 0; k < d.classes; ++k) {
    Value mine = c.reshape(c.sliceDim(scores, 1, c.size(k), c.size(k + 1)), Dims{c.dim(scores, 0)});
    auto [place, count] = suppress(boxes, mine, d.perClass);
    if (!place)
      return failure();
    Value score = rows(mine, place);
    Value valid = c.compare(Compare::LT, slot, count);
    places.push_back(place);
    values.push_back(c.select(valid, score, c.splat(-HUGE_VALF, c.dims(slot), f32)));
    kinds.push_back(c.likeInt(slot, k));
    total = c.add(total, count);
  }
  const int64_t missing = d.most - d.classes * d.perClass;
  if (missing > 0) {
    places.push_back(c.splatInt(0, Dims{c.size(missing)}, i32));
    values.push_back(c.splat(-HUGE_VALF, Dims{c.size(missing)}, f32));
    kinds.push_back(c.splatInt(0, Dims{c.size(missing)}, i32));
  }
  auto [best, which] = top(c.concat(values, 0), d.most);
  if (!best)
    return failure();
  Value at = rows(c.concat(places, 0), which);
  return finish(rows(boxes, at), rows(c.concat(kinds, 0), which), best, c.min(total, c.scalarInt(d.most, i32)));
}

LogicalResult DetectionOp::run() {
  Value encodings = realInput(c, 0), scores = realInput(c, 1), anchors = realInput(c, 2);
  if (!encodings || !scores || !anchors)
    return failure();
  auto same = [&](AffineExpr x, AffineExpr y) { return c.ctx.unify(x, y, c.nodeName); };
  if (Emitter::rank(encodings) != 3 || Emitter::rank(scores) != 3 || Emitter::rank(anchors) != 2 ||
      !same(c.dim(encodings, 0), c.size(1)) || !same(c.dim(scores, 0), c.size(1)) ||
      !same(c.dim(encodings, 1), c.dim(scores, 1)) || !same(c.dim(encodings, 1), c.dim(anchors, 0)))
    return c.error("expected encodings [1, n, 4 or more], scores [1, n, classes] and anchors [n, 4]");
  auto codes = constantOf(c.dim(encodings, 2)), given = constantOf(c.dim(scores, 2)), sides = constantOf(c.dim(anchors, 1));
  if (!codes || *codes < 4 || !sides || *sides != 4 || !given || *given < d.classes)
    return c.error("expected 4 numbers of a box or more, 4 of an anchor and " + Twine(d.classes) + " scores or more");
  Dims flat{c.dim(encodings, 1), c.size(*codes)}, all{c.dim(scores, 1), c.size(*given)};
  Value boxes = decode(c.reshape(encodings, flat), anchors);
  // scores of the background come first
  scores = c.sliceDim(c.reshape(scores, all), 1, c.size(*given - d.classes), c.size(*given));
  return d.byClass ? eachClass(boxes, scores) : overAll(boxes, scores);
}

LogicalResult detectionPostProcess(OpContext &c) {
  FlexOptions o(c.op);
  if (!o.isMap())
    return c.error("its options are no map of a flexbuffer");
  for (const char *key : {"max_detections", "max_classes_per_detection", "num_classes", "nms_score_threshold", "nms_iou_threshold",
                          "y_scale", "x_scale", "h_scale", "w_scale"})
    if (!o.has(key))
      return c.error("option '" + Twine(key) + "' is missing");
  Detection d;
  d.most = o.integer("max_detections", 0);
  d.classes = o.integer("num_classes", 0);
  d.perClass = o.integer("detections_per_class", 100);
  d.byClass = o.flag("use_regular_nms", false);
  d.leastScore = o.real("nms_score_threshold", 0);
  d.mostOverlap = o.real("nms_iou_threshold", 0);
  const char *scales[] = {"y_scale", "x_scale", "h_scale", "w_scale"};
  for (int k = 0; k < 4; ++k)
    d.scale[k] = o.real(scales[k], 1);
  constexpr int64_t limit = 1 << 20;
  const int64_t perBox = o.integer("max_classes_per_detection", 0);
  if (d.most < 1 || d.most > limit || d.classes < 1 || d.classes > 1024 || perBox < 1 || d.perClass < 1 || d.perClass > limit)
    return c.error("a number of boxes or classes in its options is out of range");
  if (!(d.mostOverlap > 0 && d.mostOverlap <= 1) || !std::isfinite(d.leastScore))
    return c.error("a threshold in its options is out of range");
  d.classesPerBox = d.byClass ? 1 : std::min(perBox, d.classes);
  if (!d.byClass && d.classesPerBox != perBox)
    return c.error("it asks for more classes of a box than there are");
  if (c.numInputs() != 3 || c.numOutputs() != 4)
    return c.error("expected 3 inputs and 4 outputs");
  return DetectionOp(c, d).run();
}

using Translate = LogicalResult (*)(OpContext &);
constexpr std::pair<const char *, Translate> kTable[] = {
    {"TFLite_Detection_PostProcess", detectionPostProcess}, {"MaxPoolingWithArgmax2D", maxPoolingWithArgmax},
    {"MaxUnpooling2D", maxUnpooling},                       {"Convolution2DTransposeBias", transposeConvBias},
    {"TransformTensorBilinear", transformTensorBilinear},   {"TransformLandmarks", transformLandmarks},
    {"Landmarks2TransformMatrix", landmarksToMatrix}};

Translate lookup(StringRef name) {
  for (auto [known, translate] : kTable)
    if (name == known)
      return translate;
  return nullptr;
}

} // namespace

bool isKnownCustom(StringRef name) { return lookup(name) != nullptr; }

SmallVector<StringRef> knownCustoms() {
  return llvm::map_to_vector(kTable, [](auto &entry) { return StringRef(entry.first); });
}

LogicalResult translateCustom(OpContext &c) {
  Translate translate = lookup(c.opName);
  return translate ? translate(c) : c.error("custom operator is not supported");
}

} // namespace lathe::tflite
