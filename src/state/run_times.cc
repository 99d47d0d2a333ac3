#include "state/run_times.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/check.h"
#include "base/hash.h"

namespace berth::state {

namespace {

// Returns the name with '#' for each number: "train-17" and "train-18" are runs of the same thing.
std::string without_numbers(const std::string& name) {
  std::string text;
  for (const char letter : name) {
    const bool digit = letter >= '0' && letter <= '9';
    if (!digit) text += letter;
    if (digit && (text.empty() || text.back() != '#')) text += '#';
  }
  return text;
}

std::uint64_t gpu_milli_of(const JobSpec& spec) {
  std::int64_t milli = 0;
  for (const TaskGroup& group : spec.groups) milli += group.request.total_gpu_milli() * group.count;
  return static_cast<std::uint64_t>(milli);
}

Hasher begin(Likeness likeness) { return Hasher().add(static_cast<std::uint64_t>(likeness)); }

std::uint64_t key_of(const JobSpec& spec, std::uint64_t most_alike, Likeness likeness) {
  switch (likeness) {
    case Likeness::kName:
      return most_alike;
    case Likeness::kUserAndSize:
      return begin(likeness).add(spec.queue).add(spec.user).add(gpu_milli_of(spec)).digest();
    case Likeness::kUser:
      return begin(likeness).add(spec.queue).add(spec.user).digest();
    case Likeness::kQueueAndSize:
      return begin(likeness).add(spec.queue).add(gpu_milli_of(spec)).digest();
    case Likeness::kQueue:
      return begin(likeness).add(spec.queue).digest();
    case Likeness::kAny:
      break;
  }
  return begin(Likeness::kAny).digest();
}

}  // namespace

std::uint64_t likeness_of(const JobSpec& spec) {
  Hasher key = begin(Likeness::kName);
  return key.add(spec.queue).add(spec.user).add(gpu_milli_of(spec)).add(without_numbers(spec.name)).digest();
}

void RunTimes::learn(const JobSpec& spec, std::int64_t seconds) {
  const auto kept = static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(seconds, 1, std::int64_t{std::numeric_limits<std::uint32_t>::max()}));
  const std::uint64_t most_alike = likeness_of(spec);
  for (std::size_t i = 0; i < kLikenesses; ++i) add(key_of(spec, most_alike, static_cast<Likeness>(i)), kept);
}

void RunTimes::add(std::uint64_t key, std::uint32_t seconds) {
  const auto [found, fresh] = lists_.try_emplace(key);
  List& list = found->second;
  if (!fresh) ages_.erase(list.added);
  remember(list, seconds);
  list.added = ++added_;
  ages_.emplace(list.added, key);
  if (lists_.size() <= kLikenessesRemembered) return;
  lists_.erase(ages_.begin()->second);
  ages_.erase(ages_.begin());
}

void RunTimes::remember(List& list, std::uint32_t seconds) {
  if (list.runs == kRunsRemembered) {
    std::rotate(list.latest.begin(), list.latest.begin() + 1, list.latest.end());
    --list.runs;
  }
  list.latest[list.runs++] = seconds;
  list.sorted = list.latest;
  std::sort(list.sorted.begin(), list.sorted.begin() + list.runs);
}

std::optional<LearnedRunTime> RunTimes::quantile(const JobSpec& spec, std::int64_t percent,
                                                 std::int64_t already) const {
  Alike alike(spec, likeness_of(spec));
  return quantile(alike, percent, already);
}

std::optional<LearnedRunTime> RunTimes::quantile(Alike& alike, std::int64_t percent, std::int64_t already) const {
  BERTH_CHECK(percent > 0 && percent <= 100);
  for (std::size_t i = 0; i < kLikenesses; ++i) {
    if (i == alike.looked_up_) {
      const auto found = lists_.find(key_of(*alike.spec_, alike.likeness_, static_cast<Likeness>(i)));
      alike.lists_[alike.looked_up_++] = found == lists_.end() ? nullptr : &found->second;
    }
    if (alike.lists_[i] == nullptr) continue;
    const List& list = *alike.lists_[i];
    std::size_t shorter = 0;
    while (shorter < list.runs && list.sorted[shorter] <= already) ++shorter;
    const std::size_t runs = list.runs - shorter;
    if (runs < kRunsEnough) continue;
    const std::size_t rank = (runs * static_cast<std::size_t>(percent) + 99) / 100;  // nearest rank
    return LearnedRunTime{list.sorted[shorter + rank - 1], static_cast<Likeness>(i), runs};
  }
  return std::nullopt;
}

std::vector<RunTimes::Saved> RunTimes::save() const {
  std::vector<Saved> saved;
  for (const auto& [added, key] : ages_) {
    const List& list = lists_.at(key);
    saved.push_back({key, added, {list.latest.begin(), list.latest.begin() + list.runs}});
  }
  std::sort(saved.begin(), saved.end(), [](const Saved& a, const Saved& b) { return a.key < b.key; });
  return saved;
}

bool RunTimes::load(const std::vector<Saved>& saved) {
  for (const Saved& list : saved) {
    const auto [place, fresh] = lists_.try_emplace(list.key);
    if (!fresh || list.seconds.empty() || list.seconds.size() > kRunsRemembered) return false;
    place->second.added = list.added;
    for (const std::uint32_t seconds : list.seconds) remember(place->second, seconds);
    if (!ages_.emplace(list.added, list.key).second) return false;
    added_ = std::max(added_, list.added);
  }
  return !audit();
}

std::optional<std::string> RunTimes::audit() const {
  if (lists_.size() > kLikenessesRemembered) return "more run times are remembered than may be";
  if (ages_.size() != lists_.size()) return "the ages of the run times differ";
  for (const auto& [added, key] : ages_) {
    const auto found = lists_.find(key);
    if (found == lists_.end() || found->second.added != added) return "the ages of the run times differ";
    const List& list = found->second;
    if (list.runs == 0 || list.runs > kRunsRemembered) return "a list of run times has a wrong length";
    if (!std::is_permutation(list.latest.begin(), list.latest.begin() + list.runs, list.sorted.begin()) ||
        !std::is_sorted(list.sorted.begin(), list.sorted.begin() + list.runs))
      return "a list of run times is out of order";
  }
  return std::nullopt;
}

}  // namespace berth::state
