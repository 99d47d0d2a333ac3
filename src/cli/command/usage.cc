#include <algorithm>
#include <boost/json/array.hpp>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "base/csv.h"
#include "cli/columns.h"
#include "cli/command/commands.h"
#include "cli/command/job_words.h"
#include "cli/exit_code.h"
#include "cli/output.h"
#include "cli/when.h"

namespace berth::cli {
namespace {

// Exact: thousandths of a GPU times milliseconds.
using GpuTime = std::int64_t;

GpuTime gpu_time(const Json& row, const char* exact, const char* seconds) {
  if (has(row, exact)) return integer(row, exact);
  return static_cast<GpuTime>(number(row, seconds) * 1e6);
}

// Seconds with three decimals; what is finer is cut.
std::string seconds_text(GpuTime time) {
  const std::string decimals = std::to_string(time / 1000 % 1000);
  return std::to_string(time / 1'000'000) + "." + std::string(3 - decimals.size(), '0') + decimals;
}

// Hours with two decimals, rounded.
std::string hours_text(GpuTime time) {
  constexpr GpuTime kHundredth = 36'000'000;
  const GpuTime hundredths = (time + kHundredth / 2) / kHundredth;
  const std::string decimals = std::to_string(hundredths % 100);
  return std::to_string(hundredths / 100) + "." + std::string(2 - decimals.size(), '0') + decimals;
}

struct Split {
  GpuTime within = 0;
  GpuTime borrowed = 0;
  GpuTime total() const { return within + borrowed; }
};

using Account = std::tuple<std::string, std::string, std::string>;  // queue, user, GPU model

// By queue, user and model, or by one of the first two alone.
std::map<Account, Split> accounts_of(const Json& report, const std::string& by) {
  std::map<Account, Split> accounts;
  for (const Json& row : items(report, "items")) {
    const std::string model = (is_true(row, "simulated") ? "simulated " : "") + show(row, "gpu_model");
    const Account account = by.empty()      ? Account{show(row, "queue"), show(row, "user"), model}
                            : by == "queue" ? Account{show(row, "queue"), " ", " "}
                                            : Account{" ", show(row, "user"), " "};
    Split& split = accounts[account];
    (show(row, "kind") == "borrowed" ? split.borrowed : split.within) += gpu_time(row, "gpu_milli_ms", "gpu_seconds");
  }
  return accounts;
}

Split sum_of(const std::map<Account, Split>& accounts) {
  Split sum;
  for (const auto& [account, split] : accounts) {
    sum.within += split.within;
    sum.borrowed += split.borrowed;
  }
  return sum;
}

std::string share_text(GpuTime part, GpuTime whole) {
  if (whole <= 0) return "";
  const auto tenths = static_cast<std::int64_t>(static_cast<double>(part) * 1000 / static_cast<double>(whole) + 0.5);
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + "%";
}

// The columns that name an account: all three, or the one that the lines are summed by.
std::vector<Column> account_columns(const std::string& by) {
  const Column queue{"QUEUE", Align::kLeft, true, true};
  const Column user{"USER", Align::kLeft, true};
  if (by == "queue") return {queue};
  if (by == "user") return {user};
  return {queue, user, {"GPU MODEL", Align::kLeft, true}};
}

std::string usage_table(const Json& report, const std::string& by, std::size_t width) {
  const auto accounts = accounts_of(report, by);
  const GpuTime capacity = gpu_time(report, "capacity_gpu_milli_ms", "capacity_gpu_seconds");
  std::vector<Column> columns = account_columns(by);
  const std::size_t names = columns.size();
  for (const char* title : {"WITHIN", "BORROWED", "GPU-SECONDS"}) columns.push_back({title, Align::kRight});
  if (!by.empty()) columns.push_back({"GPU-HOURS", Align::kRight});  // beside three names there is no room
  columns.push_back({"OF CAPACITY", Align::kRight});
  Table table(std::move(columns));
  const auto add = [&](std::vector<std::string> cells, std::optional<Split> split, GpuTime total) {
    cells.resize(names, " ");
    cells.push_back(split ? seconds_text(split->within) : " ");
    cells.push_back(split ? seconds_text(split->borrowed) : " ");
    cells.push_back(seconds_text(total));
    if (!by.empty()) cells.push_back(hours_text(total));
    cells.push_back(share_text(total, capacity));
    table.add(cells);
  };
  for (const auto& [account, split] : accounts) {
    const auto& [queue, user, model] = account;
    add(by == "queue"  ? std::vector{queue}
        : by == "user" ? std::vector{user}
                       : std::vector{queue, user, model},
        split, split.total());
  }
  const Split sum = sum_of(accounts);
  add({"used in all"}, sum, sum.total());
  add({"idle"}, {}, gpu_time(report, "idle_gpu_milli_ms", "idle_gpu_seconds"));
  add({"down"}, {}, gpu_time(report, "down_gpu_milli_ms", "down_gpu_seconds"));
  if (const auto foreign = gpu_time(report, "foreign_gpu_milli_ms", "foreign_gpu_seconds"); foreign != 0)
    add({"used by others"}, {}, foreign);
  add({"capacity"}, {}, capacity);
  const std::string mark = is_true(report, "simulated_gpus") ? " (simulated GPUs)" : "";
  return clock_text(show(report, "from")) + " to " + clock_text(show(report, "to")) + mark + "\n\n" + table.text(width);
}

// One line per account and kind, and the totals under kinds of their own, so that the lines add up to the capacity.
std::string usage_csv(const Json& report) {
  std::string csv = "queue,user,gpu_model,kind,gpu_seconds,simulated\r\n";
  for (const Json& row : items(report, "items")) {
    for (const char* name : {"queue", "user", "gpu_model", "kind"}) csv += csv_text_cell(show(row, name)) + ",";
    csv += seconds_text(gpu_time(row, "gpu_milli_ms", "gpu_seconds")) + "," +
           (is_true(row, "simulated") ? "true" : "false") + "\r\n";
  }
  const std::string some = is_true(report, "simulated_gpus") ? ",true\r\n" : ",false\r\n";
  csv += ",,,idle," + seconds_text(gpu_time(report, "idle_gpu_milli_ms", "idle_gpu_seconds")) + some;
  csv += ",,,down," + seconds_text(gpu_time(report, "down_gpu_milli_ms", "down_gpu_seconds")) + some;
  if (const auto foreign = gpu_time(report, "foreign_gpu_milli_ms", "foreign_gpu_seconds"); foreign != 0)
    csv += ",,,foreign," + seconds_text(foreign) + some;
  csv += ",,,capacity," + seconds_text(gpu_time(report, "capacity_gpu_milli_ms", "capacity_gpu_seconds")) + some;
  return csv;
}

// The GPU time of each job of the window, from its first start to its end: a job that began before the window or goes
// on after it is told whole. Most first.
Result<std::string> usage_by_job(const UsageOptions& options, Session& session) {
  const Timestamp now = clock_now();
  const auto from = iso_when(options.from.empty() ? "1970-01-01" : options.from, now);
  if (!from) return from.error();
  const auto to = iso_when(options.to, now);
  if (!to) return to.error();
  boost::json::array jobs;
  std::string cursor;
  do {
    const auto page =
        get(session, query("/v1/jobs", {{"since", *from}, {"until", *to}, {"limit", "1000"}, {"cursor", cursor}}));
    if (!page) return page.error();
    for (const Json& job : items(*page, "items")) {
      if (number(job, "gpu_seconds") > 0) jobs.push_back(job);
    }
    cursor = show(*page, "next_cursor");
  } while (!cursor.empty());
  std::stable_sort(jobs.begin(), jobs.end(),
                   [](const Json& a, const Json& b) { return number(a, "gpu_seconds") > number(b, "gpu_seconds"); });
  const std::size_t width = table_width(session, options.show.format);
  if (!options.show.columns.empty()) return in_columns(jobs, options.show, width);
  return formatted(jobs, options.show.format, [&] {
    Table table({{"ID", Align::kRight},
                 {"NAME", Align::kLeft, true},
                 {"QUEUE", Align::kLeft, true, true},
                 {"USER", Align::kLeft, true},
                 {"STATE"},
                 {"GPU-HOURS", Align::kRight}});
    for (const Json& job : jobs) {
      table.add({show(job, "id"), show(job, "name"), show(job, "queue"), show(job, "user"), state_words(job),
                 gpu_hours_text(job)});
    }
    if (options.show.format == Format::kCsv) return table.csv();
    return table.empty() ? std::string("no job has used GPUs\n") : table.text(width);
  });
}

}  // namespace

Result<int> run(const UsageOptions& options, Session& session) {
  const Format format = options.show.format;
  return show_once_or_watch(session, options.show, [&]() -> Result<std::string> {
    if (options.by == "job" && !options.at.empty())
      return invalid("--by job counts finished jobs, which no past moment has; leave out --at, or give --to");
    if (options.by == "job") return usage_by_job(options, session);
    const Timestamp now = clock_now();
    const auto moment = moment_when(options.at, now);
    if (!moment) return moment.error();
    const auto from = iso_when(options.from, now);
    if (!from) return from.error();
    const auto to = iso_when(options.to, now);
    if (!to) return to.error();
    const auto report = get(session, query("/v1/usage", {{"from", *from}, {"to", *to}, {"at", *moment}}));
    if (!report) return report.error();
    if (!options.show.columns.empty())
      return in_columns(items(*report, "items"), options.show, table_width(session, format));
    return formatted(*report, format, [&] {
      return format == Format::kCsv ? usage_csv(*report)
                                    : usage_table(*report, options.by, table_width(session, format));
    });
  });
}

}  // namespace berth::cli
