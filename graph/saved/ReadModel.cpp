// The kind of a file is told from its top-level fields:
//   SavedModel    1 is a number
//   MetaGraphDef  1 at most once; 3, 5, 6 or 7 as messages
//   GraphDef      1 repeated; 3 is a number
// What these leave open is settled by looking at which reading gives nodes with plausible op names.
#include "graph/saved/ReadModel.h"

#include "graph/saved/BindVariables.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/stubs/logging.h"
#include "google/protobuf/text_format.h"
#include "google/protobuf/wire_format_lite.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pb = google::protobuf;

namespace lathe::graphdef {
namespace {

bool isLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool isLetterOrDigit(char c) { return isLetter(c) || (c >= '0' && c <= '9'); }

// Protobuf's own default; deeper messages do not occur in TensorFlow's files.
constexpr int kMaxNesting = 100;

enum class Reading { Graph, MetaGraph, SavedModel, Unclear, Broken };

/// Looks at the top-level fields only.
Reading scanFields(std::string_view bytes) {
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

bool isPlausible(const tf::GraphDef &graph) {
  for (const tf::NodeDef &node : graph.node())
    if (node.op().empty() || !(isLetter(node.op()[0]) || node.op()[0] == '_' || node.op()[0] == '>'))
      return false;
  return graph.node_size() != 0;
}

bool parseBinary(pb::Message &message, std::string_view bytes) {
  pb::io::CodedInputStream in(reinterpret_cast<const uint8_t *>(bytes.data()), static_cast<int>(bytes.size()));
  in.SetTotalBytesLimit(INT_MAX);
  in.SetRecursionLimit(kMaxNesting);
  return message.ParseFromCodedStream(&in) && in.ConsumedEntireMessage();
}

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

TextOutline outlineText(std::string_view text) {
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
    } else if (isLetter(c) || c == '_') {
      size_t start = i;
      while (i < text.size() && (isLetterOrDigit(text[i]) || text[i] == '_'))
        ++i;
      if (depth != 0)
        continue;
      std::string_view word = text.substr(start, i - start);
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

bool looksLikeText(std::string_view bytes) {
  // binary messages hold lengths and tags below 0x20 within their first few bytes
  for (unsigned char c : bytes.substr(0, 1 << 16))
    if (c < 0x20 && c != '\n' && c != '\r' && c != '\t')
      return false;
  return true;
}

bool parseText(pb::Message &message, std::string_view text, std::string &error) {
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

/// A name from a file, for a message.
std::string shown(std::string_view name) {
  constexpr size_t longest = 300;
  return absl::CEscape(absl::string_view(name.data(), std::min(name.size(), longest))) + (name.size() > longest ? "..." : "");
}

template <typename... Parts>
absl::Status bad(const Parts &...parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

using MetaGraph = std::shared_ptr<tf::MetaGraphDef>;

absl::StatusOr<MetaGraph> select(tf::SavedModel &saved, const std::string &file, std::string_view tag) {
  std::string available;
  int chosen = -1, serving = -1;
  for (int i = 0; i < saved.meta_graphs_size(); ++i) {
    for (const std::string &t : saved.meta_graphs(i).meta_info_def().tags()) {
      available += (available.empty() ? "" : ", ") + shown(t);
      if (!tag.empty() && t == tag && chosen < 0)
        chosen = i;
      if (t == "serve" && serving < 0)
        serving = i;
    }
  }
  if (tag.empty())
    chosen = serving >= 0 ? serving : saved.meta_graphs_size() == 1 ? 0 : -1;
  if (chosen < 0 && saved.meta_graphs_size() == 0)
    return bad(file, ": the SavedModel holds no graph");
  if (chosen < 0 && tag.empty())
    return bad(file, ": several graphs, choose one with --tag: ", available);
  if (chosen < 0)
    return bad(file, ": no graph has the tag '", shown(tag), "', there are: ", available);
  auto meta = std::make_shared<tf::MetaGraphDef>();
  meta->Swap(saved.mutable_meta_graphs(chosen));
  bindVariables(*meta);
  return meta;
}

absl::StatusOr<ModelFile> parseTextModel(std::string_view bytes, const std::string &file, const TextOutline &outline,
                                         const ReadOptions &options) {
  if (outline.depth > kMaxNesting)
    return bad(file, ": nests deeper than ", kMaxNesting, " levels");
  ModelFile model;
  std::string error;
  bool ok;
  if (outline.metaGraphs) {
    tf::SavedModel saved;
    model.kind = ModelFile::Kind::SavedModel;
    ok = parseText(saved, bytes, error);
    if (ok) {
      absl::StatusOr<MetaGraph> meta = select(saved, file, options.tag);
      if (!meta.ok())
        return meta.status();
      model.meta = *std::move(meta);
    }
  } else {
    model.meta = std::make_shared<tf::MetaGraphDef>();
    model.kind = outline.graph ? ModelFile::Kind::MetaGraph : ModelFile::Kind::Graph;
    ok = outline.graph ? parseText(*model.meta, bytes, error) : parseText(*model.meta->mutable_graph_def(), bytes, error);
  }
  if (!ok)
    return bad(file, ": ", error);
  return model;
}

/// A file's content, mapped.
class Mapped {
public:
  absl::Status open(const std::string &path);
  ~Mapped() {
    if (size)
      munmap(data, size);
  }
  std::string_view view() const { return {static_cast<const char *>(data), size}; }

private:
  void *data = nullptr;
  size_t size = 0;
};

absl::Status Mapped::open(const std::string &path) {
  auto failed = [&](int error) {
    std::string text = absl::StrCat(shown(path), ": ", std::strerror(error));
    return error == ENOENT ? absl::NotFoundError(text) : absl::InvalidArgumentError(text);
  };
  // reading a pipe or a device might never end, opening it too
  struct stat info;
  if (stat(path.c_str(), &info) != 0)
    return failed(errno);
  if (!S_ISREG(info.st_mode))
    return bad(shown(path), ": not a regular file");
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return failed(errno);
  void *memory = fstat(fd, &info) == 0 && info.st_size ? mmap(nullptr, static_cast<size_t>(info.st_size), PROT_READ, MAP_PRIVATE, fd, 0)
                                                       : nullptr;
  int error = errno;
  close(fd);
  if (memory == MAP_FAILED)
    return failed(error);
  data = memory;
  size = memory ? static_cast<size_t>(info.st_size) : 0;
  return absl::OkStatus();
}

} // namespace

absl::StatusOr<ModelFile> parseModel(std::string_view bytes, std::string_view name, const ReadOptions &options) {
  std::string file = shown(name);
  pb::LogSilencer silence; // protobuf writes to stderr what we report ourselves
  if (bytes.empty())
    return bad(file, ": the file is empty");
  // protobuf counts bytes in an int
  if (bytes.size() > static_cast<size_t>(INT_MAX))
    return bad(file, ": larger than 2 GB, which protobuf files cannot be");
  if (static_cast<int64_t>(bytes.size()) > options.maxBytes)
    return bad(file, ": ", bytes.size(), " bytes are more than the limit of ", options.maxBytes);
  if (looksLikeText(bytes))
    if (TextOutline outline = outlineText(bytes); outline.known)
      return parseTextModel(bytes, file, outline, options);

  ModelFile model;
  Reading reading = scanFields(bytes);
  if (reading == Reading::SavedModel) {
    tf::SavedModel saved;
    model.kind = ModelFile::Kind::SavedModel;
    if (!parseBinary(saved, bytes))
      return bad(file, ": not a SavedModel, or cut short");
    absl::StatusOr<MetaGraph> meta = select(saved, file, options.tag);
    if (!meta.ok())
      return meta.status();
    model.meta = *std::move(meta);
    return model;
  }
  model.meta = std::make_shared<tf::MetaGraphDef>();
  tf::MetaGraphDef &meta = *model.meta;
  if (reading != Reading::MetaGraph && parseBinary(*meta.mutable_graph_def(), bytes) &&
      (reading == Reading::Graph || isPlausible(meta.graph_def())))
    return model;
  if (reading != Reading::Graph) {
    meta.Clear();
    if (parseBinary(meta, bytes) && (reading == Reading::MetaGraph || isPlausible(meta.graph_def()))) {
      model.kind = ModelFile::Kind::MetaGraph;
      return model;
    }
  }
  // a graph of no nodes, perhaps with a version: valid, and its user will find that it has no outputs
  meta.Clear();
  if (reading == Reading::Unclear && parseBinary(*meta.mutable_graph_def(), bytes) && meta.graph_def().node_size() == 0)
    return model;
  return bad(file, ": not a TensorFlow graph, MetaGraph or SavedModel, or cut short");
}

absl::StatusOr<ModelFile> readModel(const std::string &path, const ReadOptions &options) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::path file = path;
  if (fs::is_directory(file, error)) {
    file /= "saved_model.pb";
    if (!fs::exists(file, error))
      file.replace_filename("saved_model.pbtxt");
    if (!fs::exists(file, error))
      return absl::NotFoundError(absl::StrCat(shown(path), ": the folder holds no saved_model.pb"));
  }
  Mapped content;
  if (absl::Status s = content.open(file.string()); !s.ok())
    return s;
  absl::StatusOr<ModelFile> model = parseModel(content.view(), file.string(), options);
  if (!model.ok())
    return model;
  fs::path prefix = file;
  if (model->kind == ModelFile::Kind::SavedModel)
    prefix.replace_filename("variables/variables");
  else if (model->kind == ModelFile::Kind::MetaGraph && file.extension() == ".meta")
    prefix.replace_extension();
  else
    return model;
  if (fs::exists(prefix.string() + ".index", error))
    model->checkpoint = prefix.string();
  return model;
}

} // namespace lathe::graphdef
