#pragma once
// The log on PostgreSQL, in the schema `berth` of one database. It keeps the contract of log.h, with one difference
// that a network makes: a connection that is lost, or a commit whose deadline is over, is kUnavailable at first instead
// of kIo. From then on every call is refused with kIo, as after a failed sync: what became of the commit is unknown,
// and only the next open finds out. docs/store.md describes its guarantees.
//
// An append is one statement, and so one transaction with one round trip: it moves the row `berth.log` from the extent
// that this writer knows to the next, and adds rows only if that row was so. After it, where the address names several
// servers, it is asked whether a synchronous standby has all that was written by then: a COMMIT also returns when its
// wait was cancelled or the list of standbys was emptied.

#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "store/data_directory.h"
#include "store/disk.h"
#include "store/durable_log.h"
#include "store/extent.h"
#include "store/hash_chain.h"
#include "store/head_file.h"
#include "store/postgres_connection.h"
#include "store/postgres_mark.h"
#include "store/postgres_schema.h"

namespace berth::store {

struct PostgresOptions {
  // The data directory of the server: it is locked, and notes which log it has and which record was acknowledged last.
  // Empty: no directory, as for a copy.
  std::filesystem::path directory;
  std::int64_t deadline_ms = 10'000;               // of each statement, its commit included
  bool unfinished = false;                         // the log is made by a copy, and is no log until finish_copy
  std::function<Result<void>()> once_locked = {};  // called once the directory is locked, before the log is opened
  PostgresFault fault = {};                        // for crash tests
};

class PostgresLog : public DurableLog {
 public:
  // Opens the log for writing, and creates it if missing. Errors, each with what to do: kConflict: another cluster's
  // log, or the directory has another server; kUnsupported: another schema version, a pooler in between, or settings
  // under which an acknowledged commit could be lost; kDenied: a right is missing; kCorrupt: the end of the log is not
  // the acknowledged one; kUnavailable: no server is there, or it has no standby yet.
  static Result<std::unique_ptr<PostgresLog>> open(const std::string& address, const PostgresOptions& options);
  // Opens the log for reading, even while a server writes it. last() stays as it was at the opening. Every writing call
  // is kDenied. Error kNotFound: the database has no log.
  static Result<std::unique_ptr<PostgresLog>> open_read_only(const std::string& address);

  using Log::append;
  Result<void> append(std::uint64_t epoch, std::uint64_t first_seq, std::span<const Record> records,
                      std::span<const HistoryRow> finished_jobs) override;
  Result<std::uint64_t> take_epoch() override;
  Head last() const override;
  std::uint64_t first_seq() const override;
  Result<void> read(std::uint64_t from_seq, const Visitor& visitor) const override;
  Result<void> save_checkpoint(std::uint64_t seq, std::string_view bytes) override;
  Result<std::optional<Checkpoint>> load_checkpoint() const override;
  Result<std::optional<Checkpoint>> load_checkpoint_at(std::uint64_t seq) const override;
  Result<std::vector<HistoryRow>> history(const HistoryQuery& query) const override;
  Result<void> truncate_before(std::uint64_t seq) override;
  Counters counters() const override;

  Result<Hash> hash_at(std::uint64_t seq) const override;
  const std::vector<std::string>& warnings() const override { return warnings_; }
  Result<void> check_foreign() const override;
  Result<void> check_pages() const override { return {}; }

  // Ends a copy: from now on a server may open it.
  Result<void> finish_copy();

 private:
  struct Change;
  struct Chunk;
  PostgresLog(PostgresAddress address, PostgresOptions options);
  Result<void> open_for_writing();
  Result<void> adopt(const PostgresMark* mark);
  Result<void> check_head_file();
  Result<void> usable() const;
  Result<void> writable() const;
  Error broken(const Error& error);
  Error note_failure(const Error& error);
  Error note_damage(const Error& error);
  Result<PostgresConnection> connect() const;
  // Runs one read on the connection for reading, and again on a new one where that was lost meanwhile.
  template <class Body>
  auto reading(const Body& body) const -> decltype(body(std::declval<PostgresConnection&>()));
  Result<void> change(const Change& change);
  Error refused_change(const Change& change, const Error& error) const;
  Result<void> is_durable(PostgresConnection& connection);
  Result<void> acknowledged(PostgresConnection& connection);
  Result<void> replicated(PostgresConnection& connection);
  Result<void> moved_to(const Extent& extent, std::uint64_t history_rows);
  Result<Chunk> read_chunk(std::uint64_t from_seq, const Hash& previous) const;
  Result<std::vector<std::uint64_t>> checkpoints() const;
  Result<Checkpoint> load_one(std::uint64_t seq) const;
  Result<void> write_checkpoint(std::uint64_t seq, const Hash& hash, std::string_view bytes);
  Result<void> may_cut_before(std::uint64_t seq) const;
  Extent extent() const;

  const PostgresAddress address_;
  const PostgresOptions options_;
  const PostgresUse use_;
  DataDirectory lock_;
  Disk disk_;  // of the head file
  HeadFile head_file_;
  std::string log_id_;
  PostgresConnection writer_;  // of the one thread that writes
  std::mutex checkpoint_mutex_;
  PostgresConnection checkpoint_writer_;  // guarded by checkpoint_mutex_
  mutable std::mutex reader_mutex_;
  mutable PostgresConnection reader_;  // guarded by reader_mutex_
  mutable HashChain reader_chain_;     // guarded by reader_mutex_
  std::vector<std::string> warnings_;
  HashChain chain_;
  mutable std::mutex extent_mutex_;  // guards what follows
  Extent extent_;
  std::uint64_t history_rows_ = 0;  // acknowledged ones
  Counters counters_;
  std::string failure_;  // empty: none
};

}  // namespace berth::store
