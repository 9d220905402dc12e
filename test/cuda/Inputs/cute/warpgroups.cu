// Products of warpgroups by CuTe's atoms: it makes the descriptors of operands that lie in its canonical layouts, and its traits say
// which sums a thread has. warpgroups.ptx is this file as make.py compiles it. A is [64 * groups][depth], B [columns][depth], C
// [rows][columns].
#include <cute/tensor.hpp>

using namespace cute;

template <class Op, class AtomA, class AtomB, int Rows, int Columns, int Depth>
__device__ void group(const void *a, const void *b, void *c) {
  using Traits = MMA_Traits<Op>;
  using Sum = typename Traits::ValTypeC;
  using T = typename Traits::ValTypeA;
  auto inA = tile_to_shape(AtomA{}, Shape<Int<Rows>, Int<Depth>>{});
  auto inB = tile_to_shape(AtomB{}, Shape<Int<Columns>, Int<Depth>>{});
  __shared__ alignas(1024) T memoryA[cosize_v<decltype(inA)>];
  __shared__ alignas(1024) T memoryB[cosize_v<decltype(inB)>];
  Tensor sA = make_tensor(make_smem_ptr(memoryA), inA);
  Tensor sB = make_tensor(make_smem_ptr(memoryB), inB);
  const T *pa = static_cast<const T *>(a), *pb = static_cast<const T *>(b);
#pragma unroll 1
  for (int i = threadIdx.x; i < Rows * Depth; i += blockDim.x)
    sA(i / Depth, i % Depth) = pa[i];
#pragma unroll 1
  for (int i = threadIdx.x; i < Columns * Depth; i += blockDim.x)
    sB(i / Depth, i % Depth) = pb[i];
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  auto mma = make_tiled_mma(Op{}, Layout<Shape<Int<Rows / 64>>>{});
  auto thread = mma.get_slice(threadIdx.x);
  Tensor C = make_tensor(make_gmem_ptr(static_cast<Sum *>(c)), Layout<Shape<Int<Rows>, Int<Columns>>, Stride<Int<Columns>, _1>>{});
  Tensor tC = thread.partition_C(C);
  auto rA = thread.make_fragment_A(thread.partition_A(sA));
  auto rB = thread.make_fragment_B(thread.partition_B(sB));
  auto rC = thread.make_fragment_C(tC);
  copy(tC, rC);
  warpgroup_fence_operand(rC);
  warpgroup_arrive();
  gemm(mma, rA, rB, rC);
  warpgroup_commit_batch();
  warpgroup_wait<0>();
  warpgroup_fence_operand(rC);
  copy(rC, tC);
}

using GMMA::Major;
#define GROUP(NAME, ROWS, ...) \
  extern "C" __global__ void __launch_bounds__(ROWS * 2) group_##NAME(const void *a, const void *b, void *c) { \
    group<__VA_ARGS__>(a, b, c); \
  }
// NAME: type, swizzle and direction of A, of B; COLUMNS of the result and of an instruction
#define HALVES(NAME, OP, T, SWA, MA, SWB, MB, ROWS, COLUMNS, DEPTH) \
  GROUP(NAME, ROWS, OP<Major::MA, Major::MB>, GMMA::Layout_##MA##_##SWA##_Atom<T>, GMMA::Layout_##MB##_##SWB##_Atom<T>, ROWS, COLUMNS, DEPTH)
#define OTHERS(NAME, OP, T, SWA, SWB, ROWS, COLUMNS, DEPTH) \
  GROUP(NAME, ROWS, OP, GMMA::Layout_K_##SWA##_Atom<T>, GMMA::Layout_K_##SWB##_Atom<T>, ROWS, COLUMNS, DEPTH)
HALVES(f16_k128_k128, SM90_64x32x16_F32F16F16_SS, half_t, SW128, K, SW128, K, 64, 64, 64)
HALVES(f16_k64_k32, SM90_64x8x16_F32F16F16_SS, half_t, SW64, K, SW32, K, 64, 8, 64)
HALVES(f16_k32_k64, SM90_64x16x16_F32F16F16_SS, half_t, SW32, K, SW64, K, 64, 16, 128)
HALVES(f16_m128_m128, SM90_64x64x16_F32F16F16_SS, half_t, SW128, MN, SW128, MN, 128, 64, 32)
HALVES(f16_m64_m64, SM90_64x32x16_F32F16F16_SS, half_t, SW64, MN, SW64, MN, 64, 32, 32)
HALVES(f16_m32_m32, SM90_64x16x16_F32F16F16_SS, half_t, SW32, MN, SW32, MN, 64, 32, 32)
HALVES(bf16_k128_m128, SM90_64x128x16_F32BF16BF16_SS, bfloat16_t, SW128, K, SW128, MN, 64, 128, 64)
HALVES(bf16_m64_k128, SM90_64x16x16_F32BF16BF16_SS, bfloat16_t, SW64, MN, SW128, K, 128, 48, 64)
OTHERS(tf32_128_128, SM90_64x32x8_F32TF32TF32_SS_TN<>, tfloat32_t, SW128, SW128, 64, 32, 64)
OTHERS(tf32_64_32, SM90_64x16x8_F32TF32TF32_SS_TN<>, tfloat32_t, SW64, SW32, 128, 16, 32)
OTHERS(s8s8_128_128, SM90_64x32x32_S32S8S8_SS_TN, int8_t, SW128, SW128, 64, 64, 128)
OTHERS(s8s8_32_64, SM90_64x8x32_S32S8S8_SS_TN, int8_t, SW32, SW64, 128, 8, 128)
