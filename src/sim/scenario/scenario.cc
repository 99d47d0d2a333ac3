#include "sim/scenario/scenario.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <vector>

#include "sim/scenario/stage.h"

namespace berth::sim {

namespace {

constexpr std::string_view kLine = "----";

std::vector<std::string> lines_of(std::string_view text) {
  auto lines = split(text, '\n');
  if (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

bool begins_block(const std::string& line) { return !line.empty() && !line.starts_with("#"); }

}  // namespace

std::string run_scenario(std::string_view text) {
  Stage stage;
  std::string out;
  const auto lines = lines_of(text);
  for (std::size_t i = 0; i < lines.size();) {
    if (!begins_block(lines[i])) {
      out += lines[i++] + "\n";
      continue;
    }
    const std::string& directive = lines[i];
    std::vector<std::string> below;
    out += lines[i++] + "\n";
    for (; i < lines.size() && !lines[i].empty() && lines[i] != kLine; ++i) {
      out += lines[i] + "\n";
      below.push_back(lines[i]);
    }
    if (i < lines.size() && lines[i] == kLine) {
      while (i < lines.size() && !lines[i].empty()) ++i;
    }
    out += std::string(kLine) + "\n";
    for (const std::string& said : stage.play(directive, below)) out += said + "\n";
  }
  return out;
}

std::string scenario_diff(std::string_view expected, std::string_view actual) {
  const auto blocks_of = [](std::string_view text) {
    std::vector<std::vector<std::string>> blocks(1);
    for (const std::string& line : lines_of(text)) {
      if (line.empty())
        blocks.emplace_back();
      else
        blocks.back().push_back(line);
    }
    return blocks;
  };
  const auto left = blocks_of(expected);
  const auto right = blocks_of(actual);
  std::string diff;
  for (std::size_t i = 0; i < std::max(left.size(), right.size()); ++i) {
    const auto& a = i < left.size() ? left[i] : std::vector<std::string>();
    const auto& b = i < right.size() ? right[i] : std::vector<std::string>();
    if (a == b) continue;
    diff += "  " + (a.empty() ? (b.empty() ? std::string() : b.front()) : a.front()) + "\n";
    for (const std::string& line : a) {
      if (std::find(b.begin(), b.end(), line) == b.end()) diff += "- " + line + "\n";
    }
    for (const std::string& line : b) {
      if (std::find(a.begin(), a.end(), line) == a.end()) diff += "+ " + line + "\n";
    }
    if (diff.ends_with("  " + (a.empty() ? std::string() : a.front()) + "\n")) diff += "  (the order differs)\n";
  }
  return diff;
}

namespace {

Result<std::string> text_of(const std::string& path) {
  std::ifstream in(path);
  std::stringstream content;
  content << in.rdbuf();
  if (!in || in.bad()) return invalid("cannot be read");
  const auto lines = lines_of(content.str());
  const bool any = std::any_of(lines.begin(), lines.end(), begins_block);
  if (!any) return invalid("has no block");
  return content.str();
}

// 0: as expected, 1: not, 2: the file cannot be used.
int play_file(const ScenarioFile& file, bool rewrite) {
  const auto expected = text_of(file.path);
  if (!expected) {
    std::cerr << file.name << ": " << expected.error().message << "\n";
    return 2;
  }
  const std::string actual = run_scenario(*expected);
  if (actual == *expected) return 0;
  if (!rewrite) {
    const std::string diff = scenario_diff(*expected, actual);
    std::cout << file.name << " differs:\n"
              << (diff.empty() ? "  (in empty lines, or in the end of the last)\n" : diff);
    return 1;
  }
  std::ofstream out(file.path);
  out << actual << std::flush;
  if (!out) {
    std::cerr << file.name << ": cannot be written\n";
    return 2;
  }
  std::cout << file.name << ": rewritten\n";
  return 0;
}

}  // namespace

Result<std::vector<ScenarioFile>> scenario_files(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::is_directory(path, error)) return std::vector{ScenarioFile{path, path}};
  std::vector<ScenarioFile> files;
  for (auto at = fs::recursive_directory_iterator(path, error); !error && at != fs::end(at); at.increment(error)) {
    const fs::path& file = at->path();
    if (file.extension() != ".txt" || file.filename() == "CMakeLists.txt") continue;
    files.push_back({file.string(), file.lexically_relative(path).generic_string()});
  }
  if (error) return invalid("cannot be read: " + error.message());
  if (files.empty()) return invalid("no scenario (*.txt) in this folder or below it");
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return files;
}

int scenario_main(std::span<const std::string_view> args) {
  std::vector<std::string> paths;
  bool rewrite = false;
  for (const std::string_view arg : args) {
    if (arg == "--rewrite") {
      rewrite = true;
    } else if (arg.starts_with("--")) {
      std::cerr << "scenario: there is no flag " << shown(arg) << "; known is --rewrite\n";
      return 2;
    } else {
      paths.emplace_back(arg);
    }
  }
  if (paths.empty()) {
    std::cerr << "scenario: give one or more files or folders, and --rewrite to accept what happens\n";
    return 2;
  }
  int status = 0;
  for (const std::string& path : paths) {
    const auto files = scenario_files(path);
    if (!files) {
      std::cerr << path << ": " << files.error().message << "\n";
      status = 2;
      continue;
    }
    for (const ScenarioFile& file : *files) status = std::max(status, play_file(file, rewrite));
  }
  return status;
}

}  // namespace berth::sim
