// Resizing, cropping, warping and colours.
#include "graph/gradients/Expr.h"
#include "graph/gradients/Rules.h"

namespace lathe::graphdef {
namespace {

NamedAttrs resizeAttrs(Grad &g) { return g.attrs({"align_corners", "half_pixel_centers"}); }

void cropAndResize(Grad &g) {
  DType type = g.node.inputType(0);
  if (type == DType::Float16 || type == DType::Float32 || type == DType::Float64) {
    NamedAttrs attrs = g.attrs({"method"});
    attrs.push_back({"T", type});
    g.set(0, call("CropAndResizeGradImage", {g.dy(), g.in(1), g.in(2), Shape(g.in(0))}, attrs));
  }
  g.set(1, call("CropAndResizeGradBoxes", {g.dy(), g.in(0), g.in(1), g.in(2)}));
}

/// The same warp with inverted transforms. A transform is the first eight numbers of a 3x3 matrix whose last is 1.
void projective(Grad &g) {
  Val images = g.in(0), transforms = g.in(1);
  Val rows = Reshape(transforms, ints(transforms, {-1, 8}));
  Val last = Fill(Pack({element(Shape(rows), 0), intOf(rows, 1)}), like(rows, 1));
  Val matrices = Reshape(Concat({rows, last}, intOf(rows, 1)), ints(rows, {-1, 3, 3}));
  Val inverse = Reshape(call("MatrixInverse", {matrices}), ints(rows, {-1, 9}));
  Val scaled = inverse / call("Slice", {inverse, ints(rows, {0, 8}), ints(rows, {-1, 1})});
  Val back = Slice(scaled, ints(rows, {0, 0}), ints(rows, {-1, 8}));
  std::vector<ArgVals> args{g.dy(), back, part(Shape(images), 1, 3)};
  if (g.node.numInputs() == 4)
    args.push_back(g.in(3));
  g.set(0, call(g.node.op().c_str(), args, g.attrs({"interpolation", "fill_mode"})));
}

/// value = max, saturation = 1 - min / max, hue by sixths from the largest channel. Which channel is largest and which smallest is
/// settled for equal ones, red before green before blue for the largest, and every division by 0 gives 0.
void rgbToHsv(Grad &g) {
  DType type = g.node.inputType(0);
  Val rgb[3] = {lastAt(g.in(0), 0), lastAt(g.in(0), 1), lastAt(g.in(0), 2)};
  Val red = rgb[0], green = rgb[1], blue = rgb[2];
  auto both = [&](Val a, Val b) { return Cast(LogicalAnd(a, b), type); };
  Val largest[3] = {both(GreaterEqual(red, blue), GreaterEqual(red, green)), both(Greater(green, red), GreaterEqual(green, blue)),
                    both(Greater(blue, red), Greater(blue, green))};
  Val smallest[3] = {both(Less(red, blue), Less(red, green)), both(LessEqual(green, red), Less(green, blue)),
                     both(LessEqual(blue, red), LessEqual(blue, green))};
  auto inverse = [&](Val v) { return DivNoNan(like(v, 1), v); };
  auto positive = [&](Val v) { return Cast(Greater(v, like(v, 0)), type); };
  Val value = lastAt(g.out(), 2), saturation = lastAt(g.out(), 1);
  Val chroma2 = inverse(Square(saturation)) * inverse(Square(value));
  std::vector<Val> parts;
  for (int c = 0; c < 3; ++c) {
    int n = (c + 1) % 3, p = (c + 2) % 3; // the next and the previous channel
    Val x = rgb[c], next = rgb[n], previous = rgb[p];
    Val dValue = largest[c];
    Val dSaturation = positive(x) * (largest[c] * (smallest[n] * next + smallest[p] * previous) * inverse(Square(x)) -
                                     smallest[c] * inverse(largest[n] * next + largest[p] * previous));
    // hue is (next - previous) / chroma where x is largest, (previous - x) / chroma where next is, (x - next) / chroma where
    // previous is; chroma is largest minus smallest
    Val whenLargest = positive(x) * largest[c] * (previous - next) * chroma2;
    Val whenNext = positive(next) * largest[n] *
                   (smallest[c] * (previous - next) * inverse(Square(next - x)) - smallest[p] * inverse(next - previous));
    Val whenPrevious = positive(previous) * largest[p] *
                       (smallest[c] * (previous - next) * inverse(Square(previous - x)) + smallest[n] * inverse(previous - next));
    Val dHue = (whenLargest + whenNext + whenPrevious) * (1.0 / 6);
    parts.push_back(lastAt(g.dy(), 2) * dValue + lastAt(g.dy(), 1) * dSaturation + lastAt(g.dy(), 0) * dHue);
  }
  g.set(0, Pack(parts, -1));
}

} // namespace

void addImageRules(Rules &r) {
  r.add({"ResizeBilinear"}, [](Grad &g) { g.set(0, call("ResizeBilinearGrad", {g.dy(), g.in(0)}, resizeAttrs(g))); });
  r.add({"ResizeBicubic"}, [](Grad &g) {
    DType type = g.node.inputType(0);
    if (type == DType::Float32 || type == DType::Float64)
      g.set(0, call("ResizeBicubicGrad", {g.dy(), g.in(0)}, resizeAttrs(g)));
  });
  r.add({"ResizeNearestNeighbor"},
        [](Grad &g) { g.set(0, call("ResizeNearestNeighborGrad", {g.dy(), part(Shape(g.in(0)), 1, 3)}, resizeAttrs(g))); });
  r.add({"ScaleAndTranslate"}, [](Grad &g) {
    g.set(0, call("ScaleAndTranslateGrad", {g.dy(), g.in(0), g.in(2), g.in(3)}, g.attrs({"kernel_type", "antialias"})));
  });
  r.add({"CropAndResize"}, cropAndResize);
  r.add({"ImageProjectiveTransformV2", "ImageProjectiveTransformV3"}, projective);
  r.add({"RGBToHSV"}, rgbToHsv);
}

} // namespace lathe::graphdef
