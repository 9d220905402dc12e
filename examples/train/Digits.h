// Handwritten digits of 8 x 8 pixels as the examples read them: bytes of grey levels and bytes of labels.
#ifndef LATHE_EXAMPLES_TRAIN_DIGITS_H
#define LATHE_EXAMPLES_TRAIN_DIGITS_H

#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

constexpr int kSide = 8, kPixels = kSide * kSide, kClasses = 10, kBatch = 64;

struct Digits {
  std::vector<unsigned char> images, labels;

  Digits(const std::string &folder, const std::string &kind)
      : images(read(folder + "/" + kind + "_images.u8")), labels(read(folder + "/" + kind + "_labels.u8")) {}
  int size() const { return static_cast<int>(labels.size()); }
  bool valid() const { return size() > 0 && images.size() == labels.size() * kPixels; }

  /// The digits whose numbers are in `which`; pixels have 17 grey levels.
  void batch(const int *which, int count, float *x, int64_t *y) const {
    for (int i = 0; i < count; ++i) {
      for (int p = 0; p < kPixels; ++p)
        x[i * kPixels + p] = static_cast<float>(images[which[i] * kPixels + p]) / 16.0f;
      y[i] = labels[which[i]];
    }
  }

private:
  static std::vector<unsigned char> read(const std::string &path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }
};

#endif
