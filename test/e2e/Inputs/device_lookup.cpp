// Runs left in streams, beside a class whose header and object come from before there were any.
#include HEADERS

#include "device_driver.h"

#include <thread>
#include <vector>

static float expected(int i, int j) { return static_cast<float>(2 * i + j + 1); }

// Runs whose inputs and results lie on the device, all of them in one stream before the first wait.
static bool many(Driver &driver, void *stream, int first, int runs) {
  constexpr int n = 37;
  lookup::Model model;
  if (!model.set_batch(n))
    return false;
  int32_t *in = driver.allocate<int32_t>(size_t(n * runs + 16));
  float *out = driver.allocate<float>(size_t(2 * n * runs + 16));
  std::vector<int32_t> which(size_t(n * runs));
  for (size_t i = 0; i < which.size(); ++i)
    which[i] = (first + static_cast<int>(i * 7)) % 3;
  driver.upload(in, which.data(), which.size());
  model.set_stream(stream);
  bool ok = true;
  for (int r = 0; ok && r < runs; ++r) {
    model.set_arg_device(0, in + r * n);
    model.set_result_device(0, out + r * 2 * n);
    ok = model.Run();
  }
  ok = model.Wait() && ok;
  std::vector<float> rows(size_t(2 * n * runs));
  driver.download(rows.data(), out, rows.size());
  for (size_t i = 0; ok && i < which.size(); ++i)
    ok = rows[2 * i] == expected(which[i], 0) && rows[2 * i + 1] == expected(which[i], 1);
  driver.release(in);
  driver.release(out);
  return ok;
}

static bool otherSizes(void *stream) {
  lookup::Model model;
  model.set_stream(stream);
  std::vector<std::vector<int32_t>> in;
  std::vector<std::vector<float>> out;
  for (int n : {3, 900, 1, 0, 17}) {
    in.emplace_back(size_t(n), n % 3);
    out.emplace_back(size_t(2 * n) + 1, -1.0f);
  }
  for (size_t k = 0; k < in.size(); ++k) {
    if (!model.set_batch(static_cast<int64_t>(in[k].size())))
      return false;
    model.set_arg0_data(in[k].data());
    model.set_result0_data(out[k].data());
    if (!model.Run())
      return false;
  }
  if (!model.Wait())
    return false;
  for (size_t k = 0; k < in.size(); ++k)
    for (size_t i = 0; i < in[k].size(); ++i)
      if (out[k][2 * i] != expected(in[k][i], 0) || out[k][2 * i + 1] != expected(in[k][i], 1))
        return false;
  return true;
}

static void errors(void *stream) {
  lookup::Model model;
  model.set_batch(4);
  model.set_stream(stream);
  const int32_t right[] = {0, 1, 2, 0}, wrong[] = {0, 1, 3, 0};
  float rows[8];
  model.set_result0_data(rows);
  model.set_arg0_data(right);
  const bool first = model.Run();
  model.set_arg0_data(wrong);
  const bool second = model.Run();
  model.set_arg0_data(right);
  const bool third = model.Run();
  const bool waited = model.Wait();
  std::printf("enqueued %d %d %d, Wait %d, status %d: %s\n", first, second, third, waited, model.error_code(), model.error_msg().c_str());
  const bool again = model.Wait(), once = model.Run() && model.Wait();
  std::printf("Wait again %d, right once more %d\n", again, once && rows[4] == expected(2, 0));
}

static bool oldClass() {
  old::Lookup model;
  if (!model.set_batch(2))
    return false;
  model.arg0_data()[0] = 2;
  model.arg0_data()[1] = 0;
  return model.Run() && model.result0(0, 1) == expected(2, 1) && model.result0(1, 0) == expected(0, 0);
}

int main() {
  Driver driver;
  if (!driver.enter())
    return 1;
  void *one = nullptr, *two = nullptr;
  driver.call("cuStreamCreate", &one, 1u);
  driver.call("cuStreamCreate", &two, 0u);
  std::printf("twenty runs: %s\n", many(driver, one, 1, 20) ? "right" : "WRONG");
  errors(one);
  bool a = false, b = false;
  std::thread other([&] {
    Driver here;
    a = here.enter() && many(here, one, 0, 9);
    here.leave();
  });
  b = many(driver, two, 2, 12);
  other.join();
  std::printf("two threads: %s\n", a && b ? "right" : "WRONG");
  std::printf("other sizes: %s\n", otherSizes(one) ? "right" : "WRONG");
  std::printf("old class: %s\n", oldClass() ? "right" : "WRONG");
  {
    lookup::Model model;
    model.arg0_data()[0] = 1;
    bool ok = model.Run();
    lookup_unload();
    ok = model.Run() && ok && model.result0(0, 1) == expected(1, 1);
    model.set_stream(two);
    ok = model.Run() && model.Wait() && ok && model.result0(0, 1) == expected(1, 1);
    std::printf("after unload: %s\n", ok ? "right" : "WRONG");
    const bool there = model.set_device(5);
    std::printf("no device 5: %d, status %d: %s\n", there, model.error_code(), model.error_msg().c_str());
  }
  driver.call("cuStreamDestroy", one);
  driver.call("cuStreamDestroy", two);
  driver.leave();
  return 0;
}
