#include "runtime/tflite_api/HostGraph.h"

#include "graph/tflite/NodeTable.h"
#include "graph/tflite/Operators.h"
#include "graph/tflite/Strings.h"
#include "runtime/tflite_api/PartBytes.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <set>

namespace lathe::tflite_api {
namespace {

using tflgraph::codeOf;

absl::Status failed(const char *name, const char *what) {
  return absl::InternalError(absl::StrCat("operator '", name ? name : "", "' failed to ", what));
}

TfLiteIntArray *arrayOf(const std::vector<int> &values) {
  TfLiteIntArray *a = TfLiteIntArrayCreate(static_cast<int>(values.size()));
  std::copy(values.begin(), values.end(), a->data);
  return a;
}

std::vector<int> vectorOf(const flatbuffers::Vector<int32_t> *v) { return v ? std::vector<int>(v->begin(), v->end()) : std::vector<int>(); }

} // namespace

void SharedState::restore(const std::map<std::string, std::vector<char>> &copy) {
  for (auto at = variables.begin(); at != variables.end();)
    if (auto value = copy.find(at->first); value == copy.end()) {
      at = variables.erase(at);
    } else {
      std::copy(value->second.begin(), value->second.end(), at->second.begin());
      ++at;
    }
}

HostGraph::~HostGraph() {
  for (Node &n : nodes) {
    n.op.free(&context, n.node.user_data);
    for (TfLiteIntArray *a : {n.node.inputs, n.node.outputs, n.node.intermediates, n.node.temporaries})
      TfLiteIntArrayFree(a);
    delete n.external;
  }
  for (TfLiteTensor &t : tensors) {
    t.quantization = {kTfLiteNoQuantization, nullptr}; // lives in `kept`
    t.sparsity = nullptr;
    TfLiteTensorFree(&t);
  }
  TfLiteIntArrayFree(executionPlan);
  for (TfLiteOperator *kernel : kernels)
    TfLiteOperatorDelete(kernel);
}

TfLiteStatus HostGraph::replaceNodes(TfLiteOperator *kernel, const TfLiteIntArray *taken) {
  if (kernel)
    kernels.insert(kernel);
  if (taken && taken->size == 0)
    return kTfLiteOk;
  report.report(absl::UnimplementedError("a delegate cannot take operators: they are compiled"));
  return kTfLiteError;
}

absl::Status HostGraph::readTensors() {
  const tfl::Model &m = *tfl::GetModel(model->data);
  const tfl::SubGraph &graph = *m.subgraphs()->Get(subgraph);
  const size_t count = graph.tensors() ? graph.tensors()->size() : 0;
  tensors.resize(count);
  for (size_t i = 0; i < count; ++i) {
    const tfl::Tensor &given = *graph.tensors()->Get(static_cast<unsigned>(i));
    TfLiteTensor &t = tensors[i];
    t = {};
    auto port = portOf(graph, static_cast<int>(i));
    if (!port.ok())
      return port.status();
    t.type = port->type;
    t.params = port->quantization;
    t.name = given.name() ? given.name()->c_str() : "";
    t.is_variable = given.is_variable();
    t.buffer_handle = kTfLiteNullBufferHandle;
    t.dims = arrayOf(port->dims);
    if (!port->signature.empty())
      t.dims_signature = arrayOf(port->signature);
    if (auto *q = given.quantization(); q && q->scale() && q->scale()->size()) {
      // one block for the parameters and their arrays: freed with the graph
      const size_t n = q->scale()->size(), array = TfLiteIntArrayGetSizeInBytes(static_cast<int>(n));
      auto &block = kept.emplace_back(sizeof(TfLiteAffineQuantization) + 2 * array + 16);
      auto *affine = reinterpret_cast<TfLiteAffineQuantization *>(block.data());
      affine->scale = reinterpret_cast<TfLiteFloatArray *>(block.data() + sizeof(TfLiteAffineQuantization));
      affine->zero_point = reinterpret_cast<TfLiteIntArray *>(block.data() + sizeof(TfLiteAffineQuantization) + array);
      affine->scale->size = affine->zero_point->size = static_cast<int>(n);
      const size_t zeros = q->zero_point() ? q->zero_point()->size() : 0;
      for (size_t k = 0; k < n; ++k) {
        affine->scale->data[k] = q->scale()->Get(static_cast<unsigned>(k));
        affine->zero_point->data[k] = zeros == n || zeros == 1 ? static_cast<int>(q->zero_point()->Get(static_cast<unsigned>(zeros == 1 ? 0 : k))) : 0;
      }
      affine->quantized_dimension = q->quantized_dimension();
      t.quantization = {kTfLiteAffineQuantization, affine};
    }
    if (t.is_variable)
      variableTensors.push_back(static_cast<int>(i));
    auto *buffers = m.buffers();
    const tfl::Buffer *buffer = buffers && given.buffer() < buffers->size() ? buffers->Get(given.buffer()) : nullptr;
    if (buffer && buffer->data() && buffer->data()->size()) {
      t.data.raw_const = reinterpret_cast<const char *>(buffer->data()->data());
      t.bytes = buffer->data()->size();
      t.allocation_type = kTfLiteMmapRo;
    } else {
      t.allocation_type = t.type == kTfLiteString ? kTfLiteDynamic : kTfLiteArenaRw;
    }
  }
  return absl::OkStatus();
}

absl::Status HostGraph::addNode(Step &step, const HostOp &host) {
  const tfl::Operator &op = *tfl::GetModel(model->data)->subgraphs()->Get(subgraph)->operators()->Get(step.cut.first);
  Node &n = nodes.emplace_back();
  n.op = host;
  n.registration = host.registration;
  auto array = [&](const flatbuffers::Vector<int32_t> *v, bool optional, TfLiteIntArray *&to) {
    for (int t : vectorOf(v))
      if (t < (optional ? -1 : 0) || t >= static_cast<int>(tensors.size()))
        return false;
    to = arrayOf(vectorOf(v));
    return true;
  };
  n.node.temporaries = arrayOf({});
  if (!array(op.inputs(), true, n.node.inputs) || !array(op.outputs(), false, n.node.outputs) ||
      !array(op.intermediates(), false, n.node.intermediates))
    return absl::InvalidArgumentError("an operator has a tensor that is out of range");
  if (op.custom_options()) {
    n.node.custom_initial_data = op.custom_options()->data();
    n.node.custom_initial_data_size = static_cast<int>(op.custom_options()->size());
  }
  step.node = static_cast<int>(nodes.size()) - 1;
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<HostGraph>> HostGraph::make(unsigned subgraph, const HostedModel &of, const tflgraph::Apart &apart, bool always) {
  using Kind = tflgraph::Step::Kind;
  const tfl::Model &m = *tfl::GetModel(of.model->data);
  const tfl::SubGraph &graph = *m.subgraphs()->Get(subgraph);
  auto find = [&](const tfl::OperatorCode &code) { return of.operators.find(code.custom_code()->str(), code.version()); };
  auto graphOps = std::make_unique<GraphOps>(m, subgraph, of.shared->nodes);
  auto cut = tflgraph::cut(graphOps->nodes, {[&](const tfl::OperatorCode &code) { return find(code).has_value(); }, apart});
  if (!cut.ok())
    return cut.status();
  if (cut->empty()) {
    if (!always)
      return std::unique_ptr<HostGraph>();
    if (tflgraph::Step whole = tflgraph::wholeOf(graphOps->nodes); !whole.operators.empty())
      cut->push_back(std::move(whole));
  }
  std::unique_ptr<HostGraph> result(new HostGraph);
  HostGraph &g = *result;
  g.model = of.model;
  g.subgraph = subgraph;
  g.shared = of.shared;
  g.graphOps = std::move(graphOps);
  g.report = of.reporter;
  g.compileOptions = of.options;
  g.threads = of.threads;
  g.graphInputs = vectorOf(graph.inputs());
  g.graphOutputs = vectorOf(graph.outputs());
  g.graphName = graph.name() ? graph.name()->str() : "";
  if (absl::Status s = g.readTensors(); !s.ok())
    return s;
  for (tflgraph::Step &made : *cut) {
    Step &step = g.steps.emplace_back();
    step.cut = std::move(made);
    absl::Status s;
    if (step.cut.kind == Kind::Program) {
      s = g.addNode(step, *find(*codeOf(m, *graph.operators()->Get(step.cut.first))));
    } else if (step.isGraph()) {
      for (int t : step.cut.nodes.outputs)
        g.tensors[static_cast<size_t>(t)].allocation_type = kTfLiteDynamic;
    } else {
      auto bytes = partBytes(*g.model, subgraph, step.cut);
      s = bytes.status();
      if (bytes.ok())
        step.bytes = *std::move(bytes);
    }
    if (!s.ok())
      return s;
  }
  g.makeContext(of.threads);
  std::vector<int> order;
  for (size_t i = 0; i < g.nodes.size(); ++i)
    order.push_back(static_cast<int>(i));
  g.executionPlan = arrayOf(order);
  for (Node &n : g.nodes)
    n.node.user_data = n.op.init(&g.context, static_cast<const char *>(n.node.custom_initial_data),
                                 static_cast<size_t>(n.node.custom_initial_data_size));
  return result;
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

TfLiteStatus HostGraph::resize(TfLiteTensor *t, const int *dims, int rank) {
  int64_t bytes = static_cast<int64_t>(elementSize(t->type));
  for (int i = 0; i < rank; ++i)
    if (dims[i] < 0 || __builtin_mul_overflow(bytes, int64_t(dims[i]), &bytes))
      return kTfLiteError;
  if (t->allocation_type == kTfLiteMmapRo || t->allocation_type == kTfLiteCustom)
    return kTfLiteError;
  if (!TfLiteIntArrayEqualsArray(t->dims, rank, dims)) {
    TfLiteIntArrayFree(t->dims);
    t->dims = arrayOf(std::vector<int>(dims, dims + rank));
  }
  if (t->type == kTfLiteString) // its bytes come with its strings
    return kTfLiteOk;
  if (t->data.data && t->bytes == static_cast<size_t>(bytes))
    return kTfLiteOk;
  if (t->allocation_type == kTfLiteDynamic) {
    if (TfLiteTensorResizeMaybeCopy(static_cast<size_t>(bytes), t, false) != kTfLiteOk)
      return kTfLiteError;
  } else {
    auto &own = memory[static_cast<size_t>(t - tensors.data())];
    own.reset(new (std::nothrow) char[static_cast<size_t>(bytes) + 1]);
    t->data.raw = own.get();
    if (!own)
      return kTfLiteError;
    t->bytes = static_cast<size_t>(bytes);
  }
  std::memset(t->data.data, 0, static_cast<size_t>(bytes));
  return kTfLiteOk;
}

int HostGraph::addTensors(int count) {
  if (count < 0 || count > 1 << 16)
    return -1;
  const int first = static_cast<int>(tensors.size());
  for (int i = 0; i < count; ++i) {
    TfLiteTensor &t = tensors.emplace_back();
    t = {};
    t.name = "";
    t.buffer_handle = kTfLiteNullBufferHandle;
    t.allocation_type = kTfLiteArenaRw;
  }
  context.tensors = tensors.data();
  context.tensors_size = tensors.size();
  return first;
}

void *HostGraph::persistent(size_t bytes) { return kept.emplace_back(bytes + 1).data(); }
int HostGraph::requestScratch(size_t bytes) {
  scratches.emplace_back(bytes + 1);
  return static_cast<int>(scratches.size()) - 1;
}
void *HostGraph::scratch(int index) {
  return index < 0 || index >= static_cast<int>(scratches.size()) ? nullptr : scratches[static_cast<size_t>(index)].data();
}

bool HostGraph::metadata(const char *name, const char **data, size_t *bytes) const {
  const tfl::Model &m = *tfl::GetModel(model->data);
  if (m.metadata() && m.buffers() && name)
    for (const tfl::Metadata *entry : *m.metadata())
      if (entry->name() && entry->name()->str() == name && entry->buffer() < m.buffers()->size())
        if (const tfl::Buffer *b = m.buffers()->Get(entry->buffer()); b->data()) {
          *data = reinterpret_cast<const char *>(b->data()->data());
          *bytes = b->data()->size();
          return true;
        }
  return false;
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

/// What runs a compiled step; for the values that tensors have now, where it is compiled for such.
absl::StatusOr<Interpreter *> HostGraph::partOf(Step &step) {
  constexpr size_t most = 16; // of values that are kept
  std::string values;
  for (int index : step.cut.values) {
    const TfLiteTensor &t = tensors[static_cast<size_t>(index)];
    if (t.bytes && !t.data.data)
      return absl::InternalError(absl::StrCat("tensor '", t.name, "' has no value"));
    if (!t.name || !*t.name || std::count_if(step.cut.inputs.begin(), step.cut.inputs.end(), [&](int other) {
          return absl::string_view(tensors[static_cast<size_t>(other)].name) == t.name;
        }) > 1)
      return absl::UnimplementedError(
          absl::StrCat("tensor '", t.name ? t.name : "", "', for whose value code is compiled, has no name of its own"));
    if (t.bytes > 1 << 16)
      return absl::UnimplementedError(
          absl::StrCat("tensor '", t.name, "' of ", t.bytes, " bytes is too large for a value that code is compiled for"));
    values.append(reinterpret_cast<const char *>(t.dims), TfLiteIntArrayGetSizeInBytes(t.dims->size));
    values.append(t.data.raw, t.bytes);
  }
  const bool isValued = !step.cut.values.empty();
  auto known = std::find_if(step.byValues.begin(), step.byValues.end(), [&](auto &one) { return one.first == values; });
  if (known != step.byValues.end())
    step.byValues.splice(step.byValues.begin(), step.byValues, known);
  else if (isValued)
    step.byValues.emplace_front(values, nullptr);
  std::unique_ptr<Interpreter> &compiled = isValued ? step.byValues.front().second : step.compiled;
  if (step.byValues.size() > most)
    step.byValues.pop_back();
  if (compiled)
    return compiled.get();
  auto part = Model::read(step.bytes.data(), step.bytes.size());
  if (!part.ok())
    return part.status();
  compiled = std::make_unique<Interpreter>(*part, threads, report, compileOptions, shared);
  for (size_t i = 0; i < step.cut.inputs.size(); ++i) {
    if (!std::count(step.cut.values.begin(), step.cut.values.end(), step.cut.inputs[i]))
      continue;
    Runner &r = *compiled->main();
    const TfLiteTensor &t = tensors[static_cast<size_t>(step.cut.inputs[i])];
    r.fixed.insert(i);
    absl::Status s = r.resizeInput(i, t.dims->data, t.dims->size);
    if (s.ok())
      s = r.inputs[i]->allocate(t.bytes);
    if (!s.ok())
      return s;
    if (t.bytes)
      std::memcpy(r.inputs[i]->tensor.data.data, t.data.data, t.bytes);
  }
  return compiled.get();
}

absl::Status HostGraph::runPart(Step &step, bool run) {
  auto compiled = partOf(step);
  if (!compiled.ok())
    return compiled.status();
  Runner &r = *(*compiled)->main();
  for (size_t i = 0; i < step.cut.inputs.size(); ++i) {
    const TfLiteTensor &t = tensors[static_cast<size_t>(step.cut.inputs[i])];
    if (absl::Status s = r.resizeInput(i, t.dims->data, t.dims->size); !s.ok())
      return s;
  }
  if (absl::Status s = r.allocate(); !s.ok()) {
    couldBeApart = tflgraph::apartOf(graphOps->nodes, step.cut.first, step.cut.last, std::string(s.message()));
    return s;
  }
  if (run) {
    for (size_t i = 0; i < step.cut.inputs.size(); ++i) {
      const TfLiteTensor &t = tensors[static_cast<size_t>(step.cut.inputs[i])];
      if (t.bytes != r.inputs[i]->tensor.bytes || (t.bytes && !t.data.data))
        return absl::InternalError(absl::StrCat("tensor '", t.name, "' has no value"));
      if (t.bytes)
        std::memcpy(r.inputs[i]->tensor.data.data, t.data.data, t.bytes);
    }
    if (absl::Status s = r.invoke(); !s.ok())
      return s;
  }
  for (size_t i = 0; i < step.cut.outputs.size(); ++i) {
    TfLiteTensor &t = tensors[static_cast<size_t>(step.cut.outputs[i])];
    const TfLiteTensor &from = r.outputs[i]->tensor;
    if (resize(&t, from.dims->data, from.dims->size) != kTfLiteOk || t.bytes != from.bytes)
      return absl::ResourceExhaustedError(absl::StrCat("out of memory for tensor '", t.name, "'"));
    if (run && t.bytes)
      std::memcpy(t.data.data, from.data.data, t.bytes);
  }
  return absl::OkStatus();
}

/// A part of a graph has its sizes when it has run.
absl::Status HostGraph::runGraph(const tflgraph::NodePart &part) {
  std::vector<Tensor> inputs;
  for (int index : part.inputs) {
    const TfLiteTensor &t = tensors[static_cast<size_t>(index)];
    std::vector<int64_t> dims(t.dims->data, t.dims->data + t.dims->size);
    int64_t count = 1;
    for (int64_t d : dims)
      count *= d;
    if (t.type == kTfLiteString) {
      auto values = tflgraph::readStrings(t.data.raw, t.bytes, count);
      if (!values.ok())
        return absl::Status(values.status().code(), absl::StrCat("tensor '", t.name, "': ", values.status().message()));
      inputs.push_back(Tensor::fromStrings(dims, *std::move(values)));
      continue;
    }
    const DType type = tflgraph::dtypeOf(tfl::GetModel(model->data)->subgraphs()->Get(subgraph)->tensors()->Get(static_cast<unsigned>(index))->type());
    auto value = Tensor::tryAllocate(type, dims, static_cast<int64_t>(t.bytes));
    if (!value.ok())
      return value.status();
    if (value->sizeBytes() != static_cast<int64_t>(t.bytes) || (t.bytes && !t.data.data))
      return absl::InternalError(absl::StrCat("tensor '", t.name, "' has no value"));
    if (t.bytes)
      std::memcpy(value->data(), t.data.data, t.bytes);
    inputs.push_back(*std::move(value));
  }
  auto outputs = graphOps->run(part, inputs);
  if (!outputs.ok())
    return outputs.status();
  for (size_t i = 0; i < part.outputs.size(); ++i) {
    TfLiteTensor &t = tensors[static_cast<size_t>(part.outputs[i])];
    const Tensor &value = (*outputs)[i];
    std::vector<int> dims;
    for (int64_t d : value.dims()) {
      if (d > INT32_MAX)
        return absl::OutOfRangeError(absl::StrCat("tensor '", t.name, "' is too large"));
      dims.push_back(static_cast<int>(d));
    }
    const auto *bytes = static_cast<const char *>(value.data());
    size_t size = static_cast<size_t>(value.sizeBytes());
    std::string buffer;
    if (t.type == kTfLiteString) {
      auto written = tflgraph::writeStrings(value.strings());
      if (!written.ok())
        return written.status();
      buffer = *std::move(written);
      bytes = buffer.data();
      size = buffer.size();
    }
    if (resize(&t, dims.data(), static_cast<int>(dims.size())) != kTfLiteOk ||
        (t.type == kTfLiteString && TfLiteTensorResizeMaybeCopy(size, &t, false) != kTfLiteOk) || t.bytes != size)
      return absl::ResourceExhaustedError(absl::StrCat("out of memory for tensor '", t.name, "'"));
    if (size)
      std::memcpy(t.data.data, bytes, size);
  }
  return absl::OkStatus();
}

absl::Status HostGraph::prepare(Node &n) {
  if (n.op.prepare(&context, &n.node) != kTfLiteOk)
    return failed(n.op.name.c_str(), "prepare");
  for (TfLiteIntArray *list : {n.node.outputs, n.node.temporaries})
    for (int i = 0; i < list->size; ++i)
      if (TfLiteTensor *t = tensor(list->data[i]); t && t->dims && !t->data.data && elementSize(t->type))
        if (resize(t, t->dims->data, t->dims->size) != kTfLiteOk)
          return absl::ResourceExhaustedError("out of memory for a tensor");
  return absl::OkStatus();
}

absl::Status HostGraph::allocate(Runner &runner) {
  couldBeApart = {};
  for (size_t i = 0; i < graphInputs.size() && i < runner.inputs.size(); ++i) {
    Slot &slot = *runner.inputs[i];
    if (absl::Status s = slot.allocate(slot.tensor.bytes); !s.ok())
      return s;
    if (resize(&tensors[static_cast<size_t>(graphInputs[i])], slot.tensor.dims->data, slot.tensor.dims->size) != kTfLiteOk)
      return absl::ResourceExhaustedError("out of memory for an input");
  }
  scratches.clear();
  std::set<int> late; // tensors whose sizes are not known yet
  auto readsLate = [&](const auto &list) { return std::any_of(list.begin(), list.end(), [&](int t) { return late.count(t) != 0; }); };
  auto array = [](const TfLiteIntArray *a) { return std::vector<int>(a->data, a->data + a->size); };
  for (Step &step : steps) {
    if (step.isGraph()) {
      late.insert(step.cut.nodes.outputs.begin(), step.cut.nodes.outputs.end());
      continue;
    }
    Node *n = nodeAt(step.node);
    step.isLate = n ? readsLate(array(n->node.inputs)) : readsLate(step.cut.inputs) || !step.cut.values.empty();
    if (step.isLate) {
      const std::vector<int> made = n ? array(n->node.outputs) : step.cut.outputs;
      late.insert(made.begin(), made.end());
    } else if (absl::Status s = n ? prepare(*n) : runPart(step, false); !s.ok()) {
      return s;
    }
  }
  for (size_t i = 0; i < graphOutputs.size() && i < runner.outputs.size(); ++i) {
    const TfLiteTensor &t = tensors[static_cast<size_t>(graphOutputs[i])];
    std::vector<int64_t> dims(t.dims->data, t.dims->data + t.dims->size);
    absl::Status s = runner.outputs[i]->resize(dims.data(), t.dims->size);
    if (s.ok())
      s = runner.outputs[i]->allocate(runner.outputs[i]->tensor.bytes);
    if (!s.ok())
      return s;
  }
  return absl::OkStatus();
}

absl::Status HostGraph::invoke(Runner &runner) {
  for (size_t i = 0; i < graphInputs.size() && i < runner.inputs.size(); ++i) {
    const TfLiteTensor &from = runner.inputs[i]->tensor;
    TfLiteTensor &t = tensors[static_cast<size_t>(graphInputs[i])];
    if (t.type == kTfLiteString && TfLiteTensorResizeMaybeCopy(from.bytes, &t, false) != kTfLiteOk)
      return absl::ResourceExhaustedError("out of memory for an input");
    if (from.bytes)
      std::memcpy(t.data.data, from.data.data, from.bytes);
  }
  for (Step &step : steps) {
    if (step.node < 0) {
      if (absl::Status s = step.isGraph() ? runGraph(step.cut.nodes) : runPart(step, true); !s.ok())
        return s;
      continue;
    }
    Node &n = nodes[static_cast<size_t>(step.node)];
    if (step.isLate)
      if (absl::Status s = prepare(n); !s.ok())
        return s;
    if (n.op.invoke(&context, &n.node) != kTfLiteOk)
      return failed(n.op.name.c_str(), "run");
  }
  for (size_t i = 0; i < graphOutputs.size() && i < runner.outputs.size(); ++i) {
    const TfLiteTensor &t = tensors[static_cast<size_t>(graphOutputs[i])];
    Slot &slot = *runner.outputs[i];
    std::vector<int64_t> dims(t.dims->data, t.dims->data + t.dims->size);
    absl::Status s = slot.resize(dims.data(), t.dims->size);
    if (s.ok())
      s = slot.allocate(t.bytes);
    if (!s.ok())
      return s;
    if (t.bytes != slot.tensor.bytes || (t.bytes && !t.data.data))
      return absl::InternalError(absl::StrCat("tensor '", t.name, "' has no value"));
    if (t.bytes)
      std::memcpy(slot.tensor.data.data, t.data.data, t.bytes);
  }
  return absl::OkStatus();
}

absl::Status HostGraph::resetVariables() {
  for (Step &step : steps)
    if (step.compiled)
      if (absl::Status s = step.compiled->resetVariables(); !s.ok())
        return s;
  return absl::OkStatus();
}

} // namespace lathe::tflite_api
