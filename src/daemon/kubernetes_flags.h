#pragma once
// The flags of `berth serve --backend kubernetes`, and the backend that they describe.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/kubernetes/credentials.h"
#include "base/result.h"
#include "base/timestamp.h"
#include "model/effect.h"
#include "state/state.h"

namespace berth::daemon {

struct KubernetesFlags {
  std::string kubeconfig;  // empty: the service account of this pod
  std::string space;       // namespace of the Lease; empty: that of the kubeconfig or of this pod, else default
  std::string cell = "kubernetes";
  // Where the pods of jobs that are submitted to berth are made: a namespace, and with commas between QUEUE=NAMESPACE
  // for those of other queues. none: no pods are made.
  std::string job_namespace = "berth-jobs";
  std::string topology_labels;      // label keys of nodes with commas between, outermost first
  std::string device_resources;     // resources of nodes that count as GPUs besides NVIDIA's, with commas between
  std::string volume_wait = "10m";  // how long a gang waits with its places for volumes that are made for it
  std::string pull_wait = "10m";    // how long a pod keeps its places while its container does not start
  std::string user_stamps;  // FROM=TO with commas between: users that pods are stamped with; empty: none is believed
  std::int64_t shorter_waits = 1;  // of tests: the waits of a cluster (kube/waits.h) are divided by this
};

struct SaveReports {
  std::string server;  // its address; empty: pods report nothing
  std::function<std::string(const TaskKey&)> token;
};

// Splits and checks the label keys.
Result<std::vector<std::string>> read_topology_labels(const std::string& flag);

// Splits and checks the names of resources.
Result<std::vector<std::string>> read_device_resources(const std::string& flag);

// Returns the seconds of --volume-wait or --pull-wait, whose name the error has: 1 s to 24 h.
Result<std::int64_t> read_wait(const std::string& name, const std::string& flag);

// Reads the credentials that the flags name and checks the rest of them. Touches no network.
Result<backend::Credentials> read_credentials(const KubernetesFlags& flags);

// `levels`: names of the levels of the topology, outermost first. `state`: its nodes are looked for in the
// cluster. `saves`: how pods report that they have saved. `end_process`: see KubernetesOptions. The identity of the
// Lease is that of the data directory on this host.
Result<std::unique_ptr<backend::Backend>> make_kubernetes_backend(
    const KubernetesFlags& flags, std::vector<std::string> levels, backend::Credentials credentials,
    const std::string& data_dir, const state::State& state, SaveReports saves, std::function<Timestamp()> now,
    std::function<void(const Error&)> end_process);

}  // namespace berth::daemon
