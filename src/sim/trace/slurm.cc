// Slurm's accounting as `sacct --parsable2` prints it: fields between bars, no quoting, a header line, any choice and
// order of fields (slurm.schedmd.com/sacct.html). Needed: JobID, Submit and one of ReqTRES and AllocTRES. What was
// asked for (ReqTRES) goes before what was given (AllocTRES). A job is the line without a step in its id ("17", "17_3",
// "17+1"); steps ("17.batch") are left out, and so are jobs that never started or still run. A job that was requeued
// has a line for each attempt (sacct --duplicates): the last says how it ended, and the run times are added up.

#include <algorithm>
#include <map>

#include "sim/trace/dates.h"
#include "sim/trace/fields.h"
#include "sim/trace/formats.h"
#include "sim/trace/request_rules.h"
#include "sim/trace/table.h"

namespace berth::sim {
namespace {

// Trackable resources: "cpu=32,mem=256000M,node=4,billing=32,gres/gpu=32,gres/gpu:a100=32".
struct Tres {
  std::int64_t cpus = 0;
  std::int64_t mem_mib = 0;
  std::int64_t nodes = 0;
  std::int64_t gpus = 0;
  std::int64_t typed_gpus = 0;
  std::vector<std::string> gpu_types;
};

std::optional<std::int64_t> counted(std::string_view text, std::int64_t limit) {
  const auto value = parse_whole(text);
  return value && *value <= limit ? value : std::nullopt;
}

// False if the amount is not what the name calls for.
bool add_resource(std::string_view name, std::string_view amount, Tres& tres) {
  constexpr std::string_view kTypedGpu = "gres/gpu:";
  std::optional<std::int64_t> value;
  if (name == "cpu") {
    value = counted(amount, kMaxCpuMilli / 1000);
    tres.cpus = value.value_or(0);
  } else if (name == "mem") {
    value = parse_mebibytes(amount);
    if (value && *value > kMaxMemMib) value.reset();
    tres.mem_mib = value.value_or(0);
  } else if (name == "node") {
    value = counted(amount, kMaxWorkers);
    tres.nodes = value.value_or(0);
  } else if (name == "gres/gpu") {
    value = counted(amount, kMaxGpus);
    tres.gpus = value.value_or(0);
  } else if (name.starts_with(kTypedGpu)) {
    value = counted(amount, kMaxGpus);
    tres.typed_gpus += value.value_or(0);
    const std::string_view type = name.substr(kTypedGpu.size());
    if (type.empty() || !is_sound_name(type)) return false;
    tres.gpu_types.emplace_back(type);
  } else {
    return true;  // billing, licences and the like
  }
  return value.has_value();
}

Tres parse_tres(Row& row, std::string_view column) {
  Tres tres;
  std::string_view rest = row.cell(column);
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    const std::string_view entry = rest.substr(0, comma);
    const std::size_t equals = entry.find('=');
    if (equals == std::string_view::npos || !add_resource(entry.substr(0, equals), entry.substr(equals + 1), tres)) {
      row.fault(column, "not a list of resources");
    }
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
  }
  // Sites that count only typed GPUs print no sum.
  tres.gpus = std::max(tres.gpus, tres.typed_gpus);
  if (tres.gpus > kMaxGpus) row.fault(column, "not a list of resources");
  return tres;
}

bool is_absent(std::string_view text) { return text.empty() || text == "Unknown" || text == "None"; }

std::optional<std::int64_t> date_of(Row& row, std::string_view column, RowSink& sink) {
  if (is_absent(row.cell(column))) return std::nullopt;
  const auto date = sink.date_ms(row.cell(column));
  if (date) return *date;
  row.fault(column, date.error().message);
  return std::nullopt;
}

// ElapsedRaw (seconds) or Elapsed, else End - Start.
std::optional<std::int64_t> run_time(Row& row, RowSink& sink) {
  if (!row.empty("ElapsedRaw")) return row.seconds_as_ms("ElapsedRaw");
  if (!row.empty("Elapsed")) {
    const auto elapsed = parse_elapsed_ms(row.cell("Elapsed"));
    if (!elapsed) row.fault("Elapsed", "not an elapsed time");
    return elapsed;
  }
  const auto start = date_of(row, "Start", sink);
  const auto end = date_of(row, "End", sink);
  if (!start || !end) return std::nullopt;
  const bool exact = sink.options().zone || (states_offset(row.cell("Start")) && states_offset(row.cell("End")));
  if (*end < *start) {
    row.fault("End", exact ? "before Start"
                           : "before Start; over a change of clocks only Elapsed or --zone says how long it ran");
  }
  row.take_default(exact ? "run time (Elapsed) not stated: End less Start"
                         : "run time (Elapsed) not stated: End less Start, an hour off where clocks changed between");
  return *end - *start;
}

std::optional<std::int64_t> time_limit(Row& row) {
  if (!row.empty("TimelimitRaw")) {
    const auto minutes = parse_whole(row.cell("TimelimitRaw"));
    if (minutes && *minutes <= kMaxTimeMs / 60'000) return *minutes * 60'000;
  }
  return parse_elapsed_ms(row.cell("Timelimit"));  // "UNLIMITED" and "Partition_Limit" state no limit
}

// Shares the job's totals out over its nodes; a total that does not divide is left to the splitting rule.
void set_request(Row& row, const Tres& tres, TraceJob& job) {
  std::int64_t nodes = tres.nodes;
  for (const std::string_view column : {"NNodes", "ReqNodes", "AllocNodes"}) {
    if (nodes == 0) nodes = row.whole(column, kMaxWorkers).value_or(0);
  }
  job.gpus_per_worker = tres.gpus;
  job.gpu_milli = tres.gpus == 0 ? 0 : 1000;
  if (nodes > 0 && tres.gpus % nodes == 0) {
    job.workers = nodes;
    job.gpus_per_worker = tres.gpus / nodes;
  } else {
    row.take_default("GPUs do not divide by the number of nodes: split as if the number were not recorded");
  }
  const std::int64_t workers = job.workers.value_or(1);
  job.cpu_milli = (tres.cpus * 1000 + workers - 1) / workers;
  job.mem_mib = (tres.mem_mib + workers - 1) / workers;
  job.gpu_models = tres.gpu_types;
}

// The jobs read so far, each with its attempts so far as one.
class SlurmJobs {
 public:
  void add_attempt(TraceJob attempt, const std::vector<std::string_view>& defaults, RowSink& sink) {
    const auto [known, fresh] = by_id_.emplace(attempt.id, jobs_.size());
    if (fresh) {
      jobs_.push_back({std::move(attempt), defaults, false});
      return;
    }
    Job& job = jobs_[known->second];
    if (attempt.user != job.whole.user || attempt.tenant != job.whole.tenant)
      return sink.bad_row(attempt.line, "a job id that an earlier row has, of another user or account");
    const std::int64_t run_ms = job.whole.duration_ms.value_or(0) + attempt.duration_ms.value_or(0);
    if (run_ms > kMaxTimeMs) return sink.bad_row(attempt.line, "all attempts of the job: over a thousand years");
    job.whole.duration_ms = run_ms;
    job.whole.status = attempt.status;
    job.whole.submit_ms = std::min(job.whole.submit_ms, attempt.submit_ms);
    job.requeued = true;
  }

  void give(RowSink& sink) {
    for (Job& job : jobs_) {
      if (sink.stopped()) return;
      const std::string& status = job.whole.status;
      if (status == "RUNNING" || status == "PENDING" || status == "SUSPENDED") {
        sink.leave_out("Slurm jobs that had not ended");
      } else if (job.whole.duration_ms.value_or(0) == 0) {
        sink.leave_out("Slurm jobs that never ran");
      } else {
        if (job.requeued) job.defaults.push_back("job was requeued: the run times of its attempts are added up");
        sink.add(std::move(job.whole), job.defaults);
      }
    }
  }

 private:
  struct Job {
    TraceJob whole;
    std::vector<std::string_view> defaults;
    bool requeued = false;
  };
  std::vector<Job> jobs_;  // in the order of their first rows
  std::map<std::string, std::size_t> by_id_;
};

void read_slurm_job(Row& row, SlurmJobs& jobs, RowSink& sink) {
  const std::string id = row.need_name("JobID");
  if (id.find('.') != std::string::npos) return sink.leave_out("Slurm job steps");
  if (id.find('[') != std::string::npos) return sink.leave_out("Slurm array elements that never started");
  TraceJob job;
  job.line = row.line();
  job.id = id;
  job.user = row.name("User");
  job.tenant = row.name("Account");
  job.partition = row.name("Partition");
  job.priority_class = row.name("QOS");
  const std::string state = row.name("State");
  job.status = state.substr(0, state.find(' '));  // "CANCELLED by 1000"
  job.submit_ms = date_of(row, "Submit", sink);
  if (!job.submit_ms) row.fault("Submit", "empty");
  job.duration_ms = run_time(row, sink);
  job.time_limit_ms = time_limit(row);
  Tres tres = parse_tres(row, "ReqTRES");
  if (row.empty("ReqTRES") || (tres.gpus == 0 && !row.empty("AllocTRES"))) {
    tres = parse_tres(row, "AllocTRES");
    if (!tres.gpu_types.empty()) row.take_default("GPU model not asked for by name: the allocated one is required");
  }
  set_request(row, tres, job);
  if (row.first_fault()) return;
  take_any_model(row, job);
  jobs.add_attempt(std::move(job), row.defaults(), sink);
}

}  // namespace

Result<void> read_slurm_jobs(std::string_view text, RowSink& sink) {
  const CsvDialect dialect{.delimiter = '|', .quotes = false, .max_row_bytes = sink.options().max_row_bytes};
  SlurmJobs jobs;
  auto read = read_table(text, dialect, sink, [&](Row& row, RowSink& into) { read_slurm_job(row, jobs, into); });
  if (read) {
    jobs.give(sink);
    read = sink.status();
  }
  if (read) sink.start_at_first_submission();
  return read;
}

}  // namespace berth::sim
