// Defaults of AddressSanitizer's runtime for the fuzzing programs. LLVM's allocators mark their memory in headers only,
// which the plain libraries do not follow. New memory is zero: statistics of passes are larger where our asserts are on than
// the plain libraries think, which leave the rest uninitialised.
extern "C" __attribute__((visibility("default"))) const char *__asan_default_options() {
  return "exitcode=3:detect_leaks=0:allocator_may_return_null=1:allow_user_poisoning=0:quarantine_size_mb=16:"
         "detect_stack_use_after_return=0:malloc_context_size=8:malloc_fill_byte=0";
}
