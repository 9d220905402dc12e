//===- Select.cpp - which tensors go in and out ---------------------------===//
//
// A name of the user is looked up as signature key, then as tensor ("x:0"), then as node ("x" is "x:0").
//
//===----------------------------------------------------------------------===//
#include "compiler/import/Select.h"
#include "ops/Flags.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"

#include <algorithm>
#include <set>

using llvm::StringRef;
using llvm::Twine;

namespace lathe::import {

static constexpr size_t kMaxDefaultOutputs = 10'000;

static bool isPlaceholder(StringRef op) { return ops::is(op, ops::Flag::Placeholder); }

static std::string tensorName(const Body &main, MainTensor at) {
  return main.defs[at.node]->name() + ":" + std::to_string(at.port);
}

/// How a tensor is called when the user gave it no name: after its node, or with the port where it is not the first.
static std::string defaultName(const Body &main, MainTensor at) {
  return at.port == 0 ? main.defs[at.node]->name() : tensorName(main, at);
}

namespace {
class Selector {
public:
  Selector(const Model &model, Library &library, Flattener &flattener, const ImportOptions &options,
           Problems &problems, std::string &notes)
      : model(model), flattener(flattener), options(options), problems(problems), notes(notes),
        main(*library.getMain()) {}

  bool chooseSignature();
  std::vector<EntryPlan> select();
  bool hasSignature() const { return signature || llvm::any_of(options.entries, [&](auto &entry) { return signatureOf(entry); }); }
  std::vector<NamedTensor> signatureTensors(const google::protobuf::Map<std::string, tf::TensorInfo> &infos,
                                            StringRef what);
  std::vector<NamedTensor> placeholders();
  std::vector<NamedTensor> defaultOutputs();

private:
  bool findTensor(StringRef name, MainTensor &at);
  bool makeTensor(StringRef key, MainTensor at, NamedTensor &tensor);
  bool resolve(StringRef name, bool isInput, NamedTensor &tensor);
  std::optional<int> resolveTarget(StringRef name);
  EntryPlan plan(StringRef name, const std::vector<std::string> &outputs, const std::vector<std::string> &targets,
                 bool isOnlyEntry);
  EntryPlan planSignature(const std::string &key);
  const tf::SignatureDef *signatureOf(const ImportOptions::Entry &entry) const;
  bool isOfOtherEntry(StringRef input) const;
  void splitTargets(ImportOptions::Entry &entry);
  std::vector<bool> reachable(const EntryPlan &plan);
  void applyShape(NamedTensor &tensor, const std::optional<std::vector<int64_t>> &shape);
  void takeFedShape(NamedTensor &tensor);

  const Model &model;
  Flattener &flattener;
  const ImportOptions &options;
  Problems &problems;
  std::string &notes;
  const Body &main;
  const tf::SignatureDef *signature = nullptr;
  std::string signatureKey;
  llvm::StringSet<> unknownInputs;
};
} // namespace

static bool isInternalSignature(StringRef key) { return key.starts_with("__saved_model_"); }

bool Selector::chooseSignature() {
  std::map<std::string, const tf::SignatureDef *> all;
  std::string available;
  for (const auto &[key, def] : model.meta->signature_def()) {
    if (!options.signature.empty() || !isInternalSignature(key))
      all[key] = &def;
  }
  for (auto &[key, def] : all)
    available += (available.empty() ? "" : ", ") + printable(key);
  if (!options.signature.empty()) {
    auto it = all.find(options.signature);
    if (it == all.end()) {
      problems.add(Twine("no signature '") + printable(options.signature) +
                   (all.empty() ? "', there are none" : "', there are: " + available));
      return false;
    }
    signature = it->second;
    signatureKey = it->first;
    return true;
  }
  if (all.empty())
    return true;
  auto it = all.find("serving_default");
  if (it == all.end() && all.size() == 1)
    it = all.begin();
  // what each entry is does not depend on one of them
  if (!options.entries.empty() && llvm::all_of(options.entries, [&](const ImportOptions::Entry &e) { return signatureOf(e); }))
    return true;
  if (it == all.end()) {
    // outputs named by tensor need no signature
    if (!options.outputs.empty() || !options.entries.empty() || !options.targets.empty())
      return true;
    problems.add(Twine("several signatures, choose one with --signature: ") + available);
    return false;
  }
  signature = it->second;
  signatureKey = it->first;
  if (all.size() > 1)
    notes += "signature: " + printable(signatureKey) + " (there are " + available + ")\n";
  return true;
}

bool Selector::findTensor(StringRef name, MainTensor &at) {
  StringRef node;
  int64_t port;
  auto it = main.nodeIndex.find(name);
  if (it != main.nodeIndex.end()) {
    at = {it->second, 0};
    return true;
  }
  if (!splitTensorName(name, node, port) || (it = main.nodeIndex.find(node)) == main.nodeIndex.end())
    return false;
  at = {it->second, static_cast<int>(port)};
  return true;
}

/// Fills type and shape from the graph; reports a port that the node does not have.
bool Selector::makeTensor(StringRef key, MainTensor at, NamedTensor &tensor) {
  const std::vector<DType> *types = flattener.mainOutputs(at.node);
  if (!types)
    return false;
  if (at.port >= static_cast<int>(types->size())) {
    problems.add(main.id(at.node), Twine("has no output ") + Twine(at.port));
    return false;
  }
  tensor.at = at;
  tensor.spec.name = key.str();
  tensor.spec.tensor = tensorName(main, at);
  tensor.spec.dtype = (*types)[at.port];
  tensor.spec.dims = std::nullopt;
  const tf::NodeDef &def = *main.defs[at.node];
  if (ops::is(def.op(), ops::Flag::Feedable)) {
    auto shape = def.attr().find("shape");
    if (shape != def.attr().end() && shape->second.has_shape()) {
      ShapeResult result = readShape(shape->second.shape());
      if (!result.error.empty()) {
        problems.add(main.id(at.node), result.error);
        return false;
      }
      tensor.spec.dims = std::move(result.dims);
      bool isOld = model.graph().versions().producer() < 24 && ops::is(def.op(), ops::Flag::OldUnknown);
      if (isOld && tensor.spec.dims && tensor.spec.dims->empty())
        tensor.spec.dims = std::nullopt;
    }
  }
  return true;
}

bool Selector::resolve(StringRef name, bool isInput, NamedTensor &tensor) {
  if (signature) {
    const auto &infos = isInput ? signature->inputs() : signature->outputs();
    auto it = infos.find(name.str());
    if (it != infos.end()) {
      google::protobuf::Map<std::string, tf::TensorInfo> one;
      one[it->first] = it->second;
      std::vector<NamedTensor> found = signatureTensors(one, isInput ? "input" : "output");
      if (found.size() != 1)
        return false;
      tensor = std::move(found[0]);
      return true;
    }
  }
  MainTensor at;
  if (!findTensor(name, at)) {
    problems.add(Twine(isInput ? "input '" : "output '") + printable(name) + "': there is no " +
                 (signature ? "signature key, " : "") + "tensor or node of this name");
    return false;
  }
  return makeTensor(name, at, tensor);
}

std::vector<NamedTensor>
Selector::signatureTensors(const google::protobuf::Map<std::string, tf::TensorInfo> &infos, StringRef what) {
  std::map<std::string, const tf::TensorInfo *> sorted;
  for (const auto &[key, info] : infos)
    sorted[key] = &info;
  std::vector<NamedTensor> tensors;
  for (auto &[key, info] : sorted) {
    std::string where = "signature " + what.str() + " '" + printable(key) + "'";
    if (info->has_coo_sparse()) {
      problems.add(Twine(where) + ": sparse tensors are not supported");
      continue;
    }
    MainTensor at;
    NamedTensor tensor;
    if (!findTensor(info->name(), at)) {
      problems.add(Twine(where) + ": tensor '" + printable(info->name()) + "' does not exist");
      continue;
    }
    if (!makeTensor(key, at, tensor))
      continue;
    ShapeResult shape = readShape(info->tensor_shape());
    if (!shape.error.empty())
      problems.add(Twine(where) + ": " + shape.error);
    else if (info->has_tensor_shape() && shape.dims)
      tensor.spec.dims = std::move(shape.dims);
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

std::vector<NamedTensor> Selector::placeholders() {
  std::vector<NamedTensor> tensors;
  for (size_t node = 0; node < main.defs.size(); ++node) {
    MainTensor at{static_cast<int>(node), 0};
    NamedTensor tensor;
    if (isPlaceholder(main.defs[node]->op()) && makeTensor(defaultName(main, at), at, tensor))
      tensors.push_back(std::move(tensor));
  }
  return tensors;
}

/// Nodes that tf.train.Saver adds are called "save/..." or "save_1/...".
static bool isSaverNode(const Model &model, StringRef name) {
  if (model.meta->saver_def().filename_tensor_name().empty() || !name.consume_front("save"))
    return false;
  if (name.consume_front("_"))
    name = name.drop_while([](char c) { return c >= '0' && c <= '9'; });
  return name.starts_with("/");
}

/// Why a node is no default output although nobody consumes it; weak reasons give way when nothing else is left.
enum class Exclusion { None, Weak, Strong };

static Exclusion excluded(const Body &main, int node) {
  StringRef op = main.defs[node]->op();
  auto isSwitch = [](StringRef op) { return ops::is(op, ops::Flag::Switch) || op == "_SwitchN"; };
  if (isPlaceholder(op) || ops::is(op, ops::Flag::Variable) || op.starts_with("Assign") || isSwitch(op))
    return Exclusion::Strong;
  if (ops::is(op, ops::Flag::Passes) && !main.nodes[node].inputs.empty()) {
    // the pivots switch_t and switch_f of a conditional
    StringRef from = main.defs[main.nodes[node].inputs[0].node]->op();
    if (isSwitch(from))
      return Exclusion::Strong;
    // freezing leaves such reads of variables behind
    if (from == "Const")
      return Exclusion::Weak;
  }
  return llvm::StringSwitch<Exclusion>(op)
      .Cases({"Const", "Assert", "NoOp"}, Exclusion::Strong)
      .Cases({"Shape", "PlaceholderWithDefault", "ReadVariableOp", "IsVariableInitialized", "VarIsInitializedOp", "RestoreV2", "Print",
              "TensorArrayCloseV3"},
             Exclusion::Weak)
      .Default(Exclusion::None);
}

std::vector<NamedTensor> Selector::defaultOutputs() {
  std::vector<bool> consumed(main.defs.size());
  for (const BodyNode &node : main.nodes)
    for (const InputRef &input : node.inputs)
      consumed[input.node] = true;
  for (Exclusion allowed : {Exclusion::None, Exclusion::Weak}) {
    std::vector<NamedTensor> tensors;
    for (size_t node = 0; node < main.defs.size(); ++node) {
      if (consumed[node] || excluded(main, static_cast<int>(node)) > allowed ||
          isSaverNode(model, main.defs[node]->name()))
        continue;
      const std::vector<DType> *types = flattener.mainOutputs(static_cast<int>(node));
      for (int port = 0; types && port < static_cast<int>(types->size()); ++port) {
        MainTensor at{static_cast<int>(node), port};
        NamedTensor tensor;
        if (tensors.size() == kMaxDefaultOutputs) {
          problems.add("the graph has too many outputs; name some with --output");
          return {};
        }
        if ((*types)[port] != DType::Resource && (*types)[port] != DType::Variant &&
            makeTensor(defaultName(main, at), at, tensor))
          tensors.push_back(std::move(tensor));
      }
    }
    if (!tensors.empty())
      return tensors;
  }
  return {};
}

std::optional<int> Selector::resolveTarget(StringRef name) {
  StringRef node = name;
  node.consume_front("^");
  MainTensor at;
  // a target may be given as one of its tensors
  if (!findTensor(node, at)) {
    problems.add(Twine("target '") + printable(name) + "': there is no node of this name");
    return std::nullopt;
  }
  return at.node;
}

/// Nodes of the main graph that outputs and targets need, as far as feeds do not cut them off.
std::vector<bool> Selector::reachable(const EntryPlan &plan) {
  std::set<MainTensor> fed;
  for (const NamedTensor &input : plan.inputs)
    if (!isPlaceholder(main.defs[input.at.node]->op()))
      fed.insert(input.at);
  for (auto &[at, tensor] : plan.constants)
    fed.insert(at);
  std::vector<bool> seen(main.defs.size());
  std::vector<int> work;
  auto visit = [&](int node) {
    if (!seen[node]) {
      seen[node] = true;
      work.push_back(node);
    }
  };
  for (const NamedTensor &output : plan.outputs)
    if (!fed.count(output.at))
      visit(output.at.node);
  for (int target : plan.targets)
    visit(target);
  while (!work.empty()) {
    int node = work.back();
    work.pop_back();
    for (const InputRef &input : main.nodes[node].inputs)
      if (!fed.count({input.node, static_cast<int>(std::min<int64_t>(input.index, INT32_MAX))}))
        visit(input.node);
    for (int control : main.nodes[node].controls)
      visit(control);
  }
  return seen;
}

void Selector::applyShape(NamedTensor &tensor, const std::optional<std::vector<int64_t>> &shape) {
  if (!shape)
    return;
  const auto &known = tensor.spec.dims;
  bool fits = !known || known->size() == shape->size();
  for (size_t i = 0; fits && known && i < shape->size(); ++i)
    fits = (*shape)[i] < 0 || (*known)[i] < 0 || (*shape)[i] == (*known)[i];
  // a placeholder's shape is a promise of the graph, but retraining with another batch size is common: only the rank
  // has to fit
  if (known && known->size() != shape->size())
    problems.add(Twine("input '") + printable(tensor.spec.name) + "': the shape " + dimsToString(*shape) +
                 " does not have the rank of " + dimsToString(*known));
  else if (!fits)
    notes += "input " + printable(tensor.spec.name) + ": " + dimsToString(*shape) + " instead of " +
             dimsToString(*known) + "\n";
  tensor.spec.dims = *shape;
}

/// What the graph leaves open is as it will be fed; where the two disagree, the feed is refused when it comes.
void Selector::takeFedShape(NamedTensor &tensor) {
  std::optional<std::vector<int64_t>> &dims = tensor.spec.dims;
  for (auto &[name, fed] : options.fedShapes) {
    if (name != tensor.spec.name && name != tensor.spec.tensor && name + ":0" != tensor.spec.tensor)
      continue;
    if (!dims)
      dims = fed;
    for (size_t i = 0; i < fed.size() && dims->size() == fed.size(); ++i)
      if ((*dims)[i] < 0)
        (*dims)[i] = fed[i];
  }
}

EntryPlan Selector::plan(StringRef name, const std::vector<std::string> &outputs,
                         const std::vector<std::string> &targets, bool isOnlyEntry) {
  EntryPlan plan;
  plan.name = name.str();
  bool isDefault = outputs.empty() && targets.empty();
  for (const std::string &output : outputs) {
    NamedTensor tensor;
    if (resolve(output, false, tensor))
      plan.outputs.push_back(std::move(tensor));
  }
  for (const std::string &target : targets)
    if (std::optional<int> node = resolveTarget(target))
      plan.targets.push_back(*node);
  if (isDefault) {
    plan.outputs = signature ? signatureTensors(signature->outputs(), "output") : defaultOutputs();
    if (!signature && !plan.outputs.empty()) {
      notes += "outputs:";
      for (const NamedTensor &output : plan.outputs)
        notes += " " + printable(output.spec.tensor);
      notes += "\n";
    }
    if (plan.outputs.empty() && !problems.any())
      problems.add(Twine("the graph has no outputs; name one with --output"));
  }

  for (auto &[key, value] : options.constantFeeds) {
    NamedTensor tensor;
    if (!resolve(key, true, tensor))
      continue;
    if (tensor.spec.dtype != value.dtype())
      problems.add(Twine("input '") + printable(key) + "': expected " + dtypeName(tensor.spec.dtype) + ", found " +
                   dtypeName(value.dtype()));
    plan.constants.push_back({tensor.at, &value});
  }
  std::set<MainTensor> fed;
  for (auto &c : plan.constants)
    fed.insert(c.first);
  auto has = [&](MainTensor at) { return fed.count(at) != 0; };
  std::vector<NamedTensor> defaults;
  if (!options.onlyListedInputs)
    defaults = signature ? signatureTensors(signature->inputs(), "input") : placeholders();
  for (NamedTensor &tensor : defaults)
    takeFedShape(tensor);
  for (auto &[key, shape] : options.inputs) {
    NamedTensor tensor;
    if (unknownInputs.contains(key) || isOfOtherEntry(key))
      continue;
    if (!resolve(key, true, tensor)) {
      unknownInputs.insert(key); // said once, not for each entry
      continue;
    }
    if (has(tensor.at)) {
      problems.add(Twine("input '") + printable(key) + "' is given twice");
      continue;
    }
    if (options.onlyListedInputs)
      tensor.spec.name = key;
    else if (auto it = llvm::find_if(defaults, [&](const NamedTensor &d) { return d.at == tensor.at; });
             it != defaults.end())
      tensor.spec = it->spec; // under its usual name
    applyShape(tensor, shape);
    fed.insert(tensor.at);
    plan.inputs.push_back(std::move(tensor));
  }
  // signature inputs stay even when unused: they are the model's interface
  bool keepAll = signature && isDefault;
  EntryPlan listed = plan;
  std::vector<bool> needed = reachable(listed);
  if (!isOnlyEntry)
    llvm::erase_if(plan.inputs, [&](const NamedTensor &input) { return !needed[input.at.node]; });
  fed.clear();
  for (const NamedTensor &input : plan.inputs)
    fed.insert(input.at);
  for (auto &c : plan.constants)
    fed.insert(c.first);
  for (NamedTensor &tensor : defaults)
    if ((keepAll || needed[tensor.at.node]) && fed.insert(tensor.at).second)
      plan.inputs.push_back(std::move(tensor));
  if (options.unknownLeading)
    for (NamedTensor &input : plan.inputs)
      if (input.spec.dims && !input.spec.dims->empty())
        (*input.spec.dims)[0] = -1;
  for (const NamedTensor &input : plan.inputs)
    if (input.spec.dtype == DType::Resource || input.spec.dtype == DType::Variant)
      problems.add(main.id(input.at.node), Twine("cannot be fed: it is a ") + dtypeName(input.spec.dtype));
  for (const NamedTensor &output : plan.outputs)
    if (output.spec.dtype == DType::Resource || output.spec.dtype == DType::Variant)
      problems.add(main.id(output.at.node), Twine("cannot be an output: it is a ") + dtypeName(output.spec.dtype));
  return plan;
}

/// The signature that an entry without fetches and targets is named after; null for other entries.
const tf::SignatureDef *Selector::signatureOf(const ImportOptions::Entry &entry) const {
  if (!entry.fetches.empty() || !entry.targets.empty() || isInternalSignature(entry.name))
    return nullptr;
  auto it = model.meta->signature_def().find(entry.name);
  return it == model.meta->signature_def().end() ? nullptr : &it->second;
}

/// Where signatures are entries: whether this is a key that the one in work has not, but another.
bool Selector::isOfOtherEntry(StringRef input) const {
  const std::string key = input.str();
  return signature && !signature->inputs().contains(key) && llvm::any_of(options.entries, [&](const ImportOptions::Entry &entry) {
    const tf::SignatureDef *other = signatureOf(entry);
    return other && other->inputs().contains(key);
  });
}

EntryPlan Selector::planSignature(const std::string &key) {
  auto before = std::make_pair(signature, signatureKey);
  signature = &model.meta->signature_def().at(key);
  signatureKey = key;
  EntryPlan result = plan(key, {}, {}, false);
  std::tie(signature, signatureKey) = before;
  return result;
}

/// "fetch/target" cannot be split without knowing the graph, as node names hold slashes too: where the whole is no name
/// but both halves are, what follows are targets.
void Selector::splitTargets(ImportOptions::Entry &entry) {
  MainTensor at;
  auto isFetch = [&](StringRef name) {
    return (signature && signature->outputs().contains(name.str())) || findTensor(name, at);
  };
  for (size_t i = 0; i < entry.fetches.size(); ++i) {
    StringRef whole = entry.fetches[i];
    if (isFetch(whole))
      continue;
    for (size_t slash = whole.find('/'); slash != StringRef::npos; slash = whole.find('/', slash + 1)) {
      if (!isFetch(whole.take_front(slash)) || !findTensor(whole.drop_front(slash + 1), at))
        continue;
      std::vector<std::string> targets{whole.drop_front(slash + 1).str()};
      targets.insert(targets.end(), entry.fetches.begin() + static_cast<long>(i) + 1, entry.fetches.end());
      entry.targets.insert(entry.targets.begin(), targets.begin(), targets.end());
      std::string fetch = whole.take_front(slash).str();
      entry.fetches.resize(i);
      entry.fetches.push_back(std::move(fetch));
      return;
    }
  }
}

/// The op that initialises tables: a signature of its own in TF2, a collection in TF1.
static std::string initOp(const tf::MetaGraphDef &meta) {
  constexpr const char *key = "__saved_model_init_op";
  std::string name;
  if (auto signature = meta.signature_def().find(key); signature != meta.signature_def().end())
    if (auto output = signature->second.outputs().find(key); output != signature->second.outputs().end())
      name = output->second.name();
  for (const char *collection : {"saved_model_main_op", "legacy_init_op"})
    if (auto it = meta.collection_def().find(collection); name.empty() && it != meta.collection_def().end())
      if (it->second.node_list().value_size() > 0)
        name = it->second.node_list().value(0);
  return StringRef(name).split(':').first.str();
}

std::vector<EntryPlan> Selector::select() {
  std::vector<EntryPlan> plans;
  if (!chooseSignature())
    return plans;
  auto addInit = [&] {
    std::string init = options.withInit ? initOp(*model.meta) : "";
    if (!init.empty())
      plans.push_back(plan(kInitEntry, {}, {init}, false));
  };
  if (options.entries.empty()) {
    plans.push_back(plan("main", options.outputs, options.targets, true));
    addInit();
    return plans;
  }
  llvm::StringSet<> names;
  for (ImportOptions::Entry entry : options.entries) {
    const bool isSignature = signatureOf(entry);
    splitTargets(entry);
    if (entry.name.empty() || !names.insert(entry.name).second)
      problems.add(Twine("entry '") + printable(entry.name) + "' is given twice or has no name");
    if (isSignature)
      plans.push_back(planSignature(entry.name));
    else if (entry.fetches.empty() && entry.targets.empty())
      problems.add(Twine("entry '") + printable(entry.name) + "' has neither fetches nor targets");
    else
      plans.push_back(plan(entry.name, entry.fetches, entry.targets, false));
  }
  addInit();
  return plans;
}

std::vector<EntryPlan> selectEntries(const Model &model, Library &library, Flattener &flattener,
                                     const ImportOptions &options, Problems &problems, std::string &notes,
                                     bool &usesSignature) {
  Selector selector(model, library, flattener, options, problems, notes);
  std::vector<EntryPlan> plans = selector.select();
  usesSignature = selector.hasSignature();
  return plans;
}

std::vector<SignatureInfo> listSignatures(const Model &model, Library &library, Flattener &flattener,
                                          Problems &problems) {
  std::string notes;
  ImportOptions options;
  Selector selector(model, library, flattener, options, problems, notes);
  std::vector<SignatureInfo> infos;
  auto add = [&](StringRef key, std::vector<NamedTensor> inputs, std::vector<NamedTensor> outputs) {
    SignatureInfo info;
    info.key = key.str();
    for (NamedTensor &t : inputs)
      info.inputs.push_back(std::move(t.spec));
    for (NamedTensor &t : outputs)
      info.outputs.push_back(std::move(t.spec));
    infos.push_back(std::move(info));
  };
  std::map<std::string, const tf::SignatureDef *> sorted;
  for (const auto &[key, def] : model.meta->signature_def())
    if (!isInternalSignature(key))
      sorted[key] = &def;
  for (auto &[key, def] : sorted)
    add(key, selector.signatureTensors(def->inputs(), "input"), selector.signatureTensors(def->outputs(), "output"));
  if (sorted.empty())
    add("", selector.placeholders(), selector.defaultOutputs());
  return infos;
}

} // namespace lathe::import
