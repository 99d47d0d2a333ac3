#include "model/job_check.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "base/planted.h"
#include "base/utf8.h"
#include "model/image.h"
#include "model/mount_check.h"
#include "model/node_rule.h"
#include "model/sharing.h"
#include "model/toleration.h"

namespace berth {

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

}  // namespace

Result<void> check_line(const std::string& field, const std::string& text) {
  if (text.size() > kMaxText) return invalid(field + " is longer than " + std::to_string(kMaxText) + " bytes");
  if (!is_utf8(text)) return invalid(field + " is not valid UTF-8");
  if (has_control_characters(text)) return invalid(field + " contains control characters");
  return {};
}

namespace {

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

Result<void> check_request(const std::string& where, const TaskRequest& request) {
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
        if (auto ok = check_line(here, one.key); !ok) return ok;
        for (const std::string& value : one.values) {
          if (auto ok = check_line(here, value); !ok) return ok;
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
    if (auto ok = check_line(where + "node_selector", key + value); !ok) return ok;
  }
  if (auto ok = check_rules(where, group.node_rules); !ok) return ok;
  std::set<std::string_view> taints;
  for (const std::string& taint : group.tolerations) {
    if (taint.empty()) return invalid(where + "tolerations: a taint has no name; give its key");
    if (auto ok = check_line(where + "tolerations", taint); !ok) return ok;
    if (const auto read = parse_toleration(taint); !read)
      return invalid(where + "tolerations: " + read.error().message);
    if (!taints.insert(taint).second)
      return invalid(where + "tolerations: '" + taint.substr(0, 80) + "' is given twice");
  }
  return {};
}

Result<void> check_group(const std::string& where, const TaskGroup& group) {
  if (group.count < 1 || group.count > kMaxTasksPerJob) {
    return invalid(where + "tasks must be between 1 and " + std::to_string(kMaxTasksPerJob));
  }
  if (group.min_count < 0 || group.min_count > group.count) {
    return invalid(where + "min_tasks must be between 1 and tasks (" + std::to_string(group.count) + ")");
  }
  if (!group.image.empty() && !well_formed_image(group.image))
    return invalid(where + "image is not the name of an image: " + std::string(kImageRule));
  if (!group.workdir.empty() && group.workdir.front() != '/')
    return invalid(where + "workdir must be an absolute path");
  if (auto ok = check_line(where + "workdir", group.workdir); !ok) return ok;
  if (auto ok = check_wishes(where, group); !ok) return ok;
  if (auto ok = check_command(where, group); !ok) return ok;
  return check_request(where, group.request);
}

// Refuses a level that the table of sharing refuses whatever the others on the GPU are.
Result<void> check_sharing(const std::string& where, const JobSpec& spec, const TaskGroup& group) {
  const auto level = level_of(spec, group);
  const GpuNeed need = need_of(spec.job_class, spec.latency_objective_ms);
  if (!level || may_ever_share(need, *level) || planted(Bug::kForbiddenShare)) return {};
  return invalid(where + "gpus: a " + std::string(name_of(need)) + " job gets no GPU at level " +
                 std::string(name_of(*level)) + ": " + std::string(why_refused(Sharers::kOneUser, need, *level)) +
                 "; ask for a whole GPU or for a mig_profile, or leave out latency_objective_ms");
}

Result<void> check_group_names(const JobSpec& spec) {
  std::set<std::string> names;
  for (std::size_t i = 0; i < spec.groups.size(); ++i) {
    const std::string where = "groups[" + std::to_string(i) + "].name";
    const std::string& name = spec.groups[i].name;
    if (auto ok = check_line(where, name); !ok) return ok;
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

Result<void> check_dependencies(const JobSpec& spec) {
  if (spec.dependencies.size() > 1000) return invalid("dependencies lists more than 1000 jobs");
  std::set<std::pair<DependencyKind, JobId>> seen;
  for (const Dependency& dependency : spec.dependencies) {
    if (!seen.emplace(dependency.kind, dependency.job).second) {
      return invalid("dependencies: job " + std::to_string(dependency.job.value()) + " is given twice");
    }
  }
  return {};
}

// Requires the labels sorted by key, because affinity terms search them in that order.
Result<void> check_labels(const std::string& where, const Labels& labels) {
  if (labels.size() > kMaxLabels) return invalid(where + " has more than " + std::to_string(kMaxLabels) + " labels");
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const auto& [key, value] = labels[i];
    if (auto ok = check_line(where, key + value); !ok) return ok;
    if (key.empty() || key.size() > 63 || value.size() > 253 || key.find_first_of("=,") != std::string::npos) {
      return invalid(where + ": '" + key.substr(0, 80) +
                     "' is no label; keys have 1 to 63 characters without '=' and ',', values at most 253");
    }
    if (i > 0 && labels[i - 1].first >= key) return invalid(where + ": '" + key + "' is given twice");
  }
  return {};
}

Result<void> check_terms(const std::string& what, const std::vector<AffinityTerm>& terms) {
  if (terms.size() > kMaxTerms) return invalid(what + " lists more than " + std::to_string(kMaxTerms) + " terms");
  for (std::size_t i = 0; i < terms.size(); ++i) {
    const std::string where = what + "[" + std::to_string(i) + "]";
    if (terms[i].labels.empty()) return invalid(where + ".labels is empty; give at least one, such as {app: llama}");
    if (auto ok = check_labels(where + ".labels", terms[i].labels); !ok) return ok;
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
    if (ports[i] >= kFirstMasterPort && ports[i] <= kLastMasterPort) {
      return invalid("ports: " + port + " is reserved for MASTER_PORT of gangs (" + std::to_string(kFirstMasterPort) +
                     " to " + std::to_string(kLastMasterPort) + "); give another one");
    }
  }
  return {};
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
      if (spec.groups.size() != 1 || spec.groups.front().count != 1)
        return invalid("an interactive job has exactly one task, which has its terminal; leave groups and tasks out");
      if (spec.groups.front().launch != Launch::kPerTask)
        return invalid("an interactive job has one process; leave launch out, and start others from its shell");
      if (spec.retries != 0) return invalid("retries: an interactive job ends with its shell; leave it out");
      if (spec.checkpoint.on_signal)
        return invalid("checkpoint: an interactive job ends when it is evicted, and saves nothing; leave it out");
      break;
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

void check_groups(const JobSpec& spec, std::vector<Error>& mistakes) {
  const auto add = [&](const Result<void>& result) {
    if (!result) mistakes.push_back(result.error());
  };
  if (spec.groups.empty()) add(invalid("groups is empty; a job has at least one task group"));
  if (spec.groups.size() > kMaxTaskGroups) {
    return add(invalid("groups lists more than " + std::to_string(kMaxTaskGroups) + " task groups"));
  }
  add(check_group_names(spec));
  std::int64_t tasks = 0;
  for (std::size_t i = 0; i < spec.groups.size(); ++i) {
    add(check_group(path_of_group(spec, i), spec.groups[i]));
    add(check_sharing(path_of_group(spec, i), spec, spec.groups[i]));
    tasks += spec.groups[i].count;
  }
  if (tasks > kMaxTasksPerJob)
    add(invalid("the job has more than " + std::to_string(kMaxTasksPerJob) + " tasks in all"));
}

}  // namespace

std::string path_of_group(const JobSpec& spec, std::size_t index) {
  return spec.groups.size() == 1 ? "" : "groups[" + std::to_string(index) + "].";
}

std::vector<Error> check_job_alone(const JobSpec& spec) {
  std::vector<Error> mistakes;
  const auto add = [&](const Result<void>& result) {
    if (!result) mistakes.push_back(result.error());
  };
  add(check_line("name", spec.name));
  if (spec.name.size() > 253) add(invalid("name must have at most 253 characters"));
  check_groups(spec, mistakes);
  if (spec.retries < 0 || spec.retries > kMaxRetries)
    add(invalid("retries must be between 0 and " + std::to_string(kMaxRetries)));
  add(check_times(spec));
  add(check_kind(spec));
  add(check_labels("labels", spec.labels));
  add(check_terms("affinity", spec.affinity));
  add(check_terms("anti_affinity", spec.anti_affinity));
  add(check_ports(spec.ports));
  add(check_dependencies(spec));
  for (Error& mistake : check_mounts_alone(spec)) mistakes.push_back(std::move(mistake));
  return mistakes;
}

}  // namespace berth
