//===- Attributes.cpp - AttrValue and TensorProto as attributes -----------===//
#include "compiler/import/Attributes.h"

#include "compiler/import/Problems.h"
#include "dialects/graph/Graph.h"
#include "dialects/graph/Types.h"
#include "graph/Values.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "ops/Registry.h"

#include <cstring>

using namespace mlir;
using llvm::StringRef;

namespace lathe::import {

// Attributes hold at most this many elements: MLIR uniques, hashes and never frees them.
static constexpr int64_t kMaxInlineElements = 64;
// A few values of which the last repeats may become this large; files that mean more hold it.
static constexpr int64_t kMaxRepeatedBytes = INT64_C(256) << 20;

DType toDType(int number) { return graphdef::dtypeOf(number); }

ShapeResult readShape(const tf::TensorShapeProto &proto) {
  ShapeResult result;
  if (auto shape = graphdef::decodeShape(proto); shape.ok())
    result.dims = *std::move(shape);
  else
    result.error = std::string(shape.status().message());
  return result;
}

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

RankedTensorType AttributeReader::constantType(DType dtype, const std::vector<int64_t> &dims, std::string &error) {
  Type element = graph::toMlirType(context, dtype);
  if (!element) {
    error = "a constant of an unknown type";
    return {};
  }
  absl::StatusOr<int64_t> count = checkedNumElements(dims);
  if (!count.ok()) {
    error = "the shape " + dimsToString(dims) + " has more elements than 64 bits can count";
    return {};
  }
  // a string takes an attribute of its own
  int64_t elementSize = dtype == DType::String ? 32 : static_cast<int64_t>(dtypeSize(dtype));
  if (elementSize == 0 || isa<graph::VariantType>(element)) {
    error = std::string("a constant of type ") + dtypeName(dtype) + " is not supported";
    return {};
  }
  if (*count > maxBytes / elementSize) {
    error = "a constant of shape " + dimsToString(dims) + " and type " + dtypeName(dtype) +
            " is larger than the limit of " + std::to_string(maxBytes) + " bytes";
    return {};
  }
  return RankedTensorType::get(dims, element);
}

Attribute AttributeReader::makeDense(RankedTensorType type, DType dtype, ArrayRef<char> bytes,
                                     std::shared_ptr<const void> bytesOwner) {
  int64_t count = type.getNumElements();
  size_t size = dtypeSize(dtype);
  if (count > 1 && bytes.size() > size && std::memcmp(bytes.data(), bytes.data() + size, bytes.size() - size) == 0)
    bytes = bytes.take_front(size);
  bool isSplat = bytes.size() == size;
  if (count <= kMaxInlineElements || isSplat) {
    if (dtype == DType::Bool) {
      SmallVector<bool> values;
      for (char c : bytes)
        values.push_back(c != 0);
      return DenseElementsAttr::get(type, ArrayRef<bool>(values));
    }
    if (dtype == DType::Int4 || dtype == DType::UInt4) {
      SmallVector<APInt> values;
      for (char c : bytes)
        values.push_back(APInt(4, static_cast<uint8_t>(c) & 15));
      return DenseElementsAttr::get(type, values);
    }
    return DenseElementsAttr::getFromRawBuffer(type, bytes);
  }
  // MLIR makes equal names unique by trying one number after the other: n² look-ups for n constants
  std::string name = blobs ? "const_" + std::to_string(blobs) : "const";
  ++blobs;
  size_t align = std::min<size_t>(64, std::max<size_t>(1, size));
  if (!bytesOwner || reinterpret_cast<uintptr_t>(bytes.data()) % align != 0)
    return DenseResourceElementsAttr::get(type, name, HeapAsmResourceBlob::allocateAndCopyWithAlign(bytes, 64));
  AsmResourceBlob blob(bytes, align, [bytesOwner = std::move(bytesOwner)](void *, size_t, size_t) {}, false);
  return DenseResourceElementsAttr::get(type, name, std::move(blob));
}

Attribute AttributeReader::readTensor(const Tensor &tensor, std::string &error) {
  RankedTensorType type = constantType(tensor.dtype(), tensor.dims(), error);
  if (!type)
    return {};
  if (tensor.dtype() == DType::String) {
    Builder b(context);
    SmallVector<Attribute> values;
    for (const std::string &s : tensor.strings())
      values.push_back(b.getStringAttr(s));
    return graph::StringsAttr::get(context, type, b.getArrayAttr(values));
  }
  ArrayRef<char> bytes(static_cast<const char *>(tensor.data()), static_cast<size_t>(tensor.sizeBytes()));
  return makeDense(type, tensor.dtype(), bytes, tensor.owner());
}

Attribute AttributeReader::readStrings(const tf::TensorProto &proto, RankedTensorType type, std::string &error) {
  Builder b(context);
  SmallVector<Attribute> values;
  int64_t count = type.getNumElements();
  if (proto.string_val_size() > count && count > 0) {
    error = "holds " + std::to_string(proto.string_val_size()) + " values for " + std::to_string(count) + " elements";
    return {};
  }
  if (count == 0)
    return graph::StringsAttr::get(context, type, b.getArrayAttr({}));
  if (!proto.tensor_content().empty()) {
    std::vector<std::string> unpacked;
    if (absl::Status s = graphdef::unpackStrings(proto.tensor_content(), count, &unpacked); !s.ok()) {
      error = std::string(s.message());
      return {};
    }
    for (const std::string &s : unpacked)
      values.push_back(b.getStringAttr(s));
    return graph::StringsAttr::get(context, type, b.getArrayAttr(values));
  }
  for (const std::string &s : proto.string_val())
    values.push_back(b.getStringAttr(s));
  if (values.empty())
    values.push_back(b.getStringAttr(""));
  if (values.size() > 1 && static_cast<int64_t>(values.size()) < count && count > kMaxRepeatedBytes / 16) {
    error = "holds " + std::to_string(values.size()) + " values for " + std::to_string(count) + " elements";
    return {};
  }
  if (values.size() > 1)
    values.resize(static_cast<size_t>(count), values.back());
  return graph::StringsAttr::get(context, type, b.getArrayAttr(values));
}

Attribute AttributeReader::readTensor(const tf::TensorProto &proto, std::string &error) {
  ShapeResult shape = readShape(proto.tensor_shape());
  if (!shape.error.empty() || !shape.dims) {
    error = shape.dims || !shape.error.empty() ? shape.error : "a constant of unknown rank";
    return {};
  }
  for (int64_t dim : *shape.dims)
    if (dim < 0) {
      error = "a constant of unknown size " + dimsToString(*shape.dims);
      return {};
    }
  DType dtype = toDType(proto.dtype());
  RankedTensorType type = constantType(dtype, *shape.dims, error);
  if (!type)
    return {};
  if (dtype == DType::String)
    return readStrings(proto, type, error);

  size_t size = dtypeSize(dtype);
  size_t count = static_cast<size_t>(type.getNumElements());
  std::string what = dimsToString(*shape.dims) + " of " + dtypeName(dtype);
  if (!proto.tensor_content().empty()) {
    if (proto.tensor_content().size() != count * size) {
      error = "holds " + std::to_string(proto.tensor_content().size()) + " bytes, its shape " + what + " needs " +
              std::to_string(count * size);
      return {};
    }
    return makeDense(type, dtype, proto.tensor_content(), owner);
  }
  std::vector<char> bytes = graphdef::listedBytes(proto, dtype);
  if (bytes.size() % size != 0 || (count && bytes.size() / size > count)) {
    error = "holds " + std::to_string(bytes.size() / size) + " values, its shape " + what + " needs " +
            std::to_string(count);
    return {};
  }
  if (count == 0)
    bytes.clear();
  else if (bytes.empty())
    bytes.assign(size, 0);
  else if (bytes.size() > size && bytes.size() < count * size) {
    // the last value repeats
    if (count * size > static_cast<size_t>(kMaxRepeatedBytes)) {
      error = "holds " + std::to_string(bytes.size() / size) + " values, its shape " + what + " needs " +
              std::to_string(count) + ", which are too many to repeat the last one";
      return {};
    }
    size_t have = bytes.size() / size;
    bytes.resize(count * size);
    for (size_t i = have; i < count; ++i)
      std::memcpy(bytes.data() + i * size, bytes.data() + (have - 1) * size, size);
  }
  return makeDense(type, dtype, bytes, nullptr);
}

//===----------------------------------------------------------------------===//
// Attributes of nodes
//===----------------------------------------------------------------------===//

static Attribute readType(MLIRContext *context, int number, Attribute &carried, std::string &error) {
  DType dtype = toDType(number);
  // an attribute may say that there is no type, for example Case's unused output types
  Type type = dtype == DType::Invalid && number == 0 ? NoneType::get(context) : graph::toMlirType(context, dtype);
  if (!type) {
    error = "unknown type number " + std::to_string(number);
    return {};
  }
  if (isQuantized(dtype))
    carried = IntegerAttr::get(IntegerType::get(context, 64), static_cast<int64_t>(dtype));
  return TypeAttr::get(type);
}

Attribute AttributeReader::read(const tf::AttrValue &value, const FunctionSymbol &functionSymbol, Attribute &number,
                                std::string &error) {
  Builder b(context);
  auto shapeAttr = [&](const tf::TensorShapeProto &proto) -> Attribute {
    ShapeResult shape = readShape(proto);
    if (!shape.error.empty()) {
      error = shape.error;
      return {};
    }
    if (!shape.dims)
      return graph::ShapeAttr::get(context, false, ArrayRef<int64_t>());
    return graph::ShapeAttr::get(context, true, *shape.dims);
  };
  auto funcAttr = [&](const tf::NameAttrList &function) -> Attribute {
    FlatSymbolRefAttr symbol = functionSymbol(function, error);
    return symbol ? graph::FuncAttr::get(context, symbol, DictionaryAttr()) : Attribute();
  };
  switch (value.value_case()) {
  case tf::AttrValue::kS: return b.getStringAttr(value.s());
  case tf::AttrValue::kI: return b.getI64IntegerAttr(value.i());
  case tf::AttrValue::kF: return b.getF32FloatAttr(value.f());
  case tf::AttrValue::kB: return b.getBoolAttr(value.b());
  case tf::AttrValue::kType: return readType(context, value.type(), number, error);
  case tf::AttrValue::kShape: return shapeAttr(value.shape());
  case tf::AttrValue::kTensor: return readTensor(value.tensor(), error);
  case tf::AttrValue::kFunc: return funcAttr(value.func());
  case tf::AttrValue::kPlaceholder:
    error = "refers to '" + printable(value.placeholder()) + "', which has no value";
    return {};
  case tf::AttrValue::VALUE_NOT_SET: error = "has no value"; return {};
  case tf::AttrValue::kList: break;
  }
  const tf::AttrValue::ListValue &list = value.list();
  SmallVector<Attribute> elements, numbers;
  bool anyNumber = false;
  for (const std::string &s : list.s()) elements.push_back(b.getStringAttr(s));
  for (int64_t i : list.i()) elements.push_back(b.getI64IntegerAttr(i));
  for (float f : list.f()) elements.push_back(b.getF32FloatAttr(f));
  for (bool v : list.b()) elements.push_back(b.getBoolAttr(v));
  for (int type : list.type()) {
    Attribute carried;
    elements.push_back(readType(context, type, carried, error));
    anyNumber |= static_cast<bool>(carried);
    numbers.push_back(b.getI64IntegerAttr(type));
  }
  for (const auto &shape : list.shape()) elements.push_back(shapeAttr(shape));
  for (const auto &tensor : list.tensor()) elements.push_back(readTensor(tensor, error));
  for (const auto &function : list.func()) elements.push_back(funcAttr(function));
  if (llvm::is_contained(elements, Attribute()))
    return {};
  if (anyNumber)
    number = b.getArrayAttr(numbers);
  return b.getArrayAttr(elements);
}

//===----------------------------------------------------------------------===//
// Defaults and kinds
//===----------------------------------------------------------------------===//

bool parseDefault(StringRef type, StringRef text, tf::AttrValue &value) {
  return graphdef::parseDefault(std::string_view(type.data(), type.size()), std::string_view(text.data(), text.size()), &value);
}

bool hasAttrType(const tf::AttrValue &value, StringRef type, std::string &found) {
  return graphdef::hasAttrType(value, std::string_view(type.data(), type.size()), &found);
}

} // namespace lathe::import
