#include "daemon/change_limit.h"

#include <doctest/doctest.h>

namespace berth::daemon {

TEST_CASE("one job's hold and priority are changed once a second after a while, and other things as before") {
  ChangeLimit limit;
  Timestamp now{1'000'000};
  std::size_t taken = 0;
  for (bool held = true; taken < 1000 && limit.take(HoldJob{JobId(7), held, "ann"}, now); held = !held) ++taken;
  CHECK(taken == 60);
  const auto refused = limit.take(PrioritizeJob{JobId(7), 3, "ann"}, now);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kUnavailable);
  CHECK(refused.error().message ==
        "job 7 was changed too often: 1 a second, and 60 at once, are taken; try again in a "
        "moment");
  CHECK(limit.take(HoldJob{JobId(8), true, "ann"}, now));
  CHECK(limit.take(CancelJob{JobId(7), "ann"}, now));
  CHECK(limit.take(ReportCheckpoint{JobId(7), 1, 10}, now));
  now = now + 1'000;
  CHECK(limit.take(PrioritizeJob{JobId(7), 3, "ann"}, now));
  CHECK_FALSE(limit.take(PrioritizeJob{JobId(7), 4, "ann"}, now));
}

TEST_CASE("roles and queues are limited likewise, and reports of saved work as a supervisor takes them") {
  ChangeLimit limit;
  const Timestamp now{1'000'000};
  const BindRole grant{{"user:zoe", Role::kMember, "research"}, true, "user:bob"};
  for (int i = 0; i < 60; ++i) CHECK(limit.take(grant, now));
  CHECK_FALSE(limit.take(grant, now));
  CHECK(limit.take(BindRole{{"user:yan", Role::kMember, "research"}, true, "user:bob"}, now));
  for (int i = 0; i < 60; ++i) CHECK(limit.take(UndoQueueChange{"research", "user:bob"}, now));
  CHECK_FALSE(limit.take(UndoQueueChange{"research", "user:bob"}, now));
  for (int i = 0; i < 300; ++i) CHECK(limit.take(ReportCheckpoint{JobId(7), 1, i}, now));
  CHECK_FALSE(limit.take(ReportCheckpoint{JobId(7), 1, 300}, now));
}

}  // namespace berth::daemon
