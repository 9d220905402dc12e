#include "base/Npz.h"

#include "base/Bytes.h"
#include "base/Zip.h"

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>

namespace lathe {
namespace {

using Json = nlohmann::json;

absl::Status bad(std::string_view what) { return absl::InvalidArgumentError(absl::StrCat("bad npy data: ", view(what))); }

struct Header {
  char order = '<'; // < > or |
  char kind = 0;    // b i u f c U S V
  int64_t size = 0; // bytes, for U characters
  bool fortran = false;
  std::vector<int64_t> dims;
};

/// The value of `'key':` in the header's dictionary; the dictionary is flat but for the shape's parentheses.
std::optional<std::string_view> headerValue(std::string_view text, std::string_view key) {
  for (char quote : {'\'', '"'}) {
    size_t at = text.find(std::string(1, quote) + std::string(key) + quote);
    if (at == std::string_view::npos)
      continue;
    at = text.find(':', at + key.size() + 2);
    if (at == std::string_view::npos)
      return std::nullopt;
    text.remove_prefix(at + 1);
    while (!text.empty() && text.front() == ' ')
      text.remove_prefix(1);
    return text;
  }
  return std::nullopt;
}

absl::StatusOr<Header> parseHeader(std::string_view text) {
  Header h;
  auto descr = headerValue(text, "descr"), order = headerValue(text, "fortran_order"),
       shape = headerValue(text, "shape");
  if (!descr || !order || !shape)
    return bad("the header lacks a key");
  if (descr->empty() || ((*descr)[0] != '\'' && (*descr)[0] != '"'))
    return bad("structured arrays are not supported");
  size_t close = descr->find((*descr)[0], 1);
  if (close == std::string_view::npos)
    return bad("unterminated type");
  std::string_view type = descr->substr(1, close - 1);
  if (!type.empty() && (type[0] == '<' || type[0] == '>' || type[0] == '|' || type[0] == '=')) {
    h.order = type[0] == '=' ? '<' : type[0];
    type.remove_prefix(1);
  }
  if (type.empty())
    return bad("empty type");
  h.kind = type[0];
  if (h.kind == 'O')
    return bad("an array of python objects cannot be read; store strings as text");
  if (!absl::SimpleAtoi(view(type.substr(1)), &h.size) || h.size < 0 || h.size > (1 << 30))
    return bad(absl::StrCat("unknown type '", view(type), "'"));
  if (absl::StartsWith(view(*order), "True"))
    h.fortran = true;
  else if (!absl::StartsWith(view(*order), "False"))
    return bad("fortran_order is neither True nor False");
  if (shape->empty() || (*shape)[0] != '(')
    return bad("the shape is no tuple");
  size_t last = shape->find(')');
  if (last == std::string_view::npos)
    return bad("unterminated shape");
  std::string_view dims = shape->substr(1, last - 1);
  while (!dims.empty()) {
    size_t comma = std::min(dims.find(','), dims.size());
    std::string_view item = dims.substr(0, comma);
    dims.remove_prefix(std::min(comma + 1, dims.size()));
    while (!item.empty() && (item.back() == ' ' || item.back() == 'L'))
      item.remove_suffix(1);
    while (!item.empty() && item.front() == ' ')
      item.remove_prefix(1);
    if (item.empty())
      continue;
    int64_t d;
    if (!absl::SimpleAtoi(view(item), &d) || d < 0)
      return bad("bad dimension");
    h.dims.push_back(d);
    if (h.dims.size() > 64)
      return bad("too many dimensions");
  }
  return h;
}

std::optional<DType> typeOf(const Header &h) {
  switch (h.kind) {
  case 'b':
    return h.size == 1 ? std::optional(DType::Bool) : std::nullopt;
  case 'i':
    return h.size == 1   ? std::optional(DType::Int8)
           : h.size == 2 ? std::optional(DType::Int16)
           : h.size == 4 ? std::optional(DType::Int32)
           : h.size == 8 ? std::optional(DType::Int64)
                         : std::nullopt;
  case 'u':
    return h.size == 1   ? std::optional(DType::UInt8)
           : h.size == 2 ? std::optional(DType::UInt16)
           : h.size == 4 ? std::optional(DType::UInt32)
           : h.size == 8 ? std::optional(DType::UInt64)
                         : std::nullopt;
  case 'f':
    return h.size == 2   ? std::optional(DType::Float16)
           : h.size == 4 ? std::optional(DType::Float32)
           : h.size == 8 ? std::optional(DType::Float64)
                         : std::nullopt;
  case 'c':
    return h.size == 8    ? std::optional(DType::Complex64)
           : h.size == 16 ? std::optional(DType::Complex128)
                          : std::nullopt;
  default:
    return std::nullopt;
  }
}

/// The type that numpy stores a type's elements in.
DType storageOf(DType type) {
  switch (type) {
  case DType::BFloat16:
    return DType::UInt16;
  case DType::Float8E5M2:
  case DType::Float8E4M3FN:
  case DType::Int4:
  case DType::UInt4:
    return DType::UInt8;
  default:
    break;
  }
  // a type that is only carried is bytes
  const bool isCarried = dtypeSize(type) == 1 && type != DType::Bool && !isInteger(type) && !isQuantized(type);
  return isCarried ? DType::UInt8 : dtypeCarrier(type);
}

void appendUtf8(std::string &out, uint32_t c) {
  if (c < 0x80)
    out.push_back(static_cast<char>(c));
  else if (c < 0x800)
    out.append({static_cast<char>(0xc0 | c >> 6), static_cast<char>(0x80 | (c & 0x3f))});
  else if (c < 0x10000)
    out.append({static_cast<char>(0xe0 | c >> 12), static_cast<char>(0x80 | (c >> 6 & 0x3f)),
                static_cast<char>(0x80 | (c & 0x3f))});
  else
    out.append({static_cast<char>(0xf0 | c >> 18), static_cast<char>(0x80 | (c >> 12 & 0x3f)),
                static_cast<char>(0x80 | (c >> 6 & 0x3f)), static_cast<char>(0x80 | (c & 0x3f))});
}

absl::StatusOr<Tensor> parseText(const Header &h, int64_t count, std::string_view body) {
  int64_t unit = h.kind == 'U' ? 4 : 1, width = h.size * unit, bytes;
  if (__builtin_mul_overflow(count, width, &bytes) || bytes > static_cast<int64_t>(body.size()))
    return bad("fewer bytes than the shape needs");
  // elements of width 0 would let a tiny file ask for any number of strings
  if (width == 0 && count > 1024)
    return bad("too many empty strings");
  std::vector<std::string> values(count);
  for (int64_t i = 0; i < count; ++i) {
    std::string_view raw = body.substr(i * width, width);
    if (unit == 1) {
      size_t n = raw.find_last_not_of('\0');
      values[i] = std::string(raw.substr(0, n == std::string_view::npos ? 0 : n + 1));
      continue;
    }
    std::vector<uint32_t> chars(h.size);
    for (int64_t k = 0; k < h.size; ++k) {
      const uint8_t *p = reinterpret_cast<const uint8_t *>(raw.data()) + 4 * k;
      chars[k] = h.order == '>' ? uint32_t(p[0]) << 24 | p[1] << 16 | p[2] << 8 | p[3]
                                : uint32_t(p[3]) << 24 | p[2] << 16 | p[1] << 8 | p[0];
      if (chars[k] > 0x10ffff)
        return bad("text holds a number that is no character");
    }
    while (!chars.empty() && chars.back() == 0)
      chars.pop_back();
    for (uint32_t c : chars)
      appendUtf8(values[i], c);
  }
  if (h.fortran && h.dims.size() > 1)
    return bad("text arrays in Fortran order are not supported");
  return Tensor::fromStrings(h.dims, std::move(values));
}

/// Row-major elements from column-major ones.
void transposeFortran(const char *from, char *to, const std::vector<int64_t> &dims, int64_t count, size_t size) {
  std::vector<int64_t> stride(dims.size()), index(dims.size(), 0);
  int64_t s = 1;
  for (size_t d = 0; d < dims.size(); ++d) {
    stride[d] = s;
    s *= dims[d];
  }
  int64_t at = 0;
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(to + i * size, from + at * size, size);
    for (size_t d = dims.size(); d-- > 0;) {
      at += stride[d];
      if (++index[d] < dims[d])
        break;
      at -= stride[d] * dims[d];
      index[d] = 0;
    }
  }
}

std::string npyWithHeader(std::string_view descr, const std::vector<int64_t> &dims, std::string_view body) {
  std::string shape = absl::StrCat("(", absl::StrJoin(dims, ", "), dims.size() == 1 ? ",)" : ")");
  std::string head = absl::StrCat("{'descr': '", view(descr), "', 'fortran_order': False, 'shape': ", shape, ", }");
  size_t total = (10 + head.size() + 1 + 63) / 64 * 64;
  head.append(total - 10 - head.size() - 1, ' ');
  head.push_back('\n');
  std::string out("\x93NUMPY\x01\x00", 8);
  out.push_back(static_cast<char>(head.size() & 0xff));
  out.push_back(static_cast<char>(head.size() >> 8));
  out += head;
  out += body;
  return out;
}

/// A rank-0 text array. JSON that we write is ASCII.
std::string npyOfAscii(std::string_view text) {
  std::string body(text.size() * 4, '\0');
  for (size_t i = 0; i < text.size(); ++i)
    body[4 * i] = text[i];
  return npyWithHeader(absl::StrCat("<U", text.size()), {}, body);
}

} // namespace

absl::StatusOr<Tensor> parseNpy(std::string_view bytes, std::optional<DType> as) {
  ByteReader in(bytes);
  std::string_view magic, text;
  uint8_t major = 0, minor = 0;
  uint64_t length = 0;
  if (!in.readBytes(6, magic) || magic != std::string_view("\x93NUMPY", 6) || !in.readByte(major) ||
      !in.readByte(minor))
    return bad("no npy magic");
  if (major < 1 || major > 3 || !in.readLittle(major == 1 ? 2 : 4, length) || !in.readBytes(length, text))
    return bad("truncated header");
  absl::StatusOr<Header> h = parseHeader(text);
  if (!h.ok())
    return h.status();
  absl::StatusOr<int64_t> count = checkedNumElements(h->dims);
  if (!count.ok())
    return count.status();
  std::string_view body = bytes.substr(in.position());
  if (h->kind == 'U' || h->kind == 'S') {
    if (as && *as != DType::String)
      return bad(absl::StrCat("text where ", dtypeName(*as), " is expected"));
    return parseText(*h, *count, body);
  }
  std::optional<DType> stored = typeOf(*h);
  DType type;
  if (as) {
    type = *as;
    // a python type of its own (ml_dtypes) is saved as raw bytes
    bool raw = h->kind == 'V' || (h->kind == 'f' && h->size == 1);
    if (dtypeSize(type) == 0 || static_cast<size_t>(h->size) != dtypeSize(type) ||
        !(raw || (stored && (*stored == type || *stored == storageOf(type)))))
      return bad(absl::StrCat("the stored type '", std::string(1, h->kind), h->size, "' does not hold ",
                              dtypeName(type)));
  } else if (stored) {
    type = *stored;
  } else {
    return bad(absl::StrCat("unknown type '", std::string(1, h->kind), h->size, "'"));
  }
  int64_t needed;
  size_t size = dtypeSize(type);
  if (__builtin_mul_overflow(*count, static_cast<int64_t>(size), &needed) ||
      needed > static_cast<int64_t>(body.size()))
    return bad("fewer bytes than the shape needs");
  absl::StatusOr<Tensor> tensor = Tensor::tryAllocate(type, h->dims, needed);
  if (!tensor.ok())
    return tensor.status();
  char *to = tensor->data<char>();
  if (h->fortran && h->dims.size() > 1)
    transposeFortran(body.data(), to, h->dims, *count, size);
  else if (needed)
    std::memcpy(to, body.data(), needed);
  if (h->order == '>' && size > 1) {
    size_t unit = isComplex(type) ? size / 2 : size;
    for (int64_t i = 0; i < needed; i += unit)
      std::reverse(to + i, to + i + unit);
  }
  if (type == DType::Bool)
    for (int64_t i = 0; i < needed; ++i)
      to[i] = to[i] != 0;
  return tensor;
}

std::string npyBytes(const Tensor &tensor) {
  if (tensor.dtype() == DType::String) {
    // bytes with trailing zeros do not survive numpy's fixed-width strings; the JSON form does
    return npyOfAscii(stringsJson(tensor));
  }
  DType stored = storageOf(tensor.dtype());
  size_t size = dtypeSize(stored);
  char kind = stored == DType::Bool       ? 'b'
              : isFloating(stored)        ? 'f'
              : isComplex(stored)         ? 'c'
              : isSignedInteger(stored)   ? 'i'
                                          : 'u';
  std::string descr = absl::StrCat(size == 1 ? "|" : "<", std::string(1, kind), size);
  return npyWithHeader(descr, tensor.dims(),
                       std::string_view(tensor.data<char>(), static_cast<size_t>(tensor.sizeBytes())));
}

absl::StatusOr<Tensor> readNpy(const std::string &path, std::optional<DType> as) {
  absl::StatusOr<std::string> bytes = readFile(path);
  if (!bytes.ok())
    return bytes.status();
  absl::StatusOr<Tensor> t = parseNpy(*bytes, as);
  if (!t.ok())
    return absl::Status(t.status().code(), absl::StrCat("'", path, "': ", t.status().message()));
  return t;
}

absl::Status writeNpy(const std::string &path, const Tensor &tensor) { return writeFile(path, npyBytes(tensor)); }

absl::StatusOr<Tensor> parseStringsJson(std::string_view text) {
  Json j = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!j.is_object() || !j.contains("shape") || !j.contains("values") || !j["shape"].is_array() ||
      !j["values"].is_array())
    return absl::InvalidArgumentError("a string tensor is a JSON object with shape and values");
  std::vector<int64_t> dims;
  for (const Json &d : j["shape"]) {
    if (!d.is_number_integer())
      return absl::InvalidArgumentError("string tensor: a dimension is no integer");
    dims.push_back(d.get<int64_t>());
  }
  absl::StatusOr<int64_t> count = checkedNumElements(dims);
  if (!count.ok())
    return count.status();
  if (static_cast<uint64_t>(*count) != j["values"].size())
    return absl::InvalidArgumentError("string tensor: the number of values does not fit the shape");
  std::vector<std::string> values;
  for (const Json &v : j["values"]) {
    std::string raw;
    if (!v.is_string() || !absl::Base64Unescape(v.get_ref<const std::string &>(), &raw))
      return absl::InvalidArgumentError("string tensor: a value is not base64");
    values.push_back(std::move(raw));
  }
  return Tensor::fromStrings(std::move(dims), std::move(values));
}

std::string stringsJson(const Tensor &tensor) {
  std::string out = absl::StrCat("{\"shape\": [", absl::StrJoin(tensor.dims(), ", "), "], \"values\": [");
  const char *comma = "";
  for (const std::string &s : tensor.strings()) {
    absl::StrAppend(&out, comma, "\"", absl::Base64Escape(s), "\"");
    comma = ", ";
  }
  return out + "]}";
}

absl::StatusOr<NamedTensors> parseNpz(std::string_view bytes, int64_t maxBytes) {
  absl::StatusOr<ZipEntries> entries = parseZip(bytes, maxBytes);
  if (!entries.ok())
    return entries.status();
  Json types = Json::object();
  for (auto &[name, content] : *entries)
    if (name == "__dtypes__.npy" || name == "__dtypes__") {
      absl::StatusOr<Tensor> t = parseNpy(content);
      if (!t.ok())
        return t.status();
      if (t->dtype() == DType::String && t->numElements() == 1)
        types = Json::parse(t->strings()[0], nullptr, false);
      if (!types.is_object())
        return bad("__dtypes__ is no JSON object");
    }
  NamedTensors result;
  for (auto &[file, content] : *entries) {
    std::string name = file;
    if (absl::EndsWith(name, ".npy"))
      name.resize(name.size() - 4);
    if (name == "__dtypes__")
      continue;
    std::optional<DType> as;
    if (auto it = types.find(name); it != types.end()) {
      if (it->is_string())
        as = parseDType(it->get_ref<const std::string &>());
      if (!as)
        return bad(absl::StrCat("__dtypes__ names an unknown type for '", name, "'"));
    }
    absl::StatusOr<Tensor> t = parseNpy(content, as);
    if (t.ok() && as == DType::String && t->rank() == 0 && absl::StartsWith(t->strings()[0], "{"))
      t = parseStringsJson(t->strings()[0]);
    if (!t.ok())
      return absl::Status(t.status().code(), absl::StrCat("array '", name, "': ", t.status().message()));
    result.emplace_back(std::move(name), std::move(*t));
    std::string().swap(content);
  }
  return result;
}

absl::StatusOr<NamedTensors> readNpz(const std::string &path, int64_t maxBytes) {
  absl::StatusOr<std::string> bytes = readFile(path);
  if (!bytes.ok())
    return bytes.status();
  absl::StatusOr<NamedTensors> r = parseNpz(*bytes, maxBytes);
  if (!r.ok())
    return absl::Status(r.status().code(), absl::StrCat("'", path, "': ", r.status().message()));
  return r;
}

absl::StatusOr<std::string> npzBytes(const NamedTensors &tensors) {
  ZipEntries entries;
  Json types = Json::object();
  for (const auto &[name, tensor] : tensors) {
    DType type = tensor.dtype();
    if (type != DType::String && dtypeSize(type) == 0)
      return absl::InvalidArgumentError(
          absl::StrCat("'", name, "': a tensor of type ", dtypeName(type), " cannot be stored"));
    if (storageOf(type) != type || type == DType::String)
      types[name] = dtypeName(type);
    entries.emplace_back(name + ".npy", npyBytes(tensor));
  }
  if (!types.empty())
    entries.emplace_back("__dtypes__.npy", npyOfAscii(types.dump(-1, ' ', /*ensure_ascii=*/true)));
  return zipBytes(entries);
}

absl::Status writeNpz(const std::string &path, const NamedTensors &tensors) {
  absl::StatusOr<std::string> bytes = npzBytes(tensors);
  if (!bytes.ok())
    return bytes.status();
  return writeFile(path, *bytes);
}

absl::StatusOr<Tensor> readTensorFile(const std::string &path, std::optional<DType> as) {
  if (!absl::EndsWith(path, ".strings.json"))
    return readNpy(path, as);
  absl::StatusOr<std::string> text = readFile(path);
  if (!text.ok())
    return text.status();
  return parseStringsJson(*text);
}

absl::Status writeTensorFile(const std::string &stem, const Tensor &tensor) {
  if (tensor.dtype() == DType::String)
    return writeFile(stem + ".strings.json", stringsJson(tensor));
  return writeNpy(stem + ".npy", tensor);
}

} // namespace lathe
