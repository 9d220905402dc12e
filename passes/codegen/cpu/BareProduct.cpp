// dot_general and convolution with any dimension numbers and element types: plain loops, for what the product
// generators do not take.
#include "dialects/hlo/Hlo.h"
#include "passes/codegen/cpu/Bare.h"
#include "passes/codegen/cpu/Complex.h"
#include "passes/codegen/cpu/ElementEmitter.h"

using namespace mlir;

namespace lathe::cpu {

using hlo::elementType;
using hlo::tensorType;

namespace {
/// Multiply and add in the type that products are summed in.
struct Accumulator {
  KernelBuilder &b;
  Type lhs, rhs, result, acc;

  Accumulator(KernelBuilder &b, Type lhs, Type rhs, Type result) : b(b), lhs(lhs), rhs(rhs), result(result) {
    // narrow floats sum in f32 and round once
    bool narrow = isa<FloatType>(result) && result.getIntOrFloatBitWidth() < 32;
    acc = narrow ? Type(b.getF32Type()) : result;
  }
  Value zero() { return b.cstI(regType(acc), 0); }
  Value step(Value sum, Value x, Value y) {
    x = emitConvert(b, x, lhs, acc);
    y = emitConvert(b, y, rhs, acc);
    if (isa<ComplexType>(acc))
      return pack(unpack(b, sum) + unpack(b, x) * unpack(b, y));
    E s(b, sum), p(b, x), q(b, y);
    if (acc.isInteger(1))
      return s | (p & q);
    return s.isFloat() ? fma(p, q, s) : s + p * q;
  }
  Value finish(Value sum) { return emitConvert(b, sum, acc, result); }
};
} // namespace

LogicalResult emitDotGeneral(Operation *op, KernelBuilder &b) {
  Value lhs = op->getOperand(0), rhs = op->getOperand(1);
  auto lt = tensorType(lhs), rt = tensorType(rhs), out = tensorType(op->getResult(0));
  SmallVector<int64_t> lb, rb, lc, rc;
  if (auto d = dyn_cast<hlo::DotGeneralOp>(op)) {
    auto n = d.getDotDimensionNumbers();
    lb.assign(n.getLhsBatchingDimensions().begin(), n.getLhsBatchingDimensions().end());
    rb.assign(n.getRhsBatchingDimensions().begin(), n.getRhsBatchingDimensions().end());
    lc.assign(n.getLhsContractingDimensions().begin(), n.getLhsContractingDimensions().end());
    rc.assign(n.getRhsContractingDimensions().begin(), n.getRhsContractingDimensions().end());
  } else {
    lc = {lt.getRank() - 1};
    rc = {0};
  }
  SmallVector<Value> lDims = b.dims(lt), rDims = b.dims(rt), oDims = b.dims(out), kDims;
  for (int64_t d : lc)
    kDims.push_back(lDims[d]);
  auto outExprs = hlo::getDims(out);
  int64_t last = out.getRank() - 1;
  AffineExpr rows = b.getAffineConstantExpr(1);
  for (int64_t i = 0; i < last; ++i)
    rows = hlo::simplify(rows * outExprs[i]);
  b.setExtent(rows);
  b.setWork(4096);
  Accumulator a(b, lt.getElementType(), rt.getElementType(), out.getElementType());
  b.units([&](Value unit) {
    SmallVector<Value> lead = b.delinearize(unit, ArrayRef<Value>(oDims).take_front(std::max<int64_t>(last, 0)));
    auto one = [&](ValueRange index) {
      SmallVector<Value> li(lt.getRank()), ri(rt.getRank());
      unsigned next = 0;
      for (auto [x, y] : llvm::zip(lb, rb)) {
        li[x] = ri[y] = index[next++];
      }
      for (int64_t i = 0; i < lt.getRank(); ++i)
        if (!llvm::is_contained(lb, i) && !llvm::is_contained(lc, i))
          li[i] = index[next++];
      for (int64_t i = 0; i < rt.getRank(); ++i)
        if (!llvm::is_contained(rb, i) && !llvm::is_contained(rc, i))
          ri[i] = index[next++];
      std::function<Value(size_t, Value)> nest = [&](size_t k, Value sum) -> Value {
        if (k == lc.size())
          return a.step(sum, b.loadElem(lt.getElementType(), b.operands[0], b.linearize(li, lDims)),
                        b.loadElem(rt.getElementType(), b.operands[1], b.linearize(ri, rDims)));
        return b.loop(b.i64(0), kDims[k], b.i64(1), ValueRange{sum}, [&](Value iv, ValueRange s) {
          li[lc[k]] = ri[rc[k]] = iv;
          return SmallVector<Value>{nest(k + 1, s[0])};
        })[0];
      };
      b.storeElem(out.getElementType(), a.finish(nest(0, a.zero())), b.results[0], b.linearize(index, oDims));
    };
    if (last < 0) {
      one({});
      return;
    }
    b.loop(b.i64(0), oDims[last], [&](Value j) {
      SmallVector<Value> index(lead);
      index.push_back(j);
      one(index);
    });
  });
  return success();
}

LogicalResult emitConvolution(Operation *op, KernelBuilder &b) {
  auto c = cast<hlo::ConvolutionOp>(op);
  auto d = c.getDimensionNumbers();
  auto lt = tensorType(c.getLhs()), rt = tensorType(c.getRhs()), out = tensorType(c.getResult());
  size_t spatial = d.getInputSpatialDimensions().size();
  SmallVector<int64_t> stride = hlo::getListOr(c.getWindowStrides(), spatial, 1),
                       lhsDil = hlo::getListOr(c.getLhsDilation(), spatial, 1),
                       rhsDil = hlo::getListOr(c.getRhsDilation(), spatial, 1);
  auto padding = hlo::getPadding(cast_or_null<DenseIntElementsAttr>(c.getPaddingAttr()), spatial);
  SmallVector<bool> reversal(spatial, false);
  if (auto r = c.getWindowReversal())
    reversal.assign(r->begin(), r->end());
  SmallVector<Value> lDims = b.dims(lt), rDims = b.dims(rt), oDims = b.dims(out);
  auto outExprs = hlo::getDims(out);
  AffineExpr rows = b.getAffineConstantExpr(1);
  for (int64_t i = 0; i + 1 < out.getRank(); ++i)
    rows = hlo::simplify(rows * outExprs[i]);
  b.setExtent(rows);
  b.setWork(4096);
  Accumulator a(b, lt.getElementType(), rt.getElementType(), out.getElementType());
  Value groups = b.i64(c.getFeatureGroupCount()), batchGroups = b.i64(c.getBatchGroupCount());
  Value outFeatures = oDims[d.getOutputFeatureDimension()];
  Value channels = rDims[d.getKernelInputFeatureDimension()];
  b.units([&](Value unit) {
    SmallVector<Value> lead = b.delinearize(unit, ArrayRef<Value>(oDims).drop_back());
    b.loop(b.i64(0), oDims.back(), [&](Value j) {
      SmallVector<Value> index(lead);
      index.push_back(j);
      Value f = index[d.getOutputFeatureDimension()], n = index[d.getOutputBatchDimension()];
      Value group = b.divU(b.mul(f, groups), outFeatures);
      // with batch groups a feature reads its own part of the batch
      Value batch = b.add(n, b.mul(b.divU(b.mul(f, batchGroups), outFeatures), oDims[d.getOutputBatchDimension()]));
      SmallVector<Value> li(lt.getRank()), ri(rt.getRank());
      li[d.getInputBatchDimension()] = batch;
      ri[d.getKernelOutputFeatureDimension()] = f;
      std::function<Value(size_t, Value)> nest = [&](size_t i, Value sum) -> Value {
        if (i == spatial)
          return b.loop(b.i64(0), channels, b.i64(1), ValueRange{sum}, [&](Value ch, ValueRange s) {
            li[d.getInputFeatureDimension()] = b.add(b.mul(group, channels), ch);
            ri[d.getKernelInputFeatureDimension()] = ch;
            return SmallVector<Value>{
                a.step(s[0], b.loadElem(lt.getElementType(), b.operands[0], b.linearize(li, lDims)),
                       b.loadElem(rt.getElementType(), b.operands[1], b.linearize(ri, rDims)))};
          })[0];
        Value size = rDims[d.getKernelSpatialDimensions()[i]];
        return b.loop(b.i64(0), size, b.i64(1), ValueRange{sum}, [&](Value k, ValueRange s) {
          Value o = index[d.getOutputSpatialDimensions()[i]];
          Value pos = b.sub(b.add(b.mul(o, b.i64(stride[i])), b.mul(k, b.i64(rhsDil[i]))), b.i64(padding[i].first));
          Value inside = b.ge(pos, b.i64(0));
          if (lhsDil[i] != 1) {
            Value dil = b.i64(lhsDil[i]);
            inside = b.both(inside, b.eq(arith::RemUIOp::create(b, pos, dil), b.i64(0)));
            pos = arith::DivUIOp::create(b, pos, dil);
          }
          int64_t inDim = d.getInputSpatialDimensions()[i];
          inside = b.both(inside, b.lt(pos, lDims[inDim]));
          return b.ifElse(inside, s[0].getType(), [&] {
            li[inDim] = pos;
            ri[d.getKernelSpatialDimensions()[i]] = reversal[i] ? b.sub(b.sub(size, b.i64(1)), k) : k;
            return SmallVector<Value>{nest(i + 1, s[0])};
          }, [&] { return SmallVector<Value>{s[0]}; });
        })[0];
      };
      b.storeElem(out.getElementType(), a.finish(nest(0, a.zero())), b.results[0], b.linearize(index, oDims));
    });
  });
  return success();
}

} // namespace lathe::cpu
