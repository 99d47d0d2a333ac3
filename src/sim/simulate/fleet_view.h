#pragma once
// The fleet as placement scores see it, kept current by the same events as the product's state. It never decides; a
// policy may take places in it tentatively while it thinks and must give them back before it returns.

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "model/event.h"
#include "sim/placement/policy.h"
#include "sim/simulate/workload.h"

namespace berth::sim {

// Which job of the workload a submission was: job ids are given in the order of submission, from 1.
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
  // Rises whenever something was given back: until then, what did not fit still does not.
  std::uint64_t releases() const { return releases_; }
  std::int64_t idle_gpu_milli() const { return idle_; }
  // What a running job holds.
  const std::vector<placement::Choice>* held_by(JobId job) const;

  // The score is told of every change. It must outlive this.
  void set_score(placement::PlacementScore* score) { score_ = score; }

  void on_record(const EventRecord& record);
  void take(const placement::PodShape& shape, const placement::Choice& choice);
  void give_back(const placement::PodShape& shape, const placement::Choice& choice);

  // F of FGD over all nodes, in thousandths of a GPU; only nodes that changed since the last call are computed anew.
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
