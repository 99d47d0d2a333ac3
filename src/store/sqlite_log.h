#pragma once
// The durable log of one machine: a SQLite database in a data directory, written by one server. docs/store.md describes
// its files, its guarantees and the meaning of each error.

#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>

#include "store/checkpoint_files.h"
#include "store/data_directory.h"
#include "store/disk.h"
#include "store/durable_log.h"
#include "store/file_in_place.h"
#include "store/head_file.h"
#include "store/log.h"
#include "store/shim_vfs.h"
#include "store/sqlite_reader.h"
#include "store/sqlite_writer.h"

namespace berth::store {

struct SqliteOptions {
  std::uint32_t fsync_delay_ms = 0;  // delay before each sync, as of a slow disk, for benchmarks
  // For crash tests. If absent, the environment variable BERTH_STORE_FAULT is used (grammar in disk.h).
  std::optional<DiskFault> fault = std::nullopt;
  // By how many pages the write-ahead log may grow before append moves it into the database.
  int wal_pages = 1000;
};

class SqliteLog : public DurableLog {
 public:
  // Opens the log for writing; creates the directory and an empty log if missing. Error kConflict: another server holds
  // the directory. Error kUnsupported: a newer schema. Error kCorrupt: the end of the log is not the acknowledged one.
  static Result<std::unique_ptr<SqliteLog>> open(const std::filesystem::path& directory,
                                                 const SqliteOptions& options = {});
  // Opens the log for reading, even while a server writes it. last() stays as it was at the opening; read shows
  // everything that is durable when it is called. Every writing call is kDenied.
  static Result<std::unique_ptr<SqliteLog>> open_read_only(const std::filesystem::path& directory);

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

  Result<Hash> hash_at(std::uint64_t seq) const override { return reader_->hash_at(seq); }
  const std::vector<std::string>& warnings() const override { return warnings_; }
  Result<void> check_foreign() const override;
  Result<void> check_pages() const override;
  // Returns the number of reads of SQLite's files since the log was opened.
  std::uint64_t file_reads() const { return disk_.reads(); }

 private:
  SqliteLog(const std::filesystem::path& directory, const SqliteOptions& options);
  Result<void> open_for_writing();
  Result<void> open_for_reading();
  Result<void> check_head_file();
  Result<void> writable() const;
  Result<void> usable() const;
  Error broken(const Error& error);
  Result<void> moved_to(const Extent& extent);
  Result<void> check_in_place();
  Result<void> move_wal(bool everything);
  Result<void> may_cut_before(std::uint64_t seq) const;
  Extent extent() const;

  const std::filesystem::path directory_;
  const SqliteOptions options_;
  DataDirectory lock_;
  mutable Disk disk_;
  ShimVfs vfs_;
  HeadFile head_file_;
  std::unique_ptr<SqliteWriter> writer_;  // null for a read-only log
  std::vector<FileInPlace> files_;        // those that the writer has open
  std::unique_ptr<SqliteReader> reader_;
  std::vector<std::string> warnings_;
  HashChain chain_;
  mutable std::mutex checkpoint_mutex_;  // guards checkpoints_
  CheckpointFiles checkpoints_;
  mutable std::mutex extent_mutex_;  // guards what follows
  Extent extent_;
  Counters counters_;
};

}  // namespace berth::store
