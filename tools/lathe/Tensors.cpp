#include "tools/lathe/Tensors.h"

#include "base/Npz.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <cstring>
#include <random>

namespace lathe::cli {

absl::StatusOr<NamedTensors> readFeeds(const std::vector<std::string> &feeds, const std::string &npz) {
  NamedTensors all;
  if (!npz.empty()) {
    auto read = readNpz(npz);
    if (!read.ok())
      return read.status();
    for (auto &[name, tensor] : *read)
      all.emplace_back(name, std::move(tensor));
  }
  for (const std::string &feed : feeds) {
    size_t equals = feed.find('=');
    if (equals == std::string::npos || equals == 0)
      return absl::InvalidArgumentError(absl::StrCat("--feed '", feed, "': expected NAME=FILE.npy"));
    auto read = readNpy(feed.substr(equals + 1));
    if (!read.ok())
      return read.status();
    all.emplace_back(feed.substr(0, equals), *std::move(read));
  }
  return all;
}

int findTensor(const lathe_tensor_info *const *infos, int count, const std::string &name) {
  for (int i = 0; i < count; ++i)
    if (name == infos[i]->name)
      return i;
  for (const std::string &tensor : {name, name + ":0"})
    for (int i = 0; i < count; ++i)
      if (tensor == infos[i]->tensor)
        return i;
  return -1;
}

static std::string names(const lathe_tensor_info *const *infos, int count) {
  std::vector<std::string> all;
  for (int i = 0; i < count; ++i)
    all.push_back(infos[i]->name);
  return absl::StrJoin(all, ", ");
}

absl::StatusOr<std::vector<Tensor>> orderInputs(const lathe_entry &entry, const NamedTensors &feeds) {
  std::vector<Tensor> inputs(entry.num_inputs);
  std::vector<std::string> problems;
  for (auto &[name, tensor] : feeds) {
    int i = findTensor(entry.inputs, entry.num_inputs, name);
    if (i < 0)
      problems.push_back(
          absl::StrCat("feed '", name, "' is no input; inputs are ", names(entry.inputs, entry.num_inputs)));
    else
      inputs[i] = tensor;
  }
  for (int i = 0; i < entry.num_inputs; ++i)
    if (!inputs[i].valid())
      problems.push_back(absl::StrCat("input '", entry.inputs[i]->name, "' is not fed"));
  if (!problems.empty())
    return absl::InvalidArgumentError(absl::StrJoin(problems, "\n"));
  return inputs;
}

absl::StatusOr<std::vector<Tensor>> makeInputs(const lathe_entry &entry, int64_t unknownSize) {
  std::mt19937 random(1);
  std::vector<Tensor> inputs;
  for (int i = 0; i < entry.num_inputs; ++i) {
    const lathe_tensor_info &info = *entry.inputs[i];
    std::vector<int64_t> dims;
    for (int d = 0; d < info.rank; ++d)
      dims.push_back(info.dims[d] >= 0 ? info.dims[d] : unknownSize);
    auto tensor = Tensor::tryAllocate(static_cast<DType>(info.dtype), dims, int64_t(8) << 30);
    if (!tensor.ok())
      return tensor.status();
    for (int64_t e = 0; e < tensor->numElements(); ++e) {
      float f = std::uniform_real_distribution<float>(-1, 1)(random);
      int small = static_cast<int>(random() % 2); // as indices they fit the smallest table
      switch (tensor->dtype()) {
      case DType::Float32:
        tensor->data<float>()[e] = f;
        break;
      case DType::Float64:
        tensor->data<double>()[e] = f;
        break;
      case DType::Int32:
      case DType::UInt32:
        tensor->data<int32_t>()[e] = small;
        break;
      case DType::Int64:
      case DType::UInt64:
        tensor->data<int64_t>()[e] = small;
        break;
      case DType::Int8:
      case DType::UInt8:
        tensor->data<int8_t>()[e] = static_cast<int8_t>(small);
        break;
      case DType::Bool:
        tensor->data<uint8_t>()[e] = small & 1;
        break;
      default: // zero-filled
        break;
      }
    }
    inputs.push_back(*std::move(tensor));
  }
  return inputs;
}

absl::StatusOr<std::vector<Tensor>> inputsFrom(const lathe_entry &entry, const NamedTensors &feeds, int64_t unknownSize) {
  return feeds.empty() ? makeInputs(entry, unknownSize) : orderInputs(entry, feeds);
}

} // namespace lathe::cli
