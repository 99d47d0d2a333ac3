#include "cli/command/job_words.h"

namespace berth::cli {

std::string state_words(const Json& job) {
  const std::string phase = show(job, "phase");
  if (phase == "finished" && has(job, "outcome")) return show(job, "outcome");
  if (phase == "pending" && is_true(job, "held")) return "held";
  if (phase == "running" && at(job, "within").is_bool() && !is_true(job, "within")) return "running, borrowed";
  return phase;
}

std::string counted(const std::string& amount, const std::string& noun) {
  return amount + " " + noun + (amount == "1" ? "" : "s");
}

std::string stop_words(const Json& stopped) {
  std::string words = show(stopped, "cause");
  if (has(stopped, "claimant")) words += ", for job " + show(stopped, "claimant");
  return words;
}

}  // namespace berth::cli
