#include "cli/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <optional>

#include "base/utf8.h"
#include "cli/answer.h"
#include "cli/columns.h"
#include "cli/job_flags.h"
#include "model/document/quantity.h"
#include "model/nearest.h"
#include "model/priority.h"
#include "model/role.h"

namespace berth::cli {
namespace {

constexpr const char* kFooter =
    "Exit codes: 0 done, 1 failed, 2 command line or file is wrong, 3 not found, 4 conflict,\n"
    "5 no server or not now, 6 denied; `berth run` exits with the job's own code.\n"
    "The server is found by --server or $BERTH_SERVER: https://HOST:PORT, http://127.0.0.1:PORT or unix:PATH.\n"
    "Default: the Unix socket of a server on this machine, where your login name says who you are; else\n"
    "http://127.0.0.1:6380. The token is found by --token-file, $BERTH_TOKEN_FILE, $BERTH_TOKEN, the context that\n"
    "`berth login` signed in or, but not for a socket, ~/.local/state/berth/token. For https: --ca, --cert and "
    "--cert-key, or $BERTH_CA, $BERTH_CERT, "
    "$BERTH_KEY.\n"
    "`berth COMMAND --help` says more, with an example.";

constexpr std::int64_t kMost = std::int64_t{1} << 53U;
const std::vector<std::string> kShown{"table", "wide", "json", "yaml"};
const std::vector<std::string> kListed{"table", "wide", "json", "yaml", "csv", "custom="};
const std::vector<std::string> kShort{"table", "json", "yaml"};

Format format_of(const std::string& word) {
  if (word == "wide") return Format::kWide;
  if (word == "json") return Format::kJson;
  if (word == "yaml") return Format::kYaml;
  if (word == "csv") return Format::kCsv;
  if (word == "html") return Format::kHtml;
  return Format::kTable;
}

// Empty if a list can be shown so.
std::string mistake_of_list_format(const std::string& word) {
  const std::size_t equals = word.find('=');
  const std::string name = word.substr(0, equals);
  if (name == "custom" || (name == "csv" && equals != std::string::npos)) {
    const auto columns = parse_columns(equals == std::string::npos ? "" : word.substr(equals + 1));
    return columns ? "" : columns.error().message;
  }
  if (std::find(kListed.begin(), kListed.end(), word) != kListed.end()) return "";
  return "'" + word + "' is not one of " + joined(kListed, ", ") + "HEADING:PATH,...";
}

// Returns true if the command takes another one after --.
bool takes_command(const std::string& name) { return name == "submit" || name == "run" || name == "exec"; }

// Help as CLI11 lays it out, with usage lines of our own.
class Layout : public CLI::Formatter {
 public:
  Layout() { column_width(36); }
  std::string make_usage(const CLI::App* app, std::string /*name*/) const override {
    if (app->get_parent() == nullptr) return "Usage: berth COMMAND [OPTIONS]\n";
    std::string line = "Usage: berth " + app->get_name() + " [OPTIONS]";
    for (const CLI::Option* operand : app->get_options([](const CLI::Option* one) { return one->get_positional(); })) {
      const std::string name = operand->get_name() + (operand->get_items_expected_max() > 1 ? "..." : "");
      line += " " + (operand->get_required() ? name : "[" + name + "]");
    }
    const bool runs = takes_command(app->get_name());
    return line + (runs ? " [-- COMMAND...]" : "") + "\n";
  }
  // The value's name and no more: what is required and what repeats stands in the usage line.
  std::string make_option_opts(const CLI::Option* option) const override {
    const std::string name = option->get_type_size() == 0 ? "" : option->get_type_name();
    return name.empty() || name == "TEXT" || name == "INT" ? "" : " " + name;
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
    app_.add_option("--server", connection.server, "the server's address: a URL, or unix:PATH")->type_name("URL");
    app_.add_option("--token-file", connection.token_file, "file with the bearer token")->type_name("FILE");
    app_.add_option("--context", connection.context, "a server of `berth context` (the current one)")
        ->type_name("NAME");
    app_.add_option("--ca", connection.ca, "authorities of the server's certificate, PEM")->type_name("FILE");
    app_.add_option("--cert", connection.cert, "client certificate, PEM")->type_name("FILE");
    app_.add_option("--cert-key", connection.cert_key, "its private key, PEM")->type_name("FILE");
    declare_jobs();
    declare_looking();
    declare_cluster();
    declare_delegation();
    declare_others();
    declare_elsewhere();
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

  // Checks that say nothing in the help, where the value's name says enough.
  static CLI::Option* one_of(CLI::Option* option, const std::vector<std::string>& words) {
    std::string name;
    for (const std::string& word : words) name += (name.empty() ? "" : "|") + word;
    return option->check(CLI::IsMember(words).description(""))->type_name(name);
  }
  // CLI11 would read 010 as 8 and 0x10 as 16.
  static CLI::Option* decimal(CLI::Option* option, std::int64_t low = 0, std::int64_t high = kMost) {
    const auto check = [=](const std::string& text) {
      const auto number = document::parse_integer(text, low, high);
      return number ? std::string() : number.error().message;
    };
    return option->check(check, "");
  }
  // What begins as a number is one; the server knows the classes.
  static CLI::Option* priority_or_class(CLI::Option* option) {
    const auto check = [](const std::string& text) {
      if (text.empty() || std::string_view("+-0123456789").find(text.front()) == std::string_view::npos)
        return std::string();
      const auto number = document::parse_integer(text, kLeastPriority, kMostPriority);
      return number ? std::string() : number.error().message;
    };
    return option->check(check, "");
  }
  // As the server reads it, so that an empty one is refused before it is taken for none.
  static CLI::Option* reason_of_break_glass(CLI::Option* option) {
    constexpr std::size_t kMostBytes = 200;
    const auto check = [](const std::string& text) {
      if (is_plain_line(text) && text.size() <= kMostBytes) return std::string();
      return "it needs a reason: 1 to " + std::to_string(kMostBytes) +
             " bytes on one line, which the owner of the job reads";
    };
    return option->check(check, "");
  }
  // An empty one, as of a variable that is not set, would be taken for none, and a second try would count twice.
  static CLI::Option* idempotency_key(CLI::Option* option) {
    constexpr std::size_t kLongestKey = 255;  // as the server takes it
    const auto check = [](const std::string& text) {
      const bool visible = std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~'; });
      if (!text.empty() && text.size() <= kLongestKey && visible) return std::string();
      return "a key is 1 to " + std::to_string(kLongestKey) + " ASCII characters that are not blanks";
    };
    return option->check(check, "")->type_name("KEY");
  }
  static CLI::Option* number(CLI::Option* option, std::int64_t low, std::int64_t high, const char* name) {
    return decimal(option, low, high)->type_name(name);
  }

  static void add_format(CLI::App& sub, Format& format, const std::vector<std::string>& words) {
    CLI::Option* option = sub.add_option_function<std::string>(
        "-o,--output", [&format](const std::string& word) { format = format_of(word); }, "how it is shown");
    one_of(option, words);
  }
  static void add_moment(CLI::App& sub, std::string& at) {
    sub.add_option("--at", at, "as it was then: a time, as 2h ago, or the number of an event")->type_name("TIME|SEQ");
  }

  static void add_show(CLI::App& sub, ShowOptions& show) {
    add_format(sub, show.format, kShown);
    add_watch(sub, show);
  }
  // Of a list: also CSV, and columns of the user's choice for it or for a table.
  static void add_list(CLI::App& sub, ShowOptions& show) {
    const auto check = [](const std::string& word) { return mistake_of_list_format(word); };
    const auto keep = [&show](const std::string& word) {
      const std::size_t equals = std::min(word.find('='), word.size());
      show.format = format_of(word.substr(0, equals));
      show.columns.clear();
      if (equals < word.size()) show.columns = *parse_columns(std::string_view(word).substr(equals + 1));
    };
    sub.add_option_function<std::string>("-o,--output", keep,
                                         "how it is shown; custom= and csv= take columns: custom=ID:id,USER:user")
        ->check(check, "")
        ->type_name(joined(kListed, "|"));
    add_watch(sub, show);
  }
  static void add_watch(CLI::App& sub, ShowOptions& show) {
    sub.add_flag("--watch", show.watch, "show it again and again, on a terminal in place");
    number(sub.add_option("--every", show.every_s, "refresh interval in seconds for --watch (default 2)"), 1, 86'400,
           "SECONDS");
  }

  static void add_job(CLI::App& sub, JobOptions& job) {
    sub.add_option("-f,--file", job.file, "job document, YAML or JSON; - is standard input; flags win over it")
        ->type_name("FILE");
    job.values.resize(job_flags().size());
    for (std::size_t i = 0; i < job_flags().size(); ++i) {
      const JobFlag& flag = job_flags()[i];
      const std::string name(flag.flag);
      std::vector<std::string>& values = job.values[i];
      if (flag.kind == FlagKind::kSwitch) {
        sub.add_flag_function(
            name, [&values](std::int64_t) { values = {"true"}; }, flag.says);
        continue;
      }
      CLI::Option* option = sub.add_option(name, values, flag.says)->type_name(flag.value_name);
      const bool repeated =
          flag.kind == FlagKind::kList || flag.kind == FlagKind::kPairs || flag.kind == FlagKind::kTerms;
      option->expected(1)->allow_extra_args(false);  // else a second word would replace the first
      option->multi_option_policy(repeated ? CLI::MultiOptionPolicy::TakeAll : CLI::MultiOptionPolicy::TakeLast);
    }
    sub.add_option("--export", job.exported,
                   "variables of your environment that the job gets: ALL, NONE (default), or NAME,NAME=VALUE,...")
        ->type_name("NAMES");
    idempotency_key(
        sub.add_option("--key", job.key, "idempotency key: the same key is the same job (default: random)"));
  }

  void declare_jobs();
  void declare_looking();
  void declare_cluster();
  void declare_delegation();
  void declare_binding(const char* name, bool grant, const char* says, const char* example);
  void declare_others();
  void declare_elsewhere();

  template <class Options>
  void job_action(const char* name, const char* says, const char* example, Options options) {
    auto kept = std::make_shared<Options>(options);
    CLI::App& sub = command("Jobs", name, says, example, kept);
    sub.add_option("ID", kept->ids, "the jobs' numbers; or choose them by what follows");
    add_selector(sub, kept->selector);
  }
  static void add_selector(CLI::App& sub, JobSelector& selector) {
    add_choice(sub, selector);
    sub.add_flag("-y,--yes", selector.confirmed, "do not ask");
  }
  static void add_choice(CLI::App& sub, JobSelector& selector) {
    sub.add_option("--queue", selector.queue, "all of this queue and those below it")->type_name("PATH");
    sub.add_option("--user", selector.user, "all of this user")->type_name("NAME");
    sub.add_flag("--me", selector.me, "all of yours");
    one_of(sub.add_option("--phase", selector.phase, "all in this phase"), {"pending", "running", "stopping"});
    sub.add_option("--name", selector.name, "all of this name")->type_name("NAME");
    sub.add_option("--label", selector.label, "all with these labels, joined by commas")->type_name("KEY=VALUE");
  }
  void node_action(const char* name, NodeAction action, const char* says, const char* example) {
    auto kept = std::make_shared<NodeActionOptions>();
    kept->action = action;
    CLI::App& sub = command("Cluster", name, says, example, kept);
    sub.add_option("NODE", kept->names, "the nodes' names")->required();
    if (action == NodeAction::kDrain) {
      sub.add_option("--gone-in", kept->gone_in,
                     "the node will shut down in this time (e.g. 2m); grace periods are shortened to fit");
      sub.add_flag("--lose-work", kept->lose_work, "also stop jobs that do not save when they are asked to leave");
      sub.add_option("--deadline", kept->deadline, "what still runs then is stopped, such as 2h");
      sub.add_flag("--when-idle", kept->when_idle, "ask no job to leave: let all of them finish");
    }
    if (action == NodeAction::kUncordon) {
      sub.add_option("--gpu", kept->gpu, "instead, lift the fence of this GPU of the node, by its index")
          ->type_name("INDEX");
    }
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
  submitting.add_flag("--cost", submit->estimate, "say what it would cost, and submit nothing");
  submitting.add_flag("--dry-run", submit->dry_run,
                      "say where it would start or why it would wait, and submit nothing");
  add_format(submitting, submit->format, kShort);

  auto run = std::make_shared<RunOptions>();
  CLI::App& running = command("Jobs", "run", "Submit a job, show its output, and exit with its exit code",
                              "berth run --queue research/nlp --gpus 1 -- python3 train.py\n"
                              "  berth run -it --queue research/nlp --gpus 1 -- bash",
                              run);
  add_job(running, run->job);
  running
      .add_flag("-i,-t,--tty", run->terminal,
                "-it: an interactive job with this terminal attached, which ends with its command")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  running.add_flag("-q,--quiet", run->quiet, "no lines about the job, only its output");

  auto exec = std::make_shared<ExecOptions>();
  CLI::App& executing = command("Jobs", "exec", "Run a command in a task of a running job, and exit with its exit code",
                                "berth exec 17 -- nvidia-smi\n"
                                "  berth exec 17 -it -- bash\n"
                                "  berth exec 17 --task 3 -i -- tee /tmp/x < x",
                                exec);
  executing.add_option("ID", exec->id, "the job's number")->required();
  number(executing.add_option("--task", exec->task, "which task (0)"), 0, kMost, "N");
  executing.add_flag("-i,--stdin", exec->input, "what you type or pipe is its standard input (else that is empty)");
  executing.add_flag("-t,--tty", exec->terminal, "it gets a terminal, and this one is its screen and keyboard");

  auto attach = std::make_shared<AttachOptions>();
  CLI::App& attaching =
      command("Jobs", "attach", "Attach the terminal of an interactive job", "berth attach 17", attach);
  attaching.add_option("ID", attach->id, "the job's number")->required();

  job_action(
      "cancel", "Stop jobs for good",
      "berth cancel 17\n  berth cancel --me --phase pending\n  berth cancel --queue research --label run=7 --yes",
      JobActionOptions{JobAction::kCancel, {}});
  job_action("hold", "Keep pending jobs from starting", "berth hold 17 18", JobActionOptions{JobAction::kHold, {}});
  job_action("release", "Let held jobs start", "berth release 17", JobActionOptions{JobAction::kRelease, {}});

  auto prioritize = std::make_shared<PrioritizeOptions>();
  CLI::App& prioritizing = command("Jobs", "prioritize", "Change a job's priority",
                                   "berth prioritize 17 800\n"
                                   "  berth prioritize 17 urgent --dry-run\n"
                                   "  berth prioritize --user bob --to 800",
                                   prioritize);
  prioritizing.add_option("ID", prioritize->id, "the job's number; or choose jobs by what follows");
  priority_or_class(
      prioritizing.add_option("PRIORITY", prioritize->priority, "a number, higher goes first; or a priority class"));
  priority_or_class(prioritizing.add_option("--to", prioritize->priority, "the priority, where jobs are chosen"))
      ->type_name("PRIORITY");
  prioritizing.add_flag("--dry-run", prioritize->dry_run, "say what it would do, and do nothing");
  add_selector(prioritizing, prioritize->selector);

  auto wait = std::make_shared<WaitOptions>();
  CLI::App& waiting = command("Jobs", "wait", "Wait until jobs have finished; exits with 1 if one did not succeed",
                              "berth wait 17 18\n"
                              "  berth wait --label run=7 --timeout 2h\n"
                              "  berth wait 17 --until running",
                              wait);
  waiting.add_option("ID", wait->ids, "the jobs' numbers; or choose live jobs by what follows");
  add_choice(waiting, wait->selector);
  one_of(waiting.add_option("--until", wait->until, "until they run or have finished (finished)"),
         {"running", "finished"});
  waiting.add_option("--timeout", wait->timeout, "at most so long, then exit with 5")->type_name("SPAN");
  add_format(waiting, wait->format, kShort);

  auto move = std::make_shared<MoveOptions>();
  CLI::App& moving = command("Jobs", "move", "Move a running job to other nodes: it saves, leaves and starts there",
                             "berth move 17\n  berth move 17 --off gpu-01,gpu-02\n  berth move 17 --lose-work", move);
  moving.add_option("ID", move->id, "the job's number")->required();
  moving.add_option("--off", move->off, "the nodes to leave, joined by commas (all that it is on)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("NODES");
  moving.add_flag("--lose-work", move->lose_work, "move it even though it cannot checkpoint; its progress is lost");
  add_format(moving, move->format, kShort);
}

void Declarations::declare_looking() {
  auto jobs = std::make_shared<JobsOptions>();
  CLI::App& listing = command("Jobs", "jobs", "List jobs",
                              "berth jobs --queue research --phase pending --watch\n"
                              "  berth jobs --me --since 'yesterday 18:00'\n"
                              "  berth jobs --phase pending --at 2026-11-20T10:00Z\n"
                              "  berth jobs -o custom=ID:id,USER:user,GPUS:gpus,WAITED:waiting_since\n"
                              "  berth jobs --all -o csv=id,user,gpu_seconds,labels.run > jobs.csv",
                              jobs);
  add_list(listing, jobs->show);
  listing.add_option("--queue", jobs->queue, "of this queue and those below it")->type_name("PATH");
  listing.add_option("--user", jobs->user, "of this user")->type_name("NAME");
  one_of(listing.add_option("--phase", jobs->phase, "in this phase"), {"pending", "running", "stopping", "finished"});
  one_of(listing.add_option("--kind", jobs->kind, "of this kind"), {"gang", "service", "array", "interactive"});
  listing.add_option("--name", jobs->name, "of this name")->type_name("NAME");
  listing.add_option("--node", jobs->node, "with a task on this node")->type_name("NODE");
  decimal(listing.add_option("--parent", jobs->parent, "of this service or array"))->type_name("ID");
  listing.add_flag("-a,--all", jobs->all, "finished ones too");
  listing.add_flag("--me", jobs->me, "only yours");
  listing.add_option("--label", jobs->label, "with these labels, joined by commas")->type_name("KEY=VALUE");
  listing.add_option("--since", jobs->since, "also those that finished since then: yesterday, 2h ago")
      ->type_name("TIME");
  listing.add_option("--until", jobs->until, "only those submitted before then")->type_name("TIME");
  listing.add_option("--sort", jobs->sort, "id, submitted, priority, queue, user or gpus; with - for descending")
      ->type_name("KEY");
  number(listing.add_option("--limit", jobs->limit, "at most so many (1000)"), 1, 1'000'000, "N");
  add_moment(listing, jobs->at);

  auto job = std::make_shared<JobViewOptions>();
  CLI::App& viewing =
      command("Jobs", "job", "Tell a job's story: each attempt, when, where, why it stopped", "berth job 17", job);
  viewing.add_option("ID", job->id, "the job's number")->required();
  add_show(viewing, job->show);

  auto why = std::make_shared<WhyOptions>();
  CLI::App& asking = command("Jobs", "why", "Say why a job waits, when it starts and what would help",
                             "berth why 17, berth why 17 -v, berth why 17 --at '2h ago'", why);
  asking.add_option("ID", why->id, "the job's number")->required();
  asking.add_flag("-v,--verbose", why->verbose, "all remedies and the numbers behind the answer");
  add_moment(asking, why->at);
  add_show(asking, why->show);

  auto logs = std::make_shared<LogsOptions>();
  CLI::App& reading = command("Jobs", "logs", "Show what a task wrote to both its streams",
                              "berth logs 17\n  berth logs -f 17 --task 1 --tail 20\n  berth logs 17 --stream stderr\n"
                              "  berth logs 17 --break-glass 'node n3 fails; is it the job?'",
                              logs);
  reading.add_option("ID", logs->id, "the job's number")->required();
  reading.add_flag("-f,--follow", logs->follow, "go on until the job is over");
  number(reading.add_option("--task", logs->task, "which task (0)"), 0, kMost, "N");
  number(reading.add_option("--attempt", logs->attempt, "which attempt (the current or last)"), 1, kMost, "N");
  one_of(reading.add_option("--stream", logs->stream, "only this stream (both)"), {"stdout", "stderr"});
  reading.add_flag("--stderr", logs->error_stream, "as --stream stderr");
  number(reading.add_option("--tail", logs->tail, "only the last so many lines"), 0, kMost, "N");
  reason_of_break_glass(
      reading.add_option("--break-glass", logs->break_glass,
                         "operators: why you read a log that no role of yours covers; its owner sees it"))
      ->type_name("REASON");
}

void Declarations::declare_cluster() {
  auto status = std::make_shared<StatusOptions>();
  add_show(command("Cluster", "status", "The cluster at a glance", "berth status --watch", status), status->show);

  auto queues = std::make_shared<QueuesOptions>();
  CLI::App& listing =
      command("Cluster", "queues", "The queue tree: guaranteed, used, borrowed",
              "berth queues -o wide\n  berth queues -o custom=QUEUE:path,GPUS:usage.gpus,WAIT:pending", queues);
  auto* path = listing.add_option("QUEUE", queues->path, "only this one");
  listing.add_flag("--explain", queues->explain, "the arithmetic of its share")->needs(path);
  add_moment(listing, queues->at);
  add_list(listing, queues->show);

  auto top = std::make_shared<TopOptions>();
  CLI::App& ranking = command("Cluster", "top", "Users and queues by the GPUs that they have now, and what waits there",
                              "berth top --watch\n  berth top --by user --queue research", top);
  one_of(ranking.add_option("--by", top->by, "only by this (both)"), {"user", "queue"});
  ranking.add_option("--queue", top->queue, "only this queue and those below it")->type_name("PATH");
  add_show(ranking, top->show);

  auto nodes = std::make_shared<NodesOptions>();
  CLI::App& machines =
      command("Cluster", "nodes", "The nodes, or one of them with its GPUs",
              "berth nodes gpu-01\n  berth nodes -o custom=NODE:name,FREE:gpus_free,MODELS:gpus.model", nodes);
  machines.add_option("NODE", nodes->name, "only this one, in full");
  add_moment(machines, nodes->at);
  add_list(machines, nodes->show);

  node_action("cordon", NodeAction::kCordon, "Start no new tasks on nodes", "berth cordon gpu-01");
  node_action("uncordon", NodeAction::kUncordon, "Use nodes again",
              "berth uncordon gpu-01\n  berth uncordon gpu-01 --gpu 3");
  node_action("drain", NodeAction::kDrain,
              "Cordon nodes, and empty them: jobs that save are asked to leave, others run to their end",
              "berth drain gpu-01\n  berth drain --deadline 2h gpu-01\n  berth drain --lose-work gpu-01\n  berth drain "
              "--when-idle gpu-01 gpu-02");
  node_action("fence", NodeAction::kFence, "Declare nodes dead, so that their jobs start elsewhere",
              "berth fence gpu-01 --yes");

  auto windows = std::make_shared<MaintenanceOptions>();
  CLI::App& planning =
      command("Cluster", "maintenance", "Plan when nothing runs on nodes; list the windows, cancel one",
              "berth maintenance add --nodes gpu-01,gpu-02 --from +2h --for 4h --reason firmware\n"
              "  berth maintenance add --nodes pool=big --from 2026-12-01T06:00:00Z --for 2h --name december\n"
              "  berth maintenance cancel december",
              windows);
  one_of(planning.add_option("ACTION", windows->action, "list, add or cancel (list)"), {"list", "add", "cancel"});
  planning.add_option("NAME", windows->name, "of the window to cancel");
  planning.add_option("--name", windows->name, "of a new window (berth finds one)")->type_name("NAME");
  planning.add_option("--nodes", windows->nodes, "names, or pool=NAME and labels KEY=VALUE; joined by commas")
      ->delimiter(',')
      ->type_name("NODES");
  planning.add_option("--from", windows->from, "ISO 8601, a span from now as +2h, or now (now)")->type_name("TIME");
  planning.add_option("--for", windows->duration, "how long, such as 2h")->type_name("SPAN");
  planning.add_option("--reason", windows->reason, "what for")->type_name("TEXT");
  add_show(planning, windows->show);

  auto clock = std::make_shared<ClockOptions>();
  CLI::App& time = command("Cluster", "clock", "The server's clock and the wall clock; confirm the wall clock",
                           "berth clock\n  berth clock confirm --yes", clock);
  one_of(time.add_option("ACTION", clock->action, "show or confirm (show)"), {"show", "confirm"});
  time.add_flag("--yes", clock->confirmed, "the wall clock is right, and the time between has really passed");
  add_show(time, clock->show);

  auto token = std::make_shared<TokenOptions>();
  CLI::App& tokens = command("Cluster", "token", "Create, list and revoke tokens, each with a role at a queue",
                             "berth token create ci --role member --queue research/nlp --expires 90d\n"
                             "  berth token list\n"
                             "  berth token revoke ci",
                             token);
  one_of(tokens.add_option("ACTION", token->action, "list, create or revoke (list)"), {"list", "create", "revoke"});
  tokens.add_option("NAME", token->name, "of the token");
  std::vector<std::string> roles;
  for (const std::string_view role : EnumNames<Role>::kNames) roles.emplace_back(role);
  one_of(tokens.add_option("--role", token->role, "what it may do there (member)"), roles);
  tokens.add_option("--queue", token->queue, "the queue at which it has the role; / is the root")->type_name("PATH");
  tokens.add_option("--user", token->user, "the owner of the jobs that it submits (NAME)")->type_name("USER");
  tokens.add_option("--expires", token->expires, "when it ends, at most 366d (90d)")->type_name("SPAN");
  add_show(tokens, token->show);

  auto login = std::make_shared<LoginOptions>();
  CLI::App& signing = command("Sign-in", "login", "Sign in at an identity provider, for the server of a context",
                              "berth login --server https://berth.example.com --issuer https://login.example.com "
                              "--client-id berth-cli\n"
                              "  berth login        (again, as before)\n"
                              "  berth login --client-credentials --issuer URL --client-id robot --client-secret-file "
                              "FILE --resource URN",
                              login);
  signing.add_option("--issuer", login->issuer, "the provider's address, as the server knows it")->type_name("URL");
  signing.add_option("--client-id", login->client_id, "what the provider calls this program")->type_name("ID");
  signing.add_flag("--client-credentials", login->client_credentials, "sign in as a machine, by the client's secret");
  signing.add_option("--client-secret-file", login->secret_file, "the client's secret (default: $BERTH_CLIENT_SECRET)")
      ->type_name("FILE");
  signing.add_option("--scope", login->scope, "what is asked for (openid offline_access)")->type_name("WORDS");
  signing
      .add_option("--resource", login->resource, "the server as the provider calls it; wants an access token for it")
      ->type_name("URI");
  signing.add_option("--audience", login->audience, "the same for providers that call it audience")->type_name("NAME");
  signing.add_option("--issuer-ca", login->issuer_ca, "authorities of the provider's certificate, PEM")
      ->type_name("FILE");

  command("Sign-in", "logout", "Forget the tokens of a context", "berth logout", std::make_shared<LogoutOptions>());

  auto context = std::make_shared<ContextOptions>();
  CLI::App& contexts = command("Sign-in", "context", "The servers that you work with: list, use, set, delete",
                               "berth context set lab --server https://lab.example.com\n"
                               "  berth context use lab\n"
                               "  berth context",
                               context);
  one_of(contexts.add_option("ACTION", context->action, "list, use, set or delete (list)"),
         {"list", "use", "set", "delete"});
  contexts.add_option("NAME", context->name, "of the context");
  add_show(contexts, context->show);

  auto auth = std::make_shared<AuthOptions>();
  CLI::App& asking =
      command("Sign-in", "auth", "What a subject may do: can-i asks one thing, explain tells all its roles",
              "berth auth can-i submit research/nlp\n"
              "  berth auth can-i stop-job 17\n"
              "  berth auth can-i stop-job research --owner corp:bob --as user:corp:ada --group corp:nlp\n"
              "  berth auth explain",
              auth);
  one_of(asking.add_option("ACTION", auth->action, "can-i or explain (explain)"), {"can-i", "explain"});
  asking.add_option("VERB", auth->verb, "with can-i: what is to be done, such as submit (docs/roles.md)");
  asking.add_option("OBJECT", auth->object, "a queue, or a job's number (the root)");
  asking.add_option("--as", auth->subject, "another subject, such as user:corp:ada or token:ci")->type_name("SUBJECT");
  asking.add_option("--group", auth->groups, "with --as: a group of it, such as corp:nlp; may be given again")
      ->allow_extra_args(false)
      ->type_name("GROUP");
  asking.add_option("--owner", auth->owner, "whose jobs in the queue (the subject's own)")->type_name("USER");
  add_show(asking, auth->show);

  auto whoami = std::make_shared<WhoamiOptions>();
  CLI::App& identity =
      command("Cluster", "whoami", "Who the server takes you for, and your roles", "berth whoami", whoami);
  add_show(identity, whoami->show);

  auto capacity = std::make_shared<CapacityOptions>();
  CLI::App& scaling =
      command("Cluster", "capacity", "Which idle nodes could go, and which further nodes would help",
              "berth capacity --idle-for 30m\n"
              "  berth capacity -o wide\n"
              "  berth capacity -o json | jq -r '.items[].idle[] | select(.kept_for == \"nothing\").node'",
              capacity);
  scaling.add_option("--idle-for", capacity->idle_for, "a node that is idle for less stays (10m)")->type_name("SPAN");
  add_show(scaling, capacity->show);

  auto advice = std::make_shared<AdviseOptions>();
  add_show(command("Cluster", "advise", "Which of the usual pitfalls the cluster is in, and what would mend them",
                   "berth advise\n"
                   "  berth advise -o json | jq -r '.items[] | select(.severity == \"warning\").code'",
                   advice),
           advice->show);

  auto doctor = std::make_shared<DoctorOptions>();
  CLI::App& examined =
      command("Cluster", "doctor", "The production checklist, tried on this cluster, and what mends what is not so",
              "berth doctor\n"
              "  berth doctor --all\n"
              "  berth doctor -o json | jq -r '.items[] | select(.result == \"broken\").remedy'\n"
              "  berth doctor -o html > checklist.html",
              doctor);
  examined.add_flag("--all", doctor->all, "also the lines that are ok");
  add_format(examined, doctor->show.format, {"table", "wide", "json", "yaml", "html"});
  add_watch(examined, doctor->show);

  auto usage = std::make_shared<UsageOptions>();
  CLI::App& accounting =
      command("Cluster", "usage", "GPU-seconds by queue, user and GPU model, within and borrowed",
              "berth usage --from -24h --to now -o csv\n  berth usage --by user --from yesterday", usage);
  accounting.add_option("--from", usage->from, "yesterday, 2h ago, -24h, ISO 8601 (default: the beginning)")
      ->type_name("TIME");
  one_of(accounting.add_option("--by", usage->by, "one line for each of these"), {"queue", "user", "job"});
  accounting.add_option("--to", usage->to, "the same (default: now)")->type_name("TIME");
  add_moment(accounting, usage->at);
  add_list(accounting, usage->show);

  auto bill = std::make_shared<BillOptions>();
  CLI::App& billing = command("Cluster", "bill", "What a queue costs in a month, and what it is expected to cost",
                              "berth bill research --month 2026-11 --by user\n"
                              "  berth bill --by label --label model -o csv\n"
                              "  berth bill --month 2026-10 --prices other.yaml\n"
                              "  berth bill --month 2026-10 --line 17-3f9ac2d15b07\n"
                              "  berth bill --month 2026-10 --close\n"
                              "  berth bill research --month 2026-10 --correct -12.50 --reason 'a node was lost'",
                              bill);
  billing.add_option("QUEUE", bill->queue, "this queue and those below it (the whole cluster)");
  billing.add_option("--month", bill->month, "a month of UTC, such as 2026-11 (the present one)")->type_name("MONTH");
  one_of(billing.add_option("--by", bill->by, "one line for each of these (queue)"),
         {"queue", "user", "job", "model", "label", "kind"});
  billing.add_option("--label", bill->label, "with --by label: the key of the labels")->type_name("KEY");
  billing.add_option("--prices", bill->prices, "by the prices of this file; nothing is stored")->type_name("FILE");
  billing.add_option("--line", bill->line, "open this line of berth invoice, down to its events")->type_name("LINE");
  billing.add_option("--after", bill->after, "with --line: go on where it says there is more")->type_name("PLACE");
  billing.add_flag("--close", bill->close, "close the month first: its bills stay as they are for good");
  billing.add_option("--correct", bill->correct, "put this amount for --month on the bill of now; -5.50 is a refund")
      ->type_name("AMOUNT")
      ->check([](const std::string& text) { return text.empty() ? "give an amount such as -12.50" : std::string(); },
              "");
  billing.add_option("--reason", bill->reason, "with --correct: it is on the bill")->type_name("REASON");
  number(billing.add_option("--job", bill->job, "with --correct: the job that it is about"), 1, kMost, "ID");
  idempotency_key(billing.add_option(
      "--key", bill->key, "with --correct: idempotency key: the same key is the same correction (default: random)"));
  add_moment(billing, bill->at);
  add_format(billing, bill->format, {"table", "json", "csv"});

  auto invoice = std::make_shared<InvoiceOptions>();
  CLI::App& invoicing = command("Cluster", "invoice", "The bill of a month, line by line or as a document",
                                "berth invoice research --month 2026-10\n"
                                "  berth invoice research --month 2026-10 -o html > invoice.html\n"
                                "  berth invoice --month 2026-10 -o hledger > 2026-10.journal",
                                invoice);
  invoicing.add_option("QUEUE", invoice->queue, "this queue and those below it (the whole cluster)");
  invoicing.add_option("--month", invoice->month, "a month of UTC, such as 2026-11 (the present one)")
      ->type_name("MONTH");
  add_moment(invoicing, invoice->at);
  one_of(invoicing.add_option("-o,--output", invoice->form, "how it is shown (table)"),
         {"table", "json", "csv", "html", "hledger", "focus"});

  auto events = std::make_shared<EventsOptions>();
  CLI::App& following =
      command("Cluster", "events", "What happened, event by event", "berth events -f --job 17", events);
  following.add_flag("-f,--follow", events->follow, "follow new events (with --from N, start at event N)");
  number(following.add_option("--from", events->from, "sequence number to begin with"), 0, kMost, "SEQ");
  number(following.add_option("--limit", events->limit, "at most so many; without --from the newest"), 1, kMost, "N");
  following.add_option("--kind", events->kind, "only this kind, as attempt-started")->type_name("KIND");
  following.add_option("--job", events->job, "only those of this job")->type_name("ID");
  add_format(following, events->format, kShort);

  auto audit = std::make_shared<AuditOptions>();
  CLI::App& auditing = command("Cluster", "audit", "Who changed, tried and read what, and from where",
                               "berth audit --denied --since yesterday\n"
                               "  berth audit --queue research --verb manage-roles --since 2026-10-01\n"
                               "  berth audit --follow -o json >> audit.jsonl",
                               audit);
  auditing.add_option("--subject", audit->subject, "only of this subject, such as token:ci")->type_name("SUBJECT");
  auditing.add_option("--queue", audit->queue, "only of this queue and those below it");
  auditing.add_option("--verb", audit->verb, "only this verb, such as change-queue; docs/roles.md has them")
      ->type_name("VERB");
  auditing.add_flag("--denied", audit->denied, "only what was denied");
  auditing.add_option("--since", audit->since, "only since then: yesterday, 2h ago, 2026-11-01 (7 days ago)")
      ->type_name("TIME");
  number(auditing.add_option("--limit", audit->limit, "the newest, at most so many"), 1, kMost, "N");
  auditing.add_flag("-f,--follow", audit->follow, "what comes from now on; with -o json one entry a line");
  add_format(auditing, audit->format, kShort);
}

void Declarations::declare_binding(const char* name, bool grant, const char* says, const char* example) {
  auto bind = std::make_shared<BindOptions>();
  bind->grant = grant;
  CLI::App& binding = command("Cluster", name, says, example, bind);
  binding.add_option("SUBJECT", bind->subject, "user:NAME, group:ISSUER:NAME, token:NAME or cert:NAME");
  std::vector<std::string> roles;
  for (const std::string_view role : EnumNames<Role>::kNames) roles.emplace_back(role);
  one_of(binding.add_option("ROLE", bind->role, "the role"), roles);
  binding.add_option("QUEUE", bind->queue, "the queue at which it holds, and below; / is the root");
  if (!grant) {
    binding.add_option("--subject", bind->blocked, "instead: end all access of this subject, at once")
        ->type_name("SUBJECT");
    binding.add_flag("--lift", bind->lift, "with --subject: let it in again");
  }
  add_format(binding, bind->format, kShort);
}

void Declarations::declare_delegation() {
  auto change = std::make_shared<QueueChangeOptions>();
  CLI::App& changing = command("Cluster", "queue", "Change limits of a queue, beside the configuration file",
                               "berth queue set research/nlp guaranteed.gpus=+100 --until 2026-12-31 --dry-run\n"
                               "  berth queue set research/nlp weight=3 max.memory=2TiB max_jobs_per_user=none\n"
                               "  berth queue undo research/nlp\n"
                               "  berth queue changes research/nlp",
                               change);
  one_of(changing.add_option("ACTION", change->action, "set, undo or changes"), {"set", "undo", "changes"})->required();
  changing.add_option("QUEUE", change->queue, "its path")->required();
  changing.add_option("KEY=VALUE", change->settings, "a limit; +8 and -8 are more and less, none is no limit");
  changing.add_option("--until", change->until, "lease it: it goes back at this time")->type_name("TIME");
  changing.add_flag("--dry-run", change->dry_run, "say what it would do, and change nothing");
  changing
      .add_option("--if-revision", change->if_revision,
                  "only if the queue still has this revision, as --dry-run showed it (else exit 4)")
      ->type_name("REVISION");
  add_format(changing, change->format, kShort);

  declare_binding("grant", true, "Give a subject a role at a queue and below",
                  "berth grant group:corp:nlp member research/nlp\n  berth grant user:corp:ada org-admin research");
  declare_binding("revoke", false, "Take a role back that was granted; or end all access of a subject",
                  "berth revoke group:corp:nlp member research/nlp\n  berth revoke --subject user:corp:ada\n"
                  "  berth revoke --subject user:corp:ada --lift");
  auto roles = std::make_shared<RolesOptions>();
  add_show(
      command("Cluster", "roles", "Who has which role at which queue, by the file or by command", "berth roles", roles),
      roles->show);
}

void Declarations::declare_others() {
  auto apply = std::make_shared<ApplyOptions>();
  CLI::App& applying =
      command("Configuration", "apply", "Put a configuration into force",
              "berth apply -f cluster.yaml --diff\n  berth apply -f cluster.yaml --if-version 3", apply);
  applying.add_option("-f,--file", apply->file, "configuration document; - is standard input")
      ->required()
      ->type_name("FILE");
  CLI::Option* diffing = applying.add_flag(
      "--diff", apply->diff, "show what it changes first, and change only the version that it was compared with");
  number(applying.add_option("--if-version", apply->if_version,
                             "only if this version is still in force, as `berth diff` showed it (else exit 4)"),
         0, kMost, "N")
      ->excludes(diffing);
  add_format(applying, apply->format, kShort);

  auto diff = std::make_shared<DiffOptions>();
  CLI::App& comparing =
      command("Configuration", "diff", "What applying a configuration would change (exit 0: nothing, 1: something)",
              "berth diff -f cluster.yaml", diff);
  comparing.add_option("-f,--file", diff->file, "configuration document; - is standard input")
      ->required()
      ->type_name("FILE");
  add_format(comparing, diff->format, kShort);

  auto prices = std::make_shared<PricesOptions>();
  CLI::App& pricing = command("Configuration", "prices", "The price book: show it, compare it, put one in force",
                              "berth prices apply prices.yaml\n  berth prices diff prices.yaml\n"
                              "  berth prices > prices.yaml",
                              prices);
  one_of(pricing.add_option("ACTION", prices->action, "show, apply or diff (show)"), {"show", "apply", "diff"});
  pricing.add_option("FILE", prices->file, "price book; - is standard input");
  add_format(pricing, prices->format, kShort);

  auto quantities = std::make_shared<QuantitiesOptions>();
  CLI::App& reporting = command(
      "Cluster", "quantities", "Storage, egress, energy and what else is reported for the bill",
      "berth quantities report usage.yaml\n"
      "  berth quantities report --id nas-7 --queue research --kind storage --quantity 1200 --from 2026-11-01 --to "
      "2026-11-02\n"
      "  berth quantities list --queue research --month 2026-11",
      quantities);
  one_of(reporting.add_option("ACTION", quantities->action, "list or report (list)"), {"list", "report"});
  reporting.add_option("FILE", quantities->file, "report: a document with the list quantities; - is standard input");
  reporting.add_option("--id", quantities->id, "report: of this report; the same one counts once")->type_name("ID");
  reporting.add_option("--queue", quantities->queue, "report: the queue that pays; list: this one and those below it")
      ->type_name("QUEUE");
  reporting.add_option("--kind", quantities->kind, "as the price book names it, such as storage")->type_name("KIND");
  number(reporting.add_option("--quantity", quantities->quantity, "report: whole units"), 1, kMost, "N");
  reporting.add_option("--unit", quantities->unit, "report: refused if the prices have another one")->type_name("UNIT");
  reporting.add_option("--from", quantities->from, "report: the begin of the time")->type_name("TIME");
  reporting.add_option("--to", quantities->to, "report: its end, in the same month")->type_name("TIME");
  reporting.add_option("--month", quantities->month, "list: for this month")->type_name("MONTH");
  add_format(reporting, quantities->format, {"table", "json", "csv"});

  auto policy = std::make_shared<PolicyOptions>();
  CLI::App& ruling =
      command("Configuration", "policy", "Admission rules: show them, set them, try others, write them for Kubernetes",
              "berth policy show --queue research/nlp\n"
              "  berth policy apply rules.yaml --queue research/nlp\n"
              "  berth policy test rules.yaml --queue research --last 30d\n"
              "  berth policy export --queue research > policies.yaml",
              policy);
  one_of(ruling.add_option("ACTION", policy->action, "show, apply, test or export (show)"),
         {"show", "apply", "test", "export"});
  ruling.add_option("FILE", policy->file, "rules under the key admission; - is standard input");
  ruling.add_option("--queue", policy->queue, "the queue at which they are; the root if absent")->type_name("QUEUE");
  ruling.add_option("--last", policy->last, "test: jobs of this time (30d)")->type_name("TIME");
  add_show(ruling, policy->show);

  auto check = std::make_shared<CheckOptions>();
  CLI::App& checking = command(
      "Configuration", "check",
      "All mistakes of configurations, jobs, prices and issuers, without a server (exit 2: some)",
      "berth check cluster.yaml\n  berth check cluster.yaml job.yaml    (also: does the cluster have what the job "
      "names?)\n  berth check prices.yaml issuers.yaml\n  berth check -o json cluster.yaml | jq '.items[].mistakes'",
      check);
  checking.add_option("FILE", check->files, "documents, YAML or JSON; - is standard input")->required();
  one_of(checking.add_option("--kind", check->kind, "what the files are (as their keys say)"),
         {"config", "job", "prices", "issuers"});
  add_format(checking, check->format, kShort);

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
  number(acknowledging.add_option("--step", done->step, "the step that was saved"), 0, kMost, "N")->required();
  acknowledging.add_option("--job", done->job, "from outside: the job's number")->type_name("ID");
  number(acknowledging.add_option("--attempt", done->attempt, "from outside: the attempt that saved"), 1, kMost, "N");

  auto shown = std::make_shared<JobTokenOptions>();
  CLI::App& showing = command("Jobs", "job-token", "Inside a job: a token by which others know which job it is",
                              "berth job-token --audience https://vault.example.com\n"
                              "  berth job-token --audience sts.amazonaws.com > \"$AWS_WEB_IDENTITY_TOKEN_FILE\"",
                              shown);
  showing.add_option("--audience", shown->audience, "the service that is to take it")->required()->type_name("NAME");
  add_show(showing, shown->show);

  auto keys = std::make_shared<KeysOptions>();
  CLI::App& signing_keys = command("Cluster", "keys", "The keys that identities of jobs are signed with",
                                   "berth keys\n  berth keys rotate\n  berth keys rotate --withdraw", keys);
  one_of(signing_keys.add_option("ACTION", keys->action, "list or rotate (list)"), {"list", "rotate"});
  signing_keys.add_flag("--withdraw", keys->withdraw,
                        "with rotate: no token that the earlier keys have signed is good any more");
  add_show(signing_keys, keys->show);

  auto version = std::make_shared<VersionOptions>();
  add_format(command("This program", "version", "Versions of this program and the server", "berth version", version),
             version->format, kShown);

  auto completion = std::make_shared<CompletionOptions>();
  CLI::App& completing = command("This program", "completion", "Completion for a shell",
                                 "source <(berth completion bash)\n  berth completion zsh > ~/.zfunc/_berth\n"
                                 "  berth completion fish > ~/.config/fish/completions/berth.fish",
                                 completion);
  one_of(completing.add_option("SHELL", completion->shell, "bash, zsh or fish"), {"bash", "zsh", "fish"})->required();
}

// A flag of a command that main takes itself.
struct ElsewhereFlag {
  const char* command;
  const char* name;
  const char* value_name;  // null for a switch
  const char* says;
};

constexpr std::array kElsewhereFlags{
    ElsewhereFlag{"serve dev", "--data", "DIR", "directory of the event log, jobs' output and checkpoints"},
    ElsewhereFlag{"serve dev", "--store", "ADDRESS", "PostgreSQL that keeps the event log instead"},
    ElsewhereFlag{"serve dev", "--store-deadline", "TIME", "how long it may take for a commit, as 10s"},
    ElsewhereFlag{"serve dev", "--config", "FILE", "cluster.yaml to have in force from the start"},
    ElsewhereFlag{"serve dev", "--issuers", "FILE", "identity providers whose tokens are taken"},
    ElsewhereFlag{"serve dev", "--listen", "ADDRESS", "address to serve on"},
    ElsewhereFlag{"serve dev", "--tls-cert", "FILE", "certificate of the server, PEM; serves https"},
    ElsewhereFlag{"serve dev", "--tls-key", "FILE", "its private key, PEM, mode 0600"},
    ElsewhereFlag{"serve dev", "--client-ca", "FILE", "authorities of client certificates, PEM"},
    ElsewhereFlag{"serve dev", "--socket", "PATH", "Unix socket to serve on as well, or none"},
    ElsewhereFlag{"serve dev", "--port", "PORT", "port to serve on"},
    ElsewhereFlag{"serve dev", "--url", "URL", "this server as others reach it"},
    ElsewhereFlag{"serve dev", "--rate-limit", "N/N", "requests of each subject, per second and at once"},
    ElsewhereFlag{"serve dev", "--rate-limit-unknown", "N/N", "and of each address without a good token"},
    ElsewhereFlag{"serve dev", "--day-limit", "SIZE", "what the requests of each subject may write in a day"},
    ElsewhereFlag{"serve dev", "--keep-finished", "TIME", "how long finished jobs' output is kept"},
    ElsewhereFlag{"serve dev", "--keep-finished-size", "SIZE", "how much of it in all"},
    ElsewhereFlag{"serve dev", "--backup-to", "DIR", "where the server makes backups of its log"},
    ElsewhereFlag{"serve dev", "--backup-every", "TIME", "how often, as 24h"},
    ElsewhereFlag{"serve dev", "--backup-keep", "N", "how many are kept"},
    ElsewhereFlag{"serve dev", "--max-downtime", "TIME", "a clock further ahead at start is not believed"},
    ElsewhereFlag{"serve dev", "--node-name", "NAME", "name of this machine as a node"},
    ElsewhereFlag{"serve dev", "--node-pool", "NAME", "the pool that it is in"},
    ElsewhereFlag{"serve dev", "--node-at", "PATH", "where it stands in the topology, as b1/r1"},
    ElsewhereFlag{"serve dev", "--node-label", "KEY=VALUE", "a label of it; may be given again"},
    ElsewhereFlag{"serve dev", "--node-taint", "NAME", "a taint of it; may be given again"},
    ElsewhereFlag{"serve dev", "--task-user", "NAME", "server of root: the account for users who have none here"},
    ElsewhereFlag{"serve dev", "--task-uid-range", "FROM-TO", "server of root: instead, uids of which each gets one"},
    ElsewhereFlag{"serve dev", "--simulate-gpus", "GPUS", "declare GPUs where there are none"},
    ElsewhereFlag{"serve dev", "--unchecked-gpus", nullptr, "start tasks without a look at what is left on their GPUs"},
    ElsewhereFlag{"serve dev", "--checkpoint-every", "N", "events between two checkpoints of the state"},
    ElsewhereFlag{"serve dev", "--ready-file", "FILE", "write the URL here once requests are served"},
    ElsewhereFlag{"dev", "--stop", nullptr, "end all jobs that it left running, and exit"},
    ElsewhereFlag{"serve", "--no-node", nullptr, "control plane only"},
    ElsewhereFlag{"serve", "--backend", "NAME", "where tasks run: local or kubernetes"},
    ElsewhereFlag{"serve", "--kubeconfig", "FILE", "the cluster and who berth is there"},
    ElsewhereFlag{"serve", "--kubernetes-namespace", "NAMESPACE", "where the Lease of the server is"},
    ElsewhereFlag{"serve", "--cell", "NAME", "name of the cluster as a cell"},
    ElsewhereFlag{"serve", "--topology-labels", "KEYS", "labels of nodes that are levels of the topology"},
    ElsewhereFlag{"serve", "--device-resources", "NAMES", "resources of nodes that count as GPUs"},
    ElsewhereFlag{"serve", "--volume-wait", "TIME", "how long a gang keeps its places while volumes are made"},
    ElsewhereFlag{"serve", "--pull-wait", "TIME", "how long a pod keeps its places while its image cannot be pulled"},
    ElsewhereFlag{"serve", "--user-stamps", "FROM=TO", "users of the API server that are users of berth"},
    ElsewhereFlag{"serve", "--job-namespace", "NAMESPACE", "where the pods of submitted jobs are made"},
    ElsewhereFlag{"backup", "--drill", "BACKUP", "restore this backup beside it, prove it, and remove it again"},
    ElsewhereFlag{"restore", "--at", "SEQ|TIME", "the last event to keep, or a time"},
    ElsewhereFlag{"restore", "--beside", "DATA_DIR", "say also what this data directory has and the restored one not"},
    ElsewhereFlag{"restore", "--dry-run", nullptr, "only say what would be restored and forgotten"},
    ElsewhereFlag{"restore", "--yes", nullptr, "forget what is said to be forgotten"},
    ElsewhereFlag{"backup restore", "-o,--output", "FORMAT", "table or json"},
    ElsewhereFlag{"scenario", "--rewrite", nullptr, "put what happens into the files, instead of comparing"},
};

constexpr const char* kElsewhereGroups[] = {"Trying out", "Servers"};

bool is_elsewhere(const CLI::App& command) {
  return std::find(std::begin(kElsewhereGroups), std::end(kElsewhereGroups), command.get_group()) !=
         std::end(kElsewhereGroups);
}

// These are taken by the program's main before it comes here; they are declared so that help and completion have them.
void Declarations::declare_elsewhere() {
  const auto elsewhere = [this](const char* group, const std::string& name, const char* says, const char* example) {
    CLI::App& sub = *app_.add_subcommand(name, says);
    sub.group(group);
    sub.allow_extras();
    sub.footer("Example:\n  " + std::string(example));
    for (const ElsewhereFlag& flag : kElsewhereFlags) {
      const std::string commands = " " + std::string(flag.command) + " ";
      if (commands.find(" " + name + " ") == std::string::npos) continue;
      const std::string flag_says = flag.says;
      if (flag.value_name == nullptr) {
        sub.add_flag(flag.name, flag_says);
      } else {
        sub.add_option(flag.name, flag_says)->type_name(flag.value_name);
      }
    }
  };
  const auto [trying, servers] = kElsewhereGroups;
  elsewhere(trying, "simulate", "Run the scheduler over a trace of jobs and compare policies",
            "berth simulate --jobs jobs.csv.gz --nodes 56x8xV100 --policy fifo --policy berth --report out");
  elsewhere(trying, "scenario", "Run scripts of a cluster's life against the decisions they expect",
            "berth scenario tests/scenarios/nodes/cordon.txt");
  elsewhere(trying, "slurm", "Commands of Slurm: links named sbatch, squeue, ... or `berth slurm squeue`",
            "berth slurm install ~/bin\n  berth slurm squeue --me");
  elsewhere(servers, "dev", "berth on this machine, all in one, no file needed", "berth dev");
  elsewhere(servers, "serve", "The control plane: berth serve --config FILE --data DIR",
            "berth serve --config cluster.yaml --data /var/lib/berth");
  elsewhere(servers, "verify", "Check a whole event log and recompute its state", "berth verify /var/lib/berth");
  elsewhere(servers, "backup", "Copy the log of a data directory, check the copy, and try out restores",
            "berth backup /var/lib/berth /backup/berth-monday");
  elsewhere(servers, "restore", "Make a data directory of a backup, as of its end or an earlier event, with proof",
            "berth restore /backup/berth-monday /var/lib/berth-new --at 2026-11-21T08:15:30Z --dry-run");
  elsewhere(servers, "store", "Copy an event log between a data directory and PostgreSQL, both ways, and compare",
            "berth store copy /var/lib/berth postgresql://berth@db/berth?passfile=/etc/berth/pgpass");
  elsewhere(servers, "supervise", "The supervisor of one task (started by berth itself)",
            "berth supervise /var/lib/berth/run/tasks/17.1.0.0");
}

std::string hint(const std::string& wrong, const std::vector<std::string>& names) {
  const auto near = nearest(wrong, std::vector<std::string_view>(names.begin(), names.end()));
  return near ? "; did you mean " + std::string(*near) + "?" : "";
}

// Of the words that no option or operand takes, the first one that begins with a dash, or else the first.
std::string unexpected(const std::vector<std::string>& extras, const CLI::App& command) {
  const auto dashed =
      std::find_if(extras.begin(), extras.end(), [](const auto& word) { return word.starts_with('-'); });
  const bool runs = takes_command(command.get_name());
  if (dashed == extras.end()) {
    return "'" + extras.front() + "' was not expected" + (runs ? "; the command to run goes after --" : "");
  }
  std::vector<std::string> names{"--server", "--token-file", "--help"};
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return "no option '" + *dashed + "'" + hint(*dashed, names);
}

// What CLI11 found wrong, as one line; a mistyped command or option gets the nearest one as a hint.
Error mistake(const CLI::ParseError& error, const CLI::App& app, const std::vector<std::string>& words) {
  std::string message = error.what();
  message = message.substr(0, message.find('\n'));
  if (app.get_subcommands().empty()) {
    std::vector<std::string> names;
    for (const CLI::App* sub : app.get_subcommands({})) names.push_back(sub->get_name());
    const bool option = words.front().starts_with('-');
    if (option && dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) message = "no command was given";
    if (!option) message = "no command '" + words.front() + "'" + hint(words.front(), names);
    return invalid(message + " (berth --help)");
  }
  const CLI::App& command = *app.get_subcommands().front();
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    const auto extras = app.remaining(true);
    if (!extras.empty()) message = unexpected(extras, command);
  }
  return invalid(message + " (berth " + command.get_name() + " --help)");
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
  auto* exec = std::get_if<ExecOptions>(&command);
  if (!words && exec != nullptr) return invalid("a command goes after --, as in berth exec 17 -it -- bash");
  if (!words) return {};
  JobOptions* job = nullptr;
  if (auto* submit = std::get_if<SubmitOptions>(&command)) job = &submit->job;
  if (auto* run = std::get_if<RunOptions>(&command)) job = &run->job;
  if (job == nullptr && exec == nullptr) return invalid("only submit, run and exec take a command after --");
  if (words->empty()) return invalid("there is no command after --");
  if (exec != nullptr) exec->command = std::move(*words);
  if (exec != nullptr) return {};
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
    return mistake(error, declared.app(), original);
  }
  if (!declared.chosen) return invalid("this command is not in this program");
  CommandLine line{declared.connection, declared.chosen()};
  if (auto given = give_command(std::move(command), line.command); !given) return given.error();
  return Parsed(std::move(line));
}

namespace {

// "gang|service" names its choices.
std::vector<std::string> choices_of(const std::string& type_name) {
  std::vector<std::string> choices;
  if (type_name.find('|') == std::string::npos) return choices;
  for (std::size_t begin = 0; begin <= type_name.size();) {
    const std::size_t end = std::min(type_name.find('|', begin), type_name.size());
    choices.push_back(type_name.substr(begin, end - begin));
    begin = end + 1;
  }
  return choices;
}

}  // namespace

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
      flag.choices = choices_of(option->get_type_name());
      flag.says = option->get_description();
      flags.push_back(std::move(flag));
    }
  };
  for (const CLI::App* sub : declared.app().get_subcommands({})) {
    CommandShape shape{sub->get_name(), sub->get_description(), {}};
    flags_of(*sub, shape.flags);
    if (!is_elsewhere(*sub)) flags_of(declared.app(), shape.flags);
    shapes.push_back(std::move(shape));
  }
  return shapes;
}

}  // namespace berth::cli
