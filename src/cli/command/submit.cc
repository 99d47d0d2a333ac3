#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <sstream>
#include <vector>

#include "cli/command/commands.h"
#include "cli/command/forecast_words.h"
#include "cli/command/keyed_post.h"
#include "cli/command/submit_job.h"
#include "cli/connection.h"
#include "cli/exit_code.h"
#include "cli/job_flags.h"
#include "cli/output.h"
#include "cli/printable.h"
#include "cli/when.h"

namespace berth::cli {
namespace {

std::string working_directory() {
  std::array<char, PATH_MAX> path{};
  return ::getcwd(path.data(), path.size()) == nullptr ? "/" : path.data();
}

// Returns the first executable file of that name on PATH, or "". A directory that is not absolute is passed over.
std::string program_here(const std::string& name) {
  std::istringstream directories(process_environment("PATH"));
  for (std::string directory; std::getline(directories, directory, ':');) {
    if (!directory.starts_with('/')) continue;
    const std::string path = directory + (directory.ends_with('/') ? "" : "/") + name;
    struct stat found {};
    if (::stat(path.c_str(), &found) == 0 && S_ISREG(found.st_mode) && ::access(path.c_str(), X_OK) == 0) return path;
  }
  return "";
}

std::vector<std::string> variables_here() {
  std::vector<std::string> all;
  for (char** one = ::environ; one != nullptr && *one != nullptr; ++one) all.emplace_back(*one);
  return all;
}

// The job of the flags and the file, as the server takes it.
Result<document::Node> document_of(const JobOptions& options) {
  std::string text;
  if (!options.file.empty()) {
    auto content = read_file(options.file, document::kMaxBytes);
    if (!content) return content.error();
    text = std::move(*content);
  }
  const Surroundings here{working_directory(), [](const std::string& name) { return process_environment(name); },
                          &program_here, &variables_here, clock_now()};
  return job_document(options, text, here);
}

}  // namespace

Result<Json> submit_job(const JobOptions& options, Session& session) {
  const auto document = document_of(options);
  if (!document) return document.error();
  const std::string key = options.key.empty() ? random_key() : options.key;
  auto answer = answer_of(post_until_answered("/v1/jobs", document::to_json_text(*document), key, session));
  if (answer) {
    for (const Json& warning : items(*answer, "warnings"))
      session.err << "warning: " << printable(show(warning)) << "\n";
  }
  return answer;
}

namespace {

// A line for each GPU model that the job may use.
std::string cost_text(const Json& forecast) {
  std::string text;
  for (const Json& one : items(forecast, "cost")) {
    const std::string model = show(one, "gpu_model");
    const std::string currency = " " + show(one, "currency");
    text += (model.empty() ? "" : "on " + printable(model) + ": ") + show(one, "floor_per_hour") +
            " an hour within the guarantee, " + show(one, "burst_per_hour") + " beyond it" + currency;
    if (integer(one, "time_limit_s") > 0)
      text += "; until its time limit " + show(one, "floor") + " or " + show(one, "burst") + currency;
    text += "\n";
  }
  return text.empty() ? "no prices are in force for it\n" : text;
}

Result<int> foretell(const SubmitOptions& options, Session& session) {
  const auto document = document_of(options.job);
  if (!document) return document.error();
  const auto forecast = answer_of(session.server.post("/v1/forecast", document::to_json_text(*document)));
  if (!forecast) return forecast.error();
  session.out << formatted(*forecast, options.format, [&] {
    return (options.estimate ? cost_text(*forecast) : "") + forecast_text(*forecast) + "nothing was submitted\n";
  });
  return kOk;
}

}  // namespace

Result<int> run(const SubmitOptions& options, Session& session) {
  if (options.dry_run || options.estimate) return foretell(options, session);
  const auto answer = submit_job(options.job, session);
  if (!answer) return answer.error();
  session.out << formatted(*answer, options.format, [&] {
    const char* what = is_true(*answer, "repeated")  ? " was submitted before\n"
                       : is_true(*answer, "updated") ? " is being updated\n"
                                                     : " submitted\n";
    return "job " + show(*answer, "id") + what;
  });
  return kOk;
}

}  // namespace berth::cli
