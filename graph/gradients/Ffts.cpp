// Fourier transforms.
#include "graph/gradients/Expr.h"
#include "graph/gradients/Rules.h"

namespace lathe::graphdef {
namespace {

/// Dimensions that the transform runs over, from the op's name.
int rankOf(const std::string &op) { return op.find("2D") != std::string::npos ? 2 : op.find("3D") != std::string::npos ? 3 : 1; }

const char *suffix(int rank) { return rank == 1 ? "" : rank == 2 ? "2D" : "3D"; }

/// Elements of the last `rank` dimensions as a complex number.
Val countOf(Val shape, int rank, DType type) {
  Val count = call("Prod", {part(shape, -rank), intOf(shape, 0)});
  return Cast(Cast(count, type == DType::Complex128 ? DType::Float64 : DType::Float32), type);
}

/// x cut or filled up with zeros in its last dimensions to the sizes of a vector.
Val resized(Val x, Val sizes, int rank) {
  Val shape = Shape(x), zero = intOf(x, 0);
  Val target = Concat({part(shape, 0, -rank), sizes}, zero);
  Val cut = Minimum(shape, target);
  return Pad(Slice(x, ZerosLike(shape), cut), Pack({ZerosLike(shape), target - cut}, 1));
}

/// The real transform drops what conjugates determine, so that its adjoint is the real part of the complex one over what is
/// there, zeros elsewhere.
void realForward(Grad &g) {
  int rank = rankOf(g.node.op());
  Val length = g.in(1), d = resized(g.dy(), length, rank);
  Val back = call((std::string("IFFT") + suffix(rank)).c_str(), {d}) * countOf(Shape(d), rank, d.type());
  g.set(0, resized(Real(back), part(Shape(g.in(0)), -rank), rank));
}

/// Every coefficient but the first and, for even lengths, the middle one stands for two.
void realInverse(Grad &g) {
  int rank = rankOf(g.node.op());
  DType type = g.node.inputType(0);
  Val length = g.in(1);
  Val d = call((std::string("RFFT") + suffix(rank)).c_str(), {g.dy(), length}, {{"Tcomplex", type}});
  Val n = element(length, -1), k = upTo(element(Shape(d), -1));
  Val single = LogicalOr(Equal(k, like(k, 0)), Equal(k * 2, n));
  Val weight = Cast(Select(single, like(n, 1), like(n, 2)), g.node.outputType(0));
  d = d * Cast(weight, type) / countOf(length, rank, type);
  g.set(0, resized(d, part(Shape(g.in(0)), -rank), rank));
}

} // namespace

void addFftRules(Rules &r) {
  r.add({"FFT", "FFT2D", "FFT3D"}, [](Grad &g) {
    int rank = rankOf(g.node.op());
    g.set(0, call((std::string("IFFT") + suffix(rank)).c_str(), {g.dy()}) * countOf(Shape(g.dy()), rank, g.dy().type()));
  });
  r.add({"IFFT", "IFFT2D", "IFFT3D"}, [](Grad &g) {
    int rank = rankOf(g.node.op());
    g.set(0, call((std::string("FFT") + suffix(rank)).c_str(), {g.dy()}) / countOf(Shape(g.dy()), rank, g.dy().type()));
  });
  r.add({"RFFT", "RFFT2D", "RFFT3D"}, realForward);
  r.add({"IRFFT", "IRFFT2D", "IRFFT3D"}, realInverse);
}

} // namespace lathe::graphdef
