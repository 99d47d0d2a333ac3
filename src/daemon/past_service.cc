#include "daemon/past_service.h"

#include <string>
#include <utility>

#include "billing/opened_line.h"
#include "daemon/state_reads.h"
#include "explain/pending_reason.h"

namespace berth::daemon {
namespace {

Error only_reads() { return {ErrorCode::kUnsupported, "a past state is read, and nothing else"}; }

}  // namespace

void PastService::submit(const Origin&, Command, std::function<void(Result<control::Reply>)> answer) {
  answer(only_reads());
}

void PastService::read(const std::function<void(const api::View&)>& look) {
  explain::PendingReasons pending_reason(past_.state, past_.time);
  look(api::View{past_.state, past_.time, std::ref(pending_reason), {}});
}

WhyAnswer PastService::explain(JobId job, const policy::Subject& viewer) {
  return explain_job(past_.state, job, viewer, past_.time);
}

Result<std::vector<std::string>> PastService::explain_share(const std::string& queue) {
  return share_in_words(past_.state, queue, past_.time);
}

Result<api::UsageReport> PastService::usage(Timestamp from, Timestamp to) {
  const auto meter = past_.meter();
  if (!meter) return meter.error();
  return usage_of(past_.state, **meter, from, to, past_.time);
}

Result<billing::Invoice> PastService::bill(const api::BillQuestion& question) {
  auto facts = facts_for_bill(past_.state, question, past_.time);
  if (!facts) return facts.error();
  facts->last_seq = past_.state.last_seq();
  return past_.bills.bill(question, *facts);
}

Result<api::PastJob> PastService::past_job(JobId job) {
  return not_found("job " + std::to_string(job.value()) + " did not live after event " +
                   std::to_string(past_.state.last_seq()));
}

Result<std::vector<api::PastJob>> PastService::history(std::uint64_t, std::size_t) {
  return std::vector<api::PastJob>();
}

// The rest is asked by no route of the past (api/routes/past_reads.h).
Result<api::Forecast> PastService::forecast(const Command&, const policy::Subject&) { return only_reads(); }
Result<api::QueuePreview> PastService::preview(const Command&, const policy::Subject&) { return only_reads(); }
api::CapacityReport PastService::capacity(std::int64_t) { return {}; }
api::AdviceReport PastService::advice() { return {}; }
Result<billing::OpenedLine> PastService::open_line(const api::LineQuestion& question) {
  auto facts = facts_for_bill(past_.state, {"", question.month}, past_.time);
  if (!facts) return facts.error();
  facts->last_seq = past_.state.last_seq();
  return past_.bills.open(question, *facts);
}
Result<std::vector<billing::PeriodUse>> PastService::used_in(const std::vector<Month>&) { return only_reads(); }
Result<std::vector<PriceMistake>> PastService::price_mistakes(const PriceBook&) { return only_reads(); }
Result<MonthClosed> PastService::closing(const std::string&) { return only_reads(); }
Result<std::vector<EventRecord>> PastService::events(Seq, std::size_t) { return only_reads(); }
std::uint64_t PastService::watch(Watcher) { return 0; }
void PastService::unwatch(std::uint64_t) {}
void PastService::task_log(const LogQuery& /*query*/, std::function<void(Result<LogPart>)> answer) {
  answer(only_reads());
}
std::string PastService::metrics() { return {}; }

}  // namespace berth::daemon
