// Operators mean what the reference kernels do with them; only forms that strings, tables and computed sizes come in are here.
#include "graph/tflite/NodeTable.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include <flatbuffers/flexbuffers.h>

namespace lathe::tflgraph {

using Op = tfl::BuiltinOperator;

Op builtinOf(const tfl::OperatorCode &code) { return std::max(code.builtin_code(), static_cast<Op>(code.deprecated_builtin_code())); }

std::string nameOf(const tfl::OperatorCode &code) {
  if (builtinOf(code) == Op::CUSTOM)
    return code.custom_code() ? code.custom_code()->str() : "a custom operator without a name";
  return tfl::EnumNameBuiltinOperator(builtinOf(code));
}

DType dtypeOf(tfl::TensorType type) {
  switch (type) {
  case tfl::TensorType::FLOAT32: return DType::Float32;
  case tfl::TensorType::FLOAT16: return DType::Float16;
  case tfl::TensorType::FLOAT64: return DType::Float64;
  case tfl::TensorType::BFLOAT16: return DType::BFloat16;
  case tfl::TensorType::INT8: return DType::Int8;
  case tfl::TensorType::UINT8: return DType::UInt8;
  case tfl::TensorType::INT16: return DType::Int16;
  case tfl::TensorType::UINT16: return DType::UInt16;
  case tfl::TensorType::INT32: return DType::Int32;
  case tfl::TensorType::UINT32: return DType::UInt32;
  case tfl::TensorType::INT64: return DType::Int64;
  case tfl::TensorType::UINT64: return DType::UInt64;
  case tfl::TensorType::BOOL: return DType::Bool;
  case tfl::TensorType::COMPLEX64: return DType::Complex64;
  case tfl::TensorType::COMPLEX128: return DType::Complex128;
  case tfl::TensorType::STRING: return DType::String;
  case tfl::TensorType::RESOURCE: return DType::Resource;
  case tfl::TensorType::VARIANT: return DType::Variant;
  default: return DType::Invalid;
  }
}

absl::StatusOr<tf::NodeDef> flexNode(const tfl::Operator &op) {
  constexpr size_t maxBytes = 64u << 20;
  auto bad = absl::InvalidArgumentError("its options hold no node of a graph");
  auto *given = op.custom_options();
  if (!given || given->size() < 3 || given->size() > maxBytes)
    return bad;
  // a copy, whose numbers are aligned
  std::vector<uint8_t> bytes(given->begin(), given->end()), seen;
  if (!flexbuffers::VerifyBuffer(bytes.data(), bytes.size(), &seen))
    return bad;
  flexbuffers::Reference root = flexbuffers::GetRoot(bytes.data(), bytes.size());
  if (!root.IsVector() || root.AsVector().size() < 2 || !root.AsVector()[1].IsString())
    return bad;
  flexbuffers::String text = root.AsVector()[1].AsString();
  tf::NodeDef node;
  if (!node.ParseFromArray(text.c_str(), static_cast<int>(text.length())))
    return bad;
  return node;
}

namespace {

/// One operator on its way.
struct Translation {
  Emitter &e;
  const tfl::OperatorCode &code;
  const tfl::Operator &op;
  const std::vector<Val> &in;

  absl::StatusOr<std::vector<Val>> run();

private:
  Val input(size_t i) const { return i < in.size() ? in[i] : Val(); }
  template <typename T>
  const T *options() {
    const T *o = op.builtin_options_as<T>();
    if (!o)
      e.fail(absl::InvalidArgumentError("its options are missing"));
    return o;
  }
  Val reshape();
  Val stridedSlice();
  Val squeeze();
  std::vector<Val> split();
  std::vector<Val> table();
  absl::StatusOr<std::vector<Val>> flex();
};

Val Translation::reshape() {
  if (input(1))
    return e.op("Reshape", {in[0], in[1]});
  const auto *o = options<tfl::ReshapeOptions>();
  std::vector<int32_t> shape;
  if (o && o->new_shape())
    shape.assign(o->new_shape()->begin(), o->new_shape()->end());
  return e.op("Reshape", {input(0), e.int32s(shape)});
}

Val Translation::stridedSlice() {
  const auto *o = options<tfl::StridedSliceOptions>();
  if (!o)
    return {};
  Val end = o->offset() ? e.op("AddV2", {input(1), input(2)}) : input(2);
  return e.op("StridedSlice", {input(0), input(1), end, input(3)},
              {{"begin_mask", o->begin_mask()}, {"end_mask", o->end_mask()}, {"ellipsis_mask", o->ellipsis_mask()},
               {"new_axis_mask", o->new_axis_mask()}, {"shrink_axis_mask", o->shrink_axis_mask()}});
}

Val Translation::squeeze() {
  const auto *o = options<tfl::SqueezeOptions>();
  std::vector<int64_t> dims;
  if (o && o->squeeze_dims())
    dims.assign(o->squeeze_dims()->begin(), o->squeeze_dims()->end());
  return e.op("Squeeze", {input(0)}, {{"squeeze_dims", dims}});
}

std::vector<Val> Translation::split() {
  const int64_t n = static_cast<int64_t>(op.outputs() ? op.outputs()->size() : 0);
  if (builtinOf(code) == Op::SPLIT)
    return e.op("Split", {input(0), input(1)}, {{"num_split", n}}).all();
  if (builtinOf(code) == Op::SPLIT_V)
    return e.op("SplitV", {input(0), input(1), input(2)}, {{"num_split", n}}).all();
  const auto *o = options<tfl::UnpackOptions>();
  return e.op("Unpack", {input(0)}, {{"num", n}, {"axis", o ? o->axis() : 0}}).all();
}

/// Tables are known by the number that the file gives them, in whatever subgraph they are named.
std::vector<Val> Translation::table() {
  switch (builtinOf(code)) {
  case Op::HASHTABLE: {
    const auto *o = options<tfl::HashtableOptions>();
    if (!o)
      return {};
    const DType key = dtypeOf(o->key_dtype()), value = dtypeOf(o->value_dtype());
    if (key == DType::Invalid || value == DType::Invalid)
      e.fail(absl::InvalidArgumentError("its table has types that tables do not have"));
    return {e.op("HashTableV2", {}, {{"key_dtype", key}, {"value_dtype", value}, {"shared_name", absl::StrCat("table ", o->table_id())}})};
  }
  case Op::HASHTABLE_FIND:
    return {e.op("LookupTableFindV2", {input(0), input(1), input(2)})};
  case Op::HASHTABLE_SIZE:
    return {e.op("LookupTableSizeV2", {input(0)})};
  default:
    e.node("InitializeTableV2", {input(0), input(1), input(2)});
    return {};
  }
}

absl::StatusOr<std::vector<Val>> Translation::flex() {
  auto given = flexNode(op);
  if (!given.ok())
    return given.status();
  graphdef::NodeSpec spec;
  spec.def = *std::move(given);
  spec.def.clear_input();
  spec.def.clear_device();
  for (auto it = spec.def.mutable_attr()->begin(); it != spec.def.mutable_attr()->end();)
    it = absl::StartsWith(it->first, "_") ? spec.def.mutable_attr()->erase(it) : std::next(it);
  spec.def.set_name(e.graph.uniqueName(absl::StrCat(e.scope, "/", spec.def.op())));
  for (const Val &v : in) {
    if (!v)
      return absl::InvalidArgumentError("an input is missing");
    spec.inputs.push_back(v.end);
  }
  spec.controls = e.controls;
  auto node = e.graph.add(std::move(spec));
  if (!node.ok())
    return node.status();
  std::vector<Val> results;
  for (int i = 0; i < (*node)->numOutputs(); ++i)
    results.push_back(e.val({*node, i}));
  return results;
}

absl::StatusOr<std::vector<Val>> Translation::run() {
  auto one = [&](const char *name, size_t n, const graphdef::NamedAttrs &attrs = {}) {
    std::vector<graphdef::ArgVals> args;
    for (size_t i = 0; i < n; ++i)
      args.emplace_back(input(i));
    return std::vector<Val>{e.op(name, args, attrs)};
  };
  switch (builtinOf(code)) {
  case Op::CUSTOM:
    if (absl::StartsWith(nameOf(code), "Flex"))
      return flex();
    break;
  case Op::HASHTABLE:
  case Op::HASHTABLE_FIND:
  case Op::HASHTABLE_IMPORT:
  case Op::HASHTABLE_SIZE: return table();
  case Op::RESHAPE: return std::vector<Val>{reshape()};
  case Op::STRIDED_SLICE: return std::vector<Val>{stridedSlice()};
  case Op::SQUEEZE: return std::vector<Val>{squeeze()};
  case Op::SPLIT:
  case Op::SPLIT_V:
  case Op::UNPACK: return split();
  case Op::PACK: {
    const auto *o = options<tfl::PackOptions>();
    return std::vector<Val>{e.op("Pack", {in}, {{"axis", o ? o->axis() : 0}})};
  }
  case Op::CONCATENATION: {
    const auto *o = options<tfl::ConcatenationOptions>();
    return std::vector<Val>{e.op("ConcatV2", {in, e.int32(o ? o->axis() : 0)})};
  }
  case Op::GATHER: {
    const auto *o = options<tfl::GatherOptions>();
    return std::vector<Val>{e.op("GatherV2", {input(0), input(1), e.int32(o ? o->axis() : 0)}, {{"batch_dims", o ? o->batch_dims() : 0}})};
  }
  case Op::SHAPE: {
    const auto *o = options<tfl::ShapeOptions>();
    return one("Shape", 1, {{"out_type", o ? dtypeOf(o->out_type()) : DType::Int32}});
  }
  case Op::SPARSE_TO_DENSE: {
    const auto *o = op.builtin_options_as_SparseToDenseOptions();
    return one("SparseToDense", 4, {{"validate_indices", o && o->validate_indices()}});
  }
  case Op::ONE_HOT: {
    const auto *o = options<tfl::OneHotOptions>();
    return one("OneHot", 4, {{"axis", o ? o->axis() : 0}});
  }
  case Op::TOPK_V2: return e.op("TopKV2", {input(0), input(1)}).all();
  case Op::RANGE: return one("Range", 3);
  case Op::PAD: return input(2) ? one("PadV2", 3) : one("Pad", 2);
  case Op::MIRROR_PAD: {
    const auto *o = options<tfl::MirrorPadOptions>();
    return one("MirrorPad", 2, {{"mode", o && o->mode() == tfl::MirrorPadMode::SYMMETRIC ? "SYMMETRIC" : "REFLECT"}});
  }
  case Op::SPACE_TO_BATCH_ND: return one("SpaceToBatchND", 3);
  case Op::BATCH_TO_SPACE_ND: return one("BatchToSpaceND", 3);
  case Op::RESIZE_BILINEAR: {
    const auto *o = options<tfl::ResizeBilinearOptions>();
    return one("ResizeBilinear", 2, {{"align_corners", o && o->align_corners()}, {"half_pixel_centers", o && o->half_pixel_centers()}});
  }
  case Op::RESIZE_NEAREST_NEIGHBOR: {
    const auto *o = options<tfl::ResizeNearestNeighborOptions>();
    return one("ResizeNearestNeighbor", 2,
               {{"align_corners", o && o->align_corners()}, {"half_pixel_centers", o && o->half_pixel_centers()}});
  }
  case Op::PADV2: return one("PadV2", 3);
  case Op::GATHER_ND: return one("GatherNd", 2);
  case Op::EXPAND_DIMS: return one("ExpandDims", 2);
  case Op::SLICE: return one("Slice", 3);
  case Op::TRANSPOSE: return one("Transpose", 2);
  case Op::TILE: return one("Tile", 2);
  case Op::FILL: return one("Fill", 2);
  case Op::BROADCAST_TO: return one("BroadcastTo", 2);
  case Op::REVERSE_V2: return one("ReverseV2", 2);
  case Op::SCATTER_ND: return one("ScatterNd", 3);
  case Op::EQUAL: return one("Equal", 2);
  case Op::NOT_EQUAL: return one("NotEqual", 2);
  case Op::SELECT: return one("Select", 3);
  case Op::SELECT_V2: return one("SelectV2", 3);
  case Op::RANK: return one("Rank", 1);
  default: break;
  }
  return absl::UnimplementedError("no node of a graph stands for this operator on strings or tables");
}

} // namespace

absl::StatusOr<std::vector<Val>> translate(Emitter &e, const tfl::OperatorCode &code, const tfl::Operator &op, const std::vector<Val> &inputs) {
  auto results = Translation{e, code, op, inputs}.run();
  if (results.ok() && !e.ok())
    return e.status;
  const size_t count = op.outputs() ? op.outputs()->size() : 0;
  if (results.ok() && results->size() != count)
    return absl::InvalidArgumentError(absl::StrCat("it has ", count, " results, and its node ", results->size()));
  return results;
}

} // namespace lathe::tflgraph
