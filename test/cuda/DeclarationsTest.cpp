// Compiled where NVIDIA's header is installed: our own declarations say the same.
#include "runtime/cuda/driver/types.h"

#include <cuda.h>
#include <cudaTypedefs.h>

#include <type_traits>

#define SAME(name) static_assert(static_cast<int>(LATHE_##name) == static_cast<int>(name), #name)
#define ERROR(name)                                                                                          \
  static_assert(static_cast<int>(LATHE_CU_ERROR_##name) == static_cast<int>(CUDA_ERROR_##name), #name)

ERROR(INVALID_VALUE);
ERROR(OUT_OF_MEMORY);
ERROR(NOT_INITIALIZED);
ERROR(NO_DEVICE);
ERROR(INVALID_DEVICE);
ERROR(INVALID_IMAGE);
ERROR(INVALID_CONTEXT);
ERROR(NO_BINARY_FOR_GPU);
ERROR(INVALID_PTX);
ERROR(UNSUPPORTED_PTX_VERSION);
ERROR(INVALID_HANDLE);
ERROR(NOT_FOUND);
ERROR(NOT_READY);
ERROR(ILLEGAL_ADDRESS);
ERROR(LAUNCH_OUT_OF_RESOURCES);
ERROR(LAUNCH_TIMEOUT);
ERROR(ILLEGAL_INSTRUCTION);
ERROR(MISALIGNED_ADDRESS);
ERROR(LAUNCH_FAILED);
ERROR(STREAM_CAPTURE_UNSUPPORTED);
ERROR(STREAM_CAPTURE_INVALIDATED);
ERROR(STREAM_CAPTURE_UNMATCHED);
ERROR(STREAM_CAPTURE_UNJOINED);
ERROR(STREAM_CAPTURE_ISOLATION);
ERROR(CAPTURED_EVENT);
ERROR(GRAPH_EXEC_UPDATE_FAILURE);
ERROR(UNKNOWN);
SAME(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
SAME(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X);
SAME(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y);
SAME(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z);
SAME(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X);
SAME(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y);
SAME(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z);
SAME(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
SAME(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY);
SAME(CU_DEVICE_ATTRIBUTE_WARP_SIZE);
SAME(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
SAME(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
SAME(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
SAME(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
SAME(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
SAME(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING);
SAME(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
SAME(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
SAME(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
SAME(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
SAME(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
SAME(CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES);
SAME(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
SAME(CU_FUNC_ATTRIBUTE_NUM_REGS);
SAME(CU_FUNC_ATTRIBUTE_PTX_VERSION);
SAME(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
SAME(CU_POINTER_ATTRIBUTE_CONTEXT);
SAME(CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
SAME(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
SAME(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR);
SAME(CU_POINTER_ATTRIBUTE_RANGE_SIZE);
SAME(CU_MEMORYTYPE_HOST);
SAME(CU_MEMORYTYPE_DEVICE);
SAME(CU_JIT_INFO_LOG_BUFFER);
SAME(CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES);
SAME(CU_JIT_ERROR_LOG_BUFFER);
SAME(CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
SAME(CU_STREAM_NON_BLOCKING);
SAME(CU_EVENT_DISABLE_TIMING);
SAME(CU_STREAM_CAPTURE_MODE_GLOBAL);
SAME(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
SAME(CU_STREAM_CAPTURE_MODE_RELAXED);
SAME(CU_STREAM_CAPTURE_STATUS_NONE);
SAME(CU_STREAM_CAPTURE_STATUS_ACTIVE);
SAME(CU_STREAM_CAPTURE_STATUS_INVALIDATED);
SAME(CU_GRAPH_EXEC_UPDATE_SUCCESS);
SAME(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
static_assert(sizeof(lathe_cu_device) == sizeof(CUdevice) &&
                  sizeof(lathe_cu_deviceptr) == sizeof(CUdeviceptr) &&
                  sizeof(lathe_cu_result) == sizeof(CUresult) && sizeof(lathe_cu_stream) == sizeof(CUstream),
              "sizes");
static_assert(sizeof(lathe_cu_kernel_node_params) == sizeof(CUDA_KERNEL_NODE_PARAMS_v1) &&
                  offsetof(lathe_cu_kernel_node_params, block_z) == offsetof(CUDA_KERNEL_NODE_PARAMS_v1, blockDimZ) &&
                  offsetof(lathe_cu_kernel_node_params, parameters) == offsetof(CUDA_KERNEL_NODE_PARAMS_v1, kernelParams),
              "parameters of a kernel's node");

namespace {
/// Whether two functions are called alike: as many parameters, each of the same size and class.
template <class A, class B>
struct Alike : std::false_type {};
template <class A, class B>
constexpr bool alike = sizeof(A) == sizeof(B) && std::is_pointer<A>::value == std::is_pointer<B>::value;
template <class R, class... A, class S, class... B>
struct Alike<R(A...), S(B...)> {
  template <class X, class Y>
  struct Each : std::false_type {};
  template <class... X, class... Y>
  struct Each<void(X...), void(Y...)> {
    static constexpr bool check() {
      if constexpr (sizeof...(X) != sizeof...(Y))
        return false;
      else
        return (alike<X, Y> && ...);
    }
  };
  static constexpr bool value = sizeof(R) == sizeof(S) && Each<void(A...), void(B...)>::check();
};
} // namespace

// the form that cuda.h has of the version asked for
#define LATHE_CU(name, version, parameters)                                                                  \
  static_assert(Alike<std::remove_pointer_t<PFN_##name##_v##version>, lathe_cu_result parameters>::value,    \
                #name);
#include "runtime/cuda/driver/functions.def"
#undef LATHE_CU
