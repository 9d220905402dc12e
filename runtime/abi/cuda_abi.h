/* What a module compiled for NVIDIA devices and liblathe_cuda.a say to each other. Only generated code includes or calls
 * this; its users see module_abi.h alone. C11 and C++17.
 *
 * A module's run() is host code: begin, any number of the calls below, end. All pointers to the device are addresses in its
 * own memory. Everything between begin and end goes to one stream in order; host memory that an upload or download names
 * must stay until end (or a read or wait, which wait for all before them). Each function returns 0 or a lathe_code, and has
 * then filled the error of the run's arguments; only end may follow.
 *
 * Functions carry their version at the end of their names: archives of several versions serve objects of several versions in
 * one program. Structs are read by struct_size and grow only at their end. */
#ifndef LATHE_CUDA_ABI_V1
#define LATHE_CUDA_ABI_V1

#include "runtime/abi/module_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lathe_cuda_kernel {
  uint32_t struct_size;
  int32_t threads; /* of a block: what .reqntid says */
  const char *name;
} lathe_cuda_kernel;

/* The module's device side, in its writable data. */
typedef struct lathe_cuda_module {
  uint32_t struct_size;
  int32_t num_kernels;
  const char *image; /* PTX text */
  const lathe_cuda_kernel *const *kernels;
  uint64_t constants_size; /* of the memory that load and begin are given */
  void *loaded;            /* the archive's, null at first */
} lathe_cuda_module;

/* What begin tells. */
typedef struct lathe_cuda_frame {
  void *call;      /* the first argument of the functions below */
  void *memory;    /* on the device, 256-byte aligned: as many bytes as begin was asked for */
  void *constants; /* on the device */
} lathe_cuda_frame;

/* Loads the module and its constants on the device now instead of in the first run. A later run says why it could not. */
int32_t lathe_cuda_load_1(lathe_cuda_module *module, const void *constants);
/* Gives back all that the device holds of the module. No run may be in progress. */
void lathe_cuda_unload_1(lathe_cuda_module *module);

/* Memory, stream and context of one run; memory of an earlier run is taken again when it is large enough. */
int32_t lathe_cuda_begin_1(lathe_cuda_module *module, const lathe_run_args *args, const void *constants, int64_t bytes,
                           lathe_cuda_frame *frame);
/* Waits for everything; `code` is what the run is to return if all went well. */
int32_t lathe_cuda_end_1(void *call, int32_t code);

/* Memory of its own, of exactly so many bytes, for code compiled with --sanitize=address; release waits for all before it. What
 * is left at end is given back there. `slot` holds the address, null without one. */
int32_t lathe_cuda_allocate_1(void *call, void **slot, int64_t bytes);
int32_t lathe_cuda_release_1(void *call, void **slot);

int32_t lathe_cuda_upload_1(void *call, void *device, const void *host, int64_t bytes);
int32_t lathe_cuda_download_1(void *call, void *host, const void *device, int64_t bytes);
/* A download that has arrived when it returns. */
int32_t lathe_cuda_read_1(void *call, void *host, const void *device, int64_t bytes);
int32_t lathe_cuda_wait_1(void *call);
/* Within the device; the areas do not overlap. */
int32_t lathe_cuda_copy_1(void *call, void *to, const void *from, int64_t bytes);
/* `element`, of `size` bytes in host memory, over and over; `bytes` is a multiple of its size. */
int32_t lathe_cuda_fill_1(void *call, void *device, const void *element, int64_t size, int64_t bytes);
/* `parameters`: as many values of 8 bytes as the kernel has parameters. */
int32_t lathe_cuda_launch_1(void *call, int32_t kernel, int64_t blocks, const uint64_t *parameters, int32_t count);

#ifdef __cplusplus
}
#endif
#endif /* LATHE_CUDA_ABI_V1 */
