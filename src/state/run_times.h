#pragma once
// How long jobs like one another ran: the last few run times of what finished, by user, queue, name and size, and by
// less where that is too little. People do not know how long their jobs take, their own recent jobs do (Tsafrir, Etsion
// and Feitelson, "Backfilling Using System-Generated Predictions Rather than User Runtime Estimates", TPDS'07).
//
// Whole seconds, no averages: an estimate is one of the run times that were seen. Bounded: kLikenessesRemembered lists
// of kRunsRemembered, of which the one that has not been added to for longest is forgotten first.

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
inline constexpr std::size_t kRunsEnough = 3;  // fewer say nothing; something less alike is asked then
inline constexpr std::size_t kLikenessesRemembered = 65'536;
inline constexpr std::size_t kLikenesses = 6;

struct LearnedRunTime {
  std::int64_t seconds = 0;
  Likeness likeness = Likeness::kAny;
  std::size_t runs = 0;  // learned from so many
  bool operator==(const LearnedRunTime&) const = default;
};

// Equal for jobs whose run times are looked for in the same lists.
std::uint64_t likeness_of(const JobSpec& spec);

class RunTimes {
  using Seconds = std::array<std::uint32_t, kRunsRemembered>;
  struct List {
    std::uint64_t added = 0;  // when the last run time came, counted in run times
    std::uint32_t runs = 0;   // so many are remembered
    Seconds latest{};         // the latest last
    Seconds sorted{};
  };

 public:
  // Where the run times of jobs like one are looked for, the most alike first: looked up as far as somebody had to ask,
  // for as long as the job is there and nothing is learned.
  class Alike {
   public:
    Alike(const JobSpec& spec, std::uint64_t likeness) : spec_(&spec), likeness_(likeness) {}

   private:
    friend class RunTimes;
    const JobSpec* spec_;
    std::uint64_t likeness_;  // likeness_of(spec)
    std::size_t looked_up_ = 0;
    std::array<const List*, kLikenesses> lists_{};  // null where there are none
  };

  // One list, as it is saved.
  struct Saved {
    std::uint64_t key = 0;
    std::uint64_t added = 0;
    std::vector<std::uint32_t> seconds;
    static constexpr auto fields() {
      return field_list(field("key", &Saved::key), field("added", &Saved::added), field("seconds", &Saved::seconds));
    }
  };

  // A job of this kind ran so long.
  void learn(const JobSpec& spec, std::int64_t seconds);

  // The run time that `percent` of the most alike jobs did not exceed, of those that ran longer than `already`. Nothing
  // where too few ever did.
  std::optional<LearnedRunTime> quantile(const JobSpec& spec, std::int64_t percent, std::int64_t already = 0) const;

  std::optional<LearnedRunTime> quantile(Alike& alike, std::int64_t percent, std::int64_t already) const;

  std::size_t size() const { return lists_.size(); }
  std::vector<Saved> save() const;
  // False where the lists could not have been saved by this.
  bool load(const std::vector<Saved>& saved);
  // Names what contradicts itself, or nothing.
  std::optional<std::string> audit() const;

 private:
  void add(std::uint64_t key, std::uint32_t seconds);
  static void remember(List& list, std::uint32_t seconds);

  std::unordered_map<std::uint64_t, List> lists_;  // allowed: looked up by key, never walked
  std::map<std::uint64_t, std::uint64_t> ages_;    // List::added to key
  std::uint64_t added_ = 0;
};

}  // namespace berth::state
