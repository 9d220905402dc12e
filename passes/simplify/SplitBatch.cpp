//===- SplitBatch.cpp - large batches a few images at a time ----------------===//
//
// The first layers of an image model make tensors that, for a whole batch, fit
// no cache: each kernel reads from memory what the one before has just written.
// Before: f(batch). After: a loop that does the first layers for a group of
// images, whose tensors stay near, and the rest on the whole batch, whose weights
// would otherwise be read once a group.
//
//===----------------------------------------------------------------------===//

#include "dialects/hlo/Constants.h"
#include "passes/simplify/Match.h"
#include "passes/simplify/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace lathe;

namespace lathe::simplify {
#define GEN_PASS_DEF_HLOSPLITBATCH
#include "passes/simplify/Passes.h.inc"
} // namespace lathe::simplify

namespace {

using simplify::HloSplitBatchOptions;

/// A loop that saves less than so many caches full, or less than this share of all traffic, is not worth its slices.
constexpr double leastCaches = 8, leastShare = 0.08;

class Splitter {
public:
  Splitter(func::FuncOp func, const HloSplitBatchOptions &core)
      : block(func.getBody().front()), core(core), cacheBytes(static_cast<double>(core.cache)), b(func) {}
  bool run();

private:
  bool chooseBatch();
  bool carries(Value v) const { return carried.contains(v); }
  bool isBatched(RankedTensorType t) const {
    return t && t.hasStaticShape() && t.getRank() > 0 && t.getDimSize(0) > 0 && t.getDimSize(0) % batch == 0;
  }
  RankedTensorType narrowed(Type t) const {
    auto type = cast<RankedTensorType>(t);
    SmallVector<int64_t> dims(type.getShape());
    dims[0] = dims[0] / batch * group;
    return RankedTensorType::get(dims, type.getElementType());
  }
  bool repeatsPerImage(Value v);
  bool splits(Operation *op);
  void collect();
  size_t chooseCut();
  Value operandFor(Value v, IRMapping &map);
  void rewrite(size_t cut);

  Block &block;
  const HloSplitBatchOptions &core;
  const double cacheBytes; ///< a core's own; traffic beyond it is what splitting saves
  OpBuilder b;
  int64_t batch = 0, group = 1;
  llvm::DenseSet<Value> carried;   ///< rows of dimension 0 belong to images, in order
  llvm::DenseSet<Value> repeated;  ///< the same rows for each image, made again for a group
  SmallVector<Operation *> ops;    ///< that can be done for a group, in order
};

/// The leading size of the first argument that has one above 1.
bool Splitter::chooseBatch() {
  for (BlockArgument arg : block.getArguments()) {
    auto type = dyn_cast<RankedTensorType>(arg.getType());
    if (type && type.hasStaticShape() && type.getRank() > 1 && type.getDimSize(0) > 1) {
      batch = type.getDimSize(0);
      break;
    }
  }
  if (!batch)
    return false;
  for (BlockArgument arg : block.getArguments())
    if (auto type = dyn_cast<RankedTensorType>(arg.getType()); isBatched(type) && type.getDimSize(0) == batch)
      carried.insert(arg);
  return true;
}

/// A value outside of the images' flow that holds the same for each of them: it can be made for a group.
bool Splitter::repeatsPerImage(Value v) {
  if (repeated.contains(v))
    return true;
  auto type = dyn_cast<RankedTensorType>(v.getType());
  if (!isBatched(type))
    return false;
  bool is = false;
  if (auto broadcast = v.getDefiningOp<hlo::BroadcastInDimOp>()) {
    is = !carries(broadcast.getOperand()) && !llvm::is_contained(broadcast.getBroadcastDimensions(), 0);
  } else if (ElementsAttr value = constantValue(v)) {
    is = value.isSplat();
    if (FailureOr<Tensor> t = is ? FailureOr<Tensor>(failure()) : hlo::readConstant(value); succeeded(t)) {
      size_t image = t->sizeBytes() / batch;
      const char *data = static_cast<const char *>(t->data());
      is = t->sizeBytes() % batch == 0;
      for (int64_t i = 1; is && i < batch; ++i)
        is = std::memcmp(data, data + i * image, image) == 0;
    }
  }
  if (is)
    repeated.insert(v);
  return is;
}

/// Whether the op treats images alone and its results are ordered by image.
bool Splitter::splits(Operation *op) {
  if (op->getNumResults() == 0 || !isMemoryEffectFree(op))
    return false;
  for (Value result : op->getResults())
    if (!isBatched(dyn_cast<RankedTensorType>(result.getType())))
      return false;
  auto outside = [&](Value v) { return !carries(v); };
  auto rowwise = [&](ValueRange values) {
    return llvm::all_of(values, [&](Value v) { return carries(v) || repeatsPerImage(v); });
  };
  auto keepsFirst = [&](ArrayRef<int64_t> list, int64_t value) { return !list.empty() && list.front() == value; };
  auto result = cast<RankedTensorType>(op->getResult(0).getType());
  Value first = op->getNumOperands() ? op->getOperand(0) : Value();
  if (op->hasTrait<hlo::HloElementwise>() || isa<hlo::SelectOp, hlo::ConcatenateOp>(op)) {
    if (auto concat = dyn_cast<hlo::ConcatenateOp>(op); concat && concat.getDimension() == 0)
      return false;
    for (Value v : op->getOperands()) {
      bool scalar = cast<RankedTensorType>(v.getType()).getRank() == 0;
      if (scalar ? !outside(v) : !rowwise(v))
        return false;
      if (!scalar && cast<RankedTensorType>(v.getType()).getDimSize(0) != result.getDimSize(0))
        return false;
    }
    return true;
  }
  if (auto conv = dyn_cast<hlo::ConvolutionOp>(op)) {
    hlo::ConvDimensionNumbersAttr d = conv.getDimensionNumbers();
    return carries(first) && outside(op->getOperand(1)) && d.getInputBatchDimension() == 0 && d.getOutputBatchDimension() == 0 &&
           conv.getBatchGroupCount() == 1;
  }
  if (auto dot = dyn_cast<hlo::DotGeneralOp>(op)) {
    hlo::DotDimensionNumbersAttr d = dot.getDotDimensionNumbers();
    if (!carries(first) || llvm::is_contained(d.getLhsContractingDimensions(), 0))
      return false;
    Value rhs = op->getOperand(1);
    if (d.getLhsBatchingDimensions().empty())
      return outside(rhs);
    // images are the first batch dimension of both
    return keepsFirst(d.getLhsBatchingDimensions(), 0) && keepsFirst(d.getRhsBatchingDimensions(), 0) && rowwise(rhs);
  }
  if (auto broadcast = dyn_cast<hlo::BroadcastInDimOp>(op))
    return carries(first) && keepsFirst(broadcast.getBroadcastDimensions(), 0) &&
           cast<RankedTensorType>(first.getType()).getDimSize(0) == result.getDimSize(0);
  if (isa<hlo::ReshapeOp>(op)) // images stay runs of elements
    return carries(first);
  if (auto transpose = dyn_cast<hlo::TransposeOp>(op))
    return carries(first) && keepsFirst(transpose.getPermutation(), 0);
  if (auto pad = dyn_cast<hlo::PadOp>(op))
    return carries(first) && outside(op->getOperand(1)) && pad.getEdgePaddingLow()[0] == 0 && pad.getEdgePaddingHigh()[0] == 0 &&
           pad.getInteriorPadding()[0] == 0;
  if (auto slice = dyn_cast<hlo::SliceOp>(op))
    return carries(first) && !slice.getStartMap() && !slice.getLimitMap() && slice.getStartIndices()[0] == 0 && slice.getStrides()[0] == 1 &&
           slice.getLimitIndices()[0] == cast<RankedTensorType>(first.getType()).getDimSize(0);
  if (auto reduce = dyn_cast<hlo::ReduceOp>(op))
    return llvm::all_of(reduce.getInputs(), [&](Value v) { return carries(v); }) && llvm::all_of(reduce.getInitValues(), outside) &&
           !llvm::is_contained(reduce.getDimensions(), 0);
  if (auto window = dyn_cast<hlo::ReduceWindowOp>(op)) {
    auto one = [](std::optional<ArrayRef<int64_t>> list) { return !list || list->front() == 1; };
    auto padding = window.getPadding();
    return llvm::all_of(window.getInputs(), [&](Value v) { return carries(v); }) && llvm::all_of(window.getInitValues(), outside) &&
           window.getWindowDimensions().front() == 1 && one(window.getWindowStrides()) && one(window.getBaseDilations()) &&
           one(window.getWindowDilations()) &&
           (!padding || (padding->getValues<int64_t>()[0] == 0 && padding->getValues<int64_t>()[1] == 0));
  }
  return false;
}

/// Takes ops as they come until one needs images and cannot be split.
void Splitter::collect() {
  for (Operation &op : block) {
    bool uses = false;
    op.walk([&](Operation *inner) { uses |= llvm::any_of(inner->getOperands(), [&](Value v) { return carries(v); }); });
    if (!uses)
      continue;
    if (!splits(&op))
      return;
    carried.insert_range(op.getResults());
    ops.push_back(&op);
  }
}

bool movesData(Operation *op) {
  return isa<hlo::ConvolutionOp, hlo::DotGeneralOp, hlo::ReduceOp, hlo::ReduceWindowOp>(op);
}

/// How many of `ops` the loop does; 0 for none.
size_t Splitter::chooseCut() {
  // images of a group: as many as fit with the largest tensors
  double largest = 1, total = 0;
  SmallVector<double> bytes, weights; // of an image; of what all images share
  for (Operation *op : ops) {
    double images = 0, shared = 0;
    if (movesData(op)) {
      for (Value v : op->getOperands())
        (carries(v) ? images : shared) += bytesOf(v.getType());
      images += bytesOf(op->getResult(0).getType());
      if (isa<hlo::ConvolutionOp>(op))
        shared *= 2; // filters of Winograd convolutions are larger
      largest = std::max(largest, images / batch);
    }
    bytes.push_back(images / batch);
    weights.push_back(shared);
    total += images + shared;
  }
  group = 1;
  for (int64_t g = 2; g < batch && g * largest <= cacheBytes / 2; ++g)
    if (batch % g == 0)
      group = g;
  if (group * 2 > batch || group * largest * (batch / group) <= cacheBytes)
    return 0;

  // crossing[i]: bytes that ops before i make and others from i on read
  llvm::DenseMap<Operation *, size_t> position;
  for (auto [i, op] : llvm::enumerate(ops))
    position[op] = i;
  SmallVector<double> crossing(ops.size() + 2, 0);
  for (auto [i, op] : llvm::enumerate(ops))
    for (Value result : op->getResults()) {
      size_t last = i;
      for (Operation *user : result.getUsers()) {
        auto at = position.find(block.findAncestorOpInBlock(*user));
        last = std::max(last, at == position.end() ? ops.size() : at->second);
      }
      crossing[i + 1] += bytesOf(result.getType());
      crossing[last + 1] -= bytesOf(result.getType());
    }
  for (size_t i = 1; i < crossing.size(); ++i)
    crossing[i] += crossing[i - 1];
  size_t best = 0;
  double bestGain = std::max(leastCaches * cacheBytes, leastShare * total), saved = 0, filters = 0;
  const double rounds = double(batch) / group;
  for (size_t i = 0; i <= ops.size(); ++i) {
    if (i == ops.size() || (movesData(ops[i]) && i)) {
      double gain = saved - (rounds - 1) * filters * (filters > cacheBytes / 2 ? 1 : core.refetched);
      if (gain > bestGain && (gain -= crossing[i]) > bestGain) {
        bestGain = gain;
        best = i;
      }
    }
    if (i == ops.size())
      break;
    if (bytes[i] * batch > cacheBytes)
      saved += bytes[i] * batch * (bytes[i] * group <= cacheBytes ? core.keptTraffic : core.lessTraffic);
    filters += weights[i];
  }
  return best;
}

/// What stands for an operand in the loop's body.
Value Splitter::operandFor(Value v, IRMapping &map) {
  if (Value known = map.lookupOrNull(v))
    return known;
  if (!repeated.contains(v))
    return v;
  Value made;
  if (auto broadcast = v.getDefiningOp<hlo::BroadcastInDimOp>()) {
    made = hlo::BroadcastInDimOp::create(b, v.getLoc(), narrowed(v.getType()), broadcast.getOperand(), broadcast.getBroadcastDimensions());
  } else {
    ElementsAttr value = constantValue(v);
    if (value.isSplat())
      made = makeSplatLike(b, v.getLoc(), narrowed(v.getType()), value.getSplatValue<Attribute>());
    else {
      FailureOr<Tensor> all = hlo::readConstant(value);
      std::vector<int64_t> dims(narrowed(v.getType()).getShape());
      Tensor some = Tensor::allocate(all->dtype(), dims);
      std::memcpy(some.data(), all->data(), some.sizeBytes());
      made = hlo::makeConstant(b, v.getLoc(), some);
    }
  }
  map.map(v, made);
  return made;
}

void Splitter::rewrite(size_t cut) {
  llvm::SmallPtrSet<Operation *, 32> inside(ops.begin(), ops.begin() + cut);
  auto leaves = [&](Value v) {
    return llvm::any_of(v.getUsers(), [&](Operation *user) { return !inside.contains(block.findAncestorOpInBlock(*user)); });
  };
  SmallVector<Value> results, images;
  for (Operation *op : ArrayRef(ops).take_front(cut))
    for (Value result : op->getResults())
      if (leaves(result))
        results.push_back(result);
  for (BlockArgument arg : block.getArguments())
    if (carries(arg) && llvm::any_of(arg.getUsers(), [&](Operation *user) { return inside.contains(block.findAncestorOpInBlock(*user)); }))
      images.push_back(arg);

  Location loc = ops[cut - 1]->getLoc();
  b.setInsertionPointAfter(ops[cut - 1]);
  auto indexType = RankedTensorType::get({}, b.getI64Type());
  auto index = [&](int64_t n) { return hlo::makeSplat(b, loc, n, indexType); };
  OperationState state(loc, hlo::WhileOp::getOperationName());
  SmallVector<Value> start = {index(0)};
  for (Value v : results)
    start.push_back(hlo::makeSplat(b, loc, 0.0, cast<RankedTensorType>(v.getType())));
  state.addOperands(start);
  state.addTypes(ValueRange(start).getTypes());
  SmallVector<Location> locs(start.size(), loc);
  Region *cond = state.addRegion(), *body = state.addRegion();
  {
    OpBuilder::InsertionGuard guard(b);
    Block *test = b.createBlock(cond, {}, ValueRange(start).getTypes(), locs);
    Value more = hlo::CompareOp::create(b, loc, test->getArgument(0), index(batch),
                                        hlo::ComparisonDirection::LT);
    hlo::ReturnOp::create(b, loc, more);

    Block *inner = b.createBlock(body, {}, ValueRange(start).getTypes(), locs);
    Value i = inner->getArgument(0), zero = index(0);
    auto startsAt = [&](RankedTensorType type) {
      Value rows = i;
      if (int64_t k = type.getDimSize(0) / batch; k > 1)
        rows = hlo::MulOp::create(b, loc, i, index(k));
      SmallVector<Value> starts(type.getRank(), zero);
      starts[0] = rows;
      return starts;
    };
    IRMapping map;
    for (Value v : images) {
      auto type = cast<RankedTensorType>(v.getType());
      map.map(v, hlo::DynamicSliceOp::create(b, loc, v, startsAt(type), narrowed(type).getShape()));
    }
    for (Operation *op : ArrayRef(ops).take_front(cut)) {
      SmallVector<Value> operands;
      for (Value v : op->getOperands())
        operands.push_back(operandFor(v, map));
      Operation *made = b.clone(*op, map);
      made->setOperands(operands);
      for (auto [from, to] : llvm::zip(op->getResults(), made->getResults())) {
        to.setType(narrowed(from.getType()));
        map.map(from, to);
      }
      if (auto slice = dyn_cast<hlo::SliceOp>(made)) {
        SmallVector<int64_t> limits(slice.getLimitIndices());
        limits[0] = limits[0] / batch * group;
        slice.setLimitIndices(limits);
      }
    }
    SmallVector<Value> next = {hlo::AddOp::create(b, loc, i, index(group))};
    for (auto [k, v] : llvm::enumerate(results))
      next.push_back(hlo::DynamicUpdateSliceOp::create(b, loc, v.getType(), inner->getArgument(k + 1), map.lookup(v),
                                                       startsAt(cast<RankedTensorType>(v.getType()))));
    hlo::ReturnOp::create(b, loc, next);
  }
  Operation *loop = b.create(state);
  for (auto [k, v] : llvm::enumerate(results))
    v.replaceUsesWithIf(loop->getResult(k + 1), [&](OpOperand &use) {
      Operation *user = block.findAncestorOpInBlock(*use.getOwner());
      return user != loop && !inside.contains(user);
    });
  for (Operation *op : llvm::reverse(ArrayRef(ops).take_front(cut)))
    op->erase();
}

bool Splitter::run() {
  if (!chooseBatch())
    return false;
  collect();
  size_t cut = chooseCut();
  if (!cut)
    return false;
  rewrite(cut);
  return true;
}

struct SplitBatch : simplify::impl::HloSplitBatchBase<SplitBatch> {
  using HloSplitBatchBase::HloSplitBatchBase;
  void runOnOperation() override {
    if (cache <= 0)
      return;
    const HloSplitBatchOptions core{cache, keptTraffic, lessTraffic, refetched};
    for (auto func : getOperation().getOps<func::FuncOp>())
      if (!func.isDeclaration())
        numSplit += Splitter(func, core).run();
  }
};

} // namespace
