#include "sim/simulate/trial_config.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "model/document/config_document.h"
#include "sim/trace/bytes.h"

namespace berth::sim {

namespace {

constexpr std::size_t kMostConfigBytes = std::size_t{16} << 20U;

}  // namespace

Result<TrialConfig> read_trial_config(const std::string& path) {
  const auto text = read_file(path, kMostConfigBytes);
  if (!text) return text.error();
  const auto config = document::read_config(*text, path);
  if (!config) return config.error();
  TrialConfig trial;
  trial.policy = product_policy(config->name, config->scheduling);
  for (const QueueConfig& queue : config->queues) trial.queues.push_back(overlay_queue_of(queue));
  const auto more = std::count_if(config->queues.begin(), config->queues.end(), states_more_than_gpu_quota);
  if (more > 0) {
    trial.notes.push_back(path + ": queues that state more than weight, guaranteed and max GPUs: " +
                          std::to_string(more) + "; the rest is set aside");
  }
  trial.notes.push_back(path +
                        ": pools, GPU models, topology and priority classes are set aside; nodes and priorities " +
                        "are those of the trace");
  return trial;
}

PolicySpec product_policy(const std::string& name, const SchedulingConfig& scheduling) {
  PolicySpec policy;
  policy.name = name;
  policy.order = PolicyOrder::kBerth;
  policy.score.clear();
  policy.head_blocks = false;
  policy.scheduling = scheduling;
  return policy;
}

OverlayQueue overlay_queue_of(const QueueConfig& config) {
  OverlayQueue queue;
  const std::size_t slash = config.path.rfind('/');
  queue.name = config.path;
  if (slash != std::string::npos) queue.parent = config.path.substr(0, slash);
  queue.guaranteed_milli = config.guaranteed.gpu_milli;
  queue.max_milli = config.max.gpu_milli;
  queue.weight = config.weight;
  return queue;
}

bool states_more_than_gpu_quota(const QueueConfig& queue) {
  QueueConfig known;
  known.path = queue.path;
  known.guaranteed.gpu_milli = queue.guaranteed.gpu_milli;
  known.max.gpu_milli = queue.max.gpu_milli;
  known.weight = queue.weight;
  return !(queue == known);
}

}  // namespace berth::sim
