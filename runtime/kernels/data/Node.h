// Nodes that datasets run by themselves, so that what an op does is written once.
#ifndef LATHE_RUNTIME_KERNELS_DATA_NODE_H
#define LATHE_RUNTIME_KERNELS_DATA_NODE_H

#include "runtime/kernels/Common.h"
#include "runtime/kernels/data/Dataset.h"

namespace lathe::rt {

/// A node without functions and resources.
class Node {
public:
  static absl::StatusOr<std::shared_ptr<Node>> make(const char *op, AttrMap attrs) {
    auto made = std::make_shared<Node>();
    made->info.name = made->info.op = op;
    made->info.attrs = std::move(attrs);
    LATHE_TRY(resolveNode(made->info));
    KernelInit init(made->info, nullptr, nullptr);
    LATHE_TRY_VALUE(kernel, makeKernel(init));
    made->kernel = std::move(kernel);
    return made;
  }
  absl::StatusOr<Element> run(const Element &inputs, const IteratorEnv &env) const {
    KernelContext context;
    context.node = &info;
    context.inputs.assign(inputs.begin(), inputs.end());
    context.outputs.resize(info.outputTypes.size());
    context.cancellation = env.cancellation;
    LATHE_TRY(kernel->compute(context));
    LATHE_TRY(context.outputsKnown());
    Element outputs;
    for (const Value &value : context.outputs)
      outputs.push_back(value.tensor);
    return outputs;
  }

private:
  NodeInfo info;
  std::unique_ptr<HostKernel> kernel;
};
using NodePtr = std::shared_ptr<Node>;

} // namespace lathe::rt

#endif
