// Any order of events, with answers that are lost or come in another order, late requests, denials of a server that has
// just started, lists and watches that lag behind each other, and restarts: no pod is bound twice, no task has two pods
// that live, and no pod runs whose job does not know it. When all has come to rest, gangs are whole and no node is
// overcommitted. Where nothing was killed, deleted or cancelled, no job has failed.

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "kube/pod_object.h"
#include "support/kubernetes_world.h"
#include "support/random_rounds.h"

namespace berth::kube {
namespace {

struct Storm : KubernetesWorld {
  Random random;
  int names = 0;
  int late_bindings = 0;  // that were done after berth was told nothing
  int volumes = 0;        // that were made

  bool kills = true;  // pods fail and are deleted, nodes go away, jobs are cancelled

  explicit Storm(std::uint64_t seed, bool with_kills) : random(seed), kills(with_kills) {
    options.log = "log";
    options.own.space = "jobs";
    server.replaces_leaving = true;
    cluster = Cluster(options);
    list();
    server.add_namespace("jobs", "ads");
    server.add_namespace("team", "research/nlp, ads");
    for (int i = 0; i < 3; ++i) server.put(Kind::kNode, StandInServer::node("n" + std::to_string(i), 8));
    server.add_storage_class("fast");
    settle();
    faults = &random;
  }
  std::string any_pod() {
    const auto& all = server.objects[Kind::kPod];
    if (all.empty()) return {};
    return std::next(all.begin(), static_cast<std::int64_t>(random.below(all.size())))->first;
  }
  void add() {
    const int number = ++names;
    const int gpus = 1 << random.below(3);
    switch (random.below(6)) {
      case 0:
        return add_own(2 + static_cast<int>(random.below(3)), gpus);
      case 3:
        return add_pod_group("v" + std::to_string(number), 1 + static_cast<int>(random.below(3)), gpus);
      case 1:
        return server.put(Kind::kPod, StandInServer::pod_of("team", "p" + std::to_string(number), gpus));
      case 2:
      case 4: {
        const int size = 2 + static_cast<int>(random.below(3));
        const bool claims = random.chance(400);
        for (int i = 0; i < size; ++i) {
          const std::string one = "g" + std::to_string(number) + "-" + std::to_string(i);
          if (claims) server.add_claim("team", one, "fast");
          server.add_gang_pod("team", one, "gang" + std::to_string(number), size, gpus, claims ? one : "");
        }
        return;
      }
      default:
        return server.add_job("team", "job" + std::to_string(number), 2 + static_cast<int>(random.below(3)));
    }
  }
  // A PodGroup with up to three pods more than its least size.
  void add_pod_group(const std::string& name, int least, int gpus) {
    server.put(Kind::kVolcanoPodGroup,
               {{"metadata", {{"namespace", "team"}, {"name", name}}}, {"spec", {{"minMember", least}}}});
    const int size = least + static_cast<int>(random.below(4));
    for (int i = 0; i < size; ++i) {
      boost::json::object pod = StandInServer::pod_of("team", name + "-" + std::to_string(i), gpus);
      pod["metadata"].as_object()["annotations"] = {{"scheduling.k8s.io/group-name", name}};
      server.put(Kind::kPod, std::move(pod));
    }
  }
  // A job that was submitted to berth, with an image.
  void add_own(int size, int gpus) {
    JobSpec job;
    job.name = "own" + std::to_string(names);
    job.queue = "ads";
    job.user = "ann";
    TaskGroup group;
    group.count = size;
    group.request.gpus = gpus;
    group.request.cpu_milli = 1000;
    group.image = "a:1";
    group.command = {"train"};
    job.groups = {group};
    decide({SubmitJob{job, ""}});
  }
  // The node goes away, or comes back as another one of its name. The garbage collector deletes its pods at some time.
  void replace_node() {
    const std::string name = "n" + std::to_string(random.below(3));
    if (!server.objects[Kind::kNode].contains("/" + name)) return server.put(Kind::kNode, StandInServer::node(name, 8));
    server.remove(Kind::kNode, "/" + name);
    if (random.chance(300)) server.put(Kind::kNode, StandInServer::node(name, 8));
  }
  void silence_node() {
    const std::string name = "n" + std::to_string(random.below(3));
    if (server.is_ready(name)) server.set_ready(name, false);
  }
  void hear_node() {
    const std::string name = "n" + std::to_string(random.below(3));
    if (server.objects[Kind::kNode].contains("/" + name) && !server.is_ready(name)) server.set_ready(name, true);
  }
  void collect_garbage() {
    std::vector<std::string> gone;
    for (const auto& [name, pod] : server.objects[Kind::kPod]) {
      const std::string node = StandInServer::node_of(pod);
      if (!node.empty() && !server.objects[Kind::kNode].contains("/" + node)) gone.push_back(name);
    }
    for (const std::string& name : gone) server.remove(Kind::kPod, name);
  }
  // The API server is in trouble.
  void disturb() {
    const Timestamp until = server.now + 1000 * static_cast<std::int64_t>(1 + random.below(15));
    const std::vector<Resource> all = watched();
    const Kind kind = random.chance(500) ? Kind::kPod : all[random.below(all.size())].kind;
    // berth believes a denial that lasts for a minute: no two of them follow each other closely.
    if (random.chance(100) && server.now - denies_until >= 60'000) denies_until = until;
    if (random.chance(100)) silent[kind] = until;
    if (random.chance(50) && !lists.contains(kind)) list_again(kind, until);
  }
  void kill(const std::string& name) {
    if (random.chance(30)) return replace_node();
    if (random.chance(30)) return silence_node();
    if (random.chance(100)) return collect_garbage();
    if (random.chance(100)) return decide({CancelJob{JobId(1 + random.below(20)), "ann"}});
    if (name.empty() || !random.chance(300)) return;
    const boost::json::object pod = server.pod(name);
    server.remove(Kind::kPod, name);
    const std::string short_name = name.substr(name.find('/') + 1);
    if (short_name.starts_with("p") && random.chance(500))  // another one of its name
      server.put(Kind::kPod, StandInServer::pod_of("team", short_name, 1));
  }
  void trouble() {
    disturb();
    if (random.chance(60)) hear_node();
    const std::string name = any_pod();
    switch (random.below(11)) {
      case 0:
      case 1:
        return add();
      case 2:
        return server.control_jobs(2);
      case 3:
      case 4:
        if (!name.empty()) server.run_kubelet(name);
        return;
      case 5:
        if (!name.empty() && server.is_ready(StandInServer::node_of(server.pod(name))))
          server.end(name, !kills || random.chance(800) ? 0 : 1);
        return;
      case 6:
        if (kills) kill(name);
        return;
      case 7:
        if (random.chance(100)) restart();
        return;
      case 8:
      case 9:
        return provision_one();
      default:
        if (!late.empty() && random.chance(900)) {
          const std::size_t one = random.below(late.size());
          if (server.answer(late[one]).status == 201 && late[one].path.ends_with("/binding")) ++late_bindings;
          late.erase(late.begin() + static_cast<std::ptrdiff_t>(one));
        }
    }
  }
  void provision_all() {
    std::vector<std::string> claims;
    for (const auto& [name, claim] : server.objects[Kind::kPersistentVolumeClaim]) claims.push_back(name);
    for (const std::string& claim : claims) {
      if (server.provision(claim)) ++volumes;
    }
  }
  void provision_one() {
    const auto& all = server.objects[Kind::kPersistentVolumeClaim];
    if (all.empty()) return;
    const std::string name = std::next(all.begin(), static_cast<std::int64_t>(random.below(all.size())))->first;
    if (server.provision(name)) ++volumes;
  }
  // The node that the volume of the pod's claim is on; empty: the pod has no claim.
  std::string node_of_volume(const boost::json::object& pod) {
    const auto* all = pod.at("spec").as_object().if_contains("volumes");
    if (all == nullptr || !all->at(0).as_object().contains("persistentVolumeClaim")) return {};
    const std::string claim(pod.at("spec").at("volumes").at(0).at("persistentVolumeClaim").at("claimName").as_string());
    const auto& object = server.objects[Kind::kPersistentVolumeClaim].at("team/" + claim);
    if (object.at("status").at("phase").as_string() != "Bound") return "none";
    const auto& volume =
        server.objects[Kind::kPersistentVolume].at("/" + std::string(object.at("spec").at("volumeName").as_string()));
    const auto& terms = volume.at("spec").at("nodeAffinity").at("required").at("nodeSelectorTerms");
    return std::string(terms.at(0).at("matchFields").at(0).at("values").at(0).as_string());
  }
  // Bound, not over and not being deleted.
  static bool lives(const boost::json::object& pod) {
    const auto phase = pod.at("status").at("phase").as_string();
    return !StandInServer::node_of(pod).empty() && !pod.at("metadata").as_object().contains("deletionTimestamp") &&
           phase != "Succeeded" && phase != "Failed";
  }
  static std::string task_of(const boost::json::object& pod) {
    return std::string(pod.at("metadata").at("annotations").at("berth.dev/task").as_string());
  }
  // What must hold of the server at any time.
  void check_always() {
    for (const auto& [uid, times] : server.bindings) REQUIRE(times == 1);
    std::set<std::string> seen;
    for (const auto& [name, pod] : server.objects[Kind::kPod]) {
      if (lives(pod)) REQUIRE(seen.insert(task_of(pod)).second);
      const std::string where = StandInServer::node_of(pod).empty() ? std::string() : node_of_volume(pod);
      if (!where.empty()) REQUIRE_EQ(where, StandInServer::node_of(pod));
    }
  }
  static std::int64_t gpus_of(const boost::json::object& pod) {
    std::int64_t sum = 0;
    for (const boost::json::value& one : pod.at("spec").at("containers").as_array()) {
      const auto& resources = one.at("resources").as_object();
      const auto& amounts = resources.contains("requests") ? resources.at("requests") : resources.at("limits");
      const auto* gpus = amounts.as_object().if_contains("nvidia.com/gpu");
      if (gpus == nullptr) continue;
      sum += gpus->is_string() ? std::stoll(std::string(gpus->as_string())) : gpus->to_number<std::int64_t>();
    }
    return sum;
  }
  // Each running job has a pod that lives, or has succeeded, for each task.
  void check_whole(const std::map<std::string, int>& living) {
    state.jobs().for_each([&](const state::JobState& job) {
      if (!job.attempt) return;
      for (std::size_t task = 0; task < job.attempt->tasks.size(); ++task) {
        if (job.attempt->tasks[task].phase == TaskPhase::kExited) continue;
        const std::string prefix = std::to_string(job.id.value()) + "/" + std::to_string(job.attempt->number) + "/" +
                                   std::to_string(task) + "/";
        CAPTURE(prefix);
        CAPTURE(job.spec.name);
        CAPTURE(static_cast<int>(job.attempt->tasks[task].phase));
        const auto found = living.lower_bound(prefix);
        CHECK((found != living.end() && found->first.starts_with(prefix)));
      }
    });
  }
  std::map<JobId, std::uint32_t> starts() const {
    std::map<JobId, std::uint32_t> all;
    state.jobs().for_each([&](const state::JobState& job) { all[job.id] = job.attempts; });
    return all;
  }
  // Lets the cluster work without trouble until no job has started for longer than a start waits for its pods. A gang
  // that lost pods while it was queued still starts when there is room, be it late, and then waits for them.
  void come_to_rest() {
    const std::int64_t rest_s = std::max<std::int64_t>(200, options.pod_wait_s + 10);
    const Timestamp deadline = server.now + 30 * rest_s * 1000;
    Timestamp last_start = server.now;
    while (server.now - last_start < rest_s * 1000) {
      REQUIRE(server.now < deadline);
      const auto before = starts();
      pass(2);
      server.run_kubelets();
      server.control_jobs(2);
      provision_all();
      check_always();
      if (starts() != before) last_start = server.now;
    }
    settle();
  }
  // What must hold when all is quiet: each bound pod is a task that lives, on its node.
  void check_quiet() {
    std::map<std::string, int> living;
    std::map<std::string, std::int64_t> used;
    for (const auto& [name, pod] : server.objects[Kind::kPod]) {
      if (!lives(pod)) continue;
      ++living[task_of(pod)];
      used[StandInServer::node_of(pod)] += gpus_of(pod);
    }
    for (const auto& [node, gpus] : used) CHECK(gpus <= 8);
    check_whole(living);
    for (const auto& one : outcomes) {
      CAPTURE(one.first.value());
      if (!kills) CHECK(one.second == Outcome::kSucceeded);
    }
    for (const auto& one : server.objects[Kind::kPod]) {
      const boost::json::object& pod = one.second;
      if (!lives(pod)) continue;
      const std::string task = task_of(pod);
      CAPTURE(one.first);
      CAPTURE(task);
      const auto key = task_of_text(task);
      REQUIRE(key);
      const state::JobState* job = state.job(key->job);
      REQUIRE(job != nullptr);
      REQUIRE(job->attempt.has_value());
      CHECK(job->attempt->number == key->attempt);
      CHECK(job->attempt->tasks[key->task].phase != TaskPhase::kExited);
      CHECK(state.node(job->attempt->tasks[key->task].placement.node).spec.name == StandInServer::node_of(pod));
    }
  }
};

TEST_CASE("in any order of events, with lost answers and restarts, no pod is bound twice and no task has two pods") {
  int late_bindings = 0;
  int volumes = 0;
  const auto seeds = static_cast<std::uint64_t>(random_rounds(60, 3'000));
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    CAPTURE(seed);
    Storm storm(seed, seed % 3 != 0);
    for (int i = 0; i < 600; ++i) {
      storm.trouble();
      if (storm.random.chance(300)) storm.pass(1);
      storm.step();
      storm.check_always();
    }
    storm.faults = nullptr;
    for (const Request& request : storm.late) storm.server.answer(request);
    for (int i = 0; i < 3; ++i) {
      if (!storm.server.objects[Kind::kNode].contains("/n" + std::to_string(i)))
        storm.server.put(Kind::kNode, StandInServer::node("n" + std::to_string(i), 8));
      storm.server.set_ready("n" + std::to_string(i), true);
    }
    storm.collect_garbage();
    storm.come_to_rest();
    storm.check_quiet();
    late_bindings += storm.late_bindings;
    volumes += storm.volumes;
    for (const std::string& error : storm.errors) {
      CAPTURE(error);
      CHECK((error.find("no such job") != std::string::npos || error.find("has finished") != std::string::npos));
    }
  }
  const int few = static_cast<int>(seeds);
  CHECK(late_bindings > few / 8);  // else the test would show little
  CHECK(volumes > few);
}

}  // namespace
}  // namespace berth::kube
