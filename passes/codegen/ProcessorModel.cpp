#include "passes/codegen/ProcessorModel.h"

#include "llvm/ADT/StringExtras.h"

#include <array>

namespace lathe::codegen {
namespace {

enum Row { Generic, AArch64, Zen4, Zen5, SapphireRapids, numRows };

std::array<ProcessorModel, numRows> makeTable() {
  std::array<ProcessorModel, numRows> t;
  t[AArch64].name = "aarch64";

  t[Zen4].name = "zen4";
  t[Zen4].streamBytes = 8;
  t[Zen4].fastDivision = true; // 6 cycles
  t[Zen4].fmas = 1;            // it does vectors of 512 bits by halves

  t[Zen5] = t[Zen4];
  t[Zen5].name = "zen5";
  t[Zen5].fmas = 2; // and divides in 2.5 cycles

  t[SapphireRapids].name = "sapphire-rapids";
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
  if (!has("avx512f") || !has("avx512bw") || !has("avx512dq") || !has("avx512vl"))
    return Generic;
  if (has("sse4a")) // AMD's alone
    return has("avxvnni") || has("movdiri") || has("avx512vp2intersect") ? Zen5 : Zen4;
  return has("avx512fp16") ? SapphireRapids : Generic;
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
