#include "sim/report/write_report.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

#include "sim/report/bills.h"
#include "sim/report/escape.h"
#include "sim/report/metrics.h"
#include "sim/report/report_page.h"
#include "sim/report/summary.h"

namespace berth::sim {
namespace {

namespace fs = std::filesystem;

constexpr std::array kReportFiles = {"summary.json", "jobs.csv", "report.html"};

Result<void> write_file(const fs::path& path, std::string_view text) {
  const fs::path unfinished = path.string() + ".unfinished";
  {
    std::ofstream file(unfinished, std::ios::binary | std::ios::trunc);
    file.write(text.data(), static_cast<std::streamsize>(text.size()));
    file.flush();
    if (!file) return Error{ErrorCode::kIo, unfinished.string() + ": " + std::strerror(errno)};
  }
  std::error_code failed;
  fs::rename(unfinished, path, failed);
  if (failed) return Error{ErrorCode::kIo, path.string() + ": " + failed.message()};
  return {};
}

// Columns as wide as a terminal counts them: code points, not bytes.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U; }));
}

using Rows = std::vector<std::vector<std::string>>;

std::string aligned(const Rows& rows) {
  std::vector<std::size_t> widths(rows.front().size(), 0);
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  std::string text;
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string blanks(widths[i] - width_of(row[i]), ' ');
      text += i == 0 ? row[i] + blanks : "  " + blanks + row[i];
    }
    text += '\n';
  }
  return text;
}

constexpr std::array<std::string_view, 23> kTerminalMetrics = {"gpu_allocation_pct",
                                                               "gpu_allocation_at_100_pct",
                                                               "fragmentation_pct",
                                                               "mean_wait_s",
                                                               "p99_wait_s",
                                                               "max_wait_s",
                                                               "mean_jct_s",
                                                               "mean_wait_at_least_s",
                                                               "p50_slowdown",
                                                               "p99_slowdown",
                                                               "jain_index",
                                                               "preemptions",
                                                               "gpu_hours_lost",
                                                               "moves",
                                                               "completed",
                                                               "refused",
                                                               "waiting_at_end",
                                                               "running_at_end",
                                                               "guarantee_violation_s",
                                                               "guarantee_breached_s",
                                                               "guarantee_unserved_s",
                                                               "guarantee_leaving_s",
                                                               "guarantee_no_place_s"};

std::string cell_text(const std::vector<MeasuredRun>& runs, const std::string& policy, const Metric& metric) {
  std::vector<double> values;
  for (const auto& [seed, value] : values_by_seed(runs, policy, metric)) values.push_back(value);
  if (values.empty()) return "-";
  const Estimate result = estimate(values);
  std::string text = format_value(result.mean, metric.unit);
  if (result.half_width) text += " ±" + format_value(*result.half_width, metric.unit);
  return text;
}

std::string refusals_text(const std::vector<MeasuredRun>& runs) {
  std::string text;
  for (const std::string& policy : policies_of(runs)) {
    for (const auto& [reason, count] : refusals_of(runs, policy)) {
      text += visible_text(policy) + " refused " + std::to_string(count) + ": " + visible_text(reason) + "\n";
    }
  }
  return text;
}

// Where two policies completed different jobs their means are of different jobs: that is said below the table.
std::string unlike_jobs_text(const std::vector<MeasuredRun>& runs) {
  std::string text;
  for (const Comparison& one : compare_policies(runs)) {
    if (one.metric->key != "mean_wait_s" || one.like_with_like()) continue;
    text += "waiting, completion time and slowdown of " + visible_text(one.policy) + " and " +
            visible_text(one.baseline) + " are of different jobs: " + std::to_string(one.only_policy) +
            " completed only under the first, " + std::to_string(one.only_baseline) +
            " only under the second; \"waiting, mean of all, at least\" is a lower bound for who left jobs waiting\n";
  }
  return text;
}

std::string blind_to_seeds_text(const std::vector<MeasuredRun>& runs) {
  const std::string blind = policies_blind_to_seeds(runs);
  if (blind.empty()) return {};
  return "the seed changed nothing for " + visible_text(blind) +
         ": an interval without width is of one trace run several times, not of several traces\n";
}

}  // namespace

std::string terminal_table(const std::vector<RunResult>& results) {
  const std::vector<MeasuredRun> runs = measure_runs(results);
  const std::vector<std::string> policies = policies_of(runs);
  Rows rows(1, {""});
  for (const std::string& policy : policies) rows.front().push_back(visible_text(policy));
  for (const Metric& metric : metrics()) {
    if (std::find(kTerminalMetrics.begin(), kTerminalMetrics.end(), metric.key) == kTerminalMetrics.end()) continue;
    std::vector<std::string> row = {std::string(metric.label)};
    for (const std::string& policy : policies) row.push_back(cell_text(runs, policy, metric));
    if (std::any_of(row.begin() + 1, row.end(), [](const std::string& cell) { return cell != "-"; })) {
      rows.push_back(std::move(row));
    }
  }
  std::string text = aligned(rows) + refusals_text(runs) + unlike_jobs_text(runs) + blind_to_seeds_text(runs);
  for (const BillTable& table : bill_tables(runs)) {
    Rows visible = table.rows;
    for (auto& row : visible) {
      for (std::string& cell : row) cell = visible_text(cell);
    }
    text += "\nbill of " + visible_text(table.title) + ":\n" + aligned(visible);
  }
  return text;
}

Result<void> prepare_report(const std::string& folder) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) return Error{ErrorCode::kIo, "--report " + folder + ": the folder cannot be made: " + failed.message()};
  for (const char* name : kReportFiles) {
    if (fs::is_directory(fs::path(folder) / name, failed)) {
      return Error{ErrorCode::kIo, "--report " + folder + ": " + name + " is a folder there"};
    }
  }
  const fs::path transaction = fs::path(folder) / ".trial.unfinished";
  const bool writable = std::ofstream(transaction, std::ios::binary | std::ios::trunc).is_open();
  fs::remove(transaction, failed);
  if (!writable) return Error{ErrorCode::kIo, "--report " + folder + ": the folder cannot be written to"};
  return {};
}

Result<void> write_report(const std::string& folder, const ReportInput& input, const std::vector<RunResult>& results) {
  if (auto writable = prepare_report(folder); !writable) return writable;
  const std::vector<MeasuredRun> runs = measure_runs(results);
  const fs::path path(folder);
  auto written = write_file(path / "summary.json", summary_json(input, runs));
  if (written) written = write_file(path / "jobs.csv", jobs_csv(runs));
  if (written) written = write_file(path / "report.html", report_page(input, runs));
  return written;
}

}  // namespace berth::sim
