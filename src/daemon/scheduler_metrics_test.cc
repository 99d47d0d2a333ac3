#include "daemon/scheduler_metrics.h"

#include <doctest/doctest.h>

#include "daemon/metrics_story.h"

namespace berth::daemon {

namespace {

std::string of_class(const std::string& name, const std::string& queue, const std::string& more = "") {
  return of(name, queue, "class=\"training\"" + (more.empty() ? "" : "," + more));
}

JobSpec saves_on_request(const std::string& queue, std::int32_t gpus) {
  JobSpec spec = FleetFixture::job(queue, 1, gpus);
  spec.checkpoint.on_signal = true;
  return spec;
}

}  // namespace

TEST_CASE("a job's life is counted by queue and class") {
  MetricsStory story;
  const JobId first = story.submit("a", 8);
  const JobId second = story.submit("a", 8);
  CHECK_EQ(story[of_class("berth_submitted_jobs_total", "a")], "2");
  CHECK_EQ(story[of_class("berth_started_attempts_total", "a")], "1");
  CHECK_EQ(story[of_class("berth_wait_seconds_bucket", "a", "le=\"1\"")], "1");
  story.after(90);
  story.exit(first, 0);
  REQUIRE(story.runs(second));
  CHECK_EQ(story[of_class("berth_started_attempts_total", "a")], "2");
  CHECK_EQ(story[of_class("berth_restarts_total", "a")], "0");
  CHECK_EQ(story[of_class("berth_wait_seconds_bucket", "a", "le=\"60\"")], "1");
  CHECK_EQ(story[of_class("berth_wait_seconds_bucket", "a", "le=\"300\"")], "2");
  CHECK_EQ(story[of_class("berth_wait_seconds_sum", "a")], "90");
  CHECK_EQ(story[of_class("berth_ended_attempts_total", "a", "outcome=\"succeeded\"")], "1");
  CHECK_EQ(story[of_class("berth_finished_jobs_total", "a", "outcome=\"succeeded\"")], "1");
  CHECK_EQ(story[of_class("berth_completion_seconds_sum", "a")], "90");
  story.exit(second, 3);
  CHECK_EQ(story[of_class("berth_finished_jobs_total", "a", "outcome=\"failed\"")], "1");
  CHECK_EQ(story[of_class("berth_completion_seconds_count", "a")], "1");
  CHECK_EQ(story[of_class("berth_submitted_jobs_total", "b")], "");  // no job was ever there
  JobSpec other = FleetFixture::job("b", 1, 1);
  other.job_class = JobClass::kDev;
  story.submit(other);
  CHECK_EQ(story[of("berth_submitted_jobs_total", "b", "class=\"dev\"")], "1");
}

TEST_CASE("a task that used more memory than it has is counted, a failed one is not") {
  MetricsStory story;
  const JobId failed = story.submit("a", 8);
  story.exit(failed, 3);
  CHECK_EQ(story[of_class("berth_out_of_memory_tasks_total", "a")], "0");
  const JobId killed = story.submit("a", 8);
  story.run(ReportTaskExited{{killed, 1, 0, 1, ExitReason::kOutOfMemory, 137, ""}});
  CHECK_EQ(story[of_class("berth_out_of_memory_tasks_total", "a")], "1");
  CHECK_EQ(story[of_class("berth_finished_jobs_total", "a", "outcome=\"failed\"")], "2");
}

TEST_CASE("leaves are counted from the moment on at which they are there, before any job") {
  MetricsStory story;
  const std::string evictions = "berth_evictions_total";
  CHECK_EQ(story[of(evictions, "a", "cause=\"reclaim\"")], "0");
  story.run(ApplyConfig{FleetFixture::config({FleetFixture::queue("p"), FleetFixture::queue("p/x")}), "op"});
  CHECK_EQ(story[of(evictions, "p/x", "cause=\"reclaim\"")], "0");
  CHECK_EQ(story[of("berth_lost_gpu_seconds_total", "p/x", "cause=\"reclaim\"")], "0");
  CHECK_EQ(story[of(evictions, "p", "cause=\"reclaim\"")], "");
  story.forget();
  CHECK_EQ(story[of(evictions, "p/x", "cause=\"reclaim\"")], "0");
  CHECK_EQ(story[of(evictions, "a", "cause=\"reclaim\"")], "");
}

TEST_CASE("time in which a job may not be asked is no wait") {
  MetricsStory story;
  JobSpec held = FleetFixture::job("a", 1, 8);
  held.held = true;
  const JobId job = story.submit(held);
  story.after(500);
  story.run(HoldJob{job, false, "ann"});
  REQUIRE(story.runs(job));
  CHECK_EQ(story[of_class("berth_wait_seconds_sum", "a")], "0");
  CHECK_EQ(story[of_class("berth_wait_seconds_count", "a")], "1");
}

TEST_CASE("an eviction is counted by its cause, and of what was saved on request nothing is lost but the saving") {
  MetricsStory story;
  const JobId borrower = story.submit(saves_on_request("b", 8));
  story.after(160);
  const JobId owner = story.submit("a", 4);
  CHECK_EQ(story[of("berth_evictions_total", "b", "cause=\"reclaim\"")], "1");
  CHECK_EQ(story[of("berth_evictions_total", "a", "cause=\"reclaim\"")], "0");
  CHECK_EQ(story["berth_eviction_seconds_count{cause=\"reclaim\"}"], "0");
  story.after(10);
  story.save(borrower, 7);
  story.after(5);
  story.exit(borrower, 0);
  CHECK(story.runs(owner));
  CHECK_EQ(story["berth_eviction_seconds_count{cause=\"reclaim\"}"], "1");
  CHECK_EQ(story["berth_eviction_seconds_sum{cause=\"reclaim\"}"], "15");
  CHECK_EQ(story["berth_eviction_seconds_bucket{cause=\"reclaim\",le=\"10\"}"], "0");
  CHECK_EQ(story["berth_eviction_seconds_bucket{cause=\"reclaim\",le=\"15\"}"], "1");
  CHECK_EQ(story[of("berth_lost_gpu_seconds_total", "b", "cause=\"reclaim\"")], "120");  // 8 GPUs for 15 s
  CHECK_EQ(story[of_class("berth_ended_attempts_total", "b", "outcome=\"preempted\"")], "1");
  CHECK_EQ(story[of_class("berth_finished_jobs_total", "b", "outcome=\"preempted\"")], "0");
  story.exit(owner, 0);
  REQUIRE(story.runs(borrower));
  CHECK_EQ(story[of_class("berth_restarts_total", "b")], "1");
  CHECK_EQ(story[of_class("berth_wait_seconds_count", "b")], "1");  // only first starts count
}

TEST_CASE("what was not saved before an eviction is lost") {
  MetricsStory story;
  const JobId borrower = story.submit("b", 8);
  story.after(100);
  story.save(borrower, 7);
  story.after(60);
  story.submit("a", 4);
  story.after(2);
  story.exit(borrower, 0);
  CHECK_EQ(story[of("berth_lost_gpu_seconds_total", "b", "cause=\"reclaim\"")], "496");  // 8 GPUs for 62 s
}

TEST_CASE("who is let off has been asked to leave and has not left") {
  MetricsStory story;
  const JobId borrower = story.submit("b", 8);
  story.after(60);
  const JobId owner = story.submit("a", 4);
  story.run(CancelJob{owner, "ann"});
  REQUIRE(story.runs(borrower));
  CHECK_EQ(story[of("berth_evictions_total", "b", "cause=\"reclaim\"")], "1");
  CHECK_EQ(story[of("berth_evictions_cancelled_total", "b", "cause=\"reclaim\"")], "1");
  CHECK_EQ(story["berth_eviction_seconds_count{cause=\"reclaim\"}"], "0");
  CHECK_EQ(story[of_class("berth_finished_jobs_total", "a", "outcome=\"cancelled\"")], "1");
  // A later save does not contain what it was asked to save then.
  story.after(40);
  story.save(borrower, 7);
  story.after(10);
  story.submit("a", 4);
  story.after(3);
  story.exit(borrower, 0);
  CHECK_EQ(story[of("berth_lost_gpu_seconds_total", "b", "cause=\"reclaim\"")], "104");  // 8 GPUs for 13 s
}

TEST_CASE("work is lost where it has to be done again, and only there") {
  MetricsStory story;
  JobSpec retried = FleetFixture::job("a", 1, 2);
  retried.retries = 2;
  const JobId job = story.submit(retried);
  story.after(30);
  story.exit(job, 1);
  CHECK_EQ(story[of("berth_lost_gpu_seconds_total", "a", "cause=\"failed\"")], "60");
  story.after(30);
  REQUIRE(story.runs(job));
  CHECK_EQ(story[of_class("berth_restarts_total", "a")], "1");
  story.after(40);
  story.exit(job, 1);
  CHECK_EQ(story[of("berth_lost_gpu_seconds_total", "a", "cause=\"failed\"")], "140");  // 2 GPUs for 30 s and 40 s
  story.after(30);
  REQUIRE(story.runs(job));
  story.exit(job, 1);
  CHECK_EQ(story[of_class("berth_finished_jobs_total", "a", "outcome=\"failed\"")], "1");
  CHECK_EQ(story[of("berth_lost_gpu_seconds_total", "a", "cause=\"failed\"")], "140");
}

TEST_CASE("a service's replicas are counted, it is not, and its work is not done again") {
  MetricsStory story;
  JobSpec spec = FleetFixture::job("a", 2, 1);
  spec.kind = JobKind::kService;
  spec.job_class = JobClass::kInference;
  story.submit(spec);
  const auto inference = [&](const std::string& name) { return story[of(name, "a", "class=\"inference\"")]; };
  CHECK_EQ(inference("berth_submitted_jobs_total"), "2");
  CHECK_EQ(inference("berth_started_attempts_total"), "2");
  CHECK_EQ(story[of("berth_jobs", "a", "phase=\"running\"")], "2");
  CHECK_EQ(story[of("berth_jobs", "a", "phase=\"pending\"")], "0");
  story.after(50);
  story.exit(JobId(2), 1);
  CHECK_EQ(story[of("berth_ended_attempts_total", "a", "class=\"inference\",outcome=\"failed\"")], "1");
  CHECK_EQ(story[of("berth_lost_gpu_seconds_total", "a", "cause=\"failed\"")], "0");
}

TEST_CASE("an elastic gang that grows is counted, and giving back growth is no eviction") {
  MetricsStory story;
  JobSpec elastic = FleetFixture::job("b", 8, 1);
  elastic.groups[0].min_count = 4;
  story.submit("a", 4);
  story.submit(elastic);
  story.exit(JobId(1), 0);
  story.after(100);
  CHECK_EQ(story[of("berth_resizes_total", "b", "direction=\"grow\"")], "1");
  story.submit("a", 4);
  CHECK_EQ(story[of("berth_evictions_total", "b", "cause=\"reclaim\"")], "0");
  for (std::uint32_t task = 4; task < 8; ++task) {
    story.run(ReportTaskExited{{JobId(2), 1, task, 1, ExitReason::kExited, 0, ""}});
  }
  CHECK_EQ(story[of("berth_resizes_total", "b", "direction=\"shrink\"")], "1");
  CHECK(story.runs(JobId(3)));
}

TEST_CASE("after a restart of the server everything counts from zero, and what runs is known") {
  MetricsStory story;
  const JobId borrower = story.submit("b", 8);
  story.after(100);
  story.save(borrower, 7);
  story.after(60);
  story.submit("a", 4);
  story.forget();
  CHECK_EQ(story[of_class("berth_submitted_jobs_total", "b")], "0");
  CHECK_EQ(story[of("berth_evictions_total", "b", "cause=\"reclaim\"")], "0");
  CHECK_EQ(story["berth_cycles_total"], "0");
  story.after(2);
  story.exit(borrower, 0);
  CHECK_EQ(story["berth_eviction_seconds_sum{cause=\"reclaim\"}"], "2");
  CHECK_EQ(story[of("berth_lost_gpu_seconds_total", "b", "cause=\"reclaim\"")], "496");
}

TEST_CASE("who was asked to leave before the server restarted saves up to the request all the same") {
  MetricsStory story;
  const JobId borrower = story.submit(saves_on_request("b", 8));
  story.after(100);
  story.submit("a", 4);
  story.after(3);
  story.forget();
  story.save(borrower, 7);
  story.after(2);
  story.exit(borrower, 0);
  CHECK_EQ(story[of("berth_lost_gpu_seconds_total", "b", "cause=\"reclaim\"")], "40");  // 8 GPUs for 5 s
}

TEST_CASE("the loop's own work is counted") {
  MetricsStory story;
  story.forget();
  story.nodes_scored = 0;
  story.submit("a", 8);
  const std::string cycles = story["berth_cycles_total"];
  CHECK_GT(std::stoi(cycles), 0);
  CHECK_EQ(story["berth_cycle_seconds_count"], cycles);
  CHECK_EQ(story["berth_cycle_seconds_bucket{le=\"0.001\"}"], "0");
  CHECK_EQ(story["berth_cycle_seconds_bucket{le=\"0.0025\"}"], cycles);
  CHECK_EQ(story["berth_append_seconds_count"], "1");
  CHECK_EQ(story["berth_append_seconds_sum"], "0.0007");
  CHECK_EQ(story["berth_scheduling_attempts_total"], "1");
  CHECK_GT(story.nodes_scored, 0);
  CHECK_EQ(story["berth_nodes_scored_total"], std::to_string(story.nodes_scored));
  CHECK_EQ(story["berth_refusals_total{reason=\"insufficient-resources\"}"], "0");
  story.submit("a", 8);
  CHECK_EQ(story["berth_scheduling_attempts_total"], "2");
  CHECK_EQ(story["berth_refusals_total{reason=\"insufficient-resources\"}"], "1");
}

}  // namespace berth::daemon
