// Replays goldens/*.json: single ops with the inputs, attributes and outputs (or error codes) that TensorFlow had.
// Written by make_goldens.py.
#include "base/Float.h"
#include "test/runtime/KernelTest.h"

#include <nlohmann/json.hpp>

#include <cmath>
#include <complex>
#include <filesystem>
#include <fstream>

namespace lathe::rt {
namespace {

using Json = nlohmann::json;

/// Bytes are kept as the characters of their numbers.
std::string bytesOf(const std::string &utf8) {
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

double realOf(const Json &j) {
  if (j.is_string()) {
    std::string s = j;
    return s == "nan" ? NAN : s[0] == '-' ? -INFINITY : INFINITY;
  }
  return j.is_boolean() ? static_cast<double>(j.get<bool>()) : j.get<double>();
}

void store(Tensor &t, int64_t i, const Json &j) {
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

Tensor tensorOf(const Json &j) {
  DType type = parseDType(j["dtype"].get<std::string>()).value();
  Tensor t = Tensor::allocate(type, j["dims"].get<std::vector<int64_t>>());
  for (int64_t i = 0; i < t.numElements(); ++i)
    if (type == DType::String)
      t.mutableStrings()[i] = bytesOf(j["data"][i]);
    else
      store(t, i, j["data"][i]);
  return t;
}

PartialShape shapeOf(const Json &j) {
  return j.is_null() ? PartialShape() : PartialShape(j.get<std::vector<int64_t>>());
}

AttrValue attrOfJson(const Json &j) {
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

double toleranceOf(DType type) {
  switch (type) {
  case DType::BFloat16:
    return 3e-2;
  case DType::Float16:
    return 1e-2;
  case DType::Float32:
  case DType::Complex64:
    return 1e-5;
  default:
    return 1e-9;
  }
}

double part(const Tensor &t, int64_t i, int which) {
  switch (t.dtype()) {
  case DType::Float32:
    return t.data<float>()[i];
  case DType::Float16:
    return halfToFloat(t.data<uint16_t>()[i]);
  case DType::BFloat16:
    return bfloat16ToFloat(t.data<uint16_t>()[i]);
  case DType::Complex64:
    return t.data<float>()[2 * i + which];
  case DType::Complex128:
    return t.data<double>()[2 * i + which];
  default:
    return t.data<double>()[i];
  }
}

void compare(const Tensor &got, const Tensor &want, double tolerance) {
  ASSERT_EQ(got.dtype(), want.dtype());
  ASSERT_EQ(got.dims(), want.dims());
  if (want.dtype() == DType::String) {
    EXPECT_EQ(got.strings(), want.strings());
  } else if (isFloating(want.dtype()) || isComplex(want.dtype())) {
    if (tolerance == 0)
      tolerance = toleranceOf(want.dtype());
    for (int64_t i = 0; i < want.numElements(); ++i)
      for (int which = 0; which <= isComplex(want.dtype()); ++which) {
        double a = part(got, i, which), b = part(want, i, which);
        bool same = (std::isnan(a) && std::isnan(b)) || a == b || std::abs(a - b) <= tolerance * (1 + std::abs(b));
        ASSERT_TRUE(same) << "element " << i << ": " << a << ", expected " << b;
      }
  } else {
    int64_t size = static_cast<int64_t>(dtypeSize(want.dtype()));
    for (int64_t i = 0; i < want.numElements(); ++i) {
      int64_t a = 0, b = 0;
      memcpy(&a, got.data<char>() + i * size, size);
      memcpy(&b, want.data<char>() + i * size, size);
      ASSERT_EQ(a, b) << "element " << i;
    }
  }
}

class Golden : public testing::TestWithParam<std::string> {};

TEST_P(Golden, Replays) {
  std::ifstream file(std::string(LATHE_GOLDENS) + "/" + GetParam() + ".json");
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    Json j = Json::parse(line);
    SCOPED_TRACE(GetParam() + ".json:" + std::to_string(number) + ": " + line.substr(0, 700));
    AttrMap attrs;
    for (auto &[name, value] : j["attrs"].items())
      attrs[name] = attrOfJson(value);
    KernelTest kernel(j["op"], std::move(attrs));
    std::vector<Value> inputs;
    for (const Json &input : j["inputs"])
      inputs.push_back(tensorOf(input));
    auto out = kernel.run(std::move(inputs));
    if (j.contains("error")) {
      EXPECT_EQ(static_cast<int>(out.status().code()), j["error"].get<int>()) << out.status();
      continue;
    }
    EXPECT_TRUE(out.ok()) << out.status();
    if (!out.ok())
      continue;
    EXPECT_EQ(out->size(), j["outputs"].size());
    for (size_t i = 0; i < j["outputs"].size() && i < out->size(); ++i) {
      SCOPED_TRACE("output " + std::to_string(i));
      compare((*out)[i], tensorOf(j["outputs"][i]), j.value("tolerance", 0.0));
    }
  }
}

std::vector<std::string> families() {
  std::vector<std::string> all;
  for (auto &entry : std::filesystem::directory_iterator(LATHE_GOLDENS))
    if (entry.path().extension() == ".json")
      all.push_back(entry.path().stem());
  std::sort(all.begin(), all.end());
  return all;
}

INSTANTIATE_TEST_SUITE_P(Families, Golden, testing::ValuesIn(families()),
                         [](const auto &info) { return info.param; });

} // namespace
} // namespace lathe::rt
