// Every float through every emitted function: MathExhaustive [stride [name]]; minutes with stride 1. Not run by lit.
#include "MathSweep.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

int main(int argc, char **argv) {
  unsigned stride = argc > 1 ? std::atoi(argv[1]) : 1;
  int bad = 0;
  for (const auto &c : lathe::test::mathCases()) {
    if (argc > 2 && std::strcmp(argv[2], c.name))
      continue;
    const char *cpu = argc > 3 ? argv[3] : "host";
    auto r = lathe::test::sweep(c, stride, cpu, argc > 4 ? std::atoi(argv[4]) : 16);
    bool fine = r.ok && r.worstUlp <= c.maxUlp && !r.wrongSpecial;
    bad += !fine;
    std::printf("%-9s %s worst %.4f ulp at %a (%g): got %g, want %.9g; limit %g; wrong special values %llu (%a)\n", c.name,
                fine ? "ok  " : "FAIL", r.worstUlp, r.worstAt, r.worstAt, r.got, r.want, c.maxUlp,
                static_cast<unsigned long long>(r.wrongSpecial), r.specialAt);
    std::fflush(stdout);
  }
  return bad != 0;
}
