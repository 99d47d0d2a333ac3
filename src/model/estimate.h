#pragma once
// The source of an estimated run time, and how similar the jobs are that it was learned from.

#include "base/fields.h"

namespace berth {

enum class EstimateSource { kNone, kTimeLimit, kStated, kLearned };
BERTH_ENUM_NAMES(EstimateSource, "none", "time-limit", "stated", "learned");

// What the jobs that an estimate was learned from have in common with the job; most similar first.
enum class Likeness { kName, kUserAndSize, kUser, kQueueAndSize, kQueue, kAny };
BERTH_ENUM_NAMES(Likeness, "user, queue, size and name", "user, queue and size", "user and queue", "queue and size",
                 "queue", "nothing but the cluster");

}  // namespace berth
