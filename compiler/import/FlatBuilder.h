//===- FlatBuilder.h - the maker of one flat graph --------------*- C++ -*-===//
#ifndef LATHE_COMPILER_IMPORT_FLATBUILDER_H
#define LATHE_COMPILER_IMPORT_FLATBUILDER_H

#include "compiler/import/Flatten.h"
#include "ops/Flags.h"

namespace lathe::import {

inline bool isCallOp(llvm::StringRef op) { return ops::is(op, ops::Flag::Call); }

/// Ops of which a function keeps the instances that nobody consumes.
bool hasEffect(const ops::OpInfo &info, llvm::StringRef op);

/// An output of a node within a scope, not yet followed; node -1 - k is flat argument k of the scope's function.
struct RawRef {
  int scope, node, port;
};

/// The flat outputs (or arguments) of a node.
struct FlatSignature {
  std::vector<DType> types;
  std::vector<int64_t> offsets; // of each argument of the signature, and the total
};

struct Scope {
  const Body *body = nullptr;
  int parent = -1, callNode = -1;
  std::string prefix;
  AttrLookup::Map attrs;
  FlatSignature args;
  llvm::DenseMap<int, int> children;  // call node -> scope, -1: bad
  llvm::DenseMap<int, int> instances; // node -> instance, -1: bad
  llvm::DenseMap<int, int> callEnds;  // call node -> NoOp instance
  std::map<int, FlatSignature> outputs;
  std::vector<int> entryControls;     // instances that must have run before the call's effects
  bool hasEntryControls = false;
};
/// Makes one flat graph. FlatCalls.cpp follows edges in and out of calls, FlatBuilder.cpp makes the instances.
class FlatBuilder {
public:
  explicit FlatBuilder(Flattener &flattener)
      : flattener(flattener), library(flattener.library), problems(flattener.problems),
        graph(std::make_unique<FlatGraph>()) {}

  std::unique_ptr<FlatGraph> buildEntry(const Flattener::EntrySpec &spec);
  std::unique_ptr<FlatGraph> buildFunction(const Flattener::Request &request);

private:
  const Body *calleeOf(int scope, int node, const tf::NameAttrList *&attrs);
  bool isCall(int scope, int node);
  int childScope(int scope, int node);
  const FlatSignature *outputsOf(int scope, int node);
  bool flatten(const ops::OpInfo &info, const std::vector<ops::Arg> &args, const AttrLookup &attrs, const NodeId &id,
               FlatSignature &signature);
  bool toRaw(int scope, const InputRef &ref, int user, RawRef &raw);
  bool follow(RawRef raw, Ref &ref);
  int instanceOf(int scope, int node);
  int controlOf(int scope, int node);
  void complete(int instance);
  void addControl(std::vector<int> &controls, int instance);
  void addControlsOfCall(int scope);
  void addEffects(int scope);
  const std::vector<int> &entryControlsOf(int scope);
  bool isFed(int scope, int node) const;
  static bool hasFunctions(const Instance &instance);
  void requestFunctions(Instance &instance);
  bool checkInputs(const Instance &instance, int scope, int node);
  void drain();
  std::unique_ptr<FlatGraph> finish(bool ok);
  NodeId idOf(int scope, int node) { return scopes[scope].body->id(node); }

  Flattener &flattener;
  Library &library;
  Problems &problems;
  std::unique_ptr<FlatGraph> graph;
  std::deque<Scope> scopes; // references stay valid while it grows
  std::map<MainTensor, Ref> feeds;
  llvm::DenseMap<int, bool> fedNodes;
  std::vector<std::pair<int, int>> places; // instance -> scope, node
  std::vector<int> incomplete, pendingFunctions;
  struct PendingEnd {
    int instance, scope, node;
  };
  std::vector<PendingEnd> pendingEnds;
  std::vector<int> pendingEffects;
  bool failed = false;
};

} // namespace lathe::import

#endif
