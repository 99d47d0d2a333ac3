#pragma once
// A queue as the state holds it: its limits, the sums of what runs below it, and the jobs pending in it. Depth 0 is the
// root.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/timestamp.h"
#include "model/cluster_config.h"
#include "model/ids.h"
#include "model/resources.h"
#include "state/eviction_rate.h"
#include "state/past_usage.h"

namespace berth::state {

// The order of the jobs pending in one leaf queue. Higher priority is first. Then a lower level of attained service,
// then urgent jobs by nearest deadline, then the older job, then the smaller id.
struct PendingKey {
  std::int64_t negated_priority = 0;
  std::int32_t level = 0;
  Timestamp due = Timestamp::never();  // urgent jobs: the deadline
  Timestamp submitted;
  JobId job;
  auto operator<=>(const PendingKey&) const = default;
};

// Returns true if `a` goes before `b`, where the jobs are in different queues. Level and urgency are ignored: levels of
// two queues do not compare, and an urgent job passes no job of another queue.
inline bool precedes_elsewhere(const PendingKey& a, const PendingKey& b) {
  return std::tie(a.negated_priority, a.submitted, a.job) < std::tie(b.negated_priority, b.submitted, b.job);
}

// The key of a running charge that borrows at some queue. Keys sort by the start order of the charges.
struct BorrowedKey {
  Seq order = 0;
  JobId job;
  std::uint32_t charge = 0;
  auto operator<=>(const BorrowedKey&) const = default;
};

// The usage of one user below a queue that limits its users.
struct UserUsage {
  std::int64_t jobs = 0;       // running or nominated
  std::int64_t gpu_milli = 0;  // of these jobs
  std::int64_t submitted = 0;  // pending or running; a service or an array counts as one
  bool operator==(const UserUsage&) const = default;
};

// How much of its guarantee a queue uses (state/guarantee_decay.h). The load is its usage plus its pending requests.
struct GuaranteeUse {
  Timestamp idle_since = Timestamp::never();     // since when its load is at most half of the guarantee
  Amounts idle_peak;                             // the highest load since then
  Timestamp wanting_since = Timestamp::never();  // since when its load is above the guarantee
  Timestamp due = Timestamp::never();            // index: when the guarantee changes if the load stays the same
};

// The charges that may move into or out of a queue's guarantee (control/guarantee_accounting.h). It is kept up to date,
// so that no search has to read all running jobs.
struct Stack {
  // Charges that borrow here, by their amounts; without those in burst pools.
  std::map<Amounts, std::set<BorrowedKey>> borrowed_of;
  // Charges of starts that borrow here and are within at the child queue.
  std::set<BorrowedKey> entitled;
  Amounts idle_usage;    // amounts that are within here and borrow at the child queue
  Amounts within_above;  // amounts that are within here and at the parent queue
};

// The eviction terms in force for the jobs of a queue. A term that the queue does not state is its parent's
// (EvictionTermsConfig).
struct EvictionTerms {
  std::int64_t min_runtime_s = 0;
  std::int64_t cooldown_s = 0;
  std::int64_t grace_s = 0;
  QueueId min_runtime_of;                // the queue that states min_runtime; the root: the cluster
  QueueId cooldown_of;                   // the queue that states cooldown; the root: the cluster
  QueueId grace_of;                      // the queue that states grace; the root: the cluster
  std::int64_t evictions_per_hour = 0;   // stated by this queue; 0: no limit
  QueueId limited_by = QueueId::none();  // the nearest queue with such a limit, from this one up
};

// A budget or grant of a queue, and the last mark of it.
struct BudgetState {
  BudgetConfig config;
  BudgetMark mark;
  bool operator==(const BudgetState&) const = default;
  // Returns true if it is used up or has ended, and says that this stops.
  bool stops(BudgetAction what) const { return (mark.percent >= 100 || mark.ended) && config.when_used_up == what; }
};

struct QueueState {
  QueueId id;
  QueueId parent;
  std::uint32_t depth = 0;
  std::uint32_t quota_path = 0;  // index, see State::quota_path_of
  std::string path;              // empty for the root
  bool removed = false;
  std::vector<QueueId> children;
  std::vector<QueueId> keepers;  // the children that limit lending
  QuotaAmounts guaranteed;       // in force; less than configured after guarantee decay
  QuotaAmounts configured;
  std::int64_t guarantee_decay_ms = 0;  // window of guarantee decay; 0: no decay
  Amounts max = Amounts::unlimited();
  Amounts lending_limit = Amounts::unlimited();
  bool limits_lending = false;
  std::int64_t max_jobs_per_user = kUnlimited;
  std::int64_t max_gpu_milli_per_user = kUnlimited;
  std::int64_t max_submitted_per_user = kUnlimited;
  std::int64_t weight = 1;
  TrustDomainId trust_domain;
  QueuePolicy policy = QueuePolicy::kBestEffort;
  std::vector<std::int64_t> service_thresholds;  // in milli-GPUs times milliseconds; empty: one level
  std::int64_t promote_after_ms = 0;             // 0: jobs are never promoted
  EvictionTerms eviction;
  std::array<std::optional<BudgetState>, 2> budgets;  // by BudgetKind
  std::vector<AdmissionRule> admission;               // of the configuration
  std::vector<AdmissionRule> own_admission;           // set by command

  PastUsage past;                  // kept only if the configuration states usage_half_life
  Amounts usage;                   // all that is bound below, stopping jobs included
  Amounts within_usage;            // the part inside this queue's guarantee
  Amounts nominated;               // nominated to preemptors below
  Amounts nominated_within;        // the part that reserves room in this queue's guarantee
  Amounts burst_usage;             // the part of `usage` in burst pools
  Amounts demand;                  // least requests of jobs pending below; only with guarantee decay
  GuaranteeUse guarantee_use;      // only with guarantee decay
  std::set<BorrowedKey> borrowed;  // charges below that borrow here
  Stack stack;                     // only if a guarantee is configured
  std::set<PendingKey> pending;    // leaves: pending jobs
  // The same jobs by equivalence class: if quota or placement refuses one job, it refuses its whole class.
  std::map<std::uint64_t, std::set<PendingKey>> eq_classes;
  std::map<std::string, UserUsage, std::less<>> users;  // only if this queue limits its users
  std::int64_t pending_below = 0;                       // pending jobs in the whole subtree
  std::int64_t running_below = 0;
  EvictionRate evictions;                           // evictions below it; only if its terms limit their rate
  std::map<std::int32_t, std::set<JobId>> running;  // leaves: jobs with an attempt, by priority

  // Returns what occupies the guarantee: usage within it, and the room reserved for nominations.
  Amounts within_or_nominated() const { return within_usage + nominated_within; }
  const std::optional<BudgetState>& budget(BudgetKind kind) const { return budgets[static_cast<std::size_t>(kind)]; }
  std::optional<BudgetState>& budget(BudgetKind kind) { return budgets[static_cast<std::size_t>(kind)]; }
  // Returns the budget or grant that stops this, or null.
  const BudgetState* stopped_by(BudgetAction what) const {
    for (const auto& one : budgets) {
      if (one && one->stops(what)) return &*one;
    }
    return nullptr;
  }
  bool is_leaf() const { return children.empty(); }
  bool limits_users() const {
    return max_jobs_per_user != kUnlimited || max_gpu_milli_per_user != kUnlimited ||
           max_submitted_per_user != kUnlimited;
  }
  UserUsage used_by(std::string_view user) const {
    const auto found = users.find(user);
    return found == users.end() ? UserUsage() : found->second;
  }
};

}  // namespace berth::state
