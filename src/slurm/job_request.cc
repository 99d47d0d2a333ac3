#include "slurm/job_request.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <string_view>

#include "base/checked.h"
#include "slurm/host_names.h"
#include "slurm/job_rows.h"
#include "slurm/letter_case.h"
#include "slurm/time_forms.h"

namespace berth::slurm {
namespace {

using Fault = std::optional<Complaint>;

constexpr int kUsageCode = 255;
constexpr std::int64_t kMostCount = 1'000'000;
constexpr std::size_t kMostAmountDigits = 10;

Complaint bad_option(std::string_view name) {
  return error_line("Invalid --" + std::string(name) + " specification", kUsageCode);
}

std::vector<std::string> split(std::string_view text, char mark) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t end = text.find(mark);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::optional<std::int64_t> amount_of(std::string_view text) {
  if (text.empty() || text.size() > kMostAmountDigits) return std::nullopt;
  std::int64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + (c - '0');
  }
  return value;
}

std::optional<std::int64_t> digits(std::string_view text) {
  const auto value = amount_of(text);
  return value && *value <= kMostCount ? value : std::nullopt;
}

// What no node has: the server refuses it in its own words.
std::int64_t product(std::int64_t a, std::int64_t b) {
  return try_multiply(a, b).value_or(std::numeric_limits<std::int64_t>::max());
}

Fault positive(std::string_view name, const std::string& value, std::int64_t& into) {
  const auto number = digits(value);
  if (!number || *number == 0)
    return error_line("Invalid numeric value \"" + value + "\" for --" + std::string(name) + ".", 1);
  into = *number;
  return std::nullopt;
}

Fault positive(std::string_view name, const std::string& value, std::optional<std::int64_t>& into) {
  std::int64_t number = 0;
  if (auto fault = positive(name, value, number)) return fault;
  into = number;
  return std::nullopt;
}

// MiB of "100", "2G", "512K".
std::optional<std::int64_t> mebibytes(const std::string& text) {
  const std::size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto number = amount_of(std::string_view(text).substr(0, end));
  const std::string unit = upper_case(text.substr(end));
  if (!number) return std::nullopt;
  if (unit.empty() || unit == "M" || unit == "MB") return *number;
  if (unit == "K" || unit == "KB") return (*number + 1023) / 1024;
  if (unit == "G" || unit == "GB") return *number * 1024;
  if (unit == "T" || unit == "TB") return *number * 1024 * 1024;
  return std::nullopt;
}

Fault read_nodes(const std::string& value) {
  const std::size_t dash = value.find('-');
  const auto least = digits(value.substr(0, dash));
  const auto most = dash == std::string::npos ? least : digits(value.substr(dash + 1));
  if (!least || !most) return error_line("\"" + value + "\" is not a valid node count", kUsageCode);
  if (*most < *least) {
    return error_line(
        "Maximum node count " + std::to_string(*most) + " is less than minimum node count " + std::to_string(*least),
        kUsageCode);
  }
  if (*least == 0) return refused("Node count specification invalid");
  if (*least > 1)
    return refused("Requested node configuration is not available",
                   "--nodes=" + value + " is not held: a step has one node; give `berth submit --tasks " +
                       std::to_string(*least) + "` for a gang");
  return std::nullopt;
}

// "2", "h100:2", "h100". The type is kept by the option: one given anew has the type that it names, or none.
Fault read_gpus(std::string_view option, const std::string& value, JobRequest& request, std::int64_t& into,
                const Complaint& wrong) {
  std::string& type = request.gpu_types[std::string(option)];
  type.clear();
  const std::size_t colon = value.rfind(':');
  const auto number = digits(colon == std::string::npos ? value : value.substr(colon + 1));
  if (value.empty() || value.find(',') != std::string::npos) return wrong;
  if (number) {
    into = *number;
    if (colon != std::string::npos) type = value.substr(0, colon);
    return std::nullopt;
  }
  if (colon != std::string::npos) return wrong;
  into = 1;
  type = value;
  return std::nullopt;
}

Fault read_gres(const std::string& value, JobRequest& request) {
  const Complaint wrong = error_line("Invalid generic resource (gres) specification", 1);
  request.gpus = 0;
  request.gpu_types["gres"].clear();
  if (value.empty() || value == "none" || value == "NONE") return std::nullopt;
  if (value == "gpu") {
    request.gpus = 1;
    return std::nullopt;
  }
  if (!value.starts_with("gpu:")) return wrong;
  return read_gpus("gres", value.substr(4), request, request.gpus, wrong);
}

Fault read_signal(const std::string& value, JobRequest& request) {
  constexpr std::array<std::string_view, 16> kNames{"", "HUP",  "INT",  "QUIT", "",     "", "ABRT", "",
                                                    "", "KILL", "USR1", "",     "USR2", "", "ALRM", "TERM"};
  std::string text = upper_case(value);
  const std::size_t colon = text.find(':');
  if (colon != std::string::npos) {
    if (text.find_first_not_of("RB") < colon) return bad_option("signal");
    text = text.substr(colon + 1);
  }
  const std::size_t at = text.find('@');
  if (at != std::string::npos) {
    const auto seconds = digits(text.substr(at + 1));
    if (!seconds || *seconds > 65'535) return bad_option("signal");
    request.signal_s = *seconds;
    text = text.substr(0, at);
  }
  if (text.starts_with("SIG")) text = text.substr(3);
  if (const auto number = digits(text); number && *number < 16) text = kNames.at(static_cast<std::size_t>(*number));
  const bool known = std::find(kNames.begin(), kNames.end(), text) != kNames.end() || text == "URG" || text == "CONT" ||
                     text == "TSTP" || text == "TTIN" || text == "TTOU" || text == "STOP";
  if (text.empty() || !known) return bad_option("signal");
  if (text == "KILL" || text == "STOP")
    return refused("Unspecified error", "--signal=" + value + ": a job cannot catch it");
  request.signal = "SIG" + text;
  return std::nullopt;
}

Fault read_dependency(const std::string& value, JobRequest& request) {
  const std::string problem = "Job dependency problem";
  request.dependencies.clear();
  if (value.find('?') != std::string::npos)
    return refused(problem, "--dependency with ? (any of them) is not held; give , (all of them)");
  for (const std::string& part : split(value, ',')) {
    std::vector<std::string> words = split(part, ':');
    const std::string key = words.front();
    const bool bare = words.size() == 1 && job_number(key);
    if (key == "afternotok" || key == "aftercorr" || key == "singleton" || key == "afterburstbuffer" || key == "expand")
      return refused(problem, "--dependency=" + key + " is not held; give after, afterok or afterany");
    if (!bare && key != "after" && key != "afterok" && key != "afterany") return refused(problem);
    if (!bare && words.size() < 2) return refused(problem);
    for (std::size_t i = bare ? 0 : 1; i < words.size(); ++i) {
      const std::string& job = words[i];
      if (job.find('+') != std::string::npos)
        return refused(problem, "--dependency=" + part + ": a time after the start is not held");
      if (!job_number(job)) return refused(problem);
      request.dependencies.push_back({bare ? "afterany" : key, job});
    }
  }
  return std::nullopt;
}

// "a&b" is two rules, "a|b" one.
Fault read_constraint(const std::string& value, JobRequest& request) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=&|";
  if (value.find_first_not_of(kPlain) != std::string::npos)
    return refused("Invalid feature specification", "--constraint=" + value + " is not held; give a&b, a|b or a=1");
  std::vector<std::string>& rules = request.node_rules["constraint"];
  rules.clear();
  for (const std::string& part : split(value, '&')) {
    std::string rule;
    for (const std::string& one : split(part, '|')) {
      if (one.empty()) return refused("Invalid feature specification");
      rule += (rule.empty() ? "" : " || ") + one;
    }
    rules.push_back(rule);
  }
  return std::nullopt;
}

Fault read_time(std::string_view name, const std::string& value, Timestamp now, std::optional<Timestamp>& into) {
  into = instant(value, now);
  if (into) return std::nullopt;
  Complaint wrong = bad_option(name);
  wrong.plain.push_back("Invalid time specification (pos=0): " + value);
  return wrong;
}

Fault read_memory(std::string_view name, const std::string& value, std::int64_t& into) {
  const auto amount = mebibytes(value);
  if (!amount) return bad_option(name);
  if (*amount == 0)
    return refused("Memory required by task is not available",
                   "--" + std::string(name) + "=0 (all of a node) is not held; give an amount, or --exclusive");
  into = *amount;
  return std::nullopt;
}

Fault read_mounts(const std::string& value, JobRequest& request) {
  request.mounts.clear();
  for (const std::string& part : split(value, ',')) {
    if (part.starts_with('/') || part.find(':') == std::string::npos)
      return refused("Unspecified error", "--container-mounts=" + part +
                                              " is not held: give NAME:/PATH[:ro] of a "
                                              "volume of the queue, not a path of the node");
    request.mounts.push_back(part);
  }
  return std::nullopt;
}

using Reader = std::function<Fault(const Given&, JobRequest&, Timestamp)>;

Reader text_into(std::string JobRequest::*member) {
  return [member](const Given& given, JobRequest& request, Timestamp) -> Fault {
    request.*member = given.value;
    return std::nullopt;
  };
}

Reader flag_into(bool JobRequest::*member) {
  return [member](const Given&, JobRequest& request, Timestamp) -> Fault {
    request.*member = true;
    return std::nullopt;
  };
}

template <class T>
Reader count_into(T JobRequest::*member) {
  return [member](const Given& given, JobRequest& request, Timestamp) -> Fault {
    return positive(given.option.name, given.value, request.*member);
  };
}

Fault read_limit(const Given& given, JobRequest& request, Timestamp) {
  const auto minutes = limit_minutes(given.value);
  if (!minutes) return bad_option("time");
  request.limit_minutes = *minutes;
  return std::nullopt;
}

Fault read_exclusive(const Given& given, JobRequest& request, Timestamp) {
  if (given.value == "user" || given.value == "mcs")
    return refused("Unspecified error", "--exclusive=" + given.value + " is not held; give --exclusive");
  if (!given.value.empty()) return bad_option("exclusive");
  request.exclusive = true;
  return std::nullopt;
}

Fault read_open_mode(const Given& given, JobRequest& request, Timestamp) {
  const std::string mode = upper_case(given.value);
  if (mode != "A" && mode != "APPEND" && mode != "T" && mode != "TRUNCATE") return bad_option("open-mode");
  request.append = mode.front() == 'A';
  return std::nullopt;
}

Fault read_array(const Given& given, JobRequest& request, Timestamp) {
  request.array = parse_array(given.value);
  if (!request.array) return refused("Invalid job array specification");
  if (request.array->text().size() <= kLongestArrayText) return std::nullopt;
  return refused("Invalid job array specification", "--array: the list has more than " +
                                                        std::to_string(kLongestArrayText) +
                                                        " characters; give ranges (1-99, 1-99:2) or several arrays");
}

Fault read_node_names(const Given& given, JobRequest& request, Timestamp) {
  const auto names = host_names(given.value);
  if (!names || names->empty())
    return refused("Invalid node name specified", "--" + std::string(given.option.name) +
                                                      ": give names such as n1,n[3-5], at most " +
                                                      std::to_string(kMostHostNames));
  std::vector<std::string>& rules = request.node_rules[std::string(given.option.name)];
  rules.clear();
  if (given.option.name == "exclude") {
    for (const std::string& name : *names) rules.push_back(std::string(kUnwantedNode) + name);
    return std::nullopt;
  }
  std::string rule(kWantedNode);
  for (const std::string& name : *names) rule += (rule.back() == '=' ? "" : "|") + name;
  rules.push_back(rule);
  return std::nullopt;
}

// An option that is held and is missing here changes nothing of the job.
const std::map<std::string_view, Reader>& readers() {
  static const std::map<std::string_view, Reader> all{
      {"account", text_into(&JobRequest::account)},
      {"partition", text_into(&JobRequest::partition)},
      {"qos", text_into(&JobRequest::qos)},
      {"comment", text_into(&JobRequest::comment)},
      {"job-name", text_into(&JobRequest::name)},
      {"chdir", text_into(&JobRequest::directory)},
      {"container-workdir", text_into(&JobRequest::directory)},
      {"container-image", text_into(&JobRequest::image)},
      {"output", text_into(&JobRequest::output)},
      {"error", text_into(&JobRequest::error)},
      {"input", text_into(&JobRequest::input)},
      {"export", text_into(&JobRequest::exported)},
      {"hold", flag_into(&JobRequest::hold)},
      {"parsable", flag_into(&JobRequest::parsable)},
      {"quiet", flag_into(&JobRequest::quiet)},
      {"wait", flag_into(&JobRequest::wait)},
      {"test-only", flag_into(&JobRequest::test_only)},
      {"ntasks", count_into(&JobRequest::ntasks)},
      {"ntasks-per-node", count_into(&JobRequest::ntasks_per_node)},
      {"cpus-per-task", count_into(&JobRequest::cpus_per_task)},
      {"cpus-per-gpu", count_into(&JobRequest::cpus_per_gpu)},
      {"mincpus", count_into(&JobRequest::least_cpus)},
      {"time", read_limit},
      {"exclusive", read_exclusive},
      {"open-mode", read_open_mode},
      {"array", read_array},
      {"nodelist", read_node_names},
      {"exclude", read_node_names},
      {"nodes", [](const Given& given, JobRequest&, Timestamp) { return read_nodes(given.value); }},
      {"gres", [](const Given& given, JobRequest& request, Timestamp) { return read_gres(given.value, request); }},
      {"gpus", [](const Given& given, JobRequest& request,
                  Timestamp) { return read_gpus("gpus", given.value, request, request.gpus, bad_option("gpus")); }},
      {"gpus-per-node",
       [](const Given& given, JobRequest& request, Timestamp) {
         return read_gpus("gpus-per-node", given.value, request, request.gpus, bad_option("gpus-per-node"));
       }},
      {"gpus-per-task",
       [](const Given& given, JobRequest& request, Timestamp) {
         return read_gpus("gpus-per-task", given.value, request, request.gpus_per_task, bad_option("gpus-per-task"));
       }},
      {"mem",
       [](const Given& given, JobRequest& request, Timestamp) -> Fault {
         std::int64_t amount = 0;
         if (auto fault = read_memory("mem", given.value, amount)) return fault;
         request.memory_mib = amount;
         return std::nullopt;
       }},
      {"mem-per-cpu", [](const Given& given, JobRequest& request,
                         Timestamp) { return read_memory("mem-per-cpu", given.value, request.memory_per_cpu_mib); }},
      {"mem-per-gpu", [](const Given& given, JobRequest& request,
                         Timestamp) { return read_memory("mem-per-gpu", given.value, request.memory_per_gpu_mib); }},
      {"signal", [](const Given& given, JobRequest& request, Timestamp) { return read_signal(given.value, request); }},
      {"dependency",
       [](const Given& given, JobRequest& request, Timestamp) { return read_dependency(given.value, request); }},
      {"constraint",
       [](const Given& given, JobRequest& request, Timestamp) { return read_constraint(given.value, request); }},
      {"container-mounts",
       [](const Given& given, JobRequest& request, Timestamp) { return read_mounts(given.value, request); }},
      {"begin", [](const Given& given, JobRequest& request,
                   Timestamp now) { return read_time("begin", given.value, now, request.begin); }},
      {"deadline", [](const Given& given, JobRequest& request,
                      Timestamp now) { return read_time("deadline", given.value, now, request.deadline); }},
      {"wrap",
       [](const Given& given, JobRequest& request, Timestamp) -> Fault {
         request.wrap = given.value;
         return std::nullopt;
       }},
  };
  return all;
}

// sbatch reads the words of --mail-type although no mail is sent: a wrong one is a mistake all the same.
Fault check_mail_type(const std::string& value) {
  constexpr std::array<std::string_view, 14> kTypes{
      "NONE",      "BEGIN",      "END",           "FAIL",          "REQUEUE",       "ALL",         "INVALID_DEPEND",
      "STAGE_OUT", "TIME_LIMIT", "TIME_LIMIT_90", "TIME_LIMIT_80", "TIME_LIMIT_50", "ARRAY_TASKS", ""};
  for (const std::string& word : split(value, ',')) {
    if (std::find(kTypes.begin(), kTypes.end() - 1, upper_case(word)) == kTypes.end() - 1)
      return bad_option("mail-type");
  }
  return std::nullopt;
}

Fault check_input_of_step(const std::string& value) {
  if (value == "/dev/null" || upper_case(value) == "NONE") return std::nullopt;
  return refused("Unspecified error",
                 "--input=" + value + " is not held: a step has no stdin; redirect it in the command");
}

// True if the words are right, but what they ask for is not to be had.
bool is_refusal(const Complaint& complaint) { return !complaint.refusal.empty() && complaint.errors.empty(); }

bool is_given_again(const std::vector<Given>& given, std::size_t at) {
  return std::any_of(given.begin() + static_cast<std::ptrdiff_t>(at) + 1, given.end(),
                     [&](const Given& one) { return one.option.name == given[at].option.name; });
}

bool is_memory(const Given& one) {
  const std::string_view name = one.option.name;
  return name == "mem" || name == "mem-per-cpu" || name == "mem-per-gpu";
}

// Slurm takes one way to count memory alone. Those of the script and the command line count before variables.
OrComplaint<std::vector<Given>> with_one_memory(Tool tool, const std::vector<Given>& given) {
  std::set<std::string_view> by_words;
  std::set<std::string_view> by_variables;
  for (const Given& one : given) {
    if (is_memory(one)) (one.is_variable ? by_variables : by_words).insert(one.option.name);
  }
  const std::string fatal = std::string(name_of(tool)) + ": fatal: ";
  if (by_words.size() > 1)
    return Complaint{.plain = {fatal + "--mem, --mem-per-cpu, and --mem-per-gpu are mutually exclusive."}};
  if (by_words.empty() && by_variables.size() > 1) {
    return Complaint{.plain = {fatal + "SLURM_MEM_PER_CPU, SLURM_MEM_PER_GPU, and SLURM_MEM_PER_NODE are mutually "
                                       "exclusive."}};
  }
  std::vector<Given> kept;
  for (const Given& one : given) {
    if (by_words.empty() || !one.is_variable || !is_memory(one)) kept.push_back(one);
  }
  return kept;
}

}  // namespace

std::int64_t JobRequest::tasks() const { return ntasks ? *ntasks : ntasks_per_node.value_or(1); }

std::int64_t JobRequest::all_gpus() const { return std::max(gpus, product(gpus_per_task, tasks())); }

std::string JobRequest::gpu_type() const {
  for (const auto& [option, type] : gpu_types) {
    if (!type.empty()) return type;
  }
  return "";
}

std::int64_t JobRequest::cpus() const {
  return std::max({product(tasks(), cpus_per_task.value_or(1)), least_cpus, product(cpus_per_gpu, all_gpus())});
}

std::optional<std::int64_t> JobRequest::memory() const {
  if (memory_mib) return memory_mib;
  if (memory_per_cpu_mib > 0) return product(memory_per_cpu_mib, cpus());
  if (memory_per_gpu_mib > 0 && all_gpus() > 0) return product(memory_per_gpu_mib, all_gpus());
  return std::nullopt;
}

OrComplaint<JobRequest> read_request(Tool tool, const std::vector<Given>& all, Timestamp now) {
  const auto counted = with_one_memory(tool, all);
  if (const auto* complaint = std::get_if<Complaint>(&counted)) return *complaint;
  const auto& given = std::get<std::vector<Given>>(counted);
  JobRequest request;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const Given& one = given[i];
    Fault fault;
    if (one.option.name == "mail-type") fault = check_mail_type(one.value);
    if (one.option.name == "input" && tool == Tool::kSrun) fault = check_input_of_step(one.value);
    const auto reader = readers().find(one.option.name);
    if (!fault && reader != readers().end()) fault = reader->second(one, request, now);
    if (fault && !(is_refusal(*fault) && is_given_again(given, i))) return *fault;
  }
  return request;
}

std::vector<Given> given_by_variables(Tool tool, const std::vector<std::string>& variables) {
  std::vector<Given> given;
  for (const Option& option : options_of(tool)) {
    for (const std::string& name : variables_of(tool, option)) {
      for (const std::string& one : variables) {
        if (one.starts_with(name + "="))
          given.push_back(
              {.option = option, .value = one.substr(name.size() + 1), .has_value = true, .is_variable = true});
      }
    }
  }
  return given;
}

}  // namespace berth::slurm
