#pragma once
// The composition root: opens the data directory, folds its log, and puts loop, reader, backend and HTTP server
// together.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/service.h"
#include "base/result.h"
#include "daemon/node_flags.h"
#include "daemon/retention.h"
#include "model/cluster_config.h"

namespace berth::daemon {

struct DaemonOptions {
  std::string data_dir;
  std::optional<ClusterConfig> config;  // applied at start if it is not what is in force
  std::string node_name;                // empty: the host's name
  std::string simulate_gpus;            // "8xH100-SXM5-80GB"; empty: what NVML finds
  NodeFlags node_flags;                 // its pool, place, labels and taints
  bool no_node = false;                 // control plane only: no task runs here
  std::string listen_address = "127.0.0.1";
  bool insecure_listen = false;             // else only loopback addresses: berth speaks plain HTTP
  KeepFinished keep_finished;               // output and checkpoints of finished jobs
  std::uint16_t port = 0;                   // 0: a free one
  std::uint64_t checkpoint_every = 50'000;  // records
  std::uint32_t fsync_delay_ms = 0;         // injected, for benchmarks
  std::uint32_t sample_gpus_ms = 10'000;    // how often GPUs are asked how much they are driven
  std::vector<std::string> supervisor;      // empty: this program with `supervise`
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
  const std::vector<std::string>& notes() const;
  api::Service& service();

  // Ends serving; running jobs go on under their supervisors. Writes a checkpoint.
  void stop();

 private:
  class Impl;
  explicit Daemon(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

struct VerifyReport {
  std::uint64_t records = 0;
  std::uint64_t first_seq = 0;
  std::uint64_t last_seq = 0;
  std::uint64_t jobs = 0;
  std::uint64_t history_rows = 0;
  std::uint64_t state_digest = 0;
  bool from_genesis = false;  // the whole state was recomputed from the first event
  std::vector<std::string> warnings;
  bool checkpoint_compared = false;  // and a checkpoint was found equal to it on the way
};

// Checks every hash of a log and recomputes the state; the error names the sequence number that is wrong.
Result<VerifyReport> verify_directory(const std::string& data_dir);

}  // namespace berth::daemon
