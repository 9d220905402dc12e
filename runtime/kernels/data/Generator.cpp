// GeneratorDataset: elements that a function makes of a state, which another function makes; a third one ends it.
#include "runtime/kernels/data/Dataset.h"

namespace lathe::rt {
namespace {

class GeneratorDataset : public Dataset {
public:
  GeneratorDataset(Spec spec, CapturedFunction init, CapturedFunction make, CapturedFunction end)
      : Dataset(std::move(spec)), init(std::move(init)), make(std::move(make)), end(std::move(end)) {}

  absl::StatusOr<IteratorPtr> iterate(const IteratorEnv &env) const override {
    class Iterator : public IteratorOf<GeneratorDataset> {
    public:
      using IteratorOf::IteratorOf;
      ~Iterator() override { (void)finish(); }
      absl::StatusOr<bool> next(Element &element) override {
        if (ended)
          return false;
        if (!started) {
          auto made = dataset->init.call({}, env);
          if (!made.ok())
            return made.status();
          state = *std::move(made);
          started = true;
        }
        auto result = dataset->make.call(state, env);
        if (result.ok()) {
          element = *std::move(result);
          return true;
        }
        if (result.status().code() != absl::StatusCode::kOutOfRange)
          return result.status();
        // the state's function says so: there is no more
        absl::Status status = finish();
        if (!status.ok())
          return status;
        return false;
      }

    private:
      absl::Status finish() {
        bool due = started && !ended;
        ended = true;
        return due ? dataset->end.call(state, env).status() : absl::OkStatus();
      }
      Element state;
      bool started = false, ended = false;
    };
    return IteratorPtr(new Iterator(this, env));
  }

  const CapturedFunction init, make, end;
};

class GeneratorNode : public DatasetNode {
public:
  using DatasetNode::DatasetNode;
  absl::StatusOr<std::shared_ptr<Dataset>> make(KernelContext &context) override {
    return std::make_shared<GeneratorDataset>(spec, function(context, "init_func", "init_func_other_args"),
                                              function(context, "next_func", "next_func_other_args"),
                                              function(context, "finalize_func", "finalize_func_other_args"));
  }
};
LATHE_HOST_KERNEL(GeneratorDataset, GeneratorNode);

} // namespace
} // namespace lathe::rt
