#include "daemon/gpu_utilization.h"

#include <doctest/doctest.h>

#include <optional>
#include <utility>

#include "daemon/metrics_story.h"

namespace berth::daemon {

namespace {

struct Story {
  GpuUtilizationUse use;
  Timestamp now{60'000'000};
  GpuHolders holders;

  void sample(const std::vector<std::pair<std::string, std::optional<int>>>& percents) {
    std::vector<telemetry::GpuReading> readings;
    for (const auto& [uuid, percent] : percents) {
      telemetry::GpuReading reading;
      reading.uuid = uuid;
      reading.utilisation_percent = percent;
      readings.push_back(reading);
    }
    use.sample(now, readings, holders);
    now = now + 10'000;
  }
  void minutes(int count, const std::vector<std::pair<std::string, std::optional<int>>>& percents) {
    for (int i = 0; i < 6 * count; ++i) sample(percents);
  }
  GpuUtilization gpu_utilization() const { return use.of_last_hour(now + -10'000); }
};

}  // namespace

TEST_CASE("a GPU's mean is that of the last hour, and what is older is forgotten") {
  Story story;
  story.minutes(30, {{"g", 100}});
  CHECK_EQ(story.gpu_utilization().gpus.at("g").all.milli_percent(), 100'000);
  CHECK_EQ(story.gpu_utilization().gpus.at("g").all.minutes, 30);
  story.minutes(30, {{"g", 0}});
  CHECK_EQ(story.gpu_utilization().gpus.at("g").all.milli_percent(), 50'000);
  CHECK_EQ(story.gpu_utilization().gpus.at("g").all.minutes, 60);
  story.minutes(15, {{"g", 0}});
  CHECK_EQ(story.gpu_utilization().gpus.at("g").all.milli_percent(), 25'000);
  CHECK_EQ(story.gpu_utilization().gpus.at("g").all.samples, 360);
  story.now = story.now + 45 * 60'000;
  CHECK_EQ(story.gpu_utilization().gpus.at("g").all.minutes, 15);
  story.now = story.now + 15 * 60'000;
  CHECK(story.gpu_utilization().gpus.empty());
  story.sample({{"other", 7}});
  CHECK_EQ(story.gpu_utilization().gpus.size(), 1);
}

TEST_CASE("what the driver does not tell is absent, and not zero") {
  Story story;
  story.holders = {{"g", {JobId(1), 1}}};
  story.minutes(2, {{"g", std::nullopt}, {"", 50}});
  CHECK(story.gpu_utilization().gpus.empty());
  CHECK(story.gpu_utilization().jobs.empty());
  story.sample({{"g", 90}});
  story.minutes(5, {{"g", std::nullopt}});
  CHECK_EQ(story.gpu_utilization().gpus.at("g").all.milli_percent(), 90'000);
  CHECK_EQ(story.gpu_utilization().jobs.at(JobId(1)).sum.minutes, 1);
}

TEST_CASE("a GPU counts for the job that has all of it; one that is shared or cut for no job, but as allocated") {
  Story story;
  story.holders = {{"a", {JobId(1), 1}}, {"b", {JobId(1), 1}}, {"shared", {}}};
  story.minutes(1, {{"a", 10}, {"b", 20}, {"shared", 80}, {"free", 5}});
  const GpuUtilization gpu_utilization = story.gpu_utilization();
  CHECK_EQ(gpu_utilization.jobs.size(), 1);
  CHECK_EQ(gpu_utilization.jobs.at(JobId(1)).gpus, 2);
  CHECK_EQ(gpu_utilization.jobs.at(JobId(1)).sum.milli_percent(), 15'000);
  CHECK_EQ(gpu_utilization.gpus.at("shared").allocated.milli_percent(), 80'000);
  CHECK_EQ(gpu_utilization.gpus.at("free").all.milli_percent(), 5'000);
  CHECK_FALSE(gpu_utilization.gpus.at("free").allocated.measured());
}

TEST_CASE("an attempt that is over is forgotten, and the next one begins anew") {
  Story story;
  story.holders = {{"g", {JobId(1), 1}}, {"h", {JobId(2), 1}}};
  story.minutes(3, {{"g", 100}, {"h", 100}});
  story.holders = {{"g", {JobId(1), 2}}};
  story.sample({{"g", 0}, {"h", 0}});
  const GpuUtilization gpu_utilization = story.gpu_utilization();
  CHECK_EQ(gpu_utilization.jobs.size(), 1);
  CHECK_EQ(gpu_utilization.jobs.at(JobId(1)).sum.samples, 1);
  CHECK_EQ(gpu_utilization.jobs.at(JobId(1)).sum.percents, 0);
  CHECK(gpu_utilization.of(JobId(1), 1) == nullptr);
  CHECK(gpu_utilization.of(JobId(1), 2) != nullptr);
  CHECK_EQ(gpu_utilization.gpus.at("g").allocated.samples, 19);
  CHECK_EQ(gpu_utilization.gpus.at("h").allocated.samples, 18);  // no job had it then
}

TEST_CASE("who holds a node's GPUs: jobs have them whole, or shares of them, until the attempt is over") {
  MetricsStory story;
  const JobId whole = story.submit(FleetFixture::job("a", 2, 2));
  JobSpec share = FleetFixture::job("b", 1, 1);
  share.groups[0].request.gpu_milli = 250;
  story.submit(share);
  story.run(ReportTaskStarted{whole, 1, 0, 1});
  story.run(ReportTaskExited{{whole, 1, 0, 1, ExitReason::kExited, 0, ""}});
  const GpuHolders holders = gpu_holders(story.folded, "n1");
  CHECK_EQ(holders.size(), 5);
  std::size_t of_job = 0;
  std::size_t of_none = 0;
  for (const auto& [uuid, holder] : holders) {
    of_job += holder.job == whole && holder.attempt == 1 ? 1U : 0U;
    of_none += holder.job.valid() ? 0U : 1U;
  }
  CHECK_EQ(of_job, 4);
  CHECK_EQ(of_none, 1);  // the shared GPU
  TaskPlacement instance;
  CHECK(has_gpus_whole(instance));
  instance.slices = 1;
  CHECK_FALSE(has_gpus_whole(instance));
  CHECK(gpu_holders(story.folded, "n2").empty());
}

}  // namespace berth::daemon
