#include "model/document/job_document.h"

#include <doctest/doctest.h>

#include "base/random.h"

namespace berth::document {
namespace {

std::string job_refusal(const std::string& text) {
  const auto job = read_job(text, "job.yaml");
  return job ? "accepted" : job.error().message;
}

JobSpec read(const std::string& text) {
  auto job = read_job(text, "job.yaml");
  REQUIRE_MESSAGE(job.has_value(), job.error().message);
  return std::move(*job);
}

std::string random_word(Random& random) {
  static const std::vector<std::string> kWords = {"a",   "true",  "12",  "x y",  "", "-1",
                                                  "é\n", "\"q\"", "#no", "a: b", "~"};
  return kWords[random.below(kWords.size())];
}

std::vector<NodeRule> random_rules(Random& random) {
  std::vector<NodeRule> rules(1 + random.below(2));
  for (NodeRule& rule : rules) {
    rule.terms.resize(random.below(3));
    for (auto& term : rule.terms) {
      term.resize(random.below(3));
      for (NodeExpression& one : term) {
        one.op = static_cast<NodeOperator>(random.below(6));
        const bool lists = one.op == NodeOperator::kIn || one.op == NodeOperator::kNotIn;
        one.by_name = lists && random.chance(300);
        if (!one.by_name) one.key = "zone" + random_word(random);
        if (lists) one.values = {"a", "b" + random_word(random)};
        if (one.op == NodeOperator::kGreater || one.op == NodeOperator::kLess) one.values = {"-12"};
      }
    }
  }
  return rules;
}

TaskGroup random_group(Random& random) {
  TaskGroup group;
  group.count = static_cast<std::int32_t>(random.between(1, 9));
  if (random.chance(300)) group.min_count = static_cast<std::int32_t>(random.between(1, group.count));
  if (random.chance(600)) group.request.gpus = static_cast<std::int32_t>(random.between(1, 8));
  if (group.request.gpus == 1 && random.chance(500))
    group.request.gpu_milli = static_cast<std::int32_t>(random.between(1, 1000));
  if (group.request.gpus > 0 && random.chance(300)) group.request.gpu_models = {"H100", "A100"};
  group.request.cpu_milli = random.between(0, 64'000);
  group.request.memory_mib = random.between(0, 1'000'000);
  group.command = random.chance(500) ? std::vector<std::string>{"/bin/sh", "-c", random_word(random)}
                                     : std::vector<std::string>{"python3", random_word(random)};
  if (random.chance(400)) group.env = {{"B", random_word(random)}, {"A", random_word(random)}};
  if (random.chance(300)) group.workdir = "/srv/run";
  if (random.chance(200)) group.image = "registry:5000/x@sha256:0";
  group.launch = static_cast<Launch>(random.below(3));
  if (group.request.gpus == 0 && group.launch == Launch::kPerGpu) group.launch = Launch::kTorchrun;
  if (random.chance(300)) group.pool = "big";
  if (random.chance(300)) group.node_selector = {{"arch", "x86"}, {"zone", random_word(random)}};
  if (random.chance(300)) group.tolerations = {"spot"};
  if (random.chance(200)) group.tolerations = {"*:NoExecute", "team=a", "gpu=:NoSchedule"};
  if (random.chance(400)) group.node_rules = random_rules(random);
  if (random.chance(300)) group.topology = {"rack", random.chance(500) ? "node" : ""};
  if (random.chance(300)) group.numa = static_cast<NumaPolicy>(random.below(4));
  return group;
}

JobSpec random_job(Random& random) {
  JobSpec spec;
  spec.name = random_word(random);
  spec.queue = "research/nlp";
  if (random.chance(300)) spec.comment = random_word(random);
  if (random.chance(500)) spec.user = random_word(random);
  spec.kind = static_cast<JobKind>(random.below(4));
  spec.job_class = static_cast<JobClass>(random.below(4));
  if (random.chance(500)) spec.priority_class = "production";
  const std::uint64_t groups = 1 + random.below(3);
  for (std::uint64_t i = 0; i < groups; ++i) {
    spec.groups.push_back(random_group(random));
    if (groups > 1 || random.chance(200)) spec.groups.back().name = "g" + std::to_string(i);
  }
  if (random.chance(400)) spec.topology = {"rack", "block"};
  if (random.chance(300)) spec.labels = {{"app", random_word(random)}, {"tier", "front"}};
  if (random.chance(300)) spec.affinity = {{{{"app", random_word(random)}}, "node", random.chance(500)}};
  if (random.chance(300))
    spec.anti_affinity = {{{{"app", "x"}, {"tier", "front"}}, "rack", true}, {{{"app", "y"}}, "node", false}};
  if (random.chance(300)) spec.ports = {80, static_cast<std::int32_t>(random.between(81, kLastPort))};
  if (random.chance(400)) spec.time_limit_s = random.between(1, 10'000'000);
  if (random.chance(400)) spec.estimate_s = random.between(1, 10'000'000);
  if (random.chance(500)) spec.checkpoint = {true, static_cast<std::int32_t>(random.between(10, 15)), 45, 600};
  spec.retries = static_cast<std::int32_t>(random.below(4));
  if (random.chance(300))
    spec.dependencies = {
        {DependencyKind::kAfter, JobId(3)}, {DependencyKind::kAfterOk, JobId(1)}, {DependencyKind::kAfterOk, JobId(0)}};
  if (random.chance(300)) spec.deadline = Timestamp{random.between(0, 4'000'000'000'000)};
  if (random.chance(300)) spec.earliest_start = Timestamp{random.between(0, 4'000'000'000'000)};
  if (spec.deadline && spec.earliest_start && *spec.deadline <= *spec.earliest_start)
    spec.deadline = *spec.earliest_start + 1000;
  spec.held = random.chance(200);
  spec.exclusive = random.chance(200);
  spec.spread = random.chance(200);
  if (random.chance(300)) spec.array_size = 100, spec.array_running = static_cast<std::int32_t>(random.below(5));
  return spec;
}

}  // namespace

TEST_CASE("a job as it is written") {
  const JobSpec job = read(R"(name: bert
queue: research/nlp
class: training
priority: production
tasks: 4
min_tasks: 2
gpus: 8
gpu_models: [H100-SXM5-80GB]
cpus: 32
memory: 256GiB
command: [python3, train.py]
env: {EPOCHS: 3, DEBUG: no}
launch: per-gpu
topology: {required: rack}
time_limit: 2h
checkpoint: {on_signal: true, signal: SIGUSR1, grace: 2m}
retries: 3
afterok: [17, 18]
deadline: 2026-12-01T00:00:00Z
)");
  CHECK_EQ(job.name, "bert");
  CHECK_EQ(job.priority_class, "production");
  REQUIRE_EQ(job.groups.size(), 1);
  const TaskGroup& group = job.groups[0];
  CHECK_EQ(group.name, "main");
  CHECK_EQ(group.count, 4);
  CHECK_EQ(group.least(), 2);
  CHECK_EQ(group.request.gpus, 8);
  CHECK_EQ(group.request.gpu_milli, 1000);
  CHECK_EQ(group.request.cpu_milli, 32'000);
  CHECK_EQ(group.request.memory_mib, 256 * 1024);
  CHECK_EQ(group.env[1], std::pair<std::string, std::string>{"DEBUG", "no"});
  CHECK_EQ(group.launch, Launch::kPerGpu);
  CHECK_EQ(job.time_limit_s, 7200);
  CHECK_EQ(job.checkpoint.signal, 10);
  CHECK_EQ(job.checkpoint.grace_s, 120);
  CHECK_EQ(job.dependencies[1].job, JobId(18));
  CHECK_EQ(to_iso8601(*job.deadline), "2026-12-01T00:00:00.000Z");
}

TEST_CASE("a share of a GPU is one GPU in thousandths") {
  const TaskRequest request = read("{gpus: 0.25, command: [x]}").groups[0].request;
  CHECK_EQ(request.gpus, 1);
  CHECK_EQ(request.gpu_milli, 250);
}

TEST_CASE("a command in one line is run by the shell") {
  CHECK_EQ(read("command: sleep 1 && echo done\n").groups[0].command,
           std::vector<std::string>{"/bin/sh", "-c", "sleep 1 && echo done"});
}

TEST_CASE("CPUs and memory that are not stated follow the GPUs, and stated ones stay") {
  CHECK_EQ(read("command: x").groups[0].request.cpu_milli, kDefaultCpuMilli);
  CHECK_EQ(read("command: x").groups[0].request.memory_mib, kDefaultMemoryMib);
  CHECK_EQ(read("gpus: 4\n").groups[0].request.cpu_milli, 4 * kDefaultCpuMilli);
  CHECK_EQ(read("gpus: 4\n").groups[0].request.memory_mib, 4 * kDefaultMemoryMibPerGpu);
  CHECK_EQ(read("gpus: 0.5\n").groups[0].request.memory_mib, kDefaultMemoryMibPerGpu);
  CHECK_EQ(read("{gpus: 4, cpus: 0, memory: 0}").groups[0].request, TaskRequest{0, 0, 4, 1000, {}, ""});
}

TEST_CASE("several task groups, each with its own fields") {
  const JobSpec job = read("groups:\n  - {name: ps, tasks: 2, cpus: 4}\n  - {name: worker, tasks: 8, gpus: 1}\n");
  REQUIRE_EQ(job.groups.size(), 2);
  CHECK_EQ(job.groups[1].name, "worker");
  CHECK_EQ(job.groups[1].count, 8);
}

TEST_CASE("flags may be laid over a document") {
  auto tree = parse("queue: a\ngpus: 1\n", "job.yaml");
  REQUIRE(tree.has_value());
  tree->set("queue", string_node("b")).set("gpus", plain_node("two"));
  CHECK_EQ(read_job(*tree, "job.yaml").error().message,
           "job.yaml: gpus: 'two' is not an amount; give a number such as 8 or 0.5");
  tree->set("gpus", plain_node("2"));
  CHECK_EQ(read_job(*tree, "job.yaml")->queue, "b");
}

TEST_CASE("a bad job is refused with its place, its path and what would be right") {
  const std::vector<std::pair<std::string, std::string>> rows = {
      {"gpu: 8\n", "job.yaml:1:1: there is no key 'gpu'; did you mean 'gpus'?"},
      {"gpus: -1\n", "job.yaml:1:7: gpus: -1 is negative; give 0 or more"},
      {"gpus: 1.5\n",
       "job.yaml:1:7: gpus: 1.5 is neither whole GPUs nor a share of one; give 1, 2, ... or less than 1"},
      {"gpus: 17\n", "job.yaml:1:7: gpus: 17 is more than one node has; give at most 16 per task and more tasks"},
      {"gpus: \"1e3\"\n", "job.yaml:1:7: gpus: '1e3' is not an amount; give a number such as 8 or 0.5"},
      {"cpus: 9223372036854775\n",
       "job.yaml:1:7: cpus: 9223372036854775 is more than any node has; give at most 10000"},
      {"memory: 8k\n",
       "job.yaml:1:9: memory: '8k' has no binary unit; give KiB, MiB, GiB, TiB or PiB, such as 64GiB; did "
       "you mean KiB?"},
      {"tasks: 0\n", "job.yaml:1:8: tasks: 0 is out of range; give 1 to 65536"},
      {"tasks: 65537\n", "job.yaml:1:8: tasks: 65537 is out of range; give 1 to 65536"},
      {"tasks: 4\nmin_tasks: 5\n", "job.yaml:2:12: min_tasks: 5 is more than tasks 4; give at most that"},
      {"min_tasks: 5\n", "job.yaml:1:12: min_tasks: 5 is more than tasks 1; give at most that"},
      {"min_tasks: 0\n", "job.yaml:1:12: min_tasks: 0 is out of range; give 1 to 65536"},
      {"time_limit: 0s\n",
       "job.yaml:1:13: time_limit: 0 is no time; give one such as 10m or 2h, or leave it out for none"},
      {"time_limit: -5m\n", "job.yaml:1:13: time_limit: -5m is negative; give a time such as 90s, 10m, 2h or 3d"},
      {"time_limit: 60\n", "job.yaml:1:13: time_limit: '60' is not a time; give one such as 90s, 10m, 2h, 3d or 1h30m"},
      {"kind: gangs\n",
       "job.yaml:1:7: kind: 'gangs' is none of gang, service, array, interactive; did you mean 'gang'?"},
      {"hold: yes\n", "job.yaml:1:7: hold: 'yes' is neither true nor false; write true"},
      {"countables: {\"\": 1}\n",
       "job.yaml:1:13: countables: at most 64, in ascending order of their names, each from 1 to 1125899906842624"},
      {"countables: {cpu: 1}\n", "job.yaml:1:19: countables.cpu: 'cpu' is no countable; ask for it with cpus"},
      {"countables: {nvidia.com/gpu: 1}\n",
       "job.yaml:1:30: countables.nvidia.com/gpu: 'nvidia.com/gpu' is no countable; ask for it with gpus"},
      {"tolerations: [spot, spot]\n", "job.yaml:1:21: tolerations[1]: 'spot' is given twice; leave one out"},
      {"retries: -1\n", "job.yaml:1:10: retries: -1 is out of range; give 0 to 1000"},
      {"checkpoint: {signal: SIGKILL}\n",
       "job.yaml:1:22: checkpoint.signal: 'SIGKILL' is not a signal that a process can catch; give one such as SIGTERM "
       "or SIGUSR1"},
      {"checkpoint: true\n", "job.yaml:1:13: checkpoint: this is a single value; give a map (key: value)"},
      {"afterok: [x]\n",
       "job.yaml:1:11: afterok[0]: 'x' is not an integer; give decimal digits alone, without leading zeros"},
      {"deadline: tomorrow\n",
       "job.yaml:1:11: deadline: 'tomorrow' is not an instant; give one such as 2026-11-21T08:15:30Z"},
      {"deadline: never\n",
       "job.yaml:1:11: deadline: 'never' is not an instant; give one such as 2026-11-21T08:15:30Z"},
      {"env: {A: [1]}\n", "job.yaml:1:10: env.A: this is a list; give a string"},
      {"env: {A: }\n", "job.yaml:1:10: env.A: this is empty; give a string"},
      {"command: \"\"\n", "job.yaml:1:10: command: this is empty; give a line for the shell, or a list of words"},
      {"gpu_models: [H100]\n", "job.yaml:1:13: gpu_models: no GPUs are asked for; give gpus, or leave it out"},
      {"groups: [{gpus: 0, gpu_models: [H100]}]\n",
       "job.yaml:1:32: groups[0].gpu_models: no GPUs are asked for; give gpus, or leave it out"},
      {"command: {a: b}\n", "job.yaml:1:10: command: this is a map; give a list"},
      {"gpus: 1\ngroups: [{gpus: 1}]\n",
       "job.yaml:2:9: groups: the job also has fields of a task group beside it; move them into a group"},
      {"groups:\n  - gpus: 1\n  - {gpus: 1, min_tasks: 2}\n",
       "job.yaml:3:26: groups[1].min_tasks: 2 is more than tasks 1; give at most that"},
      {"groups: [{queue: a}]\n",
       "job.yaml:1:11: groups[0]: there is no key 'queue'; known are name, tasks, min_tasks, gpus, "
       "gpu_models, mig_profile, cpus, memory, countables, command, env, workdir, image, launch, pool, "
       "node_selector, node_rules, tolerations, numa, topology"},
      {"affinity: [{labels: {app: x}, weight: 3}]\n",
       "job.yaml:1:31: affinity[0]: there is no key 'weight'; known are labels, level, required"},
      {"anti_affinity: [{required: 1}]\n",
       "job.yaml:1:28: anti_affinity[0].required: '1' is neither true nor false; write true"},
      {"launch: per-gpu\n", "job.yaml:1:9: launch: per-gpu, but no GPUs are asked for; give gpus, or leave it out"},
      {"groups: [{gpus: 1, launch: per-gpu}, {launch: per-gpu}]\n",
       "job.yaml:1:47: groups[1].launch: per-gpu, but no GPUs are asked for; give gpus, or leave it out"},
      {"topology: {required: \"\"}\n",
       "job.yaml:1:22: topology.required: this is empty; give a level of the topology, or leave it out"},
      {"groups: [{name: a, topology: {preferred: \"\"}}]\n",
       "job.yaml:1:42: groups[0].topology.preferred: this is empty; give a level of the topology, or leave it out"},
      {"deadline: 2026-12-01T00:00:00Z\nearliest_start: 2026-12-01T00:00:00Z\n",
       "job.yaml:1:11: deadline: the job may not start before that; give a deadline after its earliest_start"},
      {"ports: [80, 0]\n", "job.yaml:1:13: ports[1]: 0 is out of range; give 1 to 65535"},
      {"ports: [http]\n",
       "job.yaml:1:9: ports[0]: 'http' is not an integer; give decimal digits alone, without leading zeros"},
      {"ports: [80, 443, 80]\n", "job.yaml:1:18: ports[2]: 80 is given twice; leave one out"},
      {"comment: " + std::string(1025, 'x') + "\n", "job.yaml:1:10: comment: this has 1025 bytes; give at most 1024"},
      {"array: {size: 0}\n", "job.yaml:1:15: array.size: 0 is out of range; give 1 to 1000000"},
      {"just text\n", "job.yaml:1:1: this is a single value; give a map (key: value)"},
      {"", "job.yaml:1:1: this is empty; give a map (key: value)"},
  };
  for (const auto& row : rows) {
    CAPTURE(row.first);
    CHECK_EQ(job_refusal(row.first), row.second);
  }
}

TEST_CASE("of countables and node rules a job has so many and no more") {
  const auto countables = [](std::size_t count) {
    std::string text = "countables:\n";
    for (std::size_t i = 0; i < count; ++i) text += "  example.com/c" + std::to_string(i) + ": 1\n";
    return read_job(text, "job.yaml");
  };
  CHECK(countables(kMaxCountables));
  CHECK_EQ(countables(kMaxCountables + 1).error().message,
           "job.yaml:2:3: countables: at most 64, in ascending order of their names, each from 1 to 1125899906842624");
  const auto rules = [](std::size_t count) {
    std::string text = "node_rules:\n";
    for (std::size_t i = 0; i < count; ++i) text += "  - zone=z" + std::to_string(i) + "\n";
    return read_job(text, "job.yaml");
  };
  CHECK(rules(kMaxNodeRules));
  CHECK_EQ(rules(kMaxNodeRules + 1).error().message, "job.yaml:2:3: node_rules: there are more than 128 rules");
}

TEST_CASE("all mistakes of a job are told at once, without those that follow from others") {
  CHECK_EQ(job_refusal(R"(queue: a
groups:
  - {name: w, tasks: 0, min_tasks: 2, gpus: x, gpu_models: [H100]}
  - {name: v, tasks: 1, min_tasks: 2}
hold: maybe
time_limt: 2h
)"),
           "job.yaml:3:22: groups[0].tasks: 0 is out of range; give 1 to 65536\n"
           "job.yaml:3:45: groups[0].gpus: 'x' is not an amount; give a number such as 8 or 0.5\n"
           "job.yaml:4:36: groups[1].min_tasks: 2 is more than tasks 1; give at most that\n"
           "job.yaml:5:7: hold: 'maybe' is neither true nor false; give one of them\n"
           "job.yaml:6:1: there is no key 'time_limt'; did you mean 'time_limit'?");
}

TEST_CASE("labels, terms and the levels of groups") {
  const JobSpec job = read(R"(labels: {tier: front, app: web}
affinity: [{labels: {app: cache}, level: rack}]
anti_affinity: [{labels: {tier: front, app: web}, level: node, required: false}]
topology: {required: block}
groups:
  - {name: a, command: [x], topology: {required: rack, preferred: node}}
  - {name: b, command: [x]}
)");
  CHECK(job.labels == Labels{{"app", "web"}, {"tier", "front"}});
  CHECK(job.affinity == std::vector<AffinityTerm>{{{{"app", "cache"}}, "rack", true}});
  CHECK(job.anti_affinity == std::vector<AffinityTerm>{{{{"app", "web"}, {"tier", "front"}}, "node", false}});
  CHECK(job.groups[0].topology == TopologyConstraint{"rack", "node"});
  CHECK(job.groups[1].topology == TopologyConstraint());
}

TEST_CASE("any job reads back from its YAML and from its JSON") {
  Random random(21);
  for (int i = 0; i < 1500; ++i) {
    const JobSpec spec = random_job(random);
    const std::string yaml = job_to_yaml(spec);
    CAPTURE(yaml);
    CHECK(read(yaml) == spec);
    CHECK(read(to_json_text(job_node(spec))) == spec);
  }
}

}  // namespace berth::document
