#pragma once
// Answers that are made of a state in the same way, whether it is that of now or a past one.

#include <string>
#include <vector>

#include "api/service.h"
#include "base/result.h"
#include "base/timestamp.h"
#include "billing/meter.h"
#include "daemon/billing_desk.h"
#include "explain/viewer.h"
#include "model/why_answer.h"
#include "policy/authorize.h"
#include "state/state.h"

namespace berth::daemon {

// `now` is the time as of which the answer is, not before that of the last event.

// As api::Service::explain. `state` is changed during the search and restored.
WhyAnswer explain_job(state::State& state, JobId job, const policy::Subject& viewer, Timestamp now);
// As api::Service::explain_share.
Result<std::vector<std::string>> share_in_words(const state::State& state, const std::string& queue, Timestamp now);
// As api::Service::usage. The meter has folded the same events as the state.
Result<api::UsageReport> usage_of(const state::State& state, const billing::Meter& meter, Timestamp from, Timestamp to,
                                  Timestamp now);
// Fails where the question names no queue of the state; the facts are for BillingDesk::bill.
Result<BillingFacts> facts_for_bill(const state::State& state, const api::BillQuestion& question, Timestamp now);

// Returns what the subject may see named in an explanation, by its roles.
explain::Viewer viewer_of(const state::State& state, const policy::Subject& subject);

}  // namespace berth::daemon
