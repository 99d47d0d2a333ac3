#include <algorithm>
#include <boost/json/serialize.hpp>
#include <iterator>
#include <string_view>

#include "cli/command/commands.h"
#include "cli/command/job_words.h"
#include "cli/exit_code.h"
#include "cli/output.h"
#include "cli/printable.h"
#include "cli/when.h"
#include "model/document/quantity.h"
#include "model/volume.h"

namespace berth::cli {
namespace {

constexpr std::size_t kMostChildren = 20;
constexpr std::size_t kMostChildrenWide = 1000;
constexpr int kMostPages = 20;  // the history may be long and hold few of them

void fact(std::string& out, const std::string& name, const std::string& value) {
  if (!value.empty())
    out += "  " + name + std::string(12 - std::min<std::size_t>(12, name.size()), ' ') + printable(value) + "\n";
}

std::string per_task(const Json& group) {
  const auto amount = [&group](const char* name, const char* unit) {
    const std::string value = show(group, name);
    return value.empty() || value == "0" ? "" : value + unit;
  };
  std::vector<std::string> parts;
  const std::string gpus = amount("gpus", "");
  const std::string models = joined(at(group, "gpu_models"), " or ");
  const std::string profile = show(group, "mig_profile");
  const std::string of_models = models.empty() ? "" : " (" + models + ")";
  if (!profile.empty())
    parts.push_back("a MIG instance " + profile + of_models);
  else if (!gpus.empty())
    parts.push_back(counted(gpus, "GPU") + of_models);
  if (const std::string cpus = amount("cpus", ""); !cpus.empty()) parts.push_back(counted(cpus, "CPU"));
  if (const std::string memory = amount("memory", ""); !memory.empty()) parts.push_back(memory);
  if (const auto* countables = at(group, "countables").if_object()) {
    for (const auto& one : *countables) parts.push_back(show(one.value()) + " " + std::string(one.key()));
  }
  return joined(parts, ", ");
}

// "zone=a, cores>16; tolerates spot": the nodes that the group may use.
std::string nodes_wanted(const Json& group) {
  std::vector<std::string> labels;
  if (const auto* selector = at(group, "node_selector").if_object()) {
    for (const auto& one : *selector) labels.push_back(std::string(one.key()) + "=" + show(one.value()));
  }
  for (const Json& rule : items(group, "node_rules"))
    labels.push_back(rule.is_string() ? show(rule) : boost::json::serialize(rule));
  const std::string tolerated = joined(at(group, "tolerations"), ", ");
  std::string text = joined(labels, ", ");
  if (!tolerated.empty()) text += (text.empty() ? "" : "; ") + ("tolerates " + tolerated);
  return text;
}

std::string asks(const Json& group) {
  const std::string tasks = show(group, "tasks").empty() ? "1" : show(group, "tasks");
  std::string text = counted(tasks, "task") + (tasks == "1" ? " with " : ", each ") + per_task(group);
  if (has(group, "launch")) text += ", launched " + show(group, "launch");
  return text;
}

std::string command_words(const Json& group) {
  const Json& command = at(group, "command");
  return command.is_string() ? show(command) : joined(command, " ");
}

// A job that was requeued keeps its old age in the queue, and waits only since its last attempt ended.
std::string waiting_from(const Json& job) {
  const auto& past = items(job, "past");
  return past.empty() ? show(job, "submitted") : show(past[past.size() - 1], "ended");
}

std::string state_line(const Json& job, Timestamp now) {
  const std::string phase = show(job, "phase");
  std::string line = phase == "running" ? phase : state_words(job);
  if (phase == "pending") line += " for " + age_text(waiting_from(job), now);
  if (has(job, "children")) return line;  // which runs in them alone
  if (phase == "running") line += " for " + age_text(show(job, "started"), now) + ", attempt " + show(job, "attempt");
  if (phase == "running" && has(job, "within"))
    line += is_true(job, "within") ? ", within its guarantee" : ", borrowed";
  if (phase == "stopping") {
    const Json& stop = at(job, "stop");
    line +=
        " for " + age_text(show(stop, "began"), now) + ", attempt " + show(job, "attempt") + ": " + stop_words(stop);
  }
  return line;
}

std::string children_noun(const Json& job) { return show(job, "kind") == "array" ? "elements" : "replicas"; }

// "8: 3 running, 1 waiting, 4 ended, 1 of them failed"
std::string children_words(const Json& children) {
  std::string words = show(children, "total") + ":";
  for (const char* state : {"running", "waiting", "ended"}) {
    words += (words.ends_with(':') ? " " : ", ") + show(children, state) + " " + state;
  }
  words += ", " + show(children, "failed") + (integer(children, "ended") > 0 ? " of them failed" : " failed");
  const std::int64_t live = integer(children, "running") + integer(children, "waiting");
  if (!has(children, "current") || integer(children, "current") == live) return words;
  return words + "; " + show(children, "current") + " of " + std::to_string(live) + " are of the present version";
}

// "4% of its 2 GPUs in the last 60min"
std::string utilization_words(const Json& job) {
  if (!has(job, "driven")) return "";
  const Json& gpu_utilization = at(job, "driven");
  std::size_t held = 0;
  for (const Json& task : items(job, "tasks")) held += items(task, "gpus").size();
  const std::string gpus = counted(std::to_string(held), "GPU");
  const std::string measured = show(gpu_utilization, "gpus");
  return percent_text(gpu_utilization, "pct") + " of " + (measured == std::to_string(held) ? "" : measured + " of ") +
         "its " + gpus + " in the last " + show(gpu_utilization, "minutes") + "min";
}

// "imagenet at /data, read-only", of each volume and secret.
std::vector<std::string> mount_words(const Json& spec) {
  std::vector<std::string> all;
  for (const Json& mount : items(spec, "mounts"))
    all.push_back("volume " + show(mount, "name") + " at " + show(mount, "path") +
                  (is_true(mount, "read_only") ? ", read-only" : ""));
  for (const Json& secret : items(spec, "secrets")) {
    const std::string path = show(secret, "path");
    all.push_back("secret " + show(secret, "name") + " in " +
                  (path.empty() ? std::string(kSecretMounts) + "/" + show(secret, "name") : path));
  }
  for (const auto& [key, variable] :
       {std::pair("checkpoint", "BERTH_CHECKPOINT_DIR"), std::pair("outputs", "BERTH_OUTPUT_DIR")}) {
    const Json& place = at(spec, key);
    const std::string path = show(place, "path");
    if (const std::string volume = show(place, "volume"); !volume.empty())
      all.push_back("volume " + volume + " has " + variable + (path.empty() ? "" : " in " + path));
  }
  if (const std::string shm = show(spec, "shm"); !shm.empty()) all.push_back(shm + " of /dev/shm");
  return all;
}

std::string heading(const Json& job, Timestamp now) {
  std::string out = "job " + show(job, "id") + "  " + printable(show(job, "name")) + "\n";
  fact(out, "state", state_line(job, now));
  fact(out, "queue", show(job, "queue"));
  fact(out, "user", show(job, "user"));
  fact(out, "kind", show(job, "kind") + ", " + show(job, "class"));
  const std::string priority_class = show(job, "priority_class");
  fact(out, "priority", show(job, "priority") + (priority_class.empty() ? "" : " (" + priority_class + ")"));
  const Json& spec = at(job, "spec");
  fact(out, "comment", show(spec, "comment"));
  if (has(spec, "groups")) {
    for (const Json& group : items(spec, "groups")) {
      fact(out, "group", show(group, "name") + ": " + asks(group));
      fact(out, "on nodes", nodes_wanted(group));
      fact(out, "", command_words(group));
    }
  } else if (spec.is_object()) {
    fact(out, "asks for", asks(spec) + (is_true(job, "simulated_gpus") ? " (simulated GPUs)" : ""));
    fact(out, "on nodes", nodes_wanted(spec));
    fact(out, "command", command_words(spec));
  }
  if (const std::string level = show(job, "gpu_level"); !level.empty() && level != "whole")
    fact(out, "GPU shared", "by " + level + ": " + show(job, "isolation"));
  for (const std::string& mount : mount_words(spec)) fact(out, "mount", mount);
  fact(out, "driven", utilization_words(job));
  fact(out, "time limit", show(spec, "time_limit"));
  fact(out, "not before", clock_text(show(spec, "earliest_start")));
  fact(out, "due", clock_text(show(spec, "deadline")));
  if (has(job, "reservation")) {
    const Json& reservation = at(job, "reservation");
    const bool slipped = show(reservation, "start") != show(reservation, "first_start");
    fact(out, "reservation",
         clock_text(show(reservation, "start")) +
             (slipped ? ", first " + clock_text(show(reservation, "first_start")) : ""));
  }
  if (has(job, "slip_s") && integer(job, "slip_s") > 0)
    fact(out, "slipped by", span_text(integer(job, "slip_s") * 1000));
  if (has(job, "estimate")) fact(out, "runs about", show(at(job, "estimate"), "text"));
  if (has(job, "children")) fact(out, children_noun(job), children_words(at(job, "children")));
  if (has(job, "parent")) fact(out, "part of", "job " + show(job, "parent") + ", number " + show(job, "index"));
  for (const Json& one : items(job, "break_glass"))
    fact(out, "log read",
         "by " + show(one, "subject") + " at " + clock_text(show(one, "time")) +
             ", break-glass: " + show(one, "reason"));
  if (has(job, "checkpoint")) {
    const Json& checkpoint = at(job, "checkpoint");
    const std::string when = show(checkpoint, "at");  // not known of a job that is over
    fact(out, "checkpoint", "step " + show(checkpoint, "step") + (when.empty() ? "" : ", " + clock_text(when)));
  }
  return out;
}

std::string where(const Json& gpus_on) {
  std::vector<std::string> parts;
  for (const Json& place : items(gpus_on)) {
    const Json& gpus = at(place, "gpus");
    const std::size_t listed = items(gpus).size();
    const std::string count = gpus.is_array() ? std::to_string(listed) : show(gpus);
    const std::string with = count.empty() || count == "0" ? "" : " (" + counted(count, "GPU") + ")";
    parts.push_back(show(place, "node") + with);
  }
  return joined(parts, ", ");
}

// The nodes of the running attempt, each once, with how many GPUs of it.
std::string where_now(const Json& job) {
  std::vector<std::pair<std::string, std::size_t>> nodes;
  for (const Json& task : items(job, "tasks")) {
    const std::string node = show(task, "node");
    auto place = std::find_if(nodes.begin(), nodes.end(), [&node](const auto& one) { return one.first == node; });
    if (place == nodes.end()) place = nodes.insert(nodes.end(), {node, 0});
    place->second += items(task, "gpus").size();
  }
  std::vector<std::string> parts;
  for (const auto& [node, gpus] : nodes) {
    parts.push_back(node + (gpus == 0 ? "" : " (" + counted(std::to_string(gpus), "GPU") + ")"));
  }
  return joined(parts, ", ");
}

std::string waited(const std::string& from, const std::string& until) {
  const auto begin = from_iso8601(from);
  const auto end = from_iso8601(until);
  return begin && end && *end - *begin >= 1000 ? ", after a wait of " + span_text(*end - *begin) : "";
}

// "nothing saved: 72 GPU-seconds lost", of an attempt that was stopped for others or for the nodes. A job that saves
// when it is asked to leave may have saved without a word, so nothing is said of it.
std::string lost_work(const Json& job, const Json& attempt) {
  constexpr std::string_view kCauses[] = {"reclaim",     "preempt",     "consolidate", "drain",
                                          "maintenance", "spot-notice", "node-lost",   "move"};
  const std::string cause = show(attempt, "cause");
  const bool evicted = std::find(std::begin(kCauses), std::end(kCauses), cause) != std::end(kCauses);
  const bool saves = is_true(at(at(job, "spec"), "checkpoint"), "on_signal") || has(job, "parent");
  const auto begin = from_iso8601(show(attempt, "started"));
  const auto end = from_iso8601(show(attempt, "ended"));
  if (!evicted || saves || integer(attempt, "checkpoint_step") > 0 || !begin || !end) return "";
  std::int64_t gpus = 0;
  for (const Json& place : items(attempt, "gpus_on")) gpus += integer(place, "gpus");
  const std::int64_t seconds = (*end - *begin) / 1000;
  const bool on_gpus = gpus > 0;
  return ", nothing saved: " +
         counted(std::to_string(on_gpus ? gpus * seconds : seconds), on_gpus ? "GPU-second" : "second") + " lost";
}

std::string expected_end(const Json& attempt) {
  std::string words = show(attempt, "outcome");
  if (has(attempt, "cause")) words += " (" + stop_words(attempt) + ")";
  if (integer(attempt, "code") != 0) words += ", exit code " + show(attempt, "code");
  if (const std::string message = show(attempt, "message"); !message.empty()) words += ": " + message;
  if (integer(attempt, "checkpoint_step") > 0) words += ", saved at step " + show(attempt, "checkpoint_step");
  const auto begin = from_iso8601(show(attempt, "started"));
  const auto end = from_iso8601(show(attempt, "ended"));
  if (begin && end) words += ", ran " + span_text(*end - *begin);
  return words;
}

class Story {
 public:
  void tell(const std::string& iso, const std::string& what) {
    out_ += "  " + clock_text(iso) + "  " + printable(what) + "\n";
  }
  std::string text() const { return out_; }

 private:
  std::string out_ = "\n";
};

void tell_stop(const Json& job, Story& story) {
  const Json& stop = at(job, "stop");
  if (!stop.is_object()) return;
  story.tell(show(stop, "began"), "attempt " + show(job, "attempt") + " asked to stop: " + stop_words(stop) +
                                      ", until " + clock_text(show(stop, "deadline")));
}

void tell_attempt(const Json& job, const std::string& waits_from, Story& story) {
  if (has(job, "children")) return;  // each of them has its own
  const std::string number = "attempt " + show(job, "attempt");
  const std::string started = show(job, "started");
  const bool resized = has(job, "size") && show(at(job, "size"), "since") != started;
  story.tell(started, number + " started" + (resized ? "" : " on " + where_now(job)) + waited(waits_from, started));
  if (!resized) return;
  const Json& size = at(job, "size");
  story.tell(show(size, "since"), number + " has " + counted(show(size, "tasks"), "task") + " of " +
                                      show(job, "tasks_total") + " since then, on " + where_now(job));
}

std::string story_of(const Json& job) {
  Story story;
  std::string waits_from = show(job, "submitted");
  story.tell(waits_from, "submitted");
  for (const Json& attempt : items(job, "past")) {
    const std::string number = "attempt " + show(attempt, "attempt");
    const std::string places = where(at(attempt, "gpus_on"));
    story.tell(show(attempt, "started"), number + " started" + (places.empty() ? "" : " on " + places) +
                                             waited(waits_from, show(attempt, "started")));
    story.tell(show(attempt, "ended"), number + " ended: " + expected_end(attempt) + lost_work(job, attempt));
    waits_from = show(attempt, "ended");
  }
  const std::string phase = show(job, "phase");
  if (phase == "running" || phase == "stopping") tell_attempt(job, waits_from, story);
  tell_stop(job, story);
  if (phase == "finished") story.tell(show(job, "finished"), "finished: " + show(job, "outcome"));
  return story.text();
}

std::string tasks_table(const Json& job, bool wide, std::size_t width) {
  if (items(job, "tasks").empty()) return "";
  std::vector<Column> columns{
      {"TASK", Align::kRight}, {"GROUP"}, {"NODE", Align::kLeft, true}, {"GPUS", Align::kRight}, {"STATE"}};
  if (wide) columns.push_back({"DEVICES"});
  Table table(columns);
  for (const Json& task : items(job, "tasks")) {
    std::string state = show(task, "phase");
    if (state == "exited") {
      const std::string reason = show(task, "reason");
      state += " " + show(task, "code") + (reason == "exited" ? "" : " (" + reason + ")");
    }
    std::vector<std::string> cells{show(task, "task"), show(task, "group"), show(task, "node"),
                                   std::to_string(items(task, "gpus").size()), state};
    if (wide) {
      const std::string slices = show(task, "slices");
      cells.push_back(joined(at(task, "gpus"), ",") + (slices.empty() ? "" : " slices " + slices));
    }
    table.add(cells);
  }
  return "\n" + table.text(width);
}

// The live ones by number, then those that are over, newest first, as far as the table goes.
Result<boost::json::array> children_of(const std::string& id, std::size_t most, Session& session) {
  boost::json::array found;
  std::string cursor;
  for (int pages = 0; pages < kMostPages && found.size() < most; ++pages) {
    const std::string limit = std::to_string(most - found.size());
    const auto page =
        get(session, query("/v1/jobs", {{"parent", id}, {"finished", "true"}, {"limit", limit}, {"cursor", cursor}}));
    if (!page) return page.error();
    for (const Json& child : items(*page, "items")) found.push_back(child);
    cursor = show(*page, "next_cursor");
    if (cursor.empty()) break;
  }
  return found;
}

Result<std::string> children_table(const Json& job, Format format, Session& session) {
  if (!has(job, "children")) return std::string();
  const std::string id = show(job, "id");
  const auto children = children_of(id, format == Format::kWide ? kMostChildrenWide : kMostChildren, session);
  if (!children || children->empty()) return children ? Result<std::string>(std::string()) : children.error();
  Table table({{show(job, "kind") == "array" ? "ELEMENT" : "REPLICA", Align::kRight},
               {"JOB", Align::kRight},
               {"STATE"},
               {"FOR", Align::kRight},
               {"FAILURES", Align::kRight},
               {"NODES", Align::kLeft, true}});
  for (const Json& child : *children) {
    table.add({show(child, "index"), show(child, "id"), state_words(child), in_state_for(child, clock_now()),
               show(child, "failures"), joined(at(child, "nodes"), ",")});
  }
  const Json& counts = at(job, "children");
  const std::int64_t all = integer(counts, "running") + integer(counts, "waiting") + integer(counts, "ended");
  const std::int64_t rest = all - static_cast<std::int64_t>(children->size());
  return "\n" + table.text(table_width(session, format)) +
         (rest > 0 ? "and " + std::to_string(rest) + " more: berth jobs --all --parent " + id + "\n" : "");
}

// Why it waits, of a job that waits.
Result<std::string> waiting_for(const Json& job, Session& session) {
  if (show(job, "phase") != "pending") return std::string();
  const auto why = get(session, "/v1/jobs/" + show(job, "id") + "/why");
  if (!why) return why.error();
  return "\n  " + printable(show(*why, "headline")) + "\n";
}

}  // namespace

Result<int> run(const JobViewOptions& options, Session& session) {
  const auto path = job_path(options.id);
  if (!path) return path.error();
  return show_once_or_watch(session, options.show, [&]() -> Result<std::string> {
    const auto job = get(session, *path);
    if (!job) return job.error();
    const Format format = options.show.format;
    if (format != Format::kTable && format != Format::kWide) return formatted(*job, format, {});
    const auto waits = waiting_for(*job, session);
    if (!waits) return waits.error();
    const auto children = children_table(*job, format, session);
    if (!children) return children.error();
    return heading(*job, clock_now()) + story_of(*job) + *waits +
           tasks_table(*job, format == Format::kWide, table_width(session, format)) + *children;
  });
}

}  // namespace berth::cli
