#pragma once
// Discretized two-dimensional least attained service (Gu et al., "Tiresias: A GPU Cluster Manager for Distributed Deep
// Learning", NSDI'19, section 3.2): a job's service is its GPUs times the time it has held them; at each threshold it
// falls one level; lower levels go first and may stop jobs of higher ones; within a level the line is by arrival and
// nobody is stopped.
//
// A job that has waited `promote_after_ms` in all goes before all levels and is not stopped any more. The paper's
// starvation control (PromoteKnob) gives a job its attained service back once it has waited a multiple of its last run;
// it is off in the paper's evaluation and bounds no wait, as the job can be stopped again.

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/simulate/cycle_policy.h"
#include "sim/simulate/line_policy.h"

namespace berth::sim {

class AttainedService final : public CyclePolicy {
 public:
  AttainedService(const PolicyWorld& world, std::unique_ptr<placement::PlacementScore> score,
                  std::vector<std::int64_t> thresholds_gpu_s, std::int64_t promote_after_s);
  ~AttainedService() override { world_.view.set_score(nullptr); }

  void on_record(const EventRecord& record) override;
  Plan run_cycle(state::State& state, Timestamp now) override;

 private:
  using Key = std::tuple<std::size_t, std::int64_t, JobId>;  // level (0: promoted), submission, id
  struct Holder {
    std::int64_t since_ms = 0;
    bool stopping = false;
  };
  struct Victim {
    Key key;
    const WorkloadJob* job = nullptr;
    const std::vector<placement::Choice>* held = nullptr;
  };
  class Thought;  // one cycle's view of what could be

  const WorkloadJob& job_at(JobId id) const { return world_.workload.jobs[world_.submissions.job_of(id)]; }
  std::int64_t service_of(JobId id, Timestamp now) const;  // thousandths of a GPU times milliseconds
  std::size_t level_of(std::int64_t service) const;
  Key key_of(JobId id, Timestamp now) const;
  void enter(JobId id, Timestamp now);
  void leave(JobId id);
  void promote_due(Timestamp now);
  Timestamp next_demotion(Timestamp now) const;

  PolicyWorld world_;
  std::unique_ptr<placement::PlacementScore> score_;
  std::vector<std::int64_t> thresholds_;              // in thousandths of a GPU times milliseconds
  std::int64_t promote_after_ms_;                     // never: 0
  std::vector<std::int64_t> past_service_;            // by job of the workload, of ended attempts
  std::vector<std::int64_t> past_held_ms_;            // likewise
  std::vector<bool> promoted_;                        // likewise
  std::set<std::pair<Timestamp, JobId>> promotions_;  // of those that wait
  Lanes lanes_;
  std::map<JobId, Key> waiting_key_;
  std::set<Key> line_;
  std::map<JobId, Holder> holders_;
};

}  // namespace berth::sim
