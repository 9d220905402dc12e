// A graph made ready to run: kernels, pending counts, edges, and the frames of TF1 loops, all fixed. Shared by any number of
// concurrent steps.
#ifndef LATHE_RUNTIME_SESSION_EXECUTABLE_H
#define LATHE_RUNTIME_SESSION_EXECUTABLE_H

#include "runtime/session/ResolvedGraph.h"

#include <functional>
#include <memory>
#include <vector>

namespace lathe::rt {

enum class NodeKind : uint8_t { Kernel, Const, Arg, Retval, Pass, NoOp, Trigger, Switch, Merge, Enter, Exit, NextIteration };

/// Where an output goes. Slot -1 is a control edge.
struct OutEdge {
  int port, dst, slot;
  bool last; ///< of its port: the value moves
};

struct ExecNode {
  const NodeInfo *info = nullptr;
  NodeKind kind = NodeKind::Kernel;
  bool expensive = false;
  bool passesRefs = false;   ///< control flow on references: the value goes through as it is
  bool checksRefs = false;   ///< some input may be a reference
  bool constantEnter = false;
  bool transfers = false;    ///< Send and Recv: deadness travels as a message
  bool manyLaunches = false; ///< an argument that several modules take, and nothing else
  int numInputs = 0, numOutputs = 0;
  int frame = 0;             ///< static frame in which it runs
  int childFrame = -1;       ///< of an Enter
  int parallelIterations = 1;
  int pendingIndex = 0, inputStart = 0; ///< within the frame
  int argIndex = 0;
  Tensor constant;
  std::shared_ptr<HostKernel> kernel;
  AsyncHostKernel *async = nullptr;
  std::vector<OutEdge> edges;
};

/// The counts of one iteration. Of a Merge: bit 0 "no live value yet", then twice the number of control edges; of others:
/// the number of edges. The upper half counts dead ones.
struct StaticFrame {
  std::string name;
  int parent = -1;
  int numInputs = 0, numEnters = 0;
  std::vector<uint64_t> pending;
};

/// A graph that is one synchronous kernel between arguments and results, as a model in one cluster is: a run needs no step.
struct DirectRun {
  int node = -1;
  std::vector<int> args;    ///< per input of the kernel
  std::vector<int> results; ///< per result: the kernel's output, or -1 - argument
};

/// Makes the kernel of a node.
using KernelMaker = std::function<absl::StatusOr<std::shared_ptr<HostKernel>>(const NodeInfo &)>;

class Executable {
public:
  static absl::StatusOr<std::shared_ptr<const Executable>> make(Graph graph, const KernelMaker &makeKernel);

  const std::vector<ExecNode> &nodes() const { return items; }
  const std::vector<StaticFrame> &frames() const { return staticFrames; }
  /// Nodes without inputs.
  const std::vector<int> &roots() const { return rootNodes; }
  /// Null where a step is needed.
  const DirectRun *direct() const { return directRun.node < 0 ? nullptr : &directRun; }
  int numArgs() const { return args; }
  int numResults() const { return results; }

private:
  absl::Status init(const KernelMaker &makeKernel);
  absl::Status classify(int index, const KernelMaker &makeKernel);
  absl::Status findFrames();
  void findDirect();

  Graph graph;
  std::vector<ExecNode> items;
  std::vector<StaticFrame> staticFrames;
  std::vector<int> rootNodes;
  DirectRun directRun;
  int args = 0, results = 0;
};

/// Ops that the executor runs itself; they need no kernel.
bool isExecutorOp(std::string_view op);
std::vector<std::string_view> allExecutorOps();

} // namespace lathe::rt

#endif
