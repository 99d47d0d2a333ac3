#pragma once
// A policy that replaces the product's scheduling cycle in a comparison: state and time in, plan out, as
// sched::run_cycle. Everything around it stays the product's: commands, reconcile, commit, fake fleet, meter. These
// policies exist only for comparison. They ignore quotas, guarantees and priorities, and treat all queues as one line.

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

  // Called for each event after the state and the view have folded it.
  virtual void on_record(const EventRecord& record) = 0;
  virtual Plan run_cycle(state::State& state, Timestamp now) = 0;
};

struct PolicyWorld {
  const Workload& workload;
  const Submissions& submissions;
  FleetView& view;
  std::uint64_t seed = 0;
};

// Returns the policy. Error kNotFound: no score has that name.
Result<std::unique_ptr<CyclePolicy>> make_cycle_policy(const PolicySpec& spec, const PolicyWorld& world);

// Places the workers of the gang one after the other by the score, all or nothing. Returns true if all fit; the view
// keeps their places as taken.
bool place_gang(const WorkloadJob& job, placement::PlacementScore& score, FleetView& view,
                std::vector<placement::Choice>& choices);
void give_back_gang(const WorkloadJob& job, FleetView& view, const std::vector<placement::Choice>& choices);

StartDecision start_decision(JobId id, const WorkloadJob& job, const std::vector<placement::Choice>& choices);

}  // namespace berth::sim
