// Post-training quantization as users ask for it; a part of CompilerOptions.
#ifndef LATHE_COMPILER_DRIVER_QUANTIZEOPTIONS_H
#define LATHE_COMPILER_DRIVER_QUANTIZEOPTIONS_H

#include <string>
#include <vector>

namespace lathe {

struct QuantizeOptions {
  std::string kind;                   ///< int8 or int16x8; empty: none
  std::vector<std::string> calibrate; ///< npz files, and folders of them; KEY=PATH: of one of several entries
  std::string io = "float";           ///< inputs and outputs: float, int8, uint8
  std::string observer = "minmax";    ///< minmax, average, percentile or entropy
  double maxError = -1;               ///< largest error as a share of an output's range; negative: no bound
  bool keepFaster = false;            ///< keep nodes float that are faster so on this machine
  std::string math = "tflite";        ///< how quantized results are rounded: tflite or fast
  std::string report;                 ///< JSON file for the table of nodes
};

} // namespace lathe

#endif
