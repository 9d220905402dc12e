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
};
} // namespace

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
