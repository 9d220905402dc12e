// MLIR text for the kernel tests, and their comparison with the reference evaluator.
#ifndef LATHE_TEST_CODEGEN_TEXT_H
#define LATHE_TEST_CODEGEN_TEXT_H

#include "KernelHarness.h"

#include <gtest/gtest.h>

namespace lathe::test {

// An attribute array<i64: ...>.
inline std::string list(const std::vector<int64_t> &values) {
  std::string s;
  for (int64_t v : values)
    s += (s.empty() ? "" : ", ") + std::to_string(v);
  return "array<i64: " + s + ">";
}

// A static tensor type.
inline std::string type(const std::vector<int64_t> &dims, const char *elem = "f32") {
  std::string s = "tensor<";
  for (int64_t d : dims)
    s += std::to_string(d) + "x";
  return s + elem + ">";
}

// A function around one op: `op` may use %0, %1, ... (the arguments) and defines %r.
inline std::string function(const std::vector<std::string> &types, const std::string &result, const std::string &op) {
  std::string s = "func.func @f(";
  for (size_t i = 0; i < types.size(); ++i)
    s += (i ? ", %" : "%") + std::string("x") + std::to_string(i) + ": " + types[i];
  return s + ") -> " + result + " {\n" + op + "\n return %r : " + result + "\n}\n";
}

// A kernel with a region; the body uses %a0, %a1, ... and defines %y.
inline std::string kernelOf(const std::string &kind, const std::vector<std::string> &types, const std::string &result,
                            const std::string &body) {
  std::string args, ins, list;
  for (size_t i = 0; i < types.size(); ++i) {
    std::string n = std::to_string(i), comma = i ? ", " : "";
    ins += comma + "%x" + n;
    list += comma + types[i];
    args += comma + "%a" + n + ": " + types[i];
  }
  return function(types, result,
                  "%r = kernel." + kind + "(" + ins + ") : (" + list + ") -> " + result + " {\n^bb0(" + args + "):\n" +
                      body + "\n kernel.yield %y : " + result + "\n}");
}

inline std::string unaryOp(const std::string &name, const std::string &type, const std::string &result) {
  return "%y = \"hlo." + name + "\"(%a0) : (" + type + ") -> " + result;
}

inline DType dtypeOf(const std::string &e) {
  static const std::pair<const char *, DType> table[] = {
      {"f32", DType::Float32}, {"f64", DType::Float64},  {"f16", DType::Float16}, {"bf16", DType::BFloat16},
      {"i8", DType::Int8},     {"i16", DType::Int16},    {"i32", DType::Int32},   {"i64", DType::Int64},
      {"ui8", DType::UInt8},   {"ui16", DType::UInt16},  {"ui32", DType::UInt32}, {"ui64", DType::UInt64},
      {"i1", DType::Bool},     {"complex<f32>", DType::Complex64}, {"complex<f64>", DType::Complex128}};
  for (auto &[n, d] : table)
    if (e == n)
      return d;
  return DType::Invalid;
}

inline const char *cpus[] = {"host", "x86-64-v3", "x86-64"};
// for the tests that go over many ops or types
#define EXPECT_HOST_MATCH(...) EXPECT_EQ(compareWithReference(__VA_ARGS__), "")

#define EXPECT_MATCH(...)                                                                                            \
  for (const char *cpu : cpus)                                                                                       \
    if (hostRuns(cpu))                                                                                               \
  EXPECT_EQ(compareWithReference(__VA_ARGS__, cpu), "") << cpu

} // namespace lathe::test

#endif // LATHE_TEST_CODEGEN_TEXT_H
