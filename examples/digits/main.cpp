// Classifies 400 real handwritten digits with the compiled digits_cnn model and prints the accuracy.
// Links digits.o and nothing else: `lathe compile digits_cnn/saved_model -o digits --class digits::Classifier`.
#include "digits.h"

#include <cstdio>
#include <vector>

static std::vector<unsigned char> readFile(const char *path) {
  std::vector<unsigned char> bytes;
  if (FILE *f = std::fopen(path, "rb")) {
    unsigned char buffer[4096];
    for (std::size_t n; (n = std::fread(buffer, 1, sizeof(buffer), f)) > 0;)
      bytes.insert(bytes.end(), buffer, buffer + n);
    std::fclose(f);
  }
  return bytes;
}

int main(int argc, char **argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s test_images.u8 test_labels.u8\n", argv[0]);
    return 1;
  }
  const int size = 8 * 8;
  std::vector<unsigned char> images = readFile(argv[1]), labels = readFile(argv[2]);
  if (labels.empty() || images.size() != labels.size() * size) {
    std::fprintf(stderr, "expected %d bytes an image and one a label\n", size);
    return 1;
  }

  digits::Classifier model;
  if (!model.set_batch(static_cast<int64_t>(labels.size()))) {
    std::fprintf(stderr, "%s\n", model.error_msg().c_str());
    return 1;
  }
  for (std::size_t i = 0; i < images.size(); ++i)
    model.arg_image_data()[i] = static_cast<float>(images[i]) / 16.0f; // pixels have 17 grey levels
  if (!model.Run()) {
    std::fprintf(stderr, "%s\n", model.error_msg().c_str());
    return 1;
  }

  int right = 0;
  for (std::size_t i = 0; i < labels.size(); ++i)
    right += model.result_digit_data()[i] == labels[i];
  std::printf("accuracy %.4f (%d of %d digits)\n", static_cast<double>(right) / static_cast<double>(labels.size()), right,
              static_cast<int>(labels.size()));
  return 0;
}
