// The rules that make gradients: one function an op, from a node and the gradients of its outputs to those of its inputs.
#ifndef LATHE_GRAPH_GRADIENTS_RULES_H
#define LATHE_GRAPH_GRADIENTS_RULES_H

#include "graph/Emit.h"
#include "graph/gradients/Gradients.h"

#include <map>

namespace lathe::graphdef {

/// A Gradient of values.
struct GradVal {
  Val values, indices, shape;

  GradVal() = default;
  GradVal(Val whole) : values(whole) {}
  GradVal(Val values, Val indices, Val shape) : values(values), indices(indices), shape(shape) {}
  explicit operator bool() const { return static_cast<bool>(values); }
  bool isRows() const { return static_cast<bool>(indices); }
  /// The tensor that it stands for.
  Val whole() const;
  Gradient ends() const { return {values.end, indices.end, shape.end}; }
};

/// What a rule sees. Inputs whose gradient a rule does not set have none.
class Grad {
public:
  Grad(Node &node, Emitter &emitter, std::vector<GradVal> dys) : node(node), e(emitter), dys(std::move(dys)), grads(node.numInputs()) {}

  Node &node;
  Emitter &e;

  Val in(int i) { return Val(e, node.input(i)); }
  Val out(int i = 0) { return Val(e, node.output(i)); }
  std::vector<Val> ins(int from, int count);
  std::vector<Val> ins(std::string_view arg);
  /// The gradient of an output; zeros where there is none.
  Val dy(int i = 0);
  /// The same for rules that hand it on: rows stay rows.
  GradVal handedOn(int i = 0);
  bool has(int i) const { return i < static_cast<int>(dys.size()) && dys[i]; }
  void set(int i, const GradVal &v) { grads[i] = v; }
  /// Whether gradients flow into this input, so that a rule may leave out what nobody reads.
  bool wants(int i) const { return isDifferentiable(node.inputType(i)); }
  void fail(std::string_view why);

  int64_t intAttr(const char *name) const { return node.intAttr(name); }
  bool boolAttr(const char *name) const { return node.boolAttr(name); }
  /// Attributes of the node to hand on under their own names.
  NamedAttrs attrs(std::initializer_list<const char *> names) const;

  std::vector<GradVal> take() { return std::move(grads); }

private:
  std::vector<GradVal> dys, grads;
};

using Rule = void (*)(Grad &g);

struct Rules {
  std::map<std::string_view, Rule> rules;
  std::map<std::string_view, std::string_view> none;    ///< ops without a gradient, with the reason
  std::map<std::string_view, std::string_view> missing; ///< ops whose gradient TensorFlow alone has, with the reason

  void add(std::initializer_list<std::string_view> names, Rule rule) {
    for (std::string_view name : names)
      rules[name] = rule;
  }
  void addNone(std::string_view reason, std::initializer_list<std::string_view> names) {
    for (std::string_view name : names)
      none[name] = reason;
  }
  void addMissing(std::string_view reason, std::initializer_list<std::string_view> names) {
    for (std::string_view name : names)
      missing[name] = reason;
  }
  const Rule *find(std::string_view op) const {
    auto it = rules.find(op);
    return it == rules.end() ? nullptr : &it->second;
  }
  static const Rules &get();
};

// by family
void addMathRules(Rules &rules);
void addBinaryRules(Rules &rules);
void addReductionRules(Rules &rules);
void addSegmentRules(Rules &rules);
void addArrayRules(Rules &rules);
void addSliceRules(Rules &rules);
void addGatherRules(Rules &rules);
void addDiagonalRules(Rules &rules);
void addActivationRules(Rules &rules);
void addConvRules(Rules &rules);
void addPoolRules(Rules &rules);
void addNormRules(Rules &rules);
void addLossRules(Rules &rules);
void addImageRules(Rules &rules);
void addLinalgRules(Rules &rules);
void addDecompositionRules(Rules &rules);
void addEinsumRules(Rules &rules);
void addFftRules(Rules &rules);
void addListRules(Rules &rules);
void addSparseRules(Rules &rules);
void addQuantRules(Rules &rules);
void addRandomRules(Rules &rules);
void addFlowRules(Rules &rules);
void addFunctionRules(Rules &rules);
void addNotDifferentiable(Rules &rules);

} // namespace lathe::graphdef

#endif
