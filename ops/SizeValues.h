// What ops make of small integer tensors that are computed from sizes: Shape, StridedSlice, Pack, Mul ... One place for all that follow
// them: graphs whose shapes are inferred and hosted objects, where an element is a number or unknown, and legalisation, where it is an
// expression over symbols.
#ifndef LATHE_OPS_SIZEVALUES_H
#define LATHE_OPS_SIZEVALUES_H

#include "ops/Flags.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

namespace lathe::ops {

/// What is done to two elements. Divisions that round down, and to zero.
enum class SizeOp { Add, Sub, Mul, FloorDiv, TruncateDiv, FloorMod, TruncateMod, Max, Min };

/// Of two numbers, in 64 bits; nullopt for what they do not hold.
inline std::optional<int64_t> applyTo(SizeOp op, int64_t a, int64_t b) {
  int64_t r = 0;
  const bool divides = b != 0 && !(b == -1 && a == INT64_MIN);
  switch (op) {
  case SizeOp::Add:
    return __builtin_add_overflow(a, b, &r) ? std::nullopt : std::optional<int64_t>(r);
  case SizeOp::Sub:
    return __builtin_sub_overflow(a, b, &r) ? std::nullopt : std::optional<int64_t>(r);
  case SizeOp::Mul:
    return __builtin_mul_overflow(a, b, &r) ? std::nullopt : std::optional<int64_t>(r);
  case SizeOp::FloorDiv:
    return divides ? std::optional<int64_t>(a / b - (a % b != 0 && (a < 0) != (b < 0))) : std::nullopt;
  case SizeOp::TruncateDiv:
    return divides ? std::optional<int64_t>(a / b) : std::nullopt;
  case SizeOp::FloorMod:
    return divides ? std::optional<int64_t>(a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0)) : std::nullopt;
  case SizeOp::TruncateMod:
    return divides ? std::optional<int64_t>(a % b) : std::nullopt;
  case SizeOp::Max:
    return std::max(a, b);
  case SizeOp::Min:
    return std::min(a, b);
  }
  return std::nullopt;
}

/// Elements in row-major order.
template <typename Element>
struct SizeTensor {
  std::vector<Element> elements;
  std::vector<int64_t> shape;
};

/// The value of one output of a node, from those of its inputs; nullopt where it does not follow or is larger than the limit.
///
/// `Node` says what the graph says:
///   Element; size_t limit(); std::string_view op(); int numInputs(); int numOutputs();
///   int64_t intAttr(name); bool boolAttr(name); std::vector<int64_t> intsAttr(name);
///   std::optional<SizeTensor<Element>> input(int), constant(): the value of an input, and of a Const;
///   std::optional<std::vector<Element>> dims(int): the sizes of an input, or behind it;
///   std::optional<std::vector<int64_t>> outputShape(): what is known of it otherwise, -1 for unknown sizes;
/// and how to compute with elements:
///   Element number(int64_t); std::optional<int64_t> numberOf(Element); Element countOf(std::vector<Element>);
///   std::optional<Element> apply(SizeOp, Element, Element): nullopt where the tensor cannot be followed.
template <typename Node>
class SizeArithmetic {
public:
  using Element = typename Node::Element;
  using Value = SizeTensor<Element>;
  using Result = std::optional<Value>;

  SizeArithmetic(Node &node, int output) : node(node), output(output) {}

  Result run() {
    const std::string_view op = node.op();
    if (is(op, Flag::Sizes))
      return sizes();
    if (is(op, Flag::Passes))
      return output < node.numInputs() ? limited(node.input(output)) : std::nullopt;
    auto found = methods().find(op);
    if (found == methods().end() || node.numInputs() < found->second.inputs)
      return std::nullopt;
    return limited((this->*found->second.make)());
  }

  /// Whether run() knows the op at all.
  static bool follows(std::string_view op) { return is(op, Flag::Sizes) || is(op, Flag::Passes) || methods().count(op); }

private:
  struct Method {
    int inputs; ///< as few as it reads
    Result (SizeArithmetic::*make)();
  };

  static const std::map<std::string_view, Method> &methods() {
    using A = SizeArithmetic;
    static const auto *all = new std::map<std::string_view, Method>{
        {"Const", {0, &A::constant}},
        {"Cast", {1, &A::same}},
        {"Add", {2, &A::template binary<SizeOp::Add>}},
        {"AddV2", {2, &A::template binary<SizeOp::Add>}},
        {"Sub", {2, &A::template binary<SizeOp::Sub>}},
        {"Mul", {2, &A::template binary<SizeOp::Mul>}},
        {"FloorDiv", {2, &A::template binary<SizeOp::FloorDiv>}},
        {"Div", {2, &A::template binary<SizeOp::TruncateDiv>}},
        {"RealDiv", {2, &A::template binary<SizeOp::TruncateDiv>}},
        {"TruncateDiv", {2, &A::template binary<SizeOp::TruncateDiv>}},
        {"FloorMod", {2, &A::template binary<SizeOp::FloorMod>}},
        {"Mod", {2, &A::template binary<SizeOp::TruncateMod>}},
        {"TruncateMod", {2, &A::template binary<SizeOp::TruncateMod>}},
        {"Maximum", {2, &A::template binary<SizeOp::Max>}},
        {"Minimum", {2, &A::template binary<SizeOp::Min>}},
        {"Prod", {2, &A::template reduce<SizeOp::Mul>}},
        {"Sum", {2, &A::template reduce<SizeOp::Add>}},
        {"Max", {2, &A::template reduce<SizeOp::Max>}},
        {"Min", {2, &A::template reduce<SizeOp::Min>}},
        {"Neg", {1, &A::negative}},
        {"OnesLike", {1, &A::template alike<1>}},
        {"ZerosLike", {1, &A::template alike<0>}},
        {"Pack", {1, &A::pack}},
        {"Unpack", {1, &A::unpack}},
        {"Split", {2, &A::split}},
        {"SplitV", {3, &A::split}},
        {"Concat", {2, &A::concat}},
        {"ConcatV2", {2, &A::concat}},
        {"Gather", {2, &A::gather}},
        {"GatherV2", {3, &A::gather}},
        {"DynamicStitch", {2, &A::stitch}},
        {"ParallelDynamicStitch", {2, &A::stitch}},
        {"StridedSlice", {4, &A::stridedSlice}},
        {"Slice", {3, &A::slice}},
        {"InvertPermutation", {1, &A::invertPermutation}},
        {"Reshape", {2, &A::reshape}},
        {"ExpandDims", {2, &A::expandDims}},
        {"Squeeze", {1, &A::squeeze}},
        {"Fill", {2, &A::fill}},
        {"Range", {3, &A::range}},
    };
    return *all;
  }

  Result limited(Result value) { return value && value->elements.size() <= node.limit() ? std::move(value) : std::nullopt; }

  static Value scalar(Element e) { return {{std::move(e)}, {}}; }
  static Value vector(std::vector<Element> elements) {
    const auto count = static_cast<int64_t>(elements.size());
    return {std::move(elements), {count}};
  }

  /// The elements of an input that is a scalar or a vector of numbers.
  std::optional<std::vector<int64_t>> numbers(int i) {
    Result value = node.input(i);
    if (!value || value->shape.size() > 1)
      return std::nullopt;
    return numbersOf(*value);
  }
  std::optional<std::vector<int64_t>> numbersOf(const Value &value) {
    std::vector<int64_t> out;
    for (const Element &e : value.elements) {
      std::optional<int64_t> number = node.numberOf(e);
      if (!number)
        return std::nullopt;
      out.push_back(*number);
    }
    return out;
  }
  std::optional<int64_t> number(int i) {
    auto all = numbers(i);
    return all && all->size() == 1 ? std::optional<int64_t>((*all)[0]) : std::nullopt;
  }
  /// An axis of a tensor of rank 1.
  bool isFirstAxis(int i) {
    auto axis = number(i);
    return axis && (*axis == 0 || *axis == -1);
  }
  Result vectorInput(int i) {
    Result value = node.input(i);
    return value && value->shape.size() == 1 ? std::move(value) : std::nullopt;
  }

  Result sizes() {
    auto dims = node.dims(output);
    if (!dims)
      return std::nullopt;
    if (node.op() == "Rank")
      return scalar(node.number(static_cast<int64_t>(dims->size())));
    if (node.op() == "Size")
      return scalar(node.countOf(*dims));
    return limited(vector(*std::move(dims)));
  }

  Result constant() { return node.constant(); }
  Result same() { return node.input(0); }

  /// One element goes with all of the other side.
  template <SizeOp kind>
  Result binary() {
    Result a = node.input(0), b = node.input(1);
    if (!a || !b)
      return std::nullopt;
    const bool spreadsA = a->elements.size() == 1 && a->shape.size() <= b->shape.size();
    const bool spreadsB = b->elements.size() == 1 && b->shape.size() <= a->shape.size();
    if (a->shape != b->shape && !spreadsA && !spreadsB)
      return std::nullopt;
    Value out;
    out.shape = a->shape == b->shape || !spreadsA ? a->shape : b->shape;
    const size_t count = a->shape == b->shape || !spreadsA ? a->elements.size() : b->elements.size();
    for (size_t i = 0; i < count; ++i) {
      const Element &x = a->elements[a->elements.size() == 1 ? 0 : i], &y = b->elements[b->elements.size() == 1 ? 0 : i];
      std::optional<Element> e = node.apply(kind, x, y);
      if (!e)
        return std::nullopt;
      out.elements.push_back(*std::move(e));
    }
    return out;
  }

  /// Of a vector, over its one axis.
  template <SizeOp kind>
  Result reduce() {
    Result all = vectorInput(0);
    if (!all || !isFirstAxis(1))
      return std::nullopt;
    std::optional<Element> total;
    for (const Element &e : all->elements) {
      total = total ? node.apply(kind, *total, e) : e;
      if (!total)
        return std::nullopt;
    }
    if (!total && (kind == SizeOp::Max || kind == SizeOp::Min))
      return std::nullopt;
    if (!total)
      total = node.number(kind == SizeOp::Mul);
    return node.boolAttr("keep_dims") ? vector({*total}) : scalar(*total);
  }

  Result negative() {
    Result value = node.input(0);
    if (!value)
      return std::nullopt;
    for (Element &e : value->elements) {
      std::optional<Element> minus = node.apply(SizeOp::Sub, node.number(0), e);
      if (!minus)
        return std::nullopt;
      e = *std::move(minus);
    }
    return value;
  }

  template <int number>
  Result alike() {
    Result value = node.input(0);
    if (value)
      std::fill(value->elements.begin(), value->elements.end(), node.number(number));
    return value;
  }

  Result pack() {
    const int count = node.numInputs();
    Result first = node.input(0);
    if (!first)
      return std::nullopt;
    const auto rank = static_cast<int64_t>(first->shape.size()) + 1;
    int64_t axis = node.intAttr("axis");
    if (axis < -rank || axis >= rank || first->elements.size() * static_cast<size_t>(count) > node.limit())
      return std::nullopt;
    axis += axis < 0 ? rank : 0;
    size_t inner = 1;
    for (size_t i = static_cast<size_t>(axis); i < first->shape.size(); ++i)
      inner *= static_cast<size_t>(first->shape[i]);
    std::vector<std::vector<Element>> parts{std::move(first->elements)};
    for (int i = 1; i < count; ++i) {
      Result part = node.input(i);
      if (!part || part->shape != first->shape)
        return std::nullopt;
      parts.push_back(std::move(part->elements));
    }
    Value out;
    for (size_t outer = 0, total = parts[0].size(); outer < total; outer += inner)
      for (const std::vector<Element> &part : parts)
        for (size_t i = outer; i < outer + inner; ++i)
          out.elements.push_back(part[i]);
    out.shape = std::move(first->shape);
    out.shape.insert(out.shape.begin() + axis, count);
    return out;
  }

  Result unpack() {
    Result all = vectorInput(0);
    if (!all || all->elements.size() != static_cast<size_t>(node.numOutputs()) || output >= node.numOutputs())
      return std::nullopt;
    return scalar(all->elements[static_cast<size_t>(output)]);
  }

  /// A part of a vector, whose parts are of one size or of the sizes given: one of them, -1, is what the others leave.
  Result split() {
    const bool given = node.op() == "SplitV";
    Result all = vectorInput(given ? 0 : 1);
    const auto count = static_cast<size_t>(node.numOutputs()), mine = static_cast<size_t>(output);
    if (!all || mine >= count || !isFirstAxis(given ? 2 : 0))
      return std::nullopt;
    const int64_t n = all->shape[0];
    std::vector<int64_t> parts(count, n / static_cast<int64_t>(count));
    if (given) {
      auto sizes = numbers(1);
      if (!sizes || sizes->size() != count)
        return std::nullopt;
      parts = *std::move(sizes);
    }
    int64_t rest = n;
    std::optional<size_t> free;
    for (size_t i = 0; i < count; ++i) {
      if (parts[i] == -1 && !free)
        free = i;
      else if (parts[i] < 0 || parts[i] > rest)
        return std::nullopt;
      else
        rest -= parts[i];
    }
    if (free)
      parts[*free] = rest;
    else if (rest)
      return std::nullopt;
    int64_t begin = 0;
    for (size_t i = 0; i < mine; ++i)
      begin += parts[i];
    return vector({all->elements.begin() + begin, all->elements.begin() + begin + parts[mine]});
  }

  /// Vectors, one behind the other.
  Result concat() {
    const bool axisFirst = node.op() == "Concat";
    const int count = node.numInputs();
    if (!isFirstAxis(axisFirst ? 0 : count - 1))
      return std::nullopt;
    std::vector<Element> out;
    for (int i = axisFirst; i < count - !axisFirst; ++i) {
      Result part = vectorInput(i);
      if (!part || out.size() + part->elements.size() > node.limit())
        return std::nullopt;
      out.insert(out.end(), part->elements.begin(), part->elements.end());
    }
    return vector(std::move(out));
  }

  Result gather() {
    Result all = vectorInput(0), indices = node.input(1);
    if (!all || !indices || indices->shape.size() > 1 || node.intAttr("batch_dims") || (node.numInputs() > 2 && !isFirstAxis(2)))
      return std::nullopt;
    auto chosen = numbersOf(*indices);
    if (!chosen)
      return std::nullopt;
    Value out{{}, std::move(indices->shape)};
    for (int64_t i : *chosen) {
      if (i < 0 || i >= all->shape[0])
        return std::nullopt;
      out.elements.push_back(all->elements[static_cast<size_t>(i)]);
    }
    return out;
  }

  /// Positions are numbers, what goes there may be anything; later pieces win. No holes.
  Result stitch() {
    const int count = node.numInputs() / 2;
    std::vector<std::optional<Element>> places;
    for (int i = 0; i < count; ++i) {
      Result at = node.input(i), piece = node.input(count + i);
      auto positions = at ? numbersOf(*at) : std::nullopt;
      if (!positions || !piece || piece->shape != at->shape)
        return std::nullopt;
      for (size_t k = 0; k < positions->size(); ++k) {
        const int64_t place = (*positions)[k];
        if (place < 0 || place >= static_cast<int64_t>(node.limit()))
          return std::nullopt;
        if (place >= static_cast<int64_t>(places.size()))
          places.resize(static_cast<size_t>(place) + 1);
        places[static_cast<size_t>(place)] = piece->elements[k];
      }
    }
    std::vector<Element> out;
    for (std::optional<Element> &e : places) {
      if (!e)
        return std::nullopt;
      out.push_back(*std::move(e));
    }
    return vector(std::move(out));
  }

  /// What StridedSlice takes of one dimension of `n` elements: the positions, and whether the dimension goes.
  bool sliceOf(size_t i, int64_t n, std::optional<int64_t> begin, std::optional<int64_t> end, int64_t stride, std::vector<int64_t> &at,
               bool &shrinks) {
    auto has = [&](const char *mask) { return i < 63 && (node.intAttr(mask) >> i & 1); };
    shrinks = has("shrink_axis_mask");
    if (shrinks) {
      if (!begin)
        return false;
      at.push_back(*begin < 0 ? *begin + n : *begin);
      return at[0] >= 0 && at[0] < n;
    }
    auto clamp = [&](int64_t x) {
      if (x < 0)
        x += n;
      return stride > 0 ? std::clamp<int64_t>(x, 0, n) : std::clamp<int64_t>(x, -1, n - 1);
    };
    const bool fromStart = has("begin_mask"), toEnd = has("end_mask");
    if ((!fromStart && !begin) || (!toEnd && !end))
      return false;
    const int64_t from = fromStart ? (stride > 0 ? 0 : n - 1) : clamp(*begin);
    const int64_t to = toEnd ? (stride > 0 ? n : -1) : clamp(*end);
    // a stride beyond the size takes one element, so that the position cannot overflow
    stride = std::clamp<int64_t>(stride, -n - 1, n + 1);
    for (int64_t k = from; stride > 0 ? k < to : k > to; k += stride)
      at.push_back(k);
    return true;
  }

  Result stridedSlice() {
    Result all = node.input(0), begin = vectorInput(1), end = vectorInput(2);
    auto strides = numbers(3);
    if (!all || !begin || !end || !strides || begin->shape != end->shape || begin->elements.size() != strides->size() ||
        begin->elements.size() > all->shape.size() || node.intAttr("ellipsis_mask") || node.intAttr("new_axis_mask"))
      return std::nullopt;
    // row-major places of what is taken, a dimension at a time
    std::vector<int64_t> places{0};
    Value out;
    for (size_t i = 0; i < all->shape.size(); ++i) {
      const int64_t n = all->shape[i];
      std::vector<int64_t> at;
      bool shrinks = false;
      if (i >= strides->size()) {
        for (int64_t k = 0; k < n; ++k)
          at.push_back(k);
      } else {
        const auto first = node.numberOf(begin->elements[i]), last = node.numberOf(end->elements[i]);
        if ((*strides)[i] == 0 || !sliceOf(i, n, first, last, (*strides)[i], at, shrinks))
          return std::nullopt;
      }
      if (!shrinks)
        out.shape.push_back(static_cast<int64_t>(at.size()));
      std::vector<int64_t> inner;
      for (int64_t place : places)
        for (int64_t k : at)
          inner.push_back(place * n + k);
      places = std::move(inner);
    }
    for (int64_t place : places)
      out.elements.push_back(all->elements[static_cast<size_t>(place)]);
    return out;
  }

  Result slice() {
    Result all = vectorInput(0);
    auto begin = number(1), size = number(2);
    if (!all || !begin || !size)
      return std::nullopt;
    const int64_t n = all->shape[0];
    if (*begin < 0 || *begin > n || *size < -1 || *size > n - *begin)
      return std::nullopt;
    const int64_t count = *size < 0 ? n - *begin : *size;
    return vector({all->elements.begin() + *begin, all->elements.begin() + *begin + count});
  }

  Result invertPermutation() {
    Result order = vectorInput(0);
    auto to = order ? numbersOf(*order) : std::nullopt;
    if (!to)
      return std::nullopt;
    std::vector<std::optional<int64_t>> from(to->size());
    for (size_t i = 0; i < to->size(); ++i) {
      if ((*to)[i] < 0 || (*to)[i] >= static_cast<int64_t>(to->size()) || from[static_cast<size_t>((*to)[i])])
        return std::nullopt;
      from[static_cast<size_t>((*to)[i])] = static_cast<int64_t>(i);
    }
    std::vector<Element> out;
    for (std::optional<int64_t> i : from)
      out.push_back(node.number(*i));
    return vector(std::move(out));
  }

  Result reshape() {
    Result value = node.input(0);
    if (!value)
      return std::nullopt;
    const auto total = static_cast<int64_t>(value->elements.size());
    std::optional<std::vector<int64_t>> dims = numbers(1);
    if (!dims) { // elements of which nothing but their number is known may be known otherwise
      dims = node.outputShape();
      if (!dims)
        return std::nullopt;
    }
    int64_t known = 1, free = -1;
    for (size_t i = 0; i < dims->size(); ++i) {
      if ((*dims)[i] == -1 && free < 0)
        free = static_cast<int64_t>(i);
      else if ((*dims)[i] < 0 || __builtin_mul_overflow(known, (*dims)[i], &known))
        return std::nullopt;
    }
    if (free >= 0)
      (*dims)[static_cast<size_t>(free)] = known ? total / known : 0;
    int64_t count = 1;
    for (int64_t d : *dims)
      count *= d;
    if (count != total)
      return std::nullopt;
    value->shape = *std::move(dims);
    return value;
  }

  Result expandDims() {
    Result value = node.input(0);
    auto axis = number(1);
    if (!value || !axis)
      return std::nullopt;
    const auto rank = static_cast<int64_t>(value->shape.size());
    if (*axis < -rank - 1 || *axis > rank)
      return std::nullopt;
    value->shape.insert(value->shape.begin() + (*axis < 0 ? *axis + rank + 1 : *axis), 1);
    return value;
  }

  Result squeeze() {
    Result value = node.input(0);
    if (!value)
      return std::nullopt;
    const auto rank = static_cast<int64_t>(value->shape.size());
    const std::vector<int64_t> axes = node.intsAttr("squeeze_dims");
    std::vector<bool> goes(static_cast<size_t>(rank), axes.empty());
    for (int64_t axis : axes) {
      if (axis < -rank || axis >= rank || value->shape[static_cast<size_t>(axis < 0 ? axis + rank : axis)] != 1)
        return std::nullopt;
      goes[static_cast<size_t>(axis < 0 ? axis + rank : axis)] = true;
    }
    std::vector<int64_t> shape;
    for (size_t i = 0; i < goes.size(); ++i)
      if (!goes[i] || value->shape[i] != 1)
        shape.push_back(value->shape[i]);
    value->shape = std::move(shape);
    return value;
  }

  Result fill() {
    auto dims = numbers(0);
    Result value = node.input(1);
    if (!dims || !value || value->elements.size() != 1)
      return std::nullopt;
    int64_t count = 1;
    for (int64_t d : *dims)
      if (d < 0 || __builtin_mul_overflow(count, d, &count) || count > static_cast<int64_t>(node.limit()))
        return std::nullopt;
    return Value{std::vector<Element>(static_cast<size_t>(count), value->elements[0]), *std::move(dims)};
  }

  Result range() {
    auto start = number(0), limit = number(1), delta = number(2);
    if (!start || !limit || !delta || !*delta)
      return std::nullopt;
    std::vector<Element> out;
    for (int64_t i = *start; *delta > 0 ? i < *limit : i > *limit;) {
      if (out.size() >= node.limit())
        return std::nullopt;
      out.push_back(node.number(i));
      if (__builtin_add_overflow(i, *delta, &i))
        break;
    }
    return vector(std::move(out));
  }

  Node &node;
  const int output;
};

/// What a `Node` says of elements that are numbers or unknown.
struct PartialElements {
  using Element = std::optional<int64_t>;

  static Element number(int64_t value) { return value; }
  static Element numberOf(Element value) { return value; }
  static Element countOf(const std::vector<Element> &dims) {
    Element count = 1;
    for (Element dim : dims)
      count = *apply(SizeOp::Mul, count, dim);
    return count;
  }
  static std::optional<Element> apply(SizeOp op, Element a, Element b) { return a && b ? applyTo(op, *a, *b) : Element(); }
  /// Of a shape, whose unknown sizes are -1.
  static std::vector<Element> ofShape(const std::vector<int64_t> &shape) {
    std::vector<Element> out;
    for (int64_t dim : shape)
      out.push_back(dim < 0 ? Element() : Element(dim));
    return out;
  }
};

template <typename Node>
std::optional<SizeTensor<typename Node::Element>> sizeValue(Node &node, int output) {
  return SizeArithmetic<Node>(node, output).run();
}

} // namespace lathe::ops

#endif
