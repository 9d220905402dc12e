// Random numbers.
#ifndef LATHE_HLO_RANDOM
#define LATHE_HLO_RANDOM

include "dialects/hlo/HloBase.td"

def HLO_RngOp : HLO_Op<"rng"> {
  let arguments = (ins HLO_IntOrFpTensor:$a, HLO_IntOrFpTensor:$b, HLO_IntTensor:$shape,
                       HLO_RngDistributionAttr:$rng_distribution);
  let results = (outs HLO_IntOrFpTensor:$result);
  let hasVerifier = 1;
}

def HLO_RngBitGeneratorOp : HLO_Op<"rng_bit_generator", [Pure]> {
  let summary = "random bits from a key and counter; returns the state to continue with";
  let arguments = (ins HLO_RngAlgorithmAttr:$rng_algorithm, HLO_IntTensor:$initial_state);
  let results = (outs HLO_IntTensor:$output_state, HLO_Tensor:$output);
  let hasVerifier = 1;
}

#endif
