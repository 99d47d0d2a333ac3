// How a scenario tells events: one line each, in words, and nothing for those that only prepare others.

#include <algorithm>
#include <map>
#include <utility>

#include "model/document/quantity.h"
#include "sim/scenario/stage.h"

namespace berth::sim {

namespace {

constexpr std::int64_t kBeginMs = 86'400'000;

std::string stamp(Timestamp time) {
  std::string text = duration_text(time.ms - kBeginMs);
  text.resize(std::max<std::size_t>(text.size() + 1, 8), ' ');
  return text;
}

std::string gpus_text(const TaskPlacement& placement) {
  if (placement.gpus.empty()) return {};
  std::string text = "[" + ranges_text(placement.gpus) + "]";
  if (placement.gpu_milli < kMilli) text += "*" + std::to_string(placement.gpu_milli) + "m";
  return text;
}

}  // namespace

std::string Stage::name_of_job(JobId job) const {
  if (const auto found = names_.find(job); found != names_.end()) return found->second;
  if (const state::JobState* live = world_.durable().job(job)) return live->spec.name;
  return "job " + std::to_string(job.value());
}

std::string Stage::places_text(const std::vector<TaskPlacement>& placements) const {
  std::string text;
  for (const TaskPlacement& placement : placements) {
    text += (text.empty() ? "" : " ") + world_.durable().node(placement.node).spec.name + gpus_text(placement);
  }
  return text;
}

void Stage::on_records(std::span<const EventRecord> records, const state::State& durable) {
  for (const EventRecord& record : records) {
    if (const auto* submitted = std::get_if<JobSubmitted>(&record.event)) {
      names_.emplace(submitted->job, submitted->spec.name);
    }
  }
  for (const EventRecord& record : records) tell(record, durable);
}

void Stage::tell(const EventRecord& record, const state::State& durable) {
  const auto line = [&](const std::string& text) { say(stamp(record.time) + text); };
  const auto name = [&](JobId job) { return name_of_job(job); };
  const Event& event = record.event;
  if (const auto* e = std::get_if<NodeStatusChanged>(&event)) {
    line("node " + durable.node(e->node).spec.name + " is " + std::string(name_of(e->status)) +
         (e->loss_deferred ? ", " + e->why : ""));
  } else if (const auto* cordoned = std::get_if<NodeCordoned>(&event); cordoned != nullptr && !cordoned->why.empty()) {
    line("node " + durable.node(cordoned->node).spec.name +
         (cordoned->cordoned ? " is held out: " : " takes tasks again: ") + cordoned->why);
  } else if (const auto* e2 = std::get_if<NodeRegistered>(&event)) {
    line("node " + e2->spec.name + (e2->lease == 1 ? " joins" : " is back"));
  } else if (const auto* e3 = std::get_if<GpuHealthChanged>(&event)) {
    line("GPU " + std::to_string(e3->gpu) + " of " + durable.node(e3->node).spec.name +
         (e3->healthy ? " is well again" : " fails"));
  } else if (const auto* e4 = std::get_if<Nominated>(&event)) {
    std::string victims;
    for (std::size_t i = 0; i < e4->victims.size(); ++i) {
      victims += " " + name(e4->victims[i]);
      if (!e4->keeps.empty() && e4->keeps[i] > 0) victims += " down to " + std::to_string(e4->keeps[i]) + " tasks";
    }
    line(name(e4->job) + " is promised " + places_text(e4->placements) + " (" + std::string(name_of(e4->cause)) +
         " from" + victims + ")");
  } else if (const auto* e5 = std::get_if<NominationDropped>(&event)) {
    line(name(e5->job) + " loses its promise: " + e5->why);
  } else if (const auto* e6 = std::get_if<AttemptStarted>(&event)) {
    line(name(e6->job) + (e6->attempt == 1 ? " starts on " : " starts again on ") + places_text(e6->placements) +
         (e6->guaranteed ? ", within" : ", borrowed"));
  } else if (const auto* e7 = std::get_if<ChargePromoted>(&event)) {
    line(name(e7->job) + (e7->guaranteed ? " is now within" : " is now within at one more level"));
  } else if (const auto* e8 = std::get_if<TaskExited>(&event)) {
    if (e8->code != 0) {
      line("task " + std::to_string(e8->task) + " of " + name(e8->job) +
           " is over: " + std::string(name_of(e8->reason)) + ", code " + std::to_string(e8->code));
    }
  } else if (const auto* e9 = std::get_if<StopBegan>(&event)) {
    const std::string what = e9->keep == 0 ? " is asked to stop: "
                                           : " is asked to give back all but " + std::to_string(e9->keep) + " tasks: ";
    line(name(e9->job) + what + std::string(name_of(e9->cause)) +
         (e9->claimant.valid() ? " for " + name(e9->claimant) : "") + ", grace " +
         duration_text(e9->deadline - record.time));
  } else if (const auto* e10 = std::get_if<StopCancelled>(&event)) {
    line(name(e10->job) + " is let off");
  } else if (const auto* e11 = std::get_if<StopForced>(&event)) {
    line(name(e11->job) + " must leave now");
  } else if (const auto* e12 = std::get_if<CheckpointReported>(&event)) {
    line(name(e12->job) + " has saved step " + std::to_string(e12->step));
  } else if (const auto* e13 = std::get_if<AttemptEnded>(&event)) {
    line(name(e13->job) + " attempt " + std::to_string(e13->attempt) + " ends: " + std::string(name_of(e13->outcome)));
  } else if (const auto* e14 = std::get_if<JobRequeued>(&event)) {
    line(name(e14->job) + " waits again" +
         (e14->not_before > record.time ? ", not before " + duration_text(e14->not_before.ms - kBeginMs) : ""));
  } else if (const auto* e16 = std::get_if<FragmentationAlarm>(&event)) {
    line(std::string(e16->raised ? "fragmentation is high" : "fragmentation is low again") + ": " +
         document::milli_text(e16->unusable_milli) + " of " + document::milli_text(e16->idle_milli) +
         " idle GPUs are expected to be of no use");
  } else if (const auto* held = std::get_if<StartHeld>(&event)) {
    const std::string told = name(held->job) + " is held a start at " + duration_text(held->start.ms - kBeginMs) +
                             " on " + places_text(held->placements);
    if (std::exchange(told_holds_[held->job], told) != told) line(told);  // worked out again, it is often the same
  } else if (const auto* unheld = std::get_if<StartHoldDropped>(&event)) {
    line(name(unheld->job) + " is held no start any more: " + unheld->why);
  } else if (const auto* e15 = std::get_if<JobFinished>(&event)) {
    line(name(e15->job) + " is finished: " + std::string(name_of(e15->outcome)) +
         (e15->message.empty() ? "" : " (" + e15->message + ")"));
  } else if (const auto* updated = std::get_if<ServiceUpdated>(&event)) {
    line(name(updated->job) + " has version " + std::to_string(updated->generation));
  } else if (const auto* grown = std::get_if<AttemptGrown>(&event)) {
    line(name(grown->job) + " grows to " + places_text(grown->placements) +
         (grown->guaranteed ? ", within" : ", borrowed"));
  } else if (const auto* shrunk = std::get_if<AttemptShrunk>(&event)) {
    line(name(shrunk->job) + " goes on with " + std::to_string(shrunk->keep) +
         (shrunk->keep == 1 ? " task" : " tasks"));
  }
}

}  // namespace berth::sim
