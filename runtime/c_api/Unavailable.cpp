// What this library does not have: ops of others, servers, file systems of others.
#include "runtime/c_api/Internal.h"

#include "absl/strings/str_cat.h"

using namespace lathe;
using namespace lathe::c_api;

extern "C" {

TF_Library *TF_LoadLibrary(const char *library_filename, TF_Status *status) {
  setUnimplemented(status, absl::StrCat("ops and kernels of other libraries cannot be loaded ('", textOf(library_filename), "')"));
  return nullptr;
}
TF_Buffer TF_GetOpList(TF_Library *) { return {nullptr, 0, nullptr}; }
void TF_DeleteLibraryHandle(TF_Library *) {}

TF_Server *TF_NewServer(const void *, size_t, TF_Status *status) {
  setUnimplemented(status, "there are no servers; sessions run in this process");
  return nullptr;
}
void TF_ServerStart(TF_Server *, TF_Status *status) { setUnimplemented(status, "there are no servers to start"); }
void TF_ServerStop(TF_Server *, TF_Status *status) { setUnimplemented(status, "there are no servers to stop"); }
void TF_ServerJoin(TF_Server *, TF_Status *status) { setUnimplemented(status, "there are no servers to wait for"); }
const char *TF_ServerTarget(TF_Server *) { return ""; }
void TF_DeleteServer(TF_Server *) {}

void TF_RegisterLogListener(void (*)(const char *)) {}
void TF_RegisterFilesystemPlugin(const char *plugin_filename, TF_Status *status) {
  setUnimplemented(status, absl::StrCat("file systems of other libraries cannot be loaded ('", textOf(plugin_filename), "')"));
}

} // extern "C"
