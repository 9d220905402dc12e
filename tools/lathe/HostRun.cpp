#include "tools/lathe/HostRun.h"
#include "tools/lathe/Device.h"

#include "compiler/frontend/Frontend.h"
#include "compiler/jit/ClusterCompiler.h"
#include "proto/graph.pb.h"
#include "runtime/session/SavedModel.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

namespace lathe::cli {

bool isForSession(const std::string &model, const std::string &message) {
  if (frontendOfFile(model).entersAfter() != Phase::Import)
    return false; // no graph
  return message.find("no compiled form") != std::string::npos || message.find("host op") != std::string::npos;
}

namespace {

/// Prints the message, or keeps it in `why`.
int fail(const std::string &message, std::string *why) {
  if (!why)
    return cli::fail(message);
  *why = message;
  return BadInput;
}
int fail(const absl::Status &status, std::string *why) { return fail(std::string(status.message()), why); }

/// Without its errors on stderr: the bytes may well be something else.
bool parseText(const std::string &bytes, tf::GraphDef *graph) {
  struct Quiet : google::protobuf::io::ErrorCollector {
    void AddError(int, int, const std::string &) override {}
  } quiet;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&quiet);
  parser.SetRecursionLimit(100);
  return parser.ParseFromString(bytes, graph);
}

SessionOptions sessionOptions(const ModelArgs &args) {
  SessionOptions options;
  options.compiler = getClusterCompiler();
  options.intraOpThreads = args.options.threads;
  useBackend(options, args.options.backend);
  return options;
}

int runSavedModel(const ModelArgs &args, const NamedTensors &feeds, const std::vector<std::string> &fetches,
                  const std::vector<std::string> &targets, NamedTensors *results, std::string *why) {
  SavedModelBundle bundle;
  std::string tag = args.options.tag.empty() ? "serve" : args.options.tag;
  absl::Status loaded = LoadSavedModel(sessionOptions(args), {}, args.options.model, {tag}, &bundle);
  if (!loaded.ok())
    return fail(loaded, why);
  std::string key = args.options.signature.empty() ? "serving_default" : args.options.signature;
  if (args.options.signature.empty() && !bundle.signatures.count(key) && bundle.signatures.size() == 1)
    key = bundle.signatures.begin()->first;
  auto signature = bundle.signatures.find(key);
  if (signature == bundle.signatures.end())
    return fail("there is no signature '" + key + "'", why);
  auto tensorOf = [](const std::map<std::string, SignatureTensor> &keys, const std::string &name) {
    auto it = keys.find(name);
    return it == keys.end() ? name : it->second.tensor;
  };
  Session::Feeds fed;
  for (auto &[name, value] : feeds)
    fed.emplace_back(tensorOf(signature->second.inputs, name), value);
  std::vector<std::string> names = fetches, tensors;
  if (names.empty())
    for (auto &[name, tensor] : signature->second.outputs)
      names.push_back(name);
  for (const std::string &name : names)
    tensors.push_back(tensorOf(signature->second.outputs, name));
  std::vector<Tensor> out;
  absl::Status ran = bundle.session->Run(fed, tensors, targets, &out);
  if (!ran.ok())
    return fail(ran, why);
  for (size_t i = 0; i < names.size(); ++i)
    results->emplace_back(names[i], out[i]);
  return Fine;
}

} // namespace

int runInSession(const ModelArgs &args, const NamedTensors &feeds, const std::vector<std::string> &fetches,
                 const std::vector<std::string> &targets, NamedTensors *results, std::string *why) {
  if (llvm::sys::fs::is_directory(args.options.model))
    return runSavedModel(args, feeds, fetches, targets, results, why);
  auto file = llvm::MemoryBuffer::getFile(args.options.model);
  if (!file)
    return fail("cannot read '" + args.options.model + "': " + file.getError().message(), why);
  tf::GraphDef graph;
  std::string bytes = (*file)->getBuffer().str();
  if (!graph.ParseFromString(bytes) && !parseText(bytes, &graph))
    return fail("'" + args.options.model + "' is not a GraphDef", why);
  if (fetches.empty() && targets.empty())
    return fail("the graph has host operations and runs in a session: say what to run with --fetch or --target", why);
  Session session(sessionOptions(args));
  if (absl::Status s = session.Create(graph); !s.ok())
    return fail(s, why);
  std::vector<Tensor> out;
  if (absl::Status s = session.Run(feeds, fetches, targets, &out); !s.ok())
    return fail(s, why);
  for (size_t i = 0; i < fetches.size(); ++i)
    results->emplace_back(fetches[i], out[i]);
  return Fine;
}

} // namespace lathe::cli
