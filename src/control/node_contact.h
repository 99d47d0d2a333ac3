#pragma once
// Nodes that come and go. These rules keep a fault of the network, or of one machine, from becoming a fault of the
// jobs:
//
//  - Flapping: a node that has lost contact `flap_losses` times within `flap_window` is cordoned when it comes back,
//  with
//    that as the reason, until an operator uncordons it.
//  - A node that was to go away and came back afterwards takes tasks again.
//  - Mass loss: while at least `mass_loss_percent` of the nodes, and three, are silent, none of them is given up. They
//    stay unknown with their jobs and their GPUs charged, so that nobody on the other nodes has to leave for jobs that
//    would start again. They are given up when fewer are silent, or when an operator fences them.

#include <string>

#include "control/batch.h"

namespace berth::control {

// The node is provably dead: so is all that ran on it.
void declare_lost(Batch& batch, const state::NodeState& node, const std::string& why);

// A backend says that the node is dead. It is given up, or waits because too many are silent.
void lose(Batch& batch, const state::NodeState& node, const std::string& why);

// The node is in contact again.
void welcome_back(Batch& batch, NodeId node);

// Nodes whose loss had to wait are given up as soon as no mass loss holds them back.
void give_up_deferred(Batch& batch);

}  // namespace berth::control
