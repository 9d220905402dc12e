// The table of processors: which features choose a row, that latencies and ports are those of LLVM's scheduling models, and
// what the estimates choose for a few kernels on each row (choices.txt).
#include "Parsed.h"
#include "Text.h"

#include "dialects/kernel/Kernel.h"
#include "passes/codegen/ProcessorModel.h"
#include "passes/codegen/cpu/layout/Layout.h"
#include "passes/codegen/cpu/passes/Passes.h"
#include "passes/codegen/cpu/product/Tile.h"

#include "llvm/MC/MCInstrInfo.h"
#include "llvm/MC/MCSchedule.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/Triple.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace lathe::test {
namespace {

using codegen::ProcessorModel;

/// What LLVM knows of a processor.
struct Known {
  std::unique_ptr<llvm::MCSubtargetInfo> subtarget;
  std::unique_ptr<llvm::MCInstrInfo> instructions;
  std::string triple;

  Known(llvm::StringRef cpu, bool arm) : triple(arm ? "aarch64-linux-gnu" : "x86_64-linux-gnu") {
    llvm::InitializeAllTargetInfos();
    llvm::InitializeAllTargetMCs();
    std::string error;
    const llvm::Triple parsed(triple);
    const llvm::Target *target = llvm::TargetRegistry::lookupTarget(parsed, error);
    if (!target)
      return;
    subtarget.reset(target->createMCSubtargetInfo(parsed, cpu, ""));
    instructions.reset(target->createMCInstrInfo());
  }

  std::string features() const {
    std::string text;
    for (const llvm::SubtargetFeatureKV &f : subtarget->getEnabledProcessorFeatures())
      text += std::string(text.empty() ? "+" : ",+") + f.Key;
    return text;
  }

  const llvm::MCSchedClassDesc *classOf(llvm::StringRef name) const {
    for (unsigned opcode = 0; opcode < instructions->getNumOpcodes(); ++opcode)
      if (instructions->getName(opcode) == name)
        return subtarget->getSchedModel().getSchedClassDesc(instructions->get(opcode).getSchedClass());
    return nullptr;
  }
  int latency(llvm::StringRef name) const { return llvm::MCSchedModel::computeInstrLatency(*subtarget, *classOf(name)); }
  double cycles(llvm::StringRef name) const { return llvm::MCSchedModel::getReciprocalThroughput(*subtarget, *classOf(name)); }
};

bool isArm(const ProcessorModel &model) { return model.name == "aarch64"; }

TEST(ProcessorModel, FeaturesOfAProcessorChooseItsRow) {
  const std::pair<const char *, const char *> rows[] = {
      {"x86-64", "generic"},           {"x86-64-v2", "generic"},        {"x86-64-v3", "x86-64-v3"},
      {"haswell", "x86-64-v3"},        {"znver1", "x86-64-v3"},         {"znver3", "zen3"},
      {"x86-64-v4", "x86-64-v4"},      {"znver4", "zen4"},              {"znver5", "zen5"},
      {"skylake-avx512", "skylake-x"}, {"icelake-server", "skylake-x"}, {"sapphirerapids", "sapphire-rapids"},
      {"graniterapids", "sapphire-rapids"}};
  for (auto [cpu, row] : rows) {
    const Known known(cpu, false);
    ASSERT_TRUE(known.subtarget) << cpu;
    EXPECT_EQ(codegen::modelOf(known.triple, known.features()).name, row) << cpu;
  }
  EXPECT_EQ(codegen::modelOf("aarch64-unknown-linux-gnu", "+neon").name, "aarch64");
  // AMD's are AMD's whatever else they learn
  const std::string both = Known("znver5", false).features() + ",+avx512fp16";
  EXPECT_EQ(codegen::modelOf("x86_64-linux-gnu", both).name, "zen5");
  EXPECT_EQ(codegen::modelOf("x86_64-linux-gnu", Known("x86-64-v4", false).features() + ",-avx512vl").name, "x86-64-v3");
}

/// Where a row knows better than LLVM; ProcessorModel.cpp says why.
bool knowsBetter(const ProcessorModel &model, llvm::StringRef what) {
  if (what == "fmas")
    return model.name == "generic" || model.name == "zen5" || model.name == "sapphire-rapids";
  if (what == "fmaLatency")
    return model.name == "generic";
  return model.name == "zen5" || model.name == "sapphire-rapids";
}

TEST(ProcessorModel, LatenciesAndPortsAreThoseOfLlvm) {
  for (const ProcessorModel &model : codegen::processorModels()) {
    ASSERT_FALSE(model.schedule.empty()) << model.name.str();
    const Known known(model.schedule, isArm(model));
    ASSERT_TRUE(known.subtarget && known.instructions) << model.name.str();
    ASSERT_TRUE(known.subtarget->getSchedModel().hasInstrSchedModel()) << model.schedule.str();
    const codegen::KernelTarget target = codegen::KernelTarget::get(known.triple, known.features());
    const char *multiply = isArm(model) ? "FMLAv4f32" : target.avx512 ? "VFMADD231PSZr" : target.fma ? "VFMADD231PSYr" : "MULPSrr";
    const char *divide = isArm(model) ? "FDIVv4f32" : target.avx512 ? "VDIVPSZrr" : target.fma ? "VDIVPSYrr" : "DIVPSrr";
    const double division = known.cycles(divide) * 512 / target.vectorBits;
    EXPECT_EQ(1 / known.cycles(multiply) == model.fmas, !knowsBetter(model, "fmas")) << model.name.str() << " " << 1 / known.cycles(multiply);
    EXPECT_EQ(known.latency(multiply) == model.fmaLatency, !knowsBetter(model, "fmaLatency"))
        << model.name.str() << " " << known.latency(multiply);
    EXPECT_EQ(division == model.division, !knowsBetter(model, "division")) << model.name.str() << " " << division;
  }
}


//===----------------------------------------------------------------------===//
// Choices
//===----------------------------------------------------------------------===//

std::string constant(const std::string &type) { return "%w = \"hlo.constant\"() {value = dense<1.0> : " + type + "} : () -> " + type + "\n"; }

std::string kernelWithout(const std::string &op, const std::string &attributes, const std::string &types, const std::string &result) {
  return "%r = kernel." + op + "(%x0, %w) {" + attributes + "} : (" + types + ") -> " + result + " {\n^bb0(%acc: " + result +
         "):\nkernel.yield %acc : " + result + "\n}";
}

std::string productText(int64_t m, int64_t k, int64_t n) {
  const std::string rows = type({m, k}), weights = type({k, n}), result = type({m, n}), both = list({0, 1});
  return function({rows}, result,
                  constant(weights) + kernelWithout("dot", "lhs_dims = " + both + ", rhs_dims = " + both + ", result_dims = " + both,
                                                    rows + ", " + weights, result));
}

std::string convText(int64_t size, int64_t channels, int64_t window) {
  const std::string image = type({1, size, size, channels}), filter = type({window, window, channels, channels}), ones = list({1, 1});
  const int64_t pad = window / 2;
  return function({image}, image,
                  constant(filter) + kernelWithout("conv",
                                                   "strides = " + ones + ", lhs_dilation = " + ones + ", rhs_dilation = " + ones +
                                                       ", padding = " + list({pad, pad, pad, pad}),
                                                   image + ", " + filter, image));
}

std::string chainText(int64_t size, int64_t depth, int64_t channels) {
  const std::string rows = type({size * size, depth}), weights = type({depth, channels}), product = type({size * size, channels}),
                    image = type({1, size, size, channels}), filter = type({3, 3, 1, channels}), both = list({0, 1}), ones = list({1, 1});
  return function({rows, filter}, image,
                  constant(weights) + "%p = kernel.dot(%x0, %w) {lhs_dims = " + both + ", rhs_dims = " + both + ", result_dims = " + both +
                      "} : (" + rows + ", " + weights + ") -> " + product + " {\n^bb0(%acc: " + product + "):\nkernel.yield %acc : " +
                      product + "\n}\n%i = \"hlo.reshape\"(%p) : (" + product + ") -> " + image +
                      "\n%r = kernel.depthwise_conv(%i, %x1) {groups = " + std::to_string(channels) + " : i64, strides = " + ones +
                      ", padding = " + list({1, 1, 1, 1}) + ", lhs_dilation = " + ones + ", rhs_dilation = " + ones + "} : (" + image +
                      ", " + filter + ") -> " + image + " {\n^bb0(%acc: " + image + "):\nkernel.yield %acc : " + image + "\n}");
}

/// The attributes by which preparation tells how the ops of `text` are done.
std::string choicesOf(const std::string &text, const codegen::KernelTarget &target) {
  Parsed parsed;
  if (!parse(text, parsed) || failed(cpu::packWeights(*parsed.module, target)))
    return "? " + parsed.messages;
  cpu::chainKernels(*parsed.module, target);
  std::string all;
  llvm::raw_string_ostream out(all);
  parsed.module->walk([&](Operation *op) {
    if (Attribute layout = op->getAttr("layout"))
      out << " " << layout;
    if (auto strips = op->getAttrOfType<IntegerAttr>("strips"))
      out << " strips " << strips.getInt();
  });
  return all.empty() ? " plain" : all;
}

std::string choicesOf(const ProcessorModel &model, int threads) {
  const Known known(model.schedule, isArm(model));
  codegen::KernelTarget target = codegen::KernelTarget::get(known.triple, known.features());
  static_cast<ProcessorModel &>(target) = model; // the processor that stands for a generic row may have one of its own
  target.threads = threads;
  std::ostringstream out;
  out << model.name.str() << ", threads " << threads << "\n";
  for (auto [m, k, n] : {std::array<int64_t, 3>{1, 1024, 1000}, {3, 512, 128}, {128, 768, 768}, {128, 768, 3072}, {512, 512, 24}, {1024, 64, 1}}) {
    MLIRContext context;
    const cpu::TileShape tile = cpu::chooseTile(target, Float32Type::get(&context), m, n);
    out << "  product " << m << " x " << k << " x " << n << ": tile " << tile.rows << " x " << tile.vecs << " of " << tile.lanes << ","
        << choicesOf(productText(m, k, n), target) << "\n";
  }
  for (auto [size, channels, window] : {std::array<int64_t, 3>{56, 64, 3}, {28, 128, 3}, {14, 256, 3}, {7, 512, 3}, {28, 32, 5}})
    out << "  window " << window << " over " << size << " x " << size << " x " << channels << ":"
        << choicesOf(convText(size, channels, window), target) << "\n";
  for (auto [size, depth, channels] : {std::array<int64_t, 3>{112, 16, 96}, {56, 24, 144}, {28, 32, 192}})
    out << "  chain " << size << " x " << size << " x " << depth << " x " << channels << ":"
        << choicesOf(chainText(size, depth, channels), target) << "\n";
  return out.str();
}

// With LATHE_UPDATE=1 in the environment the test writes choices.txt anew, to be read before it is committed.
TEST(ProcessorModel, ChoicesOfEachRow) {
  std::string found;
  for (const ProcessorModel &model : codegen::processorModels())
    for (int threads : {1, 4})
      found += choicesOf(model, threads);
  const char *path = LATHE_SOURCE_DIR "/test/codegen/choices.txt";
  if (std::getenv("LATHE_UPDATE"))
    std::ofstream(path) << found;
  std::ostringstream expected;
  expected << std::ifstream(path).rdbuf();
  EXPECT_EQ(found, expected.str());
}

} // namespace
} // namespace lathe::test
