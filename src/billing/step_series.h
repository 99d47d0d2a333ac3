#pragma once
// A rate that changes in steps, and its integral over any window. The recent past is kept step by step, so that any
// window in it is exact to the millisecond; what is older is folded into whole hours, where windows on full hours stay
// exact.

#include <cstdint>
#include <map>
#include <vector>

#include "base/codec.h"
#include "base/timestamp.h"

namespace berth::billing {

class StepSeries {
 public:
  static constexpr std::int64_t kHourMs = 3'600'000;
  static constexpr std::size_t kStepsKept = 20'000;

  // From `time` on the rate is larger by `delta`. Times never go back.
  void add(Timestamp time, std::int64_t delta);

  std::int64_t rate() const { return steps_.empty() ? 0 : steps_.back().rate; }
  // The integral over [from, to) in rate times milliseconds. The last rate goes on for ever.
  std::int64_t integral(Timestamp from, Timestamp to) const;
  // Windows that begin at this time or later are exact to the millisecond.
  Timestamp exact_from() const { return folded_until_; }

  static constexpr auto fields() {
    return std::tuple(field("steps", &StepSeries::steps_), field("hours", &StepSeries::hours_),
                      field("folded_until", &StepSeries::folded_until_));
  }

 private:
  struct Step {
    Timestamp from;
    std::int64_t rate = 0;
    static constexpr auto fields() { return std::tuple(field("from", &Step::from), field("rate", &Step::rate)); }
  };
  void fold_oldest();

  std::vector<Step> steps_;
  std::vector<std::pair<std::int64_t, std::int64_t>> hours_;  // hour number, integral; sorted
  Timestamp folded_until_;
};

}  // namespace berth::billing
