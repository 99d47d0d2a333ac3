#include "state/run_times.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/check.h"
#include "base/hash.h"

namespace berth::state {

namespace {

using Keys = std::array<std::uint64_t, kLikenesses>;

// "train-17" and "train-18" are runs of one thing.
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

Keys keys_of(const JobSpec& spec) {
  const std::uint64_t size = gpu_milli_of(spec);
  return {likeness_of(spec),
          begin(Likeness::kUserAndSize).add(spec.queue).add(spec.user).add(size).digest(),
          begin(Likeness::kUser).add(spec.queue).add(spec.user).digest(),
          begin(Likeness::kQueueAndSize).add(spec.queue).add(size).digest(),
          begin(Likeness::kQueue).add(spec.queue).digest(),
          begin(Likeness::kAny).digest()};
}

}  // namespace

std::uint64_t likeness_of(const JobSpec& spec) {
  Hasher key = begin(Likeness::kName);
  return key.add(spec.queue).add(spec.user).add(gpu_milli_of(spec)).add(without_numbers(spec.name)).digest();
}

void RunTimes::learn(const JobSpec& spec, std::int64_t seconds) {
  const auto kept = static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(seconds, 1, std::int64_t{std::numeric_limits<std::uint32_t>::max()}));
  for (const std::uint64_t key : keys_of(spec)) add(key, kept);
}

void RunTimes::add(std::uint64_t key, std::uint32_t seconds) {
  const auto [found, fresh] = lists_.try_emplace(key);
  List& list = found->second;
  if (!fresh) ages_.erase(list.added);
  if (list.seconds.size() == kRunsRemembered) list.seconds.erase(list.seconds.begin());
  list.seconds.push_back(seconds);
  list.added = ++added_;
  ages_.emplace(list.added, key);
  if (lists_.size() <= kLikenessesRemembered) return;
  lists_.erase(ages_.begin()->second);
  ages_.erase(ages_.begin());
}

RunTimes::Alike RunTimes::alike(const JobSpec& spec) const {
  const Keys keys = keys_of(spec);
  Alike alike;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (const auto found = lists_.find(keys[i]); found != lists_.end()) alike.lists[i] = &found->second;
  }
  return alike;
}

std::optional<LearnedRunTime> RunTimes::quantile(const JobSpec& spec, std::int64_t percent,
                                                 std::int64_t already) const {
  return quantile(alike(spec), percent, already);
}

std::optional<LearnedRunTime> RunTimes::quantile(const Alike& alike, std::int64_t percent, std::int64_t already) {
  BERTH_CHECK(percent > 0 && percent <= 100);
  for (std::size_t i = 0; i < alike.lists.size(); ++i) {
    if (alike.lists[i] == nullptr) continue;
    std::array<std::uint32_t, kRunsRemembered> longer{};
    std::size_t runs = 0;
    for (const std::uint32_t seconds : alike.lists[i]->seconds) {
      if (seconds > already) longer[runs++] = seconds;
    }
    if (runs < kRunsEnough) continue;
    std::sort(longer.begin(), longer.begin() + runs);
    const std::size_t rank = (runs * static_cast<std::size_t>(percent) + 99) / 100;  // nearest rank
    return LearnedRunTime{longer[rank - 1], static_cast<Likeness>(i), runs};
  }
  return std::nullopt;
}

std::vector<RunTimes::Saved> RunTimes::save() const {
  std::vector<Saved> saved;
  for (const auto& [key, list] : lists_) saved.push_back({key, list.added, list.seconds});
  return saved;
}

bool RunTimes::load(const std::vector<Saved>& saved) {
  for (const Saved& list : saved) {
    if (!lists_.emplace(list.key, List{list.added, list.seconds}).second) return false;
    if (!ages_.emplace(list.added, list.key).second) return false;
    added_ = std::max(added_, list.added);
  }
  return !audit();
}

std::optional<std::string> RunTimes::audit() const {
  if (lists_.size() > kLikenessesRemembered) return "more run times are remembered than may be";
  if (ages_.size() != lists_.size()) return "the ages of the run times differ";
  for (const auto& [key, list] : lists_) {
    const auto age = ages_.find(list.added);
    if (age == ages_.end() || age->second != key) return "the ages of the run times differ";
    if (list.seconds.empty() || list.seconds.size() > kRunsRemembered) return "a list of run times has a wrong length";
  }
  return std::nullopt;
}

}  // namespace berth::state
