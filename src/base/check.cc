#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace berth {

void check_failed(const char* condition, const char* file, int line) {
  // allowed: the last words of a process that is about to stop
  std::fprintf(stderr, "berth: CHECK failed: %s (%s:%d)\n", condition, file, line);
  std::abort();
}

}  // namespace berth
