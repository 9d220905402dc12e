#include "upper.h"

#include <cstdio>

int main() {
  Upper model;
  model.set_s({"ab", "c"});
  if (!model.Run())
    return std::printf("%s\n", model.error_msg().c_str()), 1;
  for (const std::string &s : model.up())
    std::printf("%s\n", s.c_str());
}
