// For fixed demand and capacity, reclaim and preempt terminate. On tiny random queue trees jobs never end by
// themselves, and evicted jobs start again as soon as they may. The potential of sched/preempt/preempt.h must rise with
// every eviction and never fall.

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "control/commit.h"
#include "control/handle.h"
#include "control/reconcile.h"
#include "sched/cycle.h"
#include "state/attained_service.h"
#include "support/random_rounds.h"

namespace berth {
namespace {

using state::JobState;

constexpr int kMostCycles = 200;  // until nothing more is decided
constexpr std::uint32_t kDepths = 5;

// What one running charge counts in the potential. Scaled-up tasks count less than any first charge.
struct Rank {
  bool least_part = false;
  std::array<bool, kDepths> within = {};  // from the top of the tree
  std::int32_t priority = 0;
  std::int32_t negated_level = 0;
  auto operator<=>(const Rank&) const = default;
};

struct Potential {
  std::int64_t negated_untried = 0;  // pending jobs that were never evicted
  std::vector<Rank> ranks;           // of all charges, the highest first
  auto operator<=>(const Potential&) const = default;
};

// What happened between two moments of rest, at one instant.
struct Turmoil {
  std::size_t evictions = 0;
  std::size_t beside_reservations = 0;        // of these, while a reservation existed for another job
  std::set<std::pair<JobId, JobId>> stopped;  // preemptor and victim
  std::string fault;
};

struct Tree {
  state::State state;
  Random random;
  Timestamp now{1'000'000};
  std::vector<std::string> leaves;
  bool attained = false;  // some queues order by attained service: then time alone changes levels
  bool dawdling = false;  // victims take a few cycles to leave
  bool equal_priorities = false;

  explicit Tree(std::uint64_t seed) : random(seed) {
    attained = random.chance(200);
    dawdling = random.chance(300);
    equal_priorities = random.chance(300);
    ClusterConfig config = random_config();
    choose_terms(config, seed);
    REQUIRE(command(ApplyConfig{config, "op"}));
    const std::int64_t nodes = random.between(1, 4);
    for (std::int64_t n = 0; n < nodes; ++n) REQUIRE(command(RegisterNode{random_node("n" + std::to_string(n))}));
  }

  bool command(const Command& command) {
    control::Batch batch(state, now);
    const bool accepted = control::handle(batch, command).has_value();
    control::reconcile(batch);
    return accepted;
  }

  QueueConfig random_queue(std::string path, std::int64_t guaranteed) {
    QueueConfig queue;
    queue.path = std::move(path);
    if (guaranteed > 0 || random.chance(200)) queue.guaranteed.gpu_milli = guaranteed * kMilli;
    if (random.chance(150)) queue.max.gpu_milli = (guaranteed + random.between(1, 4)) * kMilli;
    if (guaranteed > 0 && random.chance(100)) queue.lending_limit.gpu_milli = random.between(0, guaranteed) * kMilli;
    queue.weight = random.chance(300) ? 0 : random.between(1, 3);
    return queue;
  }

  // Adds children that share what is guaranteed to their parent.
  void add_queues(std::vector<QueueConfig>& queues, const std::string& parent, std::int64_t guaranteed,
                  std::uint32_t depth) {
    const std::int64_t children = random.between(depth == 1 ? 2 : 1, 3);
    for (std::int64_t c = 0; c < children && queues.size() < 14; ++c) {
      const std::int64_t part = random.chance(700) ? random.between(0, guaranteed) : 0;
      guaranteed -= part;
      const std::string path = (parent.empty() ? "" : parent + "/") + static_cast<char>('a' + c);
      queues.push_back(random_queue(path, part));
      if (depth < kDepths && random.chance(450)) {
        add_queues(queues, path, part, depth + 1);
        continue;
      }
      leaves.push_back(path);
      if (random.chance(100)) queues.back().policy = QueuePolicy::kStrict;
      if (attained && random.chance(500)) queues.back().attained_service = {{100, 1000}, random.chance(500) ? 500 : 0};
    }
  }

  ClusterConfig random_config() {
    ClusterConfig config = default_cluster_config();
    config.gpu_models = {{"A", 1000, 81'920}};
    config.queues.clear();
    add_queues(config.queues, "", random.between(2, 10), 1);
    config.scheduling.min_runtime_s = random.chance(200) ? 5 : 0;
    config.scheduling.reclaim = !random.chance(50);
    config.scheduling.preempt = !random.chance(150);
    config.scheduling.resize_interval_s = 0;
    config.scheduling.backfill_reservations = random.between(0, 1);
    config.scheduling.backfill_after_s = random.chance(500) ? 0 : 172'800;
    if (random.chance(100)) config.scheduling.victims_per_cycle = random.between(1, 3);
    return config;
  }

  // Terms of eviction only protect, so termination must not depend on them. A random source of their own keeps the
  // other trees unchanged.
  static void choose_terms(ClusterConfig& config, std::uint64_t seed) {
    Random agreed(seed ^ 0x7e2a5ULL);
    if (!agreed.chance(250)) return;
    for (QueueConfig& queue : config.queues) {
      if (agreed.chance(300)) queue.eviction.min_runtime_s = agreed.chance(500) ? 0 : agreed.between(1, 900);
      if (agreed.chance(300)) queue.eviction.cooldown_s = agreed.between(0, 900);
      if (agreed.chance(200)) queue.eviction.evictions_per_hour = agreed.between(1, 3);
    }
  }

  NodeSpec random_node(const std::string& name) {
    NodeSpec node;
    node.name = name;
    node.cpu_milli = 64'000;
    node.memory_mib = 1024;
    if (random.chance(200)) node.taints.push_back({"spot", ""});
    const std::int64_t gpus = random.between(1, 4);
    for (std::int64_t g = 0; g < gpus; ++g) {
      Gpu gpu;
      gpu.uuid = name + "-" + std::to_string(g);
      gpu.model = "A";
      node.gpus.push_back(gpu);
    }
    return node;
  }

  JobSpec random_job() {
    JobSpec spec;
    spec.name = "job";
    spec.queue = leaves[random.below(leaves.size())];
    spec.user = "ann";
    TaskGroup group;
    group.count = static_cast<std::int32_t>(random.between(1, 4));
    if (group.count > 1 && random.chance(300))
      group.min_count = static_cast<std::int32_t>(random.between(1, group.count - 1));
    group.request.gpus = random.chance(700) ? 1 : 2;
    if (group.request.gpus == 1 && random.chance(150)) group.request.gpu_milli = 500;
    if (random.chance(600)) group.tolerations = {"spot"};
    group.command = {"true"};
    spec.groups.push_back(group);
    spec.checkpoint.on_signal = random.chance(500);
    const char* classes[] = {"dev", "training", "production"};
    if (!equal_priorities) spec.priority_class = classes[random.below(3)];
    if (random.chance(400)) spec.time_limit_s = random.between(10'000, 100'000);  // longer than any tree lives
    return spec;
  }

  Potential potential() const {
    Potential potential;
    state.jobs().for_each([&](const JobState& job) {
      const bool gave_way = std::any_of(job.past.begin(), job.past.end(), [](const state::AttemptRecord& attempt) {
        return attempt.cause == StopCause::kReclaim || attempt.cause == StopCause::kPreempt;
      });
      if (!job.attempt && !gave_way) --potential.negated_untried;
      for (std::size_t c = 0; job.attempt && c < job.attempt->charges.size(); ++c) {
        potential.ranks.push_back(c == 0 ? rank_of(job) : Rank());
      }
    });
    std::sort(potential.ranks.rbegin(), potential.ranks.rend());
    return potential;
  }

  Rank rank_of(const JobState& job) const {
    Rank rank{true, {}, job.priority, -state::level_of(state.queue(job.queue), job, now)};
    for (std::uint32_t d = 0; d < kDepths; ++d)
      rank.within[d] = (job.attempt->charges.front().within >> (d + 1) & 1U) != 0;
    return rank;
  }

  // Makes jobs leave, or scale down, that were asked to. Returns true if there were any.
  bool let_leave() {
    std::vector<JobId> leaving;
    for (const JobId id : state.running()) {
      if (state.job(id)->attempt->stop && !(dawdling && random.chance(500))) leaving.push_back(id);
    }
    for (const JobId id : leaving) {
      const state::AttemptState attempt = *state.job(id)->attempt;
      for (std::uint32_t t = attempt.stop->keep; t < attempt.tasks.size(); ++t) {
        command(ReportTaskExited{{id, attempt.number, t, attempt.tasks[t].incarnation, ExitReason::kExited, 143, ""}});
      }
    }
    return !leaving.empty();
  }

  bool anybody_on_the_way() const {
    const auto& running = state.running();
    return !state.nominated().empty() || std::any_of(running.begin(), running.end(), [&](JobId id) {
      return state.job(id)->attempt->stop.has_value();
    });
  }

  // Returns true if a nomination is withdrawn, in favour of a job that the next cycle starts or nominates.
  static bool gives_way(const Plan& plan) {
    return std::any_of(plan.decisions.begin(), plan.decisions.end(), [](const Decision& decision) {
      return std::holds_alternative<DropNominationDecision>(decision);
    });
  }

  Plan cycle() {
    control::Batch batch(state, now);
    Plan plan = sched::run_cycle(state, now);
    control::commit(batch, plan);
    control::reconcile(batch);
    return plan;
  }

  // Runs cycles until nothing more is decided. Checks the potential whenever no job is about to leave or to start.
  Turmoil rest() {
    Turmoil turmoil;
    Potential before = potential();
    std::size_t evicted_before = 0;
    for (int i = 0; i < kMostCycles; ++i) {
      const std::set<JobId> owners = state.reservations();
      const Plan plan = cycle();
      for (const Decision& decision : plan.decisions) {
        if (const auto* evict = std::get_if<EvictDecision>(&decision)) {
          note(*evict, turmoil);
          if (owners.size() > owners.count(evict->preemptor)) ++turmoil.beside_reservations;
        }
      }
      // The next cycle gives what was freed to a job, also if the nomination for it was withdrawn.
      if (let_leave() || anybody_on_the_way() || gives_way(plan)) continue;
      const Potential after = potential();
      const bool evicted = turmoil.evictions > evicted_before;
      if (after < before) turmoil.fault = evicted ? "evictions lower the potential" : "it falls without an eviction";
      if (evicted && after == before) turmoil.fault = "evictions leave the potential as it was";
      if (!turmoil.fault.empty() || plan.decisions.empty()) return turmoil;
      before = after;
      evicted_before = turmoil.evictions;
    }
    turmoil.fault = "no end after " + std::to_string(kMostCycles) + " cycles";
    return turmoil;
  }

  static void note(const EvictDecision& evict, Turmoil& turmoil) {
    ++turmoil.evictions;
    for (std::size_t v = 0; v < evict.victims.size(); ++v) {
      if (evict.keeps[v] > 0) continue;
      turmoil.stopped.emplace(evict.preemptor, evict.victims[v]);
      if (turmoil.stopped.contains({evict.victims[v], evict.preemptor})) turmoil.fault = "two jobs stop each other";
    }
  }
};

struct Counts {
  std::uint64_t evictions = 0;
  std::uint64_t after_one = 0;  // evictions that followed another at the same instant
  std::uint64_t beside_reservations = 0;
  std::uint64_t trees_with_any = 0;
  std::size_t most = 0;  // at one instant
};

// Submits a few jobs at a time and checks what follows, at once and after some time.
std::string live(Tree& tree, Counts& counts) {
  std::uint64_t evictions = 0;
  const auto rest = [&] {
    const Turmoil turmoil = tree.rest();
    evictions += turmoil.evictions;
    counts.beside_reservations += turmoil.beside_reservations;
    if (turmoil.evictions > 1) counts.after_one += turmoil.evictions - 1;
    counts.most = std::max(counts.most, turmoil.evictions);
    return turmoil.fault;
  };
  std::string fault;
  for (std::int64_t round = tree.random.between(1, 3); round > 0 && fault.empty(); --round) {
    for (std::int64_t jobs = tree.random.between(1, 7); jobs > 0 && fault.empty(); --jobs) {
      tree.command(SubmitJob{tree.random_job(), ""});
      if (tree.random.chance(300)) fault = rest();
    }
    for (int i = 0; i < 4 && fault.empty(); ++i) {
      fault = rest();
      tree.now = tree.now + tree.random.between(1, 400) * 1000;
    }
  }
  counts.evictions += evictions;
  counts.trees_with_any += evictions > 0 ? 1 : 0;
  return fault;
}

}  // namespace

TEST_CASE("every eviction raises the potential, and none goes in a circle") {
  const auto trees = static_cast<std::uint64_t>(random_rounds(10'000, 1'000'000));
  Counts counts;
  for (std::uint64_t seed = 0; seed < trees; ++seed) {
    Tree tree(seed);
    const std::string fault = live(tree, counts);
    REQUIRE_MESSAGE(fault.empty(), ("tree " + std::to_string(seed) + ": " + fault));
  }
  MESSAGE(trees << " trees, " << counts.trees_with_any << " of them with " << counts.evictions << " evictions, "
                << counts.after_one << " of these after another at the same instant, " << counts.most << " at most; "
                << counts.beside_reservations << " while a start was held for somebody else");
  CHECK(counts.trees_with_any > trees / 10);
  CHECK(counts.after_one > trees / 100);
  CHECK(counts.beside_reservations > trees / 100);
}

}  // namespace berth
