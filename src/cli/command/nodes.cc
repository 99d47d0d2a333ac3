#include <algorithm>

#include "cli/columns.h"
#include "cli/command/commands.h"
#include "cli/exit_code.h"
#include "cli/output.h"
#include "cli/printable.h"
#include "cli/when.h"
#include "model/document/quantity.h"

namespace berth::cli {
namespace {

std::string condition(const Json& node) {
  std::string words = show(node, "status");
  if (is_true(node, "draining"))
    words += ", draining";
  else if (is_true(node, "cordoned"))
    words += ", cordoned";
  // The first window to begin, and whether it lasts.
  if (const auto& windows = items(node, "maintenance"); !windows.empty()) {
    const auto from = from_iso8601(show(windows.front(), "from"));
    words += from && *from <= clock_now() ? ", maintenance until " + clock_text(show(windows.front(), "to"))
                                          : ", maintenance from " + clock_text(show(windows.front(), "from"));
  }
  const std::string why = show(node, "why");
  return why.empty() ? words : words + " (" + why + ")";
}

std::string of_total(const std::string& left, const std::string& total) { return left + " of " + total; }

// "simulated H100-SXM5-80GB": the mark stands in front, where a narrow terminal does not cut it.
std::string model_of(const Json& gpu) { return (is_true(gpu, "simulated") ? "simulated " : "") + show(gpu, "model"); }

// Several models are named once each.
std::string models(const Json& node) {
  std::vector<std::string> names;
  for (const Json& gpu : items(node, "gpus")) {
    const std::string name = model_of(gpu);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return joined(names, ", ");
}

std::string unhealthy(const Json& node) {
  std::int64_t count = 0;
  for (const Json& gpu : items(node, "gpus")) count += at(gpu, "healthy").is_bool() && !is_true(gpu, "healthy") ? 1 : 0;
  return count == 0 ? "" : ", " + std::to_string(count) + " unhealthy";
}

// GPUs that pods of another scheduler or processes of others use.
std::string foreign(const Json& node) {
  std::int64_t count = 0;
  for (const Json& gpu : items(node, "gpus")) count += is_true(gpu, "foreign") ? 1 : 0;
  return count == 0 ? "" : ", " + std::to_string(count) + " foreign";
}

std::string taints(const Json& node) {
  std::vector<std::string> parts;
  for (const Json& taint : items(node, "taints")) {
    const std::string value = show(taint, "value");
    const std::string effect = show(taint, "effect");
    parts.push_back(show(taint, "key") + (value.empty() ? "" : "=" + value) +
                    (effect.empty() || effect == "NoSchedule" ? "" : ":" + effect));
  }
  return joined(parts, ",");
}

// With one decimal: what is left of a node is seldom a whole number of GiB.
std::string memory(const Json& node, const char* name) {
  const std::int64_t mib = integer(node, name);
  if (mib % 1024 == 0 || mib < 1024) return document::memory_text(mib);
  return std::to_string(mib / 1024) + "." + std::to_string(mib % 1024 * 10 / 1024) + "GiB";
}

// A line for each node whose CPUs or memory are not those of its machine.
std::string simulated_notes(const boost::json::array& nodes) {
  std::string notes;
  for (const Json& node : nodes) {
    const std::string what = show(at(node, "labels"), "berth.simulated");
    if (what.empty()) continue;
    notes += printable(show(node, "name")) + ": simulated " +
             (what == "cpus"     ? "CPUs"
              : what == "memory" ? "memory"
                                 : "CPUs and memory") +
             ", more than its machine has\n";
  }
  return notes.empty() ? "" : "\n" + notes;
}

std::string list_table(const boost::json::array& nodes, Format format, std::size_t width) {
  const bool csv = format == Format::kCsv;
  const bool wide = has_all_columns(format);
  if (nodes.empty() && !csv) return "no nodes\n";
  std::vector<Column> columns{{"NODE", Align::kLeft, true},     {"STATE"},
                              {"GPUS FREE", Align::kRight},     {"CPUS FREE", Align::kRight},
                              {"MEMORY FREE", Align::kRight},   {"TASKS", Align::kRight},
                              {"GPU MODEL", Align::kLeft, true}};
  if (wide) {
    for (const char* title : {"POOL", "CELL", "LEASE", "TAINTS", "TOPOLOGY", "LABELS", "IMAGES"})
      columns.push_back({title});
  }
  Table table(columns);
  for (const Json& node : nodes) {
    std::vector<std::string> cells{
        show(node, "name"),
        condition(node),
        of_total(show(node, "gpus_free"), show(node, "gpus_total")) + unhealthy(node) + foreign(node),
        of_total(show(node, "cpus_free"), show(node, "cpus")),
        of_total(memory(node, "memory_free_mib"), memory(node, "memory_mib")),
        std::to_string(items(node, "tasks").size()),
        models(node)};
    if (wide) {
      for (const char* name : {"pool", "cell", "lease"}) cells.push_back(show(node, name));
      cells.push_back(taints(node));
      cells.push_back(joined(at(node, "topology"), "/"));
      std::vector<std::string> labels;
      if (const auto* object = at(node, "labels").if_object()) {
        for (const auto& label : *object) labels.push_back(std::string(label.key()) + "=" + show(label.value()));
      }
      cells.push_back(joined(labels, ","));
      cells.push_back(is_true(node, "containers") ? show(node, "image_count") : "no containers");
    }
    table.add(cells);
  }
  return csv ? table.csv() : table.text(width) + simulated_notes(nodes);
}

std::string gpu_state(const Json& gpu) {
  if (is_true(gpu, "fenced")) return "fenced";
  if (at(gpu, "healthy").is_bool() && !is_true(gpu, "healthy")) return "unhealthy";
  const double free = number(gpu, "free");
  if (is_true(gpu, "foreign")) return free < 1 ? "in use, foreign too" : "foreign";
  if (free >= 1) return number(gpu, "nominated") > 0 ? "nominated" : "free";
  return free > 0 ? show(gpu, "free") + " free" : "in use";
}

// Why GPUs are fenced, and what to do.
std::string faults(const Json& node) {
  std::string text;
  for (const Json& gpu : items(node, "gpus")) {
    if (!has(gpu, "fault")) continue;
    const std::string index = show(gpu, "index");
    text += "GPU " + index + " is fenced: " + printable(show(gpu, "fault")) +
            "\n  once that is mended: berth uncordon " + printable(show(node, "name")) + " --gpu " + index + "\n";
  }
  return text.empty() ? "" : "\n" + text;
}

// Of the last hour.
std::string gpu_utilization(const Json& gpu) { return has(gpu, "driven_pct") ? percent_text(gpu, "driven_pct") : "-"; }

// "Others use 2 CPUs and 1GiB of it.", and one line for each countable.
std::string beside_text(const Json& node) {
  std::string text;
  const Json& others = at(node, "foreign");
  if (number(others, "cpus") > 0 || integer(others, "memory_mib") > 0)
    text += "\nOthers use " + show(others, "cpus") + " CPUs and " + memory(others, "memory_mib") + " of it.\n";
  Table table({{"COUNTABLE", Align::kLeft, true}, {"FREE", Align::kRight}, {"FOREIGN", Align::kRight}});
  for (const Json& one : items(node, "countables"))
    table.add({show(one, "name"), of_total(show(one, "free"), show(one, "amount")), show(one, "foreign")});
  return text + (table.empty() ? "" : "\n" + table.text(0));
}

// What a node that runs containers has, one image a line.
std::string images_text(const Json& node) {
  if (!is_true(node, "containers")) return "";
  const auto& images = items(node, "images");
  std::string text = "\nIt runs containers and has ";
  text += images.empty() ? "no images.\n" : images.size() == 1 ? "this image:\n" : "these images:\n";
  for (const Json& image : images) text += "  " + printable(show(image)) + "\n";
  return text;
}

// One node in full: its line, its GPUs one by one, and its images.
std::string detail(const Json& node, Format format, std::size_t width) {
  if (format == Format::kCsv) return list_table({node}, format, width);
  Table table({{"GPU", Align::kRight},
               {"STATE"},
               {"UTIL", Align::kRight},
               {"JOBS"},
               {"MODEL", Align::kLeft, true},
               {"MEMORY", Align::kRight},
               {"NVLINK", Align::kRight},
               {"NUMA", Align::kRight},
               {"UUID", Align::kLeft, true}});
  for (const Json& gpu : items(node, "gpus")) {
    table.add({show(gpu, "index"), gpu_state(gpu), gpu_utilization(gpu), joined(at(gpu, "jobs"), ","), model_of(gpu),
               memory(gpu, "memory_mib"), show(gpu, "nvlink_island"), show(gpu, "numa"), show(gpu, "uuid")});
  }
  return list_table({node}, format, width) + (table.empty() ? "" : "\n" + table.text(width)) + faults(node) +
         beside_text(node) + images_text(node);
}

}  // namespace

Result<int> run(const NodesOptions& options, Session& session) {
  const bool one = !options.name.empty();
  const std::string path = one ? "/v1/nodes/" + client::encode_segment(options.name) : "/v1/nodes";
  return show_once_or_watch(session, options.show, [&]() -> Result<std::string> {
    const auto moment = moment_when(options.at, clock_now());
    if (!moment) return moment.error();
    const auto answer = get(session, query(path, {{"at", *moment}}));
    if (!answer) return answer.error();
    const Format format = options.show.format;
    const std::size_t width = table_width(session, format);
    if (!options.show.columns.empty())
      return in_columns(one ? boost::json::array{*answer} : items(*answer, "items"), options.show, width);
    return formatted(one ? *answer : at(*answer, "items"), format, [&] {
      if (one) return detail(*answer, format, width);
      const bool apart =
          format == Format::kCsv || !has(*answer, "tasks_kept_apart") || is_true(*answer, "tasks_kept_apart");
      return list_table(items(*answer, "items"), format, width) +
             (apart ? "" : "tasks are not kept apart: the server is not root, so they all run as its own user\n");
    });
  });
}

}  // namespace berth::cli
