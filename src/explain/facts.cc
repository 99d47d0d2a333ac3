#include "explain/facts.h"

#include <algorithm>
#include <optional>

#include "explain/nominated.h"
#include "explain/reason_text.h"
#include "explain/shortage.h"
#include "explain/text_list.h"
#include "explain/unavailable.h"
#include "explain/why.h"
#include "model/document/quantity.h"
#include "model/sharing.h"
#include "sched/queue/admit.h"
#include "sched/queue/quota.h"
#include "sched/start.h"
#include "state/estimate.h"
#include "state/transaction.h"

namespace berth::explain {

using namespace sched;

namespace {

using state::JobState;
using state::QueueState;
using state::State;
using Facts = std::vector<std::string>;

// "5 x 1 GPU", "1 x 4 CPUs", "2 x 1g.10gb"
std::string tasks_text(const TaskGroup& group) {
  const TaskRequest& request = group.request;
  return std::to_string(group.least()) + " x " +
         (request.gpus == 0              ? counted(kDimCpu, request.cpu_milli)
          : !request.mig_profile.empty() ? request.mig_profile
                                         : counted(kDimGpu, request.total_gpu_milli()));
}

void add_quota_path(const State& state, const JobState& job, const Reason& reason, Facts& facts) {
  Amounts asked = least_amounts(state, job.spec);
  // An exclusive job counts all that its nodes have.
  if (reason.code == ReasonCode::kQuotaMax) asked[reason.dim] = std::max(asked[reason.dim], reason.asked);
  for (QueueId id = job.queue; id != state.root(); id = state.queue(id).parent) {
    const QueueState& queue = state.queue(id);
    for (const std::size_t dim : {kDimGpu, kDimCpu, kDimMemory}) {
      if (asked[dim] == 0 || (queue.max[dim] == kUnlimited && !queue.guaranteed.states(dim))) continue;
      std::string line = "queue " + queue.path + " uses " + quantity_text(state, dim, queue.usage[dim]);
      if (queue.guaranteed.states(dim)) {
        line += ", guaranteed " + amount_text(dim, queue.guaranteed.amounts[dim]) + " (" +
                amount_text(dim, queue.within_usage[dim]) + " within)";
      }
      if (queue.max[dim] != kUnlimited) line += ", max " + amount_text(dim, queue.max[dim]);
      facts.push_back(line + "; the job needs " + amount_text(dim, asked[dim]));
    }
  }
}

void add_free_room(const State& state, const JobState& job, Facts& facts) {
  for (std::size_t g = 0; g < job.spec.groups.size(); ++g) {
    const TaskGroup& group = job.spec.groups[g];
    const TaskRequirements ask = task_requirements(state, job, g, kAllModels);
    std::int64_t allowed = 0;
    std::int64_t closed = 0;
    bool maintained = false;
    const bool wants_gpus = group.request.gpus > 0;
    std::int64_t idle = 0;  // CPUs, where no GPUs are asked
    std::int64_t most_free = 0;
    for (const state::NodeState& node : state.nodes()) {
      if (!could_hold(state, ask, node)) continue;
      if (!node.takes_tasks()) {
        ++closed;
        maintained = maintained || node.maintained > 0;
        continue;
      }
      ++allowed;
      const auto whole = std::count_if(node.gpus.begin(), node.gpus.end(),
                                       [](const state::GpuSlot& gpu) { return gpu.available_milli() == kMilli; });
      const std::int64_t here = wants_gpus ? whole : std::max<std::int64_t>(0, node.available_cpu_milli());
      idle += here;
      most_free = std::max<std::int64_t>(most_free, here);
    }
    std::string line = "group " + group.name + " needs " + tasks_text(group) + "; " + counted(allowed, "eligible node");
    if (closed > 0) {
      line += " (" + std::to_string(closed) + " more cordoned" + (maintained ? ", under maintenance" : "") +
              " or out of contact)";
    }
    const bool of_parts = group.request.is_share();
    line += ", " + (wants_gpus ? counted(idle, of_parts ? "whole GPU" : "GPU") : counted(kDimCpu, idle)) + " free";
    if (allowed > 1 && idle > 0)
      line +=
          ", at most " + (wants_gpus ? std::to_string(most_free) : amount_text(kDimCpu, most_free)) + " on one node";
    facts.push_back(line);
  }
}

// Returns what would refuse the job if quota did not, backfill reservations included; nothing if it would find places.
std::optional<Reason> refused_beside_quota(State& state, const JobState& job, Timestamp now) {
  SearchStats work;
  const Admission no_quota{kAllModels, {}};
  state::Transaction transaction(state);
  StartAnswer answer = try_start(transaction, {state, job, now, work, &no_quota, QuotaOfPlaces::kUnchecked});
  return answer ? std::nullopt : std::optional(std::move(answer.why));
}

// For a job that quota refuses, whether places are free for it: the refusal of quota may hide that there are none.
void add_quota_aside(State& state, const Words& words, const JobState& job, const Reason& reason, Facts& facts) {
  if (!is_quota_reason(reason.code)) return;
  const auto refused = refused_beside_quota(state, job, words.now());
  facts.push_back("quota aside, " + (refused ? "the job " + reason_text(words, job, *refused)
                                             : std::string("places are free for the job")));
}

// How long the job is expected to run. Beside backfill reservations the expectation at its submission or last start
// counts, so that a job parked behind one stays parked until the reservation changes.
void add_expected_run(const State& state, const JobState& job, Facts& facts) {
  const auto now = state::estimate(state, job);
  if (!now.known()) return;
  const std::string text = "the job is expected to run " + state::estimate_text(now);
  const bool differs = now.seconds != job.expected_s && !state.reservations().empty();
  facts.push_back(!differs ? text
                           : text + "; beside backfill reservations " + document::duration_text(job.expected_s) +
                                 " counts, the expectation at submission");
}

void add_reservation(const Words& words, const JobState& job, Facts& facts) {
  if (!job.reservation) return;
  const bool later = job.reservation->start > job.reservation->first_start;
  facts.push_back("the job has a backfill reservation at " + words.time(job.reservation->start) +
                  (later ? ", at first at " + words.time(job.reservation->first_start) : ""));
}

}  // namespace

std::string quota_standing(const Words& words, const JobState& job, ReasonCode code) {
  if (is_quota_reason(code)) return {};
  const State& state = words.state();
  const Amounts asked = least_amounts(state, job.spec);
  const std::size_t dim = asked[kDimGpu] > 0 ? kDimGpu : kDimCpu;
  QueueId id = job.queue;
  while (id != state.root() && !state.queue(id).guaranteed.states(dim)) id = state.queue(id).parent;
  if (id == state.root()) {
    return dim == kDimGpu ? words.queue(job.queue) + " has no guarantee, so the job would borrow" : std::string();
  }
  const QueueState& queue = state.queue(id);
  const std::string uses = words.queue(id) + " uses " + amount_text(dim, queue.usage[dim]) + " of its guaranteed " +
                           quantity_text(state, dim, queue.guaranteed.amounts[dim]);
  if (would_be_within(state, id, asked)) return "fine: " + uses;
  return uses + ", so the job would borrow " + counted(dim, asked[dim]);
}

std::vector<std::string> further_facts(State& state, const Words& words, const JobState& job, const Reason& reason) {
  Facts facts;
  if (job.nomination) facts = victims_by_name(words, job);
  if (job.spec.deadline) {
    facts.push_back("deadline " + words.time(*job.spec.deadline) + "; urgent from " +
                    words.time(state.urgent_from(job.spec)));
  }
  if (job.is_parent()) return facts;
  add_quota_path(state, job, reason, facts);
  add_free_room(state, job, facts);
  for (std::string& rule : pool_rules(words, job)) facts.push_back(std::move(rule));
  if (const auto level = weakest_level(job.spec); level && *level != GpuLevel::kWhole)
    facts.push_back("GPUs at level " + std::string(name_of(*level)) + ": " + std::string(isolation_text(*level)));
  add_quota_aside(state, words, job, reason, facts);
  add_reservation(words, job, facts);
  add_expected_run(state, job, facts);
  return facts;
}

}  // namespace berth::explain
