#include "policy/denial_counter.h"

#include <doctest/doctest.h>

namespace berth::policy {
namespace {

AccessDenied denial_of(std::string subject, std::string verb, std::string queue) {
  AccessDenied denied;
  denied.subject = std::move(subject);
  denied.proof = "token";
  denied.address = "10.0.0.1";
  denied.verb = std::move(verb);
  denied.queue = std::move(queue);
  return denied;
}

TEST_CASE("denials of one subject, verb and object are one row with their number and times") {
  DenialCounter counter;
  counter.count(denial_of("token:a", "read-log", "x"), Timestamp{1000});
  counter.count(denial_of("token:a", "read-log", "x"), Timestamp{1500});
  counter.count(denial_of("token:a", "stop-job", "x"), Timestamp{1200});
  const auto rows = counter.take(Timestamp{2000});
  REQUIRE_EQ(rows.size(), 2);
  CHECK_EQ(rows[0].verb, "read-log");
  CHECK_EQ(rows[0].count, 2);
  CHECK_EQ(rows[0].first.ms, 1000);
  CHECK_EQ(rows[0].last.ms, 1500);
  CHECK_EQ(rows[1].verb, "stop-job");
  CHECK_EQ(rows[1].count, 1);
  CHECK_FALSE(rows[1].others);
  CHECK(counter.take_all().empty());
}

TEST_CASE("jobs are objects of their own, and addresses are told apart only where nobody is proved") {
  DenialCounter counter;
  AccessDenied denied = denial_of("token:a", "see-job", "x");
  for (const std::uint64_t job : {7U, 8U, 7U}) {
    denied.job = JobId(job);
    counter.count(denied, Timestamp{1000});
  }
  denied.job = JobId::none();
  denied.subject.clear();
  for (const char* address : {"10.0.0.1", "10.0.0.2", "10.0.0.1"}) {
    denied.address = address;
    counter.count(denied, Timestamp{2000});
  }
  const auto rows = counter.take(Timestamp{2000});
  REQUIRE_EQ(rows.size(), 4);
  CHECK_EQ(rows[0].job.value(), 7);
  CHECK_EQ(rows[0].count, 2);
  CHECK_EQ(rows[1].job.value(), 8);
  CHECK_EQ(rows[2].address, "10.0.0.1");
  CHECK_EQ(rows[2].count, 2);
  CHECK_EQ(rows[3].address, "10.0.0.2");
}

TEST_CASE("what is denied is written at once after a quiet minute, and then not again for a minute") {
  DenialCounter counter;
  counter.count(denial_of("token:a", "read-log", "x"), Timestamp{100'000});
  CHECK_EQ(counter.take(Timestamp{100'001}).size(), 1);
  counter.count(denial_of("token:a", "read-log", "x"), Timestamp{100'002});
  CHECK(counter.take(Timestamp{160'000}).empty());
  const auto later = counter.take(Timestamp{160'001});
  REQUIRE_EQ(later.size(), 1);
  CHECK_EQ(later[0].first.ms, 100'002);
}

TEST_CASE("ten thousand denials a second for a minute are under 100 records, and none is lost") {
  DenialCounter counter;
  std::size_t records = 0;
  std::uint64_t counted = 0;
  const auto add = [&](const std::vector<AccessDenied>& rows) {
    records += rows.size();
    for (const AccessDenied& row : rows) counted += row.count;
  };
  // A subject that tries job after job, as many subjects, and as many addresses that prove nobody.
  std::uint64_t made = 0;
  for (std::int64_t ms = 0; ms < 60'000; ++ms) {
    for (int i = 0; i < 10; ++i, ++made) {
      AccessDenied denied = denial_of(i < 4 ? "token:one" : "token:" + std::to_string(made), "see-job", "x");
      if (i < 4) denied.job = JobId(made + 1);
      if (i >= 7) {
        denied.subject.clear();
        denied.address = "10.0." + std::to_string(made % 65'536);
      }
      counter.count(std::move(denied), Timestamp{1'000'000 + ms});
    }
    if (ms % 1000 == 0) add(counter.take(Timestamp{1'000'000 + ms}));
  }
  add(counter.take(Timestamp{1'060'000}));
  CHECK_EQ(made, 600'000);
  CHECK_EQ(counted, made);
  CHECK_LT(records, 100);
  CHECK_GT(records, 40);
}

TEST_CASE("a subject that tries many things keeps its name, and leaves rows to the others") {
  DenialCounter counter;
  for (int i = 0; i < 1000; ++i)
    counter.count(denial_of("token:loud", "see-queue", "q" + std::to_string(i)), Timestamp{1000});
  counter.count(denial_of("token:quiet", "read-log", "x"), Timestamp{2000});
  const auto rows = counter.take_all();
  REQUIRE_EQ(rows.size(), DenialCounter::kMostOfOne + 1);
  std::uint64_t shared_count = 0;
  for (const AccessDenied& row : rows) {
    if (row.others) {
      shared_count = row.count;
      CHECK_EQ(row.subject, "token:loud");
      CHECK(row.verb.empty());
      CHECK(row.queue.empty());
    }
  }
  CHECK_EQ(shared_count, 1000 - (DenialCounter::kMostOfOne - 1));
  CHECK_EQ(rows.back().subject, "token:quiet");
}

}  // namespace
}  // namespace berth::policy
