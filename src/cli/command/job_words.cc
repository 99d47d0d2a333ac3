#include "cli/command/job_words.h"

#include "cli/when.h"

namespace berth::cli {

std::string state_words(const Json& job) {
  const std::string phase = show(job, "phase");
  if (phase == "finished" && has(job, "outcome")) return show(job, "outcome");
  if (phase == "pending" && is_true(job, "held")) return "held";
  if (phase == "pending" && has(job, "reason")) return phase + " (" + show(job, "reason") + ")";
  if (phase == "running" && at(job, "within").is_bool() && !is_true(job, "within")) return "running, borrowed";
  return phase;
}

std::string in_state_for(const Json& job, Timestamp now) {
  const std::string phase = show(job, "phase");
  if (phase == "pending") return age_text(show(job, "waiting_since"), now);
  if (phase == "stopping") return age_text(show(at(job, "stop"), "began"), now);
  return age_text(show(job, phase == "finished" ? "finished" : "started"), now);
}

std::string counted(const std::string& amount, const std::string& noun) {
  return amount + " " + noun + (amount == "1" ? "" : "s");
}

std::string gpu_hours_text(const Json& job) {
  const auto hundredths = static_cast<std::int64_t>(number(job, "gpu_seconds") / 36 + 0.5);
  const std::string decimals = std::to_string(hundredths % 100);
  return std::to_string(hundredths / 100) + "." + std::string(2 - decimals.size(), '0') + decimals;
}

std::string stop_words(const Json& stopped) {
  std::string words = show(stopped, "cause");
  if (has(stopped, "preemptor")) words += ", for job " + show(stopped, "preemptor");
  std::string before;
  for (const Json& place : items(stopped, "moves_to")) {
    const std::string node = show(place, "node");
    if (node != before) words += (before.empty() ? ", moves to " : ", ") + node;
    before = node;
  }
  return words;
}

}  // namespace berth::cli
