// Advice about missing quotas: leaf queues with neither guarantee nor max, a user with most of a queue, and queues with
// weight 0.

#include <algorithm>
#include <map>
#include <utility>

#include "explain/advice/rules.h"
#include "explain/text_list.h"
#include "model/document/quantity.h"

namespace berth::explain {

using state::JobState;
using state::QueueState;
using state::State;

namespace {

bool has_quota(const State& state, QueueId leaf) {
  const std::vector<QueueId> path = state.path_to(leaf);
  return std::any_of(path.begin(), path.end(), [&](QueueId id) {
    const QueueState& queue = state.queue(id);
    return queue.configured.stated != 0 || queue.max != Amounts::unlimited();
  });
}

// Leaf queues without a guarantee or a ceiling on the way to the root that have jobs, where another leaf has some, too.
void advise_on_leaves(Survey& survey) {
  const State& state = survey.state();
  std::size_t in_use = 0;
  std::int64_t wait = 0;
  std::vector<std::string> without;
  for (const QueueState& queue : state.queues()) {
    if (queue.removed || !queue.is_leaf() || queue.pending_below + queue.running_below == 0) continue;
    ++in_use;
    if (has_quota(state, queue.id)) continue;
    without.push_back(queue.path);
    wait += queue.pending_below;
  }
  if (in_use < 2 || without.empty()) return;
  std::sort(without.begin(), without.end());
  constexpr std::size_t kNamed = 5;
  std::vector<std::string> named(without.begin(),
                                 without.begin() + static_cast<std::ptrdiff_t>(std::min(kNamed, without.size())));
  if (named.size() < without.size()) named.push_back(std::to_string(without.size() - named.size()) + " more");
  survey.say({AdviceCode::kQueuesWithoutQuota,
              wait > 0 ? AdviceSeverity::kWarning : AdviceSeverity::kNote,
              AdviceAbout::kCluster,
              {},
              std::to_string(without.size()) + " of " + std::to_string(in_use) + " leaf queues with jobs " +
                  verb(without.size(), "have", "has") + " neither a guarantee nor a max on the way to the root: " +
                  listed(named, [](const std::string& word) { return word; }) +
                  ". What runs there is borrowed and may be reclaimed, and nothing bounds it; " + std::to_string(wait) +
                  " of their jobs " + verb(static_cast<std::size_t>(wait), "wait.", "waits."),
              "Give them, or queues above them, `guaranteed` for what they need and `max` for what they may take."},
             static_cast<std::int64_t>(without.size()));
}

struct User {
  std::int64_t gpu_milli = 0;  // of its running jobs
  std::size_t waiting = 0;     // its jobs with GPUs
};

bool limits_users(const State& state, QueueId leaf) {
  const std::vector<QueueId> path = state.path_to(leaf);
  return std::any_of(path.begin(), path.end(), [&](QueueId id) {
    return state.queue(id).max_jobs_per_user != kUnlimited || state.queue(id).max_gpu_milli_per_user != kUnlimited;
  });
}

std::map<QueueId, std::map<std::string, User>> users_of_leaves(const Survey& survey) {
  std::map<QueueId, std::map<std::string, User>> users;
  for (const JobState* job : survey.jobs()) {
    User& user = users[job->queue][job->spec.user];
    const bool with_gpus = std::any_of(job->spec.groups.begin(), job->spec.groups.end(),
                                       [](const TaskGroup& group) { return group.request.gpus > 0; });
    if (job->in_pending && with_gpus) ++user.waiting;
    if (!job->attempt) continue;
    for (const state::Charge& charge : job->attempt->charges) user.gpu_milli += charge.amounts[kDimGpu];
  }
  return users;
}

// A user with more than half of the GPUs of a leaf queue while jobs of other users wait there, and no limit per user on
// the way to the root.
void advise_on_users(Survey& survey) {
  const State& state = survey.state();
  for (const auto& [leaf, users] : users_of_leaves(survey)) {
    std::int64_t all = 0;
    std::size_t waiting = 0;
    const auto most = std::max_element(users.begin(), users.end(), [](const auto& a, const auto& b) {
      return a.second.gpu_milli < b.second.gpu_milli;
    });
    std::size_t others = 0;
    for (const auto& user : users) {
      all += user.second.gpu_milli;
      if (user.first == most->first || user.second.waiting == 0) continue;
      waiting += user.second.waiting;
      ++others;
    }
    if (most->second.gpu_milli * 2 <= all || waiting == 0 || limits_users(state, leaf)) continue;
    survey.say({AdviceCode::kUserWithoutLimit, AdviceSeverity::kWarning, AdviceAbout::kQueue, state.queue(leaf).path,
                most->first + " has " + document::milli_text(most->second.gpu_milli) + " of the " +
                    amount_words(state, kDimGpu, all) + " that the queue has, while " +
                    counted(static_cast<std::int64_t>(waiting), "job") + " of " +
                    counted(static_cast<std::int64_t>(others), "other user") + " " + verb(waiting, "wait", "waits") +
                    ", and no limit per user holds on the way to the root.",
                "Set `max_gpus_per_user` or `max_jobs_per_user` of the queue or one above it."},
               most->second.gpu_milli);
  }
}

constexpr std::int64_t kLongMs = 86'400'000;

// Queues of weight 0 below which jobs wait; a warning where the first has for a day and nothing is guaranteed.
void advise_on_weights(Survey& survey) {
  const State& state = survey.state();
  std::map<QueueId, Timestamp> since;
  for (const JobState* job : survey.jobs()) {
    if (!job->in_pending) continue;
    for (const QueueId id : state.path_to(job->queue)) {
      if (state.queue(id).weight > 0) continue;
      Timestamp& first = since.try_emplace(id, job->waiting_since).first->second;
      first = std::min(first, job->waiting_since);
    }
  }
  for (const auto& [id, first] : since) {
    const QueueState& queue = state.queue(id);
    const std::int64_t waited_ms = std::max<std::int64_t>(0, survey.now() - first);
    const bool guaranteed = queue.configured.stated != 0;
    survey.say(
        {AdviceCode::kWeightZeroWaits,
         waited_ms >= kLongMs && !guaranteed ? AdviceSeverity::kWarning : AdviceSeverity::kNote, AdviceAbout::kQueue,
         queue.path,
         counted(queue.pending_below, "job") + verb(static_cast<std::size_t>(queue.pending_below), " wait", " waits") +
             " there, the first for " + document::duration_text(waited_ms / 1000) + ", and its weight is 0: " +
             (guaranteed ? "beyond its guarantee it gets" : "it gets") + " only what no other queue wants.",
         "Give it a `weight` above 0, or `guaranteed` for what it needs, unless it is meant to wait."},
        queue.pending_below);
  }
}

}  // namespace

void advise_on_quotas(Survey& survey) {
  advise_on_leaves(survey);
  advise_on_users(survey);
  advise_on_weights(survey);
}

}  // namespace berth::explain
