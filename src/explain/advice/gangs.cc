// Advice about gangs submitted as single jobs: one task each, told by hand that they belong together. Some may run and
// occupy their GPUs while the others wait.

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "base/codec.h"
#include "explain/advice/rules.h"
#include "model/document/quantity.h"

namespace berth::explain {

using state::JobState;
using state::State;

namespace {

constexpr std::int64_t kTogetherMs = 600'000;  // submitted within so long of the first

// Variables of the environment that torchrun sets and reads, and the words of its options.
constexpr std::array<std::string_view, 7> kTold = {"WORLD_SIZE", "RANK",        "NNODES",       "NODE_RANK",
                                                   "GROUP_RANK", "MASTER_ADDR", "RDZV_ENDPOINT"};

using Told = std::map<std::string, std::string>;

// "--node-rank" is NODE_RANK; a word that is no option is a variable as it stands.
std::string variable_of(std::string_view word) {
  if (!word.starts_with("--")) return std::string(word);
  std::string name(word.substr(2));
  for (char& letter : name) {
    if (letter == '-') letter = '_';
    if (letter >= 'a' && letter <= 'z') letter = static_cast<char>(letter - 'a' + 'A');
  }
  return name;
}

void note(Told& told, const std::string& name, std::string_view value) {
  if (std::find(kTold.begin(), kTold.end(), name) != kTold.end()) told.emplace(name, value);
}

// NAME=VALUE, --option=VALUE and --option VALUE among the words of a command, which may be one line for a shell; the
// value may stand in quotes.
void read_words(const std::vector<std::string>& command, Told& told) {
  constexpr std::string_view kBetween = " \t\n\"';";
  std::string option;
  for (const std::string& line : command) {
    for (std::size_t from = line.find_first_not_of(kBetween); from != std::string::npos;) {
      const std::size_t to = std::min(line.find_first_of(kBetween, from), line.size());
      const std::string_view word = std::string_view(line).substr(from, to - from);
      if (!option.empty()) note(told, option, word);
      option.clear();
      const std::size_t equals = std::min(word.find('='), word.size());
      if (equals < word.size() || word.starts_with("--")) option = variable_of(word.substr(0, equals));
      if (equals + 1 < word.size()) note(told, std::exchange(option, {}), word.substr(equals + 1));
      from = line.find_first_not_of(kBetween, to);
    }
  }
}

// Also the least of a range, "2:4".
std::optional<std::int64_t> number_in(const Told& told, const char* name) {
  const auto found = told.find(name);
  if (found == told.end()) return std::nullopt;
  const std::string_view text = std::string_view(found->second).substr(0, found->second.find(':'));
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// The membership in a gang that the command or environment of a job states.
struct ByHand {
  std::int64_t size = 0;             // number of parts
  std::optional<std::int64_t> rank;  // number of this part; none: assigned by the rendezvous
  std::string meets_at;
};

std::optional<ByHand> by_hand(const TaskGroup& group) {
  Told told;
  for (const auto& [name, value] : group.env) note(told, name, value);
  read_words(group.command, told);
  const bool meets = told.contains("RDZV_ENDPOINT");
  const std::string at = meets ? told["RDZV_ENDPOINT"] : told.contains("MASTER_ADDR") ? told["MASTER_ADDR"] : "";
  constexpr std::array<std::pair<const char*, const char*>, 4> kSizesAndRanks = {
      {{"NNODES", "NODE_RANK"}, {"NNODES", "GROUP_RANK"}, {"WORLD_SIZE", "RANK"}, {"WORLD_SIZE", "NODE_RANK"}}};
  for (const auto& [size_name, rank_name] : kSizesAndRanks) {
    const auto size = number_in(told, size_name);
    const auto rank = number_in(told, rank_name);
    if (size && rank && *size >= 2 && *rank >= 0 && *rank < *size) return ByHand{*size, rank, at};
  }
  const auto nodes = number_in(told, "NNODES");
  if (meets && nodes && *nodes >= 2) return ByHand{*nodes, std::nullopt, at};
  return std::nullopt;
}

bool is_of_one_task(const JobState& job) {
  const JobSpec& spec = job.spec;
  return spec.kind == JobKind::kGang && !job.parent.valid() && spec.groups.size() == 1 && spec.groups[0].count == 1 &&
         spec.groups[0].launch == Launch::kPerTask;
}

struct GangPart {
  const JobState* job = nullptr;
  std::optional<std::int64_t> rank;
};

// Equal parts of one size with one rendezvous, submitted together.
void say_of(Survey& survey, const std::vector<GangPart>& parts, std::int64_t size) {
  std::set<std::int64_t> ranks;
  for (const GangPart& part : parts) {
    if (part.rank) ranks.insert(*part.rank);
  }
  if (parts.size() < 2 || (parts.front().rank && ranks.size() < 2)) return;
  const JobState& first = *parts.front().job;
  std::vector<JobId> jobs;
  std::size_t running = 0;
  std::int64_t held_milli = 0;
  for (const GangPart& part : parts) {
    jobs.push_back(part.job->id);
    if (!part.job->attempt) continue;
    ++running;
    for (const state::Charge& charge : part.job->attempt->charges) held_milli += charge.amounts[kDimGpu];
  }
  const std::size_t waiting = parts.size() - running;
  Advice advice{AdviceCode::kGangByHand,
                AdviceSeverity::kNote,
                AdviceAbout::kQueue,
                survey.state().queue(first.queue).path,
                {},
                {}};
  if (running > 0 && waiting > 0) advice.severity = AdviceSeverity::kWarning;
  const std::int64_t within_s = (parts.back().job->submitted - first.submitted + 999) / 1000;
  advice.text = first.spec.user + " has submitted " + jobs_words(jobs) + " of one task each within " +
                document::duration_text(std::max<std::int64_t>(1, within_s)) +
                " whose commands say that they are parts of one gang of " + std::to_string(size) + ": " +
                std::to_string(running) + verb(running, " run", " runs") +
                (running > 0 ? " and " + verb(running, "occupy ", "occupies ") + gpus_words(held_milli) : "") + ", " +
                std::to_string(waiting) + verb(waiting, " wait.", " waits.");
  advice.remedy =
      "Submit them as one job with `tasks` and `launch: per-gpu` or `torchrun`: all of it starts or none, and berth "
      "tells the ranks.";
  survey.say(std::move(advice), held_milli);
}

}  // namespace

// Two or more jobs of one task each, of one user in one queue, submitted within ten minutes of the first, with the same
// request, the same stated size of at least 2 and the same rendezvous; at least two of them with different ranks below
// that size, or all without a rank but with a rendezvous.
void advise_on_gangs(Survey& survey) {
  using Key = std::tuple<QueueId, std::string, std::int64_t, std::string, std::string, std::string, bool>;
  std::map<Key, std::vector<GangPart>> alike;
  for (const JobState* job : survey.jobs()) {
    if (!is_of_one_task(*job)) continue;
    const TaskGroup& group = job->spec.groups[0];
    if (const auto told = by_hand(group)) {
      alike[{job->queue, job->spec.user, told->size, told->meets_at, encode(group.request), group.image,
             told->rank.has_value()}]
          .push_back({job, told->rank});
    }
  }
  for (auto& [key, parts] : alike) {
    std::sort(parts.begin(), parts.end(), [](const GangPart& a, const GangPart& b) {
      return std::tuple(a.job->submitted, a.job->id) < std::tuple(b.job->submitted, b.job->id);
    });
    for (std::size_t from = 0; from < parts.size();) {
      std::size_t to = from;
      std::vector<GangPart> together;
      while (to < parts.size() && parts[to].job->submitted - parts[from].job->submitted <= kTogetherMs) {
        together.push_back(parts[to++]);
      }
      say_of(survey, together, std::get<2>(key));
      from = to;
    }
  }
}

}  // namespace berth::explain
