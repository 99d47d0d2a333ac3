#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <charconv>

#include "cli/printable.h"
#include "slurm/job_rows.h"
#include "slurm/job_words.h"
#include "slurm/letter_case.h"
#include "slurm/row_format.h"
#include "slurm/shell.h"
#include "slurm/time_forms.h"

namespace berth::slurm {
namespace {

std::string time_text(const std::optional<Timestamp>& time, const char* otherwise) {
  return time ? local_time(*time) : otherwise;
}

std::string time_member(const JobRow& row, std::string_view key, const std::optional<Timestamp>& otherwise) {
  const auto time = from_iso8601(cli::show(row.spec(), key));
  return time_text(time ? time : otherwise, "Unknown");
}

std::string account_of_user(const JobRow& row) { return row.text("user"); }

std::string tres_text(const JobRow& row) {
  std::string text = "cpu=" + row.text("cpus") + ",mem=" + memory_text(row) + ",node=1,billing=" + row.text("cpus");
  const std::string gpus = row.text("gpus");
  return text + (gpus.empty() || gpus == "0" ? "" : ",gres/gpu=" + gpus);
}

std::string first_line(const JobRow& row) {
  std::string line = "JobId=" + std::to_string(row.id);
  if (row.array != 0) line += " ArrayJobId=" + std::to_string(row.array) + " ArrayTaskId=" + row.element_text();
  if (row.is_set && row.running_at_once > 0) line += " ArrayTaskThrottle=" + std::to_string(row.running_at_once);
  return line + " JobName=" + row.text("name");
}

// The lines of `scontrol show job`, in Slurm's order. What berth does not know has the word that Slurm has for it.
std::vector<std::string> job_lines(const JobRow& row) {
  const std::string limit = row.limit_minutes() < 0 ? "UNLIMITED" : long_span(row.limit_minutes() * 60);
  const std::string tasks = row.variable("SLURM_NTASKS");
  const std::string per_task = row.variable("SLURM_CPUS_PER_TASK");
  const std::string nodes = host_list(row.nodes());
  const std::string end =
      row.ended ? local_time(*row.ended)
                : (row.started && row.limit_minutes() > 0 ? local_time(*row.started + row.limit_minutes() * 60'000)
                                                          : "Unknown");
  const std::string user = account_of_user(row);
  const std::string workdir = group_of(row, "workdir");
  std::vector<std::string> lines{
      first_line(row),
      "UserId=" + user + " GroupId=" + user + " MCS_label=N/A",
      "Priority=" + row.text("priority") + " Nice=0 Account=" + row.text("queue") + " QOS=" + row.qos(),
      "JobState=" + row.state + " Reason=" + row.reason + " Dependency=" + dependency_text(row),
      "Requeue=1 Restarts=" + std::to_string(std::max<std::int64_t>(0, cli::integer(row.job(), "attempts") - 1)) +
          " BatchFlag=" + (cli::show(cli::at(row.job(), "labels"), "slurm.tool") == "srun" ? "0" : "1") +
          " Reboot=0 ExitCode=" + row.exit_status(),
      "RunTime=" + long_span(row.seconds()) + " TimeLimit=" + limit + " TimeMin=N/A",
      "SubmitTime=" + time_text(row.submitted, "Unknown") +
          " EligibleTime=" + time_member(row, "earliest_start", row.submitted),
      "AccrueTime=" + time_text(row.submitted, "Unknown"),
      "StartTime=" + time_text(row.started, "Unknown") + " EndTime=" + end +
          " Deadline=" + (cli::has(row.spec(), "deadline") ? time_member(row, "deadline", {}) : "N/A"),
      "SuspendTime=None SecsPreSuspend=0 LastSchedEval=" + local_time(row.now) + " Scheduler=Main",
      "Partition=" + row.partition() + " AllocNode:Sid=" + row.variable("SLURM_SUBMIT_HOST") + ":0",
      "ReqNodeList=" + or_null(wanted_nodes(row)) + " ExcNodeList=" + or_null(unwanted_nodes(row)),
      "NodeList=" + nodes};
  if (!nodes.empty()) lines.push_back("BatchHost=" + row.nodes().front());
  lines.push_back("NumNodes=1 NumCPUs=" + row.text("cpus") + " NumTasks=" + (tasks.empty() ? "1" : tasks) +
                  " CPUs/Task=" + (per_task.empty() ? "1" : per_task) + " ReqB:S:C:T=0:0:*:*");
  lines.push_back("TRES=" + tres_text(row));
  lines.push_back("Socks/Node=* NtasksPerN:B:S:C=0:0:*:* CoreSpec=*");
  lines.push_back("MinCPUsNode=1 MinMemoryNode=" + memory_text(row) + " MinTmpDiskNode=0");
  lines.push_back("Features=" + features_of(row) + " DelayBoot=00:00:00");
  lines.push_back("OverSubscribe=OK Contiguous=0 Licenses=(null) Network=(null)");
  lines.push_back("Command=" + or_null(cli::show(cli::at(row.job(), "labels"), "slurm.command")));
  lines.push_back("WorkDir=" + workdir);
  const std::string comment = cli::show(row.spec(), "comment");
  if (!comment.empty()) lines.push_back("Comment=" + comment + " ");
  lines.push_back("StdErr=" + error_file_of(row));
  lines.push_back("StdIn=" + input_file_of(row));
  lines.push_back("StdOut=" + file_of(row));
  lines.emplace_back("Power=");
  if (gpus_text(row) != "N/A") lines.push_back("TresPerNode=" + gpus_text(row));
  return lines;
}

std::string job_text(const JobRow& row, bool one_line) {
  std::string text;
  for (const std::string& line : job_lines(row)) {
    text += (text.empty() ? "" : one_line ? " " : "\n   ") + cli::printable(line);
  }
  return text + (one_line ? "\n" : "\n   \n\n");
}

// Reads "JobId=7"; its name in lower case.
std::pair<std::string, std::string> assignment(const std::string& word) {
  const std::size_t equals = std::min(word.find('='), word.size());
  return {lower_case(word.substr(0, equals)), equals < word.size() ? word.substr(equals + 1) : ""};
}

// An element, in full; one that has not begun has the job of its array.
Result<JobRow> element_row(Shell& shell, const JobNumber& number) {
  auto rows = job_rows(shell, {.finished = true, .numbers = {number}});
  if (!rows) return rows.error();
  const auto found = std::find_if(rows->begin(), rows->end(), [&](const JobRow& one) { return is_meant(one, number); });
  if (found == rows->end()) return not_found("no such element");
  if (auto filled = fill_row(shell, *found); !filled) return filled.error();
  return std::move(*found);
}

int show_jobs(Shell& shell, const std::vector<std::string>& words, bool one_line) {
  if (words.empty()) {
    const auto rows = job_rows(shell, {.in_full = true});
    if (!rows) return server_failed(shell, rows.error(), "slurm_load_jobs error: ");
    for (const JobRow& row : *rows) shell.out() << job_text(row, one_line);
    if (rows->empty()) shell.out() << "No jobs in the system\n";
    return 0;
  }
  const auto number = job_number(words.front());
  if (!number) {
    shell.err() << "scontrol_print_job error: Invalid job id specified\n";
    return 1;
  }
  const auto row = number->element ? element_row(shell, *number) : job_row(shell, number->id);
  if (!row && row.error().code != ErrorCode::kNotFound)
    return server_failed(shell, row.error(), "slurm_load_jobs error: ");
  if (!row) {
    shell.err() << "slurm_load_jobs error: Invalid job id specified\n";
    return 1;
  }
  shell.out() << job_text(*row, one_line);
  return 0;
}

int show(Shell& shell, std::vector<std::string> words, bool one_line) {
  if (words.empty()) {
    shell.err() << "too few arguments for keyword:show\n";
    return 1;
  }
  const auto [entity, value] = assignment(words.front());  // "job 7" and "job=7" are the same
  const bool is_pair = words.front().find('=') != std::string::npos;
  words.erase(words.begin());
  if (is_pair) words.insert(words.begin(), value);
  if (words.size() > 1) {
    shell.err() << "too many arguments for keyword:show\n";
    return 1;
  }
  if (entity == "job" || entity == "jobs" || entity == "jobid") return show_jobs(shell, words, one_line);
  if (entity == "hostlist" && !words.empty()) {
    shell.out() << host_list(comma_list(words.front())) << "\n";
    return 0;
  }
  for (const char* other : {"node", "nodes", "partition", "partitions", "reservation", "config", "step", "topology",
                            "hostnames", "assoc_mgr", "licenses", "federation", "bbstat", "burstbuffer", "daemons"}) {
    if (entity != other) continue;
    shell.error("show " + entity + " is not held: give `berth nodes`, `berth config` or `sinfo`");
    return 1;
  }
  shell.err() << "invalid entity:" << entity << " for keyword:show \n";
  return 1;
}

// hold, release: each job of the list.
int change_jobs(Shell& shell, const std::string& verb, const std::vector<std::string>& words) {
  if (words.empty()) {
    shell.err() << "too few arguments for keyword:" << verb << "\n";
    return 1;
  }
  int code = 0;
  for (const std::string& word : words) {
    const auto [entity, value] = assignment(word);
    const bool is_pair = entity == "job" || entity == "jobid";
    for (const std::string& text : comma_list(is_pair ? value : word)) {
      const auto number = job_number(text);
      const auto done =
          !number || number->element
              ? Result<cli::Json>(not_found("give the number of a job"))
              : cli::answer_of(shell.session.server.post(
                    "/v1/jobs/" + std::to_string(number->id) + (verb == "release" ? "/release" : "/hold"), ""));
      if (done) continue;
      const bool unknown = done.error().code == ErrorCode::kNotFound;
      const std::string why = unknown ? "Invalid job id specified"
                              : done.error().code == ErrorCode::kUnavailable
                                  ? "Unable to contact slurm controller (connect failure)"
                              : done.error().code == ErrorCode::kDenied ? "Access/permission denied"
                                                                        : "Job is no longer pending execution";
      shell.err() << why << " for job " << text << "\nslurm_suspend error: " << why << "\n";
      if (!unknown) shell.hint(done.error().message);
      code = 1;
    }
  }
  return code;
}

int set_priority(Shell& shell, const std::string& id, const std::string& value) {
  std::int64_t priority = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), priority);
  if (error != std::errc() || end != value.data() + value.size()) {
    shell.err() << "Invalid Priority value: " << value << "\n";
    return 1;
  }
  const auto done = cli::answer_of(shell.session.server.put(
      "/v1/jobs/" + id + "/priority", boost::json::serialize(boost::json::object{{"priority", priority}})));
  if (done) return 0;
  const bool unknown = done.error().code == ErrorCode::kNotFound;
  shell.err() << (unknown ? "Invalid job id specified" : "Access/permission denied") << " for job " << id << "\n";
  if (!unknown) shell.hint(done.error().message);
  return 1;
}

int update_job(Shell& shell, const std::string& id, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    const auto [name, value] = assignment(word);
    if (name == "jobid" || name == "job") continue;
    if (name != "priority") {
      shell.err() << "Update of this parameter is not supported: " << word << "\nRequest aborted\n";
      shell.hint("Priority alone can be changed of a job; cancel it and submit it again for the rest");
      return 1;
    }
    if (const int code = set_priority(shell, id, value); code != 0) return code;
  }
  return 0;
}

int update(Shell& shell, const std::vector<std::string>& words) {
  std::string id;
  for (const std::string& word : words) {
    const auto [name, value] = assignment(word);
    if (name == "jobid" || name == "job") id = value;
  }
  if (id.empty()) {
    shell.err() << "No valid entity in update command\n"
                   "Input line must include \"NodeName\", \"PartitionName\", \"Reservation\", \"JobId\", or "
                   "\"SlurmctldDebug\"\n";
    return 1;
  }
  for (const std::string& one : comma_list(id)) {
    const auto number = job_number(one);
    if (!number || number->element || !job_row(shell, number->id)) {
      shell.err() << "Invalid job id specified for job " << one << "\n";
      return 1;
    }
  }
  int code = 0;
  for (const std::string& one : comma_list(id)) code = std::max(code, update_job(shell, one, words));
  return code;
}

}  // namespace

int run_scontrol(Shell& shell, const std::vector<std::string>& given) {
  Begun begun = begin_tool(shell, given);
  if (begun.code) return *begun.code;
  const std::vector<std::string>& words = begun.words.operands;
  const std::string keyword = words.empty() ? "" : words.front();
  const std::vector<std::string> rest(words.begin() + (words.empty() ? 0 : 1), words.end());
  if (keyword == "show") return show(shell, rest, begun.words.has("oneliner"));
  if (keyword == "hold" || keyword == "uhold" || keyword == "holdu" || keyword == "release")
    return change_jobs(shell, keyword, rest);
  if (keyword == "update") return update(shell, rest);
  if (keyword == "version") {
    shell.out() << kVersionText << "\n";
    return 0;
  }
  for (const char* other :
       {"requeue", "requeuehold", "suspend", "resume", "create", "delete", "reboot", "reconfigure", "shutdown", "top",
        "ping", "notify", "wait_job", "write", "listpids", "completing", "token", "takeover", "setdebug"}) {
    if (keyword != other) continue;
    shell.error(
        keyword + " is not held" +
        (keyword == "requeue" ? ": the server cannot start a running job anew; cancel it and submit it again" : ""));
    return 1;
  }
  if (keyword.empty()) {
    shell.error("commands from standard input are not held; give show, hold, release or update");
    return 1;
  }
  shell.err() << "invalid keyword: " << keyword << "\n";
  return 1;
}

}  // namespace berth::slurm
