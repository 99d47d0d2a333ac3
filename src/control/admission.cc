#include "control/admission.h"

#include <algorithm>
#include <set>

namespace berth::control {
namespace {

void judge_by(const state::QueueState& queue, const AdmissionRule& rule, const JobSpec& spec, const PodRisks& risks,
              AdmissionVerdict& verdict) {
  const std::vector<std::string> broken = broken_by(rule, spec, risks);
  if (broken.empty()) return;
  const std::string of = queue.path.empty() ? "the cluster" : "queue '" + queue.path + "'";
  if (rule.mode != AdmissionMode::kEnforce) verdict.broken_rules.push_back(queue.path + ":" + rule.name);
  if (rule.mode == AdmissionMode::kDryRun) return;
  auto& told = rule.mode == AdmissionMode::kEnforce ? verdict.refusals : verdict.warnings;
  for (const std::string& sentence : broken) told.push_back(sentence + " (rule '" + rule.name + "' of " + of + ")");
}

// Returns the job with a task group more for each image. They ask for nothing, so only rules about images see them.
JobSpec with_images(JobSpec spec, std::span<const std::string> images) {
  for (const std::string& image : images) {
    spec.groups.emplace_back();
    spec.groups.back().image = image;
  }
  return spec;
}

}  // namespace

std::vector<const state::QueueState*> queues_down_to(const state::State& state, std::string_view path) {
  std::vector<const state::QueueState*> queues{state.queue_at(path)};
  while (queues.back()->id != state.root()) queues.push_back(&state.queue(queues.back()->parent));
  std::reverse(queues.begin(), queues.end());
  return queues;
}

AdmissionVerdict judge(const state::State& state, const JobSpec& spec, std::optional<Role> role,
                       std::span<const std::string> more_images, const PodRisks& risks) {
  if (!more_images.empty()) return judge(state, with_images(spec, more_images), role, {}, risks);
  AdmissionVerdict verdict;
  for (const state::QueueState* queue : queues_down_to(state, spec.queue)) {
    for (const auto* rules : {&queue->admission, &queue->own_admission}) {
      for (const AdmissionRule& rule : *rules) {
        if (applies(rule, spec, role)) judge_by(*queue, rule, spec, risks, verdict);
      }
    }
  }
  return verdict;
}

ForbiddenToPods forbidden_to_pods(const state::State& state, const JobSpec& spec) {
  std::set<ForbiddenOption> all;
  ForbiddenToPods forbidden;
  for (const state::QueueState* queue : queues_down_to(state, spec.queue)) {
    for (const auto* rules : {&queue->admission, &queue->own_admission}) {
      for (const AdmissionRule& rule : *rules) {
        if (rule.mode != AdmissionMode::kEnforce || !asks_for_risks(rule) || !applies(rule, spec, std::nullopt))
          continue;
        for (const ForbiddenOption option : forbidden_by(rule)) {
          if (option != ForbiddenOption::kHostPaths || rule.host_paths.empty()) all.insert(option);
        }
        if (!rule.host_paths.empty()) forbidden.host_paths.push_back(rule.host_paths);
      }
    }
  }
  forbidden.options.assign(all.begin(), all.end());
  return forbidden;
}

Result<Reply> set_rules(Batch& batch, const SetRules& command) {
  const state::QueueState* queue = batch.state().queue_at(command.queue);
  if (queue == nullptr || queue->removed) return not_found("no such queue '" + command.queue.substr(0, 200) + "'");
  if (const auto mistakes = mistakes_in(command.rules); !mistakes.empty()) return invalid(mistakes.front());
  for (const AdmissionRule& rule : command.rules) {
    const auto same = [&](const AdmissionRule& one) { return one.name == rule.name; };
    if (std::any_of(queue->admission.begin(), queue->admission.end(), same))
      return conflict("rule '" + rule.name + "': the configuration has a rule of this name here; take another name");
  }
  if (queue->own_admission == command.rules) return Reply{.job = {}, .unchanged = true};
  batch.emit(RulesSet{command.queue, command.rules, command.user});
  return Reply{};
}

Result<void> result_of(const AdmissionVerdict& verdict) {
  if (verdict.refusals.empty()) return {};
  std::string text;
  const std::size_t told = std::min(verdict.refusals.size(), kMostRefusals);
  for (std::size_t i = 0; i < told; ++i) text += (i == 0 ? "" : "\n") + verdict.refusals[i];
  if (told < verdict.refusals.size())
    text += "\nand " + std::to_string(verdict.refusals.size() - told) + " more refusals by these rules";
  return Error{ErrorCode::kDenied, text};
}

}  // namespace berth::control
