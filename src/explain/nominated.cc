#include "explain/nominated.h"

#include "explain/text_list.h"

namespace berth::explain {

using state::JobState;
using state::State;

namespace {

constexpr std::size_t kMostVictimsNamed = 5;

std::int64_t tasks_given_back(const JobState& gang) {
  return static_cast<std::int64_t>(gang.attempt->tasks.size()) - std::int64_t{gang.attempt->stop->keep};
}

// "n3", "n3, n4"
std::string node_names(const State& state, const std::vector<TaskPlacement>& placements) {
  std::string text;
  NodeId before;
  for (const TaskPlacement& one : placements) {
    if (one.node != before) text += (text.empty() ? "" : ", ") + state.node(one.node).spec.name;
    before = one.node;
  }
  return text;
}

// " leaves", " moves to n3"
std::string leaves_text(const State& state, const JobState& victim) {
  const auto& to = victim.attempt->stop->to;
  return to.empty() ? " leaves" : " moves to " + state.node(to.front().node).spec.name;
}

}  // namespace

std::vector<const JobState*> still_leaving(const State& state, const JobState& preemptor) {
  std::vector<const JobState*> leaving;
  for (const JobId id : preemptor.nomination->victims) {
    const JobState* victim = state.job(id);
    if (victim == nullptr || !victim->attempt || !victim->attempt->stop) continue;
    const JobId beneficiary = victim->attempt->stop->preemptor;  // none if it stops for another cause by now
    if (beneficiary == preemptor.id || !beneficiary.valid()) leaving.push_back(victim);
  }
  return leaving;
}

Reason reason_of_nominated(const State& state, const JobState& preemptor) {
  Reason why;
  why.code = ReasonCode::kWaitsForVictims;
  for (const JobState* victim : still_leaving(state, preemptor)) {
    if (!why.job.valid()) why.job = victim->id;
    const bool goes_on = victim->attempt->shrinking();
    why.limit += goes_on ? 0 : 1;
    why.used += goes_on ? 1 : 0;
    why.asked += goes_on ? tasks_given_back(*victim) : 0;
  }
  return why;
}

std::string nominated_text(const Words& words, const JobState& preemptor) {
  std::vector<JobId> leave;
  std::vector<JobId> shrink;
  std::int64_t tasks = 0;
  for (const JobState* victim : still_leaving(words.state(), preemptor)) {
    if (!victim->attempt->shrinking()) {
      leave.push_back(victim->id);
      continue;
    }
    shrink.push_back(victim->id);
    tasks += tasks_given_back(*victim);
  }
  if (leave.empty() && shrink.empty()) return "starts in the next cycle: all jobs that had to leave for it have left";
  const auto have = [](const std::vector<JobId>& jobs) { return jobs.size() == 1 ? " has " : " have "; };
  std::string text = "starts as soon as ";
  if (!leave.empty()) text += words.jobs(leave, kMostVictimsNamed) + have(leave) + "checkpointed and left";
  if (shrink.empty()) return text;
  return text + (leave.empty() ? "" : " and ") + words.jobs(shrink, kMostVictimsNamed) + have(shrink) +
         "scaled down by " + counted(tasks, "task");
}

std::vector<std::string> victims_by_name(const Words& words, const JobState& preemptor) {
  const State& state = words.state();
  std::vector<std::string> lines;
  for (const JobState* victim : still_leaving(state, preemptor)) {
    const std::int64_t tasks = victim->attempt->shrinking() ? tasks_given_back(*victim) : 0;
    lines.push_back(words.job(victim->id) + words.in_queue(victim->queue) +
                    (tasks > 0 ? " scales down by " + counted(tasks, "task") : leaves_text(state, *victim)) + " by " +
                    words.time(victim->attempt->stop->deadline));
  }
  return lines;
}

std::string stopping_text(const Words& words, const JobState& job) {
  const std::string cause = " (" + std::string(name_of(job.attempt->stop->cause)) + ")";
  const auto& to = job.attempt->stop->to;
  if (!to.empty()) {
    const JobId preemptor = job.attempt->stop->preemptor;
    return "is moving to " + node_names(words.state(), to) +
           (preemptor.valid() ? " so that " + words.job(preemptor) + " fits" : ", as ordered") + cause;
  }
  if (!job.attempt->shrinking()) return "is being stopped" + cause;
  return "is scaling down by " + std::to_string(tasks_given_back(job)) + " of " +
         counted(static_cast<std::int64_t>(job.attempt->tasks.size()), "task") + cause;
}

}  // namespace berth::explain
