// What lowering learnt, as one dictionary of the module, `lathe.lowered`, so that the module alone says all that emission
// needs. Constants are listed in the order in which they lie in the pool: reading adds them again, which gives the same
// offsets.
#include "passes/lower/Lower.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

namespace lathe::lower {
namespace {

constexpr llvm::StringLiteral kLoweredAttr = "lathe.lowered";

/// Writes dictionaries.
struct Writer {
  Builder b;
  unsigned numSymbols;

  using Items = SmallVector<NamedAttribute>;
  void add(Items &items, StringRef key, StringRef text) { items.push_back(b.getNamedAttr(key, b.getStringAttr(text))); }
  void add(Items &items, StringRef key, int64_t number) { items.push_back(b.getNamedAttr(key, b.getI64IntegerAttr(number))); }
  void add(Items &items, StringRef key, Attribute value) { items.push_back(b.getNamedAttr(key, value)); }

  Attribute tensor(const TensorDesc &t) {
    Items items;
    add(items, "name", t.name);
    add(items, "tensor", t.tensor);
    add(items, "dtype", int64_t(t.dtype));
    add(items, "element_size", t.elementSize);
    add(items, "dims", AffineMapAttr::get(AffineMap::get(0, numSymbols, t.dims, b.getContext())));
    if (!t.scales.empty()) {
      add(items, "scales", b.getDenseF32ArrayAttr(t.scales));
      add(items, "zero_points", b.getDenseI64ArrayAttr(t.zeroPoints));
      add(items, "quantized_dim", t.quantizedDim);
    }
    return b.getDictionaryAttr(items);
  }
  template <typename C, typename F>
  Attribute list(const C &values, F one) {
    SmallVector<Attribute> attrs;
    for (const auto &v : values)
      attrs.push_back(one(v));
    return b.getArrayAttr(attrs);
  }
  Attribute tensors(const std::vector<TensorDesc> &list_) {
    return list(list_, [&](const TensorDesc &t) { return tensor(t); });
  }
  template <typename F>
  Attribute dictionary(F fill) {
    Items items;
    fill(items);
    return b.getDictionaryAttr(items);
  }
};

/// Reads them; what is missing or of another type leaves `ok` false.
struct Reader {
  DictionaryAttr d;
  bool &ok;

  template <typename A>
  A get(StringRef key) {
    auto a = d ? d.getAs<A>(key) : A();
    ok &= bool(a);
    return a;
  }
  std::string text(StringRef key) {
    auto a = get<StringAttr>(key);
    return a ? a.getValue().str() : std::string();
  }
  int64_t number(StringRef key) {
    auto a = get<IntegerAttr>(key);
    return a ? a.getInt() : 0;
  }
  template <typename F>
  void each(StringRef key, F one) {
    auto list = get<ArrayAttr>(key);
    if (!list)
      return;
    for (Attribute a : list)
      one(Reader{dyn_cast<DictionaryAttr>(a), ok});
  }
  TensorDesc tensor() {
    TensorDesc t;
    t.name = text("name");
    t.tensor = text("tensor");
    t.dtype = static_cast<DType>(number("dtype"));
    t.elementSize = static_cast<int32_t>(number("element_size"));
    if (auto map = get<AffineMapAttr>("dims"))
      t.dims.assign(map.getValue().getResults().begin(), map.getValue().getResults().end());
    if (!d || !d.contains("scales"))
      return t;
    auto scales = get<DenseF32ArrayAttr>("scales");
    auto zeroPoints = get<DenseI64ArrayAttr>("zero_points");
    if (!scales || !zeroPoints)
      return t;
    ok &= !scales.empty() && scales.size() == zeroPoints.size();
    t.scales.assign(scales.asArrayRef().begin(), scales.asArrayRef().end());
    t.zeroPoints.assign(zeroPoints.asArrayRef().begin(), zeroPoints.asArrayRef().end());
    t.quantizedDim = static_cast<int32_t>(number("quantized_dim"));
    return t;
  }
};

/// Items of the statistics and counts, by name.
template <typename M, typename F>
void forEachCount(M &m, F f) {
  f("arena_bytes", m.plan.arenaBytes);
  f("sum_of_buffers", m.plan.sumOfBuffers);
  f("buffers", m.plan.buffers);
  f("copies", m.plan.copies);
  f("in_place", m.plan.inPlace);
  f("kernels", m.kernels);
  f("kernel_calls", m.kernelCalls);
  f("scratch_bytes", m.scratchBytes);
  f("bf16_kernels", m.bf16Kernels);
  f("planned", m.planned);
}

} // namespace

void noteLowered(ModuleOp module, const LoweredModule &m) {
  Writer w{Builder(module.getContext()), unsigned(m.symbols.size())};
  Writer::Items all;
  w.add(all, "entries", w.list(m.entries, [&](const EntryDesc &e) {
    return w.dictionary([&](Writer::Items &items) {
      w.add(items, "name", e.name);
      w.add(items, "inputs", w.tensors(e.inputs));
      w.add(items, "outputs", w.tensors(e.outputs));
    });
  }));
  w.add(all, "sites", w.list(m.sites, [&](const SiteDesc &s) {
    return w.dictionary([&](Writer::Items &items) {
      w.add(items, "node", s.node);
      w.add(items, "op", s.op);
      w.add(items, "message", s.message);
    });
  }));
  w.add(all, "steps", w.list(m.steps, [&](const StepDesc &s) {
    return w.dictionary([&](Writer::Items &items) {
      w.add(items, "entry", s.entry);
      w.add(items, "nodes", s.nodes);
      w.add(items, "kernel", s.kernel);
      w.add(items, "flops", s.flops);
      w.add(items, "constant_bytes", s.constantBytes);
      w.add(items, "other_bytes", s.otherBytes);
    });
  }));
  w.add(all, "symbols", w.list(m.symbols, [&](const SymbolDesc &s) {
    return w.dictionary([&](Writer::Items &items) {
      w.add(items, "name", s.name);
      w.add(items, "is_data", int64_t(s.isData));
      w.add(items, "bound", s.bound);
    });
  }));
  w.add(all, "variables", w.list(m.variables, [&](const VariableDesc &v) {
    return w.dictionary([&](Writer::Items &items) {
      w.add(items, "tensor", w.tensor(v.tensor));
      w.add(items, "initial_offset", v.initialOffset);
    });
  }));
  SmallVector<Attribute> constants(m.pool.attributes().begin(), m.pool.attributes().end());
  w.add(all, "constants", w.b.getArrayAttr(constants));
  forEachCount(m, [&](StringRef key, int64_t value) { w.add(all, key, value); });
  w.add(all, "fallbacks", w.list(m.fallbacks, [&](const std::pair<const std::string, int64_t> &f) {
    return w.dictionary([&](Writer::Items &items) {
      w.add(items, "form", f.first);
      w.add(items, "kernels", f.second);
    });
  }));
  if (m.onDevice)
    w.add(all, "device", w.dictionary([&](Writer::Items &items) {
      w.add(items, "images", w.list(m.images, [&](const codegen::Image &image) {
        return w.dictionary([&](Writer::Items &one) {
          w.add(one, "target", image.target);
          w.add(one, "arch", int64_t(image.arch));
          w.add(one, "own", int64_t(image.own));
          w.add(one, "machine_code", int64_t(image.machineCode));
          w.add(one, "code", image.code);
        });
      }));
      w.add(items, "tools", m.tools);
      w.add(items, "host_bytes", m.hostBytes);
      w.add(items, "cells", m.cells);
      w.add(items, "launches", w.list(m.launches, [&](const codegen::Launch &l) {
        return w.dictionary([&](Writer::Items &launch) {
          w.add(launch, "name", l.name);
          w.add(launch, "has_scratch", int64_t(l.hasScratch));
          w.add(launch, "threads", l.threads);
        });
      }));
    }));
  module->setAttr(kLoweredAttr, w.b.getDictionaryAttr(all));
}

FailureOr<LoweredModule> readLowered(ModuleOp module) {
  bool ok = true;
  Reader r{module->getAttrOfType<DictionaryAttr>(kLoweredAttr), ok};
  LoweredModule m;
  r.each("entries", [&](Reader e) {
    EntryDesc &entry = m.entries.emplace_back();
    entry.name = e.text("name");
    e.each("inputs", [&](Reader t) { entry.inputs.push_back(t.tensor()); });
    e.each("outputs", [&](Reader t) { entry.outputs.push_back(t.tensor()); });
  });
  r.each("sites", [&](Reader s) { m.sites.push_back({s.text("node"), s.text("op"), s.text("message")}); });
  r.each("steps", [&](Reader s) {
    m.steps.push_back({int(s.number("entry")), s.text("nodes"), s.text("kernel"), s.number("flops"), s.number("constant_bytes"),
                       s.number("other_bytes")});
  });
  r.each("symbols", [&](Reader s) { m.symbols.push_back({s.text("name"), s.number("is_data") != 0, s.number("bound")}); });
  r.each("variables", [&](Reader v) {
    m.variables.push_back({Reader{v.get<DictionaryAttr>("tensor"), ok}.tensor(), v.number("initial_offset")});
  });
  if (auto constants = r.get<ArrayAttr>("constants"))
    for (Attribute value : constants) {
      auto elements = dyn_cast<ElementsAttr>(value);
      if (!elements || failed(m.pool.add(elements, module.getLoc())))
        return module.emitError() << "a constant of " << kLoweredAttr << " cannot be read";
    }
  forEachCount(m, [&](StringRef key, auto &value) { value = r.number(key); });
  r.each("fallbacks", [&](Reader f) { m.fallbacks[f.text("form")] = f.number("kernels"); });
  if (auto device = r.d ? r.d.getAs<DictionaryAttr>("device") : DictionaryAttr()) {
    m.onDevice = true;
    Reader d{device, ok};
    d.each("images", [&](Reader i) {
      m.images.push_back({i.text("target"), int(i.number("arch")), i.number("own") != 0, i.number("machine_code") != 0, i.text("code")});
    });
    m.tools = d.text("tools");
    m.hostBytes = d.number("host_bytes");
    m.cells = d.number("cells");
    d.each("launches", [&](Reader l) { m.launches.push_back({l.text("name"), l.number("has_scratch") != 0, int(l.number("threads"))}); });
  }
  if (!ok)
    return module.emitError() << "the module has not been lowered: " << kLoweredAttr << " is missing or incomplete";
  return m;
}

} // namespace lathe::lower
