// Each rule of advice: where it speaks, what it says, and where it is silent.

#include "explain/advice/advice.h"

#include <doctest/doctest.h>

#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "support/fleet_fixture.h"
#include "support/random_fleet.h"

namespace berth {
namespace {

using explain::AdviceReport;

// "warning gang-by-hand a; note weight-0-waits b"
std::string codes_of(const AdviceReport& report) {
  std::string text;
  for (const Advice& one : report.items) {
    text += (text.empty() ? "" : "; ") + std::string(name_of(one.severity)) + " " + std::string(name_of(one.code)) +
            (one.name.empty() ? "" : " " + one.name);
  }
  return text;
}

struct AdviceFixture : FleetFixture {
  GpuUtilization gpu_utilization;  // as if it had been measured

  AdviceReport ask(const explain::AdviceEffort& effort = {}) {
    const std::uint64_t before = state.digest();
    AdviceReport report = explain::advise(state, now, gpu_utilization, effort);
    CHECK_EQ(state.digest(), before);
    for (const Advice& one : report.items) {
      CHECK(one.text.ends_with("."));
      CHECK(one.remedy.ends_with("."));
      CHECK_EQ(one.name.empty(), one.about == AdviceAbout::kCluster);
    }
    return report;
  }
  std::string codes() { return codes_of(ask()); }
  std::string text() {
    std::string text;
    for (const Advice& one : ask().items) text += (text.empty() ? "" : "\n") + one.text;
    return text;
  }

  // Nobody is told that fragmentation is not watched, or not mended.
  static ClusterConfig watched(std::vector<QueueConfig> queues) {
    ClusterConfig watched = config(std::move(queues));
    watched.scheduling.fragmentation_alert_percent = 10;
    watched.scheduling.consolidations_per_hour = 10;
    return watched;
  }
  void apply(const ClusterConfig& config) { command(ApplyConfig{config, "op"}); }
  static QueueConfig guaranteed(const std::string& path, std::int64_t gpus) {
    QueueConfig config = queue(path);
    config.guaranteed.gpu_milli = gpus * 1000;
    return config;
  }
  void nodes(int count, const std::string& prefix = "n") {
    for (int n = 1; n <= count; ++n) command(RegisterNode{node(prefix + std::to_string(n), 8)});
  }
  // A task of so many GPUs and CPUs.
  static JobSpec task(const std::string& queue, std::int32_t gpus, std::int64_t cpus, const std::string& user = "ann") {
    JobSpec spec = job(queue, 1, gpus);
    spec.groups[0].request.cpu_milli = cpus * 1000;
    spec.user = user;
    return spec;
  }
};

}  // namespace

TEST_CASE_FIXTURE(AdviceFixture, "a cluster in no pitfall hears nothing, with or without nodes and jobs") {
  CHECK_EQ(codes(), "");
  QueueConfig closed = guaranteed("b", 8);
  closed.max.gpu_milli = 16'000;
  apply(watched({guaranteed("a", 8), closed}));
  CHECK_EQ(codes(), "");
  nodes(2);
  CHECK_EQ(codes(), "");
  submit(job("a", 2, 8));
  submit(job("b", 1, 8));
  cycle();
  CHECK_EQ(codes(), "");
  CHECK(ask().complete);
  CHECK(ask().left_out.empty());
}

TEST_CASE_FIXTURE(AdviceFixture, "more is guaranteed than the nodes could meet at once") {
  apply(watched({guaranteed("a", 8), guaranteed("b", 9)}));
  CHECK_EQ(codes(), "");  // no nodes have joined yet
  nodes(2);
  CHECK_EQ(codes(), "warning guarantees-not-backed");
  CHECK_EQ(text(), "The queues are guaranteed 17 GPUs in all, of which no more than 16 GPUs could be met at once.");
  nodes(1, "m");
  CHECK_EQ(codes(), "");
  SUBCASE("nodes that take no tasks back nothing, and are told of") {
    command(CordonNode{"m1", true, false, "op"});
    CHECK_NE(text().find("at once. 1 node that takes no tasks now does not count."), std::string::npos);
  }
  SUBCASE("what one queue alone lacks is told, the lowest that lacks as much") {
    apply(watched({guaranteed("a", 40), guaranteed("a/t", 40), guaranteed("b", 1)}));
    CHECK_EQ(text(),
             "The queues are guaranteed 41 GPUs in all, of which no more than 24 GPUs could be met at once. Queue a/t "
             "alone has 40 GPUs guaranteed; the pools open to it back 24 GPUs.");
  }
  SUBCASE("GPUs of a model are not backed by those of another") {
    QueueConfig model = queue("a");
    model.guaranteed.model_gpu_milli = {{"A100", 4000}};
    apply(watched({model}));
    CHECK_NE(
        text().find("4 GPUs in all, of which no more than 0 GPUs could be met at once. Queue a alone has 4 GPUs of "
                    "A100 guaranteed; the pools open to it back 0 GPUs of A100."),
        std::string::npos);
  }
  SUBCASE("burst pools and pools that are closed to it back nothing") {
    for (const bool burst : {true, false}) {
      ClusterConfig pools = watched({guaranteed("a", 24), queue("b")});
      pools.pools = {{"default", {}}, {"other", {"b"}}};
      pools.pools[1].burst = burst;
      apply(pools);
      NodeSpec spec = node("m1", 8);
      spec.pool = "other";
      command(RegisterNode{spec});
      CHECK_EQ(codes(), "warning guarantees-not-backed");
    }
  }
  SUBCASE("so are cores and memory") {
    QueueConfig cores = queue("a");
    cores.guaranteed.cpu_milli = 193'000;
    cores.guaranteed.memory_mib = 1'572'865;
    apply(watched({cores}));
    CHECK_EQ(codes(), "warning guarantees-not-backed; warning guarantees-not-backed");
    CHECK_NE(text().find("193 CPUs in all, of which no more than 192 CPUs"), std::string::npos);
    CHECK_NE(text().find("1572865MiB of memory in all, of which no more than 1536GiB of memory"), std::string::npos);
  }
}

TEST_CASE_FIXTURE(AdviceFixture, "a ceiling bounds nothing that is above all there is or above a ceiling over it") {
  QueueConfig top = queue("a");
  QueueConfig leaf = queue("a/t");
  nodes(2);
  SUBCASE("just all there is may be meant so") {
    top.max.gpu_milli = 16'000;
    leaf.max.gpu_milli = 16'000;
    apply(watched({top, leaf}));
    CHECK_EQ(codes(), "");
  }
  SUBCASE("above what the pools have, in each dimension of which they have some") {
    leaf.max.gpu_milli = 17'000;
    leaf.max.cpu_milli = 200'000;
    leaf.max.memory_mib = 1024;
    leaf.max.model_gpu_milli = {{"A100", 99'000}};
    apply(watched({top, leaf}));
    CHECK_EQ(codes(), "note ceiling-bounds-nothing a/t");
    CHECK_EQ(text(),
             "Its `max` bounds nothing: 17 GPUs, where the pools open to it have 16 GPUs; 200 CPUs, where the "
             "pools open to it have 128 CPUs.");
    command(RegisterNode{node("n3", 8)});
    CHECK_NE(text().find("200 CPUs"), std::string::npos);
    CHECK_EQ(text().find("GPUs,"), std::string::npos);
    command(ReportNodeStatus{"n3", NodeStatus::kLost, ""});
    CHECK_NE(text().find("17 GPUs"), std::string::npos);
  }
  SUBCASE("above the ceiling of a queue above it") {
    top.max.gpu_milli = 8000;
    leaf.max.gpu_milli = 12'000;
    apply(watched({top, leaf}));
    CHECK_EQ(text(), "Its `max` bounds nothing: 12 GPUs, where queue a may have 8 GPUs.");
  }
  SUBCASE("only pools count that are open to it or below it") {
    top.max.gpu_milli = 12'000;
    ClusterConfig pools = watched({top, leaf, queue("b")});
    pools.pools = {{"default", {"b"}}, {"mine", {"a/t"}}};
    apply(pools);
    CHECK_EQ(codes(), "");  // nothing is there yet
    NodeSpec spec = node("m1", 8);
    spec.pool = "mine";
    command(RegisterNode{spec});
    CHECK_EQ(codes(), "note ceiling-bounds-nothing a");
    spec.name = "m2";
    for (Gpu& gpu : spec.gpus) gpu.uuid += "x";
    command(RegisterNode{spec});
    CHECK_EQ(codes(), "");
  }
}

TEST_CASE_FIXTURE(AdviceFixture, "jobs that take a larger part of CPU or memory than of the GPUs strand the others") {
  apply(watched({queue("a")}));
  nodes(1);  // 8 CPUs and 64 GiB for each GPU
  SUBCASE("its part may be taken whole") {
    submit(task("a", 1, 8));
    submit(task("a", 4, 32));
    cycle();
    CHECK_EQ(codes(), "");
  }
  SUBCASE("who waits strands nothing yet") {
    submit(task("a", 8, 1));
    cycle();
    submit(task("a", 1, 9));
    cycle();
    CHECK_EQ(codes(), "note asks-strand-gpus a");
    CHECK_EQ(text(),
             "1 job (0 run, 1 waits) takes more of any node's CPU or memory than of its GPUs: job 2 needs 9 CPUs "
             "for each GPU, and the nodes that suit it best have 8 CPUs for each.");
  }
  SUBCASE("who runs has the CPUs of GPUs that are idle") {
    submit(task("a", 2, 48));
    submit(task("a", 2, 48));
    cycle();
    CHECK_EQ(codes(), "warning asks-strand-gpus a");
    CHECK_EQ(text(),
             "2 jobs (1 runs, 1 waits) take more of any node's CPU or memory than of its GPUs: job 1 needs 24 "
             "CPUs for each GPU, and the nodes that suit it best have 8 CPUs for each. Those that run have the "
             "CPU or memory of 4 GPUs that are idle.");
    // Others have two of the six, and need less.
    submit(task("a", 4, 1));
    cycle();
    CHECK_NE(text().find("of 2 GPUs that are idle"), std::string::npos);
  }
  SUBCASE("memory, and shares of a GPU") {
    JobSpec spec = task("a", 1, 1);
    spec.groups[0].request.gpu_milli = 500;
    spec.groups[0].request.memory_mib = 48 * 1024;
    submit(spec);
    cycle();
    CHECK_EQ(codes(), "note asks-strand-gpus a");
    CHECK_NE(text().find("needs 96GiB of memory for each GPU, and the nodes that suit it best have 64GiB of memory for "
                         "each. Those that run have the CPU or memory of 0.2 GPUs that are idle."),
             std::string::npos);
  }
  SUBCASE("a node that suits it is enough, if the job may stand there") {
    submit(task("a", 1, 12));
    CHECK_EQ(codes(), "note asks-strand-gpus a");
    NodeSpec rich = node("rich", 4);
    rich.labels = {{"disk", "fast"}};
    command(RegisterNode{rich});
    CHECK_EQ(codes(), "");
    JobSpec picky = task("a", 1, 12);
    picky.groups[0].node_selector = {{"disk", "fast"}};
    const JobId fast = submit(picky);
    CHECK_EQ(codes(), "");
    command(CancelJob{fast, "ann"});
    picky.groups[0].node_selector = {{"disk", "slow"}};
    submit(picky);
    CHECK_EQ(codes(), "");  // nowhere: that it can never start is said by why
  }
  SUBCASE("who has whole nodes, can be nowhere, or asks no GPUs is left out") {
    JobSpec alone = task("a", 1, 60);
    alone.exclusive = true;
    submit(alone);
    submit(task("a", 1, 65));
    submit(task("a", 0, 64));
    CHECK_EQ(codes(), "");
  }
}

namespace {

// One of `size` parts that a user has made by hand.
JobSpec part(std::int32_t rank, std::int32_t size) {
  JobSpec spec = FleetFixture::job("a", 1, 8);
  spec.groups[0].env = {{"MASTER_ADDR", "n1"}, {"RANK", std::to_string(rank)}, {"WORLD_SIZE", std::to_string(size)}};
  return spec;
}

JobSpec running(std::vector<std::string> command) {
  JobSpec spec = FleetFixture::job("a", 1, 8);
  spec.groups[0].command = std::move(command);
  return spec;
}

}  // namespace

namespace {

// A job that has had two whole GPUs for just an hour.
struct GpuUtilizationFixture : AdviceFixture {
  JobId id;

  GpuUtilizationFixture() {
    apply(watched({guaranteed("a", 4)}));
    nodes(1);
    id = submit(job("a", 1, 2));
    cycle();
    now = state.job(id)->attempt->resized + 3'600'000;
  }
  void measured(std::int32_t gpus, std::int64_t percent, std::int32_t minutes = 60) {
    gpu_utilization.jobs[id] = {.attempt = 1, .gpus = gpus, .sum = {percent * 6 * minutes, 6 * minutes, minutes}};
  }
};

}  // namespace

TEST_CASE_FIXTURE(GpuUtilizationFixture, "a job has had whole GPUs for an hour and hardly drives them") {
  CHECK_EQ(codes(), "");  // it was not measured
  measured(2, 29);
  CHECK_EQ(codes(), "warning gpus-underdriven 1");
  SUBCASE("30 % is not little") { measured(2, 30); }
  SUBCASE("an hour is not a part of one") { measured(2, 0, 54); }
  SUBCASE("what is known of one of its GPUs is not known of the job") { measured(1, 0); }
  SUBCASE("an earlier attempt says nothing of this one") { gpu_utilization.jobs[id].attempt = 0; }
  SUBCASE("it has had them for less than an hour") { now = now + -1; }
  SUBCASE("it is leaving") { command(CancelJob{id, "ann"}); }
  CHECK_EQ(codes(), "");
}

TEST_CASE_FIXTURE(GpuUtilizationFixture, "what is hardly driven is told in numbers, with what would do as much") {
  now = now + 61'000;
  measured(2, 4);
  CHECK_EQ(text(),
           "A training job of ann in queue a has had 2 whole GPUs for 1h1m, used 4 % in the last hour: of its "
           "GPU-hours in that hour 1.9 were worth nothing.");
  const std::string rest = ", or find out what its GPUs wait for, such as data or CPUs.";
  CHECK_EQ(ask().items[0].remedy, "Ask a share of a GPU (`gpus: 0.25`)" + rest);
  measured(2, 20);
  CHECK_EQ(ask().items[0].remedy, "Ask a share of a GPU (`gpus: 0.5`)" + rest);
  measured(2, 29);
  CHECK_EQ(ask().items[0].remedy, "Ask fewer GPUs (1 could do as much)" + rest);
  ClusterConfig ways = watched({guaranteed("a", 4)});
  ways.gpu_models.push_back({"H100-cut", 1000, 81'920});
  ways.gpu_models.back().mig = "h100-80gb";
  ways.pools = {{"default", {}}, {"small", {}, {JobClass::kDev}}};
  apply(ways);
  measured(2, 4);
  CHECK_EQ(ask().items[0].remedy,
           "Ask a share of a GPU (`gpus: 0.25`), or a MIG instance (`mig_profile`), or `class: dev`, which pool small "
           "takes" +
               rest);
}

TEST_CASE_FIXTURE(AdviceFixture, "jobs that are told by hand that they are one gang, and may hold and wait") {
  apply(watched({queue("a")}));
  nodes(2);
  SUBCASE("by the environment") {
    for (int rank = 0; rank < 5; ++rank) {
      submit(part(rank, 5));
      now = now + 1000;
    }
    CHECK_EQ(codes(), "note gang-by-hand a");
    cycle();
    CHECK_EQ(codes(), "warning gang-by-hand a");
    CHECK_EQ(text(),
             "ann has submitted jobs 1, 2, 3 and 2 more of one task each within 4s whose commands say that "
             "they are parts of one gang of 5: 2 run and occupy 16 GPUs, 3 wait.");
  }
  SUBCASE("by the words of the command, or of a line for a shell") {
    submit(running({"torchrun", "--nnodes=2", "--node_rank", "0", "--master-addr=n1", "train.py"}));
    submit(running({"torchrun", "--nnodes=2", "--node_rank", "1", "--master-addr=n1", "train.py"}));
    CHECK_EQ(codes(), "note gang-by-hand a");
    submit(running({"/bin/sh", "-c", "WORLD_SIZE=2 RANK=0 python3 train.py"}));
    submit(running({"/bin/sh", "-c", "export WORLD_SIZE='2'; RANK=1 python3 train.py"}));
    CHECK_EQ(codes(), "note gang-by-hand a; note gang-by-hand a");
  }
  SUBCASE("who meet at a rendezvous need no ranks") {
    for (int i = 0; i < 2; ++i)
      submit(running({"torchrun", "--nnodes", "2:4", "--rdzv-endpoint=n1:29400", "train.py"}));
    CHECK_EQ(codes(), "note gang-by-hand a");
  }
  SUBCASE("with all of them running nobody waits in vain") {
    submit(part(0, 2));
    submit(part(1, 2));
    cycle();
    CHECK_EQ(codes(), "note gang-by-hand a");
  }
  SUBCASE("what is no gang by hand") {
    SUBCASE("jobs that only look alike") {
      for (int i = 0; i < 8; ++i) submit(running({"python3", "train.py", "--rank", std::to_string(i)}));
    }
    SUBCASE("jobs of one rank, or by themselves") {
      submit(part(0, 2));
      submit(part(0, 2));
      submit(part(0, 1));
      submit(part(1, 1));
    }
    SUBCASE("one whose other parts came long before") {
      submit(part(0, 2));
      now = now + 600'001;
      submit(part(1, 2));
    }
    SUBCASE("jobs of several users, and jobs that ask something else or meet elsewhere") {
      submit(part(0, 2));
      JobSpec other = part(1, 2);
      other.user = "bob";
      submit(other);
      other.user = "ann";
      other.groups[0].request.gpus = 4;
      submit(other);
      other.groups[0].request.gpus = 8;
      other.groups[0].env[0].second = "n2";
      submit(other);
    }
    SUBCASE("gangs") {
      for (int rank = 0; rank < 2; ++rank) {
        JobSpec spec = part(rank, 2);
        spec.groups[0].count = 2;
        submit(spec);
        spec.groups[0].count = 1;
        spec.groups[0].launch = Launch::kPerGpu;
        submit(spec);
      }
    }
    SUBCASE("a size or a rank that is no number, or a rank beyond the size") {
      JobSpec spec = part(0, 2);
      spec.groups[0].env[1].second = "$SLURM_PROCID";
      submit(spec);
      submit(spec);
      submit(part(2, 2));
      submit(part(3, 2));
    }
    CHECK_EQ(codes(), "");
  }
}

namespace {

struct RackFixture : AdviceFixture {
  // Nodes n1 to n4: two in each rack.
  void racks(bool labels, const std::vector<std::string>& levels) {
    ClusterConfig racks = watched({queue("a")});
    racks.topology_levels = levels;
    apply(racks);
    for (int n = 1; n <= 4; ++n) {
      NodeSpec spec = node("n" + std::to_string(n), 8);
      if (labels) spec.labels = {{"rack", n <= 2 ? "r1" : "r2"}, {"zone", "z"}};
      command(RegisterNode{spec});
    }
  }
};

}  // namespace

TEST_CASE_FIXTURE(RackFixture, "levels that nodes do not name, and names of nodes that are no levels") {
  SUBCASE("none names one") {
    racks(false, {"zone", "rack"});
    CHECK_EQ(codes(), "warning nodes-without-place; warning nodes-without-place");
    CHECK_NE(
        text().find("None of the 4 nodes says in which rack of `topology` it stands: a gang that requires one never "
                    "starts."),
        std::string::npos);
  }
  SUBCASE("some do not") {
    racks(true, {"zone", "rack"});
    CHECK_EQ(codes(), "");
    NodeSpec spec = node("n5", 8);
    spec.labels = {{"zone", "z"}};
    command(RegisterNode{spec});
    CHECK_EQ(codes(), "note nodes-without-place");
    CHECK_EQ(text(),
             "1 of the 5 nodes does not say in which rack of `topology` it stands: a gang that requires one does "
             "not go there.");
    command(ReportNodeStatus{"n5", NodeStatus::kLost, ""});
    CHECK_EQ(codes(), "");
  }
  SUBCASE("one node stands nowhere in particular") {
    ClusterConfig levels = watched({queue("a")});
    levels.topology_levels = {"rack"};
    apply(levels);
    nodes(1);
    CHECK_EQ(codes(), "");
    nodes(1, "m");
    CHECK_EQ(codes(), "warning nodes-without-place");
  }
  SUBCASE("labels of several values without a level; one value says nothing") {
    racks(true, {});
    CHECK_EQ(codes(), "note topology-not-configured");
    CHECK_EQ(text(),
             "Labels say where nodes stand (2 values of rack on 4 nodes), and no level is configured: gangs are "
             "not kept together and cannot ask for it.");
    CHECK_EQ(ask().items[0].remedy, "Configure `topology: [rack]`, outermost first.");
  }
  SUBCASE("nothing says where nodes stand") {
    racks(false, {});
    CHECK_EQ(codes(), "");
  }
}

TEST_CASE_FIXTURE(RackFixture, "gangs that ask for no topology stand in several racks though one could hold them") {
  racks(true, {"zone", "rack"});
  // One node of each rack is free.
  const JobId first = submit(job("a", 1, 8));
  submit(job("a", 1, 8));
  const JobId third = submit(job("a", 1, 8));
  submit(job("a", 1, 8));
  cycle();
  exit(first, 0);
  exit(third, 0);
  JobSpec gang = job("a", 2, 8);
  SUBCASE("cut in two") {
    const JobId cut = submit(gang);
    CHECK_EQ(codes(), "");  // it waits
    cycle();
    CHECK_EQ(nodes_of(cut), "n1 n3");
    CHECK_EQ(codes(), "warning gangs-cut-apart default");
    CHECK_EQ(text(),
             "Of 1 gang larger than a node that runs and asks for no `topology`, 1 stands in more than one rack, "
             "though one could hold it: job 5, in up to 2.");
    CHECK_EQ(ask().items[0].remedy,
             "State `topology: {required: rack}` in such jobs: they then wait for one rack that has room.");
  }
  SUBCASE("who prefers to be together has asked") {
    gang.topology.preferred = "rack";
    CHECK(submit(gang).valid());
    cycle();
    CHECK_EQ(codes(), "");
  }
  SUBCASE("who wants to be spread has asked, too") {
    gang.spread = true;
    CHECK(submit(gang).valid());
    cycle();
    CHECK_EQ(codes(), "");
  }
  SUBCASE("one that fits a node") {
    JobSpec small = job("a", 2, 4);
    small.groups[0].request.cpu_milli = 20'000;
    submit(job("a", 1, 4));
    submit(small);
    cycle();
    CHECK_EQ(codes(), "");
  }
}

TEST_CASE_FIXTURE(RackFixture, "a gang that no rack could hold is cut at that level in any case") {
  racks(true, {"zone", "rack"});
  const JobId gang = submit(job("a", 3, 8));
  cycle();
  CHECK_EQ(nodes_of(gang), "n1 n2 n3");
  CHECK_EQ(codes(), "");
}

TEST_CASE_FIXTURE(AdviceFixture, "leaf queues with jobs and without any quota, while another has jobs") {
  QueueConfig limited = queue("c");
  limited.max.gpu_milli = 8000;
  apply(watched({queue("a"), queue("b"), limited, guaranteed("d", 8), queue("d/t")}));
  nodes(2);
  submit(task("a", 8, 8));
  cycle();
  CHECK_EQ(codes(), "");
  submit(task("d/t", 8, 8));
  cycle();
  CHECK_EQ(codes(), "note queues-without-quota");
  CHECK_EQ(text(),
           "1 of 2 leaf queues with jobs has neither a guarantee nor a max on the way to the root: a. What "
           "runs there is borrowed and may be reclaimed, and nothing bounds it; 0 of their jobs wait.");
  submit(task("c", 8, 8));
  submit(task("b", 8, 8));
  CHECK_EQ(codes(), "warning queues-without-quota");
  CHECK_NE(text().find("2 of 4 leaf queues with jobs have"), std::string::npos);
  CHECK_NE(text().find("root: a and b. "), std::string::npos);
  CHECK_NE(text().find("1 of their jobs waits."), std::string::npos);
}

TEST_CASE_FIXTURE(AdviceFixture, "a user has most of a queue while others wait, and no limit per user holds") {
  QueueConfig parent = guaranteed("a", 8);
  apply(watched({parent, queue("a/t")}));
  nodes(1);
  submit(task("a/t", 6, 6, "ann"));
  submit(task("a/t", 2, 2, "bob"));
  cycle();
  CHECK_EQ(codes(), "");
  submit(task("a/t", 8, 8, "ann"));
  submit(task("a/t", 0, 64, "bob"));
  CHECK_EQ(codes(), "");  // her own job waits, and one without GPUs
  submit(task("a/t", 2, 2, "bob"));
  submit(task("a/t", 2, 2, "cid"));
  CHECK_EQ(codes(), "warning user-without-limit a/t");
  CHECK_EQ(text(),
           "ann has 6 of the 8 GPUs that the queue has, while 2 jobs of 2 other users wait, and no limit per user "
           "holds on the way to the root.");
  parent.max_gpu_milli_per_user = 4000;
  apply(watched({parent, queue("a/t")}));
  CHECK_EQ(codes(), "warning jobs-above-limit a");  // ann's job of 8 GPUs can never start below that limit
}

TEST_CASE_FIXTURE(AdviceFixture, "just half of a queue is not most of it") {
  apply(watched({queue("a")}));
  nodes(1);
  submit(task("a", 4, 4, "ann"));
  submit(task("a", 4, 4, "bob"));
  cycle();
  submit(task("a", 4, 4, "cid"));
  CHECK_EQ(codes(), "");
}

TEST_CASE_FIXTURE(AdviceFixture, "jobs wait in a queue of weight 0") {
  QueueConfig scavenger = queue("s");
  scavenger.weight = 0;
  apply(watched({scavenger}));
  CHECK_EQ(codes(), "");
  submit(task("s", 1, 1));
  now = now + 3'600'000;
  CHECK_EQ(codes(), "note weight-0-waits s");
  CHECK_EQ(text(), "1 job waits there, the first for 1h, and its weight is 0: it gets only what no other queue wants.");
  now = now + 86'400'000;
  CHECK_EQ(codes(), "warning weight-0-waits s");
  scavenger.guaranteed.gpu_milli = 0;
  apply(watched({scavenger}));
  CHECK_EQ(codes(), "note weight-0-waits s");
  CHECK_NE(text().find("beyond its guarantee it gets only"), std::string::npos);
  nodes(1);
  cycle();
  CHECK_EQ(codes(), "");
}

TEST_CASE_FIXTURE(AdviceFixture, "fragmentation is not watched, and not mended") {
  ClusterConfig unwatched = config({queue("a")});
  unwatched.scheduling.score = NodeScore::kBestFit;
  apply(unwatched);
  CHECK_EQ(codes(), "");
  NodeSpec without = node("c1", 0);
  command(RegisterNode{without});
  CHECK_EQ(codes(), "");  // there are no GPUs
  nodes(2);
  CHECK_EQ(codes(), "note fragmentation-not-watched");
  CHECK_EQ(text(),
           "No alert is set for fragmentation; now 16 of 16 GPUs are idle, and typical jobs cannot use 0 of them (0 % "
           "of all).");
  // Nobody asks anything but whole nodes, and of each half is in use.
  for (int i = 0; i < 3; ++i) submit(job("a", 1, 8));
  cycle();
  for (int i = 1; i <= 2; ++i) exit(JobId(static_cast<std::uint64_t>(i)), 0);
  command(CancelJob{JobId(3), "ann"});
  JobSpec half = job("a", 2, 4);
  half.spread = true;
  for (int i = 0; i < 60; ++i) command(CancelJob{submit(job("a", 1, 8)), "ann"});
  CHECK(submit(half).valid());
  cycle();
  CHECK_EQ(codes(), "warning fragmentation-not-watched; warning fragmentation-not-mended");
  CHECK_NE(text().find("now 8 of 16 GPUs are idle, and "), std::string::npos);
  unwatched.scheduling.fragmentation_alert_percent = 10;
  apply(unwatched);
  CHECK_EQ(codes(), "warning fragmentation-not-mended");
  CHECK_NE(ask().items[0].remedy.find("scheduling.score"), std::string::npos);
  unwatched.scheduling.score = NodeScore::kFragmentation;
  apply(unwatched);
  CHECK_EQ(ask().items[0].remedy.find("scheduling.score"), std::string::npos);
  unwatched.scheduling.consolidations_per_hour = 10;
  apply(unwatched);
  CHECK_EQ(codes(), "");
}

TEST_CASE_FIXTURE(AdviceFixture, "on one node no moves are advised") {
  ClusterConfig unwatched = config({queue("a")});
  unwatched.scheduling.fragmentation_alert_percent = 10;
  apply(unwatched);
  nodes(1);
  for (int i = 0; i < 60; ++i) command(CancelJob{submit(job("a", 1, 8)), "ann"});
  CHECK(submit(job("a", 1, 1)).valid());
  cycle();
  CHECK_GT(state.fragmentation().unusable_milli() * 10, state.capacity()[kDimGpu]);
  CHECK_EQ(codes(), "");
  command(RegisterNode{node("n2", 8)});
  CHECK_EQ(codes(), "warning fragmentation-not-mended");
  command(ReportNodeStatus{"n2", NodeStatus::kLost, ""});
  CHECK_EQ(codes(), "");
}

TEST_CASE_FIXTURE(AdviceFixture, "length and work are bounded, and what is left out is told") {
  std::vector<QueueConfig> queues;
  for (int i = 0; i < 25; ++i) {
    QueueConfig one = queue((i < 10 ? "q0" : "q") + std::to_string(i));
    one.max.gpu_milli = 9000;
    queues.push_back(one);
  }
  queues[24].max.cpu_milli = 65'000;
  apply(watched(queues));
  nodes(1);
  const AdviceReport report = ask();
  REQUIRE_EQ(report.items.size(), 10);
  CHECK_EQ(report.items[0].name, "q24");  // the heaviest
  CHECK_EQ(report.items[1].name, "q00");
  CHECK_EQ(report.items[9].name, "q08");
  REQUIRE_EQ(report.left_out.size(), 1);
  CHECK_EQ(report.left_out[0], std::pair(AdviceCode::kCeilingBoundsNothing, std::size_t{15}));
  CHECK(report.complete);
  submit(task("q00", 1, 60));
  CHECK_FALSE(ask({.jobs = 0}).complete);
  CHECK_FALSE(ask({.looks = 0}).complete);
  CHECK_EQ(codes_of(ask({.looks = 0})).find("asks-strand"), std::string::npos);
  CHECK_NE(codes().find("asks-strand"), std::string::npos);
  CHECK(ask().complete);
}

TEST_CASE_FIXTURE(AdviceFixture, "a guarantee that no day of a week has used is to be given back") {
  apply(watched({guaranteed("org", 40), guaranteed("org/a", 40), guaranteed("b", 8)}));
  nodes(6);
  const auto ask_of = [&](std::size_t days, std::int64_t busiest_gpus) {
    std::vector<explain::FloorUse> use{{"org/a", std::vector<std::int64_t>(days, 2000)},
                                       {"b", std::vector<std::int64_t>(days, 8000)}};
    use[0].milli_by_day.back() = busiest_gpus * 1000;
    const AdviceReport report = explain::advise(state, now, {}, {}, use);
    return codes_of(report) == "" ? std::string()
                                  : report.items[0].name + ": " + report.items[0].text + " " + report.items[0].remedy;
  };
  CHECK_EQ(ask_of(6, 2), "");
  CHECK_EQ(ask_of(8, 31), "");
  CHECK_EQ(ask_of(8, 18),
           "org/a: It is guaranteed 40 GPUs, of which its jobs used 4 in the mean of the last 8 days, and 18 on the "
           "busiest of them. Giving back 22 (`berth queue set org/a guaranteed.gpus=18`) frees 16060 GPU-hours a month "
           "for other queues.");
  PriceBook book{"EUR", {}};
  book.periods.emplace_back().gpus = {{"H100", 2'500'000, 3'000'000, {}}};
  command(ApplyPrices{book, "op"});
  CHECK_NE(ask_of(8, 18).find("saves 40150 EUR a month at the floor price, less what lending them earns."),
           std::string::npos);
}

TEST_CASE("equal states get equal advice, however they were come to") {
  std::set<AdviceCode> seen;
  for_each_step({.first = 7000, .end = 7030, .steps = 8, .arrivals = 3}, [&](Fleet& fleet) {
    const AdviceReport here = explain::advise(fleet.state, fleet.now, {});
    auto loaded = state::State::load(fleet.state.save());
    REQUIRE(loaded);
    const AdviceReport there = explain::advise(*loaded, fleet.now, {});
    CHECK_EQ(codes_of(here), codes_of(there));
    REQUIRE_EQ(here.items.size(), there.items.size());
    for (std::size_t i = 0; i < here.items.size(); ++i) {
      CHECK_EQ(here.items[i].text, there.items[i].text);
      seen.insert(here.items[i].code);
    }
  });
  CHECK_GE(seen.size(), 4);
}

TEST_CASE("every piece of advice is documented") {
  std::ifstream file("docs/advice.md");
  REQUIRE(file);
  std::ostringstream text;
  text << file.rdbuf();
  for (const std::string_view name : EnumNames<AdviceCode>::kNames) {
    CAPTURE(name);
    CHECK_NE(text.str().find("`" + std::string(name) + "`"), std::string::npos);
  }
  for (const std::string_view name : EnumNames<Pitfall>::kNames) {
    CAPTURE(name);
    CHECK_NE(text.str().find("`" + std::string(name) + "`"), std::string::npos);
  }
}

}  // namespace berth
