#pragma once
// Advice: a common pitfall of shared GPU clusters that this cluster is in (docs/advice.md). The rules that find it are
// in explain/advice/advice.h.

#include <string>

#include "base/fields.h"

namespace berth {

enum class Pitfall { kLimitsTooHigh, kForgettingGang, kIgnoringTopology, kNoQuotas, kFragmentationNotWatched };
BERTH_ENUM_NAMES(Pitfall, "limits-too-high", "forgetting-gang", "ignoring-topology", "no-quotas",
                 "fragmentation-not-watched");

// In the order in which advice is listed.
enum class AdviceCode {
  kGuaranteesNotBacked,
  kCeilingBoundsNothing,
  kJobsAboveLimit,
  kAsksStrandGpus,
  kGpusUnderutilized,
  kFloorUnused,
  kGangByHand,
  kNodesWithoutPlace,
  kTopologyNotConfigured,
  kGangsCutApart,
  kQueuesWithoutQuota,
  kUserWithoutLimit,
  kWeightZeroWaits,
  kFragmentationNotWatched,
  kFragmentationNotMended,
};
BERTH_ENUM_NAMES(AdviceCode, "guarantees-not-backed", "ceiling-bounds-nothing", "jobs-above-limit", "asks-strand-gpus",
                 "gpus-underdriven", "floor-unused", "gang-by-hand", "nodes-without-place", "topology-not-configured",
                 "gangs-cut-apart", "queues-without-quota", "user-without-limit", "weight-0-waits",
                 "fragmentation-not-watched", "fragmentation-not-mended");

// Returns the pitfall that the advice is about.
constexpr Pitfall pitfall_of(AdviceCode code) {
  switch (code) {
    case AdviceCode::kGuaranteesNotBacked:
    case AdviceCode::kCeilingBoundsNothing:
    case AdviceCode::kJobsAboveLimit:
    case AdviceCode::kAsksStrandGpus:
    case AdviceCode::kGpusUnderutilized:
    case AdviceCode::kFloorUnused:
      return Pitfall::kLimitsTooHigh;
    case AdviceCode::kGangByHand:
      return Pitfall::kForgettingGang;
    case AdviceCode::kNodesWithoutPlace:
    case AdviceCode::kTopologyNotConfigured:
    case AdviceCode::kGangsCutApart:
      return Pitfall::kIgnoringTopology;
    case AdviceCode::kQueuesWithoutQuota:
    case AdviceCode::kUserWithoutLimit:
    case AdviceCode::kWeightZeroWaits:
      return Pitfall::kNoQuotas;
    case AdviceCode::kFragmentationNotWatched:
    case AdviceCode::kFragmentationNotMended:
      break;
  }
  return Pitfall::kFragmentationNotWatched;
}

// warning: it costs GPUs or time now. note: it may do so.
enum class AdviceSeverity { kWarning, kNote };
BERTH_ENUM_NAMES(AdviceSeverity, "warning", "note");

enum class AdviceAbout { kCluster, kQueue, kPool, kJob };
BERTH_ENUM_NAMES(AdviceAbout, "cluster", "queue", "pool", "job");

// One piece of advice: what it is about, what is wrong, and how to fix it.
struct Advice {
  AdviceCode code = AdviceCode::kGuaranteesNotBacked;
  AdviceSeverity severity = AdviceSeverity::kNote;
  AdviceAbout about = AdviceAbout::kCluster;
  std::string name;    // of the queue or pool, or the job's number; empty: the cluster
  std::string text;    // what is wrong, with numbers, in whole sentences
  std::string remedy;  // how to fix it
};

}  // namespace berth
