// The reference evaluator's results, and the comparison with them.
#include "Parsed.h"

#include "dialects/hlo/Evaluator.h"
#include "passes/fusion/ExpandKernels.h"

#include <cmath>

namespace lathe::test {

KernelRun runReference(const std::string &text, const std::vector<Tensor> &inputs) {
  Parsed p;
  if (!parse(text, p))
    return fail("parse: " + p.messages);
  if (failed(expandKernels(*p.module)))
    return fail("expand: " + p.messages);
  auto r = hlo::evaluateFunction(p.f, inputs);
  if (failed(r))
    return fail("evaluate: " + p.messages);
  KernelRun run;
  run.ok = true;
  run.outputs.assign(r->begin(), r->end());
  return run;
}

std::string compareWithReference(const std::string &text, const std::vector<Tensor> &inputs, double tolerance,
                                 const std::string &cpuName) {
  KernelRun got = runKernel(text, inputs, cpuName);
  if (!got.ok)
    return got.message;
  if (got.error)
    return "kernel error " + std::to_string(got.error);
  KernelRun want = runReference(text, inputs);
  if (!want.ok)
    return want.message;
  if (got.outputs.size() != want.outputs.size())
    return "number of results";
  for (size_t k = 0; k < got.outputs.size(); ++k) {
    const Tensor &a = got.outputs[k], &b = want.outputs[k];
    double d = difference(a, b);
    if (d <= tolerance)
      continue;
    std::string m = "result " + std::to_string(k) + " differs by " + std::to_string(d) + " " + dimsToString(a.dims()) +
                    " vs " + dimsToString(b.dims()) + ":";
    for (int64_t i = 0, shown = 0; i < std::min(a.numElements(), b.numElements()) && shown < 8; ++i) {
      double x = valueAt(a, i, 0), y = valueAt(b, i, 0);
      if (std::fabs(x - y) > tolerance * std::max(1.0, std::fabs(y)) || std::isnan(x) != std::isnan(y)) {
        m += " [" + std::to_string(i) + "] " + std::to_string(x) + " vs " + std::to_string(y);
        ++shown;
      }
    }
    return m;
  }
  return "";
}

} // namespace lathe::test
