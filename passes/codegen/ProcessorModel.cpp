// The table. A row begins as the defaults of the header, or as another row, and tells what is different.
//
// Units: LLVM's scheduling model of the processor named in `schedule` has the latency of a multiply-add, how many of the widest
// vectors begin in a cycle, and how long divisions keep the divider. Where a row deviates, it says why; test/codegen's
// ProcessorModelTest compares the rest with LLVM.
// Caches: AMD's "Software Optimization Guide" of each family (56665 for Zen 3, 57647 for Zen 4, 58455 for Zen 5), Intel's "64
// and IA-32 Architectures Optimization Reference Manual".
#include "passes/codegen/ProcessorModel.h"

#include "llvm/ADT/StringExtras.h"

#include <array>

namespace lathe::codegen {
namespace {

enum Row { Generic, V3, V4, AArch64, Zen3, Zen4, Zen5, SkylakeX, SapphireRapids, numRows };

std::array<ProcessorModel, numRows> makeTable() {
  std::array<ProcessorModel, numRows> t;
  // x86-64 and v2, where a multiply-add is a multiplication and an addition: Zen has two units of each.
  t[Generic].schedule = "x86-64-v2";
  t[Generic].division = 56;

  // Any processor with AVX2 and FMA. LLVM takes Haswell for it, whose multiply-adds took a cycle more than all since.
  t[V3].name = "x86-64-v3";
  t[V3].schedule = "skylake";

  t[SkylakeX].name = "skylake-x";
  t[SkylakeX].schedule = "skylake-avx512";
  t[V4] = t[SkylakeX];
  t[V4].name = "x86-64-v4";
  t[V4].schedule = "x86-64-v4";

  t[AArch64].name = "aarch64";
  t[AArch64].schedule = "generic";
  t[AArch64].division = 40;
  t[AArch64].ownFactor = 0.5; // lanes of a vector of factors are multiplied, which is loaded once for four

  t[Zen3].name = "zen3";
  t[Zen3].schedule = "znver3";
  t[Zen3].division = 6;

  t[Zen4] = t[Zen3];
  t[Zen4].name = "zen4";
  t[Zen4].schedule = "znver4";
  t[Zen4].fmas = 1; // it does vectors of 512 bits by halves
  t[Zen4].streamBytes = 8;

  t[Zen5] = t[Zen4];
  t[Zen5].name = "zen5";
  t[Zen5].schedule = "znver5";
  t[Zen5].fmas = 2;       // LLVM's model of it is Zen 4's; whole vectors since Zen 5 (58455)
  t[Zen5].division = 2.5; // measured

  t[SapphireRapids] = t[SkylakeX];
  t[SapphireRapids].name = "sapphire-rapids";
  t[SapphireRapids].schedule = "sapphirerapids"; // without its second unit for 512 bits, and with a divider five times too fast
  t[SapphireRapids].l2 = 2 << 20;
  return t;
}

const std::array<ProcessorModel, numRows> &table() {
  static const std::array<ProcessorModel, numRows> rows = makeTable();
  return rows;
}

Row rowOf(llvm::StringRef triple, llvm::StringRef features) {
  auto has = [&](llvm::StringRef name) { return hasFeature(features, name); };
  if (triple.starts_with("aarch64") || triple.starts_with("arm64"))
    return AArch64;
  const bool amd = has("sse4a"); // AMD's alone
  if (has("avx512f") && has("avx512bw") && has("avx512dq") && has("avx512vl")) {
    if (amd) // those after Zen 5, too
      return has("avxvnni") || has("movdiri") || has("avx512vp2intersect") ? Zen5 : Zen4;
    return has("avx512fp16") ? SapphireRapids : has("pku") ? SkylakeX : V4;
  }
  if (!has("avx2") || !has("fma"))
    return Generic;
  return amd && has("vaes") ? Zen3 : V3;
}

} // namespace

bool hasFeature(llvm::StringRef features, llvm::StringRef name) {
  bool on = false;
  for (llvm::StringRef part : llvm::split(features, ','))
    if (part.size() > 1 && part.drop_front() == name)
      on = part[0] == '+';
  return on;
}

const ProcessorModel &modelOf(llvm::StringRef triple, llvm::StringRef features) { return table()[rowOf(triple, features)]; }

llvm::ArrayRef<ProcessorModel> processorModels() { return table(); }

} // namespace lathe::codegen
