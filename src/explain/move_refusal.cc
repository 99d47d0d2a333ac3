#include "explain/move_refusal.h"

#include <string>

#include "explain/reason_text.h"
#include "sched/resize/move_target.h"

namespace berth::explain {

Result<std::vector<TaskPlacement>> find_move_target(state::State& state, JobId id, const std::vector<NodeId>& off,
                                                    Timestamp now) {
  const std::string none = "job " + std::to_string(id.value()) + " finds no places elsewhere now: ";
  const sched::MoveTarget target(state, id, off, now);
  if (target.places()) return *target.places();
  if (target.would_borrow()) return conflict(none + "it is within its guarantee and would borrow there");
  const Reason& why = target.why();
  const Viewer viewer = Viewer::sees_all();  // a role that may move jobs of others sees them
  return conflict(none + "there it " + reason_text({state, viewer, now}, *state.job(id), why) + " (" +
                  std::string(name_of(why.code)) + ")");
}

}  // namespace berth::explain
