#include "Graphs.h"

#include "graph/Values.h"

using namespace lathe;
using namespace lathe::graphdef;

namespace {

tf::TensorProto parse(const std::string &text) {
  tf::TensorProto proto;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &proto));
  return proto;
}

constexpr int64_t kLimit = 1 << 20;

TEST(Values, TheLastValueRepeats) {
  auto t = decodeTensor(parse("dtype: DT_INT16 tensor_shape { dim { size: 4 } } int_val: 3 int_val: -2"), kLimit);
  ASSERT_TRUE(t.ok()) << t.status();
  EXPECT_EQ(std::vector<int16_t>(t->data<int16_t>(), t->data<int16_t>() + 4), (std::vector<int16_t>{3, -2, -2, -2}));
  auto c = decodeTensor(parse("dtype: DT_COMPLEX64 tensor_shape { dim { size: 2 } } scomplex_val: 1 scomplex_val: 2"), kLimit);
  ASSERT_TRUE(c.ok()) << c.status();
  EXPECT_EQ(c->data<float>()[3], 2);
}

TEST(Values, StringsListedOrPacked) {
  auto listed = decodeTensor(parse("dtype: DT_STRING tensor_shape { dim { size: 3 } } string_val: 'a' string_val: 'bc'"), kLimit);
  ASSERT_TRUE(listed.ok());
  EXPECT_EQ(listed->strings(), (std::vector<std::string>{"a", "bc", "bc"}));
  auto packed = decodeTensor(parse("dtype: DT_STRING tensor_shape { dim { size: 2 } } tensor_content: '\\001\\002abc'"), kLimit);
  ASSERT_TRUE(packed.ok()) << packed.status();
  EXPECT_EQ(packed->strings(), (std::vector<std::string>{"a", "bc"}));
  for (const char *bad : {"\\001\\002ab", "\\001", "\\377\\377\\377\\377\\377\\377\\377\\377\\377\\377\\377\\001"})
    EXPECT_FALSE(decodeTensor(parse(std::string("dtype: DT_STRING tensor_shape { dim { size: 2 } } tensor_content: '") + bad + "'"), kLimit).ok());
}

TEST(Values, RefusesWhatDoesNotFit) {
  for (const char *bad : {"dtype: DT_FLOAT tensor_shape { dim { size: 1 } } float_val: 1 float_val: 2",
                          "dtype: DT_FLOAT tensor_shape { dim { size: 2 } } tensor_content: 'abc'",
                          "dtype: DT_FLOAT tensor_shape { unknown_rank: true }", "dtype: DT_FLOAT tensor_shape { dim { size: -1 } }",
                          "dtype: DT_FLOAT tensor_shape { dim { size: 9223372036854775807 } dim { size: 3 } }",
                          "dtype: DT_FLOAT tensor_shape { dim { size: 1000000000 } }", "dtype: DT_RESOURCE tensor_shape { }"})
    EXPECT_FALSE(decodeTensor(parse(bad), kLimit).ok()) << bad;
}

TEST(Values, TensorsSurviveTheRoundTrip) {
  for (const char *text : {"dtype: DT_HALF tensor_shape { dim { size: 2 } } half_val: 15360 half_val: 1",
                           "dtype: DT_BOOL tensor_shape { } bool_val: true", "dtype: DT_STRING tensor_shape { } string_val: 'x'"}) {
    auto t = decodeTensor(parse(text), kLimit);
    ASSERT_TRUE(t.ok());
    tf::TensorProto again;
    ASSERT_TRUE(encodeTensor(*t, &again).ok());
    auto u = decodeTensor(again, kLimit);
    ASSERT_TRUE(u.ok());
    EXPECT_EQ(u->dims(), t->dims());
    EXPECT_EQ(u->strings(), t->strings());
  }
}

TEST(Values, DefaultsOfEveryOpAreRead) {
  for (const ops::OpInfo &op : ops::allOps())
    for (const ops::Attr &attr : op.attrs) {
      if (!attr.hasDefault)
        continue;
      tf::AttrValue value;
      std::string found;
      EXPECT_TRUE(parseDefault(attr.type, attr.defaultText, &value)) << op.name << " " << attr.name;
      EXPECT_TRUE(hasAttrType(value, attr.type, &found)) << op.name << " " << attr.name << " " << found;
    }
}

} // namespace
