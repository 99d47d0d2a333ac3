#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "cli/command/commands.h"
#include "cli/exit_code.h"
#include "cli/output.h"
#include "cli/when.h"

namespace berth::cli {
namespace {

// What one user or queue has now, and what waits there. GPUs are in thousandths.
struct Standing {
  std::string name;
  std::int64_t gpus = 0;
  std::int64_t running = 0;
  std::int64_t pending = 0;
  std::int64_t gpus_pending = 0;
  std::string waiting_since;  // of the pending job that waits longest; ISO times are ordered as texts
};

std::int64_t thousandths(const Json& value, const char* name) { return std::llround(number(value, name) * 1000); }

Json gpus_json(std::int64_t milli) {
  return milli % 1000 == 0 ? Json(milli / 1000) : Json(static_cast<double>(milli) / 1000);
}

// A service or an array is counted in its parts. Elements of an array that are still to come are pending, too.
void count(const Json& job, Standing& standing) {
  const std::string phase = show(job, "phase");
  std::int64_t jobs = 1;
  if (has(job, "children")) {
    const Json& parts = at(job, "children");
    jobs = integer(parts, "total") - integer(parts, "running") - integer(parts, "waiting") - integer(parts, "ended");
    if (show(job, "kind") != "array" || phase == "stopping" || jobs <= 0) return;
  } else if (phase == "running" || phase == "stopping") {
    ++standing.running;
    standing.gpus += thousandths(has(job, "size") ? at(job, "size") : job, "gpus");
    return;
  }
  standing.pending += jobs;
  standing.gpus_pending += jobs * thousandths(job, "gpus");
  const std::string since = show(job, "waiting_since");
  if (standing.waiting_since.empty() || since < standing.waiting_since) standing.waiting_since = since;
}

// By the GPUs that they have, most first, then by those that they wait for.
std::vector<Standing> standings(const boost::json::array& jobs, const std::string& by) {
  std::map<std::string, Standing> found;
  for (const Json& job : jobs) count(job, found[show(job, by)]);
  std::vector<Standing> sorted;
  for (auto& [name, standing] : found) {
    standing.name = name;
    if (standing.running + standing.pending > 0) sorted.push_back(std::move(standing));
  }
  std::stable_sort(sorted.begin(), sorted.end(), [](const Standing& a, const Standing& b) {
    return std::tie(a.gpus, a.gpus_pending) > std::tie(b.gpus, b.gpus_pending);
  });
  return sorted;
}

Json standings_json(const std::vector<Standing>& all, const std::string& by) {
  boost::json::array list;
  for (const Standing& one : all) {
    boost::json::object row{{by, one.name},
                            {"gpus", gpus_json(one.gpus)},
                            {"running", one.running},
                            {"pending", one.pending},
                            {"gpus_pending", gpus_json(one.gpus_pending)}};
    if (!one.waiting_since.empty()) row["waiting_since"] = one.waiting_since;
    list.emplace_back(std::move(row));
  }
  return list;
}

std::string standings_text(const Json& list, const std::string& by, std::size_t width) {
  const bool users = by == "user";
  std::vector<Column> columns{{users ? "USER" : "QUEUE", Align::kLeft, true, !users}};
  for (const char* title : {"GPUS", "RUNNING", "PENDING", "GPUS PENDING", "LONGEST WAIT"})
    columns.push_back({title, Align::kRight});
  Table table(std::move(columns));
  const Timestamp now = clock_now();
  for (const Json& row : items(list)) {
    table.add({show(row, by), show(row, "gpus"), show(row, "running"), show(row, "pending"), show(row, "gpus_pending"),
               age_text(show(row, "waiting_since"), now)});
  }
  return table.text(width);
}

// All live jobs, page by page.
Result<boost::json::array> live_jobs(const std::string& queue, Session& session) {
  boost::json::array all;
  std::string cursor;
  do {
    const auto page = get(session, query("/v1/jobs", {{"queue", queue}, {"limit", "1000"}, {"cursor", cursor}}));
    if (!page) return page.error();
    for (const Json& job : items(*page, "items")) all.push_back(job);
    cursor = show(*page, "next_cursor");
  } while (!cursor.empty());
  return all;
}

}  // namespace

Result<int> run(const TopOptions& options, Session& session) {
  return show_once_or_watch(session, options.show, [&]() -> Result<std::string> {
    const auto jobs = live_jobs(options.queue, session);
    if (!jobs) return jobs.error();
    boost::json::object lists;
    for (const char* by : {"user", "queue"}) {
      if (!options.by.empty() && options.by != by) continue;
      lists[by + std::string("s")] = standings_json(standings(*jobs, by), by);
    }
    return formatted(lists, options.show.format, [&] {
      if (jobs->empty()) return std::string("no jobs\n");
      std::string text;
      for (const char* by : {"user", "queue"}) {
        if (!lists.contains(by + std::string("s"))) continue;
        text += (text.empty() ? "" : "\n") +
                standings_text(lists[by + std::string("s")], by, table_width(session, options.show.format));
      }
      return text;
    });
  });
}

}  // namespace berth::cli
