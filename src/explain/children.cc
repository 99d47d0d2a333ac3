#include "explain/children.h"

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

std::string explain_children(State& state, const JobState& parent, Timestamp now) {
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
  std::string text = std::to_string(running) + " of " +
                     counted(static_cast<std::int64_t>(all), array ? "element" : "replica") +
                     (running == 1 ? " runs" : " run");
  const auto at_once = static_cast<std::size_t>(parent.spec.array_running);
  if (at_once > 0 && running >= at_once) text += ", as many as array.running allows";
  if (waiting == nullptr) return text;
  const Explanation first = why_briefly(state, *waiting, now);
  return text + "; job " + std::to_string(waiting->id.value()) + " waits (" + std::string(name_of(first.reason.code)) +
         (is_never(first.reason.code) ? ", never): " : "): ") + first.summary;
}

std::string tasks_of_all(const JobState& gang) {
  std::size_t all = 0;
  for (const TaskGroup& group : gang.spec.groups) all += static_cast<std::size_t>(group.count);
  const std::size_t here = gang.attempt->tasks.size();
  return here < all ? " with " + std::to_string(here) + " of " + std::to_string(all) + " tasks" : "";
}

std::vector<std::string> explain_growth(State& state, const JobState& gang, Timestamp now) {
  if (missing_tasks(gang).empty()) return {};
  const std::string no = "does not scale up: ";
  if (!may_grow(state, gang)) return {no + "it is about to end or to leave a node"};
  if (const Timestamp when = grows_next(state, gang); when > now)
    return {"may scale up from " + to_iso8601(when) + " (its size changed less than scheduling.resize_interval ago)"};
  state::Transaction transaction(state);
  for (const JobId owner : std::set<JobId>(state.reservations()))
    transaction.set_aside(owner, state.job(owner)->reservation->placements);
  SearchStats work;
  const Growth growth = find_growth(state, gang, work);
  if (growth.placements.empty()) {
    return {no + (growth.refusal ? sentence(state, *growth.refusal)
                                 : "no further task fits beside nominations and backfill reservations")};
  }
  return {"scales up in the next cycle, unless a pending job needs the places"};
}

}  // namespace berth::explain
