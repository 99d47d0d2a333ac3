#pragma once
// The program that is executed for each supervisor.

#include <string>
#include <vector>

#include "executor/descriptor.h"

namespace berth::executor {

struct SupervisorProgram {
  std::string path;                // what is executed
  std::vector<std::string> words;  // its name and first arguments; the task's directory comes last
  Descriptor file;  // keeps the program as it was found, also when another version is installed in its place
};

// Returns `berth-supervise` beside the running program, which links only what a supervisor needs; where there is none,
// the running program itself with `supervise`.
SupervisorProgram find_supervisor_program();

}  // namespace berth::executor
