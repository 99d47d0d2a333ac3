#pragma once
// Fit: steps 4 and 5 of the cycle for one job. Quota, then the whole gang on what is available, then quota again for
// exactly those places; and the same beside the holds of others.

#include <optional>
#include <vector>

#include "base/timestamp.h"
#include "model/reason.h"
#include "sched/place/place.h"
#include "state/state.h"
#include "state/transaction.h"

namespace berth::sched {

// A whole node counts all that it has, so that a ceiling may refuse the best fit and not another node. Where it does,
// the nodes that fit below the ceilings by themselves are tried, then those of which as many as the job has tasks do. A
// gang that would fit only on nodes of which some count more and others less than that is refused all the same.
std::optional<std::vector<TaskPlacement>> start_now(const state::State& state, const state::JobState& job,
                                                    SearchStats& work, Reason& why);

// Whether the reason is that quota refuses it, with any places or with those that were found.
bool is_quota_reason(ReasonCode code);

// It would delay the owner of the hold.
Reason would_delay(const state::State& state, JobId owner);

// Nothing with the reason would-delay-reservation where it would only fit on places that are held for others. The trial
// is as before.
std::optional<std::vector<TaskPlacement>> try_start(state::Transaction& transaction, state::State& state,
                                                    const state::JobState& job, Timestamp now, SearchStats& work,
                                                    Reason& why);

}  // namespace berth::sched
