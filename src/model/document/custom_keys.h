#pragma once
// Readers and writers of the keys of a job whose form is not plain: job_keys.cc names them. A reader puts what it
// understands into the job or its task group, and refuses the rest at the value's place. A writer returns null for what
// is not written.

#include <vector>

#include "model/document/job_keys.h"
#include "model/document/reading.h"

namespace berth::document {

inline constexpr std::int64_t kMaxCpus = 10'000;

// gpus: whole ones, or a share of one in thousandths; into two members.
void read_gpus(const Value& value, JobTarget to);
Node gpus_node(JobSource from);

// cpus: in thousandths, up to kMaxCpus.
void read_cpus(const Value& value, JobTarget to);
Node cpus_node(JobSource from);

// command: a list of words, or a line for the shell.
void read_command(const Value& value, JobTarget to);
Node command_node(JobSource from);

// tolerations: texts, or maps as Kubernetes has them.
void read_tolerations(const Value& value, JobTarget to);
Node tolerations_node(JobSource from);

// node_rules: lines, or maps: one condition, or `any` of several terms.
void read_node_rules(const Value& value, JobTarget to);
Node node_rules_node(JobSource from);

// checkpoint.signal: a name or a number.
void read_signal(const Value& value, JobTarget to);
Node signal_node(JobSource from);

// ports: ascending, none twice.
void read_ports(const Value& value, JobTarget to);
Node ports_node(JobSource from);

// countables: names of what a node has, with amounts.
void read_countables(const Value& value, JobTarget to);
Node countables_node(JobSource from);

// mounts, secrets: lines NAME:/PATH[:ro] and NAME[:/PATH], or maps.
void read_mounts(const Value& value, JobTarget to);
Node mounts_node(JobSource from);
void read_secrets(const Value& value, JobTarget to);
Node secrets_node(JobSource from);

// after, afterok, afterany: one job or a list, into one member with their kind.
void read_dependencies(const Value& value, DependencyKind kind, JobSpec& spec);
Node dependencies_node(DependencyKind kind, const JobSpec& spec);
template <DependencyKind Kind>
void read_dependencies(const Value& value, JobTarget to) {
  read_dependencies(value, Kind, to.job);
}
template <DependencyKind Kind>
Node dependencies_node(JobSource from) {
  return dependencies_node(Kind, from.job);
}

// affinity, anti_affinity: a list of rules.
void read_terms(const Value& value, std::vector<AffinityTerm>& terms);
Node terms_node(const std::vector<AffinityTerm>& terms);
template <auto Member>
void read_terms(const Value& value, JobTarget to) {
  read_terms(value, to.job.*Member);
}
template <auto Member>
Node terms_node(JobSource from) {
  return terms_node(from.job.*Member);
}

}  // namespace berth::document
