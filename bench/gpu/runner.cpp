#include "bench/gpu/runner.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <fstream>
#include <sstream>

static bool readFile(const std::string &path, std::vector<char> &bytes) {
  std::ifstream in(path, std::ios::binary);
  bytes.assign(std::istreambuf_iterator<char>(in), {});
  return bool(in) || in.eof();
}

bool readCase(const std::string &folder, Case &c) {
  std::ifstream in(folder + "/case");
  in >> c.model >> c.tolerance;
  std::string line;
  std::getline(in, line);
  while (std::getline(in, line)) {
    std::istringstream words(line);
    std::string kind;
    TensorFile t;
    words >> kind >> t.number >> t.file;
    t.isInput = kind == "in";
    for (int64_t d; words >> d;)
      t.dims.push_back(d);
    if (t.file.empty() || !readFile(folder + "/" + t.file, t.bytes))
      return false;
    c.tensors.push_back(std::move(t));
  }
  return !c.tensors.empty();
}

Runner::Runner(const Model &model, const Case &c, int ordinal) : module(*model.module()), device(*model.device()), c(c) {
  std::memset(&error, 0, sizeof(error));
  error.struct_size = sizeof(error);
  std::memset(&args, 0, sizeof(args));
  args.args.struct_size = sizeof(args);
  args.args.threads = 1;
  args.args.error = &error;
  failed(device.open(ordinal, &args.instance, &error));
}

Runner::~Runner() {
  for (void *p : onDevice)
    if (p)
      device.release(args.instance, p, nullptr);
  if (args.instance)
    device.close(args.instance);
}

bool Runner::failed(int32_t code) {
  if (code && why.empty())
    why = "status " + std::to_string(code) + ": " + (error.message ? error.message : "");
  return code != 0;
}

bool Runner::refuse(const std::string &text) {
  why = text;
  return false;
}

bool Runner::prepare() {
  if (!why.empty())
    return false;
  const lathe_entry &e = *module.entries[0];
  inputFiles.resize(size_t(e.num_inputs));
  outputFiles.resize(size_t(e.num_outputs));
  for (const TensorFile &t : c.tensors) {
    auto &list = t.isInput ? inputFiles : outputFiles;
    if (t.number < 0 || size_t(t.number) >= list.size())
      return refuse("the case names a tensor that the model lacks");
    list[size_t(t.number)] = &t;
  }
  sizes.assign(size_t(module.num_symbols), 0);
  for (int i = 0; i < e.num_inputs; ++i) {
    const lathe_tensor_info &info = *e.inputs[i];
    if (!inputFiles[size_t(i)] || inputFiles[size_t(i)]->dims.size() != size_t(info.rank))
      return refuse(std::string("no input '") + info.name + "' of its rank");
    for (int d = 0; d < info.rank; ++d)
      if (info.dims[d] < 0 && info.dims[d] != LATHE_DIM_COMPUTED)
        sizes[size_t(-1 - info.dims[d])] = inputFiles[size_t(i)]->dims[size_t(d)];
  }
  const int64_t bytes = device.workspace_size[0](sizes.data());
  if (bytes < 0)
    return refuse("a size is out of range");
  if (failed(device.reserve(args.instance, bytes, &error)))
    return false;
  std::vector<int64_t> bounded = sizes;
  e.bound_sizes(bounded.data());
  int numDims = 0;
  for (int i = 0; i < e.num_inputs; ++i)
    numDims += e.inputs[i]->rank;
  std::vector<int64_t> dims(size_t(numDims) + 1);
  for (int i = 0; i < e.num_outputs; ++i)
    dims.resize(dims.size() + size_t(e.outputs[i]->rank));
  e.dims(bounded.data(), dims.data());
  auto allocate = [&](size_t size) {
    void *p = nullptr;
    failed(device.allocate(args.instance, &p, int64_t(std::max<size_t>(size, 1)), &error));
    onDevice.push_back(p);
    return p;
  };
  size_t at = 0;
  for (int i = 0; i < e.num_inputs; ++i) {
    const std::vector<char> &data = inputFiles[size_t(i)]->bytes;
    int64_t size = e.inputs[i]->element_size;
    for (int d = 0; d < e.inputs[i]->rank; ++d)
      size *= dims[at++];
    if (size != int64_t(data.size()))
      return refuse(std::string("input '") + e.inputs[i]->name + "' is of another size");
    inputs.push_back(data.data());
    void *there = allocate(data.size());
    if (!why.empty() || failed(device.copy(args.instance, there, 1, data.data(), 0, size, &error)))
      return false;
    deviceInputs.push_back(there);
  }
  for (int i = 0; i < e.num_outputs; ++i) {
    int64_t size = e.outputs[i]->element_size;
    for (int d = 0; d < e.outputs[i]->rank; ++d)
      size *= dims[at++];
    results.emplace_back(size_t(size));
    outputs.push_back(results.back().data());
    deviceOutputs.push_back(allocate(size_t(size)));
  }
  if (module.num_variables)
    return refuse("models with state are not measured");
  yes.assign(std::max(inputs.size(), outputs.size()) + 1, 1);
  args.args.sizes = sizes.data();
  return why.empty();
}

bool Runner::run(bool withDevice) {
  args.args.inputs = withDevice ? deviceInputs.data() : inputs.data();
  args.args.outputs = withDevice ? deviceOutputs.data() : outputs.data();
  args.inputs_on_device = args.outputs_on_device = withDevice ? yes.data() : nullptr;
  return !failed(module.entries[0]->run(&args.args));
}

/// The largest difference as a share of the largest expected value; integers must agree.
template <typename T>
static double difference(const std::vector<char> &got, const std::vector<char> &want, double (*number)(T)) {
  double largest = 0, worst = 0;
  for (size_t i = 0; i + sizeof(T) <= want.size(); i += sizeof(T)) {
    T bits[2];
    std::memcpy(&bits[0], got.data() + i, sizeof(T));
    std::memcpy(&bits[1], want.data() + i, sizeof(T));
    const double g = number(bits[0]), w = number(bits[1]);
    if (std::isnan(g) != std::isnan(w))
      return INFINITY;
    if (std::isfinite(w))
      largest = std::max(largest, std::fabs(w));
    if (!std::isnan(w) && g != w)
      worst = std::max(worst, std::fabs(g - w));
  }
  return worst / (largest + 1e-30);
}

static double ofSingle(float v) { return double(v); }
static double ofDouble(double v) { return v; }
static double ofBfloat(uint16_t v) {
  const uint32_t word = uint32_t(v) << 16;
  float f;
  std::memcpy(&f, &word, sizeof(f));
  return double(f);
}
static double ofHalf(uint16_t v) {
  const int exponent = v >> 10 & 31, fraction = v & 1023;
  const double magnitude = exponent == 31   ? (fraction ? NAN : INFINITY)
                           : exponent == 0 ? std::ldexp(fraction, -24)
                                           : std::ldexp(1024 + fraction, exponent - 25);
  return v >> 15 ? -magnitude : magnitude;
}

static double error(int32_t dtype, const std::vector<char> &got, const std::vector<char> &want) {
  if (got.size() != want.size())
    return INFINITY;
  switch (dtype) {
  case LATHE_FLOAT32:
    return difference<float>(got, want, ofSingle);
  case LATHE_FLOAT64:
    return difference<double>(got, want, ofDouble);
  case LATHE_BFLOAT16:
    return difference<uint16_t>(got, want, ofBfloat);
  case LATHE_FLOAT16:
    return difference<uint16_t>(got, want, ofHalf);
  default:
    return got == want ? 0 : INFINITY;
  }
}

bool Runner::agrees(double &worst) {
  const lathe_entry &e = *module.entries[0];
  for (size_t i = 0; i < outputFiles.size(); ++i) {
    if (!outputFiles[i])
      continue;
    // of results whose size depends on data only what there is
    std::vector<char> got(results[i]);
    got.resize(std::min(got.size(), outputFiles[i]->bytes.size()));
    worst = std::max(worst, ::error(e.outputs[i]->dtype, got, outputFiles[i]->bytes));
  }
  return worst <= c.tolerance;
}

using Clock = std::chrono::steady_clock;

static double microseconds(Clock::duration d) { return std::chrono::duration<double, std::micro>(d).count(); }
static double middle(std::vector<double> &values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? NAN : values[values.size() / 2];
}

double Runner::median(bool withDevice, double seconds) {
  std::vector<double> us;
  const Clock::time_point begin = Clock::now();
  while (us.empty() || (microseconds(Clock::now() - begin) < seconds * 1e6 && us.size() < 100000)) {
    const Clock::time_point start = Clock::now();
    if (!run(withDevice))
      return NAN;
    us.push_back(microseconds(Clock::now() - start));
  }
  return middle(us);
}

std::pair<double, double> Runner::enqueue(double seconds) {
  constexpr int together = 8; // as many as may wait in a stream
  std::vector<double> us, all;
  const Clock::time_point begin = Clock::now();
  bool right = true;
  args.enqueue = 1;
  while (right && (us.empty() || (microseconds(Clock::now() - begin) < seconds * 1e6 && us.size() < 100000))) {
    const Clock::time_point start = Clock::now();
    for (int i = 0; i < together; ++i)
      right = right && run(true);
    us.push_back(microseconds(Clock::now() - start) / together);
    right = !failed(device.wait(args.instance, &error)) && right;
    all.push_back(microseconds(Clock::now() - start) / together);
  }
  args.enqueue = 0;
  return right ? std::make_pair(middle(us), middle(all)) : std::make_pair(double(NAN), double(NAN));
}
