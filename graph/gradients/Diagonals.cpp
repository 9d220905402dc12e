// Diagonals and bands of matrices.
#include "graph/gradients/Expr.h"
#include "graph/gradients/Rules.h"

namespace lathe::graphdef {

void addDiagonalRules(Rules &r) {
  r.add({"Diag"}, [](Grad &g) { g.set(0, call("DiagPart", {g.dy()})); });
  r.add({"DiagPart"}, [](Grad &g) { g.set(0, call("Diag", {g.dy()})); });
  r.add({"MatrixDiag"}, [](Grad &g) { g.set(0, MatrixDiagPart(g.dy())); });
  r.add({"MatrixDiagV2", "MatrixDiagV3"}, [](Grad &g) {
    bool aligned = g.node.op() == "MatrixDiagV3";
    g.set(0, call(aligned ? "MatrixDiagPartV3" : "MatrixDiagPartV2", {g.dy(), g.in(1), like(g.dy(), 0)}, g.attrs({"align"})));
  });
  r.add({"MatrixDiagPart"}, [](Grad &g) { g.set(0, MatrixSetDiag(ZerosLike(g.in(0)), g.dy())); });
  r.add({"MatrixDiagPartV2", "MatrixDiagPartV3"}, [](Grad &g) {
    bool aligned = g.node.op() == "MatrixDiagPartV3";
    g.set(0, call(aligned ? "MatrixSetDiagV3" : "MatrixSetDiagV2", {ZerosLike(g.in(0)), g.dy(), g.in(1)}, g.attrs({"align"})));
  });
  r.add({"MatrixSetDiag"}, [](Grad &g) {
    g.set(0, MatrixSetDiag(g.dy(), ZerosLike(g.in(1))));
    g.set(1, MatrixDiagPart(g.dy()));
  });
  r.add({"MatrixSetDiagV2", "MatrixSetDiagV3"}, [](Grad &g) {
    bool aligned = g.node.op() == "MatrixSetDiagV3";
    g.set(0, call(g.node.op().c_str(), {g.dy(), ZerosLike(g.in(1)), g.in(2)}, g.attrs({"align"})));
    g.set(1, call(aligned ? "MatrixDiagPartV3" : "MatrixDiagPartV2", {g.dy(), g.in(2), like(g.dy(), 0)}, g.attrs({"align"})));
  });
  r.add({"MatrixBandPart"}, [](Grad &g) { g.set(0, call("MatrixBandPart", {g.dy(), g.in(1), g.in(2)})); });
}

} // namespace lathe::graphdef
