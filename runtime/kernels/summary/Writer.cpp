// Writers of event files: SummaryWriter names one, CreateSummaryFileWriter opens its file, Write*Summary add events, and
// FlushSummaryWriter and CloseSummaryWriter end them. A file is TFRecords of Event messages.
#include "runtime/kernels/summary/Summary.h"

#include "base/ProtoWire.h"
#include "base/Records.h"

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <unistd.h>

namespace lathe::rt {
namespace summary {
namespace {

double now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

/// An Event of one field beside time and step.
std::string event(int64_t step, uint32_t field, std::string_view bytes) {
  std::string out;
  writeDouble(out, 1, now());
  if (step)
    writeVarintField(out, 2, static_cast<uint64_t>(step));
  writeBytesField(out, field, bytes);
  return out;
}
constexpr uint32_t kVersion = 3, kGraph = 4, kSummary = 5;

/// An event file, once it is opened.
class EventWriter : public Resource {
public:
  std::string describe() const override { return "SummaryWriter"; }

  /// Opens a file in a folder, which is made; nothing where one is open.
  absl::Status open(const std::string &folder, int64_t queue, int64_t millis, const std::string &suffix) {
    std::lock_guard<std::mutex> lock(mutex);
    if (file)
      return absl::OkStatus();
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error)
      return absl::PermissionDeniedError(absl::StrCat("cannot make the folder '", folder, "': ", error.message()));
    char host[256] = "localhost";
    gethostname(host, sizeof host - 1);
    char seconds[32];
    std::snprintf(seconds, sizeof seconds, "%010lld", static_cast<long long>(now()));
    LATHE_TRY_VALUE(made, RecordWriter::create(absl::StrCat(folder, "/events.out.tfevents.", seconds, ".", host, suffix), Compression::None));
    file = std::move(made);
    mostWaiting = queue;
    longest = std::chrono::milliseconds(millis);
    lastFlush = std::chrono::steady_clock::now();
    LATHE_TRY(file->write(event(0, kVersion, "brain.Event:2")));
    return file->flush();
  }

  absl::Status write(const std::string &bytes) {
    std::lock_guard<std::mutex> lock(mutex);
    if (!file)
      return absl::FailedPreconditionError("the summary writer has no open file");
    LATHE_TRY(file->write(bytes));
    if (++waiting <= mostWaiting && std::chrono::steady_clock::now() - lastFlush < longest)
      return absl::OkStatus();
    return flushed();
  }

  absl::Status flush() {
    std::lock_guard<std::mutex> lock(mutex);
    return file ? flushed() : absl::OkStatus();
  }

  absl::Status close() {
    std::lock_guard<std::mutex> lock(mutex);
    absl::Status status = file ? file->close() : absl::OkStatus();
    file.reset();
    return status;
  }

private:
  absl::Status flushed() {
    waiting = 0;
    lastFlush = std::chrono::steady_clock::now();
    return file->flush();
  }

  std::mutex mutex;
  std::unique_ptr<RecordWriter> file;
  int64_t waiting = 0, mostWaiting = 0;
  std::chrono::milliseconds longest{0};
  std::chrono::steady_clock::time_point lastFlush;
};

class SummaryWriter : public ResourceKernel<EventWriter> {
public:
  using ResourceKernel::ResourceKernel;
  absl::StatusOr<std::shared_ptr<EventWriter>> create(KernelContext &) override { return std::make_shared<EventWriter>(); }
};
LATHE_HOST_KERNEL(SummaryWriter, SummaryWriter);

absl::Status createFileWriter(KernelContext &context) {
  LATHE_TRY_VALUE(writer, context.resource<EventWriter>(0));
  LATHE_TRY_VALUE(folder, oneString(context.input(1), "logdir"));
  LATHE_TRY_VALUE(queue, oneInt(context.input(2), "max_queue"));
  LATHE_TRY_VALUE(millis, oneInt(context.input(3), "flush_millis"));
  LATHE_TRY_VALUE(suffix, oneString(context.input(4), "filename_suffix"));
  return writer->open(folder, queue, millis, suffix);
}
LATHE_HOST_FUNCTION(CreateSummaryFileWriter, createFileWriter);

absl::Status flushWriter(KernelContext &context) {
  LATHE_TRY_VALUE(writer, context.resource<EventWriter>(0));
  return writer->flush();
}
LATHE_HOST_FUNCTION(FlushSummaryWriter, flushWriter);

absl::Status closeWriter(KernelContext &context) {
  LATHE_TRY_VALUE(writer, context.resource<EventWriter>(0));
  return writer->close();
}
LATHE_HOST_FUNCTION(CloseSummaryWriter, closeWriter);

/// Writes what `make` makes of the tag (input 2) as an event of the step (input 1).
template <typename Make>
absl::Status writeTagged(KernelContext &context, int tagInput, Make &&make) {
  LATHE_TRY_VALUE(writer, context.resource<EventWriter>(0));
  LATHE_TRY_VALUE(step, oneInt(context.input(1), "step"));
  LATHE_TRY_VALUE(tag, oneString(context.input(tagInput), "tag"));
  absl::StatusOr<std::string> bytes = make(tag);
  if (!bytes.ok())
    return bytes.status();
  return writer->write(event(step, kSummary, *bytes));
}

absl::Status writeScalar(KernelContext &context) {
  if (context.input(3).numElements() != 1)
    return invalid("expected one number, found ", dimsToString(context.input(3).dims()));
  return writeTagged(context, 2, [&](const std::string &tag) -> absl::StatusOr<std::string> {
    return scalar(tag, static_cast<float>(realAt(context.input(3), 0)));
  });
}
LATHE_HOST_FUNCTION(WriteScalarSummary, writeScalar);

absl::Status writeHistogram(KernelContext &context) {
  return writeTagged(context, 2, [&](const std::string &tag) { return histogram(tag, context.input(3)); });
}
LATHE_HOST_FUNCTION(WriteHistogramSummary, writeHistogram);

absl::Status writeImage(KernelContext &context) {
  return writeTagged(context, 2, [&](const std::string &tag) {
    return images(tag, context.input(3), context.input(4), *attrOf<int64_t>(*context.node, "max_images"));
  });
}
LATHE_HOST_FUNCTION(WriteImageSummary, writeImage);

absl::Status writeAudio(KernelContext &context) {
  if (context.input(4).numElements() != 1)
    return invalid("sample_rate must be a scalar");
  return writeTagged(context, 2, [&](const std::string &tag) {
    return sounds(tag, context.input(3), context.input(4).data<float>()[0], *attrOf<int64_t>(*context.node, "max_outputs"));
  });
}
LATHE_HOST_FUNCTION(WriteAudioSummary, writeAudio);

absl::Status writeTensorSummary(KernelContext &context) {
  LATHE_TRY_VALUE(metadata, oneString(context.input(4), "summary_metadata"));
  return writeTagged(context, 3, [&](const std::string &tag) { return tensor(tag, context.input(2), metadata, false); });
}
LATHE_HOST_FUNCTION(WriteSummary, writeTensorSummary);

/// Messages that come as they are: each element of a tensor of strings is an event of its own.
absl::Status writeMessages(KernelContext &context, uint32_t field) {
  LATHE_TRY_VALUE(writer, context.resource<EventWriter>(0));
  LATHE_TRY_VALUE(step, oneInt(context.input(1), "step"));
  Tensor messages = context.input(2);
  for (const std::string &bytes : messages.strings()) {
    if (!isMessage(bytes))
      return invalid("expected a serialised message, found ", bytes.size(), " bytes that are none");
    LATHE_TRY(writer->write(event(step, field, bytes)));
  }
  return absl::OkStatus();
}
absl::Status writeRaw(KernelContext &context) { return writeMessages(context, kSummary); }
LATHE_HOST_FUNCTION(WriteRawProtoSummary, writeRaw);

/// An event that another writer made.
absl::Status importEvent(KernelContext &context) {
  LATHE_TRY_VALUE(writer, context.resource<EventWriter>(0));
  LATHE_TRY_VALUE(bytes, oneString(context.input(1), "event"));
  if (!isMessage(bytes))
    return absl::DataLossError("Bad tf.Event binary proto tensor string.");
  return writer->write(bytes);
}
LATHE_HOST_FUNCTION(ImportEvent, importEvent);

absl::Status writeGraph(KernelContext &context) { return writeMessages(context, kGraph); }
LATHE_HOST_FUNCTION(WriteGraphSummary, writeGraph);

} // namespace
} // namespace summary
} // namespace lathe::rt
