#include "control/handle.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "control/hand_driven_fleet.h"
#include "model/cluster_config.h"

namespace berth::control {
namespace {

// Returns a configuration with the largest allowed number of queues, with new names in each generation. With `domains`,
// each queue is in a trust domain of its own.
ClusterConfig many_queues(int generation, bool domains) {
  ClusterConfig config = default_cluster_config();
  config.queues.clear();
  for (int i = 0; i < 20'000; ++i) {
    QueueConfig queue;
    queue.path = "g" + std::to_string(generation) + "-" + std::to_string(i);
    // Names of different lengths compare faster, and there are many comparisons.
    if (domains) queue.trust_domain = std::string(static_cast<std::size_t>(1 + i % 50), 'd') + queue.path;
    queue.returns = true;
    config.queues.push_back(queue);
  }
  return config;
}

Result<Reply> apply(state::State& state, const ClusterConfig& config) {
  Batch batch(state, Timestamp{1000});
  return handle(batch, ApplyConfig{config, "op"});
}

TEST_CASE("trust domains keep their ids for ever, and a configuration that would run out of them is refused") {
  state::State state;
  const ClusterConfig first = many_queues(0, true);
  REQUIRE(apply(state, first));
  REQUIRE(apply(state, many_queues(1, true)));
  REQUIRE(apply(state, many_queues(2, true)));
  const auto refused = apply(state, many_queues(3, true));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kInvalid);
  CHECK(refused.error().message.find("65535 is the most there can ever be") != std::string::npos);
  CHECK(state.config() == many_queues(2, true));
  CHECK(apply(state, first));  // names that were used before need no new ids
}

TEST_CASE("a submission is refused with all its mistakes, and a name that is nearly there gets it as a hint") {
  HandDrivenFleet fleet;
  fleet.configure({HandDrivenFleet::queue("research"), HandDrivenFleet::queue("ads")});
  JobSpec spec = HandDrivenFleet::job("reserch", 1);
  spec.groups.front().request.gpu_models = {"H10"};
  spec.retries = -1;
  spec.ports = {0};
  spec.priority_class = "hurry";
  const auto refused = fleet.try_command(SubmitJob{spec, ""});
  REQUIRE_FALSE(refused);
  CHECK_EQ(refused.error().message,
           "queue: no such queue 'reserch'; did you mean 'research'?\n"
           "retries must be between 0 and 1000\n"
           "ports: 0 is no port; give one from 1 to 65535\n"
           "gpu_models: no such GPU model 'H10'; did you mean 'H100'? known: H100\n"
           "priority: no such class 'hurry'; known: production, training, dev");
  spec = HandDrivenFleet::job("research", 1);
  spec.groups.front().env = {{"A\nB=", "x"}};
  const auto one = fleet.try_command(SubmitJob{spec, ""});
  REQUIRE_FALSE(one);
  CHECK_EQ(one.error().message.find('\n'), std::string::npos);
}

TEST_CASE("a hint names queues of the branch that was asked for, and no other tenant's") {
  HandDrivenFleet fleet;
  fleet.configure({HandDrivenFleet::queue("a"), HandDrivenFleet::queue("a/public"), HandDrivenFleet::queue("b"),
                   HandDrivenFleet::queue("b/secret")});
  const auto message = [&](const char* queue) {
    return fleet.try_command(SubmitJob{HandDrivenFleet::job(queue, 1), ""}).error().message;
  };
  CHECK_EQ(message("a/publik"), "queue: no such queue 'a/publik'; did you mean 'a/public'?");
  CHECK_EQ(message("a/secrett"), "queue: no such queue 'a/secrett'; 'berth queues' lists them");
}

TEST_CASE("a configuration that was made from another version than that in force changes nothing") {
  state::State state;
  REQUIRE(apply(state, default_cluster_config()));
  ClusterConfig changed = default_cluster_config();
  changed.name = "changed";
  Batch batch(state, Timestamp{2000});
  const auto stale = handle(batch, ApplyConfig{changed, "op", 7});
  REQUIRE(stale);
  CHECK(stale->stale);
  CHECK_EQ(stale->version, 1);
  CHECK(batch.records().empty());
  const auto applied = handle(batch, ApplyConfig{changed, "op", 1});
  REQUIRE(applied);
  CHECK_FALSE(applied->stale);
  CHECK_EQ(applied->version, 2);
  CHECK_EQ(state.config().name, "changed");
}

TEST_CASE("a configuration that would bring more queues than there can ever be is refused") {
  state::State state;
  int generation = 0;
  while (generation < 20 && apply(state, many_queues(generation, false))) ++generation;
  CHECK(generation == 9);  // the root also uses a queue id
  CHECK(apply(state, many_queues(0, false)));
}

ClusterConfig with_queues(const std::vector<std::string>& paths) {
  ClusterConfig config = default_cluster_config();
  config.queues.clear();
  for (const std::string& path : paths) config.queues.emplace_back().path = path;
  return config;
}

Result<Reply> submit(state::State& state, const std::string& queue, const std::string& key = "") {
  JobSpec spec;
  spec.user = "ann";
  spec.queue = queue;
  spec.groups.emplace_back();
  spec.groups.front().name = "main";
  spec.groups.front().command = {"true"};
  spec.groups.front().request.cpu_milli = 1000;
  Batch batch(state, Timestamp{2000});
  return handle(batch, SubmitJob{spec, key});
}

TEST_CASE("another comment of a service is a change that replaces no replica") {
  state::State state;
  REQUIRE(apply(state, with_queues({"a"})));
  const auto serve = [&](const std::string& comment, const std::string& workdir) {
    JobSpec spec;
    spec.user = "ann";
    spec.name = "web";
    spec.queue = "a";
    spec.kind = JobKind::kService;
    spec.comment = comment;
    spec.groups.emplace_back().command = {"serve"};
    spec.groups.front().workdir = workdir;
    spec.groups.front().request.cpu_milli = 1000;
    Batch batch(state, Timestamp{2000});
    const auto reply = handle(batch, SubmitJob{spec, ""});
    REQUIRE(reply);
    return *reply;
  };
  const JobId web = serve("first", "/a").job;
  CHECK(serve("second", "/a").updated);
  CHECK(state.job(web)->spec.comment == "second");
  CHECK(state.job(web)->generation == 0);
  CHECK(serve("second", "/b").updated);
  CHECK(state.job(web)->generation == 1);
}

TEST_CASE("a job that names no queue goes to the only leaf there is") {
  state::State state;
  REQUIRE(apply(state, with_queues({"research", "research/nlp"})));
  const auto job = submit(state, "", "k");
  REQUIRE(job);
  CHECK(state.job(job->job)->spec.queue == "research/nlp");
  CHECK(submit(state, "", "k")->job == job->job);  // the same submission, sent again
  REQUIRE(apply(state, with_queues({"research", "research/nlp", "dev"})));
  CHECK(submit(state, "", "k")->job == job->job);  // even now, when there are two leaf queues
}

TEST_CASE("a job that names no queue where there are several is told which") {
  state::State state;
  REQUIRE(apply(state, with_queues({"research", "research/nlp", "dev"})));
  const auto refused = submit(state, "");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kInvalid);
  CHECK(refused.error().message == "queue is missing; give one of dev, research/nlp");
  REQUIRE(apply(state, with_queues({"a", "b", "c", "d", "e", "f", "g"})));
  CHECK(submit(state, "").error().message ==
        "queue is missing; give one of a, b, c, d, e and 2 more ('berth queues' lists them)");
}

// Returns the error message for a minimal job that `ask` has changed, or "" if it is accepted.
template <class Ask>
std::string refusal(state::State& state, Ask ask) {
  JobSpec spec;
  spec.user = "ann";
  spec.queue = "q";
  spec.groups.emplace_back().command = {"true"};
  spec.groups.front().request.cpu_milli = 1000;
  ask(spec);
  Batch batch(state, Timestamp{2000});
  const auto reply = handle(batch, SubmitJob{spec, {}});
  return reply ? std::string() : reply.error().message;
}

TEST_CASE("ports that no job can have are refused by name") {
  state::State state;
  REQUIRE(apply(state, with_queues({"q"})));
  const auto with = [&](const std::vector<std::int32_t>& ports) {
    return refusal(state, [&](JobSpec& spec) { spec.ports = ports; });
  };
  CHECK(with({1, 80, 19'999, 30'000, 65'535}).empty());
  CHECK_EQ(with({0}), "ports: 0 is no port; give one from 1 to 65535");
  CHECK_EQ(with({80, 65'536}), "ports: 65536 is no port; give one from 1 to 65535");
  CHECK_EQ(with({80, 80}), "ports: 80 is given twice, or they do not ascend");
  CHECK_EQ(with({443, 80}), "ports: 80 is given twice, or they do not ascend");
  for (const std::int32_t port : {state::kFirstMasterPort, state::kLastMasterPort}) {
    CHECK_EQ(with({port}), "ports: " + std::to_string(port) +
                               " is reserved for MASTER_PORT of gangs (20000 to 29999); give another one");
  }
  std::vector<std::int32_t> many;
  while (many.size() < 16) many.push_back(static_cast<std::int32_t>(many.size()) + 1);
  CHECK(with(many).empty());
  many.push_back(17);
  CHECK_EQ(with(many), "ports lists more than 16 ports");
}

TEST_CASE("labels, terms and the levels of groups are refused by name when they make no sense") {
  state::State state;
  ClusterConfig config = with_queues({"q"});
  config.topology_levels = {"block", "rack"};
  REQUIRE(apply(state, config));
  const Labels web{{"app", "web"}};
  CHECK(refusal(state, [&](JobSpec& spec) { spec.affinity = {{web, "rack", true}}; }).empty());
  CHECK(refusal(state, [&](JobSpec& spec) {
          spec.affinity = {{web, "row", true}};
        }) == "affinity[0].level: there is no level 'row'; known are block, rack, node");
  CHECK(refusal(state, [&](JobSpec& spec) {
          spec.anti_affinity = {{web, "", true}};
        }) == "anti_affinity[0].level is missing; known are block, rack, node");
  CHECK(refusal(state, [&](JobSpec& spec) {
          spec.anti_affinity = {{web, "node", true}, {{}, "node", true}};
        }) == "anti_affinity[1].labels is empty; give at least one, such as {app: llama}");
  CHECK(refusal(state, [&](JobSpec& spec) {
          spec.affinity.assign(17, {web, "node", true});
        }) == "affinity lists more than 16 terms");
  CHECK(refusal(state, [&](JobSpec& spec) { spec.labels = {{"a", "1"}, {"a", "2"}}; }) == "labels: 'a' is given twice");
  CHECK(refusal(state, [&](JobSpec& spec) {
          spec.labels = {{"a=b", "1"}};
        }) == "labels: 'a=b' is no label; keys have 1 to 63 characters without '=' and ',', values at most 253");
  CHECK(refusal(state, [&](JobSpec& spec) { spec.groups.front().topology.required = "row"; }) ==
        "groups[0].topology: there is no level 'row'; known are block, rack, node");
  const auto wider = [&](JobSpec& spec) {
    spec.topology.required = "rack";
    spec.groups.front().topology.preferred = "block";
  };
  CHECK(refusal(state, wider) ==
        "groups[0].topology: 'block' is wider than 'rack', which the job requires; leave it out");
}

TEST_CASE("a node that runs no containers has no images, and jobs with an image wait for the first that does") {
  state::State state;
  REQUIRE(apply(state, with_queues({"q"})));
  const auto refused_node = [&](bool containers, std::vector<std::string> images) {
    NodeSpec spec;
    spec.name = "n1";
    spec.containers = containers;
    spec.images = std::move(images);
    Batch batch(state, Timestamp{2000});
    const auto reply = handle(batch, RegisterNode{spec});
    return reply ? std::string() : reply.error().message;
  };
  const auto with_image = [](JobSpec& spec) { spec.groups.front().image = "llama:1"; };
  const std::string no_node = "image: no node of this cluster runs containers; leave it out and give a command";
  CHECK(refused_node(false, {"a"}) == "node 'n1' names images, but runs no containers");
  CHECK(refused_node(true, {"b", "a"}) == "node 'n1': images: 'a' stands out of order; sort the names");
  CHECK(refusal(state, with_image) == no_node);
  CHECK(refused_node(false, {}).empty());
  CHECK(refusal(state, with_image) == no_node);
  CHECK(refused_node(true, {}).empty());
  CHECK(refusal(state, with_image).empty());
  CHECK(refusal(state, [](JobSpec& spec) {
          spec.groups.front().image = "no such name";
        }).starts_with("image is not the name of an image: use 1-512 letters"));
  CHECK(refusal(state, [](JobSpec& spec) {
          spec.groups.front().image = "llama:1";
          spec.groups.front().command.clear();  // the image has its own command
        }).empty());
}

TEST_CASE("of the images of a node what has changed is told, and the state can be saved with it") {
  state::State state;
  NodeSpec spec;
  spec.name = "n1";
  spec.containers = true;
  spec.images = {"a", "b"};
  const auto report = [&](std::vector<std::string> images) {
    Batch batch(state, Timestamp{2000});
    const auto reply = handle(batch, ReportNodeImages{"n1", std::move(images)});
    CHECK((!reply || reply->unchanged == batch.records().empty()));
    return std::pair(reply ? std::string() : reply.error().message, batch.records());
  };
  {
    Batch batch(state, Timestamp{2000});
    REQUIRE(handle(batch, RegisterNode{spec}));
  }
  CHECK(report({"b", "a"}).first == "node 'n1': images: 'a' stands out of order; sort the names");
  CHECK(report({"a", "b"}).second.empty());
  const auto records = report({"b", "c"}).second;
  REQUIRE(records.size() == 1);
  const auto& changed = std::get<NodeImagesChanged>(records.front().event);
  CHECK(changed.pulled == std::vector<std::string>{"c"});
  CHECK(changed.dropped == std::vector<std::string>{"a"});
  CHECK(state.nodes().front().spec.images == std::vector<std::string>{"b", "c"});
  CHECK(state.images().holders("a") == nullptr);
  REQUIRE(state.images().holders("c") != nullptr);
  CHECK(*state.images().holders("c") == std::vector<NodeId>{NodeId(0)});
  CHECK(state.audit().value_or("").empty());
  const auto loaded = state::State::load(state.save());
  REQUIRE(loaded);
  CHECK(loaded->digest() == state.digest());
  CHECK(loaded->audit().value_or("").empty());
  CHECK(loaded->images() == state.images());
}

TEST_CASE_FIXTURE(HandDrivenFleet,
                  "what others use of a node is told by uuid, and follows its GPUs over a registration") {
  configure({queue("research")});
  NodeSpec spec = node("n1");
  spec.countables = {{"pods", 10}, {"rdma/hca", 4}};
  command(RegisterNode{spec, {4000, 1024, {"n1-6", "n1-7", "unknown"}, {{"pods", 2}}}});
  const state::NodeState& known = *state.node_named("n1");
  CHECK_EQ(known.foreign.gpus, std::vector<std::uint8_t>{6, 7});
  CHECK_EQ(known.available_cpu_milli(), 60'000);
  CHECK_EQ(known.available_countable(0), 8);
  CHECK_EQ(known.gpus[6].available_milli(), 0);
  CHECK(known.gpus[6].healthy);
  CHECK_EQ(state.capacity()[kDimGpu], 8 * kMilli);  // foreign use leaves the capacity as it is
  std::swap(spec.gpus[0], spec.gpus[7]);
  command(RegisterNode{spec, {0, 0, {"n1-7"}, {}}});
  CHECK_EQ(known.foreign.gpus, std::vector<std::uint8_t>{0});
  command(ReportForeignUse{"n1", {}});
  CHECK(command(ReportForeignUse{"n1", {}}).unchanged);
  CHECK_EQ(known.available_cpu_milli(), 64'000);
  CHECK_EQ(state.audit(), std::nullopt);
  const auto loaded = state::State::load(state.save());
  REQUIRE(loaded);
  CHECK_EQ(loaded->digest(), state.digest());
}

TEST_CASE_FIXTURE(HandDrivenFleet, "a fence of a GPU stays until an operator lifts it, whatever the node reports") {
  configure({queue("research")});
  NodeSpec spec = node("n1");
  command(RegisterNode{spec});
  const state::NodeState& known = *state.node_named("n1");
  command(ReportGpuHealth{"n1", 0, false, "process 4711 of job 9 uses it", true, "n1-3"});
  CHECK_FALSE(known.gpus[3].healthy);
  CHECK_EQ(known.spec.gpus[3].fault, "process 4711 of job 9 uses it");
  CHECK_EQ(state.capacity()[kDimGpu], 7 * kMilli);
  CHECK(command(ReportGpuHealth{"n1", 3, true, "well"}).unchanged);
  CHECK(command(ReportGpuHealth{"n1", 3, false, "again", true}).unchanged);
  std::swap(spec.gpus[0], spec.gpus[3]);
  command(RegisterNode{spec});
  CHECK_FALSE(known.gpus[0].healthy);
  CHECK(known.gpus[3].healthy);
  CHECK_EQ(known.spec.gpus[0].fault, "process 4711 of job 9 uses it");
  const auto loaded = state::State::load(state.save());
  REQUIRE(loaded);
  CHECK(loaded->node_named("n1")->spec.gpus[0].fenced);
  CHECK(command(LiftGpuFence{"n1", 1, "op"}).unchanged);
  CHECK_FALSE(command(LiftGpuFence{"n1", 0, "op"}).unchanged);
  CHECK(known.gpus[0].healthy);
  CHECK(known.spec.gpus[0].fault.empty());
  CHECK_EQ(state.audit(), std::nullopt);
}

TEST_CASE_FIXTURE(HandDrivenFleet, "a GPU that fails while it is fenced is failed once the fence is lifted") {
  configure({queue("research")});
  NodeSpec spec = node("n1");
  command(RegisterNode{spec});
  const state::NodeState& known = *state.node_named("n1");
  const Gpu& gpu = known.spec.gpus[2];
  command(ReportGpuHealth{"n1", 2, false, "left", true});
  CHECK_FALSE(gpu.failed);
  CHECK_FALSE(command(ReportGpuHealth{"n1", 2, false, "xid 79"}).unchanged);
  CHECK(gpu.failed);
  CHECK_EQ(gpu.fault, "left");
  CHECK(command(ReportGpuHealth{"n1", 2, false, "xid 79"}).unchanged);
  CHECK_FALSE(command(ReportGpuHealth{"n1", 2, true, ""}).unchanged);
  CHECK_FALSE(gpu.failed);
  spec.gpus[2].healthy = false;  // it fails while the node is away
  command(RegisterNode{spec});
  CHECK(gpu.failed);
  CHECK_FALSE(command(LiftGpuFence{"n1", 2, "op"}).unchanged);
  CHECK_FALSE(gpu.fenced);
  CHECK_FALSE(gpu.failed);
  CHECK_FALSE(known.gpus[2].healthy);
  command(ReportGpuHealth{"n1", 2, false, "left", true});
  command(LiftGpuFence{"n1", 2, "op"});
  CHECK_FALSE(known.gpus[2].healthy);
  CHECK_FALSE(command(ReportGpuHealth{"n1", 2, true, ""}).unchanged);
  CHECK(known.gpus[2].healthy);
  CHECK_EQ(state.audit(), std::nullopt);
}

TEST_CASE_FIXTURE(HandDrivenFleet, "a lift of a fence says what cannot be") {
  configure({queue("research")});
  command(RegisterNode{node("n1")});
  CHECK_EQ(try_command(LiftGpuFence{"n1", 8, "op"}).error().message, "node 'n1' has no GPU 8, but 8, counted from 0");
  CHECK_FALSE(try_command(LiftGpuFence{"n2", 0, "op"}));
  CHECK_FALSE(try_command(ReportGpuHealth{"n1", 0, false, "", true, "GPU-other"}));
  command(ReportGpuHealth{"n1", 2, false, "xid 79"});
  CHECK_EQ(try_command(LiftGpuFence{"n1", 2, "op"}).error().message,
           "GPU 2 of node 'n1' is not fenced: its node reports it as failed, and takes that back itself");
}

TEST_CASE_FIXTURE(HandDrivenFleet, "foreign use and countables that cannot be are refused by name") {
  configure({queue("research")});
  command(RegisterNode{node("n1")});
  CHECK_FALSE(try_command(ReportForeignUse{"n2", {}}));
  CHECK_FALSE(try_command(ReportForeignUse{"n1", {-1, 0, {}, {}}}));
  CHECK_FALSE(try_command(ReportForeignUse{"n1", {0, 0, {}, {{"pods", 0}}}}));
  CHECK_FALSE(try_command(ReportForeignUse{"n1", {0, 0, {}, {{"b", 1}, {"a", 1}}}}));
  NodeSpec spec = node("n3");
  spec.countables = {{"rdma/hca", -4}};
  CHECK_FALSE(try_command(RegisterNode{spec}));
  JobSpec asks = job("research", 1);
  asks.groups.front().request.countables = {{"pods", 1}};
  const auto refused = try_command(SubmitJob{asks, ""});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find("each task takes one of 'pods'; leave it out") != std::string::npos);
  asks.groups.front().request.countables = {{"rdma/hca", 1}, {"rdma/hca", 1}};
  CHECK_FALSE(try_command(SubmitJob{asks, ""}));
}

TEST_CASE("what is given twice is refused, and an estimate beyond the limit") {
  state::State state;
  ClusterConfig config = with_queues({"q"});
  config.gpu_models = {{"H100", 1000, 0}};
  REQUIRE(apply(state, config));
  CHECK(refusal(state, [](JobSpec& spec) {
          spec.groups.front().request.gpus = 1;
          spec.groups.front().request.gpu_models = {"H100", "H100"};
        }) == "gpu_models: 'H100' is given twice");
  CHECK(refusal(state, [](JobSpec& spec) {
          spec.groups.front().tolerations = {"spot", "slow", "spot"};
        }) == "tolerations: 'spot' is given twice");
  REQUIRE(submit(state, "q"));
  const JobId first(1);
  const auto twice = [&](JobSpec& spec) {
    spec.dependencies = {{DependencyKind::kAfter, first}, {DependencyKind::kAfterOk, first}};
  };
  CHECK(refusal(state, twice).empty());
  CHECK(refusal(state, [&](JobSpec& spec) {
          twice(spec);
          spec.dependencies.push_back({DependencyKind::kAfter, first});
        }) == "dependencies: job 1 is given twice");
  CHECK(refusal(state, [](JobSpec& spec) { spec.time_limit_s = 60, spec.estimate_s = 60; }).empty());
  CHECK(refusal(state, [](JobSpec& spec) { spec.time_limit_s = 60, spec.estimate_s = 61; }) ==
        "estimate is longer than time_limit; give at most the time_limit");
}

TEST_CASE("what nothing would read of a job is refused, and so is a name that is none") {
  state::State state;
  REQUIRE(apply(state, with_queues({"q"})));
  const auto refused_for = [&](auto&& change) {
    return refusal(state, [&](JobSpec& spec) { change(spec, spec.groups.front()); });
  };
  CHECK(refused_for([](JobSpec& spec, TaskGroup& group) {
          spec.kind = JobKind::kService;
          group.count = 3;
          group.min_count = 2;
        }) == "min_tasks is only for gangs; each replica of a service starts by itself; leave it out");
  CHECK(refused_for([](JobSpec&, TaskGroup& group) { group.count = 0; }) == "tasks must be between 1 and 65536");
  CHECK(refused_for([](JobSpec&, TaskGroup& group) { group.name.clear(); }) ==
        "groups[0].name must have 1 to 63 characters");
  CHECK(refused_for([](JobSpec&, TaskGroup& group) { group.min_count = 2; }) ==
        "min_tasks must be between 1 and tasks (1)");
  CHECK(refused_for([](JobSpec&, TaskGroup& group) {
          group.node_selector = {{"", "x"}};
        }) == "node_selector: a label has no name; write it as LABEL: VALUE");
  CHECK(refused_for([](JobSpec&, TaskGroup& group) {
          group.node_selector = {{"zone", "\x1b[2J"}};
        }) == "node_selector contains control characters");
  CHECK(refused_for([](JobSpec&, TaskGroup& group) { group.tolerations = {""}; }) ==
        "tolerations: a taint has no name; give its key");
  CHECK(refused_for([](JobSpec&, TaskGroup& group) { group.tolerations = {"spot:Never"}; }) ==
        "tolerations: 'spot:Never': there is no effect 'Never'; NoSchedule and NoExecute keep tasks away");
  CHECK(refused_for([](JobSpec&, TaskGroup& group) {
          group.node_rules = {{{{{"zone", NodeOperator::kIn, {}, false}}}}};
        }) == "node_rules[0]: In needs at least one value");
  CHECK(refused_for([](JobSpec&, TaskGroup& group) {
          group.node_rules = {{{{{"zone", NodeOperator::kIn, {"\x1b[2J"}, false}}}}};
        }) == "node_rules[0] contains control characters");
  CHECK(refused_for([](JobSpec& spec, TaskGroup&) {
          spec.groups.push_back(spec.groups.front());
          spec.groups.back().name = "other";
          spec.groups.back().request.gpus = 17;
        }) == "groups[1].gpus must be between 0 and 16 per task; ask for more tasks to get more GPUs");
  CHECK(refused_for([](JobSpec& spec, TaskGroup&) { spec.groups.push_back(spec.groups.front()); }) ==
        "groups[1].name 'main' is used twice; give each group a name of its own");
}

TEST_CASE("after a restore no number is given that a forgotten job may have had") {
  HandDrivenFleet fleet;
  fleet.configure({HandDrivenFleet::queue("a")});
  const auto submitted = [&] { return fleet.submit(HandDrivenFleet::job("a", 1)).value(); };
  CHECK_EQ(submitted(), 1);
  fleet.command(NoteRestore{288'000'000});
  CHECK_EQ(submitted(), 288'000'000);
  CHECK_EQ(submitted(), 288'000'001);
  CHECK(fleet.state.job(JobId(1)) != nullptr);
  for (const std::uint64_t none : {2U, 63U, 64U, 5'000'000U, 287'999'999U, 288'000'002U, 288'000'064U})
    CHECK(fleet.state.job(JobId(none)) == nullptr);
  std::vector<std::uint64_t> ids;
  fleet.state.jobs().for_each([&](const state::JobState& job) { ids.push_back(job.id.value()); });
  CHECK(ids == std::vector<std::uint64_t>{1, 288'000'000, 288'000'001});
  fleet.command(CancelJob{JobId(1), "op"});
  const auto loaded = state::State::load(fleet.state.save());
  REQUIRE(loaded);
  CHECK_EQ(loaded->next_job_id().value(), 288'000'002);
  // Once more, by a clock that was set back: also a server that ended before it took the mark away says it again.
  fleet.command(NoteRestore{287'000'000});
  CHECK_EQ(submitted(), 293'000'002);
  fleet.command(NoteRestore{~std::uint64_t{0}});
  CHECK_EQ(submitted(), std::uint64_t{1} << 40U);
}

TEST_CASE("a level that a group or a term of a live job names stays") {
  for (const bool of_group : {true, false}) {
    state::State state;
    ClusterConfig config = with_queues({"q"});
    config.topology_levels = {"block", "rack"};
    REQUIRE(apply(state, config));
    const auto ask = [&](JobSpec& spec) {
      if (of_group)
        spec.groups.front().topology.required = "rack";
      else
        spec.anti_affinity = {{{{"app", "web"}}, "rack", false}};
    };
    REQUIRE(refusal(state, ask).empty());
    config.topology_levels = {"block"};
    const auto refused = apply(state, config);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message.find("names the topology level 'rack'") != std::string::npos);
  }
}

TEST_CASE("a pool keeps trust domains apart at a level that is there") {
  state::State state;
  ClusterConfig config = with_queues({"q"});
  config.pools = {{"default", {}, {}, false, "rack"}};
  CHECK_FALSE(apply(state, config));
  config.topology_levels = {"rack"};
  CHECK(apply(state, config));
  config.pools.front().trust_domain_isolation = "node";
  config.topology_levels = {};
  CHECK(apply(state, config));
}

TEST_CASE("each gang has a port of its own on the node of its first task, and none where all are taken") {
  HandDrivenFleet fleet;
  fleet.configure({HandDrivenFleet::queue("a")});
  fleet.command(RegisterNode{fleet.node("n1")});
  JobSpec spec = HandDrivenFleet::job("a", 0, 1);
  spec.groups.front().count = 2;
  const auto start = [&] {
    const JobId id = fleet.submit(spec);
    fleet.decide(StartDecision{id, {fleet.place(id, "n1", 0), fleet.place(id, "n1", 0)}});
    return id;
  };
  const auto port = [&](JobId id) { return fleet.state.job(id)->attempt->master_port; };
  const JobId first = start();
  CHECK_EQ(port(first), state::kFirstMasterPort);
  JobId last = first;
  for (std::int32_t at = state::kFirstMasterPort; at < state::kLastMasterPort; ++at) last = start();
  CHECK_EQ(port(last), state::kLastMasterPort);
  const JobId over = start();
  CHECK_EQ(port(over), 0);
  CHECK_EQ(fleet.state.audit().value_or(""), "");
}

TEST_CASE_FIXTURE(HandDrivenFleet, "an exit counts only for the incarnation of the task that it names") {
  configure({queue("a")});
  command(RegisterNode{node("n1")});
  const JobId job = start(this->job("a", 1), "n1", 0);
  for (const std::uint32_t other : {0U, 2U}) {
    CHECK(command(ReportTaskExited{{job, 1, 0, other, ExitReason::kExited, 0, ""}}).unchanged);
    CHECK(state.job(job) != nullptr);
  }
  CHECK_FALSE(command(ReportTaskExited{{job, 1, 0, 1, ExitReason::kExited, 0, ""}}).unchanged);
  CHECK(state.job(job) == nullptr);
}

}  // namespace
}  // namespace berth::control
