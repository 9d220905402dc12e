// Tensor lists and tensor arrays. The gradient of a list is a list; that of an array is the array which TensorArrayGrad keeps
// beside it under the name of this set of gradients.
#include "graph/gradients/Expr.h"
#include "graph/gradients/Rules.h"

namespace lathe::graphdef {
namespace {

NamedAttr elementType(Grad &g) { return {"element_dtype", g.node.typeAttr("element_dtype")}; }
Val elementShape(Val list) { return call("TensorListElementShape", {list}, {{"shape_type", DType::Int32}}); }
Val rowShape(Val x) { return part(Shape(x), 1); }

void popBack(Grad &g) {
  Val list = g.has(0) ? g.dy(0) : call("EmptyTensorList", {elementShape(g.out(0)), intOf(g.out(0), -1)}, {elementType(g)});
  g.set(0, call("TensorListPushBack", {list, g.dy(1)}));
}

void addLists(Rules &r) {
  r.add({"TensorListPushBack"}, [](Grad &g) {
    Val popped = call("TensorListPopBack", {g.dy(), Shape(g.in(1))}, {elementType(g)});
    g.set(0, popped);
    g.set(1, popped.at(1));
  });
  r.add({"TensorListPopBack"}, popBack);
  r.add({"TensorListStack"}, [](Grad &g) { g.set(0, call("TensorListFromTensor", {g.dy(), rowShape(g.dy())})); });
  r.add({"TensorListFromTensor"},
        [](Grad &g) { g.set(0, call("TensorListStack", {g.dy(), rowShape(g.in(0))}, {elementType(g)})); });
  r.add({"TensorListGetItem"}, [](Grad &g) {
    Val list = g.in(0);
    Val zeros = call("TensorListReserve", {elementShape(list), call("TensorListLength", {list})}, {elementType(g)});
    g.set(0, call("TensorListSetItem", {zeros, g.in(1), g.dy()}));
  });
  r.add({"TensorListSetItem"}, [](Grad &g) {
    g.set(0, call("TensorListSetItem", {g.dy(), g.in(1), ZerosLike(g.in(2))}));
    g.set(2, call("TensorListGetItem", {g.dy(), g.in(1), Shape(g.in(2))}, {elementType(g)}));
  });
  r.add({"TensorListResize"}, [](Grad &g) { g.set(0, call("TensorListResize", {g.dy(), call("TensorListLength", {g.in(0)})})); });
  r.add({"TensorListGather"}, [](Grad &g) {
    Val list = g.in(0);
    g.set(0, call("TensorListScatterV2", {g.dy(), g.in(1), elementShape(list), call("TensorListLength", {list})}));
  });
  r.add({"TensorListScatter", "TensorListScatterV2"},
        [](Grad &g) { g.set(0, call("TensorListGather", {g.dy(), g.in(1), rowShape(g.in(0))}, {elementType(g)})); });
  r.add({"TensorListScatterIntoExistingList"}, [](Grad &g) {
    g.set(0, call("TensorListScatterIntoExistingList", {g.dy(), ZerosLike(g.in(1)), g.in(2)}));
    g.set(1, call("TensorListGather", {g.dy(), g.in(2), rowShape(g.in(1))}, {elementType(g)}));
  });
  r.add({"TensorListConcat", "TensorListConcatV2"},
        [](Grad &g) { g.set(0, call("TensorListSplit", {g.dy(0), elementShape(g.in(0)), g.out(1)})); });
  r.add({"TensorListSplit"}, [](Grad &g) {
    Val shape = Concat({g.e.int32s({-1}), rowShape(g.in(0))}, g.e.int32(0));
    g.set(0, call("TensorListConcatV2", {g.dy(), shape, g.in(2)}, {elementType(g)}));
  });
}

/// The gradient's array of the array at input 0, with a flow that orders what is done to it. The op's version is in its name.
struct GradArray {
  Grad &g;
  std::string version;
  Val handle, flow;

  GradArray(Grad &g, Val flowIn) : g(g) {
    const std::string &op = g.node.op();
    version = op.compare(op.size() - 2, 2, "V2") == 0 ? "V2" : op.compare(op.size() - 2, 2, "V3") == 0 ? "V3" : "";
    handle = call(("TensorArrayGrad" + version).c_str(), {g.in(0), flowIn}, {{"source", g.e.scope.substr(0, g.e.scope.find('/'))}});
    if (version == "V3") {
      flow = handle.at(1);
    } else if (handle) { // the first versions give no flow: the array has to be there before its flow is
      flow = Identity(flowIn);
      if (flow)
        g.e.graph.addControl(handle.end.node, flow.end.node);
    }
  }
  Val run(const char *what, std::vector<ArgVals> args, const NamedAttrs &attrs = {}) {
    args.insert(args.begin(), handle);
    args.push_back(flow);
    return call((std::string("TensorArray") + what + version).c_str(), args, attrs);
  }
};

void addArrays(Rules &r) {
  // (handle, index, flow) -> value
  r.add({"TensorArrayRead", "TensorArrayReadV2", "TensorArrayReadV3"},
        [](Grad &g) { g.set(2, GradArray(g, g.in(2)).run("Write", {g.in(1), g.dy()})); });
  // (handle, index, value, flow) -> flow
  r.add({"TensorArrayWrite", "TensorArrayWriteV2", "TensorArrayWriteV3"}, [](Grad &g) {
    g.set(2, GradArray(g, g.dy()).run("Read", {g.in(1)}, {{"dtype", g.node.inputType(2)}}));
    g.set(3, g.dy());
  });
  r.add({"TensorArrayGather", "TensorArrayGatherV2", "TensorArrayGatherV3"},
        [](Grad &g) { g.set(2, GradArray(g, g.in(2)).run("Scatter", {g.in(1), g.dy()})); });
  r.add({"TensorArrayScatter", "TensorArrayScatterV2", "TensorArrayScatterV3"}, [](Grad &g) {
    g.set(2, GradArray(g, g.dy()).run("Gather", {g.in(1)}, {{"dtype", g.node.inputType(2)}}));
    g.set(3, g.dy());
  });
  // (handle, flow) -> value, lengths
  r.add({"TensorArrayConcat", "TensorArrayConcatV2", "TensorArrayConcatV3"},
        [](Grad &g) { g.set(1, GradArray(g, g.in(1)).run("Split", {g.dy(0), g.out(1)})); });
  // (handle, value, lengths, flow) -> flow
  r.add({"TensorArraySplit", "TensorArraySplitV2", "TensorArraySplitV3"}, [](Grad &g) {
    g.set(1, GradArray(g, g.dy()).run("Concat", {}, {{"dtype", g.node.inputType(1)}}));
    g.set(3, g.dy());
  });
}

/// Values in a variant and out of it again.
void addVariants(Rules &r) {
  r.add({"OptionalFromValue"}, [](Grad &g) {
    tf::AttrValue shapes;
    for (int i = 0; i < g.node.numInputs(); ++i)
      shapes.mutable_list()->add_shape()->set_unknown_rank(true);
    Val d = call("OptionalGetValue", {g.dy()}, {{"output_types", g.node.inputTypes()}, {"output_shapes", shapes}});
    for (int i = 0; i < g.node.numInputs(); ++i)
      if (g.wants(i))
        g.set(i, d.at(i));
  });
  r.add({"OptionalGetValue", "CompositeTensorVariantToComponents"}, [](Grad &g) {
    std::vector<Val> dys;
    for (int i = 0; i < g.node.numOutputs(); ++i)
      dys.push_back(g.dy(i));
    bool optional = g.node.op() == "OptionalGetValue";
    g.set(0, call(optional ? "OptionalFromValue" : "CompositeTensorVariantFromComponents", {dys}, g.attrs({"metadata"})));
  });
  r.add({"CompositeTensorVariantFromComponents"}, [](Grad &g) {
    NamedAttrs attrs = g.attrs({"metadata"});
    attrs.push_back({"Tcomponents", g.node.inputTypes()});
    Val d = call("CompositeTensorVariantToComponents", {g.dy()}, attrs);
    for (int i = 0; i < g.node.numInputs(); ++i)
      if (g.wants(i))
        g.set(i, d.at(i));
  });
  r.add({"RaggedTensorToVariant"}, [](Grad &g) {
    int values = g.node.numInputs() - 1;
    Val splits = values ? g.in(values - 1) : Cast(g.e.int32s({}), DType::Int64);
    g.set(values, call("RaggedTensorToVariantGradient", {g.dy(), splits, Shape(g.in(values))}, {{"Tvalues", g.node.inputType(values)}}));
  });
  r.add({"RaggedTensorFromVariant"}, [](Grad &g) {
    int values = g.node.numOutputs() - 1;
    std::vector<Val> splits;
    for (int i = 0; i < values; ++i)
      splits.push_back(g.out(i));
    NamedAttrs attrs = g.attrs({"Tsplits"});
    attrs.push_back({"batched_input", true});
    g.set(0, call("RaggedTensorToVariant", {splits, g.dy(values)}, attrs));
  });
}

} // namespace

void addListRules(Rules &r) {
  addLists(r);
  addArrays(r);
  addVariants(r);
}

} // namespace lathe::graphdef
