#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "sim/report/write_report.h"
#include "sim/simulate/event_log.h"
#include "sim/simulate/progress_bar.h"
#include "sim/simulate/replay_log.h"
#include "sim/simulate/runs.h"
#include "sim/simulate/simulate_main.h"
#include "sim/simulate/trial_config.h"
#include "sim/trace/arrivals.h"
#include "sim/trace/overlay.h"
#include "sim/trace/read_trace.h"
#include "sim/trace/row_sink.h"
#include "sim/trace/shape.h"
#include "timezone/time_zones.h"

namespace berth::sim {

namespace {

constexpr const char* kFooter = R"(Examples
  Two policies on a trace, with a report to open in a browser:
    berth simulate --jobs jobs.csv.gz --nodes 56x8xV100 --days 22-58 --policy fifo --policy berth --report out
  The published fragmentation experiment, ten seeds:
    berth simulate --jobs openb_default.jobs.csv.gz --nodes openb_node_list_gpu_node.csv \
      --arrivals arrivals_default.csv.gz --seeds 42-51 --policy BestFit --policy FGD --report out
  Half as much load again, with checkpoints that the trace does not have:
    berth simulate --jobs jobs.csv --nodes nodes.csv --load 1.5 --overlay overlay.yaml --policy las --report out
  What ran on this cluster, under another policy:
    berth simulate --from-log /var/lib/berth --policy berth --policy my-policy.yaml --report out
  The same under a configuration before it is applied:
    berth simulate --from-log /var/lib/berth --config cluster.yaml --report out
  What the same jobs would have cost and earned by two price books:
    berth simulate --from-log /var/lib/berth --prices prices.yaml --prices spot.yaml --report out
  Every cycle that decided something, run again on the state that was; with --config under other knobs:
    berth simulate --from-log /var/lib/berth --replay

The first policy is the baseline that the others are compared with. docs/simulate.md says what is read, what is
assumed where a trace is silent, and how every measure is defined.)";

constexpr std::uint64_t kMostSeeds = 10'000;
constexpr unsigned kMostThreads = 1024;

struct Options {
  std::string jobs, nodes, arrivals, overlay, config, from_log, format, zone, days, load, seeds, report, title;
  std::vector<std::string> policies, prices;
  std::string tenant = "default";
  std::int64_t gpus_per_node = 0;
  std::int64_t gpus_of_silent_node = 0;
  unsigned threads = 0;
  bool strict = false;
  bool gpus_only = false;
  bool list_policies = false;
  bool replay = false;
};

struct Input {
  Trace trace;
  std::vector<OverlayQueue> queues;
  std::optional<PolicySpec> logged;  // the policy of --from-log
  std::optional<PolicySpec> trial;   // the policy of --config
  std::optional<Arrivals> arrivals;
  std::vector<std::uint64_t> seeds;
  std::vector<RunPrices> prices;
};

void declare(CLI::App& app, Options& options) {
  app.footer(kFooter);
  app.add_option("--jobs", options.jobs, "Jobs of a trace: CSV or JSON, plain or gzip");
  app.add_option("--nodes", options.nodes, "Nodes: a file, or a shape such as 56x8xV100 or 321x2xP100,231x8xV100");
  app.add_option("--from-log", options.from_log,
                 "Jobs, nodes and queues from berth's own event log (a data directory)");
  app.add_option("--arrivals", options.arrivals, "Arrive in the order of this file, without departures (seed,pod)");
  app.add_option("--seeds,--seed", options.seeds,
                 "A seed, or several: 42-51 or 1,2,3 (default: 42; all of --arrivals)");
  app.add_option("--policy", options.policies, "Built-in policy or YAML file; several may be given")
      ->allow_extra_args(false);
  app.add_option("--config", options.config,
                 "cluster.yaml to try: its scheduling is one more policy, its queues replace the trace's");
  app.add_option("--prices", options.prices,
                 "Price book to bill the runs by, at its last prices; several are compared with the first")
      ->allow_extra_args(false);
  app.add_option("--report", options.report, "Folder for summary.json, jobs.csv and report.html");
  app.add_option("--days", options.days, "Only jobs submitted on these days of the trace, such as 22-58");
  app.add_option("--load", options.load, "Factor of load: submission times are divided by it");
  app.add_option("--overlay", options.overlay, "Tenants, priorities, checkpoints and quotas that the trace lacks");
  app.add_option("--format", options.format, "native, openb, philly, helios or slurm (default: by the file's header)");
  app.add_option("--zone", options.zone,
                 "Time zone of the dates of --jobs that state no offset from UTC, such as Europe/Paris (default: UTC)");
  app.add_option("--tenant", options.tenant, "Queue of jobs whose tenant is not stated");
  app.add_option("--gpus-per-node", options.gpus_per_node,
                 "Split jobs without a number of workers for nodes of this size")
      ->check(CLI::Range(std::int64_t{1}, kMaxGpus));
  app.add_option("--gpus-of-silent-node", options.gpus_of_silent_node, "GPUs of node rows that state none")
      ->check(CLI::Range(std::int64_t{1}, kMaxGpus));
  app.add_option("--threads", options.threads, "Runs at once (default: one per core)")
      ->check(CLI::Range(1U, kMostThreads));
  app.add_option("--title", options.title, "Title of the report");
  app.add_flag("--gpus-only", options.gpus_only, "Count GPUs only: no nodes, CPU, memory or models");
  app.add_flag("--strict", options.strict, "Refuse a file at its first bad row");
  app.add_flag("--replay", options.replay,
               "Run each cycle of --from-log again on the state that was, and compare the decisions");
  app.add_flag("--list-policies", options.list_policies, "List the built-in policies");
}

// An option given with nothing in it, as a shell does with an unset variable, is not the same as one left out.
Result<void> refuse_empty_options(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    const auto& texts = option->results();
    const bool empty = std::any_of(texts.begin(), texts.end(), [](const std::string& text) { return text.empty(); });
    if (empty && option->get_type_size() != 0) return invalid(option->get_name() + " is given without a value");
  }
  return {};
}

ReadOptions read_options(const Options& options) {
  ReadOptions read;
  read.strict = options.strict;
  read.gpus_only = options.gpus_only;
  if (options.gpus_of_silent_node > 0) read.gpus_of_silent_node = options.gpus_of_silent_node;
  return read;
}

Result<void> read_fleet(const Options& options, const ReadOptions& read, Trace& trace) {
  if (options.nodes.empty()) {
    if (!trace.nodes.empty()) return {};
    return invalid("--nodes is missing: a file, or a shape such as 56x8xV100");
  }
  trace.nodes.clear();
  if (!std::filesystem::exists(options.nodes)) {
    auto added = add_fleet_shape(options.nodes, trace);
    if (!added) return invalid("--nodes: there is no such file, and " + added.error().message);
    trace.notes.push_back("the fleet is a stated shape: " + options.nodes);
    return {};
  }
  const std::int64_t bad_before = trace.bad_rows.total;
  const std::size_t kept_before = trace.bad_rows.first.size();
  if (auto nodes = read_nodes(options.nodes, read, trace); !nodes) return nodes;
  if (!trace.nodes.empty()) return {};
  const std::int64_t bad = trace.bad_rows.total - bad_before;
  std::string why = "--nodes: " + options.nodes + " has no sound row of a node";
  if (bad > 0) why += "; " + std::to_string(bad) + (bad == 1 ? " is" : " are") + " bad";
  if (trace.bad_rows.first.size() > kept_before) {
    const BadRow& first = trace.bad_rows.first[kept_before];
    why += ", the first in line " + std::to_string(first.line) + ": " + first.reason;
    if (first.reason == "gpus: empty") why += "; --gpus-of-silent-node N says how many such a node has";
  }
  return invalid(why);
}

Result<void> read_sources(const Options& options, Input& input) {
  ReadOptions read = read_options(options);
  if (options.jobs.empty() == options.from_log.empty()) return invalid("give either --jobs or --from-log");
  if (!options.zone.empty() && options.jobs.empty())
    return invalid("--zone is for --jobs: a log of berth has instants");
  if (!options.from_log.empty()) {
    auto logged = read_event_log(options.from_log);
    if (!logged) return logged.error();
    input.trace = std::move(logged->trace);
    input.queues = std::move(logged->queues);
    input.logged = std::move(logged->policy);
  } else {
    if (!options.format.empty()) {
      const auto format = parse_trace_format(options.format);
      if (!format) return format.error();
      read.format = *format;
    }
    if (!options.zone.empty()) {
      read.zone = timezone::zone_of(options.zone);
      if (!read.zone) {
        return invalid("--zone: this machine knows no time zone '" + options.zone.substr(0, 80) +
                       "'; give one of tzdata, such as Europe/Paris");
      }
    }
    if (auto jobs = read_jobs(options.jobs, read, input.trace); !jobs) return jobs;
  }
  read.format.reset();  // nodes may come in another format than jobs
  return read_fleet(options, read, input.trace);
}

Result<std::optional<Overlay>> overlay_for(const Options& options, Input& input) {
  if (options.overlay.empty()) return std::optional<Overlay>();
  auto overlay = read_overlay(options.overlay, read_options(options));
  if (!overlay) return overlay.error();
  if (auto sound = check_overlay(*overlay, input.trace); !sound) return sound.error();
  if (!overlay->queues.empty() && !options.config.empty()) {
    return invalid("--config and --overlay both state queues; the queues to try are those of --config");
  }
  if (!overlay->queues.empty()) input.queues = overlay->queues;
  return std::optional<Overlay>(std::move(*overlay));
}

Result<void> take_trial_config(const Options& options, Input& input) {
  if (options.config.empty()) return {};
  auto trial = read_trial_config(options.config);
  if (!trial) return trial.error();
  input.queues = std::move(trial->queues);
  input.trial = std::move(trial->policy);
  input.trace.notes.insert(input.trace.notes.end(), trial->notes.begin(), trial->notes.end());
  return {};
}

Result<void> cut_and_scale(const Options& options, Trace& trace) {
  if (!options.days.empty()) {
    const auto window = parse_day_window(options.days);
    if (!window) return window.error();
    cut_window(trace, *window);
  }
  if (!options.load.empty()) {
    const auto load = parse_load_milli(options.load);
    if (!load) return load.error();
    scale_load(trace, *load);
  }
  return {};
}

void drop_empty_requests(Trace& trace) {
  leave_out_jobs(trace, "jobs that ask for no GPU, CPU or memory", [](const TraceJob& job) {
    return job.gpus_per_worker == 0 && job.cpu_milli == 0 && job.mem_mib == 0;
  });
}

// Splits all jobs without a stated number of workers: for the largest node, unless a size is given.
void split_over_nodes(const Options& options, Trace& trace) {
  std::int64_t gpus = options.gpus_per_node;
  if (gpus <= 0) {
    for (const TraceNode& node : trace.nodes) gpus = std::max(gpus, node.gpus);
  }
  if (gpus > 0) split_workers(trace, gpus);
}

// The report keeps the word of the trace; the product gets one of its own classes.
void state_job_classes(Trace& trace) {
  for (TraceJob& job : trace.jobs) {
    if (product_class(job.job_class)) continue;
    assume(trace, job,
           job.job_class.empty() ? "class of a job not stated: submitted as training"
                                 : "class of a job is none of training, inference, dev, batch: submitted as training");
  }
}

// The run time of the trace is the truth, so no time limit cuts it; this is noted.
void tell_lifted_limits(Trace& trace) {
  for (TraceJob& job : trace.jobs) {
    if (job.time_limit_ms && job.duration_ms && *job.time_limit_ms < *job.duration_ms) {
      assume(trace, job, "time limit below the run time: lifted to it");
    }
  }
}

std::optional<std::uint64_t> parse_seed(const std::string& text) {
  std::uint64_t seed = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), seed);
  if (failed != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return seed;
}

Result<std::vector<std::uint64_t>> parse_seeds(const std::string& text) {
  const Error wrong = invalid("--seeds: \"" + text + "\" is neither a seed, nor A-B, nor a list such as 1,2,3");
  std::vector<std::uint64_t> seeds;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::string part = text.substr(begin, text.find(',', begin) - begin);
    begin += part.size() + 1;
    const std::size_t dash = part.find('-');
    const auto first = parse_seed(part.substr(0, dash));
    const auto last = dash == std::string::npos ? first : parse_seed(part.substr(dash + 1));
    if (!first || !last || *last < *first) return wrong;
    if (*last - *first >= kMostSeeds - seeds.size()) {
      return invalid("--seeds: \"" + text + "\" names more than " + std::to_string(kMostSeeds) + " seeds");
    }
    for (std::uint64_t more = 0; more <= *last - *first; ++more) seeds.push_back(*first + more);
  }
  std::sort(seeds.begin(), seeds.end());
  seeds.erase(std::unique(seeds.begin(), seeds.end()), seeds.end());
  return seeds;
}

Result<void> choose_seeds(const Options& options, Input& input) {
  if (!options.seeds.empty()) {
    auto seeds = parse_seeds(options.seeds);
    if (!seeds) return seeds.error();
    input.seeds = std::move(*seeds);
  } else if (input.arrivals) {
    for (const auto& [seed, pods] : input.arrivals->pods_by_seed) input.seeds.push_back(seed);
  } else {
    input.seeds = {42};
  }
  return {};
}

Result<Arrivals> read_order(const Options& options, Trace& trace) {
  auto arrivals = read_arrivals(options.arrivals, read_options(options));
  if (!arrivals) return arrivals;
  std::size_t pods = 0;
  for (const auto& [seed, order] : arrivals->pods_by_seed) pods += order.size();
  trace.sources.push_back(options.arrivals + " (order of arrival, " + std::to_string(pods) + " arrivals, " +
                          std::to_string(arrivals->pods_by_seed.size()) + " seeds)");
  return arrivals;
}

Result<void> read_price_books(const Options& options, Input& input) {
  if (options.prices.empty()) return {};
  if (!options.arrivals.empty())
    return invalid("--arrivals is an order without times: --prices has no meaning with it");
  if (options.gpus_only) return invalid("--gpus-only sets GPU models aside: --prices needs them");
  for (const std::string& path : options.prices) {
    std::string note;
    auto prices = read_run_prices(path, note);
    if (!prices) return prices.error();
    input.prices.push_back(std::move(*prices));
    input.trace.notes.push_back(std::move(note));
  }
  return {};
}

Result<Input> read_input(const Options& options) {
  Input input;
  if (!options.arrivals.empty() && (!options.days.empty() || !options.load.empty())) {
    return invalid("--arrivals is an order without times: --days and --load have no meaning with it");
  }
  if (auto read = read_sources(options, input); !read) return read.error();
  const auto overlay = overlay_for(options, input);
  if (!overlay) return overlay.error();
  if (auto taken = take_trial_config(options, input); !taken) return taken.error();
  if (auto cut = cut_and_scale(options, input.trace); !cut) return cut.error();
  if (options.arrivals.empty()) {
    keep_timed_jobs(input.trace);
    if (options.days.empty()) start_at_first_submission(input.trace);
  } else {
    auto arrivals = read_order(options, input.trace);
    if (!arrivals) return arrivals.error();
    input.arrivals = std::move(*arrivals);
  }
  if (!input.arrivals) drop_empty_requests(input.trace);
  if (*overlay) apply_overlay(**overlay, input.trace);
  tell_lifted_limits(input.trace);
  if (options.gpus_only) {
    count_gpus_only(input.trace);
  } else {
    split_over_nodes(options, input.trace);
  }
  fill_tenants(input.trace, options.tenant);
  state_job_classes(input.trace);
  if (!options.overlay.empty() || !options.config.empty()) {
    if (auto sound = check_queues(input.queues, options.strict, input.trace); !sound) return sound.error();
  }
  if (auto chosen = choose_seeds(options, input); !chosen) return chosen.error();
  if (auto read = read_price_books(options, input); !read) return read.error();
  return input;
}

Result<void> add_policy(PolicySpec policy, std::vector<PolicySpec>& policies) {
  for (const PolicySpec& other : policies) {
    if (other.name == policy.name) return invalid("two policies are called \"" + other.name + "\"");
  }
  policies.push_back(std::move(policy));
  return {};
}

// With --config or --from-log and no --policy there are none: what the file or the log states is tried.
Result<std::vector<PolicySpec>> find_policies(const Options& options) {
  std::vector<std::string> names = options.policies;
  if (names.empty() && options.config.empty() && options.from_log.empty()) names = {"berth"};
  std::vector<PolicySpec> policies;
  for (const std::string& name : names) {
    auto policy = find_policy(name);
    if (!policy) return policy.error();
    if (auto added = add_policy(std::move(*policy), policies); !added) return added.error();
  }
  return policies;
}

Result<std::map<std::uint64_t, std::vector<std::size_t>>> orders_of(const Input& input) {
  std::map<std::uint64_t, std::vector<std::size_t>> orders;
  if (!input.arrivals) return orders;
  for (const std::uint64_t seed : input.seeds) {
    auto order = arrival_order(input.trace, *input.arrivals, seed);
    if (!order) return order.error();
    orders.emplace(seed, std::move(*order));
  }
  return orders;
}

unsigned threads_of(const Options& options) {
  return options.threads > 0 ? options.threads : std::max(1U, std::thread::hardware_concurrency());
}

double peak_memory_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

void say_what_was_read(const Trace& trace) {
  for (const std::string& source : trace.sources) std::printf("read     %s\n", source.c_str());
  for (const std::string& note : trace.notes) std::printf("note     %s\n", note.c_str());
  for (const auto& [text, count] : trace.defaults_taken) {
    std::printf("assumed  %s (%lld)\n", text.c_str(), static_cast<long long>(count));
  }
  for (const auto& [text, count] : trace.overlay_taken) {
    std::printf("overlay  %s (%lld)\n", text.c_str(), static_cast<long long>(count));
  }
  for (const auto& [rule, count] : trace.rows_left_out) {
    if (count > 0) std::printf("left out %s (%lld)\n", rule.c_str(), static_cast<long long>(count));
  }
  if (trace.bad_rows.total == 0) return;
  std::printf("bad rows %lld skipped; the first:\n", static_cast<long long>(trace.bad_rows.total));
  for (const BadRow& row : trace.bad_rows.first) {
    std::printf("         %s:%lld: %s\n", row.file.c_str(), static_cast<long long>(row.line), row.reason.c_str());
  }
}

void note_what_never_runs(const Workload& workload, Trace& trace) {
  const auto over_max =
      std::count_if(workload.jobs.begin(), workload.jobs.end(), [](const WorkloadJob& job) { return job.over_max; });
  if (over_max > 0) {
    trace.notes.push_back("jobs that ask for more than the max of their queue: " + std::to_string(over_max) +
                          "; a policy that keeps to quotas (berth) leaves them waiting for ever");
  }
  const auto never = std::count_if(workload.jobs.begin(), workload.jobs.end(),
                                   [](const WorkloadJob& job) { return !job.fits_empty_fleet; });
  if (never > 0)
    trace.notes.push_back("jobs that would not fit the empty fleet, refused at once: " + std::to_string(never));
}

Result<void> simulate(const Options& options, const std::string& command) {
  auto policies = find_policies(options);
  if (!policies) return policies.error();
  auto input = read_input(options);
  if (!input) return input.error();
  if (input->logged && options.policies.empty()) {
    if (auto added = add_policy(std::move(*input->logged), *policies); !added) return added;
  }
  if (input->trial) {
    if (auto added = add_policy(std::move(*input->trial), *policies); !added) return added;
  }
  if (input->trace.jobs.empty()) {
    say_what_was_read(input->trace);
    return invalid("there are no jobs to run");
  }
  const auto orders = orders_of(*input);
  if (!orders) return orders.error();
  if (!options.report.empty()) {
    if (auto writable = prepare_report(options.report); !writable) return writable;
  }
  const auto workload = make_workload(input->trace, input->queues);
  if (!workload) return workload.error();
  for (const RunPrices& one : input->prices) {
    if (auto priced = check_models(one, workload->gpu_models); !priced) return priced;
  }
  note_what_never_runs(*workload, input->trace);
  say_what_was_read(input->trace);

  const auto start = std::chrono::steady_clock::now();
  ProgressBar bar;
  const Experiment experiment{*workload, *policies, input->seeds, *orders, threads_of(options), input->prices};
  const auto runs = run_all(experiment, [&](std::int64_t done, std::int64_t all) { bar.show(done, all); });
  bar.clear();
  if (!runs) return runs.error();
  const double elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const std::size_t threads = std::min<std::size_t>(threads_of(options), runs->size());
  std::printf("\n%s\n%zu %s in %.1f s on %zu %s; peak memory %.0f MiB\n", terminal_table(*runs).c_str(), runs->size(),
              runs->size() == 1 ? "run" : "runs", elapsed, threads, threads == 1 ? "thread" : "threads",
              peak_memory_mib());
  if (options.report.empty()) return {};
  ReportInput report = describe_input(input->trace);
  report.title = options.title.empty() ? "berth simulate" : options.title;
  report.command = command;
  report.version = BERTH_VERSION;
  if (auto written = write_report(options.report, report, *runs); !written) return written.error();
  std::printf("report   %s/report.html\n", options.report.c_str());
  return {};
}

// A replay runs nothing but the log; of the other options only --config has a meaning with it.
Result<void> replay_log(const CLI::App& app, const Options& options) {
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = option->get_name();
    if (option->count() == 0 || name == "--replay" || name == "--from-log" || name == "--config") continue;
    return invalid("--replay runs the cycles of --from-log again: " + name + " has no meaning with it");
  }
  if (options.from_log.empty()) return invalid("--replay needs --from-log DIR, whose cycles it runs again");
  const auto text = replay_directory(options.from_log, options.config);
  if (!text) return text.error();
  std::fputs(text->c_str(), stdout);
  return {};
}

// Returns the argument as it must be typed in a shell.
std::string quoted(std::string_view argument) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./,=:+@%";
  if (!argument.empty() && argument.find_first_not_of(kPlain) == std::string_view::npos) return std::string(argument);
  std::string text = "'";
  for (const char c : argument) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

void list_policies() {
  for (const PolicySpec& spec : built_in_policies()) std::printf("%s\n", spec.name.c_str());
}

}  // namespace

int simulate_main(std::span<const std::string_view> arguments) {
  CLI::App app{"Runs the scheduler over a virtual clock, from real traces, and compares policies", "berth simulate"};
  Options options;
  declare(app, options);
  std::string command = "berth simulate";
  std::vector<std::string> reversed;
  for (const std::string_view argument : arguments) {
    command.append(" ").append(quoted(argument));
    reversed.emplace_back(argument);
  }
  std::reverse(reversed.begin(), reversed.end());
  try {
    app.parse(reversed);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (options.list_policies) {
    list_policies();
    return 0;
  }
  auto done = refuse_empty_options(app);
  if (done) done = options.replay ? replay_log(app, options) : simulate(options, command);
  if (done && std::fflush(stdout) != 0) done = Error{ErrorCode::kIo, "standard output: the text was not written"};
  if (done) return 0;
  std::fprintf(stderr, "berth simulate: %s\n", done.error().message.c_str());
  return done.error().code == ErrorCode::kInvalid || done.error().code == ErrorCode::kNotFound ? 2 : 1;
}

}  // namespace berth::sim
