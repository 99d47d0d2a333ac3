#include "state/eviction_rate.h"

#include <doctest/doctest.h>

namespace berth::state {
namespace {

Timestamp minute(std::int64_t m) { return Timestamp{m * 60'000}; }

TEST_CASE("eviction rate: an hour slides over what was stopped") {
  EvictionRate rate;
  CHECK(rate.left(2, minute(0)) == 2);
  CHECK(rate.next(minute(0)).is_never());
  rate.note(minute(0));
  rate.note(minute(10));
  CHECK(rate.left(2, minute(59)) == 0);
  CHECK(rate.left(1, minute(59)) == 0);  // the limit was lowered
  CHECK(rate.left(3, minute(59)) == 1);
  CHECK(rate.next(minute(59)) == minute(60));
  CHECK(rate.left(2, minute(60)) == 1);
  CHECK(rate.next(minute(60)) == minute(70));
  CHECK(rate.left(2, minute(70)) == 2);
}

TEST_CASE("eviction rate: what is older than an hour is not kept") {
  EvictionRate rate;
  for (int m = 0; m < 600; ++m) rate.note(minute(m));
  CHECK(rate.save().size() == 60);
}

}  // namespace
}  // namespace berth::state
