#pragma once
// Golden scenarios: a script of a cluster's life with the decisions that are expected, in blocks of the form
//
//   submit train queue=research gpus=8 tasks=2
//   ----
//   train is job 1
//   0s     train starts on n1[0-7] n2[0-7], within
//
// A block is a directive with `name=value` words, for some directives indented lines below it, then `----` and what is
// expected up to the next empty line. Lines that begin with `#` between blocks are comments. docs/scenarios.md has the
// language.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace berth::sim {

// Returns the script with what really happened after each `----`. It equals `text` if all is as expected. For a line
// that is not understood, the output of its block is "error: ...".
std::string run_scenario(std::string_view text);

// Returns the lines that differ, "-" expected and "+" actual, each with its directive; empty if equal.
std::string scenario_diff(std::string_view expected, std::string_view actual);

// A scenario on disk and the name that it is reported by.
struct ScenarioFile {
  std::string path;
  std::string name;
};

// The scenarios at `path`. A file is one, and its name is `path`. A folder has every *.txt in it and below it, except
// CMakeLists.txt; their names are relative to the folder, and the list is sorted by name. Returns an error for a folder
// without scenarios, or one that cannot be read.
Result<std::vector<ScenarioFile>> scenario_files(const std::string& path);

// `scenario FILE|FOLDER... [--rewrite]`: runs each scenario; prints a diff and returns 1 if one differs, 2 if one
// cannot be read.
int scenario_main(std::span<const std::string_view> args);

}  // namespace berth::sim
