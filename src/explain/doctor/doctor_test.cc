// Each line of the checklist: where it is ok, and where it is not.

#include "explain/doctor/doctor.h"

#include <doctest/doctest.h>

#include <set>
#include <string>

#include "support/fleet_fixture.h"

namespace berth {
namespace {

constexpr std::int64_t kDayMs = 86'400'000;

struct DoctorFixture : FleetFixture {
  explain::DoctorFacts facts;
  DoctorFixture() {
    facts.log_check = "sound";
    now = Timestamp{200 * kDayMs};
  }
  std::vector<Finding> ask() const { return explain::examine(state, facts, now); }
  // "ok", or "broken: " and the evidence; "none" if there is no such line.
  std::string of(const std::string& check) const {
    for (const Finding& one : ask()) {
      if (one.check != check) continue;
      CHECK(one.evidence.ends_with("."));
      CHECK_EQ(one.remedy.empty(), one.result == CheckResult::kOk);
      return std::string(name_of(one.result)) + (one.result == CheckResult::kOk ? "" : ": " + one.evidence);
    }
    return "none";
  }
  state::Token token(const std::string& name, Role role, Timestamp expires) {
    TokenCreated created{name, std::string(64, name.front()), role, "", "ann", expires, "op"};
    command(CreateToken{created});
    return state.tokens().find(name)->second;
  }
};

}  // namespace

TEST_CASE_FIXTURE(DoctorFixture, "doctor: nodes, GPUs, places and the clock") {
  command(ApplyConfig{config({queue("a")}), "op"});
  CHECK_EQ(of("nodes"), "missing: There is no node.");
  command(RegisterNode{node("n1", 2)});
  CHECK_EQ(of("nodes"), "ok");
  CHECK_EQ(of("gpus-healthy"), "ok");
  CHECK_EQ(of("topology"), "none");
  command(RegisterNode{node("n2", 2)});
  CHECK_EQ(of("topology"), "missing: 2 nodes have no place in the topology: n1, n2.");
  command(ReportGpuHealth{"n2", 1, false, "xid"});
  CHECK_EQ(of("gpus-healthy"), "broken: 1 GPU is unhealthy or fenced: n2 1.");
  command(ReportNodeStatus{"n1", NodeStatus::kUnknown, "silent"});
  CHECK_EQ(of("nodes"), "broken: 1 node is out of contact: n1.");
  CHECK_EQ(of("clock"), "ok");
  facts.follows_wall = false;
  facts.wall_offset_ms = 7'200'000;
  CHECK_EQ(of("clock"), "broken: The wall clock is 7200 s off and is not followed.");
  CHECK_EQ(of("gpus-checked"), "ok");
  facts.gpus_checked = false;
  CHECK(of("gpus-checked").starts_with("missing"));
  CHECK(of("gpu-use-measured").starts_with("missing"));
  facts.measures_gpus = true;
  CHECK_EQ(of("gpu-use-measured"), "ok");
  facts.runs_tasks = false;
  CHECK(of("gpus-checked").starts_with("cannot-be-seen"));
  CHECK(of("gpu-use-measured").starts_with("cannot-be-seen"));
}

TEST_CASE_FIXTURE(DoctorFixture, "doctor: quotas, guarantees and the keys of scheduling") {
  ClusterConfig plain = config({queue("a"), queue("b"), queue("b/c")});
  plain.queues[1].max.gpu_milli = 4000;
  plain.scheduling.fragmentation_alert_percent = 0;
  command(ApplyConfig{plain, "op"});
  command(RegisterNode{node("n1", 2)});
  CHECK_EQ(of("quotas"), "missing: 1 queue has neither a guarantee nor a ceiling of GPUs: a.");
  CHECK_EQ(of("user-limits"), "missing: 2 queues do not limit what one user may have: a, b/c.");
  CHECK_EQ(of("guarantees-backed"), "ok");
  CHECK(of("fragmentation-alert").starts_with("missing"));
  CHECK(of("consolidation").starts_with("missing"));
  CHECK_EQ(of("reclaim"), "ok");
  CHECK_EQ(of("priority-classes"), "ok");
  CHECK(of("idle-reclaimed").starts_with("missing"));
  CHECK(of("budgets").starts_with("missing"));
  CHECK(of("burst").starts_with("missing"));
  plain.queues[0].guaranteed.gpu_milli = 3000;
  plain.queues[0].max_jobs_per_user = 1;
  plain.queues[1].max_gpu_milli_per_user = 1000;
  plain.queues[0].guarantee_decay_s = 3600;
  plain.scheduling.fragmentation_alert_percent = 5;
  plain.scheduling.consolidations_per_hour = 5;
  plain.scheduling.reclaim = false;
  plain.priority_classes.resize(1);
  plain.priority_classes.front().global_default = true;
  command(ApplyConfig{plain, "op"});
  CHECK_EQ(of("quotas"), "ok");
  CHECK_EQ(of("user-limits"), "ok");
  CHECK_EQ(of("guarantees-backed"),
           "broken: Guarantees are more than the healthy GPUs outside of burst pools: 3 GPUs of 2 GPUs.");
  CHECK_EQ(of("fragmentation-alert"), "ok");
  CHECK_EQ(of("consolidation"), "ok");
  CHECK(of("reclaim").starts_with("missing"));
  CHECK(of("priority-classes").starts_with("missing"));
  CHECK_EQ(of("idle-reclaimed"), "ok");
}

TEST_CASE_FIXTURE(DoctorFixture, "doctor: quotas of one GPU model, and pools that are within no guarantee") {
  ClusterConfig of_model = config({queue("a"), queue("b")});
  of_model.queues[0].max.model_gpu_milli = {{"H100", 8000}};
  of_model.queues[1].guaranteed.model_gpu_milli = {{"H100", 2000}};
  command(ApplyConfig{of_model, "op"});
  command(RegisterNode{node("n1", 2)});
  CHECK_EQ(of("quotas"), "ok");
  CHECK_EQ(of("guarantees-backed"), "ok");
  for (PoolConfig& pool : of_model.pools) pool.burst = true;
  command(ApplyConfig{of_model, "op"});
  CHECK_EQ(of("guarantees-backed"),
           "broken: Guarantees are more than the healthy GPUs outside of burst pools: 2 H100 GPUs of 0 H100 GPUs.");
}

TEST_CASE_FIXTURE(DoctorFixture, "doctor: tokens, roles and the Prometheus") {
  command(ApplyConfig{config({queue("a")}), "op"});
  CHECK(of("roles").starts_with("missing"));
  token("root", Role::kAdmin, now + kDayMs);
  CHECK(of("roles").starts_with("missing"));
  CHECK(of("metrics-read").starts_with("missing"));
  CHECK_EQ(of("tokens-expire"), "ok");
  token("short", Role::kMember, now + 90 * kDayMs);
  CHECK_EQ(of("roles"), "ok");
  CHECK_EQ(of("tokens-expire"), "ok");
  const state::Token endless = token("endless", Role::kMetrics, Timestamp::never());
  CHECK_EQ(of("tokens-expire"), "broken: 1 token does not end within a year: endless.");
  CHECK_EQ(of("metrics-read"), "ok");  // it was made just now
  facts.token_use[endless.digest] = now;
  CHECK_EQ(of("tokens-used"), "ok");
  now = now + 89 * kDayMs;
  CHECK(of("metrics-read").starts_with("broken"));
  CHECK_EQ(of("tokens-used"), "ok");
  now = now + 3 * kDayMs;  // the short one has ended
  CHECK_EQ(of("tokens-used"), "broken: 1 token was not used for 90 days: endless.");
}

TEST_CASE_FIXTURE(DoctorFixture, "doctor: what keeps tenants apart, and secrets") {
  ClusterConfig two = config({queue("a"), queue("b")});
  command(ApplyConfig{two, "op"});
  command(RegisterNode{node("n1", 2)});
  CHECK_EQ(of("trust-domains"), "none");
  two.queues[1].trust_domain = "x";
  command(ApplyConfig{two, "op"});
  CHECK_EQ(of("trust-domains"), "missing: 2 trust domains share nodes, though no GPU, in 1 pool: default.");
  command(RegisterNode{node("n2", 2, "nvidia.com/gpu.shared")});
  CHECK_EQ(of("trust-domains"),
           "broken: 2 trust domains share GPUs by the seats of a device plugin in 1 pool: default.");
  for (PoolConfig& pool : two.pools) pool.trust_domain_isolation = "node";
  command(ApplyConfig{two, "op"});
  CHECK_EQ(of("trust-domains"), "ok");
  CHECK_EQ(of("admission-rules"), "missing: No admission rule is set.");
  AdmissionRule rule;
  rule.name = "pod-security";
  rule.use = SecurityStandard::kBaseline;
  rule.mode = AdmissionMode::kDryRun;
  two.admission = {rule};
  command(ApplyConfig{two, "op"});
  CHECK_EQ(of("admission-rules"), "missing: No admission rule is enforced: 1 rule warns or is tried.");
  two.admission[0].mode = AdmissionMode::kEnforce;
  command(ApplyConfig{two, "op"});
  CHECK_EQ(of("admission-rules"), "ok");
  two.admission.clear();
  command(ApplyConfig{two, "op"});
  CHECK_EQ(of("tasks-kept-apart"), "ok");
  facts.tasks_kept_apart = false;
  CHECK(of("tasks-kept-apart").starts_with("missing"));
  facts.runs_tasks = false;
  CHECK_EQ(of("tasks-kept-apart"), "none");
  CHECK_EQ(of("tls"), "ok");
  facts.on_network = true;
  CHECK(of("tls").starts_with("broken"));
  facts.has_tls = true;
  CHECK_EQ(of("tls"), "ok");
  CHECK_EQ(of("pod-security"), "none");
  facts.kubernetes = true;
  CHECK(of("pod-security").starts_with("cannot-be-seen"));
  CHECK_EQ(of("secrets-by-reference"), "ok");
  JobSpec spec = job("a", 1, 1);
  spec.groups.front().env = {{"TOKENIZERS", "1"}, {"wandb_api_key", "abc"}};
  const JobId id = submit(spec);
  const std::string said = of("secrets-by-reference");
  CHECK(said.ends_with("log: " + std::to_string(id.value()) + "."));
  CHECK(said.find("abc") == std::string::npos);
}

TEST_CASE_FIXTURE(DoctorFixture, "doctor: backups and the log") {
  command(ApplyConfig{config({queue("a")}), "op"});
  CHECK(of("prices").starts_with("missing"));
  CHECK(of("backups").starts_with("missing"));
  facts.backups_to = "/backup";
  facts.backups_every_s = 86'400;
  CHECK_EQ(of("backups"), "cannot-be-seen: The first backup is being made.");
  facts.last_backup = now;
  CHECK_EQ(of("backups"), "ok");
  now = now + 2 * kDayMs;
  CHECK_EQ(of("backups"), "broken: No good backup is younger than twice 1d.");
  facts.backup_warning = "no space left";
  CHECK_EQ(of("backups"), "broken: The last backup failed: no space left.");
  CHECK_EQ(of("log-sound"), "ok");
  facts.log_check = "running";
  CHECK(of("log-sound").starts_with("cannot-be-seen"));
  facts.log_check = "unfinished";
  CHECK(of("log-sound").starts_with("broken"));
  CHECK_EQ(of("log-end"), "ok");
  facts.log_end_known = false;
  CHECK(of("log-end").starts_with("broken"));
  std::set<std::string> names;
  for (const Finding& one : ask()) CHECK(names.insert(one.check).second);
}

}  // namespace berth
