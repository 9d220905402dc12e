// 300 steps of mnist_softmax_train through the compiled class. Reads raw little-endian arrays (train.py writes them),
// writes losses, accuracy, W and b to the file named last.
#include MODEL_HEADER
#include <cstdio>
#include <cstring>
#include <vector>

template <typename T>
static std::vector<T> read(const char *path) {
  std::vector<T> data;
  if (std::FILE *f = std::fopen(path, "rb")) {
    std::fseek(f, 0, SEEK_END);
    data.resize(static_cast<size_t>(std::ftell(f)) / sizeof(T));
    std::fseek(f, 0, SEEK_SET);
    if (std::fread(data.data(), sizeof(T), data.size(), f) != data.size())
      data.clear();
    std::fclose(f);
  }
  return data;
}

int main(int argc, char **argv) {
  if (argc != 6)
    return 2;
  auto images = read<float>(argv[1]);
  auto labels = read<int64_t>(argv[2]);
  auto testImages = read<float>(argv[3]);
  auto testLabels = read<int64_t>(argv[4]);
  mnist::Model model;
  auto must = [&](bool ok) {
    if (!ok)
      std::fprintf(stderr, "%s\n", model.error_msg().c_str());
    return ok;
  };
  if (!must(model.Init()))
    return 1;
  std::vector<float> out;
  const int64_t batch = 64;
  if (!must(model.set_batch(batch)))
    return 1;
  for (int64_t step = 0; step < 300; ++step) {
    int64_t row = batch * step % 1344;
    model.set_x(images.data() + row * 64);
    model.set_y_(labels.data() + row);
    // the entries share the state, each has inputs of its own
    if (!must(model.TrainStep()))
      return 1;
    out.push_back(model.result0());
  }
  int64_t tests = static_cast<int64_t>(testLabels.size());
  if (!must(model.set_batch(tests)))
    return 1;
  for (size_t i = 0; i < model.kNumArgs; ++i)
    model.set_arg_data(i, i % 2 ? static_cast<const void *>(testLabels.data()) : testImages.data());
  if (!must(model.Loss()) || !must(model.Accuracy()))
    return 1;
  out.push_back(model.result1());
  out.insert(out.end(), model.var_W_data(), model.var_W_data() + 640);
  out.insert(out.end(), model.var_b_data(), model.var_b_data() + 10);
  std::FILE *f = std::fopen(argv[5], "wb");
  if (!f || std::fwrite(out.data(), sizeof(float), out.size(), f) != out.size())
    return 1;
  return std::fclose(f);
}
