#pragma once
// Records for the tests of store/. The content of each follows from its sequence number, so tests can check what they
// read without keeping what they wrote.

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "store/log.h"

namespace berth::store {

inline Record record_at(std::uint64_t epoch, std::uint64_t seq) {
  return {seq,
          epoch,
          {1'700'000'000'000 + static_cast<std::int64_t>(seq) * 10},
          static_cast<std::uint16_t>(seq % 40),
          static_cast<std::uint16_t>(1 + seq % 3),
          "payload of record " + std::to_string(seq) + std::string(seq % 50, '.')};
}

inline std::vector<Record> records_from(std::uint64_t epoch, std::uint64_t first_seq, std::uint64_t count) {
  std::vector<Record> records;
  for (std::uint64_t i = 0; i < count; ++i) records.push_back(record_at(epoch, first_seq + i));
  return records;
}

inline void append_records(Log& log, std::uint64_t epoch, std::uint64_t count) {
  const std::uint64_t first_seq = log.last().seq + 1;
  const auto appended = log.append(epoch, first_seq, records_from(epoch, first_seq, count));
  REQUIRE_MESSAGE(appended.has_value(), (appended ? std::string() : appended.error().message));
}

inline std::vector<std::uint64_t> seqs_from(const Log& log, std::uint64_t from_seq) {
  std::vector<std::uint64_t> seqs;
  const auto read = log.read(from_seq, [&](const Record& record) {
    seqs.push_back(record.seq);
    return true;
  });
  REQUIRE_MESSAGE(read.has_value(), (read ? std::string() : read.error().message));
  return seqs;
}

inline std::vector<std::uint64_t> jobs_of(const Log& log, const HistoryQuery& query) {
  std::vector<std::uint64_t> jobs;
  const auto rows = log.history(query);
  REQUIRE(rows);
  for (const HistoryRow& row : *rows) jobs.push_back(row.job_id);
  return jobs;
}

}  // namespace berth::store
