#include "sched/place/node_iterator.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/planted.h"

namespace berth::sched {

using state::GpuFill;
using state::GroupKey;
using state::NodeState;
using state::Reach;

namespace {

// Returns true if one of the GPUs takes the share or the MIG instance.
bool piece_fits(const TaskRequirements& ask, const GroupKey& key) {
  for (std::size_t i = key.gpus.size(); i-- > 0;) {
    const GpuFill gpu = key.gpus[i];
    if (gpu.available_milli < ask.group.request.gpu_milli || (ask.models >> gpu.model.index() & 1U) == 0) continue;
    if (ask.mig
            ? instances_beside(ask.mig->profile, gpu.taken) > 0
            : !gpu.share_domain.valid() || gpu.share_domain == ask.trust_domain || planted(Bug::kShareAcrossDomains)) {
      return true;
    }
  }
  return false;
}

}  // namespace

bool group_fits(const TaskRequirements& ask, const GroupKey& key) {
  if (!ask.classes[key.node_class.index()]) return false;
  const TaskRequest& request = ask.group.request;
  if (request.gpus == 0) return true;
  if (ask.mig || request.is_share()) return piece_fits(ask, key);
  std::array<std::uint8_t, kMaxGpuModels> whole{};
  for (std::size_t i = key.gpus.size(); i-- > 0;) {  // of one model those with the most left are last
    const GpuFill gpu = key.gpus[i];
    if (gpu.available_milli != kMilli || (ask.models >> gpu.model.index() & 1U) == 0) continue;
    if (++whole[gpu.model.index()] == request.gpus) return true;
  }
  return false;
}

FitOrder::FitOrder(const state::State& state, const TaskRequirements& ask, std::uint64_t& scored)
    : state_(state),
      ask_(ask),
      scored_(scored),
      holders_(state, ask),
      next_reach_(Reach::of(ask.group.request).step()) {}

bool FitOrder::Later::operator()(const Stream& a, const Stream& b) const {
  if (a.available_milli != b.available_milli) return a.available_milli > b.available_milli;
  if (a.lacks_image != b.lacks_image) return a.lacks_image;
  return a.at->first > b.at->first;
}

void FitOrder::step(Stream& stream) const {
  if (!stream.listed) {
    ++stream.at;
  } else if (stream.listed->empty()) {
    stream.at = stream.end;
  } else {
    stream.at = stream.listed->back();
    stream.listed->pop_back();
  }
}

bool FitOrder::skip_to_fitting(Stream& stream) {
  const TaskGroup& group = ask_.group;
  for (; stream.at != stream.end; step(stream)) {
    ++scored_;
    if (stream.at->second < group.request.memory_mib) continue;
    if (holders_.matter() && has_image(ask_, stream.at->first.second) == stream.lacks_image) continue;
    if (passes(ask_, state_.node(stream.at->first.second))) return true;
  }
  return false;
}

void FitOrder::meet(List list) {
  if (list.at == list.end) return;
  list.available_milli = list.at->first.available_milli;
  met_.push(list);
}

// Adds all lists that may hold a group as tight as the tightest one known.
void FitOrder::meet_lists() {
  for (; next_reach_ < Reach::kSteps; ++next_reach_) {
    const std::int64_t least = Reach(next_reach_).least_milli();
    if (!met_.empty() && met_.top().available_milli < least) return;
    if (!open_.empty() && open_.top().available_milli < least) return;
    for (const state::ModelGroups& part : state_.node_index().groups()) {
      const state::NodeGroups& groups = part.by_reach[next_reach_];
      if (may_fit(ask_, part)) meet({0, groups.begin(), groups.end()});
    }
  }
}

// Opens groups until the tightest node is in an open one.
void FitOrder::open_tightest() {
  while (true) {
    meet_lists();
    if (met_.empty()) return;
    List list = met_.top();
    if (!open_.empty() && open_.top().available_milli < list.available_milli) return;
    met_.pop();
    const auto& [key, group] = *list.at++;
    ++scored_;
    meet(list);
    if (!group_fits(ask_, key)) continue;
    open(key.available_milli, group);
  }
}

void FitOrder::open(std::int64_t available_milli, const state::NodeGroup& group) {
  Stream stream{available_milli,
                holders_.matter(),
                group.memory.lower_bound({ask_.group.request.cpu_milli, NodeId(0)}),
                group.memory.end(),
                {}};
  if (holders_.matter()) open_image_holders(stream, group);
  if (skip_to_fitting(stream)) open_.push(stream);
}

// Requires that `stream` is at the first node of the group with enough CPU.
void FitOrder::open_image_holders(Stream stream, const state::NodeGroup& group) {
  stream.lacks_image = false;
  if (holders_.are_few()) {
    stream.listed = holders_.in(group, ask_.group.request.cpu_milli, scored_);
    stream.at = stream.end;
    step(stream);
  }
  if (skip_to_fitting(stream)) open_.push(std::move(stream));
}

std::vector<NodeId> FitOrder::untouched() {
  std::vector<Fit> fits;
  for (const NodeState& node : state_.nodes()) {
    ++scored_;
    if (!node.takes_tasks() || !ask_.classes[state_.node_index().class_of(node.id).index()]) continue;
    if (!suits(ask_, node)) continue;
    if (has_place(ask_, node, {})) fits.push_back(fit_of(ask_, node, {}));
  }
  std::sort(fits.begin(), fits.end());
  std::vector<NodeId> nodes;
  for (const Fit& fit : fits) nodes.push_back(fit.node);
  return nodes;
}

std::optional<NodeId> FitOrder::next_untouched() {
  if (!untouched_) untouched_ = untouched();
  if (next_untouched_ == untouched_->size()) return std::nullopt;
  return (*untouched_)[next_untouched_++];
}

std::optional<NodeId> FitOrder::next() {
  if (ask_.exclusive) return next_untouched();
  open_tightest();
  if (open_.empty()) return std::nullopt;
  Stream stream = open_.top();
  open_.pop();
  const NodeId node = stream.at->first.second;
  step(stream);
  if (skip_to_fitting(stream)) open_.push(std::move(stream));
  return node;
}

}  // namespace berth::sched
