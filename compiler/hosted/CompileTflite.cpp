// Signatures one after the other, the steps of each in the order of the file: what a step makes is known with its sizes to those behind
// it, as far as the file, the ops of nodes and the compiled parts tell.
#include "compiler/hosted/CompileTflite.h"

#include "compiler/frontend/tflite/Tflite.h"
#include "compiler/frontend/tflite/Translator.h"
#include "compiler/hosted/TfliteBytes.h"
#include "compiler/support/Diagnostics.h"
#include "dialects/hlo/Hlo.h"
#include "graph/Shapes.h"
#include "graph/tflite/Cut.h"
#include "graph/tflite/NodeTable.h"
#include "passes/legalize/Legalize.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

#include <climits>
#include <set>

using namespace mlir;
using llvm::StringRef;
using llvm::Twine;

namespace lathe::hosted {
namespace {

using graphdef::PartialShape;
using tflgraph::Step;
using tflite::EntryPlan;
using tflite::ModelFile;
using tflite::TensorInfo;

tflgraph::Kernels kernelsOf(const llvm::StringSet<> &kernels) {
  return {[&](const std::string &op) { return kernels.contains(op); },
          [](const std::string &op) -> absl::StatusOr<bool> { return legalize::hasHandler(op); }};
}

/// Operators that are made nodes because they did not compile, by entry. A failed attempt adds some.
using MoreNodes = std::map<size_t, std::set<unsigned>>;
constexpr int kMaxAttempts = 64;

/// An operator or a place in the file, and what is wrong there.
struct Problem {
  std::string text;
  std::set<unsigned> couldBeNodes;
};

/// One entry on its way.
class EntryBuilder {
public:
  EntryBuilder(const ModelFile &file, tflite::Translator &translator, const EntryPlan &plan, std::string scope, tflgraph::Kernels kernels,
               std::set<unsigned> more)
      : file(file), translator(translator), plan(plan), maker(file.model(), plan.subgraph, std::move(kernels), std::move(scope)),
        more(std::move(more)) {}

  std::optional<Problem> run(int &parts);

  HostEntry entry;
  std::vector<tflgraph::OncePart> once;
  tflgraph::NodeMaker &nodes() { return maker; }

private:
  struct Known {
    HostEndpoint at;
    PartialShape dims;
  };
  std::optional<Problem> bindInputs();
  std::optional<Problem> bindOutputs();
  void addNodes(const Step &step);
  std::optional<Problem> addCompiled(const Step &step, int &parts);
  uint32_t addNode(const graphdef::Node *node);
  std::vector<Step> wholeSubgraph() const;
  PartialShape saidOf(int tensor) const;
  PartialShape sizesOf(int tensor) const;
  const TensorInfo &info(int tensor) const { return file.tensor(plan.subgraph, static_cast<unsigned>(tensor)); }
  std::string tensorName(int tensor) const { return import::printable(info(tensor).name); }

  const ModelFile &file;
  tflite::Translator &translator;
  const EntryPlan &plan;
  tflgraph::NodeMaker maker;
  const std::set<unsigned> more;
  graphdef::Shapes shapes;
  std::map<int, Known> known; ///< by tensor
  std::map<const graphdef::Node *, uint32_t> numbers;
  std::map<const graphdef::Node *, HostEndpoint> fed; ///< placeholders
  std::optional<uint32_t> lastEffect;
  bool hasSizesOfFile = true; ///< no input has another shape than in the file
};

uint32_t EntryBuilder::addNode(const graphdef::Node *node) {
  const auto number = static_cast<uint32_t>(entry.inputs.size() + entry.nodes.size());
  numbers[node] = number;
  HostNode &made = entry.nodes.emplace_back();
  made.node = node;
  made.outputs = node->outputTypes();
  for (const graphdef::Endpoint &e : node->inputs()) {
    auto given = fed.find(e.node);
    made.inputs.push_back(given != fed.end() ? given->second : HostEndpoint{numbers.at(e.node), static_cast<uint32_t>(e.index)});
  }
  for (const graphdef::Node *control : node->controls())
    made.controls.push_back(numbers.at(control));
  return number;
}

std::optional<Problem> EntryBuilder::bindInputs() {
  ImportedModel::EntryInfo described = tflite::describe(file, plan);
  for (const EntryPlan::Port &port : plan.inputs) {
    const TensorInfo &tensor = info(static_cast<int>(port.tensor));
    hasSizesOfFile &= port.value || llvm::ArrayRef<int64_t>(port.dims) == llvm::ArrayRef<int64_t>(tensor.dims);
    const DType type = tflgraph::dtypeOf(tensor.type);
    if (!dtypeSize(type) && type != DType::String)
      return Problem{"input '" + port.name + "': type " + tflite::typeName(tensor.type) + " is none that a program can give", {}};
    if (port.value)
      continue;
    TensorSpec spec = described.inputs[entry.inputs.size()];
    spec.dtype = type;
    known[static_cast<int>(port.tensor)] = {{static_cast<uint32_t>(entry.inputs.size()), 0},
                                            std::vector<int64_t>(port.dims.begin(), port.dims.end())};
    entry.inputs.push_back(std::move(spec));
  }
  for (const EntryPlan::Port &port : plan.inputs)
    if (port.value) {
      auto made = maker.constant(*port.value);
      if (!made.ok())
        return Problem{"input '" + port.name + "': " + std::string(made.status().message()), {}};
      known[static_cast<int>(port.tensor)] = {{addNode(made->node), 0}, port.value->dims()};
    }
  return std::nullopt;
}

/// What the file says of a tensor's sizes, as far as that holds for the inputs that there are.
PartialShape EntryBuilder::saidOf(int tensor) const {
  const tfl::Tensor &given = *file.subgraph(plan.subgraph).tensors()->Get(static_cast<unsigned>(tensor));
  PartialShape said;
  if (given.has_rank() || !info(tensor).dims.empty())
    said.emplace(info(tensor).dims.begin(), info(tensor).dims.end());
  if (said && !hasSizesOfFile)
    said->assign(said->size(), -1);
  return said;
}

/// What is known of a tensor's sizes where a compiled part reads it.
PartialShape EntryBuilder::sizesOf(int tensor) const {
  PartialShape said = saidOf(tensor);
  PartialShape dims = known.at(tensor).dims;
  if (!dims)
    return said;
  if (said && said->size() == dims->size())
    for (auto [dim, other] : llvm::zip_equal(*dims, *said))
      dim = dim < 0 ? other : dim;
  return dims;
}

void EntryBuilder::addNodes(const Step &step) {
  const tflgraph::NodePart &part = step.nodes;
  for (auto [tensor, feed] : llvm::zip_equal(part.inputs, part.feeds)) {
    // what nothing writes has no place, which the writer says
    auto at = known.find(tensor);
    fed[feed.node] = at == known.end() ? HostEndpoint{UINT32_MAX, 0} : at->second.at;
    (void)shapes.add(feed.node);
    if (at != known.end())
      (void)shapes.merge(feed, at->second.dims);
  }
  std::map<const graphdef::Node *, std::vector<std::pair<int, graphdef::Endpoint>>> made;
  for (auto [tensor, end] : part.made)
    made[end.node].emplace_back(tensor, end);
  for (const graphdef::Node *node : part.nodes) {
    const uint32_t number = addNode(node);
    (void)shapes.add(node); // what cannot go together is an error when it runs
    // values of such tables are single elements, which the op does not tell
    if (node->op() == "LookupTableFindV2" && node->input(0).node->op() == "HashTableV2")
      (void)shapes.merge({const_cast<graphdef::Node *>(node), 0}, shapes.shape(node->input(1)));
    for (auto [tensor, end] : made[node])
      (void)shapes.merge(end, saidOf(tensor));
    if (!part.targets.empty() && node == part.targets.front() && lastEffect)
      entry.nodes.back().controls.push_back(*lastEffect);
    if (!part.targets.empty() && node == part.targets.back())
      lastEffect = number;
  }
  for (auto [tensor, fetch] : llvm::zip_equal(part.outputs, part.fetches)) {
    auto given = fed.find(fetch.node);
    known[tensor] = {given != fed.end() ? given->second : HostEndpoint{numbers.at(fetch.node), static_cast<uint32_t>(fetch.index)},
                     shapes.shape(fetch)};
  }
  for (const tflgraph::OncePart &o : part.once)
    once.push_back(o);
}

std::optional<Problem> EntryBuilder::addCompiled(const Step &step, int &parts) {
  EntryPlan part;
  part.name = "part" + std::to_string(parts++);
  part.subgraph = plan.subgraph;
  part.operators = step.operators;
  llvm::StringSet<> taken;
  auto port = [&](int tensor) {
    EntryPlan::Port made;
    made.tensor = static_cast<unsigned>(tensor);
    made.name = info(tensor).name.empty() ? "tensor" : tensorName(tensor);
    for (int n = 1; !taken.insert(made.name).second; ++n)
      made.name += "_" + std::to_string(n);
    return made;
  };
  HostNode launch;
  launch.launch = part.name;
  for (int t : step.inputs) {
    auto at = known.find(t);
    if (at == known.end())
      continue; // a constant without elements, or an error of who reads it
    EntryPlan::Port input = port(t);
    PartialShape dims = sizesOf(t);
    if (!dims)
      return Problem{"tensor '" + tensorName(t) + "': its rank is not known when compiling, and compiled operators need it",
                     tflgraph::apartOf(maker, step.first, step.last, {}).nodes};
    input.dims.assign(dims->begin(), dims->end());
    part.inputs.push_back(std::move(input));
    launch.inputs.push_back(at->second.at);
  }
  for (int t : step.outputs)
    part.outputs.push_back(port(t));
  std::string text;
  {
    CollectedDiagnostics collected(*translator.getContext());
    if (failed(translator.translate(part)) || translator.sawError)
      text = collected.text();
  }
  if (!text.empty() || translator.sawError)
    return Problem{text, tflgraph::apartOf(maker, step.first, step.last, text).nodes};
  auto function = translator.module.lookupSymbol<func::FuncOp>(part.name);
  bool hasVariables = false;
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    hasVariables |= bool(function.getArgAttr(i, "hlo.variable"));
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    hasVariables |= bool(function.getResultAttr(i, "hlo.variable"));
  const auto number = static_cast<uint32_t>(entry.inputs.size() + entry.nodes.size());
  if (hasVariables) { // runs in the order of the file
    if (lastEffect)
      launch.controls.push_back(*lastEffect);
    lastEffect = number;
  }
  for (auto [i, t] : llvm::enumerate(step.outputs)) {
    auto type = cast<RankedTensorType>(function.getResultTypes()[i]);
    std::vector<int64_t> dims;
    for (int64_t d : type.getShape())
      dims.push_back(ShapedType::isDynamic(d) ? -1 : d);
    known[t] = {{number, static_cast<uint32_t>(i)}, std::move(dims)};
    launch.outputs.push_back(tflite::dtypeOf(info(t).type));
  }
  entry.nodes.push_back(std::move(launch));
  return std::nullopt;
}

std::optional<Problem> EntryBuilder::bindOutputs() {
  ImportedModel::EntryInfo described = tflite::describe(file, plan);
  for (auto [i, port] : llvm::enumerate(plan.outputs)) {
    const int t = static_cast<int>(port.tensor);
    if (!known.count(t)) {
      auto value = info(t).isConstant ? maker.valueOf(t) : absl::InvalidArgumentError("is never written");
      auto made = value.ok() ? maker.constant(*value) : value.status();
      if (!made.ok())
        return Problem{"output '" + port.name + "' " + std::string(made.status().message()), {}};
      known[t] = {{addNode(made->node), 0}, value->dims()};
    }
    TensorSpec spec = described.outputs[i];
    spec.dtype = tflgraph::dtypeOf(info(t).type);
    spec.dims = known[t].dims;
    if (!dtypeSize(spec.dtype) && spec.dtype != DType::String)
      return Problem{"output '" + port.name + "': type " + tflite::typeName(info(t).type) + " is none that a program can read", {}};
    entry.outputs.push_back(std::move(spec));
    entry.results.push_back(known[t].at);
  }
  return std::nullopt;
}

/// One compiled part of everything.
std::vector<Step> EntryBuilder::wholeSubgraph() const {
  Step step;
  auto *operators = file.subgraph(plan.subgraph).operators();
  step.last = operators ? operators->size() : 0;
  for (unsigned i = 0; i < step.last; ++i)
    step.operators.push_back(i);
  for (const EntryPlan::Port &p : plan.inputs)
    step.inputs.push_back(static_cast<int>(p.tensor));
  std::set<int> outputs;
  for (const EntryPlan::Port &p : plan.outputs)
    if (const int t = static_cast<int>(p.tensor); !known.count(t) && !info(t).isConstant)
      outputs.insert(t);
  step.outputs.assign(outputs.begin(), outputs.end());
  if (step.operators.empty())
    return {};
  return {std::move(step)};
}

std::optional<Problem> EntryBuilder::run(int &parts) {
  entry.name = plan.name;
  if (auto problem = bindInputs())
    return problem;
  auto steps = tflgraph::cut(maker, {nullptr, {more, {}}});
  if (!steps.ok())
    return Problem{std::string(steps.status().message()), {}};
  if (steps->empty())
    *steps = wholeSubgraph();
  for (const Step &step : *steps)
    if (step.kind == Step::Kind::Nodes)
      addNodes(step);
    else if (auto problem = addCompiled(step, parts))
      return problem;
  return bindOutputs();
}

class TfliteCompiler {
public:
  TfliteCompiler(MLIRContext &context, const CompilerOptions &options, llvm::ArrayRef<std::string> hostOps,
                 llvm::ArrayRef<std::string> executorOps)
      : context(context), options(options) {
    for (const std::string &op : hostOps)
      kernels.insert(op);
    for (const std::string &op : executorOps)
      builtin.insert(op);
  }

  llvm::Expected<HostedModel> run(EmitWants wants);

private:
  bool build(const ModelFile &file, const std::vector<EntryPlan> &plans, const ImportOptions &importOptions, MoreNodes &more, bool &again);
  bool addMore(const ModelFile &file, const std::vector<EntryPlan> &plans, StringRef why, MoreNodes &more);
  LogicalResult payloadOf(std::vector<HostEntry> &entries);
  std::string placeOf(const ModelFile &file, const EntryPlan &plan, size_t entries) const;

  MLIRContext &context;
  const CompilerOptions &options;
  llvm::StringSet<> kernels, builtin;
  OwningOpRef<ModuleOp> module;
  HostedPayload payload;
  HostedModel result;
};

/// " (signature 'x', subgraph 1 'f')", where there is more than one.
std::string TfliteCompiler::placeOf(const ModelFile &file, const EntryPlan &plan, size_t entries) const {
  llvm::SmallVector<std::string> parts;
  if (entries > 1)
    parts.push_back("signature '" + import::printable(plan.name) + "'");
  if (file.numSubgraphs() > 1) {
    const auto *name = file.subgraph(plan.subgraph).name();
    parts.push_back("subgraph " + std::to_string(plan.subgraph) + (name && name->size() ? " '" + import::printable(name->string_view()) + "'" : ""));
  }
  return parts.empty() ? "" : " (" + llvm::join(parts, ", ") + ")";
}

/// The module and the bytes of one attempt; false after errors, which were reported unless there is reason to try again.
bool TfliteCompiler::build(const ModelFile &file, const std::vector<EntryPlan> &plans, const ImportOptions &importOptions, MoreNodes &more,
                           bool &again) {
  result = HostedModel();
  payload = HostedPayload();
  again = false;
  module = ModuleOp::create(UnknownLoc::get(&context));
  tflite::Translator translator(*module, file, importOptions);
  std::vector<std::unique_ptr<EntryBuilder>> builders;
  int parts = 0;
  for (auto [i, plan] : llvm::enumerate(plans)) {
    // tables that have no name of their own are known by that of their node
    std::string scope = plans.size() == 1 ? "" : (llvm::isAlnum(plan.name[0]) ? "" : "entry") + plan.name + "/";
    builders.push_back(std::make_unique<EntryBuilder>(file, translator, plan, std::move(scope), kernelsOf(kernels), more[i]));
    std::optional<Problem> problem = builders.back()->run(parts);
    if (!problem)
      continue;
    const size_t before = more[i].size();
    more[i].insert(problem->couldBeNodes.begin(), problem->couldBeNodes.end());
    if ((again = more[i].size() > before))
      return false;
    llvm::SmallVector<StringRef> lines;
    StringRef(problem->text).split(lines, '\n', -1, false);
    for (StringRef line : lines)
      emitError(UnknownLoc::get(&context)) << line << placeOf(file, plan, plans.size());
    if (lines.empty())
      emitError(UnknownLoc::get(&context)) << "compiling failed without a message" << placeOf(file, plan, plans.size());
    return false;
  }
  result.clusters = parts;
  payload.hasClusters = parts > 0;
  if (failed(translator.finishModule()))
    return false;
  PassManager passes(&context);
  passes.addPass(createCSEPass()); // as after the import of whole files
  if (failed(verify(*module)) || failed(passes.run(*module)))
    return false;

  std::vector<HostEntry> entries;
  HostEntry init;
  init.name = kInitEntry;
  init.once = true;
  std::map<const graphdef::Node *, uint32_t> numbers;
  std::set<unsigned> initialized;
  for (auto &builder : builders) {
    for (const tflgraph::OncePart &once : builder->once) {
      if (!initialized.insert(once.subgraph).second)
        continue;
      std::optional<uint32_t> before;
      if (!init.nodes.empty())
        before = static_cast<uint32_t>(init.nodes.size()) - 1;
      for (const graphdef::Node *node : once.nodes) {
        HostNode &made = init.nodes.emplace_back();
        numbers[node] = static_cast<uint32_t>(init.nodes.size()) - 1;
        made.node = node;
        made.outputs = node->outputTypes();
        for (const graphdef::Endpoint &e : node->inputs())
          made.inputs.push_back({numbers.at(e.node), static_cast<uint32_t>(e.index)});
        for (const graphdef::Node *control : node->controls())
          made.controls.push_back(numbers.at(control));
        if (before) // one subgraph after the other
          made.controls.push_back(*before);
      }
    }
    entries.push_back(builder->entry);
  }
  if (!init.nodes.empty())
    entries.push_back(std::move(init));
  return succeeded(payloadOf(entries));
}

LogicalResult TfliteCompiler::payloadOf(std::vector<HostEntry> &entries) {
  std::set<std::string> used;
  bool ok = true;
  for (const HostEntry &entry : entries)
    for (const HostNode &node : entry.nodes) {
      if (!node.node)
        continue;
      ++result.hostNodes;
      const std::string &op = node.node->op();
      if (builtin.contains(op))
        continue;
      if (!kernels.contains(op)) {
        emitError(UnknownLoc::get(&context)) << "node '" << node.node->name() << "' (" << op << "): has no host kernel";
        ok = false;
      }
      used.insert(op);
    }
  if (!ok)
    return failure();
  result.kernels.assign(used.begin(), used.end());
  FailureOr<std::string> bytes = writeGraph(&context, entries, options.maxMemory);
  if (failed(bytes))
    return failure();
  payload.graph = std::move(*bytes);
  payload.kernels = result.kernels;
  for (const HostEntry &entry : entries) {
    if (entry.once)
      continue;
    payload.entries.push_back({entry.name, describeTensors(entry.inputs), describeTensors(entry.outputs)});
  }
  return success();
}

/// Makes more operators nodes for what later phases say; false where that changes nothing.
bool TfliteCompiler::addMore(const ModelFile &file, const std::vector<EntryPlan> &plans, StringRef why, MoreNodes &more) {
  bool any = false;
  for (auto [i, plan] : llvm::enumerate(plans)) {
    const std::set<unsigned> could = tflgraph::apartOf({file.model(), plan.subgraph, kernelsOf(kernels)}, 0, UINT_MAX, why.str()).nodes;
    const size_t before = more[i].size();
    more[i].insert(could.begin(), could.end());
    any |= more[i].size() > before;
  }
  return any;
}

llvm::Expected<HostedModel> TfliteCompiler::run(EmitWants wants) {
  auto told = [] { return llvm::createStringError(""); };
  context.getOrLoadDialect<hlo::HloDialect>();
  context.getOrLoadDialect<func::FuncDialect>();
  import::Problems problems(&context);
  const ImportOptions importOptions = Compiler(context, options).importOptions();
  std::unique_ptr<llvm::MemoryBuffer> bytes = tflite::readFile(options.model, importOptions, problems);
  std::unique_ptr<ModelFile> file = bytes ? ModelFile::open(bytes->getBuffer(), options.model, problems) : nullptr;
  auto plans = file ? tflite::planEntries(*file, importOptions, problems) : FailureOr<std::vector<EntryPlan>>();
  problems.finish();
  if (failed(plans))
    return told();
  MoreNodes more;
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    bool again = false;
    if (!build(*file, *plans, importOptions, more, again)) {
      if (again)
        continue;
      return told();
    }
    Compiler compiler(context, options);
    compiler.adopt(payload.hasClusters ? std::move(module) : moduleOfNothing(context), Phase::Legalize);
    compiler.setHosted(&payload);
    std::vector<std::string> errors, warnings;
    auto artifact = [&] {
      CollectedDiagnostics collected(context);
      auto made = compiler.emit(wants);
      errors = collected.errors();
      warnings = collected.warnings();
      return made;
    }();
    // later phases do not know where in the file they are
    if (!artifact && addMore(*file, *plans, llvm::join(errors, "\n"), more)) {
      llvm::consumeError(artifact.takeError());
      continue;
    }
    for (const std::string &text : warnings)
      emitWarning(UnknownLoc::get(&context)) << text;
    for (const std::string &text : errors)
      emitError(UnknownLoc::get(&context)) << text;
    if (!artifact)
      return artifact.takeError();
    result.artifact = std::move(*artifact);
    return std::move(result);
  }
  return llvm::createStringError("too many operators did not compile where they stand");
}

} // namespace

llvm::Expected<HostedModel> compileTflite(MLIRContext &context, const CompilerOptions &options, llvm::ArrayRef<std::string> hostOps,
                                          llvm::ArrayRef<std::string> executorOps, EmitWants wants) {
  return TfliteCompiler(context, options, hostOps, executorOps).run(wants);
}

bool findTfliteNodes(MLIRContext &context, const CompilerOptions &options, llvm::ArrayRef<std::string> hostOps, StringRef prefix,
                     std::string &lines) {
  constexpr int most = 20;
  CollectedDiagnostics quiet(context); // errors have been told
  import::Problems problems(&context);
  const ImportOptions importOptions = Compiler(context, options).importOptions();
  std::unique_ptr<llvm::MemoryBuffer> bytes = tflite::readFile(options.model, importOptions, problems);
  std::unique_ptr<ModelFile> file = bytes ? ModelFile::open(bytes->getBuffer(), options.model, problems) : nullptr;
  auto plans = file ? tflite::planEntries(*file, importOptions, problems) : FailureOr<std::vector<EntryPlan>>();
  if (failed(plans))
    return false;
  llvm::StringSet<> kernels;
  for (const std::string &op : hostOps)
    kernels.insert(op);
  int found = 0;
  bool any = false;
  for (const EntryPlan &plan : *plans) {
    const tflgraph::NodeMaker maker(file->model(), plan.subgraph, kernelsOf(kernels));
    for (unsigned i = 0; file->subgraph(plan.subgraph).operators() && i < file->subgraph(plan.subgraph).operators()->size(); ++i) {
      const tfl::Operator &op = *file->subgraph(plan.subgraph).operators()->Get(i);
      auto takes = maker.takes(op);
      any |= maker.couldTake(op) != tflgraph::NodeMaker::CouldTake::No;
      if (!takes.ok() || !*takes || ++found > most)
        continue;
      StringRef name = op.outputs() && op.outputs()->size() ? file->tensor(plan.subgraph, op.outputs()->Get(0)).name : "";
      lines += (prefix + "node '" + import::printable(name) + "' (" + ModelFile::opName(file->code(op)) + "): no compiled form\n").str();
    }
  }
  if (found > most)
    lines += "and " + std::to_string(found - most) + " more\n";
  return any || found;
}

} // namespace lathe::hosted
