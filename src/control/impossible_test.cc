#include "state/impossible.h"

#include <doctest/doctest.h>

#include "control/hand_driven_fleet.h"

namespace berth::control {
namespace {

struct LimitedFleet : HandDrivenFleet {
  LimitedFleet() {
    std::vector<QueueConfig> queues = {queue("p"), queue("p/x"), queue("p/y")};
    queues[0].max.gpu_milli = 16'000;
    queues[1].max_gpu_milli_per_user = 2000;
    queues[2].max_jobs_per_user = 0;
    configure(queues);
  }
  // Returns the only warning of the submission, or "".
  std::string warned(const JobSpec& spec) {
    const Reply reply = command(SubmitJob{spec, ""});
    REQUIRE_LE(reply.warnings.size(), 1);
    return reply.warnings.empty() ? "" : reply.warnings.front();
  }
};

TEST_CASE("a job that a limit rules out is accepted with a warning that names the limit") {
  LimitedFleet fleet;
  const std::string never = "; it never starts unless the limit or the job changes";
  CHECK_EQ(fleet.warned(HandDrivenFleet::job("p/x", 2)), "");
  CHECK_EQ(fleet.warned(HandDrivenFleet::job("p/x", 3)),
           "queue 'p/x' allows a user 2 GPUs (max_gpus_per_user), and the job asks for 3 GPUs" + never);
  CHECK_EQ(fleet.warned(HandDrivenFleet::job("p/y", 1)),
           "queue 'p/y' lets a user run no job (max_jobs_per_user 0)" + never);
}

TEST_CASE("the max of a queue above rules a job out, and only what it needs at least counts") {
  LimitedFleet fleet;
  fleet.configure({[] {
                     QueueConfig top = HandDrivenFleet::queue("p");
                     top.max.gpu_milli = 16'000;
                     return top;
                   }(),
                   HandDrivenFleet::queue("p/x"), HandDrivenFleet::queue("p/y")});
  JobSpec gang = HandDrivenFleet::job("p/x", 8);
  gang.groups.front().count = 3;
  CHECK_EQ(
      fleet.warned(gang),
      "queue 'p' has max 16 GPUs, and the job asks for 24 GPUs; it never starts unless the limit or the job changes");
  gang.groups.front().min_count = 2;
  CHECK_EQ(fleet.warned(gang), "");
  gang.groups.front().min_count = 0;
  gang.kind = JobKind::kService;
  CHECK_EQ(fleet.warned(gang), "");  // each of its replicas fits
}

TEST_CASE("limits of GPU models rule a job out where they do so on each model that it accepts") {
  LimitedFleet fleet;
  QueueConfig top = HandDrivenFleet::queue("p");
  top.max.model_gpu_milli = {{"H100", 2000}, {"A100", 3000}};
  ClusterConfig config = default_cluster_config();
  config.gpu_models = {{"H100", 1000, 81'920}, {"A100", 1000, 81'920}};
  config.queues = {top, HandDrivenFleet::queue("p/x"), HandDrivenFleet::queue("p/y")};
  fleet.command(ApplyConfig{config, "op"});
  const auto asking = [](std::vector<std::string> models, std::int32_t gpus) {
    JobSpec spec = HandDrivenFleet::job("p/x", gpus);
    spec.groups.front().request.gpu_models = std::move(models);
    return spec;
  };
  const std::string never = "; it never starts unless the limit or the job changes";
  CHECK_EQ(fleet.warned(asking({"H100"}, 4)),
           "queue 'p' has max 2 GPUs of H100, and the job asks for 4 GPUs of H100" + never);
  CHECK_EQ(fleet.warned(asking({"H100", "A100"}, 4)),
           "queue 'p' has max 3 GPUs of A100, and the job asks for 4 GPUs of A100; no other model that it accepts "
           "allows more" +
               never);
  CHECK_EQ(fleet.warned(asking({"H100", "A100"}, 3)), "");  // on A100
  JobSpec both = asking({"H100"}, 2);
  both.groups.push_back(both.groups.front());
  both.groups.back().name = "more";
  both.groups.back().request.gpu_models = {"A100", "H100"};
  CHECK_EQ(fleet.warned(both),
           "queue 'p' has max 2 GPUs of H100, and the job asks for 4 GPUs of H100" + never);  // a gang is on one model
}

}  // namespace
}  // namespace berth::control
