// What was changed by command beside the configuration file: limits of queues, roles, and subjects whose access ended;
// and the logs that were read by break-glass.

#include <algorithm>

#include "state/state.h"

namespace berth::state {

void State::set_edits(QueueEdits edits, const ClusterConfig& file) {
  edits_ = std::move(edits);
  if (edits_.empty()) {
    file_config_.reset();
  } else {
    file_config_ = file;
  }
  lease_ends_.clear();
  for (const auto& [queue, list] : edits_) {
    for (const QueueEdit& edit : list) {
      if (edit.until != Timestamp::never()) lease_ends_.insert({edit.until, {edit.version, queue}});
    }
  }
}

void State::on(const QueueChanged& event) {
  BERTH_CHECK(queue_at(event.queue) != nullptr);
  const ClusterConfig file = file_config();
  QueueEdits edits = edits_;
  add_edit(edits, event.queue, {event.version, event.user, now_, event.until, event.limits});
  config_version_ = event.version;
  configure(with_edits(file, edits), {});
  set_edits(std::move(edits), file);
}

void State::on(const QueueChangeEnded& event) {
  const ClusterConfig file = file_config();
  QueueEdits edits = edits_;
  BERTH_CHECK(remove_edit(edits, event.queue, event.change));
  config_version_ = event.version;
  configure(with_edits(file, edits), {});
  set_edits(std::move(edits), file);
}

void State::on(const RoleBound& event) {
  if (event.bound) {
    const auto [at, fresh] = granted_.emplace(event.binding, BindingOrigin{event.user, now_});
    BERTH_CHECK(fresh);
  } else {
    BERTH_CHECK(granted_.erase(event.binding) == 1);
  }
}

void State::on(const SubjectBlocked& event) {
  if (event.blocked) {
    const auto [at, fresh] = blocked_.emplace(event.subject, BindingOrigin{event.user, now_});
    BERTH_CHECK(fresh);
  } else {
    BERTH_CHECK(blocked_.erase(event.subject) == 1);
  }
}

void State::on(const RulesSet& event) {
  const QueueState* queue = queue_at(event.queue);
  BERTH_CHECK(queue != nullptr);
  queue_mut(queue->id).own_admission = event.rules;
}

void State::on(const LogRead& event) {
  if (event.reason.empty()) return;
  const auto same_job = [&](const BrokenGlass& one) { return one.job == event.job; };
  const auto of_job = static_cast<std::size_t>(std::count_if(broken_glass_.begin(), broken_glass_.end(), same_job));
  if (of_job >= kMostBrokenGlassOfJob)
    broken_glass_.erase(std::find_if(broken_glass_.begin(), broken_glass_.end(), same_job));
  if (broken_glass_.size() >= kMostBrokenGlass) broken_glass_.erase(broken_glass_.begin());
  broken_glass_.push_back({event.job, event.subject, event.reason, now_});
}

std::vector<RoleBinding> State::bindings() const {
  std::vector<RoleBinding> all;
  for (const RoleBinding& binding : config_.roles) {
    if (!blocked_.contains(binding.subject)) all.push_back(binding);
  }
  for (const auto& [binding, origin] : granted_) {
    if (!blocked_.contains(binding.subject)) all.push_back(binding);
  }
  return all;
}

SavedDelegation State::saved_delegation() const {
  SavedDelegation saved{file_config_,
                        {edits_.begin(), edits_.end()},
                        {granted_.begin(), granted_.end()},
                        {blocked_.begin(), blocked_.end()}};
  saved.broken_glass = broken_glass_;
  saved.former_paths.assign(former_paths_.begin(), former_paths_.end());
  for (const QueueState& queue : queues_) {
    if (!queue.own_admission.empty()) saved.rules.emplace_back(queue.id, queue.own_admission);
  }
  return saved;
}

bool State::load_delegation(SavedDelegation saved) {
  QueueEdits edits(saved.edits.begin(), saved.edits.end());
  set_edits(std::move(edits), saved.file.value_or(config_));
  granted_.insert(saved.granted.begin(), saved.granted.end());
  blocked_.insert(saved.blocked.begin(), saved.blocked.end());
  broken_glass_ = std::move(saved.broken_glass);
  for (auto& [path, id] : saved.former_paths) {
    if (!id.valid() || id.index() >= queues_.size()) return false;
    former_paths_.emplace(std::move(path), id);
  }
  for (auto& [id, rules] : saved.rules) {
    if (!id.valid() || id.index() >= queues_.size() || queues_[id.index()].removed) return false;
    queue_mut(id).own_admission = std::move(rules);
  }
  return true;
}

}  // namespace berth::state
