#include "slurm/job_words.h"

#include <algorithm>
#include <utility>

#include "slurm/job_request.h"
#include "slurm/job_script.h"
#include "slurm/row_format.h"

namespace berth::slurm {

std::string or_null(const std::string& text) { return text.empty() ? "(null)" : text; }

std::string gpus_text(const JobRow& row) {
  const std::string gpus = row.text("gpus");
  return gpus.empty() || gpus == "0" ? "N/A" : "gres:gpu:" + gpus;
}

std::string group_of(const JobRow& row, std::string_view member) { return cli::show(row.spec(), member); }

std::string memory_text(const JobRow& row) {
  std::string memory = group_of(row, "memory");
  for (const auto& [own, slurm] : {std::pair("MiB", "M"), std::pair("GiB", "G"), std::pair("TiB", "T")}) {
    if (memory.ends_with(own)) memory = memory.substr(0, memory.size() - 3) + slurm;
  }
  return memory.empty() ? "0" : memory;
}

namespace {

// The path of a pattern. As scontrol has it, a width (%4j) and %% stay as they are.
std::string path_of_pattern(const JobRow& row, const std::string& pattern) {
  if (is_no_file(pattern)) return "/dev/null";
  std::string name;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char letter = pattern[i] == '%' && i + 1 < pattern.size() ? pattern[++i] : '\0';
    if (letter == '\0') {
      name += pattern[i];
    } else if (letter == 'j' || letter == 'J') {
      name += std::to_string(row.id);
    } else if (letter == 'A') {
      name += std::to_string(row.array != 0 ? row.array : row.id);
    } else if (letter == 'a') {
      name += row.is_set || row.elements.empty() ? "4294967294" : std::to_string(row.elements.front());
    } else if (letter == 'x') {
      name += row.text("name");
    } else if (letter == 'u') {
      name += row.text("user");
    } else {
      name += "%" + std::string(1, letter);
    }
  }
  return name.starts_with('/') ? name : group_of(row, "workdir") + "/" + name;
}

std::string file_label(const JobRow& row, std::string_view name) {
  return cli::show(cli::at(row.job(), "labels"), name);
}

// The nodes of the rule that begins so, as one list.
std::vector<std::string> nodes_of_rules(const JobRow& row, std::string_view beginning) {
  std::vector<std::string> names;
  for (const cli::Json& rule : cli::items(row.spec(), "node_rules")) {
    std::string text = cli::show(rule);
    if (!text.starts_with(beginning)) continue;
    std::replace(text.begin(), text.end(), '|', ',');
    for (std::string& name : comma_list(text.substr(beginning.size()))) names.push_back(std::move(name));
  }
  return names;
}

}  // namespace

std::string file_of(const JobRow& row) {
  const std::string pattern = file_label(row, "slurm.output");
  return path_of_pattern(row, !pattern.empty() ? pattern : row.array != 0 ? "slurm-%A_%a.out" : "slurm-%j.out");
}

std::string error_file_of(const JobRow& row) {
  const std::string pattern = file_label(row, "slurm.error");
  return pattern.empty() ? file_of(row) : path_of_pattern(row, pattern);
}

std::string input_file_of(const JobRow& row) {
  const std::string pattern = file_label(row, "slurm.input");
  return pattern.empty() ? "/dev/null" : path_of_pattern(row, pattern);
}

std::string wanted_nodes(const JobRow& row) { return host_list(nodes_of_rules(row, kWantedNode)); }
std::string unwanted_nodes(const JobRow& row) { return host_list(nodes_of_rules(row, kUnwantedNode)); }

std::string features_of(const JobRow& row) {
  std::string all;
  for (const cli::Json& rule : cli::items(row.spec(), "node_rules")) {
    std::string text = cli::show(rule);
    if (text.starts_with(kWantedNode) || text.starts_with(kUnwantedNode)) continue;
    for (std::size_t at = text.find(" || "); at != std::string::npos; at = text.find(" || ")) text.replace(at, 4, "|");
    all += (all.empty() ? "" : "&") + text;
  }
  return or_null(all);
}

std::string dependency_text(const JobRow& row) {
  std::string all;
  for (const char* key : {"after", "afterok", "afterany"}) {
    for (const cli::Json& one : cli::items(row.spec(), key))
      all += (all.empty() ? "" : ",") + std::string(key) + ":" + cli::show(one) + "(unfulfilled)";
  }
  return or_null(row.state == "PENDING" ? all : "");
}

}  // namespace berth::slurm
