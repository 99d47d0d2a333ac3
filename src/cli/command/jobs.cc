#include <algorithm>
#include <boost/json/object.hpp>

#include "cli/columns.h"
#include "cli/command/commands.h"
#include "cli/command/job_words.h"
#include "cli/exit_code.h"
#include "cli/output.h"
#include "cli/when.h"

namespace berth::cli {
namespace {

constexpr std::int64_t kJobsPerPage = 1000;

struct FoundJobs {
  boost::json::array items;
  Timestamp time;  // as of which they are shown
};

// Follows the cursor until `limit` jobs have come.
Result<FoundJobs> all_jobs(const JobsOptions& options, Session& session) {
  const Timestamp now = clock_now();
  const auto since = iso_when(options.since, now);
  if (!since) return since.error();
  const auto until = iso_when(options.until, now);
  if (!until) return until.error();
  const auto moment = moment_when(options.at, now);
  if (!moment) return moment.error();
  FoundJobs found{{}, now};
  boost::json::array& all = found.items;
  std::string cursor;
  do {
    const std::int64_t left = options.limit - static_cast<std::int64_t>(all.size());
    const auto page = get(session, query("/v1/jobs", {{"queue", options.queue},
                                                      {"user", options.user},
                                                      {"mine", options.me ? "true" : ""},
                                                      {"label", options.label},
                                                      {"since", *since},
                                                      {"until", *until},
                                                      {"phase", options.phase},
                                                      {"kind", options.kind},
                                                      {"name", options.name},
                                                      {"node", options.node},
                                                      {"parent", options.parent},
                                                      {"finished", options.all ? "true" : ""},
                                                      {"sort", options.sort},
                                                      {"at", *moment},
                                                      {"limit", std::to_string(std::min(left, kJobsPerPage))},
                                                      {"cursor", cursor}}));
    if (!page) return page.error();
    for (const Json& job : items(*page, "items")) all.push_back(job);
    cursor = show(*page, "next_cursor");
    if (!moment->empty()) found.time = from_iso8601(show(*page, "time")).value_or(now);
  } while (!cursor.empty() && static_cast<std::int64_t>(all.size()) < options.limit);
  return found;
}

bool shows_finished(const JobsOptions& options) {
  return options.all || !options.since.empty() || options.phase == "finished";
}

// "run=7,team=vision"
std::string labels_text(const Json& job) {
  std::string text;
  if (const auto* labels = at(job, "labels").if_object()) {
    for (const auto& [key, value] : *labels) text += (text.empty() ? "" : ",") + std::string(key) + "=" + show(value);
  }
  return text;
}

std::string elapsed_text(const Json& job, Timestamp now) {
  if (show(job, "phase") == "running" || show(job, "phase") == "stopping") return age_text(show(job, "started"), now);
  return has(job, "elapsed_s") ? span_text(integer(job, "elapsed_s") * 1000) : "";
}

// A list with finished jobs shows, in place of how long each has been so and of its tasks, how it ended and what it
// used.
std::vector<Column> job_columns(bool wide, bool finished) {
  std::vector<Column> columns{{"ID", Align::kRight},
                              {"NAME", Align::kLeft, true},
                              {"QUEUE", Align::kLeft, true, true},
                              {"USER", Align::kLeft, true},
                              {"STATE"}};
  if (wide || !finished) {
    for (const char* title : {"FOR", "TASKS"}) columns.push_back({title, Align::kRight});
  }
  columns.push_back({"GPUS", Align::kRight});
  columns.push_back({"NODES", Align::kLeft, true});
  if (finished) {
    for (const char* title : {"EXIT", "ELAPSED", "GPU-HOURS"}) columns.push_back({title, Align::kRight});
  }
  if (wide) {
    for (const char* title : {"KIND", "CLASS"}) columns.push_back({title});
    for (const char* title : {"PRIORITY", "ATTEMPT", "FAILURES"}) columns.push_back({title, Align::kRight});
    for (const char* title : {"SUBMITTED", "STARTED"}) columns.push_back({title});
    columns.push_back({"LABELS", Align::kLeft, true});
  }
  return columns;
}

// "6 of 8": what an elastic gang has of what it asks for.
std::string of_asked(const Json& job, const char* now, const char* asked) {
  const std::string most = show(job, asked);
  if (!has(job, "size") || show(at(job, "size"), now) == most) return most;
  return show(at(job, "size"), now) + " of " + most;
}

std::string table(const FoundJobs& found, const JobsOptions& options, std::size_t width) {
  const boost::json::array& jobs = found.items;
  const bool finished = shows_finished(options);
  const Format format = options.show.format;
  if (jobs.empty() && format != Format::kCsv) return finished ? "no jobs\n" : "no jobs (finished ones: --all)\n";
  const bool wide = has_all_columns(format);
  const Timestamp now = found.time;
  Table table(job_columns(wide, finished));
  for (const Json& job : jobs) {
    std::vector<std::string> cells{show(job, "id"), show(job, "name"), show(job, "queue"), show(job, "user"),
                                   state_words(job)};
    if (wide || !finished) {
      cells.push_back(in_state_for(job, now));
      cells.push_back(of_asked(job, "tasks", "tasks_total"));
    }
    cells.push_back(of_asked(job, "gpus", "gpus"));
    cells.push_back(joined(at(job, "nodes"), ","));
    if (finished) {
      cells.push_back(show(job, "code"));
      cells.push_back(elapsed_text(job, now));
      cells.push_back(gpu_hours_text(job));
    }
    if (wide) {
      for (const char* name : {"kind", "class", "priority", "attempt", "failures"}) cells.push_back(show(job, name));
      cells.push_back(clock_text(show(job, "submitted")));
      cells.push_back(clock_text(show(job, "started")));
      cells.push_back(labels_text(job));
    }
    table.add(cells);
  }
  return format == Format::kCsv ? table.csv() : table.text(width);
}

}  // namespace

Result<int> run(const JobsOptions& options, Session& session) {
  return show_once_or_watch(session, options.show, [&]() -> Result<std::string> {
    const auto jobs = all_jobs(options, session);
    if (!jobs) return jobs.error();
    const std::size_t width = table_width(session, options.show.format);
    if (!options.show.columns.empty()) return in_columns(jobs->items, options.show, width);
    return formatted(jobs->items, options.show.format, [&] { return table(*jobs, options, width); });
  });
}

}  // namespace berth::cli
