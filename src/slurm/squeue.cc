#include <algorithm>
#include <array>
#include <limits>
#include <set>

#include "slurm/host_names.h"
#include "slurm/job_rows.h"
#include "slurm/job_words.h"
#include "slurm/letter_case.h"
#include "slurm/row_format.h"
#include "slurm/shell.h"
#include "slurm/time_forms.h"

namespace berth::slurm {
namespace {

constexpr std::string_view kUsualFormat = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R";
constexpr std::string_view kLongFormat = "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R";
constexpr std::string_view kSqueueUsage =
    "Usage: squeue [-A account] [--clusters names] [-i seconds] [--job jobid]\n"
    "              [-n name] [-o format] [-p partitions] [--qos qos]\n"
    "              [--reservation reservation] [--sort fields] [--start]\n"
    "              [--step step_id] [-t states] [-u user_name] [--usage]\n"
    "              [-L licenses] [-w nodes] [--federation] [--local] [--sibling]\n"
    "\t      [-ahjlrsv]\n";

std::string time_or(const std::optional<Timestamp>& time, const char* otherwise) {
  return time ? local_time(*time) : otherwise;
}

std::string limit_text(const JobRow& row) {
  return row.limit_minutes() < 0 ? "UNLIMITED" : short_span(row.limit_minutes() * 60);
}

std::string left_text(const JobRow& row) {
  return row.limit_minutes() < 0 ? "UNLIMITED"
                                 : short_span(std::max<std::int64_t>(0, row.limit_minutes() * 60 - row.seconds()));
}

std::string reason_or_nodes(const JobRow& row) {
  if (row.state == "PENDING" || row.state == "TIMEOUT" || row.state == "FAILED") return "(" + row.reason + ")";
  return host_list(row.nodes());
}

std::string node_count(const JobRow& row) {
  const std::size_t now = row.nodes().size();
  return std::to_string(
      now > 0 ? now : static_cast<std::size_t>(std::max<std::int64_t>(1, cli::integer(row.job(), "tasks_total"))));
}

std::string end_text(const JobRow& row) {
  if (row.ended) return local_time(*row.ended);
  if (row.started && row.limit_minutes() > 0) return local_time(*row.started + row.limit_minutes() * 60'000);
  return "N/A";
}

std::string array_number(const JobRow& row) { return std::to_string(row.array != 0 ? row.array : row.id); }

std::string variable_or_one(const JobRow& row, std::string_view name) {
  const std::string value = row.variable(name);
  return value.empty() ? "1" : value;
}

std::string command_text(const JobRow& row) {
  return or_null(cli::show(cli::at(row.job(), "labels"), "slurm.command"));
}

std::string restarts(const JobRow& row) {
  return std::to_string(std::max<std::int64_t>(0, cli::integer(row.job(), "attempts") - 1));
}

struct JobField {
  char letter;  // 0: by name alone
  std::string_view name;
  std::string_view title;
  bool in_full;  // what only a job by itself tells
  std::string (*text)(const JobRow&);
};

// clang-format off
constexpr auto kFields = std::to_array<JobField>({
    {'i', "jobarrayid", "JOBID", false, [](const JobRow& row) { return row.number(); }},
    {'A', "jobid", "JOBID", false, [](const JobRow& row) { return std::to_string(row.id); }},
    {'F', "arrayjobid", "ARRAY_JOB_ID", false, array_number},
    {'K', "arraytaskid", "ARRAY_TASK_ID", false, [](const JobRow& row) { return row.element_text(); }},
    {'a', "account", "ACCOUNT", false, [](const JobRow& row) { return row.text("queue"); }},
    {'B', "batchhost", "EXEC_HOST", false, [](const JobRow& row) { return row.nodes().empty() ? "n/a" : row.nodes().front(); }},
    {'b', "tres-per-node", "TRES_PER_NODE", false, gpus_text},
    {0, "gres", "TRES_PER_NODE", false, gpus_text},
    {'C', "numcpus", "CPUS", false, [](const JobRow& row) { return row.text("cpus"); }},
    {'c', "mincpus", "MIN_CPUS", false, [](const JobRow&) { return std::string("1"); }},
    {0, "cpus-per-task", "CPUS_PER_TASK", true, [](const JobRow& row) { return variable_or_one(row, "SLURM_CPUS_PER_TASK"); }},
    {0, "numtasks", "TASKS", true, [](const JobRow& row) { return variable_or_one(row, "SLURM_NTASKS"); }},
    {'D', "numnodes", "NODES", false, node_count},
    {'d', "mintmpdisk", "MIN_TMP_DISK", false, [](const JobRow&) { return std::string("0"); }},
    {'E', "dependency", "DEPENDENCY", true, dependency_text},
    {'e', "endtime", "END_TIME", false, end_text},
    {0, "exit_code", "EXIT_CODE", false, [](const JobRow& row) { return std::to_string(cli::integer(row.job(), "code")); }},
    {'f', "feature", "FEATURES", true, features_of},
    {'g', "groupname", "GROUP", false, [](const JobRow& row) { return row.text("user"); }},
    {'h', "oversubscribe", "OVER_SUBSCRIBE", false, [](const JobRow&) { return std::string("OK"); }},
    {'j', "name", "NAME", false, [](const JobRow& row) { return row.text("name"); }},
    {'k', "comment", "COMMENT", true, [](const JobRow& row) { return or_null(cli::show(row.spec(), "comment")); }},
    {'L', "timeleft", "TIME_LEFT", false, left_text},
    {'l', "timelimit", "TIME_LIMIT", false, limit_text},
    {'M', "timeused", "TIME", false, [](const JobRow& row) { return short_span(row.seconds()); }},
    {'m', "minmemory", "MIN_MEMORY", true, memory_text},
    {'N', "nodelist", "NODELIST", false, [](const JobRow& row) { return host_list(row.nodes()); }},
    {'n', "reqnodes", "REQ_NODES", true, wanted_nodes},
    {'O', "contiguous", "CONTIGUOUS", false, [](const JobRow&) { return std::string("0"); }},
    {'o', "command", "COMMAND", false, command_text},
    {'P', "partition", "PARTITION", false, [](const JobRow& row) { return row.partition(); }},
    {'Q', "prioritylong", "PRIORITY", false, [](const JobRow& row) { return row.text("priority"); }},
    {'q', "qos", "QOS", false, [](const JobRow& row) { return row.qos(); }},
    {'R', "reasonlist", "NODELIST(REASON)", false, reason_or_nodes},
    {'r', "reason", "REASON", false, [](const JobRow& row) { return row.reason; }},
    {'S', "starttime", "START_TIME", false, [](const JobRow& row) { return time_or(row.started, "N/A"); }},
    {'T', "state", "STATE", false, [](const JobRow& row) { return row.state; }},
    {'t', "statecompact", "ST", false, [](const JobRow& row) { return row.compact; }},
    {0, "stderr", "STDERR", true, error_file_of},
    {0, "stdin", "STDIN", true, input_file_of},
    {0, "stdout", "STDOUT", true, file_of},
    {0, "restartcnt", "RESTART_COUNT", false, restarts},
    {0, "requeue", "REQUEUE", false, [](const JobRow&) { return std::string("1"); }},
    {'u', "username", "USER", false, [](const JobRow& row) { return row.text("user"); }},
    {'V', "submittime", "SUBMIT_TIME", false, [](const JobRow& row) { return time_or(row.submitted, "N/A"); }},
    {'v', "reservation", "RESERVATION", false, [](const JobRow&) { return std::string("(null)"); }},
    {'W', "licenses", "LICENSES", false, [](const JobRow&) { return std::string("(null)"); }},
    {'w', "wckey", "WCKEY", false, [](const JobRow&) { return std::string("(null)"); }},
    {'x', "exc_nodes", "EXC_NODES", true, unwanted_nodes},
    {'y', "nice", "NICE", false, [](const JobRow&) { return std::string("0"); }},
    {'Z', "workdir", "WORK_DIR", true, [](const JobRow& row) { return group_of(row, "workdir"); }},
});
// clang-format on

std::size_t field_of_letter(char letter) {
  for (std::size_t i = 0; i < kFields.size(); ++i) {
    if (letter != 0 && kFields[i].letter == letter) return i;
  }
  return std::string::npos;
}

std::size_t field_of_name(const std::string& name) {
  const std::string lower = lower_case(name);
  for (std::size_t i = 0; i < kFields.size(); ++i) {
    if (kFields[i].name == lower) return i;
  }
  return std::string::npos;
}

// What the options choose; an empty list chooses all.
struct Chosen {
  std::vector<JobNumber> numbers;
  std::vector<std::string> users;
  std::vector<std::string> accounts;
  std::vector<std::string> names;
  std::vector<std::string> partitions;
  std::vector<std::string> qos;
  std::vector<std::string> nodes;
  std::set<std::string> states{"PENDING", "RUNNING", "COMPLETING"};

  bool takes(const JobRow& row) const;
};

bool is_among(const std::vector<std::string>& words, const std::string& word) {
  return words.empty() || std::find(words.begin(), words.end(), word) != words.end();
}

bool Chosen::takes(const JobRow& row) const {
  if (!numbers.empty() &&
      std::none_of(numbers.begin(), numbers.end(), [&](const auto& one) { return is_meant(row, one); }))
    return false;
  if (!accounts.empty() && std::none_of(accounts.begin(), accounts.end(),
                                        [&](const auto& one) { return is_of_account(row.text("queue"), one); }))
    return false;
  const std::vector<std::string> there = row.nodes();
  if (!nodes.empty() && std::none_of(there.begin(), there.end(), [&](const auto& one) { return is_among(nodes, one); }))
    return false;
  return is_among(users, row.text("user")) && is_among(names, row.text("name")) && is_among(qos, row.qos()) &&
         is_among(partitions, row.partition()) && (states.empty() || states.contains(row.state));
}

std::optional<int> read_states(Shell& shell, const std::string& text, Chosen& chosen) {
  chosen.states.clear();
  for (const std::string& word : comma_list(text)) {
    if (word == "all" || word == "ALL") {
      chosen.states.clear();
      return std::nullopt;
    }
    const auto state = state_word(word);
    if (!state) {
      shell.error("Invalid job state specified: " + word);
      shell.error("Valid job states include: " + all_states());
      shell.err() << "\n";
      return 1;
    }
    chosen.states.insert(*state);
  }
  return std::nullopt;
}

Result<std::string> user_of_token(Shell& shell) {
  const auto identity = cli::get(shell.session, "/v1/identity");
  if (!identity) return identity.error();
  return cli::show(*identity, "user");
}

// What fields are sorted by that show a number as text; an unlimited time is the longest.
std::optional<std::int64_t> sort_number(char letter, const JobRow& row) {
  constexpr std::int64_t kLongest = std::numeric_limits<std::int64_t>::max();
  const std::int64_t limit = row.limit_minutes() < 0 ? kLongest : row.limit_minutes() * 60;
  switch (letter) {
    case 'i':
    case 'A':
      return row.id;
    case 'p':
    case 'Q':
      return cli::integer(row.job(), "priority");
    case 'M':
      return row.seconds();
    case 'l':
      return limit;
    case 'L':
      return limit == kLongest ? kLongest : limit - row.seconds();
    case 'D':
      return std::stoll(node_count(row));
    case 'C':
      return cli::integer(row.job(), "cpus");
    default:
      return std::nullopt;
  }
}

// Sorts by letters; one that is no field is returned.
std::optional<char> sort_rows(std::vector<JobRow>& rows, const std::string& order) {
  const std::vector<std::string> parts = comma_list(order);
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    const bool down = part->front() == '-';
    const std::string letters =
        part->substr(part->find_first_not_of("+-") == std::string::npos ? 0 : part->find_first_not_of("+-"));
    for (auto letter = letters.rbegin(); letter != letters.rend(); ++letter) {
      const std::size_t field = field_of_letter(*letter == 'U' ? 'u' : *letter);  // U: a user's number, not known here
      if (field == std::string::npos && *letter != 'p') return *letter;
      std::stable_sort(rows.begin(), rows.end(), [&](const JobRow& a, const JobRow& b) {
        const JobRow& before = down ? b : a;
        const JobRow& after = down ? a : b;
        if (const auto number = sort_number(*letter, before)) return *number < *sort_number(*letter, after);
        if (*letter == 't') return before.state < after.state;
        return kFields[field].text(before) < kFields[field].text(after);
      });
    }
  }
  return std::nullopt;
}

RowFormat format_of(Shell& shell, const CommandWords& words) {
  if (const auto names = words.value("Format")) return parse_names(*names, field_of_name);
  std::string text(words.has("long") ? kLongFormat : kUsualFormat);
  const std::string variable = shell.variable("SQUEUE_FORMAT");
  if (!variable.empty() && !words.has("long")) text = variable;
  if (const auto given = words.value("format")) text = *given;
  return parse_letters(text, field_of_letter);
}

// The options of choice; a value is an exit code.
std::optional<int> choose(Shell& shell, const CommandWords& words, Chosen& chosen) {
  const auto list = [&](std::string_view name) { return comma_list(words.value(name).value_or("")); };
  for (const char* name : {"job", "jobs"}) {
    for (const std::string& text : list(name)) {
      const auto number = job_number(text);
      if (!number) {
        shell.error("Invalid job id: " + text);
        return 1;
      }
      chosen.numbers.push_back(*number);
    }
  }
  for (const char* name : {"user", "users"}) {
    for (const std::string& user : list(name)) chosen.users.push_back(user_named(user));
  }
  chosen.accounts = list("accounts");
  chosen.names = list("name");
  chosen.partitions = list("partitions");
  chosen.qos = list("qos");
  for (const char* name : {"nodelist", "nodes"}) {
    const auto names = host_names(words.value(name).value_or(""));
    if (!names) {
      shell.error("Invalid node name " + *words.value(name));
      return 1;
    }
    chosen.nodes.insert(chosen.nodes.end(), names->begin(), names->end());
  }
  if (words.has("me")) {
    const auto user = user_of_token(shell);
    if (!user) return server_failed(shell, user.error(), "slurm_load_jobs error: ");
    chosen.users.push_back(*user);
  }
  if (const auto states = words.value("states")) return read_states(shell, *states, chosen);
  return std::nullopt;
}

// squeue takes the value of -j from the next word, although getopt knows it as one that may be missing.
void take_number(CommandWords& words) {
  for (Given& one : words.given) {
    if ((one.option.name != "job" && one.option.name != "jobs") || one.has_value || words.operands.empty()) continue;
    one.value = words.operands.front();
    one.has_value = true;
    words.operands.erase(words.operands.begin());
  }
}

}  // namespace

int run_squeue(Shell& shell, const std::vector<std::string>& given) {
  Begun begun = begin_tool(shell, given);
  if (begun.code) return *begun.code;
  CommandWords& words = begun.words;
  take_number(words);
  if (!words.operands.empty()) {
    shell.error("Unrecognized option: " + words.operands.front());
    shell.out() << kSqueueUsage;
    return 1;
  }
  Chosen chosen;
  if (const auto code = choose(shell, words, chosen)) return *code;
  const RowFormat format = format_of(shell, words);
  for (const std::string& unknown : format.unknown) shell.error("Invalid job format specification: " + unknown);
  RowQuery query;
  query.each_element = words.has("array") || words.has("array-unique");
  query.in_full = std::any_of(format.columns.begin(), format.columns.end(),
                              [](const Column& column) { return kFields[column.field].in_full; });
  query.finished =
      chosen.states.empty() || std::any_of(chosen.states.begin(), chosen.states.end(), [](const auto& state) {
        return state != "PENDING" && state != "RUNNING" && state != "COMPLETING";
      });
  query.numbers = chosen.numbers;
  auto rows = job_rows(shell, query);
  if (!rows) return server_failed(shell, rows.error(), "slurm_load_jobs error: ");
  if (chosen.numbers.size() == 1 && !job_row(shell, chosen.numbers.front().id)) {
    shell.err() << "slurm_load_jobs error: Invalid job id specified\n";
    return 1;
  }
  std::erase_if(*rows, [&](const JobRow& row) { return !chosen.takes(row); });
  if (words.has("long")) shell.out() << date_line(shell.now) << "\n";
  if (!words.has("noheader"))
    shell.out() << row_line(format, [](std::size_t field) { return std::string(kFields[field].title); });
  const auto bad = sort_rows(*rows, words.value("sort").value_or("P,t,-p"));
  if (bad) {
    shell.error("Invalid sort specification: " + std::string(1, *bad));
    return 1;
  }
  for (const JobRow& row : *rows)
    shell.out() << row_line(format, [&](std::size_t field) { return kFields[field].text(row); });
  return 0;
}

}  // namespace berth::slurm
