#pragma once
// The model as the API shows it: names instead of ids, GPUs and cores as decimal numbers, times as ISO 8601. The
// schemas of the same objects are beside it, in *_schemas.cc.
//
// What needs the state is copied out of it first (show_*, under the reader's lock) and turned into JSON afterwards, so
// that a large answer does not hold up the reader.

#include <boost/json/object.hpp>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/service.h"
#include "model/job_size.h"
#include "model/reason.h"
#include "model/why_answer.h"
#include "state/estimate.h"
#include "state/state.h"

namespace berth::api {

// Names of the nodes that a job has to do with, and the uuids of their GPUs by index.
struct NodeNames {
  std::string node;
  std::vector<std::string> gpus;
  bool simulated_gpus = false;  // some of them
};
using Names = std::map<NodeId, NodeNames>;

// The replicas of a service or the elements of an array. They are jobs of their own (docs/decisions/0006).
struct Children {
  std::int32_t total = 0;  // as many as there shall be
  std::int32_t running = 0;
  std::int32_t waiting = 0;
  std::int32_t ended = 0;
  std::int32_t failed = 0;   // of those that ended
  std::int32_t current = 0;  // live ones of the service's present version
};

// A live or finished job with what only the state can tell about it.
struct ShownJob {
  state::JobState job;
  JobPhase phase = JobPhase::kPending;
  std::optional<bool> within;                // while it runs: wholly inside the guarantees
  std::optional<ReasonCode> waits_for = {};  // while it waits
  std::optional<Children> children = {};     // of a service or array
  std::optional<Outcome> outcome;
  std::optional<Timestamp> finished;
  std::int32_t code = 0;          // once finished: its exit code
  std::int64_t gpu_milli_ms = 0;  // what it has used so far, all attempts together
  state::Estimate estimate;       // of its run time, while it lives
  Names names;
  std::optional<JobGpuUtilization> gpu_utilization =
      {};  // of its attempt, as far as it was measured; only where one job is shown
  std::vector<state::BrokenGlass> broken_glass = {};  // its log was read by break-glass; only where one job is shown
};

boost::json::object taint_view(const Taint& taint);

// A service or array runs when one of its children does.
JobPhase phase_of(const state::State& state, const state::JobState& job);

// What a job without an attempt waits for: what its own facts say, else what of quota and places refuses it.
std::optional<ReasonCode> waits_for(const View& view, const state::JobState& job);

// The largest part of the cluster's GPU-equivalents, cores or memory that the queue uses: the dominant share of the DRF
// paper (section 4), before weights. In ten-thousandths, rounded down.
std::int64_t dominant_share(const state::State& state, const state::QueueState& queue);

// Of what a job waits for only what its own facts say.
ShownJob show_job(const View& view, const state::JobState& job);
// The same, and where those say nothing, what of quota and places refuses it.
ShownJob show_row(const View& view, const state::JobState& job);
// The same, with what was measured of its GPUs and who read its log by break-glass.
ShownJob show_by_itself(const View& view, const state::JobState& job);
ShownJob show_past_job(const state::State& state, PastJob past);
boost::json::object job_summary(const ShownJob& shown);
boost::json::object job_in_full(const ShownJob& shown);

struct ShownNode {
  state::NodeState node;
  std::vector<std::string> domains;  // outermost first
  std::vector<std::vector<JobId>> jobs_on_gpu;
  std::vector<GpuUtilizationSum> gpu_utilization;  // by GPU
};
ShownNode show_node(const state::State& state, const state::NodeState& node,
                    const GpuUtilization& gpu_utilization = {});
boost::json::object node_view(const ShownNode& shown);
// The same with the names of its images, if it runs containers; they are too many for a list of nodes.
boost::json::object node_view_with_images(const ShownNode& shown);

boost::json::object window_view(const state::State& state, const state::Maintenance& window);

// The root, which no document names, is left out.
boost::json::object queue_view(const state::State& state, const state::QueueState& queue);
// With its terms of eviction and, where one user's part is limited, what each user has there.
boost::json::object queue_view_by_itself(const View& view, const state::QueueState& queue);
boost::json::array queue_views(const state::State& state, const std::function<bool(std::string_view)>& visible);

boost::json::object cluster_view(const View& view, const ServerFacts& facts);
boost::json::object usage_view(const UsageReport& report, bool simulated_gpus);

// Why a job waits; of a job that waits no more, a headline that says so.
boost::json::object why_view(const WhyAnswer& answer, JobPhase phase);

}  // namespace berth::api
