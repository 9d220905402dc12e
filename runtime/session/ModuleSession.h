// A session over a compiled module.
#ifndef LATHE_RUNTIME_SESSION_MODULESESSION_H
#define LATHE_RUNTIME_SESSION_MODULESESSION_H

#include "runtime/session/Core.h"

namespace lathe::rt {

/// Names are the user's keys ("image"), or TensorFlow's ("image:0", "image"). The entry is the one that a target names, else
/// the first that has all fetches. Variables start with their initial values.
std::shared_ptr<SessionCore> makeModuleSession(const lathe_module *module, int threads);

} // namespace lathe::rt

#endif
