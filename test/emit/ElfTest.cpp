// What is no object is refused without reading beyond it.
#include "compiler/emit/Elf.h"
#include <gtest/gtest.h>

using namespace lathe;

TEST(Elf, RefusesGarbage) {
  std::string bytes(200, 'x');
  for (size_t n : {size_t(0), size_t(3), size_t(63), size_t(200)}) {
    auto r = summarizeObject(llvm::StringRef(bytes.data(), n));
    EXPECT_FALSE(bool(r));
    llvm::consumeError(r.takeError());
  }
  std::string header = "\x7f"
                       "ELF\x02\x01\x01";
  header.resize(64, '\x7f');
  auto r = addConstantsSection(header, "x", 8, [](std::string &) {});
  EXPECT_FALSE(bool(r));
  llvm::consumeError(r.takeError());
}
