#include "slurm/job_words.h"

#include <utility>

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

std::string file_of(const JobRow& row) {
  std::string pattern = cli::show(cli::at(row.job, "labels"), "slurm.output");
  if (pattern.empty()) pattern = row.array != 0 ? "slurm-%A_%a.out" : "slurm-%j.out";
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

std::string dependency_text(const JobRow& row) {
  std::string all;
  for (const char* key : {"after", "afterok", "afterany"}) {
    for (const cli::Json& one : cli::items(row.spec(), key))
      all += (all.empty() ? "" : ",") + std::string(key) + ":" + cli::show(one) + "(unfulfilled)";
  }
  return or_null(row.state == "PENDING" ? all : "");
}

}  // namespace berth::slurm
