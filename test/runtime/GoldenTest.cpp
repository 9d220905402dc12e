// Replays goldens/*.json: single ops with the inputs, attributes and outputs (or error codes) that TensorFlow had.
// Written by make_goldens.py.
#include "test/runtime/Golden.h"
#include "test/runtime/KernelTest.h"

#include <filesystem>
#include <fstream>

namespace lathe::rt {
namespace {

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
    Tensor handle = inputs.empty() ? Tensor() : inputs[0].tensor;
    auto out = kernel.run(std::move(inputs));
    if (j.contains("held")) {
      auto *resource = dynamic_cast<ResourceHandle *>(handle.objects()[0].get());
      compare(dynamic_cast<Variable &>(*resource->resource).value, tensorOf(j["held"]), 0);
    }
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
