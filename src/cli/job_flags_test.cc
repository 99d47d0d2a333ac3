#include "cli/job_flags.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "cli/command_line.h"
#include "model/document/job_document.h"
#include "model/document/job_keys.h"

namespace berth::cli {
namespace {

const Surroundings kHere{
    "/home/ana", [](const std::string& name) { return name == "LANG" ? "C" : std::string(); },
    [](const std::string& name) { return name == "python9" ? "/home/ana/venv/bin/python9" : std::string(); },
    [] {
      return std::vector<std::string>{"LANG=C", "A=1=2", "PWD=/x", "BERTH_TOKEN=secret", "EMPTY="};
    },
    Timestamp{1'000'000}};

JobOptions options_of(std::vector<std::string> words) {
  words.insert(words.begin(), "submit");
  const auto line = parse_command_line(words);
  REQUIRE(line);
  return std::get<SubmitOptions>(std::get<CommandLine>(*line).command).job;
}

JobSpec spec_of(const std::vector<std::string>& words, std::string_view file = {}) {
  const auto document = job_document(options_of(words), file, kHere);
  REQUIRE(document);
  const auto spec = document::read_job(document::to_json_text(*document), "sent");
  REQUIRE(spec);
  return *spec;
}

TEST_CASE("job flags: terms of affinity, at the node unless a level is given, beside those of the file") {
  const JobSpec spec = spec_of(
      {"-f", "job.yaml", "--label", "app=web", "--near", "app=cache@rack", "--prefer-near", "app=index", "--away-from",
       "app=web,tier=front@node", "--away-from", "app=batch", "--prefer-away-from", "app=x@rack"},
      "command: [serve]\naffinity: [{labels: {app: file}, level: node}]\n");
  CHECK(spec.labels == Labels{{"app", "web"}});
  CHECK(spec.affinity == std::vector<AffinityTerm>{{{{"app", "file"}}, "node", true},
                                                   {{{"app", "cache"}}, "rack", true},
                                                   {{{"app", "index"}}, "node", false}});
  CHECK(spec.anti_affinity == std::vector<AffinityTerm>{{{{"app", "web"}, {"tier", "front"}}, "node", true},
                                                        {{{"app", "batch"}}, "node", true},
                                                        {{{"app", "x"}}, "rack", false}});
  CHECK_FALSE(job_document(options_of({"--near", "cache", "--", "serve"}), {}, kHere));
}

TEST_CASE("job flags: the program of a command is the one of the caller, but not in an image") {
  CHECK(spec_of({"--", "python9", "train.py"}).groups[0].command ==
        std::vector<std::string>{"/home/ana/venv/bin/python9", "train.py"});
  CHECK(spec_of({"--", "python9", "train.py"}).name == "train.py");
  CHECK(spec_of({"--", "./python9"}).groups[0].command[0] == "./python9");
  CHECK(spec_of({"--", "elsewhere"}).groups[0].command[0] == "elsewhere");
  CHECK(spec_of({"--image", "pytorch", "--", "python9"}).groups[0].command[0] == "python9");
  CHECK(spec_of({"-f", "job.yaml"}, "command: [python9]\n").groups[0].command[0] == "python9");
}

TEST_CASE("job flags: --export gives all variables, some, or none; --env wins, and berth's own are left out") {
  using Env = std::vector<std::pair<std::string, std::string>>;
  const auto env_of = [](std::vector<std::string> words) {
    words.insert(words.end(), {"--", "serve"});
    Env env = spec_of(words).groups[0].env;
    std::sort(env.begin(), env.end());
    return env;
  };
  CHECK(env_of({}).empty());
  CHECK(env_of({"--export", "NONE"}).empty());
  CHECK(env_of({"--export", "ALL"}) == Env{{"A", "1=2"}, {"EMPTY", ""}, {"LANG", "C"}});
  CHECK(env_of({"--export", "LANG,B=2"}) == Env{{"B", "2"}, {"LANG", "C"}});
  CHECK(env_of({"--export", "ALL,B=2", "--env", "LANG=de"}) ==
        Env{{"A", "1=2"}, {"B", "2"}, {"EMPTY", ""}, {"LANG", "de"}});
  CHECK_FALSE(job_document(options_of({"--export", "=x", "--", "serve"}), {}, kHere));
  CHECK_FALSE(job_document(options_of({"--export", "ALL,NONE", "--", "serve"}), {}, kHere));
}

std::string refused_flags(const std::vector<std::string>& words, const Surroundings& where = kHere) {
  std::vector<std::string> all = words;
  all.insert(all.end(), {"--", "serve"});
  const auto document = job_document(options_of(all), {}, where);
  REQUIRE_FALSE(document);
  return document.error().message;
}

TEST_CASE("job flags: times as people write them") {
  CHECK(spec_of({"--earliest-start", "in 2h", "--", "serve"}).earliest_start->ms == 1'000'000 + 7'200'000);
  CHECK(refused_flags({"--earliest-start", "soon"}).find("--earliest-start: 'soon' is not a time") == 0);
}

TEST_CASE("job flags: a name given twice, and surroundings that are not UTF-8") {
  CHECK(refused_flags({"--env", "A=1", "--env", "A=2"}) == "--env A=2: A is given twice; leave one out");
  CHECK(refused_flags({"--node-selector", "disk=ssd", "--node-selector", "disk=hdd"}) ==
        "--node-selector disk=hdd: disk is given twice; leave one out");
  CHECK(refused_flags({"--near", "app=a,app=b"}) == "--near app=a,app=b: app is given twice; leave one out");

  Surroundings broken = kHere;
  broken.directory = "/home/\xff";
  broken.variable = [](const std::string&) { return std::string("\xff"); };
  CHECK(refused_flags({"--env", "LANG"}, broken) == "--env LANG: your LANG is not UTF-8; give LANG=VALUE");
  CHECK(refused_flags({}, broken) == "the working directory's name is not UTF-8; give another by --workdir");
  CHECK(job_document(options_of({"--workdir", "/srv", "--", "serve"}), {}, broken));
}

TEST_CASE("job flags: a job as flags is the job of the document") {
  const JobSpec spec = spec_of({"--queue",
                                "research/nlp",
                                "--name",
                                "x",
                                "--tasks",
                                "2",
                                "--gpus",
                                "4",
                                "--cpus",
                                "2",
                                "--memory",
                                "1GiB",
                                "--launch",
                                "per-gpu",
                                "--priority",
                                "dev",
                                "--time-limit",
                                "2h",
                                "--checkpoint-signal",
                                "SIGUSR1",
                                "--grace",
                                "60s",
                                "--retries",
                                "2",
                                "--env",
                                "K=V=W",
                                "--env",
                                "LANG",
                                "--after",
                                "3",
                                "--after",
                                "4",
                                "--hold",
                                "--",
                                "python3",
                                "train.py"});
  const auto expected = document::read_job(R"(
queue: research/nlp
name: x
tasks: 2
gpus: 4
cpus: 2
memory: 1GiB
launch: per-gpu
priority: dev
time_limit: 2h
checkpoint: {on_signal: true, signal: SIGUSR1, grace: 60s}
retries: 2
env: {K: V=W, LANG: C}
after: [3, 4]
hold: true
workdir: /home/ana
command: [python3, train.py]
)",
                                           "expected");
  REQUIRE(expected);
  CHECK(spec == *expected);
}

// What may be given for a key, other than its default.
std::string value_for(const document::JobKey& key) {
  using document::KeyKind;
  if (key.path == "groups[].min_tasks") return "1";  // at most `tasks`
  switch (key.form.kind) {
    case KeyKind::kInteger:
    case KeyKind::kIntegers:
      return std::to_string(key.form.low + 1);
    case KeyKind::kAmount:
    case KeyKind::kJobIds:
      return "2";
    case KeyKind::kBytes:
      return "1GiB";
    case KeyKind::kDuration:
      return "1h";
    case KeyKind::kTime:
      return "2026-11-21T08:15:30Z";
    case KeyKind::kWord:
      return std::string(key.form.words.back());
    case KeyKind::kSignal:
      return "USR1";
    case KeyKind::kPairs:
    case KeyKind::kTerms:
      return "A=b";
    case KeyKind::kMounts:
      return "data:/data:ro";
    case KeyKind::kCounts:
      return "rdma/hca=2";
    case KeyKind::kText:
    case KeyKind::kTexts:
    case KeyKind::kTolerations:
    case KeyKind::kNodeRules:
    case KeyKind::kSecrets:
    case KeyKind::kBool:
    case KeyKind::kMap:
    case KeyKind::kGroups:
      break;
  }
  return "x";
}

TEST_CASE("job flags: every flag of a key sets what the key says") {
  std::size_t flags = 0;
  for (const document::JobKey& key : document::job_keys()) {
    for (const document::KeyFlag& flag : {key.flag, key.wish_flag}) {
      if (flag.name.empty()) continue;
      CAPTURE(flag.name);
      ++flags;
      std::vector<std::string> words{std::string(flag.name), value_for(key), "--", "true"};
      if (key.form.kind == document::KeyKind::kBool) words.erase(words.begin() + 1);
      std::vector<std::string> without{"--", "true"};
      if (key.path == "groups[].gpu_models") {  // of use only beside GPUs
        for (auto* both : {&words, &without}) both->insert(both->begin(), {"--gpus", "1"});
      }
      CHECK_FALSE(spec_of(words) == spec_of(without));
    }
  }
  CHECK(flags == job_flags().size());
}

TEST_CASE("job flags: flags win over the file, and leave the rest of it") {
  const std::string file = "name: a\nqueue: q\ngpus: 1\nenv: {A: '1', B: '2'}\ncommand: [old]\n";
  const JobSpec spec = spec_of({"-f", "job.yaml", "--gpus", "8", "--env", "B=3", "--", "new"}, file);
  CHECK(spec.name == "a");
  CHECK(spec.groups[0].request.gpus == 8);
  CHECK(spec.groups[0].command == std::vector<std::string>{"new"});
  CHECK(spec.groups[0].env == std::vector<std::pair<std::string, std::string>>{{"A", "1"}, {"B", "3"}});
  CHECK(spec_of({"-f", "job.yaml"}, file).groups[0].workdir.empty());
}

TEST_CASE("job flags: the program names a job without a name, where that is a name") {
  CHECK(spec_of({"--", "/usr/bin/python3", "-u", "/home/ana/train.py", "x"}).name == "train.py");
  CHECK(spec_of({"--", "sh", "-c", "sleep 1"}).name == "sh");
  CHECK(spec_of({"--", "/opt/solve", "x"}).name == "solve");
  CHECK(spec_of({"--name", "n", "--", "python3"}).name == "n");
}

TEST_CASE("job flags: an image says what runs where no command does") {
  CHECK(job_document(options_of({"--image", "llama:1"}), {}, kHere));
  CHECK_FALSE(job_document(options_of({"--gpus", "1"}), {}, kHere));
}

TEST_CASE("job flags: mistakes are told before anything is sent") {
  const auto refused = [](const std::vector<std::string>& words, std::string_view file = {}) {
    const auto document = job_document(options_of(words), file, kHere);
    REQUIRE_FALSE(document);
    return document.error().message;
  };
  CHECK(refused({"--gpus", "1.5", "--", "x"}).find("command line: gpus: 1.5") == 0);
  CHECK(refused({"--memory", "64GB", "--", "x"}).find("GiB") != std::string::npos);
  CHECK(refused({"--env", "=x", "--", "x"}) == "--env =x: give KEY=VALUE");
  CHECK(refused({"--node-selector", "x", "--", "x"}) == "--node-selector x: give LABEL=VALUE");
  CHECK(refused({}).find("give a command after --") != std::string::npos);
  CHECK(refused({"-f", "job.yaml"}, "name: a\ngpuz: 2\n").find("job.yaml:2:1") == 0);
}

}  // namespace
}  // namespace berth::cli
