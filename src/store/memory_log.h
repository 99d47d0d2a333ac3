#pragma once
// The log in memory, for tests and simulation. It keeps the same contract as the durable log, chain included, and
// outlives the server under test. A crash is a server that is thrown away; a restart is a new server on the same
// MemoryLog after reopen(). Failures are set in advance, so that a seed reproduces them.

#include <map>
#include <mutex>

#include "store/hash_chain.h"
#include "store/log.h"

namespace berth::store {

// What a failed append leaves behind. Its caller cannot know which, just as with a disk.
enum class FailedAppend { kNothingKept, kAllKept };

class MemoryLog : public Log {
 public:
  using Log::append;
  Result<void> append(std::uint64_t epoch, std::uint64_t first_seq, std::span<const Record> records,
                      std::span<const HistoryRow> finished_jobs) override;
  Result<std::uint64_t> take_epoch() override;
  Head last() const override;
  std::uint64_t first_seq() const override;
  Result<void> read(std::uint64_t from_seq, const Visitor& visitor) const override;
  Result<void> save_checkpoint(std::uint64_t seq, std::string_view bytes) override;
  Result<std::optional<Checkpoint>> load_checkpoint() const override;
  Result<std::vector<HistoryRow>> history(const HistoryQuery& query) const override;
  Result<void> truncate_before(std::uint64_t seq) override;
  // A batch counts as the one sync that a durable log would make.
  Counters counters() const override;

  // The n-th append from now (1 is the next one) fails with kIo, and the log is unusable until reopen().
  void fail_append(std::uint64_t nth, FailedAppend leaves);
  void reopen();

  struct Row {
    Record record;
    Hash hash{};
  };
  // The stored row itself, for tests that damage it.
  Row& stored(std::uint64_t seq);
  // The stored bytes of the checkpoint at `seq`, for tests that damage them.
  std::string& stored_checkpoint(std::uint64_t seq);

 private:
  struct StoredCheckpoint {
    Hash head_hash{};
    Hash checksum{};
    std::string bytes;
  };

  Result<void> usable() const;
  bool due_to_fail();
  void keep(std::span<const Record> records, std::span<const HistoryRow> finished_jobs);
  const Hash& hash_at(std::uint64_t seq) const;
  Result<bool> copy_record(std::uint64_t seq, Hash& previous, Record& record) const;

  mutable std::mutex mutex_;
  mutable HashChain chain_;
  Head head_;
  std::uint64_t anchor_seq_ = 0;
  Hash anchor_hash_{};
  std::vector<Row> rows_;  // rows_[i] has seq anchor_seq_ + 1 + i
  std::vector<HistoryRow> history_;
  std::map<std::uint64_t, std::size_t> history_of_job_;
  std::map<std::uint64_t, StoredCheckpoint> checkpoints_;
  Counters counters_;
  std::uint64_t appends_until_failure_ = 0;  // 0: no failure is set
  FailedAppend failure_leaves_ = FailedAppend::kNothingKept;
  bool failed_ = false;
};

}  // namespace berth::store
