// IdentityReader, WholeFileReader, TextLineReader, FixedLengthRecordReader, TFRecordReader, and their V2 forms.
#include "base/Records.h"
#include "runtime/kernels/readers/Reader.h"

namespace lathe::rt {
namespace {

/// Gives each piece of work itself.
class IdentityReader : public Reader {
public:
  std::string describe() const override { return "IdentityReader"; }

protected:
  absl::Status start() override {
    given = false;
    return absl::OkStatus();
  }
  absl::StatusOr<bool> next(std::string &key, std::string &value) override {
    if (given)
      return false;
    key = value = work;
    given = true;
    return true;
  }
  void clear() override { given = false; }
  bool hasSimpleState() const override { return true; }
  bool isOneRecord() const override { return true; }
  bool given = false;
};

class WholeFileReader : public IdentityReader {
public:
  std::string describe() const override { return "WholeFileReader"; }

protected:
  absl::StatusOr<bool> next(std::string &key, std::string &value) override {
    if (given)
      return false;
    auto file = ByteStream::open(work, Compression::None);
    if (!file.ok())
      return file.status();
    if (absl::Status read = (*file)->read(UINT64_MAX, value); !read.ok())
      return read;
    key = work;
    given = true;
    return true;
  }
};

class TextLineReader : public Reader {
public:
  explicit TextLineReader(int64_t skip) : skip(skip) {}
  std::string describe() const override { return "TextLineReader"; }

protected:
  absl::Status start() override {
    auto opened = ByteStream::open(work, Compression::None);
    if (!opened.ok())
      return opened.status();
    file = *std::move(opened);
    std::string ignored;
    for (line = 0; line < skip; ++line) {
      auto any = file->readLine(ignored, ByteStream::Returns::DropLast);
      if (!any.ok())
        return any.status();
      if (!*any)
        break;
    }
    return absl::OkStatus();
  }
  absl::StatusOr<bool> next(std::string &key, std::string &value) override {
    auto any = file->readLine(value, ByteStream::Returns::DropLast);
    if (any.ok() && *any)
      key = absl::StrCat(work, ":", ++line);
    return any;
  }
  void clear() override { file.reset(); }

private:
  const int64_t skip;
  std::unique_ptr<ByteStream> file;
  int64_t line = 0;
};

struct FixedLengths {
  int64_t header = 0, record = 0, footer = 0, hop = 0;
  Compression compression = Compression::None;
};

/// Records `record` bytes long, `hop` bytes apart. The end is found by reading `footer` bytes ahead, so that compressed
/// files need no size.
class FixedLengthReader : public Reader {
public:
  explicit FixedLengthReader(FixedLengths lengths) : lengths(lengths) {}
  std::string describe() const override { return "FixedLengthRecordReader"; }

protected:
  absl::Status start() override {
    auto opened = ByteStream::open(work, lengths.compression);
    if (!opened.ok())
      return opened.status();
    file = *std::move(opened);
    ahead.clear();
    number = 0;
    return file->skip(static_cast<uint64_t>(lengths.header)).status();
  }
  absl::StatusOr<bool> next(std::string &key, std::string &value) override {
    if (number > 0) {
      size_t hop = static_cast<size_t>(lengths.hop), drop = std::min(hop, ahead.size());
      ahead.erase(0, drop);
      if (auto skipped = file->skip(hop - drop); !skipped.ok())
        return skipped.status();
    }
    size_t wanted = static_cast<size_t>(lengths.record + lengths.footer);
    std::string more;
    if (ahead.size() < wanted) {
      if (absl::Status read = file->read(wanted - ahead.size(), more); !read.ok())
        return read;
      ahead += more;
    }
    if (ahead.size() < wanted)
      return false;
    value = ahead.substr(0, static_cast<size_t>(lengths.record));
    key = absl::StrCat(work, ":", number++);
    return true;
  }
  void clear() override { file.reset(); }

private:
  const FixedLengths lengths;
  std::unique_ptr<ByteStream> file;
  std::string ahead;
  int64_t number = 0;
};

class RecordFileReader : public Reader {
public:
  explicit RecordFileReader(Compression compression) : compression(compression) {}
  std::string describe() const override { return "TFRecordReader"; }

protected:
  absl::Status start() override {
    auto opened = RecordReader::open(work, compression);
    if (!opened.ok())
      return opened.status();
    file = *std::move(opened);
    return absl::OkStatus();
  }
  absl::StatusOr<bool> next(std::string &key, std::string &value) override {
    key = absl::StrCat(work, ":", file->offset());
    return file->next(value);
  }
  void clear() override { file.reset(); }

private:
  const Compression compression;
  std::unique_ptr<RecordReader> file;
};

/// A node that makes a reader of class T, from nothing or from what it reads of the attributes.
template <typename T>
struct SimpleNode : ResourceKernel<Reader> {
  using ResourceKernel::ResourceKernel;
  absl::StatusOr<std::shared_ptr<Reader>> create(KernelContext &) override { return std::make_shared<T>(); }
};

struct TextLineNode : ResourceKernel<Reader> {
  explicit TextLineNode(KernelInit &init) : ResourceKernel(init), skip(init.attr<int64_t>("skip_header_lines")) {
    if (skip < 0)
      init.fail(absl::InvalidArgumentError(absl::StrCat("skip_header_lines must be >= 0 not ", skip)));
  }
  absl::StatusOr<std::shared_ptr<Reader>> create(KernelContext &) override {
    return std::make_shared<TextLineReader>(skip);
  }
  int64_t skip;
};

struct FixedLengthNode : ResourceKernel<Reader> {
  explicit FixedLengthNode(KernelInit &init) : ResourceKernel(init) {
    lengths = {init.attr<int64_t>("header_bytes"), init.attr<int64_t>("record_bytes"), init.attr<int64_t>("footer_bytes"),
               init.attr<int64_t>("hop_bytes")};
    constexpr int64_t kMost = INT64_C(1) << 32;
    for (int64_t n : {lengths.header, lengths.record, lengths.footer, lengths.hop})
      if (n < 0 || n > kMost)
        init.fail(absl::InvalidArgumentError(absl::StrCat("header, record, footer and hop bytes must be >= 0, found ", n)));
    if (lengths.record == 0)
      init.fail(absl::InvalidArgumentError("record_bytes must be > 0"));
    if (lengths.hop == 0)
      lengths.hop = lengths.record;
    if (init.hasAttr("encoding")) {
      auto compression = parseCompression(init.attr<std::string>("encoding"));
      if (compression.ok())
        lengths.compression = *compression;
      else
        init.fail(compression.status());
    }
  }
  absl::StatusOr<std::shared_ptr<Reader>> create(KernelContext &) override {
    return std::make_shared<FixedLengthReader>(lengths);
  }
  FixedLengths lengths;
};

struct RecordNode : ResourceKernel<Reader> {
  explicit RecordNode(KernelInit &init) : ResourceKernel(init) {
    auto parsed = parseCompression(init.attr<std::string>("compression_type"));
    if (parsed.ok())
      compression = *parsed;
    else
      init.fail(parsed.status());
  }
  absl::StatusOr<std::shared_ptr<Reader>> create(KernelContext &) override {
    return std::make_shared<RecordFileReader>(compression);
  }
  Compression compression = Compression::None;
};

LATHE_HOST_KERNEL(IdentityReader, SimpleNode<IdentityReader>);
LATHE_HOST_KERNEL(IdentityReaderV2, SimpleNode<IdentityReader>);
LATHE_HOST_KERNEL(WholeFileReader, SimpleNode<WholeFileReader>);
LATHE_HOST_KERNEL(WholeFileReaderV2, SimpleNode<WholeFileReader>);
LATHE_HOST_KERNEL(TextLineReader, TextLineNode);
LATHE_HOST_KERNEL(TextLineReaderV2, TextLineNode);
LATHE_HOST_KERNEL(FixedLengthRecordReader, FixedLengthNode);
LATHE_HOST_KERNEL(FixedLengthRecordReaderV2, FixedLengthNode);
LATHE_HOST_KERNEL(TFRecordReader, RecordNode);
LATHE_HOST_KERNEL(TFRecordReaderV2, RecordNode);

} // namespace
} // namespace lathe::rt
