#include "compiler/hosted/TfliteBytes.h"

#include "compiler/hosted/ByteWriter.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Location.h"

#include <map>

using namespace mlir;

namespace lathe::hosted {
namespace {

class Writer : public ByteWriter {
public:
  explicit Writer(int64_t maxBytes) : maxBytes(maxBytes) {}

  bool attribute(const tf::AttrValue &value) {
    if (value.value_case() != tf::AttrValue::kList) {
      const Kind kind = kindOf(value);
      number(kind);
      return kind != Empty && single(value, kind);
    }
    const tf::AttrValue::ListValue &given = value.list();
    return list(given.i(), Int, [this](int64_t v) { number(v); }) || list(given.f(), Float, [this](float v) { number(v); }) ||
           list(given.b(), Bool, [this](bool v) { number(static_cast<uint8_t>(v)); }) ||
           list(given.s(), Text, [this](const std::string &v) { text(v); }) ||
           list(given.type(), Type, [this](int v) { number(static_cast<uint32_t>(v)); }) || shapes(given) || tensors(given) || none(given);
  }

private:
  static Kind kindOf(const tf::AttrValue &value) {
    switch (value.value_case()) {
    case tf::AttrValue::kI: return Int;
    case tf::AttrValue::kF: return Float;
    case tf::AttrValue::kB: return Bool;
    case tf::AttrValue::kS: return Text;
    case tf::AttrValue::kType: return Type;
    case tf::AttrValue::kShape: return Shape;
    case tf::AttrValue::kTensor: return TensorKind;
    default: return Empty;
    }
  }
  bool single(const tf::AttrValue &value, Kind kind) {
    switch (kind) {
    case Int: number(value.i()); return true;
    case Float: number(value.f()); return true;
    case Bool: number(static_cast<uint8_t>(value.b())); return true;
    case Text: text(value.s()); return true;
    case Type: number(static_cast<uint32_t>(value.type())); return true;
    case Shape: return one(value.shape());
    default: return one(value.tensor());
    }
  }
  bool one(const tf::TensorShapeProto &proto) {
    auto dims = graphdef::decodeShape(proto);
    if (dims.ok())
      shape(*dims ? std::optional(llvm::ArrayRef<int64_t>(**dims)) : std::nullopt);
    return dims.ok();
  }
  bool one(const tf::TensorProto &proto) {
    auto value = graphdef::decodeTensor(proto, maxBytes);
    if (value.ok())
      tensor(*value);
    return value.ok();
  }
  void start(Kind kind, int n) {
    number(List);
    number(kind);
    count(static_cast<size_t>(n));
  }
  template <typename Values, typename F>
  bool list(const Values &values, Kind kind, F write) {
    if (values.empty())
      return false;
    start(kind, values.size());
    for (const auto &v : values)
      write(v);
    return true;
  }
  bool shapes(const tf::AttrValue::ListValue &given) {
    bool ok = given.shape_size() > 0;
    if (ok)
      start(Shape, given.shape_size());
    for (const tf::TensorShapeProto &v : given.shape())
      ok = ok && one(v);
    return ok;
  }
  bool tensors(const tf::AttrValue::ListValue &given) {
    bool ok = given.tensor_size() > 0;
    if (ok)
      start(TensorKind, given.tensor_size());
    for (const tf::TensorProto &v : given.tensor())
      ok = ok && one(v);
    return ok;
  }
  bool none(const tf::AttrValue::ListValue &given) {
    number(Empty);
    return graphdef::listSize(given) == 0;
  }

  const int64_t maxBytes;
};

class GraphWriter {
public:
  GraphWriter(MLIRContext *context, int64_t maxBytes) : context(context), w(maxBytes) {}

  FailureOr<std::string> run(llvm::ArrayRef<HostEntry> entries) {
    w.bytes = "LHG1";
    w.count(entries.size());
    bool ok = true;
    for (const HostEntry &entry : entries)
      ok &= write(entry);
    if (!ok)
      return failure();
    return std::move(w.bytes);
  }

private:
  bool write(const HostEntry &entry) {
    bool ok = true;
    w.text(entry.name);
    w.number(static_cast<uint8_t>(entry.once));
    w.count(entry.inputs.size());
    for (const TensorSpec &spec : entry.inputs)
      w.spec(spec);
    w.count(entry.outputs.size());
    for (auto [spec, from] : llvm::zip_equal(entry.outputs, entry.results)) {
      w.spec(spec);
      endpoint(from);
    }
    w.count(entry.nodes.size());
    for (const HostNode &node : entry.nodes)
      ok &= write(node);
    return ok;
  }
  bool write(const HostNode &node) {
    bool ok = true;
    if (node.node) {
      w.text(node.node->name());
      w.text(node.node->op());
      // in the order of their names: the map's own differs from run to run
      std::map<std::string, const tf::AttrValue *> attrs;
      for (const auto &[name, value] : node.node->attrs())
        attrs[name] = &value;
      w.count(attrs.size());
      for (auto [name, value] : attrs) {
        w.text(name);
        if (!w.attribute(*value))
          ok = fail(node, "attribute '" + name + "' has no form in a hosted object: functions have none");
      }
    } else {
      w.text(node.launch);
      w.text("LatheLaunch");
      w.count(1);
      w.text("entry");
      w.number(Text);
      w.text(node.launch);
    }
    w.count(node.inputs.size());
    for (const HostEndpoint &e : node.inputs) {
      if (e.node == UINT32_MAX)
        ok = fail(node, "reads a tensor before it is written");
      endpoint(e);
    }
    w.count(node.controls.size());
    for (uint32_t c : node.controls)
      w.number(c);
    w.count(node.outputs.size());
    for (DType type : node.outputs)
      w.type(type);
    return ok;
  }
  bool fail(const HostNode &node, const std::string &what) {
    if (node.node)
      emitError(UnknownLoc::get(context)) << "node '" << node.node->name() << "' (" << node.node->op() << "): " << what;
    else
      emitError(UnknownLoc::get(context)) << "compiled part '" << node.launch << "': " << what;
    return false;
  }
  void endpoint(const HostEndpoint &e) {
    w.number(e.node);
    w.number(e.port);
  }

  MLIRContext *context;
  Writer w;
};

} // namespace

FailureOr<std::string> writeGraph(MLIRContext *context, llvm::ArrayRef<HostEntry> entries, int64_t maxBytes) {
  return GraphWriter(context, maxBytes).run(entries);
}

} // namespace lathe::hosted
