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
    Admission admission;             // when it was first asked for
    std::optional<Id> question;      // then, if it was admitted
    bool alike = false;              // places refused to one of it are refused to all: one group, and nobody to be near
    bool within = false;             // inside a guarantee on its way to the root, likewise when it was first asked for
    std::optional<Reason> over_max;  // a ceiling by now; it stays so in a cycle
    std::size_t over_max_as_of = std::numeric_limits<std::size_t>::max();  // so much was taken when that was looked at
    std::optional<state::WaitCause> wait_cause;  // of those that cannot claim, by why they were refused
    ReasonCode parked_for = ReasonCode::kNone;
  };

  explicit Verdicts(const state::State& state) : state_(state) {}

  using CaseKey = std::pair<std::uint64_t, std::uint32_t>;  // shape and standpoint
  // The case, of which `job` is one.
  Case& case_of(const CaseKey& key, JobId job);
  // What the job asks, where quota leaves it the models.
  Id id_of(const state::JobState& job, ModelMask models);

 private:
  const state::State& state_;
  std::map<CaseKey, Case> cases_;
  std::map<std::uint64_t, Amounts> least_;                                 // by shape
  std::map<std::tuple<std::uint64_t, ModelMask, std::uint32_t>, Id> ids_;  // by shape, models and asker
};

}  // namespace berth::sched
