#pragma once
// cluster.yaml: a ClusterConfig as its operators write it. The syntax is docs/configuration.md. Queues nest, so a cycle
// cannot be written; paths in messages and differences join them: queues.research/nlp.max.gpus.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/cluster_config.h"
#include "model/document/document.h"

namespace berth::document {

// The configuration in `text`, which validate() accepts. An error reads FILE:LINE:COLUMN: PATH: what is wrong; what
// would be right.
Result<ClusterConfig> read_config(std::string_view text, std::string_view file);

// The document that reads back as `config`. What equals its default is left out.
Node config_node(const ClusterConfig& config);
std::string config_to_yaml(const ClusterConfig& config);

// What applying `to` over `from` would change, one line each, sorted by path:
//   ~ queues.research.max.gpus: 10 -> 12      + queues.ads.weight: 1      - queues.old.weight: 1
std::vector<std::string> diff_configs(const ClusterConfig& from, const ClusterConfig& to);

}  // namespace berth::document
