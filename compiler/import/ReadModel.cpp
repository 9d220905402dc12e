//===- ReadModel.cpp - files into protobuf messages -----------------------===//
#include "compiler/import/ReadModel.h"

#include "llvm/Support/Path.h"

using llvm::StringRef;
using llvm::Twine;

namespace lathe::import {

/// Assets are named relative to the model's folder and must stay there.
static void checkAssets(const tf::MetaGraphDef &meta, Problems &problems) {
  for (const tf::AssetFileDef &asset : meta.asset_file_def()) {
    bool leaves = llvm::sys::path::is_absolute(asset.filename()) || asset.filename().find('\0') != std::string::npos;
    for (auto part = llvm::sys::path::begin(asset.filename()), end = llvm::sys::path::end(asset.filename());
         part != end; ++part)
      leaves |= *part == "..";
    if (leaves)
      problems.add(Twine("asset file '") + printable(asset.filename()) + "' leaves the model's folder");
  }
}

static graphdef::ReadOptions readOptions(const ImportOptions &options) {
  graphdef::ReadOptions o;
  o.tag = options.tag;
  o.maxBytes = options.maxBytes;
  return o;
}

static Model take(absl::StatusOr<graphdef::ModelFile> model, Problems &problems) {
  if (model.ok())
    return *std::move(model);
  absl::string_view text = model.status().message();
  problems.add(Twine(StringRef(text.data(), text.size())));
  return {};
}

Model parseModel(StringRef bytes, StringRef name, const ImportOptions &options, Problems &problems) {
  return take(graphdef::parseModel(bytes, name, readOptions(options)), problems);
}

Model readModel(StringRef path, const ImportOptions &options, Problems &problems) {
  Model model = take(graphdef::readModel(path.str(), readOptions(options)), problems);
  if (model.meta)
    checkAssets(*model.meta, problems);
  return model;
}

} // namespace lathe::import
