#include "cli/command/commands.h"
#include "cli/exit_code.h"
#include "cli/output.h"
#include "cli/printable.h"
#include "cli/when.h"
#include "model/document/quantity.h"

namespace berth::cli {
namespace {

std::string overview(const Json& cluster) {
  const auto value = [&cluster](const char* name) { return show(cluster, name); };
  std::string text = "cluster " + printable(value("name")) + ", berth " + printable(value("version")) +
                     ", configuration " + value("config_version") + ", event " + value("seq") + ", " +
                     clock_text(value("time")) + "\n";
  text += "  nodes  " + value("nodes") + "\n";
  text += "  GPUs   " + value("gpus") + (is_true(cluster, "simulated_gpus") ? " (simulated)" : "") + ": " +
          value("gpus_allocated") + " in use, " + value("gpus_free") + " free, " + value("gpus_unhealthy") +
          " unhealthy; " + value("allocated_pct") + "% in use\n";
  text += "  fragmented: " + value("gpus_stranded") + " idle GPUs that typical jobs cannot use" +
          (is_true(cluster, "fragmentation_alarm") ? ": over the alert threshold" : "") + "\n";
  text += "  jobs   " + value("jobs_running") + " running, " + value("jobs_stopping") + " stopping, " +
          value("jobs_pending") + " pending\n";
  text +=
      "  starvation: places are reserved for a blocked job at once where time limits say when they are free, else "
      "after " +
      document::duration_text(integer(cluster, "backfill_after_s")) + " (scheduling.backfill_after)\n";
  const Json& log = at(cluster, "log");
  text += "  log    check of every hash: " + show(log, "check") + "; events since the start: " + show(log, "records") +
          "\n";
  for (const Json& warning : items(cluster, "warnings")) text += "  warning: " + printable(show(warning)) + "\n";
  return text;
}

}  // namespace

Result<int> run(const StatusOptions& options, Session& session) {
  return show_once_or_watch(session, options.show, [&]() -> Result<std::string> {
    const auto cluster = get(session, "/v1/cluster");
    if (!cluster) return cluster.error();
    return formatted(*cluster, options.show.format, [&] { return overview(*cluster); });
  });
}

}  // namespace berth::cli
