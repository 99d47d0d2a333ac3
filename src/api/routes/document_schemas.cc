// Schemas of the documents that users write: docs/jobs.md and docs/configuration.md say what they mean. What reads them
// is model/document.

#include <cstdint>
#include <limits>
#include <utility>

#include "api/routes/schema.h"
#include "api/routes/schemas.h"
#include "model/cluster_config.h"
#include "model/document/job_keys.h"
#include "model/job.h"
#include "model/priority.h"

namespace berth::api {
namespace {

using namespace schema;

constexpr std::int64_t kMost32 = std::numeric_limits<std::int32_t>::max();

// What quantity.cc and name.cc read.
constexpr const char* kAmount = "^(0|[1-9][0-9]*)([.][0-9]{1,3})?$";
constexpr const char* kSize = "^(0|(0|[1-9][0-9]*)([.][0-9]{1,3})?[KMGTPE]iB?)$";
constexpr const char* kDuration =
    "^(0|[0-9]+d([0-9]+h)?([0-9]+m)?([0-9]+s)?|[0-9]+h([0-9]+m)?([0-9]+s)?|[0-9]+m([0-9]+s)?|[0-9]+s)$";
constexpr const char* kName = "^[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$";

Schema name(std::string_view description) { return matching(description, kName); }

Schema not_negative(Schema number) {
  number["minimum"] = 0;
  return number;
}

Schema not_empty(Schema list) {
  list["minItems"] = 1;
  return list;
}

Schema amount(std::string_view description) {
  return either(description, {not_negative(number("In steps of a thousandth.")),
                              matching("The same as a text, such as \"0.5\".", kAmount)});
}

Schema memory(std::string_view description) {
  return either(description, {matching("With a binary unit, such as 64GiB.", kSize), integer("No unit.", 0, 0)});
}

Schema duration(std::string_view description) {
  return either(description, {matching("Such as 90s, 10m, 2h or 3d.", kDuration), integer("No unit.", 0, 0)});
}

Schema words(std::string_view description) {
  return either(description, {text("One."), list("Several.", text("One of them."))});
}

Schema values(std::string_view description) {
  return map(description, either("A value.", {text("A text."), number("A number."), boolean("true or false.")}));
}

Schema job_ids(std::string_view description) {
  const Schema id = integer("A job.", 1, std::numeric_limits<std::int64_t>::max());
  return either(description, {id, list("Several.", id)});
}

Schema within(Schema integer, const document::KeyForm& form) {
  integer["minimum"] = form.low;
  integer["maximum"] = form.high;
  return integer;
}

Schema sized(Schema text, const document::KeyForm& form) {
  if (form.low > 0) text["minLength"] = form.low;
  if (form.high > 0) text["maxLength"] = form.high;  // of bytes, so never fewer than of characters
  return text;
}

Schema terms(std::string_view description) {
  return list(description,
              closed(object("One rule.", {{"labels", values("Jobs that have all of these.")},
                                          {"level", text("In one domain of this topology level, or node.")},
                                          {"required?", boolean("If false, a wish; true if absent.")}})));
}

Schema condition(std::string_view description) {
  return closed(object(description, {{"key?", text("A label of the node.")},
                                     {"field?", text("metadata.name: the node's name, instead of a label.")},
                                     {"operator", word_of<NodeOperator>("How the label compares with the values.")},
                                     {"values?", words("Of Gt and Lt one whole number; of Exists and DoesNotExist "
                                                       "none.")}}));
}

Schema node_rules(std::string_view description) {
  const Schema terms =
      list("Terms: all conditions of one of them hold.", list("One term.", condition("One condition of it.")));
  const Schema line = text("A line such as zone=a|b.");
  return either(description,
                {line, list("Several.", either("One rule.", {line, condition("One condition."),
                                                             closed(object("Terms.", {{"any", terms}}))}))});
}

Schema tolerations(std::string_view description) {
  const Schema line = text("KEY, KEY=VALUE, or with :EFFECT behind it; * is any key.");
  const Schema map =
      closed(object("As Kubernetes has it.",
                    {{"key?", text("Of the taint; absent: any, with operator Exists.")},
                     {"operator?", word("Equal if absent; Exists: any value.", boost::json::array{"Equal", "Exists"})},
                     {"value?", text("Of the taint, with Equal; absent: none.")},
                     {"effect?", word_of<TaintEffect>("Taints with this effect alone; absent: any.")}}));
  return either(description, {line, list("Several.", either("One toleration.", {line, map}))});
}

Schema mounts(std::string_view description) {
  const Schema line = text("NAME:/PATH, or NAME:/PATH:ro.");
  const Schema map = closed(object("One mount.", {{"name", text("A volume of the queue.")},
                                                  {"path", text("Where the tasks find it.")},
                                                  {"read_only?", boolean("They may not write; false if absent.")}}));
  return either(description, {line, list("Several.", either("One mount.", {line, map}))});
}

Schema secrets(std::string_view description) {
  const Schema line = text("NAME, or NAME:/PATH.");
  const Schema map =
      closed(object("One secret.", {{"name", text("A secret of the queue.")},
                                    {"path?", text("The directory of its files; /berth/secrets/NAME if absent.")}}));
  return either(description, {line, list("Several.", either("One secret.", {line, map}))});
}

void add_keys(Schema& schema, std::string_view prefix);

Schema map_of_keys(std::string_view description, std::string_view prefix) {
  Schema schema = object(description, {});
  add_keys(schema, prefix);
  return closed(schema);
}

// What may stand at a key of the job document follows from its row.
Schema of_key(const document::JobKey& key) {
  using document::KeyKind;
  const std::string says = document::description_of(key);
  switch (key.form.kind) {
    case KeyKind::kText:
      return sized(text(says), key.form);
    case KeyKind::kInteger:
      return within(integer(says), key.form);
    case KeyKind::kAmount:
      return amount(says);
    case KeyKind::kBytes:
      return memory(says);
    case KeyKind::kDuration:
      return matching(says + " Such as 90s, 10m, 2h or 3d.", kDuration);
    case KeyKind::kTime:
      return time(says);
    case KeyKind::kBool:
      return boolean(says);
    case KeyKind::kWord:
      return word(says, boost::json::array(key.form.words.begin(), key.form.words.end()));
    case KeyKind::kTexts:
      return words(says);
    case KeyKind::kPairs:
      return values(says);
    case KeyKind::kCounts:
      return map(says, within(integer("How much."), key.form));
    case KeyKind::kIntegers:
      return list(says, within(integer("One of them."), key.form));
    case KeyKind::kSignal:
      return either(says, {text("Its name."), integer("Its number.")});
    case KeyKind::kJobIds:
      return job_ids(says);
    case KeyKind::kTerms:
      return terms(says);
    case KeyKind::kTolerations:
      return tolerations(says);
    case KeyKind::kNodeRules:
      return node_rules(says);
    case KeyKind::kMounts:
      return mounts(says);
    case KeyKind::kSecrets:
      return secrets(says);
    case KeyKind::kMap:
      return map_of_keys(says, std::string(key.path) + ".");
    case KeyKind::kGroups:
      return list(says, reference("TaskGroupDocument"));
  }
  return {};
}

// A name that is there already stays what it is: `name` and `topology` at the top are the job's.
void add_keys(Schema& schema, std::string_view prefix) {
  boost::json::array required;
  auto& properties = schema["properties"].as_object();
  for (const document::JobKey* key : document::keys_in(prefix)) {
    properties.emplace(key->name(), of_key(*key));
    if (key->required) required.emplace_back(key->name());
  }
  if (!required.empty()) schema["required"] = std::move(required);
}

Schema task_group() { return map_of_keys("Tasks that are alike.", document::kGroupKeys); }

Schema job() {
  Schema job = map_of_keys(
      "A job as its user writes it (docs/jobs.md). A job with one task group may have the members of the group at the "
      "top.",
      "");
  add_keys(job, document::kGroupKeys);
  return job;
}

Schema quota(std::string_view description) {
  Schema schema =
      object(description,
             {{"gpus?", amount("GPUs of any model.")}, {"cpus?", amount("Cores.")}, {"memory?", memory("Memory.")}});
  schema["additionalProperties"] = amount("gpus.MODEL: GPUs of this model.");
  return schema;
}

Schema attained_service() {
  return object("Its jobs by what they have had, not by arrival.",
                {{"thresholds", list("GPU time at which a job falls to the next level.", duration("GPUs times time."))},
                 {"promote_after?", duration("Who has waited so long goes first.")}});
}

Schema eviction() {
  return closed(object(
      "What is agreed with those below it about being stopped for others; what is not said is as at the parent.",
      {{"min_runtime?", duration("None of its jobs is evicted before it has run so long.")},
       {"cooldown?", duration("Nor one that was evicted before it has run so long.")},
       {"grace?", duration("Time to save a checkpoint, of jobs that name none.")},
       {"evictions_per_hour?", integer("Jobs below it that reclaim and preemption stop within an hour, at most; 0: no "
                                       "limit but those above it.",
                                       0, kMostEvictionsPerHour)}}));
}

Schema budget() {
  return closed(object("What the jobs below a queue may use in each month of UTC; one of money and gpu_hours.",
                       {{"money?", amount("In the currency of the price book.")},
                        {"gpu_hours?", amount("GPU-hours, more than 0.")},
                        {"when_used_up?", word_of<BudgetAction>("tell if absent.")}}));
}

Schema grant() {
  return closed(object("What they may use from then until then; one of money and gpu_hours.",
                       {{"money?", amount("In the currency of the price book.")},
                        {"gpu_hours?", amount("GPU-hours, more than 0.")},
                        {"from", time("When it begins.")},
                        {"until", time("When it ends.")},
                        {"when_used_up?", word_of<BudgetAction>("Also once it has ended; tell if absent.")}}));
}

Schema volumes() {
  return map("Volumes that jobs of the queue and of all below it may mount, by name (docs/data.md).",
             closed(object("A volume; one of host_path, nfs, claim and csi.",
                           {{"host_path?", text("A directory of the node.")},
                            {"nfs?", text("SERVER:/PATH.")},
                            {"claim?", text("The name of a PersistentVolumeClaim.")},
                            {"csi?", text("The name of a CSI driver.")},
                            {"attributes?", values("For the CSI driver.")},
                            {"secret?", text("A Kubernetes Secret for the CSI driver.")},
                            {"read_only?", boolean("No job may write to it; false if absent.")}})));
}

Schema secret_references() {
  return map("Secrets that jobs of the queue and of all below it may have as files, by name (docs/data.md).",
             closed(object("Where a secret is; one of the two at least.",
                           {{"kubernetes?", text("The name of a Kubernetes Secret.")},
                            {"files?", values("On a machine: file names, each with the path of its source.")}})));
}

Schema queue_settings() {
  return closed(
      object("A queue; {}: without any limit. A bare name in YAML, or null, is the same.",
             {{"moved_from?", text("The path that it had before.")},
              {"returns?", boolean("True: it is the queue of this name that was removed.")},
              {"guaranteed?", quota("What it always gets back.")},
              {"max?", quota("What it never exceeds.")},
              {"lending_limit?", quota("What of its guarantee others may use.")},
              {"weight?", integer("Its share of the surplus; 1 if absent.", 0, 1'000'000)},
              {"trust_domain?", name("The parent's if absent.")},
              {"policy?", word_of<QueuePolicy>("best-effort if absent.")},
              {"attained_service?", closed(attained_service())},
              {"guarantee_decay?", duration("So long without use halves the idle part of its guarantee.")},
              {"eviction?", eviction()},
              {"budget?", budget()},
              {"grant?", grant()},
              {"admission?", map("What the jobs below it have to keep to, by name.", reference("RuleSettings"))},
              {"volumes?", volumes()},
              {"secrets?", secret_references()},
              {"default_image?", text("On Kubernetes: the image of tasks that name none; the parent's if absent.")},
              {"shell?", boolean("False: no shell is opened in the jobs below it. True if absent, unless above it.")},
              {"max_jobs_per_user?", integer("Jobs of one user that run below it, at most.", 0, kMost32)},
              {"max_gpus_per_user?", amount("GPUs of one user's jobs below it, at most.")},
              {"max_submitted_per_user?", integer("Jobs of one user below it, at most.", 0, kMost32)},
              {"queues?", map("The queues below it, by name.", reference("QueueDocument"))}}));
}

Schema scheduling() {
  return closed(object(
      "Knobs of scheduling.",
      {{"min_runtime?", duration("Nobody is evicted before it has run so "
                                 "long.")},
       {"grace?", duration("Time to save before the kill.")},
       {"backfill_reservations?", integer("Blocked jobs per pool that get a backfill reservation.", 0, 1000)},
       {"backfill_after?", duration("So long a job has waited before it gets a reservation by estimates.")},
       {"victims_per_cycle?", integer("Evictions in one cycle, at most.", 0, 1'000'000)},
       {"reclaim?", boolean("Borrowed GPUs are taken back.")},
       {"preempt?", boolean("Higher priority displaces lower.")},
       {"usage_half_life?", duration("Half of past usage is forgotten in the "
                                     "order after so long; 0: all at once.")},
       {"deadline_slack?", duration("A job is urgent so long before the last "
                                    "moment at which it could start.")},
       {"score?", word_of<NodeScore>("Which of the nodes that fit is taken; "
                                     "fragmentation if absent.")},
       {"energy?", boolean("Of the GPU models that a job accepts, those come first of which the least watts go "
                           "into the same work; false if absent.")},
       {"fragmentation_alert?", integer("Percent of all GPUs, idle and expected to be of no use, at "
                                        "which the alarm is raised; 0: never.",
                                        0, 100)},
       {"flap_losses?", integer("A node that lost contact so often within the window is cordoned; 0: never.", 0, 1000)},
       {"flap_window?", duration("The window.")},
       {"suspect_users?",
        integer("A node on which jobs of so many users failed within the window that then did well elsewhere is "
                "cordoned; 0: never.",
                0, 100)},
       {"suspect_window?", duration("The window.")},
       {"cooldown?", duration("Nobody who was evicted is evicted again before it has run so long.")},
       {"evictions_per_hour?", integer("Jobs that reclaim and preemption stop within an hour, at most; 0: no "
                                       "limit.",
                                       0, kMostEvictionsPerHour)},
       {"consolidations_per_hour?", integer("Jobs that are moved within an hour so that others fit, at most; 0: nobody "
                                            "is.",
                                            0, kMostEvictionsPerHour)},
       {"preempt_max_loss?", duration("Unsaved GPU time lost per GPU that a preemption gains, at most; 0: no "
                                      "limit.")},
       {"max_unreachable_percent?",
        integer("With so many percent of the nodes silent at once none is given up; 0: each by "
                "itself.",
                0, 100)},
       {"resize_interval?", duration("A gang grows no sooner than this after its size "
                                     "last changed.")}}));
}

Schema priority_value(std::string_view description) { return integer(description, kLeastPriority, kMostPriority); }

Schema config() {
  const Schema model = closed(object("A GPU model.", {{"weight?", amount("GPU-equivalents per GPU; 1 if absent.")},
                                                      {"memory?", memory("Memory of one.")},
                                                      {"watts?", integer("Of one that is allocated.", 1, kMostWatts)},
                                                      {"idle_watts?", integer("Of one that is not.", 0, kMostWatts)},
                                                      {"mig?", text("How its GPUs are cut, such as h100-80gb.")}}));
  const Schema pool = closed(object(
      "A pool of nodes.",
      {{"name", name("Its name.")},
       {"queues?", words("Only these subtrees may use it; not empty.")},
       {"classes?", not_empty(list("Only jobs of these classes may use it.", word_of<JobClass>("A class.")))},
       {"gpu_levels?", not_empty(list("Its GPUs are used only at these levels.", word_of<GpuLevel>("A level.")))},
       {"burst?", boolean("It backs no guarantee: whatever runs there is borrowed.")},
       {"trust_domain_isolation?",
        name("Within one domain of this topology level, or node, it runs one trust domain.")}}));
  const Schema priority = closed(object("A priority class.", {{"value", priority_value("More goes first.")},
                                                              {"default?", boolean("For jobs that name none.")}}));
  const Schema role = closed(object("A subject has a role at a queue and at all queues below it.",
                                    {{"subject", text("user:NAME, group:ISSUER:NAME or token:NAME.")},
                                     {"role", word_of<Role>("Its role.")},
                                     {"queue?", text("The queue's path; absent: the root.")}}));
  return closed(object("The cluster as its operators write it (docs/configuration.md).",
                       {{"cluster?", name("Its name.")},
                        {"gpu_models?", map("GPU models, by name.", model)},
                        {"pools?", list("Pools of nodes.", pool)},
                        {"topology?", list("Levels above the node, outermost first.", name("A level."))},
                        {"priority_classes?", map("Priority classes, by name.",
                                                  either("A class.", {priority_value("Its value."), priority}))},
                        {"queues?", map("The queues below the root, by name.", reference("QueueDocument"))},
                        {"scheduling?", scheduling()},
                        {"volumes?", volumes()},
                        {"secrets?", secret_references()},
                        {"default_image?", text("On Kubernetes: the image of tasks that name none.")},
                        {"shell?", boolean("False: no shell is opened in any job. True if absent.")},
                        {"admission?", map("What all jobs have to keep to, by name.", reference("RuleSettings"))},
                        {"roles?", list("Which subject has which role at which queue.", role)}}));
}

}  // namespace

void add_document_schemas(boost::json::object& schemas) {
  schemas["TaskGroupDocument"] = task_group();
  schemas["JobDocument"] = job();
  schemas["QueueDocument"] = queue_settings();
  schemas["ConfigDocument"] = config();
  schemas["Config"] = object("The configuration that was applied.",
                             {{"version", integer("Its version; 0: none yet.")},
                              {"config", reference("ConfigDocument")},
                              {"yaml", text("The same as a YAML document.")},
                              {"changes", list("What is in force over it, by command.", reference("LimitOverFile"))}});
  schemas["ConfigApplied"] = object("A configuration that was taken.",
                                    {{"version", integer("Its version.")}, {"unchanged", boolean("It was in force.")}});
  schemas["ConfigDiff"] = object(
      "What would change.",
      {{"version", integer("The version in force.")},
       {"changes", list("By path.", text("A change."))},
       {"refusal?", text("Why applying it would be refused; absent: it would not.")},
       {"consequences", list("By queue.", reference("ConfigConsequence"))},
       {"kept", list("Limits that were set by command and stay in force over it.", reference("LimitOverFile"))},
       {"replaced", list("Limits that were set by command and that it takes over.", reference("LimitOverFile"))}});
  schemas["ConfigConsequence"] = object(
      "What changes for the jobs in a queue and below it.",
      {{"queue", text("Its path.")},
       {"become_borrowed", list("Running jobs that the guarantee would no longer cover.", integer("A job."))},
       {"become_guaranteed", list("Running jobs that the guarantee would then cover.", integer("A job."))},
       {"above_max", boolean("More runs there than the new max; nothing starts until enough of it has ended.")}});
}

}  // namespace berth::api
