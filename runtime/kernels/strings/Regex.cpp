// RegexReplace, RegexFullMatch and their forms with the pattern as an attribute.
#include "runtime/kernels/Common.h"

#include <re2/re2.h>

namespace lathe::rt {
namespace {

/// The last pattern compiled, kept for the steps that use the same again.
class Regex {
public:
  absl::StatusOr<std::shared_ptr<const RE2>> get(const std::string &pattern) {
    std::lock_guard<std::mutex> lock(mutex);
    if (!last || last->pattern() != pattern) {
      auto made = std::make_shared<RE2>(pattern, RE2::Quiet);
      if (!made->ok())
        return invalid("Invalid pattern: ", pattern, ", error: ", made->error());
      last = std::move(made);
    }
    return last;
  }

private:
  std::mutex mutex;
  std::shared_ptr<const RE2> last;
};

class Replace : public HostKernel {
public:
  explicit Replace(KernelInit &init) : global(init.attr<bool>("replace_global")) {
    fixed = init.hasAttr("pattern");
    if (!fixed)
      return;
    pattern = init.attr<std::string>("pattern");
    rewrite = init.attr<std::string>("rewrite");
    if (auto made = regex.get(pattern); !made.ok())
      init.fail(made.status());
  }

  absl::Status compute(KernelContext &context) override {
    Tensor in = context.input(0);
    std::string p = pattern, r = rewrite;
    if (!fixed) {
      LATHE_TRY_VALUE(first, oneString(context.input(1), "Pattern"));
      LATHE_TRY_VALUE(second, oneString(context.input(2), "Rewrite"));
      p = first, r = second;
    }
    LATHE_TRY_VALUE(compiled, regex.get(p));
    // a rewrite that names a group that is not there replaces nothing, as in TensorFlow
    LATHE_TRY_VALUE(out, context.allocateOutput(0, in.dims()));
    for (int64_t i = 0; i < in.numElements(); ++i) {
      std::string &text = out.mutableStrings()[i];
      text = in.strings()[i];
      global ? RE2::GlobalReplace(&text, *compiled, r) : RE2::Replace(&text, *compiled, r);
    }
    return absl::OkStatus();
  }

private:
  Regex regex;
  bool fixed, global;
  std::string pattern, rewrite;
};
LATHE_HOST_KERNEL(RegexReplace, Replace);
LATHE_HOST_KERNEL(StaticRegexReplace, Replace);

class FullMatch : public HostKernel {
public:
  explicit FullMatch(KernelInit &init) {
    fixed = init.hasAttr("pattern");
    if (!fixed)
      return;
    pattern = init.attr<std::string>("pattern");
    if (auto made = regex.get(pattern); !made.ok())
      init.fail(made.status());
  }

  absl::Status compute(KernelContext &context) override {
    Tensor in = context.input(0);
    std::string p = pattern;
    if (!fixed) {
      LATHE_TRY_VALUE(given, oneString(context.input(1), "Pattern"));
      p = given;
    }
    LATHE_TRY_VALUE(compiled, regex.get(p));
    LATHE_TRY_VALUE(out, context.allocateOutput(0, in.dims()));
    for (int64_t i = 0; i < in.numElements(); ++i)
      out.data<bool>()[i] = RE2::FullMatch(in.strings()[i], *compiled);
    return absl::OkStatus();
  }

private:
  Regex regex;
  bool fixed;
  std::string pattern;
};
LATHE_HOST_KERNEL(RegexFullMatch, FullMatch);
LATHE_HOST_KERNEL(StaticRegexFullMatch, FullMatch);

} // namespace
} // namespace lathe::rt
