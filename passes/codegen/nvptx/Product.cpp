// Products whose operands are read as [batch..., lines, depth] in whatever order their dimensions lie.
#include "passes/codegen/nvptx/Product.h"
#include "dialects/hlo/Hlo.h"
#include "dialects/hlo/Shape.h"
#include "passes/codegen/nvptx/MmaTile.h"
#include "passes/codegen/nvptx/WgmmaTile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace lathe::nvptx {

using codegen::KernelBuilder;

std::optional<Roles> rolesOf(Operation *op) {
  Roles roles;
  if (auto dot = dyn_cast<kernel::DotOp>(op)) {
    roles.what = plain::contractionOf(dot);
    ArrayRef<int64_t> out = dot.getResultDims();
    roles.batch.assign(out.begin(), out.end() - 2);
    roles.row = out[out.size() - 2];
    roles.column = out.back();
    return roles;
  }
  if (!isa<hlo::DotOp, hlo::DotGeneralOp>(op))
    return std::nullopt;
  roles.what = codegen::contractionOf(op);
  for (size_t i = 0; i < roles.what.lhsDims.size(); ++i) {
    const bool left = roles.what.lhsDims[i] >= 0, right = roles.what.rhsDims[i] >= 0;
    if (left && right) {
      roles.batch.push_back(i);
      continue;
    }
    int64_t &role = left ? roles.row : roles.column;
    if (role >= 0)
      return std::nullopt;
    role = i;
  }
  if (roles.row < 0 || roles.column < 0 || roles.what.summed.size() != 1)
    return std::nullopt;
  return roles;
}

Type sumTypeOf(Type result) {
  const bool narrow = isa<FloatType>(result) && result.getIntOrFloatBitWidth() < 32;
  return narrow ? Type(Float32Type::get(result.getContext())) : result;
}

static bool isScalarNumber(Type type) {
  return isa<FloatType>(type) || (isa<IntegerType>(type) && type.getIntOrFloatBitWidth() >= 8);
}

std::string whyNoSums(Operation *op, const Roles &roles) {
  const codegen::Contraction &c = roles.what;
  Type sum = sumTypeOf(c.result);
  if (!(sum.isF32() || sum.isF64() ||
        (isa<IntegerType>(sum) && llvm::is_contained({32u, 64u}, sum.getIntOrFloatBitWidth()))))
    return "sums of another type than f32, f64, i32 and i64";
  if (!isScalarNumber(c.lhs.getElementType()) || !isScalarNumber(c.rhs.getElementType()))
    return "operands that are no numbers";
  return whyNoEpilogue(op);
}

int64_t Roles::rows() const { return what.lhs.getDimSize(what.lhsDims[row]); }
int64_t Roles::columns() const { return what.rhs.getDimSize(what.rhsDims[column]); }
int64_t Roles::depth() const { return what.lhs.getDimSize(what.summed[0].first); }

std::string whyNoProduct(Operation *op) {
  std::optional<Roles> roles = rolesOf(op);
  if (!roles)
    return "no product of matrices";
  if (isBelow(roles->rows(), 8) || isBelow(roles->columns(), 8))
    return "fewer than 8 rows or columns";
  if (isBelow(roles->depth(), 8))
    return "a depth below 8";
  return whyNoSums(op, *roles);
}

SmallVector<Value> stridesOf(KernelBuilder &b, RankedTensorType type) {
  SmallVector<Value> dims = b.dims(type), strides(dims.size());
  Value at = b.i64(1);
  for (size_t i = dims.size(); i-- > 0;) {
    strides[i] = at;
    at = b.mul(at, dims[i]);
  }
  return strides;
}

TileOperand denseOperand(KernelBuilder &b, RankedTensorType type, int64_t line, int64_t depth, Value pointer,
                         Value base, int64_t widest) {
  TileOperand operand;
  const int64_t last = type.getRank() - 1;
  operand.pointer = pointer;
  operand.element = type.getElementType();
  operand.alongDepth = line != last;
  if (line == last || depth == last)
    operand.vector = widestVector(type.getDimSize(last), operand.element, widest);
  SmallVector<Value> strides = stridesOf(b, type);
  auto starts = std::make_shared<SmallVector<Value>>();
  operand.begin = [&b, starts, base, stride = strides[line]](int64_t slot, Value at) {
    starts->resize(slot + 1);
    (*starts)[slot] = b.add(base, b.mul(at, stride));
  };
  operand.at = [&b, starts, stride = strides[depth]](int64_t slot, Value first, Value k) -> TilePlace {
    return {b.add(b.add((*starts)[slot], b.mul(k, stride)), b.mul(first, stride)), {}};
  };
  return operand;
}

Value batchBase(KernelBuilder &b, RankedTensorType type, ArrayRef<int64_t> dims, ArrayRef<int64_t> batch,
                ArrayRef<Value> index) {
  SmallVector<Value> strides = stridesOf(b, type);
  Value base = b.i64(0);
  for (auto [i, d] : llvm::enumerate(batch))
    if (dims[d] >= 0)
      base = b.add(base, b.mul(index[i], strides[dims[d]]));
  return base;
}

/// The product before its epilogue.
static Value accumulatorOf(Operation *op) {
  return kernel::hasCore(op) ? Value(op->getRegion(0).getArgument(0)) : op->getResult(0);
}

/// Matrices of a batch, as far as that is known.
static int64_t batchOf(RankedTensorType out, const Roles &roles) {
  int64_t count = 1;
  for (int64_t d : roles.batch)
    count *= out.isDynamicDim(d) ? 1 : out.getDimSize(d);
  return count;
}

namespace {

/// A product whose tile is still to be chosen, and the reader of its epilogue.
class DenseProduct {
public:
  DenseProduct(Operation *op, KernelBuilder &b)
      : b(b), roles(*rolesOf(op)), op(op), elements(plain::bindOperands(op, b)),
        accumulator(accumulatorOf(op)), out(hlo::tensorType(accumulator)), dims(b.dims(out)) {
    p.sum = sumTypeOf(roles.what.result);
    if (roles.column == out.getRank() - 1 && codegen::elemBytes(p.sum) == 4)
      p.lanes = storedLanes(op, accumulator);
  }

  // ShapedType::kDynamic where they are known at run time only
  int64_t rows() const { return out.getDimSize(roles.row); }
  int64_t columns() const { return out.getDimSize(roles.column); }
  int64_t batch() const { return batchOf(out, roles); }
  /// Numbers the blocks, a tile each, and describes the one of this block. `widest`: bytes of an access to an
  /// operand of this type. `launchedColumns`: of the tiles that there are blocks for, where those are others.
  const TileProduct &describe(BlockFrame &frame, int64_t tileRows, int64_t tileColumns,
                              llvm::function_ref<int64_t(Type)> widest, int64_t launchedColumns = 0);

  KernelBuilder &b;
  const Roles roles;
  TileProduct p;
  Value tiles; ///< how many there are, once one is described

private:
  Operation *op;
  plain::Elements elements;
  Value accumulator;
  RankedTensorType out;
  SmallVector<Value> dims, entry; ///< entry: of the batch
};

} // namespace

const TileProduct &DenseProduct::describe(BlockFrame &frame, int64_t tileRows, int64_t tileColumns,
                                          llvm::function_ref<int64_t(Type)> widest, int64_t launchedColumns) {
  const codegen::Contraction &c = roles.what;
  const SmallVector<AffineExpr> sizes = hlo::getDims(out);
  AffineExpr units = b.getAffineConstantExpr(1);
  SmallVector<Value> counts;
  for (int64_t d : roles.batch) {
    units = units * sizes[d];
    counts.push_back(dims[d]);
  }
  AffineExpr down = sizes[roles.row].ceilDiv(tileRows), across = sizes[roles.column].ceilDiv(tileColumns);
  frame.setBlocks(units * down * (launchedColumns ? sizes[roles.column].ceilDiv(launchedColumns) : across));
  tiles = b.dim(units * down * across);
  counts.append({b.dim(down), b.dim(across)});
  entry = b.delinearize(frame.block(), counts);
  p.tileColumn = entry.pop_back_val();
  p.tileRow = entry.pop_back_val();
  p.rows = dims[roles.row];
  p.columns = dims[roles.column];
  p.depth = b.dims(c.lhs)[c.summed[0].first];
  p.rowsInner = roles.row == out.getRank() - 1;
  p.lhs = denseOperand(b, c.lhs, c.lhsDims[roles.row], c.summed[0].first, b.operands[0],
                       batchBase(b, c.lhs, c.lhsDims, roles.batch, entry), widest(c.lhs.getElementType()));
  p.rhs = denseOperand(b, c.rhs, c.rhsDims[roles.column], c.summed[0].second, b.operands[1],
                       batchBase(b, c.rhs, c.rhsDims, roles.batch, entry), widest(c.rhs.getElementType()));
  p.store = [this](Value row, Value column, Value sum) -> LogicalResult {
    SmallVector<Value> index(out.getRank());
    for (auto [i, d] : llvm::enumerate(roles.batch))
      index[d] = entry[i];
    index[roles.row] = row;
    index[roles.column] = column;
    sum = codegen::emitConvert(b, sum, p.sum, roles.what.result);
    if (p.lanes == 1)
      return storeResults(b, elements, accumulator, index, sum);
    storeConverted(b, op, accumulator, b.linearize(index, dims), sum);
    return success();
  };
  return p;
}

LogicalResult emitProduct(Operation *op, KernelBuilder &b) {
  DenseProduct product(op, b);
  const TileShape shape =
      chooseTile(product.rows(), product.columns(), std::max<int64_t>(0, product.roles.depth()),
                 product.batch(), product.p.sum);
  b.setWork(shape.rows * shape.columns * 64);
  BlockFrame frame(b, shape.threads());
  return emitTile(frame, shape, product.describe(frame, shape.rows, shape.columns, [&](Type element) {
    return 16 / codegen::elemBytes(product.p.sum) * codegen::elemBytes(element);
  }));
}

std::string whyNoMmaProduct(Operation *op) {
  if (std::string why = whyNoProduct(op); !why.empty())
    return why;
  const codegen::Contraction c = rolesOf(op)->what;
  MmaKind kind;
  return chooseMmaKind(op, c.lhs.getElementType(), c.rhs.getElementType(), sumTypeOf(c.result), kind);
}

static MmaPlan mmaPlan(Operation *op, const codegen::Contraction &c, int64_t rows, int64_t columns, int64_t depth, int64_t batch) {
  const bool wide = llvm::all_of(ArrayRef{c.lhs, c.rhs}, [](RankedTensorType type) {
    return widestVector(type.getShape().back(), type.getElementType(), 16) > 2;
  });
  return MmaPlan(op, c.lhs.getElementType(), c.rhs.getElementType(), sumTypeOf(c.result), rows, columns, depth, batch, wide);
}

LogicalResult emitMmaProduct(Operation *op, KernelBuilder &b) {
  DenseProduct product(op, b);
  const MmaPlan mma = mmaPlan(op, product.roles.what, product.rows(), product.columns(), product.roles.depth(), product.batch());
  b.setWork(mma.shape.rows * mma.shape.columns * 16);
  BlockFrame frame(b, mma.shape.threads());
  auto widest = [&](Type element) { return mmaAccess(mma.kind, element); };
  return emitMmaTile(frame, mma.kind, mma.shape, product.describe(frame, mma.shape.rows, mma.shape.columns, widest));
}

std::string whyNoWgmmaProduct(Operation *op) {
  if (std::string why = whyNoMmaProduct(op); !why.empty())
    return why;
  const Roles roles = *rolesOf(op);
  const codegen::Contraction &c = roles.what;
  const RankedTensorType out = hlo::tensorType(accumulatorOf(op));
  const MmaPlan mma = mmaPlan(op, c, out.getDimSize(roles.row), out.getDimSize(roles.column), roles.depth(), batchOf(out, roles));
  return whyNoWgmmaTile(mma.kind, mma.shape, mma.wide);
}

LogicalResult emitWgmmaProduct(Operation *op, KernelBuilder &b) {
  DenseProduct product(op, b);
  const MmaPlan mma = mmaPlan(op, product.roles.what, product.rows(), product.columns(), product.roles.depth(), product.batch());
  const codegen::Contraction &c = product.roles.what;
  auto isCopied = [&](RankedTensorType type, int64_t depth) {
    return isWgmmaCopied(mma.kind, type.getElementType(), depth == type.getRank() - 1);
  };
  const bool copied = isCopied(c.lhs, c.summed[0].first) && isCopied(c.rhs, c.summed[0].second);
  const WgmmaShape shape = chooseWgmmaShape(mma.kind, mma.shape, copied, product.rows(), product.columns(), product.batch());
  b.setWork(mma.shape.rows * mma.shape.columns * 16);
  BlockFrame frame(b, mma.shape.threads());
  auto widest = [&](Type element) { return mmaAccess(mma.kind, element); };
  const TileProduct &p = product.describe(frame, shape.rows, shape.columns, widest, mma.shape.columns);
  if (shape.columns == mma.shape.columns)
    return emitWgmmaTile(frame, mma.kind, shape, p);
  LogicalResult ok = success();
  b.ifThen(b.lt(frame.block(), product.tiles), [&] { ok = emitWgmmaTile(frame, mma.kind, shape, p); });
  return ok;
}

} // namespace lathe::nvptx
