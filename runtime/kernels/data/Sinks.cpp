// What takes a dataset's elements at once: ReduceDataset, DatasetToSingleElement, DatasetToTFRecord, DatasetCardinality,
// GetElementAtIndex, InitializeTableFromDataset.
#include "base/Records.h"
#include "runtime/kernels/data/Holding.h"
#include "runtime/kernels/data/Sink.h"
#include "runtime/kernels/tables/Table.h"

namespace lathe::rt {
namespace {

class Reduce : public Sink {
public:
  explicit Reduce(KernelInit &init) : Sink(init), function(init.attr<FunctionRefPtr>("f")) {}

protected:
  absl::Status consume(KernelContext &context, DatasetIterator &iterator, const IteratorEnv &env) override {
    CapturedFunction call(caller, function, context.inputList("other_arguments"));
    Element state = context.inputList("initial_state");
    for (;;) {
      Element element;
      auto any = next(iterator, env, element);
      if (!any.ok())
        return any.status();
      if (!*any)
        break;
      Element args = state;
      args.insert(args.end(), element.begin(), element.end());
      auto result = call.call(std::move(args), env);
      if (absl::IsOutOfRange(result.status()))
        break; // the function may end it
      if (!result.ok())
        return result.status();
      if (result->size() != state.size())
        return absl::InvalidArgumentError("the reducing function gives another number of components than the state has");
      state = *std::move(result);
    }
    give(context, std::move(state));
    return absl::OkStatus();
  }

private:
  FunctionRefPtr function;
};

class ToSingleElement : public Sink {
public:
  using Sink::Sink;

protected:
  absl::Status consume(KernelContext &context, DatasetIterator &iterator, const IteratorEnv &) override {
    Element first, second;
    auto any = iterator.next(first);
    if (!any.ok())
      return any.status();
    if (!*any)
      return absl::InvalidArgumentError("Dataset was empty.");
    if (absl::Status fits = expectComponents(context, first); !fits.ok())
      return fits;
    auto more = iterator.next(second);
    if (!more.ok())
      return more.status();
    if (*more)
      return absl::InvalidArgumentError("Dataset had more than one element.");
    give(context, std::move(first));
    return absl::OkStatus();
  }
};

class ElementAt : public Sink {
public:
  using Sink::Sink;

protected:
  absl::Status consume(KernelContext &context, DatasetIterator &iterator, const IteratorEnv &env) override {
    auto index = integerScalar(context.input("index"), "index");
    auto dataset = datasetFrom(context.input(0));
    for (const absl::Status &status : {index.status(), dataset.status()})
      if (!status.ok())
        return status;
    int64_t known = (*dataset)->cardinality();
    auto outside = [&](int64_t size) {
      return absl::OutOfRangeError(absl::StrCat("Index out of range [0, ", size, "):", *index));
    };
    if (*index < 0 || (known >= 0 && *index >= known))
      return outside(std::max<int64_t>(known, 0));
    for (int64_t i = 0;; ++i) {
      Element element;
      auto any = next(iterator, env, element);
      if (!any.ok())
        return any.status();
      if (!*any)
        return outside(i);
      if (i < *index)
        continue;
      if (absl::Status fits = expectComponents(context, element); !fits.ok())
        return fits;
      give(context, std::move(element));
      return absl::OkStatus();
    }
  }
};

class ToTFRecord : public Sink {
public:
  using Sink::Sink;

protected:
  absl::Status consume(KernelContext &context, DatasetIterator &iterator, const IteratorEnv &env) override {
    auto path = stringScalar(context.input("filename"), "filename");
    auto name = stringScalar(context.input("compression_type"), "compression_type");
    for (const absl::Status &status : {path.status(), name.status()})
      if (!status.ok())
        return status;
    auto compression = parseCompression(*name);
    if (!compression.ok())
      return compression.status();
    auto writer = RecordWriter::create(*path, *compression);
    if (!writer.ok())
      return writer.status();
    for (;;) {
      Element element;
      auto any = next(iterator, env, element);
      if (!any.ok())
        return any.status();
      if (!*any)
        return (*writer)->close();
      if (element.size() != 1 || element[0].dtype() != DType::String || element[0].numElements() != 1)
        return absl::InvalidArgumentError("DatasetToTFRecord expects elements of one scalar string");
      if (absl::Status written = (*writer)->write(element[0].strings()[0]); !written.ok())
        return written;
    }
  }
};

/// Keys and values of a table, a pair an element.
class ToTable : public Sink {
public:
  explicit ToTable(KernelInit &init) : Sink(init, 1) {}

protected:
  absl::Status consume(KernelContext &context, DatasetIterator &iterator, const IteratorEnv &env) override {
    LATHE_TRY_VALUE(table, context.resource<Table>(0));
    std::vector<Tensor> parts[2];
    Holding holding;
    int64_t count = 0;
    for (;;) {
      Element element;
      LATHE_TRY_VALUE(any, next(iterator, env, element));
      if (!any)
        break;
      if (element.size() != 2 || element[0].numElements() != element[1].numElements())
        return invalid("Expected a key and a value in each element of the dataset");
      if (element[0].dtype() != table->keyType || element[1].dtype() != table->valueType)
        return invalid("Conflicting key/value dtypes ", dtypeName(element[0].dtype()), "->", dtypeName(element[1].dtype()), " with ",
                       dtypeName(table->keyType), "-", dtypeName(table->valueType), " for a table");
      LATHE_TRY(holding.add(element));
      count += element[0].numElements();
      for (int k = 0; k < 2; ++k)
        parts[k].push_back(std::move(element[k]));
    }
    Tensor joined[2];
    for (int k = 0; k < 2; ++k) {
      LATHE_TRY_VALUE(made, context.allocate(k ? table->valueType : table->keyType, {count}));
      int64_t at = 0;
      for (const Tensor &part : parts[k]) {
        copyElements(made, at, part, 0, part.numElements());
        at += part.numElements();
      }
      joined[k] = made;
    }
    return table->initialize(joined[0], joined[1]);
  }
};

absl::Status cardinality(KernelContext &context) {
  auto dataset = datasetFrom(context.input(0));
  if (!dataset.ok())
    return dataset.status();
  context.setOutput(0, Tensor::scalar<int64_t>(DType::Int64, (*dataset)->cardinality()));
  return absl::OkStatus();
}

LATHE_HOST_KERNEL(ExperimentalDatasetToTFRecord, ToTFRecord);
LATHE_HOST_KERNEL(InitializeTableFromDataset, ToTable);
LATHE_HOST_FUNCTION(ExperimentalDatasetCardinality, cardinality);
LATHE_HOST_KERNEL(ReduceDataset, Reduce);
LATHE_HOST_KERNEL(DatasetToSingleElement, ToSingleElement);
LATHE_HOST_KERNEL(DatasetToTFRecord, ToTFRecord);
LATHE_HOST_KERNEL(GetElementAtIndex, ElementAt);
LATHE_HOST_FUNCTION(DatasetCardinality, cardinality);

} // namespace
} // namespace lathe::rt
