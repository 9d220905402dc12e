// The subcommands of lathe: each file declares its options on an App and returns the exit status when it is the one chosen.
#ifndef LATHE_TOOLS_LATHE_COMMANDS_H
#define LATHE_TOOLS_LATHE_COMMANDS_H

#include "base/Npz.h"
#include "compiler/driver/Options.h"
#include "compiler/import/Import.h"

#include <CLI/CLI.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace lathe::cli {

/// Exit statuses; see docs/generated/cli.md.
enum ExitStatus { Fine = 0, BadInput = 1, Differs = 2, Internal = 3 };

/// The options that compile, run, bench and others share, as text until finish() turns them into CompilerOptions.
struct ModelArgs {
  CompilerOptions options;
  std::vector<std::string> inputs, entries;
  bool noFuse = false;
  std::string compileTo;
  CLI::App *of = nullptr;
  size_t ownOptions = 0; ///< how many of the command's options add() has added; the command's own follow
  CLI::Option *memoryOption = nullptr, *timeoutOption = nullptr, *threadsOption = nullptr, *weightsOption = nullptr, *deviceOption = nullptr,
              *outputOption = nullptr;
  bool runsCode = false; ///< not only compiles it

  /// Adds the options to `app`; `defaultCpu` is what --cpu is without the option.
  void add(CLI::App &app, const std::string &defaultCpu, const std::string &modelHelp);
  /// Checks and converts; prints what is wrong and returns false.
  bool finish();
  /// Whether MODEL is a compiled library and no model.
  bool isLibrary() const;
  /// What will be fed says the sizes that the model and --input leave open.
  void takeShapes(const NamedTensors &feeds);
  /// An example of --input for each of the inputs whose sizes are open, empty if there are none.
  std::string exampleInputs(const std::vector<ImportedModel::EntryInfo> &entries) const;

private:
  void addCode(CLI::App &app, const std::string &command);
  /// Of options that say how to compile none is given with a library; prints which one and returns false.
  bool fitsLibrary();
};

/// Adds the option of the backend's name, under `names`; `backend` becomes the default one.
void addBackend(CLI::App &app, const std::string &names, std::string &backend);

/// Of an option that is a number: what is wrong with one that is not finite or below 0. (CLI11's own check lets NaN through, takes no text for
/// 0, and tells the largest number in 309 digits.)
std::string nonNegative(const std::string &text);

using Command = std::function<int()>;
Command addCompile(CLI::App &root);
Command addRun(CLI::App &root);
Command addBench(CLI::App &root);
Command addCheck(CLI::App &root);
Command addInspect(CLI::App &root);
Command addVerify(CLI::App &root);
Command addConform(CLI::App &root);

/// Prints "lathe: error: TEXT" on stderr and returns BadInput.
int fail(const std::string &text);

/// Makes allocations beyond `bytes` fail, which ends the process with status 1 and a message; 0 is nine tenths of the
/// machine's memory.
void limitMemory(int64_t bytes);

/// Ends the process with status 1 and a message after `seconds`; 0 is never.
void startTimeout(int seconds);

} // namespace lathe::cli

#endif
