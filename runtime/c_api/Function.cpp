// Functions: parts of graphs under a name, and the libraries of graphs.
#include "runtime/c_api/Internal.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <set>

struct TF_Function {
  lathe::tf::FunctionDef def;
};
struct TF_FunctionOptions {};

using namespace lathe;
using namespace lathe::c_api;

namespace {

/// Names as arguments have them: small letters, digits and '_', a letter first.
std::string normalized(const std::string &name) {
  std::string out;
  for (char c : name) {
    bool isLetter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'), isDigit = c >= '0' && c <= '9';
    if (out.empty() && !isLetter)
      continue;
    out.push_back(isLetter ? static_cast<char>(c | 0x20) : isDigit ? c : '_');
  }
  return out.empty() ? "unknown" : out;
}

std::string hashOf(const std::string &bytes) {
  uint64_t hash = 14695981039346656037u;
  for (unsigned char c : bytes)
    hash = (hash ^ c) * 1099511628211u;
  return absl::StrCat(absl::Hex(hash, absl::kZeroPad16));
}

/// What TF_GraphToFunction is asked for.
struct Request {
  const TF_Graph *graph;
  std::string name;
  bool appendHash;
  int numOpers;
  const TF_Operation *const *opers;
  std::vector<TF_Output> inputs, outputs;
  std::vector<std::string> outputNames; ///< empty: made of the nodes' names
  std::vector<const TF_Operation *> controls;
  std::vector<std::string> controlNames;
  std::string description;
};

class FunctionMaker {
public:
  explicit FunctionMaker(const Request &request) : request(request) {}

  absl::StatusOr<tf::FunctionDef> run() {
    for (auto step : {&FunctionMaker::takeInputs, &FunctionMaker::chooseBody, &FunctionMaker::writeOutputs, &FunctionMaker::writeBody,
                      &FunctionMaker::writeResults})
      if (absl::Status s = (this->*step)(); !s.ok())
        return absl::Status(s.code(), absl::StrCat("function '", request.name, "': ", s.message()));
    def.mutable_signature()->set_description(request.description);
    def.mutable_signature()->set_name(request.name);
    if (request.appendHash)
      def.mutable_signature()->set_name(absl::StrCat(request.name, "_", hashOf(def.SerializeAsString())));
    return std::move(def);
  }

private:
  static absl::Status refuse(const std::string &message) { return absl::InvalidArgumentError(message); }

  std::string fresh(const std::string &name) {
    std::string out = name;
    for (int i = 0; !used.insert(out).second; ++i)
      out = absl::StrCat(name, "_", i);
    return out;
  }

  absl::StatusOr<Endpoint> endpoint(TF_Output output, const char *what, size_t i) {
    auto e = checkedEndpoint(output, request.graph, absl::StrCat(what, " ", i));
    if (!e.ok())
      return refuse(std::string(e.status().message()));
    if (e->isRef())
      return refuse(absl::StrCat(what, " ", i, " is a reference, which functions cannot pass on"));
    return e;
  }

  absl::Status takeInputs() {
    for (size_t i = 0; i < request.inputs.size(); ++i) {
      auto e = endpoint(request.inputs[i], "input", i);
      if (!e.ok())
        return e.status();
      std::string name = fresh(normalized(e->node->name()));
      if (!args.emplace(*e, name).second)
        return refuse(absl::StrCat("'", e->name(), "' is more than once among the inputs"));
      inputNodes.insert(e->node);
      tf::OpDef::ArgDef *arg = def.mutable_signature()->add_input_arg();
      arg->set_name(name);
      arg->set_type(static_cast<tf::DataType>(e->type()));
    }
    return absl::OkStatus();
  }

  absl::Status chooseBody() {
    if (request.numOpers >= 0) {
      for (int i = 0; i < request.numOpers; ++i) {
        const TF_Operation *op = request.opers ? request.opers[i] : nullptr;
        if (!op || graphOf(nodeOf(op)) != request.graph)
          return refuse(absl::StrCat("operation ", i, " is missing, or in another graph"));
        body.push_back(nodeOf(op));
        inBody.insert(body.back());
      }
      return absl::OkStatus();
    }
    for (const Node *node : request.graph->graph.nodes()) {
      if (inputNodes.count(node)) {
        if (node->numOutputs() != 1)
          return refuse(absl::StrCat("'", node->name(), "' is an input and has ", node->numOutputs(), " outputs; name the body's operations"));
        continue;
      }
      body.push_back(node);
      inBody.insert(node);
    }
    return absl::OkStatus();
  }

  absl::Status writeOutputs() {
    std::set<std::string> given;
    for (size_t i = 0; i < request.outputs.size(); ++i) {
      auto e = endpoint(request.outputs[i], "output", i);
      if (!e.ok())
        return e.status();
      results.push_back(*e);
      tf::OpDef::ArgDef *arg = def.mutable_signature()->add_output_arg();
      arg->set_name(request.outputNames.empty() ? fresh(normalized(e->node->name())) : request.outputNames[i]);
      arg->set_type(static_cast<tf::DataType>(e->type()));
      if (arg->name().empty() || !given.insert(arg->name()).second)
        return refuse(absl::StrCat("the output name '", arg->name(), "' is empty or comes twice"));
    }
    return absl::OkStatus();
  }

  /// "arg" or "node:output:index"; "" when neither the inputs nor the body have it.
  std::string source(Endpoint e) const {
    if (auto arg = args.find(e); arg != args.end())
      return arg->second;
    auto name = names.find(e.node);
    if (name == names.end())
      return "";
    for (const ops::Arg &arg : e.node->info().outputs) {
      auto [start, count] = e.node->outputRange(arg.name);
      if (e.index >= start && e.index < start + count)
        return absl::StrCat(name->second, ":", std::string(arg.name), ":", e.index - start);
    }
    return "";
  }

  absl::Status writeBody() {
    for (const Node *node : body)
      names[node] = fresh(node->name());
    for (const Node *node : body) {
      tf::NodeDef *out = def.add_node_def();
      *out = node->toProto();
      out->set_name(names[node]);
      out->clear_input();
      for (int i = 0; i < node->numInputs(); ++i) {
        std::string from = source(node->input(i));
        if (from.empty())
          return graphdef::atNode(node->name(), node->op(),
                                  refuse(absl::StrCat("input ", i, " ('", node->input(i).name(), "') is neither an input of the function nor in its body")));
        out->add_input(from);
      }
      for (const Node *control : node->controls()) {
        auto name = names.find(control);
        std::string from = name != names.end() ? name->second : "";
        for (auto &[e, arg] : args)
          if (from.empty() && e.node == control)
            from = arg;
        if (from.empty())
          return graphdef::atNode(node->name(), node->op(),
                                  refuse(absl::StrCat("control input '", control->name(), "' is neither an input of the function nor in its body")));
        out->add_input(absl::StrCat("^", from));
      }
      if (node->info().isStateful)
        def.mutable_signature()->set_is_stateful(true);
    }
    return absl::OkStatus();
  }

  absl::Status writeResults() {
    for (size_t i = 0; i < results.size(); ++i) {
      std::string from = source(results[i]);
      if (from.empty())
        return refuse(absl::StrCat("output ", i, " ('", results[i].name(), "') is neither an input of the function nor in its body"));
      (*def.mutable_ret())[def.signature().output_arg(static_cast<int>(i)).name()] = from;
    }
    for (size_t i = 0; i < request.controls.size(); ++i) {
      const Node *node = nodeOf(request.controls[i]);
      auto name = node ? names.find(node) : names.end();
      if (name == names.end())
        return refuse(absl::StrCat("control output ", i, " is not in the body"));
      std::string control = request.controlNames.empty() ? name->second : request.controlNames[i];
      if (!def.mutable_control_ret()->insert({control, name->second}).second)
        return refuse(absl::StrCat("the control output name '", control, "' comes twice"));
      def.mutable_signature()->add_control_output(control);
    }
    return absl::OkStatus();
  }

  const Request &request;
  tf::FunctionDef def;
  std::set<std::string> used;
  std::map<Endpoint, std::string> args;
  std::set<const Node *> inputNodes, inBody;
  std::vector<const Node *> body;
  std::vector<Endpoint> results;
  std::map<const Node *, std::string> names;
};

bool takeStrings(const char *const *texts, int n, std::vector<std::string> *out) {
  for (int i = 0; texts && i < n; ++i) {
    if (!texts[i])
      return false;
    out->push_back(texts[i]);
  }
  return true;
}

absl::Status asInvalid(const absl::Status &s) {
  return s.code() == absl::StatusCode::kAlreadyExists ? absl::InvalidArgumentError(s.message()) : s;
}

absl::Status addFunction(TF_Graph &graph, const tf::FunctionDef &def) {
  if (ops::findOp(def.signature().name()))
    return absl::InvalidArgumentError(absl::StrCat("an op is named '", def.signature().name(), "'"));
  return asInvalid(graph.graph.library().add(def));
}

} // namespace

extern "C" {

TF_Function *TF_GraphToFunction(const TF_Graph *fn_body, const char *fn_name, unsigned char append_hash_to_fn_name, int num_opers,
                                const TF_Operation *const *opers, int ninputs, const TF_Output *inputs, int noutputs,
                                const TF_Output *outputs, const char *const *output_names, const TF_FunctionOptions *opts,
                                const char *description, TF_Status *status) {
  return TF_GraphToFunctionWithControlOutputs(fn_body, fn_name, append_hash_to_fn_name, num_opers, opers, ninputs, inputs, noutputs, outputs,
                                              output_names, 0, nullptr, nullptr, opts, description, status);
}

TF_Function *TF_GraphToFunctionWithControlOutputs(const TF_Graph *fn_body, const char *fn_name, unsigned char append_hash_to_fn_name,
                                                  int num_opers, const TF_Operation *const *opers, int ninputs, const TF_Output *inputs,
                                                  int noutputs, const TF_Output *outputs, const char *const *output_names,
                                                  int ncontrol_outputs, const TF_Operation *const *control_outputs,
                                                  const char *const *control_output_names, const TF_FunctionOptions *,
                                                  const char *description, TF_Status *status) {
  if (!present(status, "fn_body, fn_name", fn_body, fn_name))
    return nullptr;
  if (!*fn_name || num_opers < -1 || ninputs < 0 || noutputs < 0 || ncontrol_outputs < 0 || (num_opers > 0 && !opers) ||
      (ninputs > 0 && !inputs) || (noutputs > 0 && !outputs) || (ncontrol_outputs > 0 && !control_outputs)) {
    setInvalid(status, "an empty name, a negative number, or a missing list");
    return nullptr;
  }
  Request request{fn_body, fn_name, append_hash_to_fn_name != 0, num_opers, opers, {}, {}, {}, {}, {}, textOf(description)};
  request.inputs.assign(inputs, inputs + ninputs);
  request.outputs.assign(outputs, outputs + noutputs);
  request.controls.assign(control_outputs, control_outputs + ncontrol_outputs);
  if (!takeStrings(output_names, noutputs, &request.outputNames) || !takeStrings(control_output_names, ncontrol_outputs, &request.controlNames)) {
    setInvalid(status, "the name of an output is missing");
    return nullptr;
  }
  std::lock_guard<std::mutex> lock(const_cast<TF_Graph *>(fn_body)->mutex);
  auto def = FunctionMaker(request).run();
  set(status, def.status());
  return def.ok() ? new TF_Function{*std::move(def)} : nullptr;
}

const char *TF_FunctionName(TF_Function *func) { return func ? func->def.signature().name().c_str() : ""; }
void TF_DeleteFunction(TF_Function *func) { delete func; }

void TF_FunctionToFunctionDef(TF_Function *func, TF_Buffer *output_func_def, TF_Status *status) {
  if (present(status, "func, output_func_def", func, output_func_def))
    giveMessage(func->def, output_func_def, status);
}

TF_Function *TF_FunctionImportFunctionDef(const void *proto, size_t proto_len, TF_Status *status) {
  tf::FunctionDef def;
  if (!parseMessage(proto, proto_len, "FunctionDef", &def, status))
    return nullptr;
  return new TF_Function{std::move(def)};
}

void TF_FunctionSetAttrValueProto(TF_Function *func, const char *attr_name, const void *proto, size_t proto_len, TF_Status *status) {
  tf::AttrValue value;
  if (present(status, "func, attr_name", func, attr_name) && parseMessage(proto, proto_len, "AttrValue", &value, status))
    (*func->def.mutable_attr())[attr_name] = std::move(value);
}

void TF_FunctionGetAttrValueProto(TF_Function *func, const char *attr_name, TF_Buffer *output_attr_value, TF_Status *status) {
  if (!present(status, "func, attr_name, output_attr_value", func, attr_name, output_attr_value))
    return;
  auto it = func->def.attr().find(attr_name);
  if (it == func->def.attr().end())
    return setInvalid(status, absl::StrCat("function '", func->def.signature().name(), "' has no attribute '", attr_name, "'"));
  giveMessage(it->second, output_attr_value, status);
}

void TF_GraphCopyFunction(TF_Graph *g, const TF_Function *func, const TF_Function *grad, TF_Status *status) {
  if (!present(status, "g, func", g, func))
    return;
  std::lock_guard<std::mutex> lock(g->mutex);
  absl::Status s = addFunction(*g, func->def);
  if (s.ok() && grad) {
    s = addFunction(*g, grad->def);
    if (s.ok())
      s = asInvalid(g->graph.library().addGradient(func->def.signature().name(), grad->def.signature().name()));
  }
  set(status, s);
}

int TF_GraphNumFunctions(TF_Graph *g) {
  if (!g)
    return 0;
  std::lock_guard<std::mutex> lock(g->mutex);
  return static_cast<int>(g->graph.library().all().size());
}

int TF_GraphGetFunctions(TF_Graph *g, TF_Function **funcs, int max_func, TF_Status *status) {
  if (!present(status, "g, funcs", g, funcs))
    return 0;
  if (max_func < 0) {
    setInvalid(status, absl::StrCat("room for ", max_func, " functions"));
    return 0;
  }
  std::lock_guard<std::mutex> lock(g->mutex);
  int n = 0;
  for (auto &[name, function] : g->graph.library().all())
    if (n < max_func)
      funcs[n++] = new TF_Function{*function};
  return n;
}

} // extern "C"
