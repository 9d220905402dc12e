// What operators of the program see: contexts, nodes and tensors, as structures and behind functions.
#include "runtime/tflite_api/HostGraph.h"

#include <algorithm>
#include <climits>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace lathe::tflite_api;

namespace {

TfLiteTensor *of(TfLiteOpaqueTensor *t) { return reinterpret_cast<TfLiteTensor *>(t); }
const TfLiteTensor *of(const TfLiteOpaqueTensor *t) { return reinterpret_cast<const TfLiteTensor *>(t); }
TfLiteOpaqueTensor *opaque(TfLiteTensor *t) { return reinterpret_cast<TfLiteOpaqueTensor *>(t); }
TfLiteNode *of(TfLiteOpaqueNode *n) { return reinterpret_cast<TfLiteNode *>(n); }
const TfLiteNode *of(const TfLiteOpaqueNode *n) { return reinterpret_cast<const TfLiteNode *>(n); }
TfLiteContext *of(TfLiteOpaqueContext *c) { return reinterpret_cast<TfLiteContext *>(c); }
HostGraph &graphOf(const TfLiteOpaqueContext *c) { return HostGraph::of(reinterpret_cast<const TfLiteContext *>(c)); }

TfLiteStatus list(const TfLiteIntArray *a, const int **data, int *count) {
  *data = a->data;
  *count = a->size;
  return kTfLiteOk;
}
TfLiteStatus list(const std::vector<int> &v, const int **data, int *count) {
  *data = v.data();
  *count = static_cast<int>(v.size());
  return kTfLiteOk;
}
int entry(const TfLiteIntArray *a, int i) { return i < 0 || i >= a->size ? -1 : a->data[i]; }

//===--- the functions in a context ----------------------------------------===//

TfLiteStatus getPlan(TfLiteContext *c, TfLiteIntArray **plan) {
  *plan = HostGraph::of(c).plan();
  return kTfLiteOk;
}
TfLiteStatus resizeTensor(TfLiteContext *c, TfLiteTensor *t, TfLiteIntArray *size) {
  const TfLiteStatus s = t && size ? HostGraph::of(c).resize(t, size->data, size->size) : kTfLiteError;
  TfLiteIntArrayFree(size);
  return s;
}
TfLiteStatus resizeExplicit(TfLiteContext *c, TfLiteTensor *t, int rank, const int *shape) {
  return t && rank >= 0 ? HostGraph::of(c).resize(t, shape, rank) : kTfLiteError;
}
void reportVa(HostGraph &g, const char *format, va_list args) {
  const Reporter &r = g.reporter();
  if (r.function)
    return r.function(r.user, format, args);
  std::fputs("ERROR: ", stderr);
  std::vfprintf(stderr, format, args);
  std::fputc('\n', stderr);
}
void reportError(TfLiteContext *c, const char *format, ...) {
  va_list args;
  va_start(args, format);
  reportVa(HostGraph::of(c), format, args);
  va_end(args);
}
TfLiteStatus addTensors(TfLiteContext *c, int count, int *first) {
  const int at = HostGraph::of(c).addTensors(count);
  if (at < 0)
    return kTfLiteError;
  if (first)
    *first = at;
  return kTfLiteOk;
}
TfLiteStatus getNode(TfLiteContext *c, int index, TfLiteNode **node, TfLiteRegistration **registration) {
  HostGraph::Node *n = HostGraph::of(c).nodeAt(index);
  if (!n)
    return kTfLiteError;
  *node = &n->node;
  *registration = &n->registration;
  return kTfLiteOk;
}
TfLiteStatus replaceNodes(TfLiteContext *c, TfLiteRegistration kernel, const TfLiteIntArray *nodes, TfLiteDelegate *) {
  return HostGraph::of(c).replaceNodes(kernel.registration_external, nodes);
}
struct TfLiteExternalContext *getExternal(TfLiteContext *, int) { return nullptr; }
void setExternal(TfLiteContext *, int, struct TfLiteExternalContext *) {}
void *allocatePersistent(TfLiteContext *c, size_t bytes) { return HostGraph::of(c).persistent(bytes); }
TfLiteStatus allocateForEval(TfLiteContext *c, size_t bytes, void **data) {
  HostGraph &g = HostGraph::of(c);
  *data = g.scratch(g.requestScratch(bytes));
  return kTfLiteOk;
}
TfLiteStatus requestScratch(TfLiteContext *c, size_t bytes, int *index) {
  *index = HostGraph::of(c).requestScratch(bytes);
  return kTfLiteOk;
}
void *getScratch(TfLiteContext *c, int index) { return HostGraph::of(c).scratch(index); }
TfLiteStatus preview(TfLiteContext *, const TfLiteIntArray *, struct TfLiteDelegateParams **, int *) { return kTfLiteError; }
TfLiteTensor *getTensor(const TfLiteContext *c, int index) { return HostGraph::of(c).tensor(index); }
struct TfLiteEvalTensor *getEvalTensor(const TfLiteContext *, int) { return nullptr; }
TfLiteStatus getMetadata(const TfLiteContext *c, const char *name, const char **data, size_t *bytes) {
  return HostGraph::of(c).metadata(name, data, bytes) ? kTfLiteOk : kTfLiteError;
}
TfLiteStatus acquire(TfLiteContext *, int, TfLiteContext **) { return kTfLiteError; }
TfLiteStatus release(TfLiteContext *, int) { return kTfLiteError; }

/// How a tensor of strings begins, or -1 where its bytes are none.
int stringCount(const TfLiteTensor &t) {
  int32_t count = 0;
  if (t.type != kTfLiteString || !t.data.raw || t.bytes < 4)
    return -1;
  std::memcpy(&count, t.data.raw, 4);
  return count < 0 || (static_cast<size_t>(count) + 2) * 4 > t.bytes ? -1 : count;
}

} // namespace

void HostGraph::makeContext(int threadCount) {
  context = {};
  context.impl_ = this;
  context.tensors = tensors.data();
  context.tensors_size = tensors.size();
  context.GetExecutionPlan = getPlan;
  context.ResizeTensor = resizeTensor;
  context.ReportError = reportError;
  context.AddTensors = ::addTensors;
  context.GetNodeAndRegistration = getNode;
  context.ReplaceNodeSubsetsWithDelegateKernels = reinterpret_cast<void *>(::replaceNodes);
  context.recommended_num_threads = threadCount;
  context.GetExternalContext = getExternal;
  context.SetExternalContext = setExternal;
  context.AllocatePersistentBuffer = allocatePersistent;
  context.AllocateBufferForEval = allocateForEval;
  context.RequestScratchBufferInArena = ::requestScratch;
  context.GetScratchBuffer = getScratch;
  context.ResizeTensorExplicit = resizeExplicit;
  context.PreviewDelegatePartitioning = preview;
  context.GetTensor = getTensor;
  context.GetEvalTensor = getEvalTensor;
  context.GetModelMetadata = getMetadata;
  context.AcquireSubgraphContext = acquire;
  context.ReleaseSubgraphContext = ::release;
}

struct TfLiteOpaqueTensorBuilder {
  TfLiteTensor tensor = {};
};

extern "C" {

TfLiteType TfLiteOpaqueTensorType(const TfLiteOpaqueTensor *t) { return of(t)->type; }
int32_t TfLiteOpaqueTensorNumDims(const TfLiteOpaqueTensor *t) { return of(t)->dims ? of(t)->dims->size : -1; }
int32_t TfLiteOpaqueTensorDim(const TfLiteOpaqueTensor *t, int32_t i) { return of(t)->dims->data[i]; }
TfLiteStatus TfLiteOpaqueTensorGetNumDimsSignature(const TfLiteOpaqueTensor *t, int32_t *count) {
  *count = of(t)->dims_signature ? of(t)->dims_signature->size : -1;
  return kTfLiteOk;
}
TfLiteStatus TfLiteOpaqueTensorGetDimSignature(const TfLiteOpaqueTensor *t, int32_t i, int32_t *size) {
  const TfLiteIntArray *dims = of(t)->dims_signature;
  if (!dims || i < 0 || i >= dims->size) {
    *size = -1;
    return dims ? kTfLiteError : kTfLiteOk;
  }
  *size = dims->data[i];
  return kTfLiteOk;
}
int TfLiteOpaqueTensorIsVariable(const TfLiteOpaqueTensor *t) { return of(t)->is_variable; }
size_t TfLiteOpaqueTensorByteSize(const TfLiteOpaqueTensor *t) { return of(t)->bytes; }
void *TfLiteOpaqueTensorData(const TfLiteOpaqueTensor *t) { return t ? of(t)->data.data : nullptr; }
TfLiteAllocationType TfLiteOpaqueTensorGetAllocationType(const TfLiteOpaqueTensor *t) { return of(t)->allocation_type; }
TfLiteAllocationStrategy TfLiteOpaqueTensorGetAllocationStrategy(const TfLiteOpaqueTensor *t) { return TfLiteTensorGetAllocationStrategy(of(t)); }
TfLiteRunStability TfLiteOpaqueTensorGetBufferAddressStability(const TfLiteOpaqueTensor *t) {
  return TfLiteTensorGetBufferAddressStability(of(t));
}
TfLiteRunStability TfLiteOpaqueTensorGetDataStability(const TfLiteOpaqueTensor *t) { return TfLiteTensorGetDataStability(of(t)); }
TfLiteRunStep TfLiteOpaqueTensorGetDataKnownStep(const TfLiteOpaqueTensor *t) { return TfLiteTensorGetDataKnownStep(of(t)); }
TfLiteRunStep TfLiteOpaqueTensorGetShapeKnownStep(const TfLiteOpaqueTensor *t) { return TfLiteTensorGetShapeKnownStep(of(t)); }
const char *TfLiteOpaqueTensorName(const TfLiteOpaqueTensor *t) { return of(t)->name; }
TfLiteQuantization TfLiteOpaqueTensorGetQuantization(const TfLiteOpaqueTensor *t) { return of(t)->quantization; }
TfLiteQuantizationParams TfLiteOpaqueTensorGetQuantizationParams(const TfLiteOpaqueTensor *t) { return of(t)->params; }
TfLiteStatus TfLiteOpaqueTensorCopyFromBuffer(TfLiteOpaqueTensor *t, const void *data, size_t size) {
  return TfLiteTensorCopyFromBuffer(of(t), data, size);
}
TfLiteStatus TfLiteOpaqueTensorCopyToBuffer(const TfLiteOpaqueTensor *t, void *data, size_t size) {
  return TfLiteTensorCopyToBuffer(of(t), data, size);
}
void TfLiteOpaqueTensorSetAllocationTypeToDynamic(TfLiteOpaqueTensor *t) {
  TfLiteTensor &tensor = *of(t);
  if (tensor.allocation_type == kTfLiteDynamic)
    return;
  tensor.allocation_type = kTfLiteDynamic;
  tensor.data.data = nullptr;
  tensor.bytes = 0;
}

int TfLiteOpaqueTensorGetStringCount(const TfLiteOpaqueTensor *t) { return t ? stringCount(*of(t)) : -1; }
TfLiteStatus TfLiteOpaqueTensorGetString(const TfLiteOpaqueTensor *t, int index, const char **str, int *len) {
  const int count = TfLiteOpaqueTensorGetStringCount(t);
  if (index < 0 || index >= count)
    return kTfLiteError;
  int32_t begin = 0, end = 0;
  std::memcpy(&begin, of(t)->data.raw + 4 * (index + 1), 4);
  std::memcpy(&end, of(t)->data.raw + 4 * (index + 2), 4);
  if (begin < 0 || end < begin || static_cast<size_t>(end) > of(t)->bytes)
    return kTfLiteError;
  *str = of(t)->data.raw + begin;
  *len = end - begin;
  return kTfLiteOk;
}
TfLiteStatus TfLiteOpaqueTensorWriteStrings(TfLiteOpaqueTensor *t, const char *const *strings, int count, const int *lengths) {
  TfLiteTensor &tensor = *of(t);
  if (tensor.type != kTfLiteString || count < 0)
    return kTfLiteError;
  int64_t bytes = 4 * (int64_t(count) + 2);
  for (int i = 0; i < count; ++i) {
    if (lengths[i] < 0)
      return kTfLiteError;
    bytes += lengths[i];
  }
  if (bytes > INT_MAX)
    return kTfLiteError;
  auto *data = static_cast<char *>(std::malloc(static_cast<size_t>(bytes)));
  if (!data)
    return kTfLiteError;
  std::memcpy(data, &count, 4);
  int32_t at = 4 * (count + 2);
  for (int i = 0; i < count; ++i) {
    std::memcpy(data + 4 * (i + 1), &at, 4);
    std::memcpy(data + at, strings[i], static_cast<size_t>(lengths[i]));
    at += lengths[i];
  }
  std::memcpy(data + 4 * (count + 1), &at, 4);
  TfLiteTensorDataFree(&tensor);
  tensor.allocation_type = kTfLiteDynamic;
  tensor.data.raw = data;
  tensor.bytes = static_cast<size_t>(bytes);
  if (!tensor.dims || tensor.dims->size != 1 || tensor.dims->data[0] != count) {
    TfLiteIntArrayFree(tensor.dims);
    tensor.dims = TfLiteIntArrayCreate(1);
    tensor.dims->data[0] = count;
  }
  return kTfLiteOk;
}
TfLiteStatus TfLiteOpaqueTensorWriteString(TfLiteOpaqueTensor *t, const char *str, int len) {
  return TfLiteOpaqueTensorWriteStrings(t, &str, 1, &len);
}

TfLiteOpaqueTensorBuilder *TfLiteOpaqueTensorBuilderCreate(void) { return new TfLiteOpaqueTensorBuilder; }
void TfLiteOpaqueTensorBuilderDelete(TfLiteOpaqueTensorBuilder *b) { delete b; }
TfLiteOpaqueTensorBuilder *TfLiteOpaqueTensorBuilderSetType(TfLiteOpaqueTensorBuilder *b, TfLiteType type) {
  b->tensor.type = type;
  return b;
}
TfLiteOpaqueTensorBuilder *TfLiteOpaqueTensorBuilderSetData(TfLiteOpaqueTensorBuilder *b, void *data) {
  b->tensor.data.data = data;
  return b;
}
TfLiteOpaqueTensorBuilder *TfLiteOpaqueTensorBuilderSetAllocationType(TfLiteOpaqueTensorBuilder *b, TfLiteAllocationType type) {
  b->tensor.allocation_type = type;
  return b;
}
TfLiteOpaqueTensorBuilder *TfLiteOpaqueTensorBuilderSetQuantizationParams(TfLiteOpaqueTensorBuilder *b, TfLiteQuantizationParams params) {
  b->tensor.params = params;
  return b;
}
TfLiteOpaqueTensorBuilder *TfLiteOpaqueTensorBuilderSetQuantization(TfLiteOpaqueTensorBuilder *b, TfLiteQuantization q) {
  b->tensor.quantization = q;
  return b;
}

const TfLiteOpaqueTensor *TfLiteOpaqueNodeGetInput(const TfLiteOpaqueContext *c, const TfLiteOpaqueNode *n, int i) {
  return opaque(graphOf(c).tensor(entry(of(n)->inputs, i)));
}
TfLiteOpaqueTensor *TfLiteOpaqueNodeGetOutput(TfLiteOpaqueContext *c, const TfLiteOpaqueNode *n, int i) {
  return opaque(graphOf(c).tensor(entry(of(n)->outputs, i)));
}
int TfLiteOpaqueNodeNumberOfInputs(const TfLiteOpaqueNode *n) { return of(n)->inputs->size; }
int TfLiteOpaqueNodeNumberOfOutputs(const TfLiteOpaqueNode *n) { return of(n)->outputs->size; }
void *TfLiteOpaqueNodeGetUserData(const TfLiteOpaqueNode *n) { return of(n)->user_data; }
void *TfLiteOpaqueNodeGetBuiltinData(const TfLiteOpaqueNode *n) { return of(n)->builtin_data; }
TfLiteStatus TfLiteOpaqueNodeGetCustomInitialData(const TfLiteOpaqueNode *n, const void **data, int *size) {
  *data = of(n)->custom_initial_data;
  *size = of(n)->custom_initial_data_size;
  return kTfLiteOk;
}
TfLiteStatus TfLiteOpaqueNodeInputs(const TfLiteOpaqueNode *n, const int **data, int *count) { return list(of(n)->inputs, data, count); }
TfLiteStatus TfLiteOpaqueNodeOutputs(const TfLiteOpaqueNode *n, const int **data, int *count) { return list(of(n)->outputs, data, count); }
TfLiteStatus TfLiteOpaqueNodeTemporaries(const TfLiteOpaqueNode *n, const int **data, int *count) {
  return list(of(n)->temporaries, data, count);
}
TfLiteStatus TfLiteOpaqueNodeSetTemporaries(TfLiteOpaqueNode *n, const int *temporaries, int count) {
  TfLiteIntArray *a = count < 0 ? nullptr : TfLiteIntArrayCreate(count);
  if (!a)
    return kTfLiteError;
  std::copy(temporaries, temporaries + count, a->data);
  TfLiteIntArrayFree(of(n)->temporaries);
  of(n)->temporaries = a;
  return kTfLiteOk;
}
int TfLiteOpaqueNodeGetInputTensorIndex(const TfLiteOpaqueNode *n, int i) { return entry(of(n)->inputs, i); }
int TfLiteOpaqueNodeGetOutputTensorIndex(const TfLiteOpaqueNode *n, int i) { return entry(of(n)->outputs, i); }

TfLiteStatus TfLiteOpaqueContextGetExecutionPlan(TfLiteOpaqueContext *c, TfLiteIntArray **plan) { return getPlan(of(c), plan); }
TfLiteStatus TfLiteOpaqueContextGetNodeAndRegistration(TfLiteOpaqueContext *c, int index, TfLiteOpaqueNode **node, TfLiteOperator **op) {
  HostGraph::Node *n = graphOf(c).nodeAt(index);
  if (!n)
    return kTfLiteError;
  if (!n->op.op && !n->external)
    n->external = TfLiteOperatorCreate(kTfLiteBuiltinCustom, n->op.name.c_str(), n->registration.version);
  *node = reinterpret_cast<TfLiteOpaqueNode *>(&n->node);
  *op = n->op.op ? const_cast<TfLiteOperator *>(n->op.op) : n->external;
  return kTfLiteOk;
}
TfLiteStatus TfLiteOpaqueContextReplaceNodeSubsetsWithDelegateKernels(TfLiteOpaqueContext *c, TfLiteOperator *kernel,
                                                                      const TfLiteIntArray *nodes, TfLiteOpaqueDelegate *) {
  return graphOf(c).replaceNodes(kernel, nodes);
}
TfLiteOpaqueTensor *TfLiteOpaqueContextGetOpaqueTensor(const TfLiteOpaqueContext *c, int index) { return opaque(graphOf(c).tensor(index)); }
TfLiteStatus TfLiteOpaqueContextGetInputs(const TfLiteOpaqueContext *c, const int **data, int *count) {
  return list(graphOf(c).inputs(), data, count);
}
TfLiteStatus TfLiteOpaqueContextGetOutputs(const TfLiteOpaqueContext *c, const int **data, int *count) {
  return list(graphOf(c).outputs(), data, count);
}
TfLiteStatus TfLiteOpaqueContextGetVariables(const TfLiteOpaqueContext *c, const int **data, int *count) {
  return list(graphOf(c).variables(), data, count);
}
size_t TfLiteOpaqueContextGetNumNodes(const TfLiteOpaqueContext *c) { return graphOf(c).numNodes(); }
size_t TfLiteOpaqueContextGetNumTensors(const TfLiteOpaqueContext *c) { return graphOf(c).numTensors(); }
const char *TfLiteOpaqueContextGetName(const TfLiteOpaqueContext *c) { return graphOf(c).name(); }
TfLiteStatus TfLiteOpaqueContextResizeTensor(TfLiteOpaqueContext *c, TfLiteOpaqueTensor *t, TfLiteIntArray *size) {
  return resizeTensor(of(c), of(t), size);
}
TfLiteStatus TfLiteOpaqueContextAcquireSubgraphContext(TfLiteOpaqueContext *, int, TfLiteOpaqueContext **) { return kTfLiteError; }
TfLiteStatus TfLiteOpaqueContextReleaseSubgraphContext(TfLiteOpaqueContext *, int) { return kTfLiteError; }
TfLiteStatus TfLiteOpaqueContextMarkSubgraphAsDelegationSkippable(TfLiteOpaqueContext *, int) { return kTfLiteError; }
TfLiteStatus TfLiteOpaqueContextGetNodeInitDataMmapInfo(const TfLiteOpaqueContext *, const TfLiteOpaqueNode *, int *, int64_t *, int64_t *) {
  return kTfLiteError; // no file is mapped
}
TfLiteStatus TfLiteOpaqueContextAddTensor(TfLiteOpaqueContext *c, TfLiteOpaqueTensorBuilder *b, int *index) {
  const TfLiteTensor &given = b->tensor;
  if (given.allocation_type != kTfLiteDynamic && given.allocation_type != kTfLiteArenaRw && given.allocation_type != kTfLiteArenaRwPersistent)
    return kTfLiteError;
  if (given.allocation_type == kTfLiteDynamic && given.data.data)
    return kTfLiteError;
  const int at = graphOf(c).addTensors(1);
  if (at < 0)
    return kTfLiteError;
  TfLiteTensor &t = *graphOf(c).tensor(at);
  t.type = given.type;
  t.params = given.params;
  t.allocation_type = given.allocation_type;
  t.data = given.data;
  if (index)
    *index = at;
  return kTfLiteOk;
}
TfLiteStatus TfLiteOpaqueContextGetSizeOfType(TfLiteOpaqueContext *, TfLiteType type, size_t *bytes) {
  *bytes = elementSize(type);
  return *bytes ? kTfLiteOk : kTfLiteError;
}
void TfLiteOpaqueContextReportErrorVa(TfLiteOpaqueContext *c, const char *format, va_list args) { reportVa(graphOf(c), format, args); }
void TfLiteOpaqueContextReportError(TfLiteOpaqueContext *c, const char *format, ...) {
  va_list args;
  va_start(args, format);
  reportVa(graphOf(c), format, args);
  va_end(args);
}

} // extern "C"
