// tf.data: the order of shuffles, interleaves and windows is TensorFlow's. Functions are made of lambdas here;
// PipelineTest runs datasets in sessions.
#include "base/Bytes.h"
#include "base/Memory.h"
#include "base/Records.h"
#include "test/runtime/KernelTest.h"

#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <map>
#include <thread>

namespace lathe::rt {
namespace {

using Types = std::vector<DType>;
using Shapes = std::vector<PartialShape>;
using Numbers = std::vector<int64_t>;

/// Calls functions on threads of their own.
class Functions : public FunctionCaller {
public:
  using Fn = std::function<absl::StatusOr<std::vector<Tensor>>(std::vector<Tensor>)>;
  std::map<std::string, Fn> all;
  void call(const FunctionRef &function, std::vector<Tensor> args, Cancellation *, Done done) override {
    std::thread([fn = all.at(function.name), args = std::move(args), done = std::move(done)] { done(fn(args)); }).detach();
  }
  absl::Status signature(const FunctionRef &, Types *, Types *) override { return absl::UnimplementedError(""); }
};

AttrMap spec(AttrMap attrs = {}, Types types = {DType::Int64}) {
  attrs["output_shapes"] = Shapes(types.size());
  attrs["output_types"] = std::move(types);
  return attrs;
}

AttrMap fn(const char *attr, const char *name, AttrMap attrs = {}) {
  FunctionRef ref;
  ref.name = name;
  attrs[attr] = FunctionRefPtr(std::make_shared<FunctionRef>(ref));
  attrs["Targuments"] = Types();
  return spec(std::move(attrs));
}

struct Data : testing::Test {
  absl::StatusOr<std::vector<Tensor>> run(std::string op, AttrMap attrs, std::vector<Value> inputs) {
    return KernelTest(std::move(op), std::move(attrs), resources, functions).run(std::move(inputs));
  }
  Tensor one(std::string op, AttrMap attrs, std::vector<Value> inputs) {
    auto r = run(op, std::move(attrs), std::move(inputs));
    EXPECT_TRUE(r.ok()) << op << ": " << r.status();
    return r.ok() ? (*r)[0] : Tensor();
  }
  Tensor range(int64_t start, int64_t stop, int64_t step = 1) {
    return one("RangeDataset", spec(), {long0(start), long0(stop), long0(step)});
  }
  Tensor iterate(const Tensor &dataset, Types types = {DType::Int64}) {
    Tensor iterator = one("AnonymousIteratorV3", spec({}, types), {});
    auto made = run("MakeIterator", {}, {dataset, iterator});
    EXPECT_TRUE(made.ok()) << made.status();
    return iterator;
  }
  /// The numbers of all elements, those of one element in a row; stops at an error.
  Numbers drain(const Tensor &dataset, size_t most = 1000, absl::Status *end = nullptr) {
    Tensor iterator = iterate(dataset);
    Numbers all;
    while (all.size() < most) {
      auto r = run("IteratorGetNext", spec(), {iterator});
      if (!r.ok()) {
        if (end)
          *end = r.status();
        else
          EXPECT_EQ(r.status().code(), absl::StatusCode::kOutOfRange) << r.status();
        break;
      }
      for (int64_t v : elements<int64_t>((*r)[0]))
        all.push_back(v);
    }
    return all;
  }
  int64_t cardinality(const Tensor &dataset) { return *one("DatasetCardinality", {}, {dataset}).data<int64_t>(); }
  std::shared_ptr<ResourceManager> resources = std::make_shared<ResourceManager>();
  std::shared_ptr<Functions> functions = std::make_shared<Functions>();
};

TEST_F(Data, sourcesAndSelection) {
  EXPECT_EQ(drain(range(10, 0, -3)), (Numbers{10, 7, 4, 1}));
  EXPECT_EQ(cardinality(range(10, 0, -3)), 4);
  EXPECT_EQ(run("RangeDataset", spec(), {long0(0), long0(1), long0(0)}).status().code(), absl::StatusCode::kInvalidArgument);
  Tensor r = range(0, 5);
  EXPECT_EQ(drain(one("RepeatDataset", spec(), {r, long0(2)})), (Numbers{0, 1, 2, 3, 4, 0, 1, 2, 3, 4}));
  EXPECT_EQ(drain(one("RepeatDataset", spec(), {r, long0(-1)}), 7).size(), 7u);
  EXPECT_TRUE(drain(one("RepeatDataset", spec(), {range(0, 0), long0(-1)})).empty());
  EXPECT_EQ(drain(one("TakeDataset", spec(), {r, long0(2)})), (Numbers{0, 1}));
  EXPECT_EQ(drain(one("TakeDataset", spec(), {r, long0(-1)})).size(), 5u);
  EXPECT_EQ(drain(one("SkipDataset", spec(), {r, long0(3)})), (Numbers{3, 4}));
  EXPECT_TRUE(drain(one("SkipDataset", spec(), {r, long0(-1)})).empty());
  EXPECT_EQ(drain(one("ShardDataset", spec(), {range(0, 10), long0(3), long0(1)})), (Numbers{1, 4, 7}));
  EXPECT_EQ(cardinality(one("ShardDataset", spec(), {range(0, 10), long0(3), long0(1)})), 3);
  EXPECT_EQ(drain(one("ConcatenateDataset", spec(), {range(0, 2), r})), (Numbers{0, 1, 0, 1, 2, 3, 4}));
  Tensor zip = one("ZipDataset", spec({{"N", int64_t(2)}}, {DType::Int64, DType::Int64}), {r, range(7, 10)});
  EXPECT_EQ(cardinality(zip), 3);
  Tensor both = iterate(zip, {DType::Int64, DType::Int64});
  auto first = run("IteratorGetNext", spec({}, {DType::Int64, DType::Int64}), {both});
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(*(*first)[1].data<int64_t>(), 7);
  Tensor slices = one("TensorSliceDataset", {{"Toutput_types", Types{DType::Int64}}, {"output_shapes", Shapes(1)}},
                      {longs({5, 6, 7})});
  EXPECT_EQ(drain(slices), (Numbers{5, 6, 7}));
}

TEST_F(Data, batchesPadAndWindow) {
  Tensor r = range(0, 7);
  auto batch = [&](bool drop) {
    return one("BatchDatasetV2", spec(), {r, long0(3), Tensor::scalar<bool>(DType::Bool, drop)});
  };
  EXPECT_EQ(drain(batch(false)).size(), 7u);
  EXPECT_EQ(drain(batch(true)).size(), 6u);
  EXPECT_EQ(cardinality(batch(false)), 3);
  EXPECT_EQ(drain(one("UnbatchDataset", spec(), {batch(false)})), (Numbers{0, 1, 2, 3, 4, 5, 6}));
  // rows of 0, 1 and 2 elements
  functions->all["row"] = [](std::vector<Tensor> args) -> absl::StatusOr<std::vector<Tensor>> {
    return std::vector<Tensor>{longs(Numbers(*args[0].data<int64_t>(), *args[0].data<int64_t>()))};
  };
  Tensor rows = one("MapDataset", fn("f", "row"), {range(0, 3)});
  auto padded = [&](int64_t width) {
    return one("PaddedBatchDatasetV2",
               {{"N", int64_t(1)}, {"Toutput_types", Types{DType::Int64}}, {"output_shapes", Shapes(1)}},
               {rows, long0(3), longs({width}), long0(-1), Tensor::scalar<bool>(DType::Bool, false)});
  };
  EXPECT_EQ(drain(padded(-1)), (Numbers{-1, -1, 1, -1, 2, 2}));
  EXPECT_EQ(drain(padded(3)), (Numbers{-1, -1, -1, 1, -1, -1, 2, 2, -1}));
  absl::Status why;
  drain(padded(1), 10, &why);
  EXPECT_EQ(why.code(), absl::StatusCode::kDataLoss);
  Tensor ragged = one("BatchDatasetV2", spec(), {rows, long0(3), Tensor::scalar<bool>(DType::Bool, false)});
  drain(ragged, 10, &why);
  EXPECT_EQ(why.code(), absl::StatusCode::kInvalidArgument);

  auto windows = [&](int64_t size, int64_t shift, int64_t stride, bool drop) {
    Tensor window = one("WindowDataset", spec({}, {DType::Variant}),
                        {range(0, 10), long0(size), long0(shift), long0(stride), Tensor::scalar<bool>(DType::Bool, drop)});
    Tensor iterator = iterate(window, {DType::Variant});
    std::vector<Numbers> all;
    for (;;) {
      auto r = run("IteratorGetNext", spec({}, {DType::Variant}), {iterator});
      if (!r.ok())
        return all;
      all.push_back(drain((*r)[0]));
    }
  };
  EXPECT_EQ(windows(3, 2, 2, false), (std::vector<Numbers>{{0, 2, 4}, {2, 4, 6}, {4, 6, 8}, {6, 8}, {8}}));
  EXPECT_EQ(windows(2, 4, 1, true), (std::vector<Numbers>{{0, 1}, {4, 5}, {8, 9}}));
}

TEST_F(Data, shufflesAsTensorFlowDoes) {
  auto shuffle = [&](int64_t n, int64_t size, bool reshuffle) {
    return one("ShuffleDataset", spec({{"reshuffle_each_iteration", reshuffle}}),
               {range(0, n), long0(size), long0(3), long0(9)});
  };
  Tensor d = shuffle(20, 5, true);
  EXPECT_EQ(drain(d), (Numbers{2, 3, 4, 1, 0, 5, 10, 9, 12, 13, 6, 11, 15, 14, 18, 16, 7, 19, 17, 8}));
  EXPECT_EQ(drain(d), (Numbers{1, 5, 4, 2, 3, 0, 9, 11, 12, 6, 7, 8, 15, 16, 13, 19, 14, 18, 10, 17}));
  d = shuffle(10, 100, false);
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(drain(d), (Numbers{2, 0, 7, 4, 1, 9, 6, 5, 3, 8}));
  EXPECT_EQ(drain(one("RepeatDataset", spec(), {shuffle(10, 100, true), long0(2)})),
            (Numbers{7, 3, 6, 1, 4, 5, 0, 2, 9, 8, 6, 9, 1, 8, 4, 5, 7, 0, 2, 3}));
  EXPECT_EQ(drain(one("ShuffleAndRepeatDataset", spec(), {range(0, 6), long0(4), long0(3), long0(9), long0(3)})),
            (Numbers{3, 0, 2, 1, 4, 5, 0, 1, 5, 4, 3, 2, 0, 3, 5, 1, 2, 4}));
  for (bool dummy : {false, true}) {
    Tensor seeds = dummy ? one("DummySeedGenerator", {}, {})
                         : one("AnonymousSeedGenerator", {}, {long0(3), long0(9), Tensor::scalar<bool>(DType::Bool, true)});
    Tensor v3 = one("ShuffleDatasetV3", spec(), {range(0, 10), long0(4), long0(dummy ? 3 : 1), long0(dummy ? 9 : 2), seeds});
    EXPECT_EQ(drain(v3), (Numbers{3, 0, 2, 1, 6, 7, 5, 4, 9, 8}));
    EXPECT_EQ(drain(v3), (Numbers{0, 1, 5, 2, 4, 6, 7, 3, 9, 8}));
  }
}

TEST_F(Data, functionsMapFilterAndInterleave) {
  functions->all["square"] = [](std::vector<Tensor> args) -> absl::StatusOr<std::vector<Tensor>> {
    int64_t v = *args[0].data<int64_t>();
    if (v == 3)
      return absl::InvalidArgumentError("three");
    if (v == 6)
      return absl::OutOfRangeError("six");
    return std::vector<Tensor>{long0(v * v)};
  };
  functions->all["odd"] = [](std::vector<Tensor> args) -> absl::StatusOr<std::vector<Tensor>> {
    return std::vector<Tensor>{Tensor::scalar<bool>(DType::Bool, *args[0].data<int64_t>() % 2 == 1)};
  };
  for (bool parallel : {false, true}) {
    std::vector<Value> inputs = {range(0, 9)};
    if (parallel)
      inputs.push_back(long0(3));
    Tensor map = one(parallel ? "ParallelMapDatasetV2" : "MapDataset", fn("f", "square"), inputs);
    Tensor iterator = iterate(map);
    std::string text;
    for (int i = 0; i < 8; ++i) {
      auto r = run("IteratorGetNext", spec(), {iterator});
      text += r.ok() ? std::to_string(*(*r)[0].data<int64_t>()) : absl::StatusCodeToString(r.status().code());
      text += " ";
    }
    EXPECT_EQ(text, "0 1 4 INVALID_ARGUMENT 16 25 OUT_OF_RANGE OUT_OF_RANGE ");
    EXPECT_EQ(drain(one("IgnoreErrorsDataset", spec(), {map})), (Numbers{0, 1, 4, 16, 25}));
  }
  EXPECT_EQ(drain(one("FilterDataset", fn("predicate", "odd"), {range(0, 6)})), (Numbers{1, 3, 5}));
  EXPECT_EQ(drain(one("TakeWhileDataset", fn("predicate", "odd"), {range(1, 6)})), (Numbers{1}));
  functions->all["tens"] = [this](std::vector<Tensor> args) -> absl::StatusOr<std::vector<Tensor>> {
    int64_t v = *args[0].data<int64_t>();
    return std::vector<Tensor>{range(v * 10, v * 10 + v)};
  };
  auto interleave = [&](int64_t cycle, int64_t block) {
    return drain(one("InterleaveDataset", fn("f", "tens"), {range(0, 6), long0(cycle), long0(block)}));
  };
  EXPECT_EQ(interleave(2, 1), (Numbers{10, 20, 21, 30, 31, 40, 32, 41, 42, 50, 43, 51, 52, 53, 54}));
  EXPECT_EQ(interleave(3, 2), (Numbers{10, 20, 21, 30, 31, 40, 41, 32, 42, 43, 50, 51, 52, 53, 54}));
  EXPECT_EQ(interleave(10, 2), (Numbers{10, 20, 21, 30, 31, 40, 41, 50, 51, 32, 42, 43, 52, 53, 54}));
  EXPECT_EQ(interleave(INT64_C(1) << 40, 1).size(), 15u);
  EXPECT_EQ(drain(one("FlatMapDataset", fn("f", "tens"), {range(0, 4)})), (Numbers{10, 20, 21, 30, 31, 32}));
  functions->all["add"] = [](std::vector<Tensor> args) -> absl::StatusOr<std::vector<Tensor>> {
    return std::vector<Tensor>{long0(*args[0].data<int64_t>() + *args[1].data<int64_t>())};
  };
  EXPECT_EQ(*one("ReduceDataset", fn("f", "add", {{"Tstate", Types{DType::Int64}}}), {range(0, 5), long0(100)}).data<int64_t>(), 110);
}

TEST_F(Data, groupsByKey) {
  auto number = [](int64_t v) { return std::vector<Tensor>{long0(v)}; };
  auto first = [](const std::vector<Tensor> &args) { return *args[0].data<int64_t>(); };
  functions->all["mod3"] = [=](std::vector<Tensor> args) { return number(first(args) % 3); };
  functions->all["next"] = [=](std::vector<Tensor> args) { return number(first(args) + 1); };
  functions->all["same"] = [=](std::vector<Tensor> args) { return number(first(args)); };
  functions->all["batch"] = [this](std::vector<Tensor> args) {
    return std::vector<Tensor>{
        one("BatchDatasetV2", spec(), {args[1], long0(10), Tensor::scalar<bool>(DType::Bool, false)})};
  };
  functions->all["fails"] = [](std::vector<Tensor>) { return absl::InternalError("failed"); };
  functions->all["two"] = [](std::vector<Tensor> args) { return std::vector<Tensor>{args[0], args[0]}; };
  functions->all["text"] = [](std::vector<Tensor>) { return std::vector<Tensor>{string0("no")}; };
  auto windows = [&](const char *key, const char *size, const char *reduce) {
    AttrMap attrs = fn("key_func", key, fn("window_size_func", size, fn("reduce_func", reduce)));
    for (const char *list : {"Tkey_func_other_arguments", "Treduce_func_other_arguments", "Twindow_size_func_other_arguments"})
      attrs[list] = Types();
    return one("GroupByWindowDataset", attrs, {range(0, 12)});
  };
  EXPECT_EQ(drain(windows("mod3", "next", "batch")), (Numbers{0, 3, 1, 4, 6, 2, 5, 8, 9, 7, 10, 11}));
  // errors come out and the rest goes on to an end
  auto ignored = [&](Tensor dataset) { return drain(one("IgnoreErrorsDataset", spec(), {dataset})); };
  EXPECT_EQ(ignored(windows("mod3", "same", "batch")), (Numbers{1, 4, 2, 5, 7, 10, 8, 11}));
  EXPECT_TRUE(ignored(windows("mod3", "next", "fails")).empty());
  for (const char *bad : {"two", "text"}) {
    absl::Status why;
    drain(windows(bad, "next", "batch"), 10, &why);
    EXPECT_EQ(why.code(), absl::StatusCode::kInvalidArgument) << bad;
    drain(windows("mod3", bad, "batch"), 10, &why);
    EXPECT_EQ(why.code(), absl::StatusCode::kInvalidArgument) << bad;
    drain(windows("mod3", "next", bad), 10, &why);
    EXPECT_EQ(why.code(), absl::StatusCode::kInvalidArgument) << bad;
  }

  functions->all["hundred"] = [=](std::vector<Tensor> args) { return number(100 * first(args)); };
  functions->all["add"] = [=](std::vector<Tensor> args) { return number(first(args) + *args[1].data<int64_t>()); };
  auto reduced = [&](const char *reduce) {
    AttrMap attrs = fn("key_func", "mod3", fn("init_func", "hundred", fn("reduce_func", reduce, fn("finalize_func", "next"))));
    for (const char *list : {"Tkey_func_other_arguments", "Tinit_func_other_arguments", "Treduce_func_other_arguments",
                             "Tfinalize_func_other_arguments"})
      attrs[list] = Types();
    return one("GroupByReducerDataset", attrs, {range(0, 8)});
  };
  EXPECT_EQ(drain(reduced("add")), (Numbers{10, 113, 208}));
  absl::Status why;
  drain(reduced("two"), 10, &why);
  EXPECT_EQ(why.code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(Data, rebatchesAndSlides) {
  auto flag = [](bool v) { return Tensor::scalar<bool>(DType::Bool, v); };
  /// The elements in brackets.
  auto show = [&](const Tensor &dataset, int most = 20) {
    Tensor iterator = iterate(dataset);
    std::string text;
    for (int i = 0; i < most; ++i) {
      auto r = run("IteratorGetNext", spec(), {iterator});
      if (!r.ok())
        return absl::IsOutOfRange(r.status()) ? text : text + std::string(absl::StatusCodeToString(r.status().code()));
      std::string row;
      for (int64_t v : elements<int64_t>((*r)[0]))
        row += (row.empty() ? "" : " ") + std::to_string(v);
      text += "[" + row + "]";
    }
    return text + "...";
  };
  auto batches = [&](int64_t n) { return one("BatchDatasetV2", spec(), {range(0, n), long0(4), flag(false)}); };
  auto rebatch = [&](Numbers sizes, bool drop) {
    return show(one("RebatchDatasetV2", spec(), {batches(8), longs(sizes), flag(drop)}));
  };
  EXPECT_EQ(rebatch({2, 1, 0}, false), "[0 1][2][][3 4][5][][6 7]");
  EXPECT_EQ(rebatch({2, 0}, true), "[0 1][][2 3][][4 5][][6 7][]");
  EXPECT_EQ(rebatch({0, 3}, false), "[][0 1 2][][3 4 5][][6 7]");
  EXPECT_EQ(rebatch({0, 3}, true), "[][0 1 2][][3 4 5][]");
  EXPECT_EQ(rebatch({5}, false), "[0 1 2 3 4][5 6 7]");
  EXPECT_EQ(rebatch({0}, false), "[][][][][][][][][][][][][][][][][][][][]...");
  EXPECT_EQ(rebatch({INT64_MAX}, false), "[0 1 2 3 4 5 6 7]");
  for (Numbers bad : {Numbers{}, Numbers{-1}, Numbers{2, INT64_MIN}})
    EXPECT_EQ(run("RebatchDatasetV2", spec(), {batches(8), longs(bad), flag(false)}).status().code(),
              absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(show(one("RebatchDatasetV2", spec(), {range(0, 1), long0(3), flag(false)})), "INVALID_ARGUMENT");
  auto split = [&](int64_t pieces) { return show(one("RebatchDataset", spec(), {batches(7), long0(pieces)})); };
  EXPECT_EQ(split(2), "[0 1][2 3][4 5][6]");
  EXPECT_EQ(split(3), "[0 1][2 3][][4][5][6]");
  EXPECT_EQ(split(5), "[0][1][2][3][][4][5][6][][]");
  EXPECT_EQ(run("RebatchDataset", spec(), {batches(7), long0(0)}).status().code(), absl::StatusCode::kInvalidArgument);

  auto slide = [&](int64_t size, int64_t shift, int64_t stride, bool drop) {
    return one("SlidingWindowDataset", spec({{"drop_remainder", drop}}), {range(0, 10), long0(size), long0(shift), long0(stride)});
  };
  EXPECT_EQ(show(slide(3, 2, 2, true)), "[0 2 4][2 4 6][4 6 8]");
  EXPECT_EQ(show(slide(3, 2, 2, false)), "[0 2 4][2 4 6][4 6 8][6 8][8]");
  EXPECT_EQ(show(slide(2, 4, 1, true)), "[0 1][4 5][8 9]");
  EXPECT_EQ(show(slide(20, 1, 1, true)), "");
  EXPECT_EQ(cardinality(slide(2, 4, 1, true)), 2);
  EXPECT_EQ(cardinality(slide(2, 4, 1, false)), 3);
  for (int64_t bad : {INT64_C(0), INT64_C(-1), INT64_MIN})
    EXPECT_EQ(run("SlidingWindowDataset", spec({{"drop_remainder", true}}), {range(0, 9), long0(bad), long0(1), long0(1)})
                  .status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(Data, randomNumbersAndSamplesAsTensorFlowDoes) {
  AttrMap seeded = spec();
  Tensor random = one("RandomDataset", seeded, {long0(3), long0(9)});
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(drain(random, 4), (Numbers{1063763762, 856336636, 1923631453, 3459253757}));
  EXPECT_EQ(cardinality(random), -1);
  EXPECT_EQ(drain(one("RandomDataset", spec(), {long0(0), long0(5)}), 3), (Numbers{3421934604, 2855075034, 2078477125}));
  for (bool dummy : {false, true}) {
    Tensor seeds = dummy ? one("DummySeedGenerator", {}, {})
                         : one("AnonymousSeedGenerator", {}, {long0(3), long0(9), Tensor::scalar<bool>(DType::Bool, true)});
    Tensor v2 = one("RandomDatasetV2", spec({{"rerandomize_each_iteration", true}}), {long0(3), long0(9), seeds});
    EXPECT_EQ(drain(v2, 3), (Numbers{1831219627, 835473422, 1819558452}));
    EXPECT_EQ(drain(v2, 3), (Numbers{3991659936, 2353510124, 1312565447}));
  }
  auto sample = [&](float rate) {
    return drain(one("SamplingDataset", spec(), {range(0, 40), float0(rate), long0(3), long0(9)}));
  };
  EXPECT_EQ(sample(0.4f), (Numbers{1, 2, 3, 4, 7, 12, 15, 18, 22, 23, 30, 34, 35}));
  EXPECT_TRUE(sample(0.0f).empty());
  EXPECT_EQ(sample(2.0f).size(), 40u);
}

TEST_F(Data, directsUniqueAndLists) {
  auto slices = [&](Numbers v) {
    return one("TensorSliceDataset", {{"Toutput_types", Types{DType::Int64}}, {"output_shapes", Shapes(1)}}, {longs(v)});
  };
  auto directed = [&](Tensor selector, bool stop) {
    return one("DirectedInterleaveDataset", spec({{"N", int64_t(2)}, {"stop_on_empty_dataset", stop}}),
               {selector, range(10, 14), range(20, 23)});
  };
  EXPECT_EQ(drain(directed(slices({0, 1, 1, 0, 1, 1, 0, 0, 0}), false)), (Numbers{10, 20, 21, 11, 22, 12, 13}));
  EXPECT_EQ(drain(directed(slices({0, 1, 1, 0, 1, 1, 0, 0, 0}), true)), (Numbers{10, 20, 21, 11, 22}));
  // an endless selector ends with the last of the others
  EXPECT_EQ(drain(directed(one("RepeatDataset", spec(), {slices({0, 1}), long0(-1)}), false)),
            (Numbers{10, 20, 11, 21, 12, 22, 13}));
  for (int64_t bad : {INT64_C(2), INT64_C(-1), INT64_MIN}) {
    absl::Status why;
    EXPECT_EQ(drain(directed(slices({0, bad}), false), 10, &why), (Numbers{10}));
    EXPECT_EQ(why.code(), absl::StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(drain(one("UniqueDataset", spec(), {slices({1, 2, 1, 3, 2})})), (Numbers{1, 2, 3}));
  Tensor floats2 = one("TensorSliceDataset", {{"Toutput_types", Types{DType::Float32}}, {"output_shapes", Shapes(1)}}, {floats({1})});
  EXPECT_EQ(run("UniqueDataset", spec({}, {DType::Float32}), {floats2}).status().code(), absl::StatusCode::kInvalidArgument);
  for (const char *op : {"ListDataset", "WindowOp"}) {
    Tensor list = one(op, spec({{"Tinput_types", Types(3, DType::Int64)}, {"Tinputs", Types(3, DType::Int64)}}),
                      {long0(4), long0(5), long0(6)});
    EXPECT_EQ(drain(list), (Numbers{4, 5, 6})) << op;
    EXPECT_EQ(cardinality(list), 3);
    auto wrong = run(op, spec({{"Tinput_types", Types{DType::String}}, {"Tinputs", Types{DType::String}}}), {string0("a")});
    EXPECT_EQ(wrong.status().code(), absl::StatusCode::kInvalidArgument) << op;
  }
  auto at = [&](Tensor dataset, int64_t i) { return run("GetElementAtIndex", spec(), {dataset, long0(i)}); };
  EXPECT_EQ(*(*at(range(5, 9), 3))[0].data<int64_t>(), 8);
  EXPECT_EQ(*(*at(one("UniqueDataset", spec(), {range(5, 9)}), 3))[0].data<int64_t>(), 8);
  for (int64_t bad : {INT64_C(4), INT64_C(-1), INT64_MIN, INT64_MAX})
    EXPECT_EQ(at(range(5, 9), bad).status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(drain(one("SleepDataset", spec(), {range(0, 3), long0(1)})), (Numbers{0, 1, 2}));
  EXPECT_EQ(run("SleepDataset", spec(), {range(0, 3), long0(-1)}).status().code(), absl::StatusCode::kInvalidArgument);

  auto sparse = [&](Numbers indices, int64_t rank, Numbers values, Numbers dims) {
    int64_t n = static_cast<int64_t>(indices.size()) / rank;
    return run("SparseTensorSliceDataset", {{"Tvalues", DType::Int64}},
               {longs(indices).reshaped({n, rank}), longs(values), longs(dims)});
  };
  auto rows = sparse({0, 1, 0, 2, 2, 0}, 2, {1, 2, 3}, {4, 3});
  ASSERT_TRUE(rows.ok()) << rows.status();
  Types types(3, DType::Int64);
  Tensor iterator = iterate((*rows)[0], types);
  std::string text;
  for (int i = 0; i < 5; ++i) {
    auto r = run("IteratorGetNext", spec({}, types), {iterator});
    if (!r.ok())
      break;
    EXPECT_EQ(elements<int64_t>((*r)[2]), (Numbers{3}));
    for (int part : {0, 1}) {
      for (int64_t v : elements<int64_t>((*r)[part]))
        text += std::to_string(v) + " ";
      text += part ? ";" : ":";
    }
  }
  EXPECT_EQ(text, "1 2 :1 2 ;:;0 :3 ;:;");
  EXPECT_EQ(sparse({2, 1, 0, 2}, 2, {1, 2}, {4, 3}).status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(sparse({0, 1}, 2, {1, 2}, {4, 3}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(sparse({0, 1}, 2, {1}, {4}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(sparse({0, 1}, 2, {1}, {-4, 3}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(sparse({0, 1, 7, 1}, 2, {1, 2}, {INT64_MAX, 3}).ok());
}

TEST_F(Data, keptElementsStayWithinMemory) {
  const int64_t most = INT64_C(1) << 31;
  Tensor endless = range(0, INT64_MAX), drop = Tensor::scalar<bool>(DType::Bool, false);
  functions->all["zero"] = [](std::vector<Tensor>) { return std::vector<Tensor>{long0(0)}; };
  functions->all["most"] = [=](std::vector<Tensor>) { return std::vector<Tensor>{long0(most)}; };
  AttrMap grouped = fn("key_func", "zero", fn("window_size_func", "most", fn("reduce_func", "most")));
  for (const char *list : {"Tkey_func_other_arguments", "Treduce_func_other_arguments", "Twindow_size_func_other_arguments"})
    grouped[list] = Types();
  Tensor ones = one("BatchDatasetV2", spec(), {endless, long0(1), drop});
  std::vector<Tensor> hungry = {one("BatchDatasetV2", spec(), {endless, long0(most), drop}),
                                one("RebatchDatasetV2", spec(), {ones, long0(most), drop}),
                                one("GroupByWindowDataset", grouped, {endless}),
                                one("SlidingWindowDataset", spec({{"drop_remainder", true}}),
                                    {endless, long0(most), long0(1), long0(1)}),
                                one("ShuffleDataset", spec({{"reshuffle_each_iteration", true}}),
                                    {endless, long0(most), long0(1), long0(1)})};
  // what is ignored is not that memory has ended: the next try would not end either
  hungry.push_back(one("IgnoreErrorsDataset", spec(), {hungry.front()}));
  int64_t budget = memoryBudget(), before = memoryInUse();
  setMemoryBudget(before + (1 << 18));
  for (const Tensor &dataset : hungry) {
    absl::Status why;
    EXPECT_TRUE(drain(dataset, 10, &why).empty());
    EXPECT_EQ(why.code(), absl::StatusCode::kResourceExhausted) << why;
  }
  // a cache gives elements while it keeps them, and says which limit it met
  absl::Status why;
  Tensor cached = one("CacheDataset", spec(), {endless, string0("")});
  EXPECT_LT(drain(cached, 1 << 20, &why).size(), 4096u);
  EXPECT_EQ(why.code(), absl::StatusCode::kResourceExhausted) << why;
  EXPECT_TRUE(absl::StrContains(why.message(), "LATHE_MAX_MEMORY")) << why;
  setMemoryBudget(budget);
}

TEST_F(Data, cachesGiveTheirMemoryBack) {
  const int64_t before = memoryInUse();
  {
    Tensor cached = one("CacheDataset", spec(), {range(0, 4096), string0("")});
    EXPECT_EQ(drain(cached, 5000).size(), 4096u);
    EXPECT_GT(memoryInUse(), before);
    EXPECT_EQ(drain(cached, 5000).size(), 4096u);
  }
  resources = std::make_shared<ResourceManager>(); // with the iterators, whose threads end when they do
  for (int wait = 0; memoryInUse() > before && wait < 1000; ++wait)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_LE(memoryInUse(), before); // a thread of the test before may go meanwhile
}

TEST_F(Data, compressesAndParses) {
  Types types = {DType::Int64, DType::String};
  Tensor packed = one("CompressElement", {{"input_types", types}}, {long0(7), string0("a")});
  auto unpack = [&](Tensor t, Types to) { return run("UncompressElement", spec({}, to), {t}); };
  auto both = unpack(packed, types);
  ASSERT_TRUE(both.ok()) << both.status();
  EXPECT_EQ(*(*both)[0].data<int64_t>(), 7);
  EXPECT_EQ((*both)[1].strings()[0], "a");
  EXPECT_EQ(unpack(packed, {DType::Int64, DType::Int64}).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(unpack(packed, {DType::Int64}).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(unpack(range(0, 1), types).status().code(), absl::StatusCode::kInvalidArgument);

  using Keys = std::vector<std::string>;
  auto parse = [&](Tensor input, Keys sparse, Keys dense) {
    AttrMap attrs = spec({{"sparse_keys", sparse}, {"dense_keys", dense}, {"sparse_types", Types{DType::String}},
                          {"Tdense", Types{DType::Int64}}, {"dense_shapes", Shapes{std::vector<int64_t>{}}}},
                         {DType::Int64, DType::Variant});
    return run("ParseExampleDatasetV2", attrs, {input, long0(1), longs({})});
  };
  Tensor none = one("TensorDataset", {{"Toutput_types", Types{DType::String}}, {"output_shapes", Shapes(1)}}, {strings({"nonsense"})});
  EXPECT_EQ(parse(none, {"a"}, {"a"}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(parse(none, {"a", "b"}, {"c"}).status().code(), absl::StatusCode::kInvalidArgument);
  for (const Tensor &input : {none, range(0, 3)}) {
    auto dataset = parse(input, {"b"}, {"a"});
    ASSERT_TRUE(dataset.ok()) << dataset.status();
    Tensor iterator = iterate((*dataset)[0], {DType::Int64, DType::Variant});
    EXPECT_EQ(run("IteratorGetNext", spec({}, {DType::Int64, DType::Variant}), {iterator}).status().code(),
              absl::StatusCode::kInvalidArgument);
  }

  auto sparse = [&](int64_t size, Numbers shape) {
    auto dataset = run("DenseToSparseBatchDataset", spec({}, {DType::Variant}), {range(0, 3), long0(size), longs(shape)});
    if (!dataset.ok())
      return dataset.status();
    return run("IteratorGetNext", spec({}, {DType::Variant}), {iterate((*dataset)[0], {DType::Variant})}).status();
  };
  EXPECT_TRUE(sparse(2, {}).ok());
  EXPECT_EQ(sparse(0, {}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(sparse(2, {3}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(sparse(2, {-2}).code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(Data, passesOn) {
  for (const char *op : {"AssertNextDataset", "AssertPrevDataset", "LatencyStatsDataset", "BytesProducedStatsDataset", "RewriteDataset"}) {
    EXPECT_EQ(drain(one(op, spec(), {range(0, 3), string0("Map")})), (Numbers{0, 1, 2})) << op;
    EXPECT_EQ(run(op, spec(), {long0(0), string0("Map")}).status().code(), absl::StatusCode::kInvalidArgument) << op;
  }
}

TEST_F(Data, cacheAndPrefetch) {
  std::atomic<int> calls{0};
  functions->all["count"] = [&](std::vector<Tensor> args) -> absl::StatusOr<std::vector<Tensor>> {
    ++calls;
    return args;
  };
  Tensor cached = one("CacheDataset", spec(), {one("MapDataset", fn("f", "count"), {range(0, 4)}), string0("")});
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(drain(cached), (Numbers{0, 1, 2, 3}));
  EXPECT_EQ(calls, 4);
  for (int64_t size : {-1, 0, 1, 100})
    EXPECT_EQ(drain(one("PrefetchDataset", spec(), {range(0, 4), long0(size)})), (Numbers{0, 1, 2, 3}));
  // an iterator dropped while its thread is filling
  Tensor endless = one("PrefetchDataset", spec(), {one("RepeatDataset", spec(), {range(0, 4), long0(-1)}), long0(3)});
  EXPECT_EQ(drain(endless, 5), (Numbers{0, 1, 2, 3, 0}));
}

TEST_F(Data, files) {
  std::string text = testing::TempDir() + "lathe-data.txt", records = testing::TempDir() + "lathe-data.rec";
  ASSERT_TRUE(writeFile(text, "a\r\r\nb\rc\r\n\r\nd\r").ok());
  auto lines = [&](Tensor dataset) {
    Tensor iterator = iterate(dataset, {DType::String});
    std::vector<std::string> all;
    for (;;) {
      auto r = run("IteratorGetNext", spec({}, {DType::String}), {iterator});
      if (!r.ok()) {
        if (!absl::IsOutOfRange(r.status()))
          all.push_back(absl::StatusCodeToString(r.status().code()));
        return all;
      }
      all.push_back((*r)[0].strings()[0]);
    }
  };
  Tensor names = strings({text, text});
  Tensor dataset = one("TextLineDataset", {}, {names, string0(""), long0(0)});
  EXPECT_EQ(lines(dataset), (std::vector<std::string>{"a", "bc", "", "d", "a", "bc", "", "d"}));
  ASSERT_TRUE(run("DatasetToTFRecord", {}, {dataset, string0(records), string0("GZIP")}).ok());
  EXPECT_EQ(lines(one("TFRecordDataset", {}, {string0(records), string0("GZIP"), long0(0)})), lines(dataset));
  EXPECT_EQ(lines(one("TFRecordDataset", {}, {string0(records + "-none"), string0(""), long0(0)})),
            (std::vector<std::string>{"NOT_FOUND"}));
  ASSERT_TRUE(writeFile(text, "HHabcdefFF").ok());
  EXPECT_EQ(lines(one("FixedLengthRecordDataset", {}, {string0(text), long0(2), long0(3), long0(2), long0(0)})),
            (std::vector<std::string>{"abc", "def"}));
  EXPECT_EQ(lines(one("FixedLengthRecordDataset", {}, {string0(text), long0(1), long0(3), long0(2), long0(0)})),
            (std::vector<std::string>{"Hab", "cde", "INVALID_ARGUMENT"}));
}

TEST_F(Data, iteratorsByNameAndOptional) {
  KernelTest node("IteratorV2", spec({{"shared_name", std::string("it")}, {"container", std::string()}}), resources);
  Tensor iterator = (*node.run({}))[0];
  EXPECT_EQ(run("IteratorGetNext", spec(), {iterator}).status().code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(run("MakeIterator", {}, {range(0, 2), iterator}).ok());
  Tensor name = one("IteratorToStringHandle", {}, {iterator});
  Tensor same = one("IteratorFromStringHandleV2", {}, {name});
  EXPECT_EQ(*one("IteratorGetNext", spec(), {same}).data<int64_t>(), 0);
  Tensor some = one("IteratorGetNextAsOptional", spec(), {iterator});
  EXPECT_TRUE(*one("OptionalHasValue", {}, {some}).data<bool>());
  Tensor none = one("IteratorGetNextAsOptional", spec(), {iterator});
  EXPECT_FALSE(*one("OptionalHasValue", {}, {none}).data<bool>());
  ASSERT_TRUE(run("MakeIterator", {}, {range(5, 6), iterator}).ok());
  EXPECT_EQ(*one("IteratorGetNext", spec(), {iterator}).data<int64_t>(), 5);
  EXPECT_EQ(run("IteratorFromStringHandle", {}, {string0("nonsense")}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(*one("DatasetToSingleElement", spec(), {range(5, 6)}).data<int64_t>(), 5);
  EXPECT_EQ(run("DatasetToSingleElement", spec(), {range(5, 7)}).status().code(), absl::StatusCode::kInvalidArgument);
  functions->all["factory"] = [this](std::vector<Tensor>) -> absl::StatusOr<std::vector<Tensor>> {
    return std::vector<Tensor>{range(3, 4)};
  };
  AttrMap attrs = fn("dataset_factory", "factory");
  attrs.erase("Targuments");
  attrs["shared_name"] = std::string("once");
  Tensor once = one("OneShotIterator", attrs, {});
  EXPECT_EQ(*one("IteratorGetNext", spec(), {once}).data<int64_t>(), 3);
  EXPECT_EQ(run("IteratorGetNext", spec(), {one("OneShotIterator", attrs, {})}).status().code(), absl::StatusCode::kOutOfRange);
}

TEST_F(Data, savesAndLoads) {
  std::string folder = testing::TempDir() + "/lathe-data-saved";
  std::filesystem::remove_all(folder);
  functions->all["odd"] = [](std::vector<Tensor> args) -> absl::StatusOr<std::vector<Tensor>> {
    return std::vector<Tensor>{long0(*args[0].data<int64_t>() % 2)};
  };
  functions->all["same"] = [](std::vector<Tensor> args) -> absl::StatusOr<std::vector<Tensor>> { return args; };
  functions->all["one after the other"] = [this](std::vector<Tensor> args) -> absl::StatusOr<std::vector<Tensor>> {
    return std::vector<Tensor>{one("FlatMapDataset", fn("f", "same"), {args[0]})};
  };
  auto attrs = [&](AttrMap attrs) {
    attrs["compression"] = std::string("GZIP");
    return attrs;
  };
  auto load = [&] {
    AttrMap load = attrs(fn("reader_func", "one after the other"));
    load["Treader_func_args"] = Types();
    return run("LoadDataset", load, {string0(folder)});
  };
  EXPECT_EQ(load().status().code(), absl::StatusCode::kNotFound);
  AttrMap save = attrs(fn("shard_func", "odd"));
  save["Tshard_func_args"] = Types();
  ASSERT_TRUE(run("SaveDataset", save, {range(0, 5), string0(folder)}).ok());
  EXPECT_EQ(cardinality((*load())[0]), 5);
  EXPECT_EQ(drain((*load())[0]), (Numbers{0, 2, 4, 1, 3}));
  // the other form writes what passes
  save["use_shard_func"] = false;
  EXPECT_EQ(drain(one("SaveDatasetV2", save, {range(7, 9), string0(folder)})), (Numbers{7, 8}));
  EXPECT_EQ(drain((*load())[0]), (Numbers{7, 8}));
  // a shard that would be a file too many, and elements that no file holds
  functions->all["odd"] = [](std::vector<Tensor>) -> absl::StatusOr<std::vector<Tensor>> { return std::vector<Tensor>{long0(-1)}; };
  save["use_shard_func"] = true;
  EXPECT_EQ(run("SaveDataset", save, {range(0, 5), string0(folder)}).status().code(), absl::StatusCode::kInvalidArgument);
  // metadata that leads out of the folder
  for (const char *name : {"..", ".", "../x", "/tmp", ""}) {
    std::string bytes(1, '\x12');
    bytes += static_cast<char>(strlen(name));
    bytes += name;
    ASSERT_TRUE(writeFile(folder + "/snapshot.metadata", bytes).ok());
    EXPECT_EQ(load().status().code(), absl::StatusCode::kDataLoss) << name;
  }
  AttrMap snapshot = spec({{"mode", std::string("read")}});
  EXPECT_EQ(run("SnapshotDataset", snapshot, {range(0, 2), string0(folder)}).status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(drain(one("SnapshotDataset", spec(), {range(0, 2), string0(folder)})), (Numbers{0, 1}));
}

TEST_F(Data, severalDevicesTakeTurns) {
  AttrMap attrs = spec({{"devices", std::vector<std::string>{"/cpu:0", "/cpu:1"}}});
  Tensor handle = one("AnonymousMultiDeviceIteratorV3", attrs, {});
  auto next = [&](int32_t shard, int64_t incarnation) {
    return run("MultiDeviceIteratorGetNextFromShard", spec(), {handle, int0(shard), long0(incarnation)});
  };
  EXPECT_EQ(next(0, 0).status().code(), absl::StatusCode::kFailedPrecondition);
  int64_t incarnation = *one("MultiDeviceIteratorInit", {}, {range(0, 5), handle, long0(1)}).data<int64_t>();
  EXPECT_EQ(next(0, incarnation + 1).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(next(2, incarnation).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(next(-1, incarnation).status().code(), absl::StatusCode::kInvalidArgument);
  for (int64_t expected : {1, 3})
    EXPECT_EQ(*(*next(1, incarnation))[0].data<int64_t>(), expected);
  EXPECT_EQ(next(1, incarnation).status().code(), absl::StatusCode::kOutOfRange);
  for (int64_t expected : {0, 2, 4})
    EXPECT_EQ(*(*next(0, incarnation))[0].data<int64_t>(), expected);
  EXPECT_EQ(next(0, incarnation).status().code(), absl::StatusCode::kOutOfRange);
  Tensor name = one("MultiDeviceIteratorToStringHandle", {}, {handle});
  EXPECT_TRUE(run("MultiDeviceIteratorFromStringHandle", spec(), {name}).ok());
  EXPECT_EQ(run("MultiDeviceIteratorFromStringHandle", {}, {string0("nonsense")}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(run("MultiDeviceIteratorToStringHandle", {}, {iterate(range(0, 1))}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(Data, mapsRowsByAFunction) {
  functions->all["square"] = [](std::vector<Tensor> args) -> absl::StatusOr<std::vector<Tensor>> {
    int64_t v = *args[0].data<int64_t>();
    if (v == 13)
      return absl::InvalidArgumentError("thirteen");
    return std::vector<Tensor>{longs({v * v, v + *args[1].data<int64_t>()})};
  };
  AttrMap attrs = fn("f", "square");
  attrs["Targuments"] = Types{DType::Int64};
  attrs["Tcaptured"] = Types{DType::Int64};
  attrs["output_shapes"] = Shapes{PartialShape(std::vector<int64_t>{2})};
  Numbers rows(100), expected;
  for (int64_t i = 0; i < 100; ++i) {
    rows[static_cast<size_t>(i)] = i + 20;
    expected.insert(expected.end(), {(i + 20) * (i + 20), i + 25});
  }
  Tensor made = one("MapDefun", attrs, {longs(rows), long0(5)});
  EXPECT_EQ(made.dims(), (Numbers{100, 2}));
  EXPECT_EQ(elements<int64_t>(made), expected);
  EXPECT_EQ(one("MapDefun", attrs, {longs({}), long0(5)}).dims(), (Numbers{0, 2}));
  EXPECT_EQ(run("MapDefun", attrs, {longs({1, 13, 4}), long0(5)}).status().message(), "thirteen");
  EXPECT_EQ(run("MapDefun", attrs, {long0(1), long0(5)}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(run("MapDefun", attrs, {Tensor::allocate(DType::Int64, {int64_t(1) << 40, 0}), long0(5)}).status().code(),
            absl::StatusCode::kResourceExhausted);
  attrs["Targuments"] = Types{DType::Int64, DType::Int64};
  EXPECT_EQ(run("MapDefun", attrs, {longs({1}), longs({1, 2}), long0(5)}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(Data, shardsOnlyWhatItCan) {
  auto shard = [&](int64_t policy, int64_t workers, int64_t index) {
    return run("AutoShardDataset", spec({{"auto_shard_policy", policy}}), {range(0, 7), long0(workers), long0(index)});
  };
  EXPECT_EQ(drain((*shard(2, 3, 1))[0]), (Numbers{1, 4}));
  EXPECT_EQ(cardinality((*shard(2, 3, 0))[0]), 3);
  EXPECT_EQ(drain((*shard(-1, 3, 1))[0]).size(), 7u);
  EXPECT_EQ(drain((*shard(0, 1, 0))[0]).size(), 7u);
  EXPECT_EQ(shard(0, 3, 1).status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(shard(2, 3, 3).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(shard(2, 0, 0).status().code(), absl::StatusCode::kInvalidArgument);
}

} // namespace
} // namespace lathe::rt
