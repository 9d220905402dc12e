// What an operation is: its names, inputs, outputs, and who reads them.
#include "runtime/c_api/Internal.h"

#include "absl/strings/str_cat.h"

#include <algorithm>

using namespace lathe;
using namespace lathe::c_api;

namespace {

template <typename Write>
int writeNodes(const std::vector<Node *> &nodes, int most, Write write) {
  for (int i = 0; i < std::min<int>(most, static_cast<int>(nodes.size())); ++i)
    write(i, operationOf(nodes[i]));
  return static_cast<int>(nodes.size());
}

/// The type as graphs number it: 100 more for references.
TF_DataType typeOf(DType type, bool isRef) { return static_cast<TF_DataType>(static_cast<int>(type) + (isRef ? 100 : 0)); }

int listLength(TF_Operation *oper, const char *arg_name, TF_Status *status, bool isInput) {
  if (!present(status, "oper, arg_name", oper, arg_name))
    return -1;
  const Node *node = nodeOf(oper);
  auto [start, count] = isInput ? node->inputRange(arg_name) : node->outputRange(arg_name);
  if (start >= 0)
    return count;
  setInvalid(status, absl::StrCat("operation '", node->name(), "' (", node->op(), ") has no ", isInput ? "input" : "output", " '", arg_name, "'"));
  return -1;
}

} // namespace

extern "C" {

const char *TF_OperationName(TF_Operation *oper) { return oper ? nodeOf(oper)->name().c_str() : ""; }
const char *TF_OperationOpType(TF_Operation *oper) { return oper ? nodeOf(oper)->op().c_str() : ""; }
const char *TF_OperationDevice(TF_Operation *oper) { return oper ? nodeOf(oper)->device().c_str() : ""; }
int TF_OperationNumOutputs(TF_Operation *oper) { return oper ? nodeOf(oper)->numOutputs() : 0; }
int TF_OperationNumInputs(TF_Operation *oper) { return oper ? nodeOf(oper)->numInputs() : 0; }

TF_DataType TF_OperationOutputType(TF_Output oper_out) {
  Endpoint e = endpointOf(oper_out);
  return e ? typeOf(e.type(), e.isRef()) : static_cast<TF_DataType>(0);
}

TF_DataType TF_OperationInputType(TF_Input oper_in) {
  const Node *node = nodeOf(oper_in.oper);
  if (!node || oper_in.index < 0 || oper_in.index >= node->numInputs())
    return static_cast<TF_DataType>(0);
  return typeOf(node->inputType(oper_in.index), node->inputIsRef(oper_in.index));
}

int TF_OperationOutputListLength(TF_Operation *oper, const char *arg_name, TF_Status *status) {
  return listLength(oper, arg_name, status, false);
}
int TF_OperationInputListLength(TF_Operation *oper, const char *arg_name, TF_Status *status) {
  return listLength(oper, arg_name, status, true);
}

TF_Output TF_OperationInput(TF_Input oper_in) {
  const Node *node = nodeOf(oper_in.oper);
  if (!node || oper_in.index < 0 || oper_in.index >= node->numInputs())
    return {nullptr, -1};
  return outputOf(node->input(oper_in.index));
}

void TF_OperationAllInputs(TF_Operation *oper, TF_Output *inputs, int max_inputs) {
  for (int i = 0; oper && inputs && i < std::min(max_inputs, nodeOf(oper)->numInputs()); ++i)
    inputs[i] = outputOf(nodeOf(oper)->input(i));
}

int TF_OperationOutputNumConsumers(TF_Output oper_out) {
  Endpoint e = endpointOf(oper_out);
  return e ? static_cast<int>(e.node->uses(e.index).size()) : 0;
}

int TF_OperationOutputConsumers(TF_Output oper_out, TF_Input *consumers, int max_consumers) {
  Endpoint e = endpointOf(oper_out);
  if (!e)
    return 0;
  const std::vector<graphdef::Use> &uses = e.node->uses(e.index);
  for (int i = 0; consumers && i < std::min<int>(max_consumers, static_cast<int>(uses.size())); ++i)
    consumers[i] = {operationOf(uses[i].node), uses[i].index};
  return static_cast<int>(uses.size());
}

int TF_OperationNumControlInputs(TF_Operation *oper) { return oper ? static_cast<int>(nodeOf(oper)->controls().size()) : 0; }
int TF_OperationNumControlOutputs(TF_Operation *oper) { return oper ? static_cast<int>(nodeOf(oper)->controlUsers().size()) : 0; }

int TF_OperationGetControlInputs(TF_Operation *oper, TF_Operation **control_inputs, int max_control_inputs) {
  return oper ? writeNodes(nodeOf(oper)->controls(), control_inputs ? max_control_inputs : 0,
                           [&](int i, TF_Operation *op) { control_inputs[i] = op; })
              : 0;
}

int TF_OperationGetControlOutputs(TF_Operation *oper, TF_Operation **control_outputs, int max_control_outputs) {
  return oper ? writeNodes(nodeOf(oper)->controlUsers(), control_outputs ? max_control_outputs : 0,
                           [&](int i, TF_Operation *op) { control_outputs[i] = op; })
              : 0;
}

void TF_OperationToNodeDef(TF_Operation *oper, TF_Buffer *output_node_def, TF_Status *status) {
  if (present(status, "oper, output_node_def", oper, output_node_def))
    giveMessage(nodeOf(oper)->toProto(), output_node_def, status);
}

int TF_OperationGetNumAttrs(TF_Operation *oper) { return oper ? static_cast<int>(nodeOf(oper)->attrs().size()) : 0; }

} // extern "C"

namespace {

/// Attribute `i` in the order of names; empty when there is none.
std::string attrName(TF_Operation *oper, int i) {
  std::vector<std::string> names;
  if (oper)
    for (auto &[name, value] : nodeOf(oper)->attrs())
      names.push_back(name);
  if (i < 0 || i >= static_cast<int>(names.size()))
    return "";
  std::sort(names.begin(), names.end());
  return names[i];
}

} // namespace

extern "C" {

int TF_OperationGetAttrNameLength(TF_Operation *oper, int i) { return static_cast<int>(attrName(oper, i).size()); }

void TF_OperationGetAttrName(TF_Operation *oper, int i, char *output, TF_Status *status) {
  if (!present(status, "oper, output", oper, output))
    return;
  std::string name = attrName(oper, i);
  if (name.empty())
    return set(status, absl::OutOfRangeError(absl::StrCat("operation '", nodeOf(oper)->name(), "' has no attribute ", i)));
  std::copy(name.begin(), name.end(), output);
}

} // extern "C"
