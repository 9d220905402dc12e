// SavedModels and compiled modules in Python.
#include "runtime/python/PySession.h"

#include "runtime/session/SavedModel.h"

#include "runtime/abi/quantized_abi.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;

namespace lathe::py {
namespace {

/// (key, tensor, dtype, shape or None) of each tensor of one side of a signature.
nb::list tensorsOf(const std::map<std::string, SignatureTensor> &tensors) {
  nb::list list;
  for (auto &[key, t] : tensors)
    list.append(nb::make_tuple(key, t.tensor, static_cast<int>(t.dtype), t.dims ? nb::object(nb::tuple(nb::cast(*t.dims))) : nb::none()));
  return list;
}

nb::dict signaturesOf(const std::map<std::string, ModelSignature> &signatures) {
  nb::dict all;
  for (auto &[key, s] : signatures)
    all[key.c_str()] = nb::make_tuple(tensorsOf(s.inputs), tensorsOf(s.outputs), s.method);
  return all;
}

/// A file by its path, or bytes.
nb::dict readGraph(nb::object source, const std::string &tag) {
  absl::StatusOr<GraphFile> file;
  if (nb::isinstance<nb::bytes>(source)) {
    nb::bytes bytes = nb::cast<nb::bytes>(source);
    std::string_view view(static_cast<const char *>(bytes.data()), bytes.size());
    nb::gil_scoped_release release;
    file = ParseGraphFile(view, "the graph", tag);
  } else {
    std::string path = nb::cast<std::string>(source);
    nb::gil_scoped_release release;
    file = ReadGraphFile(path, tag);
  }
  check(file.status());
  nb::dict d;
  d["kind"] = file->kind == GraphFile::Kind::Graph ? "graph" : file->kind == GraphFile::Kind::MetaGraph ? "metagraph" : "savedmodel";
  d["graph"] = nb::bytes(file->graph.data(), file->graph.size());
  d["signatures"] = signaturesOf(file->signatures);
  d["checkpoint"] = file->checkpoint;
  d["restore_op"] = file->restoreOp;
  d["filename_tensor"] = file->filenameTensor;
  return d;
}

nb::object loadSavedModel(const std::string &folder, const std::vector<std::string> &tags, const nb::dict &options) {
  SessionOptions how = optionsFrom(options);
  auto bundle = std::make_shared<SavedModelBundle>();
  absl::Status status;
  {
    nb::gil_scoped_release release;
    status = LoadSavedModel(how, {}, folder, tags, bundle.get());
  }
  check(status);
  auto session = std::make_shared<PySession>(std::shared_ptr<Session>(bundle, bundle->session.get()));
  return nb::make_tuple(nb::cast(session), signaturesOf(bundle->signatures));
}

/// Scales, zero points and the dimension that they belong to, of a quantized tensor; None of others.
nb::object quantizationOf(const lathe_tensor_info &info) {
  const lathe_quantized_info *q = lathe_quantization(&info);
  if (!q)
    return nb::none();
  std::vector<float> scales(q->scales, q->scales + q->num_scales);
  std::vector<int64_t> zeros(q->zero_points, q->zero_points + q->num_scales);
  return nb::make_tuple(nb::cast(scales), nb::cast(zeros), q->axis);
}

/// Name, tensor, dtype, dimensions (sizes, or -1 where they are known at run time only) and quantization of an ABI tensor.
nb::tuple infoOf(const lathe_tensor_info &info) {
  std::vector<int64_t> dims;
  for (int i = 0; i < info.rank; ++i)
    dims.push_back(info.dims[i] >= 0 ? info.dims[i] : -1);
  return nb::make_tuple(std::string(info.name), std::string(info.tensor), info.dtype, nb::tuple(nb::cast(dims)), quantizationOf(info));
}

nb::tuple openModule(const std::string &path, const std::string &weights, int threads) {
  std::shared_ptr<SharedModule> module;
  absl::Status status;
  {
    nb::gil_scoped_release release;
    auto opened = SharedModule::open(path, weights);
    status = opened.status();
    if (opened.ok())
      module = *std::move(opened);
  }
  check(status);
  const lathe_module &abi = module->abi();
  nb::list entries;
  for (int i = 0; i < abi.num_entries; ++i) {
    const lathe_entry &e = *abi.entries[i];
    nb::list inputs, outputs;
    for (int k = 0; k < e.num_inputs; ++k)
      inputs.append(infoOf(*e.inputs[k]));
    for (int k = 0; k < e.num_outputs; ++k)
      outputs.append(infoOf(*e.outputs[k]));
    entries.append(nb::make_tuple(std::string(e.name), inputs, outputs));
  }
  nb::list variables;
  for (int i = 0; i < abi.num_variables; ++i)
    variables.append(infoOf(*abi.variables[i]->tensor));
  nb::dict facts;
  facts["name"] = std::string(abi.name);
  facts["producer"] = std::string(abi.producer);
  facts["target"] = std::string(abi.target);
  facts["constants_size"] = abi.constants_size;
  facts["entries"] = entries;
  facts["variables"] = variables;
  auto session = std::make_shared<PySession>(std::make_shared<Session>(&abi, threads), module);
  return nb::make_tuple(nb::cast(session), facts);
}

} // namespace

void addModels(nb::module_ &m) {
  m.def("read_graph", readGraph, nb::arg("source"), nb::arg("tag") = "", "What a graph file (a path, or its bytes) holds");
  m.def("load_saved_model", loadSavedModel, nb::arg("folder"), nb::arg("tags"), nb::arg("options"),
        "A session on a SavedModel, and its signatures");
  m.def("open_module", openModule, nb::arg("path"), nb::arg("weights") = "", nb::arg("threads") = 1,
        "A session over a compiled module, and what it is");
}

} // namespace lathe::py
