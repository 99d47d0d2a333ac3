#include "cli/command_line.h"

#include <doctest/doctest.h>

#include <algorithm>

namespace berth::cli {
namespace {

using Words = std::vector<std::string>;

template <class Options>
Options parsed(const Words& words) {
  const auto line = parse_command_line(words);
  REQUIRE(line);
  REQUIRE(std::holds_alternative<CommandLine>(*line));
  return std::get<Options>(std::get<CommandLine>(*line).command);
}

std::string refused(const Words& words) {
  const auto line = parse_command_line(words);
  REQUIRE_FALSE(line);
  CHECK(line.error().code == ErrorCode::kInvalid);
  return line.error().message;
}

std::string help(const Words& words) {
  const auto line = parse_command_line(words);
  REQUIRE(line);
  return std::get<HelpText>(*line).text;
}

TEST_CASE("command line: what follows -- is the job's command, untouched") {
  const auto submit = parsed<SubmitOptions>({"submit", "--gpus", "4", "-o", "json", "--", "sh", "--gpus", "--", "-o"});
  CHECK(submit.job.command == Words{"sh", "--gpus", "--", "-o"});
  CHECK(submit.format == Format::kJson);
  CHECK(parsed<RunOptions>({"run", "-q", "--", "true"}).quiet);
}

TEST_CASE("command line: an option takes one word, and a word behind it does not replace it") {
  for (const char* option : {"--queue", "--name", "--gpus", "--env", "--after"}) {
    CAPTURE(option);
    CHECK(refused({"submit", option, "1", "python3", "train.py"}).find("'python3' was not expected") == 0);
  }
  const auto submit = parsed<SubmitOptions>({"submit", "--env", "A=1", "--env", "B=2", "--name", "x", "--name", "y"});
  CHECK(std::count(submit.job.values.begin(), submit.job.values.end(), Words{"A=1", "B=2"}) == 1);
  CHECK(std::count(submit.job.values.begin(), submit.job.values.end(), Words{"y"}) == 1);
}

TEST_CASE("command line: the commands that need no server are completed without the options for finding one") {
  for (const CommandShape& shape : command_shapes()) {
    const bool finds_server = std::any_of(shape.flags.begin(), shape.flags.end(),
                                          [](const FlagShape& flag) { return flag.names == Words{"--server"}; });
    const Words alone{"serve", "dev",      "verify",   "backup",    "restore",
                      "store", "simulate", "scenario", "supervise", "slurm"};
    CAPTURE(shape.name);
    CHECK(finds_server == (std::find(alone.begin(), alone.end(), shape.name) == alone.end()));
  }
}

TEST_CASE("command line: what a server says of its own node is completed") {
  for (const CommandShape& shape : command_shapes()) {
    const bool serves = shape.name == "serve" || shape.name == "dev";
    for (const char* name : {"--node-pool", "--node-at", "--node-label", "--node-taint"}) {
      CAPTURE(shape.name);
      CAPTURE(name);
      CHECK(serves == std::any_of(shape.flags.begin(), shape.flags.end(),
                                  [&](const FlagShape& flag) { return flag.names == Words{name}; }));
    }
  }
}

TEST_CASE("command line: the server may be named before or behind the command") {
  for (const Words& words : {Words{"--server", "h:1", "jobs"}, Words{"jobs", "--server", "h:1"}}) {
    const auto line = parse_command_line(words);
    REQUIRE(line);
    CHECK(std::get<CommandLine>(*line).connection.server == "h:1");
  }
}

TEST_CASE("command line: a time before now is a value and no option") {
  CHECK(parsed<UsageOptions>({"usage", "--from", "-24h"}).from == "-24h");
}

TEST_CASE("command line: options reach the command they belong to") {
  const auto logs = parsed<LogsOptions>({"logs", "-f", "17", "--task", "1", "--stderr", "--tail", "5"});
  CHECK(logs.id == "17");
  CHECK(logs.follow);
  CHECK(logs.error_stream);
  CHECK(logs.task == 1);
  CHECK(logs.tail == 5);
  CHECK(parsed<JobActionOptions>({"hold", "1", "2"}).ids == Words{"1", "2"});
  CHECK(parsed<JobActionOptions>({"release", "1"}).action == JobAction::kRelease);
  CHECK(parsed<JobActionOptions>({"cancel", "--me", "--label", "run=7", "-y"}).selector.confirmed);
  CHECK(parsed<PrioritizeOptions>({"prioritize", "17", "800"}).priority == "800");
  CHECK(parsed<PrioritizeOptions>({"prioritize", "17", "urgent", "--dry-run"}).dry_run);
  CHECK(parsed<PrioritizeOptions>({"prioritize", "--user", "bob", "--to", "800"}).priority == "800");
  CHECK(parsed<SubmitOptions>({"submit", "--dry-run", "--", "true"}).dry_run);
  CHECK(parsed<WaitOptions>({"wait", "1", "2", "--until", "running"}).ids == Words{"1", "2"});
  CHECK(parsed<WaitOptions>({"wait", "--me", "--timeout", "2h"}).selector.me);
  const auto move = parsed<MoveOptions>({"move", "--off", "n1,n2", "--off", "n3", "7", "--lose-work", "-o", "json"});
  CHECK(move.id == "7");
  CHECK(move.off == Words{"n1", "n2", "n3"});
  CHECK(move.lose_work);
  CHECK(move.format == Format::kJson);
  CHECK(parsed<MoveOptions>({"move", "7"}).off.empty());
  CHECK(parsed<NodeActionOptions>({"drain", "n"}).action == NodeAction::kDrain);
  const auto window = parsed<MaintenanceOptions>(
      {"maintenance", "add", "--nodes", "n1,n2", "--from", "+2h", "--for", "4h", "--reason", "new disks"});
  CHECK(window.action == "add");
  CHECK(window.nodes == std::vector<std::string>{"n1", "n2"});
  CHECK(window.from == "+2h");
  CHECK(window.duration == "4h");
  CHECK(window.reason == "new disks");
  CHECK(parsed<MaintenanceOptions>({"maintenance"}).action == "list");
  CHECK(parsed<CapacityOptions>({"capacity", "--idle-for", "1h"}).idle_for == "1h");
  CHECK(parsed<AdviseOptions>({"advise", "-o", "yaml"}).show.format == Format::kYaml);
  CHECK(parsed<AdviseOptions>({"advise", "--watch"}).show.watch);
  CHECK(parsed<DoctorOptions>({"doctor", "--all", "-o", "json"}).all);
  CHECK_FALSE(parsed<DoctorOptions>({"doctor"}).all);
  CHECK(parsed<MaintenanceOptions>({"maintenance", "cancel", "december"}).name == "december");
  CHECK(parsed<JobsOptions>({"jobs", "--watch"}).show.watch);
  CHECK(parsed<TopOptions>({"top", "--watch", "--by", "queue"}).by == "queue");
  CHECK(parsed<UsageOptions>({"usage", "--watch"}).show.watch);
}

TEST_CASE("command line: a list takes columns, for a table or for CSV") {
  const auto jobs = parsed<JobsOptions>({"jobs", "-o", "custom=ID:id,USER:user"});
  CHECK(jobs.show.format == Format::kTable);
  REQUIRE(jobs.show.columns.size() == 2);
  CHECK(jobs.show.columns[1].path == "user");
  const auto nodes = parsed<NodesOptions>({"nodes", "--output=csv=name,pool"});
  CHECK(nodes.show.format == Format::kCsv);
  CHECK(nodes.show.columns.size() == 2);
  CHECK(parsed<QueuesOptions>({"queues", "-o", "csv"}).show.columns.empty());
  CHECK(parsed<UsageOptions>({"usage", "-o", "custom=user"}).show.columns.size() == 1);
  CHECK(refused({"jobs", "-o", "custom"}).find("there is no column; give HEADING:PATH") != std::string::npos);
  CHECK(refused({"jobs", "-o", "csv="}).find("there is no column") != std::string::npos);
  CHECK(refused({"jobs", "-o", "custom=ID:id,user"}).find("'user' has no colon") != std::string::npos);
  CHECK(refused({"jobs", "-o", "json=id"}).find("not one of table, wide, json, yaml, csv, custom=") !=
        std::string::npos);
  CHECK(refused({"why", "7", "-o", "custom=id"}).find("table") != std::string::npos);
}

TEST_CASE("command line: a mistake says what would be right") {
  CHECK(refused({"sumbit"}).find("did you mean submit?") != std::string::npos);
  CHECK(refused({"jobs", "--quue", "x"}).find("no option '--quue'; did you mean --queue?") != std::string::npos);
  CHECK(refused({"submit", "train.py"}).find("the command to run goes after --") != std::string::npos);
  CHECK(refused({"jobs", "-o", "xml"}).find("table") != std::string::npos);
  CHECK(refused({"advise", "-o", "csv"}).find("table") != std::string::npos);
  CHECK(refused({"advise", "everything"}).find("everything") != std::string::npos);
  CHECK(refused({"advise", "--wach"}).find("did you mean --watch?") != std::string::npos);
  CHECK(refused({"jobs", "--", "x"}).find("only submit, run and exec") != std::string::npos);
  CHECK(refused({"submit", "--"}).find("no command after --") != std::string::npos);
  CHECK(refused({"why"}).find("ID is required") != std::string::npos);
  CHECK(refused({"logs", "1", "--tail", "-3"}).find("--tail") != std::string::npos);
  CHECK(refused({"prioritize", "1", "010"}).find("PRIORITY: '010' is not an integer") != std::string::npos);
  CHECK(refused({"prioritize", "1", "2000000000"}).find("give -1000000 to 1000000000") != std::string::npos);
  CHECK(refused({"jobs", "--limit", "0x10"}).find("--limit: '0x10' is not an integer") != std::string::npos);
}

TEST_CASE("command line: an empty or blank idempotency key is not taken for none") {
  for (const std::string key : {"", " ", "a b", "é", "a\n"}) {
    CAPTURE(key);
    CHECK_NE(refused({"submit", "--key", key, "--", "true"}).find("--key: a key is 1 to 255 ASCII characters"),
             std::string::npos);
    CHECK_NE(
        refused({"bill", "a", "--month", "2026-10", "--correct", "-1", "--reason", "x", "--key", key}).find("--key"),
        std::string::npos);
  }
  refused({"submit", "--key=", "--", "true"});
  refused({"bill", "--key", std::string(256, 'x')});
  CHECK_NE(refused({"bill", "a", "--correct", ""}).find("--correct: give an amount"), std::string::npos);
  CHECK_EQ(parsed<BillOptions>({"bill", "--key", std::string(255, 'x')}).key.size(), 255);
}

TEST_CASE("command line: break-glass needs a reason, also for a job of one's own") {
  for (const std::string reason : {"", "   ", "two\nlines", "a\x7f", "\u200b", "a\u202eb"}) {
    CAPTURE(reason);
    CHECK_NE(refused({"logs", "1", "--break-glass", reason}).find("--break-glass: it needs a reason: 1 to 200 bytes"),
             std::string::npos);
    CHECK_NE(refused({"logs", "1", "--break-glass=" + reason}).find("--break-glass"), std::string::npos);
  }
  refused({"logs", "1", "--break-glass", std::string(201, 'x')});
  CHECK_EQ(parsed<LogsOptions>({"logs", "1", "--break-glass", std::string(200, 'x')}).break_glass.size(), 200);
  CHECK_EQ(parsed<LogsOptions>({"logs", "1"}).break_glass, "");
}

TEST_CASE("help: every command is there and has an example, and says no more of a value than its name") {
  const std::string all = help({"--help"});
  for (const CommandShape& shape : command_shapes()) {
    CAPTURE(shape.name);
    CHECK(all.find("\n  " + shape.name + " ") != std::string::npos);
    const std::string one = help({"help", shape.name});
    CHECK(one == help({shape.name, "--help"}));
    const std::size_t example = one.find("Example:\n  ");
    REQUIRE(example != std::string::npos);
    CHECK(one.find("berth " + shape.name, example) != std::string::npos);
    for (const char* noise : {"Needs:", "TEXT", "REQUIRED", "ID  ..."}) CHECK(one.find(noise) == std::string::npos);
  }
  CHECK(all.find("Exit codes: 0 done") != std::string::npos);
  CHECK(help({}) == all);
}

TEST_CASE("shapes: completion knows values, files and choices") {
  for (const CommandShape& shape : command_shapes()) {
    if (shape.name != "submit") continue;
    for (const FlagShape& flag : shape.flags) {
      if (flag.names.back() == "--launch") CHECK(flag.choices == Words{"per-task", "per-gpu", "torchrun"});
      if (flag.names.back() == "--file") CHECK(flag.takes_file);
      if (flag.names.back() == "--hold") CHECK_FALSE(flag.takes_value);
      if (flag.names.back() == "--gpus") CHECK(flag.takes_value);
    }
    return;
  }
  FAIL("there is no submit");
}

}  // namespace
}  // namespace berth::cli
