#include "control/admission.h"

#include <algorithm>

namespace berth::control {
namespace {

void judge_by(const state::QueueState& queue, const AdmissionRule& rule, const JobSpec& spec,
              AdmissionVerdict& verdict) {
  const std::vector<std::string> broken = broken_by(rule, spec);
  if (broken.empty()) return;
  const std::string of = queue.path.empty() ? "the cluster" : "queue '" + queue.path + "'";
  if (rule.mode != AdmissionMode::kEnforce) verdict.broken_rules.push_back(queue.path + ":" + rule.name);
  if (rule.mode == AdmissionMode::kDryRun) return;
  auto& told = rule.mode == AdmissionMode::kEnforce ? verdict.refusals : verdict.warnings;
  for (const std::string& sentence : broken) told.push_back(sentence + " (rule '" + rule.name + "' of " + of + ")");
}

}  // namespace

AdmissionVerdict judge(const state::State& state, const JobSpec& spec, std::optional<Role> role) {
  std::vector<const state::QueueState*> path;
  for (const state::QueueState* queue = state.queue_at(spec.queue);; queue = &state.queue(queue->parent)) {
    path.push_back(queue);
    if (queue->id == state.root()) break;
  }
  std::reverse(path.begin(), path.end());
  AdmissionVerdict verdict;
  for (const state::QueueState* queue : path) {
    for (const AdmissionRule& rule : queue->admission) {
      if (applies(rule, spec, role)) judge_by(*queue, rule, spec, verdict);
    }
  }
  return verdict;
}

Result<void> result_of(const AdmissionVerdict& verdict) {
  if (verdict.refusals.empty()) return {};
  std::string text;
  for (const std::string& line : verdict.refusals) text += (text.empty() ? "" : "\n") + line;
  return Error{ErrorCode::kDenied, text};
}

}  // namespace berth::control
