#include "cli/command/forecast_words.h"

#include <cmath>

#include "cli/command/job_words.h"
#include "cli/printable.h"
#include "cli/when.h"

namespace berth::cli {
namespace {

// "n1 (8 GPUs), n2 (4 GPUs)"
std::string places_text(const Json& forecast) {
  std::string text;
  for (const Json& place : items(forecast, "places")) {
    if (!text.empty()) text += ", ";
    text += printable(show(place, "node")) + " (" +
            (number(place, "gpus") > 0 ? counted(show(place, "gpus"), "GPU") : counted(show(place, "tasks"), "task")) +
            ")";
  }
  return text;
}

std::string loss_text(const Json& victim) {
  const std::int64_t unsaved_s = integer(victim, "unsaved_s");
  if (has(victim, "keep")) return "gives back some of its tasks";
  if (unsaved_s == 0) return "loses no work";
  const auto gpu_seconds = std::llround(static_cast<double>(unsaved_s) * number(victim, "gpus"));
  return "loses " + span_text(unsaved_s * 1000) + " of work (" + counted(std::to_string(gpu_seconds), "GPU-second") +
         ")";
}

std::string start_text(const Json& forecast) {
  const std::int64_t started = integer(forecast, "started");
  const std::string what =
      started > 1 ? counted(std::to_string(started), "part") + " would start now" : "would start now";
  const std::string quota = !has(forecast, "within")      ? ""
                            : is_true(forecast, "within") ? ", within the guarantees of its queue"
                                                          : ", on borrowed quota";
  return what + " on " + places_text(forecast) + quota + "\n";
}

std::string wait_text(const Json& forecast) {
  const Json& why = at(forecast, "why");
  std::string text = "would wait: " + printable(show(why, "headline")) + "\n";
  if (has(forecast, "start"))
    text += "  expected to start at " + clock_text(show(forecast, "start")) + " at the latest\n";
  for (const Json& detail : items(why, "details")) text += "  " + printable(show(detail)) + "\n";
  for (const Json& remedy : items(why, "remedies"))
    text += "  it would start now if " + printable(show(remedy, "text")) + "\n";
  return text;
}

// Returns one line for each job that would be asked to leave, with the work that it would lose.
std::string victims_text(const Json& forecast) {
  std::string text;
  for (const Json& victim : items(forecast, "victims")) {
    text += "  job " + show(victim, "job") + " of " + printable(show(victim, "user")) + " in " +
            printable(show(victim, "queue")) + ", " + counted(show(victim, "gpus"), "GPU") + " (" +
            show(victim, "cause") + "): " + loss_text(victim) + "\n";
  }
  if (const std::int64_t others = integer(forecast, "victims_not_shown"); others > 0)
    text += "  " + counted(std::to_string(others), "job") + " of others\n";
  return text;
}

}  // namespace

std::string consequence_text(const Json& forecast) {
  const auto victims =
      items(forecast, "victims").size() + static_cast<std::size_t>(integer(forecast, "victims_not_shown"));
  if (victims > 0)
    return "; " + counted(std::to_string(victims), "job") + " asked to leave for it:\n" + victims_text(forecast);
  return integer(forecast, "started") > 0 ? "; it starts on " + places_text(forecast) + "\n" : "\n";
}

std::string forecast_text(const Json& forecast) {
  if (is_true(forecast, "repeated")) return "job " + show(forecast, "id") + " was submitted before\n";
  std::string text;
  for (const Json& warning : items(forecast, "warnings")) text += "warning: " + printable(show(warning)) + "\n";
  const auto victims =
      items(forecast, "victims").size() + static_cast<std::size_t>(integer(forecast, "victims_not_shown"));
  if (integer(forecast, "started") > 0) {
    text += start_text(forecast);
  } else if (victims > 0) {
    text += "would start on " + places_text(forecast) + " when " + counted(std::to_string(victims), "job") +
            (victims == 1 ? " has" : " have") + " left:\n";
  } else if (show(forecast, "phase") == "pending") {
    return text + wait_text(forecast);
  } else {
    return text + "would change nothing now: the job is " + show(forecast, "phase") + "\n";
  }
  return text + victims_text(forecast);
}

}  // namespace berth::cli
