// A context with what hlo modules need, and parsing of text in tests.
#ifndef LATHE_TEST_HLO_TESTCONTEXT_H
#define LATHE_TEST_HLO_TESTCONTEXT_H

#include "dialects/hlo/Hlo.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"

#include <string>

struct TestContext {
  mlir::MLIRContext context;
  /// Everything that was said, a line each.
  std::string messages;

  TestContext() : context(mlir::MLIRContext::Threading::DISABLED) {
    context.loadDialect<lathe::hlo::HloDialect, mlir::func::FuncDialect>();
    context.getDiagEngine().registerHandler([this](mlir::Diagnostic &diagnostic) {
      messages += diagnostic.str() + "\n";
      return mlir::success();
    });
  }
  mlir::OwningOpRef<mlir::ModuleOp> parse(llvm::StringRef text) {
    return mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  }
};

#endif
