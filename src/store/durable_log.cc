#include "store/durable_log.h"

#include <fmt/format.h>

#include <filesystem>

#include "store/data_directory.h"
#include "store/disk.h"
#include "store/head_file.h"
#include "store/postgres_log.h"
#include "store/postgres_mark.h"
#include "store/sqlite_log.h"

namespace berth::store {

namespace {

// A directory that has a log of its own may only go on with a database that goes on with that log.
Result<void> check_continues(const std::filesystem::path& directory, const std::string& database) {
  std::error_code failure;
  if (!std::filesystem::exists(directory / "log.db", failure)) return {};
  const auto marked = read_postgres_mark(directory);
  if (!marked) return marked.error();
  if (*marked) return {};  // it went on already
  const auto own = SqliteLog::open_read_only(directory);
  if (!own) return own.error();
  const Head end = (*own)->last();
  if (end.seq == 0) return {};
  const auto refused = [&] {
    return conflict(
        fmt::format("{} has a log of its own, up to record {}, and the database does not go on with it. Copy "
                    "it first (berth store copy {} ADDRESS), or give a new directory by --data",
                    directory.string(), end.seq, directory.string()));
  };
  const auto there = PostgresLog::open_read_only(database);
  if (!there) return there.error().code == ErrorCode::kNotFound ? refused() : there.error();
  const auto hash = (*there)->hash_at(end.seq);
  if (!hash) return hash.error().code == ErrorCode::kNotFound ? refused() : hash.error();
  if (*hash != end.hash) return refused();
  Disk disk(std::nullopt, 0);
  auto head = HeadFile::open(directory / kPostgresHead, disk);
  if (!head) return head.error();
  return head->write({end.seq, end.hash});
}

}  // namespace

Result<void> check_log_is_here(const std::string& directory) {
  const auto mark = read_postgres_mark(directory);
  if (!mark) return mark.error();
  if (!*mark) return {};
  return conflict(
      fmt::format("the log of {} is on {} (the file log.postgres in it says so): name that address. To go back to "
                  "SQLite, berth store copy it to this directory",
                  directory, (*mark)->shown));
}

Result<std::unique_ptr<DurableLog>> open_log(const LogPlace& place) {
  if (place.database.empty()) {
    if (auto ok = check_log_is_here(place.directory); !ok) return ok.error();
    SqliteOptions options;
    options.fsync_delay_ms = place.fsync_delay_ms;
    auto log = SqliteLog::open(place.directory, options);
    if (!log) return log.error();
    return std::unique_ptr<DurableLog>(std::move(*log));
  }
  PostgresOptions options;
  options.directory = place.directory;
  options.once_locked = [&] { return check_continues(place.directory, place.database); };
  options.deadline_ms = place.commit_deadline_ms;
  auto log = PostgresLog::open(place.database, options);
  if (!log) return log.error();
  return std::unique_ptr<DurableLog>(std::move(*log));
}

Result<std::unique_ptr<DurableLog>> open_log_read_only(const std::string& where) {
  if (is_postgres_address(where)) {
    auto log = PostgresLog::open_read_only(where);
    if (!log) return log.error();
    return std::unique_ptr<DurableLog>(std::move(*log));
  }
  if (auto ok = check_log_is_here(where); !ok) return ok.error();
  auto log = SqliteLog::open_read_only(where);
  if (!log) return log.error();
  return std::unique_ptr<DurableLog>(std::move(*log));
}

}  // namespace berth::store
