// A model with operators of the program's own: the operators between them are compiled part by part, and everything runs in the
// order of the file.
#ifndef LATHE_RUNTIME_TFLITE_API_HOSTGRAPH_H
#define LATHE_RUNTIME_TFLITE_API_HOSTGRAPH_H

#include "runtime/tflite_api/Interpreter.h"
#include "runtime/tflite_api/Operators.h"

#include <deque>
#include <map>

namespace lathe::tflite_api {

class HostGraph {
public:
  /// Null for models whose first subgraph has no operator of the program; an error for operators that nobody has.
  static absl::StatusOr<std::unique_ptr<HostGraph>> make(std::shared_ptr<const Model> model, const OperatorTable &operators, int threads,
                                                         const Reporter &reporter);
  ~HostGraph();

  /// Sizes from the inputs on; results are bound to their slots.
  absl::Status allocate(Runner &runner);
  absl::Status invoke(Runner &runner);
  absl::Status resetVariables();

  // For the functions of contexts.
  TfLiteTensor *tensor(int index) { return index < 0 || index >= static_cast<int>(tensors.size()) ? nullptr : &tensors[static_cast<size_t>(index)]; }
  size_t numTensors() const { return tensors.size(); }
  size_t numNodes() const { return nodes.size(); }
  TfLiteStatus resize(TfLiteTensor *t, const int *dims, int rank);
  int addTensors(int count);
  TfLiteIntArray *plan() { return executionPlan; }
  struct Node {
    HostOp op;
    TfLiteNode node = {};
    TfLiteRegistration registration = {};
    TfLiteOperator *external = nullptr; ///< made for who asks, where the program gave a registration
  };
  Node *nodeAt(int index) { return index < 0 || index >= static_cast<int>(nodes.size()) ? nullptr : &nodes[static_cast<size_t>(index)]; }
  const std::vector<int> &inputs() const { return graphInputs; }
  const std::vector<int> &outputs() const { return graphOutputs; }
  const std::vector<int> &variables() const { return variableTensors; }
  const char *name() const { return graphName.c_str(); }
  const Reporter &reporter() const { return report; }
  void *persistent(size_t bytes);
  int requestScratch(size_t bytes);
  void *scratch(int index);
  bool metadata(const char *name, const char **data, size_t *bytes) const;

  /// That of a context which a function of the program was called with.
  static HostGraph &of(const TfLiteContext *context) { return *static_cast<HostGraph *>(context->impl_); }

private:
  HostGraph() = default;
  /// A run of compiled operators, or one node.
  struct Step {
    int node = -1;
    std::vector<int> inputs, outputs; ///< of a compiled part: tensors, in the order of its inputs and outputs
    std::string bytes;
    std::unique_ptr<Interpreter> compiled;
  };
  absl::Status readTensors();
  absl::Status addNode(const void *op, const HostOp &host);
  absl::Status addPart(unsigned first, unsigned last);
  absl::Status runPart(Step &step, bool run);
  void makeContext(int threads);

  std::shared_ptr<const Model> model;
  Reporter report;
  int threads = 1;
  TfLiteContext context = {};
  std::vector<TfLiteTensor> tensors;
  std::deque<Node> nodes;
  std::vector<Step> steps;
  std::vector<int> graphInputs, graphOutputs, variableTensors;
  std::string graphName;
  TfLiteIntArray *executionPlan = nullptr;
  /// Elements of tensors that are not dynamic, by tensor.
  std::map<size_t, std::unique_ptr<char[]>> memory;
  std::deque<std::vector<char>> kept, scratches;
};

} // namespace lathe::tflite_api

#endif
