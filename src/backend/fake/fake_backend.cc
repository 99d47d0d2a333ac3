#include "backend/fake/fake_backend.h"

#include <algorithm>
#include <utility>

namespace berth::backend {

namespace {

// How long after the grace of a kill a supervisor that hangs is ended with its task.
constexpr std::int64_t kHungMs = 10'000;

std::string text_of(const TaskKey& key) {
  return "job " + std::to_string(key.job.value()) + " attempt " + std::to_string(key.attempt) + " task " +
         std::to_string(key.task) + " incarnation " + std::to_string(key.incarnation);
}

std::int32_t gpu_milli_of(const StartTask& start) {
  for (const auto& [name, value] : start.env) {
    if (name == "BERTH_GPU_MILLI") return static_cast<std::int32_t>(std::stol(value));
  }
  return kMilli;
}

const std::string& node_of(const Effect& effect) {
  return std::visit([](const auto& one) -> const std::string& { return one.node; }, effect);
}

}  // namespace

FakeBackend::FakeBackend(std::uint64_t seed, ScriptFor script_for)
    : random_(seed), script_for_(std::move(script_for)) {}

std::uint32_t FakeBackend::index_of(const std::string& node) const {
  const auto found = names_.find(node);
  BERTH_CHECK(found != names_.end());
  return found->second;
}

void FakeBackend::breach(std::string what) {
  if (!violation_) violation_ = std::move(what);
}

void FakeBackend::schedule(Due due) {
  due.order = next_order_++;
  agenda_.push(due);
}

Timestamp FakeBackend::next_due() const { return agenda_.empty() ? Timestamp::never() : agenda_.top().when; }

void FakeBackend::advance(Timestamp now) {
  while (!agenda_.empty() && agenda_.top().when <= now) {
    const Due due = agenda_.top();
    agenda_.pop();
    happen(due);
  }
}

std::vector<Command> FakeBackend::take_reports() { return std::exchange(arrived_, {}); }

void FakeBackend::happen(const Due& due) {
  if (due.what == What::kDeliver) {
    const auto letter = letters_.find(due.letter);
    arrived_.push_back(std::move(letter->second));
    letters_.erase(letter);
    return;
  }
  if (due.what == What::kUnknown || due.what == What::kLeaseOver || due.what == What::kLost) {
    Node& node = nodes_[due.node];
    if (node.in_contact || node.silence != due.plan) return;
    if (due.what == What::kUnknown) {
      node.standing = Standing::kUnknown;
      arrived_.push_back(ReportNodeStatus{node.spec.name, NodeStatus::kUnknown, "no contact"});
    } else if (due.what == What::kLeaseOver) {
      if (node.alive) end_all_on(due.node, due.when, ExitReason::kNodeLost);
    } else {
      node.standing = Standing::kLost;
      node.waiting.clear();
      arrived_.push_back(ReportNodeStatus{node.spec.name, NodeStatus::kLost, "its lease and the kill time are over"});
    }
    return;
  }
  const auto found = executions_.find(due.key);
  if (found == executions_.end() || found->second.phase == Execution::Phase::kOver) return;
  Execution& execution = found->second;
  if (execution.hung && !(execution.killed && due.what == What::kExit)) return;
  switch (due.what) {
    case What::kStart:
      if (execution.phase == Execution::Phase::kStarting) become_live(execution, due.when);
      break;
    case What::kExit:
      if (execution.plan == due.plan) finish(execution, due.when, execution.reason, execution.code);
      break;
    case What::kTimeLimit:
      signal(execution, due.when);
      if (const Timestamp end = due.when + execution.grace_ms; execution.leaves_at > end) {
        plan_exit(execution, end, ExitReason::kTimeLimit, 124);
      } else {
        execution.reason = ExitReason::kTimeLimit;
        if (execution.code == 0) execution.code = 124;
      }
      break;
    case What::kAcknowledge:
    case What::kSave:
      if (execution.phase != Execution::Phase::kLive) break;
      report(execution.node, ReportCheckpoint{due.key.job, due.key.attempt, (due.when - execution.live_since) / 100},
             due.when);
      if (due.what == What::kSave && !execution.signalled) {
        Due next = due;
        next.when = due.when + execution.script.save_every_ms;
        schedule(next);
      }
      break;
    case What::kDeliver:
    case What::kUnknown:
    case What::kLeaseOver:
    case What::kLost:
      break;
  }
}

// --- nodes ---

void FakeBackend::add_node(const NodeSpec& spec, Timestamp now) {
  BERTH_CHECK(!names_.contains(spec.name));
  names_.emplace(spec.name, static_cast<std::uint32_t>(nodes_.size()));
  Node node;
  node.spec = spec;
  node.live_milli.resize(spec.gpus.size());
  nodes_.push_back(std::move(node));
  post(RegisterNode{spec}, now);
}

void FakeBackend::fall_silent(std::uint32_t index, Timestamp now) {
  Node& node = nodes_[index];
  if (!node.in_contact) return;
  node.in_contact = false;
  ++node.silence;
  const auto deadline = [&](What what, std::int64_t after) {
    schedule({now + after, 0, what, {}, index, node.silence, 0});
  };
  deadline(What::kUnknown, times_.unknown_after_ms);
  deadline(What::kLeaseOver, times_.lease_ms);
  deadline(What::kLost, times_.lease_ms + times_.kill_margin_ms);
}

void FakeBackend::speak_again(std::uint32_t index, Timestamp now) {
  Node& node = nodes_[index];
  node.in_contact = true;
  node.standing = Standing::kReady;
  node.removed = false;
  arrived_.push_back(RegisterNode{node.spec, node.foreign});
  for (Command& command : std::exchange(node.withheld, {})) post(std::move(command), now);
  for (const Effect& effect : std::exchange(node.waiting, {})) perform(effect, now);
}

void FakeBackend::lose_contact(const std::string& name, Timestamp now) { fall_silent(index_of(name), now); }

void FakeBackend::regain_contact(const std::string& name, Timestamp now) {
  const std::uint32_t index = index_of(name);
  if (nodes_[index].alive && !nodes_[index].in_contact) speak_again(index, now);
}

void FakeBackend::kill_node(const std::string& name, Timestamp now) {
  const std::uint32_t index = index_of(name);
  if (!nodes_[index].alive) return;
  fall_silent(index, now);
  nodes_[index].alive = false;
  end_all_on(index, now, ExitReason::kSupervisorLost);
}

void FakeBackend::fence_node(const std::string& name, Timestamp now) {
  kill_node(name, now);
  Node& node = nodes_[index_of(name)];
  node.standing = Standing::kLost;
  node.waiting.clear();
  ++node.silence;  // makes the deadlines of the node void
}

void FakeBackend::remove_node(const std::string& name, Timestamp now) {
  fence_node(name, now);
  nodes_[index_of(name)].removed = true;
  arrived_.push_back(ReportNodeStatus{name, NodeStatus::kLost, "it was taken out of the fleet", true});
}

void FakeBackend::boot_node(const std::string& name, Timestamp now) {
  const std::uint32_t index = index_of(name);
  if (nodes_[index].alive) return;
  nodes_[index].alive = true;
  speak_again(index, now);
}

void FakeBackend::rename_node(const std::string& name, const std::string& fresh, Timestamp now) {
  BERTH_CHECK(!names_.contains(fresh));
  const std::uint32_t index = index_of(name);
  BERTH_CHECK(nodes_[index].in_contact);
  names_.emplace(fresh, index);
  nodes_[index].spec.name = fresh;
  post(RegisterNode{nodes_[index].spec, nodes_[index].foreign}, now);
}

// Reports about nodes keep their order, so this one is neither delayed nor repeated. A silent node reports the health
// when it registers.
bool FakeBackend::set_gpu_health(const std::string& name, std::uint8_t gpu, bool healthy, Timestamp now) {
  Node& node = nodes_[index_of(name)];
  if (gpu >= node.spec.gpus.size() || node.spec.gpus[gpu].healthy == healthy) return false;
  node.spec.gpus[gpu].healthy = healthy;
  if (node.in_contact) post(ReportGpuHealth{name, gpu, healthy, "reported"}, now);
  return true;
}

// A silent node reports it when it registers.
bool FakeBackend::set_foreign(const std::string& name, ForeignReport use, Timestamp now) {
  Node& node = nodes_[index_of(name)];
  if (node.foreign == use) return false;
  node.foreign = std::move(use);
  if (node.in_contact) post(ReportForeignUse{name, node.foreign}, now);
  return true;
}

bool FakeBackend::set_images(const std::string& name, std::vector<std::string> images, Timestamp now) {
  Node& node = nodes_[index_of(name)];
  if (node.spec.images == images) return false;
  node.spec.images = std::move(images);
  if (node.in_contact) post(ReportNodeImages{name, node.spec.images}, now);
  return true;
}

void FakeBackend::end_all_on(std::uint32_t node, Timestamp now, ExitReason reason) {
  for (auto& [key, execution] : executions_) {
    if (execution.node != node || execution.phase == Execution::Phase::kOver) continue;
    finish(execution, now, reason, reason == ExitReason::kSupervisorLost ? 1 : 137);
  }
}

// --- reports ---

void FakeBackend::post(Command command, Timestamp when) {
  const std::uint64_t letter = next_letter_++;
  letters_.emplace(letter, std::move(command));
  schedule({when, 0, What::kDeliver, {}, 0, 0, letter});
}

void FakeBackend::report(std::uint32_t index, Command command, Timestamp now) {
  Node& node = nodes_[index];
  if (!node.in_contact) {
    node.withheld.push_back(std::move(command));
    return;
  }
  if (faults_.repeated_per_mille > 0 && random_.chance(faults_.repeated_per_mille)) {
    post(command, now + random_.between(0, faults_.longest_delay_ms));
  }
  const bool delayed = faults_.delayed_per_mille > 0 && random_.chance(faults_.delayed_per_mille);
  post(std::move(command), now + (delayed ? random_.between(0, faults_.longest_delay_ms) : 0));
}

void FakeBackend::report_exit(const Execution& execution, Timestamp now) {
  const TaskKey& key = execution.key;
  report(execution.node,
         ReportTaskExited{{key.job, key.attempt, key.task, key.incarnation, execution.reason, execution.code, {}}},
         now);
}

void FakeBackend::reconnect(Timestamp now) {
  arrived_.clear();
  for (Node& node : nodes_) {
    switch (node.standing) {
      case Standing::kReady:
        arrived_.push_back(RegisterNode{node.spec, node.foreign});
        break;
      case Standing::kUnknown:
        arrived_.push_back(ReportNodeStatus{node.spec.name, NodeStatus::kUnknown, "no contact"});
        break;
      case Standing::kLost:
        arrived_.push_back(
            ReportNodeStatus{node.spec.name, NodeStatus::kLost, "its lease and the kill time are over", node.removed});
        break;
    }
  }
  for (const auto& [key, execution] : executions_) {
    if (!nodes_[execution.node].in_contact) continue;  // its reports are still held back
    if (execution.phase == Execution::Phase::kLive) {
      report(execution.node, ReportTaskStarted{key.job, key.attempt, key.task, key.incarnation}, now);
    } else if (execution.phase == Execution::Phase::kOver) {
      report_exit(execution, now);
    }
  }
}

// --- tasks ---

void FakeBackend::perform(const Effect& effect, Timestamp now) {
  if (const auto* forget = std::get_if<ForgetTask>(&effect)) {
    do_effect(*forget, now);
    return;
  }
  Node& node = nodes_[index_of(node_of(effect))];
  if (node.standing == Standing::kLost) return;  // given up: a new effect must not reach it when it comes back
  if (!node.in_contact) {
    node.waiting.push_back(effect);
    return;
  }
  std::visit([&](const auto& one) { do_effect(one, now); }, effect);
}

void FakeBackend::do_effect(const StartTask& start, Timestamp now) {
  const auto [found, fresh] = executions_.try_emplace(start.key);
  Execution& execution = found->second;
  if (!fresh) return;
  execution.key = start.key;
  execution.node = index_of(start.node);
  const NodeSpec& spec = nodes_[execution.node].spec;
  for (const std::string& uuid : start.gpu_uuids) {
    const auto gpu = std::find_if(spec.gpus.begin(), spec.gpus.end(), [&](const Gpu& one) { return one.uuid == uuid; });
    if (gpu != spec.gpus.end()) execution.gpus.push_back(static_cast<std::uint8_t>(gpu - spec.gpus.begin()));
  }
  execution.gpu_milli = gpu_milli_of(start);
  execution.script = script_for_(start);
  execution.time_limit_ms = start.time_limit_ms;
  execution.grace_ms = start.grace_ms;
  execution.speaks = start.speaks;
  schedule({now + execution.script.start_delay_ms, 0, What::kStart, start.key, execution.node, 0, 0});
}

void FakeBackend::become_live(Execution& execution, Timestamp now) {
  if (!execution.script.starts) {
    finish(execution, now, ExitReason::kStartFailed, 127);
    return;
  }
  // P9: no other execution of this task, and no execution of another attempt of this job, may be alive.
  for (auto other = executions_.lower_bound(TaskKey{execution.key.job, 0, 0, 0});
       other != executions_.end() && other->first.job == execution.key.job; ++other) {
    if (other->second.phase != Execution::Phase::kLive) continue;
    if (other->first.attempt != execution.key.attempt || other->first.task == execution.key.task) {
      breach("P9: " + text_of(execution.key) + " started while " + text_of(other->first) + " was alive on " +
             node_name(other->second.node));
    }
  }
  Node& node = nodes_[execution.node];
  for (const std::uint8_t gpu : execution.gpus) {
    node.live_milli[gpu] += execution.gpu_milli;
    if (node.live_milli[gpu] > kMilli) {
      breach("P1: " + text_of(execution.key) + " runs on GPU " + std::to_string(gpu) + " of " + node.spec.name +
             " beside what already fills it");
    }
  }
  execution.phase = Execution::Phase::kLive;
  execution.live_since = now;
  ++live_;
  const TaskKey& key = execution.key;
  report(execution.node, ReportTaskStarted{key.job, key.attempt, key.task, key.incarnation}, now);
  if (execution.leaves_at.is_never() && execution.script.run_ms >= 0) {
    plan_exit(execution, now + execution.script.run_ms, ExitReason::kExited, execution.script.exit_code);
  }
  if (execution.speaks && execution.script.save_every_ms > 0) {
    schedule({now + execution.script.save_every_ms, 0, What::kSave, key, execution.node, 0, 0});
  }
  if (execution.time_limit_ms > 0) {
    schedule({now + execution.time_limit_ms, 0, What::kTimeLimit, key, execution.node, 0, 0});
  }
}

void FakeBackend::plan_exit(Execution& execution, Timestamp when, ExitReason reason, std::int32_t code) {
  execution.leaves_at = when;
  execution.reason = reason;
  execution.code = code;
  schedule({when, 0, What::kExit, execution.key, execution.node, ++execution.plan, 0});
}

void FakeBackend::signal(Execution& execution, Timestamp now) {
  if (execution.signalled || execution.hung) return;
  execution.signalled = true;
  const TaskScript& script = execution.script;
  if (execution.speaks && script.ack_after_ms >= 0) {
    schedule({now + script.ack_after_ms, 0, What::kAcknowledge, execution.key, execution.node, 0, 0});
  }
  if (script.leave_after_ms >= 0 && now + script.leave_after_ms < execution.leaves_at) {
    plan_exit(execution, now + script.leave_after_ms,
              script.leave_code == 0 ? ExitReason::kExited : ExitReason::kSignalled, script.leave_code);
  }
}

void FakeBackend::do_effect(const SignalTask& effect, Timestamp now) {
  const auto found = executions_.find(effect.key);
  if (found != executions_.end() && found->second.phase != Execution::Phase::kOver) signal(found->second, now);
}

void FakeBackend::do_effect(const KillTask& kill, Timestamp now) {
  const auto found = executions_.find(kill.key);
  if (found == executions_.end() || found->second.phase == Execution::Phase::kOver || found->second.killed) return;
  Execution& execution = found->second;
  execution.killed = true;
  if (execution.hung) return plan_exit(execution, now + kill.grace_ms + kHungMs, ExitReason::kSupervisorLost, 1);
  const Timestamp end = now + kill.grace_ms + execution.script.die_after_ms;
  if (end < execution.leaves_at) plan_exit(execution, end, ExitReason::kKilled, 137);
}

void FakeBackend::do_effect(const ForgetTask& forget, Timestamp) {
  const auto found = executions_.find(forget.key);
  if (found == executions_.end()) return;
  if (found->second.phase == Execution::Phase::kLive) {
    breach("P9: " + text_of(forget.key) + " was taken for over while it was alive on " + node_name(found->second.node));
    return;
  }
  executions_.erase(found);
}

void FakeBackend::finish(Execution& execution, Timestamp now, ExitReason reason, std::int32_t code) {
  if (execution.phase == Execution::Phase::kLive) {
    for (const std::uint8_t gpu : execution.gpus) nodes_[execution.node].live_milli[gpu] -= execution.gpu_milli;
    --live_;
  }
  execution.phase = Execution::Phase::kOver;
  execution.reason = reason;
  execution.code = code;
  report_exit(execution, now);
}

void FakeBackend::hang_supervisors(JobId job) {
  for (auto it = executions_.lower_bound(TaskKey{job, 0, 0, 0}); it != executions_.end() && it->first.job == job;
       ++it) {
    if (it->second.phase == Execution::Phase::kLive) it->second.hung = true;
  }
}

bool FakeBackend::exit_job(JobId job, std::int32_t code, Timestamp now) {
  bool any = false;
  for (auto it = executions_.lower_bound(TaskKey{job, 0, 0, 0}); it != executions_.end() && it->first.job == job;
       ++it) {
    if (it->second.phase != Execution::Phase::kLive || it->second.hung) continue;
    finish(it->second, now, ExitReason::kExited, code);
    any = true;
  }
  return any;
}

}  // namespace berth::backend
