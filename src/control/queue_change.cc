#include "control/queue_change.h"

#include <algorithm>

#include "model/document/limit_setting.h"

namespace berth::control {

namespace {

using document::limit_text;
using state::State;

constexpr std::int64_t kLongestLeaseMs = 10 * 366 * 86'400'000LL;
constexpr std::int64_t kMostAmount = std::int64_t{1} << 50;

const std::vector<QueueEdit>* edits_of(const State& state, const std::string& queue) {
  const auto found = state.queue_edits().find(queue);
  return found == state.queue_edits().end() ? nullptr : &found->second;
}

Error no_such_queue(const std::string& queue) { return not_found("no such queue '" + queue.substr(0, 200) + "'"); }

// A sum that is started from nothing: a guarantee that is not stated is none, and other limits that are not stated are
// no limit at all.
Result<std::int64_t> sum_of(const LimitSetting& setting, const std::optional<std::int64_t>& before) {
  if (!before && !setting.key.starts_with("guaranteed."))
    return conflict(setting.key + " is not stated, so there is nothing to add to; give the value itself");
  const std::int64_t sum = before.value_or(0) + setting.amount;
  if (sum < 0)
    return conflict(setting.key + " is " + limit_text(setting.key, before.value_or(0)) + ", so it cannot be " +
                    limit_text(setting.key, -setting.amount) + " less");
  return sum;
}

Result<std::vector<LimitChange>> limits_of(const QueueConfig& in_force, const std::vector<LimitSetting>& settings) {
  if (settings.empty()) return invalid("nothing to set; give KEY=VALUE, such as guaranteed.gpus=+8");
  std::vector<LimitChange> limits;
  for (const LimitSetting& setting : settings) {
    if (!unit_of_limit(setting.key)) return invalid("a command changes no '" + setting.key.substr(0, 80) + "'");
    if (std::any_of(limits.begin(), limits.end(), [&](const LimitChange& one) { return one.key == setting.key; }))
      return invalid(setting.key + " is set twice");
    if (setting.amount > kMostAmount || setting.amount < -kMostAmount)
      return invalid(setting.key + ": the amount is too large");
    LimitChange change{setting.key, {}, limit_of(in_force, setting.key)};
    if (setting.how == LimitSetting::How::kBy) {
      const auto sum = sum_of(setting, change.before);
      if (!sum) return sum.error();
      change.value = *sum;
    } else if (setting.how == LimitSetting::How::kTo) {
      change.value = setting.amount;
    }
    limits.push_back(std::move(change));
  }
  return limits;
}

// Returns true if the limit has this value already, and not by a lease.
bool is_set(const LimitChange& limit, const std::vector<QueueEdit>* edits) {
  if (limit.value != limit.before) return false;
  if (edits == nullptr) return true;
  for (auto edit = edits->rbegin(); edit != edits->rend(); ++edit) {
    for (const LimitChange& one : edit->limits) {
      if (one.key == limit.key) return edit->until == Timestamp::never();
    }
  }
  return true;
}

Result<void> check_lease(Timestamp until, Timestamp now) {
  if (until == Timestamp::never()) return {};
  if (until <= now) return invalid("until must be ahead; it is " + to_iso8601(now) + " now");
  if (until - now > kLongestLeaseMs) return invalid("until must be within ten years; leave it out for no end");
  return {};
}

Reply stale_reply(const State& state, const std::string& queue) {
  Reply reply{.job = {}, .stale = true, .version = state.config_version()};
  reply.revision = revision_in(state, queue);
  if (const auto* edits = edits_of(state, queue)) {
    const QueueEdit& last = edits->back();
    reply.stale_by = last.user + " set";
    for (const LimitChange& limit : last.limits)
      reply.stale_by += " " + limit.key + "=" + limit_text(limit.key, limit.value);
    reply.stale_by += " at " + to_iso8601(last.time);
  }
  return reply;
}

Reply reply_of(const State& state, const std::string& queue, std::vector<LimitChange> limits) {
  Reply reply{.job = {}, .version = state.config_version()};
  reply.limits = std::move(limits);
  reply.revision = revision_in(state, queue);
  return reply;
}

// Returns what is in force without the change, for each limit that it set.
std::vector<LimitChange> limits_without(const State& state, const std::string& queue, const QueueEdit& edit) {
  QueueEdits edits = state.queue_edits();
  remove_edit(edits, queue, edit.version);
  const ClusterConfig after = with_edits(state.file_config(), edits);
  const QueueConfig& then = *queue_named(after, queue);
  const QueueConfig& now = *queue_named(state.config(), queue);
  std::vector<LimitChange> limits;
  for (const LimitChange& limit : edit.limits)
    limits.push_back({limit.key, limit_of(then, limit.key), limit_of(now, limit.key)});
  return limits;
}

}  // namespace

std::string revision_in(const State& state, const std::string& queue) {
  return revision_of(*queue_named(state.config(), queue), edits_of(state, queue));
}

Result<Reply> set_queue(Batch& batch, const SetQueue& command) {
  reconcile_leases(batch);  // what is due ends first, so that amounts are added to what is then in force
  const State& state = batch.state();
  const QueueConfig* in_force = queue_named(state.config(), command.queue);
  if (in_force == nullptr) return no_such_queue(command.queue);
  if (!command.if_revision.empty() && command.if_revision != revision_in(state, command.queue))
    return stale_reply(state, command.queue);
  auto limits = limits_of(*in_force, command.settings);
  if (!limits) return limits.error();
  if (auto ok = check_lease(command.until, batch.now()); !ok) return ok.error();
  const std::vector<QueueEdit>* edits = edits_of(state, command.queue);
  if (std::all_of(limits->begin(), limits->end(), [&](const LimitChange& one) { return is_set(one, edits); })) {
    Reply reply = reply_of(state, command.queue, {});
    reply.unchanged = true;
    return reply;
  }
  const std::uint64_t version = state.config_version() + 1;
  QueueEdits after = state.queue_edits();
  add_edit(after, command.queue, {version, command.user, batch.now(), command.until, *limits});
  if (after[command.queue].size() > kMostEditsPerQueue)
    return conflict(command.queue + " has " + std::to_string(kMostEditsPerQueue) +
                    " changes by command already; undo some, or put them into the configuration file");
  if (!command.operates) {
    if (auto ok = check_terms(with_edits(state.file_config(), after), command.queue, *limits); !ok) return ok.error();
  }
  if (auto ok = check_edits(state.file_config(), after, command.queue, *limits, batch.now()); !ok) return ok.error();
  batch.emit(QueueChanged{command.queue, version, *limits, command.until, command.user});
  return reply_of(state, command.queue, std::move(*limits));
}

Result<Reply> undo_queue_change(Batch& batch, const UndoQueueChange& command) {
  reconcile_leases(batch);
  const State& state = batch.state();
  if (queue_named(state.config(), command.queue) == nullptr) return no_such_queue(command.queue);
  if (!command.if_revision.empty() && command.if_revision != revision_in(state, command.queue))
    return stale_reply(state, command.queue);
  const std::vector<QueueEdit>* edits = edits_of(state, command.queue);
  if (edits == nullptr)
    return conflict("nothing to undo: " + command.queue + " has the limits of the configuration file");
  const QueueEdit last = edits->back();
  std::vector<LimitChange> limits = limits_without(state, command.queue, last);
  QueueEdits after = state.queue_edits();
  remove_edit(after, command.queue, last.version);
  if (auto ok = check_edits(state.file_config(), after, command.queue, limits, batch.now()); !ok) return ok.error();
  batch.emit(QueueChangeEnded{command.queue, last.version, state.config_version() + 1, limits, true, command.user});
  return reply_of(state, command.queue, std::move(limits));
}

void reconcile_leases(Batch& batch) {
  const State& state = batch.state();
  while (state.next_lease_end() <= batch.now()) {
    const auto [version, queue] = state.lease_ends().begin()->second;
    const std::vector<QueueEdit>& edits = *edits_of(state, queue);
    const auto edit = std::find_if(edits.begin(), edits.end(),
                                   [version = version](const QueueEdit& one) { return one.version == version; });
    batch.emit(
        QueueChangeEnded{queue, version, state.config_version() + 1, limits_without(state, queue, *edit), false, {}});
  }
}

}  // namespace berth::control
