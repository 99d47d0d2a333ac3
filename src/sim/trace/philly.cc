// Microsoft Philly (msr-fiddle/philly-traces). cluster_job_log is a JSON array of jobs, each with status, vc, jobid,
// user, submitted_time and attempts of {start_time, end_time, detail: [{ip, gpus: [...]}]}. The virtual cluster is the
// tenant. The GPUs are those of the first attempt that names any; the machines it ran on are where a scheduler put it,
// not what was asked for, so the total is left to the splitting rule. The duration is the sum over attempts.
// cluster_machine_list: machineId, number of GPUs, single GPU mem; the GPU's memory stands for its model, which is not
// published.

#include <algorithm>
#include <boost/json.hpp>
#include <utility>

#include "sim/trace/fields.h"
#include "sim/trace/formats.h"
#include "sim/trace/json_elements.h"
#include "sim/trace/request_rules.h"
#include "sim/trace/table.h"

namespace berth::sim {
namespace {

namespace json = boost::json;

// Reads members of one job; the first fault stays.
class JobObject {
 public:
  JobObject(const json::object& object, RowSink& sink) : object_(object), sink_(sink) {}

  std::string name(std::string_view key) {
    const json::value* value = object_.if_contains(key);
    if (value == nullptr || value->is_null()) return {};
    if (!value->is_string() || !is_sound_name(value->get_string())) {
      fault(key, "not a sound name (UTF-8, no control characters, at most 256 bytes)");
      return {};
    }
    return std::string(value->get_string());
  }
  // A date, or nullopt for null, "None" and nothing.
  std::optional<std::int64_t> date(std::string_view key) {
    const json::value* value = object_.if_contains(key);
    if (value == nullptr || value->is_null()) return std::nullopt;
    if (value->is_string() && (value->get_string().empty() || value->get_string() == "None")) return std::nullopt;
    const auto parsed =
        value->is_string() ? sink_.date_ms(value->get_string()) : Result<std::int64_t>(invalid("not a date"));
    if (parsed) return *parsed;
    fault(key, parsed.error().message);
    return std::nullopt;
  }
  const json::array* list(std::string_view key) {
    const json::value* value = object_.if_contains(key);
    if (value != nullptr && value->is_array()) return &value->get_array();
    fault(key, "not a list");
    return nullptr;
  }
  void fault(std::string_view key, std::string_view what) {
    if (!fault_) fault_ = std::string(key).append(": ").append(what);
  }
  const std::optional<std::string>& first_fault() const { return fault_; }

 private:
  const json::object& object_;
  RowSink& sink_;
  std::optional<std::string> fault_;
};

struct Attempts {
  std::int64_t gpus = 0;
  std::int64_t duration_ms = 0;
  bool any_ended = false;
  bool still_running = false;  // the last one started and has no end
};

std::int64_t gpus_of(const json::array& detail, JobObject& job) {
  std::int64_t gpus = 0;
  for (const json::value& machine : detail) {
    const json::object* object = machine.if_object();
    const json::value* list = object == nullptr ? nullptr : object->if_contains("gpus");
    if (list == nullptr || !list->is_array()) {
      job.fault("detail", "a machine without a list of gpus");
      return 0;
    }
    gpus += static_cast<std::int64_t>(list->get_array().size());
  }
  return gpus;
}

void add_attempt(const json::value& value, JobObject& job, Attempts& attempts, RowSink& sink) {
  const json::object* object = value.if_object();
  if (object == nullptr) return job.fault("attempts", "not a list of objects");
  JobObject attempt(*object, sink);
  const auto start = attempt.date("start_time");
  const auto end = attempt.date("end_time");
  const json::array* detail = attempt.list("detail");
  if (detail != nullptr && attempts.gpus == 0) attempts.gpus = gpus_of(*detail, attempt);
  attempts.still_running = start && !end;
  if (start && end) {
    if (*end < *start) attempt.fault("end_time", "before start_time");
    attempts.any_ended = true;
    attempts.duration_ms += *end - *start;
  }
  if (attempt.first_fault()) job.fault("attempts", *attempt.first_fault());
}

void read_philly_job(const json::object& object, std::int64_t line, RowSink& sink) {
  JobObject source(object, sink);
  TraceJob job;
  job.line = line;
  job.id = source.name("jobid");
  if (job.id.empty()) source.fault("jobid", "empty");
  job.tenant = source.name("vc");
  job.user = source.name("user");
  job.status = source.name("status");
  job.submit_ms = source.date("submitted_time");
  if (!job.submit_ms) source.fault("submitted_time", "empty");
  Attempts attempts;
  if (const json::array* list = source.list("attempts")) {
    for (const json::value& attempt : *list) add_attempt(attempt, source, attempts, sink);
  }
  if (attempts.gpus > kMaxGpus) source.fault("attempts", "too many GPUs");
  if (attempts.duration_ms > kMaxTimeMs) source.fault("attempts", "over a thousand years");
  if (source.first_fault()) return sink.bad_row(line, *source.first_fault());
  if (attempts.still_running) return sink.leave_out("Philly jobs still running at the snapshot");
  if (!attempts.any_ended || attempts.gpus == 0) {
    return sink.leave_out("Philly jobs without a recorded attempt that had GPUs, a start and an end");
  }
  job.gpus_per_worker = attempts.gpus;
  job.duration_ms = attempts.duration_ms;
  sink.add(std::move(job),
           {"GPU model of a job not stated: any model will do", "CPU of a job not stated: it asks for none",
            "memory of a job not stated: it asks for none"});
}

void read_element(const JsonElement& element, RowSink& sink) {
  sink.count_row();
  if (element.text.size() > sink.options().max_row_bytes) {
    return sink.bad_row(element.line, "longer than " + std::to_string(sink.options().max_row_bytes) + " bytes");
  }
  boost::system::error_code failed;
  const json::value value = json::parse(json::string_view(element.text.data(), element.text.size()), failed);
  if (failed) return sink.bad_row(element.line, "not JSON: " + failed.message());
  if (!value.is_object()) return sink.bad_row(element.line, "not a JSON object");
  read_philly_job(value.get_object(), element.line, sink);
}

void read_machine(Row& row, RowSink& sink) {
  TraceNode node;
  node.name = row.need_name("machineId");
  node.gpus = row.need_whole("number of GPUs", kMaxGpus);
  node.gpu_model = row.name("single GPU mem");
  if (node.gpu_model.empty()) row.take_default("GPU model of a node not stated: all nodes of one unnamed model");
  node.cpu_milli = cpu_of_node(row, "cpu_milli");
  node.mem_mib = memory_of_node(row, "mem_mib");
  add_if_sound(row, std::move(node), sink);
}

}  // namespace

Result<void> read_philly_jobs(std::string_view text, RowSink& sink) {
  JsonElements elements(text);
  while (!sink.stopped()) {
    const auto element = elements.next();
    if (!element) return invalid(sink.file() + ": " + element.error().message);
    if (element->text.empty()) break;
    read_element(*element, sink);
  }
  if (!sink.stopped()) sink.start_at_first_submission();
  return sink.status();
}

Result<void> read_philly_machines(std::string_view text, RowSink& sink) {
  return read_table(text, {.max_row_bytes = sink.options().max_row_bytes}, sink, read_machine);
}

}  // namespace berth::sim
