#include "daemon/past_service.h"

#include <string>
#include <utility>

#include "explain/pending_reason.h"

namespace berth::daemon {
namespace {

Error only_reads() { return {ErrorCode::kUnsupported, "a past state is read, and nothing else"}; }

}  // namespace

void PastService::submit(Command, std::function<void(Result<control::Reply>)> answer) { answer(only_reads()); }

void PastService::read(const std::function<void(const api::View&)>& look) {
  explain::PendingReasons pending_reason(state_, state_.now());
  look(api::View{state_, state_.now(), std::ref(pending_reason), {}});
}

Result<api::PastJob> PastService::past_job(JobId job) {
  return not_found("job " + std::to_string(job.value()) + " did not live after event " +
                   std::to_string(state_.last_seq()));
}

Result<std::vector<api::PastJob>> PastService::history(std::uint64_t, std::size_t) {
  return std::vector<api::PastJob>();
}

// The rest is asked by no route of the past (api/routes/past_reads.h).
WhyAnswer PastService::explain(JobId, const policy::Subject&) { return {}; }
Result<api::Forecast> PastService::forecast(const Command&, const policy::Subject&) { return only_reads(); }
Result<api::QueuePreview> PastService::preview(const Command&, const policy::Subject&) { return only_reads(); }
api::CapacityReport PastService::capacity(std::int64_t) { return {}; }
api::AdviceReport PastService::advice() { return {}; }
Result<std::vector<std::string>> PastService::explain_share(const std::string&) { return only_reads(); }
Result<void> PastService::signal(JobId, std::int32_t) { return only_reads(); }
Result<api::UsageReport> PastService::usage(Timestamp, Timestamp) { return only_reads(); }
Result<billing::Invoice> PastService::bill(const api::BillQuestion&) { return only_reads(); }
Result<MonthClosed> PastService::closing(const std::string&) { return only_reads(); }
Result<std::vector<EventRecord>> PastService::events(Seq, std::size_t) { return only_reads(); }
std::uint64_t PastService::watch(Watcher) { return 0; }
void PastService::unwatch(std::uint64_t) {}
void PastService::task_log(const LogQuery& /*query*/, std::function<void(Result<LogPart>)> answer) {
  answer(only_reads());
}
std::string PastService::metrics() { return {}; }

}  // namespace berth::daemon
