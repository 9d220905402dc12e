// Shapes against those that TensorFlow infers: test/data/shapes/record.zip, written by test/tools/shape_record.py, where its format
// is described.
//
// A *fact* is a rank or a size that TensorFlow knows, of an output or of what an output's handle holds. Lathe may know fewer of them
// than the floor of the op's table allows, and may say nothing else. With LATHE_SHAPE_REPORT=FILE each case that falls short is
// written there.
#include "graph/Shapes.h"

#include "base/Npz.h"
#include "base/Zip.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

using namespace lathe;
using namespace lathe::graphdef;

namespace {

struct Floor {
  const char *family;
  double facts;    ///< share of the facts that have to be known
  double refusals; ///< share of the refused nodes that have to be refused
};
// These only rise.
constexpr Floor kFloors[] = {
    {"ArrayOps", 0.992, 0.984},
    {"DataOps", 0.998, 1},
    {"FlowOps", 0.927, 1},
    {"HostOps", 0.998, 1},
    {"ImageOps", 0.988, 1},
    {"LinalgOps", 0.943, 0.99},
    {"MathOps", 0.999, 1},
    {"NnOps", 0.991, 0.954},
    {"QuantOps", 0.993, 0.992}, // what TensorFlow says of convolutions with a padding_list is not what they give
    {"RandomOps", 0.998, 0.961},
    {"SparseOps", 0.997, 0.994},
    {"StateOps", 0.998, 0.933},
    {"StringOps", 0.997, 0.944},
    {"TrainOps", 1, 1},
};

struct Tally {
  int cases = 0, facts = 0, known = 0, refusals = 0, refused = 0;
  std::set<std::string> poor; ///< ops with facts or refusals that are missing
};

/// The record's graph, node by node.
class Replay {
public:
  Replay(Tally *tally, std::ostream *report) : tally(tally), report(report) {}

  void add(const tf::NodeDef &def) {
    NodeSpec spec;
    spec.def = def;
    spec.def.clear_input();
    for (const std::string &name : def.input()) {
      spec.inputs.push_back(graph.findEndpoint(name));
      ASSERT_TRUE(spec.inputs.back()) << def.name() << " reads " << name;
    }
    for (const char *name : {"_shapes", "_handles", "_refused"})
      spec.def.mutable_attr()->erase(name);
    const bool isCase = def.name().find('/') != std::string::npos, isRefused = def.attr().count("_refused");
    absl::StatusOr<Node *> node = graph.add(std::move(spec));
    absl::Status status = node.ok() ? shapes.add(*node) : node.status();
    if (!isCase) {
      ASSERT_TRUE(status.ok()) << status;
      return;
    }
    ++tally->cases;
    if (isRefused) {
      ++tally->refusals;
      tally->refused += !status.ok();
      if (status.ok())
        fallShort(def, "accepted");
    } else if (!status.ok()) {
      ADD_FAILURE() << "TensorFlow accepts " << describe(def) << ": " << status;
    } else {
      compare(def, *node);
    }
  }

private:
  static std::vector<PartialShape> expected(const tf::NodeDef &def, const char *name) {
    std::vector<PartialShape> out;
    if (auto it = def.attr().find(name); it != def.attr().end())
      for (const tf::TensorShapeProto &proto : it->second.list().shape())
        out.push_back(decodeShape(proto).value());
    return out;
  }

  void compare(const tf::NodeDef &def, Node *node) {
    std::vector<PartialShape> wanted = expected(def, "_shapes"), held = expected(def, "_handles");
    ASSERT_EQ(static_cast<int>(wanted.size()), node->numOutputs()) << def.name();
    for (int i = 0; i < node->numOutputs(); ++i)
      compare(def, absl::StrCat("output ", i), wanted[i], shapes.shape(node->output(i)));
    for (int i = 0; i < static_cast<int>(held.size()); ++i)
      compare(def, absl::StrCat("what output ", i, " holds"), held[i], shapes.handleShape(node->output(i)));
  }

  void compare(const tf::NodeDef &def, const std::string &what, const PartialShape &wanted, const PartialShape &found) {
    if (!wanted)
      return;
    ++tally->facts;
    int missing = !found;
    for (size_t i = 0; i < wanted->size(); ++i) {
      if ((*wanted)[i] < 0)
        continue;
      ++tally->facts;
      missing += !found || i >= found->size() || (*found)[i] < 0;
    }
    tally->known = tally->known + 1 - !found;
    for (size_t i = 0; i < wanted->size() && found && i < found->size(); ++i)
      tally->known += (*wanted)[i] >= 0 && (*found)[i] >= 0;
    if (!ops::mergeShapes(wanted, found).ok())
      ADD_FAILURE() << describe(def) << ": " << what << " is " << ops::shapeToString(wanted) << " for TensorFlow, "
                    << ops::shapeToString(found) << " for Lathe";
    else if (missing)
      fallShort(def, absl::StrCat(what, " is ", ops::shapeToString(wanted), ", known ", ops::shapeToString(found)));
  }

  void fallShort(const tf::NodeDef &def, const std::string &how) {
    tally->poor.insert(def.op());
    if (report)
      *report << how << ": " << describe(def) << "\n";
  }

  /// "Tile/3 (int32 [2,?], [1]=(4))" with attributes.
  std::string describe(const tf::NodeDef &def) {
    std::vector<std::string> inputs, attrs;
    for (const std::string &name : def.input()) {
      Endpoint e = graph.findEndpoint(name);
      std::string text = ops::shapeToString(shapes.shape(e));
      if (PartialShape held = shapes.handleShape(e))
        absl::StrAppend(&text, "->", ops::shapeToString(held));
      if (auto values = shapes.values(e); values && e.node->op() != "Placeholder")
        absl::StrAppend(&text, "=", ops::shapeToString(ops::shapeOfValues(values)));
      inputs.push_back(std::move(text));
    }
    for (auto &[name, value] : std::map<std::string, tf::AttrValue>(def.attr().begin(), def.attr().end()))
      if (value.value_case() != tf::AttrValue::kType && name[0] != '_')
        attrs.push_back(absl::StrCat(name, " ", value.ShortDebugString()));
    return absl::StrCat(def.name(), " (", absl::StrJoin(inputs, ", "), ") {", absl::StrJoin(attrs, "; "), "}");
  }

  Graph graph;
  Shapes shapes;
  Tally *const tally;
  std::ostream *const report;
};

std::string readFile(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream bytes;
  bytes << in.rdbuf();
  return bytes.str();
}

TEST(ShapeRecord, IsWhatTensorFlowInfers) {
  auto entries = parseZip(readFile(LATHE_SOURCE_DIR "/test/data/shapes/record.zip"), INT64_C(1) << 26);
  ASSERT_TRUE(entries.ok()) << entries.status();
  std::ofstream report;
  if (const char *path = std::getenv("LATHE_SHAPE_REPORT"))
    report.open(path);
  std::map<std::string, Tally> tallies;
  for (auto &[name, bytes] : *entries) {
    tf::GraphDef def;
    ASSERT_TRUE(def.ParseFromString(bytes)) << name;
    Replay replay(&tallies[name.substr(0, name.find('.'))], report.is_open() ? &report : nullptr);
    for (const tf::NodeDef &node : def.node())
      replay.add(node);
  }
  EXPECT_EQ(tallies.size(), std::size(kFloors));
  Tally all;
  for (const Floor &floor : kFloors) {
    const Tally &t = tallies[floor.family];
    EXPECT_GT(t.cases, 0) << floor.family;
    const double facts = t.facts ? double(t.known) / t.facts : 1, refusals = t.refusals ? double(t.refused) / t.refusals : 1;
    printf("%-10s %5d cases, %6d facts %.4f, %4d refused %.4f\n", floor.family, t.cases, t.facts, facts, t.refusals, refusals);
    EXPECT_GE(facts, floor.facts) << floor.family << " falls short in " << absl::StrJoin(t.poor, " ");
    EXPECT_GE(refusals, floor.refusals) << floor.family << " falls short in " << absl::StrJoin(t.poor, " ");
    all.facts += t.facts, all.known += t.known, all.refusals += t.refusals, all.refused += t.refused;
  }
  printf("%d of %d facts, %d of %d refused\n", all.known, all.facts, all.refused, all.refusals);
}

using Ints = std::initializer_list<std::pair<const char *, int64_t>>;

NodeSpec spec(const char *name, const char *op, std::vector<Endpoint> inputs, Ints ints) {
  NodeSpec out;
  out.def.set_name(name);
  out.def.set_op(op);
  out.inputs = std::move(inputs);
  for (auto &[attr, value] : ints)
    (*out.def.mutable_attr())[attr].set_i(value);
  return out;
}

TEST(Shapes, FollowHandles) {
  Graph graph;
  Shapes shapes;
  NodeSpec variable = spec("v", "VarHandleOp", {}, {});
  auto &attrs = *variable.def.mutable_attr();
  attrs["dtype"].set_type(tf::DT_FLOAT);
  for (int64_t size : {3, -1})
    attrs["shape"].mutable_shape()->add_dim()->set_size(size);
  Node *v = graph.add(std::move(variable)).value();
  NodeSpec identity = spec("i", "Identity", {v->output(0)}, {});
  (*identity.def.mutable_attr())["T"].set_type(tf::DT_RESOURCE);
  Node *i = graph.add(std::move(identity)).value();
  NodeSpec read = spec("r", "ReadVariableOp", {i->output(0)}, {});
  (*read.def.mutable_attr())["dtype"].set_type(tf::DT_FLOAT);
  Node *r = graph.add(std::move(read)).value();
  for (Node *node : {v, i, r})
    ASSERT_TRUE(shapes.add(node).ok());
  EXPECT_EQ(ops::shapeToString(shapes.shape(r->output(0))), "[3,?]");
}

/// A product of sizes that no integer holds, and a negative one, are not known.
TEST(Shapes, BearHostileAttributes) {
  Graph graph;
  Shapes shapes;
  std::vector<Endpoint> inputs;
  for (const char *name : {"x", "cs"}) {
    NodeSpec placeholder = spec(name, "Placeholder", {}, {});
    (*placeholder.def.mutable_attr())["dtype"].set_type(tf::DT_FLOAT);
    for (int64_t size : {INT64_C(2), INT64_MAX / 2})
      (*placeholder.def.mutable_attr())["shape"].mutable_shape()->add_dim()->set_size(size);
    inputs.push_back(graph.add(std::move(placeholder)).value()->output(0));
    ASSERT_TRUE(shapes.add(inputs.back().node).ok());
  }
  inputs.resize(16, inputs[0]);
  NodeSpec cell = spec("g", "LSTMBlockCellGrad", inputs, {});
  (*cell.def.mutable_attr())["T"].set_type(tf::DT_FLOAT);
  (*cell.def.mutable_attr())["use_peephole"].set_b(false);
  auto g = graph.add(std::move(cell));
  ASSERT_TRUE(g.ok()) << g.status();
  ASSERT_TRUE(shapes.add(*g).ok());
  EXPECT_EQ(ops::shapeToString(shapes.shape((*g)->output(1))), "[2,?]");
  std::vector<Endpoint> spectrogram;
  for (auto [name, type] : {std::pair("p", tf::DT_FLOAT), std::pair("rate", tf::DT_INT32)}) {
    NodeSpec placeholder = spec(name, "Placeholder", {}, {});
    (*placeholder.def.mutable_attr())["dtype"].set_type(type);
    spectrogram.push_back(graph.add(std::move(placeholder)).value()->output(0));
  }
  Node *m = graph.add(spec("m", "Mfcc", spectrogram, {{"dct_coefficient_count", INT64_MIN}})).value();
  ASSERT_TRUE(shapes.add(m).ok());
  EXPECT_EQ(ops::shapeToString(shapes.shape(m->output(0))), "[?,?,?]");
}

/// No axis is one of an empty vector's elements.
TEST(Shapes, BearEmptyVectors) {
  Graph graph;
  Shapes shapes;
  NodeSpec placeholder = spec("x", "Placeholder", {}, {}), empty = spec("axis", "Const", {}, {});
  (*placeholder.def.mutable_attr())["dtype"].set_type(tf::DT_FLOAT);
  for (int64_t size : {2, 3})
    (*placeholder.def.mutable_attr())["shape"].mutable_shape()->add_dim()->set_size(size);
  (*empty.def.mutable_attr())["dtype"].set_type(tf::DT_INT64);
  tf::TensorProto *value = (*empty.def.mutable_attr())["value"].mutable_tensor();
  value->set_dtype(tf::DT_INT64);
  value->mutable_tensor_shape()->add_dim()->set_size(0);
  Node *x = graph.add(std::move(placeholder)).value(), *axis = graph.add(std::move(empty)).value();
  ASSERT_TRUE(shapes.add(x).ok() && shapes.add(axis).ok());
  for (const char *op : {"UniqueV2", "ReverseV2", "Sum", "ExpandDims", "Squeeze", "TopKV2", "OneHot", "Tile", "Reshape", "Transpose", "Roll"}) {
    const ops::OpInfo *info = ops::findOp(op);
    NodeSpec node = spec(op, op, std::vector<Endpoint>(info->inputs.size(), axis->output(0)), {});
    node.inputs[0] = x->output(0);
    for (const ops::Attr &attr : info->attrs)
      if (attr.type == "type")
        (*node.def.mutable_attr())[std::string(attr.name)].set_type(attr.name == "T" ? tf::DT_FLOAT : tf::DT_INT64);
    if (absl::StatusOr<Node *> added = graph.add(std::move(node)); added.ok())
      shapes.add(*added).IgnoreError();
  }
}

TEST(ShapeRecord, TablesAreSound) { EXPECT_TRUE(ops::checkShapeFunctions().ok()) << ops::checkShapeFunctions(); }

/// This list only gets shorter.
TEST(ShapeRecord, OpsHaveFunctions) {
  std::vector<std::string_view> without;
  for (const ops::OpInfo &op : ops::allOps())
    if (!ops::hasShapeFunction(op.name))
      without.push_back(op.name);
  EXPECT_EQ(absl::StrJoin(without, " ", [](std::string *out, std::string_view name) { out->append(name.data(), name.size()); }),
            "CSRSparseMatrixToDense LatheLaunch SparseMatrixMatMul SparseMatrixNNZ SparseMatrixOrderingAMD UniformQuantizedConvolution "
            "UniformQuantizedConvolutionHybrid _Arg _Retval");
}

} // namespace
