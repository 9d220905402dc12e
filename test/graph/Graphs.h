// Small graphs in text form for tests.
#ifndef LATHE_TEST_GRAPH_GRAPHS_H
#define LATHE_TEST_GRAPH_GRAPHS_H

#include "graph/Graph.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

namespace lathe::testing {

inline tf::GraphDef parseGraph(const std::string &text) {
  tf::GraphDef def;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &def)) << text;
  return def;
}

inline std::unique_ptr<graphdef::Graph> makeGraph(const std::string &text) {
  auto graph = graphdef::Graph::fromProto(parseGraph(text));
  EXPECT_TRUE(graph.ok()) << graph.status();
  return graph.ok() ? *std::move(graph) : nullptr;
}

} // namespace lathe::testing

#endif
