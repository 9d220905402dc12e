// The table of a quantization, for people and programs.
#include "compiler/quantize/Quantize.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>

namespace lathe::quantize {

double Report::share() const {
  int64_t all = 0, integers = 0;
  for (const UnitReport &u : units) {
    all += u.multiplyAdds;
    integers += u.quantized ? u.multiplyAdds : 0;
  }
  return all ? double(integers) / double(all) : 1;
}

static std::string decibelText(double v) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (std::isnan(v))
    os << "-";
  else if (std::isinf(v))
    os << (v > 0 ? "exact" : "-inf");
  else
    os << llvm::format("%.1f", v);
  return text;
}

static std::string timeText(double seconds) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (std::isnan(seconds))
    os << "-";
  else
    os << llvm::format("%.1f", seconds * 1e6);
  return text;
}

static std::string errorText(double v) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (std::isnan(v))
    os << "-";
  else
    os << llvm::format("%.2g", v);
  return text;
}

/// A line for each output.
static std::string outputText(llvm::ArrayRef<OutputReport> outputs) {
  std::string all;
  llvm::raw_string_ostream os(all);
  for (const OutputReport &o : outputs) {
    if (o.exact)
      os << llvm::format("output '%s': %.3g of its elements differ\n", o.name.c_str(), o.largestError);
    else
      os << llvm::format("output '%s': largest error %.3g of its range, 99 of 100 inputs below %.3g (%s), SQNR %s\n", o.name.c_str(),
                         o.largestError, o.likelyError, o.law.c_str(), (decibelText(o.sqnr) + (std::isfinite(o.sqnr) ? " dB" : "")).c_str());
  }
  return all;
}

std::string Report::text() const {
  std::string all;
  llvm::raw_string_ostream os(all);
  if (units.empty()) { // weights alone were narrowed
    if (heldOut)
      os << llvm::format("%s: errors over %lld feeds\n", kind.c_str(), (long long)heldOut);
    else
      os << kind << ": nothing was measured, without --calibrate\n";
    return all + outputText(outputs);
  }
  constexpr size_t most = 60; // of a longer name its end tells more; the JSON has all of it
  auto shown = [&](const std::string &node) { return node.size() > most ? "..." + node.substr(node.size() - most + 3) : node; };
  size_t width = 4;
  for (const UnitReport &u : units)
    width = std::max(width, std::min(u.node.size(), most));
  os << llvm::format("%-*s %-12s %-6s %8s %9s %12s %10s %10s %10s\n", int(width), "node", "kind", "type", "SQNR dB", "error", "multiplyadds", "bytes",
                     "us", "float us");
  for (const UnitReport &u : units)
    os << llvm::format("%-*s %-12s %-6s %8s %9s %12lld %10lld %10s %10s\n", int(width), shown(u.node).c_str(), u.kind.c_str(), u.quantized ? "int" : "float",
                       decibelText(u.sqnr).c_str(), errorText(u.largestError).c_str(), (long long)u.multiplyAdds, (long long)u.bytes, timeText(u.seconds).c_str(),
                       timeText(u.floatSeconds).c_str());
  int64_t before = 0, after = 0;
  for (const UnitReport &u : units) {
    before += u.floatBytes;
    after += u.bytes;
  }
  os << llvm::format("%s: %.1f %% of the multiply-adds in integers, weights %.2f MB instead of %.2f MB; ", kind.c_str(), 100 * share(), double(after) / 1e6,
                     double(before) / 1e6);
  if (feeds == 0) {
    os << "by the ranges that the model says, nothing was measured\n";
    return all;
  }
  os << llvm::format("errors over %lld of %lld feeds\n", (long long)heldOut, (long long)feeds);
  os << llvm::format("a feed that was left out leaves %.2g %% of the ranges\n", 100 * outside);
  if (unreached)
    os << llvm::format("no feed comes to %lld nodes, in branches or loops, which stay float\n", (long long)unreached);
  if (seconds > 0)
    os << llvm::format("kernels on this machine, one thread: %.1f us, float %.1f us\n", seconds * 1e6, floatSeconds * 1e6);
  if (trials.size() > 1) {
    os << "tried, as nodes kept float and what 99 of 100 inputs stay below:";
    for (const Trial &t : trials)
      os << llvm::format(" %lld: %.3g", (long long)t.kept, t.likelyError);
    os << "\n";
  }
  return all + outputText(outputs);
}

std::string Report::json() const {
  auto number = [](double v) { return std::isfinite(v) ? llvm::json::Value(v) : llvm::json::Value(nullptr); };
  llvm::json::Array nodes, results;
  for (const UnitReport &u : units)
    nodes.push_back(llvm::json::Object{{"node", u.node},
                                       {"kind", u.kind},
                                       {"quantized", u.quantized},
                                       {"sqnr_db", number(u.sqnr)},
                                       {"largest_error", number(u.largestError)},
                                       {"multiply_adds", u.multiplyAdds},
                                       {"float_bytes", u.floatBytes},
                                       {"seconds", number(u.seconds)},
                                       {"float_seconds", number(u.floatSeconds)},
                                       {"bytes", u.bytes}});
  for (const OutputReport &o : outputs) {
    llvm::json::Object line{{"name", o.name}};
    if (o.exact) {
      line["differ"] = o.largestError;
    } else {
      line["largest_error"] = number(o.largestError);
      line["likely_error"] = number(o.likelyError);
      line["likely_error_from"] = o.law;
      line["sqnr_db"] = number(o.sqnr);
    }
    results.push_back(std::move(line));
  }
  llvm::json::Array tried;
  for (const Trial &t : trials)
    tried.push_back(llvm::json::Object{{"kept", t.kept}, {"largest_error", number(t.largestError)}, {"likely_error", number(t.likelyError)}});
  std::string text;
  llvm::raw_string_ostream(text) << llvm::json::Value(llvm::json::Object{
      {"kind", kind}, {"nodes", std::move(nodes)}, {"outputs", std::move(results)}, {"integer_share", share()}, {"feeds", feeds},
      {"held_out", heldOut}, {"outside", outside}, {"unreached", unreached}, {"seconds", seconds}, {"float_seconds", floatSeconds},
      {"trials", std::move(tried)}});
  return text;
}

} // namespace lathe::quantize
