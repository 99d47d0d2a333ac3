#pragma once
// A past state as the routes of reads see it. It takes no commands, and knows no finished jobs.

#include "api/service.h"
#include "state/state.h"

namespace berth::daemon {

class PastService final : public api::Service {
 public:
  // Both must outlive it.
  PastService(state::State& state, api::Service& now) : state_(state), now_(now) {}

  void submit(Command command, std::function<void(Result<control::Reply>)> answer) override;
  void read(const std::function<void(const api::View&)>& look) override;
  WhyAnswer explain(JobId job, const policy::Subject& viewer) override;
  Result<api::Forecast> forecast(const Command& command, const policy::Subject& viewer) override;
  Result<api::QueuePreview> preview(const Command& command, const policy::Subject& viewer) override;
  api::CapacityReport capacity(std::int64_t idle_for_s) override;
  api::AdviceReport advice() override;
  Result<std::vector<std::string>> explain_share(const std::string& queue) override;
  Result<void> signal(JobId job, std::int32_t signal) override;
  Result<api::UsageReport> usage(Timestamp from, Timestamp to) override;
  Result<billing::Invoice> bill(const api::BillQuestion& question) override;
  Result<MonthClosed> closing(const std::string& month) override;
  Result<std::vector<api::PastJob>> history(std::uint64_t before, std::size_t limit) override;
  Result<api::PastJob> past_job(JobId job) override;
  Result<std::vector<EventRecord>> events(Seq from, std::size_t limit) override;
  std::uint64_t watch(Watcher watcher) override;
  void unwatch(std::uint64_t id) override;
  void task_log(const LogQuery& query, std::function<void(Result<LogPart>)> answer) override;
  std::string metrics() override;
  api::ServerFacts facts() override { return now_.facts(); }

 private:
  state::State& state_;
  api::Service& now_;
};

}  // namespace berth::daemon
