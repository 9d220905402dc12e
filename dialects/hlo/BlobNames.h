// Names of constants that are blobs. MLIR makes a name unique by trying one number after the other, which for n constants of
// one name is n² look-ups; these carry on counting.
#ifndef LATHE_DIALECTS_HLO_BLOBNAMES_H
#define LATHE_DIALECTS_HLO_BLOBNAMES_H

#include "mlir/IR/DialectInterface.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/Twine.h"

#include <mutex>
#include <string>

namespace lathe::hlo {

/// The counters of a context; the hlo dialect has them.
class BlobNames : public mlir::DialectInterface::Base<BlobNames> {
public:
  explicit BlobNames(mlir::Dialect *dialect) : Base(dialect) {}

  /// "constant", "constant_1", "constant_2" ...: as MLIR numbers them.
  std::string next(llvm::StringRef base) const {
    std::lock_guard<std::mutex> lock(mutex);
    uint64_t n = counts[base]++;
    return n ? (base + "_" + llvm::Twine(n)).str() : base.str();
  }

private:
  mutable std::mutex mutex;
  mutable llvm::StringMap<uint64_t> counts;
};

/// The next name of a base, or the base where the hlo dialect is not loaded.
std::string nextBlobName(mlir::MLIRContext *context, llvm::StringRef base);

} // namespace lathe::hlo

#endif // LATHE_DIALECTS_HLO_BLOBNAMES_H
