#include "base/Tensor.h"

#include "base/Memory.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <cstring>
#if defined(__linux__)
#include <sys/mman.h>
#endif
#include <new>

namespace lathe {

absl::StatusOr<int64_t> checkedNumElements(const std::vector<int64_t> &dims) {
  int64_t n = 1;
  bool zero = false;
  for (int64_t d : dims) {
    if (d < 0)
      return absl::InvalidArgumentError(absl::StrCat("negative dimension in shape ", dimsToString(dims)));
    // a zero hides an overflow of the others, yet strides computed from them would still overflow
    if (d == 0)
      zero = true;
    else if (__builtin_mul_overflow(n, d, &n))
      return absl::InvalidArgumentError(
          absl::StrCat("number of elements of shape ", dimsToString(dims), " overflows"));
  }
  return zero ? 0 : n;
}

std::string dimsToString(const std::vector<int64_t> &dims) {
  return absl::StrCat("[", absl::StrJoin(dims, ","), "]");
}

static constexpr size_t kAlign = 64;

static bool holdsObjects(DType type) { return type == DType::Resource || type == DType::Variant; }

// Memory of many megabytes in pages of two: a kernel that streams through it would miss the TLB every 64 cache lines,
// and prefetching stops at each page.
constexpr size_t kHugePage = 2 << 20;

// No byte more than asked for, so that an address sanitizer sees the first one outside. Null where memory or the budget ends.
static std::shared_ptr<void> alignedBuffer(size_t bytes) {
  if (!takeMemory(bytes))
    return nullptr;
  void *p = nullptr;
  const bool huge = bytes >= 2 * kHugePage;
  if (posix_memalign(&p, huge ? kHugePage : kAlign, bytes) != 0 || !p) {
    giveMemoryBack(bytes);
    return nullptr;
  }
#if defined(__linux__)
  if (huge)
    madvise(p, bytes / kHugePage * kHugePage, MADV_HUGEPAGE); // a wish: where there are none, small pages serve
#endif
  std::memset(p, 0, bytes);
  return std::shared_ptr<void>(p, [bytes](void *q) {
    std::free(q);
    giveMemoryBack(bytes);
  });
}

/// Elements of a Resource or Variant tensor. Objects hold tensors, whose objects hold tensors again, as deep as a loop of the
/// graph nests them: where one is freed while another is, it waits until that is done, so that no nest needs a deep stack.
static std::shared_ptr<std::vector<ObjectPtr>> objectArray(std::vector<ObjectPtr> objects) {
  using Array = std::unique_ptr<std::vector<ObjectPtr>>;
  return {new std::vector<ObjectPtr>(std::move(objects)), [](std::vector<ObjectPtr> *freed) {
            thread_local std::vector<Array> *waiting = nullptr;
            if (waiting) {
              waiting->emplace_back(freed);
              return;
            }
            std::vector<Array> arrays;
            arrays.emplace_back(freed);
            waiting = &arrays;
            while (!arrays.empty()) {
              Array last = std::move(arrays.back());
              arrays.pop_back();
              last.reset(); // may add to the arrays
            }
            waiting = nullptr;
          }};
}

/// As operator new does where memory ends: the command line's handler reports it, what calls kernels catches it.
[[noreturn]] static void outOfMemory() {
  if (std::new_handler handler = std::get_new_handler())
    handler();
  throw std::bad_alloc();
}

Tensor Tensor::allocate(DType type, std::vector<int64_t> dims) {
  absl::StatusOr<int64_t> n = checkedNumElements(dims);
  assert(n.ok() && "dimensions not checked");
  Tensor t;
  t.type = type;
  t.shape = std::move(dims);
  t.count = *n;
  if (type == DType::String)
    t.values = std::make_shared<std::vector<std::string>>(t.count);
  else if (holdsObjects(type))
    t.things = objectArray(std::vector<ObjectPtr>(t.count));
  else {
    t.buffer = alignedBuffer(t.count * dtypeSize(type));
    if (!t.buffer)
      outOfMemory();
  }
  return t;
}

absl::StatusOr<Tensor> Tensor::tryAllocate(DType type, std::vector<int64_t> dims, int64_t maxBytes) {
  absl::StatusOr<int64_t> n = checkedNumElements(dims);
  if (!n.ok())
    return n.status();
  int64_t size = dtypeSize(type);
  if (type == DType::String)
    size = sizeof(std::string);
  else if (holdsObjects(type))
    size = sizeof(ObjectPtr);
  if (size == 0)
    return absl::InvalidArgumentError(absl::StrCat("a tensor of type ", dtypeName(type), " has no storage"));
  int64_t bytes;
  maxBytes = std::min(maxBytes, memoryBudget());
  if (__builtin_mul_overflow(*n, size, &bytes) || bytes > maxBytes)
    return absl::ResourceExhaustedError(absl::StrCat("a tensor of type ", dtypeName(type), " and shape ",
                                                     dimsToString(dims), " is larger than ", maxBytes,
                                                     " bytes"));
  Tensor t;
  t.type = type;
  t.shape = std::move(dims);
  t.count = *n;
  if (type == DType::String)
    t.values = std::make_shared<std::vector<std::string>>(t.count);
  else if (holdsObjects(type))
    t.things = objectArray(std::vector<ObjectPtr>(t.count));
  else if (!(t.buffer = alignedBuffer(bytes)))
    return absl::ResourceExhaustedError(absl::StrCat("out of memory for a tensor of ", bytes, " bytes; tensors hold ",
                                                     memoryInUse(), " bytes of at most ", memoryBudget()));
  return t;
}

Tensor Tensor::wrap(DType type, std::vector<int64_t> dims, void *data, std::shared_ptr<void> owner) {
  Tensor t;
  t.type = type;
  absl::StatusOr<int64_t> n = checkedNumElements(dims);
  assert(n.ok() && "dimensions not checked");
  t.count = *n;
  t.shape = std::move(dims);
  t.buffer = std::shared_ptr<void>(std::move(owner), data);
  return t;
}

Tensor Tensor::fromStrings(std::vector<int64_t> dims, std::vector<std::string> values) {
  Tensor t;
  t.type = DType::String;
  t.count = static_cast<int64_t>(values.size());
  assert(checkedNumElements(dims).value_or(-1) == t.count && "strings do not fill the shape");
  t.shape = std::move(dims);
  t.values = std::make_shared<std::vector<std::string>>(std::move(values));
  return t;
}

Tensor Tensor::fromObjects(DType type, std::vector<int64_t> dims, std::vector<ObjectPtr> values) {
  assert(holdsObjects(type) && "only resources and variants are objects");
  Tensor t;
  t.type = type;
  t.count = static_cast<int64_t>(values.size());
  assert(checkedNumElements(dims).value_or(-1) == t.count && "objects do not fill the shape");
  t.shape = std::move(dims);
  t.things = objectArray(std::move(values));
  return t;
}

const std::vector<std::string> &Tensor::strings() const {
  static const std::vector<std::string> none;
  return values ? *values : none;
}

std::vector<std::string> &Tensor::mutableStrings() {
  if (!values)
    values = std::make_shared<std::vector<std::string>>();
  return *values;
}

const std::vector<ObjectPtr> &Tensor::objects() const {
  static const std::vector<ObjectPtr> none;
  return things ? *things : none;
}

std::vector<ObjectPtr> &Tensor::mutableObjects() {
  if (!things)
    things = objectArray({});
  return *things;
}

Tensor Tensor::reshaped(std::vector<int64_t> dims) const {
  assert(checkedNumElements(dims).value_or(-1) == count && "reshape changes the number of elements");
  Tensor t = *this;
  t.shape = std::move(dims);
  return t;
}

Tensor Tensor::bitcast(DType to) const {
  assert(dtypeSize(to) == dtypeSize(type) && "bitcast changes the element size");
  Tensor t = *this;
  t.type = to;
  return t;
}

Tensor Tensor::clone() const {
  Tensor t = *this;
  if (values)
    t.values = std::make_shared<std::vector<std::string>>(*values);
  if (things)
    t.things = objectArray(*things);
  if (buffer) {
    t.buffer = alignedBuffer(sizeBytes());
    if (!t.buffer)
      outOfMemory();
    std::memcpy(t.buffer.get(), buffer.get(), sizeBytes());
  }
  return t;
}

} // namespace lathe
