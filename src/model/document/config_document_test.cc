#include "model/document/config_document.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "base/random.h"
#include "model/document/admission_document.h"

namespace berth::document {
namespace {

// Returns the error of reading the text, or "accepted". A text without `queues` gets a valid one.
std::string config_refusal(std::string text) {
  if (text.find("queues:") == std::string::npos) text += "queues: {default: {}}\n";
  const auto config = read_config(text, "cluster.yaml");
  return config ? "accepted" : config.error().message;
}

ResourceAmounts random_amounts(Random& random, std::int64_t most) {
  ResourceAmounts amounts;
  if (random.chance(500)) amounts.gpu_milli = random.between(0, most);
  if (random.chance(500)) amounts.cpu_milli = random.between(0, most);
  if (random.chance(500)) amounts.memory_mib = random.between(0, most);
  if (random.chance(300)) amounts.model_gpu_milli.emplace_back("H100", random.between(0, most));
  if (random.chance(300)) amounts.model_gpu_milli.emplace_back("a.b_c-9", random.between(0, most));
  return amounts;
}

EvictionTermsConfig random_terms(Random& random) {
  EvictionTermsConfig terms;
  if (random.chance(500)) terms.min_runtime_s = random.between(0, 99'999);
  if (random.chance(500)) terms.cooldown_s = random.between(0, 99'999);
  if (random.chance(500)) terms.grace_s = random.between(0, 99'999);
  if (random.chance(500)) terms.evictions_per_hour = random.between(0, kMostEvictionsPerHour);
  return terms;
}

void add_queues(Random& random, ClusterConfig& config, const std::string& parent, int depth) {
  for (std::uint64_t n = random.below(4) + (depth == 0 ? 1 : 0); n > 0; --n) {
    QueueConfig queue;
    queue.path = parent + "q" + std::to_string(n);
    if (depth == 0) queue.guaranteed = random_amounts(random, 100'000);
    queue.max = random_amounts(random, 100'000);
    for (auto* amount : {&queue.max.gpu_milli, &queue.max.cpu_milli, &queue.max.memory_mib}) {
      if (*amount) **amount += 200'000;
    }
    for (auto& [model, amount] : queue.max.model_gpu_milli) amount += 200'000;
    queue.lending_limit = random_amounts(random, 100'000);
    queue.weight = random.chance(500) ? 1 : random.between(0, 9);
    if (random.chance(300)) queue.trust_domain = "domain-" + std::to_string(random.below(3));
    if (random.chance(300)) queue.policy = QueuePolicy::kStrict;
    if (random.chance(200)) queue.attained_service = {{random.between(1, 9), random.between(10, 99'999)}, 3600};
    const bool states = queue.guaranteed != ResourceAmounts();
    if (states && random.chance(300)) queue.guarantee_decay_s = random.between(1, 999'999);
    if (random.chance(300)) queue.eviction = random_terms(random);
    config.queues.push_back(queue);
    if (depth < 3 && !queue.attained_service) add_queues(random, config, queue.path + "/", depth + 1);
  }
}

ClusterConfig random_config(Random& random) {
  ClusterConfig config;
  config.name = "demo-" + std::to_string(random.below(9));
  config.gpu_models = {{"H100", random.between(1, 3000), random.between(0, 100'000)}, {"a.b_c-9", 500, 0}};
  if (random.chance(700)) config.pools = {{"default", {}}, {"big", {"q1"}}};
  if (random.chance(300)) config.roles = {{"group:corp:nlp", Role::kLead, ""}, {"user:ada", Role::kAdmin, ""}};
  if (config.pools.size() > 1) {
    if (random.chance(300)) config.pools[1].gpu_levels = {GpuLevel::kWhole, GpuLevel::kTimeSlice};
    if (random.chance(300)) config.pools[1].classes = {JobClass::kInference, JobClass::kDev};
    config.pools[1].burst = random.chance(300);
    if (random.chance(500)) config.pools[1].trust_domain_isolation = "node";
  }
  if (random.chance(500)) config.topology_levels = {"zone", "block", "rack"};
  if (random.chance(700)) config.priority_classes = {{"high", 1000, false}, {"low", -5, true}};
  if (random.chance(500)) {
    config.scheduling = {600, 45, 3, 17, false, true, 0, 600, NodeScore::kFragmentation, 30, 90, 7200};
  }
  config.gpu_models[0].watts = random.chance(500) ? random.between(1, 1000) : 0;
  if (random.chance(500)) config.gpu_models[0].idle_watts = random.between(0, config.gpu_models[0].watts);
  config.scheduling.energy = random.chance(300);
  add_queues(random, config, "", 0);
  return config;
}

}  // namespace

TEST_CASE("a GPU model may have the name of a resource, and a queue may state it") {
  const auto config = read_config(R"(gpu_models: {nvidia.com/mig-1g.10gb: {weight: 0.14}}
queues: {dev: {max: {gpus.nvidia.com/mig-1g.10gb: 14}}}
)",
                                  "cluster.yaml");
  REQUIRE_MESSAGE(config.has_value(), config.error().message);
  CHECK_EQ(config->gpu_models[0].name, "nvidia.com/mig-1g.10gb");
  CHECK_EQ(config->gpu_models[0].weight_permille, 140);
  CHECK_FALSE(read_config("gpu_models: {a/b/c: {weight: 1}}\n", "cluster.yaml"));
}

TEST_CASE("a configuration as it is written") {
  const auto config = read_config(R"(cluster: demo
gpu_models: {H100-SXM5-80GB: {weight: 1.0, memory: 80GiB}}
pools: [{name: default, queues: [research]}]
topology: [zone, block, rack]
priority_classes: {production: 1000, training: {value: 500, default: true}, dev: 100}
queues:
  research:
    guaranteed: {gpus: 20000, cpus: 100000, memory: 2TiB, "gpus.H100-SXM5-80GB": 100}
    max: {gpus: 30000}
    weight: 2
    lending_limit: {gpus: 1000}
    trust_domain: research
    policy: strict
    queues:
      nlp: {guaranteed: {gpus: 0.5}}
      vision:
scheduling: {min_runtime: 10m, grace: 30s, backfill_reservations: 2, reclaim: true, preempt: false}
)",
                                  "cluster.yaml");
  REQUIRE_MESSAGE(config.has_value(), config.error().message);
  CHECK_EQ(config->name, "demo");
  CHECK_EQ(config->gpu_models[0].memory_mib, 80 * 1024);
  CHECK_EQ(config->gpu_models[0].weight_permille, 1000);
  CHECK_EQ(config->pools[0].queues[0], "research");
  CHECK_EQ(config->topology_levels[2], "rack");
  CHECK_EQ(config->priority_classes[1].value, 500);
  CHECK(config->priority_classes[1].global_default);
  REQUIRE_EQ(config->queues.size(), 3);
  const QueueConfig& research = config->queues[0];
  CHECK_EQ(research.guaranteed.gpu_milli, 20'000'000);
  CHECK_EQ(research.guaranteed.memory_mib, 2 * 1024 * 1024);
  CHECK_EQ(research.guaranteed.model_gpu_milli[0].second, 100'000);
  CHECK_EQ(research.policy, QueuePolicy::kStrict);
  CHECK_EQ(config->queues[1].path, "research/nlp");
  CHECK_EQ(config->queues[1].guaranteed.gpu_milli, 500);
  CHECK_EQ(config->queues[2].path, "research/vision");
  CHECK_EQ(config->scheduling.min_runtime_s, 600);
  CHECK_EQ(config->scheduling.backfill_reservations, 2);
  CHECK_FALSE(config->scheduling.preempt);
}

TEST_CASE("a queue may order its jobs by what they have had") {
  const auto config =
      read_config("queues: {a: {attained_service: {thresholds: [24h, 10d], promote_after: 60h}}}\n", "cluster.yaml");
  REQUIRE(config.has_value());
  const AttainedServiceConfig order{{86'400, 864'000}, 216'000};
  CHECK(config->queues[0].attained_service == order);
  const auto refused = [](const std::string& thresholds, const std::string& below) {
    const auto read =
        read_config("queues: {a: {attained_service: {thresholds: " + thresholds + "}" + below + "}}\n", "c");
    return read ? "" : read.error().message;
  };
  CHECK_NE(refused("[]", "").find("thresholds must be 1 to 8"), std::string::npos);
  CHECK_NE(refused("[2h, 1h]", "").find("must rise"), std::string::npos);
  CHECK_NE(refused("[0s]", "").find("must rise"), std::string::npos);
  CHECK_NE(refused("[1h]", ", queues: {b: {}}").find("this one has queues below it"), std::string::npos);
}

TEST_CASE("a pool may be for some classes, or back no guarantee; a guarantee may be lost that is not used") {
  const auto config = read_config(R"(pools: [{name: online, classes: [inference, dev]}, {name: spot, burst: true}]
queues: {a: {guaranteed: {gpus: 8}, guarantee_decay: 7d}}
)",
                                  "cluster.yaml");
  REQUIRE_MESSAGE(config.has_value(), config.error().message);
  CHECK(config->pools[0].classes == std::vector{JobClass::kInference, JobClass::kDev});
  CHECK_FALSE(config->pools[0].burst);
  CHECK(config->pools[1].burst);
  CHECK_EQ(config->queues[0].guarantee_decay_s, 7 * 86'400);
  CHECK_NE(config_refusal("pools: [{name: p, classes: []}]\n").find("classes is empty"), std::string::npos);
  CHECK_NE(config_refusal("pools: [{name: p, classes: [fun]}]\n").find("fun"), std::string::npos);
  CHECK_NE(config_refusal("pools: [{name: p, classes: [dev, dev]}]\n").find("listed twice"), std::string::npos);
  CHECK_NE(config_refusal("queues: {a: {guarantee_decay: 7d}}\n").find("1:31: queue 'a'.guarantee_decay"),
           std::string::npos);
}

TEST_CASE("what is not mentioned is as in the default configuration") {
  const auto config = read_config("queues: {default: {}}\n", "cluster.yaml");
  REQUIRE(config.has_value());
  CHECK(*config == default_cluster_config());
}

TEST_CASE("a role without a queue, or at /, is one at the root") {
  const auto roles = [](const std::string& text) {
    const auto config = read_config(text + "queues: {default: {}}\n", "berth.yaml");
    REQUIRE(config.has_value());
    return config->roles;
  };
  const std::vector<RoleBinding> root = {{"token:prometheus", Role::kMetrics, ""}};
  CHECK(roles("roles: [{subject: \"token:prometheus\", role: metrics}]\n") == root);
  CHECK(roles("roles: [{subject: \"token:prometheus\", role: metrics, queue: /}]\n") == root);
}

TEST_CASE("a bad configuration is refused with its place, its path and what would be right") {
  const std::string deep = [] {
    std::string text = "queues: ";
    for (int i = 0; i < 40; ++i) text += "{a: {queues: ";
    return text + "{}" + std::string(80, '}') + "\n";
  }();
  const std::vector<std::pair<std::string, std::string>> rows = {
      {"", "accepted"},
      {"[queues:]\n", "cluster.yaml:1:1: this is a list; give a map (key: value)"},
      {"quues: {}\n", "cluster.yaml:1:1: there is no key 'quues'; did you mean 'queues'?"},
      {"zzz: {}\n",
       "cluster.yaml:1:1: there is no key 'zzz'; known are cluster, gpu_models, pools, topology, "
       "priority_classes, queues, scheduling, roles, admission, volumes, secrets, default_image, shell"},
      {"cluster: [a]\n", "cluster.yaml:1:10: cluster: this is a list; give a string"},
      {"cluster: ../x\n",
       "cluster.yaml:1:10: cluster: '../x' is not a name; use 1-63 letters, digits, '-', '_' or "
       "'.', starting and ending with a letter or digit"},
      {"queues: {}\n", "cluster.yaml:1:9: queues is empty; at least one queue is needed to submit to"},
      {"queues: {a: {max: {gpus: -3}}}\n", "cluster.yaml:1:26: queues.a.max.gpus: -3 is negative; give 0 or more"},
      {"queues:\n  a:\n    queues:\n      b: {max: {gpus: 1e3}}\n",
       "cluster.yaml:4:23: queues.a/b.max.gpus: '1e3' is not an amount; give a number such as 8 or 0.5"},
      {"queues: {a: {max: {gpus: 0.0001}}}\n",
       "cluster.yaml:1:26: queues.a.max.gpus: 0.0001 is finer than a thousandth; give at most three decimals"},
      {"queues: {a: {max: {gpus: 9223372036854775808}}}\n",
       "cluster.yaml:1:26: queues.a.max.gpus: 9223372036854775808 is too large"},
      {"queues: {a: {max: {gpus: 9007199254740}}}\n",
       "cluster.yaml:1:20: queue 'a'.max.gpus is too large; the most is 1125899906842.624"},
      {"gpu_models: {H: {memory: 0GiB}}\n",
       "cluster.yaml:1:26: gpu_models.H.memory: no GPU has 0 GiB; give what it has, or leave it out"},
      {"queues: {a: {max: {memory: 64GB}}}\n",
       "cluster.yaml:1:28: queues.a.max.memory: '64GB' has no binary unit; give KiB, MiB, GiB, TiB or PiB, such as "
       "64GiB; did you mean GiB?"},
      {"queues: {a: {max: {gpu: 1}}}\n",
       "cluster.yaml:1:20: queues.a.max: there is no key 'gpu'; did you mean 'gpus'?"},
      {"queues: {a: {max: {gpus.H100: 1}}}\n",
       "cluster.yaml:1:20: queue 'a'.max.gpus.H100: no such GPU model; list it under gpu_models"},
      {"queues: {a: {guaranteed: {gpus: 5}, max: {gpus: 3}}}\n",
       "cluster.yaml:1:27: queue 'a': guaranteed gpus 5 is above its max 3"},
      {"queues:\n  a:\n    guaranteed:\n      gpus: 10\n    queues:\n      b: {guaranteed: {gpus: 6}}\n"
       "      c: {guaranteed: {gpus: 4.5}}\n",
       "cluster.yaml:4:7: queue 'a': guarantees of its children sum to gpus 10.5, above its own 10; raise it or lower "
       "theirs"},
      {"queues: {a: {}, a: {}}\n", "cluster.yaml:1:17: 'a' is given twice; keep one"},
      {"queues: {a/b: {}}\n",
       "cluster.yaml:1:10: queues.a/b: 'a/b' is not a name; use 1-63 letters, digits, '-', '_' "
       "or '.', starting and ending with a letter or digit"},
      {"queues: {\"<script>\": {}}\n",
       "cluster.yaml:1:10: queues.<script>: '<script>' is not a name; use 1-63 letters, digits, '-', '_' or '.', "
       "starting and ending with a letter or digit"},
      {"queues: {\"n\xc4\xb1p\": {}}\n",
       "cluster.yaml:1:10: queues.n\xc4\xb1p: 'n\xc4\xb1p' is not a name; use 1-63 letters, digits, '-', '_' or '.', "
       "starting and ending with a letter or digit"},
      {"queues: {a: {parent: a}}\n",
       "cluster.yaml:1:14: queues.a: there is no key 'parent'; known are guaranteed, max, lending_limit, moved_from, "
       "returns, "
       "weight, "
       "trust_domain, policy, max_jobs_per_user, max_gpus_per_user, max_submitted_per_user, "
       "attained_service, guarantee_decay, eviction, budget, grant, admission, volumes, secrets, default_image, "
       "shell, queues"},
      {"queues: {a: {grant: {gpu_hours: 5, from: 2026-12-01, until: 2026-11-01}}}\n",
       "cluster.yaml:1:61: queue 'a'.grant.until: 2026-11-01T00:00:00.000Z lies not after from; a grant ends after it "
       "begins"},
      {"queues: {a: {grant: {gpu_hours: 5, money: 5, from: 2026-11-01, until: 2026-12-01}}}\n",
       "cluster.yaml:1:21: queues.a.grant: a grant is money or gpu_hours, not both; leave one out"},
      {"queues: {a: {grant: {from: 2026-11-01, until: 2026-12-01}}}\n",
       "cluster.yaml:1:21: queues.a.grant: a grant needs money or gpu_hours, such as gpu_hours: 20000"},
      {"queues: {a: {grant: {gpu_hours: 5, from: 2026-11-01}}}\n",
       "cluster.yaml:1:21: queues.a.grant: until is missing; a grant has an end: {from: 2026-11-01, until: "
       "2027-03-01}"},
      {"queues: {a: {grant: {gpu_hours: -5, from: 2026-11-01, until: 2026-12-01}}}\n",
       "cluster.yaml:1:33: queues.a.grant.gpu_hours: -5 is negative; give 0 or more"},
      {"queues: {a: {grant: {gpu_hours: 0, from: 2026-11-01, until: 2026-12-01}}}\n",
       "cluster.yaml:1:33: queues.a.grant.gpu_hours: it is more than 0; to let nothing run, set max to 0"},
      {"queues: {a: {grant: {gpu_hours: 99999999999999999999, from: 2026-11-01, until: 2026-12-01}}}\n",
       "cluster.yaml:1:33: queues.a.grant.gpu_hours: 99999999999999999999 is too large"},
      {"queues: {a: {grant: {gpu_hours: 5, from: 2026-11-31, until: 2026-12-01}}}\n",
       "cluster.yaml:1:42: queues.a.grant.from: '2026-11-31' is not an instant; give one such as 2026-11-21T08:15:30Z"},
      {"queues: {a: {budget: {gpu_hours: 5, until: 2026-12-01}}}\n",
       "cluster.yaml:1:37: queues.a.budget: there is no key 'until'; known are money, gpu_hours, when_used_up"},
      {"queues: {a: {admission: {r: {mode: dryrun, digest: true}}}}\n",
       "cluster.yaml:1:36: queues.a.admission.r.mode: 'dryrun' is none of enforce, warn, dry-run; did you mean "
       "'dry-run'?"},
      {"queues: {a: {admission: {r: {max_time: 0s}}}}\n",
       "cluster.yaml:1:40: queues.a.admission.r.max_time: 0 is no time; give one such as 7d, or leave it out"},
      {"queues: {a: {}}\nadmission: {r: {}}\n",
       "cluster.yaml:2:13: admission: rule 'r': it asks for nothing; give images, digest, max_gpus, max_time, "
       "checkpoint, forbid, use, host_paths or labels"},
      {"queues: {a: {use_or_lose: 7d}}\n", "cluster.yaml:1:14: queues.a: 'use_or_lose' is now 'guarantee_decay'"},
      {"queues: {a: {apart: node}}\n",  // trust_domain_isolation is a key of pools
       "cluster.yaml:1:14: queues.a: there is no key 'apart'; known are guaranteed, max, lending_limit, moved_from, "
       "returns, "
       "weight, "
       "trust_domain, policy, max_jobs_per_user, max_gpus_per_user, max_submitted_per_user, "
       "attained_service, guarantee_decay, eviction, budget, grant, admission, volumes, secrets, default_image, "
       "shell, queues"},
      {"pools: [{name: a, apart: node}]\n", "cluster.yaml:1:19: pools[0]: 'apart' is now 'trust_domain_isolation'"},
      {"scheduling: {holds: 1}\n", "cluster.yaml:1:14: scheduling: 'holds' is now 'backfill_reservations'"},
      {"scheduling: {hold_after: 1d}\n", "cluster.yaml:1:14: scheduling: 'hold_after' is now 'backfill_after'"},
      {"scheduling: {mass_loss: 5}\n", "cluster.yaml:1:14: scheduling: 'mass_loss' is now 'max_unreachable_percent'"},
      {"scheduling: {moves_per_hour: 5}\n",
       "cluster.yaml:1:14: scheduling: 'moves_per_hour' is now 'consolidations_per_hour'"},
      {"queues: {a: {weight: -1}}\n", "cluster.yaml:1:22: queues.a.weight: -1 is out of range; give 0 to 1000000"},
      {"queues: {a: {weight: 1.5}}\n",
       "cluster.yaml:1:22: queues.a.weight: '1.5' is not an integer; give decimal digits alone, without leading zeros"},
      {"queues: {a: {policy: strickt}}\n",
       "cluster.yaml:1:22: queues.a.policy: 'strickt' is none of best-effort, strict; did you mean 'strict'?"},
      {deep, "cluster.yaml:1:416: nested more than 64 levels deep"},
      {"scheduling: {reclaim: no}\n",
       "cluster.yaml:1:23: scheduling.reclaim: 'no' is neither true nor false; write false"},
      {"scheduling: {reclaim: \"true\"}\n",
       "cluster.yaml:1:23: scheduling.reclaim: \"true\" is a string; write true without quotes"},
      {"scheduling: {grace: 30}\n",
       "cluster.yaml:1:21: scheduling.grace: '30' is not a time; give one such as 90s, 10m, 2h, 3d or 1h30m"},
      {"scheduling: {grace: 367d}\n", "cluster.yaml:1:14: scheduling.grace must be between 0s and 365d"},
      {"scheduling: {backfill_reservations: 3, backfill_after: 367d}\n",
       "cluster.yaml:1:40: scheduling.backfill_after must be between 0s and 365d"},
      {"scheduling: {backfill_reservations: 2147483648}\n",
       "cluster.yaml:1:37: scheduling.backfill_reservations: 2147483648 is out of range; give 0 to 1000"},
      {"priority_classes: {a: 2147483648}\n",
       "cluster.yaml:1:23: priority_classes.a: 2147483648 is out of range; give -1000000 to 1000000000"},
      {"priority_classes: {a: {value: 1000000001}}\n",
       "cluster.yaml:1:31: priority_classes.a.value: 1000000001 is out of range; give -1000000 to 1000000000"},
      {"priority_classes: {a: {default: true}}\n",
       "cluster.yaml:1:23: priority_classes.a: a priority class needs a value, such as 500"},
      {"priority_classes: {a: {value: 1, default: true}, b: {value: 2, default: true}}\n",
       "cluster.yaml:1:19: more than one priority class is the global default; keep one"},
      {"gpu_models: {H100: {watts: 0}}\n",
       "cluster.yaml:1:28: gpu_models.H100.watts: 0 is out of range; give 1 to 100000"},
      {"gpu_models: {H100: {watts: -7}}\n",
       "cluster.yaml:1:28: gpu_models.H100.watts: -7 is out of range; give 1 to 100000"},
      {"gpu_models: {H100: {watts: 70.5}}\n",
       "cluster.yaml:1:28: gpu_models.H100.watts: '70.5' is not an integer; give decimal digits alone, without leading "
       "zeros"},
      {"gpu_models: {H100: {watts: 70, idle_watts: 71}}\n",
       "cluster.yaml:1:32: gpu model 'H100': idle_watts is above its watts; an idle GPU draws no more"},
      {"gpu_models: {H100: {idle_watts: 7}}\n",
       "cluster.yaml:1:21: gpu model 'H100': idle_watts is above its watts; an idle GPU draws no more"},
      {"gpu_models: {H100: {weight: 0}}\n",
       "cluster.yaml:1:21: gpu model 'H100': weight must be between 0.001 and 1000"},
      {"gpu_models: {H100: {weight: .nan}}\n",
       "cluster.yaml:1:29: gpu_models.H100.weight: '.nan' is not an amount; give a number such as 8 or 0.5"},
      {"pools: [{burst: true}]\n", "cluster.yaml:1:9: pools[0]: a pool needs a name"},
      {"pools: [{name: a}, {name: a}]\n", "cluster.yaml:1:20: pools[1]: pool 'a' is listed twice; keep one"},
      {"pools: [{name: a, queues: [zz]}]\nqueues: {a: {}}\n", "cluster.yaml:1:28: pool 'a': no such queue 'zz'"},
      {"pools: [{name: a, queues: [b, b]}]\nqueues: {b: {}}\n",
       "cluster.yaml:1:9: pool 'a': queue 'b' is listed twice; keep one"},
      {"queues: {a: {guaranteed: {gpus: 1}, guarantee_decay: 0s}}\n",
       "cluster.yaml:1:54: queues.a.guarantee_decay: 0 is no time; give one such as 7d, or leave it out for never"},
      {"queues: {a: {eviction: {min_runtime: -1s}}}\n",
       "cluster.yaml:1:38: queues.a.eviction.min_runtime: -1s is negative; give a time such as 90s, 10m, 2h or 3d"},
      {"queues: {a: {queues: {b: {eviction: {grace: 30s, cooldown: 366d}}}}}\n",
       "cluster.yaml:1:50: queue 'a/b'.eviction.cooldown must be between 0s and 365d"},
      {"queues: {a: {eviction: {evictions_per_hour: -1}}}\n",
       "cluster.yaml:1:45: queues.a.eviction.evictions_per_hour: -1 is out of range; give 0 to 100000"},
      {"queues: {a: {eviction: {evictions_per_hour: 100001}}}\n",
       "cluster.yaml:1:45: queues.a.eviction.evictions_per_hour: 100001 is out of range; give 0 to 100000"},
      {"queues: {a: {eviction: {min_run: 1h}}}\n",
       "cluster.yaml:1:25: queues.a.eviction: there is no key 'min_run'; known are min_runtime, cooldown, grace, "
       "evictions_per_hour"},
      {"queues: {a: {eviction: 2h}}\n",
       "cluster.yaml:1:24: queues.a.eviction: this is a single value; give a map (key: value)"},
      {"pools: [{name: a, queues: []}]\nqueues: {b: {}}\n",
       "cluster.yaml:1:27: pools[0].queues: queues is empty, so that nobody could use the pool; leave it out for all"},
      {"pools: [{name: a, trust_domain_isolation: \"\"}]\nqueues: {b: {}}\n",
       "cluster.yaml:1:43: pools[0].trust_domain_isolation: '' is not a name; use 1-63 letters, digits, '-', '_' or "
       "'.', starting and "
       "ending with a letter or digit"},
      {"queues: {b: {}}\ntopology: [rack, node]\n",
       "cluster.yaml:2:18: topology level 'node' is always there; leave it out"},
      {"topology: [rack, rack]\n", "cluster.yaml:1:18: topology[1]: level 'rack' is listed twice; keep one"},
      {"topology: rack\n", "cluster.yaml:1:11: topology: this is a single value; give a list"},
  };
  for (const auto& row : rows) {
    CAPTURE(row.first);
    CHECK_EQ(config_refusal(row.first), row.second);
  }
}

TEST_CASE("all mistakes of a configuration are told at once, in the order of the text") {
  CHECK_EQ(config_refusal(R"(gpu_models: {H100-SXM5: {wieght: 1}, A100: {watts: 0}}
pools:
  - {name: default, queues: [reserch, research]}
  - {name: big, burst: yes, queues: [adds]}
queues:
  research:
    guaranteed: {gpus: 8, gpus.H100-SMX5: 4}
    max: {gpus: 4}
    weight: -1
  ads: {max: {cpus: -1}}
  old: {guaranteed: {gpus: 9}, max: {gpus: 8}}
scheduling: {grace: 30, reclaim: on}
)"),
           "cluster.yaml:1:26: gpu_models.H100-SXM5: there is no key 'wieght'; did you mean 'weight'?\n"
           "cluster.yaml:1:52: gpu_models.A100.watts: 0 is out of range; give 1 to 100000\n"
           "cluster.yaml:4:24: pools[1].burst: 'yes' is neither true nor false; write true\n"
           "cluster.yaml:9:13: queues.research.weight: -1 is out of range; give 0 to 1000000\n"
           "cluster.yaml:10:21: queues.ads.max.cpus: -1 is negative; give 0 or more\n"
           "cluster.yaml:11:22: queue 'old': guaranteed gpus 9 is above its max 8\n"
           "cluster.yaml:12:21: scheduling.grace: '30' is not a time; give one such as 90s, 10m, 2h, 3d or 1h30m\n"
           "cluster.yaml:12:34: scheduling.reclaim: 'on' is neither true nor false; write true");
}

TEST_CASE("what names a GPU model or a queue that is nearly there gets it as a hint, and every rule its own line") {
  CHECK_EQ(config_refusal(R"(gpu_models: {H100-SXM5: {}}
pools: [{name: default, queues: [reserch, adds, zz]}]
queues: {research: {max: {gpus.H100-SMX5: 4, gpus.B200: 4}}, ads: {}}
)"),
           "cluster.yaml:2:34: pool 'default': no such queue 'reserch'; did you mean 'research'?\n"
           "cluster.yaml:2:43: pool 'default': no such queue 'adds'; did you mean 'ads'?\n"
           "cluster.yaml:2:49: pool 'default': no such queue 'zz'\n"
           "cluster.yaml:3:27: queue 'research'.max.gpus.H100-SMX5: no such GPU model; did you mean 'H100-SXM5'?\n"
           "cluster.yaml:3:46: queue 'research'.max.gpus.B200: no such GPU model; list it under gpu_models");
}

TEST_CASE("what follows from a mistake is not told as another one") {
  CHECK_EQ(config_refusal("gpu_modles: {H100: {}}\nqueues: {a: {max: {gpus.H100: 1}}}\n"),
           "cluster.yaml:1:1: there is no key 'gpu_modles'; did you mean 'gpu_models'?");
  CHECK_EQ(config_refusal("quues: {a: {}}\npools: [{name: p, queues: [a]}]\n#queues:\n"),
           "cluster.yaml:1:1: there is no key 'quues'; did you mean 'queues'?");
  CHECK_EQ(config_refusal("queues: {a: {guaranteed: {gpus: 4}, max: {gpus: x}}}\n"),
           "cluster.yaml:1:49: queues.a.max.gpus: 'x' is not an amount; give a number such as 8 or 0.5");
  CHECK_EQ(config_refusal("pools: [{name: ../x}]\n").find('\n'), std::string::npos);
}

TEST_CASE("of a text with mistakes without end the first are told, each in one line") {
  std::string text = "queues:\n";
  for (int i = 0; i < 2000; ++i) text += "  q" + std::to_string(i) + ": {\"wei\\nght\": 1}\n";
  const std::string said = config_refusal(text);
  CHECK_EQ(std::count(said.begin(), said.end(), '\n') + 1, static_cast<std::ptrdiff_t>(kMostMistakes));
  CHECK_NE(said.find("there is no key 'wei ght'"), std::string::npos);
}

TEST_CASE("terms of eviction are times from 0 to a year and a rate, also where no document was read") {
  const auto refused = [](const EvictionTermsConfig& terms) {
    ClusterConfig config = default_cluster_config();
    config.queues.front().eviction = terms;
    const auto valid = validate(config);
    return valid ? std::string() : valid.error().message;
  };
  EvictionTermsConfig terms{0, 365 * 86'400, 1, kMostEvictionsPerHour};
  CHECK_EQ(refused(terms), "");
  terms.cooldown_s = 365 * 86'400 + 1;
  CHECK_EQ(refused(terms), "queue 'default'.eviction.cooldown must be between 0s and 365d");
  terms = {};
  terms.min_runtime_s = -1;
  CHECK_EQ(refused(terms), "queue 'default'.eviction.min_runtime must be between 0s and 365d");
  terms = {};
  terms.grace_s = -1;
  CHECK_EQ(refused(terms), "queue 'default'.eviction.grace must be between 0s and 365d");
  terms = {};
  terms.evictions_per_hour = -1;
  CHECK_EQ(refused(terms), "queue 'default'.eviction.evictions_per_hour must be between 0 (no limit) and 100000");
}

TEST_CASE("any valid configuration reads back from its YAML, and differs from itself in nothing") {
  Random random(11);
  int valid = 0;
  for (int i = 0; i < 600; ++i) {
    const ClusterConfig config = random_config(random);
    REQUIRE_MESSAGE(validate(config).has_value(), validate(config).error().message);
    const std::string yaml = config_to_yaml(config);
    CAPTURE(yaml);
    const auto back = read_config(yaml, "cluster.yaml");
    REQUIRE_MESSAGE(back.has_value(), back.error().message);
    CHECK(*back == config);
    CHECK(diff_configs(config, *back).empty());
    ++valid;
  }
  CHECK_EQ(valid, 600);
}

TEST_CASE("two random configurations differ in nothing only when they are equal") {
  Random random(12);
  for (int i = 0; i < 300; ++i) {
    const ClusterConfig a = random_config(random);
    const ClusterConfig b = random_config(random);
    CHECK_EQ(diff_configs(a, b).empty(), a == b);
    CHECK_EQ(diff_configs(a, b).size(), diff_configs(b, a).size());
  }
}

TEST_CASE("a difference names what changes, comes and goes") {
  const auto from = read_config("queues: {a: {max: {gpus: 10}}, old: {}}\n", "a");
  const auto to = read_config(
      "queues: {a: {max: {gpus: 12, cpus: 4}, queues: {b: {weight: 2}}}}\n"
      "pools: [{name: default}, {name: big, queues: [a]}]\nscheduling: {backfill_reservations: 2}\n",
      "b");
  REQUIRE(from.has_value());
  REQUIRE(to.has_value());
  CHECK_EQ(diff_configs(*from, *to), std::vector<std::string>{
                                         "+ pools.big.queues: [a]",
                                         "+ queues.a.max.cpus: 4",
                                         "~ queues.a.max.gpus: 10 -> 12",
                                         "+ queues.a/b.policy: best-effort",
                                         "+ queues.a/b.weight: 2",
                                         "- queues.old.policy: best-effort",
                                         "- queues.old.weight: 1",
                                         "~ scheduling.backfill_reservations: 1 -> 2",
                                     });
}

TEST_CASE("each word of an admission rule is written as it is read") {
  std::string words;
  for (const std::string_view word : EnumNames<ForbiddenOption>::kNames)
    words += (words.empty() ? "" : ", ") + std::string(word);
  const std::string text = "admission:\n  a: {mode: dry-run, forbid: [" + words +
                           "], use: restricted, host_paths: [/data/*, /scratch]}\n  b: {use: baseline}\n";
  const auto rules = read_rules(text, "r.yaml");
  REQUIRE(rules.has_value());
  CHECK_EQ(rules->front().forbid.size(), EnumNames<ForbiddenOption>::kNames.size());
  CHECK_EQ(rules->front().use, std::optional(SecurityStandard::kRestricted));
  CHECK_EQ(rules->front().host_paths, std::vector<std::string>{"/data/*", "/scratch"});
  CHECK_EQ(rules->back().use, std::optional(SecurityStandard::kBaseline));
  ClusterConfig config = *read_config("queues: {a: {}}\n", "c.yaml");
  config.admission = *rules;
  config.queues[0].admission = *rules;
  const auto again = read_config(config_to_yaml(config), "c.yaml");
  REQUIRE(again.has_value());
  CHECK(again->admission == *rules);
  CHECK(again->queues[0].admission == *rules);
}

TEST_CASE("a file of admission rules is read as a whole, or refused with the place of what is wrong") {
  const auto rules = read_rules("admission:\n  a: {digest: true, mode: warn}\n  b: {max_time: 2h}\n", "r.yaml");
  REQUIRE(rules.has_value());
  REQUIRE_EQ(rules->size(), 2);
  CHECK_EQ(rules->back().max_time_s, 7200);
  const std::pair<const char*, const char*> refused[] = {
      {"{}\n", "r.yaml:1:1: the key admission is missing; give the rules below it"},
      {"admision: {}\n", "r.yaml:1:1: there is no key 'admision'; did you mean 'admission'?"},
      {"admission: []\n", "r.yaml:1:12: admission: this is a list; give a map (key: value)"},
      {"admission:\n  a: {digest: true}\n  b: {}\n",
       "r.yaml:3:3: rule 'b': it asks for nothing; give images, digest, max_gpus, max_time, checkpoint, forbid, "
       "use, host_paths or labels"},
      {"admission:\n  a: {use: strict}\n", "r.yaml:2:12: admission.a.use: 'strict' is none of baseline, restricted"},
      {"admission:\n  a: {forbid: [priviliged]}\n",
       "r.yaml:2:16: admission.a.forbid[0]: 'priviliged' is none of exclusive, required-topology, no-image, "
       "privileged, "
       "privilege-escalation, host-namespaces, host-paths, host-ports, added-capabilities, kept-capabilities, root, "
       "secret-env, gpus-without-limits, requests-below-limits; did you mean 'privileged'?"},
      {"admission:\n  a: {host_paths: [data]}\n",
       "r.yaml:2:3: rule 'a': host_paths: 'data' is neither a path nor one that ends in /*; write it as /data or "
       "/data/*, with no . or .. in it"}};
  for (const auto& [text, message] : refused) {
    const auto answer = read_rules(text, "r.yaml");
    REQUIRE_FALSE(answer.has_value());
    CHECK_EQ(answer.error().message, message);
  }
}

}  // namespace berth::document
