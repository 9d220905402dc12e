// Applies rules: inputs give names their sizes and shapes, outputs are made from them.
#include "ops/shapes/Rules.h"

#include "absl/strings/str_cat.h"

#include <algorithm>

namespace lathe::ops {
namespace {

class Matcher {
public:
  Matcher(const ShapeQuery &query, InferredShapes *result) : query(query), result(result) {}

  absl::Status run(const Rule &rule) {
    const OpInfo &op = query.op();
    for (size_t k = 0; k < rule.inputs.size(); ++k) {
      auto [first, count] = query.inputRange(op.inputs[k].name);
      for (int i = first; i < first + count; ++i) {
        LATHE_CHECK(match(rule.inputs[k], query.inputShape(i), op.inputs[k].name));
        if (const RulePattern *pattern = rule.inputs[k].held.get()) {
          PartialShape held;
          if (pattern->kind == RulePattern::Sizes && !hasRest(pattern->sizes))
            LATHE_CHECK(expectRank(query.inputShape(i), 1, op.inputs[k].name));
          LATHE_ASSIGN(held, heldShape(query, i));
          LATHE_CHECK(match(*pattern, held, op.inputs[k].name));
        }
        if (rule.inputs[k].handle)
          LATHE_CHECK(match(*rule.inputs[k].handle, query.handleShape(i), op.inputs[k].name));
      }
    }
    for (size_t k = 0; k < rule.outputs.size(); ++k) {
      auto [first, count] = query.outputRange(op.outputs[k].name);
      for (int i = first; i < first + count; ++i) {
        LATHE_ASSIGN(result->outputs[i], make(rule.outputs[k], i - first));
        if (rule.outputs[k].handle)
          LATHE_ASSIGN(result->handles[i], make(*rule.outputs[k].handle, i - first));
      }
    }
    return absl::OkStatus();
  }

private:
  static bool hasRest(const std::vector<RuleSize> &sizes) {
    return std::any_of(sizes.begin(), sizes.end(), [](const RuleSize &s) { return s.isRest; });
  }

  absl::Status refuse(const RulePattern &pattern, const PartialShape &shape, std::string_view arg) {
    std::string known;
    for (const RuleSize &size : pattern.sizes)
      for (const RuleTerm &term : size.terms)
        if (auto it = sizes.find(term.name); term.kind == RuleTerm::Name && it != sizes.end() && it->second >= 0)
          absl::StrAppend(&known, known.empty() ? " where " : ", ", term.name, " is ", it->second);
    if (auto it = shapes.find(pattern.name); it != shapes.end())
      absl::StrAppend(&known, " where ", pattern.name, " is ", shapeToString(it->second));
    return absl::InvalidArgumentError(
        absl::StrCat(std::string(arg), " has shape ", shapeToString(shape), ", expected ", pattern.text, known));
  }

  /// False when it contradicts what the name stands for.
  bool bind(const std::string &name, const PartialShape &shape) {
    auto merged = mergeShapes(shapes[name], shape);
    if (merged.ok())
      shapes[name] = *std::move(merged);
    return merged.ok();
  }

  absl::Status match(const RulePattern &pattern, const PartialShape &shape, std::string_view arg) {
    if (!shape)
      return absl::OkStatus();
    bool fits = true;
    if (pattern.kind == RulePattern::Whole) {
      fits = static_cast<int64_t>(shape->size()) <= pattern.mostRank && bind(pattern.name, shape);
    } else if (pattern.kind == RulePattern::AtMost) {
      fits = static_cast<int64_t>(shape->size()) <= pattern.number;
    } else if (pattern.kind == RulePattern::Sizes) {
      LATHE_ASSIGN(fits, matchSizes(pattern.sizes, *shape));
    }
    return fits ? absl::OkStatus() : refuse(pattern, shape, arg);
  }

  absl::StatusOr<bool> matchSizes(const std::vector<RuleSize> &pattern, const std::vector<int64_t> &shape) {
    const bool isOpen = hasRest(pattern);
    const size_t fixed = pattern.size() - isOpen;
    if (isOpen ? shape.size() < fixed : shape.size() != fixed)
      return false;
    size_t at = 0;
    for (const RuleSize &size : pattern) {
      if (size.isRest) {
        const auto begin = shape.begin() + static_cast<int64_t>(at), end = begin + static_cast<int64_t>(shape.size() - fixed);
        at += shape.size() - fixed;
        if (const std::string &name = size.terms[0].name; !name.empty() && !bind(name, std::vector<int64_t>(begin, end)))
          return false;
        continue;
      }
      const int64_t found = shape[at++];
      if (size.terms.empty())
        continue;
      int64_t wanted;
      LATHE_ASSIGN(wanted, evaluate(size));
      std::optional<int64_t> merged = mergeSizes(found, wanted);
      if (!merged)
        return false;
      if (size.terms.size() == 1 && size.terms[0].kind == RuleTerm::Name)
        sizes[size.terms[0].name] = *merged;
    }
    return true;
  }

  /// -1 where it is not known.
  absl::StatusOr<int64_t> evaluate(const RuleSize &size) {
    int64_t total = 0;
    for (const RuleTerm &term : size.terms) {
      int64_t value;
      LATHE_ASSIGN(value, valueOf(term));
      if (value < 0)
        return -1;
      const bool fails = term.op == '+'   ? __builtin_add_overflow(total, value, &total)
                         : term.op == '-' ? __builtin_sub_overflow(total, value, &total)
                         : term.op == '*' ? __builtin_mul_overflow(total, value, &total)
                                          : value == 0;
      if (fails)
        return -1;
      if (term.op == '/')
        total /= value;
    }
    return std::max<int64_t>(total, -1);
  }

  absl::StatusOr<int64_t> valueOf(const RuleTerm &term) {
    if (term.kind == RuleTerm::Number)
      return term.number;
    if (term.kind == RuleTerm::Attribute)
      return query.intAttr(term.name);
    if (term.kind == RuleTerm::Name) {
      auto it = sizes.find(term.name);
      return it == sizes.end() ? -1 : it->second;
    }
    const int input = inputOf(term.number);
    if (term.kind == RuleTerm::Count)
      return numElements(query.inputShape(input));
    std::optional<PartialValues> values = query.inputValues(input);
    const size_t element = std::max(term.element, 0);
    if (!values || element >= values->size() || !(*values)[element] || (term.element < 0 && values->size() != 1))
      return -1;
    if (*(*values)[element] < 0)
      return absl::InvalidArgumentError(
          absl::StrCat(std::string(query.op().inputs[term.number].name), " is ", *(*values)[element], ", and a size cannot be negative"));
    return *(*values)[element];
  }

  int inputOf(int64_t arg) const { return query.inputRange(query.op().inputs[arg].name).first; }

  absl::StatusOr<PartialShape> make(const RulePattern &pattern, int place) {
    switch (pattern.kind) {
    case RulePattern::Any:
    case RulePattern::AtMost:
      return PartialShape();
    case RulePattern::Whole:
      return shapes[pattern.name];
    case RulePattern::Broadcast:
      return broadcastShapes(shapes[pattern.name], shapes[pattern.other]);
    case RulePattern::Held:
      return heldShape(query, inputOf(pattern.number));
    case RulePattern::Same:
      return query.inputShape(inputOf(pattern.number) + place);
    case RulePattern::Attribute:
      return attribute(pattern.name, place);
    case RulePattern::Sizes:
      break;
    }
    std::vector<int64_t> out;
    for (const RuleSize &size : pattern.sizes) {
      if (size.isRest) {
        const RuleTerm &term = size.terms[0];
        const PartialShape rest = term.kind == RuleTerm::Attribute ? attribute(term.name, place) : shapes[term.name];
        if (!rest)
          return PartialShape();
        out.insert(out.end(), rest->begin(), rest->end());
        continue;
      }
      int64_t value = -1;
      if (!size.terms.empty())
        LATHE_ASSIGN(value, evaluate(size));
      out.push_back(value);
    }
    return PartialShape(out);
  }

  PartialShape attribute(const std::string &name, int place) const {
    const Attr *attr = query.op().findAttr(name);
    if (!attr || attr->type == "shape")
      return query.shapeAttr(name);
    std::vector<PartialShape> all = query.shapesAttr(name);
    return place < static_cast<int>(all.size()) ? all[place] : PartialShape();
  }

  const ShapeQuery &query;
  InferredShapes *const result;
  std::map<std::string, int64_t> sizes;
  std::map<std::string, PartialShape> shapes;
};

} // namespace

absl::Status applyRule(const Rule &rule, const ShapeQuery &query, InferredShapes *result) { return Matcher(query, result).run(rule); }

} // namespace lathe::ops
