/* What a module compiled for NVIDIA devices and liblathe_cuda.a say to each other. Only generated code includes or calls
 * this; its users see module_abi.h and device_abi.h. C11 and C++17.
 *
 * A module's run() is host code: begin, any number of the calls below, end. All pointers to the device are addresses in its
 * own memory. Everything between begin and end goes to one stream in order; host memory that an upload or download names
 * must stay until all has run, which may be after end. Each function returns 0 or a lathe_code, and has then filled the error
 * of the run's arguments; only end may follow.
 *
 * Functions carry their version at the end of their names: archives of several versions serve objects of several versions in
 * one program. Structs are read by struct_size and grow only at their end. */
#ifndef LATHE_CUDA_ABI_V2
#define LATHE_CUDA_ABI_V2

#include "runtime/abi/module_abi.h"

#include "runtime/abi/device_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What 4352 bytes of parameters hold, the limit before PTX 8.1, beside the six that every kernel has: a kernel of more operands
 * and results takes, in their place, one pointer to a table of them on the device. */
#define LATHE_CUDA_MOST_POINTERS 538

typedef struct lathe_cuda_kernel {
  uint32_t struct_size;
  int32_t threads; /* of a block: what .reqntid says */
  const char *name;
} lathe_cuda_kernel;

/* Code beside the PTX that most devices take. Where its kernels are launched with shared memory, a variable of this name holds the bytes
 * of each as 32-bit words; without it there is none. */
#define LATHE_CUDA_SHARED_TABLE "lathe_shared_bytes"
#define LATHE_CUDA_IMAGE_OWN 1          /* runs on devices of just this architecture (sm_90a), not on later ones */
#define LATHE_CUDA_IMAGE_MACHINE_CODE 2 /* a cubin, for devices of this architecture and later ones of the same generation; else PTX */
typedef struct lathe_cuda_image {
  uint32_t struct_size;
  int32_t arch; /* 90 for sm_90 */
  int32_t flags, reserved;
  const void *code;
} lathe_cuda_image;

/* The module's device side, in its writable data. */
typedef struct lathe_cuda_module {
  uint32_t struct_size;
  int32_t num_kernels;
  const char *image; /* PTX text */
  const lathe_cuda_kernel *const *kernels;
  uint64_t constants_size; /* of the memory that load and begin are given */
  int64_t host_bytes;      /* of a run: see lathe_cuda_frame.host */
  int32_t num_cells;       /* the most that a run has: see lathe_cuda_cells_2 */
  int32_t reserved;
  /* Fills args->error with the failure of a kernel at a site; returns its code. */
  int32_t (*fail)(const lathe_run_args *args, int32_t site, int32_t failure);
  void *loaded; /* the archive's, null at first */
  /* Fitting machine code is loaded before fitting PTX of the device's own, that before other PTX and `image`, which is last; what
   * the driver refuses is no failure while another is left. */
  int32_t num_images, reserved_2;
  const lathe_cuda_image *const *images;
} lathe_cuda_module;

/* What begin tells. */
typedef struct lathe_cuda_frame {
  void *call;      /* the first argument of the functions below */
  void *memory;    /* on the device, 256-byte aligned: as many bytes as begin was asked for */
  void *constants; /* on the device */
  void *host;      /* host_bytes of the host's memory, pinned, the run's own until all has run */
} lathe_cuda_frame;

/* Loads the module and its constants on a device now instead of with the first instance or run, until unload. */
int32_t lathe_cuda_load_2(lathe_cuda_module *module, int32_t device, const void *constants);
/* Gives back all that devices hold of the module. No run may be in progress. What is run later loads again. */
void lathe_cuda_unload_2(lathe_cuda_module *module);
/* The device of runs whose arguments name none, 0 at first. For programs that run modules of others. */
void lathe_cuda_default_device_2(int32_t device);
/* Which launches become CUDA graphs from now on: 0 none, 1 (as long as LATHE_CUDA_GRAPHS says nothing else) those that an instance
 * has made before, 2 all. Bits never depend on it. For programs that compare. */
void lathe_cuda_graphs_2(int32_t when);
/* How many kernels all runs of the process had the device run. For programs that report. */
int64_t lathe_cuda_launches_2(void);

/* See lathe_device_module. */
int32_t lathe_cuda_open_2(lathe_cuda_module *module, const void *constants, int32_t device, lathe_device_instance **instance,
                          lathe_error *error);
void lathe_cuda_close_2(lathe_device_instance *instance);
int32_t lathe_cuda_reserve_2(lathe_device_instance *instance, int64_t bytes, lathe_error *error);
int32_t lathe_cuda_finish_2(lathe_device_instance *instance, lathe_error *error);
int32_t lathe_cuda_get_memory_2(lathe_device_instance *instance, void **memory, int64_t bytes, lathe_error *error);
int32_t lathe_cuda_free_memory_2(lathe_device_instance *instance, void *memory, lathe_error *error);
int32_t lathe_cuda_transfer_2(lathe_device_instance *instance, void *to, int32_t to_on_device, const void *from,
                              int32_t from_on_device, int64_t bytes, lathe_error *error);

/* Memory, stream and context of one run: the instance's, else those of an earlier run that is over. */
int32_t lathe_cuda_begin_2(lathe_cuda_module *module, const lathe_run_args *args, const void *constants, int64_t bytes,
                           lathe_cuda_frame *frame);
/* Waits for everything, or leaves it in the caller's stream; `code` is what the run is to return if all went well. */
int32_t lathe_cuda_end_2(void *call, int32_t code);

/* Where kernels say that they failed: `count` values of 8 bytes on the device, set to 0 now, each of one kernel's call, in the
 * order of steps; sites[i] is the site of the i-th. Whatever waits looks at them, and the first that is not 0 is the failure
 * of the run. */
int32_t lathe_cuda_cells_2(void *call, void *cells, const int32_t *sites, int32_t count);
/* Waits for all before it and looks at the cells. */
int32_t lathe_cuda_check_2(void *call);

/* The tensors of the arguments: 0 inputs, 1 outputs, 2 variables. bind: `slot` holds where the tensor lies within the run's
 * memory; inputs and variables come there, unless they lie on the device and can stay, as outputs can: then the slot gets
 * their address. store: outputs and variables go back to where they belong, if they are not there. */
int32_t lathe_cuda_bind_2(void *call, int32_t list, int32_t number, void **slot, int64_t bytes);
int32_t lathe_cuda_store_2(void *call, int32_t list, int32_t number, void **slot, int64_t bytes);

/* Memory of its own, of exactly so many bytes, for code compiled with --sanitize=address; release waits for all before it. What
 * is left at end is given back there. `slot` holds the address, null without one. */
int32_t lathe_cuda_allocate_2(void *call, void **slot, int64_t bytes);
int32_t lathe_cuda_release_2(void *call, void **slot);

int32_t lathe_cuda_upload_2(void *call, void *device, const void *host, int64_t bytes);
/* Has arrived when it returns; looks at the cells too. */
int32_t lathe_cuda_read_2(void *call, void *host, const void *device, int64_t bytes);
/* Within the device; the areas do not overlap. */
int32_t lathe_cuda_copy_2(void *call, void *to, const void *from, int64_t bytes);
/* `element`, of `size` bytes in host memory that stays, over and over; `bytes` is a multiple of its size. */
int32_t lathe_cuda_fill_2(void *call, void *device, const void *element, int64_t size, int64_t bytes);
/* `parameters`: as many values of 8 bytes as the kernel has parameters. */
int32_t lathe_cuda_launch_2(void *call, int32_t kernel, int64_t blocks, const uint64_t *parameters, int32_t count);

#ifdef __cplusplus
}
#endif
#endif /* LATHE_CUDA_ABI_V2 */
