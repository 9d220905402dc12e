// See WgmmaTile.h. The sums are registers that inline PTX declares and that no value of LLVM's stands for until the end: a
// register that LLVM moves while a product is under way would have to be waited for, and ptxas would put the products one after
// the other.
#include "passes/codegen/nvptx/WgmmaTile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace lathe::nvptx {

using codegen::KernelBuilder;

constexpr int64_t groupThreads = 128, groupRows = 64; // of a warpgroup
constexpr int64_t pieceBytes = 16, stepBytes = 32;    // what stays together; of the steps of one instruction
constexpr int64_t atomBytes = 128, atomLines = 8;     // across: what the widest permutation goes over
constexpr int64_t staticBytes = 48 << 10; // what a block has without being launched with more

std::string whyNoWgmmaTile(MmaKind kind, const MmaShape &shape, bool wide) {
  if (shape.rows % groupRows || shape.threads() != shape.rows / groupRows * groupThreads || shape.columns % groupRows)
    return "tiles of less than 64 rows or columns";
  return wide ? "" : "operands that are loaded one by one";
}

bool isWgmmaCopied(MmaKind kind, Type element, bool alongDepth) {
  return isMmaElement(kind, element) && (alongDepth || mmaBytes(kind) == 2);
}

// A tile of 128x128 asks for as many bytes in the cycles of its products as a multiprocessor gets from the second cache at best;
// twice the columns ask for three quarters of that. What passes through registers takes some of them. Tiles of 64x64 are for products
// that have few others: what they wait for is memory, so many of their stages are under way.
WgmmaShape chooseWgmmaShape(MmaKind kind, const MmaShape &shape, bool copied, int64_t rows, int64_t columns, int64_t batch) {
  constexpr int64_t enough = 120; // blocks that keep a device of 132 multiprocessors busy
  if (shape.rows < 128)
    return {shape.rows, shape.columns, /*lineBytes=*/128, /*stages=*/copied ? 6 : 3, /*underWay=*/0, /*residents=*/2};
  const int64_t lineBytes = !copied && kind == MmaKind::Bf16 ? 64 : 128;
  if (columns > 0 && columns <= groupRows)
    return {128, 64, lineBytes, /*stages=*/copied ? 4 : 3, /*underWay=*/1, /*residents=*/2};
  const int64_t across = columns > 0 ? llvm::divideCeil(columns, 256) : 0;
  const bool known = rows > 0 && columns > 0 && batch > 0;
  const bool large = known && int64_t(llvm::divideCeil(rows, 128)) * across * batch >= enough && across * 256 * 8 <= columns * 9;
  if (!copied)
    return {128, large ? 256 : 128, lineBytes, /*stages=*/3, /*underWay=*/1, /*residents=*/1};
  if (large)
    return {128, 256, /*lineBytes=*/128, /*stages=*/4, /*underWay=*/1, /*residents=*/1};
  return {128, 128, /*lineBytes=*/128, /*stages=*/3, /*underWay=*/0, /*residents=*/2};
}

namespace {

class WgmmaTile {
public:
  WgmmaTile(BlockFrame &frame, MmaKind kind, const WgmmaShape &shape, const TileProduct &p)
      : frame(frame), b(frame.b), kind(kind), shape(shape), p(p), bytes(mmaBytes(kind)), line(shape.lineBytes), depth(line / bytes) {}

  LogicalResult emit();

private:
  struct Side : TileSide {
    int64_t start = 0;         ///< bytes to the first stage
    int64_t groupBytes = 0;    ///< from one warpgroup's lines to the next one's
    int64_t stepBytes = 0;     ///< from the steps of one instruction to those of the next
    uint64_t layout = 0;       ///< the descriptor but for its address
    bool along = false;        ///< steps are neighbours in shared memory
    bool copied = false;       ///< by cp.async; else what is multiplied passes through registers
    /// Only halves may lie across: others are turned on the way, so many steps of some lines at once. Of what is not turned it is 1.
    int64_t turned = 1;
    SmallVector<Value> stores; ///< bytes from the stage to what each access copies, or to each line of `turned` accesses
    bool isTurned() const { return along && !operand->alongDepth; }
    /// The places of the accesses from `first` on.
    ArrayRef<Value> storesOf(size_t first) const {
      const int64_t each = isTurned() ? operand->vector : 1;
      return ArrayRef(stores).slice(first / turned * each, each);
    }
  };

  Side makeSide(const TileOperand &operand, TileOperand &narrow, int64_t lines, Value tile, Value count);
  void turn(Side &side, int64_t lines, Value tile, Value count);
  Value permuted(const Side &side, Value at, Value k);
  Value place(const Side &side, Value stage, Value store) {
    return b.ptrBytes(b.ptrBytes(memory, b.add(stage, store)), b.i64(side.start));
  }
  void copy(const Side &side, Value stage, Value step);
  void store(const Side &side, Value stage, size_t first, ValueRange values);
  SmallVector<Value> turnedLines(const Side &side, ValueRange values);
  void multiply(Value stage);
  void sumUp(Value steps);
  SmallVector<Value> sums();
  LogicalResult finish(ValueRange sums);

  Value bits(Value x, int64_t shift, int64_t count) { // of a number
    return b.remU(b.divU(x, b.i64(int64_t(1) << shift)), b.i64(int64_t(1) << count));
  }
  void intrinsic(StringRef name, ValueRange args) { LLVM::CallIntrinsicOp::create(b, b.getStringAttr(name), args); }
  /// Inline PTX that stays where it is; `result`: null for none.
  Value assembly(const std::string &text, const std::string &constraints, Type result = {}, ValueRange args = {});
  int64_t count() const { return shape.columns / 2; } ///< sums of a thread
  std::string sumList() const;

  BlockFrame &frame;
  KernelBuilder &b;
  const MmaKind kind;
  const WgmmaShape &shape;
  const TileProduct &p;
  const int64_t bytes, line, depth; ///< of an element in shared memory; bytes and steps of a line in a stage
  Value memory, group;       ///< group: of this thread
  Side lhs, rhs;
  TileOperand narrowLhs, narrowRhs; ///< of what is turned: see makeSide
  int64_t stageBytes = 0, memoryBytes = 0;
};

} // namespace

Value WgmmaTile::assembly(const std::string &text, const std::string &constraints, Type result, ValueRange args) {
  const std::string clobbers = (constraints.empty() ? "" : constraints + ",") + "~{memory}";
  auto op = LLVM::InlineAsmOp::create(b, result ? TypeRange(result) : TypeRange(), args, text, clobbers, /*has_side_effects=*/true,
                                      /*is_align_stack=*/false, LLVM::TailCallKind::None, LLVM::AsmDialectAttr(), ArrayAttr());
  return result ? op->getResult(0) : Value();
}

std::string WgmmaTile::sumList() const {
  std::string text = "{";
  for (int64_t i = 0; i < count(); ++i)
    text += (i ? ", " : "") + ("wg_sum" + std::to_string(i));
  return text + "}";
}

// Of addresses whose first bits are 0, as those of stages are: pieces of lines of 128 bytes by the line's number in 8, of 64
// bytes by that of its pair in 4.
Value WgmmaTile::permuted(const Side &side, Value at, Value k) {
  auto place = [&](Value major, Value minor, int64_t pitch, Value key) {
    Value piece = arith::XOrIOp::create(b, b.divU(minor, b.i64(pieceBytes)), key);
    return b.add(b.mul(major, b.i64(pitch)), b.add(b.mul(piece, b.i64(pieceBytes)), b.remU(minor, b.i64(pieceBytes))));
  };
  if (side.along)
    return place(at, b.mul(k, b.i64(bytes)), line, line == 128 ? bits(at, 0, 3) : bits(at, 1, 2));
  const int64_t width = atomBytes / bytes;
  Value inside = place(k, b.mul(b.remU(at, b.i64(width)), b.i64(bytes)), atomBytes, bits(k, 0, 3));
  return b.add(b.mul(b.divU(at, b.i64(width)), b.i64(depth * atomBytes)), inside);
}

// What is turned comes as blocks of several steps of four lines, a block a thread: stored along the depth, it is as few accesses as
// there are lines. Lanes lie so that eight neighbours have pieces of eight columns of banks (four of two blocks' lines, whose keys differ
// in the highest bit), and that a warp loads whole sectors of each step.
void WgmmaTile::turn(Side &side, int64_t lines, Value tile, Value count) {
  constexpr int64_t pieces = 4; // of the depth, that a warp has
  const TileOperand &o = *side.operand;
  const int64_t inner = lines / o.vector, slots = std::max<int64_t>(1, lines * depth / o.vector / shape.threads());
  side.turned = std::min(pieceBytes / bytes, slots);
  const int64_t together = pieces * pieceBytes / bytes / side.turned; // blocks of these pieces
  assert(shape.threads() % (together * inner) == 0 && line % (pieces * pieceBytes) == 0 && "each thread has all steps of its lines");
  Value member = b.remU(frame.thread, b.i64(together)), rest = b.divU(frame.thread, b.i64(together));
  static_cast<TileSide &>(side) = TileSide(b, o, lines, depth, b.remU(rest, b.i64(inner)), shape.threads(), tile, count);
  for (size_t i = 0; i < side.slots(); ++i) {
    const int64_t block = i / side.turned * (shape.threads() / together / inner);
    Value number = b.add(b.mul(b.add(b.divU(rest, b.i64(inner)), b.i64(block)), b.i64(together)), member);
    side.k[i] = b.add(b.mul(number, b.i64(side.turned)), b.i64(i % side.turned));
    if (i % side.turned == 0)
      for (int64_t j = 0; j < o.vector; ++j)
        side.stores.push_back(permuted(side, b.add(side.line[i], b.i64(j)), side.k[i]));
  }
}

WgmmaTile::Side WgmmaTile::makeSide(const TileOperand &operand, TileOperand &narrow, int64_t lines, Value tile, Value count) {
  constexpr int64_t turnedLines = 4;
  Side side;
  side.along = operand.alongDepth || bytes != 2;
  side.operand = &operand;
  side.start = stageBytes;
  stageBytes += lines * line;
  if (side.isTurned()) {
    narrow = operand;
    narrow.vector = std::min(operand.vector, turnedLines);
    side.operand = &narrow;
    turn(side, lines, tile, count);
  } else {
    static_cast<TileSide &>(side) = TileSide(b, operand, lines, depth, frame.thread, shape.threads(), tile, count);
    side.copied = isWgmmaCopied(kind, operand.element, operand.alongDepth) && operand.vector * bytes >= 4;
    for (size_t i = 0; i < side.slots(); ++i)
      side.stores.push_back(permuted(side, side.line[i], side.k[i]));
  }
  // A descriptor has addresses and distances in pieces: from bit 16 on the distance of neighbouring atoms across, unused
  // along; from bit 32 on that of eight lines along or of eight steps across; from bit 62 on 1 or 2 for lines of 128 or 64 bytes.
  auto layout = [](uint64_t leading, uint64_t stride, uint64_t swizzle) {
    return leading / pieceBytes << 16 | stride / pieceBytes << 32 | swizzle << 62;
  };
  if (side.along) {
    side.groupBytes = groupRows * line;
    side.stepBytes = nvptx::stepBytes;
    side.layout = layout(pieceBytes, atomLines * line, line == 128 ? 1 : 2);
  } else {
    side.groupBytes = depth * atomBytes; // 64 lines are an atom's width
    side.stepBytes = nvptx::stepBytes / bytes * atomBytes;
    side.layout = layout(depth * atomBytes, atomLines * atomBytes, 1);
  }
  return side;
}

void WgmmaTile::copy(const Side &side, Value stage, Value step) {
  if (side.copied)
    copyMmaSide(b, kind, side, step, p.depth, /*together=*/1, [&](size_t i) { return place(side, stage, side.stores[i]); });
}

/// What is stored of `side.turned` accesses, that is steps: the steps of each line.
SmallVector<Value> WgmmaTile::turnedLines(const Side &side, ValueRange values) {
  SmallVector<Value> steps, lines;
  for (Value v : values)
    steps.push_back(roundMmaElements(b, kind, *side.operand, v));
  const int64_t count = steps.size();
  auto lineOf = [&](int64_t j, Type element, ValueRange parts) {
    SmallVector<Value> elements;
    for (Value v : parts)
      elements.push_back(isa<VectorType>(v.getType()) ? vector::ExtractOp::create(b, v, j).getResult() : v);
    return elements.size() == 1 ? elements[0]
                                : vector::FromElementsOp::create(b, VectorType::get({int64_t(elements.size())}, element), elements).getResult();
  };
  if (bytes > 1 || side.operand->vector != 4 || count % 4) {
    for (int64_t j = 0; j < side.operand->vector; ++j)
      lines.push_back(lineOf(j, b.getIntegerType(8 * bytes), steps));
    return lines;
  }
  // 4x4 bytes are turned as words: pairs of steps first, then pairs of those
  Type word = b.getI32Type();
  auto pick = [&](Value x, Value y, int64_t which) {
    return LLVM::CallIntrinsicOp::create(b, word, b.getStringAttr("llvm.nvvm.prmt"), ValueRange{x, y, b.cstI(word, which)}).getResult(0);
  };
  SmallVector<SmallVector<Value>, 4> words(4);
  for (int64_t i = 0; i < count; i += 4) {
    Value x[4], pairs[4];
    for (int64_t s = 0; s < 4; ++s)
      x[s] = LLVM::BitcastOp::create(b, word, steps[i + s]);
    for (int64_t s = 0; s < 4; ++s) // of two steps, two of four lines
      pairs[s] = pick(x[s / 2 * 2], x[s / 2 * 2 + 1], s % 2 ? 0x7362 : 0x5140);
    for (int64_t j = 0; j < 4; ++j)
      words[j].push_back(pick(pairs[j / 2], pairs[2 + j / 2], j % 2 ? 0x7632 : 0x5410));
  }
  for (int64_t j = 0; j < 4; ++j)
    lines.push_back(lineOf(j, word, words[j]));
  return lines;
}

/// Stores what `side.turned` accesses from `first` on have loaded.
void WgmmaTile::store(const Side &side, Value stage, size_t first, ValueRange values) {
  SmallVector<Value> stored;
  if (side.isTurned())
    stored = turnedLines(side, values);
  else
    stored.push_back(roundMmaElements(b, kind, *side.operand, values[0]));
  const int64_t size = (side.isTurned() ? side.turned : side.operand->vector) * bytes;
  for (auto [x, at] : llvm::zip_equal(stored, side.storesOf(first)))
    LLVM::StoreOp::create(b, x, place(side, stage, at), size);
}

/// Has the products of a stage under way as one group.
void WgmmaTile::multiply(Value stage) {
  static constexpr const char *types[] = {"k8.f32.tf32.tf32 ", "k16.f32.bf16.bf16 ", "k16.f32.f16.f16 ", "k32.s32.s8.s8 "};
  static_assert(int(MmaKind::Tf32) == 0 && int(MmaKind::Bf16) == 1 && int(MmaKind::F16) == 2 && int(MmaKind::S8) == 3);
  const std::string name = "wgmma.mma_async.sync.aligned.m64n" + std::to_string(shape.columns) + types[int(kind)];
  std::string scales = kind == MmaKind::S8 ? ";\n" : ", 1, 1";
  if (bytes == 2)
    scales += std::string(lhs.along ? ", 0" : ", 1") + (rhs.along ? ", 0" : ", 1");
  scales += kind == MmaKind::S8 ? "" : ";\n";
  Value from = b.add(LLVM::PtrToIntOp::create(b, b.getI64Type(), memory), stage);
  auto descriptor = [&](const Side &side, Value offset) {
    Value address = b.divU(b.add(b.add(from, b.i64(side.start)), offset), b.i64(pieceBytes));
    return arith::OrIOp::create(b, address, b.i64(int64_t(side.layout))).getResult();
  };
  Value x = descriptor(lhs, b.mul(group, b.i64(lhs.groupBytes))), y = descriptor(rhs, b.i64(0));
  std::string text = "wgmma.fence.sync.aligned;\n", constraints;
  SmallVector<Value> args;
  for (int64_t step = 0; step < line / stepBytes; ++step) {
    args.push_back(b.add(x, b.i64(step * lhs.stepBytes / pieceBytes)));
    args.push_back(b.add(y, b.i64(step * rhs.stepBytes / pieceBytes)));
    constraints += step ? ",l,l" : "l,l";
    text += name + sumList() + ", $" + std::to_string(2 * step) + ", $" + std::to_string(2 * step + 1) + ", wg_add" + scales;
  }
  assembly(text + "wgmma.commit_group.sync.aligned;", constraints, {}, args);
}

// A stage is free for copies once all warpgroups have waited for its products: with products of one stage under way, that is one
// turn later. The copies are begun while products are under way. What passes through registers is loaded two turns ahead and
// stored one turn ahead.
void WgmmaTile::sumUp(Value steps) {
  const int64_t ahead = shape.stages - 1 - shape.underWay; // stages whose copies are under way while one is used
  assert(ahead >= 1 && "what is stored needs a free stage");
  Type word = b.getI32Type();
  SmallVector<const Side *, 2> stored;
  for (const Side *side : {&lhs, &rhs})
    if (!side->copied)
      stored.push_back(side);
  const bool copies = stored.size() < 2;
  auto fetch = [&](Value stage, Value step) {
    if (!copies)
      return;
    copy(lhs, stage, step);
    copy(rhs, stage, step);
    intrinsic("llvm.nvvm.cp.async.commit.group", {});
  };
  auto wait = [&](int64_t pending) {
    if (copies)
      intrinsic("llvm.nvvm.cp.async.wait.group", {b.cstI(word, pending)});
  };
  auto load = [&](Value step) {
    SmallVector<Value> values;
    for (const Side *side : stored)
      values.append(loadMmaSide(b, kind, *side, step, p.depth, /*together=*/1));
    return values;
  };
  // what is stored leaves its registers to what is loaded then, so that loads have a whole turn's time
  auto exchange = [&](Value stage, ValueRange values, Value step) {
    SmallVector<Value> loaded;
    for (const Side *side : stored)
      for (size_t i = 0; i < side->slots(); i += side->turned) {
        store(*side, stage, i, values.take_front(side->turned));
        values = values.drop_front(side->turned);
        for (int64_t s = 0; step && s < side->turned; ++s)
          loaded.push_back(loadMmaSlot(b, kind, *side, i + s, step, p.depth, /*together=*/1));
      }
    return loaded;
  };
  auto waitForProducts = [&](int64_t pending) { assembly("wgmma.wait_group.sync.aligned " + std::to_string(pending) + ";", ""); };
  for (int64_t s = 0; s < ahead; ++s)
    fetch(b.i64(s * stageBytes), b.i64(s));
  auto after = [&](Value stage) {
    Value next = b.add(stage, b.i64(stageBytes));
    return b.select(b.lt(next, b.i64(shape.stages * stageBytes)), next, b.i64(0));
  };
  auto all = [&] {
    exchange(b.i64(0), load(b.i64(0)), {});
    // the stage that is used, the one that is free, and what is to be stored to the next one
    SmallVector<Value> carried{b.i64(0), b.i64(ahead * stageBytes)};
    carried.append(load(b.i64(1)));
    b.loop(b.i64(0), steps, b.i64(1), carried, [&](Value step, ValueRange state) {
      wait(ahead - 1);
      // products read by the asynchronous proxy what this thread has written by the generic one
      assembly("fence.proxy.async.shared::cta;", "");
      frame.barrier(); // all have what they waited for, and are done with the stage that is free
      multiply(state[0]);
      fetch(state[1], b.add(step, b.i64(ahead)));
      SmallVector<Value> next{after(state[0]), after(state[1])};
      // A branch of its own, since ptxas would have what waits for loads ahead of the products of this block.
      if (ValueRange values = state.drop_front(2); !values.empty())
        next.append(b.ifElse(
            b.lt(b.add(step, b.i64(1)), steps), TypeRange(values), [&] { return exchange(next[0], values, b.add(step, b.i64(2))); },
            [&] { return SmallVector<Value>(values); }));
      waitForProducts(shape.underWay);
      return next;
    });
  };
  // lines of no steps have nothing that could be loaded
  if (stored.empty() || codegen::constantOf(p.depth))
    all();
  else
    b.ifThen(b.lt(b.i64(0), p.depth), all);
  if (shape.underWay)
    waitForProducts(0);
  wait(0);
  frame.barrier();
}

/// As values, when nothing is under way.
SmallVector<Value> WgmmaTile::sums() {
  std::string text, constraints;
  for (int64_t i = 0; i < count(); ++i) {
    text += "mov.b32 $" + std::to_string(i) + ", wg_sum" + std::to_string(i) + ";\n";
    constraints += std::string(i ? "," : "") + (p.sum.isF32() ? "=f" : "=r");
  }
  Type all = LLVM::LLVMStructType::getLiteral(b.getContext(), SmallVector<Type>(count(), p.sum));
  Value packed = assembly(text, constraints, all);
  SmallVector<Value> values;
  for (int64_t i = 0; i < count(); ++i)
    values.push_back(LLVM::ExtractValueOp::create(b, packed, i));
  return values;
}

// Sums go through shared memory, as many columns at a time as fit, as those of other tiles do. A warp has 16 rows of them; a
// thread four in each 8 columns, two neighbours in two rows.
LogicalResult WgmmaTile::finish(ValueRange sums) {
  int64_t columns = shape.columns;
  while (shape.rows * (columns + 8) * 4 > memoryBytes)
    columns /= 2;
  const int64_t pitch = columns + (p.rowsInner ? 1 : 8);
  Value warp = b.divU(frame.thread, b.i64(warpThreads)), lane = b.remU(frame.thread, b.i64(warpThreads));
  Value top = b.add(b.mul(warp, b.i64(16)), b.divU(lane, b.i64(4))), left = b.mul(bits(lane, 0, 2), b.i64(2));
  for (int64_t first = 0; first < shape.columns; first += columns) {
    if (first)
      frame.barrier();
    for (int64_t j = 0; j < columns / 8; ++j)
      for (int64_t e = 0; e < 4; ++e) {
        Value at = b.add(b.mul(b.add(top, b.i64(e / 2 * 8)), b.i64(pitch)), b.add(left, b.i64(8 * j + e % 2)));
        b.storeElem(p.sum, sums[(first / 8 + j) * 4 + e], memory, at);
      }
    frame.barrier();
    TileSums area;
    area.memory = memory;
    area.rows = shape.rows;
    area.columns = columns;
    area.pitch = pitch;
    area.top = b.mul(p.tileRow, b.i64(shape.rows));
    area.left = b.add(b.mul(p.tileColumn, b.i64(shape.columns)), b.i64(first));
    area.rowOf = [](Value r) { return r; };
    if (failed(storeSums(frame, p, area)))
      return failure();
  }
  return success();
}

LogicalResult WgmmaTile::emit() {
  constexpr int64_t aligned = 1024; // to the permutation's period, so that it is one of places in the stage
  group = b.divU(frame.thread, b.i64(groupThreads));
  std::string text = std::string(".reg .pred wg_add;\n.reg .") + (p.sum.isF32() ? "f32" : "b32") + " wg_sum<" + std::to_string(count()) +
                     ">;\nsetp.eq.u32 wg_add, 0, 0;\n";
  for (int64_t i = 0; i < count(); ++i)
    text += "mov.b32 wg_sum" + std::to_string(i) + ", 0;\n";
  assembly(text, "");
  lhs = makeSide(p.lhs, narrowLhs, shape.rows, p.tileRow, p.rows);
  rhs = makeSide(p.rhs, narrowRhs, shape.columns, p.tileColumn, p.columns);
  memoryBytes = shape.stages * stageBytes;
  memory = memoryBytes > staticBytes ? frame.launchedShared(memoryBytes, aligned) : frame.shared(memoryBytes, aligned);
  frame.setResidents(shape.residents);
  sumUp(b.divU(b.add(p.depth, b.i64(depth - 1)), b.i64(depth)));
  return finish(sums());
}

LogicalResult emitWgmmaTile(BlockFrame &frame, MmaKind kind, const WgmmaShape &shape, const TileProduct &product) {
  return WgmmaTile(frame, kind, shape, product).emit();
}

} // namespace lathe::nvptx
