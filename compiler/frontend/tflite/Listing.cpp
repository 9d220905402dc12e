// The operators of a .tflite file as text.
#include "compiler/frontend/tflite/Listing.h"

#include "compiler/frontend/tflite/Custom.h"
#include "compiler/frontend/tflite/OpTable.h"

#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace lathe::tflite {
namespace {

/// " padding=SAME stride=2x2 activation=RELU": what of the options is not as in most operators.
class OptionText {
public:
  explicit OptionText(llvm::raw_ostream &os, const tfl::Operator &op) : os(os), op(op) {}

  void print() {
    if (auto *o = op.builtin_options_as_Conv2DOptions()) {
      window(o->padding(), o->stride_h(), o->stride_w());
      pair("dilation", o->dilation_h_factor(), o->dilation_w_factor());
      activation(o->fused_activation_function());
    } else if (auto *o = op.builtin_options_as_DepthwiseConv2DOptions()) {
      window(o->padding(), o->stride_h(), o->stride_w());
      pair("dilation", o->dilation_h_factor(), o->dilation_w_factor());
      activation(o->fused_activation_function());
    } else if (auto *o = op.builtin_options_as_TransposeConvOptions()) {
      window(o->padding(), o->stride_h(), o->stride_w());
      activation(o->fused_activation_function());
    } else if (auto *o = op.builtin_options_as_Pool2DOptions()) {
      os << " window=" << o->filter_height() << "x" << o->filter_width();
      window(o->padding(), o->stride_h(), o->stride_w());
      activation(o->fused_activation_function());
    } else {
      rest();
    }
  }

private:
  void window(tfl::Padding padding, int strideH, int strideW) {
    os << " padding=" << tfl::EnumNamePadding(padding);
    pair("stride", strideH, strideW);
  }
  void pair(const char *name, int h, int w) {
    if (h != 1 || w != 1)
      os << " " << name << "=" << h << "x" << w;
  }
  void activation(tfl::ActivationFunctionType type) {
    if (type != tfl::ActivationFunctionType::NONE)
      os << " activation=" << tfl::EnumNameActivationFunctionType(type);
  }
  void number(const char *name, int64_t value) {
    if (value)
      os << " " << name << "=" << value;
  }
  void rest() {
    if (auto *o = op.builtin_options_as_FullyConnectedOptions()) {
      number("keep_num_dims", o->keep_num_dims());
      activation(o->fused_activation_function());
    } else if (auto *o = op.builtin_options_as_AddOptions()) {
      activation(o->fused_activation_function());
    } else if (auto *o = op.builtin_options_as_SubOptions()) {
      activation(o->fused_activation_function());
    } else if (auto *o = op.builtin_options_as_MulOptions()) {
      activation(o->fused_activation_function());
    } else if (auto *o = op.builtin_options_as_DivOptions()) {
      activation(o->fused_activation_function());
    } else if (auto *o = op.builtin_options_as_BatchMatMulOptions()) {
      number("adj_x", o->adj_x());
      number("adj_y", o->adj_y());
    } else if (auto *o = op.builtin_options_as_ConcatenationOptions()) {
      os << " axis=" << o->axis();
    } else if (auto *o = op.builtin_options_as_GatherOptions()) {
      os << " axis=" << o->axis();
      number("batch_dims", o->batch_dims());
    } else if (auto *o = op.builtin_options_as_ReducerOptions()) {
      number("keep_dims", o->keep_dims());
    } else if (auto *o = op.builtin_options_as_LeakyReluOptions()) {
      os << " alpha=" << o->alpha();
    } else if (auto *o = op.builtin_options_as_GeluOptions()) {
      number("approximate", o->approximate());
    } else if (auto *o = op.builtin_options_as_CumsumOptions()) {
      number("exclusive", o->exclusive());
      number("reverse", o->reverse());
    } else if (auto *o = op.builtin_options_as_IfOptions()) {
      os << " then=" << o->then_subgraph_index() << " else=" << o->else_subgraph_index();
    } else if (auto *o = op.builtin_options_as_WhileOptions()) {
      os << " cond=" << o->cond_subgraph_index() << " body=" << o->body_subgraph_index();
    }
  }

  llvm::raw_ostream &os;
  const tfl::Operator &op;
};

void printTensor(llvm::raw_ostream &os, const ModelFile &file, unsigned subgraph, int32_t index) {
  if (index < 0) {
    os << "none";
    return;
  }
  const TensorInfo &t = file.tensor(subgraph, index);
  if (!t.isConstant)
    os << "%" << index << ":";
  os << StringRef(typeName(t.type)).lower() << "[";
  for (auto [i, d] : llvm::enumerate(t.dims))
    os << (i ? "," : "") << (d < 0 ? std::string("?") : std::to_string(d));
  os << "]";
}

} // namespace

FailureOr<std::string> listOperators(MLIRContext *context, StringRef bytes, StringRef name) {
  import::Problems problems(context);
  std::unique_ptr<llvm::MemoryBuffer> copy = llvm::MemoryBuffer::getMemBufferCopy(bytes); // aligned
  std::unique_ptr<ModelFile> file = ModelFile::open(copy->getBuffer(), name, problems);
  problems.finish();
  if (!file)
    return failure();
  std::string text;
  llvm::raw_string_ostream os(text);
  for (unsigned s = 0; s < file->numSubgraphs(); ++s) {
    const tfl::SubGraph &graph = file->subgraph(s);
    auto tensors = [&](const flatbuffers::Vector<int32_t> *list) {
      for (unsigned i = 0; list && i < list->size(); ++i) {
        os << (i ? ", " : "");
        printTensor(os, *file, s, list->Get(i));
      }
    };
    os << "subgraph " << s << " " << (graph.name() ? import::printable(StringRef(graph.name()->c_str(), graph.name()->size())) : "") << "(";
    tensors(graph.inputs());
    os << ")\n";
    for (unsigned i = 0; graph.operators() && i < graph.operators()->size(); ++i) {
      const tfl::Operator &op = *graph.operators()->Get(i);
      const tfl::OperatorCode &code = file->code(op);
      os << "  ";
      tensors(op.outputs());
      os << " = " << import::printable(ModelFile::opName(code)) << ".v" << code.version() << "(";
      tensors(op.inputs());
      os << ")";
      OptionText(os, op).print();
      os << "\n";
    }
    os << "  return ";
    tensors(graph.outputs());
    os << "\n";
  }
  return text;
}

static std::string typesText(unsigned types) {
  if (types == Any)
    return "any";
  static const std::pair<Types, const char *> names[] = {{Float32, "float32"},   {OtherFloat, "float16 bfloat16 float64"},
                                                         {Quant8, "int8 uint8"}, {Quant16, "int16"},
                                                         {Ints, "integers"},     {Bools, "bool"},
                                                         {Complexes, "complex"}, {Handles, "variables"}};
  std::string text;
  for (auto [set, name] : names)
    if (types & set)
      text += (text.empty() ? "" : " ") + std::string(name);
  return text;
}

std::string listKnownOperators() {
  std::string text;
  for (tfl::BuiltinOperator op : tfl::EnumValuesBuiltinOperator()) {
    // neither is an operator of its own
    if (op == tfl::BuiltinOperator::CUSTOM || op == tfl::BuiltinOperator::PLACEHOLDER_FOR_GREATER_OP_CODES)
      continue;
    const OpEntry *entry = opTable().lookup(op);
    text += tfl::EnumNameBuiltinOperator(op);
    text += entry ? " " + std::to_string(entry->maxVersion) + " " + typesText(entry->types) : std::string(" -");
    text += "\n";
  }
  for (StringRef name : knownCustoms())
    text += (name + " custom float32\n").str();
  return text;
}

} // namespace lathe::tflite
