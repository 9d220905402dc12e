// The constants of one module: deduplicated blobs in the order of first use, each aligned to 64 bytes. Bytes stay where
// they are (resource blobs of the context) until they are written into the object or the weights file.
#ifndef LATHE_PASSES_LOWER_CONSTANTPOOL_H
#define LATHE_PASSES_LOWER_CONSTANTPOOL_H

#include "mlir/IR/AsmState.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"
#include "llvm/ADT/DenseMap.h"
#include <memory>
#include <string>
#include <vector>

namespace lathe::lower {

class ConstantPool {
public:
  /// Offset of the constant's bytes in the pool; diagnoses contents that cannot be read and pools beyond 2^40 bytes.
  mlir::FailureOr<int64_t> add(mlir::ElementsAttr value, mlir::Location loc);

  int64_t size() const { return total; }
  /// What was added, each once: added again in this order it makes the same pool.
  llvm::ArrayRef<mlir::ElementsAttr> attributes() const { return added; }
  /// Appends size() bytes, padding zeroed. `release` frees each constant's memory then: nothing may read it after.
  void append(std::string &out, bool release);
  /// xxh3 of the content.
  uint64_t hash() const;

private:
  struct Piece {
    int64_t offset;
    llvm::ArrayRef<char> bytes;
    mlir::AsmResourceBlob *blob = nullptr; ///< that holds the bytes
  };
  int64_t place(llvm::ArrayRef<char> bytes, mlir::AsmResourceBlob *blob);
  /// The same for bytes of nobody's; they are copied.
  int64_t addBytes(llvm::StringRef bytes);

  std::vector<Piece> pieces;
  std::vector<mlir::ElementsAttr> added;
  std::vector<std::unique_ptr<char[]>> owned;
  llvm::DenseMap<mlir::Attribute, int64_t> byAttribute;
  llvm::DenseMap<std::pair<uint64_t, uint64_t>, int64_t> byContent; ///< hash of 128 bits, to index of piece
  int64_t total = 0;
};

/// The repeated element of a splat as it lies in memory, or an empty string.
std::string splatBytes(mlir::ElementsAttr value);

} // namespace lathe::lower

#endif
