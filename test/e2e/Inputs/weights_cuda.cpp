// digits_cnn for a device with its weights in the object and in a file: refused until the file is bound, then the same bits from both, for instances
// made before as for those made later. The argument is the file.
#ifdef LATHE_USE_MMAP
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#endif
#include INSIDE_HEADER
#include OUTSIDE_HEADER

#include <cstdio>
#include <cstring>

template <class Model>
static bool run(Model &m) {
  for (int64_t i = 0; i < m.arg0_count(); ++i)
    m.arg0_data()[i] = static_cast<float>(i * 37 % 17) / 16.0f;
  if (m.Run())
    return true;
  std::printf("status %d: %s\n", m.error_code(), m.error_msg().c_str());
  return false;
}

int main(int argc, char **argv) {
  inside::Digits inside;
  if (argc < 2 || !run(inside))
    return 1;
  outside::Digits early;
  if (run(early) || outside::Digits::BindWeightsFile("/nonexistent") || !outside::Digits::BindWeightsFile(argv[1]))
    return 1;
  outside::Digits late, other;
  for (outside::Digits *m : {&early, &late, &other, &early})
    if (!run(*m) || std::memcmp(m->result1_data(), inside.result1_data(), sizeof(float) * static_cast<size_t>(inside.result_count(1))) != 0)
      return std::printf("other bits\n"), 1;
  std::printf("the same bits\n");
}
