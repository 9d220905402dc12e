#include "runtime/kernels/parsing/Example.h"

#include "runtime/kernels/Wire.h"

#include <algorithm>

namespace lathe::rt {

void Feature::store(int64_t i, Tensor &out, int64_t at) const {
  if (type == DType::String)
    out.mutableStrings()[at] = std::string(strings[i]);
  else if (type == DType::Float32)
    out.data<float>()[at] = floats[i];
  else
    out.data<int64_t>()[at] = ints[i];
}

static absl::Status malformed() { return invalid("Could not parse example input"); }

/// A map<string, message>: entries of key = 1 and value = 2 in field 1.
static absl::Status readMap(std::string_view bytes, FeatureMap &features) {
  WireReader reader(bytes);
  while (reader.next()) {
    if (reader.field() != 1 || reader.wireType() != 2)
      continue;
    WireReader entry(reader.bytes());
    std::string_view key, value;
    while (entry.next()) {
      if (entry.field() == 1 && entry.wireType() == 2)
        key = entry.bytes();
      else if (entry.field() == 2 && entry.wireType() == 2)
        value = entry.bytes();
    }
    if (entry.failed())
      return malformed();
    features[key] = value;
  }
  return reader.failed() ? malformed() : absl::OkStatus();
}

absl::Status readExample(std::string_view bytes, FeatureMap &features) {
  WireReader reader(bytes);
  while (reader.next())
    if (reader.field() == 1) {
      if (reader.wireType() != 2)
        return malformed();
      LATHE_TRY(readMap(reader.bytes(), features));
    }
  return reader.failed() ? malformed() : absl::OkStatus();
}

absl::Status readSequenceExample(std::string_view bytes, FeatureMap &context, FeatureMap &lists) {
  WireReader reader(bytes);
  while (reader.next())
    if (reader.field() == 1 || reader.field() == 2) {
      if (reader.wireType() != 2)
        return malformed();
      LATHE_TRY(readMap(reader.bytes(), reader.field() == 1 ? context : lists));
    }
  return reader.failed() ? malformed() : absl::OkStatus();
}

absl::Status readFeature(std::string_view bytes, Feature &feature) {
  WireReader reader(bytes);
  while (reader.next()) {
    if (reader.field() > 3 || reader.wireType() != 2)
      continue;
    DType type = reader.field() == 1 ? DType::String : reader.field() == 2 ? DType::Float32 : DType::Int64;
    if (type != feature.type)
      feature = Feature();
    feature.type = type;
    WireReader list(reader.bytes());
    while (list.next()) {
      if (list.field() != 1)
        continue;
      bool good = true;
      if (type == DType::String) {
        good = list.wireType() == 2;
        feature.strings.push_back(list.bytes());
      } else if (type == DType::Float32) {
        good = appendFloats(list, feature.floats);
      } else {
        good = appendVarints(list, feature.ints);
      }
      if (!good)
        return malformed();
    }
    if (list.failed())
      return malformed();
  }
  return reader.failed() ? malformed() : absl::OkStatus();
}

absl::Status readFeatureList(std::string_view bytes, std::vector<std::string_view> &features) {
  WireReader reader(bytes);
  while (reader.next())
    if (reader.field() == 1 && reader.wireType() == 2)
      features.push_back(reader.bytes());
  return reader.failed() ? malformed() : absl::OkStatus();
}

absl::Status findFeature(const FeatureMap &features, std::string_view name, DType type, Feature &feature) {
  auto it = features.find(name);
  if (it == features.end())
    return absl::OkStatus();
  LATHE_TRY(readFeature(it->second, feature));
  if (feature.present() && feature.type != type)
    return invalid("Key: ", std::string(name), ".  Data types don't match. Data type: ", dtypeName(feature.type),
                   " but expected type: ", dtypeName(type));
  return absl::OkStatus();
}

absl::StatusOr<Tensor> makeDense(const KernelContext &context, const DenseSpec &spec, const std::vector<Feature> &batch,
                                 bool batched) {
  if (!spec.shape)
    return invalid("dense_shapes of '", spec.name, "' lacks its rank");
  std::vector<int64_t> dims = *spec.shape;
  bool variable = spec.isVariable();
  for (size_t d = variable; d < dims.size(); ++d)
    if (dims[d] < 0)
      return invalid("dense_shapes of '", spec.name, "': only the first dimension may be unknown");
  LATHE_TRY_VALUE(stride, checkedNumElements({dims.begin() + variable, dims.end()}));
  int64_t longest = 0;
  if (variable) {
    for (const Feature &feature : batch) {
      if (feature.size() && (stride == 0 || feature.size() % stride))
        return invalid("Key: ", spec.name, ".  Number of ", dtypeName(spec.type), " values is not a multiple of stride length. "
                       "values size: ", feature.size(), " but the stride is ", stride);
      longest = std::max(longest, stride ? feature.size() / stride : 0);
    }
    dims[0] = longest;
  }
  LATHE_TRY_VALUE(each, checkedNumElements(dims));
  if (batched)
    dims.insert(dims.begin(), static_cast<int64_t>(batch.size()));
  auto out = context.allocate(spec.type, dims);
  if (!out.ok())
    return out;
  for (size_t b = 0; b < batch.size(); ++b) {
    const Feature &feature = batch[b];
    int64_t start = static_cast<int64_t>(b) * each, n = feature.size();
    if (variable) {
      if (spec.rest.numElements() > 1)
        return invalid("dense_shapes of '", spec.name, "' is variable-length, so its default must be one value");
      for (int64_t i = 0; i < n; ++i)
        feature.store(i, *out, start + i);
      for (int64_t i = n; i < each && spec.rest.numElements(); ++i)
        copyElement(*out, start + i, spec.rest, 0);
      continue;
    }
    if (!feature.present()) {
      if (spec.rest.numElements() == 0 && each != 0)
        return invalid("Name: <unknown>, Feature: ", spec.name, " (data type: ", dtypeName(spec.type),
                       ") is required but could not be found.");
      if (spec.rest.numElements() != each)
        return invalid("the default of '", spec.name, "' has ", spec.rest.numElements(), " elements, expected ", each);
      for (int64_t i = 0; i < each; ++i)
        copyElement(*out, start + i, spec.rest, i);
      continue;
    }
    if (n != each)
      return invalid("Key: ", spec.name, ", Index: ", b, ".  Number of ", dtypeName(spec.type), " values != expected.  values "
                     "size: ", n, " but output shape: ", shapeToString(spec.shape));
    for (int64_t i = 0; i < n; ++i)
      feature.store(i, *out, start + i);
  }
  return out;
}

absl::StatusOr<std::array<Tensor, 3>> makeSparse(const KernelContext &context, DType type, const std::vector<Feature> &batch,
                                                 bool batched) {
  int64_t total = 0, longest = 0;
  for (const Feature &feature : batch) {
    total += feature.size();
    longest = std::max(longest, feature.size());
  }
  int64_t rank = batched ? 2 : 1, at = 0;
  LATHE_TRY_VALUE(indices, context.allocate(DType::Int64, {total, rank}));
  LATHE_TRY_VALUE(values, context.allocate(type, {total}));
  for (size_t b = 0; b < batch.size(); ++b)
    for (int64_t i = 0; i < batch[b].size(); ++i, ++at) {
      int64_t *row = indices.data<int64_t>() + at * rank;
      row[0] = static_cast<int64_t>(b);
      row[rank - 1] = i;
      batch[b].store(i, values, at);
    }
  Tensor shape = batched ? int64Vector({static_cast<int64_t>(batch.size()), longest}) : int64Vector({longest});
  return std::array<Tensor, 3>{indices, values, shape};
}

absl::StatusOr<std::array<Tensor, 2>> makeRagged(const KernelContext &context, DType type, DType splitsType,
                                                 const std::vector<Feature> &batch) {
  std::vector<int64_t> splits = {0};
  for (const Feature &feature : batch)
    splits.push_back(splits.back() + feature.size());
  LATHE_TRY_VALUE(values, context.allocate(type, {splits.back()}));
  int64_t at = 0;
  for (const Feature &feature : batch)
    for (int64_t i = 0; i < feature.size(); ++i)
      feature.store(i, values, at++);
  return std::array<Tensor, 2>{values, indexVector(splitsType, splits)};
}

} // namespace lathe::rt
