#include "state/state.h"

#include <algorithm>

#include "model/gpu_model.h"

namespace berth::state {

State::State() {
  QueueState root;
  root.id = QueueId(0);
  queues_.push_back(std::move(root));
  queue_paths_.emplace("", QueueId(0));
  trust_domains_.emplace_back();  // the trust domain of queues that name none
  queues_[0].trust_domain = TrustDomainId(0);
  configure_quota_paths();
}

namespace {

// Returns true if the event changes nothing that is bound, nominated or allowed, and adds no possible victim. Such an
// event activates at most the class of its own job.
bool changes_nothing_held(const Event& event) {
  return std::holds_alternative<JobSubmitted>(event) || std::holds_alternative<JobHoldChanged>(event) ||
         std::holds_alternative<JobCancelRequested>(event) || std::holds_alternative<JobRequeued>(event) ||
         std::holds_alternative<TaskStarted>(event) || std::holds_alternative<TaskExited>(event) ||
         std::holds_alternative<CheckpointReported>(event) || std::holds_alternative<StopForced>(event) ||
         std::holds_alternative<CycleRan>(event) || std::holds_alternative<FragmentationAlarm>(event) ||
         std::holds_alternative<StartsSought>(event) || std::holds_alternative<ServiceUpdated>(event) ||
         std::holds_alternative<MoveOrdered>(event) || std::holds_alternative<NodeImagesChanged>(event) ||
         std::holds_alternative<ClockConfirmed>(event) || std::holds_alternative<TokenCreated>(event) ||
         std::holds_alternative<TokenRevoked>(event) || std::holds_alternative<PricesApplied>(event) ||
         std::holds_alternative<MonthClosed>(event) || std::holds_alternative<BillCorrected>(event) ||
         std::holds_alternative<RoleBound>(event) || std::holds_alternative<SubjectBlocked>(event) ||
         std::holds_alternative<RulesSet>(event) || std::holds_alternative<AccessDenied>(event) ||
         std::holds_alternative<LogRead>(event) || std::holds_alternative<SignedIn>(event) ||
         std::holds_alternative<QuantityReported>(event) || std::holds_alternative<JobSignalled>(event) ||
         std::holds_alternative<LogRestored>(event) || std::holds_alternative<NodeBlamed>(event) ||
         std::holds_alternative<ShellOpened>(event) || std::holds_alternative<ShellEnded>(event);
}

// Returns true if the event adds possible victims although nothing is released.
bool offers_victims(const Event& event) {
  return std::holds_alternative<JobPriorityChanged>(event) || std::holds_alternative<StopCancelled>(event);
}

}  // namespace

void State::apply(const EventRecord& record) {
  BERTH_CHECK(record.seq == last_seq_ + 1);
  BERTH_CHECK(transactions_ == 0);  // what a transaction releases is not marked as freed
  last_seq_ = record.seq;
  now_ = std::max(now_, record.time);
  std::visit([this](const auto& event) { on(event); }, record.event);
  note_loads();
  if (!changes_nothing_held(record.event)) waits_.mark_changed();
  if (offers_victims(record.event)) waits_.mark_victims_available();
}

const NodeState* State::node_named(std::string_view name) const {
  const auto found = identities_.named(name);
  return found ? &node(*found) : nullptr;
}

const NodeState* State::node_of_machine(std::string_view machine) const {
  const auto found = identities_.of_machine(machine);
  return found ? &node(*found) : nullptr;
}

const NodeState* State::node_of_gpu(std::string_view uuid) const {
  const auto found = identities_.of_gpu(uuid);
  return found ? &node(*found) : nullptr;
}

const QueueState* State::queue_at(std::string_view path) const {
  const auto found = queue_paths_.find(path);
  if (found == queue_paths_.end() || queues_[found->second.index()].removed) return nullptr;
  return &queues_[found->second.index()];
}

std::string_view State::present_path(std::string_view path) const {
  const auto former = former_paths_.find(path);
  return former == former_paths_.end() || queue_at(path) != nullptr ? path : queue(former->second).path;
}

bool may_be_of(const TaskRequest& request, const GpuModelState& model) {
  const auto& names = request.gpu_models;
  return names.empty() || std::find(names.begin(), names.end(), model.name) != names.end();
}

bool accepts(const TaskRequest& request, const GpuModelState& model) {
  if (!may_be_of(request, model) || (request.gpu_models.empty() && is_resource_model(model.name))) return false;
  if (request.mig_profile.empty()) return model.mig == nullptr;
  const MigProfile* profile = model.mig == nullptr ? nullptr : model.mig->profile_named(request.mig_profile);
  return profile != nullptr && model.mig->milli_of(*profile) == request.gpu_milli;
}

std::optional<GpuModelId> State::gpu_model_named(std::string_view name) const {
  for (std::size_t i = 0; i < models_.size(); ++i) {
    if (models_[i].name == name) return GpuModelId(static_cast<std::uint16_t>(i));
  }
  return std::nullopt;
}

const KeyEntry* State::key_entry(std::string_view user, std::string_view key) const {
  std::string name(user);
  name.append("\n").append(key);
  const auto found = keys_.find(name);
  return found == keys_.end() ? nullptr : &found->second;
}

JobState& State::existing(JobId id) {
  JobState* job = jobs_.find(id);
  BERTH_CHECK(job != nullptr);
  return *job;
}

void State::on(const CycleRan&) {}

void State::on(const FragmentationAlarm& event) { fragmentation_alarm_ = event.raised; }

}  // namespace berth::state
