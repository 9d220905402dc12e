#include "runtime/session/Partition.h"

#include "absl/strings/str_cat.h"

#include <map>
#include <unordered_set>

namespace lathe::rt {
namespace {

class Partitioner {
public:
  Partitioner(Body &whole, const std::vector<int> &placement, const Library &library, const std::vector<Device *> &devices,
              const GraphLimits &limits)
      : whole(whole), placement(placement), library(library), devices(devices), limits(limits), parts(devices.size()) {}

  absl::StatusOr<std::vector<Part>> run();

private:
  absl::StatusOr<std::string> crossing(const std::string &input, int from, int to);
  void transfer(tf::NodeDef *node, const char *op, const std::string &tensor, int from, int to);
  std::string fresh(std::string name) {
    while (!names.insert(name).second)
      name += "_";
    return name;
  }

  Body &whole;
  const std::vector<int> &placement;
  const Library &library;
  const std::vector<Device *> &devices;
  const GraphLimits &limits;
  std::vector<Part> parts;
  std::unordered_map<std::string, int> index;
  std::unordered_set<std::string> names;
  std::map<std::pair<std::string, int>, std::string> received; ///< tensor and device -> Recv
  int edges = 0;
};

void Partitioner::transfer(tf::NodeDef *node, const char *op, const std::string &tensor, int from, int to) {
  node->set_op(op);
  auto &attrs = *node->mutable_attr();
  attrs["tensor_name"].set_s(tensor);
  attrs["send_device"].set_s(devices[from]->name());
  attrs["recv_device"].set_s(devices[to]->name());
  attrs["send_device_incarnation"].set_i(static_cast<int64_t>(devices[from]->incarnation()));
}

/// The input that stands for `input` on device `to`.
absl::StatusOr<std::string> Partitioner::crossing(const std::string &input, int from, int to) {
  auto [it, isNew] = received.try_emplace({input, to});
  if (!isNew)
    return it->second;
  TensorName name = parseTensorName(input);
  const tf::NodeDef &source = whole.graph.node(index[name.node]);
  DType type = DType::Float32;
  std::string sent = input;
  std::string tensor = absl::StrCat("edge_", edges++, "_", name.node);
  tf::GraphDef &there = parts[from].body.graph, &here = parts[to].body.graph;
  if (name.port < 0) {
    // nothing is sent but that it happened
    tf::NodeDef *dummy = there.add_node();
    dummy->set_name(fresh(absl::StrCat(name.node, "/_", edges, "_dummy")));
    dummy->set_op("Const");
    dummy->add_input(input);
    (*dummy->mutable_attr())["dtype"].set_type(tf::DT_FLOAT);
    tf::TensorProto *value = (*dummy->mutable_attr())["value"].mutable_tensor();
    value->set_dtype(tf::DT_FLOAT);
    value->mutable_tensor_shape()->add_dim()->set_size(0);
    sent = dummy->name();
  } else {
    auto info = readNode(source, library, limits, false);
    if (!info.ok())
      return info.status();
    if (name.port >= static_cast<int>(info->outputTypes.size()))
      return absl::InvalidArgumentError(absl::StrCat("tensor '", input, "' does not exist"));
    type = info->outputTypes[name.port];
  }
  tf::NodeDef *send = there.add_node();
  send->set_name(fresh(absl::StrCat(name.node, "/_", edges, "_send")));
  send->add_input(sent);
  transfer(send, "Send", tensor, from, to);
  (*send->mutable_attr())["T"].set_type(static_cast<tf::DataType>(type));
  parts[from].body.targets.push_back(send->name());
  tf::NodeDef *recv = here.add_node();
  recv->set_name(fresh(absl::StrCat(name.node, "/_", edges, "_recv")));
  transfer(recv, "Recv", tensor, from, to);
  (*recv->mutable_attr())["tensor_type"].set_type(static_cast<tf::DataType>(type));
  it->second = name.port < 0 ? "^" + recv->name() : recv->name();
  return it->second;
}

absl::StatusOr<std::vector<Part>> Partitioner::run() {
  for (int i = 0; i < whole.graph.node_size(); ++i) {
    index[whole.graph.node(i).name()] = i;
    names.insert(whole.graph.node(i).name());
  }
  for (size_t d = 0; d < parts.size(); ++d)
    parts[d].device = static_cast<int>(d);
  for (int i = 0; i < whole.graph.node_size(); ++i) {
    int to = placement[i];
    tf::NodeDef node = whole.graph.node(i);
    for (int k = 0; k < node.input_size(); ++k) {
      int from = placement[index[parseTensorName(node.input(k)).node]];
      if (from == to)
        continue;
      auto other = crossing(node.input(k), from, to);
      if (!other.ok())
        return atNode(node.name(), node.op(), other.status());
      node.set_input(k, *other);
    }
    *parts[to].body.graph.add_node() = std::move(node);
  }
  for (const std::string &target : whole.targets)
    parts[placement[index[target]]].body.targets.push_back(target);
  std::vector<Part> used;
  for (Part &part : parts)
    if (part.body.graph.node_size() > 0)
      used.push_back(std::move(part));
  return used;
}

} // namespace

absl::StatusOr<std::vector<Part>> partition(Body body, const std::vector<int> &placement, const Library &library,
                                            const std::vector<Device *> &devices, const GraphLimits &limits) {
  bool one = true;
  for (int p : placement)
    one &= p == placement[0];
  if (one) {
    std::vector<Part> parts(1);
    parts[0].device = placement.empty() ? 0 : placement[0];
    parts[0].body = std::move(body);
    return parts;
  }
  return Partitioner(body, placement, library, devices, limits).run();
}

} // namespace lathe::rt
