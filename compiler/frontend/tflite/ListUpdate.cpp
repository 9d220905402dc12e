// How the converter writes "row i of a list is replaced" (TensorListSetItem in the loops of recurrent layers): what is before, the new
// row and what comes after, put together. The two parts have sizes that depend on data; the whole has not.
#include "compiler/frontend/tflite/Translator.h"

using namespace mlir;

namespace lathe::tflite {

namespace {
using Op = tfl::BuiltinOperator;

class Matcher {
public:
  explicit Matcher(OpContext &c) : c(c) {}

  /// (list, index) as tensors where the concatenation is such an update.
  std::optional<std::pair<int32_t, int32_t>> match() {
    if (c.numInputs() != 3 || c.options<tfl::ConcatenationOptions>().axis() != 0)
      return std::nullopt;
    const tfl::Operator *before = made(c.op.inputs()->Get(0), Op::SLICE, 3), *after = made(c.op.inputs()->Get(2), Op::SLICE, 3);
    if (!before || !after || before->inputs()->Get(0) != after->inputs()->Get(0))
      return std::nullopt;
    auto index = firstOf(before->inputs()->Get(2), -1), next = firstOf(after->inputs()->Get(1), 0);
    if (!index || !next || !all(before->inputs()->Get(1), 0) || !all(after->inputs()->Get(2), -1))
      return std::nullopt;
    const tfl::Operator *add = made(*next, Op::ADD, 2);
    if (!add)
      return std::nullopt;
    for (unsigned i = 0; i < 2; ++i)
      if (add->inputs()->Get(i) == *index && all(add->inputs()->Get(1 - i), 1))
        return std::make_pair(before->inputs()->Get(0), *index);
    return std::nullopt;
  }

private:
  const tfl::Operator *made(int32_t tensor, Op op, unsigned inputs) {
    const tfl::Operator *by = c.translator.producer(tensor);
    return by && ModelFile::builtin(c.translator.file.code(*by)) == op && by->inputs() && by->inputs()->size() == inputs ? by : nullptr;
  }

  /// Whether a tensor is a constant of this number.
  bool all(int32_t tensor, int64_t number) {
    if (tensor < 0)
      return false;
    const TensorInfo &info = c.infoOf(tensor);
    if (!info.isConstant || info.type != tfl::TensorType::INT32)
      return false;
    auto t = readConstant(info, 1 << 16);
    if (!t.ok())
      return false;
    for (int64_t i = 0; i < t->numElements(); ++i)
      if (t->data<int32_t>()[i] != number)
        return false;
    return true;
  }

  /// The scalar i of [i, rest, rest...], or of [i], where rows are numbers.
  std::optional<int32_t> firstOf(int32_t tensor, int64_t rest) {
    if (const tfl::Operator *alone = made(tensor, Op::RESHAPE, 2); alone && ArrayRef<int64_t>(c.infoOf(tensor).dims) == ArrayRef<int64_t>(1))
      return alone->inputs()->Get(0);
    const tfl::Operator *list = made(tensor, Op::CONCATENATION, 2);
    if (!list || !all(list->inputs()->Get(1), rest))
      return std::nullopt;
    const tfl::Operator *reshape = made(list->inputs()->Get(0), Op::RESHAPE, 2);
    return reshape ? std::optional<int32_t>(reshape->inputs()->Get(0)) : std::nullopt;
  }

  OpContext &c;
};
} // namespace

bool isListUpdate(OpContext &c, Value &result) {
  auto found = Matcher(c).match();
  if (!found)
    return false;
  const GraphValue *listValue = c.translator.valueOf(found->first), *indexValue = c.translator.valueOf(found->second);
  if (!listValue || !indexValue)
    return false;
  Value list = c.ctx.materialize(*listValue, c.loc), index = c.ctx.materialize(*indexValue, c.loc), row = c.input(1);
  if (!list || !index || !row || Emitter::rank(index) != 0 || Emitter::rank(list) < 1 || Emitter::rank(row) != Emitter::rank(list) ||
      Emitter::elementType(row) != Emitter::elementType(list) || constantOf(c.dim(row, 0)) != int64_t(1))
    return false;
  for (int64_t d = 1; d < Emitter::rank(list); ++d)
    if (c.ctx.resolve(c.dim(list, d)) != c.ctx.resolve(c.dim(row, d)))
      return false;
  Value length = c.sizeValue(c.dim(list, 0), Emitter::elementType(index));
  c.check(c.logicalAnd(c.compare(Compare::LT, index, length), c.compare(Compare::GE, index, c.likeInt(index, 0))),
          "the index is out of range for the list");
  result = c.putRow(list, row, index);
  return true;
}

} // namespace lathe::tflite
