// How quantized operators round: high halves of products, ties away from zero, tables of bytes.
#include "Text.h"

#include <cmath>
#include <random>

namespace lathe::test {
namespace {

const char *processors[] = {"x86-64-v2", "x86-64-v3", "x86-64-v4", "icelake-server"};

std::string binary(const char *to, const char *name, const char *a, const char *c, const std::string &type) {
  return std::string(to) + " = \"hlo." + name + "\"(" + a + ", " + c + ") : (" + type + ", " + type +
         ") -> " + type + "\n";
}

std::string number(const char *to, int64_t value, const std::string &type) {
  return std::string(to) + " = \"hlo.constant\"() {value = dense<" + std::to_string(value) + "> : " + type +
         "} : () -> " + type + "\n";
}

// Sums and multipliers at random and where products lie between two integers, in vectors and what is left of
// them.
TEST(Requantize, HighProducts) {
  std::mt19937 random(3);
  for (int64_t n : {1, 3, 16, 64, 1000}) {
    const std::string word = type({n}, "i32"), wide = type({n}, "i64");
    auto convert = [&](const char *to, const char *from, const std::string &in, const std::string &out) {
      return std::string(to) + " = \"hlo.convert\"(" + from + ") : (" + in + ") -> " + out + "\n";
    };
    const std::string body =
        convert("%p", "%a0", word, wide) + convert("%q", "%a1", word, wide) +
        binary("%m", "multiply", "%p", "%q", wide) + number("%h", int64_t(1) << 30, wide) +
        binary("%s", "add", "%m", "%h", wide) + number("%c", 31, wide) +
        binary("%r", "shift_right_arithmetic", "%s", "%c", wide) + convert("%y", "%r", wide, word);
    Tensor x = Tensor::allocate(DType::Int32, {n}), v = Tensor::allocate(DType::Int32, {n});
    for (int64_t i = 0; i < n; ++i) {
      const uint32_t draw = random();
      x.data<int32_t>()[i] = i % 4 == 0   ? int32_t(draw)
                             : i % 4 == 1 ? int32_t(draw % 65536) - 32768
                             : i % 4 == 2 ? (draw % 2 ? 1 : -1) << (draw / 2 % 31)
                             : draw % 3   ? INT32_MIN
                                          : INT32_MAX;
      v.data<int32_t>()[i] = i % 3 == 0   ? 1 << 30
                             : i % 3 == 1 ? int32_t((1u << 30) | random() >> 2)
                                          : INT32_MAX;
    }
    for (const char *cpu : processors)
      if (hostRuns(cpu))
        EXPECT_EQ(compareWithReference(kernelOf("loop", {word, word}, word, body), {x, v}, 0, cpu), "")
            << cpu << " " << n;
  }
}

template <typename T>
void checkRounding(const char *elem, DType dtype) {
  std::vector<T> values = {
      0, T(-0.0), T(INFINITY), T(-INFINITY), std::numeric_limits<T>::max(), std::numeric_limits<T>::min()};
  std::mt19937_64 random(5);
  const int digits = std::numeric_limits<T>::digits;
  for (int power = 0; power <= digits + 1; ++power)
    for (int i = 0; i < 24; ++i) {
      const T whole = i ? std::floor(std::ldexp(T(1) + T(random() % 4096) / 4096, power)) : T(0);
      for (T tie : {whole + T(0.5), whole})
        for (T at : {tie, std::nextafter(tie, T(0)), std::nextafter(tie, T(INFINITY))})
          values.insert(values.end(), {at, -at});
    }
  const int64_t n = values.size();
  Tensor x = Tensor::allocate(dtype, {n});
  std::copy(values.begin(), values.end(), x.data<T>());
  const std::string t = type({n}, elem);
  for (const char *cpu : processors) {
    if (!hostRuns(cpu))
      continue;
    KernelRun run = runKernel(kernelOf("loop", {t}, t, unaryOp("round_nearest_afz", t, t)), {x}, cpu);
    ASSERT_TRUE(run.ok) << run.message;
    for (int64_t i = 0; i < n; ++i)
      ASSERT_EQ(run.outputs[0].data<T>()[i], std::round(values[i])) << cpu << " " << values[i];
  }
}

TEST(Requantize, TiesAwayFromZero) {
  checkRounding<float>("f32", DType::Float32);
  checkRounding<double>("f64", DType::Float64);
}

TEST(Requantize, TablesOfBytes) {
  const std::string target =
      "module attributes {lathe.target = #dlti.target_device_spec<\"features\" = \"+avx2,+avx512vbmi\">} {\n";
  for (int64_t n : {1, 63, 64, 130, 4096, 9001}) {
    const std::string table = type({256}, "i8"), index = type({n}, "ui8"), out = type({n}, "i8");
    const std::string text = function({table, index}, out,
                                      "%r = \"hlo.gather\"(%x0, %x1) {dimension_numbers = "
                                      "#hlo.gather<collapsed_slice_dims = [0], start_index_map = [0], "
                                      "index_vector_dim = 1>, slice_sizes = array<i64: 1>} : (" +
                                          table + ", " + index + ") -> " + out);
    Tensor entries = randomTensor(DType::Int8, {256}, 9, 127), at = Tensor::allocate(DType::UInt8, {n});
    for (int64_t i = 0; i < n; ++i)
      at.data<uint8_t>()[i] = uint8_t(i * 37 + i / 256);
    for (const char *cpu : processors)
      if (hostRuns(cpu))
        for (bool told : {false, std::string(cpu) == "icelake-server"})
          EXPECT_EQ(compareWithReference(told ? target + text + "}" : text, {entries, at}, 0, cpu), "")
              << cpu << " " << n;
  }
}

} // namespace
} // namespace lathe::test
