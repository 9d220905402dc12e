// kernel.chain: for each strip of result rows the product's rows that it needs, to scratch, then the strip.
#include "passes/codegen/cpu/Chain.h"

#include "dialects/hlo/Hlo.h"
#include "dialects/hlo/Shape.h"
#include "passes/codegen/cpu/Product.h"

#include "mlir/IR/BuiltinAttributes.h"

using namespace mlir;

namespace lathe::cpu {
namespace {

/// The product on `count` rows, on values of a block that belongs to nothing.
class StripProduct {
public:
  StripProduct(kernel::DotOp whole, int64_t count) : dot(whole.clone()) {
    auto lhs = cast<RankedTensorType>(whole.getLhs().getType());
    SmallVector<Value> operands;
    for (Value v : whole->getOperands())
      operands.push_back(values.addArgument(v.getType(), v.getLoc()));
    operands[0].setType(resized(lhs, count));
    dot->setOperands(operands);
    RankedTensorType acc = whole.getAccType();
    auto resize = [&](Value v) {
      if (auto type = cast<RankedTensorType>(v.getType()); type.getShape() == acc.getShape())
        v.setType(resized(type, count));
    };
    resize(dot->getResult(0));
    resize(dot.getAcc());
    for (Operation &op : dot.getBody().front()) {
      llvm::for_each(op.getResults(), resize);
      if (auto constant = dyn_cast<hlo::ConstantOp>(op))
        if (auto splat = dyn_cast<DenseElementsAttr>(constant.getValue()); splat && splat.isSplat())
          constant->setAttr("value", splat.resizeSplat(cast<ShapedType>(constant.getType())));
    }
  }
  ~StripProduct() { dot->destroy(); }
  StripProduct(const StripProduct &) = delete;
  kernel::DotOp dot;

private:
  static RankedTensorType resized(RankedTensorType type, int64_t rows) {
    return RankedTensorType::get({rows, type.getDimSize(1)}, type.getElementType());
  }
  Block values;
};

int64_t attributeOf(func::FuncOp func, StringRef name) {
  if (auto map = func->getAttrOfType<AffineMapAttr>(name))
    return hlo::constantValue(map.getValue().getResult(0)).value_or(0);
  auto value = func->getAttrOfType<IntegerAttr>(name);
  return value ? value.getInt() : 0;
}

} // namespace

int64_t inputRows(kernel::DepthwiseConvOp conv, int64_t rows) {
  const int64_t taps = cast<RankedTensorType>(conv.getFilter().getType()).getDimSize(0);
  const int64_t wanted = (rows - 1) * conv.getStrides()[0] + (taps - 1) * conv.getRhsDilation()[0] + 1;
  return std::min(wanted, cast<RankedTensorType>(conv.getInput().getType()).getDimSize(1));
}

LogicalResult emitChain(kernel::ChainOp op, KernelBuilder &b) {
  kernel::DotOp whole = op.getDot();
  kernel::DepthwiseConvOp conv = op.getConv();
  auto images = cast<RankedTensorType>(conv.getInput().getType());
  const int64_t height = images.getDimSize(1), width = images.getDimSize(2), channels = images.getDimSize(3);
  const int64_t outHeight = conv.getAccType().getDimSize(1), rows = op.getRows(), strips = llvm::divideCeil(outHeight, rows);
  const int64_t computed = inputRows(conv, rows), depth = cast<RankedTensorType>(whole.getLhs().getType()).getDimSize(1);
  const int64_t stripBytes = llvm::alignTo(computed * width * channels * elemBytes(images.getElementType()), 64);
  if (images.getNumElements() == 0 || conv.getAccType().getNumElements() == 0)
    return op.emitOpError("of nothing");

  const SmallVector<Value> operands(b.operands), results(b.results);
  const Value begin = b.begin, end = b.end, scratch = b.scratch;
  auto pointersOf = [&](ValueRange values) {
    SmallVector<Value> pointers;
    for (Value v : values)
      pointers.push_back(operands[cast<BlockArgument>(v).getArgNumber()]);
    return pointers;
  };
  StripProduct strip(whole, computed * width);
  LogicalResult ok = success();
  int64_t work = 0, innerScratch = 0;
  b.loop(begin, end, [&](Value unit) {
    Value image = b.divU(unit, b.i64(strips)), row = b.mul(b.remU(unit, b.i64(strips)), b.i64(rows));
    // as many rows for every strip; those at the borders need fewer
    Value first = b.sub(b.mul(row, b.i64(conv.getStrides()[0])), b.i64(conv.getPadding()[0]));
    first = b.max(b.i64(0), b.min(first, b.i64(height - computed)));
    Value pixel = b.mul(b.add(b.mul(image, b.i64(height)), first), b.i64(width));

    b.operands = pointersOf(whole->getOperands());
    b.operands[0] = b.ptrAt(b.operands[0], cast<RankedTensorType>(whole.getLhs().getType()).getElementType(), b.mul(pixel, b.i64(depth)));
    b.results = {scratch};
    b.scratch = b.ptrBytes(scratch, b.i64(stripBytes));
    b.begin = b.i64(0);
    // only known when it is emitted
    auto units = UnrealizedConversionCastOp::create(b, TypeRange{b.getI64Type()}, ValueRange{unit});
    b.end = units.getResult(0);
    ProductSpec product = dotSpec(strip.dot, b);
    product.resultRow = Value(); // rows of scratch need no fetching ahead
    Epilogue epilogue(b, strip.dot);
    ok = emitProduct(b, product, epilogue);
    if (failed(ok))
      return;
    units.replaceAllUsesWith(ValueRange{b.i64(attributeOf(b.func, "kernel.extent"))});
    units->erase();
    work += attributeOf(b.func, "kernel.extent") * attributeOf(b.func, "kernel.work");
    innerScratch = attributeOf(b.func, "kernel.scratch");

    SmallVector<Value> others = pointersOf(conv->getOperands().drop_front());
    b.operands = {scratch};
    b.operands.append(others);
    b.results = results;
    b.scratch = scratch; // which it does not use
    Value firstRow = b.add(b.mul(image, b.i64(outHeight)), row);
    b.begin = firstRow;
    b.end = b.add(firstRow, b.min(b.i64(rows), b.sub(b.i64(outHeight), row)));
    ok = emitDepthwiseRows(conv, b, b.mul(pixel, b.i64(channels)));
    work += rows * attributeOf(b.func, "kernel.work");
  });
  b.operands = operands;
  b.results = results;
  b.begin = begin;
  b.end = end;
  b.scratch = scratch;
  b.setExtent(getAffineConstantExpr(images.getDimSize(0) * strips, b.getContext()));
  b.setScratch(stripBytes + innerScratch);
  b.setWork(work);
  return ok;
}

} // namespace lathe::cpu
