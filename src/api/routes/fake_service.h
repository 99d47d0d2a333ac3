#pragma once
// For tests: a Service in memory. Commands go through the real handle, settle and commit on a real State; a cycle of a
// few lines starts what fits; events, history and watchers are what a log would give. And a client of the routes that
// goes through the same checks as a connection does (http/dispatch.h).

#include <doctest/doctest.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "api/http/authenticator.h"
#include "api/http/dispatch.h"
#include "api/routes/routes.h"
#include "billing/ledger.h"
#include "billing/opened_line.h"
#include "billing/rate.h"
#include "control/iteration.h"
#include "control/money.h"

namespace berth::api {

// Starts the first waiting gang that fits, on the nodes in order, with one GPU after the other.
inline Plan first_fit_cycle(state::State& state, Timestamp) {
  Plan plan;
  state.jobs().for_each([&](const state::JobState& job) {
    if (!plan.decisions.empty() || !job.in_pending) return;
    StartDecision start{.job = job.id, .placements = {}};
    std::map<NodeId, std::size_t> taken;
    for (std::size_t g = 0; g < job.spec.groups.size(); ++g) {
      const TaskGroup& group = job.spec.groups[g];
      for (std::int32_t t = 0; t < group.count; ++t) {
        for (const state::NodeState& node : state.nodes()) {
          TaskPlacement place{.node = node.id, .group = static_cast<std::uint16_t>(g), .gpu_milli = 1000, .gpus = {}};
          place.cpu_milli = group.request.cpu_milli;
          place.memory_mib = group.request.memory_mib;
          std::size_t& next = taken[node.id];
          std::size_t at = next;
          for (; at < node.gpus.size() && place.gpus.size() < static_cast<std::size_t>(group.request.gpus); ++at) {
            if (node.gpus[at].available_milli() == kMilli) place.gpus.push_back(static_cast<std::uint8_t>(at));
          }
          if (!node.takes_tasks() || place.gpus.size() < static_cast<std::size_t>(group.request.gpus)) continue;
          next = at;
          start.placements.push_back(std::move(place));
          break;
        }
      }
    }
    std::size_t tasks = 0;
    for (const TaskGroup& group : job.spec.groups) tasks += static_cast<std::size_t>(group.count);
    if (start.placements.size() == tasks) plan.decisions.emplace_back(std::move(start));
  });
  return plan;
}

// The same GPUs of another node, the first that has so many and need not be left.
inline Result<std::vector<TaskPlacement>> first_fit_elsewhere(state::State& state, JobId id,
                                                              const std::vector<NodeId>& off, Timestamp) {
  std::vector<TaskPlacement> places;
  for (const state::TaskState& task : state.job(id)->attempt->tasks) places.push_back(task.placement);
  for (const state::NodeState& node : state.nodes()) {
    if (std::find(off.begin(), off.end(), node.id) != off.end()) continue;
    for (TaskPlacement& place : places) place.node = node.id;
    return places;
  }
  return conflict("job " + std::to_string(id.value()) + " finds no places elsewhere now");
}

// Identities without keys.
class FakeIdentities final : public JobIdentities {
 public:
  Result<Token> issue(JobId, const std::string& audience) override {
    return Token{"header." + audience + ".signature", Timestamp{1'700'000'600'000}};
  }
  std::string issuer() override { return "https://berth.example.com"; }
  std::string key_set() override {
    return R"({"keys":[{"kty":"RSA","kid":"k1","use":"sig","alg":"RS256","n":"AQAB","e":"AQAB"}]})";
  }
  Result<std::string> rotate(bool, const std::string&) override { return std::string("k2"); }
};

class FakeService : public Service {
 public:
  FakeService() = default;
  FakeService(const FakeService&) = delete;
  FakeService& operator=(const FakeService&) = delete;
  // A stream that ends gives up its watch: the table of watchers has to be there for it.
  ~FakeService() override { std::exchange(watchers, {}).clear(); }

  Result<control::Reply> run(const Command& command, const Origin& by = {}) {
    now.ms += 1000;
    const std::vector<Command> commands{command};
    const std::vector<Origin> origins{by};
    auto first = control::run_iteration(state, now, commands, memory_, first_fit_cycle, first_fit_elsewhere, origins);
    take(first);
    for (bool again = first.cycle_ran; again;) {
      auto iteration = control::run_iteration(state, now, {}, memory_, first_fit_cycle);
      again = !iteration.plan.decisions.empty();
      take(iteration);
    }
    return first.replies.front();
  }

  // Every task of the job starts and exits with this code.
  void finish(JobId id, std::int32_t code) {
    const auto attempt = state.job(id)->attempt->number;
    for (std::uint32_t task = 0; task < tasks_of(id); ++task) REQUIRE(run(ReportTaskStarted{id, attempt, task, 1}));
    for (std::uint32_t task = 0; state.job(id) != nullptr && task < tasks_of(id); ++task) {
      REQUIRE(run(ReportTaskExited{{.job = id, .attempt = attempt, .task = task, .code = code, .message = ""}}));
    }
  }

  void submit(const Origin& by, Command command, std::function<void(Result<control::Reply>)> answer) override {
    if (full) {
      answer(Error{ErrorCode::kUnavailable, "the inbox is full"});
      return;
    }
    answer(run(command, by));
  }
  void note_denial(const AccessDenied& denied) override { denials.push_back(denied); }
  void read(const std::function<void(const View&)>& look) override {
    ++looks;
    look(View{state, now, {}, [this] { return gpu_utilization; }});
  }
  WhyAnswer explain(JobId job, const policy::Subject&) override {
    ++looks;
    WhyAnswer answer;
    answer.job = job;
    answer.code = ReasonCode::kInsufficientResources;
    answer.headline = "Job 2 waits for 8 free GPUs; 4 are free now.";
    answer.quota = "fine: queue b/nlp uses 0 of its guaranteed 8 GPUs";
    answer.line = WhyAnswer::Line{3, true, 1, "queue a goes first: that queue would stay within its guarantee"};
    answer.start = WhyAnswer::Start{StartBound::kProbably, now + 60'000, "probably at 00:01:00 UTC (in 60 s)"};
    answer.remedies = {{"gpus", RemedyBy::kOwner, false, "each task asked for 4 GPUs instead of 8", R"({"gpus":4})"}};
    answer.details = {"4 of 8 free on n1"};
    return answer;
  }
  Result<Forecast> forecast(const Command& command, const policy::Subject& viewer) override {
    if (const auto* change = std::get_if<PrioritizeJob>(&command);
        change != nullptr && state.job(change->job) == nullptr)
      return not_found("no such job");
    Forecast forecast;
    forecast.job = state.next_job_id();
    forecast.started = 1;
    forecast.phase = JobPhase::kRunning;
    forecast.within = false;
    forecast.places = {{"n1", 2, 1500}};
    forecast.victims = {{JobId(1), "ann", "a", StopCause::kReclaim, 1, 4000, 72}};
    forecast.start = now;
    forecast.warnings = {"it can never start"};
    forecast.explained = explain(forecast.job, viewer);
    return forecast;
  }
  Result<QueuePreview> preview(const Command& command, const policy::Subject&) override {
    const std::string saved = state.save();
    const auto reply = run(command);
    state = state::State::load(saved).value();
    if (!reply) return reply.error();
    QueuePreview preview;
    preview.reply = *reply;
    preview.become_borrowed = {{JobId(1)}, 2};
    preview.start = {{JobId(2)}, 0};
    preview.stop.not_shown = 1;
    return preview;
  }
  CapacityReport capacity(std::int64_t idle_for_s) override {
    ++looks;
    CapacityReport report{.kinds = {}, .complete = true, .time = now, .seq = state.last_seq()};
    CapacityReport::Kind kind;
    kind.pool = "default";
    kind.gpu_model = "H100";
    kind.gpus = 8;
    kind.cpu_milli = 64'000;
    kind.memory_mib = 512 * 1024;
    kind.taints = {{"maintenance", "soon"}};
    kind.nodes = 3;
    kind.releasable = 1;
    kind.idle = {{"n1", Timestamp{now.ms - idle_for_s * 1000}, "nothing", JobId::none(), true},
                 {"n2", now, "wanted", JobId(2), false}};
    kind.wanted = {2, {JobId(2), JobId(3)}, 12'500};
    report.kinds = {kind, kind};
    report.kinds[1].wanted.reset();
    return report;
  }
  std::vector<Finding> diagnosis() override {
    return {{CheckArea::kRecovery, "backups", CheckResult::kMissing, "The server makes no backups.", "make some"}};
  }
  AdviceReport advice() override {
    ++looks;
    return {.items = {{AdviceCode::kGuaranteesNotBacked, AdviceSeverity::kWarning, AdviceAbout::kCluster, "",
                       "12 of 8 are guaranteed.", "Lower them."},
                      {AdviceCode::kUserWithoutLimit, AdviceSeverity::kNote, AdviceAbout::kQueue, "b/nlp",
                       "ann has 4 of 4.", "Set one."}},
            .left_out = {{AdviceCode::kUserWithoutLimit, 3}},
            .complete = true,
            .time = now,
            .seq = state.last_seq()};
  }
  Result<std::vector<std::string>> explain_share(const std::string& queue) override {
    ++looks;
    if (state.queue_at(queue) == nullptr) return not_found("no such queue");
    return std::vector<std::string>{"gpu-equivalents: 4 of 8 used = 50 %, over weight 2 = 25 % (dominant)"};
  }
  Result<UsageReport> usage(Timestamp from, Timestamp to) override {
    ++looks;
    UsageReport report{.from = from, .to = to, .rows = {}};
    report.rows.push_back({"a", "ann", "H100", false, 1'500'000});
    report.rows.push_back({"b", "bob", "H100", true, 333});
    report.capacity_gpu_milli_ms = 1'500'333;
    return report;
  }
  Result<billing::Invoice> bill(const BillQuestion& question) override {
    ++looks;
    const auto month = question.month.empty() ? month_at(now) : month_of(question.month);
    if (!month) return invalid("month: no month");
    const PriceBook book = question.prices.value_or(state.prices());
    if (book.empty()) return conflict("no prices are in force yet");
    billing::Ledger ledger(billing::window_of(*month, book));
    for (const EventRecord& event : log) ledger.apply(event);
    ledger.look_ahead(now);
    return billing::make_invoice(ledger, {question.queue, *month, book, state.price_version()});
  }
  Result<std::vector<billing::PeriodUse>> used_in(const std::vector<Month>& periods) override {
    std::vector<billing::PeriodUse> all;
    for (const Month& month : periods) {
      billing::Ledger ledger(billing::window_of(month, {}));
      for (const EventRecord& event : log) ledger.apply(event);
      ledger.look_ahead(now);
      const auto made = billing::make_invoice(ledger, {.queue = "", .month = month, .book = {}, .price_version = 0});
      if (!made) return made.error();
      all.push_back({billing::uses_of(*made), {}});
    }
    return all;
  }
  // A line of job 1, whatever it is called.
  Result<billing::OpenedLine> open_line(const LineQuestion& question) override {
    ++looks;
    billing::OpenedLine opened{question.month, "EUR", 1, {}, {}, {}, ""};
    opened.line.queue = "a";
    opened.line.user = "ann";
    opened.line.model = "H100";
    opened.line.job = JobId(1);
    opened.line.quantity = 1'000'000;
    opened.stretches.push_back({{now, Timestamp{now.ms + 1000}, {.gpu_milli_ms = 1000}, 1, 0}, 1'000'000, 5});
    if (!log.empty()) opened.events.push_back(log.front());
    return opened;
  }
  std::optional<TimeZone> time_zone(const std::string& name) override {
    if (name != "Europe/Paris") return std::nullopt;
    return TimeZone{name, {{Timestamp{0}, 3600}}};
  }
  Result<std::vector<PriceMistake>> price_mistakes(const PriceBook& book) override {
    ++looks;
    return control::price_mistakes(state, book, now);
  }
  Result<MonthClosed> closing(const std::string& month) override {
    ++looks;
    MonthClosed closed;
    closed.month = month;
    closed.price_version = state.price_version();
    closed.hash = std::string(64, '0');
    return closed;
  }
  Result<std::vector<PastJob>> history(std::uint64_t before, std::size_t limit) override {
    ++looks;
    std::vector<PastJob> page;
    for (auto row = past.rbegin(); row != past.rend() && page.size() < limit; ++row) {
      if (row->cursor < before) page.push_back(*row);
    }
    return page;
  }
  Result<PastJob> past_job(JobId job) override {
    ++looks;
    for (const PastJob& one : past) {
      if (one.job.id == job) return one;
    }
    return not_found("no such job " + std::to_string(job.value()));
  }
  Result<std::vector<EventRecord>> events(Seq from, std::size_t limit) override {
    ++looks;
    if (from < archived_below) return not_found("events before " + std::to_string(archived_below) + " are archived");
    std::vector<EventRecord> page;
    for (std::size_t i = from - 1; i < log.size() && page.size() < limit; ++i) page.push_back(log[i]);
    return page;
  }
  std::uint64_t watch(Watcher watcher) override {
    watchers.emplace(next_watcher_, std::move(watcher));
    return next_watcher_++;
  }
  void unwatch(std::uint64_t id) override { watchers.erase(id); }
  void task_log(const LogQuery& query, std::function<void(Result<LogPart>)> answer) override {
    ++looks;
    if (query.task > 0) return answer(not_found("there is no log of task " + std::to_string(query.task)));
    const std::int64_t from = query.from;
    const std::string all = query.error_stream ? "warning\n" : "step 1\nstep 2\n";
    const auto size = static_cast<std::int64_t>(all.size());
    const std::int64_t begin = std::min(from < 0 ? std::max<std::int64_t>(0, size + from) : from, size);
    const std::int64_t end = std::min(size, begin + query.max_bytes);
    answer(LogPart{begin, end, all.substr(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)),
                   end == size});
  }
  void open_shell(const ShellQuery& query, std::function<void(Result<std::shared_ptr<const int>>)> answer) override {
    shells.push_back(query);
    if (shell_refusal) return answer(*shell_refusal);
    answer(std::make_shared<const int>(-1));
  }
  std::string metrics() override {
    ++looks;
    return "# HELP berth_cycles_total Cycles.\n# TYPE berth_cycles_total counter\nberth_cycles_total 1\n";
  }
  ServerFacts facts() override {
    ServerFacts facts;
    facts.version = "0.1.0";
    facts.warnings = {"no cgroups"};
    facts.clock = {now, 7'200'000, false};
    return facts;
  }

  std::map<std::string, Timestamp> token_uses() override { return uses; }
  JobIdentities& identities() override { return identities_; }

  state::State state;
  Timestamp now{1'700'000'000'000};
  std::vector<EventRecord> log;
  std::vector<PastJob> past;
  std::vector<ShellQuery> shells;
  std::optional<Error> shell_refusal;
  std::vector<AccessDenied> denials;
  std::map<std::uint64_t, Watcher> watchers;
  Seq archived_below = 0;
  std::size_t looks = 0;  // calls that look at the state, the log or files
  GpuUtilization gpu_utilization;
  bool full = false;
  std::map<std::string, Timestamp> uses;

 private:
  std::uint32_t tasks_of(JobId id) const { return static_cast<std::uint32_t>(state.job(id)->attempt->tasks.size()); }

  void take(control::Iteration& iteration) {
    state.clear_unreconciled();
    for (control::FinishedJob& finished_job : iteration.finished_jobs) {
      past.push_back({std::move(finished_job.job), finished_job.how.outcome, finished_job.how.code,
                      finished_job.how.message, finished_job.finished, past.size() + 1});
    }
    for (const EventRecord& record : iteration.records) {
      log.push_back(record);
      for (const auto& [id, watcher] : watchers) watcher(LiveEvent{record});
    }
  }

  FakeIdentities identities_;
  control::IterationMemory memory_;
  std::uint64_t next_watcher_ = 1;
};

// Holds what a stream is sent. `drain` says that all of it has left.
class RecordedStream : public http::StreamSink {
 public:
  bool write(http::Chunk chunk) override {
    if (closed) return false;
    chunks.push_back(std::move(chunk));
    return true;
  }
  void close() override { end(); }
  bool open() const override { return !closed; }
  std::size_t pending_bytes() const override { return 0; }
  void on_close(std::function<void()> callback) override { on_close_.push_back(std::move(callback)); }
  void on_drained(std::function<void()> callback) override { on_drained_ = std::move(callback); }

  void drain() {
    if (const auto step = on_drained_) step();  // a copy: the step may take the call back
  }
  bool has_step() const { return on_drained_ != nullptr; }
  void end() {
    if (std::exchange(closed, true)) return;
    for (const auto& callback : on_close_) callback();
  }

  std::vector<http::Chunk> chunks;
  bool closed = false;

 private:
  std::vector<std::function<void()>> on_close_;
  std::function<void()> on_drained_;
};

class RecordedAnswer : public http::AnswerSlot {
 public:
  bool answer(http::Response given) override {
    if (answered) return false;
    answered = true;
    response = std::move(given);
    return true;
  }
  std::shared_ptr<http::StreamSink> answer_with_stream(http::StreamFormat) override {
    answered = true;
    stream = std::make_shared<RecordedStream>();
    return stream;
  }
  bool answer_with_relay(http::RelayOffer offer) override {
    if (answered) return false;
    answered = true;
    relay = std::move(offer);
    return true;
  }

  bool answered = false;
  http::Response response;
  std::shared_ptr<RecordedStream> stream;
  std::optional<http::RelayOffer> relay;
};

struct Ask {
  std::string method = "GET";
  std::string target;
  std::string body = {};
  std::vector<http::Header> headers = {};
  std::string user = "admin";
  std::string type = "application/json";
};

// A server without sockets, with an admin, the members ann (everywhere) and bob (queue b), lea who leads queue b,
// the operator ops, the auditor aud, eve, who has no role, job1, which is the running job 1,
// and save1, which is job 1 where it reports its saves.
class Client {
 public:
  explicit Client(Service& service) : router_(make_router(service)) {
    const std::vector<RoleBinding> roles = {{"admin", Role::kAdmin, ""},      {"user:ops", Role::kOperator, ""},
                                            {"user:ann", Role::kMember, ""},  {"user:aud", Role::kAuditor, ""},
                                            {"user:bob", Role::kMember, "b"}, {"user:lea", Role::kLead, "b"}};
    for (const std::string user : {"admin", "ann", "aud", "bob", "eve", "lea", "ops"}) {
      const std::string name = user == "admin" ? user : "user:" + user;
      REQUIRE(tokens_.add(user + "-0123456789abcdef",
                          {.name = name, .user = user, .roles = policy::roles_of(roles, name)}));
    }
    REQUIRE(tokens_.add("job1-0123456789abcdef", {.name = "job:1", .job = JobId(1)}));
    REQUIRE(tokens_.add("save1-0123456789abcdef", {.name = "job:1", .job = JobId(1), .saves_only = true}));
  }

  std::shared_ptr<RecordedAnswer> send(const Ask& ask) const {
    const auto slot = std::make_shared<RecordedAnswer>();
    std::vector<http::Header> headers = ask.headers;
    if (!ask.user.empty()) headers.push_back({"authorization", "Bearer " + ask.user + "-0123456789abcdef"});
    if (!ask.body.empty()) headers.push_back({"content-type", ask.type});
    auto decision = http::admit(
        {.method = ask.method, .target = ask.target, .headers = std::move(headers), .has_body = !ask.body.empty()},
        router_, tokens_);
    if (auto* refusal = std::get_if<http::Response>(&decision)) {
      slot->answer(std::move(*refusal));
      return slot;
    }
    auto& admitted = std::get<http::Admitted>(decision);
    admitted.request.body = ask.body;
    admitted.route->handler(admitted.request, http::Responder(slot));
    return slot;
  }

  http::Response call(const Ask& ask) const { return send(ask)->response; }
  http::Response get(const std::string& target) const { return call({.target = target}); }
  boost::json::value json(const std::string& target) const { return boost::json::parse(get(target).body); }

  const http::Router& router() const { return router_; }

 private:
  http::Router router_;
  http::Authenticator tokens_;
};

// Queues a (guaranteed 4 GPUs) and b, one node n1 with eight GPUs.
inline void set_up_cluster(FakeService& service) {
  ClusterConfig config = default_cluster_config();
  config.gpu_models = {{"H100", 1000, 81'920}};
  config.queues.clear();
  for (const char* path : {"a", "b", "b/nlp"}) {
    QueueConfig queue;
    queue.path = path;
    config.queues.push_back(queue);
  }
  config.queues[0].guaranteed.gpu_milli = 4000;
  config.queues[1].max.gpu_milli = 7500;
  REQUIRE(service.run(ApplyConfig{config, "op"}));
  NodeSpec node;
  node.name = "n1";
  node.cpu_milli = 64'000;
  node.memory_mib = 512 * 1024;
  node.labels = {{"disk", "fast"}};
  node.taints = {{"maintenance", "soon"}};
  for (int i = 0; i < 8; ++i) {
    Gpu gpu;
    gpu.uuid = "GPU-" + std::to_string(i);
    gpu.model = "H100";
    gpu.memory_mib = 81'920;
    node.gpus.push_back(gpu);
  }
  REQUIRE(service.run(RegisterNode{node}));
}

}  // namespace berth::api
