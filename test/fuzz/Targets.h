// What is fuzzed: each target takes any bytes and must return. A target's mutator changes bytes that it can take apart.
#ifndef LATHE_TEST_FUZZ_TARGETS_H
#define LATHE_TEST_FUZZ_TARGETS_H

#include "compiler/import/Import.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace lathe::fuzz {

struct Target {
  const char *name;
  void (*run)(std::string_view bytes);
  void (*mutate)(std::string &bytes, uint32_t seed);
};

/// graphdef: bytes of a binary model through the importer.
/// saved_model: a folder (saved_model.pb, index and shard of its checkpoint packed by packFolder) through the importer.
/// legalize: a GraphDef through import, clustering, legalization and folding.
/// text: a .pbtxt through the importer.
/// table: a checkpoint index and shard through the TensorBundle reader, every tensor read.
/// tflite: a TensorFlow Lite file through its frontend, folding of shapes included.
extern const Target graphdef, saved_model, legalize, text, table, tflite;

/// The parts of a model folder as one string: two lengths of 4 bytes, then the three contents.
std::string packFolder(std::string_view model, std::string_view index, std::string_view data);

/// Inputs for which one context is used.
constexpr int contextInputs = 512;

/// Limits under which no input takes long.
ImportOptions smallOptions();

/// What comes out must be valid; what fails must say why.
void expect(bool ok, const char *what);

} // namespace lathe::fuzz

#endif
