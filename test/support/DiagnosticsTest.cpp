// Messages name the node, its op and its function once.
#include "compiler/support/Diagnostics.h"
#include "dialects/graph/Types.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/MLIRContext.h"
#include <gtest/gtest.h>

namespace lathe {
namespace {

TEST(Diagnostics, NamesTheNode) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  mlir::Location node = graph::makeNodeLoc(&context, "dense/MatMul", "MatMul");
  mlir::Location inner = graph::makeNodeLoc(&context, "go", "Relu", "f");
  CollectedDiagnostics diagnostics(context);
  mlir::emitError(node) << "inner dimensions differ: " << 128 << " and " << 64;
  mlir::emitError(inner) << "x";
  mlir::emitError(node) << "node 'dense/MatMul' (MatMul): said already";
  mlir::emitError(mlir::FusedLoc::get(&context, {mlir::UnknownLoc::get(&context), inner, node})) << "y";
  mlir::emitError(mlir::FileLineColLoc::get(&context, "a.mlir", 3, 4)) << "z";
  mlir::emitError(mlir::UnknownLoc::get(&context)) << "plain";
  mlir::emitError(node).append("with").attachNote(inner) << "a note";
  mlir::emitWarning(node) << "careful";
  EXPECT_EQ(diagnostics.errors(),
            (std::vector<std::string>{
                "node 'dense/MatMul' (MatMul): inner dimensions differ: 128 and 64",
                "node 'go' (Relu) in function 'f': x", "node 'dense/MatMul' (MatMul): said already",
                "node 'go' (Relu) in function 'f': y", "a.mlir:3:4: z", "plain",
                "node 'dense/MatMul' (MatMul): with\n  node 'go' (Relu) in function 'f': a note"}));
  EXPECT_EQ(diagnostics.warnings(), std::vector<std::string>{"node 'dense/MatMul' (MatMul): careful"});
}

TEST(Diagnostics, Printer) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  std::string text;
  llvm::raw_string_ostream os(text);
  installDiagnosticPrinter(context, os);
  mlir::emitError(graph::makeNodeLoc(&context, "a", "Add")) << "bad";
  EXPECT_EQ(text, "error: node 'a' (Add): bad\n");
}

} // namespace
} // namespace lathe
