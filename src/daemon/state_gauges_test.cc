#include "daemon/state_gauges.h"

#include <doctest/doctest.h>

#include "daemon/metrics_story.h"

namespace berth::daemon {

namespace {

std::string gpus(const std::string& state) { return "berth_gpus{model=\"H100\",state=\"" + state + "\"}"; }
std::string nodes(const std::string& state) { return "berth_nodes{state=\"" + state + "\"}"; }

}  // namespace

TEST_CASE("every thousandth of a GPU is allocated, idle, foreign or unavailable, and each state is always told") {
  MetricsStory story;
  JobSpec share = FleetFixture::job("a", 1, 1);
  share.groups[0].request.gpu_milli = 250;
  story.submit(share);
  CHECK_EQ(story[gpus("allocated")], "0.25");
  CHECK_EQ(story[gpus("idle")], "7.75");
  CHECK_EQ(story[gpus("unavailable")], "0");
  CHECK_EQ(story[gpus("foreign")], "0");
  story.run(ReportGpuHealth{"n1", 7, false, "xid 79"});
  CHECK_EQ(story[gpus("idle")], "6.75");
  CHECK_EQ(story[gpus("unavailable")], "1");
  CHECK_EQ(story["berth_unhealthy_gpus{model=\"H100\"}"], "1");
  story.run(CordonNode{"n1", true, false, "op"});
  CHECK_EQ(story[gpus("allocated")], "0.25");
  CHECK_EQ(story[gpus("idle")], "0");
  CHECK_EQ(story[gpus("unavailable")], "7.75");
  CHECK_EQ(story["berth_simulated_gpus{model=\"H100\"}"], "0");
}

TEST_CASE("how much GPUs are driven is told of those that are measured, and together of those that were allocated") {
  MetricsStory story;
  const std::string mean = "berth_driven_ratio{pool=\"default\",model=\"H100\"}";
  const auto gpu = [](const std::string& uuid) {
    return "berth_gpu_driven_ratio{pool=\"default\",model=\"H100\",node=\"n1\",gpu=\"" + uuid + "\"}";
  };
  CHECK_EQ(story[mean], "");
  story.gpu_utilization.gpus["n1-0"] = {{.percents = 100, .samples = 4, .minutes = 1}, {}};
  CHECK_EQ(story[gpu("n1-0")], "0.25");
  CHECK_EQ(story[gpu("n1-1")], "");
  CHECK_EQ(story[mean], "");  // no job had it
  story.gpu_utilization.gpus["n1-1"] = {{.percents = 100, .samples = 4, .minutes = 1}, {90, 3, 1}};
  story.gpu_utilization.gpus["n1-2"] = {{.percents = 0, .samples = 4, .minutes = 1}, {0, 3, 1}};
  CHECK_EQ(story[gpu("n1-2")], "0");
  CHECK_EQ(story[mean], "0.15");
}

TEST_CASE("a node is in one state") {
  MetricsStory story;
  CHECK_EQ(story[nodes("ready")], "1");
  story.run(CordonNode{"n1", true, false, "op"});
  CHECK_EQ(story[nodes("ready")], "0");
  CHECK_EQ(story[nodes("cordoned")], "1");
  story.run(CordonNode{"n1", true, true, "op"});
  CHECK_EQ(story[nodes("draining")], "1");
  CHECK_EQ(story[nodes("cordoned")], "0");
  story.run(PlanMaintenance{
      .name = "m", .nodes = {"n1"}, .labels = {}, .pool = "", .from = {}, .for_s = 600, .reason = "", .user = "op"});
  CHECK_EQ(story[nodes("maintenance")], "1");
  story.run(ReportNodeStatus{"n1", NodeStatus::kUnknown, "silent"});
  CHECK_EQ(story[nodes("unknown")], "1");
  story.run(FenceNode{"n1", "op"});
  CHECK_EQ(story[nodes("lost")], "1");
  CHECK_EQ(story[gpus("idle")], "");  // GPUs of a lost node are not in the fleet
}

TEST_CASE("nodes that could go and nodes that would help are told by pool and model") {
  const std::string releasable = "berth_nodes_releasable{pool=\"default\",model=\"H100\"}";
  const std::string wanted = "berth_nodes_wanted{pool=\"default\",model=\"H100\"}";
  MetricsStory story;
  story.run(RegisterNode{FleetFixture::node("n2", 8)});
  CHECK_EQ(story[releasable], "0");  // no node was idle for ten minutes
  story.now = story.now + 600'000;
  CHECK_EQ(story[releasable], "1");  // the other node backs a guarantee
  CHECK_EQ(story[wanted], "0");
  story.submit("a", 8);
  story.submit("a", 8);
  story.submit("a", 4);
  CHECK_EQ(story[releasable], "0");
  CHECK_EQ(story[wanted], "1");
}

TEST_CASE("a queue's GPUs are guaranteed, borrowed, nominated, and what is left to it") {
  MetricsStory story;
  story.submit("b", 4);
  story.submit("b", 2);
  CHECK_EQ(story[of("berth_queue_guaranteed_gpus", "b")], "4");
  CHECK_EQ(story[of("berth_queue_effective_guaranteed_gpus", "b")], "4");
  CHECK_EQ(story[of("berth_queue_max_gpus", "b")], "");
  CHECK_EQ(story[of("berth_queue_allocated_gpus", "b")], "6");
  CHECK_EQ(story[of("berth_queue_borrowed_gpus", "b")], "2");
  CHECK_EQ(story[of("berth_queue_headroom_gpus", "b")], "2");
  CHECK_EQ(story[of("berth_queue_dominant_share_ratio", "b")], "0.75");
  story.submit("a", 4);
  CHECK_EQ(story[of("berth_queue_nominated_gpus", "a")], "4");
  CHECK_EQ(story["berth_nominated_jobs"], "1");
  CHECK_EQ(story[of("berth_jobs", "b", "phase=\"stopping\"")], "1");
  CHECK_EQ(story[of("berth_pending_jobs", "a", "reason=\"waits-for-victims\"")], "1");
}

TEST_CASE("a queue with a budget or grant tells the mark that it has passed") {
  MetricsStory story;
  const std::string grant = R"(kind="grant")";
  const std::string budget = R"(kind="budget")";
  const auto ratio = [&](const char* queue, const std::string& kind) {
    return story[of("berth_queue_budget_mark_ratio", queue, kind)];
  };
  CHECK_EQ(ratio("a", budget), "");
  std::vector<QueueConfig> queues = {FleetFixture::queue("a"), FleetFixture::queue("b")};
  queues[0].budget = BudgetConfig{0, 1000, BudgetAction::kTell};
  queues[0].grant = BudgetConfig{0, 1000, BudgetAction::kTell, Timestamp{1}, Timestamp{2}};
  story.run(ApplyConfig{FleetFixture::config(queues), "op"});
  CHECK_EQ(ratio("a", budget), "0");
  CHECK_EQ(ratio("a", grant), "0");
  CHECK_EQ(ratio("b", budget), "");
  BudgetMarked mark;
  mark.queue = "a";
  mark.percent = 80;
  mark.month = "1970-01";
  mark.until = Timestamp{31LL * 86'400'000};
  mark.used = 800;
  mark.limit = 1000;
  story.run(MarkBudget{mark});
  CHECK_EQ(ratio("a", budget), "0.8");
  CHECK_EQ(ratio("a", grant), "0");
  story.run(MarkBudget{{"a", 50, "", Timestamp{2}, 500, 1000, BudgetKind::kGrant, true}});
  CHECK_EQ(ratio("a", grant), "1");  // it has ended
  CHECK_EQ(ratio("a", budget), "0.8");
}

TEST_CASE("headroom ends at the lowest ceiling on the way to the root") {
  MetricsStory story;
  std::vector<QueueConfig> queues = {FleetFixture::queue("p"), FleetFixture::queue("p/x"), FleetFixture::queue("p/y")};
  queues[0].max.gpu_milli = 5000;
  queues[1].max.gpu_milli = 2500;
  story.run(ApplyConfig{FleetFixture::config(queues), "op"});
  CHECK_EQ(story[of("berth_queue_headroom_gpus", "p/x")], "2.5");
  CHECK_EQ(story[of("berth_queue_headroom_gpus", "p/y")], "5");
  story.submit("p/y", 4);
  CHECK_EQ(story[of("berth_queue_headroom_gpus", "p/x")], "1");
  CHECK_EQ(story[of("berth_queue_max_gpus", "p/x")], "2.5");
  CHECK_EQ(story["berth_queue_info{queue=\"p/x\",parent=\"p\",leaf=\"true\",policy=\"best-effort\"}"], "1");
  CHECK_EQ(story["berth_queue_info{queue=\"p\",parent=\"\",leaf=\"false\",policy=\"best-effort\"}"], "1");
  CHECK_EQ(story[of("berth_jobs", "p", "phase=\"running\"")], "");  // only leaf queues have jobs
}

TEST_CASE("what is nominated to a queue is no headroom of it any more") {
  MetricsStory story;
  std::vector<QueueConfig> queues = {FleetFixture::queue("a"), FleetFixture::queue("b")};
  queues[0].guaranteed.gpu_milli = 4000;
  queues[0].max.gpu_milli = 5000;
  story.run(ApplyConfig{FleetFixture::config(queues), "op"});
  story.run(RegisterNode{FleetFixture::node("n2", 8, "A100")});
  for (const auto& [queue, gpus] : {std::pair("b", 8), std::pair("a", 4)}) {
    JobSpec spec = FleetFixture::job(queue, 1, gpus);
    spec.groups[0].request.gpu_models = {"H100"};
    story.submit(spec);
  }
  CHECK_EQ(story[of("berth_queue_nominated_gpus", "a")], "4");
  CHECK_EQ(story[of("berth_queue_headroom_gpus", "a")], "1");
  CHECK_EQ(story[of("berth_queue_headroom_gpus", "b")], "8");
}

TEST_CASE("who waits is counted once, by the reason that a list of jobs gives") {
  MetricsStory story;
  JobSpec held = FleetFixture::job("a", 1, 1);
  held.held = true;
  story.submit(held);
  const JobId runs = story.submit("a", 8);
  story.after(100);
  story.submit("a", 8);
  story.after(20);
  story.submit("a", 8);
  story.submit("b", 16);
  JobSpec dependent = FleetFixture::job("b", 1, 1);
  dependent.dependencies = {{DependencyKind::kAfterOk, runs}};
  story.submit(dependent);
  story.after(20);
  CHECK_EQ(story[of("berth_jobs", "a", "phase=\"pending\"")], "3");
  CHECK_EQ(story[of("berth_pending_jobs", "a", "reason=\"held\"")], "1");
  CHECK_EQ(story[of("berth_pending_jobs", "a", "reason=\"insufficient-resources\"")], "2");
  CHECK_EQ(story[of("berth_pending_jobs", "a", "reason=\"none\"")], "");  // a running job has no pending reason
  CHECK_EQ(story[of("berth_pending_jobs", "b", "reason=\"never-fits\"")], "1");
  CHECK_EQ(story[of("berth_pending_jobs", "b", "reason=\"dependency\"")], "1");
  CHECK_EQ(story[of("berth_oldest_wait_seconds", "a")], "40");
  CHECK_EQ(story[of("berth_oldest_wait_seconds", "b")], "20");
}

TEST_CASE("who waits by its own wish is not waiting long") {
  MetricsStory story;
  JobSpec later = FleetFixture::job("a", 1, 1);
  later.earliest_start = story.now + 1'000'000;
  story.submit(later);
  story.after(100);
  CHECK_EQ(story[of("berth_pending_jobs", "a", "reason=\"earliest-start\"")], "1");
  CHECK_EQ(story[of("berth_oldest_wait_seconds", "a")], "0");
}

TEST_CASE("fragmentation is what is stranded over all of the fleet") {
  MetricsStory story;
  CHECK_EQ(story["berth_fragmentation_ratio"], "0");
  for (int i = 0; i < 8; ++i) {
    JobSpec share = FleetFixture::job("a", 1, 1);
    share.groups[0].request.gpu_milli = 600;
    story.submit(share);
  }
  const std::int64_t stranded = story.folded.fragmentation().unusable_milli();
  REQUIRE_GT(stranded, 0);
  CHECK_EQ(story["berth_stranded_gpus"], telemetry::text_of({stranded, 3}));
  CHECK_EQ(story["berth_fragmentation_ratio"], telemetry::text_of({stranded * 1'000'000 / 8000, 6}));
  CHECK_EQ(story["berth_fragmentation_alarm"], "0");
}

}  // namespace berth::daemon
