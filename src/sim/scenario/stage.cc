#include "sim/scenario/stage.h"

#include <utility>

#include "explain/queue_position.h"
#include "explain/shortage.h"
#include "explain/why.h"

namespace berth::sim {

Stage::Stage() : world_(1, [this](const StartTask& start) { return script_of(start); }) {
  world_.set_witness(this);
  world_.advance_to(kBegin);
}

backend::TaskScript Stage::script_of(const StartTask& start) const {
  auto found = behaviours_.find(start.job_name);
  if (found == behaviours_.end()) found = behaviours_.find(start.job_name.substr(0, start.job_name.rfind('-')));
  if (found == behaviours_.end()) return {};
  backend::TaskScript script = found->second.script;
  if (found->second.failing_attempts > 0)
    script.exit_code = start.key.attempt <= found->second.failing_attempts ? 1 : 0;
  return script;
}

std::vector<std::string> Stage::play(std::string_view directive, const std::vector<std::string>& below) {
  said_.clear();
  if (const Done done = read_and_act(directive, below); !done) say("error: " + done.error().message);
  check();
  return std::exchange(said_, {});
}

Stage::Done Stage::read_and_act(std::string_view directive, const std::vector<std::string>& below) {
  if (auto ok = check_text(directive); !ok) return ok;
  for (const std::string& text : below) {
    if (auto ok = check_text(text); !ok) return invalid("below the directive, " + ok.error().message);
  }
  if (directive.starts_with(' '))
    return invalid("the line is indented and stands below no cluster; an empty line ends a block");
  const auto line = read_line(directive, directives(), "directive");
  if (!line) return line.error();
  return act(*line, below);
}

void Stage::check() {
  world_.compare_states();
  if (world_.violation()) say("BROKEN " + *world_.violation());
  if (world_.fleet().violation()) say("BROKEN " + *world_.fleet().violation());
  if (const auto wrong = world_.working().audit()) say("BROKEN " + *wrong);
}

Stage::Done Stage::act(const Line& line, const std::vector<std::string>& below) {
  const std::string_view verb = line.verb;
  if (verb == "cluster") return configure(below);
  if (verb == "prices") return apply_prices(below);
  if (!below.empty())
    return invalid(shown(below.front()) + " stands below " + std::string(verb) +
                   ", which takes no lines; an empty line ends a block");
  if (verb == "jobs") return list_jobs(), Done();
  if (verb == "queues") return list_queues(), Done();
  if (verb == "nodes") return add_nodes(line);
  if (verb == "submit") return submit(line);
  if (verb == "run") return run(line);
  if (verb == "restart") return die(line);
  if (verb == "why") return why(line);
  if (verb == "capacity") return tell_capacity(line);
  if (verb == "advise") return tell_advice(), Done();
  if (verb == "share") return explain_share(line);
  if (verb == "invoice") return tell_invoice(line);
  if (verb == "budgets") return mark_budgets();
  if (verb == "exit") return exit(line);
  if (verb == "gpu") return gpu_health(line);
  if (verb == "foreign") return change_foreign_use(line);
  if (verb == "image") return change_images(line);
  if (verb == "maintenance list") return list_maintenance(), Done();
  if (verb.starts_with("maintenance")) return plan_maintenance(line);
  for (const char* one : {"cancel", "hold", "release", "prioritize", "move"}) {
    if (verb == one) return on_job(line);
  }
  return on_nodes(line);
}

void Stage::ask(Command command) {
  world_.send(std::move(command));
  world_.reconcile();
}

// The answer is printed before the effects of the command.
void Stage::on_answer(const Answer& answer) {
  const auto say_first = [this](std::string line) { said_.insert(said_.begin(), std::move(line)); };
  if (!answer.reply) {
    say_first("refused: " + answer.reply.error().message);
    return;
  }
  const control::Reply& reply = answer.reply.value();
  if (reply.unchanged) say_first("nothing changes");
  if (reply.version > 0 && !reply.unchanged)
    say_first((pricing_ ? "price book " : "configuration ") + std::to_string(reply.version) + " is in force");
  for (const control::DrainedJob& job : reply.drained) {
    if (!job.leaves) said_.push_back(name_of_job(job.job) + " stays until it is over");
  }
  if (!submitting_.empty()) {
    jobs_.insert_or_assign(submitting_, reply.job);  // the name refers to the last such job
    names_.emplace(reply.job, submitting_);
    say_first(submitting_ + " is job " + std::to_string(reply.job.value()) +
              (reply.repeated  ? ", as before"
               : reply.updated ? ", updated"
                               : ""));
    if (!reply.repeated) submitting_.clear();
  }
}

// --- time and faults ---

Stage::Done Stage::run(const Line& line) {
  const auto duration = parse_duration(line.names.front());
  if (!duration) return duration.error();
  world_.advance_to(world_.now() + *duration);
  return {};
}

Stage::Done Stage::die(const Line& line) {
  if (line.has("from-checkpoint")) world_.save_checkpoint();
  world_.restart();
  world_.reconcile();
  world_.advance_to(world_.now());
  say("the control plane is back");
  return {};
}

Stage::Done Stage::plan_maintenance(const Line& line) {
  if (line.verb == "maintenance cancel") {
    ask(CancelMaintenance{line.names.front(), "operator"});
    world_.advance_to(world_.now());
    return {};
  }
  PlanMaintenance plan;
  plan.user = "operator";
  const auto names = expand_all(line.names);
  if (!names) return names.error();
  plan.nodes = *names;
  if (const std::string* name = line.option("name")) plan.name = *name;
  if (const std::string* pool = line.option("pool")) plan.pool = *pool;
  if (auto ok = read_option(line, "label", parse_labels, plan.labels); !ok) return ok;
  if (auto ok = read_option(line, "from", parse_instant, plan.from); !ok) return ok;
  if (auto ok = read_option(line, "for", parse_seconds, plan.for_s); !ok) return ok;
  ask(plan);
  world_.advance_to(world_.now());
  return {};
}

void Stage::list_maintenance() {
  for (const auto& [name, window] : world_.durable().maintenance()) {
    std::string nodes;
    for (const NodeId node : window.nodes) nodes += " " + world_.durable().node(node).spec.name;
    say(name + ":" + nodes + " from " + duration_text(window.from - kBegin) + " to " +
        duration_text(window.to - kBegin) + (window.begun ? ", has begun" : ""));
  }
}

// --- what is shown ---

void Stage::list_jobs() {
  world_.durable().jobs().for_each([&](const state::JobState& job) {
    std::string line = name_of_job(job.id) + ": " + std::string(name_of(job.phase));
    if (job.held) line += ", held";
    if (job.attempt) {
      std::vector<TaskPlacement> placements;
      for (const state::TaskState& task : job.attempt->tasks) placements.push_back(task.placement);
      line += " on " + places_text(placements);
    }
    if (job.nomination) line += ", nominated on " + places_text(job.nomination->placements);
    say(line);
  });
}

void Stage::list_queues() {
  for (const state::QueueState& queue : world_.durable().queues()) {
    if (queue.removed || queue.id == world_.durable().root()) continue;
    std::string line = queue.path + ": " + explain::counted(kDimGpu, queue.usage[kDimGpu]) + " used, " +
                       explain::amount_text(kDimGpu, queue.within_usage[kDimGpu]) + " within";
    if (queue.guaranteed.states(kDimGpu)) {
      line += ", guaranteed " + explain::amount_text(kDimGpu, queue.guaranteed.amounts[kDimGpu]);
      if (!(queue.configured == queue.guaranteed))
        line += " of " + explain::amount_text(kDimGpu, queue.configured.amounts[kDimGpu]);
    }
    if (queue.max[kDimGpu] != kUnlimited) line += ", max " + explain::amount_text(kDimGpu, queue.max[kDimGpu]);
    say(line + "; " + std::to_string(queue.pending_below) + " pending");
  }
}

Stage::Done Stage::explain_share(const Line& line) {
  const state::QueueState* queue = world_.durable().queue_at(line.names.front());
  if (queue == nullptr) return invalid("no queue " + shown(line.names.front()));
  for (const std::string& one : explain::explain_share(world_.durable(), *queue, world_.now())) say(one);
  return {};
}

void Stage::list_nodes() {
  for (const state::NodeState& node : world_.durable().nodes()) {
    if (node.removed) continue;
    std::string line = node.spec.name + ": " + std::string(name_of(node.status)) +
                       (node.draining   ? ", draining"
                        : node.cordoned ? ", cordoned"
                                        : "") +
                       (node.maintained > 0 ? ", under maintenance" : "");
    std::vector<std::uint8_t> free;
    for (std::uint8_t g = 0; g < node.gpus.size(); ++g) {
      if (node.gpus[g].healthy && node.gpus[g].free_milli == kMilli) free.push_back(g);
    }
    say(line + "; free GPUs " + (free.empty() ? "none" : ranges_text(free)) + failed_text(node.spec) +
        images_text(node.spec));
  }
}

}  // namespace berth::sim
