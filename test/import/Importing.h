// Imports into a fresh context and keeps what came out: IR as text, or the messages.
#ifndef LATHE_TEST_IMPORT_IMPORTING_H
#define LATHE_TEST_IMPORT_IMPORTING_H

#include "compiler/import/Import.h"
#include "compiler/support/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/raw_ostream.h"

#include <gtest/gtest.h>

namespace lathe {

struct Imported {
  bool ok = false;
  std::string ir, errors;
  unsigned numErrors = 0;
  std::vector<ImportedModel::EntryInfo> entries;
  std::string notes;
};

inline Imported keep(mlir::MLIRContext &context, llvm::function_ref<mlir::FailureOr<ImportedModel>()> import) {
  Imported out;
  CollectedDiagnostics diagnostics(context);
  mlir::FailureOr<ImportedModel> model = import();
  out.ok = mlir::succeeded(model);
  out.errors = diagnostics.text();
  out.numErrors = static_cast<unsigned>(diagnostics.errors().size());
  if (out.ok) {
    llvm::raw_string_ostream os(out.ir);
    model->module->print(os);
    out.entries = model->entries;
    out.notes = model->notes;
  }
  return out;
}

inline Imported importBytes(llvm::StringRef bytes, const ImportOptions &options = {}) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  return keep(context, [&] { return importModelBytes(&context, bytes, "graph", options); });
}

inline Imported importFile(const std::string &path, const ImportOptions &options = {}) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  return keep(context, [&] { return importModel(&context, path, options); });
}

inline void expectContains(const std::string &text, const std::string &part) {
  EXPECT_NE(text.find(part), std::string::npos) << "expected: " << part << "\nin: " << text;
}

inline void expectMissing(const std::string &text, const std::string &part) {
  EXPECT_EQ(text.find(part), std::string::npos) << "unexpected: " << part << "\nin: " << text;
}

/// The import fails with one line that holds `part`.
inline void expectError(const Imported &imported, const std::string &part) {
  EXPECT_FALSE(imported.ok) << "expected: " << part;
  EXPECT_EQ(imported.numErrors, 1u) << imported.errors;
  EXPECT_EQ(imported.errors.find('\n'), std::string::npos) << imported.errors;
  expectContains(imported.errors, part);
}

} // namespace lathe

#endif
