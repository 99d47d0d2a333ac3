#include "daemon/job_identity_desk.h"

#include <spdlog/spdlog.h>

#include <boost/json/serialize.hpp>
#include <utility>

#include "identity/job_claims.h"
#include "identity/job_token.h"
#include "model/issuer_url.h"

namespace berth::daemon {

Result<void> JobIdentityDesk::check_url(const std::string& url) {
  if (url.empty()) return {};
  std::string flaw = flaw_of_issuer_url(url);
  if (flaw.empty() && url.ends_with('/')) flaw = "it ends with a slash";
  if (flaw.empty()) return {};
  return invalid("--url " + url.substr(0, 200) + ": " + flaw + "; give it as https://berth.example.com");
}

Result<std::unique_ptr<JobIdentityDesk>> JobIdentityDesk::open(const std::string& data_dir, std::string url,
                                                               Reader& reader, ServerClock& clock) {
  auto keys = identity::OwnKeys::load_or_create(data_dir + "/signing-keys.json", clock.now());
  if (!keys) return keys.error();
  return std::make_unique<JobIdentityDesk>(std::move(*keys), std::move(url), reader, clock);
}

JobIdentityDesk::JobIdentityDesk(identity::OwnKeys keys, std::string url, Reader& reader, ServerClock& clock)
    : reader_(reader),
      clock_(clock),
      keys_(std::move(keys)),
      job_secret_(keys_.job_secret()),
      url_(served_.get_future().share()),
      url_given_(!url.empty()) {
  if (url_given_) served_.set_value(std::move(url));
}

void JobIdentityDesk::serve_at(const std::string& url) {
  if (!std::exchange(url_given_, true)) served_.set_value(url);
}

Environment JobIdentityDesk::variables_of(const TaskKey& key) {
  return {{"BERTH_JOB_SERVER", url_.get()},
          {"BERTH_JOB_TOKEN", identity::job_token(job_secret_, {key.job, key.attempt})}};
}

std::string JobIdentityDesk::save_token_of(const TaskKey& key) const {
  return identity::save_token(job_secret_, {key.job, key.attempt});
}

std::optional<policy::Subject> JobIdentityDesk::find(std::string_view token) const {
  auto attempt = identity::read_job_token(job_secret_, token);
  const bool saves_only = !attempt;
  if (saves_only) attempt = identity::read_save_token(job_secret_, token);
  auto subject = attempt ? reader_.access().subject_of(attempt->job, attempt->attempt) : std::nullopt;
  if (subject) subject->saves_only = saves_only;
  return subject;
}

Result<api::JobIdentities::Token> JobIdentityDesk::issue(JobId id, const std::string& audience) {
  const std::string job_words = "job " + std::to_string(id.value());
  std::optional<identity::RunningJob> running;
  bool known = false;
  reader_.read([&](state::State& state, const billing::Meter&) {
    const state::JobState* job = state.job(id);
    known = job != nullptr;
    if (known && job->attempt)
      running = identity::RunningJob{id, job->attempt->number, state.queue(job->queue).path, job->spec.user};
  });
  if (!running && !known) return not_found("no such " + job_words);
  if (!running) return conflict(job_words + " does not run, so it has nothing to show");
  const auto token_id = identity::random_hex();
  if (!token_id) return token_id.error();
  const Timestamp now = clock_.now();
  const std::string claims =
      boost::json::serialize(identity::job_claims(*running, url_.get(), audience, *token_id, now));
  const std::lock_guard lock(mutex_);
  auto token = keys_.sign(claims);
  if (!token) return token.error();
  return Token{std::move(*token), now + identity::kJobTokenLifetimeMs};
}

std::string JobIdentityDesk::key_set() {
  const Timestamp now = clock_.now();
  const std::lock_guard lock(mutex_);
  return keys_.published(now);
}

Result<std::string> JobIdentityDesk::rotate(bool withdraw, const std::string& by) {
  const std::lock_guard lock(mutex_);
  auto key = keys_.rotate(clock_.now(), withdraw);
  if (key) {
    spdlog::info("{} rotated the signing keys: {} signs now, the earlier ones are {}", by, *key,
                 withdraw ? "withdrawn" : "public until their tokens have ended");
  }
  return key;
}

}  // namespace berth::daemon
