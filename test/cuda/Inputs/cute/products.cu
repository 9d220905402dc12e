// Products by CuTe's atoms, whose traits say which element a lane holds in which register. products.ptx is this file as
// make.py compiles it. Of every kernel: A is [rows][depth], B [columns][depth], or across [depth][...], C [rows][columns].
#include <cute/tensor.hpp>

using namespace cute;

template <class Tensor>
__device__ auto fragment(Tensor const &t) {
  auto r = make_fragment_like(t);
  copy(t, r);
  return r;
}

/// One product of a warp, elements loaded one by one where the traits have them.
template <class Op>
__device__ void single(const void *a, const void *b, void *c) {
  using Traits = MMA_Traits<Op>;
  using Shape = typename Traits::Shape_MNK;
  auto m = get<0>(Shape{});
  auto n = get<1>(Shape{});
  auto k = get<2>(Shape{});
  auto mma = make_tiled_mma(Op{});
  auto lane = mma.get_slice(threadIdx.x);
  Tensor A = make_tensor(make_gmem_ptr(static_cast<const typename Traits::ValTypeA *>(a)), make_layout(make_shape(m, k), make_stride(k, _1{})));
  Tensor B = make_tensor(make_gmem_ptr(static_cast<const typename Traits::ValTypeB *>(b)), make_layout(make_shape(n, k), make_stride(k, _1{})));
  Tensor C = make_tensor(make_gmem_ptr(static_cast<typename Traits::ValTypeC *>(c)), make_layout(make_shape(m, n), make_stride(n, _1{})));
  Tensor tC = lane.partition_C(C);
  auto rA = fragment(lane.partition_A(A));
  auto rB = fragment(lane.partition_B(B));
  auto rC = fragment(tC);
  gemm(mma, rA, rB, rC);
  copy(rC, tC);
}

/// A tile of 32 x 32 by four warps, operands through shared memory: whole vectors by cp.async, then ldmatrix. `AcrossA`, `AcrossB`: rows or
/// columns are neighbours in memory.
template <class Op, class LoadA, class LoadB, bool AcrossA, bool AcrossB, int Depth>
__device__ void tile(const void *a, const void *b, void *c) {
  using Traits = MMA_Traits<Op>;
  using T = typename Traits::ValTypeA;
  constexpr int vector = 16 / sizeof(T);
  auto mma = make_tiled_mma(Op{}, Layout<Shape<_2, _2>>{}, Tile<_32, _32, Int<get<2>(typename Traits::Shape_MNK{}) * 2>>{});
  constexpr int inPiece = sizeof(T) == 1 ? 4 : sizeof(T) == 2 ? 3 : 2; // as a power of two
  auto along = composition(Swizzle<2, inPiece, 3>{}, Layout<Shape<_32, Int<Depth>>, Stride<Int<Depth>, _1>>{});
  auto across = composition(Swizzle<2, 3, 3>{}, Layout<Shape<_32, Int<Depth>>, Stride<_1, _32>>{});
  using InA = conditional_t<AcrossA, decltype(across), decltype(along)>;
  using InB = conditional_t<AcrossB, decltype(across), decltype(along)>;
  __shared__ alignas(128) T memoryA[32 * Depth], memoryB[32 * Depth];
  Tensor sA = make_tensor(make_smem_ptr(memoryA), InA{});
  Tensor sB = make_tensor(make_smem_ptr(memoryB), InB{});
  using Along = Layout<Shape<_32, Int<Depth>>, Stride<Int<Depth>, _1>>;
  using Across = Layout<Shape<_32, Int<Depth>>, Stride<_1, _32>>;
  Tensor gA = make_tensor(make_gmem_ptr(static_cast<const T *>(a)), conditional_t<AcrossA, Across, Along>{});
  Tensor gB = make_tensor(make_gmem_ptr(static_cast<const T *>(b)), conditional_t<AcrossB, Across, Along>{});
  Tensor gC = make_tensor(make_gmem_ptr(static_cast<typename Traits::ValTypeC *>(c)), Layout<Shape<_32, _32>, Stride<_32, _1>>{});
  constexpr int pieces = Depth / vector;
  auto fill = [&](auto isAcross) {
    using CopyThreads = conditional_t<decltype(isAcross)::value, Layout<Shape<Int<32 / vector>, Int<128 / (32 / vector)>>>,
                                      Layout<Shape<Int<128 / pieces>, Int<pieces>>, Stride<Int<pieces>, _1>>>;
    using CopyValues = conditional_t<decltype(isAcross)::value, Layout<Shape<Int<vector>, _1>>, Layout<Shape<_1, Int<vector>>>>;
    return make_tiled_copy(Copy_Atom<SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>, T>{}, CopyThreads{}, CopyValues{});
  };
  auto move = [&](auto how, auto const &from, auto &to) {
    auto part = how.get_slice(threadIdx.x);
    copy(how, part.partition_S(from), part.partition_D(to));
  };
  move(fill(bool_constant<AcrossA>{}), gA, sA);
  move(fill(bool_constant<AcrossB>{}), gB, sB);
  cp_async_fence();
  cp_async_wait<0>();
  __syncthreads();
  auto lane = mma.get_slice(threadIdx.x);
  auto rA = lane.partition_fragment_A(sA);
  auto rB = lane.partition_fragment_B(sB);
  Tensor tC = lane.partition_C(gC);
  auto rC = fragment(tC);
  auto loadA = make_tiled_copy_A(Copy_Atom<LoadA, T>{}, mma);
  auto loadB = make_tiled_copy_B(Copy_Atom<LoadB, T>{}, mma);
  auto fromA = loadA.get_slice(threadIdx.x);
  auto fromB = loadB.get_slice(threadIdx.x);
  copy(loadA, fromA.partition_S(sA), fromA.retile_D(rA));
  copy(loadB, fromB.partition_S(sB), fromB.retile_D(rB));
  gemm(mma, rA, rB, rC);
  copy(rC, tC);
}

#define SINGLE(NAME, OP) \
  extern "C" __global__ void __launch_bounds__(32) single_##NAME(const void *a, const void *b, void *c) { single<OP>(a, b, c); }
SINGLE(f16_8_f16, SM80_16x8x8_F16F16F16F16_TN)
SINGLE(f16_16_f16, SM80_16x8x16_F16F16F16F16_TN)
SINGLE(f16_8_f32, SM80_16x8x8_F32F16F16F32_TN)
SINGLE(f16_16_f32, SM80_16x8x16_F32F16F16F32_TN)
SINGLE(bf16_8_f32, SM80_16x8x8_F32BF16BF16F32_TN)
SINGLE(bf16_16_f32, SM80_16x8x16_F32BF16BF16F32_TN)
SINGLE(tf32_4_f32, SM80_16x8x4_F32TF32TF32F32_TN)
SINGLE(tf32_8_f32, SM80_16x8x8_F32TF32TF32F32_TN)
SINGLE(s8s8_16_s32, SM80_16x8x16_S32S8S8S32_TN)
SINGLE(s8s8_32_s32, SM80_16x8x32_S32S8S8S32_TN)
SINGLE(s8u8_16_s32, SM80_16x8x16_S32S8U8S32_TN)
SINGLE(s8u8_32_s32, SM80_16x8x32_S32S8U8S32_TN)
SINGLE(u8s8_16_s32, SM80_16x8x16_S32U8S8S32_TN)
SINGLE(u8s8_32_s32, SM80_16x8x32_S32U8S8S32_TN)
SINGLE(u8u8_16_s32, SM80_16x8x16_S32U8U8S32_TN)
SINGLE(u8u8_32_s32, SM80_16x8x32_S32U8U8S32_TN_SATURATE)

#define TILE(NAME, ...) \
  extern "C" __global__ void __launch_bounds__(128) tile_##NAME(const void *a, const void *b, void *c) { tile<__VA_ARGS__>(a, b, c); }
TILE(f16_x4_x4, SM80_16x8x16_F32F16F16F32_TN, SM75_U32x4_LDSM_N, SM75_U32x4_LDSM_N, false, false, 64)
TILE(f16_x2_x1, SM80_16x8x16_F32F16F16F32_TN, SM75_U32x2_LDSM_N, SM75_U32x1_LDSM_N, false, false, 64)
TILE(f16_t8_t8, SM80_16x8x16_F32F16F16F32_TN, SM75_U16x8_LDSM_T, SM75_U16x8_LDSM_T, true, true, 32)
TILE(bf16_t4_t2, SM80_16x8x16_F32BF16BF16F32_TN, SM75_U16x4_LDSM_T, SM75_U16x2_LDSM_T, true, true, 32)
TILE(bf16_x4_t4, SM80_16x8x16_F32BF16BF16F32_TN, SM75_U32x4_LDSM_N, SM75_U16x4_LDSM_T, false, true, 32)
TILE(f16_8_t4_x2, SM80_16x8x8_F32F16F16F32_TN, SM75_U16x4_LDSM_T, SM75_U32x2_LDSM_N, true, false, 32)
TILE(tf32_x4_x4, SM80_16x8x8_F32TF32TF32F32_TN, SM75_U32x4_LDSM_N, SM75_U32x4_LDSM_N, false, false, 32)
TILE(s8s8_x4_x4, SM80_16x8x32_S32S8S8S32_TN, SM75_U32x4_LDSM_N, SM75_U32x4_LDSM_N, false, false, 64)
TILE(u8u8_x4_x2, SM80_16x8x32_S32U8U8S32_TN, SM75_U32x4_LDSM_N, SM75_U32x2_LDSM_N, false, false, 64)
