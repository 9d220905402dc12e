// Instances of an object whose compiled parts run on devices: "ARGS..." are the devices, each of an instance of its own; all live side by side.
#include "between.h"

#include <cstdio>
#include <cstdlib>
#include <memory>

int main(int argc, char **argv) {
  constexpr int64_t rows = 512;
  std::vector<float> x(rows * 64, 1);
  x[77] = 2;
  const float right = 4 * float(x.size() + 3);
  std::vector<std::unique_ptr<Between>> all;
  for (int i = 1; i < argc; ++i) {
    all.push_back(std::make_unique<Between>(1, std::atoi(argv[i])));
    Between &model = *all.back();
    model.set_x(x.data(), {rows, 64});
    for (int turn = 0; turn < 4; ++turn) {
      if (!model.Run())
        return std::printf("status %d: %s\n", model.error_code(), model.error_msg().c_str()), 1;
      if (model.y()[0] != right)
        return std::printf("%f, not %f\n", double(model.y()[0]), double(right)), 2;
    }
  }
  std::printf("right on %d\n", argc - 1);
}
