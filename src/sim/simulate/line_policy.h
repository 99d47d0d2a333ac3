#pragma once
// One line of waiting jobs, by arrival (fifo) or by known run time (shortest, the oracle), and a placement score. With
// a blocking head nobody passes a job that does not fit; otherwise those behind it may go first. Nothing is stopped.

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/simulate/cycle_policy.h"

namespace berth::sim {

// Jobs that ask for the same in the same number: where one does not fit, no other does.
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
  std::map<std::uint32_t, std::int64_t> waiting_;  // by lane
  std::vector<std::uint64_t> blocked_at_;          // by lane: one more than the view's releases when it did not fit
};

}  // namespace berth::sim
