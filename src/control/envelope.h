#pragma once
// The envelope: what may be changed below a queue without asking those above it. The guarantees of the children keep
// within the guarantee of their parent, a ceiling is at most each ceiling above it and at least those below it, and
// terms of eviction protect no more than those of the queue above. It holds now and whenever the lease of a change
// ends.

#include <string>
#include <vector>

#include "base/result.h"
#include "base/timestamp.h"
#include "model/queue_edit.h"

namespace berth::control {

// Returns the error that refuses the limits of one queue, with its arithmetic. Requires that `in_force` and the file
// have the queue. Only what these limits bear on is looked at: a file may say what a command may not.
Result<void> check_envelope(const ClusterConfig& in_force, const ClusterConfig& file, const std::string& queue,
                            const std::vector<LimitChange>& limits);

// Returns an error if a term of eviction among the limits would protect the jobs of the queue more than the terms of
// the queue above protect its own. Only the operator gives more.
Result<void> check_terms(const ClusterConfig& in_force, const std::string& queue,
                         const std::vector<LimitChange>& limits);

// Returns an error if the limits that the changes leave in force break the envelope at `now`, or later when a lease in
// the queue, beside it, below it or above it ends.
Result<void> check_edits(const ClusterConfig& file, const QueueEdits& edits, const std::string& queue,
                         const std::vector<LimitChange>& limits, Timestamp now);

// Returns an error if the file and the changes over it break a rule of mistakes_in() at `now`, or when a lease ends.
Result<void> check_file_under(const QueueEdits& edits, const ClusterConfig& file, Timestamp now);

}  // namespace berth::control
