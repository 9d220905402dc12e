// Products whose operands are read as [batch..., lines, depth] in whatever order their dimensions lie.
#include "dialects/hlo/Hlo.h"
#include "dialects/hlo/Shape.h"
#include "passes/codegen/nvptx/Product.h"
#include "passes/codegen/nvptx/Tile.h"

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
  if (!plain::foreignForm(op).empty())
    return "prepared for another backend";
  const codegen::Contraction &c = roles.what;
  Type sum = sumTypeOf(c.result);
  if (!(sum.isF32() || sum.isF64() || (isa<IntegerType>(sum) && llvm::is_contained({32u, 64u}, sum.getIntOrFloatBitWidth()))))
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

TileOperand denseOperand(KernelBuilder &b, RankedTensorType type, int64_t line, int64_t depth, Value pointer, Value base, Type sum) {
  TileOperand operand;
  const int64_t last = type.getRank() - 1, inner = type.getDimSize(last);
  operand.alongDepth = line != last;
  const int64_t most = 16 / codegen::elemBytes(sum);
  if ((line == last || depth == last) && inner > 0 && inner % most == 0)
    operand.vector = most;
  SmallVector<Value> strides = stridesOf(b, type);
  Type element = type.getElementType();
  auto starts = std::make_shared<SmallVector<Value>>();
  operand.begin = [&b, starts, base, stride = strides[line]](int64_t slot, Value at) {
    starts->resize(slot + 1);
    (*starts)[slot] = b.add(base, b.mul(at, stride));
  };
  operand.load = [&b, starts, pointer, stride = strides[depth], element, sum, lanes = operand.vector](int64_t slot, Value, Value k) {
    Value index = b.add((*starts)[slot], b.mul(k, stride));
    const unsigned align = lanes * codegen::elemBytes(element);
    return codegen::emitConvert(b, loadAligned(b, element, pointer, index, lanes, align), element, sum);
  };
  return operand;
}

Value batchBase(KernelBuilder &b, RankedTensorType type, ArrayRef<int64_t> dims, ArrayRef<int64_t> batch, ArrayRef<Value> index) {
  SmallVector<Value> strides = stridesOf(b, type);
  Value base = b.i64(0);
  for (auto [i, d] : llvm::enumerate(batch))
    if (dims[d] >= 0)
      base = b.add(base, b.mul(index[i], strides[dims[d]]));
  return base;
}

LogicalResult emitProduct(Operation *op, KernelBuilder &b) {
  const Roles roles = *rolesOf(op);
  const codegen::Contraction &c = roles.what;
  plain::Elements elements = plain::bindOperands(op, b);
  Value accumulator = kernel::hasCore(op) ? Value(op->getRegion(0).getArgument(0)) : op->getResult(0);
  RankedTensorType out = hlo::tensorType(accumulator);
  const SmallVector<AffineExpr> sizes = hlo::getDims(out);
  const SmallVector<Value> dims = b.dims(out);
  TileProduct p;
  p.sum = sumTypeOf(c.result);
  int64_t batch = 1;
  AffineExpr units = b.getAffineConstantExpr(1);
  for (int64_t d : roles.batch) {
    units = units * sizes[d];
    batch *= out.isDynamicDim(d) ? 1 : out.getDimSize(d);
  }
  auto known = [&](int64_t d) { return out.isDynamicDim(d) ? -1 : out.getDimSize(d); };
  const TileShape shape = chooseTile(known(roles.row), known(roles.column), std::max<int64_t>(0, roles.depth()), batch, p.sum);
  AffineExpr down = sizes[roles.row].ceilDiv(shape.rows), across = sizes[roles.column].ceilDiv(shape.columns);
  b.setWork(shape.rows * shape.columns * 64);

  BlockFrame frame(b, shape.threads());
  frame.setBlocks(units * down * across);
  SmallVector<Value> counts;
  for (int64_t d : roles.batch)
    counts.push_back(dims[d]);
  counts.append({b.dim(down), b.dim(across)});
  SmallVector<Value> place = b.delinearize(frame.block(), counts);
  ArrayRef<Value> entry = ArrayRef<Value>(place).drop_back(2);
  p.tileRow = place[place.size() - 2];
  p.tileColumn = place.back();
  p.rows = dims[roles.row];
  p.columns = dims[roles.column];
  p.depth = b.dims(c.lhs)[c.summed[0].first];
  p.rowsInner = roles.row == out.getRank() - 1;
  p.lhs = denseOperand(b, c.lhs, c.lhsDims[roles.row], c.summed[0].first, b.operands[0],
                       batchBase(b, c.lhs, c.lhsDims, roles.batch, entry), p.sum);
  p.rhs = denseOperand(b, c.rhs, c.rhsDims[roles.column], c.summed[0].second, b.operands[1],
                       batchBase(b, c.rhs, c.rhsDims, roles.batch, entry), p.sum);
  p.store = [&](Value row, Value column, Value sum) -> LogicalResult {
    SmallVector<Value> index(out.getRank());
    for (auto [i, d] : llvm::enumerate(roles.batch))
      index[d] = entry[i];
    index[roles.row] = row;
    index[roles.column] = column;
    return storeResults(b, elements, accumulator, index, codegen::emitConvert(b, sum, p.sum, c.result));
  };
  return emitTile(frame, shape, p);
}

} // namespace lathe::nvptx
