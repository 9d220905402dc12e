// Best of several rounds each, so that a busy neighbour does not lower the roof.
#include "tools/lathe/Machine.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>

namespace lathe::cli {

double threadSeconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

namespace {

constexpr int64_t accumulators = 12, steps = 400000;

// Loops of independent multiply-adds; they return operations a second. Data are no special numbers: constant or vanishing
// ones can be faster than any real ones.
template <int N>
struct Lanes {
  typedef float Vec __attribute__((vector_size(4 * N)));
};

#if defined(__x86_64__)
// The register tile of a product, its operands in the first cache: processors lower their clock for multiply-adds that are
// fed from memory, and a loop on registers alone would be a roof that no product can reach.
constexpr int fedSteps = 64;

#define LATHE_PEAK(NAME, TARGET, LANES, ROWS, CONSTRAINT)                                                              \
  __attribute__((target(TARGET), noinline)) double NAME() {                                                            \
    typedef Lanes<LANES>::Vec Vec;                                                                                     \
    alignas(64) static float left[ROWS * fedSteps], right[2 * LANES * fedSteps];                                       \
    for (int i = 0; i < ROWS * fedSteps; ++i)                                                                          \
      left[i] = 0.37f + 0.00113f * static_cast<float>(i);                                                              \
    for (int i = 0; i < 2 * LANES * fedSteps; ++i)                                                                     \
      right[i] = 0.91f - 0.00117f * static_cast<float>(i);                                                             \
    const int64_t rounds = steps * accumulators / (2 * ROWS * fedSteps);                                               \
    double start = threadSeconds();                                                                                    \
    for (int64_t i = 0; i < rounds; ++i) {                                                                             \
      Vec acc[2 * ROWS] = {};                                                                                          \
      for (int k = 0; k < fedSteps; ++k) {                                                                             \
        Vec x = *reinterpret_cast<const Vec *>(right + 2 * LANES * k);                                                 \
        Vec y = *reinterpret_cast<const Vec *>(right + 2 * LANES * k + LANES);                                         \
        _Pragma("GCC unroll 16") for (int r = 0; r < ROWS; ++r) {                                                      \
          Vec factor;                                                                                                  \
          asm volatile("vbroadcastss %1, %0" : "=" CONSTRAINT(factor) : "m"(left[r * fedSteps + k]));                  \
          asm volatile("vfmadd231ps %1, %2, %0" : "+" CONSTRAINT(acc[2 * r]) : CONSTRAINT(factor), CONSTRAINT(x));     \
          asm volatile("vfmadd231ps %1, %2, %0" : "+" CONSTRAINT(acc[2 * r + 1]) : CONSTRAINT(factor), CONSTRAINT(y)); \
        }                                                                                                              \
      }                                                                                                                \
      _Pragma("GCC unroll 32") for (int r = 0; r < 2 * ROWS; ++r) asm volatile("" : : CONSTRAINT(acc[r]));             \
    }                                                                                                                  \
    return static_cast<double>(rounds * fedSteps * 4 * ROWS * LANES) / (threadSeconds() - start);                      \
  }
LATHE_PEAK(peak512, "avx512f,fma", 16, 13, "v")
LATHE_PEAK(peak256, "avx2,fma", 8, 6, "x")
#undef LATHE_PEAK

/// Without fused multiply-add: products and sums of their own, on vectors of `LANES` floats.
#define LATHE_PEAK(NAME, TARGET, LANES, MULTIPLY, ADD)                                                                 \
  __attribute__((target(TARGET), noinline)) double NAME() {                                                            \
    Lanes<LANES>::Vec acc[accumulators] = {}, x;                                                                       \
    for (int i = 0; i < LANES; ++i)                                                                                    \
      x[i] = 0.37f + 0.0713f * static_cast<float>(i);                                                                  \
    double start = threadSeconds();                                                                                    \
    for (int64_t i = 0; i < steps; ++i)                                                                                \
      for (int j = 0; j < accumulators; j += 2) {                                                                      \
        asm volatile(MULTIPLY : "+x"(acc[j]) : "x"(x));                                                                \
        asm volatile(ADD : "+x"(acc[j + 1]) : "x"(x));                                                                 \
      }                                                                                                                \
    return static_cast<double>(steps * accumulators * LANES) / (threadSeconds() - start);                              \
  }
LATHE_PEAK(peak256Apart, "avx", 8, "vmulps %1, %0, %0", "vaddps %1, %0, %0")
LATHE_PEAK(peak128Apart, "sse2", 4, "mulps %1, %0", "addps %1, %0")
#undef LATHE_PEAK

#define LATHE_READ(NAME, TARGET, LANES, CONSTRAINT)                                                                    \
  __attribute__((target(TARGET), noinline)) void NAME(const char *data, int64_t bytes) {                               \
    const auto *p = reinterpret_cast<const Lanes<LANES>::Vec *>(data);                                                 \
    for (const auto *end = p + bytes / (4 * LANES); p < end; p += 8) {                                                 \
      for (int j = 0; j < 8; ++j) {                                                                                    \
        Lanes<LANES>::Vec v = p[j];                                                                                    \
        asm volatile("" : : CONSTRAINT(v));                                                                            \
      }                                                                                                                \
    }                                                                                                                  \
  }
LATHE_READ(read512, "avx512f", 16, "v")
LATHE_READ(read256, "avx2", 8, "x")
#undef LATHE_READ
#endif

double peakOnce([[maybe_unused]] const MachineCode &code) {
#if defined(__x86_64__)
  if (code.vectorBits >= 512 && __builtin_cpu_supports("avx512f"))
    return peak512();
  if (code.vectorBits >= 256 && code.fma && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return peak256();
  return code.vectorBits >= 256 && __builtin_cpu_supports("avx") ? peak256Apart() : peak128Apart();
#endif
  typedef Lanes<4>::Vec Vec;
  Vec acc[accumulators] = {}, x = {0.37f, 0.44f, 0.51f, 0.58f}, y = {0.91f, 0.78f, 0.65f, 0.52f};
  double start = threadSeconds();
  for (int64_t i = 0; i < steps; ++i)
    for (Vec &a : acc) {
      a += x * y;
      asm volatile("" : : "m"(a));
    }
  return static_cast<double>(steps * accumulators * 8) / (threadSeconds() - start);
}

void readOnce(const char *data, int64_t bytes) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f"))
    return read512(data, bytes);
  if (__builtin_cpu_supports("avx2"))
    return read256(data, bytes);
#endif
  const auto *p = reinterpret_cast<const Lanes<4>::Vec *>(data);
  for (int64_t i = 0; i < bytes / 16; ++i) {
    Lanes<4>::Vec v = p[i];
    asm volatile("" : : "m"(v));
  }
}

/// Calls `once` until it moved 8 MB (once at least), five times over; bytes a second at best.
template <typename F>
double bestRate(int64_t bytes, F once) {
  int64_t times = std::max<int64_t>(1, (int64_t(8) << 20) / bytes);
  double best = 0;
  once();
  for (int round = 0; round < 5; ++round) {
    double start = threadSeconds();
    for (int64_t i = 0; i < times; ++i)
      once();
    best = std::max(best, static_cast<double>(bytes * times) / std::max(threadSeconds() - start, 1e-9));
  }
  return best;
}

} // namespace

double Machine::rate(const std::vector<std::pair<int64_t, double>> &table, int64_t bytes) {
  for (const auto &[size, rate] : table)
    if (bytes <= size)
      return rate;
  return table.empty() ? 1e9 : table.back().second;
}

double Machine::bound(double flopCount, double constants, double others, int64_t allConstants) const {
  double moving = constants / readRate(allConstants) + others / copyRate(static_cast<int64_t>(others));
  return std::max(flopCount / flops, moving);
}

Machine Machine::measure(int threads, const MachineCode &code) {
  Machine m;
  for (int i = 0; i < 7; ++i)
    m.flops = std::max(m.flops, peakOnce(code));
  const int64_t largest = int64_t(96) << 20;
  std::unique_ptr<char, void (*)(void *)> data(static_cast<char *>(std::aligned_alloc(4096, largest)), std::free);
  if (data)
    std::memset(data.get(), 1, largest);
  for (int64_t bytes : {int64_t(32) << 10, int64_t(512) << 10, int64_t(1) << 20, int64_t(4) << 20, int64_t(16) << 20, largest}) {
    if (!data)
      break;
    m.reading.push_back({bytes, bestRate(bytes, [&] { readOnce(data.get(), bytes); })});
    m.copying.push_back({bytes, bestRate(bytes, [&] {
                           std::memcpy(data.get(), data.get() + bytes / 2, bytes / 2);
                           asm volatile("" : : "r"(data.get()) : "memory");
                         })});
  }
  // a larger set is never faster: what disturbed the measurement of a smaller one is taken out
  for (auto *table : {&m.reading, &m.copying})
    for (size_t i = table->size(); i-- > 1;)
      (*table)[i - 1].second = std::max((*table)[i - 1].second, (*table)[i].second);
  m.flops *= threads;
  for (auto *table : {&m.reading, &m.copying})
    for (auto &entry : *table)
      entry.second *= threads;
  return m;
}

} // namespace lathe::cli
