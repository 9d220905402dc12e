// Training steps with everything on the host, with tensors in memory of the device that the application allocated, and in a
// stream of the application with the state kept on the device: the same bits. Reads the images and labels that train.py writes.
#include MODEL_HEADER

#include "device_driver.h"

#include <cstring>
#include <string>
#include <vector>

constexpr int64_t batch = 32, steps = 6, pixels = 64, weights = 640, biases = 10;

template <typename T>
static std::vector<T> read(const char *path) {
  std::vector<T> data(size_t(steps * batch) * (sizeof(T) == 4 ? pixels : 1));
  std::FILE *f = std::fopen(path, "rb");
  if (!f || std::fread(data.data(), sizeof(T), data.size(), f) != data.size())
    std::exit(2);
  std::fclose(f);
  return data;
}

struct State {
  std::vector<float> losses, w, b;
  bool operator==(const State &o) const {
    return losses == o.losses && std::memcmp(w.data(), o.w.data(), weights * 4) == 0 && std::memcmp(b.data(), o.b.data(), biases * 4) == 0;
  }
};

static bool fine(mnist::Model &model, bool ok) {
  if (!ok)
    std::printf("status %d: %s\n", model.error_code(), model.error_msg().c_str());
  return ok;
}

static State stateOf(mnist::Model &model, std::vector<float> losses) {
  std::vector<float> all(weights + biases);
  model.save_state(all.data());
  const bool wFirst = model.var_W_count() == weights && model.LookupVariableIndex("W") == 0;
  State s{std::move(losses), {}, {}};
  s.w.assign(all.begin() + (wFirst ? 0 : biases), all.begin() + (wFirst ? weights : weights + biases));
  s.b.assign(all.begin() + (wFirst ? weights : 0), all.begin() + (wFirst ? weights + biases : biases));
  return s;
}

static bool onHost(const std::vector<float> &images, const std::vector<int64_t> &labels, State &result) {
  mnist::Model model;
  std::vector<float> losses;
  if (!fine(model, model.set_batch(batch)) || !fine(model, model.Init()))
    return false;
  for (int64_t i = 0; i < steps; ++i) {
    model.set_x(images.data() + i * batch * pixels);
    model.set_y_(labels.data() + i * batch);
    if (!fine(model, model.TrainStep()))
      return false;
    losses.push_back(model.result0());
  }
  result = stateOf(model, losses);
  return true;
}

// `shift` bytes beside an aligned address: then tensors are copied within the device.
static bool onDevice(Driver &driver, const std::vector<float> &images, const std::vector<int64_t> &labels, State &result, size_t shift) {
  mnist::Model model;
  auto at = [&](auto *p) { return reinterpret_cast<decltype(p)>(reinterpret_cast<char *>(p) + shift); };
  float *x = driver.allocate<float>(images.size() + 4), *loss = driver.allocate<float>(16);
  int64_t *y = driver.allocate<int64_t>(labels.size() + 2);
  float *w = driver.allocate<float>(weights + 4), *b = driver.allocate<float>(biases + 4);
  driver.upload(at(x), images.data(), images.size());
  driver.upload(at(y), labels.data(), labels.size());
  const std::vector<float> zero(weights, 0.0f), untouched(weights, 5.0f);
  driver.upload(at(w), zero.data(), weights);
  driver.upload(at(b), zero.data(), biases);
  std::memcpy(model.var_W_data(), untouched.data(), weights * 4);
  float *hostW = model.var_W_data();
  model.set_var_W_device(at(w));
  model.set_var_b_device(at(b));
  model.set_result0_device(at(loss));
  std::vector<float> losses;
  bool ok = fine(model, model.set_batch(batch)) && fine(model, model.Init());
  for (int64_t i = 0; ok && i < steps; ++i) {
    model.set_arg_device(model.LookupArgIndex("x"), at(x) + i * batch * pixels);
    if (i % 2)
      model.set_y_(labels.data() + i * batch); // the one there, the other here
    else
      model.set_arg_device(size_t(model.LookupArgIndex("y_")), at(y) + i * batch);
    ok = fine(model, model.TrainStep());
    float value = 0;
    driver.download(&value, at(loss), 1);
    losses.push_back(value);
  }
  if (ok && std::memcmp(hostW, untouched.data(), weights * 4) != 0)
    std::printf("the host's copy of W was written\n");
  if (ok)
    result = stateOf(model, losses);
  for (void *p : {static_cast<void *>(x), static_cast<void *>(loss), static_cast<void *>(y), static_cast<void *>(w), static_cast<void *>(b)})
    driver.release(p);
  return ok;
}

static bool inStream(Driver &driver, const std::vector<float> &images, const std::vector<int64_t> &labels, State &result, bool own) {
  mnist::Model model;
  void *stream = nullptr;
  if (own)
    driver.call("cuStreamCreate", &stream, 1u);
  bool ok = fine(model, model.set_batch(batch)) && fine(model, model.keep_state_on_device());
  model.set_stream(stream);
  std::vector<float> losses(steps);
  const size_t before = driver.freeBytes();
  ok = ok && fine(model, model.Init());
  for (int64_t i = 0; ok && i < steps; ++i) {
    model.set_x(images.data() + i * batch * pixels);
    model.set_y_(labels.data() + i * batch);
    model.set_result0_data(&losses[size_t(i)]);
    ok = fine(model, model.TrainStep());
    if (i == 2)
      ok = fine(model, model.Wait()) && ok;
  }
  ok = fine(model, model.Wait()) && ok;
  if (ok && driver.freeBytes() != before)
    std::printf("runs allocate\n");
  if (ok)
    result = stateOf(model, losses);
  if (own)
    driver.call("cuStreamDestroy", stream);
  return ok;
}

// The state moves with the model, and each device has what runs there.
static bool onTwoDevices(const std::vector<float> &images, const std::vector<int64_t> &labels, State &result) {
  mnist::Model model, other(mnist::Model::AllocMode::ARGS_VARIABLES_RESULTS_PROFILES_AND_TEMPS, 1);
  std::vector<float> losses;
  bool ok = fine(model, model.set_batch(batch)) && fine(model, model.keep_state_on_device()) && fine(model, model.Init());
  ok = ok && fine(other, other.set_batch(batch)) && fine(other, other.Init());
  for (int64_t i = 0; ok && i < steps; ++i) {
    model.set_x(images.data() + i * batch * pixels);
    model.set_y_(labels.data() + i * batch);
    other.set_x(images.data() + i * batch * pixels);
    other.set_y_(labels.data() + i * batch);
    if (i % 2 && !fine(model, model.set_device(1 - model.device())))
      return false;
    ok = fine(model, model.TrainStep()) && fine(other, other.TrainStep());
    losses.push_back(model.result0());
    ok = ok && other.result0() == model.result0();
  }
  result = stateOf(model, losses);
  return ok;
}

int main(int argc, char **argv) {
  if (argc != 4)
    return 2;
  auto images = read<float>(argv[1]);
  auto labels = read<int64_t>(argv[2]);
  Driver driver;
  const bool entered = driver.enter();
  const std::string what = argv[3];
  State host, device, shifted, stream, byDefault;
  bool ok = entered;
  if (what == "all") {
    ok = ok && onHost(images, labels, host) && onDevice(driver, images, labels, device, 0) &&
         onDevice(driver, images, labels, shifted, 8) && inStream(driver, images, labels, byDefault, false);
    if (ok)
      std::printf("device %d, shifted %d, default stream %d\n", host == device, host == shifted, host == byDefault);
  }
  if (what == "devices") {
    ok = ok && onHost(images, labels, host) && onTwoDevices(images, labels, device);
    if (ok)
      std::printf("two devices %d\n", host == device);
  }
  ok = ok && inStream(driver, images, labels, stream, true);
  if (ok && what == "all")
    std::printf("stream %d\n", host == stream);
  if (entered)
    driver.leave();
  return ok ? 0 : 1;
}
