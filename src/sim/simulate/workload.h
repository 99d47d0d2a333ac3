#pragma once
// A trace in the product's own terms: a configuration with one queue per tenant, nodes, and jobs as submissions. All
// runs of an experiment share it and never change it.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/cluster_config.h"
#include "model/job.h"
#include "model/node.h"
#include "sim/measure/outcome.h"
#include "sim/placement/fleet.h"
#include "sim/placement/typical_pods.h"
#include "sim/trace/overlay.h"
#include "sim/trace/trace.h"

namespace berth::sim {

struct WorkloadJob {
  placement::PodShape shape;  // request of each worker
  std::int32_t workers = 1;
  std::int64_t gpu_milli = 0;  // GPUs of the whole job
  std::int64_t submit_ms = 0;
  std::int64_t useful_ms = 0;  // the run time that it needs
  std::uint32_t queue = 0;     // index into Workload::queues
  bool fits_empty_fleet = true;
  bool over_max = false;             // requests more than the max of its queue or of an ancestor
  const TraceJob* source = nullptr;  // names and all other fields, for reports and submissions
};

// A queue of the tree, for the measures of fairness. In Workload::tree a parent comes before its children.
struct TreeQueue {
  std::int64_t guaranteed_milli = 0;
  std::int64_t max_milli = std::numeric_limits<std::int64_t>::max();
  std::int64_t weight = 1;
  std::size_t parent = kNoParent;  // index into Workload::tree
  bool is_leaf = true;

  static constexpr std::size_t kNoParent = static_cast<std::size_t>(-1);
};

// A queue that has jobs.
struct WorkloadQueue {
  std::string tenant;
  std::string path;
  std::size_t place = 0;  // index into Workload::tree
};

struct Workload {
  ClusterConfig config;
  std::vector<NodeSpec> nodes;
  std::vector<std::string> gpu_models;  // in the order of the state's GPU model ids
  std::vector<TreeQueue> tree;          // one for each of config.queues, by index
  std::vector<WorkloadQueue> queues;
  std::vector<WorkloadJob> jobs;
  std::vector<placement::TypicalPod> mix;  // mix of the workers' requests, against which fragmentation is measured
  std::int64_t capacity_gpu_milli = 0;
  // By index in `jobs`: the outcome of each job before the run. Runs share it.
  std::shared_ptr<const std::vector<JobOutcome>> asked;
};

// Makes all GPUs interchangeable: nodes become one pool of GPUs, a job of n GPUs becomes n tasks of one GPU, and CPU,
// memory and models are ignored. This is the queueing model of the reference figures. Compared with a run on real
// nodes, it shows what placement costs.
void count_gpus_only(Trace& trace);

// Builds the workload. Requires: the trace outlives it; its jobs have workers (split_workers) and tenants
// (fill_tenants).
Result<Workload> make_workload(const Trace& trace, const std::vector<OverlayQueue>& queues);

// Returns the job class that a word of the trace names, or nothing.
std::optional<JobClass> product_class(std::string_view text);

JobSpec spec_of(const Workload& workload, const WorkloadJob& job);

// Returns the empty fleet in the form that placement scores use.
placement::Fleet empty_fleet(const Workload& workload);

}  // namespace berth::sim
