#pragma once
// A node of the queue tree with its limits, what runs below it, and what waits in it. Depth 0 is the root.

#include <cstdint>
#include <functional>
#include <map>
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

// Sorts the most deserving first: higher priority, then the lower level of attained service, then urgent before not
// urgent and the nearest deadline first, then older, then smaller id.
struct PendingKey {
  std::int64_t negated_priority = 0;
  std::int32_t level = 0;
  Timestamp due = Timestamp::never();  // of an urgent job: its deadline
  Timestamp submitted;
  JobId job;
  auto operator<=>(const PendingKey&) const = default;
};

// The same between jobs of two queues, whose levels do not compare; who is urgent passes nobody of another queue.
inline bool precedes_elsewhere(const PendingKey& a, const PendingKey& b) {
  return std::tie(a.negated_priority, a.submitted, a.job) < std::tie(b.negated_priority, b.submitted, b.job);
}

// A running charge that lies outside some guarantee; sorted by its place in the stack.
struct BorrowedKey {
  Seq order = 0;
  JobId job;
  std::uint32_t charge = 0;
  auto operator<=>(const BorrowedKey&) const = default;
};

// What one user has below a queue that limits its users.
struct UserUsage {
  std::int64_t jobs = 0;       // that run or are promised places
  std::int64_t gpu_milli = 0;  // of those
  std::int64_t submitted = 0;  // that run or wait; a service or an array is one
  bool operator==(const UserUsage&) const = default;
};

// How a queue uses its guarantee (state/guarantee_decay.h).
struct GuaranteeUse {
  Timestamp idle_since = Timestamp::never();     // it asks for no more than half of it since then
  Amounts idle_peak;                             // the most that it has asked for in that time
  Timestamp wanting_since = Timestamp::never();  // it asks for more than it since then
  Timestamp due = Timestamp::never();            // an index: when it changes if nothing else does
};

// What may come to lie within a queue's guarantee or has to leave it for others (control/guarantee_accounting.h), so
// that nobody has to look at all that runs there.
struct Stack {
  std::map<Amounts, std::set<BorrowedKey>> borrowed_of;  // all outside burst pools, alike in what they count
  std::set<BorrowedKey> entitled;                        // starts that borrow here and are within at their child
  Amounts idle_usage;                                    // the part within that borrows at its child
  Amounts within_above;                                  // the part within that is within at the parent, too
};

// What holds for the jobs of a queue when others want their places, its parents' words included (EvictionTermsConfig).
struct EvictionTerms {
  std::int64_t min_runtime_s = 0;
  std::int64_t cooldown_s = 0;
  std::int64_t grace_s = 0;
  QueueId min_runtime_of;                // the queue that says so; the root: the cluster does
  QueueId cooldown_of;                   // likewise
  QueueId grace_of;                      // likewise
  std::int64_t evictions_per_hour = 0;   // its own; 0: no limit
  QueueId limited_by = QueueId::none();  // the nearest on the way to the root that has such a limit, itself included
};

struct QueueState {
  QueueId id;
  QueueId parent;
  std::uint32_t depth = 0;
  std::uint32_t quota_path = 0;  // State::quota_path_of
  std::string path;              // "" for the root
  bool removed = false;
  std::vector<QueueId> children;
  std::vector<QueueId> keepers;  // those of the children that limit what they lend
  QuotaAmounts guaranteed;       // what counts; less than configured where it was not used (state/guarantee_decay.h)
  QuotaAmounts configured;
  std::int64_t guarantee_decay_ms = 0;  // never: 0
  Amounts max = Amounts::unlimited();
  Amounts lending_limit = Amounts::unlimited();
  bool limits_lending = false;
  std::int64_t max_jobs_per_user = kUnlimited;
  std::int64_t max_gpu_milli_per_user = kUnlimited;
  std::int64_t max_submitted_per_user = kUnlimited;
  std::int64_t weight = 1;
  TrustDomainId trust_domain;
  QueuePolicy policy = QueuePolicy::kBestEffort;
  std::vector<std::int64_t> service_thresholds;  // thousandths of a GPU times milliseconds; none: one level
  std::int64_t promote_after_ms = 0;             // never: 0
  EvictionTerms eviction;

  PastUsage past;                  // kept only while the configuration gives it a half-life
  Amounts usage;                   // of everything bound below, terminating included
  Amounts within_usage;            // the part that is within this queue's guarantee
  Amounts nominated;               // promised to claimants below
  Amounts nominated_within;        // the part for which room of this queue's guarantee is kept
  Amounts burst_usage;             // the part of `usage` that is in burst pools
  Amounts demand;                  // what waits below, at least; only with guarantee_decay
  GuaranteeUse guarantee_use;      // likewise
  std::set<BorrowedKey> borrowed;  // charges below that are not within here
  Stack stack;                     // of those that may move, where a guarantee is configured
  std::set<PendingKey> pending;    // leaves: jobs that wait
  std::map<std::uint64_t, std::set<PendingKey>> eq_classes;  // the same jobs by shape: what one cannot have, all cannot
  std::map<std::string, UserUsage, std::less<>> users;       // only where one user's part is limited
  std::int64_t pending_below = 0;                            // jobs that wait in the whole subtree
  std::int64_t running_below = 0;
  EvictionRate evictions;                           // of gangs below it, where its terms limit their rate
  std::map<std::int32_t, std::set<JobId>> running;  // leaves: jobs with an attempt, by priority

  // What fills the guarantee.
  Amounts within_or_nominated() const { return within_usage + nominated_within; }
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
