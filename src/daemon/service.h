#pragma once
// The daemon as the API sees it (api/service.h), on top of inbox, reader and log.

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "api/service.h"
#include "backend/backend.h"
#include "daemon/audit_desk.h"
#include "daemon/backup_schedule.h"
#include "daemon/billing_desk.h"
#include "daemon/change_limit.h"
#include "daemon/gpu_utilization_sampler.h"
#include "daemon/inbox.h"
#include "daemon/log_check.h"
#include "daemon/past_desk.h"
#include "daemon/reader.h"
#include "daemon/server_clock.h"
#include "policy/day_limit.h"
#include "store/log.h"
#include "timezone/time_zones.h"

namespace berth::daemon {

class DaemonService final : public api::Service {
 public:
  DaemonService(Inbox& inbox, Reader& reader, const store::Log& log, backend::Backend& backend,
                const LogCheck& log_check, ServerClock& clock, AuditDesk& audit_desk,
                const GpuUtilizationSampler* sampler, api::JobIdentities& identities, api::ServerFacts facts,
                std::uint64_t bytes_a_day, const BackupSchedule* backups);

  void submit(const Origin& by, Command command, std::function<void(Result<control::Reply>)> answer) override;
  void note_denial(const AccessDenied& denied) override { audit_desk_.denied(denied); }
  void read(const std::function<void(const api::View&)>& look) override;
  void at(const api::Moment& moment, std::function<void(Result<api::Service*>)> use) override {
    past_.at(moment, std::move(use));
  }
  WhyAnswer explain(JobId job, const policy::Subject& viewer) override;
  Result<api::Forecast> forecast(const Command& command, const policy::Subject& viewer) override;
  Result<api::QueuePreview> preview(const Command& command, const policy::Subject& viewer) override;
  api::CapacityReport capacity(std::int64_t idle_for_s) override;
  api::AdviceReport advice() override;
  std::vector<Finding> diagnosis() override;
  Result<std::vector<std::string>> explain_share(const std::string& queue) override;
  Result<api::UsageReport> usage(Timestamp from, Timestamp to) override;
  Result<billing::Invoice> bill(const api::BillQuestion& question) override;
  Result<std::vector<billing::PeriodUse>> used_in(const std::vector<Month>& periods) override;
  Result<billing::OpenedLine> open_line(const api::LineQuestion& question) override;
  std::optional<TimeZone> time_zone(const std::string& name) override { return timezone::zone_of(name); }
  Result<std::vector<PriceMistake>> price_mistakes(const PriceBook& book) override;
  Result<MonthClosed> closing(const std::string& month) override;
  BillingDesk& billing_desk() { return desk_; }
  // Returns what the backend warns of in the configuration in force, and shows it until another one is applied.
  std::vector<std::string> warn_of_config();
  Result<std::vector<api::PastJob>> history(std::uint64_t before, std::size_t limit) override;
  Result<api::PastJob> past_job(JobId job) override;
  Result<std::vector<EventRecord>> events(Seq from, std::size_t limit) override;
  std::uint64_t watch(Watcher watcher) override;
  void unwatch(std::uint64_t id) override;
  void task_log(const LogQuery& query, std::function<void(Result<LogPart>)> answer) override;
  void open_shell(const ShellQuery& query, std::function<void(Result<std::shared_ptr<const int>>)> answer) override;
  std::string metrics() override;
  api::ServerFacts facts() override;
  std::map<std::string, Timestamp> token_uses() override { return reader_.access().uses(); }
  api::JobIdentities& identities() override { return identities_; }

 private:
  Result<void> check_where_it_runs(const JobSpec& job);
  Timestamp now(const state::State& state) { return std::max(state.now(), clock_.now()); }
  Result<void> take_of_day(const std::string& subject, std::uint64_t bytes);
  void give_back(const std::string& subject, std::uint64_t bytes);
  void keep_config_warnings(std::vector<std::string> warnings);
  GpuUtilization measured() const { return sampler_ == nullptr ? GpuUtilization() : sampler_->of_last_hour(); }

  Inbox& inbox_;
  Reader& reader_;
  const store::Log& log_;
  backend::Backend& backend_;
  const LogCheck& log_check_;
  ServerClock& clock_;
  AuditDesk& audit_desk_;
  const GpuUtilizationSampler* sampler_;  // null if utilization is not measured
  api::JobIdentities& identities_;
  api::ServerFacts facts_;
  const BackupSchedule* backups_;  // null: the server makes none
  ChangeLimit change_limit_;
  std::mutex day_mutex_;  // guards the next one
  policy::DayLimit day_limit_;
  std::mutex config_mutex_;  // guards the next one
  std::vector<std::string> config_warnings_;
  BillingDesk desk_;
  PastDesk past_;
};

}  // namespace berth::daemon
