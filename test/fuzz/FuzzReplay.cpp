// fuzz-replay: the fuzz targets without libFuzzer.
//   fuzz-replay TARGET FILE_OR_FOLDER...                       runs each file once
//   fuzz-replay TARGET --mutate N [--seed S] [--keep DIR] ...  runs N mutants of the files, each of up to 12 changes
//   fuzz-replay TARGET --sweep [--keep DIR] ...                runs each graph with each attribute set to each of a list of bad values
//   fuzz-replay pack MODEL INDEX DATA OUT                      makes an input of saved_model and table
//   fuzz-replay totext <GRAPH.pb >GRAPH.pbtxt
// The input at hand is in DIR/current while it runs, so a crash leaves it there.
#include "Mutator.h"
#include "Targets.h"

#include "proto/graph.pb.h"

#include "google/protobuf/text_format.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <random>
#include <vector>

using namespace lathe::fuzz;

static const Target *findTarget(const std::string &name) {
  for (const Target *t : {&graphdef, &saved_model, &legalize, &text, &table, &tflite})
    if (name == t->name)
      return t;
  return nullptr;
}

static std::string readFile(const std::string &path) {
  auto buffer = llvm::MemoryBuffer::getFile(path, false, false);
  return buffer ? (*buffer)->getBuffer().str() : std::string();
}

int main(int argc, char **argv) {
  if (argc == 6 && std::string(argv[1]) == "pack") {
    std::ofstream(argv[5], std::ios::binary) << packFolder(readFile(argv[2]), readFile(argv[3]), readFile(argv[4]));
    return 0;
  }
  if (argc == 2 && std::string(argv[1]) == "totext") {
    std::string bytes((std::istreambuf_iterator<char>(std::cin)), std::istreambuf_iterator<char>()), text;
    lathe::tf::GraphDef graph;
    if (graph.ParseFromString(bytes) && google::protobuf::TextFormat::PrintToString(graph, &text))
      std::cout << text;
    return 0;
  }
  const Target *target = argc > 2 ? findTarget(argv[1]) : nullptr;
  if (!target) {
    fprintf(stderr, "fuzz-replay: see the head of test/fuzz/FuzzReplay.cpp\n");
    return 1;
  }
  uint64_t mutants = 0, seed = 1;
  std::string keep;
  bool sweep = false;
  std::vector<std::string> files;
  for (int i = 2; i < argc; ++i) {
    std::string a = argv[i];
    if (a == "--mutate" && i + 1 < argc)
      mutants = strtoull(argv[++i], nullptr, 10);
    else if (a == "--seed" && i + 1 < argc)
      seed = strtoull(argv[++i], nullptr, 10);
    else if (a == "--keep" && i + 1 < argc)
      keep = argv[++i];
    else if (a == "--sweep")
      sweep = true;
    else if (llvm::sys::fs::is_directory(a)) {
      std::error_code error;
      for (llvm::sys::fs::recursive_directory_iterator it(a, error), end; it != end && !error; it.increment(error))
        if (!llvm::sys::fs::is_directory(it->path()))
          files.push_back(it->path());
    } else {
      files.push_back(a);
    }
  }
  std::sort(files.begin(), files.end());
  std::vector<std::string> inputs;
  for (const std::string &f : files)
    inputs.push_back(readFile(f));
  using Clock = std::chrono::steady_clock;
  auto runOne = [&](const std::string &input) {
    if (!keep.empty())
      std::ofstream(keep + "/current", std::ios::binary) << input;
    auto start = Clock::now();
    target->run(input);
    double s = std::chrono::duration<double>(Clock::now() - start).count();
    if (s > 5)
      fprintf(stderr, "fuzz-replay: slow input, %.1f s%s\n", s, keep.empty() ? "" : ", kept");
    if (s > 5 && !keep.empty())
      llvm::sys::fs::copy_file(keep + "/current", keep + "/slow-" + std::to_string(std::hash<std::string>()(input)));
  };
  if (sweep) {
    uint64_t runs = 0;
    for (const std::string &input : inputs) {
      lathe::tf::GraphDef graph;
      if (graph.ParseFromString(input))
        Mutator::sweep(graph, [&] { runOne(graph.SerializeAsString()), ++runs; });
    }
    printf("%s: %zu inputs, %llu changes\n", target->name, files.size(), (unsigned long long)runs);
    return 0;
  }
  if (!mutants)
    for (const std::string &input : inputs)
      runOne(input);
  std::mt19937 random(static_cast<uint32_t>(seed));
  if (inputs.empty())
    inputs.push_back("");
  for (uint64_t i = 0; i < mutants; ++i) {
    std::string input = inputs[random() % inputs.size()];
    for (uint32_t n = 1 + random() % 12; n > 0; --n)
      target->mutate(input, static_cast<uint32_t>(random()));
    runOne(input);
  }
  printf("%s: %zu inputs, %llu mutants\n", target->name, files.size(), (unsigned long long)mutants);
  return 0;
}
