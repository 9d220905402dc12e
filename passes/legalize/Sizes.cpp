// Symbolic sizes: which are known to be equal, and what the types of the function say about them.
#include "dialects/hlo/Hlo.h"
#include "dialects/hlo/Shape.h"
#include "dialects/hlo/ShapeBounds.h"
#include "passes/legalize/Emitter.h"
#include "mlir/IR/AffineMap.h"

#include <numeric>

using namespace mlir;

namespace lathe::legalize {

std::optional<int64_t> constantOf(AffineExpr expr) {
  if (auto c = dyn_cast_or_null<AffineConstantExpr>(expr))
    return c.getValue();
  return std::nullopt;
}

AffineExpr productOf(ArrayRef<AffineExpr> dims, MLIRContext *context) {
  // Constants first: a product of many sizes then has one constant factor.
  int64_t factor = 1;
  AffineExpr product;
  for (AffineExpr dim : dims) {
    if (auto c = constantOf(dim)) {
      if (__builtin_mul_overflow(factor, *c, &factor))
        factor = INT64_MAX;
    } else {
      product = product ? product * dim : dim;
    }
  }
  if (!product || factor == 0)
    return getAffineConstantExpr(factor, context);
  return hlo::simplify(factor == 1 ? product : product * factor);
}

/// Splits a product into a constant and the other factors.
static int64_t factorsOf(AffineExpr expr, SmallVectorImpl<AffineExpr> &factors) {
  int64_t constant = 1;
  SmallVector<AffineExpr> stack{expr};
  while (!stack.empty()) {
    AffineExpr e = stack.pop_back_val();
    if (auto c = constantOf(e)) {
      if (__builtin_mul_overflow(constant, *c, &constant))
        constant = INT64_MAX;
      continue;
    }
    auto product = dyn_cast<AffineBinaryOpExpr>(e);
    if (product && e.getKind() == AffineExprKind::Mul) {
      stack.push_back(product.getRHS());
      stack.push_back(product.getLHS());
      continue;
    }
    // c*a + c*b shows its common factor.
    int64_t divisor = e.getLargestKnownDivisor();
    if (e.getKind() == AffineExprKind::Add && divisor > 1) {
      if (__builtin_mul_overflow(constant, divisor, &constant))
        constant = INT64_MAX;
      e = hlo::simplify(e.floorDiv(divisor));
    }
    factors.push_back(e);
  }
  return constant;
}

AffineExpr divideExactly(AffineExpr a, AffineExpr b) {
  MLIRContext *context = a.getContext();
  if (constantOf(b) == int64_t(1))
    return a;
  SmallVector<AffineExpr> above, below;
  int64_t ca = factorsOf(a, above), cb = factorsOf(b, below);
  for (AffineExpr factor : llvm::to_vector(below)) {
    auto it = llvm::find(above, factor);
    if (it == above.end())
      continue;
    above.erase(it);
    below.erase(llvm::find(below, factor));
  }
  if (cb != 0) {
    int64_t g = std::gcd(ca, cb);
    if (g > 1) {
      ca /= g;
      cb /= g;
    }
  }
  above.push_back(getAffineConstantExpr(ca, context));
  below.push_back(getAffineConstantExpr(cb, context));
  AffineExpr p = productOf(above, context), q = productOf(below, context);
  if (constantOf(q) == int64_t(1))
    return p;
  if (constantOf(q) == int64_t(0))
    return getAffineConstantExpr(0, context);
  return hlo::simplify(p.floorDiv(q));
}

//===----------------------------------------------------------------------===//
// Symbols
//===----------------------------------------------------------------------===//

AffineExpr HloContext::newSymbol(StringRef name, int64_t bound, bool isInput) {
  SymbolInfo info;
  info.name = name.str();
  info.bound = bound;
  info.isInput = isInput;
  symbols.push_back(std::move(info));
  return getAffineSymbolExpr(symbols.size() - 1, getContext());
}

AffineExpr HloContext::newDataSymbol(StringRef name, AffineExpr bound) {
  auto c = constantOf(bound);
  AffineExpr symbol = newSymbol(name, c ? *c : -1, false);
  if (!c)
    symbols.back().boundExpr = bound;
  return symbol;
}

AffineExpr HloContext::resolve(AffineExpr expr) {
  if (!expr || isa<AffineConstantExpr>(expr))
    return expr;
  // Replacements never refer to replaced symbols (replaceSymbol resolves them), so once is enough.
  llvm::DenseMap<AffineExpr, AffineExpr> by;
  expr.walk([&](AffineExpr e) {
    if (auto s = dyn_cast<AffineSymbolExpr>(e))
      if (s.getPosition() < symbols.size() && symbols[s.getPosition()].replacement)
        by[e] = symbols[s.getPosition()].replacement;
  });
  return by.empty() ? expr : hlo::simplify(expr.replace(by));
}

Dims HloContext::resolve(ArrayRef<AffineExpr> exprs) {
  Dims result;
  for (AffineExpr expr : exprs)
    result.push_back(resolve(expr));
  return result;
}

static bool hasDataSymbol(AffineExpr expr, ArrayRef<SymbolInfo> symbols) {
  for (unsigned k = 0; k < symbols.size(); ++k)
    if (!symbols[k].isInput && expr.isFunctionOfSymbol(k))
      return true;
  return false;
}

/// Bounds of symbols that were asked for: chains of them refer to each other many times.
using KnownBounds = llvm::DenseMap<unsigned, std::optional<int64_t>>;

static std::optional<int64_t> boundOf(HloContext &ctx, ArrayRef<SymbolInfo> symbols, AffineExpr expr, KnownBounds &known) {
  expr = ctx.resolve(expr);
  if (auto c = constantOf(expr))
    return c;
  // Sizes only grow with their symbols in sums, products and quotients by constants; anything else has no known bound.
  if (auto symbol = dyn_cast<AffineSymbolExpr>(expr)) {
    const SymbolInfo &info = symbols[symbol.getPosition()];
    if (!info.boundExpr)
      return info.bound < 0 ? std::nullopt : std::optional<int64_t>(info.bound);
    auto [at, isNew] = known.try_emplace(symbol.getPosition());
    if (!isNew)
      return at->second;
    auto bound = boundOf(ctx, symbols, info.boundExpr, known);
    known[symbol.getPosition()] = bound;
    return bound;
  }
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary)
    return std::nullopt;
  auto lhs = boundOf(ctx, symbols, binary.getLHS(), known);
  auto rhs = boundOf(ctx, symbols, binary.getRHS(), known);
  if (!lhs)
    return std::nullopt;
  int64_t v = 0;
  switch (expr.getKind()) {
  case AffineExprKind::Add:
    if (!rhs || __builtin_add_overflow(*lhs, *rhs, &v))
      return std::nullopt;
    return v;
  case AffineExprKind::Mul:
    if (!rhs || *rhs < 0 || *lhs < 0 || __builtin_mul_overflow(*lhs, *rhs, &v))
      return std::nullopt;
    return v;
  case AffineExprKind::FloorDiv:
  case AffineExprKind::CeilDiv: {
    auto c = constantOf(binary.getRHS());
    if (!c || *c <= 0)
      return std::nullopt;
    return expr.getKind() == AffineExprKind::FloorDiv ? *lhs / *c : (*lhs + *c - 1) / *c;
  }
  default:
    return std::nullopt;
  }
}

std::optional<int64_t> HloContext::upperBound(AffineExpr expr) {
  KnownBounds known;
  return boundOf(*this, symbols, expr, known);
}

AffineExpr HloContext::inputBound(AffineExpr expr) {
  expr = hlo::withoutNegatives(resolve(expr));
  // later symbols are bounded by earlier ones
  for (size_t k = symbols.size(); expr && k-- > 0;) {
    const SymbolInfo &info = symbols[k];
    if (info.isInput || !expr.isFunctionOfSymbol(k))
      continue;
    AffineExpr bound = info.boundExpr ? resolve(info.boundExpr) : info.bound >= 0 ? constant(info.bound) : AffineExpr();
    if (!bound || !hlo::growsWith(expr, [&](unsigned symbol) { return symbol == k; }))
      return {};
    expr = hlo::withoutNegatives(hlo::simplify(expr.replace(getAffineSymbolExpr(k, getContext()), bound)));
  }
  return expr && !hasDataSymbol(expr, symbols) ? expr : AffineExpr();
}

Value HloContext::withGrowingSizes(Value output, StringRef name) {
  auto type = cast<RankedTensorType>(output.getType());
  Emitter e(*this, entryLoc, name);
  Dims dims = e.dims(output);
  auto isData = [&](unsigned symbol) { return !symbols[symbol].isInput; };
  bool changed = false;
  for (AffineExpr &dim : dims) {
    if (hlo::growsWith(dim, isData))
      continue;
    // the caller makes room where data symbols are largest, and this size may be smallest
    AffineExpr bound = inputBound(dim);
    if (!bound)
      return {};
    AffineExpr symbol = newDataSymbol(name, bound);
    hlo::SetSizeOp::create(builder, entryLoc, e.sizeValue(dim, builder.getI64Type()),
                           int64_t(cast<AffineSymbolExpr>(symbol).getPosition()), name);
    dim = symbol;
    changed = true;
  }
  if (!changed)
    return output;
  return hlo::AssumeShapeOp::create(builder, entryLoc, hlo::makeType(dims, type.getElementType()), output,
                                    "the sizes of an output are not those that were expected", name);
}


bool HloContext::isDataSize(AffineExpr expr) { return hasDataSymbol(resolve(expr), symbols); }

void HloContext::requireEqual(AffineExpr a, AffineExpr b, StringRef nodeName) {
  a = resolve(a);
  b = resolve(b);
  if (a == b)
    return;
  if (hasDataSymbol(a, symbols) || hasDataSymbol(b, symbols)) {
    // Known only in the middle of the run: checked where it is needed.
    Emitter e(*this, entryLoc, nodeName);
    Type i64 = builder.getI64Type();
    e.check(e.compare(Compare::EQ, e.sizeValue(a, i64), e.sizeValue(b, i64)), "sizes differ");
    return;
  }
  checks.push_back({a, b, nodeName.str()});
}

bool HloContext::replaceSymbol(unsigned symbol, AffineExpr by, StringRef nodeName) {
  if (by.isFunctionOfSymbol(symbol))
    return false;
  SymbolInfo &info = symbols[symbol];
  if (auto c = constantOf(by); c && (*c < 0 || (info.bound >= 0 && *c > info.bound)))
    return false;
  if (info.isInput) {
    // The caller's sizes are checked against the types of the arguments, which will say so.
    if (hasDataSymbol(by, symbols))
      return false;
  }

  // A size that is bounded by the symbol, and becomes what it is replaced by, is bounded by its bound: s1 <= s0 <= n, with s0 = s1.
  SmallVector<unsigned> reached;
  auto reach = [&](AffineExpr e) {
    e.walk([&](AffineExpr inner) {
      if (auto s = dyn_cast<AffineSymbolExpr>(inner); s && !llvm::is_contained(reached, s.getPosition()))
        reached.push_back(s.getPosition());
    });
  };
  reach(by);
  for (size_t i = 0; i < reached.size(); ++i) {
    SymbolInfo &other = symbols[reached[i]];
    if (!other.boundExpr)
      continue;
    other.boundExpr = resolve(other.boundExpr);
    if (other.boundExpr.isFunctionOfSymbol(symbol)) {
      AffineExpr bound = info.boundExpr ? resolve(info.boundExpr) : info.bound >= 0 ? constant(info.bound) : AffineExpr();
      if (!bound || bound.isFunctionOfSymbol(symbol))
        return false;
      other.boundExpr = hlo::simplify(other.boundExpr.replace(getAffineSymbolExpr(symbol, getContext()), bound));
    }
    reach(other.boundExpr);
  }

  // The producer keeps the symbol; everything after sees the other size through a run-time check.
  SmallVector<Operation *> producers;
  if (!info.isInput) {
    function.walk([&](Operation *op) {
      auto attr = op->getAttrOfType<IntegerAttr>("symbol");
      if (attr && attr.getInt() == int64_t(symbol))
        producers.push_back(op);
    });
    for (Operation *op : producers) {
      if (isa<hlo::SetSizeOp>(op)) {
        // The symbol is gone from all types, so the count only has to be right.
        OpBuilder::InsertionGuard guard(builder);
        builder.setInsertionPoint(op);
        Emitter e(*this, op->getLoc(), nodeName);
        Value count = op->getOperand(0);
        Value expected = e.sizeValue(by, e.elementType(count));
        e.check(e.compare(Compare::EQ, count, e.reshape(expected, e.dims(count))),
                "the number of elements is not the one that is expected here");
        op->erase();
        folded.clear();
        continue;
      }
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointAfter(op);
      Emitter e(*this, op->getLoc(), nodeName);
      for (Value result : op->getResults()) {
        auto type = dyn_cast<RankedTensorType>(result.getType());
        if (!type || type.hasStaticShape())
          continue;
        Dims dims = e.dims(result), limits;
        SmallVector<AffineExpr> replacements;
        for (unsigned k = 0; k < symbols.size(); ++k)
          replacements.push_back(k == symbol ? by : getAffineSymbolExpr(k, getContext()));
        for (AffineExpr dim : dims)
          limits.push_back(hlo::simplify(dim.replaceSymbols(replacements)));
        if (limits == dims)
          continue;
        Value cut = hlo::AssumeShapeOp::create(builder, op->getLoc(), hlo::makeType(limits, type.getElementType()), result,
                                               "the number of elements is not the one that is expected here", nodeName);
        result.replaceAllUsesExcept(cut, cut.getDefiningOp());
        replaced(result, cut);
      }
    }
  }
  info.replacement = by;
  SmallVector<AffineExpr> one;
  for (unsigned k = 0; k < symbols.size(); ++k)
    one.push_back(k == symbol ? by : getAffineSymbolExpr(k, getContext()));
  for (SymbolInfo &other : symbols)
    if (other.replacement && other.replacement.isFunctionOfSymbol(symbol))
      other.replacement = hlo::simplify(other.replacement.replaceSymbols(one));
  substituteInTypes();
  return true;
}

bool HloContext::unify(AffineExpr a, AffineExpr b, StringRef nodeName) {
  a = resolve(a);
  b = resolve(b);
  if (!a || !b)
    return false;
  AffineExpr difference = hlo::simplify(a - b);
  if (a == b || constantOf(difference) == int64_t(0))
    return true;
  if (constantOf(difference))
    return false;
  // Factors that both have.
  SmallVector<AffineExpr> fa, fb;
  int64_t ca = factorsOf(a, fa), cb = factorsOf(b, fb);
  for (AffineExpr factor : llvm::to_vector(fb)) {
    auto it = llvm::find(fa, factor);
    if (it == fa.end())
      continue;
    fa.erase(it);
    fb.erase(llvm::find(fb, factor));
  }
  int64_t g = ca && cb ? std::gcd(ca, cb) : 1;
  fa.push_back(constant(ca / g));
  fb.push_back(constant(cb / g));
  a = productOf(fa, getContext());
  b = productOf(fb, getContext());

  auto tryReplace = [&](AffineExpr x, AffineExpr y) {
    // c * s == y  and  s + c == y
    int64_t factor = 1, term = 0;
    if (auto sum = dyn_cast<AffineBinaryOpExpr>(x); sum && x.getKind() == AffineExprKind::Add)
      if (auto c = constantOf(sum.getRHS())) {
        term = *c;
        x = sum.getLHS();
      }
    if (auto product = dyn_cast<AffineBinaryOpExpr>(x); product && x.getKind() == AffineExprKind::Mul)
      if (auto c = constantOf(product.getRHS()); c && *c != 0) {
        factor = *c;
        x = product.getLHS();
      }
    auto symbol = dyn_cast<AffineSymbolExpr>(x);
    if (!symbol)
      return false;
    AffineExpr rest = hlo::simplify(y - term);
    if (factor != 1) {
      if (rest.getLargestKnownDivisor() % factor != 0 && !isa<AffineConstantExpr>(rest)) {
        rest = hlo::simplify(rest.floorDiv(factor));
      } else {
        if (auto c = constantOf(rest); c && *c % factor != 0)
          return false;
        rest = hlo::simplify(rest.floorDiv(factor));
      }
    }
    return replaceSymbol(symbol.getPosition(), rest, nodeName);
  };
  auto isData = [&](AffineExpr e) {
    auto s = dyn_cast<AffineSymbolExpr>(e);
    return s && !symbols[s.getPosition()].isInput;
  };
  auto sa = dyn_cast<AffineSymbolExpr>(a), sb = dyn_cast<AffineSymbolExpr>(b);
  // Data symbols give way to input symbols, later ones to earlier ones.
  bool preferB = sa && sb && (isData(a) == isData(b) ? sb.getPosition() > sa.getPosition() : isData(b));
  if (!sa && sb)
    preferB = true;
  if (preferB)
    return tryReplace(b, a) || tryReplace(a, b);
  return tryReplace(a, b) || tryReplace(b, a);
}

static Type replaceInType(Type type, llvm::function_ref<AffineExpr(AffineExpr)> resolve) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || tensor.hasStaticShape() || !tensor.getEncoding())
    return type;
  SmallVector<AffineExpr> dims;
  for (AffineExpr dim : hlo::getDims(tensor))
    dims.push_back(resolve(dim));
  return hlo::makeType(dims, tensor.getElementType());
}

static void replaceInFunction(func::FuncOp function, llvm::function_ref<AffineExpr(AffineExpr)> resolve,
                              llvm::function_ref<bool(Operation *)> keep = nullptr) {
  auto replaceMap = [&](Attribute attr) -> Attribute {
    auto map = dyn_cast<AffineMapAttr>(attr);
    if (!map || map.getValue().getNumDims() != 0)
      return attr;
    SmallVector<AffineExpr> exprs;
    unsigned numSymbols = 0;
    for (AffineExpr e : map.getValue().getResults()) {
      exprs.push_back(resolve(e));
      exprs.back().walk([&](AffineExpr inner) {
        if (auto s = dyn_cast<AffineSymbolExpr>(inner))
          numSymbols = std::max(numSymbols, s.getPosition() + 1);
      });
    }
    return AffineMapAttr::get(AffineMap::get(0, numSymbols, exprs, attr.getContext()));
  };
  function.walk([&](Operation *op) {
    if (keep && keep(op))
      return;
    for (Value result : op->getResults())
      result.setType(replaceInType(result.getType(), resolve));
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (BlockArgument arg : block.getArguments())
          arg.setType(replaceInType(arg.getType(), resolve));
    if (op == function.getOperation())
      return;
    for (NamedAttribute named : llvm::to_vector(op->getAttrs())) {
      Attribute next = replaceMap(named.getValue());
      if (next != named.getValue())
        op->setAttr(named.getName(), next);
    }
  });
}

void HloContext::substituteInTypes() {
  // An op that writes a symbol keeps it in its results even where everything after it sees another size.
  replaceInFunction(function, [&](AffineExpr e) { return resolve(e); }, [&](Operation *op) {
    auto symbol = op->getAttrOfType<IntegerAttr>("symbol");
    return symbol && op->getNumResults() && symbols[symbol.getInt()].replacement;
  });
}

LogicalResult HloContext::finishSymbols() {
  // Used symbols, over all functions and checks.
  std::vector<bool> used(symbols.size(), false);
  auto mark = [&](AffineExpr expr) {
    expr.walk([&](AffineExpr e) {
      if (auto s = dyn_cast<AffineSymbolExpr>(e))
        used[s.getPosition()] = true;
    });
    return expr;
  };
  SmallVector<func::FuncOp> functions(module.getOps<func::FuncOp>());
  for (func::FuncOp f : functions) {
    replaceInFunction(f, mark);
    f.walk([&](Operation *op) {
      if (auto attr = op->getAttrOfType<IntegerAttr>("symbol"))
        if (attr.getInt() >= 0 && attr.getInt() < int64_t(used.size()))
          used[attr.getInt()] = true;
    });
    if (auto list = f->getAttrOfType<ArrayAttr>("hlo.size_checks"))
      for (auto entry : list.getAsRange<DictionaryAttr>())
        for (StringRef side : {"lhs", "rhs"})
          for (AffineExpr e : entry.getAs<AffineMapAttr>(side).getValue().getResults())
            mark(e);
  }
  for (size_t k = symbols.size(); k-- > 0;)
    if (used[k] && symbols[k].boundExpr)
      mark(symbols[k].boundExpr = resolve(symbols[k].boundExpr));
  bool bounded = true;
  for (auto [k, info] : llvm::enumerate(symbols))
    if (used[k] && !info.isInput && info.bound < 0 && !info.boundExpr) {
      emitError(module.getLoc()) << "node '" << info.name
                                 << "': the size of its result depends on data without a bound: its input must be known at compile time";
      bounded = false;
    }
  if (!bounded)
    return failure();
  SmallVector<AffineExpr> renumbered;
  for (size_t k = 0, next = 0; k < symbols.size(); ++k) {
    renumbered.push_back(getAffineSymbolExpr(next, getContext()));
    next += used[k];
  }
  auto renumber = [&](AffineExpr e) { return hlo::simplify(e.replaceSymbols(renumbered)); };
  SmallVector<Attribute> infos;
  Builder b(getContext());
  for (auto [k, info] : llvm::enumerate(symbols)) {
    if (!used[k])
      continue;
    Attribute bound = b.getI64IntegerAttr(info.bound);
    if (info.boundExpr)
      bound = AffineMapAttr::get(AffineMap::get(0, llvm::count(used, true), renumber(info.boundExpr)));
    infos.push_back(b.getDictionaryAttr({b.getNamedAttr("name", b.getStringAttr(info.name)),
                                         b.getNamedAttr("bound", bound),
                                         b.getNamedAttr("kind", b.getStringAttr(info.isInput ? "input" : "data"))}));
  }
  auto mapOf = [&](AffineExpr e) { return AffineMapAttr::get(AffineMap::get(0, infos.size(), e)); };
  for (func::FuncOp f : functions) {
    replaceInFunction(f, renumber);
    f.walk([&](Operation *op) {
      if (auto attr = op->getAttrOfType<IntegerAttr>("symbol"))
        op->setAttr("symbol", b.getI64IntegerAttr(cast<AffineSymbolExpr>(renumbered[attr.getInt()]).getPosition()));
    });
    if (auto list = f->getAttrOfType<ArrayAttr>("hlo.size_checks")) {
      SmallVector<Attribute> entries;
      for (auto entry : list.getAsRange<DictionaryAttr>()) {
        AffineExpr lhs = renumber(entry.getAs<AffineMapAttr>("lhs").getValue().getResult(0));
        AffineExpr rhs = renumber(entry.getAs<AffineMapAttr>("rhs").getValue().getResult(0));
        entries.push_back(b.getDictionaryAttr({b.getNamedAttr("lhs", mapOf(lhs)), b.getNamedAttr("rhs", mapOf(rhs)),
                                               b.getNamedAttr("node", entry.get("node"))}));
      }
      f->setAttr("hlo.size_checks", b.getArrayAttr(entries));
    }
    SmallVector<Type> args(f.getBody().getArgumentTypes());
    SmallVector<Type> results(f.getBody().front().getTerminator()->getOperandTypes());
    f.setFunctionType(b.getFunctionType(args, results));
  }
  if (!infos.empty())
    module->setAttr("hlo.symbols", b.getArrayAttr(infos));
  return success();
}

} // namespace lathe::legalize
