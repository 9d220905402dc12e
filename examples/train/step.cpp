// Trains the network of main.cpp by its compiled step: links step.o and nothing else.
//   train-digits DATA-FOLDER digits
//   lathe compile digits_step.pb -o step --class digits::Training --entry Init=/init --entry InitOptimizer=/init_optimizer
//     --entry Step=loss/train --entry Digit=digit
#include "step.h"

#include "examples/train/Digits.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>

int main(int argc, char **argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s DATA-FOLDER [EPOCHS]\n", argv[0]);
    return 1;
  }
  const Digits train(argv[1], "train"), test(argv[1], "test");
  const int epochs = argc > 2 ? std::atoi(argv[2]) : 20;
  if (!train.valid() || !test.valid()) {
    std::fprintf(stderr, "expected %d bytes an image and one a label in '%s'\n", kPixels, argv[1]);
    return 1;
  }
  digits::Training model;
  auto works = [&](bool ok) {
    if (!ok)
      std::fprintf(stderr, "%s\n", model.error_msg().c_str());
    return ok;
  };
  if (!works(model.Init()) || !works(model.InitOptimizer()) || !works(model.set_batch(kBatch)))
    return 1;
  std::mt19937 random(1);
  std::vector<int> order(train.size());
  std::iota(order.begin(), order.end(), 0);
  std::vector<float> x(kBatch * kPixels);
  std::vector<int64_t> y(kBatch);
  for (int epoch = 0; epoch < epochs; ++epoch) {
    std::shuffle(order.begin(), order.end(), random);
    float sum = 0;
    int steps = 0;
    for (int at = 0; at + kBatch <= train.size(); at += kBatch, ++steps) {
      train.batch(&order[at], kBatch, x.data(), y.data());
      model.set_image(x.data());
      model.set_labels(y.data());
      if (!works(model.Step()))
        return 1;
      sum += model.result0();
    }
    std::printf("epoch %d: loss %.4f\n", epoch + 1, sum / static_cast<float>(steps));
  }
  std::vector<int> all(test.size());
  std::iota(all.begin(), all.end(), 0);
  x.resize(test.size() * kPixels);
  y.resize(test.size());
  test.batch(all.data(), test.size(), x.data(), y.data());
  if (!works(model.set_batch(test.size())))
    return 1;
  model.set_image_1(x.data()); // each entry has a batch of its own size, so inputs of its own
  if (!works(model.Digit()))
    return 1;
  int right = 0;
  for (int i = 0; i < test.size(); ++i)
    right += model.result_digit_data()[i] == y[i];
  std::printf("accuracy %.4f (%d of %d digits)\n", static_cast<double>(right) / test.size(), right, test.size());
  return 0;
}
