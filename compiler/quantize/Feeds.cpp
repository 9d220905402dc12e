#include "compiler/quantize/Feeds.h"

#include "base/Npz.h"
#include "dialects/hlo/Constants.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <algorithm>

using namespace mlir;

namespace lathe::quantize {
namespace {

constexpr int64_t rowsOfRun = 32;

struct Input {
  std::string name, tensor;
  RankedTensorType type;
};

class Reader {
public:
  Reader(func::FuncOp function, int64_t maxBytes) : function(function), left(maxBytes) {
    for (unsigned i = 0; i < function.getNumArguments(); ++i) {
      auto text = [&](const char *attr) {
        auto s = function.getArgAttrOfType<StringAttr>(i, attr);
        return s ? s.getValue().str() : std::string();
      };
      inputs.push_back({text("hlo.name"), text("hlo.tensor"), cast<RankedTensorType>(function.getArgument(i).getType())});
    }
  }
  std::vector<Feed> feeds;

  LogicalResult file(const std::string &path) {
    auto arrays = readNpz(path, left);
    if (!arrays.ok())
      return error(path, std::string(arrays.status().message()));
    Feed whole(inputs.size());
    for (auto &[name, tensor] : *arrays) {
      int at = find(name);
      if (at < 0)
        return error(path, "'" + name + "' is no input of the model");
      whole[at] = tensor;
      left -= tensor.sizeBytes();
    }
    if (left < 0)
      return error(path, "the feeds need more memory than --max-memory leaves");
    std::optional<int64_t> runs;
    std::vector<int> cuts(inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!whole[i].valid())
        return error(path, "input '" + inputs[i].name + "' is not in it");
      auto n = runsOf(inputs[i].type, whole[i]);
      if (!n)
        return error(path, "input '" + inputs[i].name + "' of " + dtypeName(whole[i].dtype()) + dimsToString(whole[i].dims()) +
                               " does not fit the model's");
      if (runs && *runs != *n)
        return error(path, "input '" + inputs[i].name + "' has " + std::to_string(*n) + " runs, others have " + std::to_string(*runs));
      runs = n;
    }
    for (int64_t k = 0; k < runs.value_or(1); ++k) {
      Feed feed;
      for (size_t i = 0; i < inputs.size(); ++i)
        feed.push_back(cut(inputs[i].type, whole[i], k, *runs));
      feeds.push_back(std::move(feed));
    }
    return success();
  }

  LogicalResult error(const std::string &path, const std::string &text) {
    return emitError(UnknownLoc::get(function.getContext())) << "--calibrate " << path << ": " << text;
  }

private:
  func::FuncOp function;
  int64_t left;
  std::vector<Input> inputs;

  int find(const std::string &name) const {
    for (size_t i = 0; i < inputs.size(); ++i)
      if (name == inputs[i].name)
        return int(i);
    for (size_t i = 0; i < inputs.size(); ++i)
      if (name == inputs[i].tensor || name + ":0" == inputs[i].tensor)
        return int(i);
    return -1;
  }

  static bool fits(RankedTensorType type, ArrayRef<int64_t> dims, int64_t from) {
    for (int64_t d = from; d < type.getRank(); ++d)
      if (!type.isDynamicDim(d) && type.getDimSize(d) != dims[d])
        return false;
    return true;
  }

  /// How many runs an array holds; none if it does not fit.
  static std::optional<int64_t> runsOf(RankedTensorType type, const Tensor &t) {
    if (hlo::toDType(type.getElementType()) != dtypeCarrier(t.dtype()) || t.numElements() == 0)
      return std::nullopt;
    ArrayRef<int64_t> dims = t.dims();
    if (t.rank() == type.getRank() + 1)
      return fits(type, dims.drop_front(), 0) ? std::optional<int64_t>(dims[0]) : std::nullopt;
    if (t.rank() != type.getRank())
      return std::nullopt;
    if (type.getRank() == 0)
      return 1;
    if (!fits(type, dims, 1))
      return std::nullopt;
    if (type.isDynamicDim(0)) // two at least, one of which is held out
      return dims[0] < 2 ? 1 : std::max<int64_t>(2, (dims[0] + rowsOfRun - 1) / rowsOfRun);
    const int64_t own = type.getDimSize(0);
    return own > 0 && dims[0] % own == 0 ? std::optional<int64_t>(dims[0] / own) : std::nullopt;
  }

  static Tensor cut(RankedTensorType type, const Tensor &t, int64_t k, int64_t runs) {
    if (t.rank() == 0 || (runs == 1 && t.rank() == type.getRank()))
      return t;
    const int64_t rows = t.dim(0), begin = rows * k / runs, end = rows * (k + 1) / runs, row = t.sizeBytes() / rows;
    std::vector<int64_t> dims = t.dims();
    dims[0] = end - begin;
    if (t.rank() > type.getRank())
      dims.erase(dims.begin());
    Tensor part = Tensor::allocate(t.dtype(), dims);
    std::copy_n(static_cast<const char *>(t.data()) + begin * row, (end - begin) * row, static_cast<char *>(part.data()));
    return part;
  }
};

} // namespace

FailureOr<std::vector<Feed>> readFeeds(func::FuncOp function, const std::vector<std::string> &paths, int64_t maxBytes) {
  Reader reader(function, maxBytes);
  bool fine = true;
  for (const std::string &path : paths) {
    if (!llvm::sys::fs::is_directory(path)) {
      fine &= succeeded(reader.file(path));
      continue;
    }
    std::vector<std::string> files;
    std::error_code code;
    for (llvm::sys::fs::directory_iterator it(path, code), end; it != end && !code; it.increment(code))
      if (llvm::StringRef(it->path()).ends_with(".npz"))
        files.push_back(it->path());
    std::sort(files.begin(), files.end());
    if (code || files.empty())
      fine &= succeeded(reader.error(path, code ? code.message() : "no .npz file is in it"));
    for (const std::string &file : files)
      fine &= succeeded(reader.file(file));
  }
  if (!fine)
    return failure();
  return std::move(reader.feeds);
}

} // namespace lathe::quantize
