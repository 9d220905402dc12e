#include "test/runtime/KernelTest.h"

namespace lathe::rt {
namespace {

AttrMap types(DType key, DType value, const char *in = "Tin", const char *out = "Tout") {
  return {{in, key}, {out, value}};
}

Tensor longs(std::vector<int64_t> v) { return Tensor::vector<int64_t>(DType::Int64, v); }
Tensor long0(int64_t v) { return Tensor::scalar<int64_t>(DType::Int64, v); }

std::vector<int64_t> values(const Tensor &t) { return {t.data<int64_t>(), t.data<int64_t>() + t.numElements()}; }

TEST(MutableHashTable, InsertsFindsRemoves) {
  auto resources = std::make_shared<ResourceManager>();
  KernelTest make("MutableHashTableV2", {{"key_dtype", DType::String}, {"value_dtype", DType::Int64}}, resources);
  auto table = make.run({});
  ASSERT_TRUE(table.ok()) << table.status();
  Tensor handle = (*table)[0];
  KernelTest insert("LookupTableInsertV2", types(DType::String, DType::Int64), resources);
  KernelTest find("LookupTableFindV2", types(DType::String, DType::Int64), resources);
  KernelTest remove("LookupTableRemoveV2", {{"Tin", DType::String}}, resources);
  KernelTest size("LookupTableSizeV2", {}, resources);
  ASSERT_TRUE(insert.run({handle, strings({"a", "b", "a"}), longs({1, 2, 3})}).ok());
  auto found = find.run({handle, strings({"b", "a", "z"}), long0(-1)});
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(values((*found)[0]), (std::vector<int64_t>{2, 3, -1}));
  ASSERT_TRUE(remove.run({handle, strings({"a", "q"})}).ok());
  EXPECT_EQ(values((*size.run({handle}))[0]), (std::vector<int64_t>{1}));
  EXPECT_EQ(find.run({handle, longs({1}), long0(-1)}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(HashTable, IsInitialisedOnce) {
  auto resources = std::make_shared<ResourceManager>();
  KernelTest make("HashTableV2", {{"key_dtype", DType::Int64}, {"value_dtype", DType::Int64}}, resources);
  Tensor handle = (*make.run({}))[0];
  KernelTest find("LookupTableFindV2", types(DType::Int64, DType::Int64), resources);
  KernelTest initialize("InitializeTableV2", types(DType::Int64, DType::Int64, "Tkey", "Tval"), resources);
  EXPECT_EQ(find.run({handle, longs({1}), long0(0)}).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(initialize.run({handle, longs({1, 1}), longs({5, 6})}).status().code(), absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(initialize.run({handle, longs({1, 2}), longs({5, 6})}).ok());
  auto found = find.run({handle, longs({2, 3}), long0(9)});
  EXPECT_EQ(values((*found)[0]), (std::vector<int64_t>{6, 9}));
}

// the layout that TensorFlow exports: keys 11 and 12 at their hashes, 15 after a probe; then 12 removed
TEST(MutableDenseHashTable, KeepsTensorFlowsBuckets) {
  auto resources = std::make_shared<ResourceManager>();
  KernelTest make("MutableDenseHashTableV2",
                  {{"key_dtype", DType::Int64}, {"value_dtype", DType::Int64}, {"initial_num_buckets", int64_t(4)},
                   {"max_load_factor", 0.8f}},
                  resources);
  Tensor handle = (*make.run({long0(0), long0(-1)}))[0];
  KernelTest insert("LookupTableInsertV2", types(DType::Int64, DType::Int64), resources);
  KernelTest remove("LookupTableRemoveV2", {{"Tin", DType::Int64}}, resources);
  KernelTest save("LookupTableExportV2", types(DType::Int64, DType::Int64, "Tkeys", "Tvalues"), resources);
  ASSERT_TRUE(insert.run({handle, longs({11, 12, 15}), longs({1, 2, 3})}).ok());
  auto all = save.run({handle});
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(values((*all)[0]), (std::vector<int64_t>{12, 0, 15, 11}));
  EXPECT_EQ(values((*all)[1]), (std::vector<int64_t>{2, 0, 3, 1}));
  EXPECT_EQ((*all)[0].dims(), (std::vector<int64_t>{4, 1}));
  EXPECT_EQ((*all)[1].dims(), (std::vector<int64_t>{4, 1}));
  ASSERT_TRUE(remove.run({handle, longs({12})}).ok());
  EXPECT_EQ(values((*save.run({handle}))[0])[0], -1);
  EXPECT_EQ(insert.run({handle, longs({0}), longs({1})}).status().code(), absl::StatusCode::kInvalidArgument);
}

// recorded from TensorFlow: 14 keys one by one, two removed, one of them again
TEST(MutableHashTable, ExportsInTensorFlowsOrder) {
  auto resources = std::make_shared<ResourceManager>();
  KernelTest make("MutableHashTableV2", {{"key_dtype", DType::Int64}, {"value_dtype", DType::Int64}}, resources);
  Tensor handle = (*make.run({}))[0];
  KernelTest insert("LookupTableInsertV2", types(DType::Int64, DType::Int64), resources);
  KernelTest remove("LookupTableRemoveV2", {{"Tin", DType::Int64}}, resources);
  KernelTest save("LookupTableExportV2", types(DType::Int64, DType::Int64, "Tkeys", "Tvalues"), resources);
  for (int64_t key : {684, 559, 629, 192, 835, 763, 707, 359, 9, 723, 277, 754, 804, 599})
    ASSERT_TRUE(insert.run({handle, longs({key}), longs({key})}).ok());
  ASSERT_TRUE(remove.run({handle, longs({192, 835})}).ok());
  ASSERT_TRUE(insert.run({handle, longs({192}), longs({192})}).ok());
  auto all = save.run({handle});
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(values((*all)[0]), (std::vector<int64_t>{192, 599, 684, 723, 559, 754, 629, 359, 707, 763, 9, 277, 804}));
  EXPECT_EQ(values((*all)[1]), values((*all)[0]));
}

TEST(RngReadAndSkip, CarriesIntoTheUpperHalf) {
  auto resources = std::make_shared<ResourceManager>();
  auto variable = std::make_shared<Variable>(DType::Int64);
  variable->value = longs({-1, 5, 7});
  KernelTest skip("RngReadAndSkip", {}, resources);
  Tensor handle = makeHandle("c", "v", variable);
  auto out = skip.run({handle, Tensor::scalar<int32_t>(DType::Int32, 1), Tensor::scalar<uint64_t>(DType::UInt64, 2)});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(values((*out)[0]), (std::vector<int64_t>{-1, 5, 7}));
  EXPECT_EQ(values(variable->value), (std::vector<int64_t>{511, 6, 7}));
}

} // namespace
} // namespace lathe::rt
