#include "sim/simulate/run.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include "backend/fake/fake_backend.h"
#include "billing/meter.h"
#include "control/effects.h"
#include "control/iteration.h"
#include "sim/simulate/cycle_policy.h"
#include "sim/simulate/recorder.h"
#include "state/state.h"

namespace berth::sim {

namespace {

constexpr int kMostIterationsAtOnce = 10'000;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

enum class WithCycle { kNo, kYes };

void order_leaves_by(const AttainedServiceConfig& attained_service, ClusterConfig& config) {
  for (QueueConfig& queue : config.queues) {
    const bool leaf = std::none_of(config.queues.begin(), config.queues.end(),
                                   [&](const QueueConfig& other) { return other.path.starts_with(queue.path + "/"); });
    if (leaf) queue.attained_service = attained_service;
  }
}

// The control plane of the product around a policy, without a store: records are folded and then dropped.
class ControlPlane {
 public:
  explicit ControlPlane(const RunOrder& order) : view_(order.workload, submissions_), order_(order) {
    if (order.prices != nullptr) biller_.emplace(*order.prices, order.workload);
  }

  Result<void> start() {
    auto policy = make_cycle_policy(order_.policy, {order_.workload, submissions_, view_, order_.seed});
    if (!policy) return policy.error();
    policy_ = std::move(*policy);
    ClusterConfig config = order_.workload.config;
    if (auto known = check_watts(); !known) return known;
    if (order_.policy.scheduling.energy) state_watts(config);
    if (order_.policy.order == PolicyOrder::kBerth) {
      config.scheduling = order_.policy.scheduling;
      if (order_.policy.attained_service) order_leaves_by(*order_.policy.attained_service, config);
    }
    const std::vector<Command> commands = {ApplyConfig{std::move(config), "simulate"}};
    const control::Iteration iteration = run_iteration({}, commands, WithCycle::kNo);
    if (!iteration.replies.front()) return iteration.replies.front().error();
    if (biller_) {  // floors are paid for from here on
      for (const EventRecord& record : iteration.records) biller_->apply(record);
    }
    return {};
  }

  control::Iteration run_iteration(Timestamp now, const std::vector<Command>& commands, WithCycle with_cycle) {
    memory_.skip_cycle = with_cycle == WithCycle::kNo;
    return control::run_iteration(state_, now, commands, memory_, [this](state::State& state, Timestamp when) {
      return policy_->run_cycle(state, when);
    });
  }

  // Folds one event of an iteration. Requires: submissions were noted before.
  void fold(const EventRecord& record) {
    view_.on_record(record);
    policy_->on_record(record);
    meter_.apply(record);
    if (biller_) biller_->apply(record);
  }

  Result<std::vector<BookBill>> bills(Timestamp now) {
    if (!biller_) return std::vector<BookBill>();
    return biller_->bills(now);
  }

  // Returns the energy from the first event to this one.
  std::optional<EnergyUse> energy() const {
    if (order_.policy.watts.empty()) return std::nullopt;
    constexpr Int128 kMilliMsInHour = Int128{1000} * 3'600'000;
    Int128 busy = 0;
    Int128 idle = 0;
    for (const billing::FleetRow& row : meter_.usage(meter_.first_event(), meter_.now()).fleet) {
      for (const GpuModelConfig& model : order_.policy.watts) {
        if (model.name != row.gpu_model) continue;
        busy += (Int128{row.used_guaranteed} + row.used_borrowed) * model.watts;
        idle += (Int128{row.idle} + row.down) * model.idle_watts;
      }
    }
    return EnergyUse{static_cast<std::int64_t>(busy / kMilliMsInHour),
                     static_cast<std::int64_t>(idle / kMilliMsInHour)};
  }

  // Returns why the guarantee of the queue with this index is breached.
  Breach why_breached(std::size_t place) {
    return breach_of(state_, state_.queue_at(order_.workload.config.queues[place].path)->id);
  }

  const state::State& state() const { return state_; }
  Submissions& submissions() { return submissions_; }
  FleetView& view() { return view_; }
  const RunOrder& order() const { return order_; }
  // P12: every millisecond of every GPU is in exactly one account.
  std::optional<std::string> check_accounts() const { return meter_.check(); }

 private:
  // Refuses watts that are given for only some models of the fleet.
  Result<void> check_watts() const {
    const auto& models = order_.workload.gpu_models;
    const auto& watts = order_.policy.watts;
    if (watts.empty()) return {};
    std::string all;
    for (const std::string& model : models) all += (all.empty() ? "" : ", ") + model;
    const auto stated = [&](const std::string& name) {
      return std::any_of(watts.begin(), watts.end(), [&](const GpuModelConfig& one) { return one.name == name; });
    };
    if (watts.size() == models.size() && std::all_of(models.begin(), models.end(), stated)) return {};
    return invalid("policy " + order_.policy.name + ": energy.watts states other models than the fleet has: " + all);
  }

  // Sets the watts in the order of the state's GPU model ids.
  void state_watts(ClusterConfig& config) const {
    for (const std::string& name : order_.workload.gpu_models) {
      for (const GpuModelConfig& model : order_.policy.watts) {
        if (model.name == name) config.gpu_models.push_back(model);
      }
    }
  }

  Submissions submissions_;
  FleetView view_;
  const RunOrder& order_;
  std::unique_ptr<CyclePolicy> policy_;
  state::State state_;
  control::IterationMemory memory_;
  billing::Meter meter_;
  std::optional<RunBiller> biller_;
};

// --- by the clock ---

class ClockRun {
 public:
  explicit ClockRun(const RunOrder& order)
      : plane_(order),
        progress_(order.workload, plane_.submissions()),
        recorder_(order.workload, plane_.submissions(), plane_.view(), progress_, order.gantt),
        fleet_(order.seed, [this](const StartTask& start) { return progress_.script_for(start.key.job); }),
        by_submission_(order.workload.jobs.size()) {
    std::iota(by_submission_.begin(), by_submission_.end(), 0U);
    std::stable_sort(by_submission_.begin(), by_submission_.end(), [&](std::uint32_t a, std::uint32_t b) {
      return order.workload.jobs[a].submit_ms < order.workload.jobs[b].submit_ms;
    });
  }

  Result<RunResult> run() {
    if (auto started = plane_.start(); !started) return started.error();
    for (const NodeSpec& node : plane_.order().workload.nodes) fleet_.add_node(node, now_);
    while (true) {
      if (auto settled = reconcile(); !settled) return settled.error();
      recorder_.sample(now_.ms, [this](std::size_t place) { return plane_.why_breached(place); });
      const Timestamp next = std::min({next_submission(), fleet_.next_due(), wake_at_});
      if (next.is_never()) break;
      now_ = std::max(now_, next);
    }
    if (const auto wrong = plane_.check_accounts()) return Error{ErrorCode::kCorrupt, "P12: " + *wrong};
    if (const auto& wrong = fleet_.violation()) return Error{ErrorCode::kCorrupt, *wrong};
    RunResult result = recorder_.finish();
    result.energy = plane_.energy();
    auto bills = plane_.bills(now_);
    if (!bills) return bills.error();
    result.bills = std::move(*bills);
    return result;
  }

 private:
  Timestamp next_submission() const {
    if (next_job_ == by_submission_.size()) return Timestamp::never();
    return {plane_.order().workload.jobs[by_submission_[next_job_]].submit_ms};
  }

  // Returns the due commands: reports first, then submissions of this instant, so that a GPU that is released now can
  // be used now.
  std::vector<Command> commands_due() {
    std::vector<Command> commands = fleet_.take_reports();
    const Workload& workload = plane_.order().workload;
    reports_ = commands.size();
    submitted_.clear();
    while (next_submission() <= now_) {
      const std::uint32_t index = by_submission_[next_job_++];
      if (workload.jobs[index].fits_empty_fleet) {
        JobSpec spec = spec_of(workload, workload.jobs[index]);
        if (plane_.order().policy.newest_victims) spec.checkpoint.on_signal = true;
        commands.emplace_back(SubmitJob{std::move(spec), {}});
        submitted_.push_back(index);
      } else {
        recorder_.refuse(index, "would not fit the empty fleet");
        through();
      }
    }
    return commands;
  }

  void through() {
    if (plane_.order().done != nullptr) plane_.order().done->fetch_add(1, std::memory_order_relaxed);
  }

  // Notes the job ids: accepted submissions get them in their order.
  void note_submissions(const control::Iteration& iteration) {
    for (std::size_t i = 0; i < submitted_.size(); ++i) {
      if (iteration.replies[reports_ + i]) {
        plane_.submissions().add(submitted_[i]);
      } else {
        recorder_.refuse(submitted_[i], iteration.replies[reports_ + i].error().message);
        through();
      }
    }
  }

  void fold(const control::Iteration& iteration) {
    for (const EventRecord& record : iteration.records) {
      plane_.fold(record);
      progress_.on_record(record);
      recorder_.on_record(record);
      if (std::holds_alternative<JobFinished>(record.event)) through();
    }
    for (const Effect& effect : control::effects_of(plane_.state(), iteration.records)) fleet_.perform(effect, now_);
  }

  // Runs commands and cycle as two iterations, because a policy must see the events of the commands before it plans.
  Result<void> reconcile() {
    for (int iterations = 0; iterations < kMostIterationsAtOnce; ++iterations) {
      fleet_.advance(now_);
      const control::Iteration commands = plane_.run_iteration(now_, commands_due(), WithCycle::kNo);
      note_submissions(commands);
      fold(commands);
      const control::Iteration cycle = plane_.run_iteration(now_, {}, WithCycle::kYes);
      fold(cycle);
      fleet_.advance(now_);
      wake_at_ = cycle.wake_at;
      if (!cycle.again && !fleet_.has_reports() && wake_at_ > now_) return {};
    }
    return Error{ErrorCode::kUnavailable, "P13: the loop does not come to rest at " + std::to_string(now_.ms) + " ms"};
  }

  ControlPlane plane_;
  Progress progress_;
  Recorder recorder_;
  backend::FakeBackend fleet_;
  std::vector<std::uint32_t> by_submission_;
  std::size_t next_job_ = 0;
  std::size_t reports_ = 0;
  std::vector<std::uint32_t> submitted_;
  Timestamp now_;
  Timestamp wake_at_ = Timestamp::never();
};

// --- in a given order ---

class OrderRun {
 public:
  explicit OrderRun(const RunOrder& order) : plane_(order) {}

  Result<RunResult> run(const std::vector<std::size_t>& arrivals) {
    if (auto started = plane_.start(); !started) return started.error();
    std::vector<Command> nodes;
    for (const NodeSpec& node : plane_.order().workload.nodes) nodes.emplace_back(RegisterNode{node});
    fold(plane_.run_iteration({}, nodes, WithCycle::kNo));
    result_.asked = workload().asked;
    for (const std::size_t index : arrivals) {
      const auto job = static_cast<std::uint32_t>(index);
      const std::optional<std::string> refused = arrive(job);
      result_.arrived.push_back({job, !refused.has_value()});
      if (refused) {
        ++result_.dropped;
        count_refusal(result_, *refused);
      }
      result_.arrivals.push_back({arrived_, workload().capacity_gpu_milli - plane_.view().idle_gpu_milli(),
                                  plane_.view().fragmented_gpu_milli()});
      if (plane_.order().done != nullptr) plane_.order().done->fetch_add(1, std::memory_order_relaxed);
    }
    if (const auto wrong = plane_.check_accounts()) return Error{ErrorCode::kCorrupt, "P12: " + *wrong};
    result_.capacity_gpu_milli = workload().capacity_gpu_milli;
    for (const WorkloadQueue& queue : workload().queues) result_.queues.push_back(queue.tenant);
    return std::move(result_);
  }

 private:
  const Workload& workload() const { return plane_.order().workload; }

  void fold(const control::Iteration& iteration) {
    for (const EventRecord& record : iteration.records) plane_.fold(record);
  }

  // Tries the job once and cancels it if it did not start in the cycle after its submission. Returns why it did not
  // start.
  std::optional<std::string> arrive(std::uint32_t index) {
    const WorkloadJob& job = workload().jobs[index];
    arrived_ += job.gpu_milli;
    if (!job.fits_empty_fleet) return "would not fit the empty fleet";
    const control::Iteration submitted =
        plane_.run_iteration({}, {SubmitJob{spec_of(workload(), job), {}}}, WithCycle::kNo);
    const auto& reply = submitted.replies.front();
    if (!reply) return reply.error().message;
    plane_.submissions().add(index);
    fold(submitted);
    fold(plane_.run_iteration({}, {}, WithCycle::kYes));
    if (plane_.state().job(reply->job)->attempt) return std::nullopt;
    fold(plane_.run_iteration({}, {CancelJob{reply->job, "simulate"}}, WithCycle::kNo));
    return "no room when it came";
  }

  ControlPlane plane_;
  std::int64_t arrived_ = 0;
  RunResult result_;
};

Result<RunResult> labelled(Result<RunResult> result, const RunOrder& order,
                           std::chrono::steady_clock::time_point start) {
  if (!result) return result;
  result->policy = order.policy.name;
  result->seed = order.seed;
  result->wall_s = seconds_since(start);
  return result;
}

}  // namespace

Result<RunResult> run_by_clock(const RunOrder& order) {
  const auto start = std::chrono::steady_clock::now();
  return labelled(ClockRun(order).run(), order, start);
}

Result<RunResult> run_in_order(const RunOrder& order, const std::vector<std::size_t>& arrivals) {
  const auto start = std::chrono::steady_clock::now();
  return labelled(OrderRun(order).run(arrivals), order, start);
}

}  // namespace berth::sim
