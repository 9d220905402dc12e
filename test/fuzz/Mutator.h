// Mutation of TensorFlow's messages through reflection: the result still parses, so that what a mutation reaches lies
// behind the parser. Deterministic for a seed.
#ifndef LATHE_TEST_FUZZ_MUTATOR_H
#define LATHE_TEST_FUZZ_MUTATOR_H

#include "ops/Registry.h"
#include "proto/saved_model.pb.h"

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace lathe::fuzz {

class Mutator {
public:
  explicit Mutator(uint32_t seed) : random(seed) {}

  /// A few random changes anywhere in the message.
  void mutate(google::protobuf::Message &message);
  /// Each attribute of each node once with each of a list of bad values: numbers (also those in constants and shapes), types,
  /// texts. Calls back with the graph changed, and changes it back.
  static void sweep(tf::GraphDef &graph, const std::function<void()> &run);
  /// A node of a random op of the registry with fitting attributes, fed by nodes that are there or new constants.
  void addNode(tf::GraphDef &graph);
  /// Bytes without structure: flips, insertions, removals, numbers from a list of bad ones.
  void mutateBytes(std::string &bytes);

  uint32_t below(uint32_t n) { return n ? random() % n : 0; }

private:
  void collect(google::protobuf::Message &message);
  void mutateField(google::protobuf::Message &message, const google::protobuf::FieldDescriptor &field);
  void mutateScalar(google::protobuf::Message &message, const google::protobuf::FieldDescriptor &field, int index);
  std::string randomString(const std::string &old);
  int64_t randomInt(int64_t old);
  void fillTensor(tf::TensorProto &tensor, tf::DataType type);
  void fillAttr(tf::AttrValue &value, const ops::Attr &attr, const std::vector<tf::DataType> &types);

  std::mt19937 random;
  std::vector<google::protobuf::Message *> messages;
  std::vector<std::string> strings;
};

} // namespace lathe::fuzz

#endif
