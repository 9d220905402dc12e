// State that rows are added to, one of which does not exist.
#include MODEL_HEADER

#include <cstdio>

static void use(const char *what, bool onDevice, bool inStream) {
  total::Model model;
  float state[2] = {0, 0};
  bool ok = !onDevice || model.keep_state_on_device();
  if (inStream)
    model.set_stream(nullptr);
  ok = ok && model.Init();
  const auto add = [&](int row) {
    *static_cast<int32_t *>(model.arg_data(0)) = row;
    return model.Add();
  };
  ok = ok && add(1) && model.Wait();
  const bool ran = add(3);
  std::printf("%s: %d, status %d: %s", what, ran, model.error_code(), model.error_msg().c_str());
  ok = model.Wait() && model.save_state(state) && ok;
  std::printf("; %g %g", static_cast<double>(state[0]), static_cast<double>(state[1]));
  ok = add(2) && model.Wait() && model.save_state(state) && ok;
  std::printf(", then %g %g%s\n", static_cast<double>(state[0]), static_cast<double>(state[1]), ok ? "" : " FAILED");
}

int main() {
  use("host", false, false);
  use("device", true, false);
  use("stream", true, true);
  return 0;
}
