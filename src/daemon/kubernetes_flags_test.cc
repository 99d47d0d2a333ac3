#include "daemon/kubernetes_flags.h"

#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

using namespace berth;
using namespace berth::daemon;

namespace {

// A kubeconfig in a file that goes away with it.
struct Kubeconfig {
  explicit Kubeconfig(const std::string& space) {
    char name[] = "/tmp/berth-kubeconfig-XXXXXX";
    REQUIRE(::mkdtemp(name) != nullptr);
    folder = name;
    std::ofstream(file()) << "clusters: [{name: c, cluster: {server: \"https://10.0.0.1:6443\"}}]\n"
                             "users: [{name: u, user: {token: abc}}]\n"
                             "contexts: [{name: x, context: {cluster: c, user: u"
                          << space << "}}]\ncurrent-context: x\n";
  }
  ~Kubeconfig() { std::filesystem::remove_all(folder); }
  Kubeconfig(const Kubeconfig&) = delete;
  Kubeconfig& operator=(const Kubeconfig&) = delete;
  std::string file() const { return folder + "/config"; }
  std::string folder;
};

std::string refusal(const KubernetesFlags& flags) {
  const auto read = read_credentials(flags);
  return read ? "accepted" : read.error().message;
}

}  // namespace

TEST_CASE("topology labels are keys with commas between") {
  CHECK(read_topology_labels("").value().empty());
  CHECK(read_topology_labels("topology.kubernetes.io/zone,rack").value() ==
        std::vector<std::string>{"topology.kubernetes.io/zone", "rack"});
  CHECK(!read_topology_labels("a,,b"));
  CHECK(!read_topology_labels("a, b"));
  CHECK(!read_topology_labels("1,2,3,4,5,6,7,8,9"));
}

TEST_CASE("resources of devices are names with commas between") {
  CHECK(read_device_resources("").value().empty());
  CHECK(read_device_resources("amd.com/gpu,habana.ai/gaudi").value() ==
        std::vector<std::string>{"amd.com/gpu", "habana.ai/gaudi"});
  CHECK(!read_device_resources("amd.com/"));
  CHECK(!read_device_resources("a/b/c"));
}

TEST_CASE("the namespace of the Lease is that of the flag, else of the kubeconfig, else default") {
  const Kubeconfig named(", namespace: gpu");
  const Kubeconfig plain("");
  KubernetesFlags flags;
  flags.kubeconfig = named.file();
  CHECK(read_credentials(flags)->space == "gpu");
  flags.space = "berth-system";
  CHECK(read_credentials(flags)->space == "berth-system");
  flags = {};
  flags.kubeconfig = plain.file();
  CHECK(read_credentials(flags)->space == "default");
}

TEST_CASE("flags of a cluster that are malformed are refused by name") {
  const Kubeconfig plain("");
  KubernetesFlags flags;
  flags.kubeconfig = plain.file();
  flags.space = "../x";
  CHECK(refusal(flags).find("--kubernetes-namespace: '../x'") == 0);
  flags.space = "";
  flags.cell = "a b";
  CHECK(refusal(flags).find("--cell: 'a b'") == 0);
  flags.cell = "c";
  flags.topology_labels = "zone=1";
  CHECK(refusal(flags).find("--topology-labels: 'zone=1'") == 0);
  flags.topology_labels = "";
  flags.device_resources = "amd.com/gpu,gpu";
  CHECK(refusal(flags).find("--device-resources: 'gpu' is no name of a resource") == 0);
  flags.device_resources = "";
  flags.user_stamps = "oidc:";
  CHECK(refusal(flags).find("--user-stamps: 'oidc:'") == 0);
}

TEST_CASE("the time that a gang waits for its volumes or images is a time of up to a day") {
  CHECK(read_wait("--volume-wait", "10m").value() == 600);
  CHECK(read_wait("--volume-wait", "24h").value() == 86'400);
  CHECK(!read_wait("--pull-wait", "0"));
  CHECK(read_wait("--pull-wait", "25h").error().message == "--pull-wait: '25h' is not from 1s to 24h");
  CHECK(read_wait("--volume-wait", "soon").error().message.find("--volume-wait: ") == 0);
  KubernetesFlags flags;
  flags.pull_wait = "for ever";
  CHECK(refusal(flags).find("--pull-wait: ") == 0);
}
