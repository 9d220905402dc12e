/* Programs ask for these functions under two versions: VERS_1.0, as TensorFlow's release builds have them, and `tensorflow`, as its
 * Python package does. The first is the definition; the second is a jump to it. */
#if defined(__x86_64__)
#define LATHE_JUMP "jmp "
#define LATHE_SUFFIX "@PLT"
#elif defined(__aarch64__)
#define LATHE_JUMP "b "
#define LATHE_SUFFIX ""
#else
#error "no jump for this machine"
#endif

#define LATHE_C_API(NAME)                                                                                              \
  __asm__(".text\n"                                                                                                    \
          ".balign 16\n"                                                                                               \
          ".globl lathe_again_" #NAME "\n"                                                                             \
          ".type lathe_again_" #NAME ", @function\n"                                                                   \
          "lathe_again_" #NAME ":\n"                                                                                   \
          "  " LATHE_JUMP #NAME LATHE_SUFFIX "\n"                                                                      \
          ".size lathe_again_" #NAME ", .-lathe_again_" #NAME "\n"                                                     \
          ".symver lathe_again_" #NAME ", " #NAME "@tensorflow\n");
#include "Functions.def"
