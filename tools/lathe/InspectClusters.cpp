#include "tools/lathe/InspectClusters.h"

#include "runtime/core/Kernel.h"
#include "runtime/session/Executable.h"

#include <algorithm>
#include <cstdlib>
#include <map>

namespace lathe::cli {

std::string escapeHtml(const std::string &text) {
  std::string out;
  for (char c : text)
    out += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : c == '"' ? "&quot;" : std::string(1, c);
  return out;
}

bool findClusters(const ModelArgs &args, ClusterReport &report, std::string &error) {
  std::vector<std::string> hostOps;
  for (std::string_view op : rt::allKernels())
    hostOps.emplace_back(op);
  for (std::string_view op : rt::allExecutorOps())
    hostOps.emplace_back(op);
  std::sort(hostOps.begin(), hostOps.end());
  std::vector<std::string> fetches;
  for (const std::string &name : args.options.outputs)
    fetches.push_back(name.find(':') == std::string::npos ? name + ":0" : name);
  const char *flags = std::getenv("LATHE_FLAGS");
  return reportClusters(args.options.model, args.options.tag, fetches, args.options.targets, hostOps, flags ? flags : "", report, error);
}

namespace {

std::string listOf(const std::vector<std::string> &items) {
  std::string text;
  for (const std::string &item : items)
    text += (text.empty() ? "" : "<br>") + escapeHtml(item);
  return text.empty() ? "none" : text;
}

} // namespace

void writeClusters(llvm::raw_ostream &os, const ClusterReport &report) {
  os << "<h2>Clusters of a session</h2>\n<p>" << report.clusters.size() << " clusters; " << report.refusals.size()
     << " nodes stay outside. A module is compiled for each set of shapes of the arguments and variables.</p>\n";
  for (const ClusterReport::Cluster &cluster : report.clusters) {
    std::map<std::string, int> ops;
    for (const ClusterReport::Node &node : cluster.nodes)
      ++ops[node.op];
    os << "<details open><summary><b>" << escapeHtml(cluster.name) << "</b>: " << cluster.nodes.size() << " nodes (";
    bool first = true;
    for (auto &[op, count] : ops) {
      os << (first ? "" : ", ") << escapeHtml(op) << (count > 1 ? " x " + std::to_string(count) : std::string());
      first = false;
    }
    os << ")</summary>\n<table><tr><th>arguments<th>variables<th>results<th>nodes</tr>\n<tr><td>" << listOf(cluster.arguments) << "<td>"
       << listOf(cluster.variables) << "<td>" << listOf(cluster.results) << "<td>";
    for (const ClusterReport::Node &node : cluster.nodes)
      os << escapeHtml(node.name) << " (" << escapeHtml(node.op) << ")<br>";
    os << "</tr></table></details>\n";
  }
  os << "<h3>Outside</h3>\n<table><tr><th>node<th>op<th>why</tr>\n";
  for (const ClusterReport::Refusal &refusal : report.refusals)
    os << "<tr><td>" << escapeHtml(refusal.node.name) << "<td>" << escapeHtml(refusal.node.op) << "<td>" << escapeHtml(refusal.reason)
       << "</tr>\n";
  os << "</table>\n";
}

nlohmann::json clustersJson(const ClusterReport &report) {
  nlohmann::json j = {{"clusters", nlohmann::json::array()}, {"outside", nlohmann::json::array()}};
  for (const ClusterReport::Cluster &cluster : report.clusters) {
    nlohmann::json nodes = nlohmann::json::array();
    for (const ClusterReport::Node &node : cluster.nodes)
      nodes.push_back({{"node", node.name}, {"op", node.op}});
    j["clusters"].push_back({{"name", cluster.name}, {"nodes", nodes}, {"arguments", cluster.arguments}, {"variables", cluster.variables},
                             {"results", cluster.results}});
  }
  for (const ClusterReport::Refusal &refusal : report.refusals)
    j["outside"].push_back({{"node", refusal.node.name}, {"op", refusal.node.op}, {"why", refusal.reason}});
  return j;
}

} // namespace lathe::cli
