#include "model/queue_edit.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "base/check.h"
#include "base/codec.h"
#include "base/hash.h"

namespace berth {

namespace {

struct AmountsKey {
  std::string_view prefix;
  ResourceAmounts QueueConfig::*amounts;
};
constexpr std::array kAmounts{AmountsKey{"guaranteed.", &QueueConfig::guaranteed},
                              AmountsKey{"max.", &QueueConfig::max},
                              AmountsKey{"lending_limit.", &QueueConfig::lending_limit}};

struct NumberKey {
  std::string_view key;
  LimitUnit unit;
  std::optional<std::int64_t> QueueConfig::*number;
};
constexpr std::array kNumbers{
    NumberKey{"max_jobs_per_user", LimitUnit::kCount, &QueueConfig::max_jobs_per_user},
    NumberKey{"max_gpus_per_user", LimitUnit::kThousandths, &QueueConfig::max_gpu_milli_per_user},
    NumberKey{"max_submitted_per_user", LimitUnit::kCount, &QueueConfig::max_submitted_per_user}};

struct TermKey {
  std::string_view key;
  std::optional<std::int64_t> EvictionTermsConfig::*seconds;
};
constexpr std::array kTerms{TermKey{"eviction.min_runtime", &EvictionTermsConfig::min_runtime_s},
                            TermKey{"eviction.cooldown", &EvictionTermsConfig::cooldown_s},
                            TermKey{"eviction.grace", &EvictionTermsConfig::grace_s}};

constexpr std::string_view kWeight = "weight";
constexpr std::string_view kEvictionsPerHour = "eviction.evictions_per_hour";
constexpr std::string_view kOfModel = "gpus.";

const AmountsKey* amounts_key(std::string_view key) {
  const auto found = std::find_if(kAmounts.begin(), kAmounts.end(),
                                  [&](const AmountsKey& one) { return key.starts_with(one.prefix); });
  return found == kAmounts.end() ? nullptr : &*found;
}

std::optional<std::int64_t> ResourceAmounts::*plain_amount(std::string_view resource) {
  if (resource == "gpus") return &ResourceAmounts::gpu_milli;
  if (resource == "cpus") return &ResourceAmounts::cpu_milli;
  if (resource == "memory") return &ResourceAmounts::memory_mib;
  return nullptr;
}

void set_model_amount(ResourceAmounts& amounts, std::string_view model, std::optional<std::int64_t> value) {
  auto& models = amounts.model_gpu_milli;
  auto at = std::lower_bound(models.begin(), models.end(), model,
                             [](const auto& one, std::string_view name) { return one.first < name; });
  const bool known = at != models.end() && at->first == model;
  if (!value) {
    if (known) models.erase(at);
  } else if (known) {
    at->second = *value;
  } else {
    models.insert(at, {std::string(model), *value});
  }
}

template <class Row>
const Row* row_of(const auto& rows, std::string_view key) {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return row.key == key; });
  return found == rows.end() ? nullptr : &*found;
}

// Returns true if changes after `at` that are not leased set each limit that this one sets.
bool is_covered(const std::vector<QueueEdit>& edits, std::size_t at) {
  return std::all_of(edits[at].limits.begin(), edits[at].limits.end(), [&](const LimitChange& limit) {
    return std::any_of(edits.begin() + static_cast<std::ptrdiff_t>(at) + 1, edits.end(), [&](const QueueEdit& later) {
      return later.until == Timestamp::never() &&
             std::any_of(later.limits.begin(), later.limits.end(),
                         [&](const LimitChange& one) { return one.key == limit.key; });
    });
  });
}

const QueueConfig* queue_in(const std::map<std::string_view, const QueueConfig*>& queues, std::string_view path) {
  const auto found = queues.find(path);
  return found == queues.end() ? nullptr : found->second;
}

std::map<std::string_view, const QueueConfig*> by_path(const ClusterConfig& config) {
  std::map<std::string_view, const QueueConfig*> queues;
  for (const QueueConfig& queue : config.queues) queues.emplace(queue.path, &queue);
  return queues;
}

}  // namespace

std::optional<LimitUnit> unit_of_limit(std::string_view key) {
  if (const AmountsKey* amounts = amounts_key(key)) {
    const std::string_view resource = key.substr(amounts->prefix.size());
    if (resource == "memory") return LimitUnit::kMemory;
    const bool known = plain_amount(resource) != nullptr ||
                       (resource.starts_with(kOfModel) && resource.size() > kOfModel.size() && resource.size() < 100);
    return known ? std::optional(LimitUnit::kThousandths) : std::nullopt;
  }
  if (const auto* number = row_of<NumberKey>(kNumbers, key)) return number->unit;
  if (row_of<TermKey>(kTerms, key) != nullptr) return LimitUnit::kSeconds;
  if (key == kWeight || key == kEvictionsPerHour) return LimitUnit::kCount;
  return std::nullopt;
}

std::vector<std::string> limit_keys() {
  std::vector<std::string> keys;
  for (const AmountsKey& one : kAmounts) {
    for (const char* resource : {"gpus", "gpus.MODEL", "cpus", "memory"})
      keys.push_back(std::string(one.prefix) + resource);
  }
  keys.emplace_back(kWeight);
  for (const NumberKey& one : kNumbers) keys.emplace_back(one.key);
  for (const TermKey& one : kTerms) keys.emplace_back(one.key);
  keys.emplace_back(kEvictionsPerHour);
  return keys;
}

std::optional<std::int64_t> limit_of(const QueueConfig& queue, std::string_view key) {
  if (const AmountsKey* part = amounts_key(key)) {
    const ResourceAmounts& amounts = queue.*part->amounts;
    const std::string_view resource = key.substr(part->prefix.size());
    if (const auto plain = plain_amount(resource)) return amounts.*plain;
    for (const auto& [model, milli] : amounts.model_gpu_milli) {
      if (model == resource.substr(kOfModel.size())) return milli;
    }
    return std::nullopt;
  }
  if (const auto* number = row_of<NumberKey>(kNumbers, key)) return queue.*number->number;
  if (const auto* term = row_of<TermKey>(kTerms, key)) return queue.eviction.*term->seconds;
  BERTH_CHECK(key == kWeight || key == kEvictionsPerHour);
  return key == kWeight ? queue.weight : queue.eviction.evictions_per_hour;
}

void set_limit(QueueConfig& queue, std::string_view key, std::optional<std::int64_t> value) {
  if (const AmountsKey* part = amounts_key(key)) {
    ResourceAmounts& amounts = queue.*part->amounts;
    const std::string_view resource = key.substr(part->prefix.size());
    if (const auto plain = plain_amount(resource)) {
      amounts.*plain = value;
    } else {
      set_model_amount(amounts, resource.substr(kOfModel.size()), value);
    }
  } else if (const auto* number = row_of<NumberKey>(kNumbers, key)) {
    queue.*number->number = value;
  } else if (const auto* term = row_of<TermKey>(kTerms, key)) {
    queue.eviction.*term->seconds = value;
  } else if (key == kWeight) {
    queue.weight = value.value_or(1);
  } else {
    BERTH_CHECK(key == kEvictionsPerHour);
    queue.eviction.evictions_per_hour = value.value_or(0);
  }
}

ClusterConfig with_edits(ClusterConfig file, const QueueEdits& edits) {
  for (QueueConfig& queue : file.queues) {
    const auto found = edits.find(queue.path);
    if (found == edits.end()) continue;
    for (const QueueEdit& edit : found->second) {
      for (const LimitChange& limit : edit.limits) set_limit(queue, limit.key, limit.value);
    }
  }
  return file;
}

std::vector<LimitsOfQueue> limits_over(const ClusterConfig& file, const QueueEdits& edits) {
  std::vector<LimitsOfQueue> all;
  for (const auto& [path, list] : edits) {
    const QueueConfig* queue = queue_named(file, path);
    if (queue == nullptr) continue;
    std::map<std::string, std::optional<std::int64_t>> in_force;
    for (const QueueEdit& edit : list) {
      for (const LimitChange& limit : edit.limits) in_force[limit.key] = limit.value;
    }
    LimitsOfQueue& over = all.emplace_back(LimitsOfQueue{path, {}});
    for (const auto& [key, value] : in_force) over.limits.push_back({key, value, limit_of(*queue, key)});
  }
  return all;
}

void put_limits(ClusterConfig& config, std::string_view queue, const std::vector<LimitChange>& limits) {
  const auto found = std::find_if(config.queues.begin(), config.queues.end(),
                                  [&](const QueueConfig& one) { return one.path == queue; });
  BERTH_CHECK(found != config.queues.end());
  for (const LimitChange& limit : limits) set_limit(*found, limit.key, limit.value);
}

const QueueConfig* queue_named(const ClusterConfig& config, std::string_view path) {
  const auto found = std::find_if(config.queues.begin(), config.queues.end(),
                                  [&](const QueueConfig& one) { return one.path == path; });
  return found == config.queues.end() ? nullptr : &*found;
}

QueueEdits edits_after(const QueueEdits& edits, const ClusterConfig& old_file, const ClusterConfig& new_file,
                       const std::vector<QueueMove>& moves) {
  if (edits.empty()) return {};
  const auto before = by_path(old_file);
  const auto after = by_path(new_file);
  QueueEdits kept;
  for (const auto& [path, list] : edits) {
    const std::string now = moved_path(path, moves);
    const QueueConfig* old_queue = queue_in(before, path);
    const QueueConfig* new_queue = queue_in(after, now);
    if (old_queue == nullptr || new_queue == nullptr) continue;
    for (QueueEdit edit : list) {
      std::erase_if(edit.limits, [&](const LimitChange& limit) {
        return limit_of(*old_queue, limit.key) != limit_of(*new_queue, limit.key);
      });
      if (!edit.limits.empty()) kept[now].push_back(std::move(edit));
    }
  }
  return kept;
}

void add_edit(QueueEdits& edits, const std::string& queue, QueueEdit edit) {
  std::vector<QueueEdit>& list = edits[queue];
  list.push_back(std::move(edit));
  if (list.size() <= kMostEditsPerQueue) return;
  for (std::size_t i = 0; i + 1 < list.size(); ++i) {
    if (!is_covered(list, i)) continue;
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(i));
    return;
  }
}

bool remove_edit(QueueEdits& edits, const std::string& queue, std::uint64_t version) {
  const auto found = edits.find(queue);
  if (found == edits.end()) return false;
  const auto at = std::find_if(found->second.begin(), found->second.end(),
                               [&](const QueueEdit& edit) { return edit.version == version; });
  if (at == found->second.end()) return false;
  found->second.erase(at);
  if (found->second.empty()) edits.erase(found);
  return true;
}

std::string revision_of(const QueueConfig& in_force, const std::vector<QueueEdit>* edits) {
  Hasher hash;
  hash.add(encode(in_force));
  if (edits != nullptr) hash.add(encode(*edits));
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash.digest()));
  return text;
}

}  // namespace berth
