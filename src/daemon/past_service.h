#pragma once
// A past state as the routes of reads see it: as of its own time. It takes no commands, and knows no finished jobs.

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/service.h"
#include "billing/meter.h"
#include "daemon/billing_desk.h"
#include "state/state.h"

namespace berth::daemon {

class PastService final : public api::Service {
 public:
  struct Past {
    state::State& state;
    Timestamp time;                                        // not before that of the state's last event
    BillingDesk& bills;                                    // of bills of the past alone
    std::function<Result<const billing::Meter*>()> meter;  // which has folded what the state has
  };
  // What it refers to must outlive it.
  PastService(Past past, api::Service& now) : past_(std::move(past)), now_(now) {}

  void submit(const Origin& by, Command command, std::function<void(Result<control::Reply>)> answer) override;
  void note_denial(const AccessDenied& denied) override { now_.note_denial(denied); }
  void read(const std::function<void(const api::View&)>& look) override;
  WhyAnswer explain(JobId job, const policy::Subject& viewer) override;
  Result<api::Forecast> forecast(const Command& command, const policy::Subject& viewer) override;
  Result<api::QueuePreview> preview(const Command& command, const policy::Subject& viewer) override;
  api::CapacityReport capacity(std::int64_t idle_for_s) override;
  api::AdviceReport advice() override;
  std::vector<Finding> diagnosis() override { return {}; }
  Result<std::vector<std::string>> explain_share(const std::string& queue) override;
  Result<api::UsageReport> usage(Timestamp from, Timestamp to) override;
  Result<billing::Invoice> bill(const api::BillQuestion& question) override;
  Result<billing::OpenedLine> open_line(const api::LineQuestion& question) override;
  std::optional<TimeZone> time_zone(const std::string& name) override { return now_.time_zone(name); }
  Result<std::vector<billing::PeriodUse>> used_in(const std::vector<Month>&) override;
  Result<std::vector<PriceMistake>> price_mistakes(const PriceBook& book) override;
  Result<MonthClosed> closing(const std::string& month) override;
  Result<std::vector<api::PastJob>> history(std::uint64_t before, std::size_t limit) override;
  Result<api::PastJob> past_job(JobId job) override;
  Result<std::vector<EventRecord>> events(Seq from, std::size_t limit) override;
  std::uint64_t watch(Watcher watcher) override;
  void unwatch(std::uint64_t id) override;
  void task_log(const LogQuery& query, std::function<void(Result<LogPart>)> answer) override;
  std::string metrics() override;
  api::ServerFacts facts() override { return now_.facts(); }
  std::map<std::string, Timestamp> token_uses() override { return {}; }
  api::JobIdentities& identities() override { return now_.identities(); }

 private:
  Past past_;
  api::Service& now_;
};

}  // namespace berth::daemon
