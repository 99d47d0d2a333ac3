#include "cli/command/commands.h"
#include "cli/exit_code.h"
#include "cli/output.h"
#include "cli/printable.h"

namespace berth::cli {
namespace {

std::string place_words(const std::string& queue) { return queue.empty() ? "/" : printable(queue); }

// A number is a job: its queue and its owner are what is asked about.
Result<std::vector<QueryValue>> object_of(const AuthOptions& options, Session& session) {
  std::vector<QueryValue> object{{"verb", options.verb}, {"subject", options.subject}};
  const bool is_job = !options.object.empty() && options.object.find_first_not_of("0123456789") == std::string::npos;
  if (is_job) {
    const auto path = job_path(options.object);
    if (!path) return path.error();
    const auto job = get(session, *path);
    if (!job) return job.error();
    object.push_back({"queue", show(*job, "queue")});
    object.push_back({"owner", show(*job, "user")});
    return object;
  }
  if (options.object != "/") object.push_back({"queue", options.object});
  if (!options.owner.empty()) object.push_back({"owner", options.owner});
  return object;
}

std::string with_groups(std::string path, const std::vector<std::string>& groups) {
  for (const std::string& group : groups) path += "&group=" + client::encode_segment(group);
  return path;
}

std::string decision_words(const Json& answer) {
  if (is_true(answer, "allowed")) {
    const Json& by = at(answer, "by");
    return "yes: " + printable(show(by, "subject")) + " is " + show(by, "role") + " at " +
           place_words(show(by, "queue")) + "\n";
  }
  const std::string needs = show(answer, "needs");
  return "no" +
         (needs.empty() ? std::string()
                        : "; that takes the role " + needs + " at " + place_words(show(answer, "queue"))) +
         "\n";
}

std::string explanation(const Json& answer) {
  std::string text = printable(show(answer, "subject")) + ", submits as " + printable(show(answer, "user")) + "\n";
  for (const Json& group : items(answer, "groups")) text += "in " + printable(std::string(group.as_string())) + "\n";
  const auto& bindings = items(answer, "bindings");
  if (bindings.empty())
    return text + "no role names it or a group of it; `roles:` in cluster.yaml would (docs/roles.md)\n";
  for (const Json& binding : bindings) {
    text += printable(show(binding, "subject")) + " is " + show(binding, "role") + " at " +
            place_words(show(binding, "queue")) + (show(binding, "queue").empty() ? " (all queues)" : " and below") +
            "\n";
  }
  return text;
}

}  // namespace

Result<int> run(const AuthOptions& options, Session& session) {
  const bool can_i = options.action == "can-i";
  if (can_i && options.verb.empty()) return invalid("can-i needs a verb, such as submit (docs/roles.md has them)");
  if (!can_i && !options.verb.empty()) return invalid("explain takes no verb; `berth auth can-i VERB OBJECT` does");
  const auto object = object_of(options, session);
  if (!object) return object.error();
  const auto answer = get(session, with_groups(query("/v1/access", *object), options.groups));
  if (!answer) return answer.error();
  session.out << formatted(*answer, options.show.format,
                           [&] { return can_i ? decision_words(*answer) : explanation(*answer); });
  return !can_i || is_true(*answer, "allowed") ? kOk : kFailed;
}

}  // namespace berth::cli
