// nvptx-split-sorts: sorts of long lines as many kernels, and the k largest by sorts, since blocks of one cannot wait for each other.
//
// Before:  %s = hlo.sort(%x) over [n]
// After:   %r = hlo.sort of runs, [runs, length]         a block each
//          %m = hlo.sort {kernel.sorted_halves}         merges of two, as often as runs are doubled
//          %s = the first n of it, where runs did not divide the line
//
// Before:  %s = hlo.sort(%x) over [?]
// After:   %s, %t = hlo.sort(%x, %x) {kernel.sort_space}   a block each, which merges to and fro between the results
//
// Before:  %v, %i = hlo.top_k %x, k
// After:   hlo.sort of parts of the line with their indices, of which the first k are parts of the next, until one block sorts what is left;
//          of a line of unknown length the first k of it sorted
#include "dialects/hlo/Constants.h"
#include "dialects/hlo/Hlo.h"
#include "dialects/hlo/Shape.h"
#include "dialects/kernel/Kernel.h"
#include "passes/codegen/nvptx/NvptxBackend.h"
#include "passes/codegen/nvptx/Sort.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/Pass/Pass.h"

using namespace mlir;

namespace lathe::nvptx {

#define GEN_PASS_DEF_SPLITSORTS
#include "passes/codegen/nvptx/Passes.h.inc"

namespace {

using Dims = SmallVector<AffineExpr>;

/// What is sorted together, and where along.
struct Sorted {
  SmallVector<Value> values;
  int64_t dim;
  int64_t length() const { return hlo::tensorType(values[0]).getDimSize(dim); }
};

/// Makes the ops of one sort, where its comparator is known.
class Sorter {
public:
  using Comparator = llvm::function_ref<void(OpBuilder &, Region &)>;
  Sorter(OpBuilder &b, Location loc, Comparator comparator) : b(b), loc(loc), comparator(comparator) {}

  hlo::SortOp sort(const Sorted &x);
  /// The same of lines of a length known at run time only. The comparator takes all twice.
  SmallVector<Value> sortWithSpace(const Sorted &x);
  /// The same of a long line, whose length `runs` divides.
  Sorted sortRuns(Sorted x, int64_t runs);
  /// A dimension as two.
  Sorted divide(const Sorted &x, int64_t outer);
  /// The dimension before the one that is sorted and that as one.
  Sorted join(const Sorted &x);
  Sorted first(const Sorted &x, int64_t count);
  /// With `more` elements behind, of these values.
  Sorted pad(const Sorted &x, int64_t more, ValueRange with);

private:
  Value reshape(Value x, const Dims &dims) { return hlo::ReshapeOp::create(b, loc, x, dims); }
  /// A loop that makes `result` of `x`.
  Value loop(Value x, RankedTensorType type, llvm::function_ref<Value(OpBuilder &, Value)> result);

  OpBuilder &b;
  Location loc;
  Comparator comparator;
};

hlo::SortOp Sorter::sort(const Sorted &x) {
  OperationState state(loc, hlo::SortOp::getOperationName());
  state.addOperands(x.values);
  state.addTypes(TypeRange(ValueRange(x.values)));
  comparator(b, *state.addRegion());
  auto op = cast<hlo::SortOp>(b.create(state));
  op.setDimension(x.dim);
  op.setIsStable(true);
  return op;
}

SmallVector<Value> Sorter::sortWithSpace(const Sorted &x) {
  Sorted twice = x;
  twice.values.append(x.values);
  hlo::SortOp op = sort(twice);
  op->setAttr(spaceAttribute, b.getUnitAttr());
  return SmallVector<Value>(op->getResults().take_front(x.values.size()));
}

Sorted Sorter::divide(const Sorted &x, int64_t outer) {
  Sorted divided{{}, x.dim + 1};
  for (Value v : x.values) {
    Dims dims = hlo::getDims(hlo::tensorType(v));
    const int64_t length = hlo::tensorType(v).getDimSize(x.dim);
    dims[x.dim] = b.getAffineConstantExpr(length / outer);
    dims.insert(dims.begin() + x.dim, b.getAffineConstantExpr(outer));
    divided.values.push_back(reshape(v, dims));
  }
  return divided;
}

Sorted Sorter::join(const Sorted &x) {
  Sorted joined{{}, x.dim - 1};
  for (Value v : x.values) {
    Dims dims = hlo::getDims(hlo::tensorType(v));
    dims[x.dim - 1] = hlo::simplify(dims[x.dim - 1] * dims[x.dim]);
    dims.erase(dims.begin() + x.dim);
    joined.values.push_back(reshape(v, dims));
  }
  return joined;
}

Sorted Sorter::sortRuns(Sorted x, int64_t runs) {
  auto sorted = [&](Sorted y, bool halves) {
    hlo::SortOp op = sort(y);
    if (halves)
      op->setAttr(halvesAttribute, b.getUnitAttr());
    return join({SmallVector<Value>(op->getResults()), y.dim});
  };
  x = sorted(divide(x, runs), false);
  for (runs /= 2; runs > 0; runs /= 2)
    x = sorted(divide(x, runs), true);
  return x;
}

Value Sorter::loop(Value x, RankedTensorType type, llvm::function_ref<Value(OpBuilder &, Value)> result) {
  return kernel::LoopOp::create(b, loc, TypeRange(type), ValueRange(x), [&](OpBuilder &inner, Location, ValueRange args) {
           return SmallVector<Value>{result(inner, args[0])};
         })->getResult(0);
}

Sorted Sorter::first(const Sorted &x, int64_t count) {
  if (count == x.length())
    return x;
  Sorted part{{}, x.dim};
  for (Value v : x.values) {
    const RankedTensorType type = hlo::tensorType(v);
    Dims dims = hlo::getDims(type), starts(dims.size(), b.getAffineConstantExpr(0));
    dims[x.dim] = b.getAffineConstantExpr(count);
    part.values.push_back(loop(v, hlo::makeType(dims, type.getElementType()), [&](OpBuilder &inner, Value arg) -> Value {
      return hlo::SliceOp::create(inner, loc, arg, starts, dims, SmallVector<int64_t>(dims.size(), 1));
    }));
  }
  return part;
}

Sorted Sorter::pad(const Sorted &x, int64_t more, ValueRange with) {
  if (more == 0)
    return x;
  Sorted padded{{}, x.dim};
  for (auto [v, value] : llvm::zip_equal(x.values, with)) {
    const RankedTensorType type = hlo::tensorType(v);
    Dims dims = hlo::getDims(type);
    dims[x.dim] = b.getAffineConstantExpr(x.length() + more);
    SmallVector<int64_t> none(dims.size(), 0), high(none);
    high[x.dim] = more;
    const RankedTensorType wide = hlo::makeType(dims, type.getElementType());
    Attribute filled = value.getDefiningOp<hlo::ConstantOp>().getValue();
    padded.values.push_back(loop(v, wide, [&](OpBuilder &inner, Value arg) -> Value {
      Value fill = hlo::makeConstant(inner, loc, cast<ElementsAttr>(filled));
      return hlo::PadOp::create(inner, loc, wide, arg, fill, none, high, none);
    }));
  }
  return padded;
}

} // namespace

/// How many runs of a line blocks sort; 1 where that is one.
static int64_t runsOf(int64_t length) { return llvm::PowerOf2Ceil(llvm::divideCeil(length, longestBlockSort)); }

/// Emits the comparator of another sort behind a first key that puts what was padded last.
static void compareBehindPadding(OpBuilder &b, hlo::SortOp like, Region &region) {
  OpBuilder::InsertionGuard guard(b);
  IRMapping map;
  like.getComparator().cloneInto(&region, map);
  Block &body = region.front();
  const Location loc = like.getLoc();
  auto scalar = RankedTensorType::get({}, b.getI8Type());
  Value x = body.insertArgument(0u, scalar, loc), y = body.insertArgument(1u, scalar, loc);
  Operation *end = body.getTerminator();
  b.setInsertionPoint(end);
  Value isBefore = hlo::CompareOp::create(b, loc, x, y, hlo::ComparisonDirection::LT);
  Value isAlike = hlo::CompareOp::create(b, loc, x, y, hlo::ComparisonDirection::EQ);
  end->setOperand(0, hlo::OrOp::create(b, loc, isBefore, hlo::AndOp::create(b, loc, isAlike, end->getOperand(0))));
}

/// 1 for elements of a dimension from `length` on, 0 for those before.
static Value whatIsPadded(OpBuilder &b, Location loc, RankedTensorType type, int64_t dim, int64_t length) {
  const RankedTensorType flags = hlo::withElementType(type, b.getI8Type()), indices = hlo::withElementType(type, b.getI64Type());
  return kernel::LoopOp::create(b, loc, TypeRange(flags), ValueRange(), [&](OpBuilder &inner, Location, ValueRange) {
           Value index = hlo::IotaOp::create(inner, loc, indices, dim);
           Value is = hlo::CompareOp::create(inner, loc, index, hlo::makeSplat(inner, loc, length, indices), hlo::ComparisonDirection::GE);
           return SmallVector<Value>{hlo::ConvertOp::create(inner, loc, flags, is)};
         })->getResult(0);
}

static std::string whyNotSplitSort(hlo::SortOp op) {
  if (op->hasAttr(halvesAttribute) || op->hasAttr(spaceAttribute))
    return "shared already";
  const RankedTensorType type = hlo::tensorType(op.getInputs()[0]);
  if (type.getRank() == 0)
    return "a scalar";
  const int64_t length = type.getDimSize(sortedDim(op));
  return !ShapedType::isDynamic(length) && length <= longestBlockSort ? "lines that a block sorts" : "";
}

static void sortLinesOfAnyLength(hlo::SortOp op) {
  OpBuilder b(op);
  auto comparator = [&](OpBuilder &, Region &region) {
    IRMapping map;
    op.getComparator().cloneInto(&region, map);
    for (Type type : SmallVector<Type>(region.front().getArgumentTypes()))
      region.front().addArgument(type, op.getLoc());
  };
  Sorter sorter(b, op.getLoc(), comparator);
  op->replaceAllUsesWith(sorter.sortWithSpace({SmallVector<Value>(op.getInputs()), sortedDim(op)}));
  op->erase();
}

static void splitSort(hlo::SortOp op) {
  OpBuilder b(op);
  const Location loc = op.getLoc();
  Sorted x{SmallVector<Value>(op.getInputs()), sortedDim(op)};
  const int64_t length = x.length(), runs = runsOf(length), more = llvm::alignTo(length, runs) - length;
  auto comparator = [&](OpBuilder &b, Region &region) {
    IRMapping map;
    if (more)
      compareBehindPadding(b, op, region);
    else
      op.getComparator().cloneInto(&region, map);
  };
  Sorter sorter(b, loc, comparator);
  if (more) {
    SmallVector<Value> with;
    for (Value v : x.values)
      with.push_back(hlo::makeSplat(b, loc, 0, RankedTensorType::get({}, hlo::elementType(v))));
    x = sorter.pad(x, more, with);
    x.values.insert(x.values.begin(), whatIsPadded(b, loc, hlo::tensorType(x.values[0]), x.dim, length));
  }
  x = sorter.sortRuns(x, runs);
  if (more)
    x.values.erase(x.values.begin());
  op->replaceAllUsesWith(sorter.first(x, length).values);
  op->erase();
}

static std::string whyNotSorted(hlo::TopKOp op) {
  constexpr int64_t few = 32, manyLines = 1 << 14, firstOnly = 64;
  const RankedTensorType type = hlo::tensorType(op.getOperand());
  if (type.getRank() == 0)
    return "a scalar";
  const int64_t length = type.getShape().back(), k = op.getK();
  if ((!ShapedType::isDynamic(length) && length <= few) || k == 0)
    return "short lines";
  // a thread looks through each
  const ArrayRef<int64_t> lines = type.getShape().drop_back();
  if (!ShapedType::isDynamicShape(lines) && ShapedType::getNumElements(lines) >= manyLines && k <= firstOnly)
    return "enough lines";
  return {};
}

/// x > y, where NaN is above every number.
static void compareLargest(OpBuilder &b, Location loc, ArrayRef<Type> elements, Region &region) {
  OpBuilder::InsertionGuard guard(b);
  SmallVector<Type> types;
  for (Type t : elements)
    types.append(2, RankedTensorType::get({}, t));
  Block *body = b.createBlock(&region, {}, types, SmallVector<Location>(types.size(), loc));
  Value x = body->getArgument(0), y = body->getArgument(1);
  Value is = hlo::CompareOp::create(b, loc, x, y, hlo::ComparisonDirection::GT);
  if (isa<FloatType>(elements[0])) {
    Value none = hlo::CompareOp::create(b, loc, x, x, hlo::ComparisonDirection::NE);
    Value some = hlo::CompareOp::create(b, loc, y, y, hlo::ComparisonDirection::EQ);
    is = hlo::OrOp::create(b, loc, is, hlo::AndOp::create(b, loc, none, some));
  }
  hlo::ReturnOp::create(b, loc, ValueRange(is));
}

static void sortTopK(hlo::TopKOp op) {
  OpBuilder b(op);
  const Location loc = op.getLoc();
  const RankedTensorType type = hlo::tensorType(op.getOperand());
  const bool wantsIndices = !op.getIndices().use_empty();
  const int64_t k = op.getK();
  Sorted x{{op.getOperand()}, type.getRank() - 1};
  SmallVector<Type> elements{type.getElementType()};
  SmallVector<Value> lowest{hlo::makeLowest(b, loc, elements[0])};
  if (wantsIndices) {
    elements.push_back(hlo::elementType(op.getIndices()));
    const RankedTensorType indices = hlo::withElementType(type, elements[1]);
    x.values.push_back(kernel::LoopOp::create(b, loc, TypeRange(indices), ValueRange(), [&](OpBuilder &inner, Location, ValueRange) {
                         return SmallVector<Value>{hlo::IotaOp::create(inner, loc, indices, x.dim)};
                       })->getResult(0));
    lowest.push_back(hlo::makeSplat(b, loc, 0, RankedTensorType::get({}, elements[1])));
  }
  const bool known = !ShapedType::isDynamic(x.length());
  if (!known)
    elements.append(SmallVector<Type>(elements));
  auto comparator = [&](OpBuilder &b, Region &region) { compareLargest(b, loc, elements, region); };
  Sorter sorter(b, loc, comparator);
  // what is padded is the least, and behind all that equals it
  while (known && x.length() > longestBlockSort && 4 * k <= longestBlockSort) {
    const int64_t parts = llvm::divideCeil(x.length(), longestBlockSort);
    x = sorter.divide(sorter.pad(x, llvm::alignTo(x.length(), parts) - x.length(), lowest), parts);
    x.values = SmallVector<Value>(sorter.sort(x)->getResults());
    x = sorter.join(sorter.first(x, k));
  }
  const int64_t runs = known ? runsOf(x.length()) : 1;
  if (!known)
    x.values = sorter.sortWithSpace(x);
  else if (runs > 1)
    x = sorter.sortRuns(sorter.pad(x, llvm::alignTo(x.length(), runs) - x.length(), lowest), runs);
  else
    x.values = SmallVector<Value>(sorter.sort(x)->getResults());
  x = sorter.first(x, k);
  op.getValues().replaceAllUsesWith(x.values[0]);
  if (wantsIndices)
    op.getIndices().replaceAllUsesWith(x.values[1]);
  op->erase();
}

namespace {

struct SplitSorts : impl::SplitSortsBase<SplitSorts> {
  void runOnOperation() override {
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) {
      if (isa<hlo::SortOp, hlo::TopKOp>(op))
        ops.push_back(op);
    });
    for (Operation *op : ops) {
      auto sort = dyn_cast<hlo::SortOp>(op);
      if (!(sort ? whyNotSplitSort(sort) : whyNotSorted(cast<hlo::TopKOp>(op))).empty()) {
        ++numRefused;
        continue;
      }
      if (sort && ShapedType::isDynamic(hlo::tensorType(sort.getInputs()[0]).getDimSize(sortedDim(sort))))
        sortLinesOfAnyLength(sort);
      else if (sort)
        splitSort(sort);
      else
        sortTopK(cast<hlo::TopKOp>(op));
      ++numSplit;
    }
  }
};

} // namespace

} // namespace lathe::nvptx
