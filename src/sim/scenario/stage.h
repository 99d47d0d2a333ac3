#pragma once
// The world in which a scenario runs, the names that the script gave its jobs, and the lines that tell what happened.

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sim/scenario/directives.h"
#include "sim/scenario/words.h"
#include "sim/world/budgets.h"
#include "sim/world/world.h"

namespace berth::sim {

// Returns "; failed GPUs 0-1", or "" if none has failed.
std::string failed_text(const NodeSpec& node);
// Returns "; runs containers, has llama:1, pytorch", or "".
std::string images_text(const NodeSpec& node);

class Stage : private Witness {
 public:
  Stage();

  // Performs the directive of one block with the indented lines below it. Returns the output lines.
  std::vector<std::string> play(std::string_view directive, const std::vector<std::string>& below);

 private:
  using Done = Result<void>;
  struct Behaviour {
    backend::TaskScript script;
    std::uint32_t failing_attempts = 0;  // number of first attempts that exit with 1
  };

  Done read_and_act(std::string_view directive, const std::vector<std::string>& below);
  Done act(const Line& line, const std::vector<std::string>& below);
  Done configure(const std::vector<std::string>& below);
  Done add_nodes(const Line& line);
  Done submit(const Line& line);
  Done read_dependencies(const Line& line, JobSpec& spec) const;
  Done on_nodes(const Line& line);
  bool act_on_node(const Line& line, const std::string& name);
  Done gpu_health(const Line& line);
  Done change_foreign_use(const Line& line);
  Done change_images(const Line& line);
  Done plan_maintenance(const Line& line);
  void list_maintenance();
  Done run(const Line& line);
  Done die(const Line& line);
  Done exit(const Line& line);
  Done why(const Line& line);
  Done tell_capacity(const Line& line);
  void tell_advice();
  Done apply_prices(const std::vector<std::string>& below);
  Done tell_invoice(const Line& line);
  Done mark_budgets();
  Done on_job(const Line& line);
  void list_jobs();
  void list_queues();
  void list_nodes();
  Done explain_share(const Line& line);
  void check();

  void ask(Command command);
  Result<JobId> job_named(const std::string& name) const;
  std::string name_of_job(JobId job) const;
  std::string promoted_text(const ChargePromoted& event, const state::State& durable);
  std::string stop_text(const StopBegan& event, const state::State& durable) const;
  std::string update_text(const ServiceUpdated& event);
  std::string places_text(const std::vector<TaskPlacement>& placements) const;
  void say(std::string line) { said_.push_back(std::move(line)); }
  void tell(const EventRecord& record, const state::State& durable);
  backend::TaskScript script_of(const StartTask& start) const;

  void on_records(std::span<const EventRecord> records, const state::State& durable) override;
  void on_effect(const Effect&, const state::State&) override {}
  void on_answer(const Answer& answer) override;
  void on_iteration_end(const state::State&, Timestamp, bool) override {}

  static Result<Behaviour> read_behaviour(const Line& line);

  std::map<std::string, Behaviour> behaviours_;
  std::map<std::string, JobId> jobs_;
  std::map<JobId, std::string> names_;
  std::map<JobId, std::string> told_reservations_;  // the last output for each backfill reservation
  struct Charge {
    std::size_t first_task = 0;
    std::uint64_t within = 0;
  };
  std::map<JobId, std::vector<Charge>> charges_;  // charges of the last attempt
  std::map<JobId, std::size_t> tasks_;            // number of tasks
  std::map<JobId, std::uint32_t> generations_;    // versions of services that were updated; 0 before
  std::set<JobId> cancelled_by_berth_;            // jobs that end with their service or array, or for its update
  std::set<JobId> scaling_down_;                  // jobs that were asked to scale down and have not yet
  std::string submitting_;
  bool pricing_ = false;  // the answer that is awaited is of a price book
  std::vector<std::string> said_;
  ClusterConfig config_;
  World world_;
  Budgets budgets_;
};

}  // namespace berth::sim
