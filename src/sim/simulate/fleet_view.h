#pragma once
// The fleet in the form that placement scores use, kept up to date by the events of the product's state. It decides
// nothing. A policy may take places in it during a cycle and must release them before it returns.

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "model/event.h"
#include "sim/placement/policy.h"
#include "sim/simulate/workload.h"

namespace berth::sim {

// Maps job ids to jobs of the workload. Job ids are given in the order of submission, from 1.
class Submissions {
 public:
  void add(std::uint32_t job) { jobs_.push_back(job); }
  std::uint32_t job_of(JobId id) const { return jobs_[static_cast<std::size_t>(id.value() - 1)]; }
  std::size_t size() const { return jobs_.size(); }

 private:
  std::vector<std::uint32_t> jobs_;
};

class FleetView {
 public:
  FleetView(const Workload& workload, const Submissions& submissions);

  const placement::Fleet& fleet() const { return fleet_; }
  // Returns a counter that rises when a place is released. While it is equal, what did not fit still does not fit.
  std::uint64_t releases() const { return releases_; }
  std::int64_t idle_gpu_milli() const { return idle_; }
  // Returns the places of a running job, or null.
  const std::vector<placement::Choice>* held_by(JobId job) const;

  // Sets the score that is informed of each change. Requires: it outlives this object.
  void set_score(placement::PlacementScore* score) { score_ = score; }

  void on_record(const EventRecord& record);
  void take(const placement::PodShape& shape, const placement::Choice& choice);
  void give_back(const placement::PodShape& shape, const placement::Choice& choice);

  // Returns F of FGD over all nodes, in milli-GPU. Only nodes that changed since the last call are computed again.
  std::int64_t fragmented_gpu_milli();

 private:
  void changed(std::uint32_t node);

  const Workload& workload_;
  const Submissions& submissions_;
  placement::Fleet fleet_;
  placement::PlacementScore* score_ = nullptr;
  std::unordered_map<std::uint64_t, std::vector<placement::Choice>> held_;
  std::uint64_t releases_ = 0;
  std::int64_t idle_ = 0;
  std::vector<double> fragmented_;  // by node
  double fragmented_sum_ = 0;
  std::vector<std::uint32_t> stale_;
  std::vector<bool> is_stale_;
};

placement::Choice choice_of(const TaskPlacement& placement);

}  // namespace berth::sim
