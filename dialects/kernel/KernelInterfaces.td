// What the kernel dialect asks of attributes that backends own.
#ifndef LATHE_KERNEL_INTERFACES_TD
#define LATHE_KERNEL_INTERFACES_TD

include "mlir/IR/OpBase.td"

def Kernel_LayoutAttrInterface : AttrInterface<"LayoutAttr"> {
  let cppNamespace = "::lathe::kernel";
  let description = [{
    How a backend has laid out the right operand of `kernel.dot` or the filter of `kernel.conv`, and so the algorithm that reads it. The op
    computes the same with and without; only the backend that prepared it can emit it.
  }];
  let methods = [
    InterfaceMethod<"Reports on the op whether its right operand or filter lies so.", "::llvm::LogicalResult", "verifyLayout",
      (ins "::mlir::Operation *":$op)>,
    InterfaceMethod<"What profiles append to the kernel's name; often nothing.", "::std::string", "nameSuffix", (ins)>
  ];
}

#endif
