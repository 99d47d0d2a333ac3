#include <algorithm>
#include <array>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <cctype>
#include <csignal>
#include <iostream>

#include "cli/printable.h"
#include "slurm/host_names.h"
#include "slurm/job_request.h"
#include "slurm/job_rows.h"
#include "slurm/letter_case.h"
#include "slurm/shell.h"

namespace berth::slurm {
namespace {

struct SignalName {
  std::string_view name;
  int number;
};
constexpr std::array kSignals{SignalName{"HUP", SIGHUP},   SignalName{"INT", SIGINT},   SignalName{"QUIT", SIGQUIT},
                              SignalName{"ABRT", SIGABRT}, SignalName{"KILL", SIGKILL}, SignalName{"USR1", SIGUSR1},
                              SignalName{"USR2", SIGUSR2}, SignalName{"ALRM", SIGALRM}, SignalName{"TERM", SIGTERM},
                              SignalName{"CONT", SIGCONT}, SignalName{"STOP", SIGSTOP}, SignalName{"TSTP", SIGTSTP}};

std::optional<int> signal_number(const std::string& text) {
  std::string word = upper_case(text);
  if (word.starts_with("SIG")) word = word.substr(3);
  for (const SignalName& one : kSignals) {
    if (word == one.name || word == std::to_string(one.number)) return one.number;
  }
  return std::nullopt;
}

struct Cancel {
  std::vector<JobNumber> numbers;
  std::string state;
  std::vector<std::string> nodes;
  int signal = SIGKILL;
  bool by_choice = false;  // an option chooses
};

// Adds what the SCANCEL_ variables say, before the words, which win. They narrow what is chosen, or guard it: so one
// that says nothing is refused. A value is an exit code.
std::optional<int> add_variables(Shell& shell, CommandWords& words) {
  CommandWords by_variables;
  for (Given& one : given_by_variables(shell.tool, shell.variables)) {
    if (one.option.takes == Takes::kNothing) {
      const std::string value = lower_case(one.value);
      if (value == "false" || value.empty()) continue;
      if (value != "true") {
        shell.error("Unrecognized " + variables_of(shell.tool, one.option).front() + " value: " + one.value);
        shell.hint("give true or false");
        return 1;
      }
    }
    if (!one.value.empty()) by_variables.given.push_back(std::move(one));
  }
  const NotHeld lacking = not_held(by_variables);
  for (const std::string& warning : lacking.warnings) shell.warning(warning);
  if (lacking.refusal) {
    shell.error(*lacking.refusal);
    return 1;
  }
  words.given.insert(words.given.begin(), by_variables.given.begin(), by_variables.given.end());
  return std::nullopt;
}

// Reads operands and options that need a check; a value is an exit code.
std::optional<int> read_cancel(Shell& shell, const CommandWords& words, Cancel& cancel) {
  for (const std::string& text : words.operands) {
    for (const std::string& one : comma_list(text)) {
      const auto number = job_number(one);
      if (!number) {
        shell.error("Invalid job id " + one);
        return 1;
      }
      cancel.numbers.push_back(*number);
    }
  }
  if (const auto state = words.value("state")) {
    const auto word = state_word(*state);
    if (!word || (*word != "PENDING" && *word != "RUNNING" && *word != "SUSPENDED")) {
      shell.err() << "Invalid job state specified: " << *state
                  << "\nValid job states are PENDING, RUNNING, and SUSPENDED\n";
      return 1;
    }
    cancel.state = *word;
  }
  if (const auto signal = words.value("signal")) {
    const auto number = signal_number(*signal);
    if (!number) {
      shell.err() << "Unknown job signal: " << *signal << "\n";
      return 1;
    }
    cancel.signal = *number;
  }
  const auto nodes = host_names(words.value("nodelist").value_or(""));
  if (!nodes) {
    shell.error("Invalid node name " + *words.value("nodelist"));
    return 1;
  }
  cancel.nodes = *nodes;
  for (const char* name : {"account", "me", "name", "jobname", "nodelist", "partition", "qos", "state", "user"})
    cancel.by_choice = cancel.by_choice || words.has(name);
  if (cancel.numbers.empty() && !cancel.by_choice) {
    shell.error("No job identification provided");
    return 1;
  }
  return std::nullopt;
}

bool is_chosen(const CommandWords& words, const Cancel& cancel, const JobRow& row, const std::string& me) {
  const auto is = [&](std::string_view option, const std::string& value) {
    const auto wanted = words.value(option);
    return !wanted || *wanted == value;
  };
  const std::vector<std::string> nodes = row.nodes();
  const bool there = !words.has("nodelist") || std::any_of(nodes.begin(), nodes.end(), [&](const std::string& node) {
    return std::find(cancel.nodes.begin(), cancel.nodes.end(), node) != cancel.nodes.end();
  });
  const auto account = words.value("account");
  return there && (!account || is_of_account(row.text("queue"), *account)) &&
         (!words.has("user") || user_named(*words.value("user")) == row.text("user")) && is("name", row.text("name")) &&
         is("jobname", row.text("name")) && is("partition", row.partition()) && is("qos", row.qos()) &&
         (!words.has("me") || row.text("user") == me) && (cancel.state.empty() || cancel.state == row.state);
}

bool agrees(Shell& shell, const JobRow& row) {
  shell.out() << "Cancel job_id=" << row.number() << " name=" << cli::printable(row.text("name"))
              << " partition=" << row.partition() << " [y/n]? " << std::flush;
  std::string answer;
  return std::getline(std::cin, answer) && (answer.starts_with('y') || answer.starts_with('Y'));
}

Result<cli::Json> end_or_signal(Shell& shell, std::int64_t id, int signal) {
  const std::string path = "/v1/jobs/" + std::to_string(id);
  if (signal == SIGKILL) return cli::answer_of(shell.session.server.del(path));
  return cli::answer_of(
      shell.session.server.post(path + "/signal", boost::json::serialize(boost::json::object{{"signal", signal}})));
}

constexpr std::string_view kEndsWithArray = "elements that have not begun are ended with their array alone";

// An array whose number is given without an element goes as a whole.
struct Target {
  std::int64_t id = 0;
  std::string shown;
  std::string note;  // why it cannot be ended by itself
};

// True if ending the row's job would end more than what was chosen: the job of elements that wait is their whole array.
bool ends_more(const CommandWords& words, const Cancel& cancel, const JobRow& row) {
  if (!row.is_set) return false;
  const bool asks_element = std::any_of(cancel.numbers.begin(), cancel.numbers.end(), [&](const JobNumber& number) {
    return number.element && is_meant(row, number);
  });
  const bool some_run = cli::integer(cli::at(row.job(), "children"), "running") > 0;
  return asks_element || (some_run && (!cancel.state.empty() || words.has("interactive")));
}

// Adds the elements of the array that run: a signal is for processes, and the array itself has none.
void add_running_elements(std::int64_t array, const std::vector<JobRow>& rows, std::vector<Target>& targets) {
  for (const JobRow& row : rows) {
    if (row.array == array && !row.is_set) targets.push_back({row.id, row.number(), ""});
  }
}

std::vector<Target> targets_of(const Cancel& cancel, const std::vector<JobRow>& rows) {
  std::vector<Target> targets;
  const auto add = [&](Target target) {
    if (std::none_of(targets.begin(), targets.end(), [&](const Target& one) { return one.shown == target.shown; }))
      targets.push_back(std::move(target));
  };
  for (const JobNumber& number : cancel.numbers) {
    if (!number.element) {
      std::vector<Target> elements;
      if (cancel.signal != SIGKILL) add_running_elements(number.id, rows, elements);
      for (const Target& element : elements) add(element);
      if (elements.empty()) add({number.id, std::to_string(number.id), ""});
      continue;
    }
    const std::string shown = std::to_string(number.id) + "_" + std::to_string(*number.element);
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const JobRow& one) { return is_meant(one, number); });
    if (row == rows.end()) {
      add({0, shown, ""});
    } else if (row->is_set || row->id == row->array) {
      add({0, shown, std::string(kEndsWithArray) + ": scancel " + std::to_string(number.id)});
    } else {
      add({row->id, shown, ""});
    }
  }
  return targets;
}

int cancel_targets(Shell& shell, const CommandWords& words, const Cancel& cancel, const std::vector<Target>& targets) {
  int code = 0;
  for (const Target& target : targets) {
    if (words.has("verbose") && !words.has("quiet"))
      shell.err() << "scancel: " << (cancel.signal == SIGKILL ? "Terminating job " : "Signal job ") << target.shown
                  << "\n";
    const auto done =
        target.id == 0 ? Result<cli::Json>(not_found("")) : end_or_signal(shell, target.id, cancel.signal);
    if (done) continue;
    const ErrorCode why = done.error().code;
    // As Slurm has it: of a job that is over or unknown only --verbose tells.
    const bool is_gone = target.note.empty() && (why == ErrorCode::kNotFound || why == ErrorCode::kConflict);
    if (is_gone && !words.has("verbose")) continue;
    const char* words_of = is_gone || !target.note.empty() ? "Invalid job id specified" : "Access/permission denied";
    shell.error("Kill job error on job id " + target.shown + ": " + words_of);
    shell.hint(target.note.empty() && !is_gone ? done.error().message : target.note);
    if (!is_gone) code = 1;
  }
  return code;
}

}  // namespace

int run_scancel(Shell& shell, const std::vector<std::string>& given) {
  Begun begun = begin_tool(shell, given);
  if (begun.code) return *begun.code;
  CommandWords& words = begun.words;
  if (const auto code = add_variables(shell, words)) return *code;
  Cancel cancel;
  if (const auto code = read_cancel(shell, words, cancel)) return *code;
  const bool plain_numbers = !cancel.by_choice && !words.has("interactive") && cancel.signal == SIGKILL &&
                             std::all_of(cancel.numbers.begin(), cancel.numbers.end(),
                                         [](const JobNumber& number) { return !number.element; });
  if (plain_numbers) return cancel_targets(shell, words, cancel, targets_of(cancel, {}));
  const auto rows = job_rows(shell, {});
  if (!rows) return server_failed(shell, rows.error(), "scancel: error: ");
  if (!cancel.by_choice && !words.has("interactive"))
    return cancel_targets(shell, words, cancel, targets_of(cancel, *rows));
  std::string me;
  if (words.has("me")) {
    const auto identity = cli::get(shell.session, "/v1/identity");
    if (!identity) return server_failed(shell, identity.error(), "scancel: error: ");
    me = cli::show(*identity, "user");
  }
  std::vector<Target> targets;
  for (const JobRow& row : *rows) {
    const bool numbered =
        cancel.numbers.empty() || std::any_of(cancel.numbers.begin(), cancel.numbers.end(),
                                              [&](const JobNumber& number) { return is_meant(row, number); });
    if (!numbered || !is_chosen(words, cancel, row, me)) continue;
    if (row.is_set && cancel.signal != SIGKILL) continue;  // has no process
    if (ends_more(words, cancel, row)) {
      targets.push_back({0, row.number(), std::string(kEndsWithArray) + ": scancel " + std::to_string(row.array)});
      continue;
    }
    if (words.has("interactive") && !agrees(shell, row)) continue;
    targets.push_back({row.id, row.number(), ""});
  }
  return cancel_targets(shell, words, cancel, targets);
}

}  // namespace berth::slurm
