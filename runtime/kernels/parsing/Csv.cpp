// DecodeCSV.
#include "runtime/kernels/Common.h"

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"

#include <algorithm>

namespace lathe::rt {
namespace {

class DecodeCsv : public HostKernel {
public:
  explicit DecodeCsv(KernelInit &init)
      : types(init.attr<std::vector<DType>>("OUT_TYPE")), quotes(init.attr<bool>("use_quote_delim")),
        missing(init.attr<std::string>("na_value")), columns(init.attr<std::vector<int64_t>>("select_cols")) {
    std::string delimiter = init.attr<std::string>("field_delim");
    if (delimiter.size() != 1)
      init.fail(invalid("field_delim should be only 1 char"));
    else
      delim = delimiter[0];
    if (delim == '"' || delim == '\n' || delim == '\r')
      init.fail(invalid("field_delim may not be a quote or a line end"));
    if (!columns.empty() && columns.size() != types.size())
      init.fail(invalid("select_cols should match output size"));
    for (size_t i = 0; i < columns.size(); ++i)
      if (columns[i] < 0 || (i && columns[i] <= columns[i - 1]))
        init.fail(invalid("select_cols should be non-negative and strictly increasing indices"));
    for (DType type : types)
      if (type != DType::Float32 && type != DType::Float64 && type != DType::Int32 && type != DType::Int64 &&
          type != DType::String)
        init.fail(invalid("csv: data type ", dtypeName(type), " not supported"));
  }

  absl::Status compute(KernelContext &context) override {
    Tensor records = context.input("records");
    std::vector<Tensor> defaults = context.inputList("record_defaults");
    for (size_t f = 0; f < defaults.size(); ++f)
      if (defaults[f].rank() > 1 || defaults[f].numElements() > 1)
        return invalid("There should only be 1 default per field but field ", f, " has ", defaults[f].numElements());
    std::vector<Tensor> out;
    for (size_t f = 0; f < types.size(); ++f) {
      LATHE_TRY_VALUE(t, context.allocateOutput(static_cast<int>(f), records.dims()));
      out.push_back(t);
    }
    for (int64_t r = 0; r < records.numElements(); ++r) {
      std::vector<std::string> fields;
      LATHE_TRY(split(records.strings()[r], fields));
      if (fields.size() != types.size())
        return invalid("Expect ", types.size(), " fields but have ", fields.size(), " in record ", r);
      for (size_t f = 0; f < fields.size(); ++f)
        LATHE_TRY(store(fields[f], f, r, defaults[f], out[f]));
    }
    return absl::OkStatus();
  }

private:
  absl::Status store(const std::string &text, size_t f, int64_t r, const Tensor &rest, Tensor &out) const {
    if (text.empty() || text == missing) {
      if (rest.numElements() != 1)
        return invalid("Field ", f, " is required but missing in record ", r, "!");
      copyElement(out, r, rest, 0);
      return absl::OkStatus();
    }
    bool good = true;
    switch (types[f]) {
    case DType::Int32:
      good = absl::SimpleAtoi(text, &out.data<int32_t>()[r]);
      break;
    case DType::Int64:
      good = absl::SimpleAtoi(text, &out.data<int64_t>()[r]);
      break;
    case DType::Float32:
      good = absl::SimpleAtof(absl::StripAsciiWhitespace(text), &out.data<float>()[r]);
      break;
    case DType::Float64:
      good = absl::SimpleAtod(absl::StripAsciiWhitespace(text), &out.data<double>()[r]);
      break;
    default:
      out.mutableStrings()[r] = text;
    }
    if (!good)
      return invalid("Field ", f, " in record ", r, " is not a valid ", dtypeName(types[f]), ": ", text);
    return absl::OkStatus();
  }

  /// The chosen fields of a record.
  absl::Status split(const std::string &s, std::vector<std::string> &fields) const {
    int64_t number = 0;
    size_t chosen = 0;
    for (size_t at = 0; at <= s.size() && !s.empty(); ++number) {
      if (s[at] == '\n' || s[at] == '\r') {
        // a line end between fields is passed over
        ++at, --number;
        continue;
      }
      std::string field;
      if (quotes && s[at] == '"')
        LATHE_TRY(quoted(s, at, field));
      else
        LATHE_TRY(plain(s, at, field));
      if (columns.empty() || (chosen < columns.size() && columns[chosen] == number)) {
        fields.push_back(std::move(field));
        ++chosen;
        if (!columns.empty() && chosen == columns.size())
          return absl::OkStatus();
      }
      if (at == s.size())
        break;
      ++at; // the delimiter; at the end an empty field follows
      if (at == s.size()) {
        ++number;
        if (columns.empty() || (chosen < columns.size() && columns[chosen] == number))
          fields.emplace_back();
        break;
      }
    }
    return absl::OkStatus();
  }

  absl::Status plain(const std::string &s, size_t &at, std::string &field) const {
    for (; at < s.size() && s[at] != delim; ++at) {
      if ((quotes && s[at] == '"') || s[at] == '\n' || s[at] == '\r')
        return invalid("Unquoted fields cannot have quotes/CRLFs inside");
      field += s[at];
    }
    return absl::OkStatus();
  }

  absl::Status quoted(const std::string &s, size_t &at, std::string &field) const {
    for (++at;; ++at) {
      if (at >= s.size())
        return invalid("Quoted field has to end with quote followed by delim or end");
      if (s[at] != '"') {
        field += s[at];
      } else if (at + 1 < s.size() && s[at + 1] == '"') {
        field += '"';
        ++at;
      } else {
        break;
      }
    }
    ++at;
    if (at < s.size() && s[at] != delim)
      return invalid("Quoted field has to end with quote followed by delim or end");
    return absl::OkStatus();
  }

  std::vector<DType> types;
  char delim = ',';
  bool quotes;
  std::string missing;
  std::vector<int64_t> columns;
};
LATHE_HOST_KERNEL(DecodeCSV, DecodeCsv);

} // namespace
} // namespace lathe::rt
