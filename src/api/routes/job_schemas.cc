// Schemas of jobs and what is asked of them; the objects are made in job_view.cc.

#include <limits>

#include "api/routes/schema.h"
#include "api/routes/schemas.h"
#include "model/estimate.h"
#include "model/event.h"
#include "model/job.h"
#include "model/priority.h"
#include "model/reason.h"
#include "model/why_answer.h"

namespace berth::api {
namespace {

using namespace schema;

Schema checkpoint() {
  return object("The last work that was saved.", {{"step", integer("Up to this step.")}, {"at?", time("When.")}});
}

Schema stop() {
  return object("Why and how the running attempt is asked to stop.",
                {{"cause", word_of<StopCause>("Why.")},
                 {"preemptor?", integer("The job for which it makes room.")},
                 {"began", time("Since when.")},
                 {"deadline", time("When what still runs is killed.")},
                 {"acknowledged", boolean("It has saved its work.")},
                 {"forced", boolean("It is being killed.")},
                 {"keep?", integer("Only the last tasks are to leave; so many stay.")},
                 {"moves_to?", list("Where it starts again when it has left: kept for it.", reference("Placement"))}});
}

Schema placement() {
  return object("Where a task runs, or is to run.", {{"task", integer("The task's number, from 0.")},
                                                     {"group", text("Its task group.")},
                                                     {"node", text("The node.")},
                                                     {"gpus", list("UUIDs of its GPUs.", text("A UUID."))},
                                                     {"slices?", text("Of the GPU: those of its MIG instance.")}});
}

Schema nomination() {
  return object("Places that are nominated to a waiting job and become free when its victims have left.",
                {{"cause", word_of<StopCause>("Why the victims leave.")},
                 {"victims", list("The jobs that leave.", integer("A job."))},
                 {"placements", list("The places.", reference("Placement"))}});
}

Schema estimate() {
  return object("How long the job is expected to run.",
                {{"seconds", integer("So long.")},
                 {"source", word_of<EstimateSource>("Where that is known from.")},
                 {"text", text("The same in words.")},
                 {"runs?", integer("Learned from so many jobs.")},
                 {"alike_in?", word_of<Likeness>("In what those jobs are like this one.")}});
}

Schema reservation() {
  return object("A start that is held for the waiting job.",
                {{"start", time("When it is expected to start at the latest.")},
                 {"first_start", time("What the first reservation of this wait said.")}});
}

Schema task() {
  return object("A task of the running attempt.", {{"task", integer("The task's number, from 0.")},
                                                   {"group", text("Its task group.")},
                                                   {"node", text("The node it is bound to.")},
                                                   {"gpus", list("UUIDs of its GPUs.", text("A UUID."))},
                                                   {"slices?", text("Of the GPU: those of its MIG instance.")},
                                                   {"phase", word_of<TaskPhase>("Where in its life it is.")},
                                                   {"code?", integer("Once exited: the exit status, or 128 + signal.")},
                                                   {"reason?", word_of<ExitReason>("Once exited: how.")}});
}

Schema attempt() {
  return object("An attempt that is over.",
                {{"attempt", integer("Its number, from 1.")},
                 {"waited_from", time("Since when the job had waited for it.")},
                 {"started", time("When it started.")},
                 {"ended", time("When every task of it was over.")},
                 {"outcome", word_of<Outcome>("How it ended.")},
                 {"cause?", word_of<StopCause>("Why it was asked to stop.")},
                 {"preemptor?", integer("The job for which it made room.")},
                 {"code", integer("Its exit code.")},
                 {"message", text("What the first task that failed said.")},
                 {"reserved_start?", time("When the first reservation of its wait said that it would start.")},
                 {"slip_s?", integer("Seconds that it started later than that.")},
                 {"checkpoint_step", integer("The step up to which it had saved its work; 0: none.")},
                 {"gpus_on", list("What it held.", object("GPUs of a node.", {{"node", text("The node.")},
                                                                              {"gpus", integer("How many.")}}))}});
}

Schema signal_number() {
  Schema number = integer("Its number; not SIGKILL (9) or SIGSTOP (19).", 1, 64);
  number["not"] = boost::json::object{{"enum", boost::json::array{9, 19}}};
  return number;
}

Schema summary() {
  return object(
      "A job in a list.",
      {{"id", integer("Its id.")},
       {"name", text("Its name; may be empty.")},
       {"queue", text("The path of its queue.")},
       {"user", text("Whose it is.")},
       {"kind", word_of<JobKind>("Its kind.")},
       {"class", word_of<JobClass>("What it is for.")},
       {"priority", integer("Its priority; more goes first.")},
       {"priority_class", text("The priority class that it named; empty: the default.")},
       {"phase", word_of<JobPhase>("Where in its life it is.")},
       {"outcome?", word_of<Outcome>("Once finished: how.")},
       {"held", boolean("A user keeps it from starting.")},
       {"submitted", time("When it was submitted.")},
       {"waiting_since", time("Since when it has waited, or had waited before it started.")},
       {"started?", time("When its current or last attempt started.")},
       {"finished?", time("When it finished.")},
       {"code?", integer("Once finished: its exit code.")},
       {"elapsed_s?", integer("How long its last attempt ran, if that is over.")},
       {"gpu_seconds", number("GPU time that it has used, all attempts together.")},
       {"labels?", map("Its labels, if it has some.", text("A value."))},
       {"gpus", number("GPUs of all the tasks that it asks for.")},
       {"tasks_total", integer("The tasks that it asks for.")},
       {"cpus", number("CPUs of all the tasks that it asks for.")},
       {"pool?", text("The pool that all its task groups name.")},
       {"time_limit_s?", integer("It is stopped after so many seconds.")},
       {"size?", closed(object("Of an elastic gang that runs: what it has now.",
                               {{"tasks", integer("Its tasks.")},
                                {"gpus", number("Their GPUs.")},
                                {"since", time("When it grew or shrank last, or started.")}}))},
       {"attempt", integer("Its current or last attempt; 0: none yet.")},
       {"attempts", integer("How many attempts it has had.")},
       {"failures", integer("How many of them failed.")},
       {"reason?", word_of<ReasonCode>("While it waits: what refuses it. Absent when nothing does, and behind "
                                       "the first 256 kinds of jobs of a page. The whole reason: "
                                       "explainJob.")},
       {"children?", reference("Children")},
       {"parent?", integer("The service or array it belongs to.")},
       {"index?", integer("Which replica or element of it.")},
       {"within?", boolean("While it runs: wholly inside the guarantees of its queues; else borrowed.")},
       {"checkpoint?", reference("Checkpoint")},
       {"stop?", reference("Stop")},
       {"reservation?", reference("Reservation")},
       {"nodes", list("Where it runs; of a finished job where it ran last.", text("A node."))}});
}

Schema in_full() {
  Schema job = summary();
  job["description"] = "A job in full.";
  const Schema more = object(
      "",
      {{"estimate?", reference("Estimate")},
       {"slip_s?", integer("Seconds that its start came later than was first held.")},
       {"nomination?", reference("Nomination")},
       {"simulated_gpus?", boolean("Nodes that it runs on, ran on or is nominated to have "
                                   "simulated GPUs.")},
       {"gpu_level?", word_of<GpuLevel>("At which level it has its GPUs; of several groups the weakest.")},
       {"isolation?", text("What that keeps apart: memory enforced | compute enforced | faults isolated.")},
       {"driven?", reference("GpuUtilizationUse")},
       {"tasks", list("The tasks of its running attempt.", reference("Task"))},
       {"past", list("Its earlier attempts.", reference("Attempt"))},
       {"break_glass?",
        list("By whom its log was read by break-glass, oldest first.",
             object("A read.", {{"subject", text("By whom.")}, {"reason", text("Why.")}, {"time", time("When.")}}))},
       {"spec", reference("JobDocument")}});
  for (const auto& [name, member] : more.at("properties").as_object()) job["properties"].as_object()[name] = member;
  for (const auto& name : more.at("required").as_array()) job["required"].as_array().push_back(name);
  return job;
}

Schema forecast() {
  const Schema place =
      object("Tasks on one node.",
             {{"node", text("The node.")}, {"tasks", integer("How many tasks.")}, {"gpus", number("Their GPUs.")}});
  const Schema victim =
      object("A job that would be asked to leave.", {{"job", integer("The job.")},
                                                     {"user", text("Whose it is.")},
                                                     {"queue", text("Its queue.")},
                                                     {"cause", word_of<StopCause>("Why it leaves.")},
                                                     {"gpus", number("Its GPUs.")},
                                                     {"unsaved_s", integer("Seconds of work that it would lose.")},
                                                     {"keep?", integer("Only its last tasks leave; so many stay.")}});
  const Schema cost = object("On one GPU model that it may use.",
                             {{"gpu_model", text("The model; empty: it asks for no GPUs.")},
                              {"currency", text("ISO 4217.")},
                              {"floor_per_hour", text("An hour within the guarantee of its queue.")},
                              {"burst_per_hour", text("An hour beyond it.")},
                              {"time_limit_s", integer("0: it has none.")},
                              {"floor?", text("Until its time limit, within the guarantee.")},
                              {"burst?", text("Until its time limit, beyond it.")}});
  return object("What a command would do now.",
                {{"id", integer("The job; of a submission the number that it would get.")},
                 {"repeated", boolean("It was submitted before.")},
                 {"phase", word_of<JobPhase>("Where it would be at once.")},
                 {"started", integer("1 if it would start at once; of a service or an array how many parts would.")},
                 {"within?", boolean("If it starts: wholly inside the guarantees of its queues; else borrowed.")},
                 {"places", list("Where it starts, at once or when the victims have left.", place)},
                 {"victims", list("The jobs that would be asked to leave for it.", victim)},
                 {"victims_not_shown", integer("So many more, which the subject may not see.")},
                 {"start?", time("When it is expected to start at the latest.")},
                 {"warnings", list("What keeps the job from ever starting.", text("A sentence."))},
                 {"why?", reference("Explanation")},
                 {"cost?", list("Of a submission: what it costs by the prices of now, by GPU model.", cost)}});
}

}  // namespace

void add_job_schemas(boost::json::object& schemas) {
  schemas["Checkpoint"] = checkpoint();
  schemas["Stop"] = stop();
  schemas["Placement"] = placement();
  schemas["Nomination"] = nomination();
  schemas["Estimate"] = estimate();
  schemas["Reservation"] = reservation();
  schemas["Task"] = task();
  schemas["Attempt"] = attempt();
  schemas["GpuUtilizationUse"] =
      object("How much the GPUs that it has whole were driven in the last hour, where that was measured.",
             {{"pct", number("The mean of the time in which the driver saw them at work, in percent.")},
              {"gpus", integer("GPUs of which that was measured.")},
              {"minutes", integer("Minutes of the last hour in which it was.")}});
  schemas["Children"] = object("The replicas or elements of a service or array; they are jobs whose parent it is.",
                               {{"total", integer("As many as there shall be.")},
                                {"running", integer("Those that run.")},
                                {"waiting", integer("Those that wait to start, of those made so far.")},
                                {"ended", integer("Those that are over.")},
                                {"failed", integer("Those that ended without success.")},
                                {"current?", integer("Live replicas of the service's present version.")}});
  schemas["JobSummary"] = summary();
  schemas["Job"] = in_full();
  schemas["JobList"] = object("A page of jobs.", {{"items", list("The jobs.", reference("JobSummary"))},
                                                  {"next_cursor", nullable(text("Where to go on; null: the end."))},
                                                  {"seq", integer("The last event that the page reflects.")},
                                                  {"time", time("The server's time then.")}});
  schemas["JobSubmitted"] =
      object("A submission that was taken.",
             {{"id", integer("The job.")},
              {"name", text("Its name.")},
              {"repeated", boolean("It was taken before.")},
              {"updated", boolean("A service of this name was there and has a new version now.")},
              {"warnings?", list("What keeps the job from ever starting.", text("A sentence."))}});
  schemas["JobChanged"] = object("A command about a job that was taken.",
                                 {{"id", integer("The job.")}, {"unchanged", boolean("It already was as asked.")}});
  schemas["Explanation"] =
      object("Why a job waits, in words with numbers.",
             {{"id", integer("The job.")},
              {"phase", word_of<JobPhase>("Where in its life it is.")},
              {"code", word_of<ReasonCode>("What blocks it.")},
              {"never", boolean("Waiting cannot help.")},
              {"headline", text("The answer, in one or two sentences.")},
              {"quota", text("How the guarantee of its queue stands; empty where the headline is about quota.")},
              {"line?", reference("PlaceInLine")},
              {"start?", reference("StartTime")},
              {"preemption", text("Which jobs could be stopped for it, and what prevents that; or empty.")},
              {"remedies", list("The smallest changes that would start it now.", reference("Remedy"))},
              {"details", list("What else matters.", text("A fact."))}});
  schemas["PlaceInLine"] =
      object("The place of the job among all pending jobs.",
             {{"number", integer("1: it is tried first.")},
              {"exact", boolean("If false, the number is at least this.")},
              {"can_start_before", integer("So many of the jobs ahead are not held back by a limit of their own.")},
              {"text", text("Which queues and jobs go first, and why.")}});
  schemas["StartTime"] =
      object("What is known of when the job starts.",
             {{"bound", word_of<StartBound>("How the time is meant; others can delay a time that is not-before.")},
              {"at?", time("The time.")},
              {"text", text("The same in words.")}});
  schemas["Remedy"] =
      object("A change that was tried: with it the job would start now, with less it would not.",
             {{"kind", text("What it changes, such as quota, evict, gpus or pool.")},
              {"by", word_of<RemedyBy>("The role that can make it: the owner of the job, or an operator.")},
              {"taken", boolean("A job that goes first would take what it frees.")},
              {"text", text("It completes: the job would start now if ...")},
              {"patch?", reference("RemedyPatch")}});
  schemas["RemedyPatch"] = {
      {"type", "object"},
      {"description",
       "What changes in the document of the job, as a JSON merge patch (RFC 7396), where that is what changes. A "
       "priority is a number, for PUT /v1/jobs/{id}/priority."},
      {"additionalProperties", true}};
  schemas["Forecast"] = forecast();
  schemas["PriorityChange"] =
      closed(object("Another priority.", {{"priority", integer("More goes first.", kLeastPriority, kMostPriority)}}));
  schemas["JobMove"] = closed(
      object("Where a job is not to be.",
             {{"off?", list("Nodes that it leaves and does not go to; absent or empty: all that it is on.",
                            matching("A node's name.", "^[^\\u0000]*$"))},
              {"lose_work?", boolean("Also if it does not save when it is asked to leave, and loses its work.")}}));
  schemas["JobMoved"] = object("An order to move that was taken.",
                               {{"id", integer("The job.")},
                                {"unchanged", boolean("It was moving by such an order.")},
                                {"moves_to", list("The nodes on which it starts again.", text("A node's name."))},
                                {"deadline", time("What of it still runs then is killed.")}});
  schemas["JobSignal"] = closed(object("A signal.", {{"signal", signal_number()}}));
  schemas["CheckpointReport"] = closed(
      object("Saved work.",
             {{"attempt", integer("The attempt that saved.", 1, std::numeric_limits<std::int32_t>::max())},
              {"step", integer("Up to this step; it only grows.", 0, std::numeric_limits<std::int64_t>::max())}}));
}

}  // namespace berth::api
