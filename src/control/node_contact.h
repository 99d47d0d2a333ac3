#pragma once
// Nodes that lose and regain contact. The rules keep a fault of the network, or of one machine, from ending jobs that
// still run:
//
// - Flapping: a node that lost contact `flap_losses` times within `flap_window` is cordoned when it comes back. An
//   operator has to uncordon it.
// - A node that was announced to go away (a spot notice) takes tasks again once it has rebooted. Contact without a
//   reboot is not enough.
// - Mass loss: while at least three nodes and at least `max_unreachable_percent` of the nodes are silent, no silent
// node is
//   declared lost. Such nodes stay in status unknown and their jobs stay charged. Otherwise these jobs would be
//   requeued at once and would evict jobs on the other nodes. When fewer nodes are silent, the rest have one more
//   minute before they are declared lost. An operator may fence a node at any time.

#include <optional>
#include <string>
#include <string_view>

#include "control/batch.h"

namespace berth::control {

// Scales an elastic gang down before its task `lost` exits with its node or supervisor. The tasks on that node and all
// later tasks are stopped; the others go on. It does nothing if a task of the first start is on that node, because then
// the whole gang ends.
void scale_down_after_loss(Batch& batch, const state::JobState& job, std::uint32_t lost);

// Declares the node lost: all its tasks exit. `removed`: it is no more part of the fleet (reconcile_removals).
// Requires: nothing runs on the node any more.
void declare_lost(Batch& batch, const state::NodeState& node, const std::string& why, bool removed = false);

// Handles the report of a backend that the node is dead. The node is declared lost, or later by review_deferred if
// there is a mass loss.
void lose(Batch& batch, const state::NodeState& node, const std::string& why);

// Handles a node that is in contact again; `booted` is true if it has rebooted in between.
void welcome_back(Batch& batch, NodeId node, bool booted);

// Returns true if the registering machine has rebooted since it was last known. If both descriptions have the label
// kBootLabel, a different value means a reboot. Otherwise a node that was declared lost counts as rebooted.
inline constexpr std::string_view kBootLabel = "berth.boot";
bool has_booted(const state::NodeState& known, const NodeSpec& spec);

// Declares deferred losses (see mass loss) one minute after the mass loss has ended. Returns when that is, or never().
// `few_silent_since` remembers when the mass loss ended; a restart forgets it and so gives the nodes another minute.
Timestamp review_deferred(Batch& batch, std::optional<Timestamp>& few_silent_since);

// Removes the nodes that are no more part of the fleet as soon as no task and no nomination is left on them.
void reconcile_removals(Batch& batch);

}  // namespace berth::control
