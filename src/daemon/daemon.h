#pragma once
// The composition root: opens the data directory and the log, folds it, and connects loop, reader, backend and HTTP
// server.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/http/tls_credentials.h"
#include "api/page/page.h"
#include "api/service.h"
#include "backend/local/task_users.h"
#include "base/result.h"
#include "daemon/backup_schedule.h"
#include "daemon/kubernetes_flags.h"
#include "daemon/node_flags.h"
#include "daemon/retention.h"
#include "identity/issuer.h"
#include "model/cluster_config.h"
#include "policy/rate_limit.h"

namespace berth::daemon {

struct DaemonOptions {
  std::string data_dir;
  std::string store;                               // postgresql://...: where the log is; empty: in the data directory
  std::int64_t store_deadline_ms = 10'000;         // a commit there without an answer by then ends the server
  std::optional<ClusterConfig> config;             // applied at start unless it is already in force
  std::string node_name;                           // empty: the name of the host
  std::string simulate_gpus;                       // "8xH100-SXM5-80GB"; empty: the GPUs that NVML finds
  bool unchecked_gpus = false;                     // tasks start without a look at what is left on their GPUs
  std::int64_t gpu_patience_ms = 10'000;           // how long a check of GPUs lasts at most
  NodeFlags node_flags;                            // pool, place, labels and taints of this node
  backend::TaskUserFlags task_users;               // as what user tasks run
  bool no_node = false;                            // control plane only: no task runs here
  std::optional<KubernetesFlags> kubernetes = {};  // tasks run in this cluster; then this machine is no node
  std::string listen_address = "127.0.0.1";
  http::TlsFiles tls;                          // no certificate: plain HTTP, which only loopback addresses may have
  std::string socket;                          // the Unix socket; empty: berth.sock in the data directory; none: none
  std::vector<identity::Issuer> issuers;       // whose signed tokens are taken
  policy::RateLimit rate_limit = {500, 2000};  // of each subject
  policy::RateLimit address_rate_limit = {100, 1000};  // of each address, where nobody is proved
  std::uint64_t day_limit = std::uint64_t{4} << 30U;  // bytes of the log that a subject may write in a day; 0: no limit
  KeepFinished keep_finished;                         // how long output and checkpoints of finished jobs are kept
  BackupFlags backups;                                // made by the server itself
  std::int64_t max_downtime_s = 7 * 86'400;  // a wall clock that is further ahead after a reboot is not believed
  std::uint16_t port = 0;                    // 0: a free one
  std::string url;                           // of this server, as others reach it; empty: the address it serves on
  std::uint64_t checkpoint_every = 50'000;   // records
  std::uint32_t fsync_delay_ms = 0;          // injected, for benchmarks
  std::uint32_t sample_gpus_ms = 10'000;     // how often the utilization of the GPUs is sampled
  std::string test_clock;                    // of tests: a file (server_clock.h); empty: none
  std::vector<std::string> supervisor;       // empty: as the executor finds it
  const api::Page* page = nullptr;           // the web page; null: / is not served
  const std::string& log_place() const { return store.empty() ? data_dir : store; }
};

class Daemon {
 public:
  // Opens, recovers and starts everything. When it returns, requests are served.
  static Result<std::unique_ptr<Daemon>> start(DaemonOptions options);
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  const std::string& url() const;
  const std::string& token_file() const;
  const std::string& socket() const;  // the path of the Unix socket; empty: none
  const std::vector<std::string>& notes() const;
  api::Service& service();

  // Stops serving and writes a checkpoint. Running jobs go on under their supervisors.
  void stop();

 private:
  class Impl;
  explicit Daemon(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace berth::daemon
