#include "api/routes/rule_trial.h"

#include <doctest/doctest.h>

namespace berth::api {
namespace {

state::JobState job_in(const std::string& queue, std::int32_t gpus) {
  state::JobState job;
  job.id = JobId(7);
  job.spec.name = "train";
  job.spec.queue = queue;
  job.spec.groups.emplace_back().count = gpus;
  job.spec.groups.front().request.gpus = 1;
  return job;
}

AdmissionRule at_most(const std::string& name, std::int64_t gpus, AdmissionMode mode) {
  AdmissionRule rule;
  rule.name = name;
  rule.mode = mode;
  rule.max_gpu_milli = gpus * 1000;
  return rule;
}

}  // namespace

TEST_CASE("a trial of rules counts the jobs below its queue that break each of them") {
  AdmissionRule for_leads = at_most("leads", 2, AdmissionMode::kWarn);
  for_leads.roles = {Role::kLead};
  RuleTrial trial("a", {at_most("big", 8, AdmissionMode::kEnforce), for_leads});
  for (const char* queue : {"a", "a/b", "ab", "c"}) {
    trial.add(job_in(queue, 4));
    trial.add(job_in(queue, 9));
  }
  state::JobState replica = job_in("a", 9);
  replica.parent = JobId(3);
  trial.add(replica);
  CHECK_EQ(trial.looked_at(), 4);
  CHECK_EQ(trial.refused(), 2);
  CHECK_EQ(trial.counts()[0].jobs, 2);
  CHECK_EQ(trial.counts()[0].gpu_milli, 18'000);
  CHECK_EQ(trial.counts()[1].jobs, 4);
  CHECK_EQ(trial.broken().size(), 6);
  CHECK_EQ(trial.broken()[1].breaks.front(), "gpus: the job asks for 9 GPUs; at most 8 are allowed");
}

TEST_CASE("a trial of rules says of how many jobs it is not known what their pods asked for") {
  AdmissionRule safe;
  safe.name = "safe";
  safe.use = SecurityStandard::kBaseline;
  RuleTrial trial("", {safe, at_most("big", 8, AdmissionMode::kEnforce)});
  state::JobState own = job_in("a", 1);
  trial.add(own);
  state::JobState pods = job_in("a", 1);
  pods.spec.source = {"kubernetes", "k"};
  trial.add(pods);
  pods.pod_risks.emplace();
  trial.add(pods);
  CHECK_EQ(trial.refused(), 0);
  pods.pod_risks->push_back({ForbiddenOption::kHostNamespaces, "", "hostPID"});
  trial.add(pods);
  CHECK_EQ(trial.looked_at(), 4);
  CHECK_EQ(trial.refused(), 1);
  CHECK_EQ(trial.broken().front().breaks.front(), "pod: hostPID is true; remove it");
  CHECK_EQ(trial.counts()[0].not_known, 1);
  CHECK_EQ(trial.counts()[1].not_known, 0);
}

TEST_CASE("a trial of rules counts what it does not list") {
  RuleTrial trial("", {at_most("big", 8, AdmissionMode::kEnforce)});
  for (std::size_t i = 0; i < RuleTrial::kMostListed + 5; ++i) trial.add(job_in("a", 9));
  CHECK_EQ(trial.broken().size(), RuleTrial::kMostListed);
  CHECK_EQ(trial.not_listed(), 5);
  CHECK_EQ(trial.refused(), RuleTrial::kMostListed + 5);
  CHECK_FALSE(trial.full());
}

}  // namespace berth::api
