// The generated header of a module.
#ifndef LATHE_COMPILER_EMIT_HEADER_H
#define LATHE_COMPILER_EMIT_HEADER_H

#include "compiler/emit/Emit.h"
#include "passes/lower/Lower.h"

#include "llvm/ADT/StringSet.h"

namespace lathe {

/// The C++ type of elements in headers.
llvm::StringRef cppType(DType t);
/// A name for comments: it may hold anything, a comment must stay one.
std::string commentText(llvm::StringRef s);
/// Whether --class is ns::Name as C++ allows it.
llvm::Error checkClassName(llvm::StringRef whole);
/// --class, or else Model in a namespace of the symbol prefix.
struct ClassName {
  std::string name, namespaces; ///< namespaces joined by "::", "" for none
};
ClassName classNameOf(const EmitOptions &options);
/// Keywords, and names with leading or double underscores, which are the implementation's.
bool isReservedName(llvm::StringRef name);
llvm::StringRef abiHeaderText();
/// What a class with quantized inputs or results needs.
std::string quantizedHeaderText();
/// The same for one tensor of type `dtype`, behind its name and shape: ", scale ..., zero point ...".
std::string quantizedText(llvm::ArrayRef<float> scales, llvm::ArrayRef<int64_t> zeroPoints);
/// Members of a class: scale, zero point and both conversions of a tensor that has one scale. `stem`: "arg_NAME" or "result_NAME".
void writeScale(llvm::raw_ostream &os, llvm::StringSet<> &members, llvm::StringRef stem, DType dtype, float scale, int64_t zeroPoint);
llvm::StringRef supportHeaderText();

/// Text of PREFIX.h for an object with host kernels (compiler/emit/hosted_support.h).
std::string makeHostedHeader(const HostedPayload &hosted, const EmitOptions &options, bool onDevice);

/// Text of PREFIX.h: the ABI, the support code for C++, and the class of this module.
std::string makeHeader(const lower::LoweredModule &lowered, const EmitOptions &options);

} // namespace lathe

#endif
