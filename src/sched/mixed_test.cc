// Mixed cases: task groups on different GPU models, and victims of both causes for one preemptor.

#include <algorithm>

#include "explain/why.h"
#include "support/fleet_fixture.h"

namespace berth {
namespace {

// Returns what the headline says of the job: "waits for 6 free GPUs; 5 are free now" of "Job 4 waits for ... now.".
std::string predicate_of(const WhyAnswer& answer) {
  const std::string subject = "Job " + std::to_string(answer.job.value()) + " ";
  CHECK(answer.headline.starts_with(subject));
  return answer.headline.substr(subject.size(), answer.headline.size() - subject.size() - 1);
}

TEST_CASE("each group of a gang counts on the model it asks for, not all of them on one") {
  FleetFixture fleet;
  QueueConfig queue = FleetFixture::queue("a");
  queue.max.model_gpu_milli = {{"A100", 4000}, {"H100", 4000}};
  fleet.command(ApplyConfig{FleetFixture::config({queue}), "op"});
  fleet.command(RegisterNode{FleetFixture::node("n1", 8, "H100")});
  fleet.command(RegisterNode{FleetFixture::node("n2", 8, "A100")});
  JobSpec mixed = FleetFixture::job("a", 1, 4);
  mixed.groups.push_back(mixed.groups.front());
  mixed.groups[0].name = "learners";
  mixed.groups[0].request.gpu_models = {"H100"};
  mixed.groups[1].name = "actors";
  mixed.groups[1].request.gpu_models = {"A100"};
  JobSpec too_many = mixed;
  too_many.groups[1].request.gpus = 5;

  const JobId refused = fleet.submit(too_many);
  const JobId job = fleet.submit(mixed);
  fleet.cycle();
  CHECK(fleet.runs(job));
  CHECK_FALSE(fleet.runs(refused));
  fleet.exit(job, 0);
  fleet.cycle();
  CHECK_FALSE(fleet.runs(refused));
}

TEST_CASE("a gang of several groups is told what all of them lack, or which of them lacks it, and never of any") {
  FleetFixture fleet;
  fleet.command(ApplyConfig{FleetFixture::config({FleetFixture::queue("a")}), "op"});
  fleet.command(RegisterNode{FleetFixture::node("n1", 4, "H100")});
  fleet.command(RegisterNode{FleetFixture::node("n2", 4, "A100")});
  JobSpec mixed = FleetFixture::job("a", 1, 4);
  mixed.groups.push_back(mixed.groups.front());
  mixed.groups[0].request.gpu_models = {"H100"};
  mixed.groups[1].name = "actors";
  mixed.groups[1].request.gpu_models = {"A100"};
  const auto told = [&](std::int32_t gpus, std::int32_t actors) {
    JobSpec spec = mixed;
    spec.groups[0].request.gpus = gpus;
    spec.groups[1].request.gpus = actors;
    const JobId job = fleet.submit(spec);
    fleet.cycle();
    return predicate_of(explain::why(fleet.state, job, fleet.now, explain::Viewer::sees_all()).answer);
  };
  JobSpec small = FleetFixture::job("a", 1, 3);
  small.groups[0].request.gpu_models = {"A100"};
  fleet.submit(small);
  fleet.cycle();
  CHECK_EQ(told(4, 2), "waits for 6 free GPUs; 5 are free now");
  CHECK_EQ(told(3, 2), "waits: group actors needs 2 free GPUs; 1 is free now where it may run");
  CHECK_EQ(
      told(4, 5),
      "can never start: a task of group actors asks for 5 GPUs (A100), and no node that it may use has more than 4");
  CHECK_EQ(told(5, 2),
           "can never start: a task of group main asks for 5 GPUs (H100), and no node that it may use has more than 4");
}

TEST_CASE("groups that an empty fleet holds one by one but not together are told never") {
  FleetFixture fleet;
  fleet.command(ApplyConfig{FleetFixture::config({FleetFixture::queue("a")}), "op"});
  for (const char* name : {"n1", "n2"}) fleet.command(RegisterNode{FleetFixture::node(name, 4)});
  JobSpec pair = FleetFixture::job("a", 1, 0);
  pair.groups.push_back(pair.groups.front());
  pair.groups[1].name = "more";
  pair.groups[1].count = 2;
  const auto told = [&](const JobSpec& spec) {
    const JobId job = fleet.submit(spec);
    fleet.cycle();
    return predicate_of(explain::why(fleet.state, job, fleet.now, explain::Viewer::sees_all()).answer);
  };
  const std::string never = "can never start: its groups ask for ";
  JobSpec of_cpu = pair;
  for (TaskGroup& group : of_cpu.groups) group.request.cpu_milli = 50'000;
  CHECK_EQ(told(of_cpu), never + "150 CPUs, and all nodes that it may use have 128");
  JobSpec of_memory = pair;
  for (TaskGroup& group : of_memory.groups) group.request.memory_mib = 400 * 1024;
  CHECK_EQ(told(of_memory), never + "1200 GiB of memory, and all nodes that it may use have 1024 GiB");
  JobSpec within_node = pair;
  for (TaskGroup& group : within_node.groups) group.request.gpus = 2;
  within_node.topology.required = "node";
  CHECK_EQ(told(within_node),
           "can never start: it asks for 6 GPUs within one node, and no node could hold that, even if empty");
}

TEST_CASE("groups that no node holds beside each other are told never, and those that select by label by those nodes") {
  FleetFixture fleet;
  fleet.command(ApplyConfig{FleetFixture::config({FleetFixture::queue("a")}), "op"});
  NodeSpec labelled = FleetFixture::node("n1", 8);
  labelled.labels.emplace_back("disk", "fast");
  fleet.command(RegisterNode{labelled});
  fleet.command(RegisterNode{FleetFixture::node("n2", 8)});
  const auto told = [&](std::int32_t tasks, std::int32_t gpus, std::int32_t more, bool fast, bool within) {
    JobSpec spec = FleetFixture::job("a", tasks, gpus);
    if (fast) spec.groups.front().node_selector = labelled.labels;
    spec.groups.push_back(spec.groups.front());
    spec.groups[1].name = "more";
    spec.groups[1].count = 1;
    spec.groups[1].request.gpus = more;
    if (within) spec.topology.required = "node";
    const JobId job = fleet.submit(spec);
    fleet.cycle();
    const auto verdict = explain::why(fleet.state, job, fleet.now, explain::Viewer::sees_all());
    fleet.command(CancelJob{job, "op"});
    if (fleet.runs(job)) fleet.exit(job, 0);
    return name_of(verdict.reason.code);
  };
  CHECK_EQ(told(2, 4, 8, false, false), "none");
  CHECK_EQ(told(2, 5, 4, false, false), "never-fits");  // 14 of 16 GPUs, but a node holds one task of the three
  CHECK_EQ(told(1, 6, 3, false, false), "none");
  CHECK_EQ(told(1, 6, 2, true, false), "none");
  CHECK_EQ(told(1, 6, 3, true, false), "never-fits");
  CHECK_EQ(told(1, 6, 2, true, true), "none");
  CHECK_EQ(told(1, 6, 3, true, true), "never-fits");
  NodeSpec third = FleetFixture::node("n3", 8);
  third.labels = labelled.labels;
  fleet.command(RegisterNode{third});
  CHECK_EQ(told(1, 6, 3, true, false), "none");
  fleet.command(ReportNodeStatus{"n3", NodeStatus::kLost, ""});
  CHECK_EQ(told(1, 6, 3, true, false), "insufficient-resources");  // it may return
}

TEST_CASE("two of three groups that never have room beside each other are enough, and whole nodes are counted") {
  FleetFixture fleet;
  ClusterConfig config = FleetFixture::config({FleetFixture::queue("a")});
  config.topology_levels = {"rack"};
  fleet.command(ApplyConfig{config, "op"});
  NodeSpec labelled = FleetFixture::node("n0", 8);
  labelled.labels.emplace_back("disk", "fast");
  labelled.topology = {"r0"};
  fleet.command(RegisterNode{labelled});
  for (const std::string number : {"1", "2"}) {
    NodeSpec node = FleetFixture::node("n" + number, 2);
    node.topology = {"r1"};
    fleet.command(RegisterNode{node});
  }
  const auto group = [&](const std::string& name, std::int32_t tasks, std::int32_t gpus, bool fast) {
    TaskGroup one = FleetFixture::job("a", tasks, gpus).groups.front();
    one.name = name;
    if (fast) one.node_selector = labelled.labels;
    return one;
  };
  const auto told = [&](std::vector<TaskGroup> groups, const std::string& level) {
    JobSpec spec = FleetFixture::job("a", 1, 1);
    spec.groups = std::move(groups);
    spec.topology.required = level;
    spec.exclusive = !level.empty();
    const JobId job = fleet.submit(spec);
    fleet.cycle();
    const auto verdict = explain::why(fleet.state, job, fleet.now, explain::Viewer::sees_all());
    if (fleet.runs(job)) fleet.exit(job, 0);
    return name_of(verdict.reason.code);
  };
  const TaskGroup many = group("many", 4, 1, false);
  CHECK_EQ(told({many, group("x", 1, 5, true), group("y", 1, 3, true)}, ""), "none");
  CHECK_EQ(told({many, group("x", 1, 6, true), group("y", 1, 3, true)}, ""), "never-fits");
  CHECK_EQ(told({group("x", 1, 1, false), group("y", 1, 3, false)}, "rack"), "never-fits");
}

TEST_CASE("each victim of one claimant leaves for its own cause") {
  FleetFixture fleet;
  QueueConfig owner = FleetFixture::queue("a");
  owner.guaranteed.gpu_milli = 14'000;
  fleet.command(ApplyConfig{FleetFixture::config({owner, FleetFixture::queue("b")}), "op"});
  fleet.command(RegisterNode{FleetFixture::node("n1", 6)});
  fleet.command(RegisterNode{FleetFixture::node("n2", 8)});
  const auto start = [&](const std::string& queue, std::int32_t gpus, const std::string& priority) {
    JobSpec spec = FleetFixture::job(queue, 1, gpus);
    spec.priority_class = priority;
    const JobId job = fleet.submit(spec);
    fleet.cycle();
    return job;
  };
  start("b", 6, "production");
  const JobId borrower = start("b", 4, "training");
  const JobId lower = start("a", 4, "dev");
  REQUIRE(fleet.runs(borrower));
  REQUIRE(fleet.runs(lower));
  fleet.now.ms += 3'600'000;
  start("a", 8, "production");  // fits on n2 only, where both victims are
  const auto cause_of = [&](JobId job) { return fleet.state.job(job)->attempt->stop.value().cause; };
  CHECK(cause_of(borrower) == StopCause::kReclaim);
  CHECK(cause_of(lower) == StopCause::kPreempt);
}

TEST_CASE("a job that waits for a cordoned node is told so in the first line") {
  FleetFixture fleet;
  fleet.command(ApplyConfig{FleetFixture::config({FleetFixture::queue("a")}), "op"});
  fleet.command(RegisterNode{FleetFixture::node("n1", 8)});
  fleet.command(CordonNode{"n1", true, false, "op"});
  const JobId job = fleet.submit(FleetFixture::job("a", 1, 4));
  fleet.cycle();
  const auto told = explain::why(fleet.state, job, fleet.now, explain::Viewer::sees_all()).answer.headline;
  CHECK_MESSAGE(told.find("1 eligible node cordoned") != std::string::npos, told);
  fleet.command(CordonNode{"n1", false, false, "op"});
  fleet.cycle();
  CHECK(fleet.runs(job));
}

TEST_CASE("whether a gang of several groups fits does not depend on what others have asked for") {
  FleetFixture fleet;
  ClusterConfig config = FleetFixture::config({FleetFixture::queue("a")});
  config.scheduling.score = NodeScore::kFragmentation;
  fleet.command(ApplyConfig{config, "op"});
  NodeSpec wanted = FleetFixture::node("wanted", 1, "H100");
  wanted.cpu_milli = 4000;
  fleet.command(RegisterNode{wanted});
  fleet.command(RegisterNode{FleetFixture::node("other", 1, "A100")});
  JobSpec popular = FleetFixture::job("a", 1, 1);
  popular.groups[0].request.gpu_models = {"H100"};
  popular.held = true;
  for (int i = 0; i < 100; ++i) fleet.submit(popular);
  // By its score the head goes to the GPU that no job requests. Only that node has the CPU that the worker needs.
  const JobId head = fleet.submit(FleetFixture::job("a", 1, 1));
  fleet.cycle();
  REQUIRE(fleet.runs(head));
  CHECK_EQ(fleet.state.node(fleet.state.job(head)->attempt->tasks.front().placement.node).spec.name, "other");
  fleet.exit(head, 0);

  JobSpec gang = FleetFixture::job("a", 1, 1);
  gang.groups.push_back(gang.groups.front());
  gang.groups[0].name = "head";
  gang.groups[1].name = "worker";
  gang.groups[1].request.cpu_milli = 32'000;
  const JobId both = fleet.submit(gang);
  fleet.cycle();
  CHECK(fleet.runs(both));
}

TEST_CASE("a job that wants a node for itself claims one from who borrows it") {
  FleetFixture fleet;
  QueueConfig owner = FleetFixture::queue("a");
  owner.guaranteed.gpu_milli = 8000;
  fleet.command(ApplyConfig{FleetFixture::config({owner, FleetFixture::queue("b")}), "op"});
  fleet.command(RegisterNode{FleetFixture::node("n1", 8)});
  const JobId borrower = fleet.submit(FleetFixture::job("b", 2, 4));
  fleet.cycle();
  REQUIRE(fleet.runs(borrower));
  JobSpec alone = FleetFixture::job("a", 1, 1);
  alone.exclusive = true;
  const JobId preemptor = fleet.submit(alone);
  fleet.cycle();
  REQUIRE(fleet.state.job(borrower)->attempt->stop.has_value());
  fleet.exit(borrower, 143);
  fleet.cycle();
  CHECK(fleet.runs(preemptor));
}

}  // namespace
}  // namespace berth
