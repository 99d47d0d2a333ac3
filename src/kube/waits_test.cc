#include "kube/waits.h"

#include <doctest/doctest.h>

#include <array>
#include <bit>

#include "kube/queue_objects.h"

namespace berth::kube {
namespace {

TEST_CASE("shortened are all waits and none is forgotten") {
  using Numbers = std::array<std::int64_t, sizeof(Waits) / sizeof(std::int64_t)>;
  const Numbers all = std::bit_cast<Numbers>(Waits());
  const Numbers tenth = std::bit_cast<Numbers>(Waits().shortened(10));
  for (std::size_t i = 0; i < all.size(); ++i) {
    CAPTURE(i);
    CHECK_EQ(tenth[i], all[i] / 10);
    CHECK_GE(tenth[i], 500);
  }
}

TEST_CASE("queues that are not served are asked for again when the given wait is over") {
  const Waits waits = Waits().shortened(100);
  QueueObjects queues(waits);
  Timestamp now{1'000'000};
  queues.show({}, now);
  const auto first = queues.take();
  REQUIRE_EQ(first.size(), 1);
  queues.answered(first[0].id, 404, {}, now);
  now = now + (waits.no_queues_ms - 1);
  queues.show({}, now);
  CHECK(queues.take().empty());
  now = now + 1;
  queues.show({}, now);
  CHECK_EQ(queues.take().size(), 1);
}

}  // namespace
}  // namespace berth::kube
