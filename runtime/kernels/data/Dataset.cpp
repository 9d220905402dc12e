#include "runtime/kernels/data/Dataset.h"

namespace lathe::rt {

absl::StatusOr<Element> CapturedFunction::call(Element args, const IteratorEnv &env) const {
  if (!caller || !function)
    return absl::FailedPreconditionError("there is no function library");
  args.insert(args.end(), captured.begin(), captured.end());
  return caller->callAndWait(*function, std::move(args), env.cancellation);
}

void CapturedFunction::callAsync(Element args, const IteratorEnv &env, FunctionCaller::Done done) const {
  if (!caller || !function)
    return done(absl::FailedPreconditionError("there is no function library"));
  args.insert(args.end(), captured.begin(), captured.end());
  caller->call(*function, std::move(args), env.cancellation, std::move(done));
}

Tensor datasetTensor(DatasetPtr dataset) {
  return Tensor::fromObjects(DType::Variant, {}, {std::const_pointer_cast<Dataset>(dataset)});
}

absl::StatusOr<DatasetPtr> datasetFrom(const Tensor &t) {
  if (t.dtype() == DType::Variant && t.numElements() == 1)
    if (auto dataset = std::dynamic_pointer_cast<const Dataset>(t.objects()[0]))
      return dataset;
  return absl::InvalidArgumentError("Dataset tensor must be a scalar of dtype DT_VARIANT that holds a dataset");
}

DatasetNode::DatasetNode(KernelInit &init) : caller(init.functions()) {
  for (const char *name : {"output_types", "Toutput_types"})
    if (init.hasAttr(name))
      spec.types = init.attr<std::vector<DType>>(name);
  if (init.hasAttr("output_shapes"))
    spec.shapes = init.attr<std::vector<PartialShape>>("output_shapes");
}

absl::Status DatasetNode::compute(KernelContext &context) {
  auto dataset = make(context);
  if (!dataset.ok())
    return dataset.status();
  context.setOutput(0, datasetTensor(*std::move(dataset)));
  return absl::OkStatus();
}

CapturedFunction DatasetNode::function(KernelContext &context, const char *attr, const char *captured) const {
  const auto *ref = attrOf<FunctionRefPtr>(*context.node, attr);
  return CapturedFunction(caller, ref ? *ref : nullptr, context.inputList(captured));
}

absl::StatusOr<int64_t> DatasetNode::number(KernelContext &context, const char *name) {
  return integerScalar(context.input(name), name);
}

absl::StatusOr<bool> DatasetNode::flag(KernelContext &context, const char *name) {
  Tensor t = context.input(name);
  if (t.dtype() != DType::Bool || t.numElements() != 1)
    return absl::InvalidArgumentError(absl::StrCat(name, " must be a bool scalar"));
  return *t.data<bool>();
}

} // namespace lathe::rt
