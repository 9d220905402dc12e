/* What this library says of what it does not have. */
#include "support.h"

int main(void) {
  status = TF_NewStatus();
  TF_Library *library = TF_LoadLibrary("ops.so", status);
  printf("library: %d %s\n", (int)TF_GetCode(status), TF_Message(status));
  printf("its ops: %zu bytes\n", TF_GetOpList(library).length);
  TF_DeleteLibraryHandle(library);
  TF_Server *server = TF_NewServer("", 0, status);
  printf("server: %d %s\n", (int)TF_GetCode(status), TF_Message(status));
  TF_ServerStart(server, status);
  printf("start: %d\n", (int)TF_GetCode(status));
  TF_ServerStop(server, status);
  printf("stop: %d\n", (int)TF_GetCode(status));
  TF_ServerJoin(server, status);
  printf("join: %d\n", (int)TF_GetCode(status));
  printf("target: '%s'\n", TF_ServerTarget(server));
  TF_DeleteServer(server);
  TF_RegisterFilesystemPlugin("files.so", status);
  printf("files: %d %s\n", (int)TF_GetCode(status), TF_Message(status));
  TF_RegisterLogListener(NULL);
  TF_Graph *g = TF_NewGraph();
  TF_Buffer *def = TF_NewBuffer();
  TF_GraphImportGraphDefWithResultsNoSerialization(g, def, NULL, status);
  printf("message of another library: %d\n", (int)TF_GetCode(status));
  /* the caller holds TensorFlow's lock for these two */
  TF_OperationDescription *d = TF_NewOperationLocked(g, "NoOp", "n");
  TF_Operation *op = TF_FinishOperationLocked(d, status);
  ok("n");
  TF_SetFullType(g, op, def);
  TF_AddWhileInputHack(g, at(op, 0), op, status);
  printf("more inputs than the op has: %d\n", (int)TF_GetCode(status));
  TF_Buffer *kernels = TF_GetRegisteredKernelsForOp("CrossReplicaSum", status);
  ok("kernels");
  printf("kernels of an op that does not run: %zu bytes\n", kernels->length);
  TF_DeleteBuffer(kernels);
  TF_DeleteBuffer(def);
  TF_DeleteGraph(g);
  TF_DeleteStatus(status);
  return 0;
}
