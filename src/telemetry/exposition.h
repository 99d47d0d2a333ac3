#pragma once
// What Prometheus reads: text in its exposition format, version 0.0.4. Families of samples, each with its help and its
// type in front of it, once. Numbers are integers with a decimal point, so that half a GPU is 0.5 and nothing is
// rounded.

#include <cstdint>
#include <initializer_list>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace berth::telemetry {

// value / 10^places, as it is: {8500, 3} is 8.5 and {8000, 3} is 8.
struct Decimal {
  std::int64_t value = 0;
  int places = 0;
};
std::string text_of(Decimal decimal);

// How often something was at most so much, and the sum. Values and bounds are in 10^-places of the family's unit.
class Histogram {
 public:
  // `bounds` ascend, and outlive this.
  Histogram(std::span<const std::int64_t> bounds, int places);

  void observe(std::int64_t value);

  int places() const { return places_; }
  std::span<const std::int64_t> bounds() const { return bounds_; }
  // By bound; the last one is of what was above them all.
  std::span<const std::uint64_t> counts() const { return counts_; }
  std::int64_t sum() const { return sum_; }

 private:
  std::span<const std::int64_t> bounds_;
  int places_;
  std::vector<std::uint64_t> counts_;
  std::int64_t sum_ = 0;
};

enum class MetricType { kCounter, kGauge, kHistogram };

class Exposition {
 public:
  using Labels = std::initializer_list<std::pair<std::string_view, std::string_view>>;

  // What is added from here on is of this family. CHECKs that the name is one, was not begun before, and ends in _total
  // where the family is of counters and only there.
  void begin(std::string_view name, MetricType type, std::string_view help);
  void add(Labels labels, Decimal value);
  void add(Labels labels, const Histogram& histogram);
  // A family of one sample without labels.
  void add_single(std::string_view name, MetricType type, std::string_view help, Decimal value);

  std::string take() { return std::move(text_); }

 private:
  void line(std::string_view suffix, Labels labels, std::string_view le, std::string_view value);

  std::string text_;
  std::string family_;
  MetricType type_ = MetricType::kGauge;
  std::set<std::string, std::less<>> begun_;
};

}  // namespace berth::telemetry
