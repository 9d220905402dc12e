// Adds gradients to graphs for test/tools/gradients.py: each argument names FILE.pb, a GraphDef, beside which FILE.txt has lines
//   y NAME / dy NAME / x NAME / stop NAME / again
// The result is FILE.out.pb and FILE.out.txt with one line an x: a tensor's name, "none", or one line "error MESSAGE". With `again`,
// gradients of the sum of all gradients follow. The gradient of the k-th x is also called grad_k.
#include "graph/Emit.h"
#include "graph/gradients/Gradients.h"

#include <fstream>
#include <iostream>
#include <sstream>

using namespace lathe;
using namespace lathe::graphdef;

namespace {

std::string readFile(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

struct Request {
  std::vector<Endpoint> ys, dys, xs, stop;
  bool again = false;
};

absl::Status process(const std::string &base, std::ostream &out) {
  tf::GraphDef def;
  if (!def.ParseFromString(readFile(base + ".pb")))
    return absl::InvalidArgumentError("no GraphDef");
  auto graph = Graph::fromProto(def);
  if (!graph.ok())
    return graph.status();
  Request r;
  std::istringstream lines(readFile(base + ".txt"));
  std::string kind, name;
  while (lines >> kind) {
    if (kind == "again") {
      r.again = true;
      continue;
    }
    lines >> name;
    Endpoint e = (*graph)->findEndpoint(name);
    if (!e)
      return absl::InvalidArgumentError("no tensor " + name);
    (kind == "y" ? r.ys : kind == "dy" ? r.dys : kind == "x" ? r.xs : r.stop).push_back(e);
  }
  std::vector<Endpoint> grads;
  GradientOptions options;
  options.stop = r.stop;
  if (absl::Status s = addGradients(**graph, r.ys, r.xs, r.dys, options, &grads); !s.ok())
    return s;
  auto print = [&](const std::vector<Endpoint> &list) {
    for (const Endpoint &e : list)
      out << (e ? e.name() : "none") << "\n";
  };
  print(grads);
  Emitter emitter(**graph);
  for (size_t k = 0; k < grads.size(); ++k)
    if (grads[k])
      emitter.node("Identity", {emitter.val(grads[k])}, {}, "grad_" + std::to_string(k));
  if (!emitter.ok())
    return emitter.status;
  if (r.again) {
    std::vector<Endpoint> ys;
    for (const Endpoint &e : grads)
      if (e)
        ys.push_back(e);
    if (absl::Status s = addGradients(**graph, ys, r.xs, {}, options, &grads); !s.ok()) {
      out << "second error " << s.message() << "\n";
    } else {
      print(grads);
    }
  }
  std::ofstream(base + ".out.pb", std::ios::binary) << (*graph)->toProto().SerializeAsString();
  return absl::OkStatus();
}

} // namespace

int main(int argc, char **argv) {
  for (int i = 1; i < argc; ++i) {
    std::string base = argv[i];
    if (base == "--list") {
      for (const ops::OpInfo &op : ops::allOps()) {
        GradientInfo info = gradientInfo(op.name);
        std::cout << op.name << " " << (info.kind == GradientInfo::Differentiable ? "yes" : info.kind == GradientInfo::Unknown ? "unknown" : "none")
                  << " " << info.reason << "\n";
      }
      continue;
    }
    std::ofstream out(base + ".out.txt");
    if (absl::Status s = process(base, out); !s.ok())
      out << "error " << s.message() << "\n";
  }
  return 0;
}
