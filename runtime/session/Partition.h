// Devices of nodes, and a graph cut into one part a device with Send and Recv between them.
#ifndef LATHE_RUNTIME_SESSION_PARTITION_H
#define LATHE_RUNTIME_SESSION_PARTITION_H

#include "runtime/device.h"
#include "runtime/session/Graph.h"

namespace lathe::rt {

/// The device of each node, as an index. What must be together is: colocation classes (`_class` "loc:@x"), references and
/// resources with the node that makes them, all nodes of a loop. A group's explicit device decides; without one it is
/// the first device. With `soft`, a device that is not there becomes the first, otherwise it is INVALID_ARGUMENT.
absl::StatusOr<std::vector<int>> placeNodes(const tf::GraphDef &graph, const Library &library, const std::vector<const Device *> &devices,
                                            bool soft, const GraphLimits &limits);

/// Whether some node waits for its own result, loops taken as one (an edge back into a loop's Merge is no cycle by itself).
bool hasCycleAroundLoops(const tf::GraphDef &graph);

struct Part {
  int device = 0;
  Body body; ///< argument and result numbers are those of the whole
};

/// Cuts edges between devices: one Send and Recv per tensor and receiving device; control edges send a dummy.
absl::StatusOr<std::vector<Part>> partition(Body body, const std::vector<int> &placement, const Library &library,
                                            const std::vector<const Device *> &devices, const GraphLimits &limits);

} // namespace lathe::rt

#endif
