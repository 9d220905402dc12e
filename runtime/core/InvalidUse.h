// The op table does not say which types and counts an op takes, so a graph may name others than its kernel knows. What kernels
// read their inputs with throws this then; whoever calls a kernel makes INVALID_ARGUMENT of it.
#ifndef LATHE_RUNTIME_CORE_INVALIDUSE_H
#define LATHE_RUNTIME_CORE_INVALIDUSE_H

#include <stdexcept>

namespace lathe::rt {

class InvalidUse : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

} // namespace lathe::rt

#endif
