// Fuzzes host kernels: parsing (Example, SequenceExample, CSV, JSON, raw), images, strings and regular expressions, sparse and
// ragged tensors, and TFRecord files. An input is the number of a case of test/runtime/goldens, then changes of its inputs and
// attributes; libFuzzer's own mutator changes both.
//   kernel-replay FILE_OR_FOLDER...       runs each file once (without libFuzzer)
//   kernel-replay --seeds FOLDER          writes an input for each case
#include "base/Crc32c.h"
#include "runtime/core/Compute.h"
#include "test/runtime/Golden.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <new>
#include <unistd.h>

using namespace lathe;
using namespace lathe::rt;

namespace {

struct Case {
  std::string op;
  AttrMap attrs;
  std::vector<Tensor> inputs;
};

/// Ops that write to the terminal, and those that make as many numbers as they are asked for, which takes its time.
bool isExcluded(const std::string &op) {
  return op == "Print" || op == "PrintV2" || op == "SobolSample" || op == "NonMaxSuppressionV5" || op.rfind("Stateful", 0) == 0 ||
         op.find("TruncatedNormal") != std::string::npos || (op.find("Random") != std::string::npos && op != "RandomShuffle");
}

const std::vector<Case> &cases() {
  static const auto *all = [] {
    auto *made = new std::vector<Case>;
    std::vector<std::filesystem::path> files;
    for (auto &entry : std::filesystem::directory_iterator(LATHE_GOLDENS))
      if (entry.path().extension() == ".json")
        files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    for (auto &path : files) {
      std::ifstream file(path);
      for (std::string line; std::getline(file, line);) {
        Json j = Json::parse(line);
        Case c;
        c.op = j["op"];
        for (auto &[name, value] : j["attrs"].items())
          c.attrs[name] = attrOfJson(value);
        int64_t elements = 0;
        for (const Json &input : j["inputs"]) {
          c.inputs.push_back(tensorOf(input));
          elements += c.inputs.back().numElements();
        }
        if (elements < 4000 && !isExcluded(c.op))
          made->push_back(std::move(c));
      }
    }
    return made;
  }();
  return *all;
}

class Bytes {
public:
  Bytes(const uint8_t *data, size_t size) : at(data), left(size) {}
  bool empty() const { return left == 0; }
  uint8_t byte() {
    if (!left)
      return 0;
    --left;
    return *at++;
  }
  uint64_t number(int bytes) {
    uint64_t v = 0;
    for (int i = 0; i < bytes; ++i)
      v |= uint64_t(byte()) << (8 * i);
    return v;
  }
  std::string text(size_t n) {
    n = std::min(n, left);
    std::string s(reinterpret_cast<const char *>(at), n);
    at += n;
    left -= n;
    return s;
  }

private:
  const uint8_t *at;
  size_t left;
};

/// Small numbers, limits of types, and any.
int64_t interesting(Bytes &in) {
  static const int64_t values[] = {0, 1, -1, 2, -2, 3, 7, 8, 16, 127, 128, -128, 255, 256, 32767, 65535, INT32_MAX, INT32_MIN, int64_t(INT32_MAX) + 1,
                                   INT64_MAX, INT64_MIN, INT64_MAX - 1, int64_t(1) << 31, int64_t(1) << 40, int64_t(1) << 62};
  uint8_t which = in.byte();
  return which < std::size(values) ? values[which] : static_cast<int64_t>(in.number(which % 8 + 1));
}

void setNumber(Tensor &t, int64_t i, int64_t v) {
  size_t size = dtypeSize(t.dtype());
  if (size == 0 || i >= t.numElements())
    return;
  if (t.dtype() == DType::Bool)
    t.data<bool>()[i] = v & 1;
  else if (t.dtype() == DType::Float32)
    t.data<float>()[i] = static_cast<float>(v);
  else if (t.dtype() == DType::Float64)
    t.data<double>()[i] = static_cast<double>(v);
  else
    std::memcpy(t.data<char>() + i * static_cast<int64_t>(size), &v, std::min<size_t>(size, 8));
}

/// The tensor under other dimensions: elements are dropped, or repeated.
Tensor resized(const Tensor &t, std::vector<int64_t> dims) {
  auto made = Tensor::tryAllocate(t.dtype(), std::move(dims), 1 << 16);
  if (!made.ok() || made->numElements() > 4096)
    return t;
  int64_t size = static_cast<int64_t>(dtypeSize(t.dtype()));
  for (int64_t i = 0; i < made->numElements() && t.numElements() > 0; ++i) {
    int64_t from = i % t.numElements();
    if (t.dtype() == DType::String)
      made->mutableStrings()[static_cast<size_t>(i)] = t.strings()[static_cast<size_t>(from)];
    else
      std::memcpy(made->data<char>() + i * size, t.data<char>() + from * size, static_cast<size_t>(size));
  }
  return *made;
}

void changeText(std::string &s, Bytes &in) {
  switch (in.byte() % 6) {
  case 0: s = in.text(in.byte()); break;
  case 1: // a byte
    if (!s.empty()) {
      size_t at = in.number(2) % s.size();
      s[at] = static_cast<char>(in.byte());
    }
    break;
  case 2: s.resize(s.empty() ? 0 : in.number(2) % s.size()); break;
  case 3: {
    size_t at = s.empty() ? 0 : in.number(2) % s.size();
    s.insert(at, in.text(in.byte() % 32));
    break;
  }
  case 4: { // a piece again
    size_t at = s.empty() ? 0 : in.number(2) % s.size();
    if (s.size() < 4096)
      s.insert(at, s.substr(in.byte() % (s.size() + 1), in.byte()));
    break;
  }
  default: // out of the middle
    if (!s.empty())
      s.erase(in.number(2) % s.size(), in.byte() % 16 + 1);
  }
}

void change(Case &c, Bytes &in) {
  uint8_t what = in.byte();
  if (what % 8 == 7) { // an attribute
    if (c.attrs.empty())
      return;
    auto it = std::next(c.attrs.begin(), in.byte() % c.attrs.size());
    if (auto *i = std::get_if<int64_t>(&it->second))
      *i = interesting(in);
    else if (auto *s = std::get_if<std::string>(&it->second))
      changeText(*s, in);
    else if (auto *b = std::get_if<bool>(&it->second))
      *b = !*b;
    else if (auto *list = std::get_if<std::vector<int64_t>>(&it->second); list && !list->empty())
      (*list)[in.byte() % list->size()] = interesting(in);
    else if (auto *shapes = std::get_if<std::vector<PartialShape>>(&it->second); shapes && !shapes->empty()) {
      PartialShape &shape = (*shapes)[in.byte() % shapes->size()];
      if (shape && !shape->empty())
        (*shape)[in.byte() % shape->size()] = interesting(in);
    } else if (auto *shape = std::get_if<PartialShape>(&it->second); shape && *shape && !(*shape)->empty())
      (**shape)[in.byte() % (*shape)->size()] = interesting(in);
    return;
  }
  if (c.inputs.empty())
    return;
  Tensor &t = c.inputs[in.byte() % c.inputs.size()];
  if (what % 8 == 6) {
    std::vector<int64_t> dims = t.dims();
    if (dims.empty() || what % 3 == 0)
      dims.insert(dims.begin(), in.byte() % 5);
    else if (what % 3 == 1)
      dims.pop_back();
    else
      dims[in.byte() % dims.size()] = in.byte() % 9;
    t = resized(t, dims);
    return;
  }
  if (t.numElements() == 0)
    return;
  int64_t at = static_cast<int64_t>(in.number(2)) % t.numElements();
  t = t.clone();
  if (t.dtype() == DType::String)
    changeText(t.mutableStrings()[static_cast<size_t>(at)], in);
  else
    setNumber(t, at, interesting(in));
}

absl::StatusOr<std::vector<Tensor>> runOp(const std::string &op, AttrMap attrs, std::vector<Tensor> inputs, ResourceManager &resources) {
  NodeInfo node;
  node.name = "node";
  node.op = op;
  node.attrs = std::move(attrs);
  if (absl::Status s = resolveNode(node); !s.ok())
    return s;
  // the executor checks arity and types
  if (node.inputTypes.size() != inputs.size())
    return absl::InvalidArgumentError("arity");
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].dtype() != node.inputTypes[i])
      return absl::InvalidArgumentError("type");
  KernelInit init(node, &resources, nullptr);
  auto kernel = makeKernel(init);
  if (!kernel.ok())
    return kernel.status();
  KernelContext context;
  context.node = &node;
  for (Tensor &t : inputs)
    context.inputs.emplace_back(std::move(t));
  context.outputs.resize(node.outputTypes.size());
  context.resources = &resources;
  ResourceManager step;
  context.stepResources = &step;
  if (absl::Status s = computeGuarded(**kernel, context); !s.ok())
    return s;
  std::vector<Tensor> out;
  for (size_t i = 0; i < context.outputs.size(); ++i) {
    const Value &v = context.outputs[i];
    out.push_back(v.ref ? v.ref->value : v.tensor);
    if (!v.ref && out.back().dtype() != node.outputTypes[i]) {
      fprintf(stderr, "fuzz: '%s' gave output %zu as %s\n", op.c_str(), i, dtypeName(out.back().dtype()));
      abort();
    }
  }
  return out;
}

/// The bytes as a file of records, with lengths and checksums right or as they are.
void runRecords(Bytes &in) {
  uint8_t how = in.byte();
  std::string rest = in.text(1 << 20), content;
  if (how & 1) {
    for (size_t at = 0; at < rest.size();) {
      uint64_t n = std::min<uint64_t>(static_cast<uint8_t>(rest[at]), rest.size() - at - 1);
      std::string record = rest.substr(at + 1, n);
      auto put = [&](const void *data, size_t size) { content.append(static_cast<const char *>(data), size); };
      uint32_t lengthCrc = crc32cMask(crc32c(reinterpret_cast<const char *>(&n), 8)), crc = crc32cMask(crc32c(record.data(), record.size()));
      put(&n, 8);
      put(&lengthCrc, 4);
      content += record;
      put(&crc, 4);
      at += n + 1;
    }
    if ((how & 6) == 6 && !content.empty())
      content.resize(content.size() - (how >> 3) % content.size());
  } else {
    content = rest;
  }
  static const std::string path = (access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp") + std::string("/lathe-kernel-fuzz-") + std::to_string(getpid());
  static const bool registered = (atexit([] { unlink(path.c_str()); }), true);
  (void)registered;
  std::ofstream(path, std::ios::binary) << content;
  static const char *kinds[] = {"", "", "ZLIB", "GZIP"};
  AttrMap types = {{"output_types", std::vector<DType>{DType::String}}, {"output_shapes", std::vector<PartialShape>(1)}};
  ResourceManager resources;
  bool fixed = (how & 0x60) == 0x60;
  auto length = [](int64_t v) { return Tensor::scalar<int64_t>(DType::Int64, v); };
  auto text = [](std::string s) { return Tensor::fromStrings({}, {std::move(s)}); };
  auto dataset = fixed ? runOp("FixedLengthRecordDataset", {}, {text(path), length(how >> 3 & 3), length((how & 7) + 1), length(how >> 1 & 3), length(0)}, resources)
                       : runOp((how & 0x80) ? "TextLineDataset" : "TFRecordDataset", {}, {text(path), text(kinds[how >> 3 & 3]), length(0)}, resources);
  if (!dataset.ok())
    return;
  auto iterator = runOp("AnonymousIteratorV3", types, {}, resources);
  if (!iterator.ok() || !runOp("MakeIterator", {}, {(*dataset)[0], (*iterator)[0]}, resources).ok())
    return;
  for (int i = 0; i < 64; ++i)
    if (!runOp("IteratorGetNext", types, {(*iterator)[0]}, resources).ok())
      return;
}

/// Whether large allocations fail.
bool inKernel = false;

void runInput(const uint8_t *data, size_t size) {
  Bytes in(data, size);
  size_t number = in.number(2);
  if (number >= 0xff00)
    return runRecords(in);
  Case c = cases()[number % cases().size()];
  for (int i = 0; i < 8 && !in.empty(); ++i)
    change(c, in);
  ResourceManager resources;
  inKernel = true;
  try {
    (void)runOp(c.op, std::move(c.attrs), std::move(c.inputs), resources);
  } catch (const std::bad_alloc &) {
    // the list of a million outputs, which the executor makes
  }
  inKernel = false;
}

} // namespace

/// Large allocations fail, as they do on a machine that has no more: nothing may depend on them. AddressSanitizer's own operators
/// would end the process instead of throwing.
static void *newBytes(size_t size) {
  constexpr size_t most = size_t(8) << 20;
  void *p = !inKernel || size <= most ? malloc(size ? size : 1) : nullptr;
  if (!p)
    throw std::bad_alloc();
  return p;
}
void *operator new(size_t size) { return newBytes(size); }
void *operator new[](size_t size) { return newBytes(size); }
void operator delete(void *p) noexcept { free(p); }
void operator delete[](void *p) noexcept { free(p); }
void operator delete(void *p, size_t) noexcept { free(p); }
void operator delete[](void *p, size_t) noexcept { free(p); }

extern "C" __attribute__((visibility("default"))) const char *__asan_default_options() {
  return "allocator_may_return_null=1:max_allocation_size_mb=32:alloc_dealloc_mismatch=0:detect_leaks=0:quarantine_size_mb=16";
}

#ifdef LATHE_LIBFUZZER
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  runInput(data, size);
  return 0;
}
#else
int main(int argc, char **argv) {
  if (argc == 3 && std::string(argv[1]) == "--seeds") {
    for (size_t i = 0; i < cases().size(); ++i) {
      std::ofstream file(std::string(argv[2]) + "/case" + std::to_string(i), std::ios::binary);
      file << static_cast<char>(i & 255) << static_cast<char>(i >> 8);
    }
    for (int how = 0; how < 256; how += 3)
      std::ofstream(std::string(argv[2]) + "/records" + std::to_string(how), std::ios::binary) << "\xff\xff" << static_cast<char>(how) << "\x03" "abc" "\x05hello";
    return 0;
  }
  int runs = 0;
  auto run = [&](const std::filesystem::path &path) {
    std::ifstream file(path, std::ios::binary);
    std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    runInput(reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size());
    ++runs;
  };
  for (int i = 1; i < argc; ++i) {
    if (std::filesystem::is_directory(argv[i])) {
      std::vector<std::filesystem::path> files;
      for (auto &entry : std::filesystem::recursive_directory_iterator(argv[i]))
        if (entry.is_regular_file())
          files.push_back(entry.path());
      std::sort(files.begin(), files.end());
      for (auto &path : files)
        run(path);
    } else {
      run(argv[i]);
    }
  }
  printf("kernels: %d inputs\n", runs);
  return 0;
}
#endif
