#include "explain/children.h"

#include "explain/reason_text.h"
#include "explain/text_list.h"
#include "explain/why.h"
#include "sched/place/place.h"
#include "sched/queue/admit.h"
#include "sched/resize/elastic.h"
#include "state/transaction.h"

namespace berth::explain {

using namespace sched;

using state::JobState;
using state::State;

std::string explain_children(State& state, const Words& words, const JobState& parent) {
  const auto found = state.children().find(parent.id);
  const std::set<JobId> none;
  const std::set<JobId>& children = found == state.children().end() ? none : found->second;
  std::size_t running = 0;
  const JobState* waiting = nullptr;
  for (const JobId id : children) {
    const JobState& child = *state.job(id);
    if (child.attempt) ++running;
    if (!child.attempt && waiting == nullptr) waiting = &child;
  }
  const bool array = parent.spec.kind == JobKind::kArray;
  const auto all = array ? static_cast<std::size_t>(parent.spec.array_size) : children.size();
  std::string text = "runs " + std::to_string(running) + " of " +
                     counted(static_cast<std::int64_t>(all), array ? "element" : "replica");
  const auto at_once = static_cast<std::size_t>(parent.spec.array_running);
  if (at_once > 0 && running >= at_once) text += ", as many as array.running allows";
  if (waiting == nullptr) return text;
  return text + ". Job " + std::to_string(waiting->id.value()) + " " + why_briefly(state, words, *waiting).text;
}

std::string tasks_of_all(const JobState& gang) {
  std::size_t all = 0;
  for (const TaskGroup& group : gang.spec.groups) all += static_cast<std::size_t>(group.count);
  const std::size_t here = gang.attempt->tasks.size();
  return here < all ? " with " + std::to_string(here) + " of " + std::to_string(all) + " tasks" : "";
}

std::vector<std::string> explain_growth(State& state, const Words& words, const JobState& gang) {
  if (missing_tasks(gang).empty()) return {};
  const std::string no = "does not scale up: the job ";
  if (!may_grow(state, gang)) return {no + "is about to end or to leave a node"};
  if (const Timestamp when = grows_next(state, gang); when > words.now())
    return {"may scale up from " + words.time_and_span(when) +
            " (its size changed less than scheduling.resize_interval ago)"};
  state::Transaction transaction(state);
  for (const JobId owner : std::set<JobId>(state.reservations()))
    transaction.set_aside(owner, state.job(owner)->reservation->placements);
  SearchStats work;
  const Growth growth = find_growth(state, gang, work);
  if (growth.placements.empty()) {
    return {growth.refusal ? no + reason_text(words, gang, *growth.refusal)
                           : "does not scale up: no further task fits beside nominations and backfill reservations"};
  }
  return {"scales up in the next cycle, unless a pending job needs the places"};
}

}  // namespace berth::explain
