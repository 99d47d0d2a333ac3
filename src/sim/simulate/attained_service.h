#pragma once
// Discretized two-dimensional least attained service (Gu et al., "Tiresias: A GPU Cluster Manager for Distributed Deep
// Learning", NSDI'19, section 3.2). The service of a job is its GPUs times the time for which it has held them. At each
// threshold the job falls one level. Jobs of lower levels start first and may evict jobs of higher levels. Within a
// level jobs start in order of arrival and none is evicted.
//
// A job that has waited `promote_after_ms` in all goes before all levels and is not evicted any more. The starvation
// control of the paper (PromoteKnob) is different: it sets the attained service of a job back once the job has waited a
// multiple of its last run. It is off in the paper's evaluation and bounds no wait, because the job can be evicted
// again.

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
  class Thought;  // the fleet as one cycle changes it while it searches

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
  std::vector<std::int64_t> past_service_;            // of ended attempts, by job of the workload
  std::vector<std::int64_t> past_held_ms_;            // likewise
  std::vector<bool> promoted_;                        // likewise
  std::set<std::pair<Timestamp, JobId>> promotions_;  // promotion times of pending jobs
  Lanes lanes_;
  std::map<JobId, Key> waiting_key_;
  std::set<Key> line_;
  std::map<JobId, Holder> holders_;
};

}  // namespace berth::sim
