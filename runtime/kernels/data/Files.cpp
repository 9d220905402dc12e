// TFRecordDataset(V2), TextLineDataset, FixedLengthRecordDataset(V2), MatchingFilesDataset: strings out of files, one file
// after the other.
#include "base/Records.h"
#include "runtime/kernels/checkpoint/Glob.h"
#include "runtime/kernels/data/Dataset.h"

namespace lathe::rt {
namespace {

/// One file being read.
class FileSource {
public:
  virtual ~FileSource() = default;
  virtual absl::StatusOr<bool> next(std::string &record) = 0;
};

class FilesDataset : public Dataset {
public:
  using Open = std::function<absl::StatusOr<std::unique_ptr<FileSource>>(size_t file, const std::string &path)>;
  FilesDataset(std::vector<std::string> paths, Open open)
      : Dataset({{DType::String}, {PartialShape(std::vector<int64_t>())}}), paths(std::move(paths)), open(std::move(open)) {}

  absl::StatusOr<IteratorPtr> iterate(const IteratorEnv &env) const override {
    class Iterator : public IteratorOf<FilesDataset> {
    public:
      using IteratorOf::IteratorOf;
      absl::StatusOr<bool> next(Element &element) override {
        for (;;) {
          if (!source) {
            if (at == dataset->paths.size())
              return false;
            auto opened = dataset->open(at, dataset->paths[at]);
            ++at; // a file that cannot be opened is passed over by whoever ignores errors
            if (!opened.ok())
              return opened.status();
            source = *std::move(opened);
          }
          std::string record;
          auto any = source->next(record);
          if (any.ok() && *any) {
            element = {Tensor::fromStrings({}, {std::move(record)})};
            return true;
          }
          source.reset();
          if (!any.ok())
            return any.status();
        }
      }
      size_t at = 0;
      std::unique_ptr<FileSource> source;
    };
    return IteratorPtr(new Iterator(this, env));
  }
  const std::vector<std::string> paths;
  const Open open;
};

absl::StatusOr<Compression> compressionInput(KernelContext &context) {
  if (context.node->inputRange("compression_type").count == 0)
    return Compression::None;
  auto name = stringScalar(context.input("compression_type"), "compression_type");
  if (!name.ok())
    return name.status();
  return parseCompression(*name);
}

class RecordNode : public DatasetNode {
public:
  using DatasetNode::DatasetNode;
  absl::StatusOr<std::shared_ptr<Dataset>> make(KernelContext &context) override {
    struct Source : FileSource {
      std::unique_ptr<RecordReader> reader;
      absl::StatusOr<bool> next(std::string &record) override { return reader->next(record); }
    };
    Tensor paths = context.input("filenames");
    auto compression = compressionInput(context);
    if (!compression.ok())
      return compression.status();
    std::vector<int64_t> offsets;
    if (context.node->inputRange("byte_offsets").count)
      offsets = integers(context.input("byte_offsets"));
    if (!offsets.empty() && offsets.size() != paths.strings().size())
      return absl::InvalidArgumentError(absl::StrCat("there are ", offsets.size(), " byte_offsets for ",
                                                     paths.numElements(), " files"));
    return std::make_shared<FilesDataset>(
        paths.strings(),
        [compression = *compression, offsets](size_t file, const std::string &path) -> absl::StatusOr<std::unique_ptr<FileSource>> {
          auto source = std::make_unique<Source>();
          auto reader = RecordReader::open(path, compression);
          if (!reader.ok())
            return reader.status();
          source->reader = *std::move(reader);
          if (!offsets.empty())
            if (absl::Status skipped = source->reader->skipTo(static_cast<uint64_t>(offsets[file])); !skipped.ok())
              return skipped;
          return std::unique_ptr<FileSource>(std::move(source));
        });
  }
};

class TextLineNode : public DatasetNode {
public:
  using DatasetNode::DatasetNode;
  absl::StatusOr<std::shared_ptr<Dataset>> make(KernelContext &context) override {
    struct Source : FileSource {
      std::unique_ptr<ByteStream> stream;
      absl::StatusOr<bool> next(std::string &line) override {
        return stream->readLine(line, ByteStream::Returns::DropAll);
      }
    };
    auto compression = compressionInput(context);
    if (!compression.ok())
      return compression.status();
    return std::make_shared<FilesDataset>(
        context.input("filenames").strings(),
        [compression = *compression](size_t, const std::string &path) -> absl::StatusOr<std::unique_ptr<FileSource>> {
          auto source = std::make_unique<Source>();
          auto stream = ByteStream::open(path, compression);
          if (!stream.ok())
            return stream.status();
          source->stream = *std::move(stream);
          return std::unique_ptr<FileSource>(std::move(source));
        });
  }
};

/// Records end `footer` bytes before the end of the file, found by reading ahead; what does not fill a record is an
/// error.
class FixedLengthNode : public DatasetNode {
public:
  using DatasetNode::DatasetNode;
  struct Source : FileSource {
    std::unique_ptr<ByteStream> stream;
    std::string path, ahead;
    size_t record = 0, footer = 0;
    absl::StatusOr<bool> next(std::string &out) override {
      std::string more;
      if (absl::Status read = stream->read(record + footer - ahead.size(), more); !read.ok())
        return read;
      ahead += more;
      if (ahead.size() <= footer)
        return false;
      if (ahead.size() < record + footer)
        return absl::InvalidArgumentError(absl::StrCat("Excluding the header and footer, input file \"", path,
                                                       "\" has body length that is not an exact multiple of the record length (",
                                                       record, " bytes)."));
      out = ahead.substr(0, record);
      ahead.erase(0, record);
      return true;
    }
  };
  absl::StatusOr<std::shared_ptr<Dataset>> make(KernelContext &context) override {
    auto header = number(context, "header_bytes"), record = number(context, "record_bytes"),
         footer = number(context, "footer_bytes");
    auto compression = compressionInput(context);
    for (const absl::Status &status : {header.status(), record.status(), footer.status(), compression.status()})
      if (!status.ok())
        return status;
    constexpr int64_t kMost = INT64_C(1) << 32;
    if (*header < 0 || *record <= 0 || *footer < 0 || *record > kMost || *footer > kMost)
      return absl::InvalidArgumentError("`header_bytes` and `footer_bytes` must be >= 0 and `record_bytes` > 0");
    return std::make_shared<FilesDataset>(
        context.input("filenames").strings(),
        [=](size_t, const std::string &path) -> absl::StatusOr<std::unique_ptr<FileSource>> {
          auto source = std::make_unique<Source>();
          auto stream = ByteStream::open(path, *compression);
          if (!stream.ok())
            return stream.status();
          source->stream = *std::move(stream);
          source->path = path;
          source->record = static_cast<size_t>(*record);
          source->footer = static_cast<size_t>(*footer);
          if (auto skipped = source->stream->skip(static_cast<uint64_t>(*header)); !skipped.ok())
            return skipped.status();
          return std::unique_ptr<FileSource>(std::move(source));
        });
  }
};

class MatchingNode : public DatasetNode {
public:
  using DatasetNode::DatasetNode;
  absl::StatusOr<std::shared_ptr<Dataset>> make(KernelContext &context) override {
    std::vector<Element> names;
    Tensor patterns = context.input(0);
    for (const std::string &pattern : patterns.strings())
      for (std::string &name : matchingFiles(pattern))
        names.push_back({Tensor::fromStrings({}, {std::move(name)})});
    if (names.empty())
      return absl::NotFoundError("Don't find any matched files");
    return makeList({{DType::String}, {PartialShape(std::vector<int64_t>())}}, std::move(names));
  }
};

LATHE_HOST_KERNEL(TFRecordDataset, RecordNode);
LATHE_HOST_KERNEL(TFRecordDatasetV2, RecordNode);
LATHE_HOST_KERNEL(TextLineDataset, TextLineNode);
LATHE_HOST_KERNEL(FixedLengthRecordDataset, FixedLengthNode);
LATHE_HOST_KERNEL(FixedLengthRecordDatasetV2, FixedLengthNode);
LATHE_HOST_KERNEL(MatchingFilesDataset, MatchingNode);
LATHE_HOST_KERNEL(ExperimentalMatchingFilesDataset, MatchingNode);

} // namespace
} // namespace lathe::rt
