// Cases of goldens/*.json: single ops with inputs, attributes, and outputs or an error's code as TensorFlow had them.
// Written by make_goldens.py. For tests and for fuzzing, which starts from the cases.
#ifndef LATHE_TEST_RUNTIME_GOLDEN_H
#define LATHE_TEST_RUNTIME_GOLDEN_H

#include "base/Float.h"
#include "runtime/core/Attr.h"
#include "runtime/core/Resource.h"

#include <nlohmann/json.hpp>

#include <cmath>
#include <complex>
#include <cstring>

namespace lathe::rt {

using Json = nlohmann::json;

/// Bytes are kept as the characters of their numbers; $FILES is the folder of files that cases name.
inline std::string bytesOf(const std::string &utf8) {
  if (utf8.rfind("$FILES", 0) == 0)
    return std::string(LATHE_GOLDENS) + "/files" + bytesOf(utf8.substr(6));
  std::string out;
  for (size_t i = 0; i < utf8.size(); ++i) {
    unsigned char c = utf8[i];
    if (c < 0x80)
      out += utf8[i];
    else
      out += static_cast<char>((c & 3) << 6 | (static_cast<unsigned char>(utf8[++i]) & 63));
  }
  return out;
}

inline double realOf(const Json &j) {
  if (j.is_string()) {
    std::string s = j;
    return s == "nan" ? NAN : s[0] == '-' ? -INFINITY : INFINITY;
  }
  return j.is_boolean() ? static_cast<double>(j.get<bool>()) : j.get<double>();
}

inline void store(Tensor &t, int64_t i, const Json &j) {
  switch (dtypeCarrier(t.dtype())) {
  case DType::Float32:
    t.data<float>()[i] = static_cast<float>(realOf(j));
    break;
  case DType::Float64:
    t.data<double>()[i] = realOf(j);
    break;
  case DType::Float16:
    t.data<uint16_t>()[i] = floatToHalf(static_cast<float>(realOf(j)));
    break;
  case DType::BFloat16:
    t.data<uint16_t>()[i] = floatToBFloat16(static_cast<float>(realOf(j)));
    break;
  case DType::Complex64:
    t.data<std::complex<float>>()[i] = {static_cast<float>(realOf(j[0])), static_cast<float>(realOf(j[1]))};
    break;
  case DType::Complex128:
    t.data<std::complex<double>>()[i] = {realOf(j[0]), realOf(j[1])};
    break;
  case DType::Bool:
    t.data<bool>()[i] = j.get<bool>();
    break;
  case DType::UInt64:
    t.data<uint64_t>()[i] = j.get<uint64_t>();
    break;
  case DType::Int64:
    t.data<int64_t>()[i] = j.get<int64_t>();
    break;
  case DType::Int32:
  case DType::UInt32:
    t.data<uint32_t>()[i] = static_cast<uint32_t>(j.get<int64_t>());
    break;
  case DType::Int16:
  case DType::UInt16:
    t.data<uint16_t>()[i] = static_cast<uint16_t>(j.get<int64_t>());
    break;
  default:
    t.data<uint8_t>()[i] = static_cast<uint8_t>(j.get<int64_t>());
  }
}

inline Tensor tensorOf(const Json &j) {
  DType type = parseDType(j["dtype"].get<std::string>()).value();
  if (j.contains("held")) {
    // a handle to a variable of its own with that value
    Tensor value = tensorOf(j["held"]);
    auto variable = std::make_shared<Variable>(value.dtype());
    variable->value = value;
    return makeHandle("", "variable", variable);
  }
  Tensor t = Tensor::allocate(type, j["dims"].get<std::vector<int64_t>>());
  for (int64_t i = 0; i < t.numElements(); ++i)
    if (type == DType::String)
      t.mutableStrings()[i] = bytesOf(j["data"][i]);
    else
      store(t, i, j["data"][i]);
  return t;
}

inline PartialShape shapeOf(const Json &j) {
  return j.is_null() ? PartialShape() : PartialShape(j.get<std::vector<int64_t>>());
}

inline AttrValue attrOfJson(const Json &j) {
  std::string kind = j[0];
  const Json &v = j[1];
  auto list = [&](auto convert) {
    std::vector<decltype(convert(v))> all;
    for (const Json &one : v)
      all.push_back(convert(one));
    return AttrValue(std::move(all));
  };
  auto text = [](const Json &one) { return bytesOf(one); };
  auto type = [](const Json &one) { return parseDType(one.get<std::string>()).value(); };
  if (kind == "i")
    return v.get<int64_t>();
  if (kind == "f")
    return static_cast<float>(realOf(v));
  if (kind == "b")
    return v.get<bool>();
  if (kind == "s")
    return text(v);
  if (kind == "type")
    return type(v);
  if (kind == "shape")
    return shapeOf(v);
  if (kind == "tensor")
    return tensorOf(v);
  if (kind == "list(i)")
    return list([](const Json &one) { return one.get<int64_t>(); });
  if (kind == "list(f)")
    return list([](const Json &one) { return static_cast<float>(realOf(one)); });
  if (kind == "list(b)")
    return list([](const Json &one) { return one.get<bool>(); });
  if (kind == "list(s)")
    return list(text);
  if (kind == "list(type)")
    return list(type);
  if (kind == "list(shape)")
    return list([](const Json &one) { return shapeOf(one); });
  return std::monostate();
}

} // namespace lathe::rt

#endif
