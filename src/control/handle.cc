#include "control/handle.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <string>

#include "base/checked.h"
#include "base/codec.h"
#include "base/hash.h"
#include "base/planted.h"
#include "control/admission.h"
#include "control/config_change.h"
#include "control/drain.h"
#include "control/maintenance.h"
#include "control/money.h"
#include "control/move.h"
#include "control/node_contact.h"
#include "control/node_identity.h"
#include "control/queue_change.h"
#include "control/role_change.h"
#include "control/services.h"
#include "control/suspect.h"
#include "control/validate.h"
#include "model/image.h"
#include "model/name.h"
#include "model/priority.h"
#include "state/impossible.h"

namespace berth::control {

namespace {

using state::JobState;
using state::NodeState;
using state::State;

Error no_such_job(JobId id, const State& state) {
  if (state.finished(id) != nullptr) return conflict("job " + std::to_string(id.value()) + " has finished");
  return not_found("no such job " + std::to_string(id.value()));
}

Error no_such_node(const std::string& name) { return not_found("no such node '" + name.substr(0, 200) + "'"); }

// --- configuration ---

// Returns true if the placement is a share of a GPU, which only jobs of one trust domain may use together. A MIG
// instance is isolated and does not count.
bool is_share(const TaskPlacement& placement) {
  return !placement.gpus.empty() && placement.gpu_milli < kMilli && placement.slices == 0;
}

bool shares_a_gpu(const JobState& job) {
  const auto& nominated = job.nomination ? job.nomination->placements : std::vector<TaskPlacement>();
  if (std::any_of(nominated.begin(), nominated.end(), is_share)) return true;
  return job.attempt && std::any_of(job.attempt->tasks.begin(), job.attempt->tasks.end(),
                                    [](const auto& task) { return is_share(task.placement); });
}

// Refuses a configuration that changes the trust domain of a queue while its jobs use, or are nominated for, shares of
// GPUs. Such a GPU belongs to the old domain until all its shares have ended. With the change it would be shared across
// domains.
Result<void> check_trust_domains(const State& state, const ClusterConfig& config, const std::vector<QueueMove>& moves) {
  std::map<std::string, std::string, std::less<>> domains{{"", ""}};
  for (const QueueConfig& one : config.queues) {
    const std::size_t slash = one.path.rfind('/');
    const std::string& above = domains.at(slash == std::string::npos ? std::string() : one.path.substr(0, slash));
    domains.emplace(one.path, one.trust_domain.empty() ? above : one.trust_domain);
  }
  const auto check = [&](JobId id, std::string_view has, std::string_view until) -> Result<void> {
    const JobState& job = *state.job(id);
    const state::QueueState& queue = state.queue(job.queue);
    const std::string& domain = state.trust_domains()[queue.trust_domain.index()];
    if (domains.at(moved_path(queue.path, moves)) == domain || !shares_a_gpu(job)) return {};
    return conflict("queue '" + queue.path + "' " + std::string(has) + " (job " + std::to_string(id.value()) +
                    "); its trust domain stays '" + domain + "' until they have " + std::string(until));
  };
  for (const JobId id : state.running()) {
    if (auto ok = check(id, "runs jobs that share GPUs", "ended"); !ok) return ok;
  }
  for (const JobId id : state.nominated()) {
    if (auto ok = check(id, "has jobs that are nominated on shares of GPUs", "started"); !ok) return ok;
  }
  return {};
}

// Queues and trust domains keep their ids for ever, even after the configuration has removed them. These are the limits
// of the ids.
constexpr std::size_t kMaxQueuesEver = 200'000;
constexpr std::size_t kMaxTrustDomainsEver = std::numeric_limits<TrustDomainId::rep>::max();

// Refuses a configuration whose new names would use up the ids of queues or trust domains.
Result<void> check_ids(const State& state, const ClusterConfig& config) {
  const std::set<std::string, std::less<>> known_domains(state.trust_domains().begin(), state.trust_domains().end());
  std::set<std::string, std::less<>> known_queues;
  for (const state::QueueState& queue : state.queues()) known_queues.insert(queue.path);
  std::set<std::string, std::less<>> new_domains;
  std::size_t new_queues = 0;
  for (const QueueConfig& one : config.queues) {
    if (!one.trust_domain.empty() && !known_domains.contains(one.trust_domain)) new_domains.insert(one.trust_domain);
    if (!known_queues.contains(one.path)) ++new_queues;
  }
  const auto over = [](const std::string& what, std::size_t known, std::size_t fresh, std::size_t most) {
    return invalid(std::to_string(known) + " " + what + " have been used since the log began and these are " +
                   std::to_string(fresh) + " new ones; " + std::to_string(most) +
                   " is the most there can ever be: use names again instead of new ones");
  };
  if (known_domains.size() + new_domains.size() > kMaxTrustDomainsEver) {
    return over("trust domains", known_domains.size(), new_domains.size(), kMaxTrustDomainsEver);
  }
  if (known_queues.size() + new_queues > kMaxQueuesEver) {
    return over("queues", known_queues.size(), new_queues, kMaxQueuesEver);
  }
  return {};
}

// Refuses renames of queues that could not be told apart from other changes.
Result<void> check_moves(const State& state, const ClusterConfig& config, const std::vector<QueueMove>& moves) {
  for (const QueueMove& move : moves) {
    const std::string where = "queue '" + move.to + "'.moved_from: ";
    if (state.ever_had_queue(move.to))
      return conflict(where + "there was a queue '" + move.to +
                      "' before, and their usage would be mixed; take a name that is new");
    for (const QueueConfig& below : config.queues) {
      if (below.moved_from.empty() || !below.path.starts_with(move.to + "/")) continue;
      if (state.queue_at(move.from + below.path.substr(move.to.size())) == nullptr)
        return invalid("queue '" + below.path + "'.moved_from: '" + move.to +
                       "' above it is renamed, too; one of them at a time");
    }
  }
  return {};
}

// A name of a queue stands in what has finished there, in bills and in roles. So it is never given to another queue.
Result<void> check_names(const State& state, const ClusterConfig& config, const std::vector<QueueMove>& moves) {
  std::set<std::string, std::less<>> live;
  for (const state::QueueState& queue : state.queues()) {
    if (!queue.removed) live.insert(moved_path(queue.path, moves));
  }
  for (const QueueConfig& one : config.queues) {
    if (state.queue_at(one.path) != nullptr) continue;
    const std::string where = "queue '" + one.path + "': ";
    const auto former = state.former_paths().find(one.path);
    const bool is_renamed = former != state.former_paths().end();
    if (is_renamed && moved_path(state.queue(former->second).path, moves) != one.path)
      return conflict(where + "that is the former name of queue '" + state.queue(former->second).path +
                      "', whose finished jobs, logs and bills are kept under it; take a name that is new");
    if (!is_renamed && !one.returns && !live.contains(one.path) && state.ever_had_queue(one.path))
      return conflict(where +
                      "a queue of this name was removed, and with the name come its finished jobs, logs and bills; "
                      "give it 'returns: true' if it is the same team's, else take a name that is new");
  }
  return {};
}

Result<void> check_change(const State& state, const ClusterConfig& config, const std::vector<QueueMove>& moves) {
  std::set<std::string, std::less<>> kept;
  std::set<std::string, std::less<>> parents;
  for (const QueueConfig& one : config.queues) {
    kept.insert(one.path);
    if (const std::size_t slash = one.path.rfind('/'); slash != std::string::npos) {
      parents.insert(one.path.substr(0, slash));
    }
  }
  for (const state::QueueState& queue : state.queues()) {
    if (queue.removed || queue.id == state.root() || kept.contains(moved_path(queue.path, moves))) continue;
    if (queue.running_below > 0 || queue.pending_below > 0) {
      return conflict("queue '" + queue.path + "' still has jobs; let them end or cancel them before removing it");
    }
  }
  std::set<QueueId> used;
  state.jobs().for_each([&](const JobState& job) { used.insert(job.queue); });
  for (const QueueId id : used) {
    const std::string path = moved_path(state.queue(id).path, moves);
    if (parents.contains(path) || !kept.contains(path)) {
      return conflict("queue '" + path + "' has live jobs; it can neither be removed nor get queues below it");
    }
  }
  if (auto ok = check_trust_domains(state, config, moves); !ok) return ok.error();
  std::size_t models = config.gpu_models.size();
  for (const auto& known : state.gpu_models()) {
    if (std::none_of(config.gpu_models.begin(), config.gpu_models.end(),
                     [&](const GpuModelConfig& one) { return one.name == known.name; })) {
      ++models;
    }
  }
  if (models > kMaxGpuModels) {
    return invalid("gpu_models and the models of the nodes are more than " + std::to_string(kMaxGpuModels) +
                   " together");
  }
  return {};
}

std::vector<std::string> levels_named(const JobSpec& spec) {
  std::vector<std::string> levels = {spec.topology.required, spec.topology.preferred};
  for (const TaskGroup& group : spec.groups) {
    levels.push_back(group.topology.required);
    levels.push_back(group.topology.preferred);
  }
  for (const AffinityTerm& term : spec.affinity) levels.push_back(term.level);
  for (const AffinityTerm& term : spec.anti_affinity) levels.push_back(term.level);
  return levels;
}

// Refuses a configuration that removes a topology level which a live job names: the job could never start again.
Result<void> check_levels(const State& state, const ClusterConfig& config) {
  std::optional<Error> stranded;
  state.jobs().for_each([&](const JobState& job) {
    for (const std::string& level : levels_named(job.spec)) {
      const auto& levels = config.topology_levels;
      if (level.empty() || level == "node" || std::find(levels.begin(), levels.end(), level) != levels.end()) continue;
      if (!stranded)
        stranded = conflict("job " + std::to_string(job.id.value()) + " names the topology level '" + level +
                            "'; let such jobs end or cancel them before removing it");
    }
  });
  if (stranded) return *stranded;
  return {};
}

// The error for a node whose backend cannot make MIG instances. There, a task that requests an instance would get the
// whole GPU.
Error cuts_no_gpus(const std::string& node, const std::string& model) {
  return conflict("gpu_models." + model + ".mig: node '" + node +
                  "' has such GPUs, and what runs its tasks makes no MIG " +
                  "instances; leave mig out, or give GPUs that are cut a model name of their own");
}

const MigGeometry* geometry_in(const ClusterConfig& config, const std::string& model) {
  const auto found = std::find_if(config.gpu_models.begin(), config.gpu_models.end(),
                                  [&](const GpuModelConfig& one) { return one.name == model; });
  return found == config.gpu_models.end() ? nullptr : mig_geometry(found->mig);
}

// Returns true if the request names the model, or if it requests a MIG profile that no other model would offer under
// `config`.
bool depends_on(const State& state, const ClusterConfig& config, const TaskRequest& request,
                const state::GpuModelState& model) {
  if (!request.gpu_models.empty()) return may_be_of(request, model);
  if (request.mig_profile.empty() || !accepts(request, model)) return false;
  return std::none_of(state.gpu_models().begin(), state.gpu_models().end(), [&](const state::GpuModelState& other) {
    return accepts(request, other) && geometry_in(config, other.name) == other.mig;
  });
}

// Refuses a configuration that changes the MIG geometry of a model while jobs use, are nominated for, or request its
// GPUs.
Result<void> check_mig(const State& state, const ClusterConfig& config) {
  for (const state::GpuModelState& model : state.gpu_models()) {
    const MigGeometry* geometry = geometry_in(config, model.name);
    if (geometry == model.mig) continue;
    const std::string what = "gpu_models." + model.name + ".mig cannot change: ";
    for (const NodeState& node : state.nodes()) {
      for (std::size_t g = 0; g < node.gpus.size(); ++g) {
        if (node.spec.gpus[g].model != model.name) continue;
        if (geometry != nullptr && !node.spec.cuts_gpus) return cuts_no_gpus(node.spec.name, model.name);
        if (node.gpus[g].free_milli == kMilli && node.gpus[g].nominated_milli == 0) continue;
        return conflict(what + "jobs have GPUs of it on node '" + node.spec.name +
                        "'; let them end or cancel them first");
      }
    }
    std::optional<JobId> asks;
    state.jobs().for_each([&](const JobState& job) {
      for (const TaskGroup& group : job.spec.groups) {
        if (!asks && depends_on(state, config, group.request, model)) asks = job.id;
      }
    });
    if (asks)
      return conflict(what + "job " + std::to_string(asks->value()) + " asks for it; let it end or cancel it first");
  }
  return {};
}

}  // namespace

std::vector<QueueMove> moves_of(const State& state, const ClusterConfig& config) {
  std::vector<QueueMove> moves;
  for (const QueueConfig& one : config.queues) {
    if (one.moved_from.empty() || state.queue_at(one.path) != nullptr || state.queue_at(one.moved_from) == nullptr)
      continue;
    moves.push_back({one.moved_from, one.path});
  }
  return moves;
}

Result<void> check_config_change(const State& state, const ClusterConfig& config,
                                 const std::optional<Timestamp>& log_begins) {
  const std::vector<QueueMove> moves = moves_of(state, config);
  if (auto ok = check_moves(state, config, moves); !ok) return ok.error();
  if (auto ok = check_names(state, config, moves); !ok) return ok.error();
  if (auto ok = check_change(state, config, moves); !ok) return ok.error();
  if (auto ok = check_levels(state, config); !ok) return ok.error();
  if (auto ok = check_ids(state, config); !ok) return ok.error();
  if (auto ok = check_budgets(state, config, log_begins); !ok) return ok.error();
  return check_mig(state, config);
}

namespace {

void revoke_token(Batch& batch, const std::string& name, const std::string& user);

Result<Reply> on(Batch& batch, const ApplyConfig& command) {
  if (command.if_version.value_or(batch.state().config_version()) != batch.state().config_version())
    return Reply{.job = {}, .stale = true, .version = batch.state().config_version()};
  if (auto ok = validate(command.config); !ok) return ok.error();
  if (auto ok = check_config_change(batch.state(), command.config, command.log_begins); !ok) return ok.error();
  if (batch.state().config_version() > 0 && batch.state().file_config() == command.config) {
    return Reply{.job = {}, .unchanged = true, .version = batch.state().config_version()};
  }
  const std::vector<QueueMove> moves = moves_of(batch.state(), command.config);
  const QueueEdits edits = batch.state().edits_after(command.config, moves);
  if (auto ok = check_file_under(edits, command.config, batch.now()); !ok) return ok.error();
  if (auto ok = check_admins_after(batch, command); !ok) return ok.error();
  const std::uint64_t version = batch.state().config_version() + 1;
  batch.emit(ClusterConfigured{command.config, version, command.user, moves, limits_over(command.config, edits)});
  // A queue that is configured again is not administered by the tokens of before.
  std::vector<std::string> of_no_queue;
  for (const auto& [name, token] : batch.state().tokens()) {
    if (batch.state().queue_at(token.queue) == nullptr) of_no_queue.push_back(name);
  }
  for (const std::string& name : of_no_queue) revoke_token(batch, name, command.user);
  return Reply{.job = {}, .version = version};
}

// --- jobs ---

// Updates a service by a new spec. Its dependencies, its earliest start and its hold stay as they were.
Result<Reply> update(Batch& batch, const JobState& service, JobSpec spec, const std::string& key,
                     std::uint64_t body_hash) {
  spec.dependencies = service.spec.dependencies;
  spec.earliest_start = service.spec.earliest_start;
  spec.held = service.spec.held;
  // A priority that an operator has set stays, unless the submission names another priority class than before.
  const std::int32_t priority =
      spec.priority_class == service.spec.priority_class ? service.priority : priority_of(batch.state(), spec).value();
  const bool unchanged = spec == service.spec && priority == service.priority;
  const Reply reply{.job = service.id, .repeated = unchanged, .updated = !unchanged, .unchanged = unchanged};
  if (unchanged && key.empty()) return reply;
  const bool same = same_replicas(service.spec, spec);
  batch.emit(
      ServiceUpdated{service.id, std::move(spec), priority, service.generation + (same ? 0U : 1U), key, body_hash});
  return reply;
}

// Returns what keeps the job from ever starting, in whole sentences. The job is accepted all the same, because limits
// change.
std::vector<std::string> warnings_of(const State& state, const JobSpec& spec) {
  const auto limit = state::impossible_limit(state, state.queue_at(spec.queue)->id, spec);
  if (!limit) return {};
  return {state::text_of(state, *limit) + "; it never starts unless the limit or the job changes"};
}

Result<Reply> on(Batch& batch, const SubmitJob& command) {
  const std::uint64_t body_hash = Hasher().add(encode(command.spec)).digest();
  if (command.key.size() > 256) return invalid("the idempotency key is longer than 256 bytes");
  if (const state::KeyEntry* known =
          command.key.empty() ? nullptr : batch.state().key_entry(command.spec.user, command.key)) {
    if (known->body_hash != body_hash) {
      return conflict("the idempotency key was used for another submission (job " + std::to_string(known->job.value()) +
                      "); use a new key for a new job");
    }
    return Reply{.job = known->job, .repeated = true};
  }
  JobSubmitted event;
  event.spec = command.spec;
  if (event.spec.queue.empty()) {
    auto queue = only_queue(batch.state());
    if (!queue) return queue.error();
    event.spec.queue = std::move(*queue);
  }
  if (event.spec.source.cell.empty()) fill_default_images(batch.state(), event.spec);  // pods have what they have
  settle_stop_signal(event.spec);
  const JobState* service = service_to_update(batch.state(), event.spec);
  if (auto ok = resolve_mig_profiles(batch.state(), event.spec, service); !ok) return ok.error();
  if (auto ok = validate(batch.state(), event.spec, service != nullptr); !ok) return ok.error();
  AdmissionVerdict verdict = judge(batch.state(), event.spec, command.role, command.more_images, command.pod_risks);
  if (auto ok = result_of(verdict); !ok) return ok.error();
  std::vector<std::string> warnings = warnings_of(batch.state(), event.spec);
  std::move(verdict.warnings.begin(), verdict.warnings.end(), std::back_inserter(warnings));
  if (service != nullptr) {
    auto reply = update(batch, *service, event.spec, command.key, body_hash);
    if (reply) reply->warnings = std::move(warnings);
    return reply;
  }
  event.job = batch.state().next_job_id();
  event.priority = priority_of(batch.state(), event.spec).value();
  event.key = command.key;
  event.body_hash = body_hash;
  event.broken_rules = std::move(verdict.broken_rules);
  event.pod_risks = command.pod_risks;
  Reply reply{.job = event.job};
  reply.warnings = std::move(warnings);
  batch.emit(std::move(event));
  return reply;
}

Result<Reply> on(Batch& batch, const CancelJob& command) {
  const JobState* job = batch.state().job(command.job);
  if (job == nullptr) return no_such_job(command.job, batch.state());
  if (job->cancel_requested) return Reply{.job = job->id, .unchanged = true};
  batch.emit(JobCancelRequested{command.job, command.user});
  return Reply{.job = command.job};
}

// The user of an event that follows from the one before it, such as those of an array's elements.
constexpr const char* kFollows = "berth";

// Returns the job and its current replicas or elements.
std::vector<JobId> with_parts(const State& state, const JobState& job) {
  std::vector<JobId> all{job.id};
  if (const auto parts = state.children().find(job.id); parts != state.children().end()) {
    all.insert(all.end(), parts->second.begin(), parts->second.end());
  }
  return all;
}

// Returns true if the job is a service and one of its replicas runs.
bool serves(const State& state, const JobState& job) {
  if (job.spec.kind != JobKind::kService) return false;
  const auto& replicas = state.children().at(job.id);
  return std::any_of(replicas.begin(), replicas.end(), [&](JobId id) { return state.job(id)->attempt.has_value(); });
}

Result<Reply> on(Batch& batch, const HoldJob& command) {
  const JobState* job = batch.state().job(command.job);
  if (job == nullptr) return no_such_job(command.job, batch.state());
  if (job->held == command.held) return Reply{.job = job->id, .unchanged = true};
  if (command.held && (job->attempt || serves(batch.state(), *job))) {
    return conflict("job " + std::to_string(job->id.value()) + " is running; only a pending job can be held");
  }
  bool first = true;
  for (const JobId id : with_parts(batch.state(), *job)) {
    const JobState& part = *batch.state().job(id);
    if (part.attempt || part.held == command.held) continue;  // running elements of an array run on
    batch.emit(JobHoldChanged{id, command.held, first ? command.user : kFollows});
    first = false;
  }
  return Reply{.job = command.job};
}

Result<Reply> on(Batch& batch, const PrioritizeJob& command) {
  const JobState* job = batch.state().job(command.job);
  if (job == nullptr) return no_such_job(command.job, batch.state());
  if (command.priority < kLeastPriority || command.priority > kMostPriority) {
    return invalid("priority must be between " + std::to_string(kLeastPriority) + " and " +
                   std::to_string(kMostPriority));
  }
  bool unchanged = true;
  for (const JobId id : with_parts(batch.state(), *job)) {
    const std::int32_t before = batch.state().job(id)->priority;
    if (before == command.priority) continue;
    batch.emit(JobPriorityChanged{id, command.priority, unchanged ? command.user : kFollows, before});
    unchanged = false;
  }
  return Reply{.job = command.job, .unchanged = unchanged};
}

Result<Reply> on(Batch& batch, const SignalJob& command) {
  const JobState* job = batch.state().job(command.job);
  if (job == nullptr) return no_such_job(command.job, batch.state());
  const auto runs = [](const state::TaskState& task) { return task.phase != TaskPhase::kExited; };
  if (!job->attempt || std::none_of(job->attempt->tasks.begin(), job->attempt->tasks.end(), runs))
    return conflict("nothing of job " + std::to_string(command.job.value()) + " runs now");
  batch.emit(JobSignalled{command.job, command.signal, command.user});
  return Reply{.job = command.job};
}

Result<Reply> on(Batch& batch, const MoveJob& command, const FindMoveTarget& move_target = {}) {
  const JobState* job = batch.state().job(command.job);
  if (job == nullptr) return no_such_job(command.job, batch.state());
  std::vector<NodeId> off;
  for (const std::string& name : command.off) {
    const NodeState* node = batch.state().node_named(name);
    if (node == nullptr) return no_such_node(name);
    off.push_back(node->id);
  }
  return move_job(batch, *job, std::move(off), command, move_target);
}

// --- nodes ---

// Returns the reported spec, changed so that the bound tasks stay valid. Each GPU keeps its index; a GPU that is
// missing in the report stays in the list as unhealthy. CPUs and memory are at least what is bound.
NodeSpec with_places_kept(const NodeState& node, const NodeSpec& spec) {
  NodeSpec merged = spec;
  merged.gpus.clear();
  for (const Gpu& old : node.spec.gpus) {
    const auto seen =
        std::find_if(spec.gpus.begin(), spec.gpus.end(), [&](const Gpu& gpu) { return gpu.uuid == old.uuid; });
    merged.gpus.push_back(seen == spec.gpus.end() ? old : *seen);
    if (seen == spec.gpus.end()) merged.gpus.back().healthy = false;
  }
  for (const Gpu& gpu : spec.gpus) {
    const bool known =
        std::any_of(node.spec.gpus.begin(), node.spec.gpus.end(), [&](const Gpu& old) { return old.uuid == gpu.uuid; });
    if (!known && merged.gpus.size() < kMaxGpusPerNode) merged.gpus.push_back(gpu);
  }
  merged.cpu_milli = std::max(spec.cpu_milli, node.spec.cpu_milli - node.free_cpu_milli);
  merged.memory_mib = std::max(spec.memory_mib, node.spec.memory_mib - node.free_memory_mib);
  return merged;
}

// A fence of a GPU stays over restarts and boots of its node. The check before the next start would find what is left
// on it, but a fence may also stand for what a check cannot see.
void keep_fences(const NodeState& node, NodeSpec& spec) {
  for (Gpu& gpu : spec.gpus) {
    for (const Gpu& old : node.spec.gpus) {
      if (!old.fenced || old.uuid != gpu.uuid) continue;
      gpu.failed = !gpu.healthy;
      gpu.healthy = false;
      gpu.fenced = true;
      gpu.fault = old.fault;
    }
  }
}

bool anything_bound(const NodeState& node) {
  const bool gpu_bound = std::any_of(node.gpus.begin(), node.gpus.end(), [](const state::GpuSlot& gpu) {
    return gpu.free_milli != kMilli || gpu.nominated_milli != 0;
  });
  return gpu_bound || node.free_cpu_milli != node.spec.cpu_milli || node.free_memory_mib != node.spec.memory_mib;
}

Result<void> check_images_of(const std::string& node, bool containers, std::span<const std::string> images) {
  if (!containers && !images.empty()) return invalid("node '" + node + "' names images, but runs no containers");
  auto ok = check_images(images);
  return ok ? ok : invalid("node '" + node + "': " + ok.error().message);
}

// Returns an error unless the amounts are from 0 to what a node can have.
Result<void> check_foreign_use(const std::string& node, const ForeignReport& use) {
  const auto within = [](std::int64_t amount) { return amount >= 0 && amount <= kMaxCountable; };
  if (!within(use.cpu_milli) || !within(use.memory_mib))
    return invalid("node '" + node + "': what others use of it is out of range");
  if (!is_well_formed(use.countables))
    return invalid("node '" + node + "': the countables that others use: " + std::string(kCountablesRule));
  return {};
}

ForeignUse foreign_use(const NodeSpec& spec, const ForeignReport& report) {
  ForeignUse use{report.cpu_milli, report.memory_mib, {}, report.countables};
  for (std::uint8_t g = 0; g < spec.gpus.size(); ++g) {
    if (report.gpus.contains(spec.gpus[g].uuid)) use.gpus.push_back(g);
  }
  return use;
}

Result<Reply> on(Batch& batch, const RegisterNode& command) {
  if (auto ok = check_node(batch.state(), command.spec); !ok) return ok.error();
  if (auto ok = check_foreign_use(command.spec.name, command.foreign); !ok) return ok.error();
  const NodeState* known = same_machine(batch.state(), command.spec);
  if (auto ok = check_identity(batch.state(), known, command.spec); !ok) return ok.error();
  NodeRegistered event;
  event.spec = command.spec;
  bool booted = false;
  if (known != nullptr) {
    event.node = known->id;
    event.lease = known->lease + 1;
    if (known->spec.name != command.spec.name) event.renamed_from = known->spec.name;
    booted = has_booted(*known, command.spec);
    if (anything_bound(*known)) event.spec = with_places_kept(*known, command.spec);
    keep_fences(*known, event.spec);
  } else {
    event.node = NodeId(static_cast<std::uint32_t>(batch.state().nodes().size()));
    event.lease = 1;
  }
  event.foreign = foreign_use(event.spec, command.foreign);
  const NodeId id = event.node;
  batch.emit(std::move(event));
  welcome_back(batch, id, booted);
  return Reply{};
}

Result<Reply> on(Batch& batch, const ReportNodeStatus& command) {
  const NodeState* node = batch.state().node_named(command.node);
  if (node == nullptr) return no_such_node(command.node);
  const bool removes = command.removed && !node->removed && !batch.state().removals().contains(node->id);
  if (node->status == command.status && !removes) return Reply{.job = {}, .unchanged = true};
  if (removes) {
    if (command.status != NodeStatus::kLost) return invalid("a node that is removed is lost");
    declare_lost(batch, *node, command.why, true);
    return Reply{};
  }
  if (node->status == NodeStatus::kLost) {
    return conflict("node '" + command.node + "' was given up as lost; it comes back by registering again");
  }
  if (planted(Bug::kUnknownFreed)) {
    declare_lost(batch, *node, command.why);
  } else if (command.status == NodeStatus::kLost) {
    lose(batch, *node, command.why);
  } else {
    batch.emit(NodeStatusChanged{node->id, command.status, command.why, false});
    if (command.status == NodeStatus::kReady) welcome_back(batch, node->id, false);
  }
  return Reply{};
}

Result<Reply> on(Batch& batch, const FenceNode& command) {
  const NodeState* node = batch.state().node_named(command.node);
  if (node == nullptr) return no_such_node(command.node);
  if (node->status == NodeStatus::kLost) return Reply{.job = {}, .unchanged = true};
  if (node->status == NodeStatus::kReady) {
    return conflict("node '" + command.node + "' is in contact; drain it instead of fencing it");
  }
  declare_lost(batch, *node, "fenced by " + command.user);
  return Reply{};
}

Result<Reply> on(Batch& batch, const CordonNode& command) { return cordon_node(batch, command); }

Result<Reply> on(Batch& batch, const PlanMaintenance& command) { return plan_maintenance(batch, command); }

Result<Reply> on(Batch& batch, const CancelMaintenance& command) { return cancel_maintenance(batch, command); }

Result<Reply> on(Batch& batch, const ConfirmClock& command) {
  if (command.offset_ms == 0) return invalid("the wall clock does not differ from the server's clock");
  batch.emit(ClockConfirmed{command.offset_ms, command.user});
  return Reply{};
}

// More numbers than were given since the backup are left out even where the clock is wrong.
constexpr std::uint64_t kFewestLeftOut = 5'000'000;
constexpr std::uint64_t kMostLeastNumber = std::uint64_t{1} << 40U;

Result<Reply> on(Batch& batch, const NoteRestore& command) {
  const std::uint64_t after = batch.state().next_job_id().value() + kFewestLeftOut;
  batch.emit(LogRestored{JobId(std::max(after, std::min(command.least_number, kMostLeastNumber)))});
  return Reply{};
}

constexpr std::size_t kMostTokens = 10'000;

// The roles that were granted to a token go with it, so that the next token of its name does not have them.
void revoke_token(Batch& batch, const std::string& name, const std::string& user) {
  const std::string subject = "token:" + name;
  std::vector<RoleBinding> granted;
  for (const auto& [binding, origin] : batch.state().granted()) {
    if (binding.subject == subject) granted.push_back(binding);
  }
  batch.emit(TokenRevoked{name, user});
  for (const RoleBinding& binding : granted) batch.emit(RoleBound{binding, false, user});
}

Result<Reply> on(Batch& batch, const CreateToken& command) {
  const TokenCreated& token = command.token;
  if (!well_formed_name(token.name))
    return invalid("token name '" + token.name.substr(0, 80) + "': " + std::string(kNameRule));
  if (!well_formed_name(token.as_user))
    return invalid("user '" + token.as_user.substr(0, 80) + "': " + std::string(kNameRule));
  if (batch.state().queue_at(token.queue) == nullptr)
    return not_found("no such queue '" + token.queue.substr(0, 200) + "'");
  if (const std::string flaw = flaw_of_place(token.role, token.queue); !flaw.empty()) return invalid(flaw);
  // The name admin is that of the token in the data directory, and of its jobs.
  if ((token.name == "admin" || token.as_user == "admin") && (token.role != Role::kAdmin || !token.queue.empty()))
    return invalid("only a token with the role admin at the root may have the name or user 'admin'; choose another");
  if (token.expires <= batch.now()) return invalid("the token would expire at once; give a time that is ahead");
  std::vector<std::string> expired;
  for (const auto& [name, known] : batch.state().tokens()) {
    if (known.expires <= batch.now()) expired.push_back(name);
  }
  const Origin by = batch.take_origin();
  for (const std::string& name : expired) revoke_token(batch, name, token.user);
  if (batch.state().tokens().contains(token.name))
    return conflict("there is a token '" + token.name + "' already; revoke it first (berth token revoke " + token.name +
                    "), or choose another name");
  if (batch.state().tokens().size() >= kMostTokens)
    return conflict("there are " + std::to_string(kMostTokens) + " tokens already; revoke some");
  batch.asked_by(by);
  batch.emit(token);
  return Reply{};
}

Result<Reply> on(Batch& batch, const RevokeToken& command) {
  if (!batch.state().tokens().contains(command.name))
    return not_found("no such token '" + command.name.substr(0, 80) + "'");
  if (auto ok = check_admins_after(batch, command); !ok) return ok.error();
  revoke_token(batch, command.name, command.user);
  return Reply{};
}

Result<Reply> on(Batch& batch, const ApplyPrices& command) { return apply_prices(batch, command); }
Result<Reply> on(Batch& batch, const CloseMonth& command) { return close_month(batch, command); }
Result<Reply> on(Batch& batch, const CorrectBill& command) { return correct_bill(batch, command); }
Result<Reply> on(Batch& batch, const ReportQuantities& command) { return report_quantities(batch, command); }
Result<Reply> on(Batch& batch, const MarkBudget& command) { return mark_budget(batch, command); }
Result<Reply> on(Batch& batch, const SetQueue& command) { return set_queue(batch, command); }
Result<Reply> on(Batch& batch, const UndoQueueChange& command) { return undo_queue_change(batch, command); }
Result<Reply> on(Batch& batch, const BindRole& command) { return bind_role(batch, command); }
Result<Reply> on(Batch& batch, const SetRules& command) { return set_rules(batch, command); }
Result<Reply> on(Batch& batch, const BlockSubject& command) { return block_subject(batch, command); }

Result<Reply> on(Batch& batch, const NoteDenials& command) {
  for (const AccessDenied& denied : command.denials) batch.emit(denied);
  return Reply{};
}
Result<Reply> on(Batch& batch, const NoteLogRead& command) {
  batch.emit(command.read);
  return Reply{};
}
Result<Reply> on(Batch& batch, const NoteShell& command) {
  std::visit([&](const auto& event) { batch.emit(event); }, command.shell);
  return Reply{};
}
Result<Reply> on(Batch& batch, const NoteSignIns& command) {
  for (const SignedIn& signed_in : command.sign_ins) batch.emit(signed_in);
  return Reply{};
}

Result<Reply> on(Batch& batch, const ReportGpuHealth& command) {
  const NodeState* node = batch.state().node_named(command.node);
  if (node == nullptr) return no_such_node(command.node);
  std::size_t index = command.gpu;
  if (!command.uuid.empty()) {
    const auto& gpus = node->spec.gpus;
    const auto of_uuid = [&](const Gpu& gpu) { return gpu.uuid == command.uuid; };
    index = static_cast<std::size_t>(std::find_if(gpus.begin(), gpus.end(), of_uuid) - gpus.begin());
  }
  if (index >= node->gpus.size())
    return not_found("node '" + command.node + "' has no GPU " +
                     (command.uuid.empty() ? std::to_string(index) : command.uuid));
  const Gpu& gpu = node->spec.gpus[index];
  GpuHealthChanged event{node->id, static_cast<std::uint8_t>(index), false, command.why, true};
  if (gpu.fenced) {  // a report does not lift a fence
    event.why = gpu.fault;
    event.failed = !command.fence && !command.healthy;
    if (command.fence || event.failed == gpu.failed) return Reply{.job = {}, .unchanged = true};
  } else if (command.fence && !command.healthy) {
    event.failed = !gpu.healthy;
  } else {
    if (gpu.healthy == command.healthy) return Reply{.job = {}, .unchanged = true};
    event.healthy = command.healthy;
    event.fenced = false;
  }
  batch.emit(std::move(event));
  return Reply{};
}

Result<Reply> on(Batch& batch, const LiftGpuFence& command) {
  const NodeState* node = batch.state().node_named(command.node);
  if (node == nullptr) return no_such_node(command.node);
  if (command.gpu < 0 || command.gpu >= static_cast<std::int64_t>(node->gpus.size()))
    return not_found("node '" + command.node + "' has no GPU " + std::to_string(command.gpu) + ", but " +
                     std::to_string(node->gpus.size()) + ", counted from 0");
  const auto index = static_cast<std::uint8_t>(command.gpu);
  const Gpu& gpu = node->spec.gpus[index];
  if (!gpu.fenced && !gpu.healthy)
    return conflict("GPU " + std::to_string(index) + " of node '" + command.node +
                    "' is not fenced: its node reports it as failed, and takes that back itself");
  if (!gpu.fenced) return Reply{.job = {}, .unchanged = true};
  batch.emit(GpuHealthChanged{node->id, index, !gpu.failed, "the fence is lifted", false, command.user});
  return Reply{};
}

Result<Reply> on(Batch& batch, const ReportForeignUse& command) {
  const NodeState* node = batch.state().node_named(command.node);
  if (node == nullptr) return no_such_node(command.node);
  if (auto ok = check_foreign_use(command.node, command.use); !ok) return ok.error();
  ForeignUse use = foreign_use(node->spec, command.use);
  if (node->foreign == use) return Reply{.job = {}, .unchanged = true};
  batch.emit(ForeignUseChanged{node->id, std::move(use)});
  return Reply{};
}

Result<Reply> on(Batch& batch, const ReportNodeImages& command) {
  const NodeState* node = batch.state().node_named(command.node);
  if (node == nullptr) return no_such_node(command.node);
  if (auto ok = check_images_of(node->spec.name, node->spec.containers, command.images); !ok) return ok.error();
  NodeImagesChanged event;
  event.node = node->id;
  const auto& before = node->spec.images;
  const auto& now = command.images;
  std::set_difference(now.begin(), now.end(), before.begin(), before.end(), std::back_inserter(event.pulled));
  std::set_difference(before.begin(), before.end(), now.begin(), now.end(), std::back_inserter(event.dropped));
  if (event.pulled.empty() && event.dropped.empty()) return Reply{.job = {}, .unchanged = true};
  batch.emit(std::move(event));
  return Reply{};
}

// --- reports about tasks ---

// Returns the task of a report, or null if the task has exited or the report is of another attempt.
const state::TaskState* live_task(const State& state, JobId id, std::uint32_t attempt, std::uint32_t task) {
  const JobState* job = state.job(id);
  if (job == nullptr || !job->attempt || (job->attempt->number != attempt && !planted(Bug::kLateReport)) ||
      task >= job->attempt->tasks.size())
    return nullptr;
  const state::TaskState& found = job->attempt->tasks[task];
  return found.phase == TaskPhase::kExited ? nullptr : &found;
}

Result<Reply> on(Batch& batch, const ReportTaskStarted& command) {
  const state::TaskState* task = live_task(batch.state(), command.job, command.attempt, command.task);
  if (task == nullptr || task->phase != TaskPhase::kBound || task->incarnation != command.incarnation) {
    return Reply{.job = {}, .unchanged = true};
  }
  batch.emit(TaskStarted{command.job, command.attempt, command.task, command.incarnation});
  blame_node_of_last_failure(batch, command.job, false);
  return Reply{};
}

Result<Reply> on(Batch& batch, const ReportTaskExited& command) {
  const TaskExited& exit = command.exit;
  const state::TaskState* task = live_task(batch.state(), exit.job, exit.attempt, exit.task);
  const bool of_this_life = task != nullptr && (task->incarnation == exit.incarnation || planted(Bug::kForgedExit));
  if (!of_this_life) return Reply{.job = {}, .unchanged = true};
  const bool lost = exit.reason == ExitReason::kNodeLost || exit.reason == ExitReason::kSupervisorLost;
  if (lost) scale_down_after_loss(batch, *batch.state().job(exit.job), exit.task);
  TaskExited event = exit;
  event.node_doubtful = may_be_its_nodes_fault(exit);
  batch.emit(std::move(event));
  return Reply{};
}

Result<Reply> on(Batch& batch, const ReportCheckpoint& command) {
  const JobState* job = batch.state().job(command.job);
  if (job == nullptr || !job->attempt || job->attempt->number != command.attempt)
    return Reply{.job = {}, .unchanged = true};
  const state::AttemptState& attempt = *job->attempt;
  if (command.step < attempt.checkpoint_step) return invalid("a checkpoint's step does not go back");
  // A repeated report changes nothing, unless it now acknowledges a request to stop.
  const bool awaited = attempt.stop && !attempt.stop->acknowledged;
  if (attempt.checkpoint_at && command.step == attempt.checkpoint_step && !awaited) {
    return Reply{.job = {}, .unchanged = true};
  }
  const bool goes_on = job->past.empty() || command.step > job->past.back().checkpoint_step;
  batch.emit(CheckpointReported{command.job, command.attempt, command.step});
  if (goes_on) blame_node_of_last_failure(batch, command.job, true);
  return Reply{};
}

}  // namespace

Result<void> check_node(const state::State& state, const NodeSpec& spec) {
  if (spec.name.empty() || spec.name.size() > 253) return invalid("a node's name must have 1 to 253 characters");
  if (spec.gpus.size() > kMaxGpusPerNode) {
    return invalid("node '" + spec.name + "' has more than " + std::to_string(kMaxGpusPerNode) + " GPUs");
  }
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  if (spec.cpu_milli < 0 || spec.cpu_milli > kMost || spec.memory_mib < 0 || spec.memory_mib > kMost) {
    return invalid("node '" + spec.name + "' must have 0 to 1099511627 CPUs and 0 to 1 EiB of memory");
  }
  if (auto ok = check_images_of(spec.name, spec.containers, spec.images); !ok) return ok;
  if (!is_well_formed(spec.countables))
    return invalid("node '" + spec.name + "': its countables: " + std::string(kCountablesRule));
  std::size_t models = state.gpu_models().size();
  std::vector<std::string> fresh;
  for (const Gpu& gpu : spec.gpus) {
    const auto known = state.gpu_model_named(gpu.model);
    if (known && state.gpu_models()[known->index()].mig != nullptr && !spec.cuts_gpus)
      return cuts_no_gpus(spec.name, gpu.model);
    if (known || std::find(fresh.begin(), fresh.end(), gpu.model) != fresh.end()) continue;
    fresh.push_back(gpu.model);
    ++models;
  }
  if (models > kMaxGpuModels) {
    return invalid("node '" + spec.name + "' brings GPU model number " + std::to_string(models) + "; the most is " +
                   std::to_string(kMaxGpuModels));
  }
  return {};
}

Result<Reply> handle(Batch& batch, const Command& command, const FindMoveTarget& move_target) {
  if (const auto* move = std::get_if<MoveJob>(&command)) return on(batch, *move, move_target);
  return std::visit([&](const auto& one) { return on(batch, one); }, command);
}

}  // namespace berth::control
