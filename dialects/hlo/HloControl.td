// Structured control flow, terminators, run-time checks and opaque calls.
#ifndef LATHE_HLO_CONTROL
#define LATHE_HLO_CONTROL

include "dialects/hlo/HloBase.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"

def HLO_ReturnOp : HLO_Op<"return", [Pure, ReturnLike, Terminator]> {
  let arguments = (ins Variadic<HLO_OpaqueTensor>:$results);
  let builders = [OpBuilder<(ins), [{ (void)$_builder; }]>];
  let assemblyFormat = "($results^)? attr-dict (`:` type($results)^)?";
}

def HLO_IfOp : HLO_Op<"if", [RecursiveMemoryEffects]> {
  let arguments = (ins HLO_PredTensor:$pred);
  let regions = (region SizedRegion<1>:$true_branch, SizedRegion<1>:$false_branch);
  let results = (outs Variadic<HLO_OpaqueTensor>);
  let hasRegionVerifier = 1;
}

def HLO_CaseOp : HLO_Op<"case", [RecursiveMemoryEffects]> {
  let description = [{An index out of range takes the last branch.}];
  let arguments = (ins HLO_IntTensor:$index);
  let regions = (region VariadicRegion<SizedRegion<1>>:$branches);
  let results = (outs Variadic<HLO_OpaqueTensor>);
  let hasRegionVerifier = 1;
}

def HLO_WhileOp : HLO_InferredOp<"while", [RecursiveMemoryEffects]> {
  let arguments = (ins Variadic<HLO_OpaqueTensor>:$operand);
  let regions = (region SizedRegion<1>:$cond, SizedRegion<1>:$body);
  let results = (outs Variadic<HLO_OpaqueTensor>);
  let hasRegionVerifier = 1;
}

def HLO_OptimizationBarrierOp : HLO_InferredOp<"optimization_barrier", [Pure]> {
  let arguments = (ins Variadic<HLO_OpaqueTensor>:$operand);
  let results = (outs Variadic<HLO_OpaqueTensor>:$result);
}

def HLO_CheckOp : HLO_Op<"check"> {
  let summary = "run-time error with `message` at `node` unless all elements are true";
  let arguments = (ins HLO_PredTensor:$pred, StrAttr:$message, DefaultValuedOptionalAttr<StrAttr, "\"\"">:$node);
  let assemblyFormat = "$pred `,` $message attr-dict `:` type($pred)";
}

def HLO_CustomCallOp : HLO_Op<"custom_call"> {
  let arguments = (ins Variadic<HLO_OpaqueTensor>:$inputs, StrAttr:$call_target_name,
                       DefaultValuedOptionalAttr<BoolAttr, "false">:$has_side_effect,
                       OptionalAttr<AnyAttr>:$backend_config, OptionalAttr<I32Attr>:$api_version);
  let results = (outs Variadic<HLO_OpaqueTensor>);
}

#endif
