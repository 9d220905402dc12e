// RebatchDataset(V2): batches of one size cut and put together to others.
#include "runtime/kernels/Common.h"
#include "runtime/kernels/data/Holding.h"

namespace lathe::rt {
namespace {

/// The rows that all components of a batch have.
absl::StatusOr<int64_t> rowsOfBatch(const Element &batch) {
  for (const Tensor &t : batch) {
    if (t.rank() == 0)
      return invalid("Input element must have a non-scalar value in each component.");
    if (t.dim(0) != batch[0].dim(0))
      return invalid("Input element must have the same batch size in each component. Component 0 had size ", batch[0].dim(0),
                     " but another one had size ", t.dim(0), ".");
  }
  if (batch.empty())
    return invalid("Input element must have a component");
  return batch[0].dim(0);
}

Element slice(const Element &batch, int64_t start, int64_t count) {
  Element rows;
  for (const Tensor &t : batch)
    rows.push_back(rowsOf(t, start, count));
  return rows;
}

/// Batches one after the other as one.
absl::StatusOr<Element> concatenate(std::vector<Element> parts) {
  if (parts.size() == 1)
    return std::move(parts[0]);
  Element joined;
  for (size_t c = 0; c < parts[0].size(); ++c) {
    int64_t rows = 0;
    for (const Element &part : parts) {
      if (part.size() != parts[0].size() || part[c].dtype() != parts[0][c].dtype() || rowDims(part[c]) != rowDims(parts[0][c]))
        return invalid("batches to put together must be equal in types and in the dimensions after the first, component ", c);
      rows += part[c].dim(0);
    }
    LATHE_TRY_VALUE(all, Tensor::tryAllocate(parts[0][c].dtype(), withDim(rows, rowDims(parts[0][c])), kMaxTensorBytes));
    int64_t at = 0;
    for (const Element &part : parts) {
      copyElements(all, at, part[c], 0, part[c].numElements());
      at += part[c].numElements();
    }
    joined.push_back(all);
  }
  return joined;
}

/// Batches of the sizes, taken in turn. A size of 0 makes empty ones.
class RebatchDataset : public UnaryDataset {
public:
  RebatchDataset(Spec spec, DatasetPtr input, std::vector<int64_t> sizes, bool drop)
      : UnaryDataset(std::move(spec), std::move(input)), sizes(std::move(sizes)), drop(drop) {}
  int64_t cardinality() const override { return kUnknown; }
  absl::StatusOr<IteratorPtr> iterate(const IteratorEnv &env) const override {
    class Iterator : public UnaryIterator<RebatchDataset> {
    public:
      using UnaryIterator::UnaryIterator;
      absl::StatusOr<bool> next(Element &element) override {
        if (ended)
          return false;
        int64_t wanted = dataset->sizes[turn], have = 0;
        std::vector<Element> parts;
        Holding holding;
        while (have < wanted) {
          LATHE_TRY(checkCancelled(env));
          if (at == rows) {
            at = rows = 0;
            LATHE_TRY_VALUE(any, input->next(batch));
            ended = !any;
            if (ended)
              break;
            LATHE_TRY_VALUE(found, rowsOfBatch(batch));
            rows = found;
            if (rows == 0)
              continue; // adds nothing, and an endless row of such must not pile up
          }
          int64_t count = std::min(wanted - have, rows - at);
          Element part = slice(batch, at, count);
          at += count;
          have += count;
          LATHE_TRY(holding.add(part));
          parts.push_back(std::move(part));
        }
        turn = (turn + 1) % dataset->sizes.size();
        if (ended && (have == 0 || dataset->drop))
          return false;
        if (parts.empty())
          return dataset->fillEmpty(element);
        LATHE_TRY_VALUE(joined, concatenate(std::move(parts)));
        element = std::move(joined);
        return true;
      }
      Element batch;
      int64_t at = 0, rows = 0;
      size_t turn = 0;
      bool ended = false;
    };
    return iterateInput<Iterator>(this, env);
  }

  absl::StatusOr<bool> fillEmpty(Element &element) const {
    element.clear();
    for (size_t c = 0; c < spec.types.size(); ++c) {
      std::vector<int64_t> dims = {0};
      if (c < spec.shapes.size() && spec.shapes[c] && !spec.shapes[c]->empty()) {
        dims = *spec.shapes[c];
        dims[0] = 0;
        for (int64_t &d : dims)
          d = std::max<int64_t>(d, 0);
      }
      LATHE_TRY_VALUE(t, Tensor::tryAllocate(spec.types[c], dims, kMaxTensorBytes));
      element.push_back(t);
    }
    return true;
  }
  const std::vector<int64_t> sizes;
  const bool drop;
};

/// Every batch cut into `pieces` of equal size, the last ones shorter or empty.
class SplitDataset : public UnaryDataset {
public:
  SplitDataset(Spec spec, DatasetPtr input, int64_t pieces) : UnaryDataset(std::move(spec), std::move(input)), pieces(pieces) {}
  int64_t cardinality() const override { return kUnknown; }
  absl::StatusOr<IteratorPtr> iterate(const IteratorEnv &env) const override {
    class Iterator : public UnaryIterator<SplitDataset> {
    public:
      using UnaryIterator::UnaryIterator;
      absl::StatusOr<bool> next(Element &element) override {
        if (piece == 0) {
          LATHE_TRY_VALUE(any, input->next(batch));
          if (!any)
            return false;
          LATHE_TRY_VALUE(found, rowsOfBatch(batch));
          rows = found;
          at = 0;
        }
        int64_t size = rows / dataset->pieces + (rows % dataset->pieces != 0);
        int64_t count = std::min(size, rows - at);
        element = slice(batch, at, count);
        at += count;
        piece = (piece + 1) % dataset->pieces;
        return true;
      }
      Element batch;
      int64_t at = 0, rows = 0, piece = 0;
    };
    return iterateInput<Iterator>(this, env);
  }
  const int64_t pieces;
};

absl::StatusOr<std::shared_ptr<Dataset>> split(const Dataset::Spec &spec, DatasetPtr input, KernelContext &context) {
  LATHE_TRY_VALUE(pieces, integerScalar(context.input("num_replicas"), "num_replicas"));
  if (pieces <= 0)
    return invalid("num_replicas must be greater than zero.");
  return std::make_shared<SplitDataset>(spec, std::move(input), pieces);
}

class RebatchNode : public DatasetNode {
public:
  using DatasetNode::DatasetNode;
  absl::StatusOr<std::shared_ptr<Dataset>> make(KernelContext &context) override {
    LATHE_TRY_VALUE(input, datasetFrom(context.input(0)));
    Tensor given = context.input("batch_sizes");
    LATHE_TRY_VALUE(drop, flag(context, "drop_remainder"));
    if (given.dtype() != DType::Int64 || given.rank() > 1 || given.numElements() == 0)
      return invalid("batch_sizes must be an int64 scalar or a vector that is not empty");
    std::vector<int64_t> sizes = integers(given);
    for (int64_t size : sizes)
      if (size < 0)
        return invalid("batch_sizes must not be negative, found ", size);
    return std::make_shared<RebatchDataset>(spec, input, std::move(sizes), drop);
  }
};

LATHE_HOST_KERNEL(RebatchDataset, UnaryNode<split>);
LATHE_HOST_KERNEL(ExperimentalRebatchDataset, UnaryNode<split>);
LATHE_HOST_KERNEL(RebatchDatasetV2, RebatchNode);

} // namespace
} // namespace lathe::rt
