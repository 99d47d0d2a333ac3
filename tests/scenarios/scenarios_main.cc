// scenarios FOLDER... [--rewrite]: runs every scenario in the folder and below it; a difference is printed and fails.

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "sim/scenario/scenario.h"

int main(int argc, char** argv) {
  const std::vector<std::string_view> args(argv + 1, argv + argc);
  const int status = berth::sim::scenario_main(args);
  if (status != 0) return status;
  std::size_t count = 0;
  for (const std::string_view arg : args) {
    if (arg.starts_with("--")) continue;
    const auto files = berth::sim::scenario_files(std::string(arg));
    if (files) count += files->size();
  }
  std::printf("%zu scenarios are as expected\n", count);
  return 0;
}
