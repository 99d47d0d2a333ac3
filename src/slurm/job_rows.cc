#include "slurm/job_rows.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <set>
#include <utility>

#include "slurm/letter_case.h"

namespace berth::slurm {
namespace {

using cli::Json;

constexpr std::size_t kAskedOneByOne = 20;  // of more numbers the whole list is cheaper
constexpr std::size_t kLongestNumber = 31;  // Slurm's own limit of a shown id

struct Word {
  std::string_view own;
  std::string_view slurm;
};

struct StateWord {
  std::string_view name;
  std::string_view compact;
};

constexpr std::array kStates{
    StateWord{"PENDING", "PD"},       StateWord{"RUNNING", "R"},      StateWord{"SUSPENDED", "S"},
    StateWord{"COMPLETED", "CD"},     StateWord{"CANCELLED", "CA"},   StateWord{"FAILED", "F"},
    StateWord{"TIMEOUT", "TO"},       StateWord{"NODE_FAIL", "NF"},   StateWord{"PREEMPTED", "PR"},
    StateWord{"BOOT_FAIL", "BF"},     StateWord{"DEADLINE", "DL"},    StateWord{"OUT_OF_MEMORY", "OOM"},
    StateWord{"COMPLETING", "CG"},    StateWord{"CONFIGURING", "CF"}, StateWord{"RESIZING", "RS"},
    StateWord{"RESV_DEL_HOLD", "RD"}, StateWord{"REQUEUED", "RQ"},    StateWord{"REQUEUE_FED", "RF"},
    StateWord{"REQUEUE_HOLD", "RH"},  StateWord{"REVOKED", "RV"},     StateWord{"SIGNALING", "SI"},
    StateWord{"SPECIAL_EXIT", "SE"},  StateWord{"STAGE_OUT", "SO"},   StateWord{"STOPPED", "ST"}};

constexpr std::array kOutcomes{Word{"succeeded", "COMPLETED"}, Word{"failed", "FAILED"},
                               Word{"preempted", "PREEMPTED"}, Word{"node-lost", "NODE_FAIL"},
                               Word{"time-limit", "TIMEOUT"},  Word{"cancelled", "CANCELLED"},
                               Word{"start-failed", "FAILED"}};

// docs/reasons.md has the same words.
constexpr std::array kReasons{Word{"none", "None"},
                              Word{"held", "JobHeldUser"},
                              Word{"earliest-start", "BeginTime"},
                              Word{"dependency", "Dependency"},
                              Word{"dependency-never", "DependencyNeverSatisfied"},
                              Word{"array-limit", "JobArrayTaskLimit"},
                              Word{"quota-max", "AssocGrpGRES"},
                              Word{"user-limit", "QOSMaxGRESPerUser"},
                              Word{"budget", "AssocGrpBillingMinutes"},
                              Word{"grant", "AssocGrpBillingMinutes"},
                              Word{"behind-queue-head", "Priority"},
                              Word{"would-delay-reservation", "Priority"},
                              Word{"maintenance", "ReqNodeNotAvail"},
                              Word{"no-eligible-node", "BadConstraints"},
                              Word{"containers", "BadConstraints"},
                              Word{"never-fits", "PartitionConfig"}};

std::string_view compact_of(std::string_view state) {
  for (const StateWord& one : kStates) {
    if (one.name == state) return one.compact;
  }
  return state;
}

std::string state_of(const Json& job) {
  const std::string phase = cli::show(job, "phase");
  if (phase == "pending") return "PENDING";
  if (phase == "running") return "RUNNING";
  if (phase == "stopping") return "COMPLETING";
  const std::string outcome = cli::show(job, "outcome");
  for (const Word& one : kOutcomes) {
    if (one.own == outcome) return std::string(one.slurm);
  }
  return "FAILED";
}

std::string reason_of(const Json& job, const std::string& state) {
  if (state == "FAILED") return cli::show(job, "outcome") == "start-failed" ? "JobLaunchFailure" : "NonZeroExitCode";
  if (state == "TIMEOUT") return "TimeLimit";
  if (state != "PENDING") return "None";
  const std::string reason = cli::show(job, "reason");
  if (reason.empty()) return "None";
  for (const Word& one : kReasons) {
    if (one.own == reason) return std::string(one.slurm);
  }
  return "Resources";
}

std::optional<Timestamp> time_in(const Json& job, std::string_view name) {
  return cli::has(job, name) ? from_iso8601(cli::show(job, name)) : std::nullopt;
}

JobRow row_of(const Json& job, Timestamp now) {
  JobRow row;
  row.answer = std::make_shared<const Json>(job);
  row.now = now;
  row.id = cli::integer(job, "id");
  row.state = state_of(job);
  row.compact = compact_of(row.state);
  row.reason = reason_of(job, row.state);
  row.submitted = time_in(job, "submitted");
  row.ended = time_in(job, "finished");
  // A job that waits again is shown as one that has not run; one that never ran has no start.
  if (row.state != "PENDING") row.started = time_in(job, "started");
  return row;
}

std::optional<ArraySpec> array_of(const Json& job) {
  return parse_array(cli::show(cli::at(job, "labels"), "slurm.array"));
}

std::int64_t element_number_of(const Json& job, std::int64_t index) {
  const auto spec = array_of(job);
  return spec ? spec->number(index) : index;
}

std::int64_t running_limit(const Json& full) {
  return cli::integer(cli::at(cli::at(full, "spec"), "array"), "running");
}

// Elements that wait: those whose jobs wait, and those that have no job yet.
std::vector<std::int64_t> waiting_elements(const Json& parent, const std::vector<Json>& children) {
  const Json& counts = cli::at(parent, "children");
  const auto spec = array_of(parent);
  const auto number = [&](std::int64_t index) { return spec ? spec->number(index) : index; };
  std::vector<std::int64_t> numbers;
  for (const Json& child : children) {
    if (cli::integer(child, "parent") == cli::integer(parent, "id") && cli::show(child, "phase") == "pending")
      numbers.push_back(number(cli::integer(child, "index")));
  }
  const std::int64_t begun =
      cli::integer(counts, "running") + cli::integer(counts, "waiting") + cli::integer(counts, "ended");
  for (std::int64_t i = begun; i < cli::integer(counts, "total"); ++i) numbers.push_back(number(i));
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

class Rows {
 public:
  Rows(Shell& shell, const RowQuery& query, Timestamp now) : shell_(shell), query_(query), now_(now) {}

  Result<std::vector<JobRow>> of(const std::vector<Json>& jobs) {
    for (const Json& job : jobs) {
      const std::string kind = cli::show(job, "kind");
      if (kind == "service") continue;  // its replicas are jobs
      if (auto added = kind == "array" ? add_set(job, jobs) : add_job(job); !added) return added.error();
    }
    return std::move(rows_);
  }

 private:
  Result<Json> full(const Json& job) { return cli::get(shell_.session, "/v1/jobs/" + cli::show(job, "id")); }

  Result<void> add_set(const Json& parent, const std::vector<Json>& jobs) {
    JobRow row = row_of(parent, now_);
    row.array = row.id;
    row.is_set = true;
    row.elements = waiting_elements(parent, jobs);
    if (row.elements.empty()) return {};
    const auto whole = full(parent);
    if (!whole) return whole.error();
    row.running_at_once = running_limit(*whole);
    if (query_.in_full) row.answer = std::make_shared<const Json>(*whole);
    const std::int64_t running = cli::integer(cli::at(parent, "children"), "running");
    if (!row.is_over()) {
      row.state = "PENDING";
      row.compact = "PD";
      row.started.reset();
      row.reason = waiting_reason(parent, jobs);
      if (row.running_at_once > 0 && running >= row.running_at_once) row.reason = "JobArrayTaskLimit";
    }
    add_elements(std::move(row));
    return {};
  }

  // One row for all of them, or one for each that is asked for by itself.
  void add_elements(JobRow row) {
    const auto& numbers = query_.numbers;
    const bool whole = numbers.empty() || std::any_of(numbers.begin(), numbers.end(), [&](const JobNumber& number) {
                         return number.id == row.id && !number.element;
                       });
    if (whole && !query_.each_element) {
      rows_.push_back(std::move(row));
      return;
    }
    const std::vector<std::int64_t> elements = std::exchange(row.elements, {});
    row.is_set = false;
    for (const std::int64_t element : elements) {
      const bool named = whole || std::any_of(numbers.begin(), numbers.end(), [&](const JobNumber& number) {
                           return number.id == row.id && number.element == element;
                         });
      if (!named) continue;
      rows_.push_back(row);
      rows_.back().elements = {element};
    }
  }

  static std::string waiting_reason(const Json& parent, const std::vector<Json>& jobs) {
    if (cli::is_true(parent, "held")) return "JobHeldUser";
    for (const Json& job : jobs) {
      if (cli::integer(job, "parent") == cli::integer(parent, "id") && cli::show(job, "phase") == "pending")
        return reason_of(job, "PENDING");
    }
    return reason_of(parent, "PENDING");
  }

  Result<void> add_job(const Json& job) {
    JobRow row = row_of(job, now_);
    if (cli::has(job, "parent") && cli::show(job, "kind") != "service") {
      row.array = cli::integer(job, "parent");
      row.elements = {element_number_of(job, cli::integer(job, "index"))};
      if (row.state == "PENDING") return {};  // in the row of those that wait
    }
    if (query_.in_full) {
      if (auto filled = fill_row(shell_, row); !filled) return filled;
    }
    rows_.push_back(std::move(row));
    return {};
  }

  Shell& shell_;
  const RowQuery& query_;
  Timestamp now_;
  std::vector<JobRow> rows_;
};

Result<std::vector<Json>> all_jobs(Shell& shell, const RowQuery& query) {
  return all_items(shell.session, cli::query("/v1/jobs", {{"limit", "500"},
                                                          {"finished", query.finished ? "true" : ""},
                                                          {"since", query.since},
                                                          {"user", query.user}}));
}

// The jobs of these numbers with the elements of arrays among them; one that is not there is left out.
Result<std::vector<Json>> jobs_by_number(Shell& shell, const RowQuery& query) {
  std::vector<Json> jobs;
  std::set<std::int64_t> asked;
  for (const JobNumber& number : query.numbers) {
    if (!asked.insert(number.id).second) continue;
    const std::string id = std::to_string(number.id);
    auto job = cli::get(shell.session, "/v1/jobs/" + id);
    if (!job && job.error().code == ErrorCode::kNotFound) continue;
    if (!job) return job.error();
    if (!query.finished && cli::show(*job, "phase") == "finished") continue;
    if (cli::show(*job, "kind") == "array") {
      const auto elements = all_items(
          shell.session, cli::query("/v1/jobs", {{"limit", "500"},
                                                 {"finished", query.finished ? "true" : ""},
                                                 {"since", query.finished ? cli::show(*job, "submitted") : ""},
                                                 {"parent", id}}));
      if (!elements) return elements.error();
      jobs.insert(jobs.end(), elements->begin(), elements->end());
    }
    jobs.push_back(std::move(*job));
  }
  return jobs;
}

}  // namespace

std::string JobRow::element_text() const {
  if (elements.empty()) return "N/A";
  return element_set(elements) + (is_set && running_at_once > 0 ? "%" + std::to_string(running_at_once) : "");
}

std::string JobRow::number() const {
  if (array == 0) return std::to_string(id);
  const std::string text = std::to_string(array) + (is_set ? "_[" + element_text() + "]" : "_" + element_text());
  return text.substr(0, kLongestNumber);
}

std::int64_t JobRow::seconds() const {
  if (!started) return 0;
  return std::max<std::int64_t>(0, ((ended ? *ended : now) - *started) / 1000);
}

std::int64_t JobRow::limit_minutes() const {
  const std::int64_t seconds = cli::integer(job(), "time_limit_s");
  return seconds > 0 ? (seconds + 59) / 60 : -1;
}

std::string JobRow::partition() const {
  const std::string pool = text("pool");
  return pool.empty() ? "any" : pool;
}

std::string JobRow::qos() const {
  const std::string priority = text("priority_class");
  return priority.empty() ? "normal" : priority;
}

std::vector<std::string> JobRow::nodes() const {
  std::vector<std::string> names;
  if (state == "PENDING" || is_set) return names;
  for (const Json& node : cli::items(job(), "nodes")) names.push_back(cli::show(node));
  return names;
}

std::string JobRow::variable(std::string_view name) const { return cli::show(cli::at(spec(), "env"), name); }

std::string JobRow::exit_status() const {
  if (state == "CANCELLED" || state == "TIMEOUT" || state == "PREEMPTED" || !is_over()) return "0:0";
  const std::int64_t code = cli::integer(job(), "code");
  return code > 128 ? "0:" + std::to_string(code - 128) : std::to_string(code) + ":0";
}

Result<std::vector<JobRow>> job_rows(Shell& shell, const RowQuery& query) {
  const auto jobs = query.numbers.empty() || query.numbers.size() > kAskedOneByOne ? all_jobs(shell, query)
                                                                                   : jobs_by_number(shell, query);
  if (!jobs) return jobs.error();
  return Rows(shell, query, shell.now).of(*jobs);
}

Result<void> fill_row(Shell& shell, JobRow& row) {
  auto whole = cli::get(shell.session, "/v1/jobs/" + std::to_string(row.id));
  if (!whole) return whole.error();
  row.answer = std::make_shared<const Json>(std::move(*whole));
  return {};
}

Result<JobRow> job_row(Shell& shell, std::int64_t id) {
  const auto job = cli::get(shell.session, "/v1/jobs/" + std::to_string(id));
  if (!job) return job.error();
  JobRow row = row_of(*job, shell.now);
  if (cli::has(*job, "parent")) {
    row.array = cli::integer(*job, "parent");
    row.elements = {element_number_of(*job, cli::integer(*job, "index"))};
  }
  if (cli::show(*job, "kind") == "array") {
    const auto children = all_items(shell.session, "/v1/jobs?limit=500&parent=" + std::to_string(id));
    row.array = id;
    row.is_set = true;
    row.running_at_once = running_limit(*job);
    row.elements = waiting_elements(*job, children ? *children : std::vector<Json>());
  }
  return row;
}

std::optional<JobNumber> job_number(std::string_view text) {
  const auto digits = [](std::string_view part) -> std::optional<std::int64_t> {
    if (part.empty() || part.size() > 18 || part.find_first_not_of("0123456789") != std::string_view::npos)
      return std::nullopt;
    return std::stoll(std::string(part));
  };
  const std::size_t mark = text.find('_');
  const auto id = digits(text.substr(0, mark));
  if (!id) return std::nullopt;
  if (mark == std::string_view::npos) return JobNumber{*id, std::nullopt};
  const auto element = digits(text.substr(mark + 1));
  if (!element) return std::nullopt;
  return JobNumber{*id, element};
}

bool is_meant(const JobRow& row, const JobNumber& number) {
  if (!number.element) return row.id == number.id || row.array == number.id;
  return row.array == number.id &&
         std::find(row.elements.begin(), row.elements.end(), *number.element) != row.elements.end();
}

bool is_of_account(std::string_view queue, std::string_view account) {
  return queue == account || (queue.starts_with(account) && queue.substr(account.size()).starts_with('/'));
}

std::optional<std::string> state_word(std::string_view text) {
  const std::string word = upper_case(text);
  for (const StateWord& one : kStates) {
    if (word == one.name || word == one.compact) return std::string(one.name);
  }
  return std::nullopt;
}

std::string all_states() {
  std::string all;
  for (const StateWord& one : kStates) all += (all.empty() ? "" : ",") + std::string(one.name);
  return all;
}

}  // namespace berth::slurm
