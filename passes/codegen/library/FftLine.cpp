// Stockham's passes with vectors within one line: while the work left is long, vectors lie along it; after a
// transpose by blocks in registers, along what is done. No pass shuffles. Lengths with a large prime factor
// become a convolution.
#include "passes/codegen/library/Fft.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace lathe::codegen {

using Complex = std::complex<long double>;

C timesC(C x, C w) {
  KernelBuilder &b = *x.re.b;
  if (!b.target.fma)
    return x * w;
  return {fma(x.re, w.re, -(x.im * w.im)), fma(x.re, w.im, x.im * w.re)};
}

//===----------------------------------------------------------------------===//
// Butterflies
//===----------------------------------------------------------------------===//

static C conjugate(C x) { return {x.re, -x.im}; }
static C swapped(C x, bool negateReal) { return negateReal ? C{-x.im, x.re} : C{x.im, -x.re}; }

// x * exp(-+2 pi i k / n)
static C rotate(C x, int64_t k, int64_t n, bool inverse) {
  k %= n;
  if (k == 0)
    return x;
  if (4 * k == n || 4 * k == 3 * n)
    return swapped(x, inverse == (4 * k == n));
  if (2 * k == n)
    return {-x.re, -x.im};
  Complex w = rootOfUnity(inverse ? n - k : k, n);
  return timesC(x, {x.re.c(double(w.real())), x.re.c(double(w.imag()))});
}

static SmallVector<C> butterfly(ArrayRef<C> v, bool inverse) {
  int64_t p = static_cast<int64_t>(v.size());
  if (p == 1)
    return {v[0]};
  if (p == 2)
    return {v[0] + v[1], v[0] - v[1]};
  if (p == 4) {
    C even = v[0] + v[2], odd = v[1] + v[3], evenLess = v[0] - v[2], turned = swapped(v[1] - v[3], inverse);
    return {even + odd, evenLess + turned, even - odd, evenLess - turned};
  }
  for (int64_t a : {4, 2, 3, 5, 7, 11, 13}) {
    if (p % a || p == a)
      continue;
    int64_t c = p / a;
    SmallVector<SmallVector<C>> parts;
    for (int64_t r = 0; r < a; ++r) {
      SmallVector<C> part;
      for (int64_t j = 0; j < c; ++j)
        part.push_back(v[r + a * j]);
      parts.push_back(butterfly(part, inverse));
    }
    SmallVector<C> out(p, v[0]);
    for (int64_t k = 0; k < c; ++k) {
      SmallVector<C> across;
      for (int64_t r = 0; r < a; ++r)
        across.push_back(rotate(parts[r][k], r * k, p, inverse));
      SmallVector<C> sums = butterfly(across, inverse);
      for (int64_t t = 0; t < a; ++t)
        out[k + c * t] = sums[t];
    }
    return out;
  }
  // an odd prime: numbers whose roots are conjugate go together
  SmallVector<C> out(p, v[0]), sums, less;
  for (int64_t j = 1; 2 * j < p; ++j) {
    sums.push_back(v[j] + v[p - j]);
    less.push_back(v[j] - v[p - j]);
    out[0] = out[0] + sums.back();
  }
  auto madd = [](E a, double c, E sum) { return a.b->target.fma ? fma(a, c, sum) : a * c + sum; };
  for (int64_t t = 1; 2 * t < p; ++t) {
    C x = v[0], y;
    for (int64_t j = 1; 2 * j < p; ++j) {
      Complex w = rootOfUnity(j * t, p);
      double cosine = double(w.real()), sine = double(w.imag());
      C s = sums[j - 1], d = less[j - 1];
      x = {madd(s.re, cosine, x.re), madd(s.im, cosine, x.im)};
      y = j == 1 ? C{d.re * sine, d.im * sine} : C{madd(d.re, sine, y.re), madd(d.im, sine, y.im)};
    }
    y = swapped(y, !inverse); // the sines above are negative: times i of the forward transform
    out[t] = x + y;
    out[p - t] = x - y;
  }
  return out;
}

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

// The imaginary parts begin one line of a cache beyond: parts a power of two apart would share its places.
static int64_t partBytes(Type real, int64_t count) {
  return (count * elemBytes(real) + 63) / 64 * 64 + 3 * 64;
}

FftBuffer::FftBuffer(KernelBuilder &b, Type real, Value base, int64_t count)
    : b(b), real(real), re(base), im(b.ptrBytes(base, b.i64(partBytes(real, count)))) {}
int64_t FftBuffer::bytes(Type real, int64_t count) { return 2 * partBytes(real, count); }
C FftBuffer::load(Value i, unsigned lanes) const {
  return {E(b, b.loadElem(real, re, i, lanes)), E(b, b.loadElem(real, im, i, lanes))};
}
void FftBuffer::store(C x, Value i, unsigned valid) const {
  unsigned lanes = x.re.lanes();
  Value mask = valid < lanes ? b.tailMask(b.i64(valid), lanes) : Value();
  b.storeElem(real, x.re, re, i, mask);
  b.storeElem(real, x.im, im, i, mask);
}

void transposeVectors(KernelBuilder &b, MutableArrayRef<Value> v) {
  unsigned lanes = static_cast<unsigned>(v.size());
  for (unsigned d = 1; d < lanes; d *= 2) {
    SmallVector<int64_t> low, high; // of pairs of blocks, the ones on the diagonal stay
    for (unsigned l = 0; l < lanes; ++l) {
      low.push_back(l & d ? l - d + lanes : l);
      high.push_back(l & d ? l + lanes : l + d);
    }
    for (unsigned i = 0; i < lanes; ++i)
      if (!(i & d)) {
        Value x = v[i], y = v[i + d];
        v[i] = vector::ShuffleOp::create(b, x, y, low);
        v[i + d] = vector::ShuffleOp::create(b, x, y, high);
      }
  }
}

//===----------------------------------------------------------------------===//
// Passes
//===----------------------------------------------------------------------===//

FftLine::FftLine(KernelBuilder &b, Type real, int64_t n, bool inverse, bool sideBySide, unsigned lanes, const FftTeam *team)
    : b(b), real(real), n(n), inverse(inverse), sideBySide(sideBySide), team(team) {
  if (!lanes)
    lanes = b.target.lanes(real);
  if (auto found = planFft(b.target, n, lanes, sideBySide)) {
    plan = *found;
    return;
  }
  // the cheapest length that a convolution of n numbers fits
  int64_t length = 1, best = 0;
  double cost = 0;
  while (length < 2 * n - 1)
    length *= 2;
  for (int64_t candidate : {length, length / 4 * 3, length / 8 * 5, length / 16 * 9, length / 16 * 15})
    if (candidate >= 2 * n - 1)
      if (auto found = planFft(b.target, candidate, lanes, sideBySide);
          found && (!best || found->cost < cost)) {
        best = candidate;
        cost = found->cost;
      }
  convolution = std::make_unique<FftLine>(b, real, best, false, sideBySide, lanes);
}

double FftLine::cost() const {
  if (!convolution)
    return plan.cost + 8;
  return 2 * convolution->cost() + 24.0 * double(convolution->n) / (sideBySide ? 1 : convolution->lanes());
}

int64_t FftLine::bufferCount() const {
  if (convolution)
    return (convolution->n + lanes()) * (sideBySide ? lanes() : 1);
  int64_t lanes = plan.lanes, most = padded(plan.m) * padded(plan.s), done = 1;
  if (sideBySide)
    return n * lanes;
  for (int64_t p : plan.first) {
    done *= p;
    most = std::max(most, done * padded(n / done));
  }
  return most + 2 * lanes;
}

int64_t FftLine::scratchBytes() const {
  return 2 * FftBuffer::bytes(real, bufferCount()) + (convolution ? convolution->scratchBytes() : 0);
}

C FftLine::get(const FftBuffer &from, Value i) const {
  return from.load(sideBySide ? b.mul(i, b.i64(lanes())) : i, lanes());
}
void FftLine::put(C x, const FftBuffer &to, Value i, unsigned valid) const {
  to.store(x, sideBySide ? b.mul(i, b.i64(lanes())) : i, valid);
}

FftBuffer FftLine::notRead(Value scratch) const {
  const int64_t count = bufferCount(), passes = static_cast<int64_t>(plan.second.size());
  Value second = b.ptrBytes(scratch, b.i64(FftBuffer::bytes(real, count)));
  return {b, real, passes % 2 ? second : scratch, count};
}
FftBuffer FftLine::notWritten(Value scratch) const { return {b, real, scratch, bufferCount()}; }

void FftLine::forAll(int64_t count, llvm::function_ref<void(Value, unsigned)> body) {
  if (team) {
    b.loop(team->member, b.i64(count), b.i64(team->size), [&](Value i) { body(i, 1); });
    return;
  }
  int64_t step = sideBySide ? 1 : lanes(), whole = count / step * step;
  if (whole == step)
    body(b.i64(0), lanes());
  else if (whole)
    b.loop(b.i64(0), b.i64(whole), b.i64(step), [&](Value i) { body(i, lanes()); });
  if (whole < count)
    body(b.i64(whole), static_cast<unsigned>(count - whole));
}

// Parts one after the other, or alternating.
Value FftLine::table(const std::vector<Complex> &values, bool byParts) {
  std::string bytes;
  auto put = [&](long double x) {
    float narrow = static_cast<float>(x);
    double wide = static_cast<double>(x);
    if (real.isF32())
      bytes.append(reinterpret_cast<const char *>(&narrow), sizeof(narrow));
    else
      bytes.append(reinterpret_cast<const char *>(&wide), sizeof(wide));
  };
  for (const Complex &w : values) {
    put(w.real());
    if (!byParts)
      put(w.imag());
  }
  if (byParts)
    for (const Complex &w : values)
      put(w.imag());
  return b.constantData(bytes);
}

// Roots in a table of a pass at most, and how many lie side by side where they are more; a multiple of all
// lanes.
static constexpr int64_t mostRoots = 1 << 15, rootRun = 1024;

// `done` blocks of `length` numbers each become p times as many, of which each is 1/p as long.
void FftLine::firstPass(int64_t p, int64_t done, int64_t length, bool outermost, FftLoad load, FftLoad from,
                        const FftBuffer &to) {
  int64_t next = length / p, stride = padded(next), lanes = plan.lanes;
  // many are products of one of every `run`th and one of the first: the tables stay small
  const int64_t run = (p - 1) * stride > mostRoots ? rootRun : stride;
  std::vector<Complex> roots, far;
  auto append = [&](std::vector<Complex> &to, int64_t k, int64_t t) {
    Complex w = rootOfUnity(static_cast<int64_t>(static_cast<__int128>(k) * t % length), length);
    to.push_back(inverse ? std::conj(w) : w);
  };
  for (int64_t t = 1; t < p; ++t)
    for (int64_t k = 0; k < run; ++k)
      append(roots, k, t);
  FftBuffer near(b, real, table(roots, true), 0);
  near.im = b.ptrAt(near.re, real, b.i64((p - 1) * run));
  const int64_t runs = (stride + run - 1) / run;
  for (int64_t t = 1; t < p && runs > 1; ++t)
    for (int64_t k = 0; k < runs; ++k)
      append(far, k * run, t);
  Value farTable = far.empty() ? Value() : table(far, false);
  auto twiddle = [&](Value k, int64_t t) -> C {
    if (far.empty())
      return near.load(b.add(k, b.i64((t - 1) * run)), lanes);
    C w = near.load(b.add(b.remU(k, b.i64(run)), b.i64((t - 1) * run)), lanes);
    Value at = b.mul(b.add(b.divU(k, b.i64(run)), b.i64((t - 1) * runs)), b.i64(2));
    auto part = [&](int64_t which) {
      return E(b, b.splat(b.loadElem(real, farTable, b.add(at, b.i64(which))), lanes));
    };
    return timesC(w, {part(0), part(1)});
  };
  auto at = [&](Value q, Value k, unsigned valid) {
    Value block = b.mul(q, b.i64(padded(length)));
    SmallVector<C> v;
    for (int64_t r = 0; r < p; ++r) {
      Value i = b.add(k, b.i64(r * next));
      v.push_back(outermost ? load(i, valid) : from(b.add(block, i), valid));
    }
    v = butterfly(v, inverse);
    Value target = b.add(b.mul(q, b.i64(stride)), k);
    for (int64_t t = 0; t < p; ++t) {
      C x = t ? timesC(v[t], twiddle(k, t)) : v[0];
      to.store(x, b.add(target, b.i64(t * done * stride)), plan.lanes);
    }
  };
  b.nest(ValueRange{b.i64(done)}, [&](ValueRange q) {
    // beyond the end of a block in scratch lies some other number, which only lanes beyond the end of the
    // next see
    forAll(outermost ? next : stride, [&](Value k, unsigned valid) { at(q[0], k, valid); });
  });
}

// [s][m] -> [m][s], both filled up to whole vectors.
void FftLine::transpose(const FftBuffer &from, const FftBuffer &to) {
  int64_t lanes = plan.lanes, row = padded(plan.m), newRow = padded(plan.s);
  auto part = [&](Value source, Value target, Value q, Value k) {
    SmallVector<Value> v;
    for (int64_t i = 0; i < lanes; ++i) {
      Value r = b.add(q, b.i64(i));
      if (plan.s % lanes)
        r = b.min(r, b.i64(plan.s - 1));
      v.push_back(b.loadElem(real, source, b.add(b.mul(r, b.i64(row)), k), lanes));
    }
    transposeVectors(b, v);
    for (int64_t i = 0; i < lanes; ++i)
      b.storeElem(real, v[i], target, b.add(b.mul(b.add(k, b.i64(i)), b.i64(newRow)), q));
  };
  b.loop(b.i64(0), b.i64(newRow), b.i64(lanes), [&](Value q) {
    b.loop(b.i64(0), b.i64(row), b.i64(lanes), [&](Value k) {
      part(from.re, to.re, q, k);
      part(from.im, to.im, q, k);
    });
  });
}

// Rows of the `done` blocks of s results that transforms of `length` numbers have so far.
void FftLine::secondPass(int64_t p, int64_t done, int64_t length, FftLoad from, FftStore to, bool last) {
  int64_t next = length / p, lanes = plan.lanes, inner = sideBySide ? lanes : padded(plan.s),
          row = done * inner;
  // an index counts vectors side by side
  int64_t unit = sideBySide ? lanes : 1;
  auto at = [&](Value k, Value j, ArrayRef<C> twiddles, Value target, int64_t targetStep, unsigned valid) {
    SmallVector<C> v;
    for (int64_t r = 0; r < p; ++r)
      v.push_back(from(b.add(b.mul(b.add(k, b.i64(r * next)), b.i64(row / unit)), j), lanes));
    v = butterfly(v, inverse);
    for (int64_t t = 0; t < p; ++t)
      to(t && !twiddles.empty() ? timesC(v[t], twiddles[t - 1]) : v[t], b.add(target, b.i64(t * targetStep)),
         valid);
  };
  if (last && team) {
    forAll(done, [&](Value block, unsigned) { at(b.i64(0), block, {}, block, done, 1); });
    return;
  }
  if (last) { // the gaps between the blocks close
    b.nest(ValueRange{b.i64(done)}, [&](ValueRange block) {
      forAll(sideBySide ? 1 : plan.s, [&](Value q, unsigned valid) {
        Value j = b.add(b.mul(block[0], b.i64(inner / unit)), q);
        at(b.i64(0), j, {}, b.add(b.mul(block[0], b.i64(sideBySide ? 1 : plan.s)), q),
           done * (sideBySide ? 1 : plan.s), valid);
      });
    });
    return;
  }
  std::vector<Complex> roots;
  for (int64_t k = 0; k < next; ++k)
    for (int64_t t = 1; t < p; ++t) {
      Complex w = rootOfUnity(k * t, length);
      roots.push_back(inverse ? std::conj(w) : w);
    }
  Value values = table(roots, false);
  auto twiddlesOf = [&](Value k) {
    SmallVector<C> twiddles;
    for (int64_t i = 0; i < p - 1; ++i) {
      Value w = b.mul(b.add(b.mul(k, b.i64(p - 1)), b.i64(i)), b.i64(2));
      auto part = [&](int64_t which) {
        return E(b, b.splat(b.loadElem(real, values, b.add(w, b.i64(which))), lanes));
      };
      twiddles.push_back({part(0), part(1)});
    }
    return twiddles;
  };
  if (team) {
    forAll(next * row, [&](Value i, unsigned) {
      Value k = b.divU(i, b.i64(row)), j = b.remU(i, b.i64(row));
      at(k, j, twiddlesOf(k), b.add(b.mul(k, b.i64(row * p)), j), row, 1);
    });
    return;
  }
  b.loop(b.i64(0), b.i64(next), [&](Value k) {
    SmallVector<C> twiddles = twiddlesOf(k);
    forAll(row / unit, [&](Value j, unsigned valid) {
      at(k, j, twiddles, b.add(b.mul(k, b.i64(row / unit * p)), j), row / unit, valid);
    });
  });
}

void FftLine::emitPasses(FftLoad load, FftStore store, Value scratch) {
  if (n == 1) {
    forAll(1, [&](Value i, unsigned) { store(load(i, plan.lanes), i, plan.lanes); });
    return;
  }
  int64_t count = bufferCount();
  FftBuffer x(b, real, scratch, count),
      y(b, real, b.ptrBytes(scratch, b.i64(FftBuffer::bytes(real, count))), count);
  FftBuffer *from = &x, *to = &y;
  int64_t done = 1;
  for (int64_t p : plan.first) {
    firstPass(
        p, done, n / done, done == 1, load, [&](Value i, unsigned) { return from->load(i, plan.lanes); },
        *to);
    std::swap(from, to);
    done *= p;
  }
  if (!plan.first.empty()) {
    transpose(*from, *to);
    std::swap(from, to);
  }
  done = 1;
  for (auto [i, p] : llvm::enumerate(plan.second)) {
    bool outermost = i == 0 && plan.first.empty(), last = i + 1 == plan.second.size();
    auto get = [&](Value i, unsigned lanes) { return outermost ? load(i, lanes) : this->get(*from, i); };
    auto put = [&](C x, Value i, unsigned valid) {
      if (last)
        store(x, i, valid);
      else
        this->put(x, *to, i, valid);
    };
    secondPass(p, done, plan.m / done, get, put, last);
    if (team && !last)
      team->barrier();
    std::swap(from, to);
    done *= p;
  }
}

//===----------------------------------------------------------------------===//
// Bluestein's convolution
//===----------------------------------------------------------------------===//

// Plain transform at compile time; every step'th root is one of x's length.
static std::vector<Complex> transformed(const std::vector<Complex> &x, const std::vector<Complex> &roots,
                                        int64_t step = 1) {
  int64_t n = static_cast<int64_t>(x.size()), p = 2;
  if (n == 1)
    return x;
  while (n % p)
    ++p;
  std::vector<std::vector<Complex>> parts(p);
  for (int64_t i = 0; i < n; ++i)
    parts[i % p].push_back(x[i]);
  for (auto &part : parts)
    part = transformed(part, roots, step * p);
  std::vector<Complex> out(n);
  for (int64_t k = 0; k < n; ++k)
    for (int64_t r = 0; r < p; ++r)
      out[k] += parts[r][k % (n / p)] * roots[r * k % n * step];
  return out;
}

// y_k = w_k sum (x_j w_j) conj(w_(k-j)) with w_k = exp(-+pi i k^2 / n)
void FftLine::emitConvolution(FftLoad load, FftStore store, Value scratch) {
  FftLine &line = *convolution;
  int64_t length = line.n;
  std::vector<Complex> chirp, filter(length);
  for (int64_t k = 0; k < n; ++k) {
    Complex w = rootOfUnity(static_cast<int64_t>(static_cast<__int128>(k) * k % (2 * n)), 2 * n);
    chirp.push_back(inverse ? std::conj(w) : w);
    filter[k] = filter[(length - k) % length] = std::conj(chirp.back()) / static_cast<long double>(length);
  }
  chirp.resize(n + lanes());
  std::vector<Complex> roots;
  for (int64_t k = 0; k < length; ++k)
    roots.push_back(rootOfUnity(k, length));
  filter = transformed(filter, roots);
  auto buffer = [&](const std::vector<Complex> &values) {
    FftBuffer t(b, real, table(values, true), 0);
    t.im = b.ptrAt(t.re, real, b.i64(static_cast<int64_t>(values.size())));
    return t;
  };
  FftBuffer chirps = buffer(chirp), filters = buffer(filter);
  auto factor = [&](const FftBuffer &values, Value i, unsigned valid) -> C {
    if (!sideBySide) {
      if (valid == lanes() || &values == &chirps)
        return values.load(i, lanes());
      Value mask = b.tailMask(b.i64(valid), lanes());
      return {E(b, b.loadElem(real, values.re, i, lanes(), mask)),
              E(b, b.loadElem(real, values.im, i, lanes(), mask))};
    }
    C one = values.load(i, 1);
    return {E(b, b.splat(one.re, lanes())), E(b, b.splat(one.im, lanes()))};
  };
  int64_t count = bufferCount();
  FftBuffer x(b, real, scratch, count),
      y(b, real, b.ptrBytes(scratch, b.i64(FftBuffer::bytes(real, count))), count);
  Value rest = b.ptrBytes(scratch, b.i64(2 * FftBuffer::bytes(real, count)));
  E zero(b, b.cst(widen(real, lanes()), 0.0));
  line.forAll(length, [&](Value i, unsigned valid) { line.put({zero, zero}, x, i, valid); });
  line.forAll(n, [&](Value i, unsigned valid) {
    line.put(timesC(load(i, valid), factor(chirps, i, valid)), x, i, valid);
  });
  line.emitPasses([&](Value i, unsigned) { return line.get(x, i); },
                  [&](C v, Value i, unsigned valid) {
                    line.put(conjugate(timesC(v, factor(filters, i, valid))), y, i, valid);
                  },
                  rest);
  // the way back is the way there of the conjugate
  line.emitPasses([&](Value i, unsigned) { return line.get(y, i); },
                  [&](C v, Value i, unsigned valid) { line.put(v, x, i, valid); }, rest);
  line.forAll(n, [&](Value i, unsigned valid) {
    store(timesC(conjugate(line.get(x, i)), factor(chirps, i, valid)), i, valid);
  });
}

void FftLine::emit(FftLoad load, FftStore store, Value scratch) {
  if (convolution)
    emitConvolution(load, store, scratch);
  else
    emitPasses(load, store, scratch);
}

} // namespace lathe::codegen
