// The schemas of what is changed by command: limits of queues, and roles.

#include "api/routes/schema.h"
#include "api/routes/schemas.h"
#include "model/role.h"

namespace berth::api {
namespace {

Schema limits(std::string_view description) {
  return list(description,
              object("A limit.", {{"key", text("As in the configuration, such as guaranteed.gpus.")},
                                  {"value", text("What it is then, such as 8, 64GiB or 2h; none: it is not stated.")},
                                  {"before", text("What it was before.")}}));
}

Schema some_jobs(std::string_view description) {
  return object(description, {{"jobs", list("Those that you may see.", integer("A job."))},
                              {"not_shown", integer("How many more there are.")}});
}

Schema binding(std::initializer_list<std::pair<std::string_view, Schema>> members) {
  return object("A role.", members);
}

}  // namespace

void add_delegation_schemas(boost::json::object& schemas) {
  const auto queue = [] { return text("The path of the queue."); };
  const auto revision = [] { return text("Another one whenever the limits of the queue are others."); };
  const auto set = [] {
    return list("KEY=VALUE each, such as guaranteed.gpus=+8; none takes a limit away.",
                matching("A limit.", "^[^=]+=.+$"));
  };
  const auto until = [] { return time("When it goes back; absent: it does not."); };
  schemas["QueueEdit"] = object("A change of a queue by command.", {{"version", integer("Of the configuration.")},
                                                                    {"by", text("The subject that made it.")},
                                                                    {"at", time("When.")},
                                                                    {"until?", until()},
                                                                    {"limits", limits("What it set.")}});
  schemas["LimitOverFile"] =
      object("A limit of a queue that was set by command.",
             {{"queue", queue()},
              {"key", text("As in the configuration, such as guaranteed.gpus.")},
              {"value", text("What the command set, such as 8, 64GiB or 2h; none: it is not stated.")},
              {"file", text("What the file says.")},
              {"by", text("The subject that set it.")},
              {"at", time("When.")},
              {"until?", until()}});
  schemas["QueueChangeRequest"] = closed(object("A change.", {{"set", set()}, {"until?", until()}}));
  schemas["QueuePreviewRequest"] =
      closed(object("A change to look at.",
                    {{"set?", set()}, {"until?", until()}, {"undo?", boolean("Instead: undoing the last change.")}}));
  schemas["QueueChange"] = object("A queue that was changed.", {{"queue", queue()},
                                                                {"version", integer("Of the configuration.")},
                                                                {"unchanged", boolean("It was so already.")},
                                                                {"revision", revision()},
                                                                {"limits", limits("What changed.")}});
  schemas["QueuePreview"] =
      object("What a change would do.",
             {{"queue", queue()},
              {"unchanged", boolean("It is so already.")},
              {"revision", revision()},
              {"limits", limits("What would change.")},
              {"become_borrowed", some_jobs("Running jobs that the guarantee would no longer cover.")},
              {"become_guaranteed", some_jobs("Running jobs that the guarantee would then cover.")},
              {"above_max", boolean("More runs than the new max; nothing starts until enough of it has ended.")},
              {"start", some_jobs("Jobs that would start now, or get their places, and would wait without it.")},
              {"wait", some_jobs("Jobs that would wait, and would start now or get their places without it.")},
              {"stop", some_jobs("Jobs that would be asked to stop now, and would run on without it.")}});
  const auto subject = [] { return text("Such as user:ada, group:corp:nlp or token:ci."); };
  const auto role = [] { return word_of<Role>("The role."); };
  const auto at = [] { return text("The queue at which it holds, and below; empty: the root."); };
  schemas["Role"] = binding({{"subject", subject()},
                             {"role", role()},
                             {"queue", at()},
                             {"from", word("Where it comes from.", {"file", "command"})},
                             {"by?", text("By command: the subject that granted it.")},
                             {"at?", time("By command: when.")},
                             {"blocked?", boolean("The access of the subject is ended.")}});
  schemas["RoleList"] =
      object("Roles.", {{"items", list("Those of the file first.", reference("Role"))},
                        {"blocked", list("Subjects whose access is ended, for those that may see the configuration.",
                                         object("A subject.", {{"subject", subject()},
                                                               {"by", text("The subject that ended it.")},
                                                               {"at", time("When.")}}))},
                        {"seq", integer("The event that the list reflects.")}});
  schemas["RoleRequest"] = closed(object("A role.", {{"subject", subject()}, {"role", role()}, {"queue?", at()}}));
  schemas["RoleChanged"] =
      object("A role that was granted or revoked.",
             {{"subject", subject()}, {"role", role()}, {"queue", at()}, {"unchanged", boolean("It was so.")}});
  schemas["SubjectRequest"] = closed(object("A subject.", {{"subject", subject()}}));
  schemas["SubjectChanged"] = object(
      "A subject.",
      {{"subject", subject()}, {"blocked", boolean("Its access is ended.")}, {"unchanged", boolean("It was so.")}});
}

}  // namespace berth::api
