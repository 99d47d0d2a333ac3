#include "backend/kubernetes/kubernetes_backend.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <variant>

#include "backend/kubernetes/call_queue.h"
#include "backend/kubernetes/http.h"
#include "backend/kubernetes/lease.h"
#include "backend/kubernetes/pod_logs.h"
#include "backend/kubernetes/pod_shells.h"
#include "backend/kubernetes/rights.h"
#include "backend/kubernetes/stamp_check.h"
#include "kube/queue_objects.h"
#include "kube/shared_volumes.h"

namespace berth::backend {
namespace {

constexpr std::chrono::seconds kTick{1};
constexpr std::chrono::milliseconds kCallTimeout{4000};
constexpr std::chrono::milliseconds kGoodbye{1000};
constexpr std::size_t kMostPassedOver = 50;

std::string_view method_name(kube::Method method) {
  switch (method) {
    case kube::Method::kGet:
      return "GET";
    case kube::Method::kPost:
      return "POST";
    case kube::Method::kPatch:
      return "PATCH";
    case kube::Method::kDelete:
      return "DELETE";
  }
  return "GET";
}

// Returns the error for the start if waiting does not help.
std::optional<Error> hopeless(const std::string& server, const HttpAnswer& answer) {
  if (answer.status == 403) {
    return Error{ErrorCode::kDenied,
                 "the API server refuses: " + message_of(answer) + ". Grant it (docs/kubernetes.md)"};
  }
  if (answer.status == 401) {
    return Error{ErrorCode::kDenied, "the API server at " + server +
                                         " does not know this client (401): the certificate or token is wrong or has "
                                         "expired"};
  }
  if (answer.status == 0 && answer.refused) {
    return Error{ErrorCode::kInvalid, "no connection to the API server at " + server + ": " + answer.failure};
  }
  return std::nullopt;
}

class KubernetesBackend final : public Backend, public WatchReceiver {
 public:
  explicit KubernetesBackend(KubernetesOptions options)
      : options_(std::move(options)),
        server_(options_.credentials.server),
        cluster_(options_.cluster),
        http_(options_.credentials),
        queue_(Clock::now()),
        lease_(options_.space, "berth", options_.identity),
        rights_(needed_rights(kube::watched(), options_.space, kube::spaces_of(options_.cluster.own),
                              !options_.cluster.own.saves.server.empty())),
        useful_(useful_rights(kube::watched())),
        show_queues_(queue_object_rights()) {
    std::uint64_t seed = options_.seed;
    for (const kube::Resource& resource : kube::watched())
      watchers_.push_back(std::make_unique<Watcher>(resource, options_.watch, http_, *this, ++seed));
  }
  ~KubernetesBackend() override { stop(); }

  Result<void> start(ReportSink sink) override {
    sink_ = std::move(sink);
    heard_at_ = Clock::now();
    thread_ = std::thread([this] { run(); });
    std::unique_lock lock(mutex_);
    started_.wait(lock, [this] { return ready_ || start_error_.has_value(); });
    if (!start_error_) return {};
    const Error error = *start_error_;
    lock.unlock();
    stop();
    return error;
  }

  void perform(std::span<const Effect> effects) override {
    if (effects.empty()) return;
    {
      const std::lock_guard lock(mutex_);
      for (const Effect& effect : effects) incoming_.emplace_back(effect);
    }
    http_.wake();
  }

  void learn(JobNews news) override {
    {
      const std::lock_guard lock(mutex_);
      incoming_.emplace_back(std::move(news));
    }
    http_.wake();
  }

  void read_log(const LogQuery& query, LogAnswer answer) override {
    {
      const std::lock_guard lock(mutex_);
      if (!stopping_) {
        incoming_.emplace_back(LogAsk{query, std::move(answer)});
        answer = nullptr;
      }
    }
    if (answer) return answer(Error{ErrorCode::kUnavailable, "the server is stopping"});
    http_.wake();
  }

  Result<void> check(const JobSpec& job) const override {
    if (job.kind == JobKind::kInteractive)
      return Error{
          ErrorCode::kUnsupported,
          "interactive jobs need tasks on a machine of the server; on Kubernetes, submit a gang, such as one of sleep, "
          "and open a shell in its pod with berth exec -it"};
    return kube::check_own_job(job, options_.cluster.own);
  }

  void open_shell(const ShellQuery& query, ShellAnswer answer) override {
    if (query.begin.attach)
      return answer(
          Error{ErrorCode::kUnsupported, "a pod has no terminal to attach; berth exec -it opens a shell in it"});
    {
      const std::lock_guard lock(mutex_);
      if (!stopping_) {
        incoming_.emplace_back(ShellAsk{query, std::move(answer)});
        answer = nullptr;
      }
    }
    if (answer) return answer(Error{ErrorCode::kUnavailable, "the server is stopping"});
    http_.wake();
  }

  void show_queues(std::vector<QueueSummary> queues) override {
    {
      const std::lock_guard lock(mutex_);
      incoming_.emplace_back(std::move(queues));
    }
    http_.wake();
  }

  void stop() override {
    if (!thread_.joinable()) return;
    stopping_ = true;
    http_.wake();
    thread_.join();
    shells_.stop();
  }

  std::vector<std::string> warnings_of(const ClusterConfig& config) const override {
    return kube::warnings_of_shared_volumes(config, options_.cluster.own);
  }

  std::vector<std::string> warnings() const override {
    const std::lock_guard lock(mutex_);
    return warnings_;
  }

 private:
  struct LogAsk {
    LogQuery query;
    LogAnswer answer;
  };
  struct ShellAsk {
    ShellQuery query;
    ShellAnswer answer;
  };
  using Incoming = std::variant<Effect, JobNews, LogAsk, ShellAsk, std::vector<QueueSummary>>;

  void run() {
    while (!stopping_) {
      take_incoming();
      const Clock::time_point now = Clock::now();
      ask_rights(now);
      ask_stamps(now);
      for (const auto& watcher : watchers_) watcher->tick(now);
      renew_lease(now);
      if (now >= tick_at_) tick(now);
      pass_on();
      send_calls(now);
      check_start(now);
      http_.run(wake_at());
    }
    take_incoming();
    logs_.give_up();
    give_back_lease();
  }

  void give_back_lease() {
    auto call = lease_.give_back(options_.now());
    if (!call) return;
    bool answered = false;
    call->done = [&answered](const HttpAnswer&) { answered = true; };
    const std::uint64_t id = http_.send(std::move(*call));
    const Clock::time_point end = Clock::now() + kGoodbye;
    while (!answered && Clock::now() < end) http_.run(end);
    http_.cancel(id);
  }

  void take_incoming() {
    std::deque<Incoming> taken;
    {
      const std::lock_guard lock(mutex_);
      taken.swap(incoming_);
    }
    for (Incoming& one : taken) {
      if (auto* log = std::get_if<LogAsk>(&one)) {
        read(log->query, std::move(log->answer));
      } else if (auto* shell = std::get_if<ShellAsk>(&one)) {
        open(shell->query, std::move(shell->answer));
      } else if (const auto* effect = std::get_if<Effect>(&one)) {
        cluster_.perform(*effect, options_.now());
      } else if (const auto* queues = std::get_if<std::vector<QueueSummary>>(&one)) {
        queue_objects_.show(*queues, options_.now());
      } else {
        std::visit([this](const auto& news) { on(news); }, std::get<JobNews>(one));
      }
    }
  }
  void read(const LogQuery& query, LogAnswer answer) {
    if (query.error_stream) return answer(LogPart{});  // it is in one stream with standard output
    const auto pod = cluster_.place_of(query.job, query.attempt, query.task);
    if (pod) return logs_.read(*pod, query, std::move(answer));
    const std::string task = "task " + std::to_string(query.task) + " of job " + std::to_string(query.job.value());
    answer(
        not_found(query.is_live ? task + " has no pod now" : "the pod of " + task + " is gone, and its log with it"));
  }
  void open(const ShellQuery& query, ShellAnswer answer) {
    const auto pod = cluster_.place_of(query.task.job, query.task.attempt, query.task.task);
    if (!pod)
      return answer(conflict("task " + std::to_string(query.task.task) + " of job " +
                             std::to_string(query.task.job.value()) + " has no pod now"));
    shells_.open(*pod, query.begin, std::move(answer));
  }
  void on(const JobAccepted& news) { cluster_.submitted(news.key, news.job, options_.now()); }
  void on(const JobRefused& news) { cluster_.refused(news.key, news.why, options_.now()); }
  void on(const JobOver& news) { cluster_.finished(news.job, news.cancelled, options_.now()); }
  void on(const JobWaits& news) { cluster_.waits(news.job, news.why, options_.now()); }

  void tick(Clock::time_point now) {
    tick_at_ = now + kTick;
    cluster_.tick(options_.now());
    std::vector<std::string> all = cluster_.warnings();
    for (const std::string& warning : all) {
      if (std::find(logged_.begin(), logged_.end(), warning) == logged_.end()) options_.warn(warning);
    }
    logged_ = all;
    for (const auto& [path, failure] : failing_) all.push_back(path + ": " + failure);
    if (ready_ && !lease_.may_write(now)) {
      all.push_back("the Lease " + options_.space +
                    "/berth could not be renewed, so nothing is written to the cluster: " +
                    (lease_.failure().empty() ? "no answer yet" : lease_.failure()));
    }
    if (!stamp_failure_.empty()) all.push_back(stamp_failure_);
    all.insert(all.end(), passed_over_.begin(), passed_over_.end());
    const std::lock_guard lock(mutex_);
    warnings_ = std::move(all);
  }

  // Hands on what the cluster has gathered.
  void pass_on() {
    kube::Output output = cluster_.take();
    for (Command& command : output.commands) sink_(std::move(command));
    for (const std::uint64_t id : output.withdrawn) {  // before the requests, of which one may be its like
      if (queue_.withdraw(id)) cluster_.answered(id, 0, {}, options_.now());
    }
    for (kube::Request& request : output.requests) {
      const std::uint64_t id = request.id;
      // Nothing is known of one that was not sent, as of one without an answer.
      if (!queue_.push(std::move(request))) cluster_.answered(id, 0, {}, options_.now());
    }
    for (kube::Request& request : queue_objects_.take()) {
      const std::uint64_t id = request.id;
      if (!queue_.push(std::move(request))) queue_objects_.answered(id, 0, {}, options_.now());
    }
    for (const std::string& warning : queue_objects_.take_warnings()) pass_over(warning);
  }

  void send_calls(Clock::time_point now) {
    queue_.hold(!lease_.may_write(now));
    while (auto request = queue_.next(now)) {
      HttpCall call;
      call.method = method_name(request->method);
      call.path = std::move(request->path);
      call.content_type = std::move(request->content_type);
      call.body = std::move(request->body);
      call.timeout = kCallTimeout;
      call.done = [this, id = request->id](const HttpAnswer& answer) { answered(id, answer); };
      http_.send(std::move(call));
    }
  }

  void answered(std::uint64_t id, const HttpAnswer& answer) {
    if (answer.status == 403 && id < kube::QueueObjects::kFirstId)
      pass_over("the API server refuses: " + message_of(answer));
    if (!queue_.answered(id, answer.status, answer.retry_after_s, Clock::now())) return;
    if (id >= kube::QueueObjects::kFirstId)
      queue_objects_.answered(id, answer.status, answer.body, options_.now());
    else
      cluster_.answered(id, answer.status, answer.body, options_.now());
  }

  // Asks for what it needs until that is known, and then for what else is of use.
  void ask_rights(Clock::time_point now) {
    if (now < rights_at_) return;
    rights_at_ = Clock::time_point::max();
    if (rights_known_) return ask_useful_rights();
    rights_.ask_anew();
    ask(rights_, [this] { rights_answered(); });
  }
  void ask_useful_rights() {
    ask(useful_, [this] {
      if (const std::string names = useful_.missing_names(); !names.empty())
        pass_over("the API server does not let this user: " + names +
                  ". Pods that need it wait until it does (docs/kubernetes.md)");
    });
    ask(show_queues_, [this] {
      if (const std::string names = show_queues_.missing_names(); !names.empty())
        pass_over("the API server does not let this user: " + names +
                  ". Until it does, `kubectl get queues` does not show what is so (docs/kubernetes.md)");
    });
  }

  // Asks for these rights; calls `done` when all are answered.
  void ask(RightsCheck& check, const std::function<void()>& done) {
    std::vector<HttpCall> calls = check.calls();
    for (std::size_t i = 0; i < calls.size(); ++i) {
      calls[i].done = [&check, i, done](const HttpAnswer& answer) {
        check.answered(i, answer);
        if (check.done()) done();
      };
      http_.send(std::move(calls[i]));
    }
  }

  void rights_answered() {
    const Clock::time_point now = Clock::now();
    const auto missing = rights_.missing();
    may_start_ = !missing;
    if (!ready_ && rights_.may_change(now, options_.denial_patience)) {
      heard_at_ = now;
      rights_at_ = now + options_.denial_pause;
      if (!std::exchange(told_denial_, true))
        options_.warn("the API server does not " + rights_.denial() +
                      ". One that has just started has not read its roles yet: berth asks again for " +
                      std::to_string(std::chrono::ceil<std::chrono::seconds>(options_.denial_patience).count()) + " s");
      return;
    }
    rights_known_ = true;
    rights_known_at_ = now;
    rights_at_ = now;
    if (missing && ready_) pass_over(missing->message);
    if (missing && !ready_) fail_start(*missing);
  }

  // Nothing is reported before it is known whose pods are whose.
  void ask_stamps(Clock::time_point now) {
    if (options_.cluster.stamped.empty() || !rights_known_ || now < stamps_at_) return;
    stamps_at_ = Clock::time_point::max();
    std::vector<HttpCall> calls = stamps_.begin();
    for (std::size_t i = 0; i < calls.size(); ++i) {
      calls[i].done = [this, i](const HttpAnswer& answer) {
        stamps_.answered(i, answer);
        if (stamps_.done()) stamps_answered();
      };
      http_.send(std::move(calls[i]));
    }
  }
  void stamps_answered() {
    const Clock::time_point now = Clock::now();
    const auto rules = stamps_.result();
    const bool is_known = rules || rules.error().code != ErrorCode::kUnavailable;
    stamps_at_ = now + (is_known ? options_.stamp_pause : options_.denial_pause);
    if (!is_known) return;  // what was found before holds
    const std::string failure = rules ? std::string()
                                      : "--user-stamps: no user that a pod is stamped with is believed, and new jobs "
                                        "of pods are their namespaces': " +
                                            rules.error().message;
    if (failure != stamp_failure_)
      options_.warn(failure.empty() ? "--user-stamps: users that pods are stamped with are believed again" : failure);
    stamp_failure_ = failure;
    cluster_.believe(rules ? std::optional(*rules) : std::nullopt, options_.now());
  }

  void renew_lease(Clock::time_point now) {
    auto call = lease_.next(now, options_.now());
    if (!call) return;
    call->done = [this](const HttpAnswer& answer) {
      lease_.answered(answer, Clock::now());
      if (!ready_) fail_start(answer);
      if (!lease_.lost()) return;
      if (ready_) {
        options_.end_process(*lease_.lost());
      } else {
        fail_start(*lease_.lost());
      }
    };
    http_.send(std::move(*call));
  }

  Clock::time_point wake_at() const {
    Clock::time_point at = std::min({tick_at_, lease_.due_at(), rights_at_});
    if (!options_.cluster.stamped.empty() && rights_known_) at = std::min(at, stamps_at_);
    for (const auto& watcher : watchers_) at = std::min(at, watcher->due_at());
    if (const auto ready = queue_.ready_at()) at = std::min(at, *ready);
    return at;
  }

  void check_start(Clock::time_point now) {
    if (ready_) return;
    const bool listed =
        std::all_of(watchers_.begin(), watchers_.end(), [](const auto& watcher) { return watcher->was_listed(); });
    if (listed && lease_.held() && may_start_) {
      const std::lock_guard lock(mutex_);
      ready_ = true;
      started_.notify_all();
    } else if (now - heard_at_ > options_.start_patience) {
      std::string why = last_failure_.empty() ? "no answer" : last_failure_;
      if (listed && !lease_.failure().empty()) why = "the Lease " + options_.space + "/berth: " + lease_.failure();
      fail_start(
          Error{ErrorCode::kUnavailable, "the API server at " + server_ + " does not answer as it should: " + why});
    }
  }

  // A right that is missing is told by its check, together with all others, when that has waited long enough. A
  // denial that was on its way when the rights became known is from before.
  void fail_start(const HttpAnswer& answer) {
    const bool is_recent = !rights_known_ || Clock::now() - rights_known_at_ < options_.denial_pause;
    if (answer.status == 403 && is_recent) return;
    if (const auto error = hopeless(server_, answer)) fail_start(*error);
  }
  void fail_start(const Error& error) {
    const std::lock_guard lock(mutex_);
    if (!start_error_) start_error_ = error;
    started_.notify_all();
  }

  // WatchReceiver:
  void begin_list(kube::Kind kind) override { cluster_.begin_list(kind); }
  void observe(kube::Kind kind, const boost::json::object& object, bool deleted) override {
    cluster_.observe(kind, object, deleted, options_.now());
  }
  void end_list(kube::Kind kind) override { cluster_.end_list(kind, options_.now()); }
  void denied(kube::Kind kind) override { cluster_.denied(kind); }
  void passed_over(std::string what) override { pass_over(std::move(what)); }
  void works(const kube::Resource& resource) override {
    heard_at_ = Clock::now();
    if (failing_.erase(std::string(resource.path)) != 0 && ready_)
      options_.warn("the API server serves " + std::string(resource.path) + " again");
  }
  void failed(const kube::Resource& resource, const HttpAnswer& answer) override {
    std::string why = message_of(answer);
    last_failure_ = std::string(resource.path) + ": " + why;
    if (!ready_) fail_start(answer);
    const auto [at, fresh] = failing_.insert_or_assign(std::string(resource.path), std::move(why));
    if (fresh && ready_) options_.warn("the API server does not serve " + at->first + ": " + at->second);
  }

  // Keeps it among the warnings and tells the log, each text once.
  void pass_over(std::string what) {
    if (std::find(passed_over_.begin(), passed_over_.end(), what) != passed_over_.end()) return;
    options_.warn(what);
    passed_over_.push_back(std::move(what));
    if (passed_over_.size() > kMostPassedOver) passed_over_.pop_front();
  }

  const KubernetesOptions options_;
  const std::string server_;
  ReportSink sink_;

  mutable std::mutex mutex_;  // guards the next five
  std::condition_variable started_;
  std::deque<Incoming> incoming_;
  std::vector<std::string> warnings_;
  std::optional<Error> start_error_;
  std::atomic<bool> ready_{false};
  std::atomic<bool> stopping_{false};

  // The rest belongs to the thread.
  kube::Cluster cluster_;
  kube::QueueObjects queue_objects_{options_.cluster.waits};
  Http http_;
  PodLogs logs_{http_};
  PodShells shells_{http_};
  CallQueue queue_;
  Lease lease_;
  RightsCheck rights_;
  RightsCheck useful_;
  RightsCheck show_queues_;
  StampCheck stamps_;
  Clock::time_point stamps_at_{};  // when the policies are looked at
  std::string stamp_failure_;      // why no stamp is believed; empty: they are
  Clock::time_point rights_at_{};  // when they are asked for
  bool rights_known_ = false;
  Clock::time_point rights_known_at_{};
  bool may_start_ = false;  // no right that it needs was missing at the last time
  bool told_denial_ = false;
  std::vector<std::unique_ptr<Watcher>> watchers_;
  std::map<std::string, std::string> failing_;  // path of a kind: what its last try said
  std::deque<std::string> passed_over_;
  std::vector<std::string> logged_;  // the cluster's warnings that are in the log
  std::string last_failure_;
  Clock::time_point heard_at_{};
  Clock::time_point tick_at_{};
  std::thread thread_;
};

}  // namespace

std::unique_ptr<Backend> make_kubernetes_backend(KubernetesOptions options) {
  return std::make_unique<KubernetesBackend>(std::move(options));
}

}  // namespace berth::backend
