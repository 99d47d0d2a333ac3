#pragma once
// An exact solver for tiny instances, for tests only. It finds out whether a gang can start by trying every task on
// every set of GPUs. It reads only the nodes' specs, the attempts, the nominations and the configured limits. It shares
// no code with placement, quota or the indexes, so a bug there cannot hide here, too.

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "state/state.h"

namespace berth::sched {

// Changes of the state that the solver assumes.
struct Imagined {
  state::JobState job;                                              // the job to start, possibly a changed copy
  std::set<JobId> gone;                                             // running jobs that are ignored
  std::map<JobId, std::uint32_t> kept;                              // elastic gangs that keep only so many tasks
  std::set<NodeId> uncordoned;                                      // cordoned nodes that take tasks
  std::map<std::pair<QueueId, std::size_t>, std::int64_t> max;      // max by queue and dimension
  std::map<std::pair<QueueId, std::size_t>, std::int64_t> lending;  // lending limits
  bool beside_burst = false;                                        // the job may not use burst pools
};

class ExactSolver {
 public:
  ExactSolver(const state::State& state, const Imagined& imagined) : state_(state), imagined_(imagined) {
    for (const state::NodeState& node : state.nodes()) nodes_.push_back(empty(node));
    state.jobs().for_each([&](const state::JobState& job) {
      if (job.id == imagined_.job.id) return;
      if (job.attempt && !imagined_.gone.contains(job.id)) {
        const auto kept = imagined_.kept.find(job.id);
        const std::size_t tasks = kept == imagined_.kept.end() ? job.attempt->tasks.size() : kept->second;
        for (std::size_t t = 0; t < tasks; ++t) {
          take(job.attempt->tasks[t].placement, job.queue);
          others_.push_back({&job, job.attempt->tasks[t].placement.node.index(), false});
        }
      }
      if (job.nomination) {
        for (const TaskPlacement& placement : job.nomination->placements) {
          promise(placement, job.queue);
          others_.push_back({&job, placement.node.index(), true});
        }
      }
    });
  }

  // Returns true if the job fits with min_count tasks of each group in any way.
  bool can_start() {
    tasks_.clear();
    own_nodes_.clear();
    for (std::size_t g = 0; g < imagined_.job.spec.groups.size(); ++g) {
      for (std::int32_t i = 0; i < imagined_.job.spec.groups[g].least(); ++i) tasks_.push_back(g);
    }
    own_.clear();
    return put(0, 0);
  }

 private:
  struct GpuRoom {
    GpuModelId model;
    bool healthy = true;
    std::int64_t milli = kMilli;
    std::int64_t sharers = 0;
    TrustDomainId domain;
    TrustDomainId promised;  // the trust domain of nominated shares, if any
    MigSlices slices = 0;    // taken slices of a GPU with MIG
  };
  struct Room {
    bool takes_tasks = true;
    std::int64_t cpu = 0;
    std::int64_t memory = 0;
    bool touched = false;
    bool own = false;  // has a task of the gang that is being placed
    std::vector<GpuRoom> gpus;
  };

  Room empty(const state::NodeState& node) const {
    Room room;
    const bool cordoned = node.cordoned && !imagined_.uncordoned.contains(node.id);
    room.takes_tasks = node.status == NodeStatus::kReady && !cordoned;
    room.cpu = node.spec.cpu_milli;
    room.memory = node.spec.memory_mib;
    for (const Gpu& gpu : node.spec.gpus) {
      room.gpus.push_back({*state_.gpu_model_named(gpu.model), gpu.healthy, kMilli, 0, {}, {}});
    }
    return room;
  }

  // A nomination in a burst pool counts as if it were outside burst pools until the job starts.
  void charge(const TaskPlacement& placement, QueueId queue, bool promised) {
    Room& room = nodes_[placement.node.index()];
    room.cpu -= placement.cpu_milli;
    room.memory -= placement.memory_mib;
    room.touched = true;
    for (const std::uint8_t g : placement.gpus) room.gpus[g].milli -= placement.gpu_milli;
    for (QueueId id = queue; id.valid(); id = state_.queue(id).parent) {
      used_[{id, kDimCpu}] += placement.cpu_milli;
      used_[{id, kDimMemory}] += placement.memory_mib;
      for (const std::uint8_t g : placement.gpus) {
        used_[{id, kDimGpu}] += placement.gpu_milli;
        used_[{id, dim_of(room.gpus[g].model)}] += placement.gpu_milli;
      }
      if (promised || !is_burst(placement.node.index())) continue;
      burst_[{id, kDimCpu}] += placement.cpu_milli;
      burst_[{id, kDimMemory}] += placement.memory_mib;
      for (const std::uint8_t g : placement.gpus) {
        burst_[{id, kDimGpu}] += placement.gpu_milli;
        burst_[{id, dim_of(room.gpus[g].model)}] += placement.gpu_milli;
      }
    }
  }
  // Takes the slices of the placement on GPUs with MIG; returns true if there are any. Trust domains do not matter for
  // MIG instances.
  bool cut(const TaskPlacement& placement) {
    bool any = false;
    for (const std::uint8_t g : placement.gpus) {
      GpuRoom& gpu = nodes_[placement.node.index()].gpus[g];
      const MigGeometry* mig = state_.gpu_models()[gpu.model.index()].mig;
      if (mig == nullptr) continue;
      gpu.slices |= mig->taken_by(placement.slices);
      any = true;
    }
    return any;
  }
  void take(const TaskPlacement& placement, QueueId queue) {
    charge(placement, queue, false);
    if (cut(placement) || placement.gpu_milli == kMilli) return;
    GpuRoom& gpu = nodes_[placement.node.index()].gpus[placement.gpus.front()];
    ++gpu.sharers;
    gpu.domain = state_.queue(queue).trust_domain;
  }
  void promise(const TaskPlacement& placement, QueueId queue) {
    charge(placement, queue, true);
    if (cut(placement) || placement.gpu_milli == kMilli) return;
    nodes_[placement.node.index()].gpus[placement.gpus.front()].promised = state_.queue(queue).trust_domain;
  }

  bool is_burst(std::size_t n) const {
    const auto& pools = state_.config().pools;
    return std::any_of(pools.begin(), pools.end(),
                       [&](const PoolConfig& pool) { return pool.burst && pool.name == state_.nodes()[n].spec.pool; });
  }

  bool allowed(const TaskGroup& group, const state::NodeState& node) const {
    if (!group.pool.empty() && group.pool != node.spec.pool) return false;
    if (imagined_.beside_burst && is_burst(node.id.index())) return false;
    if (!group.image.empty() && !node.spec.containers) return false;
    for (const Taint& taint : node.spec.taints) {
      if (!is_tolerated(group, taint)) return false;
    }
    for (const NodeRule& rule : group.node_rules) {
      if (!is_obeyed(rule, node.spec)) return false;
    }
    for (const auto& label : group.node_selector) {
      if (std::find(node.spec.labels.begin(), node.spec.labels.end(), label) == node.spec.labels.end()) return false;
    }
    for (const PoolConfig& pool : state_.config().pools) {
      if (pool.name != node.spec.pool) continue;
      const JobClass job_class = imagined_.job.spec.job_class;
      if (!pool.classes.empty() && std::find(pool.classes.begin(), pool.classes.end(), job_class) == pool.classes.end())
        return false;
      if (pool.queues.empty()) continue;
      const std::string path = imagined_.job.spec.queue + "/";
      if (std::none_of(pool.queues.begin(), pool.queues.end(),
                       [&](const std::string& top) { return path.starts_with(top + "/"); }))
        return false;
    }
    return true;
  }

  // Of the four texts that could tolerate the taint by its key, and of those for any key, the group has one.
  static bool is_tolerated(const TaskGroup& group, const Taint& taint) {
    const std::string effect = taint.effect == TaintEffect::kNoExecute ? ":NoExecute" : ":NoSchedule";
    for (const std::string& key : {taint.key, taint.key + "=" + taint.value, std::string("*")}) {
      for (const std::string& text : {key, key + effect}) {
        if (std::count(group.tolerations.begin(), group.tolerations.end(), text) > 0) return true;
      }
    }
    return false;
  }

  static bool is_obeyed(const NodeRule& rule, const NodeSpec& node) {
    const std::map<std::string, std::string> labels(node.labels.begin(), node.labels.end());
    for (const auto& term : rule.terms) {
      bool all = !term.empty();
      for (const NodeExpression& one : term) {
        const bool there = one.by_name || labels.contains(one.key);
        const std::string value = one.by_name ? node.name : there ? labels.at(one.key) : std::string();
        const bool listed = there && std::count(one.values.begin(), one.values.end(), value) > 0;
        if (one.op == NodeOperator::kIn) all = all && listed;
        if (one.op == NodeOperator::kNotIn) all = all && !listed;
        if (one.op == NodeOperator::kExists) all = all && there;
        if (one.op == NodeOperator::kDoesNotExist) all = all && !there;
        if (one.op == NodeOperator::kGreater) all = all && there && std::stoll(value) > std::stoll(one.values.at(0));
        if (one.op == NodeOperator::kLess) all = all && there && std::stoll(value) < std::stoll(one.values.at(0));
      }
      if (all) return true;
    }
    return false;
  }

  bool model_allowed(const TaskRequest& request, GpuModelId model) const {
    const std::string& name = state_.gpu_models()[model.index()].name;
    const MigGeometry* mig = state_.gpu_models()[model.index()].mig;
    if (request.mig_profile.empty() != (mig == nullptr)) return false;
    if (mig != nullptr && mig->profile_named(request.mig_profile) == nullptr) return false;
    return request.gpu_models.empty() ||
           std::find(request.gpu_models.begin(), request.gpu_models.end(), name) != request.gpu_models.end();
  }

  // A resource that the task does not request is no obstacle, even if more of it is nominated than there is.
  static bool has(std::int64_t room, std::int64_t asked) { return asked == 0 || room >= asked; }

  // Tasks of one group are equal, so no task is tried on an earlier node than the task before it.
  bool put(std::size_t task, std::size_t from) {
    if (task == tasks_.size()) return within_limits();
    const TaskGroup& group = imagined_.job.spec.groups[tasks_[task]];
    if (task > 0 && tasks_[task] != tasks_[task - 1]) from = 0;
    for (std::size_t n = from; n < nodes_.size(); ++n) {
      Room& room = nodes_[n];
      const bool fits = room.takes_tasks && allowed(group, state_.nodes()[n]) &&
                        has(room.cpu, group.request.cpu_milli) && has(room.memory, group.request.memory_mib);
      if (!fits || !in_one_domain(n) || !group_in_one_domain(task, n) || !beside_others(n)) continue;
      if (imagined_.job.spec.exclusive && (room.touched || room.own)) continue;
      if (on_node(task, n, group)) return true;
    }
    return false;
  }

  // Returns the domains of the node from the outermost level to the required one, or nothing if it is in no domain of
  // that level.
  std::vector<std::string> place_of(std::size_t n, const std::string& required) const {
    const NodeSpec& spec = state_.nodes()[n].spec;
    if (required == "node") return {spec.name};
    std::vector<std::string> place;
    const auto& levels = state_.config().topology_levels;
    for (std::size_t l = 0; l < levels.size(); ++l) {
      std::string name = l < spec.topology.size() ? spec.topology[l] : "";
      for (const auto& [key, value] : spec.labels) {
        if (name.empty() && key == levels[l]) name = value;
      }
      if (levels[l] == required && name.empty()) return {};
      place.push_back(name);
      if (levels[l] == required) return place;
    }
    return {};
  }

  bool in_one_domain(std::size_t n) const {
    const std::string& required = imagined_.job.spec.topology.required;
    if (required.empty()) return true;
    const auto place = place_of(n, required);
    return !place.empty() && (own_nodes_.empty() || place == place_of(own_nodes_.front(), required));
  }

  // Tasks are placed group by group, so the last placed node is of the same group, unless this is its first task.
  bool group_in_one_domain(std::size_t task, std::size_t n) const {
    const std::string& required = imagined_.job.spec.groups[tasks_[task]].topology.required;
    if (required.empty()) return true;
    const auto place = place_of(n, required);
    const bool first = task == 0 || tasks_[task - 1] != tasks_[task];
    return !place.empty() && (first || place == place_of(own_nodes_.back(), required));
  }

  // A task of another job that is bound, or a nominated place.
  struct Other {
    const state::JobState* job;
    std::size_t node;
    bool promised;
  };

  static bool means(const AffinityTerm& term, const JobSpec& spec) {
    return std::all_of(term.labels.begin(), term.labels.end(), [&](const auto& label) {
      return std::find(spec.labels.begin(), spec.labels.end(), label) != spec.labels.end();
    });
  }
  bool together(std::size_t a, std::size_t b, const std::string& level) const {
    const auto place = place_of(a, level);
    return !place.empty() && place == place_of(b, level);
  }
  bool trusts(const Other& other) const {
    return state_.queue(other.job->queue).trust_domain == state_.queue(imagined_.job.queue).trust_domain;
  }

  bool beside_others(std::size_t n) const { return apart(n) && ports_free(n) && away(n) && near(n); }

  bool apart(std::size_t n) const {
    const std::string& pool = state_.nodes()[n].spec.pool;
    for (const PoolConfig& one : state_.config().pools) {
      if (one.name != pool || one.trust_domain_isolation.empty()) continue;
      for (const Other& other : others_) {
        const bool beside = other.node == n || (state_.nodes()[other.node].spec.pool == pool &&
                                                together(n, other.node, one.trust_domain_isolation));
        if (beside && !trusts(other)) return false;
      }
    }
    return true;
  }

  static bool share_a_port(const JobSpec& one, const JobSpec& other) {
    return std::any_of(one.ports.begin(), one.ports.end(), [&](std::int32_t port) {
      return std::find(other.ports.begin(), other.ports.end(), port) != other.ports.end();
    });
  }

  bool ports_free(std::size_t n) const {
    const JobSpec& spec = imagined_.job.spec;
    const bool own = std::find(own_nodes_.begin(), own_nodes_.end(), n) != own_nodes_.end();
    return !(own && !spec.ports.empty()) && std::none_of(others_.begin(), others_.end(), [&](const Other& other) {
      return other.node == n && share_a_port(spec, other.job->spec);
    });
  }

  bool away(std::size_t n) const {
    const JobSpec& spec = imagined_.job.spec;
    for (const Other& other : others_) {
      if (!trusts(other)) continue;
      for (const AffinityTerm& term : spec.anti_affinity) {
        if (term.required && means(term, other.job->spec) && together(n, other.node, term.level)) return false;
      }
      for (const AffinityTerm& term : other.job->spec.anti_affinity) {
        if (term.required && means(term, spec) && together(n, other.node, term.level)) return false;
      }
    }
    for (const AffinityTerm& term : spec.anti_affinity) {
      if (!term.required || !means(term, spec)) continue;
      for (const std::size_t own : own_nodes_) {
        if (together(n, own, term.level)) return false;
      }
    }
    return true;
  }

  // Returns true if the node satisfies the required affinity terms. If no task anywhere matches a term but the job
  // itself, the job is the first of its kind. It may then use any domain, and its other tasks must use the same one.
  bool near(std::size_t n) const {
    const JobSpec& spec = imagined_.job.spec;
    for (const AffinityTerm& term : spec.affinity) {
      if (!term.required) continue;
      bool anywhere = false;
      bool here = false;
      for (const Other& other : others_) {
        if (other.promised || !trusts(other) || !means(term, other.job->spec)) continue;
        anywhere = anywhere || !place_of(other.node, term.level).empty();
        here = here || together(n, other.node, term.level);
      }
      const bool first = !anywhere && means(term, spec) && !place_of(n, term.level).empty() &&
                         (own_nodes_.empty() || together(n, own_nodes_.front(), term.level));
      if (!here && !first) return false;
    }
    return true;
  }

  bool on_node(std::size_t task, std::size_t n, const TaskGroup& group) {
    const TaskRequest& request = group.request;
    if (imagined_.job.spec.exclusive) return whole_node(task, n, group);
    if (request.gpus == 0) return put_on(task, n, group, {}, kMilli);
    if (!request.mig_profile.empty()) {
      for (std::size_t g = 0; g < nodes_[n].gpus.size(); ++g) {
        GpuRoom& gpu = nodes_[n].gpus[g];
        if (!gpu.healthy || gpu.milli < request.gpu_milli || !model_allowed(request, gpu.model)) continue;
        const MigProfile& profile = *state_.gpu_models()[gpu.model.index()].mig->profile_named(request.mig_profile);
        for (std::uint32_t start = 0; start + profile.width <= 8; ++start) {
          const MigSlices slices = profile.at(start);
          if ((profile.starts >> start & 1U) == 0 || (gpu.slices & slices) != 0) continue;
          gpu.slices |= slices;
          if (put_on(task, n, group, {g}, request.gpu_milli)) return true;
          gpu.slices = static_cast<MigSlices>(gpu.slices & ~slices);
        }
      }
      return false;
    }
    if (request.is_share()) {
      for (std::size_t g = 0; g < nodes_[n].gpus.size(); ++g) {
        GpuRoom& gpu = nodes_[n].gpus[g];
        const TrustDomainId domain = state_.queue(imagined_.job.queue).trust_domain;
        const bool ours =
            (gpu.sharers == 0 || gpu.domain == domain) && (!gpu.promised.valid() || gpu.promised == domain);
        if (!gpu.healthy || !ours || gpu.milli < request.gpu_milli || !model_allowed(request, gpu.model)) continue;
        if (put_on(task, n, group, {g}, request.gpu_milli)) return true;
      }
      return false;
    }
    // Idle GPUs of one model are equal, unless a group has a NUMA policy. So only the model is tried.
    for (std::size_t m = 0; m < state_.gpu_models().size(); ++m) {
      std::vector<std::size_t> idle;
      for (std::size_t g = 0; g < nodes_[n].gpus.size(); ++g) {
        const GpuRoom& gpu = nodes_[n].gpus[g];
        if (gpu.healthy && gpu.model.index() == m && gpu.milli == kMilli && model_allowed(request, gpu.model))
          idle.push_back(g);
      }
      if (idle.size() < static_cast<std::size_t>(request.gpus)) continue;
      const auto& groups = imagined_.job.spec.groups;
      if (std::any_of(groups.begin(), groups.end(), [](const TaskGroup& one) { return minds_domains(one); })) {
        if (on_domains(task, n, group, idle)) return true;
        continue;
      }
      idle.resize(static_cast<std::size_t>(request.gpus));
      if (put_on(task, n, group, idle, kMilli)) return true;
    }
    return false;
  }

  static bool minds_domains(const TaskGroup& group) {
    return group.numa == NumaPolicy::kRestricted || group.numa == NumaPolicy::kSingleNumaNode;
  }

  std::size_t domains_of(std::size_t n, const std::vector<std::size_t>& gpus) const {
    std::set<std::int32_t> domains;
    for (const std::size_t g : gpus) domains.insert(state_.nodes()[n].spec.gpus[g].numa);
    return domains.size();
  }

  // Returns all subsets of `gpus` with `many` elements.
  static std::vector<std::vector<std::size_t>> sets_of(const std::vector<std::size_t>& gpus, std::size_t many) {
    std::vector<std::vector<std::size_t>> sets;
    for (std::uint32_t bits = 0; bits < 1U << gpus.size(); ++bits) {
      std::vector<std::size_t> set;
      for (std::size_t i = 0; i < gpus.size(); ++i) {
        if ((bits >> i & 1U) != 0) set.push_back(gpus[i]);
      }
      if (set.size() == many) sets.push_back(set);
    }
    return sets;
  }

  // Tries every set of idle GPUs of the model. A strict NUMA policy limits the number of NUMA domains of the set.
  bool on_domains(std::size_t task, std::size_t n, const TaskGroup& group, const std::vector<std::size_t>& idle) {
    const auto many = static_cast<std::size_t>(group.request.gpus);
    std::size_t most = minds_domains(group) ? 1 : many;
    if (group.numa == NumaPolicy::kRestricted) {
      std::vector<std::size_t> there;  // all GPUs of the model, busy ones included
      for (std::size_t g = 0; g < nodes_[n].gpus.size(); ++g) {
        if (nodes_[n].gpus[g].model == nodes_[n].gpus[idle.front()].model) there.push_back(g);
      }
      most = there.size();
      for (const auto& set : sets_of(there, many)) most = std::min(most, domains_of(n, set));
    }
    for (const auto& set : sets_of(idle, many)) {
      if (domains_of(n, set) <= most && put_on(task, n, group, set, kMilli)) return true;
    }
    return false;
  }

  // Tries an exclusive task. The node must have what the task requests, and the task is charged for the whole node.
  bool whole_node(std::size_t task, std::size_t n, const TaskGroup& group) {
    Room& room = nodes_[n];
    std::vector<std::size_t> all;
    std::map<GpuModelId, std::int64_t> allowed_gpus;
    for (std::size_t g = 0; g < room.gpus.size(); ++g) {
      if (!room.gpus[g].healthy) continue;
      all.push_back(g);
      if (model_allowed(group.request, room.gpus[g].model)) ++allowed_gpus[room.gpus[g].model];
    }
    const bool enough =
        group.request.gpus == 0 || std::any_of(allowed_gpus.begin(), allowed_gpus.end(),
                                               [&](const auto& one) { return one.second >= group.request.gpus; });
    const bool in_one = group.numa != NumaPolicy::kSingleNumaNode || domains_of(n, all) <= 1;
    return enough && in_one && put_on(task, n, group, all, kMilli);
  }

  bool put_on(std::size_t task, std::size_t n, const TaskGroup& group, const std::vector<std::size_t>& gpus,
              std::int64_t milli) {
    Room& room = nodes_[n];
    const Room before = room;
    const bool exclusive = imagined_.job.spec.exclusive;
    Amounts own;
    own[kDimCpu] = exclusive ? state_.nodes()[n].spec.cpu_milli : group.request.cpu_milli;
    own[kDimMemory] = exclusive ? state_.nodes()[n].spec.memory_mib : group.request.memory_mib;
    room.cpu -= own[kDimCpu];
    room.memory -= own[kDimMemory];
    room.own = true;
    for (const std::size_t g : gpus) {
      room.gpus[g].milli -= milli;
      own[kDimGpu] += milli;
      own[dim_of(room.gpus[g].model)] += milli;
      if (milli == kMilli) continue;
      ++room.gpus[g].sharers;
      room.gpus[g].domain = state_.queue(imagined_.job.queue).trust_domain;
    }
    own_.push_back(own);
    own_nodes_.push_back(n);
    const bool done = put(task + 1, n);
    own_nodes_.pop_back();
    own_.pop_back();
    nodes_[n] = before;
    return done;
  }

  std::int64_t limit(const std::map<std::pair<QueueId, std::size_t>, std::int64_t>& imagined, QueueId queue,
                     std::size_t dim, std::int64_t real) const {
    const auto found = imagined.find({queue, dim});
    return found == imagined.end() ? real : found->second;
  }

  bool within_limits() {
    Amounts asked;
    Amounts ordinary;
    for (std::size_t i = 0; i < own_.size(); ++i) {
      asked += own_[i];
      if (!is_burst(own_nodes_[i])) ordinary += own_[i];
    }
    for (QueueId id = imagined_.job.queue; id.valid(); id = state_.queue(id).parent) {
      const state::QueueState& queue = state_.queue(id);
      for (std::size_t dim = 0; dim < kDims; ++dim) {
        if (asked[dim] == 0 || dim == kDimGpuEquivalent) continue;
        const std::int64_t max = limit(imagined_.max, id, dim, queue.max[dim]);
        if (max != kUnlimited && used_[{id, dim}] + asked[dim] > max) return false;
        if (id != state_.root() && !lent(queue, dim, asked[dim], ordinary[dim])) return false;
      }
    }
    return true;
  }

  // Returns true if siblings keep the idle part of their guarantees that they do not lend. It must fit below the
  // parent's max and outside burst pools.
  bool lent(const state::QueueState& queue, std::size_t dim, std::int64_t asked, std::int64_t ordinary) {
    const state::QueueState& parent = state_.queue(queue.parent);
    std::int64_t kept = 0;
    for (const QueueId id : parent.children) {
      const state::QueueState& sibling = state_.queue(id);
      const std::int64_t lends = limit(imagined_.lending, id, dim, sibling.lending_limit[dim]);
      if (id == queue.id || !sibling.guaranteed.states(dim) || lends == kUnlimited) continue;
      const std::int64_t reserved = std::max<std::int64_t>(0, sibling.guaranteed.amounts[dim] - lends);
      kept += std::max<std::int64_t>(0, reserved - (used_[{id, dim}] - burst_[{id, dim}]));
    }
    if (kept == 0) return true;
    const std::int64_t own = limit(imagined_.max, parent.id, dim, parent.max[dim]);
    if (own != kUnlimited && used_[{parent.id, dim}] + asked + kept > own) return false;
    const std::int64_t backed = state_.capacity()[dim] - state_.burst_capacity()[dim];
    return ordinary == 0 || used_[{parent.id, dim}] - burst_[{parent.id, dim}] + ordinary + kept <= backed;
  }

  const state::State& state_;
  const Imagined& imagined_;
  std::vector<Room> nodes_;
  std::vector<Other> others_;
  std::map<std::pair<QueueId, std::size_t>, std::int64_t> used_;
  std::map<std::pair<QueueId, std::size_t>, std::int64_t> burst_;  // the part of used_ in burst pools
  std::vector<std::size_t> tasks_;
  std::vector<Amounts> own_;            // amounts of each placed task
  std::vector<std::size_t> own_nodes_;  // node of each placed task
};

inline bool exactly_can_start(const state::State& state, const Imagined& imagined) {
  return ExactSolver(state, imagined).can_start();
}

}  // namespace berth::sched
