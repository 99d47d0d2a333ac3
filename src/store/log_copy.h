#pragma once
// Copies of a log in another directory, for backups and restores (docs/store.md). The source may be in use by a server:
// it is only read, and its database only through SQLite. The target must be of the caller alone. Files are made with
// mode 0600 and synced; sync_directory(target) makes their names durable. A copy is not checked here: verify_chain does
// that.

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "store/log.h"

namespace berth::store {

// Returns false to give up, which the copy returns as kUnavailable. Called every few milliseconds.
using CopyProgress = std::function<bool()>;

// Writes records, history and extent, as they are at one moment, to target/log.db. No server waits for it. Errors:
// kNotFound for a directory without a log, kCorrupt for a damaged page, kIo for a full disk.
Result<void> copy_database(const std::filesystem::path& directory, const std::filesystem::path& target,
                           const CopyProgress& go_on);

// Copies the checkpoints up to `last` that load. Called before copy_database, so that none lies beyond the copy's end.
// Returns a sentence for each damaged one, which is left out.
Result<std::vector<std::string>> copy_checkpoints(const std::filesystem::path& directory,
                                                  const std::filesystem::path& target, std::uint64_t last);

// Copies one file other than log.db; if this process is root, to the same owner. Errors: kNotFound, kIo.
Result<void> copy_plain_file(const std::filesystem::path& from, const std::filesystem::path& to);

// Gives `to` the owner of `from`, if this process is root.
Result<void> keep_owner(const std::filesystem::path& from, const std::filesystem::path& to);

// Drops all records after `seq`, and the history rows of `finished_later`, the jobs that they finished. The epoch
// stays: a writer of before is still refused. Requires: no other process has the log open, and it has no `head` yet.
// Error kNotFound: `seq` is not in the log.
Result<void> cut_after(const std::filesystem::path& directory, std::uint64_t seq,
                       std::span<const std::uint64_t> finished_later);

// Writes the file `head`: the log of the directory ends with this record, and nothing was acknowledged after it.
Result<void> write_head(const std::filesystem::path& directory, const Head& head);

// Requires: the file is no database that this process has open, since closing it would drop SQLite's locks.
Result<Hash> sha256_of_file(const std::filesystem::path& path);

}  // namespace berth::store
