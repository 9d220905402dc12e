// Symbolic sizes and the module's symbol table, see Shape.h.
#include "dialects/hlo/Shape.h"

#include "mlir/IR/AffineMap.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <map>

using namespace mlir;

namespace lathe::hlo {

AffineExpr constantExpr(MLIRContext *context, int64_t value) { return getAffineConstantExpr(value, context); }
AffineExpr symbolExpr(MLIRContext *context, unsigned symbol) { return getAffineSymbolExpr(symbol, context); }

//===----------------------------------------------------------------------===//
// Normal form
//===----------------------------------------------------------------------===//

namespace {

// A product of atoms, sorted by text order of their structure: atoms are compared by a structural order so that the
// normal form does not depend on pointers.
int compareExprs(AffineExpr a, AffineExpr b) {
  if (a == b)
    return 0;
  if (a.getKind() != b.getKind())
    return a.getKind() < b.getKind() ? -1 : 1;
  if (auto s = dyn_cast<AffineSymbolExpr>(a))
    return s.getPosition() < cast<AffineSymbolExpr>(b).getPosition() ? -1 : 1;
  if (auto d = dyn_cast<AffineDimExpr>(a))
    return d.getPosition() < cast<AffineDimExpr>(b).getPosition() ? -1 : 1;
  if (auto c = dyn_cast<AffineConstantExpr>(a))
    return c.getValue() < cast<AffineConstantExpr>(b).getValue() ? -1 : 1;
  auto x = cast<AffineBinaryOpExpr>(a), y = cast<AffineBinaryOpExpr>(b);
  if (int order = compareExprs(x.getLHS(), y.getLHS()))
    return order;
  return compareExprs(x.getRHS(), y.getRHS());
}

struct MonomialLess {
  bool operator()(const SmallVector<AffineExpr> &a, const SmallVector<AffineExpr> &b) const {
    if (a.size() != b.size())
      return a.size() > b.size();
    for (auto [x, y] : llvm::zip(a, b))
      if (int order = compareExprs(x, y))
        return order < 0;
    return false;
  }
};

using Polynomial = std::map<SmallVector<AffineExpr>, int64_t, MonomialLess>;

// Sizes come from user input: expansion stops at this many terms and expressions at this depth.
constexpr size_t maxTerms = 256;
constexpr int maxDepth = 200;

bool addTerm(Polynomial &p, const SmallVector<AffineExpr> &monomial, int64_t factor) {
  int64_t &slot = p[monomial];
  if (llvm::AddOverflow(slot, factor, slot))
    return false;
  if (slot == 0)
    p.erase(monomial);
  return p.size() <= maxTerms;
}

AffineExpr build(const Polynomial &p, MLIRContext *context) {
  AffineExpr sum;
  for (const auto &[monomial, factor] : p) {
    AffineExpr term;
    for (AffineExpr atom : monomial)
      term = term ? term * atom : atom;
    term = term ? (factor == 1 ? term : term * factor) : constantExpr(context, factor);
    sum = sum ? sum + term : term;
  }
  return sum ? sum : constantExpr(context, 0);
}

bool expand(AffineExpr expr, Polynomial &out, int depth);

// floor(p / divisor) without the multiples of the divisor, which go to `out`.
bool expandFloorDiv(const Polynomial &p, int64_t divisor, int64_t factor, Polynomial &out, MLIRContext *context) {
  Polynomial rest;
  for (const auto &[monomial, value] : p) {
    int64_t quotient = llvm::divideFloorSigned(value, divisor), left = value - quotient * divisor, scaled;
    if (!monomial.empty() && left != 0) {
      quotient = 0;
      left = value;
    }
    if (quotient != 0 && (llvm::MulOverflow(quotient, factor, scaled) || !addTerm(out, monomial, scaled)))
      return false;
    if (left != 0 && !addTerm(rest, monomial, left))
      return false;
  }
  if (rest.empty() || (rest.size() == 1 && rest.begin()->first.empty()))
    return true; // what is left lies in [0, divisor)
  return addTerm(out, {build(rest, context).floorDiv(divisor)}, factor);
}

bool expand(AffineExpr expr, Polynomial &out, int depth) {
  if (depth > maxDepth)
    return false;
  MLIRContext *context = expr.getContext();
  if (auto c = dyn_cast<AffineConstantExpr>(expr))
    return c.getValue() == 0 || addTerm(out, {}, c.getValue());
  if (isa<AffineSymbolExpr, AffineDimExpr>(expr))
    return addTerm(out, {expr}, 1);
  auto binary = cast<AffineBinaryOpExpr>(expr);
  Polynomial a, b;
  if (!expand(binary.getLHS(), a, depth + 1) || !expand(binary.getRHS(), b, depth + 1))
    return false;
  switch (expr.getKind()) {
  case AffineExprKind::Add:
    out = a;
    for (const auto &[monomial, factor] : b)
      if (!addTerm(out, monomial, factor))
        return false;
    return true;
  case AffineExprKind::Mul:
    for (const auto &[m1, f1] : a)
      for (const auto &[m2, f2] : b) {
        SmallVector<AffineExpr> monomial(m1);
        monomial.append(m2);
        llvm::sort(monomial, [](AffineExpr x, AffineExpr y) { return compareExprs(x, y) < 0; });
        int64_t factor;
        if (llvm::MulOverflow(f1, f2, factor) || !addTerm(out, monomial, factor))
          return false;
      }
    return true;
  default:
    break;
  }
  // floordiv, ceildiv, mod
  std::optional<int64_t> divisor;
  if (b.empty())
    divisor = 0;
  else if (b.size() == 1 && b.begin()->first.empty())
    divisor = b.begin()->second;
  if (divisor && *divisor > 0) {
    if (expr.getKind() == AffineExprKind::CeilDiv) {
      if (!addTerm(a, {}, *divisor - 1) && *divisor != 1)
        return false;
      return expandFloorDiv(a, *divisor, 1, out, context);
    }
    if (expr.getKind() == AffineExprKind::FloorDiv)
      return expandFloorDiv(a, *divisor, 1, out, context);
    // x mod c = x - c * floor(x / c)
    out = a;
    return expandFloorDiv(a, *divisor, -*divisor, out, context);
  }
  if (divisor && *divisor <= 0)
    return false;
  // a symbolic divisor: equal operands divide exactly, a divisor that is one product divides each term that has it
  AffineExpr x = build(a, context), y = build(b, context);
  if (b.size() == 1 && expr.getKind() != AffineExprKind::Mod) {
    const auto &[divMonomial, divFactor] = *b.begin();
    Polynomial quotient;
    bool exact = true;
    for (const auto &[monomial, factor] : a) {
      SmallVector<AffineExpr> left(monomial);
      for (AffineExpr atom : divMonomial) {
        auto *it = llvm::find(left, atom);
        if (it == left.end()) {
          exact = false;
          break;
        }
        left.erase(it);
      }
      if (!exact || factor % divFactor != 0) {
        exact = false;
        break;
      }
      if (!addTerm(quotient, left, factor / divFactor))
        return false;
    }
    if (exact) {
      out = quotient;
      return true;
    }
  }
  if (x == y)
    return expr.getKind() == AffineExprKind::Mod || addTerm(out, {}, 1);
  return addTerm(out, {getAffineBinaryOpExpr(expr.getKind(), x, y)}, 1);
}

} // namespace

AffineExpr simplify(AffineExpr expr) {
  if (!expr || isa<AffineConstantExpr, AffineSymbolExpr, AffineDimExpr>(expr))
    return expr;
  Polynomial p;
  if (!expand(expr, p, 0))
    return expr;
  return build(p, expr.getContext());
}

std::optional<int64_t> constantValue(AffineExpr expr) {
  if (auto c = dyn_cast_if_present<AffineConstantExpr>(expr))
    return c.getValue();
  return std::nullopt;
}

bool equalDims(AffineExpr a, AffineExpr b) { return a && b && (a == b || simplify(a) == simplify(b)); }

bool differentDims(AffineExpr a, AffineExpr b) {
  if (!a || !b)
    return false;
  auto difference = constantValue(simplify(a - b));
  return difference && *difference != 0;
}

AffineExpr ceilDiv(AffineExpr a, int64_t b) {
  if (!a || b <= 0)
    return {};
  return simplify(a.ceilDiv(b));
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

static AffineMap getMap(RankedTensorType type) {
  if (auto map = dyn_cast_if_present<AffineMapAttr>(type.getEncoding()))
    if (map.getValue().getNumResults() == static_cast<unsigned>(type.getRank()) && map.getValue().getNumDims() == 0)
      return map.getValue();
  return {};
}

AffineExpr getDim(RankedTensorType type, int64_t dim) {
  if (!type.isDynamicDim(dim))
    return constantExpr(type.getContext(), type.getDimSize(dim));
  AffineMap map = getMap(type);
  return map ? map.getResult(dim) : AffineExpr();
}

SmallVector<AffineExpr> getDims(RankedTensorType type) {
  SmallVector<AffineExpr> dims;
  for (int64_t i = 0; i < type.getRank(); ++i)
    dims.push_back(getDim(type, i));
  return dims;
}

RankedTensorType makeType(ArrayRef<AffineExpr> dims, Type elementType) {
  SmallVector<int64_t> sizes;
  SmallVector<AffineExpr> exprs;
  bool dynamic = false, unknown = false;
  unsigned numSymbols = 0;
  for (AffineExpr dim : dims) {
    dim = simplify(dim);
    exprs.push_back(dim);
    if (auto value = constantValue(dim)) {
      sizes.push_back(std::max<int64_t>(*value, 0));
      exprs.back() = constantExpr(elementType.getContext(), sizes.back());
      continue;
    }
    sizes.push_back(ShapedType::kDynamic);
    dynamic = true;
    if (!dim) {
      unknown = true;
      continue;
    }
    for (unsigned symbol : getSymbols(dim))
      numSymbols = std::max(numSymbols, symbol + 1);
  }
  if (!dynamic || unknown)
    return RankedTensorType::get(sizes, elementType);
  AffineMap map = AffineMap::get(0, numSymbols, exprs, elementType.getContext());
  return RankedTensorType::get(sizes, elementType, AffineMapAttr::get(map));
}

RankedTensorType makeType(ArrayRef<int64_t> dims, Type elementType) { return RankedTensorType::get(dims, elementType); }

RankedTensorType withElementType(RankedTensorType type, Type elementType) {
  return RankedTensorType::get(type.getShape(), elementType, type.getEncoding());
}

AffineExpr numElements(ArrayRef<AffineExpr> dims, MLIRContext *context) {
  AffineExpr product = constantExpr(context, 1);
  for (AffineExpr dim : dims) {
    if (!dim)
      return {};
    if (auto a = constantValue(product))
      if (auto b = constantValue(dim)) {
        int64_t value;
        if (llvm::MulOverflow(*a, *b, value))
          return {};
        product = constantExpr(context, value);
        continue;
      }
    product = product * dim;
  }
  return simplify(product);
}

AffineExpr numElements(RankedTensorType type) { return numElements(getDims(type), type.getContext()); }

bool hasKnownDims(RankedTensorType type) { return type.hasStaticShape() || getMap(type); }

SmallVector<unsigned> getSymbols(AffineExpr expr) {
  SmallVector<unsigned> symbols;
  if (expr)
    expr.walk([&](AffineExpr e) {
      if (auto s = dyn_cast<AffineSymbolExpr>(e))
        symbols.push_back(s.getPosition());
    });
  llvm::sort(symbols);
  symbols.erase(llvm::unique(symbols), symbols.end());
  return symbols;
}

std::optional<int64_t> evaluate(AffineExpr expr, ArrayRef<int64_t> symbols) {
  if (!expr)
    return std::nullopt;
  if (auto c = dyn_cast<AffineConstantExpr>(expr))
    return c.getValue();
  if (auto s = dyn_cast<AffineSymbolExpr>(expr)) {
    if (s.getPosition() >= symbols.size() || symbols[s.getPosition()] < 0)
      return std::nullopt;
    return symbols[s.getPosition()];
  }
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary)
    return std::nullopt;
  auto a = evaluate(binary.getLHS(), symbols), b = evaluate(binary.getRHS(), symbols);
  if (!a || !b)
    return std::nullopt;
  int64_t value;
  switch (expr.getKind()) {
  case AffineExprKind::Add:
    return llvm::AddOverflow(*a, *b, value) ? std::nullopt : std::optional<int64_t>(value);
  case AffineExprKind::Mul:
    return llvm::MulOverflow(*a, *b, value) ? std::nullopt : std::optional<int64_t>(value);
  default:
    break;
  }
  if (*b <= 0)
    return std::nullopt;
  if (expr.getKind() == AffineExprKind::FloorDiv)
    return llvm::divideFloorSigned(*a, *b);
  if (expr.getKind() == AffineExprKind::CeilDiv)
    return llvm::divideCeilSigned(*a, *b);
  return llvm::mod(*a, *b);
}

AffineExpr substitute(AffineExpr expr, ArrayRef<AffineExpr> replacements) {
  if (!expr)
    return expr;
  SmallVector<AffineExpr> all;
  unsigned count = 0;
  for (unsigned symbol : getSymbols(expr))
    count = std::max(count, symbol + 1);
  for (unsigned i = 0; i < count; ++i)
    all.push_back(i < replacements.size() && replacements[i] ? replacements[i] : symbolExpr(expr.getContext(), i));
  return simplify(expr.replaceSymbols(all));
}

// Interval arithmetic: symbols lie in [0, bound].
static bool range(AffineExpr expr, ArrayRef<SymbolInfo> table, std::optional<int64_t> &low,
                  std::optional<int64_t> &high, int depth = 0) {
  if (depth > maxDepth)
    return false;
  if (auto c = dyn_cast<AffineConstantExpr>(expr)) {
    low = high = c.getValue();
    return true;
  }
  if (auto s = dyn_cast<AffineSymbolExpr>(expr)) {
    low = 0;
    high = std::nullopt;
    if (s.getPosition() >= table.size())
      return true;
    const SymbolInfo &info = table[s.getPosition()];
    if (info.boundExpr) {
      // bounds refer to input symbols; a chain that is longer (or a cycle) ends at the depth limit
      std::optional<int64_t> ignored;
      return range(info.boundExpr, table, ignored, high, depth + 8);
    }
    if (info.bound >= 0)
      high = info.bound;
    return true;
  }
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary)
    return false;
  std::optional<int64_t> al, ah, bl, bh;
  if (!range(binary.getLHS(), table, al, ah, depth + 1) || !range(binary.getRHS(), table, bl, bh, depth + 1))
    return false;
  low = high = std::nullopt;
  auto add = [](std::optional<int64_t> x, std::optional<int64_t> y) -> std::optional<int64_t> {
    int64_t sum;
    if (!x || !y || llvm::AddOverflow(*x, *y, sum))
      return std::nullopt;
    return sum;
  };
  switch (expr.getKind()) {
  case AffineExprKind::Add:
    low = add(al, bl);
    high = add(ah, bh);
    return true;
  case AffineExprKind::Mul: {
    auto mul = [](std::optional<int64_t> x, std::optional<int64_t> y) -> std::optional<int64_t> {
      int64_t product;
      if (!x || !y || llvm::MulOverflow(*x, *y, product))
        return std::nullopt;
      return product;
    };
    if (al && *al >= 0 && bl && *bl >= 0) {
      low = mul(al, bl);
      high = mul(ah, bh);
      return true;
    }
    if (bl && bh && *bl == *bh && *bl < 0) {
      low = mul(ah, bl);
      high = mul(al, bl);
      return true;
    }
    auto p = mul(al, bl), q = mul(al, bh), r = mul(ah, bl), s = mul(ah, bh);
    if (p && q && r && s) {
      low = std::min({*p, *q, *r, *s});
      high = std::max({*p, *q, *r, *s});
    }
    return true;
  }
  default:
    break;
  }
  if (!bl || *bl <= 0)
    return true;
  if (expr.getKind() == AffineExprKind::Mod) {
    low = 0;
    if (bh)
      high = *bh - 1;
    return true;
  }
  bool ceil = expr.getKind() == AffineExprKind::CeilDiv;
  auto divide = [&](int64_t x, int64_t y) { return ceil ? llvm::divideCeilSigned(x, y) : llvm::divideFloorSigned(x, y); };
  if (ah && (*ah >= 0 || bh))
    high = *ah >= 0 ? divide(*ah, *bl) : divide(*ah, *bh);
  if (al && (*al < 0 || bh))
    low = *al < 0 ? divide(*al, *bl) : divide(*al, *bh);
  else if (al && *al >= 0)
    low = 0;
  return true;
}

std::optional<int64_t> upperBound(AffineExpr expr, ModuleOp module) {
  if (!expr)
    return std::nullopt;
  std::optional<int64_t> low, high;
  auto table = getSymbolTable(module);
  if (!range(simplify(expr), table, low, high))
    return std::nullopt;
  return high;
}

std::string dimToString(AffineExpr expr) {
  if (!expr)
    return "?";
  std::string text;
  llvm::raw_string_ostream os(text);
  os << expr;
  return text;
}

//===----------------------------------------------------------------------===//
// Symbol table
//===----------------------------------------------------------------------===//

SmallVector<SymbolInfo> getSymbolTable(ModuleOp module) {
  SmallVector<SymbolInfo> table;
  auto array = module ? module->getAttrOfType<ArrayAttr>(symbolsAttrName) : ArrayAttr();
  if (!array)
    return table;
  for (Attribute entry : array) {
    SymbolInfo info;
    if (auto dict = dyn_cast<DictionaryAttr>(entry)) {
      if (auto name = dict.getAs<StringAttr>("name"))
        info.name = name.str();
      if (auto bound = dict.getAs<AffineMapAttr>("bound"))
        if (bound.getValue().getNumResults() == 1 && bound.getValue().getNumDims() == 0)
          info.boundExpr = bound.getValue().getResult(0);
      if (auto bound = dict.getAs<IntegerAttr>("bound"))
        info.bound = bound.getValue().getSExtValue();
      if (auto kind = dict.getAs<StringAttr>("kind"))
        info.isData = kind.getValue() == "data";
    }
    table.push_back(std::move(info));
  }
  return table;
}

static void setSymbolTable(ModuleOp module, ArrayRef<SymbolInfo> table) {
  Builder b(module.getContext());
  SmallVector<Attribute> entries;
  for (const SymbolInfo &info : table) {
    Attribute bound = b.getI64IntegerAttr(info.bound);
    if (info.boundExpr) {
      auto symbols = getSymbols(info.boundExpr);
      bound = AffineMapAttr::get(AffineMap::get(0, symbols.empty() ? 0 : symbols.back() + 1, info.boundExpr));
    }
    entries.push_back(b.getDictionaryAttr({b.getNamedAttr("name", b.getStringAttr(info.name)),
                                           b.getNamedAttr("bound", bound),
                                           b.getNamedAttr("kind", b.getStringAttr(info.isData ? "data" : "input"))}));
  }
  module->setAttr(symbolsAttrName, b.getArrayAttr(entries));
}

std::optional<SymbolInfo> lookupSymbol(ModuleOp module, unsigned symbol) {
  auto table = getSymbolTable(module);
  if (symbol >= table.size())
    return std::nullopt;
  return table[symbol];
}

unsigned addInputSymbol(ModuleOp module, StringRef name, int64_t bound) {
  auto table = getSymbolTable(module);
  for (auto [i, info] : llvm::enumerate(table))
    if (!info.isData && info.name == name)
      return i;
  table.push_back({name.str(), bound, {}, false});
  setSymbolTable(module, table);
  return table.size() - 1;
}

unsigned addDataSymbol(ModuleOp module, StringRef name, int64_t bound) {
  auto table = getSymbolTable(module);
  table.push_back({name.str(), bound, {}, true});
  setSymbolTable(module, table);
  return table.size() - 1;
}

unsigned addDataSymbol(ModuleOp module, StringRef name, AffineExpr bound) {
  bound = simplify(bound);
  if (auto value = constantValue(bound))
    return addDataSymbol(module, name, *value);
  auto table = getSymbolTable(module);
  table.push_back({name.str(), -1, bound, true});
  setSymbolTable(module, table);
  return table.size() - 1;
}

void setSymbolBound(ModuleOp module, unsigned symbol, int64_t bound) {
  auto table = getSymbolTable(module);
  if (symbol >= table.size())
    return;
  table[symbol].bound = bound;
  table[symbol].boundExpr = {};
  setSymbolTable(module, table);
}

} // namespace lathe::hlo
