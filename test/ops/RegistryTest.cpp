#include "ops/Absent.h"
#include "ops/Flags.h"
#include "ops/Registry.h"

#include "gtest/gtest.h"

#include <map>

using namespace lathe;
using namespace lathe::ops;

namespace {
struct Attrs : AttrSource {
  std::map<std::string, int64_t, std::less<>> ints;
  std::map<std::string, DType, std::less<>> types;
  std::map<std::string, std::vector<DType>, std::less<>> lists;
  std::map<std::string, std::string, std::less<>> strings;
  template <typename M>
  static std::optional<typename M::mapped_type> get(const M &m, std::string_view n) {
    auto it = m.find(n);
    if (it == m.end())
      return std::nullopt;
    return it->second;
  }
  std::optional<int64_t> intAttr(std::string_view n) const override { return get(ints, n); }
  std::optional<DType> typeAttr(std::string_view n) const override { return get(types, n); }
  std::optional<std::vector<DType>> typeListAttr(std::string_view n) const override { return get(lists, n); }
  std::optional<std::string> stringAttr(std::string_view n) const override { return get(strings, n); }
  std::optional<int64_t> listSize(std::string_view n) const override {
    auto it = lists.find(n);
    return it == lists.end() ? std::nullopt : std::optional<int64_t>(it->second.size());
  }
};
} // namespace

TEST(Absent, ReasonsAreOfOpsThatThereAre) {
  EXPECT_GT(absentOps().size(), 20u);
  for (std::string_view op : absentOps())
    EXPECT_TRUE(findOp(op)) << op;
  EXPECT_EQ(noHostKernel("PyFunc"), "no host kernel: it calls into Python, and runs in sessions of the Python package alone");
  EXPECT_EQ(noHostKernel("MatMul"), "no host kernel");
}

TEST(RegistryTest, TableIsConsistent) {
  ASSERT_GT(allOps().size(), 1000u);
  const OpInfo *last = nullptr;
  for (const OpInfo &op : allOps()) {
    EXPECT_TRUE(!last || last->name < op.name) << op.name;
    last = &op;
    for (const std::vector<Arg> *args : {&op.inputs, &op.outputs})
      for (const Arg &arg : *args) {
        EXPECT_FALSE(arg.name.empty()) << op.name;
        for (std::string_view a : {arg.typeAttr, arg.numberAttr, arg.typeListAttr})
          EXPECT_TRUE(a.empty() || op.findAttr(a)) << op.name << " " << a;
      }
    for (const Attr &attr : op.attrs) {
      EXPECT_FALSE(attr.type.empty()) << op.name;
      if (attr.hasDefault && attr.type == "type")
        EXPECT_TRUE(parseDType(attr.defaultText)) << op.name << " " << attr.defaultText;
    }
  }
}

TEST(RegistryTest, ArgumentsAttributesAndFlags) {
  const OpInfo *op = findOp("Conv2D");
  ASSERT_TRUE(op);
  EXPECT_EQ(op->inputs.size(), 2u);
  EXPECT_EQ(op->findAttr("data_format")->defaultText, "\"NHWC\"");
  EXPECT_EQ(unquote(op->findAttr("data_format")->defaultText), "NHWC");
  EXPECT_EQ(splitListText(op->findAttr("dilations")->defaultText).size(), 4u);
  EXPECT_FALSE(op->isStateful);
  EXPECT_TRUE(findOp("VarHandleOp")->touchesResources());
  EXPECT_TRUE(findOp("AssignAdd")->inputs[0].isRef);
  EXPECT_TRUE(findOp("RandomUniform")->isStateful);
  EXPECT_TRUE(findOp("StringJoin")->isHost);
  EXPECT_FALSE(findOp("MatMul")->isHost);
  EXPECT_EQ(findOp("NoSuchOp"), nullptr);
}

TEST(RegistryTest, ResolvesTypes) {
  Attrs attrs;
  attrs.ints["num_split"] = 3;
  attrs.types["T"] = DType::Float16;
  std::vector<int64_t> counts;
  const OpInfo *split = findOp("Split");
  auto in = resolveTypes(*split, split->inputs, attrs), out = resolveTypes(*split, split->outputs, attrs, &counts);
  ASSERT_TRUE(in.ok() && out.ok());
  EXPECT_EQ(*in, (std::vector<DType>{DType::Int32, DType::Float16}));
  EXPECT_EQ(*out, std::vector<DType>(3, DType::Float16));
  EXPECT_EQ(counts, std::vector<int64_t>{3});
  attrs.ints["num_split"] = -1;
  EXPECT_FALSE(resolveTypes(*split, split->outputs, attrs).ok());
  const OpInfo *loop = findOp("While");
  EXPECT_FALSE(resolveTypes(*loop, loop->inputs, attrs).ok());
  attrs.lists["T"] = {DType::Int32, DType::String};
  EXPECT_EQ(resolveTypes(*loop, loop->inputs, attrs)->size(), 2u);
  // a default of the op
  const OpInfo *shape = findOp("Shape");
  EXPECT_EQ((*resolveTypes(*shape, shape->outputs, attrs))[0], DType::Int32);
}

TEST(RegistryTest, RefusesWhatTheDefinitionDoesNotAllow) {
  auto check = [](const char *op, const Attrs &attrs) { return std::string(checkAttrs(*findOp(op), attrs).message()); };
  Attrs attrs;
  EXPECT_EQ(check("Softmax", attrs), "");
  attrs.types["T"] = DType::Float16;
  EXPECT_EQ(check("Softmax", attrs), "");
  attrs.types["T"] = DType::Complex64;
  EXPECT_EQ(check("Softmax", attrs), "attribute 'T' is complex64, expected one of bfloat16, float16, float32, float64");
  attrs.types["T"] = DType::Float32;
  attrs.strings["padding"] = "VALID\n";
  EXPECT_EQ(check("AvgPool", attrs), "attribute 'padding' is 'VALID\\n', expected one of SAME, VALID");
  attrs.strings["padding"] = "VALID";
  EXPECT_EQ(check("AvgPool", attrs), "");
  attrs.ints["N"] = 0;
  EXPECT_EQ(check("AddN", attrs), "attribute 'N' is 0, expected at least 1");
  EXPECT_EQ(check("StringJoin", attrs), "");
  attrs.lists["output_types"] = {};
  EXPECT_EQ(check("IteratorGetNext", attrs), "attribute 'output_types' is a list of 0, expected at least 1");
  attrs.lists["Tdense"] = {DType::Float32, DType::Int8};
  EXPECT_EQ(check("ParseSingleExample", attrs),
            "attribute 'Tdense' is int8, expected one of float32, int64, string");
}

TEST(Flags, AreOfOpsThatThereAre) {
  for (int flag = 0; flag <= static_cast<int>(Flag::Transfer); ++flag) {
    std::vector<std::string_view> ops = opsWith(static_cast<Flag>(flag));
    EXPECT_FALSE(ops.empty()) << flag;
    for (std::string_view op : ops)
      EXPECT_TRUE(findOp(op) || op == "_EagerConst") << op; // TensorFlow adds that one to graphs by itself
  }
  EXPECT_FALSE(is("NoSuchOp", Flag::Free));
}

/// What flags say of each other, and of the table of ops.
TEST(Flags, GoTogether) {
  for (std::string_view op : opsWith(Flag::RefVariable))
    EXPECT_TRUE(is(op, Flag::Variable) && findOp(op)->outputs[0].isRef) << op;
  for (std::string_view op : opsWith(Flag::Assigns))
    EXPECT_TRUE(is(op, Flag::Effect)) << op;
  for (std::string_view op : opsWith(Flag::Passes))
    if (const OpInfo *info = findOp(op)) {
      EXPECT_TRUE(info->inputs.size() == 1 && info->outputs.size() == 1) << op;
      EXPECT_FALSE(is(op, Flag::Gates)) << op;
    }
  for (std::string_view op : opsWith(Flag::Free))
    EXPECT_FALSE(findOp(op)->isStateful || findOp(op)->touchesResources()) << op;
  for (std::string_view op : opsWith(Flag::Forgets))
    EXPECT_TRUE(findOp(op)->isStateful || findOp(op)->touchesResources()) << op;
  for (const OpInfo &op : allOps()) {
    // optimizers change their variables, and what puts something into a queue lets others go on
    const bool applies = op.name.substr(0, 13) == "ResourceApply" || op.name.substr(0, 19) == "ResourceSparseApply";
    EXPECT_TRUE(!applies || is(op.name, Flag::Effect)) << op.name;
    EXPECT_EQ(op.name.substr(0, 12) == "QueueDequeue", op.name.substr(0, 5) == "Queue" && is(op.name, Flag::Blocks)) << op.name;
    EXPECT_TRUE(op.name.substr(0, 12) != "QueueEnqueue" || is(op.name, Flag::Releases)) << op.name;
  }
  for (auto [part, whole] :
       {std::pair(Flag::Passes, Flag::Idle), {Flag::Placeholder, Flag::Feedable}, {Flag::Argument, Flag::End}, {Flag::Handle, Flag::Variable},
        {Flag::RefVariable, Flag::Variable}, {Flag::Switch, Flag::Frames}, {Flag::Merge, Flag::Frames}, {Flag::Next, Flag::Frames},
        {Flag::Enter, Flag::Frames}, {Flag::Exit, Flag::Frames}})
    for (std::string_view op : opsWith(part))
      EXPECT_TRUE(is(op, whole)) << op;
  // what is done to a variable behind a handle
  for (std::string_view op : opsWith(Flag::UsesVariable))
    EXPECT_EQ(findOp(op)->inputs[0].type, DType::Resource) << op;
  for (const OpInfo &op : allOps())
    if (op.touchesResources() && !is(op.name, Flag::Branch) && !is(op.name, Flag::Loop) && !is(op.name, Flag::Call)) {
      const bool onHandle = !op.inputs.empty() && op.inputs[0].type == DType::Resource;
      EXPECT_TRUE(!onHandle || !is(op.name, Flag::Effect) || op.name.substr(0, 5) == "Stack" || is(op.name, Flag::UsesVariable)) << op.name;
      EXPECT_TRUE(!is(op.name, Flag::ReadsVariable) || is(op.name, Flag::UsesVariable)) << op.name;
    }
  EXPECT_TRUE(isBackEdge("RefNextIteration", "RefMerge"));
  EXPECT_FALSE(isBackEdge("Merge", "NextIteration"));
  EXPECT_FALSE(is("ApplyGradientDescent", Flag::Releases));
  EXPECT_FALSE(is("ScatterNd", Flag::Effect));
}
