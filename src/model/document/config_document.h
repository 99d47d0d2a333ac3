#pragma once
// cluster.yaml: a ClusterConfig as its operators write it; docs/configuration.md has the syntax. Queues nest in the
// document, so no cycle can be written. Paths in messages and differences join their names:
// queues.research/nlp.max.gpus.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/cluster_config.h"
#include "model/document/document.h"

namespace berth::document {

// Returns the configuration in `text`, which keeps all rules of mistakes_in(). An error has a line for each mistake,
// FILE:LINE:COLUMN: PATH: what is wrong; what would be right.
Result<ClusterConfig> read_config(std::string_view text, std::string_view file);
// The same from a tree, with each mistake by itself.
Checked<ClusterConfig> check_config(const Node& document);

// Returns the document that reads back as `config`. Keys with default values are left out.
Node config_node(const ClusterConfig& config);
std::string config_to_yaml(const ClusterConfig& config);

// Returns what applying `to` over `from` would change, one line for each change, sorted by path:
//   ~ queues.research.max.gpus: 10 -> 12      + queues.ads.weight: 1      - queues.old.weight: 1
std::vector<std::string> diff_configs(const ClusterConfig& from, const ClusterConfig& to);

}  // namespace berth::document
