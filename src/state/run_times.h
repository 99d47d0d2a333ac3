#pragma once
// RunTimes: the latest run times of finished jobs, in lists of similar jobs (same user, queue, name and size). If a
// list has too few run times, a list of less similar jobs is used. Users do not know how long their jobs take, but
// their recent jobs tell (Tsafrir, Etsion and Feitelson, "Backfilling Using System-Generated Predictions Rather than
// User Runtime Estimates", TPDS'07).
//
// Run times are whole seconds and are not averaged: an estimate is one run time that was observed. Memory is bounded to
// kLikenessesRemembered lists of kRunsRemembered run times. The list that was not added to for the longest time is
// dropped first.

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>  // allowed: looked up by key, never walked
#include <vector>

#include "base/fields.h"
#include "model/estimate.h"
#include "model/job.h"

namespace berth::state {

inline constexpr std::size_t kRunsRemembered = 16;
inline constexpr std::size_t kRunsEnough = 3;  // with fewer, a list of less similar jobs is used
inline constexpr std::size_t kLikenessesRemembered = 65'536;
inline constexpr std::size_t kLikenesses = 6;

// A run time learned from similar jobs: in what they are similar, and from how many runs.
struct LearnedRunTime {
  std::int64_t seconds = 0;
  Likeness likeness = Likeness::kAny;
  std::size_t runs = 0;
  bool operator==(const LearnedRunTime&) const = default;
};

// Returns a key that is equal for jobs whose run times are looked up in the same lists.
std::uint64_t likeness_of(const JobSpec& spec);

class RunTimes {
  using Seconds = std::array<std::uint32_t, kRunsRemembered>;
  struct List {
    std::uint64_t added = 0;  // when the last run time was added, counted in additions
    std::uint32_t runs = 0;   // number of run times in the list
    Seconds latest{};         // the newest last
    Seconds sorted{};
  };

 public:
  // A cache of the lists for one job, the most similar jobs first, looked up on demand. Requires that the spec exists
  // and no run time is learned while it is used.
  class Alike {
   public:
    Alike(const JobSpec& spec, std::uint64_t likeness) : spec_(&spec), likeness_(likeness) {}

   private:
    friend class RunTimes;
    const JobSpec* spec_;
    std::uint64_t likeness_;  // likeness_of(spec)
    std::size_t looked_up_ = 0;
    std::array<const List*, kLikenesses> lists_{};  // null if there is no such list
  };

  // One list in a checkpoint.
  struct Saved {
    std::uint64_t key = 0;
    std::uint64_t added = 0;
    std::vector<std::uint32_t> seconds;
    static constexpr auto fields() {
      return field_list(field("key", &Saved::key), field("added", &Saved::added), field("seconds", &Saved::seconds));
    }
  };

  // Records that a job with this spec ran for `seconds`.
  void learn(const JobSpec& spec, std::int64_t seconds);

  // Returns the run time that `percent` of the most similar jobs did not exceed. Only runs longer than `already`
  // seconds count. Returns nothing if too few such runs are known.
  std::optional<LearnedRunTime> quantile(const JobSpec& spec, std::int64_t percent, std::int64_t already = 0) const;

  std::optional<LearnedRunTime> quantile(Alike& alike, std::int64_t percent, std::int64_t already) const;

  std::size_t size() const { return lists_.size(); }
  std::vector<Saved> save() const;
  // Restores lists from a checkpoint. Returns false if save() cannot have written them.
  bool load(const std::vector<Saved>& saved);
  // Returns the first inconsistency, or nothing.
  std::optional<std::string> audit() const;

 private:
  void add(std::uint64_t key, std::uint32_t seconds);
  static void remember(List& list, std::uint32_t seconds);

  std::unordered_map<std::uint64_t, List> lists_;  // allowed: looked up by key, never walked
  std::map<std::uint64_t, std::uint64_t> ages_;    // List::added to key
  std::uint64_t added_ = 0;
};

}  // namespace berth::state
