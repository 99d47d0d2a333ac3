#include "sim/world/simulation.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "base/hash.h"
#include "explain/why.h"
#include "sim/world/replay.h"
#include "store/hash_chain.h"

namespace berth::sim {

namespace {

constexpr Timestamp kBegin{86'400'000};
constexpr std::int64_t kMonthEndMs = 31 * 86'400'000LL;  // of January 1970
constexpr std::int64_t kSecond = 1000;
constexpr std::int64_t kHour = 3'600'000;

}  // namespace

Simulation::Simulation(std::uint64_t seed, SimulationShape shape)
    : seed_(seed),
      shape_(shape),
      random_(seed),
      world_(seed, [this](const StartTask& start) { return script_of(start); }),
      checker_(world_.fleet()) {
  world_.set_witness(&checker_);
  if (shape_.audit_every_event) world_.audit_every_event();
  // Most lives take some hours. Where there are budgets, every other one sees the month end.
  if (has_budgets() && seed_ % 4 == 2)
    world_.advance_to(Timestamp{kMonthEndMs - static_cast<std::int64_t>(seed_ % 5 + 1) * kHour / 2});
  else
    world_.advance_to(kBegin);
  if (shape_.faults) {
    if (random_.chance(500)) world_.fleet().set_report_faults({100, 200, random_.between(1, 30) * kSecond});
    if (random_.chance(300)) world_.fleet().set_times({5 * kSecond, 20 * kSecond, 5 * kSecond});
  }
  if (has_budgets()) {
    PriceBook book{"EUR", {}};
    book.periods.emplace_back().gpus = {{"A100", 1'000'000, 1'500'000, {}}, {"H100", 2'000'000, 3'000'000, {}}};
    world_.send(ApplyPrices{std::move(book), "operator"});
    world_.reconcile();
  }
  while (world_.durable().config_version() == 0) {  // some configurations contradict themselves and are refused
    config_ = random_config();
    world_.send(ApplyConfig{config_, "operator"});
    world_.reconcile();
  }
  build_nodes();
}

const std::string& Simulation::some_node() { return random_.pick(node_names_); }

// --- jobs ---

// Returns how a task behaves. It depends only on its name and the seed, so that a restart changes nothing.
backend::TaskScript Simulation::script_of(const StartTask& start) const {
  Random random(Hasher().add(seed_).add(start.key.job.value()).add(start.key.attempt).digest());
  backend::TaskScript script;
  script.start_delay_ms = random.between(0, 5) * 200;
  script.starts = !random.chance(20);
  script.run_ms = random.chance(700) ? random.between(1, 300) * kSecond : random.between(1, 4) * kHour;
  script.exit_code = random.chance(100) ? static_cast<std::int32_t>(random.between(1, 255)) : 0;
  if (random.chance(200)) script.save_every_ms = random.between(10, 120) * kSecond;
  if (random.chance(500)) script.ack_after_ms = random.between(0, 60) * kSecond;
  script.leave_after_ms = random.chance(200) ? -1 : random.between(0, 60) * kSecond;
  script.leave_code = random.chance(500) ? 0 : 143;
  script.die_after_ms = random.between(0, 3) * 100;
  if (start.key.task > 0 && random.chance(300)) script.run_ms += std::int64_t{start.key.task} * kSecond;
  return script;
}

std::optional<JobId> Simulation::some_job() {
  const std::uint64_t last = world_.durable().next_job_id().value();
  if (last <= 1) return std::nullopt;
  const std::uint64_t window = std::min<std::uint64_t>(last - 1, 3 * shape_.live_jobs);
  for (int tries = 0; tries < 8; ++tries) {
    const JobId id(last - 1 - random_.below(window));
    if (world_.durable().job(id) != nullptr) return id;
  }
  return JobId(last - 1 - random_.below(window));
}

void Simulation::submit() {
  SubmitJob command{random_job(), {}};
  if (random_.chance(300)) command.key = "k" + std::to_string(next_key_++);
  const std::uint64_t ticket = world_.send(command);
  checker_.expect_submission(ticket, command.spec.user, command.key);
  if (command.key.empty()) return;
  if (keyed_.size() > 20) keyed_.erase(keyed_.begin());
  keyed_.push_back(std::move(command));
}

// A client that got no answer sends its submission again, sometimes changed.
void Simulation::repeat_submission() {
  if (keyed_.empty()) return;
  SubmitJob command = random_.pick(keyed_);
  if (random_.chance(200)) command.spec.retries += 7;
  const std::uint64_t ticket = world_.send(command);
  checker_.expect_submission(ticket, command.spec.user, command.key);
}

// Sends an order to move, sometimes a wrong one: for a job that does not run, for other nodes, or with work to lose.
void Simulation::move_a_job(JobId id, Random& apart) {
  MoveJob move{id, {}, apart.chance(400), "operator"};
  const state::JobState* job = world_.durable().job(id);
  const auto& running = world_.durable().running();
  if ((job == nullptr || !job->attempt) && !running.empty() && apart.chance(900)) {
    auto one = running.begin();
    std::advance(one, static_cast<std::ptrdiff_t>(apart.below(running.size())));
    job = world_.durable().job(*one);
    move.job = *one;
  }
  const bool some_of_its_nodes = apart.chance(300);
  if (some_of_its_nodes && job != nullptr && job->attempt)
    move.off.push_back(world_.durable().node(apart.pick(job->attempt->tasks).placement.node).spec.name);
  if (apart.chance(100)) move.off.push_back(apart.pick(node_names_));
  world_.send(move);
}

void Simulation::touch_a_job() {
  const auto job = some_job();
  if (!job) return;
  if (Random apart(seed_ ^ (steps_ << 16U)); shape_.policies && apart.chance(250)) move_a_job(*job, apart);
  switch (random_.below(6)) {
    case 0:
    case 1:
      world_.send(CancelJob{*job, "ann"});
      break;
    case 2:
      world_.send(HoldJob{*job, true, "ann"});
      break;
    case 3:
      world_.send(HoldJob{*job, false, "ann"});
      break;
    case 4:
      world_.send(PrioritizeJob{*job, static_cast<std::int32_t>(random_.between(0, 1000)), "ann"});
      break;
    default:
      world_.fleet().exit_job(*job, random_.chance(500) ? 0 : 1, world_.now());
      break;
  }
}

// Plans a window: some begin soon, some have many nodes, and some overlap.
void Simulation::plan_maintenance(Random& apart) {
  const auto& planned = world_.durable().maintenance();
  if (!planned.empty() && apart.chance(300)) {
    auto window = planned.begin();
    std::advance(window, static_cast<std::ptrdiff_t>(apart.below(planned.size())));
    world_.send(CancelMaintenance{window->first, "operator"});
    return;
  }
  PlanMaintenance plan;
  plan.user = "operator";
  plan.from = world_.clock() + apart.between(-60, 1800) * kSecond;
  plan.for_s = apart.between(30, 7200);
  if (apart.chance(100))
    plan.pool = apart.pick(config_.pools).name;
  else
    for (std::int64_t n = apart.between(1, 3); n > 0; --n) plan.nodes.push_back(apart.pick(node_names_));
  world_.send(plan);
}

// The fleet remembers the health and reports it again. A report about a missing GPU goes to the control plane only.
void Simulation::change_gpu_health(const std::string& node) {
  const auto gpu = static_cast<std::uint8_t>(random_.below(8));
  const bool healthy = random_.chance(700);
  if (gpu < world_.fleet().gpus_of(node).size())
    world_.fleet().set_gpu_health(node, gpu, healthy, world_.now());
  else
    world_.send(ReportGpuHealth{node, gpu, healthy, "reported"});
  Random fences(seed_ ^ (steps_ << 27U));
  if (fences.chance(300))
    world_.send(ReportGpuHealth{node, gpu, false, "a process is left on it", true});
  else if (fences.chance(500))
    world_.send(LiftGpuFence{node, static_cast<std::int64_t>(fences.below(8)), "operator"});
}

// The control plane refuses images of a node that runs no containers.
void Simulation::change_images(const std::string& node) {
  Random crates(seed_ ^ (steps_ << 28U));
  if (!has_images() || !crates.chance(600)) return;
  std::vector<std::string> images = random_images(crates);
  if (world_.fleet().spec_of(node).containers)
    world_.fleet().set_images(node, std::move(images), world_.now());
  else
    world_.send(ReportNodeImages{node, std::move(images)});
}

void Simulation::touch_a_node() {
  if (Random apart(seed_ ^ (steps_ << 24U)); shape_.policies && apart.chance(300)) plan_maintenance(apart);
  if (Random apart(seed_ ^ (steps_ << 36U)); has_changed_limits() && apart.chance(300)) change_limits(apart);
  const std::string& node = some_node();
  change_images(node);
  switch (random_.below(5)) {
    case 0: {
      CordonNode cordon{node, true, random_.chance(500), "operator", 0};
      Random apart(seed_ ^ (steps_ << 8U));
      if (cordon.drain && apart.chance(400))
        cordon.gone_in_s = apart.between(1, 300);
      else if (cordon.drain)
        (apart.chance(700) ? cordon.lose_work : cordon.when_idle) = apart.chance(600);
      world_.send(cordon);
    } break;
    case 1:
    case 2:
      world_.send(CordonNode{node, false, false, "operator"});
      break;
    case 3:
      change_gpu_health(node);
      break;
    default:
      if (shape_.exact) break;
      if (Random moving(seed_ ^ (steps_ << 32U)); shape_.policies && moving.chance(40))
        rename_a_queue(moving);
      else
        config_ = random_config();  // refused if jobs would lose their queue; then the old leaves stay
      world_.send(ApplyConfig{config_, "operator"});
      world_.reconcile();
      config_ = world_.durable().file_config();
      leaves_.clear();
      for (const state::QueueState& queue : world_.durable().queues()) {
        if (!queue.removed && queue.is_leaf() && queue.id != world_.durable().root()) leaves_.push_back(queue.path);
      }
      break;
  }
}

// Sets the wall clock, and sometimes confirms it: hours or years ahead, behind, a little off, or right again.
void Simulation::set_the_clock(Random& apart) {
  constexpr std::int64_t kYear = 365 * 24 * kHour;
  const std::int64_t choices[] = {2 * kHour, 10 * kYear, -kHour, apart.between(-4000, 4000), 0};
  world_.set_wall_clock(choices[apart.below(std::size(choices))]);
  const std::int64_t offset_ms = world_.wall_offset_ms();
  const bool confirms = offset_ms != 0 && offset_ms < 24 * kHour && apart.chance(300);
  if (confirms) world_.send(ConfirmClock{offset_ms, "operator"});
}

// A server is started again under another name; what runs there goes on.
void Simulation::rename_a_node(Random& apart) {
  std::string& name = node_names_[apart.below(node_names_.size())];
  if (!world_.fleet().node_in_contact(name)) return;
  const std::string fresh = name.substr(0, name.find('_')) + "_" + std::to_string(steps_);
  world_.fleet().rename_node(name, fresh, world_.now());
  name = fresh;
  world_.reconcile();
}

// Another machine registers with the GPUs of a node, as the copy of a virtual machine does. It has to be refused.
void Simulation::copy_a_node(Random& apart) {
  world_.reconcile();
  const std::string& name = node_names_[apart.below(node_names_.size())];
  const state::NodeState* owner = world_.durable().node_named(name);
  if (owner == nullptr || owner->status == NodeStatus::kLost || owner->spec.gpus.empty()) return;
  NodeSpec copy = world_.fleet().spec_of(name);
  copy.name += "_copy";
  copy.machine += "_copy";
  world_.send(RegisterNode{copy});
  world_.reconcile();
}

// Pods of another scheduler come and go: on GPUs, on CPUs and memory, and as pods.
void Simulation::change_foreign_use(Random& apart) {
  const std::string& name = node_names_[apart.below(node_names_.size())];
  ForeignReport use;
  if (apart.chance(700)) {
    use.cpu_milli = apart.between(0, 40) * 1000;
    use.memory_mib = apart.between(0, 128) * 1024;
    for (const Gpu& gpu : world_.fleet().gpus_of(name)) {
      if (apart.chance(250)) use.gpus.insert(gpu.uuid);
    }
    if (apart.chance(500)) use.countables = {{"pods", apart.between(1, 3)}};
  }
  world_.fleet().set_foreign(name, std::move(use), world_.now());
}

// A cloud takes a machine away; one of its name may be booted later.
void Simulation::remove_a_node(Random& apart) { world_.fleet().remove_node(apart.pick(node_names_), world_.now()); }

// Faults that have random numbers of their own, so that lives without them are as they were.
void Simulation::break_apart() {
  if (!shape_.policies) return;
  if (Random apart(seed_ ^ (steps_ << 44U)); (has_foreign_use() || has_countables()) && apart.chance(200))
    change_foreign_use(apart);
  if (Random apart(seed_ ^ (steps_ << 32U)); seed_ % 3 == 1 && apart.chance(200)) set_the_clock(apart);
  if (Random apart(seed_ ^ (steps_ << 48U)); seed_ % 4 == 3 && apart.chance(50)) remove_a_node(apart);
  if (Random apart(seed_ ^ (steps_ << 36U)); seed_ % 2 == 1 && apart.chance(100)) {
    rename_a_node(apart);
    if (apart.chance(500)) copy_a_node(apart);
  }
  const auto& running = world_.durable().running();
  if (Random apart(seed_ ^ (steps_ << 40U)); seed_ % 2 == 0 && apart.chance(100) && !running.empty()) {
    auto job = running.begin();
    std::advance(job, static_cast<std::ptrdiff_t>(apart.below(running.size())));
    world_.fleet().hang_supervisors(*job);
  }
}

void Simulation::break_something() {
  break_apart();
  const std::string& node = some_node();
  backend::FakeBackend& fleet = world_.fleet();
  switch (random_.below(12)) {
    case 0:
    case 1:
      fleet.lose_contact(node, world_.now());
      break;
    case 2:
    case 3:
    case 4:
      fleet.regain_contact(node, world_.now());
      break;
    case 5:
      fleet.kill_node(node, world_.now());
      break;
    case 6:
    case 7:
      fleet.boot_node(node, world_.now());
      break;
    case 8:
      if (!fleet.node_in_contact(node)) {
        fleet.fence_node(node, world_.now());
        world_.send(FenceNode{node, "operator"});
      }
      break;
    case 9:
      if (random_.chance(300)) world_.save_checkpoint();
      break;
    default:
      world_.die_next(static_cast<Death>(random_.between(1, 5)));
      break;
  }
}

// Sends the exit of a life that a running task does not have.
void Simulation::forge_an_exit() {
  Random apart(seed_ ^ (steps_ << 44U));
  const auto& running = world_.durable().running();
  if (!shape_.policies || running.empty() || !apart.chance(300)) return;
  auto id = running.begin();
  std::advance(id, static_cast<std::ptrdiff_t>(apart.below(running.size())));
  const state::AttemptState& attempt = *world_.durable().job(*id)->attempt;
  const auto task = static_cast<std::uint32_t>(apart.below(attempt.tasks.size()));
  const std::uint32_t life = attempt.tasks[task].incarnation + 1;
  world_.send(ReportTaskExited{{*id, attempt.number, task, life, ExitReason::kExited, 0, {}}});
}

// Sends commands that contradict the state. A refused command must change nothing.
void Simulation::ask_nonsense() {
  forge_an_exit();
  if (Random apart(seed_ ^ (steps_ << 48U)); shape_.policies && !restored_ && apart.chance(20)) {
    restored_ = true;
    world_.send(NoteRestore{});
  }
  const JobId nobody(world_.durable().next_job_id().value() + random_.below(100));
  switch (random_.below(7)) {
    case 0:
      world_.send(CancelJob{nobody, "ann"});
      break;
    case 1:
      world_.send(ReportTaskExited{{nobody, 1, 0, 1, ExitReason::kExited, 0, {}}});
      break;
    case 2:
      if (const auto job = some_job())
        world_.send(ReportTaskStarted{*job, 1, static_cast<std::uint32_t>(random_.below(9)), 2});
      break;
    case 3: {
      // A report of an earlier attempt.
      const auto job = some_job();
      const state::JobState* known = job ? world_.durable().job(*job) : nullptr;
      if (known == nullptr || known->attempts < 2) break;
      world_.send(ReportTaskExited{{*job, known->attempts - 1, 0, 1, ExitReason::kExited, 0, {}}});
      break;
    }
    case 4:
      world_.send(ReportNodeStatus{"nowhere", NodeStatus::kLost, ""});
      break;
    case 5: {
      JobSpec spec = random_job();
      spec.groups.front().count = static_cast<std::int32_t>(random_.between(-1, 0));
      world_.send(SubmitJob{spec, {}});
      break;
    }
    default:
      world_.send(CordonNode{"nowhere", true, true, "operator"});
      break;
  }
}

// --- steps ---

void Simulation::pass_time() {
  const std::uint64_t how = random_.below(100);
  std::int64_t ms = 0;
  if (how < 50) {
    ms = random_.between(0, 2000);
  } else if (how < 90) {
    ms = random_.between(1, 30) * kSecond;
  } else {
    ms = random_.between(1, 10) * 60 * kSecond;
  }
  if (shape_.exact) ms = random_.between(0, 10) * 100;
  world_.reconcile();
  world_.advance_to(world_.now() + ms);
}

void Simulation::step() {
  ++steps_;
  const std::uint64_t what = random_.below(1000);
  const bool room = world_.durable().jobs().size() < shape_.live_jobs;
  const std::uint64_t submissions = shape_.exact ? 8 : 1;
  if (what < 550) {
    for (std::uint64_t i = 0; i < submissions && room; ++i) submit();
  } else if (what < 600) {
    repeat_submission();
  } else if (what < 750) {
    touch_a_job();
  } else if (what < 810) {
    touch_a_node();
  } else if (what < 840) {
    ask_nonsense();
  } else if (shape_.faults) {
    break_something();
  }
  if (!random_.chance(200)) pass_time();  // sometimes several things arrive at once
  if (Random apart(seed_ ^ (steps_ << 48U)); apart.chance(200)) look_at_budgets();
  if (world_.events() - checked_at_ >= shape_.events_per_scratch_check) check_now();
}

void Simulation::check_now() {
  checked_at_ = world_.events();
  world_.reconcile();
  world_.compare_states();
  checker_.check_from_scratch(world_.durable(), world_.meter(), world_.clock(), true);
}

std::optional<std::string> Simulation::violation() const {
  if (checker_.violation()) return checker_.violation();
  if (world_.fleet().violation()) return world_.fleet().violation();
  if (world_.violation()) return world_.violation();
  return violation_;
}

bool Simulation::waits_for_a_reason(const state::JobState& job) {
  if (job.is_parent()) return true;  // its children are checked instead
  const auto explanation = explain::why(world_.working(), job.id, world_.clock(), explain::Viewer::sees_all());
  const Reason& reason = explanation.reason;
  if (is_never(reason.code)) return true;
  // The job that it waits for is checked itself.
  if (reason.code == ReasonCode::kBehindQueueHead || reason.code == ReasonCode::kDependency) return true;
  // The reason looks at one group at a time. It does not see that several groups never fit together, or that no domain
  // of the required level has the jobs that this job must be near.
  const auto required = [](const AffinityTerm& term) { return term.required; };
  const bool near = std::any_of(job.spec.affinity.begin(), job.spec.affinity.end(), required);
  const bool in_pieces = reason.code == ReasonCode::kFragmented || reason.code == ReasonCode::kTopology ||
                         reason.code == ReasonCode::kNuma || reason.code == ReasonCode::kCountable;
  const bool wants_nodes = job.spec.exclusive && reason.code == ReasonCode::kInsufficientResources;
  if ((in_pieces || wants_nodes) && job.spec.groups.size() > 1) return true;
  if (near && (in_pieces || reason.code == ReasonCode::kInsufficientResources)) return true;
  // A job that must be near others waits until such a job comes. And tasks that must be apart do not get more racks.
  const bool by_itself =
      reason.rule == PlaceRule::kNear || reason.rule == PlaceRule::kAlone || reason.rule == PlaceRule::kTogether;
  if ((reason.code == ReasonCode::kAffinity || reason.code == ReasonCode::kPorts) && by_itself) return true;
  // A max below the request of the job alone never lets it start.
  if (reason.code == ReasonCode::kQuotaMax) return reason.asked > reason.limit;
  return reason.code == ReasonCode::kQuotaLentOut || reason.code == ReasonCode::kHeld ||
         reason.code == ReasonCode::kBudget || reason.code == ReasonCode::kGrant;
}

void Simulation::heal_and_converge() {
  if (violation()) return;
  world_.die_next(Death::kNone);
  world_.fleet().set_report_faults({});
  for (const std::string& node : node_names_) {
    world_.fleet().boot_node(node, world_.now());
    world_.fleet().regain_contact(node, world_.now());
  }
  world_.reconcile();
  for (const std::string& node : node_names_) {  // also nodes that are cordoned for flapping
    world_.send(CordonNode{node, false, false, "operator"});
    for (std::uint8_t gpu = 0; gpu < 8; ++gpu) {
      world_.fleet().set_gpu_health(node, gpu, true, world_.now());
      world_.send(LiftGpuFence{node, gpu, "operator"});
    }
    world_.fleet().set_foreign(node, {}, world_.now());
  }
  world_.reconcile();
  std::set<JobId> ended;  // what never ends by itself: services, and jobs whose supervisor hangs
  std::vector<JobId> held;
  for (const auto& [key, execution] : world_.fleet().executions()) {
    if (execution.hung && execution.phase == backend::Execution::Phase::kLive) ended.insert(key.job);
  }
  world_.durable().jobs().for_each([&](const state::JobState& job) {
    if (job.spec.kind == JobKind::kService) ended.insert(job.id);
    if (job.held) held.push_back(job.id);
  });
  for (const JobId job : ended) world_.send(CancelJob{job, "ann"});
  for (const JobId job : held) world_.send(HoldJob{job, false, "ann"});
  world_.reconcile();
  // The work of each job is finite. Jobs that alternate on one GPU for months are ended by the checks below.
  for (int day = 0; day < 60 && world_.durable().jobs().size() > 0 && !violation(); ++day) {
    world_.advance_to(world_.now() + 24 * kHour);
    look_at_budgets();
    check_now();
    if (world_.durable().running().empty()) break;
  }
  if (violation()) return;
  const auto complain = [&](const std::string& what) {
    if (!violation_) violation_ = "P13: after the faults stopped, " + what;
  };
  world_.durable().jobs().for_each([&](const state::JobState& job) {
    const std::string name = "job " + std::to_string(job.id.value());
    if (job.attempt) {
      complain(name + " still runs");
    } else if (job.nomination) {
      complain(name + " still waits for victims");
    } else if (!waits_for_a_reason(job)) {
      complain(name + " waits: " +
               explain::why(world_.working(), job.id, world_.clock(), explain::Viewer::sees_all()).answer.headline);
    }
  });
  if (world_.fleet().live_count() > 0) complain("something still runs on the fleet");
  if (!world_.fleet().executions().empty()) complain("the fleet still remembers an exit that nobody forgets");
}

Verdict simulate(std::uint64_t seed, std::uint64_t steps, std::uint64_t events, const SimulationShape& shape) {
  Simulation simulation(seed, shape);
  while (simulation.steps() < steps && !simulation.violation() &&
         (events == 0 || simulation.world().events() < events)) {
    simulation.step();
  }
  if (!simulation.violation()) simulation.check_now();
  Verdict verdict;
  verdict.steps = simulation.steps();
  if (!simulation.violation() && shape.faults) simulation.heal_and_converge();
  verdict.seed = seed;
  verdict.events = simulation.world().events();
  verdict.restarts = simulation.world().restarts();
  verdict.scratch_checks = simulation.checker().scratch_checks();
  verdict.audited_events = simulation.world().audited();
  verdict.seen = simulation.checker().seen();
  verdict.violation = simulation.violation();
  verdict.log_hash = store::to_hex(simulation.world().log().last().hash);
  if (!verdict.violation) {
    Replay again = replay(simulation.world().log());
    verdict.replayed_cycles = again.cycles;
    if (again.difference) verdict.violation = "P7: " + *again.difference;
  }
  return verdict;
}

Verdict shortest_prefix(const Verdict& found, const SimulationShape& shape) {
  std::uint64_t low = 0;
  Verdict best = found;
  while (low + 1 < best.steps) {
    const std::uint64_t middle = low + (best.steps - low) / 2;
    Verdict shorter = simulate(found.seed, middle, 0, shape);
    if (shorter.violation) {
      best = std::move(shorter);
      best.steps = std::min(best.steps, middle);
    } else {
      low = middle;
    }
  }
  return best;
}

}  // namespace berth::sim
