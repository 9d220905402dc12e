// Names of files by pattern.
#ifndef LATHE_RUNTIME_KERNELS_CHECKPOINT_GLOB_H
#define LATHE_RUNTIME_KERNELS_CHECKPOINT_GLOB_H

#include <algorithm>
#include <glob.h>
#include <string>
#include <vector>

namespace lathe::rt {

/// Sorted; hidden files count, as in TensorFlow.
inline std::vector<std::string> matchingFiles(const std::string &pattern) {
  std::vector<std::string> names;
  glob_t found;
  if (glob(pattern.c_str(), GLOB_NOSORT | GLOB_PERIOD, nullptr, &found) == 0)
    for (size_t i = 0; i < found.gl_pathc; ++i) {
      std::string name = found.gl_pathv[i];
      std::string last = name.substr(name.rfind('/') + 1);
      if (last != "." && last != "..")
        names.push_back(std::move(name));
    }
  globfree(&found);
  std::sort(names.begin(), names.end());
  return names;
}

} // namespace lathe::rt

#endif
