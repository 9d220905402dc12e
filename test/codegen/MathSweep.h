// Sweeps an emitted f32 function over all floats (every `stride`-th bit pattern) and measures its error in ulp.
#ifndef LATHE_TEST_CODEGEN_MATHSWEEP_H
#define LATHE_TEST_CODEGEN_MATHSWEEP_H

#include "passes/codegen/element/MathEmitter.h"

#include <functional>
#include <string>
#include <vector>

namespace lathe::test {

struct MathCase {
  const char *name;
  codegen::Fn fn;
  double (*reference)(double);
  double maxUlp;
};

/// The unary f32 functions with a reference in libm and the error each promises.
const std::vector<MathCase> &mathCases();

struct SweepResult {
  bool ok = false;
  double worstUlp = 0;
  float worstAt = 0;
  float got = 0;
  double want = 0;
  uint64_t wrongSpecial = 0; ///< NaN, infinity or sign of zero not as in the reference
  float specialAt = 0;
};

SweepResult sweep(const MathCase &c, uint32_t stride, const std::string &cpu, unsigned lanes);

} // namespace lathe::test

#endif // LATHE_TEST_CODEGEN_MATHSWEEP_H
