// Registration of the families on arrays: shapes, slices, gather and scatter, segments, sorting, matrices, images, random.
#ifndef LATHE_PASSES_LEGALIZE_ARRAY_ARRAYFAMILIES_H
#define LATHE_PASSES_LEGALIZE_ARRAY_ARRAYFAMILIES_H

#include "passes/legalize/HandlerTable.h"

namespace lathe::legalize {

/// Adds all families below.
void registerArrayFamilies(HandlerTable &);

void registerArray(HandlerTable &);
void registerSlice(HandlerTable &);
void registerPad(HandlerTable &);
void registerGather(HandlerTable &);
void registerSegment(HandlerTable &);
void registerSort(HandlerTable &);
void registerDataSize(HandlerTable &);
void registerMatrix(HandlerTable &);
void registerLinalg(HandlerTable &);
void registerRandom(HandlerTable &);
void registerImage(HandlerTable &);
void registerCrops(HandlerTable &);
void registerSparse(HandlerTable &);
void registerSparseRows(HandlerTable &);
void registerRagged(HandlerTable &);
void registerQuantize(HandlerTable &);
void registerQuantized(HandlerTable &);
void registerQuantizedFused(HandlerTable &);
void registerQuantizedMath(HandlerTable &);
void registerUniform(HandlerTable &);
void registerChoice(HandlerTable &);
void registerStateArray(HandlerTable &);
void registerMorphology(HandlerTable &);
void registerAudio(HandlerTable &);

} // namespace lathe::legalize

#endif
