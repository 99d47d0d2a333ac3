#pragma once
// Nodes that come and go. These rules keep a fault of the network, or of one machine, from becoming a fault of the
// jobs:
//
//  - Flapping: a node that has lost contact `flap_losses` times within `flap_window` is cordoned when it comes back,
//  with
//    that as the reason, until an operator uncordons it.
//  - A node that was to go away and has booted anew takes tasks again. One that never went away does not, however often
//    it is heard again.
//  - Mass loss: while at least `max_unreachable_percent` of the nodes, and three, are silent, none of them is given up.
//    They stay unknown with their jobs and their GPUs charged, so that nobody on the other nodes has to leave for jobs
//    that would start again. When fewer are silent, the rest has a minute to return, too, and is given up then; or when
//    an operator fences it.

#include <optional>
#include <string>
#include <string_view>

#include "control/batch.h"

namespace berth::control {

// A task of the job is about to be over because its node or supervisor was lost. An elastic gang that has only growth
// on that node gives this back, and what joined after it, and goes on.
void give_back_growth(Batch& batch, const state::JobState& job, std::uint32_t lost);

// The node is provably dead: so is all that ran on it.
void declare_lost(Batch& batch, const state::NodeState& node, const std::string& why);

// A backend says that the node is dead. It is given up, or waits because too many are silent.
void lose(Batch& batch, const state::NodeState& node, const std::string& why);

// The node is in contact again; `booted` says that it went away in between.
void welcome_back(Batch& batch, NodeId node, bool booted);

// Whether the machine that registers is another boot of the known one. Where its backend does not say by a label, it is
// when it was given up.
inline constexpr std::string_view kBootLabel = "berth.boot";
bool has_booted(const state::NodeState& known, const NodeSpec& spec);

// Nodes whose loss had to wait are given up a minute after no mass loss holds them back any more; says when that is. A
// control plane that starts anew gives them another minute.
Timestamp review_deferred(Batch& batch, std::optional<Timestamp>& few_silent_since);

}  // namespace berth::control
