//===- CallSize.h - how many nodes inlining makes at least -----*- C++ -*-===//
//
// Functions that call each other twice grow exponentially; a model of 30 short functions would take a minute and
// gigabytes until the limit on nodes is met. Counting needs each function once for each of its outputs.
//
//===----------------------------------------------------------------------===//
#ifndef LATHE_COMPILER_IMPORT_CALLSIZE_H
#define LATHE_COMPILER_IMPORT_CALLSIZE_H

#include "compiler/import/Flatten.h"

#include <map>

namespace lathe::import {

class CallSize {
public:
  explicit CallSize(Library &library) : library(library) {}

  /// A lower bound of the instances and calls that the entry, or the function with all its outputs, needs.
  int64_t ofEntry(const Flattener::EntrySpec &spec);
  int64_t ofFunction(const Body &function);
  /// The node of the main graph whose call was the largest of the last entry; -1 without calls.
  int largestCall() const { return largest; }

private:
  /// What an output of a function needs besides the function's effects; or one of these instead of an output.
  static constexpr int kEffects = -1, kEverything = -2;
  struct Part {
    int64_t nodes = 0;
    std::vector<int> args; ///< needs them
  };
  class Walk;

  const Part &measure(const Body &body, int output);

  Library &library;
  std::map<std::pair<const Body *, int>, Part> parts;
  int64_t steps = 0;
  int largest = -1;
};

} // namespace lathe::import

#endif
