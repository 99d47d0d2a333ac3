// `berth-supervise`, a program that is only the supervisor: one runs for each task, so it links only what that needs.
// `berth supervise` is the same code inside the berth binary.

#include <cstdio>

#include "executor/supervise.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: berth-supervise TASKDIR\n");
    return 2;
  }
  return berth::executor::supervise_main(argv[1]);
}
