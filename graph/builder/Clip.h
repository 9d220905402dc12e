// Limits for gradients. Of rows, their values are limited: rows of equal indices count apart, as in TensorFlow.
#ifndef LATHE_GRAPH_BUILDER_CLIP_H
#define LATHE_GRAPH_BUILDER_CLIP_H

#include "graph/builder/Scope.h"

namespace lathe::train {

/// Each number into [low, high].
Gradient ClipByValue(const Scope &scope, const Gradient &gradient, const Input &low, const Input &high);
/// Shorter, where its 2-norm is above `norm`; with `axes`, along them.
Gradient ClipByNorm(const Scope &scope, const Gradient &gradient, const Input &norm, const std::vector<int32_t> &axes = {});
/// The same by the mean of squares' root: the norm over the number of elements.
Gradient ClipByAverageNorm(const Scope &scope, const Gradient &gradient, const Input &norm);
/// The 2-norm of all gradients together; those that are none do not count.
Output GlobalNorm(const Scope &scope, const std::vector<Gradient> &gradients);
/// All shorter by one factor, so that their global norm is at most `norm`; NaN where it is not finite. `globalNorm` gets it before that.
std::vector<Gradient> ClipByGlobalNorm(const Scope &scope, const std::vector<Gradient> &gradients, const Input &norm,
                                       Output *globalNorm = nullptr);

} // namespace lathe::train

#endif
