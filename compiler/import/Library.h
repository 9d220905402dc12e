//===- Library.h - indexed graphs and functions -----------------*- C++ -*-===//
//
// Body: the nodes of the main graph or of one library function, with names resolved to indices.
// Signature: the flat outputs (or inputs) of an op or a function, under given attributes.
//
//===----------------------------------------------------------------------===//
#ifndef LATHE_COMPILER_IMPORT_LIBRARY_H
#define LATHE_COMPILER_IMPORT_LIBRARY_H

#include "compiler/import/Attributes.h"
#include "compiler/import/Problems.h"
#include "ops/Registry.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"

#include <map>
#include <memory>

namespace lathe::import {

/// What a node's input names: a node's output, or a function's argument.
struct InputRef {
  int node = 0;           // index in the body; -1 - k is argument k of the function
  llvm::StringRef outArg; // "product"; empty when `index` counts all outputs
  int64_t index = 0;
};

struct BodyNode {
  std::vector<InputRef> inputs;
  std::vector<int> controls; // node indices
};

struct Body {
  llvm::StringRef name;                   // empty for the main graph
  const tf::OpDef *signature = nullptr;   // null for the main graph
  const tf::FunctionDef *function = nullptr;
  std::vector<const tf::NodeDef *> defs;
  std::vector<BodyNode> nodes;
  llvm::StringMap<int> nodeIndex, argIndex;
  std::vector<InputRef> returns;          // by output_arg
  std::vector<int> controlReturns;        // node indices, in the order of the names

  NodeId id(int node) const { return {defs[node]->name(), defs[node]->op(), name}; }
};

/// Splits "x:1"; "x" is port 0. False when the part after the colon is no number.
bool splitTensorName(llvm::StringRef text, llvm::StringRef &node, int64_t &port);

class Library {
public:
  Library(const tf::GraphDef &graph, Problems &problems);

  /// The main graph; null when its structure is bad (reported).
  const Body *getMain();
  bool isFunction(llvm::StringRef name) const { return functions.count(name); }
  /// A function's body; null when there is none of this name, when it is malformed, or when it calls itself. The
  /// problem is reported once, missing functions with the user's id each time.
  const Body *getFunction(llvm::StringRef name, const NodeId &user);

  /// The op that a function's signature describes, as the registry would.
  const ops::OpInfo &getSignature(const Body &function);

private:
  std::unique_ptr<Body> index(const google::protobuf::RepeatedPtrField<tf::NodeDef> &nodes,
                              const tf::FunctionDef *function);
  bool parseInput(Body &body, const NodeId &id, llvm::StringRef text, InputRef &ref);
  bool checkRecursion(llvm::StringRef name);

  const tf::GraphDef &graph;
  Problems &problems;
  llvm::StringMap<const tf::FunctionDef *> functions;
  llvm::StringMap<std::unique_ptr<Body>> bodies; // null: malformed
  llvm::StringMap<int> depths;                   // of functions whose calls were checked; -1: bad
  std::unique_ptr<Body> mainBody;
  llvm::DenseMap<const Body *, std::unique_ptr<ops::OpInfo>> signatures;
};

/// The attributes of a node or instantiation as the registry asks for them, placeholders resolved.
class AttrLookup : public ops::AttrSource {
public:
  using Map = std::map<std::string, const tf::AttrValue *>;

  /// `node` may be null: then only the scope's attributes count.
  AttrLookup(const tf::NodeDef *node, const Map *scope) : node(node), scope(scope) {}

  /// Null when absent or a placeholder without value.
  const tf::AttrValue *find(std::string_view name) const;
  /// The value itself, or what its placeholder stands for.
  const tf::AttrValue *resolve(const tf::AttrValue &value) const;

  std::optional<int64_t> intAttr(std::string_view name) const override;
  std::optional<DType> typeAttr(std::string_view name) const override;
  std::optional<std::vector<DType>> typeListAttr(std::string_view name) const override;
  std::optional<std::string> stringAttr(std::string_view name) const override;
  std::optional<int64_t> listSize(std::string_view name) const override;

private:
  /// Null when it is of another kind, too.
  const tf::AttrValue *find(std::string_view name, tf::AttrValue::ValueCase kind) const;

  const tf::NodeDef *node;
  const Map *scope;
};

} // namespace lathe::import

#endif
