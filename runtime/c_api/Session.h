// What both kinds of sessions of the interface share.
#ifndef LATHE_RUNTIME_C_API_SESSION_H
#define LATHE_RUNTIME_C_API_SESSION_H

#include "runtime/c_api/Internal.h"

struct TF_Session {
  TF_Graph *graph = nullptr;
  std::unique_ptr<lathe::Session> session;
};

namespace lathe::c_api {

/// A run by names.
struct RunNames {
  std::vector<std::string> inputs, outputs, targets;
};

/// A session as the options say; NOT_FOUND for a target that is not this process.
absl::StatusOr<std::unique_ptr<Session>> makeSession(const TF_SessionOptions *options);
absl::Status readRunOptions(const TF_Buffer *buffer, RunOptions *options);
/// Runs; outputs are all set, or all null on an error. `status` is where the metadata's own failure goes.
absl::Status runNamed(Session &session, const TF_Buffer *runOptions, const RunNames &names, TF_Tensor *const *inputs, TF_Tensor **outputs,
                      TF_Buffer *runMetadata, TF_Status *status);
/// One part of a run in parts.
absl::Status partialNamed(Session &session, const char *handle, const RunNames &names, TF_Tensor *const *inputs, TF_Tensor **outputs);
/// A copy for the caller, ended by TF_DeletePRunHandle.
absl::Status giveHandle(const std::string &text, const char **handle);

/// Keeps the list of sessions that TF_Reset reaches.
void noteLive(SharedDevices devices, Session *session, bool isLive);

} // namespace lathe::c_api

#endif
