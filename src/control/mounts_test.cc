#include "control/mounts.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "control/effects.h"
#include "control/hand_driven_fleet.h"
#include "control/iteration.h"
#include "control/validate.h"
#include "model/volume_directory.h"

namespace berth::control {
namespace {

struct MountFleet : HandDrivenFleet {
  explicit MountFleet(bool containers = false) {
    configure({queue("a"), queue("b")});
    ClusterConfig config = state.config();
    config.volumes = {{"scratch", VolumeKind::kHostPath, "/srv/scratch"}};
    config.secrets = {{"hf", "hf-secret", {{"token", "/etc/berth/hf"}}}, {"files", "", {{"t", "/etc/t"}}}};
    config.default_image = "base:1";
    config.queues[0].volumes = {{"data", VolumeKind::kHostPath, "/srv/data", {}, "", true},
                                {"claim", VolumeKind::kClaim, "pvc"}};
    command(ApplyConfig{config, "op"});
    NodeSpec one = node("n1");
    one.containers = containers;
    command(RegisterNode{one});
  }
  std::string refusal(const JobSpec& spec) {
    const auto result = validate(state, spec);
    return result ? "accepted" : result.error().message;
  }
  StartTask start(const JobSpec& spec) {
    const JobId id = submit(spec);
    decide(StartDecision{id, {place(id, "n1", 0)}});
    return started();
  }
  StartTask started() const {
    for (const Effect& effect : all_effects(state)) {
      if (const auto* one = std::get_if<StartTask>(&effect)) return *one;
    }
    FAIL("nothing was started");
    return {};
  }
};

JobSpec mounting(std::vector<Mount> mounts) {
  JobSpec spec = HandDrivenFleet::job("a", 1);
  spec.mounts = std::move(mounts);
  return spec;
}

std::string value_of(const StartTask& start, const std::string& name) {
  for (const auto& [key, value] : start.env) {
    if (key == name) return value;
  }
  return "(none)";
}

}  // namespace

TEST_CASE("mounts: what the queue does not have is refused by its name, with all other mistakes") {
  MountFleet fleet;
  CHECK_EQ(fleet.refusal(mounting({{"data", "/data"}, {"scratch", "/s"}})), "accepted");
  CHECK_EQ(fleet.refusal(mounting({{"dat", "/data"}, {"zzz", "/z"}})),
           "mounts[0]: queue 'a' has no volume 'dat'; did you mean 'data'?\n"
           "mounts[1]: queue 'a' has no volume 'zzz'; it has claim, data, scratch");
  JobSpec other = mounting({{"data", "/data"}});
  other.queue = "b";
  CHECK_EQ(fleet.refusal(other), "mounts[0]: queue 'b' has no volume 'data'; it has scratch");
  JobSpec secret = HandDrivenFleet::job("a", 1);
  secret.secrets = {{"wandb", ""}};
  CHECK_EQ(fleet.refusal(secret), "secrets[0]: queue 'a' has no secret 'wandb'; it has files, hf");
}

TEST_CASE("mounts: a machine has no claims, and Kubernetes no secrets of files") {
  MountFleet machine;
  CHECK_NE(machine.refusal(mounting({{"claim", "/c"}})).find("which only Kubernetes has"), std::string::npos);
  MountFleet cluster(true);
  JobSpec spec = mounting({{"claim", "/c"}});
  spec.groups[0].image = "a:1";
  CHECK_EQ(cluster.refusal(spec), "accepted");
  spec.secrets = {{"files", ""}};
  CHECK_NE(cluster.refusal(spec).find("not defined for Kubernetes"), std::string::npos);
}

TEST_CASE("mounts: places lie apart, and directories in volumes do not lead out of them") {
  MountFleet fleet;
  CHECK_NE(fleet.refusal(mounting({{"data", "/d"}, {"scratch", "/d/e"}})).find("lie in one another"),
           std::string::npos);
  CHECK_NE(fleet.refusal(mounting({{"data", "/proc"}})).find("lies in /proc"), std::string::npos);
  JobSpec spec = HandDrivenFleet::job("a", 1);
  spec.checkpoint.place = {"data", "x"};
  CHECK_NE(fleet.refusal(spec).find("read-only in the configuration"), std::string::npos);
  spec.checkpoint.place = {"scratch", "../x"};
  CHECK_NE(fleet.refusal(spec).find("checkpoint.path: '../x' is not a path within the volume"), std::string::npos);
  spec.checkpoint.place = {"", "x"};
  CHECK_NE(fleet.refusal(spec).find("name the volume, too"), std::string::npos);
}

TEST_CASE("mounts: shm is no larger than the memory of a task, as it counts as that") {
  MountFleet fleet;
  JobSpec spec = HandDrivenFleet::job("a", 1);
  spec.shm_mib = 65;
  spec.groups[0].request.memory_mib = 0;
  CHECK_EQ(fleet.refusal(spec), "accepted");
  spec.groups[0].request.memory_mib = 65;
  CHECK_EQ(fleet.refusal(spec), "accepted");
  spec.groups[0].request.memory_mib = 64;
  CHECK_EQ(fleet.refusal(spec),
           "shm (65 MiB) is more than the memory of a task (64 MiB), as which it counts; ask for "
           "more memory or less shm");
}

TEST_CASE("mounts: a task is told what its queue has when it starts, and its variables") {
  MountFleet fleet;
  JobSpec spec = mounting({{"data", "/data"}, {"scratch", "/s", true}});
  spec.secrets = {{"hf", ""}};
  spec.shm_mib = 64;
  spec.checkpoint.place = {"scratch", ""};
  spec.outputs = {"scratch", "out"};
  const StartTask start = fleet.start(spec);
  REQUIRE_EQ(start.volumes.size(), 4);
  CHECK_EQ(start.volumes[0].volume.source, "/srv/data");
  CHECK(start.volumes[0].read_only);  // as the configuration says
  CHECK(start.volumes[1].read_only);
  CHECK_EQ(start.volumes[2].path, kCheckpointMount);
  const auto directory = [&](std::size_t i, const char* log) {
    return directory_in_volume(start.volumes[i], start.key.job, log);
  };
  CHECK_EQ(directory(0, "log"), "");
  CHECK_EQ(directory(2, "log"),
           "job-" + mark_of_log("log") + "-" + std::to_string(start.key.job.value()) + "/checkpoint");
  CHECK_NE(directory(2, "log"), directory(2, "another log"));  // which has a job of this id, too
  CHECK_EQ(directory(3, "log"), "out");
  CHECK_EQ(start.secrets[0].path, "/berth/secrets/hf");
  CHECK_EQ(start.shm_mib, 64);
  CHECK_EQ(value_of(start, "BERTH_CHECKPOINT_DIR"), "/berth/checkpoint");
  CHECK_EQ(value_of(start, "BERTH_OUTPUT_DIR"), "/berth/outputs");
  CHECK_EQ(start.cannot_start, "");
}

TEST_CASE("mounts: a volume that was taken from the queue meanwhile keeps its jobs from starting, with its name") {
  MountFleet fleet;
  const JobId id = fleet.submit(mounting({{"data", "/data"}}));
  ClusterConfig config = fleet.state.config();
  config.queues[0].volumes.clear();
  fleet.command(ApplyConfig{config, "op"});
  fleet.decide(StartDecision{id, {fleet.place(id, "n1", 0)}});
  CHECK_EQ(fleet.started().cannot_start, "its queue no longer has volume 'data'");
}

TEST_CASE("mounts: where nodes run containers, a command without an image gets the queue's, and keeps it") {
  MountFleet machine;
  CHECK_EQ(machine.start(HandDrivenFleet::job("a", 1)).image, "");
  MountFleet cluster(true);
  CHECK_EQ(cluster.start(HandDrivenFleet::job("a", 1)).image, "base:1");
  JobSpec own = HandDrivenFleet::job("a", 1);
  own.groups[0].image = "mine:1";
  fill_default_images(cluster.state, own);
  CHECK_EQ(own.groups[0].image, "mine:1");
}

}  // namespace berth::control
