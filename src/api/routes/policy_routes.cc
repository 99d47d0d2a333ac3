// Admission rules: which are in force at a queue, and which of the jobs of the past others would have refused.

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <limits>

#include "api/routes/access.h"
#include "api/routes/documents.h"
#include "api/routes/json_text.h"
#include "api/routes/request_reading.h"
#include "api/routes/route_groups.h"
#include "api/routes/rule_trial.h"
#include "api/routes/views.h"
#include "control/admission.h"

namespace berth::api {
namespace {

namespace json = boost::json;
using http::Access;
using http::Method;
using http::Request;
using http::Responder;

const std::vector<std::string> kRuleTypes = {"application/json", "application/yaml"};
constexpr std::size_t kJobsPerRead = 1000;

// The queue that the request names; none: the root, of which everybody knows. Error: there is none, or the subject may
// not see it or has not the verb there.
Result<std::string> queue_of(Service& service, const Request& request, policy::Verb verb) {
  const std::string path = text_of(request, "queue");
  bool known = false;
  service.read([&](const View& view) {
    const state::QueueState* queue = view.state.queue_at(path);
    known = queue != nullptr && !queue->removed;
  });
  const policy::Decision decision = policy::authorize(request.principal, verb, {path});
  if (known && decision.allowed) return path;
  const bool seen = path.empty() || policy::authorize(request.principal, policy::Verb::kSeeQueue, {path}).allowed;
  if (!known || !seen) return not_found("no such queue '" + path.substr(0, 200) + "'");
  return denial(service, request, verb, {path}, decision);
}

json::array option_words(const std::vector<ForbiddenOption>& options) {
  json::array words;
  for (const ForbiddenOption option : options) words.emplace_back(name_of(option));
  return words;
}

void add_rules(json::array& views, const state::QueueState& queue, const std::vector<AdmissionRule>& rules,
               std::string_view from) {
  for (const AdmissionRule& rule : rules)
    views.push_back(json::object{{"queue", queue.path},
                                 {"name", rule.name},
                                 {"mode", name_of(rule.mode)},
                                 {"from", from},
                                 {"forbids", option_words(forbidden_by(rule))},
                                 {"rule", rule_document(rule)}});
}

void get_rules(Service& service, const Request& request, const Responder& responder) {
  const auto path = queue_of(service, request, policy::Verb::kSeeQueue);
  if (!path) {
    responder.fail(path.error());
    return;
  }
  json::array rules;
  Seq seq = 0;
  service.read([&](const View& view) {
    for (const state::QueueState* queue : control::queues_down_to(view.state, *path)) {
      add_rules(rules, *queue, queue->admission, "file");
      add_rules(rules, *queue, queue->own_admission, "command");
    }
    seq = view.state.last_seq();
  });
  responder.send(json_answer(json::object{{"queue", *path}, {"items", std::move(rules)}, {"seq", seq}}));
}

// Tries the rules on all jobs that were there since `since`: those that live, and those that have finished since.
Result<RuleTrial> tried(Service& service, const std::string& queue, std::vector<AdmissionRule> rules, Timestamp since) {
  RuleTrial trial(queue, std::move(rules));
  service.read(
      [&](const View& view) { view.state.jobs().for_each([&](const state::JobState& job) { trial.add(job); }); });
  std::uint64_t before = std::numeric_limits<std::uint64_t>::max();
  while (!trial.full()) {
    const auto page = service.history(before, kJobsPerRead);
    if (!page) return page.error();
    for (const PastJob& past : *page) {
      if (past.finished >= since) trial.add(past.job);
    }
    if (page->size() < kJobsPerRead || page->back().finished < since) break;
    before = page->back().cursor;
  }
  return trial;
}

json::object trial_view(const RuleTrial& trial) {
  json::array rules;
  for (const RuleTrial::Count& one : trial.counts())
    rules.push_back(json::object{{"name", one.rule.name},
                                 {"mode", name_of(one.rule.mode)},
                                 {"jobs", one.jobs},
                                 {"gpus", from_thousandths(one.gpu_milli)},
                                 {"not_known", one.not_known}});
  json::array jobs;
  for (const RuleTrial::Broken& one : trial.broken())
    jobs.push_back(json::object{{"id", one.job.value()},
                                {"name", one.name},
                                {"queue", one.queue},
                                {"user", one.user},
                                {"submitted", to_iso8601(one.submitted)},
                                {"rule", one.rule},
                                {"breaks", json::array(one.breaks.begin(), one.breaks.end())}});
  return {{"looked_at", trial.looked_at()}, {"complete", !trial.full()}, {"refused", trial.refused()},
          {"rules", std::move(rules)},      {"broken", std::move(jobs)}, {"not_listed", trial.not_listed()}};
}

void test_rules(Service& service, const Request& request, const Responder& responder) {
  const auto path = queue_of(service, request, policy::Verb::kManageRules);
  if (!path) {
    responder.fail(path.error());
    return;
  }
  auto rules = decode_rules(request);
  if (!rules) {
    responder.fail(rules.error());
    return;
  }
  const auto trial = tried(service, *path, std::move(*rules), time_of(request, "since", Timestamp()));
  if (!trial) {
    responder.fail(trial.error());
    return;
  }
  responder.send(json_answer(trial_view(*trial)));
}

void put_rules(Service& service, const Request& request, const Responder& responder) {
  const auto path = queue_of(service, request, policy::Verb::kManageRules);
  if (!path) {
    responder.fail(path.error());
    return;
  }
  auto rules = decode_rules(request);
  if (!rules) {
    responder.fail(rules.error());
    return;
  }
  service.submit(origin_of(request), SetRules{*path, std::move(*rules), request.subject},
                 [responder, path = *path](const Result<control::Reply>& reply) {
                   if (reply)
                     responder.send(json_answer(json::object{{"queue", path}, {"unchanged", reply->unchanged}}));
                   else
                     responder.fail(reply.error());
                 });
}

}  // namespace

void add_policy_routes(http::Router& router, Service& service) {
  const http::ParameterDoc queue = http::query_parameter("queue", "The path of the queue; absent: the root.");
  router.add({.method = Method::kGet,
              .pattern = "/v1/rules",
              .access = Access::kToken,
              .threads = http::Threads::kReads,
              .doc = {.operation_id = "listRules",
                      .summary = "The admission rules in force at a queue: its own and those of all queues above it.",
                      .responses = {{.status = 200, .description = "The rules, outermost first.", .schema = "RuleList"},
                                    {.status = 404, .description = "There is no such queue."}},
                      .tags = {"configuration"},
                      .parameters = {queue}},
              .handler = [&service](const Request& request, const Responder& to) { get_rules(service, request, to); }});
  router.add({.method = Method::kPut,
              .pattern = "/v1/rules",
              .access = Access::kToken,
              .threads = http::Threads::kReads,
              .doc = {.operation_id = "putRules",
                      .summary = "Sets the rules of a queue beside those of the configuration, as a whole.",
                      .responses = {{.status = 200, .description = "They are in force.", .schema = "RulesSet"},
                                    {.status = 400, .description = "The rules are malformed."},
                                    {.status = 404, .description = "There is no such queue."},
                                    {.status = 409, .description = "The configuration has a rule of this name there."}},
                      .tags = {"configuration"},
                      .parameters = {queue},
                      .request_schema = "RuleDocument",
                      .request_types = kRuleTypes},
              .handler = [&service](const Request& request, const Responder& to) { put_rules(service, request, to); }});
  router.add(
      {.method = Method::kPost,
       .pattern = "/v1/rules/test",
       .access = Access::kToken,
       .threads = http::Threads::kLongReads,
       .doc = {.operation_id = "testRules",
               .summary = "Which of the jobs since a time these rules would have refused. Nothing is stored.",
               .responses = {{.status = 200, .description = "The jobs that break them.", .schema = "RuleTrial"},
                             {.status = 400, .description = "The rules are malformed."},
                             {.status = 404, .description = "There is no such queue."}},
               .tags = {"configuration"},
               .parameters = {queue, http::query_parameter("since", "Only jobs that live or have finished since.",
                                                           http::ParameterType::kTime)},
               .request_schema = "RuleDocument",
               .request_types = kRuleTypes},
       .handler = [&service](const Request& request, const Responder& to) { test_rules(service, request, to); }});
}

}  // namespace berth::api
