// Ragged to dense and sparse, gathering rows, filling empty rows: RaggedTensorToTensor, RaggedTensorToSparse, RaggedGather,
// RaggedFillEmptyRows.
#include "base/Memory.h"
#include "runtime/kernels/ragged/Splits.h"

namespace lathe::rt {
namespace {

using Dims = std::vector<int64_t>;

enum class Partition { FirstDimSize, ValueRowids, RowSplits };

absl::StatusOr<std::vector<Partition>> partitionsOf(const NodeInfo &node) {
  std::vector<Partition> kinds;
  for (const std::string &name : *attrOf<std::vector<std::string>>(node, "row_partition_types")) {
    if (name == "FIRST_DIM_SIZE")
      kinds.push_back(Partition::FirstDimSize);
    else if (name == "VALUE_ROWIDS")
      kinds.push_back(Partition::ValueRowids);
    else if (name == "ROW_SPLITS")
      kinds.push_back(Partition::RowSplits);
    else
      return invalid("Unknown string for partition info type: ", name);
  }
  return kinds;
}

// Rows and places of a level are kept one by one: numbers that a tensor names are no reason to take all memory.
constexpr int64_t kMaxRows = INT64_C(1) << 27;

/// For each value of a level, its row and its column in that row.
struct Level {
  std::vector<int64_t> rows, columns;
  int64_t width = 0;
};

absl::StatusOr<Level> levelOf(Partition kind, const Tensor &t) {
  Level level;
  Splits numbers = intsOf(t);
  if (kind == Partition::RowSplits) {
    LATHE_TRY_VALUE(splits, readSplits(t, -1));
    if (splits.back() > kMaxRows)
      return absl::ResourceExhaustedError(absl::StrCat("Ragged splits end with ", splits.back()));
    for (size_t r = 0; r + 1 < splits.size(); ++r)
      for (int64_t i = splits[r]; i < splits[r + 1]; ++i) {
        level.rows.push_back(static_cast<int64_t>(r));
        level.columns.push_back(i - splits[r]);
      }
  } else {
    int64_t column = 0;
    for (size_t i = 0; i < numbers.size(); ++i) {
      if (numbers[i] < 0 || (i && numbers[i] < numbers[i - 1]))
        return invalid("Expect sorted, non-negative value rowids: ", numbers[i]);
      column = i && numbers[i] == numbers[i - 1] ? column + 1 : 0;
      level.rows.push_back(numbers[i]);
      level.columns.push_back(column);
    }
  }
  for (int64_t column : level.columns)
    level.width = std::max(level.width, column + 1);
  return level;
}

/// The output's sizes: those asked for, the rest from the data.
absl::StatusOr<Dims> outputDims(const Tensor &shape, int64_t rows, const std::vector<Level> &levels, const Tensor &values) {
  size_t raggedRank = levels.size(), rank = raggedRank + std::max<int64_t>(values.rank(), 1);
  Dims wanted(rank, -1);
  if (shape.rank() > 1)
    return invalid("shape must be a scalar or vector");
  if (shape.rank() == 0) {
    if (intAt(shape, 0) != -1)
      return invalid("The only valid scalar shape tensor is the fully unknown shape specified as -1.");
  } else {
    wanted = intsOf(shape);
    if (wanted.size() != rank)
      return invalid("rt_input.shape and shape are incompatible: expected ", rank, " dimensions, found ", wanted.size());
  }
  for (size_t d = 0; d < rank; ++d) {
    if (wanted[d] < -1)
      return invalid("Shape must be at least -1 in each dimension: ", wanted[d]);
    int64_t own = d == 0 ? rows : d <= raggedRank ? levels[d - 1].width : values.dim(d - raggedRank);
    if (d > raggedRank && wanted[d] >= 0 && wanted[d] != own)
      return invalid("Inner size ", own, " of the values does not fit the requested ", wanted[d]);
    if (wanted[d] < 0)
      wanted[d] = own;
  }
  return wanted;
}

absl::Status raggedToTensor(KernelContext &context) {
  Tensor shape = context.input("shape"), values = context.input("values"), rest = context.input("default_value");
  std::vector<Tensor> tensors = context.inputList("row_partition_tensors");
  LATHE_TRY_VALUE(kinds, partitionsOf(*context.node));
  if (kinds.empty() || kinds.size() != tensors.size())
    return invalid("row_partition_types must name each of the ", tensors.size(), " partition tensors and at least one");
  if (values.rank() < 1)
    return invalid("values must be at least a vector");
  int64_t rows = 0;
  size_t first = 0;
  if (kinds[0] == Partition::FirstDimSize) {
    LATHE_TRY_VALUE(size, oneInt(tensors[0], "FIRST_DIM_SIZE"));
    if (size > kMaxRows)
      return absl::ResourceExhaustedError(absl::StrCat("FIRST_DIM_SIZE is ", size));
    rows = size;
    first = 1;
  } else if (kinds[0] == Partition::RowSplits) {
    rows = tensors[0].numElements() - 1;
  } else {
    return invalid("Cannot handle VALUE_ROWIDS in first dimension.");
  }
  if (rows < 0)
    return invalid("the first dimension must not be negative: ", rows);
  std::vector<Level> levels;
  for (size_t i = first; i < kinds.size(); ++i) {
    if (kinds[i] == Partition::FirstDimSize)
      return invalid("FIRST_DIM_SIZE is for the first partition only");
    LATHE_TRY_VALUE(level, levelOf(kinds[i], tensors[i]));
    levels.push_back(std::move(level));
  }
  LATHE_TRY_VALUE(dims, outputDims(shape, rows, levels, values));
  int64_t size = productOf(values.dims(), 1, values.rank());
  LATHE_TRY_VALUE(total, checkedNumElements(dims));
  if (total > memoryBudget() / 8)
    return absl::ResourceExhaustedError(absl::StrCat("a tensor of shape ", dimsToString(dims), " is too large"));
  // positions of the rows of each level in the output, -1 for those cut off
  std::vector<int64_t> at;
  int64_t stride = productOf(dims, 1, dims.size());
  for (int64_t r = 0; r < (levels.empty() ? values.dim(0) : rows); ++r) {
    if (r >= dims[0] && !levels.empty()) {
      // rows past the requested size are cut off; their positions need no memory
      at.resize(rows, -1);
      break;
    }
    at.push_back(r < dims[0] ? r * stride : -1);
  }
  for (size_t l = 0; l < levels.size(); ++l) {
    const Level &level = levels[l];
    stride = productOf(dims, l + 2, dims.size());
    std::vector<int64_t> next(level.rows.size(), -1);
    for (size_t i = 0; i < level.rows.size(); ++i) {
      if (level.rows[i] >= static_cast<int64_t>(at.size()))
        return invalid("Expect value_rowid ", level.rows[i], " to be less than the number of rows ", at.size());
      int64_t parent = at[level.rows[i]];
      if (parent >= 0 && level.columns[i] < dims[l + 1])
        next[i] = parent + level.columns[i] * stride;
    }
    at = std::move(next);
  }
  if (static_cast<int64_t>(at.size()) != values.dim(0) && size)
    return invalid("the partitions describe ", at.size(), " values, found ", values.dim(0));
  // the default is one element, or broadcasts to one value
  if (rest.rank() > values.rank() - 1)
    return invalid("default_value must have less dimensions than the values: ", dimsToString(rest.dims()));
  int64_t lead = values.rank() - 1 - rest.rank();
  for (int64_t d = 0; d < rest.rank(); ++d)
    if (rest.dim(d) != 1 && rest.dim(d) != values.dim(1 + lead + d))
      return invalid("default_value of shape ", dimsToString(rest.dims()), " does not broadcast to the values' ",
                     dimsToString(values.dims()));
  LATHE_TRY_VALUE(out, context.allocateOutput(0, dims));
  for (int64_t i = 0; i < total; ++i) {
    int64_t from = 0, within = size ? i % size : 0, scale = 1;
    for (int64_t d = rest.rank(); d-- > 0;) {
      int64_t n = values.dim(1 + lead + d);
      from += (rest.dim(d) == 1 ? 0 : within % n) * scale;
      within /= n;
      scale *= rest.dim(d);
    }
    copyElement(out, i, rest, from);
  }
  for (size_t i = 0; i < at.size(); ++i)
    for (int64_t k = 0; at[i] >= 0 && k < size; ++k)
      copyElement(out, at[i] + k, values, i * size + k);
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(RaggedTensorToTensor, raggedToTensor);

absl::Status raggedToSparse(KernelContext &context) {
  Tensor values = context.input("rt_dense_values");
  std::vector<Tensor> tensors = context.inputList("rt_nested_splits");
  if (tensors.empty() || values.rank() < 1)
    return invalid("a ragged tensor has splits, and values of rank 1 or more");
  LATHE_TRY_VALUE(nested, readNested(tensors, values));
  int64_t levels = static_cast<int64_t>(nested.size()), rank = levels + values.rank();
  Dims dims = {static_cast<int64_t>(nested[0].size()) - 1};
  for (const Splits &splits : nested) {
    int64_t width = 0;
    for (size_t r = 0; r + 1 < splits.size(); ++r)
      width = std::max(width, splits[r + 1] - splits[r]);
    dims.push_back(width);
  }
  dims.insert(dims.end(), values.dims().begin() + 1, values.dims().end());
  int64_t inner = productOf(values.dims(), 1, values.rank());
  LATHE_TRY_VALUE(indices, context.allocateOutput(0, {values.numElements(), rank}));
  int64_t *out = indices.data<int64_t>();
  std::vector<int64_t> at(levels, 0); // the row that each level is in
  for (int64_t v = 0; v < (inner ? values.dim(0) : 0); ++v) {
    int64_t below = v;
    std::vector<int64_t> prefix(levels + 1);
    for (int64_t l = levels; l-- > 0;) {
      while (nested[l][at[l] + 1] <= below)
        ++at[l];
      prefix[l + 1] = below - nested[l][at[l]];
      below = at[l];
    }
    prefix[0] = below;
    for (int64_t k = 0; k < inner; ++k, out += rank) {
      std::copy(prefix.begin(), prefix.end(), out);
      int64_t rest = k;
      for (int64_t d = values.rank(); d-- > 1;) {
        out[levels + d] = rest % values.dim(d);
        rest /= values.dim(d);
      }
    }
  }
  context.setOutput(1, values.reshaped({values.numElements()}));
  context.setOutput(2, int64Vector(dims));
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(RaggedTensorToSparse, raggedToSparse);

absl::Status raggedGather(KernelContext &context) {
  Tensor values = context.input("params_dense_values"), indices = context.input("indices");
  std::vector<Tensor> tensors = context.inputList("params_nested_splits");
  int outRank = static_cast<int>(*attrOf<int64_t>(*context.node, "OUTPUT_RAGGED_RANK"));
  if (tensors.empty() || values.rank() < 1)
    return invalid("params.rank must be nonzero");
  if (outRank != indices.rank() + static_cast<int64_t>(tensors.size()) - 1)
    return invalid("OUTPUT_RAGGED_RANK is ", outRank, ", expected ", indices.rank() + tensors.size() - 1);
  LATHE_TRY_VALUE(nested, readNested(tensors, values));
  int64_t rows = static_cast<int64_t>(nested[0].size()) - 1;
  DType type = tensors[0].dtype();
  int output = 0;
  for (int64_t d = 0; d + 1 < indices.rank(); ++d) {
    int64_t n = productOf(indices.dims(), 0, d + 1);
    Splits uniform;
    for (int64_t i = 0; i <= n; ++i)
      uniform.push_back(i * indices.dim(d + 1));
    context.setOutput(output++, indexVector(type, uniform));
  }
  std::vector<Splits> made(nested.size(), Splits{0});
  std::vector<int64_t> from;
  int64_t inner = productOf(values.dims(), 1, values.rank());
  for (int64_t i = 0; i < indices.numElements(); ++i) {
    int64_t start = intAt(indices, i);
    if (start < 0 || start >= rows)
      return invalid("indices[", i, "] = ", start, " is not in [0, ", rows, ")");
    int64_t limit = start + 1;
    for (size_t l = 0; l < nested.size(); ++l) {
      for (int64_t r = start; r < limit; ++r)
        made[l].push_back(made[l].back() + nested[l][r + 1] - nested[l][r]);
      start = nested[l][start];
      limit = nested[l][limit];
    }
    for (int64_t k = start * inner; k < limit * inner; ++k)
      from.push_back(k);
    if (from.size() > static_cast<size_t>(memoryBudget() / 8))
      return absl::ResourceExhaustedError("too many values gathered");
  }
  // a scalar index leaves the row itself
  for (size_t l = indices.rank() == 0; l < made.size(); ++l)
    context.setOutput(output++, indexVector(type, made[l]));
  Dims dims = values.dims();
  dims[0] = made.back().back();
  LATHE_TRY_VALUE(out, pick(context, values, dims, from));
  context.setOutput(output, out);
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(RaggedGather, raggedGather);

absl::Status raggedFillEmptyRows(KernelContext &context) {
  Tensor rowids = context.input(0), values = context.input(1), rest = context.input(3);
  LATHE_TRY_VALUE(rows, oneInt(context.input(2), "nrows"));
  if (rowids.rank() != 1 || values.rank() != 1 || rowids.dim(0) != values.dim(0) || rest.rank() != 0)
    return invalid("value_rowids and values must be vectors of one length, default_value a scalar: ",
                   dimsToString(rowids.dims()), ", ", dimsToString(values.dims()), ", ", dimsToString(rest.dims()));
  if (rows < 0 || rows > memoryBudget() / 8)
    return invalid("nrows ", rows, " is out of range");
  std::vector<int64_t> counts(rows, 0), starts(rows), reverse;
  for (int64_t i = 0; i < rowids.numElements(); ++i) {
    int64_t row = intAt(rowids, i);
    if (row < 0 || row >= rows)
      return invalid("value_rowids(", i, ") is invalid: ", row, " >= ", rows);
    ++counts[row];
  }
  LATHE_TRY_VALUE(empty, context.allocateOutput(2, {rows}));
  int64_t total = 0;
  for (int64_t r = 0; r < rows; ++r) {
    empty.data<bool>()[r] = counts[r] == 0;
    starts[r] = total;
    total += std::max<int64_t>(counts[r], 1);
  }
  std::vector<int64_t> ids(total), from(total, -1), next = starts;
  for (int64_t i = 0; i < rowids.numElements(); ++i) {
    int64_t at = next[intAt(rowids, i)]++;
    from[at] = i;
    reverse.push_back(at);
  }
  for (int64_t r = 0; r < rows; ++r)
    std::fill_n(ids.begin() + starts[r], std::max<int64_t>(counts[r], 1), r);
  LATHE_TRY_VALUE(out, pick(context, values, {total}, from, rest));
  context.setOutput(0, int64Vector(ids));
  context.setOutput(1, out);
  context.setOutput(3, int64Vector(reverse));
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(RaggedFillEmptyRows, raggedFillEmptyRows);

} // namespace
} // namespace lathe::rt
