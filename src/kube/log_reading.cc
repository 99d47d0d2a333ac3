#include "kube/log_reading.h"

#include <algorithm>
#include <utility>

namespace berth::kube {
namespace {

constexpr std::size_t kMostTime = 64;
constexpr std::size_t kSeconds = 19;  // 2026-11-25T16:00:00

}  // namespace

std::string log_query(const LogPlace& place) {
  std::string query = "timestamps=true";
  if (place.time.size() >= kSeconds) query += "&sinceTime=" + place.time.substr(0, kSeconds) + "Z";
  return query;
}

LogReading::LogReading(LogPlace place, std::int64_t from, std::int64_t max_bytes, bool is_cut)
    : from_(from),
      max_bytes_(static_cast<std::size_t>(std::max<std::int64_t>(0, max_bytes))),
      is_cut_(is_cut),
      begin_(std::move(place)),
      passed_(begin_.time.empty() || is_cut),
      place_(begin_),
      last_(begin_) {}

void LogReading::take(std::string_view piece) {
  while (!piece.empty()) {
    if (in_time_) {
      const std::size_t space = piece.find(' ');
      const std::size_t end = std::min(space, piece.size());
      time_.append(piece.substr(0, std::min(end, kMostTime)));
      piece.remove_prefix(space == std::string_view::npos ? piece.size() : space + 1);
      if (space == std::string_view::npos) return;
      in_time_ = false;
      begin_line();
    }
    const std::size_t newline = piece.find('\n');
    const std::size_t end = newline == std::string_view::npos ? piece.size() : newline + 1;
    take_text(piece.substr(0, end));
    piece.remove_prefix(end);
    if (newline != std::string_view::npos) end_line();
  }
}

void LogReading::begin_line() {
  skips_ = !passed_ || (is_cut_ && !begin_.time.empty() && time_ <= begin_.time);
  const std::string second = time_.substr(0, kSeconds);
  if (second != second_) counts_.clear();
  second_ = second;
  const std::int32_t count = ++counts_[time_];
  if (!passed_ && time_ == begin_.time) passed_ = count >= begin_.same;
}

void LogReading::take_text(std::string_view text) {
  if (skips_) return;
  std::int64_t at = end();
  line_bytes_ += static_cast<std::int64_t>(text.size());
  if (at < from_) {
    const auto before = std::min<std::int64_t>(from_ - at, static_cast<std::int64_t>(text.size()));
    text.remove_prefix(static_cast<std::size_t>(before));
    at += before;
  }
  bytes_.append(text.substr(0, std::min(text.size(), max_bytes_ - bytes_.size())));
}

void LogReading::end_line() {
  in_time_ = true;
  if (!skips_) {
    place_.offset += line_bytes_;
    place_.same = counts_[time_];
    place_.time = time_;
    line_bytes_ = 0;
    if (place_.offset <= from_ + static_cast<std::int64_t>(bytes_.size())) last_ = place_;
  }
  time_.clear();
}

}  // namespace berth::kube
