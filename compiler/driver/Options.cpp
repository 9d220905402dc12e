#include "compiler/driver/Options.h"

#include "compiler/emit/Target.h"
#include "compiler/quantize/Quantize.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace lathe {

static bool parseSize(absl::string_view text, int64_t &value) {
  return absl::SimpleAtoi(text, &value) && value >= 0 && value <= (int64_t(1) << 40);
}

absl::StatusOr<std::vector<DimSpec>> parseShape(const std::string &text) {
  std::vector<DimSpec> dims;
  if (text.empty())
    return dims;
  for (absl::string_view part : absl::StrSplit(text, 'x')) {
    DimSpec d;
    size_t range = part.find("..");
    if (part == "?") {
    } else if (range != absl::string_view::npos) {
      if (!parseSize(part.substr(0, range), d.minimum) || !parseSize(part.substr(range + 2), d.maximum) ||
          d.maximum < d.minimum)
        return absl::InvalidArgumentError(absl::StrCat("shape '", text, "': expected MIN..MAX, found '", part, "'"));
    } else if (!parseSize(part, d.size)) {
      return absl::InvalidArgumentError(
          absl::StrCat("shape '", text, "': expected a size, '?' or MIN..MAX, found '", part, "'"));
    }
    dims.push_back(d);
  }
  return dims;
}

absl::StatusOr<InputSpec> parseInput(const std::string &text) {
  InputSpec spec;
  size_t equals = text.find('=');
  spec.name = text.substr(0, equals);
  if (spec.name.empty())
    return absl::InvalidArgumentError(absl::StrCat("--input '", text, "': expected NAME or NAME=SHAPE"));
  if (equals == std::string::npos)
    return spec;
  absl::StatusOr<std::vector<DimSpec>> dims = parseShape(text.substr(equals + 1));
  if (!dims.ok())
    return absl::InvalidArgumentError(absl::StrCat("--input ", spec.name, ": ", dims.status().message()));
  spec.dims = *std::move(dims);
  return spec;
}

absl::StatusOr<EntrySpec> parseEntry(const std::string &text) {
  EntrySpec spec;
  size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    return absl::InvalidArgumentError(absl::StrCat("--entry '", text, "': expected NAME=FETCHES[/TARGETS]"));
  spec.name = text.substr(0, equals);
  // Node names hold slashes too: targets begin at a leading '/' or at the first '/' right behind a ":N".
  std::string list = text.substr(equals + 1), fetches = list, targets;
  for (size_t i = 0; i < list.size(); ++i) {
    size_t digits = i;
    while (digits > 0 && list[digits - 1] >= '0' && list[digits - 1] <= '9')
      --digits;
    if (list[i] == '/' && (i == 0 || (digits < i && digits > 0 && list[digits - 1] == ':'))) {
      fetches = list.substr(0, i);
      targets = list.substr(i + 1);
      break;
    }
  }
  spec.fetches = absl::StrSplit(fetches, ',', absl::SkipEmpty());
  spec.targets = absl::StrSplit(targets, ',', absl::SkipEmpty());
  if (spec.fetches.empty() && spec.targets.empty())
    return absl::InvalidArgumentError(absl::StrCat("--entry '", text, "': names no fetch and no target"));
  return spec;
}

template <typename T>
static absl::Status setNumber(const std::string &name, const std::string &value, int64_t least, int64_t most, T &number) {
  int64_t n = 0;
  if (!absl::SimpleAtoi(value, &n) || n < least || n > most)
    return absl::InvalidArgumentError(absl::StrCat("--", name, " '", value, "': expected a number from ", least, " to ", most));
  number = static_cast<T>(n);
  return absl::OkStatus();
}

static absl::Status setAmong(const std::string &name, const std::string &value, std::initializer_list<const char *> known,
                             std::string &text) {
  for (const char *k : known)
    if (value == k) {
      text = value;
      return absl::OkStatus();
    }
  return absl::InvalidArgumentError(absl::StrCat("--", name, " '", value, "': expected ", absl::StrJoin(known, " or ")));
}

absl::Status setOption(CompilerOptions &o, const std::string &name, const std::string &value) {
  const std::pair<const char *, std::string *> texts[] = {
      {"signature", &o.signature},       {"tag", &o.tag},         {"triple", &o.triple},          {"cpu", &o.cpu},          {"class", &o.className},
      {"symbol-prefix", &o.symbolPrefix}, {"weights", &o.weights}, {"tune-cache", &o.tuneCache}, {"dump-dir", &o.dumpDir},
      {"backend", &o.backend},           {"target", &o.backend},    {"quantize-report", &o.quantize.report}};
  for (auto &[known, text] : texts)
    if (name == known) {
      *text = value;
      return absl::OkStatus();
    }
  const std::pair<const char *, bool *> flags[] = {{"keep-variables", &o.keepVariables}, {"exact", &o.exact}, {"allow-host", &o.allowHost},
                                                   {"unknown-leading", &o.unknownLeading}, {"keep-faster", &o.quantize.keepFaster},
                                                   {"profile", &o.profile}};
  bool no = false;
  for (auto &[known, flag] : flags)
    if (name == known)
      return setNumber(name, value, 0, 1, *flag);
  if (name == "no-fuse") {
    absl::Status s = setNumber(name, value, 0, 1, no);
    o.fuse = !no;
    return s;
  }
  if (name == "quantize")
    return setAmong(name, value, {"int8", "int16x8", "dynamic", "float16"}, o.quantize.kind);
  if (name == "io")
    return setAmong(name, value, {"float", "int8", "uint8"}, o.quantize.io);
  if (name == "quantized-math")
    return setAmong(name, value, {"tflite", "fast"}, o.quantize.math);
  if (name == "observer")
    return setAmong(name, value, {"minmax", "average", "percentile", "entropy"}, o.quantize.observer);
  if (name == "arch" || name == "cubin") {
    for (absl::string_view one : absl::StrSplit(value, ',', absl::SkipEmpty()))
      (name == "arch" ? o.archs : o.cubins).emplace_back(one);
    return absl::OkStatus();
  }
  if (name == "calibrate") {
    o.quantize.calibrate.push_back(value);
    return absl::OkStatus();
  }
  if (name == "max-error")
    return absl::SimpleAtod(value, &o.quantize.maxError) && o.quantize.maxError >= 0 && o.quantize.maxError < 1e30
               ? absl::OkStatus()
               : absl::InvalidArgumentError(absl::StrCat("--max-error '", value, "': expected a number that is not negative"));
  constexpr int64_t most = int64_t(1) << 60;
  if (name == "threads")
    return setNumber(name, value, 1, 1024, o.threads);
  if (name == "max-memory")
    return setNumber(name, value, 1, most, o.maxMemory);
  if (name == "max-fold-bytes")
    return setNumber(name, value, 0, most, o.maxFoldBytes);
  if (name == "precision")
    return setAmong(name, value, {"f32", "bf16", "tf32"}, o.precision);
  if (name == "sanitize")
    return setAmong(name, value, {"address"}, o.sanitize);
  if (name == "output") {
    o.outputs.push_back(value);
    return absl::OkStatus();
  }
  if (name == "input") {
    absl::StatusOr<InputSpec> input = parseInput(value);
    if (input.ok())
      o.inputs.push_back(*std::move(input));
    return input.status();
  }
  if (name == "entry") {
    absl::StatusOr<EntrySpec> entry = parseEntry(value);
    if (entry.ok())
      o.entries.push_back(*std::move(entry));
    o.keepVariables |= entry.ok();
    return entry.status();
  }
  return absl::InvalidArgumentError(absl::StrCat("there is no option --", name));
}

RecordedOptions recordOptions(const CompilerOptions &o) {
  auto flag = [](bool b) -> std::string { return b ? "1" : "0"; };
  return {{"backend", o.backend.empty() ? codegen::backends().front().name.str() : o.backend},
          {"triple", o.triple},
          {"cpu", fullCpuName(o.cpu)},
          {"features", o.features},
          {"threads", std::to_string(o.threads)},
          {"exact", flag(o.exact)},
          {"no-fuse", flag(!o.fuse)},
          {"precision", o.precision},
          {"quantized-math", o.quantize.math},
          {"arch", absl::StrJoin(o.archs, ",")},
          {"cubin", absl::StrJoin(o.cubins, ",")},
          {"sanitize", o.sanitize},
          {"weights", o.weights == "embed" ? "embed" : "file"},
          {"profile", flag(o.profile)},
          {"opt-level", std::to_string(o.optLevel)}};
}

absl::Status restoreOptions(const RecordedOptions &recorded, CompilerOptions &o) {
  const RecordedOptions given = recordOptions(o), usual = recordOptions(CompilerOptions());
  for (const auto &[name, value] : recorded) {
    size_t i = 0;
    while (i < given.size() && given[i].first != name)
      ++i;
    if (i == given.size())
      return absl::InvalidArgumentError(absl::StrCat("the module was compiled with an unknown option '", name, "'"));
    if (given[i].second != usual[i].second && given[i].second != value)
      return absl::InvalidArgumentError(
          absl::StrCat("--", name, ": the module was compiled with '", value, "' and goes on with that"));
    absl::Status set = absl::OkStatus();
    if (name == "features")
      o.features = value;
    else if (name == "profile")
      set = setNumber(name, value, 0, 1, o.profile);
    else if (name == "opt-level")
      set = setNumber(name, value, 0, 3, o.optLevel);
    else if (name == "weights")
      set = value == "file" && o.weights == "embed"
                ? absl::InvalidArgumentError("--weights FILE: the module was compiled for weights in a file of their own; name it")
                : absl::OkStatus();
    else if (name == "arch" || name == "cubin")
      (name == "arch" ? o.archs : o.cubins) = absl::StrSplit(value, ',', absl::SkipEmpty());
    else if (!value.empty()) // the rest are options of the command line
      set = setOption(o, name, value);
    if (!set.ok())
      return set;
  }
  return absl::OkStatus();
}

absl::Status checkOptions(const CompilerOptions &options) {
  const QuantizeOptions &q = options.quantize;
  auto expected = [](absl::string_view text) { return absl::InvalidArgumentError(text); };
  if (q.kind.empty() && (!q.calibrate.empty() || q.io != "float" || q.maxError >= 0 || q.keepFaster || !q.report.empty()))
    return expected("--calibrate, --io, --max-error, --keep-faster and --quantize-report: expected --quantize KIND as well");
  const bool weightsOnly = quantize::isWeightsOnly(q.kind), ofActivations = !q.kind.empty() && !weightsOnly;
  if (weightsOnly && q.keepFaster)
    return expected("--keep-faster: expected --quantize int8 or int16x8");
  if (weightsOnly && q.maxError >= 0 && q.calibrate.empty())
    return expected("--max-error: expected --calibrate FEEDS.npz as well");
  if (q.io != "float" && q.kind != "int8")
    return expected(absl::StrCat("--io ", q.io, ": expected --quantize int8"));
  if (q.observer != "minmax" && (!ofActivations || q.calibrate.empty()))
    return expected(absl::StrCat("--observer ", q.observer, ": expected --quantize int8 or int16x8, and --calibrate FEEDS.npz"));
  return absl::OkStatus();
}

} // namespace lathe
