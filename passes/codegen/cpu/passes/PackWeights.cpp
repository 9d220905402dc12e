// kernel-pack-weights: constant right operands in the order in which the register tiles read them.
//
//   kernel.dot(%x, %w) : (tensor<8x64xf32>, tensor<64x40xf32>)      -- tiles of 32 columns
//   kernel.dot(%x, %p) {panel = 32} : (tensor<8x64xf32>, tensor<2x64x32xf32>)
#include "dialects/hlo/Constants.h"
#include "dialects/hlo/Shape.h"
#include "dialects/kernel/Kernel.h"
#include "passes/codegen/cpu/conv/Conv.h"
#include "passes/codegen/cpu/layout/Layout.h"
#include "passes/codegen/cpu/passes/NarrowConstants.h"
#include "passes/codegen/cpu/passes/Passes.h"
#include "passes/codegen/cpu/product/Amx.h"
#include "passes/codegen/cpu/target/CpuTarget.h"
#include "passes/codegen/cpu/product/Strassen.h"
#include "passes/codegen/cpu/product/Tile.h"

#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/ADT/MapVector.h"

#include <cstring>
#include <map>

using namespace mlir;

namespace lathe::cpu {

#define GEN_PASS_DEF_PACKWEIGHTS
#define GEN_PASS_REGISTRATION
#include "passes/codegen/cpu/passes/Passes.h.inc"

namespace {

/// A matrix in a blob: [batch, k, n] with strides in elements.
struct MatrixView {
  int64_t batch = 1, k = 0, n = 0;
  int64_t kStride = 0, nStride = 1;
  SmallVector<int64_t> batchOffsets;
};

/// The part of row k that lies in panel p, as the first of `steps` side by side.
void packRow(const char *matrix, const MatrixView &view, int64_t panel, int64_t p, int64_t k, int64_t steps,
             int64_t bytes, char *to) {
  const int64_t columns = std::min(panel, view.n - p * panel);
  const char *source = matrix + (k * view.kStride + p * panel * view.nStride) * bytes;
  if (view.nStride == 1 && steps == 1)
    std::memcpy(to, source, columns * bytes);
  else
    for (int64_t c = 0; c < columns; ++c)
      std::memcpy(to + c * steps * bytes, source + c * view.nStride * bytes, bytes);
}

/// [batch][ceil(n / panel)][ceil(k / steps)][panel][steps]
Tensor pack(const Tensor &from, const MatrixView &view, int64_t panel, int64_t steps,
            std::vector<int64_t> dims) {
  Tensor to = Tensor::allocate(from.dtype(), std::move(dims));
  int64_t bytes = dtypeSize(from.dtype()), panels = llvm::divideCeil(view.n, panel),
          depth = llvm::alignTo(view.k, steps);
  const char *in = static_cast<const char *>(from.data());
  char *out = static_cast<char *>(to.data());
  std::memset(out, 0, to.sizeBytes());
  for (int64_t i = 0; i < view.batch; ++i)
    for (int64_t p = 0; p < panels; ++p)
      for (int64_t k = 0; k < view.k; ++k)
        packRow(in + view.batchOffsets[i] * bytes, view, panel, p, k, steps, bytes,
                out + (((i * panels + p) * depth + k / steps * steps) * panel + k % steps) * bytes);
  return to;
}

/// Where the elements of a panel of groups come from: step k of run r is row r * run + k of the matrix.
struct Runs {
  int64_t run = 0, runs = 1;
  int64_t padded = 0; ///< steps of a run with the zeros behind them
};

/// Whether bytes with a sign hold all numbers.
bool fitBytes(const Tensor &t) {
  for (int64_t i = 0; i < t.numElements(); ++i)
    if (int64_t v = narrowAt(t, i); v < -128 || v > 127)
      return false;
  return true;
}

/// Panels of groups: [batch][ceil(n / panel)][head + runs][ceil(run / group)][panel][group]; see OperandFormat.
template <typename T>
Tensor packGroups(const Tensor &from, const MatrixView &view, Runs runs, int64_t panel, const OperandFormat &format,
                  std::vector<int64_t> dims) {
  Tensor to = Tensor::allocate(sizeof(T) == 1 ? DType::Int8 : DType::Int16, std::move(dims));
  std::memset(to.data(), 0, to.sizeBytes());
  const int64_t panels = llvm::divideCeil(view.n, panel), group = format.group(), padded = runs.padded;
  const int64_t panelSize = (runs.runs * padded + format.headSteps()) * panel;
  for (int64_t i = 0; i < view.batch; ++i)
    for (int64_t n = 0; n < view.n; ++n) {
      T *start = to.data<T>() + (i * panels + n / panel) * panelSize, *steps = start + format.headSteps() * panel;
      const int64_t column = n % panel;
      int32_t sum = 0;
      for (int64_t k = 0; k < runs.runs * runs.run; ++k) {
        const int64_t v = narrowAt(from, view.batchOffsets[i] + k * view.kStride + n * view.nStride);
        const int64_t at = k / runs.run * padded + k % runs.run;
        steps[at / group * group * panel + column * group + at % group] = static_cast<T>(v);
        sum += static_cast<int32_t>(v);
      }
      const int32_t correction = static_cast<int32_t>(uint32_t(sum) * uint32_t(-format.bias));
      if (format.biased)
        std::memcpy(reinterpret_cast<char *>(start) + 4 * column, &correction, 4);
    }
  return to;
}

/// The same panels as Strassen's algorithm reads them: see Strassen.h.
Tensor packStrassen(const Tensor &from, const MatrixView &view, int64_t panel, int64_t depth, int64_t group,
                    std::vector<int64_t> dims) {
  Tensor to = Tensor::allocate(DType::Float32, std::move(dims));
  const char *in = static_cast<const char *>(from.data());
  char *out = static_cast<char *>(to.data());
  std::memset(out, 0, to.sizeBytes());
  auto add = [&](int64_t p, int64_t first, int64_t count) {
    for (int64_t k = first; k < first + count; ++k, out += panel * sizeof(float))
      if (k < view.k) // a sum of odd length ends in zeros
        packRow(in, view, panel, p, k, 1, sizeof(float), out);
  };
  const int64_t panels = llvm::divideCeil(view.n, panel), half = depth / 2;
  for (int64_t first = 0; first < panels; first += 2 * group)
    for (int64_t k0 = 0; k0 < view.k; k0 += depth)
      for (int64_t p = first; p < std::min(panels, first + 2 * group); p += 2) {
        add(p, k0, depth);
        if (p + 1 < panels) {
          add(p + 1, k0 + half, half);
          add(p + 1, k0, half);
        }
      }
  return to;
}

class Packer {
public:
  Packer(const KernelTarget &target, const PackOptions &options) : target(target), options(options) {}
  LogicalResult packDot(kernel::DotOp op);
  LogicalResult packConv(kernel::ConvOp op);
  /// Taps of a row and output channels side by side.
  LogicalResult packSpread(kernel::ConvOp op);
  PackStatistics statistics;

private:
  /// Replaces operand 1 by its packed form.
  LogicalResult replace(Operation *op, const MatrixView &view, int64_t panel, std::vector<int64_t> dims,
                        int64_t steps = 1);
  /// The same with any packing; `key` tells packings apart.
  LogicalResult replace(Operation *op, std::string key, llvm::function_ref<Tensor(const Tensor &)> make);
  /// The format that the op's operands have once the constant is packed, its elements narrowed to bytes where they fit.
  FailureOr<OperandFormat> groupedFormat(Operation *op, Type accElem, bool &bytes);
  /// Replaces operand 1 by its panels of groups; `outer` are the dimensions before depth and columns.
  LogicalResult packGrouped(Operation *op, const MatrixView &view, Runs runs, int64_t panel, const OperandFormat &format, bool bytes,
                            std::vector<int64_t> outer);
  /// Replaces operand 1 by what tile registers read; `outer` are the dimensions before the panels.
  LogicalResult packTiles(Operation *op, const MatrixView &view, const AmxLayout &layout, std::vector<int64_t> outer);
  /// Frees the constant's memory if nothing of the module reads it any more.
  void release(hlo::ConstantOp constant);
  /// The algorithm that the op's plan names, or the one that estimates prefer. A plan does not decide about accuracy.
  WinogradChoice planned(kernel::ConvOp op, const Tensor &filter);
  /// Sets `done` when the product is computed by Strassen's algorithm.
  LogicalResult tryStrassen(kernel::DotOp op, int64_t rows, const MatrixView &view, bool &done);
  /// Sets `done` when the convolution is computed by Winograd's algorithm.
  LogicalResult tryWinograd(kernel::ConvOp op, bool &done);

  const KernelTarget &target;
  const PackOptions &options;
  // Equal constants (by attribute) packed the same way are packed once, where the first one stood.
  std::map<std::pair<const void *, std::string>, Value> done;

public:
  /// How many constants read this resource, of whatever shape (a folded reshape shares it); empty: nothing is
  /// released.
  DenseMap<const AsmResourceBlob *, unsigned> holders;
};

/// The hlo.constant behind an operand, through views.
hlo::ConstantOp constantBehind(Value v) {
  while (auto reshape = v.getDefiningOp<hlo::ReshapeOp>())
    v = reshape->getOperand(0);
  return v.getDefiningOp<hlo::ConstantOp>();
}

/// Tells matrices of one constant apart.
std::string keyOf(const MatrixView &view) {
  std::string key;
  llvm::raw_string_ostream os(key);
  os << view.batch << ' ' << view.k << ' ' << view.n << ' ' << view.kStride << ' ' << view.nStride;
  for (int64_t o : view.batchOffsets)
    os << ' ' << o;
  return key;
}

LogicalResult Packer::replace(Operation *op, const MatrixView &view, int64_t panel, std::vector<int64_t> dims,
                              int64_t steps) {
  std::string key = keyOf(view);
  llvm::raw_string_ostream(key) << ' ' << panel << ' ' << steps;
  return replace(op, key,
                 [&](const Tensor &from) { return pack(from, view, panel, steps, std::move(dims)); });
}

LogicalResult Packer::replace(Operation *op, std::string key, llvm::function_ref<Tensor(const Tensor &)> make) {
  hlo::ConstantOp constant = constantBehind(op->getOperand(1));
  llvm::raw_string_ostream os(key);
  // a packed constant only serves the block it dominates: the constant's own
  os << ' ' << constant->getBlock();
  Value &value = done[{constant.getValue().getAsOpaquePointer(), os.str()}];
  if (!value) {
    FailureOr<Tensor> tensor = hlo::readConstant(constant.getValue());
    if (failed(tensor))
      return op->emitOpError("constant operand cannot be read");
    OpBuilder b(constant->getContext());
    b.setInsertionPointToStart(constant->getBlock());
    value = hlo::makeConstant(b, constant.getLoc(), make(*tensor));
    if (!value)
      return failure();
  }
  op->setOperand(1, value);
  release(constant);
  ++statistics.packed;
  return success();
}

FailureOr<OperandFormat> Packer::groupedFormat(Operation *op, Type accElem, bool &bytes) {
  Type left = getElementTypeOrSelf(op->getOperand(0).getType()), right = getElementTypeOrSelf(op->getOperand(1).getType());
  bytes = right.isInteger(8) && !right.isUnsignedInteger();
  MLIRContext *c = op->getContext();
  Type i16 = IntegerType::get(c, 16);
  Type i8 = IntegerType::get(c, 8);
  if (!integerFormat(target, left, i8, accElem).isGrouped() || !(right.isInteger(8) || right == i16))
    return OperandFormat();
  if (!bytes) {
    FailureOr<Tensor> tensor = hlo::readConstant(constantBehind(op->getOperand(1)).getValue());
    if (failed(tensor))
      return op->emitOpError("constant operand cannot be read");
    bytes = fitBytes(*tensor);
  }
  return integerFormat(target, left, bytes ? i8 : i16, accElem);
}

LogicalResult Packer::packGrouped(Operation *op, const MatrixView &view, Runs runs, int64_t panel, const OperandFormat &format,
                                  bool bytes, std::vector<int64_t> outer) {
  std::string key = keyOf(view);
  llvm::raw_string_ostream(key) << " groups " << format.group() << ' ' << format.biased << ' ' << runs.run << ' ' << runs.runs << ' ' << runs.padded << ' ' << panel;
  outer.insert(outer.end(), {runs.runs * runs.padded + format.headSteps(), panel});
  return replace(op, key, [&](const Tensor &from) {
    return bytes ? packGroups<int8_t>(from, view, runs, panel, format, outer)
                 : packGroups<int16_t>(from, view, runs, panel, format, outer);
  });
}

LogicalResult Packer::packTiles(Operation *op, const MatrixView &view, const AmxLayout &layout, std::vector<int64_t> outer) {
  const OperandFormat format = {OperandFormat::Kind::Bytes};
  const Runs runs = {layout.run, layout.runs, layout.paddedRun()};
  std::string key = keyOf(view);
  llvm::raw_string_ostream(key) << " tiles " << runs.run << ' ' << runs.runs << ' ' << runs.padded << ' ' << layout.panel;
  outer.insert(outer.end(), {int64_t(llvm::divideCeil(view.n, layout.panel)), layout.depth() / layout.group, layout.group * layout.panel});
  if (failed(replace(op, key, [&](const Tensor &from) { return packGroups<int8_t>(from, view, runs, layout.panel, format, outer); })))
    return failure();
  op->setAttr("layout", TilesAttr::get(op->getContext(), layout.panel, layout.group));
  return success();
}

void Packer::release(hlo::ConstantOp constant) {
  bool dead = llvm::all_of(constant->getUsers(), [](Operation *user) { return isa<hlo::ReshapeOp>(user) && user->use_empty(); });
  auto resource = dyn_cast<DenseResourceElementsAttr>(constant.getValue());
  AsmResourceBlob *blob = resource ? resource.getRawHandle().getBlob() : nullptr;
  if (dead && blob && holders.lookup(blob) == 1)
    *blob = AsmResourceBlob();
}

LogicalResult Packer::packDot(kernel::DotOp op) {
  auto rhs = cast<RankedTensorType>(op.getRhs().getType());
  RankedTensorType acc = op.getAccType();
  int64_t batchRank = op.getBatchRank();
  bool batched = rhs.getRank() > 2;
  if (op.getLayout() || !constantBehind(op.getRhs()))
    return success();
  if (!rhs.hasStaticShape() || rhs.getNumElements() == 0 || target.lanes(acc.getElementType()) == 1)
    return success();
  SmallVector<int64_t> strides(rhs.getRank(), 1);
  for (int64_t i = rhs.getRank() - 1; i-- > 0;)
    strides[i] = strides[i + 1] * rhs.getDimSize(i + 1);
  ArrayRef<int64_t> dims = op.getRhsDims();
  MatrixView view;
  view.k = rhs.getDimSize(dims[dims.size() - 2]);
  view.n = rhs.getDimSize(dims.back());
  view.kStride = strides[dims[dims.size() - 2]];
  view.nStride = strides[dims.back()];
  view.batchOffsets = {0};
  std::vector<int64_t> shape;
  for (int64_t i = 0; batched && i < batchRank; ++i) {
    SmallVector<int64_t> next;
    for (int64_t base : view.batchOffsets)
      for (int64_t x = 0; x < rhs.getDimSize(dims[i]); ++x)
        next.push_back(base + x * strides[dims[i]]);
    view.batchOffsets = next;
    shape.push_back(rhs.getDimSize(dims[i]));
  }
  view.batch = view.batchOffsets.size();
  const int64_t m = acc.getDimSize(op.getResultDims()[batchRank]);
  const std::optional<int64_t> rows = ShapedType::isDynamic(m) ? std::nullopt : std::optional(m);
  const KernelPlan plan = KernelPlan::of(op);
  bool bytes = false;
  FailureOr<OperandFormat> format = groupedFormat(op, acc.getElementType(), bytes);
  if (failed(format))
    return failure();
  if (format->kind == OperandFormat::Kind::Bytes && target.amxInt8 && chooseSpecial(op, "tiles", whyNotByteTiles(op, target, bytes))) {
    if (failed(packTiles(op, view, amxLayout(op), shape)))
      return failure();
    op.setRhsDims(llvm::to_vector(llvm::seq<int64_t>(0, shape.size() + 3)));
    return success();
  }
  TileShape tile = chooseTile(tileTarget(target, *format), acc.getElementType(), rows, view.n, plan);
  auto lhs = cast<RankedTensorType>(op.getLhs().getType());
  const ProductTypes types = {lhs.getElementType(), rhs.getElementType(), acc.getElementType()};
  if (!op.getBf16() && !plan.vecs && lhs.getShape().back() == view.k &&
      op.getLhsDims().back() == lhs.getRank() - 1) // steps side by side on the left too
    chooseSpecial(op, "few-columns", whyNotFewColumns(target, types, rows, view.n, view.k, /*padded=*/true, tile));
  bool done = false;
  if (!op.getBf16() && lhs.hasStaticShape() && tile.steps == 1 && !batched && op.getLhsDims().back() == lhs.getRank() - 1)
    if (failed(tryStrassen(op, m, view, done)))
      return failure();
  if (done)
    return success();
  int64_t panel = tile.columns();
  if (format->isGrouped()) {
    const std::vector<int64_t> outer = [&] {
      std::vector<int64_t> all = shape;
      all.push_back(llvm::divideCeil(view.n, panel));
      return all;
    }();
    if (failed(packGrouped(op, view, {view.k, 1, format->paddedDepth(view.k)}, panel, *format, bytes, outer)))
      return failure();
    op.setLayoutAttr(PanelsAttr::get(op.getContext(), panel, format->group()));
    op.setRhsDims(llvm::to_vector(llvm::seq<int64_t>(0, outer.size() + 2)));
    return success();
  }
  shape.insert(shape.end(),
               {int64_t(llvm::divideCeil(view.n, panel)), int64_t(llvm::alignTo(view.k, tile.steps)), panel});
  if (failed(replace(op, view, panel, shape, tile.steps)))
    return failure();
  op.setLayoutAttr(PanelsAttr::get(op.getContext(), panel, tile.steps));
  op.setRhsDims(llvm::to_vector(llvm::seq<int64_t>(0, shape.size())));
  return success();
}

LogicalResult Packer::tryStrassen(kernel::DotOp op, int64_t rows, const MatrixView &view, bool &done) {
  // the rows of a tile stand for pairs
  const KernelPlan plan = KernelPlan::of(op);
  const TileShape tile =
      chooseTile(target, op.getAccType().getElementType(), llvm::divideCeil(rows, 2), view.n, plan);
  const int64_t width = tile.columns();
  auto f32 = [](Type t) { return getElementTypeOrSelf(t).isF32(); };
  WhyNot why = WhyNot::none();
  if (options.exact || !isa<FloatType>(op.getAccType().getElementType()))
    why = WhyNot::notMeant("exact results are asked for, or sums are of integers");
  else if (!paysStrassen(target, rows, view.n, view.k, tile))
    why = WhyNot::notMeant("it is estimated to be no faster");
  else if (!f32(op.getLhs().getType()) || !f32(op.getRhs().getType()) || !f32(op.getAccType()))
    why = WhyNot::lacks("operands or sums are not f32");
  if (!why.takes()) {
    chooseSpecial(op, "strassen", why);
    return success();
  }
  FailureOr<Tensor> tensor = hlo::readConstant(constantBehind(op.getRhs()).getValue());
  if (failed(tensor))
    return op->emitOpError("constant operand cannot be read");
  const float *data = tensor->data<float>();
  const int64_t sum = strassenSum(view.k), depth = strassenDepth(target, plan, rows, view.n, sum, width);
  if (sampleStrassenError(sum, view.n, depth, width, [&](int64_t k, int64_t n) {
        return k < view.k ? data[k * view.kStride + n * view.nStride] : 0;
      }) > winogradErrorLimit) {
    chooseSpecial(op, "strassen", WhyNot::notMeant("the right operand would lose too much accuracy"));
    return success();
  }
  const int64_t group = strassenGroup(target, rows, view.n, sum, width, depth);
  const std::vector<int64_t> shape = {int64_t(llvm::divideCeil(view.n, width)), sum, width};
  std::string key;
  llvm::raw_string_ostream(key) << "strassen " << view.k << ' ' << view.n << ' ' << view.kStride << ' '
                                << width << ' ' << depth << ' ' << group;
  if (failed(replace(
          op, key, [&](const Tensor &from) { return packStrassen(from, view, width, depth, group, shape); })))
    return failure();
  chooseSpecial(op, "strassen", why);
  op.setLayoutAttr(StrassenAttr::get(op.getContext(), width));
  op.setRhsDims({0, 1, 2});
  done = true;
  ++statistics.strassen;
  return success();
}

WinogradChoice Packer::planned(kernel::ConvOp op, const Tensor &filter) {
  const KernelPlan plan = KernelPlan::of(op);
  WinogradChoice choice;
  if (plan.winograd && !*plan.winograd) {
    choice.refusal = WinogradRefusal::NotFaster;
    return choice;
  }
  // a tile of other windows says nothing
  if (!plan.winograd || !WinogradSizes::of(op).tile(*plan.winograd).isKnown())
    return chooseWinograd(op, filter, target);
  const bool integers = WinogradSizes::of(op).integers;
  if (!integers && sampleWinogradError(filter, *plan.winograd) > winogradErrorLimit) {
    choice.refusal = WinogradRefusal::Inexact;
    return choice;
  }
  choice = chooseWinograd(op, filter, target, *plan.winograd);
  if (!choice.plan || (!plan.vecs && !plan.perUnit))
    return choice;
  const int64_t lanes = target.lanes(op.getAccType().getElementType());
  const int64_t panel = plan.vecs ? *plan.vecs * lanes : choice.plan->panel;
  const int64_t panels = llvm::divideCeil(op.getAccType().getShape().back(), panel);
  int64_t perUnit = plan.perUnit.value_or(panel == choice.plan->panel ? choice.plan->panelsPerUnit : 1);
  if (panels % perUnit)
    perUnit = 1;
  choice.plan = planWinograd(target, WinogradSizes::of(op), *plan.winograd, panel, perUnit);
  return choice;
}

LogicalResult Packer::tryWinograd(kernel::ConvOp op, bool &done) {
  WinogradChoice choice;
  hlo::ConstantOp constant = constantBehind(op.getFilter());
  auto type = cast<RankedTensorType>(op.getFilter().getType());
  const bool integers = isa<IntegerType>(op.getAccType().getElementType());
  if (options.exact && !integers) {
    choice.refusal = WinogradRefusal::Exact;
  } else if (choice.refusal = whyNoWinogradWindow(op); choice.refusal != WinogradRefusal::None) {
    // without reading the filter
  } else {
    FailureOr<Tensor> filter = hlo::readConstant(constant.getValue());
    if (failed(filter))
      return op->emitOpError("constant operand cannot be read");
    choice = planned(op, filter->reshaped({type.getShape().begin(), type.getShape().end()}));
  }
  done = choice.plan.has_value();
  // a window of other floats is one that the algorithm would do faster
  const bool types = choice.refusal == WinogradRefusal::Types;
  chooseSpecial(op, "winograd", done ? WhyNot::none() : types ? WhyNot::lacks("operands are not f32") : WhyNot::notMeant(describe(choice.refusal)));
  if (!done) {
    ++statistics.refused[static_cast<unsigned>(choice.refusal)];
    if (options.explain)
      op->emitRemark() << "no Winograd: " << describe(choice.refusal);
    return success();
  }
  const WinogradPlan &plan = *choice.plan;
  std::string key = ("winograd " + Twine(plan.tile) + " " + Twine(plan.panel) + " " + Twine(plan.panelsPerUnit)).str();
  if (failed(replace(op, key, [&](const Tensor &from) {
        const Tensor filter = from.reshaped({type.getShape().begin(), type.getShape().end()});
        return integers ? transformIntegerFilter(filter, plan) : transformFilter(filter, plan);
      })))
    return failure();
  op.setLayoutAttr(WinogradAttr::get(op.getContext(), plan.tile, plan.panel));
  op.setKernelShape(type.getShape().take_front(2));
  ++statistics.winograd;
  return success();
}

LogicalResult Packer::packConv(kernel::ConvOp op) {
  auto filter = cast<RankedTensorType>(op.getFilter().getType());
  RankedTensorType acc = op.getAccType();
  if (op.getLayout() || chooseSpecial(op, "narrow-groups", whyNotNarrowGroups(op, target)) || !constantBehind(op.getFilter()))
    return success();
  int64_t rank = filter.getRank(), groups = op.getGroups() * op.getBatchGroups();
  if (!filter.hasStaticShape() || filter.getNumElements() == 0 || target.lanes(acc.getElementType()) == 1 ||
      filter.getDimSize(rank - 1) % groups)
    return success();
  bool done = false;
  if (failed(tryWinograd(op, done)))
    return failure();
  if (done)
    return success();
  double share = 1;
  const WhyNot why = options.exact ? WhyNot::notMeant("exact results are asked for") : whyNotSpread(op, target, share);
  if (chooseSpecial(op, "spread", why))
    return packSpread(op);
  int64_t oc = filter.getDimSize(rank - 1);
  std::vector<int64_t> taps(filter.getShape().begin(), filter.getShape().end() - 2);
  MatrixView view;
  view.batch = groups;
  view.k = filter.getNumElements() / oc;
  view.n = oc / groups;
  view.kStride = oc;
  for (int64_t g = 0; g < groups; ++g)
    view.batchOffsets.push_back(g * view.n);
  const std::optional<int64_t> rows = rowsOfTiles(op);
  bool bytes = false;
  FailureOr<OperandFormat> format = groupedFormat(op, acc.getElementType(), bytes);
  if (failed(format))
    return failure();
  if (format->kind == OperandFormat::Kind::Bytes && target.amxInt8 && chooseSpecial(op, "tiles", whyNotByteTiles(op, target, bytes))) {
    if (failed(packTiles(op, view, amxLayout(op), {groups})))
      return failure();
    op.setKernelShape(taps);
    return success();
  }
  const ConvRuns runs = convRuns(op);
  if (format->isGrouped() && !runs.isStatic)
    return success(); // the plain loops need no packing
  int64_t panel = chooseTile(tileTarget(target, *format), acc.getElementType(), rows, view.n, KernelPlan::of(op)).columns();
  if (format->isGrouped()) {
    if (failed(packGrouped(op, view, {runs.run, runs.runs, format->paddedDepth(runs.run)}, panel, *format, bytes, {groups, int64_t(llvm::divideCeil(view.n, panel))})))
      return failure();
    op.setLayoutAttr(PanelsAttr::get(op.getContext(), panel, format->group()));
    op.setKernelShape(taps);
    return success();
  }
  if (failed(replace(op, view, panel, {groups, int64_t(llvm::divideCeil(view.n, panel)), view.k, panel})))
    return failure();
  op.setLayoutAttr(PanelsAttr::get(op.getContext(), panel, 1));
  op.setKernelShape(taps);
  return success();
}

LogicalResult Packer::packSpread(kernel::ConvOp op) {
  auto filter = cast<RankedTensorType>(op.getFilter().getType());
  const int64_t rank = filter.getRank(), oc = filter.getDimSize(rank - 1), ic = filter.getDimSize(rank - 2), width = filter.getDimSize(rank - 3);
  const int64_t outer = filter.getNumElements() / (oc * ic * width);
  const int64_t panel = llvm::alignTo(width * oc, target.lanes(op.getAccType().getElementType()));
  SmallVector<int64_t> taps(filter.getShape().drop_back(2));
  auto make = [&](const Tensor &from) {
    Tensor to = Tensor::allocate(DType::Float32, {1, 1, outer * ic, panel});
    const float *in = from.data<float>();
    float *out = to.data<float>();
    std::fill_n(out, to.numElements(), 0.f);
    for (int64_t y = 0; y < outer; ++y)
      for (int64_t x = 0; x < width; ++x)
        for (int64_t c = 0; c < ic; ++c)
          std::copy_n(in + ((y * width + x) * ic + c) * oc, oc, out + (y * ic + c) * panel + x * oc);
    return to;
  };
  if (failed(replace(op, ("spread " + Twine(panel)).str(), make)))
    return failure();
  op.setLayoutAttr(SpreadAttr::get(op.getContext(), panel));
  op.setKernelShape(taps);
  return success();
}

struct PackWeights : impl::PackWeightsBase<PackWeights> {
  using PackWeightsBase::PackWeightsBase;
  void runOnOperation() override {
    FailureOr<ModuleTarget> target = cpuTargetOf(getOperation());
    if (failed(target))
      return signalPassFailure();
    FailureOr<PackStatistics> n = packWeights(getOperation(), target->kernels, {target->processor.exact, explain, release});
    if (failed(n))
      return signalPassFailure();
    numPacked += n->packed;
    numWinograd += n->winograd;
    numStrassen += n->strassen;
    auto refused = [&](WinogradRefusal r) { return n->refused[static_cast<unsigned>(r)]; };
    refusedExact += refused(WinogradRefusal::Exact);
    refusedNotFaster += refused(WinogradRefusal::NotFaster);
    refusedInexact += refused(WinogradRefusal::Inexact);
  }
};

} // namespace

FailureOr<PackStatistics> packWeights(ModuleOp module, const KernelTarget &target, const PackOptions &options) {
  Packer packer(target, options);
  if (options.release)
    module.walk([&](hlo::ConstantOp c) {
      if (auto resource = dyn_cast<DenseResourceElementsAttr>(c.getValue()))
        ++packer.holders[resource.getRawHandle().getBlob()];
    });
  SmallVector<hlo::ConstantOp> constants;
  WalkResult r = module.walk([&](Operation *op) {
    LogicalResult ok = success();
    if (auto dot = dyn_cast<kernel::DotOp>(op))
      ok = packer.packDot(dot);
    else if (auto conv = dyn_cast<kernel::ConvOp>(op))
      ok = packer.packConv(conv);
    else if (auto c = dyn_cast<hlo::ConstantOp>(op))
      constants.push_back(c);
    return failed(ok) ? WalkResult::interrupt() : WalkResult::advance();
  });
  if (r.wasInterrupted())
    return failure();
  narrowConstants(module);
  // views of constants first, then the constants nobody reads any more
  for (hlo::ConstantOp c : constants) {
    for (Operation *user : llvm::make_early_inc_range(c->getUsers()))
      if (isa<hlo::ReshapeOp>(user) && user->use_empty())
        user->erase();
    if (c->use_empty())
      c->erase();
  }
  return packer.statistics;
}

void registerCodegenCpuPhase() { registerCodegenCpuPasses(); }

} // namespace lathe::cpu
