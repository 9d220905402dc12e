// Tensor arrays, lists, maps, stacks and optionals; what lists infer and refuse follows TensorFlow.
#include "test/runtime/KernelTest.h"

#include <functional>

namespace lathe::rt {
namespace {

using Result = absl::StatusOr<std::vector<Tensor>>;
constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

struct Ops {
  Result run(std::string op, AttrMap attrs, std::vector<Value> inputs) {
    KernelTest node(std::move(op), std::move(attrs), resources);
    node.step = &step;
    return node.run(std::move(inputs));
  }
  /// The first output; fails the test when there is none.
  Tensor one(std::string op, AttrMap attrs, std::vector<Value> inputs) {
    Result r = run(op, std::move(attrs), std::move(inputs));
    EXPECT_TRUE(r.ok()) << op << ": " << r.status();
    return r.ok() ? (*r)[0] : Tensor();
  }
  std::shared_ptr<ResourceManager> resources = std::make_shared<ResourceManager>();
  ResourceManager step;
};

const AttrMap kFloat = {{"T", DType::Float32}}, kDtype = {{"dtype", DType::Float32}},
              kElement = {{"element_dtype", DType::Float32}};

TEST(TensorArrays, allVersionsWriteReadAndPack) {
  for (std::string v : {"", "V2", "V3"}) {
    Ops ops;
    Tensor handle = ops.one("TensorArray" + v, kDtype, {int0(3)}), flow = float0(0);
    for (int i = 0; i < 3; ++i)
      ASSERT_TRUE(ops.run("TensorArrayWrite" + v, kFloat, {handle, int0(i), floats({float(i), 1}), flow}).ok());
    EXPECT_EQ(ops.run("TensorArrayWrite" + v, kFloat, {handle, int0(0), floats({1, 1}), flow}).status().code(), kInvalid);
    EXPECT_EQ(ops.run("TensorArrayWrite" + v, kFloat, {handle, int0(3), floats({1, 1}), flow}).status().code(), kInvalid);
    EXPECT_EQ(*ops.one("TensorArraySize" + v, {}, {handle, flow}).data<int32_t>(), 3);
    Tensor packed = v.empty() ? ops.one("TensorArrayPack", kDtype, {handle, flow})
                              : ops.one("TensorArrayGather" + v, kDtype, {handle, ints({0, 1, 2}), flow});
    EXPECT_EQ(packed.dims(), (std::vector<int64_t>{3, 2}));
    EXPECT_EQ(elements<float>(packed), (std::vector<float>{0, 1, 1, 1, 2, 1}));
    // read once only
    EXPECT_EQ(ops.run("TensorArrayRead" + v, kDtype, {handle, int0(0), flow}).status().code(), kInvalid);
    ASSERT_TRUE(ops.run("TensorArrayClose" + v, {}, {handle}).ok());
    EXPECT_EQ(ops.run("TensorArraySize" + v, {}, {handle, flow}).status().code(), kInvalid);
  }
}

TEST(TensorArrays, gradientsAddUpAndDefaultToZeros) {
  Ops ops;
  Tensor flow = float0(0);
  Tensor handle = ops.one("TensorArrayV3", {{"dtype", DType::Float32}, {"clear_after_read", false}}, {int0(2)});
  for (int i = 0; i < 2; ++i)
    ASSERT_TRUE(ops.run("TensorArrayWriteV3", kFloat, {handle, int0(i), floats({1, 2}), flow}).ok());
  Tensor gradient = ops.one("TensorArrayGradV3", {{"source", std::string("g")}}, {handle, flow});
  for (int i = 0; i < 2; ++i)
    ASSERT_TRUE(ops.run("TensorArrayWriteV3", kFloat, {gradient, int0(0), floats({3, 4}), flow}).ok());
  Tensor again = ops.one("TensorArrayGradV3", {{"source", std::string("g")}}, {handle, flow});
  EXPECT_EQ(elements<float>(ops.one("TensorArrayReadV3", kDtype, {again, int0(0), flow})), (std::vector<float>{6, 8}));
  EXPECT_EQ(elements<float>(ops.one("TensorArrayReadV3", kDtype, {gradient, int0(1), flow})), (std::vector<float>{0, 0}));
  Tensor wide = ops.one("TensorArrayGradWithShape", {{"source", std::string("h")}}, {handle, flow, ints({5})});
  EXPECT_EQ(ops.one("TensorArrayReadV3", kDtype, {wide, int0(0), flow}).dims(), (std::vector<int64_t>{5, 2}));
}

TEST(TensorArrays, splitConcatAndScatterGrow) {
  Ops ops;
  Tensor flow = float0(0);
  AttrMap dynamic = {{"dtype", DType::Float32}, {"dynamic_size", true}};
  Tensor handle = ops.one("TensorArrayV3", dynamic, {int0(0)});
  ASSERT_TRUE(ops.run("TensorArraySplitV3", kFloat, {handle, floats({1, 2, 3}), longs({1, 0, 2}), flow}).ok());
  Result all = ops.run("TensorArrayConcatV3", kDtype, {handle, flow});
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(elements<float>((*all)[0]), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(elements<int64_t>((*all)[1]), (std::vector<int64_t>{1, 0, 2}));
  Tensor other = ops.one("TensorArrayV3", dynamic, {int0(0)});
  ASSERT_TRUE(ops.run("TensorArrayScatterV3", kFloat, {other, ints({4, 1}), floats({7, 8}), flow}).ok());
  EXPECT_EQ(*ops.one("TensorArraySizeV3", {}, {other, flow}).data<int32_t>(), 5);
  EXPECT_EQ(*ops.one("TensorArrayReadV3", kDtype, {other, int0(1), flow}).data<float>(), 8);
  EXPECT_EQ(ops.run("TensorArrayReadV3", kDtype, {other, int0(0), flow}).status().code(), kInvalid);
  Tensor fixed = ops.one("TensorArrayV3", kDtype, {int0(2)});
  EXPECT_EQ(ops.run("TensorArraySplitV3", kFloat, {fixed, floats({1, 2}), longs({1, 1, 0}), flow}).status().code(), kInvalid);
  EXPECT_EQ(ops.run("TensorArraySplitV3", kFloat, {fixed, floats({1, 2}), longs({1, 2}), flow}).status().code(), kInvalid);
}

TEST(TensorLists, inferShapesOfWhatWasNeverSet) {
  Ops ops;
  Tensor list = ops.one("TensorListReserve", {{"element_dtype", DType::Float32}, {"shape_type", DType::Int32}},
                        {ints({2, -1}), int0(3)});
  list = ops.one("TensorListSetItem", kElement, {list, int0(1), floats({1, 2, 3, 4}).reshaped({2, 2})});
  EXPECT_EQ(ops.one("TensorListStack", kElement, {list, int0(-1)}).dims(), (std::vector<int64_t>{3, 2, 2}));
  EXPECT_EQ(ops.one("TensorListGetItem", kElement, {list, int0(2), int0(-1)}).dims(), (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(ops.run("TensorListPopBack", kElement, {list, int0(-1)}).status().code(), kInvalid);
  AttrMap v2 = {{"element_dtype", DType::Float32}, {"shape_type", DType::Int32}};
  Result joined = ops.run("TensorListConcatV2", v2, {list, ints({-1, 2}), longs({5, 2, 1})});
  ASSERT_TRUE(joined.ok()) << joined.status();
  EXPECT_EQ((*joined)[0].dims(), (std::vector<int64_t>{8, 2}));
  EXPECT_EQ(elements<int64_t>((*joined)[1]), (std::vector<int64_t>{5, 2, 1}));
  joined = ops.run("TensorListConcatV2", v2, {list, ints({-1, 2}), longs({})});
  ASSERT_TRUE(joined.ok()) << joined.status();
  EXPECT_EQ(elements<int64_t>((*joined)[1]), (std::vector<int64_t>{2, 2, 2}));
  EXPECT_EQ(ops.run("TensorListStack", {{"element_dtype", DType::Float32}, {"num_elements", int64_t(4)}}, {list, int0(-1)})
                .status()
                .code(),
            kInvalid);
}

TEST(TensorLists, stringsAndValuesThatDoNotChange) {
  Ops ops;
  AttrMap text = {{"element_dtype", DType::String}, {"shape_type", DType::Int32}};
  Tensor empty = ops.one("EmptyTensorList", text, {ints({}), int0(2)});
  Tensor a = ops.one("TensorListPushBack", {{"element_dtype", DType::String}}, {empty, string0("a")});
  Tensor b = ops.one("TensorListPushBack", {{"element_dtype", DType::String}}, {a, string0("b")});
  EXPECT_EQ(*ops.one("TensorListLength", {}, {a}).data<int32_t>(), 1);
  EXPECT_EQ(ops.one("TensorListStack", {{"element_dtype", DType::String}}, {b, int0(-1)}).strings(),
            (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(ops.run("TensorListPushBack", {{"element_dtype", DType::String}}, {b, string0("c")}).status().code(), kInvalid);
  EXPECT_EQ(ops.run("TensorListPushBack", kElement, {a, float0(1)}).status().code(), kInvalid);
  Tensor scattered = ops.one("TensorListScatterV2", {{"element_dtype", DType::Float32}, {"shape_type", DType::Int32}},
                             {floats({1, 2}), ints({3, 0}), ints({}), int0(7)});
  EXPECT_EQ(*ops.one("TensorListLength", {}, {scattered}).data<int32_t>(), 7);
  EXPECT_EQ(elements<float>(ops.one("TensorListStack", kElement, {scattered, int0(-1)})),
            (std::vector<float>{2, 0, 0, 1, 0, 0, 0}));
  Tensor pieces = ops.one("TensorListSplit", {{"element_dtype", DType::Float32}, {"shape_type", DType::Int32}},
                          {floats({1, 2, 3}), int0(-1), longs({1, 2})});
  EXPECT_EQ(elements<float>(ops.one("TensorListGetItem", kElement, {pieces, int0(1), int0(-1)})), (std::vector<float>{2, 3}));
  EXPECT_EQ(*ops.one("TensorListElementShape", {{"shape_type", DType::Int64}}, {pieces}).data<int64_t>(), -1);
}

TEST(TensorMaps, insertLookupErase) {
  Ops ops;
  AttrMap types = {{"key_dtype", DType::Float32}, {"value_dtype", DType::String}};
  Tensor map = ops.one("EmptyTensorMap", {}, {});
  Tensor one = ops.one("TensorMapInsert", types, {map, float0(0.0f), string0("zero")});
  Tensor two = ops.one("TensorMapInsert", types, {one, float0(2), string0("two")});
  EXPECT_EQ(*ops.one("TensorMapSize", {}, {two}).data<int32_t>(), 2);
  EXPECT_EQ(ops.one("TensorMapLookup", types, {two, float0(-0.0f)}).strings()[0], "zero");
  EXPECT_EQ(elements<float>(ops.one("TensorMapStackKeys", {{"key_dtype", DType::Float32}}, {two})), (std::vector<float>{0, 2}));
  Tensor less = ops.one("TensorMapErase", types, {two, float0(0)});
  EXPECT_FALSE(*ops.one("TensorMapHasKey", {{"key_dtype", DType::Float32}}, {less, float0(0)}).data<bool>());
  EXPECT_TRUE(*ops.one("TensorMapHasKey", {{"key_dtype", DType::Float32}}, {two, float0(0)}).data<bool>());
  EXPECT_EQ(ops.run("TensorMapLookup", types, {less, float0(0)}).status().code(), kInvalid);
  EXPECT_EQ(ops.run("TensorMapErase", types, {less, float0(0)}).status().code(), kInvalid);
}

TEST(Variants, addAndBecomeZeros) {
  Ops ops;
  AttrMap variant = {{"T", DType::Variant}}, pair = {{"T", DType::Variant}, {"N", int64_t(2)}};
  AttrMap types = {{"element_dtype", DType::Float32}, {"shape_type", DType::Int32}};
  Tensor a = ops.one("TensorListFromTensor", types, {floats({1, 2}), ints({})});
  Tensor b = ops.one("TensorListReserve", types, {ints({}), int0(2)});
  b = ops.one("TensorListSetItem", kElement, {b, int0(1), float0(5)});
  Tensor sum = ops.one("AddN", pair, {a, b});
  EXPECT_EQ(elements<float>(ops.one("TensorListStack", kElement, {sum, int0(-1)})), (std::vector<float>{1, 7}));
  Tensor zero = ops.one("ZerosLike", variant, {a});
  EXPECT_EQ(elements<float>(ops.one("TensorListStack", kElement, {zero, int0(-1)})), (std::vector<float>{0, 0}));
  Tensor longer = ops.one("TensorListFromTensor", types, {floats({1, 2, 3}), ints({})});
  EXPECT_EQ(ops.run("AddN", pair, {a, longer}).status().code(), kInvalid);
  // lists of lists
  AttrMap nested = {{"element_dtype", DType::Variant}, {"shape_type", DType::Int32}};
  Tensor outer = ops.one("TensorListPushBack", {{"element_dtype", DType::Variant}},
                         {ops.one("EmptyTensorList", nested, {ints({}), int0(-1)}), a});
  Tensor twice = ops.one("AddN", pair, {outer, outer});
  Tensor inner = ops.one("TensorListGetItem", {{"element_dtype", DType::Variant}}, {twice, int0(0), ints({})});
  EXPECT_EQ(elements<float>(ops.one("TensorListStack", kElement, {inner, int0(-1)})), (std::vector<float>{2, 4}));
  AttrMap map = {{"key_dtype", DType::Int32}, {"value_dtype", DType::Float32}};
  Tensor m = ops.one("EmptyTensorMap", {}, {});
  Tensor x = ops.one("TensorMapInsert", map, {m, int0(1), float0(1)});
  Tensor y = ops.one("TensorMapInsert", map, {ops.one("TensorMapInsert", map, {m, int0(1), float0(2)}), int0(2), float0(3)});
  Tensor both = ops.one("AddN", pair, {x, y});
  EXPECT_EQ(*ops.one("TensorMapLookup", map, {both, int0(1)}).data<float>(), 3);
  EXPECT_EQ(*ops.one("TensorMapLookup", map, {both, int0(2)}).data<float>(), 3);
  EXPECT_EQ(*ops.one("TensorMapLookup", map, {ops.one("ZerosLike", variant, {both}), int0(2)}).data<float>(), 0);
  AttrMap value = {{"Toutput_types", std::vector<DType>{DType::Float32}}};
  Tensor some = ops.one("OptionalFromValue", value, {float0(4)}), none = ops.one("OptionalNone", {}, {});
  AttrMap get = {{"output_types", std::vector<DType>{DType::Float32}}, {"output_shapes", std::vector<PartialShape>(1)}};
  EXPECT_EQ(*ops.one("OptionalGetValue", get, {ops.one("AddN", pair, {some, some})}).data<float>(), 8);
  EXPECT_EQ(ops.run("AddN", pair, {some, none}).status().code(), kInvalid);
  EXPECT_EQ(ops.run("AddN", pair, {some, a}).status().code(), kInvalid);
}

// A loop of a graph nests variants as deep as it likes; freeing them takes no stack, adding them is refused.
TEST(Variants, deepNests) {
  constexpr int kDeep = 300000;
  Ops ops;
  const std::vector<DType> variant{DType::Variant};
  const AttrMap ofVariants = {{"element_dtype", DType::Variant}};
  Tensor map = ops.one("EmptyTensorMap", {}, {});
  Tensor list = ops.one("EmptyTensorList", {{"element_dtype", DType::Variant}, {"shape_type", DType::Int32}}, {ints({}), int0(-1)});
  auto alone = [](const Tensor &inner) { return std::vector<Value>{inner}; };
  struct Nest {
    const char *op;
    AttrMap attrs;
    std::function<std::vector<Value>(const Tensor &)> around;
    bool adds;
  };
  const Nest nests[] = {
      {"OptionalFromValue", {{"Toutput_types", variant}}, alone, true},
      {"CompositeTensorVariantFromComponents", {{"metadata", std::string()}, {"Tcomponents", variant}}, alone, false},
      {"TensorListPushBack", ofVariants, [&](const Tensor &inner) { return std::vector<Value>{list, inner}; }, true},
      {"TensorMapInsert",
       {{"key_dtype", DType::Int32}, {"value_dtype", DType::Variant}},
       [&](const Tensor &inner) { return std::vector<Value>{map, int0(1), inner}; },
       true},
  };
  for (const Nest &nest : nests) {
    KernelTest node(nest.op, nest.attrs, ops.resources);
    Tensor inner = list;
    for (int i = 0; i < kDeep; ++i) {
      Result r = node.run(nest.around(inner));
      ASSERT_TRUE(r.ok()) << nest.op << ": " << r.status();
      inner = (*r)[0];
      if (i == 100 && nest.adds) {
        EXPECT_TRUE(ops.run("ZerosLike", {{"T", DType::Variant}}, {inner}).ok()) << nest.op;
      }
    }
    EXPECT_EQ(ops.run("ZerosLike", {{"T", DType::Variant}}, {inner}).status().code(), kInvalid);
    EXPECT_EQ(ops.run("AddN", {{"T", DType::Variant}, {"N", int64_t(2)}}, {inner, inner}).status().code(), kInvalid);
    std::weak_ptr<Object> innermost = inner.objects()[0];
    inner = Tensor();
    EXPECT_TRUE(innermost.expired()) << nest.op;
  }
}

TEST(Stacks, bothForms) {
  for (bool v2 : {false, true}) {
    Ops ops;
    std::string v = v2 ? "V2" : "";
    AttrMap type = {{"elem_type", DType::Float32}};
    Tensor handle = ops.one("Stack" + v, type, v2 ? std::vector<Value>{int0(2)} : std::vector<Value>{});
    ASSERT_TRUE(ops.run("StackPush" + v, kFloat, {handle, float0(1)}).ok());
    ASSERT_TRUE(ops.run("StackPush" + v, kFloat, {handle, floats({2, 3})}).ok());
    if (v2) {
      EXPECT_EQ(ops.run("StackPush" + v, kFloat, {handle, float0(1)}).status().code(), kInvalid);
    }
    EXPECT_EQ(ops.one("StackPop" + v, type, {handle}).numElements(), 2);
    EXPECT_EQ(*ops.one("StackPop" + v, type, {handle}).data<float>(), 1);
    EXPECT_EQ(ops.run("StackPop" + v, type, {handle}).status().code(), kInvalid);
    ASSERT_TRUE(ops.run("StackClose" + v, {}, {handle}).ok());
    EXPECT_EQ(ops.run("StackPush" + v, kFloat, {handle, float0(1)}).status().code(), kInvalid);
  }
}

TEST(Optionals, holdATupleOrNothing) {
  Ops ops;
  Tensor some = ops.one("OptionalFromValue", {{"Toutput_types", std::vector<DType>{DType::Int32, DType::String}}},
                        {int0(4), strings({"x"})});
  Tensor none = ops.one("OptionalNone", {}, {});
  EXPECT_TRUE(*ops.one("OptionalHasValue", {}, {some}).data<bool>());
  EXPECT_FALSE(*ops.one("OptionalHasValue", {}, {none}).data<bool>());
  AttrMap get = {{"output_types", std::vector<DType>{DType::Int32, DType::String}},
                 {"output_shapes", std::vector<PartialShape>{std::vector<int64_t>(), std::vector<int64_t>{-1}}}};
  EXPECT_EQ(*ops.one("OptionalGetValue", get, {some}).data<int32_t>(), 4);
  EXPECT_EQ(ops.run("OptionalGetValue", get, {none}).status().code(), kInvalid);
}

TEST(CompositeTensors, keepComponentsOfOneClass) {
  Ops ops;
  const std::string sparse("\x0a\x02\x08\x01", 4), ragged("\x0a\x02\x08\x03", 4), unknown("\x0a\x02\x08\x63", 4);
  const std::vector<DType> types = {DType::Int32, DType::Float32};
  auto attrs = [&](std::string metadata, std::vector<DType> types) {
    return AttrMap{{"metadata", std::move(metadata)}, {"Tcomponents", std::move(types)}};
  };
  Tensor made = ops.one("CompositeTensorVariantFromComponents", attrs(sparse, types), {ints({1, 2}), float0(3)});
  EXPECT_EQ(made.rank(), 0);
  auto back = ops.run("CompositeTensorVariantToComponents", attrs(sparse, types), {made});
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(elements<int32_t>((*back)[0]), (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(elements<float>((*back)[1]), (std::vector<float>{3}));

  auto refusal = [&](std::string metadata, std::vector<DType> types, Tensor encoded) {
    return ops.run("CompositeTensorVariantToComponents", attrs(std::move(metadata), std::move(types)), {std::move(encoded)}).status();
  };
  EXPECT_EQ(refusal(ragged, types, made), absl::InvalidArgumentError("Expected a RAGGED_TENSOR_SPEC (based on `type_spec`), but `encoded` "
                                                                     "contains a SPARSE_TENSOR_SPEC"));
  EXPECT_EQ(refusal("", types, made).code(), kInvalid);
  EXPECT_EQ(refusal(unknown, types, made).code(), kInvalid);
  EXPECT_EQ(refusal(sparse, {DType::Int32}, made),
            absl::InvalidArgumentError("Encoded value has 2 tensor components; expected 1 components based on type_spec"));
  EXPECT_EQ(refusal(sparse, {DType::Int32, DType::Float64}, made).code(), kInvalid);
  EXPECT_EQ(refusal(sparse, types, Tensor::allocate(DType::Variant, {0})).code(), kInvalid);
  EXPECT_EQ(refusal(sparse, types, Tensor::allocate(DType::Variant, {})).code(), kInvalid);
  EXPECT_EQ(refusal(sparse, types, ops.one("OptionalNone", {}, {})).code(), kInvalid);
  // cut off, and a length that runs past the end
  for (std::string bad : {std::string("\x0a\xff"), std::string("\x0a\x03\x12\x01\xff"), std::string("\x0a\x02\x08\x80", 4)})
    EXPECT_EQ(ops.run("CompositeTensorVariantFromComponents", attrs(bad, types), {ints({1}), float0(3)}).status(),
              absl::InvalidArgumentError("Error parsing metadata"));
  // messages within messages: a type spec's state that is a type spec, and so on; protobuf takes 100 levels
  for (int levels : {20, 60}) {
    std::string bytes;
    auto wrap = [&](const std::string &tag) {
      size_t n = bytes.size();
      std::string size = n < 128 ? std::string(1, static_cast<char>(n)) : std::string{static_cast<char>(n & 127 | 128), static_cast<char>(n >> 7)};
      bytes = tag + size + bytes;
    };
    for (int i = 0; i < levels; ++i) {
      wrap("\x92\x02"); // StructuredValue.type_spec_value
      wrap("\x12");     // TypeSpecProto.type_state
    }
    wrap("\x0a");
    EXPECT_EQ(ops.run("CompositeTensorVariantFromComponents", attrs(bytes, {}), {}).ok(), levels == 20);
  }
  // twice the same message is merged
  Tensor twice = ops.one("CompositeTensorVariantFromComponents", attrs(ragged + sparse, {}), {});
  EXPECT_TRUE(refusal(sparse, {}, twice).ok());
}

} // namespace
} // namespace lathe::rt
