// AsString, StringFormat, StringToNumber.
#include "runtime/kernels/Common.h"

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"

#include <cmath>
#include <cstdlib>

namespace lathe::rt {
namespace {

/// printf into a string; `format` is one that AsString composed.
template <typename... Args>
std::string print(const std::string &format, Args... args) {
  char small[128];
  int n = snprintf(small, sizeof small, format.c_str(), args...);
  if (n < static_cast<int>(sizeof small))
    return std::string(small, n < 0 ? 0 : n);
  std::string text(n + 1, '\0');
  snprintf(text.data(), text.size(), format.c_str(), args...);
  text.resize(n);
  return text;
}

class ToText : public HostKernel {
public:
  explicit ToText(KernelInit &init) {
    if (absl::Status made = makeFormat(init); !made.ok())
      init.fail(made);
  }

  absl::Status compute(KernelContext &context) override {
    Tensor in = context.input(0);
    if (plain) {
      context.setOutput(0, in);
      return absl::OkStatus();
    }
    LATHE_TRY_VALUE(out, context.allocateOutput(0, in.dims()));
    std::vector<std::string> &texts = out.mutableStrings();
    for (size_t i = 0; i < texts.size(); ++i)
      LATHE_TRY(one(in, i, texts[i]));
    return absl::OkStatus();
  }

private:
  absl::Status makeFormat(KernelInit &init) {
    DType type = init.attr<DType>("T");
    int64_t precision = init.attr<int64_t>("precision"), width = init.attr<int64_t>("width");
    bool scientific = init.attr<bool>("scientific"), shortest = init.attr<bool>("shortest");
    std::string fill = init.attr<std::string>("fill");
    bool real = isFloating(type) || isComplex(type);
    if (!real && type != DType::String && (scientific || shortest))
      return invalid("scientific and shortest format not supported for datatype ", dtypeName(type));
    if (!real && type != DType::String && precision >= 0)
      return invalid("precision not supported for datatype ", dtypeName(type));
    if (fill.size() > 1)
      return invalid("Fill string must be one or fewer characters");
    if (!fill.empty() && std::string_view(" +-0#").find(fill[0]) == std::string_view::npos)
      return invalid("Fill argument not supported: \"", fill, "\"");
    if (scientific && shortest)
      return invalid("Cannot select both scientific and shortest notation");
    // a width as large as an allocation limit is no one's wish
    if (width > (1 << 20) || precision > (1 << 20))
      return invalid("width and precision must be at most ", 1 << 20);
    format = "%" + fill;
    if (width > -1)
      format += std::to_string(width);
    if (precision > -1)
      format += "." + std::to_string(precision);
    if (isComplex(type)) {
      std::string one = format + letter(scientific, shortest);
      format = "(" + one + "," + one + ")";
    } else if (real) {
      format += letter(scientific, shortest);
    } else if (isInteger(type)) {
      format += isSignedInteger(type) ? "lld" : "llu";
    } else {
      format += "s";
    }
    plain = type == DType::String && width < 0;
    return absl::OkStatus();
  }

  static std::string letter(bool scientific, bool shortest) { return shortest ? "g" : scientific ? "e" : "f"; }

  absl::Status one(const Tensor &in, size_t i, std::string &text) const {
    DType type = in.dtype();
    if (type == DType::Bool)
      text = in.data<bool>()[i] ? "true" : "false";
    else if (type == DType::String)
      text = print(format, in.strings()[i].c_str());
    else if (type == DType::Complex64)
      text = print(format, in.data<float>()[2 * i], in.data<float>()[2 * i + 1]);
    else if (type == DType::Complex128)
      text = print(format, in.data<double>()[2 * i], in.data<double>()[2 * i + 1]);
    else if (isFloating(type))
      text = print(format, realAt(in, i));
    else if (isInteger(type))
      text = print(format, static_cast<long long>(intAt(in, i)));
    else if (type == DType::Variant)
      text = in.objects()[i] ? in.objects()[i]->describe() : "Variant<type: [invalid] value: [invalid]>";
    else
      return invalid("Cannot encode input of type ", dtypeName(type));
    return absl::OkStatus();
  }

  std::string format;
  bool plain = false;
};
LATHE_HOST_KERNEL(AsString, ToText);

class StringFormat : public HostKernel {
public:
  explicit StringFormat(KernelInit &init) : summary(init.attr<int64_t>("summarize")) {
    std::string text = init.attr<std::string>("template"), placeholder = init.attr<std::string>("placeholder");
    for (size_t at = 0;;) {
      size_t next = placeholder.empty() ? std::string::npos : text.find(placeholder, at);
      parts.push_back(text.substr(at, next == std::string::npos ? next : next - at));
      if (next == std::string::npos)
        break;
      at = next + placeholder.size();
    }
    size_t inputs = init.node().inputTypes.size();
    if (parts.size() != inputs + 1)
      init.fail(invalid("num placeholders in template and num inputs must match: ", parts.size() - 1, " vs. ", inputs));
  }

  absl::Status compute(KernelContext &context) override {
    std::string text = parts[0];
    for (int i = 0; i < context.numInputs(); ++i)
      text += summarize(context.input(i), summary, true) + parts[i + 1];
    context.setOutput(0, Tensor::fromStrings({}, {std::move(text)}));
    return absl::OkStatus();
  }

private:
  int64_t summary;
  std::vector<std::string> parts;
};
LATHE_HOST_KERNEL(StringFormat, StringFormat);

template <typename T>
bool parseNumber(const std::string &text, T &value) {
  if constexpr (std::is_floating_point_v<T>) {
    absl::string_view trimmed = absl::StripAsciiWhitespace(text);
    absl::string_view digits = trimmed;
    if (!digits.empty() && (digits[0] == '-' || digits[0] == '+'))
      digits.remove_prefix(1);
    if (digits.size() > 2 && digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X')) {
      std::string number(trimmed);
      char *end;
      value = static_cast<T>(sizeof(T) == 4 ? std::strtof(number.c_str(), &end) : std::strtod(number.c_str(), &end));
      return end == number.c_str() + number.size();
    }
    if constexpr (sizeof(T) == 4)
      return absl::SimpleAtof(trimmed, &value);
    else
      return absl::SimpleAtod(trimmed, &value);
  } else {
    return absl::SimpleAtoi(text, &value);
  }
}

absl::Status stringToNumber(KernelContext &context) {
  Tensor in = context.input(0);
  LATHE_TRY_VALUE(out, context.allocateOutput(0, in.dims()));
  auto convert = [&](auto zero) -> absl::Status {
    using T = decltype(zero);
    for (int64_t i = 0; i < in.numElements(); ++i)
      if (!parseNumber(in.strings()[i], out.template data<T>()[i]))
        return invalid("StringToNumberOp could not correctly convert string: ", in.strings()[i]);
    return absl::OkStatus();
  };
  switch (out.dtype()) {
  case DType::Float32:
    return convert(float());
  case DType::Float64:
    return convert(double());
  case DType::Int32:
    return convert(int32_t());
  case DType::Int64:
    return convert(int64_t());
  case DType::UInt32:
    return convert(uint32_t());
  case DType::UInt64:
    return convert(uint64_t());
  default:
    return invalid("out_type ", dtypeName(out.dtype()), " is not supported");
  }
}
LATHE_HOST_FUNCTION(StringToNumber, stringToNumber);

} // namespace
} // namespace lathe::rt
