#pragma once
// What applying a configuration would do to the jobs that are there: whether it is refused, which running jobs would
// become borrowed or guaranteed, and which queues would be above their ceiling. Nothing changes; `berth diff` shows it.

#include <optional>
#include <vector>

#include "base/result.h"
#include "model/cluster_config.h"
#include "state/state.h"

namespace berth::control {

// What changes for the jobs in one queue and below it.
struct QueueConsequence {
  QueueId queue;
  std::vector<JobId> borrowed = {};    // running, within the guarantee of the queue now, beyond it then; by id
  std::vector<JobId> guaranteed = {};  // the opposite
  bool above_max = false;              // more runs than the ceiling would allow; it is not evicted for this
};

struct ConfigConsequences {
  std::optional<Error> refusal;
  std::vector<QueueConsequence> queues = {};  // in the order of the configuration; those without a change are left out
};

// Returns the queues that the configuration renames: those whose `moved_from` is there and whose path is not. Once
// done, the same configuration renames nothing.
std::vector<QueueMove> moves_of(const state::State& state, const ClusterConfig& config);

// Returns an error if the configuration contradicts what is there: it removes queues, topology levels or MIG profiles
// that live jobs need; or it has a new budget or grant whose use would not be known (check_budgets). Requires a
// configuration that validate() accepts.
Result<void> check_config_change(const state::State& state, const ClusterConfig& config,
                                 const std::optional<Timestamp>& log_begins = {});
// Refuses a new budget or grant of money if there are no prices, and a new grant that begins before the day of the
// first event (`log_begins`, if it is known).
Result<void> check_budgets(const state::State& state, const ClusterConfig& config,
                           const std::optional<Timestamp>& log_begins);

// Requires the same. Charges are counted as guarantee accounting does (rules 1 and 2 of guarantee_accounting.h), each
// queue by itself.
ConfigConsequences consequences_of(const state::State& state, const ClusterConfig& config,
                                   const std::optional<Timestamp>& log_begins = {});

}  // namespace berth::control
