// Backups and restores of a data directory: the proof, what is forgotten, and everything that is refused.

#include "daemon/backup.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "billing/invoice.h"  // before meter.h: else its enumerators shadow constants of series.h
#include "control/hand_driven_fleet.h"
#include "daemon/backup_schedule.h"
#include "daemon/history_codec.h"
#include "daemon/snapshot.h"
#include "store/database_edit.h"
#include "store/event_codec.h"
#include "store/hash_chain.h"
#include "store/sqlite_log.h"
#include "store/temporary_directory.h"

namespace berth::daemon {
namespace {

namespace fs = std::filesystem;

constexpr Timestamp kMade{10'000'000};

// A data directory with a real log: three jobs, of which the first two have run. One minute passes before each command.
class Directory {
 public:
  explicit Directory(const char* node = "n1")
      : log_(store::SqliteLog::open(directory_.path()).value()), epoch_(log_->take_epoch().value()) {
    ClusterConfig config = default_cluster_config();
    config.gpu_models = {{"H100", 1000, 81'920}};
    config.queues = {control::HandDrivenFleet::queue("a", 8)};
    command(ApplyConfig{config, "op"});
    command(RegisterNode{fleet_.node(node)});
    run_job(node);
    after_first_ = log_->last().seq;
    time_of_first_ = fleet_.now;
    run_job(node);
    submit();
    store::write_file(path() / "token", "secret\n");
    store::write_file(path() / "lock", "");
  }

  JobId submit() { return command(SubmitJob{control::HandDrivenFleet::job("a", 2), ""}).job; }

  fs::path path() const { return directory_.path(); }
  std::string beside(const char* name) const { return (directory_.path().parent_path() / name).string(); }
  store::SqliteLog& log() { return *log_; }
  void save_checkpoint() { REQUIRE(log_->save_checkpoint(log_->last().seq, save_snapshot(fleet_.state, meter_))); }
  Seq after_first() const { return after_first_; }
  Timestamp time_of_first() const { return time_of_first_; }
  void end() { log_.reset(); }

 private:
  void write(control::Batch& batch) {
    control::reconcile(batch);
    std::vector<store::Record> records;
    for (const EventRecord& event : batch.records()) {
      records.push_back(store::to_record(event, epoch_));
      meter_.apply(event);
    }
    std::vector<store::HistoryRow> finished;
    for (const control::FinishedJob& one : batch.take_finished_jobs()) finished.push_back(to_history(one));
    if (!records.empty()) REQUIRE(log_->append(epoch_, records.front().seq, records, finished).has_value());
  }
  control::Reply command(const Command& command) {
    fleet_.now = fleet_.now + 60'000;
    control::Batch batch(fleet_.state, fleet_.now);
    const auto reply = control::handle(batch, command);
    REQUIRE_MESSAGE(reply.has_value(), (reply ? "" : reply.error().message));
    write(batch);
    return *reply;
  }
  void run_job(const char* node) {
    const JobId job = submit();
    control::Batch batch(fleet_.state, fleet_.now);
    Plan plan;
    plan.decisions.emplace_back(StartDecision{job, {fleet_.place(job, node, 0)}});
    control::commit(batch, plan);
    write(batch);
    command(ReportTaskExited{{job, 1, 0, 1, ExitReason::kExited, 0, ""}});
  }

  store::TemporaryDirectory directory_;
  std::unique_ptr<store::SqliteLog> log_;
  std::uint64_t epoch_ = 0;
  control::HandDrivenFleet fleet_;
  billing::Meter meter_;
  Seq after_first_ = 0;
  Timestamp time_of_first_;
};

Backup backed_up(const Directory& directory, const char* name = "backup") {
  const auto backup = make_backup(directory.path().string(), directory.beside(name), kMade);
  REQUIRE_MESSAGE(backup.has_value(), (backup ? "" : backup.error().message));
  return *backup;
}

RestorePlan planned(const RestoreQuestion& question) {
  const auto plan = plan_restore(question);
  REQUIRE_MESSAGE(plan.has_value(), (plan ? "" : plan.error().message));
  return *plan;
}

void check_plan_refused(const RestoreQuestion& question, ErrorCode code, std::string_view words) {
  const auto plan = plan_restore(question);
  REQUIRE_FALSE(plan.has_value());
  CAPTURE(plan.error().message);
  CHECK(plan.error().code == code);
  CHECK(plan.error().message.find(words) != std::string::npos);
}

void check_restored(const Result<void>& done) { REQUIRE_MESSAGE(done.has_value(), (done ? "" : done.error().message)); }

std::uint32_t mode_of(const fs::path& path) {
  struct stat status {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  return status.st_mode & 0777U;
}

std::size_t entries_beside(const Directory& directory) {
  const fs::path parent = directory.path().parent_path();
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(parent), fs::directory_iterator()));
}

}  // namespace

TEST_CASE("a backup beside a running server holds its log and its secrets, for their owner alone") {
  Directory directory;
  directory.save_checkpoint();
  const Backup backup = backed_up(directory);
  CHECK(backup.warnings.empty());
  CHECK(backup.manifest.seq == directory.log().last().seq);
  CHECK(backup.manifest.chain_hash == store::to_hex(directory.log().last().hash));
  CHECK(backup.manifest.history_rows == 2);
  CHECK(backup.manifest.jobs == 1);
  CHECK(mode_of(backup.path) == 0700);
  for (const char* name : {"log.db", "token", "backup.json"}) CHECK(mode_of(fs::path(backup.path) / name) == 0600);
  CHECK_FALSE(fs::exists(fs::path(backup.path) / "lock"));
  CHECK_FALSE(fs::exists(fs::path(backup.path) / "head"));
  CHECK(backup.manifest.files.size() == 3);  // the log, its checkpoint, the token
}

TEST_CASE("a restore has the log, the state and the files of the backup, and a server can go on from it") {
  Directory directory;
  directory.save_checkpoint();
  const Backup backup = backed_up(directory);
  const RestorePlan plan = planned({backup.path, "", ""});
  CHECK_FALSE(plan.forgets());
  const std::string fresh = directory.beside("fresh");
  check_restored(restore(plan, fresh));
  CHECK(store::file_bytes(fs::path(fresh) / "token") == "secret\n");
  const auto report = verify_log(fresh);
  REQUIRE(report.has_value());
  CHECK(report->end == plan.fold);
  CHECK(report->warnings.empty());  // its `head` says that the end of the log is there
  CHECK(report->checkpoint_compared);
  CHECK(store::SqliteLog::open(fresh).value()->take_epoch().value() == 2);
}

TEST_CASE("a restore at an event forgets what came after it, says so before, and leaves the backup as it is") {
  Directory directory;
  directory.save_checkpoint();
  const Backup backup = backed_up(directory);
  const std::string at = std::to_string(directory.after_first());
  const RestorePlan plan = planned({backup.path, at, ""});
  CHECK(plan.forgets());
  CHECK(plan.in_backup.first == directory.after_first() + 1);
  CHECK(plan.in_backup.last == backup.manifest.seq);
  CHECK(plan.in_backup.events == backup.manifest.seq - directory.after_first());
  CHECK(plan.in_backup.submitted.size() == 2);
  CHECK(plan.in_backup.by_kind.at("job-submitted") == 2);
  CHECK(plan.in_backup.by_kind.at("job-finished") == 1);
  CHECK(plan.in_backup.end - plan.in_backup.begin == 120'000);
  const std::string fresh = directory.beside("fresh");
  check_restored(restore(plan, fresh));
  const auto report = verify_log(fresh);
  REQUIRE(report.has_value());
  CHECK(report->end == plan.fold);
  CHECK(report->last_seq == directory.after_first());
  CHECK(report->history_rows == 1);
  CHECK(report->end.chain_hash == directory.log().hash_at(directory.after_first()).value());
  CHECK_FALSE(planned({backup.path, "", ""}).forgets());  // it still has all
}

TEST_CASE("a restore at a time keeps the last event up to it") {
  Directory directory;
  const Backup backup = backed_up(directory);
  for (const std::int64_t later_ms : {0, 59'999}) {  // the next command was a minute later
    const std::string at = to_iso8601(directory.time_of_first() + later_ms);
    CHECK(planned({backup.path, at, ""}).fold.seq == directory.after_first());
  }
  CHECK(planned({backup.path, to_iso8601(directory.time_of_first() + 60'000), ""}).fold.seq > directory.after_first());
  CHECK(planned({backup.path, to_iso8601(kMade), ""}).fold.seq == backup.manifest.seq);
}

TEST_CASE("an event or a time that the backup does not have is refused with what it has") {
  Directory directory;
  const Backup backup = backed_up(directory);
  const std::string range = fmt::format("events 1 to {}", backup.manifest.seq);
  check_plan_refused({backup.path, "0", ""}, ErrorCode::kNotFound, range);
  check_plan_refused({backup.path, std::to_string(backup.manifest.seq + 1), ""}, ErrorCode::kNotFound, range);
  check_plan_refused({backup.path, "1970-01-01T00:00:01Z", ""}, ErrorCode::kNotFound, "before the first event");
  check_plan_refused({backup.path, to_iso8601(kMade + 1), ""}, ErrorCode::kNotFound, "after the backup was made");
  check_plan_refused({backup.path, "yesterday", ""}, ErrorCode::kInvalid, "neither the number of an event nor a time");
}

TEST_CASE("beside a data directory, what it has and the restored one not is told as well") {
  Directory directory;
  const Backup backup = backed_up(directory);
  const std::string data = directory.path().string();
  CHECK(planned({backup.path, "", data}).beside->events == 0);
  const JobId later = directory.submit();
  const RestorePlan plan = planned({backup.path, "", data});
  CHECK(plan.forgets());
  CHECK(plan.in_backup.events == 0);
  CHECK(plan.beside->submitted == std::vector<std::uint64_t>{later.value()});
  CHECK(plan.beside->first == backup.manifest.seq + 1);
  directory.end();
  store::edit_database(data, fmt::format("UPDATE records SET payload = zeroblob(3) WHERE seq = {}", plan.beside->last));
  const RestorePlan dead = planned({backup.path, "", data});
  CHECK(dead.forgets());
  CHECK(dead.unread.find(fmt::format("record {}:", plan.beside->last)) != std::string::npos);
  Directory other;
  other.submit();
  store::write_file(other.path() / "token", "another\n");
  const Backup foreign = backed_up(other);
  other.end();
  store::edit_database(other.path(), "DELETE FROM records WHERE seq > 0");  // neither is read to its end
  CHECK(planned({foreign.path, "", other.path().string()}).forgets());
}

TEST_CASE("a directory that holds another log is not compared with") {
  Directory directory;
  const Backup backup = backed_up(directory);
  const std::string fork = directory.beside("fork");
  check_restored(restore(planned({backup.path, std::to_string(directory.after_first()), ""}), fork));
  {
    const auto log = store::SqliteLog::open(fork).value();
    const std::uint64_t epoch = log->take_epoch().value();
    auto record =
        store::to_record({log->last().seq + 1, kMade, NodeCordoned{NodeId(1), true, false, "op", {}, {}}}, epoch);
    REQUIRE(log->append(epoch, record.seq, std::span(&record, 1)));
  }
  check_plan_refused({backup.path, "", fork}, ErrorCode::kConflict, "holds another log");
}

TEST_CASE("a damaged backup is refused, and the message names the file") {
  Directory directory;
  const fs::path backup = backed_up(directory).path;
  const auto with = [&](const char* name, const std::string& bytes, std::string_view words) {
    const std::string before = store::file_bytes(backup / name);
    store::write_file(backup / name, bytes);
    check_plan_refused({backup.string(), "", ""}, ErrorCode::kCorrupt, words);
    store::write_file(backup / name, before);
  };
  const auto flipped = [&](const char* name, std::size_t at) {
    std::string bytes = store::file_bytes(backup / name);
    bytes[at] = static_cast<char>(bytes[at] ^ 1);
    return bytes;
  };
  const std::string log = store::file_bytes(backup / "log.db");
  with("log.db", log.substr(0, log.size() - 4096), "log.db has");
  for (std::size_t at = 0; at < log.size(); at += log.size() / 7)
    with("log.db", flipped("log.db", at), "log.db is not what");
  with("token", flipped("token", 2), "token is not what");
  const std::string manifest = store::file_bytes(backup / "backup.json");
  for (std::size_t at = 0; at + 1 < manifest.size(); ++at) {
    CAPTURE(at);
    with("backup.json", flipped("backup.json", at), "backup.json is no manifest of a backup");
  }
  with("backup.json", manifest.substr(0, 40), "backup.json is no manifest of a backup");
  Directory other;
  other.submit();
  with("backup.json", store::file_bytes(fs::path(backed_up(other).path) / "backup.json"), "the backup is damaged");
  store::write_file(backup / "log.db-wal", "rest of a crash");
  check_plan_refused({backup.string(), "", ""}, ErrorCode::kCorrupt, "log.db-wal was added");
  fs::remove(backup / "log.db-wal");
  CHECK(plan_restore({backup.string(), "", ""}));
  fs::remove(backup / "token");
  check_plan_refused({backup.string(), "", ""}, ErrorCode::kCorrupt, "token is missing");
  fs::remove(backup / "backup.json");
  check_plan_refused({backup.string(), "", ""}, ErrorCode::kNotFound, "no finished backup");
}

TEST_CASE("a manifest whose hashes are those of another log is found by folding, even where all files fit") {
  Directory directory;
  const fs::path backup = backed_up(directory).path;
  BackupManifest manifest = manifest_of(backup).value();
  manifest.state_hash[0] = manifest.state_hash[0] == '0' ? '1' : '0';
  store::write_file(backup / "backup.json", text_of(manifest));
  check_plan_refused({backup.string(), "", ""}, ErrorCode::kCorrupt, "folds to another state");
}

TEST_CASE("neither a backup nor a restore writes into a directory that is not empty, or lies in its source") {
  Directory directory;
  const std::string data = directory.path().string();
  const std::string full = directory.beside("full");
  fs::create_directory(full);
  store::write_file(fs::path(full) / "note", "mine");
  CHECK(make_backup(data, full, kMade).error().code == ErrorCode::kConflict);
  CHECK(make_backup(data, data + "/inside", kMade).error().code == ErrorCode::kInvalid);
  CHECK(make_backup(data, directory.beside("no/where"), kMade).error().code == ErrorCode::kNotFound);
  CHECK(make_backup(directory.beside("empty"), directory.beside("b"), kMade).error().code == ErrorCode::kNotFound);
  const Backup backup = backed_up(directory);
  const RestorePlan plan = planned({backup.path, "", ""});
  CHECK(restore(plan, full).error().code == ErrorCode::kConflict);
  CHECK(restore(plan, backup.path + "/inside").error().code == ErrorCode::kInvalid);
  fs::remove(fs::path(full) / "note");
  check_restored(restore(plan, full + "/"));  // an empty one is taken
  CHECK(verify_log(full)->end == plan.fold);
}

TEST_CASE("a failed backup leaves nothing behind: a damaged log, a full disk, an end that was asked for") {
  Directory directory;
  const std::string data = directory.path().string();
  const std::string to = directory.beside("backup");
  CHECK(make_backup(data, to, kMade, [] { return false; }).error().code == ErrorCode::kUnavailable);
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  ::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{8 * 1024, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  const auto full = make_backup(data, to, kMade);
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
  REQUIRE_FALSE(full);
  CHECK(full.error().code == ErrorCode::kIo);
  directory.end();
  store::edit_database(data, "UPDATE records SET time_ms = time_ms + 1 WHERE seq = 3");
  const auto damaged = make_backup(data, to, kMade);
  REQUIRE_FALSE(damaged);
  CHECK(damaged.error().code == ErrorCode::kCorrupt);
  CHECK(damaged.error().message.find("record 3:") != std::string::npos);
  CHECK(entries_beside(directory) == 1);  // the data directory alone
}

TEST_CASE("a drill proves a backup and leaves nothing behind; it refuses a damaged one") {
  Directory directory;
  const Backup backup = backed_up(directory);
  CHECK(drill(backup.path).value().fold.seq == backup.manifest.seq);
  CHECK(entries_beside(directory) == 2);
  store::write_file(fs::path(backup.path) / "token", "changed\n");
  CHECK(drill(backup.path).error().code == ErrorCode::kCorrupt);
  CHECK(entries_beside(directory) == 2);
}

TEST_CASE("a shelf keeps the newest backups, and removes an old one only after a new one was made") {
  Directory directory;
  const fs::path shelf_path = directory.beside("shelf");
  const BackupShelf shelf(directory.path().string(), {.to = shelf_path.string(), .every_s = 60, .keep = 2});
  CHECK(shelf.add(kMade, {}).error().code == ErrorCode::kNotFound);
  fs::create_directory(shelf_path);
  CHECK_FALSE(shelf.newest(kMade).has_value());
  fs::create_directory(shelf_path / "backup-by-hand");
  fs::create_directory(shelf_path / "backup-19700101T024640000Z.unfinished-AbCdEf");
  for (int i = 0; i < 3; ++i) REQUIRE(shelf.add(kMade + i * 60'000, {}));
  CHECK(shelf.newest(kMade + 120'000) == kMade + 120'000);
  CHECK(shelf.newest(kMade + 90'000) == kMade + 60'000);  // the last one is dated ahead
  CHECK_FALSE(shelf.add(kMade + 180'000, [] { return false; }));
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(shelf_path)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  CHECK(names ==
        std::vector<std::string>{"backup-19700101T024740000Z", "backup-19700101T024840000Z", "backup-by-hand"});
}

TEST_CASE("a shelf never removes backups of another log, be it longer or shorter") {
  for (const bool is_longer : {true, false}) {
    CAPTURE(is_longer);
    Directory real;
    Directory other("n2");
    (is_longer ? other : real).submit();
    const fs::path shelf_path = real.beside("shelf");
    fs::create_directory(shelf_path);
    REQUIRE(BackupShelf(real.path().string(), {.to = shelf_path.string(), .every_s = 60, .keep = 1}).add(kMade, {}));
    const BackupShelf shelf(other.path().string(), {.to = shelf_path.string(), .every_s = 60, .keep = 1});
    for (int i = 1; i < 4; ++i) {
      const auto made = shelf.add(kMade + i * 60'000, {});
      REQUIRE(made.has_value());
      REQUIRE(made->warnings.size() == 1);
      CHECK(made->warnings.front().starts_with("1 of the backups"));
    }
    CHECK(fs::exists(shelf_path / "backup-19700101T024640000Z"));
    CHECK(std::distance(fs::directory_iterator(shelf_path), fs::directory_iterator()) == 2);
  }
}

TEST_CASE("an event is refused where the next one was written at once with it") {
  Directory directory;
  const Backup backup = backed_up(directory);
  const auto log = store::SqliteLog::open_read_only(backup.path).value();
  Seq refused = 0;
  for (Seq seq = 1; seq < backup.manifest.seq; ++seq) {
    const auto plan = plan_restore({backup.path, std::to_string(seq), ""});
    Timestamp own;
    Timestamp next;
    REQUIRE(log->read(seq, [&](const store::Record& record) -> Result<bool> {
      (record.seq == seq ? own : next) = record.time;
      return record.seq == seq;
    }));
    CAPTURE(seq);
    CHECK(plan.has_value() == (own != next));
    if (!plan) CHECK(plan.error().message.find("in the middle of what was written at once") != std::string::npos);
    refused += plan ? 0U : 1U;
  }
  CHECK(refused > 0);
}

TEST_CASE("a restore beside a directory keeps the uids that were given since") {
  Directory directory;
  store::write_file(directory.path() / "task-uids", "50000 ann\n");
  const Backup backup = backed_up(directory);
  store::write_file(directory.path() / "task-uids", "50000 ann\n50001 bob\n");
  const std::string fresh = directory.beside("fresh");
  check_restored(restore(planned({backup.path, "", directory.path().string()}), fresh));
  CHECK(store::file_bytes(fs::path(fresh) / "task-uids") == "50000 ann\n50001 bob\n");
}

TEST_CASE("a directory that everybody writes is no place for a backup") {
  Directory directory;
  const fs::path open = directory.beside("open");
  fs::create_directory(open);
  fs::permissions(open, fs::perms::all);
  const auto refused = make_backup(directory.path().string(), (open / "backup").string(), kMade);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == ErrorCode::kInvalid);
  fs::permissions(open, fs::perms::all | fs::perms::sticky_bit);
  CHECK(make_backup(directory.path().string(), (open / "backup").string(), kMade));
}

}  // namespace berth::daemon
