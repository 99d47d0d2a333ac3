#pragma once
// The backend of a Kubernetes cluster. It keeps kube::Cluster, which decides what objects mean and what is written,
// in touch with an API server and with the control plane. One thread owns both the Cluster and all HTTP.
//
// `start` returns when this server holds the Lease of the cluster and each kind of object was listed; or with the
// error that a person has to mend: a wrong certificate, a right that is missing for a minute, a server that does not
// answer, another berth that schedules this cluster.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "backend/backend.h"
#include "backend/kubernetes/credentials.h"
#include "backend/kubernetes/watcher.h"
#include "kube/cluster.h"

namespace berth::backend {

struct KubernetesOptions {
  Credentials credentials;
  std::string space = "default";  // the namespace of the Lease `berth`
  std::string identity;           // of this data directory (lease.h)
  kube::Options cluster;
  std::function<Timestamp()> now;                 // the server's clock
  std::function<void(const std::string&)> warn;   // for the log; called on the backend's thread
  std::function<void(const Error&)> end_process;  // the lease is lost: this server may do nothing more. Does not return
  WatchOptions watch = {};
  std::chrono::milliseconds start_patience{30'000};  // without any answer
  std::chrono::milliseconds denial_patience{
      cluster.waits.denial_ms};  // while what it needs is denied at the start (rights.h)
  std::chrono::milliseconds denial_pause{1'000};
  std::chrono::milliseconds stamp_pause{60'000};  // between two looks at the policies that stamp pods (stamp_check.h)
  std::uint64_t seed = 1;                         // of the jitter between tries
};

std::unique_ptr<Backend> make_kubernetes_backend(KubernetesOptions options);

}  // namespace berth::backend
