#include "kube/own_pod.h"

#include <doctest/doctest.h>
#include <sys/wait.h>

#include <boost/json/serialize.hpp>
#include <cstdlib>
#include <filesystem>

#include "kube/api_stand_in.h"
#include "kube/rank_script.h"

namespace berth::kube {
namespace {

StartTask a_start() {
  StartTask start;
  start.key = {JobId(12), 3, 1, 1};
  start.node = "n1";
  start.job_name = "train";
  start.user = "ann";
  start.image = "example.com/train:1";
  start.command = {"python3", "train.py"};
  start.env = {{"LR", "0.1"}, {"CUDA_VISIBLE_DEVICES", "n1:0,n1:1"}, {"BERTH_QUEUE", "research/nlp"}};
  start.ranks = {{{"RANK", "1"}}};
  start.gpu_uuids = {"n1:0", "n1:1"};
  start.cpu_milli = 1500;
  start.memory_mib = 2048;
  start.grace_ms = 30'000;
  return start;
}

StartTask in_gang(StartTask start) {
  start.env.emplace_back("MASTER_ADDR", "10.0.0.7");
  start.env.emplace_back("MASTER_PORT", "29500");
  return start;
}

OwnPods in_jobs() {
  OwnPods own;
  own.space = "jobs";
  return own;
}

boost::json::object pod(const StartTask& start) { return pod_of(start, in_jobs(), {}, "berth", "log"); }

const boost::json::object& container(const boost::json::object& pod) {
  return *objects_at(pod, {"spec", "containers"}).front();
}

std::string value_of(const boost::json::object& pod, const std::string& name) {
  std::string value = "(none)";
  for (const boost::json::object* one : objects_at(container(pod), {"env"})) {
    if (text_at(*one, {"name"}) == name) value = text_at(*one, {"value"});
  }
  return value;
}

int code_of(const std::vector<Environment>& ranks, const std::string& command) {
  ::setenv("SCRIPT", rank_script(ranks, 20).c_str(), 1);
  ::setenv("COMMAND", command.c_str(), 1);
  const int status = std::system("setsid -w sh -c \"$SCRIPT\" berth sh -c \"$COMMAND\"");
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

JobSpec a_job() {
  JobSpec job;
  job.groups.emplace_back();
  job.groups[0].image = "a:1";
  job.groups[0].command = {"x"};
  job.groups[0].request.gpus = 1;
  return job;
}

}  // namespace

TEST_CASE("the name of a pod follows from its task and log, and is a label of RFC 1123") {
  const TaskKey most{JobId(~std::uint64_t{0}), ~0U, ~0U, ~0U};
  CHECK_EQ(name_of_pod({JobId(12), 3, 1, 1}, "log"), name_of_pod({JobId(12), 3, 1, 1}, "log"));
  CHECK_NE(name_of_pod({JobId(12), 3, 1, 1}, "log"), name_of_pod({JobId(12), 3, 1, 1}, "other"));
  CHECK(name_of_pod({JobId(12), 3, 1, 1}, "log").starts_with("berth-12-3-1-1-"));
  CHECK_LE(name_of_gang(most, "log").size(), 63);
  CHECK_LE(name_of_pod(most, "log").size(), 253);
}

TEST_CASE("a pod has the image, the command and what was granted, and may do nothing else") {
  const auto made = pod(a_start());
  CHECK_EQ(text_at(made, {"metadata", "namespace"}), "jobs");
  CHECK_EQ(text_at(made, {"metadata", "annotations", "berth.dev/task"}), "12/3/1/1");
  CHECK_EQ(text_at(made, {"metadata", "annotations", "berth.dev/log"}), "log");
  CHECK_EQ(text_at(made, {"metadata", "labels", "berth.dev/queue"}), "research.nlp");
  CHECK_EQ(text_at(made, {"spec", "nodeName"}), "n1");
  CHECK(true_at(made, {"spec", "securityContext", "runAsNonRoot"}));
  CHECK_FALSE(true_at(made, {"spec", "automountServiceAccountToken"}));
  CHECK_EQ(integer_at(made, {"spec", "terminationGracePeriodSeconds"}, 0), 30);
  CHECK_EQ(boost::json::serialize(*object_at(container(made), {"resources", "limits"})),
           R"({"cpu":"1500m","memory":"2048Mi","nvidia.com/gpu":"2"})");
  CHECK_EQ(value_of(made, "LR"), "0.1");
  CHECK_EQ(value_of(made, "RANK"), "1");
  CHECK_EQ(value_of(made, "CUDA_VISIBLE_DEVICES"), "(none)");
  CHECK_EQ(text_at(made, {"spec", "subdomain"}), "");
}

TEST_CASE("a pod reports its saves by a token in a file, which is in nothing but its Secret") {
  OwnPods own;
  own.space = "jobs";
  own.saves = {"https://berth.example.com", [](const TaskKey&) { return std::string("berth-save-12-3-x"); }};
  const auto made = pod_of(a_start(), own, {}, "berth", "log");
  CHECK_EQ(value_of(made, "BERTH_SAVE_SERVER"), "https://berth.example.com");
  CHECK_EQ(value_of(made, "BERTH_SAVE_TOKEN_FILE"), "/berth/saves/token");
  const std::string text = boost::json::serialize(made);
  CHECK_EQ(text.find("berth-save-12"), std::string::npos);
  const std::string name = name_of_pod(a_start().key, "log");
  CHECK_NE(text.find(R"({"name":"berth-saves","mountPath":"/berth/saves","readOnly":true})"), std::string::npos);
  CHECK_NE(text.find(R"({"name":"berth-saves","secret":{"secretName":")" + name + R"(","defaultMode":288}})"),
           std::string::npos);
  const auto secret = save_secret_of(a_start(), own, "log", "uid-1");
  CHECK_EQ(text_at(secret, {"metadata", "name"}), name);
  CHECK_EQ(text_at(secret, {"metadata", "namespace"}), "jobs");
  CHECK_EQ(text_at(secret, {"stringData", "token"}), "berth-save-12-3-x");
  CHECK_EQ(text_at(*objects_at(secret, {"metadata", "ownerReferences"}).front(), {"uid"}), "uid-1");
  CHECK_EQ(boost::json::serialize(pod(a_start())).find("berth-saves"), std::string::npos);  // without an address
}

TEST_CASE("what a user typed stays as it is: Kubernetes replaces nothing in it") {
  StartTask start = a_start();
  start.command = {"sh", "-c", "echo $(LR) $$ $"};
  start.env.emplace_back("X", "$(LR)");
  const auto made = pod(start);
  CHECK_EQ(array_at(container(made), {"command"})->at(2).as_string(), "echo $$(LR) $$$$ $$");
  CHECK_EQ(value_of(made, "X"), "$$(LR)");
}

TEST_CASE("a queue that is no value of a label is in the annotation alone") {
  for (const std::string& queue : {std::string(64, 'q'), std::string("a/b c"), std::string("a/-"), std::string()}) {
    StartTask start = a_start();
    start.env.emplace_back("BERTH_QUEUE", queue);
    const auto made = pod(start);
    CHECK_EQ(text_at(made, {"metadata", "labels", "berth.dev/queue"}), "");
    CHECK_EQ(text_at(made, {"metadata", "annotations", "berth.dev/queue"}), queue);
  }
}

TEST_CASE("the tasks of a gang find task 0 by its name, which another attempt does not have") {
  const auto made = pod(in_gang(a_start()));
  const std::string gang = name_of_gang({JobId(12), 3, 0, 1}, "log");
  CHECK_EQ(value_of(made, "MASTER_ADDR"), "task-0." + gang + ".jobs.svc");
  CHECK_EQ(value_of(made, "MASTER_PORT"), "29500");
  CHECK_EQ(text_at(made, {"spec", "hostname"}), "task-1");
  CHECK_EQ(text_at(made, {"spec", "subdomain"}), gang);
  CHECK_NE(gang, name_of_gang({JobId(12), 4, 0, 1}, "log"));
  const auto service = service_of(in_gang(a_start()), "log", "jobs", "p", "u");
  CHECK_EQ(text_at(service, {"metadata", "name"}), gang);
  for (const auto& [key, value] : *object_at(service, {"spec", "selector"}))
    CHECK_EQ(text_at(made, {"metadata", "labels", key}), std::string(value.as_string()));
}

TEST_CASE("torchrun is told the name of task 0, and the words of the user stay") {
  StartTask start = in_gang(a_start());
  start.signal_workers = true;
  start.command = {"torchrun", "--master_addr", "10.0.0.7",      "--master_port",
                   "29500",    "train.py",      "--master_addr", "10.0.0.7"};
  auto made = pod(start);
  const auto* command = array_at(container(made), {"command"});
  CHECK(std::string(command->at(2).as_string()).starts_with("task-0."));
  CHECK_EQ(command->at(7).as_string(), "10.0.0.7");
  start.command = {"torchrun", "--rdzv_endpoint", "10.0.0.7:29500", "train.py"};
  made = pod(start);
  CHECK(std::string(array_at(container(made), {"command"})->at(2).as_string()).ends_with(".jobs.svc:29500"));
}

TEST_CASE("the namespace of a queue is that of the nearest queue above it that has one") {
  OwnPods own = in_jobs();
  own.spaces = {{"research", "r"}, {"research/nlp", "n"}};
  CHECK_EQ(space_of_queue(own, "research/nlp/x"), "n");
  CHECK_EQ(space_of_queue(own, "research/vision"), "r");
  CHECK_EQ(space_of_queue(own, "researchers"), "jobs");
  CHECK_EQ(spaces_of(own), std::vector<std::string>{"jobs", "n", "r"});
  CHECK(spaces_of({}).empty());
}

TEST_CASE("a pod tolerates the taints of the node that it was given, but not its conditions") {
  const auto made = pod_of(a_start(), in_jobs(), {{"team", "x"}, {"node.kubernetes.io/not-ready", ""}}, "berth", "log");
  const auto tolerations = objects_at(made, {"spec", "tolerations"});
  REQUIRE_EQ(tolerations.size(), 1);
  CHECK_EQ(text_at(*tolerations[0], {"key"}), "team");
}

TEST_CASE("another signal than SIGTERM is sent by a hook, which waits for the end") {
  StartTask start = a_start();
  CHECK(object_at(container(pod(start)), {"lifecycle"}) == nullptr);
  start.stop_signal = 10;
  const auto made = pod(start);
  const auto* hook = array_at(container(made), {"lifecycle", "preStop", "exec", "command"});
  REQUIRE(hook);
  CHECK(std::string(hook->at(2).as_string()).starts_with("kill -10 1;"));
}

TEST_CASE("what cannot be a pod is refused") {
  CHECK(check_own_job(a_job(), in_jobs()));
  CHECK_FALSE(check_own_job(a_job(), {}));
  JobSpec job = a_job();
  job.groups[0].image.clear();
  CHECK_FALSE(check_own_job(job, in_jobs()));
  job = a_job();
  job.groups[0].request.gpu_milli = 500;
  CHECK_FALSE(check_own_job(job, in_jobs()));
  job = a_job();
  job.groups[0].request.mig_profile = "1g.10gb";
  CHECK_FALSE(check_own_job(job, in_jobs()));
  job = a_job();
  job.groups[0].launch = Launch::kPerGpu;
  job.groups[0].command.clear();
  CHECK_FALSE(check_own_job(job, in_jobs()));
}

TEST_CASE("ranks of one container have their variables, and it ends with the code of the first that fails") {
  const std::vector<Environment> ranks{{{"RANK", "0"}}, {{"RANK", "1"}}, {{"RANK", "it's"}}};
  CHECK_EQ(code_of(ranks, "exit 0"), 0);
  CHECK_EQ(code_of(ranks, "[ \"$RANK\" = \"it's\" ] && exit 7; sleep 60"), 7);
  CHECK_EQ(code_of(ranks, "[ $RANK = 0 ] || exit 0; exit 5"), 5);
}

TEST_CASE("SIGTERM reaches each rank, and the container waits for them") {
  char mark[] = "/tmp/berth-ranks-XXXXXX";
  REQUIRE(::mkdtemp(mark) != nullptr);
  ::setenv("MARK", mark, 1);
  ::setenv("SCRIPT", rank_script({{{"RANK", "0"}}, {{"RANK", "1"}}}, 20).c_str(), 1);
  ::setenv("COMMAND", "trap 'exit 9' TERM; : > $MARK/$RANK; while :; do sleep 0.02; done", 1);
  const int status = std::system(
      "setsid sh -c \"$SCRIPT\" berth sh -c \"$COMMAND\" & pid=$!; "
      "while ! [ -e $MARK/0 ] || ! [ -e $MARK/1 ]; do sleep 0.02; done; kill -TERM $pid; wait $pid");
  std::filesystem::remove_all(mark);
  CHECK_EQ(WEXITSTATUS(status), 9);
}

}  // namespace berth::kube
