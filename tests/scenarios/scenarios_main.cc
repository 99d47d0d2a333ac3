// scenarios FOLDER [--rewrite]: every *.txt of the folder; a difference is printed and fails.

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "sim/scenario/scenario.h"

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
    const bool scenario = entry.path().extension() == ".txt" && entry.path().filename() != "CMakeLists.txt";
    if (scenario) files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  std::vector<std::string_view> args(files.begin(), files.end());
  if (args.empty()) {
    std::puts("no scenarios found");
    return 2;
  }
  const std::size_t count = args.size();
  if (argc > 2) args.emplace_back(argv[2]);
  const int status = berth::sim::scenario_main(args);
  if (status == 0) std::printf("%zu scenarios are as expected\n", count);
  return status;
}
