// Results of a size that the data decide: where, unique.
#include "dialects/hlo/Hlo.h"
#include "passes/codegen/element/ElementEmitter.h"
#include "passes/codegen/element/Expr.h"
#include "passes/codegen/library/Library.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace lathe::codegen {

using hlo::elementType;
using hlo::tensorType;

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

} // namespace lathe::codegen
