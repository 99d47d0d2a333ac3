#include "daemon/serve.h"

#include <signal.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "api/service.h"
#include "daemon/daemon.h"
#include "daemon/exit_code.h"
#include "daemon/verify.h"
#include "identity/issuer.h"
#include "model/command.h"
#include "model/document/config_document.h"
#include "model/document/quantity.h"

namespace berth::daemon {

namespace {

constexpr int kExitUsage = 2;
constexpr std::size_t kMostConfigBytes = 1 << 20;
constexpr std::int64_t kLongestKeepS = std::int64_t{36'525} * 86'400;
constexpr std::int64_t kShortestBackupS = 60;
constexpr std::int64_t kLongestDeadlineS = 600;
constexpr std::int64_t kLargestKeepMib = std::int64_t{1} << 40U;

struct Flags {
  DaemonOptions daemon;
  std::string config_file;
  std::string keep_finished = "7d";
  std::string keep_finished_size = "unlimited";
  std::string max_downtime = "7d";
  std::string issuers_file;
  std::string rate_limit = "500/2000";
  std::string address_rate_limit = "100/1000";
  std::string day_limit = "4GiB";
  std::string backup_every = "24h";
  std::string store_deadline = "10s";
  std::string ready_file;        // gets the URL once requests are served
  bool insecure_listen = false;  // a word of earlier releases
  bool stop_jobs = false;        // end all jobs, and serve nothing
  std::string how_to_stop = {};  // the command that does so
  std::string backend = "local";
  KubernetesFlags kubernetes;
};

void add_node_flags(CLI::App& app, DaemonOptions& daemon) {
  app.add_option("--node-name", daemon.node_name, "Name of this machine as a node; default: its host name")
      ->type_name("NAME");
  app.add_option("--node-pool", daemon.node_flags.pool, "The pool that it is in; default: the pool default")
      ->type_name("NAME");
  app.add_option("--node-at", daemon.node_flags.at,
                 "Where it stands: a name for each level of the topology, outermost first, e.g. b1/r1")
      ->type_name("PATH");
  const auto each = [&app](const char* name, std::vector<std::string>& words, const char* says) {
    CLI::Option* option = app.add_option(name, words, says);
    // Otherwise a second word would be taken, too.
    return option->expected(1)->allow_extra_args(false)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  };
  each("--node-label", daemon.node_flags.labels, "A label that jobs can select it by; may be given again")
      ->type_name("KEY=VALUE");
  each("--node-taint", daemon.node_flags.taints, "Keeps away jobs that do not tolerate this; may be given again")
      ->type_name("NAME");
  app.add_option("--task-user", daemon.task_users.account,
                 "Server of root: the account that runs the tasks of users who have none of that name here")
      ->type_name("NAME");
  app.add_option("--task-uid-range", daemon.task_users.range,
                 "Server of root: instead, each of them gets a uid of its own here; default: 50000-59999")
      ->type_name("FROM-TO");
  app.add_flag("--unchecked-gpus", daemon.unchecked_gpus,
               "Start tasks without asking the driver what is left on their GPUs, e.g. where it cannot tell");
#ifndef BERTH_NO_PLANTABLE_BUGS
  app.add_option("--gpu-patience-ms", daemon.gpu_patience_ms, "How long a check of GPUs lasts at most, for tests")
      ->type_name("MS")
      ->group("");
#endif
  app.add_option("--simulate-gpus", daemon.simulate_gpus, "Declare GPUs where there are none, e.g. 8xH100-SXM5-80GB")
      ->type_name("GPUS");
}

void add_kubernetes_flags(CLI::App& app, Flags& flags) {
  app.add_option("--backend", flags.backend, "Where tasks run: local (this machine) or kubernetes (pods of a cluster)")
      ->check(CLI::IsMember({"local", "kubernetes"}).description(""))
      ->type_name("NAME")
      ->capture_default_str();
  const auto option = [&app](const char* name, std::string& text, const char* says, const char* type) {
    app.add_option(name, text, says)->type_name(type);
  };
  KubernetesFlags& to = flags.kubernetes;
  option("--kubeconfig", to.kubeconfig, "The cluster and who berth is there; default: the service account of this pod",
         "FILE");
  option("--kubernetes-namespace", to.space,
         "Where the Lease berth is, which keeps a second server away; default: the namespace of the kubeconfig or pod",
         "NAMESPACE");
  option("--cell", to.cell, "Name of the cluster as a cell; default: kubernetes", "NAME");
  option("--topology-labels", to.topology_labels,
         "Labels of nodes that are the levels of the topology, outermost first, as "
         "topology.kubernetes.io/zone,example.com/rack",
         "KEYS");
  option("--device-resources", to.device_resources,
         "Resources of nodes that count as GPUs besides NVIDIA's, as amd.com/gpu,habana.ai/gaudi", "NAMES");
  app.add_option("--volume-wait", to.volume_wait,
                 "How long a gang keeps its places while volumes are made for its claims (WaitForFirstConsumer)")
      ->type_name("TIME")
      ->capture_default_str();
  app.add_option(
         "--pull-wait", to.pull_wait,
         "How long a pod keeps its places while its container does not start, as when its image cannot be pulled")
      ->type_name("TIME")
      ->capture_default_str();
  option(
      "--user-stamps", to.user_stamps,
      "Pods are stamped with their users by the chart's policies: users of the API server that are users of berth, as "
      "oidc:=corp:",
      "FROM=TO");
#ifndef BERTH_NO_PLANTABLE_BUGS
  app.add_option("--shorter-kubernetes-waits", to.shorter_waits, "Divides the waits of kube/waits.h, for tests")
      ->check(CLI::Range(1, 1000).description(""))
      ->type_name("N")
      ->group("");
#endif
  app.add_option("--job-namespace", to.job_namespace,
                 "Where the pods of submitted jobs are made, as berth-jobs,QUEUE=NAMESPACE; none: no pods are made")
      ->type_name("NAMESPACE")
      ->capture_default_str();
}

// The flags of a cluster say nothing without --backend kubernetes.
Result<void> check_backend(const CLI::App& app, Flags& flags) {
  if (flags.backend == "kubernetes") {
    flags.daemon.kubernetes = flags.kubernetes;
    for (const char* flag : {"--simulate-gpus", "--node-name", "--unchecked-gpus"}) {
      if (app.count(flag) != 0)
        return invalid(std::string(flag) + ": with --backend kubernetes this machine is no node");
    }
    return {};
  }
  for (const char* flag : {"--kubeconfig", "--kubernetes-namespace", "--cell", "--topology-labels",
                           "--device-resources", "--volume-wait", "--pull-wait", "--job-namespace", "--user-stamps"}) {
    if (app.count(flag) != 0) return invalid(std::string(flag) + " needs --backend kubernetes");
  }
  return {};
}

void add_common_flags(CLI::App& app, Flags& flags) {
  app.add_option("--data", flags.daemon.data_dir, "Directory of the event log, jobs' output and checkpoints")
      ->type_name("DIR");
  app.add_option(
         "--store", flags.daemon.store,
         "PostgreSQL that keeps the event log instead of the data directory, as postgresql://berth@db/berth; no "
         "password in it, but passfile=FILE (docs/store.md)")
      ->type_name("ADDRESS");
  app.add_option("--store-deadline", flags.store_deadline,
                 "How long PostgreSQL may take for a commit; after that the server ends, and the next start looks")
      ->type_name("TIME")
      ->capture_default_str();
  app.add_option("--config", flags.config_file, "cluster.yaml to have in force from the start")->type_name("FILE");
  app.add_option("--listen", flags.daemon.listen_address, "Address to serve on")
      ->type_name("ADDRESS")
      ->capture_default_str();
  app.add_option(
         "--tls-cert", flags.daemon.tls.certificate,
         "Certificate of the server with those up to its authority, PEM; serves https. Read again when it changes")
      ->type_name("FILE");
  app.add_option("--tls-key", flags.daemon.tls.key, "Its private key, PEM, mode 0600")->type_name("FILE");
  app.add_option("--client-ca", flags.daemon.tls.client_ca,
                 "Authorities whose client certificates are subjects cert:NAME, PEM")
      ->type_name("FILE");
  app.add_option("--socket", flags.daemon.socket,
                 "Unix socket to serve on as well, or none; default: berth.sock in the data directory")
      ->type_name("PATH");
  app.add_flag("--insecure-listen", flags.insecure_listen)->group("");
  app.add_option("--issuers", flags.issuers_file,
                 "Identity providers whose tokens are taken (docs/sign-in.md); read at the start")
      ->type_name("FILE");
  app.add_option("--rate-limit", flags.rate_limit,
                 "Requests that each subject may make, per second and at once, or none; over that: 429")
      ->type_name("N/N")
      ->capture_default_str();
  app.add_option("--rate-limit-unknown", flags.address_rate_limit,
                 "Likewise each address from which requests without a good token come")
      ->type_name("N/N")
      ->capture_default_str();
  app.add_option(
         "--day-limit", flags.day_limit,
         "What the requests of each subject may write into the event log in a day (UTC), or none; over that: 403")
      ->type_name("SIZE")
      ->capture_default_str();
  app.add_option("--keep-finished", flags.keep_finished,
                 "How long the output and checkpoints of a finished job are kept: a time as 12h or 7d, or forever")
      ->type_name("TIME")
      ->capture_default_str();
  app.add_option("--keep-finished-size", flags.keep_finished_size,
                 "How much of it in all, as 500GiB or unlimited; over that, what finished first goes first")
      ->type_name("SIZE")
      ->capture_default_str();
  app.add_option(
         "--backup-to", flags.daemon.backups.to,
         "Directory, on another disk, to which the server makes backups of its log (docs/store.md); default: none")
      ->type_name("DIR");
  app.add_option("--backup-every", flags.backup_every, "How often, as 1h or 7d; at least 1m")
      ->type_name("TIME")
      ->capture_default_str();
  app.add_option("--backup-keep", flags.daemon.backups.keep, "How many are kept; the oldest is removed after a new one")
      ->check(CLI::Range(1, 10'000).description(""))
      ->type_name("N")
      ->capture_default_str();
  app.add_option(
         "--max-downtime", flags.max_downtime,
         "A wall clock that is further ahead of the last event at the start is not believed until it is confirmed")
      ->type_name("TIME")
      ->capture_default_str();
  app.add_option("--url", flags.daemon.url,
                 "This server as others reach it, as https://berth.example.com: jobs name it to services that verify "
                 "their identity (docs/job-identity.md); default: the address that it serves on")
      ->type_name("URL");
  app.add_option("--port", flags.daemon.port, "Port to serve on; 0 takes a free one")
      ->check(CLI::Range(0, 65'535).description(""))
      ->type_name("PORT")
      ->capture_default_str();
  add_node_flags(app, flags.daemon);
  app.add_option("--checkpoint-every", flags.daemon.checkpoint_every, "Events between two checkpoints of the state")
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--ready-file", flags.ready_file, "Write the URL here once requests are served")->type_name("FILE");
  app.add_option("--fsync-delay-ms", flags.daemon.fsync_delay_ms, "Injected delay of each sync, for benchmarks")
      ->group("");
  app.add_option("--sample-gpus-ms", flags.daemon.sample_gpus_ms, "How often the driver is asked, for tests")
      ->check(CLI::Range(1, 600'000).description(""))
      ->group("");
#ifndef BERTH_NO_PLANTABLE_BUGS
  app.add_option("--test-clock", flags.daemon.test_clock, "File of the milliseconds that the clock is ahead, for tests")
      ->type_name("FILE")
      ->group("");
#endif
}

int report(const Error& error) {
  std::fprintf(stderr, "berth: %s\n", error.message.c_str());
  return exit_code_of(error.code);
}

// A damaged or unreadable log ends the server in the same way, at any time.
int report_start(const Error& error) {
  const bool log_failed = error.code == ErrorCode::kCorrupt || error.code == ErrorCode::kIo;
  const int code = report(error);
  return log_failed ? kExitIoError : code;
}

Result<std::string> read_document(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return not_found("cannot read " + path);
  std::string text(kMostConfigBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad())
    return invalid("cannot read " + path + ": " + std::error_code(errno, std::generic_category()).message());
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > kMostConfigBytes) return Error{ErrorCode::kTooLarge, path + " is larger than 1 MiB"};
  return text;
}

Result<void> read_files(Flags& flags) {
  if (!flags.config_file.empty()) {
    const auto text = read_document(flags.config_file);
    if (!text) return text.error();
    auto config = document::read_config(*text, flags.config_file);
    if (!config) return config.error();
    flags.daemon.config = std::move(*config);
  }
  if (!flags.issuers_file.empty()) {
    const auto text = read_document(flags.issuers_file);
    if (!text) return text.error();
    auto issuers = identity::read_issuers(*text, flags.issuers_file);
    if (!issuers) return issuers.error();
    flags.daemon.issuers = std::move(*issuers);
  }
  return {};
}

Result<KeepFinished> read_keeping(const Flags& flags) {
  KeepFinished keep{std::nullopt, std::nullopt};
  if (flags.keep_finished != "forever") {
    const auto seconds = document::parse_duration_s(flags.keep_finished);
    if (!seconds) return invalid("--keep-finished: " + seconds.error().message + ", or forever");
    if (*seconds > kLongestKeepS)
      return invalid("--keep-finished: " + flags.keep_finished + " is over 100 years; say forever");
    keep.seconds = *seconds;
  }
  if (flags.keep_finished_size != "unlimited") {
    const auto mib = document::parse_memory_mib(flags.keep_finished_size);
    if (!mib) return invalid("--keep-finished-size: " + mib.error().message + ", or unlimited");
    if (*mib > kLargestKeepMib) {
      return invalid("--keep-finished-size: " + flags.keep_finished_size + " is over 1 EiB; say unlimited");
    }
    keep.bytes = *mib << 20U;
  }
  return keep;
}

Result<void> read_rate_limits(Flags& flags) {
  const auto subjects = policy::parse_rate_limit(flags.rate_limit);
  if (!subjects) return invalid("--rate-limit: " + subjects.error().message);
  const auto addresses = policy::parse_rate_limit(flags.address_rate_limit);
  if (!addresses) return invalid("--rate-limit-unknown: " + addresses.error().message);
  flags.daemon.rate_limit = *subjects;
  flags.daemon.address_rate_limit = *addresses;
  flags.daemon.day_limit = 0;
  if (flags.day_limit == "none") return {};
  const auto mib = document::parse_memory_mib(flags.day_limit);
  if (!mib) return invalid("--day-limit: " + mib.error().message + ", or none");
  if (*mib == 0 || *mib > kLargestKeepMib) return invalid("--day-limit: give 1MiB to 1EiB, or none");
  flags.daemon.day_limit = static_cast<std::uint64_t>(*mib) << 20U;
  return {};
}

Result<void> read_backups(Flags& flags) {
  const auto every = document::parse_duration_s(flags.backup_every);
  if (!every) return invalid("--backup-every: " + every.error().message);
  if (*every < kShortestBackupS || *every > kLongestKeepS) return invalid("--backup-every: give 1m to 100 years");
  BackupFlags& backups = flags.daemon.backups;
  if (!flags.daemon.store.empty() && !backups.to.empty())
    return invalid(
        "--backup-to copies a log of the data directory. Back up PostgreSQL by its own means (pg_dump, pg_basebackup), "
        "or copy the log by a timer: berth store copy ADDRESS DIR (docs/store.md)");
  backups.every_s = *every;
  std::error_code ignored;
  if (!backups.to.empty()) backups.to = std::filesystem::absolute(backups.to, ignored).string();
  return {};
}

Result<void> read_store(Flags& flags) {
  const auto deadline = document::parse_duration_s(flags.store_deadline);
  if (!deadline) return invalid("--store-deadline: " + deadline.error().message);
  if (*deadline < 1 || *deadline > kLongestDeadlineS) return invalid("--store-deadline: give 1s to 10m");
  flags.daemon.store_deadline_ms = *deadline * 1000;
  return {};
}

// Only this thread takes signals; they are blocked for all others.
sigset_t block_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&set, signal);
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  return set;
}

void announce(const Daemon& daemon, const std::string& ready_file) {
  for (const std::string& note : daemon.notes()) spdlog::warn("{}", note);
  const std::string socket = daemon.socket().empty() ? "" : " and unix:" + daemon.socket();
  spdlog::info("serving on {}{} (token in {})", daemon.url(), socket, daemon.token_file());
  if (ready_file.empty()) return;
  const std::string fresh = ready_file + ".new";
  std::ofstream(fresh) << daemon.url() << "\n";
  std::filesystem::rename(fresh, ready_file);
}

std::string counted_jobs(std::size_t count) { return std::to_string(count) + (count == 1 ? " job" : " jobs"); }

std::size_t running_jobs(Daemon& daemon) {
  std::size_t running = 0;
  daemon.service().read([&](const api::View& view) { running = view.state.running().size(); });
  return running;
}

// What a server that ends leaves behind. `how_to_stop` is the command that ends the jobs, too, or "".
std::string farewell(std::size_t running, const std::string& how_to_stop) {
  if (running == 0) return "stopping; no job runs";
  return "stopping; " + counted_jobs(running) + (running == 1 ? " goes" : " go") +
         " on running; a server on the same directory takes over" +
         (how_to_stop.empty() ? "" : " (to end jobs as well: " + how_to_stop + ")");
}

// Cancels all jobs and waits until none is left. Returns false if a signal came first.
bool end_jobs(Daemon& daemon, const sigset_t& signals) {
  std::set<JobId> cancelled;
  for (std::size_t left = 1; left > 0;) {
    std::vector<JobId> fresh;
    daemon.service().read([&](const api::View& view) {
      left = view.state.jobs().size();
      view.state.jobs().for_each([&](const state::JobState& job) {
        if (!job.parent.valid() && cancelled.insert(job.id).second) fresh.push_back(job.id);
      });
    });
    if (!fresh.empty()) spdlog::info("cancelling {}", counted_jobs(fresh.size()));
    for (const JobId id : fresh)
      daemon.service().submit({}, CancelJob{id, "admin"}, [](const Result<control::Reply>&) {});
    const timespec pause{0, 100'000'000};
    if (left > 0 && ::sigtimedwait(&signals, nullptr, &pause) > 0) return false;
  }
  return true;
}

int run(Flags& flags) {
  const sigset_t signals = block_signals();
  spdlog::set_default_logger(spdlog::stderr_color_mt("berth"));
  spdlog::set_pattern("%Y-%m-%dT%H:%M:%S.%e %^%l%$ %v");
  ::umask(077);  // the data directory keeps secrets of jobs; ranks set their own (executor/rank.cc)
  std::error_code ignored;
  flags.daemon.data_dir = std::filesystem::absolute(flags.daemon.data_dir, ignored).string();
  if (auto files = read_files(flags); !files) return report(files.error());
  if (flags.insecure_listen)
    return report(
        invalid("--insecure-listen is gone: an address beyond this machine is served with --tls-cert FILE and "
                "--tls-key FILE (docs/tls.md)"));
  if (!flags.daemon.socket.empty() && flags.daemon.socket != "none")
    flags.daemon.socket = std::filesystem::absolute(flags.daemon.socket, ignored).string();
  const auto keep = read_keeping(flags);
  if (!keep) return report(keep.error());
  flags.daemon.keep_finished = *keep;
  if (auto limits = read_rate_limits(flags); !limits) return report(limits.error());
  if (auto backups = read_backups(flags); !backups) return report(backups.error());
  if (auto store = read_store(flags); !store) return report(store.error());
  const auto downtime = document::parse_duration_s(flags.max_downtime);
  if (!downtime) return report(invalid("--max-downtime: " + downtime.error().message));
  flags.daemon.max_downtime_s = std::min(*downtime, kLongestKeepS);
  auto daemon = Daemon::start(flags.daemon);
  if (!daemon) return report_start(daemon.error());
  if (flags.stop_jobs) {
    const bool ended = end_jobs(**daemon, signals);
    spdlog::info("{}", ended ? "no job is left" : farewell(running_jobs(**daemon), flags.how_to_stop));
    (*daemon)->stop();
    return ended ? 0 : 1;
  }
  announce(**daemon, flags.ready_file);
  int signal = 0;
  ::sigwait(&signals, &signal);
  spdlog::info("{}", farewell(running_jobs(**daemon), flags.how_to_stop));
  (*daemon)->stop();
  return 0;
}

// Parses the command line and runs the body. CLI11 itself answers --help and wrong words.
template <class Body>
int with_parsed(CLI::App& app, int argc, const char* const* argv, Body&& body) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help
    std::fprintf(stderr, "berth: %s (%s --help)\n", error.what(), app.get_name().c_str());
    return kExitUsage;
  }
  return body();
}

// The home of root is closed to the users that tasks run as.
std::string default_data_dir() {
  const char* state_home = std::getenv("XDG_STATE_HOME");
  if (state_home != nullptr && *state_home == '/') return std::string(state_home) + "/berth";
  if (::geteuid() == 0) return "/var/lib/berth-dev";
  const char* home = std::getenv("HOME");
  return std::string(home == nullptr ? "." : home) + "/.local/state/berth";
}

}  // namespace

int serve_main(int argc, const char* const* argv, const api::Page& page) {
  CLI::App app(
      "Serve: keep the event log, decide, and run tasks on this machine or in a Kubernetes cluster.\n\nExamples:\n"
      "  berth serve --config cluster.yaml --data /var/lib/berth\n"
      "  berth serve --data /var/lib/berth --node-pool big --node-at b1/r1 --node-label disk=nvme --node-taint spot\n"
      "  berth serve --data /var/lib/berth --config cluster.yaml --backend kubernetes --kubeconfig ~/.kube/config\n"
      "  berth serve --data /var/lib/berth --store 'postgresql://berth@db1,db2/berth?passfile=/etc/berth/pgpass'\n",
      "berth serve");
  Flags flags;
  flags.daemon.page = &page;
  add_common_flags(app, flags);
  app.add_flag("--no-node", flags.daemon.no_node, "Control plane only: run no task on this machine");
  add_kubernetes_flags(app, flags);
  app.get_option("--data")->required();
  return with_parsed(app, argc, argv, [&] {
    if (auto ok = check_backend(app, flags); !ok) return report(ok.error());
    return run(flags);
  });
}

int dev_main(int argc, const char* const* argv, const api::Page& page) {
  CLI::App app(
      "Everything in one on this machine, with defaults and no file needed: one queue `default`, the GPUs found "
      "here.\n\n"
      "Examples:\n  berth dev\n  berth dev --simulate-gpus 8xH100-SXM5-80GB --config examples/cluster.yaml\n"
      "  berth dev --simulate-gpus 8xH100-SXM5-80GB --node-label disk=nvme --node-taint spot\n"
      "  berth dev --stop\n",
      "berth dev");
  Flags flags;
  flags.daemon.page = &page;
  flags.daemon.port = 6380;
  add_common_flags(app, flags);
  app.add_flag("--stop", flags.stop_jobs, "End all jobs that berth dev left running, and exit");
  return with_parsed(app, argc, argv, [&] {
    flags.how_to_stop = "berth dev --stop" + (flags.daemon.data_dir.empty() ? "" : " --data " + flags.daemon.data_dir);
    if (flags.daemon.data_dir.empty()) flags.daemon.data_dir = default_data_dir();
    if (flags.stop_jobs) {
      flags.daemon.port = 0;
      if (!std::filesystem::exists(flags.daemon.data_dir + "/token"))
        return report(not_found("there is no berth in " + flags.daemon.data_dir + "; give its directory by --data"));
    }
    if (flags.config_file.empty() && !std::filesystem::exists(flags.daemon.data_dir + "/token")) {
      flags.daemon.config = default_cluster_config();
    }
    return run(flags);
  });
}

int verify_main(int argc, const char* const* argv) {
  CLI::App app(
      "Check every hash of an event log, recompute the state from it, and say so.\n\nExamples:\n  berth verify "
      "/var/lib/berth\n  berth verify postgresql://berth@db/berth?passfile=/etc/berth/pgpass\n",
      "berth verify");
  std::string data_dir;
  app.add_option("DIR|ADDRESS", data_dir,
                 "The data directory of a server, running or not, or the PostgreSQL that has its log")
      ->required();
  return with_parsed(app, argc, argv, [&] {
    auto verified = verify_directory(data_dir);
    if (!verified) return report(verified.error());
    std::printf(
        "events      %llu (%llu to %llu), every hash holds\n", static_cast<unsigned long long>(verified->records),
        static_cast<unsigned long long>(verified->first_seq), static_cast<unsigned long long>(verified->last_seq));
    std::printf("state       recomputed %s: %llu live jobs, digest %016llx\n",
                verified->from_genesis ? "from the first event" : "from the oldest kept checkpoint",
                static_cast<unsigned long long>(verified->jobs),
                static_cast<unsigned long long>(verified->state_digest));
    std::printf("checkpoint  %s\n",
                verified->checkpoint_compared ? "equal to the state that the log folds to" : "none to compare");
    for (const std::string& warning : verified->warnings) std::printf("warning     %s\n", warning.c_str());
    std::printf("history     %llu finished jobs\n", static_cast<unsigned long long>(verified->history_rows));
    return 0;
  });
}

}  // namespace berth::daemon
