#pragma once
// Nodes that jobs show to be at fault. A job that fails on a node and then does well without it blames the node. A node
// that jobs of `suspect_users` different users have blamed within `suspect_window` is cordoned, until an operator
// uncordons it.
//
// - A start that the node refused (kNodeShortCode) blames it as soon as the whole job runs elsewhere. Whatever ended a
//   task while it ran blames the node of the first task that failed once the job has saved more than before, or has
//   succeeded, elsewhere; that failure costs it no try, once in the life of the job. The fault of a program that goes
//   with it to every node blames none.
// - Users count and not jobs, since one user alone could bring this about on purpose.
// - No more than 2 percent of the nodes, and one at least, are cordoned so at a time: what seems to be the fault of
// many
//   nodes is the fault of something else.

#include "control/batch.h"

namespace berth::control {

// Whether the end of a task may be its node's fault. What the job asked for, what berth did, and the loss or restart of
// a whole node say nothing more of the node.
bool may_be_its_nodes_fault(const TaskExited& exit);

// Blames the node on which the job failed last, if its attempt of now runs without that node, and shows the node to be
// at fault. `does_well`: it has saved its work or succeeded; else its tasks have started.
void blame_node_of_last_failure(Batch& batch, JobId job, bool does_well);

}  // namespace berth::control
