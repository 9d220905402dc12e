// GenerateVocabRemapping, LoadAndRemapMatrix: rows and columns of a saved matrix in the order of another vocabulary.
#include "base/Bytes.h"
#include "base/TensorBundle.h"
#include "runtime/kernels/Common.h"
#include "runtime/kernels/checkpoint/V1Format.h"

#include <filesystem>
#include <unordered_map>

namespace lathe::rt {
namespace {

/// The lines of a vocabulary, as many as `limit` (-1: all).
absl::StatusOr<std::vector<std::string>> linesOf(const std::string &path, int64_t limit) {
  auto text = readFile(path);
  if (!text.ok())
    return absl::NotFoundError(absl::StrCat(path, "; ", text.status().message()));
  std::vector<std::string> lines;
  for (size_t at = 0; at < text->size() && (limit < 0 || static_cast<int64_t>(lines.size()) < limit);) {
    size_t end = std::min(text->find('\n', at), text->size());
    lines.push_back(text->substr(at, end - at));
    if (!lines.back().empty() && lines.back().back() == '\r')
      lines.back().pop_back();
    at = end + 1;
  }
  if (lines.empty())
    return absl::OutOfRangeError(absl::StrCat("there is no line in ", path));
  if (limit >= 0 && static_cast<int64_t>(lines.size()) < limit)
    return invalid("Invalid vocab_size in ", path, ": expected ", limit, " but got ", lines.size());
  return lines;
}

class VocabRemapping : public HostKernel {
public:
  explicit VocabRemapping(KernelInit &init)
      : offset(init.attr<int64_t>("new_vocab_offset")), count(init.attr<int64_t>("num_new_vocab")),
        oldSize(init.attr<int64_t>("old_vocab_size")) {}
  absl::Status compute(KernelContext &context) override {
    LATHE_TRY_VALUE(newPath, oneString(context.input(0), "new_vocab_file"));
    LATHE_TRY_VALUE(oldPath, oneString(context.input(1), "old_vocab_file"));
    LATHE_TRY_VALUE(names, linesOf(newPath, -1));
    LATHE_TRY_VALUE(olds, linesOf(oldPath, oldSize));
    std::unordered_map<std::string_view, int64_t> places;
    for (size_t i = 0; i < olds.size(); ++i)
      if (auto [it, fresh] = places.emplace(olds[i], static_cast<int64_t>(i)); !fresh)
        return absl::FailedPreconditionError(absl::StrCat("HashTable has different value for same key. Key ", olds[i], " has ", it->second,
                                                          " and trying to add value ", i));
    int64_t size = static_cast<int64_t>(names.size());
    if (offset > size || count > size - offset)
      return invalid("lookup table size must be at least as large as new_vocab_offset + num_new_vocab: ", size, " lines for ", offset,
                     " + ", count);
    LATHE_TRY_VALUE(remapping, context.allocateOutput(0, {count}));
    int32_t present = 0;
    for (int64_t i = 0; i < count; ++i) {
      auto found = places.find(names[static_cast<size_t>(offset + i)]);
      remapping.data<int64_t>()[i] = found == places.end() ? -1 : found->second;
      present += found != places.end();
    }
    context.setOutput(1, Tensor::scalar<int32_t>(DType::Int32, present));
    return absl::OkStatus();
  }

private:
  int64_t offset, count, oldSize;
};
LATHE_HOST_KERNEL(GenerateVocabRemapping, VocabRemapping);

/// A tensor of a checkpoint of either format.
absl::StatusOr<Tensor> savedTensor(const std::string &prefix, const std::string &name) {
  auto missing = [&] { return absl::NotFoundError(absl::StrCat("Failed to find tensor '", name, "' in checkpoint ", prefix)); };
  std::error_code ignored;
  if (!std::filesystem::exists(prefix + ".index", ignored) && std::filesystem::exists(prefix, ignored)) {
    LATHE_TRY_VALUE(old, V1Reader::open(prefix));
    return old.shapeOf(name) ? old.read(name, nullptr) : missing();
  }
  LATHE_TRY_VALUE(bundle, TensorBundleReader::open(prefix));
  return bundle->find(name) ? bundle->read(name) : missing();
}

/// Where each row (or column) comes from; one that nobody has twice.
absl::Status checkRemapping(const std::vector<int64_t> &from, int64_t size, const char *what) {
  std::unordered_map<int64_t, size_t> taken;
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i] < 0)
      continue;
    if (from[i] >= size)
      return absl::InternalError(absl::StrCat(what, " remapping says ", from[i], ", but the old matrix has ", size));
    if (auto [it, fresh] = taken.emplace(from[i], i); !fresh)
      return absl::UnimplementedError(absl::StrCat("Old ID ", from[i], " is mapped to both new ID ", it->second, " and ", i,
                                                   ", which is not currently supported."));
  }
  return absl::OkStatus();
}

class RemapMatrix : public HostKernel {
public:
  explicit RemapMatrix(KernelInit &init) : rows(init.attr<int64_t>("num_rows")), columns(init.attr<int64_t>("num_cols")) {}
  absl::Status compute(KernelContext &context) override {
    auto sizeOf = [](const char *what, int64_t found, const char *attr, int64_t wanted) {
      return invalid("Size of ", what, " is ", found, " instead of being equal to ", attr, "=", wanted);
    };
    std::vector<int64_t> rowFrom = intsOf(context.input("row_remapping")), columnFrom = intsOf(context.input("col_remapping"));
    if (static_cast<int64_t>(rowFrom.size()) != rows)
      return sizeOf("row_remapping", static_cast<int64_t>(rowFrom.size()), "num_rows", rows);
    if (!columnFrom.empty() && static_cast<int64_t>(columnFrom.size()) != columns)
      return sizeOf("col_remapping", static_cast<int64_t>(columnFrom.size()), "num_cols", columns);
    LATHE_TRY_VALUE(prefix, oneString(context.input("ckpt_path"), "ckpt_path"));
    LATHE_TRY_VALUE(name, oneString(context.input("old_tensor_name"), "old_tensor_name"));
    LATHE_TRY_VALUE(old, savedTensor(prefix, name));
    if (old.dtype() != DType::Float32)
      return invalid("the tensor '", name, "' is of type ", dtypeName(old.dtype()), ", expected float32");
    if (old.rank() != 2)
      return invalid("Old tensor must be a matrix (rank 2), found shape ", dimsToString(old.dims()));
    if (columnFrom.empty() && old.dim(1) != columns)
      return invalid("the old matrix has ", old.dim(1), " columns instead of num_cols=", columns, ", and there is no col_remapping");
    LATHE_TRY(checkRemapping(rowFrom, old.dim(0), "the row"));
    LATHE_TRY(checkRemapping(columnFrom, old.dim(1), "the column"));
    Tensor initial = context.input("initializing_values");
    LATHE_TRY_VALUE(out, context.allocateOutput(0, {rows, columns}));
    int64_t missing = 0;
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c) {
        int64_t row = rowFrom[static_cast<size_t>(r)], column = columnFrom.empty() ? c : columnFrom[static_cast<size_t>(c)];
        float &to = out.data<float>()[r * columns + c];
        if (row >= 0 && column >= 0)
          to = old.data<float>()[row * old.dim(1) + column];
        else if (missing++ < initial.numElements())
          to = initial.data<float>()[missing - 1];
      }
    if (missing != initial.numElements())
      return invalid("initializing_values contained ", initial.numElements(), " elements, but ", missing, " missing values remain");
    return absl::OkStatus();
  }

private:
  int64_t rows, columns;
};
LATHE_HOST_KERNEL(LoadAndRemapMatrix, RemapMatrix);

} // namespace
} // namespace lathe::rt
