#include "state/share_promises.h"

#include <doctest/doctest.h>

namespace berth::state {
namespace {

constexpr TrustDomainId kRed(1);
constexpr TrustDomainId kBlue(2);

TEST_CASE("a GPU takes shares of the one domain that is promised some, and of none if two are") {
  NominatedShares promises;
  GpuSlot gpu;
  CHECK(gpu.takes_shares_of(kBlue));
  promises.count(NodeId(3), 1, kRed, +1, gpu);
  promises.count(NodeId(3), 1, kRed, +1, gpu);
  CHECK(gpu.takes_shares_of(kRed));
  CHECK_FALSE(gpu.takes_shares_of(kBlue));
  promises.count(NodeId(3), 1, kBlue, +1, gpu);
  CHECK_FALSE(gpu.takes_shares_of(kRed));
  CHECK_FALSE(gpu.takes_shares_of(kBlue));
  promises.count(NodeId(3), 1, kRed, -1, gpu);
  CHECK_FALSE(gpu.takes_shares_of(kBlue));
  promises.count(NodeId(3), 1, kRed, -1, gpu);
  CHECK(gpu.takes_shares_of(kBlue));
  CHECK_FALSE(gpu.takes_shares_of(kRed));
  promises.count(NodeId(3), 1, kBlue, -1, gpu);
  CHECK(gpu.takes_shares_of(kRed));
  CHECK(promises == NominatedShares());
}

TEST_CASE("what is taken back leaves the GPU as it was before") {
  NominatedShares promises;
  GpuSlot gpu;
  promises.count(NodeId(0), 0, kBlue, +1, gpu);
  promises.count(NodeId(0), 0, kRed, +1, gpu);
  promises.count(NodeId(0), 0, kRed, -1, gpu);
  CHECK(gpu.nominated_domain == kBlue);
  CHECK_FALSE(gpu.promised_to_several);
}

TEST_CASE("GPUs and nodes are told apart") {
  NominatedShares promises;
  GpuSlot first;
  GpuSlot second;
  GpuSlot elsewhere;
  promises.count(NodeId(0), 0, kRed, +1, first);
  promises.count(NodeId(0), 1, kBlue, +1, second);
  promises.count(NodeId(1), 0, kBlue, +1, elsewhere);
  CHECK(first.takes_shares_of(kRed));
  CHECK(second.takes_shares_of(kBlue));
  NominatedShares only_elsewhere;
  GpuSlot fresh;
  only_elsewhere.count(NodeId(1), 0, kBlue, +1, fresh);
  promises.forget(NodeId(0));
  CHECK(promises == only_elsewhere);
}

}  // namespace
}  // namespace berth::state
