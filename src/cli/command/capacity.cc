#include <array>

#include "cli/command/commands.h"
#include "cli/command/job_words.h"
#include "cli/output.h"
#include "cli/printable.h"
#include "cli/when.h"
#include "model/document/quantity.h"

namespace berth::cli {
namespace {

// "2 guaranteed, 1 wanted": why idle nodes stay.
std::string kept(const Json& kind) {
  constexpr std::array<const char*, 5> kReasons{"guaranteed", "nominated", "recent", "reserved", "wanted"};
  std::vector<std::string> parts;
  for (const char* reason : kReasons) {
    std::int64_t count = 0;
    for (const Json& idle : items(kind, "idle")) count += show(idle, "kept_for") == reason ? 1 : 0;
    if (count > 0) parts.push_back(std::to_string(count) + " " + reason);
  }
  return joined(parts, ", ");
}

std::string wanted(const Json& kind) {
  const Json& wanted = at(kind, "wanted");
  if (!wanted.is_object()) return "";
  return show(wanted, "nodes") + " for " + counted(std::to_string(items(wanted, "jobs").size()), "job") + " of " +
         counted(show(wanted, "gpus"), "GPU");
}

std::string size_of(const Json& kind) {
  return counted(show(kind, "gpus"), "GPU") + ", " + counted(show(kind, "cpus"), "CPU") + ", " +
         document::memory_text(integer(kind, "memory_mib")) + (is_true(kind, "containers") ? ", containers" : "");
}

// Kinds of which no node is there any more are of use only where they would help.
std::string kinds_table(const Json& answer, std::size_t width) {
  Table table({{"POOL", Align::kLeft, true},
               {"GPU MODEL", Align::kLeft, true},
               {"SIZE"},
               {"NODES", Align::kRight},
               {"IDLE", Align::kRight},
               {"REMOVABLE", Align::kRight},
               {"IDLE AND KEPT", Align::kLeft, true},
               {"WANTED"}});
  for (const Json& kind : items(answer, "items")) {
    if (integer(kind, "nodes") == 0 && !has(kind, "wanted")) continue;
    table.add({show(kind, "pool"), show(kind, "gpu_model"), size_of(kind), show(kind, "nodes"),
               std::to_string(items(kind, "idle").size()), show(kind, "releasable"), kept(kind), wanted(kind)});
  }
  return table.empty() ? "no nodes\n" : table.text(width);
}

std::string idle_table(const Json& answer, std::size_t width) {
  Table table({{"IDLE NODE", Align::kLeft, true}, {"POOL", Align::kLeft, true}, {"SINCE"}, {"KEPT FOR"}, {"STATE"}});
  for (const Json& kind : items(answer, "items")) {
    for (const Json& idle : items(kind, "idle")) {
      const std::string why = show(idle, "kept_for");
      table.add(
          {show(idle, "node"), show(kind, "pool"), clock_text(show(idle, "since")),
           (why == "nothing" ? "could be removed" : why) + (has(idle, "job") ? " by job " + show(idle, "job") : ""),
           is_true(idle, "cordoned") ? "cordoned" : "ready"});
    }
  }
  return table.empty() ? "" : "\n" + table.text(width);
}

}  // namespace

Result<int> run(const CapacityOptions& options, Session& session) {
  std::string path = "/v1/capacity";
  if (!options.idle_for.empty()) {
    const auto seconds = document::parse_duration_s(options.idle_for);
    if (!seconds) return invalid("--idle-for: " + seconds.error().message);
    path += "?idle_for_s=" + std::to_string(*seconds);
  }
  return show_once_or_watch(session, options.show, [&]() -> Result<std::string> {
    const auto answer = get(session, path);
    if (!answer) return answer.error();
    const Format format = options.show.format;
    return formatted(*answer, format, [&] {
      const std::size_t width = table_width(session, format);
      return kinds_table(*answer, width) + (format == Format::kWide ? idle_table(*answer, width) : "") +
             (is_true(*answer, "complete") ? "" : "More jobs are pending than could be tried.\n");
    });
  });
}

}  // namespace berth::cli
