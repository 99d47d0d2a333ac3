#include "daemon/disk_reserve.h"

#include <doctest/doctest.h>

#include <string>

namespace berth::daemon {

constexpr std::uint64_t kMib = std::uint64_t{1} << 20;

TEST_CASE("the reserve is 1 % of the disk, within 64 MiB and 1 GiB, and at most a quarter of a small disk") {
  CHECK(disk_reserve(100 * kMib) == 25 * kMib);
  CHECK(disk_reserve(1'000 * kMib) == 64 * kMib);
  CHECK(disk_reserve(20'000 * kMib) == 200 * kMib);
  CHECK(disk_reserve(4'000'000 * kMib) == 1'024 * kMib);
}

TEST_CASE("a disk that cannot be asked, and one with room, admit jobs") {
  CHECK(check_disk_reserve("/no/such/directory"));
  CHECK(check_disk_reserve("/proc"));
}

TEST_CASE("in the reserve users stop jobs and nothing else, and administrators can do something about it") {
  for (const Command& one :
       {Command(CancelJob{JobId(1), "ann"}), Command(RevokeToken{"ci", "op"}),
        Command(BlockSubject{"user:ann", true, "op"}), Command(ReportNodeStatus{"n1", NodeStatus::kLost, ""}),
        Command(ReportCheckpoint{JobId(1), 1, 2})})
    CHECK(may_use_reserve(one));
  for (const Command& one :
       {Command(SubmitJob{}), Command(HoldJob{JobId(1), false, "ann"}), Command(PrioritizeJob{JobId(1), 5, "ann"}),
        Command(SignalJob{JobId(1), 10, "ann"}), Command(BindRole{{"user:zoe", Role::kMember, "a"}, true, "ann"}),
        Command(BlockSubject{"user:ann", false, "op"}), Command(UndoQueueChange{"a", "ann"})})
    CHECK_FALSE(may_use_reserve(one));
}

namespace {

SubmitJob job_with(std::int32_t elements, std::size_t environment = 0) {
  SubmitJob submit;
  submit.spec.queue = "a";
  submit.spec.groups.resize(1);
  submit.spec.groups.front().command = {"true"};
  submit.spec.groups.front().env = {{"X", std::string(environment, 'x')}};
  submit.spec.kind = elements == 0 ? JobKind::kGang : JobKind::kArray;
  submit.spec.array_size = elements;
  return submit;
}

}  // namespace

TEST_CASE("a job costs its document and what a job writes until its end") {
  const auto cost = log_cost(job_with(0));
  CHECK(cost > kBytesOfAJob);
  CHECK(cost < 2 * kBytesOfAJob);
  CHECK(log_cost(job_with(0, 10'000)) == cost + 10'000 + 1);  // one byte more tells the length
}

TEST_CASE("an array costs what its elements will write, when it is submitted") {
  CHECK(log_cost(job_with(1'000)) > 1'000 * kBytesOfAJob);
  CHECK(log_cost(job_with(1'000'000, 10'000)) > 10'000'000'000U);
}

TEST_CASE("a service costs what its replicas will write") {
  SubmitJob service = job_with(0, 10'000);
  service.spec.kind = JobKind::kService;
  const auto one = log_cost(job_with(0, 10'000));
  service.spec.groups.front().count = 1;
  CHECK(log_cost(service) > one);
  service.spec.groups.front().count = kMaxTasksPerJob;
  CHECK(log_cost(service) > std::uint64_t{kMaxTasksPerJob} * 10'000U);
}

TEST_CASE("stops and what operators and jobs report cost nothing, a change a little") {
  CHECK(log_cost(CancelJob{JobId(1), "u"}) == 0);
  CHECK(log_cost(CordonNode{"n1", true, false, "u", 0}) == 0);
  CHECK(log_cost(ReportCheckpoint{JobId(1), 1, 1}) == 0);
  CHECK(log_cost(HoldJob{JobId(1), true, "u"}) == kBytesOfAChange);
}

}  // namespace berth::daemon
