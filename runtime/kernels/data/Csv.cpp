// CSVDataset (V1, V2): records of comma-separated values out of files, each column a component.
#include "base/ByteStream.h"
#include "runtime/kernels/Common.h"
#include "runtime/kernels/data/Dataset.h"

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"

namespace lathe::rt {
namespace {

/// One file by single characters.
class Characters {
public:
  explicit Characters(std::unique_ptr<ByteStream> stream) : stream(std::move(stream)) {}
  static constexpr int kEnd = -1;
  /// The next character without taking it.
  absl::StatusOr<int> peek() {
    if (at == block.size()) {
      block.clear();
      at = 0;
      LATHE_TRY(stream->read(1 << 16, block));
    }
    return at == block.size() ? kEnd : static_cast<int>(static_cast<unsigned char>(block[at]));
  }
  void take() { ++at; }

private:
  std::unique_ptr<ByteStream> stream;
  std::string block;
  size_t at = 0;
};

class CsvDataset : public Dataset {
public:
  using Dataset::Dataset;
  std::vector<std::string> paths;
  Compression compression = Compression::None;
  bool header = false, quotes = true, excludes = false;
  char delimiter = ',';
  std::string missing;
  std::vector<int64_t> columns; ///< the chosen or left out ones, rising; empty: all are read
  std::vector<Tensor> defaults;

  bool isChosen(int64_t column) const {
    return columns.empty() || std::binary_search(columns.begin(), columns.end(), column) != excludes;
  }

  absl::StatusOr<IteratorPtr> iterate(const IteratorEnv &env) const override {
    class Iterator : public IteratorOf<CsvDataset> {
    public:
      using IteratorOf::IteratorOf;
      absl::StatusOr<bool> next(Element &element) override {
        for (;;) {
          if (!file) {
            if (at == dataset->paths.size())
              return false;
            const std::string &path = dataset->paths[at++];
            LATHE_TRY_VALUE(stream, ByteStream::open(path, dataset->compression));
            file = std::make_unique<Characters>(std::move(stream));
            if (dataset->header) {
              LATHE_TRY_VALUE(any, record(nullptr));
              if (!any)
                return absl::InvalidArgumentError("Can't read header of file");
            }
          }
          std::vector<std::string> fields;
          auto any = record(&fields);
          if (!any.ok())
            return any.status();
          if (*any)
            return convert(fields, element);
          file.reset();
        }
      }

    private:
      /// The chosen fields of the next record, one more than are due at most; false at the end of the file. What is wrong with a record is said once it is read to its
      /// end, so that the next one follows.
      absl::StatusOr<bool> record(std::vector<std::string> *fields) {
        LATHE_TRY_VALUE(first, file->peek());
        if (first == Characters::kEnd)
          return false;
        absl::Status problem;
        bool ended = false;
        for (int64_t column = 0; !ended; ++column) {
          std::string text;
          LATHE_TRY(field(text, ended, problem));
          if (fields && dataset->isChosen(column) && fields->size() <= dataset->defaults.size())
            fields->push_back(std::move(text));
        }
        return problem.ok() ? absl::StatusOr<bool>(true) : problem;
      }

      /// Up to a delimiter or the end of the record, which is taken too.
      absl::Status field(std::string &text, bool &ended, absl::Status &problem) {
        LATHE_TRY_VALUE(first, file->peek());
        bool inQuotes = dataset->quotes && first == '"';
        if (inQuotes)
          file->take();
        for (;;) {
          LATHE_TRY_VALUE(c, file->peek());
          if (c == Characters::kEnd && inQuotes)
            problem.Update(absl::InvalidArgumentError("Reached end of file without closing quoted field in record"));
          if (c == Characters::kEnd || (!inQuotes && (c == '\n' || c == '\r'))) {
            ended = true;
            return endLine(c);
          }
          file->take();
          if (!inQuotes && c == static_cast<unsigned char>(dataset->delimiter))
            return absl::OkStatus();
          if (c == '"' && dataset->quotes && !inQuotes)
            problem.Update(absl::InvalidArgumentError("Unquoted fields cannot have quotes inside"));
          if (c == '"' && inQuotes) {
            LATHE_TRY_VALUE(following, file->peek());
            inQuotes = !endsField(following);
            if (!inQuotes)
              continue;
            if (following == '"')
              file->take();
            else // a field goes on to a quote that is at its end
              problem.Update(absl::InvalidArgumentError("Quote inside a string has to be escaped by another quote"));
          }
          text += static_cast<char>(c);
          constexpr size_t kMostField = size_t(1) << 30;
          if (text.size() > kMostField)
            return absl::ResourceExhaustedError("a field of a CSV file is longer than a gigabyte");
        }
      }

      bool endsField(int c) const {
        return c == Characters::kEnd || c == '\n' || c == '\r' || c == static_cast<unsigned char>(dataset->delimiter);
      }

      absl::Status endLine(int c) {
        if (c == Characters::kEnd)
          return absl::OkStatus();
        file->take();
        if (c == '\r') {
          LATHE_TRY_VALUE(following, file->peek());
          if (following == '\n')
            file->take();
        }
        return absl::OkStatus();
      }

      absl::StatusOr<bool> convert(const std::vector<std::string> &fields, Element &element) const {
        size_t wanted = dataset->defaults.size();
        if (fields.size() != wanted)
          return invalid("Expect ", wanted, " fields but have ", fields.size(), " in record");
        element.clear();
        for (size_t f = 0; f < wanted; ++f) {
          const Tensor &other = dataset->defaults[f];
          if (fields[f].empty() || fields[f] == dataset->missing) {
            if (other.numElements() != 1)
              return invalid("Field ", f, " is required but missing in record!");
            element.push_back(other.reshaped({}));
            continue;
          }
          Tensor t = Tensor::allocate(other.dtype(), {});
          if (!parse(fields[f], t))
            return invalid("Field ", f, " in record is not a valid ", dtypeName(other.dtype()), ": ", fields[f]);
          element.push_back(std::move(t));
        }
        return true;
      }

      static bool parse(const std::string &text, Tensor &t) {
        switch (t.dtype()) {
        case DType::Int32: return absl::SimpleAtoi(text, t.data<int32_t>());
        case DType::Int64: return absl::SimpleAtoi(text, t.data<int64_t>());
        case DType::Float32: return absl::SimpleAtof(absl::StripAsciiWhitespace(text), t.data<float>());
        case DType::Float64: return absl::SimpleAtod(absl::StripAsciiWhitespace(text), t.data<double>());
        default: t.mutableStrings()[0] = text; return true;
        }
      }

      size_t at = 0;
      std::unique_ptr<Characters> file;
    };
    return IteratorPtr(new Iterator(this, env));
  }
};

class CsvNode : public DatasetNode {
public:
  using DatasetNode::DatasetNode;
  absl::StatusOr<std::shared_ptr<Dataset>> make(KernelContext &context) override {
    auto dataset = std::make_shared<CsvDataset>(spec);
    LATHE_TRY_VALUE(compression, stringScalar(context.input("compression_type"), "compression_type"));
    LATHE_TRY_VALUE(kind, parseCompression(compression));
    LATHE_TRY_VALUE(delimiter, stringScalar(context.input("field_delim"), "field_delim"));
    LATHE_TRY_VALUE(missing, stringScalar(context.input("na_value"), "na_value"));
    LATHE_TRY_VALUE(buffer, number(context, "buffer_size"));
    LATHE_TRY_VALUE(header, flag(context, "header"));
    LATHE_TRY_VALUE(quotes, flag(context, "use_quote_delim"));
    Tensor paths = context.input("filenames");
    if (paths.rank() > 1)
      return invalid("`filenames` must be a scalar or a vector.");
    if (delimiter.size() != 1)
      return invalid("field_delim should be only 1 char");
    if (buffer <= 0)
      return invalid("buffer_size should be positive");
    std::vector<int64_t> chosen = integers(context.input("select_cols")), left;
    if (context.node->inputRange("exclude_cols").count)
      left = integers(context.input("exclude_cols"));
    if (!chosen.empty() && !left.empty())
      return invalid("Either select_cols or exclude_cols should be empty");
    dataset->excludes = !left.empty();
    dataset->columns = dataset->excludes ? left : chosen;
    for (size_t i = 0; i < dataset->columns.size(); ++i)
      if (dataset->columns[i] < 0 || (i && dataset->columns[i] <= dataset->columns[i - 1]))
        return invalid(dataset->excludes ? "exclude_cols" : "select_cols", " should be non-negative indices that rise");
    dataset->defaults = context.inputList("record_defaults");
    if (!chosen.empty() && chosen.size() != dataset->defaults.size())
      return invalid("select_cols should match output size");
    for (size_t i = 0; i < dataset->defaults.size(); ++i) {
      const Tensor &t = dataset->defaults[i];
      if (t.rank() > 1 || t.numElements() > 1)
        return invalid("Each record default should be at most rank 1 and have 1 element at most, found ", dimsToString(t.dims()));
      DType type = t.dtype();
      if (type != DType::Int32 && type != DType::Int64 && type != DType::Float32 && type != DType::Float64 && type != DType::String)
        return invalid("csv: data type ", dtypeName(type), " not supported in field ", i);
    }
    dataset->paths = paths.strings();
    dataset->compression = kind;
    dataset->delimiter = delimiter[0];
    dataset->missing = missing;
    dataset->header = header;
    dataset->quotes = quotes;
    return dataset;
  }
};

LATHE_HOST_KERNEL(CSVDataset, CsvNode);
LATHE_HOST_KERNEL(CSVDatasetV2, CsvNode);
LATHE_HOST_KERNEL(ExperimentalCSVDataset, CsvNode);

} // namespace
} // namespace lathe::rt
