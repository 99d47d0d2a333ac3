#include "model/document/job_keys.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "model/document/custom_keys.h"
#include "model/document/plain_keys.h"

namespace berth::document {
namespace {

constexpr std::array kKeys{
    JobKey{.path = "name",
           .form = text<&JobSpec::name>(),
           .is = "a name for people",
           .absent = "empty",
           .flag = {"--name", "NAME", "name shown in lists (default: the program's name)"}},
    JobKey{.path = "comment",
           .form = text<&JobSpec::comment>(kMaxCommentBytes),
           .is = "free text, shown by `berth job`",
           .absent = "none",
           .flag = {"--comment", "TEXT"}},
    JobKey{.path = "queue",
           .form = text<&JobSpec::queue>(),
           .is = "a leaf of the queue tree, as `research/nlp`",
           .absent = "the only leaf where you may submit; with several it must be given",
           .flag = {"--queue", "PATH", "queue it is charged to, as research/nlp (default: the only one)"}},
    JobKey{.path = "user",
           .form = text<&JobSpec::user>(),
           .is = "the user that the job counts for",
           .absent = "the one that submits",
           .flag = {"--user", "NAME", "whose job it is (default: the token's owner)"}},
    JobKey{.path = "kind",
           .form = word<JobKind, &JobSpec::kind>(),
           .is = "`gang`: all or nothing. `service`: replicas that are restarted. `array`: one record, many elements",
           .absent = "`gang`",
           .flag = {"--kind", "", "kind of job (gang)"}},
    JobKey{.path = "class",
           .form = word<JobClass, &JobSpec::job_class>(),
           .is = "what it is for:",
           .absent = "`training`",
           .flag = {"--class", "", "what it is for (training)"}},
    JobKey{.path = "priority",
           .form = text<&JobSpec::priority_class>(),
           .is = "a priority class by name",
           .absent = "the default class",
           .flag = {"--priority", "CLASS", "priority class (berth config lists them)"}},

    JobKey{.path = "groups",
           .form = {.kind = KeyKind::kGroups},
           .is = "several task groups, instead of the keys of one: see [groups](#groups)",
           .absent = "one group"},
    JobKey{.path = "groups[].name",
           .form = text<&TaskGroup::name>(),
           .is = "the name of a group that stands under `groups`",
           .absent = "`main`"},
    JobKey{.path = "groups[].tasks",
           .form = always(integer<&TaskGroup::count>(1, kMaxTasksPerJob)),
           .is = "how many tasks; of a service, replicas",
           .absent = "1",
           .flag = {"--tasks", "N", "tasks, all started together or not at all (default 1)"}},
    JobKey{.path = "groups[].min_tasks",
           .form = integer<&TaskGroup::min_count>(1, kMaxTasksPerJob),
           .is = "with so many a [gang](#elastic-gangs) starts; the rest joins and leaves later",
           .absent = "`tasks`",
           .flag = {"--min-tasks", "N", "the least number it can run with (default: --tasks)"}},
    JobKey{.path = "groups[].gpus",
           .form = custom<read_gpus, gpus_node>(KeyKind::kAmount),
           .is = "for each task: 1 to 16, or a share of one below 1, such as `0.5`",
           .absent = "0",
           .flag = {"--gpus", "N", "GPUs per task: 1, 2, ... or a share such as 0.5 (default 0)"}},
    JobKey{.path = "groups[].gpu_models",
           .form = texts<&TaskGroup::request, &TaskRequest::gpu_models>(),
           .is = "any of these; beside `gpus` only",
           .absent = "any model",
           .flag = {"--gpu-model", "MODEL", "GPU model that will do; again for more"}},
    JobKey{.path = "groups[].mig_profile",
           .form = text<&TaskGroup::request, &TaskRequest::mig_profile>(),
           .is = "instead of `gpus`: a MIG instance for each task, such as `1g.10gb`; see [mig.md](mig.md)",
           .absent = "whole GPUs",
           .flag = {"--mig-profile", "PROFILE", "instead of --gpus: a MIG instance per task, as 1g.10gb"}},
    JobKey{.path = "groups[].cpus",
           .form = custom<read_cpus, cpus_node>(KeyKind::kAmount),
           .is = "cores for each task",
           .absent = "1 for each GPU, at least 1",
           .flag = {"--cpus", "N", "CPU cores per task (default 1, or 1 per GPU)"}},
    JobKey{.path = "groups[].memory",
           .form = always(bytes<&TaskGroup::request, &TaskRequest::memory_mib>()),
           .is = "for each task",
           .absent = "1GiB for each GPU; 512MiB without GPUs",
           .flag = {"--memory", "SIZE", "memory per task, as 16GiB"}},
    JobKey{.path = "groups[].countables",
           .form = custom<read_countables, countables_node>(KeyKind::kCounts, 1, kMaxCountable),
           .is = "a map: [what else of its node](#countables) each task needs, such as `rdma/hca: 1`",
           .absent = "nothing else",
           .flag = {"--countable", "NAME=N", "what else of its node a task needs, as rdma/hca=1; repeatable"}},
    JobKey{.path = "groups[].command",
           .form = custom<read_command, command_node>(KeyKind::kTexts),
           .is = "a list of words, or one line for `/bin/sh -c`",
           .absent = "must be given, unless there is an `image`"},
    JobKey{.path = "groups[].env",
           .form = pairs<&TaskGroup::env>(),
           .is = "a map: the environment beside berth's own",
           .absent = "empty",
           .flag = {"--env", "KEY=VALUE", "environment variable; KEY alone takes yours"}},
    JobKey{.path = "groups[].workdir",
           .form = text<&TaskGroup::workdir>(),
           .is = "an absolute directory",
           .absent = "`/`; with flags, where `berth submit` runs",
           .flag = {"--workdir", "DIR", "where the command runs (default: here)"}},
    JobKey{.path = "groups[].image",
           .form = text<&TaskGroup::image>(),
           .is = "a container image, for [Kubernetes](kubernetes.md#jobs-as-pods); a server on one machine refuses it: "
                 "see [images.md](images.md)",
           .absent = "a plain process",
           .flag = {"--image", "IMAGE", "container image; only nodes that run containers"}},
    JobKey{.path = "groups[].launch",
           .form = word<Launch, &TaskGroup::launch>(),
           .is = "[what is started](#what-is-started):",
           .absent = "`per-task`",
           .flag = {"--launch", "", "what is started (per-task)"}},
    JobKey{.path = "groups[].pool",
           .form = text<&TaskGroup::pool>(),
           .is = "only nodes of this pool",
           .absent = "any pool that the queue may use",
           .flag = {"--pool", "POOL"}},
    JobKey{.path = "groups[].node_selector",
           .form = labels<&TaskGroup::node_selector>(),
           .is = "a map of labels that a node must have",
           .absent = "any node",
           .flag = {"--node-selector", "LABEL=VALUE", "only nodes with this label"}},
    JobKey{.path = "groups[].node_rules",
           .form = custom<read_node_rules, node_rules_node>(KeyKind::kNodeRules),
           .is = "[rules](#node-rules) about labels, such as `zone=a`; a node must match all of them",
           .absent = "any node",
           .flag = {"--node-rule", "RULE", "only nodes that match, as zone=a|b, zone!=a, !spot or cores>16"}},
    JobKey{.path = "groups[].tolerations",
           .form = custom<read_tolerations, tolerations_node>(KeyKind::kTolerations),
           .is = "[taints](#tolerations) that do not keep it away, such as `spot` or `team=a:NoExecute`",
           .absent = "none",
           .flag = {"--toleration", "TAINT", "runs on nodes with this taint too"}},
    JobKey{.path = "groups[].numa",
           .form = word<NumaPolicy, &TaskGroup::numa>(),
           .is = "[NUMA domains](topology.md#numa-policies) of one task's GPUs:",
           .absent = "`best-effort`",
           .flag = {"--numa", "", "NUMA domains of the GPUs of one task (best-effort)"}},
    JobKey{.path = "groups[].topology",
           .form = map(),
           .is = "the same as the job's, for the tasks of a group that stands under `groups`",
           .absent = "as the job says"},
    JobKey{.path = "groups[].topology.required",
           .form = level<&TaskGroup::topology, &TopologyConstraint::required>(),
           .is = "all tasks of the group within one domain of this level",
           .absent = "none"},
    JobKey{.path = "groups[].topology.preferred",
           .form = level<&TaskGroup::topology, &TopologyConstraint::preferred>(),
           .is = "the same if it can be had",
           .absent = "none"},

    JobKey{.path = "topology",
           .form = map(),
           .is = "`{required: LEVEL, preferred: LEVEL}`: how close the tasks are; see [topology.md](topology.md)",
           .absent = "anywhere"},
    JobKey{.path = "topology.required",
           .form = level<&JobSpec::topology, &TopologyConstraint::required>(),
           .is = "all tasks within one domain of this level",
           .absent = "none",
           .flag = {"--topology", "LEVEL"}},
    JobKey{.path = "topology.preferred",
           .form = level<&JobSpec::topology, &TopologyConstraint::preferred>(),
           .is = "the same if it can be had",
           .absent = "none",
           .flag = {"--prefer-topology", "LEVEL"}},
    JobKey{.path = "time_limit",
           .form = duration<&JobSpec::time_limit_s>(),
           .is = "it is stopped after that long",
           .absent = "none",
           .flag = {"--time-limit", "TIME", "stopped after this long, as 2h or 1h30m"}},
    JobKey{.path = "estimate",
           .form = duration<&JobSpec::estimate_s>(),
           .is = "how long it probably takes, at most `time_limit`; helps to fill gaps",
           .absent = "[learned](#how-long-a-job-will-run)",
           .flag = {"--estimate", "TIME", "how long it will probably run"}},
    JobKey{.path = "checkpoint",
           .form = map(),
           .is = "how it saves its work; see [the checkpoint contract](#the-checkpoint-contract)",
           .absent = "it is killed when it must leave"},
    JobKey{.path = "checkpoint.on_signal",
           .form = boolean<&JobSpec::checkpoint, &CheckpointContract::on_signal>(),
           .is = "the job saves when it gets the signal",
           .absent = "false"},
    JobKey{.path = "checkpoint.signal",
           .form = custom<read_signal, signal_node>(KeyKind::kSignal),
           .is = "a name (`SIGUSR1`, `USR1`) or a number; SIGKILL and SIGSTOP are refused",
           .absent = "SIGTERM",
           .flag = {"--checkpoint-signal", "SIGNAL", "sent when it must give way; it saves and leaves"}},
    JobKey{.path = "checkpoint.grace",
           .form = duration<&JobSpec::checkpoint, &CheckpointContract::grace_s>(),
           .is = "time from the signal to the kill",
           .absent = "`eviction.grace` of the queue, else `scheduling.grace`",
           .flag = {"--grace", "TIME", "time to save before it is killed"}},
    JobKey{.path = "checkpoint.interval",
           .form = duration<&JobSpec::checkpoint, &CheckpointContract::interval_s>(),
           .is = "how often it saves by itself. It is kept with the job; nothing is decided by it yet",
           .absent = "none",
           .flag = {"--checkpoint-interval", "TIME", "how often it saves by itself"}},
    JobKey{.path = "retries",
           .form = integer<&JobSpec::retries>(0, kMaxRetries),
           .is = "failures that are tried again; being evicted uses up none",
           .absent = "0",
           .flag = {"--retries", "N", "failures that are tried again (giving way is none)"}},
    JobKey{.path = "after",
           .form = custom<read_dependencies<DependencyKind::kAfter>, dependencies_node<DependencyKind::kAfter>>(
               KeyKind::kJobIds),
           .is = "jobs, by id, that must have started before, or ended without a start (cancelled, say)",
           .absent = "none",
           .flag = {"--after", "ID", "not before this job has started, or ended without"}},
    JobKey{.path = "afterok",
           .form = custom<read_dependencies<DependencyKind::kAfterOk>, dependencies_node<DependencyKind::kAfterOk>>(
               KeyKind::kJobIds),
           .is = "jobs that must have succeeded before",
           .absent = "none",
           .flag = {"--afterok", "ID", "not before this job has succeeded"}},
    JobKey{.path = "afterany",
           .form = custom<read_dependencies<DependencyKind::kAfterAny>, dependencies_node<DependencyKind::kAfterAny>>(
               KeyKind::kJobIds),
           .is = "jobs that must have ended before",
           .absent = "none",
           .flag = {"--afterany", "ID", "not before this job has ended"}},
    JobKey{.path = "deadline",
           .form = time<&JobSpec::deadline>(),
           .is = "an instant, such as `2026-11-21T08:15:30Z`, by which it should be done",
           .absent = "none",
           .flag = {"--deadline", "TIME", "when it should be done, ISO 8601"}},
    JobKey{.path = "earliest_start",
           .form = time<&JobSpec::earliest_start>(),
           .is = "an instant before which it does not start; earlier than the deadline",
           .absent = "none",
           .flag = {"--earliest-start", "TIME", "not before this time, ISO 8601"}},
    JobKey{.path = "hold",
           .form = boolean<&JobSpec::held>(),
           .is = "it waits until it is released",
           .absent = "false",
           .flag = {"--hold", "", "wait until berth release"}},
    JobKey{.path = "exclusive",
           .form = boolean<&JobSpec::exclusive>(),
           .is = "whole nodes: the smallest that hold a task each",
           .absent = "false",
           .flag = {"--exclusive", "", "whole nodes"}},
    JobKey{.path = "spread",
           .form = boolean<&JobSpec::spread>(),
           .is = "one task on each node as far as possible; of a [service](#services), one replica",
           .absent = "false",
           .flag = {"--spread", "", "on as many nodes as it has tasks or replicas, where possible"}},
    JobKey{.path = "array", .form = map(), .is = "the elements of an array; with `kind: array`", .absent = "none"},
    JobKey{.path = "array.size",
           .form = integer<&JobSpec::array_size>(1, kMaxArraySize),
           .is = "how many elements",
           .absent = "must be given",
           .required = true,
           .flag = {"--array-size", "N", "elements of an array"}},
    JobKey{.path = "array.running",
           .form = integer<&JobSpec::array_running>(1, kMaxArraySize),
           .is = "at most so many at once",
           .absent = "no limit",
           .flag = {"--array-running", "N", "so many of them at once"}},
    JobKey{.path = "labels",
           .form = labels<&JobSpec::labels>(),
           .is = "a map that the rules of other jobs go by",
           .absent = "none",
           .flag = {"--label", "LABEL=VALUE", "what the rules of other jobs go by; again for more"}},
    JobKey{.path = "affinity",
           .form = custom<read_terms<&JobSpec::affinity>, terms_node<&JobSpec::affinity>>(KeyKind::kTerms),
           .is = "near jobs with such labels; see [affinity.md](affinity.md)",
           .absent = "none",
           .flag = {"--near", "LABEL=VALUE[@LEVEL]", "place next to jobs with this label (same node, or same LEVEL)"},
           .wish_flag = {"--prefer-near", "LABEL=VALUE[@LEVEL]", "the same if it can be had"}},
    JobKey{.path = "anti_affinity",
           .form = custom<read_terms<&JobSpec::anti_affinity>, terms_node<&JobSpec::anti_affinity>>(KeyKind::kTerms),
           .is = "away from jobs with such labels",
           .absent = "none",
           .flag = {"--away-from", "LABEL=VALUE[@LEVEL]",
                    "only where no such jobs run, in one domain of the level (node)"},
           .wish_flag = {"--prefer-away-from", "LABEL=VALUE[@LEVEL]", "the same if it can be had"}},
    JobKey{.path = "ports",
           .form = custom<read_ports, ports_node>(KeyKind::kIntegers, 1, kLastPort),
           .is = "[ports of its node](#ports) that each task has for itself, up to 16",
           .absent = "none",
           .flag = {"--port", "PORT", "TCP port the task needs to itself on its node; repeatable"}},
    JobKey{.path = "max_unavailable",
           .form = integer<&JobSpec::max_unavailable>(1, kMaxTasksPerJob),
           .is = "of a [service](#services): replicas that may be away at once by drains and updates",
           .absent = "1 by updates, all by drains",
           .flag = {"--max-unavailable", "N", "how many replicas may be down at once during drains and updates"}},
};

std::string sentence(std::string_view markdown) {
  std::string text = plain_text(markdown);
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text + ".";
}

}  // namespace

std::span<const JobKey> job_keys() { return kKeys; }

std::vector<const JobKey*> keys_in(std::string_view prefix) {
  std::vector<const JobKey*> found;
  for (const JobKey& key : kKeys) {
    if (key.path.starts_with(prefix) && key.path.find('.', prefix.size()) == std::string_view::npos)
      found.push_back(&key);
  }
  return found;
}

const JobKey& job_key(std::string_view path) {
  const auto found = std::find_if(kKeys.begin(), kKeys.end(), [&](const JobKey& key) { return key.path == path; });
  BERTH_CHECK(found != kKeys.end());
  return *found;
}

std::string plain_text(std::string_view markdown) {
  std::string text;
  for (std::size_t at = 0; at < markdown.size(); ++at) {
    const char c = markdown[at];
    if (c == ']' && markdown.substr(at).starts_with("](")) {
      at = markdown.find(')', at);
      BERTH_CHECK(at != std::string_view::npos);
    } else if (c != '`' && c != '[') {
      text += c;
    }
  }
  return text;
}

std::string meaning_of(const JobKey& key) {
  std::string text(key.is);
  const KeyForm& form = key.form;
  if (form.kind == KeyKind::kInteger) text += "; " + std::to_string(form.low) + " to " + std::to_string(form.high);
  if (form.kind == KeyKind::kText && form.high > 0) text += "; at most " + std::to_string(form.high) + " bytes";
  if (!text.ends_with(':')) return text;
  for (const std::string_view word : form.words) text += (text.ends_with(':') ? " `" : ", `") + std::string(word) + "`";
  return text;
}

std::string description_of(const JobKey& key) {
  return sentence(meaning_of(key)) + " If absent: " + plain_text(key.absent) + ".";
}

}  // namespace berth::document
