// Reductions over segments.
#include "graph/gradients/Expr.h"
#include "graph/gradients/Rules.h"

namespace lathe::graphdef {
namespace {

/// A condition on ids with as many dimensions of size 1 behind it as data has more.
Val spread(Val idCondition, Val data) {
  Val more = Rank(data) - Rank(idCondition);
  Val ones = Fill(Reshape(more, ints(data, {1})), intOf(data, 1));
  return Reshape(idCondition, Concat({Shape(idCondition), ones}, intOf(data, 0)));
}

/// Rows by segment; rows of ids below 0, which belong to no segment, are 0.
Val rowsOf(Val segments, Val ids, Val data) {
  Val rows = gather(segments, Maximum(ids, like(ids, 0)));
  return Select(spread(GreaterEqual(ids, like(ids, 0)), data), rows, ZerosLike(rows));
}

/// The same reduction with other data: Segment* and UnsortedSegment* differ in the third input.
struct Segments {
  Grad &g;
  bool unsorted;
  explicit Segments(Grad &g) : g(g), unsorted(g.node.op().rfind("Unsorted", 0) == 0) {}

  Val reduce(const char *kind, Val data) {
    std::string op = std::string(unsorted ? "UnsortedSegment" : "Segment") + kind;
    return unsorted ? call(op.c_str(), {data, g.in(1), g.in(2)}) : call(op.c_str(), {data, g.in(1)});
  }
  Val rows(Val segments) { return unsorted ? rowsOf(segments, g.in(1), g.in(0)) : gather(segments, g.in(1)); }
};

void extreme(Grad &g) {
  Segments s(g);
  Val selected = Equal(g.in(0), s.rows(g.out()));
  if (s.unsorted)
    selected = LogicalAnd(selected, spread(GreaterEqual(g.in(1), like(g.in(1), 0)), g.in(0)));
  Val count = s.reduce("Sum", Cast(selected, g.node.inputType(0)));
  Val share = s.rows(DivNoNan(g.dy(), count));
  g.set(0, Select(selected, share, ZerosLike(share)));
}

/// The product of the others: from the product without zeros where x is 0, nothing where two are 0.
void product(Grad &g) {
  Segments s(g);
  Val x = g.in(0), isZero = Equal(x, like(x, 0));
  Val zeros = s.reduce("Sum", Cast(isZero, DType::Int32));
  Val d = Select(Greater(zeros, like(zeros, 1)), ZerosLike(g.dy()), g.dy());
  Val withoutZeros = s.rows(s.reduce("Prod", Select(isZero, OnesLike(x), x)));
  Val others = Select(isZero, withoutZeros, s.rows(g.out()) / Select(isZero, OnesLike(x), x));
  g.set(0, s.rows(d) * others);
}

/// Values of a segment are its mean, and so are their gradients. Segments are numbered by rows.
void isotonic(Grad &g) {
  Val d = g.dy(), shape = Shape(d), width = element(shape, -1);
  Val rows = Reshape(g.out(1), Concat({ints(d, {-1}), part(shape, -1)}, intOf(d, 0)));
  Val ids = flat(rows + Reshape(upTo(element(Shape(rows), 0)) * width, ints(d, {-1, 1})));
  auto sum = [&](Val v) { return call("UnsortedSegmentSum", {flat(v), ids, Size(d)}); };
  Val mean = DivNoNan(sum(d), sum(OnesLike(d)));
  g.set(0, Cast(Reshape(gather(mean, ids), shape), g.node.inputType(0)));
}

} // namespace

void addSegmentRules(Rules &r) {
  r.add({"IsotonicRegression"}, isotonic);
  r.add({"SegmentSum"}, [](Grad &g) { g.set(0, gather(g.dy(), g.in(1))); });
  r.add({"SegmentMean"}, [](Grad &g) {
    Val ids = g.in(1);
    Val ones = Fill(Concat({Shape(ids), Fill(Reshape(Rank(g.in(0)) - 1, ints(ids, {1})), intOf(ids, 1))}, intOf(ids, 0)), like(g.dy(), 1));
    g.set(0, gather(g.dy() / call("SegmentSum", {ones, ids}), ids));
  });
  r.add({"UnsortedSegmentSum"}, [](Grad &g) { g.set(0, rowsOf(g.dy(), g.in(1), g.in(0))); });
  r.add({"SegmentMax", "SegmentMin", "UnsortedSegmentMax", "UnsortedSegmentMin"}, extreme);
  r.add({"SegmentProd", "UnsortedSegmentProd"}, product);
  r.add({"SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN", "SparseSegmentSumWithNumSegments",
         "SparseSegmentMeanWithNumSegments", "SparseSegmentSqrtNWithNumSegments"},
        [](Grad &g) {
          std::string op = g.node.op();
          if (size_t with = op.find("WithNumSegments"); with != std::string::npos)
            op.resize(with);
          Val shape = Shape(g.in(0));
          if (!g.boolAttr("sparse_gradient")) {
            g.set(0, call((op + "Grad").c_str(), {g.dy(), g.in(1), g.in(2), element(shape, 0)}));
            return;
          }
          Val rows = call((op + "GradV2").c_str(), {g.dy(), g.in(1), g.in(2), element(shape, 0)});
          g.set(0, {rows, rows.at(1), shape});
        });
}

} // namespace lathe::graphdef
