// Sparse tensors as strings or variants, and kept in maps between steps: SerializeSparse, SerializeManySparse,
// DeserializeSparse, DeserializeManySparse, AddSparseToTensorsMap, AddManySparseToTensorsMap, TakeManySparseFromTensorsMap.
#include "base/Memory.h"
#include "runtime/kernels/Wire.h"
#include "runtime/kernels/sparse/Coo.h"

#include <algorithm>
#include <unordered_map>

namespace lathe::rt {
namespace {

using Parts = std::array<Tensor, 3>;

/// A plain tensor as an element of a Variant tensor.
class TensorObject : public Object {
public:
  explicit TensorObject(Tensor tensor) : tensor(std::move(tensor)) {}
  std::string describe() const override { return "tensor of " + std::string(dtypeName(tensor.dtype())); }
  const Tensor tensor;
};

absl::Status store(const Parts &parts, Tensor &out, int64_t at) {
  for (int64_t i = 0; i < 3; ++i) {
    if (out.dtype() == DType::Variant) {
      out.mutableObjects()[at + i] = std::make_shared<TensorObject>(parts[i]);
      continue;
    }
    LATHE_TRY_VALUE(text, writeTensor(parts[i], true));
    out.mutableStrings()[at + i] = text;
  }
  return absl::OkStatus();
}

absl::StatusOr<Tensor> load(const Tensor &in, int64_t at, DType type) {
  Tensor t;
  if (in.dtype() == DType::Variant) {
    auto *object = dynamic_cast<const TensorObject *>(in.objects()[at].get());
    if (!object)
      return invalid("element ", at, " of serialized_sparse holds no tensor");
    t = object->tensor;
  } else if (in.dtype() != DType::String) {
    return invalid("serialized_sparse is of type ", dtypeName(in.dtype()));
  } else {
    LATHE_TRY_VALUE(read, readTensor(in.strings()[at]));
    t = read;
  }
  if (t.dtype() != type)
    return invalid("Requested SparseTensor of type ", dtypeName(type), " but found ", dtypeName(t.dtype()));
  return t;
}

absl::Status serializeSparse(KernelContext &context) {
  LATHE_TRY(cooInput(context, 0).status());
  LATHE_TRY_VALUE(out, context.allocateOutput(0, {3}));
  return store({context.input(0), context.input(1), context.input(2)}, out, 0);
}
LATHE_HOST_FUNCTION(SerializeSparse, serializeSparse);

/// The rows along the first dimension as sparse tensors of one rank less, one for each of dims[0].
absl::Status takeApart(KernelContext &context, const Coo &in, std::vector<Parts> &rows) {
  if (in.rank() < 2)
    return invalid("Rank of input SparseTensor should be > 1, but saw rank: ", in.rank());
  if (in.dims[0] > memoryBudget() / 64)
    return absl::ResourceExhaustedError(absl::StrCat(in.dims[0], " rows are too many"));
  std::vector<std::vector<int64_t>> members(in.dims[0]);
  for (int64_t i = 0; i < in.count(); ++i) {
    int64_t row = in.row(i)[0];
    if (row < 0 || row >= in.dims[0])
      return invalid("Received unexpected column 0 value in input SparseTensor: ", row, " < 0 or >= N (= ", in.dims[0], ")");
    members[row].push_back(i);
  }
  std::vector<int64_t> rest(in.dims.begin() + 1, in.dims.end());
  for (const std::vector<int64_t> &member : members) {
    int64_t n = static_cast<int64_t>(member.size());
    Tensor indices = Tensor::allocate(DType::Int64, {n, in.rank() - 1});
    for (int64_t i = 0; i < n; ++i)
      std::copy_n(in.row(member[i]) + 1, in.rank() - 1, indices.data<int64_t>() + i * (in.rank() - 1));
    LATHE_TRY_VALUE(values, pick(context, in.values, {n}, member));
    rows.push_back({indices, values, int64Vector(rest)});
  }
  return absl::OkStatus();
}

absl::Status serializeMany(KernelContext &context) {
  LATHE_TRY_VALUE(in, cooInput(context, 0));
  std::vector<Parts> rows;
  LATHE_TRY(takeApart(context, in, rows));
  LATHE_TRY_VALUE(out, context.allocateOutput(0, {in.dims[0], 3}));
  for (size_t r = 0; r < rows.size(); ++r)
    LATHE_TRY(store(rows[r], out, 3 * static_cast<int64_t>(r)));
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(SerializeManySparse, serializeMany);

/// Puts sparse tensors of one rank together under new leading dimensions `lead`; the sizes grow to the largest.
absl::Status putTogether(KernelContext &context, const std::vector<Parts> &rows, const std::vector<int64_t> &lead) {
  std::vector<Coo> all;
  int64_t total = 0;
  for (const Parts &parts : rows) {
    LATHE_TRY_VALUE(coo, makeCoo(parts[0], parts[1], parts[2]));
    if (!all.empty() && coo.rank() != all[0].rank())
      return invalid("Inconsistent rank across SparseTensors: rank prior to SparseTensor[", all.size(), "] was: ",
                     all[0].rank(), " but rank of SparseTensor[", all.size(), "] is: ", coo.rank());
    total += coo.count();
    all.push_back(coo);
  }
  int64_t outer = static_cast<int64_t>(lead.size()), rank = outer + all[0].rank();
  std::vector<int64_t> dims = lead;
  dims.insert(dims.end(), all[0].dims.begin(), all[0].dims.end());
  LATHE_TRY_VALUE(indices, context.allocateOutput(0, {total, rank}));
  LATHE_TRY_VALUE(values, context.allocateOutput(1, {total}));
  int64_t at = 0;
  for (size_t r = 0; r < all.size(); ++r) {
    for (int64_t d = 0; d < all[r].rank(); ++d)
      dims[outer + d] = std::max(dims[outer + d], all[r].dims[d]);
    for (int64_t i = 0; i < all[r].count(); ++i, ++at) {
      int64_t *row = indices.data<int64_t>() + at * rank, rest = static_cast<int64_t>(r);
      for (int64_t d = outer; d-- > 0;) {
        row[d] = rest % lead[d];
        rest /= lead[d];
      }
      std::copy_n(all[r].row(i), all[r].rank(), row + outer);
      copyElement(values, at, all[r].values, i);
    }
  }
  context.setOutput(2, int64Vector(dims));
  return absl::OkStatus();
}

absl::Status deserialize(KernelContext &context) {
  Tensor in = context.input(0);
  DType type = *attrOf<DType>(*context.node, "dtype");
  if (in.rank() < 1 || in.dims().back() != 3)
    return invalid("Serialized sparse should have 3 as the last dimension but it has shape ", dimsToString(in.dims()));
  std::vector<int64_t> lead(in.dims().begin(), in.dims().end() - 1);
  if (in.numElements() == 0)
    return invalid("Serialized sparse should have non-zero elements: ", dimsToString(in.dims()));
  std::vector<Parts> rows;
  for (int64_t at = 0; at < in.numElements(); at += 3) {
    LATHE_TRY_VALUE(indices, load(in, at, DType::Int64));
    LATHE_TRY_VALUE(values, load(in, at + 1, type));
    LATHE_TRY_VALUE(shape, load(in, at + 2, DType::Int64));
    rows.push_back({indices, values, shape});
  }
  return putTogether(context, rows, lead);
}
LATHE_HOST_FUNCTION(DeserializeSparse, deserialize);

absl::Status deserializeMany(KernelContext &context) {
  if (context.input(0).rank() != 2)
    return invalid("Serialized sparse should be a matrix but received shape ", dimsToString(context.input(0).dims()));
  return deserialize(context);
}
LATHE_HOST_FUNCTION(DeserializeManySparse, deserializeMany);

/// Sparse tensors kept under numbers until they are taken.
class SparseTensors : public Resource {
public:
  std::string describe() const override { return "SparseTensorsMap"; }

  int64_t add(Parts parts) {
    std::lock_guard<std::mutex> lock(mutex);
    kept.emplace(next, std::move(parts));
    return next++;
  }
  absl::StatusOr<Parts> take(int64_t handle) {
    std::lock_guard<std::mutex> lock(mutex);
    auto it = kept.find(handle);
    if (it == kept.end())
      return invalid("Unable to find SparseTensor: ", handle, " in map");
    Parts parts = std::move(it->second);
    kept.erase(it);
    return parts;
  }

private:
  std::mutex mutex;
  std::unordered_map<int64_t, Parts> kept;
  int64_t next = 0;
};

absl::StatusOr<std::shared_ptr<SparseTensors>> mapOf(KernelContext &context, bool make) {
  std::string container = *attrOf<std::string>(*context.node, "container"),
              name = *attrOf<std::string>(*context.node, "shared_name");
  if (container.empty())
    container = ResourceManager::kDefaultContainer;
  if (name.empty())
    name = context.node->name;
  if (!make) {
    LATHE_TRY_VALUE(any, context.resources->lookup(container, name));
    auto map = std::dynamic_pointer_cast<SparseTensors>(any);
    if (!map)
      return invalid("'", name, "' is no map of sparse tensors");
    return map;
  }
  return context.resources->lookupOrCreate<SparseTensors>(
      container, name, []() -> absl::StatusOr<std::shared_ptr<SparseTensors>> { return std::make_shared<SparseTensors>(); });
}

absl::Status addSparse(KernelContext &context) {
  LATHE_TRY(cooInput(context, 0).status());
  LATHE_TRY_VALUE(map, mapOf(context, true));
  context.setOutput(0, Tensor::scalar<int64_t>(DType::Int64,
                                               map->add({context.input(0), context.input(1), context.input(2)})));
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(AddSparseToTensorsMap, addSparse);

absl::Status addMany(KernelContext &context) {
  LATHE_TRY_VALUE(in, cooInput(context, 0));
  std::vector<Parts> rows;
  LATHE_TRY(takeApart(context, in, rows));
  LATHE_TRY_VALUE(map, mapOf(context, true));
  LATHE_TRY_VALUE(out, context.allocateOutput(0, {in.dims[0]}));
  // rows without values get their numbers last, as in TensorFlow
  for (bool empty : {false, true})
    for (size_t r = 0; r < rows.size(); ++r)
      if ((rows[r][1].numElements() == 0) == empty)
        out.data<int64_t>()[r] = map->add(rows[r]);
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(AddManySparseToTensorsMap, addMany);

absl::Status takeMany(KernelContext &context) {
  Tensor handles = context.input(0);
  DType type = *attrOf<DType>(*context.node, "dtype");
  if (handles.rank() != 1 || handles.numElements() == 0)
    return invalid("sparse_handles should be a vector of at least one, found shape ", dimsToString(handles.dims()));
  LATHE_TRY_VALUE(map, mapOf(context, false));
  std::vector<Parts> rows;
  for (int64_t handle : intsOf(handles)) {
    LATHE_TRY_VALUE(parts, map->take(handle));
    if (parts[1].dtype() != type)
      return invalid("Requested SparseTensor of type ", dtypeName(type), " but SparseTensor[", handle, "].values is of type ",
                     dtypeName(parts[1].dtype()));
    rows.push_back(parts);
  }
  return putTogether(context, rows, {handles.dim(0)});
}
LATHE_HOST_FUNCTION(TakeManySparseFromTensorsMap, takeMany);

} // namespace
} // namespace lathe::rt
