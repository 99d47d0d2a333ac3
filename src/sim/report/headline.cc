#include "sim/report/headline.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string_view>

#include "sim/report/escape.h"

namespace berth::sim {
namespace {

constexpr std::size_t kTiles = 4;
constexpr std::size_t kWorstShown = 3;
constexpr double kLongerRatio = 1.25;
constexpr double kLongerS = 60;

using Groups = std::map<std::string, GroupMeasures> RunMeasures::*;

const Metric* metric_named(std::string_view key) {
  const auto found =
      std::find_if(metrics().begin(), metrics().end(), [&](const Metric& metric) { return metric.key == key; });
  return found == metrics().end() ? nullptr : &*found;
}

std::optional<double> mean_of(const std::vector<MeasuredRun>& runs, const std::string& policy, const Metric& metric) {
  std::vector<double> values;
  for (const auto& [seed, value] : values_by_seed(runs, policy, metric)) values.push_back(value);
  if (values.empty()) return std::nullopt;
  return estimate(values).mean;
}

// Returns the first measures that are not 0 in all of these runs, by how much they decide. Where policies completed
// different jobs, waiting is that of all jobs, which can be compared at least in one direction.
std::vector<const Metric*> tile_metrics(const std::vector<MeasuredRun>& runs, bool same_jobs) {
  const std::string_view wait = same_jobs ? "mean_wait_s" : "mean_wait_at_least_s";
  const std::array<std::string_view, 10> keys = {"gpu_allocation_at_100_pct",
                                                 "gpu_allocation_at_130_pct",
                                                 "utilization_pct",
                                                 wait,
                                                 "p99_wait_s",
                                                 "guarantee_shortfall_gpu_h",
                                                 "gpu_hours_lost",
                                                 "preemptions",
                                                 "fragmentation_pct",
                                                 "refused"};
  std::vector<const Metric*> chosen;
  for (const std::string_view key : keys) {
    const Metric* metric = metric_named(key);
    if (metric == nullptr || chosen.size() == kTiles) continue;
    const auto says_something = [&](const MeasuredRun& run) { return metric->value(run.measures).value_or(0) != 0; };
    if (std::any_of(runs.begin(), runs.end(), says_something)) chosen.push_back(metric);
  }
  return chosen;
}

std::string tile_html(const std::vector<MeasuredRun>& runs, const std::vector<Comparison>& comparisons,
                      const Metric& metric) {
  const std::vector<std::string> policies = policies_of(runs);
  const auto baseline = mean_of(runs, policies.front(), metric);
  std::string html = "<div class=\"tile\"><h3>" + std::string(metric.label) + "</h3><table>";
  for (std::size_t i = 0; i < policies.size(); ++i) {
    const auto value = mean_of(runs, policies[i], metric);
    html += "<tr><th scope=\"row\"><span class=\"swatch c" + std::to_string(i % 8) + " d" + std::to_string(i / 8 % 3) +
            "\"></span>" + html_text(policies[i]) + "</th><td>" +
            (value ? html_text(format_value(*value, metric.unit)) : "–") + "</td><td";
    const auto compared = std::find_if(comparisons.begin(), comparisons.end(), [&](const Comparison& one) {
      return one.policy == policies[i] && one.metric == &metric;
    });
    if (compared != comparisons.end() && value && baseline) {
      const std::string change = metric.unit == MetricUnit::kPercent
                                     ? format_difference(compared->difference.mean, metric.unit) + " points"
                                     : relative_change(*value, *baseline);
      html += " class=\"" + judgement(*compared) + "\">" + html_text(change);
    } else {
      html += ">";
    }
    html += "</td></tr>";
  }
  return html + "</table></div>";
}

// The mean over the seeds of how long the jobs of a group waited, or nothing if a run has none.
std::optional<double> group_wait(const std::vector<MeasuredRun>& runs, const std::string& policy, Groups groups,
                                 const std::string& name) {
  std::vector<double> values;
  for (const MeasuredRun& run : runs) {
    if (run.result->policy != policy) continue;
    const auto& all = run.measures.*groups;
    const auto found = all.find(name);
    if (found != all.end() && found->second.wait_at_least_s.count > 0)
      values.push_back(found->second.wait_at_least_s.mean);
  }
  if (values.empty()) return std::nullopt;
  return estimate(values).mean;
}

void add_longer_waits(const std::vector<MeasuredRun>& runs, const std::string& kind, Groups groups,
                      std::vector<LongerWait>& all) {
  const std::vector<std::string> policies = policies_of(runs);
  std::map<std::string, bool> names;
  for (const MeasuredRun& run : runs) {
    for (const auto& [name, group] : run.measures.*groups) names[name] = true;
  }
  if (names.size() < 2) return;  // the only group is all jobs
  for (const auto& [name, there] : names) {
    const auto baseline = group_wait(runs, policies.front(), groups, name);
    for (std::size_t i = 1; baseline && i < policies.size(); ++i) {
      const auto wait = group_wait(runs, policies[i], groups, name);
      if (wait && *wait >= *baseline * kLongerRatio && *wait - *baseline >= kLongerS)
        all.push_back({policies[i], kind, name, *wait, *baseline});
    }
  }
}

std::string worst_html(const std::vector<MeasuredRun>& runs) {
  const std::vector<LongerWait> all = longer_waits(runs);
  const std::string baseline = html_text(policies_of(runs).front());
  if (all.empty())
    return "<p class=\"worst none\">No size, queue or class of jobs waits a quarter longer than with " + baseline +
           ".</p>";
  std::string html = "<div class=\"worst\"><h3>The worst news</h3><ul>";
  for (std::size_t i = 0; i < std::min(all.size(), kWorstShown); ++i) {
    const LongerWait& one = all[i];
    html += "<li>" + html_text(one.policy) + ": jobs of " + html_text(one.kind) + " <b>" + html_text(one.group) +
            "</b> wait " + html_text(format_value(one.wait_s, MetricUnit::kSeconds)) + " instead of " +
            html_text(format_value(one.baseline_wait_s, MetricUnit::kSeconds));
    const std::string change = relative_change(one.wait_s, one.baseline_wait_s);
    html += (change.empty() ? "" : " (" + html_text(change) + ")") + "</li>";
  }
  if (all.size() > kWorstShown)
    html += "<li>and " + std::to_string(all.size() - kWorstShown) + " more groups, marked ▲ under \"Who waits\"</li>";
  return html + "</ul></div>";
}

}  // namespace

std::string judgement(const Comparison& comparison) {
  const Estimate& difference = comparison.difference;
  if (!comparison.like_with_like() || comparison.metric->better == Better::kNeither || difference.mean == 0)
    return "same";
  if (difference.half_width && (!difference.differs_from_zero() || *difference.half_width == 0)) return "same";
  const bool lower = difference.mean < 0;
  return lower == (comparison.metric->better == Better::kLower) ? "better" : "worse";
}

std::string relative_change(double value, double baseline) {
  if (baseline == 0 || value == baseline) return {};
  const double percent = 100 * (value - baseline) / std::abs(baseline);
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), std::abs(percent) < 9.95 ? "%+.1f %%" : "%+.0f %%", percent);
  return text.data();
}

std::vector<LongerWait> longer_waits(const std::vector<MeasuredRun>& runs) {
  std::vector<LongerWait> all;
  add_longer_waits(runs, "size", &RunMeasures::by_size, all);
  add_longer_waits(runs, "queue", &RunMeasures::by_queue, all);
  add_longer_waits(runs, "class", &RunMeasures::by_class, all);
  std::stable_sort(all.begin(), all.end(), [](const LongerWait& a, const LongerWait& b) {
    return a.wait_s - a.baseline_wait_s > b.wait_s - b.baseline_wait_s;
  });
  return all;
}

std::string headline_section(const std::vector<MeasuredRun>& runs) {
  if (runs.empty()) return {};
  const std::vector<Comparison> comparisons = compare_policies(runs);
  const bool same_jobs =
      std::all_of(comparisons.begin(), comparisons.end(), [](const Comparison& one) { return one.like_with_like(); });
  std::string html = "<section id=\"headline\"><div class=\"tiles\">";
  for (const Metric* metric : tile_metrics(runs, same_jobs)) html += tile_html(runs, comparisons, *metric);
  html += "</div>";
  if (policies_of(runs).size() > 1) html += worst_html(runs);
  return html + "</section>";
}

}  // namespace berth::sim
