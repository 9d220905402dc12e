// The graph of a hosted object as bytes, and its reader.
//
// Integers are little-endian and not aligned; a text is u32 length and bytes; a tensor is u32 dtype, i32 rank, i64 dims and
// its elements (texts for strings), a shape i32 rank (-1: unknown) and i64 dims.
//
//   "LHG1"  u32 entries
//   entry:  text name, u8 runs once when an instance is made
//           u32 inputs {text name, text tensor, u32 dtype, shape}
//           u32 outputs {the same, u32 node, u32 port}
//           u32 nodes {text name, text op, u32 attributes {text name, attribute}, u32 inputs {u32 node, u32 port},
//                      u32 controls {u32 node}, u32 outputs {u32 dtype}}
//
// Nodes are numbered from the inputs on. A node of op "LatheLaunch" has the attribute "entry": the name of the entry of
// the compiled module that it runs. An attribute is a u8 kind and its value; a list is the kind List, the kind of its elements, u32 number, and
// the values.
#ifndef LATHE_RUNTIME_HOSTED_GRAPH_H
#define LATHE_RUNTIME_HOSTED_GRAPH_H

#include "runtime/session/ResolvedGraph.h"

#include <string>
#include <vector>

namespace lathe::rt {

enum class HostedAttr : uint8_t { Empty, Int, Float, Bool, Text, Type, Shape, Tensor, List };

struct HostedTensor {
  std::string name, tensor;
  DType dtype = DType::Invalid;
  PartialShape shape;
};

struct HostedEntry {
  std::string name;
  bool once = false;
  std::vector<HostedTensor> inputs, outputs;
  Graph graph; ///< with _Arg and _Retval nodes
};

/// Reads and resolves all entries. INVALID_ARGUMENT for bytes that are no such graph.
absl::StatusOr<std::vector<HostedEntry>> readHostedGraph(const void *data, uint64_t size);

} // namespace lathe::rt

#endif
