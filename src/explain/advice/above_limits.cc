// Requests too high: pending jobs that ask for more than a limit of their queues allows even to a job that runs alone.

#include <map>

#include "explain/advice/rules.h"
#include "explain/text_list.h"
#include "state/impossible.h"

namespace berth::explain {

using state::JobState;
using state::State;

// One piece of advice for each queue whose limit rules jobs out, heaviest where it rules out most.
void advise_on_jobs_above_limits(Survey& survey) {
  const State& state = survey.state();
  struct Tally {
    std::vector<JobId> jobs;
    std::string example;  // of the first job
  };
  std::map<QueueId, Tally> tallies;
  for (const JobState* job : survey.jobs()) {
    if (job->attempt) continue;
    const auto limit = state::impossible_limit(state, job->queue, job->spec);
    if (!limit) continue;
    Tally& tally = tallies[limit->queue];
    if (tally.jobs.empty()) tally.example = state::text_of(state, *limit);
    tally.jobs.push_back(job->id);
  }
  for (const auto& [queue, tally] : tallies) {
    const std::size_t count = tally.jobs.size();
    Advice advice{
        AdviceCode::kJobsAboveLimit, AdviceSeverity::kWarning, AdviceAbout::kQueue, state.queue(queue).path, {}, {}};
    advice.text = jobs_words(tally.jobs) + " can never start as " + verb(count, "they are", "it is") + ": for job " +
                  std::to_string(tally.jobs.front().value()) + ", " + tally.example + ".";
    advice.text.front() = 'J';
    advice.remedy = "Raise the limit, or cancel and submit with less.";
    survey.say(std::move(advice), static_cast<std::int64_t>(count));
  }
}

}  // namespace berth::explain
