#pragma once
// Quota: small functions over the quota tree. Most of them walk the quota path of a queue: the queue and its ancestors
// up to the root. All of them count what is bound (running) and what is nominated, in every dimension. None of them
// looks at nodes.

#include <cstdint>
#include <optional>
#include <span>

#include "model/reason.h"
#include "model/resources.h"
#include "state/state.h"

namespace berth::sched {

// Returns the least that a pending job counts in each dimension, before its GPU model is known: the lightest allowed
// model is assumed. If a group allows one model only, that model's own dimension counts too.
Amounts least_amounts(const state::State& state, const JobSpec& spec);

// Returns what the job counts at its least size (min_count tasks of each group) if its GPUs are of `model`. A group
// that does not accept the model counts as in least_amounts.
Amounts amounts_on(const state::State& state, const JobSpec& spec, GpuModelId model);

// Returns the refusal of the first queue on the quota path whose max would be passed by `asked` more below it; nothing
// if no queue refuses (P4).
std::optional<Reason> over_max(const state::State& state, QueueId queue, const Amounts& asked);

// Returns the refusal of the first queue whose user limit would be passed, by one more job of the user (dim is kDims)
// or by `asked` more GPUs. The first form checks the whole quota path, the second one queue, the third the GPUs of one
// queue alone.
std::optional<Reason> over_user_limit(const state::State& state, const state::JobState& job, const Amounts& asked);
std::optional<Reason> over_user_limit(const state::QueueState& queue, const std::string& user, const Amounts& asked);
std::optional<Reason> over_user_gpus(const state::QueueState& queue, const std::string& user, const Amounts& asked);

// Returns the refusal of the first ancestor below which `asked` more would use idle guarantees that siblings do not
// lend (lending_limit); nothing if no ancestor refuses. Guarantees are backed only by nodes outside burst pools. So
// `in_burst`, the part of `asked` in burst pools, counts against the ancestor's max alone.
std::optional<Reason> over_lending(const state::State& state, QueueId queue, const Amounts& asked,
                                   const Amounts& in_burst);

// How a charge that is to begin could be within guarantees (state/within.h), which decides what it is billed as.
enum class ChargeKind : std::uint8_t {
  kStart,    // at once, or by displacing idle use (control/guarantee_accounting.h)
  kGrowth,   // at once only, since growth displaces nothing
  kInBurst,  // in a burst pool: never
};

// Returns the refusal of the first queue on the quota path with a budget or grant that is used up or has ended, and
// stops a charge of `asked`: any, or one that would be borrowed.
std::optional<Reason> over_budget(const state::State& state, QueueId queue, const Amounts& asked, ChargeKind kind);

// Returns true if a budget or grant on the quota path stops borrowing. Then nothing begins in burst pools.
bool borrowing_is_stopped(const state::State& state, QueueId queue);

// Returns true if `asked` more at `queue` would be inside its guarantee. Nominations count as used.
bool would_be_within(const state::State& state, QueueId queue, const Amounts& asked);
// Returns the queues on the quota path, from `queue` up, whose guarantee has room for a start of `asked`.
//
// 1. Room is what is neither used within the guarantee nor nominated.
// 2. If the child on the path is among the queues returned, idle use at the parent counts as room too, because the
//    start may displace it. Idle use is what is within at the parent and borrowed at its own child: siblings left it
//    idle (control/guarantee_accounting.h).
// 3. A start may also displace charges at the child. They are idle use at the parent then, so they count as room too.
std::vector<QueueId> claims_within(const state::State& state, QueueId queue, const Amounts& asked);

// Returns the guarantees (bit = depth on the quota path) in which a nomination keeps room: the job will be within there
// once its victims have left and idle use has been displaced. Elsewhere the job will borrow, and the room stays open to
// other jobs. `keeps[v]` tasks of `victims[v]` go on.
std::uint64_t within_of_nomination(const state::State& state, const state::JobState& job,
                                   std::span<const TaskPlacement> placements, std::span<const JobId> victims,
                                   std::span<const std::uint32_t> keeps);

// Returns true if a job of `leaf` that counts `asked` ranks as within at `queue`, which is the leaf or an ancestor.
// Such a job goes before jobs that borrow there. It would be within at once, or by displacement (claims_within).
bool ranks_within(const state::State& state, QueueId queue, QueueId leaf, const Amounts& asked);

// Returns true if a job of `leaf` that counts `asked` could reclaim from a job of the queue `other` that is about to
// start. Both are compared below their lowest common ancestor: the first must rank as within there, and the second must
// borrow. `counts` is what the second counts; nothing means that it borrows wherever it starts.
bool could_reclaim(const state::State& state, QueueId leaf, const Amounts& asked, QueueId other,
                   const std::optional<Amounts>& counts);

// Returns true if the queue guarantees amounts of single GPU models or of GPU-equivalents. Then the GPU model of a job
// decides whether the job is within.
bool guarantees_models(const state::QueueState& queue);

// Returns true if `asked` more at `leaf` would be inside every guarantee that is stated on the quota path. Displacement
// is included (claims_within). The second form takes the job at its least size.
bool within_guarantee(const state::State& state, QueueId leaf, const Amounts& asked);
bool within_guarantee(const state::State& state, const state::JobState& job);

// Returns true if a charge of `asked` at `leaf` would be within as it is billed and told: inside the guarantee of each
// queue on the quota path but the root, all of which must state one. Idle use is displaced for one start a cycle: where
// a start of the same cycle borrows, it counts as used.
bool is_within_by_bill(const state::State& state, QueueId leaf, const Amounts& asked, ChargeKind kind);

// The two children of the lowest common ancestor below which the two queues are. Both are none() if one queue is an
// ancestor of the other.
struct Siblings {
  QueueId preemptor;
  QueueId victim;
};
Siblings below_common_ancestor(const state::State& state, QueueId preemptor, QueueId victim);

}  // namespace berth::sched
