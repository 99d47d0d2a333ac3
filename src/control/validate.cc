#include "control/validate.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/utf8.h"
#include "control/mounts.h"
#include "model/image.h"
#include "model/nearest.h"
#include "model/node_rule.h"
#include "model/queue_volumes.h"
#include "model/toleration.h"

namespace berth::control {

namespace {

constexpr std::size_t kMaxText = 4096;
constexpr std::size_t kMaxArguments = 10'000;
constexpr std::size_t kMaxCommandBytes = 128 * 1024;
constexpr std::size_t kMaxLabels = 32;
constexpr std::size_t kMaxTerms = 16;
constexpr std::size_t kMaxPorts = 16;
constexpr std::int64_t kMaxCpuMilli = 10'000'000;
constexpr std::int64_t kMaxMemoryMib = std::int64_t{1} << 40;

bool has_control_characters(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

Result<void> check_text(const std::string& field, const std::string& text) {
  if (text.size() > kMaxText) return invalid(field + " is longer than " + std::to_string(kMaxText) + " bytes");
  if (!is_utf8(text)) return invalid(field + " is not valid UTF-8");
  if (has_control_characters(text)) return invalid(field + " contains control characters");
  return {};
}

// Checks command and environment. `where` is the path to the group for error messages, such as "groups[1].", or "" for
// a single group.
Result<void> check_command(const std::string& where, const TaskGroup& group) {
  if (group.command.empty() && group.image.empty()) return invalid(where + "command is empty; give the program to run");
  if (group.command.size() > kMaxArguments) return invalid(where + "command has more than 10000 words");
  std::size_t bytes = 0;
  for (const std::string& word : group.command) {
    bytes += word.size();
    if (word.find('\0') != std::string::npos) return invalid(where + "command contains a NUL byte");
    if (!is_utf8(word)) return invalid(where + "command is not valid UTF-8");
  }
  if (!group.command.empty() && group.command.front().empty()) return invalid(where + "command names an empty program");
  for (const auto& [name, value] : group.env) {
    bytes += name.size() + value.size();
    if (name.empty() || name.find('=') != std::string::npos || name.find('\0') != std::string::npos ||
        value.find('\0') != std::string::npos) {
      return invalid(where + "env: '" + name.substr(0, 80) + "' is not a variable name (no '=', no NUL, not empty)");
    }
    if (name.starts_with("BERTH_"))
      return invalid(where + "env: names that start with BERTH_ are berth's own ('" + name + "')");
    if (!is_utf8(name) || !is_utf8(value)) return invalid(where + "env is not valid UTF-8");
  }
  if (bytes > kMaxCommandBytes) return invalid(where + "command and env are larger than 128 KiB together");
  return {};
}

Result<void> check_request(const std::string& where, const TaskRequest& request, const state::State& state) {
  if (request.cpu_milli < 0 || request.cpu_milli > kMaxCpuMilli)
    return invalid(where + "cpus must be between 0 and 10000");
  if (request.memory_mib < 0 || request.memory_mib > kMaxMemoryMib) {
    return invalid(where + "memory must be between 0 and 1 EiB");
  }
  if (request.gpus < 0 || request.gpus > static_cast<std::int32_t>(kMaxGpusPerNode)) {
    return invalid(where + "gpus must be between 0 and " + std::to_string(kMaxGpusPerNode) +
                   " per task; ask for more tasks to get more GPUs");
  }
  if (request.gpu_milli < 1 || request.gpu_milli > kMilli)
    return invalid(where + "gpus: a share lies above 0 and below 1");
  if (request.gpu_milli < kMilli && request.gpus != 1)
    return invalid(where + "gpus: a share is of one GPU, not of several");
  if (request.gpus == 0 && request.cpu_milli == 0 && request.memory_mib == 0) {
    return invalid(where + "gpus, cpus and memory are all 0; ask for some of them");
  }
  if (!is_well_formed(request.countables)) return invalid(where + "countables: " + std::string(kCountablesRule));
  for (const auto& [name, amount] : request.countables) {
    if (name == kPodsCountable) return invalid(where + "countables: each task takes one of 'pods'; leave it out");
  }
  std::set<std::string_view> models;
  for (const std::string& model : request.gpu_models) {
    if (!models.insert(model).second)
      return invalid(where + "gpu_models: '" + model.substr(0, 80) + "' is given twice");
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

// Labels that no node has are allowed.
Result<void> check_rules(const std::string& where, const std::vector<NodeRule>& rules) {
  if (rules.size() > kMaxNodeRules)
    return invalid(where + "node_rules has more than " + std::to_string(kMaxNodeRules) + " rules");
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const std::string here = where + "node_rules[" + std::to_string(i) + "]";
    if (const std::string problem = problem_of(rules[i]); !problem.empty()) return invalid(here + ": " + problem);
    for (const auto& term : rules[i].terms) {
      for (const NodeExpression& one : term) {
        if (auto ok = check_text(here, one.key); !ok) return ok;
        for (const std::string& value : one.values) {
          if (auto ok = check_text(here, value); !ok) return ok;
        }
      }
    }
  }
  return {};
}

// Checks the node selector, the node rules and the tolerations. Names that no node has are allowed.
Result<void> check_wishes(const std::string& where, const TaskGroup& group) {
  for (const auto& [key, value] : group.node_selector) {
    if (key.empty()) return invalid(where + "node_selector: a label has no name; write it as LABEL: VALUE");
    if (auto ok = check_text(where + "node_selector", key + value); !ok) return ok;
  }
  if (auto ok = check_rules(where, group.node_rules); !ok) return ok;
  std::set<std::string_view> taints;
  for (const std::string& taint : group.tolerations) {
    if (taint.empty()) return invalid(where + "tolerations: a taint has no name; give its key");
    if (auto ok = check_text(where + "tolerations", taint); !ok) return ok;
    if (const auto read = parse_toleration(taint); !read)
      return invalid(where + "tolerations: " + read.error().message);
    if (!taints.insert(taint).second)
      return invalid(where + "tolerations: '" + taint.substr(0, 80) + "' is given twice");
  }
  return {};
}

// Checks the image. It need not be on any node, because it can be pulled.
Result<void> check_image(const state::State& state, const std::string& where, const std::string& image) {
  if (image.empty()) return {};
  if (!well_formed_image(image))
    return invalid(where + "image is not the name of an image: " + std::string(kImageRule));
  if (runs_containers(state)) return {};
  return Error{ErrorCode::kUnsupported,
               where + "image: no node of this cluster runs containers; leave it out and give a command"};
}

Result<void> check_group(const state::State& state, const std::string& where, const TaskGroup& group) {
  if (group.count < 1 || group.count > kMaxTasksPerJob) {
    return invalid(where + "tasks must be between 1 and " + std::to_string(kMaxTasksPerJob));
  }
  if (group.min_count < 0 || group.min_count > group.count) {
    return invalid(where + "min_tasks must be between 1 and tasks (" + std::to_string(group.count) + ")");
  }
  if (auto ok = check_image(state, where, group.image); !ok) return ok;
  if (!group.workdir.empty() && group.workdir.front() != '/')
    return invalid(where + "workdir must be an absolute path");
  if (auto ok = check_text(where + "workdir", group.workdir); !ok) return ok;
  if (!group.pool.empty()) {
    const auto& pools = state.pools();
    if (std::none_of(pools.begin(), pools.end(), [&](const auto& pool) { return pool.name == group.pool; })) {
      return invalid(where + "pool: no such pool '" + group.pool.substr(0, 80) + "'");
    }
  }
  if (auto ok = check_wishes(where, group); !ok) return ok;
  if (auto ok = check_command(where, group); !ok) return ok;
  return check_request(where, group.request, state);
}

Result<void> check_group_names(const JobSpec& spec) {
  std::set<std::string> names;
  for (std::size_t i = 0; i < spec.groups.size(); ++i) {
    const std::string where = "groups[" + std::to_string(i) + "].name";
    const std::string& name = spec.groups[i].name;
    if (auto ok = check_text(where, name); !ok) return ok;
    if (name.empty() || name.size() > 63) return invalid(where + " must have 1 to 63 characters");
    if (!names.insert(name).second)
      return invalid(where + " '" + name + "' is used twice; give each group a name of its own");
  }
  return {};
}

Result<void> check_times(const JobSpec& spec) {
  const auto in_range = [](std::int64_t seconds) { return seconds >= 0 && seconds <= kMaxSeconds; };
  if (!in_range(spec.time_limit_s)) return invalid("time_limit must be above 0 and at most 366 days");
  if (!in_range(spec.estimate_s)) return invalid("estimate must be above 0 and at most 366 days");
  if (spec.time_limit_s > 0 && spec.estimate_s > spec.time_limit_s)
    return invalid("estimate is longer than time_limit; give at most the time_limit");
  if (!in_range(spec.checkpoint.grace_s)) return invalid("checkpoint.grace must be between 0 and 366 days");
  if (!in_range(spec.checkpoint.interval_s)) return invalid("checkpoint.interval must be between 0 and 366 days");
  if (spec.checkpoint.signal < 1 || spec.checkpoint.signal > 64 || spec.checkpoint.signal == 9 ||
      spec.checkpoint.signal == 19) {
    return invalid("checkpoint.signal must be a signal that a process can catch, such as SIGTERM or SIGUSR1");
  }
  return {};
}

Result<void> check_dependencies(const state::State& state, const JobSpec& spec) {
  if (spec.dependencies.size() > 1000) return invalid("dependencies lists more than 1000 jobs");
  std::set<std::pair<DependencyKind, JobId>> seen;
  for (const Dependency& dependency : spec.dependencies) {
    if (!seen.emplace(dependency.kind, dependency.job).second) {
      return invalid("dependencies: job " + std::to_string(dependency.job.value()) + " is given twice");
    }
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

// Requires the labels sorted by key, because affinity terms search them in that order.
Result<void> check_labels(const std::string& where, const Labels& labels) {
  if (labels.size() > kMaxLabels) return invalid(where + " has more than " + std::to_string(kMaxLabels) + " labels");
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const auto& [key, value] = labels[i];
    if (auto ok = check_text(where, key + value); !ok) return ok;
    if (key.empty() || key.size() > 63 || value.size() > 253 || key.find_first_of("=,") != std::string::npos) {
      return invalid(where + ": '" + key.substr(0, 80) +
                     "' is no label; keys have 1 to 63 characters without '=' and ',', values at most 253");
    }
    if (i > 0 && labels[i - 1].first >= key) return invalid(where + ": '" + key + "' is given twice");
  }
  return {};
}

Result<void> check_terms(const state::State& state, const std::string& what, const std::vector<AffinityTerm>& terms) {
  if (terms.size() > kMaxTerms) return invalid(what + " lists more than " + std::to_string(kMaxTerms) + " terms");
  for (std::size_t i = 0; i < terms.size(); ++i) {
    const std::string where = what + "[" + std::to_string(i) + "]";
    if (terms[i].labels.empty()) return invalid(where + ".labels is empty; give at least one, such as {app: llama}");
    if (auto ok = check_labels(where + ".labels", terms[i].labels); !ok) return ok;
    if (auto ok = check_level(state, where + ".level", terms[i].level); !ok) return ok;
  }
  return {};
}

Result<void> check_ports(const std::vector<std::int32_t>& ports) {
  if (ports.size() > kMaxPorts) return invalid("ports lists more than " + std::to_string(kMaxPorts) + " ports");
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const std::string port = std::to_string(ports[i]);
    if (ports[i] < 1 || ports[i] > kLastPort)
      return invalid("ports: " + port + " is no port; give one from 1 to " + std::to_string(kLastPort));
    if (i > 0 && ports[i - 1] >= ports[i]) return invalid("ports: " + port + " is given twice, or they do not ascend");
    if (ports[i] >= state::kFirstMasterPort && ports[i] <= state::kLastMasterPort) {
      return invalid("ports: " + port + " is reserved for MASTER_PORT of gangs (" +
                     std::to_string(state::kFirstMasterPort) + " to " + std::to_string(state::kLastMasterPort) +
                     "); give another one");
    }
  }
  return {};
}

Result<void> check_affinity(const state::State& state, const JobSpec& spec) {
  if (auto ok = check_labels("labels", spec.labels); !ok) return ok;
  if (auto ok = check_terms(state, "affinity", spec.affinity); !ok) return ok;
  return check_terms(state, "anti_affinity", spec.anti_affinity);
}

Result<void> check_kind(const JobSpec& spec) {
  switch (spec.kind) {
    case JobKind::kGang:
      break;
    case JobKind::kService:
      if (spec.groups.size() != 1) return invalid("a service has exactly one task group; its tasks are the replicas");
      if (spec.groups.front().min_count != 0)
        return invalid("min_tasks is only for gangs; each replica of a service starts by itself; leave it out");
      break;
    case JobKind::kArray:
      if (spec.array_size < 1 || spec.array_size > kMaxArraySize) {
        return invalid("array.size must be between 1 and " + std::to_string(kMaxArraySize));
      }
      if (spec.array_running < 0) return invalid("array.running must be 0 (no limit) or more");
      break;
    case JobKind::kInteractive:
      return Error{ErrorCode::kUnsupported, "kind 'interactive' is not there yet; use 'berth run' for an attached job"};
  }
  const std::int32_t replicas = spec.kind == JobKind::kService ? spec.groups.front().count : 0;
  if (spec.max_unavailable < 0 || spec.max_unavailable > replicas) {
    return invalid("max_unavailable must be between 1 and the number of replicas of a service");
  }
  if (spec.kind != JobKind::kArray && (spec.array_size != 0 || spec.array_running != 0)) {
    return invalid("array is given but kind is '" + std::string(name_of(spec.kind)) + "'; set kind: array");
  }
  return {};
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
    const std::string where = spec.groups.size() == 1 ? "" : "groups[" + std::to_string(i) + "].";
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

void check_name_and_user(const JobSpec& spec, Mistakes& mistakes) {
  mistakes.add(check_text("name", spec.name));
  if (spec.name.size() > 253) mistakes.add(invalid("name must have at most 253 characters"));
  mistakes.add(check_text("user", spec.user));
  if (spec.user.empty() || spec.user.size() > 253) mistakes.add(invalid("user must have 1 to 253 characters"));
}

void check_groups(const state::State& state, const JobSpec& spec, Mistakes& mistakes) {
  if (spec.groups.empty()) mistakes.add(invalid("groups is empty; a job has at least one task group"));
  if (spec.groups.size() > 64) return mistakes.add(invalid("groups lists more than 64 task groups"));
  mistakes.add(check_group_names(spec));
  std::int64_t tasks = 0;
  for (std::size_t i = 0; i < spec.groups.size(); ++i) {
    const std::string where = spec.groups.size() == 1 ? "" : "groups[" + std::to_string(i) + "].";
    mistakes.add(check_group(state, where, spec.groups[i]));
    tasks += spec.groups[i].count;
  }
  if (tasks > kMaxTasksPerJob)
    mistakes.add(invalid("the job has more than " + std::to_string(kMaxTasksPerJob) + " tasks in all"));
}

}  // namespace

Error no_such_dependency(JobId job) {
  return invalid("dependencies: no such job " + std::to_string(job.value()) +
                 " (or it ended too long ago for its outcome to be known)");
}

Result<void> validate(const state::State& state, const JobSpec& spec, bool updates) {
  Mistakes mistakes;
  check_name_and_user(spec, mistakes);
  mistakes.add(check_queue(state, spec));
  check_groups(state, spec, mistakes);
  if (spec.retries < 0 || spec.retries > kMaxRetries)
    mistakes.add(invalid("retries must be between 0 and " + std::to_string(kMaxRetries)));
  mistakes.add(check_times(spec));
  mistakes.add(check_kind(spec));
  mistakes.add(check_topology(state, "topology", spec.topology));
  mistakes.add(check_group_topology(state, spec));
  mistakes.add(check_affinity(state, spec));
  mistakes.add(check_ports(spec.ports));
  for (const Error& problem : check_mounts(state, spec)) mistakes.add(problem);
  // A limit of today is told of a job that is right.
  if (!updates && mistakes.none()) mistakes.add(check_submitted(state, *state.queue_at(spec.queue), spec.user));
  if (auto priority = priority_of(state, spec); !priority) mistakes.add(priority.error());
  mistakes.add(check_dependencies(state, spec));
  return mistakes.result();
}

}  // namespace berth::control
