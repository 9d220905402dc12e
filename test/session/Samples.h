// The samples that session tests run, and what they hold.
#ifndef LATHE_TEST_SESSION_SAMPLES_H
#define LATHE_TEST_SESSION_SAMPLES_H

#include "base/Npz.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <sstream>
#include <string>

namespace lathe::test {

inline const std::string kSamples = LATHE_SOURCE_DIR "/test/data/samples/";

inline std::string readAll(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

inline NamedTensors npz(const std::string &path) {
  auto all = readNpz(path);
  EXPECT_TRUE(all.ok()) << all.status();
  return all.ok() ? *all : NamedTensors();
}

inline Tensor named(const NamedTensors &all, const std::string &name) {
  for (auto &[n, t] : all)
    if (n == name)
      return t;
  ADD_FAILURE() << name;
  return Tensor();
}

/// Rows [from, from + n) with everything behind the first dimension flattened, or without it where that is one element.
inline Tensor rows(const Tensor &t, int64_t from, int64_t n, bool flatten) {
  int64_t width = t.numElements() / t.dim(0);
  Tensor out = Tensor::allocate(t.dtype(), flatten ? std::vector<int64_t>{n, width} : std::vector<int64_t>{n});
  std::memcpy(out.data(), static_cast<const char *>(t.data()) + from * width * dtypeSize(t.dtype()), out.sizeBytes());
  return out;
}

} // namespace lathe::test

#endif
