// An object of a TensorFlow Lite file with three signatures (test/e2e/make_tflite_nodes.py): tables that two of them share, a variable
// that one keeps, on one thread and on two, and an error.
#include "words.h"

#include <cstdio>
#include <thread>

static int run(int threads, std::string &out) {
  auto failed = [&](const app::Words &model, const char *what) {
    out += std::string(what) + " failed: " + model.error_msg() + "\n";
    return 1;
  };
  app::Words model(threads);
  if (!model.ok())
    return failed(model, "making an instance");
  model.set_text({"film", "x", "good", "fun"});
  if (!model.encode())
    return failed(model, "encode");
  out += "encode:";
  for (int64_t id : model.ids())
    out += " " + std::to_string(id);
  out += " sum " + std::to_string(model.sum()[0]) + "\n";
  model.set_text({});
  if (!model.encode() || model.ids_dims() != std::vector<int64_t>{0})
    return failed(model, "encode nothing");
  const int64_t numbers[] = {1, 2, 9};
  model.set_numbers(numbers, {3});
  if (!model.decode())
    return failed(model, "decode");
  out += "decode:";
  for (const std::string &word : model.words())
    out += " " + word;
  out += "\n";
  const std::vector<std::vector<std::string>> amounts = {{"5", "25"}, {"0", ".5"}};
  for (const std::vector<std::string> &given : amounts) {
    model.set_amounts(given);
    if (!model.count())
      return failed(model, "count");
    out += "count: " + std::to_string(model.total()[0]) + " " + std::to_string(model.total()[1]) + " of " + model.whole()[0] + " " + model.whole()[1] + "\n";
  }
  model.set_amounts({"a", "b"});
  if (model.count())
    out += "what is no number was counted\n";
  else
    out += "error: " + model.error_msg() + "\n";
  model.set_amounts({"1", "2", "3"});
  if (model.count())
    out += "three amounts were taken\n";
  else
    out += "error: " + model.error_msg() + "\n";
  return 0;
}

int main() {
  std::string one, two;
  int status = 0, other = 0;
  std::thread thread([&] { other = run(2, two); });
  status = run(1, one);
  thread.join();
  std::printf("%s%s\n", one.c_str(), one == two ? "the same on two threads" : two.c_str());
  return status | other;
}
