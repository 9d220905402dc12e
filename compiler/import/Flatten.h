//===- Flatten.h - what an entry needs, calls inlined -----------*- C++ -*-===//
//
// Flat graph: the nodes that the outputs and targets of one entry (or one function of a While, If ...) need, with
// calls replaced by the callee's nodes. A node of a callee is named "call/node".
// Binding: an argument of a function that is known to be the handle of one variable at every call.
//
//===----------------------------------------------------------------------===//
#ifndef LATHE_COMPILER_IMPORT_FLATTEN_H
#define LATHE_COMPILER_IMPORT_FLATTEN_H

#include "compiler/import/Library.h"

#include <deque>
#include <memory>

namespace lathe::import {

/// An output of an instance, or argument k of the flat graph as instance -1 - k.
struct Ref {
  int instance = 0;
  int port = 0;
  bool isArgument() const { return instance < 0; }
  int argument() const { return -1 - instance; }
  bool operator==(const Ref &o) const { return instance == o.instance && port == o.port; }
};

struct Instance {
  const tf::NodeDef *def = nullptr;   // null for nodes that no file has: constants that are fed, ends of calls
  const Tensor *constant = nullptr;   // value of a constant that is fed
  const ops::OpInfo *info = nullptr;
  std::string name;
  llvm::StringRef op, function;
  const AttrLookup::Map *attrScope = nullptr;
  std::vector<Ref> inputs;
  std::vector<int> controls;
  std::vector<DType> outTypes;
  /// Library functions of its attributes, in the order of the attributes' names; see Flattener::functions.
  std::vector<std::pair<const tf::NameAttrList *, int>> functions;

  NodeId id() const { return {name, op, function}; }
};

struct FlatGraph {
  std::string symbol;                    // set when emitted
  llvm::StringRef functionName;          // empty for entries
  std::vector<DType> argTypes;
  std::vector<std::string> argNames;     // of functions
  std::vector<std::string> bindings;     // variable of each argument, or empty
  std::vector<Instance> instances;
  std::vector<Ref> outputs;
  std::vector<std::string> outputNames;  // of functions
  std::vector<int> targets;              // instances that must run
  std::shared_ptr<void> owner;           // of the attributes that instances point at
};

/// A tensor of the main graph.
struct MainTensor {
  int node = 0, port = 0;
  bool operator<(const MainTensor &o) const { return std::tie(node, port) < std::tie(o.node, o.port); }
  bool operator==(const MainTensor &o) const { return node == o.node && port == o.port; }
};

class CallSize;

/// Builds flat graphs and, from them, those of the functions they use.
class Flattener {
public:
  Flattener(Library &library, Problems &problems, int64_t maxNodes);
  ~Flattener();

  struct EntrySpec {
    std::vector<MainTensor> feeds; // arguments
    std::vector<std::pair<MainTensor, const Tensor *>> constants;
    std::vector<MainTensor> outputs;
    std::vector<int> targets;      // nodes of the main graph
  };
  /// The flat graph of an entry; null when it has problems.
  std::unique_ptr<FlatGraph> flattenEntry(const EntrySpec &spec);

  /// Flattens the functions that flat graphs asked for, and those these ask for.
  void flattenFunctions();

  /// Functions by the index that Instance::functions holds.
  std::vector<std::unique_ptr<FlatGraph>> functions;

  /// Types of a main graph node's outputs, or null (reported).
  const std::vector<DType> *mainOutputs(int node);

private:
  friend class FlatBuilder;
  int requestFunction(const tf::NameAttrList &function, const AttrLookup &caller, const NodeId &user,
                      std::vector<std::string> bindings);
  /// Counts a node against the limit, long names and many outputs as several. False, and reported, beyond it.
  bool takeNode(const NodeId &id, size_t nameSize, size_t numOutputs);
  void reportTooMany(const NodeId &id);

  struct Request {
    const Body *body;
    AttrLookup::Map attrs;
    std::vector<std::string> bindings;
  };
  Library &library;
  Problems &problems;
  int64_t nodesLeft;
  std::unique_ptr<CallSize> sizes;
  bool outOfNodes = false;
  std::map<std::string, int> functionIds;
  std::deque<Request> requests; // stable: scopes point at the attributes
  size_t nextRequest = 0;
  std::map<int, std::optional<std::vector<DType>>> mainTypes;
};

/// The key of a variable's state: its shared name, else its node's name.
std::string variableKey(const Instance &variable);
/// Whether the instance makes a variable's handle (VarHandleOp) or reference (VariableV2).
bool isVariableHandle(llvm::StringRef op);
bool isVariableReference(llvm::StringRef op);
/// Whether the op may look at a variable's handle but leaves the variable as it is.
bool readsVariable(llvm::StringRef op);
/// Gives its first input and nothing else, if perhaps not always.
bool handsOn(const Instance &instance);
/// The key of the variable whose handle or reference this is, looking through Identity, Enter and Switch; `through` is
/// set when it did so for a Switch or Enter. Empty when it is no variable, or not known which.
std::string findVariable(const FlatGraph &graph, Ref ref, bool *through = nullptr);

} // namespace lathe::import

#endif
