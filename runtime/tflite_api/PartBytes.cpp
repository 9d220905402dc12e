#include "runtime/tflite_api/PartBytes.h"

#include "graph/tflite/Operators.h"

#include <algorithm>

namespace lathe::tflite_api {
namespace {

/// Changes to a copy of a file. New vectors go to its end, which offsets can name since they only point forward.
class Patch {
public:
  explicit Patch(std::string &bytes) : bytes(bytes) {}

  /// The vector of int32 behind a field, which must be there.
  bool setInts(size_t table, flatbuffers::voffset_t field, const std::vector<int> &values) {
    while (bytes.size() % 4)
      bytes.push_back(0);
    const size_t at = bytes.size();
    const uint32_t count = static_cast<uint32_t>(values.size());
    bytes.append(reinterpret_cast<const char *>(&count), 4);
    bytes.append(reinterpret_cast<const char *>(values.data()), 4 * values.size());
    const size_t place = fieldAt(table, field);
    if (!place || at - place > UINT32_MAX)
      return false;
    flatbuffers::WriteScalar(&bytes[place], static_cast<flatbuffers::uoffset_t>(at - place));
    return true;
  }

  /// Leaves some entries of a vector of tables, sorted, where it stands.
  void keep(size_t vector, const std::vector<unsigned> &entries) {
    auto entry = [&](size_t i) { return vector + 4 + 4 * i; };
    for (size_t i = 0; i < entries.size(); ++i) {
      const size_t from = entry(entries[i]), target = from + flatbuffers::ReadScalar<flatbuffers::uoffset_t>(&bytes[from]);
      flatbuffers::WriteScalar(&bytes[entry(i)], static_cast<flatbuffers::uoffset_t>(target - entry(i)));
    }
    flatbuffers::WriteScalar(&bytes[vector], static_cast<flatbuffers::uoffset_t>(entries.size()));
  }

  /// Lets an entry of a vector of tables name what another one names, which lies behind it.
  void alias(size_t vector, unsigned entry, unsigned other) {
    const size_t to = vector + 4 + 4 * size_t(entry), from = vector + 4 + 4 * size_t(other);
    const size_t target = from + flatbuffers::ReadScalar<flatbuffers::uoffset_t>(&bytes[from]);
    flatbuffers::WriteScalar(&bytes[to], static_cast<flatbuffers::uoffset_t>(target - to));
  }

private:
  size_t fieldAt(size_t table, flatbuffers::voffset_t field) {
    auto *t = reinterpret_cast<const flatbuffers::Table *>(&bytes[table]);
    const flatbuffers::voffset_t offset = t->GetOptionalFieldOffset(field);
    return offset ? table + offset : 0;
  }
  std::string &bytes;
};

/// Whether an operator of the file runs a subgraph.
bool isCalled(const tfl::Model &m, unsigned subgraph) {
  for (const tfl::SubGraph *graph : *m.subgraphs())
    for (unsigned i = 0; graph->operators() && i < graph->operators()->size(); ++i) {
      const tfl::Operator &op = *graph->operators()->Get(i);
      const std::vector<int> called = tflgraph::calledBy(op);
      if (std::count(called.begin(), called.end(), static_cast<int>(subgraph)) || tflgraph::calledOnce(m, op) == m.subgraphs()->Get(subgraph))
        return true;
    }
  return false;
}

} // namespace

absl::StatusOr<std::string> partBytes(const Model &model, unsigned subgraph, const tflgraph::Step &step) {
  const char *base = static_cast<const char *>(model.data);
  const tfl::Model &m = *tfl::GetModel(model.data);
  const tfl::SubGraph &graph = *m.subgraphs()->Get(subgraph);
  std::string bytes(base, model.size);
  auto place = [&](const void *p) { return static_cast<size_t>(static_cast<const char *>(p) - base); };
  for (unsigned i = 0; i < m.subgraphs()->size(); ++i)
    if (i != subgraph && graph.operators() && m.subgraphs()->Get(i)->operators() == graph.operators())
      return absl::UnimplementedError("subgraphs share their operators");
  if (subgraph && isCalled(m, 0))
    return absl::UnimplementedError("operators that are not compiled in a signature beside one whose subgraph is called are not supported");
  Patch patch(bytes);
  if (graph.operators())
    patch.keep(place(graph.operators()), step.operators);
  bool ok = patch.setInts(place(&graph), tfl::SubGraph::VT_INPUTS, step.inputs) && patch.setInts(place(&graph), tfl::SubGraph::VT_OUTPUTS, step.outputs);
  if (m.signature_defs())
    ok = ok && patch.setInts(place(&m), tfl::Model::VT_SIGNATURE_DEFS, {});
  if (!ok)
    return absl::UnimplementedError("a subgraph has no list of inputs or outputs");
  if (subgraph)
    patch.alias(place(m.subgraphs()), 0, subgraph);
  return bytes;
}

} // namespace lathe::tflite_api
