#include "daemon/job_news.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "daemon/history_codec.h"
#include "explain/why.h"

namespace berth::daemon {
namespace {

constexpr std::chrono::seconds kPause{1};
// One round holds the reader at most about this long.
constexpr std::chrono::milliseconds kLongestRound{100};

constexpr const char* kOfNamespace = "kubernetes:";

// What all may read that see the pods of the job: the other jobs of their namespace, and not those that a person has
// elsewhere.
explain::Viewer reader_of(const state::JobState& job) {
  explain::Viewer viewer = explain::Viewer::sees_nothing();
  viewer.add(job.queue, job.spec.user.starts_with(kOfNamespace) ? job.spec.user : kOfNamespace);  // alone: nobody
  return viewer;
}

// Returns the key under which a backend has submitted the job; empty if none has. Logs of earlier versions have it in
// the comment, of jobs whose user is no name that a token could have.
std::string source_key(const JobSpec& spec) {
  if (!spec.source.cell.empty()) return spec.source.key;
  return spec.user.starts_with(kOfNamespace) && spec.comment.starts_with("kube/") ? spec.comment : std::string();
}

std::string explanation(const WhyAnswer& answer) {
  std::string text = answer.headline;
  if (!answer.remedies.empty()) text += " It would start now if " + answer.remedies.front().text + ".";
  return text;
}

}  // namespace

JobNewsDesk::JobNewsDesk(Reader& reader, const store::Log& log, backend::Backend& backend, ServerClock& clock)
    : reader_(reader), log_(log), backend_(backend), clock_(clock) {
  std::vector<std::pair<std::string, JobId>> known;
  reader_.read([&](state::State& state, const billing::Meter&) {
    state.jobs().for_each([&](const state::JobState& job) {
      if (std::string key = source_key(job.spec); !key.empty()) known.emplace_back(std::move(key), job.id);
    });
  });
  for (const auto& [key, id] : known) {
    jobs_.try_emplace(id);
    backend_.learn(backend::JobAccepted{key, id});
  }
  watch_ = reader_.watch([this](const api::LiveEvent& event) {
    if (const auto* over = std::get_if<JobFinished>(&event.record.event)) finished(*over);
  });
  thread_ = std::thread([this] { run(); });
}

JobNewsDesk::~JobNewsDesk() {
  reader_.unwatch(watch_);
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stopped_.notify_one();
  thread_.join();
}

Answer JobNewsDesk::answer_for(std::string key) {
  return [this, key = std::move(key)](const Result<control::Reply>& reply) {
    if (reply) {
      accepted(key, *reply);
    } else {
      backend_.learn(backend::JobRefused{key, reply.error().message});
    }
  };
}

void JobNewsDesk::accepted(const std::string& key, const control::Reply& reply) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.try_emplace(reply.job);
  }
  backend_.learn(backend::JobAccepted{key, reply.job});
}

void JobNewsDesk::finished(const JobFinished& event) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.erase(event.job);
  }
  backend_.learn(backend::JobOver{event.job, event.outcome == Outcome::kCancelled});
}

void JobNewsDesk::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    lock.unlock();
    explain_some();
    lock.lock();
    stopped_.wait_for(lock, kPause, [this] { return stopping_; });
  }
}

// Jobs that were never explained come first, then the others in turn.
void JobNewsDesk::explain_some() {
  std::vector<std::pair<JobId, Told>> jobs;
  {
    const std::lock_guard lock(mutex_);
    jobs.assign(jobs_.begin(), jobs_.end());
  }
  if (jobs.empty()) return;
  const auto turn = std::find_if(jobs.begin(), jobs.end(), [this](const auto& one) { return one.first >= next_; });
  std::rotate(jobs.begin(), turn, jobs.end());
  std::stable_partition(jobs.begin(), jobs.end(), [](const auto& one) { return one.second.at == Timestamp{}; });
  std::vector<JobId> gone;
  std::vector<std::pair<JobId, Told>> told;
  reader_.read([&](state::State& state, const billing::Meter&) {
    const Timestamp now = std::max(state.now(), clock_.now());
    const auto end = std::chrono::steady_clock::now() + kLongestRound;
    std::size_t explained = 0;
    for (auto& [id, before] : jobs) {
      const state::JobState* job = state.job(id);
      if (job == nullptr) gone.push_back(id);
      const bool pends =
          job != nullptr && job->phase == JobPhase::kPending && now - job->waiting_since >= kWaitsAfterMs;
      if (!pends || explained == kMostPerSecond || std::chrono::steady_clock::now() > end) continue;
      ++explained;
      next_ = JobId(id.value() + 1);
      const explain::Explanation found = explain::why(state, id, now, reader_of(*job));
      std::string text = explanation(found.answer);
      const bool same = before.code == found.reason.code && now - before.at < kSameReasonMs;
      if (before.at != Timestamp{} && (same || text == before.text)) continue;
      told.emplace_back(id, Told{found.reason.code, std::move(text), now});
    }
  });
  tell(told, gone);
}

void JobNewsDesk::tell(std::vector<std::pair<JobId, Told>>& told, const std::vector<JobId>& gone) {
  for (auto& [id, one] : told) {
    backend_.learn(backend::JobWaits{id, one.text});
    const std::lock_guard lock(mutex_);
    if (const auto found = jobs_.find(id); found != jobs_.end()) found->second = std::move(one);
  }
  // They finished before an earlier run of this server ended, or before their acceptance was told.
  for (const JobId id : gone) {
    {
      const std::lock_guard lock(mutex_);
      jobs_.erase(id);
    }
    backend_.learn(backend::JobOver{id, was_cancelled(id)});
  }
}

bool JobNewsDesk::was_cancelled(JobId id) const {
  store::HistoryQuery query;
  query.job_id = id.value();
  query.limit = 1;
  const auto rows = log_.history(query);
  if (!rows || rows->empty()) return false;
  const auto job = to_finished_job(rows->front());
  return job && job->how.outcome == Outcome::kCancelled;
}

}  // namespace berth::daemon
