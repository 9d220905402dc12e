// Shapes of what host ops give, as far as the compiler of the clusters behind them needs them: ranks, and sizes that are
// known. Types are tensor types of the graph dialect; an unranked one says nothing.
#ifndef LATHE_COMPILER_HOSTED_HOSTSHAPES_H
#define LATHE_COMPILER_HOSTED_HOSTSHAPES_H

#include "dialects/graph/Graph.h"

namespace lathe::hosted {

/// Sets the types of a node's unranked outputs where its op, its attributes and the types of its inputs say more.
void inferHostShapes(graph::NodeOp node);

} // namespace lathe::hosted

#endif
