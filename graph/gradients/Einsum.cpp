// Einsum: gradients are einsums too. Labels that only one operand has were summed and are broadcast back; an ellipsis may stand
// for dimensions that were broadcast between the operands.
#include "graph/gradients/Expr.h"
#include "graph/gradients/Rules.h"

#include <algorithm>
#include <set>

namespace lathe::graphdef {
namespace {

constexpr const char *kEllipsis = "...";

bool hasEllipsis(const std::string &labels) { return labels.find(kEllipsis) != std::string::npos; }

/// Position of a label's first dimension, from the end where it stands behind the ellipsis.
int axisOf(const std::string &labels, char label) {
  int at = static_cast<int>(labels.find(label));
  size_t dots = labels.find(kEllipsis);
  return dots != std::string::npos && at > static_cast<int>(dots) ? at - static_cast<int>(labels.size()) : at;
}

Val einsum(const std::vector<Val> &operands, const std::string &equation) { return call("Einsum", {operands}, {{"equation", equation}}); }

/// Labels of `labels` that are not in `others`, each once.
std::string missingFrom(const std::string &labels, const std::string &others) {
  std::string out;
  for (char c : labels)
    if (c != '.' && others.find(c) == std::string::npos && out.find(c) == std::string::npos)
      out += c;
  return out;
}

/// From d by `have` to the operand x by `want`: labels that d lacks are put in front by broadcasting, then the einsum sorts
/// dimensions and spreads what was a diagonal.
Val spreadTo(Val d, Val x, const std::string &have, const std::string &want) {
  std::string lost = missingFrom(want, have);
  if (!lost.empty()) {
    Val shape = Shape(x), here = Shape(d);
    std::vector<Val> sizes, ones;
    for (char c : lost) {
      sizes.push_back(element(shape, axisOf(want, c)));
      ones.push_back(intOf(x, 1));
    }
    Val zero = intOf(x, 0);
    d = BroadcastTo(Reshape(d, Concat({Pack(ones), here}, zero)), Concat({Pack(sizes), here}, zero));
  }
  return lost + have == want ? d : einsum({d}, lost + have + "->" + want);
}

/// The gradient of x, by `mine`, in an einsum with y, by `theirs`.
Val toOperand(Val d, Val x, Val y, const std::string &mine, const std::string &theirs, const std::string &out) {
  // a dimension summed over before the product
  std::string alone = missingFrom(mine, out + theirs), kept;
  for (char c : mine)
    if (alone.find(c) == std::string::npos)
      kept += c;
  Val reduced = einsum({d, Conj(y)}, out + "," + theirs + "->" + kept);
  return alone.empty() ? reduced : spreadTo(reduced, x, kept, mine);
}

/// The part of a shape that the ellipsis stands for; empty without one.
Val batchOf(Val x, const std::string &labels) {
  size_t dots = labels.find(kEllipsis);
  Val shape = Shape(x);
  if (dots == std::string::npos)
    return Slice(shape, ints(x, {0}), ints(x, {0}));
  int behind = static_cast<int>(labels.size() - dots) - 3;
  return part(shape, static_cast<int>(dots), -behind);
}

int batchStart(const std::string &labels) { return static_cast<int>(std::min(labels.find(kEllipsis), labels.size())); }

void gradient(Grad &g) {
  std::string equation;
  for (char c : g.node.stringAttr("equation"))
    if (c != ' ')
      equation += c;
  size_t arrow = equation.find("->");
  if (arrow == std::string::npos) {
    g.fail("an equation without '->' has no gradient");
    return;
  }
  std::string left = equation.substr(0, arrow), out = equation.substr(arrow + 2);
  size_t comma = left.find(',');
  if (comma == std::string::npos) {
    g.set(0, spreadTo(g.dy(), g.in(0), out, left));
    return;
  }
  std::string a = left.substr(0, comma), b = left.substr(comma + 1);
  bool broadcasts = hasEllipsis(out);
  // every operand of the gradient's equations needs the dimensions that the result has
  std::string fullA = broadcasts && !hasEllipsis(a) ? a + kEllipsis : a, fullB = broadcasts && !hasEllipsis(b) ? b + kEllipsis : b;
  Val x = g.in(0), y = g.in(1);
  Val dx = toOperand(g.dy(), x, y, fullA, fullB, out), dy = toOperand(g.dy(), y, x, fullB, fullA, out);
  if (!broadcasts) {
    g.set(0, dx);
    g.set(1, dy);
    return;
  }
  Val axes = call("BroadcastGradientArgs", {batchOf(x, fullA), batchOf(y, fullB)});
  g.set(0, sumTo(dx, axes + batchStart(fullA), Shape(x)));
  g.set(1, sumTo(dy, axes.at(1) + batchStart(fullB), Shape(y)));
}

} // namespace

void addEinsumRules(Rules &r) { r.add({"Einsum", "XlaEinsum"}, gradient); }

} // namespace lathe::graphdef
