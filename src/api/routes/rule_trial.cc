#include "api/routes/rule_trial.h"

#include "api/routes/views.h"
#include "model/queue_path.h"
#include "policy/authorize.h"

namespace berth::api {

RuleTrial::RuleTrial(std::string queue, std::vector<AdmissionRule> rules) : queue_(std::move(queue)) {
  for (AdmissionRule& rule : rules) counts_.push_back({std::move(rule)});
}

bool RuleTrial::breaks(Count& count, const state::JobState& job) {
  const Role as = count.rule.roles.empty() ? Role::kMember : count.rule.roles.front();
  if (!applies(count.rule, job.spec, as)) return false;
  if (!job.spec.source.cell.empty() && !job.pod_risks && asks_for_risks(count.rule)) ++count.not_known;
  std::vector<std::string> broken = broken_by(count.rule, job.spec, job.pod_risks);
  if (broken.empty()) return false;
  ++count.jobs;
  count.gpu_milli += gpu_milli_of(job.spec);
  if (broken_.size() < kMostListed) {
    broken_.push_back(
        {job.id, job.spec.name, job.spec.queue, job.spec.user, job.submitted, count.rule.name, std::move(broken)});
  } else {
    ++not_listed_;
  }
  return true;
}

void RuleTrial::add(const state::JobState& job) {
  if (job.parent.valid() || full() || !is_at_or_below(job.spec.queue, queue_)) return;
  ++looked_at_;
  bool refused = false;
  for (Count& count : counts_) {
    if (breaks(count, job) && count.rule.mode == AdmissionMode::kEnforce) refused = true;
  }
  if (refused) ++refused_;
}

}  // namespace berth::api
