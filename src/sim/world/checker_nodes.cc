// Folds the events of nodes: which nodes exist, are silent, are lost and come back.

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "base/clock_discipline.h"
#include "sim/world/checker.h"

namespace berth::sim {

// Returns true if a mass loss is on: at least three nodes, and the configured part of the known ones, are silent.
bool Checker::many_are_silent() const {
  const auto in = [&](NodeStatus status) {
    return std::count_if(nodes_.begin(), nodes_.end(), [&](const NodeView& node) { return node.status == status; });
  };
  const std::int64_t percent = config_.scheduling.max_unreachable_percent;
  const std::int64_t silent = in(NodeStatus::kUnknown);
  return percent > 0 && silent >= 3 && silent * 100 >= percent * (silent + in(NodeStatus::kReady));
}

// A node that is back and was away too often must be cordoned before the iteration ends.
void Checker::set_status(std::size_t index, NodeStatus status) {
  NodeView& node = nodes_[index];
  const SchedulingConfig& rules = config_.scheduling;
  if (node.status == NodeStatus::kReady && status != NodeStatus::kReady) node.losses.push_back(now_);
  node.status = status;
  const bool went_by_notice = node.gone_at.ms > 0 && node.gone_at <= now_;
  if (status != NodeStatus::kReady || node.cordoned || went_by_notice || rules.flap_losses == 0) return;
  const auto lately = std::count_if(node.losses.begin(), node.losses.end(),
                                    [&](Timestamp loss) { return now_ - loss < rules.flap_window_s * 1000; });
  if (lately < rules.flap_losses) return;
  count("came and went too often");
  flapping_.insert(index);
}

// A GPU is on one node: a second one that has it too would give it to another job (P1).
void Checker::check_gpu_owners(std::size_t index) {
  for (const Gpu& gpu : nodes_[index].spec.gpus) {
    if (!gpu.healthy) continue;
    const auto [owner, fresh] = gpu_owners_.try_emplace(gpu.uuid, index);
    const NodeView& other = nodes_[owner->second];
    require(owner->second == index || other.status == NodeStatus::kLost, "P1",
            "GPU " + gpu.uuid + " is on node " + nodes_[index].spec.name + " and on node " + other.spec.name);
    owner->second = index;
  }
}

// Time passes no faster than the boot clock, which may be slewed a little, unless an operator has confirmed the wall
// clock. So no limit acts and no bill is written because the wall clock was set.
void Checker::check_time(Timestamp time) {
  if (!began_) began_.emplace(time, real_);
  const std::int64_t passed = real_ - began_->second;
  const std::int64_t most = passed + passed / ClockDiscipline::kSlewDivisor + 1 + confirmed_ms_;
  require(time - began_->first <= most, "clock", "time runs ahead of the boot clock");
}

void Checker::on(const ClockConfirmed& event) {
  count(event.offset_ms < 0 ? "clock confirmed, behind" : "clock confirmed, ahead");
  confirmed_ms_ += std::max<std::int64_t>(0, event.offset_ms) + ClockDiscipline::kSmallUs / 1000;
}

void Checker::on(const NodeRegistered& event) {
  if (event.node.index() == nodes_.size()) nodes_.emplace_back();
  if (event.node.index() >= nodes_.size()) return breach("P8", "a node's id is skipped");
  NodeView& node = nodes_[event.node.index()];
  require(event.lease == node.lease + 1, "P9", "leases of node " + event.spec.name + " do not follow each other");
  count(event.lease == 1 ? "node joined" : event.renamed_from.empty() ? "node back" : "node renamed");
  require(event.renamed_from.empty() || event.renamed_from == node.spec.name, "P8", "a node had another name");
  node.lease = event.lease;
  count_fleet(node, -1);
  set_status(event.node.index(), NodeStatus::kReady);
  if (node.spec == event.spec) {
    mark_foreign(node, event.foreign);
    return count_fleet(node, +1);
  }
  node.spec = event.spec;
  check_gpu_owners(event.node.index());
  install(node);
  mark_foreign(node, event.foreign);
  count_fleet(node, +1);
  for (const auto& [id, job] : jobs_) {
    for (const TaskPlacement& placement : job.placements) {
      if (placement.node == event.node) bind(job, placement, +1);
    }
    for (const TaskPlacement& placement : job.promised()) {
      if (placement.node == event.node) promise(placement, +1);
    }
  }
}

void Checker::on(const NodeStatusChanged& event) {
  NodeView& node = nodes_[event.node.index()];
  const bool fenced = event.why.starts_with("fenced by ");
  if (event.status == NodeStatus::kLost && node.status == NodeStatus::kUnknown && !fenced) {
    require(event.removed || !many_are_silent(), "P5",
            "node " + node.spec.name + " is given up though many are silent at once");
  }
  count_fleet(node, -1);
  set_status(event.node.index(), event.status);
  count_fleet(node, +1);
  count("node " + std::string(name_of(event.status)) +
        (event.loss_deferred ? ", loss deferred"
         : event.removed     ? ", removed"
                             : ""));
  if (event.status != NodeStatus::kLost) return;
  for (const auto& [key, execution] : fleet_.executions()) {
    if (execution.phase == backend::Execution::Phase::kLive && fleet_.node_name(execution.node) == node.spec.name) {
      breach("P9", "node " + node.spec.name + " is given up while " + text_of(key.job) + " lives there");
    }
  }
}

// Nothing holds a node that is removed, so no job loses its places and no bill its GPUs.
void Checker::on(const NodeRemoved& event) {
  NodeView& node = nodes_[event.node.index()];
  require(node.status == NodeStatus::kLost, "P1", "node " + node.spec.name + " is removed and was not lost");
  for (const auto& [id, job] : jobs_) {
    for (const TaskPlacement& placement : job.placements)
      require(placement.node != event.node, "P1", "node " + node.spec.name + " is removed below " + text_of(id));
  }
  count("node removed");
  count_fleet(node, -1);
  NodeSpec nothing;
  nothing.name = node.spec.name;
  nothing.pool = node.spec.pool;
  node.spec = std::move(nothing);
  node.cordoned = node.draining = false;
  node.gone_at = {};
  node.losses.clear();
  install(node);
  mark_foreign(node, {});
  count_fleet(node, +1);
}

// A job blames a node on which its last attempt failed, once, and while it runs on others alone.
void Checker::on(const NodeBlamed& event) {
  count("node blamed");
  JobView* job = live(event.job, "a blame");
  if (job == nullptr) return;
  const bool was_there = job->failed_attempt == event.attempt && job->failed_on.contains(event.node);
  require(job->running && was_there, "P13", text_of(event.job) + " blames a node for nothing");
  for (const TaskPlacement& placement : job->placements)
    require(placement.node != event.node, "P13", text_of(event.job) + " blames a node on which it runs");
  if (job->failure_counted && !std::exchange(job->given_back, true)) --job->failures;
  job->failed_on.clear();
  accusers_[event.node.index()].insert(job->spec.user);
}

void Checker::on(const NodeCordoned& event) {
  if (event.cordoned && event.user == "berth" && event.why.starts_with("suspect")) {
    count("suspect");
    const auto accusers = static_cast<std::int64_t>(accusers_[event.node.index()].size());
    require(config_.scheduling.suspect_users > 0 && accusers >= config_.scheduling.suspect_users, "P13",
            "a node is suspect that few users blame");
    std::size_t known = 0;
    std::size_t others = 0;
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      if (nodes_[n].status != NodeStatus::kLost) ++known;
      if (n != event.node.index() && nodes_[n].cordoned && accusers_.contains(n)) ++others;
    }
    require(others < std::max<std::size_t>(1, known / 50), "P13", "too many nodes are kept out as suspect");
  }
  if (!event.cordoned) accusers_.erase(event.node.index());
  count(event.why.empty() ? "cordon" : "held out");
  nodes_[event.node.index()].cordoned = event.cordoned;
  nodes_[event.node.index()].draining = event.cordoned && event.draining;
  nodes_[event.node.index()].gone_at = event.cordoned ? event.gone_at : Timestamp();
  if (!event.cordoned) nodes_[event.node.index()].losses.clear();
  flapping_.erase(event.node.index());
}

void Checker::on(const GpuHealthChanged& event) {
  NodeView& node = nodes_[event.node.index()];
  count_fleet(node, -1);
  node.gpus[event.gpu].healthy = event.healthy;
  count_fleet(node, +1);
  Gpu& gpu = node.spec.gpus[event.gpu];
  require(!event.fenced || !event.healthy, "P13", "a fenced GPU is healthy");
  count(event.fenced ? "fenced GPU" : gpu.fenced ? "fence lifted" : "GPU health");
  require(!gpu.fenced || event.fenced || !event.user.empty(), "P13", "the fence of a GPU is lifted by no operator");
  gpu.healthy = event.healthy;
  gpu.fenced = event.fenced;
  gpu.fault = event.fenced ? event.why : "";
  gpu.failed = event.failed;
}

void Checker::mark_foreign(NodeView& node, const ForeignUse& use) {
  node.foreign = use;
  for (std::size_t g = 0; g < node.gpus.size(); ++g)
    node.gpus[g].foreign = std::find(use.gpus.begin(), use.gpus.end(), g) != use.gpus.end();
}

void Checker::on(const ForeignUseChanged& event) {
  count("foreign use");
  NodeView& node = nodes_[event.node.index()];
  require(node.foreign != event.use, "P7", "foreign use of " + node.spec.name + " is told that is known");
  count_fleet(node, -1);
  mark_foreign(node, event.use);
  count_fleet(node, +1);
}

void Checker::on(const NodeImagesChanged& event) {
  NodeView& node = nodes_[event.node.index()];
  const std::string where = "node " + node.spec.name + ": ";
  require(node.spec.containers, "images", where + "it runs no containers");
  count("images");
  std::set<std::string> images(node.spec.images.begin(), node.spec.images.end());
  for (const std::string& image : event.dropped)
    require(images.erase(image) == 1, "images", where + "it drops an image that it had not");
  for (const std::string& image : event.pulled)
    require(images.insert(image).second, "images", where + "it pulls an image that it had");
  node.spec.images.assign(images.begin(), images.end());
}

void Checker::on(const MaintenancePlanned& event) {
  count("maintenance planned");
  require(event.to > now_ && event.to > event.from && !event.nodes.empty(), "maintenance", "a window of no use");
  require(windows_.emplace(event.name, WindowView{event.nodes, event.from, event.to}).second, "maintenance",
          "two windows have the name " + event.name);
  for (const NodeId node : event.nodes) nodes_[node.index()].windows.emplace(event.from, event.to);
}

void Checker::on(const MaintenanceBegan& event) {
  count("maintenance began");
  const auto found = windows_.find(event.name);
  if (found == windows_.end()) return breach("maintenance", "a window begins that nobody planned");
  require(!found->second.begun && found->second.from <= now_, "maintenance",
          event.name + " begins too early, or twice");
  found->second.begun = true;
  for (const NodeId node : found->second.nodes) ++nodes_[node.index()].maintained;
}

void Checker::on(const MaintenanceEnded& event) {
  count(event.cancelled ? "maintenance cancelled" : "maintenance over");
  const auto found = windows_.find(event.name);
  if (found == windows_.end()) return breach("maintenance", "a window ends that nobody planned");
  const WindowView window = found->second;
  require(event.cancelled || (window.begun && window.to <= now_), "maintenance", event.name + " ends too early");
  for (const NodeId id : window.nodes) {
    NodeView& node = nodes_[id.index()];
    node.windows.erase(node.windows.find({window.from, window.to}));
    if (window.begun) --node.maintained;
  }
  windows_.erase(found);
}

void Checker::check_windows(Timestamp now) {
  for (const auto& [name, window] : windows_) {
    require((window.begun ? window.to : window.from) > now, "P13", "window " + name + " does not begin or end in time");
  }
}

const PoolConfig* Checker::pool_of(NodeId node) const {
  const auto found = std::find_if(config_.pools.begin(), config_.pools.end(),
                                  [&](const PoolConfig& pool) { return pool.name == nodes_[node.index()].spec.pool; });
  return found == config_.pools.end() ? nullptr : &*found;
}

bool Checker::in_burst(const std::vector<TaskPlacement>& placements) const {
  return std::any_of(placements.begin(), placements.end(), [&](const TaskPlacement& placement) {
    const PoolConfig* pool = pool_of(placement.node);
    return pool != nullptr && pool->burst;
  });
}

}  // namespace berth::sim
