// Convolutions as products: lines of the left operand are pixels of the result, its depth taps and channels,
// read from the images in place; the filter is the right operand as it lies. Groups are a product each.
#include "dialects/hlo/Hlo.h"
#include "dialects/hlo/Shape.h"
#include "passes/codegen/nvptx/Forms.h"
#include "passes/codegen/nvptx/WgmmaTile.h"
#include "passes/codegen/plain/Core.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

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

/// Channels of the result in a group.
static int64_t columnsOf(kernel::ConvOp op) {
  return hlo::tensorType(op.getFilter()).getShape().back() / static_cast<int64_t>(op.getGroups());
}

/// Steps of the sum of a result.
static int64_t depthOf(kernel::ConvOp op) {
  const RankedTensorType filter = hlo::tensorType(op.getFilter());
  return filter.getNumElements() / filter.getShape().back();
}

std::string whyNoConv(Operation *op) {
  auto conv = dyn_cast<kernel::ConvOp>(op);
  if (!conv)
    return "no convolution";
  if (conv.getBatchGroups() != 1)
    return "groups of the batch";
  if (llvm::any_of(conv.getLhsDilation(), [](int64_t d) { return d != 1; }))
    return "a dilated input";
  RankedTensorType in = hlo::tensorType(conv.getInput()), filter = hlo::tensorType(conv.getFilter()),
                   out = conv.getAccType();
  for (RankedTensorType type : {in, filter})
    if (!type.getElementType().isF32() && !type.getElementType().isF16() && !type.getElementType().isBF16())
      return "operands of another type than f32, f16 and bf16";
  if (!out.getElementType().isF32())
    return "sums of another type than f32";
  if (!isStaticFrom(filter, 0) || !isStaticFrom(in, 1) || !isStaticFrom(out, 1))
    return "sizes but the batch's that are known at run time only, or none";
  if (columnsOf(conv) < 8 || depthOf(conv) < 8)
    return "fewer than 8 channels of the result in a group, or steps of a sum";
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
  /// `depth`: steps of a tile. `widest`: bytes of an access.
  /// `group`: the one whose channels are read; null where there is but one.
  Images(KernelBuilder &b, kernel::ConvOp op, int64_t depth, int64_t widest, Value group);
  TileOperand operand();
  /// What `operand` gave has a table from now on, where that is less work.
  void tabulate(TileOperand &o, const TileShape &shape);

private:
  struct Pixel;
  /// A step of the sum.
  struct Step {
    Value offset;           ///< i32: of its element from the window's first one
    SmallVector<Value> tap; ///< i32: the number of its tap, along each dimension
  };

  void begin(int64_t slot, Value pixel);
  TilePlace at(int64_t slot, Value first, Value k);
  Step stepOf(Value number);
  Value outside(const Pixel &p);
  int64_t tableEntries(const TileShape &shape) const;
  void fillEntry(Value memory, Value entry);
  TileAddress look(int64_t slot, Value step, Value k);
  Value word(int64_t v) { return b.cstI(b.getI32Type(), v); }
  Value narrow(Value v) { return arith::TruncIOp::create(b, b.getI32Type(), v); }
  Value times(Value x, int64_t n) { return n == 1 ? x : arith::MulIOp::create(b, x, word(n)).getResult(); }
  Value plus(Value x, Value y) { return arith::AddIOp::create(b, x, y); }
  Value wide(Value x) { return arith::ExtSIOp::create(b, b.getI64Type(), x); }
  bool mayLeave(size_t i) const;
  bool hasOneTap() const;
  int64_t eachTapBits(llvm::function_ref<void(size_t i, int64_t first)> visit) const;

  struct Pixel {
    Value base;               ///< i64, in elements: where the image begins
    SmallVector<Value> first; ///< i32: where the window begins
    Value corner;             ///< i32, in elements of the image: the same place, which may lie outside
    // where there is a table
    Value window;  ///< its address
    Value outside; ///< i32: a bit for each tap along each dimension that is not in the image; see outside()
  };
  KernelBuilder &b;
  mutable kernel::ConvOp op;
  RankedTensorType in, filter, out;
  const int64_t channels, widest; ///< channels: of a group
  const int64_t steps, tileDepth; ///< of the sum, and of a tile
  const bool oneTap; ///< the steps of a tile belong to the same tap
  Value group;
  SmallVector<Pixel> pixels;

  Value table;              ///< in shared memory
  int64_t entrySteps = 0;   ///< of an entry of the table; 0: there is none
  bool mayBeZeros = false;  ///< some steps of some lines stand for zeros; an entry then has the bits of its tap behind the offset
};

} // namespace

Images::Images(KernelBuilder &b, kernel::ConvOp op, int64_t depth, int64_t widest, Value group)
    : b(b), op(op), in(hlo::tensorType(op.getInput())), filter(hlo::tensorType(op.getFilter())),
      out(op.getAccType()), channels(filter.getDimSize(filter.getRank() - 2)), widest(widest),
      steps(depthOf(op)), tileDepth(depth), oneTap(channels % depth == 0), group(group) {}

/// Whether a window may lie in part outside of the image along spatial dimension i.
bool Images::mayLeave(size_t i) const {
  const int64_t low = op.getPadding()[2 * i];
  const int64_t last = (out.getDimSize(i + 1) - 1) * op.getStrides()[i] - low +
                       (filter.getDimSize(i) - 1) * op.getRhsDilation()[i];
  return low > 0 || last >= in.getDimSize(i + 1);
}

void Images::begin(int64_t slot, Value pixel) {
  const size_t spatial = in.getRank() - 2;
  const SmallVector<Value> sizes = b.dims(out);
  SmallVector<Value> place = b.delinearize(pixel, ArrayRef<Value>(sizes).drop_back());
  Pixel p;
  p.base = b.mul(place[0], b.i64(imageElements(in)));
  p.corner = word(0);
  pixels.resize(std::max<size_t>(pixels.size(), slot + 1));
  for (size_t i = 0; i < spatial; ++i) {
    p.first.push_back(plus(times(narrow(place[i + 1]), op.getStrides()[i]), word(-op.getPadding()[2 * i])));
    p.corner = plus(times(p.corner, in.getDimSize(i + 1)), p.first.back());
  }
  p.corner = times(p.corner, in.getShape().back());
  if (group)
    p.corner = plus(p.corner, times(narrow(group), channels));
  if (entrySteps) {
    p.window = b.ptrAt(b.operands[0], in.getElementType(), b.add(p.base, wide(p.corner)));
    if (mayBeZeros)
      p.outside = outside(p);
  }
  pixels[slot] = p;
}

/// Whether the window is one pixel.
bool Images::hasOneTap() const {
  return llvm::all_of(filter.getShape().drop_back(2), [](int64_t d) { return d == 1; });
}

/// Visits the dimensions along which windows may leave the image, each with the first of the bits that its taps have. Returns their number.
int64_t Images::eachTapBits(llvm::function_ref<void(size_t i, int64_t first)> visit) const {
  int64_t bits = 0;
  for (size_t i = 0; i + 2 < size_t(in.getRank()); ++i)
    if (mayLeave(i)) {
      visit(i, bits);
      bits += filter.getDimSize(i);
    }
  return bits;
}

Images::Step Images::stepOf(Value number) {
  const size_t spatial = in.getRank() - 2;
  Value rest = number;
  auto split = [&](int64_t n) { // the remainder; the quotient is left
    if (n == 1)
      return word(0);
    Value r = arith::RemUIOp::create(b, rest, word(n));
    rest = arith::DivUIOp::create(b, rest, word(n));
    return r;
  };
  Step s;
  s.tap.assign(spatial, word(0));
  if (hasOneTap()) {
    s.offset = number;
    return s;
  }
  s.offset = split(channels);
  int64_t stride = in.getShape().back();
  for (size_t i = spatial; i-- > 0;) {
    s.tap[i] = i == 0 ? rest : split(filter.getDimSize(i));
    s.offset = plus(s.offset, times(s.tap[i], op.getRhsDilation()[i] * stride));
    stride *= in.getDimSize(i + 1);
  }
  return s;
}

// What tap and channel a step is does not depend on the pixel, and where a tile has one tap, neither on the
// thread: then one division serves all accesses, and each adds two numbers and compares.
TilePlace Images::at(int64_t slot, Value first, Value k) {
  const Pixel &p = pixels[slot];
  const size_t spatial = in.getRank() - 2;
  const Step s = stepOf(narrow(oneTap ? first : b.add(first, k)));
  Value inside;
  for (size_t i = spatial; i-- > 0;)
    if (mayLeave(i)) { // as a number without sign, what lies below 0 is large
      Value here = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, plus(p.first[i], times(s.tap[i], op.getRhsDilation()[i])),
                                         word(in.getDimSize(i + 1)));
      inside = inside ? b.both(inside, here) : here;
    }
  Value index = plus(p.corner, oneTap ? plus(narrow(k), s.offset) : s.offset);
  if (inside) // the first elements serve for what are then zeros
    index = b.select(inside, index, word(0));
  return {b.add(p.base, arith::ExtUIOp::create(b, b.getI64Type(), index)), inside};
}

// Along each dimension that windows may leave, the taps outside of the image are the first ones and the last ones. The last bit is that of
// steps beyond the depth.
Value Images::outside(const Pixel &p) {
  Value bits = word(int64_t(1) << 31);
  eachTapBits([&](size_t i, int64_t at) {
    const int64_t taps = filter.getDimSize(i), apart = op.getRhsDilation()[i];
    auto count = [&](Value elements) { // of taps that so many elements have
      elements = arith::MaxSIOp::create(b, elements, word(0));
      if (apart > 1)
        elements = arith::DivUIOp::create(b, plus(elements, word(apart - 1)), word(apart));
      return arith::MinSIOp::create(b, elements, word(taps)).getResult();
    };
    auto below = [&](Value tap) { return arith::ShLIOp::create(b, word(1), tap).getResult(); };
    auto minus = [&](Value x, Value y) { return arith::SubIOp::create(b, x, y).getResult(); };
    Value inside = minus(below(count(minus(word(in.getDimSize(i + 1)), p.first[i]))), below(count(minus(word(0), p.first[i]))));
    Value all = word((int64_t(1) << taps) - 1);
    bits = arith::OrIOp::create(b, bits, arith::ShLIOp::create(b, minus(all, inside), word(at)));
  });
  return bits;
}

/// A tile's steps, or those of an access, have an entry, and so have those of the turn that is loaded for nobody.
int64_t Images::tableEntries(const TileShape &shape) const {
  return (shape.turns(steps) + 1) * shape.parts * (tileDepth / entrySteps);
}

void Images::fillEntry(Value memory, Value entry) {
  Value number = times(narrow(entry), entrySteps);
  const Step s = stepOf(number);
  Value isStep = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, number, word(steps));
  Value offset = b.select(isStep, s.offset, word(0));
  if (!mayBeZeros) {
    LLVM::StoreOp::create(b, offset, b.ptrAt(memory, b.getI32Type(), entry), 4);
    return;
  }
  Value bits = word(0);
  eachTapBits([&](size_t i, int64_t at) {
    bits = arith::OrIOp::create(b, bits, arith::ShLIOp::create(b, word(int64_t(1) << at), s.tap[i]));
  });
  bits = b.select(isStep, bits, word(int64_t(1) << 31));
  Value both = vector::FromElementsOp::create(b, VectorType::get(2, b.getI32Type()), ValueRange{offset, bits});
  LLVM::StoreOp::create(b, both, b.ptrAt(memory, b.getI64Type(), entry), 8);
}

// A thread then adds one number to its window's address and compares the tap's bits with its own.
TileAddress Images::look(int64_t slot, Value step, Value k) {
  const Pixel &p = pixels[slot];
  const int64_t bytes = mayBeZeros ? 8 : 4;
  Value row = table, window = p.window;
  if (oneTap)
    window = b.ptrAt(window, in.getElementType(), k);
  else
    row = b.ptrBytes(row, b.mul(b.divU(k, b.i64(entrySteps)), b.i64(bytes)));
  row = b.ptrBytes(row, b.mul(step, b.i64(tileDepth / entrySteps * bytes)));
  Value offset, inside;
  if (mayBeZeros) {
    Value both = LLVM::LoadOp::create(b, VectorType::get(2, b.getI32Type()), row, bytes);
    offset = vector::ExtractOp::create(b, both, 0);
    Value tap = vector::ExtractOp::create(b, both, 1);
    inside = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, arith::AndIOp::create(b, tap, p.outside), word(0));
  } else {
    offset = LLVM::LoadOp::create(b, b.getI32Type(), row, bytes);
  }
  return {b.ptrAt(window, in.getElementType(), wide(offset)), inside};
}

void Images::tabulate(TileOperand &o, const TileShape &shape) {
  constexpr int64_t fewTurns = 5, mostBytes = 4096; // the latter lets as many blocks fit as registers do
  const int64_t bits = eachTapBits([](size_t, int64_t) {});
  if (hasOneTap() || bits > 31 || shape.turns(steps) <= fewTurns)
    return;
  entrySteps = oneTap ? tileDepth : o.vector;
  mayBeZeros = bits > 0 || steps % (tileDepth * shape.parts) != 0;
  const int64_t bytes = tableEntries(shape) * (mayBeZeros ? 8 : 4);
  if (bytes > mostBytes) {
    entrySteps = 0;
    return;
  }
  o.oneLine = oneTap;
  o.table.bytes = llvm::alignTo(bytes, 16);
  o.table.fill = [this, shape](Value memory, Value thread, int64_t threads) {
    table = memory;
    const int64_t entries = tableEntries(shape);
    if (entries <= threads)
      b.ifThen(b.lt(thread, b.i64(entries)), [&] { fillEntry(memory, thread); });
    else
      b.loop(thread, b.i64(entries), b.i64(threads), [&](Value entry) { fillEntry(memory, entry); });
  };
  o.table.look = [this](int64_t slot, Value step, Value k) { return look(slot, step, k); };
}

TileOperand Images::operand() {
  TileOperand o;
  o.pointer = b.operands[0];
  o.element = in.getElementType();
  o.vector = widestVector(channels, o.element, widest);
  o.begin = [this](int64_t slot, Value line) { begin(slot, line); };
  o.at = [this](int64_t slot, Value first, Value k) { return at(slot, first, k); };
  return o;
}

/// Whether several channels of a group are read together.
static bool isWide(kernel::ConvOp op) {
  const RankedTensorType filter = hlo::tensorType(op.getFilter());
  return filter.getDimSize(filter.getRank() - 2) % 4 == 0;
}

static int64_t pixelsOf(kernel::ConvOp op) {
  int64_t count = 1;
  for (int64_t d : op.getAccType().getShape().drop_back())
    count *= d == ShapedType::kDynamic ? 4 : d; // small batches are what a device finds hard
  return count;
}

namespace {

/// A convolution whose tile is still to be chosen.
class ConvProduct {
public:
  ConvProduct(kernel::ConvOp op, KernelBuilder &b)
      : b(b), op(op), elements(plain::bindOperands(op, b)), filter(hlo::tensorType(op.getFilter())),
        out(op.getAccType()), columns(columnsOf(op)), depth(depthOf(op)), dims(b.dims(out)) {
    p.sum = out.getElementType();
    if (columns % 4 == 0)
      p.lanes = storedLanes(op, op.getAcc());
  }
  int64_t pixels() const { return pixelsOf(op); }
  /// As DenseProduct's, for tiles of `tileDepth` steps.
  const TileProduct &describe(BlockFrame &frame, int64_t tileRows, int64_t tileColumns, int64_t tileDepth,
                              llvm::function_ref<int64_t(Type)> widest);
  /// Lets what `describe` described find its taps in a table.
  void tabulate(const TileShape &shape) { images->tabulate(p.lhs, shape); }

private:
  KernelBuilder &b;
  kernel::ConvOp op;
  plain::Elements elements;
  RankedTensorType filter, out;

public:
  const int64_t columns, depth; ///< of a group
  TileProduct p;

private:
  SmallVector<Value> dims;
  std::optional<Images> images;
};

} // namespace

const TileProduct &ConvProduct::describe(BlockFrame &frame, int64_t tileRows, int64_t tileColumns,
                                         int64_t tileDepth, llvm::function_ref<int64_t(Type)> widest) {
  AffineExpr rows = hlo::numElements(ArrayRef<AffineExpr>(hlo::getDims(out)).drop_back(), b.getContext());
  AffineExpr down = rows.ceilDiv(tileRows);
  const int64_t across = llvm::divideCeil(columns, tileColumns), groups = op.getGroups();
  frame.setBlocks(down * across * groups);
  Value tile = frame.block(), group, first = b.i64(0);
  if (groups > 1) {
    Value each = b.mul(b.dim(down), b.i64(across));
    group = b.divU(tile, each);
    tile = b.remU(tile, each);
    first = b.mul(group, b.i64(columns));
  }
  p.tileRow = b.divU(tile, b.i64(across));
  p.tileColumn = b.remU(tile, b.i64(across));
  p.rows = b.dim(rows);
  p.columns = b.i64(columns);
  p.depth = b.i64(depth);
  images.emplace(b, op, tileDepth, widest(hlo::elementType(op.getInput())), group);
  p.lhs = images->operand();
  const int64_t all = columns * groups;
  auto flat = RankedTensorType::get({depth, all}, filter.getElementType());
  p.rhs = denseOperand(b, flat, 1, 0, b.operands[1], first, widest(flat.getElementType()));
  p.rhs.vector = std::min(p.rhs.vector, widestVector(columns, flat.getElementType(), widest(flat.getElementType())));
  p.store = [this, first, all](Value row, Value column, Value sum) -> LogicalResult {
    Value channel = b.add(first, column), place = b.add(b.mul(row, b.i64(all)), channel);
    if (p.lanes > 1) {
      storeConverted(b, op, op.getAcc(), place, sum);
      return success();
    }
    SmallVector<Value> index = b.delinearize(row, ArrayRef<Value>(dims).drop_back());
    index.push_back(channel);
    return storeResults(b, elements, op.getAcc(), index, sum, place);
  };
  return p;
}

LogicalResult emitConv(Operation *op, KernelBuilder &b) {
  ConvProduct product(cast<kernel::ConvOp>(op), b);
  // single elements, each with a tap of its own, take registers that the largest tile lacks
  const bool large = isWide(cast<kernel::ConvOp>(op));
  const TileShape shape =
      chooseTile(product.pixels(), product.columns, product.depth, cast<kernel::ConvOp>(op).getGroups(), product.p.sum, large);
  b.setWork(shape.rows * shape.columns * 64);
  BlockFrame frame(b, shape.threads());
  const TileProduct &p = product.describe(frame, shape.rows, shape.columns, shape.depth,
                                          [](Type element) { return 4 * codegen::elemBytes(element); });
  product.tabulate(shape);
  return emitTile(frame, shape, p);
}

std::string whyNoMmaConv(Operation *op) {
  if (std::string why = whyNoConv(op); !why.empty())
    return why;
  auto conv = cast<kernel::ConvOp>(op);
  MmaKind kind;
  return chooseMmaKind(op, hlo::elementType(conv.getInput()), hlo::elementType(conv.getFilter()), conv.getAccType().getElementType(), kind);
}

static MmaPlan mmaPlan(kernel::ConvOp op) {
  const RankedTensorType filter = hlo::tensorType(op.getFilter());
  const int64_t columns = columnsOf(op);
  return MmaPlan(op, hlo::elementType(op.getInput()), filter.getElementType(), op.getAccType().getElementType(), pixelsOf(op), columns,
                 depthOf(op), op.getGroups(), isWide(op) && columns % 4 == 0);
}

LogicalResult emitMmaConv(Operation *op, KernelBuilder &b) {
  auto conv = cast<kernel::ConvOp>(op);
  const MmaPlan mma = mmaPlan(conv);
  ConvProduct product(conv, b);
  b.setWork(mma.shape.rows * mma.shape.columns * 16);
  BlockFrame frame(b, mma.shape.threads());
  auto widest = [&](Type element) { return mmaAccess(mma.kind, element); };
  return emitMmaTile(frame, mma.kind, mma.shape,
                     product.describe(frame, mma.shape.rows, mma.shape.columns, mmaDepth(mma.kind), widest));
}

std::string whyNoWgmmaConv(Operation *op) {
  if (std::string why = whyNoMmaConv(op); !why.empty())
    return why;
  const MmaPlan mma = mmaPlan(cast<kernel::ConvOp>(op));
  return whyNoWgmmaTile(mma.kind, mma.shape, mma.wide);
}

LogicalResult emitWgmmaConv(Operation *op, KernelBuilder &b) {
  auto conv = cast<kernel::ConvOp>(op);
  const MmaPlan mma = mmaPlan(conv);
  ConvProduct product(conv, b);
  const bool copied = isWgmmaCopied(mma.kind, hlo::elementType(conv.getInput()), /*alongDepth=*/true) &&
                      isWgmmaCopied(mma.kind, hlo::elementType(conv.getFilter()), /*alongDepth=*/false);
  WgmmaShape shape = chooseWgmmaShape(mma.kind, mma.shape, copied, /*rows=*/-1, product.columns, conv.getGroups());
  if (shape.columns > 64)
    shape.residents = 1; // places of pixels take registers
  b.setWork(mma.shape.rows * mma.shape.columns * 16);
  BlockFrame frame(b, mma.shape.threads());
  auto widest = [&](Type element) { return mmaAccess(mma.kind, element); };
  return emitWgmmaTile(frame, mma.kind, shape,
                       product.describe(frame, shape.rows, shape.columns, shape.lineBytes / mmaBytes(mma.kind), widest));
}

} // namespace lathe::nvptx
