#include "model/admission_security.h"

#include <doctest/doctest.h>

#include "base/codec.h"

namespace berth {
namespace {

using enum ForbiddenOption;

// One thing in a pod, and what a rule says that forbids it.
struct ToldRisk {
  PodRisk risk;
  const char* told;
};

const ToldRisk kToldRisks[] = {
    {{kPrivileged, "trainer", ""}, "container 'trainer': securityContext.privileged is true; remove it"},
    {{kPrivileged, "", "windowsOptions.hostProcess"},
     "pod: securityContext.windowsOptions.hostProcess is true; remove it"},
    {{kPrivilegeEscalation, "trainer", ""},
     "container 'trainer': securityContext.allowPrivilegeEscalation is not false; set it to false"},
    {{kHostNamespaces, "", "hostPID"}, "pod: hostPID is true; remove it"},
    {{kHostPaths, "scratch", "/etc"}, "volume 'scratch': hostPath '/etc' is not allowed; take a PersistentVolumeClaim"},
    {{kHostPorts, "trainer", "8080"}, "container 'trainer': hostPort 8080 is not allowed; take a Service"},
    {{kAddedCapabilities, "trainer", "SYS_ADMIN"},
     "container 'trainer': securityContext.capabilities.add has SYS_ADMIN; remove it"},
    {{kKeptCapabilities, "trainer", ""}, "container 'trainer': securityContext.capabilities.drop lacks ALL; add it"},
    {{kKeptCapabilities, "trainer", "CHOWN"},
     "container 'trainer': securityContext.capabilities.add has CHOWN; only NET_BIND_SERVICE is allowed"},
    {{kRoot, "trainer", ""},
     "container 'trainer': securityContext.runAsNonRoot is not true; set it to true, here or for the whole pod"},
    {{kRoot, "trainer", "runAsUser"},
     "container 'trainer': securityContext.runAsUser is 0, which is root; give another user"},
    {{kSecretEnv, "trainer", "HF_TOKEN"},
     "container 'trainer': env HF_TOKEN looks like a secret; take it from a Secret, by valueFrom.secretKeyRef"},
    {{kGpusWithoutLimits, "trainer", "memory"},
     "container 'trainer': resources.limits.memory is missing beside its GPUs; give it"},
    {{kGpusWithoutLimits, "trainer", "NVIDIA_VISIBLE_DEVICES"},
     "container 'trainer': env NVIDIA_VISIBLE_DEVICES asks for GPUs beside resources.limits; take it away"},
    {{kRequestsBelowLimits, "trainer", "cpu"},
     "container 'trainer': resources.requests.cpu is not resources.limits.cpu; give both, and the same"},
};

const ForbiddenOption kOptionsOfPods[] = {kPrivileged, kPrivilegeEscalation, kHostNamespaces,     kHostPaths,
                                          kHostPorts,  kAddedCapabilities,   kKeptCapabilities,   kRoot,
                                          kSecretEnv,  kGpusWithoutLimits,   kRequestsBelowLimits};

AdmissionRule that_forbids(std::vector<ForbiddenOption> options) {
  AdmissionRule rule;
  rule.name = "r";
  rule.forbid = std::move(options);
  return rule;
}

JobSpec of_pods() {
  JobSpec spec;
  spec.groups.emplace_back();
  spec.source = {"kubernetes", "kube/kubernetes/pod/u"};
  return spec;
}

JobSpec of_own() {
  JobSpec spec;
  TaskGroup& group = spec.groups.emplace_back();
  group.request.gpus = 1;
  group.request.cpu_milli = 1000;
  group.request.memory_mib = 1024;
  group.env = {{"HOME", "/x"}, {"HF_TOKEN_FILE", "/run/secrets/hf"}};
  return spec;
}

std::vector<std::string> paths_broken(std::vector<std::string> allowed, const std::string& path) {
  AdmissionRule rule = that_forbids({});
  rule.host_paths = std::move(allowed);
  return broken_by(rule, of_pods(), std::vector<PodRisk>{{kHostPaths, "v", path}});
}

}  // namespace

TEST_CASE("security rules: each word tells what of the pods breaks it, and what would be right") {
  for (const ToldRisk& one : kToldRisks) {
    CAPTURE(one.told);
    const std::vector<PodRisk> risks{one.risk};
    CHECK_EQ(broken_by(that_forbids({one.risk.option}), of_pods(), risks), std::vector<std::string>{one.told});
    std::vector<ForbiddenOption> others{kExclusive, kRequiredTopology};
    for (const ForbiddenOption option : kOptionsOfPods) {
      if (option != one.risk.option) others.push_back(option);
    }
    CHECK(broken_by(that_forbids(others), of_pods(), risks).empty());
    CHECK(broken_by(that_forbids({one.risk.option}), of_pods(), std::vector<PodRisk>{}).empty());
    CHECK(broken_by(that_forbids({one.risk.option}), of_pods()).empty());
  }
}

TEST_CASE("security rules: each word is of pods, and a rule without one needs to know nothing of them") {
  for (const ForbiddenOption option : kOptionsOfPods) CHECK(asks_for_risks(that_forbids({option})));
  for (const ForbiddenOption option : {kExclusive, kRequiredTopology, kNoImage})
    CHECK_FALSE(asks_for_risks(that_forbids({option})));
  AdmissionRule rule = that_forbids({});
  rule.digest = true;
  CHECK_FALSE(asks_for_risks(rule));
  rule.use = SecurityStandard::kBaseline;
  CHECK(asks_for_risks(rule));
  rule.use = {};
  rule.host_paths = {"/data"};
  CHECK(asks_for_risks(rule));
}

TEST_CASE("security rules: a job of berth's own breaks those alone that it can break") {
  const std::vector<ForbiddenOption> all(std::begin(kOptionsOfPods), std::end(kOptionsOfPods));
  CHECK(broken_by(that_forbids(all), of_own()).empty());
  JobSpec secret = of_own();
  secret.groups[0].env.emplace_back("HF_TOKEN", "hunter2");
  CHECK_EQ(broken_by(that_forbids({kSecretEnv}), secret),
           std::vector<std::string>{"task group 'main': env HF_TOKEN looks like a secret; give it by `secrets`"});
  CHECK(broken_by(that_forbids({kGpusWithoutLimits, kRequestsBelowLimits, kRoot}), secret).empty());
  JobSpec unlimited = of_own();
  unlimited.groups[0].request.memory_mib = 0;
  const std::vector<std::string> no_memory{"task group 'main': memory is 0, so nothing limits it; give some"};
  CHECK_EQ(broken_by(that_forbids({kGpusWithoutLimits}), unlimited), no_memory);
  CHECK_EQ(broken_by(that_forbids({kRequestsBelowLimits}), unlimited), no_memory);
  CHECK(broken_by(that_forbids({kSecretEnv, kPrivileged}), unlimited).empty());
  unlimited.groups[0].request.gpus = 0;
  CHECK(broken_by(that_forbids({kGpusWithoutLimits}), unlimited).empty());
  CHECK_EQ(broken_by(that_forbids({kRequestsBelowLimits}), unlimited), no_memory);
  JobSpec no_cpus = of_own();
  no_cpus.groups[0].request.cpu_milli = 0;
  CHECK_EQ(broken_by(that_forbids({kGpusWithoutLimits}), no_cpus),
           std::vector<std::string>{"task group 'main': cpus is 0, so nothing limits them; give some"});
}

TEST_CASE("security rules: no answer has the value of a variable, nor the raw letters of its name") {
  JobSpec secret = of_own();
  secret.groups[0].env.emplace_back("A\n\x1b[31m_TOKEN", "hunter2");
  secret.groups[0].env.emplace_back("X", "AKIAIOSFODNN7EXAMPLE");
  secret.groups[0].env.emplace_back(std::string(79, 'B') + "\xc3\xa4_TOKEN", "hunter2");
  const auto broken = broken_by(that_forbids({kSecretEnv}), secret);
  REQUIRE_EQ(broken.size(), 3);
  CHECK_EQ(broken[0], "task group 'main': env A??[31m_TOKEN looks like a secret; give it by `secrets`");
  CHECK_EQ(broken[1], "task group 'main': env X looks like a secret; give it by `secrets`");
  CHECK_EQ(broken[2], "task group 'main': env " + std::string(79, 'B') + " looks like a secret; give it by `secrets`");
}

TEST_CASE("security rules: a set forbids the controls of its standard, beside what the rule forbids itself") {
  AdmissionRule rule = that_forbids({kSecretEnv, kPrivileged});
  rule.use = SecurityStandard::kBaseline;
  CHECK_EQ(forbidden_by(rule),
           std::vector{kPrivileged, kHostNamespaces, kHostPaths, kHostPorts, kAddedCapabilities, kSecretEnv});
  rule.forbid.clear();
  rule.use = SecurityStandard::kRestricted;
  CHECK_EQ(forbidden_by(rule), std::vector{kPrivileged, kPrivilegeEscalation, kHostNamespaces, kHostPaths, kHostPorts,
                                           kAddedCapabilities, kKeptCapabilities, kRoot});
  CHECK(mistakes_in({rule}).empty());
  CHECK_EQ(broken_by(rule, of_pods(), std::vector<PodRisk>{{kRoot, "c", ""}}).size(), 1);
  rule.use = SecurityStandard::kBaseline;
  CHECK(broken_by(rule, of_pods(), std::vector<PodRisk>{{kRoot, "c", ""}}).empty());
  CHECK_EQ(broken_by(rule, of_pods(), std::vector<PodRisk>{{kHostPaths, "v", "/etc"}}).size(), 1);
  rule.host_paths = {"/etc"};
  CHECK(broken_by(rule, of_pods(), std::vector<PodRisk>{{kHostPaths, "v", "/etc"}}).empty());
}

TEST_CASE("security rules: a path of the host is one of the list, or below one that ends in a star") {
  for (const char* path : {"/data", "/data/", "/data/x", "/data//x/./y", "/scratch"})
    CHECK_MESSAGE(paths_broken({"/data", "/data/*", "/scratch"}, path).empty(), path);
  for (const char* path : {"/", "/datas", "/scratch/x", "/data/../etc", "/data/..", "data/x", "", "...", ".../data/x",
                           "/DATA", "/data/x/..hidden"})
    CHECK_MESSAGE(!paths_broken({"/data", "/data/*", "/scratch"}, path).empty(), path);
  CHECK(!paths_broken({"/data/*"}, "/data").empty());
  CHECK(!paths_broken({"/data/*"}, "/data/").empty());
  CHECK_EQ(paths_broken({"/data/*", "/b"}, "/etc").front(),
           "volume 'v': hostPath '/etc' is not allowed; allowed are /data/*, /b");
}

TEST_CASE("security rules: a list of paths that cannot be meant is refused") {
  for (const char* path : {"/data", "/data/*", "/a/b.c/*"}) CHECK_MESSAGE(mistake_in_host_path(path).empty(), path);
  for (const char* path : {"", "/", "/*", "*", "data", "/data/", "/a//b", "/a/./b", "/a/../b", "/a*", "/a/*/b"})
    CHECK_MESSAGE(!mistake_in_host_path(path).empty(), path);
  AdmissionRule rule = that_forbids({});
  rule.host_paths = {"/a/../b"};
  CHECK_EQ(mistakes_in({rule}),
           std::vector<std::string>{"rule 'r': host_paths: '/a/../b' is neither a path nor one that ends in /*; write "
                                    "it as /data or /data/*, with no . or .. in it"});
  rule.host_paths = {"/a", "/a"};
  CHECK_EQ(mistakes_in({rule}), std::vector<std::string>{"rule 'r': something is listed twice; keep one"});
  rule.host_paths = std::vector<std::string>(kMostRuleItems + 1, "/a");
  CHECK_EQ(mistakes_in({rule}), std::vector<std::string>{"rule 'r': a list has more than 256 items"});
}

TEST_CASE("security rules: an answer has few lines, and says how many more there are") {
  std::vector<PodRisk> risks;
  for (std::size_t i = 0; i < kMostBroken; ++i) risks.push_back({kSecretEnv, "c", "TOKEN_" + std::to_string(i)});
  CHECK_EQ(broken_by(that_forbids({kSecretEnv}), of_pods(), risks).size(), kMostBroken);
  for (int i = 0; i < 7; ++i) risks.push_back({kSecretEnv, "d", "TOKEN_" + std::to_string(i)});
  const auto broken = broken_by(that_forbids({kSecretEnv}), of_pods(), risks);
  CHECK_EQ(broken.size(), kMostBroken);
  CHECK_EQ(broken.back(), "and 8 more like these");
  CHECK_EQ(broken_by(that_forbids({kSecretEnv}), of_pods(), std::vector<PodRisk>{{kSecretEnv, "", kMoreRisks}}),
           std::vector<std::string>{"pod: there is more of secret-env than the 64 that are looked at"});
}

TEST_CASE("security rules: a rule is stored with its set and paths, and an older one as it was") {
  AdmissionRule rule = that_forbids({kRoot});
  const std::string before = encode(rule);
  rule.use = SecurityStandard::kRestricted;
  rule.host_paths = {"/data/*"};
  const auto read = decode<AdmissionRule>(encode(rule));
  REQUIRE(read);
  CHECK(*read == rule);
  CHECK_EQ(before[0], '\x0c');  // twelve fields, as before there were sets
}

}  // namespace berth
