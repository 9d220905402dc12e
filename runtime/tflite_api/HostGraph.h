// A model with operators that are not compiled, the program's own and those of strings and tables: the operators between them are
// compiled part by part, and everything runs in the order of the file (graph/tflite/Cut.h).
#ifndef LATHE_RUNTIME_TFLITE_API_HOSTGRAPH_H
#define LATHE_RUNTIME_TFLITE_API_HOSTGRAPH_H

#include "graph/tflite/Cut.h"
#include "runtime/tflite_api/GraphOps.h"
#include "runtime/tflite_api/Interpreter.h"
#include "runtime/tflite_api/Operators.h"

#include <algorithm>
#include <deque>
#include <list>
#include <map>
#include <set>

namespace lathe::tflite_api {

/// What the graphs of one interpreter have in common beside their model.
struct SharedState {
  NodeSession nodes;
  /// Memory of the variables of VAR_HANDLE, by name, for all compiled parts.
  std::map<std::string, std::vector<char>> variables;
  /// Gives variables the values of a copy, where they lie; those that it lacks are gone.
  void restore(const std::map<std::string, std::vector<char>> &copy);
};

struct HostedModel {
  std::shared_ptr<const Model> model;
  const OperatorTable &operators;
  int threads = 1;
  const Reporter &reporter;
  const Interpreter::CompileOptions &options;
  std::shared_ptr<SharedState> shared;
};

class HostGraph {
public:
  /// Null for subgraphs without such operators, unless `always`; an error for operators that nobody has.
  static absl::StatusOr<std::unique_ptr<HostGraph>> make(unsigned subgraph, const HostedModel &of, const tflgraph::Apart &apart,
                                                         bool always);
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
  /// Operators of the part that did not compile in the last allocate() or invoke() and could be set apart.
  const tflgraph::Apart &refused() const { return couldBeApart; }
  const Reporter &reporter() const { return report; }
  bool hasLateParts() const { return std::any_of(steps.begin(), steps.end(), [](const Step &step) { return step.isLate; }); }
  void *persistent(size_t bytes);
  int requestScratch(size_t bytes);
  void *scratch(int index);
  TfLiteContext *forDelegates() { return &context; }
  /// What a delegate would run of the plan: nothing can be taken. The kernel is ours from here on, as in an interpreter.
  TfLiteStatus replaceNodes(TfLiteOperator *kernel, const TfLiteIntArray *taken);
  bool metadata(const char *name, const char **data, size_t *bytes) const;

  /// That of a context which a function of the program was called with.
  static HostGraph &of(const TfLiteContext *context) { return *static_cast<HostGraph *>(context->impl_); }

private:
  HostGraph() = default;
  /// A run of compiled operators or of nodes of a graph, or one node of the program.
  struct Step {
    int node = -1;
    tflgraph::Step cut;
    bool isLate = false; ///< reads what has its sizes when it runs, and not before
    std::string bytes;   ///< of a compiled part: its file
    std::unique_ptr<Interpreter> compiled;
    /// Of a part that is compiled for values: those of late, the latest first.
    std::list<std::pair<std::string, std::unique_ptr<Interpreter>>> byValues;
    bool isGraph() const { return cut.kind == tflgraph::Step::Kind::Nodes; }
  };
  absl::Status readTensors();
  absl::Status addNode(Step &step, const HostOp &host);
  absl::StatusOr<Interpreter *> partOf(Step &step);
  absl::Status runPart(Step &step, bool run);
  absl::Status runGraph(const tflgraph::NodePart &part);
  absl::Status prepare(Node &n);
  void makeContext(int threads);

  std::shared_ptr<const Model> model;
  unsigned subgraph = 0;
  std::shared_ptr<SharedState> shared;
  std::unique_ptr<GraphOps> graphOps;
  Reporter report;
  Interpreter::CompileOptions compileOptions;
  int threads = 1;
  TfLiteContext context = {};
  std::vector<TfLiteTensor> tensors;
  std::deque<Node> nodes;
  std::vector<Step> steps;
  std::vector<int> graphInputs, graphOutputs, variableTensors;
  std::string graphName;
  TfLiteIntArray *executionPlan = nullptr;
  tflgraph::Apart couldBeApart;
  /// Elements of tensors that are not dynamic, by tensor.
  std::map<size_t, std::unique_ptr<char[]>> memory;
  std::deque<std::vector<char>> kept, scratches;
  std::set<TfLiteOperator *> kernels; ///< of delegates
};

} // namespace lathe::tflite_api

#endif
