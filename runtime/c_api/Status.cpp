// Statuses, buffers, types of elements.
#include "runtime/c_api/Internal.h"

#include "absl/strings/str_cat.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>

using namespace lathe;
using namespace lathe::c_api;

namespace lathe::c_api {

void set(TF_Status *to, const absl::Status &from) {
  if (!to)
    return;
  to->code = static_cast<TF_Code>(from.code());
  to->message.assign(from.message().data(), from.message().size());
  to->notes.clear();
}

void setInvalid(TF_Status *to, std::string_view message) { set(to, absl::InvalidArgumentError(std::string(message))); }
void setUnimplemented(TF_Status *to, std::string_view message) { set(to, absl::UnimplementedError(std::string(message))); }
bool isOk(const TF_Status *status) { return !status || status->code == TF_OK; }

void giveBytes(const std::string &bytes, TF_Buffer *to, TF_Status *status) {
  if (!present(status, "buffer", to))
    return;
  if (to->data)
    return setInvalid(status, "the output buffer is not empty");
  void *copy = std::malloc(bytes.size() ? bytes.size() : 1);
  if (!copy)
    return set(status, absl::ResourceExhaustedError(absl::StrCat("no memory for ", bytes.size(), " bytes")));
  std::memcpy(copy, bytes.data(), bytes.size());
  to->data = copy;
  to->length = bytes.size();
  to->data_deallocator = [](void *data, size_t) { std::free(data); };
}

namespace {

TF_Code codeOfErrno(int number) {
  switch (number) {
  case 0: return TF_OK;
  case EINVAL: case ENAMETOOLONG: case E2BIG: case EDESTADDRREQ: case EDOM: case EFAULT: case EILSEQ: case ENOPROTOOPT:
  case ENOTSOCK: case ENOTTY: case EPROTOTYPE: case ESPIPE: return TF_INVALID_ARGUMENT;
  case ETIMEDOUT: return TF_DEADLINE_EXCEEDED;
  case ENODEV: case ENOENT: case ENXIO: case ESRCH: return TF_NOT_FOUND;
  case EEXIST: case EADDRNOTAVAIL: case EALREADY: return TF_ALREADY_EXISTS;
  case EPERM: case EACCES: case EROFS: return TF_PERMISSION_DENIED;
  case ENOTEMPTY: case EISDIR: case ENOTDIR: case EADDRINUSE: case EBADF: case EBUSY: case ECHILD: case EISCONN: case ENOTCONN:
  case EPIPE: case ETXTBSY: return TF_FAILED_PRECONDITION;
  case ENOSPC: case EDQUOT: case EMFILE: case EMLINK: case ENFILE: case ENOBUFS: case ENODATA: case ENOMEM: case EUSERS:
    return TF_RESOURCE_EXHAUSTED;
  case EFBIG: case EOVERFLOW: case ERANGE: return TF_OUT_OF_RANGE;
  case ENOSYS: case ENOTSUP: case EAFNOSUPPORT: case EPFNOSUPPORT: case EPROTONOSUPPORT: case ESOCKTNOSUPPORT: case EXDEV:
    return TF_UNIMPLEMENTED;
  case EAGAIN: case ECONNREFUSED: case ECONNABORTED: case ECONNRESET: case EINTR: case EHOSTDOWN: case EHOSTUNREACH: case ENETDOWN:
  case ENETRESET: case ENETUNREACH: case ENOLCK: case ENOLINK: return TF_UNAVAILABLE;
  case EDEADLK: case ESTALE: return TF_ABORTED;
  case ECANCELED: return TF_CANCELLED;
  default: return TF_UNKNOWN;
  }
}

} // namespace
} // namespace lathe::c_api

extern "C" {

const char *TF_Version(void) { return "2.21.0"; }

TF_Status *TF_NewStatus(void) { return new TF_Status; }
void TF_DeleteStatus(TF_Status *s) { delete s; }

void TF_SetStatus(TF_Status *s, TF_Code code, const char *msg) {
  if (!s)
    return;
  s->code = code;
  s->message = code == TF_OK ? "" : textOf(msg);
  s->notes.clear();
}

void TF_SetPayload(TF_Status *s, const char *key, const char *value) {
  if (s && key && s->code != TF_OK)
    s->notes[key] = textOf(value);
}

void TF_ForEachPayload(const TF_Status *s, TF_PayloadVisitor visitor, void *capture) {
  if (s && visitor)
    for (auto &[key, value] : s->notes)
      visitor(key.c_str(), value.c_str(), capture);
}

void TF_SetStatusFromIOError(TF_Status *s, int error_code, const char *context) {
  TF_Code code = codeOfErrno(error_code);
  TF_SetStatus(s, code, absl::StrCat(textOf(context), "; ", std::strerror(error_code)).c_str());
}

TF_Code TF_GetCode(const TF_Status *s) { return s ? s->code : TF_OK; }
const char *TF_Message(const TF_Status *s) { return s ? s->message.c_str() : ""; }

TF_Buffer *TF_NewBuffer(void) { return new TF_Buffer{nullptr, 0, nullptr}; }

TF_Buffer *TF_NewBufferFromString(const void *proto, size_t proto_len) {
  TF_Buffer *buffer = TF_NewBuffer();
  if (proto)
    giveBytes(std::string(static_cast<const char *>(proto), proto_len), buffer, nullptr);
  return buffer;
}

void TF_DeleteBuffer(TF_Buffer *buffer) {
  if (buffer && buffer->data_deallocator)
    buffer->data_deallocator(const_cast<void *>(buffer->data), buffer->length);
  delete buffer;
}

TF_Buffer TF_GetBuffer(TF_Buffer *buffer) { return buffer ? *buffer : TF_Buffer{nullptr, 0, nullptr}; }

size_t TF_DataTypeSize(TF_DataType dt) {
  // numbers that the runtime knows, and those that are bytes to it
  int number = static_cast<int>(dt);
  if (number >= TF_FLOAT8_E5M2 && number <= TF_FLOAT4_E2M1FN)
    return 1;
  if (number <= 0 || number > TF_FLOAT4_E2M1FN)
    return 0;
  return dtypeSize(static_cast<DType>(number));
}

} // extern "C"
