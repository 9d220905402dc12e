#include "EvalTest.h"

using namespace lathe;
using namespace lathe::hlo;
using namespace mlir;

namespace {

struct EvalOps : EvalTest {};

TEST_F(EvalOps, ShapeOps) {
  auto r = run(R"(func.func @f(%a: tensor<2x3xi32>) -> (tensor<3x2xi32>, tensor<2x2x3xi32>, tensor<2x3xi32>, tensor<1x2xi32>, tensor<4x7xi32>, tensor<2x6xi32>) {
    %z = hlo.constant dense<9> : tensor<i32>
    %0 = hlo.transpose %a, dims = [1, 0] : (tensor<2x3xi32>) -> tensor<3x2xi32>
    %1 = hlo.broadcast_in_dim %a, dims = [0, 2] : (tensor<2x3xi32>) -> tensor<2x2x3xi32>
    %2 = hlo.reverse %a, dims = [1] : (tensor<2x3xi32>) -> tensor<2x3xi32>
    %3 = "hlo.slice"(%a) <{start_indices = array<i64: 1, 0>, limit_indices = array<i64: 2, 3>, strides = array<i64: 1, 2>}> : (tensor<2x3xi32>) -> tensor<1x2xi32>
    %4 = hlo.pad %a, %z, low = [1, 0], high = [0, 2], interior = [1, 1] : (tensor<2x3xi32>, tensor<i32>) -> tensor<4x7xi32>
    %5 = hlo.concatenate %a, %2 dim = 1 : (tensor<2x3xi32>, tensor<2x3xi32>) -> tensor<2x6xi32>
    return %0, %1, %2, %3, %4, %5 : tensor<3x2xi32>, tensor<2x2x3xi32>, tensor<2x3xi32>, tensor<1x2xi32>, tensor<4x7xi32>, tensor<2x6xi32> })",
               {i32({2, 3}, {1, 2, 3, 4, 5, 6})});
  expect(r[0], {3, 2}, {1, 4, 2, 5, 3, 6});
  expect(r[1], {2, 2, 3}, {1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6});
  expect(r[2], {2, 3}, {3, 2, 1, 6, 5, 4});
  expect(r[3], {1, 2}, {4, 6});
  expect(r[4], {4, 7}, {9, 9, 9, 9, 9, 9, 9, 1, 9, 2, 9, 3, 9, 9, 9, 9, 9, 9, 9, 9, 9, 4, 9, 5, 9, 6, 9, 9});
  expect(r[5], {2, 6}, {1, 2, 3, 3, 2, 1, 4, 5, 6, 6, 5, 4});
}

TEST_F(EvalOps, NegativePadding) {
  auto r = run(R"(func.func @f(%a: tensor<5xi32>) -> tensor<4xi32> {
    %z = hlo.constant dense<0> : tensor<i32>
    %0 = hlo.pad %a, %z, low = [-3], high = [-2], interior = [1] : (tensor<5xi32>, tensor<i32>) -> tensor<4xi32>
    return %0 : tensor<4xi32> })", {i32({5}, {1, 2, 3, 4, 5})});
  expect(r[0], {4}, {0, 3, 0, 4});
}

TEST_F(EvalOps, SymbolicSizes) {
  auto r = run(R"(func.func @f(%a: tensor<?x2xf32, affine_map<()[s0] -> (s0, 2)>>) -> (tensor<?xf32, affine_map<()[s0] -> (s0 * 2)>>, tensor<2xi64>, tensor<?xi64, affine_map<()[s0] -> (s0 + 1)>>, tensor<?x1xf32, affine_map<()[s0] -> (s0 ceildiv 2, 1)>>) {
    %0 = hlo.reshape %a : (tensor<?x2xf32, affine_map<()[s0] -> (s0, 2)>>) -> tensor<?xf32, affine_map<()[s0] -> (s0 * 2)>>
    %1 = hlo.size affine_map<()[s0] -> (s0, s0 * 3)> : tensor<2xi64>
    %2 = hlo.iota dim = 0 : tensor<?xi64, affine_map<()[s0] -> (s0 + 1)>>
    %3 = "hlo.slice"(%a) <{start_indices = array<i64: 0, 1>, limit_indices = array<i64: -9223372036854775808, 2>, strides = array<i64: 2, 1>}> : (tensor<?x2xf32, affine_map<()[s0] -> (s0, 2)>>) -> tensor<?x1xf32, affine_map<()[s0] -> (s0 ceildiv 2, 1)>>
    return %0, %1, %2, %3 : tensor<?xf32, affine_map<()[s0] -> (s0 * 2)>>, tensor<2xi64>, tensor<?xi64, affine_map<()[s0] -> (s0 + 1)>>, tensor<?x1xf32, affine_map<()[s0] -> (s0 ceildiv 2, 1)>> })",
               {f32({3, 2}, {1, 2, 3, 4, 5, 6})});
  expect(r[0], {6}, {1, 2, 3, 4, 5, 6});
  expect(r[1], {2}, {3, 9});
  expect(r[2], {4}, {0, 1, 2, 3});
  expect(r[3], {2, 1}, {2, 6});
}

// The example of StableHLO's specification.
TEST_F(EvalOps, Gather) {
  std::vector<int64_t> operand(24);
  for (int64_t i = 0; i < 24; ++i)
    operand[i] = i + 1;
  auto r = run(R"(func.func @f(%a: tensor<3x4x2xi64>, %i: tensor<2x3x2xi64>) -> tensor<2x3x2x2xi64> {
    %0 = "hlo.gather"(%a, %i) <{dimension_numbers = #hlo.gather<offset_dims = [2, 3], collapsed_slice_dims = [0], start_index_map = [1, 0], index_vector_dim = 2>, slice_sizes = array<i64: 1, 2, 2>}> : (tensor<3x4x2xi64>, tensor<2x3x2xi64>) -> tensor<2x3x2x2xi64>
    return %0 : tensor<2x3x2x2xi64> })",
               {i64({3, 4, 2}, operand), i64({2, 3, 2}, {0, 0, 1, 0, 2, 1, 0, 1, 1, 1, 0, 9})});
  expect(r[0], {2, 3, 2, 2}, {1, 2, 3, 4, 3, 4, 5, 6, 13, 14, 15, 16, 9, 10, 11, 12, 11, 12, 13, 14, 17, 18, 19, 20});
}

TEST_F(EvalOps, ScatterSkipsOutside) {
  auto r = run(R"(func.func @f(%a: tensor<4x2xf32>, %i: tensor<3x1xi32>, %u: tensor<3x2xf32>) -> tensor<4x2xf32> {
    %0 = "hlo.scatter"(%a, %i, %u) <{scatter_dimension_numbers = #hlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
      ^bb0(%x: tensor<f32>, %y: tensor<f32>):
        %s = hlo.add %x, %y : tensor<f32>
        hlo.return %s : tensor<f32>
    }) : (tensor<4x2xf32>, tensor<3x1xi32>, tensor<3x2xf32>) -> tensor<4x2xf32>
    return %0 : tensor<4x2xf32> })",
               {f32({4, 2}, {0, 1, 2, 3, 4, 5, 6, 7}), i32({3, 1}, {1, 4, 1}), f32({3, 2}, {10, 20, 30, 40, 50, 60})});
  expect(r[0], {4, 2}, {0, 1, 62, 83, 4, 5, 6, 7});
}

TEST_F(EvalOps, ReduceWithPairs) {
  // argmax: values and indices together
  auto r = run(R"(func.func @f(%a: tensor<2x3xf32>) -> (tensor<2xf32>, tensor<2xi32>, tensor<3xf32>) {
    %i = hlo.iota dim = 1 : tensor<2x3xi32>
    %lo = hlo.constant dense<0xFF800000> : tensor<f32>
    %zero = hlo.constant dense<0> : tensor<i32>
    %zf = hlo.constant dense<0.0> : tensor<f32>
    %r:2 = "hlo.reduce"(%a, %i, %lo, %zero) <{dimensions = array<i64: 1>}> ({
      ^bb0(%x: tensor<f32>, %xi: tensor<i32>, %y: tensor<f32>, %yi: tensor<i32>):
        %c = hlo.compare GE, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
        %v = hlo.select %c, %x, %y : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
        %w = hlo.select %c, %xi, %yi : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
        hlo.return %v, %w : tensor<f32>, tensor<i32>
    }) : (tensor<2x3xf32>, tensor<2x3xi32>, tensor<f32>, tensor<i32>) -> (tensor<2xf32>, tensor<2xi32>)
    %s = "hlo.reduce"(%a, %zf) <{dimensions = array<i64: 0>}> ({
      ^bb0(%x: tensor<f32>, %y: tensor<f32>):
        %t = hlo.add %x, %y : tensor<f32>
        hlo.return %t : tensor<f32>
    }) : (tensor<2x3xf32>, tensor<f32>) -> tensor<3xf32>
    return %r#0, %r#1, %s : tensor<2xf32>, tensor<2xi32>, tensor<3xf32> })", {f32({2, 3}, {1, 7, 3, 9, 2, 9})});
  expect(r[0], {2}, {7, 9});
  expect(r[1], {2}, {1, 0});
  expect(r[2], {3}, {10, 9, 12});
}

// The example of StableHLO's specification, and a cumulative sum.
TEST_F(EvalOps, ReduceWindow) {
  auto r = run(R"(func.func @f(%a: tensor<3x2xi64>, %b: tensor<2x4xf32>) -> (tensor<2x2xi64>, tensor<2x4xf32>) {
    %z = hlo.constant dense<0> : tensor<i64>
    %zf = hlo.constant dense<0.0> : tensor<f32>
    %0 = "hlo.reduce_window"(%a, %z) <{window_dimensions = array<i64: 2, 1>, window_strides = array<i64: 4, 1>, base_dilations = array<i64: 2, 1>, window_dilations = array<i64: 3, 1>, padding = dense<[[2, 1], [0, 0]]> : tensor<2x2xi64>}> ({
      ^bb0(%x: tensor<i64>, %y: tensor<i64>):
        %s = hlo.add %x, %y : tensor<i64>
        hlo.return %s : tensor<i64>
    }) : (tensor<3x2xi64>, tensor<i64>) -> tensor<2x2xi64>
    %1 = "hlo.reduce_window"(%b, %zf) <{window_dimensions = array<i64: 1, 4>, padding = dense<[[0, 0], [3, 0]]> : tensor<2x2xi64>}> ({
      ^bb0(%x: tensor<f32>, %y: tensor<f32>):
        %s = hlo.add %x, %y : tensor<f32>
        hlo.return %s : tensor<f32>
    }) : (tensor<2x4xf32>, tensor<f32>) -> tensor<2x4xf32>
    return %0, %1 : tensor<2x2xi64>, tensor<2x4xf32> })",
               {i64({3, 2}, {1, 2, 3, 4, 5, 6}), f32({2, 4}, {1, 2, 3, 4, 10, 20, 30, 40})});
  expect(r[0], {2, 2}, {0, 0, 3, 4});
  expect(r[1], {2, 4}, {1, 3, 6, 10, 10, 30, 60, 100});
}

TEST_F(EvalOps, SelectAndScatter) {
  auto r = run(R"(func.func @f(%a: tensor<4x2xi64>, %s: tensor<2x2xi64>) -> tensor<4x2xi64> {
    %z = hlo.constant dense<0> : tensor<i64>
    %0 = "hlo.select_and_scatter"(%a, %s, %z) <{window_dimensions = array<i64: 3, 1>, window_strides = array<i64: 2, 1>, padding = dense<[[0, 1], [0, 0]]> : tensor<2x2xi64>}> ({
      ^bb0(%x: tensor<i64>, %y: tensor<i64>):
        %c = hlo.compare GE, %x, %y : (tensor<i64>, tensor<i64>) -> tensor<i1>
        hlo.return %c : tensor<i1>
    }, {
      ^bb0(%x: tensor<i64>, %y: tensor<i64>):
        %t = hlo.add %x, %y : tensor<i64>
        hlo.return %t : tensor<i64>
    }) : (tensor<4x2xi64>, tensor<2x2xi64>, tensor<i64>) -> tensor<4x2xi64>
    return %0 : tensor<4x2xi64> })",
               {i64({4, 2}, {1, 5, 2, 5, 3, 6, 4, 4}), i64({2, 2}, {5, 6, 7, 8})});
  expect(r[0], {4, 2}, {0, 0, 0, 0, 5, 14, 7, 0});
}

TEST_F(EvalOps, SortIsStable) {
  auto r = run(R"(func.func @f(%a: tensor<5xi32>, %i: tensor<5xi32>) -> (tensor<5xi32>, tensor<5xi32>) {
    %r:2 = "hlo.sort"(%a, %i) <{dimension = 0 : i64, is_stable = true}> ({
      ^bb0(%x: tensor<i32>, %y: tensor<i32>, %p: tensor<i32>, %q: tensor<i32>):
        %c = hlo.compare LT, %x, %y : (tensor<i32>, tensor<i32>) -> tensor<i1>
        hlo.return %c : tensor<i1>
    }) : (tensor<5xi32>, tensor<5xi32>) -> (tensor<5xi32>, tensor<5xi32>)
    return %r#0, %r#1 : tensor<5xi32>, tensor<5xi32> })", {i32({5}, {3, 1, 2, 1, 3}), i32({5}, {0, 1, 2, 3, 4})});
  expect(r[0], {5}, {1, 1, 2, 3, 3});
  expect(r[1], {5}, {1, 3, 2, 0, 4});
}

TEST_F(EvalOps, TopKUniqueWhere) {
  auto r = run(R"(func.func @f(%a: tensor<2x4xf32>, %b: tensor<6xi32>) -> (tensor<2x2xf32>, tensor<2x2xi32>, tensor<?xi32, affine_map<()[s0] -> (s0)>>, tensor<6xi32>, tensor<?xi32, affine_map<()[s0] -> (s0)>>, tensor<?x1xi64, affine_map<()[s0, s1] -> (s1, 1)>>) {
    %v, %i = hlo.top_k %a, k = 2 : (tensor<2x4xf32>) -> (tensor<2x2xf32>, tensor<2x2xi32>)
    %u:3 = hlo.unique %b {symbol = 0 : i64} : (tensor<6xi32>) -> (tensor<?xi32, affine_map<()[s0] -> (s0)>>, tensor<6xi32>, tensor<?xi32, affine_map<()[s0] -> (s0)>>)
    %w = hlo.where %b {symbol = 1 : i64} : (tensor<6xi32>) -> tensor<?x1xi64, affine_map<()[s0, s1] -> (s1, 1)>>
    return %v, %i, %u#0, %u#1, %u#2, %w : tensor<2x2xf32>, tensor<2x2xi32>, tensor<?xi32, affine_map<()[s0] -> (s0)>>, tensor<6xi32>, tensor<?xi32, affine_map<()[s0] -> (s0)>>, tensor<?x1xi64, affine_map<()[s0, s1] -> (s1, 1)>> })",
               {f32({2, 4}, {1, 4, 4, 2, 0, -1, -2, 7}), i32({6}, {5, 0, 5, 3, 0, 3})});
  expect(r[0], {2, 2}, {4, 4, 7, 0});
  expect(r[1], {2, 2}, {1, 2, 3, 0});
  expect(r[2], {3}, {5, 0, 3});
  expect(r[3], {6}, {0, 1, 0, 2, 1, 2});
  expect(r[4], {3}, {2, 2, 2});
  expect(r[5], {4, 1}, {0, 2, 3, 5});
}

TEST_F(EvalOps, DotGeneral) {
  auto r = run(R"(func.func @f(%a: tensor<2x2x3xi8>, %b: tensor<2x3x2xi8>) -> tensor<2x2x2xi32> {
    %0 = "hlo.dot_general"(%a, %b) <{dot_dimension_numbers = #hlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>}> : (tensor<2x2x3xi8>, tensor<2x3x2xi8>) -> tensor<2x2x2xi32>
    return %0 : tensor<2x2x2xi32> })",
               {make<int64_t>(DType::Int8, {2, 2, 3}, {1, 2, 3, 4, 5, 6, 100, 100, 100, 0, 1, 0}),
                make<int64_t>(DType::Int8, {2, 3, 2}, {1, 0, 0, 1, 1, 1, 100, 1, 100, 1, 100, 1})});
  expect(r[0], {2, 2, 2}, {4, 5, 10, 11, 30000, 300, 100, 1});
}

// Against direct sums, with every feature of the window.
TEST_F(EvalOps, ConvolutionAgainstLoops) {
  auto value = [](int64_t i) { return static_cast<double>((i * 7 + 3) % 11 - 5); };
  std::vector<double> x(2 * 5 * 4 * 4), w(3 * 2 * 2 * 6), expected(2 * 5 * 2 * 6);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = value(i);
  for (size_t i = 0; i < w.size(); ++i)
    w[i] = value(i + 5);
  // padded height (5-1)*2+1+5 = 14, window reach 5, stride 2: 5; width 4-1+2 = 5, reach 4: 2
  auto r = run(R"(func.func @f(%x: tensor<2x5x4x4xf32>, %w: tensor<3x2x2x6xf32>) -> tensor<2x5x2x6xf32> {
    %0 = "hlo.convolution"(%x, %w) <{dimension_numbers = #hlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 2 : i64, batch_group_count = 1 : i64, window_strides = array<i64: 2, 1>, padding = dense<[[2, 3], [-1, 2]]> : tensor<2x2xi64>, lhs_dilation = array<i64: 2, 1>, rhs_dilation = array<i64: 2, 3>, window_reversal = array<i1: true, false>}> : (tensor<2x5x4x4xf32>, tensor<3x2x2x6xf32>) -> tensor<2x5x2x6xf32>
    return %0 : tensor<2x5x2x6xf32> })", {f32({2, 5, 4, 4}, x), f32({3, 2, 2, 6}, w)});
  for (int n = 0; n < 2; ++n)
    for (int oy = 0; oy < 5; ++oy)
      for (int ox = 0; ox < 2; ++ox)
        for (int o = 0; o < 6; ++o)
          for (int ky = 0; ky < 3; ++ky)
            for (int kx = 0; kx < 2; ++kx)
              for (int c = 0; c < 2; ++c) {
                int y = oy * 2 + ky * 2 - 2, xx = ox + kx * 3 + 1;
                if (y < 0 || y % 2 || y / 2 >= 5 || xx < 0 || xx >= 4)
                  continue;
                expected[((n * 5 + oy) * 2 + ox) * 6 + o] +=
                    x[((n * 5 + y / 2) * 4 + xx) * 4 + o / 3 * 2 + c] * w[(((2 - ky) * 2 + kx) * 2 + c) * 6 + o];
              }
  expect(r[0], {2, 5, 2, 6}, expected);
}

TEST_F(EvalOps, DepthwiseConvolution) {
  auto r = run(R"(func.func @f(%x: tensor<1x3x2xf32>, %w: tensor<2x1x2xf32>) -> tensor<1x2x2xf32> {
    %0 = "hlo.convolution"(%x, %w) <{dimension_numbers = #hlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, feature_group_count = 2 : i64, batch_group_count = 1 : i64}> : (tensor<1x3x2xf32>, tensor<2x1x2xf32>) -> tensor<1x2x2xf32>
    return %0 : tensor<1x2x2xf32> })", {f32({1, 3, 2}, {1, 2, 3, 4, 5, 6}), f32({2, 1, 2}, {1, 10, 2, 20})});
  expect(r[0], {1, 2, 2}, {7, 100, 13, 160});
}

TEST_F(EvalOps, WhileIfAndLimits) {
  const char *loop = R"(func.func @f(%n: tensor<i32>) -> (tensor<i32>, tensor<i32>) {
    %zero = hlo.constant dense<0> : tensor<i32>
    %one = hlo.constant dense<1> : tensor<i32>
    %r:2 = "hlo.while"(%zero, %zero) ({
      ^bb0(%i: tensor<i32>, %s: tensor<i32>):
        %c = hlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
        hlo.return %c : tensor<i1>
    }, {
      ^bb0(%i: tensor<i32>, %s: tensor<i32>):
        %t = hlo.add %s, %i : tensor<i32>
        %j = hlo.add %i, %one : tensor<i32>
        hlo.return %j, %t : tensor<i32>, tensor<i32>
    }) : (tensor<i32>, tensor<i32>) -> (tensor<i32>, tensor<i32>)
    %big = hlo.compare GT, %r#1, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %k = "hlo.if"(%big) ({
      hlo.return %n : tensor<i32>
    }, {
      %m = hlo.negate %n : tensor<i32>
      hlo.return %m : tensor<i32>
    }) : (tensor<i1>) -> tensor<i32>
    return %r#1, %k : tensor<i32>, tensor<i32> })";
  auto r = run(loop, {i32({}, {10})});
  expect(r[0], {}, {45});
  expect(r[1], {}, {10});
  EvalOptions limited;
  limited.maxIterations = 5;
  EXPECT_NE(fails(loop, {i32({}, {10})}, limited).find("more than 5 iterations"), std::string::npos);
  EvalOptions small;
  small.maxBytes = 100;
  EXPECT_NE(fails("func.func @f() -> tensor<1000xi32> {\n %0 = hlo.iota dim = 0 : tensor<1000xi32>\n return %0 : tensor<1000xi32> }", {}, small).find("too much memory"), std::string::npos);
}

// A constant that is a result lies in memory of its own, not in the context's.
TEST_F(EvalOps, ResultsOutliveTheContext) {
  Tensor big = Tensor::allocate(DType::Int32, {100}), result;
  for (int i = 0; i < 100; ++i)
    big.data<int32_t>()[i] = i;
  {
    TestContext own;
    OpBuilder b(&own.context);
    Location loc = b.getUnknownLoc();
    auto type = typeOfTensor(&own.context, big);
    OwningOpRef<ModuleOp> module(ModuleOp::create(loc));
    b.setInsertionPointToStart(module->getBody());
    auto f = func::FuncOp::create(b, loc, "f", b.getFunctionType({}, {type}));
    b.setInsertionPointToStart(f.addEntryBlock());
    func::ReturnOp::create(b, loc, makeConstant(b, loc, big));
    auto results = evaluateFunction(f, {});
    ASSERT_TRUE(succeeded(results));
    EXPECT_NE((*results)[0].data(), big.data());
    result = (*results)[0];
  }
  EXPECT_EQ(result.data<int32_t>()[99], 99);
}

TEST_F(EvalOps, ChecksAndSetSize) {
  const char *text = R"(module attributes {hlo.symbols = [{name = "n", bound = 4 : i64, kind = "data"}]} {
  func.func @f(%n: tensor<i32>, %p: tensor<2xi1>) -> tensor<?xi64, affine_map<()[s0] -> (s0)>> {
    hlo.check %p, "must hold" : tensor<2xi1>
    hlo.set_size %n {symbol = 0 : i64} : tensor<i32>
    %0 = hlo.iota dim = 0 : tensor<?xi64, affine_map<()[s0] -> (s0)>>
    return %0 : tensor<?xi64, affine_map<()[s0] -> (s0)>> } })";
  auto yes = make<int64_t>(DType::Bool, {2}, {1, 1}), no = make<int64_t>(DType::Bool, {2}, {1, 0});
  expect(run(text, {i32({}, {3}), yes})[0], {3}, {0, 1, 2});
  EXPECT_NE(fails(text, {i32({}, {3}), no}).find("must hold"), std::string::npos);
  EXPECT_NE(fails(text, {i32({}, {5}), yes}).find("above its bound"), std::string::npos);
}

} // namespace
