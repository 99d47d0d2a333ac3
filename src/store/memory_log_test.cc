// Tests of what only the log in memory can do: fail on request, and be damaged in place.

#include "store/memory_log.h"

#include <doctest/doctest.h>

#include <functional>

#include "store/log_test_records.h"

namespace berth::store {
namespace {

TEST_CASE("an asked-for failure comes at the n-th append, and the log is unusable until it is reopened") {
  for (const FailedAppend leaves : {FailedAppend::kNothingKept, FailedAppend::kAllKept}) {
    MemoryLog log;
    const std::uint64_t epoch = log.take_epoch().value();
    log.fail_append(2, leaves);
    append_records(log, epoch, 3);
    CHECK(log.append(epoch, 4, records_from(epoch, 4, 2)).error().code == ErrorCode::kIo);
    CHECK(log.append(epoch, 4, records_from(epoch, 4, 2)).error().code == ErrorCode::kIo);
    CHECK(log.take_epoch().error().code == ErrorCode::kIo);
    log.reopen();
    CHECK(seqs_from(log, 1).size() == (leaves == FailedAppend::kAllKept ? 5 : 3));
    append_records(log, log.take_epoch().value(), 1);
  }
}

TEST_CASE("the chain detects a change in each field of a record, in its hash and in the order") {
  const std::vector<std::function<void(MemoryLog&)>> damages = {
      [](MemoryLog& log) { log.stored(4).record.payload[0] ^= 1; },
      [](MemoryLog& log) { log.stored(4).record.payload += '.'; },
      [](MemoryLog& log) { log.stored(4).record.seq = 5; },
      [](MemoryLog& log) { log.stored(4).record.epoch += 1; },
      [](MemoryLog& log) { log.stored(4).record.time.ms += 1; },
      [](MemoryLog& log) { log.stored(4).record.kind ^= 1; },
      [](MemoryLog& log) { log.stored(4).record.version ^= 1; },
      [](MemoryLog& log) { log.stored(4).hash[31] ^= 1; },
      [](MemoryLog& log) { std::swap(log.stored(4), log.stored(5)); },
      [](MemoryLog& log) { std::swap(log.stored(4).record.payload, log.stored(7).record.payload); },
  };
  for (const auto& damage : damages) {
    MemoryLog log;
    append_records(log, log.take_epoch().value(), 8);
    REQUIRE(verify_chain(log, {}));
    damage(log);
    const auto report = verify_chain(log, {});
    REQUIRE_FALSE(report);
    CHECK(report.error().code == ErrorCode::kCorrupt);
    CHECK(report.error().message.starts_with("record 4:"));
  }
}

TEST_CASE("a damaged checkpoint is passed over for the older one, and said") {
  MemoryLog log;
  append_records(log, log.take_epoch().value(), 8);
  REQUIRE(log.save_checkpoint(3, "three"));
  REQUIRE(log.save_checkpoint(6, "six"));
  log.stored_checkpoint(6)[0] ^= 1;
  const auto loaded = log.load_checkpoint();
  REQUIRE(loaded);
  CHECK((*loaded)->seq == 3);
  CHECK((*loaded)->passed_over.size() == 1);
  CHECK(log.truncate_before(2).error().code == ErrorCode::kConflict);
}

}  // namespace
}  // namespace berth::store
