// Placement, the node index and the sleep of refused lanes, on fleets that live at random.

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/random.h"
#include "control/commit.h"
#include "control/handle.h"
#include "control/settle.h"
#include "sched/blocking.h"
#include "sched/candidates.h"
#include "sched/cycle.h"
#include "sched/earliest_start.h"
#include "sched/linear_search.h"
#include "sched/order.h"
#include "sched/place.h"
#include "sched/quota.h"
#include "sched/share.h"
#include "sched/vacated.h"
#include "state/estimate.h"
#include "state/trial.h"

namespace berth {
namespace {

using sched::ModelMask;
using state::JobState;
using state::NodeState;
using state::State;

const std::vector<std::string> kModels = {"A", "B", "C"};

// A fleet that lives at random: nodes of three models in two pools, some tainted, labelled, cordoned, unhealthy or
// lost; jobs of many shapes come, run and go through the product's own cycle.
struct Fleet {
  State state;
  Random random;
  Random sockets;  // for NUMA domains and policies
  Timestamp now{1'000'000};
  std::uint32_t nodes = 0;

  explicit Fleet(std::uint64_t seed) : random(seed), sockets(seed) {
    ClusterConfig config = default_cluster_config();
    for (const std::string& model : kModels) config.gpu_models.push_back({model, 1000, 81'920});
    config.queues.clear();
    for (const char* path : {"a", "b"}) {
      QueueConfig queue;
      queue.path = path;
      queue.guaranteed.gpu_milli = 6000;
      queue.trust_domain = path;
      config.queues.push_back(queue);
      for (int team = 0; team < 3; ++team) {
        QueueConfig leaf;
        leaf.path = std::string(path) + "/t" + std::to_string(team);
        if (random.chance(500)) leaf.max.gpu_milli = random.between(1, 12) * 1000;
        if (random.chance(300)) leaf.max.model_gpu_milli = {{kModels[random.below(3)], random.between(0, 3) * 1000}};
        if (random.chance(300)) leaf.guaranteed.gpu_milli = random.between(0, 2) * 1000;
        if (random.chance(100)) leaf.lending_limit.gpu_milli = 500;
        if (random.chance(300)) leaf.policy = QueuePolicy::kStrict;
        if (random.chance(200)) leaf.max_jobs_per_user = random.between(0, 3);
        if (random.chance(200)) leaf.max_gpu_milli_per_user = random.between(0, 8) * 1000;
        config.queues.push_back(leaf);
      }
    }
    config.scheduling.min_runtime_s = random.between(0, 90);
    if (random.chance(500)) config.scheduling.usage_half_life_s = random.between(30, 3600);
    config.scheduling.deadline_slack_s = random.between(0, 120);
    config.scheduling.score = seed % 2 == 0 ? NodeScore::kBestFit : NodeScore::kFragmentation;
    config.scheduling.hold_after_s = random.between(0, 120);
    config.pools = {{"p", {}}, {"q", {"a"}}};
    config.pools[1].burst = seed % 3 == 0;
    if (seed % 5 == 0) config.pools[0].classes = {JobClass::kTraining, JobClass::kBatch};
    command(ApplyConfig{config, "test"});
    const std::int64_t count = random.between(3, 14);
    for (std::int64_t i = 0; i < count; ++i) register_node("n" + std::to_string(i));
  }

  void register_node(const std::string& name) {
    NodeSpec node;
    node.name = name;
    node.pool = random.chance(700) ? "p" : "q";
    node.cpu_milli = random.between(1, 4) * 8000;
    node.memory_mib = random.between(1, 4) * 16'384;
    if (random.chance(200)) node.taints.push_back({"spot", ""});
    if (random.chance(300)) node.labels.emplace_back("disk", "fast");
    const std::string& first = kModels[random.below(3)];
    const std::string& other = random.chance(150) ? kModels[random.below(3)] : first;
    const std::int64_t gpus = random.between(0, 8);
    for (std::int64_t g = 0; g < gpus; ++g) {
      Gpu gpu;
      gpu.uuid = name + "-" + std::to_string(g);
      gpu.model = g % 2 == 0 ? first : other;
      gpu.numa = static_cast<std::int32_t>(sockets.below(3));
      node.gpus.push_back(gpu);
    }
    command(RegisterNode{node});
  }

  JobSpec random_spec() {
    JobSpec spec;
    spec.name = "job";
    spec.queue = (random.chance(500) ? "a/t" : "b/t") + std::to_string(random.below(3));
    if (random.chance(100)) spec.job_class = JobClass::kDev;
    if (random.chance(300)) spec.time_limit_s = random.between(10, 900);
    if (random.chance(200)) spec.checkpoint.on_signal = true;
    if (random.chance(200)) spec.priority_class = random.chance(500) ? "production" : "dev";
    spec.user = random.chance(700) ? "ann" : "bob";
    if (random.chance(200)) spec.deadline = now + random.between(0, 600) * 1000;
    if (random.chance(200)) spec.estimate_s = random.between(1, 300);
    spec.exclusive = random.chance(50);
    spec.spread = random.chance(150);
    const std::int64_t groups = random.chance(250) ? 2 : 1;
    for (std::int64_t g = 0; g < groups; ++g) {
      TaskGroup group;
      group.name = "g" + std::to_string(g);
      group.count = static_cast<std::int32_t>(random.chance(400) ? 1 : random.between(1, 9));
      if (random.chance(200)) group.min_count = static_cast<std::int32_t>(random.between(1, group.count));
      group.request.cpu_milli = random.between(0, 6) * 1000;
      group.request.memory_mib = random.between(0, 6) * 1024;
      group.request.gpus = static_cast<std::int32_t>(random.chance(500) ? random.between(0, 2) : random.between(0, 8));
      if (group.request.gpus == 1 && random.chance(600)) {
        group.request.gpu_milli = static_cast<std::int32_t>(random.between(1, 9) * 100);
      }
      if (group.request.gpus > 0 && random.chance(300)) group.request.gpu_models = {kModels[random.below(3)]};
      if (random.chance(200)) group.pool = "p";
      if (random.chance(500)) group.tolerations = {"spot"};
      if (random.chance(100)) group.node_selector.emplace_back("disk", "fast");
      if (sockets.chance(300)) group.numa = static_cast<NumaPolicy>(sockets.below(4));
      group.command = {"true"};
      spec.groups.push_back(group);
    }
    return spec;
  }

  std::optional<control::Reply> command(const Command& command) {
    control::Batch batch(state, now);
    auto reply = control::handle(batch, command);
    control::settle(batch);
    return reply ? std::optional(*reply) : std::nullopt;
  }

  void cycle() {
    control::Batch batch(state, now);
    control::settle(batch);  // as a turn does: windows that are over are over for everybody
    control::commit(batch, sched::run_cycle(state, now));
    control::settle(batch);
  }

  void end_some() {
    const std::vector<JobId> running(state.running().begin(), state.running().end());
    for (const JobId id : running) {
      if (!random.chance(250)) continue;
      const auto attempt = *state.job(id)->attempt;
      for (std::uint32_t t = 0; t < attempt.tasks.size(); ++t) {
        if (attempt.tasks[t].phase == TaskPhase::kExited) continue;
        command(ReportTaskExited{{id, attempt.number, t, 1, ExitReason::kExited, 0, ""}});
      }
    }
  }

  void disturb() {
    const NodeState& node = state.nodes()[random.below(state.nodes().size())];
    const std::string name = node.spec.name;
    const std::size_t gpus = node.gpus.size();
    if (random.chance(200)) command(CordonNode{name, random.chance(500), random.chance(200), "op"});
    if (gpus > 0 && random.chance(200)) {
      command(ReportGpuHealth{name, static_cast<std::uint8_t>(random.below(gpus)), random.chance(600), ""});
    }
    if (random.chance(100)) command(ReportNodeStatus{name, NodeStatus::kUnknown, ""});
    if (random.chance(100)) command(ReportNodeStatus{name, NodeStatus::kReady, ""});
    if (random.chance(50)) command(ReportNodeStatus{name, NodeStatus::kLost, ""});
    if (random.chance(80)) {
      PlanMaintenance plan;
      plan.nodes = {name};
      plan.from = now + random.between(-10'000, 900'000);
      plan.for_s = random.between(30, 600);
      command(plan);
    }
    if (const auto& windows = state.maintenance(); !windows.empty() && random.chance(100))
      command(CancelMaintenance{windows.begin()->first, "op"});
  }

  void live() {
    now = now + random.between(1, 60'000);
    for (std::int64_t i = random.between(0, 4); i > 0; --i) command(SubmitJob{random_spec(), ""});
    cycle();
    end_some();
    disturb();
  }
};

// What of `node` would be free, summed the slow way.
std::int64_t available_on(const State& state) {
  std::int64_t milli = 0;
  for (const NodeState& node : state.nodes()) {
    if (!node.takes_tasks()) continue;
    for (const state::GpuSlot& gpu : node.gpus) milli += gpu.available_milli();
  }
  return milli;
}

// The order by its definition, all of it anew for every job that is asked.
struct LinearOrder {
  const State& state;
  Timestamp now;
  std::set<JobId> asked = {};
  std::set<state::LaneKey> refused = {};

  const JobState* head(QueueId id) const {
    const state::QueueState& queue = state.queue(id);
    for (const state::PendingKey& key : queue.pending) {
      const JobState& job = *state.job(key.job);
      const bool open = !asked.contains(job.id) && !refused.contains({id, job.shape});
      if (open && job.not_before <= now && !job.nomination) return &job;
    }
    const JobState* best = nullptr;
    QueueId best_child;
    for (const QueueId child : queue.children) {
      const JobState* other = head(child);
      if (other == nullptr || (best != nullptr && !precedes(child, *other, best_child, *best))) continue;
      best = other;
      best_child = child;
    }
    return best;
  }
  int standing(QueueId id, const JobState& job) const {
    if (sched::would_be_within(state, id, sched::least_amounts(state, job.spec))) return 0;
    return state.queue(id).weight == 0 ? 2 : 1;
  }
  Fraction share(QueueId id) const { return sched::dominant_share(state, counted(id), state.queue(id).weight); }
  sched::SharedAmounts counted(QueueId id) const {
    const state::QueueState& queue = state.queue(id);
    const JobState* next = head(id);
    if (queue.is_leaf() || next == nullptr) return sched::shared_usage(state, queue, now);
    std::optional<Fraction> least;
    for (const QueueId child : queue.children) {
      if (head(child) != nullptr && (!least || share(child) < *least)) least = share(child);
    }
    const std::size_t most = sched::most_asked(state, sched::least_amounts(state, next->spec));
    sched::SharedAmounts sum{};
    for (const QueueId child : queue.children) {
      sched::SharedAmounts part = sched::rescaled(counted(child), share(child), *least);
      if (head(child) == nullptr) part[most] = counted(child)[most];
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
    }
    return sum;
  }
  bool precedes(QueueId a, const JobState& first, QueueId b, const JobState& second) const {
    if (standing(a, first) != standing(b, second)) return standing(a, first) < standing(b, second);
    const int by_share = compare(share(a), share(b));
    return by_share != 0 ? by_share < 0
                         : state::precedes_elsewhere(state::pending_key(first), state::pending_key(second));
  }
  void refuse(const JobState& job) {
    const state::QueueState& leaf = state.queue(job.queue);
    for (const auto& [shape, jobs] : leaf.lanes) {
      if (leaf.policy == QueuePolicy::kStrict || shape == job.shape) refused.insert({leaf.id, shape});
    }
  }
};

std::vector<JobId> pending_of(const State& state) {
  std::vector<JobId> pending;
  for (const state::QueueState& queue : state.queues()) {
    for (const state::PendingKey& key : queue.pending) pending.push_back(key.job);
  }
  return pending;
}

}  // namespace

TEST_CASE("the index places every job where a scan of all nodes would") {
  std::size_t placed = 0;
  std::size_t refused = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Fleet fleet(seed);
    for (int step = 0; step < 25; ++step) {
      fleet.live();
      for (int i = 0; i < 6; ++i) fleet.command(SubmitJob{fleet.random_spec(), ""});
      for (const JobId id : pending_of(fleet.state)) {
        const JobState& job = *fleet.state.job(id);
        if (job.nomination) continue;
        const ModelMask models = fleet.random.chance(800) ? sched::kAllModels : 0b011U;
        sched::PlaceWork work;
        Reason why;
        const auto fast = sched::place(fleet.state, job, models, work, why);
        const auto slow = sched::place_slow(fleet.state, job, models);
        CAPTURE(seed);
        CAPTURE(step);
        CAPTURE(id.value());
        REQUIRE_EQ(fast.has_value(), slow.has_value());
        if (fast) {
          REQUIRE(*fast == *slow);
          ++placed;
        } else {
          ++refused;
        }
        fleet.command(CancelJob{id, "ann"});
      }
    }
  }
  CHECK_GT(placed, 500);
  CHECK_GT(refused, 500);
}

TEST_CASE("the node index kept up by events and trials equals one built from scratch") {
  for (std::uint64_t seed = 100; seed < 130; ++seed) {
    Fleet fleet(seed);
    for (int step = 0; step < 30; ++step) {
      fleet.live();
      CAPTURE(seed);
      CAPTURE(step);
      REQUIRE_EQ(fleet.state.audit().value_or(""), "");
      state::Trial trial(fleet.state);
      for (const JobId id : fleet.state.running()) {
        if (fleet.random.chance(300)) trial.remove(id);
      }
      std::int64_t indexed = 0;
      const auto& index = fleet.state.node_index();
      for (std::size_t c = 0; c < index.classes().size(); ++c) {
        for (std::size_t m = 0; m < kModels.size(); ++m) {
          indexed += index.available_milli(state::NodeClassId(static_cast<std::uint16_t>(c)),
                                           GpuModelId(static_cast<std::uint16_t>(m)));
        }
      }
      REQUIRE_EQ(indexed, available_on(fleet.state));
      trial.rollback_to(0);
      REQUIRE_EQ(fleet.state.audit().value_or(""), "");
    }
  }
}

TEST_CASE("a cycle decides the same whether refused lanes slept or all are asked again") {
  std::size_t decisions = 0;
  std::size_t slept = 0;
  for (std::uint64_t seed = 200; seed < 300; ++seed) {
    Fleet fleet(seed);
    for (int step = 0; step < 25; ++step) {
      fleet.live();
      for (int i = 0; i < 3; ++i) fleet.command(SubmitJob{fleet.random_spec(), ""});
      auto woken = State::load(fleet.state.save());
      REQUIRE(woken.has_value());
      REQUIRE_EQ(woken->waits().awake_count() >= fleet.state.waits().awake_count(), true);
      slept += woken->waits().awake_count() - fleet.state.waits().awake_count();
      const Plan with_sleep = sched::run_cycle(fleet.state, fleet.now);
      const Plan without = sched::run_cycle(*woken, fleet.now);
      CAPTURE(seed);
      CAPTURE(step);
      REQUIRE_EQ(control::plan_hash(with_sleep), control::plan_hash(without));
      REQUIRE_EQ(with_sleep.ask_again_at.ms, without.ask_again_at.ms);
      REQUIRE_EQ(fleet.state.audit().value_or(""), "");
      decisions += without.decisions.size();
    }
  }
  CHECK_GT(decisions, 200);
  CHECK_GT(slept, 200);
}

TEST_CASE("the rows of a list are told what each job would be told alone") {
  std::map<ReasonCode, std::size_t> told;
  for (std::uint64_t seed = 300; seed < 330; ++seed) {
    Fleet fleet(seed);
    for (int step = 0; step < 25; ++step) {
      fleet.live();
      for (int i = 0; i < 4; ++i) {
        JobSpec spec = fleet.random_spec();
        for (const char* queue : {"a/t0", "a/t0", "a/t1", "b/t0"}) {  // one lane, and others of its shape
          spec.queue = queue;
          fleet.command(SubmitJob{spec, ""});
        }
      }
      sched::BlockingOfMany of_many(fleet.state, fleet.now);
      for (const JobId id : pending_of(fleet.state)) {
        const JobState& job = *fleet.state.job(id);
        if (job.nomination) continue;
        sched::PlaceWork work;
        const auto alone = sched::blocking(fleet.state, job, fleet.now, work);
        const auto row = of_many(job);
        CAPTURE(seed);
        CAPTURE(step);
        CAPTURE(id.value());
        if (row == ReasonCode::kBehindHold) {  // a list does not look for places beside the hold
          REQUIRE((!alone || alone->code == ReasonCode::kBehindHold));
          continue;
        }
        REQUIRE_EQ(row.has_value(), alone.has_value());
        if (!row) continue;
        CAPTURE(name_of(*row));
        REQUIRE(*row == alone->code);
        ++told[*row];
      }
      // A page asks so many lanes and no more.
      for (const JobId id : pending_of(fleet.state)) {
        if (fleet.random.chance(300)) fleet.command(CancelJob{id, "ann"});
      }
    }
  }
  for (const ReasonCode code : {ReasonCode::kGpusBusy, ReasonCode::kQueueMax, ReasonCode::kBehindHead,
                                ReasonCode::kUserLimit, ReasonCode::kNeverFits}) {
    CAPTURE(name_of(code));
    CHECK_GT(told[code], 0);
  }
}

TEST_CASE("jobs are asked in the order that its definition gives, whatever starts or is refused in between") {
  std::size_t started = 0;
  std::size_t refused = 0;
  for (std::uint64_t seed = 500; seed < 530; ++seed) {
    Fleet fleet(seed);
    ClusterConfig config = fleet.state.config();
    for (QueueConfig& queue : config.queues) queue.weight = fleet.random.between(0, 3);
    fleet.command(ApplyConfig{config, "test"});
    for (int step = 0; step < 15; ++step) {
      fleet.live();
      for (int i = 0; i < 8; ++i) fleet.command(SubmitJob{fleet.random_spec(), ""});
      fleet.state.pass_deadlines(fleet.now);
      state::Trial trial(fleet.state);
      sched::Order order(fleet.state, fleet.now);
      LinearOrder linear{fleet.state, fleet.now};
      while (const JobState* expected = linear.head(fleet.state.root())) {
        CAPTURE(seed);
        CAPTURE(step);
        const auto next = order.next();
        REQUIRE(next.has_value());
        REQUIRE_EQ(next->value(), expected->id.value());
        linear.asked.insert(expected->id);
        sched::PlaceWork work;
        const auto placements = sched::try_place(fleet.state, *expected, sched::kAllModels, sched::Pools::kAny, work);
        if (placements && fleet.random.chance(600)) {
          trial.place(expected->id, *placements);
          ++started;
        } else {
          order.refuse();
          linear.refuse(*expected);
          ++refused;
        }
      }
      REQUIRE_FALSE(order.next().has_value());
    }
  }
  CHECK_GT(started, 300);
  CHECK_GT(refused, 300);
}

TEST_CASE("a claimant that fits once some have left is never counted out, and one that does not mostly is") {
  std::size_t fitting = 0;
  std::size_t counted_out = 0;
  std::size_t in_vain = 0;
  for (std::uint64_t seed = 600; seed < 630; ++seed) {
    Fleet fleet(seed);
    for (int step = 0; step < 25; ++step) {
      fleet.live();
      for (int i = 0; i < 4; ++i) fleet.command(SubmitJob{fleet.random_spec(), ""});
      for (const JobId id : pending_of(fleet.state)) {
        const JobState& job = *fleet.state.job(id);
        if (job.nomination) continue;
        sched::PlaceWork work;
        sched::Vacated vacated(fleet.state, job, work);
        const auto tasks_of = [&](JobId other) {
          return static_cast<std::uint32_t>(fleet.state.job(other)->attempt->tasks.size());
        };
        for (const JobId other : fleet.state.running()) vacated.leave(*fleet.state.job(other), 0, tasks_of(other));
        for (const JobId other : fleet.state.running()) vacated.stay(*fleet.state.job(other), 0, tasks_of(other));
        bool fits = false;
        {
          state::Trial trial(fleet.state);  // what it removes is not to be counted twice
          for (const JobId other : fleet.state.running()) {
            if (fleet.random.chance(500)) continue;
            trial.remove(other);
            vacated.leave(*fleet.state.job(other), 0, tasks_of(other));
          }
          fits = sched::try_place(fleet.state, job, sched::kAllModels, sched::Pools::kAny, work).has_value();
        }
        CAPTURE(seed);
        CAPTURE(step);
        CAPTURE(id.value());
        if (fits) REQUIRE(vacated.might_fit());
        if (fits) ++fitting;
        if (!vacated.might_fit()) ++counted_out;
        if (vacated.might_fit() && !fits && vacated.counts()) ++in_vain;
        fleet.command(CancelJob{id, "ann"});
      }
    }
  }
  CHECK_GT(fitting, 500);
  CHECK_GT(counted_out, 200);
  CHECK_LT(in_vain, counted_out / 4);
}

// When the running job is expected to be gone, or is for certain, from the job alone.
Timestamp end_of(const State& state, const JobState& job, Timestamp now, bool by_estimates) {
  Timestamp end = state::expected_end(state, job, now);
  if (!by_estimates && !state::ends_for_certain(state, job)) end = Timestamp::never();
  for (const state::TaskState& task : job.attempt->tasks) {
    for (const state::ClosedSpan& window : state.node(task.placement.node).maintenance) {
      if (window.from > now) end = std::min(end, window.from);
    }
  }
  return end;
}

TEST_CASE("the ends of what runs stand in their order, however few of them are worked out at a time") {
  std::size_t ends = 0;
  std::size_t left = 0;
  std::size_t services = 0;
  for (std::uint64_t seed = 700; seed < 740; ++seed) {
    Fleet fleet(seed);
    JobSpec service = fleet.random_spec();
    service.kind = JobKind::kService;
    service.groups.resize(1);
    service.groups.front().min_count = 0;
    service.groups.front().request.gpus = 0;
    service.groups.front().request.gpu_models.clear();
    service.time_limit_s = service.estimate_s = 0;
    service.deadline.reset();
    if (fleet.command(SubmitJob{service, ""})) ++services;
    for (int step = 0; step < 25; ++step) {
      fleet.live();
      for (const bool by_estimates : {true, false}) {
        std::vector<sched::Relief> expected;
        for (const JobId id : fleet.state.running()) {
          const Timestamp end = end_of(fleet.state, *fleet.state.job(id), fleet.now, by_estimates);
          if (!end.is_never()) expected.push_back({end, id});
        }
        for (const auto& [name, window] : fleet.state.maintenance()) expected.push_back({window.to, JobId::none()});
        std::sort(expected.begin(), expected.end());
        sched::PlaceWork work;
        const std::vector<sched::Ending> none;
        sched::ReliefsInOrder reliefs(fleet.state, fleet.now, none, by_estimates, work);
        for (std::size_t count = 0; count < expected.size(); count += 1 + fleet.random.below(3)) {
          CAPTURE(seed);
          CAPTURE(step);
          REQUIRE_EQ(reliefs.work_out(count + 1, work), count + 1);
          for (std::size_t i = 0; i <= count; ++i) REQUIRE((reliefs[i] == expected[i]));
          left += fleet.state.running().size() - work.ends_worked_out;
        }
        REQUIRE_EQ(reliefs.work_out(expected.size() + 1, work), expected.size());
        ends += expected.size();
      }
    }
  }
  CHECK_GT(ends, 2000);
  CHECK_GT(left, 1000);
  CHECK_GT(services, 20);
}

TEST_CASE("whether somebody could be stopped for a job is told as the search for them would") {
  std::size_t possible = 0;
  std::size_t in_vain = 0;
  std::size_t shared = 0;
  for (std::uint64_t seed = 800; seed < 860; ++seed) {
    Fleet fleet(seed);
    for (int step = 0; step < 25; ++step) {
      fleet.live();
      for (int i = 0; i < 4; ++i) fleet.command(SubmitJob{fleet.random_spec(), ""});
      const std::size_t budget = fleet.random.below(5);
      const std::set<JobId> nobody;
      sched::SharedCandidates candidates;
      std::size_t searches = 0;
      for (const JobId id : pending_of(fleet.state)) {
        const JobState& job = *fleet.state.job(id);
        if (job.nomination || job.spec.groups.size() > 1) continue;
        sched::PlaceWork full;
        sched::PlaceWork brief;
        const auto decision = sched::find_victims({fleet.state, fleet.now, nobody, budget}, id, full);
        const auto whether = sched::find_victims({fleet.state, fleet.now, nobody, budget, &candidates}, id, brief);
        const bool might = decision || full.left_out || full.too_dear;
        CAPTURE(seed);
        CAPTURE(step);
        CAPTURE(id.value());
        REQUIRE_EQ(whether || brief.left_out, might);
        ++(might ? possible : in_vain);
        ++searches;
        if (might) continue;
        REQUIRE_EQ(brief.ask_again_at.ms, full.ask_again_at.ms);
        REQUIRE_EQ(brief.hopeless, full.hopeless);
      }
      if (!candidates.by_claimant.empty()) shared += searches - candidates.by_claimant.size();
      for (const JobId id : pending_of(fleet.state)) {
        if (fleet.random.chance(300)) fleet.command(CancelJob{id, "ann"});
      }
    }
  }
  CHECK_GT(possible, 200);
  CHECK_GT(in_vain, 500);
  CHECK_GT(shared, 200);
}

TEST_CASE("a gang of whole nodes costs steps per node, not scans per task") {
  Fleet fleet(7);
  NodeSpec node;
  node.pool = "p";
  node.cpu_milli = 64'000;
  node.memory_mib = 512 * 1024;
  for (int g = 0; g < 8; ++g) {
    Gpu gpu;
    gpu.uuid = "GPU-" + std::to_string(g);
    gpu.model = "A";
    node.gpus.push_back(gpu);
  }
  for (int n = 0; n < 256; ++n) {
    node.name = "big" + std::to_string(n);
    fleet.command(RegisterNode{node});
  }
  JobSpec spec = fleet.random_spec();
  spec.queue = "a/t0";
  spec.exclusive = spec.spread = false;
  spec.groups.resize(1);
  spec.groups[0] = {};
  spec.groups[0].count = 64;
  spec.groups[0].request.gpus = 8;
  spec.groups[0].command = {"true"};
  const JobId id = fleet.command(SubmitJob{spec, ""})->job;
  sched::PlaceWork work;
  Reason why;
  const auto placed = sched::place(fleet.state, *fleet.state.job(id), sched::kAllModels, work, why);
  REQUIRE(placed.has_value());
  CHECK_EQ(placed->size(), 64);
  CHECK_LT(work.nodes_scored, 64 * 8);
}

}  // namespace berth
