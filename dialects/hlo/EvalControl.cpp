// Control flow, checks and region programs of the evaluator.
#include "dialects/hlo/Constants.h"
#include "dialects/hlo/Eval.h"

using namespace mlir;

namespace lathe::hlo::eval {

static int64_t scalarInt(const Tensor &t) {
  int64_t value = 0;
  if (t.numElements() > 0)
    loadInts(t.dtype(), t.data(), 1, &value);
  return value;
}

static LogicalResult evalIf(Evaluation &e, IfOp op, ArrayRef<Tensor> in, Tensors &out) {
  Region &branch = scalarInt(in[0]) ? op.getTrueBranch() : op.getFalseBranch();
  return e.runBlock(branch.front(), {}, out);
}

static LogicalResult evalCase(Evaluation &e, CaseOp op, ArrayRef<Tensor> in, Tensors &out) {
  int64_t index = scalarInt(in[0]), count = op.getBranches().size();
  if (index < 0 || index >= count)
    index = count - 1;
  return e.runBlock(op.getBranches()[index].front(), {}, out);
}

static LogicalResult evalWhile(Evaluation &e, WhileOp op, ArrayRef<Tensor> in, Tensors &out) {
  Tensors state(in.begin(), in.end());
  while (true) {
    Tensors condition, next;
    if (failed(e.iteration(op)) || failed(e.work(op, 16)) ||
        failed(e.runBlock(op.getCond().front(), state, condition)))
      return failure();
    if (condition.size() != 1 || !scalarInt(condition[0]))
      break;
    if (failed(e.runBlock(op.getBody().front(), state, next)))
      return failure();
    state = std::move(next);
  }
  out = std::move(state);
  return success();
}

static LogicalResult evalBarrier(Evaluation &, OptimizationBarrierOp, ArrayRef<Tensor> in, Tensors &out) {
  out.assign(in.begin(), in.end());
  return success();
}

static LogicalResult evalCheck(Evaluation &e, CheckOp op, ArrayRef<Tensor> in, Tensors &) {
  const uint8_t *values = in[0].data<uint8_t>();
  for (int64_t i = 0; i < in[0].numElements(); ++i)
    if (!values[i])
      return e.fail(op, "check failed: " + op.getMessage());
  return success();
}

static LogicalResult evalCustomCall(Evaluation &e, CustomCallOp op, ArrayRef<Tensor>, Tensors &) {
  return e.fail(op, "custom_call @" + op.getCallTargetName() + " cannot be evaluated");
}

void registerControl(HandlerTable &table) {
  add<IfOp, evalIf>(table);
  add<CaseOp, evalCase>(table);
  add<WhileOp, evalWhile>(table);
  add<OptimizationBarrierOp, evalBarrier>(table);
  add<CheckOp, evalCheck>(table);
  add<CustomCallOp, evalCustomCall>(table);
}

//===----------------------------------------------------------------------===//
// Region programs
//===----------------------------------------------------------------------===//

static void fill(Chunk &chunk, const Tensor &scalar) {
  chunk.reset(scalar.dtype());
  chunk.load(scalar.data(), 1);
  switch (kindOf(chunk.type)) {
  case Kind::Float: std::fill(chunk.f.begin() + 1, chunk.f.end(), chunk.f[0]); break;
  case Kind::Int: std::fill(chunk.i.begin() + 1, chunk.i.end(), chunk.i[0]); break;
  case Kind::Complex: std::fill(chunk.c.begin() + 1, chunk.c.end(), chunk.c[0]); break;
  }
}

LogicalResult RegionProgram::compile(Evaluation &e, Region &region) {
  evaluation = &e;
  block = &region.front();
  numArguments = block->getNumArguments();
  llvm::DenseMap<Value, unsigned> slots;
  auto slotOf = [&](Value value) -> FailureOr<unsigned> {
    auto it = slots.find(value);
    if (it != slots.end())
      return it->second;
    auto tensor = e.lookup(value); // a constant or captured value
    if (failed(tensor) || tensor->numElements() != 1)
      return failure();
    values.emplace_back();
    fill(values.back(), *tensor);
    slots[value] = values.size() - 1;
    return static_cast<unsigned>(values.size() - 1);
  };
  for (Value argument : block->getArguments()) {
    slots[argument] = values.size();
    values.emplace_back();
    values.back().type = toDType(elementType(argument));
  }
  for (Operation &op : *block) {
    if (isa<ConstantOp>(op))
      continue;
    if (auto terminator = dyn_cast<ReturnOp>(op)) {
      for (Value value : terminator.getResults()) {
        auto slot = slotOf(value);
        if (failed(slot))
          return general = true, success();
        returned.push_back(*slot);
      }
      break;
    }
    bool sameScalar = op.getNumOperands() == 1 && isa<ReshapeOp, BroadcastInDimOp>(op) &&
                      tensorType(op.getOperand(0)).getRank() == 0 && tensorType(op.getResult(0)).getRank() == 0;
    if (op.getNumResults() != 1 || op.getNumRegions() != 0 ||
        !(op.hasTrait<HloElementwise>() || sameScalar || isa<OptimizationBarrierOp>(op)))
      return general = true, success();
    Step step;
    step.op = &op;
    for (Value operand : op.getOperands()) {
      auto slot = slotOf(operand);
      if (failed(slot))
        return general = true, success();
      step.operands.push_back(*slot);
    }
    if (sameScalar) {
      slots[op.getResult(0)] = step.operands[0];
      continue;
    }
    values.emplace_back();
    values.back().reset(toDType(elementType(op.getResult(0))));
    step.result = values.size() - 1;
    slots[op.getResult(0)] = step.result;
    steps.push_back(std::move(step));
  }
  if (steps.size() == 1 && numArguments == 2 && returned.size() == 1 && returned[0] == steps[0].result) {
    ArrayRef<unsigned> operands = steps[0].operands;
    bool inOrder = operands == ArrayRef<unsigned>({0, 1});
    bool swapped = operands == ArrayRef<unsigned>({1, 0}) && steps[0].op->hasTrait<OpTrait::IsCommutative>();
    if (inOrder || swapped)
      single = steps[0].op;
  }
  second = steps.empty() && numArguments == 2 && returned.size() == 1 && returned[0] == 1;
  return success();
}

LogicalResult RegionProgram::run(ArrayRef<const Chunk *> arguments, MutableArrayRef<Chunk> results, int64_t n) {
  if (!general) {
    SmallVector<const Chunk *> pointers;
    for (unsigned k = 0; k < values.size(); ++k)
      pointers.push_back(k < numArguments ? arguments[k] : &values[k]);
    for (const Step &step : steps) {
      SmallVector<const Chunk *, 3> operands;
      for (unsigned operand : step.operands)
        operands.push_back(pointers[operand]);
      if (!evalChunk(step.op, operands, values[step.result], n))
        return evaluation->fail(step.op, "cannot be evaluated for this element type");
    }
    for (auto [slot, result] : llvm::zip(returned, results)) {
      const Chunk &from = *pointers[slot];
      result.type = from.type;
      switch (kindOf(from.type)) {
      case Kind::Float: std::copy_n(from.f.begin(), n, result.f.begin()); break;
      case Kind::Int: std::copy_n(from.i.begin(), n, result.i.begin()); break;
      case Kind::Complex: std::copy_n(from.c.begin(), n, result.c.begin()); break;
      }
    }
    return success();
  }
  // one group at a time through the block
  for (int64_t k = 0; k < n; ++k) {
    Tensors scalars, out;
    for (const Chunk *argument : arguments) {
      Tensor t = Tensor::allocate(argument->type, {});
      switch (kindOf(argument->type)) {
      case Kind::Float: storeFloats(argument->type, &argument->f[k], 1, t.data()); break;
      case Kind::Int: storeInts(argument->type, &argument->i[k], 1, t.data()); break;
      case Kind::Complex: storeComplexes(argument->type, &argument->c[k], 1, t.data()); break;
      }
      scalars.push_back(t);
    }
    if (failed(evaluation->iteration(block->getParentOp())) || failed(evaluation->runBlock(*block, scalars, out)))
      return failure();
    for (auto [t, result] : llvm::zip(out, results)) {
      switch (kindOf(t.dtype())) {
      case Kind::Float: loadFloats(t.dtype(), t.data(), 1, &result.f[k]); break;
      case Kind::Int: loadInts(t.dtype(), t.data(), 1, &result.i[k]); break;
      case Kind::Complex: loadComplexes(t.dtype(), t.data(), 1, &result.c[k]); break;
      }
    }
  }
  return success();
}

} // namespace lathe::hlo::eval
