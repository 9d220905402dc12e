// Print, PrintV2, Assert, Timestamp.
#include "runtime/kernels/Common.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>

namespace lathe::rt {
namespace {

/// The tensors in brackets, as Print and Assert show them.
std::string listOf(const KernelContext &context, int first, int64_t limit, const char *between) {
  std::string text;
  for (int i = first; i < context.numInputs(); ++i)
    absl::StrAppend(&text, i > first ? between : "", "[", summarize(context.input(i), limit, false), "]");
  return text;
}

class Print : public HostKernel {
public:
  explicit Print(KernelInit &init)
      : message(init.attr<std::string>("message")), times(init.attr<int64_t>("first_n")),
        limit(init.attr<int64_t>("summarize")) {}
  absl::Status compute(KernelContext &context) override {
    context.setOutput(0, context.input(0));
    if (times >= 0 && done.fetch_add(1) >= times)
      return absl::OkStatus();
    fprintf(stderr, "%s%s\n", message.c_str(), listOf(context, 1, limit, "").c_str());
    return absl::OkStatus();
  }

private:
  std::string message;
  int64_t times, limit;
  std::atomic<int64_t> done{0};
};
LATHE_HOST_KERNEL(Print, Print);

absl::Status printV2(KernelContext &context) {
  LATHE_TRY_VALUE(text, oneString(context.input(0), "Input"));
  const std::string &stream = *attrOf<std::string>(*context.node, "output_stream");
  std::string line = text + *attrOf<std::string>(*context.node, "end");
  if (stream.rfind("file://", 0) == 0) {
    std::ofstream file(stream.substr(7), std::ios::app | std::ios::binary);
    if (!(file << line))
      return absl::InternalError(absl::StrCat("cannot write to ", stream));
    return absl::OkStatus();
  }
  if (stream != "stdout" && stream != "stderr" && stream.rfind("log(", 0) != 0)
    return invalid("Unknown output stream: ", stream, ", Valid streams are: stdout, stderr, log(info), log(warning), log(error)");
  FILE *file = stream == "stdout" ? stdout : stderr;
  fwrite(line.data(), 1, line.size(), file);
  fflush(file);
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(PrintV2, printV2);

absl::Status assertTrue(KernelContext &context) {
  Tensor condition = context.input(0);
  if (condition.rank() != 0)
    return invalid("In[0] should be a scalar: ", dimsToString(condition.dims()));
  if (condition.data<bool>()[0])
    return absl::OkStatus();
  return invalid("assertion failed: ", listOf(context, 1, *attrOf<int64_t>(*context.node, "summarize"), " "));
}
LATHE_HOST_FUNCTION(Assert, assertTrue);

absl::Status timestamp(KernelContext &context) {
  auto now = std::chrono::system_clock::now().time_since_epoch();
  context.setOutput(0, Tensor::scalar<double>(DType::Float64, std::chrono::duration<double>(now).count()));
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(Timestamp, timestamp);

} // namespace
} // namespace lathe::rt
