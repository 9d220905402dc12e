// Adds training to graphs for test/e2e/training.test: each argument names FILE.pb, a GraphDef up to a loss, beside which FILE.txt has
// lines
//   loss NAME / variable HANDLE INITIALIZER VALUE
// Written are FILE.step.pb, which has grad_0, grad_1 ... (by the variables' values), init, and the steps sgd/train and adam/train (with
// adam_init), at the rates of test/tools/training.py.
#include "graph/Graph.h"
#include "graph/builder/Optimizers.h"
#include "graph/builder/ops/array.h"
#include "graph/builder/ops/flow.h"

#include <fstream>
#include <iostream>
#include <sstream>

using namespace lathe;

namespace {

std::string readFile(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

absl::Status process(const std::string &base) {
  tf::GraphDef def;
  if (!def.ParseFromString(readFile(base + ".pb")))
    return absl::InvalidArgumentError("no GraphDef");
  auto graph = graphdef::Graph::fromProto(def);
  if (!graph.ok())
    return graph.status();
  std::shared_ptr<graphdef::Graph> shared = *std::move(graph);
  Output loss;
  std::vector<train::Variable> variables;
  std::vector<Output> values;
  std::vector<Gradient> gradients; // those of embeddings are rows
  std::vector<Operation> inits;
  std::istringstream lines(readFile(base + ".txt"));
  auto output = [&](const std::string &name) {
    graphdef::Endpoint e = shared->findEndpoint(name);
    return e ? Output(e.node, e.index) : Output();
  };
  for (std::string kind, name, init, value; lines >> kind >> name;) {
    if (kind == "loss") {
      loss = output(name);
      continue;
    }
    lines >> init >> value;
    variables.push_back({output(name), output(value), Operation(shared->find(init))});
    values.push_back(variables.back().value);
    inits.push_back(variables.back().init);
  }
  if (!loss.node() || variables.empty())
    return absl::InvalidArgumentError("no loss, or no variables");
  Scope root = Scope::ForGraph(shared);
  if (absl::Status s = AddSymbolicGradients(root, {loss}, values, &gradients); !s.ok())
    return s;
  for (size_t k = 0; k < gradients.size(); ++k)
    ops::Identity(root.WithOpName("grad_" + std::to_string(k)), ConvertToTensor(root, gradients[k]));
  ops::NoOp(root.WithOpName("init").WithControlDependencies(inits));
  train::GradientDescent(0.5f).Apply(root.NewSubScope("sgd"), gradients, variables);
  train::Adam adam(0.003f);
  adam.Apply(root.NewSubScope("adam"), gradients, variables);
  ops::NoOp(root.WithOpName("adam_init").WithControlDependencies(adam.inits()));
  std::string bytes;
  if (absl::Status s = root.ToGraphDef(&bytes); !s.ok())
    return s;
  std::ofstream out(base + ".step.pb", std::ios::binary);
  return (out << bytes).flush() ? absl::OkStatus() : absl::UnavailableError("cannot write " + base + ".step.pb");
}

} // namespace

int main(int argc, char **argv) {
  for (int i = 1; i < argc; ++i)
    if (absl::Status s = process(argv[i]); !s.ok()) {
      std::cerr << argv[i] << ": " << s.message() << "\n";
      return 1;
    }
  return 0;
}
