/* How functions of this interface are declared. Part of Lathe's own text of TensorFlow's C interface: the names, types and
 * values are that interface's, so that programs written for it compile and link unchanged. */
#ifndef TENSORFLOW_C_C_API_MACROS_H_
#define TENSORFLOW_C_C_API_MACROS_H_

#if defined(SWIG)
#define TF_CAPI_EXPORT
#elif defined(TF_CAPI_WEAK)
#define TF_CAPI_EXPORT __attribute__((visibility("default"), weak))
#else
#define TF_CAPI_EXPORT __attribute__((visibility("default")))
#endif

/* A truth value in structs; TF_BOOL is the type of tensors. */
#ifndef TF_Bool
#define TF_Bool unsigned char
#endif

/* The size of a struct up to the end of a member: structs that may grow are passed with it. */
#ifndef TF_OFFSET_OF_END
#define TF_OFFSET_OF_END(TYPE, MEMBER) (offsetof(TYPE, MEMBER) + sizeof(((TYPE *)0)->MEMBER))
#endif

#endif /* TENSORFLOW_C_C_API_MACROS_H_ */
