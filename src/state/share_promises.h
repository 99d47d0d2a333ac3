#pragma once
// Whose shares of GPUs are promised, or set aside in a trial: the trust domains, so that a GPU is not promised to two
// (P11). What is counted and taken back again, in whatever order, leaves nothing behind.

#include <cstdint>
#include <map>
#include <tuple>

#include "model/ids.h"
#include "state/node_state.h"

namespace berth::state {

class NominatedShares {
 public:
  // One share more or less; the GPU is told.
  void count(NodeId node, std::uint8_t index, TrustDomainId domain, int sign, GpuSlot& gpu);
  // What is there is about to be counted anew.
  void forget(NodeId node);

  bool operator==(const NominatedShares&) const = default;

 private:
  using Key = std::tuple<NodeId, std::uint8_t, TrustDomainId>;
  std::map<Key, std::int32_t> shares_;  // none of them 0
};

}  // namespace berth::state
