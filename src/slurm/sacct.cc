#include <pwd.h>

#include <algorithm>
#include <array>
#include <set>

#include "cli/printable.h"
#include "slurm/host_names.h"
#include "slurm/job_rows.h"
#include "slurm/job_words.h"
#include "slurm/letter_case.h"
#include "slurm/row_format.h"
#include "slurm/shell.h"
#include "slurm/time_forms.h"

namespace berth::slurm {
namespace {

constexpr std::string_view kUsualFields = "jobid,jobname,partition,account,alloccpus,state,exitcode";
constexpr std::size_t kMostWidthLetters = 6;
constexpr std::string_view kBriefFields = "jobid,state,exitcode";

// A line of sacct: a job, or the step of it in which its script or command ran.
struct Line {
  const JobRow& row;
  std::string step = {};  // "batch", "0"; empty: the job itself
};

// The server does not tell which user cancelled a job: the job's own user is named.
std::string cancelled_by(const JobRow& row) {
  const std::string user = row.text("user");
  const passwd* account = ::getpwnam(user.c_str());
  return "CANCELLED by " + (account == nullptr ? user : std::to_string(account->pw_uid));
}

std::string state_text(const Line& line) {
  if (line.row.state == "COMPLETING") return "RUNNING";
  if (line.row.state == "CANCELLED") return line.step.empty() ? cancelled_by(line.row) : "CANCELLED";
  if (line.row.state == "TIMEOUT" && !line.step.empty()) return "CANCELLED";
  return line.row.state;
}

std::string exit_text(const Line& line) {
  const bool stopped = line.row.state == "CANCELLED" || line.row.state == "TIMEOUT";
  return !line.step.empty() && stopped ? "0:15" : line.row.exit_status();
}

std::string nodes_text(const Line& line) {
  const std::string nodes = host_list(line.row.nodes());
  return nodes.empty() ? "None assigned" : nodes;
}

std::string tres(const Line& line) {
  const std::string cpus = line.row.text("cpus");
  const std::string gpus = line.row.text("gpus");
  return "billing=" + cpus + ",cpu=" + cpus + (gpus.empty() || gpus == "0" ? "" : ",gres/gpu=" + gpus) +
         ",mem=" + memory_text(line.row) + ",node=1";
}

std::string limit(const Line& line) {
  if (!line.step.empty()) return "";
  return line.row.limit_minutes() < 0 ? "UNLIMITED" : long_span(line.row.limit_minutes() * 60);
}

std::string time_of(const std::optional<Timestamp>& time) { return time ? local_time(*time) : "Unknown"; }

std::string job_only(const Line& line, const std::string& text) { return line.step.empty() ? text : ""; }

std::int64_t cpu_seconds(const Line& line) { return line.row.seconds() * cli::integer(line.row.job(), "cpus"); }

struct AccountField {
  std::string_view name;  // as sacct writes it
  int width;              // negative: on the left
  std::string (*text)(const Line&);
  bool in_full = false;  // what only a job by itself tells
};

std::string raw_number(const Line& line) {
  return std::to_string(line.row.id) + (line.step.empty() ? "" : "." + line.step);
}

std::string raw_limit(const Line& line) {
  const std::int64_t minutes = line.row.limit_minutes();
  return job_only(line, minutes < 0 ? "UNLIMITED" : std::to_string(minutes));
}

std::string nothing(const Line&) { return ""; }

// clang-format off
constexpr auto kAccountFields = std::to_array<AccountField>({
    {"Account", 10, [](const Line& line) { return line.row.text("queue"); }},
    {"AdminComment", 19, nothing},
    {"AllocCPUS", 10, [](const Line& line) { return line.row.text("cpus"); }},
    {"AllocNodes", 10, [](const Line& line) { return std::string(line.row.started ? "1" : "0"); }},
    {"AllocTRES", 10, [](const Line& line) { return line.row.started ? tres(line) : ""; }, true},
    {"AssocID", 7, nothing},
    {"Cluster", 10, [](const Line&) { return std::string("berth"); }},
    {"Comment", 14, [](const Line& line) { return job_only(line, cli::show(line.row.spec(), "comment")); }, true},
    {"Constraints", 14, nothing},
    {"CPUTime", 10, [](const Line& line) { return long_span(cpu_seconds(line)); }},
    {"CPUTimeRAW", 10, [](const Line& line) { return std::to_string(cpu_seconds(line)); }},
    {"DerivedExitCode", 15, [](const Line& line) { return job_only(line, line.row.exit_status()); }},
    {"Elapsed", 10, [](const Line& line) { return long_span(line.row.seconds()); }},
    {"ElapsedRaw", 10, [](const Line& line) { return std::to_string(line.row.seconds()); }},
    {"Eligible", 19, [](const Line& line) { return time_of(line.row.submitted); }},
    {"End", 19, [](const Line& line) { return time_of(line.row.ended); }},
    {"ExitCode", 8, exit_text},
    {"Group", 9, [](const Line& line) { return job_only(line, line.row.text("user")); }},
    {"JobID", -12, [](const Line& line) { return line.row.number() + (line.step.empty() ? "" : "." + line.step); }},
    {"JobIDRaw", -12, raw_number},
    {"JobName", 10, [](const Line& line) { return line.step == "batch" ? line.step : line.row.text("name"); }},
    {"NCPUS", 10, [](const Line& line) { return line.row.text("cpus"); }},
    {"NNodes", 8, [](const Line&) { return std::string("1"); }},
    {"NodeList", 15, nodes_text},
    {"NTasks", 8, [](const Line& line) { return std::string(line.step.empty() ? "" : "1"); }},
    {"Partition", 10, [](const Line& line) { return job_only(line, line.row.partition()); }},
    {"Priority", 10, [](const Line& line) { return job_only(line, line.row.text("priority")); }},
    {"QOS", 10, [](const Line& line) { return job_only(line, line.row.qos()); }},
    {"Reason", 22, [](const Line& line) { return job_only(line, line.row.state == "PENDING" ? line.row.reason : "None"); }},
    {"ReqCPUS", 8, [](const Line& line) { return line.row.text("cpus"); }},
    {"ReqMem", 10, [](const Line& line) { return job_only(line, memory_text(line.row)); }, true},
    {"ReqNodes", 8, [](const Line&) { return std::string("1"); }},
    {"ReqTRES", 10, [](const Line& line) { return job_only(line, tres(line)); }, true},
    {"Start", 19, [](const Line& line) { return time_of(line.row.started); }},
    {"State", 10, state_text},
    {"Submit", 19, [](const Line& line) { return time_of(line.row.submitted); }},
    {"Suspended", 10, [](const Line&) { return std::string("00:00:00"); }},
    {"Timelimit", 10, limit},
    {"TimelimitRaw", 12, raw_limit},
    {"User", 9, [](const Line& line) { return job_only(line, line.row.text("user")); }},
    {"WorkDir", 20, [](const Line& line) { return job_only(line, group_of(line.row, "workdir")); }, true},
});

// Fields of sacct that nothing here measures or counts.
constexpr auto kNotMeasured = std::to_array<std::string_view>({
    "AveCPU", "AveCPUFreq", "AveDiskRead", "AveDiskWrite", "AvePages", "AveRSS", "AveVMSize", "BlockID", "ConsumedEnergy",
    "ConsumedEnergyRaw", "Container", "DBIndex", "Flags", "GID", "Layout", "MaxDiskRead", "MaxDiskReadNode",
    "MaxDiskReadTask", "MaxDiskWrite", "MaxDiskWriteNode", "MaxDiskWriteTask", "MaxPages", "MaxPagesNode", "MaxPagesTask",
    "MaxRSS", "MaxRSSNode", "MaxRSSTask", "MaxVMSize", "MaxVMSizeNode", "MaxVMSizeTask", "McsLabel", "MinCPU",
    "MinCPUNode", "MinCPUTask", "QOSRAW", "ReqCPUFreq", "ReqCPUFreqGov", "ReqCPUFreqMax", "ReqCPUFreqMin", "Reservation",
    "ReservationId", "Reserved", "ResvCPU", "ResvCPURAW", "SubmitLine", "SystemComment", "SystemCPU", "TotalCPU",
    "TRESUsageInAve", "TRESUsageInMax", "TRESUsageInMaxNode", "TRESUsageInMaxTask", "TRESUsageInMin",
    "TRESUsageInMinNode", "TRESUsageInMinTask", "TRESUsageInTot", "TRESUsageOutAve", "TRESUsageOutMax",
    "TRESUsageOutMaxNode", "TRESUsageOutMaxTask", "TRESUsageOutMin", "TRESUsageOutMinNode", "TRESUsageOutMinTask",
    "TRESUsageOutTot", "UID", "UserCPU", "WCKey", "WCKeyID"});
// clang-format on

struct ChosenField {
  const AccountField* field = nullptr;
  int width = 0;
};
using Fields = std::vector<ChosenField>;

// A field by its name; Slurm takes the beginning of a name, too.
const AccountField* account_field(const std::string& name) {
  const auto field = std::find_if(kAccountFields.begin(), kAccountFields.end(), [&](const AccountField& one) {
    return !name.empty() && lower_case(one.name).starts_with(name);
  });
  return field == kAccountFields.end() ? nullptr : &*field;
}

// The fields of a list such as "jobid,state%20".
std::optional<Fields> fields_in(Shell& shell, const std::string& text) {
  Fields fields;
  for (const std::string& part : comma_list(text)) {
    const std::size_t percent = part.find('%');
    const std::string name = lower_case(part.substr(0, percent));
    if (name == "all") {
      for (const AccountField& field : kAccountFields) fields.push_back({&field, field.width});
      shell.hint("--format=ALL: fields that nothing measures are left out");
      continue;
    }
    const AccountField* field = account_field(name);
    if (field == nullptr) {
      const bool known = std::any_of(kNotMeasured.begin(), kNotMeasured.end(), [&](std::string_view full) {
        return !name.empty() && lower_case(full).starts_with(name);
      });
      shell.error(known ? "--format=" + part + " is not held: nothing measures it"
                        : "Invalid field requested: \"" + part + "\"");
      return std::nullopt;
    }
    int width = field->width;
    if (percent != std::string::npos) {
      const int given = std::atoi(part.substr(percent + 1, kMostWidthLetters).c_str());
      if (given != 0) width = given;
    }
    fields.push_back({field, std::clamp(width, -1000, 1000)});
  }
  return fields;
}

// Cut with a plus at its end, as sacct does.
std::string cut(const std::string& text, int width) {
  const auto room = static_cast<std::size_t>(std::abs(width));
  const std::string shown = text.size() > room ? cut_to(text, room - 1) + "+" : text;
  const std::string blanks(room - shown.size(), ' ');
  return width < 0 ? shown + blanks : blanks + shown;
}

struct Layout {
  bool bars = false;
  bool bar_at_end = false;
  std::string bar = "|";

  // A title is cut without a plus.
  std::string line(const Fields& fields, bool titles,
                   const std::function<std::string(const AccountField&)>& text_of) const {
    std::string text;
    for (std::size_t i = 0; i < fields.size(); ++i) {
      std::string value = cli::printable(text_of(*fields[i].field));
      if (titles && !bars) value = value.substr(0, static_cast<std::size_t>(std::abs(fields[i].width)));
      text += bars ? value + (bar_at_end || i + 1 < fields.size() ? bar : "") : cut(value, fields[i].width) + " ";
    }
    return text + "\n";
  }
};

void print_titles(Shell& shell, const Fields& fields, const Layout& layout) {
  shell.out() << layout.line(fields, true, [](const AccountField& field) { return std::string(field.name); });
  if (layout.bars) return;
  for (const ChosenField& one : fields)
    shell.out() << std::string(static_cast<std::size_t>(std::abs(one.width)), '-') << " ";
  shell.out() << "\n";
}

void print_job(Shell& shell, const Fields& fields, const Layout& layout, const JobRow& row, bool with_steps) {
  const auto print = [&](const Line& line) {
    shell.out() << layout.line(fields, false, [&](const AccountField& field) { return field.text(line); });
  };
  print({row});
  const std::string tool = cli::show(cli::at(row.job(), "labels"), "slurm.tool");
  if (with_steps && row.started && !row.is_set && !tool.empty()) print({row, tool == "srun" ? "0" : "batch"});
}

void print_all_names(Shell& shell) {
  std::vector<std::string> names;
  for (const AccountField& field : kAccountFields) names.emplace_back(field.name);
  for (const std::string_view name : kNotMeasured) names.emplace_back(name);
  std::sort(names.begin(), names.end(),
            [](const std::string& a, const std::string& b) { return lower_case(a) < lower_case(b); });
  for (std::size_t i = 0; i < names.size(); ++i) {
    names[i].resize(19, ' ');
    shell.out() << names[i] << ((i + 1) % 4 == 0 || i + 1 == names.size() ? "\n" : " ");
  }
}

struct Wanted {
  std::vector<JobNumber> numbers;
  std::set<std::string> states;
  std::vector<std::string> users;
  std::vector<std::string> nodes;
  std::optional<Timestamp> since;
  std::optional<Timestamp> until;
};

std::optional<int> read_wanted(Shell& shell, const CommandWords& words, Wanted& wanted) {
  for (const std::string& text : comma_list(words.value("jobs").value_or(""))) {
    const auto number = job_number(text.substr(0, text.find('.')));
    if (!number) {
      shell.err() << "sacct: fatal: Bad job/step specified: " << text << "\n";
      return 1;
    }
    wanted.numbers.push_back(*number);
  }
  for (const std::string& text : comma_list(words.value("state").value_or(""))) {
    const auto state = state_word(text);
    if (!state) {
      shell.err() << "sacct: fatal: unrecognized job state value '" << text << "'\n";
      return 1;
    }
    wanted.states.insert(*state);
  }
  for (const auto& [name, into] : {std::pair("starttime", &wanted.since), std::pair("endtime", &wanted.until)}) {
    const auto text = words.value(name);
    if (!text) continue;
    *into = instant(*text, shell.now, Look::kBack);
    if (*into) continue;
    shell.err() << "Invalid time specification (pos=0): " << *text << "\n";
    return 1;
  }
  const Timestamp end = wanted.until.value_or(shell.now);
  if (wanted.since && end < *wanted.since) {
    shell.error("Start time (" + local_time(*wanted.since) + ") requested is after end time (" + local_time(end) +
                ").");
    return 1;
  }
  const auto nodes = host_names(words.value("nodelist").value_or(""));
  if (!nodes) {
    shell.error("Invalid node name " + *words.value("nodelist"));
    return 1;
  }
  wanted.nodes = *nodes;
  if (!wanted.since && wanted.numbers.empty())
    wanted.since = wanted.states.empty() ? instant("today", shell.now) : shell.now;
  for (const char* name : {"user", "uid"}) {
    for (const std::string& user : comma_list(words.value(name).value_or(""))) wanted.users.push_back(user_named(user));
  }
  if (wanted.users.empty() && !words.has("allusers")) {
    const auto identity = cli::get(shell.session, "/v1/identity");
    if (!identity) return server_failed(shell, identity.error(), "sacct: error: ");
    wanted.users.push_back(cli::show(*identity, "user"));
  }
  return std::nullopt;
}

bool is_wanted(const CommandWords& words, const Wanted& wanted, const JobRow& row) {
  const auto among = [&](std::string_view option, const std::string& value) {
    const auto list = words.value(option);
    const auto some = comma_list(list.value_or(""));
    return !list || std::find(some.begin(), some.end(), value) != some.end();
  };
  const auto& numbers = wanted.numbers;
  if (!numbers.empty() &&
      std::none_of(numbers.begin(), numbers.end(), [&](const auto& one) { return is_meant(row, one); }))
    return false;
  // A held job is not eligible to start, and without a number sacct shows jobs by that time.
  if (numbers.empty() && row.reason == "JobHeldUser") return false;
  if (!wanted.states.empty() && !wanted.states.contains(row.state)) return false;
  const auto& users = wanted.users;
  if (!users.empty() && std::find(users.begin(), users.end(), row.text("user")) == users.end()) return false;
  if (wanted.since && row.ended && *row.ended < *wanted.since) return false;
  if (wanted.until && row.submitted && *wanted.until < *row.submitted) return false;
  const auto accounts = words.value("accounts");
  if (accounts) {
    const auto some = comma_list(*accounts);
    if (std::none_of(some.begin(), some.end(), [&](const auto& one) { return is_of_account(row.text("queue"), one); }))
      return false;
  }
  const std::vector<std::string> nodes = row.nodes();
  const bool there = !words.has("nodelist") || std::any_of(nodes.begin(), nodes.end(), [&](const auto& node) {
    return std::find(wanted.nodes.begin(), wanted.nodes.end(), node) != wanted.nodes.end();
  });
  return there && among("name", row.text("name")) && among("partition", row.partition()) && among("qos", row.qos());
}

}  // namespace

int run_sacct(Shell& shell, const std::vector<std::string>& given) {
  Begun begun = begin_tool(shell, given);
  if (begun.code) return *begun.code;
  const CommandWords& words = begun.words;
  if (!words.operands.empty()) {
    shell.error("Unknown arguments:");
    for (const std::string& operand : words.operands) shell.error(" " + operand);
    return 1;
  }
  if (words.has("helpformat")) {
    print_all_names(shell);
    return 0;
  }
  std::string names = shell.variable("SACCT_FORMAT");
  if (names.empty()) names = kUsualFields;
  if (words.has("brief")) names = kBriefFields;
  if (const auto format = words.value("format")) names = *format;
  const auto fields = fields_in(shell, names);
  if (!fields) return 1;
  Layout layout;
  layout.bars = words.has("parsable") || words.has("parsable2");
  layout.bar_at_end = words.has("parsable") && !words.has("parsable2");
  if (const auto bar = words.value("delimiter")) layout.bar = *bar;
  Wanted wanted;
  if (const auto code = read_wanted(shell, words, wanted)) return *code;
  RowQuery query{.finished = true, .numbers = wanted.numbers};
  query.in_full =
      std::any_of(fields->begin(), fields->end(), [](const ChosenField& one) { return one.field->in_full; });
  if (wanted.since) query.since = to_iso8601(*wanted.since);
  if (wanted.users.size() == 1) query.user = wanted.users.front();
  auto rows = job_rows(shell, query);
  if (!rows) return server_failed(shell, rows.error(), "sacct: error: ");
  std::stable_sort(rows->begin(), rows->end(), [](const JobRow& a, const JobRow& b) {
    return std::pair(a.array != 0 ? a.array : a.id, a.id) < std::pair(b.array != 0 ? b.array : b.id, b.id);
  });
  if (!words.has("noheader")) print_titles(shell, *fields, layout);
  for (const JobRow& row : *rows) {
    if (is_wanted(words, wanted, row)) print_job(shell, *fields, layout, row, !words.has("allocations"));
  }
  return 0;
}

}  // namespace berth::slurm
