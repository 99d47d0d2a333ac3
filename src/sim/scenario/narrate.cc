// Turns events into the output of a scenario: one line each, and none for events that only prepare others.

#include <algorithm>
#include <map>
#include <utility>

#include "model/document/quantity.h"
#include "sim/scenario/stage.h"

namespace berth::sim {

namespace {

std::string stamp(Timestamp time) {
  std::string text = duration_text(time.ms - kBegin.ms);
  text.resize(std::max<std::size_t>(text.size() + 1, 8), ' ');
  return text;
}

std::string gpus_text(const TaskPlacement& placement) {
  if (placement.gpus.empty()) return {};
  const std::string instance = placement.slices == 0 ? "" : ":" + slices_text(placement.slices);
  std::string text = "[" + ranges_text(placement.gpus) + instance + "]";
  if (placement.gpu_milli < kMilli && placement.slices == 0) text += "*" + std::to_string(placement.gpu_milli) + "m";
  return text;
}

std::string tasks_text(std::uint32_t count) { return std::to_string(count) + (count == 1 ? " task" : " tasks"); }

std::string counted(std::int64_t milli, const std::string& noun) {
  return document::milli_text(milli) + " " + noun + (milli == kMilli ? "" : "s");
}

std::string guarantee_text(const ResourceAmounts& amounts) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (amounts.gpu_milli) add(counted(*amounts.gpu_milli, "GPU"));
  if (amounts.cpu_milli) add(counted(*amounts.cpu_milli, "CPU"));
  if (amounts.memory_mib) add(document::memory_text(*amounts.memory_mib));
  for (const auto& [model, milli] : amounts.model_gpu_milli) add(counted(milli, model + " GPU"));
  return text;
}

// "grant of a: 80 % used, 6.4 of 8 GPU-hours"
std::string mark_text(const BudgetMarked& mark, const state::State& state) {
  const auto& budget = state.queue_at(mark.queue)->budget(mark.of);
  const bool money = budget && budget->config.is_money();
  const auto amount = [&](std::int64_t n) { return money ? money_text(n) : document::milli_text(n); };
  const std::string used =
      amount(mark.used) + " of " + amount(mark.limit) + " " + (money ? state.prices().currency : "GPU-hours");
  const std::string head = std::string(name_of(mark.of)) + " of " + mark.queue;
  if (mark.ended) return head + " has ended, " + used + " were used";
  if (mark.percent == 0) return head + " is set back, " + used + " are used";
  return head + ": " + std::to_string(mark.percent) + " % are used, " + used;
}

// Returns the job whose backfill reservation ends with the event.
JobId job_without_reservation(const Event& event) {
  if (const auto* nominated = std::get_if<Nominated>(&event)) return nominated->job;
  if (const auto* started = std::get_if<AttemptStarted>(&event)) return started->job;
  if (const auto* unheld = std::get_if<ReservationDropped>(&event)) return unheld->job;
  if (const auto* put_off = std::get_if<JobHoldChanged>(&event); put_off != nullptr && put_off->held)
    return put_off->job;
  if (const auto* finished = std::get_if<JobFinished>(&event)) return finished->job;
  return {};
}

}  // namespace

std::string failed_text(const NodeSpec& node) {
  std::vector<std::uint8_t> failed;
  for (std::uint8_t g = 0; g < node.gpus.size(); ++g) {
    if (!node.gpus[g].healthy) failed.push_back(g);
  }
  return failed.empty() ? "" : "; failed GPUs " + ranges_text(failed);
}

namespace {

// "others use GPUs 6-7, 4 CPUs, 8GiB, 3 pods"
std::string foreign_text(const ForeignUse& use) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "others use " : ", ") + part; };
  if (!use.gpus.empty()) add("GPUs " + ranges_text(use.gpus));
  if (use.cpu_milli > 0) add(counted(use.cpu_milli, "CPU"));
  if (use.memory_mib > 0) add(document::memory_text(use.memory_mib));
  for (const auto& [name, amount] : use.countables) add(std::to_string(amount) + " " + name);
  return text.empty() ? "others use nothing" : text;
}

std::string images_list(const std::vector<std::string>& images) {
  std::string text;
  for (const std::string& image : images) text += (text.empty() ? "" : ", ") + image;
  return text;
}

std::string change_text(const NodeImagesChanged& event) {
  const std::string pulled = event.pulled.empty() ? "" : " has pulled " + images_list(event.pulled);
  const std::string dropped = event.dropped.empty() ? "" : " has dropped " + images_list(event.dropped);
  return pulled + (pulled.empty() || dropped.empty() ? "" : " and") + dropped;
}

}  // namespace

std::string images_text(const NodeSpec& node) {
  if (!node.containers) return "";
  return "; runs containers" + (node.images.empty() ? "" : ", has " + images_list(node.images));
}

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

// What a charge has gained or lost since it was last told: "x is now within the guarantee of queue a",
// "x now borrows in queue p/b". A scale-up is a charge of its own.
std::string Stage::promoted_text(const ChargePromoted& event, const state::State& durable) {
  std::uint64_t& within = charges_.at(event.job).at(event.charge).within;
  const std::uint64_t lost = within & ~event.within;
  const std::uint64_t changed = lost != 0 ? lost : event.within & ~within;
  within = event.within;
  const state::JobState* job = durable.job(event.job);  // null if the job has finished in the same batch
  const std::vector<QueueId> path = job == nullptr ? std::vector<QueueId>() : durable.path_to(job->queue);
  const auto names_of_changed = [&](bool guaranteed) {
    std::string queues;
    for (std::size_t depth = 1; depth < path.size(); ++depth) {
      const state::QueueState& queue = durable.queue(path[depth]);
      if ((changed >> depth & 1U) != 0 && (queue.guaranteed.stated != 0 || !guaranteed))
        queues += (queues.empty() ? "" : " and ") + queue.path;
    }
    return queues;
  };
  std::string queues = names_of_changed(true);
  if (queues.empty()) queues = names_of_changed(false);  // a guarantee that is gone by now
  const std::string what = (event.charge == 0 ? "" : "a scale-up of ") + name_of_job(event.job);
  return what + (lost != 0 ? " now borrows" + (queues.empty() ? "" : " in queue " + queues)
                           : " is now within the guarantee" + (queues.empty() ? "" : " of queue " + queues));
}

// "asked to stop: reclaim for y". A job that berth cancels ends with its service or array, or for an update.
std::string Stage::stop_text(const StopBegan& event, const state::State& durable) const {
  std::string text =
      event.keep == 0 ? " is asked to stop: " : " is asked to scale down to " + tasks_text(event.keep) + ": ";
  if (event.cause == StopCause::kUser && cancelled_by_berth_.contains(event.job)) {
    const state::JobState* job = durable.job(event.job);
    const state::JobState* parent = job == nullptr ? nullptr : durable.job(job->parent);
    if (parent == nullptr) return text + "cancelled";
    return text + (parent->cancel_requested ? "cancelled with " : "update of ") + name_of_job(parent->id);
  }
  text += event.cause == StopCause::kUser ? "cancelled" : std::string(name_of(event.cause));
  const bool for_another = event.cause == StopCause::kPreempt || event.cause == StopCause::kReclaim ||
                           event.cause == StopCause::kConsolidate;
  return text + (for_another && event.preemptor.valid() ? " for " + name_of_job(event.preemptor) : "");
}

std::string Stage::update_text(const ServiceUpdated& event) {
  std::uint32_t& known = generations_[event.job];
  const bool same = std::exchange(known, event.generation) == event.generation;
  return name_of_job(event.job) +
         (same ? " is updated; its replicas run on" : " is updated to version " + std::to_string(event.generation));
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
  told_reservations_.erase(job_without_reservation(event));
  if (const auto* e = std::get_if<NodeStatusChanged>(&event)) {
    line("node " + durable.node(e->node).spec.name + " is " + std::string(name_of(e->status)) +
         (e->loss_deferred || e->removed ? ", " + e->why : ""));
  } else if (const auto* removed = std::get_if<NodeRemoved>(&event)) {
    line("node " + durable.node(removed->node).spec.name + " is no more part of the fleet");
  } else if (const auto* blamed = std::get_if<NodeBlamed>(&event)) {
    line(name(blamed->job) + " blames node " + durable.node(blamed->node).spec.name);
  } else if (const auto* cordoned = std::get_if<NodeCordoned>(&event); cordoned != nullptr && !cordoned->why.empty()) {
    line("node " + durable.node(cordoned->node).spec.name +
         (cordoned->cordoned ? " is cordoned: " : " is uncordoned: ") + cordoned->why);
  } else if (const auto* job = std::get_if<JobSubmitted>(&event); job != nullptr && !job->broken_rules.empty()) {
    std::string rules;
    for (const std::string& rule : job->broken_rules) rules += (rules.empty() ? "" : ", ") + rule;
    line(name(job->job) + " is accepted, and breaks the rules that are not enforced: " + rules);
  } else if (const auto* e2 = std::get_if<NodeRegistered>(&event)) {
    line("node " + e2->spec.name + (e2->lease == 1 ? " joins" : " is back") +
         (e2->renamed_from.empty() ? "" : " (it was " + e2->renamed_from + ")") + failed_text(e2->spec) +
         images_text(e2->spec) + (e2->foreign == ForeignUse() ? "" : "; " + foreign_text(e2->foreign)));
  } else if (const auto* e3 = std::get_if<GpuHealthChanged>(&event)) {
    line("GPU " + std::to_string(e3->gpu) + " of " + durable.node(e3->node).spec.name +
         (e3->healthy         ? " is healthy again"
          : e3->fenced        ? std::string(" is fenced") + (e3->failed ? " and failed: " : ": ") + e3->why
          : !e3->user.empty() ? " is no longer fenced, but failed"
                              : " fails"));
  } else if (const auto* foreign = std::get_if<ForeignUseChanged>(&event)) {
    line("node " + durable.node(foreign->node).spec.name + ": " + foreign_text(foreign->use));
  } else if (const auto* images = std::get_if<NodeImagesChanged>(&event)) {
    line("node " + durable.node(images->node).spec.name + change_text(*images));
  } else if (const auto* e4 = std::get_if<Nominated>(&event)) {
    std::string victims;
    for (std::size_t i = 0; i < e4->victims.size(); ++i) {
      victims += (victims.empty() ? " " : ", ") + name(e4->victims[i]);
      if (!e4->keeps.empty() && e4->keeps[i] > 0) victims += " scaled down to " + tasks_text(e4->keeps[i]);
    }
    line(name(e4->job) + " is nominated on " + places_text(e4->placements) + " (" +
         (victims.empty() ? "to start again after its move" : std::string(name_of(e4->cause)) + " from" + victims) +
         ")");
  } else if (const auto* ordered = std::get_if<MoveOrdered>(&event)) {
    std::string nodes;
    for (const NodeId node : ordered->off) nodes += (nodes.empty() ? "" : ", ") + durable.node(node).spec.name;
    line(name(ordered->job) + " is ordered to move off " + nodes +
         (ordered->lose_work ? ", even if its work is lost" : ""));
  } else if (const auto* moves = std::get_if<MoveNominated>(&event)) {
    line(name(moves->job) + " will move to " + places_text(moves->placements));
  } else if (const auto* e5 = std::get_if<NominationDropped>(&event)) {
    line("nomination of " + name(e5->job) + " withdrawn: " + e5->why);
  } else if (const auto* e6 = std::get_if<AttemptStarted>(&event)) {
    line(name(e6->job) + (e6->attempt == 1 ? " starts on " : " starts again on ") + places_text(e6->placements) +
         (e6->guaranteed ? ", within its guarantee" : ", borrowed"));
    charges_[e6->job] = {{0, e6->within}};
    tasks_[e6->job] = e6->placements.size();
  } else if (const auto* e7 = std::get_if<ChargePromoted>(&event)) {
    line(promoted_text(*e7, durable));
  } else if (const auto* e8 = std::get_if<TaskExited>(&event)) {
    if (e8->code != 0) {
      line("task " + std::to_string(e8->task) + " of " + name(e8->job) + " ends: " + std::string(name_of(e8->reason)) +
           ", code " + std::to_string(e8->code));
    }
  } else if (const auto* e9 = std::get_if<StopBegan>(&event)) {
    line(name(e9->job) + stop_text(*e9, durable) + ", grace " + duration_text(e9->deadline - record.time));
    if (e9->keep > 0)
      scaling_down_.insert(e9->job);
    else
      scaling_down_.erase(e9->job);
  } else if (const auto* cancel = std::get_if<JobCancelRequested>(&event)) {
    if (cancel->user == "berth") cancelled_by_berth_.insert(cancel->job);
  } else if (const auto* e10 = std::get_if<StopCancelled>(&event)) {
    line((scaling_down_.erase(e10->job) > 0 ? "scale-down of " : "eviction of ") + name(e10->job) + " cancelled");
  } else if (const auto* e11 = std::get_if<StopForced>(&event)) {
    line(name(e11->job) + " is killed where it still runs");
  } else if (const auto* e12 = std::get_if<CheckpointReported>(&event)) {
    line(name(e12->job) + " has saved step " + std::to_string(e12->step));
  } else if (const auto* e13 = std::get_if<AttemptEnded>(&event)) {
    line(name(e13->job) + " attempt " + std::to_string(e13->attempt) + " ends: " + std::string(name_of(e13->outcome)));
    scaling_down_.erase(e13->job);
  } else if (const auto* e14 = std::get_if<JobRequeued>(&event)) {
    line(name(e14->job) + " is requeued" +
         (e14->not_before > record.time ? ", not before " + duration_text(e14->not_before.ms - kBegin.ms) : ""));
  } else if (const auto* e16 = std::get_if<FragmentationAlarm>(&event)) {
    line(std::string(e16->raised ? "fragmentation is high" : "fragmentation is low again") +
         ": typical jobs cannot use " + document::milli_text(e16->unusable_milli) + " of " +
         counted(e16->idle_milli, "idle GPU"));
  } else if (const auto* held = std::get_if<ReservationMade>(&event)) {
    const std::string told = name(held->job) + " has a backfill reservation at " +
                             duration_text(held->start.ms - kBegin.ms) + " on " + places_text(held->placements);
    if (std::exchange(told_reservations_[held->job], told) != told)
      line(told);  // a recomputed reservation is often the same
  } else if (const auto* unheld = std::get_if<ReservationDropped>(&event)) {
    line("backfill reservation of " + name(unheld->job) + " dropped: " + unheld->why);
  } else if (const auto* e15 = std::get_if<JobFinished>(&event)) {
    line(name(e15->job) + " is finished: " + std::string(name_of(e15->outcome)) +
         (e15->message.empty() ? "" : " (" + e15->message + ")"));
  } else if (const auto* updated = std::get_if<ServiceUpdated>(&event)) {
    line(update_text(*updated));
  } else if (const auto* grown = std::get_if<AttemptGrown>(&event)) {
    line(name(grown->job) + " is scaled up onto " + places_text(grown->placements) +
         (grown->guaranteed ? ", within its guarantee" : ", borrowed"));
    charges_[grown->job].push_back({tasks_[grown->job], grown->within});
    tasks_[grown->job] += grown->placements.size();
  } else if (const auto* mark = std::get_if<BudgetMarked>(&event)) {
    line(mark_text(*mark, durable));
  } else if (const auto* guarantee = std::get_if<GuaranteeChanged>(&event)) {
    line("guarantee of queue " + guarantee->queue +
         (guarantee->restored ? " restored to " : " lowered from " + guarantee_text(guarantee->from) + " to ") +
         guarantee_text(guarantee->to) + " by guarantee_decay: the queue asked for " +
         (guarantee->restored ? "more than " + guarantee_text(guarantee->from)
                              : std::string("no more than half of it")));
  } else if (const auto* planned = std::get_if<MaintenancePlanned>(&event)) {
    std::string nodes;
    for (const NodeId node : planned->nodes) nodes += " " + durable.node(node).spec.name;
    line("maintenance " + planned->name + " is planned on" + nodes + " from " +
         duration_text(planned->from.ms - kBegin.ms) + " to " + duration_text(planned->to.ms - kBegin.ms));
  } else if (const auto* began = std::get_if<MaintenanceBegan>(&event)) {
    line("maintenance " + began->name + " begins");
  } else if (const auto* over = std::get_if<MaintenanceEnded>(&event)) {
    line("maintenance " + over->name + (over->cancelled ? " is cancelled" : " is over"));
  } else if (const auto* shrunk = std::get_if<AttemptShrunk>(&event)) {
    line(name(shrunk->job) + " is scaled down to " + tasks_text(shrunk->keep));
    scaling_down_.erase(shrunk->job);
    tasks_[shrunk->job] = shrunk->keep;
    std::erase_if(charges_[shrunk->job], [&](const Charge& charge) { return charge.first_task >= shrunk->keep; });
  }
}

}  // namespace berth::sim
