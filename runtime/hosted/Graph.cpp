#include "runtime/hosted/Graph.h"

#include "absl/strings/str_cat.h"

#include <cstring>

namespace lathe::rt {
namespace {

/// Reads within bounds; once something is missing, everything is zero and ok() false.
class Reader {
public:
  Reader(const void *data, uint64_t size) : at(static_cast<const char *>(data)), left(size) {}

  bool ok() const { return good; }
  template <typename T>
  T number() {
    T value = 0;
    if (take(sizeof(T)))
      std::memcpy(&value, at - sizeof(T), sizeof(T));
    return value;
  }
  std::string text() {
    uint32_t n = number<uint32_t>();
    return take(n) ? std::string(at - n, n) : std::string();
  }
  /// A number of things of at least `least` bytes each.
  uint32_t count(size_t least) {
    uint32_t n = number<uint32_t>();
    if (n > left / least)
      good = false;
    return good ? n : 0;
  }
  PartialShape shape() {
    int32_t rank = number<int32_t>();
    if (rank < 0)
      return std::nullopt;
    std::vector<int64_t> dims;
    if (static_cast<uint64_t>(rank) > left / 8)
      good = false;
    for (int32_t d = 0; good && d < rank; ++d)
      dims.push_back(number<int64_t>());
    return dims;
  }
  DType type() {
    auto found = dtypeFromNumber(static_cast<int>(number<uint32_t>()));
    return found.value_or(DType::Invalid);
  }
  Tensor tensor() {
    DType dtype = type();
    PartialShape dims = shape();
    auto made = dims ? Tensor::tryAllocate(dtype, *dims, dtype == DType::String ? static_cast<int64_t>(left) * 32 : static_cast<int64_t>(left))
                     : absl::StatusOr<Tensor>(absl::InvalidArgumentError("no shape"));
    if (!good || !made.ok()) {
      good = false;
      return Tensor();
    }
    if (dtype == DType::String) {
      for (std::string &s : made->mutableStrings())
        s = text();
    } else if (take(static_cast<uint64_t>(made->sizeBytes())) && made->sizeBytes()) {
      std::memcpy(made->data(), at - made->sizeBytes(), static_cast<size_t>(made->sizeBytes()));
    }
    return *std::move(made);
  }
  AttrValue attribute() {
    auto kind = static_cast<HostedAttr>(number<uint8_t>());
    if (kind != HostedAttr::List)
      return single(kind);
    auto element = static_cast<HostedAttr>(number<uint8_t>());
    uint32_t n = count(1);
    switch (element) {
    case HostedAttr::Int: return list<int64_t>(n, [this] { return number<int64_t>(); });
    case HostedAttr::Float: return list<float>(n, [this] { return number<float>(); });
    case HostedAttr::Bool: return list<bool>(n, [this] { return number<uint8_t>() != 0; });
    case HostedAttr::Text: return list<std::string>(n, [this] { return text(); });
    case HostedAttr::Type: return list<DType>(n, [this] { return type(); });
    case HostedAttr::Shape: return list<PartialShape>(n, [this] { return shape(); });
    case HostedAttr::Tensor: return list<Tensor>(n, [this] { return tensor(); });
    default: good = false; return AttrValue();
    }
  }

private:
  bool take(uint64_t n) {
    if (!good || n > left)
      return good = false;
    at += n;
    left -= n;
    return true;
  }
  AttrValue single(HostedAttr kind) {
    switch (kind) {
    case HostedAttr::Empty: return AttrValue();
    case HostedAttr::Int: return number<int64_t>();
    case HostedAttr::Float: return number<float>();
    case HostedAttr::Bool: return number<uint8_t>() != 0;
    case HostedAttr::Text: return text();
    case HostedAttr::Type: return type();
    case HostedAttr::Shape: return shape();
    case HostedAttr::Tensor: return tensor();
    default: good = false; return AttrValue();
    }
  }
  template <typename T, typename F>
  AttrValue list(uint32_t n, F read) {
    std::vector<T> values;
    for (uint32_t i = 0; good && i < n; ++i)
      values.push_back(read());
    return values;
  }

  const char *at;
  uint64_t left;
  bool good = true;
};

HostedTensor readTensorInfo(Reader &r) {
  HostedTensor t;
  t.name = r.text();
  t.tensor = r.text();
  t.dtype = r.type();
  t.shape = r.shape();
  return t;
}

GraphNode endNode(const char *op, size_t index, const HostedTensor &t) {
  GraphNode node;
  node.info.name = absl::StrCat(op, index);
  node.info.op = op;
  node.info.attrs["index"] = static_cast<int64_t>(index);
  bool isArg = node.info.op == "_Arg";
  (isArg ? node.info.outputTypes : node.info.inputTypes) = {t.dtype};
  (isArg ? node.info.outputIsRef : node.info.inputIsRef) = {false};
  return node;
}

absl::Status readNode(Reader &r, GraphNode &node) {
  node.info.name = r.text();
  node.info.op = r.text();
  for (uint32_t n = r.count(5); r.ok() && n > 0; --n) {
    std::string name = r.text();
    node.info.attrs[name] = r.attribute();
  }
  for (uint32_t n = r.count(8); r.ok() && n > 0; --n) {
    Endpoint e;
    e.node = static_cast<int>(r.number<uint32_t>());
    e.port = static_cast<int>(r.number<uint32_t>());
    node.inputs.push_back(e);
  }
  for (uint32_t n = r.count(4); r.ok() && n > 0; --n)
    node.controls.push_back(static_cast<int>(r.number<uint32_t>()));
  std::vector<DType> outputs;
  for (uint32_t n = r.count(4); r.ok() && n > 0; --n)
    outputs.push_back(r.type());
  if (!r.ok())
    return absl::OkStatus(); // the caller sees it
  if (node.info.op != kLaunchOp)
    return atNode(node.info.name, node.info.op, resolveNode(node.info));
  // a launch takes what it is given: the module checks
  node.info.inputTypes.assign(node.inputs.size(), DType::Invalid);
  node.info.inputIsRef.assign(node.inputs.size(), false);
  node.info.outputTypes = outputs;
  node.info.outputIsRef.assign(outputs.size(), false);
  return absl::OkStatus();
}

} // namespace

absl::StatusOr<std::vector<HostedEntry>> readHostedGraph(const void *data, uint64_t size) {
  Reader r(data, size);
  auto damaged = [] { return absl::InvalidArgumentError("the object's graph is damaged"); };
  if (r.number<uint32_t>() != 0x3147484cu) // "LHG1"
    return damaged();
  std::vector<HostedEntry> entries(r.count(14));
  for (HostedEntry &entry : entries) {
    entry.name = r.text();
    entry.once = r.number<uint8_t>() != 0;
    for (uint32_t n = r.count(16); r.ok() && n > 0; --n)
      entry.inputs.push_back(readTensorInfo(r));
    std::vector<Endpoint> results;
    for (uint32_t n = r.count(24); r.ok() && n > 0; --n) {
      entry.outputs.push_back(readTensorInfo(r));
      Endpoint e;
      e.node = static_cast<int>(r.number<uint32_t>());
      e.port = static_cast<int>(r.number<uint32_t>());
      results.push_back(e);
    }
    auto &nodes = entry.graph.nodes;
    for (size_t i = 0; i < entry.inputs.size(); ++i)
      nodes.push_back(endNode("_Arg", i, entry.inputs[i]));
    for (uint32_t n = r.count(20); r.ok() && n > 0; --n) {
      nodes.emplace_back();
      if (absl::Status s = readNode(r, nodes.back()); !s.ok())
        return s;
    }
    for (size_t i = 0; i < entry.outputs.size(); ++i) {
      nodes.push_back(endNode("_Retval", i, entry.outputs[i]));
      nodes.back().inputs = {results[i]};
    }
    int count = static_cast<int>(nodes.size());
    for (const GraphNode &node : nodes) {
      for (const Endpoint &e : node.inputs)
        if (e.node < 0 || e.node >= count || e.port < 0)
          return damaged();
      for (int c : node.controls)
        if (c < 0 || c >= count)
          return damaged();
    }
    if (!r.ok() || (entry.once && !entry.inputs.empty()))
      return damaged();
    if (absl::Status s = finishGraph(entry.graph); !s.ok())
      return s;
  }
  if (!r.ok())
    return damaged();
  return entries;
}

} // namespace lathe::rt
