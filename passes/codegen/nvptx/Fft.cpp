// Fourier transforms of lines by many threads: the passes of FftLine.cpp, of which each member of a team does a part, between two places in
// shared memory. Short lines share a block. Lengths with a large prime factor, lines that do not fit, and the several dimensions of one op
// are one thread's for each line; nvptx-split-ffts leaves few of these.
#include "passes/codegen/library/Fft.h"

#include "dialects/hlo/Hlo.h"
#include "dialects/hlo/Shape.h"
#include "passes/codegen/nvptx/Block.h"
#include "passes/codegen/nvptx/Forms.h"

using namespace mlir;

namespace lathe::nvptx {

std::string whyNoFft(Operation *op) {
  return isa<hlo::FftOp>(op) ? codegen::whyNoTeamFft(op, fftSharedBytes) : "no Fourier transform";
}

LogicalResult emitFft(Operation *op, codegen::KernelBuilder &b) {
  const int64_t bytes = codegen::teamFftBytes(op);
  const int64_t size = std::clamp<int64_t>(llvm::PowerOf2Ceil(codegen::teamFftWidth(op)), 4, 256);
  const int64_t together = llvm::bit_floor(uint64_t(std::clamp<int64_t>(std::min(unitThreads / size, fftSharedBytes / bytes), 1, unitThreads)));
  BlockFrame frame(b, std::max(size * together, warpThreads));
  AffineExpr count = codegen::countFftLines(op);
  frame.setBlocks(hlo::simplify(count.ceilDiv(together)));
  b.setWork(1024);
  codegen::FftTeam team{b.remU(frame.thread, b.i64(size)), size, [&] { frame.barrier(); }};
  Value scratch = frame.shared(bytes * together), line = frame.block(), isLine;
  if (together > 1) {
    Value number = b.divU(frame.thread, b.i64(size)), lines = b.dim(count);
    scratch = b.ptrBytes(scratch, b.mul(number, b.i64(bytes)));
    line = b.add(b.mul(line, b.i64(together)), number);
    isLine = b.lt(line, lines);
    line = b.min(line, b.sub(lines, b.i64(1))); // all threads reach the barriers
  }
  codegen::emitTeamFft(op, b, team, scratch, line, isLine);
  return success();
}

} // namespace lathe::nvptx
