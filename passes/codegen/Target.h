// What a module is compiled for, as its attribute `lathe.target`, an entry list of the DLTI dialect:
//   #dlti.target_device_spec<"backend" = "cpu", "triple" = "x86_64-unknown-linux-gnu", "cpu" = "x86-64-v3",
//                            "features" = "+avx,+avx2,...", "threads" = 2 : i32, "exact" = false, "precision" = "f32">
// The driver sets it once; passes behind it read it and take no options of their own for it.
#ifndef LATHE_PASSES_CODEGEN_TARGET_H
#define LATHE_PASSES_CODEGEN_TARGET_H

#include "passes/codegen/Backend.h"

#include "mlir/Pass/Pass.h"

namespace lathe::codegen {

constexpr llvm::StringLiteral kTargetAttr = "lathe.target";

struct Target {
  std::string backend; ///< a name in backends(); empty: the default one
  Processor processor;
};

void setTarget(mlir::ModuleOp module, const Target &target);
bool hasTarget(mlir::ModuleOp module);
/// The target of the module; without one the default backend for an x86-64 CPU with AVX2. Diagnoses an attribute that is
/// of another form.
mlir::FailureOr<Target> targetOf(mlir::ModuleOp module);

/// Registers kernel-set-target.
void registerSetTarget();

/// A pass that gives tunable ops the plans that a table has for them. The table must outlive it.
std::unique_ptr<mlir::Pass> createAttachPlansPass(const PlanTable &plans);

} // namespace lathe::codegen

#endif
