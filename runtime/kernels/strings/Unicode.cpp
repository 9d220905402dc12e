// UnicodeDecode, UnicodeDecodeWithOffsets, UnicodeEncode, UnicodeTranscode, UnicodeScript, on ICU's converters.
#include "runtime/kernels/Common.h"

#include <unicode/ucnv.h>
#include <unicode/ucnv_err.h>
#include <unicode/uscript.h>

namespace lathe::rt {
namespace {

struct CloseConverter {
  void operator()(UConverter *converter) const { ucnv_close(converter); }
};
using Converter = std::unique_ptr<UConverter, CloseConverter>;

absl::StatusOr<Converter> openConverter(const std::string &encoding) {
  UErrorCode status = U_ZERO_ERROR;
  Converter converter(ucnv_open(encoding.c_str(), &status));
  if (U_FAILURE(status) || !converter)
    return invalid("Could not create converter for input encoding: ", encoding);
  return converter;
}

/// Notes that bytes were malformed, then substitutes as ICU does by itself.
void noteError(const void *context, UConverterToUnicodeArgs *args, const char *units, int32_t length,
               UConverterCallbackReason reason, UErrorCode *status) {
  if (reason == UCNV_UNASSIGNED || reason == UCNV_ILLEGAL || reason == UCNV_IRREGULAR)
    *const_cast<bool *>(static_cast<const bool *>(context)) = true;
  UCNV_TO_U_CALLBACK_SUBSTITUTE(nullptr, args, units, length, reason, status);
}

/// Calls fn(code point, bytes taken, malformed) for each character.
template <typename Fn>
absl::Status eachCharacter(const std::string &encoding, const std::string &s, Fn fn) {
  LATHE_TRY_VALUE(converter, openConverter(encoding));
  bool malformed = false;
  UErrorCode status = U_ZERO_ERROR;
  ucnv_setToUCallBack(converter.get(), noteError, &malformed, nullptr, nullptr, &status);
  const char *at = s.data(), *end = at + s.size();
  while (at < end && U_SUCCESS(status)) {
    const char *before = at;
    UChar32 c = ucnv_getNextUChar(converter.get(), &at, end, &status);
    if (U_FAILURE(status))
      at = end;
    LATHE_TRY(fn(c, at - before, malformed));
    malformed = false;
  }
  return absl::OkStatus();
}

void appendUtf8(uint32_t c, std::string &out) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xC0 | c >> 6);
    out += static_cast<char>(0x80 | (c & 63));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xE0 | c >> 12);
    out += static_cast<char>(0x80 | (c >> 6 & 63));
    out += static_cast<char>(0x80 | (c & 63));
  } else {
    out += static_cast<char>(0xF0 | c >> 18);
    out += static_cast<char>(0x80 | (c >> 12 & 63));
    out += static_cast<char>(0x80 | (c >> 6 & 63));
    out += static_cast<char>(0x80 | (c & 63));
  }
}

void appendBig(uint32_t v, int bytes, std::string &out) {
  while (bytes-- > 0)
    out += static_cast<char>(v >> (8 * bytes) & 255);
}

bool isScalarValue(int64_t c) { return c >= 0 && c <= 0x10FFFF && (c < 0xD800 || c > 0xDFFF); }

enum class Encoding { Utf8, Utf16, Utf32 };

absl::StatusOr<Encoding> parseEncoding(const std::string &name) {
  if (name == "UTF-8")
    return Encoding::Utf8;
  if (name == "UTF-16-BE")
    return Encoding::Utf16;
  if (name == "UTF-32-BE")
    return Encoding::Utf32;
  return invalid("invalid encoding ", name, ": UTF-8, UTF-16-BE and UTF-32-BE are");
}

void append(Encoding encoding, int64_t character, std::string &out) {
  uint32_t c = static_cast<uint32_t>(character);
  if (encoding == Encoding::Utf8)
    return appendUtf8(isScalarValue(c) ? c : 0xFFFD, out);
  if (encoding == Encoding::Utf32)
    return appendBig(c, 4, out);
  if (c < 0x10000)
    return appendBig(c, 2, out);
  appendBig(0xD800 + ((c - 0x10000) >> 10), 2, out);
  appendBig(0xDC00 + ((c - 0x10000) & 0x3FF), 2, out);
}

/// What to do with malformed bytes and, on request, control characters.
struct ErrorPolicy {
  explicit ErrorPolicy(KernelInit &init) {
    std::string errors = init.attr<std::string>("errors");
    ignore = errors == "ignore";
    strict = errors == "strict";
    if (!ignore && !strict && errors != "replace")
      init.fail(invalid("errors policy must be one of 'strict', 'replace', or 'ignore'"));
    replacement = init.attr<int64_t>("replacement_char");
    if (replacement < 0 || replacement > 0x10FFFF)
      init.fail(invalid("replacement_char out of unicode codepoint range"));
    if (init.hasAttr("replace_control_characters"))
      control = init.attr<bool>("replace_control_characters");
  }
  bool applies(int64_t c, bool malformed) const { return malformed || (control && c <= 0x1F); }

  bool ignore = false, strict = false, control = false;
  int64_t replacement = 0xFFFD;
};

class Decode : public HostKernel {
public:
  explicit Decode(KernelInit &init) : policy(init), encoding(init.attr<std::string>("input_encoding")) {
    if (auto opened = openConverter(encoding); !opened.ok())
      init.fail(opened.status());
    offsets = init.node().op == "UnicodeDecodeWithOffsets";
  }

  absl::Status compute(KernelContext &context) override {
    Tensor in = context.input(0);
    std::vector<int64_t> splits = {0}, characters, starts;
    for (const std::string &s : in.strings()) {
      int64_t at = 0;
      LATHE_TRY(eachCharacter(encoding, s, [&](int64_t c, int64_t bytes, bool malformed) -> absl::Status {
        if (policy.strict && malformed)
          return invalid("Invalid formatting on input string");
        int64_t start = at;
        at += bytes;
        if (policy.applies(c, malformed)) {
          if (policy.ignore)
            return absl::OkStatus();
          c = policy.replacement;
        }
        characters.push_back(c);
        starts.push_back(start);
        return absl::OkStatus();
      }));
      splits.push_back(static_cast<int64_t>(characters.size()));
    }
    context.setOutput(0, indexVector(context.node->outputTypes[0], splits));
    context.setOutput(1, indexVector(DType::Int32, characters));
    if (offsets)
      context.setOutput(2, int64Vector(starts));
    return absl::OkStatus();
  }

private:
  ErrorPolicy policy;
  std::string encoding;
  bool offsets;
};
LATHE_HOST_KERNEL(UnicodeDecode, Decode);
LATHE_HOST_KERNEL(UnicodeDecodeWithOffsets, Decode);

class Transcode : public HostKernel {
public:
  explicit Transcode(KernelInit &init) : policy(init), from(init.attr<std::string>("input_encoding")) {
    if (auto opened = openConverter(from); !opened.ok())
      init.fail(opened.status());
    if (auto parsed = parseEncoding(init.attr<std::string>("output_encoding")); parsed.ok())
      to = *parsed;
    else
      init.fail(parsed.status());
  }

  absl::Status compute(KernelContext &context) override {
    Tensor in = context.input(0);
    LATHE_TRY_VALUE(out, context.allocateOutput(0, in.dims()));
    bool failed = false;
    for (int64_t i = 0; i < in.numElements(); ++i)
      LATHE_TRY(eachCharacter(from, in.strings()[i], [&](int64_t c, int64_t, bool malformed) -> absl::Status {
        if (policy.applies(c, malformed)) {
          failed = true;
          if (policy.ignore)
            return absl::OkStatus();
          c = policy.replacement;
        }
        append(to, c, out.mutableStrings()[i]);
        return absl::OkStatus();
      }));
    if (policy.strict && failed)
      return invalid("Invalid formatting on input string");
    return absl::OkStatus();
  }

private:
  ErrorPolicy policy;
  std::string from;
  Encoding to = Encoding::Utf8;
};
LATHE_HOST_KERNEL(UnicodeTranscode, Transcode);

class Encode : public HostKernel {
public:
  explicit Encode(KernelInit &init) : policy(init) {
    if (auto parsed = parseEncoding(init.attr<std::string>("output_encoding")); parsed.ok())
      to = *parsed;
    else
      init.fail(parsed.status());
  }

  absl::Status compute(KernelContext &context) override {
    Tensor values = context.input(0), splits = context.input(1);
    std::vector<int64_t> ends = intsOf(splits);
    if (ends.empty())
      return invalid("Input_splits should contain elements, but given input_values has 0 elements");
    if (ends[0] != 0)
      return invalid("First value in input_splits must be zero.");
    if (ends.back() != values.numElements())
      return invalid("Last value in input_splits must be equal to length of input_tensor.");
    for (size_t i = 1; i < ends.size(); ++i)
      if (ends[i] < ends[i - 1])
        return invalid("Values in input_splits must be equal or in ascending order.");
    LATHE_TRY_VALUE(out, context.allocateOutput(0, {static_cast<int64_t>(ends.size()) - 1}));
    for (size_t row = 0; row + 1 < ends.size(); ++row)
      for (int64_t i = ends[row]; i < ends[row + 1]; ++i) {
        int64_t c = values.data<int32_t>()[i];
        if (!isScalarValue(c)) {
          if (policy.strict)
            return invalid("Code point is out of range for Unicode, or is a surrogate.");
          if (policy.ignore)
            continue;
          c = policy.replacement;
        }
        append(to, c, out.mutableStrings()[row]);
      }
    return absl::OkStatus();
  }

private:
  ErrorPolicy policy;
  Encoding to = Encoding::Utf8;
};
LATHE_HOST_KERNEL(UnicodeEncode, Encode);

absl::Status script(KernelContext &context) {
  Tensor in = context.input(0);
  LATHE_TRY_VALUE(out, context.allocateOutput(0, in.dims()));
  for (int64_t i = 0; i < in.numElements(); ++i) {
    UErrorCode status = U_ZERO_ERROR;
    UScriptCode code = uscript_getScript(in.data<int32_t>()[i], &status);
    out.data<int32_t>()[i] = U_SUCCESS(status) ? static_cast<int32_t>(code) : -1;
  }
  return absl::OkStatus();
}
LATHE_HOST_FUNCTION(UnicodeScript, script);

} // namespace
} // namespace lathe::rt
