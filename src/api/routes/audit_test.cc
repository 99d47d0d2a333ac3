#include <doctest/doctest.h>

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <set>
#include <string>
#include <utility>

#include "api/routes/fake_service.h"
#include "api/routes/log_access.h"

namespace berth::api {
namespace {

// Job 1 is ann's and runs in a, job 2 is bob's in b/nlp.
struct AuditWorld {
  FakeService service;
  Client client;
  AuditWorld() : client(service) {
    set_up_cluster(service);
    submit("ann", R"({"name":"hush-name","queue":"a","gpus":2,"command":["hush-command"],"env":{"KEY":"hush-env"}})");
    submit("bob", R"({"name":"other","queue":"b/nlp","gpus":8,"command":["run"]})");
  }

  void submit(const std::string& user, const std::string& body) {
    REQUIRE_EQ(client.call({.method = "POST", .target = "/v1/jobs", .body = body, .user = user}).status, 201);
  }
  // What is denied is written as the daemon's desk does.
  void write_denials() {
    for (AccessDenied& denied : service.denials) {
      denied.count = 1;
      denied.first = denied.last = service.now;
    }
    REQUIRE(service.run(NoteDenials{std::exchange(service.denials, {})}));
  }
  boost::json::array audit(const std::string& user, const std::string& query = "") {
    const auto answer = client.call({.target = "/v1/audit?limit=1000" + query, .user = user});
    CAPTURE(answer.body);
    REQUIRE_EQ(answer.status, 200);
    return boost::json::parse(answer.body).at("items").as_array();
  }
  static std::string said(const boost::json::value& entry, std::string_view key) {
    return entry.at(key).as_string().c_str();
  }
  std::set<std::string> verbs(const std::string& user, const std::string& query = "") {
    std::set<std::string> found;
    for (const auto& entry : audit(user, query)) found.insert(entry.at("verb").as_string().c_str());
    return found;
  }
  http::Response log_of(const std::string& job, const std::string& user, const std::string& query = "") {
    return client.call({.target = "/v1/jobs/" + job + "/logs" + query, .user = user});
  }
  std::size_t log_reads() const {
    return static_cast<std::size_t>(std::count_if(service.log.begin(), service.log.end(), [](const EventRecord& one) {
      return std::holds_alternative<LogRead>(one.event);
    }));
  }
};

TEST_CASE("a change is in the log with the request that asked for it, and what follows from it is not") {
  AuditWorld world;
  std::size_t with_origin = 0;
  for (const EventRecord& record : world.service.log) {
    if (record.by.empty()) continue;
    ++with_origin;
    CHECK(std::holds_alternative<JobSubmitted>(record.event));
    CHECK_EQ(record.by.proof, "token");
  }
  CHECK_EQ(with_origin, 2);
  REQUIRE_EQ(
      world.client
          .call({.method = "DELETE", .target = "/v1/jobs/1", .headers = {{"x-request-id", "ticket-77"}}, .user = "ops"})
          .status,
      202);
  const auto entries = world.audit("aud", "&verb=stop-job");
  REQUIRE_EQ(entries.size(), 1);
  CHECK_EQ(AuditWorld::said(entries[0], "subject"), "user:ops");
  CHECK_EQ(AuditWorld::said(entries[0], "request"), "ticket-77");
  CHECK_EQ(AuditWorld::said(entries[0], "queue"), "a");
  CHECK_EQ(entries[0].at("job").to_number<int>(), 1);
}

TEST_CASE("a signal and a new priority are entries with subject, queue, verb and values") {
  AuditWorld world;
  const auto ask = [&](const char* method, const char* target, const char* body) {
    return world.client.call({.method = method, .target = target, .body = body, .user = "ann"}).status;
  };
  CHECK_EQ(ask("POST", "/v1/jobs/1/signal", R"({"signal":10})"), 200);
  CHECK_EQ(ask("PUT", "/v1/jobs/1/priority", R"({"priority":70})"), 200);
  CHECK_EQ(ask("PUT", "/v1/jobs/1/priority", R"({"priority":70})"), 200);  // changes nothing
  const auto entries = world.audit("aud", "&subject=user:ann&queue=a");
  REQUIRE_EQ(entries.size(), 3);
  CHECK_EQ(AuditWorld::said(entries[1], "verb"), "stop-job");
  CHECK_EQ(AuditWorld::said(entries[1].at("changes").at(0), "key"), "signal");
  CHECK_EQ(AuditWorld::said(entries[1].at("changes").at(0), "after"), "10");
  CHECK_EQ(AuditWorld::said(entries[2], "verb"), "prioritize-job");
  CHECK_EQ(AuditWorld::said(entries[2].at("changes").at(0), "after"), "70");
  CHECK(entries[2].at("changes").at(0).at("before").is_string());
}

TEST_CASE("what is denied is counted with subject, verb and object, also where it is answered as not there") {
  AuditWorld world;
  CHECK_EQ(world.client.call({.target = "/v1/jobs/1", .user = "bob"}).status, 404);
  CHECK_EQ(world.client.call({.target = "/v1/nodes", .user = "ann"}).status, 403);
  CHECK_EQ(world.client.call({.target = "/v1/queues/a", .user = "bob"}).status, 404);
  CHECK_EQ(world.client
               .call({.method = "POST",
                      .target = "/v1/jobs",
                      .body = R"({"queue":"a","gpus":1,"command":["x"]})",
                      .user = "bob"})
               .status,
           403);
  CHECK_EQ(world.client.call({.target = "/v1/jobs/99", .user = "bob"}).status,
           404);  // there is none: nothing is denied
  REQUIRE_EQ(world.service.denials.size(), 4);
  const auto& denials = world.service.denials;
  CHECK_EQ(denials[0].subject, "user:bob");
  CHECK_EQ(denials[0].verb, "see-job");
  CHECK_EQ(denials[0].job.value(), 1);
  CHECK_EQ(denials[0].queue, "a");
  CHECK_EQ(denials[1].verb, "see-nodes");
  CHECK_EQ(denials[2].verb, "see-queue");
  CHECK_EQ(denials[2].queue, "a");
  CHECK_EQ(denials[3].verb, "submit");
  world.write_denials();
  CHECK(world.verbs("aud", "&denied=true") == std::set<std::string>{"see-job", "see-nodes", "see-queue", "submit"});
  CHECK_EQ(world.audit("aud", "&denied=true&subject=user:ann").size(), 1);
}

TEST_CASE("a job that an admission rule refuses is counted as denied, once, and a mistake in it is not") {
  AuditWorld world;
  const auto post = [&](const char* target, const std::string& body) {
    return world.client.call({.method = "POST", .target = target, .body = body, .user = "bob"}).status;
  };
  AdmissionRule rule;
  rule.name = "small";
  rule.max_gpu_milli = 2000;
  REQUIRE(world.service.run(SetRules{"b", {rule}, "admin"}));
  CHECK_EQ(post("/v1/jobs", R"({"queue":"b/nlp","gpus":4,"command":["hush-command"]})"), 403);
  CHECK_EQ(post("/v1/jobs", R"({"queue":"b/nlp","gpus":"many","command":["x"]})"), 400);
  CHECK_EQ(post("/v1/jobs", R"({"queue":"b/nlp","gpus":1,"command":["x"]})"), 201);
  REQUIRE_EQ(world.service.denials.size(), 1);
  CHECK_EQ(world.service.denials[0].subject, "user:bob");
  CHECK_EQ(world.service.denials[0].verb, "submit");
  CHECK_EQ(world.service.denials[0].queue, "b/nlp");
  world.write_denials();
  CHECK_EQ(world.audit("aud", "&denied=true&queue=b").size(), 1);
}

TEST_CASE("an entry is shown to who has see-audit at its queue or above, and a page goes on where it ended") {
  AuditWorld world;
  const auto may = [&](const char* user) { return world.client.call({.target = "/v1/audit", .user = user}).status; };
  CHECK_EQ(may("aud"), 200);
  CHECK_EQ(may("admin"), 200);
  for (const char* user : {"ann", "bob", "lea", "ops", "eve"}) CHECK_EQ(may(user), 403);
  CHECK_EQ(world.audit("aud", "&queue=a").size(), 1);
  CHECK_EQ(world.audit("aud", "&queue=b").size(), 1);
  CHECK_EQ(world.audit("aud", "&verb=submit").size(), 2);
  const auto first = boost::json::parse(world.client.call({.target = "/v1/audit?verb=submit&limit=1"}).body);
  REQUIRE_EQ(first.at("items").as_array().size(), 1);
  const std::string next = std::to_string(first.at("next_from").to_number<std::int64_t>());
  const auto second = boost::json::parse(world.client.call({.target = "/v1/audit?verb=submit&from=" + next}).body);
  REQUIRE_EQ(second.at("items").as_array().size(), 1);
  CHECK_EQ(AuditWorld::said(second.at("items").at(0), "subject"), "user:bob");
  const std::string time = second.at("items").at(0).at("time").as_string().c_str();
  CHECK_EQ(world.audit("aud", "&verb=submit&since=" + time).size(), 1);
  CHECK_EQ(world.audit("aud", "&since=2100-01-01").size(), 0);
  CHECK_EQ(boost::json::serialize(world.audit("aud")).find("hush"), std::string::npos);
}

TEST_CASE("the log of another user's job is read only once that is in the log, once a minute") {
  AuditWorld world;
  CHECK_EQ(world.log_of("1", "ann").status, 200);
  CHECK_EQ(world.log_reads(), 0);
  CHECK_EQ(world.log_of("1", "admin").status, 200);
  CHECK_EQ(world.log_of("1", "admin").status, 200);
  CHECK_EQ(world.log_reads(), 1);
  world.service.now.ms += LogAccess::kOncePerMs;
  CHECK_EQ(world.log_of("1", "admin").status, 200);
  CHECK_EQ(world.log_reads(), 2);
  world.service.now.ms += LogAccess::kOncePerMs;
  world.service.full = true;
  CHECK_EQ(world.log_of("1", "admin").status, 503);
  world.service.full = false;
  const auto entries = world.audit("aud", "&verb=read-log");
  REQUIRE_EQ(entries.size(), 2);
  CHECK_EQ(AuditWorld::said(entries[0], "object"), "user:ann");
  CHECK_FALSE(boost::json::parse(world.client.get("/v1/jobs/1").body).as_object().contains("break_glass"));
}

TEST_CASE("a refused submission names the queue that was asked for, also where the verb is had nowhere") {
  for (const char* path : {"/v1/jobs", "/v1/forecast"}) {
    AuditWorld world;
    const auto answer = world.client.call(
        {.method = "POST", .target = path, .body = R"({"queue":"b/nlp","gpus":1,"command":["true"]})", .user = "ops"});
    CHECK_EQ(answer.status, 403);
    CHECK_NE(answer.body.find("may not submit in queue b/nlp"), std::string::npos);
    REQUIRE_EQ(world.service.denials.size(), 1);
    CHECK_EQ(world.service.denials[0].queue, "b/nlp");
  }
}

TEST_CASE("an operator reads a log by break-glass alone, and the owner sees by whom and why") {
  AuditWorld world;
  const auto refused = world.log_of("1", "ops");
  CHECK_EQ(refused.status, 403);
  CHECK_NE(refused.body.find("--break-glass"), std::string::npos);
  for (const char* reason :
       {"?break_glass=", "?break_glass=%20%20", "?break_glass=%E2%80%8B", "?break_glass=a%E2%80%A8b"})
    CHECK_EQ(world.log_of("1", "ops", reason).status, 400);
  CHECK_EQ(world.log_of("1", "ops", "?break_glass=" + std::string(201, 'x')).status, 400);
  CHECK_EQ(world.log_of("1", "ops", "?break_glass=a%0Ab").status, 400);
  CHECK_EQ(world.log_reads(), 0);
  CHECK_EQ(world.log_of("1", "ops", "?break_glass=node%20n1%20fails").status, 200);
  CHECK_EQ(world.log_of("1", "ops", "?break_glass=node%20n1%20fails").status, 200);
  CHECK_EQ(world.log_reads(), 1);
  for (const char* user : {"aud", "bob", "eve"})
    CHECK((world.log_of("1", user, "?break_glass=please").status == 403 ||
           world.log_of("1", user, "?break_glass=x").status == 404));
  CHECK_EQ(world.log_reads(), 1);
  const auto seen =
      boost::json::parse(world.client.call({.target = "/v1/jobs/1", .user = "ann"}).body).at("break_glass");
  REQUIRE_EQ(seen.as_array().size(), 1);
  CHECK_EQ(AuditWorld::said(seen.at(0), "subject"), "user:ops");
  CHECK_EQ(AuditWorld::said(seen.at(0), "reason"), "node n1 fails");
  const auto entries = world.audit("aud", "&verb=break-glass");
  REQUIRE_EQ(entries.size(), 1);
  CHECK_EQ(AuditWorld::said(entries[0], "reason"), "node n1 fails");
  world.service.finish(JobId(1), 0);  // and it stays in the view of a job that is over
  CHECK_EQ(boost::json::parse(world.client.get("/v1/jobs/1").body).at("break_glass").as_array().size(), 1);
  world.service.state = state::State::load(world.service.state.save()).value();
  CHECK_EQ(boost::json::parse(world.client.get("/v1/jobs/1").body).at("break_glass").as_array().size(), 1);
}

TEST_CASE("the audit is followed as a stream, of those entries alone that the subject may see") {
  AuditWorld world;
  const auto answer = world.client.send({.target = "/v1/audit?follow=true&verb=submit", .user = "aud"});
  REQUIRE(answer->stream != nullptr);
  answer->stream->drain();
  answer->stream->drain();
  const auto sent = [&] {
    std::string all;
    for (const auto& chunk : answer->stream->chunks) all += *chunk;
    return all;
  };
  CHECK_NE(sent().find("user:ann"), std::string::npos);
  CHECK_EQ(sent().find("see-job"), std::string::npos);
  const std::size_t before = sent().size();
  world.client.call({.target = "/v1/jobs/1", .user = "bob"});
  world.write_denials();
  CHECK_EQ(sent().size(), before);
  world.submit("ann", R"({"name":"late","queue":"a","gpus":1,"command":["x"]})");
  CHECK_NE(sent().substr(before).find("\"verb\":\"submit\""), std::string::npos);
  CHECK_EQ(sent().find("late"), std::string::npos);
}

}  // namespace
}  // namespace berth::api
