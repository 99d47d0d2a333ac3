#pragma once
// A progress line on a terminal: how far an experiment is, its rate, and the time left.

#include <chrono>
#include <cstdint>
#include <string>

namespace berth::sim {

// "[#########...........]  45 %   1,234 jobs/s   0:12 left"
std::string progress_line(std::int64_t done, std::int64_t all, double elapsed_s);

class ProgressBar {
 public:
  // Shows nothing if standard error is not a terminal.
  ProgressBar();
  void show(std::int64_t done, std::int64_t all);
  // Removes the line.
  void clear();

 private:
  bool on_terminal_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace berth::sim
