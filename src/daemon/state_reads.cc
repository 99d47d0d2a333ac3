#include "daemon/state_reads.h"

#include <algorithm>
#include <set>

#include "explain/queue_position.h"
#include "explain/why.h"

namespace berth::daemon {
namespace {

Error no_such_queue(const std::string& path) { return not_found("no such queue '" + path.substr(0, 200) + "'"); }

// Includes lost nodes. Simulated ones are never removed.
std::set<std::string> simulated_models(const state::State& state) {
  std::set<std::string> models;
  for (const state::NodeState& node : state.nodes()) {
    for (const Gpu& gpu : node.spec.gpus) {
      if (gpu.simulated) models.insert(gpu.model);
    }
  }
  return models;
}

}  // namespace

explain::Viewer viewer_of(const state::State& state, const policy::Subject& subject) {
  explain::Viewer viewer = explain::Viewer::sees_nothing();
  for (const RoleBinding& binding : subject.roles) {
    const state::QueueState* queue = state.queue_at(binding.queue);
    const policy::Reach reach = policy::reach_of(binding.role, policy::Verb::kSeeJob);
    if (queue == nullptr || reach == policy::Reach::kNone) continue;
    if (reach == policy::Reach::kAll && queue->id == state.root()) return explain::Viewer::sees_all();
    if (reach == policy::Reach::kAll) viewer.add(queue->id, {});
    if (reach == policy::Reach::kOwn && !subject.user.empty()) viewer.add(queue->id, subject.user);
  }
  return viewer;
}

WhyAnswer explain_job(state::State& state, JobId job, const policy::Subject& viewer, Timestamp now) {
  return explain::why(state, job, now, viewer_of(state, viewer)).answer;
}

Result<std::vector<std::string>> share_in_words(const state::State& state, const std::string& path, Timestamp now) {
  const state::QueueState* queue = state.queue_at(path);
  if (queue == nullptr) return no_such_queue(path);
  return explain::explain_share(state, *queue, now);
}

Result<api::UsageReport> usage_of(const state::State& state, const billing::Meter& meter, Timestamp from, Timestamp to,
                                  Timestamp now) {
  if (to < from) return invalid("usage: 'to' lies before 'from'");
  const Timestamp end = std::min(to, now);
  const Timestamp begin = std::min(std::max(from, meter.first_event()), end);
  const billing::Usage usage = meter.usage(begin, end);
  api::UsageReport report;
  report.from = usage.from;
  report.to = usage.to;
  report.idle_gpu_milli_ms = usage.idle;
  report.down_gpu_milli_ms = usage.down;
  report.foreign_gpu_milli_ms = usage.foreign;
  report.capacity_gpu_milli_ms = usage.capacity;
  const std::set<std::string> simulated = simulated_models(state);
  for (const billing::UsageRow& row : usage.rows) {
    if (row.gpu_milli_ms == 0) continue;  // tasks without GPUs
    const std::string& model = row.account.gpu_model;
    report.rows.push_back({row.account.queue, row.account.user, model, row.account.borrowed, row.gpu_milli_ms,
                           simulated.contains(model)});
  }
  return report;
}

Result<BillingFacts> facts_for_bill(const state::State& state, const api::BillQuestion& question, Timestamp now) {
  // A past month has the queues of that time, which may be gone or have other names: the bill tells.
  const bool present = question.month.empty() || question.month == month_at(now).name;
  if (present && state.queue_at(question.queue) == nullptr) return no_such_queue(question.queue);
  BillingFacts facts = billing_facts(state, now);
  facts.queue_is_gone = state.queue_at(question.queue) == nullptr;
  return facts;
}

}  // namespace berth::daemon
