#include "state/nominated_shares.h"

#include <doctest/doctest.h>

namespace berth::state {
namespace {

constexpr TrustDomainId kRed(1);
constexpr TrustDomainId kBlue(2);

TEST_CASE("a GPU takes shares of the one domain that has nominated shares, and of none if two have") {
  NominatedShares nominated;
  GpuSlot gpu;
  CHECK(gpu.takes_shares_of(kBlue));
  nominated.count(NodeId(3), 1, kRed, +1, gpu);
  nominated.count(NodeId(3), 1, kRed, +1, gpu);
  CHECK(gpu.takes_shares_of(kRed));
  CHECK_FALSE(gpu.takes_shares_of(kBlue));
  nominated.count(NodeId(3), 1, kBlue, +1, gpu);
  CHECK_FALSE(gpu.takes_shares_of(kRed));
  CHECK_FALSE(gpu.takes_shares_of(kBlue));
  nominated.count(NodeId(3), 1, kRed, -1, gpu);
  CHECK_FALSE(gpu.takes_shares_of(kBlue));
  nominated.count(NodeId(3), 1, kRed, -1, gpu);
  CHECK(gpu.takes_shares_of(kBlue));
  CHECK_FALSE(gpu.takes_shares_of(kRed));
  nominated.count(NodeId(3), 1, kBlue, -1, gpu);
  CHECK(gpu.takes_shares_of(kRed));
  CHECK(nominated == NominatedShares());
}

TEST_CASE("what is taken back leaves the GPU as it was before") {
  NominatedShares nominated;
  GpuSlot gpu;
  nominated.count(NodeId(0), 0, kBlue, +1, gpu);
  nominated.count(NodeId(0), 0, kRed, +1, gpu);
  nominated.count(NodeId(0), 0, kRed, -1, gpu);
  CHECK(gpu.nominated_domain == kBlue);
  CHECK_FALSE(gpu.nominated_to_several);
}

TEST_CASE("GPUs and nodes are told apart") {
  NominatedShares nominated;
  GpuSlot first;
  GpuSlot second;
  GpuSlot elsewhere;
  nominated.count(NodeId(0), 0, kRed, +1, first);
  nominated.count(NodeId(0), 1, kBlue, +1, second);
  nominated.count(NodeId(1), 0, kBlue, +1, elsewhere);
  CHECK(first.takes_shares_of(kRed));
  CHECK(second.takes_shares_of(kBlue));
  NominatedShares only_elsewhere;
  GpuSlot fresh;
  only_elsewhere.count(NodeId(1), 0, kBlue, +1, fresh);
  nominated.forget(NodeId(0));
  CHECK(nominated == only_elsewhere);
}

}  // namespace
}  // namespace berth::state
