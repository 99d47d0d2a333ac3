#include "sim/scenario/scenario.h"

#include <algorithm>
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

}  // namespace

std::string run_scenario(std::string_view text) {
  Stage stage;
  std::string out;
  const auto lines = lines_of(text);
  for (std::size_t i = 0; i < lines.size();) {
    if (lines[i].empty() || lines[i].starts_with("#")) {
      out += lines[i++] + "\n";
      continue;
    }
    const std::string directive = lines[i];
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

int scenario_main(std::span<const std::string_view> args) {
  const bool rewrite = std::find(args.begin(), args.end(), "--rewrite") != args.end();
  int status = 0;
  std::size_t files = 0;
  for (const std::string_view arg : args) {
    if (arg == "--rewrite") continue;
    ++files;
    const std::string path(arg);
    std::ifstream in(path);
    if (!in) {
      std::cerr << path << ": cannot be read\n";
      status = 2;
      continue;
    }
    std::stringstream content;
    content << in.rdbuf();
    const std::string expected = content.str();
    const std::string actual = run_scenario(expected);
    if (actual == expected) continue;
    if (rewrite) {
      std::ofstream(path) << actual;
      std::cout << path << ": rewritten\n";
    } else {
      std::cout << path << " differs:\n" << scenario_diff(expected, actual);
      status = std::max(status, 1);
    }
  }
  if (files == 0) {
    std::cerr << "scenario: give one or more files, and --rewrite to accept what happens\n";
    return 2;
  }
  return status;
}

}  // namespace berth::sim
