#include "backend/kubernetes/kubernetes_backend.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <boost/json/parse.hpp>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "backend/kubernetes/fake_api_server.h"

namespace berth::backend {
namespace {

using namespace std::chrono_literals;

constexpr const char* kAllPods = "/api/v1/pods";
constexpr const char* kAllNodes = "/api/v1/nodes";
constexpr const char* kSpaces = "/api/v1/namespaces";
constexpr const char* kAllLeases = "/apis/coordination.k8s.io/v1/leases";
constexpr auto kLongEnough = 60s;  // far more than a loaded machine takes; no passing test waits for it

boost::json::object object_of(const std::string& text) { return boost::json::parse(text).as_object(); }

boost::json::object gpu_node(const std::string& name) {
  return object_of(R"({"metadata":{"name":")" + name + R"(","uid":"n-)" + name +
                   R"(","labels":{"nvidia.com/gpu.product":"H100"}},"status":{"allocatable":{"cpu":"64",)"
                   R"("memory":"512Gi","nvidia.com/gpu":"8"},"conditions":[{"type":"Ready","status":"True"}]}})");
}

boost::json::object gpu_pod(const std::string& name, int gpus) {
  return object_of(R"({"metadata":{"name":")" + name + R"(","namespace":"team","uid":"p-)" + name +
                   R"(","labels":{"berth.dev/queue":"a"},"creationTimestamp":"2026-01-01T00:00:00Z"},)"
                   R"("spec":{"schedulerName":"berth","containers":[{"name":"m","resources":{"limits":)"
                   R"({"nvidia.com/gpu":")" +
                   std::to_string(gpus) + R"("}}}]},"status":{"phase":"Pending"}})");
}

// An API server with one node and one namespace, a backend on it, and what the backend reports.
struct Driven {
  Driven() {
    server.put(kSpaces, object_of(R"({"metadata":{"name":"team","annotations":{"berth.dev/queues":"a"}}})"));
    server.put(kAllNodes, gpu_node("n1"));
    server.put(kAllPods, {});
    server.put("/apis/scheduling.k8s.io/v1/priorityclasses", {});
    server.put(kAllLeases, {});
    options.credentials.server = server.url();
    options.space = "gpu";
    options.identity = "me";
    options.now = [this] { return Timestamp{1'000'000 + passed_ms.load()}; };
    options.warn = [](const std::string&) {};
    options.end_process = [this](const Error& error) { note([&] { ended = error.message; }); };
    options.watch.first_pause = 5ms;
    options.watch.longest_pause = 50ms;
    options.start_patience = kLongEnough;
  }
  ~Driven() {
    if (backend) backend->stop();
  }
  Driven(const Driven&) = delete;
  Driven& operator=(const Driven&) = delete;

  Result<void> start() {
    backend = make_kubernetes_backend(options);
    for (const JobAccepted& job : known) backend->learn(job);
    return backend->start([this](Command command) { note([&] { commands.push_back(std::move(command)); }); });
  }
  template <class Change>
  void note(Change&& change) {
    const std::lock_guard lock(mutex);
    change();
    changed.notify_all();
  }
  template <class Condition>
  bool until(Condition&& holds) {
    std::unique_lock lock(mutex);
    const auto end = Clock::now() + kLongEnough;
    while (!holds()) {
      if (Clock::now() > end) return false;
      changed.wait_for(lock, 2ms);
    }
    return true;
  }
  template <class T>
  std::vector<T> reported() {
    std::vector<T> found;
    for (const Command& command : commands) {
      if (const auto* one = std::get_if<T>(&command)) found.push_back(*one);
    }
    return found;
  }
  std::string node_of(const std::string& pod) {
    const boost::json::object object = server.get(kAllPods, "team", pod);
    const boost::json::value* node = object.at("spec").as_object().if_contains("nodeName");
    return node == nullptr ? "" : std::string(node->as_string());
  }
  // The key of the only job that was submitted.
  SubmitJob submission() {
    REQUIRE(until([this] { return !reported<SubmitJob>().empty(); }));
    const std::lock_guard lock(mutex);
    return reported<SubmitJob>().front();
  }
  static StartTask start_of(const SubmitJob& job, bool was_running = false) {
    StartTask effect;
    effect.key = {JobId(7), 1, 0, 1};
    effect.node = "n1";
    effect.cpu_milli = job.spec.groups.front().request.cpu_milli;
    effect.memory_mib = job.spec.groups.front().request.memory_mib;
    effect.gpu_uuids.resize(static_cast<std::size_t>(job.spec.groups.front().request.gpus));
    effect.was_running = was_running;
    return effect;
  }
  void perform(const Effect& effect) { backend->perform(std::span(&effect, 1)); }

  FakeApiServer server;
  std::vector<JobAccepted> known;  // live jobs, at the start
  KubernetesOptions options;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Command> commands;
  std::string ended;
  std::atomic<std::int64_t> passed_ms{0};
  std::unique_ptr<Backend> backend;
};

}  // namespace

TEST_CASE("a pod becomes a job, its start becomes a Binding with the task's key, and its run is reported") {
  Driven all;
  REQUIRE(all.start());
  REQUIRE(all.until([&] { return !all.reported<RegisterNode>().empty(); }));
  CHECK(all.reported<RegisterNode>().front().spec.gpus.size() == 8);
  all.server.put(kAllPods, gpu_pod("p", 2));
  const SubmitJob job = all.submission();
  CHECK(job.spec.queue == "a");
  CHECK(!job.key.empty());
  all.backend->learn(JobAccepted{job.key, JobId(7)});
  all.perform(Driven::start_of(job));
  REQUIRE(all.until([&] { return all.node_of("p") == "n1"; }));
  CHECK(all.server.get(kAllPods, "team", "p").at("metadata").at("annotations").at("berth.dev/task").as_string() ==
        "7/1/0/1");
  boost::json::object running = all.server.get(kAllPods, "team", "p");
  running["status"] = object_of(R"({"phase":"Running"})");
  all.server.put(kAllPods, running);
  REQUIRE(all.until([&] { return !all.reported<ReportTaskStarted>().empty(); }));
  CHECK(all.reported<ReportTaskStarted>().front().job == JobId(7));
  CHECK(all.server.requests("POST /api/v1/namespaces/team/pods/p/binding").size() == 1);
}

TEST_CASE("a shell opens in the pod of a task, and in none where there is none or nothing to attach") {
  Driven all;
  all.server.on_exec([](FakeExec& shell) { shell.send("\1" + shell.path()); });
  REQUIRE(all.start());
  all.server.put(kAllPods, gpu_pod("p", 2));
  const SubmitJob job = all.submission();
  all.backend->learn(JobAccepted{job.key, JobId(7)});
  all.perform(Driven::start_of(job));
  REQUIRE(all.until([&] { return all.node_of("p") == "n1"; }));
  const auto open = [&](TaskKey task, ShellBegin begin) {
    std::optional<Result<ShellStream>> answered;
    all.backend->open_shell({task, "n1", std::move(begin)},
                            [&](Result<ShellStream> stream) { all.note([&] { answered = std::move(stream); }); });
    REQUIRE(all.until([&] { return answered.has_value(); }));
    return *answered;
  };
  ShellBegin begin;
  begin.command = {"true"};
  CHECK(open({JobId(7), 1, 0, 1}, begin));
  CHECK(all.server.requests("GET /api/v1/namespaces/team/pods/p/exec?container=m&command=true").size() == 1);
  CHECK(open({JobId(7), 1, 1, 1}, begin).error().message == "task 1 of job 7 has no pod now");
  begin.attach = true;
  CHECK(open({JobId(7), 1, 0, 1}, begin).error().code == ErrorCode::kUnsupported);
  all.backend->stop();
  begin.attach = false;
  CHECK(open({JobId(7), 1, 0, 1}, begin).error().code == ErrorCode::kUnavailable);
}

TEST_CASE("a Binding whose answer is lost is found out by looking, and done once") {
  Driven all;
  REQUIRE(all.start());
  all.server.put(kAllPods, gpu_pod("p", 2));
  const SubmitJob job = all.submission();
  all.backend->learn(JobAccepted{job.key, JobId(7)});
  all.server.fail("POST /api/v1/namespaces/team/pods/p/binding", 500, 2);
  all.perform(Driven::start_of(job));
  REQUIRE(all.until([&] { return all.node_of("p") == "n1"; }));
  CHECK(!all.server.requests("GET /api/v1/namespaces/team/pods/p").empty());
  CHECK(all.server.requests("POST /api/v1/namespaces/team/pods/p/binding").size() == 3);
}

TEST_CASE("a backend that starts again knows its tasks by the key on their pods, and binds none anew") {
  Driven all;
  REQUIRE(all.start());
  all.server.put(kAllPods, gpu_pod("p", 2));
  const SubmitJob job = all.submission();
  all.backend->learn(JobAccepted{job.key, JobId(7)});
  all.perform(Driven::start_of(job));
  REQUIRE(all.until([&] { return all.node_of("p") == "n1"; }));
  all.backend->stop();
  boost::json::object pod = all.server.get(kAllPods, "team", "p");
  pod["status"] = object_of(R"({"phase":"Running"})");
  all.server.put(kAllPods, pod);  // while nobody watches
  all.commands.clear();
  all.known = {{job.key, JobId(7)}};
  REQUIRE(all.start());
  all.perform(Driven::start_of(job, true));
  REQUIRE(all.until([&] { return !all.reported<ReportTaskStarted>().empty(); }));
  CHECK(all.reported<ReportTaskExited>().empty());
  CHECK(all.reported<SubmitJob>().empty());
  CHECK(all.server.requests("POST /api/v1/namespaces/team/pods/p/binding").size() == 1);
}

TEST_CASE("at the start: a right that is missing, another holder of the Lease, a server that says no") {
  SUBCASE("401") {
    Driven all;
    all.server.fail("GET /", 401, 1000);
    const auto started = all.start();
    REQUIRE(!started);
    CHECK(started.error().code == ErrorCode::kDenied);
    CHECK(started.error().message.find("does not know this client (401)") != std::string::npos);
  }
  SUBCASE("403") {
    Driven all;
    all.server.fail("GET /api/v1/nodes", 403, 1000);
    const auto started = all.start();
    REQUIRE(!started);
    CHECK(started.error().message == "the API server refuses: as the test says. Grant it (docs/kubernetes.md)");
  }
  SUBCASE("a Lease that another renews") {
    Driven all;
    std::atomic<bool> stop{false};
    std::thread other([&] {
      for (int renewal = 0; !stop; ++renewal) {
        all.server.put(kAllLeases,
                       object_of(R"({"metadata":{"name":"berth","namespace":"gpu"},"spec":{"holderIdentity":)"
                                 R"("other","leaseDurationSeconds":15,"renewTime":")" +
                                 std::to_string(renewal) + R"("}})"));
        std::this_thread::sleep_for(20ms);
      }
    });
    const auto started = all.start();
    stop = true;
    other.join();
    REQUIRE(!started);
    CHECK(started.error().code == ErrorCode::kConflict);
    CHECK(started.error().message.find("'other' renews the Lease gpu/berth") != std::string::npos);
  }
  SUBCASE("a server that does not answer") {
    Driven all;
    all.options.start_patience = 100ms;
    all.server.fail("GET /", 503, 1'000'000);
    const auto started = all.start();
    REQUIRE(!started);
    CHECK(started.error().code == ErrorCode::kUnavailable);
    CHECK(started.error().message.find("as the test says") != std::string::npos);
  }
}

TEST_CASE("stamps whose policies are not there are not believed, which is said, and they are looked for again") {
  Driven all;
  all.options.cluster.stamped = {{"oidc:", "corp:"}};
  all.options.stamp_pause = 5ms;
  boost::json::object pod = gpu_pod("a", 1);
  pod["metadata"].as_object()["annotations"] = object_of(R"({"berth.dev/made-by":"0123abcd oidc:ada"})");
  all.server.put(kAllPods, pod);
  REQUIRE(all.start());
  CHECK_EQ(all.submission().spec.user, "kubernetes:team");
  REQUIRE(all.until([&] { return !all.backend->warnings().empty(); }));
  CHECK_NE(all.backend->warnings().front().find("--user-stamps: no user that a pod is stamped with is believed"),
           std::string::npos);
  const char* look = "GET /apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies/berth-users-pods";
  CHECK(all.until([&] { return all.server.requests(look).size() > 2; }));
}

TEST_CASE("an API server that has not read its roles yet is waited for, which is said once") {
  std::vector<std::string> said;
  Driven all;
  all.options.warn = [&](const std::string& text) { all.note([&] { said.push_back(text); }); };
  all.options.denial_patience = kLongEnough;
  all.options.denial_pause = 5ms;
  SUBCASE("rights are denied, and lists") { all.server.deny_rights(400); }
  SUBCASE("the question is refused, and lists") { all.server.fail("POST /apis/authorization.k8s.io/", 403, 400); }
  all.server.fail("GET /api/v1/nodes", 403, 2);
  REQUIRE(all.start());
  CHECK(all.until([&] { return all.backend->warnings().empty(); }));
  all.backend->stop();
  const auto waits = std::count_if(said.begin(), said.end(), [](const std::string& one) {
    return one.find("has just started has not read its roles yet: berth asks again for 60 s") != std::string::npos;
  });
  CHECK(waits == 1);
}

TEST_CASE("what is denied for too long ends the start") {
  Driven all;
  all.options.denial_patience = 50ms;
  all.options.denial_pause = 5ms;
  std::string error;
  SUBCASE("a right") {
    all.server.deny_rights(1'000'000);
    error = "the API server does not let this user: list namespaces, ";
  }
  SUBCASE("the question, and a list") {
    all.server.fail("POST /apis/authorization.k8s.io/", 403, 1'000'000);
    all.server.fail("GET /api/v1/nodes", 403, 1'000'000);
    error = "the API server refuses: as the test says. Grant it (docs/kubernetes.md)";
  }
  const auto begin = Clock::now();
  const auto started = all.start();
  CHECK(Clock::now() - begin >= 50ms);
  REQUIRE(!started);
  CHECK(started.error().code == ErrorCode::kDenied);
  CHECK(started.error().message.starts_with(error));
}

TEST_CASE("a server that loses its Lease ends") {
  Driven all;
  REQUIRE(all.start());
  boost::json::object lease = all.server.get(kAllLeases, "gpu", "berth");
  CHECK(lease.at("spec").at("holderIdentity").as_string() == "me");
  lease["spec"].as_object()["holderIdentity"] = "thief";
  all.server.put(kAllLeases, lease);
  REQUIRE(all.until([&] { return !all.ended.empty(); }));
  CHECK(all.ended.find("'thief' renews the Lease gpu/berth, which this server had") != std::string::npos);
}

TEST_CASE("a server that stops gives its Lease back") {
  Driven all;
  REQUIRE(all.start());
  all.backend->stop();
  CHECK(all.server.get(kAllLeases, "gpu", "berth").at("spec").at("holderIdentity").as_string().empty());
}

TEST_CASE("a kind that is not served for a while is a warning until it is served again") {
  Driven all;
  REQUIRE(all.start());
  all.server.fail("GET /api/v1/pods", 500, 1'000'000);
  all.server.cut_watches();
  REQUIRE(all.until([&] {
    const auto warnings = all.backend->warnings();
    return warnings.size() == 1 && warnings[0] == "/api/v1/pods: as the test says";
  }));
  all.server.mend();
  REQUIRE(all.until([&] { return all.backend->warnings().empty(); }));  // though nothing changes there
}

}  // namespace berth::backend
