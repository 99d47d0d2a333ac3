#pragma once
// NominatedShares: the trust domains to which shares of a GPU are nominated, or reserved in a transaction. It prevents
// that one GPU is nominated to two trust domains (P11). Shares may be added and removed in any order.

#include <cstdint>
#include <map>
#include <tuple>

#include "model/ids.h"
#include "state/node_state.h"

namespace berth::state {

class NominatedShares {
 public:
  // Adds (sign +1) or removes (sign -1) one share, and updates the nominated trust domain of `gpu`.
  void count(NodeId node, std::uint8_t index, TrustDomainId domain, int sign, GpuSlot& gpu);
  // Removes all shares of the node. The caller counts them again.
  void forget(NodeId node);

  bool operator==(const NominatedShares&) const = default;

 private:
  using Key = std::tuple<NodeId, std::uint8_t, TrustDomainId>;
  std::map<Key, std::int32_t> shares_;  // counts are never 0
};

}  // namespace berth::state
