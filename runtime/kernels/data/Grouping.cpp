// GroupByWindowDataset, GroupByReducerDataset: elements put together by a key that a function gives.
#include "runtime/kernels/Common.h"
#include "runtime/kernels/data/Holding.h"

#include <map>

namespace lathe::rt {
namespace {

/// The one integer that a function gives.
absl::StatusOr<int64_t> integerResult(const absl::StatusOr<Element> &result, const char *what) {
  if (!result.ok())
    return result.status();
  if (result->size() != 1 || (*result)[0].dtype() != DType::Int64 || (*result)[0].numElements() != 1)
    return invalid("`", what, "` must return a scalar int64.");
  return *(*result)[0].data<int64_t>();
}

Tensor keyTensor(int64_t key) { return Tensor::scalar<int64_t>(DType::Int64, key); }

/// Once a key has as many elements as its window, a function makes a dataset of them, which is given out; at the end of the
/// input what is left follows by rising key.
class GroupByWindowDataset : public UnaryDataset {
public:
  GroupByWindowDataset(Spec spec, DatasetPtr input, CapturedFunction key, CapturedFunction reduce, CapturedFunction size)
      : UnaryDataset(std::move(spec), std::move(input)), keyOf(std::move(key)), reduce(std::move(reduce)),
        sizeOf(std::move(size)) {}
  int64_t cardinality() const override { return kUnknown; }
  absl::StatusOr<IteratorPtr> iterate(const IteratorEnv &env) const override {
    class Iterator : public UnaryIterator<GroupByWindowDataset> {
    public:
      using UnaryIterator::UnaryIterator;
      absl::StatusOr<bool> next(Element &element) override {
        for (;;) {
          LATHE_TRY(checkCancelled(env));
          if (open) {
            auto any = open->next(element);
            if (!any.ok() || *any)
              return any;
            open.reset();
          }
          if (inputEnded && groups.empty())
            return false;
          int64_t key = 0;
          if (inputEnded) {
            key = groups.begin()->first;
          } else {
            Element item;
            LATHE_TRY_VALUE(any, input->next(item));
            inputEnded = !any;
            if (inputEnded)
              continue;
            LATHE_TRY_VALUE(found, integerResult(dataset->keyOf.call(item, env), "key_func"));
            key = found;
            LATHE_TRY_VALUE(full, add(key, std::move(item)));
            if (!full)
              continue;
          }
          LATHE_TRY(flush(key));
        }
      }

    private:
      /// Whether the element completes its group.
      absl::StatusOr<bool> add(int64_t key, Element item) {
        auto size = sizes.find(key);
        if (size == sizes.end()) {
          LATHE_TRY_VALUE(asked, integerResult(dataset->sizeOf.call({keyTensor(key)}, env), "window_size_func"));
          if (asked <= 0)
            return invalid("Window size must be greater than zero, but got ", asked, ".");
          LATHE_TRY(holding.add({keyTensor(key)}));
          size = sizes.emplace(key, asked).first;
        }
        LATHE_TRY(holding.add(item));
        std::vector<Element> &group = groups[key];
        group.push_back(std::move(item));
        return static_cast<int64_t>(group.size()) >= size->second;
      }
      absl::Status flush(int64_t key) {
        auto group = groups.find(key);
        std::vector<Element> members = std::move(group->second);
        groups.erase(group); // also where the function fails: what follows must come to an end
        for (const Element &member : members)
          holding.drop(member);
        Tensor list = datasetTensor(makeList(dataset->input->spec, std::move(members)));
        LATHE_TRY_VALUE(result, dataset->reduce.call({keyTensor(key), list}, env));
        if (result.size() != 1)
          return invalid("`reduce_func` must return a single scalar of dtype DT_VARIANT.");
        LATHE_TRY_VALUE(made, datasetFrom(result[0]));
        LATHE_TRY_VALUE(iterator, made->iterate(env));
        open = std::move(iterator);
        return absl::OkStatus();
      }
      std::map<int64_t, int64_t> sizes;
      std::map<int64_t, std::vector<Element>> groups;
      Holding holding;
      IteratorPtr open;
      bool inputEnded = false;
    };
    return iterateInput<Iterator>(this, env);
  }
  const CapturedFunction keyOf, reduce, sizeOf;
};

/// Each key has a state that the elements change; at the end of the input a function makes an element of each, by rising key.
class GroupByReducerDataset : public UnaryDataset {
public:
  GroupByReducerDataset(Spec spec, DatasetPtr input, CapturedFunction key, CapturedFunction init, CapturedFunction reduce,
                        CapturedFunction finish)
      : UnaryDataset(std::move(spec), std::move(input)), keyOf(std::move(key)), init(std::move(init)),
        reduce(std::move(reduce)), finish(std::move(finish)) {}
  int64_t cardinality() const override { return kUnknown; }
  absl::StatusOr<IteratorPtr> iterate(const IteratorEnv &env) const override {
    class Iterator : public UnaryIterator<GroupByReducerDataset> {
    public:
      using UnaryIterator::UnaryIterator;
      absl::StatusOr<bool> next(Element &element) override {
        while (!inputEnded) {
          LATHE_TRY(checkCancelled(env));
          Element item;
          LATHE_TRY_VALUE(any, input->next(item));
          inputEnded = !any;
          if (any)
            LATHE_TRY(add(std::move(item)));
        }
        if (states.empty())
          return false;
        Element state = std::move(states.begin()->second);
        states.erase(states.begin());
        LATHE_TRY_VALUE(result, dataset->finish.call(std::move(state), env));
        element = std::move(result);
        return true;
      }

    private:
      absl::Status add(Element item) {
        LATHE_TRY_VALUE(key, integerResult(dataset->keyOf.call(item, env), "key_func"));
        auto state = states.find(key);
        if (state == states.end()) {
          LATHE_TRY_VALUE(first, dataset->init.call({keyTensor(key)}, env));
          LATHE_TRY(holding.add(first));
          state = states.emplace(key, std::move(first)).first;
        }
        Element args = state->second;
        args.insert(args.end(), item.begin(), item.end());
        LATHE_TRY_VALUE(result, dataset->reduce.call(std::move(args), env));
        if (result.size() != state->second.size())
          return invalid("`reduce_func` gives ", result.size(), " components, but the state has ", state->second.size());
        state->second = std::move(result);
        return absl::OkStatus();
      }
      std::map<int64_t, Element> states;
      Holding holding;
      bool inputEnded = false;
    };
    return iterateInput<Iterator>(this, env);
  }
  const CapturedFunction keyOf, init, reduce, finish;
};

class GroupByWindowNode : public DatasetNode {
public:
  using DatasetNode::DatasetNode;
  absl::StatusOr<std::shared_ptr<Dataset>> make(KernelContext &context) override {
    LATHE_TRY_VALUE(input, datasetFrom(context.input(0)));
    return std::make_shared<GroupByWindowDataset>(spec, input, function(context, "key_func", "key_func_other_arguments"),
                                                  function(context, "reduce_func", "reduce_func_other_arguments"),
                                                  function(context, "window_size_func", "window_size_func_other_arguments"));
  }
};

class GroupByReducerNode : public DatasetNode {
public:
  using DatasetNode::DatasetNode;
  absl::StatusOr<std::shared_ptr<Dataset>> make(KernelContext &context) override {
    LATHE_TRY_VALUE(input, datasetFrom(context.input(0)));
    return std::make_shared<GroupByReducerDataset>(spec, input, function(context, "key_func", "key_func_other_arguments"),
                                                   function(context, "init_func", "init_func_other_arguments"),
                                                   function(context, "reduce_func", "reduce_func_other_arguments"),
                                                   function(context, "finalize_func", "finalize_func_other_arguments"));
  }
};

LATHE_HOST_KERNEL(GroupByWindowDataset, GroupByWindowNode);
LATHE_HOST_KERNEL(ExperimentalGroupByWindowDataset, GroupByWindowNode);
LATHE_HOST_KERNEL(GroupByReducerDataset, GroupByReducerNode);
LATHE_HOST_KERNEL(ExperimentalGroupByReducerDataset, GroupByReducerNode);

} // namespace
} // namespace lathe::rt
