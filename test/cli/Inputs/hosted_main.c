/* The same through the C interface. */
#include "text.h"

#include <stdio.h>
#include <string.h>

int main(void) {
  const char *texts[2] = {"The film was GREAT fun", "loved the acting"};
  lathe_host_string strings[2];
  int64_t dims[1] = {2};
  lathe_host_tensor in;
  const lathe_host_tensor *inputs[1];
  lathe_hosted *model = lathe_hosted_new(text_hosted(), 1);
  int i;
  if (*lathe_hosted_error(model))
    return puts(lathe_hosted_error(model)), 1;
  printf("%s -> %s\n", lathe_hosted_input(model, 0, 0)->name, lathe_hosted_output(model, 0, 0)->tensor);
  for (i = 0; i < 2; ++i) {
    strings[i].data = texts[i];
    strings[i].size = strlen(texts[i]);
  }
  memset(&in, 0, sizeof in);
  in.struct_size = sizeof in;
  in.dtype = LATHE_STRING;
  in.rank = 1;
  in.dims = dims;
  in.data = strings;
  inputs[0] = &in;
  if (lathe_hosted_run(model, 0, inputs, 1))
    return puts(lathe_hosted_error(model)), 1;
  for (i = 0; i < 4; ++i)
    printf("%.5f ", (double)((const float *)lathe_hosted_result(model, 0)->data)[i]);
  puts("");
  lathe_hosted_delete(model);
  return 0;
}
