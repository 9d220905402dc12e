// The nodes that make tables, and LookupTable*, InitializeTable*.
#include "base/Bytes.h"
#include "runtime/kernels/tables/Table.h"

#include "absl/strings/numbers.h"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace lathe::rt {
namespace {

struct TableSpec {
  explicit TableSpec(KernelInit &init)
      : keyType(init.attr<DType>("key_dtype")), valueType(init.attr<DType>("value_dtype")) {
    const std::string &op = init.node().op;
    kind = op.find("Dense") != std::string::npos     ? Table::Kind::Dense
           : op.find("Mutable") != std::string::npos ? Table::Kind::Mutable
                                                     : Table::Kind::Fixed;
    if (init.hasAttr("value_shape"))
      valueDims = init.attr<PartialShape>("value_shape").value_or(std::vector<int64_t>());
    for (int64_t d : valueDims)
      if (d < 0)
        init.fail(invalid("value_shape must be known: ", dimsToString(valueDims)));
    if (op.find("OfTensors") != std::string::npos && valueDims.size() > 1)
      init.fail(invalid("Default value must be a vector, got shape ", dimsToString(valueDims)));
    if (kind == Table::Kind::Dense) {
      buckets = init.attr<int64_t>("initial_num_buckets");
      load = init.attr<float>("max_load_factor");
      if (buckets < 4 || (buckets & (buckets - 1)))
        init.fail(invalid("Number of buckets must be at least 4 and a power of 2, got: ", buckets));
      if (load <= 0 || load >= 1)
        init.fail(invalid("max_load_factor must be between 0 and 1, got: ", load));
    }
    if (kind == Table::Kind::Fixed && !valueDims.empty())
      init.fail(invalid("a fixed table has scalar values"));
  }

  absl::StatusOr<std::shared_ptr<Table>> make(KernelContext &context) const {
    if (kind != Table::Kind::Dense)
      return std::make_shared<Table>(kind, keyType, valueType, std::vector<int64_t>(), valueDims);
    Tensor empty = context.input("empty_key");
    if (empty.rank() > 1)
      return invalid("Empty key must be a scalar or a vector, got shape ", dimsToString(empty.dims()));
    auto table = std::make_shared<Table>(kind, keyType, valueType, empty.dims(), valueDims);
    table->emptyKey = empty;
    table->initialBuckets = buckets;
    table->maxLoad = load;
    if (context.numInputs() > 1) {
      table->deletedKey = context.input("deleted_key");
      if (table->deletedKey.dims() != empty.dims())
        return invalid("Empty and deleted keys must have same shape, got shapes: ", dimsToString(empty.dims()), " and ",
                       dimsToString(table->deletedKey.dims()));
      bool same = empty.dtype() == DType::String
                      ? empty.strings() == table->deletedKey.strings()
                      : !memcmp(empty.data(), table->deletedKey.data(), empty.sizeBytes());
      if (same)
        return invalid("Empty and deleted keys cannot be equal");
    }
    return table;
  }

  Table::Kind kind;
  DType keyType, valueType;
  std::vector<int64_t> valueDims;
  int64_t buckets = 0;
  double load = 0.8;
};

class TableNode : public ResourceKernel<Table> {
public:
  explicit TableNode(KernelInit &init) : ResourceKernel(init), spec(init) {
    // a node that shares neither name nor node name still keeps one table
    name = init.attr<std::string>("shared_name");
    if (name.empty())
      name = init.node().name;
  }

protected:
  absl::StatusOr<std::shared_ptr<Table>> create(KernelContext &context) override { return spec.make(context); }
  absl::Status check(const Table &table) override {
    if (table.keyType != spec.keyType || table.valueType != spec.valueType)
      return invalid("Conflicting key/value dtypes ", dtypeName(spec.keyType), "->", dtypeName(spec.valueType), " with ",
                     dtypeName(table.keyType), "-", dtypeName(table.valueType), " for table ", name);
    return absl::OkStatus();
  }

private:
  TableSpec spec;
};
LATHE_HOST_KERNEL(HashTable, TableNode);
LATHE_HOST_KERNEL(HashTableV2, TableNode);
LATHE_HOST_KERNEL(MutableHashTable, TableNode);
LATHE_HOST_KERNEL(MutableHashTableV2, TableNode);
LATHE_HOST_KERNEL(MutableHashTableOfTensors, TableNode);
LATHE_HOST_KERNEL(MutableHashTableOfTensorsV2, TableNode);
LATHE_HOST_KERNEL(MutableDenseHashTable, TableNode);
LATHE_HOST_KERNEL(MutableDenseHashTableV2, TableNode);

/// A new table each time, owned by its handles.
class AnonymousTable : public HostKernel {
public:
  explicit AnonymousTable(KernelInit &init) : spec(init) {}
  absl::Status compute(KernelContext &context) override {
    static std::atomic<int64_t> number{0};
    LATHE_TRY_VALUE(table, spec.make(context));
    context.setOutput(0, makeHandle("", absl::StrCat("AnonymousTable", number++), table));
    return absl::OkStatus();
  }

private:
  TableSpec spec;
};
LATHE_HOST_KERNEL(AnonymousHashTable, AnonymousTable);
LATHE_HOST_KERNEL(AnonymousMutableHashTable, AnonymousTable);
LATHE_HOST_KERNEL(AnonymousMutableHashTableOfTensors, AnonymousTable);
LATHE_HOST_KERNEL(AnonymousMutableDenseHashTable, AnonymousTable);

absl::Status find(KernelContext &context) {
  LATHE_TRY_VALUE(table, context.resource<Table>(0));
  Tensor values;
  LATHE_TRY(table->find(context, context.input(1), context.input(2), &values));
  if (values.dtype() != context.node->outputTypes[0])
    return invalid("the table's values are ", dtypeName(values.dtype()), ", not ", dtypeName(context.node->outputTypes[0]));
  context.setOutput(0, values);
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(LookupTableFind, find);
LATHE_HOST_FUNCTION(LookupTableFindV2, find);

absl::Status insert(KernelContext &context) {
  LATHE_TRY_VALUE(table, context.resource<Table>(0));
  return table->insert(context.input(1), context.input(2), false);
}
LATHE_HOST_FUNCTION(LookupTableInsert, insert);
LATHE_HOST_FUNCTION(LookupTableInsertV2, insert);

absl::Status import(KernelContext &context) {
  LATHE_TRY_VALUE(table, context.resource<Table>(0));
  if (table->kind == Table::Kind::Fixed)
    return table->initialize(context.input(1), context.input(2));
  return table->insert(context.input(1), context.input(2), true);
}
LATHE_HOST_FUNCTION(LookupTableImport, import);
LATHE_HOST_FUNCTION(LookupTableImportV2, import);

absl::Status initialize(KernelContext &context) {
  LATHE_TRY_VALUE(table, context.resource<Table>(0));
  Tensor keys = context.input(1), values = context.input(2);
  if (keys.rank() != 1)
    return invalid("Keys must be a vector, but received shape ", dimsToString(keys.dims()));
  return table->initialize(keys, values);
}
LATHE_HOST_FUNCTION(InitializeTable, initialize);
LATHE_HOST_FUNCTION(InitializeTableV2, initialize);

absl::Status remove(KernelContext &context) {
  LATHE_TRY_VALUE(table, context.resource<Table>(0));
  return table->remove(context.input(1));
}
LATHE_HOST_FUNCTION(LookupTableRemoveV2, remove);

absl::Status size(KernelContext &context) {
  LATHE_TRY_VALUE(table, context.resource<Table>(0));
  LATHE_TRY_VALUE(count, table->size());
  context.setOutput(0, Tensor::scalar<int64_t>(DType::Int64, count));
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(LookupTableSize, size);
LATHE_HOST_FUNCTION(LookupTableSizeV2, size);

absl::Status exportAll(KernelContext &context) {
  LATHE_TRY_VALUE(table, context.resource<Table>(0));
  Tensor keys, values;
  LATHE_TRY(table->exportAll(context, &keys, &values));
  context.setOutput(0, keys);
  context.setOutput(1, values);
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(LookupTableExport, exportAll);
LATHE_HOST_FUNCTION(LookupTableExportV2, exportAll);

/// What a line of a vocabulary file gives for a key or value: -2 the whole line, -1 its number, else a column.
absl::Status fieldOf(const std::vector<std::string> &columns, const std::string &line, int64_t number, int64_t index,
                     Tensor &out, int64_t at) {
  if (index == -1) {
    if (out.dtype() != DType::Int64)
      return invalid("line numbers are int64, not ", dtypeName(out.dtype()));
    out.data<int64_t>()[at] = number;
    return absl::OkStatus();
  }
  if (index >= static_cast<int64_t>(columns.size()))
    return invalid("Invalid number of columns in line ", number, " (", line, "): expected at least ", index + 1);
  const std::string &text = index == -2 ? line : columns[index];
  bool good = true;
  switch (out.dtype()) {
  case DType::String:
    out.mutableStrings()[at] = text;
    break;
  case DType::Int64:
    good = absl::SimpleAtoi(text, &out.data<int64_t>()[at]);
    break;
  case DType::Int32:
    good = absl::SimpleAtoi(text, &out.data<int32_t>()[at]);
    break;
  case DType::Float32:
    good = absl::SimpleAtof(text, &out.data<float>()[at]);
    break;
  case DType::Float64:
    good = absl::SimpleAtod(text, &out.data<double>()[at]);
    break;
  default:
    good = false;
  }
  if (!good)
    return invalid("Field ", text, " in line ", number, " is not a valid ", dtypeName(out.dtype()), ".");
  return absl::OkStatus();
}

absl::Status initializeFromFile(KernelContext &context) {
  const NodeInfo &node = *context.node;
  LATHE_TRY_VALUE(table, context.resource<Table>(0));
  LATHE_TRY_VALUE(path, oneString(context.input(1), "filename"));
  int64_t keyIndex = *attrOf<int64_t>(node, "key_index"), valueIndex = *attrOf<int64_t>(node, "value_index");
  int64_t limit = *attrOf<int64_t>(node, "vocab_size"), offset = *attrOf<int64_t>(node, "offset");
  const std::string &delimiter = *attrOf<std::string>(node, "delimiter");
  if (keyIndex < -2 || valueIndex < -2)
    return invalid("key_index and value_index must be at least -2");
  if (delimiter.size() != 1)
    return invalid("delimiter should be only 1 char");
  auto text = readFile(path);
  if (!text.ok())
    return absl::NotFoundError(absl::StrCat(path, "; ", text.status().message()));
  std::vector<std::string> lines;
  for (size_t at = 0; at < text->size() && (limit < 0 || static_cast<int64_t>(lines.size()) < limit);) {
    size_t end = std::min(text->find('\n', at), text->size());
    std::string line = text->substr(at, end - at);
    if (!line.empty() && line.back() == '\r')
      line.pop_back();
    lines.push_back(std::move(line));
    at = end + 1;
  }
  if (limit >= 0 && static_cast<int64_t>(lines.size()) < limit)
    return invalid("Invalid vocab_size in ", path, ": expected ", limit, " but got ", lines.size());
  int64_t n = static_cast<int64_t>(lines.size());
  Tensor keys = Tensor::allocate(table->keyType, {n}), values = Tensor::allocate(table->valueType, {n});
  for (int64_t i = 0; i < n; ++i) {
    std::vector<std::string> columns;
    if (keyIndex >= 0 || valueIndex >= 0)
      for (size_t at = 0; at <= lines[i].size();) {
        size_t end = std::min(lines[i].find(delimiter[0], at), lines[i].size());
        columns.push_back(lines[i].substr(at, end - at));
        at = end + 1;
      }
    LATHE_TRY(fieldOf(columns, lines[i], i + offset, keyIndex, keys, i));
    LATHE_TRY(fieldOf(columns, lines[i], i + offset, valueIndex, values, i));
  }
  return table->initialize(keys, values);
}
LATHE_HOST_FUNCTION(InitializeTableFromTextFile, initializeFromFile);
LATHE_HOST_FUNCTION(InitializeTableFromTextFileV2, initializeFromFile);

} // namespace
} // namespace lathe::rt
