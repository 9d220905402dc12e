// wgmma of sm_90a: products that four warps begin together and wait for. Each warp makes its own 16 of the 64 rows. A product's
// operands are read when it is waited for, as late as allowed, and must be then what they were when it began; until then its
// sums hold poison. What threads have written to shared memory (the generic proxy) must be fenced by them before (the
// asynchronous proxy) reads it.
//
// Where an operand's elements lie, as PTX's manual and CuTe's canonical layouts have it, with lines of w = 128, 64 or 32 bytes
// (the swizzle) and eight lines to an atom: along the depth, line m is in atom m / 8, SBO bytes apart, and a step is at its place
// in the line. Across, step k is line k % 8 of an atom, atoms of neighbouring k lie SBO apart, those of the next w bytes of
// lines LBO. Pieces of 16 bytes then change places: address bits 4 and up are xored by those from 7 on.
#include "test/cuda/emulator/Decoder.h"
#include "test/cuda/emulator/Exec.h"
#include "test/cuda/emulator/Numeric.h"

#include <algorithm>
#include <cstring>
#include <memory>

namespace lathe::emu {

// in Shadow.cpp
void fenceProxy(Exec &x, Mask m);
bool isUnfenced(const Block &block, uint64_t offset, unsigned bytes);

namespace {

constexpr unsigned groupWarps = 4, warpRows = 16, stepBytes = 32;
constexpr uint32_t poison = 0x7fdbdbdb; // a NaN of f32

/// One operand's descriptor.
struct Matrix {
  uint64_t start, leading, stride;
  unsigned width;    ///< bytes of a line
  bool across;       ///< neighbours are lines, not steps
  unsigned elements; ///< bytes of one

  /// Of element [line, k].
  uint64_t at(unsigned line, unsigned k) const {
    uint64_t a = start;
    if (!across) {
      a += line / 8 * stride + line % 8 * width + k * elements;
    } else {
      const unsigned inLine = width / elements;
      a += line / inLine * leading + k / 8 * stride + k % 8 * width + line % inLine * elements;
    }
    const unsigned bits = width == 128 ? 7 : width == 64 ? 3 : 1;
    return a ^ (a >> 7 & bits) << 4;
  }
};

/// Why a descriptor is none that is known here, or null.
const char *readDescriptor(uint64_t d, Matrix &m) {
  static const unsigned widths[] = {0, 128, 64, 32};
  m.start = (d & 0x3fff) << 4;
  m.leading = (d >> 16 & 0x3fff) << 4;
  m.stride = (d >> 32 & 0x3fff) << 4;
  m.width = widths[d >> 62];
  if (d >> 62 == 0)
    return "a matrix without swizzle, which is not supported";
  if (d >> 49 & 7)
    return "a base offset, which is not supported";
  if ((d >> 14 & 3) || (d >> 30 & 3) || (d >> 46 & 7) || (d >> 52 & 0x3ff))
    return "bits that have no meaning";
  return nullptr;
}

/// How a product's words are laid out in Extra::places.
enum Place : unsigned { Columns, ElementBytes, ElementKind, SumKind, AcrossA, AcrossB, ScaleA, ScaleB, FirstSum };

/// Registers of sums that are under way.
struct Sums {
  char *regs;
  std::vector<uint32_t> places;
  std::vector<uint32_t> values; ///< [place][lane]
};

struct Product {
  const Instr *instr;
  Matrix a, b;
  bool adds;
  std::vector<char> seen; ///< the operands as they were
  std::shared_ptr<Sums> sums;
};

} // namespace

/// What a warp has under way.
struct Products {
  std::vector<std::vector<Product>> groups{1}; ///< the last one open
  bool fenced = false;                         ///< wgmma.fence was the last that ordered registers
  std::vector<std::shared_ptr<Sums>> sums;     ///< of all that are under way
  size_t begun = 0;                            ///< products, ever
};

namespace {

Products &productsOf(Warp &warp) {
  if (!warp.products)
    warp.products = std::make_shared<Products>();
  return *warp.products;
}

/// Calls f(address, line, k) for each piece of 16 bytes of so many lines, with the first element in it.
template <class F>
void eachPiece(const Matrix &m, unsigned first, unsigned lines, F f) {
  const unsigned inPiece = 16 / m.elements, steps = stepBytes / m.elements;
  for (unsigned line = 0; line < lines; line += m.across ? inPiece : 1)
    for (unsigned k = 0; k < steps; k += m.across ? 1 : inPiece)
      f(m.at(first + line, k), line, k);
}

/// The operands' bytes: this warp's rows of A, then B. False outside shared memory.
bool gather(const Block &block, const Product &p, unsigned firstRow, std::vector<char> &bytes) {
  const unsigned columns = p.instr->extra->places[Columns];
  bytes.resize((warpRows + columns) * stepBytes);
  bool inside = true;
  auto read = [&](const Matrix &m, unsigned first, unsigned lines, char *to) {
    const unsigned e = m.elements;
    eachPiece(m, first, lines, [&](uint64_t at, unsigned line, unsigned k) {
      if (at < SharedBase || at - SharedBase + 16 > block.shared.size()) {
        inside = false;
        return;
      }
      const char *from = &block.shared[at - SharedBase];
      if (!m.across)
        std::memcpy(to + line * stepBytes + k * e, from, 16);
      else
        for (unsigned n = 0; n < 16 / e; ++n)
          std::memcpy(to + (line + n) * stepBytes + k * e, from + n * e, e);
    });
  };
  read(p.a, firstRow, warpRows, bytes.data());
  read(p.b, 0, columns, bytes.data() + warpRows * stepBytes);
  return inside;
}

/// initcheck, racecheck and the proxies.
void checkOperands(Exec &x, const Instr &i, const Product &p, unsigned firstRow) {
  std::vector<uint64_t> pieces;
  auto note = [&](uint64_t at, unsigned, unsigned) { pieces.push_back(at); };
  eachPiece(p.a, firstRow, warpRows, note);
  eachPiece(p.b, 0, i.extra->places[Columns], note);
  for (size_t first = 0; first < pieces.size(); first += WarpSize) {
    const size_t n = std::min<size_t>(WarpSize, pieces.size() - first);
    uint64_t address[WarpSize];
    for (size_t l = 0; l < WarpSize; ++l)
      address[l] = pieces[first + std::min(l, n - 1)];
    checkAccess(x, i, n == WarpSize ? Full : (Mask(1) << n) - 1, Space::Shared, address, 16, Access::Read);
  }
  for (uint64_t piece : pieces)
    if (isUnfenced(*x.block, piece, 16))
      return report(x, i, Full, Finding::Racecheck,
                    "shared memory is read by the asynchronous proxy whose writer has not fenced it since, byte " +
                        std::to_string(piece - SharedBase));
}

/// Whether nobody has written to registers of sums since they were poisoned.
bool isPoisoned(Exec &x, const Instr &i, const Sums &sums) {
  for (uint32_t p : sums.places) {
    const uint32_t *r = reinterpret_cast<const uint32_t *>(sums.regs + p);
    for (unsigned l = 0; l < WarpSize; ++l)
      if (r[l] != poison) {
        report(x, i, Mask(1) << l, Finding::Racecheck, "a register of sums is written while a product is under way");
        return false;
      }
  }
  return true;
}

/// The sums that a product adds to: those of one under way, or others, whose values stay with the warp from now on while their registers
/// are poisoned. Null with a finding.
std::shared_ptr<Sums> takeSums(Exec &x, const Instr &i, Products &all) {
  const std::vector<uint32_t> places(i.extra->places.begin() + FirstSum, i.extra->places.end());
  for (const auto &sums : all.sums) {
    if (sums->regs != x.regs)
      continue;
    if (sums->places == places)
      return isPoisoned(x, i, *sums) ? sums : nullptr;
    for (uint32_t p : places)
      if (std::find(sums->places.begin(), sums->places.end(), p) != sums->places.end()) {
        report(x, i, Full, Finding::Racecheck, "a register of sums belongs to another product that is under way");
        return nullptr;
      }
  }
  if (!all.fenced) {
    report(x, i, Full, Finding::Synccheck, "a product begins whose registers no wgmma.fence has ordered");
    return nullptr;
  }
  auto sums = std::make_shared<Sums>(Sums{x.regs, places, std::vector<uint32_t>(places.size() * WarpSize)});
  for (size_t n = 0; n < places.size(); ++n) {
    uint32_t *r = x.reg<uint32_t>(places[n]);
    std::copy(r, r + WarpSize, &sums->values[n * WarpSize]);
    std::fill(r, r + WarpSize, poison);
  }
  all.sums.push_back(sums);
  return sums;
}

/// Warps of a group begin the same products in the same order.
bool isTogether(Exec &x, const Instr &i, Products &all, uint64_t a, uint64_t b) {
  Block &block = *x.block;
  const unsigned group = x.warp->index / groupWarps;
  if (block.warps.size() < (group + 1) * groupWarps || x.warp->all != Full) {
    report(x, i, Full, Finding::Synccheck, "a warpgroup of fewer than 128 threads");
    return false;
  }
  // one that has ended has begun all that it ever will
  for (unsigned n = 0; n < groupWarps; ++n) {
    const Warp &w = block.warps[group * groupWarps + n];
    if (w.live != Full && (!w.products || w.products->begun <= all.begun)) {
      report(x, i, Full, Finding::Synccheck, "a product of a warpgroup of which threads have ended");
      return false;
    }
  }
  block.products.resize(std::max<size_t>(block.products.size(), group + 1));
  auto &begun = block.products[group];
  const std::array<uint64_t, 3> what = {i.id, a, b};
  if (all.begun == begun.size())
    begun.push_back(what);
  if (begun[all.begun++] == what)
    return true;
  report(x, i, Full, Finding::Synccheck, "warps of a warpgroup begin different products");
  return false;
}

/// i.a, i.b: descriptors; i.c: predicate of sums that are kept.
void begin(Exec &x, const Instr &i, Mask m) {
  if (!haveAll(x, i, m, Full))
    return;
  const auto &places = i.extra->places;
  Products &all = productsOf(*x.warp);
  const uint64_t *a = x.reg<uint64_t>(i.a), *b = x.reg<uint64_t>(i.b);
  for (unsigned l = 1; l < WarpSize; ++l)
    if (a[l] != a[0] || b[l] != b[0] || (x.pred(i.c) >> l & 1) != (x.pred(i.c) & 1))
      return report(x, i, Mask(1) << l, Finding::Synccheck, "threads of a warp have different descriptors or scales");
  Product p{&i, {}, {}, (x.pred(i.c) & 1) != 0, {}, nullptr};
  for (auto [d, matrix, across] : {std::tuple(a[0], &p.a, places[AcrossA]), std::tuple(b[0], &p.b, places[AcrossB])}) {
    if (const char *why = readDescriptor(d, *matrix))
      return report(x, i, Full, Finding::Instruction, std::string("a descriptor with ") + why);
    matrix->across = across;
    matrix->elements = places[ElementBytes];
  }
  if (!isTogether(x, i, all, a[0], b[0]))
    return;
  const unsigned row = x.warp->index % groupWarps * warpRows;
  if (!gather(*x.block, p, row, p.seen))
    return report(x, i, Full, Finding::Memcheck, "a matrix that is not within shared memory");
  if (checked(x))
    checkOperands(x, i, p, row);
  if ((p.sums = takeSums(x, i, all)))
    all.groups.back().push_back(std::move(p));
}

double elementOf(const char *from, uint32_t kind) {
  if (kind == 't') {
    uint32_t word;
    std::memcpy(&word, from, 4);
    return bitsTo<float>(word & 0xffffe000u);
  }
  if (kind == 's')
    return *reinterpret_cast<const int8_t *>(from);
  uint16_t half;
  std::memcpy(&half, from, 2);
  return kind == 'h' ? bfloatToFloat(half) : halfToFloat(half);
}

/// Adds the product to the sums that the warp keeps. A thread has, of each 8 columns, two neighbours in two rows.
void multiply(const Product &p) {
  const auto &places = p.instr->extra->places;
  const unsigned columns = places[Columns], e = p.a.elements, steps = stepBytes / e;
  std::vector<double> a(warpRows * steps), b(columns * steps);
  for (size_t n = 0; n < a.size(); ++n)
    a[n] = elementOf(&p.seen[n * e], places[ElementKind]) * (places[ScaleA] ? 1 : -1);
  for (size_t n = 0; n < b.size(); ++n)
    b[n] = elementOf(&p.seen[(a.size() + n) * e], places[ElementKind]) * (places[ScaleB] ? 1 : -1);
  const bool whole = places[SumKind] == 's';
  for (unsigned j = 0; j < columns / 8; ++j)
    for (unsigned s = 0; s < 4; ++s)
      for (unsigned l = 0; l < WarpSize; ++l) {
        const double *row = &a[(l / 4 + s / 2 * 8) * steps], *column = &b[(8 * j + l % 4 * 2 + s % 2) * steps];
        uint32_t &word = p.sums->values[(4 * j + s) * WarpSize + l];
        double sum = !p.adds ? 0 : whole ? static_cast<int32_t>(word) : static_cast<double>(bitsTo<float>(word));
        for (unsigned k = 0; k < steps; ++k)
          sum += row[k] * column[k];
        if (whole) {
          word = static_cast<uint32_t>(static_cast<int64_t>(sum));
        } else {
          const float rounded = canonical(static_cast<float>(sum));
          std::memcpy(&word, &rounded, 4);
        }
      }
}

void finish(Exec &x, const Instr &i, std::vector<Product> &group) {
  for (Product &p : group) {
    std::vector<char> now;
    if (!gather(*x.block, p, x.warp->index % groupWarps * warpRows, now) || now != p.seen)
      report(x, i, Full, Finding::Racecheck,
             "shared memory was written while the product at line " + std::to_string(p.instr->line) + " was to read it");
    p.seen = std::move(now);
    multiply(p);
  }
}

/// Waits until at most imm groups are under way.
void wait(Exec &x, const Instr &i, Mask m) {
  if (!haveAll(x, i, m, Full))
    return;
  Products &all = productsOf(*x.warp);
  auto &groups = all.groups;
  while (groups.size() > static_cast<size_t>(i.imm) + 1) {
    finish(x, i, groups.front());
    groups.erase(groups.begin());
  }
  // sums that no product is left to change
  for (size_t s = 0; s < all.sums.size();) {
    const auto sums = all.sums[s];
    const bool isUnderWay = std::any_of(groups.begin(), groups.end(), [&](const std::vector<Product> &group) {
      return std::any_of(group.begin(), group.end(), [&](const Product &p) { return p.sums == sums; });
    });
    if (isUnderWay) {
      ++s;
      continue;
    }
    if (!isPoisoned(x, i, *sums))
      return;
    for (size_t n = 0; n < sums->places.size(); ++n)
      std::copy_n(&sums->values[n * WarpSize], WarpSize, reinterpret_cast<uint32_t *>(sums->regs + sums->places[n]));
    all.sums.erase(all.sums.begin() + static_cast<std::ptrdiff_t>(s));
    all.fenced = false;
  }
}

void decodeProduct(Decoder &d) {
  unsigned columns = 0, bytes = 0;
  for (unsigned n = 8; n <= 256 && !columns; n += 8)
    for (unsigned k : {8u, 16u, 32u})
      if (d.take(("m64n" + std::to_string(n) + "k" + std::to_string(k)).c_str())) {
        columns = n;
        bytes = stepBytes / k;
      }
  if (!columns)
    d.fail("no such shape");
  const Type sum = d.takeType(), a = d.takeType(), b = d.takeType();
  const bool halves = bytes == 2 && a == b && (a == Type{'f', 16, false} || a == Type{'h', 16, false});
  const bool tf32 = bytes == 4 && a.kind == 't' && b.kind == 't', whole = bytes == 1 && a == Type{'s', 8, false} && a == b;
  if (!(halves || tf32 || whole) || sum != (whole ? Type{'s', 32, false} : Type{'f', 32, false}))
    d.fail("no such product, or none that is supported");
  if (whole && columns > 24 && columns % 16)
    d.fail("no such shape");
  d.done(whole ? 4 : halves ? 8 : 6);
  auto flag = [&](size_t operand, int64_t no, int64_t yes) -> uint32_t {
    const int64_t v = d.immediate(operand);
    if (v != no && v != yes)
      d.fail("an immediate value that has no meaning");
    return v == yes;
  };
  std::vector<uint32_t> places(FirstSum, 1);
  places[Columns] = columns;
  places[ElementBytes] = bytes;
  places[ElementKind] = static_cast<uint32_t>(a.kind);
  places[SumKind] = static_cast<uint32_t>(sum.kind);
  places[ScaleA] = whole ? 1 : flag(4, -1, 1);
  places[ScaleB] = whole ? 1 : flag(5, -1, 1);
  places[AcrossA] = halves ? flag(6, 0, 1) : 0;
  places[AcrossB] = halves ? flag(7, 0, 1) : 0;
  const Operand &v = d.s.operands[0];
  if (v.kind != Operand::Vector || v.elements.size() != columns / 2)
    d.fail("expected a vector of " + std::to_string(columns / 2));
  const Type word = whole ? Type{'b', 32, false} : sum;
  for (const Operand &e : v.elements) {
    d.sourceOf(e, word);
    places.push_back(d.destinationOf(e.name, word));
  }
  d.extra().places = places;
  d.i.a = d.source(1, Type{'b', 64, false});
  d.i.b = d.source(2, Type{'b', 64, false});
  d.i.c = d.predicate(3);
  d.i.fn = begin;
}

} // namespace

void addWarpgroup(DecodeTable &table) {
  table["wgmma"] = [](Decoder &d) {
    if (d.target() != "sm_90a")
      d.fail("of sm_90a only");
    const int which = d.takeOneOf({"fence", "commit_group", "wait_group", "mma_async"});
    if (!d.take("sync") || !d.take("aligned") || which < 0)
      d.fail("no such instruction");
    if (which == 3)
      return decodeProduct(d);
    d.done(which == 2 ? 1 : 0);
    if (which == 2 && (d.i.imm = d.immediate(0)) < 0)
      d.fail("a negative number of groups");
    d.i.fn = which == 2   ? wait
             : which == 0 ? Handler([](Exec &x, const Instr &i, Mask m) {
                 if (haveAll(x, i, m, Full))
                   productsOf(*x.warp).fenced = true;
               })
                          : Handler([](Exec &x, const Instr &i, Mask m) {
                              if (haveAll(x, i, m, Full))
                                productsOf(*x.warp).groups.emplace_back();
                            });
  };
}

} // namespace lathe::emu
