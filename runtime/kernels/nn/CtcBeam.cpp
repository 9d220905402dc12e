// CTCBeamSearchDecoder. Time-major inputs [time, batch, classes]; the blank is the last class.
#include "runtime/kernels/Common.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>

namespace lathe::rt {
namespace {

/// A prefix of labels in the tree of those considered.
template <typename T>
struct Prefix {
  static constexpr T kNever = -std::numeric_limits<T>::infinity();
  struct Chance {
    T total = kNever, blank = kNever, label = kNever;
  };
  Prefix *parent = nullptr;
  int label = -1;
  Chance before, now;
  std::map<int, std::unique_ptr<Prefix>> children;
  bool active() const { return now.total != kNever; }
};

template <typename T>
T logSum(T x, T y) {
  T high = std::max(x, y), low = std::min(x, y);
  // in single precision for every type, as in TensorFlow
  return low == Prefix<T>::kNever ? high : high + std::log1p(std::exp(static_cast<float>(low - high)));
}

template <typename T>
class BeamSearch {
public:
  BeamSearch(int classes, size_t width) : classes(classes), blank(classes - 1), width(width) {
    root.now.total = root.now.blank = 0;
    leaves.push_back(&root);
  }

  void step(const T *row) {
    T high = *std::max_element(row, row + classes), sum = 0;
    for (int k = 0; k < classes; ++k)
      sum += std::exp(row[k] - high);
    T offset = high + std::log(sum);
    std::vector<Node *> branches = std::move(leaves);
    leaves.clear();
    for (Node *b : branches)
      b->before = b->now;
    for (Node *b : branches) {
      if (b->parent) {
        if (b->parent->active())
          b->now.label = logSum(b->now.label, b->label == b->parent->label ? b->parent->before.blank : b->parent->before.total);
        b->now.label += row[b->label] - offset;
      }
      b->now.blank = b->before.total + row[blank] - offset;
      b->now.total = logSum(b->now.blank, b->now.label);
      push(b);
    }
    for (Node *b : branches) {
      if (!candidate(b->before.total))
        continue;
      for (int k = 0; k < classes; ++k) {
        if (k == blank)
          continue;
        std::unique_ptr<Node> &child = b->children[k];
        if (!child) {
          child = std::make_unique<Node>();
          child->parent = b;
          child->label = k;
        }
        if (child->active())
          continue;
        child->now.blank = Node::kNever;
        child->now.label = child->now.total = row[k] - offset + (k == b->label ? b->before.blank : b->before.total);
        if (!candidate(child->now.total)) {
          child->before = child->now = {};
          continue;
        }
        if (leaves.size() == width) {
          leaves.back()->now = {};
          leaves.pop_back();
        }
        push(child.get());
      }
    }
  }

  /// Labels and log probability of the n-th best; false when there are not so many.
  bool path(size_t n, bool merge, std::vector<int64_t> &labels, T &chance) const {
    if (n >= leaves.size())
      return false;
    labels.clear();
    int last = -1;
    for (const Node *at = leaves[n]; at->parent; at = at->parent) {
      if (!merge || at->label != last)
        labels.push_back(at->label);
      last = at->label;
    }
    std::reverse(labels.begin(), labels.end());
    chance = leaves[n]->now.total;
    return true;
  }

private:
  using Node = Prefix<T>;
  bool candidate(T total) const { return total > Node::kNever && (leaves.size() < width || total > leaves.back()->now.total); }
  /// Leaves stay in falling order.
  void push(Node *n) {
    auto at = std::upper_bound(leaves.begin(), leaves.end(), n, [](Node *x, Node *y) { return x->now.total > y->now.total; });
    leaves.insert(at, n);
  }

  int classes, blank;
  size_t width;
  Node root;
  std::vector<Node *> leaves;
};

class BeamSearchKernel : public HostKernel {
public:
  explicit BeamSearchKernel(KernelInit &init)
      : width(init.attr<int64_t>("beam_width")), paths(init.attr<int64_t>("top_paths")), merge(init.attr<bool>("merge_repeated")) {}

  absl::Status compute(KernelContext &context) override {
    return context.input(0).dtype() == DType::Float64 ? decode<double>(context) : decode<float>(context);
  }

private:
  template <typename T>
  absl::Status decode(KernelContext &context) {
    Tensor inputs = context.input(0), lengths = context.input(1);
    if (inputs.rank() != 3 || inputs.dim(2) < 1)
      return invalid("inputs is not a 3-Tensor");
    int64_t steps = inputs.dim(0), batch = inputs.dim(1), classes = inputs.dim(2);
    if (lengths.rank() != 1 || lengths.dim(0) != batch)
      return invalid("len(sequence_length) != batch_size.  len(sequence_length):  ", lengths.numElements(), " batch_size: ", batch);
    if (width < 1 || paths < 1 || paths > width || classes > 1 << 20)
      return invalid("top_paths must be at least 1 and at most beam_width");
    std::vector<std::vector<std::vector<int64_t>>> labels(paths, std::vector<std::vector<int64_t>>(batch));
    LATHE_TRY_VALUE(chances, context.allocate(inputs.dtype(), {batch, paths}));
    for (int64_t b = 0; b < batch; ++b) {
      int64_t length = intAt(lengths, b);
      if (length < 0 || length > steps)
        return invalid("sequence_length(", b, ") is ", length, ", not in [0, ", steps, "]");
      BeamSearch<T> search(static_cast<int>(classes), static_cast<size_t>(width));
      for (int64_t t = 0; t < length; ++t)
        search.step(inputs.data<T>() + (t * batch + b) * classes);
      for (int64_t p = 0; p < paths; ++p)
        if (!search.path(p, merge, labels[p][b], chances.template data<T>()[b * paths + p]))
          return invalid("Less leaves in the beam search than requested.");
    }
    for (int64_t p = 0; p < paths; ++p) {
      int64_t total = 0, longest = 0;
      for (const auto &sequence : labels[p]) {
        total += sequence.size();
        longest = std::max<int64_t>(longest, sequence.size());
      }
      LATHE_TRY_VALUE(indices, context.allocateOutput(static_cast<int>(p), {total, 2}));
      std::vector<int64_t> values;
      for (int64_t b = 0; b < batch; ++b)
        for (size_t t = 0; t < labels[p][b].size(); ++t) {
          indices.data<int64_t>()[values.size() * 2] = b;
          indices.data<int64_t>()[values.size() * 2 + 1] = static_cast<int64_t>(t);
          values.push_back(labels[p][b][t]);
        }
      context.setOutput(static_cast<int>(paths + p), int64Vector(values));
      context.setOutput(static_cast<int>(2 * paths + p), int64Vector({batch, longest}));
    }
    context.setOutput(static_cast<int>(3 * paths), chances);
    return absl::OkStatus();
  }

  const int64_t width, paths;
  const bool merge;
};
LATHE_HOST_KERNEL(CTCBeamSearchDecoder, BeamSearchKernel);

} // namespace
} // namespace lathe::rt
