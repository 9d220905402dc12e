// fft: lines of the last dimension one by one, those of other dimensions a vector of columns at a time. A
// real line of even length is a complex one of half the length and a pass that takes the spectra of even and
// odd numbers apart.
#include "dialects/hlo/Hlo.h"
#include "passes/codegen/library/Fft.h"
#include "passes/codegen/library/Library.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace lathe::codegen {

using hlo::tensorType;

namespace {
/// Numbers of a tensor, or complex ones in scratch: pairs of `mem`, `real` in registers.
struct Numbers {
  KernelBuilder *builder;
  Type mem, real;
  Value base;
  Value isStored = Value(); ///< null: always; of single numbers only

  E convert(Value v, Type to) const {
    KernelBuilder &b = *builder;
    E x(b, v);
    if (x.elem() == to)
      return x;
    return to.isF64() ? toF64(x) : toF32(x);
  }
  Value mask(unsigned valid, unsigned lanes) const {
    KernelBuilder &b = *builder;
    return valid < lanes ? b.tailMask(b.i64(valid), lanes) : Value();
  }
  E loadReal(Value i, unsigned lanes, unsigned valid) const {
    KernelBuilder &b = *builder;
    return convert(b.loadElem(mem, base, i, lanes, mask(valid, lanes)), real);
  }
  void storeReal(E x, Value i, unsigned valid) const {
    KernelBuilder &b = *builder;
    if (isStored) {
      b.ifThen(isStored, [&] { b.storeElem(mem, convert(x, mem), base, i); });
      return;
    }
    b.storeElem(mem, convert(x, mem), base, i, mask(valid, x.lanes()));
  }
  C load(Value i, unsigned lanes, unsigned valid) const {
    KernelBuilder &b = *builder;
    i = b.mul(i, b.i64(2));
    if (lanes == 1)
      return {loadReal(i, 1, 1), loadReal(b.add(i, b.i64(1)), 1, 1)};
    Value pairs = b.loadElem(mem, base, i, 2 * lanes, mask(2 * valid, 2 * lanes));
    auto part = [&](int64_t which) {
      SmallVector<int64_t> pick;
      for (unsigned l = 0; l < lanes; ++l)
        pick.push_back(2 * l + which);
      return convert(vector::ShuffleOp::create(b, pairs, pairs, pick), real);
    };
    return {part(0), part(1)};
  }
  void store(C x, Value i, unsigned valid) const {
    KernelBuilder &b = *builder;
    i = b.mul(i, b.i64(2));
    unsigned lanes = x.re.lanes();
    if (lanes == 1) {
      storeReal(x.re, i, 1);
      storeReal(x.im, b.add(i, b.i64(1)), 1);
      return;
    }
    SmallVector<int64_t> pick;
    for (unsigned l = 0; l < lanes; ++l) {
      pick.push_back(l);
      pick.push_back(l + lanes);
    }
    Value pairs = vector::ShuffleOp::create(b, convert(x.re, mem), convert(x.im, mem), pick);
    b.storeElem(mem, pairs, base, i, mask(2 * valid, 2 * lanes));
  }
  /// The same from number i on.
  Numbers from(Value i, bool complex) const {
    return {builder, mem, real, builder->ptrAt(base, complex ? Type(ComplexType::get(mem)) : mem, i), isStored};
  }
};

C reversed(C x) {
  unsigned lanes = x.re.lanes();
  if (lanes == 1)
    return x;
  SmallVector<int64_t> pick;
  for (unsigned l = lanes; l--;)
    pick.push_back(l);
  auto turn = [&](E part) { return E(*part.b, vector::ShuffleOp::create(*part.b, part, part, pick)); };
  return {turn(x.re), turn(x.im)};
}
C conjugate(C x) { return {x.re, -x.im}; }
C scaled(C x, double factor) { return factor == 1.0 ? x : C{x.re * factor, x.im * factor}; }

using hlo::FftType;

/// One line of the last dimension: `kind` of n numbers.
class Row {
public:
  Row(KernelBuilder &b, Type real, FftType kind, int64_t n, const FftTeam *team = nullptr)
      : b(b), real(real), n(n), realIn(kind == FftType::RFFT), realOut(kind == FftType::IRFFT),
        halved((realIn || realOut) && n % 2 == 0), count(halved ? n / 2 : n), team(team),
        line(b, real, count, kind == FftType::IFFT || realOut, false, 0, team) {}

  int64_t scratchBytes() const {
    return line.scratchBytes() + FftBuffer::bytes(real, count + 2 * kMostLanes);
  }
  double cost() const {
    return line.cost() + (halved || realIn || realOut ? 24.0 * double(count) / b.target.lanes(real) : 0);
  }
  void emit(const Numbers &in, const Numbers &out, double scale, Value scratch) {
    if (halved)
      return realIn ? emitHalvedIn(in, out, scratch) : emitHalvedOut(in, out, scale, scratch);
    unsigned lanes = line.lanes();
    FftBuffer whole = wholeLine(scratch);
    Value rest = restOf(scratch);
    auto get = [&](Value i, unsigned valid) -> C {
      if (realOut)
        return line.get(whole, i);
      if (!realIn)
        return in.load(i, lanes, valid);
      return {in.loadReal(i, lanes, valid), E(b, b.cst(widen(real, lanes), 0.0))};
    };
    auto put = [&](C x, Value i, unsigned valid) {
      if (realIn)
        line.put(x, whole, i, valid);
      else if (realOut)
        out.storeReal(x.re * scale, i, valid);
      else
        out.store(scaled(x, scale), i, valid);
    };
    if (realOut) { // the other half is the conjugate; the first is real
      C first = in.load(b.i64(0), 1, 1);
      byOne([&] { whole.store({first.re, first.re.c(0.0)}, b.i64(0), 1); });
      b.loop(team ? b.add(team->member, b.i64(1)) : b.i64(1), b.i64(n / 2 + 1), b.i64(team ? team->size : 1), [&](Value i) {
        C x = in.load(i, 1, 1);
        whole.store(x, i, 1);
        whole.store(conjugate(x), b.sub(b.i64(n), i), 1);
      });
      meet();
    }
    line.emit(get, put, rest);
    if (realIn)
      meet();
    if (realIn)
      line.forAll(n / 2 + 1, [&](Value i, unsigned valid) { out.store(line.get(whole, i), i, valid); });
  }

private:
  static constexpr int64_t kMostLanes = 64;

  /// The numbers between the transform and what makes them of a real line, or the other way round. A team has no memory of their own for
  /// them: they lie in a buffer of the transform that is free then.
  FftBuffer wholeLine(Value scratch) const {
    if (team)
      return realIn ? line.notRead(scratch) : line.notWritten(scratch);
    return {b, real, scratch, count + 2 * kMostLanes};
  }
  Value restOf(Value scratch) const {
    return team ? scratch : b.ptrBytes(scratch, b.i64(FftBuffer::bytes(real, count + 2 * kMostLanes)));
  }
  void meet() const {
    if (team)
      team->barrier();
  }
  /// What one member of a team does.
  void byOne(llvm::function_ref<void()> body) const {
    if (team)
      b.ifThen(b.eq(team->member, b.i64(0)), body);
    else
      body();
  }

  // Runs over the pairs k and n/2 - k of two halves, 0 < k <= n/4: vectors of those at k and, in reverse, at
  // n/2 - k.
  void forPairs(llvm::function_ref<void(Value, Value, E, E)> body, bool inverse) {
    int64_t pairs = count / 2, lanes = b.target.lanes(real);
    if (!pairs)
      return;
    while (lanes > pairs)
      lanes /= 2;
    // (exp(-2 pi i k / n) / 2i, or i exp(2 pi i k / n): what the difference of the two is multiplied by
    std::string re, im;
    for (int64_t k = 1; k <= pairs; ++k) {
      std::complex<long double> w = rootOfUnity(k, n);
      w = inverse ? std::complex<long double>(w.imag(), w.real())
                  : std::complex<long double>(w.imag() / 2, -w.real() / 2);
      auto append = [&](std::string &to, long double x) {
        float narrow = static_cast<float>(x);
        double wide = static_cast<double>(x);
        if (real.isF32())
          to.append(reinterpret_cast<const char *>(&narrow), sizeof(narrow));
        else
          to.append(reinterpret_cast<const char *>(&wide), sizeof(wide));
      };
      append(re, w.real());
      append(im, w.imag());
    }
    Value table = b.constantData(re + im);
    auto at = [&](Value i) {
      E wr(b, b.loadElem(real, table, i, lanes)),
          wi(b, b.loadElem(real, table, b.add(i, b.i64(pairs)), lanes));
      Value k = b.add(i, b.i64(1));
      body(k, b.sub(b.i64(count - lanes + 1), k), wr, wi);
    };
    // the last vector overlaps the one before
    b.loop(team ? team->member : b.i64(0), b.i64((pairs + lanes - 1) / lanes), b.i64(team ? team->size : 1),
           [&](Value j) { at(b.min(b.mul(j, b.i64(lanes)), b.i64(pairs - lanes))); });
  }

  void emitHalvedIn(const Numbers &in, const Numbers &out, Value scratch) {
    FftBuffer z = wholeLine(scratch);
    line.emit([&](Value i, unsigned valid) { return in.load(i, line.lanes(), valid); },
              [&](C x, Value i, unsigned valid) { line.put(x, z, i, valid); }, restOf(scratch));
    meet();
    byOne([&] {
      C first = z.load(b.i64(0), 1);
      out.store({first.re + first.im, first.re.c(0.0)}, b.i64(0), 1);
      out.store({first.re - first.im, first.re.c(0.0)}, b.i64(count), 1);
    });
    forPairs(
        [&](Value k, Value mirror, E wr, E wi) {
          unsigned lanes = wr.lanes();
          C x = z.load(k, lanes), y = conjugate(reversed(z.load(mirror, lanes)));
          C even = scaled(x + y, 0.5), odd = timesC(x - y, {wr, wi});
          out.store(even + odd, k, lanes);
          out.store(reversed(conjugate(even - odd)), mirror, lanes);
        },
        false);
  }

  void emitHalvedOut(const Numbers &in, const Numbers &out, double scale, Value scratch) {
    FftBuffer z = wholeLine(scratch);
    byOne([&] {
      E first = in.load(b.i64(0), 1, 1).re, last = in.load(b.i64(count), 1, 1).re;
      z.store({first + last, first - last}, b.i64(0), 1);
    });
    forPairs(
        [&](Value k, Value mirror, E wr, E wi) {
          unsigned lanes = wr.lanes();
          C x = in.load(k, lanes, lanes), y = conjugate(reversed(in.load(mirror, lanes, lanes)));
          C even = x + y, odd = timesC(x - y, {wr, wi});
          z.store(even + odd, k, lanes);
          z.store(reversed(conjugate(even - odd)), mirror, lanes);
        },
        true);
    meet();
    line.emit([&](Value i, unsigned) { return line.get(z, i); },
              [&](C x, Value i, unsigned valid) { out.store(scaled(x, scale), i, valid); }, restOf(scratch));
  }

  KernelBuilder &b;
  Type real;
  int64_t n;
  bool realIn, realOut, halved;
  int64_t count;
  const FftTeam *team;
  FftLine line;
};

Type partType(Type t) { return isa<ComplexType>(t) ? cast<ComplexType>(t).getElementType() : t; }

/// Length and kind of a transform of one dimension.
struct Shape {
  Shape(FftType kind, int64_t n, Type real)
      : kind(kind), n(n), realIn(kind == FftType::RFFT), realOut(kind == FftType::IRFFT),
        count((realIn || realOut) && n % 2 == 0 ? n / 2 : n), real(real) {}
  explicit Shape(hlo::FftOp f)
      : Shape(f.getFftType(), f.getFftLength().back(), partType(tensorType(f.getOperand()).getElementType())) {}
  FftType kind;
  int64_t n;
  bool realIn, realOut;
  int64_t count; ///< complex numbers that are transformed
  Type real;
};
} // namespace

static int64_t bytesOf(const Shape &shape) { return 2 * FftBuffer::bytes(shape.real, shape.count + 2); }

static bool hasPlan(const Shape &shape) { return planFft(KernelTarget(), shape.count, 1, false).has_value(); }

std::string whyNoTeamFft(Operation *op, int64_t shared) {
  auto f = cast<hlo::FftOp>(op);
  if (f.getFftLength().size() != 1)
    return "several dimensions";
  if (f.getFftLength().back() < 16)
    return "short lines";
  const Shape shape(f);
  if (!hasPlan(shape))
    return "a large prime factor";
  return bytesOf(shape) > shared ? "lines that do not fit shared memory" : "";
}

bool isTooLongForTeam(FftType kind, int64_t n, Type real, int64_t shared) {
  const Shape shape(kind, n, real);
  return hasPlan(shape) && bytesOf(shape) > shared;
}

int64_t teamFftBytes(Operation *op) { return bytesOf(Shape(cast<hlo::FftOp>(op))); }

int64_t teamFftWidth(Operation *op) {
  const Shape shape(cast<hlo::FftOp>(op));
  const FftPlan plan = *planFft(KernelTarget(), shape.count, 1, false);
  return shape.count / *std::min_element(plan.second.begin(), plan.second.end());
}

AffineExpr countFftLines(Operation *op) {
  auto f = cast<hlo::FftOp>(op);
  SmallVector<AffineExpr> dims = hlo::getDims(tensorType(f.getOperand()));
  dims.pop_back();
  return hlo::numElements(dims, op->getContext());
}

void emitTeamFft(Operation *op, KernelBuilder &b, const FftTeam &team, Value scratch, Value line, Value isLine) {
  const Shape shape(cast<hlo::FftOp>(op));
  const int64_t half = shape.n / 2 + 1, inLine = shape.realOut ? half : shape.n, outLine = shape.realIn ? half : shape.n;
  Numbers in{&b, shape.real, shape.real, b.operands[0]}, out{&b, shape.real, shape.real, b.results[0], isLine};
  const bool inverse = shape.kind == FftType::IFFT || shape.realOut;
  Row row(b, shape.real, shape.kind, shape.n, &team);
  row.emit(in.from(b.mul(line, b.i64(inLine)), !shape.realIn), out.from(b.mul(line, b.i64(outLine)), !shape.realOut),
           inverse ? 1.0 / double(shape.n) : 1.0, scratch);
}

// Its tables take some 60 bytes a number.
static constexpr int64_t longestConvolution = 1 << 22;

LogicalResult emitFft(Operation *op, KernelBuilder &b) {
  auto f = cast<hlo::FftOp>(op);
  auto in = tensorType(f.getOperand());
  FftType kind = f.getFftType();
  bool inverse = kind == FftType::IFFT || kind == FftType::IRFFT, realOut = kind == FftType::IRFFT;
  SmallVector<int64_t> length(f.getFftLength());
  if (llvm::is_contained(length, 0)) {
    b.setExtent(b.getAffineConstantExpr(0));
    return success();
  }
  int64_t dims = static_cast<int64_t>(length.size()), n = length.back();
  auto half = [](int64_t n) { return n / 2 + 1; };
  Type mem = partType(in.getElementType()), real = mem;
  // what a convolution needs beyond the transform itself costs digits
  for (auto [i, size] : llvm::enumerate(length)) {
    bool last =
        static_cast<int64_t>(i) + 1 == dims && kind != FftType::FFT && kind != FftType::IFFT && size % 2 == 0;
    bool fits = planFft(b.target, last ? size / 2 : size, 1, false).has_value();
    if (!fits)
      real = b.getF64Type();
    if (!fits && size > longestConvolution)
      return op->emitError() << "no CPU code for a Fourier transform of " << size
                             << " numbers with a prime factor above 13";
  }
  AffineExpr batch = b.getAffineConstantExpr(1);
  SmallVector<AffineExpr> inDims = hlo::getDims(in);
  for (AffineExpr e : ArrayRef(inDims).drop_back(dims))
    batch = hlo::simplify(batch * e);
  int64_t lines = 1, total = 1;
  for (int64_t i = 0; i < dims; ++i) {
    lines *= i + 1 < dims ? length[i] : 1;
    total *= length[i];
  }
  int64_t inLine = realOut ? half(n) : n, outLine = kind == FftType::RFFT ? half(n) : n,
          columns = realOut ? inLine : outLine;
  double scale = inverse ? 1.0 / double(total) : 1.0;
  int64_t inUnit = lines * inLine, outUnit = lines * outLine;
  bool wideIn = kind != FftType::RFFT, wideOut = !realOut;

  Row row(b, real, kind, n);
  // whole tensors between the dimensions
  int64_t between = (lines * columns * 2 * elemBytes(real) + 127) / 64 * 64;
  SmallVector<std::unique_ptr<FftLine>> steep;
  SmallVector<int64_t> inner;
  int64_t most = row.scratchBytes();
  double work = row.cost() * double(lines);
  for (int64_t d = 0; d + 1 < dims; ++d) {
    inner.push_back(columns);
    for (int64_t i = d + 1; i + 1 < dims; ++i)
      inner.back() *= length[i];
    unsigned lanes = b.target.lanes(real);
    while (int64_t(lanes) > inner.back())
      lanes /= 2;
    steep.push_back(std::make_unique<FftLine>(b, real, length[d], inverse, true, lanes));
    most = std::max(most, steep.back()->scratchBytes());
    work += steep.back()->cost() * double(lines * columns / length[d]) / lanes;
  }
  b.setExtent(batch);
  b.setScratch((dims - 1) * between + most);
  b.setWork(static_cast<int64_t>(work * 16));
  Value rest = b.ptrBytes(b.scratch, b.i64((dims - 1) * between));
  b.units([&](Value unit) {
    Numbers source{&b, mem, real, b.operands[0]}, target{&b, mem, real, b.results[0]};
    source = source.from(b.mul(unit, b.i64(inUnit)), wideIn);
    target = target.from(b.mul(unit, b.i64(outUnit)), wideOut);
    int64_t step = 0;
    auto next = [&]() -> Numbers {
      if (++step == dims)
        return target;
      return {&b, real, real, b.ptrBytes(b.scratch, b.i64((step - 1) * between))};
    };
    Numbers from = source;
    auto rows = [&] {
      Numbers to = next();
      b.nest(ValueRange{b.i64(lines)}, [&](ValueRange l) {
        row.emit(from.from(b.mul(l[0], b.i64(inLine)), wideIn), to.from(b.mul(l[0], b.i64(outLine)), wideOut),
                 realOut || dims == 1 ? scale : 1.0, rest);
      });
      from = to;
    };
    auto along = [&](int64_t d) {
      Numbers to = next();
      FftLine &line = *steep[d];
      int64_t lanes = line.lanes(), size = inner[d], above = lines * columns / (length[d] * size);
      // a real result is scaled by its lines, any other by what comes last
      double factor = !realOut && d == 0 ? scale : 1.0;
      b.nest(ValueRange{b.i64(above), b.i64((size + lanes - 1) / lanes)}, [&](ValueRange at) {
        // the last vector overlaps the one before
        Value first = b.min(b.mul(at[1], b.i64(lanes)), b.i64(size - lanes));
        first = b.add(b.mul(at[0], b.i64(length[d] * size)), first);
        auto place = [&](Value i) { return b.add(first, b.mul(i, b.i64(size))); };
        line.emit([&](Value i, unsigned) { return from.load(place(i), lanes, lanes); },
                  [&](C x, Value i, unsigned) { to.store(scaled(x, factor), place(i), lanes); }, rest);
      });
      from = to;
    };
    // a real signal first goes to its spectrum; a half spectrum comes back last
    if (!realOut)
      rows();
    for (int64_t d = dims - 1; d-- > 0;)
      along(d);
    if (realOut)
      rows();
  });
  return success();
}

} // namespace lathe::codegen
