/* The functions that a C program has for devices: memory, an instance, a run in the default stream, the failure of one. */
#include LOOKUP_HEADER

#include <stdio.h>
#include <string.h>

int main(void) {
  const lathe_device_module *device = lookup_device();
  lathe_device_instance *instance = NULL;
  lathe_error error = {sizeof(error), 0, -1, 0, NULL};
  lathe_device_run_args run;
  int64_t sizes[] = {5};
  const int32_t which[] = {0, 2, 1, 1, 0}, wrong[] = {0, 2, -1, 1, 0};
  float rows[10];
  void *there = NULL;
  const uint8_t yes[] = {1};
  int32_t code = device->open(0, &instance, &error);
  if (!code)
    code = device->reserve(instance, device->workspace_size[0](sizes), &error);
  if (!code)
    code = device->allocate(instance, &there, 64, &error);
  if (!code)
    code = device->copy(instance, there, 1, which, 0, sizeof(which), &error);
  if (code) {
    printf("status %d: %s\n", code, error.message);
    device->close(instance);
    return 1;
  }
  const void *inputs[] = {there};
  void *outputs[] = {rows};
  memset(&run, 0, sizeof(run));
  run.args.struct_size = sizeof(run);
  run.args.threads = 1;
  run.args.inputs = inputs;
  run.args.outputs = outputs;
  run.args.sizes = sizes;
  run.args.error = &error;
  run.instance = instance;
  run.enqueue = 1;
  run.inputs_on_device = yes;
  code = lookup_run(&run.args);
  printf("run %d, wait %d", code, device->wait(instance, &error));
  printf(", rows %g %g\n", (double)rows[2], (double)rows[9]);
  code = device->copy(instance, there, 1, wrong, 0, sizeof(wrong), &error);
  code = code ? code : lookup_run(&run.args);
  printf("run %d, ", code);
  code = device->wait(instance, &error);
  printf("wait %d: %s\n", code, error.message);
  device->release(instance, there, NULL);
  device->close(instance);
  return 0;
}
