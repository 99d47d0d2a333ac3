#include "sim/trace/overlay.h"

#include <algorithm>
#include <array>
#include <functional>
#include <set>
#include <utility>

#include "sim/trace/bytes.h"
#include "sim/trace/fields.h"
#include "sim/trace/plain_yaml.h"
#include "sim/trace/table.h"

namespace berth::sim {
namespace {

// Reads one YAML map by its keys. An unknown key is an error, and so is a value of the wrong form. The first error
// stays.
class YamlFields {
 public:
  YamlFields(const YAML::Node& map, std::string where, std::optional<std::string>& fault)
      : map_(map), where_(std::move(where)), fault_(fault) {
    is_map_ = map_.IsDefined() && map_.IsMap();
    if (!is_map_) {
      say(" is not a map");
      return;
    }
    for (const auto& entry : map_) {
      if (!entry.first.IsScalar())
        say(" has a key that is not a plain value");
      else if (!unread_.insert(entry.first.Scalar()).second)
        say(" has the key \"" + entry.first.Scalar() + "\" twice");
    }
  }
  ~YamlFields() {
    if (!unread_.empty()) say(" has an unknown key \"" + *unread_.begin() + "\"");
  }
  YamlFields(const YamlFields&) = delete;
  YamlFields& operator=(const YamlFields&) = delete;

  std::optional<std::string> name(const std::string& key) {
    const auto text = scalar(key);
    if (text && (text->empty() || !is_sound_name(*text))) say("." + key + " is not a sound name");
    return text;
  }
  std::optional<std::int64_t> whole(const std::string& key, std::int64_t limit) {
    const auto text = scalar(key);
    if (!text) return std::nullopt;
    const bool negative = text->starts_with('-');
    const auto value = parse_whole(negative ? std::string_view(*text).substr(1) : std::string_view(*text));
    if (!value || *value > limit) {
      say("." + key + " is not a whole number up to " + std::to_string(limit));
      return std::nullopt;
    }
    return negative ? -*value : *value;
  }
  std::optional<std::int64_t> positive(const std::string& key, std::int64_t limit) {
    const auto value = whole(key, limit);
    if (value && *value < 0) say("." + key + " is negative");
    return value;
  }
  std::optional<std::int64_t> seconds_as_ms(const std::string& key) {
    const auto text = scalar(key);
    if (!text) return std::nullopt;
    const auto value = parse_thousandths(*text);
    if (!value || *value > kMaxTimeMs) say("." + key + " is not a number of seconds");
    return value;
  }
  YAML::Node child(const std::string& key) {
    unread_.erase(key);
    return is_map_ ? map_[key] : YAML::Node(YAML::NodeType::Undefined);
  }
  void say(const std::string& what) {
    if (!fault_) fault_ = where_ + what;
  }

 private:
  std::optional<std::string> scalar(const std::string& key) {
    const YAML::Node value = child(key);
    if (!value.IsDefined()) return std::nullopt;
    if (!value.IsScalar()) {
      say("." + key + " is not a plain value");
      return std::nullopt;
    }
    return value.Scalar();
  }

  const YAML::Node map_;
  bool is_map_ = false;
  std::string where_;
  std::optional<std::string>& fault_;
  std::set<std::string> unread_;
};

constexpr std::int64_t kMaxPriority = 1'000'000'000;
constexpr std::int64_t kMaxWeight = 1'000'000;

OverlayMatch parse_match(const YAML::Node& node, const std::string& where, std::optional<std::string>& fault) {
  OverlayMatch match;
  if (!node.IsDefined()) return match;
  YamlFields fields(node, where + ".match", fault);
  match.id = fields.name("id");
  match.tenant = fields.name("tenant");
  match.user = fields.name("user");
  match.priority_class = fields.name("priority_class");
  match.job_class = fields.name("job_class");
  match.status = fields.name("status");
  match.partition = fields.name("partition");
  match.min_gpus = fields.positive("min_gpus", kMaxGpus * kMaxWorkers);
  match.max_gpus = fields.positive("max_gpus", kMaxGpus * kMaxWorkers);
  return match;
}

OverlaySet parse_set(const YAML::Node& node, const std::string& where, std::optional<std::string>& fault) {
  OverlaySet set;
  YamlFields fields(node, where + ".set", fault);
  set.tenant = fields.name("tenant");
  set.user = fields.name("user");
  set.priority_class = fields.name("priority_class");
  set.job_class = fields.name("job_class");
  set.priority = fields.whole("priority", kMaxPriority);
  set.time_limit_ms = fields.seconds_as_ms("time_limit_s");
  const YAML::Node contract = fields.child("checkpoint");
  if (contract.IsDefined()) {
    YamlFields checkpoint(contract, where + ".set.checkpoint", fault);
    set.checkpoint = TraceCheckpoint{.interval_ms = checkpoint.seconds_as_ms("interval_s").value_or(0),
                                     .cost_ms = checkpoint.seconds_as_ms("cost_s").value_or(0),
                                     .restart_ms = checkpoint.seconds_as_ms("restart_s").value_or(0)};
  }
  return set;
}

std::optional<std::int64_t> in_milli(std::optional<std::int64_t> gpus) {
  if (gpus) *gpus *= 1000;
  return gpus;
}

OverlayQueue parse_queue(const YAML::Node& node, const std::string& where, std::optional<std::string>& fault) {
  OverlayQueue queue;
  YamlFields fields(node, where, fault);
  queue.name = fields.name("name").value_or("");
  if (queue.name.empty()) fields.say(".name is missing");
  queue.parent = fields.name("parent").value_or("");
  queue.guaranteed_milli = in_milli(fields.positive("guaranteed_gpus", kMaxGpus));
  queue.max_milli = in_milli(fields.positive("max_gpus", kMaxGpus));
  queue.weight = fields.positive("weight", kMaxWeight).value_or(1);
  if (queue.weight == 0) fields.say(".weight is 0");
  return queue;
}

// Calls `parse` for every element of the list at `key`, if there is one.
void for_each(YamlFields& fields, const std::string& key,
              const std::function<void(const YAML::Node&, std::string)>& parse) {
  const YAML::Node list = fields.child(key);
  if (!list.IsDefined()) return;
  if (!list.IsSequence()) return fields.say("." + key + " is not a list");
  for (std::size_t i = 0; i < list.size(); ++i) parse(list[i], key + "[" + std::to_string(i) + "]");
}

Result<Overlay> parse_yaml_overlay(const std::string& name, std::string_view text) {
  const auto root = load_plain_yaml(name, text);
  if (!root) return root.error();
  Overlay overlay;
  overlay.file = name;
  std::optional<std::string> fault;
  {
    YamlFields fields(*root, "the overlay", fault);
    for_each(fields, "jobs", [&](const YAML::Node& node, const std::string& where) {
      YamlFields rule(node, where, fault);
      overlay.rules.push_back(
          {parse_match(rule.child("match"), where, fault), parse_set(rule.child("set"), where, fault)});
    });
    for_each(fields, "queues", [&](const YAML::Node& node, const std::string& where) {
      overlay.queues.push_back(parse_queue(node, where, fault));
      const std::string& own = overlay.queues.back().name;
      const auto same = [&own](const OverlayQueue& other) { return other.name == own; };
      if (!fault && std::count_if(overlay.queues.begin(), overlay.queues.end(), same) > 1) {
        fault = where + ": there are two queues \"" + own + "\"";
      }
    });
  }
  if (fault) return invalid(name + ": " + *fault);
  return overlay;
}

std::optional<std::string> name_if_stated(Row& row, std::string_view column) {
  if (row.empty(column)) return std::nullopt;
  return row.name(column);
}

void read_overlay_row(Row& row, Overlay& overlay) {
  const std::string id = row.need_name("job_id");
  OverlaySet set;
  set.tenant = name_if_stated(row, "tenant");
  set.user = name_if_stated(row, "user");
  set.priority_class = name_if_stated(row, "priority_class");
  set.job_class = name_if_stated(row, "job_class");
  set.priority = row.whole("priority", kMaxPriority);
  set.time_limit_ms = row.seconds_as_ms("time_limit_s");
  const auto interval = row.seconds_as_ms("checkpoint_interval_s");
  const auto cost = row.seconds_as_ms("checkpoint_cost_s");
  const auto restart = row.seconds_as_ms("restart_s");
  if (interval || cost || restart) {
    set.checkpoint = TraceCheckpoint{interval.value_or(0), cost.value_or(0), restart.value_or(0)};
  }
  if (!overlay.by_job.emplace(id, std::move(set)).second) row.fault("job_id", "named twice");
}

// Refuses unknown columns: a misspelt one would have no effect.
Result<void> check_overlay_columns(const std::string& name, const Header& header) {
  constexpr std::array<std::string_view, 10> kColumns = {"job_id",
                                                         "tenant",
                                                         "user",
                                                         "priority_class",
                                                         "job_class",
                                                         "priority",
                                                         "time_limit_s",
                                                         "checkpoint_interval_s",
                                                         "checkpoint_cost_s",
                                                         "restart_s"};
  std::size_t known = 0;
  for (const std::string_view column : kColumns) known += header.has(column) ? 1U : 0U;
  if (header.has("job_id") && known == header.columns()) return {};
  return invalid(name + ": an overlay CSV has job_id and any of tenant, user, priority_class, job_class, priority, " +
                 "time_limit_s, checkpoint_interval_s, checkpoint_cost_s, restart_s, and no other column");
}

Result<Overlay> parse_csv_overlay(const std::string& name, std::string_view text, const ReadOptions& options) {
  const auto header = read_header(name, text, {});
  if (!header) return header.error();
  const auto columns = check_overlay_columns(name, *header);
  if (!columns) return columns.error();
  ReadOptions strict = options;
  strict.strict = true;
  Trace unused;
  RowSink sink(name, strict, unused);
  Overlay overlay;
  overlay.file = name;
  const auto read = read_table(text, {}, sink, [&](Row& row, RowSink&) { read_overlay_row(row, overlay); });
  if (!read) return read.error();
  return overlay;
}

bool agrees(const std::optional<std::string>& wanted, const std::string& value) { return !wanted || *wanted == value; }

bool matches(const OverlayMatch& match, const TraceJob& job) {
  const std::int64_t gpu_milli = job.total_gpu_milli();
  return agrees(match.id, job.id) && agrees(match.tenant, job.tenant) && agrees(match.user, job.user) &&
         agrees(match.priority_class, job.priority_class) && agrees(match.job_class, job.job_class) &&
         agrees(match.status, job.status) && agrees(match.partition, job.partition) &&
         (!match.min_gpus || gpu_milli >= *match.min_gpus * 1000) &&
         (!match.max_gpus || gpu_milli <= *match.max_gpus * 1000);
}

void set_text(const std::optional<std::string>& value, const char* field, std::string& target, Trace& trace) {
  if (!value) return;
  ++trace.overlay_taken[std::string(field) + (target.empty() ? " supplied" : " replaced")];
  target = *value;
}

template <class T>
void set_value(const std::optional<T>& value, const char* field, std::optional<T>& target, Trace& trace) {
  if (!value) return;
  ++trace.overlay_taken[std::string(field) + (target ? " replaced" : " supplied")];
  target = value;
}

void apply_set(const OverlaySet& set, TraceJob& job, Trace& trace) {
  set_text(set.tenant, "tenant", job.tenant, trace);
  set_text(set.user, "user", job.user, trace);
  set_text(set.priority_class, "priority class", job.priority_class, trace);
  set_text(set.job_class, "job class", job.job_class, trace);
  set_value(set.priority, "priority", job.priority, trace);
  set_value(set.time_limit_ms, "time limit", job.time_limit_ms, trace);
  set_value(set.checkpoint, "checkpoint contract", job.checkpoint, trace);
}

}  // namespace

Result<Overlay> read_overlay_text(const std::string& name, std::string_view text, const ReadOptions& options) {
  const bool csv = name.ends_with(".csv");
  return csv ? parse_csv_overlay(name, text, options) : parse_yaml_overlay(name, text);
}

Result<Overlay> read_overlay(const std::string& path, const ReadOptions& options) {
  const auto text = read_file(path, options.max_bytes);
  if (!text) return text.error();
  return read_overlay_text(path, *text, options);
}

Result<void> check_overlay(const Overlay& overlay, const Trace& trace) {
  for (std::size_t i = 0; i < overlay.rules.size(); ++i) {
    const bool any = std::any_of(trace.jobs.begin(), trace.jobs.end(),
                                 [&](const TraceJob& job) { return matches(overlay.rules[i].match, job); });
    if (!any) return invalid(overlay.file + ": jobs[" + std::to_string(i) + "] matches no job of the trace");
  }
  std::set<std::string> unknown;
  for (const auto& [id, set] : overlay.by_job) unknown.insert(id);
  for (const TraceJob& job : trace.jobs) unknown.erase(job.id);
  if (unknown.empty()) return {};
  return invalid(overlay.file + ": the trace has no job \"" + *unknown.begin() + "\"" +
                 (unknown.size() == 1 ? "" : ", nor " + std::to_string(unknown.size() - 1) + " others named here"));
}

void apply_overlay(const Overlay& overlay, Trace& trace) {
  for (TraceJob& job : trace.jobs) {
    for (const OverlayRule& rule : overlay.rules) {
      if (matches(rule.match, job)) apply_set(rule.set, job, trace);
    }
    const auto own = overlay.by_job.find(job.id);
    if (own != overlay.by_job.end()) apply_set(own->second, job, trace);
  }
  trace.notes.push_back("overlay " + overlay.file + ": " + std::to_string(overlay.rules.size()) + " rules, " +
                        std::to_string(overlay.by_job.size()) + " jobs by id, " +
                        std::to_string(overlay.queues.size()) + " queues; what it supplied is not in the trace");
}

Result<void> check_queues(const std::vector<OverlayQueue>& queues, bool strict, Trace& trace) {
  const std::int64_t fleet = fleet_gpu_milli(trace) / 1000;
  constexpr std::int64_t kGpu = 1000;
  std::set<std::string> used;
  for (const TraceJob& job : trace.jobs) used.insert(job.tenant);
  for (const OverlayQueue& queue : queues) {
    if (!used.contains(queue.parent)) continue;
    return invalid("queue " + queue.parent + " has jobs of its own and queue " + queue.name +
                   " below it; jobs are in the leaves of the tree");
  }
  // A queue is used if a queue below it is; a chain of parents is no longer than there are queues.
  for (std::size_t round = 0; round < queues.size(); ++round) {
    const std::size_t before = used.size();
    for (const OverlayQueue& queue : queues) {
      if (used.contains(queue.name)) used.insert(queue.parent);
    }
    if (used.size() == before) break;
  }
  std::vector<std::string> doubts;
  std::int64_t at_the_top = 0;
  for (const OverlayQueue& queue : queues) {
    const std::int64_t guaranteed = queue.guaranteed_milli.value_or(0) / kGpu;
    if (guaranteed > fleet) {
      return invalid("queue " + queue.name + ": guaranteed_gpus is " + std::to_string(guaranteed) +
                     ", but the fleet has " + std::to_string(fleet) + " GPUs");
    }
    if (queue.parent.empty()) at_the_top += guaranteed;
    if (!used.contains(queue.name)) doubts.push_back("queue " + queue.name + " has no jobs");
  }
  if (at_the_top > fleet) {
    doubts.push_back("the guarantees sum to " + std::to_string(at_the_top) + " GPUs, but the fleet has " +
                     std::to_string(fleet) + ": they cannot all be kept at once");
  }
  if (strict && !doubts.empty()) return invalid(doubts.front());
  trace.notes.insert(trace.notes.end(), doubts.begin(), doubts.end());
  return {};
}

}  // namespace berth::sim
