// See KernelHarness.h.
#include "KernelHarness.h"
#include "Parsed.h"
#include "test/codegen/RowLayout.h"

#include "dialects/hlo/Constants.h"
#include "dialects/hlo/Evaluator.h"
#include "dialects/kernel/Kernel.h"
#include "passes/codegen/cpu/layout/Layout.h"

#include "mlir/Dialect/DLTI/DLTI.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"

#include <cmath>
#include <cstring>

using namespace mlir;

namespace lathe::test {

std::unique_ptr<MLIRContext> makeContext() {
  DialectRegistry registry;
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  auto c = std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  c->loadDialect<hlo::HloDialect, kernel::KernelDialect, cpu::CpuDialect, func::FuncDialect, DLTIDialect>();
  codegen::loadKernelDialects(*c);
  return c;
}

static int64_t evaluate(AffineMap map, const std::vector<int64_t> &symbols) {
  SmallVector<int64_t> s(symbols.begin(), symbols.end());
  s.resize(std::max<size_t>(s.size(), map.getNumSymbols()));
  return *hlo::evaluate(map.getResult(0), s);
}

KernelRun runKernel(const std::string &text, const std::vector<Tensor> &inputs, const std::string &cpuName) {
  Parsed p;
  if (!parse(text, p))
    return fail("parse: " + p.messages);
  Operation *op = nullptr;
  for (Operation &o : p.f.getBody().front())
    if (!isa<hlo::ConstantOp, func::ReturnOp>(o))
      op = &o;
  KernelRun run;
  run.symbols.assign(16, -1);
  for (auto [arg, t] : llvm::zip(p.f.getArguments(), inputs)) {
    auto type = cast<RankedTensorType>(arg.getType());
    if (hlo::toDType(type.getElementType()) != t.dtype())
      return fail("input of another element type");
    for (auto [i, e] : llvm::enumerate(hlo::getDims(type)))
      if (auto s = dyn_cast<AffineSymbolExpr>(e))
        run.symbols[s.getPosition()] = t.dim(i);
  }
  OwningOpRef<ModuleOp> out = ModuleOp::create(UnknownLoc::get(p.context.get()));
  auto emitted = cpu::emitKernel(op, *out, "k", targetFor(cpuName));
  if (failed(emitted))
    return fail("emit: " + p.messages);
  if (failed(mlir::verify(*out))) {
    std::string ir;
    llvm::raw_string_ostream os(ir);
    out->print(os);
    return fail("verify: " + p.messages + ir);
  }
  int64_t units = evaluate((*emitted)->getAttrOfType<AffineMapAttr>("kernel.extent").getValue(), run.symbols);
  int64_t scratchBytes = evaluate((*emitted)->getAttrOfType<AffineMapAttr>("kernel.scratch").getValue(), run.symbols);
  if (getenv("LATHE_DUMP_MLIR"))
    out->dump();
  auto jit = JitModule::compile(*out, cpuName);
  void *f = jit ? jit->lookup("k") : nullptr;
  if (!f)
    return fail("jit: " + p.messages);

  std::vector<Tensor> operands;
  std::vector<std::vector<uint8_t>> operandsApart(
      op->getNumOperands()); // with what no kernel may use between rows
  for (auto [k, v] : llvm::enumerate(op->getOperands())) {
    if (auto a = dyn_cast<BlockArgument>(v))
      operands.push_back(inputs[a.getArgNumber()]);
    else
      operands.push_back(*hlo::readConstant(v));
    const int64_t apart = kernel::operandRow(op, k);
    if (!apart)
      continue;
    const Tensor &t = operands.back();
    RowLayout layout(cast<RankedTensorType>(v.getType()), t.dims(), apart);
    operandsApart[k].assign(layout.bytes(), 0xFF);
    layout.place(t.data(), operandsApart[k].data());
  }
  constexpr int64_t guard = 256;
  // runs once in one go and once unit by unit
  std::vector<std::vector<std::vector<uint8_t>>> images;
  for (int mode = 0; mode < 2; ++mode) {
    std::vector<void *> pointers;
    for (auto [k, t] : llvm::enumerate(operands)) {
      RowLayout layout(cast<RankedTensorType>(op->getOperand(k).getType()), t.dims(),
                       kernel::operandRow(op, k));
      pointers.push_back(!operandsApart[k].empty() ? operandsApart[k].data() + layout.start
                         : t.numElements()         ? t.data()
                                                   : static_cast<void *>(&run));
    }
    std::vector<std::vector<uint8_t>> buffers;
    std::vector<int64_t> firsts; // bytes of a buffer before its rows
    for (Value v : op->getResults()) {
      auto type = cast<RankedTensorType>(v.getType());
      SmallVector<int64_t> dims, s;
      for (auto [k, x] : llvm::enumerate(run.symbols)) {
        auto info = hlo::lookupSymbol(*p.module, k);
        s.push_back(info && info->isData ? info->bound : x);
      }
      for (AffineExpr e : hlo::getDims(type))
        dims.push_back(*hlo::evaluate(e, s));
      RowLayout layout(type, dims, kernel::resultRow(cast<OpResult>(v)));
      buffers.emplace_back(layout.bytes() + 2 * guard + 64, 0xA5);
      firsts.push_back(layout.start);
    }
    std::vector<uint8_t *> starts;
    for (auto [b, first] : llvm::zip(buffers, firsts)) {
      auto a = (reinterpret_cast<uintptr_t>(b.data()) + guard + 63) / 64 * 64;
      starts.push_back(reinterpret_cast<uint8_t *>(a));
      pointers.push_back(starts.back() + first);
    }
    if (op->hasAttr("kernel.inplace"))
      std::memcpy(starts[0], operands[0].data(), operands[0].sizeBytes());
    std::vector<uint8_t> scratch(scratchBytes + 2 * guard + 64, 0x5A);
    auto aligned = reinterpret_cast<uint8_t *>((reinterpret_cast<uintptr_t>(scratch.data()) + guard + 63) / 64 * 64);
    pointers.push_back(aligned);
    pointers.push_back(run.symbols.data());
    pointers.push_back(&run.error);
    if (mode == 0) {
      JitModule::call(f, pointers, 0, units);
    } else {
      for (int64_t u = units - 1; u >= 0; --u)
        JitModule::call(f, pointers, u, u + 1);
    }
    for (int64_t i = 0; i < guard; ++i)
      if (aligned[-1 - i] != 0x5A || aligned[scratchBytes + i] != 0x5A)
        return fail("scratch overrun");
    if (mode == 0)
      run.outputs.clear();
    images.emplace_back();
    for (auto [k, v] : llvm::enumerate(op->getResults())) {
      auto type = cast<RankedTensorType>(v.getType());
      std::vector<int64_t> dims;
      SmallVector<int64_t> s(run.symbols.begin(), run.symbols.end());
      for (AffineExpr e : hlo::getDims(type))
        dims.push_back(*hlo::evaluate(e, s));
      Tensor t = Tensor::allocate(hlo::toDType(type.getElementType()), dims);
      RowLayout layout(type, dims, kernel::resultRow(cast<OpResult>(v)));
      for (int64_t i = 0; i < layout.count && layout.length; ++i) {
        uint8_t *row = starts[k] + layout.start + i * layout.distance, *end = row + layout.length;
        std::memcpy(static_cast<uint8_t *>(t.data()) + i * layout.length, row, layout.length);
        for (uint8_t *q = end; i + 1 < layout.count && q < row + layout.distance; ++q)
          if (*q != 0xA5)
            return fail("write between rows");
      }
      for (uint8_t *q = starts[k]; q < starts[k] + layout.start; ++q)
        if (*q != 0xA5)
          return fail("write before a row");
      for (uint8_t *q = buffers[k].data(); q < starts[k]; ++q)
        if (*q != 0xA5)
          return fail("write before a result");
      int64_t used = buffers[k].size() - (2 * guard + 64);
      for (uint8_t *q = starts[k] + used; q < buffers[k].data() + buffers[k].size(); ++q)
        if (*q != 0xA5)
          return fail("write past a result");
      auto image = static_cast<const uint8_t *>(t.data());
      images.back().emplace_back(image, image + t.sizeBytes());
      if (mode == 0)
        run.outputs.push_back(t);
    }
  }
  if (images[0] != images[1])
    return fail("chunks give other bits than one call");
  // what the function returns, in its order
  std::vector<Tensor> returned;
  for (Value v : p.f.getBody().front().getTerminator()->getOperands())
    if (auto r = dyn_cast<OpResult>(v); r && r.getOwner() == op)
      returned.push_back(run.outputs[r.getResultNumber()]);
  run.outputs = returned;
  run.ok = true;
  return run;
}

template <class T>
static void fill(Tensor &t, unsigned seed, double scale) {
  uint64_t s = seed * 2654435761u + 12345;
  for (int64_t i = 0; i < t.sizeBytes() / int64_t(sizeof(T)); ++i) {
    s = s * 6364136223846793005ull + 1442695040888963407ull;
    double u = double(s >> 11) / double(uint64_t(1) << 53);
    double v = (2 * u - 1) * scale;
    t.data<T>()[i] = std::is_floating_point_v<T> ? T(v) : T(int64_t(std::floor(v)));
  }
}

Tensor randomTensor(DType type, std::vector<int64_t> dims, unsigned seed, double scale) {
  Tensor t = Tensor::allocate(type, std::move(dims));
  switch (type) {
  case DType::Float64:
  case DType::Complex128:
    fill<double>(t, seed, scale);
    break;
  case DType::Float32:
  case DType::Complex64:
    fill<float>(t, seed, scale);
    break;
  case DType::Float16:
  case DType::BFloat16: {
    Tensor f = randomTensor(DType::Float32, t.dims(), seed, scale);
    for (int64_t i = 0; i < t.numElements(); ++i) {
      float v = f.data<float>()[i];
      uint32_t bits;
      std::memcpy(&bits, &v, 4);
      // truncated values are as good as rounded ones here
      uint16_t h = type == DType::BFloat16
                       ? bits >> 16
                       : uint16_t((bits >> 16 & 0x8000) |
                                  (std::fabs(v) < 6.2e-5 ? 0 : ((bits >> 13) & 0x3ffff) - (112 << 10)) % 0x7c00);
      t.data<uint16_t>()[i] = h;
    }
    break;
  }
  case DType::Bool:
    for (int64_t i = 0; i < t.numElements(); ++i)
      t.data<uint8_t>()[i] = ((i * 2654435761u + seed * 97) >> 7) & 1;
    break;
  case DType::Int8:
  case DType::Int4:
    fill<int8_t>(t, seed, scale);
    break;
  case DType::UInt8:
  case DType::UInt4:
    fill<int8_t>(t, seed, scale);
    for (int64_t i = 0; i < t.numElements(); ++i)
      t.data<uint8_t>()[i] &= type == DType::UInt4 ? 15 : 255;
    break;
  case DType::Int16:
  case DType::UInt16:
    fill<int16_t>(t, seed, scale);
    break;
  case DType::Int32:
  case DType::UInt32:
    fill<int32_t>(t, seed, scale);
    break;
  default:
    fill<int64_t>(t, seed, scale);
  }
  return t;
}

Tensor tensorOf(std::vector<float> v, std::vector<int64_t> dims) {
  return Tensor::vector<float>(DType::Float32, v).reshaped(std::move(dims));
}
Tensor tensorOf(std::vector<int32_t> v, std::vector<int64_t> dims) {
  return Tensor::vector<int32_t>(DType::Int32, v).reshaped(std::move(dims));
}

double valueAt(const Tensor &t, int64_t i, int part) {
  switch (t.dtype()) {
  case DType::Float32:
    return t.data<float>()[i];
  case DType::Float64:
    return t.data<double>()[i];
  case DType::Complex64:
    return t.data<float>()[2 * i + part];
  case DType::Complex128:
    return t.data<double>()[2 * i + part];
  case DType::BFloat16: {
    uint32_t b = uint32_t(t.data<uint16_t>()[i]) << 16;
    float f;
    std::memcpy(&f, &b, 4);
    return f;
  }
  case DType::Float16: {
    uint16_t h = t.data<uint16_t>()[i];
    int e = h >> 10 & 31, m = h & 1023;
    double v = e == 31 ? (m ? NAN : INFINITY) : e ? std::ldexp(m + 1024, e - 25) : std::ldexp(m, -24);
    return h >> 15 ? -v : v;
  }
  case DType::Int64:
    return double(t.data<int64_t>()[i]);
  case DType::UInt64:
    return double(t.data<uint64_t>()[i]);
  case DType::Int32:
    return t.data<int32_t>()[i];
  case DType::UInt32:
    return t.data<uint32_t>()[i];
  case DType::Int16:
    return t.data<int16_t>()[i];
  case DType::UInt16:
    return t.data<uint16_t>()[i];
  case DType::Int8:
  case DType::Int4:
    return t.data<int8_t>()[i];
  default:
    return t.data<uint8_t>()[i];
  }
}

double difference(const Tensor &a, const Tensor &b) {
  if (a.dtype() != b.dtype() || a.dims() != b.dims())
    return INFINITY;
  int parts = a.dtype() == DType::Complex64 || a.dtype() == DType::Complex128 ? 2 : 1;
  double worst = 0;
  for (int64_t i = 0; i < a.numElements(); ++i)
    for (int part = 0; part < parts; ++part) {
      double x = valueAt(a, i, part), y = valueAt(b, i, part);
      if (x == y || (std::isnan(x) && std::isnan(y)))
        continue;
      double d = std::fabs(x - y) / std::max(1.0, std::fabs(y));
      worst = std::max(worst, std::isnan(d) ? INFINITY : d);
    }
  return worst;
}

} // namespace lathe::test
