/* The devices of a ConfigProto, and a product on each of them. Argument: the bytes of the message, in hexadecimal. */
#include "support.h"

int main(int argc, char **argv) {
  unsigned char config[256];
  size_t length = argc > 1 ? strlen(argv[1]) / 2 : 0;
  for (size_t i = 0; i < length && i < sizeof config; ++i) {
    unsigned byte;
    sscanf(argv[1] + 2 * i, "%2x", &byte);
    config[i] = (unsigned char)byte;
  }
  status = TF_NewStatus();
  TF_SessionOptions *options = TF_NewSessionOptions();
  TF_SetConfig(options, config, length, status);
  ok("config");
  TF_Graph *g = TF_NewGraph();
  TF_Operation *x = placeholder(g, "x", TF_FLOAT, NULL, -1);
  TF_Session *session = TF_NewSession(g, options, status);
  ok("session");
  TF_DeviceList *devices = TF_SessionListDevices(session, status);
  ok("devices");
  for (int i = 0; i < TF_DeviceListCount(devices); ++i) {
    const char *name = TF_DeviceListName(devices, i, status);
    char node[32];
    snprintf(node, sizeof node, "square%d", i);
    TF_OperationDescription *d = TF_NewOperation(g, "Mul", node);
    TF_AddInput(d, at(x, 0));
    TF_AddInput(d, at(x, 0));
    TF_SetDevice(d, name);
    TF_Output in = at(x, 0), out = at(TF_FinishOperation(d, status), 0);
    ok(node);
    const float three = 3;
    TF_Tensor *fed = floats(NULL, 0, &three), *result = NULL;
    TF_SessionRun(session, NULL, &in, &fed, 1, &out, &result, 1, NULL, 0, NULL, status);
    ok("run");
    printf("%s, %s: %g\n", name, TF_DeviceListType(devices, i, status), (double)*(float *)TF_TensorData(result));
    TF_DeleteTensor(result);
    TF_DeleteTensor(fed);
  }
  TF_DeleteDeviceList(devices);
  TF_CloseSession(session, status);
  TF_DeleteSession(session, status);
  TF_DeleteSessionOptions(options);
  TF_DeleteGraph(g);
  TF_DeleteStatus(status);
  return 0;
}
