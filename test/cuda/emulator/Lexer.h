// Cuts PTX into words, numbers and punctuation.
#ifndef LATHE_TEST_CUDA_EMULATOR_LEXER_H
#define LATHE_TEST_CUDA_EMULATOR_LEXER_H

#include "test/cuda/emulator/Ptx.h"

namespace lathe::emu {

struct Token {
  enum Kind { Word, Integer, Float, Decimal, String, Punctuation, End } kind = End;
  int line = 0;
  std::string text;  // Word with its dots, Punctuation, Decimal as written
  int64_t value = 0; // Integer; bits of a Float
  bool isDouble = false;
};

/// All tokens and an End; throws PtxError for a character or number that PTX has not.
std::vector<Token> tokenize(const std::string &text);

} // namespace lathe::emu

#endif
