#pragma once
// A trace turned into what the product understands: a configuration with one queue per tenant, nodes, and jobs as
// submissions. Shared by all runs of an experiment and never changed by them.

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
  placement::PodShape shape;  // of each worker
  std::int32_t workers = 1;
  std::int64_t gpu_milli = 0;  // of the whole job
  std::int64_t submit_ms = 0;
  std::int64_t useful_ms = 0;  // run time that it needs
  std::uint32_t queue = 0;     // index into Workload::queues
  bool fits_empty_fleet = true;
  bool over_max = false;             // asks for more than the max of its queue, or of one above it
  const TraceJob* source = nullptr;  // names and everything else that only a report or a submission needs
};

// A queue of the tree, as the measures of fairness need it; in Workload::tree parents come before their children.
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
  std::vector<std::string> gpu_models;  // in the order in which the state will number them
  std::vector<TreeQueue> tree;          // by the place of config.queues
  std::vector<WorkloadQueue> queues;
  std::vector<WorkloadJob> jobs;
  std::vector<placement::TypicalPod> mix;  // of the jobs' workers; by it fragmentation is measured
  std::int64_t capacity_gpu_milli = 0;
  // By place in `jobs`: the outcome of each before anything became of it. Runs share it.
  std::shared_ptr<const std::vector<JobOutcome>> asked;
};

// Every GPU is interchangeable: nodes become one pool of GPUs, a job of n GPUs becomes n tasks of one GPU each, and
// CPU, memory and models are set aside. It is the queueing model of the reference figures, and says what placement
// costs when it is compared with a run on real nodes.
void count_gpus_only(Trace& trace);

// The trace must outlive the workload. Its jobs need workers (split_workers) and tenants (fill_tenants).
Result<Workload> make_workload(const Trace& trace, const std::vector<OverlayQueue>& queues);

// The class of the product that a trace's word names, if it names one.
std::optional<JobClass> product_class(std::string_view text);

JobSpec spec_of(const Workload& workload, const WorkloadJob& job);

// The empty fleet as placement scores see it.
placement::Fleet empty_fleet(const Workload& workload);

}  // namespace berth::sim
