#include "openb_input.h"

#include <zlib.h>

#include <cstdio>
#include <cstdlib>
#include <functional>

namespace berth::bench {
namespace {

using Row = std::map<std::string, std::string>;

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == separator)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

std::string read_whole(const std::string& path) {
  gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) {
    std::fprintf(stderr, "cannot open %s\n", path.c_str());
    std::exit(2);
  }
  std::string content;
  char block[1 << 16];
  for (int got = 0; (got = gzread(file, block, sizeof block)) > 0;)
    content.append(block, static_cast<std::size_t>(got));
  gzclose(file);
  return content;
}

void for_each_row(
    const std::string& path,
    const std::function<void(const std::vector<std::string>& header, const std::vector<std::string>& cells)>& visit) {
  const auto lines = split(read_whole(path), '\n');
  const auto header = split(lines.front(), ',');
  for (std::size_t i = 1; i < lines.size(); ++i) {
    if (lines[i].empty()) continue;
    const auto cells = split(lines[i], ',');
    if (cells.size() != header.size()) {
      std::fprintf(stderr, "%s:%zu: %zu cells, the header has %zu\n", path.c_str(), i + 1, cells.size(), header.size());
      std::exit(2);
    }
    visit(header, cells);
  }
}

std::int64_t integer(const std::string& text) { return text.empty() ? 0 : std::stoll(text); }

Row row_of(const std::vector<std::string>& header, const std::vector<std::string>& cells) {
  Row row;
  for (std::size_t i = 0; i < header.size(); ++i) row[header[i]] = cells[i];
  return row;
}

}  // namespace

std::uint32_t OpenbInput::model_index(const std::string& model) {
  return models_.try_emplace(model, static_cast<std::uint32_t>(models_.size())).first->second;
}

sim::placement::ModelMask OpenbInput::model_mask(const std::string& alternatives) {
  if (alternatives.empty()) return sim::placement::kAnyModel;
  sim::placement::ModelMask mask = 0;
  for (const auto& model : split(alternatives, '|')) mask |= sim::placement::ModelMask{1} << model_index(model);
  return mask;
}

sim::placement::Fleet OpenbInput::gpu_nodes() {
  sim::placement::Fleet fleet;
  for_each_row(folder_ + "/nodes.csv", [&](const auto& header, const auto& cells) {
    auto row = row_of(header, cells);
    sim::placement::FleetNode node;
    node.gpus = static_cast<std::uint32_t>(integer(row["gpus"]));
    if (node.gpus == 0) return;
    node.cpu_left = integer(row["cpu_milli"]);
    node.mem_left = integer(row["mem_mib"]);
    node.model = model_index(row["gpu_model"]);
    for (std::size_t gpu = 0; gpu < node.gpus; ++gpu) node.free[gpu] = sim::placement::kWholeGpu;
    fleet.push_back(node);
  });
  return fleet;
}

OpenbPods OpenbInput::pods(const std::string& list) {
  OpenbPods pods;
  for_each_row(folder_ + "/openb_" + list + ".jobs.csv.gz", [&](const auto& header, const auto& cells) {
    auto row = row_of(header, cells);
    sim::placement::PodShape shape;
    shape.cpu_milli = integer(row["cpu_milli_per_worker"]);
    shape.mem_mib = integer(row["mem_mib_per_worker"]);
    shape.gpus = static_cast<std::int32_t>(integer(row["gpus_per_worker"]));
    shape.milli = shape.gpus == 0 ? 0 : static_cast<std::int32_t>(integer(row["gpu_milli"]));
    shape.models = model_mask(row["gpu_model"]);
    pods.index_of[row["job_id"]] = pods.shapes.size();
    pods.shapes.push_back(shape);
  });
  return pods;
}

std::map<std::uint64_t, std::vector<std::size_t>> OpenbInput::arrivals(const std::string& list,
                                                                       const OpenbPods& pods) const {
  std::map<std::uint64_t, std::vector<std::size_t>> by_seed;
  for_each_row(folder_ + "/arrivals_" + list + ".csv.gz", [&](const auto&, const auto& cells) {
    std::string digits = cells[1];
    while (digits.size() < 4) digits.insert(digits.begin(), '0');
    by_seed[static_cast<std::uint64_t>(integer(cells[0]))].push_back(pods.index_of.at("openb-pod-" + digits));
  });
  return by_seed;
}

std::map<std::pair<std::string, std::string>, double> OpenbInput::published(const std::string& what,
                                                                            int arrived_percent) const {
  std::map<std::pair<std::string, std::string>, std::pair<double, int>> sums;
  for_each_row(folder_ + "/published_analysis_" + what + "_discrete.csv.gz",
               [&](const auto& header, const auto& cells) {
                 auto row = row_of(header, cells);
                 const auto list = row["workload"].substr(std::string("openb_pod_list_").size());
                 const auto policy = row["sc_policy"].substr(std::string("01-").size());
                 auto& [sum, count] = sums[{list, policy}];
                 sum += std::stod(row[std::to_string(arrived_percent)]);
                 ++count;
               });
  std::map<std::pair<std::string, std::string>, double> means;
  for (const auto& [key, value] : sums) means[key] = value.first / value.second;
  return means;
}

}  // namespace berth::bench
