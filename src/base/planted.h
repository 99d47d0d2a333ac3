#pragma once
// Planted bugs: bugs put into the core on purpose, to show that the simulation finds them. Test builds contain them,
// and planted_test switches on one at a time (gpu_handover_test the one of the machine); otherwise each costs one
// comparison. A build without BERTH_PLANTABLE_BUGS, such as every release, contains none: planted() is false at compile
// time.

#include <array>
#include <string_view>

namespace berth {

enum class Bug {
  kNone,
  kReclaimWithin,         // sched: a gang inside its guarantee is a victim, too
  kGangPartial,           // sched: a gang starts with only the tasks that fit
  kMaxOnlyAtLeaf,         // sched: ceilings above the leaf queue are not checked
  kNominationIgnored,     // sched: nominated GPUs are given to other jobs
  kShareAcrossDomains,    // sched: a GPU is shared with another trust domain
  kCordonIgnored,         // state: a cordoned node takes tasks
  kForgottenCharge,       // state: an ended attempt stays charged to its queue
  kRetryCountsPreempt,    // state: a preemption uses up one of the job's retries
  kTimerLost,             // state: the end of the grace period has no timer
  kKeyLostOnRestart,      // state: idempotency keys are not loaded from a checkpoint
  kPendingLost,           // state: a requeued job is in no list of pending jobs
  kLateReport,            // control: a report about an old attempt ends a task of the new one
  kUnknownFreed,          // control: a node is declared lost as soon as contact is lost
  kPromotionOrder,        // control: the newest borrowed charge is promoted first
  kVictimsNotLetOff,      // control: a victim is stopped although its preemptor is gone
  kDoubleStart,           // control: a restart of the server starts running tasks again
  kEffectsBeforeAppend,   // the loop: effects are sent before the events are durable
  kPromotionNotBilled,    // billing: a promoted attempt is still billed as borrowed
  kLostIsIdle,            // billing: the GPUs of a lost node are billed as idle
  kReservationNotTold,    // state: a dropped backfill reservation activates no parked class
  kParkedNotRequeued,     // sched: if a nominated job starts elsewhere, no parked class is activated
  kGrowsTooFar,           // sched: an elastic gang scales up beyond its count
  kShrinkNotBooked,       // state: scaled-down tasks stay charged to their queues
  kUpdateAllAtOnce,       // control: an update stops more replicas than max_unavailable
  kLevelIgnored,          // state: a job of any level of attained service preempts any other
  kFlapIgnored,           // control: a flapping node is not cordoned
  kMassLossIgnored,       // control: nodes are declared lost though many are silent at once
  kNoticeIgnored,         // control: jobs on a node that shuts down get their full grace period
  kPoolClassIgnored,      // state: a pool takes jobs of every class
  kWindowIgnored,         // sched: a job starts on a node that a maintenance window closes too early for it
  kWindowNotLeft,         // control: no job is asked to stop before a maintenance window
  kUsedGuaranteeLost,     // state: guarantee decay ignores what the queue uses
  kGuaranteeNotRestored,  // state: a decayed guarantee is not restored
  kTermsIgnored,          // state: the times in a queue's eviction terms are ignored
  kQueueRateIgnored,      // sched: a queue's evictions_per_hour is ignored
  kPhantomNode,           // control: a machine that registers under another name becomes a second node
  kClockBelieved,         // base: a step of the wall clock is followed at once
  kHungSupervisor,        // control: a task that has to end is only signalled, never killed
  kForgedExit,            // control: an exit is believed whatever incarnation of the task it names
  kBudgetIgnored,         // sched: jobs start although a budget or grant is used up
  kMarkToldTwice,         // control: a mark that a budget has already is told again
  kMonthNotBegun,         // billing: a new month does not set a budget back
  kForeignIgnored,        // state: what others use of a node is taken for free
  kForbiddenShare,        // sched, control: GPUs are shared though the table of sharing or a pool refuses it
  kGpuUnchecked           // backend/local: a task starts without a look at its GPUs; for gpu_handover_test alone
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
                                                                   "queue-rate-ignored",
                                                                   "phantom-node",
                                                                   "clock-believed",
                                                                   "hung-supervisor",
                                                                   "forged-exit",
                                                                   "budget-ignored",
                                                                   "mark-told-twice",
                                                                   "month-not-begun",
                                                                   "foreign-ignored",
                                                                   "forbidden-share",
                                                                   "gpu-unchecked"});

constexpr std::string_view name_of(Bug bug) { return kBugNames[static_cast<std::size_t>(bug)]; }

#ifdef BERTH_NO_PLANTABLE_BUGS
constexpr bool planted(Bug) { return false; }
#else
inline Bug planted_bug = Bug::kNone;
inline bool planted(Bug bug) { return planted_bug == bug; }
#endif

}  // namespace berth
