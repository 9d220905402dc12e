//===- ReadModel.cpp - files into protobuf messages -----------------------===//
//
// The kind of a file is told from its top-level fields:
//   SavedModel    1 is a number
//   MetaGraphDef  1 at most once; 3, 5, 6 or 7 as messages
//   GraphDef      1 repeated; 3 is a number
// What these leave open is settled by looking at which reading gives nodes with plausible op names.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/ReadModel.h"

#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/stubs/logging.h"
#include "google/protobuf/text_format.h"
#include "google/protobuf/wire_format_lite.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include <climits>

using llvm::StringRef;
using llvm::Twine;
namespace pb = google::protobuf;

namespace lathe::import {

// Protobuf's own default; deeper messages do not occur in TensorFlow's files.
static constexpr int kMaxNesting = 100;

namespace {
enum class Reading { Graph, MetaGraph, SavedModel, Unclear, Broken };
} // namespace

/// Looks at the top-level fields only.
static Reading scanFields(StringRef bytes) {
  pb::io::CodedInputStream in(reinterpret_cast<const uint8_t *>(bytes.data()), static_cast<int>(bytes.size()));
  in.SetTotalBytesLimit(INT_MAX);
  unsigned firstFields = 0;
  bool onlyOnes = true, meta = false, graph = false;
  while (true) {
    uint32_t tag = in.ReadTag();
    if (!tag)
      return in.ConsumedEntireMessage() || firstFields == 0
                 ? (graph ? Reading::Graph : meta ? Reading::MetaGraph : Reading::Unclear)
                 : Reading::Broken;
    unsigned field = pb::internal::WireFormatLite::GetTagFieldNumber(tag);
    bool isMessage = pb::internal::WireFormatLite::GetTagWireType(tag) ==
                     pb::internal::WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
    if (field == 1 && !isMessage)
      return Reading::SavedModel;
    onlyOnes &= field == 1;
    if (field == 1 && ++firstFields > 1 && onlyOnes)
      graph = true;
    if (field == 3)
      (isMessage ? meta : graph) = true;
    if (field >= 5 && field <= 7 && isMessage)
      meta = true;
    if (!pb::internal::WireFormatLite::SkipField(&in, tag))
      return graph ? Reading::Graph : meta ? Reading::MetaGraph : Reading::Broken;
  }
}

static bool isPlausible(const tf::GraphDef &graph) {
  for (const tf::NodeDef &node : graph.node())
    if (node.op().empty() || !(llvm::isAlpha(node.op()[0]) || node.op()[0] == '_' || node.op()[0] == '>'))
      return false;
  return graph.node_size() != 0;
}

static bool parseBinary(pb::Message &message, StringRef bytes) {
  pb::io::CodedInputStream in(reinterpret_cast<const uint8_t *>(bytes.data()), static_cast<int>(bytes.size()));
  in.SetTotalBytesLimit(INT_MAX);
  in.SetRecursionLimit(kMaxNesting);
  return message.ParseFromCodedStream(&in) && in.ConsumedEntireMessage();
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

namespace {
class FirstError : public pb::io::ErrorCollector {
public:
  void AddError(int line, pb::io::ColumnNumber column, const std::string &message) override {
    if (text.empty())
      text = "line " + std::to_string(line + 1) + ", column " + std::to_string(column + 1) + ": " + message;
  }
  std::string text;
};

/// What the text says at its top level, and how deep it nests: known before the recursive parser sees it.
struct TextOutline {
  bool nodes = false, graph = false, metaGraphs = false, known = false;
  int depth = 0;
};
} // namespace

static TextOutline outlineText(StringRef text) {
  TextOutline outline;
  int depth = 0;
  for (size_t i = 0; i < text.size();) {
    char c = text[i];
    if (c == '#') {
      i = std::min(text.find('\n', i), text.size());
    } else if (c == '"' || c == '\'') {
      for (++i; i < text.size() && text[i] != c && text[i] != '\n'; ++i)
        i += text[i] == '\\';
      ++i;
    } else if (c == '{' || c == '<' || c == '[') {
      outline.depth = std::max(outline.depth, ++depth);
      ++i;
    } else if (c == '}' || c == '>' || c == ']') {
      --depth;
      ++i;
    } else if (llvm::isAlpha(c) || c == '_') {
      size_t start = i;
      while (i < text.size() && (llvm::isAlnum(text[i]) || text[i] == '_'))
        ++i;
      if (depth != 0)
        continue;
      StringRef word = text.slice(start, i);
      bool graph = word == "node" || word == "library" || word == "versions" || word == "version";
      bool meta = word == "graph_def" || word == "meta_info_def" || word == "saver_def" || word == "signature_def" ||
                  word == "collection_def" || word == "object_graph_def";
      bool saved = word == "meta_graphs" || word == "saved_model_schema_version";
      outline.nodes |= graph;
      outline.graph |= meta;
      outline.metaGraphs |= saved;
      outline.known |= graph || meta || saved;
    } else {
      ++i;
    }
  }
  return outline;
}

static bool looksLikeText(StringRef bytes) {
  // binary messages hold lengths and tags below 0x20 within their first few bytes
  for (unsigned char c : bytes.take_front(1 << 16))
    if (c < 0x20 && c != '\n' && c != '\r' && c != '\t')
      return false;
  return true;
}

static bool parseText(pb::Message &message, StringRef text, std::string &error) {
  pb::io::ArrayInputStream in(text.data(), static_cast<int>(text.size()));
  pb::TextFormat::Parser parser;
  FirstError first;
  parser.RecordErrorsTo(&first);
  parser.SetRecursionLimit(kMaxNesting);
  parser.AllowUnknownField(true);
  bool ok = parser.Parse(&in, &message);
  error = first.text;
  return ok;
}

//===----------------------------------------------------------------------===//
// Kinds
//===----------------------------------------------------------------------===//

static std::unique_ptr<tf::MetaGraphDef> selectMetaGraph(tf::SavedModel &saved, StringRef name, StringRef tag,
                                                         Problems &problems) {
  std::string available;
  int chosen = -1, serving = -1;
  for (int i = 0; i < saved.meta_graphs_size(); ++i) {
    for (const std::string &t : saved.meta_graphs(i).meta_info_def().tags()) {
      available += (available.empty() ? "" : ", ") + printable(t);
      if (!tag.empty() && t == tag && chosen < 0)
        chosen = i;
      if (t == "serve" && serving < 0)
        serving = i;
    }
  }
  if (tag.empty())
    chosen = serving >= 0 ? serving : saved.meta_graphs_size() == 1 ? 0 : -1;
  if (chosen < 0) {
    if (saved.meta_graphs_size() == 0)
      problems.add(Twine(printable(name)) + ": the SavedModel holds no graph");
    else if (tag.empty())
      problems.add(Twine(printable(name)) + ": several graphs, choose one with --tag: " + available);
    else
      problems.add(Twine(printable(name)) + ": no graph has the tag '" + printable(tag) + "', there are: " +
                   available);
    return nullptr;
  }
  auto meta = std::make_unique<tf::MetaGraphDef>();
  meta->Swap(saved.mutable_meta_graphs(chosen));
  return meta;
}

static Model parseTextModel(StringRef bytes, StringRef name, const ImportOptions &options, Problems &problems) {
  Model model;
  std::string file = printable(name), error;
  TextOutline outline = outlineText(bytes);
  if (!outline.known) {
    problems.add(Twine(file) + ": neither a graph, a MetaGraph nor a SavedModel");
    return model;
  }
  if (outline.depth > kMaxNesting) {
    problems.add(Twine(file) + ": nests deeper than " + Twine(kMaxNesting) + " levels");
    return model;
  }
  auto meta = std::make_unique<tf::MetaGraphDef>();
  bool ok;
  if (outline.metaGraphs) {
    tf::SavedModel saved;
    model.kind = Model::Kind::SavedModel;
    ok = parseText(saved, bytes, error);
    if (ok && !(meta = selectMetaGraph(saved, name, options.tag, problems)))
      return model;
  } else if (outline.graph) {
    model.kind = Model::Kind::MetaGraph;
    ok = parseText(*meta, bytes, error);
  } else {
    ok = parseText(*meta->mutable_graph_def(), bytes, error);
  }
  if (!ok)
    problems.add(Twine(file) + ": " + error);
  else
    model.meta = std::move(meta);
  return model;
}

Model parseModel(StringRef bytes, StringRef name, const ImportOptions &options, Problems &problems) {
  Model model;
  std::string file = printable(name);
  pb::LogSilencer silence; // protobuf writes to stderr what we report ourselves
  if (bytes.empty()) {
    problems.add(Twine(file) + ": the file is empty");
    return model;
  }
  // protobuf counts bytes in an int
  if (bytes.size() > static_cast<size_t>(INT_MAX)) {
    problems.add(Twine(file) + ": larger than 2 GB, which protobuf files cannot be");
    return model;
  }
  if (static_cast<int64_t>(bytes.size()) > options.maxBytes) {
    problems.add(Twine(file) + ": " + Twine(bytes.size()) + " bytes are more than the limit of " +
                 Twine(options.maxBytes));
    return model;
  }
  if (looksLikeText(bytes) && outlineText(bytes).known)
    return parseTextModel(bytes, name, options, problems);

  auto meta = std::make_unique<tf::MetaGraphDef>();
  Reading reading = scanFields(bytes);
  if (reading == Reading::SavedModel) {
    tf::SavedModel saved;
    model.kind = Model::Kind::SavedModel;
    if (!parseBinary(saved, bytes)) {
      problems.add(Twine(file) + ": not a SavedModel, or cut short");
      return model;
    }
    model.meta = selectMetaGraph(saved, name, options.tag, problems);
    return model;
  }
  if (reading != Reading::MetaGraph && parseBinary(*meta->mutable_graph_def(), bytes) &&
      (reading == Reading::Graph || isPlausible(meta->graph_def()))) {
    model.meta = std::move(meta);
    return model;
  }
  if (reading != Reading::Graph) {
    meta->Clear();
    if (parseBinary(*meta, bytes) && (reading == Reading::MetaGraph || isPlausible(meta->graph_def()))) {
      model.kind = Model::Kind::MetaGraph;
      model.meta = std::move(meta);
      return model;
    }
  }
  // a graph of no nodes, perhaps with a version: valid, and importing will find that it has no outputs
  meta->Clear();
  if (reading == Reading::Unclear && parseBinary(*meta->mutable_graph_def(), bytes) &&
      meta->graph_def().node_size() == 0) {
    model.meta = std::move(meta);
    return model;
  }
  problems.add(Twine(file) + ": not a TensorFlow graph, MetaGraph or SavedModel, or cut short");
  return model;
}

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

Model readModel(StringRef path, const ImportOptions &options, Problems &problems) {
  Model model;
  llvm::SmallString<256> file(path);
  bool isFolder = llvm::sys::fs::is_directory(path);
  if (isFolder) {
    llvm::sys::path::append(file, "saved_model.pb");
    if (!llvm::sys::fs::exists(file))
      llvm::sys::path::append(file, "..", "saved_model.pbtxt");
    llvm::sys::path::remove_dots(file, true);
    if (!llvm::sys::fs::exists(file)) {
      problems.add(Twine(printable(path)) + ": the folder holds no saved_model.pb");
      return model;
    }
  }
  llvm::sys::fs::file_status status;
  if (std::error_code error = llvm::sys::fs::status(file, status)) {
    problems.add(Twine(printable(file)) + ": " + error.message());
    return model;
  }
  // reading a pipe or a device might never end
  if (!llvm::sys::fs::is_regular_file(status)) {
    problems.add(Twine(printable(file)) + ": not a regular file");
    return model;
  }
  auto buffer = llvm::MemoryBuffer::getFile(file, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer) {
    problems.add(Twine(printable(file)) + ": " + buffer.getError().message());
    return model;
  }
  model = parseModel((*buffer)->getBuffer(), file, options, problems);
  if (!model.meta)
    return model;
  checkAssets(*model.meta, problems);

  llvm::SmallString<256> prefix(file);
  if (model.kind == Model::Kind::SavedModel) {
    llvm::sys::path::remove_filename(prefix);
    llvm::sys::path::append(prefix, "variables", "variables");
  } else if (model.kind == Model::Kind::MetaGraph && llvm::sys::path::extension(prefix) == ".meta") {
    llvm::sys::path::replace_extension(prefix, "");
  } else {
    return model;
  }
  if (llvm::sys::fs::exists(prefix + ".index"))
    model.checkpoint = prefix.str().str();
  return model;
}

} // namespace lathe::import
