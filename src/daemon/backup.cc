#include "daemon/backup.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "daemon/version.h"
#include "identity/own_keys.h"
#include "store/data_directory.h"
#include "store/disk.h"
#include "store/durable_log.h"
#include "store/event_codec.h"
#include "store/hash_chain.h"
#include "store/log_copy.h"
#include "store/sqlite_log.h"

namespace berth::daemon {

namespace {

namespace fs = std::filesystem;

// What a server needs beside the log and does not make again as it was: the first token of the admin, the keys of jobs'
// identities, the identity of the directory, when tokens were used, and which uid is whose. Not copied: `head`, `clock`
// and `lock`, which belong to the moment; the output and checkpoints of jobs; what the running tasks have.
constexpr std::array kSideFiles{"token", "signing-keys.json", "machine", "token-uses.json", "task-uids"};

fs::path plain(const std::string& path) {
  std::error_code ignored;
  fs::path absolute = fs::absolute(path, ignored).lexically_normal();
  return absolute.has_filename() ? absolute : absolute.parent_path();
}

bool is_within(const fs::path& path, const fs::path& directory) {
  std::error_code ignored;
  const fs::path inner = fs::weakly_canonical(path, ignored);
  const fs::path outer = fs::weakly_canonical(directory, ignored);
  return std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first == outer.end();
}

// A directory under a name of its own until it is finished; removed if it never is.
class Unfinished {
 public:
  static Result<Unfinished> make(const fs::path& wanted) {
    std::string pattern = wanted.string() + ".unfinished-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr)
      return store::io_error(wanted.parent_path().string(), "make a directory in it", errno);
    return Unfinished(pattern);
  }
  Unfinished(Unfinished&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  Unfinished& operator=(Unfinished&&) = delete;
  ~Unfinished() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }

  // Gives it its name, durably. Rename takes the place of an empty directory, and of no other.
  Result<void> finish(const fs::path& wanted) {
    if (auto ok = store::sync_directory(path_); !ok) return ok;
    if (std::rename(path_.c_str(), wanted.c_str()) != 0) {
      if (errno == ENOTEMPTY || errno == EEXIST) return conflict(wanted.string() + " is not empty");
      return store::io_error(wanted.string(), "rename to it", errno);
    }
    path_.clear();
    return store::sync_directory(wanted.parent_path());
  }

 private:
  explicit Unfinished(fs::path path) : path_(std::move(path)) {}
  fs::path path_;
};

Result<BackupFile> described(const fs::path& directory, const std::string& name) {
  std::error_code failure;
  BackupFile file{name, fs::file_size(directory / name, failure), ""};
  if (failure) return store::io_error((directory / name).string(), "read", failure.value());
  auto hash = store::sha256_of_file(directory / name);
  if (!hash) return hash.error();
  file.sha256 = store::to_hex(*hash);
  return file;
}

Result<std::vector<BackupFile>> describe_files(const fs::path& directory) {
  const auto names = store::names_in(directory);
  if (!names) return names.error();
  std::vector<BackupFile> files;
  for (const std::string& name : *names) {
    auto file = described(directory, name);
    if (!file) return file.error();
    files.push_back(std::move(*file));
  }
  return files;
}

Result<void> write_new_file(const std::string& path, const std::string& text) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return store::io_error(path, "make", errno);
  store::Disk disk(std::nullopt, 0);
  auto done = disk.write(file, path, 0, text);
  if (done) done = disk.sync(file, path);
  ::close(file);
  return done ? store::keep_owner(fs::path(path).parent_path(), path) : done;
}

Result<void> copy_side_files(const fs::path& from, const fs::path& to) {
  for (const char* name : kSideFiles) {
    std::error_code ignored;
    if (!fs::exists(from / name, ignored)) continue;
    const auto copied = store::copy_plain_file(from / name, to / name);
    if (!copied && copied.error().code != ErrorCode::kNotFound) return copied;  // it may go meanwhile
  }
  return {};
}

}  // namespace

Result<void> check_new_directory(const std::string& path) {
  const fs::path wanted = plain(path);
  std::error_code failure;
  if (!fs::is_directory(wanted.parent_path(), failure))
    return not_found("there is no directory " + wanted.parent_path().string() + " to make " +
                     wanted.filename().string() + " in");
  const fs::perms mode = fs::status(wanted.parent_path(), failure).permissions();
  const auto has = [mode](fs::perms one) { return (mode & one) != fs::perms::none; };
  if (!failure && has(fs::perms::others_write) && !has(fs::perms::sticky_bit))
    return invalid(wanted.parent_path().string() +
                   " can be written by everybody, who could then read the secrets in a backup; name another directory");
  if (!fs::exists(wanted, failure)) return {};
  const bool is_empty = fs::is_directory(wanted, failure) && fs::is_empty(wanted, failure) && !failure;
  if (!is_empty) return conflict(wanted.string() + " is there, and not empty; name a new directory");
  return {};
}

Result<Backup> make_backup(const std::string& data_dir, const std::string& to, Timestamp now,
                           const std::function<bool()>& go_on) {
  const fs::path from = plain(data_dir);
  Backup backup;
  const fs::path wanted = plain(to);
  backup.path = wanted.string();
  if (auto ok = check_new_directory(backup.path); !ok) return ok.error();
  if (is_within(wanted, from)) return invalid(backup.path + " is in the data directory itself; name one outside of it");
  if (auto here = store::check_log_is_here(from.string()); !here) return here.error();
  auto unfinished = Unfinished::make(wanted);
  if (!unfinished) return unfinished.error();
  const fs::path& directory = unfinished->path();
  auto damaged = store::copy_checkpoints(from, directory, ~std::uint64_t{0});
  if (!damaged) return damaged.error();
  backup.warnings = std::move(*damaged);
  if (auto ok = store::copy_database(from, directory, go_on); !ok) return ok.error();
  if (auto ok = copy_side_files(from, directory); !ok) return ok.error();
  if (auto keys = identity::OwnKeys::check((directory / "signing-keys.json").string()); !keys)
    backup.warnings.push_back(keys.error().message);
  const auto report = verify_log(directory.string(), {.go_on = go_on});
  if (!report) return report.error();
  BackupManifest& manifest = backup.manifest;
  manifest.version = kVersionText;
  manifest.made = now;
  manifest.first_seq = report->first_seq;
  manifest.seq = report->end.seq;
  manifest.time = report->end.time;
  manifest.history_rows = report->history_rows;
  manifest.jobs = report->jobs;
  manifest.chain_hash = store::to_hex(report->end.chain_hash);
  manifest.state_hash = store::to_hex(report->end.state_hash);
  auto files = describe_files(directory);
  if (!files) return files.error();
  manifest.files = std::move(*files);
  if (auto ok = write_new_file(directory / kManifestFile, text_of(manifest)); !ok) return ok.error();
  if (auto ok = store::keep_owner(from, directory); !ok) return ok.error();
  if (auto ok = unfinished->finish(wanted); !ok) return ok.error();
  return backup;
}

namespace {

// Files that SQLite or the log would take for a part of it.
bool is_of_log(const std::string& name) {
  return name.starts_with("log.db") || name.starts_with("checkpoint-") || name == "head";
}

// Each file is as the manifest says, and none was added that would be read as well.
Result<void> check_files(const fs::path& directory, const BackupManifest& manifest) {
  const auto damaged = [&](const std::string& name, const std::string& what) {
    return Error{ErrorCode::kCorrupt, "the backup is damaged: " + (directory / name).string() + " " + what};
  };
  for (const BackupFile& file : manifest.files) {
    if (file.name.find('/') != std::string::npos || file.name.starts_with('.'))
      return damaged(kManifestFile, "names a file that cannot be in it");
    std::error_code ignored;
    if (!fs::exists(directory / file.name, ignored)) return damaged(file.name, "is missing");
    const auto found = described(directory, file.name);
    if (!found) return found.error();
    if (found->bytes != file.bytes)
      return damaged(file.name, fmt::format("has {} bytes, and had {}", found->bytes, file.bytes));
    if (found->sha256 != file.sha256) return damaged(file.name, "is not what was written: its SHA-256 is another one");
  }
  const auto names = store::names_in(directory);
  if (!names) return names.error();
  for (const std::string& name : *names) {
    const bool known = std::any_of(manifest.files.begin(), manifest.files.end(),
                                   [&](const BackupFile& file) { return file.name == name; });
    if (!known && is_of_log(name)) return damaged(name, "was added to it");
  }
  return {};
}

void count(const EventRecord& event, Forgotten& forgotten) {
  if (forgotten.events++ == 0) {
    forgotten.first = event.seq;
    forgotten.begin = event.time;
  }
  forgotten.last = event.seq;
  forgotten.end = event.time;
  ++forgotten.by_kind[std::string(kind_name(event.event))];
  if (const auto* job = std::get_if<JobSubmitted>(&event.event)) forgotten.submitted.push_back(job->job.value());
}

std::string range_of(const BackupManifest& manifest) {
  return fmt::format("the backup has events {} to {}, of {}", manifest.first_seq, manifest.seq,
                     to_iso8601(manifest.time));
}

// Returns the last event up to this time.
Result<Seq> last_until(const std::string& backup, const BackupManifest& manifest, Timestamp time) {
  if (time > manifest.made)
    return not_found("--at " + to_iso8601(time) + " is after the backup was made: " + to_iso8601(manifest.made));
  const auto log = store::SqliteLog::open_read_only(backup);
  if (!log) return log.error();
  Seq last = 0;
  Timestamp first;
  const auto read = (*log)->read((*log)->first_seq(), [&](const store::Record& record) -> Result<bool> {
    if (record.seq == (*log)->first_seq()) first = record.time;
    if (record.time > time) return false;
    last = record.seq;
    return true;
  });
  if (!read) return read.error();
  if (last == 0)
    return not_found("--at " + to_iso8601(time) + " is before the first event, which was at " + to_iso8601(first));
  return last;
}

Result<Seq> seq_to_restore(const RestoreQuestion& question, const BackupManifest& manifest) {
  const std::string& at = question.at;
  if (at.empty()) return manifest.seq;
  Seq seq = 0;
  const auto [end, error] = std::from_chars(at.data(), at.data() + at.size(), seq);
  if (error == std::errc() && end == at.data() + at.size()) {
    if (seq == 0 || seq < manifest.first_seq || seq > manifest.seq)
      return not_found(fmt::format("--at {}: there is no such event; {}", seq, range_of(manifest)));
    return seq;
  }
  const auto time = from_iso8601(at);
  if (!time || time->is_never())
    return invalid("--at: '" + at + "' is neither the number of an event nor a time such as 2026-11-21T08:15:30Z" +
                   leap_second_note(at));
  return last_until(question.backup, manifest, *time);
}

// Requires: the logs are the same up to the end of the shorter one, or up to the event that is restored.
Result<void> check_same_log(const store::SqliteLog& other, const RestoreQuestion& question, const RestorePlan& plan) {
  const auto backup = store::SqliteLog::open_read_only(question.backup);
  if (!backup) return backup.error();
  const Seq common = std::min(other.last().seq, plan.fold.seq);
  const auto theirs = other.hash_at(common);
  if (!theirs) return theirs.error();
  const auto ours = (*backup)->hash_at(common);
  if (!ours) return ours.error();
  if (*ours == *theirs) return {};
  return conflict(
      fmt::format("{} holds another log: its event {} is not that of the backup. It is of another cluster, "
                  "or was restored to an earlier event since; leave --beside out",
                  question.beside, common));
}

// What cannot be read of a dead directory is told and no error: then it is as good as lost.
Result<void> look_beside(const RestoreQuestion& question, RestorePlan& plan) {
  plan.beside.emplace();
  const auto log = store::SqliteLog::open_read_only(question.beside);
  if (!log) {
    if (log.error().code == ErrorCode::kNotFound) return log.error();
    plan.unread = log.error().message;
    return {};
  }
  if (auto same = check_same_log(**log, question, plan); !same) {
    if (same.error().code == ErrorCode::kConflict) return same;
    plan.unread = same.error().message;
    return {};
  }
  if ((*log)->last().seq <= plan.fold.seq) return {};
  const auto read = (*log)->read(plan.fold.seq + 1, [&](const store::Record& record) -> Result<bool> {
    const auto event = store::to_event(record);
    if (!event) return event.error();
    count(*event, *plan.beside);
    return true;
  });
  if (!read) plan.unread = read.error().message;
  return {};
}

}  // namespace

Result<RestorePlan> plan_restore(const RestoreQuestion& question) {
  RestorePlan plan;
  plan.backup = plain(question.backup).string();
  plan.beside_dir = question.beside;
  auto manifest = manifest_of(plan.backup);
  if (!manifest) return manifest.error();
  plan.manifest = std::move(*manifest);
  if (auto ok = check_files(plan.backup, plan.manifest); !ok) return ok.error();
  const auto seq = seq_to_restore(question, plan.manifest);
  if (!seq) return seq.error();
  VerifyQuestion fold{.at = *seq};
  fold.on_event = [&](const EventRecord& event) {
    if (event.seq <= *seq) return;
    count(event, plan.in_backup);
    if (const auto* finished = std::get_if<JobFinished>(&event.event))
      plan.finished_later.push_back(finished->job.value());
  };
  const auto report = verify_log(plan.backup, fold);
  if (!report) return report.error();
  if (!is_end_of(plan.manifest, report->end))
    return Error{ErrorCode::kCorrupt,
                 fmt::format("the backup is damaged: its log ends with event {} and folds to another state than its "
                             "manifest says, which is of event {}",
                             report->end.seq, plan.manifest.seq)};
  plan.fold = *seq == report->end.seq ? report->end : report->at.value();
  if (question.beside.empty()) return plan;
  if (auto ok = look_beside(question, plan); !ok) return ok.error();
  return plan;
}

namespace {

// A uid that was given since the backup owns files in volumes, and must not be another user's. The file only grows.
Result<void> take_over_uids(const std::string& beside, const fs::path& directory) {
  std::error_code failure;
  const fs::path newer = fs::path(beside) / "task-uids";
  if (beside.empty() || !fs::exists(newer, failure)) return {};
  fs::remove(directory / "task-uids", failure);
  return store::copy_plain_file(newer, directory / "task-uids");
}

}  // namespace

Result<void> restore(const RestorePlan& plan, const std::string& new_dir) {
  const fs::path wanted = plain(new_dir);
  if (auto ok = check_new_directory(new_dir); !ok) return ok;
  if (is_within(wanted, plan.backup)) return invalid(wanted.string() + " is in the backup itself; name one outside");
  auto unfinished = Unfinished::make(wanted);
  if (!unfinished) return unfinished.error();
  const fs::path& directory = unfinished->path();
  for (const BackupFile& file : plan.manifest.files) {
    if (auto ok = store::copy_plain_file(fs::path(plan.backup) / file.name, directory / file.name); !ok) return ok;
  }
  if (auto ok = check_files(directory, plan.manifest); !ok) return ok;
  if (auto ok = take_over_uids(plan.beside_dir, directory); !ok) return ok;
  if (plan.fold.seq != plan.manifest.seq) {
    if (auto ok = store::cut_after(directory, plan.fold.seq, plan.finished_later); !ok) return ok;
  }
  if (plan.fold.seq != 0) {
    if (auto ok = store::write_head(directory, {plan.fold.seq, 0, plan.fold.chain_hash}); !ok) return ok;
  }
  const auto proof = verify_log(directory.string());
  if (!proof) return proof.error();
  if (!(proof->end == plan.fold))
    return Error{ErrorCode::kCorrupt, "the restored log folds to another state than the backup; nothing was restored"};
  const std::string mark = fmt::format("from {} after event {}\n", plan.backup, plan.fold.seq);
  if (auto ok = write_new_file(directory / kRestoredFile, mark); !ok) return ok;
  if (auto ok = store::keep_owner(plan.backup, directory); !ok) return ok;
  return unfinished->finish(wanted);
}

Result<RestorePlan> drill(const std::string& backup) {
  auto plan = plan_restore({backup, "", ""});
  if (!plan) return plan;
  const fs::path place = plan->backup + ".drill";
  auto temporary = Unfinished::make(place);
  if (!temporary) return temporary.error();
  if (auto done = restore(*plan, (temporary->path() / "data").string()); !done) return done.error();
  return plan;
}

}  // namespace berth::daemon
