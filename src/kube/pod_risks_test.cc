#include "kube/pod_risks.h"

#include <doctest/doctest.h>

#include <boost/json/parse.hpp>

#include "kube/api_stand_in.h"

namespace berth::kube {
namespace {

// A pod that asks for nothing that a rule could forbid.
constexpr const char* kSoundPod =
    R"({"metadata":{"name":"a","namespace":"team","uid":"u"},"spec":{)"
    R"("volumes":[{"name":"tmp","emptyDir":{}}],"containers":[{)"
    R"("name":"main","env":[{"name":"HF_TOKEN","valueFrom":{"secretKeyRef":{"name":"s","key":"k"}}}],)"
    R"("ports":[{"containerPort":80}],)"
    R"("resources":{"limits":{"cpu":"1","memory":"1Gi","nvidia.com/gpu":"1"},"requests":{"cpu":"1000m"}},)"
    R"("securityContext":{"runAsNonRoot":true,"allowPrivilegeEscalation":false,)"
    R"("capabilities":{"drop":["ALL"],"add":["NET_BIND_SERVICE"]}}}]}})";

// The members of the first object, with those of the second beside them or instead of them, at every level.
boost::json::value laid_over(boost::json::value below, const boost::json::value& above) {
  if (!below.is_object() || !above.is_object()) return above;
  for (const auto& [key, value] : above.as_object()) {
    boost::json::value& member = below.as_object()[key];
    member = laid_over(member, value);
  }
  return below;
}

// Returns the risks of a sound pod whose container and spec are changed so, as OPTION WHERE WHAT.
std::vector<std::string> told_risks(const std::string& container, const std::string& spec = "{}") {
  boost::json::object pod = ApiStandIn::json(kSoundPod);
  boost::json::value& main = pod["spec"].as_object()["containers"].as_array()[0];
  main = laid_over(main, boost::json::parse(container));
  pod["spec"] = laid_over(pod["spec"], boost::json::parse(spec));
  std::vector<std::string> told;
  for (const PodRisk& risk : risks_of(pod, {"amd.com/gpu"}))
    told.push_back(std::string(name_of(risk.option)) + " " + risk.where + " " + risk.what);
  return told;
}

using Told = std::vector<std::string>;

}  // namespace

TEST_CASE("pod risks: a pod that keeps to the standard restricted, with limits, has none") {
  CHECK_EQ(told_risks("{}"), Told{});
  CHECK_EQ(risks_of(ApiStandIn::json(R"({"metadata":{}})"), {}), std::vector<PodRisk>{});
}

TEST_CASE("pod risks: a pod that says nothing of itself is as the API server would run it") {
  const auto risks = risks_of(ApiStandIn::json(R"({"spec":{"containers":[{"name":"c"},7]}})"), {});
  CHECK_EQ(risks, std::vector<PodRisk>{{ForbiddenOption::kPrivilegeEscalation, "c", ""},
                                       {ForbiddenOption::kKeptCapabilities, "c", ""},
                                       {ForbiddenOption::kRoot, "c", ""},
                                       {ForbiddenOption::kRequestsBelowLimits, "c", "cpu"},
                                       {ForbiddenOption::kRequestsBelowLimits, "c", "memory"}});
}

TEST_CASE("pod risks: each field of a container is seen") {
  struct Row {
    const char* container;
    Told told;
  };
  const Row rows[] = {
      {R"({"securityContext":{"privileged":true}})", {"privileged main "}},
      {R"({"securityContext":{"privileged":"yes"}})", {"privileged main "}},
      {R"({"securityContext":{"privileged":false}})", {}},
      {R"({"securityContext":{"privileged":null}})", {}},
      {R"({"securityContext":{"windowsOptions":{"hostProcess":true}}})",
       {"privileged main windowsOptions.hostProcess"}},
      {R"({"securityContext":{"allowPrivilegeEscalation":true}})", {"privilege-escalation main "}},
      {R"({"securityContext":{"allowPrivilegeEscalation":null}})", {"privilege-escalation main "}},
      {R"({"securityContext":{"capabilities":{"add":["SYS_ADMIN"]}}})",
       {"added-capabilities main SYS_ADMIN", "kept-capabilities main SYS_ADMIN"}},
      {R"({"securityContext":{"capabilities":{"add":["ALL",1]}}})",
       {"added-capabilities main ?", "added-capabilities main ALL", "kept-capabilities main ?",
        "kept-capabilities main ALL"}},
      {R"({"securityContext":{"capabilities":{"add":["CHOWN"]}}})", {"kept-capabilities main CHOWN"}},
      {R"({"securityContext":{"capabilities":{"drop":["NET_RAW"]}}})", {"kept-capabilities main "}},
      {R"({"securityContext":{"runAsNonRoot":false}})", {"root main "}},
      {R"({"securityContext":{"runAsNonRoot":null}})", {"root main "}},
      {R"({"securityContext":{"runAsUser":0}})", {"root main runAsUser"}},
      {R"({"securityContext":{"runAsUser":1000}})", {}},
      {R"({"ports":[{"hostPort":80},{"hostPort":0},{"containerPort":1}]})", {"host-ports main 80"}},
      {R"({"env":[{"name":"HF_TOKEN","value":"x"}]})", {"secret-env main HF_TOKEN"}},
      {R"({"env":[{"name":"X","value":"AKIAIOSFODNN7EXAMPLE"},{"name":"Y","value":"y"},{"name":"A_TOKEN"}]})",
       {"secret-env main X"}},
      {R"({"resources":{"limits":{"memory":null}}})",
       {"gpus-without-limits main memory", "requests-below-limits main memory"}},
      {R"({"resources":{"limits":{"cpu":"0"}}})", {"gpus-without-limits main cpu", "requests-below-limits main cpu"}},
      {R"({"resources":{"limits":{"nvidia.com/gpu":null,"amd.com/gpu":2,"cpu":null}}})",
       {"gpus-without-limits main cpu", "requests-below-limits main cpu"}},
      {R"({"resources":{"limits":{"nvidia.com/gpu":"0","memory":null}}})", {"requests-below-limits main memory"}},
      {R"({"resources":{"limits":{"nvidia.com/gpu":null}},"env":[{"name":"NVIDIA_VISIBLE_DEVICES","value":"all"}]})",
       {"gpus-without-limits main NVIDIA_VISIBLE_DEVICES"}},
      {R"({"resources":{"limits":{"nvidia.com/gpu":null}},"env":[{"name":"NVIDIA_VISIBLE_DEVICES","value":"void"}]})",
       {}},
      {R"({"resources":{"limits":{"nvidia.com/gpu":null}},"env":[{"name":"NVIDIA_VISIBLE_DEVICES","valueFrom":{}}]})",
       {"gpus-without-limits main NVIDIA_VISIBLE_DEVICES"}},
      {R"({"env":[{"name":"NVIDIA_VISIBLE_DEVICES","value":"all"}]})",
       {"gpus-without-limits main NVIDIA_VISIBLE_DEVICES"}},
      {R"({"resources":{"requests":{"cpu":"900m"}}})", {"requests-below-limits main cpu"}},
      {R"({"resources":{"requests":{"memory":"1024Mi"}}})", {}},
      {R"({"resources":{"requests":{"memory":"1073741823"}}})", {"requests-below-limits main memory"}},
      {R"({"resources":{"requests":{"memory":"much"}}})", {"requests-below-limits main memory"}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.container);
    CHECK_EQ(told_risks(row.container), row.told);
  }
}

TEST_CASE("pod risks: each field of the pod is seen") {
  struct Row {
    const char* spec;
    Told told;
  };
  const Row rows[] = {
      {R"({"hostNetwork":true})", {"host-namespaces  hostNetwork"}},
      {R"({"hostPID":true,"hostIPC":true})", {"host-namespaces  hostIPC", "host-namespaces  hostPID"}},
      {R"({"hostNetwork":false,"hostPID":null})", {}},
      {R"({"securityContext":{"windowsOptions":{"hostProcess":true}}})", {"privileged  windowsOptions.hostProcess"}},
      {R"({"volumes":[{"name":"x","hostPath":{"path":"/etc"}},{"name":"y","emptyDir":{}}]})", {"host-paths x /etc"}},
      {R"({"volumes":[{"name":"x","hostPath":{}}]})", {"host-paths x "}},
      {R"({"volumes":[{"name":"x","hostPath":{"path":"/a\nb"}}]})", {"host-paths x .../a?b"}},
      {R"({"initContainers":[{"name":"i","securityContext":{"privileged":true,"runAsNonRoot":true,)"
       R"("allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]}},)"
       R"("resources":{"limits":{"cpu":1,"memory":"1Gi"}}}]})",
       {"privileged i "}},
      {R"({"resources":{"limits":{"cpu":"2","memory":"4Gi"},"requests":{"cpu":"1"}}})", {"requests-below-limits  cpu"}},
      {R"({"resources":{"limits":{"cpu":"2","memory":"4Gi"}}})", {}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.spec);
    CHECK_EQ(told_risks("{}", row.spec), row.told);
  }
  // What the pod as a whole states goes before what its containers do not.
  CHECK_EQ(told_risks(R"({"resources":{"limits":{"cpu":null,"memory":null},"requests":{"cpu":null}}})",
                      R"({"resources":{"limits":{"cpu":"2","memory":"4Gi"}}})"),
           Told{});
}

TEST_CASE("pod risks: the user of a container is its own, else that of the pod") {
  const char* bare = R"({"securityContext":{"runAsNonRoot":null}})";
  CHECK_EQ(told_risks(bare, R"({"securityContext":{"runAsNonRoot":true}})"), Told{});
  CHECK_EQ(told_risks(bare, R"({"securityContext":{"runAsNonRoot":false}})"), Told{"root main "});
  CHECK_EQ(told_risks(bare, R"({"securityContext":{"runAsNonRoot":true,"runAsUser":0}})"), Told{"root main runAsUser"});
  CHECK_EQ(told_risks(R"({"securityContext":{"runAsUser":7}})", R"({"securityContext":{"runAsUser":0}})"), Told{});
  CHECK_EQ(told_risks(R"({"securityContext":{"runAsUser":0}})", R"({"securityContext":{"runAsUser":7}})"),
           Told{"root main runAsUser"});
  CHECK_EQ(told_risks(R"({"securityContext":{"runAsNonRoot":false}})", R"({"securityContext":{"runAsNonRoot":true}})"),
           Told{"root main "});
}

TEST_CASE("pod risks: of huge lists few are kept, and it is said that there are more") {
  std::string volumes;
  for (int i = 0; i < 1000; ++i)
    volumes +=
        std::string(i == 0 ? "" : ",") + R"({"name":"v)" + std::to_string(1000 + i) + R"(","hostPath":{"path":"/d"}})";
  volumes += R"(,{"name":"z","hostPath":{"path":"/etc"}})";
  const std::string spec = R"({"volumes":[)" + volumes + "]}";
  const Told told = told_risks("{}", spec);
  CHECK_EQ(told.size(), kMostRisks + 1);
  CHECK_EQ(told.front(), "host-paths  ...");
  CHECK_EQ(told.back(), "host-paths v1063 /d");
  const std::string name(300, 'n');
  CHECK_EQ(told_risks(R"({"env":[{"name":")" + name + R"(_TOKEN","value":"x"}]})"),
           Told{"secret-env main " + name.substr(0, 80)});
  CHECK_EQ(told_risks("{}", R"({"volumes":[{"name":"x","hostPath":{"path":"/data/)" + name + R"("}}]})"),
           Told{"host-paths x .../data/" + name.substr(0, 249)});
}

TEST_CASE("pod risks: text that is no UTF-8 is cut where it begins to be none") {
  boost::json::object pod = ApiStandIn::json(R"({"spec":{"hostNetwork":true,"containers":[]}})");
  boost::json::object container =
      ApiStandIn::json(R"({"env":[{"value":"x"}],"securityContext":{"runAsNonRoot":true,)"
                       R"("allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]}},)"
                       R"("resources":{"limits":{"cpu":1,"memory":1}}})");
  container["name"] =
      "a\xff"
      "b";
  container["env"].as_array()[0].as_object()["name"] = "A_TOKEN_\xc3";
  pod["spec"].as_object()["containers"].as_array().push_back(container);
  CHECK_EQ(risks_of(pod, {}), std::vector<PodRisk>{{ForbiddenOption::kHostNamespaces, "", "hostNetwork"},
                                                   {ForbiddenOption::kSecretEnv, "a", "A_TOKEN_"}});
}

TEST_CASE("pod risks: those of several pods are joined, each once, and stay few") {
  const PodRisk root{ForbiddenOption::kRoot, "c", ""};
  const PodRisk port{ForbiddenOption::kHostPorts, "c", "80"};
  CHECK_EQ(joined({root}, {root}), std::vector{root});
  CHECK_EQ(joined({root}, {port}), std::vector{port, root});
  CHECK_EQ(joined({}, {root}), std::vector{root});
  std::vector<PodRisk> many;
  for (std::size_t i = 0; i <= kMostRisks; ++i)
    many = joined(std::move(many), {{ForbiddenOption::kHostPorts, "c", std::to_string(1000 + i)}});
  CHECK_EQ(many.size(), kMostRisks + 1);
  CHECK_EQ(many.front().what, kMoreRisks);
  const auto again = joined(many, {port});
  CHECK_EQ(again.size(), kMostRisks + 1);
  CHECK_EQ(again.front().what, kMoreRisks);
}

TEST_CASE("pod risks: what is forbidden and was not judged goes beyond it") {
  using enum ForbiddenOption;
  const std::vector<PodRisk> risks{{kHostPorts, "c", "80"}, {kRoot, "c", ""}};
  CHECK(beyond(risks, risks, {{kRoot, kHostPorts}, {}}).empty());
  CHECK_EQ(beyond(risks, std::vector<PodRisk>{}, {{kRoot}, {}}), std::vector<PodRisk>{risks[1]});
  CHECK_EQ(beyond(risks, std::vector<PodRisk>{risks[1]}, {{kRoot, kHostPorts}, {}}), std::vector<PodRisk>{risks[0]});
  CHECK(beyond(risks, std::vector<PodRisk>{}, {{kPrivileged}, {}}).empty());
  CHECK(beyond(risks, {}, {{kRoot}, {}}).empty());
  const std::vector<PodRisk> paths{{kHostPaths, "v", "/data/x"}, {kHostPaths, "v", "/etc"}};
  CHECK_EQ(beyond(paths, std::vector<PodRisk>{}, {{}, {{"/data/*"}}}), std::vector<PodRisk>{paths[1]});
  CHECK_EQ(beyond(paths, std::vector<PodRisk>{}, {{}, {{"/data/*"}, {"/scratch"}}}), paths);
  CHECK(beyond(paths, std::vector<PodRisk>{}, {{}, {}}).empty());
  CHECK(beyond(risks, std::vector<PodRisk>{{kHostPorts, "", kMoreRisks}}, {{kHostPorts}, {}}).empty());
}

}  // namespace berth::kube
