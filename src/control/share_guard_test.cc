#include "control/share_guard.h"

#include <doctest/doctest.h>

#include <utility>

#include "control/hand_driven_fleet.h"

namespace berth::control {
namespace {

struct Shares : HandDrivenFleet {
  Shares() {
    QueueConfig other = queue("b");
    other.trust_domain = "other";
    configure({queue("a"), other});
    command(RegisterNode{node("n1")});
  }
  JobSpec share(const std::string& in) const {
    JobSpec spec = job(in, 1);
    spec.groups.front().request.gpu_milli = 250;
    return spec;
  }
  JobId start_share(const std::string& in) {
    const JobId id = submit(share(in));
    TaskPlacement placement = place(id, "n1", 0);
    placement.gpu_milli = 250;
    decide(StartDecision{id, {placement}});
    return id;
  }
  // What the guard says of a share of GPU 0 of n1 for a job of this queue.
  std::string said(const std::string& in, std::int64_t latency_objective_ms = 0) {
    JobSpec spec = job(in, 1);
    spec.latency_objective_ms = latency_objective_ms;
    const JobId id = command(SubmitJob{spec, ""}).job;
    TaskPlacement placement;
    placement.node = state.node_named("n1")->id;
    placement.gpus = {0};
    placement.gpu_milli = 250;
    return find_forbidden_share(state, *state.job(id), std::vector{placement});
  }
};

}  // namespace

TEST_CASE_FIXTURE(Shares,
                  "a share beside a job of the same trust domain is let through, beside another one it is not") {
  start_share("a");
  CHECK(said("a").empty());
  CHECK(said("b") == "job 3 on n1: job 1 is of another trust domain");
}

TEST_CASE_FIXTURE(Shares, "a share of a GPU that a job has whole is found") {
  start(job("a", 1), "n1", 0);
  CHECK(said("a") == "job 2 on n1: job 1 has the GPU whole");
}

TEST_CASE_FIXTURE(Shares, "a share for a job with a latency objective is found") {
  CHECK(said("a", 50) == "job 1 on n1: it has a latency objective");
}

TEST_CASE_FIXTURE(Shares, "a share in a pool that gives GPUs only whole is found") {
  ClusterConfig config = state.config();
  config.pools.front().gpu_levels = {GpuLevel::kWhole};
  command(ApplyConfig{config, "op"});
  CHECK(said("a") == "job 1 on n1: pool default gives no shares");
}

TEST_CASE_FIXTURE(Shares, "a share with a latency objective is refused at submission, and says what to ask for") {
  JobSpec spec = share("a");
  spec.latency_objective_ms = 50;
  const auto reply = try_command(SubmitJob{spec, ""});
  REQUIRE_FALSE(reply);
  CHECK(
      reply.error().message.find("a latency-critical job gets no GPU at level time-slice: a job with a latency "
                                 "objective would wait for the time slices of the others; ask for a whole GPU or for a "
                                 "mig_profile") != std::string::npos);
}

}  // namespace berth::control
