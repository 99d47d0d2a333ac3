#pragma once
// Backups of a data directory, and restores to a new one (docs/store.md). A backup is a directory with a copy of the
// log, the files that a server needs beside it, and a manifest. It is made under another name and gets its own only
// once it was checked as `berth verify` checks a log. A restore ends with a proof: the restored log is folded, and its
// hashes are those of the backup.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/timestamp.h"
#include "daemon/backup_manifest.h"
#include "daemon/verify.h"

namespace berth::daemon {

struct Backup {
  std::string path;
  BackupManifest manifest;
  std::vector<std::string> warnings;
};

// In a restored directory until a server has started on it: the server then gives no number of a forgotten job again.
inline constexpr const char* kRestoredFile = "restored";

// Makes a backup of the data directory, whether a server runs on it or not, as a new directory `to`, or in place of an
// empty one. `go_on` returns false to give up (kUnavailable). Errors: kNotFound: no log, or no directory for `to`;
// kConflict: `to` is not empty; kInvalid: `to` is in the data directory; kCorrupt: the log is damaged; kIo: a full
// disk. After an error there is no `to`.
Result<Backup> make_backup(const std::string& data_dir, const std::string& to, Timestamp now,
                           const std::function<bool()>& go_on = {});

// Events that are in one log and not in what is restored.
struct Forgotten {
  std::uint64_t events = 0;
  Seq first = 0;
  Seq last = 0;
  Timestamp begin;                               // of the first
  Timestamp end;                                 // of the last
  std::vector<std::uint64_t> submitted;          // jobs, replicas and elements included
  std::map<std::string, std::uint64_t> by_kind;  // events
};

struct RestoreQuestion {
  std::string backup;
  std::string at;      // the number of an event, or an ISO 8601 time; empty: the end of the backup
  std::string beside;  // a data directory to compare with, alive or dead; empty: none
};

struct RestorePlan {
  std::string backup;
  std::string beside_dir;  // as asked; empty: none
  BackupManifest manifest;
  LogFold fold;                               // what the restored log must fold to, from an own fold of the backup
  Forgotten in_backup;                        // what the backup has after that event
  std::optional<Forgotten> beside;            // what the other directory has after it
  std::string unread;                         // why it could not be read, or not to its end; empty: it was
  std::vector<std::uint64_t> finished_later;  // jobs whose history rows go

  // Whether something is forgotten, or could be that nobody can read.
  bool forgets() const { return in_backup.events > 0 || (beside && beside->events > 0) || !unread.empty(); }
};

// Checks the whole backup, and finds what a restore would forget. Changes nothing. Errors: kNotFound: no backup, or no
// such event or time in it; kCorrupt: it is damaged; kConflict: `beside` holds another log; kInvalid.
Result<RestorePlan> plan_restore(const RestoreQuestion& question);

// Makes the new directory, or takes an empty one, and proves the log in it. After an error there is no such directory.
// Error kConflict: it is not empty.
Result<void> restore(const RestorePlan& plan, const std::string& new_dir);

// Error kConflict: it is there and not empty; kNotFound: its parent is not there.
Result<void> check_new_directory(const std::string& path);

// Restores the backup to a temporary directory beside it, proves it, and removes it again. Returns the plan.
Result<RestorePlan> drill(const std::string& backup);

}  // namespace berth::daemon
