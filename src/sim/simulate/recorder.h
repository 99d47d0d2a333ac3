#pragma once
// Folds the events of a run by the clock into its RunResult: outcomes, the fleet and the queues over time, and who held
// which node when.

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "model/event.h"
#include "sim/report/run_result.h"
#include "sim/simulate/breach.h"
#include "sim/simulate/fleet_view.h"
#include "sim/simulate/progress.h"
#include "sim/simulate/workload.h"

namespace berth::sim {

class Recorder {
 public:
  // `gantt`: whether to keep the bars, which are many.
  Recorder(const Workload& workload, const Submissions& submissions, FleetView& view, const Progress& progress,
           bool gantt);

  void on_record(const EventRecord& record);
  // The job was not let in: it can never fit, or the product refused it.
  void refuse(std::uint32_t job, const std::string& why);
  // One sample of everything, if anything changed since the last. `why` says of a queue whose guarantee is breached, by
  // place in the tree, what for.
  using WhyBreached = std::function<Breach(std::size_t)>;
  void sample(std::int64_t now_ms, const WhyBreached& why);
  // The run ends with its last change: nothing that is still due after it, such as the timer of a save, matters.
  RunResult finish();

 private:
  struct Line {
    std::int64_t usage_milli = 0;
    std::int64_t waiting_milli = 0;       // of jobs that their queues' max lets run
    std::multiset<std::int64_t> waiting;  // the same, job by job; only where there is a guarantee
    std::int64_t last_ms = 0;             // until then breaches are summed up
    std::optional<Breach> breached;       // since then one of them would lie within the guarantee
  };
  void book_breaches(std::int64_t now_ms);
  void judge_guarantees(std::int64_t now_ms, const WhyBreached& why);
  void waits(std::uint32_t job, int sign);
  void holds(std::uint32_t job, int sign);
  void draw(std::uint32_t job, JobId id, std::int64_t now_ms);
  std::vector<std::int64_t> demands_now() const;
  FairnessSample fairness_now(std::int64_t now_ms) const;
  void sample_fairness(std::int64_t now_ms);

  const Workload& workload_;
  const Submissions& submissions_;
  FleetView& view_;
  const Progress& progress_;
  bool gantt_;
  RunResult result_;
  std::vector<Line> lines_;  // by place in the tree of queues; each holds what is below it
  FleetSample now_;
  bool changed_ = true;
  std::int64_t fairness_step_ms_ = 1000;
  std::optional<FairnessSample> held_back_;  // the last change that came too soon after a sample
  std::unordered_map<std::uint64_t, std::vector<GanttBar>> open_bars_;
};

}  // namespace berth::sim
