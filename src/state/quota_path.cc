#include "state/quota_path.h"

#include <map>
#include <utility>
#include <vector>

#include "state/state.h"

namespace berth::state {

namespace {

bool has_rules(const State& state, const QueueState& queue) {
  if (!queue.parent.valid()) return true;
  return !(queue.max == Amounts::unlimited()) || queue.guaranteed.stated != 0 || queue.limits_users() ||
         !state.queue(queue.parent).keepers.empty();
}

}  // namespace

void State::configure_quota_paths() {
  using Asker = std::pair<TrustDomainId, std::vector<bool>>;
  std::map<Asker, std::uint32_t> askers;
  std::map<std::pair<QueueId, std::uint32_t>, std::uint32_t> known;
  quota_paths_.clear();
  for (QueueState& queue : queues_) {
    QuotaPath here;
    here.rules_from = queue.id;
    while (!has_rules(*this, queues_[here.rules_from.index()]))
      here.rules_from = queues_[here.rules_from.index()].parent;
    for (QueueId q = here.rules_from; q.valid(); q = queues_[q.index()].parent)
      here.limits_users = here.limits_users || queues_[q.index()].limits_users();
    Asker asker{queue.trust_domain, {}};
    for (std::uint32_t pool = 0; pool < pools_.size(); ++pool) asker.second.push_back(is_open_to(queue.id, pool));
    here.asker = askers.try_emplace(std::move(asker), static_cast<std::uint32_t>(askers.size())).first->second;
    const auto [found, fresh] =
        known.try_emplace({here.rules_from, here.asker}, static_cast<std::uint32_t>(quota_paths_.size()));
    if (fresh) quota_paths_.push_back(here);
    queue.quota_path = found->second;
  }
}

}  // namespace berth::state
