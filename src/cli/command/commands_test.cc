#include "cli/command/commands.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "cli/client/canned_server.h"
#include "cli/columns.h"
#include "cli/command/event_line.h"
#include "cli/command/job_words.h"
#include "cli/command/log_reader.h"
#include "cli/connection.h"
#include "cli/exit_code.h"

namespace berth::cli {
namespace {

using client::answer_with;

struct Outcome {
  Result<int> code;
  std::string out;
  std::string err;
  std::vector<std::string> requests;
};

// Runs the command against a server that gives these answers, on a terminal of that width.
template <class Options>
Outcome outcome_of(const Options& options, const std::vector<std::string>& answers, std::size_t width = 0) {
  client::CannedServer server(answers);
  std::ostringstream out;
  std::ostringstream err;
  Session session{out, err, client::Client({.base_url = server.url(), .token = "t"}), server.url()};
  session.width = width;
  Result<int> code = run(options, session);
  return {std::move(code), out.str(), err.str(), server.requests()};
}

std::string ok(const std::string& json) { return answer_with("200 OK", json); }

JobOptions job_of(const std::string& program) {
  JobOptions job;
  job.command = {program};
  job.key = "k1";
  return job;
}

TEST_CASE("exit codes: each status of the server has its own") {
  const std::vector<std::pair<std::string, int>> cases{{"400 Bad Request", kUsage},
                                                       {"401 Unauthorized", kDenied},
                                                       {"403 Forbidden", kDenied},
                                                       {"404 Not Found", kNotFound},
                                                       {"409 Conflict", kConflict},
                                                       {"413 Payload Too Large", kUsage},
                                                       {"500 Internal Server Error", kFailed},
                                                       {"503 Service Unavailable", kUnreachable}};
  for (const auto& one : cases) {
    CAPTURE(one.first);
    const auto outcome = outcome_of(WhyOptions{{}, "7"}, {answer_with(one.first, R"({"detail": "words"})")});
    REQUIRE_FALSE(outcome.code);
    CHECK(outcome.code.error().message == "words");
    CHECK(exit_code_of(outcome.code.error().code) == one.second);
    CHECK(outcome.out.empty());
  }
}

TEST_CASE("maintenance: names or selects nodes, and says what is wrong before it asks the server") {
  MaintenanceOptions add;
  add.action = "add";
  add.nodes = {"n1", "n2"};
  add.duration = "2h";
  add.from = "2026-12-01T06:00:00Z";
  const auto planned =
      outcome_of(add, {answer_with("201 Created", R"({"name": "maintenance-1", "unchanged": false})")});
  REQUIRE(planned.code);
  CHECK(planned.out == "maintenance maintenance-1 is planned\n");
  CHECK(planned.requests[0].ends_with(R"({"nodes":["n1","n2"],"from":"2026-12-01T06:00:00.000Z","for_s":7200})"));
  add.nodes = {"pool=big", "zone=east"};
  const auto selected = outcome_of(add, {answer_with("201 Created", R"({"name": "m", "unchanged": false})")});
  REQUIRE(selected.code);
  CHECK(selected.requests[0].find(R"("pool":"big")") != std::string::npos);
  CHECK(selected.requests[0].find(R"("labels":{"zone":"east"})") != std::string::npos);
  add.nodes = {"n1", "pool=big"};
  CHECK_FALSE(outcome_of(add, {}).code);
  add.nodes = {"n1"};
  add.duration = "2";
  CHECK_FALSE(outcome_of(add, {}).code);
  MaintenanceOptions cancel;
  cancel.action = "cancel";
  CHECK_FALSE(outcome_of(cancel, {}).code);
  cancel.name = "december";
  const auto cancelled = outcome_of(cancel, {ok(R"({"name": "december", "unchanged": false})")});
  REQUIRE(cancelled.code);
  CHECK(cancelled.requests[0].starts_with("DELETE /v1/maintenance/december"));
  const auto listed = outcome_of(
      MaintenanceOptions(), {ok(R"({"items": [{"name": "m", "nodes": ["n1", "n2"], "from": "2026-12-01T06:00:00.000Z",
               "to": "2026-12-01T08:00:00.000Z", "reason": "disks", "begun": false, "jobs_there": 3}], "seq": 9})")});
  REQUIRE(listed.code);
  CHECK(listed.out.find("m     2026-12-01 06:00:00Z  2026-12-01 08:00:00Z  planned           3  n1,n2  disks") !=
        std::string::npos);
}

TEST_CASE("nodes: how many images each has, and by itself which") {
  const char* node = R"("name": "n1", "status": "ready", "gpus": [], "gpus_total": 0, "gpus_free": 0, "cpus": 4,
      "cpus_free": 4, "memory_mib": 1024, "memory_free_mib": 1024, "tasks": [], "containers": true, "image_count": 2)";
  const std::string plain = R"({"name": "n2", "status": "ready", "containers": false, "image_count": 0})";
  NodesOptions options;
  options.show.format = Format::kWide;
  const auto all = outcome_of(options, {ok("{\"items\": [{" + std::string(node) + "}, " + plain + "]}")});
  REQUIRE(all.code);
  CHECK(all.out.find("IMAGES\n") != std::string::npos);
  CHECK(all.out.find("  2\n") != std::string::npos);
  CHECK(all.out.find("  no containers\n") != std::string::npos);
  options.show.format = Format::kTable;
  options.name = "n1";
  const auto one = outcome_of(options, {ok("{" + std::string(node) + R"(, "images": ["llama:1", "pytorch"]})")});
  REQUIRE(one.code);
  CHECK(one.out.ends_with("\nIt runs containers and has these images:\n  llama:1\n  pytorch\n"));
}

TEST_CASE("nodes and job: how much GPUs are driven, where it is measured") {
  const std::string gpus =
      R"("gpus":[{"index":0,"free":0,"driven_pct":3.6,"jobs":[7]},{"index":1,"free":1,"jobs":[]}])";
  const auto node = outcome_of(NodesOptions{{}, "n1"}, {ok(R"({"name":"n1","status":"ready",)" + gpus + "}")});
  CHECK_NE(node.out.find("GPU  STATE   UTIL  JOBS"), std::string::npos);
  CHECK_NE(node.out.find("  0  in use    4%  7"), std::string::npos);
  CHECK_NE(node.out.find("  1  free       -"), std::string::npos);
  const auto line = [](const std::string& gpu_utilization) {
    return outcome_of(
               JobViewOptions{{}, "7"},
               {ok(R"({"id":7,"phase":"running","tasks":[{"task":0,"gpus":["a","b"]}])" + gpu_utilization + "}")})
        .out;
  };
  CHECK_NE(
      line(R"(,"driven":{"pct":3.6,"gpus":2,"minutes":60})").find("  driven      4% of its 2 GPUs in the last 60min\n"),
      std::string::npos);
  CHECK_NE(line(R"(,"driven":{"pct":0,"gpus":1,"minutes":5})").find("0% of 1 of its 2 GPUs in the last 5min\n"),
           std::string::npos);
  CHECK_EQ(line("").find("driven"), std::string::npos);
}

TEST_CASE("capacity: tells what could go and what would help, and reads the time before it asks the server") {
  CapacityOptions options;
  options.show.format = Format::kWide;
  const auto shown = outcome_of(options, {ok(R"({"items": [
      {"pool": "default", "gpu_model": "H100", "gpus": 8, "cpus": 64, "memory_mib": 524288, "taints": [], "nodes": 5,
       "containers": true, "releasable": 1, "wanted": {"nodes": 2, "jobs": [7, 8], "gpus": 12.5}, "idle": [
        {"node": "n1", "since": "2026-12-01T06:00:00.000Z", "kept_for": "nothing", "job": null, "cordoned": true},
        {"node": "n2", "since": "2026-12-01T06:00:01.000Z", "kept_for": "wanted", "job": 7, "cordoned": false},
        {"node": "n3", "since": "2026-12-01T06:00:02.000Z", "kept_for": "guaranteed", "job": null, "cordoned": false}]},
      {"pool": "old", "gpu_model": "", "gpus": 0, "cpus": 1, "memory_mib": 1024, "taints": [], "nodes": 0,
       "releasable": 0, "wanted": null, "idle": []}], "complete": false, "seq": 9})")});
  REQUIRE(shown.code);
  CHECK(shown.requests[0].starts_with("GET /v1/capacity HTTP"));
  CHECK(shown.out ==
        "POOL     GPU MODEL  SIZE                                 NODES  IDLE  REMOVABLE  IDLE AND KEPT           "
        "WANTED\n"
        "default  H100       8 GPUs, 64 CPUs, 512GiB, containers      5     3          1  1 guaranteed, 1 wanted  2 "
        "for 2 "
        "jobs of 12.5 GPUs\n"
        "\n"
        "IDLE NODE  POOL     SINCE                 KEPT FOR          STATE\n"
        "n1         default  2026-12-01 06:00:00Z  could be removed  cordoned\n"
        "n2         default  2026-12-01 06:00:01Z  wanted by job 7   ready\n"
        "n3         default  2026-12-01 06:00:02Z  guaranteed        ready\n"
        "More jobs are pending than could be tried.\n");
  options.show.format = Format::kTable;
  options.idle_for = "1h30m";
  const auto none = outcome_of(options, {ok(R"({"items": [], "complete": true, "seq": 9})")});
  REQUIRE(none.code);
  CHECK(none.requests[0].starts_with("GET /v1/capacity?idle_for_s=5400 HTTP"));
  CHECK(none.out == "no nodes\n");
  for (const char* wrong : {"10", "-5m", "1y", "99999999999999999999h"}) {
    options.idle_for = wrong;
    CHECK_FALSE(outcome_of(options, {}).code);
  }
}

TEST_CASE("advise: what is so and what would mend it, in lines that fit, and one line where there is nothing to say") {
  const std::string answer = R"({"time": "2026-12-01T06:00:00.000Z", "items": [
      {"code": "gang-by-hand", "pitfall": "forgetting-gang", "severity": "warning", "about": "queue",
       "name": "research/nlp", "text": "a\u001b[1m has submitted jobs 1 and 2.", "remedy": "Submit one job."},
      {"code": "fragmentation-not-watched", "pitfall": "fragmentation-not-watched", "severity": "note",
       "about": "cluster", "text": "No alert is set.", "remedy": "Set one."}],
      "left_out": [{"code": "gang-by-hand", "count": 7}], "complete": false, "seq": 9})";
  AdviseOptions options;
  const auto shown = outcome_of(options, {ok(answer)});
  REQUIRE(shown.code);
  CHECK(*shown.code == 0);
  CHECK(shown.requests[0].starts_with("GET /v1/advice HTTP"));
  CHECK(shown.out ==
        "warning  gang-by-hand  queue research/nlp\n"
        "  a\\x1b[1m has submitted jobs 1 and 2.\n"
        "  Submit one job.\n"
        "\n"
        "note     fragmentation-not-watched  cluster\n"
        "  No alert is set.\n"
        "  Set one.\n"
        "\n"
        "And 7 more of gang-by-hand.\n"
        "There are more jobs than were looked at.\n");
  const auto narrow = outcome_of(options, {ok(answer)}, 24);
  REQUIRE(narrow.code);
  CHECK(narrow.out.find("  a\\x1b[1m has submitted\n  jobs 1 and 2.\n  Submit one job.\n") != std::string::npos);
  options.show.format = Format::kWide;
  CHECK(outcome_of(options, {ok(answer)}, 24).out == shown.out);
  options.show.format = Format::kJson;
  const auto json = outcome_of(options, {ok(answer)});
  REQUIRE(json.code);
  CHECK(json.out.find("\"remedy\": \"Submit one job.\"") != std::string::npos);
  options.show.format = Format::kTable;
  const auto none = outcome_of(options, {ok(R"({"items": [], "left_out": [], "complete": true, "seq": 9})")});
  REQUIRE(none.code);
  CHECK(*none.code == 0);
  CHECK(none.out == "No advice: of the pitfalls that berth knows none is seen.\n");
}

TEST_CASE("doctor: shows what is not so as text, and all as a document in which nothing is markup") {
  const std::string answer = R"({"items": [
      {"area": "security", "check": "tls", "result": "ok", "evidence": "All is well.", "remedy": ""},
      {"area": "security", "check": "roles", "result": "broken", "evidence": "<b>\u001b\" & 'a'", "remedy": "x > y"}],
      "ok": 1, "missing": 0, "broken": 1, "cannot_be_seen": 0, "pass_pct": 50})";
  DoctorOptions options;
  const auto shown = outcome_of(options, {ok(answer)});
  REQUIRE(shown.code);
  CHECK(*shown.code == kFailed);
  CHECK(shown.out ==
        "security\n"
        "  broken         roles: <b>\\x1b\" & 'a'\n"
        "                 -> x > y\n"
        "\n"
        "1 ok, 0 missing, 1 broken, 0 cannot be seen; 50 % of what can be judged is ok\n");
  options.show.format = Format::kHtml;
  const auto document = outcome_of(options, {ok(answer)});
  REQUIRE(document.code);
  CHECK(*document.code == kFailed);
  CHECK_NE(document.out.find("<td>tls</td><td class=\"ok\">ok</td><td>All is well.</td><td></td>"), std::string::npos);
  CHECK_NE(document.out.find("<td>&lt;b&gt; &quot; &amp; &#39;a&#39;</td><td>x &gt; y</td>"), std::string::npos);
  CHECK_EQ(document.out.find("<b>"), std::string::npos);
}

TEST_CASE("submit: sends the document under its key, and says the job's number") {
  const auto outcome = outcome_of(SubmitOptions{.job = job_of("true")},
                                  {answer_with("201 Created", R"({"id": 17, "name": "true", "repeated": false})")});
  REQUIRE(outcome.code);
  CHECK(outcome.out == "job 17 submitted\n");
  CHECK(outcome.requests[0].find("Idempotency-Key: k1\r\n") != std::string::npos);
  const auto repeated = outcome_of(SubmitOptions{.job = job_of("true")}, {ok(R"({"id": 17, "repeated": true})")});
  CHECK(repeated.out == "job 17 was submitted before\n");
}

TEST_CASE("submit: tries again under the same key when the connection breaks") {
  SubmitOptions options{.job = job_of("true")};
  options.job.key = "";
  const auto outcome = outcome_of(options, {"HTTP/1.1 201 Created\r\nContent-Length: 9\r\n\r\n{", ok(R"({"id": 17})")});
  REQUIRE(outcome.code);
  REQUIRE(outcome.requests.size() == 2);
  const auto key = [](const std::string& request) { return request.substr(request.find("Idempotency-Key: "), 53); };
  CHECK(key(outcome.requests[0]).size() == 53);
  CHECK(key(outcome.requests[0]) == key(outcome.requests[1]));
}

TEST_CASE("jobs: pages are followed, filters are sent, names cannot act on the terminal") {
  JobsOptions options;
  options.queue = "a/b";
  const auto outcome = outcome_of(
      options, {ok(R"({"items": [{"id": 1, "name": "\u001b[2Jx", "queue": "a/b", "user": "ana", "phase": "running",
                     "within": false, "tasks_total": 2, "gpus": 0.5, "nodes": ["n1", "n2"]}], "next_cursor": "c 1"})"),
                ok(R"({"items": [{"id": 2, "name": "y", "phase": "pending", "held": true}], "next_cursor": null})")});
  REQUIRE(outcome.code);
  CHECK(outcome.out.find("\\x1b[2Jx  a/b    ana   running, borrowed") != std::string::npos);
  CHECK(outcome.out.find("0.5  n1,n2\n") != std::string::npos);
  CHECK(outcome.out.find("held") != std::string::npos);
  CHECK(outcome.out.find('\x1b') == std::string::npos);
  CHECK(outcome.requests[0].find("GET /v1/jobs?queue=a%2Fb&limit=1000 ") == 0);
  CHECK(outcome.requests[1].find("cursor=c%201") != std::string::npos);
}

TEST_CASE("job: tells the story in order") {
  const auto outcome = outcome_of(JobViewOptions{{}, "7"}, {ok(R"({"id": 7, "name": "train", "queue": "b", "user": "bo",
    "kind": "gang", "class": "training", "phase": "running", "within": true, "priority": 500, "attempt": 2, "tasks_total": 1,
    "submitted": "2026-11-21T08:00:00.000Z", "waiting_since": "2026-11-21T08:00:00.000Z", "started": "2026-11-21T08:10:00.000Z",
    "past": [{"attempt": 1, "waited_from": "2026-11-21T08:00:00.000Z", "started": "2026-11-21T08:00:30.000Z",
              "ended": "2026-11-21T08:05:30.000Z", "outcome": "preempted", "cause": "reclaim", "preemptor": 9, "code": 0,
              "message": "", "checkpoint_step": 120, "gpus_on": [{"node": "n1", "gpus": 8}]}],
    "tasks": [{"task": 0, "group": "main", "node": "n2", "gpus": ["u1", "u2"], "phase": "running"}],
    "spec": {"comment": "run 3\u001b[2J", "tasks": 1, "gpus": 2, "cpus": 2, "memory": "2GiB",
             "countables": {"rdma/hca": 4}, "node_selector": {"zone": "a"}, "tolerations": ["spot", "team=a"],
             "node_rules": ["cores>16", {"any": [[{"key": "b", "operator": "Exists"}]]}],
             "command": ["python3", "train.py"]}})")});
  REQUIRE(outcome.code);
  const auto begins = [&outcome](const std::string& words) { return outcome.out.find(words); };
  CHECK(begins("comment     run 3\\x1b[2J\n") != std::string::npos);
  CHECK(begins("asks for    1 task with 2 GPUs, 2 CPUs, 2GiB, 4 rdma/hca\n") != std::string::npos);
  CHECK(begins("on nodes    zone=a, cores>16, {\"any\":[[{\"key\":\"b\",\"operator\":\"Exists\"}]]}; "
               "tolerates spot, team=a\n") != std::string::npos);
  CHECK(begins("08:00:30Z  attempt 1 started on n1 (8 GPUs), after a wait of 30s") != std::string::npos);
  CHECK(begins("attempt 1 ended: preempted (reclaim, for job 9), saved at step 120, ran 5m00s") != std::string::npos);
  CHECK(begins("attempt 2 started on n2 (2 GPUs)") != std::string::npos);
  CHECK(begins("submitted") < begins("attempt 1 started"));
  CHECK(begins("attempt 1 ended") < begins("attempt 2 started"));
}

TEST_CASE("job and jobs: an elastic gang is shown as large as it is, and since when") {
  const std::string job = R"({"id": 7, "name": "train", "queue": "b", "user": "bo", "kind": "gang", "class": "training",
    "phase": "running", "within": true, "priority": 500, "attempt": 1, "tasks_total": 8, "gpus": 8,
    "size": {"tasks": 1, "gpus": 1, "since": "2026-11-21T08:10:00.000Z"}, "nodes": ["n1"],
    "submitted": "2026-11-21T08:00:00.000Z", "started": "2026-11-21T08:00:00.000Z", "past": [],
    "tasks": [{"task": 0, "group": "main", "node": "n1", "gpus": ["u1"], "phase": "running"}], "spec": {"tasks": 8}})";
  const auto story = outcome_of(JobViewOptions{{}, "7"}, {ok(job)});
  REQUIRE(story.code);
  CHECK(story.out.find("08:10:00Z  attempt 1 has 1 task of 8 since then, on n1 (1 GPU)\n") != std::string::npos);
  const auto list = outcome_of(JobsOptions{}, {ok(R"({"items": [)" + job + "]}")});
  REQUIRE(list.code);
  CHECK(list.out.find("1 of 8  1 of 8  n1\n") != std::string::npos);
}

TEST_CASE("job: a service runs in its replicas and has no attempt of its own") {
  const auto outcome = outcome_of(JobViewOptions{{}, "7"}, {ok(R"({"id": 7, "name": "web", "queue": "b", "user": "bo",
    "kind": "service", "class": "inference", "phase": "running", "priority": 500, "attempt": 0, "tasks_total": 2,
    "children": {"total": 2, "running": 2, "waiting": 0, "ended": 0, "failed": 0, "current": 2},
    "submitted": "2026-11-21T08:00:00.000Z", "past": [], "tasks": [], "spec": {"tasks": 2}})"),
                                                            ok(R"({"items": []})")});
  REQUIRE(outcome.code);
  CHECK(outcome.out.find("  state       running\n") != std::string::npos);
  CHECK(outcome.out.find("attempt") == std::string::npos);
}

TEST_CASE("job: shows the instants before which it does not start and until which it is wanted") {
  const auto outcome = outcome_of(JobViewOptions{{}, "7"}, {ok(R"({"id": 7, "name": "train", "phase": "finished",
    "spec": {"tasks": 1, "earliest_start": "2027-03-28T01:30:00.000Z", "deadline": "2027-03-29T06:00:00.000Z"}})")});
  REQUIRE(outcome.code);
  CHECK(outcome.out.find("  not before  2027-03-28 01:30:00Z\n") != std::string::npos);
  CHECK(outcome.out.find("  due         2027-03-29 06:00:00Z\n") != std::string::npos);
}

TEST_CASE("job: of a finished one the last saved step has no time") {
  const auto outcome = outcome_of(JobViewOptions{{}, "7"}, {ok(R"({"id": 7, "name": "train", "phase": "finished",
    "outcome": "succeeded", "checkpoint": {"step": 12}})")});
  REQUIRE(outcome.code);
  CHECK(outcome.out.find("step 12\n") != std::string::npos);
}

TEST_CASE("job actions: each is tried, and the first failure is the exit code") {
  const auto outcome = outcome_of(JobActionOptions{JobAction::kHold, {"1", "2", "x"}},
                                  {answer_with("404 Not Found", R"({"detail": "no job 1"})"), ok(R"({"id": 2})")});
  REQUIRE(outcome.code);
  CHECK(*outcome.code == kNotFound);
  CHECK(outcome.out == "job 2 held\n");
  CHECK(outcome.err.find("berth: no job 1\nberth: 'x' is not a job's number") == 0);
}

TEST_CASE("move: says where it goes and until when, and asks with what it was given") {
  const char* answer = R"({"id": 7, "unchanged": false, "moves_to": ["n3", "n4"], "deadline": "2026-11-23T08:00:30Z"})";
  const auto moved = outcome_of(MoveOptions{Format::kTable, "7", {"n1", "n2"}, true}, {ok(answer)});
  REQUIRE(moved.code);
  CHECK(moved.out == "job 7 moves to n3, n4: it leaves by 2026-11-23 08:00:30Z and starts there when it has left\n");
  CHECK(moved.requests[0].find("POST /v1/jobs/7/move ") == 0);
  CHECK(moved.requests[0].find(R"({"off":["n1","n2"],"lose_work":true})") != std::string::npos);
  const auto plain = outcome_of(MoveOptions{Format::kJson, "7", {}, false}, {ok(answer)});
  REQUIRE(plain.code);
  CHECK(plain.requests[0].find("\r\n\r\n{}") != std::string::npos);
  CHECK(boost::json::parse(plain.out) == boost::json::parse(answer));
  const auto refused =
      outcome_of(MoveOptions{{}, "7", {}, false}, {answer_with("409 Conflict", R"({"detail": "why"})")});
  REQUIRE_FALSE(refused.code);
  CHECK(exit_code_of(refused.code.error().code) == kConflict);
  CHECK_FALSE(outcome_of(MoveOptions{{}, "x", {}, false}, {}).code);
  CHECK(outcome_of(MoveOptions{{}, "7", {"n1", ""}, false}, {}).requests.empty());
}

TEST_CASE("cancel: jobs are chosen by what they are, counted, and cancelled only with --yes or an answer") {
  const std::string page = R"({"items": [{"id": 3}, {"id": 5, "parent": 3}, {"id": 9}], "next_cursor": null})";
  JobActionOptions options{JobAction::kCancel, {}};
  options.selector.queue = "a/b";
  options.selector.label = "run=7";
  options.selector.me = true;
  const auto refused = outcome_of(options, {ok(page)});
  REQUIRE_FALSE(refused.code);
  CHECK(refused.requests[0].find("GET /v1/jobs?queue=a%2Fb&mine=true&label=run%3D7&limit=1000 ") == 0);
  CHECK(refused.code.error().message == "this would cancel 2 jobs (3, 9); add --yes");
  options.selector.confirmed = true;
  const auto done = outcome_of(options, {ok(page), ok("{}"), ok("{}")});
  REQUIRE(done.code);
  CHECK(done.out == "job 3 is being cancelled\njob 9 is being cancelled\n2 of 2 jobs\n");
  options.ids = {"4"};
  CHECK_FALSE(outcome_of(options, {}).code);
  CHECK_FALSE(outcome_of(JobActionOptions{JobAction::kCancel, {}}, {}).code);
  JobActionOptions hold{JobAction::kHold, {}};
  hold.selector.user = "bob";
  const auto none = outcome_of(hold, {ok(R"({"items": []})")});
  REQUIRE_FALSE(none.code);
  CHECK(none.requests[0].find("phase=pending") != std::string::npos);
  CHECK(exit_code_of(none.code.error().code) == kNotFound);
}

constexpr const char* kForecast = R"({"id": 7, "phase": "pending", "started": 0, "repeated": false, "warnings": [],
  "places": [{"node": "n1", "tasks": 2, "gpus": 8}],
  "victims": [{"job": 8, "user": "bob", "queue": "b", "cause": "preempt", "gpus": 4, "unsaved_s": 18},
              {"job": 9, "user": "ana", "queue": "b", "cause": "preempt", "gpus": 1, "unsaved_s": 0}]})";

TEST_CASE("prioritize: one job by its number, with what that does; or all that are chosen") {
  const auto one = outcome_of(PrioritizeOptions{"7", "800"}, {ok(kForecast), ok("{}")});
  REQUIRE(one.code);
  CHECK(one.requests[0].find("POST /v1/jobs/7/forecast ") == 0);
  CHECK(one.requests[1].find("PUT /v1/jobs/7/priority ") == 0);
  CHECK(one.out ==
        "job 7 has priority 800; 2 jobs asked to leave for it:\n"
        "  job 8 of bob in b, 4 GPUs (preempt): loses 18s of work (72 GPU-seconds)\n"
        "  job 9 of ana in b, 1 GPU (preempt): loses no work\n");
  const auto older = outcome_of(PrioritizeOptions{"7", "800"}, {answer_with("404 Not Found", "{}"), ok("{}")});
  REQUIRE(older.code);
  CHECK(older.out == "job 7 has priority 800\n");
  const auto none = outcome_of(PrioritizeOptions{"7", "800", true}, {ok(kForecast)});
  REQUIRE(none.code);
  CHECK(none.requests.size() == 1);
  CHECK(none.out.find("job 7 with priority 800: would start on n1 (8 GPUs) when 2 jobs have left:\n") == 0);
  PrioritizeOptions many;
  many.selector.user = "bob";
  many.selector.confirmed = true;
  CHECK_FALSE(outcome_of(many, {}).code);
  many.priority = "900";
  const auto done = outcome_of(many, {ok(R"({"items": [{"id": 3}]})"), ok("{}")});
  REQUIRE(done.code);
  CHECK(done.out == "job 3 has priority 900\n1 of 1 job\n");
}

TEST_CASE("prioritize: a priority class is looked up in the configuration") {
  const std::string config =
      R"({"version": 1, "config": {"priority_classes": {"training": {"value": 500}, "urgent": 900}}})";
  const auto number = outcome_of(PrioritizeOptions{"7", "urgent"}, {ok(config), ok("{}"), ok("{}")});
  REQUIRE(number.code);
  CHECK(number.requests[2].find("{\"priority\": 900}") != std::string::npos);
  CHECK(outcome_of(PrioritizeOptions{"7", "training"}, {ok(config), ok("{}"), ok("{}")}).requests[2].find("500}") !=
        std::string::npos);
  const auto unknown = outcome_of(PrioritizeOptions{"7", "urgnt"}, {ok(config)});
  REQUIRE_FALSE(unknown.code);
  CHECK(unknown.code.error().message == "no priority class 'urgnt'; give a number or one of: training, urgent");
}

TEST_CASE("submit --dry-run: says where the job would start or why it would wait, and submits nothing") {
  SubmitOptions options{job_of("train"), true};
  const auto starts = outcome_of(options, {ok(R"({"id": 7, "phase": "running", "started": 1, "within": false,
      "places": [{"node": "n1", "tasks": 1, "gpus": 8}, {"node": "n2", "tasks": 1, "gpus": 0}], "victims": []})")});
  REQUIRE(starts.code);
  CHECK(starts.requests.size() == 1);
  CHECK(starts.requests[0].find("POST /v1/forecast ") == 0);
  CHECK(starts.out == "would start now on n1 (8 GPUs), n2 (1 task), on borrowed quota\nnothing was submitted\n");
  const auto waits = outcome_of(options, {ok(R"({"id": 7, "phase": "pending", "started": 0, "places": [], "victims": [],
      "warnings": ["too much"], "why": {"headline": "Job 7 waits for 8 free GPUs; 4 are free.", "details": ["one"],
      "remedies": [{"kind": "gpus", "text": "it asked for 4 GPUs"}]}})")});
  REQUIRE(waits.code);
  CHECK(waits.out ==
        "warning: too much\nwould wait: Job 7 waits for 8 free GPUs; 4 are free.\n  one\n"
        "  it would start now if it asked for 4 GPUs\n"
        "nothing was submitted\n");
}

TEST_CASE("queue set: what changes, what a preview says, and the revision that it is held to") {
  const std::string limits = R"("limits": [{"key": "guaranteed.gpus", "value": "9", "before": "8"}])";
  QueueChangeOptions options{"set", "research/nlp", {"guaranteed.gpus=+1"}, "2033-01-01", "0123456789abcdef"};
  const auto set = outcome_of(options, {ok(R"({"queue": "research/nlp", "unchanged": false, )" + limits + "}")});
  REQUIRE(set.code);
  CHECK(set.out.starts_with("research/nlp: guaranteed.gpus 8 -> 9\n  until 2033-01-01"));
  CHECK(set.requests[0].find("POST /v1/queues/research%2Fnlp/changes ") == 0);
  CHECK(set.requests[0].find("If-Match: \"0123456789abcdef\"") != std::string::npos);
  CHECK(set.requests[0].find(R"({"set":["guaranteed.gpus=+1"],"until":"2033-01-01T00:00:00)") != std::string::npos);
  options.dry_run = true;
  options.if_revision.clear();
  const auto looked =
      outcome_of(options, {ok(R"({"queue": "research/nlp", "unchanged": false, "revision": "ab", )" + limits +
                              R"(, "become_borrowed": {"jobs": [3, 4], "not_shown": 1},
      "become_guaranteed": {"jobs": [], "not_shown": 0}, "above_max": true, "start": {"jobs": [7], "not_shown": 0},
      "wait": {"jobs": [], "not_shown": 2}, "stop": {"jobs": [], "not_shown": 0}})")});
  REQUIRE(looked.code);
  CHECK(looked.requests[0].find("POST /v1/queues/research%2Fnlp/changes/preview ") == 0);
  CHECK(looked.out ==
        "research/nlp: guaranteed.gpus 8 -> 9\n"
        "  no longer guaranteed, so other queues may reclaim what they borrow then: jobs 3, 4, and 1 job that you may "
        "not see\n"
        "  more runs than the new max; no job is stopped, and none starts until enough have ended\n"
        "  would start now, or get their places: job 7\n"
        "  would wait longer: 2 jobs that you may not see\n"
        "nothing is changed; to do it, leave --dry-run out and add --if-revision ab, so that you are told if another "
        "changes it in between\n");
  CHECK_FALSE(outcome_of(QueueChangeOptions{"set", "research/nlp", {}, "", ""}, {}).code);
  CHECK_FALSE(outcome_of(QueueChangeOptions{"undo", "research/nlp", {"weight=1"}, "", ""}, {}).code);
  CHECK_FALSE(outcome_of(QueueChangeOptions{"set", "research/nlp", {"weight=1"}, "soon", ""}, {}).code);
  const auto undo = outcome_of(QueueChangeOptions{"undo", "research/nlp", {}, "", ""},
                               {ok(R"({"queue": "research/nlp", "unchanged": false, )" + limits + "}")});
  CHECK(undo.requests[0].find("POST /v1/queues/research%2Fnlp/changes/undo ") == 0);
}

TEST_CASE("grant and revoke: what is bound, and all access of a subject at once") {
  const auto granted = outcome_of(BindOptions{true, "user:ada", "lead", "/", ""},
                                  {ok(R"({"subject": "user:ada", "role": "lead", "queue": "", "unchanged": false})")});
  REQUIRE(granted.code);
  CHECK(granted.out == "user:ada is lead at /\n");
  CHECK(granted.requests[0].find("queue") == std::string::npos);
  BindOptions end{false, "", "", "", ""};
  end.blocked = "user:ada";
  const auto ended = outcome_of(end, {ok(R"({"subject": "user:ada", "blocked": true, "unchanged": false})")});
  REQUIRE(ended.code);
  CHECK(ended.requests[0].find("POST /v1/subjects/block ") == 0);
  end.lift = true;
  CHECK(outcome_of(end, {ok(R"({"subject": "user:ada", "blocked": false})")}).requests[0].find("/unblock ") !=
        std::string::npos);
  CHECK_FALSE(outcome_of(BindOptions{true, "user:ada", "lead", "", ""}, {}).code);
  CHECK_FALSE(outcome_of(BindOptions{false, "user:ada", "lead", "/", "user:ada"}, {}).code);
}

TEST_CASE("wait: until every job has ended, with 1 if one did not succeed; or for a time") {
  const std::string good = R"({"id": 3, "phase": "finished", "outcome": "succeeded"})";
  const std::string bad =
      R"({"id": 4, "phase": "finished", "outcome": "failed", "past": [{"message": "task 0: exited with code 3"}]})";
  const std::string runs = R"({"id": 3, "phase": "running"})";
  WaitOptions options;
  options.ids = {"3"};
  const auto one = outcome_of(options, {ok(runs), ok(good)});
  REQUIRE(one.code);
  CHECK(*one.code == kOk);
  CHECK(one.out == "job 3 succeeded\n");
  options.ids = {"3", "4"};
  const auto two = outcome_of(options, {ok(runs), ok(bad), ok(good)});
  REQUIRE(two.code);
  CHECK(*two.code == kFailed);
  CHECK(two.out == "job 4 failed: task 0: exited with code 3\njob 3 succeeded\n");
  options.ids = {"3"};
  options.until = "running";
  CHECK(outcome_of(options, {ok(runs)}).out == "job 3 runs\n");
  options.until = "finished";
  options.timeout = "0s";
  const auto late = outcome_of(options, {ok(runs)});
  REQUIRE_FALSE(late.code);
  CHECK(exit_code_of(late.code.error().code) == kUnreachable);
  CHECK(late.code.error().message == "1 job (3) not finished after 0s");
  options.timeout = "soon";
  CHECK_FALSE(outcome_of(options, {}).code);
}

TEST_CASE("drain: says when the node goes away, in seconds, or refuses a time without a unit") {
  const auto drained = outcome_of(NodeActionOptions{NodeAction::kDrain, {"n"}, false, "2m"}, {ok("{}")});
  REQUIRE(drained.code);
  CHECK(drained.requests[0].find("POST /v1/nodes/n/drain?gone_in_s=120 ") == 0);
  const auto unclear = outcome_of(NodeActionOptions{NodeAction::kDrain, {"n"}, false, "120"}, {});
  CHECK_FALSE(unclear.code);
  CHECK(unclear.requests.empty());
}

TEST_CASE("drain: names the jobs that leave, and the work of those that cannot save") {
  const std::string jobs = R"({"name": "n", "unchanged": false, "jobs": [
      {"id": 3, "user": "ann", "leaves": true, "loses_work": false, "unsaved_s": 0, "gpus": 2},
      {"id": 9, "user": "bob", "leaves": false, "loses_work": true, "unsaved_s": 7200, "gpus": 4}]})";
  NodeActionOptions options{NodeAction::kDrain, {"n"}, false, {}};
  const auto drained = outcome_of(options, {ok(jobs)});
  REQUIRE(drained.code);
  CHECK(drained.requests[0].find("POST /v1/nodes/n/drain ") == 0);
  CHECK(drained.out ==
        "node n is draining: nothing new starts there\n"
        "  1 job asked to save and to start elsewhere: 3\n"
        "  1 job may finish first, not saving when asked to leave (checkpoint.on_signal); stopped now, lost would be\n"
        "    job 9 of bob: 2h of work on 4 GPUs\n"
        "  to stop what is left: berth drain --lose-work n\n");
  options.lose_work = true;
  CHECK(outcome_of(options, {ok("{}")}).requests[0].find("POST /v1/nodes/n/drain?lose_work=true ") == 0);
  options = {NodeAction::kDrain, {"n"}, false, {}};
  options.deadline = "2h";
  CHECK(outcome_of(options, {ok("{}")}).requests[0].find("POST /v1/nodes/n/drain?deadline_s=7200 ") == 0);
  options.deadline = "soon";
  CHECK_FALSE(outcome_of(options, {}).code);
}

TEST_CASE("fence: only with the word that the node is off") {
  CHECK_FALSE(outcome_of(NodeActionOptions{NodeAction::kFence, {"n"}, false, {}}, {}).code);
  const auto fenced = outcome_of(NodeActionOptions{NodeAction::kFence, {"n/1"}, true, {}}, {ok("{}")});
  REQUIRE(fenced.code);
  CHECK(fenced.requests[0].find("POST /v1/nodes/n%2F1/fence ") == 0);
}

const char* const kReport = R"({"from": "2026-11-21T08:00:00.000Z", "to": "2026-11-21T09:00:00.000Z",
  "items": [{"queue": "=cmd", "user": "ana", "gpu_model": "H100", "kind": "within", "gpu_milli_ms": 1500000000},
           {"queue": "=cmd", "user": "ana", "gpu_model": "H100", "kind": "borrowed", "gpu_milli_ms": 500250000,
            "simulated": true}],
  "idle_gpu_milli_ms": 999750000, "down_gpu_milli_ms": 0, "capacity_gpu_milli_ms": 3000000000})";

TEST_CASE("usage: within and borrowed side by side, and what is left adds up") {
  const auto outcome = outcome_of(UsageOptions{{}, "-24h", "now"}, {ok(kReport)});
  REQUIRE(outcome.code);
  CHECK(outcome.requests[0].find("/v1/usage?from=20") != std::string::npos);
  CHECK(outcome.out.find("1500.000     0.000     1500.000        50.0%") != std::string::npos);
  CHECK(outcome.out.find("simulated H100") != std::string::npos);
  CHECK(outcome.out.find("used in all") != std::string::npos);
  CHECK(outcome.out.find("idle") < outcome.out.find("capacity "));
  CHECK_FALSE(outcome_of(UsageOptions{{}, "soon", ""}, {}).code);
}

TEST_CASE("usage: one line for each queue, user or job") {
  UsageOptions options;
  options.by = "user";
  const auto by_user = outcome_of(options, {ok(kReport)});
  REQUIRE(by_user.code);
  CHECK(by_user.out.find("=cmd") == std::string::npos);
  CHECK(by_user.out.find("1500.000   500.250     2000.250       0.56") != std::string::npos);
  options.by = "job";
  options.from = "-24h";
  const auto by_job = outcome_of(options, {ok(R"({"items": [
      {"id": 1, "name": "a", "phase": "running", "gpu_seconds": 3600},
      {"id": 2, "name": "b", "phase": "finished", "outcome": "failed", "gpu_seconds": 9000.5},
      {"id": 3, "name": "c", "phase": "pending", "gpu_seconds": 0}], "next_cursor": null})")});
  REQUIRE(by_job.code);
  CHECK(by_job.requests[0].find("GET /v1/jobs?since=20") == 0);
  CHECK(by_job.out.find("2.50\n") < by_job.out.find("1.00\n"));
  CHECK(by_job.out.find(" c ") == std::string::npos);
}

TEST_CASE("events: with a limit and no start the newest, also of one kind") {
  EventsOptions options;
  options.limit = 2;
  const auto event = [](int seq) {
    return R"({"seq": )" + std::to_string(seq) + R"(, "time": "2026-11-21T08:15:30.250Z", "kind": "x"})";
  };
  const std::string cluster = R"({"seq": 9})";
  const auto plain =
      outcome_of(options, {ok(cluster), ok("{\"items\": [" + event(8) + ", " + event(9) + "], \"next_from\": 10}")});
  REQUIRE(plain.code);
  CHECK(plain.requests[1].find("GET /v1/events?from=8&") == 0);
  options.kind = "x";
  const auto filtered =
      outcome_of(options, {ok(cluster), ok("{\"items\": [" + event(1) + ", " + event(3) + "], \"next_from\": 5}"),
                           ok("{\"items\": [" + event(7) + "], \"next_from\": 10}")});
  REQUIRE(filtered.code);
  CHECK(filtered.requests[1].find("GET /v1/events?from=0&") == 0);
  CHECK(filtered.out.substr(0, 1) == "3");
  CHECK(std::count(filtered.out.begin(), filtered.out.end(), '\n') == 2);
}

TEST_CASE("jobs: finished ones by time, with exit code, nodes, elapsed and GPU-hours") {
  JobsOptions options;
  options.since = "2026-11-20";
  options.label = "run=7";
  options.show.format = Format::kWide;
  const auto jobs = outcome_of(options, {ok(R"({"items": [{"id": 7, "phase": "finished", "outcome": "failed", "code": 3,
      "elapsed_s": 5400, "gpu_seconds": 10800, "nodes": ["n1", "n2"], "labels": {"run": "7", "team": "x"}}]})")});
  REQUIRE(jobs.code);
  CHECK(jobs.requests[0].find("label=run%3D7&since=2026-11-20T00%3A00%3A00.000Z") != std::string::npos);
  CHECK(jobs.out.find("NODES  EXIT  ELAPSED  GPU-HOURS") != std::string::npos);
  CHECK(jobs.out.find("n1,n2     3    1h30m       3.00") != std::string::npos);
  CHECK(jobs.out.find("run=7,team=x") != std::string::npos);
}

TEST_CASE("lists: CSV has the wide table's columns, and its heading even where nothing is listed") {
  const auto csv = [](auto options, const std::string& answer) {
    options.show.format = Format::kCsv;
    return outcome_of(options, {ok(answer)}).out;
  };
  const std::string jobs = csv(JobsOptions{}, R"({"items": [{"id": 7, "name": "=x", "queue": "a", "user": "ana",
      "phase": "pending", "gpus": 8, "nodes": [], "priority": -5, "labels": {"run": "7", "team": "x"}}]})");
  CHECK(jobs.starts_with("ID,NAME,QUEUE,USER,STATE,FOR,TASKS,GPUS,NODES,KIND,CLASS,PRIORITY,"));
  CHECK(jobs.find("\r\n7,'=x,a,ana,pending,,,8,,,,-5,,,,,\"run=7,team=x\"\r\n") != std::string::npos);
  const std::string none = csv(JobsOptions{}, R"({"items": []})");
  CHECK(none.starts_with("ID,NAME,"));
  CHECK(std::count(none.begin(), none.end(), '\n') == 1);
  const std::string queues = csv(QueuesOptions{}, R"({"items": [{"path": "a/b", "depth": 2, "pending": 3}]})");
  CHECK(queues.find("\r\na/b,") != std::string::npos);
  const std::string node = R"({"name": "n1", "status": "ready", "gpus": [{"index": 0}], "gpus_free": 1, "gpus_total": 8,
      "labels": {"berth.simulated": "cpus"}})";
  const std::string nodes = csv(NodesOptions{}, "{\"items\": [" + node + "]}");
  CHECK(nodes.find("\r\nn1,ready,1 of 8,") != std::string::npos);
  CHECK(nodes == csv(NodesOptions{{}, "n1"}, node));
}

TEST_CASE("lists: columns of the user's choice, in a table and in CSV") {
  const auto shown = [](auto options, const char* columns, const std::string& answer, Format format = Format::kTable) {
    options.show.columns = *parse_columns(columns);
    options.show.format = format;
    return outcome_of(options, {ok(answer)}).out;
  };
  const std::string jobs = R"({"items": [{"id": 7, "user": "\u001b[2Jana", "labels": {"run": "x"}}, {"id": 12}]})";
  CHECK(shown(JobsOptions{}, "ID:id,WHO:user,RUN:labels.run", jobs) ==
        "ID  WHO         RUN\n 7  \\x1b[2Jana  x\n12  -           -\n");
  CHECK(shown(JobsOptions{}, "id,nope", R"({"items": []})") == "ID  NOPE\n");
  CHECK(shown(JobsOptions{}, "id,labels", jobs, Format::kCsv) == "ID,LABELS\r\n7,run=x\r\n12,\r\n");
  const std::string queue = R"({"path": "a", "usage": {"gpus": 4}})";
  CHECK(shown(QueuesOptions{}, "Q:path,USED:usage.gpus", "{\"items\": [" + queue + "]}") == "Q  USED\na     4\n");
  CHECK(shown(QueuesOptions{{}, "a"}, "Q:path,USED:usage.gpus", queue) == "Q  USED\na     4\n");
  CHECK(shown(NodesOptions{{}, "n1"}, "name,gpus.model", R"({"name": "n1", "gpus": [{"model": "H100"}]})") ==
        "NAME  GPUS.MODEL\nn1    H100\n");
  CHECK(shown(UsageOptions{}, "user,kind", kReport) == "USER  KIND\nana   within\nana   borrowed\n");
  QueuesOptions explained{{}, "a", true};
  explained.show.columns = *parse_columns("path");
  CHECK_FALSE(outcome_of(explained, {}).code);
}

TEST_CASE("top: users and queues by the GPUs that they have, then by those that they wait for") {
  const std::string jobs = R"({"items": [
      {"id": 1, "user": "ana", "queue": "a", "phase": "running", "gpus": 2},
      {"id": 2, "user": "bob", "queue": "a", "phase": "running", "gpus": 16, "size": {"gpus": 4}},
      {"id": 3, "user": "bob", "queue": "b", "phase": "stopping", "gpus": 0.5},
      {"id": 4, "user": "cy", "queue": "b", "phase": "pending", "gpus": 8, "waiting_since": "2026-11-21T08:10:00.000Z"},
      {"id": 5, "user": "cy", "queue": "b", "phase": "pending", "gpus": 1, "waiting_since": "2026-11-21T08:00:00.000Z"},
      {"id": 6, "user": "ana", "queue": "a", "kind": "service", "phase": "running", "gpus": 2, "children":
       {"total": 2, "running": 1, "waiting": 0, "ended": 3}},
      {"id": 7, "user": "dan", "queue": "b", "kind": "array", "phase": "pending", "gpus": 1, "children":
       {"total": 10, "running": 1, "waiting": 2, "ended": 3}, "waiting_since": "2026-11-21T08:20:00.000Z"},
      {"id": 8, "user": "eve", "queue": "b", "kind": "array", "phase": "stopping", "gpus": 1, "children":
       {"total": 10, "running": 0, "waiting": 0, "ended": 3}, "waiting_since": "2026-11-21T08:20:00.000Z"}]})";
  TopOptions options;
  options.show.format = Format::kJson;
  const auto told = outcome_of(options, {ok(jobs)});
  REQUIRE(told.code);
  CHECK(boost::json::parse(told.out) == boost::json::parse(R"({"users": [
      {"user": "bob", "gpus": 4.5, "running": 2, "pending": 0, "gpus_pending": 0},
      {"user": "ana", "gpus": 2, "running": 1, "pending": 0, "gpus_pending": 0},
      {"user": "cy", "gpus": 0, "running": 0, "pending": 2, "gpus_pending": 9,
       "waiting_since": "2026-11-21T08:00:00.000Z"},
      {"user": "dan", "gpus": 0, "running": 0, "pending": 4, "gpus_pending": 4,
       "waiting_since": "2026-11-21T08:20:00.000Z"}],
    "queues": [{"queue": "a", "gpus": 6, "running": 2, "pending": 0, "gpus_pending": 0},
      {"queue": "b", "gpus": 0.5, "running": 1, "pending": 6, "gpus_pending": 13,
       "waiting_since": "2026-11-21T08:00:00.000Z"}]})"));
  options.show.format = Format::kTable;
  options.by = "user";
  options.queue = "a/b";
  const auto table = outcome_of(options, {ok(jobs)});
  CHECK(table.requests[0].starts_with("GET /v1/jobs?queue=a%2Fb&limit=1000 "));
  CHECK(
      table.out.starts_with("USER  GPUS  RUNNING  PENDING  GPUS PENDING  LONGEST WAIT\n"
                            "bob    4.5        2        0             0             -\n"
                            "ana      2        1        0             0             -\n"
                            "cy       0        0        2             9  "));
  CHECK(table.out.find("QUEUE") == std::string::npos);
  CHECK(outcome_of(options, {ok(R"({"items": []})")}).out == "no jobs\n");
}

TEST_CASE("usage: CSV without formulas") {
  CHECK(outcome_of(UsageOptions{{.format = Format::kCsv}, "", ""}, {ok(kReport)}).out ==
        "queue,user,gpu_model,kind,gpu_seconds,simulated\r\n"
        "'=cmd,ana,H100,within,1500.000,false\r\n"
        "'=cmd,ana,H100,borrowed,500.250,true\r\n"
        ",,,idle,999.750,false\r\n,,,down,0.000,false\r\n,,,capacity,3000.000,false\r\n");
}

TEST_CASE("logs: the parts in order, then no more") {
  const auto part = [](const std::string& bytes, int from, bool complete) {
    const std::string next = std::to_string(from + static_cast<int>(bytes.size()));
    return "HTTP/1.1 200 OK\r\nConnection: close\r\nBerth-Log-From: " + std::to_string(from) +
           "\r\nBerth-Log-Next: " + next +
           "\r\nBerth-Log-Attempt: 2\r\nBerth-Log-Complete: " + (complete ? "true" : "false") +
           "\r\nContent-Length: " + std::to_string(bytes.size()) + "\r\n\r\n" + bytes;
  };
  LogsOptions options;
  options.id = "7";
  const auto outcome =
      outcome_of(options, {part("one\n", 0, false), part("two\n", 4, true), part("", 8, true), part("", 0, true)});
  REQUIRE(outcome.code);
  CHECK(outcome.out == "one\ntwo\n");
  CHECK(outcome.requests[1].find("from=4") != std::string::npos);
  options.follow = true;
  const auto followed =
      outcome_of(options, {part("a", 0, false), part("", 1, true),
                           ok(R"({"phase": "finished", "attempt": 2, "tasks_total": 1})"), part("", 0, true)});
  REQUIRE(followed.code);
  CHECK(followed.out == "a");
}

TEST_CASE("logs: what a failed job wrote to standard error is shown, too") {
  const auto part = [](const std::string& bytes, std::int64_t from) {
    return "HTTP/1.1 200 OK\r\nConnection: close\r\nberth-log-from: " + std::to_string(from) +
           "\r\nberth-log-next: " + std::to_string(from + static_cast<std::int64_t>(bytes.size())) +
           "\r\nberth-log-attempt: 2\r\nberth-log-complete: true\r\nContent-Length: " + std::to_string(bytes.size()) +
           "\r\n\r\n" + bytes;
  };
  LogsOptions options;
  options.id = "7";
  const auto both = outcome_of(options, {part("", 0), part("oops\n", 0), part("", 5)});
  REQUIRE(both.code);
  CHECK(both.out.empty());
  CHECK(both.err == "berth: standard error of task 0:\noops\n");
  CHECK(both.requests[1].find("attempt=2") != std::string::npos);
  CHECK(both.requests[1].find("stream=stderr") != std::string::npos);
  const auto silent = outcome_of(options, {part("a", 0), part("", 1), part("", 0)});
  CHECK(silent.out == "a");
  CHECK(silent.err.empty());
  options.stream = "stdout";
  CHECK(outcome_of(options, {part("", 0)}).requests.size() == 1);
  options.stream = "stderr";
  const auto errors = outcome_of(options, {part("oops\n", 0), part("", 5)});
  CHECK(errors.out == "oops\n");
  CHECK(errors.err.empty());
}

TEST_CASE("queues: limits of users and the order by attained service are shown") {
  const std::string head = R"("depth": 1, "policy": "best-effort", "max_per_user": )";
  const std::string limited = R"({"path": "a", )" + head +
                              R"({"jobs": 1, "gpus": 2.5}, "attained_service": {}, "users": )" +
                              R"([{"user": "ann", "jobs": 1, "gpus": 2, "submitted": 3}]})";
  QueuesOptions options;
  options.path = "a";
  const std::string one = outcome_of(options, {ok(limited)}).out;
  CHECK(one.substr(one.find("\n\n")) ==
        "\n\nper user, at most: 1 job, 2.5 GPUs\n"
        "USER    JOBS      GPUS  SUBMITTED\n"
        "ann   1 of 1  2 of 2.5          3\n");
  CHECK(outcome_of(options, {ok(R"({"path": "b", )" + head + "{}}")}).out.find("per user") == std::string::npos);
  const std::string terms = R"(, "eviction": {"min_runtime_s": 7200, "min_runtime_of": "a", "cooldown_s": 0, )"
                            R"("cooldown_of": "", "grace_s": 30, "grace_of": "", "limits": [{"queue": "a", )"
                            R"("evictions_per_hour": 10, "used": 3}]}})";
  const std::string agreed = outcome_of(options, {ok(R"({"path": "a/b", )" + head + "{}" + terms)}).out;
  CHECK(agreed.substr(agreed.find("\n\n")) ==
        "\n\neviction: minimum run time 2h (of a), after an eviction 0s (the cluster's), grace 30s (the cluster's)\n"
        "  of a at most 10 within an hour; so far 3\n");
  options.path.clear();
  options.show.format = Format::kWide;
  const std::string all =
      outcome_of(options, {ok(R"({"items": [)" + limited + R"(, {"path": "b", )" + head + "{}}]}")}).out;
  CHECK(all.find("best-effort, attained service  1 job, 2.5 GPUs") != std::string::npos);
  CHECK(all.find("POLICY                         PER USER") != std::string::npos);
  CHECK(all.find("ann") == std::string::npos);
}

TEST_CASE("logs: where the last lines begin") {
  CHECK(tail_begin("a\nb\nc\n", 2) == 2);
  CHECK(tail_begin("a\nb\nc", 2) == 2);
  CHECK(tail_begin("a\nb\n", 5) == 0);
  CHECK(tail_begin("a\nb\n", 0) == 4);
  CHECK(tail_begin("", 3) == 0);
}

TEST_CASE("diff: the exit code is that of diff") {
  DiffOptions options;
  options.file = "examples/no-such-file.yaml";
  const auto absent = outcome_of(options, {});
  REQUIRE_FALSE(absent.code);
  CHECK(absent.code.error().message.find("examples/no-such-file.yaml: ") == 0);
}

TEST_CASE("connection: flag over environment over default") {
  std::map<std::string, std::string> variables{
      {"BERTH_SERVER", "127.0.0.2:99"}, {"BERTH_TOKEN", "abc"}, {"HOME", "/nonexistent"}};
  const Environment environment = [&variables](const std::string& name) { return variables[name]; };
  CHECK(find_server({}, environment)->base_url == "http://127.0.0.2:99");
  CHECK(find_server({}, environment)->token == "abc");
  CHECK(find_server({"https://h", ""}, environment)->base_url == "https://h");
  CHECK_FALSE(find_server({"", "/nonexistent/token"}, environment));
  variables["BERTH_CA"] = "/ca";
  variables["BERTH_CERT"] = "/cert";
  variables["BERTH_KEY"] = "/key";
  CHECK(find_server({}, environment)->ca_file == "/ca");
  CHECK(find_server({}, environment)->key_file == "/key");
  CHECK(find_server({.ca = "/mine", .cert = "/own"}, environment)->ca_file == "/mine");
  CHECK(find_server({.ca = "/mine", .cert = "/own"}, environment)->cert_file == "/own");
  variables.clear();
  CHECK(find_server({}, environment)->base_url == kDefaultServer);
  CHECK(find_server({}, environment)->token.empty());
}

TEST_CASE("connection: a socket is an address of its own, and the token at its default place stays at home") {
  const std::string home = std::filesystem::temp_directory_path() / ("berth-home-" + std::to_string(::getpid()));
  std::filesystem::create_directories(home + "/berth");
  std::ofstream(home + "/berth/token") << "of-the-file\n";
  std::map<std::string, std::string> variables{{"BERTH_SERVER", "unix:/run/x.sock"}, {"XDG_STATE_HOME", home}};
  const Environment environment = [&variables](const std::string& name) { return variables[name]; };
  CHECK(find_server({}, environment)->base_url == "unix:/run/x.sock");
  CHECK(find_server({}, environment)->token.empty());
  CHECK(find_server({.server = "https://h"}, environment)->token == "of-the-file");
  CHECK_FALSE(find_server({.server = "http://h"}, environment));  // it would cross the network in the clear
  variables["BERTH_TOKEN"] = "named";
  CHECK(find_server({}, environment)->token == "named");
  client::Client nobody({.base_url = "unix:" + home + "/none"});
  const auto reply = nobody.get("/v1/identity");
  REQUIRE_FALSE(reply);
  CHECK(reply.error().message ==
        "cannot connect to unix:" + home + "/none: No such file or directory; no server listens there");
  std::filesystem::remove_all(home);
}

TEST_CASE("prices: a mistake that the server finds is told at its place in the file") {
  const std::string path = "prices_of_test.yaml";
  const std::string text =
      "currency: EUR  # as it is\nprices:\n  - {valid_from: 2026-11-01, gpus: {H100: {floor: 2, burst: 3}}}\n";
  std::ofstream(path) << text;
  PricesOptions apply;
  apply.action = "apply";
  apply.file = path;
  const auto refused = outcome_of(
      apply, {answer_with("400 Bad Request", R"({"detail": "body:3:5: gpus: wrong\nbody:9:1: body: too"})")});
  std::filesystem::remove(path);
  REQUIRE_FALSE(refused.code);
  CHECK(refused.code.error().message == path + ":3:5: gpus: wrong\n" + path + ":9:1: body: too");
  REQUIRE(refused.requests.size() == 1);
  CHECK(refused.requests[0].ends_with("\r\n\r\n" + text));
  CHECK(refused.requests[0].find("Content-Type: application/yaml\r\n") != std::string::npos);
}

TEST_CASE("bill: an amount above the bound is told with the bound, and what is no amount as that") {
  BillOptions correct;
  correct.queue = "a";
  correct.month = "2026-10";
  correct.reason = "x";
  for (const std::string amount : {"9223372036854", "-100000000.5"}) {
    correct.correct = amount;
    CHECK(outcome_of(correct, {}).code.error().message ==
          "--correct: " + amount + " is more than a correction may be, 100000000 at most");
  }
  correct.correct = "12,50";
  CHECK(outcome_of(correct, {}).code.error().message == "--correct: '12,50' is no amount such as -12.50");
  correct.correct = "-0100000000";
  const auto sent = outcome_of(correct, {answer_with("409 Conflict", R"({"detail": "words"})")});
  CHECK(sent.requests.at(0).find(R"("amount_micro":-100000000000000)") != std::string::npos);
}

TEST_CASE("bill: options that do not go together are refused, and nothing is asked") {
  const auto says = [](auto&& change) {
    BillOptions options;
    options.month = "2026-10";
    change(options);
    const auto outcome = outcome_of(options, {});
    CHECK(outcome.requests.empty());
    REQUIRE_FALSE(outcome.code);
    CHECK(outcome.code.error().code == ErrorCode::kInvalid);
    return outcome.code.error().message;
  };
  const std::string each = "; call berth bill for each";
  CHECK_EQ(says([](auto& o) { o.correct = "-1", o.close = true; }), "--correct and --close do not go together" + each);
  CHECK_EQ(says([](auto& o) { o.correct = "-1", o.prices = "x"; }), "--correct and --prices do not go together" + each);
  CHECK_EQ(says([](auto& o) { o.correct = "-1", o.by = "user"; }), "--correct and --by do not go together" + each);
  CHECK_EQ(says([](auto& o) { o.correct = "-1", o.label = "x"; }), "--correct and --label do not go together" + each);
  CHECK_EQ(says([](auto& o) { o.correct = "-1", o.line = "x"; }), "--correct and --line do not go together" + each);
  CHECK_EQ(says([](auto& o) { o.line = "x", o.close = true; }), "--line and --close do not go together" + each);
  CHECK_EQ(says([](auto& o) { o.reason = "x"; }), "--reason needs --correct, the amount that it is about");
  CHECK_EQ(says([](auto& o) { o.job = 1; }), "--job needs --correct, the amount that it is about");
  CHECK_EQ(says([](auto& o) { o.key = "x"; }), "--key needs --correct, the amount that it is about");
  CHECK_EQ(says([](auto& o) { o.after = "x"; }), "--after needs --line, the line that it is about");
  CHECK_EQ(says([](auto& o) { o.label = "x", o.by = "user"; }),
           "--label and --by user do not go together; --label needs --by label");
}

TEST_CASE("bill: the root is /, a month that is over goes on no more, and a part as CSV says so") {
  BillOptions root;
  root.queue = "/";
  const auto bill = [](const char* to) {
    return std::string(
               R"({"month": "2026-10", "queue": "", "currency": "EUR", "number": "", "by": "queue", "total": "1.0000",
      "expected_micro": 2000000, "partial": true, "fleet": [], "items": [{"name": "a", "amount": "1.0000",
      "floor_used_gpu_milli_ms": 0, "floor_idle_gpu_milli_ms": 0, "floor_lent_gpu_milli_ms": 0,
      "burst_gpu_milli_ms": 0}], "to": ")") +
           to + "\"}";
  };
  const auto over = outcome_of(root, {ok(bill("2026-11-01T00:00:00.000Z"))});
  CHECK(over.requests.at(0).starts_with("GET /v1/bill HTTP"));
  CHECK(over.out.find("total 1.0000 EUR\n") != std::string::npos);
  const auto going = outcome_of(root, {ok(bill("2026-10-31T23:59:59.999Z"))});
  CHECK(going.out.find("total 1.0000 EUR; if the month goes on like this: 2.0000 EUR") != std::string::npos);
  CHECK_EQ(going.err, "");
  root.format = Format::kCsv;
  const auto csv = outcome_of(root, {ok(bill("2026-10-31"))});
  CHECK(csv.err.starts_with("a part of the bill: only the lines that you may see"));
  CHECK(csv.out.starts_with("QUEUE,"));
}

TEST_CASE("bill: a correction opens to its event, with the reason") {
  BillOptions open;
  open.line = "0-29b7cbefff49";
  const auto shown = outcome_of(open, {ok(R"({"currency": "EUR", "line": {"kind": "correction", "queue": "a", "job": 0,
      "unit": "none", "quantity": "0.0000", "unit_price": "0.0000", "amount": "5.0000",
      "note": "event 13 corrects 2026-10: x"}, "stretches": [],
      "events": [{"seq": 13, "time": "2026-11-28T08:00:00.000Z", "event": "bill-corrected", "job": 0}]})")});
  REQUIRE(shown.code);
  CHECK(shown.out ==
        "correction of queue a, event 13 corrects 2026-10: x: 5.0000 EUR\n\n"
        "EVENT  TIME                      KIND            JOB\n"
        "   13  2026-11-28T08:00:00.000Z  bill-corrected    -\n");
}

TEST_CASE("bill and invoice: what holds only what the reader may see says so") {
  const std::string bill = R"({"month": "2026-11", "queue": "a", "to": "2026-11-28", "currency": "EUR", "number": "",
      "items": [{"name": "a", "amount": "1.0000"}], "total": "1.0000", "expected_micro": 0, "fleet": [], "lines": [],
      "partial": )";
  const auto part = outcome_of(BillOptions(), {ok(bill + "true}")});
  CHECK(part.out.starts_with(
      "Part of the bill of queue a for 2026-11, until 2026-11-28\nonly the lines that you may see"));
  CHECK(outcome_of(BillOptions(), {ok(bill + "false}")})
            .out.starts_with("Bill of queue a for 2026-11, until 2026-11-28\n\n"));
  CHECK(
      outcome_of(InvoiceOptions(), {ok(bill + "true}")}).out.starts_with("a part: only the lines that you may see\n"));
  CHECK(outcome_of(InvoiceOptions(), {ok(bill + "false}")}).out.starts_with("not closed"));
}

TEST_CASE("events: told in words, and those of a kind to come by their fields") {
  const auto words = [](const char* json) { return event_words(boost::json::parse(json)); };
  CHECK(
      words(R"({"kind": "stop-began", "job": 7, "attempt": 1, "cause": "reclaim", "preemptor": 9, "deadline": "D"})") ==
      "job 7 attempt 1 is asked to stop: reclaim, for job 9, until D");
  CHECK(stop_words(boost::json::parse(R"({"cause": "consolidate", "preemptor": 9, "moves_to": [{"node": "n1"},
    {"node": "n1"}, {"node": "n2"}]})")) == "consolidate, for job 9, moves to n1, n2");
  const char* place = R"([{"node": 0, "gpus": [1, 2]}])";
  CHECK(words((R"({"kind": "move-nominated", "job": 7, "attempt": 1, "placements": )" + std::string(place) + "}")
                  .c_str()) == "job 7 attempt 1 will move to 1 task on 2 GPUs");
  CHECK(words((R"({"kind": "nominated", "job": 7, "victims": [], "cause": "consolidate", "placements": )" +
               std::string(place) + "}")
                  .c_str()) == "job 7 is nominated for 1 task on 2 GPUs (to start again after its move)");
  CHECK(words(R"({"kind": "move-ordered", "job": 7, "attempt": 1, "off": [0], "lose_work": true, "user": "op"})") ==
        "job 7 attempt 1 is ordered to move off 1 node, even if its work is lost by op");
  CHECK(words(R"({"kind": "node-images-changed", "node": 0, "pulled": ["a", "b"], "dropped": ["c"]})") ==
        "node 0 has pulled a, b and has dropped c");
  CHECK(
      words(R"({"kind": "foreign-use-changed", "node": 0, "use": {"cpu_milli": 1500, "memory_mib": 2048, "gpus": [6, 7],
                  "countables": {"pods": 3}}})") == "node 0: others use 2 GPUs, 1.5 CPUs, 2GiB, 3 pods");
  CHECK(words(R"({"kind": "foreign-use-changed", "node": 0, "use": {"cpu_milli": 0, "memory_mib": 0, "gpus": [],
                  "countables": {}}})") == "node 0: others use nothing");
  CHECK(words(R"({"kind": "job-finished", "job": 7, "outcome": "failed", "code": 3, "message": "m"})") ==
        "job 7 failed, code 3: m");
  CHECK(words(R"({"seq": 1, "time": "T", "kind": "new", "job": 7, "x": {"y": 1}})") == "job=7 x={\"y\": 1}");
}

TEST_CASE("completion: a script for each shell names every command") {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    CAPTURE(shell);
    const auto outcome = outcome_of(CompletionOptions{shell}, {});
    REQUIRE(outcome.code);
    for (const char* command : {"submit", "jobs", "why", "serve"}) {
      CHECK(outcome.out.find(command) != std::string::npos);
    }
  }
}

}  // namespace
}  // namespace berth::cli
