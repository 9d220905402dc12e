// SaveDataset (V1, V2), LoadDataset: elements in files as TensorFlow has them. FOLDER/snapshot.metadata names a run, whose folder
// has one for each shard; its TFRecords are the components of the elements, one after the other. SnapshotDataset (V1, V2).
#include "base/Bytes.h"
#include "base/Records.h"
#include "runtime/kernels/Common.h"
#include "runtime/kernels/Wire.h"
#include "runtime/kernels/data/Holding.h"
#include "runtime/kernels/data/Sink.h"

#include <chrono>
#include <filesystem>
#include <random>

namespace lathe::rt {
namespace {

namespace fs = std::filesystem;

std::string metadataPath(const std::string &folder) { return folder + "/snapshot.metadata"; }

absl::Status makeFolder(const std::string &path) {
  std::error_code error;
  fs::create_directories(path, error);
  return error ? absl::PermissionDeniedError(absl::StrCat("cannot make the folder '", path, "': ", error.message())) : absl::OkStatus();
}

/// What snapshot.metadata says (a SnapshotMetadataRecord).
struct Metadata {
  std::string run;
  int64_t version = 2, elements = Dataset::kUnknown;
  std::vector<DType> types;
  bool isFinal = true;

  std::string bytes() const {
    std::string out, packed;
    writeBytesField(out, 2, run);
    auto now = std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch());
    writeVarintField(out, 3, static_cast<uint64_t>(now.count()));
    writeVarintField(out, 4, static_cast<uint64_t>(version));
    for (DType type : types)
      writeVarint(packed, static_cast<uint64_t>(type));
    writeBytesField(out, 5, packed);
    writeVarintField(out, 6, static_cast<uint64_t>(elements));
    writeVarintField(out, 1000, 1);
    return out;
  }

  static absl::StatusOr<Metadata> read(const std::string &folder) {
    auto bytes = readFile(metadataPath(folder), 1 << 24);
    if (!bytes.ok())
      return absl::NotFoundError(absl::StrCat("Could not find metadata file [", metadataPath(folder), "]"));
    Metadata made;
    made.isFinal = false;
    WireReader reader(*bytes);
    std::vector<int64_t> types;
    while (reader.next())
      switch (reader.field()) {
      case 2: made.run = std::string(reader.bytes()); break;
      case 4: made.version = static_cast<int64_t>(reader.bits()); break;
      case 5: appendVarints(reader, types); break;
      case 6: made.elements = static_cast<int64_t>(reader.bits()); break;
      case 1000: made.isFinal = reader.bits() != 0; break;
      }
    if (reader.failed())
      return absl::DataLossError(absl::StrCat("damaged metadata in ", metadataPath(folder)));
    for (int64_t type : types)
      made.types.push_back(static_cast<DType>(type));
    // the name of a folder beside the file, and no way out of it
    if (made.run.empty() || made.run.find('/') != std::string::npos || made.run == "." || made.run == "..")
      return absl::DataLossError(absl::StrCat("the metadata in ", metadataPath(folder), " names no run"));
    return made;
  }
};

/// Writes elements; which shard, a function says.
class Writer {
public:
  Writer(std::string folder, Compression compression, std::optional<CapturedFunction> shardOf)
      : folder(std::move(folder)), compression(compression), shardOf(std::move(shardOf)) {
    std::random_device device;
    metadata.run = std::to_string(static_cast<uint64_t>(device()) << 32 | device());
    metadata.elements = 0;
  }

  absl::Status write(const Element &element, const IteratorEnv &env) {
    int64_t shard = 0;
    if (shardOf) {
      LATHE_TRY_VALUE(result, shardOf->call(element, env));
      if (result.size() != 1 || result[0].dtype() != DType::Int64 || result[0].numElements() != 1)
        return invalid("`shard_func` must return a scalar int64.");
      shard = *result[0].data<int64_t>();
    }
    constexpr int64_t kMostShards = 1000; // files that are open at once
    if (shard < 0 || shard >= kMostShards)
      return invalid("`shard_func` gives ", shard, ", expected a number from 0 to ", kMostShards - 1);
    std::unique_ptr<RecordWriter> &file = files[shard];
    if (!file) {
      char name[64];
      std::snprintf(name, sizeof name, "/%08lld.shard", static_cast<long long>(shard));
      std::string path = folder + "/" + metadata.run + name;
      LATHE_TRY(makeFolder(path));
      LATHE_TRY_VALUE(made, RecordWriter::create(path + "/00000000.snapshot", compression));
      file = std::move(made);
    }
    for (const Tensor &t : element) {
      LATHE_TRY_VALUE(bytes, writeTensor(t, true));
      LATHE_TRY(file->write(bytes));
    }
    ++metadata.elements;
    return absl::OkStatus();
  }

  absl::Status finish(const std::vector<DType> &types) {
    LATHE_TRY(makeFolder(folder + "/" + metadata.run));
    for (auto &[shard, file] : files)
      LATHE_TRY(file->close());
    metadata.types = types;
    return writeFile(metadataPath(folder), metadata.bytes());
  }

private:
  std::string folder;
  Compression compression;
  std::optional<CapturedFunction> shardOf;
  Metadata metadata;
  std::map<int64_t, std::unique_ptr<RecordWriter>> files;
};

struct SaveSpec {
  explicit SaveSpec(KernelInit &init)
      : compression(init.attr<std::string>("compression")), shards(init.attr<bool>("use_shard_func")),
        function(init.attr<FunctionRefPtr>("shard_func")), caller(init.functions()) {}
  absl::StatusOr<std::unique_ptr<Writer>> writer(KernelContext &context) const {
    LATHE_TRY_VALUE(path, stringScalar(context.input("path"), "path"));
    LATHE_TRY_VALUE(kind, parseCompression(compression));
    std::optional<CapturedFunction> shardOf;
    if (shards)
      shardOf.emplace(caller, function, context.inputList("shard_func_other_args"));
    return std::make_unique<Writer>(path, kind, std::move(shardOf));
  }
  std::string compression;
  bool shards;
  FunctionRefPtr function;
  std::shared_ptr<FunctionCaller> caller;
};

class Save : public Sink {
public:
  explicit Save(KernelInit &init) : Sink(init), spec(init) {}

protected:
  absl::Status consume(KernelContext &context, DatasetIterator &iterator, const IteratorEnv &env) override {
    LATHE_TRY_VALUE(dataset, datasetFrom(context.input(0)));
    LATHE_TRY_VALUE(writer, spec.writer(context));
    for (;;) {
      Element element;
      LATHE_TRY_VALUE(any, next(iterator, env, element));
      if (!any)
        return writer->finish(dataset->spec.types);
      LATHE_TRY(writer->write(element, env));
    }
  }

private:
  SaveSpec spec;
};
LATHE_HOST_KERNEL(SaveDataset, Save);

/// Writes what passes, and is finished at the end of its input.
class SavingDataset : public UnaryDataset {
public:
  using Make = std::function<absl::StatusOr<std::unique_ptr<Writer>>()>;
  SavingDataset(Spec spec, DatasetPtr input, Make make) : UnaryDataset(std::move(spec), std::move(input)), make(std::move(make)) {}
  absl::StatusOr<IteratorPtr> iterate(const IteratorEnv &env) const override {
    class Iterator : public UnaryIterator<SavingDataset> {
    public:
      using UnaryIterator::UnaryIterator;
      absl::StatusOr<bool> next(Element &element) override {
        if (ended)
          return false;
        if (!writer) {
          LATHE_TRY_VALUE(made, dataset->make());
          writer = std::move(made);
        }
        LATHE_TRY_VALUE(any, input->next(element));
        ended = !any;
        if (ended)
          LATHE_TRY(writer->finish(dataset->input->spec.types));
        else
          LATHE_TRY(writer->write(element, env));
        return !ended;
      }
      std::unique_ptr<Writer> writer;
      bool ended = false;
    };
    return iterateInput<Iterator>(this, env);
  }
  const Make make;
};

class SavingNode : public DatasetNode {
public:
  explicit SavingNode(KernelInit &init) : DatasetNode(init), saving(init) {}
  absl::StatusOr<std::shared_ptr<Dataset>> make(KernelContext &context) override {
    LATHE_TRY_VALUE(input, datasetFrom(context.input(0)));
    LATHE_TRY_VALUE(path, stringScalar(context.input("path"), "path"));
    LATHE_TRY_VALUE(kind, parseCompression(saving.compression));
    std::optional<CapturedFunction> shardOf;
    if (saving.shards)
      shardOf = function(context, "shard_func", "shard_func_other_args");
    return std::make_shared<SavingDataset>(spec, input, [path = path, kind = kind, shardOf] {
      return absl::StatusOr<std::unique_ptr<Writer>>(std::make_unique<Writer>(path, kind, shardOf));
    });
  }

private:
  SaveSpec saving;
};
LATHE_HOST_KERNEL(SaveDatasetV2, SavingNode);

/// The elements of one shard: the files of its folder by their names.
class ShardDataset : public Dataset {
public:
  ShardDataset(Spec spec, std::vector<std::string> paths, Compression compression)
      : Dataset(std::move(spec)), paths(std::move(paths)), compression(compression) {}
  absl::StatusOr<IteratorPtr> iterate(const IteratorEnv &env) const override {
    class Iterator : public IteratorOf<ShardDataset> {
    public:
      using IteratorOf::IteratorOf;
      absl::StatusOr<bool> next(Element &element) override {
        const std::vector<DType> &types = dataset->spec.types;
        for (;;) {
          if (!file) {
            if (at == dataset->paths.size())
              return false;
            LATHE_TRY_VALUE(opened, RecordReader::open(dataset->paths[at++], dataset->compression));
            file = std::move(opened);
          }
          element.clear();
          std::string bytes;
          while (element.size() < types.size()) {
            LATHE_TRY_VALUE(any, file->next(bytes));
            if (!any)
              break;
            LATHE_TRY_VALUE(t, readTensor(bytes));
            if (t.dtype() != types[element.size()])
              return invalid("component ", element.size(), " is of type ", dtypeName(t.dtype()), ", expected ",
                             dtypeName(types[element.size()]));
            element.push_back(std::move(t));
          }
          if (element.size() == types.size())
            return true;
          if (!element.empty())
            return absl::DataLossError("a file ends within an element");
          file.reset();
        }
      }
      size_t at = 0;
      std::unique_ptr<RecordReader> file;
    };
    return IteratorPtr(new Iterator(this, env));
  }
  const std::vector<std::string> paths;
  const Compression compression;
};

/// Entries of a folder with that ending, sorted.
std::vector<std::string> entriesOf(const std::string &folder, const char *ending) {
  std::vector<std::string> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    if (entry->path().extension() == ending)
      found.push_back(entry->path().string());
  std::sort(found.begin(), found.end());
  return found;
}

/// What a function makes of the dataset of all shards.
class LoadedDataset : public Dataset {
public:
  LoadedDataset(Spec spec, Metadata metadata, std::vector<Element> shards, CapturedFunction reader)
      : Dataset(std::move(spec)), metadata(std::move(metadata)), shards(std::move(shards)), reader(std::move(reader)) {}
  int64_t cardinality() const override { return metadata.elements; }
  absl::StatusOr<IteratorPtr> iterate(const IteratorEnv &env) const override {
    class Iterator : public IteratorOf<LoadedDataset> {
    public:
      using IteratorOf::IteratorOf;
      absl::StatusOr<bool> next(Element &element) override {
        if (!input) {
          Spec kind{{DType::Variant}, {PartialShape(std::vector<int64_t>())}};
          LATHE_TRY_VALUE(result, dataset->reader.call({datasetTensor(makeList(kind, dataset->shards))}, env));
          if (result.size() != 1)
            return invalid("reader_func returns more than one argument.");
          LATHE_TRY_VALUE(made, datasetFrom(result[0]));
          LATHE_TRY_VALUE(opened, made->iterate(env));
          input = std::move(opened);
        }
        return input->next(element);
      }
      IteratorPtr input;
    };
    return IteratorPtr(new Iterator(this, env));
  }
  const Metadata metadata;
  const std::vector<Element> shards;
  const CapturedFunction reader;
};

class LoadNode : public DatasetNode {
public:
  explicit LoadNode(KernelInit &init) : DatasetNode(init), compression(init.attr<std::string>("compression")) {}
  absl::StatusOr<std::shared_ptr<Dataset>> make(KernelContext &context) override {
    LATHE_TRY_VALUE(path, stringScalar(context.input("path"), "path"));
    LATHE_TRY_VALUE(kind, parseCompression(compression));
    LATHE_TRY_VALUE(metadata, Metadata::read(path));
    if (!metadata.isFinal || metadata.version != 2)
      return absl::FailedPreconditionError(absl::StrCat("what was saved in ", path, " is not finished, or of another format"));
    if (metadata.types != spec.types)
      return invalid("what was saved in ", path, " has other types than output_types");
    std::vector<Element> shards;
    for (const std::string &folder : entriesOf(path + "/" + metadata.run, ".shard"))
      shards.push_back({datasetTensor(std::make_shared<ShardDataset>(spec, entriesOf(folder, ".snapshot"), kind))});
    return std::make_shared<LoadedDataset>(spec, metadata, std::move(shards), function(context, "reader_func", "reader_func_other_args"));
  }

private:
  std::string compression;
};
LATHE_HOST_KERNEL(LoadDataset, LoadNode);

/// What TensorFlow keeps of a dataset is found again by a hash of its graph. Here the elements are made anew each time.
class SnapshotNode : public DatasetNode {
public:
  explicit SnapshotNode(KernelInit &init) : DatasetNode(init) {
    if (init.hasAttr("mode") && init.attr<std::string>("mode") == "read")
      init.fail(absl::UnimplementedError("snapshots are not kept in files: mode 'read' has nothing to read"));
  }
  absl::StatusOr<std::shared_ptr<Dataset>> make(KernelContext &context) override {
    LATHE_TRY_VALUE(input, datasetFrom(context.input(0)));
    struct Same : UnaryDataset {
      using UnaryDataset::UnaryDataset;
      absl::StatusOr<IteratorPtr> iterate(const IteratorEnv &env) const override { return input->iterate(env); }
    };
    return std::make_shared<Same>(spec, input);
  }
};
LATHE_HOST_KERNEL(SnapshotDataset, SnapshotNode);
LATHE_HOST_KERNEL(SnapshotDatasetV2, SnapshotNode);

} // namespace
} // namespace lathe::rt
