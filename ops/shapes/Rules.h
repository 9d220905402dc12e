// Shapes that one line says. A table of rules (*.def here) has entries
//
//   Op Op2 ...: in, in, ... -> out, out, ...;
//
// with a pattern for each argument of the op; patterns that are missing at the end say nothing. The pattern of an argument that is a
// list holds for each of its tensors. A name stands for one thing in the whole entry: what inputs say of it has to agree.
//
//   _               any shape                        s            a whole shape (s<=1: of a rank of at most 1)
//   [n,3,?]         sizes: named, given, any         [..r,n]      any number of sizes before (or after, or between)
//   <=1             a rank of at most 1              P^Q          shape P, and Q behind the handle that the tensor is
//   =P              of inputs: the shape that the tensor holds is P (so many sizes: it is a vector, too)
// of outputs alone:
//   =1              what tensor 1 holds is the shape (numbers count arguments of the op, from 0)
//   ~1              the shape of the tensor of argument 1 in the same place
//   @shape          the attribute (a shape, or a list with one for each tensor), within other sizes ..@shape
//   s&t             what the shapes s and t broadcast to
// Sizes may be computed: #2 is the number that tensor 2 holds, #1.0 the first one that it holds, |1| how many elements it has, @k an
// attribute, and + - * / go from left to right. An op may have a function, too: it is asked after the rule and goes on from there.
#ifndef LATHE_OPS_SHAPES_RULES_H
#define LATHE_OPS_SHAPES_RULES_H

#include "ops/shapes/Families.h"

#include <map>
#include <memory>

namespace lathe::ops {

/// A number in a size, and how it goes with what is before it.
struct RuleTerm {
  enum Kind { Number, Name, Value, Count, Attribute } kind = Number;
  char op = '+';
  int64_t number = 0; ///< or the argument of a value
  int element = -1;   ///< of the value
  std::string name;   ///< or the attribute's
};

struct RuleSize {
  bool isRest = false; ///< any number of sizes, which have the name of the term if there is one
  std::vector<RuleTerm> terms; ///< none: any size
};

struct RulePattern {
  enum Kind { Any, Sizes, Whole, AtMost, Held, Same, Attribute, Broadcast } kind = Any;
  std::vector<RuleSize> sizes;
  std::string name, other;
  int64_t number = 0; ///< a rank or an argument
  int64_t mostRank = kMaxRank;
  std::string text;
  std::shared_ptr<RulePattern> handle, held;
};

struct Rule {
  std::vector<RulePattern> inputs, outputs;
};

using RuleTable = std::map<std::string, std::shared_ptr<const Rule>, std::less<>>;

/// Adds the entries of a table. INVALID_ARGUMENT for what is not a rule, or an op that has one.
absl::Status addRules(std::string_view text, RuleTable *table);
/// Sets outputs and what their handles hold. INVALID_ARGUMENT when inputs do not match.
absl::Status applyRule(const Rule &rule, const ShapeQuery &query, InferredShapes *result);

} // namespace lathe::ops

#endif
