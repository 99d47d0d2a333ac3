// A program that is nothing but the supervisor. `berth supervise` is the same inside the one binary; the tests use this
// one.

#include <cstdio>

#include "executor/supervise.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: berth_supervise TASKDIR\n");
    return 2;
  }
  return berth::executor::supervise_main(argv[1]);
}
