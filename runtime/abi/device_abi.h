/* What callers tell a module for devices beside module_abi.h, whose structs stay as they are. C11 and C++17, and may stand
 * in one file with headers that do not know it, before or after them. Structs grow only at their end and carry their size. */
#ifndef LATHE_DEVICE_ABI_V2
#define LATHE_DEVICE_ABI_V2

#ifdef __cplusplus
extern "C" {
#endif

/* A place to run on one device: memory, a stream, and runs that are not over. For one thread at a time. */
typedef struct lathe_device_instance lathe_device_instance;

/* What run() takes instead of lathe_run_args: a pointer to `args`, whose struct_size is that of the whole. */
typedef struct lathe_device_run_args {
  lathe_run_args args;
  lathe_device_instance *instance; /* NULL: memory and a stream that such runs share, on `device` */
  int32_t device;                  /* without an instance: the ordinal of the device */
  int32_t enqueue; /* 1, with an instance: run() returns when all is in `stream`, wait() tells what came of it. Until then
                    * host memory that the arguments name must stay, and inputs in it must not change. */
  void *stream;    /* a CUstream of the device's primary context; NULL is the default stream */
  /* A byte for each pointer of args, 1: it is an address on the device. NULL: none is. Those that are no multiple of
   * LATHE_ALIGNMENT are copied within the device in every run. */
  const uint8_t *inputs_on_device, *outputs_on_device, *variables_on_device;
} lathe_device_run_args;

/* What a module for devices has beside lathe_module. Functions with a result return 0 or a lathe_code and have then filled
 * *error (if not NULL). */
typedef struct lathe_device_module {
  uint32_t struct_size;
  int32_t num_entries;
  /* By entry: bytes of the device's memory that a run takes beside code and constants; < 0 when a size is out of range. */
  int64_t (*const *workspace_size)(const int64_t *sizes);
  /* The first instance on a device loads code and constants there; the last that is closed gives them back. */
  int32_t (*open)(int32_t device, lathe_device_instance **instance, lathe_error *error);
  /* Waits for its runs. */
  void (*close)(lathe_device_instance *instance);
  /* Memory for runs that take up to so many bytes: they allocate nothing. */
  int32_t (*reserve)(lathe_device_instance *instance, int64_t bytes, lathe_error *error);
  /* Waits for the runs that were enqueued; the first failure since the last wait. */
  int32_t (*wait)(lathe_device_instance *instance, lathe_error *error);
  /* Memory on the instance's device, aligned to 256 bytes, for whoever has no other way to get some. */
  int32_t (*allocate)(lathe_device_instance *instance, void **memory, int64_t bytes, lathe_error *error);
  int32_t (*release)(lathe_device_instance *instance, void *memory, lathe_error *error);
  /* Copies after all runs of the instance and waits; *_on_device tells which of the two are addresses on the device. */
  int32_t (*copy)(lathe_device_instance *instance, void *to, int32_t to_on_device, const void *from, int32_t from_on_device,
                  int64_t bytes, lathe_error *error);
  /* The most places of a run where kernels can fail. 0: once it is in a stream, only the device itself can. Absent in tables that
   * end before it. */
  int32_t num_cells, reserved;
} lathe_device_module;

#ifdef __cplusplus
}
#endif
#endif /* LATHE_DEVICE_ABI_V2 */
