#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "cli/command/commands.h"
#include "cli/command/document_body.h"
#include "cli/connection.h"
#include "cli/exit_code.h"
#include "cli/output.h"
#include "cli/printable.h"
#include "cli/when.h"
#include "model/document/admission_document.h"
#include "model/document/admission_policies.h"
#include "model/document/quantity.h"

namespace berth::cli {
namespace {

std::string queue_words(const std::string& queue) { return queue.empty() ? "/" : queue; }

// "a, b" of a list; else the value.
std::string value_words(const Json& value) {
  const auto* list = value.if_array();
  if (list == nullptr) return show(value);
  std::string text;
  for (const Json& one : *list) text += (text.empty() ? "" : " ") + show(one);
  return text;
}

// "images: a/* b/*, digest: yes": the keys of a rule without its mode. Of a set of options also what it forbids.
std::string rule_words(const Json& rule, const Json& forbids) {
  std::string text;
  if (const auto* keys = rule.if_object()) {
    for (const auto& [key, value] : *keys) {
      if (key == "mode") continue;
      text += (text.empty() ? "" : ", ") + std::string(key) + ": " + value_words(value);
      if (key == "use") text += " (" + value_words(forbids) + ")";
    }
  }
  return text;
}

Result<int> show_rules(const PolicyOptions& options, Session& session) {
  const auto answer = get(session, "/v1/rules?queue=" + client::encode_segment(options.queue));
  if (!answer) return answer.error();
  session.out << formatted(at(*answer, "items"), options.show.format, [&] {
    const auto& rules = items(*answer, "items");
    if (rules.empty()) return "no admission rules are in force at " + printable(queue_words(options.queue)) + "\n";
    Table table({{"QUEUE", Align::kLeft, true, true},
                 {"RULE", Align::kLeft, true},
                 {"MODE"},
                 {"FROM"},
                 {"ASKS", Align::kLeft, true}});
    for (const Json& rule : rules)
      table.add({queue_words(show(rule, "queue")), show(rule, "name"), show(rule, "mode"), show(rule, "from"),
                 rule_words(at(rule, "rule"), at(rule, "forbids"))});
    return table.text(table_width(session, options.show.format));
  });
  return kOk;
}

Result<std::string> rules_body(const std::string& file) { return document_body(file, document::read_rules); }

std::string trial_text(const Json& trial, std::size_t width) {
  std::string text = show(trial, "looked_at") + " jobs looked at" +
                     (is_true(trial, "complete") ? "" : " (the newest; there are more)") + "; " +
                     show(trial, "refused") + " would have been refused\n";
  Table counts({{"RULE", Align::kLeft, true}, {"MODE"}, {"JOBS", Align::kRight}, {"GPUS", Align::kRight}});
  for (const Json& rule : items(trial, "rules"))
    counts.add({show(rule, "name"), show(rule, "mode"), show(rule, "jobs"), show(rule, "gpus")});
  text += counts.text(width);
  for (const Json& rule : items(trial, "rules")) {
    if (const std::string jobs = show(rule, "not_known"); integer(rule, "not_known") > 0)
      text += "rule " + printable(show(rule, "name")) + ": of " + jobs +
              " jobs it is not known what their pods asked for; what the rule asks of pods was not tried on them\n";
  }
  const auto& broken = items(trial, "broken");
  if (broken.empty()) return text;
  Table jobs({{"JOB", Align::kRight},
              {"NAME", Align::kLeft, true},
              {"QUEUE", Align::kLeft, true},
              {"USER", Align::kLeft, true},
              {"RULE", Align::kLeft, true},
              {"BREAKS", Align::kLeft, true}});
  for (const Json& one : broken) {
    std::string breaks;
    for (const Json& line : items(one, "breaks")) breaks += (breaks.empty() ? "" : "; ") + show(line);
    jobs.add({show(one, "id"), show(one, "name"), show(one, "queue"), show(one, "user"), show(one, "rule"), breaks});
  }
  text += "\n" + jobs.text(width);
  if (const std::string more = show(trial, "not_listed"); more != "0") text += "and " + more + " more\n";
  return text;
}

Result<int> apply_rules(const PolicyOptions& options, Session& session) {
  const auto body = rules_body(options.file);
  if (!body) return body.error();
  const auto answer =
      answer_of(session.server.put("/v1/rules?queue=" + client::encode_segment(options.queue), *body, ""));
  if (!answer) return answer.error();
  session.out << formatted(*answer, options.show.format, [&] {
    const std::string at = printable(queue_words(options.queue));
    return is_true(*answer, "unchanged") ? "nothing changes: these rules are in force at " + at + " already\n"
                                         : "the rules are in force at " + at + "\n";
  });
  return kOk;
}

Result<int> test_rules(const PolicyOptions& options, Session& session) {
  const auto body = rules_body(options.file);
  if (!body) return body.error();
  const auto seconds = document::parse_duration_s(options.last);
  if (!seconds) return invalid("--last: " + seconds.error().message);
  const std::string since = to_iso8601(clock_now() + *seconds * -1000);
  const auto answer = answer_of(session.server.post(
      "/v1/rules/test?queue=" + client::encode_segment(options.queue) + "&since=" + client::encode_segment(since),
      *body));
  if (!answer) return answer.error();
  session.out << formatted(*answer, options.show.format,
                           [&] { return trial_text(*answer, table_width(session, options.show.format)); });
  return show(*answer, "refused") == "0" ? kOk : kFailed;
}

// Reads the rules that are in force back from the answer.
Result<std::vector<document::RuleOfQueue>> rules_in(const Json& answer) {
  std::vector<document::RuleOfQueue> rules;
  for (const Json& item : items(answer, "items")) {
    const Json named = boost::json::object{{"admission", {{show(item, "name"), at(item, "rule")}}}};
    auto read = document::read_rules(boost::json::serialize(named), "the server's answer");
    if (!read) return read.error();
    for (AdmissionRule& rule : *read) rules.push_back({show(item, "queue"), std::move(rule)});
  }
  return rules;
}

// Writes the rules in force at the queue as policies of Kubernetes.
Result<int> export_rules(const PolicyOptions& options, Session& session) {
  const auto answer = get(session, "/v1/rules?queue=" + client::encode_segment(options.queue));
  if (!answer) return answer.error();
  const auto rules = rules_in(*answer);
  if (!rules) return rules.error();
  const auto text = document::policies_of(*rules, show(*answer, "queue"));
  if (!text) return text.error();
  session.out << *text;
  return kOk;
}

}  // namespace

Result<int> run(const PolicyOptions& options, Session& session) {
  if (options.action == "show") return show_rules(options, session);
  if (options.action == "export") return export_rules(options, session);
  if (options.file.empty()) return invalid("FILE is missing: berth policy " + options.action + " rules.yaml");
  return options.action == "apply" ? apply_rules(options, session) : test_rules(options, session);
}

}  // namespace berth::cli
