#include "store/sqlite_log.h"

#include <fmt/format.h>

#include <cstdlib>

namespace berth::store {

namespace {

constexpr const char* kDatabase = "log.db";
constexpr const char* kHeadFile = "head";
constexpr const char* kFaultVariable = "BERTH_STORE_FAULT";
// The number of records dropped per transaction, so that truncating a long log needs little memory.
constexpr std::uint64_t kCutRecords = 20'000;

// Returns an error that names the file and, for damage, how far the log went: a database that does not open cannot say
// that.
Error cannot_open(const std::filesystem::path& directory, const Error& error) {
  const auto line = read_head_file(directory / kHeadFile);
  const bool tell = error.code == ErrorCode::kCorrupt && line;
  return {error.code, fmt::format("{}: {}{}", (directory / kDatabase).string(), error.message,
                                  tell ? fmt::format(" (record {} was acknowledged)", line->seq) : "")};
}

std::string head_is_mute(const std::filesystem::path& path, std::uint64_t last_seq) {
  return fmt::format(
      "{} is {}: that record {}, the last one in the log, is the last one acknowledged cannot be checked. Expected "
      "after "
      "a restore, possible after a power cut, else the end of the log may be lost",
      path.string(), std::filesystem::exists(path) ? "damaged" : "missing", last_seq);
}

Result<SqliteOptions> with_fault_of_environment(SqliteOptions options) {
  const char* const text = std::getenv(kFaultVariable);
  if (options.fault || text == nullptr || *text == '\0') return options;
  const auto fault = parse_disk_fault(text);
  if (!fault) return invalid(fmt::format("{}: {}", kFaultVariable, fault.error().message));
  options.fault = *fault;
  return options;
}

}  // namespace

SqliteLog::SqliteLog(const std::filesystem::path& directory, const SqliteOptions& options)
    : directory_(directory),
      options_(options),
      disk_(options.fault, options.fsync_delay_ms),
      vfs_(disk_),
      checkpoints_(directory, disk_) {}

Result<std::unique_ptr<SqliteLog>> SqliteLog::open(const std::filesystem::path& directory,
                                                   const SqliteOptions& options) {
  const auto all_options = with_fault_of_environment(options);
  if (!all_options) return all_options.error();
  std::unique_ptr<SqliteLog> log(new SqliteLog(directory, *all_options));
  auto lock = DataDirectory::take(directory);
  if (!lock) return lock.error();
  log->lock_ = std::move(*lock);
  if (auto ok = log->open_for_writing(); !ok) {
    // The error of the disk explains more than the error of SQLite.
    return log->disk_.failed() ? log->disk_.failure() : cannot_open(directory, ok.error());
  }
  return log;
}

Result<std::unique_ptr<SqliteLog>> SqliteLog::open_read_only(const std::filesystem::path& directory) {
  std::error_code failure;
  if (!std::filesystem::exists(directory / kDatabase, failure)) {
    if (failure) return io_error((directory / kDatabase).string(), "look for", failure.value());
    return not_found(fmt::format("{} holds no log", directory.string()));
  }
  std::unique_ptr<SqliteLog> log(new SqliteLog(directory, {}));
  if (auto ok = log->open_for_reading(); !ok) return cannot_open(directory, ok.error());
  return log;
}

Result<void> SqliteLog::open_for_writing() {
  const std::string database = (directory_ / kDatabase).string();
  auto writer = SqliteWriter::open(database, vfs_.name());
  if (!writer) return writer.error();
  writer_ = std::move(*writer);
  const auto extent = writer_->load();
  if (!extent) return extent.error();
  extent_ = *extent;
  auto reader = SqliteReader::open(database, vfs_.name());
  if (!reader) return reader.error();
  reader_ = std::move(*reader);
  if (auto ok = check_head_file(); !ok) return ok;
  auto head_file = HeadFile::open(directory_ / kHeadFile, disk_);
  if (!head_file) return head_file.error();
  head_file_ = std::move(*head_file);
  // A commit whose sync failed or was never made can still be in the write-ahead log, but only in the page cache. After
  // a failed sync the system may mark such a page clean and never write it. Moving everything into the database writes
  // and syncs those bytes again before anything is built on them.
  if (auto ok = move_wal(true); !ok) return ok;
  if (auto ok = head_file_.write({extent_.head.seq, extent_.head.hash}); !ok) return ok;
  for (const char* suffix : {"", "-wal"}) {
    auto file = FileInPlace::note(directory_ / (std::string(kDatabase) + suffix));
    if (!file) return file.error();
    files_.push_back(std::move(*file));
  }
  return sync_directory(directory_);
}

Result<void> SqliteLog::open_for_reading() {
  auto reader = SqliteReader::open((directory_ / kDatabase).string(), vfs_.name());
  if (!reader) return reader.error();
  reader_ = std::move(*reader);
  const auto extent = reader_->extent();
  if (!extent) return extent.error();
  extent_ = *extent;
  auto whole = check_head_file();
  if (whole || whole.error().code != ErrorCode::kCorrupt) return whole;
  // If a record was taken out and those behind it were moved up, the end is missing, too. The first record that does
  // not fit tells where.
  const auto chain = verify_chain(*this, {});
  if (chain || chain.error().code != ErrorCode::kCorrupt) return whole;
  return Error{ErrorCode::kCorrupt, chain.error().message + "; and " + whole.error().message};
}

// The acknowledged head must be in the log, with its hash. A restored log has no head file, and a power cut may leave a
// torn one. Neither is damage, but then nothing proves that the log has everything that was acknowledged.
Result<void> SqliteLog::check_head_file() {
  const auto line = read_head_file(directory_ / kHeadFile);
  const auto extent = reader_->extent();
  if (!extent) return extent.error();
  if (!line) {
    if (extent->head.seq > 0) warnings_.push_back(head_is_mute(directory_ / kHeadFile, extent->head.seq));
    return {};
  }
  if (line->seq > extent->head.seq) {
    return corrupt_record(extent->head.seq + 1,
                          fmt::format("missing: {} records up to {} were acknowledged and are gone",
                                      line->seq - extent->head.seq, line->seq));
  }
  if (line->seq < extent->anchor_seq) return {};  // truncated since
  const auto hash = reader_->hash_at(line->seq);
  if (!hash) return hash.error();
  if (*hash != line->hash) return corrupt_record(line->seq, "its hash is not the one that was acknowledged");
  return {};
}

Extent SqliteLog::extent() const {
  const std::lock_guard lock(extent_mutex_);
  return extent_;
}

Result<void> SqliteLog::usable() const {
  if (disk_.failed()) return disk_.failure();
  return {};
}

Result<void> SqliteLog::writable() const {
  if (writer_ == nullptr) return Error{ErrorCode::kDenied, "the log was opened for reading only"};
  return usable();
}

// A refusal, or a lock held by another process, leaves the log unchanged. After any other error only the next open can
// tell the state of the log.
Error SqliteLog::broken(const Error& error) {
  if (disk_.failed()) return disk_.failure();
  const bool unchanged =
      error.code == ErrorCode::kConflict || error.code == ErrorCode::kTooLarge || error.code == ErrorCode::kUnavailable;
  if (!unchanged) disk_.note_failure(error.message);
  return error;
}

Result<void> SqliteLog::append(std::uint64_t epoch, std::uint64_t first_seq, std::span<const Record> records,
                               std::span<const HistoryRow> finished_jobs) {
  if (auto ok = writable(); !ok) return ok;
  if (auto ok = check_batch(epoch, first_seq, records); !ok) return ok;
  const Extent from = extent();
  if (epoch != from.head.epoch || first_seq != from.head.seq + 1) return refused_append(from.head, epoch, first_seq);
  Extent to = from;
  std::vector<Hash> hashes;
  hashes.reserve(records.size());
  for (const Record& record : records) hashes.push_back(to.head.hash = chain_.next(to.head.hash, record));
  to.head.seq = records.back().seq;
  if (auto ok = writer_->append(from, to, records, hashes, finished_jobs); !ok) return broken(ok.error());
  if (auto ok = moved_to(to); !ok) return ok;
  const std::lock_guard lock(extent_mutex_);
  ++counters_.appends;
  counters_.records += records.size();
  for (const Record& record : records) counters_.bytes += record.payload.size();
  return {};
}

// Nothing may be acknowledged that went to a file which the next start does not find.
Result<void> SqliteLog::check_in_place() {
  for (const FileInPlace& file : files_) {
    if (auto ok = file.check(); !ok) {
      disk_.note_failure(ok.error().message);
      return disk_.failure();
    }
  }
  return {};
}

// After a commit: writes the head file, moves the write-ahead log if it is due, and shows the new end.
Result<void> SqliteLog::moved_to(const Extent& extent) {
  if (disk_.failed()) return disk_.failure();  // SQLite does not report every failure
  if (auto ok = check_in_place(); !ok) return ok;
  if (auto ok = head_file_.write({extent.head.seq, extent.head.hash}); !ok) return ok;
  if (writer_->wal_is_due(options_.wal_pages)) {
    if (auto ok = move_wal(false); !ok) return ok;
  }
  const std::lock_guard lock(extent_mutex_);
  extent_ = extent;
  return {};
}

Result<void> SqliteLog::move_wal(bool everything) {
  if (auto ok = writer_->checkpoint_wal(everything); !ok) return broken(ok.error());
  return head_file_.sync();
}

Result<std::uint64_t> SqliteLog::take_epoch() {
  if (auto ok = writable(); !ok) return ok.error();
  const Extent from = extent();
  Extent to = from;
  ++to.head.epoch;
  if (auto ok = writer_->set_epoch(from, to); !ok) return broken(ok.error());
  if (auto ok = moved_to(to); !ok) return ok.error();
  return to.head.epoch;
}

Head SqliteLog::last() const { return extent().head; }

std::uint64_t SqliteLog::first_seq() const { return extent().anchor_seq + 1; }

Result<void> SqliteLog::read(std::uint64_t from_seq, const Visitor& visitor) const {
  if (auto ok = usable(); !ok) return ok;
  const Extent now = extent();
  if (from_seq <= now.anchor_seq) return not_in_log(from_seq, now.anchor_seq + 1, now.head.seq);
  const auto previous = reader_->hash_at(from_seq - 1);
  if (!previous) {
    const bool absent = previous.error().code == ErrorCode::kNotFound;
    return absent ? not_in_log(from_seq, now.anchor_seq + 1, now.head.seq) : previous.error();
  }
  Hash before_next = *previous;
  while (true) {
    const auto chunk = reader_->read(from_seq, before_next);
    if (!chunk) return chunk.error();
    for (const Record& record : chunk->records) {
      const auto go_on = visitor(record);
      if (!go_on) return go_on.error();
      if (!*go_on) return {};
    }
    if (chunk->damage) return *chunk->damage;
    if (chunk->records.empty()) return {};
    from_seq += chunk->records.size();
    before_next = chunk->last_hash;
  }
}

Result<void> SqliteLog::save_checkpoint(std::uint64_t seq, std::string_view bytes) {
  if (auto ok = writable(); !ok) return ok;
  const auto hash = reader_->hash_at(seq);
  if (!hash) return hash.error();
  const std::lock_guard lock(checkpoint_mutex_);
  const std::vector<std::uint64_t> kept = checkpoints_.list();
  if (!kept.empty() && seq < kept.front()) {
    return invalid(fmt::format("a checkpoint at {} is newer than {}", kept.front(), seq));
  }
  return checkpoints_.save(seq, *hash, bytes);
}

Result<std::optional<Checkpoint>> SqliteLog::load_checkpoint() const {
  if (auto ok = usable(); !ok) return ok.error();
  const std::lock_guard lock(checkpoint_mutex_);
  std::vector<std::string> passed_over;
  for (const std::uint64_t seq : checkpoints_.list()) {
    auto loaded = checkpoints_.load(seq);
    if (!loaded) {
      passed_over.push_back(loaded.error().message);
      continue;
    }
    const auto hash = reader_->hash_at(seq);
    if (!hash) return corrupt_record(seq, fmt::format("a checkpoint says it was there: {}", hash.error().message));
    if (*hash != loaded->head_hash) return corrupt_record(seq, "its hash is not the one that a checkpoint of it says");
    loaded->passed_over = std::move(passed_over);
    return std::optional(std::move(*loaded));
  }
  const std::uint64_t anchor_seq = extent().anchor_seq;
  if (anchor_seq > 0) return corrupt_record(anchor_seq, "it was cut off, and no checkpoint that covers it loads");
  return std::optional<Checkpoint>();
}

// The lock is held for the time of a look only: a file that is removed meanwhile is passed over.
Result<std::optional<Checkpoint>> SqliteLog::load_checkpoint_at(std::uint64_t seq) const {
  if (auto ok = usable(); !ok) return ok.error();
  std::vector<std::uint64_t> kept;
  {
    const std::lock_guard lock(checkpoint_mutex_);
    kept = checkpoints_.list();
  }
  for (const std::uint64_t one : kept) {
    if (one > seq) continue;
    auto loaded = checkpoints_.load(one);
    if (!loaded) continue;
    const auto hash = reader_->hash_at(one);
    if (hash && *hash == loaded->head_hash) return std::optional(std::move(*loaded));
  }
  return std::optional<Checkpoint>();
}

Result<std::vector<HistoryRow>> SqliteLog::history(const HistoryQuery& query) const {
  if (auto ok = usable(); !ok) return ok.error();
  return reader_->history(query);
}

Result<void> SqliteLog::may_cut_before(std::uint64_t seq) const {
  const std::lock_guard lock(checkpoint_mutex_);
  const std::vector<std::uint64_t> kept = checkpoints_.list();
  if (kept.size() < CheckpointFiles::kKept || seq > kept[CheckpointFiles::kKept - 1]) {
    return conflict(
        fmt::format("records before {} are needed: the log can be cut only below the older of two checkpoints", seq));
  }
  for (std::size_t i = 0; i < CheckpointFiles::kKept; ++i) {
    if (const auto loaded = checkpoints_.load(kept[i]); !loaded) return conflict(loaded.error().message);
  }
  return {};
}

Result<void> SqliteLog::truncate_before(std::uint64_t seq) {
  if (auto ok = writable(); !ok) return ok;
  if (seq <= first_seq()) return {};
  if (auto ok = may_cut_before(seq); !ok) return ok;
  while (first_seq() < seq) {
    const Extent from = extent();
    Extent to = from;
    to.anchor_seq = std::min(seq - 1, from.anchor_seq + kCutRecords);
    const auto hash = reader_->hash_at(to.anchor_seq);
    if (!hash) return hash.error();
    to.anchor_hash = *hash;
    if (auto ok = writer_->cut(from, to); !ok) return broken(ok.error());
    if (auto ok = moved_to(to); !ok) return ok;
  }
  return {};
}

Counters SqliteLog::counters() const {
  const std::lock_guard lock(extent_mutex_);
  Counters counters = counters_;
  counters.fsyncs = disk_.fsyncs();
  return counters;
}

Result<void> SqliteLog::check_foreign() const { return reader_->check_foreign(); }

Result<void> SqliteLog::check_pages() const { return reader_->check_pages(); }

}  // namespace berth::store
