#include "daemon/daemon.h"

#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "api/http/authenticator.h"
#include "api/http/listener.h"
#include "api/http/server.h"
#include "api/routes/access.h"
#include "api/routes/routes.h"
#include "backend/local/local_backend.h"
#include "control/node_identity.h"
#include "daemon/audit_desk.h"
#include "daemon/backup.h"
#include "daemon/budget_watch.h"
#include "daemon/exit_code.h"
#include "daemon/gatekeeper.h"
#include "daemon/gpu_look.h"
#include "daemon/gpu_utilization_sampler.h"
#include "daemon/inbox.h"
#include "daemon/issuer_door.h"
#include "daemon/job_identity_desk.h"
#include "daemon/job_news.h"
#include "daemon/kubernetes_flags.h"
#include "daemon/log_check.h"
#include "daemon/loop.h"
#include "daemon/machine.h"
#include "daemon/node_flags.h"
#include "daemon/queue_desk.h"
#include "daemon/reader.h"
#include "daemon/retention.h"
#include "daemon/service.h"
#include "daemon/sign_in_desk.h"
#include "daemon/snapshot.h"
#include "daemon/socket_peer.h"
#include "daemon/tls_watch.h"
#include "daemon/token_uses.h"
#include "daemon/verify.h"
#include "daemon/version.h"
#include "executor/machine_lock.h"
#include "store/durable_log.h"

namespace berth::daemon {

namespace {

constexpr std::chrono::milliseconds kStopGrace{2000};

// Ends the process as soon as damage is found: nothing may be built on a damaged log.
[[noreturn]] void end_for_damage(const std::string& data_dir, const Error& damage) {
  note_damage(data_dir, damage);
  spdlog::critical("the event log is damaged: {}. Restore a backup; jobs go on running. Ending.", damage.message);
  spdlog::shutdown();
  ::_exit(kExitIoError);
}

// Returns the nodes of the cell of `node` that are recorded, but are not this machine. The local backend has one node,
// so the others are gone: this data directory was on another machine, or an earlier release recorded two names of one
// machine as two nodes.
std::vector<backend::FormerNode> former_nodes(const state::State& state, const NodeSpec& node) {
  std::vector<backend::FormerNode> former;
  const state::NodeState* known = control::same_machine(state, node);
  for (const state::NodeState& other : state.nodes()) {
    const bool is_this = &other == known && (other.spec.machine.empty() || other.spec.machine == node.machine);
    if (is_this || other.status == NodeStatus::kLost || other.spec.cell != node.cell) continue;
    backend::FormerNode& gone = former.emplace_back();
    gone.name = other.spec.name;
    for (const auto& [job, task] : other.tasks) {
      const state::AttemptState& attempt = *state.job(job)->attempt;
      gone.tasks.push_back({job, attempt.number, task, attempt.tasks[task].incarnation});
    }
  }
  return former;
}

// Another server schedules the cluster: nothing more may be written there, and nothing be decided about it.
[[noreturn]] void end_for_lost_lease(const Error& lost) {
  spdlog::critical("{} Nothing acknowledged is lost; pods go on running.", lost.message);
  spdlog::shutdown();
  ::_exit(exit_code_of(lost.code));
}

// The backend of a control plane without a node of its own.
class NoBackend final : public backend::Backend {
 public:
  NoBackend(std::string data_dir, std::string output_kept)
      : data_dir_(std::move(data_dir)), output_kept_(std::move(output_kept)) {}
  Result<void> start(backend::ReportSink) override { return {}; }
  void perform(std::span<const Effect>) override {}
  void read_log(const backend::LogQuery& query, backend::LogAnswer answer) override {
    answer(backend::read_local_log(data_dir_, output_kept_, query));  // of tasks that ran here once
  }
  void stop() override {}
  std::vector<std::string> warnings() const override { return {}; }

 private:
  std::string data_dir_;
  std::string output_kept_;
};

struct Recovered {
  state::State state;              // the working state, for the loop
  std::unique_ptr<Reader> reader;  // folds the same events on its own thread
};

// Folds the newest checkpoint and the records after it twice: once here for the loop, once in the reader.
Result<Recovered> recover(store::Log& log, std::uint64_t checkpoint_every) {
  auto checkpoint = log.load_checkpoint();
  if (!checkpoint) return checkpoint.error();
  Recovered recovered;
  Seq from = log.first_seq();
  if (*checkpoint) {
    for (const std::string& damaged : (*checkpoint)->passed_over) spdlog::warn("{}", damaged);
    std::optional<Result<Snapshot>> second;
    std::thread other([&] { second.emplace(load_snapshot((*checkpoint)->bytes)); });
    auto first = load_snapshot((*checkpoint)->bytes);
    other.join();
    if (!first) return first.error();
    if (!*second) return second->error();
    from = (*checkpoint)->seq + 1;
    recovered.state = std::move(first->state);
    recovered.reader =
        std::make_unique<Reader>(std::move((**second).state), std::move((**second).meter), log, checkpoint_every);
  } else if (from != 1 && log.last().seq != 0) {
    return Error{ErrorCode::kCorrupt, "the log begins at event " + std::to_string(from) +
                                          " and there is no checkpoint to begin from; restore the checkpoint files"};
  } else {
    recovered.reader = std::make_unique<Reader>(state::State(), billing::Meter(), log, checkpoint_every);
  }
  auto replayed = replay(log, from, [&](std::vector<EventRecord> events) {
    for (const EventRecord& event : events) recovered.state.apply(event);
    recovered.reader->push({.records = std::move(events), .answers = {}});
  });
  if (!replayed) return replayed.error();
  recovered.reader->drain();  // the first read sees everything that was acknowledged before the restart
  recovered.reader->begin_metrics();
  return recovered;
}

}  // namespace

class Daemon::Impl {
 public:
  explicit Impl(DaemonOptions options)
      : options_(std::move(options)),
        log_check_(options_.log_place(), [this](const Error& damage) { end_for_damage(options_.data_dir, damage); }) {}
  ~Impl() { stop(); }

  Result<void> start() {
    if (auto ok = check_address(); !ok) return ok;
    // Wrong options are found before a log is created.
    if (auto ok = describe_node(); !ok) return ok;
    auto opened =
        store::open_log({options_.data_dir, options_.store, options_.fsync_delay_ms, options_.store_deadline_ms});
    if (!opened) return error_of_log(opened.error());
    log_ = std::move(*opened);
    if (auto sound = check_noted_damage(options_.data_dir, options_.log_place()); !sound)
      return error_of_log(sound.error());
    auto epoch = log_->take_epoch();
    if (!epoch) return error_of_log(epoch.error());
    auto recovered = recover(*log_, options_.checkpoint_every);
    if (!recovered) return error_of_log(recovered.error());
    reader_ = std::move(recovered->reader);
    clock_.begin(options_.data_dir, recovered->state.now(), options_.max_downtime_s * 1000);
    auto identities = JobIdentityDesk::open(options_.data_dir, options_.url, *reader_, clock_);
    if (!identities) return identities.error();
    identities_ = std::move(*identities);
    if (auto ok = make_backend(recovered->state); !ok) return ok;
    if (options_.kubernetes) news_ = std::make_unique<JobNewsDesk>(*reader_, *log_, *backend_, clock_);
    loop_ = std::make_unique<Loop>(std::move(recovered->state), *epoch, *log_, inbox_, *reader_, *backend_, clock_);
    if (std::filesystem::exists(options_.data_dir + "/" + kRestoredFile)) note_restore();
    // Before all that a backend submits, which may name queues of this configuration.
    if (options_.config) put_config(*options_.config);
    if (auto started = backend_->start([this](Command report) { take_report(std::move(report)); }); !started)
      return started;
    for (const std::string& warning : log_->warnings()) notes_.push_back(warning);
    // Those of a cluster pass, and are in the log already.
    if (!options_.kubernetes) {
      for (const std::string& warning : backend_->warnings()) notes_.push_back(warning);
    }
    loop_->start();
    if (options_.config) {
      if (auto applied = config_applied_.get(); !applied) return applied;
    }
    measure();
    token_uses_ = std::make_unique<TokenUses>(options_.data_dir, reader_->access());
    if (auto served = serve(); !served) return served;
    for (std::string& warning : service_->warn_of_config()) notes_.push_back(std::move(warning));
    if (options_.kubernetes) queue_desk_ = std::make_unique<QueueDesk>(*reader_, *backend_, clock_);
    log_check_.start();
    budgets_ = std::make_unique<BudgetWatch>(*reader_, service_->billing_desk(), inbox_, clock_);
    retention_ = std::make_unique<Retention>(options_.data_dir, *log_, options_.keep_finished, clock_);
    if (backups_) backups_->start();
    return {};
  }

  void stop() {
    if (backups_) backups_->stop();
    retention_.reset();
    budgets_.reset();
    tls_watch_.reset();
    if (identities_) identities_->serve_at("");  // a backend may wait for it
    if (server_) server_->stop(kStopGrace);
    if (audit_desk_) audit_desk_->stop();
    if (loop_) loop_->stop();
    if (backend_) backend_->stop();
    if (reader_) reader_->stop();
    queue_desk_.reset();
    news_.reset();
    server_.reset();
    token_uses_.reset();
  }

  const std::string& url() const { return url_; }
  const std::string& token_file() const { return token_file_; }
  const std::string& socket() const { return socket_; }
  const std::vector<std::string>& notes() const { return notes_; }
  api::Service& service() { return *service_; }

 private:
  // The token is sent with every request, so without TLS it could be read on the network.
  Result<void> check_address() {
    if (auto ok = JobIdentityDesk::check_url(options_.url); !ok) return ok;
    const auto stays_here = http::is_loopback(options_.listen_address);
    if (!stays_here) return stays_here.error();
    const http::TlsFiles& tls = options_.tls;
    if (tls.certificate.empty() != tls.key.empty())
      return invalid("--tls-cert and --tls-key go together: the certificate and its key, both in PEM");
    if (tls.certificate.empty() && !tls.client_ca.empty())
      return invalid("--client-ca is for client certificates, so it needs --tls-cert and --tls-key as well");
    if (tls.certificate.empty() && !*stays_here)
      return invalid("--listen " + options_.listen_address +
                     " is not an address of this machine alone: tokens and everything else would cross the network "
                     "unencrypted. Give --tls-cert FILE and --tls-key FILE (docs/tls.md), or listen on 127.0.0.1 and "
                     "put TLS in front (a reverse proxy, `ssh -L`)");
    if (tls.certificate.empty()) return {};
    auto loaded = http::TlsCredentials::load(tls);
    if (!loaded) return invalid(loaded.error().message);  // the flag names it: starting again does not help
    tls_ = std::move(*loaded);
    return {};
  }

  Result<void> describe_node() {
    if (options_.kubernetes) {
      auto credentials = read_credentials(*options_.kubernetes);
      if (!credentials) return credentials.error();
      credentials_ = std::move(*credentials);
      options_.no_node = true;
    }
    if (options_.no_node) {
      if (!options_.task_users.account.empty() || !options_.task_users.range.empty())
        return invalid("--no-node: then no task runs here, for --task-user and --task-uid-range");
      if (options_.unchecked_gpus) return invalid("--no-node: then no task runs here, for --unchecked-gpus");
      if (!options_.node_flags.any()) return {};
      const std::string flag = options_.kubernetes ? "--backend kubernetes" : "--no-node";
      return invalid(flag + ": then there is no node for --node-pool, --node-at, --node-label and --node-taint");
    }
    auto machine = describe_machine(options_.node_name, options_.simulate_gpus);
    if (!machine) return machine.error();
    machine_ = std::move(*machine);
    if (auto ok = put_node_flags(options_.node_flags, machine_.node); !ok) return ok;
    auto users = backend::TaskUsers::open(options_.task_users, options_.data_dir);
    if (!users) return users.error();
    users_ = std::move(*users);
    return options_.config ? check_place(machine_.node, *options_.config) : Result<void>();
  }

  Result<void> make_backend(const state::State& state) {
    if (options_.kubernetes) {
      auto made = make_kubernetes_backend(
          *options_.kubernetes, (options_.config ? *options_.config : state.config()).topology_levels,
          std::move(credentials_), options_.data_dir, state,
          {options_.url, [this](const TaskKey& key) { return identities_->save_token_of(key); }},
          [this] { return clock_.now(); }, end_for_lost_lease);
      if (!made) return made.error();
      backend_ = std::move(*made);
      return {};
    }
    if (options_.no_node) {
      backend_ = std::make_unique<NoBackend>(options_.data_dir, words_of(options_.keep_finished));
      return {};
    }
    if (auto ok = identify(machine_, options_.data_dir); !ok) return ok;
    if (auto ok = hold_directory(); !ok) return ok;
    if (const auto* known = control::same_machine(state, machine_.node)) keep_simulated_uuids(machine_, known->spec);
    const ClusterConfig& config = options_.config ? *options_.config : state.config();
    notes_.insert(notes_.end(), machine_.notes.begin(), machine_.notes.end());
    for (std::string& note : unknown_to(config, machine_.node)) notes_.push_back(std::move(note));
    backend::LocalOptions local;
    local.node = machine_.node;
    local.former = former_nodes(state, machine_.node);
    local.data_dir = options_.data_dir;
    const auto log = id_of_directory(options_.data_dir);
    if (!log) return log.error();
    local.log = *log;
    if (directory_lock_) local.server = machine_.node.machine;
    local.supervisor = options_.supervisor;
    if (auto ok = open_to_tasks(config); !ok) return ok;
    if (std::string note = users_.note(); !note.empty()) notes_.push_back(std::move(note));
    local.users = std::move(users_);
    local.job_variables = [this](const TaskKey& key) { return identities_->variables_of(key); };
    if (!options_.unchecked_gpus && !machine_.simulated_gpus && !machine_.node.gpus.empty())
      local.look_at_gpu = gpu_look();
    checks_gpus_ = local.look_at_gpu != nullptr;
    local.gpu_patience_ms = options_.gpu_patience_ms;
    local.output_kept = words_of(options_.keep_finished);
    backend_ = backend::make_local_backend(std::move(local));
    return {};
  }

  // Two copies of one data directory would each take the tasks and GPUs of this machine for their own.
  Result<void> hold_directory() {
    auto lock = executor::MachineLock::open();
    if (!lock && ::geteuid() == 0) return lock.error();
    if (!lock) {  // another user can keep a server that is not root from the directory of its locks
      notes_.push_back("a copy of this data directory that is served here would not be noticed: " +
                       lock.error().message);
      return {};
    }
    if (!lock->take(executor::lock_of_directory(machine_.node.machine), executor::kMachineLockPatienceMs))
      return conflict("the data directory " + options_.data_dir +
                      " is a copy of one that another server of this machine serves; each would end and double the "
                      "other's tasks. Stop that server first, or serve the copy on another machine");
    directory_lock_ = std::move(*lock);
    return {};
  }

  void warn_of_trust_domains(const ClusterConfig& config) {
    std::set<std::string> domains;
    for (const QueueConfig& queue : config.queues) domains.insert(queue.trust_domain);
    domains.erase("");
    const bool isolates = std::any_of(config.pools.begin(), config.pools.end(), [&](const PoolConfig& pool) {
      return pool.name == machine_.node.pool && !pool.trust_domain_isolation.empty();
    });
    if (domains.size() < 2 || isolates) return;
    notes_.push_back("the queues are of " + std::to_string(domains.size()) +
                     " trust domains, and their tasks are not kept apart here: run the server as root, or give pool " +
                     machine_.node.pool + " trust_domain_isolation: node, so that one waits for the other");
  }

  // Lets the users of tasks pass through the data directory to what is theirs in it. Its own files have mode 0600.
  Result<void> open_to_tasks(const ClusterConfig& config) {
    spdlog::info("{}", users_.describe());
    tasks_kept_apart_ = users_.is_on();
    if (!users_.is_on()) {
      warn_of_trust_domains(config);
      return {};
    }
    if (::chmod(options_.data_dir.c_str(), 0711) != 0)
      return Error{ErrorCode::kDenied, "cannot chmod 0711 the data directory " + options_.data_dir};
    if (const std::string closed = backend::closed_to_others(options_.data_dir); !closed.empty()) {
      notes_.push_back("the users that tasks run as may not enter " + closed + ", in which the data directory " +
                       options_.data_dir +
                       " is: no task with checkpoints can start. chmod o+x it, or move the data "
                       "directory, to /var/lib/berth for example");
    }
    return {};
  }

  void take_report(Command report) {
    Answer answer;
    if (const auto* node = std::get_if<RegisterNode>(&report)) {
      answer = [this, name = node->spec.name](const Result<control::Reply>& reply) {
        if (reply) return;
        const std::string what = options_.kubernetes ? "node " + name : "this machine";
        spdlog::error("{} cannot be a node, so nothing runs there: {}", what, reply.error().message);
      };
    } else if (const auto* job = std::get_if<SubmitJob>(&report)) {
      answer = news_->answer_for(job->key);
    }
    inbox_.put({std::move(report), std::move(answer), true});
  }

  std::optional<Timestamp> log_begin() const {
    std::optional<Timestamp> first;
    const auto read = log_->read(log_->first_seq(), [&](const store::Record& record) -> Result<bool> {
      first = record.time;
      return false;
    });
    return read ? first : std::nullopt;
  }

  // The mark goes once this is in the log. A server that ends in between says it once more, which leaves out more
  // numbers.
  // Numbers go on at a hundred for each second since 2026 began, so that two restores of one backup do not give the
  // same ones unless more were given in between.
  void note_restore() {
    constexpr std::int64_t kBeginOf2026S = 1'767'225'600;
    const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
    const std::int64_t now_s = std::chrono::duration_cast<std::chrono::seconds>(since_1970).count();
    const auto least = static_cast<std::uint64_t>(100 * std::max<std::int64_t>(0, now_s - kBeginOf2026S));
    inbox_.put({NoteRestore{least}, [mark = options_.data_dir + "/" + kRestoredFile](const Result<control::Reply>&) {
                  std::error_code failure;
                  if (!std::filesystem::remove(mark, failure))
                    spdlog::error("{} cannot be removed, so the next start leaves out numbers of jobs again: {}", mark,
                                  failure.message());
                }});
  }

  void put_config(const ClusterConfig& config) {
    const auto applied = std::make_shared<std::promise<Result<void>>>();
    config_applied_ = applied->get_future();
    inbox_.put({ApplyConfig{config, "berth serve", {}, log_begin()}, [applied](const Result<control::Reply>& reply) {
                  applied->set_value(reply ? Result<void>() : Result<void>(reply.error()));
                }});
  }

  // Starts the sampling of GPUs. Simulated GPUs have no utilization.
  void measure() {
    if (options_.no_node || machine_.simulated_gpus || machine_.node.gpus.empty()) return;
    auto nvml = telemetry::Nvml::load();
    if (!nvml) {
      spdlog::warn("what is done with the GPUs is not measured: {}", nvml.error().message);
      return;
    }
    sampler_ = std::make_unique<GpuUtilizationSampler>(std::move(*nvml), machine_.node.name, *reader_, clock_,
                                                       std::chrono::milliseconds(options_.sample_gpus_ms));
  }

  Result<void> serve() {
    token_file_ = options_.data_dir + "/token";
    auto token = http::load_or_create_token(token_file_);
    if (!token) return token.error();
    http::Authenticator authenticator;
    if (auto added = authenticator.add(*token, api::admin_subject()); !added) return added;
    authenticator.look_up_by([this](const http::TokenDigest& digest) {
      return reader_->access().find(http::text_of(digest), clock_.now());
    });
    authenticator.look_up_jobs_by([this](std::string_view job_token) { return identities_->find(job_token); });
    if (!options_.issuers.empty()) {
      issuers_ = std::make_unique<IssuerDoor>(options_.issuers, reader_->access(), clock_);
      authenticator.verify_signed_by([this](std::string_view signed_token, const http::TokenDigest& digest) {
        return issuers_->identify(signed_token, digest);
      });
    }
    sign_in_ = std::make_unique<SignInDesk>(options_.issuers, tls_ != nullptr,
                                            issuers_ ? issuers_->verifier() : nullptr, reader_->access(), clock_);
    authenticator.look_up_sessions_by([this](std::string_view cookies) { return sign_in_->identify(cookies); });
    authenticator.look_up_peers_by([this](const http::Peer& peer) { return subject_of(peer); });
    const std::string socket_path = find_socket();
    api::ServerFacts facts;
    facts.version = kVersionText;
    facts.data_dir = options_.data_dir;
    facts.simulated_gpus = machine_.simulated_gpus;
    facts.tasks_kept_apart = tasks_kept_apart_;
    facts.warnings = notes_;
    facts.log_end_known = log_->warnings().empty();
    const auto stays_here = http::is_loopback(options_.listen_address);
    facts.on_network = stays_here && !*stays_here;
    facts.has_tls = tls_ != nullptr;
    facts.runs_tasks = !options_.no_node;
    facts.kubernetes = options_.kubernetes.has_value();
    facts.gpus_checked = checks_gpus_;
    facts.backups_to = options_.backups.to;
    facts.backups_every_s = options_.backups.every_s;
    audit_desk_ = std::make_unique<AuditDesk>(inbox_, clock_);
    if (!options_.backups.to.empty())
      backups_ = std::make_unique<BackupSchedule>(options_.data_dir, options_.backups, clock_);
    service_ = std::make_unique<DaemonService>(inbox_, *reader_, *log_, *backend_, log_check_, clock_, *audit_desk_,
                                               sampler_.get(), *identities_, std::move(facts), options_.day_limit,
                                               backups_.get());
    gatekeeper_ = std::make_unique<Gatekeeper>(options_.rate_limit, options_.address_rate_limit, clock_);
    http::ServerOptions server_options;
    server_options.address = options_.listen_address;
    server_options.port = options_.port;
    server_options.tls = tls_;
    server_options.socket_path = socket_path;
    server_options.socket_for_all = !options_.socket.empty();
    server_options.peer_of_socket = &peer_of_socket;
    server_options.gate = gatekeeper_->gate();
    server_options.gate.signed_in = [this](const policy::Subject& subject, const std::string& session,
                                           const std::string& address) {
      audit_desk_->signed_in({subject.name, std::string(subject.proof), address}, session);
    };
    server_options.gate.unauthenticated = [this](const std::string& address) { audit_desk_->unauthenticated(address); };
    http::Router router = api::make_router(*service_);
    if (options_.page != nullptr) api::add_page_routes(router, *options_.page);
    if (options_.page != nullptr) api::add_sign_in_routes(router, *sign_in_);
    auto server = http::Server::start(server_options, std::move(router), std::move(authenticator));
    if (!server) return server.error();
    server_ = std::move(*server);
    url_ = server_->url();
    sign_in_->serve_at(url_);
    identities_->serve_at(url_);
    socket_ = socket_path;
    if (tls_ != nullptr) tls_watch_ = std::make_unique<TlsWatch>(*tls_);
    return {};
  }

  // Nothing if its certificate has ended.
  std::optional<policy::Subject> subject_of(const http::Peer& peer) {
    if (peer.ends <= clock_.now()) return std::nullopt;
    if (!peer.is_admin && reader_->access().is_blocked(peer.subject)) return std::nullopt;
    policy::Subject subject{.name = peer.subject, .user = peer.user, .proof = peer.proof};
    subject.roles = reader_->access().roles_of(subject.name);
    if (peer.is_admin) subject.roles.push_back({subject.name, Role::kAdmin, ""});
    return subject;
  }

  std::string find_socket() {
    if (options_.socket == "none") return {};
    if (!options_.socket.empty()) return options_.socket;
    const std::string path = options_.data_dir + "/berth.sock";
    if (http::fits_socket_path(path)) return path;
    notes_.push_back("no Unix socket: " + path +
                     " is longer than the 107 bytes that the kernel takes; give --socket PATH");
    return {};
  }

  DaemonOptions options_;
  std::vector<std::string> notes_;
  Machine machine_;
  backend::TaskUsers users_;  // until the backend has it
  std::optional<executor::MachineLock> directory_lock_;
  bool tasks_kept_apart_ = true;
  bool checks_gpus_ = false;
  std::string url_;
  std::string token_file_;
  std::string socket_;
  std::shared_ptr<http::TlsCredentials> tls_;  // null: plain HTTP
  std::future<Result<void>> config_applied_;
  Inbox inbox_;
  ServerClock clock_{options_.test_clock};
  std::unique_ptr<store::DurableLog> log_;
  std::unique_ptr<Reader> reader_;
  std::unique_ptr<TokenUses> token_uses_;
  std::unique_ptr<JobIdentityDesk> identities_;
  backend::Credentials credentials_;  // with --backend kubernetes, until the backend has them
  std::unique_ptr<backend::Backend> backend_;
  std::unique_ptr<JobNewsDesk> news_;
  std::unique_ptr<QueueDesk> queue_desk_;
  std::unique_ptr<Loop> loop_;
  LogCheck log_check_;
  std::unique_ptr<Retention> retention_;
  std::unique_ptr<GpuUtilizationSampler> sampler_;
  std::unique_ptr<Gatekeeper> gatekeeper_;
  std::unique_ptr<AuditDesk> audit_desk_;
  std::unique_ptr<BackupSchedule> backups_;  // null: the server makes none
  std::unique_ptr<DaemonService> service_;
  std::unique_ptr<BudgetWatch> budgets_;
  std::unique_ptr<IssuerDoor> issuers_;  // null: no issuer is configured
  std::unique_ptr<SignInDesk> sign_in_;
  std::unique_ptr<http::Server> server_;
  std::unique_ptr<TlsWatch> tls_watch_;
};

Daemon::Daemon(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Daemon::~Daemon() = default;

Result<std::unique_ptr<Daemon>> Daemon::start(DaemonOptions options) {
  auto impl = std::make_unique<Impl>(std::move(options));
  if (auto started = impl->start(); !started) return started.error();
  return std::unique_ptr<Daemon>(new Daemon(std::move(impl)));
}

const std::string& Daemon::url() const { return impl_->url(); }
const std::string& Daemon::token_file() const { return impl_->token_file(); }
const std::string& Daemon::socket() const { return impl_->socket(); }
const std::vector<std::string>& Daemon::notes() const { return impl_->notes(); }
api::Service& Daemon::service() { return impl_->service(); }
void Daemon::stop() { impl_->stop(); }

}  // namespace berth::daemon
