// The integer form of one unit.
#ifndef LATHE_PASSES_QUANTIZE_FORMS_H
#define LATHE_PASSES_QUANTIZE_FORMS_H

#include "passes/quantize/Arithmetic.h"
#include "passes/quantize/Units.h"

#include "mlir/Dialect/Quant/IR/QuantTypes.h"

namespace lathe::quantize {

/// What hlo.quantized says of a unit.
struct UnitTypes {
  mlir::SmallVector<Params, 2> inputs;
  Params output;
  int64_t bits = 8;
};
/// Null when the mark is missing or does not fit the unit.
std::optional<UnitTypes> typesOf(const Unit &unit);
/// The same, with an error at the unit's node instead.
mlir::FailureOr<UnitTypes> requireTypes(const Unit &unit);
/// How the first unit that reads a value and has its mark takes it; null where none does.
struct ReadAs {
  Params params;
  int64_t bits;
};
std::optional<ReadAs> readAs(ArrayRef<Unit> units, Value value);
Params paramsOf(mlir::quant::UniformQuantizedType type);

/// The unit's result from its quantized inputs, at the emitter's insertion point; null after an error.
Value emitUnit(Emitter &e, const Unit &unit, const UnitTypes &types, ArrayRef<Value> inputs);

/// The integer of `bits` that stands for x, clamped.
int64_t quantizeNumber(double x, Params params, int64_t bits);
/// The 256 results of a Table for the inputs from -128 on. Failure where its function has no numbers.
mlir::FailureOr<mlir::SmallVector<int64_t>> tableEntries(const Unit &unit, const UnitTypes &types);
/// The integers of a constant of f32; none for other values.
std::optional<Tensor> quantizedTensor(Value x, Params params, int64_t bits);

/// A float value in integers of `bits`; rounded to nearest, ties away from zero, clamped.
Value quantizeValue(Emitter &e, Value x, Params params, int64_t bits);
Value dequantizeValue(Emitter &e, Value q, Params params);
/// The integers of a constant or a splat; null for other values.
Value quantizeConstant(Emitter &e, Value x, Params params, int64_t bits);

} // namespace lathe::quantize

#endif
