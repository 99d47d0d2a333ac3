#include "control/admission.h"

#include <doctest/doctest.h>

#include "base/codec.h"
#include "control/hand_driven_fleet.h"

namespace berth::control {
namespace {

AdmissionRule at_most(const std::string& name, std::int64_t gpus, AdmissionMode mode) {
  AdmissionRule rule;
  rule.name = name;
  rule.mode = mode;
  rule.max_gpu_milli = gpus * 1000;
  return rule;
}

// The whole cluster allows 16 GPUs, `a` warns above 8, `a/b` tries 4, and `c` says nothing.
struct RuledFleet : HandDrivenFleet {
  RuledFleet() {
    configure({queue("a"), queue("a/b"), queue("c")});
    ClusterConfig ruled = state.config();
    ruled.admission = {at_most("whole", 16, AdmissionMode::kEnforce)};
    ruled.queues[0].admission = {at_most("big", 8, AdmissionMode::kWarn)};
    ruled.queues[1].admission = {at_most("small", 4, AdmissionMode::kDryRun)};
    command(ApplyConfig{ruled, "op"});
    command(RegisterNode{node("n1")});
  }
  // A job of so many tasks with one GPU each.
  static JobSpec asking(const std::string& queue, std::int32_t gpus) {
    JobSpec spec = job(queue, 1);
    spec.groups.front().count = gpus;
    return spec;
  }
};

}  // namespace

TEST_CASE("admission: a job keeps to the rules of its queue and of all above it") {
  RuledFleet fleet;
  const auto judged = [&](const std::string& queue, std::int32_t gpus) {
    return judge(fleet.state, RuledFleet::asking(queue, gpus), Role::kMember);
  };
  CHECK(judged("c", 16).refusals.empty());
  CHECK_EQ(
      judged("c", 17).refusals,
      std::vector<std::string>{"gpus: the job asks for 17 GPUs; at most 16 are allowed (rule 'whole' of the cluster)"});
  const AdmissionVerdict big = judged("a/b", 9);
  CHECK(big.refusals.empty());
  CHECK_EQ(big.warnings,
           std::vector<std::string>{"gpus: the job asks for 9 GPUs; at most 8 are allowed (rule 'big' of queue 'a')"});
  CHECK_EQ(big.broken_rules, std::vector<std::string>{"a:big", "a/b:small"});
  CHECK(judged("a/b", 4).broken_rules.empty());
}

TEST_CASE(
    "admission: a refused job leaves nothing behind, and the event of an accepted one names the rules it breaks") {
  RuledFleet fleet;
  const auto refused = fleet.try_command(SubmitJob{RuledFleet::asking("a/b", 17), "", Role::kAdmin});
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == ErrorCode::kDenied);
  CHECK_EQ(fleet.state.jobs().size(), 0);
  Batch batch(fleet.state, fleet.now);
  const auto reply = handle(batch, SubmitJob{RuledFleet::asking("a/b", 9), "", Role::kMember});
  REQUIRE(reply.has_value());
  CHECK_EQ(reply->warnings.size(), 1);
  REQUIRE_EQ(batch.records().size(), 1);
  CHECK_EQ(std::get<JobSubmitted>(batch.records().front().event).broken_rules,
           std::vector<std::string>{"a:big", "a/b:small"});
}

TEST_CASE("admission: rules about images see those of all containers of pods") {
  RuledFleet fleet;
  ClusterConfig ruled = fleet.state.config();
  AdmissionRule ours;
  ours.name = "ours";
  ours.images = {"good/*"};
  ruled.admission = {ours};
  fleet.command(ApplyConfig{ruled, "op"});
  JobSpec pods = RuledFleet::asking("c", 1);
  pods.source = {"kubernetes", "kube/kubernetes/pod/u/u"};
  pods.groups.front().image = "good/train:1";
  CHECK(judge(fleet.state, pods, {}).refusals.empty());
  CHECK(judge(fleet.state, pods, {}, std::vector<std::string>{"good/proxy:1"}).refusals.empty());
  const auto refused = fleet.try_command(SubmitJob{pods, "k", {}, {"bad/proxy:1"}});
  REQUIRE_FALSE(refused.has_value());
  CHECK_EQ(refused.error().message,
           "image: 'bad/proxy:1' is not allowed; allowed are good/* (rule 'ours' of the cluster)");
  // Pods exist: that no node runs containers keeps none of them out, and no default image makes another of them.
  CHECK(fleet.try_command(SubmitJob{pods, "k"}).has_value());
}

TEST_CASE("admission: what pods ask for is judged, kept with the job, and told to the one that starts it") {
  RuledFleet fleet;
  ClusterConfig ruled = fleet.state.config();
  AdmissionRule safe;
  safe.name = "safe";
  safe.use = SecurityStandard::kBaseline;
  AdmissionRule tried;
  tried.name = "tried";
  tried.mode = AdmissionMode::kDryRun;
  tried.forbid = {ForbiddenOption::kRoot};
  ruled.admission = {safe, tried};
  fleet.command(ApplyConfig{ruled, "op"});
  JobSpec pods = RuledFleet::asking("c", 1);
  pods.source = {"kubernetes", "kube/kubernetes/pod/u/u"};
  const PodRisk privileged{ForbiddenOption::kPrivileged, "trainer", ""};
  const PodRisk root{ForbiddenOption::kRoot, "trainer", ""};
  SubmitJob command{pods, "k"};
  command.pod_risks = {privileged, root};
  const auto refused = fleet.try_command(command);
  REQUIRE_FALSE(refused.has_value());
  CHECK_EQ(refused.error().message,
           "container 'trainer': securityContext.privileged is true; remove it (rule 'safe' of the cluster)");
  command.pod_risks = {root};
  Batch batch(fleet.state, fleet.now);
  REQUIRE(handle(batch, command).has_value());
  REQUIRE_EQ(batch.records().size(), 1);
  const auto& event = std::get<JobSubmitted>(batch.records().front().event);
  CHECK_EQ(event.pod_risks, PodRisks({root}));
  CHECK_EQ(event.broken_rules, std::vector<std::string>{":tried"});
  CHECK_EQ(fleet.state.job(event.job)->pod_risks, PodRisks({root}));
  const auto loaded = state::State::load(fleet.state.save());
  REQUIRE(loaded.has_value());
  CHECK_EQ(loaded->job(event.job)->pod_risks, PodRisks({root}));
  CHECK_EQ(loaded->digest(), fleet.state.digest());
  using enum ForbiddenOption;
  CHECK_EQ(forbidden_to_pods(fleet.state, pods).options,
           std::vector{kPrivileged, kHostNamespaces, kHostPaths, kHostPorts, kAddedCapabilities});
}

TEST_CASE("admission: what is known of pods changes no hash of the submission, and stands in no other event") {
  RuledFleet fleet;
  JobSpec pods = RuledFleet::asking("c", 1);
  pods.source = {"kubernetes", "kube/kubernetes/pod/u/u"};
  SubmitJob command{pods, "k"};
  const JobId job = fleet.command(command).job;
  command.pod_risks.emplace();  // as after an update of berth
  const auto again = fleet.try_command(command);
  REQUIRE(again.has_value());
  CHECK(again->repeated);
  CHECK_EQ(again->job, job);
  JobSubmitted event;
  const std::string before = encode(event);
  event.pod_risks.emplace();
  CHECK_GT(encode(event).size(), before.size());
  CHECK_FALSE(decode<JobSubmitted>(before)->pod_risks.has_value());
  CHECK(decode<JobSubmitted>(encode(event))->pod_risks.has_value());
}

TEST_CASE("admission: a refusal has few lines, and says how many more there are") {
  AdmissionVerdict verdict;
  verdict.refusals.assign(kMostRefusals, "no");
  const std::string all = result_of(verdict).error().message;
  verdict.refusals.assign(kMostRefusals + 3, "no");
  CHECK_EQ(result_of(verdict).error().message, all + "\nand 3 more refusals by these rules");
}

TEST_CASE("admission: the rules in force are those of the configuration in force") {
  RuledFleet fleet;
  ClusterConfig without = fleet.state.config();
  without.admission.clear();
  for (QueueConfig& queue : without.queues) queue.admission.clear();
  fleet.command(ApplyConfig{without, "op"});
  CHECK(fleet.command(SubmitJob{RuledFleet::asking("a/b", 17), ""}).job.valid());
  const auto loaded = state::State::load(fleet.state.save());
  REQUIRE(loaded.has_value());
  CHECK_EQ(loaded->digest(), fleet.state.digest());
}

TEST_CASE("admission: rules of a command stand beside those of the configuration, and outlive another one") {
  RuledFleet fleet;
  const AdmissionRule none = at_most("none", 0, AdmissionMode::kEnforce);
  const JobSpec job = RuledFleet::asking("a/b", 1);
  fleet.command(SetRules{"a", {none}, "lea"});
  CHECK(fleet.command(SetRules{"a", {none}, "lea"}).unchanged);
  CHECK_EQ(judge(fleet.state, job, Role::kMember).refusals.size(), 1);
  const auto loaded = state::State::load(fleet.state.save());
  REQUIRE(loaded.has_value());
  CHECK_EQ(loaded->digest(), fleet.state.digest());
  CHECK_EQ(judge(*loaded, job, Role::kMember).refusals.size(), 1);
  ClusterConfig other = fleet.state.config();
  other.queues[0].weight = 2;
  fleet.command(ApplyConfig{other, "op"});
  CHECK_EQ(judge(fleet.state, job, Role::kMember).refusals.size(), 1);
  fleet.command(SetRules{"a", {}, "lea"});
  CHECK(judge(fleet.state, job, Role::kMember).refusals.empty());
}

TEST_CASE("admission: rules that cannot be set are refused and change nothing") {
  RuledFleet fleet;
  const AdmissionRule none = at_most("none", 0, AdmissionMode::kEnforce);
  CHECK(fleet.try_command(SetRules{"x", {none}, "lea"}).error().code == ErrorCode::kNotFound);
  CHECK(fleet.try_command(SetRules{"a", {none, none}, "lea"}).error().code == ErrorCode::kInvalid);
  CHECK(fleet.try_command(SetRules{"a", {at_most("big", 1, AdmissionMode::kWarn)}, "lea"}).error().code ==
        ErrorCode::kConflict);
  CHECK(judge(fleet.state, RuledFleet::asking("a/b", 1), Role::kMember).refusals.empty());
}

TEST_CASE("admission: a queue that is removed takes its rules along") {
  RuledFleet fleet;
  fleet.command(SetRules{"c", {at_most("none", 0, AdmissionMode::kEnforce)}, "lea"});
  ClusterConfig with = fleet.state.config();
  ClusterConfig without = with;
  without.queues.pop_back();
  with.queues.back().returns = true;
  fleet.command(ApplyConfig{without, "op"});
  fleet.command(ApplyConfig{with, "op"});
  CHECK(judge(fleet.state, RuledFleet::asking("c", 1), Role::kMember).refusals.empty());
}

}  // namespace berth::control
