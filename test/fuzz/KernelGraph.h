// Graphs around one kernel, for fuzzing the generators of kernels (diff-fuzz --kernels). A case is one answer
// of one special form: that it takes an op, or one reason of its `whyNot`. Its function draws a graph whose
// main op gets that answer by its sizes and types; what is left open is drawn: type, rank, a class of sizes,
// what becomes of the result.
#ifndef LATHE_TEST_FUZZ_KERNELGRAPH_H
#define LATHE_TEST_FUZZ_KERNELGRAPH_H

#include "GraphBuilder.h"

#include <array>
#include <string>

namespace lathe::fuzz {

/// What code is made for.
struct KernelLevel {
  const char *name, *cpu, *features;
  bool bf16;     ///< --precision bf16
  int64_t lanes; ///< of f32
  bool vnni, amx;
};
llvm::ArrayRef<KernelLevel> kernelLevels();

/// What a case asks of a batch.
enum Needs : unsigned {
  anyBatch = 0,
  exactKind = 1, ///< small integers; no algorithm that rounds
  realKind = 2,
  plain = 4,   ///< products of f32 stay so
  rounded = 8, ///< --precision bf16
  vnni = 16,
  amx = 32,
  noAmx = 64,
  noVnni = 256,
  anyValues = 128, ///< nothing is summed up: NaN and infinities too
};

class KernelGraph;

struct KernelCase {
  const char *form;
  const char *reason; ///< of `whyNot`; empty: taken
  unsigned needs;
  bool (*make)(KernelGraph &g); ///< null: cannot be reached from graphs
  const char *unreachable = "";

  bool fits(const KernelLevel &level, Kind kind) const;
};
/// All of them, form by form.
llvm::ArrayRef<KernelCase> kernelCases();
void addProductCases(std::vector<KernelCase> &cases);
void addWindowCases(std::vector<KernelCase> &cases);
void addRowCases(std::vector<KernelCase> &cases);

/// Type, rank of the main op, class of sizes, epilogue.
using KernelCell = std::array<std::string, 4>;

/// Whether a right operand or filter is an argument or a constant.
enum class Right { Fed, Constant, Either };

struct DotSpec {
  llvm::SmallVector<int64_t> batch;
  int64_t m = 1, n = 1, k = 1;
  bool leftTurned = false, rightTurned = false; ///< [k, m], [n, k]
  Right right = Right::Either;
  mlir::Type left, rightElem, result; ///< those that are null are the graph's
  llvm::SmallVector<int64_t> dynamic; ///< of the left operand
};

struct ConvSpec {
  int64_t images = 1, ic = 1, oc = 1, groups = 1, batchGroups = 1;
  llvm::SmallVector<int64_t> sizes, taps, strides, dilation, inDilation; ///< empty lists: ones
  llvm::SmallVector<std::pair<int64_t, int64_t>> padding;                ///< empty: none
  std::optional<int64_t> border; ///< a number: an op before the convolution pads its image with that
  Right right = Right::Either;
  mlir::Type left, rightElem, result;
  llvm::SmallVector<int64_t> dynamic;
};

class KernelGraph : public GraphBuilder {
public:
  KernelGraph(mlir::ModuleOp module, llvm::StringRef name, uint64_t seed, Kind kind,
              const KernelLevel &level);

  const KernelLevel &level;
  mlir::Type type; ///< of the operands, chosen by pickType
  KernelCell cell;

  /// One of the types that the kind of graph has: f32, f64, f16, bf16, i8 ... ui64, i1, c64.
  mlir::Type pickType(llvm::ArrayRef<llvm::StringRef> names);
  mlir::Type typeOf(llvm::StringRef name);
  /// Elements of a vector.
  int64_t lanesOf(mlir::Type t) const;
  /// A size of the graph's class; the same moved into a range.
  int64_t size();
  int64_t size(int64_t least, int64_t most);
  int64_t oneOf(std::initializer_list<int64_t> of) { return of.begin()[below(of.size())]; }
  /// How many products a sum may have that stays exact.
  int64_t longest(mlir::Type t) const;
  int64_t longest() const { return longest(type); }
  /// The same number of times a size of the class, as a batch.
  llvm::SmallVector<int64_t> batch(int64_t rank);

  /// An argument; dimensions in `dynamic` are known at run time only.
  Known fed(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> dynamic = {}, mlir::Type elem = {});
  /// A constant; integers up to `bound`, if one is given.
  Known fixed(llvm::ArrayRef<int64_t> shape, mlir::Type elem = {}, int64_t bound = 0);
  Known right(Right how, llvm::ArrayRef<int64_t> shape, mlir::Type elem = {});
  /// A constant with one number that leaves nothing finite in sums with others of its kind.
  Known spoilt(llvm::ArrayRef<int64_t> shape);
  /// The sizes that a type has in this graph.
  llvm::SmallVector<int64_t> sizesOf(mlir::RankedTensorType t) const;
  /// Makes a value a result, though others read it.
  void alsoResult(Known x) { more.push_back(x.value); }

  // Each adds an op, false where it cannot.
  bool keep(mlir::Value value, double bound);
  bool dot(const DotSpec &spec);
  bool dot(Known left, Known right, int64_t batch, int64_t leftDim, int64_t rightDim, mlir::Type result = {});
  bool conv(const ConvSpec &spec);
  bool conv(Known input, Known filter, const ConvSpec &spec);
  bool pool(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> window, llvm::ArrayRef<int64_t> strides,
            bool padded, llvm::ArrayRef<int64_t> dynamic = {});
  bool reduce(Known x, llvm::ArrayRef<int64_t> dims, bool most);
  /// x less the largest number (or the sum) of its row, or softmax for real numbers.
  bool rows(Known x, int64_t trailing, bool most);
  /// A number of the last dimension added to each row.
  bool bias(Known x);
  void epilogue();
  /// What the case has made is all.
  void noEpilogue() { epilogueKind = 0; }
  /// At times: the result as a part of a concatenation, where its rows lie apart, perhaps with another op that reads it there.
  void join();
  Known last() const { return values.back(); }

  Graph finish();

private:
  Tensor filled(llvm::ArrayRef<int64_t> shape, mlir::Type elem, int64_t bound);
  Known fedAs(mlir::RankedTensorType t);
  mlir::ModuleOp module;
  int64_t sizeClass, epilogueKind;
  llvm::SmallVector<mlir::Value> more; ///< results
  llvm::SmallVector<int64_t> symbols;  ///< values, by number
};

} // namespace lathe::fuzz

#endif
