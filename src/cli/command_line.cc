#include "cli/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "cli/job_flags.h"
#include "model/document/reading.h"

namespace berth::cli {
namespace {

constexpr const char* kFooter =
    "Exit codes: 0 done, 1 failed, 2 command line or file is wrong, 3 not found, 4 conflict,\n"
    "5 no server or not now, 6 denied; `berth run` exits with the job's own code.\n"
    "The server is found by --server or $BERTH_SERVER (default http://127.0.0.1:6380), the token by\n"
    "--token-file, $BERTH_TOKEN_FILE, $BERTH_TOKEN or ~/.local/state/berth/token.\n"
    "`berth COMMAND --help` says more, with an example.";

const std::vector<std::string> kShown{"table", "wide", "json", "yaml"};
const std::vector<std::string> kShort{"table", "json", "yaml"};

Format format_of(const std::string& word) {
  if (word == "wide") return Format::kWide;
  if (word == "json") return Format::kJson;
  if (word == "yaml") return Format::kYaml;
  if (word == "csv") return Format::kCsv;
  return Format::kTable;
}

// Help as CLI11 lays it out, with usage lines of our own.
class Layout : public CLI::Formatter {
 public:
  Layout() { column_width(34); }
  std::string make_usage(const CLI::App* app, std::string /*name*/) const override {
    if (app->get_parent() == nullptr) return "Usage: berth COMMAND [OPTIONS]\n\n";
    std::string line = "Usage: berth " + app->get_name() + " [OPTIONS]";
    for (const CLI::Option* operand : app->get_options([](const CLI::Option* one) { return one->get_positional(); })) {
      const std::string name = operand->get_name() + (operand->get_items_expected_max() > 1 ? "..." : "");
      line += " " + (operand->get_required() ? name : "[" + name + "]");
    }
    const bool runs = app->get_name() == "submit" || app->get_name() == "run";
    return line + (runs ? " [-- COMMAND...]" : "") + "\n\n";
  }
};

// The declared commands. Each binds its options to a struct of its own; the one that was given is `chosen`.
class Declarations {
 public:
  Declarations()
      : app_("berth shares a fleet of GPUs among many teams: submit jobs, see what they wait for, what they use.") {
    app_.name("berth");
    app_.formatter(std::make_shared<Layout>());
    app_.footer(kFooter);
    app_.fallthrough();
    app_.require_subcommand(1);
    app_.failure_message(CLI::FailureMessage::simple);
    app_.add_option("--server", connection.server, "the server's address")->type_name("URL");
    app_.add_option("--token-file", connection.token_file, "file with the bearer token")->type_name("FILE");
    declare_jobs();
    declare_looking();
    declare_cluster();
    declare_others();
    declare_servers();
  }

  CLI::App& app() { return app_; }

  ConnectionOptions connection;
  std::function<Command()> chosen;

 private:
  template <class Options>
  CLI::App& command(const char* group, const char* name, const char* says, const char* example,
                    std::shared_ptr<Options> options) {
    CLI::App& sub = *app_.add_subcommand(name, says);
    sub.group(group);
    sub.footer("Example:\n  " + std::string(example));
    sub.callback([this, options] { chosen = [options] { return Command(*options); }; });
    return sub;
  }

  static void add_format(CLI::App& sub, Format& format, const std::vector<std::string>& words) {
    sub.add_option_function<std::string>(
           "-o,--output", [&format](const std::string& word) { format = format_of(word); }, "how it is shown")
        ->check(CLI::IsMember(words))
        ->type_name("");
  }
  static void add_show(CLI::App& sub, ShowOptions& show) {
    add_format(sub, show.format, kShown);
    sub.add_option("--watch", show.watch_s, "show again every so many seconds (2)")
        ->expected(0, 1)
        ->default_str("2")
        ->check(CLI::Range(0.1, 86'400.0))
        ->type_name("SECONDS");
  }

  static void add_job(CLI::App& sub, JobOptions& job) {
    sub.add_option("-f,--file", job.file, "job document, YAML or JSON; - is standard input; flags win over it")
        ->type_name("FILE");
    job.values.resize(job_flags().size());
    for (std::size_t i = 0; i < job_flags().size(); ++i) {
      const JobFlag& flag = job_flags()[i];
      const std::string name(flag.flag);
      const std::string says(flag.says);
      std::vector<std::string>& values = job.values[i];
      if (flag.kind == FlagKind::kSwitch) {
        sub.add_flag_function(
            name, [&values](std::int64_t) { values = {"true"}; }, says);
        continue;
      }
      CLI::Option* option = sub.add_option(name, values, says)->type_name(std::string(flag.value_name));
      const bool repeated = flag.kind == FlagKind::kList || flag.kind == FlagKind::kPairs;
      option->expected(1);
      option->multi_option_policy(repeated ? CLI::MultiOptionPolicy::TakeAll : CLI::MultiOptionPolicy::TakeLast);
    }
    sub.add_option("--key", job.key, "idempotency key: the same key is the same job (default: random)")
        ->type_name("KEY");
  }

  void declare_jobs();
  void declare_looking();
  void declare_cluster();
  void declare_others();
  void declare_servers();

  template <class Options>
  void job_action(const char* name, const char* says, const char* example, Options options) {
    auto kept = std::make_shared<Options>(options);
    CLI::App& sub = command("Jobs", name, says, example, kept);
    sub.add_option("ID", kept->ids, "the jobs' numbers")->required();
  }
  void node_action(const char* name, NodeAction action, const char* says, const char* example) {
    auto kept = std::make_shared<NodeActionOptions>();
    kept->action = action;
    CLI::App& sub = command("Cluster", name, says, example, kept);
    sub.add_option("NODE", kept->names, "the nodes' names")->required();
    if (action == NodeAction::kFence) sub.add_flag("--yes", kept->confirmed, "the node is known to be off");
  }

  CLI::App app_;
};

void Declarations::declare_jobs() {
  auto submit = std::make_shared<SubmitOptions>();
  CLI::App& submitting =
      command("Jobs", "submit", "Submit a job",
              "berth submit --queue research/nlp --tasks 2 --gpus 4 --launch per-gpu -- python3 train.py\n"
              "  berth submit -f job.yaml --priority dev",
              submit);
  add_job(submitting, submit->job);
  add_format(submitting, submit->format, kShort);

  auto run = std::make_shared<RunOptions>();
  CLI::App& running = command("Jobs", "run", "Submit a job, show its output, and exit with its exit code",
                              "berth run --queue research/nlp --gpus 1 -- python3 train.py", run);
  add_job(running, run->job);
  running.add_flag("-q,--quiet", run->quiet, "no lines about the job, only its output");

  job_action("cancel", "Stop jobs for good", "berth cancel 17", JobActionOptions{JobAction::kCancel, {}});
  job_action("hold", "Keep pending jobs from starting", "berth hold 17 18", JobActionOptions{JobAction::kHold, {}});
  job_action("release", "Let held jobs start", "berth release 17", JobActionOptions{JobAction::kRelease, {}});

  auto prioritize = std::make_shared<PrioritizeOptions>();
  CLI::App& prioritizing =
      command("Jobs", "prioritize", "Change a job's priority", "berth prioritize 17 800", prioritize);
  prioritizing.add_option("ID", prioritize->id, "the job's number")->required();
  prioritizing.add_option("PRIORITY", prioritize->priority, "higher goes first")->required();
}

void Declarations::declare_looking() {
  auto jobs = std::make_shared<JobsOptions>();
  CLI::App& listing = command("Jobs", "jobs", "List jobs", "berth jobs --queue research --phase pending --watch", jobs);
  add_show(listing, jobs->show);
  listing.add_option("--queue", jobs->queue, "of this queue and those below it")->type_name("PATH");
  listing.add_option("--user", jobs->user, "of this user")->type_name("NAME");
  listing.add_option("--phase", jobs->phase, "in this phase")
      ->check(CLI::IsMember({"pending", "running", "stopping", "finished"}))
      ->type_name("");
  listing.add_option("--kind", jobs->kind, "of this kind")
      ->check(CLI::IsMember({"gang", "service", "array", "interactive"}))
      ->type_name("");
  listing.add_option("--name", jobs->name, "of this name")->type_name("NAME");
  listing.add_option("--node", jobs->node, "with a task on this node")->type_name("NODE");
  listing.add_option("--parent", jobs->parent, "of this service or array")->type_name("ID");
  listing.add_flag("-a,--all", jobs->all, "finished ones too");
  listing.add_option("--sort", jobs->sort, "id, submitted, priority, queue, user or gpus; with - for descending")
      ->type_name("KEY");
  listing.add_option("--limit", jobs->limit, "at most so many (1000)")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1'000'000}))
      ->type_name("N");

  auto job = std::make_shared<JobViewOptions>();
  CLI::App& viewing =
      command("Jobs", "job", "Tell a job's story: each attempt, when, where, why it stopped", "berth job 17", job);
  viewing.add_option("ID", job->id, "the job's number")->required();
  add_show(viewing, job->show);

  auto why = std::make_shared<WhyOptions>();
  CLI::App& asking = command("Jobs", "why", "Say why a job waits, with the numbers", "berth why 17", why);
  asking.add_option("ID", why->id, "the job's number")->required();
  add_show(asking, why->show);

  auto logs = std::make_shared<LogsOptions>();
  CLI::App& reading = command("Jobs", "logs", "Show a task's output", "berth logs -f 17 --task 1 --tail 20", logs);
  reading.add_option("ID", logs->id, "the job's number")->required();
  reading.add_flag("-f,--follow", logs->follow, "go on until the job is over");
  reading.add_option("--task", logs->task, "which task (0)")->check(CLI::NonNegativeNumber)->type_name("N");
  reading.add_option("--attempt", logs->attempt, "which attempt (the current or last)")
      ->check(CLI::PositiveNumber)
      ->type_name("N");
  reading.add_flag("--stderr", logs->error_stream, "standard error instead of output");
  reading.add_option("--tail", logs->tail, "only the last so many lines")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{10'000'000}))
      ->type_name("N");
}

void Declarations::declare_cluster() {
  auto status = std::make_shared<StatusOptions>();
  add_show(command("Cluster", "status", "The cluster at a glance", "berth status --watch", status), status->show);

  auto queues = std::make_shared<QueuesOptions>();
  CLI::App& listing =
      command("Cluster", "queues", "The queue tree: guaranteed, used, borrowed", "berth queues -o wide", queues);
  listing.add_option("QUEUE", queues->path, "only this one");
  add_show(listing, queues->show);

  auto nodes = std::make_shared<NodesOptions>();
  CLI::App& machines =
      command("Cluster", "nodes", "The nodes, or one of them with its GPUs", "berth nodes gpu-01", nodes);
  machines.add_option("NODE", nodes->name, "only this one, in full");
  add_show(machines, nodes->show);

  node_action("cordon", NodeAction::kCordon, "Start no new tasks on nodes", "berth cordon gpu-01");
  node_action("uncordon", NodeAction::kUncordon, "Use nodes again", "berth uncordon gpu-01");
  node_action("drain", NodeAction::kDrain, "Cordon nodes and move what runs there", "berth drain gpu-01");
  node_action("fence", NodeAction::kFence, "Declare nodes dead, so that their jobs start elsewhere",
              "berth fence gpu-01 --yes");

  auto usage = std::make_shared<UsageOptions>();
  CLI::App& using_ = command("Cluster", "usage", "GPU-seconds by queue, user and GPU model, within and borrowed",
                             "berth usage --from -24h --to now -o csv", usage);
  using_.add_option("--from", usage->from, "ISO 8601, a span before now as -24h, or now (default: the beginning)")
      ->type_name("TIME");
  using_.add_option("--to", usage->to, "the same (default: now)")->type_name("TIME");
  add_format(using_, usage->format, {"table", "json", "yaml", "csv"});

  auto events = std::make_shared<EventsOptions>();
  CLI::App& following =
      command("Cluster", "events", "What happened, event by event", "berth events -f --job 17", events);
  following.add_flag("-f,--follow", events->follow, "go on with what comes; without --from only that");
  following.add_option("--from", events->from, "sequence number to begin with")
      ->check(CLI::NonNegativeNumber)
      ->type_name("SEQ");
  following.add_option("--limit", events->limit, "at most so many")->check(CLI::PositiveNumber)->type_name("N");
  following.add_option("--kind", events->kind, "only this kind, as attempt-started")->type_name("KIND");
  following.add_option("--job", events->job, "only those of this job")->type_name("ID");
  add_format(following, events->format, kShort);
}

void Declarations::declare_others() {
  auto apply = std::make_shared<ApplyOptions>();
  CLI::App& applying =
      command("Configuration", "apply", "Put a configuration into force", "berth apply -f cluster.yaml", apply);
  applying.add_option("-f,--file", apply->file, "configuration document; - is standard input")
      ->required()
      ->type_name("FILE");
  add_format(applying, apply->format, kShort);

  auto diff = std::make_shared<DiffOptions>();
  CLI::App& comparing =
      command("Configuration", "diff", "What applying a configuration would change (exit 0: nothing, 1: something)",
              "berth diff -f cluster.yaml", diff);
  comparing.add_option("-f,--file", diff->file, "configuration document; - is standard input")
      ->required()
      ->type_name("FILE");
  add_format(comparing, diff->format, kShort);

  auto config = std::make_shared<ConfigOptions>();
  add_format(command("Configuration", "config", "The configuration in force", "berth config > cluster.yaml", config),
             config->format, {"yaml", "json"});

  auto snapshot = std::make_shared<SnapshotOptions>();
  add_format(command("Configuration", "snapshot", "The whole state at one event, as JSON",
                     "berth snapshot > state.json", snapshot),
             snapshot->format, {"json", "yaml"});

  auto done = std::make_shared<CheckpointDoneOptions>();
  CLI::App& acknowledging = command("Jobs", "checkpoint-done", "Acknowledge a checkpoint, from inside a job",
                                    "berth checkpoint-done --step 1200", done);
  acknowledging.add_option("--step", done->step, "the step that was saved")
      ->required()
      ->check(CLI::NonNegativeNumber)
      ->type_name("N");
  acknowledging.add_option("--job", done->job, "from outside: the job's number")->type_name("ID");
  acknowledging.add_option("--attempt", done->attempt, "from outside: the attempt that saved")
      ->check(CLI::PositiveNumber)
      ->type_name("N");

  auto version = std::make_shared<VersionOptions>();
  add_format(command("This program", "version", "Versions of this program and the server", "berth version", version),
             version->format, kShort);

  auto completion = std::make_shared<CompletionOptions>();
  CLI::App& completing = command("This program", "completion", "Completion for a shell",
                                 "source <(berth completion bash)\n  berth completion zsh > ~/.zfunc/_berth\n"
                                 "  berth completion fish > ~/.config/fish/completions/berth.fish",
                                 completion);
  completing.add_option("SHELL", completion->shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}))
      ->type_name("");
}

// These are taken by the program's main before it comes here; they are declared so that help and completion have them.
void Declarations::declare_servers() {
  const auto server = [this](const char* name, const char* says) {
    CLI::App& sub = *app_.add_subcommand(name, says);
    sub.group("Servers");
    sub.allow_extras();
  };
  server("dev", "berth on this machine, all in one, no file needed");
  server("serve", "The control plane: berth serve --config FILE --data DIR");
  server("verify", "Check a whole event log and recompute its state");
  server("supervise", "The supervisor of one task (started by berth itself)");
}

// What CLI11 says, as one line; a mistyped command or option gets the nearest one as a hint.
Error mistake(const std::string& said, const CLI::App& app, const std::vector<std::string>& words) {
  std::string message = said.substr(0, said.find('\n'));
  std::vector<std::string> names;
  std::string wrong;
  const CLI::App* chosen = nullptr;
  for (const CLI::App* sub : app.get_subcommands({})) names.push_back(sub->get_name());
  for (const CLI::App* sub : app.get_subcommands()) chosen = sub;
  if (chosen == nullptr && !words.empty()) {
    wrong = words.front();
    message = "no command '" + wrong + "'";
  } else if (chosen != nullptr) {
    names.clear();
    for (const CLI::Option* option : chosen->get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
    const std::size_t dashes = message.find("--");
    if (dashes != std::string::npos) wrong = message.substr(dashes, message.find_first_of(" =,]", dashes) - dashes);
  }
  const std::vector<std::string_view> known(names.begin(), names.end());
  const auto near = wrong.empty() ? std::nullopt : document::nearest(wrong, known);
  if (near && *near != wrong) message += "; did you mean " + std::string(*near) + "?";
  const std::string help = chosen == nullptr ? "berth --help" : "berth " + chosen->get_name() + " --help";
  return invalid(message + " (" + help + ")");
}

// "submit a b -- c d" gives {"c", "d"} and leaves the rest.
std::optional<std::vector<std::string>> take_command(std::vector<std::string>& words) {
  const auto dashes = std::find(words.begin(), words.end(), "--");
  if (dashes == words.end()) return std::nullopt;
  std::vector<std::string> command(dashes + 1, words.end());
  words.erase(dashes, words.end());
  return command;
}

Result<void> give_command(std::optional<std::vector<std::string>> words, Command& command) {
  if (!words) return {};
  JobOptions* job = nullptr;
  if (auto* submit = std::get_if<SubmitOptions>(&command)) job = &submit->job;
  if (auto* run = std::get_if<RunOptions>(&command)) job = &run->job;
  if (job == nullptr) return invalid("only submit and run take a command after --");
  if (words->empty()) return invalid("there is no command after --");
  job->command = std::move(*words);
  return {};
}

}  // namespace

Result<std::variant<CommandLine, HelpText>> parse_command_line(std::vector<std::string> words) {
  using Parsed = std::variant<CommandLine, HelpText>;
  Declarations declared;
  auto command = take_command(words);
  const std::vector<std::string> original = words;
  if (!words.empty() && words.front() == "help") {
    words.erase(words.begin());
    words.emplace_back("--help");
  }
  if (words.empty()) return Parsed(HelpText{declared.app().help()});
  std::reverse(words.begin(), words.end());  // as CLI11 takes them
  try {
    declared.app().parse(words);
  } catch (const CLI::CallForHelp&) {
    const auto subs = declared.app().get_subcommands();
    return Parsed(HelpText{subs.empty() ? declared.app().help() : subs.front()->help()});
  } catch (const CLI::ParseError& error) {
    return mistake(error.what(), declared.app(), original);
  }
  if (!declared.chosen) return invalid("this program has no server in it");
  CommandLine line{declared.connection, declared.chosen()};
  if (auto given = give_command(std::move(command), line.command); !given) return given.error();
  return Parsed(std::move(line));
}

std::vector<CommandShape> command_shapes() {
  Declarations declared;
  std::vector<CommandShape> shapes;
  const auto flags_of = [](const CLI::App& app, std::vector<FlagShape>& flags) {
    for (const CLI::Option* option : app.get_options()) {
      if (option->get_positional()) continue;
      FlagShape flag;
      for (const std::string& name : option->get_snames()) flag.names.push_back("-" + name);
      for (const std::string& name : option->get_lnames()) flag.names.push_back("--" + name);
      flag.takes_value = option->get_items_expected_max() > 0;
      flag.takes_file = option->get_type_name() == "FILE";
      flag.says = option->get_description();
      flags.push_back(std::move(flag));
    }
  };
  for (const CLI::App* sub : declared.app().get_subcommands({})) {
    CommandShape shape{sub->get_name(), sub->get_description(), {}};
    flags_of(*sub, shape.flags);
    flags_of(declared.app(), shape.flags);
    shapes.push_back(std::move(shape));
  }
  return shapes;
}

}  // namespace berth::cli
