#pragma once
// Verdicts: answers that equal pending jobs share within one cycle, so that each is computed once. Jobs with the same
// requests whose queues have the same quota path (state/quota_path.h) are one case: quota answers the same to all of
// them. Cases of several quota paths may still ask the same of the nodes, if quota leaves them the same GPU models.
// Such equal requests for places share a number (Id).

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "model/ids.h"
#include "model/reason.h"
#include "model/resources.h"
#include "sched/place/node_fit.h"
#include "sched/queue/admit.h"
#include "state/state.h"

namespace berth::sched {

class Verdicts {
 public:
  using Id = std::uint32_t;
  struct Case {
    QueueId rules_from;
    Amounts least;                   // what a job of it counts at least
    Admission admission;             // as of its first use
    std::optional<Id> question;      // as of then, if it was admitted
    bool alike = false;              // a refusal of places holds for all its jobs: one group, no affinity
    bool within = false;             // inside a guarantee on its quota path, as of its first use
    std::optional<Reason> over_max;  // a ceiling that refuses it by now; it stays so in this cycle
    std::size_t over_max_as_of =
        std::numeric_limits<std::size_t>::max();  // the number of takes when over_max was checked
    std::optional<state::WaitCause> wait_cause;   // of its jobs that cannot evict, for the reason parked_for
    ReasonCode parked_for = ReasonCode::kNone;
  };

  explicit Verdicts(const state::State& state) : state_(state) {}

  using CaseKey = std::pair<std::uint64_t, std::uint32_t>;  // requests and quota path
  // Returns the case of `job`.
  Case& case_of(const CaseKey& key, JobId job);
  // Returns the number of the job's request for places, if quota leaves it these models.
  Id id_of(const state::JobState& job, ModelMask models);

 private:
  const state::State& state_;
  std::map<CaseKey, Case> cases_;
  std::map<std::uint64_t, Amounts> least_;                                 // by requests
  std::map<std::tuple<std::uint64_t, ModelMask, std::uint32_t>, Id> ids_;  // by requests, models and asker
};

}  // namespace berth::sched
