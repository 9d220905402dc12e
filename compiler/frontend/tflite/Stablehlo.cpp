// Operators that StableHLO names, which hlo has under the same names: elementwise ones, moves, products, convolutions.
// Shapes are equal where StableHLO wants them equal; sizes that only the type of a result says are those of the file.
#include "compiler/frontend/tflite/OpTable.h"

#include <limits>

using namespace mlir;

namespace lathe::tflite {
namespace {

using Op = tfl::BuiltinOperator;

constexpr unsigned Floats = Float32 | OtherFloat;

/// The numbers of a list in the options; none where the file has no list. Numbers beyond what a size can be are an error, since
/// hlo gives some of them a meaning of its own.
FailureOr<SmallVector<int64_t>> list(OpContext &c, const flatbuffers::Vector<int64_t> *values) {
  SmallVector<int64_t> result;
  if (values)
    result.assign(values->begin(), values->end());
  for (int64_t v : result)
    if (std::abs(double(v)) > std::numeric_limits<int32_t>::max())
      return c.error("a number in its options is out of range: " + Twine(v));
  return result;
}

/// The sizes of the result that the file states; an unknown one is that of `from` in the same place of `map` (-1: nothing known).
FailureOr<Dims> resultSizes(OpContext &c, Value from = {}, ArrayRef<int64_t> map = {}) {
  Dims dims;
  for (auto [i, d] : llvm::enumerate(c.outputInfo(0).dims)) {
    const auto *at = llvm::find(map, int64_t(i));
    if (d >= 0)
      dims.push_back(c.size(d));
    else if (at != map.end())
      dims.push_back(c.dim(from, at - map.begin()));
    else
      return c.error("dimension " + Twine(i) + " of its result is not known");
  }
  return dims;
}

/// All inputs from `first` on as tensors; an error where one is none.
FailureOr<SmallVector<Value>> tensors(OpContext &c, unsigned first = 0) {
  SmallVector<Value> values;
  for (unsigned i = first; i < c.numInputs(); ++i) {
    values.push_back(c.input(i));
    if (!values.back())
      return failure();
  }
  return values;
}

template <typename HloOp>
LogicalResult unary(OpContext &c) {
  Value x = c.input(0);
  return x ? c.setResult(0, c.make<HloOp>(x)) : failure();
}

template <typename HloOp>
LogicalResult binary(OpContext &c) {
  auto values = tensors(c);
  return failed(values) ? failure() : c.setResult(0, c.make<HloOp>((*values)[0], (*values)[1]));
}

template <typename HloOp>
LogicalResult ternary(OpContext &c) {
  auto values = tensors(c);
  return failed(values) ? failure() : c.setResult(0, c.make<HloOp>((*values)[0], (*values)[1], (*values)[2]));
}

LogicalResult compare(OpContext &c) {
  const auto &o = c.options2<tfl::StablehloCompareOptions>();
  using Direction = tfl::StablehloComparisonDirection;
  auto values = tensors(c);
  if (failed(values))
    return failure();
  Compare direction;
  switch (o.comparison_direction()) {
  case Direction::STABLEHLO_COMPARISON_DIRECTION_EQ: direction = Compare::EQ; break;
  case Direction::STABLEHLO_COMPARISON_DIRECTION_NE: direction = Compare::NE; break;
  case Direction::STABLEHLO_COMPARISON_DIRECTION_GE: direction = Compare::GE; break;
  case Direction::STABLEHLO_COMPARISON_DIRECTION_GT: direction = Compare::GT; break;
  case Direction::STABLEHLO_COMPARISON_DIRECTION_LE: direction = Compare::LE; break;
  case Direction::STABLEHLO_COMPARISON_DIRECTION_LT: direction = Compare::LT; break;
  default: return c.error("comparison direction " + Twine(unsigned(o.comparison_direction())) + " is not known");
  }
  // how numbers compare follows from their type, but for the order in which -0 is below 0 and NaNs are at the ends
  if (o.compare_type() == tfl::StablehloComparisonType::STABLEHLO_COMPARISON_TYPE_FLOAT_TOTAL_ORDER)
    return c.error("comparisons in total order are not supported");
  return c.setResult(0, c.make<hlo::CompareOp>((*values)[0], (*values)[1], direction));
}

LogicalResult convert(OpContext &c) {
  Value x = c.input(0);
  return x ? c.setResult(0, c.convert(x, c.elementOf(c.outputInfo(0)))) : failure();
}

//===----------------------------------------------------------------------===//
// Moves
//===----------------------------------------------------------------------===//

LogicalResult reshape(OpContext &c) {
  auto shape = GraphValue::ofTensor(c.constantInts(c.outputInfo(0).dims, c.b.getI64Type()));
  auto result = c.call("Reshape", {c.value(0), shape});
  return failed(result) ? failure() : c.setResult(0, result->front());
}

LogicalResult transpose(OpContext &c) {
  Value x = c.input(0);
  auto permutation = list(c, c.options2<tfl::StablehloTransposeOptions>().permutation());
  return !x || failed(permutation) ? failure() : c.setResult(0, c.make<hlo::TransposeOp>(x, *permutation));
}

LogicalResult concatenate(OpContext &c) {
  auto values = tensors(c);
  if (failed(values))
    return failure();
  return c.setResult(0, c.make<hlo::ConcatenateOp>(ValueRange(*values), c.options2<tfl::StablehloConcatenateOptions>().dimension()));
}

LogicalResult broadcastInDim(OpContext &c) {
  Value x = c.input(0);
  auto map = list(c, c.options2<tfl::StablehloBroadcastInDimOptions>().broadcast_dimensions());
  if (!x || failed(map))
    return failure();
  auto dims = resultSizes(c, x, *map);
  if (failed(dims))
    return failure();
  if (int64_t(map->size()) != Emitter::rank(x))
    return c.error("expected " + Twine(Emitter::rank(x)) + " broadcast dimensions, found " + Twine(map->size()));
  for (auto [i, to] : llvm::enumerate(*map)) {
    if (to < 0 || to >= int64_t(dims->size()) || llvm::is_contained(ArrayRef(*map).take_front(i), to))
      return c.error("broadcast dimension " + Twine(to) + " is out of range or twice there");
    if (constantOf(c.dim(x, i)) != int64_t(1) && !c.ctx.unify(c.dim(x, i), (*dims)[to], c.nodeName))
      return c.error("dimension " + Twine(i) + " does not fit the result's dimension " + Twine(to));
  }
  return c.setResult(0, c.broadcastInDim(x, *dims, *map));
}

LogicalResult slice(OpContext &c) {
  const auto &o = c.options2<tfl::StablehloSliceOptions>();
  Value x = c.input(0);
  auto starts = list(c, o.start_indices()), limits = list(c, o.limit_indices()), strides = list(c, o.strides());
  if (!x || failed(starts) || failed(limits) || failed(strides))
    return failure();
  return c.setResult(0, c.make<hlo::SliceOp>(x, ArrayRef<int64_t>(*starts), ArrayRef<int64_t>(*limits), ArrayRef<int64_t>(*strides)));
}

LogicalResult pad(OpContext &c) {
  const auto &o = c.options2<tfl::StablehloPadOptions>();
  auto values = tensors(c);
  auto low = list(c, o.edge_padding_low()), high = list(c, o.edge_padding_high()), interior = list(c, o.interior_padding());
  if (failed(values) || failed(low) || failed(high) || failed(interior))
    return failure();
  return c.setResult(0, c.make<hlo::PadOp>((*values)[0], (*values)[1], *low, *high, *interior));
}

/// The inputs from `first` on: where a slice starts, a scalar for each dimension.
FailureOr<SmallVector<Value>> startsOf(OpContext &c, unsigned first, int64_t rank) {
  auto starts = tensors(c, first);
  if (failed(starts))
    return failure();
  if (int64_t(starts->size()) != rank)
    return c.error("expected a start for each of " + Twine(rank) + " dimensions, found " + Twine(starts->size()));
  return starts;
}

LogicalResult dynamicSlice(OpContext &c) {
  Value x = c.input(0);
  auto sizes = list(c, c.options2<tfl::StablehloDynamicSliceOptions>().slice_sizes());
  if (!x || failed(sizes))
    return failure();
  auto starts = startsOf(c, 1, Emitter::rank(x));
  if (failed(starts))
    return failure();
  return c.setResult(0, c.make<hlo::DynamicSliceOp>(x, ValueRange(*starts), ArrayRef<int64_t>(*sizes)));
}

LogicalResult dynamicUpdateSlice(OpContext &c) {
  Value x = c.input(0), update = c.input(1);
  if (!x || !update)
    return failure();
  auto starts = startsOf(c, 2, Emitter::rank(x));
  return failed(starts) ? failure() : c.setResult(0, c.make<hlo::DynamicUpdateSliceOp>(x, update, ValueRange(*starts)));
}

LogicalResult gather(OpContext &c) {
  const auto &o = c.options2<tfl::StablehloGatherOptions>();
  auto values = tensors(c);
  auto offset = list(c, o.offset_dims()), collapsed = list(c, o.collapsed_slice_dims()), map = list(c, o.start_index_map());
  auto sizes = list(c, o.slice_sizes());
  if (failed(values) || failed(offset) || failed(collapsed) || failed(map) || failed(sizes))
    return failure();
  auto numbers = hlo::GatherDimensionNumbersAttr::get(c.b.getContext(), *offset, *collapsed, {}, {}, *map, o.index_vector_dim());
  return c.setResult(0, c.make<hlo::GatherOp>((*values)[0], (*values)[1], numbers, *sizes, o.indices_are_sorted()));
}

LogicalResult iota(OpContext &c) {
  auto dims = resultSizes(c);
  if (failed(dims))
    return failure();
  const int64_t axis = c.options2<tfl::StablehloIotaOptions>().iota_dimension();
  Type element = c.elementOf(c.outputInfo(0));
  if (axis < 0 || axis >= int64_t(dims->size()) || element.isInteger(1))
    return c.error("expected numbers as its result and one of its dimensions, found dimension " + Twine(axis));
  return c.setResult(0, c.iota(*dims, axis, element));
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// The element type of a product: that of the operands, or a wider one of their kind.
FailureOr<Type> sumType(OpContext &c, ArrayRef<Value> values) {
  Type is = Emitter::elementType(values[0]), wanted = c.elementOf(c.outputInfo(0));
  if (Emitter::elementType(values[1]) != is)
    return c.error("its operands have different element types");
  if (wanted == is)
    return wanted;
  const bool sameKind = (isa<FloatType>(is) && isa<FloatType>(wanted)) || (is.isSignlessInteger() && wanted.isSignlessInteger());
  if (!sameKind || is.isInteger(1) || wanted.getIntOrFloatBitWidth() <= is.getIntOrFloatBitWidth())
    return c.error("the result must have its operands' element type or a wider one");
  return wanted;
}

LogicalResult dotGeneral(OpContext &c) {
  const auto &o = c.options2<tfl::StablehloDotGeneralOptions>();
  auto values = tensors(c);
  auto leftBatch = list(c, o.lhs_batching_dimensions()), rightBatch = list(c, o.rhs_batching_dimensions());
  auto left = list(c, o.lhs_contracting_dimensions()), right = list(c, o.rhs_contracting_dimensions());
  if (failed(values) || failed(leftBatch) || failed(rightBatch) || failed(left) || failed(right))
    return failure();
  auto element = sumType(c, *values);
  if (failed(element))
    return failure();
  auto numbers = hlo::DotDimensionNumbersAttr::get(c.b.getContext(), *leftBatch, *rightBatch, *left, *right);
  return c.setResult(0, c.make<hlo::DotGeneralOp>((*values)[0], (*values)[1], numbers, *element));
}

/// A flat list [low, high, low, high, ...].
FailureOr<hlo::PaddingList> pairs(OpContext &c, const flatbuffers::Vector<int64_t> *values) {
  auto flat = list(c, values);
  if (failed(flat))
    return failure();
  if (flat->size() % 2)
    return c.error("expected a low and a high padding of each dimension");
  hlo::PaddingList result;
  for (size_t i = 0; i < flat->size(); i += 2)
    result.push_back({(*flat)[i], (*flat)[i + 1]});
  return result;
}

LogicalResult convolution(OpContext &c) {
  const auto &o = c.options2<tfl::StablehloConvolutionOptions>();
  auto values = tensors(c);
  auto strides = list(c, o.window_strides()), base = list(c, o.lhs_dilation()), dilations = list(c, o.rhs_dilation());
  auto padding = pairs(c, o.padding());
  auto input = list(c, o.input_spatial_dimensions()), kernel = list(c, o.kernel_spatial_dimensions()),
       output = list(c, o.output_spatial_dimensions());
  if (failed(values) || failed(strides) || failed(base) || failed(dilations) || failed(padding) || failed(input) ||
      failed(kernel) || failed(output))
    return failure();
  auto element = sumType(c, *values);
  if (failed(element))
    return failure();
  hlo::ConvWindow window;
  window.strides = *strides;
  window.lhsDilation = *base;
  window.rhsDilation = *dilations;
  window.padding = *padding;
  if (o.window_reversal())
    for (bool reversed : *o.window_reversal())
      window.reversal.push_back(reversed);
  auto numbers = hlo::ConvDimensionNumbersAttr::get(
      c.b.getContext(), o.input_batch_dimension(), o.input_feature_dimension(), *input, o.kernel_input_feature_dimension(),
      o.kernel_output_feature_dimension(), *kernel, o.output_batch_dimension(), o.output_feature_dimension(), *output);
  return c.setResult(0, c.make<hlo::ConvolutionOp>((*values)[0], (*values)[1], window, numbers, o.feature_group_count(),
                                                   o.batch_group_count(), *element));
}

void registerElementwiseOps(OpTable &t) {
  t.add(Op::STABLEHLO_ABS, 1, 1, 1, Floats | Ints, unary<hlo::AbsOp>);
  t.add(Op::STABLEHLO_CBRT, 1, 1, 1, Floats, unary<hlo::CbrtOp>);
  t.add(Op::STABLEHLO_COSINE, 1, 1, 1, Floats | Complexes, unary<hlo::CosineOp>);
  t.add(Op::STABLEHLO_EXPONENTIAL, 1, 1, 1, Floats | Complexes, unary<hlo::ExpOp>);
  t.add(Op::STABLEHLO_FLOOR, 1, 1, 1, Floats, unary<hlo::FloorOp>);
  t.add(Op::STABLEHLO_LOG, 1, 1, 1, Floats | Complexes, unary<hlo::LogOp>);
  t.add(Op::STABLEHLO_LOGISTIC, 1, 1, 1, Floats | Complexes, unary<hlo::LogisticOp>);
  t.add(Op::STABLEHLO_NEGATE, 1, 1, 1, Numbers | Complexes, unary<hlo::NegOp>);
  t.add(Op::STABLEHLO_RSQRT, 1, 1, 1, Floats | Complexes, unary<hlo::RsqrtOp>);
  t.add(Op::STABLEHLO_TANH, 1, 1, 1, Floats | Complexes, unary<hlo::TanhOp>);
  t.add(Op::STABLEHLO_ADD, 2, 2, 1, Numbers | Bools | Complexes, binary<hlo::AddOp>);
  t.add(Op::STABLEHLO_AND, 2, 2, 1, Ints | Bools, binary<hlo::AndOp>);
  t.add(Op::STABLEHLO_DIVIDE, 2, 2, 1, Numbers | Complexes, binary<hlo::DivOp>);
  t.add(Op::STABLEHLO_MAXIMUM, 2, 2, 1, Numbers | Bools, binary<hlo::MaxOp>);
  t.add(Op::STABLEHLO_MINIMUM, 2, 2, 1, Numbers | Bools, binary<hlo::MinOp>);
  t.add(Op::STABLEHLO_MULTIPLY, 2, 2, 1, Numbers | Bools | Complexes, binary<hlo::MulOp>);
  t.add(Op::STABLEHLO_OR, 2, 2, 1, Ints | Bools, binary<hlo::OrOp>);
  t.add(Op::STABLEHLO_POWER, 2, 2, 1, Numbers, binary<hlo::PowOp>);
  t.add(Op::STABLEHLO_REMAINDER, 2, 2, 1, Numbers, binary<hlo::RemOp>);
  t.add(Op::STABLEHLO_SHIFT_LEFT, 2, 2, 1, Ints, binary<hlo::ShiftLeftOp>);
  t.add(Op::STABLEHLO_SUBTRACT, 2, 2, 1, Numbers | Complexes, binary<hlo::SubtractOp>);
  t.add(Op::STABLEHLO_CLAMP, 3, 3, 1, Numbers, ternary<hlo::ClampOp>);
  t.add(Op::STABLEHLO_SELECT, 3, 3, 1, Bools, ternary<hlo::SelectOp>);
  t.add(Op::STABLEHLO_COMPARE, 2, 2, 1, Numbers | Bools, compare);
  t.add(Op::STABLEHLO_CONVERT, 1, 1, 1, Numbers | Bools, convert);
}

} // namespace

void registerStablehlo(OpTable &t) {
  registerElementwiseOps(t);
  t.add(Op::STABLEHLO_RESHAPE, 1, 1, 1, Any, reshape);
  t.add(Op::STABLEHLO_TRANSPOSE, 1, 1, 1, Any, transpose);
  t.add(Op::STABLEHLO_CONCATENATE, 1, OpTable::kMany, 1, Any, concatenate);
  t.add(Op::STABLEHLO_BROADCAST_IN_DIM, 1, 1, 1, Any, broadcastInDim);
  t.add(Op::STABLEHLO_SLICE, 1, 1, 1, Any, slice);
  t.add(Op::STABLEHLO_PAD, 2, 2, 1, Any, pad);
  t.add(Op::STABLEHLO_DYNAMIC_SLICE, 1, OpTable::kMany, 1, Any, dynamicSlice);
  t.add(Op::STABLEHLO_DYNAMIC_UPDATE_SLICE, 2, OpTable::kMany, 1, Any, dynamicUpdateSlice);
  t.add(Op::STABLEHLO_GATHER, 2, 2, 1, Any, gather);
  t.add(Op::STABLEHLO_IOTA, 0, 0, 1, Any, iota);
  t.add(Op::STABLEHLO_DOT_GENERAL, 2, 2, 1, Numbers, dotGeneral);
  t.add(Op::STABLEHLO_CONVOLUTION, 2, 2, 1, Numbers, convolution);
}

} // namespace lathe::tflite
