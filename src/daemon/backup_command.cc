#include "daemon/backup_command.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "daemon/backup.h"
#include "daemon/exit_code.h"
#include "model/document/quantity.h"
#include "store/hash_chain.h"
#include "store/postgres_address.h"

namespace berth::daemon {

namespace {

namespace json = boost::json;

constexpr std::size_t kMostJobsTold = 20;
constexpr const char* kExitCodes =
    "Exit codes: 0 done; 1 the log or the backup is damaged, or the disk failed; 2 the words are wrong, or --yes is "
    "missing;\n  3 there is no log, backup, event or directory of that name; 4 the new directory is not empty, or "
    "--beside "
    "has another log.\n";

struct Words {
  std::string first;   // DATA_DIR or BACKUP
  std::string second;  // DEST or NEW_DIR
  std::string drilled;
  std::string at;
  std::string beside;
  bool dry_run = false;
  bool confirmed = false;
  std::string output = "table";
  bool is_json() const { return output == "json"; }
};

void add_output(CLI::App& app, Words& words) {
  app.add_option("-o,--output", words.output, "table or json")
      ->check(CLI::IsMember({"table", "json"}).description(""))
      ->type_name("FORMAT");
}

Timestamp wall_clock() {
  const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  return {std::chrono::duration_cast<std::chrono::milliseconds>(since_1970).count()};
}

class Stopwatch {
 public:
  std::int64_t took_ms() const {
    const auto took = std::chrono::steady_clock::now() - began_;
    return std::chrono::duration_cast<std::chrono::milliseconds>(took).count();
  }

 private:
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

std::string seconds_text(std::int64_t ms) { return fmt::format("{}.{:01} s", ms / 1000, ms % 1000 / 100); }

int fail(const Error& error) {
  std::fprintf(stderr, "berth: %s\n", error.message.c_str());
  return exit_code_of(error.code);
}

void print(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

void print(const json::object& object) { print(json::serialize(object) + "\n"); }

json::object fold_json(const LogFold& fold) {
  json::object object{{"seq", fold.seq}, {"time", nullptr}};
  if (fold.seq != 0) object["time"] = to_iso8601(fold.time);
  object["jobs"] = fold.jobs;
  object["chain_hash"] = store::to_hex(fold.chain_hash);
  object["state_hash"] = store::to_hex(fold.state_hash);
  return object;
}

json::object backup_json(const std::string& path, const BackupManifest& manifest) {
  json::object object{{"backup", path},
                      {"seq", manifest.seq},
                      {"time", nullptr},
                      {"made", to_iso8601(manifest.made)},
                      {"history_rows", manifest.history_rows},
                      {"jobs", manifest.jobs},
                      {"chain_hash", manifest.chain_hash},
                      {"state_hash", manifest.state_hash},
                      {"files", manifest.files.size()},
                      {"bytes", bytes_of(manifest)}};
  if (manifest.seq != 0) object["time"] = to_iso8601(manifest.time);
  return object;
}

json::object forgotten_json(const Forgotten& forgotten) {
  json::object object{
      {"events", forgotten.events}, {"first_seq", nullptr}, {"last_seq", nullptr}, {"from", nullptr}, {"to", nullptr}};
  if (forgotten.events > 0) {
    object["first_seq"] = forgotten.first;
    object["last_seq"] = forgotten.last;
    object["from"] = to_iso8601(forgotten.begin);
    object["to"] = to_iso8601(forgotten.end);
  }
  object["jobs_submitted"] = json::array(forgotten.submitted.begin(), forgotten.submitted.end());
  json::object kinds;
  for (const auto& [kind, count] : forgotten.by_kind) kinds[kind] = count;
  object["kinds"] = std::move(kinds);
  return object;
}

json::object plan_json(const RestorePlan& plan) {
  json::object object{{"backup", plan.backup},
                      {"restores", fold_json(plan.fold)},
                      {"forgets", forgotten_json(plan.in_backup)},
                      {"forgets_beside", nullptr},
                      {"unread", nullptr}};
  if (plan.beside) object["forgets_beside"] = forgotten_json(*plan.beside);
  if (!plan.unread.empty()) object["unread"] = plan.unread;
  return object;
}

std::string jobs_text(const std::vector<std::uint64_t>& jobs) {
  std::string text = fmt::format("{} {} submitted", jobs.size(), jobs.size() == 1 ? "job" : "jobs");
  for (std::size_t i = 0; i < std::min(jobs.size(), kMostJobsTold); ++i)
    text += fmt::format("{} {}", i == 0 ? ":" : ",", jobs[i]);
  if (jobs.size() > kMostJobsTold) text += fmt::format(" and {} more", jobs.size() - kMostJobsTold);
  return text;
}

std::string forgotten_text(const Forgotten& forgotten, const std::string& where) {
  if (forgotten.events == 0) return "forgets     nothing of " + where + "\n";
  std::string kinds;
  for (const auto& [kind, count] : forgotten.by_kind)
    kinds += fmt::format("{}{} {}", kinds.empty() ? "" : ", ", kind, count);
  return fmt::format("forgets     {} {} of {}: {} to {}, {} to {} ({})\n            {}\n            {}\n",
                     forgotten.events, forgotten.events == 1 ? "event" : "events", where, forgotten.first,
                     forgotten.last, to_iso8601(forgotten.begin), to_iso8601(forgotten.end),
                     document::duration_text((forgotten.end - forgotten.begin) / 1000), jobs_text(forgotten.submitted),
                     kinds);
}

std::string plan_text(const RestorePlan& plan, const std::string& beside) {
  const BackupManifest& manifest = plan.manifest;
  std::string text = fmt::format("backup      {}: sound, made {} by berth {}, events {} to {}\n", plan.backup,
                                 to_iso8601(manifest.made), manifest.version, manifest.first_seq, manifest.seq);
  text += fmt::format("restores    the state after event {}, of {}: {} live jobs\n", plan.fold.seq,
                      plan.fold.seq == 0 ? "no time" : to_iso8601(plan.fold.time), plan.fold.jobs);
  text += forgotten_text(plan.in_backup, "the backup");
  if (plan.beside) text += forgotten_text(*plan.beside, beside);
  if (!plan.unread.empty())
    text += fmt::format("unknown     {} cannot be read to its end, so there may be more: {}\n", beside, plan.unread);
  if (!plan.beside)
    text += "unknown     what happened after the backup's end; --beside DATA_DIR looks there, if there is one\n";
  return text;
}

std::string proof_text(const RestorePlan& plan) {
  return fmt::format("chain       {}, as in the backup\nstate       {}, as folded from the backup\n",
                     store::to_hex(plan.fold.chain_hash), store::to_hex(plan.fold.state_hash));
}

int run_backup(const Words& words) {
  const Stopwatch watch;
  const auto backup = make_backup(words.first, words.second, wall_clock());
  if (!backup) return fail(backup.error());
  const BackupManifest& manifest = backup->manifest;
  if (words.is_json()) {
    json::object object = backup_json(backup->path, manifest);
    object["took_ms"] = watch.took_ms();
    object["warnings"] = json::array(backup->warnings.begin(), backup->warnings.end());
    print(object);
    return 0;
  }
  print(fmt::format("backup      {}: sound, {} files, {} bytes\n", backup->path, manifest.files.size() + 1,
                    bytes_of(manifest)));
  print(fmt::format("events      {} to {}, the last of {}; {} live jobs, {} finished\n", manifest.first_seq,
                    manifest.seq, manifest.seq == 0 ? "no time" : to_iso8601(manifest.time), manifest.jobs,
                    manifest.history_rows));
  print(fmt::format("chain       {}\nstate       {}\n", manifest.chain_hash, manifest.state_hash));
  for (const std::string& warning : backup->warnings) print("warning     " + warning + "\n");
  print("took        " + seconds_text(watch.took_ms()) + "\n");
  return 0;
}

int run_drill(const Words& words) {
  const Stopwatch watch;
  const auto plan = drill(words.drilled);
  if (!plan) return fail(plan.error());
  if (words.is_json()) {
    json::object object = backup_json(plan->backup, plan->manifest);
    object["proved"] = true;
    object["took_ms"] = watch.took_ms();
    print(object);
    return 0;
  }
  print(fmt::format("drill       {}: restored, proved, and removed again\n", plan->backup));
  print(fmt::format("events      {} to {}, the last of {}; {} live jobs\n", plan->manifest.first_seq, plan->fold.seq,
                    plan->fold.seq == 0 ? "no time" : to_iso8601(plan->fold.time), plan->fold.jobs));
  print(proof_text(*plan));
  print("took        " + seconds_text(watch.took_ms()) + "\n");
  return 0;
}

int run_restore(const Words& words) {
  const Stopwatch watch;
  if (auto ok = check_new_directory(words.second); !ok) return fail(ok.error());
  const auto plan = plan_restore({words.first, words.at, words.beside});
  if (!plan) return fail(plan.error());
  if (!words.is_json()) {
    print(plan_text(*plan, words.beside));
    std::fflush(stdout);
  }
  json::object object = plan_json(*plan);
  object["restored"] = nullptr;
  const bool refused = plan->forgets() && !words.confirmed && !words.dry_run;
  if (words.dry_run || refused) {
    if (words.is_json()) print(object);
    return refused ? fail(invalid("nothing was restored: it forgets what is said above. If that is meant, add --yes"))
                   : 0;
  }
  if (auto done = restore(*plan, words.second); !done) return fail(done.error());
  if (words.is_json()) {
    object["restored"] = words.second;
    object["took_ms"] = watch.took_ms();
    print(object);
    return 0;
  }
  print(fmt::format("restored    {}\n", words.second) + proof_text(*plan));
  print("took        " + seconds_text(watch.took_ms()) + "\n");
  return 0;
}

// Parses the command line and runs the body. CLI11 itself answers --help.
template <class Body>
int with_words(CLI::App& app, int argc, const char* const* argv, Body&& body) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    return fail(invalid(fmt::format("{} ({} --help)", error.what(), app.get_name())));
  }
  ::umask(077);  // a backup keeps the secrets of the log
  return body();
}

}  // namespace

int backup_main(int argc, const char* const* argv) {
  CLI::App app(
      "Copy the log of a data directory and what a server needs beside it, whether a server runs on it or not, check "
      "the "
      "copy\nas berth verify does, and say what it holds. Or try out a restore of a backup, and remove it again.\n\n"
      "Examples:\n"
      "  berth backup /var/lib/berth /backup/berth-monday\n"
      "  berth backup /var/lib/berth /backup/berth-monday -o json\n"
      "  berth backup --drill /backup/berth-monday\n",
      "berth backup");
  app.footer(kExitCodes);
  Words words;
  app.add_option("DATA_DIR", words.first, "The data directory of a server, running or not");
  app.add_option("DEST", words.second, "The directory to make: new or empty, on another disk");
  app.add_option("--drill", words.drilled, "Restore this backup to a directory beside it, prove it, and remove it")
      ->type_name("BACKUP");
  add_output(app, words);
  return with_words(app, argc, argv, [&] {
    const bool is_drill = app.count("--drill") != 0;
    if (store::is_postgres_address(words.first))
      return fail(
          {ErrorCode::kUnsupported,
           "a log on PostgreSQL is backed up by its own means (pg_dump, pg_basebackup), or copied to a directory: "
           "berth store copy ADDRESS DIR"});
    if (is_drill && !words.first.empty()) return fail(invalid("--drill takes a backup and nothing else"));
    if (!is_drill && (words.first.empty() || words.second.empty()))
      return fail(
          invalid("give the data directory and the new directory: berth backup DATA_DIR DEST (berth backup --help)"));
    return is_drill ? run_drill(words) : run_backup(words);
  });
}

int restore_main(int argc, const char* const* argv) {
  CLI::App app(
      "Make a data directory of a backup, as of its end or of an earlier event, and prove that its log and state are "
      "those "
      "of\nthe backup. What is forgotten is said first, and only done with --yes. The backup is not changed.\n\n"
      "Examples:\n"
      "  berth restore /backup/berth-monday /var/lib/berth-new\n"
      "  berth restore /backup/berth-monday /var/lib/berth-new --beside /var/lib/berth --dry-run\n"
      "  berth restore /backup/berth-monday /var/lib/berth-new --at 2026-11-21T08:15:30Z --yes\n"
      "  berth restore /backup/berth-monday /var/lib/berth-new --at 4711 --dry-run\n",
      "berth restore");
  app.footer(kExitCodes);
  Words words;
  app.add_option("BACKUP", words.first, "A backup of berth backup")->required();
  app.add_option("NEW_DIR", words.second, "The data directory to make: new or empty")->required();
  app.add_option("--at", words.at, "The last event to keep: its number, or a time, and then the last one up to it")
      ->type_name("SEQ|TIME");
  app.add_option("--beside", words.beside,
                 "A data directory, alive or dead: say also what it has and the restored one not")
      ->type_name("DATA_DIR");
  CLI::Option* dry_run = app.add_flag("--dry-run", words.dry_run, "Only say what would be restored and forgotten");
  app.add_flag("--yes", words.confirmed, "Forget what is said to be forgotten")->excludes(dry_run);
  add_output(app, words);
  return with_words(app, argc, argv, [&] {
    if (store::is_postgres_address(words.second))
      return fail({ErrorCode::kUnsupported,
                   "a backup is restored to a directory; then copy it to PostgreSQL: berth store copy DIR ADDRESS"});
    return run_restore(words);
  });
}

}  // namespace berth::daemon
