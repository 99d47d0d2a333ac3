#include "explain/move_refusal.h"

#include <string>

#include "explain/shortage.h"
#include "sched/resize/move_target.h"

namespace berth::explain {

Result<std::vector<TaskPlacement>> find_move_target(state::State& state, JobId id, const std::vector<NodeId>& off,
                                                    Timestamp now) {
  const std::string none = "job " + std::to_string(id.value()) + " finds no places elsewhere now: ";
  const sched::MoveTarget target(state, id, off, now);
  if (target.places()) return *target.places();
  if (target.would_borrow()) return conflict(none + "it is within its guarantee and would borrow there");
  const Reason& why = target.why();
  return conflict(none + sentence_with_what_is_short(state, *state.job(id), why) + " (" +
                  std::string(name_of(why.code)) + ")");
}

}  // namespace berth::explain
