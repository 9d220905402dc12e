// Errors of a device, and runs on two threads at once: instances share code and constants, each run has its own memory.
#include LOOKUP_HEADER

#include <cstdio>
#include <thread>

static bool looksUp(int first, int times) {
  lookup::Model model;
  for (int k = 0; k < times; ++k) {
    const int n = 1 + (first + k) % 700;
    if (!model.set_batch(n))
      return false;
    for (int i = 0; i < n; ++i)
      model.arg0_data()[i] = (first + i * 7 + k) % 3;
    if (!model.Run()) {
      std::printf("%s\n", model.error_msg().c_str());
      return false;
    }
    for (int i = 0; i < n; ++i)
      for (int j = 0; j < 2; ++j)
        if (model.result0(i, j) != 2 * ((first + i * 7 + k) % 3) + j + 1)
          return false;
  }
  return true;
}

int main() {
  bool one = false, two = false;
  std::thread other([&] { one = looksUp(0, 20); });
  two = looksUp(350, 20);
  other.join();
  std::printf("two threads: %s\n", one && two ? "right" : "WRONG");

  lookup::Model model;
  model.set_batch(300);
  for (int i = 0; i < 300; ++i)
    model.arg0_data()[i] = i == 287 ? 3 : i % 3;
  std::printf("outside: %d\n", model.Run());
  std::printf("status %d: %s\n", model.error_code(), model.error_msg().c_str());
  model.arg0_data()[287] = 2;
  std::printf("inside again: %d, %g\n", model.Run(), static_cast<double>(model.result0(287, 1)));
  const int64_t sizes[] = {300}, wrong[] = {-1};
  std::printf("needs: %d, %d\n", lookup_device_workspace_size(sizes) >= 300 * 8, lookup_device_workspace_size(wrong) < 0);
  lookup_unload();
  std::printf("after unload: %d, %g\n", model.Run(), static_cast<double>(model.result0(287, 1)));
  return 0;
}
