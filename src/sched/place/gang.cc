#include "sched/place/gang.h"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "sched/place/node_iterator.h"
#include "sched/place/node_sampling.h"

namespace berth::sched {

using state::JobState;
using state::NodeState;
using state::State;

// GroupPlacing: adds tasks of one group, each on the node that fits best. `ready_` holds nodes with room for one more
// task: those that the gang has touched, and all nodes of a region narrower than the fleet. Untouched nodes of the
// fleet come from the index in the order of their fit. If nodes are scored, a sample of them is put into `ready_`
// instead (sched/place/node_sampling.h). So a gang costs steps per node and not scans per task.
class GroupPlacing {
 public:
  GroupPlacing(Gang& gang, std::size_t group, const Region& region)
      : gang_(gang),
        ask_(gang.asks_[group]),
        group_(group),
        scored_(gang.score_ != NodeScore::kBestFit),
        affinity_matters_(gang.affinity_.matter()),
        is_heap_(!scored_) {
    if (region.node.valid()) {
      offer(region.node);
    } else if (region.domain.valid()) {
      for (const NodeId node : gang.state_.topology().domain(region.domain).nodes) offer(node);
    } else {
      for (const auto& [node, taken] : gang.taken_) offer(node);
      if (gang.affinity_.choosy() || gang.other_replicas_.matter()) {
        for (const NodeState& node : gang.state_.nodes()) {
          if (!gang.taken_.contains(node.id)) offer(node.id);
        }
      } else if (!scored_) {
        order_.emplace(gang.state_, ask_, gang.work_.nodes_scored);
      } else {
        for (const auto& [node, taken] : gang.taken_) offered_.push_back(node);
        whole_fleet_ = true;
        offer_untouched();
      }
    }
  }

  // Adds one task. Returns false if none fits.
  bool add() {
    while (auto placement = next()) {
      // A task of the job itself may have closed the node since it was looked at.
      if (!allowed_by_affinity(placement->node)) continue;
      take(std::move(*placement));
      return true;
    }
    return false;
  }

 private:
  // A node with room for one more task. What decides first is known when it is offered. The rest of the fit is added
  // when it is compared with a node that is equal in that, which is rare if nodes are scored.
  struct Ready {
    Fit fit;
    std::uint8_t gpu = 0;  // the GPU for a share, if nodes are scored
    bool whole = false;    // all of `fit` is known
  };
  struct Later {
    bool operator()(const Ready& a, const Ready& b) const { return b.fit < a.fit; }
  };

  // Adds the rest of the fit. Requires that nothing of the node was taken since it was offered.
  void complete(Ready& ready) const {
    if (ready.whole) return;
    Fit fit = fit_of(ask_, gang_.state_.node(ready.fit.node), taken_of(ready.fit.node));
    fit.dislike = ready.fit.dislike;
    fit.crowd = std::move(ready.fit.crowd);
    fit.loss = ready.fit.loss;
    ready.fit = std::move(fit);
    ready.whole = true;
  }

  // Returns true if `a` fits better than `b`.
  bool fits_better(Ready& a, Ready& b) const {
    if (a.fit.dislike != b.fit.dislike) return a.fit.dislike < b.fit.dislike;
    if (a.fit.own_tasks != b.fit.own_tasks) return a.fit.own_tasks < b.fit.own_tasks;
    if (a.fit.crowd != b.fit.crowd) return a.fit.crowd < b.fit.crowd;
    if (a.fit.loss != b.fit.loss) return a.fit.loss < b.fit.loss;
    complete(a);
    complete(b);
    return a.fit < b.fit;
  }

  void make_heap() {
    for (Ready& ready : ready_) complete(ready);
    std::make_heap(ready_.begin(), ready_.end(), Later{});
    is_heap_ = true;
  }

  // Moves the best node to the front of `ready_`, which must not be empty. Most groups have one task: for the first
  // task the nodes are only compared, and they become a heap with the second.
  void bring_best_to_front() {
    if (is_heap_) return;
    if (drawn_from_ready_) return make_heap();
    std::size_t best = 0;
    for (std::size_t i = 1; i < ready_.size(); ++i) {
      if (fits_better(ready_[i], ready_[best])) best = i;
    }
    if (best != 0) std::swap(ready_[0], ready_[best]);
    complete(ready_[0]);
  }

  Ready take_front() {
    if (is_heap_)
      std::pop_heap(ready_.begin(), ready_.end(), Later{});
    else
      std::swap(ready_.front(), ready_.back());
    Ready best = std::move(ready_.back());
    ready_.pop_back();
    drawn_from_ready_ = true;
    return best;
  }

  // Takes the best node: from `ready_`, or the next one of the index.
  std::optional<TaskPlacement> next() {
    if (last_) offer_after_last();
    if (!fresh_ && order_) draw();
    if (!ready_.empty()) bring_best_to_front();
    if (fresh_ && (ready_.empty() || fresh_->first < ready_.front().fit)) {
      return std::exchange(fresh_, std::nullopt)->second;
    }
    if (ready_.empty() && whole_fleet_ && affinity_matters_) {
      offer_untouched();
      if (!ready_.empty()) bring_best_to_front();
    }
    if (ready_.empty()) return std::nullopt;
    return placement_on(take_front());
  }

  // Requires that nothing of the node was taken since it was offered.
  TaskPlacement placement_on(const Ready& ready) const {
    auto placement = try_node(ask_, gang_.state_.node(ready.fit.node), taken_of(ready.fit.node));
    BERTH_CHECK(placement.has_value());
    if (scored_ && ask_.group.request.is_share() && !ask_.mig) placement->gpus = {ready.gpu};
    return std::move(*placement);
  }

  const NodeDelta& taken_of(NodeId node) const {
    const auto taken = gang_.taken_.find(node);
    return taken == gang_.taken_.end() ? kNothing : taken->second;
  }

  void take(TaskPlacement placement) {
    const NodeId node = placement.node;
    last_ = Last{node, !gang_.taken_.contains(node)};
    gang_.taken_[node].add(placement);
    gang_.affinity_.enter(node, +1);
    gang_.placements_.push_back(std::move(placement));
  }

  // Computes the fit of nodes again that are more or less preferred now.
  void offer_again(NodeId node) {
    const std::vector<NodeId> touched = gang_.affinity_.touched_by(node);
    const auto is_touched = [&](const Ready& one) {
      return one.fit.node != node && std::binary_search(touched.begin(), touched.end(), one.fit.node);
    };
    std::vector<NodeId> again;
    for (const Ready& one : ready_) {
      if (is_touched(one)) again.push_back(one.fit.node);
    }
    std::erase_if(ready_, is_touched);
    if (is_heap_) std::make_heap(ready_.begin(), ready_.end(), Later{});
    for (const NodeId other : again) offer(other);
  }

  void offer(NodeId id) {
    const NodeState& node = gang_.state_.node(id);
    if (!allowed(node)) return;
    const NodeDelta& there = taken_of(id);
    ++gang_.work_.nodes_scored;
    if (has_place(ask_, node, there)) make_ready(node, there);
  }

  // Offers a node from nodes_to_score. Only affinity is checked here: nodes_to_score has checked the rest.
  void offer_indexed(NodeId id) {
    if (!allowed_by_affinity(id)) return;
    ++gang_.work_.nodes_scored;
    make_ready(gang_.state_.node(id), kNothing);
  }

  // Adds the node to `ready_`, unless none of its GPUs takes the share. Requires room for one more task.
  void make_ready(const NodeState& node, const NodeDelta& there) {
    // What the task costs the fleet is worked out when the first node is scored: many gangs meet no node with room.
    const state::PlacementLoss* costs = scored_ ? gang_.loss_of(group_) : nullptr;
    const std::optional<LeastLoss> loss = costs == nullptr ? LeastLoss() : least_loss(*costs, ask_, node, there);
    if (!loss) return;
    Ready& ready = ready_.emplace_back();
    ready.gpu = loss->gpu;
    ready.fit.node = node.id;
    ready.fit.loss = loss->milli;
    if (ask_.spread) ready.fit.own_tasks = there.tasks;
    if (affinity_matters_) ready.fit.dislike = gang_.affinity_.dislike(node.id);
    if (gang_.other_replicas_.matter()) ready.fit.crowd = gang_.other_replicas_.on(node.id);
    if (!is_heap_) return;
    complete(ready);
    std::push_heap(ready_.begin(), ready_.end(), Later{});
  }

  // Offers the node of the last task again: another task may fit there. Most groups have one task, so this is done only
  // when another task is to be added.
  void offer_after_last() {
    const Last last = *std::exchange(last_, std::nullopt);
    offer(last.node);
    if (gang_.affinity_.prefers()) offer_again(last.node);
    if (whole_fleet_ && last.untouched) replace(last.node);
  }

  // Offers untouched nodes until one can take a task or there are no more.
  void offer_untouched() {
    const std::size_t before = ready_.size();
    while (ready_.size() == before) {
      const auto nodes = nodes_to_score(gang_.state_, ask_, offered_, gang_.work_.nodes_scored);
      if (nodes.empty()) break;
      const auto known = static_cast<std::ptrdiff_t>(offered_.size());
      offered_.insert(offered_.end(), nodes.begin(), nodes.end());
      std::inplace_merge(offered_.begin(), offered_.begin() + known, offered_.end());
      ready_.reserve(ready_.size() + nodes.size());
      for (const NodeId node : nodes) offer_indexed(node);
    }
  }

  // The node has changed: offers an untouched one like it in its place.
  void replace(NodeId node) {
    if (const auto alike = next_alike(gang_.state_, ask_, node, offered_)) {
      offered_.insert(std::upper_bound(offered_.begin(), offered_.end(), *alike), *alike);
      offer_indexed(*alike);
    } else {
      offer_untouched();
    }
  }

  bool allowed(const NodeState& node) const {
    return node.takes_tasks() && ask_.classes[gang_.state_.node_index().class_of(node.id).index()] &&
           suits(ask_, node) && allowed_by_affinity(node.id);
  }
  bool allowed_by_affinity(NodeId node) const { return !affinity_matters_ || gang_.affinity_.allows(node); }

  // Draws the tightest node that the gang has not touched.
  void draw() {
    while (const auto id = order_->next()) {
      if (gang_.taken_.contains(*id) || !allowed_by_affinity(*id)) continue;
      const NodeState& node = gang_.state_.node(*id);
      auto placement = try_node(ask_, node, {});
      // The index cannot tell all about shared and cut GPUs, such as what of them is nominated.
      BERTH_CHECK(placement.has_value() || ask_.group.request.is_share() || ask_.mig);
      if (!placement) continue;
      fresh_.emplace(fit_of(ask_, node, {}), std::move(*placement));
      return;
    }
    order_.reset();
  }

  struct Last {
    NodeId node;
    bool untouched = false;  // the gang had not touched it before
  };
  static constexpr NodeDelta kNothing{};

  Gang& gang_;
  const TaskRequirements& ask_;
  std::size_t group_;
  bool scored_;
  bool affinity_matters_ = false;
  bool whole_fleet_ = false;       // nodes are scored, and the region is the fleet
  std::vector<NodeId> offered_;    // then: nodes offered so far, ascending
  std::optional<FitOrder> order_;  // empty: no further node
  std::vector<Ready> ready_;
  bool is_heap_ = false;           // `ready_` is a heap, the best fit on top
  bool drawn_from_ready_ = false;  // a node was taken out of `ready_`
  std::optional<std::pair<Fit, TaskPlacement>> fresh_;
  std::optional<Last> last_;  // the task added last, until its node is offered again
};

Gang::Gang(const State& state, const JobState& job, const GangTerms& terms, SearchStats& work)
    : state_(state),
      job_(job),
      work_(work),
      score_(terms.score),
      affinity_(state, job, terms.besides),
      other_replicas_(state, job) {
  for (std::size_t g = 0; g < job.spec.groups.size(); ++g)
    asks_.push_back(task_requirements(state, job, g, terms.models, terms.pools));
}

const state::PlacementLoss* Gang::loss_of(std::size_t group) {
  if (score_ == NodeScore::kBestFit) return nullptr;
  losses_.resize(asks_.size());
  if (!losses_[group]) losses_[group].emplace(state_.fragmentation(), state_.request_of(asks_[group].group.request));
  return &*losses_[group];
}

void Gang::prefer_images() {
  for (TaskRequirements& ask : asks_) {
    if (!ask.group.image.empty()) ask.image_on = state_.images().holders(ask.group.image);
  }
}

std::int32_t Gang::add(std::size_t group, std::int32_t count, const Region& region) {
  if (count <= 0) return 0;
  GroupPlacing placing(*this, group, region);
  std::int32_t added = 0;
  while (added < count && placing.add()) ++added;
  return added;
}

std::optional<std::size_t> Gang::add_in(const std::vector<std::size_t>& order, const Counts& counts,
                                        const Region& region) {
  const std::size_t before = mark();
  for (const std::size_t g : order) {
    if (add(g, counts[g], region) >= counts[g]) continue;
    rollback_to(before);
    return g;
  }
  return std::nullopt;
}

bool Gang::add_all(const Counts& counts, const Region& region, std::size_t& short_of) {
  std::vector<std::size_t> stated(counts.size());
  std::iota(stated.begin(), stated.end(), std::size_t{0});
  const auto refused = add_in(stated, counts, region);
  if (!refused) return true;
  short_of = *refused;
  if (counts.size() == 1) return false;
  const auto size = [&](std::size_t g) {
    const TaskRequest& request = asks_[g].group.request;
    return std::tuple(request.total_gpu_milli(), -places_on_a_gpu(asks_[g]), request.cpu_milli, request.memory_mib);
  };
  std::vector<std::size_t> order = stated;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return size(a) > size(b); });
  if (order != stated && !add_in(order, counts, region)) return true;
  std::reverse(order.begin(), order.end());
  return order != stated && !add_in(order, counts, region);
}

void Gang::rollback_to(std::size_t mark) {
  for (; placements_.size() > mark; placements_.pop_back()) {
    const TaskPlacement& placement = placements_.back();
    const auto taken = taken_.find(placement.node);
    taken->second.remove(placement);
    affinity_.enter(placement.node, -1);
    if (taken->second.tasks == 0) taken_.erase(taken);
  }
}

Counts Gang::counts_since(std::size_t mark) const {
  Counts counts(asks_.size());
  for (std::size_t i = mark; i < placements_.size(); ++i) ++counts[placements_[i].group];
  return counts;
}

std::vector<TaskPlacement> Gang::in_rank_order() && {
  const state::TopologyIndex& topology = state_.topology();
  std::stable_sort(placements_.begin(), placements_.end(), [&](const TaskPlacement& a, const TaskPlacement& b) {
    if (a.group != b.group) return a.group < b.group;
    if (a.node == b.node) return false;
    return std::tuple(topology.path_of(a.node), a.node) < std::tuple(topology.path_of(b.node), b.node);
  });
  return std::move(placements_);
}

}  // namespace berth::sched
