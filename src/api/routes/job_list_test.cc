#include "api/routes/job_list.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "api/routes/fake_service.h"

namespace berth::api {
namespace {

SubmitJob waiting_job(const std::string& queue, const std::string& user, std::int32_t gpus) {
  JobSpec spec;
  spec.name = "job";
  spec.queue = queue;
  spec.user = user;
  spec.held = true;
  TaskGroup group;
  group.request.gpus = gpus;
  group.request.cpu_milli = 1000;
  group.command = {"true"};
  spec.groups.push_back(group);
  return {spec, ""};
}

// Walks all pages; `between` runs after each.
std::vector<std::uint64_t> all_pages(
    FakeService& service, const std::string& query, const std::function<void()>& between = [] {}) {
  const Client client(service);
  std::vector<std::uint64_t> ids;
  std::string cursor;
  for (int page = 0; page < 200; ++page) {
    const auto answer = client.json("/v1/jobs?" + query + (cursor.empty() ? "" : "&cursor=" + cursor));
    for (const auto& item : answer.at("items").as_array()) ids.push_back(item.at("id").to_number<std::uint64_t>());
    if (answer.at("next_cursor").is_null()) return ids;
    cursor = answer.at("next_cursor").as_string().c_str();
    between();
  }
  FAIL("the list does not end");
  return ids;
}

std::vector<std::uint64_t> sorted(std::vector<std::uint64_t> ids) {
  std::sort(ids.begin(), ids.end());
  return ids;
}

struct Jobs {
  FakeService service;
  Jobs() {
    set_up_cluster(service);
    for (int i = 0; i < 40; ++i) {
      REQUIRE(service.run(waiting_job(i % 3 == 0 ? "a" : "b/nlp", i % 2 == 0 ? "ann" : "bob", i % 5)));
      if (i % 7 == 0) REQUIRE(service.run(PrioritizeJob{JobId(static_cast<std::uint64_t>(i) + 1), i, "op"}));
    }
    for (const std::uint64_t id : {5U, 6U, 20U}) REQUIRE(service.run(CancelJob{JobId(id), "op"}));
    REQUIRE_EQ(service.past.size(), 3);
  }
};

}  // namespace

TEST_CASE("by any sorting, in pages of any size, every job is listed once") {
  Jobs jobs;
  const auto all = all_pages(jobs.service, "limit=1000");
  CHECK_EQ(all.size(), 37);
  for (const char* sort : {"id", "-id", "submitted", "-submitted", "priority", "-priority", "queue", "-queue", "user",
                           "-user", "gpus", "-gpus"}) {
    const std::string whole = std::string("limit=1000&sort=") + sort;
    const auto order = all_pages(jobs.service, whole);
    for (const char* limit : {"1", "3", "37"}) {
      CAPTURE(sort);
      CAPTURE(limit);
      CHECK_EQ(all_pages(jobs.service, std::string("sort=") + sort + "&limit=" + limit), order);
    }
    CHECK_EQ(sorted(order), all);
  }
  auto reversed = all_pages(jobs.service, "sort=-id&limit=7");
  std::reverse(reversed.begin(), reversed.end());
  CHECK_EQ(reversed, all);
}

TEST_CASE("what comes and goes between two pages moves nobody else") {
  Jobs jobs;
  const auto before = all_pages(jobs.service, "limit=1000&sort=user");
  std::uint64_t victim = 1;
  const auto seen = all_pages(jobs.service, "limit=4&sort=user", [&] {
    REQUIRE(jobs.service.run(waiting_job("a", "aaron", 1)));
    if (jobs.service.state.job(JobId(victim)) != nullptr) REQUIRE(jobs.service.run(CancelJob{JobId(victim), "op"}));
    ++victim;
  });
  for (const std::uint64_t id : before) {
    const auto times = std::count(seen.begin(), seen.end(), id);
    if (jobs.service.state.job(JobId(id)) != nullptr) CHECK_EQ(times, 1);
    CHECK_LE(times, 1);
  }
}

TEST_CASE("finished jobs follow the live ones, newest first, and can be had alone") {
  Jobs jobs;
  auto with_finished = all_pages(jobs.service, "finished=true&limit=1000");
  REQUIRE_EQ(with_finished.size(), 40);
  CHECK_EQ(std::vector(with_finished.end() - 3, with_finished.end()), std::vector<std::uint64_t>{20, 6, 5});
  CHECK_EQ(all_pages(jobs.service, "finished=true&limit=2"), with_finished);
  CHECK_EQ(all_pages(jobs.service, "finished=true&limit=37"), with_finished);
  CHECK_EQ(all_pages(jobs.service, "phase=finished&limit=1"), std::vector<std::uint64_t>{20, 6, 5});
  CHECK_EQ(all_pages(jobs.service, "phase=finished&user=ann"), std::vector<std::uint64_t>{5});
}

TEST_CASE("filters hold together") {
  Jobs jobs;
  CHECK_EQ(all_pages(jobs.service, "queue=b&limit=2"), all_pages(jobs.service, "queue=b/nlp"));
  CHECK_EQ(Client(jobs.service).get("/v1/jobs?queue=b/n").status, 404);
  CHECK_EQ(Client(jobs.service).get("/v1/jobs?node=nowhere").status, 404);
  CHECK_EQ(all_pages(jobs.service, "queue=a&user=ann&limit=1").size(), 7);
  CHECK(all_pages(jobs.service, "node=n1").empty());
  CHECK(all_pages(jobs.service, "node=nowhere&finished=true").empty());
  CHECK(all_pages(jobs.service, "phase=running").empty());
  CHECK(all_pages(jobs.service, "kind=service").empty());
  CHECK_EQ(all_pages(jobs.service, "name=job&phase=pending").size(), 37);
}

TEST_CASE("jobs are chosen by labels and by the time in which they lived") {
  FakeService service;
  set_up_cluster(service);
  const auto labelled = [&](Labels labels) {
    SubmitJob job = waiting_job("a", "ann", 1);
    job.spec.labels = std::move(labels);
    REQUIRE(service.run(job));
  };
  const auto at = [&](std::int64_t hours) { service.now = Timestamp{1'700'000'000'000 + hours * 3'600'000}; };
  labelled({{"run", "7"}, {"team", "x"}});
  labelled({{"run", "7"}});
  at(1);
  REQUIRE(service.run(CancelJob{JobId(1), "op"}));
  at(2);
  labelled({});
  CHECK_EQ(all_pages(service, "label=run%3D7"), std::vector<std::uint64_t>{2});
  CHECK_EQ(all_pages(service, "label=run%3D7,team%3Dx&finished=true"), std::vector<std::uint64_t>{1});
  CHECK_EQ(Client(service).get("/v1/jobs?label=run").status, 400);
  const auto time = [](std::int64_t hours) { return to_iso8601(Timestamp{1'700'000'000'000 + hours * 3'600'000}); };
  CHECK_EQ(all_pages(service, "since=" + time(0) + "&limit=1"), std::vector<std::uint64_t>{2, 3, 1});
  CHECK_EQ(all_pages(service, "since=" + time(2)), std::vector<std::uint64_t>{2, 3});
  CHECK_EQ(all_pages(service, "since=" + time(0) + "&until=" + time(2)), std::vector<std::uint64_t>{2, 1});
  CHECK_EQ(Client(service).get("/v1/jobs?since=yesterday").status, 400);
  const auto first = Client(service).json("/v1/jobs/2");
  CHECK_EQ(first.at("labels").at("run"), "7");
}

TEST_CASE("a cursor belongs to its sorting") {
  Jobs jobs;
  const Client client(jobs.service);
  const std::string cursor = client.json("/v1/jobs?limit=1&sort=user").at("next_cursor").as_string().c_str();
  CHECK_EQ(client.get("/v1/jobs?sort=queue&cursor=" + cursor).status, 400);
  CHECK_EQ(client.get("/v1/jobs?sort=-user&cursor=" + cursor).status, 400);
  CHECK_EQ(client.get("/v1/jobs?sort=user&cursor=" + cursor).status, 200);
}

}  // namespace berth::api
