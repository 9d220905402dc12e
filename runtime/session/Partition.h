// Devices of nodes, and a graph cut into one part a device with Send and Recv between them.
#ifndef LATHE_RUNTIME_SESSION_PARTITION_H
#define LATHE_RUNTIME_SESSION_PARTITION_H

#include "runtime/abi/cluster_compiler.h"
#include "runtime/device.h"
#include "runtime/session/Graph.h"

#include <mutex>
#include <unordered_map>

namespace lathe::rt {

/// Where the resources of nodes are, by the node's name: what one run decided holds for all, whatever else they run.
struct PlacedResources {
  std::mutex mutex;
  std::unordered_map<std::string, int> devices;
};

struct PlacementRules {
  bool soft = true;                                 ///< what cannot be where it was put goes to the first device
  const lathe_cluster_compiler *compiler = nullptr; ///< tells what devices with a memory of their own can run
  PlacedResources *placed = nullptr;
};

/// The device of each node, as an index. What must be together is: colocation classes (`_class` "loc:@x"), references and
/// resources with the node that makes them, all nodes of a loop. A group's explicit device decides. Without one it is where
/// an earlier run made the group's resources, else the first device that has a memory of its own, if there is one and it runs the
/// whole group, else the first device. With `soft`, a
/// device that is not there, or has no form of some node of the group, becomes the first, otherwise it is INVALID_ARGUMENT. Bodies of
/// functions run where their caller is: without `soft` a node of one that names another device is INVALID_ARGUMENT.
absl::StatusOr<std::vector<int>> placeNodes(const tf::GraphDef &graph, const Library &library, const std::vector<Device *> &devices,
                                            const PlacementRules &rules, const GraphLimits &limits);

/// Whether some node waits for its own result, loops taken as one (an edge back into a loop's Merge is no cycle by itself).
bool hasCycleAroundLoops(const tf::GraphDef &graph);

struct Part {
  int device = 0;
  Body body; ///< argument and result numbers are those of the whole
};

/// Cuts edges between devices: one Send and Recv per tensor and receiving device; control edges send a dummy.
absl::StatusOr<std::vector<Part>> partition(Body body, const std::vector<int> &placement, const Library &library,
                                            const std::vector<Device *> &devices, const GraphLimits &limits);

} // namespace lathe::rt

#endif
