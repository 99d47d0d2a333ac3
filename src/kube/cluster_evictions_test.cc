#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "kube/api_stand_in.h"
#include "kube/cluster.h"

namespace berth::kube {
namespace {

constexpr const char* kPair = R"("berth.dev/group":"g","berth.dev/group-size":"2")";

TaskKey victim(std::uint32_t number = 0) { return {JobId(1), 1, number, 1}; }

// A gang of two pods that runs.
struct Evictions : ApiStandIn {
  Evictions() {
    node("n1", 8);
    name_space("team", "q");
    list();
    pod("a", 1, kPair);
    pod("b", 1, kPair);
    settle();
    start(victim(0), "n1", 1);
    start(victim(1), "n1", 1, 1);
    run_all();
    settle();
  }
  void stop(StopCause cause) {
    for (const std::uint32_t number : {0U, 1U}) perform(SignalTask{victim(number), "n1", 15, cause});
  }
  void kill(StopCause cause) {
    for (const std::uint32_t number : {0U, 1U}) perform(KillTask{victim(number), "n1", 0, cause});
  }
  // As the core says it when the stop is cancelled.
  void go_on() {
    StartTask again;
    for (const std::uint32_t number : {0U, 1U}) {
      again.key = victim(number);
      again.node = "n1";
      perform(again);
    }
  }
  std::size_t asked(const std::string& pod) const {
    return static_cast<std::size_t>(std::count_if(requests.begin(), requests.end(), [&](const Request& one) {
      return one.path.ends_with("/pods/" + pod + "/eviction");
    }));
  }
  std::size_t told(const std::string& text) const {
    return static_cast<std::size_t>(std::count_if(requests.begin(), requests.end(), [&](const Request& one) {
      return one.path.ends_with("/events") && one.body.find(text) != std::string::npos;
    }));
  }
};

}  // namespace

TEST_CASE("who is preempted or moved is evicted, and who is reclaimed, fails or is cancelled is deleted") {
  struct Row {
    StopCause cause;
    bool evicts;
    bool evicts_when_forced;
  };
  const Row rows[] = {{StopCause::kPreempt, true, true},      {StopCause::kConsolidate, true, true},
                      {StopCause::kMove, true, true},         {StopCause::kDrain, true, false},
                      {StopCause::kMaintenance, true, false}, {StopCause::kReclaim, false, false},
                      {StopCause::kSpotNotice, false, false}, {StopCause::kTimeLimit, false, false},
                      {StopCause::kUser, false, false},       {StopCause::kTaskFailed, false, false}};
  for (const Row& row : rows) {
    CAPTURE(name_of(row.cause));
    Evictions asked;
    asked.stop(row.cause);
    CHECK_EQ(asked.evicted.size(), row.evicts ? 2 : 0);
    CHECK_EQ(asked.deleted.size(), row.evicts ? 0 : 2);
    Evictions forced;
    forced.kill(row.cause);
    CHECK_EQ(forced.evicted.size(), row.evicts_when_forced ? 2 : 0);
    CHECK_EQ(forced.deleted.size(), row.evicts_when_forced ? 0 : 2);
  }
}

TEST_CASE("a deletion is preceded by the mark of a disruption") {
  Evictions api;
  api.stop(StopCause::kReclaim);
  const auto place = [&](Method method, const std::string& end) {
    return std::find_if(api.requests.begin(), api.requests.end(),
                        [&](const Request& one) {
                          return one.method == method && one.path.ends_with(end) &&
                                 (method == Method::kDelete || one.body.find("DisruptionTarget") != std::string::npos);
                        }) -
           api.requests.begin();
  };
  CHECK(place(Method::kPatch, "/a/status") < place(Method::kDelete, "/a"));
  CHECK(place(Method::kDelete, "/a") < static_cast<std::ptrdiff_t>(api.requests.size()));
}

TEST_CASE("after a pause of the server a mark has the time that it is") {
  Evictions api;
  api.pause(3600);
  api.stop(StopCause::kReclaim);
  const std::string time = to_iso8601(api.now()).substr(0, 19);
  CHECK(std::any_of(api.requests.begin(), api.requests.end(), [&](const Request& one) {
    return one.body.find("DisruptionTarget") != std::string::npos && one.body.find(time) != std::string::npos;
  }));
}

TEST_CASE("while a budget keeps its first pod no pod of the gang is touched, and it is said once") {
  Evictions api;
  api.budgets = {"a"};
  api.stop(StopCause::kPreempt);
  api.kill(StopCause::kPreempt);
  CHECK_EQ(api.asked("a"), 1);
  CHECK_EQ(api.asked("b"), 0);
  api.pass(600);
  CHECK(api.asked("a") >= 10);
  CHECK(api.asked("a") <= 15);  // 10 s, 20 s, 40 s, then every minute
  CHECK_EQ(api.asked("b"), 0);
  CHECK(api.deleted.empty());
  CHECK_EQ(api.told("needs 1 healthy pods and has 1 currently"), 1);
  CHECK(api.exit_of(victim()) == nullptr);
  api.budgets.clear();
  api.pass(61);
  CHECK_EQ(api.evicted.size(), 2);
  CHECK(api.exit_of(victim(0)) != nullptr);
  CHECK(api.exit_of(victim(1)) != nullptr);
}

TEST_CASE("a gang whose first pod has left is broken: what a budget keeps is deleted after a minute") {
  Evictions api;
  api.budgets = {"b"};
  api.stop(StopCause::kPreempt);
  CHECK_EQ(api.evicted.size(), 1);
  api.pass(30);
  CHECK(api.deleted.empty());
  api.pass(45);
  CHECK_EQ(api.deleted.size(), 1);
}

TEST_CASE("a berth that is killed meanwhile asks again, and knows a broken gang") {
  Evictions api;
  api.budgets = {"a"};
  api.stop(StopCause::kPreempt);
  api.restart();
  api.stop(StopCause::kPreempt);
  CHECK(api.deleted.empty());
  CHECK_EQ(api.asked("b"), 0);
  api.budgets = {"b"};
  api.pass(61);
  CHECK_EQ(api.evicted.size(), 1);
  api.restart();
  api.perform(SignalTask{victim(1), "n1", 15, StopCause::kPreempt});
  api.pass(75);
  CHECK_EQ(api.deleted.size(), 1);
}

TEST_CASE("an eviction that is not wanted any more is not asked for again; one that has happened stays so") {
  Evictions api;
  api.budgets = {"a"};
  api.stop(StopCause::kPreempt);
  api.go_on();
  api.budgets.clear();
  api.pass(120);
  CHECK_EQ(api.asked("a"), 1);
  CHECK(api.evicted.empty());
  api.stop(StopCause::kPreempt);
  CHECK_EQ(api.evicted.size(), 2);
}

TEST_CASE("an eviction that is not sent yet is withdrawn when the stop is cancelled, and asked for at the next stop") {
  SUBCASE("the backend has not taken it") {
    Evictions api;
    api.cluster().perform(SignalTask{victim(), "n1", 15, StopCause::kPreempt}, api.now());
    api.go_on();
    CHECK_EQ(api.asked("a"), 0);
    CHECK(api.withdrawn.empty());
    api.pass(5);
    api.stop(StopCause::kPreempt);
    CHECK_EQ(api.evicted.size(), 2);
  }
  SUBCASE("it waits in the queue of the backend, and was asked for again meanwhile") {
    Evictions api;
    api.fault = [&](const Request& request) {
      return request.path.ends_with("/eviction") ? Answer{ApiStandIn::kOnItsWay, ""} : api.serve(request);
    };
    api.stop(StopCause::kPreempt);
    api.pass(6);
    REQUIRE_EQ(api.asked("a"), 2);
    api.go_on();
    std::set<std::uint64_t> waiting;
    for (const Request& one : api.requests) {
      if (one.path.ends_with("/eviction")) waiting.insert(one.id);
    }
    CHECK(api.withdrawn == waiting);
    for (const std::uint64_t id : waiting) api.cluster().answered(id, 0, "", api.now());  // as the backend says it
    api.fault = nullptr;
    api.pass(60);
    CHECK(api.evicted.empty());
    api.stop(StopCause::kPreempt);
    CHECK_EQ(api.evicted.size(), 2);
  }
}

TEST_CASE("an eviction that was under way when the stop was cancelled ends the task, if it is granted") {
  Evictions api;
  Request sent;
  api.keep_under_way("/pods/a/eviction", sent);
  api.stop(StopCause::kPreempt);
  api.go_on();
  CHECK(api.withdrawn.contains(sent.id));  // too late: it is not in the queue any more
  const Answer answer = api.serve(sent);
  api.cluster().answered(sent.id, answer.status, answer.body, api.now());
  api.settle();
  CHECK(api.exit_of(victim(0)) != nullptr);
  CHECK(api.exit_of(victim(1)) == nullptr);
}

TEST_CASE("a stop that is cancelled while the pod is being bound evicts nothing afterwards") {
  ApiStandIn api;
  Request sent;
  api.keep_under_way("/binding", sent);
  api.node("n1", 8);
  api.name_space("team", "q");
  api.list();
  api.pod("a", 1);
  api.settle();
  api.start(victim(), "n1", 1);
  api.perform(SignalTask{victim(), "n1", 15, StopCause::kPreempt});
  StartTask again;
  again.key = victim();
  again.node = "n1";
  api.perform(again);
  api.shows = false;  // the answer comes before the watch shows the pod
  const Answer answer = api.serve(sent);
  api.cluster().answered(sent.id, answer.status, answer.body, api.now());
  api.settle();
  REQUIRE(api.evicted.empty());
  api.shows = true;
  api.show(api.uid_of("a"));
  api.run_all();
  api.pass(10);
  CHECK(api.evicted.empty());
  CHECK(api.is_running(victim()));
}

TEST_CASE("a user who cancels the job that a budget keeps has it deleted") {
  Evictions api;
  api.budgets = {"a", "b"};
  api.stop(StopCause::kPreempt);
  CHECK(api.deleted.empty());
  api.kill(StopCause::kUser);
  CHECK_EQ(api.deleted.size(), 2);
}

TEST_CASE("without the right to evict pods are deleted, and that is said") {
  Evictions api;
  api.fault = [&](const Request& request) {
    return request.path.ends_with("/eviction") ? Answer{403, "forbidden"} : api.serve(request);
  };
  api.stop(StopCause::kPreempt);
  api.settle();
  CHECK(!api.deleted.empty());
  const auto warnings = api.cluster().warnings();
  CHECK(std::any_of(warnings.begin(), warnings.end(), [](const std::string& one) {
    return one.find("allows no eviction of pods") != std::string::npos;
  }));
}

TEST_CASE("a right to evict or to mark that is missing for some seconds is waited for, and for a minute at most") {
  for (const char* part : {"/eviction", "/status"}) {
    CAPTURE(part);
    const bool evicts = std::string_view(part) == "/eviction";
    const StopCause cause = evicts ? StopCause::kPreempt : StopCause::kReclaim;
    const char* why = evicts ? R"({"message":"User \"berth\" cannot create resource \"pods/eviction\""})"
                             : R"({"message":"User \"berth\" cannot patch resource \"pods/status\""})";
    bool denies = true;
    const auto deny = [&](Evictions& api) {
      api.fault = [&](const Request& request) {
        return denies && request.path.ends_with(part) ? Answer{403, why} : api.serve(request);
      };
    };
    Evictions soon;
    deny(soon);
    soon.stop(cause);
    soon.pass(20);
    CHECK(soon.deleted.empty());
    denies = false;
    soon.pass(10);
    CHECK_EQ(soon.evicted.size(), evicts ? 2 : 0);
    CHECK_EQ(soon.deleted.size(), evicts ? 0 : 2);
    denies = true;
    Evictions never;
    deny(never);
    never.stop(cause);
    never.pass(55);
    CHECK(never.deleted.empty());
    never.pass(15);
    CHECK_EQ(never.deleted.size(), 2);
  }
}

TEST_CASE("an eviction without an answer, or of a budget that changes, is asked for again") {
  Evictions api;
  int left = 2;
  api.fault = [&](const Request& request) {
    if (!request.path.ends_with("/eviction") || left == 0) return api.serve(request);
    return --left == 1 ? Answer{0, ""} : Answer{409, "conflict"};
  };
  api.stop(StopCause::kPreempt);
  api.pass(8);
  CHECK_EQ(api.evicted.size(), 2);
}

}  // namespace berth::kube
