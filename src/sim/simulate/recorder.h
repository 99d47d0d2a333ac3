#pragma once
// Folds the events of a run over time into its RunResult: outcomes, the fleet and the queues over time, and which job
// used which node when.

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
  // `gantt`: also keep the bars of the Gantt chart, which are many.
  Recorder(const Workload& workload, const Submissions& submissions, FleetView& view, const Progress& progress,
           bool gantt);

  void on_record(const EventRecord& record);
  // Notes a job that was refused: it can never fit, or the product refused it.
  void refuse(std::uint32_t job, const std::string& why);
  // Takes one sample of everything if something changed since the last. `why` returns, by index in the tree, why the
  // guarantee of a queue is breached.
  using WhyBreached = std::function<Breach(std::size_t)>;
  void sample(std::int64_t now_ms, const WhyBreached& why);
  // Ends the run at its last change. Things that are due later, such as the timer of a save, do not count.
  RunResult finish();

 private:
  struct Line {
    std::int64_t usage_milli = 0;
    std::int64_t waiting_milli = 0;       // of pending jobs that the max of their queues lets run
    std::multiset<std::int64_t> waiting;  // the same, job by job; only for a queue with a guarantee
    std::int64_t last_ms = 0;             // breaches are summed up to this time
    std::optional<Breach> breached;       // set while a pending job would be within the guarantee: the cause
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
  std::vector<Line> lines_;  // by index in the queue tree; each includes what is below it
  FleetSample now_;
  bool changed_ = true;
  std::int64_t fairness_step_ms_ = 1000;
  std::optional<FairnessSample> held_back_;  // the last change too soon after a sample to be one
  std::unordered_map<std::uint64_t, std::vector<GanttBar>> open_bars_;
};

}  // namespace berth::sim
