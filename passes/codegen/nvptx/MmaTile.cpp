// See MmaTile.h. Shared memory holds operands as they lie in memory, so that neither is transposed on the
// way. Where neighbours are steps of the sum, a line has 64 bytes of them, two fragments' worth; where they
// are lines, those of one step lie together.
#include "passes/codegen/nvptx/MmaTile.h"

#include "passes/codegen/Target.h"
#include "passes/codegen/element/Expr.h"
#include "passes/codegen/nvptx/Forms.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace lathe::nvptx {

using codegen::KernelBuilder;

constexpr int64_t pieceBytes = 16; // what stays together in shared memory: a row of an 8x8 matrix
constexpr int64_t lineBytes = 64;  // of steps in a stage
constexpr int64_t fragmentBytes = 32,
                  fragmentSteps = lineBytes / fragmentBytes; // of steps that one instruction takes
constexpr int64_t copiedStages = 3, storedStages = 2;

int64_t mmaBytes(MmaKind kind) { return kind == MmaKind::Tf32 ? 4 : kind == MmaKind::S8 ? 1 : 2; }

bool isMmaElement(MmaKind kind, Type element) {
  switch (kind) {
  case MmaKind::Tf32:
    return false;
  case MmaKind::Bf16:
    return element.isBF16();
  case MmaKind::F16:
    return element.isF16();
  case MmaKind::S8:
    return true;
  }
  llvm_unreachable("kind");
}

std::string chooseMmaKind(Operation *op, Type lhs, Type rhs, Type sum, MmaKind &kind) {
  FailureOr<codegen::Target> target = codegen::targetOf(op->getParentOfType<ModuleOp>());
  if (failed(target))
    return "a module of no known target";
  const codegen::Processor &wish = target->processor;
  auto both = [&](auto is) { return is(lhs) && is(rhs); };
  if (sum.isInteger(32) && both([](Type t) { return t.isSignlessInteger(8) || t.isSignedInteger(8); })) {
    kind = MmaKind::S8;
    return {};
  }
  if (!sum.isF32())
    return "sums of another type than f32, and no signed bytes";
  if (wish.exact)
    return "exact results are asked for";
  auto isFloat = [](Type t) { return t.isF32() || t.isF16() || t.isBF16(); };
  if (both([](Type t) { return t.isF16(); }))
    kind = MmaKind::F16;
  else if (both([](Type t) { return t.isBF16(); }) ||
           (wish.bf16 && both([](Type t) { return t.isF32() || t.isBF16(); })))
    kind = MmaKind::Bf16;
  else if (wish.tf32 && both(isFloat))
    kind = MmaKind::Tf32;
  else
    return "operands that would have to be rounded";
  return {};
}

int64_t mmaDepth(MmaKind kind) { return lineBytes / mmaBytes(kind); }

int64_t mmaAccess(MmaKind kind, Type element) {
  const int64_t bytes = codegen::elemBytes(element);
  return std::min(pieceBytes, pieceBytes / mmaBytes(kind) * bytes);
}

// What a warp reads from shared memory for each of its products grows with the edges of its rectangle, what it multiplies with their
// product: so tiles that four warps would divide into small rectangles have fewer of larger ones, which share the depth instead.
MmaShape chooseMmaShape(MmaKind kind, int64_t rows, int64_t columns, int64_t depth, int64_t batch, bool wide) {
  auto isDeep = [&](int64_t parts) { return wide && (depth < 0 || depth >= 2 * parts * mmaDepth(kind)); };
  switch (tileEdge(rows, columns, batch, wide)) {
  case 128:
    return {128, 128, 64, 32};
  case 64:
    if (isDeep(2))
      return {64, 64, 64, 32, 2};
    return {64, 64, 32, 32};
  default:
    if (isDeep(4))
      return {32, 32, 32, 32, 4};
    return {32, 32, 16, 16};
  }
}

MmaPlan::MmaPlan(Operation *op, Type lhs, Type rhs, Type sum, int64_t rows, int64_t columns, int64_t depth, int64_t batch, bool wide)
    : wide(wide) {
  chooseMmaKind(op, lhs, rhs, sum, kind);
  shape = chooseMmaShape(kind, rows, columns, depth, batch, wide);
}

Value roundMmaElements(KernelBuilder &b, MmaKind kind, const TileOperand &operand, Value x) {
  if (isMmaElement(kind, operand.element))
    return x;
  Type word = b.getI32Type();
  const unsigned lanes = operand.vector;
  Value real = codegen::emitConvert(b, x, operand.element, b.getF32Type());
  if (kind == MmaKind::Bf16) {
    Value narrow = arith::TruncFOp::create(b, codegen::widen(b.getBF16Type(), lanes), real);
    return arith::BitcastOp::create(b, codegen::widen(b.getI16Type(), lanes), narrow);
  }
  assert(kind == MmaKind::Tf32);
  SmallVector<Value> words;
  for (unsigned i = 0; i < lanes; ++i) {
    Value one = lanes == 1 ? real : vector::ExtractOp::create(b, real, i).getResult();
    words.push_back(
        LLVM::CallIntrinsicOp::create(b, word, b.getStringAttr("llvm.nvvm.f2tf32.rna"), ValueRange{one})
            .getResult(0));
  }
  return lanes == 1
             ? words[0]
             : vector::FromElementsOp::create(b, VectorType::get({operand.vector}, word), words).getResult();
}

Value loadMmaSlot(KernelBuilder &b, MmaKind kind, const TileSide &side, size_t slot, Value step, Value depth, int64_t together) {
  const TileOperand &o = *side.operand;
  const unsigned align = o.vector * codegen::elemBytes(o.element);
  const TilePlace place = side.at(b, slot, step, depth, together);
  Value x;
  if (isMmaElement(kind, o.element))
    x = LLVM::LoadOp::create(b, codegen::widen(b.getIntegerType(8 * mmaBytes(kind)), o.vector),
                             b.ptrAt(o.pointer, o.element, place.index), align);
  else
    x = loadAligned(b, o.element, o.pointer, place.index, o.vector, align);
  return place.inside ? b.select(place.inside, x, b.cstI(x.getType(), 0)) : x;
}

SmallVector<Value> loadMmaSide(KernelBuilder &b, MmaKind kind, const TileSide &side, Value step, Value depth, int64_t together) {
  SmallVector<Value> values;
  for (size_t i = 0; i < side.slots(); ++i)
    values.push_back(loadMmaSlot(b, kind, side, i, step, depth, together));
  return values;
}

void copyMmaSide(KernelBuilder &b, MmaKind kind, const TileSide &side, Value step, Value depth, int64_t together,
                 llvm::function_ref<Value(size_t)> placeOf) {
  const TileOperand &o = *side.operand;
  const int64_t size = o.vector * mmaBytes(kind);
  Type word = b.getI32Type();
  const std::string name = "llvm.nvvm.cp.async." + std::string(size == 16 ? "cg" : "ca") + ".shared.global." +
                           std::to_string(size) + ".s";
  for (size_t i = 0; i < side.slots(); ++i) {
    const TilePlace place = side.at(b, i, step, depth, together);
    Value whole = b.cstI(word, size); // what is not read becomes zeros
    Value read = place.inside ? b.select(place.inside, whole, b.cstI(word, 0)) : whole;
    Value from = LLVM::AddrSpaceCastOp::create(b, LLVM::LLVMPointerType::get(b.getContext(), 1),
                                               b.ptrAt(o.pointer, o.element, place.index));
    LLVM::CallIntrinsicOp::create(b, b.getStringAttr(name), ValueRange{placeOf(i), from, read});
  }
}

namespace {

class MmaTile {
public:
  MmaTile(BlockFrame &frame, MmaKind kind, const MmaShape &shape, const TileProduct &p)
      : frame(frame), b(frame.b), kind(kind), shape(shape), p(p), bytes(mmaBytes(kind)),
        depth(mmaDepth(kind)), word(b.getI32Type()) {}

  LogicalResult emit();

private:
  struct Side : TileSide {
    bool left = false;
    bool along = false; ///< steps are neighbours in shared memory
    int64_t start = 0;  ///< bytes to the first stage
    SmallVector<Value>
        stores; ///< bytes from the stage to what each access loads, or to each element of it: see isTurned
    /// Bytes are turned on the way, since no instruction reads a matrix of them across.
    bool isTurned() const { return along && !operand->alongDepth; }
    SmallVector<Value> places; ///< from there to this thread's part of fragments: see makeFragments
  };

  Side makeSide(const TileOperand &operand, int64_t lines, Value tile, Value count, bool left);
  void makeFragments(Side &side, Value first, int64_t count);
  Value permuted(const Side &side, Value line, Value k);
  int64_t pitch(const Side &side) const { return side.along ? lineBytes : side.lines * bytes; }
  bool isDirect(const Side &side) const {
    return isMmaElement(kind, side.operand->element) && !side.isTurned() &&
           side.operand->vector * bytes >= 4;
  }
  SmallVector<Value> load(const Side &side, Value step) { return loadMmaSide(b, kind, side, step, p.depth, shape.parts); }
  void store(const Side &side, Value stage, ValueRange values);
  void copy(const Side &side, Value stage, Value step);
  SmallVector<Value> fragment(const Side &side, Value stage, int64_t step, int64_t block);
  void multiply(MutableArrayRef<Value> sums, ValueRange x, ValueRange y);
  SmallVector<Value> multiply(Value stage, ValueRange sums);
  SmallVector<Value> sumStored(Value steps, ValueRange zeros);
  SmallVector<Value> sumCopied(Value steps, ValueRange zeros);
  LogicalResult finish(ValueRange sums);

  Value bits(Value x, int64_t shift, int64_t count) { // of a number
    return b.remU(b.divU(x, b.i64(int64_t(1) << shift)), b.i64(int64_t(1) << count));
  }
  Value exclusive(Value x, Value y) { return arith::XOrIOp::create(b, x, y); }
  Value at(Value offset) { return b.ptrBytes(stages, offset); }
  /// Of all stages the one that this thread's group takes in a turn.
  Value number(Value turn) { return shape.parts == 1 ? turn : b.add(b.mul(turn, b.i64(shape.parts)), part); }
  void intrinsic(StringRef name, ValueRange args) {
    LLVM::CallIntrinsicOp::create(b, b.getStringAttr(name), args);
  }
  SmallVector<Value> intrinsic(StringRef name, Type element, int64_t results, ValueRange args);

  BlockFrame &frame;
  KernelBuilder &b;
  const MmaKind kind;
  const MmaShape shape;
  const TileProduct &p;
  const int64_t bytes, depth; ///< of an element in shared memory; steps of a stage
  Type word;
  Value part, place; ///< of this thread: its group, and its number there
  Value memory, stages; ///< of the block; of the group
  Value lane, warpRow, warpColumn;
  Side lhs, rhs;
  int64_t stageBytes = 0;
};

} // namespace

SmallVector<Value> MmaTile::intrinsic(StringRef name, Type element, int64_t results, ValueRange args) {
  Type type = LLVM::LLVMStructType::getLiteral(b.getContext(), SmallVector<Type>(results, element));
  Value all = LLVM::CallIntrinsicOp::create(b, type, b.getStringAttr(name), args).getResult(0);
  SmallVector<Value> values;
  for (int64_t i = 0; i < results; ++i)
    values.push_back(LLVM::ExtractValueOp::create(b, all, i));
  return values;
}

// Eight pieces that ldmatrix reads together, and eight that neighbouring threads store, are in different
// banks, as are words of four steps and eight lines, which fragments of tf32 are made of where lines are
// neighbours.
Value MmaTile::permuted(const Side &side, Value line, Value k) {
  const bool along = side.along;
  Value major = along ? line : k, minor = b.mul(along ? k : line, b.i64(bytes));
  const int64_t pieces = pitch(side) / pieceBytes;
  Value key = bytes == 4 && !along ? b.mul(bits(major, 0, 2), b.i64(2))
              : pieces == 4        ? bits(major, 1, 2)
                                   : bits(major, 0, 3);
  Value piece = exclusive(b.divU(minor, b.i64(pieceBytes)), key);
  Value offset = b.add(b.mul(piece, b.i64(pieceBytes)), b.remU(minor, b.i64(pieceBytes)));
  return b.add(b.mul(major, b.i64(pitch(side))), offset);
}

MmaTile::Side MmaTile::makeSide(const TileOperand &operand, int64_t lines, Value tile, Value count,
                                bool left) {
  Side side;
  static_cast<TileSide &>(side) =
      TileSide(b, operand, lines, depth, place, shape.groupThreads(), tile, count);
  side.left = left;
  side.along = operand.alongDepth || bytes == 1;
  side.start = stageBytes;
  stageBytes += lines * lineBytes;
  for (size_t i = 0; i < side.slots(); ++i)
    for (int64_t j = 0; j < (side.isTurned() ? operand.vector : 1); ++j)
      side.stores.push_back(permuted(side, b.add(side.line[i], b.i64(j)), side.k[i]));
  return side;
}

// A fragment is four 8x8 matrices of 32-bit words (lines by steps): two groups of lines by two of steps, in
// the order in which the instruction wants their registers. ldmatrix takes the address of row i of matrix m
// from lane 8m + i. `places` has, for operands along the depth, one for each fragment of a line; else one for
// each 16 lines, or two where words are loaded one by one.
void MmaTile::makeFragments(Side &side, Value first, int64_t count) {
  Value row = bits(lane, 0, 3), low = bits(lane, 3, 1), high = bits(lane, 4, 1);
  Value lineHalf = side.left ? low : high, stepHalf = side.left ? high : low;
  auto half = [&](Value v) { return b.mul(v, b.i64(8)); };
  const int64_t stepGroup = pieceBytes / bytes; // steps of one matrix
  if (side.along) {
    Value line = b.add(first, b.add(half(lineHalf), row));
    for (int64_t s = 0; s < fragmentSteps; ++s)
      side.places.push_back(
          permuted(side, line, b.add(b.mul(stepHalf, b.i64(stepGroup)), b.i64(2 * s * stepGroup))));
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    Value line = b.add(first, b.i64(16 * i));
    if (bytes == 2) {
      side.places.push_back(permuted(side, b.add(line, half(lineHalf)), b.add(row, half(stepHalf))));
      continue;
    }
    for (int64_t h = 0; h < 2; ++h)
      side.places.push_back(
          permuted(side, b.add(line, b.add(b.divU(lane, b.i64(4)), b.i64(8 * h))), bits(lane, 0, 2)));
  }
}

void MmaTile::store(const Side &side, Value stage, ValueRange values) {
  const TileOperand &o = *side.operand;
  auto put = [&](Value x, Value place, int64_t size) {
    LLVM::StoreOp::create(b, x, b.ptrBytes(at(b.add(stage, place)), b.i64(side.start)), size);
  };
  for (auto [i, value] : llvm::enumerate(values)) {
    Value x = roundMmaElements(b, kind, o, value);
    if (!side.isTurned() || o.vector == 1)
      put(x, side.stores[i], o.vector * bytes);
    else
      for (int64_t j = 0; j < o.vector; ++j)
        put(vector::ExtractOp::create(b, x, j), side.stores[i * o.vector + j], bytes);
  }
}

void MmaTile::copy(const Side &side, Value stage, Value step) {
  copyMmaSide(b, kind, side, step, p.depth, shape.parts,
              [&](size_t i) { return b.ptrBytes(at(b.add(stage, side.stores[i])), b.i64(side.start)); });
}

/// The four words of this thread, of 16 lines from `block` on.
SmallVector<Value> MmaTile::fragment(const Side &side, Value stage, int64_t step, int64_t block) {
  auto address = [&](Value place, int64_t offset) {
    return b.ptrBytes(at(b.add(stage, place)), b.i64(side.start + offset));
  };
  const bool along = side.along;
  if (along || bytes == 2) {
    Value from = along ? address(side.places[step], 16 * block * lineBytes)
                       : address(side.places[block], fragmentBytes / bytes * step * pitch(side));
    StringRef name = along ? "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16.p3"
                           : "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.trans.b16.p3";
    return intrinsic(name, word, 4, from);
  }
  SmallVector<Value> words;
  for (int64_t m = 0; m < 4; ++m) {
    const int64_t lineHalf = side.left ? m % 2 : m / 2, stepHalf = side.left ? m / 2 : m % 2;
    Value from = address(side.places[2 * block + lineHalf], (8 * step + 4 * stepHalf) * pitch(side));
    words.push_back(LLVM::LoadOp::create(b, word, from, 4));
  }
  return words;
}

/// The four sums of a thread in a rectangle of 16x8.
void MmaTile::multiply(MutableArrayRef<Value> sums, ValueRange x, ValueRange y) {
  SmallVector<Value> args(x);
  llvm::append_range(args, y);
  StringRef name;
  switch (kind) {
  case MmaKind::Tf32:
    name = "llvm.nvvm.mma.m16n8k8.row.col.tf32";
    break;
  case MmaKind::Bf16:
    name = "llvm.nvvm.mma.m16n8k16.row.col.bf16";
    break;
  case MmaKind::S8:
    name = "llvm.nvvm.mma.m16n8k32.row.col.s8";
    break;
  case MmaKind::F16:
    name = "llvm.nvvm.mma.m16n8k16.row.col.f32.f32";
    for (Value &v : args)
      v = LLVM::BitcastOp::create(b, VectorType::get({2}, b.getF16Type()), v);
    break;
  }
  args.append(sums.begin(), sums.end());
  llvm::copy(intrinsic(name, p.sum, 4, args), sums.begin());
}

SmallVector<Value> MmaTile::multiply(Value stage, ValueRange before) {
  SmallVector<Value> sums(before);
  const int64_t across = shape.warpColumns / 16;
  for (int64_t step = 0; step < fragmentSteps; ++step) {
    SmallVector<SmallVector<Value>> x, y;
    for (int64_t i = 0; i < shape.warpRows / 16; ++i)
      x.push_back(fragment(lhs, stage, step, i));
    for (int64_t j = 0; j < across; ++j)
      y.push_back(fragment(rhs, stage, step, j));
    for (auto [i, rows] : llvm::enumerate(x))
      for (int64_t j = 0; j < 2 * across; ++j)
        multiply(MutableArrayRef(sums).slice(4 * (i * 2 * across + j), 4), rows,
                 ValueRange(y[j / 2]).slice(j % 2 * 2, 2));
  }
  return sums;
}

// The next stage travels from memory to registers while this one is used, and from there to the other.
SmallVector<Value> MmaTile::sumStored(Value steps, ValueRange zeros) {
  SmallVector<Value> x = load(lhs, number(b.i64(0))), y = load(rhs, number(b.i64(0)));
  auto put = [&](Value stage) {
    store(lhs, stage, x);
    store(rhs, stage, y);
    frame.barrier();
  };
  put(b.i64(0));
  return b.loop(b.i64(0), steps, b.i64(1), zeros, [&](Value step, ValueRange sums) {
    Value stage = b.mul(bits(step, 0, 1), b.i64(stageBytes));
    Value next = number(b.add(step, b.i64(1)));
    x = load(lhs, next);
    y = load(rhs, next);
    SmallVector<Value> after = multiply(stage, sums);
    put(b.sub(b.i64(stageBytes), stage));
    return after;
  });
}

// Two stages are under way while one is used.
SmallVector<Value> MmaTile::sumCopied(Value steps, ValueRange zeros) {
  auto fetch = [&](Value stage, Value turn) {
    Value step = number(turn);
    copy(lhs, stage, step);
    copy(rhs, stage, step);
    intrinsic("llvm.nvvm.cp.async.commit.group", {});
  };
  auto wait = [&](int64_t pending) { intrinsic("llvm.nvvm.cp.async.wait.group", {b.cstI(word, pending)}); };
  for (int64_t s = 0; s + 1 < copiedStages; ++s)
    fetch(b.i64(s * stageBytes), b.i64(s));
  SmallVector<Value> carried(zeros);
  carried.append(
      {b.i64(0), b.i64((copiedStages - 1) * stageBytes)}); // the stage that is used, and the one that is free
  auto after = [&](Value stage) {
    Value next = b.add(stage, b.i64(stageBytes));
    return b.select(b.lt(next, b.i64(copiedStages * stageBytes)), next, b.i64(0));
  };
  SmallVector<Value> sums = b.loop(b.i64(0), steps, b.i64(1), carried, [&](Value step, ValueRange state) {
    Value used = state[state.size() - 2], free = state.back();
    wait(copiedStages - 2);
    frame.barrier(); // all have what they waited for, and are done with the stage before
    fetch(free, b.add(step, b.i64(copiedStages - 1)));
    SmallVector<Value> next = multiply(used, state.drop_back(2));
    next.append({after(used), after(free)});
    return next;
  });
  wait(0);
  frame.barrier();
  sums.truncate(zeros.size());
  return sums;
}

// Sums go through shared memory for what SIMT tiles let them: few copies of the epilogue, and neighbours that
// are stored together.
LogicalResult MmaTile::finish(ValueRange sums) {
  const int64_t groups = shape.rows == 128 ? 2 : 1, rows = shape.rows / groups,
                warpRows = shape.warpRows / groups;
  const int64_t pitch = shape.columns + (p.rowsInner ? 1 : 8), across = shape.warpColumns / 8;
  Value group = b.divU(lane, b.i64(4)), member = bits(lane, 0, 2);
  for (int64_t g = 0; g < groups; ++g) {
    if (g)
      frame.barrier();
    for (int64_t i = 0; i < warpRows / 16; ++i)
      for (int64_t j = 0; j < across; ++j)
        for (int64_t e = 0; e < 4; ++e) {
          Value row = b.add(b.add(b.mul(warpRow, b.i64(warpRows)), group), b.i64(16 * i + e / 2 * 8));
          Value column = b.add(b.add(b.mul(warpColumn, b.i64(shape.warpColumns)), b.mul(member, b.i64(2))),
                               b.i64(8 * j + e % 2));
          Value sum = sums[4 * ((g * (warpRows / 16) + i) * across + j) + e];
          Value at = b.add(b.mul(row, b.i64(pitch)), column);
          if (shape.parts > 1)
            at = b.add(at, b.mul(part, b.i64(rows * pitch)));
          b.storeElem(p.sum, sum, memory, at);
        }
    frame.barrier();
    TileSums area;
    area.memory = memory;
    area.rows = rows;
    area.columns = shape.columns;
    area.pitch = pitch;
    area.parts = shape.parts;
    area.partElements = rows * pitch;
    area.top = b.mul(p.tileRow, b.i64(shape.rows));
    area.left = b.mul(p.tileColumn, b.i64(shape.columns));
    area.rowOf = [&](Value r) {
      Value warp = b.divU(r, b.i64(warpRows)), rest = b.remU(r, b.i64(warpRows));
      return b.add(b.add(b.mul(warp, b.i64(shape.warpRows)), rest), b.i64(g * warpRows));
    };
    if (failed(storeSums(frame, p, area)))
      return failure();
  }
  return success();
}

LogicalResult MmaTile::emit() {
  const int64_t across = shape.columns / shape.warpColumns;
  part = shape.parts == 1 ? b.i64(0) : b.divU(frame.thread, b.i64(shape.groupThreads()));
  place = shape.parts == 1 ? frame.thread : b.remU(frame.thread, b.i64(shape.groupThreads()));
  Value warp = b.divU(place, b.i64(warpThreads));
  lane = b.remU(place, b.i64(warpThreads));
  warpRow = b.divU(warp, b.i64(across));
  warpColumn = b.remU(warp, b.i64(across));
  lhs = makeSide(p.lhs, shape.rows, p.tileRow, p.rows, true);
  rhs = makeSide(p.rhs, shape.columns, p.tileColumn, p.columns, false);
  makeFragments(lhs, b.mul(warpRow, b.i64(shape.warpRows)), shape.warpRows / 16);
  makeFragments(rhs, b.mul(warpColumn, b.i64(shape.warpColumns)), shape.warpColumns / 16);
  const bool copied = isDirect(lhs) && isDirect(rhs);
  const int64_t groupRows = std::min<int64_t>(64, shape.rows);
  const int64_t staged = (copied ? copiedStages : storedStages) * stageBytes;
  memory = frame.shared(shape.parts * std::max(staged, groupRows * (shape.columns + 8) * 4));
  stages = shape.parts == 1 ? memory : b.ptrBytes(memory, b.mul(part, b.i64(staged)));
  const int64_t together = depth * shape.parts;
  Value steps = b.divU(b.add(p.depth, b.i64(together - 1)), b.i64(together));
  SmallVector<Value> zeros(shape.warpRows * shape.warpColumns / warpThreads, b.cstI(p.sum, 0));
  auto all = [&] { return copied ? sumCopied(steps, zeros) : sumStored(steps, zeros); };
  if (codegen::constantOf(p.depth))
    return finish(all());
  return finish(b.ifElse(b.lt(b.i64(0), p.depth), TypeRange(ValueRange(zeros)), all, [&] { return zeros; }));
}

LogicalResult emitMmaTile(BlockFrame &frame, MmaKind kind, const MmaShape &shape,
                          const TileProduct &product) {
  return MmaTile(frame, kind, shape, product).emit();
}

} // namespace lathe::nvptx
