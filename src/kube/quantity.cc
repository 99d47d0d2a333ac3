#include "kube/quantity.h"

#include <array>
#include <string>
#include <utility>

#include "base/checked.h"
#include "kube/json_reading.h"

namespace berth::kube {
namespace {

using Wide = Int128;

Error no_quantity(std::string_view quantity, std::string_view why) {
  return {ErrorCode::kInvalid,
          "'" + shown(quantity, 40) + "' " + std::string(why) + "; give a quantity such as 500m, 2 or 16Gi"};
}

// The value is numerator / denominator.
struct Fraction {
  Wide numerator = 0;
  Wide denominator = 1;
};

constexpr Wide kMost = Wide{1} << 100;

bool scale(Fraction& value, std::int64_t by, int times) {
  for (int time = 0; time < times; ++time) {
    value.numerator *= by;
    if (value.numerator > kMost) return false;
  }
  return true;
}

// Applies the suffix or exponent. Returns false if it is none, or is too large.
bool apply_suffix(Fraction& value, std::string_view suffix) {
  if (suffix.empty()) return true;
  constexpr std::array<std::pair<std::string_view, int>, 6> kBinary = {
      {{"Ki", 1}, {"Mi", 2}, {"Gi", 3}, {"Ti", 4}, {"Pi", 5}, {"Ei", 6}}};
  for (const auto& [name, power] : kBinary) {
    if (suffix == name) return scale(value, 1024, power);
  }
  constexpr std::array<std::pair<std::string_view, int>, 6> kDecimal = {
      {{"k", 1}, {"M", 2}, {"G", 3}, {"T", 4}, {"P", 5}, {"E", 6}}};
  for (const auto& [name, power] : kDecimal) {
    if (suffix == name) return scale(value, 1000, power);
  }
  constexpr std::array<std::pair<std::string_view, std::int64_t>, 3> kSmall = {
      {{"m", 1000}, {"u", 1'000'000}, {"n", 1'000'000'000}}};
  for (const auto& [name, divisor] : kSmall) {
    if (suffix != name) continue;
    value.denominator *= divisor;
    return true;
  }
  if (suffix.front() != 'e' && suffix.front() != 'E') return false;
  suffix.remove_prefix(1);
  const bool down = !suffix.empty() && suffix.front() == '-';
  if (!suffix.empty() && (suffix.front() == '-' || suffix.front() == '+')) suffix.remove_prefix(1);
  if (suffix.empty() || suffix.size() > 2) return false;
  int exponent = 0;
  for (const char digit : suffix) {
    if (digit < '0' || digit > '9') return false;
    exponent = exponent * 10 + (digit - '0');
  }
  if (!down) return scale(value, 10, exponent);
  if (exponent > 18) return false;
  for (int time = 0; time < exponent; ++time) value.denominator *= 10;
  return true;
}

Result<Fraction> read(std::string_view quantity) {
  if (quantity.size() > 64) return no_quantity(quantity, "is too long");
  std::string_view rest = quantity;
  if (!rest.empty() && rest.front() == '-') return no_quantity(quantity, "is negative");
  if (!rest.empty() && rest.front() == '+') rest.remove_prefix(1);
  Fraction value;
  bool digits = false;
  bool after_point = false;
  while (!rest.empty() && ((rest.front() >= '0' && rest.front() <= '9') || (rest.front() == '.' && !after_point))) {
    if (rest.front() == '.') {
      after_point = true;
    } else {
      digits = true;
      value.numerator = value.numerator * 10 + (rest.front() - '0');
      if (after_point) value.denominator *= 10;
      if (value.numerator > kMost || value.denominator > (Wide{1} << 60)) return no_quantity(quantity, "is too large");
    }
    rest.remove_prefix(1);
  }
  if (!digits) return no_quantity(quantity, "is no quantity");
  if (!apply_suffix(value, rest)) return no_quantity(quantity, "is no quantity, or too large");
  return value;
}

Fraction reduced(Fraction value) {
  Wide a = value.numerator;
  Wide b = value.denominator;
  while (b != 0) a = std::exchange(b, a % b);
  return {value.numerator / a, value.denominator / a};
}

// Returns value * times / divisor, rounded up.
Result<std::int64_t> rounded_up(std::string_view quantity, Wide times, Wide divisor, std::int64_t most) {
  const auto value = read(quantity);
  if (!value) return value.error();
  if (value->numerator > kMost / times) return no_quantity(quantity, "is too large");
  const Wide below = value->denominator * divisor;
  const Wide rounded = (value->numerator * times + below - 1) / below;
  if (rounded > most) return no_quantity(quantity, "is too large");
  return static_cast<std::int64_t>(rounded);
}

}  // namespace

Result<std::int64_t> milli_of(std::string_view quantity) {
  return rounded_up(quantity, 1000, 1, std::int64_t{1} << 50);
}

Result<std::int64_t> mib_of(std::string_view quantity) {
  return rounded_up(quantity, 1, Wide{1} << 20, std::int64_t{1} << 40);
}

Result<std::int64_t> whole_of(std::string_view quantity) {
  const auto milli = milli_of(quantity);
  if (!milli) return milli.error();
  if (*milli % 1000 != 0) return no_quantity(quantity, "is no whole number");
  if (*milli / 1000 > 1'000'000) return no_quantity(quantity, "is too large");
  return *milli / 1000;
}

bool is_same_quantity(std::string_view a, std::string_view b) {
  const auto first = read(a);
  const auto second = read(b);
  if (!first || !second) return false;
  const Fraction one = reduced(*first);
  const Fraction other = reduced(*second);
  return one.numerator == other.numerator && one.denominator == other.denominator;
}

}  // namespace berth::kube
