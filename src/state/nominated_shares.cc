#include "state/nominated_shares.h"

#include "base/check.h"

namespace berth::state {

void NominatedShares::count(NodeId node, std::uint8_t index, TrustDomainId domain, int sign, GpuSlot& gpu) {
  const auto entry = shares_.try_emplace({node, index, domain}).first;
  entry->second += sign;
  BERTH_CHECK(entry->second >= 0);
  if (entry->second == 0) shares_.erase(entry);
  gpu.nominated_domain = TrustDomainId();
  gpu.nominated_to_several = false;
  for (auto at = shares_.lower_bound({node, index, TrustDomainId(0)}); at != shares_.end(); ++at) {
    const auto& [of_node, of_gpu, of_domain] = at->first;
    if (of_node != node || of_gpu != index) break;
    gpu.nominated_to_several = gpu.nominated_domain.valid();
    if (!gpu.nominated_to_several) gpu.nominated_domain = of_domain;
  }
}

void NominatedShares::forget(NodeId node) {
  shares_.erase(shares_.lower_bound({node, 0, TrustDomainId(0)}),
                shares_.lower_bound({NodeId(node.value() + 1), 0, TrustDomainId(0)}));
}

}  // namespace berth::state
