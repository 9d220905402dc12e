// Concurrent sessions and concurrent steps: several sessions over one graph, each with weights of its own, and in each several threads
// that take steps of gradient descent at the same time, without waiting for each other. All find the line that the points lie on.
// train-concurrent [SESSIONS [THREADS [STEPS]]]
#include "compiler/jit/ClusterCompiler.h"
#include "graph/builder/Optimizers.h"
#include "graph/builder/ops/flow.h"
#include "graph/builder/ops/math.h"
#include "runtime/session/ClientSession.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <thread>

using namespace lathe;

namespace {

constexpr int kPoints = 16;
constexpr float kSlope = 3, kOffset = -0.5f;

struct Line {
  Scope root = Scope::NewRootScope();
  Output x, y;
  train::Variable slope, offset;
  Operation step;

  Line() {
    const auto shape = ops::Placeholder::Shape(PartialShape(std::vector<int64_t>{-1}));
    x = ops::Placeholder(root.WithOpName("x"), DType::Float32, shape);
    y = ops::Placeholder(root.WithOpName("y"), DType::Float32, shape);
    slope = train::MakeVariable(root, "slope", 0.0f, {});
    offset = train::MakeVariable(root, "offset", 0.0f, {});
    Output guess = ops::Add(root, ops::Mul(root, x, slope.value), offset.value);
    Output loss = ops::Mean(root.WithOpName("loss"), ops::SquaredDifference(root, guess, y), 0);
    step = train::GradientDescent(0.1f).Minimize(root, loss, {slope, offset});
  }
};

/// One thread's steps, on points of its own.
absl::Status takeSteps(const Line &line, ClientSession &session, int steps, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> anywhere(-1, 1);
  for (int i = 0; i < steps; ++i) {
    Tensor x = Tensor::allocate(DType::Float32, {kPoints}), y = Tensor::allocate(DType::Float32, {kPoints});
    for (int k = 0; k < kPoints; ++k) {
      x.flat<float>()(k) = anywhere(random);
      y.flat<float>()(k) = kSlope * x.flat<float>()(k) + kOffset;
    }
    if (absl::Status s = session.Run({{line.x, x}, {line.y, y}}, {}, {line.step}, nullptr); !s.ok())
      return s;
  }
  return absl::OkStatus();
}

/// A session's whole life; what it found is printed.
absl::Status findLine(const Line &line, int number, int threads, int steps) {
  SessionOptions options;
  options.compiler = getClusterCompiler();
  ClientSession session(line.root, options);
  if (absl::Status s = session.Run({}, {}, {line.slope.init, line.offset.init}, nullptr); !s.ok())
    return s;
  std::vector<absl::Status> results(threads);
  std::vector<std::thread> running;
  for (int t = 0; t < threads; ++t)
    running.emplace_back([&, t] { results[t] = takeSteps(line, session, steps, static_cast<unsigned>(number * threads + t)); });
  for (std::thread &thread : running)
    thread.join();
  for (const absl::Status &s : results)
    if (!s.ok())
      return s;
  std::vector<Tensor> found;
  if (absl::Status s = session.Run({line.slope.value, line.offset.value}, &found); !s.ok())
    return s;
  const float slope = found[0].scalar<float>()(), offset = found[1].scalar<float>()();
  std::printf("session %d: y = %.3f x %+.3f\n", number, slope, offset);
  return std::abs(slope - kSlope) < 1e-2f && std::abs(offset - kOffset) < 1e-2f ? absl::OkStatus()
                                                                               : absl::InternalError("the line is not found yet: give more steps");
}

} // namespace

int main(int argc, char **argv) {
  int numbers[3] = {3, 4, 100}; // sessions, threads, steps
  for (int i = 1; i < argc && i <= 3; ++i)
    if ((numbers[i - 1] = std::atoi(argv[i])) < 1) {
      std::fprintf(stderr, "usage: %s [SESSIONS [THREADS [STEPS]]]\n", argv[0]);
      return 1;
    }
  const Line line;
  if (!line.root.ok()) {
    std::fprintf(stderr, "%s\n", std::string(line.root.status().message()).c_str());
    return 1;
  }
  std::vector<absl::Status> results(numbers[0]);
  std::vector<std::thread> sessions;
  for (int i = 0; i < numbers[0]; ++i)
    sessions.emplace_back([&, i] { results[i] = findLine(line, i, numbers[1], numbers[2]); });
  for (std::thread &thread : sessions)
    thread.join();
  int failed = 0;
  for (const absl::Status &s : results)
    if (!s.ok()) {
      std::fprintf(stderr, "%s\n", std::string(s.message()).c_str());
      failed = 1;
    }
  return failed;
}
