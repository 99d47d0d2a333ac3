#pragma once
// A line on a terminal that says how far an experiment is, at what rate, and how long it will still take.

#include <chrono>
#include <cstdint>
#include <string>

namespace berth::sim {

// "[#########...........]  45 %   1,234 jobs/s   0:12 left"
std::string progress_line(std::int64_t done, std::int64_t all, double elapsed_s);

class ProgressBar {
 public:
  // Silent where standard error is no terminal.
  ProgressBar();
  void show(std::int64_t done, std::int64_t all);
  // Wipes the line.
  void clear();

 private:
  bool on_terminal_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace berth::sim
