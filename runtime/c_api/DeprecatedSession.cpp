// Sessions with a graph of their own, by names; and TF_Reset, which reaches all sessions of the process.
#include "runtime/c_api/Session.h"

#include "proto/graph.pb.h"
#include "runtime/session/Core.h"

#include "absl/strings/str_cat.h"

using namespace lathe;
using namespace lathe::c_api;

struct TF_DeprecatedSession {
  std::unique_ptr<Session> session;
};

namespace {

struct Live {
  std::mutex mutex;
  std::map<Session *, SharedDevices> sessions;
};

Live &live() {
  static Live all;
  return all;
}

absl::Status strings(const char **texts, int n, const char *what, std::vector<std::string> *out) {
  if (n < 0 || (n > 0 && !texts))
    return absl::InvalidArgumentError(absl::StrCat("the ", what, " are missing"));
  for (int i = 0; i < n; ++i) {
    if (!texts[i])
      return absl::InvalidArgumentError(absl::StrCat("number ", i, " of the ", what, " is missing"));
    out->push_back(texts[i]);
  }
  return absl::OkStatus();
}

absl::Status namesOf(const char **inputs, int ninputs, const char **outputs, int noutputs, const char **targets, int ntargets, RunNames *names) {
  absl::Status s = strings(inputs, ninputs, "input names", &names->inputs);
  if (s.ok())
    s = strings(outputs, noutputs, "output names", &names->outputs);
  return s.ok() ? strings(targets, ntargets, "target names", &names->targets) : s;
}

} // namespace

namespace lathe::c_api {

void noteLive(SharedDevices devices, Session *session, bool isLive) {
  std::lock_guard<std::mutex> lock(live().mutex);
  if (isLive)
    live().sessions[session] = std::move(devices);
  else
    live().sessions.erase(session);
}

} // namespace lathe::c_api

extern "C" {

TF_DeprecatedSession *TF_NewDeprecatedSession(const TF_SessionOptions *options, TF_Status *status) {
  auto session = makeSession(options);
  set(status, session.status());
  if (!session.ok())
    return nullptr;
  auto *made = new TF_DeprecatedSession{*std::move(session)};
  noteLive(made->session->devices(), made->session.get(), true);
  return made;
}

void TF_CloseDeprecatedSession(TF_DeprecatedSession *session, TF_Status *status) {
  if (present(status, "session", session))
    set(status, session->session->Close());
}

void TF_DeleteDeprecatedSession(TF_DeprecatedSession *session, TF_Status *status) {
  setOk(status);
  if (session)
    noteLive(nullptr, session->session.get(), false);
  delete session;
}

void TF_Reset(const TF_SessionOptions *opt, const char **containers, int ncontainers, TF_Status *status) {
  setOk(status);
  std::vector<std::string> names;
  if (absl::Status s = strings(containers, ncontainers, "containers", &names); !s.ok())
    return set(status, s);
  auto probe = makeSession(opt);
  if (!probe.ok())
    return set(status, probe.status());
  if (names.empty())
    names.push_back(rt::ResourceManager::kDefaultContainer);
  std::lock_guard<std::mutex> lock(live().mutex);
  for (auto &[session, devices] : live().sessions) {
    for (auto &device : devices->devices)
      for (const std::string &name : names)
        device->resources().clear(name);
    (void)session->Close();
  }
}

void TF_ExtendGraph(TF_DeprecatedSession *session, const void *proto, size_t proto_len, TF_Status *status) {
  tf::GraphDef def;
  if (present(status, "session", session) && parseMessage(proto, proto_len, "GraphDef", &def, status))
    set(status, session->session->Extend(def));
}

void TF_Run(TF_DeprecatedSession *session, const TF_Buffer *run_options, const char **input_names, TF_Tensor **inputs, int ninputs,
            const char **output_names, TF_Tensor **outputs, int noutputs, const char **target_oper_names, int ntargets,
            TF_Buffer *run_metadata, TF_Status *status) {
  if (!present(status, "session", session))
    return;
  RunNames names;
  absl::Status s = namesOf(input_names, ninputs, output_names, noutputs, target_oper_names, ntargets, &names);
  if (s.ok())
    s = runNamed(*session->session, run_options, names, inputs, outputs, run_metadata, status);
  set(status, s);
}

void TF_PRunSetup(TF_DeprecatedSession *session, const char **input_names, int ninputs, const char **output_names, int noutputs,
                  const char **target_oper_names, int ntargets, const char **handle, TF_Status *status) {
  if (!present(status, "session, handle", session, handle))
    return;
  *handle = nullptr;
  RunNames names;
  std::string text;
  absl::Status s = namesOf(input_names, ninputs, output_names, noutputs, target_oper_names, ntargets, &names);
  if (s.ok())
    s = session->session->PRunSetup(names.inputs, names.outputs, names.targets, &text);
  if (s.ok())
    s = giveHandle(text, handle);
  set(status, s);
}

void TF_PRun(TF_DeprecatedSession *session, const char *handle, const char **input_names, TF_Tensor **inputs, int ninputs,
             const char **output_names, TF_Tensor **outputs, int noutputs, const char **target_oper_names, int ntargets, TF_Status *status) {
  if (!present(status, "session", session))
    return;
  RunNames names;
  absl::Status s = namesOf(input_names, ninputs, output_names, noutputs, target_oper_names, ntargets, &names);
  if (s.ok())
    s = partialNamed(*session->session, handle, names, inputs, outputs);
  set(status, s);
}

//===----------------------------------------------------------------------===//
// Devices
//===----------------------------------------------------------------------===//

} // extern "C"

struct TF_DeviceList {
  struct Item {
    std::string name, type;
    uint64_t incarnation;
  };
  std::vector<Item> items;
};

namespace {

TF_DeviceList *listDevices(Session &session) {
  auto *list = new TF_DeviceList;
  for (auto &device : session.devices()->devices)
    list->items.push_back({device->name(), device->parsedName().type.value_or("CPU"), device->incarnation()});
  return list;
}

const TF_DeviceList::Item *itemOf(const TF_DeviceList *list, int index, TF_Status *status) {
  if (!present(status, "list", list))
    return nullptr;
  if (index >= 0 && index < static_cast<int>(list->items.size()))
    return &list->items[index];
  setInvalid(status, absl::StrCat("there is no device ", index, " among ", list->items.size()));
  return nullptr;
}

} // namespace

extern "C" {

TF_DeviceList *TF_SessionListDevices(TF_Session *session, TF_Status *status) {
  return present(status, "session", session) ? listDevices(*session->session) : nullptr;
}
TF_DeviceList *TF_DeprecatedSessionListDevices(TF_DeprecatedSession *session, TF_Status *status) {
  return present(status, "session", session) ? listDevices(*session->session) : nullptr;
}
void TF_DeleteDeviceList(TF_DeviceList *list) { delete list; }
int TF_DeviceListCount(const TF_DeviceList *list) { return list ? static_cast<int>(list->items.size()) : 0; }

const char *TF_DeviceListName(const TF_DeviceList *list, int index, TF_Status *status) {
  auto *item = itemOf(list, index, status);
  return item ? item->name.c_str() : nullptr;
}
const char *TF_DeviceListType(const TF_DeviceList *list, int index, TF_Status *status) {
  auto *item = itemOf(list, index, status);
  return item ? item->type.c_str() : nullptr;
}
int64_t TF_DeviceListMemoryBytes(const TF_DeviceList *list, int index, TF_Status *status) {
  // what is said of a CPU, whose memory is the machine's
  return itemOf(list, index, status) ? INT64_C(1) << 28 : -1;
}
uint64_t TF_DeviceListIncarnation(const TF_DeviceList *list, int index, TF_Status *status) {
  auto *item = itemOf(list, index, status);
  return item ? item->incarnation : 0;
}

} // extern "C"
