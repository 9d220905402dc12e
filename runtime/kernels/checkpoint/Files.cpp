// ReadFile, WriteFile, MatchingFiles, ShardedFilename, ShardedFilespec.
#include "base/Bytes.h"
#include "runtime/core/Elements.h"
#include "runtime/core/Kernel.h"
#include "runtime/kernels/checkpoint/Glob.h"

#include "absl/strings/str_format.h"

#include <filesystem>

namespace lathe::rt {
namespace {

absl::Status readFileOp(KernelContext &context) {
  auto name = stringScalar(context.input(0), "filename");
  if (!name.ok())
    return name.status();
  auto bytes = readFile(*name);
  if (!bytes.ok())
    return bytes.status();
  context.setOutput(0, Tensor::fromStrings({}, {*std::move(bytes)}));
  return absl::OkStatus();
}

absl::Status writeFileOp(KernelContext &context) {
  auto name = stringScalar(context.input(0), "filename");
  if (!name.ok())
    return name.status();
  auto contents = stringScalar(context.input(1), "contents");
  if (!contents.ok())
    return contents.status();
  std::error_code ignored; // writing says what is wrong
  std::filesystem::path folder = std::filesystem::path(*name).parent_path();
  if (!folder.empty())
    std::filesystem::create_directories(folder, ignored);
  return writeFile(*name, *contents);
}

absl::Status matchingFilesOp(KernelContext &context) {
  std::vector<std::string> all;
  Tensor patterns = context.input(0);
  for (const std::string &pattern : patterns.strings())
    for (std::string &name : matchingFiles(pattern))
      all.push_back(std::move(name));
  std::sort(all.begin(), all.end());
  int64_t n = static_cast<int64_t>(all.size());
  context.setOutput(0, Tensor::fromStrings({n}, std::move(all)));
  return absl::OkStatus();
}

absl::Status shardedFilename(KernelContext &context) {
  auto base = stringScalar(context.input(0), "basename");
  auto shard = integerScalar(context.input(1), "shard"), shards = integerScalar(context.input(2), "num_shards");
  for (const absl::Status &status : {base.status(), shard.status(), shards.status()})
    if (!status.ok())
      return status;
  context.setOutput(0, Tensor::fromStrings({}, {absl::StrFormat("%s-%05d-of-%05d", *base, *shard, *shards)}));
  return absl::OkStatus();
}

absl::Status shardedFilespec(KernelContext &context) {
  auto base = stringScalar(context.input(0), "basename");
  auto shards = integerScalar(context.input(1), "num_shards");
  for (const absl::Status &status : {base.status(), shards.status()})
    if (!status.ok())
      return status;
  context.setOutput(0, Tensor::fromStrings({}, {absl::StrFormat("%s-\?\?\?\?\?-of-%05d", *base, *shards)}));
  return absl::OkStatus();
}

LATHE_HOST_FUNCTION(ReadFile, readFileOp);
LATHE_HOST_FUNCTION(WriteFile, writeFileOp);
LATHE_HOST_FUNCTION(MatchingFiles, matchingFilesOp);
LATHE_HOST_FUNCTION(ShardedFilename, shardedFilename);
LATHE_HOST_FUNCTION(ShardedFilespec, shardedFilespec);

} // namespace
} // namespace lathe::rt
