#pragma once
// Reads the openb traces for the placement experiment: nodes, pod lists, arrival orders and the published figures.
// Plain and gzip files both. The files are the repository owner's development traces; a bad row ends the program with
// its line.

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/placement/fleet.h"

namespace berth::bench {

struct OpenbPods {
  std::vector<sim::placement::PodShape> shapes;
  std::map<std::string, std::size_t> index_of;  // by pod name
};

class OpenbInput {
 public:
  explicit OpenbInput(std::string folder) : folder_(std::move(folder)) {}

  sim::placement::Fleet gpu_nodes();
  OpenbPods pods(const std::string& list);
  // Per seed, indexes into the pods of the list in the order of arrival.
  std::map<std::uint64_t, std::vector<std::size_t>> arrivals(const std::string& list, const OpenbPods& pods) const;
  // The published mean over seeds of `allo` or `frag` in per cent, by (list, policy), at a percentage arrived.
  std::map<std::pair<std::string, std::string>, double> published(const std::string& what, int arrived_percent) const;

 private:
  std::uint32_t model_index(const std::string& model);
  sim::placement::ModelMask model_mask(const std::string& alternatives);

  std::string folder_;
  std::map<std::string, std::uint32_t> models_;
};

inline constexpr const char* kOpenbLists[] = {"default",   "cpu050",    "cpu200",     "gpushare40", "gpushare80",
                                              "gpuspec10", "gpuspec25", "multigpu20", "multigpu40"};

}  // namespace berth::bench
