// The only list of the compiler's options: the command line, the driver and the JIT read this one.
#ifndef LATHE_COMPILER_DRIVER_OPTIONS_H
#define LATHE_COMPILER_DRIVER_OPTIONS_H

#include "base/Tensor.h"
#include "compiler/driver/QuantizeOptions.h"
#include "compiler/frontend/Model.h"

#include "absl/status/statusor.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lathe {

/// One dimension of an --input shape: a size, or unknown with an optional range.
struct DimSpec {
  int64_t size = -1; ///< -1: known at run time only
  int64_t minimum = 0, maximum = -1; ///< -1: unbounded
};

/// --input NAME[=SHAPE].
struct InputSpec {
  std::string name;
  std::optional<std::vector<DimSpec>> dims; ///< absent: as the graph says
};

/// --entry NAME=FETCHES[/TARGETS].
struct EntrySpec {
  std::string name;
  std::vector<std::string> fetches, targets;
};

struct CompilerOptions {
  std::string model;
  std::vector<InputSpec> inputs;
  std::vector<std::pair<std::string, std::vector<int64_t>>> fedShapes; ///< of what will be fed: for sizes that `inputs` and the graph leave open
  std::vector<std::string> outputs, targets;
  std::vector<EntrySpec> entries;
  std::string signature, tag;
  bool keepVariables = false;
  bool withInit = false; ///< also import the model's initialiser (ImportOptions)
  bool onlyListedInputs = false; ///< placeholders that `inputs` does not name are not inputs
  std::vector<std::pair<std::string, Tensor>> constantFeeds; ///< these inputs become constants

  std::string backend; ///< codegen::backends(); empty: the default one
  std::string triple, cpu = "x86-64-v3";
  std::string features; ///< "+a,-b", added to the CPU's; of a recorded module only
  std::string className, symbolPrefix;
  int threads = 1;
  std::string weights = "embed";
  std::string precision = "f32";
  std::vector<std::string> archs, cubins; ///< of a device, in the order given: codegen::Processor
  bool checkShapes = false; ///< legalize::LegalizeOptions
  bool exact = false, fuse = true, allowHost = false, unknownLeading = false;
  std::string sanitize;
  QuantizeOptions quantize;
  bool releaseConstants = false; ///< free constants as soon as this compilation is done with them; no other may share them
  std::string tuneCache; ///< plans of kernels, see TuneFile.h; empty: estimates only
  bool tune = false;     ///< search for plans that tuneCache lacks, and keep them there
  bool profile = false; ///< call the trace hook around each kernel
  int optLevel = 3;

  int64_t maxMemory = int64_t(16) << 30; ///< bytes that import and folding may hold
  int64_t maxFoldBytes = int64_t(1) << 30;
  int timeoutSeconds = 0; ///< 0: none

  Phase compileTo = Phase::Emit;
  std::string dumpDir;
  bool progress = false;
  bool timing = false;
};

/// "1x224x224x3", "?x8", "1..64x128", "" (a scalar). INVALID_ARGUMENT says what is wrong.
absl::StatusOr<std::vector<DimSpec>> parseShape(const std::string &text);
/// "NAME" or "NAME=SHAPE".
absl::StatusOr<InputSpec> parseInput(const std::string &text);
/// "NAME=a:0,b:0/target,target"; with targets the fetches name their outputs ("a:0"), "NAME=/target" has no fetch.
absl::StatusOr<EntrySpec> parseEntry(const std::string &text);

/// Sets the option that the command line calls --NAME; repeatable ones are added. Flags are "1" or "0". INVALID_ARGUMENT for names and
/// values that `lathe compile` does not take.
absl::Status setOption(CompilerOptions &options, const std::string &name, const std::string &value);
/// What is wrong with options that ask for others.
absl::Status checkOptions(const CompilerOptions &options);

/// Names and values of the options that decide what code is made after import, in a fixed order.
using RecordedOptions = std::vector<std::pair<std::string, std::string>>;
RecordedOptions recordOptions(const CompilerOptions &options);
/// Takes them over from a module that was written in the middle of a compilation. INVALID_ARGUMENT where an option was given
/// another value than the one recorded.
absl::Status restoreOptions(const RecordedOptions &recorded, CompilerOptions &options);

} // namespace lathe

#endif
