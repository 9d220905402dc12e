// Copies of whole tensors and of parts: concatenate, bitcast_convert, dynamic_update_slice.
#include "dialects/hlo/Hlo.h"
#include "dialects/kernel/Kernel.h"
#include "passes/codegen/element/Expr.h"
#include "passes/codegen/element/Lanes.h"
#include "passes/codegen/library/Joined.h"
#include "passes/codegen/library/Library.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace lathe::codegen {

using hlo::elementType;
using hlo::tensorType;

void emitCopy(KernelBuilder &b, Value to, Value from, Value bytes) {
  LLVM::MemcpyOp::create(b, to, from, bytes, /*isVolatile=*/false);
}

Value loadIndex(KernelBuilder &b, Type elem, Value base, Value at) {
  Value v = b.loadElem(elem, base, at);
  if (v.getType().isInteger(64))
    return v;
  return isUnsignedElem(elem) ? Value(arith::ExtUIOp::create(b, b.getI64Type(), v))
                              : Value(arith::ExtSIOp::create(b, b.getI64Type(), v));
}

Value bytesOf(KernelBuilder &b, Value tensor) {
  return b.mul(b.numElements(tensorType(tensor)), b.i64(elemBytes(elementType(tensor))));
}

/// From here on the inputs of a concatenate go through a table: code for each would take LLVM's time squared.
static constexpr size_t kTableFrom = 33;

Joined::Joined(hlo::ConcatenateOp op, KernelBuilder &b) {
  auto out = tensorType(op.getResult());
  auto dims = hlo::getDims(out);
  const int64_t along = op.getDimension(), bytes = elemBytes(out.getElementType());
  wordBytes = std::min<int64_t>(bytes, 8);
  carrier = IntegerType::get(b.getContext(), wordBytes * 8);
  AffineExpr inner = b.getAffineConstantExpr(bytes / wordBytes), offset = b.getAffineConstantExpr(0);
  rows = b.getAffineConstantExpr(1);
  copied = offset;
  for (int64_t i = 0; i < out.getRank(); ++i)
    if (i != along)
      (i < along ? rows : inner) = hlo::simplify((i < along ? rows : inner) * dims[i]);
  // rows that lie apart are those of the last dimension, which is put together then
  auto distance = [&](int64_t apart, AffineExpr size) { return hlo::simplify(apart ? inner * apart : size); };
  for (OpOperand &in : op->getOpOperands()) {
    const AffineExpr size = hlo::simplify(hlo::getDim(tensorType(in.get()), along) * inner);
    if (!kernel::isJoined(in)) {
      const unsigned n = in.getOperandNumber();
      pieces.push_back({b.operands[n], size, distance(kernel::operandRow(op, n), size), offset, copied});
      copied = hlo::simplify(copied + size);
    }
    offset = hlo::simplify(offset + size);
  }
  resultRow = distance(kernel::resultRow(cast<OpResult>(op.getResult())), offset);
}

// A row of the result a unit: the inputs' pieces one after the other, as plain bits.
LogicalResult emitConcatenate(Operation *op, KernelBuilder &b) {
  const Joined joined(cast<hlo::ConcatenateOp>(op), b);
  const Type carrier = joined.carrier;
  Value rowSize = b.dim(joined.resultRow);
  unsigned lanes = b.target.lanes(carrier);
  bool masked = b.target.hasMaskedMemory(carrier);
  auto copy = [&](Value source, Value size, Value to) {
    if (joined.rows == b.getAffineConstantExpr(1)) {
      emitCopy(b, b.ptrAt(b.results[0], carrier, to), source, b.mul(size, b.i64(joined.wordBytes)));
      return;
    }
    (void)vectorLoop(b, b.i64(0), size, lanes, masked, [&](Value i, unsigned n, Value mask) {
      b.storeElem(carrier, b.loadElem(carrier, source, i, n, mask), b.results[0], b.add(to, i), mask);
      return success();
    });
  };
  struct Piece {
    Value source, size, distance, offset;
  };
  SmallVector<Piece> pieces;
  for (const Joined::Piece &p : joined.pieces)
    pieces.push_back({p.source, b.dim(p.size), b.dim(p.distance), b.dim(p.offset)});
  b.setExtent(joined.rows);
  const double copiedElements = static_cast<double>(hlo::constantValue(joined.copied).value_or(256));
  b.setWork(static_cast<int64_t>(b.target.copyWork * copiedElements));
  if (pieces.size() >= kTableFrom) {
    Type word = b.getI64Type();
    const int64_t tableBytes = pieces.size() * 8;
    Value sources = b.alloca(tableBytes), sizes = b.alloca(tableBytes), distances = b.alloca(tableBytes),
          offsets = b.alloca(tableBytes);
    for (auto [k, piece] : llvm::enumerate(pieces)) {
      LLVM::StoreOp::create(b, piece.source, b.ptrAt(sources, word, b.i64(k)));
      b.storeElem(word, piece.size, sizes, b.i64(k));
      b.storeElem(word, piece.distance, distances, b.i64(k));
      b.storeElem(word, piece.offset, offsets, b.i64(k));
    }
    b.units([&](Value row) {
      Value first = b.mul(row, rowSize);
      b.loop(b.i64(0), b.i64(pieces.size()), [&](Value k) {
        Value source = LLVM::LoadOp::create(b, b.results[0].getType(), b.ptrAt(sources, word, k));
        Value from = b.ptrAt(source, carrier, b.mul(row, b.loadElem(word, distances, k)));
        copy(from, b.loadElem(word, sizes, k), b.add(first, b.loadElem(word, offsets, k)));
      });
    });
    return success();
  }
  b.units([&](Value row) {
    Value first = b.mul(row, rowSize);
    for (const Piece &piece : pieces)
      copy(b.ptrAt(piece.source, carrier, b.mul(row, piece.distance)), piece.size,
           b.add(first, piece.offset));
  });
  return success();
}

LogicalResult emitBitcastConvert(Operation *op, KernelBuilder &b) {
  Type in = elementType(op->getOperand(0)), out = elementType(op->getResult(0));
  auto narrow = [](Type t) { return t.isIntOrFloat() && t.getIntOrFloatBitWidth() < 8; };
  if (!narrow(in) && !narrow(out)) {
    b.units([&](Value) { emitCopy(b, b.results[0], b.operands[0], bytesOf(b, op->getResult(0))); });
    return success();
  }
  // four-bit and boolean elements take a byte each: split and join by hand
  int64_t wi = in.getIntOrFloatBitWidth(), wo = out.getIntOrFloatBitWidth();
  auto carrier = [&](Type t, int64_t w) -> Type {
    return w < 8 ? Type(t) : Type(IntegerType::get(b.getContext(), w));
  };
  Type ti = carrier(in, wi), to = carrier(out, wo);
  b.units([&](Value) {
    b.loop(b.i64(0), b.numElements(tensorType(wi >= wo ? op->getOperand(0) : op->getResult(0))), [&](Value i) {
      if (wi >= wo) {
        int64_t n = wi / wo;
        Value x = b.loadElem(ti, b.operands[0], i);
        for (int64_t k = 0; k < n; ++k) {
          E piece(b, x);
          if (k)
            piece = piece >> (k * wo);
          Value v = wi == wo ? piece.v : truncI(piece, wo).v;
          b.storeElem(to, v, b.results[0], b.add(b.mul(i, b.i64(n)), b.i64(k)));
        }
        return;
      }
      int64_t n = wo / wi;
      E sum;
      for (int64_t k = 0; k < n; ++k) {
        E piece = extU(E(b, b.loadElem(ti, b.operands[0], b.add(b.mul(i, b.i64(n)), b.i64(k)))), wo);
        sum = k ? sum | (piece << (k * wi)) : piece;
      }
      b.storeElem(to, sum, b.results[0], i);
    });
  });
  return success();
}

LogicalResult emitDynamicUpdateSlice(Operation *op, KernelBuilder &b) {
  auto s = cast<hlo::DynamicUpdateSliceOp>(op);
  auto type = tensorType(s.getOperand()), up = tensorType(s.getUpdate());
  Type elem = type.getElementType();
  bool inPlace = op->hasAttr("kernel.inplace");
  auto exprs = hlo::getDims(type), upExprs = hlo::getDims(up);
  SmallVector<Value> dims = b.dims(type), sizes = b.dims(up);
  int64_t rank = type.getRank();
  // trailing dimensions that are replaced whole, and the one before them, form runs
  int64_t run = rank - 1;
  while (run > 0 && hlo::equalDims(exprs[run], upExprs[run]))
    --run;
  AffineExpr runs = b.getAffineConstantExpr(1);
  for (int64_t i = 0; i < run; ++i)
    runs = hlo::simplify(runs * upExprs[i]);
  SmallVector<Value> runDims(ArrayRef<Value>(sizes).take_front(std::max<int64_t>(run, 0)));
  if (inPlace) {
    b.setExtent(runs);
    b.setWork(64);
  }
  auto copyRun = [&](Value unit) {
    if (rank == 0) {
      b.storeElem(elem, b.loadElem(elem, b.operands[1], b.i64(0)), b.results[0], b.i64(0));
      return;
    }
    SmallVector<Value> at = b.delinearize(unit, runDims), from(at), to;
    from.resize(rank, b.i64(0));
    for (int64_t i = 0; i < rank; ++i) {
      Value start = loadIndex(b, elementType(s.getStartIndices()[i]), b.operands[2 + i], b.i64(0));
      start = b.max(b.min(start, b.sub(dims[i], sizes[i])), b.i64(0));
      to.push_back(i < run ? b.add(start, at[i]) : start);
    }
    Value count = b.i64(1);
    for (int64_t i = run; i < rank; ++i)
      count = b.mul(count, sizes[i]);
    emitCopy(b, b.ptrAt(b.results[0], elem, b.linearize(to, dims)),
             b.ptrAt(b.operands[1], elem, b.linearize(from, sizes)), b.mul(count, b.i64(elemBytes(elem))));
  };
  if (inPlace) {
    b.units(copyRun);
    return success();
  }
  b.units([&](Value) {
    emitCopy(b, b.results[0], b.operands[0], bytesOf(b, s.getOperand()));
    b.loop(b.i64(0), b.dim(runs), copyRun);
  });
  return success();
}

} // namespace lathe::codegen
