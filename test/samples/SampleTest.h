// Sessions with a compiler over graphs in test/data.
#ifndef LATHE_TEST_SAMPLES_SAMPLETEST_H
#define LATHE_TEST_SAMPLES_SAMPLETEST_H

#include "base/Bytes.h"
#include "base/Npz.h"
#include "compiler/jit/ClusterCompiler.h"
#include "proto/graph.pb.h"
#include "runtime/session/Session.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

namespace lathe {

inline std::string dataPath(const std::string &name) { return LATHE_SOURCE_DIR "/test/data/" + name; }

inline std::map<std::string, Tensor> npz(const std::string &name) {
  auto read = readNpz(dataPath(name));
  EXPECT_TRUE(read.ok()) << read.status();
  std::map<std::string, Tensor> all;
  if (read.ok())
    for (auto &[key, tensor] : *read)
      all.emplace(key, tensor);
  return all;
}

inline SessionOptions compiling() {
  SessionOptions options;
  options.compiler = getClusterCompiler();
  return options;
}

/// Equal types and shapes; floats within `tolerance`, relative or absolute.
inline void expectSame(const Tensor &actual, const Tensor &expected, double tolerance, const std::string &what) {
  ASSERT_EQ(actual.dtype(), expected.dtype()) << what;
  ASSERT_EQ(actual.dims(), expected.dims()) << what;
  if (expected.dtype() == DType::String) {
    EXPECT_EQ(actual.strings(), expected.strings()) << what;
  } else if (expected.dtype() == DType::Float32) {
    for (int64_t i = 0; i < expected.numElements(); ++i) {
      float e = expected.data<float>()[i];
      ASSERT_NEAR(actual.data<float>()[i], e, tolerance * std::max(1.0f, std::fabs(e))) << what << " at " << i;
    }
  } else {
    EXPECT_EQ(std::string(actual.data<char>(), actual.sizeBytes()),
              std::string(expected.data<char>(), expected.sizeBytes()))
        << what;
  }
}

} // namespace lathe

#endif
