#include "explain/words.h"

#include <algorithm>

#include "explain/text_list.h"

namespace berth::explain {

using state::JobState;

bool Words::sees_job(JobId id) const {
  const JobState* job = state_.job(id);
  return viewer_.sees_everything() || (job != nullptr && viewer_.sees(state_, *job));
}

std::string Words::job(JobId id) const {
  return sees_job(id) ? "job " + std::to_string(id.value()) : "a job of another queue";
}

std::string Words::job_in_full(JobId id) const {
  const JobState* job = state_.job(id);
  if (job == nullptr || !sees_job(id)) return this->job(id);
  return this->job(id) + " (" + job->spec.name + ", queue " + state_.queue(job->queue).path + ")";
}

std::string Words::jobs(const std::vector<JobId>& jobs, std::size_t most) const {
  std::vector<JobId> named;
  std::copy_if(jobs.begin(), jobs.end(), std::back_inserter(named), [&](JobId id) { return sees_job(id); });
  const std::size_t hidden = jobs.size() - named.size();
  const std::size_t left_out = named.size() - std::min(named.size(), most);
  named.resize(named.size() - left_out);
  std::string text;
  if (!named.empty()) {
    text = (named.size() == 1 ? "job " : "jobs ") + listed(named, [](JobId id) { return std::to_string(id.value()); });
  }
  if (left_out > 0) text += " and " + std::to_string(left_out) + " more";
  if (hidden == 0) return text;
  return text + (text.empty() ? "" : " and ") +
         (hidden == 1 ? "a job of another queue" : std::to_string(hidden) + " jobs of other queues");
}

std::string Words::queue(QueueId queue) const {
  if (queue == state_.root()) return "the cluster";
  return viewer_.knows(state_, queue) ? "queue " + state_.queue(queue).path : "another queue";
}

std::string Words::in_queue(QueueId queue) const {
  return viewer_.knows(state_, queue) ? " (" + this->queue(queue) + ")" : std::string();
}

std::string Words::time(Timestamp at) const {
  constexpr std::int64_t kDayMs = 86'400'000;
  const std::string iso = to_iso8601(at);  // 2026-11-21T08:15:30.250Z
  const std::string clock = iso.substr(11, 8) + " UTC";
  return at.ms / kDayMs == now_.ms / kDayMs ? clock : iso.substr(0, 10) + " " + clock;
}

std::string Words::time_and_span(Timestamp at) const {
  return time(at) + (at > now_ ? " (in " + span_text(at - now_) + ")" : "");
}

std::string span_text(std::int64_t ms) {
  constexpr std::int64_t kMinute = 60;
  constexpr std::int64_t kHour = 60 * kMinute;
  constexpr std::int64_t kDay = 24 * kHour;
  const std::int64_t seconds = (ms + 999) / 1000;
  if (seconds < 2 * kMinute) return std::to_string(seconds) + " s";
  const std::int64_t minutes = (seconds + kMinute / 2) / kMinute;
  if (seconds < 2 * kHour) return std::to_string(minutes) + " min";
  if (seconds >= 2 * kDay) return std::to_string((seconds + kDay / 2) / kDay) + " days";
  return std::to_string(minutes / 60) + " h" + (minutes % 60 == 0 ? "" : " " + std::to_string(minutes % 60) + " min");
}

}  // namespace berth::explain
