// CTCLoss, CTCLossV2, CTCGreedyDecoder. Time-major inputs [time, batch, classes]; the blank is the last class, of CTCLossV2 the first.
#include "runtime/kernels/Common.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lathe::rt {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

/// In single precision for every type, as TensorFlow computes it.
double logAdd(double x, double y) {
  float a = static_cast<float>(std::max(x, y)), b = static_cast<float>(std::min(x, y));
  return y == kNever || x == kNever ? std::max(x, y) : a + std::log1p(std::exp(b - a));
}

absl::Status checkInputs(const Tensor &inputs, const Tensor &lengths) {
  if (inputs.rank() != 3)
    return invalid("inputs is not a 3-Tensor");
  if (lengths.rank() != 1 || lengths.dim(0) != inputs.dim(1))
    return invalid("len(sequence_length) != batch_size.  len(sequence_length):  ", lengths.numElements(), " batch_size: ",
                   inputs.dim(1));
  for (int64_t i = 0; i < lengths.numElements(); ++i)
    if (intAt(lengths, i) < 0 || intAt(lengths, i) > inputs.dim(0))
      return invalid("sequence_length(", i, ") is ", intAt(lengths, i), ", not in [0, ", inputs.dim(0), "]");
  return absl::OkStatus();
}

/// Loss and gradient of one sequence.
class Alignment {
public:
  /// `y` are log probabilities [steps][classes].
  Alignment(std::vector<std::vector<double>> y, const std::vector<int64_t> &labels, int64_t blank, bool merge)
      : y(std::move(y)), blank(blank), merge(merge) {
    for (int64_t label : labels) {
      path.push_back(blank);
      path.push_back(label);
    }
    path.push_back(blank);
  }

  /// The logarithm of the labels' probability; fills the logarithm of each class's share at each step.
  double run(std::vector<std::vector<double>> &shares) {
    size_t steps = y.size(), n = path.size(), classes = y[0].size();
    std::vector<std::vector<double>> forward(steps, std::vector<double>(n, kNever)), backward = forward;
    forward[0][0] = y[0][blank];
    if (n > 1)
      forward[0][1] = y[0][path[1]];
    for (size_t t = 1; t < steps; ++t)
      for (size_t u = 0; u < n; ++u) {
        double sum = stays(u) ? forward[t - 1][u] : kNever;
        if (u > 0)
          sum = logAdd(sum, forward[t - 1][u - 1]);
        if (u > 1 && skips(u, u - 2))
          sum = logAdd(sum, forward[t - 1][u - 2]);
        forward[t][u] = sum + y[t][path[u]];
      }
    backward[steps - 1][n - 1] = 0;
    if (n > 1)
      backward[steps - 1][n - 2] = 0;
    for (size_t t = steps - 1; t-- > 0;)
      for (size_t u = 0; u < n; ++u) {
        double sum = stays(u) ? backward[t + 1][u] + y[t + 1][path[u]] : kNever;
        if (u + 1 < n)
          sum = logAdd(sum, backward[t + 1][u + 1] + y[t + 1][path[u + 1]]);
        if (u + 2 < n && skips(u, u + 2))
          sum = logAdd(sum, backward[t + 1][u + 2] + y[t + 1][path[u + 2]]);
        backward[t][u] = sum;
      }
    double total = kNever;
    for (size_t u = 0; u < n; ++u)
      total = logAdd(total, forward[0][u] + backward[0][u]);
    shares.assign(steps, std::vector<double>(classes, kNever));
    for (size_t t = 0; t < steps; ++t)
      for (size_t u = 0; u < n; ++u)
        shares[t][path[u]] = logAdd(shares[t][path[u]], forward[t][u] + backward[t][u]);
    return total;
  }

private:
  bool stays(size_t u) const { return merge || path[u] == blank; }
  bool skips(size_t u, size_t other) const { return path[u] != blank && !(merge && path[u] == path[other]); }

  std::vector<std::vector<double>> y;
  std::vector<int64_t> path; ///< the labels with blanks around each
  int64_t blank;
  bool merge;
};

struct LossOptions {
  bool collapse, merge, ignoreLonger, blankFirst;
};

/// The labels of each sequence out of a sparse matrix.
absl::Status readLabels(const Tensor &indices, const Tensor &values, int64_t batch, int64_t classes, const LossOptions &options,
                        std::vector<std::vector<int64_t>> &labels, std::vector<int64_t> &counts) {
  if (indices.rank() != 2 || values.rank() != 1 || indices.dim(0) != values.dim(0) || indices.dim(1) != 2)
    return invalid("labels_indices must have two columns and a row for each of labels_values: ", dimsToString(indices.dims()),
                   " and ", dimsToString(values.dims()));
  labels.assign(batch, {});
  counts.assign(batch, 0); // repeated ones included
  std::vector<bool> ended(batch, false);
  std::vector<int64_t> last(batch, -1);
  for (int64_t i = 0; i < values.numElements(); ++i) {
    int64_t b = indices.data<int64_t>()[2 * i], label = values.data<int32_t>()[i];
    if (b < 0 || b >= batch)
      return invalid("labels batch index must be between 0 and ", batch, " but saw: ", b);
    ++counts[b];
    bool repeated = options.collapse && label == last[b];
    last[b] = label;
    if (repeated)
      continue;
    if (label < 0)
      return invalid("All labels must be nonnegative integers, batch: ", b, " label: ", label);
    // a label that is no class ends the sequence
    if (options.blankFirst ? label == 0 || label >= classes : label >= classes - 1) {
      ended[b] = true;
      continue;
    }
    if (ended[b])
      return invalid("Saw a non-null label (index >= num_classes - 1) following a null label, batch: ", b,
                     " num_classes: ", classes);
    labels[b].push_back(label);
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status lossAs(KernelContext &context, const LossOptions &options) {
  Tensor inputs = context.input("inputs"), lengths = context.input("sequence_length");
  LATHE_TRY(checkInputs(inputs, lengths));
  int64_t batch = inputs.dim(1), classes = inputs.dim(2);
  if (classes < 1)
    return invalid("there must be at least the blank class");
  std::vector<std::vector<int64_t>> labels;
  std::vector<int64_t> counts;
  LATHE_TRY(readLabels(context.input("labels_indices"), context.input("labels_values"), batch, classes, options, labels,
                       counts));
  LATHE_TRY_VALUE(loss, context.allocateOutput(0, {batch}));
  LATHE_TRY_VALUE(gradient, context.allocateOutput(1, inputs.dims()));
  for (int64_t b = 0; b < batch; ++b) {
    int64_t steps = intAt(lengths, b);
    if (labels[b].empty())
      return invalid("Labels length is zero in batch ", b);
    int64_t needed = counts[b];
    if (needed > steps && options.ignoreLonger)
      continue;
    if (needed > steps)
      return invalid("Not enough time for target transition sequence (required: ", needed, ", available: ", steps, ") in batch ",
                     b);
    if (steps == 0)
      continue;
    std::vector<std::vector<double>> y(steps, std::vector<double>(classes));
    for (int64_t t = 0; t < steps; ++t) {
      const T *row = inputs.data<T>() + (t * batch + b) * classes;
      double top = kNever, sum = 0;
      for (int64_t c = 0; c < classes; ++c)
        top = std::max(top, static_cast<double>(row[c]));
      for (int64_t c = 0; c < classes; ++c)
        sum += std::exp(static_cast<double>(row[c]) - top);
      // the logarithm of the rounded probability, as TensorFlow takes it: what underflows never happens
      for (int64_t c = 0; c < classes; ++c)
        y[t][c] = std::log(static_cast<double>(static_cast<T>(std::exp(static_cast<double>(row[c]) - top) / sum)));
    }
    std::vector<std::vector<double>> shares;
    double total = Alignment(y, labels[b], options.blankFirst ? 0 : classes - 1, options.merge).run(shares);
    loss.template data<T>()[b] = static_cast<T>(-total);
    for (int64_t t = 0; t < steps; ++t)
      for (int64_t c = 0; c < classes; ++c) {
        double share = total == kNever ? 0 : std::exp(shares[t][c] - total);
        gradient.template data<T>()[(t * batch + b) * classes + c] = static_cast<T>(std::exp(y[t][c]) - share);
      }
  }
  return absl::OkStatus();
}

absl::Status ctcLoss(KernelContext &context) {
  const NodeInfo &node = *context.node;
  LossOptions options{*attrOf<bool>(node, "preprocess_collapse_repeated"), *attrOf<bool>(node, "ctc_merge_repeated"),
                      *attrOf<bool>(node, "ignore_longer_outputs_than_inputs"), node.op == "CTCLossV2"};
  DType type = node.outputTypes[0];
  if (type == DType::Float64)
    return lossAs<double>(context, options);
  if (type == DType::Float32)
    return lossAs<float>(context, options);
  if (type == DType::Float16)
    return lossAs<Half>(context, options);
  return absl::UnimplementedError(absl::StrCat("no loss of type ", dtypeName(type)));
}
LATHE_HOST_FUNCTION(CTCLoss, ctcLoss);
// TensorFlow has it for GPUs alone
LATHE_HOST_FUNCTION(CTCLossV2, ctcLoss);

template <typename T>
absl::Status greedyAs(KernelContext &context) {
  Tensor inputs = context.input(0), lengths = context.input(1);
  bool merge = *attrOf<bool>(*context.node, "merge_repeated");
  int64_t blank = *attrOf<int64_t>(*context.node, "blank_index");
  LATHE_TRY(checkInputs(inputs, lengths));
  int64_t batch = inputs.dim(1), classes = inputs.dim(2), longest = 0;
  if (blank < 0)
    blank += classes;
  if (blank < 0 || blank >= classes)
    return invalid("blank_index is out of range for ", classes, " classes");
  LATHE_TRY_VALUE(score, context.allocateOutput(3, {batch, 1}));
  std::vector<int64_t> flat, values;
  for (int64_t b = 0; b < batch; ++b) {
    int64_t before = -1, at = 0;
    T sum = T(0);
    for (int64_t t = 0; t < intAt(lengths, b); ++t) {
      const T *row = inputs.data<T>() + (t * batch + b) * classes;
      int64_t best = std::max_element(row, row + classes) - row;
      sum = static_cast<T>(sum - row[best]);
      if (best != blank && !(merge && best == before)) {
        flat.insert(flat.end(), {b, at++});
        values.push_back(best);
      }
      before = best;
    }
    score.template data<T>()[b] = sum;
    longest = std::max(longest, at);
  }
  context.setOutput(0, int64Vector(flat).reshaped({static_cast<int64_t>(values.size()), 2}));
  context.setOutput(1, int64Vector(values));
  context.setOutput(2, int64Vector({batch, longest}));
  return absl::OkStatus();
}

absl::Status greedy(KernelContext &context) {
  return context.input(0).dtype() == DType::Float64 ? greedyAs<double>(context) : greedyAs<float>(context);
}
LATHE_HOST_FUNCTION(CTCGreedyDecoder, greedy);

} // namespace
} // namespace lathe::rt
