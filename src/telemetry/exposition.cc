#include "telemetry/exposition.h"

#include <algorithm>

#include "base/check.h"

namespace berth::telemetry {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_name(std::string_view name) {
  return !name.empty() && is_letter(name.front()) &&
         std::all_of(name.begin(), name.end(), [](char c) { return is_letter(c) || is_digit(c); });
}

const char* name_of(MetricType type) {
  switch (type) {
    case MetricType::kCounter:
      return "counter";
    case MetricType::kGauge:
      return "gauge";
    case MetricType::kHistogram:
      return "histogram";
  }
  return "untyped";
}

// In a help text a quotation mark stands for itself.
void append_escaped(std::string& text, std::string_view raw, bool quoted) {
  for (const char c : raw) {
    if (c == '\\') {
      text += "\\\\";
    } else if (c == '\n') {
      text += "\\n";
    } else if (c == '"' && quoted) {
      text += "\\\"";
    } else {
      text += c;
    }
  }
}

void append_label(std::string& text, std::string_view name, std::string_view value) {
  BERTH_CHECK(is_name(name));
  text += text.back() == '{' ? "" : ",";
  text.append(name).append("=\"");
  append_escaped(text, value, true);
  text += '"';
}

}  // namespace

std::string text_of(Decimal decimal) {
  const bool negative = decimal.value < 0;
  std::string digits = std::to_string(decimal.value).substr(negative ? 1 : 0);
  const auto places = static_cast<std::size_t>(decimal.places);
  if (digits.size() <= places) digits.insert(0, places + 1 - digits.size(), '0');
  std::string fraction = digits.substr(digits.size() - places);
  fraction.erase(fraction.find_last_not_of('0') + 1);
  digits.resize(digits.size() - places);
  return (negative ? "-" : "") + digits + (fraction.empty() ? "" : "." + fraction);
}

Histogram::Histogram(std::span<const std::int64_t> bounds, int places)
    : bounds_(bounds), places_(places), counts_(bounds.size() + 1, 0) {}

void Histogram::observe(std::int64_t value) {
  const auto bound = std::lower_bound(bounds_.begin(), bounds_.end(), value);
  ++counts_[static_cast<std::size_t>(bound - bounds_.begin())];
  sum_ += value;
}

void Exposition::begin(std::string_view name, MetricType type, std::string_view help) {
  BERTH_CHECK(is_name(name));
  BERTH_CHECK(name.ends_with("_total") == (type == MetricType::kCounter));
  BERTH_CHECK(begun_.emplace(name).second);
  family_ = name;
  type_ = type;
  text_.append("# HELP ").append(name).append(" ");
  append_escaped(text_, help, false);
  text_.append("\n# TYPE ").append(name).append(" ").append(name_of(type)).append("\n");
}

void Exposition::add(Labels labels, Decimal value) {
  BERTH_CHECK(type_ != MetricType::kHistogram);
  line("", labels, "", text_of(value));
}

void Exposition::add(Labels labels, const Histogram& histogram) {
  BERTH_CHECK(type_ == MetricType::kHistogram);
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < histogram.bounds().size(); ++i) {
    below += histogram.counts()[i];
    line("_bucket", labels, text_of({histogram.bounds()[i], histogram.places()}), std::to_string(below));
  }
  below += histogram.counts().back();
  line("_bucket", labels, "+Inf", std::to_string(below));
  line("_sum", labels, "", text_of({histogram.sum(), histogram.places()}));
  line("_count", labels, "", std::to_string(below));
}

void Exposition::add_single(std::string_view name, MetricType type, std::string_view help, Decimal value) {
  begin(name, type, help);
  add({}, value);
}

void Exposition::line(std::string_view suffix, Labels labels, std::string_view le, std::string_view value) {
  BERTH_CHECK(!family_.empty());
  text_.append(family_).append(suffix);
  if (labels.size() > 0 || !le.empty()) {
    text_ += '{';
    for (const auto& [name, label] : labels) append_label(text_, name, label);
    if (!le.empty()) append_label(text_, "le", le);
    text_ += '}';
  }
  text_.append(" ").append(value).append("\n");
}

}  // namespace berth::telemetry
