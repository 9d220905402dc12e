// relu(number + 1.5) of as many texts as there are.
#include "sizes.h"

#include <cstdio>

int main() {
  Sizes model;
  for (const std::vector<std::string> &texts : {std::vector<std::string>{"1", "-3", "2.75"}, {"7"}}) {
    model.set_s(texts);
    if (!model.Run())
      return std::printf("%s\n", model.error_msg().c_str()), 1;
    auto values = model.output_0();
    std::printf("%zu:", values.size());
    for (float v : values)
      std::printf(" %g", double(v));
    std::printf("\n");
  }
}
