#pragma once
// The event log: the only durable truth of berth. Everything else, state and usage included, is a fold over it. The log
// does not know what it stores: a payload is bytes, whose form belongs to the event's kind and version.
//
// The contract, which every implementation keeps and log_contract_test.cc checks:
//
//  1. Records are numbered 1, 2, 3, ... without gap; a number is given once and never changes its record.
//  2. append is compare-and-set: it succeeds only if `epoch` is the epoch in force and `first_seq` is last().seq + 1.
//     Otherwise it is refused with kConflict and nothing is kept.
//  3. One batch is one durable transaction and one sync. After success all its records and history rows survive any
//     crash. After a refusal none of them exists. After a crash in the middle either all are there or none.
//  4. Nothing is seen before it is durable: last, read and history never show a record whose sync has not returned.
//  5. take_epoch raises the epoch in force by one, durably. From then on a writer with an older epoch is refused.
//  6. Each record is chained: its hash is SHA-256 over the previous hash and all of its fields (hash_chain.h). read
//     recomputes the chain. A record that does not fit is refused with kCorrupt and its sequence number, and neither it
//     nor any later one is shown.
//  7. A checkpoint is a folded state as of one sequence number. The newest two are kept, and perhaps older ones, which
//     load_checkpoint_at finds for reads of the past. load_checkpoint returns the
//     newest one with a correct checksum. A checkpoint that contradicts the log's own chain, or is beyond its end, is
//     kCorrupt.
//  8. truncate_before drops old records, only below the older of two checkpoints that both load. The anchor of the
//     chain stays, so that the rest can still be verified.
//  9. The first failed or short write or sync is returned as kIo. From then on every call that can fail is refused with
//     kIo, because the content of the disk is no longer known and a second try could report success falsely. last still
//     returns what was acknowledged. The caller ends its process; the next open decides. A full disk is such a failure,
//     too, and its message says so.
//     Where the log is on another machine, the first one may be kUnavailable instead: the connection was lost, or no
//     answer came in time, and a later open can find out what was kept. There a save_checkpoint that fails is an error
//     of that call alone, unless it met damage: a checkpoint only repeats what the log says, and the next one replaces
//     it.
// 10. append, take_epoch and truncate_before are called by one thread, the writer. last, read, history, first_seq,
//     counters, save_checkpoint and load_checkpoint may be called by any thread at the same time.

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/timestamp.h"

namespace berth::store {

struct Record {
  std::uint64_t seq = 0;
  std::uint64_t epoch = 0;
  Timestamp time;
  std::uint16_t kind = 0;
  std::uint16_t version = 0;
  std::string payload;
  bool operator==(const Record&) const = default;
};

// SHA-256. All zero before the first record.
using Hash = std::array<std::uint8_t, 32>;

struct Head {
  std::uint64_t seq = 0;    // sequence number of the last durable record; 0 in an empty log
  std::uint64_t epoch = 0;  // the epoch in force; 0 until take_epoch was called
  Hash hash{};              // of the last durable record
  bool operator==(const Head&) const = default;
};

// A finished job that left the state. It is written in the same transaction as the records that finished it.
struct HistoryRow {
  std::uint64_t job_id = 0;
  Timestamp finished;
  std::string bytes;
  std::uint64_t cursor = 0;  // set by the log: 1, 2, 3, ... in the order of finishing; 0 when passed to append
  bool operator==(const HistoryRow&) const = default;
};

struct HistoryQuery {
  std::optional<std::uint64_t> job_id = std::nullopt;                // only this job
  std::uint64_t after = 0;                                           // only rows with a greater cursor
  std::uint64_t before = std::numeric_limits<std::uint64_t>::max();  // only rows with a smaller cursor
  bool newest_first = false;
  std::size_t limit = 100;
};

struct Checkpoint {
  std::uint64_t seq = 0;  // the last record folded into it
  Hash head_hash{};       // that record's hash
  std::string bytes;
  std::vector<std::string>
      passed_over;  // newer checkpoints that are damaged, one sentence each, to be reported as warnings
};

// Work since this object was made. fsyncs counts the syncs of all files of the log; bytes counts payload bytes.
struct Counters {
  std::uint64_t appends = 0;
  std::uint64_t records = 0;
  std::uint64_t fsyncs = 0;
  std::uint64_t bytes = 0;
};

// Called with each record in order. It returns true to go on and false to stop. An Error ends the read, which returns
// it.
using Visitor = std::function<Result<bool>(const Record&)>;

class Log {
 public:
  virtual ~Log() = default;

  // Requires: at least one record, and records[i] has seq first_seq + i and epoch `epoch` (else kInvalid). Error
  // kConflict: a job of a history row is already in the history.
  virtual Result<void> append(std::uint64_t epoch, std::uint64_t first_seq, std::span<const Record> records,
                              std::span<const HistoryRow> finished_jobs) = 0;
  Result<void> append(std::uint64_t epoch, std::uint64_t first_seq, std::span<const Record> records) {
    return append(epoch, first_seq, records, {});
  }

  virtual Result<std::uint64_t> take_epoch() = 0;

  virtual Head last() const = 0;
  // Returns the first record that is kept: 1, or more after truncate_before; last().seq + 1 in an empty log.
  virtual std::uint64_t first_seq() const = 0;

  // Requires: from_seq is from first_seq() to last().seq + 1 (which reads nothing); else kNotFound. Records that are
  // appended meanwhile are read, too. No lock is held while the visitor runs, so it may call the log.
  virtual Result<void> read(std::uint64_t from_seq, const Visitor& visitor) const = 0;

  // Requires: seq is durable and not older than the newest checkpoint.
  virtual Result<void> save_checkpoint(std::uint64_t seq, std::string_view bytes) = 0;
  virtual Result<std::optional<Checkpoint>> load_checkpoint() const = 0;

  // Returns the newest sound checkpoint at or before `seq`; nothing if there is none.
  virtual Result<std::optional<Checkpoint>> load_checkpoint_at(std::uint64_t) const {
    return std::optional<Checkpoint>();
  }

  virtual Result<std::vector<HistoryRow>> history(const HistoryQuery& query) const = 0;

  virtual Result<void> truncate_before(std::uint64_t seq) = 0;

  virtual Counters counters() const = 0;
};

// The result of verify_chain for an undamaged log.
struct ChainReport {
  std::uint64_t records = 0;
  std::uint64_t first_seq = 0;
  std::uint64_t last_seq = 0;
  Hash head_hash{};
  std::uint64_t history_rows = 0;
};

// Called now and then with the number of records checked and of all records. It returns false to give up.
using ChainProgress = std::function<bool(std::uint64_t checked, std::uint64_t total)>;

// Reads every record and history row and recomputes every hash. The error names the first wrong sequence number;
// kUnavailable means that `progress` gave up. It proves only the bytes. The caller has to check that the state folded
// from them is the live one.
Result<ChainReport> verify_chain(const Log& log, const ChainProgress& progress);

// Compares the history with the log: every job-finished event has its row, and while the log is whole from its first
// record, row k is of the k-th of them. Returns kCorrupt with the first row or job that differs; kUnavailable where
// `progress` gave up. Requires a log that verify_chain found sound: a row's hash covers its bytes, not that it is
// there.
Result<void> verify_history(const Log& log, const ChainProgress& progress);

}  // namespace berth::store
