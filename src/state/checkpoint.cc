// Checkpoints of the state: primary facts are saved; indexes and sums are rebuilt when it is loaded.

#include <algorithm>

#include "base/codec.h"
#include "base/planted.h"
#include "state/guarantee_decay.h"
#include "state/state.h"

namespace berth::state {

namespace {

constexpr std::uint32_t kFormat = 1;

struct SavedNode {
  NodeSpec spec;
  NodeStatus status = NodeStatus::kReady;
  bool cordoned = false;
  bool draining = false;
  std::uint64_t lease = 0;
  std::string cordon_why;
  std::vector<Timestamp> contact_losses;
  bool loss_deferred = false;
  Timestamp gone_at;
  ForeignUse foreign = {};
  bool removed = false;
  bool removal_due = false;
  std::vector<Blame> blames = {};
  static constexpr auto fields() {
    return field_list(field("spec", &SavedNode::spec), field("status", &SavedNode::status),
                      field("cordoned", &SavedNode::cordoned), field("draining", &SavedNode::draining),
                      field("lease", &SavedNode::lease), field("cordon_why", &SavedNode::cordon_why),
                      field("contact_losses", &SavedNode::contact_losses),
                      field("loss_deferred", &SavedNode::loss_deferred), field("gone_at", &SavedNode::gone_at),
                      field_if_set("foreign", &SavedNode::foreign), field_if_set("removed", &SavedNode::removed),
                      field_if_set("removal_due", &SavedNode::removal_due), field_if_set("blames", &SavedNode::blames));
  }
};

struct SavedKey {
  std::string name;
  JobId job;
  std::uint64_t body_hash = 0;
  Timestamp time;
  static constexpr auto fields() {
    return field_list(field("name", &SavedKey::name), field("job", &SavedKey::job),
                      field("body_hash", &SavedKey::body_hash), field("time", &SavedKey::time));
  }
};

struct SavedFinished {
  JobId job;
  Outcome outcome = Outcome::kSucceeded;
  std::int32_t code = 0;
  static constexpr auto fields() {
    return field_list(field("job", &SavedFinished::job), field("outcome", &SavedFinished::outcome),
                      field("code", &SavedFinished::code));
  }
};

struct SavedPast {
  QueueId queue;
  std::vector<std::int64_t> average;
  Timestamp at;
  static constexpr auto fields() {
    return field_list(field("queue", &SavedPast::queue), field("average", &SavedPast::average),
                      field("at", &SavedPast::at));
  }
};

struct SavedGuarantee {
  QueueId queue;
  std::vector<std::int64_t> left;
  Timestamp idle_since;
  std::vector<std::int64_t> idle_peak;
  Timestamp wanting_since;
  static constexpr auto fields() {
    return field_list(field("queue", &SavedGuarantee::queue), field("left", &SavedGuarantee::left),
                      field("idle_since", &SavedGuarantee::idle_since), field("idle_peak", &SavedGuarantee::idle_peak),
                      field("wanting_since", &SavedGuarantee::wanting_since));
  }
};

struct SavedEvictions {
  QueueId queue;
  std::vector<Timestamp> stopped;
  static constexpr auto fields() {
    return field_list(field("queue", &SavedEvictions::queue), field("stopped", &SavedEvictions::stopped));
  }
};

}  // namespace

template <class Writer>
void State::write(Writer& out) const {
  out.put(kFormat);
  out.put(last_seq_);
  out.put(now_);
  out.put(next_job_);
  out.put(config_version_);
  out.put(config_);
  out.put_varint(models_.size());
  for (const GpuModelState& model : models_) out.put(model.name);
  out.put(trust_domains_);
  out.put_varint(queues_.size());
  for (const QueueState& queue : queues_) out.put(queue.path);
  out.put_varint(nodes_.size());
  for (const NodeState& node : nodes_) {
    out.put(SavedNode{node.spec, node.status, node.cordoned, node.draining, node.lease, node.cordon_why,
                      node.contact_losses, node.loss_deferred, node.gone_at, node.foreign, node.removed,
                      removals_.contains(node.id), node.blames});
  }
  out.put_varint(jobs_.size());
  jobs_.for_each([&](const JobState& job) { out.put(job); });
  out.put_varint(keys_.size());
  for (const auto& [name, entry] : keys_) out.put(SavedKey{name, entry.job, entry.body_hash, entry.time});
  out.put_varint(finished_.size());
  finished_.for_each_with_id([&](JobId id, const FinishedJob& done) {
    out.put(SavedFinished{id, done.outcome, done.code});
  });
  out.put(run_times_.save());
  std::vector<SavedPast> past;
  for (const QueueState& queue : queues_) {
    if (queue.past == PastUsage()) continue;
    past.push_back({queue.id, {queue.past.average.begin(), queue.past.average.end()}, queue.past.at});
  }
  out.put(past);
  out.put(fragmentation_.save());
  out.put(fragmentation_alarm_);
  out.put(starts_sought_);
  std::vector<SavedGuarantee> guarantees;
  for (const QueueState& queue : queues_) {
    if (queue.guarantee_decay_ms == 0) continue;
    const GuaranteeUse& use = queue.guarantee_use;
    const auto& left = queue.guaranteed.amounts.of;
    guarantees.push_back({queue.id,
                          {left.begin(), left.end()},
                          use.idle_since,
                          {use.idle_peak.of.begin(), use.idle_peak.of.end()},
                          use.wanting_since});
  }
  out.put(guarantees);
  out.put_varint(maintenance_.size());
  for (const auto& [name, window] : maintenance_) out.put(window);
  out.put(evictions_.save());
  out.put(moves_.save());
  std::vector<Timestamp> idle_since;
  for (const NodeState& node : nodes_) idle_since.push_back(node.idle_since);
  out.put(idle_since);
  std::vector<SavedEvictions> evictions;
  for (const QueueState& queue : queues_) {
    if (!queue.evictions.save().empty()) evictions.push_back({queue.id, queue.evictions.save()});
  }
  out.put(evictions);
  const SavedMoney money = saved_money();
  const SavedDelegation delegation = saved_delegation();
  if (tokens_.empty() && money.empty() && delegation.empty()) return;
  std::vector<Token> tokens;
  for (const auto& [name, token] : tokens_) tokens.push_back(token);
  out.put(tokens);
  if (!money.empty() || !delegation.empty()) out.put(money);
  if (!delegation.empty()) out.put(delegation);
}

std::string State::save() const {
  Encoder out;
  write(out);
  return out.take();
}

Result<State> State::load(std::string_view bytes) {
  const Error damaged{ErrorCode::kCorrupt, "the checkpoint is damaged: its fields do not decode"};
  Decoder in(bytes);
  State state;
  std::uint32_t format = 0;
  in.get(format);
  if (!in.ok()) return damaged;
  if (format != kFormat)
    return Error{ErrorCode::kCorrupt, "the checkpoint has format " + std::to_string(format) +
                                          "; this berth reads format " + std::to_string(kFormat)};
  in.get(state.last_seq_);
  in.get(state.now_);
  in.get(state.next_job_);
  in.get(state.config_version_);
  in.get(state.config_);
  std::vector<std::string> models;
  in.get(models);
  in.get(state.trust_domains_);
  std::vector<std::string> queue_paths;
  in.get(queue_paths);
  if (!in.ok() || models.size() > kMaxGpuModels || queue_paths.empty()) return damaged;
  for (const std::string& name : models) state.models_.push_back({name});
  for (const GpuModelConfig& model : state.config_.gpu_models) {
    GpuModelState& known = state.models_[state.model_id(model.name).index()];
    known.weight_permille = model.weight_permille;
    known.mig = mig_geometry(model.mig);
  }
  for (std::size_t i = 1; i < queue_paths.size(); ++i) {
    QueueState queue;
    queue.id = QueueId(static_cast<std::uint32_t>(i));
    queue.path = queue_paths[i];
    state.queues_.push_back(std::move(queue));
    state.queue_paths_.emplace(queue_paths[i], QueueId(static_cast<std::uint32_t>(i)));
  }
  state.configure_queues(state.config_);
  state.configure_pools();
  state.configure_quota_paths();
  state.configure_topology();
  std::vector<SavedNode> nodes;
  in.get(nodes);
  for (SavedNode& saved : nodes) {
    NodeState node;
    node.id = NodeId(static_cast<std::uint32_t>(state.nodes_.size()));
    node.spec = std::move(saved.spec);
    node.status = saved.status;
    node.cordoned = saved.cordoned;
    node.draining = saved.draining;
    node.lease = saved.lease;
    node.cordon_why = std::move(saved.cordon_why);
    node.contact_losses = std::move(saved.contact_losses);
    node.loss_deferred = saved.loss_deferred;
    node.gone_at = saved.gone_at;
    node.foreign = std::move(saved.foreign);
    node.removed = saved.removed;
    node.blames = std::move(saved.blames);
    if (!node.removed) ++state.nodes_by_status_[static_cast<std::size_t>(node.status)];
    if (saved.removal_due) state.removals_.insert(node.id);
    if (node.loss_deferred) state.deferred_losses_.insert(node.id);
    state.install_node(node);
    state.nodes_.push_back(std::move(node));
    state.enter_identity(state.nodes_.back());
    state.install_in_indexes(state.nodes_.back());
    state.images_.enter(state.nodes_.back().id, state.nodes_.back().spec.images);
  }
  state.recount_capacity();
  const std::uint64_t jobs = in.get_varint();
  for (std::uint64_t i = 0; i < jobs && in.ok(); ++i) {
    JobState job;
    in.get(job);
    if (!in.ok() || !job.id.valid() || job.id >= state.next_job_ || !job.queue.valid() ||
        job.queue.index() >= state.queues_.size()) {
      return damaged;
    }
    const JobId id = job.id;
    JobState& stored = state.jobs_.insert(id, std::move(job));
    if (stored.attempt) {
      for (std::uint32_t t = 0; t < stored.attempt->tasks.size(); ++t) {
        const TaskState& task = stored.attempt->tasks[t];
        if (task.placement.node.index() >= state.nodes_.size()) return damaged;
        state.bind_tasks(stored, {&task.placement, 1}, +1);
        if (task.phase != TaskPhase::kExited) state.node_mut(task.placement.node).tasks.emplace(stored.id, t);
      }
      if (stored.attempt->stop) {
        for (const TaskPlacement& placement : stored.attempt->stop->to) {
          if (placement.node.index() >= state.nodes_.size()) return damaged;
        }
        state.nominate_tasks(stored, stored.attempt->stop->to, +1);
      }
      if (stored.attempt->master_port != 0) {
        state.node_mut(stored.attempt->tasks.front().placement.node).ports.insert(stored.attempt->master_port);
      }
      for (std::uint32_t c = 0; c < stored.attempt->charges.size(); ++c) {
        state.charge_queues(stored, stored.attempt->charges[c], c, +1);
      }
    }
    if (stored.reservation) {
      for (const TaskPlacement& placement : stored.reservation->placements) {
        if (placement.node.index() >= state.nodes_.size()) return damaged;
      }
    }
    if (stored.nomination) {
      state.nominate_tasks(stored, stored.nomination->placements, +1);
      state.nominate_queues(stored, stored.nomination->amounts, stored.nomination->within, +1);
    }
  }
  std::vector<SavedKey> keys;
  in.get(keys);
  for (SavedKey& key : keys) {
    state.key_ages_.emplace(key.time, key.name);
    if (planted(Bug::kKeyLostOnRestart)) continue;
    state.keys_.emplace(std::move(key.name), KeyEntry{key.job, key.body_hash, key.time});
  }
  std::vector<SavedFinished> finished;
  in.get(finished);
  for (const SavedFinished& done : finished) {
    if (!done.job.valid() || done.job >= state.next_job_ || state.finished_.find(done.job) != nullptr) return damaged;
    state.finished_.insert(done.job, FinishedJob{done.outcome, done.code});
  }
  std::vector<RunTimes::Saved> run_times;
  if (!in.at_end()) in.get(run_times);  // older checkpoints end here
  std::vector<SavedPast> past;
  if (!in.at_end()) in.get(past);  // older checkpoints end here
  for (const SavedPast& saved : past) {
    if (!saved.queue.valid() || saved.queue.index() >= state.queues_.size() ||
        saved.average.size() != kSharedDims.size()) {
      return damaged;
    }
    QueueState& queue = state.queue_mut(saved.queue);
    std::copy(saved.average.begin(), saved.average.end(), queue.past.average.begin());
    queue.past.since = shared_part(queue.usage);
    queue.past.at = saved.at;
  }
  fragmentation::Mix::Saved mix = state.fragmentation_.save();
  if (!in.at_end()) {  // older checkpoints end here
    in.get(mix);
    in.get(state.fragmentation_alarm_);
  }
  if (!in.at_end()) in.get(state.starts_sought_);  // older checkpoints end here
  std::vector<SavedGuarantee> guarantees;
  std::vector<Maintenance> windows;
  if (!in.at_end()) {  // older checkpoints end here
    in.get(guarantees);
    in.get(windows);
  }
  for (Maintenance& window : windows) {
    for (const NodeId id : window.nodes) {
      if (!id.valid() || id.index() >= state.nodes_.size()) return damaged;
      state.node_mut(id).maintenance.insert({window.from, window.to});
      if (window.begun) ++state.node_mut(id).maintained;
      state.refresh_in_indexes(id);
    }
    state.maintenance_times_.emplace(window.begun ? window.to : window.from, window.name);
    std::string name = window.name;
    state.maintenance_.emplace(std::move(name), std::move(window));
  }
  for (EvictionRate* rate : {&state.evictions_, &state.moves_}) {
    std::vector<Timestamp> stopped;
    if (!in.at_end()) in.get(stopped);  // older checkpoints end here
    if (!std::is_sorted(stopped.begin(), stopped.end())) return damaged;
    rate->load(std::move(stopped));
  }
  // Older checkpoints end here. They do not say since when nodes are idle, so nodes count as idle since the checkpoint.
  std::vector<Timestamp> idle_since(state.nodes_.size(), state.now_);
  if (!in.at_end()) in.get(idle_since);
  if (idle_since.size() != state.nodes_.size()) return damaged;
  for (std::size_t n = 0; n < idle_since.size(); ++n) state.nodes_[n].idle_since = idle_since[n];
  std::vector<SavedEvictions> evictions;
  if (!in.at_end()) in.get(evictions);  // older checkpoints end here
  for (SavedEvictions& saved : evictions) {
    if (!saved.queue.valid() || saved.queue.index() >= state.queues_.size() ||
        !std::is_sorted(saved.stopped.begin(), saved.stopped.end())) {
      return damaged;
    }
    state.queue_mut(saved.queue).evictions.load(std::move(saved.stopped));
  }
  std::vector<Token> tokens;
  if (!in.at_end()) in.get(tokens);  // none, or an older checkpoint
  for (Token& token : tokens) {
    std::string name = token.name;
    state.tokens_.emplace(std::move(name), std::move(token));
  }
  SavedMoney money;
  if (!in.at_end()) in.get(money);  // none, or an older checkpoint
  if (!state.load_money(std::move(money))) return damaged;
  SavedDelegation delegation;
  if (!in.at_end()) in.get(delegation);  // none, or an older checkpoint
  if (!state.load_delegation(std::move(delegation))) return damaged;
  if (!in.ok() || !in.at_end() || !state.run_times_.load(run_times) || !state.fragmentation_.load(mix)) return damaged;
  state.jobs_.for_each([&](JobState& job) { state.index_job(job); });
  state.touched_loads_.clear();
  for (const SavedGuarantee& saved : guarantees) {
    if (!saved.queue.valid() || saved.queue.index() >= state.queues_.size() || saved.left.size() != kDims ||
        saved.idle_peak.size() != kDims) {
      return damaged;
    }
    QueueState& queue = state.queue_mut(saved.queue);
    std::copy(saved.left.begin(), saved.left.end(), queue.guaranteed.amounts.of.begin());
    std::copy(saved.idle_peak.begin(), saved.idle_peak.end(), queue.guarantee_use.idle_peak.of.begin());
    queue.guarantee_use.idle_since = saved.idle_since;
    queue.guarantee_use.wanting_since = saved.wanting_since;
    state.set_guarantee_due(queue, guarantee_due(queue).at);
  }
  state.unreconciled_.clear();
  state.roomier_.clear();
  return state;
}

std::uint64_t State::digest() const {
  FieldHasher hash;
  write(hash);
  return hash.digest();
}

}  // namespace berth::state
