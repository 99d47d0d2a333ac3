// A program that is only the supervisor, for the tests. `berth supervise` is the same code inside the berth binary.

#include <cstdio>

#include "executor/supervise.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: berth_supervise TASKDIR\n");
    return 2;
  }
  return berth::executor::supervise_main(argv[1]);
}
