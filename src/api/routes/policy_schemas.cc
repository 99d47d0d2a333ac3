// Schemas of admission rules; the objects are made in policy_routes.cc.

#include "api/routes/schema.h"
#include "api/routes/schemas.h"
#include "model/admission.h"

namespace berth::api {
namespace {

using namespace schema;

template <class E>
Schema words_of(std::string_view description) {
  return list(description, word_of<E>("One."));
}

Schema either_text(std::string_view description, std::string_view as_text, Schema as_number) {
  return either(description, {text(as_text), std::move(as_number)});
}

Schema gpus(std::string_view description) { return either_text(description, "As a text.", number("As a number.")); }

Schema texts(std::string_view description) { return list(description, text("One.")); }

Schema rule() {
  return closed(object(
      "An admission rule: for which jobs it is, and what it asks of them (docs/admission.md).",
      {{"mode?", word_of<AdmissionMode>("enforce if absent.")},
       {"classes?", words_of<JobClass>("Only jobs of these classes.")},
       {"roles?", words_of<Role>("Only jobs that are submitted with these roles.")},
       {"above_gpus?", gpus("Only jobs with more GPUs.")},
       {"images?", texts("Images, or beginnings of images that end in *.")},
       {"digest?", boolean("Each image is named by its digest.")},
       {"max_gpus?", gpus("GPUs of the whole job, at most.")},
       {"max_time?", either_text("A time limit is given, and is at most this.", "Such as 7d.", integer("In seconds."))},
       {"checkpoint?", boolean("It saves its work when it is asked to stop.")},
       {"forbid?", words_of<ForbiddenOption>("Options that are not allowed.")},
       {"labels?", texts("Labels that it carries.")},
       {"use?", word_of<SecurityStandard>("Forbids the options of this set, too.")},
       {"host_paths?", texts("Paths of the host that pods may use, or paths that end in /* for all below.")}}));
}

Schema trial() {
  const Schema count = object("A rule.", {{"name", text("Its name.")},
                                          {"mode", word_of<AdmissionMode>("Its mode.")},
                                          {"jobs", integer("Jobs that break it.")},
                                          {"gpus", number("Their GPUs.")},
                                          {"not_known", integer("Jobs of pods of which it is not known what the rule "
                                                                "asks of pods.")}});
  const Schema broken = object("A job that breaks a rule.", {{"id", integer("The job.")},
                                                             {"name", text("Its name.")},
                                                             {"queue", text("Its queue.")},
                                                             {"user", text("Its user.")},
                                                             {"submitted", time("When it was submitted.")},
                                                             {"rule", text("The rule.")},
                                                             {"breaks", texts("What is wrong, and would be right.")}});
  return object("What rules would have refused.",
                {{"looked_at", integer("Jobs that were looked at.")},
                 {"complete", boolean("These are all jobs since then; else the newest of them.")},
                 {"refused", integer("Jobs that a rule which is enforced would have refused.")},
                 {"rules", list("The rules.", count)},
                 {"broken", list("The first of them, newest first.", broken)},
                 {"not_listed", integer("So many more.")}});
}

}  // namespace

void add_policy_schemas(boost::json::object& schemas) {
  schemas["RuleSettings"] = rule();
  schemas["RuleDocument"] =
      closed(object("A file of admission rules.", {{"admission", map("By name.", reference("RuleSettings"))}}));
  schemas["RuleList"] = object(
      "The rules in force at a queue.",
      {{"queue", text("Its path; empty: the root.")},
       {"items", list("Outermost first.",
                      object("A rule.", {{"queue", text("Where it is set; empty: the root.")},
                                         {"name", text("Its name.")},
                                         {"mode", word_of<AdmissionMode>("Its mode.")},
                                         {"from", word("Who set it.", {"file", "command"})},
                                         {"forbids", words_of<ForbiddenOption>("All that it forbids, with its set.")},
                                         {"rule", reference("RuleSettings")}}))},
       {"seq", integer("The event up to which the answer goes.")}});
  schemas["RulesSet"] = object("Rules were set.", {{"queue", text("Where; empty: the root.")},
                                                   {"unchanged", boolean("They were in force already.")}});
  schemas["RuleTrial"] = trial();
}

}  // namespace berth::api
