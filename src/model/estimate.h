#pragma once
// Where an estimate of a job's run time comes from.

#include "base/fields.h"

namespace berth {

enum class EstimateSource { kNone, kTimeLimit, kStated, kLearned };
BERTH_ENUM_NAMES(EstimateSource, "none", "time-limit", "stated", "learned");

// In what the jobs that an estimate was learned from are like the one it is for, most alike first.
enum class Likeness { kName, kUserAndSize, kUser, kQueueAndSize, kQueue, kAny };
BERTH_ENUM_NAMES(Likeness, "user, queue, size and name", "user, queue and size", "user and queue", "queue and size",
                 "queue", "nothing but the cluster");

}  // namespace berth
