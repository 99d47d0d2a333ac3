#include "sched/fit_order.h"

#include <algorithm>

#include "base/planted.h"

namespace berth::sched {

using state::GpuFill;
using state::GroupKey;
using state::NodeGroup;
using state::NodeIndex;
using state::NodeState;

bool group_fits(const TaskAsk& ask, const GroupKey& key, const NodeGroup& group) {
  if (!ask.classes[key.node_class.index()]) return false;
  const TaskRequest& request = ask.group.request;
  if (request.gpus == 0) return true;
  if (request.is_share() && group.most_shared_milli < request.gpu_milli) return false;
  std::array<std::int32_t, kMaxGpuModels> whole{};
  for (std::size_t i = 0; i < key.gpus.size(); ++i) {
    const GpuFill gpu = key.gpus[i];
    if ((ask.models >> gpu.model.index() & 1U) == 0) continue;
    if (request.is_share()) {
      const bool ours =
          !gpu.share_domain.valid() || gpu.share_domain == ask.trust_domain || planted(Bug::kShareAcrossDomains);
      if (gpu.available_milli >= request.gpu_milli && ours) return true;
    } else if (gpu.available_milli == kMilli && ++whole[gpu.model.index()] == request.gpus) {
      return true;
    }
  }
  return false;
}

FitOrder::FitOrder(const state::State& state, const TaskAsk& ask, std::uint64_t& scored)
    : state_(state), ask_(ask), scored_(scored) {
  const TaskRequest& request = ask.group.request;
  const std::size_t whole = request.is_share() ? 0 : static_cast<std::size_t>(request.gpus);
  // Groups with less than the task asks are not met at all.
  const GroupKey least{request.total_gpu_milli(), state::NodeClassId(0), state::GpuFills(NodeState())};
  for (std::size_t w = whole; w < NodeIndex::kBuckets; ++w) {
    const state::NodeGroups& groups = state.node_index().with_whole_gpus(w);
    const auto first = groups.lower_bound(least);
    if (first != groups.end()) buckets_.push_back({first, groups.end()});
  }
}

bool FitOrder::Later::operator()(const Stream& a, const Stream& b) const {
  if (a.available_milli != b.available_milli) return a.available_milli > b.available_milli;
  return a.at->first > b.at->first;
}

bool FitOrder::skip_to_fitting(Stream& stream) {
  const TaskGroup& group = ask_.group;
  for (; stream.at != stream.end; ++stream.at) {
    ++scored_;
    if (stream.at->second < group.request.memory_mib) continue;
    if (passes(ask_, state_.node(stream.at->first.second))) return true;
  }
  return false;
}

FitOrder::Bucket* FitOrder::tightest_bucket() {
  Bucket* tightest = nullptr;
  for (Bucket& bucket : buckets_) {
    if (bucket.at == bucket.end) continue;
    if (tightest == nullptr || bucket.at->first.available_milli < tightest->at->first.available_milli)
      tightest = &bucket;
  }
  return tightest;
}

// Opens groups until the tightest node is among the open ones.
void FitOrder::open_tightest() {
  while (Bucket* bucket = tightest_bucket()) {
    const auto& [key, group] = *bucket->at;
    if (!open_.empty() && open_.top().available_milli < key.available_milli) return;
    ++scored_;
    ++bucket->at;
    if (!group_fits(ask_, key, group)) continue;
    Stream stream{key.available_milli, group.memory.lower_bound({ask_.group.request.cpu_milli, NodeId(0)}),
                  group.memory.end()};
    if (skip_to_fitting(stream)) open_.push(stream);
  }
}

std::optional<NodeId> FitOrder::next_untouched() {
  while (next_node_ < state_.nodes().size()) {
    const NodeState& node = state_.nodes()[next_node_++];
    ++scored_;
    if (!node.takes_tasks() || !ask_.classes[state_.node_index().class_of(node.id).index()]) continue;
    if (suits(ask_, node) && try_node(ask_, node, {})) return node.id;
  }
  return std::nullopt;
}

std::optional<NodeId> FitOrder::next() {
  if (ask_.exclusive) return next_untouched();
  open_tightest();
  if (open_.empty()) return std::nullopt;
  Stream stream = open_.top();
  open_.pop();
  const NodeId node = stream.at->first.second;
  ++stream.at;
  if (skip_to_fitting(stream)) open_.push(stream);
  return node;
}

}  // namespace berth::sched
