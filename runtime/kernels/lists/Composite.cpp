// CompositeTensorVariantFromComponents and ToComponents: the tensors of a sparse, ragged or user's own type as one variant.
#include "runtime/kernels/Common.h"
#include "runtime/kernels/Wire.h"

#include <iterator>

namespace lathe::rt {
namespace {

/// The messages that a CompositeTensorVariantMetadata is made of.
enum class Kind { Metadata, TypeSpec, Structured, List, Dict, NamedTuple, Pair, TensorSpec, BoundedSpec, Shape, Tensor, Plain };

/// What field `number` of a message is, where it is a message too.
Kind partOf(Kind kind, uint32_t number) {
  struct Part {
    Kind of;
    uint32_t number;
    Kind kind;
  };
  static const Part parts[] = {{Kind::Metadata, 1, Kind::TypeSpec},      {Kind::TypeSpec, 2, Kind::Structured},
                               {Kind::Structured, 31, Kind::Shape},      {Kind::Structured, 33, Kind::TensorSpec},
                               {Kind::Structured, 34, Kind::TypeSpec},   {Kind::Structured, 35, Kind::BoundedSpec},
                               {Kind::Structured, 51, Kind::List},       {Kind::Structured, 52, Kind::List},
                               {Kind::Structured, 53, Kind::Dict},       {Kind::Structured, 54, Kind::NamedTuple},
                               {Kind::Structured, 55, Kind::Tensor},     {Kind::Structured, 56, Kind::Tensor},
                               {Kind::List, 1, Kind::Structured},        {Kind::Dict, 1, Kind::Pair},
                               {Kind::NamedTuple, 2, Kind::Pair},        {Kind::Pair, 2, Kind::Structured},
                               {Kind::TensorSpec, 2, Kind::Shape},       {Kind::BoundedSpec, 2, Kind::Shape},
                               {Kind::BoundedSpec, 4, Kind::Tensor},     {Kind::BoundedSpec, 5, Kind::Tensor},
                               {Kind::Tensor, 2, Kind::Shape}};
  for (const Part &part : parts)
    if (part.of == kind && part.number == number)
      return part.kind;
  return Kind::Plain;
}

/// Whether the bytes are a message and so are the messages in it, which nest no deeper than protobuf allows.
bool isWellFormed(std::string_view bytes, Kind kind, int depth = 0) {
  WireReader fields(bytes);
  while (fields.next())
    if (Kind part = partOf(kind, fields.field()); part != Kind::Plain && fields.wireType() == 2)
      if (depth == 100 || !isWellFormed(fields.bytes(), part, depth + 1))
        return false;
  return !fields.failed();
}

/// The type_spec_class of well-formed metadata. The rest says nothing to kernels.
int64_t typeSpecClass(std::string_view metadata) {
  int64_t number = 0;
  // a field that occurs twice is merged, and the last number counts
  for (WireReader outer(metadata); outer.next();)
    if (outer.field() == 1 && outer.wireType() == 2)
      for (WireReader inner(outer.bytes()); inner.next();)
        if (inner.field() == 1 && inner.wireType() == 0)
          number = static_cast<int32_t>(inner.bits());
  return number;
}

/// TypeSpecProto's name of a class; empty for a number that it does not know.
const char *className(int64_t number) {
  static const char *const names[] = {"UNKNOWN",           "SPARSE_TENSOR_SPEC", "INDEXED_SLICES_SPEC", "RAGGED_TENSOR_SPEC",
                                      "TENSOR_ARRAY_SPEC", "DATA_DATASET_SPEC",  "DATA_ITERATOR_SPEC",  "OPTIONAL_SPEC",
                                      "PER_REPLICA_SPEC",  "VARIABLE_SPEC",      "ROW_PARTITION_SPEC",  "",
                                      "REGISTERED_TYPE_SPEC", "EXTENSION_TYPE_SPEC"};
  return number >= 0 && number < static_cast<int64_t>(std::size(names)) ? names[number] : "";
}

/// Immutable once made.
class CompositeValue : public Object {
public:
  CompositeValue(int64_t spec, std::vector<Tensor> components) : spec(spec), components(std::move(components)) {}
  std::string describe() const override { return "composite tensor"; }
  const int64_t spec; ///< the number of the type_spec_class
  const std::vector<Tensor> components;
};

class CompositeKernel : public HostKernel {
public:
  explicit CompositeKernel(KernelInit &init) {
    std::string metadata = init.attr<std::string>("metadata");
    if (!isWellFormed(metadata, Kind::Metadata))
      init.fail(invalid("Error parsing metadata"));
    spec = typeSpecClass(metadata);
  }
  bool isExpensive() const override { return false; }

protected:
  int64_t spec;
};

class FromComponents : public CompositeKernel {
public:
  using CompositeKernel::CompositeKernel;
  absl::Status compute(KernelContext &context) override {
    auto value = std::make_shared<CompositeValue>(spec, context.inputList("components"));
    context.setOutput(0, Tensor::fromObjects(DType::Variant, {}, {std::move(value)}));
    return absl::OkStatus();
  }
};
LATHE_HOST_KERNEL(CompositeTensorVariantFromComponents, FromComponents);

class ToComponents : public CompositeKernel {
public:
  explicit ToComponents(KernelInit &init) : CompositeKernel(init), types(init.attr<std::vector<DType>>("Tcomponents")) {}
  absl::Status compute(KernelContext &context) override {
    Tensor encoded = context.input("encoded");
    if (encoded.numElements() == 0)
      return invalid("Input `encoded` must not be an empty variant tensor, but got shape ", dimsToString(encoded.dims()));
    const ObjectPtr &object = encoded.objects()[0];
    auto value = std::dynamic_pointer_cast<CompositeValue>(object);
    if (!value)
      return invalid("The input `encoded` is not a valid CompositeTensorVariant tensor, got ",
                     object ? object->describe() : "an empty variant");
    if (value->spec != spec)
      return invalid("Expected a ", className(spec), " (based on `type_spec`), but `encoded` contains a ", className(value->spec));
    if (value->components.size() != types.size())
      return invalid("Encoded value has ", value->components.size(), " tensor components; expected ", types.size(),
                     " components based on type_spec");
    for (size_t i = 0; i < types.size(); ++i)
      if (value->components[i].dtype() != types[i])
        return invalid("Tensor component ", i, " had dtype ", dtypeName(value->components[i].dtype()), "; expected dtype ",
                       dtypeName(types[i]));
    for (size_t i = 0; i < types.size(); ++i)
      context.setOutput(static_cast<int>(i), value->components[i]);
    return absl::OkStatus();
  }

private:
  const std::vector<DType> types;
};
LATHE_HOST_KERNEL(CompositeTensorVariantToComponents, ToComponents);

} // namespace
} // namespace lathe::rt
