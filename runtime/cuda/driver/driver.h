/* NVIDIA's driver, found at run time: a table of the functions in functions.def. Needs libc only. */
#ifndef LATHE_RUNTIME_CUDA_DRIVER_DRIVER_H
#define LATHE_RUNTIME_CUDA_DRIVER_DRIVER_H

#include "runtime/cuda/driver/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Archives of several versions may meet in one program. */
#define lathe_cuda_open lathe_cuda_driver_open_2
#define lathe_cuda_describe lathe_cuda_driver_describe_2

/* The oldest driver that has all functions in the form asked for. */
#define LATHE_CUDA_MINIMUM_DRIVER 11040

/* The functions, by their own names, and the version of the driver that they came from (1000 * major + 10 *
 * minor). */
typedef struct lathe_cuda_driver {
  int version;
#define LATHE_CU(name, version, parameters) lathe_cu_result(*name) parameters;
#include "runtime/cuda/driver/functions.def"
#undef LATHE_CU
} lathe_cuda_driver;

/* The driver of this process, loaded and initialised (cuInit) by the first call that finds one and kept from
 * then on; from any thread. NULL without one, with too old a one, or when it refuses to start: then `message`
 * says why, in at most `size` bytes with the terminating zero; a later call tries again. `message` may be
 * NULL when size is 0. */
const lathe_cuda_driver *lathe_cuda_open(char *message, size_t size);

/* Writes "CALL: what it means (CUDA_ERROR_NAME)" for a result that is no success. */
void lathe_cuda_describe(const lathe_cuda_driver *driver, const char *call, lathe_cu_result result,
                         char *message, size_t size);

#ifdef __cplusplus
}
#endif
#endif
