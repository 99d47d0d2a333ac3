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

std::vector<const state::QueueState*> queues_down_to(const state::State& state, std::string_view path) {
  std::vector<const state::QueueState*> queues{state.queue_at(path)};
  while (queues.back()->id != state.root()) queues.push_back(&state.queue(queues.back()->parent));
  std::reverse(queues.begin(), queues.end());
  return queues;
}

AdmissionVerdict judge(const state::State& state, const JobSpec& spec, std::optional<Role> role) {
  AdmissionVerdict verdict;
  for (const state::QueueState* queue : queues_down_to(state, spec.queue)) {
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
