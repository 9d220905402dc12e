// DecodeProtoV2, EncodeProto: fields of serialised messages as tensors, by a description of the messages that the node has.
#include "base/Bytes.h"
#include "runtime/kernels/Wire.h"
#include "runtime/kernels/parsing/Descriptor.h"

#include <cstring>
#include <numeric>

namespace lathe::rt {
namespace {

/// What both read of their node.
struct ProtoSpec {
  ProtoSpec(KernelInit &init, const std::vector<DType> &types) : message(init.attr<std::string>("message_type")) {
    if (absl::Status status = read(init, types); !status.ok())
      init.fail(std::move(status));
  }
  std::string message;
  std::vector<FieldDescription> fields;
  std::vector<Tensor> defaults;

private:
  absl::Status read(KernelInit &init, const std::vector<DType> &types) {
    auto names = init.attr<std::vector<std::string>>("field_names");
    if (names.size() != types.size())
      return invalid("there are ", names.size(), " field_names for ", types.size(), " types");
    LATHE_TRY_VALUE(messages, MessageDescriptions::read(init.attr<std::string>("descriptor_source")));
    LATHE_TRY_VALUE(found, messages.fieldsOf(message, names));
    fields = std::move(found);
    for (size_t f = 0; f < fields.size(); ++f) {
      if (!holdsField(types[f], fields[f].type))
        return invalid("Unexpected type for field ", names[f], ": ", dtypeName(types[f]));
      LATHE_TRY_VALUE(rest, messages.defaultOf(fields[f], types[f]));
      defaults.push_back(std::move(rest));
    }
    return absl::OkStatus();
  }
};

int64_t signedOf(uint64_t bits) { return static_cast<int64_t>(bits >> 1) ^ -static_cast<int64_t>(bits & 1); }

template <typename T>
T bitsAs(uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

/// Stores a value that is no string.
void store(Tensor &t, int64_t at, FieldType type, uint64_t bits) {
  if (type == FieldType::Double) {
    t.data<double>()[at] = bitsAs<double>(bits);
  } else if (type == FieldType::Float) {
    float value = bitsAs<float>(bits);
    if (t.dtype() == DType::Float32)
      t.data<float>()[at] = value;
    else
      t.data<double>()[at] = static_cast<double>(value);
  } else if (type == FieldType::Bool) {
    t.data<bool>()[at] = bits != 0;
  } else {
    bool small = type == FieldType::Int32 || type == FieldType::SInt32 || type == FieldType::SFixed32 || type == FieldType::Enum;
    int64_t value = static_cast<int64_t>(bits);
    if (type == FieldType::SInt32 || type == FieldType::SInt64)
      value = signedOf(type == FieldType::SInt32 ? bits & 0xffffffffu : bits);
    if (small)
      value = static_cast<int32_t>(value);
    if (type == FieldType::UInt32 || type == FieldType::Fixed32)
      value = static_cast<uint32_t>(value);
    switch (t.dtype()) {
    case DType::Int32: t.data<int32_t>()[at] = static_cast<int32_t>(value); break;
    case DType::UInt32: t.data<uint32_t>()[at] = static_cast<uint32_t>(value); break;
    default: t.data<int64_t>()[at] = value; // of 64 bits, with a sign or without
    }
  }
}

/// Calls fn(bits, bytes) for each value of a field's present form, one or packed; for none where it has another form, as for fields
/// that nobody knows. False where it is malformed.
template <typename Fn>
bool eachValue(const WireReader &reader, const FieldDescription &field, Fn fn) {
  int expected = wireTypeOf(field.type);
  if (reader.wireType() == expected) {
    fn(reader.bits(), reader.bytes());
    return true;
  }
  if (reader.wireType() != 2 || !field.isRepeated)
    return true;
  ByteReader packed(reader.bytes());
  while (packed.remaining()) {
    uint64_t bits = 0;
    if (expected == 0 ? !packed.readVarint(bits) : !packed.readLittle(expected == 1 ? 8 : 4, bits))
      return false;
    fn(bits, std::string_view());
  }
  return true;
}

class DecodeProto : public HostKernel {
public:
  explicit DecodeProto(KernelInit &init) : types(init.attr<std::vector<DType>>("output_types")), spec(init, types) {
    std::string format = init.attr<std::string>("message_format");
    if (format == "text")
      init.fail(absl::UnimplementedError("messages in text form are not read"));
    else if (format != "binary")
      init.fail(invalid("format must be one of binary or text"));
    for (size_t f = 0; f < spec.fields.size(); ++f)
      places[spec.fields[f].number].push_back(f);
  }
  absl::Status compute(KernelContext &context) override {
    Tensor messages = context.input(0);
    if (messages.numElements() == 0)
      return invalid("Bufs argument must contain at least one value");
    int64_t count = messages.numElements(), fields = static_cast<int64_t>(spec.fields.size());
    std::vector<int64_t> dims = messages.dims();
    dims.push_back(fields);
    LATHE_TRY_VALUE(sizes, context.allocateOutput(0, dims));
    int32_t *size = sizes.data<int32_t>();
    std::vector<int64_t> most(spec.fields.size(), 1); // a field that no message has gives its default
    for (int64_t i = 0; i < count; ++i) {
      std::vector<int64_t> found(spec.fields.size(), 0);
      LATHE_TRY(walk(messages.strings()[static_cast<size_t>(i)], [&](size_t f, uint64_t, std::string_view) { ++found[f]; }));
      for (size_t f = 0; f < found.size(); ++f) {
        int64_t n = spec.fields[f].isRepeated ? found[f] : std::min<int64_t>(found[f], 1);
        size[i * fields + static_cast<int64_t>(f)] = static_cast<int32_t>(n);
        most[f] = std::max(most[f], n);
      }
    }
    std::vector<Tensor> out;
    for (size_t f = 0; f < spec.fields.size(); ++f) {
      dims.back() = most[f];
      LATHE_TRY_VALUE(values, context.allocateOutput(1 + static_cast<int>(f), dims));
      out.push_back(values);
      for (int64_t i = 0; i < count; ++i)
        for (int64_t k = size[i * fields + static_cast<int64_t>(f)]; k < most[f]; ++k)
          copyElement(out[f], i * most[f] + k, spec.defaults[f], 0);
    }
    for (int64_t i = 0; i < count; ++i) {
      std::vector<int64_t> next(spec.fields.size(), 0);
      LATHE_TRY(walk(messages.strings()[static_cast<size_t>(i)], [&](size_t f, uint64_t bits, std::string_view bytes) {
        int64_t at = i * most[f] + (spec.fields[f].isRepeated ? next[f]++ : 0); // of several where one is due the last counts
        if (out[f].dtype() == DType::String)
          out[f].mutableStrings()[static_cast<size_t>(at)] = std::string(bytes);
        else
          store(out[f], at, spec.fields[f].type, bits);
      }));
    }
    return absl::OkStatus();
  }

private:
  template <typename Fn>
  absl::Status walk(const std::string &message, Fn fn) const {
    WireReader reader(message);
    while (reader.next()) {
      auto found = places.find(reader.field());
      if (found == places.end())
        continue;
      for (size_t f : found->second)
        if (!eachValue(reader, spec.fields[f], [&](uint64_t bits, std::string_view bytes) { fn(f, bits, bytes); }))
          return absl::DataLossError(absl::StrCat("Unable to parse field ", spec.fields[f].name, " of a ", spec.message));
    }
    return reader.failed() ? absl::DataLossError(absl::StrCat("Unable to parse a ", spec.message)) : absl::OkStatus();
  }
  const std::vector<DType> types;
  const ProtoSpec spec;
  std::map<uint32_t, std::vector<size_t>> places; ///< by number
};
LATHE_HOST_KERNEL(DecodeProtoV2, DecodeProto);

class EncodeProto : public HostKernel {
public:
  explicit EncodeProto(KernelInit &init) : spec(init, init.attr<std::vector<DType>>("Tinput_types")), order(spec.fields.size()) {
    std::iota(order.begin(), order.end(), size_t(0));
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return spec.fields[a].number < spec.fields[b].number; });
    for (size_t i = 1; i < order.size(); ++i)
      if (spec.fields[order[i]].number == spec.fields[order[i - 1]].number)
        init.fail(invalid("field_names must be unique, but ", spec.fields[order[i]].name, " is repeated"));
  }
  absl::Status compute(KernelContext &context) override {
    Tensor sizes = context.input(0);
    std::vector<Tensor> values = context.inputList("values");
    int64_t fields = static_cast<int64_t>(spec.fields.size());
    if (sizes.rank() < 1 || sizes.dim(sizes.rank() - 1) != fields)
      return invalid("sizes.shape[-1] must be equal to the number of fields, got ", dimsToString(sizes.dims()), " and ", fields);
    std::vector<int64_t> batch(sizes.dims().begin(), sizes.dims().end() - 1);
    for (const Tensor &t : values)
      if (t.rank() != sizes.rank() || !std::equal(batch.begin(), batch.end(), t.dims().begin()))
        return invalid("Input shapes must agree but for the last dimension, got ", dimsToString(t.dims()), " and ",
                       dimsToString(sizes.dims()));
    int64_t count = productOf(batch, 0, batch.size());
    LATHE_TRY_VALUE(out, context.allocateOutput(0, batch));
    for (int64_t i = 0; i < count; ++i)
      for (size_t f : order) {
        int64_t n = sizes.data<int32_t>()[i * fields + static_cast<int64_t>(f)], most = values[f].dim(values[f].rank() - 1);
        if (n > most)
          return invalid("Size ", n, " of field ", spec.fields[f].name, " must be at most ", most);
        write(out.mutableStrings()[static_cast<size_t>(i)], spec.fields[f], values[f], i * most, n);
      }
    return absl::OkStatus();
  }

private:
  static void writeFixed(std::string &out, uint64_t bits, int bytes) {
    for (int i = 0; i < bytes; ++i)
      out += static_cast<char>(bits >> (8 * i));
  }
  static uint64_t bitsOf(const FieldDescription &field, const Tensor &t, int64_t at) {
    if (t.dtype() == DType::Float64 && field.type == FieldType::Double) {
      uint64_t bits = 0;
      std::memcpy(&bits, t.data<double>() + at, 8);
      return bits;
    }
    if (field.type == FieldType::Float) {
      float value = t.dtype() == DType::Float32 ? t.data<float>()[at] : static_cast<float>(t.data<double>()[at]);
      uint32_t bits = 0;
      std::memcpy(&bits, &value, 4);
      return bits;
    }
    int64_t value = intAt(t, at);
    uint64_t folded = static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63);
    return field.type == FieldType::SInt32 ? folded & 0xffffffffu : field.type == FieldType::SInt64 ? folded : static_cast<uint64_t>(value);
  }
  static void writeValue(std::string &out, const FieldDescription &field, const Tensor &t, int64_t at) {
    int wire = wireTypeOf(field.type);
    if (wire == 0)
      writeVarint(out, bitsOf(field, t, at));
    else
      writeFixed(out, bitsOf(field, t, at), wire == 1 ? 8 : 4);
  }
  static void write(std::string &out, const FieldDescription &field, const Tensor &t, int64_t first, int64_t count) {
    if (field.isPacked && count) {
      std::string packed;
      for (int64_t k = 0; k < count; ++k)
        writeValue(packed, field, t, first + k);
      return writeBytesField(out, field.number, packed);
    }
    for (int64_t k = 0; k < count; ++k) {
      if (t.dtype() == DType::String) {
        writeBytesField(out, field.number, t.strings()[static_cast<size_t>(first + k)]);
        continue;
      }
      writeVarint(out, static_cast<uint64_t>(field.number) << 3 | static_cast<uint64_t>(wireTypeOf(field.type)));
      writeValue(out, field, t, first + k);
    }
  }
  const ProtoSpec spec;
  std::vector<size_t> order;
};
LATHE_HOST_KERNEL(EncodeProto, EncodeProto);

} // namespace
} // namespace lathe::rt
