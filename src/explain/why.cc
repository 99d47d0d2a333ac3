#include "explain/why.h"

#include <algorithm>
#include <optional>

#include "explain/children.h"
#include "explain/facts.h"
#include "explain/never.h"
#include "explain/nominated.h"
#include "explain/pending_reason.h"
#include "explain/preemption.h"
#include "explain/queue_position.h"
#include "explain/reason_text.h"
#include "explain/shortage.h"
#include "explain/text_list.h"
#include "explain/unavailable.h"
#include "model/document/quantity.h"
#include "state/back_off.h"
#include "state/impossible.h"

namespace berth::explain {

using namespace sched;

namespace {

using state::JobState;
using state::State;

std::string thousandths(std::int64_t amount) {
  if (amount < 0) return "-" + thousandths(-amount);
  std::string text = std::to_string(amount / 1000);
  std::int64_t rest = amount % 1000;
  if (rest == 0) return text;
  std::string digits = std::to_string(1000 + rest).substr(1);
  while (digits.back() == '0') digits.pop_back();
  return text + "." + digits;
}

// Returns true if preemption or reclaim could help a job with this reason.
bool claims_help(ReasonCode code) {
  return lacks_places(code) || code == ReasonCode::kQuotaMax || code == ReasonCode::kQuotaLentOut ||
         code == ReasonCode::kWouldDelayReservation;
}

Reason blocking_reason(State& state, const JobState& job, Timestamp now) {
  if (job.nomination) return reason_of_nominated(state, job);
  SearchStats work;
  return pending_reason(state, job, now, work).value_or(Reason());
}

// The predicate for a job that waits for its back-off: "waits for the end of its back-off (4s after the end of attempt
// 3, failed)"; or nothing if it does not.
std::string pause_after_end(const JobState& job, ReasonCode code) {
  if (code != ReasonCode::kEarliestStart || job.past.empty()) return {};
  const state::AttemptRecord& last = job.past.back();
  const std::int64_t pause_ms = state::back_off_ms(job);
  if (last.ended + pause_ms != job.not_before) return {};
  return "waits for the end of its back-off (" + document::duration_text(pause_ms / 1000) +
         " after the end of attempt " + std::to_string(last.number) + ", " + std::string(name_of(last.outcome)) + ")";
}

// The predicate that has all that is known of the reason.
std::string cause_text(State& state, const Words& words, const JobState& job, const Reason& reason) {
  if (reason.code == ReasonCode::kParent) return explain_children(state, words, job);
  const std::vector<std::string> notes = unavailable_notes(words, job, reason.code);
  if (reason.code == ReasonCode::kInsufficientResources || reason.code == ReasonCode::kFragmented)
    return text_with_what_is_short(words, job, reason, notes);
  if (is_quota_reason(reason.code)) {
    if (std::string never = impossible_text(words, job); !never.empty()) return never;
  }
  if (std::string pause = pause_after_end(job, reason.code); !pause.empty()) return pause;
  const std::string lacks = what_the_fleet_lacks(state, job, reason);
  return (lacks.empty() ? reason_text(words, job, reason) : "can never start: " + lacks) + in_parentheses(notes) +
         closed_pools(words, job, reason.code);
}

// The headline of a pending job: of one behind the head of a strict queue also what that waits for.
std::string headline_of(State& state, const Words& words, const JobState& job, const Cause& cause) {
  std::string text = job_sentence(job.id, cause.text);
  const JobState* head = cause.reason.code == ReasonCode::kBehindQueueHead ? state.job(cause.reason.job) : nullptr;
  if (head == nullptr || !words.sees_job(head->id)) return text;
  return text + " " + job_sentence(head->id, why_briefly(state, words, *head).text);
}

// When a nominated job starts: its victims have left by the last of their deadlines.
std::optional<WhyAnswer::Start> start_of_nominated(const Words& words, const JobState& job) {
  const auto leaving = still_leaving(words.state(), job);
  if (leaving.empty()) return std::nullopt;
  Timestamp last;
  for (const JobState* victim : leaving) last = std::max(last, victim->attempt->stop->deadline);
  return WhyAnswer::Start{StartBound::kAtLatest, last,
                          "at " + words.time_and_span(last) + " at the latest: what has not left then is killed"};
}

// Returns true if the start of the job hangs on the end of others, and on nothing else.
bool waits_for_ends(ReasonCode code) {
  return is_room_reason(code) || is_quota_reason(code) || code == ReasonCode::kWouldDelayReservation;
}

std::optional<WhyAnswer::Start> start_time(const Words& words, const JobState& job, const Explanation& found) {
  const ReasonCode code = found.reason.code;
  if (found.answer.never) return std::nullopt;
  if (job.nomination) return start_of_nominated(words, job);
  if (code == ReasonCode::kEarliestStart) {
    return WhyAnswer::Start{StartBound::kNotBefore, job.not_before,
                            "not before " + words.time_and_span(job.not_before)};
  }
  const auto& all = found.remedies;
  const auto wait =
      std::find_if(all.begin(), all.end(), [](const Remedy& one) { return one.kind == RemedyKind::kWait; });
  if (wait != all.end()) return start_of(words, *wait);
  if (job.reservation && job.reservation->start > words.now()) {
    return WhyAnswer::Start{
        StartBound::kProbably, job.reservation->start,
        "probably at " + words.time_and_span(job.reservation->start) + ": nodes are kept free for the job from then"};
  }
  if (!waits_for_ends(code)) return std::nullopt;
  const auto& rows = words.state().running_table().rows();
  const bool open_end = std::any_of(rows.begin(), rows.end(), [](const auto& row) { return row.end.is_never(); });
  if (!open_end) return std::nullopt;
  return WhyAnswer::Start{StartBound::kUnknown, std::nullopt,
                          "not known: running jobs that it waits for have no time_limit and no estimate"};
}

void add_remedies(const Words& words, const JobState& job, Explanation& explanation) {
  for (const Remedy& remedy : explanation.remedies) {
    if (remedy.kind == RemedyKind::kWait) continue;  // when the job starts says that
    explanation.answer.remedies.push_back({std::string(name_of(remedy.kind)), remedy_by(remedy),
                                           remedy.taken_by.valid(), remedy_text(words, job, remedy),
                                           remedy_patch(job, remedy)});
  }
}

Explanation why_pending(State& state, const Words& words, const JobState& job) {
  Explanation explanation;
  WhyAnswer& answer = explanation.answer;
  const Cause cause = why_briefly(state, words, job);
  explanation.reason = cause.reason;
  answer.code = cause.reason.code;
  const bool impossible = state::impossible_limit(state, job.queue, job.spec).has_value();
  answer.never = is_never(answer.code) || impossible;
  answer.headline = headline_of(state, words, job, cause);
  if (impossible && !is_quota_reason(answer.code))
    answer.headline += " " + job_sentence(job.id, impossible_text(words, job));
  answer.details = further_facts(state, words, job, cause.reason);
  if (job.is_parent()) return explanation;
  if (!answer.never) answer.line = place_in_line(words, job);
  if (answer.line) answer.quota = quota_standing(words, job, answer.code);
  if (claims_help(answer.code) && !answer.never) {
    PreemptionText preemption = explain_preemption(state, words, job);
    answer.preemption = std::move(preemption.in_short);
    for (std::string& fact : preemption.more) answer.details.push_back(std::move(fact));
  }
  if (!job.nomination) explanation.remedies = smallest_remedies(state, job.id, words.now());
  answer.start = start_time(words, job, explanation);
  add_remedies(words, job, explanation);
  return explanation;
}

}  // namespace

std::string amount_text(std::size_t dim, std::int64_t amount) {
  if (amount == kUnlimited) return "unlimited";
  if (dim == kDimMemory)
    return amount % 1024 == 0 ? std::to_string(amount / 1024) + " GiB" : std::to_string(amount) + " MiB";
  if (dim == kDimGpuEquivalent) return thousandths(amount / 1000);
  return thousandths(amount);
}

std::string queue_name(const State& state, QueueId queue) {
  return queue == state.root() ? std::string("the cluster") : "queue " + state.queue(queue).path;
}

std::string quantity_text(const State& state, std::size_t dim, std::int64_t amount) {
  if (dim == kDimGpu || dim == kDimCpu || dim == kDimMemory) return counted(dim, amount);
  const std::string number = amount_text(dim, amount);
  const std::string what =
      dim == kDimGpuEquivalent ? "GPU-equivalent" : state.gpu_models()[dim - kDimFirstModel].name + " GPU";
  return number + " " + what + (number == "1" ? "" : "s");
}

std::string dim_name(const State& state, std::size_t dim) {
  if (dim == kDimGpu) return "gpus";
  if (dim == kDimCpu) return "cpus";
  if (dim == kDimMemory) return "memory";
  if (dim == kDimGpuEquivalent) return "gpu-equivalents";
  const std::size_t model = dim - kDimFirstModel;
  return model < state.gpu_models().size() ? "gpus." + state.gpu_models()[model].name : "?";
}

std::string job_sentence(JobId job, const std::string& predicate) {
  return "Job " + std::to_string(job.value()) + " " + predicate + ".";
}

Cause why_briefly(State& state, const Words& words, const JobState& job) {
  Cause cause;
  cause.reason = blocking_reason(state, job, words.now());
  cause.text = cause_text(state, words, job, cause.reason);
  return cause;
}

Explanation why(State& state, JobId id, Timestamp now, const Viewer& viewer) {
  const Words words(state, viewer, now);
  const JobState* job = state.job(id);
  Explanation explanation;
  if (job == nullptr) {
    explanation.answer.headline = "There is no job " + std::to_string(id.value()) + ".";
  } else if (!job->attempt) {
    state.pass_deadlines(now);
    explanation = why_pending(state, words, *job);
  } else if (job->attempt->stop) {
    explanation.answer.headline = job_sentence(id, stopping_text(words, *job));
  } else {
    explanation.answer.headline =
        job_sentence(id, "runs since " + words.time(job->attempt->started) + tasks_of_all(*job));
    if (job->is_elastic()) explanation.answer.details = explain_growth(state, words, *job);
  }
  explanation.answer.job = id;
  return explanation;
}

}  // namespace berth::explain
