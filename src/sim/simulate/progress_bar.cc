#include "sim/simulate/progress_bar.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace berth::sim {

namespace {

constexpr int kWidth = 30;

std::string grouped(std::int64_t value) {
  std::string text = std::to_string(value);
  for (std::size_t i = text.size(); i > 3; i -= 3) text.insert(i - 3, ",");
  return text;
}

std::string minutes(double seconds) {
  const auto whole = static_cast<std::int64_t>(seconds + 0.5);
  const std::int64_t rest = whole % 60;
  return std::to_string(whole / 60) + (rest < 10 ? ":0" : ":") + std::to_string(rest);
}

}  // namespace

std::string progress_line(std::int64_t done, std::int64_t all, double elapsed_s) {
  const std::int64_t shown = std::clamp<std::int64_t>(done, 0, all);
  const std::int64_t filled = all == 0 ? kWidth : shown * kWidth / all;
  std::string line = "[" + std::string(static_cast<std::size_t>(filled), '#') +
                     std::string(static_cast<std::size_t>(kWidth - filled), '.') + "]";
  const std::string percent = std::to_string(all == 0 ? 100 : shown * 100 / all);
  line += std::string(4 - std::min<std::size_t>(4, percent.size()), ' ') + percent + " %";
  if (elapsed_s <= 0 || shown == 0) return line;
  const double rate = static_cast<double>(shown) / elapsed_s;
  line += "   " + grouped(static_cast<std::int64_t>(rate)) + " jobs/s";
  if (shown < all) line += "   " + minutes(static_cast<double>(all - shown) / rate) + " left";
  return line;
}

ProgressBar::ProgressBar() : on_terminal_(isatty(STDERR_FILENO) == 1), start_(std::chrono::steady_clock::now()) {}

void ProgressBar::show(std::int64_t done, std::int64_t all) {
  if (!on_terminal_) return;
  const double elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  std::fprintf(stderr, "\r\033[K%s", progress_line(done, all, elapsed).c_str());
  std::fflush(stderr);
  shown_ = true;
}

void ProgressBar::clear() {
  if (shown_) std::fputs("\r\033[K", stderr);
  shown_ = false;
}

}  // namespace berth::sim
