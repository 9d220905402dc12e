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
    Val any = g.e.constant(Tensor::scalar<int32_t>(DType::Int32, -1));
    Val none = Cast(g.e.int32s({}), DType::Int64);
    g.set(0, call("TensorListConcatV2", {g.dy(), any, none}, {elementType(g)}));
  });
}

/// The gradient's array of the array at input 0, with a flow that orders what is done to it.
struct GradArray {
  Val handle, flow;

  GradArray(Grad &g, Val array, Val flowIn) {
    Val made = call("TensorArrayGradV3", {array, flowIn}, {{"source", g.e.scope.substr(0, g.e.scope.find('/'))}});
    handle = made;
    flow = made.at(1);
  }
};

void addArrays(Rules &r) {
  // (handle, index, flow) -> value
  r.add({"TensorArrayReadV3"}, [](Grad &g) {
    GradArray a(g, g.in(0), g.in(2));
    g.set(2, call("TensorArrayWriteV3", {a.handle, g.in(1), g.dy(), a.flow}));
  });
  // (handle, index, value, flow) -> flow
  r.add({"TensorArrayWriteV3"}, [](Grad &g) {
    GradArray a(g, g.in(0), g.dy());
    g.set(2, call("TensorArrayReadV3", {a.handle, g.in(1), a.flow}, {{"dtype", g.node.inputType(2)}}));
    g.set(3, g.dy());
  });
  r.add({"TensorArrayGatherV3"}, [](Grad &g) {
    GradArray a(g, g.in(0), g.in(2));
    g.set(2, call("TensorArrayScatterV3", {a.handle, g.in(1), g.dy(), a.flow}));
  });
  r.add({"TensorArrayScatterV3"}, [](Grad &g) {
    GradArray a(g, g.in(0), g.dy());
    g.set(2, call("TensorArrayGatherV3", {a.handle, g.in(1), a.flow}, {{"dtype", g.node.inputType(2)}}));
    g.set(3, g.dy());
  });
  // (handle, flow) -> value, lengths
  r.add({"TensorArrayConcatV3"}, [](Grad &g) {
    GradArray a(g, g.in(0), g.in(1));
    g.set(1, call("TensorArraySplitV3", {a.handle, g.dy(0), g.out(1), a.flow}));
  });
  // (handle, value, lengths, flow) -> flow
  r.add({"TensorArraySplitV3"}, [](Grad &g) {
    GradArray a(g, g.in(0), g.dy());
    g.set(1, call("TensorArrayConcatV3", {a.handle, a.flow}, {{"dtype", g.node.inputType(1)}}));
    g.set(3, g.dy());
  });
}

} // namespace

void addListRules(Rules &r) {
  addLists(r);
  addArrays(r);
}

} // namespace lathe::graphdef
