#include "control/envelope.h"

#include <algorithm>
#include <set>

#include "base/checked.h"
#include "model/document/limit_setting.h"
#include "model/queue_path.h"

namespace berth::control {

namespace {

constexpr std::string_view kFloor = "guaranteed.";
constexpr std::string_view kCeiling = "max.";
constexpr std::string_view kTerm = "eviction.";

using document::limit_text;

std::string above(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash);
}

std::string resource_of(const std::string& key) { return key.substr(key.find('.') + 1); }

// The guarantees of the queues directly below `parent` are within its own.
Result<void> check_floors(const ClusterConfig& config, const std::string& parent, const std::string& key) {
  const QueueConfig* queue = queue_named(config, parent);
  if (queue == nullptr) return {};  // the guarantee of the root is the fleet itself
  constexpr std::size_t kMostNamed = 8;
  std::int64_t sum = 0;
  std::size_t children = 0;
  std::string named;
  for (const QueueConfig& child : config.queues) {
    const auto floor = above(child.path) == parent ? limit_of(child, key) : std::nullopt;
    if (!floor || *floor == 0) continue;
    sum = checked_add(sum, *floor);
    if (++children <= kMostNamed) named += (named.empty() ? "" : ", ") + child.path + " " + limit_text(key, floor);
  }
  if (children > kMostNamed) named += ", " + std::to_string(children - kMostNamed) + " more";
  const std::int64_t own = limit_of(*queue, key).value_or(0);
  if (sum <= own) return {};
  return conflict("the queues directly below " + parent + " would be guaranteed " + limit_text(key, sum) + " " +
                  resource_of(key) + " (" + named + "), and " + parent + " itself is guaranteed " +
                  limit_text(key, own) + ": " + limit_text(key, sum - own) + " too many");
}

Result<void> check_floor_within_ceilings(const ClusterConfig& config, const std::string& path,
                                         const std::string& resource) {
  const std::string floor_key = std::string(kFloor) + resource;
  const std::string key = std::string(kCeiling) + resource;
  const auto floor = limit_of(*queue_named(config, path), floor_key);
  for (std::string at = path; floor && !at.empty(); at = above(at)) {
    const QueueConfig* queue = queue_named(config, at);
    const auto ceiling = queue == nullptr ? std::nullopt : limit_of(*queue, key);
    if (ceiling && *floor > *ceiling)
      return conflict(path + ": " + floor_key + " " + limit_text(key, floor) + " would be above " + key + " " +
                      limit_text(key, ceiling) + " of " + at);
  }
  return {};
}

// A ceiling is at most the nearest one above it, and at least each one below it. Two that are as in the file are left
// as they are.
Result<void> check_ceiling(const ClusterConfig& config, const ClusterConfig& file, const std::string& path,
                           const std::string& key) {
  const auto is_as_in_file = [&](const std::string& at) {
    return limit_of(*queue_named(config, at), key) == limit_of(*queue_named(file, at), key);
  };
  const bool own_as_in_file = is_as_in_file(path);
  const auto ceiling = limit_of(*queue_named(config, path), key);
  if (!ceiling) return {};
  for (std::string at = above(path); !at.empty(); at = above(at)) {
    const QueueConfig* queue = queue_named(config, at);
    const auto most = queue == nullptr ? std::nullopt : limit_of(*queue, key);
    if (most && *ceiling > *most && !(own_as_in_file && is_as_in_file(at)))
      return conflict(path + ": " + key + " " + limit_text(key, ceiling) + " would be above the " +
                      limit_text(key, most) + " of " + at);
    if (most) break;
  }
  for (const QueueConfig& below : config.queues) {
    if (below.path == path || !is_at_or_below(below.path, path)) continue;
    const auto one = limit_of(below, key);
    if (one && *one > *ceiling && !(own_as_in_file && is_as_in_file(below.path)))
      return conflict(path + ": " + key + " " + limit_text(key, ceiling) + " would be below the " +
                      limit_text(key, one) + " of " + below.path + "; lower that first");
  }
  return {};
}

Result<void> check_limit(const ClusterConfig& config, const ClusterConfig& file, const std::string& path,
                         const std::string& key) {
  if (key.starts_with(kFloor)) {
    if (auto ok = check_floors(config, above(path), key); !ok) return ok;
    if (auto ok = check_floors(config, path, key); !ok) return ok;
    return check_floor_within_ceilings(config, path, resource_of(key));
  }
  if (!key.starts_with(kCeiling)) return {};
  if (auto ok = check_ceiling(config, file, path, key); !ok) return ok;
  for (const QueueConfig& below : config.queues) {
    if (!is_at_or_below(below.path, path)) continue;
    if (auto ok = check_floor_within_ceilings(config, below.path, resource_of(key)); !ok) return ok;
  }
  return {};
}

// Rules of one queue and of names, without those of roles, whose number has nothing to do with it.
Result<void> check_rules(const ClusterConfig& config) {
  ClusterConfig without_roles = config;
  without_roles.roles.clear();
  return validate(without_roles);
}

std::int64_t term_above(const ClusterConfig& config, const std::string& path, const std::string& key) {
  for (std::string at = above(path); !at.empty(); at = above(at)) {
    const QueueConfig* queue = queue_named(config, at);
    const auto stated = queue == nullptr ? std::nullopt : limit_of(*queue, key);
    if (stated) return *stated;
  }
  if (key == "eviction.min_runtime") return config.scheduling.min_runtime_s;
  return key == "eviction.cooldown" ? config.scheduling.cooldown_s : config.scheduling.default_grace_s;
}

// The least of the rates above the queue; nothing: there is none.
std::optional<std::int64_t> rate_above(const ClusterConfig& config, const std::string& path) {
  std::optional<std::int64_t> least;
  const auto take = [&](std::int64_t rate) {
    if (rate > 0 && (!least || rate < *least)) least = rate;
  };
  take(config.scheduling.evictions_per_hour);
  for (std::string at = above(path); !at.empty(); at = above(at)) {
    if (const QueueConfig* queue = queue_named(config, at)) take(queue->eviction.evictions_per_hour);
  }
  return least;
}

Result<void> check_rate(const ClusterConfig& config, const std::string& path, std::int64_t rate) {
  const auto least = rate_above(config, path);
  if (rate == 0 || (least && rate >= *least)) return {};
  const std::string has = least ? "the queues above have " + std::to_string(*least) : "no queue above has one";
  return Error{ErrorCode::kDenied, path + ": eviction.evictions_per_hour " + std::to_string(rate) +
                                       " would protect its jobs more than the operator's terms do (" + has +
                                       "); that is the operator's to give"};
}

bool is_related(const std::string& lease, const std::string& queue) {
  return above(lease) == above(queue) || is_at_or_below(lease, queue) || is_at_or_below(queue, lease);
}

// Returns the changes that are in force after `at`.
QueueEdits edits_at(QueueEdits edits, Timestamp at) {
  for (auto& [queue, list] : edits) std::erase_if(list, [&](const QueueEdit& edit) { return edit.until <= at; });
  std::erase_if(edits, [](const auto& one) { return one.second.empty(); });
  return edits;
}

// Calls `check` with the configuration at `now` and whenever a lease ends that `counts`.
template <class Counts, class Check>
Result<void> at_each_moment(const ClusterConfig& file, const QueueEdits& edits, Timestamp now, Counts&& counts,
                            Check&& check) {
  if (auto ok = check(with_edits(file, edits_at(edits, now))); !ok) return ok;
  std::set<Timestamp> ends;
  for (const auto& [queue, list] : edits) {
    for (const QueueEdit& edit : list) {
      if (edit.until != Timestamp::never() && edit.until > now && counts(queue)) ends.insert(edit.until);
    }
  }
  for (const Timestamp end : ends) {
    auto ok = check(with_edits(file, edits_at(edits, end)));
    if (!ok)
      return conflict("it would not hold from " + to_iso8601(end) + " on, when a lease ends: " + ok.error().message);
  }
  return {};
}

}  // namespace

Result<void> check_envelope(const ClusterConfig& in_force, const ClusterConfig& file, const std::string& queue,
                            const std::vector<LimitChange>& limits) {
  for (const LimitChange& limit : limits) {
    if (auto ok = check_limit(in_force, file, queue, limit.key); !ok) return ok;
  }
  return check_rules(in_force);
}

Result<void> check_terms(const ClusterConfig& in_force, const std::string& queue,
                         const std::vector<LimitChange>& limits) {
  for (const LimitChange& limit : limits) {
    if (!limit.key.starts_with(kTerm) || !limit.value) continue;
    if (limit.key == "eviction.evictions_per_hour") {
      if (auto ok = check_rate(in_force, queue, *limit.value); !ok) return ok;
      continue;
    }
    const std::int64_t most = term_above(in_force, queue, limit.key);
    if (*limit.value <= most) continue;
    return Error{ErrorCode::kDenied, queue + ": " + limit.key + " " + limit_text(limit.key, limit.value) +
                                         " would be above that of the queue above, " + limit_text(limit.key, most) +
                                         "; more is the operator's to give"};
  }
  return {};
}

Result<void> check_edits(const ClusterConfig& file, const QueueEdits& edits, const std::string& queue,
                         const std::vector<LimitChange>& limits, Timestamp now) {
  return at_each_moment(
      file, edits, now, [&](const std::string& lease) { return is_related(lease, queue); },
      [&](const ClusterConfig& config) { return check_envelope(config, file, queue, limits); });
}

Result<void> check_file_under(const QueueEdits& edits, const ClusterConfig& file, Timestamp now) {
  if (edits.empty()) return {};
  auto ok = at_each_moment(
      file, edits, now, [](const std::string&) { return true; },
      [](const ClusterConfig& config) { return check_rules(config); });
  if (ok) return ok;
  std::string named;
  for (const LimitsOfQueue& over : limits_over(file, edits)) named += (named.empty() ? "" : ", ") + over.queue;
  return conflict(ok.error().message + " (with what was changed by command and stays in force: " +
                  named.substr(0, 400) + "; berth queue undo QUEUE takes that back)");
}

}  // namespace berth::control
