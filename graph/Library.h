// The functions of a graph and their registered gradients.
#ifndef LATHE_GRAPH_LIBRARY_H
#define LATHE_GRAPH_LIBRARY_H

#include "ops/Registry.h"
#include "proto/graph.pb.h"

#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace lathe::graphdef {

/// Whether two definitions say the same, whatever the order of their maps.
bool sameFunction(const tf::FunctionDef &a, const tf::FunctionDef &b);

/// Functions by name. Definitions keep their addresses until they are removed.
class Library {
public:
  /// ALREADY_EXISTS when another function has the name; the same one again is fine.
  absl::Status add(const tf::FunctionDef &function);
  /// INVALID_ARGUMENT when `function` has another gradient.
  absl::Status addGradient(std::string_view function, std::string_view gradient);
  absl::Status extend(const tf::FunctionDefLibrary &more);
  /// NOT_FOUND when there is none.
  absl::Status remove(std::string_view name);

  /// Null when there is none.
  const tf::FunctionDef *find(std::string_view name) const;
  /// The op that a function's signature describes, as the registry would; null when there is no such function.
  const ops::OpInfo *signature(std::string_view name) const;
  /// Name of the registered gradient function, "" when there is none.
  std::string gradientOf(std::string_view name) const;
  /// `name`, or with a number behind it when it is taken.
  std::string uniqueName(std::string_view name) const;

  /// In the order of their names.
  const std::map<std::string, std::unique_ptr<tf::FunctionDef>, std::less<>> &all() const { return functions; }
  tf::FunctionDefLibrary toProto() const;

private:
  std::map<std::string, std::unique_ptr<tf::FunctionDef>, std::less<>> functions;
  std::map<std::string, std::string, std::less<>> gradients;
  std::map<std::string, ops::OpInfo, std::less<>> signatures; ///< views into `functions`
};

} // namespace lathe::graphdef

#endif
