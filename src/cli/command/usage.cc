#include <algorithm>
#include <map>
#include <tuple>

#include "cli/command/commands.h"
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

struct Split {
  GpuTime within = 0;
  GpuTime borrowed = 0;
  GpuTime total() const { return within + borrowed; }
};

using Account = std::tuple<std::string, std::string, std::string>;  // queue, user, GPU model

std::map<Account, Split> accounts_of(const Json& report) {
  std::map<Account, Split> accounts;
  for (const Json& row : items(report, "items")) {
    const std::string model = (is_true(row, "simulated") ? "simulated " : "") + show(row, "gpu_model");
    Split& split = accounts[{show(row, "queue"), show(row, "user"), model}];
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

std::string usage_table(const Json& report, std::size_t width) {
  const auto accounts = accounts_of(report);
  const GpuTime capacity = gpu_time(report, "capacity_gpu_milli_ms", "capacity_gpu_seconds");
  Table table({{"QUEUE", Align::kLeft, true, true},
               {"USER", Align::kLeft, true},
               {"GPU MODEL", Align::kLeft, true},
               {"WITHIN", Align::kRight},
               {"BORROWED", Align::kRight},
               {"GPU-SECONDS", Align::kRight},
               {"OF CAPACITY", Align::kRight}});
  for (const auto& [account, split] : accounts) {
    const auto& [queue, user, model] = account;
    table.add({queue, user, model, seconds_text(split.within), seconds_text(split.borrowed),
               seconds_text(split.total()), share_text(split.total(), capacity)});
  }
  const Split sum = sum_of(accounts);
  table.add({"used in all", " ", " ", seconds_text(sum.within), seconds_text(sum.borrowed), seconds_text(sum.total()),
             share_text(sum.total(), capacity)});
  const auto whole = [&](const char* name, GpuTime time) {
    table.add({name, " ", " ", " ", " ", seconds_text(time), share_text(time, capacity)});
  };
  whole("idle", gpu_time(report, "idle_gpu_milli_ms", "idle_gpu_seconds"));
  whole("down", gpu_time(report, "down_gpu_milli_ms", "down_gpu_seconds"));
  whole("capacity", capacity);
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
  csv += ",,,capacity," + seconds_text(gpu_time(report, "capacity_gpu_milli_ms", "capacity_gpu_seconds")) + some;
  return csv;
}

Result<std::string> iso_of(const std::string& when, Timestamp now) {
  if (when.empty()) return std::string();
  const auto time = parse_when(when, now);
  if (!time) return time.error();
  return to_iso8601(*time);
}

}  // namespace

Result<int> run(const UsageOptions& options, Session& session) {
  const Format format = options.show.format;
  return show_once_or_watch(session, options.show, [&]() -> Result<std::string> {
    const Timestamp now = clock_now();
    const auto from = iso_of(options.from, now);
    if (!from) return from.error();
    const auto to = iso_of(options.to, now);
    if (!to) return to.error();
    const auto report = get(session, query("/v1/usage", {{"from", *from}, {"to", *to}}));
    if (!report) return report.error();
    return formatted(*report, format, [&] {
      return format == Format::kCsv ? usage_csv(*report) : usage_table(*report, table_width(session, format));
    });
  });
}

}  // namespace berth::cli
