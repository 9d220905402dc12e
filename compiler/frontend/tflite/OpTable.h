// The table from operators to the functions that translate them, with the versions and element types that those know.
#ifndef LATHE_COMPILER_FRONTEND_TFLITE_OPTABLE_H
#define LATHE_COMPILER_FRONTEND_TFLITE_OPTABLE_H

#include "compiler/frontend/tflite/OpContext.h"

#include <functional>
#include <map>

namespace lathe::tflite {

/// Element types of an operator's first input, as a set. Quantized ones are integers with scales.
enum Types : unsigned {
  Float32 = 1,
  OtherFloat = 2, ///< float16, bfloat16, float64
  Quant8 = 4,     ///< int8 and uint8 with scales
  Quant16 = 8,    ///< int16 with scales
  Ints = 16,      ///< integers without scales
  Bools = 32,
  Complexes = 64,
  Handles = 128, ///< variables
  Quantized = Quant8 | Quant16,
  Numbers = Float32 | OtherFloat | Ints,
  Any = 255
};

struct OpEntry {
  int minInputs = 0, maxInputs = 0, maxVersion = 1;
  unsigned types = Any;
  std::function<LogicalResult(OpContext &)> translate;
};

class OpTable {
public:
  static constexpr int kMany = 1 << 20;
  void add(tfl::BuiltinOperator op, int minInputs, int maxInputs, int maxVersion, unsigned types,
           std::function<LogicalResult(OpContext &)> translate) {
    entries[op] = {minInputs, maxInputs, maxVersion, types, std::move(translate)};
  }
  const OpEntry *lookup(tfl::BuiltinOperator op) const {
    auto it = entries.find(op);
    return it == entries.end() ? nullptr : &it->second;
  }

private:
  std::map<tfl::BuiltinOperator, OpEntry> entries;
};

/// All families, made once.
const OpTable &opTable();
/// The set that an element type belongs to.
Types typesOf(const TensorInfo &info);

// One function a family file.
void registerElementwise(OpTable &);
void registerBinary(OpTable &);
void registerConv(OpTable &);
void registerProduct(OpTable &);
void registerPool(OpTable &);
void registerShape(OpTable &);
void registerSlice(OpTable &);
void registerIndexing(OpTable &);
void registerEmbedding(OpTable &);
void registerRandom(OpTable &);
void registerBodies(OpTable &);
void registerStablehlo(OpTable &);
void registerReduce(OpTable &);
void registerNorm(OpTable &);
void registerResize(OpTable &);
void registerRnn(OpTable &);
void registerControl(OpTable &);
void registerQuantize(OpTable &);
void registerTables(OpTable &);

} // namespace lathe::tflite

#endif
