#include <doctest/doctest.h>

#include <algorithm>

#include "kube/api_stand_in.h"

namespace berth::kube {
namespace {

Options with_own(std::size_t keep = 1000) {
  Options options;
  options.log = "log";
  options.own.space = "team";
  options.own.keep = keep;
  return options;
}

struct Own : ApiStandIn {
  explicit Own(std::size_t keep = 1000) : ApiStandIn(with_own(keep)) {
    node("n1", 8);
    name_space("team", "q");
    list();
  }
  static StartTask start_of(std::uint64_t job, std::uint32_t task = 0, int gpus = 1) {
    StartTask start;
    start.key = {JobId(job), 1, task, 1};
    start.node = "n1";
    start.image = "a:1";
    start.command = {"train"};
    start.grace_ms = 30'000;
    for (int gpu = 0; gpu < gpus; ++gpu) start.gpu_uuids.push_back("node-n1:" + std::to_string(gpu));
    return start;
  }
  // What happened is seen from now on: the task runs, in the one pod that there is.
  void check_runs_once(const TaskKey& key) {
    shows = true;
    list();
    run_all();
    settle();
    CHECK(is_running(key));
    CHECK_EQ(pods_.size(), 1);
  }
  static std::string name(const StartTask& start) { return name_of_pod(start.key, "log"); }
  int posts() const {
    return static_cast<int>(std::count_if(requests.begin(), requests.end(), [](const Request& one) {
      return one.method == Method::kPost && one.path.ends_with("/pods");
    }));
  }
};

}  // namespace

TEST_CASE("each pod gets the Secret by which it reports saves, again until it is there") {
  Options options = with_own();
  options.own.saves = {"https://berth.example.com",
                       [](const TaskKey& key) { return "token-of-" + std::to_string(key.job.value()); }};
  ApiStandIn api(options);
  api.node("n1", 8);
  api.name_space("team", "q");
  api.list();
  const auto secrets = [&api] {
    std::vector<std::string> bodies;
    for (const Request& one : api.requests) {
      if (one.path == "/api/v1/namespaces/team/secrets") bodies.push_back(one.body);
    }
    return bodies;
  };
  int refusals = 1;
  api.fault = [&](const Request& request) {
    return request.path.ends_with("/secrets") && refusals-- > 0 ? Answer{500, "{}"} : api.serve(request);
  };
  const StartTask start = Own::start_of(7);
  api.start(start);
  REQUIRE_EQ(secrets().size(), 1);
  CHECK_NE(secrets()[0].find("token-of-7"), std::string::npos);
  CHECK_NE(secrets()[0].find(api.uid_of(Own::name(start))), std::string::npos);
  api.pass(30);
  CHECK_EQ(secrets().size(), 2);
  for (const Request& one : api.requests) {
    if (!one.path.ends_with("/secrets")) CHECK_EQ(one.body.find("token-of-7"), std::string::npos);
  }
  api.restart();  // before the Secret was made, for all it knows
  CHECK_EQ(secrets().size(), 3);
}

TEST_CASE("a task with an image is one pod, made once, and its end is the pod's") {
  Own api;
  const StartTask start = Own::start_of(7, 0, 2);
  api.start(start);
  CHECK_EQ(api.posts(), 1);
  CHECK_EQ(api.node_of(Own::name(start)), "n1");
  CHECK(api.jobs().empty());  // it is no job that was found
  api.perform(start);
  api.pass(60);
  CHECK_EQ(api.posts(), 1);
  api.run_all();
  api.settle();
  CHECK(api.is_running(start.key));
  api.phase(api.uid_of(Own::name(start)), "Failed", 3);
  api.settle();
  REQUIRE(api.exit_of(start.key));
  CHECK_EQ(api.exit_of(start.key)->code, 3);
  CHECK(api.foreign.at("n1").gpus.empty());  // what it uses is its own
}

TEST_CASE("a pod whose making had no answer is found, or made again") {
  for (const bool happens : {true, false}) {
    CAPTURE(happens);
    Own api;
    int lost = 0;
    api.shows = false;
    api.fault = [&](const Request& request) -> Answer {
      if (request.method != Method::kPost || !request.path.ends_with("/pods") || lost++ > 0) return api.serve(request);
      if (happens) api.serve(request);
      return {0, ""};
    };
    const StartTask start = Own::start_of(7);
    api.start(start);
    api.pass(20);
    api.check_runs_once(start.key);
    CHECK_EQ(api.posts(), happens ? 1 : 2);
  }
}

TEST_CASE("an answer from before the pod was made does not say that it was deleted") {
  Own api;
  int looks = 0;
  std::uint64_t second_look = 0;
  api.shows = false;
  api.fault = [&](const Request& request) -> Answer {
    if (request.method == Method::kPost && api.posts() == 1) return {0, ""};
    if (request.method != Method::kGet || ++looks > 2) return api.serve(request);
    if (looks == 2) second_look = request.id;
    return looks == 1 ? Answer{0, ""} : Answer{ApiStandIn::kOnItsWay, ""};
  };
  const StartTask start = Own::start_of(7);
  api.start(start);
  api.pass(20);  // the pod is made after a third look
  REQUIRE_EQ(api.posts(), 2);
  REQUIRE(second_look != 0);
  api.cluster().answered(second_look, 404, "not found", api.now());
  api.settle();
  CHECK(api.exit_of(start.key) == nullptr);
  api.check_runs_once(start.key);
}

TEST_CASE("an API server that has not read its roles yet is asked again for a minute") {
  for (const bool for_ever : {false, true}) {
    CAPTURE(for_ever);
    Own api;
    api.fault = [&](const Request& request) -> Answer {
      if (request.method != Method::kPost || !request.path.ends_with("/pods")) return api.serve(request);
      if (!for_ever && api.posts() > 2) return api.serve(request);
      if (api.posts() == 2)  // it has read its roles, but admission has not read what it needs
        return {403, R"({"message":"pods \"x\" is forbidden: not yet ready to handle request"})"};
      return {403, R"({"message":"pods is forbidden: User \"berth\" cannot create resource \"pods\""})"};
    };
    const StartTask start = Own::start_of(7);
    api.start(start);
    api.pass(50);
    CHECK(api.exit_of(start.key) == nullptr);
    CHECK_EQ(api.pods_.size(), for_ever ? 0 : 1);
    api.pass(20);
    REQUIRE_EQ(api.exit_of(start.key) != nullptr, for_ever);
    if (for_ever) CHECK_NE(api.exit_of(start.key)->message.find("cannot create"), std::string::npos);
  }
}

TEST_CASE("a server that is killed after a start makes the pod once in all") {
  for (const bool seen : {true, false}) {
    CAPTURE(seen);
    Own api;
    api.shows = seen;
    const StartTask start = Own::start_of(7);
    api.start(start);
    api.shows = true;
    api.restart();
    api.run_all();
    api.settle();
    CHECK(api.is_running(start.key));
    CHECK_EQ(api.pods_.size(), 1);
    CHECK_EQ(api.posts(), 1);
  }
}

TEST_CASE("a task that ran, and whose pod is gone after a restart, is not started again") {
  Own api;
  const StartTask start = Own::start_of(7);
  api.start(start);
  api.run_all();
  api.settle();
  api.shows = false;
  api.remove(api.uid_of(Own::name(start)));
  api.shows = true;
  api.restart();
  REQUIRE(api.exit_of(start.key));
  CHECK_EQ(api.exit_of(start.key)->reason, ExitReason::kSupervisorLost);
  CHECK(api.pods_.empty());
}

TEST_CASE("a task whose secret has lost its Secret is not started without it") {
  Own api;
  StartTask start = Own::start_of(7);
  start.secrets = {{{"hf", "", {{"token", "/etc/hf"}}}, "/berth/secrets/hf"}};
  api.start(start);
  REQUIRE(api.exit_of(start.key));
  CHECK_EQ(api.exit_of(start.key)->reason, ExitReason::kStartFailed);
  CHECK_EQ(api.exit_of(start.key)->message, "secret 'hf' has no Secret of Kubernetes any more (kubernetes: NAME)");
  CHECK(api.pods_.empty());
}

TEST_CASE("a pod of its name that is not berth's is not taken for it") {
  Own api;
  const StartTask start = Own::start_of(7);
  api.pod(Own::name(start), 1);
  api.start(start);
  REQUIRE(api.exit_of(start.key));
  CHECK_EQ(api.exit_of(start.key)->reason, ExitReason::kStartFailed);
  CHECK_EQ(api.pods_.size(), 1);
}

TEST_CASE("a pod that carries the key of a task under another name, or elsewhere, is not the task") {
  Own api;
  api.pods_["forged"] = ApiStandIn::json(
      R"({"metadata":{"name":"forged","namespace":"team","uid":"forged","annotations":{"berth.dev/task":"7/1/0/1",)"
      R"("berth.dev/log":"log"}},"spec":{"schedulerName":"berth","nodeName":"n1","containers":[{"name":"main",)"
      R"("resources":{"limits":{"nvidia.com/gpu":1}}}]},"status":{"phase":"Running"}})");
  api.show("forged");
  const StartTask start = Own::start_of(7);
  api.start(start);
  CHECK_EQ(api.posts(), 1);
  CHECK_FALSE(api.is_running(start.key));
}

TEST_CASE("a pod that the API server refuses is a failed start with its words") {
  Own api;
  api.fault = [&](const Request& request) -> Answer {
    if (request.path.ends_with("/pods")) return {403, R"({"message":"exceeded quota: pods"})"};
    return api.serve(request);
  };
  const StartTask start = Own::start_of(7);
  api.start(start);
  REQUIRE(api.exit_of(start.key));
  CHECK_NE(api.exit_of(start.key)->message.find("exceeded quota"), std::string::npos);
}

TEST_CASE("a pod is deleted when its task is stopped, also where it was stopped before the pod was known") {
  for (const bool early : {true, false}) {
    CAPTURE(early);
    Own api;
    api.shows = !early;
    const StartTask start = Own::start_of(7);
    api.start(start);
    api.perform(KillTask{start.key, "n1", 5000});
    api.shows = true;
    if (early) api.list();
    api.pass(1);
    CHECK(api.pods_.empty());
    REQUIRE(api.exit_of(start.key));
    CHECK_EQ(api.exit_of(start.key)->reason, ExitReason::kKilled);
  }
}

TEST_CASE("the pod of a start that was given up is deleted when it appears") {
  Own api;
  const StartTask start = Own::start_of(7);
  api.start(start);
  const std::string uid = api.uid_of(Own::name(start));
  const boost::json::object late = api.pods_.at(uid);
  api.remove(uid);
  api.perform(ForgetTask{start.key, "n1"});
  api.pods_[uid] = late;
  api.show(uid);
  api.pass(60);
  CHECK(api.pods_.empty());
}

TEST_CASE("a container that does not start is a failed start, at once or after a while, and its pod goes") {
  struct Case {
    std::string why;
    int patient_s;
    int failed_s;
  };
  for (const Case& one : {Case{"ImagePullBackOff", 590, 610}, Case{"CreateContainerConfigError", 20, 40},
                          Case{"ContainerCreating", 3600, 0}}) {
    CAPTURE(one.why);
    Own api;
    const StartTask start = Own::start_of(7);
    api.start(start);
    const std::string uid = api.uid_of(Own::name(start));
    api.pods_.at(uid)["status"] =
        ApiStandIn::json(R"({"phase":"Pending","containerStatuses":[{"state":{"waiting":{"reason":")" + one.why +
                         R"(","message":"no such image"}}}]})");
    api.show(uid);
    api.pass(one.patient_s);
    CHECK_FALSE(api.exit_of(start.key));
    if (one.failed_s == 0) continue;
    api.pass(one.failed_s - one.patient_s);
    REQUIRE(api.exit_of(start.key));
    CHECK_EQ(api.exit_of(start.key)->reason, ExitReason::kStartFailed);
    CHECK_NE(api.exit_of(start.key)->message.find("no such image"), std::string::npos);
    api.perform(ForgetTask{start.key, "n1"});
    api.pass(40);
    CHECK(api.pods_.empty());
  }
}

TEST_CASE("a signal that is not the one that stops a pod does not delete it") {
  Own api;
  const StartTask start = Own::start_of(7);
  api.start(start);
  api.perform(SignalTask{start.key, "n1", 10});
  api.pass(5);
  CHECK_EQ(api.pods_.size(), 1);
  CHECK_FALSE(api.cluster().warnings().empty());
  api.perform(SignalTask{start.key, "n1", 15});
  api.pass(5);
  CHECK(api.pods_.empty());
}

TEST_CASE("pods that have ended are kept for an hour, and not more than so many") {
  Own api(2);
  for (std::uint64_t job = 1; job <= 4; ++job) {
    const StartTask start = Own::start_of(job);
    api.start(start);
    api.phase(api.uid_of(Own::name(start)), "Succeeded");
    api.settle();
    api.pass(1);
    if (job != 4) api.perform(ForgetTask{start.key, "n1"});
  }
  api.pass(10);
  CHECK_EQ(api.pods_.size(), 3);  // the end of the last one is not durable yet
  CHECK(api.uid_of(Own::name(Own::start_of(1))).empty());
  api.perform(ForgetTask{Own::start_of(4).key, "n1"});
  api.pass(10);
  CHECK_EQ(api.pods_.size(), 2);
  api.pass(3600);
  CHECK(api.pods_.empty());
}

TEST_CASE("task 0 of a gang makes the Service, which its pod owns") {
  Own api;
  for (std::uint32_t number : {1U, 0U}) {
    StartTask start = Own::start_of(7, number);
    start.env = {{"MASTER_ADDR", "10.0.0.1"}, {"MASTER_PORT", "29500"}};
    api.start(start);
  }
  std::vector<std::string> owners;
  for (const Request& request : api.requests) {
    if (!request.path.ends_with("/services")) continue;
    const boost::json::object service = ApiStandIn::json(request.body);
    owners.push_back(text_at(*objects_at(service, {"metadata", "ownerReferences"}).front(), {"uid"}));
  }
  REQUIRE_FALSE(owners.empty());
  for (const std::string& owner : owners) CHECK_EQ(owner, api.uid_of(Own::name(Own::start_of(7, 0))));
}

TEST_CASE("a Service that the API server does not make at once is asked for until it is there") {
  const Answer refusals[] = {
      {0, ""}, {500, "etcdserver: request timed out"}, {503, ""}, {403, "cannot create resource"}};
  for (const Answer& refusal : refusals) {
    CAPTURE(refusal.status);
    Own api;
    int asked = 0;
    api.fault = [&](const Request& request) {
      return request.path.ends_with("/services") && ++asked <= 2 ? refusal : api.serve(request);
    };
    StartTask start = Own::start_of(7);
    start.env = {{"MASTER_ADDR", "10.0.0.1"}, {"MASTER_PORT", "29500"}};
    api.start(start);
    api.pass(30);
    CHECK_EQ(asked, 3);
    CHECK(api.exit_of(start.key) == nullptr);
  }
}

}  // namespace berth::kube
