#include "daemon/service.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <string>
#include <utility>

#include "billing/opened_line.h"
#include "control/validate.h"
#include "daemon/disk_reserve.h"
#include "daemon/forecast.h"
#include "daemon/history_codec.h"
#include "daemon/price_check.h"
#include "daemon/queue_preview.h"
#include "daemon/state_gauges.h"
#include "daemon/state_reads.h"
#include "explain/advice/advice.h"
#include "explain/capacity/capacity.h"
#include "explain/doctor/doctor.h"
#include "explain/pending_reason.h"
#include "explain/why.h"
#include "model/document/quantity.h"
#include "state/impossible.h"
#include "store/event_codec.h"
#include "telemetry/exposition.h"

namespace berth::daemon {

namespace {

constexpr std::size_t kMostSubjectsOfDay = 16'384;

std::string told_size(std::uint64_t bytes) {
  constexpr std::uint64_t kMib = std::uint64_t{1} << 20U;
  return document::memory_text(static_cast<std::int64_t>(bytes / kMib + (bytes % kMib == 0 ? 0 : 1)));
}

constexpr std::size_t kClassesOfMetrics = 2048;  // a scrape covers all jobs, not one page of them

Result<api::PastJob> to_past_job(const store::HistoryRow& row) {
  auto finished_job = to_finished_job(row);
  if (!finished_job) return finished_job.error();
  api::PastJob past;
  past.job = std::move(finished_job->job);
  past.outcome = finished_job->how.outcome;
  past.code = finished_job->how.code;
  past.message = finished_job->how.message;
  past.finished = finished_job->finished;
  past.cursor = row.cursor;
  return past;
}

}  // namespace

DaemonService::DaemonService(Inbox& inbox, Reader& reader, const store::Log& log, backend::Backend& backend,
                             const LogCheck& log_check, ServerClock& clock, AuditDesk& audit_desk,
                             const GpuUtilizationSampler* sampler, api::JobIdentities& identities,
                             api::ServerFacts facts, std::uint64_t bytes_a_day, const BackupSchedule* backups)
    : inbox_(inbox),
      reader_(reader),
      log_(log),
      backend_(backend),
      log_check_(log_check),
      clock_(clock),
      audit_desk_(audit_desk),
      sampler_(sampler),
      identities_(identities),
      facts_(std::move(facts)),
      backups_(backups),
      day_limit_(bytes_a_day, kMostSubjectsOfDay),
      desk_(log),
      past_(log, *this) {}

// A job that names no image may get that of its queue. Only then is the state asked: no other answer waits for a read.
Result<void> DaemonService::check_where_it_runs(const JobSpec& job) {
  const auto stated = backend_.check(job);
  if (stated) return stated;
  JobSpec spec = job;
  reader_.read([&](state::State& state, const billing::Meter&) {
    if (auto queue = control::only_queue(state); spec.queue.empty() && queue) spec.queue = std::move(*queue);
    control::fill_default_images(state, spec);
  });
  return backend_.check(spec);
}

void DaemonService::submit(const Origin& by, Command command, std::function<void(Result<control::Reply>)> answer) {
  if (!may_use_reserve(command)) {
    if (auto room = check_disk_reserve(facts_.data_dir); !room) return answer(room.error());
  }
  if (auto ok = change_limit_.take(command, clock_.now()); !ok) return answer(ok.error());
  if (const auto* job = std::get_if<SubmitJob>(&command)) {
    if (auto ok = check_where_it_runs(job->spec); !ok) return answer(ok.error());
  }
  const std::uint64_t bytes = by.empty() ? 0 : log_cost(command);
  if (auto ok = take_of_day(by.subject, bytes); !ok) return answer(ok.error());
  const auto* config = std::get_if<ApplyConfig>(&command);
  auto warnings = config == nullptr ? std::vector<std::string>() : backend_.warnings_of(config->config);
  const auto told = [this, subject = by.subject, bytes, answer, is_config = config != nullptr,
                     warnings = std::move(warnings)](Result<control::Reply> reply) {
    if (reply && is_config) keep_config_warnings(warnings);
    if (!reply || reply->repeated || reply->unchanged || reply->stale) give_back(subject, bytes);  // it wrote nothing
    answer(std::move(reply));
  };
  if (inbox_.put({std::move(command), told, false, by})) return;
  told(
      Error{ErrorCode::kUnavailable, "the server has too many requests waiting or is stopping; try again in a moment"});
}

void DaemonService::keep_config_warnings(std::vector<std::string> warnings) {
  const std::lock_guard lock(config_mutex_);
  config_warnings_ = std::move(warnings);
}

std::vector<std::string> DaemonService::warn_of_config() {
  ClusterConfig config;
  reader_.read([&](state::State& state, const billing::Meter&) { config = state.config(); });
  auto warnings = backend_.warnings_of(config);
  keep_config_warnings(warnings);
  return warnings;
}

Result<void> DaemonService::take_of_day(const std::string& subject, std::uint64_t bytes) {
  if (bytes == 0) return {};
  const std::lock_guard lock(day_mutex_);
  const auto taken = day_limit_.take(subject, bytes, clock_.now());
  if (taken.ok) return {};
  const std::string of_limit = told_size(day_limit_.limit()) + " (berth serve --day-limit)";
  const std::string used = told_size(taken.used_bytes);
  if (taken.first_refusal) {
    spdlog::warn(
        "requests of {} are refused until midnight UTC: they would write more than {} into the event log in a day",
        subject, of_limit);
  }
  return Error{ErrorCode::kDenied, "requests of " + subject + " have written " + used +
                                       " today, this one would write " + told_size(bytes) +
                                       " in all, and a subject may write " + of_limit +
                                       " a day. The next day begins at midnight UTC; what ends a job is still taken"};
}

void DaemonService::give_back(const std::string& subject, std::uint64_t bytes) {
  if (bytes == 0) return;
  const std::lock_guard lock(day_mutex_);
  day_limit_.give_back(subject, bytes, clock_.now());
}

void DaemonService::read(const std::function<void(const api::View&)>& look) {
  reader_.read([&](state::State& state, const billing::Meter&) {
    explain::PendingReasons pending_reason(state, now(state));
    look(api::View{state, now(state), std::ref(pending_reason), [this] { return measured(); }});
  });
}

WhyAnswer DaemonService::explain(JobId job, const policy::Subject& viewer) {
  WhyAnswer answer;
  reader_.read(
      [&](state::State& state, const billing::Meter&) { answer = explain_job(state, job, viewer, now(state)); });
  return answer;
}

// The lock is held only while the state is written out; the copy is made and asked without it.
Result<api::Forecast> DaemonService::forecast(const Command& command, const policy::Subject& subject) {
  std::string saved;
  Timestamp at;
  reader_.read([&](state::State& state, const billing::Meter&) {
    saved = state.save();
    at = now(state);
  });
  auto copy = state::State::load(saved);
  if (!copy) return copy.error();
  auto found = daemon::forecast(*copy, command, at);
  if (!found) return found;
  const explain::Viewer viewer = viewer_of(*copy, subject);
  const auto hidden = [&](const api::Forecast::Victim& victim) {
    const state::JobState* job = copy->job(victim.job);
    return job == nullptr || !viewer.sees(*copy, *job);
  };
  found->victims_not_shown =
      static_cast<std::size_t>(std::count_if(found->victims.begin(), found->victims.end(), hidden));
  std::erase_if(found->victims, hidden);
  if (found->phase == JobPhase::kPending && copy->job(found->job) != nullptr)
    found->explained = explain::why(*copy, found->job, at, viewer).answer;
  return found;
}

Result<api::QueuePreview> DaemonService::preview(const Command& command, const policy::Subject& subject) {
  std::string saved;
  Timestamp at;
  reader_.read([&](state::State& state, const billing::Meter&) {
    saved = state.save();
    at = now(state);
  });
  auto without = state::State::load(saved);
  if (!without) return without.error();
  auto with = state::State::load(saved);
  if (!with) return with.error();
  const explain::Viewer viewer = viewer_of(*without, subject);
  return preview_queue_change(*without, *with, command, at, viewer);
}

namespace {

api::CapacityReport::Kind to_kind(const state::State& state, const explain::NodeKind& from) {
  api::CapacityReport::Kind kind;
  kind.pool = state.pools()[from.pool].name;
  kind.gpu_model = from.model;
  kind.gpus = from.gpus;
  kind.cpu_milli = from.cpu_milli;
  kind.memory_mib = from.memory_mib;
  kind.taints = from.taints;
  kind.containers = from.containers;
  kind.nodes = from.nodes;
  kind.releasable = from.releasable();
  for (const explain::IdleNode& idle : from.idle) {
    const state::NodeState& node = state.node(idle.node);
    kind.idle.push_back({node.spec.name, idle.since, std::string(name_of(idle.kept_for)), idle.job, node.cordoned});
  }
  if (from.wanted) kind.wanted = {from.wanted->nodes, from.wanted->jobs, from.wanted->gpu_milli};
  return kind;
}

}  // namespace

api::CapacityReport DaemonService::capacity(std::int64_t idle_for_s) {
  api::CapacityReport report;
  reader_.read([&](state::State& state, const billing::Meter&) {
    report.time = now(state);
    report.seq = state.last_seq();
    const explain::Capacity found = explain::capacity_of(state, report.time, idle_for_s * 1000);
    for (const explain::NodeKind& kind : found.kinds) report.kinds.push_back(to_kind(state, kind));
    report.complete = found.complete;
  });
  return report;
}

namespace {

// The mean use within guarantees of each of the last 30 days, or of as many whole ones as the cluster has been there.
std::vector<explain::FloorUse> floor_use(const billing::Meter& meter, Timestamp now) {
  constexpr std::int64_t kDay = 86'400'000;
  constexpr std::int64_t kMostDays = 30;
  const std::int64_t known = meter.last_seq() == 0 ? 0 : (now - meter.first_event()) / kDay;
  const auto days = static_cast<std::size_t>(std::clamp<std::int64_t>(known, 0, kMostDays));
  std::map<std::string, std::vector<std::int64_t>> by_queue;
  for (std::size_t d = 0; d < days; ++d) {
    const Timestamp end{now.ms - static_cast<std::int64_t>(d) * kDay};
    for (const billing::UsageRow& row : meter.usage(Timestamp{end.ms - kDay}, end).rows) {
      if (row.account.borrowed || row.gpu_milli_ms == 0) continue;
      by_queue.try_emplace(row.account.queue, days).first->second[d] += row.gpu_milli_ms;
    }
  }
  std::vector<explain::FloorUse> use;
  if (days > 0) use.push_back({"", std::vector<std::int64_t>(days)});  // where no job ran at all, the days still count
  for (auto& [queue, sums] : by_queue) {
    for (std::int64_t& sum : sums) sum /= kDay;
    use.push_back({queue, std::move(sums)});
  }
  return use;
}

}  // namespace

api::AdviceReport DaemonService::advice() {
  api::AdviceReport report;
  reader_.read([&](state::State& state, const billing::Meter& meter) {
    report.time = now(state);
    report.seq = state.last_seq();
    explain::AdviceReport found = explain::advise(state, report.time, measured(), {}, floor_use(meter, report.time));
    report.items = std::move(found.items);
    report.left_out = std::move(found.left_out);
    report.complete = found.complete;
  });
  return report;
}

std::vector<Finding> DaemonService::diagnosis() {
  const api::ServerFacts known = facts();
  explain::DoctorFacts seen;
  seen.on_network = known.on_network;
  seen.has_tls = known.has_tls;
  seen.runs_tasks = known.runs_tasks;
  seen.kubernetes = known.kubernetes;
  seen.tasks_kept_apart = known.tasks_kept_apart;
  seen.gpus_checked = known.gpus_checked;
  seen.measures_gpus = sampler_ != nullptr;
  seen.log_check = known.log_check;
  seen.log_end_known = known.log_end_known;
  seen.wall_offset_ms = known.clock.wall_offset_ms;
  seen.follows_wall = known.clock.followed;
  seen.backups_to = known.backups_to;
  seen.backups_every_s = known.backups_every_s;
  if (backups_ != nullptr) {
    const BackupSchedule::Status status = backups_->status();
    seen.last_backup = status.last;
    seen.backup_warning = status.warning;
  }
  seen.token_use = token_uses();
  std::vector<Finding> findings;
  reader_.read(
      [&](state::State& state, const billing::Meter&) { findings = explain::examine(state, seen, now(state)); });
  return findings;
}

Result<std::vector<std::string>> DaemonService::explain_share(const std::string& path) {
  Result<std::vector<std::string>> lines = std::vector<std::string>();
  reader_.read([&](state::State& state, const billing::Meter&) { lines = share_in_words(state, path, now(state)); });
  return lines;
}

Result<api::UsageReport> DaemonService::usage(Timestamp from, Timestamp to) {
  Result<api::UsageReport> report = api::UsageReport();
  reader_.read(
      [&](state::State& state, const billing::Meter& meter) { report = usage_of(state, meter, from, to, now(state)); });
  return report;
}

Result<billing::Invoice> DaemonService::bill(const api::BillQuestion& question) {
  Result<BillingFacts> billing = BillingFacts();
  reader_.read(
      [&](state::State& state, const billing::Meter&) { billing = facts_for_bill(state, question, now(state)); });
  if (!billing) return billing.error();
  return desk_.bill(question, *billing);
}

Result<std::vector<billing::PeriodUse>> DaemonService::used_in(const std::vector<Month>& periods) {
  BillingFacts billing;
  reader_.read([&](state::State& state, const billing::Meter&) {
    billing = billing_facts(state, now(state));
    billing.past_reports = reports_before(state, month_at(billing.now).begin);
  });
  return desk_.used_in(periods, billing);
}

Result<billing::OpenedLine> DaemonService::open_line(const api::LineQuestion& question) {
  BillingFacts billing;
  reader_.read([&](state::State& state, const billing::Meter&) { billing = billing_facts(state, now(state)); });
  return desk_.open(question, billing);
}

Result<std::vector<PriceMistake>> DaemonService::price_mistakes(const PriceBook& book) {
  std::vector<PriceMistake> mistakes;
  BillingFacts billing;
  reader_.read([&](state::State& state, const billing::Meter& meter) {
    billing = billing_facts(state, now(state));
    mistakes = daemon::price_mistakes(state, meter, book, billing.now);
  });
  if (billing.price_version == 0 || billing.prices.currency == book.currency) return mistakes;
  const auto corrected = desk_.corrected_open_month(billing);
  if (!corrected) return corrected.error();
  if (!corrected->empty())
    mistakes.push_back({book.periods.size(), "currency",
                        "the bill of " + *corrected + ", which is not closed, has corrections in " +
                            billing.prices.currency + "; the currency changes only when all such months are closed"});
  return mistakes;
}

Result<MonthClosed> DaemonService::closing(const std::string& month) {
  BillingFacts billing;
  reader_.read([&](state::State& state, const billing::Meter&) { billing = billing_facts(state, now(state)); });
  return desk_.closing(month, billing);
}

Result<std::vector<api::PastJob>> DaemonService::history(std::uint64_t before, std::size_t limit) {
  store::HistoryQuery query;
  query.before = before;
  query.newest_first = true;
  query.limit = limit;
  auto rows = log_.history(query);
  if (!rows) return rows.error();
  std::vector<api::PastJob> jobs;
  for (const store::HistoryRow& row : *rows) {
    auto past = to_past_job(row);
    if (!past) return past.error();
    jobs.push_back(std::move(*past));
  }
  return jobs;
}

Result<api::PastJob> DaemonService::past_job(JobId job) {
  store::HistoryQuery query;
  query.job_id = job.value();
  query.limit = 1;
  auto rows = log_.history(query);
  if (!rows) return rows.error();
  if (rows->empty()) return not_found("no such job " + std::to_string(job.value()));
  return to_past_job(rows->front());
}

Result<std::vector<EventRecord>> DaemonService::events(Seq from, std::size_t limit) {
  std::vector<EventRecord> events;
  if (limit == 0 || from > log_.last().seq) return events;
  if (from < log_.first_seq()) {
    return not_found("events before " + std::to_string(log_.first_seq()) +
                     " have been archived; ask from there or take a snapshot");
  }
  auto done = log_.read(from, [&](const store::Record& record) -> Result<bool> {
    auto event = store::to_event(record);
    if (!event) return event.error();
    events.push_back(std::move(*event));
    return events.size() < limit;
  });
  if (!done) return done.error();
  return events;
}

std::uint64_t DaemonService::watch(Watcher watcher) { return reader_.watch(std::move(watcher)); }

void DaemonService::unwatch(std::uint64_t id) { reader_.unwatch(id); }

void DaemonService::task_log(const LogQuery& query, std::function<void(Result<LogPart>)> answer) {
  backend::LogQuery ask{query.job, query.attempt, query.task, query.error_stream, query.from, query.max_bytes};
  bool is_over = false;
  reader_.read([&](state::State& state, const billing::Meter&) {
    const state::JobState* live = state.job(query.job);
    ask.is_live = live != nullptr;
    is_over = live == nullptr || !live->attempt || live->attempt->number != query.attempt ||
              query.task >= live->attempt->tasks.size() || live->attempt->tasks[query.task].phase == TaskPhase::kExited;
  });
  backend_.read_log(ask, [is_over, answer = std::move(answer)](Result<backend::LogPart> part) {
    if (!part) return answer(part.error());
    const bool complete = is_over && part->bytes.empty();
    answer(LogPart{part->from, part->next, std::move(part->bytes), complete});
  });
}

void DaemonService::open_shell(const ShellQuery& query,
                               std::function<void(Result<std::shared_ptr<const int>>)> answer) {
  backend::ShellQuery ask{{query.job, 0, query.task, 0}, {}, query.begin};
  reader_.read([&](state::State& state, const billing::Meter&) {
    const state::JobState* live = state.job(query.job);
    if (live == nullptr || !live->attempt || query.task >= live->attempt->tasks.size()) return;
    const state::TaskState& task = live->attempt->tasks[query.task];
    ask.task.attempt = live->attempt->number;
    ask.task.incarnation = task.incarnation;
    ask.node = state.node(task.placement.node).spec.name;
  });
  if (ask.task.attempt == 0) return answer(conflict("job " + std::to_string(query.job.value()) + " does not run now"));
  backend_.open_shell(ask, std::move(answer));
}

namespace {

void add_server(const api::ServerFacts& facts, telemetry::Exposition& out) {
  using telemetry::MetricType;
  const auto whole = [](std::uint64_t count) { return telemetry::Decimal{static_cast<std::int64_t>(count), 0}; };
  out.begin("berth_build_info", MetricType::kGauge, "1, with the version of the server.");
  out.add({{"version", facts.version}}, whole(1));
  out.add_single("berth_pending_commands", MetricType::kGauge, "Requests and reports that wait for the loop.",
                 whole(facts.pending_commands));
  out.add_single("berth_log_events_total", MetricType::kCounter, "Events appended to the log.",
                 whole(facts.log_records));
  out.add_single("berth_log_syncs_total", MetricType::kCounter, "Times that the log was synced to disk.",
                 whole(facts.log_fsyncs));
  out.add_single("berth_clock_offset_seconds", MetricType::kGauge,
                 "How far the wall clock is ahead of the server's clock.",
                 telemetry::Decimal{facts.clock.wall_offset_ms, 3});
  out.add_single("berth_clock_unconfirmed", MetricType::kGauge,
                 "1 while the wall clock is so far off that it is not followed.", whole(facts.clock.followed ? 0 : 1));
}

void add_backups(const BackupSchedule::Status& backups, telemetry::Exposition& out) {
  using telemetry::MetricType;
  out.add_single("berth_backup_timestamp_seconds", MetricType::kGauge,
                 "When the newest good backup of the server's schedule was made; 0 for none.",
                 telemetry::Decimal{backups.last.value_or(Timestamp{}).ms, 3});
  out.add_single("berth_backup_failures_total", MetricType::kCounter, "Backups of the schedule that failed.",
                 telemetry::Decimal{static_cast<std::int64_t>(backups.failures), 0});
}

}  // namespace

std::string DaemonService::metrics() {
  telemetry::Exposition out;
  add_server(facts(), out);
  add_backups(backups_ == nullptr ? BackupSchedule::Status() : backups_->status(), out);
  reader_.read_metrics([&](state::State& state, const SchedulerMetrics& metrics) {
    explain::PendingReasons pending_reason(state, now(state), kClassesOfMetrics);
    add_gauges(api::View{state, now(state), std::ref(pending_reason), [this] { return measured(); }}, out);
    metrics.add_to(out);
  });
  return out.take();
}

api::ServerFacts DaemonService::facts() {
  api::ServerFacts facts = facts_;
  facts.pending_commands = inbox_.size();
  const store::Counters counters = log_.counters();
  facts.log_appends = counters.appends;
  facts.log_records = counters.records;
  facts.log_fsyncs = counters.fsyncs;
  facts.log_check = name_of(log_check_.state());
  facts.log_checked = log_check_.checked();
  for (std::string& warning : backend_.warnings()) {
    if (std::count(facts.warnings.begin(), facts.warnings.end(), warning) == 0) {
      facts.warnings.push_back(std::move(warning));
    }
  }
  if (backups_ != nullptr) {
    if (std::string failed = backups_->status().warning; !failed.empty()) facts.warnings.push_back(std::move(failed));
  }
  {
    const std::lock_guard lock(config_mutex_);
    facts.warnings.insert(facts.warnings.end(), config_warnings_.begin(), config_warnings_.end());
  }
  if (std::string unwatched = desk_.unwatched(); !unwatched.empty()) facts.warnings.push_back(std::move(unwatched));
  const ServerClock::Status clock = clock_.status();
  facts.clock = {clock.time, clock.wall_offset_ms, clock.follows_wall};
  if (!clock.follows_wall) {
    facts.warnings.push_back("the wall clock is " + offset_in_words(clock.wall_offset_ms) +
                             " the server's clock and is not followed; set it right, or, if it is right: berth clock "
                             "confirm");
  }
  return facts;
}

}  // namespace berth::daemon
