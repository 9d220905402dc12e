// Bare ops that copy, check or count: bitcast_convert, assume_shape, set_size, check, dynamic_update_slice, where,
// unique.
#include "dialects/hlo/Hlo.h"
#include "dialects/kernel/Kernel.h"
#include "passes/codegen/cpu/Bare.h"
#include "passes/codegen/cpu/Elemental.h"
#include "passes/codegen/cpu/Expr.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace lathe::cpu {

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

static Value bytesOf(KernelBuilder &b, Value tensor) {
  return b.mul(b.numElements(tensorType(tensor)), b.i64(elemBytes(elementType(tensor))));
}

/// From here on the inputs of a concatenate go through a table: code for each would take LLVM's time squared.
static constexpr size_t kTableFrom = 33;

// A row of the result a unit: the inputs' pieces one after the other, as plain bits. What lies there already
// is left alone.
LogicalResult emitConcatenate(Operation *op, KernelBuilder &b) {
  auto c = cast<hlo::ConcatenateOp>(op);
  auto out = tensorType(c.getResult());
  auto dims = hlo::getDims(out);
  int64_t d = c.getDimension(), bytes = elemBytes(out.getElementType());
  int64_t width = std::min<int64_t>(bytes, 8);
  Type carrier = IntegerType::get(b.getContext(), width * 8);
  AffineExpr outer = b.getAffineConstantExpr(1), inner = b.getAffineConstantExpr(bytes / width);
  for (int64_t i = 0; i < out.getRank(); ++i)
    if (i != d)
      (i < d ? outer : inner) = hlo::simplify((i < d ? outer : inner) * dims[i]);
  // rows that lie apart are those of the last dimension, which is put together then
  auto distanceOf = [&](int64_t apart, Value size) {
    return apart ? b.mul(b.i64(apart), b.dim(inner)) : size;
  };
  Value rowSize =
      distanceOf(kernel::resultRow(cast<OpResult>(c.getResult())), b.mul(b.dim(dims[d]), b.dim(inner)));
  unsigned lanes = b.target.lanes(carrier);
  bool masked = b.target.hasMaskedMemory(carrier);
  auto copy = [&](Value source, Value size, Value to) {
    if (outer == b.getAffineConstantExpr(1)) {
      emitCopy(b, b.ptrAt(b.results[0], carrier, to), source, b.mul(size, b.i64(width)));
      return;
    }
    (void)vectorLoop(b, b.i64(0), size, lanes, masked, [&](Value i, unsigned n, Value mask) {
      b.storeElem(carrier, b.loadElem(carrier, source, i, n, mask), b.results[0], b.add(to, i), mask);
      return success();
    });
  };
  /// An input to be copied: the elements of its piece, those from one to the next, and those before it in a
  /// row.
  struct Piece {
    Value source, size, distance, offset;
  };
  SmallVector<Piece> pieces;
  Value offset = b.i64(0);
  AffineExpr copied = b.getAffineConstantExpr(0);
  for (OpOperand &in : op->getOpOperands()) {
    const unsigned number = in.getOperandNumber();
    AffineExpr extent = hlo::getDim(tensorType(in.get()), d);
    Value size = b.mul(b.dim(extent), b.dim(inner));
    if (!kernel::isJoined(in)) {
      pieces.push_back({b.operands[number], size, distanceOf(kernel::operandRow(op, number), size), offset});
      copied = copied + extent;
    }
    offset = b.add(offset, size);
  }
  b.setExtent(outer);
  constexpr int64_t perElement = 3; // from the second cache and back
  b.setWork(perElement * hlo::constantValue(hlo::simplify(copied * inner)).value_or(256));
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

LogicalResult emitAssumeShape(Operation *op, KernelBuilder &b) {
  SmallVector<Value> in = b.dims(tensorType(op->getOperand(0))), out = b.dims(tensorType(op->getResult(0)));
  b.units([&](Value) {
    Value same = b.cstI(b.getI1Type(), 1);
    for (auto [x, y] : llvm::zip(in, out))
      same = b.both(same, b.eq(x, y));
    b.ifElse(same, {}, [&] {
      emitCopy(b, b.results[0], b.operands[0], bytesOf(b, op->getResult(0)));
      return SmallVector<Value>();
    }, [&] {
      b.setError(kErrCheckFailed);
      return SmallVector<Value>();
    });
  });
  return success();
}

static Value symbolAddress(KernelBuilder &b, int64_t symbol) {
  return b.ptrAt(b.sizes, b.getI64Type(), b.i64(symbol));
}

LogicalResult emitSetSize(Operation *op, KernelBuilder &b) {
  auto s = cast<hlo::SetSizeOp>(op);
  auto info = hlo::lookupSymbol(op->getParentOfType<ModuleOp>(), s.getSymbol());
  b.units([&](Value) {
    Value n = loadIndex(b, elementType(s.getOperand()), b.operands[0], b.i64(0));
    Value ok = b.ge(n, b.i64(0));
    Value bound;
    if (info && info->boundExpr)
      bound = b.dim(info->boundExpr);
    else if (info && info->bound >= 0)
      bound = b.i64(info->bound);
    if (bound)
      ok = b.both(ok, b.ge(bound, n));
    // a wrong size must not reach later kernels
    LLVM::StoreOp::create(b, b.select(ok, n, b.i64(0)), symbolAddress(b, s.getSymbol()), 8);
    Value bad = arith::XOrIOp::create(b, ok, b.cstI(b.getI1Type(), 1));
    b.ifThen(bad, [&] { b.setError(kErrSizeOutOfBound); });
  });
  return success();
}

LogicalResult emitCheck(Operation *op, KernelBuilder &b) {
  b.units([&](Value) {
    Value n = b.numElements(tensorType(op->getOperand(0)));
    Value bad = b.loop(b.i64(0), n, b.i64(1), ValueRange{b.cstI(b.getI1Type(), 0)}, [&](Value i, ValueRange a) {
                   E good(b, b.loadElem(b.getI1Type(), b.operands[0], i));
                   return SmallVector<Value>{E(b, a[0]) | !good};
                 })[0];
    b.ifThen(bad, [&] { b.setError(kErrCheckFailed); });
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

/// value != 0 as i1
static Value isNonZero(KernelBuilder &b, Type elem, Value v) {
  return emitConvert(b, v, elem, b.getI1Type());
}

LogicalResult emitWhere(Operation *op, KernelBuilder &b) {
  auto w = cast<hlo::WhereOp>(op);
  auto in = tensorType(w.getOperand());
  Type out = elementType(w.getIndices());
  int64_t rank = in.getRank();
  SmallVector<Value> dims = b.dims(in);
  b.units([&](Value) {
    Value n = b.numElements(in);
    Value count = b.loop(b.i64(0), n, b.i64(1), ValueRange{b.i64(0)}, [&](Value i, ValueRange a) {
      Value hit = isNonZero(b, in.getElementType(), b.loadElem(in.getElementType(), b.operands[0], i));
      return b.ifElse(hit, b.getI64Type(), [&] {
        SmallVector<Value> at = b.delinearize(i, dims);
        for (int64_t k = 0; k < rank; ++k)
          b.storeElem(out, emitConvert(b, at[k], b.getI64Type(), out), b.results[0],
                      b.add(b.mul(a[0], b.i64(rank)), b.i64(k)));
        return SmallVector<Value>{b.add(a[0], b.i64(1))};
      }, [&] { return SmallVector<Value>{a[0]}; });
    })[0];
    LLVM::StoreOp::create(b, count, symbolAddress(b, w.getSymbol()), 8);
  });
  return success();
}

// A hash table of first occurrences in scratch: [2n+1] slots, then [n] first positions, then [n] counts.
LogicalResult emitUnique(Operation *op, KernelBuilder &b) {
  auto u = cast<hlo::UniqueOp>(op);
  auto in = tensorType(u.getOperand());
  Type elem = in.getElementType();
  auto exprs = hlo::getDims(in);
  int64_t axis = u.getAxis(), rank = in.getRank();
  AffineExpr n = rank ? exprs[axis] : b.getAffineConstantExpr(1);
  AffineExpr outerE = b.getAffineConstantExpr(1), innerE = outerE;
  for (int64_t i = 0; i < rank; ++i)
    if (i != axis)
      (i < axis ? outerE : innerE) = hlo::simplify((i < axis ? outerE : innerE) * exprs[i]);
  b.setScratch(hlo::simplify(n * 32 + 64));
  Type i64 = b.getI64Type();
  Value count = b.dim(n), outer = b.dim(outerE), inner = b.dim(innerE);
  auto load = [&](Value p, Value i) -> Value { return b.loadElem(i64, p, i); };
  auto store = [&](Value v, Value p, Value i) { b.storeElem(i64, v, p, i); };
  // element e of slice s
  auto position = [&](Value s, Value e) {
    Value o = b.divU(e, inner), r = b.remU(e, inner);
    return b.add(b.mul(b.add(b.mul(o, count), s), inner), r);
  };
  b.units([&](Value) {
    Value slots = b.add(b.mul(count, b.i64(2)), b.i64(1));
    Value table = b.scratch, first = b.ptrAt(table, i64, slots), counts = b.ptrAt(first, i64, count);
    Value sliceSize = b.mul(outer, inner);
    b.loop(b.i64(0), slots, [&](Value i) { store(b.i64(-1), table, i); });
    auto hashOf = [&](Value s) {
      Value start = b.i64(0x2545F4914F6CDD1DLL);
      Value h = b.loop(b.i64(0), sliceSize, b.i64(1), ValueRange{start}, [&](Value e, ValueRange a) {
        E h(b, a[0]);
        auto mix = [&](E x) {
          if (x.isFloat()) // 0 and -0 are equal
            x = sel(x == 0.0, 0.0, x).bits();
          unsigned w = x.elem().getIntOrFloatBitWidth();
          E wide = w == 64 ? x : extU(x, 64);
          h = (h ^ wide) * int64_t(0x9E3779B97F4A7C15ULL);
          h = h ^ (h >> 29);
        };
        if (isa<ComplexType>(elem)) {
          auto part = [&](int64_t k) {
            Value p = b.add(b.mul(position(s, e), b.i64(2)), b.i64(k));
            return E(b, b.loadElem(cast<ComplexType>(elem).getElementType(), b.operands[0], p));
          };
          mix(part(0));
          mix(part(1));
        } else {
          mix(E(b, b.loadElem(elem, b.operands[0], position(s, e))));
        }
        return SmallVector<Value>{h};
      })[0];
      return b.remU(E(b, h) >> 1, slots);
    };
    auto equalSlices = [&](Value s, Value t) {
      return b.loop(b.i64(0), sliceSize, b.i64(1), ValueRange{b.cstI(b.getI1Type(), 1)},
                    [&](Value e, ValueRange a) {
                      Type real = elem;
                      Value same = a[0];
                      int64_t parts = 1;
                      if (auto c = dyn_cast<ComplexType>(elem)) {
                        real = c.getElementType();
                        parts = 2;
                      }
                      for (int64_t k = 0; k < parts; ++k) {
                        auto at = [&](Value p) { return b.add(b.mul(p, b.i64(parts)), b.i64(k)); };
                        E x(b, b.loadElem(real, b.operands[0], at(position(s, e))));
                        E y(b, b.loadElem(real, b.operands[0], at(position(t, e))));
                        same = b.both(same, x == y);
                      }
                      return SmallVector<Value>{same};
                    })[0];
    };
    Type indexType = elementType(u.getIndices()), countType = elementType(u.getCounts());
    Value distinct = b.loop(b.i64(0), count, b.i64(1), ValueRange{b.i64(0)}, [&](Value s, ValueRange a) {
      Value found = a[0];
      // state: slot, id (-1 while searching)
      SmallVector<Value> r = b.whileLoop(
          ValueRange{hashOf(s), b.i64(-1)}, [&](ValueRange v) { return b.lt(v[1], b.i64(0)); },
          [&](ValueRange v) {
            Value id = load(table, v[0]);
            return b.ifElse(b.lt(id, b.i64(0)), TypeRange{i64, i64}, [&] {
              store(found, table, v[0]);
              store(s, first, found);
              store(b.i64(0), counts, found);
              return SmallVector<Value>{v[0], found};
            }, [&] {
              Value same = equalSlices(load(first, id), s);
              Value next = b.add(v[0], b.i64(1));
              next = b.select(b.eq(next, slots), b.i64(0), next);
              return SmallVector<Value>{b.select(same, v[0], next), b.select(same, id, b.i64(-1))};
            });
          });
      Value id = r[1];
      b.storeElem(indexType, emitConvert(b, id, i64, indexType), b.results[1], s);
      store(b.add(load(counts, id), b.i64(1)), counts, id);
      return SmallVector<Value>{b.select(b.eq(id, found), b.add(found, b.i64(1)), found)};
    })[0];
    LLVM::StoreOp::create(b, distinct, symbolAddress(b, u.getSymbol()), 8);
    b.loop(b.i64(0), distinct, [&](Value k) {
      b.storeElem(countType, emitConvert(b, load(counts, k), i64, countType), b.results[2], k);
      Value s = load(first, k);
      b.loop(b.i64(0), outer, [&](Value o) {
        Value from = b.mul(b.add(b.mul(o, count), s), inner), to = b.mul(b.add(b.mul(o, distinct), k), inner);
        emitCopy(b, b.ptrAt(b.results[0], elem, to), b.ptrAt(b.operands[0], elem, from),
                 b.mul(inner, b.i64(elemBytes(elem))));
      });
    });
  });
  return success();
}

} // namespace lathe::cpu
