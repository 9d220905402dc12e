#include "Targets.h"

#include "Mutator.h"

#include "base/Crc32c.h"
#include "base/TensorBundle.h"
#include "compiler/import/Import.h"
#include "compiler/support/Diagnostics.h"
#include "dialects/graph/Graph.h"

#include "google/protobuf/stubs/logging.h"
#include "google/protobuf/text_format.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

namespace pb = google::protobuf;

namespace lathe::fuzz {
namespace {

constexpr size_t largestInput = 1 << 20;

/// A context for the next input. Making one takes longer than most inputs do, and what it uniques is never freed: a new one
/// now and then.
mlir::MLIRContext *nextContext() {
  static std::unique_ptr<mlir::MLIRContext> context;
  static int runs = 0;
  if (runs++ % contextInputs == 0) {
    context = std::make_unique<mlir::MLIRContext>(mlir::MLIRContext::Threading::DISABLED);
    context->loadDialect<graph::GraphDialect>();
    context->printOpOnDiagnostic(false);
  }
  return context.get();
}

void importAndCheck(std::string_view bytes, const char *name) {
  mlir::MLIRContext *context = nextContext();
  CollectedDiagnostics diagnostics(*context);
  auto model = importModelBytes(context, llvm::StringRef(bytes.data(), bytes.size()), name, smallOptions());
  if (failed(model))
    return expect(!diagnostics.errors().empty(), "import failed without a message");
  expect(succeeded(mlir::verify(*model->module)), "import made an invalid module");
}

void runGraphDef(std::string_view bytes) { importAndCheck(bytes, "graph.pb"); }
void runText(std::string_view bytes) { importAndCheck(bytes, "graph.pbtxt"); }

/// A folder of this process in memory.
const std::string &scratchFolder() {
  static const std::string folder = [] {
    std::string base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    std::string f = base + "/lathe-fuzz-" + std::to_string(getpid());
    mkdir(f.c_str(), 0700);
    mkdir((f + "/variables").c_str(), 0700);
    static std::string toRemove;
    toRemove = f;
    atexit([] {
      for (const char *name : {"/saved_model.pb", "/variables/variables.index", "/variables/variables.data-00000-of-00001"})
        unlink((toRemove + name).c_str());
      rmdir((toRemove + "/variables").c_str());
      rmdir(toRemove.c_str());
    });
    return f;
  }();
  return folder;
}

struct Folder {
  std::string parts[3];
};

Folder unpack(std::string_view bytes) {
  Folder f;
  uint32_t lengths[2] = {0, 0};
  if (bytes.size() >= 8) {
    memcpy(lengths, bytes.data(), 8);
    bytes.remove_prefix(8);
  }
  for (int i = 0; i < 2; ++i) {
    size_t n = std::min<size_t>(lengths[i], bytes.size());
    f.parts[i] = std::string(bytes.substr(0, n));
    bytes.remove_prefix(n);
  }
  f.parts[2] = std::string(bytes);
  return f;
}

void writeFolder(const Folder &f) {
  auto write = [](const std::string &name, const std::string &content) {
    std::ofstream(scratchFolder() + name, std::ios::binary) << content;
  };
  write("/saved_model.pb", f.parts[0]);
  write("/variables/variables.index", f.parts[1]);
  write("/variables/variables.data-00000-of-00001", f.parts[2]);
}

void runSavedModel(std::string_view bytes) {
  writeFolder(unpack(bytes));
  mlir::MLIRContext *context = nextContext();
  CollectedDiagnostics diagnostics(*context);
  (void)readSignatures(context, scratchFolder(), smallOptions());
  size_t before = diagnostics.errors().size();
  auto model = importModel(context, scratchFolder(), smallOptions());
  if (failed(model))
    return expect(diagnostics.errors().size() > before, "import failed without a message");
  expect(succeeded(mlir::verify(*model->module)), "import made an invalid module");
}

void runTable(std::string_view bytes) {
  writeFolder(unpack(bytes));
  auto reader = TensorBundleReader::open(scratchFolder() + "/variables/variables", 1 << 24);
  if (!reader.ok())
    return;
  int read = 0;
  for (const auto &[name, entry] : (*reader)->entries())
    if (++read <= 64)
      (void)(*reader)->read(name);
}

//===----------------------------------------------------------------------===//
// Mutators
//===----------------------------------------------------------------------===//

template <typename M>
bool mutateMessage(std::string &bytes, Mutator &m) {
  M message;
  pb::LogSilencer silence;
  if (bytes.size() > largestInput || !message.ParsePartialFromString(bytes))
    return false;
  m.mutate(message);
  bytes = message.SerializePartialAsString();
  return true;
}

void mutateGraph(std::string &bytes, uint32_t seed) {
  Mutator m(seed);
  if (!m.below(20) || !mutateMessage<tf::GraphDef>(bytes, m))
    m.mutateBytes(bytes);
}

void mutateText(std::string &bytes, uint32_t seed) {
  Mutator m(seed);
  tf::GraphDef graph;
  pb::LogSilencer silence;
  if (m.below(2) && pb::TextFormat::ParseFromString(bytes, &graph)) {
    m.mutate(graph);
    pb::TextFormat::PrintToString(graph, &bytes);
    return;
  }
  m.mutateBytes(bytes);
}

/// Checksums of the blocks of a table made right again, so that a change is seen by what reads the blocks.
void repairTable(std::string &table) {
  if (table.size() < 48)
    return;
  auto varint = [&](size_t &at, uint64_t &v) {
    v = 0;
    for (int shift = 0; shift < 64 && at < table.size(); shift += 7) {
      uint8_t byte = static_cast<uint8_t>(table[at++]);
      v |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80)
        return true;
    }
    return false;
  };
  auto repair = [&](uint64_t offset, uint64_t size) {
    if (offset > table.size() || table.size() - offset < 5 || size > table.size() - offset - 5)
      return;
    uint32_t crc = crc32cMask(crc32c(table.data() + offset, size + 1));
    memcpy(table.data() + offset + size + 1, &crc, 4);
  };
  size_t at = table.size() - 48;
  uint64_t offset, size, metaOffset, metaSize;
  if (!varint(at, metaOffset) || !varint(at, metaSize) || !varint(at, offset) || !varint(at, size))
    return;
  // the entries of the index block are handles of the others
  size_t entry = offset;
  while (entry < table.size() && entry < offset + size) {
    uint64_t shared, rest, length, o, s;
    if (!varint(entry, shared) || !varint(entry, rest) || !varint(entry, length) || rest > table.size() || entry + rest > table.size())
      break;
    entry += rest;
    size_t handle = entry;
    if (varint(handle, o) && varint(handle, s))
      repair(o, s);
    if (length > table.size())
      break;
    entry += length;
  }
  repair(offset, size);
}

void mutateFolder(std::string &bytes, uint32_t seed) {
  Mutator m(seed);
  Folder f = unpack(bytes);
  switch (m.below(4)) {
  case 0:
    m.mutateBytes(f.parts[1]);
    if (m.below(4))
      repairTable(f.parts[1]);
    break;
  case 1:
    m.mutateBytes(f.parts[m.below(8) ? 2 : 0]);
    break;
  default:
    if (!mutateMessage<tf::SavedModel>(f.parts[0], m))
      m.mutateBytes(f.parts[0]);
    break;
  }
  bytes = packFolder(f.parts[0], f.parts[1], f.parts[2]);
}

void mutateTable(std::string &bytes, uint32_t seed) {
  Mutator m(seed);
  Folder f = unpack(bytes);
  m.mutateBytes(f.parts[m.below(4) ? 1 : 2]);
  if (m.below(8))
    repairTable(f.parts[1]);
  bytes = packFolder("", f.parts[1], f.parts[2]);
}

} // namespace

std::string packFolder(std::string_view model, std::string_view index, std::string_view data) {
  uint32_t lengths[2] = {static_cast<uint32_t>(model.size()), static_cast<uint32_t>(index.size())};
  std::string out(reinterpret_cast<const char *>(lengths), 8);
  out.append(model).append(index).append(data);
  return out;
}

void expect(bool ok, const char *what) {
  if (ok)
    return;
  fprintf(stderr, "fuzz: %s\n", what);
  abort();
}

ImportOptions smallOptions() {
  ImportOptions options;
  options.maxBytes = 16 << 20;
  options.maxNodes = 20000;
  return options;
}

const Target graphdef = {"graphdef", runGraphDef, mutateGraph}, saved_model = {"saved_model", runSavedModel, mutateFolder},
             text = {"text", runText, mutateText}, table = {"table", runTable, mutateTable};

} // namespace lathe::fuzz
