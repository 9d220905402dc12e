// --sanitize=address needs the sanitizer's runtime in the process from its start: lathe-asan is the same program linked
// with it, and the commands that run code continue there.
#include "tools/lathe/Sanitize.h"

#include "tools/lathe/Commands.h"

#include <climits>
#include <cstdio>
#include <fstream>
#include <string>
#include <unistd.h>
#include <vector>

extern "C" __attribute__((weak)) void __asan_init();

namespace lathe::cli {

bool hasSanitizer() { return __asan_init != nullptr; }

int enterSanitizer() {
  if (hasSanitizer())
    return Fine;
  char self[PATH_MAX];
  ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
  std::string program = n > 0 ? std::string(self, n) : std::string();
  program = program.substr(0, program.rfind('/') + 1) + "lathe-asan";
  std::ifstream in("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(in, word, '\0');)
    words.push_back(word);
  std::vector<char *> args;
  for (std::string &word : words)
    args.push_back(word.data());
  args.push_back(nullptr);
  if (access(program.c_str(), X_OK) == 0) {
    fflush(nullptr);
    execv(program.c_str(), args.data());
  }
  return fail("--sanitize=address: cannot start " + program +
              "; it is built where the compiler has AddressSanitizer's runtime (libclang-rt-22-dev)");
}

static const lathe_step_info *volatile currentStep;

void noteStep(void *module, int32_t step, int32_t phase) {
  currentStep = phase == 0 ? static_cast<const lathe_module *>(module)->steps[step] : nullptr;
}

} // namespace lathe::cli

/// Called by the sanitizer's runtime before it ends the process.
extern "C" __attribute__((visibility("default"))) void __asan_on_error() {
  if (const lathe_step_info *step = lathe::cli::currentStep)
    fprintf(stderr, "lathe: internal error: kernel %s accessed memory outside its buffers (nodes: %s)\n", step->kernel,
            step->nodes);
}

/// Status 3 is a bug of ours. LLVM's allocators mark their memory in headers only, which the libraries do not follow.
extern "C" __attribute__((visibility("default"))) const char *__asan_default_options() {
  return "exitcode=3:detect_leaks=0:allocator_may_return_null=1:allow_user_poisoning=0:use_sigaltstack=0:"
         "max_allocation_size_mb=4096:soft_rss_limit_mb=8192:quarantine_size_mb=16:detect_stack_use_after_return=0";
}
