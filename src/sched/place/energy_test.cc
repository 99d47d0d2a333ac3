// Which GPU models gangs go to if scheduling.energy is on, and that nothing else depends on it.

#include "sched/place/energy.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sched/start.h"
#include "support/fleet_fixture.h"
#include "support/random_fleet.h"

namespace berth {
namespace {

using state::JobState;
using state::State;

// Returns false if the fleet was drawn with queues that are refused.
bool set_energy(State& state, Timestamp now, bool on) {
  ClusterConfig config = state.config();
  config.scheduling.energy = on;
  config.gpu_models = {{"A", 500, 0, 300, 40}, {"B", 1000, 0, 400, 60}, {"C", 250, 0, 0, 0}};  // 600, 400, unknown
  control::Batch batch(state, now);
  if (!control::handle(batch, ApplyConfig{config, "test"})) return false;
  control::reconcile(batch);
  return true;
}

// Returns the rank of the least efficient model of the places: B, then A, then C, whose watts are unknown.
int rank_of(const State& state, const std::vector<TaskPlacement>& places) {
  int rank = 0;
  for (const TaskPlacement& one : places) {
    if (one.gpus.empty()) continue;
    const GpuModelId model = state.node(one.node).gpus[one.gpus.front()].model;
    const std::string& name = state.gpu_models()[model.index()].name;
    rank = std::max(rank, name == "B" ? 1 : name == "A" ? 2 : 3);
  }
  return rank;
}

}  // namespace

TEST_CASE("whether a gang fits, with how many tasks and within what does not depend on energy; where it goes does") {
  std::size_t same = 0;
  std::size_t cheaper_models = 0;
  for_each_step({700, 760, 12, 3}, [&](Fleet& fleet) {
    if (!set_energy(fleet.state, fleet.now, false)) return;
    auto loaded = State::load(fleet.state.save());
    REQUIRE(loaded);
    State& other = *loaded;
    REQUIRE(set_energy(other, fleet.now, true));
    for (State* state : {&fleet.state, &other}) state->pass_deadlines(fleet.now);
    for (const JobId id : pending_of(fleet.state)) {
      const JobState& job = *fleet.state.job(id);
      if (job.nomination) continue;
      sched::SearchStats work;
      const auto [plain, plain_why] = sched::find_places({fleet.state, job, fleet.now, work});
      const auto [places, why] = sched::find_places({other, *other.job(id), fleet.now, work});
      REQUIRE_EQ(places.has_value(), plain.has_value());
      if (!plain) {
        CHECK_EQ(why.code, plain_why.code);
        continue;
      }
      CHECK_EQ(places->size(), plain->size());
      CHECK_FALSE(sched::find_places({fleet.state, job, fleet.now, work}).placements != plain);  // nothing is remembered
      if (*places == *plain) {
        ++same;
        continue;
      }
      CHECK_LE(rank_of(other, *places), rank_of(fleet.state, *plain));
      if (rank_of(other, *places) < rank_of(fleet.state, *plain)) ++cheaper_models;
      if (!fleet.state.burst_amounts_of(job.spec, *plain)) {
        const auto standing = fleet.state.within_mask(job.queue, fleet.state.amounts_of(job.spec, *plain));
        const bool in_burst_pools = other.burst_amounts_of(job.spec, *places).has_value();
        const std::uint64_t root = 1;  // a job that borrows anyway may be in burst pools
        CHECK_EQ(
            standing & ~(in_burst_pools ? root : other.within_mask(job.queue, other.amounts_of(job.spec, *places))),
            0U);
      }
    }
  });
  CAPTURE(same);
  CHECK_GT(same, 100);
  CHECK_GT(cheaper_models, 50);
}

TEST_CASE("models are tried by the watts of their work, equal ones together, and never all of them") {
  Fleet fleet(1);
  fleet.command(SubmitJob{fleet.random_spec(), ""});
  const auto pending = pending_of(fleet.state);
  REQUIRE_FALSE(pending.empty());
  JobState job = *fleet.state.job(pending.front());
  job.spec.groups.resize(1);
  job.spec.groups[0].request.gpus = 1;
  job.spec.groups[0].request.gpu_models.clear();
  const auto mask = [&](const char* model) {
    return sched::ModelMask{1} << fleet.state.gpu_model_named(model)->index();
  };
  REQUIRE(set_energy(fleet.state, fleet.now, false));
  CHECK(sched::thrifty_models(fleet.state, job, sched::kAllModels).empty());
  REQUIRE(set_energy(fleet.state, fleet.now, true));
  CHECK(sched::thrifty_models(fleet.state, job, sched::kAllModels) ==
        std::vector<sched::ModelMask>{mask("B"), mask("A") | mask("B")});
  CHECK(sched::thrifty_models(fleet.state, job, mask("A") | mask("C")) == std::vector<sched::ModelMask>{mask("A")});
  CHECK(sched::thrifty_models(fleet.state, job, mask("A")).empty());
  job.spec.groups[0].request.gpu_models = {"A", "C"};
  CHECK(sched::thrifty_models(fleet.state, job, sched::kAllModels) == std::vector<sched::ModelMask>{mask("A")});
  ClusterConfig config = fleet.state.config();
  config.gpu_models[0].watts = 200;  // 400 as well
  REQUIRE(fleet.command(ApplyConfig{config, "test"}));
  job.spec.groups[0].request.gpu_models.clear();
  CHECK(sched::thrifty_models(fleet.state, job, sched::kAllModels) ==
        std::vector<sched::ModelMask>{mask("A") | mask("B")});
}

TEST_CASE_FIXTURE(FleetFixture, "nobody leaves a guarantee for the sake of energy, nor is it asked where it is off") {
  QueueConfig owner = queue("a");
  owner.guaranteed.model_gpu_milli = {{"A100", 0}, {"H100", 8000}};
  ClusterConfig thrifty = config({owner, queue("b")});
  thrifty.gpu_models[0].watts = 100;  // 200 for each GPU-equivalent
  thrifty.gpu_models[1].watts = 700;
  thrifty.scheduling.energy = true;
  command(ApplyConfig{thrifty, "op"});
  command(RegisterNode{node("h1", 4)});
  command(RegisterNode{node("h2", 2)});
  command(RegisterNode{node("a1", 8, "A100")});
  const JobId within = submit(job("a", 1, 2));
  const JobId borrows = submit(job("b", 1, 2));
  cycle();
  CHECK_EQ(nodes_of(within), "h2");
  CHECK_EQ(nodes_of(borrows), "a1");
  thrifty.scheduling.energy = false;
  command(ApplyConfig{thrifty, "op"});
  const JobId plain = submit(job("b", 1, 2));
  cycle();
  CHECK_EQ(nodes_of(plain), "h1");  // the least is left there
}

}  // namespace berth
