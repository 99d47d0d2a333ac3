#pragma once
// Questions: all that the search for places looks at besides the nodes, numbered, so that within a cycle equal ones are
// answered once: what is refused to one job is refused to all that ask the same. Also what jobs of one shape count.

#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "model/ids.h"
#include "model/resources.h"
#include "sched/node_fit.h"
#include "state/state.h"

namespace berth::sched {

class Questions {
 public:
  explicit Questions(const state::State& state) : state_(state), askers_(state.queues().size(), kUnknown) {}

  using Id = std::uint32_t;
  // What the job asks, where quota leaves it the models.
  Id id_of(const state::JobState& job, ModelMask models);
  // What a job of this shape counts at least.
  const Amounts& least(const state::JobState& job);

 private:
  // Whose tasks share GPUs, and, by index, which pools the queue may use; the shape tells the class.
  using Asker = std::pair<TrustDomainId, std::vector<bool>>;
  static constexpr std::uint32_t kUnknown = ~std::uint32_t{0};

  std::uint32_t asker_of(QueueId queue);

  const state::State& state_;
  std::vector<std::uint32_t> askers_;  // by queue
  std::map<Asker, std::uint32_t> known_askers_;
  std::map<std::tuple<std::uint64_t, ModelMask, std::uint32_t>, Id> ids_;  // by shape, models and asker
  std::map<std::uint64_t, Amounts> least_;                                 // by shape
};

}  // namespace berth::sched
