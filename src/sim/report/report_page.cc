#include "sim/report/report_page.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "sim/report/bills.h"
#include "sim/report/escape.h"
#include "sim/report/headline.h"
#include "sim/report/page_data.h"
#include "sim/report/page_files.h"
#include "sim/report/summary.h"

namespace berth::sim {
namespace {

std::string element(std::string_view open, const std::string& text, std::string_view close) {
  return std::string(open).append(html_text(text)).append(close);
}

// "1 node", "2 nodes"
std::string counted(std::int64_t count, const std::string& one) {
  const std::string many = one.ends_with('y') ? one.substr(0, one.size() - 1) + "ies" : one + "s";
  return format_value(static_cast<double>(count), MetricUnit::kCount) + " " + (count == 1 ? one : many);
}

std::string count_text(std::int64_t value) { return format_value(static_cast<double>(value), MetricUnit::kCount); }

struct Cell {
  Estimate estimate;
  bool best = false;
};

// One row of the table of policies; empty if no run measured it.
std::vector<Cell> cells_of(const std::vector<MeasuredRun>& runs, const std::vector<std::string>& policies,
                           const Metric& metric) {
  std::vector<Cell> cells;
  for (const std::string& policy : policies) {
    std::vector<double> values;
    for (const auto& [seed, value] : values_by_seed(runs, policy, metric)) values.push_back(value);
    cells.push_back({estimate(values)});
  }
  if (std::all_of(cells.begin(), cells.end(), [](const Cell& cell) { return cell.estimate.count == 0; })) return {};
  return cells;
}

// Marks the best value, unless all are the same.
void mark_best(Better better, std::vector<Cell>& cells) {
  if (better == Better::kNeither || cells.size() < 2) return;
  const double sign = better == Better::kLower ? 1 : -1;
  double best = INFINITY;
  double worst = -INFINITY;
  for (const Cell& cell : cells) {
    if (cell.estimate.count == 0) continue;
    best = std::min(best, sign * cell.estimate.mean);
    worst = std::max(worst, sign * cell.estimate.mean);
  }
  if (best == worst) return;
  for (Cell& cell : cells) cell.best = cell.estimate.count > 0 && sign * cell.estimate.mean == best;
}

std::string cell_html(const Cell& cell, MetricUnit unit) {
  if (cell.estimate.count == 0) return "<td class=\"none\">–</td>";
  std::string html = cell.best ? "<td class=\"best\">" : "<td>";
  html += html_text(format_value(cell.estimate.mean, unit));
  if (cell.estimate.half_width) {
    html += "<span class=\"ci\">± " + html_text(format_value(*cell.estimate.half_width, unit)) + "</span>";
  }
  return html += "</td>";
}

// `first_colour`: the place of the first of these policies among all.
std::string policy_head(const std::vector<std::string>& policies, std::size_t first_colour = 0) {
  std::string html = "<thead><tr><th></th>";
  for (std::size_t i = 0; i < policies.size(); ++i) {
    html += "<th scope=\"col\"><span class=\"swatch c" + std::to_string((first_colour + i) % 8) + " d" +
            std::to_string((first_colour + i) / 8 % 3) + "\"></span>" + html_text(policies[i]) + "</th>";
  }
  return html += "</tr></thead>";
}

bool all_completed_the_same(const std::vector<Comparison>& comparisons) {
  return std::all_of(comparisons.begin(), comparisons.end(),
                     [](const Comparison& one) { return one.like_with_like(); });
}

std::string refusals_html(const std::vector<MeasuredRun>& runs, const std::vector<std::string>& policies) {
  std::string html;
  for (const std::string& policy : policies) {
    for (const auto& [reason, count] : refusals_of(runs, policy)) {
      html += "<li>" + html_text(policy) + " refused " + counted(count, "job") + ": " + html_text(reason) + "</li>";
    }
  }
  return html.empty() ? html
                      : "<p class=\"note\">Never let in, in the first run of each policy:</p><ul>" + html + "</ul>";
}

std::string policy_table(const std::vector<MeasuredRun>& runs, const std::vector<std::string>& policies) {
  const bool same_jobs = all_completed_the_same(compare_policies(runs));
  std::string html = "<div class=\"scroll\"><table class=\"figures\">" + policy_head(policies) + "<tbody>";
  std::string_view group;
  for (const Metric& metric : metrics()) {
    std::vector<Cell> cells = cells_of(runs, policies, metric);
    if (cells.empty()) continue;
    if (!metric.of_completed || same_jobs) mark_best(metric.better, cells);
    if (metric.group != group) {
      group = metric.group;
      html += "<tr class=\"group\"><th scope=\"rowgroup\" colspan=\"" + std::to_string(policies.size() + 1) + "\">" +
              std::string(group) + "</th></tr>";
    }
    html += element("<tr><th scope=\"row\">", std::string(metric.label), "</th>");
    for (const Cell& cell : cells) html += cell_html(cell, metric.unit);
    html += "</tr>";
  }
  return html += "</tbody></table></div>";
}

// `baseline`: the mean of the measure under the first policy.
std::string comparison_cell(const Comparison& comparison, double baseline) {
  const MetricUnit unit = comparison.metric->unit;
  std::string html =
      "<td class=\"" + judgement(comparison) + "\">" + html_text(format_difference(comparison.difference.mean, unit));
  const std::string change =
      unit == MetricUnit::kPercent ? "" : relative_change(baseline + comparison.difference.mean, baseline);
  if (!change.empty()) html += "<span class=\"change\">" + html_text(change) + "</span>";
  if (!comparison.like_with_like()) html += "<sup>†</sup>";
  if (comparison.difference.half_width) {
    const std::string half = format_difference(*comparison.difference.half_width, unit);
    html += "<span class=\"ci\">± " + html_text(half.substr(half.starts_with('+') ? 1 : 0)) + "</span>";
  }
  return html += "</td>";
}

// The row of one measure over the policies; empty where no policy differs from the baseline at all.
std::string comparison_row(const std::vector<MeasuredRun>& runs, const std::vector<Comparison>& comparisons,
                           const std::vector<std::string>& policies, const Metric& metric) {
  std::vector<double> baseline;
  for (const auto& [seed, value] : values_by_seed(runs, policies_of(runs).front(), metric)) baseline.push_back(value);
  std::string html = element("<tr><th scope=\"row\">", std::string(metric.label), "</th>");
  bool any = false;
  for (const std::string& policy : policies) {
    const auto found = std::find_if(comparisons.begin(), comparisons.end(), [&](const Comparison& comparison) {
      return comparison.policy == policy && comparison.metric == &metric;
    });
    html += found == comparisons.end() ? "<td class=\"none\">–</td>" : comparison_cell(*found, estimate(baseline).mean);
    any = any || (found != comparisons.end() && found->difference.mean != 0);
  }
  return any ? html + "</tr>" : std::string();
}

std::string unlike_jobs_note(const std::vector<Comparison>& comparisons) {
  std::string html;
  for (const Comparison& one : comparisons) {
    if (one.metric->key != "mean_wait_s" || one.like_with_like()) continue;
    html += "<p class=\"note\"><b>†</b> " + html_text(one.policy) + " completed " + count_text(one.only_policy) +
            " jobs that " + html_text(one.baseline) + " did not, and " + html_text(one.baseline) + " " +
            count_text(one.only_baseline) + " that " + html_text(one.policy) +
            " did not: what is measured over completed jobs is of different jobs and shows nothing. Waiting of all, at "
            "least, is a lower bound for who left jobs waiting: it can show that policy worse, never better.</p>";
  }
  return html;
}

std::string comparison_section(const std::vector<MeasuredRun>& runs, const std::vector<std::string>& policies) {
  if (policies.size() < 2) return {};
  const std::vector<Comparison> comparisons = compare_policies(runs);
  const std::vector<std::string> others(policies.begin() + 1, policies.end());
  std::string html = element("<section><h2>Against ", policies.front(), "</h2>");
  html +=
      "<p class=\"note\">Differences seed by seed, in percent of the first policy, and with the 95 % interval of their "
      "mean (Student's t); of percentages in points. <span class=\"better\">Green</span> is better, <span "
      "class=\"worse\">red</span> is worse; grey: the interval holds 0, so these runs show no difference, or the seed "
      "changes nothing. With one seed there is no interval: the colour then says which way these runs differ, and "
      "another seed may differ the other way.</p>";
  if (const std::string blind = policies_blind_to_seeds(runs); !blind.empty()) {
    html += "<p class=\"note\">The seed changed nothing for " + html_text(blind) +
            ": one trace was run several times, and that says nothing about another.</p>";
  }
  html += "<div class=\"scroll\"><table class=\"figures\">";
  html += policy_head(others, 1) + "<tbody>";
  for (const Metric& metric : metrics()) html += comparison_row(runs, comparisons, others, metric);
  return html += "</tbody></table></div>" + unlike_jobs_note(comparisons) + "</section>";
}

using GroupsOf = const std::map<std::string, GroupMeasures>& (*)(const RunMeasures&);

// Mean over the seeds of a group's statistic, for one policy.
Estimate group_estimate(const std::vector<MeasuredRun>& runs, const std::string& policy, GroupsOf groups_of,
                        const std::string& group, double (*value)(const GroupMeasures&)) {
  std::vector<double> values;
  for (const MeasuredRun& run : runs) {
    if (run.result->policy != policy) continue;
    const auto& groups = groups_of(run.measures);
    const auto found = groups.find(group);
    if (found != groups.end() && found->second.wait_s.count > 0) values.push_back(value(found->second));
  }
  return estimate(values);
}

// Jobs of a group that were let in and did not complete, in the mean over the seeds.
double mean_left(const std::vector<MeasuredRun>& runs, const std::string& policy, GroupsOf groups_of,
                 const std::string& group) {
  std::vector<double> values;
  for (const MeasuredRun& run : runs) {
    const auto& groups = groups_of(run.measures);
    const auto found = groups.find(group);
    if (run.result->policy != policy || found == groups.end()) continue;
    values.push_back(static_cast<double>(found->second.wait_at_least_s.count - found->second.wait_s.count));
  }
  return estimate(values).mean;
}

std::vector<std::string> group_names(const std::vector<MeasuredRun>& runs, GroupsOf groups_of) {
  std::map<std::string, std::int64_t> jobs;
  for (const MeasuredRun& run : runs) {
    for (const auto& [name, group] : groups_of(run.measures)) jobs[name] += group.jobs;
  }
  std::vector<std::string> names;
  for (const auto& [name, count] : jobs) names.push_back(name);
  // The largest groups first; a report is not a list of three hundred queues.
  std::stable_sort(names.begin(), names.end(),
                   [&](const std::string& a, const std::string& b) { return jobs[a] > jobs[b]; });
  if (names.size() > 16) names.resize(16);
  return names;
}

std::string group_table(const std::vector<MeasuredRun>& runs, const std::vector<std::string>& policies,
                        std::string_view title, GroupsOf groups_of) {
  std::vector<std::string> names = group_names(runs, groups_of);
  const bool sizes = title == "size";
  if (sizes) {
    std::sort(names.begin(), names.end(),
              [](const std::string& a, const std::string& b) { return size_bucket_rank(a) < size_bucket_rank(b); });
  }
  if (names.size() < 2 && !sizes) return {};
  std::string html = "<h3>By " + std::string(title) + "</h3><div class=\"scroll\"><table class=\"figures\">" +
                     policy_head(policies) + "<tbody>";
  const std::vector<LongerWait> longer = longer_waits(runs);
  for (const std::string& name : names) {
    html += element("<tr><th scope=\"row\">", name, "</th>");
    for (const std::string& policy : policies) {
      const auto waits_longer = std::find_if(longer.begin(), longer.end(), [&](const LongerWait& one) {
        return one.policy == policy && one.kind == title && one.group == name;
      });
      const std::string mark = waits_longer == longer.end()
                                   ? ""
                                   : " ▲ " + relative_change(waits_longer->wait_s, waits_longer->baseline_wait_s);
      const auto wait =
          group_estimate(runs, policy, groups_of, name, [](const GroupMeasures& g) { return g.wait_s.mean; });
      const auto slow =
          group_estimate(runs, policy, groups_of, name, [](const GroupMeasures& g) { return g.slowdown.p50; });
      const double left = mean_left(runs, policy, groups_of, name);
      const std::string left_text = left > 0 ? format_value(left, MetricUnit::kCount) + " left" : "";
      if (wait.count == 0) {
        html += "<td class=\"none\">" + (left_text.empty() ? "–" : left_text) + "</td>";
      } else {
        const auto slowest =
            group_estimate(runs, policy, groups_of, name, [](const GroupMeasures& g) { return g.slowdown.p99; });
        html += (mark.empty() ? "<td>" : "<td class=\"worse\">") +
                html_text(format_value(wait.mean, MetricUnit::kSeconds) + mark) + "<span class=\"ci\">× " +
                html_text(format_value(slow.mean, MetricUnit::kRatio)) + " / " +
                html_text(format_value(slowest.mean, MetricUnit::kRatio)) +
                (left_text.empty() ? "" : " · " + left_text) + "</span></td>";
      }
    }
    html += "</tr>";
  }
  return html += "</tbody></table></div>";
}

std::string group_section(const std::vector<MeasuredRun>& runs, const std::vector<std::string>& policies) {
  const bool any_completed =
      std::any_of(runs.begin(), runs.end(), [](const MeasuredRun& run) { return run.measures.completed > 0; });
  if (!any_completed) return {};
  return "<section><h2>Who waits</h2><p class=\"note\">Mean waiting time of the jobs that completed; after it their "
         "slowdown (completion time over useful run), the median and the 99th percentile; and how many were left "
         "waiting or running at the end, if any. ▲: it waits at least "
         "a quarter and a minute longer than with the first policy, all jobs counted that were let in. At most 16 "
         "groups, the largest; summary.json has all.</p>" +
         group_table(
             runs, policies, "size", [](const RunMeasures& run) -> const auto& { return run.by_size; }) +
         group_table(
             runs, policies, "queue", [](const RunMeasures& run) -> const auto& { return run.by_queue; }) +
         group_table(
             runs, policies, "class", [](const RunMeasures& run) -> const auto& { return run.by_class; }) +
         "</section>";
}

std::string list(std::string_view title, const std::map<std::string, std::int64_t>& counts, std::string_view none) {
  std::string html = "<h3>" + std::string(title) + "</h3>";
  if (counts.empty()) return html + "<p>" + std::string(none) + "</p>";
  html += "<ul>";
  for (const auto& [text, count] : counts) {
    html += "<li><b>" + count_text(count) + "</b> " + html_text(text) + "</li>";
  }
  return html += "</ul>";
}

std::string lines(std::string_view title, const std::vector<std::string>& texts) {
  if (texts.empty()) return {};
  std::string html = "<h3>" + std::string(title) + "</h3><ul>";
  for (const std::string& text : texts) html += element("<li>", text, "</li>");
  return html += "</ul>";
}

std::string bad_rows_html(const BadRows& bad) {
  std::string html = list("Bad rows", bad.by_reason, "None.");
  if (bad.first.empty()) return html;
  html += "<details><summary>The first " + std::to_string(bad.first.size()) + " of " + count_text(bad.total) +
          "</summary><ul class=\"rows\">";
  for (const BadRow& row : bad.first) {
    html += "<li><code>" + html_text(row.file) + ":" + std::to_string(row.line) + "</code> " + html_text(row.reason) +
            "</li>";
  }
  return html += "</ul></details>";
}

std::string input_section(const ReportInput& input) {
  return "<section><h2>Input</h2><div class=\"columns\"><div>" + lines("Sources", input.sources) +
         lines("What was done to it", input.notes) +
         list("Defaults taken where a source is silent", input.defaults_taken, "None: the sources state everything.") +
         "</div><div>" +
         list("From an overlay, not from the trace", input.overlay_taken, "Nothing: no overlay was given.") +
         list("Left out by a stated rule", input.rows_left_out, "Nothing.") + bad_rows_html(input.bad_rows) +
         "</div></div></section>";
}

constexpr std::string_view kReading = R"html(<section><h2>How to read this</h2><dl>
<dt>Waiting</dt><dd>completion − submission − useful run: a job that is stopped, moved or set back waits meanwhile. Only jobs
that completed have one.</dd>
<dt>Waiting of all, at least</dt><dd>the same with the jobs that were still waiting or running when the run ended, which then had
waited that long and would wait longer; jobs that were refused are left out. The run ends with its last change: who waits then,
waits for ever.</dd>
<dt>Slowdown</dt><dd>completion time / useful run.</dd>
<dt>Percentiles</dt><dd>nearest rank: always a value that occurred.</dd>
<dt>Fragmented</dt><dd>idle GPUs that the typical job cannot use (FGD, Weng et al., ATC'23, section 4).</dd>
<dt>Dominant-share gap</dt><dd>the largest shortfall of a queue below what it is entitled to: its guarantee, then a weighted
max-min share, never above its demand; in percent of the fleet.</dd>
<dt>Jain's index</dt><dd>of usage over entitlement, queues with demand only; 1 is perfectly fair.</dd>
<dt>Guarantees violated</dt><dd>seconds, summed over queues, with usage below min(guarantee, demand).</dd>
<dt>Intervals</dt><dd>± is the 95 % confidence interval of the mean over seeds (Student's t).</dd>
<dt>Curves</dt><dd>over time: 400 equal stretches, each its time-weighted mean, until a quarter of the time of arrivals after
the last arrival (the run may go on; the tables and summary.json hold all of it); over load: one point per percent; distributions:
201 percentiles. At most 12 seeds per policy are drawn; the tables hold all.</dd>
<dt>Gantt</dt><dd>first seed of each policy; at most 64 rows of neighbouring nodes and 240 columns; a cell has the colour of the
queue that holds most of it, stronger the fuller it is.</dd>
</dl></section>)html";

// A line breaks before an option, not within one.
std::string command_html(const std::string& command) {
  std::string html;
  for (std::size_t begin = 0; begin < command.size();) {
    const std::size_t end = std::min(command.find(" --", begin), command.size());
    html += element("<span>", command.substr(begin, end - begin), "</span>") + (end < command.size() ? " " : "");
    begin = end + 1;
  }
  return html;
}

std::string header_html(const ReportInput& input, std::size_t runs, std::size_t policies) {
  std::string html =
      element("<header><h1>", input.title.empty() ? "berth simulate" : input.title, "</h1><p class=\"facts\">");
  html += counted(input.jobs, "job") + " · " + (input.nodes ? counted(*input.nodes, "node") + " · " : "") +
          counted(input.gpu_milli / 1000, "GPU") + (input.nodes ? " · " : ", counted only · ") +
          counted(static_cast<std::int64_t>(policies), "policy") + " · " +
          counted(static_cast<std::int64_t>(runs), "run") + "</p>";
  if (input.synthetic)
    html += "<p class=\"synthetic\">Synthetic results: made up to test this page, measured nowhere.</p>";
  if (!input.command.empty()) html += "<pre>" + command_html(input.command) + "</pre>";
  return html += "</header>";
}

}  // namespace

std::string report_page(const ReportInput& input, const std::vector<MeasuredRun>& runs) {
  const std::vector<std::string> policies = policies_of(runs);
  std::string html =
      "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width,initial-scale=1\"><meta http-equiv=\"Content-Security-Policy\" "
      "content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'; "
      "form-action 'none'\"><meta name=\"color-scheme\" content=\"light dark\">";
  html += element("<title>", input.title.empty() ? "berth simulate" : input.title, "</title><style>");
  html.append(report_style()).append("</style></head><body><main>");
  html += header_html(input, runs.size(), policies.size()) + headline_section(runs);
  html +=
      "<section id=\"charts\"><h2>Curves</h2><noscript>The curves need JavaScript; the tables do not.</noscript>"
      "<div id=\"legend\"></div><div id=\"grid\"></div></section>";
  html += "<section id=\"gantt\" hidden><h2>The fleet by queue</h2><div id=\"gantt-body\"></div></section>";
  html += "<section><h2>Policies</h2>" + policy_table(runs, policies) + refusals_html(runs, policies) + "</section>";
  html += bills_section(runs);
  html += comparison_section(runs, policies) + group_section(runs, policies) + input_section(input);
  html.append(kReading);
  html += element("<footer>berth ", input.version, "</footer></main><script type=\"application/json\" id=\"data\">");
  html += json_for_script(page_data(runs));
  html.append("</script><script>").append(report_script()).append("</script></body></html>\n");
  return html;
}

}  // namespace berth::sim
