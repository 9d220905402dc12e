#include "graph/gradients/Expr.h"

namespace lathe::graphdef {

Val part(Val v, int begin, int end) {
  return call("StridedSlice", {v, ints(v, {begin}), ints(v, {end}), ints(v, {1})},
              {{"begin_mask", begin == 0 ? 1 : 0}, {"end_mask", end == 0 ? 1 : 0}});
}

Val element(Val v, int index) {
  return call("StridedSlice", {v, ints(v, {index}), ints(v, {index + 1}), ints(v, {1})},
              {{"shrink_axis_mask", 1}, {"end_mask", index == -1 ? 1 : 0}});
}

Val lastAt(Val x, int index) {
  return call("StridedSlice", {x, ints(x, {0, index}), ints(x, {0, index + 1}), ints(x, {1, 1})},
              {{"ellipsis_mask", 1}, {"shrink_axis_mask", 2}});
}

Val matrixTranspose(Val x, bool conjugate) {
  Val rank = Rank(x);
  Val perm = Concat({Range(intOf(x, 0), rank - 2, intOf(x, 1)), Reshape(rank - 1, ints(x, {1})), Reshape(rank - 2, ints(x, {1}))},
                    intOf(x, 0));
  return call(conjugate && isComplex(x.type()) ? "ConjugateTranspose" : "Transpose", {x, perm});
}

Val reducedShape(Val shape, Val axes) {
  shape = Cast(shape, DType::Int32);
  axes = flat(Cast(axes, DType::Int32)); // a scalar axis is fine too
  Val rank = Size(shape);
  axes = FloorMod(axes + rank, rank);
  return call("DynamicStitch", {std::vector<Val>{upTo(rank), axes}, std::vector<Val>{shape, OnesLike(axes)}});
}

Val sumTo(Val x, Val axes, Val shape) { return Reshape(Sum(x, axes), shape); }

} // namespace lathe::graphdef
