/* The elements of TF_STRING tensors. A string takes 24 bytes and is of one of four kinds, told apart by the lowest two bits of
 * its first byte; sizes are shifted by them. Short strings lie within; longer ones in memory of malloc, behind the
 * string itself (at an offset), or in somebody else's memory (a view). All but views end with a zero byte. */
#ifndef TENSORFLOW_C_TF_TSTRING_H_
#define TENSORFLOW_C_TF_TSTRING_H_

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tensorflow/c/c_api_macros.h"
#include "tensorflow/c/tf_tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum TF_TString_Type {
  TF_TSTR_SMALL = 0x00,
  TF_TSTR_LARGE = 0x01,
  TF_TSTR_OFFSET = 0x02,
  TF_TSTR_VIEW = 0x03,
  TF_TSTR_TYPE_MASK = 0x03
} TF_TString_Type;

/* Who keeps the bytes of a view; may be absent. */
struct TStringOwnerCApi;
typedef void (*tstring_owner_ref_t)(struct TStringOwnerCApi *self);
typedef bool (*tstring_owner_unref_t)(struct TStringOwnerCApi *self);
typedef struct TStringOwnerCApi {
  tstring_owner_ref_t ref;
  tstring_owner_unref_t unref;
  void *obj;
} TStringOwnerCApi;

typedef struct TF_TString_Large {
  size_t size;
  size_t cap; /* without the zero byte */
  char *ptr;
} TF_TString_Large;

typedef struct TF_TString_Offset {
  uint32_t size;
  uint32_t offset; /* from the string itself */
  uint32_t count;
} TF_TString_Offset;

typedef struct TF_TString_View {
  size_t size;
  const char *ptr;
  TStringOwnerCApi *owner_ref;
} TF_TString_View;

typedef struct TF_TString_Raw {
  uint8_t raw[24];
} TF_TString_Raw;

typedef union TF_TString_Union {
  TF_TString_Large large;
  TF_TString_Offset offset;
  TF_TString_View view;
  TF_TString_Raw raw;
} TF_TString_Union;

enum { TF_TString_SmallCapacity = sizeof(TF_TString_Union) - 2 };

typedef struct TF_TString_Small {
  uint8_t size;
  char str[TF_TString_SmallCapacity + 1];
} TF_TString_Small;

typedef struct TF_TString {
  union {
    TF_TString_Small smll;
    TF_TString_Large large;
    TF_TString_Offset offset;
    TF_TString_View view;
    TF_TString_Raw raw;
  } u;
} TF_TString;

/* An empty string. */
TF_CAPI_EXPORT extern void TF_StringInit(TF_TString *t);
/* Replaces the content by a copy of the bytes. */
TF_CAPI_EXPORT extern void TF_StringCopy(TF_TString *dst, const char *src, size_t size);
/* Replaces the content by a view of bytes that have to outlive it. */
TF_CAPI_EXPORT extern void TF_StringAssignView(TF_TString *dst, const char *src, size_t size);
TF_CAPI_EXPORT extern const char *TF_StringGetDataPointer(const TF_TString *tstr);
TF_CAPI_EXPORT extern TF_TString_Type TF_StringGetType(const TF_TString *str);
TF_CAPI_EXPORT extern size_t TF_StringGetSize(const TF_TString *tstr);
/* Bytes that fit without new memory; 0 for offsets and views. */
TF_CAPI_EXPORT extern size_t TF_StringGetCapacity(const TF_TString *str);
/* Gives memory back and leaves an empty string. */
TF_CAPI_EXPORT extern void TF_StringDealloc(TF_TString *tstr);

/* The same within the program, under the names that programs written in C use for them. */
static inline void TF_TString_Init(TF_TString *str) { memset(str, 0, sizeof(*str)); }
static inline TF_TString_Type TF_TString_GetType(const TF_TString *str) {
  return (TF_TString_Type)(str->u.raw.raw[0] & TF_TSTR_TYPE_MASK);
}
static inline size_t TF_TString_GetSize(const TF_TString *str) {
  switch (TF_TString_GetType(str)) {
  case TF_TSTR_SMALL: return str->u.smll.size >> 2;
  case TF_TSTR_OFFSET: return str->u.offset.size >> 2;
  default: return str->u.large.size >> 2; /* at the same place in views */
  }
}
static inline size_t TF_TString_GetCapacity(const TF_TString *str) {
  switch (TF_TString_GetType(str)) {
  case TF_TSTR_SMALL: return TF_TString_SmallCapacity;
  case TF_TSTR_LARGE: return str->u.large.cap;
  default: return 0;
  }
}
static inline const char *TF_TString_GetDataPointer(const TF_TString *str) {
  switch (TF_TString_GetType(str)) {
  case TF_TSTR_SMALL: return str->u.smll.str;
  case TF_TSTR_LARGE: return str->u.large.ptr;
  case TF_TSTR_OFFSET: return (const char *)str + str->u.offset.offset;
  default: return str->u.view.ptr;
  }
}
static inline void TF_TString_Dealloc(TF_TString *str) {
  TF_TString_Type type = TF_TString_GetType(str);
  if (type == TF_TSTR_LARGE)
    free(str->u.large.ptr);
  else if (type == TF_TSTR_VIEW && str->u.view.owner_ref)
    (void)str->u.view.owner_ref->unref(str->u.view.owner_ref);
  TF_TString_Init(str);
}
/* Writable memory for new_size bytes that begins with as much of the old content as fits; NULL, and an empty string, when there
 * is no memory. */
static inline char *TF_TString_ResizeUninitialized(TF_TString *str, size_t new_size) {
  TF_TString old = *str;
  size_t kept = TF_TString_GetSize(str) < new_size ? TF_TString_GetSize(str) : new_size;
  const char *from = TF_TString_GetType(str) == TF_TSTR_SMALL ? old.u.smll.str : TF_TString_GetDataPointer(str);
  if (TF_TString_GetType(str) == TF_TSTR_LARGE && new_size > TF_TString_SmallCapacity && new_size <= str->u.large.cap) {
    str->u.large.size = new_size << 2 | TF_TSTR_LARGE;
    str->u.large.ptr[new_size] = 0;
    return str->u.large.ptr;
  }
  TF_TString made;
  TF_TString_Init(&made);
  char *data = made.u.smll.str;
  if (new_size <= TF_TString_SmallCapacity) {
    made.u.smll.size = (uint8_t)(new_size << 2);
  } else {
    size_t cap = (new_size + 16) / 16 * 16 - 1;
    data = cap < new_size ? NULL : (char *)malloc(cap + 1);
    if (!data) {
      TF_TString_Dealloc(str);
      return NULL;
    }
    made.u.large.size = new_size << 2 | TF_TSTR_LARGE;
    made.u.large.cap = cap;
    made.u.large.ptr = data;
  }
  if (kept)
    memcpy(data, from, kept);
  data[new_size] = 0;
  TF_TString_Dealloc(str);
  *str = made;
  return new_size <= TF_TString_SmallCapacity ? str->u.smll.str : data;
}
static inline char *TF_TString_Resize(TF_TString *str, size_t new_size, char c) {
  size_t size = TF_TString_GetSize(str);
  char *data = TF_TString_ResizeUninitialized(str, new_size);
  if (data && new_size > size)
    memset(data + size, c, new_size - size);
  return data;
}
static inline char *TF_TString_GetMutableDataPointer(TF_TString *str) {
  switch (TF_TString_GetType(str)) {
  case TF_TSTR_SMALL: return str->u.smll.str;
  case TF_TSTR_LARGE: return str->u.large.ptr;
  default: return TF_TString_ResizeUninitialized(str, TF_TString_GetSize(str));
  }
}
/* Room for `new_cap` bytes, where there is memory for them. */
static inline void TF_TString_Reserve(TF_TString *str, size_t new_cap) {
  size_t size = TF_TString_GetSize(str);
  if (new_cap <= TF_TString_SmallCapacity || new_cap <= TF_TString_GetCapacity(str))
    return;
  char *data = TF_TString_ResizeUninitialized(str, new_cap > size ? new_cap : size);
  if (data) {
    str->u.large.size = size << 2 | TF_TSTR_LARGE;
    data[size] = 0;
  }
}
static inline void TF_TString_ReserveAmortized(TF_TString *str, size_t new_cap) {
  size_t cap = TF_TString_GetCapacity(str);
  if (new_cap > cap)
    TF_TString_Reserve(str, new_cap > 2 * cap ? new_cap : 2 * cap);
}
static inline void TF_TString_AssignViewWithOwner(TF_TString *dst, const char *src, size_t size, TStringOwnerCApi *owner_ref) {
  if (owner_ref)
    owner_ref->ref(owner_ref);
  TF_TString_Dealloc(dst);
  dst->u.view.size = size << 2 | TF_TSTR_VIEW;
  dst->u.view.ptr = src;
  dst->u.view.owner_ref = owner_ref;
}
static inline void TF_TString_AssignView(TF_TString *dst, const char *src, size_t size) {
  TF_TString_AssignViewWithOwner(dst, src, size, NULL);
}
static inline void TF_TString_Copy(TF_TString *dst, const char *src, size_t size) {
  char *data = TF_TString_ResizeUninitialized(dst, size);
  if (data && size)
    memmove(data, src, size);
}
static inline void TF_TString_AppendN(TF_TString *dst, const char *src, size_t size) {
  size_t before = TF_TString_GetSize(dst);
  if (!size)
    return;
  TF_TString_ReserveAmortized(dst, before + size);
  char *data = TF_TString_ResizeUninitialized(dst, before + size);
  if (data)
    memcpy(data + before, src, size);
}
static inline void TF_TString_Append(TF_TString *dst, const TF_TString *src) {
  TF_TString_AppendN(dst, TF_TString_GetDataPointer(src), TF_TString_GetSize(src));
}
/* A view stays a view of the same bytes; everything else is copied. */
static inline void TF_TString_Assign(TF_TString *dst, const TF_TString *src) {
  if (dst == src)
    return;
  if (TF_TString_GetType(src) == TF_TSTR_VIEW)
    TF_TString_AssignViewWithOwner(dst, src->u.view.ptr, TF_TString_GetSize(src), src->u.view.owner_ref);
  else
    TF_TString_Copy(dst, TF_TString_GetDataPointer(src), TF_TString_GetSize(src));
}
/* Leaves `src` empty. */
static inline void TF_TString_Move(TF_TString *dst, TF_TString *src) {
  if (dst == src)
    return;
  TF_TString_Dealloc(dst);
  if (TF_TString_GetType(src) == TF_TSTR_OFFSET) {
    TF_TString_Copy(dst, TF_TString_GetDataPointer(src), TF_TString_GetSize(src));
    TF_TString_Init(src);
    return;
  }
  *dst = *src;
  TF_TString_Init(src);
}

#ifdef __cplusplus
}
#endif

#endif /* TENSORFLOW_C_TF_TSTRING_H_ */
