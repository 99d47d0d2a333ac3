#include "api/routes/routes.h"

#include <doctest/doctest.h>

#include <set>
#include <tuple>

#include "api/http/openapi.h"
#include "api/routes/access.h"
#include "api/routes/documents.h"
#include "api/routes/fake_service.h"
#include "api/routes/json_text.h"
#include "api/routes/schema_check.h"

namespace berth::api {
namespace {

namespace json = boost::json;

constexpr const char* kPrices =
    R"({"currency":"EUR","prices":[{"valid_from":"2023-01-01","gpus":{"H100":{"floor":2.5,"burst":3}},)"
    R"("cpu_core":0.02,"adjustments":{"batch":-20},"quantities":{"storage":{"unit":"GiB-hours","price":0.0001}},)"
    R"("off_peak":[{"from":"20:00","to":"08:00","zone":"Europe/Paris","discount":30}]}]})";
constexpr const char* kJob = R"({"name":"train","queue":"a","tasks":2,"gpus":2,"command":["python3","train.py"]})";
constexpr const char* kBigJob = R"({"name":"big","queue":"b/nlp","user":"bob","gpus":8,"command":["run"]})";
constexpr const char* kConfig = R"({"gpu_models":{"H100":{"memory":"80GiB"}},"queues":{"a":{"weight":2},)"
                                R"("b":{"max":{"gpus":7.5},"queues":{"nlp":{}}}}})";

// Ids 1: runs in a; 2: waits in b/nlp, held; 3: finished.
struct World {
  FakeService service;
  World() {
    set_up_cluster(service);
    Client client(service);
    REQUIRE_EQ(client.call({.method = "POST", .target = "/v1/jobs", .body = kJob, .user = "ann"}).status, 201);
    REQUIRE_EQ(client.call({.method = "POST", .target = "/v1/jobs", .body = kBigJob}).status, 201);
    REQUIRE_EQ(client.call({.method = "POST", .target = "/v1/jobs", .body = kJob}).status, 201);
    REQUIRE(service.run(ReportCheckpoint{JobId(1), 1, 120}));
    service.finish(JobId(3), 0);
    REQUIRE_EQ(service.past.size(), 1);
  }
};

std::string code_of(const http::Response& response) {
  CHECK_EQ(response.content_type, "application/problem+json");
  const auto document = json::parse(response.body);
  CHECK_EQ(document.at("status").to_number<int>(), response.status);
  return document.at("code").as_string().c_str();
}

std::string detail_of(const http::Response& response) {
  return json::parse(response.body).at("detail").as_string().c_str();
}

http::Response submit(const Client& client, const std::string& body, const std::string& key = "",
                      const std::string& user = "admin") {
  std::vector<http::Header> headers;
  if (!key.empty()) headers.push_back({"idempotency-key", key});
  return client.call({.method = "POST", .target = "/v1/jobs", .body = body, .headers = headers, .user = user});
}

// One good call of every operation of the document, in an order in which each finds what it needs.
const std::vector<std::pair<std::string, Ask>>& one_call_each() {
  static const std::vector<std::pair<std::string, Ask>> calls = {
      {"getHealth", {.target = "/healthz", .user = ""}},
      {"getReadiness", {.target = "/readyz", .user = ""}},
      {"getOpenApi", {.target = "/openapi.json", .user = ""}},
      {"getMetrics", {.target = "/metrics"}},
      {"getCluster", {.target = "/v1/cluster"}},
      {"getClock", {.target = "/v1/clock"}},
      {"confirmClock", {.method = "POST", .target = "/v1/clock/confirm?offset_ms=7200000"}},
      {"getIdentity", {.target = "/v1/identity"}},
      {"checkAccess", {.target = "/v1/access?verb=submit&queue=a"}},
      {"createToken",
       {.method = "POST",
        .target = "/v1/tokens",
        .body = R"({"name":"ci","role":"member","queue":"b","expires_in_s":60})"}},
      {"listTokens", {.target = "/v1/tokens"}},
      {"revokeToken", {.method = "DELETE", .target = "/v1/tokens/ci"}},
      {"getProviderConfiguration", {.target = "/.well-known/openid-configuration", .user = ""}},
      {"listSigningKeys", {.target = "/v1/keys", .user = ""}},
      {"rotateSigningKeys", {.method = "POST", .target = "/v1/keys/rotate?withdraw=true"}},
      {"getConfig", {.target = "/v1/config"}},
      {"diffConfig", {.method = "POST", .target = "/v1/config/diff", .body = kConfig}},
      {"submitJob", {.method = "POST", .target = "/v1/jobs", .body = kJob}},
      {"listJobs", {.target = "/v1/jobs?finished=true&sort=-gpus"}},
      {"getJob", {.target = "/v1/jobs/1"}},
      {"createJobIdentity",
       {.method = "POST", .target = "/v1/jobs/1/identity?audience=https://vault.example.com", .user = "job1"}},
      {"explainJob", {.target = "/v1/jobs/2/why"}},
      {"forecastJob", {.method = "POST", .target = "/v1/forecast", .body = kJob}},
      {"forecastPriority", {.method = "POST", .target = "/v1/jobs/2/forecast", .body = R"({"priority":9})"}},
      {"getJobLog", {.target = "/v1/jobs/1/logs?stream=stdout&from=-7"}},
      {"holdJob", {.method = "POST", .target = "/v1/jobs/2/hold"}},
      {"releaseJob", {.method = "POST", .target = "/v1/jobs/2/release"}},
      {"prioritizeJob", {.method = "PUT", .target = "/v1/jobs/2/priority", .body = R"({"priority":7})"}},
      {"reportCheckpoint",
       {.method = "POST", .target = "/v1/jobs/1/checkpoint", .body = R"({"attempt":1,"step":130})"}},
      {"signalJob", {.method = "POST", .target = "/v1/jobs/1/signal", .body = R"({"signal":10})"}},
      {"moveJob", {.method = "POST", .target = "/v1/jobs/1/move", .body = R"({"off":["n1"],"lose_work":true})"}},
      {"cancelJob", {.method = "DELETE", .target = "/v1/jobs/1"}},
      {"listQueues", {.target = "/v1/queues"}},
      {"getQueue", {.target = "/v1/queues/b%2Fnlp"}},
      {"explainShare", {.target = "/v1/queues/b%2Fnlp/share"}},
      {"setQueue",
       {.method = "POST", .target = "/v1/queues/b%2Fnlp/changes", .body = R"({"set":["max.gpus=2","weight=+1"]})"}},
      {"previewQueueChange",
       {.method = "POST",
        .target = "/v1/queues/b%2Fnlp/changes/preview",
        .body = R"({"set":["max.gpus=+1"],"until":"2033-01-01T00:00:00Z"})"}},
      {"undoQueueChange", {.method = "POST", .target = "/v1/queues/b%2Fnlp/changes/undo"}},
      {"grantRole",
       {.method = "POST", .target = "/v1/roles", .body = R"({"subject":"user:zoe","role":"member","queue":"b"})"}},
      {"listRoles", {.target = "/v1/roles"}},
      {"revokeRole",
       {.method = "POST",
        .target = "/v1/roles/revoke",
        .body = R"({"subject":"user:zoe","role":"member","queue":"b"})"}},
      {"blockSubject", {.method = "POST", .target = "/v1/subjects/block", .body = R"({"subject":"user:zoe"})"}},
      {"unblockSubject", {.method = "POST", .target = "/v1/subjects/unblock", .body = R"({"subject":"user:zoe"})"}},
      {"listNodes", {.target = "/v1/nodes"}},
      {"getNode", {.target = "/v1/nodes/n1"}},
      {"cordonNode", {.method = "POST", .target = "/v1/nodes/n1/cordon"}},
      {"uncordonNode", {.method = "POST", .target = "/v1/nodes/n1/uncordon"}},
      {"drainNode", {.method = "POST", .target = "/v1/nodes/n1/drain"}},
      {"planMaintenance",
       {.method = "POST",
        .target = "/v1/maintenance",
        .body = R"({"name":"m1","nodes":["n1"],"for_s":600,"reason":"disks"})"}},
      {"listMaintenance", {.target = "/v1/maintenance"}},
      {"cancelMaintenance", {.method = "DELETE", .target = "/v1/maintenance/m1"}},
      {"getCapacity", {.target = "/v1/capacity?idle_for_s=0"}},
      {"getAdvice", {.target = "/v1/advice"}},
      {"getDiagnosis", {.target = "/v1/diagnosis"}},
      {"getUsage", {.target = "/v1/usage?from=2023-01-01&to=2024-01-01T00:00:00Z"}},
      {"listEvents", {.target = "/v1/events?from=1&limit=1000"}},
      {"listAudit", {.target = "/v1/audit?limit=1000"}},
      {"getSnapshot", {.target = "/v1/snapshot"}},
      {"diffPrices", {.method = "POST", .target = "/v1/prices/diff", .body = kPrices}},
      {"putPrices", {.method = "PUT", .target = "/v1/prices", .body = kPrices}},
      {"getPrices", {.target = "/v1/prices"}},
      {"listRules", {.target = "/v1/rules?queue=a"}},
      {"putRules",
       {.method = "PUT", .target = "/v1/rules?queue=a", .body = R"({"admission":{"small":{"max_gpus":9}}})"}},
      {"testRules",
       {.method = "POST",
        .target = "/v1/rules/test?queue=a&since=2023-01-01",
        .body = R"({"admission":{"small":{"max_gpus":0}}})"}},
      {"tryBill", {.method = "POST", .target = "/v1/bill?by=user", .body = kPrices}},
      {"getBill", {.target = "/v1/bill?by=job&month=2023-11"}},
      {"getBillLine", {.target = "/v1/bill/lines/1-000000000000?month=2023-11"}},
      {"reportQuantities",
       {.method = "POST",
        .target = "/v1/quantities",
        .body = R"({"quantities":[{"id":"nas-7","queue":"a","kind":"storage","quantity":5,)"
                R"("from":"2023-11-01","to":"2023-11-02"}]})"}},
      {"listQuantities", {.target = "/v1/quantities?queue=a&kind=storage&month=2023-11"}},
      {"closeMonth", {.method = "POST", .target = "/v1/months/2023-10/close"}},
      {"correctBill",
       {.method = "POST",
        .target = "/v1/months/2023-11/corrections",
        .body = R"({"queue":"a","amount_micro":-5,"reason":"a node was lost","job":1})"}},
      {"fenceNode", {.method = "POST", .target = "/v1/nodes/n1/fence"}},
      {"putConfig", {.method = "PUT", .target = "/v1/config", .body = kConfig}},
  };
  return calls;
}

// As n1.
void add_node_two(FakeService& service) {
  NodeSpec node = service.state.nodes().front().spec;
  node.name = "n2";
  for (Gpu& gpu : node.gpus) gpu.uuid = "n2-" + gpu.uuid;
  REQUIRE(service.run(RegisterNode{node}));
}

}  // namespace

TEST_CASE("every operation of the document is served as the document says") {
  World world;
  const Client client(world.service);
  const auto document = client.json("/openapi.json");
  const auto& schemas = document.at("components").at("schemas").as_object();
  std::map<std::string, json::value> operations;
  for (const auto& [path, methods] : document.at("paths").as_object()) {
    for (const auto& [method, operation] : methods.as_object()) {
      operations[operation.at("operationId").as_string().c_str()] = operation;
    }
  }
  std::set<std::string> called;
  for (const auto& entry : one_call_each()) {
    const auto& id = std::get<0>(entry);
    const auto& ask = std::get<1>(entry);
    CAPTURE(id);
    REQUIRE(operations.contains(id));
    called.insert(id);
    if (id == "moveJob") add_node_two(world.service);
    if (id == "fenceNode") REQUIRE(world.service.run(ReportNodeStatus{"n1", NodeStatus::kUnknown, "silent"}));
    const http::Response response = client.call(ask);
    CAPTURE(response.body.substr(0, 2000));
    CHECK_LT(response.status, 300);
    const auto* documented = operations[id].at("responses").as_object().if_contains(std::to_string(response.status));
    REQUIRE(documented != nullptr);
    const auto* content = documented->at("content").as_object().if_contains(response.content_type);
    REQUIRE(content != nullptr);
    if (response.content_type != "application/json") continue;
    SchemaCheck check(schemas);
    CHECK_EQ(check.fault(json::parse(response.body), content->at("schema")), "");
    if (!ask.body.empty()) {
      const auto& body = operations[id].at("requestBody").at("content").at("application/json").at("schema");
      CHECK_EQ(check.fault(json::parse(ask.body), body), "");
    }
  }
  for (const auto& one : operations) {
    if (one.second.at("responses").as_object().contains("101")) continue;  // a WebSocket: shell_test
    CHECK_MESSAGE(called.contains(one.first), one.first);
  }
}

TEST_CASE("what looks at the state, the log or files does not run on an I/O thread, and writes need none of it") {
  World world;
  const Client client(world.service);
  std::map<std::string, http::Threads> threads;
  for (const http::Route& route : client.router().routes()) threads[route.doc.operation_id.text] = route.threads;
  for (const auto& entry : one_call_each()) {
    const auto& id = std::get<0>(entry);
    CAPTURE(id);
    if (id == "moveJob") add_node_two(world.service);
    if (id == "fenceNode") REQUIRE(world.service.run(ReportNodeStatus{"n1", NodeStatus::kUnknown, "silent"}));
    const std::size_t before = world.service.looks;
    client.call(std::get<1>(entry));
    if (world.service.looks > before) CHECK(threads.at(id) != http::Threads::kIo);
  }
  for (const char* command : {"submitJob", "cancelJob", "drainNode"}) {
    CHECK(threads.at(command) == http::Threads::kIo);
  }
  // A configuration asks what its budgets have used, which is read from the log.
  for (const char* read : {"getSnapshot", "getAdvice", "getCapacity", "getMetrics", "listJobs", "putConfig"}) {
    CHECK(threads.at(read) == http::Threads::kLongReads);
  }
}

namespace {

// An operation with what its path needs filled in, and one of its parameters.
struct QueryInteger {
  std::string method;
  std::string target;  // up to the value
  json::object schema;
};

std::vector<QueryInteger> query_integers(const json::value& document) {
  std::vector<QueryInteger> found;
  for (const auto& path : document.at("paths").as_object()) {
    std::string target(path.key());
    for (const auto& [name, value] : {std::pair<std::string, std::string>{"{id}", "1"}, {"{name}", "n1"}}) {
      if (const auto at = target.find(name); at != std::string::npos) target.replace(at, name.size(), value);
    }
    for (const auto& method : path.value().as_object()) {
      const auto* parameters = method.value().as_object().if_contains("parameters");
      if (parameters == nullptr) continue;
      if (method.value().at("responses").as_object().contains("101")) continue;  // a WebSocket: shell_test
      for (const auto& parameter : parameters->as_array()) {
        const auto& schema = parameter.at("schema").as_object();
        if (parameter.at("in") != "query" || !schema.contains("minimum")) continue;
        found.push_back({method.key() == "get" ? "GET" : "POST",
                         target + "?" + parameter.at("name").as_string().c_str() + "=", schema});
      }
    }
  }
  return found;
}

TEST_CASE("a correction is of a month of the log, and names a job of the queue") {
  World world;
  const Client client(world.service);
  const auto correct = [&](const std::string& month, const std::string& rest) {
    return client.call({.method = "POST",
                        .target = "/v1/months/" + month + "/corrections",
                        .body = R"({"amount_micro":-5,"reason":"x",)" + rest + "}"});
  };
  const auto says = [](const http::Response& answer, int status, const std::string& what) {
    CAPTURE(answer.body);
    CHECK_EQ(answer.status, status);
    CHECK(answer.body.find(what) != std::string::npos);
  };
  says(correct("2023-11", R"("queue":"a")"), 409, "no prices are in force yet");
  CHECK_EQ(client.call({.method = "PUT", .target = "/v1/prices", .body = kPrices}).status, 200);
  says(correct("2023-10", R"("queue":"a")"), 400, "was over before the first event of the log");
  says(correct("2023-11", R"("queue":"a","job":99999)"), 404, "no such job 99999");
  says(correct("2023-11", R"("queue":"a","job":2)"), 400, "job 2 is of queue b/nlp, which is not below a");
  says(correct("2023-11", R"("queue":"a","job":1)"), 201, "2023-11");
  says(correct("2023-11", R"("queue":"b","job":2)"), 201, "2023-11");
}

TEST_CASE("what the month is expected to cost goes on from what was metered alone; a part of a bill says so") {
  World world;
  const Client client(world.service);
  CHECK_EQ(client.call({.method = "PUT", .target = "/v1/prices", .body = kPrices}).status, 200);
  const auto bill = [&](const std::string& user, const std::string& queue) {
    const auto answer = client.call({.target = "/v1/bill?queue=" + queue, .user = user});
    REQUIRE_EQ(answer.status, 200);
    return boost::json::parse(answer.body);
  };
  const auto sum = [](const boost::json::value& one, const char* name) { return one.at(name).as_int64(); };
  const auto before = bill("admin", "");
  CHECK_EQ(client
               .call({.method = "POST",
                      .target = "/v1/quantities",
                      .body = R"({"quantities":[{"id":"q","queue":"a","kind":"storage","quantity":1000000000,)"
                              R"("from":"2023-11-01","to":"2023-11-02"}]})"})
               .status,
           200);
  CHECK_EQ(client
               .call({.method = "POST",
                      .target = "/v1/months/2023-11/corrections",
                      .body = R"({"queue":"a","amount_micro":7000000000,"reason":"x"})"})
               .status,
           201);
  const auto after = bill("admin", "");
  constexpr std::int64_t kOnce = 100'000'000'000 + 7'000'000'000;
  CHECK(sum(after, "total_micro") >= kOnce);
  CHECK(sum(after, "expected_micro") >= kOnce);
  CHECK(sum(after, "expected_micro") - kOnce < 2 * sum(before, "expected_micro") + 1'000'000'000);
  CHECK_FALSE(after.at("partial").as_bool());
  CHECK_FALSE(bill("ops", "a").at("partial").as_bool());
  CHECK(bill("bob", "").at("partial").as_bool());  // a member: its own jobs alone
  CHECK(bill("bob", "b").at("partial").as_bool());
  CHECK(bill("lea", "").at("partial").as_bool());
  CHECK_FALSE(bill("lea", "b").at("partial").as_bool());
  const auto html = client.call({.target = "/v1/bill?invoice=html", .user = "lea"});
  CHECK(html.body.find("Part of the invoice of the whole cluster") != std::string::npos);
}

TEST_CASE("prices that cannot be put in force are refused at their place in the body") {
  World world;
  const Client client(world.service);
  const std::string yaml =
      "currency: EUR\nprices:\n  - valid_from: 2023-01-01\n    gpus:\n      A100: {floor: 2, burst: 3}\n";
  for (const auto& [method, target] : {std::pair("PUT", "/v1/prices"), std::pair("POST", "/v1/prices/diff")}) {
    const auto refused = client.call({.method = method, .target = target, .body = yaml, .type = "application/yaml"});
    CAPTURE(refused.body);
    CHECK_EQ(refused.status, 400);
    CHECK(refused.body.find("body:5:7: prices[0].gpus: nodes have GPUs of H100") != std::string::npos);
  }
}

}  // namespace

TEST_CASE("an integer of a query is taken within what the document says, and refused beside it") {
  World world;
  const Client client(world.service);
  const auto found = query_integers(client.json("/openapi.json"));
  CHECK_GE(found.size(), 12);
  for (const QueryInteger& one : found) {
    CAPTURE(one.target);
    const auto status_at = [&](const char* bound, std::int64_t beyond) {
      const std::int64_t number = one.schema.at(bound).to_number<std::int64_t>() + beyond;
      return client.call({.method = one.method, .target = one.target + std::to_string(number)}).status;
    };
    CHECK_EQ(status_at("minimum", -1), 400);
    CHECK_NE(status_at("minimum", 0), 400);
    if (!one.schema.contains("maximum")) continue;
    CHECK_EQ(status_at("maximum", 1), 400);
    CHECK_NE(status_at("maximum", 0), 400);
  }
}

TEST_CASE("a number of a body is taken within what its schema says, and refused beside it") {
  World world;
  const Client client(world.service);
  const auto document = client.json("/openapi.json");
  struct Case {
    const char* method;
    const char* target;
    const char* schema;
    const char* member;
    const char* rest;
  };
  for (const Case& one : {Case{"POST", "/v1/maintenance", "MaintenanceRequest", "for_s", R"("nodes":["n1"],)"},
                          Case{"PUT", "/v1/jobs/2/priority", "PriorityChange", "priority", ""},
                          Case{"POST", "/v1/jobs/1/signal", "JobSignal", "signal", ""},
                          Case{"POST", "/v1/jobs/1/checkpoint", "CheckpointReport", "attempt", R"("step":130,)"}}) {
    CAPTURE(one.target);
    const auto& schema = document.at("components").at("schemas").at(one.schema).at("properties").at(one.member);
    const auto status_with = [&](std::int64_t number) {
      const std::string body = std::string("{") + one.rest + "\"" + one.member + "\":" + std::to_string(number) + "}";
      return client.call({.method = one.method, .target = one.target, .body = body}).status;
    };
    CHECK_EQ(status_with(schema.at("minimum").to_number<std::int64_t>() - 1), 400);
    CHECK_NE(status_with(schema.at("minimum").to_number<std::int64_t>()), 400);
    CHECK_EQ(status_with(schema.at("maximum").to_number<std::int64_t>() + 1), 400);
    CHECK_NE(status_with(schema.at("maximum").to_number<std::int64_t>()), 400);
  }
}

TEST_CASE("the schema check finds what is missing, added and of another type") {
  World world;
  const auto document = Client(world.service).json("/openapi.json");
  const auto& schemas = document.at("components").at("schemas").as_object();
  SchemaCheck check(schemas);
  const auto good = Client(world.service).json("/v1/jobs/1");
  CHECK_EQ(check.fault(good, schemas.at("Job")), "");
  auto lacks = good;
  lacks.as_object().erase("queue");
  CHECK_NE(check.fault(lacks, schemas.at("Job")), "");
  auto adds = good;
  adds.as_object()["colour"] = "red";
  CHECK_NE(check.fault(adds, schemas.at("Job")), "");
  auto wrong = good;
  wrong.at("tasks").at(0).as_object()["task"] = "0";
  CHECK_NE(check.fault(wrong, schemas.at("Job")), "");
}

TEST_CASE("a job's view tells where it is in its life") {
  World world;
  const Client client(world.service);
  const auto running = client.json("/v1/jobs/1");
  CHECK_EQ(running.at("phase"), "running");
  CHECK_EQ(running.at("user"), "ann");
  CHECK_EQ(running.at("within"), true);
  CHECK_EQ(running.at("gpus"), 4);
  CHECK_EQ(running.at("checkpoint").at("step"), 120);
  CHECK_EQ(running.at("tasks").at(1).at("gpus"), json::parse(R"(["GPU-2","GPU-3"])"));
  CHECK_EQ(running.at("spec").at("command").at(0), "python3");
  const auto waiting = client.json("/v1/jobs/2");
  CHECK_EQ(waiting.at("phase"), "pending");
  CHECK_EQ(waiting.at("attempt"), 0);
  CHECK_FALSE(waiting.as_object().contains("within"));
  const auto finished = client.json("/v1/jobs/3");
  CHECK_EQ(finished.at("phase"), "finished");
  CHECK_EQ(finished.at("outcome"), "succeeded");
  CHECK_EQ(finished.at("past").at(0).at("gpus_on"), json::parse(R"([{"node":"n1","gpus":4}])"));
  CHECK_EQ(client.json("/v1/jobs/3/why").at("code"), "none");
}

TEST_CASE("what was measured of GPUs stands with their node and the job that has them, and nowhere else") {
  World world;
  const Client client(world.service);
  CHECK_FALSE(client.json("/v1/jobs/1").as_object().contains("driven"));
  world.service.gpu_utilization.gpus["GPU-1"] = {{.percents = 25, .samples = 6, .minutes = 1}, {}};
  world.service.gpu_utilization.jobs[JobId(1)] = {.attempt = 1, .gpus = 4, .sum = {25, 6, 1}};
  world.service.gpu_utilization.jobs[JobId(2)] = {.attempt = 1, .gpus = 4, .sum = {25, 6, 1}};
  const auto document = client.json("/openapi.json");
  const auto& schemas = document.at("components").at("schemas").as_object();
  SchemaCheck check(schemas);
  const auto job = client.json("/v1/jobs/1");
  CHECK_EQ(job.at("driven"), json::parse(R"({"pct": 4.166, "gpus": 4, "minutes": 1})"));
  CHECK_EQ(check.fault(job, schemas.at("Job")), "");
  CHECK_FALSE(client.json("/v1/jobs/2").as_object().contains("driven"));  // it waits
  const auto node = client.json("/v1/nodes/n1");
  CHECK_EQ(node.at("gpus").at(1).at("driven_pct"), 4.166);
  CHECK_FALSE(node.at("gpus").at(0).as_object().contains("driven_pct"));
  CHECK_EQ(check.fault(node, schemas.at("Node")), "");
  world.service.gpu_utilization.jobs[JobId(1)].attempt = 2;
  CHECK_FALSE(client.json("/v1/jobs/1").as_object().contains("driven"));
}

TEST_CASE("a move is answered with where the job goes and until when it leaves, or with why it does not") {
  World world;
  const Client client(world.service);
  const auto move = [&](const std::string& job, const std::string& body) {
    return client.call({.method = "POST", .target = "/v1/jobs/" + job + "/move", .body = body});
  };
  CHECK_EQ(move("1", R"({"off":"n1"})").status, 400);
  CHECK_EQ(move("1", R"({"off":[1]})").status, 400);
  CHECK_EQ(move("1", R"({"lose_work":"yes"})").status, 400);
  CHECK_EQ(move("1", R"({"to":"n2"})").status, 400);
  CHECK_EQ(move("9", "{}").status, 404);
  CHECK_EQ(move("1", R"({"off":["n7"]})").status, 404);
  const auto waits = move("2", "{}");
  CHECK_EQ(waits.status, 409);
  CHECK_EQ(detail_of(waits), "job 2 does not run; only a running job can be moved");
  CHECK(detail_of(move("1", "{}")).find("--lose-work") != std::string::npos);
  CHECK_EQ(detail_of(move("1", R"({"lose_work":true})")), "job 1 finds no places elsewhere now");
  add_node_two(world.service);
  CHECK_EQ(detail_of(move("1", R"({"off":["n2"]})")), "job 1 has no task on n2; it runs on n1");
  const auto moved = move("1", R"({"lose_work":true})");
  CHECK_EQ(moved.status, 202);
  const auto answer = json::parse(moved.body);
  CHECK_EQ(answer.at("unchanged"), false);
  CHECK_EQ(answer.at("moves_to"), json::parse(R"(["n2"])"));
  const auto stop = client.json("/v1/jobs/1").at("stop");
  CHECK_EQ(stop.at("cause"), "move");
  CHECK_EQ(stop.at("deadline"), answer.at("deadline"));
  CHECK_EQ(stop.at("moves_to").at(1).at("node"), "n2");
  CHECK_EQ(json::parse(move("1", "{}").body).at("unchanged"), true);
}

TEST_CASE("metrics are text as Prometheus takes it, and for who has a token") {
  World world;
  const Client client(world.service);
  const auto response = client.get("/metrics");
  CHECK_EQ(response.content_type, "text/plain; version=0.0.4; charset=utf-8");
  CHECK_EQ(response.body, world.service.metrics());
  CHECK_EQ(client.call({.target = "/metrics", .user = ""}).status, 401);
}

TEST_CASE("the same key is the same job; with another body it is a conflict") {
  World world;
  const Client client(world.service);
  const auto first = submit(client, kJob, "k1");
  CHECK_EQ(first.status, 201);
  const auto again = submit(client, kJob, "k1");
  CHECK_EQ(again.status, 200);
  CHECK_EQ(json::parse(again.body).at("id"), json::parse(first.body).at("id"));
  CHECK_EQ(json::parse(again.body).at("repeated"), true);
  const auto other = submit(client, R"({"queue":"a","gpus":1,"command":["x"]})", "k1");
  CHECK_EQ(other.status, 409);
  CHECK_EQ(code_of(other), "conflict");
  CHECK_EQ(submit(client, kJob, "k1", "ann").status, 201);  // keys are each user's own
}

TEST_CASE("a job belongs to whoever submits it; only admin may name somebody else") {
  World world;
  const Client client(world.service);
  CHECK_EQ(submit(client, kBigJob, "", "ann").status, 403);
  CHECK_EQ(submit(client, R"({"queue":"a","user":"ann","gpus":1,"command":["x"]})", "", "ann").status, 201);
  CHECK_EQ(client.json("/v1/jobs/2").at("user"), "bob");
}

TEST_CASE("a refused submission says what is wrong, changes nothing, and is a problem document") {
  World world;
  const Client client(world.service);
  const Seq before = world.service.state.last_seq();
  const std::pair<const char*, int> cases[] = {
      {R"({"queue":"a","queue":"b","command":["x"]})", 400},
      {R"({"queue":"a","command":["x"],"colour":1})", 400},
      {R"({"queue":"a","command":["x"],"gpus":-1})", 400},
      {R"({"queue":"a","command":["x"],"gpus":1e400})", 400},
      {R"({"queue":"a","command":["x"],"gpus":"1e3"})", 400},
      {R"({"queue":"a","command":["x"],"gpus":1.5})", 400},
      {R"({"queue":"a","command":["x"],"tasks":9223372036854775808})", 400},
      {R"({"queue":"a","command":["x"],"tasks":2,"min_tasks":3})", 400},
      {R"({"queue":"a","command":["x"],"name":"a\u0000b"})", 400},
      {R"({"queue":"a","command":["x"],"name":"a\ud800b"})", 400},
      {R"({"queue":"a","command":["x"],"name":"a\u0007b"})", 400},
      {R"({"queue":"a","command":["x"]} trailing)", 400},
      {R"({"queue":"nowhere","command":["x"]})", 400},
      {R"({"queue":"b","command":["x"]})", 400},
      {R"({"queue":"a","kind":"interactive","command":["x"],"tasks":2})", 400},
      {R"([])", 400},
      {"\xef\xbb\xbf{}", 400},
      {"\xff", 400},
  };
  for (const auto& one : cases) {
    const auto& body = std::get<0>(one);
    const auto& status = std::get<1>(one);
    CAPTURE(body);
    const auto response = submit(client, body);
    CHECK_EQ(response.status, status);
    CHECK_EQ(code_of(response), status == 422 ? "unsupported" : "invalid");
    CHECK_FALSE(detail_of(response).empty());
  }
  CHECK_EQ(submit(client, "{\"name\":\"" + std::string(2'000'000, 'x') + "\"}").status, 413);
  CHECK_EQ(submit(client, std::string(100'000, '[')).status, 400);
  CHECK_EQ(world.service.state.last_seq(), before);
}

TEST_CASE("a job may be sent as YAML, and nothing else but JSON") {
  World world;
  const Client client(world.service);
  const Ask yaml{.method = "POST",
                 .target = "/v1/jobs",
                 .body = "queue: a\nname: no\ngpus: 0.5\ncommand: echo hello\n",
                 .type = "application/yaml"};
  const auto response = client.call(yaml);
  CHECK_EQ(response.status, 201);
  const auto job = client.json("/v1/jobs/4");
  CHECK_EQ(job.at("name"), "no");
  CHECK_EQ(job.at("gpus"), 0.5);
  Ask text = yaml;
  text.type = "text/plain";
  CHECK_EQ(client.call(text).status, 415);
  Ask bomb = yaml;
  bomb.body = "a: &a [1,2]\nb: *a\n";
  CHECK_EQ(client.call(bomb).status, 400);
}

TEST_CASE("names come back as they were sent, inert in JSON") {
  World world;
  const Client client(world.service);
  const std::string names[] = {"<script>alert(1)</script>",
                               "=cmd|'/C calc'!A0",
                               "{{7*7}}",
                               "'; drop table jobs; --",
                               "../../etc/passwd",
                               "$(id)",
                               "%n%n",
                               "\xe2\x80\xae"
                               "evil",
                               "\xf0\x9f\x9a\xa2"};
  for (const std::string& name : names) {
    CAPTURE(name);
    json::object body{{"queue", "a"}, {"name", name}, {"command", json::array{"x"}}};
    const auto response = submit(client, json_text(body));
    REQUIRE_EQ(response.status, 201);
    const auto id = json::parse(response.body).at("id").to_number<std::uint64_t>();
    CHECK_EQ(client.json("/v1/jobs/" + std::to_string(id)).at("name").as_string(), name);
  }
}

TEST_CASE("what is not there, not known or not allowed has its status and code") {
  World world;
  const Client client(world.service);
  const std::tuple<const char*, const char*, int, const char*> cases[] = {
      {"GET", "/v1/jobs/99", 404, "not-found"},
      {"GET", "/v1/jobs/abc", 400, "invalid"},
      {"GET", "/v1/jobs/0", 400, "invalid"},
      {"GET", "/v1/jobs/18446744073709551615", 400, "invalid"},
      {"GET", "/v1/jobs/18446744073709551616", 400, "invalid"},
      {"GET", "/v1/jobs?colour=red", 400, "bad-request"},
      {"GET", "/v1/jobs?limit=0", 400, "invalid"},
      {"GET", "/v1/jobs?limit=1001", 400, "invalid"},
      {"GET", "/v1/jobs?limit=x", 400, "bad-request"},
      {"GET", "/v1/jobs?sort=colour", 400, "bad-request"},
      {"GET", "/v1/jobs?phase=asleep", 400, "bad-request"},
      {"GET", "/v1/jobs?cursor=zz", 400, "invalid"},
      {"GET", "/v1/jobs?cursor=00ff", 400, "invalid"},
      {"DELETE", "/v1/jobs/3", 409, "conflict"},
      {"DELETE", "/v1/jobs/99", 404, "not-found"},
      {"POST", "/v1/jobs/1/hold", 409, "conflict"},
      {"GET", "/v1/jobs/99/why", 404, "not-found"},
      {"GET", "/v1/jobs/99/logs", 404, "not-found"},
      {"GET", "/v1/jobs/1/logs?attempt=2", 404, "not-found"},
      {"GET", "/v1/jobs/1/logs?task=7", 404, "not-found"},
      {"GET", "/v1/jobs/1/logs?limit=99999999", 400, "invalid"},
      {"GET", "/v1/queues/nowhere", 404, "not-found"},
      {"GET", "/v1/nodes/nowhere", 404, "not-found"},
      {"POST", "/v1/nodes/nowhere/drain", 404, "not-found"},
      {"POST", "/v1/nodes/n1/fence", 409, "conflict"},
      {"GET", "/v1/usage?from=yesterday", 400, "invalid"},
      {"GET", "/v1/usage?from=2025-01-01&to=2024-01-01", 400, "invalid"},
      {"GET", "/v1/events?kind=party", 400, "bad-request"},
      {"GET", "/v1/events?kind=start-held", 400, "bad-request"},  // reservation-made now
      {"GET", "/v1/events?from=-1", 400, "invalid"},
      {"GET", "/v1/nothing", 404, "not-found"},
      {"PATCH", "/v1/jobs/1", 405, "method-not-allowed"},
  };
  for (const auto& one : cases) {
    const auto& method = std::get<0>(one);
    const auto& target = std::get<1>(one);
    const auto& status = std::get<2>(one);
    const auto& code = std::get<3>(one);
    CAPTURE(target);
    const auto response = client.call({.method = method, .target = target});
    CHECK_EQ(response.status, status);
    CHECK_EQ(code_of(response), code);
  }
  CHECK_EQ(client.call({.target = "/v1/jobs", .user = ""}).status, 401);
  CHECK_EQ(client.call({.target = "/openapi.json", .user = ""}).status, 200);
  world.service.full = true;
  const auto busy = submit(client, kJob);
  CHECK_EQ(busy.status, 503);
  CHECK_EQ(code_of(busy), "unavailable");
}

TEST_CASE("small bodies are read strictly") {
  World world;
  const Client client(world.service);
  for (const char* body : {"{}", R"({"priority":"7"})", R"({"priority":1.5})", R"({"priority":1,"more":2})", "7",
                           R"({"priority":99999999999})", R"({"priority":1000000001})"}) {
    CAPTURE(body);
    CHECK_EQ(client.call({.method = "PUT", .target = "/v1/jobs/2/priority", .body = body}).status, 400);
  }
  for (const char* body : {R"({"attempt":1})", R"({"attempt":0,"step":1})", R"({"attempt":1,"step":-1})"}) {
    CAPTURE(body);
    CHECK_EQ(client.call({.method = "POST", .target = "/v1/jobs/1/checkpoint", .body = body}).status, 400);
  }
}

TEST_CASE("a configuration can be read, compared and put back unchanged, as JSON and as YAML") {
  World world;
  const Client client(world.service);
  const auto in_force = client.json("/v1/config");
  const std::string as_json = json_text(in_force.at("config"));
  const auto same = client.call({.method = "PUT", .target = "/v1/config", .body = as_json});
  CHECK_EQ(json::parse(same.body).at("unchanged"), true);
  const std::string as_yaml = in_force.at("yaml").as_string().c_str();
  const auto also = client.call({.method = "PUT", .target = "/v1/config", .body = as_yaml, .type = "application/yaml"});
  CHECK_EQ(json::parse(also.body).at("unchanged"), true);
  const auto none = client.call({.method = "POST", .target = "/v1/config/diff", .body = as_json});
  CHECK(json::parse(none.body).at("changes").as_array().empty());
  const auto some = client.call({.method = "POST", .target = "/v1/config/diff", .body = kConfig});
  CHECK_FALSE(json::parse(some.body).at("changes").as_array().empty());
  const auto away = client.call({.method = "PUT", .target = "/v1/config", .body = R"({"queues":{"a":null}})"});
  CHECK_EQ(away.status, 409);  // b/nlp has a job
}

TEST_CASE("a node that runs containers tells how many images it has, and asked for by itself which") {
  World world;
  const Client client(world.service);
  NodeSpec spec = world.service.state.nodes().front().spec;
  spec.name = "n2";
  spec.gpus.clear();
  spec.containers = true;
  spec.images = {"llama:1", "pytorch"};
  REQUIRE(world.service.run(RegisterNode{spec}));
  const auto listed = client.json("/v1/nodes").at("items");
  CHECK_FALSE(listed.at(0).at("containers").as_bool());
  CHECK(listed.at(1).at("containers").as_bool());
  CHECK_EQ(listed.at(1).at("image_count"), 2);
  CHECK_FALSE(listed.at(1).as_object().contains("images"));
  CHECK_EQ(client.json("/v1/nodes/n2").at("images"), json::parse(R"(["llama:1", "pytorch"])"));
  CHECK_FALSE(client.json("/v1/nodes/n1").as_object().contains("images"));
}

TEST_CASE("the numbers of the cluster, its queues and nodes agree") {
  World world;
  const Client client(world.service);
  const auto cluster = client.json("/v1/cluster");
  CHECK_EQ(cluster.at("gpus"), 8);
  CHECK_EQ(cluster.at("gpus_allocated"), 4);
  CHECK_EQ(cluster.at("gpus_free"), 4);
  CHECK_EQ(cluster.at("allocated_pct"), 50);
  CHECK_EQ(cluster.at("jobs_running"), 1);
  CHECK_EQ(cluster.at("jobs_pending"), 1);
  const auto queue = client.json("/v1/queues/a");
  CHECK_EQ(queue.at("usage").at("models").at("H100"), 4);
  CHECK_EQ(queue.at("guaranteed"), json::parse(R"({"gpus":4,"models":{}})"));
  CHECK_EQ(queue.at("dominant_share"), "0.5000");
  CHECK_EQ(client.json("/v1/queues/b").at("max").at("gpus"), 7.5);
  CHECK_EQ(client.json("/v1/queues/b").at("pending"), 1);
  const auto node = client.json("/v1/nodes/n1");
  CHECK_EQ(node.at("gpus_free"), 4);
  CHECK_EQ(node.at("gpus").at(0).at("jobs"), json::parse("[1]"));
  CHECK(node.at("gpus").at(7).at("jobs").as_array().empty());
  const auto snapshot = client.json("/v1/snapshot");
  CHECK_EQ(snapshot.at("seq"), cluster.at("seq"));
  CHECK_EQ(snapshot.at("jobs").at(0), client.json("/v1/jobs/1"));
  CHECK_EQ(snapshot.at("nodes").at(0), node);
}

TEST_CASE("a queue tells what one user may have, what each has, and that it goes by attained service") {
  World world;
  const Client client(world.service);
  CHECK_EQ(client.json("/v1/queues/a").at("max_per_user"), json::object());
  CHECK_FALSE(client.json("/v1/queues/a").as_object().contains("users"));
  CHECK_FALSE(client.json("/v1/queues/a").as_object().contains("attained_service"));
  ClusterConfig config = world.service.state.config();
  for (QueueConfig& queue : config.queues) {
    if (queue.path == "b") continue;
    queue.max_jobs_per_user = 4;
    queue.max_gpu_milli_per_user = 5500;
    queue.max_submitted_per_user = 100;
    queue.attained_service = AttainedServiceConfig{{86'400, 864'000}, 3600};
  }
  REQUIRE(world.service.run(ApplyConfig{config, "op"}));
  const auto queue = client.json("/v1/queues/a");
  CHECK_EQ(queue.at("max_per_user"), json::parse(R"({"jobs":4,"gpus":5.5,"submitted":100})"));
  CHECK_EQ(queue.at("users"), json::parse(R"([{"user":"ann","jobs":1,"gpus":4,"submitted":1}])"));
  CHECK_EQ(queue.at("attained_service"), json::parse(R"({"thresholds_gpu_s":[86400,864000],"promote_after_s":3600})"));
  const auto nlp = client.json("/v1/queues/b%2Fnlp");
  CHECK_EQ(nlp.at("users"), json::parse(R"([{"user":"bob","jobs":0,"gpus":0,"submitted":1}])"));
  const auto document = client.json("/openapi.json");
  SchemaCheck check(document.at("components").at("schemas").as_object());
  CHECK_EQ(check.fault(nlp, json::parse(R"({"$ref":"#/components/schemas/Queue"})")), "");
  const auto listed = client.json("/v1/queues").at("items").at(0);
  CHECK_EQ(listed.at("max_per_user"), queue.at("max_per_user"));
  CHECK_FALSE(listed.as_object().contains("users"));
  CHECK_EQ(client.json("/v1/queues/b").at("max_per_user"), json::object());
}

TEST_CASE("a queue tells the terms of eviction in force for its jobs, and whose they are") {
  World world;
  const Client client(world.service);
  ClusterConfig config = world.service.state.config();
  config.scheduling.min_runtime_s = 600;
  for (QueueConfig& queue : config.queues) {
    if (queue.path == "b") queue.eviction = {7200, {}, 90, 10};
    if (queue.path == "b/nlp") queue.eviction.cooldown_s = 3600;
  }
  REQUIRE(world.service.run(ApplyConfig{config, "op"}));
  const auto nlp = client.json("/v1/queues/b%2Fnlp");
  CHECK_EQ(nlp.at("eviction"),
           json::parse(R"({"min_runtime_s":7200,"min_runtime_of":"b","cooldown_s":3600,"cooldown_of":"b/nlp",)"
                       R"("grace_s":90,"grace_of":"b","limits":[{"queue":"b","evictions_per_hour":10,"used":0}]})"));
  const auto document = client.json("/openapi.json");
  SchemaCheck check(document.at("components").at("schemas").as_object());
  CHECK_EQ(check.fault(nlp, json::parse(R"({"$ref":"#/components/schemas/Queue"})")), "");
  const auto other = client.json("/v1/queues/a").at("eviction");
  CHECK_EQ(other.at("min_runtime_s"), 600);
  CHECK_EQ(other.at("min_runtime_of"), "");
  CHECK_EQ(other.at("limits"), json::array());
  CHECK_FALSE(client.json("/v1/queues").at("items").at(0).as_object().contains("eviction"));
}

TEST_CASE("why a node takes no tasks comes whole, however long the reason is") {
  World world;
  const Client client(world.service);
  REQUIRE_EQ(client.call({.method = "POST", .target = "/v1/nodes/n1/drain?gone_in_s=3600"}).status, 200);
  const std::string why = world.service.state.node(NodeId(0)).cordon_why;
  REQUIRE(why.size() > 32);  // longer than what a string keeps inside itself
  CHECK_EQ(client.json("/v1/nodes/n1").at("why").as_string(), why);
}

TEST_CASE("a checkpoint that is reported again is no second event; one of an attempt that does not run is refused") {
  World world;
  const Client client(world.service);
  const auto report = [&](int job, int attempt, int step) {
    return client.call({.method = "POST",
                        .target = "/v1/jobs/" + std::to_string(job) + "/checkpoint",
                        .body = "{\"attempt\":" + std::to_string(attempt) + ",\"step\":" + std::to_string(step) + "}"});
  };
  const auto events = [&] { return client.json("/v1/events?kind=checkpoint-reported").at("items").as_array().size(); };
  REQUIRE_EQ(events(), 1);  // step 120
  const auto again = report(1, 1, 120);
  CHECK_EQ(again.status, 200);
  CHECK(json::parse(again.body).at("unchanged").as_bool());
  CHECK_EQ(events(), 1);
  CHECK_FALSE(json::parse(report(1, 1, 121).body).at("unchanged").as_bool());
  CHECK_EQ(events(), 2);
  CHECK_EQ(report(1, 1, 120).status, 400);
  CHECK_EQ(detail_of(report(1, 2, 130)), "attempt 2 of job 1 does not run; attempt 1 does");
  CHECK_EQ(detail_of(report(2, 1, 130)), "attempt 1 of job 2 does not run; nothing of it does");
  CHECK_EQ(report(2, 1, 130).status, 409);
  CHECK_EQ(detail_of(report(3, 1, 130)), "job 3 has finished");
  CHECK_EQ(report(99, 1, 130).status, 404);
  CHECK_EQ(events(), 2);
}

TEST_CASE("a checkpoint of the same step counts when the job has been asked to stop") {
  World world;
  const Client client(world.service);
  REQUIRE_EQ(client.call({.method = "POST", .target = "/v1/nodes/n1/drain?lose_work=true"}).status, 200);
  REQUIRE_EQ(client.json("/v1/jobs/1").at("phase").as_string(), "stopping");
  REQUIRE(world.service.run(ReportCheckpoint{JobId(1), 1, 120}));
  CHECK_EQ(client.json("/v1/events?kind=checkpoint-reported").at("items").as_array().size(), 2);
}

TEST_CASE("a log is read by offsets, from the end too, and says when it is complete") {
  World world;
  const Client client(world.service);
  const auto header = [](const http::Response& response, const std::string& name) {
    for (const auto& one : response.headers) {
      if (one.name == name) return one.value;
    }
    return std::string("absent");
  };
  const auto part = client.get("/v1/jobs/1/logs?from=0&limit=7");
  CHECK_EQ(part.body, "step 1\n");
  CHECK_EQ(header(part, "Berth-Log-Next"), "7");
  CHECK_EQ(header(part, "Berth-Log-Complete"), "false");
  CHECK_EQ(client.get("/v1/jobs/1/logs?from=-7").body, "step 2\n");
  CHECK_EQ(client.get("/v1/jobs/1/logs?stream=stderr").body, "warning\n");
  CHECK_EQ(header(client.get("/v1/jobs/3/logs"), "Berth-Log-Attempt"), "1");
  const auto waiting = client.get("/v1/jobs/2/logs");
  CHECK_EQ(waiting.status, 200);
  CHECK_EQ(header(waiting, "Berth-Log-Attempt"), "0");
}

TEST_CASE("numbers are written without exponents where they fit") {
  CHECK_EQ(json_text(json::array{0.5, 8, -0.001, 1e300, "\n"}), "[0.5,8,-0.001,1e+300,\"\\n\"]");
  CHECK_EQ(json_text(from_thousandths(7500)), "7.5");
  CHECK_EQ(json_text(from_millionths(1'500'000)), "1.5");
  CHECK_EQ(json_text(from_millionths(499)), "0");
}

// Who may call what, beside an admin, written down from docs/roles.md and not from the code. Job 1 is ann's, in a; job
// 2 is bob's, in b/nlp.
TEST_CASE("every operation is for those subjects alone that have a role for it") {
  const std::map<std::string, std::set<std::string>> allowed = {
      {"getIdentity", {"ann", "aud", "bob", "eve", "lea", "ops"}},
      {"checkAccess", {"ann", "aud", "bob", "eve", "lea", "ops"}},
      {"getOpenApi", {"ann", "aud", "bob", "eve", "lea", "ops"}},
      {"getMetrics", {"aud", "ops"}},
      {"getCluster", {"aud", "ops"}},
      {"getClock", {"aud", "ops"}},
      {"confirmClock", {"ops"}},
      {"createToken", {}},
      {"listTokens", {}},
      {"revokeToken", {}},
      {"rotateSigningKeys", {}},
      {"createJobIdentity", {}},
      {"getPrices", {"ann", "aud", "bob", "eve", "lea", "ops"}},
      {"putPrices", {}},
      {"diffPrices", {}},
      {"getBill", {"ann", "aud", "bob", "lea", "ops"}},
      {"tryBill", {"ann", "aud", "bob", "lea", "ops"}},
      {"getBillLine", {"ann", "aud", "ops"}},
      {"reportQuantities", {"ops"}},
      {"listQuantities", {"ann", "aud", "ops"}},
      {"closeMonth", {}},
      {"correctBill", {}},
      {"listRules", {"ann", "aud", "ops"}},
      {"testRules", {}},
      {"putRules", {}},
      {"getConfig", {"aud", "ops"}},
      {"diffConfig", {"aud", "ops"}},
      {"putConfig", {}},
      {"submitJob", {"ann"}},
      {"forecastJob", {"ann"}},
      {"forecastPriority", {"bob", "lea"}},
      {"listJobs", {"ann", "aud", "bob", "lea", "ops"}},
      {"getJob", {"ann", "aud", "ops"}},
      {"explainJob", {"aud", "bob", "lea", "ops"}},
      {"getJobLog", {"ann"}},
      {"holdJob", {"bob", "lea", "ops"}},
      {"releaseJob", {"bob", "lea", "ops"}},
      {"prioritizeJob", {"bob", "lea"}},
      {"reportCheckpoint", {"ann"}},
      {"signalJob", {"ann", "ops"}},
      {"moveJob", {"ops"}},
      {"cancelJob", {"ann", "ops"}},
      {"listQueues", {"ann", "aud", "bob", "lea", "ops"}},
      {"getQueue", {"ann", "aud", "bob", "lea", "ops"}},
      {"explainShare", {"ann", "aud", "bob", "lea", "ops"}},
      {"setQueue", {"ops"}},
      {"previewQueueChange", {"ops"}},
      {"undoQueueChange", {"ops"}},
      {"listRoles", {"ann", "aud", "bob", "eve", "lea", "ops"}},
      {"grantRole", {"lea"}},
      {"revokeRole", {"lea"}},
      {"blockSubject", {}},
      {"unblockSubject", {}},
      {"listNodes", {"aud", "ops"}},
      {"getNode", {"aud", "ops"}},
      {"cordonNode", {"ops"}},
      {"uncordonNode", {"ops"}},
      {"drainNode", {"ops"}},
      {"fenceNode", {"ops"}},
      {"planMaintenance", {"ops"}},
      {"listMaintenance", {"aud", "ops"}},
      {"cancelMaintenance", {"ops"}},
      {"getCapacity", {"aud", "ops"}},
      {"getAdvice", {"aud", "ops"}},
      {"getDiagnosis", {"aud", "ops"}},
      {"getUsage", {"ann", "aud", "bob", "lea", "ops"}},
      {"listEvents", {"aud"}},
      {"listAudit", {"aud"}},
      {"getSnapshot", {"aud"}},
  };
  for (const auto& entry : one_call_each()) {
    const std::string& id = entry.first;
    CAPTURE(id);
    if (entry.second.user.empty()) continue;  // it is public
    REQUIRE(allowed.contains(id));
    for (const char* user : {"ann", "aud", "bob", "eve", "lea", "ops"}) {
      CAPTURE(user);
      World world;
      Ask ask = entry.second;
      ask.user = user;
      const http::Response answer = Client(world.service).call(ask);
      CAPTURE(answer.body);
      if (allowed.at(id).contains(user)) {
        CHECK(answer.status != 403);
        if (id != "cancelMaintenance" && id != "revokeRole") CHECK(answer.status != 404);
        continue;
      }
      // A job that one may not see is not there; of what one sees, the verb and the role that it takes are named.
      CHECK((answer.status == 403 || answer.status == 404));
      if (answer.status == 403) CHECK_EQ(code_of(answer), "denied");
    }
  }
}

TEST_CASE("lists hold the rows alone that one may see, and a job of others is refused as one that is not there") {
  World world;
  const Client client(world.service);
  const auto ids = [&](const char* user) {
    std::vector<std::int64_t> found;
    const auto page = json::parse(client.call({.target = "/v1/jobs?finished=true", .user = user}).body);
    for (const auto& job : page.at("items").as_array()) found.push_back(job.at("id").to_number<std::int64_t>());
    return found;
  };
  CHECK(ids("admin") == std::vector<std::int64_t>{1, 2, 3});
  CHECK(ids("ann") == std::vector<std::int64_t>{1});
  CHECK(ids("bob") == std::vector<std::int64_t>{2});
  CHECK(ids("lea") == std::vector<std::int64_t>{2});
  const auto others = client.call({.target = "/v1/jobs/1", .user = "bob"});
  const auto none = client.call({.target = "/v1/jobs/99", .user = "bob"});
  CHECK_EQ(others.status, 404);
  CHECK_EQ(none.status, 404);
  CHECK_EQ(detail_of(others), "no such job 1");
  CHECK_EQ(detail_of(none), "no such job 99");
  CHECK_EQ(client.call({.target = "/v1/jobs/3", .user = "bob"}).status, 404);  // finished, and the admin's
  const auto queues = json::parse(client.call({.target = "/v1/queues", .user = "lea"}).body);
  for (const auto& queue : queues.at("items").as_array())
    CHECK(std::string_view(queue.at("path").as_string()).starts_with("b"));
  CHECK_EQ(client.call({.target = "/v1/queues/a", .user = "lea"}).status, 404);
}

TEST_CASE("the ids of jobs that one may not see are taken out of the view of a job") {
  World world;
  http::Request request;
  request.principal = {.name = "user:bob", .user = "bob", .roles = {{"user:bob", Role::kMember, "b"}}};
  // Job 1 is ann's, job 2 is bob's, job 3 has finished and is the admin's.
  json::value view = json::parse(R"({"stop":{"preemptor":1},"nomination":{"victims":[1,2,3]},)"
                                 R"("past":[{"preemptor":2},{"preemptor":3}],"labels":{"victims":"none"}})");
  hide_others(world.service, request, view);
  CHECK_EQ(json_text(view), json_text(json::parse(R"({"stop":{},"nomination":{"victims":[2]},)"
                                                  R"("past":[{"preemptor":2},{}],"labels":{"victims":"none"}})")));
}

TEST_CASE("a change of a queue is held to the revision that it was made for, and is told from what the file says") {
  World world;
  const Client client(world.service);
  const auto change = [&](const std::string& body, const std::string& revision) {
    std::vector<http::Header> headers;
    if (!revision.empty()) headers.push_back({"if-match", "\"" + revision + "\""});
    return client.call(
        {.method = "POST", .target = "/v1/queues/b%2Fnlp/changes", .body = body, .headers = headers, .user = "ops"});
  };
  const auto revision = [&] { return std::string(client.json("/v1/queues/b%2Fnlp").at("revision").as_string()); };
  const std::string seen = revision();
  CHECK_EQ(change(R"({"set":["max.gpus=2"]})", seen).status, 200);
  const auto late = change(R"({"set":["max.gpus=3"]})", seen);
  CHECK_EQ(late.status, 412);
  CHECK(detail_of(late).find("user:ops set max.gpus=2 at ") != std::string::npos);
  CHECK_EQ(change(R"({"set":["max.gpus=3"]})", revision()).status, 200);
  CHECK_EQ(change(R"({"set":["max.gpus=8"]})", "").status, 409);
  CHECK_EQ(change(R"({"set":["max.gpus"]})", "").status, 400);
  CHECK_EQ(change(R"({"set":[],"undo":true})", "").status, 400);
  const auto over = client.json("/v1/config").at("changes").as_array();
  REQUIRE_EQ(over.size(), 1);
  CHECK_EQ(over[0].at("value").as_string(), "3");
  CHECK_EQ(over[0].at("file").as_string(), "none");
  CHECK_EQ(over[0].at("by").as_string(), "user:ops");
  CHECK_EQ(client.json("/v1/queues/b%2Fnlp").at("changes").as_array().size(), 2);
}

TEST_CASE("a subject sees its own roles and those that it may manage") {
  World world;
  REQUIRE(world.service.run(BindRole{{"user:bob", Role::kViewer, "a"}, true, "admin"}));
  REQUIRE(world.service.run(BindRole{{"user:zoe", Role::kMember, "b/nlp"}, true, "user:lea"}));
  const Client client(world.service);
  const auto subjects = [&](const char* user) {
    std::vector<std::string> found;
    const auto page = json::parse(client.call({.target = "/v1/roles", .user = user}).body);
    for (const auto& role : page.at("items").as_array()) found.emplace_back(role.at("subject").as_string());
    return found;
  };
  CHECK(subjects("aud") == std::vector<std::string>{"user:bob", "user:zoe"});
  CHECK(subjects("lea") == std::vector<std::string>{"user:zoe"});
  CHECK(subjects("bob") == std::vector<std::string>{"user:bob"});
  CHECK(subjects("eve").empty());
}

TEST_CASE("a running job sees itself, reports its checkpoints and gets its identity, and may nothing else") {
  World world;
  const Client client(world.service);
  const auto status = [&](const Ask& ask) {
    Ask asked = ask;
    asked.user = "job1";
    return client.call(asked).status;
  };
  const std::set<std::string> own = {"getJob", "reportCheckpoint", "createJobIdentity"};
  // What every subject may that the server knows.
  const std::set<std::string> of_all = {"getIdentity", "checkAccess", "getPrices", "listRoles"};
  for (const auto& entry : one_call_each()) {
    const std::string& id = entry.first;
    CAPTURE(id);
    if (entry.second.user.empty()) continue;  // it is public
    const int answered = status(entry.second);
    if (own.contains(id)) {
      CHECK_EQ(answered, 200);
    } else if (of_all.contains(id)) {
      CHECK_NE(answered, 403);
    } else {
      CHECK((answered == 403 || answered == 404));
    }
  }
  CHECK_EQ(status({.target = "/v1/jobs/1/why"}), 200);
  CHECK_EQ(status({.target = "/v1/jobs/2"}), 404);
  CHECK_EQ(status({.target = "/v1/jobs/1/logs"}), 403);
  CHECK_EQ(status({.method = "POST", .target = "/v1/jobs/2/checkpoint", .body = R"({"attempt":1,"step":9})"}), 404);
  CHECK_EQ(status({.method = "POST", .target = "/v1/jobs/2/identity?audience=a"}), 404);
  CHECK_EQ(json::parse(client.call({.target = "/v1/roles", .user = "job1"}).body).at("items").as_array().size(), 0);
  const auto by_admin = client.call({.method = "POST", .target = "/v1/jobs/1/identity?audience=a"});
  CHECK_EQ(by_admin.status, 403);
  CHECK(detail_of(by_admin).find("BERTH_JOB_TOKEN") != std::string::npos);
  CHECK_EQ(status({.method = "POST", .target = "/v1/jobs/1/identity"}), 400);
  CHECK_EQ(status({.method = "POST", .target = "/v1/jobs/1/identity?audience="}), 400);
  CHECK_EQ(status({.method = "POST", .target = "/v1/jobs/1/identity?audience=" + std::string(256, 'a')}), 400);
  REQUIRE(world.service.run(BlockSubject{"user:ann", true, "admin"}));  // whose job it is
  CHECK_EQ(status({.target = "/v1/jobs/1"}), 403);
  CHECK_EQ(status({.method = "POST", .target = "/v1/jobs/1/identity?audience=a"}), 403);
}

TEST_CASE("a token for saves reports those of its own running job, and reads nothing") {
  World world;
  const Client client(world.service);
  for (const auto& entry : one_call_each()) {
    CAPTURE(entry.first);
    if (entry.second.user.empty()) continue;  // it is public
    Ask ask = entry.second;
    ask.user = "save1";
    const int answered = client.call(ask).status;
    CHECK((entry.first == "reportCheckpoint" ? answered == 200 : answered == 403 || answered == 404));
  }
  const auto answer = client.call(
      {.method = "POST", .target = "/v1/jobs/2/checkpoint", .body = R"({"attempt":1,"step":9})", .user = "save1"});
  CHECK_EQ(answer.status, 404);
  const auto read = client.call({.target = "/v1/jobs/1", .user = "save1"});
  CHECK_NE(detail_of(read).find("this token reports the saves of job 1, and may nothing else"), std::string::npos);
  REQUIRE(world.service.run(BlockSubject{"user:ann", true, "admin"}));  // whose job it is
  CHECK_EQ(client
               .call({.method = "POST",
                      .target = "/v1/jobs/1/checkpoint",
                      .body = R"({"attempt":1,"step":10})",
                      .user = "save1"})
               .status,
           403);
}

TEST_CASE("a denied request names the verb, the place and the least role that could") {
  World world;
  const Client client(world.service);
  const auto cordon = client.call({.method = "POST", .target = "/v1/nodes/n1/cordon", .user = "ann"});
  CHECK_EQ(detail_of(cordon), "user:ann may not manage-nodes in this cluster; that takes the role operator there");
  const auto hold =
      client.call({.method = "PUT", .target = "/v1/jobs/2/priority", .body = R"({"priority":7})", .user = "ops"});
  CHECK_EQ(detail_of(hold), "user:ops may not prioritize-job in queue b/nlp; that takes the role lead there");
  CHECK_EQ(detail_of(submit(client, kJob, "", "bob")),
           "user:bob may not submit in queue a; that takes the role member there");
}

}  // namespace berth::api
