#pragma once
// Planted bugs: wrong turns put into the core on purpose, to show that the simulation finds them. Builds for tests have
// them, and planted_test chooses one at a time; a comparison and a branch is all they cost otherwise. Without the build
// option BERTH_PLANTABLE_BUGS, as in every release, the question is a compile-time `false` and nothing of them is left.

#include <array>
#include <string_view>

namespace berth {

enum class Bug {
  kNone,
  kReclaimWithin,         // sched: a gang inside its guarantee is a victim, too
  kGangPartial,           // sched: a gang starts with the tasks that fit
  kMaxOnlyAtLeaf,         // sched: ceilings above the leaf are not asked
  kNominationIgnored,     // sched: promised GPUs are given to others
  kShareAcrossDomains,    // sched: a GPU is shared with another trust domain
  kCordonIgnored,         // state: a cordoned node takes tasks
  kForgottenCharge,       // state: an ended attempt stays charged to its queue
  kRetryCountsPreempt,    // state: a preemption uses up a retry
  kTimerLost,             // state: the end of grace has no timer
  kKeyLostOnRestart,      // state: idempotency keys are not read back
  kPendingLost,           // state: a requeued job is on no list
  kLateReport,            // control: the report of an old attempt ends a task of the new one
  kUnknownFreed,          // control: a node out of contact is given up at once
  kPromotionOrder,        // control: the newest borrower is promoted first
  kVictimsNotLetOff,      // control: a victim leaves though its claimant is gone
  kDoubleStart,           // control: a restart starts running tasks again
  kEffectsBeforeAppend,   // the turn: the world is told before the log
  kPromotionNotBilled,    // billing: a promoted attempt is billed as borrowed on
  kLostIsIdle,            // billing: the GPUs of a lost node are billed as idle
  kReservationNotTold,    // state: a start that is held no longer wakes nobody who slept behind it
  kParkedNotRequeued,     // sched: what a claimant leaves that starts elsewhere wakes nobody
  kGrowsTooFar,           // sched: an elastic gang grows beyond its count
  kShrinkNotBooked,       // state: what a gang gives back stays charged to its queues
  kUpdateAllAtOnce,       // control: an update replaces replicas beyond the limit of those away
  kLevelIgnored,          // state: attained service of any level stops any other
  kFlapIgnored,           // control: a node may come and go as often as it likes
  kMassLossIgnored,       // control: nodes are given up though many are silent at once
  kNoticeIgnored,         // control: whoever runs on a node that goes away has all of its grace
  kPoolClassIgnored,      // state: a pool takes jobs of every class
  kWindowIgnored,         // sched: who is not gone by then starts on a node that maintenance will close
  kWindowNotLeft,         // control: nobody is asked to leave before maintenance begins
  kUsedGuaranteeLost,     // state: what is not used of a guarantee is counted without what is used
  kGuaranteeNotRestored,  // state: a guarantee that has decayed is not given back
  kTermsIgnored,          // state: what a queue says of times in its terms of eviction is not looked at
  kQueueRateIgnored       // sched: how many below a queue may be stopped within an hour is not looked at
};

inline constexpr auto kBugNames = std::to_array<std::string_view>({"none",
                                                                   "reclaim-within",
                                                                   "gang-partial",
                                                                   "max-only-at-leaf",
                                                                   "nomination-ignored",
                                                                   "share-across-domains",
                                                                   "cordon-ignored",
                                                                   "forgotten-charge",
                                                                   "retry-counts-preemption",
                                                                   "timer-lost",
                                                                   "key-lost-on-restart",
                                                                   "pending-lost",
                                                                   "late-report",
                                                                   "unknown-freed",
                                                                   "promotion-order",
                                                                   "victims-not-let-off",
                                                                   "double-start",
                                                                   "effects-before-append",
                                                                   "promotion-not-billed",
                                                                   "lost-is-idle",
                                                                   "hold-not-told",
                                                                   "sleepers-not-told",
                                                                   "grows-too-far",
                                                                   "shrink-not-booked",
                                                                   "update-all-at-once",
                                                                   "level-ignored",
                                                                   "flap-ignored",
                                                                   "mass-loss-ignored",
                                                                   "notice-ignored",
                                                                   "pool-class-ignored",
                                                                   "window-ignored",
                                                                   "window-not-left",
                                                                   "used-guarantee-lost",
                                                                   "guarantee-not-restored",
                                                                   "terms-ignored",
                                                                   "queue-rate-ignored"});

constexpr std::string_view name_of(Bug bug) { return kBugNames[static_cast<std::size_t>(bug)]; }

#ifdef BERTH_NO_PLANTABLE_BUGS
constexpr bool planted(Bug) { return false; }
#else
inline Bug planted_bug = Bug::kNone;
inline bool planted(Bug bug) { return planted_bug == bug; }
#endif

}  // namespace berth
