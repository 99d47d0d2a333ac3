#pragma once
// The search for the places of a whole gang: within the domains that it requires, together as far as can be, or
// anywhere. It says only whether there are places and what kind of refusal it is. The reason with its code and numbers
// is worked out by place/refusal.h, and only where it is asked for: most searches only ask whether a gang fits.

#include <cstddef>
#include <optional>

#include "model/job.h"
#include "sched/place/gang.h"
#include "state/state.h"

namespace berth::sched {

// What the search itself knows of its failure.
struct PlaceRefusal {
  enum class Kind {
    kRoom,    // the least counts do not fit anywhere
    kLevels,  // they do not fit within the levels that the job or its groups require
  };
  Kind kind = Kind::kRoom;
  std::size_t group = 0;  // kRoom: the first group that does not fit beside those before it
};

// The full counts of the groups, or the least ones.
Counts counts_of(const JobSpec& spec, bool full);

// Places the least counts of every group, and then as many tasks as fit up to the full counts. Returns nothing where
// that is done, else the refusal; the gang then has no places. Requires that the gang has none.
std::optional<PlaceRefusal> place_all(Gang& gang, const state::JobState& job);

}  // namespace berth::sched
