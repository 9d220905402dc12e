#include "bench/gpu/probes.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

static float single(uint32_t bits) {
  float v;
  std::memcpy(&v, &bits, sizeof(v));
  return v;
}
static uint32_t bitsOf(float v) {
  uint32_t bits;
  std::memcpy(&bits, &v, sizeof(bits));
  return bits;
}

namespace {

/// Numbers that are the same everywhere (SplitMix64).
class Numbers {
public:
  explicit Numbers(uint64_t seed) : state(seed) {}
  uint32_t next() {
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return uint32_t((z ^ (z >> 31)) >> 16);
  }
  /// In [-2, 2), of 12 bits: every type but bytes holds it, f16 and bf16 round it.
  float small() { return float(int(next() % 4096) - 2048) / 1024.0f; }

private:
  uint64_t state;
};

} // namespace

static std::string module(unsigned parameters, const std::string &body, const std::string &globals = "") {
  std::string text = ".version 7.0\n.target sm_80\n.address_size 64\n" + globals + "\n.visible .entry k(";
  for (unsigned p = 0; p < parameters; ++p)
    text += (p ? ", " : "") + std::string(".param .b64 p") + std::to_string(p);
  text += ")\n.reqntid 32, 1, 1\n{\n.reg .pred %p<4>;\n.reg .b16 %h<8>;\n.reg .b32 %r<32>;\n.reg .b64 %rd<16>;\n.reg .f32 %f<8>;\n";
  text += "mov.u32 %r30, %tid.x;\nmov.u32 %r31, %ctaid.x;\nshl.b32 %r31, %r31, 5;\nadd.u32 %r30, %r30, %r31;\n";
  for (unsigned p = 0; p < parameters; ++p) {
    const std::string n = std::to_string(p);
    text += "ld.param.b64 %rd" + n + ", [p" + n + "];\ncvta.to.global.u64 %rd" + n + ", %rd" + n + ";\n";
  }
  return text + body + "\nret;\n}\n";
}

/// Corners of f32 and random patterns, subnormal ones among them.
static std::vector<uint32_t> patterns(size_t count, uint64_t seed) {
  std::vector<uint32_t> v = {0,           0x80000000u, 0x3f800000u, 0xbf800000u, 0x7f800000u, 0xff800000u, 0x7fc00000u, 0x7f800001u,
                             0x00000001u, 0x80000001u, 0x007fffffu, 0x00800000u, 0x7f7fffffu, 0x4b000000u, 0x3f7fffffu, 0x4f000000u};
  Numbers numbers(seed);
  while (v.size() < count) {
    const uint32_t bits = numbers.next();
    v.push_back(v.size() % 4 ? bits : v.size() % 8 ? bits & 0x80ffffffu : bits % 70);
  }
  for (size_t i = count; i-- > 1;)
    std::swap(v[i], v[numbers.next() % (i + 1)]);
  return v;
}

/// An instruction of %r1, %r2 and %r3 whose result is %r4, for each of some elements.
static Probe elementwise(const std::string &name, const std::string &instruction) {
  constexpr size_t count = 512;
  Probe probe;
  probe.name = name;
  std::string body = "mul.wide.u32 %rd4, %r30, 4;\n";
  for (int i = 0; i < 4; ++i)
    body += "add.u64 %rd" + std::to_string(5 + i) + ", %rd" + std::to_string(i) + ", %rd4;\n";
  for (int i = 0; i < 3; ++i)
    body += "ld.global.b32 %r" + std::to_string(i + 1) + ", [%rd" + std::to_string(5 + i) + "];\n";
  probe.ptx = module(4, body + instruction + "\nst.global.b32 [%rd8], %r4;");
  probe.blocks = count / 32;
  probe.words = count;
  for (uint64_t seed = 1; seed <= 3; ++seed)
    probe.inputs.push_back(patterns(count, seed));
  return probe;
}

/// A product whose operands' registers come from memory as they are, thread by thread.
static Probe product(const std::string &shape, const std::string &types, uint32_t (*pack)(Numbers &), double tolerance) {
  Probe probe;
  probe.name = "mma." + shape + "." + types;
  const bool whole = types.find("s32") == 0;
  const std::string d = whole ? "{%r10, %r11, %r12, %r13}" : "{%f0, %f1, %f2, %f3}", c = d;
  std::string body = "mul.wide.u32 %rd4, %r30, 16;\nadd.u64 %rd5, %rd0, %rd4;\nadd.u64 %rd6, %rd2, %rd4;\nadd.u64 %rd7, %rd3, %rd4;\n"
                     "mul.wide.u32 %rd8, %r30, 8;\nadd.u64 %rd8, %rd1, %rd8;\nld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%rd5];\n"
                     "ld.global.v2.b32 {%r5, %r6}, [%rd8];\nld.global.v4." +
                     std::string(whole ? "b32 " : "f32 ") + c + ", [%rd6];\nmma.sync.aligned." + shape + ".row.col." + types + " " + d +
                     ", {%r1, %r2, %r3, %r4}, {%r5, %r6}, " + c + ";\nst.global.v4." + (whole ? "b32" : "f32") + " [%rd7], " + d + ";";
  probe.ptx = module(4, body);
  constexpr unsigned blocks = 4; // products
  probe.blocks = blocks;
  probe.words = blocks * 128;
  Numbers numbers(11);
  for (size_t each : {4, 2, 4}) {
    std::vector<uint32_t> words(blocks * 32 * each);
    for (uint32_t &w : words)
      w = probe.inputs.size() < 2 ? pack(numbers) : whole ? numbers.next() % 100 : bitsOf(numbers.small());
    probe.inputs.push_back(words);
  }
  probe.tolerance = tolerance;
  return probe;
}

static Probe matrices(const std::string &form) {
  Probe probe;
  probe.name = "ldmatrix." + form;
  const std::string body = "mul.wide.u32 %rd4, %r30, 16;\nadd.u64 %rd5, %rd0, %rd4;\nadd.u64 %rd6, %rd1, %rd4;\n"
                           "ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%rd5];\nmov.u32 %r5, tile;\nshl.b32 %r6, %r30, 4;\nadd.u32 %r5, %r5, %r6;\n"
                           "st.shared.v4.b32 [%r5], {%r1, %r2, %r3, %r4};\nbar.sync 0;\n"
                           "ldmatrix.sync.aligned.m8n8." +
                           form + ".shared.b16 {%r7, %r8, %r9, %r10}, [%r5];\nst.global.v4.b32 [%rd6], {%r7, %r8, %r9, %r10};";
  probe.ptx = module(2, body, ".shared .align 16 .b8 tile[512];");
  probe.words = 128;
  Numbers numbers(13);
  probe.inputs.emplace_back(128);
  for (uint32_t &w : probe.inputs[0])
    w = numbers.next();
  return probe;
}

static std::vector<Probe> makeProbes() {
  std::vector<Probe> all;
  const std::pair<const char *, const char *> exact[] = {
      {"add.rn", "add.rn.f32 %r4, %r1, %r2;"},
      {"add.rz", "add.rz.f32 %r4, %r1, %r2;"},
      {"add.rm", "add.rm.f32 %r4, %r1, %r2;"},
      {"add.rp", "add.rp.f32 %r4, %r1, %r2;"},
      {"add.ftz", "add.rn.ftz.f32 %r4, %r1, %r2;"},
      {"add.sat", "add.rn.sat.f32 %r4, %r1, %r2;"},
      {"sub.rn", "sub.rn.f32 %r4, %r1, %r2;"},
      {"mul.rn", "mul.rn.f32 %r4, %r1, %r2;"},
      {"mul.ftz", "mul.rn.ftz.f32 %r4, %r1, %r2;"},
      {"fma.rn", "fma.rn.f32 %r4, %r1, %r2, %r3;"},
      {"fma.rz", "fma.rz.f32 %r4, %r1, %r2, %r3;"},
      {"div.rn", "div.rn.f32 %r4, %r1, %r2;"},
      {"rcp.rn", "rcp.rn.f32 %r4, %r1;"},
      {"sqrt.rn", "sqrt.rn.f32 %r4, %r1;"},
      {"min", "min.f32 %r4, %r1, %r2;"},
      {"max", "max.f32 %r4, %r1, %r2;"},
      {"max.NaN", "max.NaN.f32 %r4, %r1, %r2;"},
      {"cvt.rzi.s32", "cvt.rzi.s32.f32 %r4, %r1;"},
      {"cvt.rpi.u32", "cvt.rpi.u32.f32 %r4, %r1;"},
      {"cvt.rni", "cvt.rni.f32.f32 %r4, %r1;"},
      {"cvt.sat", "cvt.sat.f32.f32 %r4, %r1;"},
      {"cvt.f16", "cvt.rn.f16.f32 %h1, %r1;\nmov.b16 %h2, 0;\nmov.b32 %r4, {%h1, %h2};"},
      {"cvt.bf16", "cvt.rn.bf16.f32 %h1, %r1;\nmov.b16 %h2, 0;\nmov.b32 %r4, {%h1, %h2};"},
      {"cvt.tf32", "cvt.rna.tf32.f32 %r4, %r1;"},
      {"cvt.rn.f32.s32", "cvt.rn.f32.s32 %r4, %r1;"},
      {"cvt.rn.f32.u32", "cvt.rn.f32.u32 %r4, %r1;"},
      {"add.f16x2", "add.rn.f16x2 %r4, %r1, %r2;"},
      {"fma.f16x2", "fma.rn.f16x2 %r4, %r1, %r2, %r3;"},
      {"fma.bf16x2", "fma.rn.bf16x2 %r4, %r1, %r2, %r3;"},
      {"shl", "shl.b32 %r4, %r1, %r2;"},
      {"shr.s32", "shr.s32 %r4, %r1, %r2;"},
      {"mul.hi", "mul.hi.s32 %r4, %r1, %r2;"},
      {"div.s32", "or.b32 %r2, %r2, 1;\ndiv.s32 %r4, %r1, %r2;"},
      {"rem.u32", "or.b32 %r2, %r2, 1;\nrem.u32 %r4, %r1, %r2;"},
      {"add.sat.s32", "add.sat.s32 %r4, %r1, %r2;"},
      {"prmt", "prmt.b32 %r4, %r1, %r2, %r3;"},
      {"bfe", "bfe.s32 %r4, %r1, %r2, %r3;"},
      {"bfi", "bfi.b32 %r4, %r1, %r2, %r3, 11;"},
      {"shf", "shf.l.wrap.b32 %r4, %r1, %r2, %r3;"},
      {"set", "setp.ltu.f32 %p1, %r1, %r2;\nselp.b32 %r4, 1, 0, %p1;"},
      {"double", "cvt.f64.f32 %rd9, %r1;\ncvt.f64.f32 %rd10, %r2;\nfma.rn.f64 %rd9, %rd9, %rd10, %rd9;\ncvt.rn.f32.f64 %r4, %rd9;"},
      {"shfl.bfly", "shfl.sync.bfly.b32 %r4, %r1, 5, 31, 0xffffffff;"},
      {"shfl.up", "shfl.sync.up.b32 %r4, %r1, 3, 0, 0xffffffff;"}};
  for (const auto &[name, instruction] : exact)
    all.push_back(elementwise(name, instruction));
  // the manual's bounds are of some 2 units in the last place; where they are of an absolute error, arguments keep away from zeros. That of
  // sine and cosine is 2^-20.5, and their largest values here are near 1
  for (const char *name : {"ex2.approx", "lg2.approx", "sin.approx", "cos.approx", "rsqrt.approx", "sqrt.approx", "rcp.approx", "tanh.approx"}) {
    all.push_back(elementwise(name, std::string(name) + ".f32 %r4, %r1;"));
    all.back().relative = true;
    all.back().tolerance = std::strcmp(name, "tanh.approx") ? 1e-6 : 1e-3;
    if (!std::strcmp(name, "sin.approx") || !std::strcmp(name, "cos.approx")) {
      all.back().relative = false;
      all.back().tolerance = std::exp2(-20.5);
    }
    Numbers numbers(17);
    for (uint32_t &w : all.back().inputs[0])
      w = bitsOf(0.25f + 0.5f * float(numbers.next() % 65536) / 65536);
  }
  all.push_back(product("m16n8k16", "f32.f16.f16.f32", [](Numbers &n) { return (n.next() & 0x83ff83ffu) | 0x3c003c00u; }, 1e-5));
  all.push_back(product("m16n8k16", "f32.bf16.bf16.f32", [](Numbers &n) { return (bitsOf(n.small()) >> 16) | (bitsOf(n.small()) & 0xffff0000u); }, 1e-5));
  all.push_back(product("m16n8k8", "f32.tf32.tf32.f32", [](Numbers &n) { return bitsOf(n.small() * 1.2345f); }, 1e-5));
  all.push_back(product("m16n8k32", "s32.s8.s8.s32", [](Numbers &n) { return n.next(); }, 0));
  all.push_back(matrices("x4"));
  all.push_back(matrices("x4.trans"));
  return all;
}

const std::vector<Probe> &probes() {
  static const std::vector<Probe> all = makeProbes();
  return all;
}

bool runProbe(const lathe_cuda_driver &driver, const Probe &probe, std::vector<uint32_t> &out, std::string &why) {
  lathe_cu_module code = nullptr;
  std::vector<lathe_cu_deviceptr> memory;
  auto failed = [&](const char *call, lathe_cu_result result) {
    if (result && why.empty()) {
      char text[256];
      lathe_cuda_describe(&driver, call, result, text, sizeof(text));
      why = probe.name + ": " + text;
    }
    return result != LATHE_CU_SUCCESS;
  };
  auto run = [&] {
    lathe_cu_function function = nullptr;
    if (failed("cuModuleLoadDataEx", driver.cuModuleLoadDataEx(&code, probe.ptx.c_str(), 0, nullptr, nullptr)) ||
        failed("cuModuleGetFunction", driver.cuModuleGetFunction(&function, code, "k")))
      return false;
    for (size_t i = 0; i <= probe.inputs.size(); ++i) {
      const bool isInput = i < probe.inputs.size();
      const size_t bytes = 4 * (isInput ? probe.inputs[i].size() : probe.words);
      memory.push_back(0);
      if (failed("cuMemAlloc", driver.cuMemAlloc(&memory.back(), bytes)) ||
          (isInput && failed("cuMemcpyHtoD", driver.cuMemcpyHtoD(memory.back(), probe.inputs[i].data(), bytes))))
        return false;
    }
    std::vector<void *> parameters;
    for (lathe_cu_deviceptr &p : memory)
      parameters.push_back(&p);
    out.assign(probe.words, 0);
    return !failed("cuLaunchKernel",
                   driver.cuLaunchKernel(function, probe.blocks, 1, 1, probe.threads, 1, 1, 0, nullptr, parameters.data(), nullptr)) &&
           !failed("cuCtxSynchronize", driver.cuCtxSynchronize()) &&
           !failed("cuMemcpyDtoH", driver.cuMemcpyDtoH(out.data(), memory.back(), 4 * probe.words));
  };
  const bool right = run();
  for (lathe_cu_deviceptr p : memory)
    if (p)
      driver.cuMemFree(p);
  if (code)
    driver.cuModuleUnload(code);
  return right;
}

std::string compareProbe(const Probe &probe, const std::vector<uint32_t> &one, const std::vector<uint32_t> &other) {
  if (one.size() != probe.words || other.size() != probe.words)
    return probe.name + ": another number of results";
  double largest = 0;
  for (uint32_t w : one)
    largest = std::max(largest, std::fabs(double(single(w))));
  for (size_t i = 0; i < one.size(); ++i) {
    if (one[i] == other[i])
      continue;
    const double a = double(single(one[i])), b = double(single(other[i]));
    if (probe.tolerance == 0 || !(std::fabs(a - b) <= probe.tolerance * (probe.relative ? std::fabs(a) : largest))) {
      char text[128];
      std::snprintf(text, sizeof(text), ": result %zu is %08x, not %08x", i, unsigned(one[i]), unsigned(other[i]));
      return probe.name + text;
    }
  }
  return {};
}
