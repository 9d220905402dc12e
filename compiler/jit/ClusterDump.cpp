#include "compiler/jit/ClusterDump.h"

#include "google/protobuf/text_format.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <atomic>

namespace lathe {

// Constants beyond this are of no use to a reader.
static constexpr size_t kMaxTensorBytes = 256;

static void shorten(tf::NodeDef &node) {
  for (auto &[name, value] : *node.mutable_attr())
    if (value.has_tensor() && value.tensor().ByteSizeLong() > kMaxTensorBytes) {
      tf::TensorProto small;
      small.set_dtype(value.tensor().dtype());
      *small.mutable_tensor_shape() = value.tensor().tensor_shape();
      *value.mutable_tensor() = small;
    }
}

void dumpClusters(const std::string &folder, const tf::GraphDef &graph, mlir::ModuleOp module) {
  static std::atomic<int> next{0};
  std::string stem = "clusters-" + std::to_string(next++);
  if (llvm::sys::fs::create_directories(folder))
    return;
  auto write = [&](const char *extension, llvm::function_ref<void(llvm::raw_ostream &)> fn) {
    llvm::SmallString<256> path(folder);
    llvm::sys::path::append(path, stem + extension);
    std::error_code error;
    llvm::raw_fd_ostream os(path, error);
    if (!error)
      fn(os);
  };
  tf::GraphDef copy = graph;
  for (tf::NodeDef &node : *copy.mutable_node())
    shorten(node);
  for (tf::FunctionDef &function : *copy.mutable_library()->mutable_function())
    for (tf::NodeDef &node : *function.mutable_node_def())
      shorten(node);
  std::string text;
  google::protobuf::TextFormat::PrintToString(copy, &text);
  write(".pbtxt", [&](llvm::raw_ostream &os) { os << text; });
  write(".mlir", [&](llvm::raw_ostream &os) {
    mlir::OpPrintingFlags flags;
    flags.enableDebugInfo(true, false);
    module.print(os, flags);
  });
}

} // namespace lathe
