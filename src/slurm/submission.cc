#include "slurm/submission.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <cctype>
#include <chrono>
#include <thread>

#include "base/utf8.h"
#include "cli/command/keyed_post.h"
#include "cli/printable.h"
#include "model/secret_name.h"
#include "slurm/job_script.h"
#include "slurm/letter_case.h"
#include "slurm/time_forms.h"

namespace berth::slurm {
namespace {

namespace json = boost::json;

constexpr std::size_t kLongestLabel = kLongestArrayText;
constexpr std::chrono::milliseconds kPause{200};
constexpr std::chrono::milliseconds kLongestPause{2000};
constexpr int kMostSilentLooks = 60;  // so many looks without a server are waited through: two minutes

bool stays_here(std::string_view name) {
  return name.starts_with("BERTH_") || name == "_" || name == "SHLVL" || name == "PWD" || name == "OLDPWD";
}

// The words of --export. A comma between quotes is one of the value, whose quotes stay, as Slurm has it.
std::vector<std::string> export_words(const std::string& text) {
  std::vector<std::string> parts{""};
  char quote = 0;
  for (const char c : text) {
    if (c == ',' && quote == 0) {
      parts.emplace_back();
      continue;
    }
    if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
    } else if (c == quote) {
      quote = 0;
    }
    parts.back() += c;
  }
  std::erase(parts, "");
  for (std::string& part : parts) {
    const std::string word = upper_case(part);
    if (word == "ALL" || word == "NONE" || word == "NIL") part = word;
  }
  return parts;
}

// The variables that the parts would pass on but that a document cannot carry.
std::vector<std::string> unreadable_exports(const Shell& shell, const JobRequest& request) {
  const std::vector<std::string> parts = export_words(request.exported);
  const bool all = std::find(parts.begin(), parts.end(), "ALL") != parts.end();
  std::vector<std::string> names;
  for (const std::string& one : shell.variables) {
    const std::string name = one.substr(0, one.find('='));
    const bool is_given = std::find(parts.begin(), parts.end(), name) != parts.end();
    if (!is_utf8(one) && (is_given || (all && !stays_here(name)))) names.push_back(name);
  }
  return names;
}

// Those that ALL would pass on, and that would then be kept in the log. A name that is given is meant.
std::vector<std::string> secrets_of_all(const Shell& shell, const JobRequest& request) {
  const std::vector<std::string> parts = export_words(request.exported);
  std::vector<std::string> names;
  if (std::find(parts.begin(), parts.end(), "ALL") == parts.end()) return names;
  for (const std::string& one : shell.variables) {
    const std::string name = one.substr(0, one.find('='));
    const bool is_given = std::find(parts.begin(), parts.end(), name) != parts.end();
    if (!stays_here(name) && looks_like_a_secret(name) && !is_given) names.push_back(name);
  }
  return names;
}

void put_exported(const Shell& shell, const JobRequest& request, json::object& env) {
  for (const std::string& part : export_words(request.exported)) {
    const std::size_t equals = part.find('=');
    if (equals != std::string::npos) {
      env[part.substr(0, equals)] = part.substr(equals + 1);
      continue;
    }
    for (const std::string& one : shell.variables) {
      const std::string name = one.substr(0, one.find('='));
      const bool wanted = part == "ALL" ? !stays_here(name) && !looks_like_a_secret(name) : name == part;
      if (wanted && part != "NONE" && part != "NIL" && is_utf8(one) && one.size() > name.size())
        env[name] = one.substr(name.size() + 1);
    }
  }
}

void put_labels(const Shell& shell, const JobRequest& request, const Work& work, json::object& document) {
  json::object labels{{"slurm.tool", name_of(shell.tool)}};
  const auto put = [&](const char* key, const std::string& value) {
    if (!value.empty() && value.size() <= kLongestLabel && is_utf8(value)) labels[key] = value;
  };
  if (request.array) put("slurm.array", request.array->text());
  if (!work.script.empty() && !work.words.empty()) put("slurm.command", work.words.front());
  put("slurm.output", request.output);
  put("slurm.error", request.error);
  put("slurm.input", request.input);
  document["labels"] = std::move(labels);
}

void put_resources(const JobRequest& request, json::object& document) {
  document["cpus"] = request.cpus();
  if (const auto memory = request.memory()) document["memory"] = std::to_string(*memory) + "MiB";
  if (request.all_gpus() > 0) document["gpus"] = request.all_gpus();
  if (request.all_gpus() > 0 && !request.gpu_type().empty()) document["gpu_models"] = json::array{request.gpu_type()};
}

void put_when(const JobRequest& request, json::object& document) {
  if (request.limit_minutes != kUnlimited) document["time_limit"] = std::to_string(request.limit_minutes) + "m";
  if (request.begin) document["earliest_start"] = to_iso8601(*request.begin);
  if (request.deadline) document["deadline"] = to_iso8601(*request.deadline);
  for (const DependsOn& one : request.dependencies) {
    if (!document.contains(one.key)) document[one.key] = json::array();
    document[one.key].as_array().push_back(json::value(std::stoll(one.job)));
  }
}

// The models that a type such as "h100" stands for, of those that the server says it knows.
json::array models_of_type(const std::string& type, const std::string& refusal) {
  constexpr std::string_view kKnown = "known: ";
  json::array models;
  const std::size_t begin = refusal.find(kKnown);
  if (begin == std::string::npos) return models;
  const std::string listed = refusal.substr(begin + kKnown.size());
  for (std::string model : comma_list(listed.substr(0, listed.find('\n')))) {
    model.erase(0, model.find_first_not_of(' '));
    const bool same_start = lower_case(model).starts_with(lower_case(type));
    const bool ends_there =
        model.size() <= type.size() || std::isalnum(static_cast<unsigned char>(model[type.size()])) == 0;
    if (same_start && ends_there) models.emplace_back(model);
  }
  return models;
}

// The server's refusal in Slurm's words.
Complaint in_slurm_words(const JobRequest& request, const Error& error) {
  const std::string& text = error.message;
  const auto says = [&](std::string_view part) { return text.find(part) != std::string::npos; };
  if (error.code == ErrorCode::kUnavailable)
    return refused("Unable to contact slurm controller (connect failure)", text);
  if (says("no such pool")) {
    Complaint complaint = refused("Invalid partition name specified");
    complaint.errors.push_back("invalid partition specified: " + request.partition);
    return complaint;
  }
  if (says("--day-limit") || says("max_submitted_per_user"))
    return refused("Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)", text);
  if (error.code == ErrorCode::kDenied || text.starts_with("queue") || says("no such queue"))
    return refused("Invalid account or account/partition combination specified", text);
  if (says("priority: no such class")) return refused("Invalid qos specification", text);
  if (says("dependencies:")) return refused("Job dependency problem", text);
  if (says("gpu_models:") || says("gpus")) return refused("Requested node configuration is not available", text);
  if (says("128 KiB")) return refused("Pathname of a file, directory or other parameter too long", text);
  return refused("Unspecified error", text);
}

// Ids of elements ("7_3") become those of their jobs.
std::optional<Complaint> resolve_elements(Shell& shell, JobRequest& request) {
  for (DependsOn& one : request.dependencies) {
    const std::size_t mark = one.job.find('_');
    if (mark == std::string::npos) continue;
    const auto children = all_items(shell.session, "/v1/jobs?finished=true&parent=" + one.job.substr(0, mark));
    std::string found;
    for (const cli::Json& child : children ? *children : std::vector<cli::Json>()) {
      const auto array = parse_array(cli::show(cli::at(child, "labels"), "slurm.array"));
      const std::int64_t index = cli::integer(child, "index");
      if (std::to_string(array ? array->number(index) : index) == one.job.substr(mark + 1))
        found = cli::show(child, "id");
    }
    if (found.empty())
      return refused("Job dependency problem", "element " + one.job + " has not begun; depend on the whole array");
    one.job = found;
  }
  return std::nullopt;
}

template <class Ask>
OrComplaint<cli::Json> asked(Shell& shell, const JobRequest& given, const Work& work, const Ask& ask) {
  JobRequest request = given;
  if (auto complaint = resolve_elements(shell, request)) return *complaint;
  if (const auto secrets = secrets_of_all(shell, request); !secrets.empty()) {
    const std::string names = cli::printable(cli::joined(secrets, ","));
    shell.hint("not passed on, since a job's environment is kept in the log: " + names + "; --export=ALL," + names +
               " passes it on all the same (better: secrets, docs/data.md)");
  }
  if (const auto unreadable = unreadable_exports(shell, request); !unreadable.empty())
    shell.hint("not passed on, since the value is not UTF-8: " + cli::joined(unreadable, ","));
  json::object document = job_document(shell, request, work);
  auto answer = cli::answer_of(ask(json::serialize(document)));
  if (!answer && !request.gpu_type().empty()) {
    json::array models = models_of_type(request.gpu_type(), answer.error().message);
    if (!models.empty()) {
      document["gpu_models"] = std::move(models);
      answer = cli::answer_of(ask(json::serialize(document)));
    }
  }
  if (!answer) return in_slurm_words(request, answer.error());
  return std::move(*answer);
}

}  // namespace

json::object job_document(const Shell& shell, const JobRequest& request, const Work& work) {
  json::object document{{"name", request.name}, {"workdir", request.directory}};
  json::object env;
  put_exported(shell, request, env);
  for (const auto& [name, value] : fixed_variables(request, shell.host)) env[name] = value;
  document["env"] = std::move(env);
  const std::vector<std::string> command =
      work.script.empty() ? step_command(request, work.words)
                          : batch_command(request, work.script, {work.words.begin() + 1, work.words.end()});
  document["command"] = json::array(command.begin(), command.end());
  const auto put = [&](const char* key, const std::string& value) {
    if (!value.empty()) document[key] = value;
  };
  put("queue", request.account);
  put("pool", request.partition);
  put("comment", request.comment);
  put("image", request.image);
  if (request.qos != "normal") put("priority", request.qos);
  put_resources(request, document);
  put_when(request, document);
  if (request.hold) document["hold"] = true;
  if (request.exclusive) document["exclusive"] = true;
  json::array rules;
  for (const auto& [option, some] : request.node_rules) rules.insert(rules.end(), some.begin(), some.end());
  if (!rules.empty()) document["node_rules"] = std::move(rules);
  if (!request.mounts.empty()) document["mounts"] = json::array(request.mounts.begin(), request.mounts.end());
  if (!request.signal.empty()) {
    document["checkpoint"] = json::object{{"on_signal", true},
                                          {"signal", request.signal},
                                          {"grace", std::to_string(std::max<std::int64_t>(1, request.signal_s)) + "s"}};
  }
  if (request.array) {
    document["kind"] = "array";
    document["array"] = json::object{{"size", request.array->count()}};
    if (request.array->running > 0) document["array"].as_object()["running"] = request.array->running;
  }
  put_labels(shell, request, work, document);
  return document;
}

OrComplaint<cli::Json> submit(Shell& shell, const JobRequest& request, const Work& work) {
  auto answer = asked(shell, request, work, [&](const std::string& body) {
    return cli::post_until_answered("/v1/jobs", body, cli::random_key(), shell.session);
  });
  if (const auto* taken = std::get_if<cli::Json>(&answer)) {
    for (const cli::Json& warning : cli::items(*taken, "warnings")) shell.hint(cli::show(warning));
  }
  return answer;
}

OrComplaint<cli::Json> foretell(Shell& shell, const JobRequest& request, const Work& work) {
  return asked(shell, request, work,
               [&](const std::string& body) { return shell.session.server.post("/v1/forecast", body); });
}

int exit_code_of_job(const cli::Json& job) {
  const std::string outcome = cli::show(job, "outcome");
  if (outcome == "succeeded") return 0;
  const std::int64_t code = cli::integer(job, "code");
  return code > 0 && code < 256 ? static_cast<int>(code) : 1;
}

namespace {

// The highest of its elements.
Result<int> code_of_elements(Shell& shell, const cli::Json& array) {
  int code = exit_code_of_job(array) == 0 ? 0 : 1;
  const auto elements = all_items(shell.session, cli::query("/v1/jobs", {{"limit", "500"},
                                                                         {"finished", "true"},
                                                                         {"since", cli::show(array, "submitted")},
                                                                         {"parent", cli::show(array, "id")}}));
  if (!elements) return elements.error();
  for (const cli::Json& element : *elements) code = std::max(code, exit_code_of_job(element));
  return code;
}

}  // namespace

Result<cli::Json> job_once_told(Shell& shell, const std::string& id) {
  std::chrono::milliseconds pause = kPause;
  for (int silent = 0;; ++silent) {
    auto job = cli::get(shell.session, "/v1/jobs/" + id);
    if (job || job.error().code != ErrorCode::kUnavailable || silent == kMostSilentLooks) return job;
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, kLongestPause);
  }
}

Result<int> wait_for_end(Shell& shell, const std::string& id) {
  while (true) {
    const auto job = job_once_told(shell, id);
    if (!job) return job.error();
    if (cli::show(*job, "phase") == "finished")
      return cli::show(*job, "kind") == "array" ? code_of_elements(shell, *job) : exit_code_of_job(*job);
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace berth::slurm
