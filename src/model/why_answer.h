#pragma once
// WhyAnswer: why a job does not run, in words that one viewer may read. explain/why.h works it out; the API sends its
// fields, and the command line lays them out as text.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/fields.h"
#include "base/timestamp.h"
#include "model/ids.h"
#include "model/reason.h"

namespace berth {

// What is known of a start time: not-before is a bound that others can delay, at-latest one that nothing delays.
enum class StartBound { kNotBefore, kProbably, kAtLatest, kUnknown };
BERTH_ENUM_NAMES(StartBound, "not-before", "probably", "at-latest", "unknown");

// The role that can carry a remedy out: the owner of the job, or an operator of the cluster.
enum class RemedyBy { kOwner, kOperator };
BERTH_ENUM_NAMES(RemedyBy, "owner", "operator");

struct WhyAnswer {
  // The place of the job among all pending jobs.
  struct Line {
    std::int64_t number = 1;            // 1: it is tried first
    bool exact = true;                  // false: the number is at least this
    std::int64_t can_start_before = 0;  // of the jobs ahead, those that no limit of their own holds back
    std::string text;                   // which queues and jobs go first, and why; empty for the first in line
  };
  struct Start {
    StartBound bound = StartBound::kUnknown;
    std::optional<Timestamp> at;
    std::string text;  // "not before 19:06:51 UTC (in 4 min), and job 21 will probably take those places"
  };
  struct Remedy {
    std::string kind;
    RemedyBy by = RemedyBy::kOwner;
    bool taken = false;  // a job that goes first would take what the remedy frees
    std::string text;    // completes "the job would start now if"
    // What changes in the document of the job, as a JSON merge patch; empty: that is not what changes.
    std::string patch = {};
  };

  JobId job;
  ReasonCode code = ReasonCode::kNone;
  bool never = false;                // waiting cannot help
  std::string headline;              // one or two whole sentences: the answer
  std::string quota;                 // how the queue stands; empty where the headline says it
  std::optional<Line> line;          // none: the job is not in line
  std::optional<Start> start;        // none: nothing is to be said beside the headline
  std::string preemption;            // which jobs could be stopped for it, and what prevents that
  std::vector<Remedy> remedies;      // the smallest changes that would start it now
  std::vector<std::string> details;  // further facts with numbers
};

// Returns the answer as lines of at most 100 columns: the headline, quota, line, start, preemption and the two best
// remedies. `all`: all remedies and further facts instead of the two best.
std::string text_of(const WhyAnswer& answer, bool all);

}  // namespace berth
