#pragma once
// The life of a whole cluster from a seed: random nodes, queue trees and jobs of every kind, changed configurations,
// lost and returning supervisors, dead and rebooted nodes, late and repeated reports, and a control plane that dies at
// every point of its iteration. A step is one random action, and then some time. The same seed and number of steps
// always give the same life; a violation names both.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "sim/world/budgets.h"
#include "sim/world/checker.h"
#include "sim/world/world.h"

namespace berth::sim {

struct SimulationShape {
  std::uint32_t most_nodes = 64;
  std::uint32_t most_queues = 50;
  bool exact = false;    // exactly the most nodes and queues, every node with eight GPUs: the cluster of the benchmark
  bool policies = true;  // random settings beside the defaults: scores, early reservations, attained service
  std::uint64_t live_jobs = 60;  // no job is submitted while more jobs live
  bool faults = true;            // faults of nodes, reports and the control plane
  std::uint64_t events_per_scratch_check = 1000;
  bool audit_every_event = false;  // also recompute state and meter from nothing after each event
};

class Simulation {
 public:
  Simulation(std::uint64_t seed, SimulationShape shape);

  void step();
  void check_now();
  // Ends all faults, brings everything back and submits nothing new. The cluster must come to rest (P13).
  void heal_and_converge();

  std::optional<std::string> violation() const;
  World& world() { return world_; }
  const Checker& checker() const { return checker_; }
  std::uint64_t steps() const { return steps_; }

 private:
  void build_nodes();
  void place_node(NodeSpec& spec);
  ClusterConfig random_config();
  void rename_a_queue(Random& moving);
  void choose_policies(ClusterConfig& config);
  void choose_terms(ClusterConfig& config);
  void add_queues(ClusterConfig& config, const std::string& parent, std::int64_t guaranteed_milli, std::uint32_t depth);
  JobSpec random_job();
  void random_requests(JobSpec& spec);
  void choose_instance(TaskRequest& request, Random& knives);
  static void choose_rules(TaskGroup& group, Random& zones);
  void choose_for_affinity(JobSpec& spec);
  backend::TaskScript script_of(const StartTask& start) const;

  void submit();
  void repeat_submission();
  void move_a_job(JobId id, Random& apart);
  void touch_a_job();
  void plan_maintenance(Random& apart);
  void change_limits(Random& apart);
  void choose_budgets(ClusterConfig& config);
  void look_at_budgets();
  void set_the_clock(Random& apart);
  void rename_a_node(Random& apart);
  void remove_a_node(Random& apart);
  void copy_a_node(Random& apart);
  void break_apart();
  void forge_an_exit();
  void change_gpu_health(const std::string& node);
  void change_images(const std::string& node);
  void change_foreign_use(Random& apart);
  bool has_cut_gpus() const { return shape_.policies && !shape_.exact && seed_ % 5 == 1; }
  bool has_changed_limits() const { return shape_.policies && seed_ % 7 == 3; }
  bool has_budgets() const { return shape_.policies && !shape_.exact && seed_ % 6 == 4; }
  bool has_foreign_use() const { return shape_.policies && seed_ % 4 == 1; }
  bool has_countables() const { return shape_.policies && seed_ % 4 == 3; }
  bool has_rules() const { return shape_.policies && seed_ % 3 == 1; }
  bool has_images() const { return shape_.policies && seed_ % 3 == 0; }
  static std::vector<std::string> random_images(Random& random);
  void touch_a_node();
  void break_something();
  void ask_nonsense();
  void pass_time();
  std::optional<JobId> some_job();
  const std::string& some_node();
  bool waits_for_a_reason(const state::JobState& job);

  std::uint64_t seed_;
  SimulationShape shape_;
  Random random_;
  World world_;
  Checker checker_;
  Budgets budgets_;
  ClusterConfig config_;
  std::vector<std::string> leaves_;
  std::vector<std::string> node_names_;
  std::vector<SubmitJob> keyed_;  // the latest submissions with keys, to be repeated
  std::uint64_t next_key_ = 1;
  std::uint64_t steps_ = 0;
  bool restored_ = false;  // the log, once in a life
  std::uint64_t checked_at_ = 0;
  std::optional<std::string> violation_;
};

struct Verdict {
  std::uint64_t seed = 0;
  std::uint64_t steps = 0;   // steps that were run, up to a violation
  std::uint64_t events = 0;  // durable events
  std::uint64_t restarts = 0;
  std::uint64_t scratch_checks = 0;
  std::uint64_t audited_events = 0;   // events after each of which everything was recomputed
  std::uint64_t replayed_cycles = 0;  // cycles that decided something and were run again
  std::string log_hash;               // hash of the last record, which covers all decisions (sim/world/replay.h)
  std::map<std::string, std::uint64_t> seen;
  std::optional<std::string> violation;
};

// Runs `steps` steps (or until `events` events are durable, if that is not zero), then heals, unless something broke.
Verdict simulate(std::uint64_t seed, std::uint64_t steps, std::uint64_t events, const SimulationShape& shape);

// Returns the run with the fewest steps after which a check from scratch shows the violation of `found`.
Verdict shortest_prefix(const Verdict& found, const SimulationShape& shape);

}  // namespace berth::sim
