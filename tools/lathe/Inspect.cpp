// lathe inspect: what a model or an artifact holds: signature, parameters, and the work of every operation.
#include "tools/lathe/InspectClusters.h"
#include "tools/lathe/Session.h"

#include "compiler/driver/Cost.h"
#include "compiler/frontend/tflite/Listing.h"
#include "compiler/support/Diagnostics.h"
#include "dialects/graph/Types.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>

namespace lathe::cli {
namespace {

struct InspectArgs {
  ModelArgs model;
  std::string html;
  bool json = false, operators = false, device = false;
  int top = 30;
};

struct Row {
  std::string node, op;
  Cost cost;
};

std::string infoText(const lathe_tensor_info &t) {
  std::string s = std::string(t.name) + "  " + t.tensor + "  " + dtypeName(static_cast<DType>(t.dtype)) + "[";
  for (int i = 0; i < t.rank; ++i)
    s += (i ? "," : "") + (t.dims[i] >= 0 ? std::to_string(t.dims[i]) : std::string("?"));
  return s + "]";
}

/// "  scale 0.5  zero point -128" of a quantized tensor, else nothing.
std::string quantizationText(const TensorSpec &t) {
  if (t.scales.empty())
    return "";
  if (t.scales.size() > 1)
    return "  " + std::to_string(t.scales.size()) + " scales along dimension " + std::to_string(t.quantizedDim);
  char text[96];
  snprintf(text, sizeof text, "  scale %.9g  zero point %lld", t.scales[0], (long long)t.zeroPoints[0]);
  return text;
}

nlohmann::json signatureJson(const std::vector<TensorSpec> &tensors) {
  nlohmann::json list = nlohmann::json::array();
  for (const TensorSpec &t : tensors) {
    nlohmann::json j = {{"name", t.name}, {"tensor", t.tensor}, {"dtype", dtypeName(t.dtype)}};
    if (t.dims)
      j["dims"] = *t.dims;
    if (!t.scales.empty()) {
      j["scales"] = t.scales;
      j["zero_points"] = t.zeroPoints;
      if (t.scales.size() > 1)
        j["quantized_dimension"] = t.quantizedDim;
    }
    list.push_back(std::move(j));
  }
  return list;
}

int inspectLibrary(const std::string &path) {
  auto loaded = loadSharedLibrary(path);
  if (!loaded)
    return fail(loaded.takeError());
  const lathe_module &m = (*loaded)->abi();
  printf("module %s  (%s, %s)\nconstants %.2f MB\n", m.name, m.producer, m.target, m.constants_size / 1e6);
  for (int k = 0; k < m.num_entries; ++k) {
    const lathe_entry &e = *m.entries[k];
    printf("entry %s\n", e.name);
    for (int i = 0; i < e.num_inputs; ++i)
      printf("  input  %s\n", infoText(*e.inputs[i]).c_str());
    for (int i = 0; i < e.num_outputs; ++i)
      printf("  output %s\n", infoText(*e.outputs[i]).c_str());
  }
  for (int i = 0; i < m.num_variables; ++i)
    printf("variable %s\n", infoText(*m.variables[i]->tensor).c_str());
  return Fine;
}

/// Kernels of the model compiled as a whole (when it compiles so), and the clusters of a session.
bool writeHtml(const std::string &path, const std::string &model, bool compiles, const std::vector<Row> &rows, const Cost &total,
               const ClusterReport &clusters) {
  std::error_code error;
  llvm::raw_fd_ostream os(path, error);
  if (error) {
    fail("cannot write " + path + ": " + error.message());
    return false;
  }
  os << "<!doctype html><meta charset=\"utf-8\"><title>" << escapeHtml(model) << "</title>\n"
     << "<style>body{font:14px sans-serif;margin:2em}table{border-collapse:collapse}td,th{padding:.2em .8em;text-align:left;"
        "border-bottom:1px solid #ddd}td.n{text-align:right}.bar{background:#4a7;height:.8em}</style>\n"
     << "<h1>" << escapeHtml(model) << "</h1>\n";
  if (!compiles)
    os << "<p>The model does not compile as a whole: it runs in a session.</p>\n";
  else
    os << "<p>" << rows.size() << " kernels, "
     << llvm::format("%.3f", total.flops / 1e9) << " GFLOP, " << llvm::format("%.2f", total.bytes / 1e6)
     << " MB moved</p>\n<table><tr><th>kernel<th>nodes<th>MFLOP<th>MB<th>share of FLOPs</tr>\n";
  for (const Row &r : rows)
    os << "<tr><td>" << escapeHtml(r.op) << "<td>" << escapeHtml(r.node) << "<td class=n>"
       << llvm::format("%.3f", r.cost.flops / 1e6) << "<td class=n>" << llvm::format("%.3f", r.cost.bytes / 1e6)
       << "<td><div class=bar style=\"width:" << int(200.0 * r.cost.flops / std::max<int64_t>(1, total.flops))
       << "px\"></div></tr>\n";
  if (compiles)
    os << "</table>\n";
  writeClusters(os, clusters);
  return true;
}

/// What a TensorFlow Lite file holds, whether or not all of it compiles.
int listOperators(const ModelArgs &model) {
  if (frontendOfFile(model.options.model).name() != "TensorFlow Lite")
    return fail("--operators: only for TensorFlow Lite files");
  auto file = llvm::MemoryBuffer::getFile(model.options.model, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!file)
    return fail("cannot read " + model.options.model + ": " + file.getError().message());
  std::unique_ptr<mlir::MLIRContext> context = makeContext();
  auto text = tflite::listOperators(context.get(), (*file)->getBuffer(), model.options.model);
  if (mlir::failed(text))
    return BadInput;
  printf("%s", text->c_str());
  return Fine;
}

/// The kernels of each image that is text, as a device is given them.
int listDeviceCode(InspectArgs &a) {
  CompilerOptions &options = a.model.options;
  if (!codegen::launchesKernels(options.backend))
    return fail("--device: the kernels of this backend are not launched on a device; see --backend cuda");
  options.profile = true; // which nodes each kernel computes
  std::unique_ptr<mlir::MLIRContext> context = makeContext();
  Compiler compiler(*context, options);
  useQuantizing(compiler);
  if (mlir::failed(compiler.import()))
    return BadInput;
  auto artifact = compiler.emit({});
  if (!artifact)
    return fail(artifact.takeError());
  if (!tellQuantized(compiler))
    return BadInput;
  std::map<std::string, std::string> nodes; // of a kernel that is called for several, all
  for (const auto &[kernel, computed] : artifact->steps) {
    std::string &text = nodes[kernel];
    text += (text.empty() ? "" : " | ") + computed;
  }
  std::unique_ptr<codegen::Backend> backend = codegen::makeBackend(options.backend, {});
  nlohmann::json images = nlohmann::json::array();
  for (const codegen::Image &image : artifact->deviceCode) {
    nlohmann::json one = {{"target", image.target}, {"kind", image.machineCode ? "cubin" : "ptx"}, {"bytes", image.code.size()}};
    if (!a.json)
      printf("%s for %s, %zu bytes\n", image.machineCode ? "machine code" : "PTX", image.target.c_str(), image.code.size());
    std::vector<codegen::KernelFacts> kernels = image.machineCode ? std::vector<codegen::KernelFacts>() : backend->kernelFacts(image);
    if (!a.json && !kernels.empty())
      printf("%8s %8s %9s %8s  kernel: nodes\n", "threads", "shared", "registers", "spilled");
    for (const codegen::KernelFacts &k : kernels) {
      const bool known = k.registers >= 0;
      one["kernels"].push_back({{"name", k.name}, {"threads", k.threads}, {"shared", k.shared}, {"nodes", nodes[k.name]}});
      if (known)
        one["kernels"].back().update({{"registers", k.registers}, {"spilled", k.spilled}});
      if (!a.json)
        printf("%8d %8lld %9s %8s  %s: %s\n", k.threads, (long long)k.shared, known ? std::to_string(k.registers).c_str() : "?",
               known ? std::to_string(k.spilled).c_str() : "?", k.name.c_str(), nodes[k.name].c_str());
    }
    images.push_back(std::move(one));
  }
  if (a.json)
    printf("%s\n", nlohmann::json{{"images", images}, {"constant_bytes", artifact->report.constantBytes}}.dump().c_str());
  return Fine;
}

int execute(InspectArgs &a) {
  if (!a.model.finish())
    return BadInput;
  if (a.model.isLibrary())
    return inspectLibrary(a.model.options.model);
  if (a.operators)
    return listOperators(a.model);
  if (a.device)
    return listDeviceCode(a);
  std::string errors, problem;
  llvm::raw_string_ostream text(errors);
  std::unique_ptr<mlir::MLIRContext> context = makeContext(&text);
  Compiler compiler(*context, a.model.options);
  useQuantizing(compiler);
  bool compiles = succeeded(compiler.import()) && succeeded(compiler.runUntil(Phase::Fuse));
  text.flush();
  if (!compiles && !a.model.options.quantize.kind.empty()) { // sessions quantize nothing
    llvm::errs() << errors;
    return BadInput;
  }
  if (!tellQuantized(compiler))
    return BadInput;
  ClusterReport clusters;
  bool isGraph = frontendOfFile(a.model.options.model).entersAfter() == Phase::Import;
  if (!isGraph && !compiles) {
    llvm::errs() << errors;
    return BadInput;
  }
  bool clustered = !isGraph || (compiles && a.html.empty() && !a.json) || findClusters(a.model, clusters, problem);
  if (!compiles && (!clustered || clusters.clusters.size() + clusters.refusals.size() == 0)) {
    llvm::errs() << errors;
    return BadInput;
  }
  if (!clustered)
    return fail(problem);
  if (!compiles) {
    if (a.json)
      printf("%s\n", clustersJson(clusters).dump().c_str());
    else
      printf("does not compile as a whole; in a session: %zu clusters, %zu nodes outside\n", clusters.clusters.size(),
             clusters.refusals.size());
    return a.html.empty() || writeHtml(a.html, a.model.options.model, false, {}, {}, clusters) ? Fine : BadInput;
  }
  std::vector<Row> rows;
  Cost total;
  for (const OpCost &c : moduleCosts(compiler.module())) {
    rows.push_back({graph::getNodeName(c.op->getLoc()).str(), c.op->getName().getStringRef().str(), c.cost});
    total.flops += c.cost.flops;
    total.bytes += c.cost.bytes;
  }
  int64_t parameters = parameterCount(compiler.module());
  if (a.json) {
    nlohmann::json j = {{"parameters", parameters}, {"flops", total.flops}, {"bytes", total.bytes}};
    j["kernels"] = nlohmann::json::array();
    for (const Row &r : rows)
      j["kernels"].push_back({{"node", r.node}, {"op", r.op}, {"flops", r.cost.flops}, {"bytes", r.cost.bytes}});
    for (const auto &entry : compiler.model().entries)
      j["entries"].push_back({{"name", entry.name}, {"inputs", signatureJson(entry.inputs)}, {"outputs", signatureJson(entry.outputs)}});
    j.update(clustersJson(clusters));
    printf("%s\n", j.dump().c_str());
  } else {
    for (const auto &entry : compiler.model().entries) {
      printf("entry %s\n", entry.name.c_str());
      for (const TensorSpec &t : entry.inputs)
        printf("  input  %s  %s  %s%s\n", t.name.c_str(), t.tensor.c_str(), dtypeName(t.dtype), quantizationText(t).c_str());
      for (const TensorSpec &t : entry.outputs)
        printf("  output %s  %s  %s%s\n", t.name.c_str(), t.tensor.c_str(), dtypeName(t.dtype), quantizationText(t).c_str());
    }
    printf("%lld parameters, %.3f GFLOP, %.2f MB moved, %zu kernels; unknown sizes count as 1\n", (long long)parameters,
           total.flops / 1e9, total.bytes / 1e6, rows.size());
    std::vector<Row> sorted = rows;
    std::stable_sort(sorted.begin(), sorted.end(), [](const Row &x, const Row &y) { return x.cost.flops > y.cost.flops; });
    for (size_t i = 0; i < sorted.size() && i < size_t(a.top); ++i)
      printf("%10.3f MFLOP %9.3f MB  %-20s %s\n", sorted[i].cost.flops / 1e6, sorted[i].cost.bytes / 1e6,
             sorted[i].op.c_str(), sorted[i].node.c_str());
  }
  return a.html.empty() || writeHtml(a.html, a.model.options.model, true, rows, total, clusters) ? Fine : BadInput;
}

} // namespace

Command addInspect(CLI::App &root) {
  auto a = std::make_shared<InspectArgs>();
  CLI::App *app = root.add_subcommand("inspect", "Show inputs, outputs, parameters and the work of each kernel");
  a->model.add(*app, "host", "A model, or a .so that lathe compile made");
  app->add_option("--html", a->html, "Write a page with every kernel, and with the clusters of a session")->type_name("FILE");
  app->add_flag("--json", a->json, "Print a JSON object");
  app->add_flag("--operators", a->operators, "Print the operators of a TensorFlow Lite file, subgraph by subgraph");
  app->add_flag("--device", a->device,
                "With --backend cuda: print the kernels as a device gets them, the nodes that each computes, and its registers where "
                "ptxas is found");
  app->add_option("--top", a->top, "How many kernels to list")->check(nonNegative)->capture_default_str();
  return [a] { return execute(*a); };
}

} // namespace lathe::cli
