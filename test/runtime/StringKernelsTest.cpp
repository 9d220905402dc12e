#include "test/runtime/KernelTest.h"

namespace lathe::rt {
namespace {

TEST(StringJoin, BroadcastsScalars) {
  KernelTest join("StringJoin", {{"N", int64_t(3)}, {"separator", std::string("-")}});
  auto out = join.run({strings({"a", "b"}), string0("x"), strings({"", "d"})});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ((*out)[0].strings(), (std::vector<std::string>{"a-x-", "b-x-d"}));
}

TEST(StringJoin, RefusesOtherShapes) {
  KernelTest join("StringJoin", {{"N", int64_t(2)}});
  auto out = join.run({strings({"a", "b"}), strings({"c"})});
  EXPECT_EQ(out.status().code(), absl::StatusCode::kInvalidArgument);
}

} // namespace
} // namespace lathe::rt
