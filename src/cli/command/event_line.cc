#include "cli/command/event_line.h"

#include <array>
#include <string_view>

#include "cli/command/job_words.h"
#include "cli/output.h"
#include "cli/when.h"
#include "model/document/quantity.h"

namespace berth::cli {
namespace {

constexpr std::size_t kLongestField = 80;

std::string job(const Json& event) { return "job " + show(event, "job"); }
std::string attempt(const Json& event) { return job(event) + " attempt " + show(event, "attempt"); }
std::string task(const Json& event) { return attempt(event) + " task " + show(event, "task"); }
std::string node(const Json& event) { return "node " + show(event, "node"); }
std::string colon(const std::string& text) { return text.empty() ? "" : ": " + text; }
std::string by(const Json& event) {
  return has(event, "user") && !show(event, "user").empty() ? " by " + show(event, "user") : "";
}
std::string code(const Json& event) { return integer(event, "code") == 0 ? "" : ", code " + show(event, "code"); }
std::string billed(const Json& event) { return is_true(event, "guaranteed") ? ", within its guarantee" : ", borrowed"; }

std::string placements(const Json& event) {
  const auto& places = items(event, "placements");
  std::size_t gpus = 0;
  for (const Json& place : places) gpus += items(place, "gpus").size();
  return counted(std::to_string(places.size()), "task") + " on " + counted(std::to_string(gpus), "GPU");
}

std::string submitted(const Json& event) {
  const Json& spec = at(event, "spec");
  return job(event) + " \"" + show(spec, "name") + "\" to " + show(spec, "queue") + ", priority " +
         show(event, "priority");
}

std::string exited(const Json& event) {
  const std::string message = show(event, "message");
  return task(event) + " ends: " + (message.empty() ? show(event, "reason") + code(event) : message);
}

std::string stop_began(const Json& event) {
  if (integer(event, "keep") > 0) {
    return attempt(event) + " is asked to scale down to " + counted(show(event, "keep"), "task") + ": " +
           stop_words(event) + ", until " + clock_text(show(event, "deadline"));
  }
  return attempt(event) + " is asked to stop: " + stop_words(event) + ", until " + clock_text(show(event, "deadline"));
}

std::string nominated(const Json& event) {
  const std::string text = job(event) + " is nominated for " + placements(event);
  if (items(event, "victims").empty()) return text + " (to start again after its move)";
  return text + " (" + show(event, "cause") + " from " + (items(event, "victims").size() == 1 ? "job " : "jobs ") +
         joined(at(event, "victims"), ", ") + ")";
}

std::string cordoned(const Json& event) {
  const char* what = is_true(event, "draining") ? " drains" : is_true(event, "cordoned") ? " cordoned" : " uncordoned";
  return node(event) + what + by(event) + colon(show(event, "why"));
}

std::string clock_confirmed(const Json& event) {
  const std::int64_t offset = integer(event, "offset_ms");
  const std::int64_t seconds = (offset < 0 ? -offset : offset) / 1000;
  return "the wall clock is right" + by(event) + ": the server's clock was " + document::duration_text(seconds) +
         (offset < 0 ? " ahead" : " behind");
}

std::string fragmentation_alarm(const Json& event) {
  const auto gpus = [&](const char* key) { return std::to_string((integer(event, key) + 500) / 1000); };
  return (is_true(event, "raised") ? "fragmentation is high: " : "fragmentation is low again: ") +
         ("typical jobs cannot use " + gpus("unusable_milli")) + " of " + counted(gpus("idle_milli"), "idle GPU");
}

std::string amounts(const Json& value) {
  std::vector<std::string> parts;
  const auto milli = [](const Json& amount) { return document::milli_text(amount.to_number<std::int64_t>()); };
  if (has(value, "gpu_milli")) parts.push_back(counted(milli(at(value, "gpu_milli")), "GPU"));
  if (has(value, "cpu_milli")) parts.push_back(counted(milli(at(value, "cpu_milli")), "CPU"));
  if (has(value, "memory_mib")) parts.push_back(document::memory_text(integer(value, "memory_mib")));
  if (const auto* models = at(value, "model_gpu_milli").if_object()) {
    for (const auto& model : *models) parts.push_back(counted(milli(model.value()), std::string(model.key()) + " GPU"));
  }
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
  return text;
}

std::string guarantee_changed(const Json& event) {
  const std::string from = amounts(at(event, "from"));
  const std::string to = amounts(at(event, "to"));
  return "guarantee of queue " + show(event, "queue") +
         (is_true(event, "restored")
              ? " restored to " + to + " by guarantee_decay: the queue asked for more than " + from
              : " lowered from " + from + " to " + to +
                    " by guarantee_decay: the queue asked for no more than half of it");
}

std::string images_changed(const Json& event) {
  const std::string pulled = joined(at(event, "pulled"), ", ");
  const std::string dropped = joined(at(event, "dropped"), ", ");
  return node(event) + (pulled.empty() ? "" : " has pulled " + pulled) +
         (pulled.empty() || dropped.empty() ? "" : " and") + (dropped.empty() ? "" : " has dropped " + dropped);
}

std::string foreign_use_changed(const Json& event) {
  const Json& use = at(event, "use");
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? ": others use " : ", ") + part; };
  if (const std::size_t gpus = items(use, "gpus").size(); gpus > 0)
    add(std::to_string(gpus) + (gpus == 1 ? " GPU" : " GPUs"));
  if (const std::int64_t cpus = integer(use, "cpu_milli"); cpus > 0)
    add(document::milli_text(cpus) + (cpus == 1000 ? " CPU" : " CPUs"));
  if (const std::int64_t memory = integer(use, "memory_mib"); memory > 0) add(document::memory_text(memory));
  if (const auto* countables = at(use, "countables").if_object()) {
    for (const auto& one : *countables) add(show(one.value()) + " " + std::string(one.key()));
  }
  return node(event) + (text.empty() ? ": others use nothing" : text);
}

std::string changed_limits(const Json& event) {
  std::string text;
  for (const Json& limit : items(event, "limits")) text += (text.empty() ? " " : ", ") + show(limit, "key");
  return text;
}

std::string queue_changed(const Json& event) {
  const std::string until = show(event, "until");
  return "queue \"" + show(event, "queue") + "\" changed:" + changed_limits(event) + by(event) +
         (until.empty() || until == "never" ? "" : " until " + clock_text(until));
}

std::string queue_change_ended(const Json& event) {
  return "queue \"" + show(event, "queue") + "\": change of version " + show(event, "change") +
         (is_true(event, "undone") ? " undone" + by(event) : " ended with its lease") + ":" + changed_limits(event);
}

std::string role_bound(const Json& event) {
  const Json& binding = at(event, "binding");
  const std::string queue = show(binding, "queue");
  return show(binding, "subject") + (is_true(event, "bound") ? " is " : " is no longer ") + show(binding, "role") +
         " at " + (queue.empty() ? "/" : queue) + by(event);
}

std::string access_denied(const Json& event) {
  const std::string subject = show(event, "subject");
  const std::string verb = show(event, "verb");
  const std::string queue = show(event, "queue");
  const std::string whose = !subject.empty() ? subject : is_true(event, "others") ? "others" : show(event, "address");
  const std::string where = at(event, "job").is_null() ? (queue.empty() ? "/" : queue) : job(event);
  return counted(show(event, "count"), "request") + " of " + whose + " denied" +
         (verb.empty() ? "" : ": " + verb + (is_true(event, "others") ? "" : " at " + where));
}

std::string log_read(const Json& event) {
  const std::string reason = show(event, "reason");
  return "log of " + job(event) + " of " + show(event, "owner") + " read by " + show(event, "subject") +
         (reason.empty() ? "" : " by break-glass: " + reason);
}

std::string shell_of(const Json& event) {
  const std::string program = show(event, "program");
  return (program.empty() ? "terminal" : "shell (" + program + ")") + " in " + job(event) + " task " +
         show(event, "task") + " of " + show(event, "owner");
}

std::string shell_opened(const Json& event) {
  return shell_of(event) + (show(event, "program").empty() ? " attached by " : " opened by ") + show(event, "subject");
}

std::string shell_ended(const Json& event) {
  const std::string message = show(event, "message");
  return shell_of(event) + " ended" + (has(event, "code") ? ", code " + show(event, "code") : "") + colon(message);
}

std::string ended(const Json& event) { return show(event, "outcome") + code(event) + colon(show(event, "message")); }

struct Telling {
  std::string_view kind;
  std::string (*words)(const Json& event);
};

constexpr std::array kTellings{
    Telling{"cluster-configured", [](const Json& e) { return "configuration version " + show(e, "version") + by(e); }},
    Telling{"node-registered",
            [](const Json& e) {
              const std::string before = show(e, "renamed_from");
              return node(e) + " \"" + show(at(e, "spec"), "name") + "\" lease " + show(e, "lease") +
                     (before.empty() ? "" : ", renamed from \"" + before + "\"");
            }},
    Telling{"node-status-changed",
            [](const Json& e) { return node(e) + " " + show(e, "status") + colon(show(e, "why")); }},
    Telling{"node-removed", [](const Json& e) { return node(e) + " is no more part of the fleet"; }},
    Telling{"node-cordoned", &cordoned},
    Telling{"node-blamed",
            [](const Json& e) { return node(e) + " is blamed by " + attempt(e) + ", which failed there"; }},
    Telling{
        "log-restored",
        [](const Json& e) { return "the log was restored; jobs are numbered from " + show(e, "next_job") + " on"; }},
    Telling{"gpu-health-changed",
            [](const Json& e) {
              const char* now = is_true(e, "healthy") ? " healthy" : is_true(e, "fenced") ? " fenced" : " unhealthy";
              return node(e) + " GPU " + show(e, "gpu") + now + colon(show(e, "why")) + by(e);
            }},
    Telling{"node-images-changed", &images_changed},
    Telling{"foreign-use-changed", &foreign_use_changed},
    Telling{"clock-confirmed", &clock_confirmed},
    Telling{"queue-changed", &queue_changed},
    Telling{"queue-change-ended", &queue_change_ended},
    Telling{"role-bound", &role_bound},
    Telling{"rules-set",
            [](const Json& e) {
              return std::to_string(items(e, "rules").size()) + " admission rules at " +
                     (show(e, "queue").empty() ? "/" : show(e, "queue")) + by(e);
            }},
    Telling{"access-denied", &access_denied},
    Telling{"log-read", &log_read},
    Telling{"signed-in",
            [](const Json& e) {
              return show(e, "subject") + " signed in (" + show(e, "proof") + ") from " + show(e, "address");
            }},
    Telling{"subject-blocked",
            [](const Json& e) {
              return "access of " + show(e, "subject") + (is_true(e, "blocked") ? " ended" : " no longer ended") +
                     by(e);
            }},
    Telling{"quantity-reported",
            [](const Json& e) {
              return show(e, "quantity") + " " + show(e, "unit") + " of " + show(e, "quantity_kind") + " for queue " +
                     show(e, "queue") + ", report " + show(e, "id") + by(e);
            }},
    Telling{"job-submitted", &submitted},
    Telling{"job-hold-changed",
            [](const Json& e) { return job(e) + (is_true(e, "held") ? " held" : " released") + by(e); }},
    Telling{"job-priority-changed",
            [](const Json& e) {
              const std::string before = show(e, "before");
              return job(e) + " priority " + (before.empty() ? "" : before + " -> ") + show(e, "priority") + by(e);
            }},
    Telling{"shell-opened", &shell_opened},
    Telling{"shell-ended", &shell_ended},
    Telling{"job-signalled", [](const Json& e) { return job(e) + " sent signal " + show(e, "signal") + by(e); }},
    Telling{"job-cancel-requested", [](const Json& e) { return job(e) + " to be cancelled" + by(e); }},
    Telling{"nominated", &nominated},
    Telling{"nomination-dropped",
            [](const Json& e) { return "nomination of " + job(e) + " withdrawn" + colon(show(e, "why")); }},
    Telling{"attempt-started", [](const Json& e) { return attempt(e) + " starts " + placements(e) + billed(e); }},
    Telling{"attempt-grown",
            [](const Json& e) { return attempt(e) + " is scaled up by " + placements(e) + billed(e); }},
    Telling{"charge-promoted", [](const Json& e) { return attempt(e) + " charged" + billed(e).substr(1); }},
    Telling{"task-started", [](const Json& e) { return task(e) + " runs"; }},
    Telling{"task-exited", &exited},
    Telling{"stop-began", &stop_began},
    Telling{"move-nominated", [](const Json& e) { return attempt(e) + " will move to " + placements(e); }},
    Telling{"move-ordered",
            [](const Json& e) {
              return attempt(e) + " is ordered to move off " + counted(std::to_string(items(e, "off").size()), "node") +
                     (is_true(e, "lose_work") ? ", even if its work is lost" : "") + by(e);
            }},
    Telling{"stop-cancelled", [](const Json& e) { return "eviction of " + attempt(e) + " cancelled"; }},
    Telling{"stop-forced", [](const Json& e) { return attempt(e) + " is killed where it still runs"; }},
    Telling{"checkpoint-reported", [](const Json& e) { return attempt(e) + " saved step " + show(e, "step"); }},
    Telling{"attempt-ended", [](const Json& e) { return attempt(e) + " " + ended(e); }},
    Telling{"job-requeued", [](const Json& e) { return job(e) + " is requeued"; }},
    Telling{"job-finished", [](const Json& e) { return job(e) + " " + ended(e); }},
    Telling{"service-updated", [](const Json& e) { return job(e) + " is updated, version " + show(e, "generation"); }},
    Telling{"attempt-shrunk",
            [](const Json& e) { return attempt(e) + " is scaled down to " + counted(show(e, "keep"), "task"); }},
    Telling{"reservation-made",
            [](const Json& e) {
              return job(e) + " has a backfill reservation at " + clock_text(show(e, "start")) + ", " + placements(e);
            }},
    Telling{"reservation-dropped",
            [](const Json& e) { return "backfill reservation of " + job(e) + " dropped" + colon(show(e, "why")); }},
    Telling{"starts-sought", [](const Json&) { return std::string("backfill reservations were looked for"); }},
    Telling{"guarantee-changed", &guarantee_changed},
    Telling{"maintenance-planned",
            [](const Json& e) {
              return "maintenance " + show(e, "name") + " is planned" + by(e) + " from " + clock_text(show(e, "from")) +
                     " to " + clock_text(show(e, "to")) + " on " +
                     counted(std::to_string(items(e, "nodes").size()), "node") + colon(show(e, "reason"));
            }},
    Telling{"maintenance-began", [](const Json& e) { return "maintenance " + show(e, "name") + " begins"; }},
    Telling{"maintenance-ended",
            [](const Json& e) {
              return "maintenance " + show(e, "name") + (is_true(e, "cancelled") ? " is cancelled" : " is over") +
                     by(e);
            }},
    Telling{"cycle-ran", [](const Json& e) { return counted(show(e, "decisions"), "decision"); }},
    Telling{"fragmentation-alarm", &fragmentation_alarm},
};

std::string fields_of(const Json& event) {
  const auto* object = event.if_object();
  if (object == nullptr) return "";
  std::string words;
  for (const auto& member : *object) {
    const std::string_view name(member.key().data(), member.key().size());
    if (name == "seq" || name == "time" || name == "kind") continue;
    std::string value = json_line(member.value());
    value.pop_back();
    if (value.size() > kLongestField) value = value.substr(0, kLongestField) + "...";
    words += (words.empty() ? "" : " ") + std::string(name) + "=" + value;
  }
  return words;
}

}  // namespace

std::string event_words(const Json& event) {
  const std::string kind = show(event, "kind");
  for (const Telling& telling : kTellings) {
    if (telling.kind == kind) return telling.words(event);
  }
  return fields_of(event);
}

}  // namespace berth::cli
