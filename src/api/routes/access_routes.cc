// What a subject may do, asked without trying it: by the same pure function that every request is held to.

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "api/routes/access.h"
#include "api/routes/json_text.h"
#include "api/routes/request_reading.h"
#include "api/routes/route_groups.h"
#include "policy/authorize.h"

namespace berth::api {
namespace {

namespace json = boost::json;
using http::Request;
using http::Responder;

json::object binding_view(const RoleBinding& binding) {
  return {{"subject", binding.subject}, {"role", name_of(binding.role)}, {"queue", binding.queue}};
}

// The subject that is asked about, as the bindings of the configuration and the tokens know it.
policy::Subject named_subject(const View& view, const Request& request, const std::string& name) {
  policy::Subject subject{.name = name};
  const auto [first, last] = request.query.equal_range("group");
  for (auto group = first; group != last; ++group) subject.groups.push_back("group:" + group->second);
  subject.roles = policy::roles_of(view.state.bindings(), subject.name, subject.groups);
  const std::size_t colon = std::min(name.find(':'), name.size() - 1);
  subject.user = name.substr(colon + 1);
  if (!name.starts_with("token:")) return subject;
  const auto token = view.state.tokens().find(subject.user);
  if (token == view.state.tokens().end() || token->second.expires <= view.now) return subject;
  if (view.state.blocked().contains(name) || view.state.blocked().contains("user:" + token->second.as_user)) {
    subject.roles.clear();
    return subject;
  }
  subject.user = token->second.as_user;
  subject.roles.push_back({name, token->second.role, token->second.queue});
  return subject;
}

json::object subject_view(const policy::Subject& subject) {
  json::array groups(subject.groups.begin(), subject.groups.end());
  json::array bindings;
  for (const RoleBinding& binding : subject.roles) bindings.push_back(binding_view(binding));
  return {{"subject", subject.name},
          {"user", subject.user},
          {"groups", std::move(groups)},
          {"bindings", std::move(bindings)}};
}

void add_decision(json::object& answer, const policy::Subject& subject, policy::Verb verb, const Request& request) {
  const std::string queue = text_of(request, "queue");
  const auto stated_owner = request.query_value("owner");
  const std::string owner = stated_owner ? *stated_owner : subject.user;
  const policy::Decision decision = policy::authorize(subject, verb, {queue, owner});
  answer["verb"] = name_of(verb);
  answer["queue"] = queue;
  answer["owner"] = owner;
  answer["allowed"] = decision.allowed;
  if (decision.by) answer["by"] = binding_view(*decision.by);
  if (decision.needs) answer["needs"] = name_of(*decision.needs);
}

void check_access(Service& service, const Request& request, const Responder& responder) {
  const std::string name = text_of(request, "subject");
  policy::Subject subject = request.principal;
  if (!name.empty() && name != subject.name) {
    const policy::Decision may_ask = policy::authorize(request.principal, policy::Verb::kSeeConfig, {});
    if (!may_ask.allowed) {
      responder.fail(denial(service, request, policy::Verb::kSeeConfig, {}, may_ask));
      return;
    }
    service.read([&](const View& view) { subject = named_subject(view, request, name); });
  } else if (request.query.contains("group")) {
    responder.fail(invalid("group is given with subject, for another user; your own groups are those of your token"));
    return;
  }
  json::object answer = subject_view(subject);
  if (const auto verb = enum_from_name<policy::Verb>(text_of(request, "verb")))
    add_decision(answer, subject, *verb, request);
  responder.send(json_answer(std::move(answer)));
}

}  // namespace

void add_access_routes(http::Router& router, Service& service) {
  http::ParameterDoc verb = http::query_parameter("verb", "What is to be done; absent: only the bindings are told.");
  for (const std::string_view word : EnumNames<policy::Verb>::kNames) verb.values.emplace_back(word);
  http::ParameterDoc group =
      http::query_parameter("group", "With subject: a group of it, such as corp:nlp; may be given again.");
  group.repeated = true;
  router.add(
      {.method = http::Method::kGet,
       .pattern = "/v1/access",
       .access = http::Access::kToken,
       .threads = http::Threads::kReads,
       .doc = {.operation_id = "checkAccess",
               .summary = "Whether a subject may do something, and by which role at which queue.",
               .responses = {{.status = 200, .description = "The decision.", .schema = "AccessDecision"},
                             {.status = 403, .description = "You may not ask about others."}},
               .description = "Nothing is tried and nothing is looked up but roles: a queue that does not exist "
                              "is answered by those above it. To ask about others takes see-config.",
               .tags = {"access"},
               .parameters = {verb, http::query_parameter("queue", "The queue of the object; absent: the root."),
                              http::query_parameter("owner", "Whose job it is; absent: the subject's own."),
                              http::query_parameter("subject", "user:NAME, token:NAME or cert:NAME; absent: you."),
                              group}},
       .handler = [&service](const Request& request, const Responder& to) { check_access(service, request, to); }});
}

}  // namespace berth::api
