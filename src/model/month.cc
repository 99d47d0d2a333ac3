#include "model/month.h"

#include <algorithm>

#include "base/check.h"

namespace berth {
namespace {

Timestamp first_of(int year, int month) {
  const std::string text = std::to_string(year) + (month < 10 ? "-0" : "-") + std::to_string(month) + "-01";
  return from_iso8601(text).value();
}

}  // namespace

std::optional<Month> month_of(std::string_view name) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (name.size() != 7 || name[4] != '-' || !std::all_of(name.begin(), name.begin() + 4, is_digit) ||
      !is_digit(name[5]) || !is_digit(name[6]))
    return std::nullopt;
  const int year = std::stoi(std::string(name.substr(0, 4)));
  const int month = std::stoi(std::string(name.substr(5)));
  if (year < 1970 || year > 9998 || month < 1 || month > 12) return std::nullopt;
  return Month{std::string(name), first_of(year, month),
               month == 12 ? first_of(year + 1, 1) : first_of(year, month + 1)};
}

Month month_at(Timestamp time) {
  const auto month = month_of(to_iso8601(time).substr(0, 7));
  BERTH_CHECK(month.has_value());
  return *month;
}

}  // namespace berth
