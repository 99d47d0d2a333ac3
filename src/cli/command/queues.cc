#include <algorithm>

#include "cli/columns.h"
#include "cli/command/commands.h"
#include "cli/exit_code.h"
#include "cli/output.h"
#include "cli/printable.h"
#include "model/document/quantity.h"

namespace berth::cli {
namespace {

// The last part of the path, indented by its depth, so that the table reads as the tree it is.
std::string branch(const Json& queue) {
  const std::string path = show(queue, "path");
  const auto depth = static_cast<std::size_t>(std::clamp<std::int64_t>(integer(queue, "depth"), 1, 32));
  return std::string(2 * (depth - 1), ' ') + path.substr(path.rfind('/') + 1);
}

// GPUs of a limit; with the models it names: "8 (H100: 4)".
std::string gpus_of(const Json& amounts) {
  std::string text = show(amounts, "gpus");
  std::vector<std::string> models;
  if (const auto* object = at(amounts, "models").if_object()) {
    for (const auto& model : *object) models.push_back(std::string(model.key()) + ": " + show(model.value()));
  }
  if (!models.empty()) text += (text.empty() ? "" : " ") + ("(" + joined(models, ", ") + ")");
  return text;
}

// "8", or where it was not used for long, what is left: "4 of 8".
std::string guaranteed_gpus(const Json& queue) {
  const std::string configured = gpus_of(at(queue, "guaranteed"));
  const std::string effective = gpus_of(at(queue, "effective"));
  return !has(queue, "effective") || configured == effective ? configured : effective + " of " + configured;
}

std::string rest_of(const Json& amounts) {
  std::vector<std::string> parts;
  if (number(amounts, "cpus") > 0) parts.push_back(show(amounts, "cpus") + " CPUs");
  if (integer(amounts, "memory_mib") > 0) parts.push_back(document::memory_text(integer(amounts, "memory_mib")));
  return joined(parts, ", ");
}

// "2 jobs, 8 GPUs, 10 submitted"
std::string per_user(const Json& queue) {
  const Json& most = at(queue, "max_per_user");
  std::vector<std::string> parts;
  if (has(most, "jobs")) parts.push_back(show(most, "jobs") + (integer(most, "jobs") == 1 ? " job" : " jobs"));
  if (has(most, "gpus")) parts.push_back(show(most, "gpus") + (show(most, "gpus") == "1" ? " GPU" : " GPUs"));
  if (has(most, "submitted")) parts.push_back(show(most, "submitted") + " submitted");
  return joined(parts, ", ");
}

// Whether who cannot start blocks those behind it, and who is behind whom where that is not told by arrival.
std::string policy(const Json& queue) {
  return show(queue, "policy") + (has(queue, "attained_service") ? ", attained service" : "");
}

std::vector<Column> queue_columns(bool wide) {
  std::vector<Column> columns{{"QUEUE", Align::kLeft, true}, {"GUARANTEED", Align::kRight}, {"MAX", Align::kRight},
                              {"USED", Align::kRight},       {"BORROWED", Align::kRight},   {"RUNNING", Align::kRight},
                              {"PENDING", Align::kRight},    {"SHARE", Align::kRight}};
  if (wide) {
    columns.push_back({"WEIGHT", Align::kRight});
    columns.push_back({"LENDS", Align::kRight});
    columns.push_back({"BURST", Align::kRight});
    for (const char* title : {"GUARANTEED CPU, MEMORY", "USED CPU, MEMORY", "POLICY", "PER USER", "TRUST DOMAIN"}) {
      columns.push_back({title});
    }
  }
  return columns;
}

std::string table(const boost::json::array& queues, bool tree, Format format, std::size_t width) {
  const bool csv = format == Format::kCsv;
  const bool wide = has_all_columns(format);
  if (queues.empty() && !csv) return "no queues; `berth apply -f cluster.yaml` makes them\n";
  Table table(queue_columns(wide));
  for (const Json& queue : queues) {
    std::vector<std::string> cells{tree && !csv ? branch(queue) : show(queue, "path"),
                                   guaranteed_gpus(queue),
                                   gpus_of(at(queue, "max")),
                                   show(at(queue, "usage"), "gpus"),
                                   show(queue, "borrowed_gpus"),
                                   show(queue, "running"),
                                   show(queue, "pending"),
                                   show(queue, "dominant_share")};
    if (wide) {
      cells.push_back(show(queue, "weight"));
      cells.push_back(gpus_of(at(queue, "lending_limit")));
      cells.push_back(show(queue, "burst_gpus"));
      cells.push_back(rest_of(at(queue, "guaranteed")));
      cells.push_back(rest_of(at(queue, "usage")));
      cells.push_back(policy(queue));
      cells.push_back(per_user(queue));
      cells.push_back(show(queue, "trust_domain"));
    }
    table.add(cells);
  }
  return csv ? table.csv() : table.text(width);
}

// Of a queue that limits its users: how much one may have, and what each has. "2 of 4" where there is a limit.
std::string users_text(const Json& queue, std::size_t width) {
  const std::string limits = per_user(queue);
  if (limits.empty()) return "";
  Table table(
      {{"USER", Align::kLeft, true}, {"JOBS", Align::kRight}, {"GPUS", Align::kRight}, {"SUBMITTED", Align::kRight}});
  const Json& most = at(queue, "max_per_user");
  for (const Json& user : items(queue, "users")) {
    std::vector<std::string> cells{show(user, "user")};
    for (const char* name : {"jobs", "gpus", "submitted"}) {
      cells.push_back(show(user, name) + (has(most, name) ? " of " + show(most, name) : ""));
    }
    table.add(cells);
  }
  return "\nper user, at most: " + limits + "\n" + (table.empty() ? "" : table.text(width));
}

// "of research", "the cluster's"
std::string whose(const Json& terms, const std::string& key) {
  const std::string queue = printable(show(terms, key));
  return queue.empty() ? "the cluster's" : "of " + queue;
}

// What holds for its jobs when others want their places, and whose word that is.
std::string eviction_text(const Json& queue) {
  if (!has(queue, "eviction")) return "";
  const Json& terms = at(queue, "eviction");
  const auto time = [&](const std::string& name, const std::string& key) {
    return name + document::duration_text(integer(terms, key + "_s")) + " (" + whose(terms, key + "_of") + ")";
  };
  std::string text = "\neviction: " + time("minimum run time ", "min_runtime") + ", " +
                     time("after an eviction ", "cooldown") + ", " + time("grace ", "grace") + "\n";
  for (const Json& limit : items(terms, "limits")) {
    text += "  of " + printable(show(limit, "queue")) + " at most " + show(limit, "evictions_per_hour") +
            " within an hour; so far " + show(limit, "used") + "\n";
  }
  return text;
}

Result<int> explain_share(const QueuesOptions& options, Session& session) {
  if (options.show.format == Format::kCsv || !options.show.columns.empty())
    return invalid("an explanation has no columns; give -o table, json or yaml with --explain");
  const std::string path = "/v1/queues/" + client::encode_segment(options.path) + "/share";
  return show_once_or_watch(session, options.show, [&]() -> Result<std::string> {
    const auto moment = moment_when(options.at, clock_now());
    if (!moment) return moment.error();
    const auto share = get(session, query(path, {{"at", *moment}}));
    if (!share) return share.error();
    return formatted(*share, options.show.format, [&] {
      std::string text = "queue " + printable(show(*share, "path")) + "\n";
      for (const Json& line : items(*share, "lines")) text += "  " + printable(show(line)) + "\n";
      return text;
    });
  });
}

}  // namespace

Result<int> run(const QueuesOptions& options, Session& session) {
  if (options.explain) return explain_share(options, session);
  const bool one = !options.path.empty();
  const std::string path = one ? "/v1/queues/" + client::encode_segment(options.path) : "/v1/queues";
  return show_once_or_watch(session, options.show, [&]() -> Result<std::string> {
    const auto moment = moment_when(options.at, clock_now());
    if (!moment) return moment.error();
    const auto answer = get(session, query(path, {{"at", *moment}}));
    if (!answer) return answer.error();
    const boost::json::array queues = one ? boost::json::array{*answer} : items(*answer, "items");
    const Format format = options.show.format;
    const std::size_t width = table_width(session, format);
    if (!options.show.columns.empty()) return in_columns(queues, options.show, width);
    return formatted(one ? *answer : Json(queues), format, [&] {
      return table(queues, !one, format, width) +
             (one && format != Format::kCsv ? eviction_text(*answer) + users_text(*answer, width) : "");
    });
  });
}

}  // namespace berth::cli
