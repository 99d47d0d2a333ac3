// Schemas of the cluster, its queues and nodes, usage and events; the objects are made in views.cc.

#include "api/routes/schema.h"
#include "api/routes/schemas.h"
#include "control/validate.h"
#include "model/advice.h"
#include "model/cluster_config.h"
#include "model/diagnosis.h"
#include "model/event.h"
#include "model/node.h"

namespace berth::api {
namespace {

using namespace schema;

Schema log_check() {
  return word("The check of every hash of the event log since the start. A damaged log ends the server.",
              {"running", "sound", "unfinished"});
}

Schema health() {
  return object(
      "Health.",
      {{"status", word("ok; log-end-unknown: it serves, but nothing shows that the log has everything that was "
                       "acknowledged before the start.",
                       {"ok", "log-end-unknown"})},
       {"version", text("The server's version.")},
       {"log_check", log_check()}});
}

Schema cluster() {
  return object("The cluster in numbers.",
                {{"name", text("Its name.")},
                 {"version", text("The server's version.")},
                 {"config_version", integer("The version of the configuration in force.")},
                 {"seq", integer("The last event.")},
                 {"time", time("The server's time.")},
                 {"simulated_gpus", boolean("Some GPUs are simulated.")},
                 {"backfill_after_s", integer("How long a job waits before estimates reserve places for it.")},
                 {"warnings", list("What the operator should know.", text("A sentence."))},
                 {"log", object("The event log since the start.",
                                {{"appends", integer("Batches.")},
                                 {"records", integer("Events.")},
                                 {"fsyncs", integer("Syncs of any of its files.")},
                                 {"check", log_check()},
                                 {"checked", integer("Events that the check has been through.")}})},
                 {"nodes", integer("Nodes that are not lost.")},
                 {"gpus", integer("Their GPUs.")},
                 {"gpus_free", number("Of healthy GPUs that others do not use, what is not bound.")},
                 {"gpus_allocated", number("What is bound.")},
                 {"gpus_unhealthy", integer("GPUs that have failed.")},
                 {"gpus_foreign", integer("GPUs that others than berth use.")},
                 {"jobs_pending", integer("Jobs that wait, held ones included.")},
                 {"jobs_running", integer("Jobs that run and are not asked to stop.")},
                 {"jobs_stopping", integer("Jobs that are asked to stop.")},
                 {"allocated_pct", number("Bound GPUs in percent of all.")},
                 {"gpus_stranded", number("Idle GPUs that a request like those submitted is expected to be unable to "
                                          "use (docs/lab/fragmentation.md).")},
                 {"fragmentation_alarm", boolean("They have crossed the alert threshold of the configuration.")}});
}

constexpr const char* kTokenUser = "^([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?$";
constexpr const char* kTokenName = "^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$";

void add_identity_schemas(boost::json::object& schemas) {
  const auto words = [](std::string_view what) { return list(what, text("One of them.")); };
  schemas["ProviderConfiguration"] =
      object("OpenID Connect discovery: where this server's keys are.",
             {{"issuer", text("The URL of this server, as identities of jobs name it (iss).")},
              {"jwks_uri", text("Where the keys are.")},
              {"response_types_supported", words("Always id_token.")},
              {"subject_types_supported", words("Always public.")},
              {"id_token_signing_alg_values_supported", words("Always RS256.")},
              {"claims_supported", words("The claims of an identity.")}});
  schemas["SigningKeys"] =
      object("A JSON Web Key Set.",
             {{"keys", list("The newest first.", object("A public key.", {{"kty", text("Always RSA.")},
                                                                          {"kid", text("Its name.")},
                                                                          {"use", text("Always sig.")},
                                                                          {"alg", text("Always RS256.")},
                                                                          {"n", text("The modulus.")},
                                                                          {"e", text("The exponent.")}}))}});
  schemas["KeyRotated"] = object("Keys after a rotation.", {{"kid", text("The name of the new key.")},
                                                            {"withdrawn", boolean("The earlier ones are withdrawn.")}});
  schemas["JobIdentity"] = object("What a job shows to another service.",
                                  {{"token", text("The signed token (JWT).")}, {"expires", time("When it ends.")}});
}

void add_token_schemas(boost::json::object& schemas) {
  const auto name = [] { return text("The token's name."); };
  const auto role = [] { return word_of<Role>("Its role."); };
  const auto queue = [] { return text("The queue at which it has the role; empty: the root."); };
  const auto user = [] { return text("The owner of the jobs that it submits."); };
  schemas["Token"] = object("A token that is not revoked.",
                            {{"name", name()},
                             {"role", role()},
                             {"queue", queue()},
                             {"user", user()},
                             {"created", time("When it was created.")},
                             {"created_by", text("The subject that created it.")},
                             {"expires", time("When it ends.")},
                             {"expired", boolean("It has ended.")},
                             {"last_used?", time("When it was last used; absent: not that the server knows.")}});
  schemas["TokenList"] = object("Tokens.", {{"items", list("The tokens, by name.", reference("Token"))},
                                            {"seq", integer("The event that the list reflects.")}});
  schemas["TokenRequest"] = closed(
      object("A new token.",
             {{"name", matching("The token's name.", kTokenName)},
              {"role?", word_of<Role>("Its role; absent: viewer, the least.")},
              {"queue?", queue()},
              {"user?", matching("The owner of the jobs that it submits; absent or empty: its name.", kTokenUser)},
              {"expires_in_s", integer("Seconds until it ends.", 1, control::kMaxSeconds)}}));
  schemas["TokenSecret"] = object("A new token, shown this once.", {{"name", name()},
                                                                    {"role", role()},
                                                                    {"queue", queue()},
                                                                    {"user", user()},
                                                                    {"expires", time("When it ends.")},
                                                                    {"token", text("The token itself.")}});
  schemas["TokenRevoked"] =
      object("A token that was revoked.", {{"name", name()}, {"revoked", boolean("Always true.")}});
  add_identity_schemas(schemas);
  schemas["RoleBinding"] = object("A subject has a role at a queue and below.",
                                  {{"subject", text("Such as group:corp:nlp.")}, {"role", role()}, {"queue", queue()}});
  schemas["AccessDecision"] =
      object("What a subject may do, and why.",
             {{"subject", text("The subject, such as user:corp:ada.")},
              {"user", text("The owner of the jobs that it submits.")},
              {"groups", list("Its groups, as its issuer states them.", text("Such as group:corp:nlp."))},
              {"bindings", list("All roles of it and its groups.", reference("RoleBinding"))},
              {"verb?", text("What was asked.")},
              {"queue?", text("The queue of the object; empty: the root.")},
              {"owner?", text("The owner of the object.")},
              {"allowed?", boolean("It may.")},
              {"by?", reference("RoleBinding")},
              {"needs?", word_of<Role>("If not: the least role at that queue that could.")}});
  schemas["Identity"] =
      object("Who the server takes you for.",
             {{"subject", text("The subject, such as token:ci.")},
              {"user", text("The owner of the jobs that it submits.")},
              {"authenticated_by",
               text("How the request was authenticated: token, certificate, socket, session, issuer or job-token.")},
              {"connection", text("What carried it: plain, tls or unix-socket.")},
              {"roles", list("Its roles.", object("A role at a queue.", {{"role", role()}, {"queue", queue()}}))}});
}

Schema clock() {
  return object("The server's clock and the wall clock of its machine.",
                {{"time", time("The server's time, by which it decides.")},
                 {"wall_time", time("The wall clock.")},
                 {"offset_ms", integer("Milliseconds by which the wall clock is ahead.")},
                 {"followed", boolean("The server's clock follows the wall clock; false: it is too far off, and nobody "
                                      "has confirmed it.")}});
}

Schema amounts(std::string_view description) {
  return object(description, {{"gpus?", number("GPUs of any model.")},
                              {"gpu_equivalents?", number("GPUs by the weight of their model.")},
                              {"cpus?", number("Cores.")},
                              {"memory_mib?", integer("MiB of memory.")},
                              {"models", map("GPUs by model.", number("GPUs."))}});
}

Schema queue() {
  return object(
      "A queue with its limits and what runs and waits below it.",
      {{"path", text("Its path, such as research/nlp.")},
       {"parent", text("The parent's path; empty: the root.")},
       {"depth", integer("1 below the root.")},
       {"leaf", boolean("It has no queues below it, and takes jobs.")},
       {"weight", integer("Its share of what is left beyond guarantees.")},
       {"policy", word_of<QueuePolicy>("Whether a job that cannot start blocks those behind it.")},
       {"trust_domain", text("Its trust domain; may be the parent's.")},
       {"guaranteed", amounts("What it always gets back, as far as stated, by the configuration.")},
       {"effective", amounts("What of it counts now; less where it was not used for long.")},
       {"max", amounts("What it never exceeds, as far as stated.")},
       {"lending_limit", amounts("What of its guarantee others may use, as far as stated.")},
       {"max_per_user", object("What one user has below it at most, as far as stated.",
                               {{"jobs?", integer("Jobs that run or are nominated to places.")},
                                {"gpus?", number("GPUs of those.")},
                                {"submitted?", integer("Jobs that run or wait; a service or an array is one.")}})},
       {"attained_service?", object("Its jobs go by the GPU time they have had, not by arrival.",
                                    {{"thresholds_gpu_s", list("Where a job falls a level.", integer("GPU-seconds."))},
                                     {"promote_after_s", integer("Who waited so long goes first; 0: never.")}})},
       {"eviction?",
        object(
            "Where the queue is asked for by itself: the terms of eviction in force for its jobs.",
            {{"min_runtime_s", integer("None of them is evicted before it has run so long.")},
             {"min_runtime_of", text("The queue that says so; empty: the cluster does.")},
             {"cooldown_s", integer("The same after an eviction, if that is longer.")},
             {"cooldown_of", text("The queue that says so; empty: the cluster does.")},
             {"grace_s", integer("Time to save a checkpoint, of jobs that name none.")},
             {"grace_of", text("The queue that says so; empty: the cluster does.")},
             {"limits", list("Queues on the way to the root, from this one on, that limit how many jobs below them are "
                             "evicted within an hour.",
                             object("A limit.", {{"queue", text("The queue's path.")},
                                                 {"evictions_per_hour", integer("So many.")},
                                                 {"used", integer("Of these, in the last hour.")}}))}})},
       {"revision?", text("Where the queue is asked for by itself: another one whenever its limits are others.")},
       {"changes?", list("Where the queue is asked for by itself: its changes by command, in their order.",
                         reference("QueueEdit"))},
       {"users?",
        list("Where the queue is asked for by itself and limits users: what each has below it, by name.",
             object("A user.", {{"user", text("The user's name.")},
                                {"jobs", integer("Jobs that run or are nominated to places.")},
                                {"gpus", number("GPUs of those.")},
                                {"submitted", integer("Jobs that run or wait; a service or an array is one.")}}))},
       {"usage", amounts("What is bound below it.")},
       {"within", amounts("The part of it that is within its guarantee and those of the queues above it.")},
       {"borrowed_gpus", number("GPUs beyond that: jobs of other queues may reclaim them.")},
       {"burst_gpus", number("GPUs of burst pools, all of them borrowed.")},
       {"nominated_gpus", number("GPUs nominated to jobs whose victims are leaving.")},
       {"pending", integer("Jobs that wait below it and may be asked.")},
       {"running", integer("Jobs that run below it.")},
       {"dominant_share", text("The largest part of the cluster's GPU-equivalents, cores or memory that it "
                               "uses, with four decimals.")}});
}

Schema gpu() {
  return object("A GPU of a node.",
                {{"index", integer("Its place on the node.")},
                 {"uuid", text("Its UUID.")},
                 {"model", text("Its model.")},
                 {"memory_mib", integer("Its memory.")},
                 {"numa", integer("The NUMA node it is next to.")},
                 {"nvlink_island", integer("GPUs of one island see each other over NVLink.")},
                 {"healthy", boolean("It has not failed.")},
                 {"fenced?", boolean("It takes no tasks until an operator lifts that.")},
                 {"fault?", text("Why it is fenced.")},
                 {"foreign", boolean("Others than berth use it.")},
                 {"simulated", boolean("It does not exist.")},
                 {"free", number("0 to 1: what of it is not bound.")},
                 {"nominated", number("0 to 1: what of it is nominated.")},
                 {"slices?", text("Of one that is cut: taken slices of its memory, such as 4-7.")},
                 {"driven_pct?", number("The time in the last hour in which the driver saw it at work, "
                                        "in percent; absent: not measured.")},
                 {"jobs", list("Jobs bound to it.", integer("A job."))}});
}

Schema taints_of_nodes() {
  return list("What jobs have to tolerate to run on it.",
              object("A taint.", {{"key", text("Its key.")},
                                  {"value", text("Its value.")},
                                  {"effect", word_of<TaintEffect>("What it does to tasks that do not tolerate it.")}}));
}

Schema capacity() {
  const Schema idle = object(
      "An idle node, in contact and not under maintenance.",
      {{"node", text("Its name.")},
       {"since", time("Nothing has held anything there since then.")},
       {"kept_for",
        word("nothing: it could go, together with all others of which that is said. recent: it is not idle for long "
             "enough. nominated, reserved: for the job. wanted: the job waits and could use it. guaranteed: the "
             "guarantees of queues count on it.",
             {"nothing", "recent", "nominated", "reserved", "wanted", "guaranteed"})},
       {"job?", integer("For which job it stays.")},
       {"cordoned", boolean("It takes no new tasks.")}});
  const Schema wanted = object("Further nodes of the kind that would help, tried by themselves.",
                               {{"nodes", integer("So many; with one fewer one of the jobs would not start.")},
                                {"jobs", list("What would start, in its order.", integer("A job."))},
                                {"gpus", number("GPUs of those jobs.")}});
  const Schema kind = object("Nodes that are alike.", {{"pool", text("Their pool.")},
                                                       {"gpu_model", text("H100; of several A100+H100; or empty.")},
                                                       {"gpus", integer("GPUs of one node.")},
                                                       {"cpus", number("Its cores.")},
                                                       {"memory_mib", integer("Its memory.")},
                                                       {"taints", taints_of_nodes()},
                                                       {"containers", boolean("They run containers.")},
                                                       {"nodes", integer("How many are not lost.")},
                                                       {"releasable", integer("How many could go.")},
                                                       {"idle", list("The longest idle first.", idle)},
                                                       {"wanted?", wanted}});
  return object("Which idle nodes could go, and which further nodes would start jobs that wait.",
                {{"time", time("The server's time.")},
                 {"idle_for_s", integer("A node that is idle for less stays.")},
                 {"items", list("By pool, model and size; also kinds of which all nodes are lost.", kind)},
                 {"complete", boolean("Everybody who waits was asked, for every kind.")},
                 {"seq", integer("The last event that the answer reflects.")}});
}

Schema advice() {
  const Schema item =
      object("A piece of advice.",
             {{"code", word_of<AdviceCode>("What is so.")},
              {"pitfall", word_of<Pitfall>("The pitfall that it is of.")},
              {"severity", word_of<AdviceSeverity>("warning: it costs somebody something now. note: it may.")},
              {"about", word_of<AdviceAbout>("What it is about.")},
              {"name?", text("The queue's path, the pool's name or the job's number.")},
              {"text", text("What is so, with numbers: whole sentences.")},
              {"remedy", text("What would mend it: a whole sentence.")}});
  return object("Which of the usual pitfalls the cluster is in.",
                {{"time", time("The server's time.")},
                 {"items", list("Warnings first; none: none of them is seen.", item)},
                 {"left_out", list("Codes of which there is more.",
                                   object("A code.", {{"code", word_of<AdviceCode>("Of these.")},
                                                      {"count", integer("So many more pieces.")}}))},
                 {"complete", boolean("All jobs were looked at.")},
                 {"seq", integer("The last event that the answer reflects.")}});
}

Schema diagnosis() {
  const Schema item =
      object("A line of the checklist.",
             {{"area", word_of<CheckArea>("What it is about.")},
              {"check", text("Its name.")},
              {"result", word_of<CheckResult>("How it stands. broken: it is there and does not do what it is "
                                              "for. cannot-be-seen: the server has no means to know.")},
              {"evidence", text("What was seen: a whole sentence.")},
              {"remedy", text("The command or key that mends it; empty: ok.")}});
  return object("The production checklist.",
                {{"items", list("By area.", item)},
                 {"ok", integer("So many are.")},
                 {"missing", integer("So many are not set up.")},
                 {"broken", integer("So many do not do what they are for.")},
                 {"cannot_be_seen", integer("So many the server cannot judge.")},
                 {"pass_pct", integer("Percent of those that it can judge that are ok, rounded down.", 0, 100)}});
}

Schema node() {
  return object(
      "A node.",
      {{"name", text("Its name.")},
       {"pool", text("The pool it is in.")},
       {"cell", text("The backend cluster it is in.")},
       {"status", word_of<NodeStatus>("Whether berth is in contact with it.")},
       {"cordoned", boolean("It takes no new tasks.")},
       {"draining", boolean("What runs on it is moved away.")},
       {"why", text("What berth itself keeps it out for, or does not give it up for; may be empty.")},
       {"maintenance", list("Windows that are not over, the first to begin first.",
                            object("A window.", {{"from", time("When nothing runs there any more.")},
                                                 {"to", time("When it takes tasks again.")}}))},
       {"labels", map("Its labels.", text("A value."))},
       {"taints", taints_of_nodes()},
       {"topology", list("The domain it is in at each topology level, outermost first.", text("A domain."))},
       {"cpus", number("Its cores.")},
       {"cpus_free", number("Cores that neither jobs nor others use.")},
       {"memory_mib", integer("Its memory.")},
       {"memory_free_mib", integer("Memory that neither jobs nor others use.")},
       {"gpus", list("Its GPUs.", reference("Gpu"))},
       {"gpus_total", integer("How many.")},
       {"gpus_free", number("Of healthy ones that others do not use, what is not bound.")},
       {"foreign",
        object("What others than berth use of it.",
               {{"gpus", integer("GPUs.")}, {"cpus", number("Cores.")}, {"memory_mib", integer("Memory.")}})},
       {"countables", list("What it has beside CPUs, memory and GPUs.",
                           object("A countable.", {{"name", text("Its name.")},
                                                   {"amount", integer("How much the node has.")},
                                                   {"free", integer("What neither jobs nor others use.")},
                                                   {"foreign", integer("What others than berth use.")}}))},
       {"tasks", list("Tasks bound to it.",
                      object("A task.", {{"job", integer("The job.")}, {"task", integer("Its number.")}}))},
       {"containers", boolean("It runs containers: tasks with an image go nowhere else.")},
       {"image_count", integer("How many images it has.")},
       {"images?", list("Of a node that runs containers, where it is asked for by itself: their names, sorted.",
                        text("An image."))},
       {"lease", integer("How often it has registered.")}});
}

Schema drained_job() {
  return object("A job on a node that drains.",
                {{"id", integer("The job.")},
                 {"user", text("Whose it is.")},
                 {"leaves", boolean("It is asked to leave; else it runs to its end.")},
                 {"loses_work", boolean("It does not save when it is asked to leave.")},
                 {"unsaved_s", integer("Seconds of work since its last checkpoint; 0: it loses none.")},
                 {"gpus", number("GPUs that it has, here and elsewhere.")},
                 {"ends?", time("When its time limit ends it.")}});
}

Schema window() {
  return object("A maintenance window.", {{"name", text("Its name.")},
                                          {"nodes", list("Its nodes.", text("A node."))},
                                          {"from", time("When nothing runs there any more.")},
                                          {"to", time("When they take tasks again.")},
                                          {"reason", text("What it is for; may be empty.")},
                                          {"user", text("Who planned it.")},
                                          {"begun", boolean("It lasts now.")},
                                          {"jobs_there", integer("Jobs that still run on its nodes.")}});
}

Schema window_request() {
  return closed(object("A new maintenance window: nodes by name, or by pool and labels.",
                       {{"name?", text("Its name; berth finds one if absent.")},
                        {"nodes?", list("Nodes.", text("A node."))},
                        {"labels?", map("All nodes with these labels.", text("A value."))},
                        {"pool?", text("All nodes of this pool.")},
                        {"from?", time("When it begins; now if absent.")},
                        {"for_s", integer("How long it lasts, in seconds.", 1, control::kMaxSeconds)},
                        {"reason?", text("What it is for.")}}));
}

Schema usage() {
  const Schema row = object("A row.", {{"queue", text("The queue.")},
                                       {"user", text("The user.")},
                                       {"gpu_model", text("The GPU model.")},
                                       {"kind", word("Inside the guarantees or beyond.", {"within", "borrowed"})},
                                       {"gpu_seconds", number("GPU time, rounded to milliseconds.")},
                                       {"gpu_milli_ms", integer("The same, exact: thousandths of a GPU times ms.")},
                                       {"simulated", boolean("GPUs of this model are simulated on some node, so that "
                                                             "this time may be of such.")}});
  return object("GPU time used.", {{"from", time("Start of the time counted.")},
                                   {"to", time("End of the time counted.")},
                                   {"items", list("Who used it.", row)},
                                   {"idle_gpu_seconds", number("Nobody used it.")},
                                   {"down_gpu_seconds", number("Nobody could use it.")},
                                   {"foreign_gpu_seconds", number("Others than berth used it.")},
                                   {"capacity_gpu_seconds", number("All there was.")},
                                   {"idle_gpu_milli_ms", integer("idle, exact.")},
                                   {"down_gpu_milli_ms", integer("down, exact.")},
                                   {"foreign_gpu_milli_ms", integer("foreign, exact.")},
                                   {"capacity_gpu_milli_ms", integer("capacity, exact.")},
                                   {"simulated_gpus", boolean("Some GPUs are simulated now.")}});
}

template <std::size_t... I>
boost::json::array event_kinds(std::index_sequence<I...>) {
  return {boost::json::string(kind_name(Event(std::in_place_index<I>)))...};
}

Schema event() {
  Schema schema =
      object("An event, with further members by its kind (docs/api.md).",
             {{"seq", integer("Its place in the log.")},
              {"time", time("When it happened.")},
              {"kind", word("What happened.", event_kinds(std::make_index_sequence<std::variant_size_v<Event>>()))},
              {"by?", map("The request that asked for it: subject, proof, address, request.", text("One."))}});
  schema["additionalProperties"] = true;
  return schema;
}

}  // namespace

void add_cluster_schemas(boost::json::object& schemas) {
  schemas["Health"] = health();
  schemas["OpenApi"] = map("A document after OpenAPI 3.0.", {});
  schemas["Cluster"] = cluster();
  schemas["Clock"] = clock();
  add_token_schemas(schemas);
  schemas["Queue"] = queue();
  schemas["Share"] = object("The arithmetic of a share.", {{"path", text("The queue's path.")},
                                                           {"lines", list("Step by step.", text("A sentence."))}});
  schemas["Capacity"] = capacity();
  schemas["Advice"] = advice();
  schemas["Diagnosis"] = diagnosis();
  schemas["QueueList"] = object("All queues.", {{"items", list("The queues, by path.", reference("Queue"))},
                                                {"seq", integer("The last event that the list reflects.")}});
  schemas["Gpu"] = gpu();
  schemas["Node"] = node();
  schemas["NodeList"] = object(
      "Nodes.", {{"items", list("The nodes, by name.", reference("Node"))},
                 {"next_cursor", nullable(text("Where to go on; null: the end."))},
                 {"seq", integer("The last event that the list reflects.")},
                 {"tasks_kept_apart", boolean("false: the server is not root, and all tasks run as its user.")}});
  schemas["NodeChanged"] = object("A command about a node that was taken.",
                                  {{"name", text("The node.")},
                                   {"unchanged", boolean("It already was as asked.")},
                                   {"jobs?", list("Of a drain: the jobs on the node, by id.", drained_job())}});
  schemas["Maintenance"] = window();
  schemas["MaintenanceList"] =
      object("Maintenance windows.", {{"items", list("The windows, by name.", reference("Maintenance"))},
                                      {"seq", integer("The last event that the list reflects.")}});
  schemas["MaintenanceRequest"] = window_request();
  schemas["MaintenanceChanged"] = object("A command about a window that was taken.",
                                         {{"name", text("The window.")}, {"unchanged", boolean("It was planned so.")}});
  schemas["Usage"] = usage();
  schemas["Event"] = event();
  schemas["EventList"] = object("A page of events.", {{"items", list("The events, in order.", reference("Event"))},
                                                      {"next_from", integer("Where to go on.")},
                                                      {"seq", integer("The last event there is.")}});
  schemas["Snapshot"] = object("Everything at one moment.", {{"seq", integer("The last event that it reflects.")},
                                                             {"time", time("The time of that event.")},
                                                             {"config", reference("ConfigDocument")},
                                                             {"queues", list("By path.", reference("Queue"))},
                                                             {"nodes", list("All nodes.", reference("Node"))},
                                                             {"jobs", list("All live jobs.", reference("Job"))}});
}

}  // namespace berth::api
