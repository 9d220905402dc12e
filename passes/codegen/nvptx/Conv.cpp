// Convolutions as products: lines of the left operand are pixels of the result, its depth taps and channels, read from the images in
// place; the filter is the right operand as it lies.
#include "dialects/hlo/Hlo.h"
#include "dialects/hlo/Shape.h"
#include "passes/codegen/nvptx/Forms.h"
#include "passes/codegen/nvptx/Tile.h"
#include "passes/codegen/plain/Core.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace lathe::nvptx {

using codegen::KernelBuilder;

static bool isStaticFrom(RankedTensorType type, int64_t first) {
  return llvm::all_of(type.getShape().drop_front(first), [](int64_t d) { return d > 0; });
}

static int64_t imageElements(RankedTensorType in) {
  double count = 1;
  for (int64_t d : in.getShape().drop_front())
    count *= static_cast<double>(d);
  return static_cast<int64_t>(std::min(count, 1e18));
}

std::string whyNoConv(Operation *op) {
  auto conv = dyn_cast<kernel::ConvOp>(op);
  if (!conv)
    return "no convolution";
  if (!plain::foreignForm(op).empty())
    return "prepared for another backend";
  if (conv.getGroups() != 1 || conv.getBatchGroups() != 1)
    return "groups";
  if (llvm::any_of(conv.getLhsDilation(), [](int64_t d) { return d != 1; }))
    return "a dilated input";
  RankedTensorType in = hlo::tensorType(conv.getInput()), filter = hlo::tensorType(conv.getFilter()), out = conv.getAccType();
  for (RankedTensorType type : {in, filter})
    if (!type.getElementType().isF32() && !type.getElementType().isF16() && !type.getElementType().isBF16())
      return "operands of another type than f32, f16 and bf16";
  if (!out.getElementType().isF32())
    return "sums of another type than f32";
  if (!isStaticFrom(filter, 0) || !isStaticFrom(in, 1) || !isStaticFrom(out, 1))
    return "sizes but the batch's that are known at run time only, or none";
  if (filter.getShape().back() < 8 || filter.getNumElements() / filter.getShape().back() < 8)
    return "fewer than 8 channels of the result, or steps of a sum";
  if (imageElements(in) > (int64_t(1) << 30))
    return "images too large for offsets of 32 bits";
  int64_t pixels = 1;
  for (int64_t d : out.getShape().drop_back())
    pixels *= d == ShapedType::kDynamic ? 8 : d;
  return pixels < 8 ? "fewer than 8 pixels" : whyNoEpilogue(op);
}

namespace {

/// The images as elements [pixel of the result, tap and channel].
class Images {
public:
  Images(KernelBuilder &b, kernel::ConvOp op, Type sum);
  TileOperand operand();

private:
  void begin(int64_t slot, Value pixel);
  Value load(int64_t slot, Value k);
  Value word(int64_t v) { return b.cstI(b.getI32Type(), v); }
  Value times(Value x, int64_t n) { return n == 1 ? x : arith::MulIOp::create(b, x, word(n)).getResult(); }
  Value plus(Value x, Value y) { return arith::AddIOp::create(b, x, y); }
  bool mayLeave(size_t i) const;

  struct Pixel {
    Value base;               ///< i64, in elements: where the image begins
    SmallVector<Value> first; ///< i32: where the window begins
  };
  KernelBuilder &b;
  mutable kernel::ConvOp op;
  Type sum;
  RankedTensorType in, filter, out;
  const int64_t channels;
  int64_t vector = 1;
  SmallVector<Pixel> pixels;
};

} // namespace

Images::Images(KernelBuilder &b, kernel::ConvOp op, Type sum)
    : b(b), op(op), sum(sum), in(hlo::tensorType(op.getInput())), filter(hlo::tensorType(op.getFilter())), out(op.getAccType()),
      channels(in.getShape().back()) {
  if (channels % 4 == 0)
    vector = 4;
}

/// Whether a window may lie in part outside of the image along spatial dimension i.
bool Images::mayLeave(size_t i) const {
  const int64_t low = op.getPadding()[2 * i];
  const int64_t last = (out.getDimSize(i + 1) - 1) * op.getStrides()[i] - low + (filter.getDimSize(i) - 1) * op.getRhsDilation()[i];
  return low > 0 || last >= in.getDimSize(i + 1);
}

void Images::begin(int64_t slot, Value pixel) {
  const size_t spatial = in.getRank() - 2;
  const SmallVector<Value> sizes = b.dims(out);
  SmallVector<Value> place = b.delinearize(pixel, ArrayRef<Value>(sizes).drop_back());
  Pixel p;
  p.base = b.mul(place[0], b.i64(imageElements(in)));
  pixels.resize(std::max<size_t>(pixels.size(), slot + 1));
  for (size_t i = 0; i < spatial; ++i) {
    Value at = arith::TruncIOp::create(b, b.getI32Type(), place[i + 1]);
    p.first.push_back(plus(times(at, op.getStrides()[i]), word(-op.getPadding()[2 * i])));
  }
  pixels[slot] = p;
}

Value Images::load(int64_t slot, Value k) {
  const Pixel &p = pixels[slot];
  const size_t spatial = in.getRank() - 2;
  Value rest = arith::TruncIOp::create(b, b.getI32Type(), k);
  auto split = [&](int64_t n) { // the remainder; the quotient is left
    if (n == 1)
      return word(0);
    Value r = arith::RemUIOp::create(b, rest, word(n));
    rest = arith::DivUIOp::create(b, rest, word(n));
    return r;
  };
  Value index = split(channels), inside;
  int64_t stride = channels;
  for (size_t i = spatial; i-- > 0;) {
    Value tap = i == 0 ? rest : split(filter.getDimSize(i));
    Value at = plus(p.first[i], times(tap, op.getRhsDilation()[i]));
    if (mayLeave(i)) { // as a number without sign, what lies below 0 is large
      Value here = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, at, word(in.getDimSize(i + 1)));
      inside = inside ? b.both(inside, here) : here;
    }
    index = plus(index, times(at, stride));
    stride *= in.getDimSize(i + 1);
  }
  if (inside) // the first element serves for what is then a zero
    index = b.select(inside, index, word(0));
  Value where = b.add(p.base, arith::ExtUIOp::create(b, b.getI64Type(), index));
  Type element = in.getElementType();
  const unsigned align = vector * codegen::elemBytes(element);
  Value x = codegen::emitConvert(b, loadAligned(b, element, b.operands[0], where, vector, align), element, sum);
  return inside ? b.select(inside, x, b.cstI(x.getType(), 0)) : x;
}

TileOperand Images::operand() {
  TileOperand o;
  o.vector = vector;
  o.begin = [this](int64_t slot, Value line) { begin(slot, line); };
  o.load = [this](int64_t slot, Value, Value k) { return load(slot, k); };
  return o;
}

LogicalResult emitConv(Operation *op, KernelBuilder &b) {
  auto conv = cast<kernel::ConvOp>(op);
  plain::Elements elements = plain::bindOperands(op, b);
  RankedTensorType filter = hlo::tensorType(conv.getFilter()), out = conv.getAccType();
  TileProduct p;
  p.sum = out.getElementType();
  const int64_t columns = filter.getShape().back();
  ArrayRef<int64_t> shapeOut = out.getShape();
  int64_t pixels = 1;
  for (int64_t d : shapeOut.drop_back())
    pixels *= d == ShapedType::kDynamic ? 4 : d; // small batches are what a device finds hard
  const TileShape shape = chooseTile(pixels, columns, filter.getNumElements() / columns, 1, p.sum);
  AffineExpr rows = hlo::numElements(ArrayRef<AffineExpr>(hlo::getDims(out)).drop_back(), b.getContext());
  const int64_t across = llvm::divideCeil(columns, shape.columns);
  BlockFrame frame(b, shape.threads());
  frame.setBlocks(rows.ceilDiv(shape.rows) * across);
  b.setWork(shape.rows * shape.columns * 64);
  p.tileRow = b.divU(frame.block(), b.i64(across));
  p.tileColumn = b.remU(frame.block(), b.i64(across));
  p.rows = b.dim(rows);
  p.columns = b.i64(columns);
  p.depth = b.i64(filter.getNumElements() / columns);
  Images images(b, conv, p.sum);
  p.lhs = images.operand();
  auto flat = RankedTensorType::get({filter.getNumElements() / columns, columns}, filter.getElementType());
  p.rhs = denseOperand(b, flat, 1, 0, b.operands[1], b.i64(0), p.sum);
  SmallVector<Value> dims = b.dims(out);
  p.store = [&](Value row, Value column, Value sum) -> LogicalResult {
    SmallVector<Value> index = b.delinearize(row, ArrayRef<Value>(dims).drop_back());
    index.push_back(column);
    return storeResults(b, elements, conv.getAcc(), index, sum, b.add(b.mul(row, b.i64(columns)), column));
  };
  return emitTile(frame, shape, p);
}

} // namespace lathe::nvptx
