#include "control/validate.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "control/mounts.h"
#include "model/job_check.h"
#include "model/nearest.h"
#include "model/queue_volumes.h"

namespace berth::control {

namespace {

static_assert(kFirstMasterPort == state::kFirstMasterPort && kLastMasterPort == state::kLastMasterPort);

Result<void> check_models(const state::State& state, const std::string& where, const TaskRequest& request) {
  for (const std::string& model : request.gpu_models) {
    if (const auto known = state.gpu_model_named(model)) {
      if (request.mig_profile.empty() && state.gpu_models()[known->index()].mig != nullptr) {
        return invalid(where + "gpu_models: GPUs of '" + model +
                       "' are cut into MIG instances; ask for a mig_profile, or for another model");
      }
      continue;
    }
    std::string all;
    std::vector<std::string_view> names;
    for (const auto& one : state.gpu_models()) {
      all += (all.empty() ? "" : ", ") + one.name;
      names.push_back(one.name);
    }
    const auto meant = nearest(model, names);
    return invalid(where + "gpu_models: no such GPU model '" + model.substr(0, 80) + "'; " +
                   (meant ? "did you mean '" + std::string(*meant) + "'? " : "") +
                   "known: " + (all.empty() ? "none yet" : all));
  }
  return {};
}

// The image need not be on any node, because it can be pulled.
Result<void> check_image(const state::State& state, const std::string& where, const std::string& image) {
  if (image.empty()) return {};
  if (runs_containers(state)) return {};
  return Error{ErrorCode::kUnsupported,
               where + "image: no node of this cluster runs containers; leave it out and give a command"};
}

Result<void> check_group(const state::State& state, const std::string& where, const TaskGroup& group) {
  if (!group.pool.empty()) {
    const auto& pools = state.pools();
    if (std::none_of(pools.begin(), pools.end(), [&](const auto& pool) { return pool.name == group.pool; })) {
      return invalid(where + "pool: no such pool '" + group.pool.substr(0, 80) + "'");
    }
  }
  return check_models(state, where, group.request);
}

Result<void> check_dependencies(const state::State& state, const JobSpec& spec) {
  for (const Dependency& dependency : spec.dependencies) {
    if (state.job(dependency.job) == nullptr && state.finished(dependency.job) == nullptr) {
      return no_such_dependency(dependency.job);
    }
  }
  return {};
}

// Refuses the job if its user has the most jobs, running or pending, that a queue on the path to the root allows.
Result<void> check_submitted(const state::State& state, const state::QueueState& leaf, const std::string& user) {
  for (QueueId id = leaf.id; id.valid(); id = state.queue(id).parent) {
    const state::QueueState& queue = state.queue(id);
    if (!queue.limits_users() || queue.used_by(user).submitted < queue.max_submitted_per_user) continue;
    const std::int64_t submitted = queue.used_by(user).submitted;
    return conflict("user '" + user + "' has " + std::to_string(submitted) + (submitted == 1 ? " job" : " jobs") +
                    " in queue '" + queue.path + "', where max_submitted_per_user is " +
                    std::to_string(queue.max_submitted_per_user) + "; let one end or cancel it");
  }
  return {};
}

Result<void> check_level(const state::State& state, const std::string& where, const std::string& level) {
  const auto& levels = state.config().topology_levels;
  if (level == "node" || std::find(levels.begin(), levels.end(), level) != levels.end()) return {};
  std::string known;
  for (const std::string& one : levels) known += one + ", ";
  const std::string wrong = level.empty() ? " is missing" : ": there is no level '" + level.substr(0, 80) + "'";
  return invalid(where + wrong + "; known are " + known + "node");
}

// Refuses unknown levels, and a preferred level that is wider than the required one: it would have no effect.
Result<void> check_topology(const state::State& state, const std::string& where, const TopologyConstraint& topology) {
  for (const std::string& level : {topology.required, topology.preferred}) {
    if (level.empty()) continue;
    if (auto ok = check_level(state, where, level); !ok) return ok;
  }
  const auto depth = [&](const std::string& level) {
    return state.topology().level_named(level).value_or(state.topology().levels().size());
  };
  if (!topology.required.empty() && !topology.preferred.empty() && depth(topology.preferred) < depth(topology.required))
    return invalid(where + ": preferred '" + topology.preferred + "' is wider than required '" + topology.required +
                   "'; prefer a narrower level or leave it out");
  return {};
}

Result<void> check_group_topology(const state::State& state, const JobSpec& spec) {
  const auto depth = [&](const std::string& level) {
    return state.topology().level_named(level).value_or(state.topology().levels().size());
  };
  for (std::size_t i = 0; i < spec.groups.size(); ++i) {
    const std::string where = "groups[" + std::to_string(i) + "].topology";
    const TopologyConstraint& own = spec.groups[i].topology;
    if (auto ok = check_topology(state, where, own); !ok) return ok;
    for (const std::string& level : {own.required, own.preferred}) {
      if (level.empty() || spec.topology.required.empty() || depth(level) >= depth(spec.topology.required)) continue;
      return invalid(where + ": '" + level + "' is wider than '" + spec.topology.required +
                     "', which the job requires; leave it out");
    }
  }
  return {};
}

Result<void> check_terms(const state::State& state, const std::string& what, const std::vector<AffinityTerm>& terms) {
  for (std::size_t i = 0; i < terms.size(); ++i) {
    if (auto ok = check_level(state, what + "[" + std::to_string(i) + "].level", terms[i].level); !ok) return ok;
  }
  return {};
}

Result<void> check_affinity(const state::State& state, const JobSpec& spec) {
  if (auto ok = check_terms(state, "affinity", spec.affinity); !ok) return ok;
  return check_terms(state, "anti_affinity", spec.anti_affinity);
}

}  // namespace

Result<std::int32_t> priority_of(const state::State& state, const JobSpec& spec) {
  std::int32_t fallback = 0;
  std::string known;
  for (const PriorityClassConfig& one : state.config().priority_classes) {
    if (one.name == spec.priority_class) return one.value;
    if (one.global_default) fallback = one.value;
    known += (known.empty() ? "" : ", ") + one.name;
  }
  if (spec.priority_class.empty()) return fallback;
  return invalid("priority: no such class '" + spec.priority_class.substr(0, 80) + "'; known: " + known);
}

Result<std::string> only_queue(const state::State& state) {
  constexpr std::size_t kMostNamed = 5;
  std::vector<std::string_view> leaves;
  for (const state::QueueState& queue : state.queues()) {
    if (!queue.removed && queue.is_leaf() && queue.id != state.root()) leaves.push_back(queue.path);
  }
  if (leaves.size() == 1) return std::string(leaves.front());
  if (leaves.empty()) return invalid("queue is missing, and the configuration has none; 'berth apply' gives it one");
  std::sort(leaves.begin(), leaves.end());
  std::string names;
  for (std::size_t i = 0; i < std::min(leaves.size(), kMostNamed); ++i)
    names += (i == 0 ? "" : ", ") + std::string(leaves[i]);
  if (leaves.size() > kMostNamed) {
    names += " and " + std::to_string(leaves.size() - kMostNamed) + " more ('berth queues' lists them)";
  }
  return invalid("queue is missing; give one of " + names);
}

namespace {

// Returns the names of all MIG profiles that the GPU models here offer: "1g.10gb, 2g.20gb".
std::string known_profiles(const state::State& state) {
  std::set<std::string_view> names;
  for (const auto& model : state.gpu_models()) {
    if (model.mig == nullptr) continue;
    for (const MigProfile& profile : model.mig->profiles) names.insert(profile.name);
  }
  std::string text;
  for (const std::string_view name : names) text.append(text.empty() ? "" : ", ").append(name);
  return text;
}

// Returns the GPU models that the request may use and that offer its MIG profile. They are grouped by the share of a
// GPU that the profile is, in milli-GPU.
std::map<std::int32_t, std::vector<std::string>> shares_of_profile(const state::State& state,
                                                                   const TaskRequest& request) {
  std::map<std::int32_t, std::vector<std::string>> shares;
  for (const auto& model : state.gpu_models()) {
    if (!state::may_be_of(request, model)) continue;
    const MigProfile* profile = model.mig == nullptr ? nullptr : model.mig->profile_named(request.mig_profile);
    if (profile != nullptr) shares[model.mig->milli_of(*profile)].push_back(model.name);
  }
  return shares;
}

// Settles the MIG profile of one request. `had` is the request of the service that is being updated, or null.
Result<void> settle_mig_profile(const state::State& state, const std::string& where, TaskRequest& request,
                                const TaskRequest* had) {
  const std::string asked = where + "mig_profile '" + request.mig_profile.substr(0, 80) + "'";
  const std::string known = known_profiles(state);
  if (known.empty())
    return invalid(asked + ": no GPUs of this cluster are cut into MIG instances; ask for a share, gpus: 0.125");
  const auto shares = shares_of_profile(state, request);
  if (shares.empty()) {
    return invalid(asked + ": no GPU model " +
                   (request.gpu_models.empty() ? "of this cluster" : "that gpu_models names") +
                   " has this profile; the profiles here are " + known);
  }
  const bool said = request.gpus == 1 && shares.contains(request.gpu_milli);  // the form that berth writes
  if (request.gpus != 0 && !said) {
    return invalid(asked +
                   ": an instance is a part of one GPU; leave gpus out, and ask for more tasks to get more of them");
  }
  const bool as_before = had != nullptr && had->mig_profile == request.mig_profile && shares.contains(had->gpu_milli);
  if (shares.size() > 1 && !said && !as_before) {
    std::string names;
    for (const auto& [milli, models] : shares) {
      for (const std::string& name : models) names += (names.empty() ? "" : ", ") + name;
    }
    return invalid(asked + " is not the same part of each GPU model here (" + names + "); name one in gpu_models");
  }
  request.gpus = 1;
  if (!said) request.gpu_milli = as_before ? had->gpu_milli : shares.begin()->first;
  return {};
}

}  // namespace

Result<void> resolve_mig_profiles(const state::State& state, JobSpec& spec, const state::JobState* updated) {
  for (std::size_t i = 0; i < spec.groups.size(); ++i) {
    const std::string where = path_of_group(spec, i);
    TaskRequest& request = spec.groups[i].request;
    if (request.mig_profile.empty()) continue;
    const bool known = updated != nullptr && i < updated->spec.groups.size();
    const TaskRequest* had = known ? &updated->spec.groups[i].request : nullptr;
    if (auto ok = settle_mig_profile(state, where, request, had); !ok) return ok;
    if (spec.exclusive) {
      return invalid(where +
                     "mig_profile: an instance is a part of a GPU, but an exclusive job gets whole nodes; leave "
                     "exclusive out, or ask for whole GPUs");
    }
  }
  return {};
}

void fill_default_images(const state::State& state, JobSpec& spec) {
  const auto has_none = [](const TaskGroup& group) { return group.image.empty(); };
  if (std::none_of(spec.groups.begin(), spec.groups.end(), has_none) || !runs_containers(state)) return;
  const std::string image = default_image_of(state.config(), spec.queue);
  for (TaskGroup& group : spec.groups) {
    if (group.image.empty()) group.image = image;
  }
}

void settle_stop_signal(JobSpec& spec) {
  constexpr std::int32_t kHangUp = 1;  // SIGHUP
  if (spec.kind == JobKind::kInteractive) spec.checkpoint.signal = kHangUp;
}

namespace {

// Collects what is wrong with a submission, one line for each.
class Mistakes {
 public:
  void add(const Result<void>& result) {
    if (!result) add(result.error());
  }
  void add(const Error& error) {
    std::string line = error.message;
    std::replace(line.begin(), line.end(), '\n', ' ');  // a quoted name may hold one
    if (!first_)
      first_ = Error{error.code, std::move(line)};
    else
      first_->message += "\n" + line;
  }
  bool none() const { return !first_; }
  // The code is that of the first.
  Result<void> result() const {
    if (first_) return *first_;
    return {};
  }

 private:
  std::optional<Error> first_;
};

// "; did you mean 'H100'?" for a name that is nearly one of `known`, else `otherwise`.
std::string hint_or(const std::string& otherwise, std::string_view name, const std::vector<std::string_view>& known) {
  const auto meant = nearest(name, known);
  return meant ? "; did you mean '" + std::string(*meant) + "'?" : otherwise;
}

Result<void> check_queue(const state::State& state, const JobSpec& spec) {
  const state::QueueState* queue = state.queue_at(spec.queue);
  if (queue == nullptr || spec.queue.empty()) {
    // A hint names queues of the same branch only: those of other branches may be other tenants'.
    const std::string_view branch = std::string_view(spec.queue).substr(0, spec.queue.find('/'));
    const bool known = !branch.empty() && state.queue_at(branch) != nullptr;
    std::vector<std::string_view> leaves;
    for (const state::QueueState& one : state.queues()) {
      if (one.removed || !one.is_leaf() || one.id == state.root()) continue;
      if (!known || std::string_view(one.path).substr(0, one.path.find('/')) == branch) leaves.push_back(one.path);
    }
    return invalid("queue: no such queue '" + spec.queue.substr(0, 200) + "'" +
                   hint_or("; 'berth queues' lists them", spec.queue, leaves));
  }
  if (queue->is_leaf()) return {};
  return invalid("queue '" + spec.queue + "' has queues below it; submit to one of those, such as '" +
                 state.queue(queue->children.front()).path + "'");
}

// The terminal of an interactive job is a shell.
Result<void> check_shell(const state::State& state, const std::string& queue) {
  const auto without = queue_without_shell(state.config(), queue);
  if (!without) return {};
  return invalid("kind: " + (*without == "/" ? std::string("this cluster") : "queue '" + *without + "'") +
                 " opens no shells in its jobs (shell: false), so no interactive job runs in it");
}

void check_groups(const state::State& state, const JobSpec& spec, Mistakes& mistakes) {
  if (spec.groups.size() > kMaxTaskGroups) return;
  for (std::size_t i = 0; i < spec.groups.size(); ++i) {
    const std::string where = path_of_group(spec, i);
    if (spec.source.cell.empty()) mistakes.add(check_image(state, where, spec.groups[i].image));  // else pods exist
    mistakes.add(check_group(state, where, spec.groups[i]));
  }
}

}  // namespace

Error no_such_dependency(JobId job) {
  return invalid("dependencies: no such job " + std::to_string(job.value()) +
                 " (or it ended too long ago for its outcome to be known)");
}

Result<void> validate(const state::State& state, const JobSpec& spec, bool updates) {
  Mistakes mistakes;
  mistakes.add(check_line("user", spec.user));
  if (spec.user.empty() || spec.user.size() > 253) mistakes.add(invalid("user must have 1 to 253 characters"));
  mistakes.add(check_queue(state, spec));
  for (const Error& mistake : check_job_alone(spec)) mistakes.add(mistake);
  check_groups(state, spec, mistakes);
  mistakes.add(check_topology(state, "topology", spec.topology));
  mistakes.add(check_group_topology(state, spec));
  mistakes.add(check_affinity(state, spec));
  for (const Error& problem : check_mounts(state, spec)) mistakes.add(problem);
  if (!updates && spec.kind == JobKind::kInteractive) mistakes.add(check_shell(state, spec.queue));
  // A limit of today is told of a job that is right.
  if (!updates && mistakes.none()) mistakes.add(check_submitted(state, *state.queue_at(spec.queue), spec.user));
  if (auto priority = priority_of(state, spec); !priority) mistakes.add(priority.error());
  mistakes.add(check_dependencies(state, spec));
  return mistakes.result();
}

}  // namespace berth::control
