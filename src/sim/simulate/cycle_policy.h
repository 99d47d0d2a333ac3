#pragma once
// What takes the place of the product's scheduling cycle in a run that compares: state and time in, plan out, the same
// as sched::run_cycle, so that everything around it (commands, settling, commit, fake fleet, meter) stays the
// product's. The policies here exist for comparison only. They know nothing of quotas, guarantees and priorities:
// every queue is one line to them.

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "model/plan.h"
#include "sim/simulate/fleet_view.h"
#include "sim/simulate/policy_spec.h"
#include "sim/simulate/workload.h"
#include "state/state.h"

namespace berth::sim {

class CyclePolicy {
 public:
  CyclePolicy() = default;
  CyclePolicy(const CyclePolicy&) = delete;
  CyclePolicy& operator=(const CyclePolicy&) = delete;
  virtual ~CyclePolicy() = default;

  // Told of every event after the state and the view have folded it.
  virtual void on_record(const EventRecord& record) = 0;
  virtual Plan run_cycle(state::State& state, Timestamp now) = 0;
};

struct PolicyWorld {
  const Workload& workload;
  const Submissions& submissions;
  FleetView& view;
  std::uint64_t seed = 0;
};

// kNotFound where the score has no such name.
Result<std::unique_ptr<CyclePolicy>> make_cycle_policy(const PolicySpec& spec, const PolicyWorld& world);

// The gang's workers one after the other by the score, all or nothing. What it took of the view stays taken.
bool place_gang(const WorkloadJob& job, placement::PlacementScore& score, FleetView& view,
                std::vector<placement::Choice>& choices);
void give_back_gang(const WorkloadJob& job, FleetView& view, const std::vector<placement::Choice>& choices);

StartDecision start_decision(JobId id, const WorkloadJob& job, const std::vector<placement::Choice>& choices);

}  // namespace berth::sim
