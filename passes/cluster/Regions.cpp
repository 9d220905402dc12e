#include "passes/cluster/Regions.h"

#include "ops/Flags.h"
#include "passes/cluster/Outline.h"
#include "passes/cluster/Policy.h"

using namespace mlir;

namespace lathe::cluster {

bool isControlFlow(Operation *op) { return decidesFrames(op) || isOp(op, "ControlTrigger"); }

Value predicateOf(Value condition) {
  for (int hops = 0; hops < 1000; ++hops) {
    auto node = condition.getDefiningOp<graph::NodeOp>();
    if (!node)
      break;
    bool passes = ops::is(node.getOp(), ops::Flag::Passes);
    unsigned from = passes ? cast<OpResult>(condition).getResultNumber() : 0;
    // what a variable holds may differ from one look to the next
    if ((!passes && !isOp(node, "Switch")) || from >= node.getInputs().size() || isReferenceOutput(node.getInputs()[from]))
      break;
    condition = node.getInputs()[from];
  }
  return condition;
}

int Regions::intern(const std::set<Literal> &set) {
  auto [it, isNew] = numbers.try_emplace(set, static_cast<int>(literals.size()));
  if (isNew)
    literals.push_back(set);
  return it->second;
}

bool Regions::isWithin(int frame, int outer) const {
  while (frame != outer && frame != 0)
    frame = frames[frame].parent;
  return frame == outer;
}

int Regions::livenessOf(Value value) const {
  Operation *op = value.getDefiningOp();
  if (!op)
    return 0;
  auto it = switched.find(value);
  return it != switched.end() ? it->second : regions.lookup(op).liveness;
}

LogicalResult Regions::analyze(Block &block) {
  FailureOr<std::vector<Operation *>> nodes = orderNodes(block);
  if (failed(nodes))
    return failure();
  ordered = std::move(*nodes);
  frames.assign(1, {});
  intern({});
  for (Operation *op : ordered)
    anyControlFlow |= isControlFlow(op);
  if (!anyControlFlow)
    return success();
  std::map<std::pair<int, std::string>, int> frameNames;
  for (Operation *op : ordered) {
    auto node = dyn_cast<graph::NodeOp>(op);
    if (!node)
      continue;
    StringRef name = plainOp(op);
    Region region;
    std::set<Literal> alive;
    bool isMerge = name == "Merge", anyFrame = false;
    for (Value operand : op->getOperands()) {
      Operation *from = operand.getDefiningOp();
      if (!from || isBackEdge(from, op))
        continue;
      Region r = regions.lookup(from);
      // constants of the graph itself may be used anywhere without an Enter only where the graph is malformed
      if (anyFrame && r.frame != region.frame)
        return op->emitError("has inputs of different loops");
      region.frame = r.frame;
      anyFrame = true;
      const std::set<Literal> &more = literals[livenessOf(operand)];
      alive.insert(more.begin(), more.end());
    }
    if (name == "Enter") {
      StringRef frameName;
      if (auto text = node.getNodeAttr<StringAttr>("frame_name"))
        frameName = text.getValue();
      region.liveness = intern(alive);
      auto [it, isNew] = frameNames.try_emplace({region.frame, frameName.str()}, static_cast<int>(frames.size()));
      if (isNew)
        frames.push_back({region.frame, region.liveness});
      else if (frames[it->second].entryLiveness != region.liveness)
        // entered under different conditions: alive when the loop wants
        frames[it->second].entryLiveness = intern({{this, it->second}});
      region.frame = it->second;
    } else if (name == "Exit") {
      if (region.frame == 0)
        return op->emitError("leaves a loop that was not entered");
      region.liveness = frames[region.frame].entryLiveness;
      region.frame = frames[region.frame].parent;
    } else if (isMerge) {
      // the value is alive when any input is
      std::vector<std::set<Literal>> inputs;
      bool isLoop = false;
      for (Value input : node.getInputs()) {
        if (isOp(input, "NextIteration"))
          isLoop = true;
        else
          inputs.push_back(literals[livenessOf(input)]);
      }
      std::set<Literal> result;
      bool known = isLoop && inputs.size() == 1;
      if (known) {
        result = inputs[0];
      } else if (!isLoop && inputs.size() == 2) {
        // two sides of one condition: {k, (p, 0)} and {k, (p, 1)}
        std::set<Literal> first, second;
        std::set_difference(inputs[0].begin(), inputs[0].end(), inputs[1].begin(), inputs[1].end(),
                            std::inserter(first, first.end()));
        std::set_difference(inputs[1].begin(), inputs[1].end(), inputs[0].begin(), inputs[0].end(),
                            std::inserter(second, second.end()));
        known = first.size() == 1 && second.size() == 1 && first.begin()->first == second.begin()->first &&
                first.begin()->second + second.begin()->second == 1;
        if (known)
          std::set_intersection(inputs[0].begin(), inputs[0].end(), inputs[1].begin(), inputs[1].end(),
                                std::inserter(result, result.end()));
      }
      // control edges count in full
      for (Value control : node.getControls()) {
        const std::set<Literal> &more = literals[livenessOf(control)];
        result.insert(more.begin(), more.end());
      }
      if (!known)
        result.insert({op, -1});
      region.liveness = intern(result);
    } else if (name == "ControlTrigger") {
      region.liveness = intern({{op, -1}});
    } else {
      region.liveness = intern(alive);
    }
    regions[op] = region;
    if (name == "Switch" && node.getInputs().size() == 2 && node.getOutputs().size() == 2) {
      for (int side = 0; side < 2; ++side) {
        std::set<Literal> with = alive;
        with.insert({predicateOf(node.getInputs()[1]).getAsOpaquePointer(), side});
        switched[node.getOutputs()[side]] = intern(with);
      }
    }
  }
  return success();
}

} // namespace lathe::cluster
