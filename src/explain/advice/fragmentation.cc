// Advice about fragmentation: the configuration sets no alert for it, or allows no consolidation that would reduce it.

#include "base/checked.h"
#include "explain/advice/rules.h"

namespace berth::explain {

namespace {

// Returns true if typical jobs cannot use more than a tenth of all GPUs.
bool is_much(std::int64_t unusable, std::int64_t all) { return Int128{unusable} * 10 > all; }

// Returns true if a job could be moved at all: GPUs of one node are not put together by moving.
bool has_other_places(const state::State& state) {
  int nodes = 0;
  for (const state::NodeState& node : state.nodes()) {
    if (node.status != NodeStatus::kLost && !node.spec.gpus.empty()) ++nodes;
  }
  return nodes > 1;
}

std::string figures(const state::State& state, std::int64_t unusable) {
  const std::int64_t all = state.capacity()[kDimGpu];
  return tenths_words(state.fragmentation().idle_milli()) + " of " + amount_words(state, kDimGpu, all) + " " +
         (all == kMilli ? "is" : "are") + " idle, and typical jobs cannot use " + tenths_words(unusable) +
         " of them (" + percent_words(unusable, all) + " of all)";
}

}  // namespace

// Two items: GPUs without an alert, a warning if typical jobs cannot use more than a tenth of them; and no
// consolidation while that is so and a job could move to another node.
void advise_on_fragmentation(Survey& survey) {
  const state::State& state = survey.state();
  const SchedulingConfig& scheduling = state.config().scheduling;
  const std::int64_t all = state.capacity()[kDimGpu];
  if (all == 0) return;
  const std::int64_t unusable = state.fragmentation().unusable_milli();
  const bool much = is_much(unusable, all);
  const std::string now = figures(state, unusable);
  if (scheduling.fragmentation_alert_percent == 0) {
    survey.say({AdviceCode::kFragmentationNotWatched,
                much ? AdviceSeverity::kWarning : AdviceSeverity::kNote,
                AdviceAbout::kCluster,
                {},
                "No alert is set for fragmentation; now " + now + ".",
                "Set `scheduling.fragmentation_alert`, such as 10 (percent), and watch the event `fragmentation-alarm` "
                "or `berth_fragmentation_ratio`."},
               unusable);
  }
  if (scheduling.consolidations_per_hour == 0 && much && has_other_places(state)) {
    survey.say({AdviceCode::kFragmentationNotMended,
                AdviceSeverity::kWarning,
                AdviceAbout::kCluster,
                {},
                "No jobs are moved to reduce fragmentation; now " + now + ".",
                std::string("Set `scheduling.consolidations_per_hour`, such as 10") +
                    (scheduling.score == NodeScore::kBestFit
                         ? ", and `scheduling.score: fragmentation`, by which less of it arises."
                         : ".")},
               unusable);
  }
}

}  // namespace berth::explain
