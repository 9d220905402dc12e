// Speed of generated products as a share of this machine's multiply-add peak, measured in the same run.
//   kernel-bench dot M K N [packed] [cpu]      kernel-bench conv|dw H W IC OC KH KW STRIDE PAD [packed|f2|f4]
//        kernel-bench mlir FILE [spread=MB] [cpu]: the first kernel of an MLIR file of static shapes (lathe
//        compile --dump-dir), with its GB/s
//        kernel-bench asm dot ...: prints the assembly instead
// vecs=3, rows=9, block=4, depth=256 (dot): instead of what is estimated.
// spread=MB: the left operand and the result (mlir: all of them) lie in so much memory in turn, as between
// other layers of a model. f2, f3, f4, f6: Winograd with tiles of so many pixels a direction. cold: the right
// operand comes from memory, as in a model.
#include "KernelRunner.h"

#include "dialects/hlo/Hlo.h"
#include "dialects/hlo/Shape.h"
#include "dialects/kernel/Kernel.h"
#include "passes/codegen/cpu/conv/Winograd.h"
#include "passes/codegen/cpu/layout/Layout.h"
#include "passes/codegen/cpu/product/Tile.h"

#include "mlir/Parser/Parser.h"

#include <chrono>
#include <cstring>
#include <random>
#include <ctime>

using namespace mlir;
using namespace lathe;
using namespace lathe::testing;

static double now() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}

typedef float Vec __attribute__((vector_size(64)));
__attribute__((target("avx512f,fma"), noinline)) static double peak512() {
  Vec acc[12] = {}, x, y;
  for (int i = 0; i < 16; ++i)
    x[i] = 0.37f + 0.0713f * i, y[i] = 0.91f - 0.1317f * i;
  double start = now();
  for (int i = 0; i < 2000000; ++i)
    for (Vec &a : acc)
      asm volatile("vfmadd231ps %1, %2, %0" : "+v"(a) : "v"(x), "v"(y));
  return 2000000.0 * 12 * 32 / (now() - start) * 1e-9;
}
typedef float Vec8 __attribute__((vector_size(32)));
__attribute__((target("avx2,fma"), noinline)) static double peak256() {
  Vec8 acc[12] = {}, x, y;
  for (int i = 0; i < 8; ++i)
    x[i] = 0.37f + 0.0713f * i, y[i] = 0.91f - 0.1317f * i;
  double start = now();
  for (int i = 0; i < 2000000; ++i)
    for (Vec8 &a : acc)
      asm volatile("vfmadd231ps %1, %2, %0" : "+x"(a) : "x"(x), "x"(y));
  return 2000000.0 * 12 * 16 / (now() - start) * 1e-9;
}

static double measure(function_ref<void()> f) {
  double best = 1e9, start = now();
  f();
  double once = std::max(now() - start, 1e-7);
  int inner = std::max(1, int(0.005 / once));
  for (int i = 0; i < 40; ++i) {
    double t = now();
    for (int j = 0; j < inner; ++j)
      f();
    best = std::min(best, (now() - t) / inner);
  }
  return best;
}

/// Values in [-1, 1).
static void fill(std::vector<float> &v, std::mt19937 &random) {
  std::uniform_real_distribution<float> dist(-1, 1);
  for (float &x : v)
    x = dist(random);
}

/// The first cache line that begins inside.
static float *aligned(std::vector<float> &v) {
  return reinterpret_cast<float *>((reinterpret_cast<uintptr_t>(v.data()) + 63) & ~uintptr_t(63));
}

/// Speed of the first kernel in a file, on values in [-1, 1) for floats and zeros for the rest.
static int benchFile(const std::string &path, const Processor &processor, bool printAsm, int64_t spread) {
  MLIRContext context;
  context.loadDialect<kernel::KernelDialect, hlo::HloDialect, cpu::CpuDialect, func::FuncDialect>();
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(path, &context);
  Operation *op = nullptr;
  if (module)
    module->walk([&](Operation *o) {
      if (!op && isa<kernel::KernelDialect>(o->getDialect()) && !o->hasTrait<OpTrait::IsTerminator>())
        op = o;
    });
  auto kernel = op ? CompiledKernel::compile(op, processor) : nullptr;
  if (!kernel)
    return 1;
  if (printAsm) {
    fputs(kernel->assembly().c_str(), stdout);
    return 0;
  }
  std::mt19937 random(1);
  std::vector<std::vector<float>> data;
  struct Buffers {
    std::vector<const void *> operands;
    std::vector<void *> results;
  };
  std::vector<Buffers> sets;
  int64_t bytes = 0;
  auto room = [&](Value v) {
    auto type = cast<RankedTensorType>(v.getType());
    int64_t size = type.getNumElements() * codegen::elemBytes(type.getElementType());
    bytes += size;
    data.emplace_back(size / 4 + 32);
    if (type.getElementType().isF32())
      fill(data.back(), random);
    return static_cast<void *>(aligned(data.back()));
  };
  do {
    bytes = 0;
    sets.emplace_back();
    for (Value v : op->getOperands())
      sets.back().operands.push_back(room(v));
    for (Value v : op->getResults())
      sets.back().results.push_back(room(v));
  } while (static_cast<int64_t>(sets.size()) * bytes < spread);
  double best = 1e9;
  size_t set = 0;
  for (int i = 0; i < 3; ++i)
    best = std::min(best, measure([&] {
                      set = (set + 1) % sets.size();
                      kernel->run(sets[set].operands, sets[set].results);
                    }));
  printf("%s: %.1f us, %.1f GB/s, compile %.3f s, asm %zu lines\n", path.c_str(), best * 1e6, bytes / best * 1e-9,
         kernel->compileSeconds, std::count(kernel->assembly().begin(), kernel->assembly().end(), '\n'));
  return 0;
}

int main(int argc, char **argv) {
  std::vector<std::string> args(argv + 1, argv + argc);
  bool printAsm = !args.empty() && args[0] == "asm";
  if (printAsm)
    args.erase(args.begin());
  Processor processor = Processor::host();
  MLIRContext context;
  context.loadDialect<kernel::KernelDialect, cpu::CpuDialect, func::FuncDialect>();
  OpBuilder b(&context);
  Location loc = b.getUnknownLoc();
  OwningOpRef<ModuleOp> module(ModuleOp::create(loc));
  Type f32 = b.getF32Type();
  bool packed = false, cold = false, strassen = false;
  int64_t spread = 0;
  int64_t winograd = 0;
  cpu::KernelPlan plan;
  std::vector<int64_t> numbers;
  for (size_t i = 1; i < args.size(); ++i) {
    if (args[i] == "packed")
      packed = true;
    else if (args[i] == "strassen")
      packed = strassen = true;
    else if (args[i] == "cold")
      cold = true;
    else if (args[i] == "f2" || args[i] == "f3" || args[i] == "f4" || args[i] == "f6")
      winograd = args[i][1] - '0';
    else if (args[i].rfind("spread=", 0) == 0)
      spread = std::stoll(args[i].substr(7)) << 20;
    else if (args[i] == "avx2")
      processor = Processor::avx2();
    else if (args[i] == "baseline")
      processor = Processor::baseline();
    else if (size_t at = args[i].find('='); at != std::string::npos)
      plan.set(args[i].substr(0, at), std::stoll(args[i].substr(at + 1)));
    else if (args[0] != "mlir")
      numbers.push_back(std::stoll(args[i]));
  }
  if (args.size() >= 2 && args[0] == "mlir")
    return benchFile(args[1], processor, printAsm, spread);
  auto yieldAcc = [](OpBuilder &, Location, ValueRange v) -> SmallVector<Value> { return {v[0]}; };
  SmallVector<RankedTensorType> types;
  Operation *op = nullptr;
  double flops = 0;
  b.setInsertionPointToEnd(module->getBody());
  auto makeFunc = [&] {
    auto func = func::FuncOp::create(b, loc, "main", b.getFunctionType({types[0], types[1]}, {types[2]}));
    b.setInsertionPointToStart(func.addEntryBlock());
    return func;
  };
  if (!args.empty() && args[0] == "dot" && numbers.size() >= 3) {
    int64_t m = numbers[0], k = numbers[1], n = numbers[2];
    flops = 2.0 * m * k * n;
    int64_t panel = cpu::chooseTile(processor.target(), f32, m, n, plan).columns();
    RankedTensorType rhs = packed ? RankedTensorType::get({(n + panel - 1) / panel, k, panel}, f32) : RankedTensorType::get({k, n}, f32);
    types = {RankedTensorType::get({m, k}, f32), rhs, RankedTensorType::get({m, n}, f32)};
    auto func = makeFunc();
    auto dot = kernel::DotOp::create(b, loc, TypeRange{types[2]}, func.getArgument(0), func.getArgument(1), ValueRange{},
                                     ArrayRef<int64_t>{}, packed ? ArrayRef<int64_t>{0, 1, 2} : ArrayRef<int64_t>{}, ArrayRef<int64_t>{}, f32, yieldAcc);
    if (strassen)
      dot.setLayoutAttr(cpu::StrassenAttr::get(&context, panel));
    else if (packed)
      dot.setLayoutAttr(cpu::PanelsAttr::get(&context, panel, 1));
    op = dot;
    plan.attach(op);
    cpu::TileShape t = cpu::chooseTile(processor.target(), f32, m, n, plan);
    fprintf(stderr, "tile %ux%u ", t.rows, t.columns());
  } else if (!args.empty() && (args[0] == "conv" || args[0] == "dw") && numbers.size() >= 8) {
    auto at = [&](int i) { return numbers[i]; };
    int64_t h = at(0), w = at(1), ic = at(2), oc = at(3), kh = at(4), kw = at(5), stride = at(6), pad = at(7);
    int64_t oh = (h + 2 * pad - kh) / stride + 1, ow = (w + 2 * pad - kw) / stride + 1;
    bool depthwise = args[0] == "dw";
    flops = 2.0 * oh * ow * oc * kh * kw * (depthwise ? 1 : ic);
    bool pointwise = kh * kw * stride == 1 && pad == 0;
    int64_t panel = cpu::chooseTile(processor.target(), f32, pointwise ? oh * ow : ow, oc).columns();
    RankedTensorType filter = packed      ? RankedTensorType::get({1, (oc + panel - 1) / panel, kh * kw * ic, panel}, f32)
                              : depthwise ? RankedTensorType::get({kh, kw, 1, oc}, f32)
                                          : RankedTensorType::get({kh, kw, ic, oc}, f32);
    cpu::WinogradPlan tiles;
    if (winograd) {
      tiles = cpu::planWinograd(processor.target(), {ic, oc, oh, ow, 1, 1, 1, false, kh, kw}, winograd);
      int64_t points = cpu::WinogradTile(winograd, kh, kw).points(), q = tiles.panelsPerUnit;
      panel = tiles.panel;
      filter = RankedTensorType::get({(oc + panel - 1) / panel / q, points, q, ic, panel}, f32);
      fprintf(stderr, "%ld tiles a block, %ld panels of %ld a unit, estimate %.0f us ", long(tiles.tilesPerBlock), long(q), long(panel),
              tiles.cycles / 3300);
    }
    types = {RankedTensorType::get({1, h, w, ic}, f32), filter, RankedTensorType::get({1, oh, ow, oc}, f32)};
    auto func = makeFunc();
    SmallVector<int64_t> strides(2, stride), padding(4, pad);
    if (depthwise) {
      op = kernel::DepthwiseConvOp::create(b, loc, TypeRange{types[2]}, func.getArgument(0), func.getArgument(1), ValueRange{},
                                           strides, padding, ArrayRef<int64_t>{}, ArrayRef<int64_t>{}, ic, 1, f32, yieldAcc);
    } else {
      auto conv = kernel::ConvOp::create(b, loc, TypeRange{types[2]}, func.getArgument(0), func.getArgument(1), ValueRange{},
                                         strides, padding, ArrayRef<int64_t>{}, ArrayRef<int64_t>{}, 1, 1, f32, yieldAcc);
      if (packed || winograd) {
        conv.setLayoutAttr(winograd ? kernel::LayoutAttr(cpu::WinogradAttr::get(&context, winograd, panel))
                                    : kernel::LayoutAttr(cpu::PanelsAttr::get(&context, panel, 1)));
        conv.setKernelShape(ArrayRef<int64_t>{kh, kw});
      }
      op = conv;
    }
  } else {
    fprintf(stderr, "usage: kernel-bench [asm] dot M K N [packed] [avx2|baseline] | mlir FILE\n");
    return 1;
  }
  auto kernel = CompiledKernel::compile(op, processor);
  if (!kernel)
    return 1;
  if (printAsm) {
    fputs(kernel->assembly().c_str(), stdout);
    return 0;
  }
  std::mt19937 random(1);
  std::vector<std::vector<float>> data;
  // as many copies of the right operand as no cache of ours holds
  size_t rightSize = (types[1].getNumElements() + 15) / 16 * 16;
  size_t copies = cold ? 1 + (96 << 20) / (rightSize * 4) : 1, copy = 0;
  const size_t inputSize = (types[0].getNumElements() + 15) / 16 * 16, resultSize = (types[2].getNumElements() + 15) / 16 * 16;
  const size_t others = 1 + spread / ((inputSize + resultSize) * 4);
  size_t other = 0;
  for (RankedTensorType t : types) {
    data.emplace_back(t == types[1] ? rightSize * copies + 16 : (t == types[0] ? inputSize : resultSize) * others + 16);
    fill(data.back(), random);
  }
  double peak = 0, best = 1e9;
  for (int i = 0; i < 3; ++i) {
    peak = std::max(peak, processor.target().avx512 ? peak512() : peak256());
    best = std::min(best, measure([&] {
                      copy = (copy + 1) % copies;
                      other = (other + 1) % others;
                      kernel->run({aligned(data[0]) + other * inputSize, aligned(data[1]) + copy * rightSize}, {aligned(data[2]) + other * resultSize});
                    }));
  }
  printf("%s: %.1f us, %.1f GFLOP/s, peak %.1f, %.1f %%, compile %.3f s, asm %zu lines\n", args[0].c_str(), best * 1e6,
         flops / best * 1e-9, peak, 100 * flops / best * 1e-9 / peak, kernel->compileSeconds,
         std::count(kernel->assembly().begin(), kernel->assembly().end(), '\n'));
}
