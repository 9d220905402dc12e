//===- Graph.td - the imported TensorFlow graph -----------------------------===//
//
// One generic op, graph.node, carries every TensorFlow node: op type, attributes,
// data and control operands. No ODS per TensorFlow op: what an op means is known
// by ops/ and by the legalizations.
//
//===----------------------------------------------------------------------===//

#ifndef LATHE_DIALECTS_GRAPH_GRAPH_TD
#define LATHE_DIALECTS_GRAPH_GRAPH_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/Interfaces/FunctionInterfaces.td"

def Graph_Dialect : Dialect {
  let name = "graph";
  let summary = "A TensorFlow graph as imported";
  let description = [{
    The importer writes this dialect, passes/cluster rewrites it and passes/legalize
    turns it into hlo. Order in a graph.func has no meaning: only data and control
    edges have, and TensorFlow's v1 loops make cycles.
  }];
  let cppNamespace = "::lathe::graph";
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

class Graph_Type<string name, string typeMnemonic, list<Trait> traits = []>
    : TypeDef<Graph_Dialect, name, traits> {
  let mnemonic = typeMnemonic;
}

def Graph_StringType : Graph_Type<"String", "string"> {
  let summary = "a byte string, as an element of a tensor";
}
def Graph_ResourceType : Graph_Type<"Resource", "resource"> {
  let summary = "a handle of a variable, table, queue, stack ...";
}
def Graph_VariantType : Graph_Type<"Variant", "variant"> {
  let summary = "an opaque value such as a TensorList";
}
def Graph_ControlType : Graph_Type<"Control", "control"> {
  let summary = "the token of a control edge";
  let builderCall = "$_builder.getType<::lathe::graph::ControlType>()";
}
def Graph_Control : Type<CPred<"::llvm::isa<::lathe::graph::ControlType>($_self)">,
                         "control token", "::lathe::graph::ControlType">,
                    BuildableType<"$_builder.getType<::lathe::graph::ControlType>()">;

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

class Graph_Attr<string name, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<Graph_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

def Graph_ShapeAttr : Graph_Attr<"Shape", "shape"> {
  let summary = "a shape with unknown sizes or of unknown rank";
  let description = [{
    `#graph.shape<[1, -1, 3]>`, -1 for an unknown size; `#graph.shape<*>` for an unknown rank.
  }];
  let parameters = (ins "bool":$ranked, ArrayRefParameter<"int64_t">:$dims);
  let builders = [
    AttrBuilder<(ins "::llvm::ArrayRef<int64_t>":$dims), [{ return $_get($_ctxt, true, dims); }]>
  ];
  let hasCustomAssemblyFormat = 1;
}

def Graph_FuncAttr : Graph_Attr<"Func", "func"> {
  let summary = "a library function and the attributes it is instantiated with";
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$name, OptionalParameter<"::mlir::DictionaryAttr">:$attrs);
  let assemblyFormat = "`<` $name (`,` $attrs^)? `>`";
}

def Graph_StringsAttr : Graph_Attr<"Strings", "strings"> {
  let summary = "the value of a constant string tensor";
  let description = [{
    `#graph.strings<tensor<2x!graph.string>, ["a", "b"]>`: row-major elements, or exactly one that stands for all.
  }];
  let parameters = (ins "::mlir::RankedTensorType":$type, "::mlir::ArrayAttr":$values);
  let assemblyFormat = "`<` $type `,` $values `>`";
  let genVerifyDecl = 1;
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

class Graph_Op<string opMnemonic, list<Trait> traits = []> : Op<Graph_Dialect, opMnemonic, traits>;

def Graph_FuncOp : Graph_Op<"func", [
    FunctionOpInterface, IsolatedFromAbove, SingleBlock,
    DeclareOpInterfaceMethods<RegionKindInterface>]> {
  let summary = "a graph with its inputs and outputs, or a library function";
  let description = [{
    Public functions are entries, private ones are the bodies of functional control flow. The body is a graph
    region: nodes are in no order, and v1 loops are cycles.

    ```mlir
    graph.func @main(%x: tensor<?x8xf32> {graph.name = "image"}) -> (tensor<?xi64> {graph.name = "digit"}) {
      %y, %c = graph.node "ArgMax"(%x) {} : (tensor<?x8xf32>) -> tensor<?xi64>
      graph.return %y : tensor<?xi64>
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<FunctionType>:$function_type,
                       OptionalAttr<StrAttr>:$sym_visibility,
                       OptionalAttr<DictArrayAttr>:$arg_attrs, OptionalAttr<DictArrayAttr>:$res_attrs);
  let regions = (region SizedRegion<1>:$body);
  let builders = [
    OpBuilder<(ins "::llvm::StringRef":$name, "::mlir::FunctionType":$type)>
  ];
  let extraClassDeclaration = [{
    ::mlir::Region *getCallableRegion() { return &getBody(); }
    ::llvm::ArrayRef<::mlir::Type> getArgumentTypes() { return getFunctionType().getInputs(); }
    ::llvm::ArrayRef<::mlir::Type> getResultTypes() { return getFunctionType().getResults(); }
    bool isDeclaration() { return false; }
  }];
  let hasCustomAssemblyFormat = 1;
  let skipDefaultBuilders = 1;
  let hasVerifier = 1;
}

def Graph_NodeOp : Graph_Op<"node", [AttrSizedOperandSegments, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "one TensorFlow node";
  let description = [{
    Data operands and results are tensors; control operands and the last result are control tokens. The node's
    name is its location (NameLoc).

    ```mlir
    %y, %c = graph.node "MatMul"(%a, %b) [%ctl] {transpose_a = false, transpose_b = true}
        : (tensor<2x3xf32>, tensor<4x3xf32>) -> tensor<2x4xf32>
    ```
  }];
  let arguments = (ins StrAttr:$op, Variadic<AnyTensor>:$inputs, Variadic<Graph_Control>:$controls,
                       DictionaryAttr:$attrs);
  let results = (outs Variadic<AnyTensor>:$outputs, Graph_Control:$control);
  let assemblyFormat = [{
    $op `(` $inputs `)` (`[` $controls^ `]`)? $attrs attr-dict-with-keyword `:` functional-type($inputs, $outputs)
  }];
  let builders = [
    OpBuilder<(ins "::mlir::TypeRange":$outputTypes, "::llvm::StringRef":$op, "::mlir::ValueRange":$inputs,
                   "::mlir::ValueRange":$controls, "::mlir::DictionaryAttr":$attrs)>
  ];
  let extraClassDeclaration = [{
    /// The attribute of the TensorFlow node, or null.
    ::mlir::Attribute getNodeAttr(::llvm::StringRef name) { return getAttrs().get(name); }
    template <typename T>
    T getNodeAttr(::llvm::StringRef name) { return ::llvm::dyn_cast_or_null<T>(getAttrs().get(name)); }
    /// The node's name, from its location.
    ::llvm::StringRef getNodeName();
  }];
  let hasVerifier = 1;
}

def Graph_VariableOp : Graph_Op<"variable", [Symbol]> {
  let summary = "a variable that is kept as state, with its initial value";
  let description = [{
    The symbol is the variable's shared name: what VarHandleOp's `shared_name` (or a VariableV2's node name) says.
    Without `initial`, an entry point has to assign it first.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttr:$type, OptionalAttr<AnyAttr>:$initial,
                       OptionalAttr<StrAttr>:$sym_visibility);
  let assemblyFormat = "$sym_name `:` $type (`=` $initial^)? attr-dict";
}

def Graph_ReturnOp : Graph_Op<"return", [Terminator, AttrSizedOperandSegments, HasParent<"FuncOp">]> {
  let summary = "the outputs of a graph, and the targets that must have run";
  let arguments = (ins Variadic<AnyTensor>:$outputs, Variadic<Graph_Control>:$targets);
  let assemblyFormat = "($outputs^)? (`[` $targets^ `]`)? attr-dict (`:` type($outputs)^)?";
  let hasVerifier = 1;
}

#endif
