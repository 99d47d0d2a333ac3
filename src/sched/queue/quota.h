#pragma once
// Quota as five small recursive functions over the queue tree. All of them count what is bound and what is promised
// (nominated), in every dimension, and none of them knows about nodes.

#include <cstdint>
#include <optional>
#include <span>

#include "model/reason.h"
#include "model/resources.h"
#include "state/state.h"

namespace berth::sched {

// What a waiting job counts at least: per dimension, before its GPU model is known. With one allowed model that model's
// dimension counts too.
Amounts least_amounts(const state::State& state, const JobSpec& spec);

// What `tasks of the spec's least size` count on one model.
Amounts amounts_on(const state::State& state, const JobSpec& spec, GpuModelId model);

// The first ceiling on the way to the root that refuses `asked` more below `queue`, or nothing (P4).
std::optional<Reason> over_max(const state::State& state, QueueId queue, const Amounts& asked);

// The first queue on the way to the root that refuses the job's user one more job (dim is kDims) or `asked` more GPUs.
std::optional<Reason> over_user_limit(const state::State& state, const state::JobState& job, const Amounts& asked);
std::optional<Reason> over_user_limit(const state::QueueState& queue, const std::string& user, const Amounts& asked);
std::optional<Reason> over_user_gpus(const state::QueueState& queue, const std::string& user, const Amounts& asked);

// What siblings keep for themselves: the first ancestor whose idle guarantees are not lent to `queue`, or nothing.
// Guarantees are kept of what backs them: `in_burst`, the part of `asked` in burst pools, only counts below ceilings.
std::optional<Reason> over_lending(const state::State& state, QueueId queue, const Amounts& asked,
                                   const Amounts& in_burst);

// Whether `asked` more at `queue` would lie inside its guarantee, promises included.
bool would_be_within(const state::State& state, QueueId queue, const Amounts& asked);
// The queues on the way to the root, from `queue` up, of whose guarantees it may claim room: it would be within, above
// a queue where it would be also by taking the room of those who are within only because it is idle there, or come to
// be when they have given way below (control/guarantee_accounting.h).
std::vector<QueueId> claims_within(const state::State& state, QueueId queue, const Amounts& asked);

// The guarantees on the way to the root (bit = depth) of which a promise keeps room: where the job may come to lie
// within when its victims have left and whoever is there only because it is idle has given way. Elsewhere it will
// borrow, and the room stays open to others. `keeps`: of each victim so many tasks stay.
std::uint64_t within_of_nomination(const state::State& state, const state::JobState& job,
                                   std::span<const TaskPlacement> placements, std::span<const JobId> victims,
                                   std::span<const std::uint32_t> keeps);

// Whether `asked` more at the leaf goes before who would borrow at `queue`, its own or one above it: it would be within
// there, or may claim to be.
bool ranks_within(const state::State& state, QueueId queue, QueueId leaf, const Amounts& asked);

// Whether a job of the leaf that asks so much could reclaim from one of another leaf that counts `counts` and is about
// to start, or borrows wherever it starts: the one would be within where they part, or may claim to be, and the other
// would not.
bool could_reclaim(const state::State& state, QueueId leaf, const Amounts& asked, QueueId other,
                   const std::optional<Amounts>& counts);

// Whether it counts on which GPU model something runs within the queue's guarantee.
bool guarantees_models(const state::QueueState& queue);

// Whether `asked` more at the leaf, or the job at its least size, lies inside the guarantees of all queues that state
// one, or comes to when it has started and who is there only because it is idle has given way.
bool within_guarantee(const state::State& state, QueueId leaf, const Amounts& asked);
bool within_guarantee(const state::State& state, const state::JobState& job);

// The children of the lowest common ancestor of two queues on the way to each; both none() when one is below the other.
struct Siblings {
  QueueId preemptor;
  QueueId victim;
};
Siblings below_common_ancestor(const state::State& state, QueueId preemptor, QueueId victim);

}  // namespace berth::sched
