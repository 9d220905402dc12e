#include "graph/tflite/Cut.h"

#include "graph/tflite/NodeTable.h"
#include "graph/tflite/Operators.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include <algorithm>
#include <climits>
#include <map>

namespace lathe::tflgraph {

std::vector<int> calledBy(const tfl::Operator &op) {
  if (const auto *o = op.builtin_options_as_IfOptions())
    return {o->then_subgraph_index(), o->else_subgraph_index()};
  if (const auto *o = op.builtin_options_as_WhileOptions())
    return {o->cond_subgraph_index(), o->body_subgraph_index()};
  if (const auto *o = op.builtin_options_as_CallOptions())
    return {static_cast<int>(std::min<uint32_t>(o->subgraph(), INT_MAX))};
  if (const auto *o = op.builtin_options2_as_StablehloWhileOptions())
    return {o->cond_subgraph_index(), o->body_subgraph_index()};
  if (const auto *o = op.builtin_options2_as_StableHLOCompositeOptions())
    return {o->decomposition_subgraph_index()};
  if (const auto *o = op.builtin_options2_as_StablehloCaseOptions(); o && o->branch_subgraph_indices())
    return {o->branch_subgraph_indices()->begin(), o->branch_subgraph_indices()->end()};
  return {};
}

namespace {

/// Which subgraphs have variables, also in what they call.
class Variables {
public:
  explicit Variables(const tfl::Model &model) : model(model), uses(model.subgraphs()->size()) {}

  /// Whether an operator has subgraphs that work on variables. What CALL_ONCE names does so before everything else.
  bool inside(const tfl::Operator &op) {
    bool any = false;
    for (int called : calledBy(op))
      any |= subgraphOf(model, called) && of(static_cast<unsigned>(called));
    return any;
  }
  bool of(unsigned root) {
    if (uses[root])
      return *uses[root];
    // everything that is reached, without recursion
    std::set<unsigned> seen{root};
    std::vector<unsigned> open{root};
    bool found = false;
    while (!open.empty() && !found) {
      const tfl::SubGraph &graph = *model.subgraphs()->Get(open.back());
      open.pop_back();
      for (unsigned i = 0; graph.operators() && i < graph.operators()->size(); ++i) {
        const tfl::Operator &op = *graph.operators()->Get(i);
        const tfl::OperatorCode *code = codeOf(model, op);
        found |= code && isState(builtinOf(*code));
        for (int called : calledBy(op))
          if (subgraphOf(model, called) && seen.insert(static_cast<unsigned>(called)).second)
            open.push_back(static_cast<unsigned>(called));
      }
    }
    uses[root] = found;
    return found;
  }

private:
  const tfl::Model &model;
  std::vector<std::optional<bool>> uses;
};

/// Each compiled part is a module or a function of its own.
constexpr size_t kMaxSteps = 4096;

class Cutter {
public:
  Cutter(NodeMaker &maker, const CutOptions &options)
      : maker(maker), options(options), model(maker.model()), graph(maker.subgraph()), variables(model),
        count(graph.operators() ? graph.operators()->size() : 0), numTensors(graph.tensors() ? graph.tensors()->size() : 0) {}

  absl::StatusOr<std::vector<Step>> run() {
    if (absl::Status s = classify(); !s.ok())
      return s;
    std::vector<Step> steps;
    if (!any)
      return steps;
    findReaders();
    for (unsigned i = 0; i < count;) {
      Step step;
      step.first = i;
      step.last = i + 1;
      if (kinds[i] == Kind::Program) {
        step.kind = Step::Kind::Program;
      } else if (kinds[i] == Kind::Node) {
        step.kind = Step::Kind::Nodes;
        while (step.last < count && kinds[step.last] == Kind::Node)
          ++step.last;
        auto part = maker.add(step.first, step.last, [&](int t) { return isWanted(t, step.last); });
        if (!part.ok())
          return part.status();
        step.nodes = *std::move(part);
      } else {
        auto goesOn = [&](unsigned next) { return (kinds[next] == Kind::Compiled || kinds[next] == Kind::Floating) && !isValued(next); };
        while (!isValued(i) && step.last < count && goesOn(step.last))
          ++step.last;
        if (absl::Status s = compiled(step); !s.ok())
          return s;
      }
      i = step.last;
      if (steps.size() == kMaxSteps)
        return absl::ResourceExhaustedError(absl::StrCat("operators that are not compiled cut it into more than ", kMaxSteps, " parts"));
      if (step.kind != Step::Kind::Compiled || !step.operators.empty())
        steps.push_back(std::move(step));
    }
    return steps;
  }

private:
  /// Floating: what makes a handle of a variable, or gives first values. Every part that needs it has one of its own.
  enum class Kind { Compiled, Floating, Node, Program };

  bool isValued(unsigned i) const { return kinds[i] == Kind::Compiled && options.apart.valued.count(i) != 0; }
  const tfl::Operator &at(unsigned i) const { return *graph.operators()->Get(i); }
  Op builtin(unsigned i) const { return builtinOf(*codeOf(model, at(i))); }
  template <typename F>
  static void each(const flatbuffers::Vector<int32_t> *list, F f) {
    for (unsigned i = 0; list && i < list->size(); ++i)
      f(list->Get(i));
  }

  absl::Status classify() {
    for (unsigned i = 0; i < count; ++i) {
      const tfl::Operator &op = at(i);
      const tfl::OperatorCode *code = codeOf(model, op);
      if (!code)
        return absl::InvalidArgumentError("an operator has an operator code that is out of range");
      bool inRange = true;
      each(op.inputs(), [&](int t) { inRange &= t >= -1 && t < numTensors; });
      each(op.outputs(), [&](int t) { inRange &= t >= 0 && t < numTensors; });
      if (!inRange)
        return absl::InvalidArgumentError("an operator has a tensor that is out of range");
      Kind kind = Kind::Compiled;
      const Op which = builtinOf(*code);
      if (which == Op::CUSTOM && code->custom_code() && options.isPrograms && options.isPrograms(*code)) {
        kind = Kind::Program;
      } else {
        auto takes = maker.takes(op);
        if (!takes.ok())
          return takes.status();
        if (*takes || options.apart.nodes.count(i))
          kind = Kind::Node;
        else if (which == Op::VAR_HANDLE || which == Op::CALL_ONCE)
          kind = Kind::Floating;
      }
      kinds.push_back(kind);
      any |= kind == Kind::Program || kind == Kind::Node || isValued(i);
      if (kind == Kind::Floating && which == Op::VAR_HANDLE)
        each(op.outputs(), [&](int t) { handles[t] = i; });
      if (which == Op::CALL_ONCE && calledOnce(model, op)) {
        const auto called = static_cast<unsigned>(op.builtin_options_as_CallOnceOptions()->init_subgraph_index());
        if (variables.of(called) && initialized.insert(called).second)
          once.push_back(i);
      }
    }
    return absl::OkStatus();
  }

  void findReaders() {
    lastReader.assign(static_cast<size_t>(numTensors), -1);
    for (unsigned i = 0; i < count; ++i)
      each(at(i).inputs(), [&](int t) {
        if (t >= 0)
          lastReader[static_cast<size_t>(t)] = i;
      });
    each(graph.outputs(), [&](int t) {
      if (t >= 0 && t < numTensors)
        lastReader[static_cast<size_t>(t)] = INT64_MAX;
    });
  }
  /// Whether anybody behind reads it.
  bool isWanted(int tensor, unsigned last) const { return lastReader[static_cast<size_t>(tensor)] >= last; }

  /// What a compiled part reads and makes, and the operators in front that it needs again.
  absl::Status compiled(Step &step) {
    std::set<unsigned> wanted;
    std::set<int> made, read;
    for (unsigned i = step.first; i < step.last; ++i) {
      if (kinds[i] == Kind::Floating)
        continue;
      wanted.insert(i);
      const tfl::Operator &op = at(i);
      step.usesVariables |= isState(builtin(i)) || variables.inside(op);
      each(op.inputs(), [&](int t) {
        if (auto handle = handles.find(t); handle != handles.end() && handle->second < i && !made.count(t)) {
          wanted.insert(handle->second);
          step.usesVariables = true;
          return;
        }
        const tfl::Tensor *tensor = tensorOf(graph, t);
        if (tensor && !made.count(t) && !isConstant(model, *tensor) && !tensor->is_variable() && read.insert(t).second)
          step.inputs.push_back(t);
      });
      each(op.outputs(), [&](int t) { made.insert(t); });
    }
    if (step.usesVariables)
      for (unsigned i : once)
        if (i < step.last)
          wanted.insert(i);
    step.operators.assign(wanted.begin(), wanted.end());
    for (int t : made)
      if (isWanted(t, step.last))
        step.outputs.push_back(t);
    auto has = [](const std::vector<int> &list, int t) { return std::count(list.begin(), list.end(), t) != 0; };
    if (isValued(step.first))
      for (unsigned i : options.apart.valued.at(step.first))
        if (const auto *given = at(step.first).inputs(); given && i < given->size())
          if (const int t = given->Get(i); has(step.inputs, t) && !has(step.values, t))
            step.values.push_back(t);
    for (auto *list : {&step.inputs, &step.outputs})
      for (int t : *list)
        if (const tfl::Tensor &tensor = *tensorOf(graph, t); !dtypeSize(dtypeOf(tensor.type())))
          return absl::UnimplementedError(absl::StrCat("tensor '", tensor.name() ? tensor.name()->c_str() : "", "' of type ",
                                                       tfl::EnumNameTensorType(tensor.type()),
                                                       " goes from a compiled part to another operator, and is no array of numbers"));
    return absl::OkStatus();
  }

  NodeMaker &maker;
  const CutOptions &options;
  const tfl::Model &model;
  const tfl::SubGraph &graph;
  Variables variables;
  const unsigned count;
  const int64_t numTensors;
  bool any = false;
  std::vector<Kind> kinds;
  std::map<int, unsigned> handles; ///< of variables: the operator that makes each
  std::set<unsigned> initialized;  ///< subgraphs that `once` names
  std::vector<unsigned> once;      ///< operators that give variables their first values
  std::vector<int64_t> lastReader; ///< by tensor
};

} // namespace

absl::StatusOr<std::vector<Step>> cut(NodeMaker &maker, const CutOptions &options) { return Cutter(maker, options).run(); }

Step wholeOf(const NodeMaker &maker) {
  const tfl::SubGraph &graph = maker.subgraph();
  Step step;
  step.last = graph.operators() ? graph.operators()->size() : 0;
  std::set<int> made;
  for (unsigned i = 0; i < step.last; ++i) {
    step.operators.push_back(i);
    if (auto *outputs = graph.operators()->Get(i)->outputs())
      made.insert(outputs->begin(), outputs->end());
  }
  std::set<int> seen;
  for (unsigned i = 0; graph.inputs() && i < graph.inputs()->size(); ++i)
    if (int t = graph.inputs()->Get(i); seen.insert(t).second)
      step.inputs.push_back(t);
  for (unsigned i = 0; graph.outputs() && i < graph.outputs()->size(); ++i)
    if (int t = graph.outputs()->Get(i); made.count(t) && seen.insert(t).second)
      step.outputs.push_back(t);
  return step;
}

bool Apart::add(const Apart &more) {
  const size_t before = nodes.size();
  nodes.insert(more.nodes.begin(), more.nodes.end());
  bool any = nodes.size() > before;
  for (auto &[op, inputs] : more.valued)
    for (unsigned i : inputs)
      any |= !nodes.count(op) && valued[op].insert(i).second;
  return any;
}

namespace {

/// The tensor of an input that a part could be compiled for the value of; null for others.
const tfl::Tensor *openInput(const NodeMaker &maker, const tfl::Operator &op, unsigned i) {
  const tfl::Tensor *t = op.inputs() && i < op.inputs()->size() ? tensorOf(maker.subgraph(), op.inputs()->Get(i)) : nullptr;
  return t && dtypeSize(dtypeOf(t->type())) && !t->is_variable() && !isConstant(maker.model(), *t) ? t : nullptr;
}

/// All inputs that may be sizes or places.
std::set<unsigned> openNumbers(const NodeMaker &maker, const tfl::Operator &op) {
  std::set<unsigned> found;
  for (unsigned i = 0; op.inputs() && i < op.inputs()->size(); ++i)
    if (const tfl::Tensor *t = openInput(maker, op, i))
      if ((t->type() == tfl::TensorType::INT32 || t->type() == tfl::TensorType::INT64) && (!t->shape() || t->shape()->size() <= 1))
        found.insert(i);
  return found;
}

bool isMissingValue(absl::string_view line) {
  return absl::StrContains(line, "must be known at compile time") || absl::StrContains(line, "must be a compile-time constant") ||
         absl::StrContains(line, "must be a constant");
}

/// Inputs of an operator whose values are missing, as one line about it says ("input 1 must be known at compile time"): those that it
/// numbers, else all that may be sizes or places. The condition of a branch whose sides do not go together.
std::set<unsigned> missingValues(const NodeMaker &maker, const tfl::Operator &op, absl::string_view line) {
  std::set<unsigned> found;
  if (absl::StrContains(line, "the branches give different") || absl::StrContains(line, "is only written in one branch")) {
    if (openInput(maker, op, 0))
      found.insert(0);
    return found;
  }
  if (!isMissingValue(line))
    return found;
  const size_t at = line.find("): input ");
  unsigned number = 0;
  if (at != line.npos && absl::SimpleAtoi(line.substr(at + 9, line.find(' ', at + 9) - (at + 9)), &number)) {
    if (openInput(maker, op, number))
      found.insert(number);
    return found;
  }
  return openNumbers(maker, op);
}

const char *nameOf(const tfl::SubGraph &graph, const tfl::Operator &op) {
  const tfl::Tensor *result = op.outputs() && op.outputs()->size() ? tensorOf(graph, op.outputs()->Get(0)) : nullptr;
  return result && result->name() ? result->name()->c_str() : nullptr;
}

bool isAbout(absl::string_view line, const char *name) { return name && absl::StrContains(line, absl::StrCat("node '", name, "'")); }

/// Whether a line says that an operator in what `op` calls misses a value.
bool missesInside(const NodeMaker &maker, const tfl::Operator &op, absl::string_view line) {
  std::vector<int> open = calledBy(op);
  std::set<int> seen;
  while (isMissingValue(line) && !open.empty()) {
    const int called = open.back();
    open.pop_back();
    const tfl::SubGraph *graph = subgraphOf(maker.model(), called);
    if (!graph || !seen.insert(called).second)
      continue;
    for (unsigned i = 0; graph->operators() && i < graph->operators()->size(); ++i) {
      const tfl::Operator &inner = *graph->operators()->Get(i);
      if (isAbout(line, nameOf(*graph, inner)))
        return true;
      for (int next : calledBy(inner))
        open.push_back(next);
    }
  }
  return false;
}

} // namespace

CouldBe couldBe(const NodeMaker &maker, unsigned first, unsigned last, const std::string &why) {
  CouldBe found;
  auto *operators = maker.subgraph().operators();
  const std::vector<std::string> lines = absl::StrSplit(why, '\n');
  for (unsigned i = first; operators && i < std::min(last, operators->size()); ++i) {
    const tfl::Operator &op = *operators->Get(i);
    const NodeMaker::CouldTake could = maker.couldTake(op);
    if (could == NodeMaker::CouldTake::Flex)
      found.flex.insert(i);
    const char *name = nameOf(maker.subgraph(), op);
    for (const std::string &line : lines) {
      const bool isNamed = isAbout(line, name);
      if (isNamed && could != NodeMaker::CouldTake::No) {
        found.named.nodes.insert(i);
        continue;
      }
      std::set<unsigned> inputs;
      if (isNamed)
        inputs = missingValues(maker, op, line);
      else if (missesInside(maker, op, line))
        inputs = openNumbers(maker, op);
      if (!inputs.empty())
        found.named.valued[i].insert(inputs.begin(), inputs.end());
    }
  }
  return found;
}

Apart apartOf(const NodeMaker &maker, unsigned first, unsigned last, const std::string &why) {
  CouldBe found = couldBe(maker, first, last, why);
  if (found.named.empty())
    found.named.nodes = std::move(found.flex);
  return std::move(found.named);
}

} // namespace lathe::tflgraph
