#pragma once
// One line of pending jobs, by arrival (fifo) or by known run time (shortest, an oracle), with a placement score. With
// a blocking head no job may pass a job that does not fit; otherwise later jobs may. No job is evicted.

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/simulate/cycle_policy.h"

namespace berth::sim {

// Equivalence classes: jobs with equal requests and equal numbers of workers. If one does not fit, no other fits.
class Lanes {
 public:
  explicit Lanes(const Workload& workload);
  std::uint32_t of(std::uint32_t job) const { return lane_[job]; }
  std::size_t size() const { return count_; }

 private:
  std::vector<std::uint32_t> lane_;
  std::size_t count_ = 0;
};

class LinePolicy final : public CyclePolicy {
 public:
  LinePolicy(const PolicyWorld& world, std::unique_ptr<placement::PlacementScore> score, const PolicySpec& spec);
  ~LinePolicy() override { world_.view.set_score(nullptr); }

  void on_record(const EventRecord& record) override;
  Plan run_cycle(state::State& state, Timestamp now) override;

 private:
  using Key = std::tuple<std::int64_t, std::int64_t, JobId>;  // run time or 0, submission, id
  Key key_of(JobId id) const;
  bool blocked(std::uint32_t lane) const { return blocked_at_[lane] == world_.view.releases() + 1; }

  PolicyWorld world_;
  std::unique_ptr<placement::PlacementScore> score_;
  bool shortest_first_;
  bool head_blocks_;
  Lanes lanes_;
  std::set<Key> line_;
  std::map<std::uint32_t, std::int64_t> waiting_;  // by equivalence class
  std::vector<std::uint64_t> blocked_at_;          // by class: view.releases() + 1 when it did not fit
};

}  // namespace berth::sim
