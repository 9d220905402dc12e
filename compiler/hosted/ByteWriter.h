// Values in the bytes of a hosted object (runtime/hosted/Graph.h has the layout).
#ifndef LATHE_COMPILER_HOSTED_BYTEWRITER_H
#define LATHE_COMPILER_HOSTED_BYTEWRITER_H

#include "base/Tensor.h"
#include "compiler/frontend/Model.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <cstring>

namespace lathe::hosted {

/// As HostedAttr in runtime/hosted/Graph.h.
enum Kind : uint8_t { Empty, Int, Float, Bool, Text, Type, Shape, TensorKind, List };

class ByteWriter {
public:
  std::string bytes;

  template <typename T>
  void number(T value) {
    char raw[sizeof(T)];
    std::memcpy(raw, &value, sizeof(T));
    bytes.append(raw, sizeof(T));
  }
  void count(size_t n) { number(static_cast<uint32_t>(n)); }
  void text(llvm::StringRef s) {
    count(s.size());
    bytes.append(s.data(), s.size());
  }
  /// Any negative size is an unknown one.
  void shape(std::optional<llvm::ArrayRef<int64_t>> dims) {
    number(dims ? static_cast<int32_t>(dims->size()) : int32_t(-1));
    if (dims)
      for (int64_t d : *dims)
        number(d < 0 ? int64_t(-1) : d);
  }
  void type(DType dtype) { number(static_cast<uint32_t>(dtype)); }
  void spec(const TensorSpec &spec) {
    text(spec.name);
    text(spec.tensor);
    type(spec.dtype);
    shape(spec.dims ? std::optional(llvm::ArrayRef<int64_t>(*spec.dims)) : std::nullopt);
  }
  void tensor(const Tensor &value) {
    type(value.dtype());
    shape(llvm::ArrayRef<int64_t>(value.dims()));
    if (value.dtype() == DType::String)
      for (const std::string &s : value.strings())
        text(s);
    else if (value.sizeBytes())
      bytes.append(static_cast<const char *>(value.data()), static_cast<size_t>(value.sizeBytes()));
  }
};

} // namespace lathe::hosted

#endif
