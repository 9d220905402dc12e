// RandomShuffleQueue(V2): takes a random element, and keeps `min_after_dequeue` of them back until it is closed. With
// seeds the sequence is TensorFlow's.
#include "base/Philox.h"
#include "runtime/kernels/queues/Kinds.h"

#include <random>

namespace lathe::rt {
namespace {

class ShuffleQueue : public Queue {
public:
  ShuffleQueue(Signature signature, int64_t minAfter, int64_t seed, int64_t seed2)
      : Queue(std::move(signature)), minAfter(minAfter), seed(seed), seed2(seed2), generator(makeGenerator(seed, seed2)) {
  }

  const int64_t minAfter, seed, seed2;

protected:
  void push(Tuple tuple) override { items.push_back(std::move(tuple)); }
  Tuple pop() override {
    size_t at = draw() % items.size();
    std::swap(items[at], items.back());
    Tuple taken = std::move(items.back());
    items.pop_back();
    return taken;
  }
  void putBack(Tuple tuple) override { push(std::move(tuple)); }
  int64_t stored() const override { return static_cast<int64_t>(items.size()); }
  int64_t takeable() const override { return isClosedLocked() ? stored() : stored() - minAfter; }

private:
  static Philox makeGenerator(int64_t seed, int64_t seed2) {
    if (seed == 0 && seed2 == 0) {
      std::random_device random;
      seed = static_cast<int64_t>(random()) << 32 | random();
      seed2 = static_cast<int64_t>(random()) << 32 | random();
    }
    return Philox::fromSeeds(static_cast<uint64_t>(seed), static_cast<uint64_t>(seed2));
  }
  uint32_t draw() {
    if (used == block.size()) {
      block = generator.next();
      used = 0;
    }
    return block[used++];
  }

  std::vector<Tuple> items;
  Philox generator;
  Philox::Block block{};
  size_t used = 4;
};

class ShuffleNode : public QueueNode {
public:
  explicit ShuffleNode(KernelInit &init) : QueueNode(init) {
    wanted.kind = "RandomShuffleQueue";
    checkShapes(init, true);
    minAfter = init.attr<int64_t>("min_after_dequeue");
    seed = init.attr<int64_t>("seed");
    seed2 = init.attr<int64_t>("seed2");
    if (minAfter < 0)
      init.fail(absl::InvalidArgumentError("min_after_dequeue must be >= 0"));
    if (minAfter >= wanted.capacity)
      init.fail(absl::InvalidArgumentError("min_after_dequeue must be < capacity"));
  }

protected:
  absl::StatusOr<std::shared_ptr<Queue>> create(KernelContext &) override {
    return std::make_shared<ShuffleQueue>(wanted, minAfter, seed, seed2);
  }
  absl::Status check(const Queue &queue) override {
    if (absl::Status same = QueueNode::check(queue); !same.ok())
      return same;
    const auto &have = static_cast<const ShuffleQueue &>(queue);
    // seeds count only where they were given
    if (have.minAfter != minAfter || ((seed || seed2) && (have.seed != seed || have.seed2 != seed2)))
      return absl::InvalidArgumentError(
          absl::StrCat("shared queue '", name, "' has another min_after_dequeue or other seeds"));
    return absl::OkStatus();
  }

private:
  int64_t minAfter, seed, seed2;
};

LATHE_HOST_KERNEL(RandomShuffleQueue, ShuffleNode);
LATHE_HOST_KERNEL(RandomShuffleQueueV2, ShuffleNode);

} // namespace
} // namespace lathe::rt
