// The text classifier as an application uses it: probabilities on stdout, then the same with two threads, an error, and two
// instances side by side.
#include "text.h"

#include <cstdio>
#include <thread>

static int run(int threads, const char *label) {
  app::Text model(threads);
  if (!model.ok())
    return std::printf("not usable: %s\n", model.error_msg().c_str()), 1;
  model.set_text({"The film was GREAT fun", "a dull boring plot", "loved the acting", "", "unknown words only here"});
  for (int i = 0; i < 3; ++i) // tables keep what they hold
    if (!model.Run())
      return std::printf("failed: %s\n", model.error_msg().c_str()), 1;
  auto p = model.probabilities();
  std::printf("%s %zu x %zu:", label, size_t(p.dim(0)), size_t(p.dim(1)));
  for (float v : p)
    std::printf(" %.5f", double(v));
  std::printf("\n");
  model.set_text({});
  if (!model.Run() || model.probabilities_dims() != std::vector<int64_t>{0, 2})
    return std::printf("no text: %s\n", model.error_msg().c_str()), 1;
  model.set_text({"x"}, {1, 1});
  if (!model.Run())
    std::printf("%s: %s\n", label, model.error_msg().c_str());
  return 0;
}

int main() {
  app::Text unset;
  if (!unset.Run())
    std::printf("unset: %s\n", unset.error_msg().c_str());
  int status = run(1, "one");
  std::thread other([&] { status |= run(2, "two"); });
  other.join();
  return status;
}
